//! Servers: started on a port of their own, ready, filled, and stopped at the end.

use crate::arm::Arm;
use crate::clock;
use crate::drive::spec::Drive;
use crate::drive::{DriveError, Driver};
use crate::freezer::Group;
use crate::halt::{Code, Halt};
use crate::launch::{self, Keep, Process};
use crate::ports::{self, Listener, Ports};
use crate::records::{Outcome, Reason, Role};
use crate::stage::Stage;
use regex_lite::Regex;
use std::os::fd::AsRawFd;

const TRIES: u32 = 4;
const SHORTEST_PAUSE_NS: u64 = 1_000_000;
const LONGEST_PAUSE_NS: u64 = 100_000_000;
const LOOKS_PER_AGE: u64 = 4;
const STOP_WITHIN_NS: u64 = 2_000_000_000;

/// How a server's start went.
enum Start {
    Ready(Process),
    /// Its port was taken by another process meanwhile.
    PortTaken,
}

/// Gives the arm a port where it speaks of one.
pub fn take_port(arm: &mut Arm, ports: &mut Ports) -> Result<(), Halt> {
    if !arm.spec.mentions_port() {
        return Ok(());
    }
    let name = &arm.spec.name;
    arm.names.port = Some(ports.take().ok_or_else(|| {
        let (first, last) = ports.range();
        let text = format!("arm {name:?}: no port from {first} to {last} (`ports`) is free");
        Halt::failed(Code::PortInUse, name, text)
    })?);
    Ok(())
}

pub fn give_port_back(arm: &mut Arm, ports: &mut Ports) {
    if let Some(port) = arm.names.port.take() {
        ports.give_back(port);
    }
}

/// Starts the server and its preload; on return it stands frozen, ready for load.
pub fn start(arm: &mut Arm, stage: &mut Stage, ports: &mut Ports) -> Result<(), Halt> {
    stage.forest.tree(arm.tree).thaw()?;
    for _ in 0..TRIES {
        if let Start::Ready(server) = start_once(arm, stage)? {
            arm.server = Some(server);
            return preload(arm, stage);
        }
        // The taken port stays out of use; the arm gets another.
        arm.names.port = None;
        take_port(arm, ports)?;
        // It may have written the port into a file.
        if arm.spec.prepare.iter().any(|each| each.mentions("{port}")) {
            arm.prepare(stage)?;
        }
    }
    let name = &arm.spec.name;
    let text = format!("arm {name:?}: other processes take every port that it is given");
    Err(Halt::failed(Code::PortInUse, name, text))
}

fn preload(arm: &mut Arm, stage: &mut Stage) -> Result<(), Halt> {
    let spec = arm.spec;
    let done = spec
        .preload
        .iter()
        .try_for_each(|preload| match &preload.drive {
            Some(drive) => fill(arm, stage, drive),
            None => stage.run_aside(&preload.process, &arm.names, Role::Preload, arm.tree),
        });
    stage.forest.tree(arm.tree).freeze()?;
    stage.forest.collect();
    let died = |server: &Process| stage.forest.has_ended(server.child.pid);
    if arm.server.as_ref().is_some_and(died) {
        let server = arm.server.take().expect("it was just there");
        stage.conclude(server, arm.name(), Reason::Exited)?;
        let name = &arm.spec.name;
        let text = format!("arm {name:?}: the server ended during its preload");
        return done.and(Err(Halt::failed(Code::Crashed, name, text)));
    }
    done
}

/// Sends a drive to its end; nothing of it counts.
fn fill(arm: &Arm, stage: &mut Stage, drive: &Drive) -> Result<(), Halt> {
    let halt = |error: DriveError| error.halt(&arm.spec.name);
    let cpus = arm.spec.load.as_ref().and_then(|load| load.cpus.as_deref());
    let mut driver = Driver::connect(drive, arm.address()?, cpus, &stage.waiter).map_err(halt)?;
    let ran = driver.run(None);
    if ran.is_err() {
        // Closed connections could be what it dies of: they stay open until that is known.
        arm.let_it_end(stage)?;
    }
    ran.map(|_| ()).map_err(halt)
}

