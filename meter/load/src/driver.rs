//! All connections to one server, and the state of all that is sent to it.

use crate::connection::Connection;
use crate::error::DriveError;
use crate::keys::part;
use crate::latency::Latencies;
use crate::opening::Opening;
use crate::share::{Length, Share, Stint};
use crate::stream::{Plan, Stream};
use ensign_host::clock;
use ensign_host::cpus;
use ensign_host::wait::Waiter;
use ensign_protocol::drive::Drive;
use ensign_protocol::random::Random;
use ensign_protocol::records::Summary;
use ensign_protocol::Code;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub struct Driver {
    plan: Plan,
    shares: Vec<Share>,
    /// How many of the connections send, the first ones.
    senders: u64,
    operations: u64,
    cpus: Option<Vec<usize>>,
    /// What counts, once more of the same was asked for.
    counted: Option<Report>,
    within_ns: u64,
    /// How much of it was driven.
    driven_ns: u64,
}

/// One run: from the first send to the last reply, all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    pub operations: u64,
    pub wall_ns: u64,
    /// CPU time of the generator's threads.
    pub load_cpu_ns: u64,
}

/// All runs that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub operations: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub latency_ns: Option<Summary>,
}

impl Driver {
    /// Connects, agrees on the protocol, sends what is sent once. `drive` was checked; the threads
    /// run on `cpus`, or where the caller may. A signal that `waiter` knows of ends every wait.
    ///
    /// # Errors
    /// `not-ready` where nobody listens, `reply` or `deadline` for what the server answers.
    pub fn connect(
        drive: &Drive,
        address: SocketAddr,
        cpus: Option<&[usize]>,
        waiter: &Waiter,
    ) -> Result<Driver, DriveError> {
        let plan = Plan::new(drive);
        let opening = Opening {
            drive,
            address,
            waiter,
        };
        let mut seeds = Random::new(drive.seed);
        let mut groups: Vec<Vec<Connection>> = (0..drive.threads).map(|_| Vec::new()).collect();
        for (index, socket) in opening.open()?.into_iter().enumerate() {
            let stream = Stream::new(&plan, seeds.fork(), index, drive.connections);
            let connection = Connection::new(socket, stream, index, drive.connections);
            groups[index % drive.threads].push(connection);
        }
        let share = |group| Share::new(drive, group, waiter.signals());
        let mut driver = Driver {
            plan,
            shares: groups.into_iter().map(share).collect::<Result<_, _>>()?,
            senders: drive.senders(),
            operations: drive.operations,
            cpus: cpus.map(<[usize]>::to_vec),
            counted: None,
            within_ns: drive.within_ns,
            driven_ns: 0,
        };
        driver.allow();
        Ok(driver)
    }

    /// As many operations more, in equal parts: what a connection sends does not depend on timing.
    fn allow(&mut self) {
        let threads = self.shares.len();
        for (thread, share) in self.shares.iter_mut().enumerate() {
            for (place, connection) in share.connections_mut().iter_mut().enumerate() {
                let index = (place * threads + thread) as u64;
                if index < self.senders {
                    connection.allow(part(self.operations, index, self.senders).1);
                }
            }
        }
    }

    /// Sends for `slice_ns` from the first send on, or until all operations are sent, then waits
    /// for all replies: nothing is in flight on return. `at_once` of a drive is for slices: a run
    /// without a length sends by all. Its threads live no longer than the call, which ends within
    /// `limit_ns`, and within what the drive has left of its own time.
    ///
    /// # Errors
    /// A reply that is not as it must be, a lost connection, silence, too long a time; then the
    /// driver is of no more use.
    pub fn run(
        &mut self,
        slice_ns: Option<u64>,
        limit_ns: Option<u64>,
    ) -> Result<Burst, DriveError> {
        self.run_beside(slice_ns, limit_ns, || ())
    }

    /// As `run`; this thread does something else meanwhile.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn run_beside(
        &mut self,
        slice_ns: Option<u64>,
        limit_ns: Option<u64>,
        meanwhile: impl FnOnce(),
    ) -> Result<Burst, DriveError> {
        let halted = AtomicBool::new(false);
        let started_ns = clock::now_ns();
        let left_ns = self.within_ns.saturating_sub(self.driven_ns);
        let limit_ns = limit_ns.unwrap_or(u64::MAX).min(left_ns);
        let length = Length {
            slice_ns,
            end_ns: started_ns.saturating_add(limit_ns),
            within_ns: if limit_ns == left_ns {
                self.within_ns
            } else {
                limit_ns
            },
        };
        let (plan, cpus) = (&self.plan, self.cpus.as_deref());
        let unfinished = self.shares.iter_mut().filter(|share| !share.is_finished());
        let stints: Vec<Result<Stint, DriveError>> = thread::scope(|scope| {
            let halted = &halted;
            let start = |share| {
                let work = move || run_share(share, plan, cpus, length, halted);
                thread::Builder::new().spawn_scoped(scope, work)
            };
            let threads: Vec<_> = unfinished.map(start).collect();
            if threads.iter().any(Result::is_err) {
                halted.store(true, Ordering::Relaxed);
            }
            meanwhile();
            let join = |thread: std::io::Result<thread::ScopedJoinHandle<_>>| {
                let died = |_| DriveError::failed(Code::Internal, "a thread of the drive died");
                thread?.join().map_err(died)?
            };
            threads.into_iter().map(join).collect()
        });
        self.driven_ns += clock::now_ns() - started_ns;
        stints.into_iter().collect::<Result<Vec<_>, _>>().map(sum)
    }

    pub fn is_finished(&self) -> bool {
        self.shares.iter().all(Share::is_finished)
    }

    /// More of the same, as many operations again, which count nowhere.
    pub fn refill(&mut self) {
        self.counted = Some(self.report());
        self.driven_ns = 0;
        self.allow();
    }

    pub fn report(&self) -> Report {
        if let Some(counted) = self.counted {
            return counted;
        }
        let connections = || self.shares.iter().flat_map(Share::connections);
        let mut latencies: Option<Latencies> = None;
        for part in self.shares.iter().filter_map(Share::latencies) {
            match &mut latencies {
                Some(all) => all.add(part),
                None => latencies = Some(part.clone()),
            }
        }
        Report {
            operations: connections().map(Connection::operations_done).sum(),
            bytes_sent: connections().map(Connection::bytes_sent).sum(),
            bytes_received: connections().map(Connection::bytes_received).sum(),
            latency_ns: latencies.and_then(|latencies| latencies.summary()),
        }
    }
}

fn run_share(
    share: &mut Share,
    plan: &Plan,
    cpus: Option<&[usize]>,
    length: Length,
    halted: &AtomicBool,
) -> Result<Stint, DriveError> {
    if let Some(cpus) = cpus {
        cpus::keep_to(cpus).map_err(|error| {
            halted.store(true, Ordering::Relaxed);
            DriveError::failed(Code::Request, format!("`cpus` {cpus:?}: {error}"))
        })?;
    }
    share.run(plan, length, halted)
}

fn sum(stints: Vec<Stint>) -> Burst {
    let started_ns = stints.iter().map(|stint| stint.started_ns).min();
    let ended_ns = stints.iter().map(|stint| stint.ended_ns).max();
    Burst {
        operations: stints.iter().map(|stint| stint.operations).sum(),
        wall_ns: ended_ns.unwrap_or(0) - started_ns.unwrap_or(0),
        load_cpu_ns: stints.iter().map(|stint| stint.cpu_ns).sum(),
    }
}

#[cfg(test)]
mod tests;
