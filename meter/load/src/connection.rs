//! One connection: what it sends, what it waits for.

use crate::error::DriveError;
use crate::expect::{describe, shown};
use crate::latency::Latencies;
use crate::resp::{Malformed, Parser, Reply};
use crate::stream::{Plan, Stream};
use ensign_host::clock;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// All values are checked for their length, one in so many byte by byte.
const COMPARED_ONE_IN: u64 = 64;
/// Requests that are kept for messages, when there is never a moment without replies to come.
const MOST_KEPT_BYTES: usize = 1 << 20;

/// Read at a time from one connection: others, and the signal to end, have their turn in between.
const MOST_READS: usize = 4;
/// What one reply may have, pushes before it included.
const MOST_REPLY_BYTES: u64 = 1 << 32;
/// A long string has its deadline for each so many bytes of it.
const STRETCH_BYTES: u64 = 64 << 20;

/// `*2`, `$20`, twenty digits, and their ends of lines.
const MOST_CURSOR_BYTES: usize = 40;

/// The number that an array begins with, as SCAN and its kin reply.
fn cursor_of(reply: &[u8]) -> Option<u64> {
    let mut lines = reply
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii_end);
    let (array, size, cursor) = (lines.next()?, lines.next()?, lines.next()?);
    let fits = array.starts_with(b"*") && size.starts_with(b"$");
    fits.then(|| std::str::from_utf8(cursor).ok()?.parse().ok())?
}

/// When operations are sent.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// The next ones when all replies to the last are there.
    Closed,
    /// At intended times, `interval_ns` apart over all connections. The clock of these times runs
    /// only while the drive does; it was 0 at `origin_ns`.
    Open { interval_ns: f64, origin_ns: u64 },
}

/// What the connections of a thread have in common while they are driven.
pub(crate) struct Journal {
    pub now_ns: u64,
    /// Grows with each whole reply, and with each long stretch of one.
    pub progress: u64,
    pub bytes_received: u64,
    pub pace: Pace,
    pub pipeline: u64,
    pub latencies: Option<Latencies>,
}

struct InFlight {
    command: usize,
    key: u64,
    /// Where the operation begins among all bytes ever sent.
    at: u64,
}

pub(crate) struct Connection {
    socket: TcpStream,
    /// Its number among `connections`.
    index: u64,
    connections: u64,
    stream: Stream,
    parser: Parser,
    /// Requests since byte `base` of all; `written` of them are sent.
    out: Vec<u8>,
    written: usize,
    base: u64,
    in_flight: VecDeque<InFlight>,
    /// To the first operation in flight.
    replies_read: usize,
    /// The data that the reply under way is compared with.
    data: Option<Vec<u8>>,
    spare: Vec<u8>,
    /// The beginning of a reply that starts with a cursor.
    head: Vec<u8>,
    values: u64,
    /// Received since the last reply was whole.
    reply_bytes: u64,
    operations_sent: u64,
    operations_left: u64,
    sent_ns: u64,
    bytes_received: u64,
}

