//! Numbers in what programs print.

use crate::unit;
use ensign_protocol::records::NamedScore;
use regex_lite::{Captures, Match, Regex};
use std::collections::HashMap;

/// The last match of the pattern's first group (or of `value`), as a number of that unit.
///
/// Where no unit is asked for, one right behind the number counts: `1.2ms` is 0.0012, `3k` 3000.
pub(crate) fn number(text: &str, pattern: &str, unit: &str) -> Option<f64> {
    let regex = Regex::new(pattern).ok()?;
    let found: Vec<Match> = regex.captures_iter(text).filter_map(value_of).collect();
    let reading = Reading::of(text, unit, &found);
    reading.number(*found.last()?)
}

/// The last number of each name that the pattern's group `name` matches; without one, of `name`.
///
/// In the order of their first matches. Where there is no number above 0 there is none.
pub(crate) fn numbers(text: &str, name: &str, pattern: &str, unit: &str) -> Vec<NamedScore> {
    let above_0 = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let named = Regex::new(pattern)
        .ok()
        .filter(|regex| regex.capture_names().flatten().any(|each| each == "name"));
    let Some(regex) = named else {
        let (name, value) = (name.into(), above_0(number(text, pattern, unit)));
        return vec![NamedScore { name, value }];
    };
    let values: Vec<Match> = regex.captures_iter(text).filter_map(value_of).collect();
    let reading = Reading::of(text, unit, &values);
    let mut found: Vec<NamedScore> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for captures in regex.captures_iter(text) {
        let Some(name) = captures.name("name").map(|found| found.as_str()) else {
            continue;
        };
        let value = above_0(value_of(captures).and_then(|value| reading.number(value)));
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

/// How the numbers in a text are written, and what they are to be.
struct Reading<'a> {
    text: &'a str,
    unit: &'a str,
    /// A number among them is no other than one with a comma before its fraction, as `0,85`.
    decimal_comma: bool,
}

impl<'a> Reading<'a> {
    fn of(text: &'a str, unit: &'a str, found: &[Match]) -> Reading<'a> {
        let decimal_comma = (found.iter()).any(|each| has_decimal_comma(each.as_str()));
        Reading {
            text,
            unit,
            decimal_comma,
        }
    }

    /// A number with separators of thousands and a unit: nothing else may stand with it.
    fn number(&self, found: Match) -> Option<f64> {
        let parts = Regex::new(NUMBER).ok()?;
        let parts = parts.captures(found.as_str().trim())?;
        let exponent = parts.get(2).map_or("", |each| each.as_str());
        let digits = plain(&parts[1], self.decimal_comma);
        let value: f64 = format!("{digits}{exponent}").parse().ok()?;
        let value = value * self.factor(parts[3].trim(), found);
        value.is_finite().then_some(value)
    }

    /// By what it is multiplied; `own` is what stands behind the digits in the match itself.
    fn factor(&self, own: &str, found: Match) -> f64 {
        let behind = &self.text[found.end()..];
        let apart = found.as_str().ends_with(char::is_whitespace);
        let glued = !own.is_empty() || (!apart && behind.starts_with(is_of_unit));
        let word = if !glued {
            word_of(behind.trim_start_matches([' ', '\t']))
        } else if apart {
            own.to_owned()
        } else if own.is_empty() {
            word_of(behind)
        } else {
            // The pattern ends within what stands there, as `([0-9.]+ \w+)` before `/s`.
            word_of(&format!("{own}{}", word_of(behind)))
        };
        let plain = if glued {
            unit::plain_factor(&word)
        } else {
            1.0
        };
        if self.unit.is_empty() || (!glued && !unit::is_unit(&word)) {
            return plain;
        }
        unit::factor(&word, self.unit, glued).unwrap_or(plain)
    }
}

/// Digits with separators, an exponent, and words: no second number, as in `1:23.4` or `1m2s`.
const NUMBER: &str = r"^([0-9.][0-9.,_' \u{a0}\u{202f}’]*)([eE][+-]?[0-9]+)?([^0-9:]*)$";

fn is_of_unit(c: char) -> bool {
    c.is_alphabetic() || c == 'µ'
}

/// The word at the start of a text, with what it is per: `MB/s`.
fn word_of(text: &str) -> String {
    let end = |text: &str| text.find(|c| !is_of_unit(c)).unwrap_or(text.len());
    let first = end(text);
    match text[first..].strip_prefix('/') {
        Some(rest) => text[..first + 1 + end(rest)].to_owned(),
        None => text[..first].to_owned(),
    }
}

