//! Waiting for processes, and looking meanwhile at what limits their tree.

use crate::commands::scratch::Scratch;
use crate::commands::tmp_limit::TmpLimit;
use crate::halt::Halt;
use crate::processes::freezer::GROUPS;
use crate::run_state::RunState;
use ensign_host::clock;
use ensign_protocol::records::{Limit, Reason};
use libc::pid_t;
use std::path::PathBuf;

/// How a wait ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waited {
    /// What was waited for is there.
    Ready,
    TimeOut,
    /// The tree is beyond this limit.
    Beyond(Limit),
}

impl RunState {
    /// Waits by `wait`, in parts where the tree has to be looked at; without limits in one.
    pub(crate) fn wait_limited(
        &mut self,
        tree: usize,
        until_ns: Option<u64>,
        mut wait: impl FnMut(&mut RunState, Option<u64>) -> Result<Option<usize>, Halt>,
    ) -> Result<Waited, Halt> {
        loop {
            let wake = [until_ns, self.next_look_ns(tree)]
                .into_iter()
                .flatten()
                .min();
            if wait(self, wake)?.is_some() {
                return Ok(Waited::Ready);
            }
            if until_ns.is_some_and(|until| clock::now_ns() >= until) {
                return Ok(Waited::TimeOut);
            }
            if let Some(limit) = self.look_at_limits(tree) {
                return Ok(Waited::Beyond(limit));
            }
        }
    }

    /// When it has to be looked at next; None where nothing has to be.
    fn next_look_ns(&self, tree: usize) -> Option<u64> {
        let tmp = self.tmp_limit.as_ref().map(TmpLimit::next_look_ns);
        [self.process_trees.next_look_ns(tree), tmp]
            .into_iter()
            .flatten()
            .min()
    }

    /// A limit that the tree is beyond; looks only where it is time.
    pub(crate) fn look_at_limits(&mut self, tree: usize) -> Option<Limit> {
        if let Some(limit) = self.process_trees.look(tree) {
            return Some(limit);
        }
        let trees = &mut self.process_trees;
        let members = || {
            let tree = trees.tree(tree);
            GROUPS
                .iter()
                .flat_map(|&group| tree.members(group))
                .collect::<Vec<pid_t>>()
        };
        let (limit, tmp) = (self.tmp_limit.as_mut()?, self.tmps.get(tree)?);
        limit.is_exceeded(tmp, members).then_some(Limit::Disk)
    }

    /// Limits that a process which has ended as said may have met; a failure asks for a closer look.
    pub(crate) fn limits_met(&mut self, tree: usize, reason: Reason, failed: bool) -> Vec<Limit> {
        let mut met = self.process_trees.take_met(tree);
        let wrote = self.tmp_limit.as_ref().zip(self.tmps.get(tree));
        let full = || wrote.is_some_and(|(limit, tmp)| limit.holds_too_much(tmp, &[]));
        if reason == Reason::Disk || (failed && full()) {
            met.push(Limit::Disk);
        }
        met
    }

    /// How much a limit allows.
    pub(crate) fn most(&self, tree: usize, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Disk => self.tmp_limit.as_ref().map(TmpLimit::most),
            Limit::Memory | Limit::Processes => self.process_trees.most(tree, limit),
        }
    }

    /// A fresh `{tmp}` of a tree.
    pub(crate) fn variant_tmp(&mut self, tree: usize) -> std::io::Result<PathBuf> {
        let scratch: &Scratch = &self.scratch;
        let tmp = scratch.variant_tmp(self.execution, tree)?;
        if self.tmps.len() <= tree {
            self.tmps.resize(tree + 1, PathBuf::new());
        }
        self.tmps[tree].clone_from(&tmp);
        Ok(tmp)
    }
}
