//! The clocks of the meter. Everything is measured with the monotonic one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    (status == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Monotonic nanoseconds.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// CPU time of a whole process (all threads, ended ones too), or None when it is gone.
pub fn process_cpu_ns(pid: libc::pid_t) -> Option<u64> {
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    read((!pid << 3) | CPUCLOCK_SCHED)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// A time below that one, by chance, which is another one each time.
pub fn random_below_ns(most_ns: u64) -> u64 {
    let hasher = RandomState::new();
    ((u128::from(hasher.hash_one(now_ns())) * u128::from(most_ns)) >> 64) as u64
}

/// Sleeps whatever signals say: for waits of microseconds, and for clean-up.
pub fn sleep_ns(ns: u64) {
    let time = timespec(ns);
    // SAFETY: both pointers are valid for the call; the remainder is not wanted.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Waits between looks at something that ends soon, as a rule: short at first, then longer. What
/// is waited for may need this very CPU.
pub struct Naps(u64);

const SHORTEST_NAP_NS: u64 = 4_000;
const LONGEST_NAP_NS: u64 = 500_000;

impl Default for Naps {
    fn default() -> Naps {
        Naps(SHORTEST_NAP_NS)
    }
}

impl Naps {
    pub fn nap(&mut self) {
        sleep_ns(self.0);
        self.0 = (self.0 * 2).min(LONGEST_NAP_NS);
    }
}
