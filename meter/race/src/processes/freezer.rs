//! Stopping and continuing the processes of a variant, and knowing which they are.

use crate::processes::usage::{Exit, Usage};
use libc::pid_t;
use std::io;
use std::os::fd::RawFd;

/// Which part of a variant a process belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// The batch program, or the server.
    Main = 0,
    Load = 1,
    /// `prepare`, `preload`, `cleanup`.
    Aside = 2,
}

pub(crate) const GROUPS: [Group; 3] = [Group::Main, Group::Load, Group::Aside];

/// How a fresh child comes into its tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Admission {
    /// Is born in a control group: in a frozen one it stops right there.
    Join {
        folder: RawFd,
        procs: RawFd,
    },
    StopItself,
    Free,
}

/// All processes of one variant. Frozen and thawed as a whole; accounted group by group.
pub(crate) trait Tree {
    /// Returns when all stand still, or after a bounded time.
    fn freeze(&mut self) -> io::Result<()>;
    fn thaw(&mut self) -> io::Result<()>;
    fn is_frozen(&self) -> bool;

    fn admission(&self, group: Group) -> Admission;
    /// A child was forked; waits until it stands still where the tree is frozen.
    fn admitted(&mut self, group: Group, pid: pid_t);
    /// A process of this tree was reaped by the meter.
    fn reaped(&mut self, group: Group, pid: pid_t, exit: &Exit);
    /// The group of a process, a dead one too.
    fn owner(&mut self, pid: pid_t) -> Option<Group>;

    /// CPU time so far of all that ever ran in the group.
    fn usage(&mut self, group: Group) -> io::Result<Usage>;
    /// Time so far in which a task of the group waited for a CPU; None where nothing tells.
    fn cpu_wait_ns(&mut self, group: Group) -> Option<u64>;
    fn members(&mut self, group: Group) -> Vec<pid_t>;
    /// Kills a group's processes, and waits (a bounded time) until they are dead.
    fn kill(&mut self, group: Group);
    /// Names of processes that left the tree and were found again, told once.
    fn escaped(&mut self) -> Vec<String>;
}
