//! keys and negatives -> filters that refuse all the negatives: the three constructions of \[FPFS\] on the xor layer.
//!
//! ```text
//!    two filters (TF)           | r + a - 1 bits, the keys |   | 1 bit, the keys and F |
//!    integrated, c = 1 (IF1)    | r + a - 1 bits  +  1 bit,  room for the keys and F   |
//!    integrated, c = 2 (IF2)    | r + a - 1 bits  + 1 + 1 bit,  room for the keys |       each key reads one of the two
//! ```
//!
//! F are the negatives that pass the first filter. They are never all in memory: `negatives` starts a stream, once per
//! construction and once more for every seed that did not solve the second stage, for then F is another set.

use super::{ATTEMPTS, Room, Table, low, prints};
use crate::bounds;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Design {
    /// An xor filter that knows no negatives.
    Plain,
    /// TF.
    Two,
    /// IF, c = 1.
    One,
    /// IF, c = 2.
    Pair,
}

impl Design {
    /// All of them, in the order of the paper's sentences.
    pub(crate) const ALL: [Design; 4] = [Design::Plain, Design::Two, Design::One, Design::Pair];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Design::Plain => "xor, no free set",
            Design::Two => "xor TF",
            Design::One => "xor IF, c = 1",
            Design::Pair => "xor IF, c = 2",
        }
    }

    /// The extra bits a that the paper chooses.
    pub(crate) fn extra(self, s: usize, t: usize, r: u32) -> u32 {
        let (s, t) = (s as u64, t as u64);
        match self {
            Design::Plain => 0,
            Design::Two => bounds::two_filters_extra(s, t, r),
            Design::One => bounds::integrated_one_extra(s, t, r),
            Design::Pair => bounds::integrated_two_extra(s, t, r),
        }
    }

    /// The paper's formula for the bits of the whole filter on xor tables.
    pub(crate) fn formula(self, s: usize, t: usize, r: u32) -> f64 {
        const XOR: f64 = 1.23;
        let (a, s, t) = (self.extra(s, t, r), s as u64, t as u64);
        match self {
            Design::Plain => s as f64 * XOR * f64::from(r),
            Design::Two => bounds::two_filters_bits(s, t, r, a, XOR),
            Design::One => bounds::integrated_one_bits(s, t, r, a, XOR),
            Design::Pair => bounds::integrated_bits(s, r + a, 2, XOR),
        }
    }

    fn subfilters(self) -> u32 {
        match self {
            Design::Plain | Design::Two => 0,
            Design::One => 1,
            Design::Pair => 2,
        }
    }
}

/// A filter with a false-positive-free set.
pub(crate) struct FreeSet {
    first: Table,
    /// The second filter of TF.
    second: Option<Table>,
    /// The bits of the first stage inside its cells.
    mask: u32,
    /// Bits of the second stage inside the first's cells: IF.
    subfilters: u32,
    pub(crate) extra: u32,
    pub(crate) passed: usize,
}

impl FreeSet {
    /// Builds one with `r` bits and the extra bits the paper's rule gives for `t` negatives.
    pub(crate) fn build<I: Iterator<Item = u64>>(
        design: Design,
        keys: &[u64],
        negatives: impl Fn() -> I,
        t: usize,
        r: u32,
        seed: u64,
    ) -> Result<FreeSet, String> {
        let extra = design.extra(keys.len(), t, r);
        let narrow = r + extra - 1;
        match design {
            Design::Plain => {
                let first = Table::filter(keys, r, seed)?;
                Ok(FreeSet { first, second: None, mask: low(r), subfilters: 0, extra, passed: 0 })
            }
            Design::Two => {
                let first = Table::filter(keys, narrow, seed)?;
                let passed: Vec<u64> = negatives().filter(|&key| first.contains(key)).collect();
                let second = Some(Table::signed(keys, &passed, 1, seed ^ 1 << 62)?);
                Ok(FreeSet { first, second, mask: low(narrow), subfilters: 0, extra, passed: passed.len() })
            }
            Design::One | Design::Pair => FreeSet::integrated(design, keys, negatives, t, narrow, extra, seed),
        }
    }

