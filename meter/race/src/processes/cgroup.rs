//! Control groups, version 2: one per variant with a child per group; one write stops them all.

use crate::processes::freezer::{Admission, Group, Tree, GROUPS};
use crate::processes::kill::kill;
use crate::processes::spawn;
use crate::processes::usage::{Exit, Usage};
use ensign_host::clock::{self, Naps};
use libc::pid_t;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const FROZEN_WITHIN_NS: u64 = 1_000_000_000;
const DEAD_WITHIN_NS: u64 = 5_000_000_000;
const SPINS: u32 = 4;

/// This process' own group in the v2 hierarchy (unified or hybrid), as a folder.
pub(crate) fn parent() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    own_folder(&mounts, &own)
}

fn own_folder(mountinfo: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        if !right.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = left.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        Some(Path::new(mount).join(below.trim_start_matches('/')))
    })
}

/// This process' own group in the hierarchy of version 1 that has a controller.
pub(crate) fn legacy_folder(mountinfo: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let path = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        has(controllers).then_some(path)
    })?;
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut kind = right.split(' ');
        if kind.next() != Some("cgroup") || !has(kind.nth(1)?) {
            return None;
        }
        let mut fields = left.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        Some(Path::new(mount).join(below.trim_start_matches('/')))
    })
}

/// Lets the trees of a run have controllers for their limits, as far as that is possible: where it
/// is not, another way is taken.
pub(crate) fn delegate_controllers(run: &Path, is_ours: impl Fn(pid_t) -> bool) {
    let Some(parent) = run.parent() else { return };
    let given = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |name| given.split_ascii_whitespace().any(|each| each == name);
    if !has("pids") || !has("memory") {
        vacate(parent, is_ours);
    }
    for dir in [parent, run] {
        for controller in ["+pids", "+memory"] {
            let _ = fs::write(dir.join("cgroup.subtree_control"), controller);
        }
    }
}

/// A group with processes of its own cannot give controllers away: in a scope of ours they move.
fn vacate(group: &Path, is_ours: impl Fn(pid_t) -> bool) {
    let members = read_pids(&group.join("cgroup.procs"));
    // The root of all groups has no such rule, and no such file.
    let is_root = !group.join("cgroup.type").exists();
    if is_root || members.is_empty() || !members.iter().all(|&pid| is_ours(pid)) {
        return;
    }
    let aside = group.join("ensign-aside");
    let _ = fs::create_dir(&aside);
    for pid in members {
        let _ = fs::write(aside.join("cgroup.procs"), pid.to_string());
    }
}

/// What kind of hierarchy a folder of `parent` belongs to, for people.
pub(crate) fn hierarchy(dir: &Path) -> &'static str {
    let hybrid = Path::new("/sys/fs/cgroup/unified");
    if dir.starts_with(hybrid) {
        "hybrid"
    } else {
        "unified"
    }
}

/// Tries whether freezing and accounting work for real in the run's group; why not, where not.
pub(crate) fn check(dir: &Path) -> Result<(), String> {
    try_out(dir).map_err(|error| format!("{} is of no use: {error}", dir.display()))
}

fn try_out(dir: &Path) -> io::Result<()> {
    let mut tree = CgroupTree::create(&dir.join("try"), false)?;
    Usage::from_cpu_stat(&tree.groups[0].as_ref().expect("made above").stat)?;
    tree.freeze()?;
    if !tree.says_frozen()? {
        return Err(io::Error::other("writing cgroup.freeze has no effect"));
    }
    tree.thaw()?;
    // SAFETY: this process has one thread; the child only exits.
    unsafe {
        let (child, joined) = spawn::fork(tree.admission(Group::Main))?;
        if child == 0 {
            libc::_exit(i32::from(!joined));
        }
        let mut status = 1;
        if child < 0 || libc::waitpid(child, &mut status, 0) != child || status != 0 {
            return Err(io::Error::other("no process can be put into it"));
        }
    }
    drop(tree);
    destroy(&dir.join("try"));
    Ok(())
}

/// Kills all that is in a group and below, then removes them.
pub(crate) fn destroy(dir: &Path) {
    destroy_until(dir, clock::now_ns() + DEAD_WITHIN_NS);
}

/// As `destroy`; it is tried once whatever the time.
pub(crate) fn destroy_until(dir: &Path, until: u64) {
    loop {
        kill_all(dir);
        remove_below(dir);
        if !dir.exists() || clock::now_ns() > until {
            return;
        }
        clock::sleep_ns(500_000);
    }
}

