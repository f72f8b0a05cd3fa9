//! keys, all at once or one by one -> a payload: the building half of the quotient filter.

use super::table::{BLOCK, Table, lanes};
use super::{One, Quotient};
use crate::BuildError;
use crate::arch::{Answer, Isa, Kernel, Level, dispatch};
use crate::hash::{Digest, Salt};
use crate::leaves::Geometry;
use crate::leaves::bloom::zeros;
use crate::leaves::dynamic::{Full, Insert, Remove};
use crate::math::quotient::{MAX_FINGERPRINTS, MAX_REMAINDER, MAX_SLOTS, bits, capacity, rate, slots};

/// Slots after the last that a key can want. At the load of 19/20 the runs reach k slots past the end with probability
/// exp(-0.1 k): a few times in a billion they reach past this, and then an insertion fails early.
const SPARE: u64 = 192;

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

    /// Payload bits for `n` keys in `shards` shards, rather more than less.
    pub(crate) fn bits(&self, n: u64, shards: u64) -> f64 {
        if n == 0 {
            return 0.0;
        }
        bits((self.slots(n) + Params::spare(n, shards)) as f64, self.remainder)
    }

    /// The slots beyond those that were asked for: the end of every shard, rounded to a block.
    pub(crate) fn spare(n: u64, shards: u64) -> u64 {
        shards * (n.div_ceil(shards).min(SPARE) + BLOCK as u64)
    }

    /// The rate with `n` keys.
    pub(crate) fn rate(&self, n: u64) -> f64 {
        rate(n, self.slots(n), self.remainder)
    }
}

/// One insertion.
pub(super) struct Add<'a>(pub(super) Table, pub(super) &'a mut [u8], pub(super) (usize, u64));

impl Kernel for Add<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        let Add(table, payload, (quotient, remainder)) = self;
        table.insert::<I>(payload, quotient, remainder)
    }
}

/// One deletion.
pub(super) struct Delete<'a>(pub(super) Table, pub(super) &'a mut [u8], pub(super) (usize, u64));

impl Kernel for Delete<'_> {
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
    type Output = u64;
    #[inline(always)]
    fn run<I: Isa>(self) -> u64 {
        let Count(table, payload, (quotient, remainder)) = self;
        table.count::<I>(payload, quotient, remainder)
    }
}

impl Insert for Quotient {
    #[inline]
    fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full> {
        let full = Full { keys: self.keys, capacity: self.capacity() };
        if self.keys >= full.capacity || !dispatch(self.level, Add(self.table(), payload, self.locate(key))) {
            return Err(full);
        }
        self.keys += 1;
        Ok(())
    }
}

impl Remove for Quotient {
    #[inline]
    fn remove(&mut self, payload: &mut [u8], key: Digest) -> bool {
        let removed = dispatch(self.level, Delete(self.table(), payload, self.locate(key)));
        self.keys = self.keys.saturating_sub(removed.into());
        removed
    }
}

impl Quotient {
    /// How to read an empty filter of this size, with room at its end; its payload is `payload_len` zeros.
    pub(crate) fn new((slots, remainder): (u64, u32), salt: Salt) -> Result<Quotient, BuildError> {
        let fits = (1..=MAX_REMAINDER).contains(&remainder) && slots <= MAX_SLOTS.min(MAX_FINGERPRINTS >> remainder);
        if !fits {
            let reason = format!("quotient filter: {slots} slots of {remainder} bits are too many");
            return Err(BuildError::Unreachable { reason });
        }
        let blocks = (slots + slots.min(SPARE)).div_ceil(BLOCK as u64);
        Ok(Quotient { slots, remainder, blocks, keys: 0, ones: lanes(remainder), salt, level: Level::detect() })
    }

