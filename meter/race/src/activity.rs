//! What the tasks of a variant do while it runs: compute (or wait for a CPU), or wait for something
//! else. Looked at by the clock, so other load on the machine changes it little: a task that has
//! no CPU because others have them is runnable all the same.

use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::processes::process_trees::ProcessTrees;
use crate::processes::procfs::{self, Transfers};
use crate::waits::wait_call;
use ensign_host::clock;
use ensign_host::cpus::most_at_once;
use ensign_host::wait::Waiter;
use ensign_protocol::records::{Activity, Wait, WaitCall};
use libc::pid_t;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const LONGEST_PAUSE_NS: u64 = 1_000_000;
const SHORTEST_PAUSE_NS: u64 = 150_000;
/// A pause is so many times as long as the look before it: looking disturbs what it looks at.
const PAUSE_PER_LOOK: u64 = 12;
/// While a run is young there are this many looks in it.
const LOOKS_PER_AGE: u64 = 16;
/// Different sets of calls that are told apart: what comes after them is in none.
const MOST_WAITS: usize = 16;
const MOST_CALLS: usize = 4;
const MOST_MET: usize = 4096;
/// A link that takes longer for a byte (8 Mb/s) has nothing to carry.
const NS_PER_BYTE_AT_REST: u64 = 1000;

#[derive(Default)]
struct States {
    tasks: u64,
    /// That can run at a time: no more than the CPUs that they keep to.
    runnable: u64,
    storage: u64,
    busiest_cpu_ns: u64,
    asleep: Vec<Asleep>,
    /// Of a tree in which no task can run.
    calls: Vec<WaitCall>,
    transfers: Transfers,
    processes: Vec<pid_t>,
    children_cpu_ns: u64,
    link_bytes: u64,
}

/// A task that cannot run; `storage`: its sleep cannot be interrupted.
struct Asleep {
    pid: pid_t,
    task: PathBuf,
    storage: bool,
}

impl States {
    /// Adds a time in which the tasks were in these states.
    fn book(self, span_ns: u64, activity: &mut Activity) {
        activity.looks += 1;
        activity.observed_ns += span_ns;
        activity.runnable_ns += self.runnable * span_ns;
        activity.most_tasks = activity.most_tasks.max(self.tasks);
        activity.busiest_cpu_ns = activity.busiest_cpu_ns.max(self.busiest_cpu_ns);
        match self.runnable {
            0 => {
                activity.idle_ns += span_ns;
                activity.storage_ns += if self.storage > 0 { span_ns } else { 0 };
                book_wait(self.calls, span_ns, &mut activity.waits);
            }
            1 => {}
            _ => activity.several_ns += span_ns,
        }
        activity.children_cpu_ns = activity.children_cpu_ns.max(self.children_cpu_ns);
        // What ended before it was waited for took its counts along.
        activity.reads = activity.reads.max(self.transfers.reads);
        activity.read_bytes = activity.read_bytes.max(self.transfers.read_bytes);
        activity.writes = activity.writes.max(self.transfers.writes);
        activity.written_bytes = activity.written_bytes.max(self.transfers.written_bytes);
    }
}

fn book_wait(mut calls: Vec<WaitCall>, span_ns: u64, waits: &mut Vec<Wait>) {
    calls.sort_unstable();
    calls.dedup();
    calls.truncate(MOST_CALLS);
    if let Some(wait) = waits.iter_mut().find(|wait| wait.calls == calls) {
        wait.ns += span_ns;
    } else if waits.len() < MOST_WAITS {
        waits.push(Wait { ns: span_ns, calls });
    }
}

/// Looks at one variant during one execution.
#[derive(Default)]
pub(crate) struct Observer {
    pub main: Activity,
    pub load: Activity,
    began_ns: Option<u64>,
    last_ns: u64,
    cost_ns: u64,
    /// Processes of the program that were met.
    met: BTreeSet<pid_t>,
    /// What the link between two ends had carried at the last look.
    carried_bytes: u64,
}

impl Observer {
    /// Waits as a waiter does, and looks meanwhile at a tree, and at its load where it has one.
    pub(crate) fn watch(
        &mut self,
        waiter: &Waiter,
        process_trees: &mut ProcessTrees,
        (tree, with_load): (usize, bool),
        fds: &[RawFd],
        until_ns: Option<u64>,
    ) -> Result<Option<usize>, Halt> {
        loop {
            let next = self.next_ns();
            let until = until_ns.map_or(next, |until| until.min(next));
            let ready = waiter.readable(fds, Some(until))?;
            if ready.is_some() || until_ns.is_some_and(|until| clock::now_ns() >= until) {
                return Ok(ready);
            }
            self.look(process_trees, tree, with_load);
        }
    }

    /// When to look next.
    fn next_ns(&mut self) -> u64 {
        let now = clock::now_ns();
        let began = *self.began_ns.get_or_insert_with(|| {
            self.last_ns = now;
            now
        });
        let young = ((now - began) / LOOKS_PER_AGE).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS);
        now + young.max(self.cost_ns * PAUSE_PER_LOOK)
    }

    /// Adds what a link carried meanwhile, unless that is a handshake or a farewell.
    fn book_link(&mut self, link_bytes: u64, span_ns: u64) {
        let carried = link_bytes.saturating_sub(self.carried_bytes);
        self.carried_bytes = self.carried_bytes.max(link_bytes);
        if carried * NS_PER_BYTE_AT_REST > span_ns {
            self.main.link_bytes += carried;
            self.main.link_ns += span_ns;
        }
    }

    fn look(&mut self, process_trees: &mut ProcessTrees, tree: usize, with_load: bool) {
        let start = clock::now_ns();
        let span_ns = start - self.last_ns;
        let main = states(process_trees, tree, Group::Main);
        if self.met.len() < MOST_MET {
            self.met.extend(&main.processes);
        }
        self.main.processes = self.met.len() as u64;
        self.book_link(main.link_bytes, span_ns);
        if main.tasks > 0 {
            main.book(span_ns, &mut self.main);
        }
        if with_load {
            let load = states(process_trees, tree, Group::Load);
            load.book(span_ns, &mut self.load);
        }
        self.last_ns = start;
        self.cost_ns = clock::now_ns() - start;
    }
}

