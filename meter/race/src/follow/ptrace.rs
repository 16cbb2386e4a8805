//! The system calls of a tracer, thinly wrapped.

use libc::{c_int, c_long, c_uint, c_void, pid_t};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(super) const EVENT_FORK: c_int = libc::PTRACE_EVENT_FORK;
pub(super) const EVENT_VFORK: c_int = libc::PTRACE_EVENT_VFORK;
pub(super) const EVENT_CLONE: c_int = libc::PTRACE_EVENT_CLONE;
pub(super) const EVENT_EXEC: c_int = libc::PTRACE_EVENT_EXEC;
pub(super) const EVENT_EXIT: c_int = libc::PTRACE_EVENT_EXIT;
pub(super) const EVENT_SECCOMP: c_int = libc::PTRACE_EVENT_SECCOMP;
pub(super) const EVENT_STOP: c_int = 128;
/// How a stop at a system call is told from a SIGTRAP.
pub(super) const SYSTEM_CALL: c_int = libc::SIGTRAP | 0x80;

const OPTIONS: c_int = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACESYSGOOD;
const GET_SYSCALL_INFO: c_uint = 0x420e;

/// `struct ptrace_syscall_info`: `words` is the number and arguments, or the result, of the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Info {
    pub op: u8,
    padding: [u8; 3],
    pub arch: u32,
    pub ip: u64,
    sp: u64,
    words: [u64; 8],
}

impl Info {
    pub(super) fn number(&self) -> u64 {
        self.words[0]
    }

    pub(super) fn arguments(&self) -> [u64; 6] {
        std::array::from_fn(|index| self.words[index + 1])
    }

    /// At the call's exit; negative is an error.
    pub(super) fn result(&self) -> i64 {
        self.words[0] as i64
    }
}

fn request(number: c_uint, pid: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: requests used here read nothing but plain numbers, or write to `data`, which the
    // caller has made large enough.
    let result = unsafe {
        libc::ptrace(
            number as _,
            pid,
            address as *mut c_void,
            data as *mut c_void,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

pub(super) fn seize(pid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE as _, pid, 0, OPTIONS as usize).map(drop)
}

/// Lets it run on, with a signal if that is not 0; to the end of its system call if so asked.
pub(super) fn resume(pid: pid_t, signal: c_int, to_call_end: bool) {
    let how = if to_call_end {
        libc::PTRACE_SYSCALL
    } else {
        libc::PTRACE_CONT
    };
    // It may have been killed meanwhile; its end is told all the same.
    let _ = request(how as _, pid, 0, signal as usize);
}

/// Leaves it stopped, as job control wants it, and hears of what ends that.
pub(super) fn listen(pid: pid_t) {
    let _ = request(libc::PTRACE_LISTEN as _, pid, 0, 0);
}

/// Stops it soon; that it stands is told as any other stop.
pub(super) fn interrupt(pid: pid_t) -> bool {
    request(libc::PTRACE_INTERRUPT as _, pid, 0, 0).is_ok()
}

pub(super) fn message(pid: pid_t) -> Option<u64> {
    let mut value: libc::c_ulong = 0;
    request(
        libc::PTRACE_GETEVENTMSG as _,
        pid,
        0,
        &raw mut value as usize,
    )
    .ok()?;
    Some(value)
}

pub(super) fn info(pid: pid_t) -> Option<Info> {
    let mut info = Info::default();
    let size = std::mem::size_of::<Info>();
    request(GET_SYSCALL_INFO, pid, size, &raw mut info as usize).ok()?;
    Some(info)
}

/// How the signal that is about to be delivered was sent, and by whom.
pub(super) fn sender(pid: pid_t) -> Option<(c_int, pid_t)> {
    // SAFETY: siginfo_t is plain data, filled in by the kernel.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        request(libc::PTRACE_GETSIGINFO as _, pid, 0, &raw mut info as usize).ok()?;
        Some((info.si_code, info.si_pid()))
    }
}

pub(super) fn read(pid: pid_t, address: u64, into: &mut [u8]) -> Option<usize> {
    let (local, remote) = vectors(into.as_mut_ptr(), into.len(), address);
    // SAFETY: the local vector is `into`; the remote one is the kernel's to check.
    let count = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(count).ok()
}

/// Also where the program itself may only read; that takes longer.
pub(super) fn write(pid: pid_t, address: u64, from: &[u8]) -> bool {
    let (local, remote) = vectors(from.as_ptr().cast_mut(), from.len(), address);
    // SAFETY: `from` is only read; the remote vector is the kernel's to check.
    let count = unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) };
    if usize::try_from(count) == Ok(from.len()) {
        return true;
    }
    let memory = File::options().write(true).open(format!("/proc/{pid}/mem"));
    memory.is_ok_and(|memory| memory.write_all_at(from, address).is_ok())
}

fn vectors(local: *mut u8, length: usize, address: u64) -> (libc::iovec, libc::iovec) {
    let own = libc::iovec {
        iov_base: local.cast(),
        iov_len: length,
    };
    let other = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: length,
    };
    (own, other)
}

/// A string of the traced process; None where it cannot be read.
pub(super) fn text(pid: pid_t, address: u64) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < libc::PATH_MAX as usize {
        // Never across a page that may not be there.
        let mut part = vec![0; (PAGE - at % PAGE) as usize];
        let count = read(pid, at, &mut part)?;
        if count == 0 {
            return None;
        }
        part.truncate(count);
        if let Some(end) = memchr::memchr(0, &part) {
            bytes.extend_from_slice(&part[..end]);
            return Some(bytes);
        }
        at += count as u64;
        bytes.extend(part);
    }
    Some(bytes)
}