impl Connection {
    pub(crate) fn new(
        socket: TcpStream,
        stream: Stream,
        index: usize,
        connections: usize,
    ) -> Connection {
        Connection {
            socket,
            index: index as u64,
            connections: connections as u64,
            stream,
            parser: Parser::new(),
            out: Vec::new(),
            written: 0,
            base: 0,
            in_flight: VecDeque::new(),
            replies_read: 0,
            data: None,
            spare: Vec::new(),
            head: Vec::new(),
            values: 0,
            reply_bytes: 0,
            operations_sent: 0,
            operations_left: 0,
            sent_ns: 0,
            bytes_received: 0,
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(crate) fn allow(&mut self, operations: u64) {
        self.operations_left += operations;
    }

    pub(crate) fn operations_left(&self) -> u64 {
        self.operations_left
    }

    pub(crate) fn operations_done(&self) -> u64 {
        self.operations_sent - self.in_flight.len() as u64
    }

    pub(crate) fn bytes_sent(&self) -> u64 {
        self.base + self.written as u64
    }

    pub(crate) fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn is_written(&self) -> bool {
        self.written == self.out.len()
    }

    /// When the next operation may be sent; None when not before a reply, or never.
    pub(crate) fn next_due_ns(&self, journal: &Journal) -> Option<u64> {
        let full = self.in_flight.len() as u64 >= journal.pipeline;
        if full || self.operations_left == 0 {
            return None;
        }
        match journal.pace {
            Pace::Closed => self.in_flight.is_empty().then_some(journal.now_ns),
            Pace::Open { .. } => Some(self.intended_ns(journal.pace, self.operations_sent)),
        }
    }

    /// When operation `number` of this connection is to be sent, or was.
    fn intended_ns(&self, pace: Pace, number: u64) -> u64 {
        match pace {
            Pace::Closed => self.sent_ns,
            Pace::Open {
                interval_ns,
                origin_ns,
            } => {
                let before = number * self.connections + self.index;
                origin_ns.saturating_add((before as f64 * interval_ns) as u64)
            }
        }
    }

    /// Sends what may be sent now, in one write where that is possible.
    pub(crate) fn send(&mut self, plan: &Plan, journal: &Journal) -> Result<(), DriveError> {
        let due = |connection: &Connection| {
            let due_ns = connection.next_due_ns(journal);
            due_ns.is_some_and(|due_ns| due_ns <= journal.now_ns)
        };
        if !due(self) {
            return Ok(());
        }
        self.forget_sent();
        match journal.pace {
            Pace::Closed => {
                let count = journal.pipeline.min(self.operations_left);
                (0..count).for_each(|_| self.render(plan));
                // Latency counts from the write, not from the reply that made room for it.
                let is_timed = journal.latencies.is_some();
                self.sent_ns = if is_timed {
                    clock::now_ns()
                } else {
                    journal.now_ns
                };
            }
            Pace::Open { .. } => {
                while due(self) {
                    self.render(plan);
                }
            }
        }
        self.flush()
    }

    fn render(&mut self, plan: &Plan) {
        let at = self.base + self.out.len() as u64;
        let (command, key) = self.stream.next(plan, &mut self.out);
        self.in_flight.push_back(InFlight { command, key, at });
        self.operations_sent += 1;
        self.operations_left -= 1;
    }

    fn forget_sent(&mut self) {
        let begun = self
            .in_flight
            .front()
            .map_or(usize::MAX, |front| (front.at - self.base) as usize);
        let done = begun.min(self.written);
        if self.in_flight.is_empty() || done > MOST_KEPT_BYTES {
            self.out.drain(..done);
            self.written -= done;
            self.base += done as u64;
        }
    }

    /// Writes what there is room for.
    pub(crate) fn flush(&mut self) -> Result<(), DriveError> {
        while !self.is_written() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Why the server closed it may be there to be read, and is read next.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                    ) =>
                {
                    break
                }
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Reads what is there, or a part of it where that is much, through `buffer`.
    pub(crate) fn receive(
        &mut self,
        plan: &Plan,
        buffer: &mut [u8],
        journal: &mut Journal,
    ) -> Result<(), DriveError> {
        for _ in 0..MOST_READS {
            match self.socket.read(buffer) {
                Ok(0) => return Err(self.lost("the server closed it")),
                Ok(length) => {
                    self.bytes_received += length as u64;
                    journal.bytes_received += length as u64;
                    journal.now_ns = clock::now_ns();
                    self.read_replies(plan, &buffer[..length], journal)?;
                    self.book(length as u64, journal)?;
                    if length < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Bounds what has come of a reply that is not whole.
    fn book(&mut self, bytes: u64, journal: &mut Journal) -> Result<(), DriveError> {
        if !self.parser.is_inside() && self.reply_bytes == 0 {
            return Ok(());
        }
        let before = self.reply_bytes;
        self.reply_bytes += bytes;
        if self.reply_bytes > MOST_REPLY_BYTES {
            let gib = MOST_REPLY_BYTES >> 30;
            let text = format!("the reply to {} has more than {gib} GiB", self.request());
            return Err(DriveError::reply(text));
        }
        let stretches = |bytes: u64| bytes / STRETCH_BYTES;
        if stretches(self.reply_bytes) > stretches(before) && self.parser.is_inside_long_text() {
            journal.progress += 1;
        }
        Ok(())
    }

    fn read_replies(
        &mut self,
        plan: &Plan,
        mut bytes: &[u8],
        journal: &mut Journal,
    ) -> Result<(), DriveError> {
        while !bytes.is_empty() {
            let front = self.in_flight.front();
            let follows = front.is_some_and(|front| plan.commands[front.command].follows);
            let expectation =
                front.map(|front| &plan.commands[front.command].replies[self.replies_read]);
            let value = expectation.is_some_and(|expectation| expectation.value);
            if value && !self.parser.is_inside() {
                self.choose_data(plan);
            }
            if follows && !self.parser.is_inside() {
                self.head.clear();
            }
            let text = expectation.and_then(|expectation| expectation.text);
            let expected = self.data.as_deref().or(text);
            let (taken, reply) = match self.parser.feed(bytes, expected) {
                Ok(fed) => fed,
                Err(malformed) => return Err(self.malformed(&malformed)),
            };
            if follows {
                let room = MOST_CURSOR_BYTES.saturating_sub(self.head.len());
                self.head.extend_from_slice(&bytes[..taken.min(room)]);
            }
            bytes = &bytes[taken..];
            if let Some(reply) = reply {
                let cursor = follows.then(|| cursor_of(&self.head).ok_or_else(|| self.request()));
                self.take_reply(plan, &reply, journal)?;
                if let Some(found) = cursor {
                    self.stream.cursor = found.map_err(|request| {
                        DriveError::reply(format!("{request} got a reply without a cursor"))
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Before a value's reply: whether its bytes are compared, or its length only.
    fn choose_data(&mut self, plan: &Plan) {
        let compared = self.values % COMPARED_ONE_IN == 0;
        if let Some(front) = self
            .in_flight
            .front()
            .filter(|_| compared && self.data.is_none())
        {
            let mut data = std::mem::take(&mut self.spare);
            data.clear();
            plan.write_data(front.key, &mut data);
            self.data = Some(data);
        }
    }

    #[inline]
    fn take_reply(
        &mut self,
        plan: &Plan,
        reply: &Reply,
        journal: &mut Journal,
    ) -> Result<(), DriveError> {
        let Some(front) = self.in_flight.front() else {
            let error = shown(self.parser.error());
            let text = "the server sent a reply that nobody asked for";
            let text: String = match reply.error {
                true => format!("{text}: {error}"),
                false => text.into(),
            };
            return Err(DriveError::reply(text));
        };
        let replies = &plan.commands[front.command].replies;
        let expectation = &replies[self.replies_read];
        if !expectation.is_met(reply, || plan.data_bytes(front.key)) {
            let data_bytes = plan.data_bytes(front.key);
            let complaint = expectation.complaint(reply, self.parser.error(), data_bytes);
            let text = format!("{} {complaint}", self.request());
            return Err(DriveError::reply(text));
        }
        if expectation.value {
            self.values += 1;
            self.spare = self
                .data
                .take()
                .unwrap_or_else(|| std::mem::take(&mut self.spare));
        }
        journal.progress += 1;
        self.reply_bytes = 0;
        self.replies_read += 1;
        if self.replies_read == replies.len() {
            if let Some(latencies) = &mut journal.latencies {
                let sent_ns = self.intended_ns(journal.pace, self.operations_done());
                latencies.record(journal.now_ns.saturating_sub(sent_ns));
            }
            self.replies_read = 0;
            self.in_flight.pop_front();
        }
        Ok(())
    }

    /// The request whose reply is next, in words.
    pub(crate) fn request(&self) -> String {
        let front = self.in_flight.front();
        let rendered = front.map_or(&[][..], |front| {
            &self.out[(front.at - self.base) as usize..]
        });
        describe(rendered, self.replies_read)
    }

    fn malformed(&self, malformed: &Malformed) -> DriveError {
        let text = format!("malformed reply to {}: {}", self.request(), malformed.0);
        DriveError::reply(text)
    }

    fn lost(&self, why: &str) -> DriveError {
        DriveError::reply(if self.parser.is_inside() {
            format!(
                "the connection ended inside a reply: that to {} ({why})",
                self.request()
            )
        } else if self.in_flight.is_empty() {
            format!("a connection was lost between requests: {why}")
        } else {
            format!(
                "the connection was lost before the reply to {}: {why}",
                self.request()
            )
        })
    }
}
