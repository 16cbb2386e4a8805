//! A variant under the meter's own load.

use super::runner::Runner;
use super::sampling::Sampler;
use super::Variant;
use crate::commands::launch::Process;
use crate::halt::Halt;
use crate::processes::freezer::{Group, Tree};
use crate::processes::usage::Exit;
use crate::run_state::RunState;
use crate::totals::Total;
use ensign_host::clock;
use ensign_load::{Burst, DriveError, Driver, Report};
use ensign_protocol::Code;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;

const DYING_NS: u64 = 1_000_000_000;
const LOOK_EACH_NS: u64 = 1_000_000;

impl Variant<'_> {
    pub(crate) fn address(&self) -> Result<SocketAddr, Halt> {
        let port = self
            .names
            .port
            .ok_or_else(|| Halt::internal("a driven server has no port"))?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Connects the meter's own load to the server, which stands still afterwards.
    pub(crate) fn connect(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let Some((load, drive)) = self.spec.load.as_ref().zip(self.spec.drive()) else {
            return Err(Halt::internal("a variant without a drive is to be driven"));
        };
        run_state.process_trees.tree(self.tree).thaw()?;
        let address = self.address()?;
        let connected = Driver::connect(drive, address, load.cpus.as_deref(), &run_state.waiter);
        run_state.process_trees.tree(self.tree).freeze()?;
        run_state.process_trees.collect();
        match connected {
            Ok(driver) => self.runner = Runner::Drive(Box::new(driver)),
            Err(error) => return Err(self.drive_failed(run_state, error)),
        }
        self.last = self.reading(run_state)?;
        self.count_from_here(run_state);
        Ok(())
    }

    /// Sends for so long, or until all is sent; a finished variant is sent more of the same.
    ///
    /// At its end a server waits for requests, so where it stands is looked at within the slice.
    pub(crate) fn send(
        &mut self,
        run_state: &mut RunState,
        length_ns: Option<u64>,
    ) -> Result<Burst, DriveError> {
        // A look makes a reply late: where that is timed, one in a slice, which is long then.
        let times_replies = self.spec.drive().is_some_and(|drive| drive.latency);
        let looked_at_ns = length_ns.filter(|_| run_state.samples_code && !self.is_finished());
        let limit_ns = self.server.as_ref().and_then(Process::left_ns);
        let Runner::Drive(driver) = &mut self.runner else {
            return Err(DriveError::failed(
                Code::Internal,
                "a variant is to be driven that is not connected",
            ));
        };
        if driver.is_finished() {
            driver.refill();
        }
        let (sampler, tree) = (&mut self.sampler, run_state.process_trees.tree(self.tree));
        let mut stopped_ns = 0;
        let mut burst = driver.run_beside(length_ns, limit_ns, || {
            let Some(length_ns) = looked_at_ns else {
                return;
            };
            let looks = if times_replies {
                1
            } else {
                (length_ns / LOOK_EACH_NS).max(1)
            };
            stopped_ns = look_within(length_ns, looks, sampler, tree);
        })?;
        burst.wall_ns = burst.wall_ns.saturating_sub(stopped_ns);
        self.driven.cpu_ns += burst.load_cpu_ns;
        Ok(burst)
    }

    /// A lost connection is the server's death where it died: it closes before it ends.
    pub(crate) fn drive_failed(&mut self, run_state: &mut RunState, error: DriveError) -> Halt {
        // Closed connections could be what it dies of: they stay open until that is known.
        let waited = self.let_it_end(run_state);
        self.runner = Runner::Nothing;
        if let Err(halt) = waited {
            return halt;
        }
        let died = |server: &mut Process| run_state.process_trees.has_ended(server.child.pid);
        if let Some(server) = self.server.take_if(died) {
            return self.server_died(run_state, server);
        }
        Halt::of_drive(error, &self.spec.name)
    }

    /// What fills counts nowhere: a wrong reply to it ends the filling alone, as long as the server
    /// lives.
    pub(crate) fn forgive_filler(
        &mut self,
        run_state: &mut RunState,
        halt: Halt,
        filler: bool,
    ) -> Result<(), Halt> {
        match halt {
            Halt::Failed(failure)
                if filler
                    && self.server.is_some()
                    && matches!(failure.code, Code::Reply | Code::Deadline) =>
            {
                self.fill_no_more(run_state, &format!(": {}", failure.text));
                Ok(())
            }
            halt => Err(halt),
        }
    }

    /// Books a slice of driving; the variant's readings are in `last`.
    pub(crate) fn drove(&mut self, run_state: &mut RunState, wall_ns: u64) -> Result<(), Halt> {
        if let Some(server) = &mut self.server {
            server.active_ns += wall_ns;
        }
        if !self.is_finished() {
            self.wall_ns += wall_ns;
            self.slices += 1;
            if let Some(report) = self.finished_drive() {
                let total = self.totals(run_state, &Exit::default());
                self.finish(Total {
                    operations: Some(report.operations),
                    drive: Some(report),
                    ..total
                });
            }
        }
        self.check_deadlines(run_state)
    }

    fn finished_drive(&self) -> Option<Report> {
        match &self.runner {
            Runner::Drive(driver) if driver.is_finished() => Some(driver.report()),
            _ => None,
        }
    }

    /// Waits a moment for the end of a server that may be dying, and stops it.
    pub(crate) fn let_it_end(&self, run_state: &mut RunState) -> Result<(), Halt> {
        if let Some(server) = &self.server {
            run_state.process_trees.tree(self.tree).thaw()?;
            let until = clock::now_ns() + DYING_NS;
            let pidfd = server.child.pidfd.as_raw_fd();
            run_state.waiter.readable(&[pidfd], Some(until))?;
            run_state.process_trees.tree(self.tree).freeze()?;
            run_state.process_trees.collect();
        }
        Ok(())
    }
}

/// Looks at a random moment of each part of a slice; returns for how long that stopped the server.
fn look_within(length_ns: u64, looks: u64, sampler: &mut Sampler, tree: &mut dyn Tree) -> u64 {
    let part_ns = length_ns / looks;
    let (mut slept_ns, mut stopped_ns) = (0, 0);
    for part in 0..looks {
        if !sampler.is_due() {
            continue;
        }
        let look_after_ns = part * part_ns + clock::random_below_ns(part_ns);
        clock::sleep_ns(look_after_ns - slept_ns);
        slept_ns = look_after_ns;
        let start_ns = clock::now_ns();
        // What fails here fails again at the slice's end, where it is told.
        if tree.freeze().is_ok() {
            sampler.look(&tree.members(Group::Main));
        }
        let _ = tree.thaw();
        stopped_ns += clock::now_ns() - start_ns;
    }
    stopped_ns
}
