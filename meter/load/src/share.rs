//! The connections of one thread, driven.

use crate::connection::{Connection, Journal, Pace};
use crate::error::DriveError;
use crate::latency::Latencies;
use crate::poller::Poller;
use crate::stream::Plan;
use ensign_host::clock;
use ensign_protocol::drive::Drive;
use ensign_protocol::Code;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

const BUFFER_BYTES: usize = 1 << 16;
/// How soon a thread sees that another one has failed.
const LOOK_EVERY_NS: u64 = 100_000_000;
const SIGNALS: u64 = u64::MAX;

pub(crate) struct Share {
    poller: Poller,
    connections: Vec<Connection>,
    /// How many of them send in one run, and whose turn it is.
    at_once: usize,
    turn: usize,
    /// Operations of all of them that wait for replies.
    in_flight: usize,
    buffer: Vec<u8>,
    journal: Journal,
    interval_ns: Option<f64>,
    /// Time driven so far: what intended send times are counted in.
    driven_ns: u64,
    deadline_ns: u64,
}

/// How long one call may take.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    /// No operation is sent later than that.
    pub slice_ns: Option<u64>,
    /// When all replies must be there, as a time and as it is said.
    pub end_ns: u64,
    pub within_ns: u64,
}

/// What one thread did between its first send and its last reply.
pub(crate) struct Stint {
    pub operations: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub cpu_ns: u64,
}

impl Share {
    /// `signals` becomes readable when the run is to end.
    pub(crate) fn new(
        drive: &Drive,
        connections: Vec<Connection>,
        signals: RawFd,
    ) -> Result<Share, DriveError> {
        let poller = Poller::new(connections.len() + 1)?;
        poller.add(signals, SIGNALS)?;
        for (token, connection) in connections.iter().enumerate() {
            poller.add(connection.fd(), token as u64)?;
        }
        Ok(Share {
            poller,
            at_once: at_once(drive, connections.len()),
            turn: 0,
            connections,
            in_flight: 0,
            buffer: vec![0; BUFFER_BYTES],
            journal: Journal {
                now_ns: 0,
                progress: 0,
                bytes_received: 0,
                pace: Pace::Closed,
                pipeline: drive.pipeline,
                latencies: drive.latency.then(Latencies::new),
            },
            interval_ns: drive.rate_per_s.map(|rate| 1e9 / rate),
            driven_ns: 0,
            deadline_ns: drive.deadline_ns,
        })
    }

    pub(crate) fn connections(&self) -> &[Connection] {
        &self.connections
    }

