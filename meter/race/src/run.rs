//! The identity of a run, and the end of everything that belongs to one.

use crate::commands::scratch;
use crate::lease;
use crate::processes::kill::kill;
use crate::processes::tree_limits::Legacy;
use crate::processes::{cgroup, procfs, usage};
use crate::user_folder;
use ensign_host::clock;
use libc::pid_t;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Every process under the meter has this variable, its value is the run's identity.
pub(crate) const MARKER: &str = "ENSIGN_METER";
pub(crate) const CGROUP_PREFIX: &str = "ensign-";
pub(crate) const SCRATCH_PREFIX: &str = "ensign-meter-";
/// For programs that are not to know that they are measured.
const NAMELESS_PREFIX: &str = "run-";

const END_WITHIN_NS: u64 = 5_000_000_000;
const CLEAR_WITHIN_NS: u64 = 1_000_000_000;
const PAUSE_NS: u64 = 1_000_000;
const TRIES: u32 = 100;
const PID_DIGITS: usize = 7;
const RANDOM_DIGITS: usize = 16;

pub(crate) struct Run {
    /// `<pid>-<random>`: the number of the guardian is for people, it tells nothing.
    pub id: String,
    /// The run's control group, or why it has none.
    pub cgroup: Result<PathBuf, String>,
    /// Groups of version 1, for limits.
    pub legacy: Legacy,
    pub scratch: PathBuf,
}

/// Which control groups a run asks for, and how its folder is called.
#[derive(Clone, Copy, Default)]
pub(crate) struct Groups {
    pub for_freezing: bool,
    pub for_limits: bool,
    /// Names say nothing of a meter: they are those of a sandbox of its own.
    pub nameless: bool,
}

/// Below which folder a run's scratch folder is made: one that is there, or the user's own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub folder: Option<&'a str>,
    /// Whether processes of another user are to reach what is theirs below it.
    pub passable: bool,
}

/// A run is alive as long as this is held: to be kept by the guardian alone.
pub(crate) struct Life {
    _locks: Vec<OwnedFd>,
}

