//! Without control groups: SIGSTOP and SIGCONT to every process of a variant, found to a fixed point.
//!
//! Only one variant runs at a time, and the worker is the subreaper: a new child of the worker that
//! the worker did not start can only come from the variant that ran.

use crate::processes::freezer::{Admission, Group, Tree};
use crate::processes::kill::kill;
use crate::processes::procfs::{self, Stat};
use crate::processes::usage::{Exit, Usage};
use ensign_host::clock::{self, Naps};
use libc::pid_t;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::rc::Rc;

const STILL_WITHIN_NS: u64 = 1_000_000_000;
const DEAD_WITHIN_NS: u64 = 5_000_000_000;
const MOST_NEW_PIDS: pid_t = 4096;
/// More take too long to look at after each slice.
const MOST_TASKS: usize = 32;

/// Processes known to any variant, so that no variant claims another's.
pub(crate) type Known = Rc<RefCell<HashSet<pid_t>>>;

/// What looks at the tasks of a group have seen.
#[derive(Default)]
struct Looks {
    /// Run time and wait of each, when last seen.
    tasks: HashMap<pid_t, (u64, u64)>,
    run_ns: u64,
    /// Of the task that waited longest between two looks: several wait at the same time.
    wait_ns: u64,
}

impl Looks {
    fn take(&mut self, tasks: HashMap<pid_t, (u64, u64)>) {
        let mut longest_ns = 0;
        for (tid, (run_ns, wait_ns)) in &tasks {
            let (ran_ns, waited_ns) = self.tasks.get(tid).copied().unwrap_or_default();
            self.run_ns += run_ns.saturating_sub(ran_ns);
            longest_ns = longest_ns.max(wait_ns.saturating_sub(waited_ns));
        }
        self.wait_ns += longest_ns;
        self.tasks = tasks;
    }
}

struct Member {
    pid: pid_t,
    group: Group,
    stat: File,
    stopped: bool,
}

pub(crate) struct SignalTree {
    worker: pid_t,
    tick_ns: u64,
    members: Vec<Member>,
    known: Known,
    /// Every process with a number up to here has been looked at.
    seen: pid_t,
    gone: [Usage; 3],
    looks: [Looks; 3],
    frozen: bool,
    escaped: Vec<String>,
}

impl SignalTree {
    pub(crate) fn new(known: Known) -> SignalTree {
        // SAFETY: no memory is involved.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
        SignalTree {
            worker: std::process::id() as pid_t,
            tick_ns: 1_000_000_000 / ticks_per_s,
            members: Vec::new(),
            known,
            seen: procfs::last_pid().unwrap_or(0),
            gone: [Usage::default(); 3],
            looks: Default::default(),
            frozen: false,
            escaped: Vec::new(),
        }
    }

    fn add(&mut self, pid: pid_t, group: Group) {
        self.known.borrow_mut().insert(pid);
        if let Ok(stat) = File::open(format!("/proc/{pid}/stat")) {
            self.members.push(Member {
                pid,
                group,
                stat,
                stopped: false,
            });
        }
    }

    fn forget_gone(&mut self) {
        let known = &self.known;
        self.members.retain(|member| {
            let there = Stat::read(&member.stat).is_some();
            if !there {
                known.borrow_mut().remove(&member.pid);
            }
            there
        });
    }

    /// Takes in new descendants; true if there were any. To miss none, the members must stand
    /// still: a fork under way has a number before it can be seen.
    fn discover(&mut self) -> bool {
        let last = procfs::last_pid().unwrap_or(0);
        if last == self.seen && last != 0 {
            return false;
        }
        let few = last > self.seen && last - self.seen < MOST_NEW_PIDS;
        let candidates = if few {
            (self.seen + 1..=last).collect()
        } else {
            procfs::pids()
        };
        let before = self.members.len();
        let mut groups: HashMap<pid_t, Group> = self.groups();
        // Again while it finds some: a child may have a lower number than its parent.
        let mut found = true;
        while found {
            found = false;
            for &pid in &candidates {
                found |= self.claim(pid, &mut groups);
            }
        }
        if self.members.iter().all(|member| member.stopped) {
            self.seen = last;
        }
        self.members.len() > before
    }

    fn groups(&self) -> HashMap<pid_t, Group> {
        let known = self.members.iter();
        known.map(|member| (member.pid, member.group)).collect()
    }

    fn claim(&mut self, pid: pid_t, groups: &mut HashMap<pid_t, Group>) -> bool {
        if self.known.borrow().contains(&pid) {
            return false;
        }
        let Some(stat) = Stat::of(pid) else {
            return false;
        };
        match groups.get(&stat.ppid) {
            Some(&group) => self.add(pid, group),
            None if stat.ppid == self.worker => self.adopt(pid, stat),
            None => return false,
        }
        if let Some(member) = self.members.last().filter(|member| member.pid == pid) {
            groups.insert(pid, member.group);
        }
        self.known.borrow().contains(&pid)
    }

    /// An orphan of this variant. One that also left all our sessions is worth a word.
    fn adopt(&mut self, pid: pid_t, stat: Stat) {
        if stat.session == pid && !stat.is_dead() {
            self.escaped.push(format!("{} ({pid})", procfs::name(pid)));
        }
        let busy = [Group::Load, Group::Aside];
        let has = |group: &Group| self.members.iter().any(|member| member.group == *group);
        let main = has(&Group::Main);
        let group = busy.into_iter().find(|group| !main && has(group));
        self.add(pid, group.unwrap_or(Group::Main));
    }

