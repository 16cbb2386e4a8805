//! Limits of whole process trees: by controllers of control groups where they can be had (version
//! 2, else 1), else by looking.

use crate::processes::cgroup;
use crate::processes::procfs;
use ensign_host::clock;
use ensign_protocol::records::Limit;
use ensign_protocol::request::Limits;
use libc::pid_t;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

/// Looking takes less than this part of a CPU, and is not needed more often than that.
const PAUSE_PER_LOOK: u64 = 100;
const SHORTEST_PAUSE_NS: u64 = 10_000_000;

/// Where groups with a controller can be made: version 1 has a hierarchy for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Legacy {
    pub pids: Option<PathBuf>,
    pub memory: Option<PathBuf>,
}

impl Legacy {
    /// The folders of this run in them, which need not be there yet.
    pub(crate) fn of_run(name: &str) -> Legacy {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let folder = |controller| {
            cgroup::legacy_folder(&mounts, &own, controller).map(|parent| parent.join(name))
        };
        Legacy {
            pids: folder("pids"),
            memory: folder("memory"),
        }
    }

    /// Forgets those of which that does not hold.
    pub(crate) fn keep(&mut self, mut holds: impl FnMut(&Path) -> bool) {
        for dir in [&mut self.pids, &mut self.memory] {
            *dir = dir.take().filter(|dir| holds(dir));
        }
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        let both = [self.pids.as_deref(), self.memory.as_deref()];
        both.into_iter().flatten()
    }
}

/// Who enforces a limit.
enum By {
    /// The kernel, for everything in this group; its processes are born there.
    Unified(PathBuf),
    /// The kernel, for what is put into this group.
    Legacy { group: PathBuf, procs: File },
    /// The meter.
    Looking,
}

struct Bound {
    limit: Limit,
    most: u64,
    by: By,
    /// What the kernel had counted when it was last asked.
    events: u64,
    /// Found by looking, and not yet told.
    found: bool,
}

/// What limits one tree.
#[derive(Default)]
pub(crate) struct TreeLimits {
    bounds: Vec<Bound>,
    next_ns: u64,
}

impl TreeLimits {
    /// For a tree with this group of version 2, if it has one; `name` is that of its groups of
    /// version 1.
    pub(crate) fn new(
        asked: &Limits,
        unified: Option<&Path>,
        legacy: &Legacy,
        name: &str,
    ) -> TreeLimits {
        let bound = |limit: Limit, most: Option<u64>, parent: &Option<PathBuf>| {
            most.map(|most| Bound {
                limit,
                most,
                by: By::choose(limit, most, unified, parent.as_deref(), name),
                events: 0,
                found: false,
            })
        };
        let bounds = [
            bound(Limit::Processes, asked.tree_processes, &legacy.pids),
            bound(Limit::Memory, asked.tree_memory_bytes, &legacy.memory),
        ];
        TreeLimits {
            bounds: bounds.into_iter().flatten().collect(),
            next_ns: 0,
        }
    }

    /// Files into which a process writes "0" to come under the limits, before it does anything.
    pub(crate) fn entrances(&self) -> Vec<RawFd> {
        let entrance = |bound: &Bound| match &bound.by {
            By::Legacy { procs, .. } => Some(procs.as_raw_fd()),
            By::Unified(_) | By::Looking => None,
        };
        self.bounds.iter().filter_map(entrance).collect()
    }

    /// Puts a process under the limits that stands still at its birth.
    pub(crate) fn admit(&self, pid: pid_t) -> io::Result<()> {
        for bound in &self.bounds {
            if let By::Legacy { group, .. } = &bound.by {
                fs::write(group.join("cgroup.procs"), pid.to_string())?;
            }
        }
        Ok(())
    }

    /// When the tree has to be looked at next; None where the kernel does it all.
    pub(crate) fn next_look_ns(&self) -> Option<u64> {
        let looks = |bound: &Bound| matches!(bound.by, By::Looking);
        self.bounds.iter().any(looks).then_some(self.next_ns)
    }

    /// Looks, where it is time, at these processes: a limit that they are beyond.
    pub(crate) fn look(&mut self, members: impl FnOnce() -> Vec<pid_t>) -> Option<Limit> {
        let start = clock::now_ns();
        if self.next_look_ns().is_none_or(|next| start < next) {
            return None;
        }
        let members = members();
        let looking = self.bounds.iter_mut();
        let over = looking
            .filter(|bound| matches!(bound.by, By::Looking))
            .find(|bound| bound.is_exceeded(&members));
        let found = over.map(|bound| {
            bound.found = true;
            bound.limit
        });
        let now = clock::now_ns();
        self.next_ns = now + ((now - start) * PAUSE_PER_LOOK).max(SHORTEST_PAUSE_NS);
        found
    }

    /// Limits that were met since this was last asked.
    pub(crate) fn take_met(&mut self) -> Vec<Limit> {
        let mut met = Vec::new();
        for bound in &mut self.bounds {
            let events = bound.by.events(bound.limit);
            if std::mem::take(&mut bound.found) || events > bound.events {
                met.push(bound.limit);
            }
            bound.events = events;
        }
        met
    }

    /// How much a limit is, in words.
    pub(crate) fn most(&self, limit: Limit) -> Option<u64> {
        let bound = self.bounds.iter().find(|bound| bound.limit == limit);
        bound.map(|bound| bound.most)
    }
}

impl Bound {
    fn is_exceeded(&self, members: &[pid_t]) -> bool {
        match self.limit {
            Limit::Processes => tasks(members) > self.most,
            // Pages that processes share are counted once only where that matters: it is slow.
            Limit::Memory => resident(members) > self.most && proportional(members) > self.most,
            Limit::Disk => false,
        }
    }
}

