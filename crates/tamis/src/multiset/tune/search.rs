//! a census and a wish -> the best shape: all repetitions, partitions, hashes, side tables and existence filters that make sense.
//!
//! Two steps. First every design is sized by formulas that can be solved for the size: what a column may be reported with (one number,
//! found by bisection), then bits for each number of hashes or each fingerprint. Then the best is sized again by the exact
//! prediction. Multiplicities above 32 are put together in steps of a fifth first, so that the time does not depend on the census.

use super::{Body, COUNTER, Census, Filled, Group, Options, Shape, Sketch, Tuned, Wish};
use super::{existence_bits, expect, row_words, side_bits, unreachable};
use crate::error::BuildError;
use crate::math::bloom::{MAX_BITS, MAX_HASHES, power};
use crate::math::csc::{Rows, fingerprints, minus_ln};
use crate::math::cuckoo;
use crate::math::portable::{exp2, log2};

/// The most words of a Bloom table.
pub(super) const MOST_WORDS: u64 = MAX_BITS / 64;
/// Bits of a fingerprint.
const FINGERPRINTS: std::ops::RangeInclusive<u32> = 4..=16;
/// Limits of the side table that are tried. Not 0: with all keys in it, it would be an exact table, and no sketch.
const LIMITS: [u32; 15] = [2, 4, 6, 8, 10, 12, 16, 20, 28, 40, 64, 128, 400, 2000, 10_000];
/// Designs this much larger than the smallest are as good, if their queries are cheaper.
const SLACK: f64 = 1.03;
/// The same for false sets in a given space.
const RATE_SLACK: f64 = 1.05;
/// Fewer false sets than this are none.
const NONE: f64 = 1e-9;
/// What a candidate of one repetition costs when it is looked up in the others, in cache lines.
const CANDIDATE: f64 = 1.0 / 16.0;
/// The least space: a cache line.
const LEAST_BITS: f64 = 512.0;

/// One way to lay out rows, and what of the census is in them.
struct Layout {
    rows: Rows,
    heavy: Option<u32>,
    side: f64,
    /// (keys times sets that may be false, probability of a shared partition), by group.
    chances: Vec<(f64, f64)>,
    /// Different pairs (key, column) of a table, and pairs.
    load: f64,
    pairs: f64,
    /// The mean multiplicity of keys, and of pairs.
    mean: f64,
    clump: f64,
    /// Keys of which more than eight pairs share a partition: so many a pair of buckets cannot hold.
    crowded: f64,
}

struct Candidate {
    shape: Shape,
    bits: f64,
    absent: f64,
    present: f64,
    cost: f64,
}

struct Field<'a> {
    kind: Sketch,
    sets: u32,
    keys: f64,
    groups: &'a [Group],
    options: &'a Options,
}

pub(super) fn search(kind: Sketch, census: &Census, wish: Wish, options: &Options) -> Result<Tuned, BuildError> {
    let all: Vec<Group> = census.groups().into_iter().filter(|g| g.keys > 0.0).collect();
    let groups = merge(&all);
    let field = Field { kind, sets: census.sets, keys: census.keys() as f64, groups: &groups, options };
    let found = match wish {
        _ if groups.is_empty() => Some(expect(&all, census.sets, &field.smallest())),
        Wish::Targets { absent, present } => field.reach(&all, absent, present),
        Wish::BitsPerPair(bits) => field.spend(census, &all, bits),
    };
    let Some(mut found) = found else {
        return unreachable(match wish {
            Wish::Targets { absent, present } => {
                format!(
                    "no table of at most 2^48 bits has {absent} false sets for absent keys and {present} for present ones"
                )
            }
            Wish::BitsPerPair(bits) => format!("no table fits into {bits} bits per pair"),
        });
    };
    if options.counting {
        found.bits += super::counters(&found.shape);
    }
    Ok(found)
}

/// Neighbouring multiplicities as one, under their mean.
fn merge(groups: &[Group]) -> Vec<Group> {
    let mut merged: Vec<Group> = Vec::new();
    let mut end = 0.0;
    for group in groups {
        match merged.last_mut() {
            Some(last) if group.v < end => {
                let keys = last.keys + group.keys;
                last.v += (group.v - last.v) * group.keys / keys;
                last.keys = keys;
            }
            _ => {
                end = if group.v < 32.0 { group.v + 1.0 } else { group.v * 1.2 };
                merged.push(*group);
            }
        }
    }
    merged
}