    fn stop_members(&mut self) {
        for member in self.members.iter_mut().filter(|member| !member.stopped) {
            kill(member.pid, libc::SIGSTOP);
            member.stopped = true;
        }
    }

    fn await_still(&self) {
        let until = clock::now_ns() + STILL_WITHIN_NS;
        let mut naps = Naps::default();
        for member in &self.members {
            while Stat::read(&member.stat).is_some_and(|stat| !stat.stands_still()) {
                if clock::now_ns() > until {
                    return;
                }
                naps.nap();
            }
        }
    }

    fn usage_of(&self, member: &Member) -> Option<Usage> {
        let stat = Stat::read(&member.stat)?;
        let user = stat.user_ticks + stat.children_user_ticks;
        let system = stat.system_ticks + stat.children_system_ticks;
        let children = stat.children_user_ticks + stat.children_system_ticks;
        let own_ns = clock::process_cpu_ns(member.pid)?;
        let cpu_ns = own_ns + children * self.tick_ns;
        let share = user as f64 / (user + system).max(1) as f64;
        let user_ns = (cpu_ns as f64 * share) as u64;
        Some(Usage {
            cpu_ns,
            user_ns,
            system_ns: cpu_ns - user_ns,
        })
    }
}

fn add(sum: &mut Usage, more: Usage) {
    sum.cpu_ns += more.cpu_ns;
    sum.user_ns += more.user_ns;
    sum.system_ns += more.system_ns;
}

impl Tree for SignalTree {
    fn freeze(&mut self) -> io::Result<()> {
        loop {
            self.stop_members();
            self.await_still();
            if !self.discover() {
                break;
            }
        }
        self.forget_gone();
        self.frozen = true;
        Ok(())
    }

    fn thaw(&mut self) -> io::Result<()> {
        for member in self.members.iter_mut().rev() {
            kill(member.pid, libc::SIGCONT);
            member.stopped = false;
        }
        self.frozen = false;
        Ok(())
    }

    fn is_frozen(&self) -> bool {
        self.frozen
    }

    fn admission(&self, _group: Group) -> Admission {
        if self.frozen {
            Admission::StopItself
        } else {
            Admission::Free
        }
    }

    fn admitted(&mut self, group: Group, pid: pid_t) {
        self.add(pid, group);
        if self.frozen {
            self.await_still();
            if let Some(member) = self.members.last_mut() {
                member.stopped = true;
            }
        }
    }

    fn reaped(&mut self, group: Group, pid: pid_t, exit: &Exit) {
        self.members.retain(|member| member.pid != pid);
        self.known.borrow_mut().remove(&pid);
        add(&mut self.gone[group as usize], exit.usage);
    }

    fn owner(&mut self, pid: pid_t) -> Option<Group> {
        let own = |tree: &SignalTree| {
            let member = tree.members.iter().find(|member| member.pid == pid);
            member.map(|member| member.group)
        };
        if own(self).is_none() && !self.frozen {
            self.discover();
        }
        own(self)
    }

    fn usage(&mut self, group: Group) -> io::Result<Usage> {
        let mut sum = self.gone[group as usize];
        for member in self.members.iter().filter(|member| member.group == group) {
            add(&mut sum, self.usage_of(member).unwrap_or_default());
        }
        Ok(sum)
    }

    /// `schedstat` of a task is lost when it ends: it tells where looks saw nearly all that ran.
    fn cpu_wait_ns(&mut self, group: Group) -> Option<u64> {
        let mut tasks = HashMap::new();
        for member in self.members.iter().filter(|member| member.group == group) {
            tasks.extend(procfs::scheduled(member.pid));
            if tasks.len() > MOST_TASKS {
                return None;
            }
        }
        let looks = &mut self.looks[group as usize];
        looks.take(tasks);
        let (seen_ns, waited_ns) = (looks.run_ns + 2 * self.tick_ns, looks.wait_ns);
        let used_ns = self.usage(group).ok()?.cpu_ns;
        (seen_ns >= used_ns / 10 * 9).then_some(waited_ns)
    }

    fn members(&mut self, group: Group) -> Vec<pid_t> {
        if !self.frozen {
            self.discover();
        }
        let living = |member: &&Member| Stat::read(&member.stat).is_some_and(|s| !s.is_dead());
        let ours = self.members.iter().filter(|member| member.group == group);
        ours.filter(living).map(|member| member.pid).collect()
    }

    fn kill(&mut self, group: Group) {
        let was_frozen = self.frozen;
        let until = clock::now_ns() + DEAD_WITHIN_NS;
        let mut naps = Naps::default();
        // Stopped first: nothing can fork away between being found and being killed.
        while self.freeze().is_ok() && clock::now_ns() < until {
            let living = self.members(group);
            if living.is_empty() {
                break;
            }
            for pid in living {
                kill(pid, libc::SIGKILL);
            }
            naps.nap();
        }
        if !was_frozen {
            let _ = self.thaw();
        }
    }

    fn escaped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.escaped)
    }
}
