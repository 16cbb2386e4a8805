//! The system calls that the tracer looks at: one table per architecture.
//!
//! A row is the number, what the call does, and when it is of interest; the kernel's filter lets
//! every other call pass at full speed.

use What::{
    Bind, Clock, Exec, Flock, Interval, Key, Limit, Lock, Map, Open, OpenHow, Protect, Remove,
    Sleep, Target, TimerLeft, TimerMade, TimerSet, Times, Usage,
};
use When::{Always, Bits, CpuClock, OneOf, Some as Given};

/// Numbers in `What` and `When` are positions of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Exec {
        folder: Option<usize>,
        path: usize,
    },
    /// For reading or writing; the result is a descriptor.
    Open {
        flags: usize,
    },
    OpenHow,
    Map,
    Protect,
    /// Makes or changes the file of that name.
    Target {
        folder: Option<usize>,
        path: usize,
    },
    Remove {
        folder: Option<usize>,
        path: usize,
    },
    Lock,
    Flock,
    /// A shared object of System V, by its key.
    Key {
        flags: usize,
    },
    Bind,
    /// `socketcall`, which is bind among others.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Sockets,
    Clock {
        wide: bool,
    },
    Usage {
        who: Option<usize>,
        at: usize,
    },
    Times,
    /// `setitimer` and `getitimer` by CPU time.
    Interval {
        sets: bool,
    },
    TimerMade,
    /// Of any timer: which clock it goes by is known since it was made.
    TimerSet {
        wide: bool,
    },
    TimerLeft {
        wide: bool,
    },
    Sleep {
        wide: bool,
    },
    /// Of CPU time, by the position of the new one.
    Limit {
        at: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    Bits(usize, u32),
    Some(usize),
    OneOf(usize, &'static [u32]),
    CpuClock,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub number: u32,
    pub what: What,
    pub when: When,
}

pub(super) struct Abi {
    pub arch: u32,
    pub rows: Vec<Row>,
    /// Bytes of a `long`.
    pub word: usize,
}

const EXECUTABLE: u32 = libc::PROT_EXEC as u32;
/// F_SETLK, F_SETLKW of both widths, F_OFD_SETLK, F_OFD_SETLKW.
const LOCKING: &[u32] = &[6, 7, 13, 14, 37, 38];
const EXCLUSIVE: u32 = libc::LOCK_EX as u32;
/// ITIMER_VIRTUAL, ITIMER_PROF.
const CPU_TIMERS: &[u32] = &[1, 2];
/// RLIMIT_CPU.
const CPU_LIMIT: &[u32] = &[0];

fn row(number: impl TryInto<u32>, what: What, when: When) -> Row {
    Row {
        number: number.try_into().unwrap_or(u32::MAX),
        what,
        when,
    }
}

fn target(folder: usize, path: usize) -> What {
    Target {
        folder: Some(folder),
        path,
    }
}

/// Calls that every architecture of today has.
fn common() -> Vec<Row> {
    let exec = |folder, path| Exec { folder, path };
    let usage = |who, at| Usage { who, at };
    let interval = |sets| Interval { sets };
    let removed = Remove {
        folder: Some(0),
        path: 1,
    };
    let truncated = Target {
        folder: None,
        path: 0,
    };
    vec![
        row(libc::SYS_mmap, Map, Bits(2, EXECUTABLE)),
        row(libc::SYS_mprotect, Protect, Bits(2, EXECUTABLE)),
        row(libc::SYS_pkey_mprotect, Protect, Bits(2, EXECUTABLE)),
        row(libc::SYS_openat, Open { flags: 2 }, Always),
        row(libc::SYS_openat2, OpenHow, Always),
        row(libc::SYS_clock_gettime, Clock { wide: true }, CpuClock),
        row(libc::SYS_getrusage, usage(Some(0), 1), Always),
        row(libc::SYS_times, Times, Always),
        row(libc::SYS_wait4, usage(None, 3), Given(3)),
        row(libc::SYS_waitid, usage(None, 4), Given(4)),
        row(libc::SYS_setitimer, interval(true), OneOf(0, CPU_TIMERS)),
        row(libc::SYS_getitimer, interval(false), OneOf(0, CPU_TIMERS)),
        row(libc::SYS_timer_create, TimerMade, CpuClock),
        row(libc::SYS_timer_settime, TimerSet { wide: true }, Always),
        row(libc::SYS_timer_gettime, TimerLeft { wide: true }, Always),
        row(libc::SYS_clock_nanosleep, Sleep { wide: true }, CpuClock),
        row(libc::SYS_setrlimit, Limit { at: 1 }, OneOf(0, CPU_LIMIT)),
        row(libc::SYS_prlimit64, Limit { at: 2 }, OneOf(1, CPU_LIMIT)),
        row(libc::SYS_execve, exec(None, 0), Always),
        row(libc::SYS_execveat, exec(Some(0), 1), Always),
        row(libc::SYS_renameat2, target(2, 3), Always),
        row(libc::SYS_linkat, target(2, 3), Always),
        row(libc::SYS_symlinkat, target(1, 2), Always),
        row(libc::SYS_mknodat, target(0, 1), Always),
        row(libc::SYS_truncate, truncated, Always),
        row(libc::SYS_unlinkat, removed, Always),
        row(libc::SYS_fcntl, Lock, OneOf(1, LOCKING)),
        row(libc::SYS_flock, Flock, Bits(1, EXCLUSIVE)),
        row(libc::SYS_shmget, Key { flags: 2 }, Given(0)),
        row(libc::SYS_semget, Key { flags: 2 }, Given(0)),
        row(libc::SYS_msgget, Key { flags: 1 }, Given(0)),
        row(libc::SYS_bind, Bind, Always),
    ]
}

#[cfg(target_arch = "x86_64")]
mod architecture {
    use super::*;

    const X86_64: u32 = 0xC000_003E;
    const I386: u32 = 0x4000_0003;

    pub(super) fn abis() -> Vec<Abi> {
        let mut rows = common();
        rows.extend(old_calls(
            libc::SYS_open as u32,
            libc::SYS_creat as u32,
            [
                libc::SYS_rename,
                libc::SYS_link,
                libc::SYS_symlink,
                libc::SYS_mknod,
                libc::SYS_unlink,
                libc::SYS_rmdir,
            ]
            .map(|number| number as u32),
        ));
        rows.push(row(libc::SYS_renameat, target(2, 3), Always));
        vec![
            Abi {
                arch: X86_64,
                rows,
                word: 8,
            },
            Abi {
                arch: I386,
                rows: i386(),
                word: 4,
            },
        ]
    }

    /// In the order rename, link, symlink, mknod, unlink, rmdir.
    fn old_calls(open: u32, creat: u32, named: [u32; 6]) -> Vec<Row> {
        let second = Target {
            folder: None,
            path: 1,
        };
        let first = Target {
            folder: None,
            path: 0,
        };
        let removed = Remove {
            folder: None,
            path: 0,
        };
        let [rename, link, symlink, mknod, unlink, rmdir] = named;
        vec![
            row(open, Open { flags: 1 }, Always),
            // Its second argument is no set of flags, but any will do: it always writes.
            row(creat, Open { flags: usize::MAX }, Always),
            row(rename, second, Always),
            row(link, second, Always),
            row(symlink, second, Always),
            row(mknod, first, Always),
            row(unlink, removed, Always),
            row(rmdir, removed, Always),
        ]
    }

    /// Numbers of the 32-bit calls, which libc has no names for here.
    fn i386() -> Vec<Row> {
        let mut rows = old_calls(5, 8, [38, 9, 83, 14, 10, 40]);
        let usage = |who, at| Usage { who, at };
        rows.extend([
            row(192u32, Map, Bits(2, EXECUTABLE)),
            row(125u32, Protect, Bits(2, EXECUTABLE)),
            row(380u32, Protect, Bits(2, EXECUTABLE)),
            row(295u32, Open { flags: 2 }, Always),
            row(437u32, OpenHow, Always),
            row(265u32, Clock { wide: false }, CpuClock),
            row(403u32, Clock { wide: true }, CpuClock),
            row(77u32, usage(Some(0), 1), Always),
            row(43u32, Times, Always),
            row(114u32, usage(None, 3), Given(3)),
            row(284u32, usage(None, 4), Given(4)),
            row(104u32, Interval { sets: true }, OneOf(0, CPU_TIMERS)),
            row(105u32, Interval { sets: false }, OneOf(0, CPU_TIMERS)),
            row(259u32, TimerMade, CpuClock),
            row(260u32, TimerSet { wide: false }, Always),
            row(409u32, TimerSet { wide: true }, Always),
            row(261u32, TimerLeft { wide: false }, Always),
            row(408u32, TimerLeft { wide: true }, Always),
            row(267u32, Sleep { wide: false }, CpuClock),
            row(407u32, Sleep { wide: true }, CpuClock),
            row(75u32, Limit { at: 1 }, OneOf(0, CPU_LIMIT)),
            row(340u32, Limit { at: 2 }, OneOf(1, CPU_LIMIT)),
            row(
                11u32,
                Exec {
                    folder: None,
                    path: 0,
                },
                Always,
            ),
            row(
                358u32,
                Exec {
                    folder: Some(0),
                    path: 1,
                },
                Always,
            ),
            row(302u32, target(2, 3), Always),
            row(353u32, target(2, 3), Always),
            row(303u32, target(2, 3), Always),
            row(304u32, target(1, 2), Always),
            row(297u32, target(0, 1), Always),
            row(
                92u32,
                Target {
                    folder: None,
                    path: 0,
                },
                Always,
            ),
            row(
                193u32,
                Target {
                    folder: None,
                    path: 0,
                },
                Always,
            ),
            row(
                301u32,
                Remove {
                    folder: Some(0),
                    path: 1,
                },
                Always,
            ),
            row(55u32, Lock, OneOf(1, LOCKING)),
            row(221u32, Lock, OneOf(1, LOCKING)),
            row(143u32, Flock, Bits(1, EXCLUSIVE)),
            row(395u32, Key { flags: 2 }, Given(0)),
            row(393u32, Key { flags: 2 }, Given(0)),
            row(399u32, Key { flags: 1 }, Given(0)),
            row(102u32, What::Sockets, Always),
            row(361u32, Bind, Always),
        ]);
        rows
    }
}

#[cfg(target_arch = "aarch64")]
mod architecture {
    use super::*;

    const AARCH64: u32 = 0xC000_00B7;

    /// 32-bit programs are not in the table: the filter stops all their calls, and they are not
    /// judged.
    pub(super) fn abis() -> Vec<Abi> {
        let mut rows = common();
        rows.push(row(libc::SYS_renameat, target(2, 3), Always));
        vec![Abi {
            arch: AARCH64,
            rows,
            word: 8,
        }]
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod architecture {
    use super::*;

    pub(super) fn abis() -> Vec<Abi> {
        Vec::new()
    }
}

/// The machine's own first; empty where there is no table for it.
pub(super) fn abis() -> Vec<Abi> {
    architecture::abis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_stands_twice() {
        for abi in abis() {
            let mut numbers: Vec<u32> = abi.rows.iter().map(|row| row.number).collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "architecture {:x}", abi.arch);
        }
    }
}
