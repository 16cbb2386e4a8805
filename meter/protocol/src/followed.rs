//! The document of `follow`: what a program and its children did.

use crate::records::Mapped;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

pub const SCHEMA: u32 = 1;

/// Why something is not in the document that may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The machine does not let one process trace another.
    NotAllowed,
    /// There is no table of system calls for this architecture.
    Architecture,
    /// The kernel's filter is not to be had: only starts, ends and what was mapped then was seen.
    NoFilter,
    /// System calls of a kind that there is no table for were made.
    ForeignCalls,
    /// More than are kept.
    TooMany,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Program {
    /// What was asked for: a script, where that is not the file that the kernel executed.
    pub path: String,
    pub executable: String,
}

/// How a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Opened,
    Appended,
    Named,
    Removed,
    Locked,
    Bound,
}

#[derive(Serialize, JsonSchema)]
pub struct Change<'a> {
    pub path: &'a str,
    pub ways: &'a BTreeSet<Way>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Exit {
    pub program: String,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Exits<'a> {
    #[serde(flatten)]
    pub exit: &'a Exit,
    /// Processes that ended so.
    pub count: u64,
}

/// CPU time by where running tasks were found after it.
#[derive(Serialize, JsonSchema)]
pub struct Sampled<'a> {
    /// The file of the code; empty where it is in none.
    pub path: &'a str,
    pub cpu_ns: u64,
    /// Of `cpu_ns`, what was found within system calls that this code made.
    pub kernel_ns: u64,
}

/// CPU time that was found within one system call.
#[derive(Serialize, JsonSchema)]
pub struct CallTime {
    /// Its name, or its number where that has none.
    pub call: String,
    pub cpu_ns: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Followed<'a> {
    pub schema: u32,
    /// Whether the program ended by itself while it was followed.
    pub complete: bool,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub not_judged: &'a BTreeSet<Gap>,
    pub programs: &'a BTreeSet<Program>,
    pub mapped: &'a BTreeSet<Mapped>,
    /// Code was executable that is in no file.
    pub jit: bool,
    /// Processes that the program left running; they are ended.
    pub left_running: usize,
    /// What the program's tasks used that ended, without the tracer.
    pub cpu_ns: u64,
    pub written: Vec<Change<'a>>,
    /// Files and folders that were opened to be read alone.
    pub read: &'a BTreeSet<String>,
    /// There were more of them than are kept.
    pub read_in_part: bool,
    pub exits: Vec<Exits<'a>>,
    pub cpu_clock_reads: u64,
    pub children_clock_reads: u64,
    pub cpu_timers: u64,
    pub cpu_limits_reached: u64,
    pub processes: u64,
    pub threads: usize,
    /// Empty where no looks were asked for.
    pub samples: Vec<Sampled<'a>>,
    pub calls: Vec<CallTime>,
}
