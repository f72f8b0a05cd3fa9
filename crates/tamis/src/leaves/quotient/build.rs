//! keys, all at once or one by one -> a payload: the building half of the quotient filter.

use super::Quotient;
use super::change::Put;
use super::table::{BLOCK, Table, lanes};
use crate::arch::{Isa, Kernel, Level, dispatch};
use crate::error::BuildError;
use crate::gather::{SHARD_KEYS, shard_bits};
use crate::hash::attempts::{SetHash, numbers};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::zeros;
use crate::leaves::change::{Change, Full};
use crate::leaves::design::roomier;
use crate::leaves::{Design, Geometry, Query, Sides, Work};
use crate::math::quotient::{MAX_FINGERPRINTS, MAX_REMAINDER, MAX_SLOTS, bits, capacity, rate, slots};

/// Slots after the last that a key can want. At the load of 19/20 the runs reach k slots past the end with probability
/// exp(-0.1 k): a few times in a billion they reach past this, and then an insertion fails early.
pub(super) const SPARE: u64 = 192;

/// As far from home as this no fingerprint comes by chance: with probability exp(-100).
const FAR: u64 = 1024;

/// What the planner chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    /// Slots for each key, times 2^16.
    pub(crate) per_key: u32,
    /// Bits of a remainder, 1 to 32.
    pub(crate) remainder: u32,
}

impl Params {
    /// The parameters that give `n` keys so many slots, or a few more, or a few fewer.
    pub(crate) fn new(n: u64, (slots, remainder): (u64, u32), fewer: bool) -> Params {
        let exact = slots as f64 * 65536.0 / n.max(1) as f64;
        let rounded = if fewer { exact.floor() } else { exact.ceil() };
        Params { per_key: rounded as u32, remainder }
    }

    /// Slots for `n` keys.
    fn slots(&self, n: u64) -> u64 {
        let wanted = (u128::from(n) * u128::from(self.per_key)).div_ceil(1 << 16);
        u64::try_from(wanted).unwrap_or(u64::MAX).max(slots(n))
    }

    /// The slots beyond those of the plan: the end of every shard, rounded to a block.
    pub(crate) fn spare(n: u64, shards: u64) -> u64 {
        shards * (n.div_ceil(shards).min(SPARE) + BLOCK as u64)
    }
}

impl Design for Params {
    type Leaf = Quotient;

    /// Rather more than less.
    fn bits(&self, listed: u64, others: u64) -> f64 {
        let n = listed + others;
        if n == 0 {
            return 0.0;
        }
        bits((self.slots(n) + Params::spare(n, 1 << shard_bits(n, SHARD_KEYS))) as f64, self.remainder)
    }

    fn rate_at(&self, listed: u64) -> f64 {
        rate(listed, self.slots(listed), self.remainder)
    }

    /// A run of remainders behind the words of its block.
    fn lines(&self) -> [f64; 2] {
        [2.0, 1.5]
    }

    fn with_room(self, spare: f64) -> Option<Params> {
        Some(Params { per_key: roomier(self.per_key, spare), ..self })
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Quotient, BuildError> {
        sides.fingerprints(|keys| Quotient::build(keys, self, work.salt, out))
    }
}

/// One insertion, and how many copies are allowed.
pub(super) struct Add<'a>(pub(super) Table, pub(super) &'a mut [u8], pub(super) (usize, u64), pub(super) usize);

impl Kernel for Add<'_> {
    const V4: bool = false;
    type Output = Put;
    #[inline(always)]
    fn run<I: Isa>(self) -> Put {
        let Add(table, payload, place, copies) = self;
        table.insert::<I>(payload, place, copies)
    }
}

/// One deletion.
pub(super) struct Delete<'a>(pub(super) Table, pub(super) &'a mut [u8], pub(super) (usize, u64));

impl Kernel for Delete<'_> {
    const V4: bool = false;
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        let Delete(table, payload, (quotient, remainder)) = self;
        table.remove::<I>(payload, quotient, remainder)
    }
}

/// How often a key is there.
pub(super) struct Count<'a>(pub(super) Table, pub(super) &'a [u8], pub(super) (usize, u64));

impl Kernel for Count<'_> {
    const V4: bool = false;
    type Output = u64;
    #[inline(always)]
    fn run<I: Isa>(self) -> u64 {
        let Count(table, payload, (quotient, remainder)) = self;
        table.count::<I>(payload, quotient, remainder)
    }
}

impl Change for Quotient {
    const REMOVES: bool = true;

    fn keys(&self) -> u64 {
        self.keys
    }

    fn capacity(&self) -> Option<u64> {
        Some(Quotient::capacity(self))
    }

    #[inline]
    fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full> {
        let full = Full { keys: self.keys, capacity: self.capacity() };
        let add = Add(self.table(), payload, self.locate(key), usize::MAX);
        if self.keys >= full.capacity || !matches!(dispatch(self.level, add), Put::Done(_)) {
            return Err(full);
        }
        self.keys += 1;
        Ok(())
    }

    #[inline]
    fn remove(&mut self, payload: &mut [u8], key: Digest) -> bool {
        let removed = dispatch(self.level, Delete(self.table(), payload, self.locate(key)));
        self.keys = self.keys.saturating_sub(removed.into());
        removed
    }

    #[inline]
    fn closed_gates(&self, payload: &[u8], key: Digest, mut each: impl FnMut(u64) -> bool) {
        if !self.contains(payload, key) {
            each(self.fingerprint(key));
        }
    }

    fn gate(&self, key: Digest) -> Option<u64> {
        Some(self.fingerprint(key))
    }
}

