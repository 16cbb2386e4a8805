//! What all parts of a run share: its processes, its folder, its way to tell.

use crate::activity::Observer;
use crate::clock;
use crate::counters::Available;
use crate::drain::Drain;
use crate::forest::{Forest, Kind};
use crate::freezer::Group;
use crate::halt::{Failure, Halt};
use crate::launch::{self, Keep, Launch, Names, Outlets, Process};
use crate::records::{ArmFailure, Emitter, Outcome, Reason, Record, Role, Warning};
use crate::request;
use crate::run::{Run, MARKER};
use crate::scratch::Scratch;
use crate::spawn::{self, Inherited};
use crate::wait::Waiter;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::AsRawFd;

/// Names the arm of a process; of one width, because the environment's length moves the stack.
const ARM_MARKER: &str = "ENSIGN_ARM";

pub struct Stage {
    pub run_id: String,
    pub waiter: Waiter,
    pub forest: Forest,
    pub scratch: Scratch,
    pub out: Emitter,
    pub counters: Available,
    /// Of the execution under way, from 0.
    pub execution: u64,
    pub first_spawn_ns: Option<u64>,
    /// Whether the states of tasks are looked at while an arm runs.
    pub observes: bool,
    pub inherit_fd: Option<i32>,
    drain: Option<Drain>,
    inherited: Inherited,
    cpus: Option<libc::cpu_set_t>,
    base_env: Vec<(OsString, OsString)>,
    warned: HashSet<(&'static str, Option<String>)>,
    pub warnings: Vec<Warning>,
    /// What ended arms in the execution under way, in order.
    pub failures: Vec<Failure>,
    pub outcomes: Vec<Outcome>,
}

impl Stage {
    pub fn new(
        run: &Run,
        kind: Kind,
        waiter: Waiter,
        out: Emitter,
        counters: &[String],
    ) -> Result<Stage, Halt> {
        let place = run.scratch.display();
        let scratch = Scratch::create(&run.scratch)
            .map_err(|error| Halt::system(format!("cannot make {place}: {error}")))?;
        Ok(Stage {
            run_id: run.id.clone(),
            waiter,
            forest: Forest::new(kind),
            scratch,
            out,
            counters: Available::probe(counters),
            execution: 0,
            first_spawn_ns: None,
            observes: false,
            inherit_fd: None,
            drain: None,
            inherited: sharpen_timers(),
            cpus: spawn::own_cpus(),
            base_env: std::env::vars_os().collect(),
            warned: HashSet::new(),
            warnings: Vec::new(),
            failures: Vec::new(),
            outcomes: Vec::new(),
        })
    }

    /// Keeps a warning for the end of the execution; once per code and arm.
    pub fn warn(&mut self, code: &'static str, arm: Option<&str>, text: String) {
        let arm = arm.map(String::from);
        if self.warned.insert((code, arm.clone())) {
            self.warnings.push(Warning {
                code,
                execution: Some(self.execution),
                arm,
                text,
            });
        }
    }

    /// Starts a process; it stands still where its tree is frozen.
    pub fn launch(&mut self, mut launch: Launch) -> Result<Process, Halt> {
        let marker = (MARKER.to_string(), self.run_id.clone());
        launch.extra_env.push(marker);
        launch
            .extra_env
            .push((ARM_MARKER.into(), format!("{:03}", launch.tree)));
        self.start_drain()?;
        let outlets = Outlets {
            drain: self.drain.as_ref().expect("it was just started"),
            inherit_fd: self.inherit_fd,
        };
        let prepared = launch::prepare(&launch, &self.base_env, &outlets)?;
        let (mut command, argv, sinks) = prepared;
        command.cpus = command.cpus.or(self.cpus);
        let admission = self.forest.tree(launch.tree).admission(launch.group);
        self.first_spawn_ns.get_or_insert_with(clock::now_ns);
        let child = spawn::spawn(&command, admission, self.inherited)?;
        self.forest.admitted(launch.tree, launch.group, child.pid);
        Ok(Process::new(&launch, argv, sinks, child))
    }

    /// The process that takes output begins with the first command, on the meter's CPUs.
    fn start_drain(&mut self) -> Result<(), Halt> {
        if self.drain.is_none() {
            let drain = Drain::start(self.forest.drained.clone())?;
            self.forest.keep_out(drain.pid);
            self.drain = Some(drain);
        }
        Ok(())
    }

    /// Runs a command beside the measured ones to its end; a failure halts.
    pub fn run_aside(
        &mut self,
        spec: &request::Process,
        names: &Names,
        role: Role,
        tree: usize,
    ) -> Result<(), Halt> {
        let mut process = self.launch(Launch {
            spec,
            names,
            role,
            tree,
            group: Group::Aside,
            program: None,
            keep: Keep::Everything,
            reads_output: false,
            extra_env: Vec::new(),
        })?;
        let reason = self.await_exit(&mut process)?;
        self.conclude(process, names.arm.as_deref(), reason)
    }

