//! Follows a program and everything that it starts, stop by stop.

use super::calls::{Abi, What};
use super::pending::{bind, change, folder_of, socketcall, Pending};
use super::places::{self, Code};
use super::ptrace::{self, Info};
use super::seen::{Exit, Gap, Seen, Way};
use super::timing::Timing;
use crate::processes::procfs::{self, Stat};
use ensign_host::clock;
use libc::{c_int, pid_t};
use std::collections::HashMap;
use std::path::Path;

/// Looking up mappings takes longer the more there are; programs that make code do it for ever.
const MOST_LOOKUPS: u32 = 2_000;

struct Task {
    process: pid_t,
    /// A system call whose end is waited for.
    pending: Option<Pending>,
    /// The file that it last asked to execute.
    asked: Option<String>,
    /// Its CPU time up to the last look.
    looked_at_ns: u64,
    /// It was stopped to see where it is; it has used so much since the look before.
    sampled_ns: Option<u64>,
}

pub(super) struct Tracer {
    abis: Vec<Abi>,
    timing: Timing,
    program: pid_t,
    tasks: HashMap<pid_t, Task>,
    lookups: HashMap<pid_t, u32>,
    names: HashMap<pid_t, String>,
    pub seen: Seen,
    /// How the program ended, as `wait` gives it.
    pub ended: Option<c_int>,
    /// Signals that reached the program by themselves: number, sender, when.
    delivered: Vec<(c_int, pid_t, u64)>,
}

impl Tracer {
    pub(super) fn new(abis: Vec<Abi>, rate: u64, program: pid_t) -> Tracer {
        let mut tracer = Tracer {
            abis,
            timing: Timing::new(rate),
            program,
            tasks: HashMap::new(),
            lookups: HashMap::new(),
            names: HashMap::new(),
            seen: Seen::default(),
            ended: None,
            delivered: Vec::new(),
        };
        tracer.take_in(program);
        tracer
    }

    /// What `wait` said of one task.
    pub(super) fn hear(&mut self, pid: pid_t, status: c_int) {
        if !libc::WIFSTOPPED(status) {
            self.gone(pid, status);
            return;
        }
        let signal = libc::WSTOPSIG(status);
        self.take_in(pid);
        // Any other stop ends the wish for one.
        self.sample(pid, status >> 16);
        match status >> 16 {
            ptrace::EVENT_FORK | ptrace::EVENT_VFORK | ptrace::EVENT_CLONE => {
                if let Some(child) = ptrace::message(pid) {
                    self.take_in(child as pid_t);
                    self.inherit(pid, child as pid_t);
                }
                self.resume(pid, 0);
            }
            ptrace::EVENT_EXEC => {
                self.executed(pid);
                self.resume(pid, 0);
            }
            ptrace::EVENT_EXIT => {
                self.is_about_to_end(pid);
                self.resume(pid, 0);
            }
            ptrace::EVENT_SECCOMP => {
                self.begins(pid);
                self.resume(pid, 0);
            }
            ptrace::EVENT_STOP if is_stop(signal) => ptrace::listen(pid),
            ptrace::EVENT_STOP => self.resume(pid, 0),
            _ if signal == ptrace::SYSTEM_CALL => {
                self.ends(pid);
                self.resume(pid, 0);
            }
            _ => {
                self.delivers(pid, signal);
                self.resume(pid, signal);
            }
        }
    }

    pub(super) fn has_table(&self) -> bool {
        !self.abis.is_empty()
    }

    /// How many live.
    pub(super) fn processes(&self) -> usize {
        let leads = |(&pid, task): &(&pid_t, &Task)| task.process == pid;
        self.tasks.iter().filter(leads).count()
    }

    /// Whether it reached the program on its own way a moment ago, as one to the whole group does.
    pub(super) fn was_delivered(&self, signal: c_int, sender: pid_t) -> bool {
        const MOMENT_NS: u64 = 100_000_000;
        let now = clock::now_ns();
        self.delivered.iter().any(|&(number, pid, when)| {
            (number, pid) == (signal, sender) && now.saturating_sub(when) < MOMENT_NS
        })
    }

