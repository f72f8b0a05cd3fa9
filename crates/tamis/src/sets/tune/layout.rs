//! keys of so many sets, and repetitions -> rows: how many columns keys have, and what they may be reported with.

use super::{Body, Group};
use crate::math::bloom::{one_minus_exp, power};
use crate::math::csc::{Rows, bloom_column, fingerprints, minus_ln};
use crate::math::cuckoo;
use crate::math::portable::{exp2, log2};

/// One way to lay out rows, and which keys are in them.
pub(super) struct Layout {
    pub(super) rows: Rows,
    pub(super) heavy: Option<u32>,
    pub(super) side: f64,
    pub(super) groups: Vec<Chance>,
    /// Different pairs (key, column) of a table, and pairs.
    pub(super) load: f64,
    pub(super) pairs: f64,
    /// The mean multiplicity of keys, and of pairs.
    pub(super) mean: f64,
    pub(super) clump: f64,
    /// Keys of which more than eight pairs share a partition: so many a pair of buckets cannot hold.
    pub(super) crowded: f64,
}

/// Keys of about one multiplicity: how many, of how many columns, and how many sets may be false for them, with what probability
/// because they share a partition.
pub(super) struct Chance {
    pub(super) keys: f64,
    pub(super) columns: f64,
    pub(super) others: f64,
    pub(super) shared: f64,
}

impl Layout {
    /// The largest probability of a false column with which the keys that are there have `budget` false sets in all.
    pub(super) fn column(&self, budget: f64) -> Option<f64> {
        let r = u64::from(self.rows.repetitions);
        let sum = |rate: f64| -> f64 {
            self.groups.iter().map(|g| g.keys * g.others * power(g.shared + (1.0 - g.shared) * rate, r)).sum()
        };
        const MAX_RATE: f64 = 0.95;
        if sum(MAX_RATE) <= budget {
            return Some(MAX_RATE);
        }
        if r == 1 {
            return Some(budget / sum(1.0));
        }
        // In logarithms, as rates are small; one that is smaller than this is no rate.
        let (mut low, mut high) = (-60.0, 0.0);
        if sum(exp2(low)) > budget {
            return None;
        }
        for _ in 0..24 {
            let middle = 0.5 * (low + high);
            *(if sum(exp2(middle)) <= budget { &mut low } else { &mut high }) = middle;
        }
        Some(exp2(low))
    }

    /// False sets for an unlisted key, and for all keys together: what `Filled` says, with all that does not depend on the body done before.
    /// The sum over keys of `-ln(1 - d/m)` is the same for bodies of one size: it is kept in `ready`, with the size.
    pub(super) fn false_sets(&self, body: &Body, ready: &mut Option<(f64, f64)>) -> (f64, f64) {
        let (m, chance, hashes) = match *body {
            Body::Bloom { words, hashes, .. } => (words as f64 * 64.0, 1.0, hashes),
            Body::Cuckoo { buckets, bits, .. } => (buckets as f64, 2.0 / fingerprints(bits), 1),
        };
        let size = m / chance;
        let sum = match *ready {
            Some((of, sum)) if of == size => sum,
            _ => self.groups.iter().map(|g| g.keys * minus_ln(g.columns / size)).sum(),
        };
        *ready = Some((size, sum));
        let free = 1.0 - one_minus_exp(f64::from(hashes) * sum);
        let r = u64::from(self.rows.repetitions);
        let column = |d: f64| match *body {
            Body::Bloom { .. } => bloom_column(m, hashes, free, d),
            Body::Cuckoo { .. } => 1.0 - free,
        };
        let reported = |g: &Chance| power(g.shared + (1.0 - g.shared) * column(g.columns), r);
        let member_false_sets = self.groups.iter().map(|g| g.keys * g.others * reported(g)).sum();
        (f64::from(self.rows.sets) * power(column(0.0), r), member_false_sets)
    }

    pub(super) fn room(&self, bits: u32) -> u64 {
        buckets(self.pairs, self.clump, self.rows.columns(), bits)
    }
}

pub(super) fn room(light: impl Iterator<Item = Group>, columns: u32, bits: u32) -> u64 {
    let (pairs, squares) = light.fold((0.0, 0.0), |(p, s), g| (p + g.keys * g.v, s + g.keys * g.v * g.v));
    buckets(pairs, if pairs > 0.0 { squares / pairs } else { 0.0 }, columns, bits)
}

/// The fewest buckets for pairs that come in runs: a few more than for single keys, as a run has the luck of one key.
fn buckets(pairs: f64, clump: f64, columns: u32, bits: u32) -> u64 {
    let roomy = cuckoo::roomy(pairs as u64, bits);
    roomy.saturating_add((6.0 * clump) as u64).max(u64::from(columns))
}

/// Numbers of partitions to try: those at which partitions shared by chance are as rare as `d` false sets need, and shares of all sets.
pub(super) fn partitions(sets: u32, repetitions: u32, mean: f64, d: f64) -> Vec<u32> {
    if repetitions == 1 {
        return vec![0];
    }
    let n = f64::from(sets);
    let base = mean.max(1.0) * exp2(log2((n / d).max(1.0)) / f64::from(repetitions));
    let near = [1.0, 1.5, 2.0, 3.0, 5.0, 0.5].map(|times| times * base);
    let shares = [50.0, 10.0, 6.0, 3.0, 2.0, 1.0].map(|part| n / part);
    near.into_iter().chain(shares).map(|b| (b.ceil() as u32).clamp(1, sets.max(1))).collect()
}
