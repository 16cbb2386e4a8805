//! One variant in one execution: set up, its runner (the batch program, or the load generator),
//! its totals, and its end.

use crate::activity::Observer;
use crate::commands::launch::{Keep, Launch, Names, Process};
use crate::commands::scratch;
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::processes::process_trees::ProcessTrees;
use crate::processes::procfs::Footprint;
use crate::processes::usage::Usage;
use crate::run_state::RunState;
use crate::totals::{Printed, Reading, Total};
use ensign_protocol::records::Mapped;
use ensign_protocol::records::{Reason, Role};
use ensign_protocol::request;
use ensign_protocol::Code;
use runner::Runner;
use sampling::Sampler;
use std::collections::BTreeMap;
use std::path::PathBuf;

mod copies;
mod driven;
mod failing;
mod fillers;
mod looking;
mod readings;
mod runner;
pub(crate) mod sampling;

/// The variable that moves the stack; its name says nothing of a measurement.
const PADDING: &str = "PADDING";

/// How far a variant has come in an execution.
enum State {
    /// What it uses counts.
    Measured,
    /// Its totals are known. It may run again beside others, uncounted, unless it failed at that.
    Finished { total: Box<Total>, fills: bool },
    /// It failed, and takes no further part in the race.
    Out,
}

pub(crate) struct Variant<'a> {
    pub spec: &'a request::Variant,
    pub tree: usize,
    pub names: Names,
    /// The variant's own copy of its executable, made once per run.
    program: Option<PathBuf>,
    /// The variant's own copy of its files, made once per run.
    files: Option<PathBuf>,
    padding: Option<usize>,
    pub server: Option<Process>,
    runner: Runner,
    /// CPU time of the threads that drive it.
    driven: Usage,
    base: Reading,
    base_footprint: Footprint,
    pub last: Reading,
    wall_ns: u64,
    /// How long others had its CPU in its slices, where the machine tells.
    cpu_wait_ns: Option<u64>,
    slices: u64,
    state: State,
    pub observer: Observer,
    /// What was seen mapped for execution, and at which look last.
    pub mapped: BTreeMap<Mapped, u32>,
    /// How often it was looked at in this execution.
    pub looks: u32,
    pub sampler: Sampler,
}

