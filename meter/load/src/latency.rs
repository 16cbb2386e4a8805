//! Latencies as HDR histograms (hdrhistogram.org): three digits, whatever the size.

use ensign_protocol::records::Summary;
use hdrhistogram::Histogram;

const DIGITS: u8 = 3;
/// An hour; what takes longer is counted there.
const HIGHEST_NS: u64 = 3_600_000_000_000;

#[derive(Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS);
        Latencies(histogram.expect("the bounds are in range"))
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// None where nothing was recorded.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let at = |quantile| self.0.value_at_quantile(quantile);
        (!self.0.is_empty()).then(|| Summary {
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.0.max(),
            mean: self.0.mean().round() as u64,
            count: self.0.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_right_to_three_digits() {
        let mut parts = [Latencies::new(), Latencies::new()];
        for value in 1..=100_000u64 {
            parts[value as usize % 2].record(value * 1000);
        }
        let [mut all, other] = parts;
        all.add(&other);
        let summary = all.summary().unwrap();
        for (seen, wanted) in [
            (summary.p50, 50_000_000.0),
            (summary.p95, 95_000_000.0),
            (summary.p99, 99_000_000.0),
            (summary.p999, 99_900_000.0),
            (summary.max, 100_000_000.0),
            (summary.mean, 50_000_500.0),
        ] {
            assert!(
                (seen as f64 / wanted - 1.0).abs() < 0.001,
                "{seen} {wanted}"
            );
        }
        assert_eq!(summary.count, 100_000);
    }

    #[test]
    fn nothing_recorded_is_no_summary() {
        assert_eq!(Latencies::new().summary(), None);
    }
}
