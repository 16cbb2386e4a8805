//! The data of a key: size and bytes follow from the key's number alone, so that any reader can
//! verify what any writer wrote. Pure.

use ensign_protocol::drive as spec;
use ensign_protocol::random::Random;

const TEXT_UNIT: usize = 16;

pub(crate) struct Data {
    sizes: Sizes,
    random: bool,
}

enum Sizes {
    Fixed(usize),
    Uniform {
        least: usize,
        span: usize,
    },
    /// Sizes with the sum of weights up to and including each.
    Weighted(Vec<(usize, u64)>),
}

impl Data {
    /// Of a checked specification.
    pub(crate) fn new(spec: &spec::Data) -> Data {
        let sizes = match (spec.size, spec.sizes, &spec.weighted) {
            (_, Some((least, most)), _) => Sizes::Uniform {
                least: least as usize,
                span: (most - least + 1) as usize,
            },
            (_, _, Some(weighted)) => {
                let mut sum = 0;
                let cumulative = weighted.iter().map(|&(size, weight)| {
                    sum += weight;
                    (size as usize, sum)
                });
                Sizes::Weighted(cumulative.collect())
            }
            (size, _, _) => Sizes::Fixed(size.unwrap_or(0) as usize),
        };
        Data {
            sizes,
            random: spec.random,
        }
    }

    pub(crate) fn size(&self, number: u64) -> usize {
        match &self.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Uniform { least, span } => least + stream(number).below(*span),
            Sizes::Weighted(cumulative) => {
                let total = cumulative.last().map_or(0, |&(_, sum)| sum);
                let drawn = stream(number).below(total as usize) as u64;
                let index = cumulative.partition_point(|&(_, sum)| sum <= drawn);
                cumulative[index].0
            }
        }
    }

    /// Appends the data: incompressible bytes, or 16 hexadecimal digits again and again.
    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        let (start, end) = (out.len(), out.len() + self.size(number));
        // The first draw is the size's.
        let mut random = stream(number).fork();
        out.reserve(end - start + TEXT_UNIT);
        if self.random {
            while out.len() < end {
                out.extend_from_slice(&random.next_u64().to_le_bytes());
            }
        } else {
            let unit = random.next_u64();
            let digit =
                |index: usize| b"0123456789abcdef"[(unit >> (60 - 4 * index)) as usize & 15];
            out.extend((0..TEXT_UNIT).map(digit));
            while out.len() < end {
                let written = (out.len() - start).min(end - out.len());
                out.extend_from_within(start..start + written);
            }
        }
        out.truncate(end);
    }
}

fn stream(number: u64) -> Random {
    Random::new(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn data(spec: Value) -> Data {
        Data::new(&serde_json::from_value(spec).unwrap())
    }

    fn bytes(data: &Data, number: u64) -> Vec<u8> {
        let mut out = b"before".to_vec();
        data.write(number, &mut out);
        assert_eq!(&out[..6], b"before");
        out.split_off(6)
    }

    #[test]
    fn data_have_the_size_that_is_said_and_are_always_the_same() {
        for spec in [
            json!({"size": 0}),
            json!({"size": 3}),
            json!({"size": 1000}),
            json!({"size": 1001, "random": true}),
            json!({"sizes": [0, 70]}),
            json!({"weighted": [[10, 1], [300, 2]], "random": true}),
        ] {
            for number in 0..200 {
                let written = bytes(&data(spec.clone()), number);
                assert_eq!(written.len(), data(spec.clone()).size(number));
                assert_eq!(written, bytes(&data(spec.clone()), number));
            }
        }
    }

    #[test]
    fn keys_differ_in_their_data() {
        for random in [true, false] {
            let data = data(json!({"size": 16, "random": random}));
            let mut all: Vec<_> = (0..1000).map(|number| bytes(&data, number)).collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 1000);
        }
    }

    #[test]
    fn text_repeats_and_can_be_read() {
        let written = bytes(&data(json!({"size": 100})), 5);
        assert!(written.iter().all(u8::is_ascii_hexdigit));
        assert!(written[16..].iter().zip(&written).all(|(a, b)| a == b));
    }

    #[test]
    fn random_bytes_are_evenly_distributed() {
        let written = bytes(&data(json!({"size": 256_000, "random": true})), 5);
        let mut counts = [0.0f64; 256];
        written
            .iter()
            .for_each(|&byte| counts[byte as usize] += 1.0);
        let square: f64 = counts.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
        assert!((square - 255.0).abs() < 4.0 * (2.0 * 255.0f64).sqrt());
    }

    #[test]
    fn sizes_have_their_shares() {
        let sizes = |spec: Value| {
            let data = data(spec);
            (0..100_000).map(move |number| data.size(number))
        };
        let uniform: Vec<usize> = sizes(json!({"sizes": [10, 19]})).collect();
        for size in 10..20 {
            let count = uniform.iter().filter(|&&s| s == size).count() as f64;
            assert!((count - 10_000.0).abs() < 4.0 * 95.0, "{size}: {count}");
        }
        let weighted = sizes(json!({"weighted": [[1, 1], [2, 0], [4, 3]]}));
        let counts = weighted.fold([0.0; 5], |mut counts, size| {
            counts[size] += 1.0;
            counts
        });
        assert_eq!(counts[2], 0.0);
        assert!((counts[1] - 25_000.0f64).abs() < 4.0 * 137.0, "{counts:?}");
    }
}
