//! What an arm used up to its finish, and how many operations it completed.

use crate::account::Usage;
use crate::drive::Report;
use crate::halt::{Code, Halt};
use crate::launch::{Names, Process};
use crate::procfs::Footprint;
use crate::request;
use std::fs;

#[derive(Clone, Debug, Default)]
pub struct Total {
    pub wall_ns: u64,
    pub usage: Usage,
    pub load_cpu_ns: u64,
    pub operations: Option<u64>,
    pub footprint: Footprint,
    pub slices: u64,
    pub counters: Vec<u64>,
    pub drive: Option<Report>,
}

/// Cumulative readings, of which slices and totals are differences.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub main: Usage,
    pub load: Usage,
    pub counters: Vec<u64>,
}

/// 1 for a batch program; as told, as printed or as written for a load generator.
pub fn operations(
    arm: &request::Arm,
    runner: &Process,
    names: &Names,
) -> Result<Option<u64>, Halt> {
    let Some(load) = &arm.load else {
        return Ok(Some(1));
    };
    if load.operations.is_some() {
        return Ok(load.operations);
    }
    let (count, why) = if let Some(pattern) = &load.operations_pattern {
        let count = count_operations(&runner.text(&runner.stdout), pattern);
        let why = format!("nothing that the load generator printed matches {pattern:?}");
        (count, why)
    } else if let Some(written) = &load.operations_json {
        let text = fs::read_to_string(names.expand(&written.file)).unwrap_or_default();
        let why = format!(
            "the load generator wrote no number {:?} into {:?}",
            written.pointer, written.file
        );
        (count_in_json(&text, &written.pointer), why)
    } else {
        return Ok(None);
    };
    count.map(Some).ok_or_else(|| {
        let name = &arm.name;
        let text = format!("arm {name:?}: the count of operations is unknown: {why}");
        Halt::failed(Code::OperationsUnknown, name, text)
    })
}

fn count_in_json(text: &str, pointer: &str) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let number = value.pointer(pointer)?.as_f64()?;
    (number >= 1.0).then_some(number.round() as u64)
}

/// The last match of the pattern's first group, as a number.
fn count_operations(output: &str, pattern: &str) -> Option<u64> {
    let text = output.replace('\r', "\n");
    let regex = regex_lite::Regex::new(pattern).ok()?;
    let found = regex
        .captures_iter(&text)
        .filter_map(|captures| captures.get(1))
        .last()?;
    let digits: String = found
        .as_str()
        .chars()
        .filter(|c| !matches!(c, ',' | '_'))
        .collect();
    let number: f64 = digits.trim().parse().ok()?;
    (number >= 0.0).then_some(number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{count_in_json, count_operations};

    #[test]
    fn a_count_is_read_from_json() {
        let text = r#"{"ALL STATS": {"Totals": {"Count": 2000, "Ops/sec": 7.5}}}"#;
        assert_eq!(count_in_json(text, "/ALL STATS/Totals/Count"), Some(2000));
        assert_eq!(count_in_json(text, "/ALL STATS/Sets/Count"), None);
        assert_eq!(count_in_json("", "/ALL STATS/Totals/Count"), None);
        let none = r#"{"ALL STATS": {"Totals": {"Count": 0}}}"#;
        assert_eq!(count_in_json(none, "/ALL STATS/Totals/Count"), None);
    }

    #[test]
    fn the_last_count_counts() {
        let output = "SET: rps=0 (1 requests)\rSET: rps=5 (7 requests)\r\n  100000 requests completed in 1 s\n";
        assert_eq!(count_operations(output, r"(\d+) requests"), Some(100_000));
        assert_eq!(count_operations(output, r"rps=(\d+)"), Some(5));
        assert_eq!(
            count_operations("1,234,567.0 ops", r"([\d,.]+) ops"),
            Some(1_234_567)
        );
        assert_eq!(count_operations(output, r"(\d+) replies"), None);
        assert_eq!(count_operations(output, r"\d+ requests"), None);
    }
}