fn has_decimal_comma(text: &str) -> bool {
    let digits: String = text
        .chars()
        .filter(|c| matches!(c, '0'..='9' | ',' | '.'))
        .collect();
    match digits.rsplit_once(',') {
        // `1.234,5`, `0,850` and `12,5` are nothing else.
        Some((whole, rest)) if !rest.contains('.') && !whole.contains(',') => {
            whole.contains('.') || rest.len() != 3 || whole.bytes().all(|digit| digit == b'0')
        }
        _ => false,
    }
}

/// Without separators of thousands, and with a point before the fraction.
fn plain(digits: &str, decimal_comma: bool) -> String {
    let digits: String = digits
        .chars()
        .filter(|c| matches!(c, '0'..='9' | ',' | '.'))
        .collect();
    let (points, commas) = (digits.matches('.').count(), digits.matches(',').count());
    let thousands = points > 1
        || digits
            .rsplit_once('.')
            .is_some_and(|(_, rest)| rest.len() == 3);
    if decimal_comma && commas == 1 {
        return digits.replace('.', "").replace(',', ".");
    }
    if commas == 0 && (points > 1 || (decimal_comma && thousands)) {
        return digits.replace('.', "");
    }
    digits.replace(',', "")
}

#[cfg(test)]
mod tests {
    use super::{number, numbers};

    fn told(text: &str, pattern: &str) -> Vec<(String, Option<f64>)> {
        let found = numbers(text, "own", pattern, "").into_iter();
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
        assert_eq!(number(output, r"(\d+) requests", ""), Some(100_000.0));
        assert_eq!(number(output, r"rps=(\d+)", ""), Some(5.0));
        assert_eq!(number(output, r"(\d+) replies", ""), None);
        assert_eq!(number(output, r"\d+ requests", ""), None);
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
            assert_eq!(
                number(text, r"^([\d.,_e+]+) ops", ""),
                Some(value),
                "{text}"
            );
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
            let found = number(text, r"rate ([\d.]+)", "").unwrap();
            assert!(
                (found - value).abs() < 1e-9 * value.max(1.0),
                "{text}: {found}"
            );
        }
        assert_eq!(number("rate 12 MB/s", r"rate ([\d.]+ \w+)", ""), Some(12e6));
    }

    #[test]
    fn a_unit_that_is_asked_for_is_that_of_the_score() {
        for (text, unit, value) in [
            ("rate 950us", "us", 950.0),
            ("rate 1.2ms", "us", 1200.0),
            ("rate 1.2 ms", "us", 1200.0),
            ("rate 950 us", "us", 950.0),
            ("rate 12 GB/s", "MB/s", 12_000.0),
            ("rate 12.5MiB/s", "KiB/s", 12_800.0),
            ("rate 1129956.83k", "kB/s", 1_129_956.83),
            ("rate 12.5k req", "requests/s", 12_500.0),
            ("rate 7 k", "requests/s", 7.0),
            ("rate 3 min 2 max 5", "ms", 3.0),
            ("rate 40 ops", "ms", 40.0),
            ("rate 40ops", "ops/s", 40.0),
            ("rate 5 ms", "points", 5.0),
            ("rate 5 ms", "", 5.0),
        ] {
            let found = number(text, r"rate ([\d.]+)", unit).unwrap();
            assert!((found / value - 1.0).abs() < 1e-9, "{text}: {found}");
        }
        assert_eq!(number("5 ms", r"([\d.]+) ms", ""), Some(5.0));
        let told = numbers(
            "a: 2 ms\nb: 900 us\n",
            "",
            r"(?m)^(?P<name>\w): (?P<value>\S+)",
            "ms",
        );
        let values: Vec<_> = told.iter().map(|each| each.value).collect();
        assert_eq!(values, [Some(2.0), Some(0.9)]);
    }

    #[test]
    fn commas_mean_what_they_mean_in_the_whole_output() {
        for (text, value) in [
            ("1.234,5 x", 1234.5),
            ("1.234.567,25 x", 1_234_567.25),
            ("1.234.567 x", 1_234_567.0),
            ("1,234.5 x", 1234.5),
            ("0,850 x", 0.85),
            ("0,85 x\n1,234 x", 1.234),
            ("12,5 x\n1.234 x", 1234.0),
            ("1.234 x", 1.234),
            ("1\u{202f}234,5 x", 1234.5),
            ("1’234.5 x", 1234.5),
        ] {
            let pattern = "([0-9.,\u{202f}’]+) x";
            assert_eq!(number(text, pattern, ""), Some(value), "{text}");
        }
    }

    #[test]
    fn two_numbers_in_one_match_are_none() {
        for text in [
            "1:23.4",
            "1m2.5s",
            "12/5",
            "1-5",
            "5 ms 6",
            "x5",
            "",
            "1.2.3e4,5",
        ] {
            let found = number(text, r"^(.*)$", "");
            assert_eq!(found, None, "{text}");
        }
    }
}
