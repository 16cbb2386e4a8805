//! All variants' trees together, and the reaping of everything that ends in them.

use crate::processes::cgroup::CgroupTree;
use crate::processes::freezer::{Group, Tree, GROUPS};
use crate::processes::kill::kill;
use crate::processes::procfs::{self, Footprint};
use crate::processes::signals::{Known, SignalTree};
use crate::processes::tree_limits::{Legacy, TreeLimits};
use crate::processes::usage::{self, Exit};
use ensign_protocol::records::Limit;
use ensign_protocol::request::Limits;
use libc::pid_t;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;

/// How this run stops a variant.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// In this folder of the v2 hierarchy.
    Cgroup(PathBuf),
    Signal,
}

impl Kind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Cgroup(_) => "cgroup",
            Kind::Signal => "signal",
        }
    }
}

/// What processes that nobody waited for used, per group of a tree.
type Orphans = [Footprint; 3];

/// The pipes that are drained, for whoever asks what a task waits for.
pub(crate) type Inodes = Rc<RefCell<Vec<u64>>>;

pub(crate) struct ProcessTrees {
    kind: Kind,
    known: Known,
    trees: Vec<Box<dyn Tree>>,
    limits: Vec<TreeLimits>,
    /// Where groups of version 1 are made.
    legacy: Legacy,
    orphans: Vec<Orphans>,
    roots: HashMap<pid_t, (usize, Group)>,
    exits: HashMap<pid_t, Exit>,
    /// Children of the meter that belong to no variant.
    kept_out: Vec<pid_t>,
    /// The pipes into which processes write what is taken from them.
    pub drained: Inodes,
}