    pub(crate) fn connections_mut(&mut self) -> &mut [Connection] {
        &mut self.connections
    }

    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        self.journal.latencies.as_ref()
    }

    pub(crate) fn is_finished(&self) -> bool {
        let left = |connection: &Connection| connection.operations_left() > 0;
        !self.connections.iter().any(left)
    }

    fn operations_done(&self) -> u64 {
        let done = self.connections.iter().map(Connection::operations_done);
        done.sum()
    }

    /// Sends for a slice, or until nothing is left, and waits for all replies. Gives up when
    /// another thread has `halted`, and says so to the others when it fails itself.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        length: Length,
        halted: &AtomicBool,
    ) -> Result<Stint, DriveError> {
        let cpu_ns = clock::thread_cpu_ns();
        let operations = self.operations_done();
        let started_ns = clock::now_ns();
        let slice = length.slice_ns;
        let until_ns = slice.map_or(u64::MAX, |ns| started_ns.saturating_add(ns));
        self.journal.now_ns = started_ns;
        self.journal.pace = match self.interval_ns {
            None => Pace::Closed,
            Some(interval_ns) => Pace::Open {
                interval_ns,
                origin_ns: started_ns.wrapping_sub(self.driven_ns),
            },
        };
        let result = self.drive(plan, until_ns, length, halted);
        if result.is_err() {
            halted.store(true, Ordering::Relaxed);
        }
        result?;
        let ended_ns = self.journal.now_ns;
        self.driven_ns += ended_ns.min(until_ns) - started_ns;
        Ok(Stint {
            operations: self.operations_done() - operations,
            started_ns,
            ended_ns,
            cpu_ns: clock::thread_cpu_ns() - cpu_ns,
        })
    }

    fn drive(
        &mut self,
        plan: &Plan,
        until_ns: u64,
        length: Length,
        halted: &AtomicBool,
    ) -> Result<(), DriveError> {
        self.begin(plan, until_ns)?;
        let mut progress_ns = self.journal.now_ns;
        let mut before = (self.journal.progress, self.journal.bytes_received);
        let mut due_ns = self.next_due_ns(until_ns);
        loop {
            let busy = self.in_flight > 0;
            if !busy && due_ns.is_none() {
                return Ok(());
            }
            self.wait(due_ns)?;
            if halted.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.journal.now_ns = clock::now_ns();
            self.serve(plan, until_ns)?;
            if self.journal.progress != before.0 || !busy {
                progress_ns = self.journal.now_ns;
                before = (self.journal.progress, self.journal.bytes_received);
            } else if self.journal.now_ns.saturating_sub(progress_ns) > self.deadline_ns {
                return Err(self.silence(self.journal.bytes_received - before.1));
            }
            if self.journal.now_ns > length.end_ns {
                return Err(self.too_long(length.within_ns));
            }
            if self.interval_ns.is_some() {
                due_ns = self.send_due(plan, until_ns)?;
            }
        }
    }

    /// Sends by the next `at_once` connections that have something left; by all without an end.
    fn begin(&mut self, plan: &Plan, until_ns: u64) -> Result<(), DriveError> {
        let (first, number) = (self.turn, self.connections.len());
        let mut places = if until_ns == u64::MAX {
            number
        } else {
            self.at_once
        };
        for token in (first..number).chain(0..first) {
            if places == 0 {
                break;
            }
            if self.connections[token].operations_left() > 0 {
                places -= 1;
                self.turn = (token + 1) % number;
                self.journal.now_ns = clock::now_ns();
                self.send(token, plan)?;
            }
        }
        Ok(())
    }

    /// Serves the connections that are ready.
    fn serve(&mut self, plan: &Plan, until_ns: u64) -> Result<(), DriveError> {
        let mut events = (0..self.poller.ready()).map(|index| self.poller.event(index));
        if events.any(|event| event.token == SIGNALS) {
            return Err(DriveError::Interrupted);
        }
        for index in 0..self.poller.ready() {
            let event = self.poller.event(index);
            let token = event.token as usize;
            let connection = &mut self.connections[token];
            if event.writable {
                connection.flush()?;
                if connection.is_written() {
                    self.poller
                        .watch_room(connection.fd(), event.token, false)?;
                }
            }
            if event.readable {
                let before = connection.in_flight();
                connection.receive(plan, &mut self.buffer, &mut self.journal)?;
                self.in_flight -= before - connection.in_flight();
                if self.journal.now_ns < until_ns {
                    self.send(token, plan)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, token: usize, plan: &Plan) -> Result<(), DriveError> {
        let connection = &mut self.connections[token];
        let was_written = connection.is_written();
        let before = connection.in_flight();
        connection.send(plan, &self.journal)?;
        self.in_flight += connection.in_flight() - before;
        if was_written && !connection.is_written() {
            self.poller
                .watch_room(connection.fd(), token as u64, true)?;
        }
        Ok(())
    }

    /// Open loop: sends what is due, and says when to be back.
    fn send_due(&mut self, plan: &Plan, until_ns: u64) -> Result<Option<u64>, DriveError> {
        self.journal.now_ns = clock::now_ns();
        if self.journal.now_ns < until_ns {
            for token in 0..self.connections.len() {
                self.send(token, plan)?;
            }
        }
        Ok(self.next_due_ns(until_ns))
    }

    /// When the next operation is to be sent; None where that is after a reply, or not any more.
    /// At the end of the slice where that comes first, so that the slice has its whole length.
    fn next_due_ns(&self, until_ns: u64) -> Option<u64> {
        if self.interval_ns.is_none() || self.journal.now_ns >= until_ns {
            return None;
        }
        let due = self.connections.iter();
        let first = due.filter_map(|connection| connection.next_due_ns(&self.journal));
        first.min().map(|due_ns| due_ns.min(until_ns))
    }

    fn wait(&mut self, due_ns: Option<u64>) -> Result<(), DriveError> {
        let patience_ns = LOOK_EVERY_NS.min(self.deadline_ns);
        let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(self.journal.now_ns));
        let timeout_ns = left_ns.map_or(patience_ns, |left_ns| left_ns.min(patience_ns));
        Ok(self.poller.wait(timeout_ns, due_ns.is_some())?)
    }

    /// After so many bytes without a whole reply.
    fn silence(&self, bytes: u64) -> DriveError {
        let seconds = self.deadline_ns as f64 / 1e9;
        let did = match bytes {
            0 => format!("the server sent nothing for {seconds} s"),
            _ => format!("the server sent {bytes} bytes and no whole reply for {seconds} s"),
        };
        self.overdue(&did)
    }

    fn too_long(&self, within_ns: u64) -> DriveError {
        let seconds = within_ns as f64 / 1e9;
        self.overdue(&format!("the drive did not end within {seconds} s"))
    }

    fn overdue(&self, why: &str) -> DriveError {
        let waiting = self.connections.iter().find(|one| one.in_flight() > 0);
        let waits = waiting.map_or(String::new(), |one| {
            let (count, request) = (self.in_flight, one.request());
            format!("; {count} operations wait, one for the reply to {request}")
        });
        DriveError::failed(Code::Deadline, format!("{why}{waits}"))
    }
}

/// The part of a thread with so many connections in those that send at once.
fn at_once(drive: &Drive, connections: usize) -> usize {
    let all = drive.at_once.unwrap_or(drive.connections);
    (all * connections).div_ceil(drive.connections)
}
