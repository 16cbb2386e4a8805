//! What a variant used up to its finish, and how many operations it completed.

use crate::commands::launch::{Names, Process};
use crate::commands::said::Said;
use crate::halt::Halt;
use crate::processes::procfs::Footprint;
use crate::processes::usage::Usage;
use crate::score::{number, numbers};
use ensign_load::Report;
use ensign_protocol::records::{Activity, NamedScore};
use ensign_protocol::request;
use ensign_protocol::Code;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// A load generator's file is not larger.
const MOST_JSON_BYTES: u64 = 16 << 20;
/// More figures than anybody reads.
const MOST_SCORES: usize = 10_000;
/// What is told of a report: a line of the records has it.
const MOST_REPORT_BYTES: u64 = 4 << 20;

#[derive(Clone, Debug, Default)]
pub(crate) struct Total {
    pub wall_ns: u64,
    pub usage: Usage,
    pub load_cpu_ns: u64,
    pub operations: Option<u64>,
    pub footprint: Footprint,
    pub slices: u64,
    pub counters: Vec<u64>,
    pub drive: Option<Report>,
    pub score: Option<f64>,
    pub scores: Vec<NamedScore>,
    pub report: Option<String>,
    /// Of the batch program where that was asked for.
    pub digest: Option<String>,
    /// Time in which a task of the program waited for a CPU, where the machine tells.
    pub cpu_wait_ns: Option<u64>,
    pub activity: Option<Activity>,
    pub load_activity: Option<Activity>,
}

/// Cumulative readings, of which slices and totals are differences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub main: Usage,
    pub load: Usage,
    pub cpu_wait_ns: Option<u64>,
    pub counters: Vec<u64>,
}

/// What the program or the load generator printed, once it has ended.
pub(crate) struct Printed<'a> {
    variant: &'a request::Variant,
    text: String,
    /// What it wrote to standard error, where a score is looked for: some say it there.
    errors: String,
}

impl Printed<'_> {
    /// Reads it where a number is looked for in it.
    pub(crate) fn of<'a>(variant: &'a request::Variant, runner: &Process) -> Printed<'a> {
        let read = |said: &Said| {
            said.finish();
            said.text().replace('\r', "\n")
        };
        let scored = variant.score_pattern.is_some() || !variant.scores.is_empty();
        let text = variant.reads_output().then(|| read(&runner.stdout));
        let errors = scored.then(|| read(&runner.stderr));
        Printed {
            variant,
            text: text.unwrap_or_default(),
            errors: errors.unwrap_or_default(),
        }
    }

    /// 1 for a batch program of which nothing else is said; as told, as printed or as written.
    pub(crate) fn operations(&self, names: &Names) -> Result<Option<u64>, Halt> {
        let variant = self.variant;
        let (told, pattern) = match &variant.load {
            Some(load) => (load.operations, &load.operations_pattern),
            None if variant.operations_pattern.is_some() => (None, &variant.operations_pattern),
            None => (Some(variant.operations.unwrap_or(1)), &None),
        };
        if told.is_some() {
            return Ok(told);
        }
        let written = variant
            .load
            .as_ref()
            .and_then(|load| load.operations_json.as_ref());
        let (count, why) = if let Some(pattern) = pattern {
            let who = if variant.load.is_some() {
                "the load generator"
            } else {
                "it"
            };
            let why = format!("nothing that {who} printed matches '{pattern}'");
            (self.count(pattern), why)
        } else if let Some(written) = written {
            let text =
                written_text(&names.expand(&written.file), MOST_JSON_BYTES).unwrap_or_default();
            let why = format!(
                "the load generator wrote no number '{}' into '{}'",
                written.pointer, written.file
            );
            (count_in_json(&text, &written.pointer), why)
        } else {
            return Ok(None);
        };
        let unknown = || self.unknown(&format!("the count of operations is unknown: {why}"));
        count.map(Some).ok_or_else(unknown)
    }

    fn count(&self, pattern: &str) -> Option<u64> {
        number(&self.text, pattern, "").map(|number| number.round() as u64)
    }

    /// What it says of its own speed.
    pub(crate) fn score(&self) -> Result<Option<f64>, Halt> {
        let Some(pattern) = &self.variant.score_pattern else {
            return Ok(None);
        };
        let read = |text: &str| number(text, pattern, &self.variant.score_unit);
        let found = read(&self.text).or_else(|| read(&self.errors));
        let found = found.filter(|&score| score > 0.0);
        let unknown = || {
            self.unknown(&format!(
                "the score is unknown: nothing printed matches '{pattern}' with a number above 0"
            ))
        };
        found.map(Some).ok_or_else(unknown)
    }

    /// What it says of its own speed, by names.
    pub(crate) fn scores(&self) -> Vec<NamedScore> {
        let patterns = self.variant.scores.iter();
        patterns
            .flat_map(|each| {
                let read = |text: &str| numbers(text, &each.name, &each.pattern, &each.unit);
                let printed = read(&self.text);
                if printed.iter().any(|score| score.value.is_some()) {
                    return printed;
                }
                let said = read(&self.errors);
                let found = said.iter().any(|score| score.value.is_some());
                if found || printed.is_empty() {
                    said
                } else {
                    printed
                }
            })
            .take(MOST_SCORES)
            .collect()
    }

    /// The text that somebody else is to read: of a file, or what was printed.
    pub(crate) fn report(&self, names: &Names) -> Result<Option<String>, Halt> {
        if self.variant.report_output {
            return Ok(Some(self.text.clone()));
        }
        let Some(file) = &self.variant.report_file else {
            return Ok(None);
        };
        let text = written_text(&names.expand(file), MOST_REPORT_BYTES);
        text.map(Some)
            .map_err(|error| self.unknown(&format!("its report '{file}' is missing: {error}")))
    }

    fn unknown(&self, what: &str) -> Halt {
        let name = &self.variant.name;
        let text = format!("variant {name:?}: {what}");
        Halt::failed(Code::OperationsUnknown, name, text)
    }
}

/// Of a plain file: no link, and nothing that could be waited for.
fn written_text(path: &str, most_bytes: u64) -> io::Result<String> {
    let mut options = File::options();
    let file = (options.read(true))
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let text = format!("it has more than {} MiB", most_bytes >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn count_in_json(text: &str, pointer: &str) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let number = value.pointer(pointer)?.as_f64()?;
    (number >= 1.0).then_some(number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::count_in_json;

    #[test]
    fn a_count_is_read_from_json() {
        let text = r#"{"ALL STATS": {"Totals": {"Count": 2000, "Ops/sec": 7.5}}}"#;
        assert_eq!(count_in_json(text, "/ALL STATS/Totals/Count"), Some(2000));
        assert_eq!(count_in_json(text, "/ALL STATS/Sets/Count"), None);
        assert_eq!(count_in_json("", "/ALL STATS/Totals/Count"), None);
        let none = r#"{"ALL STATS": {"Totals": {"Count": 0}}}"#;
        assert_eq!(count_in_json(none, "/ALL STATS/Totals/Count"), None);
    }
}
