//! The request, as it is written (docs/reference/meter-protocol.md).

use crate::drive::Drive;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const SCHEMA: u64 = 1;
pub(crate) const SHORTEST_SLICE_NS: u64 = 100_000;
pub(crate) const LONGEST_SLICE_NS: u64 = 60_000_000_000;
/// The counters that can be asked for.
pub const COUNTERS: [&str; 6] = [
    "instructions",
    "cycles",
    "cache-misses",
    "branch-misses",
    "page-faults",
    "context-switches",
];

const DEFAULT_READY_NS: u64 = 10_000_000_000;

#[derive(Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Interleaved,
    Driven,
    Alternating,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum FreezerChoice {
    #[default]
    Auto,
    Cgroup,
    Signal,
}

#[derive(Deserialize, JsonSchema, Debug)]
pub struct Race {
    pub schema: u64,
    #[serde(default)]
    pub hold: bool,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default = "five_milliseconds")]
    #[schemars(range(min = SHORTEST_SLICE_NS, max = LONGEST_SLICE_NS))]
    pub slice_ns: u64,
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub executions: u64,
    #[serde(default)]
    pub budget_ns: Option<u64>,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub freezer: FreezerChoice,
    #[serde(default)]
    pub meter_cpus: Option<Vec<usize>>,
    #[serde(default = "default_ports")]
    pub ports: (u16, u16),
    #[serde(default)]
    pub scratch: Option<String>,
    #[serde(default = "yes")]
    pub env_padding: bool,
    /// Of whole executions: a server is there in its own turn only.
    #[serde(default)]
    pub apart: bool,
    #[serde(default)]
    pub counters: Vec<String>,
    /// Looks at the states of all tasks of the variant that runs.
    #[serde(default)]
    pub observe: bool,
    /// Reads at the end of each slice of an interleaved race where the variant's tasks stand.
    #[serde(default)]
    pub code_samples: bool,
    /// What `"output": "inherit"` means: a file that the caller left open for it.
    #[serde(default)]
    pub inherit_fd: Option<i32>,
    #[serde(default)]
    pub containment: Containment,
    #[schemars(length(min = 1))]
    pub variants: Vec<Variant>,
}

#[derive(Deserialize, JsonSchema, Debug)]
pub struct Exec {
    pub schema: u64,
    #[serde(default)]
    pub hold: bool,
    pub process: Process,
    #[serde(default)]
    pub scratch: Option<String>,
    #[serde(default)]
    pub freezer: FreezerChoice,
    /// Looks at the states of all its tasks.
    #[serde(default)]
    pub observe: bool,
    /// Whether standard output is kept for its tail; otherwise it flows away as in a race.
    #[serde(default = "yes")]
    pub keep_output: bool,
    #[serde(default)]
    pub inherit_fd: Option<i32>,
    #[serde(default)]
    pub containment: Containment,
}

/// What holds for all processes of a run.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Containment {
    /// As whom they run, without any privilege; None is as the meter itself.
    #[serde(default)]
    pub user: Option<UserIds>,
    /// How much a variant may write below its `{tmp}`; None does not limit it.
    #[serde(default)]
    pub tmp_bytes: Option<u64>,
    /// Whether they get variables that name the run and the variant.
    #[serde(default = "yes")]
    pub marks: bool,
    /// Files and folders that they need, besides those that the request names: for whoever makes
    /// the sandbox in which the meter runs. The meter itself has no use for them.
    #[serde(default)]
    pub reads: Vec<String>,
    /// The same of those that they write to.
    #[serde(default)]
    pub writes: Vec<String>,
}

impl Default for Containment {
    fn default() -> Containment {
        Containment {
            user: None,
            tmp_bytes: None,
            marks: true,
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }
}

/// A user and its group, by number; neither is root.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct UserIds {
    #[schemars(range(min = 1))]
    pub uid: u32,
    #[schemars(range(min = 1))]
    pub gid: u32,
}

#[derive(Deserialize, JsonSchema, Debug)]
pub struct DriveRequest {
    pub schema: u64,
    #[serde(default)]
    pub hold: bool,
    #[schemars(with = "String")]
    pub address: SocketAddr,
    pub drive: Drive,
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
}

