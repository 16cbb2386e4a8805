//! Signals to processes.

use libc::pid_t;

pub(crate) fn kill(pid: pid_t, signal: libc::c_int) -> bool {
    // SAFETY: no memory is involved.
    pid > 0 && unsafe { libc::kill(pid, signal) } == 0
}
