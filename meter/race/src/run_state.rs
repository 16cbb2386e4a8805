//! What all parts of a run share: its processes, its folder, its way to tell.

use crate::activity::Observer;
use crate::commands::counters::Available;
use crate::commands::drain::Drain;
use crate::commands::launch::{self, Keep, Launch, Names, Outlets, Process};
use crate::commands::scratch::Scratch;
use crate::commands::tmp_limit::TmpLimit;
use crate::commands::verdict::verdict;
use crate::emitter::Emitter;
use crate::halt::{Failure, Halt};
use crate::limited::Waited;
use crate::processes::freezer::Group;
use crate::processes::process_trees::{Kind, ProcessTrees};
use crate::processes::procfs;
use crate::processes::spawn::{self, Command, Inherited, Resource};
use crate::processes::user::User;
use crate::run::{Run, MARKER};
use ensign_host::wait::Waiter;
use ensign_host::{clock, cpus};
use ensign_protocol::records::{Outcome, Reason, Record, Role, VariantFailure, Warning};
use ensign_protocol::request::{self, Containment};
use ensign_protocol::WarningCode;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Names the variant of a process; of one width, because the environment's length moves the stack.
const VARIANT_MARKER: &str = "ENSIGN_VARIANT";

pub(crate) struct RunState {
    pub run_id: String,
    pub waiter: Waiter,
    pub process_trees: ProcessTrees,
    pub scratch: Scratch,
    pub out: Emitter,
    pub counters: Available,
    /// Of the execution under way, from 0.
    pub execution: u64,
    pub first_spawn_ns: Option<u64>,
    /// Whether the states of tasks are looked at while a variant runs.
    pub observes: bool,
    /// Whether it is read where tasks stand at the end of a slice.
    pub samples_code: bool,
    pub inherit_fd: Option<i32>,
    /// The `{tmp}` of each tree.
    pub tmps: Vec<PathBuf>,
    pub tmp_limit: Option<TmpLimit>,
    user: Option<User>,
    marks: bool,
    drain: Option<Drain>,
    inherited: Inherited,
    cpus: Option<libc::cpu_set_t>,
    base_env: Vec<(OsString, OsString)>,
    warned: HashSet<(WarningCode, Option<String>)>,
    pub warnings: Vec<Warning>,
    /// What ended variants in the execution under way, in order.
    pub failures: Vec<Failure>,
    pub outcomes: Vec<Outcome>,
}

impl RunState {
    pub(crate) fn new(
        run: &Run,
        kind: Kind,
        waiter: Waiter,
        out: Emitter,
        counters: &[String],
        containment: &Containment,
    ) -> Result<RunState, Halt> {
        let user = containment.user.and_then(|ids| User::new(ids.uid, ids.gid));
        let place = run.scratch.display();
        let scratch = Scratch::in_folder(&run.scratch, user)
            .map_err(|error| Halt::system(format!("cannot use {place}: {error}")))?;
        Ok(RunState {
            run_id: run.id.clone(),
            waiter,
            process_trees: ProcessTrees::new(kind, run.legacy.clone()),
            tmps: Vec::new(),
            tmp_limit: (containment.tmp_bytes).map(|most| TmpLimit::new(most, &scratch.dir)),
            user,
            marks: containment.marks,
            scratch,
            out,
            counters: Available::probe(counters),
            execution: 0,
            first_spawn_ns: None,
            observes: false,
            samples_code: false,
            inherit_fd: None,
            drain: None,
            inherited: sharpen_timers(),
            cpus: cpus::own_cpus(),
            base_env: std::env::vars_os().collect(),
            warned: HashSet::new(),
            warnings: Vec::new(),
            failures: Vec::new(),
            outcomes: Vec::new(),
        })
    }

    /// Keeps a warning for the end of the execution; once per code and variant.
    pub(crate) fn warn(&mut self, code: WarningCode, variant: Option<&str>, text: String) {
        self.warn_of_ended(code, variant, text, Vec::new());
    }