fn states(process_trees: &mut ProcessTrees, tree: usize, group: Group) -> States {
    let mut states = States::default();
    let members = process_trees.tree(tree).members(group);
    let mut runnable = Vec::new();
    for &pid in &members {
        count(pid, &mut states, &mut runnable);
    }
    states.runnable = most_at_once(&runnable) as u64;
    if states.runnable == 0 {
        let stands = |each: &Asleep| fs::read_to_string(each.task.join("syscall"));
        let calls: Vec<(&Asleep, String)> = (states.asleep.iter())
            .map(|each| (each, stands(each).unwrap_or_default()))
            .collect();
        let drained = process_trees.drained.borrow();
        if (calls.iter()).any(|(each, call)| writes_to(each.pid, call, &drained)) {
            // It waits for the meter to take its output: that is no waiting of its own.
            states.runnable = 1;
        } else {
            let wait = |(each, call): &(&Asleep, String)| wait_call(each.pid, call, each.storage);
            states.calls = calls.iter().map(wait).collect();
        }
    }
    for &pid in &members {
        states.transfers.add(Transfers::of(pid));
        states.children_cpu_ns += procfs::children_cpu_ns(pid);
    }
    if let Some(&first) = members.first().filter(|&&pid| procfs::has_own_network(pid)) {
        states.link_bytes = procfs::link_bytes(first);
    }
    states.processes = members;
    states
}

/// Whether a task in this system call is held up by one of these pipes being full.
fn writes_to(pid: pid_t, call: &str, pipes: &[u64]) -> bool {
    let file = written_fd(call).and_then(|fd| fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok());
    file.is_some_and(|file| pipes.contains(&file.ino()))
}

/// The descriptor that the system call under way writes into.
pub(crate) fn written_fd(call: &str) -> Option<u64> {
    let mut fields = call.split_ascii_whitespace();
    let number: libc::c_long = fields.next()?.parse().ok()?;
    let place = match number {
        libc::SYS_write | libc::SYS_writev | libc::SYS_sendfile | libc::SYS_vmsplice => 0,
        libc::SYS_tee => 1,
        libc::SYS_splice | libc::SYS_copy_file_range => 2,
        _ => return None,
    };
    u64::from_str_radix(fields.nth(place)?.strip_prefix("0x")?, 16).ok()
}

fn count(pid: pid_t, states: &mut States, runnable: &mut Vec<pid_t>) {
    for task in procfs::tasks(pid) {
        match state_of(&task) {
            Some(b'R') => {
                runnable.extend(procfs::number_of(&task));
                let cpu_ns = procfs::task_cpu_ns(&task);
                states.busiest_cpu_ns = states.busiest_cpu_ns.max(cpu_ns);
            }
            Some(b'Z' | b'X') | None => continue,
            Some(state) => {
                let storage = state == b'D';
                states.storage += u64::from(storage);
                states.asleep.push(Asleep { pid, task, storage });
            }
        }
        states.tasks += 1;
    }
}

/// None of a task that ended just now.
fn state_of(task: &Path) -> Option<u8> {
    let mut text = [0u8; 256];
    let length = File::open(task.join("stat")).and_then(|mut file| file.read(&mut text));
    state(&text[..length.ok()?])
}

pub(crate) fn state(stat: &[u8]) -> Option<u8> {
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(close + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_booked_by_how_many_could_run() {
        let mut activity = Activity::default();
        for (runnable, storage) in [(0, 0), (0, 1), (1, 0), (3, 0)] {
            let states = States {
                tasks: 4,
                runnable,
                storage,
                busiest_cpu_ns: 7,
                ..States::default()
            };
            states.book(10, &mut activity);
        }
        assert_eq!((activity.looks, activity.observed_ns), (4, 40));
        assert_eq!((activity.idle_ns, activity.storage_ns), (20, 10));
        assert_eq!((activity.several_ns, activity.runnable_ns), (10, 40));
    }

    #[test]
    fn a_link_is_timed_while_it_carries_something() {
        const MS: u64 = 1_000_000;
        let mut observer = Observer::default();
        // A handshake, traffic, a pause, traffic, a farewell.
        for link_bytes in [0, 400, 120_400, 240_400, 240_400, 360_400, 360_500] {
            observer.book_link(link_bytes, MS);
        }
        let main = &observer.main;
        assert_eq!((main.link_bytes, main.link_ns), (360_000, 3 * MS));
    }

    #[test]
    fn the_descriptor_of_a_write_is_known() {
        let write = format!(
            "{} 0x1 0x7f00 0x2000 0x0 0x0 0x0 0x7ffe 0x7f11",
            libc::SYS_write
        );
        assert_eq!(written_fd(&write), Some(1));
        let splice = format!("{} 0x3 0x0 0x5 0x0 0x0 0x0 0x7ffe 0x7f11", libc::SYS_splice);
        assert_eq!(written_fd(&splice), Some(5));
        assert_eq!(written_fd(&format!("{} 0x0", libc::SYS_read)), None);
        assert_eq!(written_fd("running"), None);
    }

    #[test]
    fn the_state_stands_behind_the_name() {
        assert_eq!(state(b"7 (a) R) S 1 2"), Some(b'S'));
        assert_eq!(state(b"7"), None);
    }
}