impl<'a> Variant<'a> {
    pub(crate) fn new(
        spec: &'a request::Variant,
        process_trees: &mut ProcessTrees,
    ) -> Result<Variant<'a>, Halt> {
        Ok(Variant {
            spec,
            tree: process_trees.add_tree(spec.load.is_some(), &spec.program.limits)?,
            names: Names::default(),
            program: None,
            files: None,
            padding: None,
            server: None,
            runner: Runner::Nothing,
            driven: Usage::default(),
            base: Reading::default(),
            base_footprint: Footprint::default(),
            last: Reading::default(),
            wall_ns: 0,
            cpu_wait_ns: None,
            slices: 0,
            state: State::Measured,
            observer: Observer::default(),
            mapped: BTreeMap::new(),
            looks: 0,
            sampler: Sampler::default(),
        })
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        Some(&self.spec.name)
    }

    fn is_server(&self) -> bool {
        self.spec.load.is_some()
    }

    fn runner_group(&self) -> Group {
        if self.is_server() {
            Group::Load
        } else {
            Group::Main
        }
    }

    /// A fresh execution: nothing of the last one stays but the copy of the executable.
    pub(crate) fn begin(
        &mut self,
        run_state: &mut RunState,
        padding: Option<usize>,
    ) -> Result<(), Halt> {
        self.state = State::Measured;
        self.observer = Observer::default();
        self.wall_ns = 0;
        self.cpu_wait_ns = None;
        self.slices = 0;
        self.mapped.clear();
        self.looks = 0;
        self.sampler = Sampler::default();
        self.driven = Usage::default();
        self.padding = padding;
        self.own_files(run_state)?;
        let tmp = run_state.variant_tmp(self.tree)?;
        self.names = Names {
            variant: Some(self.spec.name.clone()),
            port: None,
            tmp: tmp.to_string_lossy().into_owned(),
            files: (self.files.as_ref()).map(|path| path.to_string_lossy().into_owned()),
        };
        Ok(())
    }

    pub(crate) fn prepare(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        run_state.process_trees.tree(self.tree).thaw()?;
        for process in &self.spec.prepare {
            run_state.run_aside(process, &self.names, Role::Prepare, self.tree)?;
        }
        Ok(())
    }

    /// After the execution; what they need is still there.
    pub(crate) fn clean_up(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        if self.spec.cleanup.is_empty() || self.names.tmp.is_empty() {
            return Ok(());
        }
        run_state.process_trees.tree(self.tree).thaw()?;
        for process in &self.spec.cleanup {
            run_state.run_aside(process, &self.names, Role::Cleanup, self.tree)?;
        }
        Ok(())
    }

    pub(crate) fn remove_tmp(&mut self) {
        if !self.names.tmp.is_empty() {
            scratch::remove(&PathBuf::from(std::mem::take(&mut self.names.tmp)));
        }
    }

    fn extra_env(&self) -> Vec<(String, String)> {
        let padding = self
            .padding
            .map(|length| (PADDING.into(), "x".repeat(length)));
        padding.into_iter().collect()
    }

    /// Starts the measured program or server.
    pub(crate) fn start_main(
        &mut self,
        run_state: &mut RunState,
        keep: Keep,
    ) -> Result<Process, Halt> {
        let program = self.own_program(run_state)?;
        let role = if self.is_server() {
            Role::Server
        } else {
            Role::Program
        };
        let mut process = run_state.launch(Launch {
            spec: &self.spec.program,
            names: &self.names,
            role,
            tree: self.tree,
            group: Group::Main,
            program: Some(&program),
            keep,
            reads_output: !self.is_server() && self.spec.reads_output(),
            extra_env: self.extra_env(),
        })?;
        if !run_state.counters.names.is_empty() {
            // A program that has already ended is told of by its outcome.
            process.counters = run_state
                .counters
                .attach(process.child.pid)
                .unwrap_or_default();
        }
        Ok(process)
    }

    fn start_load(
        &mut self,
        run_state: &mut RunState,
        load: &request::Process,
        keep: Keep,
    ) -> Result<Process, Halt> {
        run_state.launch(Launch {
            spec: load,
            names: &self.names,
            role: Role::Load,
            tree: self.tree,
            group: Group::Load,
            program: None,
            keep,
            reads_output: true,
            extra_env: self.extra_env(),
        })
    }

    /// A fresh runner in the frozen variant; after the finish it is a filler.
    pub(crate) fn start_runner(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let filler = self.is_finished();
        if filler && !self.is_server() && !self.spec.prepare.is_empty() {
            match self.prepare(run_state) {
                Err(Halt::Failed(failure)) => {
                    self.fill_no_more(run_state, &format!(": {}", failure.text));
                    return Ok(());
                }
                prepared => prepared?,
            }
        }
        run_state.process_trees.tree(self.tree).freeze()?;
        let spec = self.spec;
        self.runner = Runner::Process(match spec.load_process() {
            Some(load) => {
                let keep = if filler {
                    Keep::Nothing
                } else {
                    Keep::Everything
                };
                self.start_load(run_state, load, keep)?
            }
            None => {
                let keep = if filler { Keep::Nothing } else { Keep::Errors };
                self.start_main(run_state, keep)?
            }
        });
        self.last = self.reading(run_state)?;
        if !filler {
            self.count_from_here(run_state);
        }
        Ok(())
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.total().is_some()
    }

    /// What it used up to its finish.
    pub(crate) fn total(&self) -> Option<&Total> {
        match &self.state {
            State::Finished { total, .. } => Some(total),
            State::Measured | State::Out => None,
        }
    }

    fn finish(&mut self, total: Total) {
        self.state = State::Finished {
            total: Box::new(total),
            fills: self.spec.fills,
        };
    }

    pub(crate) fn has_runner(&self) -> bool {
        self.runner.process().is_some()
    }

    /// The processes that have to live while it runs.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.runner.process().into_iter().chain(&self.server)
    }

    /// How long the variant may run before a deadline.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        self.processes().filter_map(Process::left_ns).min()
    }

    /// Books a slice, in which the variant may have finished. Its readings are in `last`.
    pub(crate) fn ran(&mut self, run_state: &mut RunState, wall_ns: u64) -> Result<(), Halt> {
        let runner = self.runner.process_mut().into_iter();
        for process in runner.chain(&mut self.server) {
            process.active_ns += wall_ns;
        }
        if !self.is_finished() {
            self.wall_ns += wall_ns;
            self.slices += 1;
        }
        let ended = |process: &Process| run_state.process_trees.has_ended(process.child.pid);
        if let Some(server) = self.server.take_if(|server| ended(server)) {
            return Err(self.server_died(run_state, server));
        }
        if let Some(runner) = self.runner.take_process_if(ended) {
            return self.runner_ended(run_state, runner);
        }
        self.check_deadlines(run_state)
    }

    fn server_died(&mut self, run_state: &mut RunState, server: Process) -> Halt {
        run_state.process_trees.kill(self.tree, Group::Load);
        let concluded = run_state.conclude(server, self.name(), Reason::Exited);
        concluded.err().unwrap_or_else(|| {
            let text = format!("variant {:?}: the server ended", self.spec.name);
            Halt::failed(Code::Crashed, &self.spec.name, text)
        })
    }

    fn check_deadlines(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        if let Some(server) = self.server.take_if(|server| server.is_overdue()) {
            run_state.process_trees.kill(self.tree, Group::Main);
            return run_state.conclude(server, self.name(), Reason::Deadline);
        }
        let Some(runner) = self.runner.take_process_if(Process::is_overdue) else {
            return Ok(());
        };
        run_state.process_trees.kill(self.tree, self.runner_group());
        if self.is_finished() {
            self.end_filling();
            return self.filler_ended(run_state, runner);
        }
        run_state.conclude(runner, self.name(), Reason::Deadline)
    }

    fn runner_ended(&mut self, run_state: &mut RunState, runner: Process) -> Result<(), Halt> {
        if self.is_finished() {
            self.filler_ended(run_state, runner)?;
            run_state.process_trees.kill(self.tree, self.runner_group());
            return Ok(());
        }
        let exit = run_state
            .process_trees
            .exit(runner.child.pid)
            .unwrap_or_default();
        let total = self.totals(run_state, &exit);
        run_state.end_left_running(self.tree, self.runner_group(), self.name());
        let printed = Printed::of(self.spec, &runner);
        let (operations, score) = (printed.operations(&self.names), printed.score());
        let (scores, report) = (printed.scores(), printed.report(&self.names));
        let digest = self.digest(&runner);
        run_state.conclude(runner, self.name(), Reason::Exited)?;
        self.finish(Total {
            operations: operations?,
            score: score?,
            scores,
            report: report?,
            digest,
            ..total
        });
        Ok(())
    }

    fn digest(&self, runner: &Process) -> Option<String> {
        let asked = !self.is_server() && self.spec.program.digest;
        asked.then(|| {
            runner.stdout.finish();
            runner.stdout.digest()
        })?
    }

    /// Ends a filler that is still under way, and closes the connections of a drive.
    pub(crate) fn end_runner(&mut self, run_state: &mut RunState) {
        if let Runner::Process(mut runner) = self.runner.take() {
            run_state.process_trees.kill(self.tree, self.runner_group());
            let reason = if self.is_finished() {
                Reason::Filler
            } else {
                Reason::Ended
            };
            let outcome = run_state.outcome(&mut runner, self.name(), reason);
            run_state.outcomes.push(outcome);
        }
    }
}
