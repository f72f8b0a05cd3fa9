//! how many keys and negatives every label has -> which labels share a group.
//!
//! A key needs about `f(0, lambda)` bits where its label has `lambda` negatives per key. Labels of different lambda in one
//! group cost more, for f is concave; a group of its own costs the fixed part of a list of steps. So labels are laid out by
//! lambda, in bins of a quarter of an octave, within which a mixture costs next to nothing, and cut into runs of bins where the
//! sum of both costs is least: dynamic programming over a few hundred bins. Small labels thereby join their neighbours.
//!
//! Only counts matter, and bins are integers: the cut is the same for any order of the labels.

use crate::math::portable::log2;
use crate::plan::Goal;

/// Bits of a list of steps besides what its keys need: its entry in the directory, and the last block of every table. Exact
/// sets of 50 to 200 keys take 25 to 40 bytes more than the bound besides the frame of a file, and a group's counts six.
const FIXED: f64 = 400.0;
/// What structures need for every bit of the bound, about.
const OVERHEAD: f64 = 1.03;
/// Bins, rather more than [`bin`] gives.
const BINS: usize = 240;

/// Distinct keys and negatives.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Count {
    pub(super) keys: u64,
    pub(super) negatives: u64,
}

impl Count {
    fn add(self, other: Count) -> Count {
        Count { keys: self.keys + other.keys, negatives: self.negatives + other.negatives }
    }

    /// The place of negatives / keys on a scale of quarter octaves, from 2^-18 to 2^40; 0 for no negatives.
    fn bin(self) -> usize {
        if self.negatives == 0 {
            return 0;
        }
        let ratio = ((self.negatives as u128) << 20) / self.keys.max(1) as u128;
        let ratio = ratio.clamp(4, (1 << 60) - 1) as u64;
        let log = ratio.ilog2() - 2;
        1 + (4 * log + ((ratio >> log) as u32 & 3)) as usize
    }
}

/// The group of every label, from 1 on, 0 for labels without keys; and what the groups hold.
pub(super) fn choose(labels: &[Count], goal: Goal) -> (Vec<u8>, Vec<Count>) {
    let mut bins = [Count::default(); BINS];
    let with_keys = || labels.iter().filter(|count| count.keys > 0);
    with_keys().for_each(|&count| bins[count.bin()] = bins[count.bin()].add(count));
    let ends = match goal {
        // As many bits for every key, however many negatives its label has: there is nothing to gain.
        Goal::BitsPerKey(_) => vec![BINS],
        Goal::Fpr(rate) => cut(&bins, rate),
        Goal::Exact | Goal::ExcludedFpr(_) => cut(&bins, 1.0),
    };
    // Runs without keys are no groups.
    let mut groups: Vec<Count> = vec![];
    let mut group_of = [0; BINS];
    let mut start = 0;
    for end in ends {
        let sum = bins[start..end].iter().copied().fold(Count::default(), Count::add);
        if sum.keys > 0 {
            groups.push(sum);
            group_of[start..end].fill(groups.len() as u8);
        }
        start = end;
    }
    let group = |count: &Count| if count.keys > 0 { group_of[count.bin()] } else { 0 };
    (labels.iter().map(group).collect(), groups)
}

/// `math::bounds::free_set` for `count`, with a logarithm that is the same everywhere: it decides what is in a file.
pub(super) fn bound(count: Count, rate: f64) -> f64 {
    let (keys, negatives) = (count.keys as f64, count.negatives as f64);
    let rate = rate.min(keys / (keys + negatives));
    let of_keys = -keys * log2(rate);
    if count.negatives == 0 { of_keys } else { of_keys - negatives * log2(1.0 - rate) }
}

/// `math::bounds::f` for all keys of `count`, in the same way.
pub(super) fn share_bound(count: Count, share: f64) -> f64 {
    let (keys, negatives) = (count.keys as f64, count.negatives as f64);
    let part = |x: f64| if x > 0.0 { log2(1.0 + x) + x * log2(1.0 + 1.0 / x) } else { 0.0 };
    let lambda = negatives / keys;
    keys * (part(lambda) - part(share * lambda))
}