impl Field<'_> {
    /// A table for no keys.
    fn smallest(&self) -> Shape {
        let body = match self.kind {
            Sketch::Bloom => Body::Bloom { words: row_words(self.sets), hashes: 1, repetitions: 1, partitions: 0 },
            Sketch::Cuckoo => {
                let buckets = u64::from(self.sets).max(cuckoo::roomy(0, 8));
                Body::Cuckoo { buckets, bits: 8, repetitions: 1, partitions: 0 }
            }
        };
        Shape { body, existence: None, heavy: self.options.heavy }
    }

    /// Limits of the side table that part the census differently.
    fn limits(&self) -> Vec<Option<u32>> {
        if let Some(limit) = self.options.heavy {
            return vec![(limit < u32::MAX).then_some(limit)];
        }
        let mut limits = vec![None];
        let mut last = 0;
        for limit in LIMITS.into_iter().rev() {
            let above = self.groups.iter().filter(|g| g.v > f64::from(limit)).count();
            if above > last {
                limits.push(Some(limit));
                last = above;
            }
        }
        limits
    }

    /// All layouts, for about `d` false sets.
    fn layouts(&self, d: f64) -> Vec<Layout> {
        let n = self.sets;
        let most = self.options.repetitions.clamp(1, 4);
        let mut layouts = Vec::new();
        for heavy in self.limits() {
            let light = || self.groups.iter().filter(|g| heavy.is_none_or(|limit| g.v <= f64::from(limit)));
            let pairs: f64 = light().map(|g| g.keys * g.v).sum();
            let keys: f64 = light().map(|g| g.keys).sum();
            let (mean, clump) = match pairs > 0.0 {
                true => (pairs / keys, light().map(|g| g.keys * g.v * g.v).sum::<f64>() / pairs),
                false => (0.0, 0.0),
            };
            let side = side_bits(self.groups, n, heavy);
            for repetitions in 1..=most {
                let mut tried = Vec::new();
                for partitions in partitions(n, repetitions, mean, d) {
                    if tried.contains(&partitions) {
                        continue;
                    }
                    tried.push(partitions);
                    let rows = Rows { sets: n, repetitions, partitions };
                    let b = f64::from(rows.columns());
                    let crowd =
                        |v: f64| (0..9).map(|i| (v - f64::from(i)).max(0.0) / f64::from(i + 1)).product::<f64>();
                    layouts.push(Layout {
                        rows,
                        heavy,
                        side,
                        chances: light().map(|g| (g.keys * (f64::from(n) - g.v), rows.shared(g.v))).collect(),
                        load: light().map(|g| g.keys * rows.offsets(g.v)).sum(),
                        pairs,
                        mean,
                        clump,
                        crowded: match repetitions {
                            1 => 0.0,
                            _ => light().map(|g| g.keys * crowd(g.v)).sum::<f64>() / power(b, 8),
                        },
                    });
                }
            }
        }
        if self.kind == Sketch::Cuckoo {
            layouts.retain(|layout| layout.crowded < 1e-3);
        }
        layouts
    }

    /// Existence filters that may be made: rate and bits.
    fn filters(&self, decide: bool, rates: impl Iterator<Item = u32>) -> Vec<(Option<f64>, f64)> {
        let mut filters = Vec::new();
        if self.options.existence != Some(true) {
            filters.push((None, 0.0));
        }
        if self.options.existence == Some(true) || decide && self.options.existence.is_none() {
            filters.extend(rates.map(|i| {
                let rate = exp2(-0.5 * f64::from(i));
                (Some(rate), existence_bits(self.keys, rate))
            }));
        }
        filters
    }

    /// The fewest bits for two promises.
    fn reach(&self, all: &[Group], absent: f64, present: f64) -> Option<Tuned> {
        let filters = self.filters(true, 1..=32);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut fewest = f64::INFINITY;
        for layout in self.layouts(present) {
            let Some(most) = layout.column(present * self.keys) else { continue };
            for &(existence, filter) in &filters {
                let strangers = absent / (f64::from(self.sets) * existence.unwrap_or(1.0));
                let root = exp2(log2(strangers.min(1.0)) / f64::from(layout.rows.repetitions));
                let rate = most.min(root);
                for body in self.bodies(&layout, rate, most) {
                    let candidate = self.candidate(&layout, body, existence, filter, rate);
                    if candidate.bits <= fewest * SLACK {
                        fewest = fewest.min(candidate.bits);
                        candidates.push(candidate);
                    }
                }
                // A sharper filter would only cost: the keys that are there decide.
                if root >= most {
                    break;
                }
            }
        }
        candidates.retain(|c| c.bits <= fewest * SLACK);
        candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.bits.total_cmp(&b.bits)));
        // The solved sizes are good to a percent or so: of the cheapest few, the first that stays as small when it is sized exactly.
        let mut best: Option<Tuned> = None;
        for candidate in candidates.iter().take(8) {
            let Some(found) = self.fit(all, &candidate.shape, absent, present) else { continue };
            if found.bits <= fewest * SLACK {
                return Some(found);
            }
            if best.is_none_or(|b| found.bits < b.bits) {
                best = Some(found);
            }
        }
        best
    }

    /// Bodies of a layout in which a column is reported with probability `rate`, and with `most` for keys that are there.
    fn bodies(&self, layout: &Layout, rate: f64, most: f64) -> Vec<Body> {
        let Rows { repetitions, partitions, .. } = layout.rows;
        let partitions = if repetitions == 1 { 0 } else { partitions };
        match self.kind {
            Sketch::Bloom => {
                // The fewest bits are at log2(1 / rate) hashes; half of them cost a few percent, and are as many lines fewer.
                let best = log2(1.0 / rate);
                let least = ((best * 0.5) as u32).clamp(1, MAX_HASHES);
                let most = (best as u32 + 2).clamp(1, MAX_HASHES);
                let words = |k: u32| {
                    let ones = exp2(log2(rate) / f64::from(k));
                    let m = f64::from(k) * layout.load / minus_ln(ones);
                    ((m / 64.0).ceil() as u64).max(row_words(layout.rows.columns()))
                };
                (least..=most)
                    .map(|hashes| Body::Bloom { words: words(hashes), hashes, repetitions, partitions })
                    .filter(|body| body.size().0 <= MAX_BITS as f64)
                    .collect()
            }
            Sketch::Cuckoo => FINGERPRINTS
                .map(|bits| {
                    let met = 2.0 * layout.load / fingerprints(bits);
                    let own = (met + layout.clump) / most;
                    let buckets = (met / minus_ln(rate)).max(own).ceil() as u64;
                    Body::Cuckoo { buckets: buckets.max(layout.room(bits)), bits, repetitions, partitions }
                })
                .filter(|body| body.size().0 <= MAX_BITS as f64)
                .collect(),
        }
    }

    fn candidate(&self, layout: &Layout, body: Body, existence: Option<f64>, filter: f64, rate: f64) -> Candidate {
        let (table, cells) = body.size();
        let counters = if self.options.counting { COUNTER * cells } else { 0.0 };
        let mut known = body.lines(self.sets) + f64::from(u8::from(layout.side > 0.0));
        if layout.rows.repetitions > 1 {
            let shared = layout.rows.shared(layout.mean);
            let tested = layout.mean + f64::from(self.sets) * (shared + (1.0 - shared) * rate);
            known += tested * f64::from(layout.rows.repetitions) * CANDIDATE;
        }
        // Half of the queries are taken to be for strangers, which a filter in front stops.
        let cost = match existence {
            Some(rate) => 1.0 + known * 0.5 * (1.0 + rate),
            None => known,
        };
        let bits = table + counters + filter + layout.side;
        Candidate { shape: Shape { body, existence, heavy: layout.heavy }, bits, absent: 0.0, present: 0.0, cost }
    }

    /// The smallest body of a shape that keeps both promises by the exact prediction.
    fn fit(&self, all: &[Group], shape: &Shape, absent: f64, present: f64) -> Option<Tuned> {
        let kept = |t: &Tuned| t.absent <= absent && t.present <= present;
        let strangers = absent / shape.existence.unwrap_or(1.0);
        let enough = |size: u64| {
            let body = resize(&shape.body, size);
            let filled = Filled::new(&body, self.sets, shape.heavy, self.groups);
            filled.false_sets(0.0) <= strangers && filled.present(self.groups) <= present
        };
        let (size, least, most) = match shape.body {
            Body::Bloom { words, .. } => (words, row_words(shape.body.rows(self.sets).columns()), MOST_WORDS),
            // How many buckets hold the pairs does not depend on promises.
            Body::Cuckoo { buckets, bits, .. } => {
                let light = self.groups.iter().filter(|g| shape.heavy.is_none_or(|limit| g.v <= f64::from(limit)));
                let columns = shape.body.rows(self.sets).columns();
                (buckets, room(light.copied(), columns, bits).min(buckets), cuckoo::MAX_BUCKETS)
            }
        };
        let (mut low, mut high) = (least - 1, size.max(least));
        while !enough(high) {
            (low, high) = (high, high.saturating_add(high / 16 + 1));
            if high > most {
                return None;
            }
        }
        while high - low > 1 + high / 8192 {
            let middle = low + (high - low) / 2;
            *(if enough(middle) { &mut high } else { &mut low }) = middle;
        }
        // Now with every multiplicity by itself, which is a matter of less than a thousandth.
        for _ in 0..16 {
            let found = expect(all, self.sets, &Shape { body: resize(&shape.body, high), ..*shape });
            if kept(&found) {
                return Some(found);
            }
            high += high / 2048 + 1;
        }
        None
    }

    /// The fewest false sets in a given space.
    fn spend(&self, census: &Census, all: &[Group], bits_per_pair: f64) -> Option<Tuned> {
        let space = (bits_per_pair * census.pairs() as f64).max(LEAST_BITS).min(MAX_BITS as f64);
        let cell = if self.options.counting { 1.0 + COUNTER } else { 1.0 };
        let mut candidates = Vec::new();
        for &(existence, filter) in &self.filters(false, (2..=16).step_by(2)) {
            for layout in self.layouts(0.1) {
                let left = (space - filter - layout.side) / f64::from(layout.rows.repetitions);
                for body in self.bodies_within(&layout, left, cell, existence.is_some()) {
                    let shape = Shape { body, existence, heavy: layout.heavy };
                    let filled = Filled::new(&body, self.sets, layout.heavy, self.groups);
                    let absent = filled.false_sets(0.0);
                    let rate =
                        exp2(log2((absent / f64::from(self.sets)).max(1e-300)) / f64::from(layout.rows.repetitions));
                    let mut candidate = self.candidate(&layout, body, existence, filter, rate);
                    candidate.absent = absent * existence.unwrap_or(1.0);
                    candidate.present = filled.present(self.groups);
                    candidate.shape = shape;
                    candidates.push(candidate);
                }
            }
        }
        // The paper's own settings are one more design, and what no other may be worse than, where the options allow them.
        let theirs = paper_within(census, space, cell).filter(|_| {
            let Options { existence, heavy, repetitions, .. } = *self.options;
            self.kind == Sketch::Bloom
                && existence != Some(true)
                && heavy.is_none_or(|h| h == u32::MAX)
                && repetitions >= 3
        });
        let theirs = theirs.map(|shape| expect(all, self.sets, &shape));
        let worse = |absent: f64, present: f64| theirs.is_some_and(|t| absent > t.absent || present > t.present);
        candidates.retain(|c| !worse(c.absent, c.present));
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let present = least(&mut candidates.iter().map(|c| c.present));
        candidates.retain(|c| c.present <= present * RATE_SLACK + NONE);
        let absent = least(&mut candidates.iter().map(|c| c.absent));
        candidates.retain(|c| c.absent <= absent * RATE_SLACK + NONE);
        candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.present.total_cmp(&b.present)));
        let exact = candidates.iter().take(3).map(|c| expect(all, self.sets, &c.shape));
        exact.into_iter().find(|t| !worse(t.absent, t.present)).or(theirs)
    }

    /// Bodies of a layout whose tables have at most so many bits each, counters included. With `few`, the best numbers of hashes alone.
    fn bodies_within(&self, layout: &Layout, bits: f64, cell: f64, few: bool) -> Vec<Body> {
        let Rows { repetitions, partitions, .. } = layout.rows;
        let partitions = if repetitions == 1 { 0 } else { partitions };
        match self.kind {
            Sketch::Bloom => {
                let (least, mut words) = (row_words(layout.rows.columns()), (bits / cell / 64.0) as u64);
                if words < least {
                    return Vec::new();
                }
                if layout.load == 0.0 {
                    // All keys are in the side table, and space for none of them would be wasted.
                    words = least;
                }
                let best = words as f64 * 64.0 * std::f64::consts::LN_2 / layout.load.max(1.0);
                let most = ((best + 1.0).min(f64::from(MAX_HASHES)) as u32).max(1);
                // Where there is more space than rates need, few hashes are enough.
                let least = match (few, most > 20) {
                    (_, true) => most / 3,
                    (true, _) => most.saturating_sub(1).max(1),
                    (false, _) => (most * 2 / 3).max(1),
                };
                (least..=most).map(|hashes| Body::Bloom { words, hashes, repetitions, partitions }).collect()
            }
            Sketch::Cuckoo => FINGERPRINTS
                .filter_map(|bits_each| {
                    let slot = f64::from(bits_each) + cell - 1.0;
                    let buckets = (bits / slot / cuckoo::SLOTS as f64) as u64;
                    let least = layout.room(bits_each);
                    let chosen = if layout.load == 0.0 { least } else { buckets };
                    let body = Body::Cuckoo { buckets: chosen, bits: bits_each, repetitions, partitions };
                    (buckets >= least).then_some(body)
                })
                .collect(),
        }
    }
}