    fn integrated<I: Iterator<Item = u64>>(
        design: Design,
        keys: &[u64],
        negatives: impl Fn() -> I,
        t: usize,
        narrow: u32,
        extra: u32,
        seed: u64,
    ) -> Result<FreeSet, String> {
        // With one sub-filter the cells must have room for F as well; how many that will be is a forecast.
        let forecast = if design == Design::One { t.div_ceil(1 << narrow) } else { 0 };
        let block = Room::Filled.block(keys.len() + forecast);
        let subfilters = design.subfilters();
        for attempt in 0..ATTEMPTS {
            let first = Table::empty(seed ^ (attempt << 32), block, narrow + subfilters);
            let mut filter = FreeSet { first, second: None, mask: low(narrow), subfilters, extra, passed: 0 };
            let Some(order) = filter.first.peel(keys, &[]) else { continue };
            filter.first.assign(&order, filter.mask);
            let passed: Vec<u64> = negatives().filter(|&key| filter.first_stage(filter.first.hash(key))).collect();
            filter.passed = passed.len();
            let solved = (0..subfilters).all(|i| {
                let mine = |key: &&u64| filter.subfilter(filter.first.hash(**key)) == i;
                let members: Vec<u64> = keys.iter().filter(mine).copied().collect();
                let others: Vec<u64> = passed.iter().filter(mine).copied().collect();
                let order = filter.first.peel(&members, &others);
                order.inspect(|order| filter.first.assign(order, 1 << (narrow + i))).is_some()
            });
            if solved {
                return Ok(filter);
            }
        }
        Err(format!("no seed of {ATTEMPTS} solves both stages of {} keys", keys.len()))
    }

    #[inline]
    fn first_stage(&self, hash: u64) -> bool {
        (self.first.value(hash) ^ prints(hash) as u32) & self.mask == 0
    }

    /// The sub-filter that decides about a key, from bits that neither places nor fingerprint use.
    #[inline]
    fn subfilter(&self, hash: u64) -> u32 {
        if self.subfilters == 2 { (prints(hash) >> 63) as u32 } else { 0 }
    }

    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        if self.subfilters > 0 {
            let hash = self.first.hash(key);
            let narrow = self.first.width - self.subfilters;
            let mask = self.mask | 1 << (narrow + self.subfilter(hash));
            return (self.first.value(hash) ^ prints(hash) as u32) & mask == 0;
        }
        self.first.contains(key) && self.second.as_ref().is_none_or(|second| second.contains(key))
    }

    pub(crate) fn bits(&self) -> usize {
        self.first.bits() + self.second.as_ref().map_or(0, Table::bits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tamis_bench::stream::Stream;

    #[test]
    fn keys_pass_and_no_negative_does() {
        for design in Design::ALL {
            for (s, t, r) in [(0, 0, 8), (0, 50, 4), (1, 3, 4), (2, 0, 8), (300, 10_000, 4), (5000, 100_000, 8)] {
                let mut stream = Stream::new(9);
                let (keys, negatives) = (stream.take(s), stream.take(t));
                let filter = FreeSet::build(design, &keys, || negatives.iter().copied(), t, r, 5).unwrap();
                assert!(keys.iter().all(|&key| filter.contains(key)));
                let wrong = negatives.iter().filter(|&&key| filter.contains(key)).count();
                assert!(wrong == 0 || design == Design::Plain, "{design:?}, {s} keys: {wrong}");
                assert_eq!(filter.extra, design.extra(s, t, r));
                // Strangers pass with 2^-(r + a) in all of them.
                let hits = stream.take(400_000).iter().filter(|&&key| filter.contains(key)).count() as f64;
                let mean = 4e5 / f64::from(1u32 << (r + filter.extra));
                assert!((hits - mean).abs() < 5.0 * mean.sqrt() + 1.0, "{design:?}, {s}, {t}, {r}: {hits}, {mean}");
            }
        }
    }

    /// 2,500 transactions: the integrated filters have the paper's bits exactly, whatever the keys; the two filters
    /// have them within the luck of F (the paper's are means).
    #[test]
    fn bitcoin_has_the_bits_of_the_paper() {
        let (s, t) = (2500, 20_000_000);
        let mut stream = Stream::new(1);
        let keys = stream.take(s);
        let build = |design| {
            let start = stream.clone();
            let negatives = || {
                let mut stream = start.clone();
                (0..t).map(move |_| stream.draw())
            };
            FreeSet::build(design, &keys, negatives, t, 8, 3).unwrap()
        };
        assert_eq!(build(Design::Plain).bits(), 8 * 3105);
        assert_eq!(build(Design::One).bits(), 59_262);
        assert_eq!(build(Design::Pair).bits(), 46_620);
        let two = build(Design::Two);
        // F has 4,883 on average, sigma 70, and costs 1.23 bits each.
        assert!(two.bits().abs_diff(46_363) < 5 * 86, "{}", two.bits());
        assert_eq!(two.bits(), 12 * 3105 + 3 * Room::Cut.block(s + two.passed));
    }
}
