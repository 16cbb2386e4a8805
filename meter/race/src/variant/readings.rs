//! What a variant has used: read slice by slice, and in total.

use super::Variant;
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::processes::usage::{Exit, Usage};
use crate::run_state::RunState;
use crate::totals::{Reading, Total};

impl Variant<'_> {
    pub(super) fn count_from_here(&mut self, run_state: &mut RunState) {
        self.base = self.last.clone();
        if self.is_server() {
            self.base_footprint = run_state.process_trees.footprint(self.tree, Group::Main);
        }
    }

    pub(crate) fn reading(&mut self, run_state: &mut RunState) -> Result<Reading, Halt> {
        let tree = run_state.process_trees.tree(self.tree);
        let mut reading = Reading {
            main: tree.usage(Group::Main)?,
            load: Usage::default(),
            cpu_wait_ns: tree.cpu_wait_ns(Group::Main),
            counters: Vec::new(),
        };
        if self.spec.drive().is_some() {
            reading.load = self.driven;
        } else if self.is_server() {
            reading.load = tree.usage(Group::Load)?;
        }
        let counted = if self.is_server() {
            self.server.as_mut()
        } else {
            self.runner.process_mut()
        };
        if let Some(process) = counted {
            process.counters.read(&mut reading.counters);
        }
        Ok(reading)
    }

    pub(super) fn totals(&mut self, run_state: &mut RunState, exit: &Exit) -> Total {
        let mut footprint = run_state.process_trees.footprint(self.tree, Group::Main);
        footprint.join(run_state.process_trees.take_orphans(self.tree, Group::Main));
        if self.is_server() {
            footprint = footprint.since(self.base_footprint);
        } else {
            footprint.join(exit.footprint());
        }
        let counters = self.last.counters.iter().zip(&self.base.counters);
        Total {
            wall_ns: self.wall_ns,
            usage: self.last.main - self.base.main,
            load_cpu_ns: (self.last.load - self.base.load).cpu_ns,
            operations: None,
            footprint,
            slices: self.slices,
            counters: counters
                .map(|(now, base)| now.saturating_sub(*base))
                .collect(),
            cpu_wait_ns: self.cpu_wait_ns,
            activity: run_state.observes.then(|| self.observer.main.clone()),
            load_activity: (run_state.observes && self.is_server())
                .then(|| self.observer.load.clone()),
            ..Total::default()
        }
    }

    /// How long others can have had its CPU: of its only one, no longer than it did not.
    pub(crate) fn taken_at_most_ns(&self, wall_ns: u64, cpu_ns: u64) -> u64 {
        let has_one = matches!(self.spec.program.cpus.as_deref(), Some([_]));
        wall_ns.saturating_sub(if has_one { cpu_ns } else { 0 })
    }

    pub(crate) fn book_wait(&mut self, cpu_wait_ns: Option<u64>) {
        if let Some(ns) = cpu_wait_ns {
            *self.cpu_wait_ns.get_or_insert(0) += ns;
        }
    }
}
