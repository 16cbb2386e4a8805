//! Processes: starting, stopping, accounting and ending them, tree by tree.

pub(crate) mod cgroup;
pub(crate) mod freezer;
pub(crate) mod kill;
pub(crate) mod priority;
pub(crate) mod process_trees;
pub(crate) mod procfs;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod tree_limits;
pub(crate) mod usage;
pub(crate) mod user;
