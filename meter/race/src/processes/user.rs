//! Another user, without any privilege, as whom programs of others run.

use libc::{c_int, c_long};

/// A user and its group; neither is root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
}

/// `struct __user_cap_header_struct` and `__user_cap_data_struct` of version 3.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// More than any kernel has; beyond its last one the kernel says EINVAL.
const CAPABILITIES: c_int = 64;
const JOIN_SESSION_KEYRING: c_long = 1;

impl User {
    /// `UID:GID`, as numbers.
    pub(crate) fn parse(text: &str) -> Result<User, String> {
        let wrong = || format!("{text:?} is not UID:GID of a user other than root");
        let (uid, gid) = text.split_once(':').ok_or_else(wrong)?;
        User::new(
            number(uid).ok_or_else(wrong)?,
            number(gid).ok_or_else(wrong)?,
        )
        .ok_or_else(wrong)
    }

    /// None for root, and for the number that means "as it was" to the kernel.
    pub(crate) fn new(uid: u32, gid: u32) -> Option<User> {
        let usable = |id| id != 0 && id != u32::MAX;
        (usable(uid) && usable(gid)).then_some(User { uid, gid })
    }

    /// Opens a file with the rights of the user, where there is one: a link that its programs made
    /// leads to nothing that they could not open themselves.
    pub(crate) fn opens<T>(user: Option<User>, open: impl FnOnce() -> T) -> T {
        let Some(user) = user else {
            return open();
        };
        // SAFETY: no memory is involved; the meter has one thread. Root's own are 0.
        unsafe {
            libc::setfsgid(user.gid);
            libc::setfsuid(user.uid);
            let opened = open();
            libc::setfsuid(0);
            libc::setfsgid(0);
            opened
        }
    }

    /// Makes this process one of the user, for good: without other groups and capabilities, and
    /// without a way to get any by executing a file. -1 with errno where a step failed; the
    /// process is then neither one nor the other, and has to end.
    ///
    /// # Safety
    /// For a process with one thread, which alone changes. Async-signal-safe.
    pub(crate) unsafe fn assume(self) -> c_int {
        let none: *const libc::gid_t = std::ptr::null();
        let (uid, gid) = (self.uid, self.gid);
        // SAFETY: no memory is involved: of no groups there is no list to read. By system calls: the
        // C library would tell all threads of a process, of which a child after fork has one.
        unsafe {
            // First what needs privileges.
            if no_bounding_set() < 0 {
                return -1;
            }
            leave_keys();
            if libc::syscall(libc::SYS_setgroups, 0, none) < 0
                || libc::syscall(libc::SYS_setresgid, gid, gid, gid) < 0
                || libc::syscall(libc::SYS_setresuid, uid, uid, uid) < 0
                || no_capabilities() < 0
                || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
            {
                return -1;
            }
            libc::umask(0o022);
        }
        0
    }
}

/// Leaves the session's keyring for an empty one: whoever is in it may read its keys, whatever
/// namespace or user it is. Async-signal-safe.
pub(crate) fn leave_keys() {
    // Not every kernel has keyrings; keys are then not there, either.
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0, 0, 0, 0) };
}

/// What no file that is executed can give back. -1 with errno.
fn no_bounding_set() -> c_int {
    for capability in 0..CAPABILITIES {
        // SAFETY: no memory is involved.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            return if errno() == libc::EINVAL { 0 } else { -1 };
        }
    }
    0
}

/// Neither effective, permitted and inheritable ones nor ambient ones. -1 with errno.
fn no_capabilities() -> c_int {
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL;
    // SAFETY: no memory is involved.
    let ambient = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) };
    // Before Linux 4.3 there are none.
    if ambient < 0 && errno() != libc::EINVAL {
        return -1;
    }
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let nothing = [CapabilityData {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: both are what this version of the call reads, and outlive it.
    unsafe { libc::syscall(libc::SYS_capset, &header, &nothing) as c_int }
}

fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_two_numbers_and_never_root() {
        let user = User {
            uid: 65534,
            gid: 100,
        };
        assert_eq!(User::parse("65534:100"), Ok(user));
        for wrong in [
            "",
            "1000",
            "0:0",
            "0:100",
            "100:0",
            "+1:1",
            "a:b",
            "1:2:3",
            "4294967295:5",
            "5:4294967295",
            "4294967296:1",
            " 1:1",
        ] {
            let text = User::parse(wrong).unwrap_err();
            assert!(text.contains("is not UID:GID"), "{wrong}: {text}");
        }
    }
}