    /// As `warn`, of processes that were ended for it.
    pub(crate) fn warn_of_ended(
        &mut self,
        code: WarningCode,
        variant: Option<&str>,
        text: String,
        ended: Vec<String>,
    ) {
        let variant = variant.map(String::from);
        if self.warned.insert((code, variant.clone())) {
            self.warnings.push(Warning {
                code,
                execution: Some(self.execution),
                variant,
                text,
                ended,
            });
        }
    }

    /// Starts a process; it stands still where its tree is frozen.
    pub(crate) fn launch(&mut self, mut launch: Launch) -> Result<Process, Halt> {
        if self.marks {
            let variant = format!("{:03}", launch.tree);
            let marks = [
                (MARKER.into(), self.run_id.clone()),
                (VARIANT_MARKER.into(), variant),
            ];
            launch.extra_env.extend(marks);
        }
        self.start_drain()?;
        let outlets = Outlets {
            drain: self.drain.as_ref().expect("it was just started"),
            inherit_fd: self.inherit_fd,
            user: self.user,
            file_bytes: self.tmp_limit.as_ref().map(TmpLimit::most),
        };
        let prepared = launch::prepare(&launch, &self.base_env, &outlets)?;
        let (mut command, argv, sinks) = prepared;
        command.cpus = command.cpus.or(self.cpus);
        command.entrances = self.process_trees.entrances(launch.tree);
        self.limit_tasks(launch.tree, &mut command);
        let admission = self.process_trees.tree(launch.tree).admission(launch.group);
        self.first_spawn_ns.get_or_insert_with(clock::now_ns);
        let child = spawn::spawn(&command, admission, self.inherited)?;
        self.process_trees
            .admitted(launch.tree, launch.group, child.pid)?;
        Ok(Process::new(&launch, argv, sinks, child))
    }

    fn limit_tasks(&mut self, tree: usize, command: &mut Command) {
        let own = rustix::process::getuid().as_raw();
        let uid = command.user.map_or(own, |user| user.uid);
        let asked = |&(resource, _): &(Resource, u64)| resource == libc::RLIMIT_NPROC;
        if command.limits.iter().any(asked) {
            return;
        }
        if let Some(most) = self.process_trees.most_tasks(tree, uid) {
            command.limits.push((libc::RLIMIT_NPROC, most));
        }
    }

    /// The process that takes output begins with the first command, on the meter's CPUs.
    fn start_drain(&mut self) -> Result<(), Halt> {
        if self.drain.is_none() {
            let drain = Drain::start(self.process_trees.drained.clone())?;
            self.process_trees.keep_out(drain.pid);
            self.drain = Some(drain);
        }
        Ok(())
    }

    /// Runs a command beside the measured ones to its end; a failure halts.
    pub(crate) fn run_aside(
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
        self.conclude(process, names.variant.as_deref(), reason)
    }

    /// Waits for a process that has run freely since its fork; kills its group at its deadline.
    pub(crate) fn await_exit(&mut self, process: &mut Process) -> Result<Reason, Halt> {
        self.await_observed_exit(process, None)
    }

    /// As `await_exit`, with looks at its tasks.
    pub(crate) fn await_observed_exit(
        &mut self,
        process: &mut Process,
        mut observer: Option<&mut Observer>,
    ) -> Result<Reason, Halt> {
        let started = process.child.forked_ns;
        let until = process.left_ns().map(|left| started + left);
        let fds = [process.child.pidfd.as_raw_fd()];
        let place = (process.tree, false);
        let waited = self.wait_limited(process.tree, until, |run_state, until| {
            let (waiter, process_trees) = (&run_state.waiter, &mut run_state.process_trees);
            match observer.as_mut() {
                None => Ok(waiter.readable(&fds, until)?),
                Some(observer) => observer.watch(waiter, process_trees, place, &fds, until),
            }
        })?;
        process.active_ns += clock::now_ns() - started;
        let reason = match waited {
            Waited::Ready => Reason::Exited,
            Waited::TimeOut => Reason::Deadline,
            Waited::Beyond(limit) => limit.reason(),
        };
        self.process_trees.look_last(process.tree);
        if reason != Reason::Exited {
            self.process_trees.kill(process.tree, process.group);
        }
        self.process_trees.collect();
        Ok(reason)
    }

