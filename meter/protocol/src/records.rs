//! The records (docs/reference/meter-protocol.md).

use crate::code::{Code, WarningCode};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

pub type CounterValues = BTreeMap<&'static str, u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    Exited,
    Deadline,
    Ended,
    Filler,
    /// It, or its whole tree, was ended for memory.
    Memory,
    /// It failed after its tree was refused another process, or was ended for having too many.
    Processes,
    /// It was ended for what it wrote below `{tmp}`.
    Disk,
}

/// A limit of a whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    Memory,
    Processes,
    Disk,
}

impl Limit {
    pub fn reason(self) -> Reason {
        match self {
            Limit::Memory => Reason::Memory,
            Limit::Processes => Reason::Processes,
            Limit::Disk => Reason::Disk,
        }
    }
}

#[derive(Serialize, JsonSchema)]
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

#[derive(Serialize, JsonSchema)]
pub struct Start<'a> {
    pub schema: u64,
    pub meter: &'static str,
    pub freezer: &'static str,
    pub mode: &'static str,
    pub counters: &'a [&'static str],
    pub counters_scope: Option<&'static str>,
    pub pid: u32,
}

#[derive(Serialize, JsonSchema)]
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
}

#[derive(Serialize, JsonSchema)]
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
    /// Minor and major ones.
    pub page_faults: u64,
    pub slices: u64,
    pub counters: CounterValues,
    pub cpu_wait_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_activity: Option<Activity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub scores: &'a [NamedScore],
    /// The text of the file that was asked for, or what was printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub mapped: Vec<RaceMapped<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_samples: Option<CodeSamples<'a>>,
    #[serde(flatten)]
    pub drive: Option<DriveFacts>,
}

/// What a program says of its own speed, by its name; null where that is no number above 0.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NamedScore {
    pub name: String,
    pub value: Option<f64>,
}

/// Times in which so many tasks of a group were running or waiting for a CPU.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Activity {
    pub looks: u64,
    pub observed_ns: u64,
    /// No task could run.
    pub idle_ns: u64,
    /// Two or more could.
    pub several_ns: u64,
    /// Sum over all tasks of the time in which each could run.
    pub runnable_ns: u64,
    /// Of `idle_ns` the part with a task in uninterruptible sleep: mostly storage.
    pub storage_ns: u64,
    pub most_tasks: u64,
    /// CPU time of the task that used most, as far as it was seen.
    pub busiest_cpu_ns: u64,
    /// Of `idle_ns` what the tasks waited for.
    pub waits: Vec<Wait>,
    /// Different processes that were seen: a short one may not have been.
    pub processes: u64,
    /// CPU time of processes that ended and were waited for, as far as it was seen.
    pub children_cpu_ns: u64,
    /// Calls that read or wrote, and their bytes, as far as they were seen.
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Bytes that the link between two ends carried in its busier direction, and the time between
    /// looks in which it carried some.
    pub link_bytes: u64,
    pub link_ns: u64,
}

/// A time in which the tasks stood in these calls and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Wait {
    pub ns: u64,
    pub calls: Vec<WaitCall>,
}

/// `call` is empty where it is not known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct WaitCall {
    pub what: WaitsFor,
    pub call: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    Disk,
    Timer,
    Socket,
    Pipe,
    /// A terminal or another device of characters.
    Terminal,
    Lock,
    Child,
    /// Files, sockets or a time, as `poll` waits for them.
    Events,
    /// Another system call.
    Other,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Mapped {
    pub path: String,
    /// Major and minor number, as in `/proc/PID/maps`.
    pub device: String,
    pub inode: u64,
    pub deleted: bool,
    /// Seen from another root directory than the tracer's.
    pub other_root: bool,
}

/// A file seen in one execution of a race.
#[derive(Serialize, JsonSchema)]
pub struct RaceMapped<'a> {
    #[serde(flatten)]
    pub file: &'a Mapped,
    /// The last look at which it was seen, counted from 1.
    pub last_look: u32,
}

