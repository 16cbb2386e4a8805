//! `as-user`: a command as another user without privileges.

use crate::processes::user::User;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As of env(1): the tool itself failed; the program cannot be executed; there is none.
const FAILED: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Executes the command as that user (`UID:GID`) in place of this process. Returns an exit status,
/// having said why, where it cannot.
pub fn as_user(user: &str, command: &[OsString]) -> i32 {
    let user = match User::parse(user) {
        Ok(user) => user,
        Err(text) => return refuse(FAILED, &text),
    };
    // SAFETY: this process has one thread.
    if unsafe { user.assume() } < 0 {
        let error = io::Error::last_os_error();
        let text = format!("cannot become user {}:{}: {error}", user.uid, user.gid);
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

fn refuse(status: i32, text: &str) -> i32 {
    eprintln!("ensign-meter as-user: {text}");
    status
}
