//! One variant in one execution: set up, its runner (the batch program, or the load generator),
//! its totals, and its end.

use crate::activity::Observer;
use crate::commands::launch::{self, Keep, Launch, Names, Process};
use crate::commands::lookup;
use crate::commands::scratch;
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::processes::process_trees::ProcessTrees;
use crate::processes::procfs::Footprint;
use crate::processes::usage::{Exit, Usage};
use crate::run_state::RunState;
use crate::totals::{Printed, Reading, Total};
use ensign_load::Driver;
use ensign_protocol::records::Mapped;
use ensign_protocol::records::{Reason, Role};
use ensign_protocol::request;
use ensign_protocol::Code;
use std::collections::BTreeSet;
use std::path::PathBuf;

mod driven;
mod failing;
mod looking;

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
    pub runner: Option<Process>,
    driver: Option<Driver>,
    /// CPU time of the threads that drive it.
    driven: Usage,
    base: Reading,
    base_footprint: Footprint,
    pub last: Reading,
    wall_ns: u64,
    slices: u64,
    pub total: Option<Total>,
    pub observer: Observer,
    /// A filler that failed is not started again.
    fills: bool,
    /// It failed, and takes no further part.
    out: bool,
    /// What was seen mapped for execution.
    pub mapped: BTreeSet<Mapped>,
}

impl<'a> Variant<'a> {
    pub(crate) fn new(
        spec: &'a request::Variant,
        process_trees: &mut ProcessTrees,
    ) -> Result<Variant<'a>, Halt> {
        Ok(Variant {
            spec,
            tree: process_trees.add_tree(spec.load.is_some())?,
            names: Names::default(),
            program: None,
            files: None,
            padding: None,
            server: None,
            runner: None,
            driver: None,
            driven: Usage::default(),
            base: Reading::default(),
            base_footprint: Footprint::default(),
            last: Reading::default(),
            wall_ns: 0,
            slices: 0,
            total: None,
            observer: Observer::default(),
            fills: spec.fills,
            out: false,
            mapped: BTreeSet::new(),
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
        self.total = None;
        self.observer = Observer::default();
        self.fills = self.spec.fills;
        self.wall_ns = 0;
        self.slices = 0;
        self.mapped.clear();
        self.driven = Usage::default();
        self.padding = padding;
        self.own_files(run_state)?;
        let tmp = run_state
            .scratch
            .variant_tmp(run_state.execution, self.tree)?;
        self.names = Names {
            variant: Some(self.spec.name.clone()),
            port: None,
            tmp: tmp.to_string_lossy().into_owned(),
            files: (self.files.as_ref()).map(|path| path.to_string_lossy().into_owned()),
        };
        Ok(())
    }

    /// The files that the variant's program runs with: their own inodes, and the layout that they had.
    fn own_files(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let Some(spec) = self.spec.files.as_ref().filter(|_| self.files.is_none()) else {
            return Ok(());
        };
        let failed = |text: String| Halt::failed(Code::Request, &self.spec.name, text);
        let copy = (run_state.scratch.copy_files(self.tree, spec))
            .map_err(|error| failed(format!("cannot copy {}: {error}", spec.folders.join(", "))))?;
        if scratch::forbids_execution(&copy) {
            let [only] = spec.folders.as_slice() else {
                let text = "the scratch folder forbids execution; set TMPDIR to one that allows it";
                return Err(failed(text.into()));
            };
            let text = format!("{only} is used as it is: the scratch folder forbids execution");
            self.files = Some(PathBuf::from(only));
            run_state.warn("not-copied", self.name(), text);
            return Ok(());
        }
        self.files = Some(copy);
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
            crate::commands::scratch::remove(&PathBuf::from(std::mem::take(&mut self.names.tmp)));
        }
    }

