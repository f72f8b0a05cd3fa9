//! keys -> bits in segments, and cells that died: the adaptive Bloom filter (\[Broom\] section 5, figure 1).
//!
//! A [`Cascade`] whose levels are Bloom filters. Three things differ from figure 1, and each has a reason.
//!
//! * **One segment per hash function.** The figure looks for the keys behind a dead cell through the one hash function that led to it. In
//!   a table that all functions share, a key may have set that cell through another, would not be moved, and would be lost.
//! * **The dead cell is always that of the first segment**, where the figure takes a random one: then a key has one cell it can be
//!   needed, one name in the reverse map. It is as good: cells follow from a secret, so no cell is known to an attacker, and those of a false
//!   positive in different segments are independent of one another; a rule that does not look at them favours none.
//! * **No key is removed.** Other keys share its bits, so they would stay set and the removed key would match. There is no
//!   [`Remove`](super::Remove) for this filter: with one, the rate would not hold for queries of removed keys.
//!
//! A key that is inserted across a dead cell enters the next level *and* sets its bits here: a lookup stops at the first level with a
//! bit missing.
//!
//! Which keys share a cell the filter cannot know. It notices only a map that names no key where there must be one: a key that
//! is not named when its cell dies is lost.

use super::cascade::{Cascade, Level, Store};
use super::file::Kind;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::bloom::zeros;
use crate::math::bloom::one_minus_exp;

/// Levels of Bloom filters.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, AdaptiveBloom, Memory};
/// let mut filter = AdaptiveBloom::with_capacity(1000).build::<u64>()?;
/// let mut map = Memory::new();
/// for key in 0..1000u64 {
///     filter.insert(key, &mut map)?;
/// }
/// // Whatever is found to be a mistake is none from now on.
/// for query in 1000..10_000u64 {
///     if filter.contains(query)? {
///         filter.adapt(query, &mut map)?;
///         assert!(!filter.contains(query)?);
///     }
/// }
/// assert!((0..1000u64).all(|key| filter.contains(key) == Ok(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type AdaptiveBloom = Cascade<Segments>;

/// A level that is a Bloom filter of one segment per hash function.
#[derive(Clone)]
pub struct Segments {
    /// Cells of a segment.
    cells: u64,
    /// One per segment.
    salts: Box<[Salt]>,
    table: Vec<u8>,
    /// Insertions so far.
    len: u64,
}

brief_debug!(Segments, it => keys: it.len, bytes: it.table.len());

const MAX_SEGMENTS: u32 = 32;

/// The share of unlisted keys that match in `segments` segments of `cells` cells after `n` insertions.
fn rate(n: u64, cells: u64, segments: u32) -> f64 {
    // 1 - 1/m is at least exp(-1/(m-1)): rather too high than too low.
    let set = one_minus_exp(n as f64 / (cells as f64 - 1.0).max(0.5));
    (0..segments).fold(1.0, |all, _| all * set)
}

/// Cells and segments of the smallest table with this rate.
fn size(n: u64, goal: f64) -> Option<(u64, u32)> {
    let least = |segments: u32| {
        let (mut low, mut high) = (1u64, n.saturating_mul(64).clamp(64, 1 << 50));
        if rate(n, high, segments) > goal {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if rate(n, middle, segments) <= goal { high = middle } else { low = middle + 1 }
        }
        Some((low, segments))
    };
    (1..=MAX_SEGMENTS).filter_map(least).min_by_key(|&(cells, segments)| cells.saturating_mul(segments.into()))
}

impl Segments {
    /// All but the table, and its length.
    fn without_table(capacity: u64, rate: f64, salt: Salt) -> Result<(Segments, u64), BuildError> {
        let none = BuildError::NoSize { structure: "Bloom filter", keys: capacity, rate };
        let (cells, segments) = size(capacity, rate).ok_or(none)?;
        let salts = (0..u64::from(segments)).map(|segment| salt.child(segment)).collect();
        Ok((Segments { cells, salts, table: vec![], len: 0 }, (cells * u64::from(segments)).div_ceil(8)))
    }

