//! how many keys are in how many sets, and a goal -> the best shape: all repetitions, partitions, hashes, side tables and existence filters that make sense.
//!
//! Two steps. First every design is sized by formulas that can be solved for the size: what a column may be reported with (one number,
//! found by bisection), then bits for each number of hashes or each fingerprint. Then the best is sized again by the exact
//! prediction. Multiplicities above 32 are put together in steps of a fifth first, so that the time does not depend on their number.

use super::layout::{Chance, Layout, partitions, room};
use super::{Body, COUNTER_BITS, Filled, Group, Options, SetSizes, Shape, Sketch, TuneGoal, Tuned};
use super::{existence_bits, expect, row_words, side_bits};
use crate::error::BuildError;
use crate::math::bloom::{MAX_BITS, MAX_HASHES, power};
use crate::math::csc::{Rows, fingerprints, minus_ln};
use crate::math::cuckoo;
use crate::math::portable::{exp2, log2};
use crate::sets::csc_cuckoo::BITS as SLOT_BITS;

pub(super) const MAX_WORDS: u64 = MAX_BITS / 64;
/// Limits of the side table that are tried. Not 0: with all keys in it, it would be an exact table, and no sketch.
const HEAVY_LIMITS: [u32; 15] = [2, 4, 6, 8, 10, 12, 16, 20, 28, 40, 64, 128, 400, 2000, 10_000];
/// Designs this much larger than the smallest are as good, if their queries are cheaper.
const SIZE_SLACK: f64 = 1.03;
/// The same for false sets in a given space.
const RATE_SLACK: f64 = 1.05;
/// Fewer false sets than this are none.
const NO_FALSE_SETS: f64 = 0.02;
/// What a candidate of one repetition costs when it is looked up in the others, in cache lines.
const CANDIDATE_LINES: f64 = 1.0 / 16.0;
/// The least space: a cache line.
const MIN_BITS: f64 = 512.0;

struct Candidate {
    shape: Shape,
    bits: f64,
    false_sets: f64,
    member_false_sets: f64,
    cost: f64,
}

/// Sorts by cost; of equal ones the smaller `then` is first.
fn cheapest_first(candidates: &mut [Candidate], then: fn(&Candidate) -> f64) {
    candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(then(a).total_cmp(&then(b))));
}

struct Field<'a> {
    kind: Sketch,
    sets: u32,
    keys: f64,
    groups: &'a [Group],
    options: &'a Options,
}

pub(super) fn search(kind: Sketch, sizes: &SetSizes, goal: TuneGoal, options: &Options) -> Result<Tuned, BuildError> {
    let all: Vec<Group> = sizes.groups().into_iter().filter(|g| g.keys > 0.0).collect();
    let groups = merge(&all, options.heavy);
    let field = Field { kind, sets: sizes.sets, keys: sizes.keys() as f64, groups: &groups, options };
    let found = match goal {
        _ if groups.is_empty() => Some(expect(&all, sizes.sets, &field.smallest())),
        TuneGoal::Targets { false_sets, member_false_sets } => field.reach(&all, false_sets, member_false_sets),
        TuneGoal::BitsPerPair(bits) => field.spend(sizes, &all, bits),
    };
    let Some(mut found) = found else {
        return Err(match goal {
            TuneGoal::Targets { false_sets, member_false_sets } => {
                BuildError::FalseSets { false_sets, member_false_sets }
            }
            TuneGoal::BitsPerPair(given) => BuildError::BitsPerPair { given },
        });
    };
    if options.counting {
        found.bits += super::counters(&found.shape);
    }
    Ok(found)
}

