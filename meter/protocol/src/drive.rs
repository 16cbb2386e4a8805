//! A drive as it is written (docs/reference/drive.md).

mod check;
pub mod placeholders;

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

const MOST_CONNECTIONS: usize = 10_000;
const MOST_PIPELINE: u64 = 100_000;
const MOST_THREADS: usize = 256;
/// What all readers of JSON have exactly.
const MOST_OPERATIONS: u64 = 1 << 53;
const MOST_DEADLINE_NS: u64 = u64::MAX / 2;
const MOST_DATA_BYTES: u64 = 512 << 20;
/// Numbers up to here are exact as floating point, which the patterns compute with.
const MOST_KEY: u64 = (1 << 53) - 1;
const MOST_WIDTH: usize = 64;
const MOST_EXPONENT: f64 = 5.0;

/// What is sent to a server of the Redis protocol. Unlike elsewhere in a request, unknown keys are
/// refused: one misspelt would quietly change what is measured.
#[derive(Deserialize, JsonSchema, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    #[serde(default = "resp2")]
    #[schemars(range(min = 2, max = 3))]
    pub protocol: u8,
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = MOST_CONNECTIONS))]
    pub connections: usize,
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_PIPELINE))]
    pub pipeline: u64,
    #[serde(default = "one_thread")]
    #[schemars(range(min = 1, max = MOST_THREADS))]
    pub threads: usize,
    /// Connections that send in one run, in turn; None: all of them.
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_CONNECTIONS))]
    pub at_once: Option<usize>,
    #[schemars(range(min = 1, max = MOST_OPERATIONS))]
    pub operations: u64,
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate_per_s: Option<f64>,
    #[serde(default)]
    pub latency: bool,
    #[serde(default)]
    pub seed: u64,
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = MOST_DEADLINE_NS))]
    pub deadline_ns: u64,
    /// For all of it, from the first operation to the last reply.
    #[serde(default = "one_hour")]
    #[schemars(range(min = 1, max = MOST_DEADLINE_NS))]
    pub within_ns: u64,
    #[serde(default)]
    pub init: Vec<Vec<String>>,
    #[serde(default)]
    pub scripts: BTreeMap<String, String>,
    #[schemars(length(min = 1))]
    pub commands: Vec<Command>,
    #[serde(default)]
    pub data: Option<Data>,
    #[serde(default)]
    pub expiry_s: Option<(u64, u64)>,
}

/// One operation: a request (`argv`), or a transaction of several.
#[derive(Deserialize, JsonSchema, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Command {
    #[serde(default)]
    pub argv: Vec<String>,
    #[serde(default)]
    pub transaction: Vec<Vec<String>>,
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub share: u64,
    #[serde(default)]
    pub keys: Option<Keys>,
    #[serde(default)]
    pub reply: Option<Demand>,
    #[serde(default)]
    pub value: bool,
}

#[derive(Deserialize, JsonSchema, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    #[serde(default)]
    pub prefix: String,
    #[serde(default)]
    #[schemars(range(max = MOST_KEY))]
    pub first: u64,
    #[schemars(range(max = MOST_KEY))]
    pub last: u64,
    #[serde(default)]
    pub pattern: Pattern,
    #[serde(default)]
    #[schemars(range(max = MOST_WIDTH))]
    pub width: usize,
    #[serde(default)]
    pub center: Option<f64>,
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub deviation: Option<f64>,
    #[serde(default)]
    #[schemars(range(max = MOST_EXPONENT), extend("exclusiveMinimum" = 0))]
    pub exponent: Option<f64>,
}

#[derive(Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    #[default]
    Random,
    Sequential,
    Parallel,
    Gaussian,
    Zipf,
}

/// How large the data of a key is; exactly one of the three is given.
#[derive(Deserialize, JsonSchema, Debug, Clone, Default)]
#[serde(deny_unknown_fields)]
pub struct Data {
    #[serde(default)]
    #[schemars(range(max = MOST_DATA_BYTES))]
    pub size: Option<u64>,
    #[serde(default)]
    pub sizes: Option<(u64, u64)>,
    #[serde(default)]
    pub weighted: Option<Vec<(u64, u64)>>,
    #[serde(default)]
    pub random: bool,
}

/// What a reply must be: one kind, or any of several.
#[derive(Deserialize, JsonSchema, Debug, Clone)]
#[serde(untagged)]
pub enum Demand {
    One(Wanted),
    Several(Vec<Wanted>),
}

#[derive(Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    Status,
    Integer,
    Bulk,
    Array,
    Any,
    Nil,
}

impl Demand {
    pub fn wanted(&self) -> &[Wanted] {
        match self {
            Demand::One(wanted) => std::slice::from_ref(wanted),
            Demand::Several(wanted) => wanted,
        }
    }
}

impl Drive {
    /// Connections that get something to send. Where there are fewer operations than all of them
    /// would pipeline, some send whole batches rather than all of them smaller ones; but of keys
    /// that are cut into parts each connection has its own.
    pub fn senders(&self) -> u64 {
        let cut = |keys: &Keys| keys.pattern == Pattern::Parallel;
        let connections = self.connections as u64;
        if self
            .commands
            .iter()
            .filter_map(|command| command.keys.as_ref())
            .any(cut)
        {
            return connections;
        }
        (self.operations / self.pipeline).clamp(1, connections)
    }
}

impl Command {
    /// The requests of one operation, without MULTI and EXEC.
    pub fn requests(&self) -> &[Vec<String>] {
        if self.transaction.is_empty() {
            std::slice::from_ref(&self.argv)
        } else {
            &self.transaction
        }
    }

    pub fn is_transaction(&self) -> bool {
        !self.transaction.is_empty()
    }
}

impl Keys {
    /// How many keys the range has.
    pub fn span(&self) -> u64 {
        self.last - self.first + 1
    }

    pub fn center(&self) -> f64 {
        let middle = (self.first as f64 + self.last as f64) / 2.0;
        self.center.unwrap_or(middle)
    }

    pub fn deviation(&self) -> f64 {
        self.deviation.unwrap_or(self.span() as f64 / 6.0)
    }

    pub fn exponent(&self) -> f64 {
        self.exponent.unwrap_or(1.0)
    }
}

fn resp2() -> u8 {
    2
}
fn fifty() -> usize {
    50
}
fn one() -> u64 {
    1
}
fn one_thread() -> usize {
    1
}
fn one_hour() -> u64 {
    3_600_000_000_000
}
fn ten_seconds() -> u64 {
    10_000_000_000
}