/// The ends of the runs of bins whose sum of costs is least, for a filter that matches a share `rate` of unlisted keys.
fn cut(bins: &[Count], rate: f64) -> Vec<usize> {
    // Whole bits: sums do not depend on how they are added up.
    let cost = |count: Count| match count.keys {
        0 => 0,
        _ => (bound(count, rate) * OVERHEAD + FIXED).ceil() as u64,
    };
    // The least cost of the bins before each place, and where the last run of them starts.
    let mut best = vec![(0u64, 0usize)];
    for end in 1..=bins.len() {
        let mut sum = Count::default();
        let mut least = (u64::MAX, 0);
        for start in (0..end).rev() {
            sum = sum.add(bins[start]);
            let all = best[start].0.saturating_add(cost(sum));
            // Of equals the longest run.
            if all <= least.0 {
                least = (all, start);
            }
        }
        best.push(least);
    }
    let mut ends = vec![];
    let mut end = bins.len();
    while end > 0 {
        ends.push(end);
        end = best[end].1;
    }
    ends.reverse();
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(keys: u64, negatives: u64) -> Count {
        Count { keys, negatives }
    }

    #[test]
    fn bins_ascend_with_lambda_and_stay_in_range() {
        assert_eq!([count(5, 0).bin(), count(u64::MAX, 1).bin()], [0, 1]);
        assert!(count(1, u64::MAX).bin() < BINS);
        let scale: Vec<usize> = (0..60).map(|i| count(1 << 20, 1 << i).bin()).collect();
        assert!(scale.is_sorted());
        // A quarter of an octave: 1.25 and 1.5 of the same power are told apart, 1.26 and 1.49 are not.
        assert_eq!(count(1000, 1260).bin(), count(1000, 1490).bin());
        assert_ne!(count(1000, 1240).bin(), count(1000, 1260).bin());
    }

    #[test]
    fn large_labels_of_different_lambda_stay_apart_and_small_ones_join() {
        let labels = [count(100_000, 100_000), count(100_000, 10_000_000), count(0, 77), count(3, 900), count(2, 2)];
        let (group, groups) = choose(&labels, Goal::Exact);
        assert_eq!(groups.len(), 2);
        assert_eq!(group, [1, 2, 0, 2, 1]);
        assert_eq!(groups, [count(100_002, 100_002), count(100_003, 10_000_900)]);
    }

    #[test]
    fn many_small_labels_are_few_groups() {
        let labels: Vec<Count> = (0..5000).map(|i| count(1, i % 100)).collect();
        let (group, groups) = choose(&labels, Goal::Exact);
        assert!((1..12).contains(&groups.len()), "{groups:?}");
        assert!(group.iter().all(|&group| (1..=groups.len()).contains(&(group as usize))));
        assert_eq!(groups.iter().map(|group| group.keys).sum::<u64>(), 5000);
    }

    /// Without a list of negatives, or with a budget, one group is best.
    #[test]
    fn where_lambda_does_not_matter_there_is_one_group() {
        let labels = [count(10_000, 0), count(500, 0), count(1, 0)];
        assert_eq!(choose(&labels, Goal::Fpr(0.01)).1.len(), 1);
        let labels = [count(10_000, 0), count(100_000, 10_000_000), count(100_000, 1)];
        assert_eq!(choose(&labels, Goal::BitsPerKey(9.0)).1, [count(210_000, 10_000_001)]);
        assert_eq!(choose(&[], Goal::Exact), (vec![], vec![]));
        assert_eq!(choose(&[count(0, 5)], Goal::Exact), (vec![0], vec![]));
    }

    #[test]
    fn the_price_of_a_group_is_the_bound() {
        for (keys, negatives) in [(1, 0), (1, 1), (5000, 3), (3, 5000), (100_000, 100_000_000), (1 << 40, 1 << 10)] {
            for rate in [1.0, 0.3, 1e-6] {
                let exact = crate::math::bounds::free_set(keys, negatives, rate).bits;
                let found = bound(count(keys, negatives), rate);
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b + 1e-12 * (keys + negatives) as f64;
                assert!(near(found, exact), "{keys} {negatives} {rate}: {found} {exact}");
                let (found, lambda) = (share_bound(count(keys, negatives), rate), negatives as f64 / keys as f64);
                let exact = keys as f64 * crate::math::bounds::f(rate, lambda);
                assert!(near(found, exact), "{keys} {negatives} {rate}: {found} {exact}");
            }
        }
    }

    /// Against every way to cut a few bins.
    #[test]
    fn the_cut_is_the_best() {
        let bins = [count(1000, 0), count(30, 40), count(2000, 9000), count(50, 1000), count(900, 40_000)];
        let cost = |bins: &[Count]| {
            let sum = bins.iter().copied().fold(Count::default(), Count::add);
            (bound(sum, 1.0) * OVERHEAD + FIXED).ceil() as u64
        };
        let price = |ends: &[usize]| {
            let mut start = 0;
            ends.iter().map(|&end| cost(&bins[std::mem::replace(&mut start, end)..end])).sum::<u64>()
        };
        let ways = (0..16u32).map(|way| (1..5).filter(|i| way >> (i - 1) & 1 == 1).chain([5]).collect::<Vec<_>>());
        let least = ways.map(|ends| price(&ends)).min();
        assert_eq!(Some(price(&cut(&bins, 1.0))), least);
    }
}