/// Neighbouring multiplicities as one, under their mean; none that a limit of the side table parts, as all of a group are on one side of it.
fn merge(groups: &[Group], heavy: Option<u32>) -> Vec<Group> {
    let below = |v: f64| HEAVY_LIMITS.iter().chain(&heavy).filter(|&&limit| f64::from(limit) < v).count();
    let mut merged: Vec<Group> = Vec::new();
    let (mut end, mut side) = (0.0, 0);
    for group in groups {
        match merged.last_mut() {
            Some(last) if group.v < end && below(group.v) == side => {
                let keys = last.keys + group.keys;
                last.v += (group.v - last.v) * group.keys / keys;
                last.keys = keys;
            }
            _ => {
                end = if group.v < 32.0 { group.v + 1.0 } else { group.v * 1.2 };
                side = below(group.v);
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

    /// Limits of the side table that part the keys differently.
    fn limits(&self) -> Vec<Option<u32>> {
        if let Some(limit) = self.options.heavy {
            return vec![(limit < u32::MAX).then_some(limit)];
        }
        let mut limits = vec![None];
        let mut last = 0;
        for limit in HEAVY_LIMITS.into_iter().rev() {
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
                    let chance = |g: &Group| Chance {
                        keys: g.keys,
                        columns: rows.offsets(g.v),
                        others: f64::from(n) - g.v,
                        shared: rows.shared(g.v),
                    };
                    let groups = light().map(chance).collect::<Vec<_>>();
                    let crowd =
                        |v: f64| (0..9).map(|i| (v - f64::from(i)).max(0.0) / f64::from(i + 1)).product::<f64>();
                    layouts.push(Layout {
                        rows,
                        heavy,
                        side,
                        load: groups.iter().map(|g: &Chance| g.keys * g.columns).sum(),
                        groups,
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
    fn reach(&self, all: &[Group], false_sets: f64, member_false_sets: f64) -> Option<Tuned> {
        let filters = self.filters(true, 1..=32);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut fewest = f64::INFINITY;
        for layout in self.layouts(member_false_sets) {
            let Some(most) = layout.column(member_false_sets * self.keys) else { continue };
            for &(existence, filter) in &filters {
                let strangers = false_sets / (f64::from(self.sets) * existence.unwrap_or(1.0));
                let root = exp2(log2(strangers.min(1.0)) / f64::from(layout.rows.repetitions));
                let rate = most.min(root);
                for body in self.bodies(&layout, rate) {
                    let candidate = self.candidate(&layout, body, existence, filter, rate);
                    if candidate.bits <= fewest * SIZE_SLACK {
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
        candidates.retain(|c| c.bits <= fewest * SIZE_SLACK);
        cheapest_first(&mut candidates, |c| c.bits);
        // The solved sizes are good to a percent or so: of the cheapest few, the first that stays as small when it is sized exactly.
        let mut best: Option<Tuned> = None;
        for candidate in candidates.iter().take(8) {
            let Some(found) = self.fit(&candidate.shape, false_sets, member_false_sets) else { continue };
            if best.is_none_or(|b| found.bits < b.bits) {
                best = Some(found);
            }
            if found.bits <= fewest * SIZE_SLACK {
                best = Some(found);
                break;
            }
        }
        // Now with every multiplicity by itself, which is a matter of less than a thousandth.
        let mut shape = best?.shape;
        for _ in 0..40 {
            let found = expect(all, self.sets, &shape);
            if found.false_sets <= false_sets && found.member_false_sets <= member_false_sets {
                return Some(found);
            }
            let size = shape.body.table();
            *size += *size / 512 + 1;
        }
        None
    }

    /// Bodies of a layout in which a column is reported with probability `rate`.
    fn bodies(&self, layout: &Layout, rate: f64) -> Vec<Body> {
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
            Sketch::Cuckoo => SLOT_BITS
                .map(|bits| {
                    let met = 2.0 * layout.load / fingerprints(bits);
                    let buckets = (met / minus_ln(rate)).ceil() as u64;
                    Body::Cuckoo { buckets: buckets.max(layout.room(bits)), bits, repetitions, partitions }
                })
                .filter(|body| body.size().0 <= MAX_BITS as f64)
                .collect(),
        }
    }

    fn candidate(&self, layout: &Layout, body: Body, existence: Option<f64>, filter: f64, rate: f64) -> Candidate {
        let (table, cells) = body.size();
        let counters = if self.options.counting { body.counter() * cells } else { 0.0 };
        let mut known = body.lines(self.sets) + f64::from(u8::from(layout.side > 0.0));
        if layout.rows.repetitions > 1 {
            let shared = layout.rows.shared(layout.mean);
            let tested = layout.mean + f64::from(self.sets) * (shared + (1.0 - shared) * rate);
            known += tested * f64::from(layout.rows.repetitions) * CANDIDATE_LINES;
        }
        // Half of the queries are taken to be for unlisted keys, which a filter in front stops.
        let cost = match existence {
            Some(rate) => 1.0 + known * 0.5 * (1.0 + rate),
            None => known,
        };
        let bits = table + counters + filter + layout.side;
        Candidate {
            shape: Shape { body, existence, heavy: layout.heavy },
            bits,
            false_sets: 0.0,
            member_false_sets: 0.0,
            cost,
        }
    }

    /// The smallest body of a shape that keeps both promises by the exact prediction.
    fn fit(&self, shape: &Shape, false_sets: f64, member_false_sets: f64) -> Option<Tuned> {
        let strangers = false_sets / shape.existence.unwrap_or(1.0);
        let enough = |size: u64| {
            let body = resize(shape.body, size);
            let filled = Filled::new(&body, self.sets, shape.heavy, self.groups);
            filled.false_sets(0.0) <= strangers && filled.present(self.groups) <= member_false_sets
        };
        let columns = shape.body.rows(self.sets).columns();
        let (size, least, most) = match shape.body {
            Body::Bloom { words, .. } => (words, row_words(columns), MAX_WORDS),
            // How many buckets hold the pairs does not depend on promises.
            Body::Cuckoo { buckets, bits, .. } => {
                let light = self.groups.iter().filter(|g| shape.heavy.is_none_or(|limit| g.v <= f64::from(limit)));
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
        Some(expect(self.groups, self.sets, &Shape { body: resize(shape.body, high), ..*shape }))
    }

    /// The fewest false sets in a given space.
    fn spend(&self, sizes: &SetSizes, all: &[Group], bits_per_pair: f64) -> Option<Tuned> {
        let space = (bits_per_pair * sizes.pairs() as f64).max(MIN_BITS).min(MAX_BITS as f64);
        // Of a Bloom table a cell; of a cuckoo table a slot, and its fingerprint less a bit.
        let cell = match (self.options.counting, self.kind) {
            (false, _) => 1.0,
            (true, Sketch::Bloom) => COUNTER_BITS,
            (true, Sketch::Cuckoo) => 1.0 + COUNTER_BITS,
        };
        let mut candidates = Vec::new();
        for &(existence, filter) in &self.filters(true, (2..=16).step_by(2)) {
            for layout in self.layouts(0.1) {
                let left = (space - filter - layout.side) / f64::from(layout.rows.repetitions);
                let mut ready = None;
                for body in self.bodies_within(&layout, left, cell, existence.is_some()) {
                    let (false_sets, member_false_sets) = layout.false_sets(&body, &mut ready);
                    let rate = exp2(
                        log2((false_sets / f64::from(self.sets)).max(1e-300)) / f64::from(layout.rows.repetitions),
                    );
                    let mut candidate = self.candidate(&layout, body, existence, filter, rate);
                    candidate.false_sets = false_sets * existence.unwrap_or(1.0);
                    candidate.member_false_sets = member_false_sets / self.keys;
                    candidates.push(candidate);
                }
            }
        }
        // The paper's own settings are one more design, and what no other may be worse than, where the options allow them.
        let theirs = paper_within(sizes, space, cell).filter(|_| {
            let Options { existence, heavy, repetitions, .. } = *self.options;
            self.kind == Sketch::Bloom
                && existence != Some(true)
                && heavy.is_none_or(|h| h == u32::MAX)
                && repetitions >= 3
        });
        let theirs = theirs.map(|shape| expect(all, self.sets, &shape));
        let worse = |false_sets: f64, member_false_sets: f64| {
            theirs.is_some_and(|t| false_sets > t.false_sets || member_false_sets > t.member_false_sets)
        };
        candidates.retain(|c| !worse(c.false_sets, c.member_false_sets));
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let member_false_sets = least(&mut candidates.iter().map(|c| c.member_false_sets));
        candidates.retain(|c| c.member_false_sets <= member_false_sets * RATE_SLACK + NO_FALSE_SETS);
        let false_sets = least(&mut candidates.iter().map(|c| c.false_sets));
        candidates.retain(|c| c.false_sets <= false_sets * RATE_SLACK + NO_FALSE_SETS);
        cheapest_first(&mut candidates, |c| c.member_false_sets);
        let exact = candidates.iter().take(3).map(|c| expect(all, self.sets, &c.shape));
        exact.into_iter().find(|t| !worse(t.false_sets, t.member_false_sets)).or(theirs)
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
            Sketch::Cuckoo => SLOT_BITS
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

impl Body {
    fn table(&mut self) -> &mut u64 {
        match self {
            Body::Bloom { words, .. } => words,
            Body::Cuckoo { buckets, .. } => buckets,
        }
    }
}

fn resize(mut body: Body, size: u64) -> Body {
    *body.table() = size;
    body
}

/// The paper's settings in so many bits, if their rows fit.
fn paper_within(sizes: &SetSizes, space: f64, cell: f64) -> Option<Shape> {
    let shape = super::paper(sizes, space / cell / sizes.pairs().max(1) as f64);
    (shape.body.size().0 * cell <= space).then_some(shape)
}
