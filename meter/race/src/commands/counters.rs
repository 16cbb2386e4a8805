//! Performance counters of a process and what it starts, by perf_event_open.

use ensign_protocol::records::CounterValues;
use ensign_protocol::request::COUNTERS;
use libc::pid_t;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, RawFd};

/// Type and number of each, in the order of `COUNTERS` (include/uapi/linux/perf_event.h).
const EVENTS: [(u32, u64); 6] = [(0, 1), (0, 0), (0, 3), (0, 5), (1, 2), (1, 3)];

const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const TIME_ENABLED_AND_RUNNING: u64 = 1 | 2;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The first 64 bytes of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

fn open(index: usize, pid: pid_t, user_only: bool) -> io::Result<File> {
    let (kind, config) = EVENTS[index];
    let exclude = if user_only {
        EXCLUDE_KERNEL | EXCLUDE_HV
    } else {
        0
    };
    let attributes = Attributes {
        kind,
        config,
        size: std::mem::size_of::<Attributes>() as u32,
        read_format: TIME_ENABLED_AND_RUNNING,
        flags: INHERIT | exclude,
        ..Attributes::default()
    };
    // SAFETY: the structure is as large as it says; the descriptor returned is ours.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            pid,
            -1,
            -1,
            CLOSE_ON_EXEC,
        ) as RawFd;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(fd))
    }
}

/// Which counters this machine and user have, of those asked for.
pub(crate) struct Available {
    indexes: Vec<usize>,
    pub names: Vec<&'static str>,
    pub user_only: bool,
}

impl Available {
    pub(crate) fn probe(wanted: &[String]) -> Available {
        let indexes = |user_only: bool| -> Vec<usize> {
            (0..COUNTERS.len())
                .filter(|&index| wanted.iter().any(|name| name == COUNTERS[index]))
                // Switches happen in the kernel: counting user code alone they are always 0.
                .filter(|&index| !(user_only && COUNTERS[index] == "context-switches"))
                .filter(|&index| open(index, 0, user_only).is_ok())
                .collect()
        };
        let all = indexes(false);
        let user = if all.is_empty() {
            indexes(true)
        } else {
            Vec::new()
        };
        let user_only = !user.is_empty();
        let indexes = if user_only { user } else { all };
        Available {
            names: indexes.iter().map(|&index| COUNTERS[index]).collect(),
            indexes,
            user_only,
        }
    }

    pub(crate) fn scope(&self) -> Option<&'static str> {
        let scope = if self.user_only { "user" } else { "all" };
        (!self.names.is_empty()).then_some(scope)
    }

    /// Counts from now on, what the process starts included.
    pub(crate) fn attach(&self, pid: pid_t) -> io::Result<Counters> {
        let open = |&index: &usize| open(index, pid, self.user_only);
        Ok(Counters {
            files: self.indexes.iter().map(open).collect::<io::Result<_>>()?,
        })
    }

    pub(crate) fn named(&self, values: &[u64]) -> CounterValues {
        self.names
            .iter()
            .copied()
            .zip(values.iter().copied())
            .collect()
    }
}

/// Counters of one process tree, in the order of `Available::names`.
#[derive(Default)]
pub(crate) struct Counters {
    files: Vec<File>,
}

impl Counters {
    /// Appends the counts so far; scaled up where the hardware had to share its counters.
    pub(crate) fn read(&mut self, values: &mut Vec<u64>) {
        for file in &mut self.files {
            let mut raw = [0u8; 24];
            let read = file.read_exact(&mut raw);
            let word = |at: usize| u64::from_ne_bytes(raw[at..at + 8].try_into().expect("8 bytes"));
            let (count, enabled, running) = (word(0), word(8), word(16));
            values.push(match read {
                Ok(()) if running > 0 && running < enabled => {
                    (u128::from(count) * u128::from(enabled) / u128::from(running)) as u64
                }
                Ok(()) => count,
                Err(_) => 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_counters_are_left_out_and_the_rest_count() {
        let wanted: Vec<String> = COUNTERS.map(String::from).to_vec();
        let available = Available::probe(&wanted);
        assert!(available.names.len() <= COUNTERS.len());
        if !available.names.contains(&"page-faults") {
            return;
        }
        let mut counters = available.attach(0).unwrap();
        let pages = vec![1u8; 4 << 20];
        let mut values = Vec::new();
        counters.read(&mut values);
        assert_eq!(values.len(), available.names.len());
        assert!(
            available.named(&values)["page-faults"] >= 1,
            "{}",
            pages.len()
        );
    }

    #[test]
    fn nothing_asked_for_is_nothing_open() {
        let available = Available::probe(&[]);
        assert!(available.names.is_empty());
        assert_eq!(available.scope(), None);
    }
}
