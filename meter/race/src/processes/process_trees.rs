//! All variants' trees together, and the reaping of everything that ends in them.

use crate::processes::cgroup::CgroupTree;
use crate::processes::freezer::{Group, Tree, GROUPS};
use crate::processes::kill::kill;
use crate::processes::procfs::{self, Footprint};
use crate::processes::signals::{Known, SignalTree};
use crate::processes::usage::{self, Exit};
use libc::pid_t;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
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
    orphans: Vec<Orphans>,
    roots: HashMap<pid_t, (usize, Group)>,
    exits: HashMap<pid_t, Exit>,
    /// Children of the meter that belong to no variant.
    kept_out: Vec<pid_t>,
    /// The pipes into which processes write what is taken from them.
    pub drained: Inodes,
}

impl ProcessTrees {
    pub(crate) fn new(kind: Kind) -> ProcessTrees {
        ProcessTrees {
            kind,
            known: Known::default(),
            trees: Vec::new(),
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

    /// One more tree; its number counts from 0.
    pub(crate) fn add_tree(&mut self, with_load: bool) -> io::Result<usize> {
        let index = self.trees.len();
        let tree: Box<dyn Tree> = match &self.kind {
            Kind::Cgroup(dir) => {
                Box::new(CgroupTree::create(&dir.join(index.to_string()), with_load)?)
            }
            Kind::Signal => Box::new(SignalTree::new(self.known.clone())),
        };
        self.trees.push(tree);
        self.orphans.push(Orphans::default());
        Ok(index)
    }

    pub(crate) fn tree(&mut self, index: usize) -> &mut dyn Tree {
        &mut *self.trees[index]
    }

    /// A child of ours was started; its exit will be kept until it is taken.
    pub(crate) fn admitted(&mut self, tree: usize, group: Group, pid: pid_t) {
        self.roots.insert(pid, (tree, group));
        self.exits.remove(&pid);
        self.trees[tree].admitted(group, pid);
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
        for pid in procfs::descendants(std::process::id() as pid_t) {
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
