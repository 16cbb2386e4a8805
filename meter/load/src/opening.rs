//! Before the first operation: connections, their protocol, and what is sent once.

use crate::error::DriveError;
use crate::expect::{describe, Expectation};
use crate::resp::{Parser, Reply};
use crate::stream::sha1_digits;
use crate::template::request;
use ensign_host::clock;
use ensign_host::wait::Waiter;
use ensign_protocol::drive::{Drive, Wanted};
use ensign_protocol::Code;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

const CONNECT_PIECE: Duration = Duration::from_millis(100);
/// All connections together have the deadline, and so much more for each.
const CONNECT_NS: u64 = 10_000_000;

/// How a server is spoken to before it is driven.
pub(crate) struct Opening<'a> {
    pub drive: &'a Drive,
    pub address: SocketAddr,
    pub waiter: &'a Waiter,
}

impl Opening<'_> {
    /// All connections, ready for the first operation.
    pub(crate) fn open(&self) -> Result<Vec<TcpStream>, DriveError> {
        let count = self.drive.connections;
        let until_ns = clock::now_ns()
            .saturating_add(self.drive.deadline_ns)
            .saturating_add(count as u64 * CONNECT_NS);
        let sockets: Vec<TcpStream> = (0..count)
            .map(|index| self.connect(index, until_ns))
            .collect::<Result<_, _>>()?;
        let anything = Expectation::default();
        for argv in &self.drive.init {
            self.ask(&sockets[0], &request(argv), &anything, None)?;
        }
        for source in self.drive.scripts.values() {
            let sha1 = sha1_digits(source);
            let load = request(&["SCRIPT", "LOAD", source]);
            let string = Expectation::any_of(&[Wanted::Bulk]);
            self.ask(&sockets[0], &load, &string, Some(sha1.as_bytes()))?;
        }
        // The kernel connects in the server's place: what accepting costs it is to be over before
        // anything counts.
        if let Some(last) = sockets.last() {
            self.settle(last)?;
        }
        Ok(sockets)
    }

    /// Waits until the server has looked at a connection: any reply will do.
    fn settle(&self, socket: &TcpStream) -> Result<(), DriveError> {
        let ping = request(&["PING"]);
        let until_ns = self.deadline();
        self.write(socket, &ping, until_ns)?;
        self.reply(socket, &ping, &mut Parser::new(), None, until_ns)?;
        Ok(())
    }

    fn connect(&self, index: usize, until_ns: u64) -> Result<TcpStream, DriveError> {
        let address = self.address;
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EMFILE) => {
                let text = format!("`connections`: only {index} may be open here (`ulimit -n`)");
                DriveError::failed(Code::Request, text)
            }
            _ => {
                let number = index + 1;
                let text = format!("connection {number} to {address} failed: {error}");
                DriveError::failed(Code::NotReady, text)
            }
        };
        let socket = loop {
            // A listener that is full keeps connections waiting; the run may have to end meanwhile.
            match TcpStream::connect_timeout(&address, CONNECT_PIECE) {
                Err(error) if error.kind() == ErrorKind::TimedOut && clock::now_ns() < until_ns => {
                    self.waiter.readable(&[], Some(clock::now_ns()))?;
                }
                connected => break connected.map_err(failed)?,
            }
        };
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        if self.drive.protocol == 3 {
            let map = Expectation::any_of(&[Wanted::Array]);
            let until_ns = until_ns.min(self.deadline());
            self.ask_until(&socket, &request(&["HELLO", "3"]), (&map, None), until_ns)?;
        }
        Ok(socket)
    }

    /// Sends one request and judges its reply, which may be demanded to have a certain text.
    fn ask(
        &self,
        socket: &TcpStream,
        request: &[u8],
        expectation: &Expectation,
        text: Option<&[u8]>,
    ) -> Result<(), DriveError> {
        self.ask_until(socket, request, (expectation, text), self.deadline())
    }

    fn deadline(&self) -> u64 {
        clock::now_ns().saturating_add(self.drive.deadline_ns)
    }

    fn ask_until(
        &self,
        socket: &TcpStream,
        request: &[u8],
        (expectation, text): (&Expectation, Option<&[u8]>),
        until_ns: u64,
    ) -> Result<(), DriveError> {
        self.write(socket, request, until_ns)?;
        let mut parser = Parser::new();
        let reply = self.reply(socket, request, &mut parser, text, until_ns)?;
        if expectation.is_met(&reply, || 0) {
            return Ok(());
        }
        let complaint = expectation.complaint(&reply, parser.error(), 0);
        let text = format!("{} {complaint}", describe(request, 0));
        Err(DriveError::reply(text))
    }

    fn write(
        &self,
        mut socket: &TcpStream,
        request: &[u8],
        until_ns: u64,
    ) -> Result<(), DriveError> {
        let mut written = 0;
        while written < request.len() {
            match socket.write(&request[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.waiter.writable(socket.as_raw_fd(), Some(until_ns))? {
                        return Err(self.silence(request, 0));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(request, &error.to_string())),
            }
        }
        Ok(())
    }

    fn reply(
        &self,
        mut socket: &TcpStream,
        request: &[u8],
        parser: &mut Parser,
        text: Option<&[u8]>,
        until_ns: u64,
    ) -> Result<Reply, DriveError> {
        let mut buffer = [0u8; 4096];
        let mut received = 0;
        loop {
            let fd = [socket.as_raw_fd()];
            // Who sends without end is always ready.
            let ready = self.waiter.readable(&fd, Some(until_ns))?.is_some();
            if !ready || clock::now_ns() >= until_ns {
                return Err(self.silence(request, received));
            }
            let length = match socket.read(&mut buffer) {
                Ok(0) => return Err(lost(request, "the server closed it")),
                Ok(length) => length,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue
                }
                Err(error) => return Err(lost(request, &error.to_string())),
            };
            received += length;
            let mut bytes = &buffer[..length];
            while !bytes.is_empty() {
                let (taken, reply) = parser.feed(bytes, text).map_err(|malformed| {
                    let request = describe(request, 0);
                    DriveError::reply(format!("malformed reply to {request}: {}", malformed.0))
                })?;
                if let Some(reply) = reply {
                    return Ok(reply);
                }
                bytes = &bytes[taken..];
            }
        }
    }

    /// After so many bytes without a whole reply.
    fn silence(&self, request: &[u8], bytes: usize) -> DriveError {
        let seconds = self.drive.deadline_ns as f64 / 1e9;
        let request = describe(request, 0);
        let text = match bytes {
            0 => format!("no reply to {request} within {seconds} s"),
            _ => format!("no whole reply to {request} within {seconds} s, only {bytes} bytes"),
        };
        DriveError::failed(Code::Deadline, text)
    }
}

fn lost(request: &[u8], why: &str) -> DriveError {
    let request = describe(request, 0);
    DriveError::reply(format!(
        "the connection was lost before the reply to {request}: {why}"
    ))
}
