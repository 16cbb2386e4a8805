//! Which key is next: one stream per connection and command. Pure.

use ensign_protocol::drive::{Keys, Pattern};
use ensign_protocol::random::Random;

/// The numbers of keys that one connection asks for, without end.
pub(crate) enum KeyStream {
    Random {
        first: u64,
        span: u64,
    },
    /// Walks from first to last, then again.
    Walk {
        first: u64,
        last: u64,
        next: u64,
    },
    Gaussian {
        first: u64,
        last: u64,
        center: f64,
        deviation: f64,
    },
    Zipf {
        first: u64,
        law: Zipf,
    },
}

impl KeyStream {
    /// For connection `index` of `connections`.
    pub(crate) fn new(keys: &Keys, index: usize, connections: usize) -> KeyStream {
        let (first, last) = (keys.first, keys.last);
        let walk = |first, last| KeyStream::Walk {
            first,
            last,
            next: first,
        };
        match keys.pattern {
            Pattern::Random => KeyStream::Random {
                first,
                span: keys.span(),
            },
            Pattern::Sequential => walk(first, last),
            Pattern::Parallel => {
                let (start, length) = part(keys.span(), index as u64, connections as u64);
                walk(first + start, first + start + length.max(1) - 1)
            }
            Pattern::Gaussian => KeyStream::Gaussian {
                first,
                last,
                center: keys.center(),
                deviation: keys.deviation(),
            },
            Pattern::Zipf => KeyStream::Zipf {
                first,
                law: Zipf::new(keys.span(), keys.exponent()),
            },
        }
    }

    pub(crate) fn next(&mut self, random: &mut Random) -> u64 {
        match self {
            KeyStream::Random { first, span } => *first + random.below(*span as usize) as u64,
            KeyStream::Walk { first, last, next } => {
                let number = *next;
                *next = if number == *last { *first } else { number + 1 };
                number
            }
            KeyStream::Gaussian {
                first,
                last,
                center,
                deviation,
            } => loop {
                let number = (*center + *deviation * normal(random)).round();
                if (*first as f64..=*last as f64).contains(&number) {
                    return number as u64;
                }
            },
            KeyStream::Zipf { first, law } => *first + law.rank(random) - 1,
        }
    }
}

/// Start and length of part `index` where `total` is cut into `parts` as equal as can be; the
/// first ones are the longer ones.
pub(crate) fn part(total: u64, index: u64, parts: u64) -> (u64, u64) {
    let (length, longer) = (total / parts, total % parts);
    let start = index * length + index.min(longer);
    (start, length + u64::from(index < longer))
}

/// Standard normal, by the polar method (Marsaglia and Bray 1964).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * random.unit() - 1.0, 2.0 * random.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// Ranks 1 to n with probability proportional to rank^-exponent, by rejection-inversion (Hörmann
/// and Derflinger 1996): constant time and no table, whatever n.
pub(crate) struct Zipf {
    exponent: f64,
    ranks: f64,
    /// Integral of the hat over the first rank's bar, and over all.
    least: f64,
    most: f64,
    /// Within this distance of the rank no test is needed.
    sure: f64,
}

