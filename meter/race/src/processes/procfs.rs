//! What /proc says about processes.

use libc::pid_t;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The fields of /proc/PID/stat that the meter uses; times in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub state: u8,
    pub ppid: pid_t,
    pub session: pid_t,
    pub page_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub children_user_ticks: u64,
    pub children_system_ticks: u64,
    pub start_ticks: u64,
}

impl Stat {
    pub(crate) fn parse(text: &[u8]) -> Option<Stat> {
        // The command name may hold anything, brackets too: the last one closes it.
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let numbers: Vec<i64> = fields.take(19).map(|f| f.parse().unwrap_or(0)).collect();
        let ticks = |index: usize| numbers.get(index).map(|&n| n.max(0) as u64);
        Some(Stat {
            state,
            ppid: *numbers.first()? as pid_t,
            session: *numbers.get(2)? as pid_t,
            page_faults: ticks(6)? + ticks(8)?,
            user_ticks: ticks(10)?,
            system_ticks: ticks(11)?,
            children_user_ticks: ticks(12)?,
            children_system_ticks: ticks(13)?,
            start_ticks: ticks(18)?,
        })
    }

    /// From an open /proc/PID/stat; None when the process is gone.
    pub(crate) fn read(file: &File) -> Option<Stat> {
        let mut buffer = [0u8; 1024];
        let length = file.read_at(&mut buffer, 0).ok()?;
        Stat::parse(&buffer[..length])
    }

    pub(crate) fn of(pid: pid_t) -> Option<Stat> {
        Stat::read(&File::open(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Stopped, or with no code left to run.
    pub(crate) fn stands_still(&self) -> bool {
        matches!(self.state, b'T' | b't' | b'Z' | b'X')
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// How large a process is.
pub(crate) struct Size {
    pub threads: u64,
    pub resident_bytes: u64,
}

impl Size {
    pub(crate) fn of(pid: pid_t) -> Option<Size> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(22).collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        // SAFETY: no memory is involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
        Some(Size {
            threads: number(17)?,
            resident_bytes: number(21)? * page,
        })
    }
}

/// How many tasks run with this user's id, as far as this namespace shows them.
pub(crate) fn tasks_of(uid: libc::uid_t) -> u64 {
    let of = |pid: pid_t| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let own = status_value(&text, "Uid:") == u64::from(uid) && text.contains("Uid:");
        own.then(|| status_value(&text, "Threads:"))
    };
    pids().into_iter().filter_map(of).sum()
}

/// Its memory, with what it shares counted in proportion.
pub(crate) fn proportional_bytes(pid: pid_t) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(status_value(&text, "Pss:") * 1024)
}

/// The number of the system call within which a task that stands was stopped; None outside of
/// calls, and where the kernel won't tell.
pub(crate) fn call_of(pid: pid_t) -> Option<usize> {
    let told = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    told.split_ascii_whitespace().next()?.parse().ok()
}

/// What the children used that a process waited for (ns), in whole ticks.
pub(crate) fn children_cpu_ns(pid: pid_t) -> u64 {
    let ticks = Stat::of(pid).map_or(0, |s| s.children_user_ticks + s.children_system_ticks);
    ticks * tick_ns()
}

fn tick_ns() -> u64 {
    // SAFETY: no memory is involved.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    1_000_000_000 / per_second
}

/// The folders of a process' tasks.
pub(crate) fn tasks(pid: pid_t) -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.map(|task| task.path())
}

/// The number of a task, by its folder.
pub(crate) fn number_of(task: &Path) -> Option<pid_t> {
    task.file_name()?.to_str()?.parse().ok()
}

/// What a task used so far (ns), by its folder; 0 where the kernel does not tell.
pub(crate) fn task_cpu_ns(task: &Path) -> u64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let used = text.split_ascii_whitespace().next();
    used.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// How long each task of a process ran, and waited for a CPU (ns).
pub(crate) fn scheduled(pid: pid_t) -> Vec<(pid_t, (u64, u64))> {
    tasks(pid)
        .filter_map(|task| {
            let text = fs::read_to_string(task.join("schedstat")).ok()?;
            let mut numbers = text.split_ascii_whitespace().map(str::parse);
            let (run_ns, wait_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some((number_of(&task)?, (run_ns, wait_ns)))
        })
        .collect()
}

/// Every process that this process can see.
pub(crate) fn pids() -> Vec<pid_t> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// All living descendants of this process, which gets the orphans among them; parents before their
/// children. Not every process of the machine is looked at where its children have none.
pub(crate) fn descendants() -> Vec<pid_t> {
    match only_children() {
        Some(children) => children.into_iter().filter(|&pid| is_alive(pid)).collect(),
        None => search_descendants(),
    }
}

/// The children of this process, the dead ones too; None where one of them has children, or the
/// kernel does not tell. No list is cut short: this process has one thread, which reaps nobody
/// meanwhile, and of other lists only whether they are empty is asked (proc(5)).
fn only_children() -> Option<Vec<pid_t>> {
    let own = children_of(Path::new("/proc/thread-self"))?;
    let mut their_tasks = own.iter().flat_map(|&pid| tasks(pid));
    let alone = their_tasks.all(|task| children_of(&task).is_some_and(|list| list.is_empty()));
    alone.then_some(own)
}

fn children_of(task: &Path) -> Option<Vec<pid_t>> {
    let list = fs::read_to_string(task.join("children")).ok()?;
    list.split_ascii_whitespace()
        .map(|pid| pid.parse().ok())
        .collect()
}

fn search_descendants() -> Vec<pid_t> {
    let all: Vec<(pid_t, Stat)> = pids()
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::of(pid)?)))
        .collect();
    let mut found = vec![std::process::id() as pid_t];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        next += 1;
        found.extend(
            all.iter()
                .filter(|(_, s)| s.ppid == parent)
                .map(|(pid, _)| *pid),
        );
    }
    found.remove(0);
    found.retain(|pid| all.iter().any(|(p, s)| p == pid && !s.is_dead()));
    found
}

