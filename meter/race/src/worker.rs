//! The process that does the work. It ends when told to, or when its guardian dies.

use crate::drive;
use crate::emitter::Emitter;
use crate::exec;
use crate::halt::{Failure, Halt};
use crate::processes::cgroup;
use crate::processes::process_trees::Kind;
use crate::race;
use crate::run::{self, Run};
use crate::run_state::RunState;
use ensign_host::cpus;
use ensign_host::wait::Waiter;
use ensign_protocol::records::{End, ErrorRecord, Record, Start, Status};
use ensign_protocol::request::{FreezerChoice, Mode, Request, SCHEMA};
use ensign_protocol::Code;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

pub(crate) const INTERRUPTED: i32 = 4;
/// The worker could not say how it ended; its guardian does.
const UNTOLD: i32 = 100;

/// Does the work and gives the exit status. `guardian` is the parent as it was before the fork.
pub(crate) fn work(run: &Run, request: &Request, pipe: OwnedFd, guardian: libc::pid_t) -> i32 {
    if let Err(error) = become_worker(guardian) {
        return say_end(&mut Emitter::new(pipe), None, 0, &Err(error.into()));
    }
    // Set-up may fail with the pipe in its hands; the end is to be told all the same.
    let spare = pipe.try_clone().ok();
    let mut out = Some(Emitter::new(pipe));
    let mut run_state = None;
    let (valid, result) = match set_up(run, request, &mut out) {
        Ok(ready) => perform(run_state.insert(ready), request),
        Err(halt) => (0, Err(halt)),
    };
    run.end();
    let execution = run_state.as_ref().map(|run_state| run_state.execution);
    let told = out.or(run_state.map(|run_state| run_state.out));
    let Some(mut out) = told.or(spare.map(Emitter::new)) else {
        return UNTOLD;
    };
    say_end(&mut out, execution, valid, &result)
}

fn become_worker(guardian: libc::pid_t) -> io::Result<()> {
    // SAFETY: no memory is involved.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        if libc::getppid() != guardian {
            return Err(io::Error::other("the guardian is gone"));
        }
    }
    // The caller's files are the guardian's business.
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for fd in 0..2 {
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(null.as_raw_fd(), fd) };
    }
    Ok(())
}

fn set_up(run: &Run, request: &Request, out: &mut Option<Emitter>) -> Result<RunState, Halt> {
    let waiter = Waiter::new()?;
    run::clear(run);
    let kind = choose_freezer(run, request.freezer())?;
    if let (Kind::Cgroup(dir), true) = (&kind, request.limits_trees()) {
        // SAFETY: no memory is involved.
        let ours = unsafe { [libc::getpid(), libc::getppid()] };
        cgroup::delegate_controllers(dir, |pid| ours.contains(&pid));
    }
    let none = Vec::new();
    let counters = match request {
        Request::Race(race) => &race.counters,
        Request::Exec(_) | Request::Drive(_) => &none,
    };
    let containment = request.containment();
    let emitter = out.take().ok_or_else(|| Halt::internal("no way out"))?;
    let mut run_state = RunState::new(run, kind, waiter, emitter, counters, &containment)?;
    run_state.inherit_fd = request.inherit_fd();
    if let Request::Race(race) = request {
        run_state.observes = race.observe;
        run_state.samples_code = race.code_samples;
        if let Some(cpus) = &race.meter_cpus {
            cpus::keep_to(cpus).map_err(|error| {
                let text = format!("`meter_cpus` {cpus:?}: {error}");
                Halt::failed(Code::Request, "", text)
            })?;
        }
    }
    let start = Record::Start(Start {
        schema: SCHEMA,
        meter: env!("CARGO_PKG_VERSION"),
        freezer: run_state.process_trees.kind(),
        mode: mode_name(request),
        counters: &run_state.counters.names,
        counters_scope: run_state.counters.scope(),
        pid: std::process::id(),
    });
    run_state.out.put(&run_state.waiter, &start)?;
    run_state.out.flush(&run_state.waiter)?;
    Ok(run_state)
}

fn mode_name(request: &Request) -> &'static str {
    match request {
        Request::Race(race) if race.mode == Mode::Alternating => "alternating",
        Request::Race(race) if race.mode == Mode::Driven => "driven",
        Request::Race(_) => "interleaved",
        Request::Exec(_) => "exec",
        Request::Drive(_) => "drive",
    }
}

fn choose_freezer(run: &Run, choice: FreezerChoice) -> Result<Kind, Halt> {
    if choice == FreezerChoice::Signal {
        return Ok(Kind::Signal);
    }
    let tried = match &run.cgroup {
        Ok(dir) => cgroup::check(dir).map(|()| Kind::Cgroup(dir.clone())),
        Err(obstacle) => Err(obstacle.clone()),
    };
    match (tried, choice) {
        (Ok(kind), _) => Ok(kind),
        (Err(_), FreezerChoice::Auto) => Ok(Kind::Signal),
        (Err(text), _) => {
            let text = format!("`freezer` cannot be \"cgroup\" here: {text}");
            Err(Halt::failed(Code::Request, "", text))
        }
    }
}

fn perform(run_state: &mut RunState, request: &Request) -> (u64, Result<(), Halt>) {
    match request {
        Request::Race(request) => race::race(run_state, request),
        Request::Exec(request) => exec::exec(run_state, request),
        Request::Drive(request) => drive::drive(run_state, request),
    }
}

fn say_end(
    out: &mut Emitter,
    execution: Option<u64>,
    executions: u64,
    result: &Result<(), Halt>,
) -> i32 {
    let (status, exit) = match result {
        Ok(()) => (Status::Complete, 0),
        Err(Halt::Interrupted) => (Status::Interrupted, INTERRUPTED),
        Err(Halt::Failed(failure)) => {
            say_error(out, execution, failure);
            (Status::Failed, failure.code.exit_status())
        }
    };
    out.last(&Record::End(End { status, executions }));
    exit
}

fn say_error(out: &mut Emitter, execution: Option<u64>, failure: &Failure) {
    out.last(&Record::Error(ErrorRecord {
        code: failure.code,
        execution,
        variant: failure.variant.as_deref(),
        text: &failure.text,
    }));
}
