//! The identity of a run, and the end of everything that belongs to one.

use crate::commands::scratch;
use crate::processes::kill::kill;
use crate::processes::procfs::Stat;
use crate::processes::tree_limits::Legacy;
use crate::processes::{cgroup, procfs, usage};
use ensign_host::clock;
use libc::pid_t;
use std::path::{Path, PathBuf};

/// Every process under the meter has this variable, its value is the run's identity.
pub(crate) const MARKER: &str = "ENSIGN_METER";
pub(crate) const CGROUP_PREFIX: &str = "ensign-";
pub(crate) const SCRATCH_PREFIX: &str = "ensign-meter-";

const END_WITHIN_NS: u64 = 5_000_000_000;
const PAUSE_NS: u64 = 1_000_000;

pub(crate) struct Run {
    /// `<pid>-<start time>` of the guardian: no other process ever has both.
    pub id: String,
    pub cgroup: Option<PathBuf>,
    /// Groups of version 1, for limits.
    pub legacy: Legacy,
    pub scratch: PathBuf,
}

impl Run {
    /// Names only; nothing is made yet. To be called by the guardian.
    pub(crate) fn new(scratch_parent: Option<&str>) -> Run {
        let pid = std::process::id();
        let start = procfs::start_ticks(pid as pid_t).unwrap_or(0);
        let id = format!("{pid}-{start}");
        let parent = scratch_parent.map_or_else(std::env::temp_dir, PathBuf::from);
        Run {
            legacy: Legacy::of_run(&format!("{CGROUP_PREFIX}{id}")),
            cgroup: cgroup::parent().map(|parent| parent.join(format!("{CGROUP_PREFIX}{id}"))),
            scratch: parent.join(format!("{SCRATCH_PREFIX}{id}")),
            id,
        }
    }

    /// Ends what may be left of this run: everything in its control groups, every descendant of
    /// the calling process, then the groups and the scratch folder.
    pub(crate) fn end(&self) {
        for dir in self.cgroups().filter(|dir| dir.exists()) {
            cgroup::destroy(dir);
        }
        end_descendants();
        if self.scratch.exists() {
            scratch::remove(&self.scratch);
        }
    }

    /// The folders of all its control groups; they need not be there.
    fn cgroups(&self) -> impl Iterator<Item = &Path> {
        self.cgroup
            .as_deref()
            .into_iter()
            .chain(self.legacy.folders())
    }

    /// For the death of a worker: processes that left the tree still carry the marker.
    pub(crate) fn end_strays(&self) {
        end_marked(|id| id == self.id);
    }
}

/// Kills the descendants of this process until there are none, and reaps them.
fn end_descendants() {
    let until = clock::now_ns() + END_WITHIN_NS;
    let own = std::process::id() as pid_t;
    loop {
        let living = procfs::descendants(own);
        for &pid in &living {
            kill(pid, libc::SIGKILL);
        }
        while let Some(pid) = usage::ended_child() {
            usage::reap(pid);
        }
        if living.is_empty() || clock::now_ns() > until {
            return;
        }
        clock::sleep_ns(PAUSE_NS);
    }
}

/// Kills those that carry the mark until two looks in a row find none: a process that is just being
/// forked, or executes another program, shows no environment.
fn end_marked(is_ours: impl Fn(&str) -> bool) {
    let until = clock::now_ns() + END_WITHIN_NS;
    let mut looks_without = 0;
    while looks_without < 2 && clock::now_ns() < until {
        looks_without = if kill_marked(&is_ours) {
            0
        } else {
            looks_without + 1
        };
        clock::sleep_ns(PAUSE_NS);
    }
}

/// Whether there were any.
fn kill_marked(is_ours: impl Fn(&str) -> bool) -> bool {
    let own = std::process::id() as pid_t;
    let marked = |&pid: &pid_t| {
        pid != own && procfs::environment_value(pid, MARKER).is_some_and(|id| is_ours(&id))
    };
    let found: Vec<pid_t> = procfs::pids().into_iter().filter(marked).collect();
    for &pid in &found {
        kill(pid, libc::SIGKILL);
    }
    !found.is_empty()
}

/// Removes what runs left that no longer live (power loss, both our processes killed at once).
pub(crate) fn clear(run: &Run) {
    let mut dead: Vec<String> = Vec::new();
    for parent in run.cgroups().filter_map(Path::parent) {
        for (id, dir) in leftovers(parent, CGROUP_PREFIX) {
            cgroup::destroy(&dir);
            dead.push(id);
        }
    }
    let mut folders = Vec::new();
    if let Some(parent) = run.scratch.parent() {
        for (id, dir) in leftovers(parent, SCRATCH_PREFIX) {
            dead.push(id);
            folders.push(dir);
        }
    }
    if !dead.is_empty() {
        end_marked(|id| dead.iter().any(|d| d == id));
    }
    for dir in folders {
        scratch::remove(&dir);
    }
}

/// Folders named after runs whose process is gone.
fn leftovers(parent: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let id = name.to_str()?.strip_prefix(prefix)?;
            is_dead(id)?.then(|| (id.to_string(), entry.path()))
        })
        .collect()
}

/// None where the text is no identity.
fn is_dead(id: &str) -> Option<bool> {
    let (pid, start) = id.split_once('-')?;
    let (pid, start): (pid_t, u64) = (pid.parse().ok()?, start.parse().ok()?);
    // A dead process that nobody has waited for yet still has its number.
    Some(!Stat::of(pid).is_some_and(|stat| stat.start_ticks == start && !stat.is_dead()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lives_as_long_as_its_process() {
        let pid = std::process::id();
        let start = procfs::start_ticks(pid as pid_t).unwrap();
        assert_eq!(is_dead(&format!("{pid}-{start}")), Some(false));
        assert_eq!(is_dead(&format!("{pid}-{}", start + 1)), Some(true));
        assert_eq!(is_dead("readme"), None);
        assert_eq!(is_dead("meter-5-x"), None);
    }

    #[test]
    fn a_run_whose_process_nobody_waited_for_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as pid_t;
        let start = procfs::start_ticks(pid).unwrap();
        while procfs::is_alive(pid) {
            clock::sleep_ns(PAUSE_NS);
        }
        assert_eq!(procfs::start_ticks(pid), Some(start));
        assert_eq!(is_dead(&format!("{pid}-{start}")), Some(true));
        child.wait().unwrap();
    }
}