#[derive(Deserialize, JsonSchema, Debug)]
pub struct Variant {
    pub name: String,
    pub program: Process,
    #[serde(default)]
    pub load: Option<Load>,
    #[serde(default)]
    pub ready: Option<Ready>,
    #[serde(default)]
    pub preload: Vec<Preload>,
    #[serde(default)]
    pub prepare: Vec<Process>,
    #[serde(default)]
    pub cleanup: Vec<Process>,
    #[serde(default)]
    pub files: Option<Files>,
    #[serde(default = "yes")]
    pub copy_program: bool,
    #[serde(default = "yes")]
    pub ask_to_stop: bool,
    #[serde(default)]
    pub expected_ns: Option<u64>,
    /// Whether it may run again, uncounted, while others are not done; such a run is cut off.
    #[serde(default = "yes")]
    pub fills: bool,
    /// The race is nothing without it: its failure ends all.
    #[serde(default)]
    pub required: bool,
    /// Of a batch program, as for a load: how many operations one run is.
    #[serde(default)]
    pub operations: Option<u64>,
    #[serde(default)]
    pub operations_pattern: Option<String>,
    /// What the program, or the load generator, says of its own speed.
    #[serde(default)]
    pub score_pattern: Option<String>,
    /// The unit that its number is turned into, where another one of its kind stands behind it.
    #[serde(default)]
    pub score_unit: String,
    /// Several of them, each by its name.
    #[serde(default)]
    pub scores: Vec<NamedPattern>,
    /// A file that the program writes while it runs; its text is told with its totals.
    #[serde(default)]
    pub report_file: Option<String>,
    /// Whether what the program prints is told so instead.
    #[serde(default)]
    pub report_output: bool,
}

/// Where a score stands: the last match of the first group, or of the one called `value`.
///
/// With a group called `name`, each name that it matches is a score of its own.
#[derive(Deserialize, JsonSchema, Debug)]
pub struct NamedPattern {
    #[serde(default)]
    pub name: String,
    pub pattern: String,
    /// The unit that its number is turned into, where another one of its kind stands behind it.
    #[serde(default)]
    pub unit: String,
}

/// What a variant gets a copy of: `folders` laid over each other, but for the names in `without`.
#[derive(Deserialize, JsonSchema, Debug)]
pub struct Files {
    pub folders: Vec<String>,
    #[serde(default)]
    pub without: Vec<String>,
}

/// What fills a server: a process, or a drive of the meter's own.
#[derive(Deserialize, JsonSchema, Debug)]
pub struct Preload {
    #[serde(default)]
    pub drive: Option<Drive>,
    #[serde(flatten)]
    pub process: Process,
}

/// What a server is measured under: a process, or a drive of the meter's own on `cpus`.
#[derive(Deserialize, JsonSchema, Debug)]
pub struct Load {
    #[serde(default)]
    pub process: Option<Process>,
    #[serde(default)]
    pub drive: Option<Drive>,
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
    #[serde(default)]
    pub operations: Option<u64>,
    #[serde(default)]
    pub operations_pattern: Option<String>,
    #[serde(default)]
    pub operations_json: Option<JsonCount>,
}

/// A number in a JSON file that the load generator wrote; `pointer` is that of RFC 6901.
#[derive(Deserialize, JsonSchema, Debug)]
pub struct JsonCount {
    pub file: String,
    pub pointer: String,
}

#[derive(Deserialize, JsonSchema, Debug)]
pub struct Ready {
    #[serde(default)]
    pub output: Option<String>,
    #[serde(default = "default_ready")]
    pub deadline_ns: u64,
}

#[derive(Deserialize, JsonSchema, Debug, Clone, Default)]
pub struct Process {
    #[serde(default)]
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub clear_env: bool,
    #[serde(default)]
    pub cwd: Option<String>,
    /// The root directory in which it runs: its program and `cwd` are places of that. The meter
    /// opens its standard files outside.
    #[serde(default)]
    pub root: Option<String>,
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
    #[serde(default)]
    pub stdin: Option<String>,
    #[serde(default)]
    pub stdout: Option<String>,
    #[serde(default)]
    pub stderr: Option<String>,
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Where standard output goes that has no file.
    #[serde(default)]
    pub output: Output,
    /// Asks for a hash of everything that goes to a drained pipe.
    #[serde(default)]
    pub digest: bool,
    #[serde(default)]
    pub ignore_failure: bool,
    #[serde(default)]
    pub limits: Limits,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// What is written is taken and dropped.
    #[default]
    Pipe,
    /// The file /dev/null, which programs can tell from others.
    Null,
    /// The caller's own.
    Inherit,
}