    fn take_in(&mut self, pid: pid_t) {
        if self.tasks.contains_key(&pid) {
            return;
        }
        let process = process_of(pid);
        if process == pid {
            self.seen.processes += 1;
        }
        let task = Task {
            process,
            pending: None,
            asked: None,
            looked_at_ns: 0,
            sampled_ns: None,
        };
        self.tasks.insert(pid, task);
        self.seen.threads = self.seen.threads.max(self.tasks.len());
    }

    /// Until it executes another, a child runs its parent's program.
    fn inherit(&mut self, parent: pid_t, child: pid_t) {
        let process = self.tasks.get(&parent).map(|task| task.process);
        let name = process.and_then(|process| self.names.get(&process).cloned());
        if let Some(name) = name {
            self.names.entry(child).or_insert(name);
        }
    }

    fn resume(&self, pid: pid_t, signal: c_int) {
        let waits = |task: &Task| task.pending.is_some();
        ptrace::resume(pid, signal, self.tasks.get(&pid).is_some_and(waits));
    }

    /// Stops all tasks that run, each to be asked where it is.
    pub(super) fn look_where_tasks_are(&mut self) {
        for (&pid, task) in &mut self.tasks {
            // One that waits for a CPU runs, too, as the kernel has it.
            let cpu_ns = procfs::task_cpu_ns(Path::new(&format!("/proc/{pid}")));
            let used_ns = cpu_ns.saturating_sub(task.looked_at_ns);
            let runs = used_ns > 0 && Stat::of(pid).is_some_and(|stat| stat.state == b'R');
            if runs && task.sampled_ns.is_none() && ptrace::interrupt(pid) {
                (task.looked_at_ns, task.sampled_ns) = (cpu_ns, Some(used_ns));
            }
        }
    }

    fn sample(&mut self, pid: pid_t, event: c_int) {
        let asked = self.tasks.get_mut(&pid);
        let Some(cpu_ns) = asked.and_then(|task| task.sampled_ns.take()) else {
            return;
        };
        if let Some(info) = ptrace::info(pid) {
            let found = places::executable(pid, info.ip, info.ip + 1).pop();
            let path = match found {
                Some(Code::File(file)) => file.path,
                _ => String::new(),
            };
            // Before a call begins it has used nothing.
            let begins = event == ptrace::EVENT_SECCOMP;
            let call = (!begins).then(|| procfs::call_of(pid)).flatten();
            self.seen.sampled(path, cpu_ns, call);
        }
    }

    fn gone(&mut self, pid: pid_t, status: c_int) {
        let task = self.tasks.remove(&pid);
        if task.is_none_or(|task| task.process != pid) {
            return;
        }
        self.lookups.remove(&pid);
        let program = self.names.remove(&pid).unwrap_or_default();
        let (exit, signal) = outcome(status);
        // The kernel does so at the hard limit, where there is no signal before.
        if signal == Some(libc::SIGKILL) && self.seen.cpu_limits > 0 {
            self.seen.cpu_limits_reached += 1;
        }
        self.seen.ended(Exit {
            program,
            exit,
            signal,
        });
        if pid == self.program {
            self.ended = Some(status);
        }
    }

    /// All other threads are gone, and the one that called has the number of the process.
    fn executed(&mut self, pid: pid_t) {
        let caller = ptrace::message(pid).map_or(pid, |old| old as pid_t);
        let asked = self
            .tasks
            .get_mut(&caller)
            .and_then(|task| task.asked.take());
        self.tasks
            .retain(|&other, task| other == pid || task.process != pid);
        if let Some(task) = self.tasks.get_mut(&pid) {
            (task.pending, task.asked) = (None, None);
        }
        let executable = places::program_of(pid);
        self.names.insert(pid, executable.clone());
        self.lookups.insert(pid, 0);
        self.timing.forget(pid);
        self.seen
            .program(asked.unwrap_or_else(|| executable.clone()), executable);
        self.look(pid, 0, u64::MAX);
    }

    fn is_about_to_end(&mut self, pid: pid_t) {
        self.seen.cpu_ns += procfs::task_cpu_ns(Path::new(&format!("/proc/{pid}")));
        let Some(process) = self.tasks.get(&pid).map(|task| task.process) else {
            return;
        };
        let others = |task: &&Task| task.process == process;
        if pid == process || self.tasks.values().filter(others).count() == 1 {
            self.look(pid, 0, u64::MAX);
        }
    }

    fn process(&self, pid: pid_t) -> pid_t {
        self.tasks.get(&pid).map_or(pid, |task| task.process)
    }

