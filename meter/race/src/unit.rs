//! Units that stand behind the numbers that programs print.

/// Longest first, so that `KiB` is no `K`.
const PREFIXES: [(&str, f64); 13] = [
    ("Ki", 1024.0),
    ("ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

/// What a unit measures, as far as units of it can be turned into each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Time,
    Bytes,
    Bits,
}

/// By what a number of the unit `found` is multiplied to be one of `asked` (`ms` to `us`: 1000).
///
/// `glued`: it stood right behind the number, so that `12.5k` is a number, too. None where nothing
/// is known of the two, so that the number is taken as it is.
pub(crate) fn factor(found: &str, asked: &str, glued: bool) -> Option<f64> {
    let (found, asked) = (Written::of(found), Written::of(asked));
    let over = match (time(found.per), time(asked.per)) {
        (Some(found), Some(asked)) => asked / found,
        _ => 1.0,
    };
    of_parts(found.unit, asked.unit, glued).map(|factor| factor * over)
}

/// A unit right behind a number in seconds, bytes, bits or what its prefix counts.
pub(crate) fn plain_factor(unit: &str) -> f64 {
    let unit = Written::of(unit).unit;
    if let Some((_, factor)) = known(unit) {
        return factor;
    }
    prefixed(unit).next().map_or(1.0, |(factor, _)| factor)
}

/// Whether a word behind a number says what is counted, and not what the next number is.
pub(crate) fn is_unit(word: &str) -> bool {
    let first = Written::of(word).unit;
    !matches!(first, "h" | "min" | "m" | "b" | "B" | "s") && known(first).is_some()
}

struct Written<'a> {
    unit: &'a str,
    per: &'a str,
}

impl Written<'_> {
    fn of(text: &str) -> Written<'_> {
        let text = text.trim();
        let (unit, per) = text.split_once('/').unwrap_or((text, ""));
        let (unit, per) = unit.split_once(" per ").unwrap_or((unit, per));
        Written {
            unit: unit.trim(),
            per: per.trim(),
        }
    }
}

fn of_parts(found: &str, asked: &str, glued: bool) -> Option<f64> {
    if found == asked {
        return Some(1.0);
    }
    match (known(found), known(asked)) {
        (Some((one, found)), Some((other, asked))) => {
            return (one == other).then_some(found / asked)
        }
        (Some(_), None) => return None,
        (None, _) => {}
    }
    // `Mops` and `kops`, `k` alone before `kB/s` in the table's head.
    let same = prefixed(found)
        .flat_map(|found| prefixed(asked).map(move |asked| (found, asked)))
        .find(|((_, one), (_, other))| !one.is_empty() && one == other);
    if let Some(((found, _), (asked, _))) = same {
        return Some(found / asked);
    }
    let alone = PREFIXES.iter().find(|(prefix, _)| *prefix == found)?;
    let of_asked = known(asked).map_or_else(
        || {
            PREFIXES
                .iter()
                .find(|(prefix, _)| *prefix == asked)
                .map(|each| each.1)
        },
        |(kind, factor)| (kind != Kind::Time).then_some(factor),
    );
    (glued && !found.is_empty()).then(|| alone.1 / of_asked.unwrap_or(1.0))
}

fn known(unit: &str) -> Option<(Kind, f64)> {
    if let Some(seconds) = time(unit) {
        return Some((Kind::Time, seconds));
    }
    prefixed(unit).find_map(|(factor, rest)| match rest {
        "B" | "Bps" | "byte" | "bytes" | "Byte" | "Bytes" => Some((Kind::Bytes, factor)),
        "b" | "bps" | "bit" | "bits" | "Bit" | "Bits" => Some((Kind::Bits, factor)),
        _ => None,
    })
}

/// The text without each prefix that it may have; without none last.
fn prefixed(unit: &str) -> impl Iterator<Item = (f64, &str)> {
    PREFIXES
        .iter()
        .filter_map(move |(prefix, factor)| Some((*factor, unit.strip_prefix(prefix)?)))
}

fn time(unit: &str) -> Option<f64> {
    Some(match unit {
        "ps" => 1e-12,
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{factor, is_unit};

    #[test]
    fn units_of_one_kind_become_each_other() {
        for (found, asked, expected) in [
            ("ms", "us", 1000.0),
            ("us", "us", 1.0),
            ("µs", "ns/iter", 1000.0),
            ("GB/s", "MB/s", 1000.0),
            ("KiB", "MiB/s", 1.0 / 1024.0),
            ("KiB", "kB", 1.024),
            ("MB/min", "MB/s", 1.0 / 60.0),
            ("MBytes/sec", "MB/s", 1.0),
            ("Gbit/s", "Mbits/sec", 1000.0),
            ("Mops", "kops", 1000.0),
            ("k", "kB/s", 1.0),
            ("M", "requests/s", 1e6),
            ("Kernels", "Kernels/s", 1.0),
        ] {
            let said = factor(found, asked, true).unwrap();
            assert!((said / expected - 1.0).abs() < 1e-12, "{found} {asked}");
        }
        for (found, asked) in [("MB", "ms"), ("ms", "points"), ("Mb", "MB"), ("x", "y")] {
            assert_eq!(factor(found, asked, true), None, "{found} {asked}");
        }
        assert_eq!(factor("k", "requests/s", false), None);
    }

    #[test]
    fn a_word_behind_a_number_may_be_the_next_ones_label() {
        assert!(is_unit("ms") && is_unit("MB/s") && is_unit("µs"));
        assert!(!is_unit("min") && !is_unit("ops") && !is_unit("Trials") && !is_unit(""));
    }
}
