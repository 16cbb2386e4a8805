//! Where a record goes: to a file, or to the collector that listens on a socket.
//!
//! The collector sends a word that nobody can know before (a line), gets `ensign-record 1 WORD
//! SETTINGS LENGTH` (a line; SETTINGS is the hash of the settings) and the record, and answers `ok`,
//! or why not. By then it has looked twice at who is there, and that it was the same program all
//! the time. See docs/reference/recorder.md.

use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// For a collector on a machine where everything else compiles.
const PATIENCE: Duration = Duration::from_secs(120);
const LONGEST_LINE_BYTES: u64 = 4096;

pub(crate) enum Sink<'a> {
    Socket(&'a Path),
    File(&'a Path),
    Nowhere,
}

impl<'a> Sink<'a> {
    pub(crate) fn of(socket: Option<&'a Path>, log: Option<&'a Path>) -> Sink<'a> {
        match (socket, log) {
            (Some(socket), _) => Sink::Socket(socket),
            (None, Some(log)) => Sink::File(log),
            (None, None) => Sink::Nowhere,
        }
    }

    /// Nothing is lost in silence: where nobody takes the record, the call fails.
    pub(crate) fn write(&self, record: &impl Serialize, settings: &str) -> Result<(), String> {
        match self {
            Sink::Nowhere => Ok(()),
            Sink::File(log) => append(log, record)
                .map_err(|error| format!("cannot record to {}: {error}", log.display())),
            Sink::Socket(socket) => match send(socket, record, settings) {
                Ok(answer) if answer == "ok" => Ok(()),
                Ok(answer) => Err(format!("this call was not recorded: {answer}")),
                Err(error) => Err(format!(
                    "this call cannot be recorded: nobody collects records at {} ({error})",
                    socket.display()
                )),
            },
        }
    }
}

/// One line, whole, however many calls end at once.
fn append(log: &Path, record: &impl Serialize) -> io::Result<()> {
    let line = line(record)?;
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    // The lock goes with the descriptor.
    flock(&file, FlockOperation::LockExclusive)?;
    file.write_all(&line)
}

fn line(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

fn send(socket: &Path, record: &impl Serialize, settings: &str) -> io::Result<String> {
    let line = line(record)?;
    let mut stream = connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let word = answer(&mut answers)?;
    let header = format!("ensign-record 1 {word} {settings} {}\n", line.len());
    stream.write_all(header.as_bytes())?;
    stream.write_all(&line)?;
    answer(&mut answers)
}

/// A socket's address is short, its path may be long: it is named by the folder it lies in.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let name = socket.file_name().unwrap_or_default();
    let folder = open(folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let by_folder = format!("/proc/self/fd/{}", folder.as_raw_fd());
    UnixStream::connect(Path::new(&by_folder).join(name))
}

fn answer(from: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut text = String::new();
    from.take(LONGEST_LINE_BYTES).read_line(&mut text)?;
    match text.strip_suffix('\n') {
        Some(line) => Ok(line.to_string()),
        None => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it ended before it answered",
        )),
    }
}