    fn look(&mut self, pid: pid_t, first: u64, last: u64) {
        for code in places::executable(pid, first, last) {
            match code {
                Code::File(file) => self.seen.mapped(file),
                Code::Anonymous => self.seen.jit = true,
            }
        }
    }

    /// As `look`, but not for ever: what is still there at the end is seen then.
    fn look_now_and_then(&mut self, pid: pid_t, first: u64, last: u64) {
        let process = self.process(pid);
        let count = self.lookups.entry(process).or_default();
        *count += 1;
        if *count <= MOST_LOOKUPS {
            self.look(pid, first, last);
        }
    }

    fn delivers(&mut self, pid: pid_t, signal: c_int) {
        const KEPT: usize = 16;
        let (code, sender) = ptrace::sender(pid).unwrap_or_default();
        if signal == libc::SIGXCPU && code == libc::SI_KERNEL {
            self.seen.cpu_limits_reached += 1;
        }
        if self
            .tasks
            .get(&pid)
            .is_none_or(|task| task.process != self.program)
        {
            return;
        }
        self.delivered.push((signal, sender, clock::now_ns()));
        let surplus = self.delivered.len().saturating_sub(KEPT);
        self.delivered.drain(..surplus);
    }

    /// A system call that the filter stopped.
    fn begins(&mut self, pid: pid_t) {
        let Some(info) = ptrace::info(pid) else {
            return;
        };
        let Some((what, word)) = self.meaning(&info) else {
            self.seen.gaps.insert(Gap::ForeignCalls);
            return;
        };
        let mut arguments = info.arguments();
        if word == 4 {
            arguments = arguments.map(|argument| argument & 0xFFFF_FFFF);
        }
        let pending = match what {
            What::Exec { folder, path } => {
                let asked = places::named(pid, folder_of(folder, &arguments), arguments[path]);
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.asked = asked;
                }
                None
            }
            What::Bind => bind(pid, arguments[1], arguments[2]),
            What::Sockets => socketcall(pid, &arguments),
            _ => {
                let whose = (pid, self.process(pid));
                let clock = self
                    .timing
                    .begins(whose, (what, word), &arguments, &mut self.seen);
                let clock = clock.map(Pending::Clock);
                clock.or_else(|| change(pid, what, &arguments))
            }
        };
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.pending = pending;
        }
    }

    fn meaning(&self, info: &Info) -> Option<(What, usize)> {
        let abi = self.abis.iter().find(|abi| abi.arch == info.arch)?;
        let row = abi
            .rows
            .iter()
            .find(|row| u64::from(row.number) == info.number())?;
        Some((row.what, abi.word))
    }

    fn ends(&mut self, pid: pid_t) {
        let pending = self
            .tasks
            .get_mut(&pid)
            .and_then(|task| task.pending.take());
        let (Some(pending), Some(info)) = (pending, ptrace::info(pid)) else {
            return;
        };
        let result = info.result();
        let failed = (-4095..0).contains(&result);
        match pending {
            Pending::Clock(waiting) => {
                let whose = (pid, self.process(pid));
                self.timing.ends(whose, waiting, failed);
            }
            _ if failed => {}
            Pending::Open { way } => match (places::opened(pid, result), way) {
                (Some(path), Some(way)) => self.seen.written(path, way),
                (Some(path), None) => self.seen.read(path),
                (None, _) => {}
            },
            Pending::Map => {
                let start = result as u64;
                self.look_now_and_then(pid, start, start + 1);
            }
            Pending::Protect { first, last } => self.look_now_and_then(pid, first, last),
            Pending::Change { path, way } => self.seen.written(path, way),
            Pending::Key(key) => {
                let path = format!("System V key {key:#x}");
                self.seen.written(path, Way::Opened);
            }
        }
    }
}

fn is_stop(signal: c_int) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

pub(super) fn outcome(status: c_int) -> (Option<i32>, Option<i32>) {
    let exited = libc::WIFEXITED(status);
    let killed = libc::WIFSIGNALED(status);
    (
        exited.then(|| libc::WEXITSTATUS(status)),
        killed.then(|| libc::WTERMSIG(status)),
    )
}

/// The process that a thread belongs to.
fn process_of(pid: pid_t) -> pid_t {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|text| text.trim().parse().ok())
        .unwrap_or(pid)
}
