//! Being on time: while slices are dealt, the meter goes before other processes.

/// Until it is dropped, this process is woken before ordinary ones. Without the right to it,
/// nothing changes: slices are then a little longer on a busy machine. Children do not inherit it.
pub(crate) struct Priority;

impl Priority {
    pub(crate) fn raise() -> Priority {
        schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
        Priority
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) };
}
