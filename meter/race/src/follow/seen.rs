//! What was seen of a program and its children, as the document that is written at the end.

use ensign_protocol::followed::{CallTime, Change, Exits, Followed, Sampled, SCHEMA};
pub(super) use ensign_protocol::followed::{Exit, Gap, Program, Way};
use ensign_protocol::records::Mapped;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use syscalls::Sysno;

/// Of each kind of thing; a program that has more is not judged in full.
const MOST: usize = 20_000;

/// CPU time of tasks that were found in one file, and what of it in its system calls.
#[derive(Default)]
pub(super) struct Spent {
    cpu_ns: u64,
    kernel_ns: u64,
}

#[derive(Default)]
pub(super) struct Seen {
    pub programs: BTreeSet<Program>,
    pub mapped: BTreeSet<Mapped>,
    pub written: BTreeMap<String, BTreeSet<Way>>,
    pub read: BTreeSet<String>,
    /// There were more than are kept.
    pub read_in_part: bool,
    pub exits: BTreeMap<Exit, u64>,
    pub jit: bool,
    /// What the program's tasks used, without the tracer; those that ended.
    pub cpu_ns: u64,
    pub cpu_clock_reads: u64,
    pub children_clock_reads: u64,
    pub cpu_timers: u64,
    /// Limits of CPU time that were set, which is not told by itself.
    pub cpu_limits: u64,
    pub cpu_limits_reached: u64,
    pub processes: u64,
    pub threads: usize,
    pub gaps: BTreeSet<Gap>,
    /// Processes that the program left running; they are ended.
    pub left_running: usize,
    /// CPU time by the file in which running tasks were found after it; "" is none.
    pub samples: BTreeMap<String, Spent>,
    /// The part of it in system calls, by the number of the call.
    pub calls: BTreeMap<usize, u64>,
}

impl Seen {
    pub(super) fn program(&mut self, path: String, executable: String) {
        if self.has_room(self.programs.len()) {
            self.programs.insert(Program { path, executable });
        }
    }

    pub(super) fn mapped(&mut self, file: Mapped) {
        if self.has_room(self.mapped.len()) {
            self.mapped.insert(file);
        }
    }

    pub(super) fn written(&mut self, path: String, way: Way) {
        if self.written.contains_key(&path) || self.has_room(self.written.len()) {
            self.written.entry(path).or_default().insert(way);
        }
    }

    /// What ran is judged without it, so that more of them than are kept are no gap.
    pub(super) fn read(&mut self, path: String) {
        if self.read.len() < MOST {
            self.read.insert(path);
        } else {
            self.read_in_part |= !self.read.contains(&path);
        }
    }

    pub(super) fn ended(&mut self, exit: Exit) {
        if self.exits.contains_key(&exit) || self.has_room(self.exits.len()) {
            *self.exits.entry(exit).or_default() += 1;
        }
    }

    pub(super) fn sampled(&mut self, path: String, cpu_ns: u64, call: Option<usize>) {
        if let Some(call) = call {
            *self.calls.entry(call).or_default() += cpu_ns;
        }
        if self.samples.contains_key(&path) || self.has_room(self.samples.len()) {
            let spent = self.samples.entry(path).or_default();
            spent.cpu_ns += cpu_ns;
            spent.kernel_ns += call.map_or(0, |_| cpu_ns);
        }
    }

    fn has_room(&mut self, count: usize) -> bool {
        if count >= MOST {
            self.gaps.insert(Gap::TooMany);
        }
        count < MOST
    }

    /// Writes the document whole or not at all (but into a file of another process, named by its
    /// descriptor, in place). `end` is how the program ended, if it did.
    pub(super) fn write(
        &self,
        path: &Path,
        end: Option<(Option<i32>, Option<i32>)>,
    ) -> io::Result<()> {
        let document = Followed {
            schema: SCHEMA,
            complete: end.is_some(),
            exit: end.and_then(|(exit, _)| exit),
            signal: end.and_then(|(_, signal)| signal),
            not_judged: &self.gaps,
            programs: &self.programs,
            mapped: &self.mapped,
            jit: self.jit,
            left_running: self.left_running,
            cpu_ns: self.cpu_ns,
            written: self
                .written
                .iter()
                .map(|(path, ways)| Change { path, ways })
                .collect(),
            read: &self.read,
            read_in_part: self.read_in_part,
            exits: self
                .exits
                .iter()
                .map(|(exit, count)| Exits {
                    exit,
                    count: *count,
                })
                .collect(),
            cpu_clock_reads: self.cpu_clock_reads,
            children_clock_reads: self.children_clock_reads,
            cpu_timers: self.cpu_timers,
            cpu_limits_reached: self.cpu_limits_reached,
            processes: self.processes,
            threads: self.threads,
            samples: self
                .samples
                .iter()
                .map(|(path, spent)| Sampled {
                    path,
                    cpu_ns: spent.cpu_ns,
                    kernel_ns: spent.kernel_ns,
                })
                .collect(),
            calls: self
                .calls
                .iter()
                .map(|(&number, &cpu_ns)| CallTime {
                    call: Sysno::new(number)
                        .map_or_else(|| number.to_string(), |known| known.name().into()),
                    cpu_ns,
                })
                .collect(),
        };
        let text = serde_json::to_string(&document)?;
        if path.starts_with("/proc") {
            return fs::write(path, text);
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let beside = Path::new(&name);
        fs::write(beside, text)?;
        fs::rename(beside, path)
    }
}