impl ProcessTrees {
    pub(crate) fn new(kind: Kind, legacy: Legacy) -> ProcessTrees {
        ProcessTrees {
            kind,
            known: Known::default(),
            trees: Vec::new(),
            limits: Vec::new(),
            legacy,
            orphans: Vec::new(),
            roots: HashMap::new(),
            exits: HashMap::new(),
            kept_out: Vec::new(),
            drained: Inodes::default(),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// One more tree, with what limits it; its number counts from 0.
    pub(crate) fn add_tree(&mut self, with_load: bool, limits: &Limits) -> io::Result<usize> {
        let index = self.trees.len();
        let name = index.to_string();
        let tree: Box<dyn Tree> = match &self.kind {
            Kind::Cgroup(dir) => Box::new(CgroupTree::create(&dir.join(&name), with_load)?),
            Kind::Signal => Box::new(SignalTree::new(self.known.clone())),
        };
        let unified = match &self.kind {
            Kind::Cgroup(dir) => Some(dir.join(&name)),
            Kind::Signal => None,
        };
        let limits = TreeLimits::new(limits, unified.as_deref(), &self.legacy, &name);
        self.limits.push(limits);
        self.trees.push(tree);
        self.orphans.push(Orphans::default());
        Ok(index)
    }

    pub(crate) fn tree(&mut self, index: usize) -> &mut dyn Tree {
        &mut *self.trees[index]
    }

    /// What a new process of a tree has to enter by itself: nothing where it is born standing still,
    /// and `admitted` does it.
    pub(crate) fn entrances(&self, tree: usize) -> Vec<RawFd> {
        if self.is_born_frozen(tree) {
            return Vec::new();
        }
        self.limits[tree].entrances()
    }

    /// How many tasks the user of a tree's processes may have in all; None where the kernel limits
    /// the tree.
    pub(crate) fn most_tasks(&mut self, tree: usize, uid: libc::uid_t) -> Option<u64> {
        self.limits[tree].most_tasks(uid)
    }

    fn is_born_frozen(&self, tree: usize) -> bool {
        matches!(self.kind, Kind::Cgroup(_)) && self.trees[tree].is_frozen()
    }

    /// When a tree has to be looked at for its limits.
    pub(crate) fn next_look_ns(&self, tree: usize) -> Option<u64> {
        self.limits[tree].next_look_ns()
    }

    /// A limit that a tree is beyond, where it is the meter's to find out and time to look.
    pub(crate) fn look(&mut self, tree: usize) -> Option<Limit> {
        let members = &mut self.trees[tree];
        self.limits[tree].look(|| {
            GROUPS
                .iter()
                .flat_map(|&group| members.members(group))
                .collect()
        })
    }

    /// Looks once more before what is left is ended: by then it may be too late to see.
    pub(crate) fn look_last(&mut self, tree: usize) {
        if self.limits[tree].next_look_ns().is_some() {
            let members = &mut self.trees[tree];
            let left: Vec<_> = (GROUPS.iter())
                .flat_map(|&group| members.members(group))
                .collect();
            self.limits[tree].look_at(&left);
        }
    }

    /// Limits of a tree that were met since this was last asked.
    pub(crate) fn take_met(&mut self, tree: usize) -> Vec<Limit> {
        self.limits[tree].take_met()
    }

    /// How much a limit of a tree allows.
    pub(crate) fn most(&self, tree: usize, limit: Limit) -> Option<u64> {
        self.limits[tree].most(limit)
    }

    /// A child of ours was started; its exit will be kept until it is taken.
    pub(crate) fn admitted(&mut self, tree: usize, group: Group, pid: pid_t) -> io::Result<()> {
        self.roots.insert(pid, (tree, group));
        self.exits.remove(&pid);
        self.trees[tree].admitted(group, pid);
        match self.is_born_frozen(tree) {
            true => self.limits[tree].admit(pid),
            false => Ok(()),
        }
    }

    /// A child of the meter's own, which no variant may claim.
    pub(crate) fn keep_out(&mut self, pid: pid_t) {
        self.known.borrow_mut().insert(pid);
        self.kept_out.push(pid);
    }

    /// Reaps whatever has ended.
    pub(crate) fn collect(&mut self) {
        while let Some(pid) = usage::ended_child() {
            // Its owner must be known before it is reaped: then the number may be used anew.
            let root = self.roots.remove(&pid);
            let owner = root.or_else(|| self.owner(pid));
            let Some(exit) = usage::reap(pid) else {
                return;
            };
            if let Some((tree, group)) = owner {
                self.trees[tree].reaped(group, pid, &exit);
                if root.is_none() {
                    self.orphans[tree][group as usize].join(exit.footprint());
                }
            }
            if root.is_some() {
                self.exits.insert(pid, exit);
            }
        }
    }

    fn owner(&mut self, pid: pid_t) -> Option<(usize, Group)> {
        let mut trees = self.trees.iter_mut().enumerate();
        trees.find_map(|(index, tree)| Some((index, tree.owner(pid)?)))
    }

    pub(crate) fn has_ended(&self, pid: pid_t) -> bool {
        self.exits.contains_key(&pid)
    }

    /// How a child ended; the exit is kept.
    pub(crate) fn exit(&self, pid: pid_t) -> Option<Exit> {
        self.exits.get(&pid).copied()
    }

    pub(crate) fn take_exit(&mut self, pid: pid_t) -> Option<Exit> {
        self.exits.remove(&pid)
    }

    /// What reaped orphans of a group used, since last asked.
    pub(crate) fn take_orphans(&mut self, tree: usize, group: Group) -> Footprint {
        std::mem::take(&mut self.orphans[tree][group as usize])
    }

    /// Memory and switches of the living processes of a group.
    pub(crate) fn footprint(&mut self, tree: usize, group: Group) -> Footprint {
        let mut sum = Footprint::default();
        for pid in self.trees[tree].members(group) {
            sum.join(Footprint::of(pid));
        }
        sum
    }

    /// Kills a group and reaps what was ours.
    pub(crate) fn kill(&mut self, tree: usize, group: Group) {
        self.trees[tree].kill(group);
        self.collect();
    }

    pub(crate) fn kill_everything(&mut self) {
        for tree in 0..self.trees.len() {
            for group in GROUPS {
                self.kill(tree, group);
            }
        }
    }

    /// Living descendants that no tree owns; they are killed. Told by name.
    pub(crate) fn end_escaped(&mut self) -> Vec<(pid_t, String)> {
        let mut ended = Vec::new();
        for pid in procfs::descendants() {
            let ours = self.roots.contains_key(&pid) || self.kept_out.contains(&pid);
            if ours || self.owner(pid).is_some() {
                continue;
            }
            ended.push((pid, procfs::name(pid)));
            kill(pid, libc::SIGKILL);
        }
        ended
    }
}