impl Layout {
    /// The largest probability of a false column with which the keys that are there have `budget` false sets in all.
    fn column(&self, budget: f64) -> Option<f64> {
        let r = u64::from(self.rows.repetitions);
        let sum = |rate: f64| -> f64 {
            self.chances.iter().map(|&(weight, shared)| weight * power(shared + (1.0 - shared) * rate, r)).sum()
        };
        const MOST: f64 = 0.95;
        if sum(MOST) <= budget {
            return Some(MOST);
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

    /// The fewest buckets.
    fn room(&self, bits: u32) -> u64 {
        buckets(self.pairs, self.clump, self.rows.columns(), bits)
    }
}

fn room(light: impl Iterator<Item = Group>, columns: u32, bits: u32) -> u64 {
    let (pairs, squares) = light.fold((0.0, 0.0), |(p, s), g| (p + g.keys * g.v, s + g.keys * g.v * g.v));
    buckets(pairs, if pairs > 0.0 { squares / pairs } else { 0.0 }, columns, bits)
}

/// The fewest buckets for pairs that come in runs: a few more than for single keys, as a run has the luck of one key.
fn buckets(pairs: f64, clump: f64, columns: u32, bits: u32) -> u64 {
    let roomy = cuckoo::roomy(pairs as u64, bits);
    roomy.saturating_add((6.0 * clump) as u64).max(u64::from(columns))
}

fn resize(body: &Body, size: u64) -> Body {
    let mut body = *body;
    match &mut body {
        Body::Bloom { words, .. } => *words = size,
        Body::Cuckoo { buckets, .. } => *buckets = size,
    }
    body
}

/// Numbers of partitions to try: those at which partitions shared by chance are as rare as `d` false sets ask, and shares of all sets.
fn partitions(sets: u32, repetitions: u32, mean: f64, d: f64) -> Vec<u32> {
    if repetitions == 1 {
        return vec![0];
    }
    let n = f64::from(sets);
    let base = mean.max(1.0) * exp2(log2((n / d).max(1.0)) / f64::from(repetitions));
    let tries = [base, 1.5 * base, 2.0 * base, 3.0 * base, 5.0 * base, 0.5 * base, n / 50.0, n / 10.0, n / 3.0, n];
    tries.into_iter().map(|b| (b.ceil() as u32).clamp(1, sets.max(1))).collect()
}

/// The paper's settings in so many bits, if their rows fit.
fn paper_within(census: &Census, space: f64, cell: f64) -> Option<Shape> {
    let shape = super::paper(census, space / cell / census.pairs().max(1) as f64);
    (shape.body.size().0 * cell <= space).then_some(shape)
}