impl Quotient {
    /// How to read an empty filter of this size, with room at its end; its payload is `payload_len` zeros.
    pub(crate) fn new((slots, remainder): (u64, u32), salt: Salt) -> Result<Quotient, BuildError> {
        let fits = (1..=MAX_REMAINDER).contains(&remainder) && slots <= MAX_SLOTS.min(MAX_FINGERPRINTS >> remainder);
        if !fits {
            return Err(BuildError::QuotientSize { slots, remainder });
        }
        let blocks = (slots + slots.min(SPARE)).div_ceil(BLOCK as u64);
        let ones = lanes(remainder);
        Ok(Quotient { slots, remainder, number: 0, blocks, keys: 0, ones, salt, level: Level::detect() })
    }

    /// Appends the payload that holds `keys`. Equal fingerprints are kept apart: each can be deleted.
    pub(crate) fn build(
        keys: &[Digest],
        params: &Params,
        salt: Salt,
        out: &mut Vec<u8>,
    ) -> Result<Quotient, BuildError> {
        let mut filter = Quotient::new((params.slots(keys.len() as u64), params.remainder), salt)?;
        let mut sorted = filter.fingerprints(keys);
        if filter.is_crowded(&sorted) {
            for (_, number) in numbers(keys.len(), || SetHash::of(keys)).skip(1) {
                let moved = Quotient { number: number as u32, ..filter };
                let places = moved.places(sorted.clone());
                if !moved.is_crowded(&places) {
                    (filter, sorted) = (moved, places);
                    break;
                }
            }
        }
        // The end is known: no block is spared for what does not come.
        let filter = Quotient { blocks: filter.needed(&sorted), ..filter };
        filter.lay_out(&sorted, zeros(out, filter.payload_len())?);
        Ok(Quotient { keys: keys.len() as u64, ..filter })
    }

    /// Fingerprints of keys, sorted.
    fn fingerprints(&self, keys: &[Digest]) -> Vec<u64> {
        // Fingerprints ascend with hashes: the top bits of a hash are a bucket, as small as the cache likes it.
        let shift = 64 - (keys.len() / 128).max(2).ilog2().min(12);
        let mut starts = vec![0usize; (1 << (64 - shift)) + 1];
        let hashes: Vec<u64> = keys.iter().map(|key| key.salted(self.salt)).collect();
        for hash in &hashes {
            starts[(hash >> shift) as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let range = u128::from(self.slots << self.remainder);
        let mut sorted = vec![0; keys.len()];
        for hash in hashes {
            let at = &mut starts[(hash >> shift) as usize];
            sorted[*at] = ((u128::from(hash) * range) >> 64) as u64;
            *at += 1;
        }
        // Every start is where its bucket ends by now.
        let mut from = 0;
        for end in starts {
            sorted[from..end].sort_unstable();
            from = end;
        }
        sorted
    }

    /// The places of fingerprints, sorted; they come sorted.
    pub(super) fn places(&self, mut fingerprints: Vec<u64>) -> Vec<u64> {
        if self.number != 0 {
            fingerprints.iter_mut().for_each(|fingerprint| *fingerprint = self.placed(*fingerprint));
            fingerprints.sort_unstable();
        }
        fingerprints
    }

    /// Blocks that the sorted places take.
    pub(super) fn needed(&self, sorted: &[u64]) -> u64 {
        let end = sorted.iter().fold(0, |end, place| (place >> self.remainder).max(end) + 1);
        end.max(self.slots).div_ceil(BLOCK as u64)
    }

    /// Whether chance does not bring these sorted places together: some are beyond the end, or far from home. How far copies are does not
    /// count, since nothing tells them apart.
    pub(super) fn is_crowded(&self, sorted: &[u64]) -> bool {
        let (end, farthest) = self.spread_of(sorted.iter().copied());
        // Nearly always nothing is far even if copies count, which is quicker to see.
        let far = |farthest| farthest > FAR;
        let alone = || self.spread_of(sorted.chunk_by(|a, b| a == b).map(|copies| copies[0])).1;
        end > self.blocks * BLOCK as u64 || (far(farthest) && far(alone()))
    }

    /// Where sorted places end, and how far from home one lies at most.
    fn spread_of(&self, sorted: impl Iterator<Item = u64>) -> (u64, u64) {
        let (mut end, mut farthest) = (0, 0);
        for place in sorted.map(|place| place >> self.remainder) {
            end = place.max(end) + 1;
            farthest = farthest.max(end - place);
        }
        (end, farthest)
    }

    /// Writes sorted places to a payload of zeros; there are blocks for all of them.
    pub(super) fn lay_out(&self, sorted: &[u64], payload: &mut [u8]) {
        let table = self.table();
        // The next slot, and the block up to which offsets are written.
        let (mut slot, mut block) = (0, 0);
        let mut offsets = |payload: &mut [u8], slot: usize, to: usize| {
            while block < to {
                block += 1;
                table.set_offset(payload, block, slot.saturating_sub(block * BLOCK));
            }
        };
        let mut run = usize::MAX;
        for (i, &place) in sorted.iter().enumerate() {
            let (quotient, remainder) = self.split(place);
            if quotient != run {
                offsets(payload, slot, quotient / BLOCK);
                table.set_occupied(payload, quotient, true);
                slot = slot.max(quotient);
                run = quotient;
            }
            table.set_remainder(payload, slot, remainder);
            if sorted.get(i + 1).is_none_or(|&next| self.split(next).0 != quotient) {
                table.set_end(payload, slot, true);
            }
            slot += 1;
        }
        offsets(payload, slot, table.blocks.saturating_sub(1));
    }

    /// How many keys it is made for.
    pub(crate) fn capacity(&self) -> u64 {
        capacity(self.slots)
    }
}
