//! `as-user`: a command as another user without privileges, or as the same one without its keys.

use crate::processes::user::{self, User};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As of env(1): the tool itself failed; the program cannot be executed; there is none.
const FAILED: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
const SAME: &str = "same";

/// Executes the command as that user (`UID:GID`, or `same`) in place of this process, without the
/// keys of the session. Returns an exit status, having said why, where it cannot.
pub fn as_user(user: &str, command: &[OsString]) -> i32 {
    if user == SAME {
        user::leave_keys();
    } else if let Err(text) = become_user(user) {
        return refuse(FAILED, &text);
    }
    let Some((program, arguments)) = command.split_first() else {
        return refuse(FAILED, "no command");
    };
    let error = Command::new(program).args(arguments).exec();
    let status = match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    };
    refuse(status, &format!("cannot execute {program:?}: {error}"))
}

fn become_user(user: &str) -> Result<(), String> {
    let user = User::parse(user)?;
    // SAFETY: this process has one thread.
    if unsafe { user.assume() } < 0 {
        let error = io::Error::last_os_error();
        return Err(format!(
            "cannot become user {}:{}: {error}",
            user.uid, user.gid
        ));
    }
    Ok(())
}

fn refuse(status: i32, text: &str) -> i32 {
    eprintln!("ensign-meter as-user: {text}");
    status
}