    /// The file to execute: the variant's own copy where that is possible.
    fn own_program(&mut self, run_state: &mut RunState) -> Result<PathBuf, Halt> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let original = launch::resolve(&self.spec.program, &self.names)?;
        let mut program = original.clone();
        let is_copy = (self.files.as_ref()).is_some_and(|files| original.starts_with(files));
        if self.spec.copy_program && !is_copy {
            match lookup::why_not_copied(&original)? {
                Some(reason) => self.warn_not_copied(run_state, reason),
                None => {
                    let copy = run_state.scratch.copy_executable(self.tree, &original)?;
                    if lookup::may_execute(&copy) {
                        program = copy;
                    } else {
                        self.warn_not_copied(run_state, "the scratch folder forbids execution");
                    }
                }
            }
        }
        self.program = Some(program.clone());
        Ok(program)
    }

    fn warn_not_copied(&self, run_state: &mut RunState, reason: &str) {
        let program = &self.spec.program.argv[0];
        let text = format!("{program} runs from the original file: {reason}");
        run_state.warn("not-copied", self.name(), text);
    }

    fn extra_env(&self) -> Vec<(String, String)> {
        let padding = self
            .padding
            .map(|length| ("ENSIGN_PADDING".into(), "x".repeat(length)));
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
        self.runner = Some(match spec.load_process() {
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

    fn count_from_here(&mut self, run_state: &mut RunState) {
        self.base = self.last.clone();
        if self.is_server() {
            self.base_footprint = run_state.process_trees.footprint(self.tree, Group::Main);
        }
    }

    pub(crate) fn reading(&mut self, run_state: &mut RunState) -> Result<Reading, Halt> {
        let tree = run_state.process_trees.tree(self.tree);
        let mut reading = Reading {
            main: tree.usage(Group::Main)?,
            load: Usage::default(),
            cpu_wait_ns: tree.cpu_wait_ns(Group::Main),
            counters: Vec::new(),
        };
        if self.spec.drive().is_some() {
            reading.load = self.driven;
        } else if self.is_server() {
            reading.load = tree.usage(Group::Load)?;
        }
        let counted = if self.is_server() {
            &mut self.server
        } else {
            &mut self.runner
        };
        if let Some(process) = counted {
            process.counters.read(&mut reading.counters);
        }
        Ok(reading)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.total.is_some()
    }

    /// Whether it may run beside a variant that has not finished.
    pub(crate) fn fills(&self) -> bool {
        self.is_finished() && (self.fills || self.runner.is_some())
    }

    /// How long the variant may run before a deadline.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        let processes = [&self.runner, &self.server].into_iter().flatten();
        processes.filter_map(Process::left_ns).min()
    }

    /// Books a slice; true when the variant finished in it. Its readings are in `last`.
    pub(crate) fn ran(&mut self, run_state: &mut RunState, wall_ns: u64) -> Result<bool, Halt> {
        for process in [&mut self.runner, &mut self.server].into_iter().flatten() {
            process.active_ns += wall_ns;
        }
        if !self.is_finished() {
            self.wall_ns += wall_ns;
            self.slices += 1;
        }
        let ended = |process: &Option<Process>| {
            process
                .as_ref()
                .is_some_and(|process| run_state.process_trees.has_ended(process.child.pid))
        };
        if ended(&self.server) {
            return Err(self.server_died(run_state));
        }
        if ended(&self.runner) {
            return self.runner_ended(run_state);
        }
        self.check_deadlines(run_state)?;
        Ok(false)
    }

    fn server_died(&mut self, run_state: &mut RunState) -> Halt {
        run_state.process_trees.kill(self.tree, Group::Load);
        let server = self.server.take().expect("the caller saw it");
        let concluded = run_state.conclude(server, self.name(), Reason::Exited);
        concluded.err().unwrap_or_else(|| {
            let text = format!("variant {:?}: the server ended", self.spec.name);
            Halt::failed(Code::Crashed, &self.spec.name, text)
        })
    }

    fn check_deadlines(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let server_overdue = self.server.as_ref().is_some_and(Process::is_overdue);
        let runner_overdue = self.runner.as_ref().is_some_and(Process::is_overdue);
        if server_overdue {
            let server = self.server.take().expect("it is overdue");
            run_state.process_trees.kill(self.tree, Group::Main);
            return run_state.conclude(server, self.name(), Reason::Deadline);
        }
        if !runner_overdue {
            return Ok(());
        }
        let runner = self.runner.take().expect("it is overdue");
        run_state.process_trees.kill(self.tree, self.runner_group());
        if self.is_finished() {
            self.fills = false;
            return self.filler_ended(run_state, runner);
        }
        run_state.conclude(runner, self.name(), Reason::Deadline)
    }

    fn runner_ended(&mut self, run_state: &mut RunState) -> Result<bool, Halt> {
        let runner = self.runner.take().expect("the caller saw it");
        if self.is_finished() {
            self.filler_ended(run_state, runner)?;
            run_state.process_trees.kill(self.tree, self.runner_group());
            return Ok(false);
        }
        let exit = run_state
            .process_trees
            .exit(runner.child.pid)
            .unwrap_or_default();
        let total = self.totals(run_state, &exit);
        run_state.end_left_running(self.tree, self.runner_group(), self.name());
        let printed = Printed::of(self.spec, &runner);
        let (operations, score) = (printed.operations(&self.names), printed.score());
        let digest = self.digest(&runner);
        run_state.conclude(runner, self.name(), Reason::Exited)?;
        self.total = Some(Total {
            operations: operations?,
            score: score?,
            digest,
            ..total
        });
        Ok(true)
    }

    fn digest(&self, runner: &Process) -> Option<String> {
        let asked = !self.is_server() && self.spec.program.digest;
        asked.then(|| {
            runner.stdout.finish();
            runner.stdout.digest()
        })?
    }

    fn totals(&mut self, run_state: &mut RunState, exit: &Exit) -> Total {
        let mut footprint = run_state.process_trees.footprint(self.tree, Group::Main);
        footprint.join(run_state.process_trees.take_orphans(self.tree, Group::Main));
        if self.is_server() {
            footprint = footprint.since(self.base_footprint);
        } else {
            footprint.join(exit.footprint());
        }
        let counters = self.last.counters.iter().zip(&self.base.counters);
        Total {
            wall_ns: self.wall_ns,
            usage: self.last.main - self.base.main,
            load_cpu_ns: (self.last.load - self.base.load).cpu_ns,
            operations: None,
            footprint,
            slices: self.slices,
            counters: counters
                .map(|(now, base)| now.saturating_sub(*base))
                .collect(),
            cpu_wait_ns: self.waited_ns(),
            activity: run_state.observes.then_some(self.observer.main),
            load_activity: (run_state.observes && self.is_server()).then_some(self.observer.load),
            ..Total::default()
        }
    }

    fn waited_ns(&self) -> Option<u64> {
        let before = self.base.cpu_wait_ns?;
        Some(self.last.cpu_wait_ns?.saturating_sub(before))
    }

    /// What fails as filler counts nowhere; it is said, and not tried again.
    fn fill_no_more(&mut self, run_state: &mut RunState, why: &str) {
        self.fills = false;
        run_state.warn(
            "filler-failed",
            self.name(),
            format!("failed as filler{why}"),
        );
    }

    fn filler_ended(&mut self, run_state: &mut RunState, mut runner: Process) -> Result<(), Halt> {
        let outcome = run_state.outcome(&mut runner, self.name(), Reason::Filler);
        // Ended by itself with an error: again would be the same.
        let failed = outcome.exit != Some(0) && self.fills;
        if failed && !runner.ignore_failure {
            self.fill_no_more(run_state, &launch::last_line(&outcome));
        }
        run_state.outcomes.push(outcome);
        Ok(())
    }

    /// Ends a filler that is still under way, and closes the connections of a drive.
    pub(crate) fn end_runner(&mut self, run_state: &mut RunState) {
        self.driver = None;
        if let Some(mut runner) = self.runner.take() {
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
