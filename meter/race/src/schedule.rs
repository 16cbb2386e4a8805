//! Who runs next. Pure: time comes in as arguments, randomness from a seed.

use ensign_protocol::random::Random;

/// Deals slices in proportion to each variant's expected total, never twice running to the same variant.
///
/// Stride scheduling: a variant's progress is its running time over what it is expected to need; the
/// least advanced variant is next. Up to one slice of random jitter makes the order of variants that are
/// level a random one; more than that is never made good by luck, so the order stays balanced.
pub(crate) struct Dealer {
    random: Random,
    expected_ns: Vec<f64>,
    step: Vec<f64>,
    progress: Vec<f64>,
    last: Option<usize>,
}

impl Dealer {
    pub(crate) fn new(expected_ns: &[u64], slice_ns: u64, random: Random) -> Dealer {
        let expected: Vec<f64> = expected_ns.iter().map(|&ns| ns.max(1) as f64).collect();
        Dealer {
            random,
            step: expected.iter().map(|ns| slice_ns as f64 / ns).collect(),
            progress: vec![0.0; expected.len()],
            expected_ns: expected,
            last: None,
        }
    }

    /// The next variant: an unfinished one; a filler only where the sole unfinished variant ran last, so
    /// that fillers never keep a variant from ending; the last one when there is no other.
    pub(crate) fn next(
        &mut self,
        unfinished: impl Fn(usize) -> bool,
        fills: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let alone = self
            .last
            .filter(|&variant| unfinished(variant) || fills(variant));
        self.least_advanced(unfinished)
            .or_else(|| self.least_advanced(fills))
            .or(alone)
    }

    fn least_advanced(&mut self, eligible: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for variant in 0..self.progress.len() {
            if !eligible(variant) || Some(variant) == self.last {
                continue;
            }
            let score = self.progress[variant] + self.random.unit() * self.step[variant];
            if best.is_none_or(|(_, least)| score < least) {
                best = Some((variant, score));
            }
        }
        best.map(|(variant, _)| variant)
    }

    pub(crate) fn ran(&mut self, variant: usize, ns: u64) {
        self.progress[variant] += ns as f64 / self.expected_ns[variant];
        self.last = Some(variant);
    }
}

/// The order of variants of one whole execution: random, not beginning with the variant that ended the
/// last one; two variants go ABBA, which balances a drift.
pub(crate) fn whole_order(random: &mut Random, variants: usize, previous: &[usize]) -> Vec<usize> {
    if variants == 2 && !previous.is_empty() {
        return previous.iter().rev().copied().collect();
    }
    loop {
        let order = random.permutation(variants);
        if variants < 2 || order.first() != previous.last() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn deal(
        expected: &[u64],
        slices: usize,
        seed: u64,
        length: fn(&mut Random) -> u64,
    ) -> Vec<usize> {
        let mut noise = Random::new(seed ^ 0xabcd);
        let mut dealer = Dealer::new(expected, 5_000_000, Random::new(seed));
        (0..slices)
            .map(|_| {
                let variant = dealer.next(|_| true, |_| false).unwrap();
                dealer.ran(variant, length(&mut noise));
                variant
            })
            .collect()
    }

    fn exact(_: &mut Random) -> u64 {
        5_000_000
    }

    fn noisy(random: &mut Random) -> u64 {
        4_900_000 + random.below(300_000) as u64
    }

    #[test]
    fn never_twice_in_a_row() {
        for seed in 0..50 {
            for variants in 2..7 {
                let order = deal(&vec![1_000_000_000; variants], 500, seed, noisy);
                assert!(order.windows(2).all(|pair| pair[0] != pair[1]));
            }
        }
    }

    #[test]
    fn equal_strides_stay_balanced_at_every_moment() {
        for seed in 0..50 {
            let order = deal(&[1_000_000_000; 4], 2000, seed, exact);
            let mut counts = [0i32; 4];
            for variant in order {
                counts[variant] += 1;
                let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
                assert!(spread <= 2, "seed {seed}: {counts:?}");
            }
        }
    }

    #[test]
    fn all_orders_occur() {
        let order = deal(&[1_000_000_000; 3], 3000, 7, noisy);
        let triples: HashSet<&[usize]> = order.windows(3).collect();
        // 3 x 2 x 2 triples have no variant twice in a row.
        assert_eq!(triples.len(), 12);
    }

    #[test]
    fn slices_follow_the_expected_totals() {
        let order = deal(&[100_000_000, 200_000_000, 300_000_000], 6000, 3, exact);
        let share = |variant| order.iter().filter(|&&a| a == variant).count() as f64 / 6000.0;
        assert!((share(0) - 1.0 / 6.0).abs() < 0.01, "{}", share(0));
        assert!((share(1) - 1.0 / 3.0).abs() < 0.01);
        assert!((share(2) - 1.0 / 2.0).abs() < 0.01);
    }

    #[test]
    fn a_lone_variant_goes_on() {
        let mut dealer = Dealer::new(&[1, 1], 1, Random::new(1));
        dealer.ran(0, 10);
        assert_eq!(dealer.next(|variant| variant == 0, |_| false), Some(0));
        assert_eq!(dealer.next(|variant| variant == 1, |_| false), Some(1));
        assert_eq!(dealer.next(|_| false, |_| false), None);
    }

    #[test]
    fn a_variant_that_needs_far_more_than_expected_still_gets_every_other_slice() {
        for seed in 0..20 {
            // Two variants are done; the third was expected to need a thousandth of a slice.
            let mut dealer = Dealer::new(
                &[1_000_000_000, 1_000_000_000, 5_000],
                5_000_000,
                Random::new(seed),
            );
            let mut order = Vec::new();
            for _ in 0..1000 {
                let variant = dealer
                    .next(|variant| variant == 2, |variant| variant != 2)
                    .unwrap();
                dealer.ran(variant, 5_000_000);
                order.push(variant);
            }
            assert_eq!(order.iter().filter(|&&variant| variant == 2).count(), 500);
            let fillers = |filler| order.iter().filter(|&&variant| variant == filler).count();
            assert!(fillers(0).abs_diff(fillers(1)) <= 2);
        }
    }

    #[test]
    fn fillers_wait_while_two_variants_are_unfinished() {
        let mut dealer = Dealer::new(&[1, 1_000_000_000, 1], 1, Random::new(9));
        for _ in 0..100 {
            let variant = dealer
                .next(|variant| variant != 1, |variant| variant == 1)
                .unwrap();
            assert_ne!(variant, 1);
            dealer.ran(variant, 1);
        }
    }

    #[test]
    fn two_whole_variants_go_abba() {
        let mut random = Random::new(5);
        let first = whole_order(&mut random, 2, &[]);
        let second = whole_order(&mut random, 2, &first);
        let third = whole_order(&mut random, 2, &second);
        assert_eq!(first, third);
        assert_eq!(first[1], second[0]);
    }

    #[test]
    fn whole_orders_do_not_begin_where_the_last_ended() {
        let mut random = Random::new(11);
        let mut previous = Vec::new();
        let mut seen = HashSet::new();
        for _ in 0..300 {
            let order = whole_order(&mut random, 3, &previous);
            assert_ne!(order.first(), previous.last());
            seen.insert(order.clone());
            previous = order;
        }
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut random = Random::new(1);
        let mut counts = [0; 5];
        for _ in 0..50_000 {
            counts[random.below(5)] += 1;
        }
        assert!(
            counts.iter().all(|&n| (9_500..10_500).contains(&n)),
            "{counts:?}"
        );
    }
}