    /// The byte and the bit of a key in a segment.
    #[inline(always)]
    fn bit(&self, segment: usize, key: Digest) -> (usize, u8) {
        let bit = segment as u64 * self.cells + reduce(key.salted(self.salts[segment]), self.cells);
        ((bit / 8) as usize, 1 << (bit % 8))
    }
}

impl Level for Segments {}

impl Store for Segments {
    const KIND: Kind = Kind::Bloom;
    const LOSSLESS: bool = false;
    // A cell that is set in a table half full was set by 2 ln 2 = 1.39 keys.
    const KEYS_PER_FINGERPRINT: f64 = 1.5;

    fn new(capacity: u64, rate: f64, salt: Salt) -> Result<Segments, BuildError> {
        let (empty, bytes) = Segments::without_table(capacity, rate, salt)?;
        let mut table = vec![];
        zeros(&mut table, bytes)?;
        Ok(Segments { table, ..empty })
    }

    fn spots(&self) -> u64 {
        self.cells
    }

    #[inline]
    fn spot(&self, key: Digest) -> u64 {
        self.salts.first().map_or(0, |&salt| reduce(key.salted(salt), self.cells))
    }

    #[inline]
    fn holds(&self, key: Digest) -> bool {
        (0..self.salts.len()).map(|segment| self.bit(segment, key)).all(|(byte, mask)| self.table[byte] & mask != 0)
    }

    fn insert(&mut self, key: Digest) -> bool {
        self.pass(key);
        true
    }

    fn pass(&mut self, key: Digest) {
        for segment in 0..self.salts.len() {
            let (byte, mask) = self.bit(segment, key);
            self.table[byte] |= mask;
        }
        self.len += 1;
    }

    fn remove(&mut self, _: Digest) -> bool {
        true
    }

    fn copies(&self, _: Digest) -> Option<u64> {
        None
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn table(&self) -> &[u8] {
        &self.table
    }

    fn load(capacity: u64, rate: f64, salt: Salt, table: &[u8], len: u64) -> Result<Option<Segments>, BuildError> {
        let (empty, bytes) = Segments::without_table(capacity, rate, salt)?;
        let fits = table.len() as u64 == bytes;
        Ok(fits.then(|| Segments { table: table.to_vec(), len, ..empty }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::adaptive::{Adapt, Memory, trial};

    /// Segments of m cells, k of them: an unlisted key matches with (1 - (1 - 1/m)^n)^k.
    #[test]
    fn rates_are_those_of_the_formula() {
        let (n, goal) = (50_000, 1.0 / 64.0);
        let mut filter = AdaptiveBloom::with_capacity(n).fpr(goal).secret([1, 2]).build::<u64>().unwrap();
        let mut map = Memory::new();
        (0..n).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
        let (cells, segments) = size(n, goal).unwrap();
        let set = 1.0 - (1.0 - 1.0 / cells as f64).powf(n as f64);
        trial::rate(&filter, set.powi(segments as i32), 400_000);
    }

    #[test]
    fn sizes_are_the_smallest() {
        for n in [1, 2, 10, 1000, 123_456] {
            for goal in [0.5, 0.1, 1.0 / 256.0, 1e-7] {
                let (cells, segments) = size(n, goal).unwrap();
                assert!(rate(n, cells, segments) <= goal && rate(n, cells - 1, segments) > goal);
                // 1.44 bits for each bit of the rate, and something for small tables.
                let bits = cells as f64 * f64::from(segments) / n as f64;
                assert!(n < 1000 || bits <= -goal.log2() * 1.45 + 0.2, "{n}, {goal}: {bits}");
            }
        }
        assert_eq!(size(1000, 0.0), None);
    }
}
