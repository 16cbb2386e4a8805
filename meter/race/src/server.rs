//! Servers: started on a port of their own, ready, filled, and stopped at the end.

use crate::commands::launch::{Keep, Process};
use crate::commands::verdict::{last_line, verdict};
use crate::halt::Halt;
use crate::ports::{self, Listener, Ports};
use crate::processes::freezer::Group;
use crate::run_state::RunState;
use crate::variant::Variant;
use ensign_host::clock;
use ensign_load::{DriveError, Driver};
use ensign_protocol::drive::Drive;
use ensign_protocol::records::{Outcome, Reason, Role};
use ensign_protocol::Code;
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

/// Gives the variant a port where it speaks of one.
pub(crate) fn take_port(variant: &mut Variant, ports: &mut Ports) -> Result<(), Halt> {
    if !variant.spec.mentions_port() {
        return Ok(());
    }
    let name = &variant.spec.name;
    variant.names.port = Some(ports.take().ok_or_else(|| {
        let (first, last) = ports.range();
        let text = format!("variant {name:?}: no port from {first} to {last} (`ports`) is free");
        Halt::failed(Code::PortInUse, name, text)
    })?);
    Ok(())
}

pub(crate) fn give_port_back(variant: &mut Variant, ports: &mut Ports) {
    if let Some(port) = variant.names.port.take() {
        ports.give_back(port);
    }
}

/// Starts the server and its preload; on return it stands frozen, ready for load.
pub(crate) fn start(
    variant: &mut Variant,
    run_state: &mut RunState,
    ports: &mut Ports,
) -> Result<(), Halt> {
    run_state.process_trees.tree(variant.tree).thaw()?;
    for _ in 0..TRIES {
        if let Start::Ready(server) = start_once(variant, run_state)? {
            variant.server = Some(server);
            return preload(variant, run_state);
        }
        // The taken port stays out of use; the variant gets another.
        variant.names.port = None;
        take_port(variant, ports)?;
        // It may have written the port into a file.
        if variant
            .spec
            .prepare
            .iter()
            .any(|each| each.mentions("{port}"))
        {
            variant.prepare(run_state)?;
        }
    }
    let name = &variant.spec.name;
    let text = format!("variant {name:?}: other processes take every port that it is given");
    Err(Halt::failed(Code::PortInUse, name, text))
}

fn preload(variant: &mut Variant, run_state: &mut RunState) -> Result<(), Halt> {
    let spec = variant.spec;
    let done = spec
        .preload
        .iter()
        .try_for_each(|preload| match &preload.drive {
            Some(drive) => fill(variant, run_state, drive),
            None => run_state.run_aside(
                &preload.process,
                &variant.names,
                Role::Preload,
                variant.tree,
            ),
        });
    run_state.process_trees.tree(variant.tree).freeze()?;
    run_state.process_trees.collect();
    let died = |server: &mut Process| run_state.process_trees.has_ended(server.child.pid);
    if let Some(server) = variant.server.take_if(died) {
        run_state.conclude(server, variant.name(), Reason::Exited)?;
        let name = &variant.spec.name;
        let text = format!("variant {name:?}: the server ended during its preload");
        return done.and(Err(Halt::failed(Code::Crashed, name, text)));
    }
    done
}

/// Sends a drive to its end; nothing of it counts.
fn fill(variant: &Variant, run_state: &mut RunState, drive: &Drive) -> Result<(), Halt> {
    let halt = |error: DriveError| Halt::of_drive(error, &variant.spec.name);
    let cpus = variant
        .spec
        .load
        .as_ref()
        .and_then(|load| load.cpus.as_deref());
    let mut driver =
        Driver::connect(drive, variant.address()?, cpus, &run_state.waiter).map_err(halt)?;
    let ran = driver.run(None, None);
    if ran.is_err() {
        // Closed connections could be what it dies of: they stay open until that is known.
        variant.let_it_end(run_state)?;
    }
    ran.map(|_| ()).map_err(halt)
}