/// Where tasks stood at the ends of slices: counts.
#[derive(Serialize, JsonSchema)]
pub struct CodeSamples<'a> {
    pub files: Vec<SampledFile<'a>>,
    /// In code that is in no file.
    pub elsewhere: u64,
    /// In system calls, where a task may have slept.
    pub in_calls: u64,
    /// The kernel did not tell.
    pub unknown: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct SampledFile<'a> {
    pub path: &'a str,
    pub deleted: bool,
    /// Seen from another root directory than the meter's.
    pub other_root: bool,
    /// Places in the file, and how often a task stood there.
    pub places: Vec<(u64, u64)>,
}

/// The record of a drive that is complete.
#[derive(Serialize, JsonSchema)]
pub struct DriveTotal {
    pub operations: u64,
    pub wall_ns: u64,
    pub load_cpu_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub latency_ns: Option<Summary>,
}

/// All in nanoseconds, but the count.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
    pub mean: u64,
    pub count: u64,
}

/// What a variant's drive adds to its totals.
#[derive(Serialize, JsonSchema)]
pub struct DriveFacts {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub latency_ns: Option<Summary>,
}

#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct Outcome {
    pub execution: u64,
    pub variant: Option<String>,
    pub role: Role,
    pub argv: Vec<String>,
    pub pid: i32,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Reason,
    /// Limits of its tree that were met while it ran, also where it went on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_met: Vec<Limit>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub active_wall_ns: u64,
    pub peak_memory_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Minor and major ones.
    pub page_faults: u64,
    pub stderr_tail: String,
    pub stdout_tail: String,
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

/// What else is told of a command that is run alone.
#[derive(Serialize, JsonSchema, Clone, Debug)]
pub struct Seen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub cpu_wait_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

#[derive(Serialize, JsonSchema)]
pub struct Execution {
    pub execution: u64,
    pub wall_ns: u64,
    pub started_unix_ns: u64,
    pub running_share: f64,
    pub steal_ns: u64,
    pub valid: bool,
}

#[derive(Serialize, JsonSchema, Clone)]
pub struct Warning {
    pub code: WarningCode,
    pub execution: Option<u64>,
    pub variant: Option<String>,
    pub text: String,
    /// Names of the processes that were ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
}

/// What ended a variant, while the race goes on without it.
#[derive(Serialize, JsonSchema, Clone)]
pub struct VariantFailure {
    pub execution: u64,
    pub variant: String,
    pub code: Code,
    pub text: String,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Serialize, JsonSchema)]
pub struct ErrorRecord<'a> {
    pub code: Code,
    pub execution: Option<u64>,
    pub variant: Option<&'a str>,
    pub text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Complete,
    Failed,
    Interrupted,
}

#[derive(Serialize, JsonSchema)]
pub struct End {
    pub status: Status,
    pub executions: u64,
}

/// What is possible on this machine, for this user.
#[derive(Serialize, JsonSchema)]
pub struct Probe {
    pub r#type: &'static str,
    pub meter: &'static str,
    pub freezer: &'static str,
    pub cgroup: Option<String>,
    pub hierarchy: Option<&'static str>,
    /// Why control groups cannot be used, if so.
    pub obstacle: Option<String>,
    pub systemd_scope: bool,
    pub counters: Vec<&'static str>,
    pub counters_scope: Option<&'static str>,
}

/// What the processor says of itself.
#[derive(Serialize, JsonSchema)]
pub struct Processor {
    pub r#type: &'static str,
    /// By leaf, subleaf and name, such as `7.0.ebx`; `xcr0`.
    pub registers: BTreeMap<String, u64>,
}

/// One record as a line.
pub fn line(record: &Record) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Records that the guardian writes when the worker cannot.
pub fn last_words(out: &mut Vec<u8>, error: Option<(Code, &str)>, status: Status) {
    if let Some((code, text)) = error {
        let record = ErrorRecord {
            code,
            execution: None,
            variant: None,
            text,
        };
        out.extend(line(&Record::Error(record)));
    }
    let end = End {
        status,
        executions: 0,
    };
    out.extend(line(&Record::End(end)));
}