    /// Appends the payload that holds `keys`. Equal fingerprints are kept apart: each can be deleted.
    pub(crate) fn build(
        keys: &[Digest],
        params: &Params,
        salt: Salt,
        out: &mut Vec<u8>,
    ) -> Result<Quotient, BuildError> {
        let filter = Quotient::new((params.slots(keys.len() as u64), params.remainder), salt)?;
        let sorted = filter.fingerprints(keys);
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

    /// Blocks that the sorted fingerprints take.
    fn needed(&self, sorted: &[u64]) -> u64 {
        let end = sorted.iter().fold(0, |end, fingerprint| (fingerprint >> self.remainder).max(end) + 1);
        end.max(self.slots).div_ceil(BLOCK as u64)
    }

    /// Writes sorted fingerprints to a payload of zeros; there are blocks for all of them.
    fn lay_out(&self, sorted: &[u64], payload: &mut [u8]) {
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
        for (i, &fingerprint) in sorted.iter().enumerate() {
            let (quotient, remainder) = self.split(fingerprint);
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

    /// How many it holds.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// How many fingerprints there are. Filters that agree in this and in the salt can be merged.
    pub(crate) fn range(&self) -> u64 {
        self.slots << self.remainder
    }
}

/// A geometry and a payload of its own.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) geometry: Quotient,
    pub(crate) payload: Vec<u8>,
}

impl Answer<Held> for One {
    #[inline(always)]
    fn answer<I: Isa>(held: &Held, key: Digest) -> bool {
        held.geometry.ask::<I>(&held.payload, held.geometry.locate(key))
    }
}

impl Held {
    /// Without keys.
    pub(crate) fn empty(size: (u64, u32), salt: Salt) -> Result<Held, BuildError> {
        Held::of(Quotient::new(size, salt)?, &[])
    }

    /// With these fingerprints, sorted.
    fn of(geometry: Quotient, sorted: &[u64]) -> Result<Held, BuildError> {
        let blocks = geometry.blocks.max(geometry.needed(sorted));
        let geometry = Quotient { blocks, keys: sorted.len() as u64, ..geometry };
        let mut payload = vec![];
        geometry.lay_out(sorted, zeros(&mut payload, geometry.payload_len())?);
        Ok(Held { geometry, payload })
    }

    /// The fastest way to ask for one key.
    pub(crate) fn ask(&self) -> crate::arch::Ask<Held> {
        crate::arch::Ask::new::<One>(self.geometry.level)
    }

    /// How many copies of a key there are.
    pub(crate) fn count(&self, key: Digest) -> u64 {
        let Held { geometry, payload } = self;
        dispatch(geometry.level, Count(geometry.table(), payload, geometry.locate(key)))
    }

    /// All fingerprints, sorted.
    pub(crate) fn fingerprints(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.payload.len() / self.geometry.table().size() * BLOCK);
        let remainder = self.geometry.remainder;
        self.geometry.table().each(&self.payload, |quotient, low| all.push(quotient << remainder | low));
        all
    }

    /// The same keys in twice the slots, with one bit less in each; none if there is no bit to spare.
    pub(crate) fn doubled(&self) -> Result<Option<Held>, BuildError> {
        let Quotient { slots, remainder, salt, .. } = self.geometry;
        if remainder == 1 || slots > MAX_SLOTS / 2 {
            return Ok(None);
        }
        let geometry = Quotient::new((2 * slots, remainder - 1), salt)?;
        Ok(Some(Held::of(geometry, &self.fingerprints())?))
    }

    /// The keys of both in the slots of the first; an error if there is no room. The two have the same range and salt.
    pub(crate) fn merged(&self, other: &Held) -> Result<Result<Held, Full>, BuildError> {
        let (keys, capacity) = (self.geometry.keys.saturating_add(other.geometry.keys), self.geometry.capacity());
        if keys > capacity {
            return Ok(Err(Full { keys: self.geometry.keys, capacity }));
        }
        let mut all = self.fingerprints();
        all.extend(other.fingerprints());
        // Two sorted lists: the standard library's stable sort finds them and merges.
        all.sort();
        Ok(Ok(Held::of(Quotient { keys: 0, ..self.geometry }, &all)?))
    }

    /// Bytes of memory that checking a payload takes for each of its bytes: a list of fingerprints, and the payload written again.
    pub(crate) const CHECK: u64 = 24;

    /// A payload as a file has it, with room at its end; none if it is not what its fingerprints would be written as.
    pub(crate) fn checked(geometry: Quotient, payload: &[u8]) -> Result<Option<Held>, BuildError> {
        let mut held = Held { geometry, payload: payload.to_vec() };
        let all = held.fingerprints();
        let sane =
            all.is_sorted() && all.len() as u64 == geometry.keys && all.last().is_none_or(|&f| f < geometry.range());
        if !sane || geometry.needed(&all) > geometry.blocks {
            return Ok(None);
        }
        let again = Held::of(geometry, &all)?;
        if again.payload != held.payload {
            return Ok(None);
        }
        let room = Quotient::new((geometry.slots, geometry.remainder), geometry.salt)?;
        held.geometry.blocks = geometry.blocks.max(room.blocks);
        let more = held.geometry.payload_len() - geometry.payload_len();
        zeros(&mut held.payload, more)?;
        Ok(Some(held))
    }
}