/// The most recently created process (or thread): while it stays, nobody has forked.
pub(crate) fn last_pid() -> Option<pid_t> {
    let mut text = [0u8; 128];
    let length = File::open("/proc/loadavg").ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// The value of a variable in a process' environment as it was at exec.
pub(crate) fn environment_value(pid: pid_t, name: &str) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environ.split(|&byte| byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

pub(crate) fn name(pid: pid_t) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".into(), |s| s.trim().into())
}

/// Peak resident memory, context switches and page faults of a living process, all threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Footprint {
    pub peak_memory_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub page_faults: u64,
}

impl Footprint {
    pub(crate) fn join(&mut self, more: Footprint) {
        self.peak_memory_bytes = self.peak_memory_bytes.max(more.peak_memory_bytes);
        self.voluntary_switches += more.voluntary_switches;
        self.involuntary_switches += more.involuntary_switches;
        self.page_faults += more.page_faults;
    }

    /// Switches and faults since an earlier reading; a peak has no beginning.
    pub(crate) fn since(self, base: Footprint) -> Footprint {
        let voluntary = self.voluntary_switches;
        let involuntary = self.involuntary_switches;
        Footprint {
            voluntary_switches: voluntary.saturating_sub(base.voluntary_switches),
            involuntary_switches: involuntary.saturating_sub(base.involuntary_switches),
            page_faults: self.page_faults.saturating_sub(base.page_faults),
            ..self
        }
    }

    pub(crate) fn of(pid: pid_t) -> Footprint {
        let mut footprint = Footprint {
            page_faults: Stat::of(pid).map_or(0, |stat| stat.page_faults),
            ..Footprint::default()
        };
        for thread in tasks(pid) {
            let Ok(status) = fs::read_to_string(thread.join("status")) else {
                continue;
            };
            footprint.peak_memory_bytes = status_value(&status, "VmHWM:") * 1024;
            footprint.voluntary_switches += status_value(&status, "voluntary_ctxt_switches:");
            footprint.involuntary_switches += status_value(&status, "nonvoluntary_ctxt_switches:");
        }
        footprint
    }
}

/// The device of `ends` that leads to another network namespace.
pub(crate) const LINK: &str = "ensign";

/// Calls and bytes of `read` and `write` so far, as a process and what it waited for had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfers {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
}

impl Transfers {
    pub(crate) fn of(pid: pid_t) -> Transfers {
        Transfers::parse(&fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default())
    }

    fn parse(text: &str) -> Transfers {
        Transfers {
            reads: status_value(text, "syscr:"),
            read_bytes: status_value(text, "rchar:"),
            writes: status_value(text, "syscw:"),
            written_bytes: status_value(text, "wchar:"),
        }
    }

    pub(crate) fn add(&mut self, more: Transfers) {
        self.reads += more.reads;
        self.read_bytes += more.read_bytes;
        self.writes += more.writes;
        self.written_bytes += more.written_bytes;
    }
}

/// True if a process is in another network namespace than this one.
pub(crate) fn has_own_network(pid: pid_t) -> bool {
    let network = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let other = network(&pid.to_string());
    other.is_some() && other != network("self")
}