fn start_once(arm: &mut Arm, stage: &mut Stage) -> Result<Start, Halt> {
    let mut server = arm.start_main(stage, Keep::Everything)?;
    let output = arm
        .spec
        .ready_output()
        .and_then(|pattern| Regex::new(&pattern).ok());
    let started = clock::now_ns();
    let deadline = started + arm.spec.ready_deadline_ns();
    loop {
        let now = clock::now_ns();
        let look = (now + pause_ns(now - started)).min(deadline);
        let pidfd = server.child.pidfd.as_raw_fd();
        let ended = stage.waiter.readable(&[pidfd], Some(look))?.is_some();
        if ended {
            return ended_early(arm, stage, server);
        }
        match &output {
            Some(pattern) if said(&server, pattern) => break,
            Some(_) => {}
            None => match port_state(arm, stage) {
                Listener::Ours => break,
                Listener::Foreign => {
                    stage.forest.kill(arm.tree, Group::Main);
                    let outcome = stage.outcome(&mut server, arm.name(), Reason::Ended);
                    stage.outcomes.push(outcome);
                    return Ok(Start::PortTaken);
                }
                Listener::None => {}
            },
        }
        if clock::now_ns() >= deadline {
            return Err(never_ready(arm, stage, server));
        }
    }
    server.active_ns += clock::now_ns() - started;
    Ok(Start::Ready(server))
}

/// Until the next look at a server of this age. A look takes milliseconds of CPU time that the
/// server may need: it comes late by a fraction of what the start takes.
fn pause_ns(age_ns: u64) -> u64 {
    (age_ns / LOOKS_PER_AGE).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS)
}

fn port_state(arm: &Arm, stage: &mut Stage) -> Listener {
    let members = stage.forest.tree(arm.tree).members(Group::Main);
    arm.names
        .port
        .map_or(Listener::None, |port| ports::listener(port, &members))
}

fn said(server: &Process, pattern: &Regex) -> bool {
    [&server.stdout, &server.stderr]
        .iter()
        .any(|said| pattern.is_match(&said.text()))
}

fn ended_early(arm: &Arm, stage: &mut Stage, mut server: Process) -> Result<Start, Halt> {
    let outcome = stage.outcome(&mut server, arm.name(), Reason::Exited);
    stage.forest.kill(arm.tree, Group::Main);
    let retry = arm.names.port.is_some() && complains_of_port(&outcome);
    let failure = launch::verdict(&outcome, &mut server);
    stage.outcomes.push(outcome);
    match failure {
        _ if retry => Ok(Start::PortTaken),
        Some(failure) => Err(Halt::Failed(failure)),
        None => {
            let name = &arm.spec.name;
            let text = format!("arm {name:?}: the server ended before it was ready");
            Err(Halt::failed(Code::Crashed, name, text))
        }
    }
}

fn complains_of_port(outcome: &Outcome) -> bool {
    [&outcome.stderr_tail, &outcome.stdout_tail]
        .iter()
        .any(|text| {
            let text = text.to_lowercase();
            text.contains("address already in use") || text.contains("eaddrinuse")
        })
}

fn never_ready(arm: &Arm, stage: &mut Stage, mut server: Process) -> Halt {
    stage.forest.kill(arm.tree, Group::Main);
    let outcome = stage.outcome(&mut server, arm.name(), Reason::Ended);
    let name = &arm.spec.name;
    let seconds = arm.spec.ready_deadline_ns() as f64 / 1e9;
    let command = outcome.argv.join(" ");
    let last = launch::last_line(&outcome);
    stage.outcomes.push(outcome);
    let text = format!("arm {name:?}: server `{command}` was not ready within {seconds} s{last}");
    Halt::failed(Code::NotReady, name, text)
}

/// Asks servers to end, unless told not to; kills what has not ended a little later.
pub fn stop_all(arms: &mut [Arm], stage: &mut Stage) {
    for arm in arms.iter_mut().filter(|arm| arm.server.is_some()) {
        if let Some(server) = arm.server.as_ref().filter(|_| arm.spec.ask_to_stop) {
            // It takes effect with the thaw.
            crate::run::kill(server.child.pid, libc::SIGTERM);
            let _ = stage.forest.tree(arm.tree).thaw();
        }
    }
    let until = clock::now_ns() + STOP_WITHIN_NS;
    for arm in arms {
        let Some(mut server) = arm.server.take() else {
            continue;
        };
        let left = until.saturating_sub(clock::now_ns());
        let ended = arm.spec.ask_to_stop
            && crate::wait::readable_within(server.child.pidfd.as_raw_fd(), left);
        if ended {
            stage.forest.collect();
            stage.end_left_running(arm.tree, Group::Main, arm.name());
        } else {
            stage.forest.kill(arm.tree, Group::Main);
        }
        let outcome = stage.outcome(&mut server, arm.name(), Reason::Ended);
        stage.outcomes.push(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_server_that_is_not_ready_is_looked_at_ever_more_rarely() {
        let times = |within_ns| {
            std::iter::successors(Some(0), |&age| Some(age + pause_ns(age)))
                .take_while(|&age| age < within_ns)
                .count()
        };
        assert_eq!(times(5 * MS), 5);
        assert!(times(100 * MS) < 25);
        assert!(times(6_000 * MS) < 90);
    }
}
