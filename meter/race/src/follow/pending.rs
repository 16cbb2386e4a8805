//! What a system call is about to change, as its arguments say.

use super::calls::What;
use super::seen::Way;
use super::timing::Waiting;
use super::{places, ptrace};
use libc::pid_t;

/// Descriptors for the current folder.
const AT_FDCWD: i32 = libc::AT_FDCWD;

/// A call whose end is waited for, since it may fail.
pub(super) enum Pending {
    /// Without a way it is only read.
    Open {
        way: Option<Way>,
    },
    Map,
    Protect {
        first: u64,
        last: u64,
    },
    Change {
        path: String,
        way: Way,
    },
    Key(u64),
    Clock(Waiting),
}

pub(super) fn change(pid: pid_t, what: What, arguments: &[u64; 6]) -> Option<Pending> {
    let named = |folder: Option<usize>, path: usize, way| {
        let path = places::named(pid, folder_of(folder, arguments), arguments[path])?;
        (!places::is_the_kernel_s(&path)).then_some(Pending::Change { path, way })
    };
    match what {
        What::Open { flags } => {
            let flags = arguments
                .get(flags)
                .map_or(libc::O_WRONLY, |&bits| bits as i32);
            Some(Pending::Open { way: way_of(flags) })
        }
        What::OpenHow => {
            let mut flags = [0; 8];
            ptrace::read(pid, arguments[2], &mut flags)?;
            let way = way_of(u64::from_ne_bytes(flags) as i32);
            Some(Pending::Open { way })
        }
        What::Map => (arguments[3] & libc::MAP_ANONYMOUS as u64 == 0).then_some(Pending::Map),
        What::Protect => Some(Pending::Protect {
            first: arguments[0],
            last: arguments[0].saturating_add(arguments[1]),
        }),
        What::Target { folder, path } => named(folder, path, Way::Named),
        What::Remove { folder, path } => named(folder, path, Way::Removed),
        What::Lock => lock(pid, arguments),
        What::Flock => locked(pid, arguments[0]),
        What::Key { flags } => {
            // Whoever wants a new one alone never has another's: it fails, or takes another key.
            let alone = (libc::IPC_CREAT | libc::IPC_EXCL) as u64;
            (arguments[flags] & alone != alone).then_some(Pending::Key(arguments[0]))
        }
        _ => None,
    }
}

/// How a file is changed that is opened with these flags; none if it is only read.
fn way_of(flags: i32) -> Option<Way> {
    let writes = flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0;
    let appends = flags & libc::O_APPEND != 0;
    writes.then_some(if appends { Way::Appended } else { Way::Opened })
}

/// A lock that nobody else may have at the same time.
fn lock(pid: pid_t, arguments: &[u64; 6]) -> Option<Pending> {
    let mut kind = [0; 2];
    ptrace::read(pid, arguments[2], &mut kind)?;
    if i32::from(i16::from_ne_bytes(kind)) != libc::F_WRLCK {
        return None;
    }
    locked(pid, arguments[0])
}

fn locked(pid: pid_t, descriptor: u64) -> Option<Pending> {
    let path = places::opened(pid, descriptor as i64)?;
    Some(Pending::Change {
        path,
        way: Way::Locked,
    })
}

pub(super) fn bind(pid: pid_t, address: u64, length: u64) -> Option<Pending> {
    let path = places::bound(pid, address, length)?;
    Some(Pending::Change {
        path,
        way: Way::Bound,
    })
}

pub(super) fn socketcall(pid: pid_t, arguments: &[u64; 6]) -> Option<Pending> {
    const BIND: u64 = 2;
    if arguments[0] != BIND {
        return None;
    }
    let mut bytes = [0; 12];
    ptrace::read(pid, arguments[1], &mut bytes)?;
    let word = |at: usize| {
        let part = bytes[at..at + 4].try_into().expect("4 bytes");
        u64::from(u32::from_ne_bytes(part))
    };
    bind(pid, word(4), word(8))
}

pub(super) fn folder_of(folder: Option<usize>, arguments: &[u64; 6]) -> Option<i32> {
    let descriptor = arguments[folder?] as i32;
    (descriptor != AT_FDCWD).then_some(descriptor)
}