impl Zipf {
    pub(crate) fn new(ranks: u64, exponent: f64) -> Zipf {
        let mut law = Zipf {
            exponent,
            ranks: ranks as f64,
            least: 0.0,
            most: 0.0,
            sure: 0.0,
        };
        law.least = law.integral(1.5) - 1.0;
        law.most = law.integral(law.ranks + 0.5);
        law.sure = 2.0 - law.inverse(law.integral(2.5) - law.height(2.0));
        law
    }

    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.most + random.unit() * (self.least - self.most);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.ranks);
            let sure = rank - x <= self.sure;
            if sure || area >= self.integral(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// (x^(1-s) - 1) / (1-s), and ln x where s is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.exponent) * log;
        log * if scaled.abs() > 1e-8 {
            scaled.exp_m1() / scaled
        } else {
            1.0 + scaled / 2.0
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        let log = area
            * if scaled.abs() > 1e-8 {
                scaled.ln_1p() / scaled
            } else {
                1.0 - scaled / 2.0
            };
        log.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    const DRAWS: usize = 200_000;

    fn keys(spec: Value) -> Keys {
        serde_json::from_value(spec).unwrap()
    }

    fn counts(spec: Value, seed: u64) -> Vec<f64> {
        let keys = keys(spec);
        let mut stream = KeyStream::new(&keys, 0, 1);
        let mut random = Random::new(seed);
        let mut counts = vec![0.0; keys.span() as usize];
        for _ in 0..DRAWS {
            counts[(stream.next(&mut random) - keys.first) as usize] += 1.0;
        }
        counts
    }

    /// Chi-square against known probabilities, as standard deviations from its mean.
    fn surprise(counts: &[f64], weights: &[f64]) -> f64 {
        let total: f64 = weights.iter().sum();
        let expected = weights.iter().map(|weight| DRAWS as f64 * weight / total);
        let square: f64 = counts
            .iter()
            .zip(expected)
            .map(|(count, expected)| (count - expected).powi(2) / expected)
            .sum();
        let freedom = (counts.len() - 1) as f64;
        (square - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn random_keys_are_uniform() {
        let counts = counts(json!({"first": 7, "last": 106}), 1);
        assert!(surprise(&counts, &[1.0; 100]).abs() < 4.0);
    }

    #[test]
    fn zipf_has_the_frequencies_of_its_law() {
        for exponent in [0.2, 0.99, 1.0, 1.3, 5.0] {
            let spec = json!({"first": 3, "last": 52, "pattern": "zipf", "exponent": exponent});
            let counts = counts(spec, 2);
            let weights: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-exponent)).collect();
            // Rare ranks are put together: chi-square needs a few of each.
            let rare =
                |k: &usize| weights[*k] / weights.iter().sum::<f64>() * (DRAWS as f64) < 10.0;
            let cut = (0..50).find(rare).unwrap_or(49);
            let pool = |of: &[f64]| {
                let mut pooled = of[..cut].to_vec();
                pooled.push(of[cut..].iter().sum());
                pooled
            };
            let surprise = surprise(&pool(&counts), &pool(&weights));
            assert!(surprise.abs() < 4.0, "{exponent}: {surprise}");
        }
    }

    #[test]
    fn zipf_of_one_rank_and_of_very_many_stay_in_range() {
        let mut random = Random::new(3);
        for (ranks, exponent) in [(1, 1.0), (2, 5.0), (1 << 52, 0.01), (1 << 52, 1.0)] {
            let law = Zipf::new(ranks, exponent);
            assert!((0..2000).all(|_| (1..=ranks).contains(&law.rank(&mut random))));
        }
    }

    #[test]
    fn gaussian_keys_have_center_and_deviation_and_stay_in_range() {
        let spec = json!({"last": 999, "pattern": "gaussian", "center": 500, "deviation": 50});
        let counts = counts(spec, 4);
        let mean = |of: &dyn Fn(f64) -> f64| {
            let sum = counts.iter().enumerate().map(|(k, n)| n * of(k as f64));
            sum.sum::<f64>() / DRAWS as f64
        };
        let center = mean(&|k| k);
        let deviation = mean(&|k| (k - center).powi(2)).sqrt();
        // Standard errors: 50 / sqrt(200000) = 0.11, and 0.08.
        assert!((center - 500.0).abs() < 0.5, "{center}");
        assert!((deviation - 50.0).abs() < 0.4, "{deviation}");
        let within: f64 = counts[450..=550].iter().sum();
        assert!((within / DRAWS as f64 - 0.6875).abs() < 0.006, "{within}");
    }

    #[test]
    fn gaussian_keys_at_the_edge_are_redrawn_not_clamped() {
        let spec = json!({"last": 99, "pattern": "gaussian", "center": 0, "deviation": 100});
        let counts = counts(spec, 5);
        // Clamped, half of all would be the first key.
        assert!(counts[99] > 1000.0 && counts[0] < 1.2 * counts[1]);
        assert!((counts[0] / counts[99] - (0.99f64.powi(2) / 2.0).exp()).abs() < 0.2);
    }

    #[test]
    fn sequential_walks_the_whole_range_on_each_connection() {
        let keys = keys(json!({"first": 5, "last": 8, "pattern": "sequential"}));
        let mut random = Random::new(0);
        for index in 0..2 {
            let mut stream = KeyStream::new(&keys, index, 2);
            let seen: Vec<u64> = (0..6).map(|_| stream.next(&mut random)).collect();
            assert_eq!(seen, [5, 6, 7, 8, 5, 6]);
        }
    }

    #[test]
    fn parallel_covers_each_key_exactly_once() {
        let mut random = Random::new(0);
        for (span, connections) in [(100, 7), (7, 7), (50, 1), (3, 5)] {
            let keys = keys(json!({"first": 10, "last": 9 + span, "pattern": "parallel"}));
            let mut seen = Vec::new();
            for index in 0..connections {
                let mut stream = KeyStream::new(&keys, index, connections);
                let (_, quota) = part(span, index as u64, connections as u64);
                seen.extend((0..quota).map(|_| stream.next(&mut random)));
            }
            assert_eq!(seen, (10..10 + span).collect::<Vec<u64>>());
        }
    }
}