fn start_once(variant: &mut Variant, run_state: &mut RunState) -> Result<Start, Halt> {
    let mut server = variant.start_main(run_state, Keep::Everything)?;
    let output = variant
        .spec
        .ready_output()
        .and_then(|pattern| Regex::new(&pattern).ok());
    let started = clock::now_ns();
    let deadline = started + variant.spec.ready_deadline_ns();
    loop {
        let now = clock::now_ns();
        let look = (now + pause_ns(now - started)).min(deadline);
        let pidfd = server.child.pidfd.as_raw_fd();
        let ended = run_state.waiter.readable(&[pidfd], Some(look))?.is_some();
        if ended {
            return ended_early(variant, run_state, server);
        }
        if let Some(limit) = run_state.look_at_limits(variant.tree) {
            variant.server = Some(server);
            return Err(variant.beyond(run_state, limit));
        }
        match &output {
            Some(pattern) if said(&server, pattern) => break,
            Some(_) => {}
            None => match port_state(variant, run_state) {
                Listener::Ours => break,
                Listener::Foreign => {
                    run_state.process_trees.kill(variant.tree, Group::Main);
                    let outcome = run_state.outcome(&mut server, variant.name(), Reason::Ended);
                    run_state.outcomes.push(outcome);
                    return Ok(Start::PortTaken);
                }
                Listener::None => {}
            },
        }
        if clock::now_ns() >= deadline {
            return Err(never_ready(variant, run_state, server));
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

fn port_state(variant: &Variant, run_state: &mut RunState) -> Listener {
    let members = run_state
        .process_trees
        .tree(variant.tree)
        .members(Group::Main);
    variant
        .names
        .port
        .map_or(Listener::None, |port| ports::listener(port, &members))
}

fn said(server: &Process, pattern: &Regex) -> bool {
    [&server.stdout, &server.stderr]
        .iter()
        .any(|said| pattern.is_match(&said.text()))
}

fn ended_early(
    variant: &Variant,
    run_state: &mut RunState,
    mut server: Process,
) -> Result<Start, Halt> {
    let outcome = run_state.outcome(&mut server, variant.name(), Reason::Exited);
    run_state.process_trees.kill(variant.tree, Group::Main);
    let retry = variant.names.port.is_some() && complains_of_port(&outcome);
    let most = |limit| run_state.most(server.tree, limit);
    let failure = verdict(&outcome, &mut server.child, server.ignore_failure, most);
    run_state.outcomes.push(outcome);
    match failure {
        _ if retry => Ok(Start::PortTaken),
        Some(failure) => Err(Halt::Failed(failure)),
        None => {
            let name = &variant.spec.name;
            let text = format!("variant {name:?}: the server ended before it was ready");
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

fn never_ready(variant: &Variant, run_state: &mut RunState, mut server: Process) -> Halt {
    run_state.process_trees.kill(variant.tree, Group::Main);
    let outcome = run_state.outcome(&mut server, variant.name(), Reason::Ended);
    let name = &variant.spec.name;
    let seconds = variant.spec.ready_deadline_ns() as f64 / 1e9;
    let command = outcome.argv.join(" ");
    let last = last_line(&outcome);
    run_state.outcomes.push(outcome);
    let text =
        format!("variant {name:?}: server `{command}` was not ready within {seconds} s{last}");
    Halt::failed(Code::NotReady, name, text)
}

/// Asks servers to end, unless told not to; kills what has not ended a little later.
pub(crate) fn stop_all(variants: &mut [Variant], run_state: &mut RunState) {
    for variant in variants
        .iter_mut()
        .filter(|variant| variant.server.is_some())
    {
        if let Some(server) = variant.server.as_ref().filter(|_| variant.spec.ask_to_stop) {
            // It takes effect with the thaw.
            crate::processes::kill::kill(server.child.pid, libc::SIGTERM);
            let _ = run_state.process_trees.tree(variant.tree).thaw();
        }
    }
    let until = clock::now_ns() + STOP_WITHIN_NS;
    for variant in variants {
        let Some(mut server) = variant.server.take() else {
            continue;
        };
        let left = until.saturating_sub(clock::now_ns());
        let ended = variant.spec.ask_to_stop
            && ensign_host::wait::readable_within(server.child.pidfd.as_raw_fd(), left);
        if ended {
            run_state.process_trees.collect();
            run_state.end_left_running(variant.tree, Group::Main, variant.name());
        } else {
            run_state.process_trees.kill(variant.tree, Group::Main);
        }
        let outcome = run_state.outcome(&mut server, variant.name(), Reason::Ended);
        run_state.outcomes.push(outcome);
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
