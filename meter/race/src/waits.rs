//! What a task that cannot run waits for: the system call that it is in, and the file of that call.

use ensign_protocol::records::{WaitCall, WaitsFor};
use libc::{c_long, pid_t};
use std::fs;
use std::os::unix::fs::FileTypeExt;

/// Where it stands in a call: not in one, or the kernel does not tell.
const NO_CALL: &str = "";
const FAULT: &str = "page fault";

#[derive(Clone, Copy)]
enum Reason {
    Always(WaitsFor),
    /// By the file of the descriptor that is this argument.
    File(usize),
    /// For the time alone, where this argument, a number of files, is 0.
    Files(usize),
}

use Reason::{Always, File, Files};
use WaitsFor::{Child, Disk, Events, Lock, Other, Pipe, Socket, Terminal, Timer, Unknown};

const CALLS: &[(c_long, &str, Reason)] = &[
    (libc::SYS_fsync, "fsync", Always(Disk)),
    (libc::SYS_fdatasync, "fdatasync", Always(Disk)),
    (libc::SYS_sync_file_range, "sync_file_range", Always(Disk)),
    (libc::SYS_msync, "msync", Always(Disk)),
    (libc::SYS_sync, "sync", Always(Disk)),
    (libc::SYS_syncfs, "syncfs", Always(Disk)),
    (libc::SYS_nanosleep, "nanosleep", Always(Timer)),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", Always(Timer)),
    (libc::SYS_futex, "futex", Always(Lock)),
    (libc::SYS_flock, "flock", Always(Lock)),
    (libc::SYS_fcntl, "fcntl", Always(Lock)),
    (libc::SYS_semop, "semop", Always(Lock)),
    (libc::SYS_semtimedop, "semtimedop", Always(Lock)),
    (libc::SYS_wait4, "wait4", Always(Child)),
    (libc::SYS_waitid, "waitid", Always(Child)),
    (libc::SYS_ppoll, "ppoll", Files(1)),
    (libc::SYS_pselect6, "pselect6", Files(0)),
    (libc::SYS_epoll_pwait, "epoll_pwait", Always(Events)),
    (libc::SYS_io_uring_enter, "io_uring_enter", Always(Events)),
    (libc::SYS_read, "read", File(0)),
    (libc::SYS_readv, "readv", File(0)),
    (libc::SYS_pread64, "pread64", File(0)),
    (libc::SYS_preadv, "preadv", File(0)),
    (libc::SYS_write, "write", File(0)),
    (libc::SYS_writev, "writev", File(0)),
    (libc::SYS_pwrite64, "pwrite64", File(0)),
    (libc::SYS_pwritev, "pwritev", File(0)),
    (libc::SYS_sendfile, "sendfile", File(0)),
    (libc::SYS_splice, "splice", File(2)),
    (libc::SYS_connect, "connect", File(0)),
    (libc::SYS_accept, "accept", File(0)),
    (libc::SYS_accept4, "accept4", File(0)),
    (libc::SYS_sendto, "sendto", File(0)),
    (libc::SYS_sendmsg, "sendmsg", File(0)),
    (libc::SYS_recvfrom, "recvfrom", File(0)),
    (libc::SYS_recvmsg, "recvmsg", File(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll", Files(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select", Files(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait", Always(Events)),
];

/// Of one task that stands in this call; `storage`: its sleep cannot be interrupted.
pub(crate) fn wait_call(pid: pid_t, text: &str, storage: bool) -> WaitCall {
    let mut call = parse(text, |fd| kind_of(&format!("/proc/{pid}/fd/{fd}")));
    if storage && (call.what == Unknown && call.call == FAULT || call.what == Other) {
        call.what = Disk;
    }
    call
}

fn told(what: WaitsFor, call: &'static str) -> WaitCall {
    WaitCall { what, call }
}

/// `number arguments… stack place`, or `-1 stack place` outside of calls.
fn parse(text: &str, kind_of: impl Fn(u64) -> WaitsFor) -> WaitCall {
    let mut fields = text.split_ascii_whitespace();
    let Some(number) = fields.next().and_then(|text| text.parse::<c_long>().ok()) else {
        return told(Unknown, NO_CALL);
    };
    if number < 0 {
        return told(Unknown, FAULT);
    }
    let Some(&(_, call, reason)) = CALLS.iter().find(|(known, ..)| *known == number) else {
        return told(Other, NO_CALL);
    };
    let mut argument = |index| {
        let text: Option<&str> = fields.nth(index);
        text.and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok())
    };
    let what = match reason {
        Always(what) => what,
        File(index) => argument(index).map_or(Unknown, kind_of),
        Files(index) if argument(index) == Some(0) => Timer,
        Files(_) => Events,
    };
    told(what, call)
}

fn kind_of(path: &str) -> WaitsFor {
    let Ok(kind) = fs::metadata(path).map(|file| file.file_type()) else {
        return Unknown;
    };
    match () {
        () if kind.is_socket() => Socket,
        () if kind.is_fifo() => Pipe,
        () if kind.is_file() || kind.is_dir() || kind.is_block_device() => Disk,
        () if kind.is_char_device() => Terminal,
        // An event, a timer or a signal as a descriptor.
        () => Events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_its_number_and_its_file() {
        let text = |number: c_long| format!("{number} 0x7 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x7f11\n");
        let of = |number| parse(&text(number), |fd| if fd == 7 { Socket } else { Unknown });
        assert_eq!(of(libc::SYS_fsync), told(Disk, "fsync"));
        assert_eq!(of(libc::SYS_recvfrom), told(Socket, "recvfrom"));
        assert_eq!(of(libc::SYS_pselect6), told(Events, "pselect6"));
        let none = format!("{} 0x0 0x0 0x0", libc::SYS_pselect6);
        assert_eq!(parse(&none, |_| Pipe), told(Timer, "pselect6"));
        assert_eq!(of(libc::SYS_getpid), told(Other, NO_CALL));
        assert_eq!(parse("-1 0x7ffe 0x55d2\n", |_| Pipe), told(Unknown, FAULT));
        for broken in ["running\n", "", "0 7 0x1"] {
            assert_eq!(parse(broken, |_| Pipe).what, Unknown);
        }
    }

    #[test]
    fn files_are_of_a_kind() {
        assert_eq!(kind_of("/dev/null"), Terminal);
        assert_eq!(kind_of("/"), Disk);
        assert_eq!(kind_of("/no/such/file"), Unknown);
    }
}