    /// Keeps the outcome of an ended process; a failure halts.
    pub(crate) fn conclude(
        &mut self,
        mut process: Process,
        variant: Option<&str>,
        reason: Reason,
    ) -> Result<(), Halt> {
        let outcome = self.outcome(&mut process, variant, reason);
        let most = |limit| self.most(process.tree, limit);
        let failure = verdict(&outcome, &mut process.child, process.ignore_failure, most);
        self.outcomes.push(outcome);
        failure.map_or(Ok(()), |failure| Err(Halt::Failed(failure)))
    }

    /// The outcome of a process that has ended, or is made to end now.
    pub(crate) fn outcome(
        &mut self,
        process: &mut Process,
        variant: Option<&str>,
        reason: Reason,
    ) -> Outcome {
        let pid = process.child.pid;
        self.process_trees.collect();
        if !self.process_trees.has_ended(pid) {
            crate::processes::kill::kill(pid, libc::SIGKILL);
            ensign_host::wait::readable_within(process.child.pidfd.as_raw_fd(), 1_000_000_000);
            self.process_trees.collect();
        }
        let exit = self.process_trees.take_exit(pid).unwrap_or_default();
        let failed = reason == Reason::Exited && exit.code() != Some(0);
        let met = self.limits_met(process.tree, reason, failed);
        // What failed beyond a limit failed by it.
        let reason = match met.first() {
            Some(limit) if failed => limit.reason(),
            _ => reason,
        };
        process.outcome((self.execution, variant), &exit, reason, met)
    }

    /// Writes what was kept during the execution.
    pub(crate) fn tell(&mut self) -> Result<(), Halt> {
        for outcome in std::mem::take(&mut self.outcomes) {
            self.out.put(&self.waiter, &Record::Outcome(&outcome))?;
        }
        for warning in std::mem::take(&mut self.warnings) {
            self.out.put(&self.waiter, &Record::Warning(&warning))?;
        }
        for failure in std::mem::take(&mut self.failures) {
            let record = VariantFailure {
                execution: self.execution,
                variant: failure.variant.unwrap_or_default(),
                code: failure.code,
                text: failure.text,
                exit: failure.exit,
                signal: failure.signal,
            };
            self.out.put(&self.waiter, &Record::Failure(&record))?;
        }
        Ok(())
    }

    /// Processes that a finished program left behind: said, and ended.
    pub(crate) fn end_left_running(&mut self, tree: usize, group: Group, variant: Option<&str>) {
        const GRACE_NS: u64 = 10_000_000;
        const PAUSE_NS: u64 = 500_000;
        let until = clock::now_ns() + GRACE_NS;
        // The rest of a pipeline may just be about to end: a moment for it.
        let mut living = self.process_trees.tree(tree).members(group);
        let frozen = self.process_trees.tree(tree).is_frozen();
        if !living.is_empty() && frozen {
            let _ = self.process_trees.tree(tree).thaw();
        }
        while !living.is_empty() && clock::now_ns() < until {
            clock::sleep_ns(PAUSE_NS);
            self.process_trees.collect();
            living = self.process_trees.tree(tree).members(group);
        }
        if !living.is_empty() {
            let ended: Vec<String> = living.iter().map(|&pid| procfs::name(pid)).collect();
            let named = living.iter().zip(&ended);
            let named: Vec<String> = named.map(|(pid, name)| format!("{name} ({pid})")).collect();
            let text = format!("ended what was left running: {}", named.join(", "));
            self.warn_of_ended(WarningCode::LeftRunning, variant, text, ended);
        }
        self.process_trees.kill(tree, group);
        if frozen && !self.process_trees.tree(tree).is_frozen() {
            let _ = self.process_trees.tree(tree).freeze();
        }
        for name in self.process_trees.tree(tree).escaped() {
            self.warn(
                WarningCode::Escape,
                variant,
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
