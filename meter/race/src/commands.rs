//! From a command as it is requested to a process with its files, its counters and its output.

pub(crate) mod counters;
pub(crate) mod drain;
pub(crate) mod launch;
pub(crate) mod lookup;
pub(crate) mod said;
pub(crate) mod scratch;
pub(crate) mod tmp_limit;
pub(crate) mod trees;
pub(crate) mod verdict;