#[derive(Deserialize, JsonSchema, Debug, Clone, Default)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub file_bytes: Option<u64>,
    pub address_space_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub cpu_s: Option<u64>,
    pub processes: Option<u64>,
    /// Of the whole tree that the process belongs to, all its processes and threads together.
    pub tree_processes: Option<u64>,
    /// Of the whole tree: memory of all its processes together.
    pub tree_memory_bytes: Option<u64>,
}

impl Limits {
    fn are_of_tree(&self) -> bool {
        self.tree_processes.is_some() || self.tree_memory_bytes.is_some()
    }
}

fn yes() -> bool {
    true
}
fn one() -> u64 {
    1
}
fn five_milliseconds() -> u64 {
    5_000_000
}
fn default_ready() -> u64 {
    DEFAULT_READY_NS
}
fn default_ports() -> (u16, u16) {
    (20_000, 29_999)
}

/// What the meter is asked to do with a request.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Race,
    Exec,
    Drive,
}

/// Any verb's request.
#[derive(Debug)]
pub enum Request {
    Race(Race),
    Exec(Exec),
    Drive(DriveRequest),
}

impl Request {
    pub fn hold(&self) -> bool {
        match self {
            Request::Race(race) => race.hold,
            Request::Exec(exec) => exec.hold,
            Request::Drive(drive) => drive.hold,
        }
    }

    pub fn scratch(&self) -> Option<&str> {
        match self {
            Request::Race(race) => race.scratch.as_deref(),
            Request::Exec(exec) => exec.scratch.as_deref(),
            Request::Drive(_) => None,
        }
    }

    pub fn inherit_fd(&self) -> Option<i32> {
        match self {
            Request::Race(race) => race.inherit_fd,
            Request::Exec(exec) => exec.inherit_fd,
            Request::Drive(_) => None,
        }
    }

    pub fn containment(&self) -> Containment {
        match self {
            Request::Race(race) => race.containment.clone(),
            Request::Exec(exec) => exec.containment.clone(),
            Request::Drive(_) => Containment::default(),
        }
    }

    /// Whether any whole tree has a limit of its own.
    pub fn limits_trees(&self) -> bool {
        match self {
            Request::Race(race) => {
                (race.variants.iter()).any(|variant| variant.program.limits.are_of_tree())
            }
            Request::Exec(exec) => exec.process.limits.are_of_tree(),
            Request::Drive(_) => false,
        }
    }

    pub fn freezer(&self) -> FreezerChoice {
        match self {
            Request::Race(race) => race.freezer,
            Request::Exec(exec) => exec.freezer,
            // Nothing is started, so nothing can be stopped.
            Request::Drive(_) => FreezerChoice::Signal,
        }
    }
}

impl Variant {
    /// Whether a number stands in what the program, or the load generator, prints.
    pub fn reads_output(&self) -> bool {
        let load = self.load.as_ref();
        self.score_pattern.is_some()
            || !self.scores.is_empty()
            || self.report_output
            || self.operations_pattern.is_some()
            || load.is_some_and(|load| load.operations_pattern.is_some())
    }

    pub fn drive(&self) -> Option<&Drive> {
        self.load.as_ref().and_then(|load| load.drive.as_ref())
    }

    pub fn load_process(&self) -> Option<&Process> {
        self.load.as_ref().and_then(|load| load.process.as_ref())
    }

    /// All processes that are run beside the measured ones.
    pub fn set_up(&self) -> impl Iterator<Item = &Process> {
        let preload = self.preload.iter().filter(|each| each.drive.is_none());
        preload
            .map(|each| &each.process)
            .chain(&self.prepare)
            .chain(&self.cleanup)
    }

    pub fn ready_output(&self) -> Option<String> {
        self.ready.as_ref().and_then(|ready| ready.output.clone())
    }

    pub fn ready_deadline_ns(&self) -> u64 {
        self.ready
            .as_ref()
            .map_or(DEFAULT_READY_NS, |ready| ready.deadline_ns)
    }

    pub fn mentions_port(&self) -> bool {
        std::iter::once(&self.program)
            .chain(self.load_process())
            .chain(self.set_up())
            .any(|process| process.mentions("{port}"))
    }
}

impl Process {
    pub fn mentions(&self, placeholder: &str) -> bool {
        let paths = [&self.cwd, &self.stdin, &self.stdout, &self.stderr];
        self.argv
            .iter()
            .chain(self.env.values())
            .chain(paths.into_iter().flatten())
            .any(|text| text.contains(placeholder))
    }
}
