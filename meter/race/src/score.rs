//! Numbers in what programs print.

use ensign_protocol::records::NamedScore;
use regex_lite::{Captures, Match, Regex};
use std::collections::HashMap;

/// The last match of the pattern's first group (or of `value`), as a number.
pub(crate) fn number(text: &str, pattern: &str) -> Option<f64> {
    let regex = Regex::new(pattern).ok()?;
    let found = regex.captures_iter(text).filter_map(value_of).last()?;
    parsed(text, found)
}

/// The last number of each name that the pattern's group `name` matches; without one, of `name`.
///
/// In the order of their first matches. Where there is no number above 0 there is none.
pub(crate) fn numbers(text: &str, name: &str, pattern: &str) -> Vec<NamedScore> {
    let above_0 = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let named = Regex::new(pattern)
        .ok()
        .filter(|regex| regex.capture_names().flatten().any(|each| each == "name"));
    let Some(regex) = named else {
        let (name, value) = (name.into(), above_0(number(text, pattern)));
        return vec![NamedScore { name, value }];
    };
    let mut found: Vec<NamedScore> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for captures in regex.captures_iter(text) {
        let Some(name) = captures.name("name").map(|found| found.as_str()) else {
            continue;
        };
        let value = above_0(value_of(captures).and_then(|value| parsed(text, value)));
        let place = *places.entry(name).or_insert(found.len());
        if place == found.len() {
            let name = name.to_owned();
            found.push(NamedScore { name, value });
        } else {
            found[place].value = value;
        }
    }
    found
}

fn value_of(captures: Captures<'_>) -> Option<Match<'_>> {
    captures.name("value").or_else(|| captures.get(1))
}

fn parsed(text: &str, found: Match) -> Option<f64> {
    // A unit that stands right behind the number belongs to it: "950us" and "1.2ms" differ.
    let behind = &text[found.end()..];
    let unit: String = behind.chars().take_while(|c| is_of_unit(*c)).collect();
    let ends_in_digit = found
        .as_str()
        .trim_end()
        .ends_with(|c: char| c.is_ascii_digit());
    let glued = !found.as_str().ends_with(char::is_whitespace);
    let unit = if ends_in_digit && glued { &unit } else { "" };
    parse(&format!("{}{unit}", found.as_str().trim()))
}

fn is_of_unit(c: char) -> bool {
    c.is_alphabetic() || c == 'µ'
}

/// A number with separators of thousands and a unit; times in seconds.
fn parse(text: &str) -> Option<f64> {
    let parts = Regex::new(r"^([0-9.][0-9.,_' ]*(?:[eE][+-]?[0-9]+)?)(.*)$").ok()?;
    let found = parts.captures(text)?;
    let value: f64 = plain(&found[1]).parse().ok()?;
    value.is_finite().then(|| value * factor(found[2].trim()))
}

/// Without separators of thousands, and with a point before the fraction.
fn plain(digits: &str) -> String {
    let digits: String = digits
        .chars()
        .filter(|c| !matches!(c, '_' | '\'' | ' '))
        .collect();
    match digits.split_once(',') {
        Some((whole, rest)) if !digits.contains('.') && !rest.contains(',') && rest.len() != 3 => {
            format!("{whole}.{rest}")
        }
        _ => digits.replace(',', ""),
    }
}

/// What a unit stands for, as far as it matters between two outputs of one program.
fn factor(unit: &str) -> f64 {
    let first: String = unit.chars().take_while(|c| is_of_unit(*c)).collect();
    match first.as_str() {
        "ns" => return 1e-9,
        "us" | "µs" | "μs" => return 1e-6,
        "ms" => return 1e-3,
        "min" => return 60.0,
        "h" => return 3600.0,
        _ => {}
    }
    let mut letters = first.chars();
    let prefix = letters.next();
    let binary = letters.next() == Some('i');
    let power = match prefix {
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        _ => return 1.0,
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    base.powi(power)
}

#[cfg(test)]
mod tests {
    use super::{number, numbers};

    fn told(text: &str, pattern: &str) -> Vec<(String, Option<f64>)> {
        let found = numbers(text, "own", pattern).into_iter();
        found.map(|each| (each.name, each.value)).collect()
    }

    #[test]
    fn each_name_is_a_score_of_its_own() {
        let output = "test sum ... bench: 1,234 ns/iter\ntest sort ... bench: NaN ns/iter\n";
        let pattern = r"test (?P<name>\S+) ... bench: +(?P<value>\S+)";
        let expected = vec![("sum".into(), Some(1234.0)), ("sort".into(), None)];
        assert_eq!(told(output, pattern), expected);
        let again = "a 1\nb 2\na 3\n";
        let pattern = r"(?P<value>\d)\b|(?P<name>\w)";
        assert_eq!(told(again, pattern)[0].0, "a");
        let last = told(again, r"(?P<name>\w) (?P<value>\d)");
        assert_eq!(last, [("a".into(), Some(3.0)), ("b".into(), Some(2.0))]);
    }

    #[test]
    fn without_names_the_last_match_is_the_one_score() {
        let expected = [("own".to_owned(), Some(7.0))];
        assert_eq!(told("3 MB/s, 7 MB/s", r"(\d) MB"), expected);
        assert_eq!(told("3 MB/s, 7 MB/s", r"(?P<value>\d) MB"), expected);
        assert_eq!(told("0 MB/s", r"(\d) MB"), [("own".to_owned(), None)]);
        assert_eq!(told("nothing", r"(\d) MB"), [("own".to_owned(), None)]);
    }

    #[test]
    fn the_last_match_counts() {
        let output = "SET: rps=0 (1 requests)\nSET: rps=5 (7 requests)\n  100000 requests completed in 1 s\n";
        assert_eq!(number(output, r"(\d+) requests"), Some(100_000.0));
        assert_eq!(number(output, r"rps=(\d+)"), Some(5.0));
        assert_eq!(number(output, r"(\d+) replies"), None);
        assert_eq!(number(output, r"\d+ requests"), None);
    }

    #[test]
    fn separators_of_thousands_are_none_of_the_number() {
        for (text, value) in [
            ("1,234,567.0 ops", 1_234_567.0),
            ("1_234 ops", 1234.0),
            ("1,234 ops", 1234.0),
            ("0,85 ops", 0.85),
            ("12.50 ops", 12.5),
            ("1.5e+3 ops", 1500.0),
            ("2e3 ops", 2000.0),
        ] {
            assert_eq!(number(text, r"^([\d.,_e+]+) ops"), Some(value), "{text}");
        }
    }

    #[test]
    fn a_unit_right_behind_the_number_counts() {
        for (text, value) in [
            ("rate 12.5k req", 12_500.0),
            ("rate 3.2M", 3_200_000.0),
            ("rate 2KiB/s", 2048.0),
            ("rate 950us", 950e-6),
            ("rate 1.2ms", 1.2e-3),
            ("rate 7s", 7.0),
            ("rate 7 k", 7.0),
            ("rate 40 ops", 40.0),
        ] {
            let found = number(text, r"rate ([\d.]+)").unwrap();
            assert!(
                (found - value).abs() < 1e-9 * value.max(1.0),
                "{text}: {found}"
            );
        }
        assert_eq!(number("rate 12 MB/s", r"rate ([\d.]+ \w+)"), Some(12e6));
    }
}