    /// Waits for a process that has run freely since its fork; kills its group at its deadline.
    pub fn await_exit(&mut self, process: &mut Process) -> Result<Reason, Halt> {
        self.await_observed_exit(process, None)
    }

    /// As `await_exit`, with looks at its tasks.
    pub fn await_observed_exit(
        &mut self,
        process: &mut Process,
        observer: Option<&mut Observer>,
    ) -> Result<Reason, Halt> {
        let started = process.child.forked_ns;
        let until = process.left_ns().map(|left| started + left);
        let fds = [process.child.pidfd.as_raw_fd()];
        let ready = match observer {
            None => self.waiter.readable(&fds, until)?,
            Some(observer) => {
                let (waiter, forest) = (&self.waiter, &mut self.forest);
                observer.watch(waiter, forest, (process.tree, false), &fds, until)?
            }
        };
        process.active_ns += clock::now_ns() - started;
        if ready.is_none() {
            self.forest.kill(process.tree, process.group);
        }
        self.forest.collect();
        Ok(if ready.is_some() {
            Reason::Exited
        } else {
            Reason::Deadline
        })
    }

    /// Keeps the outcome of an ended process; a failure halts.
    pub fn conclude(
        &mut self,
        mut process: Process,
        arm: Option<&str>,
        reason: Reason,
    ) -> Result<(), Halt> {
        let outcome = self.outcome(&mut process, arm, reason);
        let failure = launch::verdict(&outcome, &mut process);
        self.outcomes.push(outcome);
        failure.map_or(Ok(()), |failure| Err(Halt::Failed(failure)))
    }

    /// The outcome of a process that has ended, or is made to end now.
    pub fn outcome(&mut self, process: &mut Process, arm: Option<&str>, reason: Reason) -> Outcome {
        let pid = process.child.pid;
        self.forest.collect();
        if !self.forest.has_ended(pid) {
            crate::run::kill(pid, libc::SIGKILL);
            crate::wait::readable_within(process.child.pidfd.as_raw_fd(), 1_000_000_000);
            self.forest.collect();
        }
        let exit = self.forest.take_exit(pid).unwrap_or_default();
        process.outcome((self.execution, arm), &exit, reason)
    }

    /// Writes what was kept during the execution.
    pub fn tell(&mut self) -> Result<(), Halt> {
        for outcome in std::mem::take(&mut self.outcomes) {
            self.out.put(&self.waiter, &Record::Outcome(&outcome))?;
        }
        for warning in std::mem::take(&mut self.warnings) {
            self.out.put(&self.waiter, &Record::Warning(&warning))?;
        }
        for failure in std::mem::take(&mut self.failures) {
            let record = ArmFailure {
                execution: self.execution,
                arm: failure.arm.unwrap_or_default(),
                code: failure.code.name(),
                text: failure.text,
                exit: failure.exit,
                signal: failure.signal,
            };
            self.out.put(&self.waiter, &Record::Failure(&record))?;
        }
        Ok(())
    }

    /// Processes that a finished program left behind: said, and ended.
    pub fn end_left_running(&mut self, tree: usize, group: Group, arm: Option<&str>) {
        const GRACE_NS: u64 = 10_000_000;
        const PAUSE_NS: u64 = 500_000;
        let until = clock::now_ns() + GRACE_NS;
        // The rest of a pipeline may just be about to end: a moment for it.
        let mut living = self.forest.tree(tree).members(group);
        let frozen = self.forest.tree(tree).is_frozen();
        if !living.is_empty() && frozen {
            let _ = self.forest.tree(tree).thaw();
        }
        while !living.is_empty() && clock::now_ns() < until {
            clock::sleep_ns(PAUSE_NS);
            self.forest.collect();
            living = self.forest.tree(tree).members(group);
        }
        if !living.is_empty() {
            let name = |&pid: &libc::pid_t| format!("{} ({pid})", crate::procfs::name(pid));
            let names: Vec<String> = living.iter().map(name).collect();
            let text = format!("ended what was left running: {}", names.join(", "));
            self.warn("left-running", arm, text);
        }
        self.forest.kill(tree, group);
        if frozen && !self.forest.tree(tree).is_frozen() {
            let _ = self.forest.tree(tree).freeze();
        }
        for name in self.forest.tree(tree).escaped() {
            self.warn(
                "escape",
                arm,
                format!("{name} left its process tree; it was found again"),
            );
        }
    }
}

/// Lets timers of this process fire on time; gives what children are to have instead.
fn sharpen_timers() -> Inherited {
    // SAFETY: no memory is involved.
    unsafe {
        let slack = libc::prctl(libc::PR_GET_TIMERSLACK);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        Inherited {
            timer_slack_ns: slack.max(1) as libc::c_ulong,
        }
    }
}
