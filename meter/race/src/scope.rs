//! As a normal user, control groups can be made in a scope that systemd delegates.

use crate::run;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const IN_SCOPE: &str = "ENSIGN_METER_SCOPE";
const SCOPE: [&str; 6] = ["--user", "--scope", "--quiet", "-p", "Delegate=yes", "--"];

/// Executes this program anew in a delegated scope where that helps and works; true when this
/// already is the new one. Returns where it does not.
pub fn enter() -> bool {
    let in_scope = std::env::var_os(IN_SCOPE).is_some();
    std::env::remove_var(IN_SCOPE);
    // SAFETY: no memory is involved.
    let root = unsafe { libc::geteuid() } == 0;
    if in_scope || root || has_cgroups() || !works() {
        return in_scope;
    }
    let Ok(program) = std::env::current_exe() else {
        return false;
    };
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Returns only when it failed; then signals have to do.
    let _ = Command::new("systemd-run")
        .args(SCOPE)
        .arg(program)
        .args(arguments)
        .env(IN_SCOPE, "1")
        .exec();
    false
}

fn has_cgroups() -> bool {
    run::try_group().is_ok()
}

/// After the exec there is no way back, so it is tried first.
fn works() -> bool {
    let mut trial = Command::new("systemd-run");
    trial.args(SCOPE).arg("true");
    trial
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}
