//! What a variant's processes have mapped for execution.

use super::Variant;
use crate::follow::places::{self, Code};
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::run_state::RunState;
use ensign_host::clock;
use std::os::fd::RawFd;
use std::path::Path;

const MOST_PROCESSES: usize = 32;
/// When a program that runs freely is first looked at: it is loaded by then.
const FIRST_AGE_NS: u64 = 2_000_000;
/// How many times as old it is at each next look.
const AGE_PER_LOOK: u64 = 4;
/// It runs so many times as long as a look takes of a CPU before the next one.
const PAUSE_PER_LOOK: u64 = 200;

/// When a program that runs freely is looked at next.
struct Pace {
    began_ns: u64,
    next_ns: u64,
}

impl Pace {
    fn new(began_ns: u64) -> Pace {
        Pace {
            began_ns,
            next_ns: began_ns + FIRST_AGE_NS,
        }
    }

    fn looked(&mut self, at_ns: u64, cpu_ns: u64) {
        let older = self.began_ns + AGE_PER_LOOK * (at_ns - self.began_ns);
        self.next_ns = older.max(at_ns + PAUSE_PER_LOOK * cpu_ns);
    }
}

impl Variant<'_> {
    /// At the first end of a slice and ever more rarely at later ones: it stands still, and nobody
    /// is measured.
    pub(crate) fn look(&mut self, run_state: &mut RunState) {
        if !self.is_finished() && (self.slices + 1).is_power_of_two() {
            self.see(run_state);
        }
    }

    /// Waits for the end of its processes, or until a time; a `whole` execution has no slices.
    pub(crate) fn wait(
        &mut self,
        run_state: &mut RunState,
        fds: &[RawFd],
        until_ns: Option<u64>,
        whole: bool,
    ) -> Result<Option<usize>, Halt> {
        if run_state.observes {
            let place = (self.tree, self.spec.load.is_some());
            let (waiter, process_trees) = (&run_state.waiter, &mut run_state.process_trees);
            self.observer
                .watch(waiter, process_trees, place, fds, until_ns)
        } else if whole && self.server.is_none() {
            self.watch(run_state, fds, until_ns)
        } else {
            Ok(run_state.waiter.readable(fds, until_ns)?)
        }
    }

    /// Waits as a waiter does, and looks meanwhile, so rarely that it costs nothing: a batch
    /// program in a whole execution never stands still.
    pub(crate) fn watch(
        &mut self,
        run_state: &mut RunState,
        fds: &[RawFd],
        until_ns: Option<u64>,
    ) -> Result<Option<usize>, Halt> {
        let mut pace = Pace::new(clock::now_ns());
        loop {
            let until = until_ns.map_or(pace.next_ns, |until| until.min(pace.next_ns));
            let ready = run_state.waiter.readable(fds, Some(until))?;
            let now = clock::now_ns();
            if ready.is_some() || until_ns.is_some_and(|until| now >= until) {
                return Ok(ready);
            }
            if now >= pace.next_ns {
                let before_ns = clock::thread_cpu_ns();
                self.see(run_state);
                pace.looked(now, clock::thread_cpu_ns() - before_ns);
            }
        }
    }

    fn see(&mut self, run_state: &mut RunState) {
        self.looks += 1;
        let members = run_state.process_trees.tree(self.tree).members(Group::Main);
        let own = std::env::current_exe().unwrap_or_default();
        for pid in members.into_iter().take(MOST_PROCESSES) {
            // Not a program yet.
            if Path::new(&places::program_of(pid)) == own {
                continue;
            }
            for code in places::executable(pid, 0, u64::MAX) {
                if let Code::File(file) = code {
                    self.mapped.insert(file, self.looks);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_ever_rarer_and_cost_little() {
        let began = 1_000;
        let mut pace = Pace::new(began);
        let mut ages = Vec::new();
        for _ in 0..5 {
            let from = pace.next_ns;
            ages.push((from - began) / 1_000_000);
            pace.looked(from, 40_000);
        }
        assert_eq!(ages, [2, 10, 40, 160, 640]);
    }
}