fn tasks(members: &[pid_t]) -> u64 {
    let of = |&pid: &pid_t| procfs::Size::of(pid).map_or(0, |size| size.threads);
    members.iter().map(of).sum()
}

fn resident(members: &[pid_t]) -> u64 {
    let of = |&pid: &pid_t| procfs::Size::of(pid).map_or(0, |size| size.resident_bytes);
    members.iter().map(of).sum()
}

fn proportional(members: &[pid_t]) -> u64 {
    let of = |&pid: &pid_t| procfs::proportional_bytes(pid).unwrap_or(0);
    members.iter().map(of).sum()
}

impl By {
    fn choose(
        limit: Limit,
        most: u64,
        unified: Option<&Path>,
        legacy: Option<&Path>,
        name: &str,
    ) -> By {
        if let Some(group) = unified.filter(|group| limit_unified(group, limit, most).is_ok()) {
            return By::Unified(group.to_path_buf());
        }
        legacy
            .and_then(|run| limit_legacy(run, name, limit, most).ok())
            .unwrap_or(By::Looking)
    }

    /// How often the kernel has enforced it so far.
    fn events(&self, limit: Limit) -> u64 {
        let (group, file, key) = match (self, limit) {
            (By::Looking, _) | (_, Limit::Disk) => return 0,
            (By::Unified(group) | By::Legacy { group, .. }, Limit::Processes) => {
                (group, "pids.events", "max ")
            }
            (By::Unified(group), Limit::Memory) => (group, "memory.events", "oom_kill "),
            (By::Legacy { group, .. }, Limit::Memory) => (group, "memory.oom_control", "oom_kill "),
        };
        let text = fs::read_to_string(group.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix(key));
        count
            .and_then(|digits| digits.trim().parse().ok())
            .unwrap_or(0)
    }
}

/// Fails where the group does not have the controller.
fn limit_unified(group: &Path, limit: Limit, most: u64) -> io::Result<()> {
    match limit {
        Limit::Processes => write_existing(&group.join("pids.max"), most),
        Limit::Memory => {
            write_existing(&group.join("memory.max"), most)?;
            // Storage is no memory; and of a tree that is ended nothing is to be left over.
            let _ = write_existing(&group.join("memory.swap.max"), 0);
            let _ = write_existing(&group.join("memory.oom.group"), 1);
            Ok(())
        }
        Limit::Disk => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn limit_legacy(run: &Path, name: &str, limit: Limit, most: u64) -> io::Result<By> {
    let group = run.join(name);
    fs::create_dir_all(&group)?;
    match limit {
        Limit::Processes => write_existing(&group.join("pids.max"), most)?,
        Limit::Memory => {
            write_existing(&group.join("memory.limit_in_bytes"), most)?;
            // Not on every kernel.
            let _ = write_existing(&group.join("memory.memsw.limit_in_bytes"), most);
        }
        Limit::Disk => return Err(io::ErrorKind::Unsupported.into()),
    }
    let procs = OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.procs"))?;
    Ok(By::Legacy { group, procs })
}

/// In place, as files of the kernel's want it.
fn write_existing(path: &Path, number: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, number.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(processes: u64, memory: u64) -> Limits {
        Limits {
            tree_processes: Some(processes),
            tree_memory_bytes: Some(memory),
            ..Limits::default()
        }
    }

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("limits-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_group_with_controllers_is_limited_and_its_events_are_told_once() {
        let group = folder("unified");
        for file in ["pids.max", "memory.max", "memory.swap.max"] {
            fs::write(group.join(file), "max").unwrap();
        }
        let legacy = Legacy::default();
        let mut limits = TreeLimits::new(&asked(7, 1000), Some(&group), &legacy, "0");
        assert!(fs::read_to_string(group.join("pids.max"))
            .unwrap()
            .starts_with('7'));
        assert_eq!(limits.next_look_ns(), None);
        assert_eq!(limits.take_met(), []);
        fs::write(
            group.join("memory.events"),
            "low 0\nmax 3\noom 1\noom_kill 2\n",
        )
        .unwrap();
        assert_eq!(limits.take_met(), [Limit::Memory]);
        assert_eq!(limits.take_met(), []);
        fs::write(group.join("pids.events"), "max 1\n").unwrap();
        assert_eq!(limits.take_met(), [Limit::Processes]);
        fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn without_controllers_the_tree_is_looked_at() {
        let group = folder("looking");
        let none = Legacy::default();
        let own = vec![std::process::id() as pid_t];
        let mut limits = TreeLimits::new(&asked(1_000, 1), Some(&group), &none, "0");
        assert!(limits.next_look_ns().is_some());
        assert_eq!(limits.look(|| own.clone()), Some(Limit::Memory));
        assert_eq!(limits.take_met(), [Limit::Memory]);
        assert_eq!(limits.look(|| panic!("too early")), None);
        let mut wide = TreeLimits::new(&asked(1_000_000, 1 << 50), None, &none, "0");
        assert_eq!(wide.look(|| own), None);
        assert_eq!(
            (wide.most(Limit::Processes), wide.take_met()),
            (Some(1_000_000), vec![])
        );
        fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn nothing_asked_is_nothing_done() {
        let mut limits = TreeLimits::new(&Limits::default(), None, &Legacy::default(), "0");
        assert!(limits.entrances().is_empty() && limits.next_look_ns().is_none());
        assert_eq!(limits.look(|| panic!("no reason to look")), None);
    }
}