/// Bytes that a process's link to another network namespace carried in its busier direction; 0
/// where it has none.
pub(crate) fn link_bytes(pid: pid_t) -> u64 {
    let table = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap_or_default();
    let ours = |line: &str| {
        line.trim_start()
            .strip_prefix(LINK)?
            .strip_prefix(':')
            .map(busier)
    };
    table.lines().find_map(ours).unwrap_or(0)
}

/// Of a device's counts: bytes received come first, bytes sent ninth.
fn busier(counts: &str) -> u64 {
    let counts: Vec<u64> = counts
        .split_ascii_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    let count = |index: usize| counts.get(index).copied().unwrap_or(0);
    count(0).max(count(8))
}

fn status_value(status: &str, key: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Time that the hypervisor gave to other machines while a CPU of this one wanted to run.
pub(crate) fn steal_ns() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    steal_ticks(&text) * tick_ns()
}

fn steal_ticks(stat: &str) -> u64 {
    let all = stat.lines().next().unwrap_or_default();
    let steal = all.split_ascii_whitespace().nth(8);
    steal.and_then(|number| number.parse().ok()).unwrap_or(0)
}

pub(crate) fn is_alive(pid: pid_t) -> bool {
    Stat::of(pid).is_some_and(|stat| !stat.is_dead())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_no_trap() {
        let text = b"42 (a) (b c) S 7 42 41 0 -1 4194304 1 2 3 4 11 12 13 14 20 0 1 0 999 5 6";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.ppid, stat.session), (b'S', 7, 41));
        assert_eq!(stat.page_faults, 1 + 3);
        assert_eq!((stat.user_ticks, stat.system_ticks), (11, 12));
        assert_eq!(
            (stat.children_user_ticks, stat.children_system_ticks),
            (13, 14)
        );
        assert_eq!(stat.start_ticks, 999);
    }

    #[test]
    fn children_alone_and_grandchildren_are_found() {
        // A process of its own: other tests have children, too.
        // SAFETY: the child calls nothing that needs another thread.
        let looked = unsafe { libc::fork() };
        if looked == 0 {
            let well = only_children() == Some(Vec::new()) && finds_a_child(false);
            // SAFETY: nothing is to be cleaned up.
            unsafe { libc::_exit(i32::from(!(well && finds_a_child(true)))) };
        }
        let mut status = 1;
        // SAFETY: the status is there.
        assert_eq!(unsafe { libc::waitpid(looked, &mut status, 0) }, looked);
        assert_eq!(status, 0);
    }

    fn finds_a_child(with_its_own: bool) -> bool {
        // SAFETY: the children only sleep until they are killed.
        unsafe {
            let (child, mut grandchild) = (libc::fork(), 0);
            if child == 0 {
                if with_its_own {
                    grandchild = libc::fork();
                }
                libc::sleep(if grandchild == 0 { 100 } else { 99 });
                libc::_exit(0);
            }
            let wanted = 1 + usize::from(with_its_own);
            let found = (0..200).find_map(|_| {
                libc::usleep(10_000);
                let found = descendants();
                (found.len() == wanted).then_some(found)
            });
            let Some(found) = found else { return false };
            let alone = only_children().is_some();
            for &pid in &found {
                libc::kill(pid, libc::SIGKILL);
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
            found[0] == child && alone != with_its_own
        }
    }

    #[test]
    fn this_process_has_a_footprint() {
        let own = std::process::id() as pid_t;
        assert!(Footprint::of(own).peak_memory_bytes > 100_000);
        assert!(Footprint::of(own).page_faults > 10);
        assert!(is_alive(own));
        assert_eq!(environment_value(own, "NO_SUCH_VARIABLE"), None);
    }

    #[test]
    fn steal_is_the_eighth_number_of_all_cpus() {
        assert_eq!(steal_ticks("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3"), 8);
        assert_eq!(steal_ticks("cpu 1 2"), 0);
    }

    #[test]
    fn status_keys_are_whole_words() {
        let status = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(status_value(status, "voluntary_ctxt_switches:"), 5);
        assert_eq!(status_value(status, "nonvoluntary_ctxt_switches:"), 9);
    }

    #[test]
    fn transfers_are_read_by_their_names() {
        let text = "rchar: 30\nwchar: 4\nsyscr: 5\nsyscw: 6\nread_bytes: 7\n";
        let expected = Transfers {
            reads: 5,
            read_bytes: 30,
            writes: 6,
            written_bytes: 4,
        };
        assert_eq!(Transfers::parse(text), expected);
        let own = std::process::id() as pid_t;
        assert!(Transfers::of(own).reads > 0);
    }
}