impl Run {
    /// Makes the run's scratch folder, and its control groups where `groups` says so and where that
    /// is possible. To be called by the guardian.
    pub(crate) fn begin(place: Place, groups: Groups) -> io::Result<(Run, Life)> {
        let mut tries = 0;
        loop {
            match begin_once(place, groups) {
                // Somebody took it for a leftover, or removed the folder that was empty.
                Err(error) if tries < TRIES && is_lost(&error, place) => tries += 1,
                begun => return begun,
            }
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
        if let Some(parent) = self.scratch.parent() {
            user_folder::remove_if_empty(parent);
        }
    }

    /// The folders of all its control groups; they need not be there.
    fn cgroups(&self) -> impl Iterator<Item = &Path> {
        self.cgroup
            .as_deref()
            .ok()
            .into_iter()
            .chain(self.legacy.folders())
    }

    /// For the death of a worker: processes that left the tree still carry the marker.
    pub(crate) fn end_strays(&self) {
        end_marked(clock::now_ns() + END_WITHIN_NS, |id| id == self.id);
    }
}

fn begin_once(place: Place, groups: Groups) -> io::Result<(Run, Life)> {
    let parent = match place.folder {
        Some(folder) => PathBuf::from(folder),
        None => user_folder::below(&std::env::temp_dir(), place.passable)?,
    };
    let id = new_id()?;
    let prefix = if groups.nameless {
        NAMELESS_PREFIX
    } else {
        SCRATCH_PREFIX
    };
    let scratch = parent.join(format!("{prefix}{id}"));
    let made = lease::make(&scratch).inspect_err(|_| user_folder::remove_if_empty(&parent));
    let mut locks = vec![made?];
    let (cgroup, legacy) = begin_groups(&id, groups, &mut locks).inspect_err(|_| {
        // Empty, and under a name that nobody uses.
        let _ = std::fs::remove_dir(&scratch);
    })?;
    let life = Life { _locks: locks };
    Ok((
        Run {
            id,
            cgroup,
            legacy,
            scratch,
        },
        life,
    ))
}

/// Those that can be had here. Of the kind `LOST` where somebody takes this run for a dead one: he
/// ends whatever has its name, so that it needs another.
fn begin_groups(
    id: &str,
    groups: Groups,
    locks: &mut Vec<OwnedFd>,
) -> io::Result<(Result<PathBuf, String>, Legacy)> {
    let cgroup = match groups.for_freezing {
        true => begin_group(id, locks)?,
        false => Err("it was not asked for".into()),
    };
    let mut legacy = Legacy::default();
    let mut lost = None;
    if groups.for_limits {
        legacy = Legacy::of_run(&format!("{CGROUP_PREFIX}{id}"));
        legacy.keep(|dir| match lease::make(dir) {
            Ok(lock) => {
                locks.push(lock);
                true
            }
            Err(error) => {
                lost = lost
                    .take()
                    .or(Some(error).filter(|it| it.kind() == lease::LOST));
                false
            }
        });
    }
    let Some(error) = lost else {
        return Ok((cgroup, legacy));
    };
    for dir in cgroup.iter().map(PathBuf::as_path).chain(legacy.folders()) {
        cgroup::destroy(dir);
    }
    Err(error)
}

/// A group without a lock would be a leftover to others: then there is none, and why.
fn begin_group(id: &str, locks: &mut Vec<OwnedFd>) -> io::Result<Result<PathBuf, String>> {
    let Some(parent) = cgroup::parent() else {
        return Ok(Err("there is no cgroup v2 hierarchy".into()));
    };
    let dir = parent.join(format!("{CGROUP_PREFIX}{id}"));
    match lease::make(&dir) {
        Ok(lock) => {
            locks.push(lock);
            Ok(Ok(dir))
        }
        Err(error) if error.kind() == lease::LOST => Err(error),
        Err(error) => Ok(Err(format!("cannot make {}: {error}", dir.display()))),
    }
}

/// Whether runs can have control groups here, by making one; why not, where not.
pub(crate) fn try_group() -> Result<(), String> {
    let id = new_id().map_err(|error| error.to_string())?;
    let mut locks = Vec::new();
    let begun = begin_group(&id, &mut locks).map_err(|error| error.to_string())?;
    let dir = begun?;
    let tried = cgroup::check(&dir);
    cgroup::destroy(&dir);
    tried
}

fn is_lost(error: &io::Error, place: Place) -> bool {
    let removed = place.folder.is_none() && error.kind() == io::ErrorKind::NotFound;
    error.kind() == lease::LOST || error.kind() == io::ErrorKind::AlreadyExists || removed
}

/// Names of one length: the length of paths and of the environment moves the stack.
fn new_id() -> io::Result<String> {
    let mut random = 0u64;
    // SAFETY: the buffer is as large as said.
    let length = unsafe { libc::getrandom((&raw mut random).cast(), size_of::<u64>(), 0) };
    if length != size_of::<u64>() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(format!(
        "{:0PID_DIGITS$}-{random:0RANDOM_DIGITS$x}",
        std::process::id()
    ))
}

fn is_id(text: &str) -> bool {
    let digits = |text: &str, radix| text.bytes().all(|byte| char::from(byte).is_digit(radix));
    text.split_once('-').is_some_and(|(pid, random)| {
        let whole = pid.len() >= PID_DIGITS && random.len() == RANDOM_DIGITS;
        whole && digits(pid, 10) && digits(random, 16)
    })
}

/// Kills the descendants of this process until there are none, and reaps them.
fn end_descendants() {
    let until = clock::now_ns() + END_WITHIN_NS;
    loop {
        let living = procfs::descendants();
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
fn end_marked(until: u64, is_ours: impl Fn(&str) -> bool) {
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

/// Removes what runs of this user left that no longer live (power loss, both our processes killed
/// at once). What resists costs this run a second at most, and the next one tries again.
pub(crate) fn clear(run: &Run) {
    let until = clock::now_ns() + CLEAR_WITHIN_NS;
    let below = |parent: Option<PathBuf>, prefix| {
        parent.map_or_else(Vec::new, |parent| lease::leftovers(&parent, prefix, is_id))
    };
    let parent_of = |dir: &Path| dir.parent().map(Path::to_path_buf);
    let groups = below(
        run.cgroup.as_deref().ok().and_then(parent_of),
        CGROUP_PREFIX,
    );
    let legacy = Legacy::of_run("");
    let limits: Vec<_> = (legacy.folders())
        .flat_map(|parent| lease::leftovers(parent, CGROUP_PREFIX, is_id))
        .collect();
    let groups: Vec<_> = groups.into_iter().chain(limits).collect();
    let folders = below(parent_of(&run.scratch), SCRATCH_PREFIX);
    if groups.is_empty() && folders.is_empty() {
        return;
    }
    for left in &groups {
        cgroup::destroy_until(&left.dir, until);
    }
    end_marked(until, |id| {
        groups.iter().chain(&folders).any(|left| left.id == id)
    });
    for left in &folders {
        scratch::remove_once(&left.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_equally_long_and_known_again() {
        let (a, b) = (new_id().unwrap(), new_id().unwrap());
        assert!(is_id(&a) && is_id(&b) && a != b && a.len() == b.len());
        for other in [
            "readme",
            "meter-5-x",
            "123-45678901",
            "0000123-0123456789abcdeg",
            "",
        ] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn a_run_that_lives_is_left_alone_and_a_dead_one_is_not() {
        let parent = std::env::temp_dir().join(format!("run-test-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        let none = Groups::default();
        let place = Place {
            folder: parent.to_str(),
            passable: false,
        };
        let begin = || Run::begin(place, none).unwrap();
        let ((living, life), (dead, death)) = (begin(), begin());
        let (next, _life) = begin();
        drop(death);
        clear(&next);
        assert!(living.scratch.exists() && !dead.scratch.exists());
        drop(life);
        clear(&next);
        assert!(!living.scratch.exists() && next.scratch.exists());
        std::fs::remove_dir_all(&parent).unwrap();
    }
}
