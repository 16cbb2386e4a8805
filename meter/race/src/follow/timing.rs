//! What a program asks of its CPU time: clocks that it reads, timers, sleeps and limits that it sets.
//!
//! Where these clocks are to run faster, the program reads more than it used, and its timers ring
//! after less.

use super::calls::What;
use super::clocks::{self, Times};
use super::ptrace;
use super::seen::Seen;
use libc::{c_int, pid_t};
use std::collections::HashSet;

/// A system call that is under way.
pub(super) enum Waiting {
    /// Leaves times that are to seem larger.
    Read(Times),
    /// Was asked for less: what stood there before, and what it leaves.
    Lessened {
        at: u64,
        before: Vec<u8>,
        left: Option<Times>,
    },
    /// Makes a timer, and leaves its number there.
    Made(u64),
}

pub(super) struct Timing {
    rate: u64,
    /// Those that go by CPU time: process and number.
    timers: HashSet<(pid_t, i32)>,
}

impl Timing {
    pub(super) fn new(rate: u64) -> Timing {
        Timing {
            rate,
            timers: HashSet::new(),
        }
    }

    /// A program that is executed has no timers yet.
    pub(super) fn forget(&mut self, process: pid_t) {
        self.timers.retain(|&(owner, _)| owner != process);
    }

    /// Of a task and its process: a call, and the bytes of a `long` in it.
    pub(super) fn begins(
        &self,
        (pid, process): (pid_t, pid_t),
        (what, word): (What, usize),
        arguments: &[u64; 6],
        seen: &mut Seen,
    ) -> Option<Waiting> {
        let nanoseconds = |at: usize, wide: bool, count| Times {
            address: arguments[at],
            word: if wide { 8 } else { word },
            pairs: Some(clocks::NANOSECONDS),
            count,
        };
        let microseconds = |at: usize| Times {
            address: arguments[at],
            word,
            pairs: Some(clocks::MICROSECONDS),
            count: 2,
        };
        let less = |asked: Times, left| self.lessened(pid, asked, left);
        let ours = || self.timers.contains(&(process, arguments[0] as i32));
        match what {
            What::Clock { wide } => {
                // Clocks of devices are negative, too.
                if is_device(arguments[0]) {
                    return None;
                }
                seen.cpu_clock_reads += 1;
                self.read(nanoseconds(1, wide, 1))
            }
            What::Usage { who, at } => {
                let of_children = |who: usize| arguments[who] as c_int == libc::RUSAGE_CHILDREN;
                *if who.is_none_or(of_children) {
                    &mut seen.children_clock_reads
                } else {
                    &mut seen.cpu_clock_reads
                } += 1;
                self.read(microseconds(at))
            }
            What::Times => {
                seen.cpu_clock_reads += 1;
                self.read(Times {
                    address: arguments[0],
                    word,
                    pairs: None,
                    count: 4,
                })
            }
            What::Interval { sets: false } => self.read(microseconds(1)),
            What::Interval { sets: true } => {
                seen.cpu_timers += 1;
                less(microseconds(1), Some(microseconds(2)))
            }
            What::TimerMade if !is_device(arguments[0]) => {
                seen.cpu_timers += 1;
                (self.rate > 1).then_some(Waiting::Made(arguments[2]))
            }
            What::TimerSet { wide } if ours() => {
                less(nanoseconds(2, wide, 2), Some(nanoseconds(3, wide, 2)))
            }
            What::TimerLeft { wide } if ours() => self.read(nanoseconds(1, wide, 2)),
            What::Sleep { wide } if !is_device(arguments[0]) => {
                seen.cpu_timers += 1;
                less(nanoseconds(2, wide, 1), Some(nanoseconds(3, wide, 1)))
            }
            What::Limit { at } => {
                seen.cpu_limits += u64::from(is_limit(pid, arguments[at], word));
                None
            }
            _ => None,
        }
    }

    pub(super) fn ends(&mut self, (pid, process): (pid_t, pid_t), waiting: Waiting, failed: bool) {
        match waiting {
            Waiting::Lessened { at, before, left } => {
                ptrace::write(pid, at, &before);
                if let Some(left) = left.filter(|_| !failed) {
                    clocks::multiply(pid, left, self.rate);
                }
            }
            Waiting::Read(times) if !failed => clocks::multiply(pid, times, self.rate),
            Waiting::Made(at) if !failed => {
                let mut number = [0; 4];
                if ptrace::read(pid, at, &mut number) == Some(number.len()) {
                    self.timers.insert((process, i32::from_ne_bytes(number)));
                }
            }
            _ => {}
        }
    }

    fn read(&self, times: Times) -> Option<Waiting> {
        (self.rate > 1).then_some(Waiting::Read(times))
    }

    fn lessened(&self, pid: pid_t, asked: Times, left: Option<Times>) -> Option<Waiting> {
        if self.rate == 1 {
            return None;
        }
        let before = clocks::divide(pid, asked, self.rate)?;
        Some(Waiting::Lessened {
            at: asked.address,
            before,
            left,
        })
    }
}

/// A clock of a device has a negative number, as that of another process has.
fn is_device(clock: u64) -> bool {
    const KIND: u64 = 7;
    const DEVICE: u64 = 3;
    (clock as i32) < 0 && clock & KIND == DEVICE
}

fn is_limit(pid: pid_t, address: u64, word: usize) -> bool {
    let mut soft = vec![0; word];
    let known = address != 0 && ptrace::read(pid, address, &mut soft) == Some(word);
    known && soft.iter().any(|&byte| byte != u8::MAX)
}
