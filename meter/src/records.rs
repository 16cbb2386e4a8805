//! The records (docs/meter-protocol.md), and their way out.

use crate::activity::Activity;
use crate::drive::verb::DriveTotal;
use crate::drive::{Report, Summary};
use crate::follow::seen::Mapped;
use crate::halt::Halt;
use crate::wait::Waiter;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

pub type CounterValues = BTreeMap<&'static str, u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Program,
    Server,
    Load,
    Preload,
    Prepare,
    Cleanup,
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    Exited,
    Deadline,
    Ended,
    Filler,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Record<'a> {
    Start(Start<'a>),
    Slice(Slice<'a>),
    Variant(Box<VariantTotal<'a>>),
    Outcome(&'a Outcome),
    Execution(Execution),
    Drive(DriveTotal),
    Warning(&'a Warning),
    Failure(&'a VariantFailure),
    Error(ErrorRecord<'a>),
    End(End),
}

#[derive(Serialize)]
pub struct Start<'a> {
    pub schema: u64,
    pub meter: &'static str,
    pub freezer: &'static str,
    pub mode: &'static str,
    pub counters: &'a [&'static str],
    pub counters_scope: Option<&'static str>,
    pub pid: u32,
}

#[derive(Serialize)]
pub struct Slice<'a> {
    pub execution: u64,
    pub variant: &'a str,
    pub start_ns: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub load_cpu_ns: u64,
    pub cpu_wait_ns: Option<u64>,
    pub filler: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    #[serde(serialize_with = "pairs")]
    pub counters: (&'a [&'static str], &'a [u64]),
}

fn pairs<S: Serializer>(
    (names, values): &(&[&'static str], &[u64]),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(names.iter().zip(*values))
}

#[derive(Serialize)]
pub struct VariantTotal<'a> {
    pub execution: u64,
    pub variant: &'a str,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub load_cpu_ns: u64,
    pub operations: Option<u64>,
    pub peak_memory_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub slices: u64,
    pub counters: CounterValues,
    pub cpu_wait_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_activity: Option<Activity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub mapped: &'a BTreeSet<Mapped>,
    #[serde(flatten)]
    pub drive: Option<DriveFacts>,
}

/// What a variant's drive adds to its totals.
#[derive(Serialize)]
pub struct DriveFacts {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub latency_ns: Option<Summary>,
}

impl DriveFacts {
    pub fn of(report: &Report) -> DriveFacts {
        DriveFacts {
            bytes_sent: report.bytes_sent,
            bytes_received: report.bytes_received,
            latency_ns: report.latency_ns,
        }
    }
}

#[derive(Serialize, Clone, Debug)]
pub struct Outcome {
    pub execution: u64,
    pub variant: Option<String>,
    pub role: Role,
    pub argv: Vec<String>,
    pub pid: i32,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Reason,
    pub user_ns: u64,
    pub system_ns: u64,
    pub active_wall_ns: u64,
    pub peak_memory_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub stderr_tail: String,
    pub stdout_tail: String,
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

/// What else is told of a command that is run alone.
#[derive(Serialize, Clone, Debug)]
pub struct Seen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub cpu_wait_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

#[derive(Serialize)]
pub struct Execution {
    pub execution: u64,
    pub wall_ns: u64,
    pub started_unix_ns: u64,
    pub running_share: f64,
    pub steal_ns: u64,
    pub valid: bool,
}

#[derive(Serialize, Clone)]
pub struct Warning {
    pub code: &'static str,
    pub execution: Option<u64>,
    pub variant: Option<String>,
    pub text: String,
    /// Names of the processes that were ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
}

/// What ended a variant, while the race goes on without it.
#[derive(Serialize, Clone)]
pub struct VariantFailure {
    pub execution: u64,
    pub variant: String,
    pub code: &'static str,
    pub text: String,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Serialize)]
pub struct ErrorRecord<'a> {
    pub code: &'static str,
    pub execution: Option<u64>,
    pub variant: Option<&'a str>,
    pub text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Complete,
    Failed,
    Interrupted,
}

#[derive(Serialize)]
pub struct End {
    pub status: Status,
    pub executions: u64,
}

/// One record as a line.
pub fn line(record: &Record) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The worker's end of the pipe to the guardian, which passes whole lines on.
pub struct Emitter {
    pipe: OwnedFd,
    buffer: Vec<u8>,
}

const FLUSH_BYTES: usize = 1 << 16;

impl Emitter {
    pub fn new(pipe: OwnedFd) -> Emitter {
        Emitter {
            pipe,
            buffer: Vec::new(),
        }
    }

    pub fn put(&mut self, waiter: &Waiter, record: &Record) -> Result<(), Halt> {
        serde_json::to_writer(&mut self.buffer, record).map_err(|e| Halt::system(e.to_string()))?;
        self.buffer.push(b'\n');
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush(waiter)?;
        }
        Ok(())
    }

    pub fn flush(&mut self, waiter: &Waiter) -> Result<(), Halt> {
        while !self.buffer.is_empty() {
            match self.write_some() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    waiter.writable(self.pipe.as_raw_fd(), None)?;
                }
                // Nobody reads any more.
                Err(_) => return Err(Halt::Interrupted),
            }
        }
        Ok(())
    }

    /// The last words, said also when the run is being ended; the guardian reads until we exit.
    pub fn last(&mut self, record: &Record) {
        self.buffer.extend(line(record));
        while !self.buffer.is_empty() {
            match self.write_some() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    crate::clock::sleep_ns(1_000_000);
                }
                Err(_) => return,
            }
        }
    }

    fn write_some(&mut self) -> io::Result<()> {
        // SAFETY: the buffer outlives the call.
        let written = unsafe {
            let data = self.buffer.as_ptr().cast();
            libc::write(self.pipe.as_raw_fd(), data, self.buffer.len())
        };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        self.buffer.drain(..written as usize);
        Ok(())
    }
}

/// Records that the guardian writes when the worker cannot.
pub fn last_words(out: &mut Vec<u8>, error: Option<(&'static str, &str)>, status: Status) {
    if let Some((code, text)) = error {
        let record = ErrorRecord {
            code,
            execution: None,
            variant: None,
            text,
        };
        // A vector takes all that is written to it.
        let _ = out.write_all(&line(&Record::Error(record)));
    }
    let end = End {
        status,
        executions: 0,
    };
    let _ = out.write_all(&line(&Record::End(end)));
}
