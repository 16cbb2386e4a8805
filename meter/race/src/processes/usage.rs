//! What processes used: CPU time, memory, context switches.

use crate::processes::procfs::Footprint;
use libc::pid_t;
use std::fs::File;
use std::io;
use std::ops::Sub;
use std::os::unix::fs::FileExt;

/// Cumulative CPU time of a group of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub cpu_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, base: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(base.cpu_ns),
            user_ns: self.user_ns.saturating_sub(base.user_ns),
            system_ns: self.system_ns.saturating_sub(base.system_ns),
        }
    }
}

impl Usage {
    /// From an open `cpu.stat` of a control group.
    pub(crate) fn from_cpu_stat(file: &File) -> io::Result<Usage> {
        let mut buffer = [0u8; 512];
        let length = file.read_at(&mut buffer, 0)?;
        Ok(Usage::parse_cpu_stat(&buffer[..length]))
    }

    fn parse_cpu_stat(text: &[u8]) -> Usage {
        let value = |key: &[u8]| {
            text.split(|&byte| byte == b'\n')
                .find_map(|line| line.strip_prefix(key))
                .map_or(0, |digits| {
                    let digit = |number: u64, &d: &u8| number * 10 + u64::from(d - b'0');
                    digits.iter().filter(|d| d.is_ascii_digit()).fold(0, digit)
                })
                * 1000
        };
        Usage {
            cpu_ns: value(b"usage_usec "),
            user_ns: value(b"user_usec "),
            system_ns: value(b"system_usec "),
        }
    }
}

/// How a process ended, and what it and the children it waited for used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exit {
    pub status: libc::c_int,
    pub usage: Usage,
    pub peak_memory_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub page_faults: u64,
}

impl Exit {
    pub(crate) fn code(&self) -> Option<i32> {
        libc::WIFEXITED(self.status).then(|| libc::WEXITSTATUS(self.status))
    }

    pub(crate) fn footprint(&self) -> Footprint {
        Footprint {
            peak_memory_bytes: self.peak_memory_bytes,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            page_faults: self.page_faults,
        }
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        libc::WIFSIGNALED(self.status).then(|| libc::WTERMSIG(self.status))
    }
}

fn ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// A child that has ended and was not yet reaped, if any; it stays unreaped.
pub(crate) fn ended_child() -> Option<pid_t> {
    // SAFETY: siginfo_t is plain data, filled in by the kernel.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let status = libc::waitid(libc::P_ALL, 0, &mut info, how);
        let pid = info.si_pid();
        (status == 0 && pid != 0).then_some(pid)
    }
}

/// Reaps an ended child.
pub(crate) fn reap(pid: pid_t) -> Option<Exit> {
    // SAFETY: rusage is plain data, filled in by the kernel.
    unsafe {
        let mut status = 0;
        let mut rusage: libc::rusage = std::mem::zeroed();
        if libc::wait4(pid, &mut status, libc::WNOHANG, &mut rusage) != pid {
            return None;
        }
        let (user_ns, system_ns) = (ns(rusage.ru_utime), ns(rusage.ru_stime));
        Some(Exit {
            status,
            usage: Usage {
                cpu_ns: user_ns + system_ns,
                user_ns,
                system_ns,
            },
            peak_memory_bytes: rusage.ru_maxrss as u64 * 1024,
            voluntary_switches: rusage.ru_nvcsw as u64,
            involuntary_switches: rusage.ru_nivcsw as u64,
            page_faults: (rusage.ru_minflt + rusage.ru_majflt) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_stat_is_read_in_nanoseconds() {
        let text = b"usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnice_usec 0\n";
        let usage = Usage::parse_cpu_stat(text);
        assert_eq!(usage.cpu_ns, 1_234_567_000);
        assert_eq!(usage.user_ns, 1_000_000_000);
        assert_eq!(usage.system_ns, 234_567_000);
    }

    #[test]
    fn an_exit_is_a_code_or_a_signal() {
        let ended = |status| Exit {
            status,
            ..Exit::default()
        };
        assert_eq!(
            (ended(3 << 8).code(), ended(3 << 8).signal()),
            (Some(3), None)
        );
        assert_eq!((ended(9).code(), ended(9).signal()), (None, Some(9)));
    }
}