fn kill_all(dir: &Path) {
    if fs::write(dir.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    // Before Linux 5.14 there is no cgroup.kill.
    for group in folders(dir) {
        kill_all(&group);
    }
    for pid in read_pids(&dir.join("cgroup.procs")) {
        kill(pid, libc::SIGKILL);
    }
}

fn remove_below(dir: &Path) {
    for group in folders(dir) {
        remove_below(&group);
    }
    // Fails while a process is still ending; the caller tries again.
    let _ = fs::remove_dir(dir);
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn read_pids(path: &Path) -> Vec<pid_t> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

struct GroupFiles {
    dir: PathBuf,
    folder: File,
    procs: File,
    stat: File,
    /// Not on every kernel.
    pressure: Option<File>,
}

impl GroupFiles {
    fn create(dir: PathBuf) -> io::Result<GroupFiles> {
        fs::create_dir(&dir)?;
        Ok(GroupFiles {
            folder: File::open(&dir)?,
            procs: OpenOptions::new()
                .write(true)
                .open(dir.join("cgroup.procs"))?,
            stat: File::open(dir.join("cpu.stat"))?,
            pressure: File::open(dir.join("cpu.pressure")).ok(),
            dir,
        })
    }
}

/// The control group of one variant.
pub(crate) struct CgroupTree {
    freeze: File,
    events: File,
    groups: [Option<GroupFiles>; 3],
    /// As `/proc/PID/cgroup` shows it, without what stands before the run's own folder.
    suffix: String,
    frozen: bool,
}

impl CgroupTree {
    /// The files stay open: the path of a slice has no lookups.
    pub(crate) fn create(dir: &Path, with_load: bool) -> io::Result<CgroupTree> {
        fs::create_dir(dir)?;
        let group = |name: &str| GroupFiles::create(dir.join(name)).map(Some);
        let parts: Vec<_> = dir.iter().rev().take(2).collect();
        Ok(CgroupTree {
            freeze: OpenOptions::new()
                .write(true)
                .open(dir.join("cgroup.freeze"))?,
            events: File::open(dir.join("cgroup.events"))?,
            groups: [
                group("main")?,
                if with_load { group("load")? } else { None },
                group("aside")?,
            ],
            suffix: format!(
                "/{}/{}/",
                parts[1].to_string_lossy(),
                parts[0].to_string_lossy()
            ),
            frozen: false,
        })
    }

    fn files(&self, group: Group) -> Option<&GroupFiles> {
        self.groups[group as usize].as_ref()
    }

    fn says_frozen(&self) -> io::Result<bool> {
        let mut buffer = [0u8; 128];
        let length = self.events.read_at(&mut buffer, 0)?;
        Ok(buffer[..length].windows(8).any(|text| text == b"frozen 1"))
    }

    /// A few quick looks, then naps: the process to be stopped may need this very CPU to do so.
    fn await_frozen(&self) -> io::Result<()> {
        let until = clock::now_ns() + FROZEN_WITHIN_NS;
        let mut looks = 0;
        let mut naps = Naps::default();
        while !self.says_frozen()? && clock::now_ns() < until {
            looks += 1;
            if looks > SPINS {
                naps.nap();
            }
        }
        Ok(())
    }
}

impl Tree for CgroupTree {
    fn freeze(&mut self) -> io::Result<()> {
        self.freeze.write_at(b"1", 0)?;
        self.frozen = true;
        self.await_frozen()
    }

    fn thaw(&mut self) -> io::Result<()> {
        self.freeze.write_at(b"0", 0)?;
        self.frozen = false;
        Ok(())
    }

    fn is_frozen(&self) -> bool {
        self.frozen
    }

    fn admission(&self, group: Group) -> Admission {
        self.files(group)
            .map_or(Admission::Free, |files| Admission::Join {
                folder: files.folder.as_raw_fd(),
                procs: files.procs.as_raw_fd(),
            })
    }

    fn admitted(&mut self, group: Group, pid: pid_t) {
        if !self.frozen {
            return;
        }
        let until = clock::now_ns() + FROZEN_WITHIN_NS;
        let mut naps = Naps::default();
        while clock::now_ns() < until && crate::processes::procfs::is_alive(pid) {
            if self.members(group).contains(&pid) {
                break;
            }
            naps.nap();
        }
        // A failure to read shows at the next slice.
        let _ = self.await_frozen();
    }

    fn reaped(&mut self, _group: Group, _pid: pid_t, _exit: &Exit) {}

    fn owner(&mut self, pid: pid_t) -> Option<Group> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        let (_, below) = path.split_once(&self.suffix)?;
        let names = ["main", "load", "aside"];
        let name = below.split(['/', ' ']).next()?;
        names.iter().position(|n| *n == name).map(|at| GROUPS[at])
    }

    fn usage(&mut self, group: Group) -> io::Result<Usage> {
        self.files(group).map_or(Ok(Usage::default()), |files| {
            Usage::from_cpu_stat(&files.stat)
        })
    }

    fn cpu_wait_ns(&mut self, group: Group) -> Option<u64> {
        let file = self.files(group)?.pressure.as_ref()?;
        let mut buffer = [0u8; 256];
        let length = file.read_at(&mut buffer, 0).ok()?;
        parse_pressure(std::str::from_utf8(&buffer[..length]).ok()?)
    }

    fn members(&mut self, group: Group) -> Vec<pid_t> {
        self.files(group)
            .map_or_else(Vec::new, |files| read_tree(&files.dir))
    }

    /// Not by cgroup.kill: Linux 6.18 kills at birth whatever is later cloned into a group that
    /// was killed once. Frozen, nothing can fork away between being found and being killed.
    fn kill(&mut self, group: Group) {
        let Some(dir) = self.files(group).map(|files| files.dir.clone()) else {
            return;
        };
        let was_frozen = self.frozen;
        let until = clock::now_ns() + DEAD_WITHIN_NS;
        let mut naps = Naps::default();
        loop {
            let living = read_tree(&dir);
            if living.is_empty() || clock::now_ns() > until {
                break;
            }
            if !self.frozen {
                // Failing, the next look finds what got away.
                let _ = self.freeze();
                continue;
            }
            for pid in living {
                kill(pid, libc::SIGKILL);
            }
            naps.nap();
        }
        if !was_frozen && self.frozen {
            let _ = self.thaw();
        }
        for below in folders(&dir) {
            remove_below(&below);
        }
    }

    fn escaped(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// The total of the line `full`, in nanoseconds: tasks of the group wanted a CPU, and none had one.
///
/// Before Linux 5.13 there is `some` alone, which counts tasks that wait for each other, too.
fn parse_pressure(text: &str) -> Option<u64> {
    let line = |name| text.lines().find(|line| line.starts_with(name));
    let (_, total) = line("full ").or(line("some "))?.split_once("total=")?;
    Some(total.trim().parse::<u64>().ok()? * 1000)
}

/// Living processes of a group and of those that a program made below it.
fn read_tree(dir: &Path) -> Vec<pid_t> {
    let mut pids = read_pids(&dir.join("cgroup.procs"));
    for below in folders(dir) {
        pids.extend(read_tree(&below));
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
    const CONTAINER: &str = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";

    #[test]
    fn own_folder_in_either_hierarchy() {
        let own = "9:name=systemd:/\n0::/user.slice/a.scope\n";
        let found = |mounts| own_folder(mounts, own).unwrap();
        assert_eq!(
            found(HYBRID),
            Path::new("/sys/fs/cgroup/unified/user.slice/a.scope")
        );
        assert_eq!(
            found(UNIFIED),
            Path::new("/sys/fs/cgroup/user.slice/a.scope")
        );
        assert_eq!(
            own_folder(HYBRID, "0::/\n").unwrap(),
            Path::new("/sys/fs/cgroup/unified")
        );
    }

    #[test]
    fn controllers_are_asked_for_and_only_our_own_scope_is_vacated() {
        let parent = std::env::temp_dir().join(format!("delegate-{}", std::process::id()));
        let run = parent.join("run");
        fs::create_dir_all(&run).unwrap();
        fs::write(parent.join("cgroup.type"), "domain").unwrap();
        fs::write(parent.join("cgroup.procs"), "5\n6\n").unwrap();
        delegate_controllers(&run, |pid| pid == 5);
        assert!(!parent.join("ensign-aside").exists());
        delegate_controllers(&run, |_| true);
        let moved = fs::read_to_string(parent.join("ensign-aside/cgroup.procs")).unwrap();
        assert_eq!(moved, "6");
        for dir in [&parent, &run] {
            assert!(dir.join("cgroup.subtree_control").exists());
        }
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn a_controller_of_version_1_has_a_hierarchy() {
        let own = "9:name=systemd:/\n4:memory:/a/b\n3:cpu,pids:/\n0::/\n";
        let mounts = "40 31 0:30 / /c/memory rw - cgroup cgroup rw,memory\n\
            41 31 0:31 / /c/cpu,pids rw - cgroup cgroup rw,cpu,pids\n";
        let found = |controller| legacy_folder(mounts, own, controller);
        assert_eq!(found("memory").unwrap(), Path::new("/c/memory/a/b"));
        assert_eq!(found("pids").unwrap(), Path::new("/c/cpu,pids"));
        assert_eq!(found("freezer"), None);
    }

    #[test]
    fn pressure_is_read_in_nanoseconds() {
        let text = "some avg10=0.00 avg60=0.00 total=1234\nfull avg10=0.00 total=5\n";
        assert_eq!(parse_pressure(text), Some(5_000));
        assert_eq!(parse_pressure("some avg10=0 total=1234\n"), Some(1_234_000));
        assert_eq!(parse_pressure(""), None);
    }

    #[test]
    fn a_mount_of_a_part_is_seen_from_its_root() {
        let own = own_folder(CONTAINER, "0::/docker/abc/inner\n").unwrap();
        assert_eq!(own, Path::new("/sys/fs/cgroup/inner"));
    }

    #[test]
    fn without_version_2_there_is_none() {
        assert_eq!(
            own_folder("32 31 0:29 / /c rw - cgroup cgroup rw,cpu\n", "0::/\n"),
            None
        );
        assert_eq!(own_folder(UNIFIED, "4:memory:/x\n"), None);
    }
}
