//! An arm under the meter's own load.

use super::Arm;
use crate::account::Exit;
use crate::clock;
use crate::drive::{Burst, DriveError, Driver, Report};
use crate::halt::{Code, Halt};
use crate::launch::Process;
use crate::stage::Stage;
use crate::totals::Total;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;

const DYING_NS: u64 = 1_000_000_000;

impl Arm<'_> {
    pub fn address(&self) -> Result<SocketAddr, Halt> {
        let port = self
            .names
            .port
            .ok_or_else(|| Halt::system("a driven server has no port"))?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Connects the meter's own load to the server, which stands still afterwards.
    pub fn connect(&mut self, stage: &mut Stage) -> Result<(), Halt> {
        let Some((load, drive)) = self.spec.load.as_ref().zip(self.spec.drive()) else {
            return Err(Halt::system("an arm without a drive is to be driven"));
        };
        stage.forest.tree(self.tree).thaw()?;
        let address = self.address()?;
        let connected = Driver::connect(drive, address, load.cpus.as_deref(), &stage.waiter);
        stage.forest.tree(self.tree).freeze()?;
        stage.forest.collect();
        match connected {
            Ok(driver) => self.driver = Some(driver),
            Err(error) => return Err(self.drive_failed(stage, error)),
        }
        self.last = self.reading(stage)?;
        self.count_from_here(stage);
        Ok(())
    }

    /// Sends for so long, or until all is sent; a finished arm is sent more of the same.
    pub fn send(&mut self, length_ns: Option<u64>) -> Result<Burst, DriveError> {
        let driver = self.driver.as_mut().expect("a driven arm is connected");
        if driver.is_finished() {
            driver.refill();
        }
        let burst = driver.run(length_ns)?;
        self.driven.cpu_ns += burst.load_cpu_ns;
        Ok(burst)
    }

    /// A lost connection is the server's death where it died: it closes before it ends.
    pub fn drive_failed(&mut self, stage: &mut Stage, error: DriveError) -> Halt {
        // Closed connections could be what it dies of: they stay open until that is known.
        let waited = self.let_it_end(stage);
        self.driver = None;
        if let Err(halt) = waited {
            return halt;
        }
        let died = |server: &Process| stage.forest.has_ended(server.child.pid);
        if self.server.as_ref().is_some_and(died) {
            return self.server_died(stage);
        }
        error.halt(&self.spec.name)
    }

    /// What fills counts nowhere: a wrong reply to it ends the filling alone, as long as the server
    /// lives.
    pub fn forgive_filler(
        &mut self,
        stage: &mut Stage,
        halt: Halt,
        filler: bool,
    ) -> Result<(), Halt> {
        match halt {
            Halt::Failed(failure)
                if filler
                    && self.server.is_some()
                    && matches!(failure.code, Code::Reply | Code::Deadline) =>
            {
                self.fill_no_more(stage, &format!(": {}", failure.text));
                Ok(())
            }
            halt => Err(halt),
        }
    }

    /// Books a slice of driving; the arm's readings are in `last`.
    pub fn drove(&mut self, stage: &mut Stage, wall_ns: u64) -> Result<(), Halt> {
        if let Some(server) = &mut self.server {
            server.active_ns += wall_ns;
        }
        if !self.is_finished() {
            self.wall_ns += wall_ns;
            self.slices += 1;
            if let Some(report) = self.finished_drive() {
                let total = self.totals(stage, &Exit::default());
                self.total = Some(Total {
                    operations: Some(report.operations),
                    drive: Some(report),
                    ..total
                });
            }
        }
        self.check_deadlines(stage)
    }

    fn finished_drive(&self) -> Option<Report> {
        self.driver
            .as_ref()
            .filter(|driver| driver.is_finished())
            .map(Driver::report)
    }

    /// Waits a moment for the end of a server that may be dying, and stops it.
    pub fn let_it_end(&self, stage: &mut Stage) -> Result<(), Halt> {
        if let Some(server) = &self.server {
            stage.forest.tree(self.tree).thaw()?;
            let until = clock::now_ns() + DYING_NS;
            let pidfd = server.child.pidfd.as_raw_fd();
            stage.waiter.readable(&[pidfd], Some(until))?;
            stage.forest.tree(self.tree).freeze()?;
            stage.forest.collect();
        }
        Ok(())
    }
}
