//! digests -> short remainders in sorted runs: the quotient filter with ranks and selects, which also gives keys back.
//!
//! A key is a fingerprint F below `slots * 2^r`: `F = hi(hash * slots * 2^r)`, so any number of slots will do. Its upper part, the
//! quotient `F >> r`, is the slot where it would like to be; the slot keeps the lower r bits. Remainders of one quotient are a run,
//! sorted; runs lie in the order of their quotients and give way to the right, into a few spare blocks at the end. Two bits per
//! slot and a byte per block tell the runs apart again (see `table.rs`), so that the very set of fingerprints is there:
//!
//! ```text
//!   quotient    0   1   2   3   4   5   6   7           1 -> a b c,  2 -> d,  5 -> e f
//!   occupied    .   1   1   .   .   1   .   .
//!   ends        .   .   .   1   1   .   1   .
//!   slot        -   a   b   c   d   e   f   -
//! ```
//!
//! * *Deleting* takes a fingerprint out, and a key that was put in twice is there twice (its remainder is repeated).
//! * *Growing* moves the highest bit of all remainders to the quotients: F stays what it is, and no key is needed.
//! * *Merging* is the merging of two sorted lists.
//! * *The bytes follow from the set*: free slots are zero, so neither the order of insertions nor what was deleted leaves a trace.
//!
//! **Chosen keys.** Without a secret all fingerprints are public, and keys can be chosen that crowd: thousands that want the same slots
//! move thousands of others with each insertion, and at the end of the table there is no free slot for them. Because the very
//! fingerprints are there, all of them can be kept elsewhere at any time, without the keys. Quotient and remainder are not those
//! of F but those of its *place*, and a number says which bijection leads from fingerprints to places (`places.rs`). It is 0, and
//! the place is F itself, until a table is crowded. A table that is built at once then takes a number that follows from the set
//! (`attempts.rs`), and one that changes a random one (`changing.rs`).
//!
//! Copies of one fingerprint have one place under every number. A table that changes keeps the first 64 in its slots and counts
//! the others next to them, until it is written to a file: so a million copies of a key cost no more than a million keys. In a file
//! they are in the slots; queries skip through a long run block by block.
//!
//! Paper: [Quotient] Pandey, Bender, Johnson, Patro 2017, sections 3 and 4. Unlike there, `offset` counts what earlier blocks
//! take of a block, and there are no counters. The rate is computed in [`crate::math::quotient`].

use crate::arch::{Answer, Base, Isa, Level, QueryFn, prefetch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::MAX_NUMBER;
use crate::hash::{Digest, Salt};
use crate::leaves::batch::{InBatches, ask_leaf};
#[cfg(feature = "build")]
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Geometry, Part, Query, ShardedLeaf, Way};
use crate::math::quotient::{MAX_FINGERPRINTS, MAX_REMAINDER, MAX_SLOTS};

#[cfg(feature = "build")]
mod build;
#[cfg(feature = "build")]
mod change;
#[cfg(feature = "build")]
mod changing;
#[cfg(feature = "build")]
mod multiset;
#[cfg(feature = "build")]
mod owned;
mod places;
mod table;

#[cfg(feature = "build")]
pub(crate) use build::Params;
#[cfg(feature = "build")]
pub(crate) use changing::Changing;
#[cfg(feature = "build")]
pub(crate) use owned::OwnedQuotient;
use table::{BLOCK, Table};

/// Keys that are located and prefetched together before the first is answered.
const BATCH: usize = 64;

/// How to read a quotient filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quotient {
    /// Slots that a key can want.
    slots: u64,
    /// Bits of a remainder.
    remainder: u32,
    /// Which bijection leads from fingerprints to places; 0 for none.
    number: u32,
    /// Blocks of 64 slots; a few more than `slots` needs.
    blocks: u64,
    /// Fingerprints in it.
    keys: u64,
    /// A one for each of the remainders that are compared at once.
    ones: u64,
    salt: Salt,
    level: Level,
}

impl Quotient {
    /// Quotient and remainder of a key.
    #[inline(always)]
    fn locate(&self, key: Digest) -> (usize, u64) {
        self.split(self.placed(self.fingerprint(key)))
    }

    #[inline(always)]
    fn fingerprint(&self, key: Digest) -> u64 {
        ((u128::from(key.salted(self.salt)) * u128::from(self.range())) >> 64) as u64
    }

    /// How many fingerprints there are. Filters that agree in this and in the salt can be merged.
    #[inline(always)]
    pub(crate) fn range(&self) -> u64 {
        self.slots << self.remainder
    }

    /// Where a fingerprint is kept.
    #[inline(always)]
    fn placed(&self, fingerprint: u64) -> u64 {
        if self.number == 0 { fingerprint } else { places::there(self.number, self.range(), fingerprint) }
    }

    /// Quotient and remainder of a place.
    #[inline(always)]
    fn split(&self, place: u64) -> (usize, u64) {
        // On a 32-bit processor a payload that is there has fewer slots than a usize can count.
        let quotient = usize::try_from(place >> self.remainder).unwrap_or(usize::MAX);
        (quotient, place & ((1 << self.remainder) - 1))
    }

    #[inline(always)]
    fn table(&self) -> Table {
        Table { remainder: self.remainder, blocks: usize::try_from(self.blocks).unwrap_or(0) }
    }

    /// Whether a key is there. Other numbers than 0 are a call of their own and the last one, so that no register is kept for it:
    /// the common case is longer by one test.
    #[inline(always)]
    fn answer<I: Isa>(&self, payload: &[u8], key: Digest) -> bool {
        if self.number != 0 {
            return self.answer_moved::<I>(payload, key);
        }
        self.ask::<I>(payload, self.split(self.fingerprint(key)))
    }

    #[cold]
    #[inline(never)]
    fn answer_moved<I: Isa>(&self, payload: &[u8], key: Digest) -> bool {
        self.ask::<I>(payload, self.locate(key))
    }

    #[inline(always)]
    fn ask<I: Isa>(&self, payload: &[u8], (quotient, remainder): (usize, u64)) -> bool {
        self.table().has::<I>(payload, quotient, remainder, self.ones)
    }
}

/// One query.
struct One;

impl Answer<Part<Quotient>> for One {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Quotient>, key: Digest) -> bool {
        part.geometry.answer::<I>(&part.payload, key)
    }
}

impl InBatches for One {
    type Geometry = Quotient;
    /// Quotient and remainder.
    type Found<'a> = (usize, u64);

    #[inline(always)]
    fn find(of: &Quotient, payload: &[u8], key: Digest) -> (usize, u64) {
        let (found, table) = (of.locate(key), of.table());
        // The words of the block, and the remainders about the slot where the run would like to be.
        prefetch(payload, table.words_at(found.0 / BLOCK));
        prefetch(payload, table.place(found.0).0);
        found
    }

    #[inline(always)]
    fn answer<I: Isa>(of: &Quotient, payload: &[u8], found: (usize, u64)) -> bool {
        of.ask::<I>(payload, found)
    }
}

impl Query for Quotient {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        self.ask::<Base>(payload, self.locate(key))
    }

    fn same_kernel(&self, _: &Quotient) -> bool {
        true
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Quotient>) -> QueryFn<W::Asked> {
        leaf.by::<W, One, _>(self.level)
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Quotient>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        ask_leaf::<One, BATCH>(self.level, leaf, keys, out);
    }

    #[cfg(feature = "build")]
    fn layer(part: &Part<Quotient>) -> Option<Box<dyn Layer>> {
        Some(Box::new(Owned::from(part)))
    }
}

/// Directory: slots, bits of a remainder, blocks, keys, number (varints). Payload: `blocks * (17 + 8 r)` bytes, see `table.rs`.
impl Geometry for Quotient {
    const NAME: &'static str = "quotient";

    fn encode(&self, out: &mut Vec<u8>) {
        for value in [self.slots, self.remainder.into(), self.blocks, self.keys, self.number.into()] {
            put_varint(out, value);
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError> {
        let slots = from.within("number of slots", 0..=MAX_SLOTS)?;
        let remainder = from.within("bits of a remainder", 1..=MAX_REMAINDER.into())? as u32;
        if slots > MAX_FINGERPRINTS >> remainder {
            return Err(FormatError::invalid(format!(
                "directory: {slots} slots of {remainder} bits, more than 2^62 fingerprints"
            )));
        }
        // Every quotient has a slot; without slots there is no payload.
        let least = slots.div_ceil(BLOCK as u64);
        let most = if slots == 0 { 0 } else { MAX_SLOTS };
        let blocks = from.within("number of blocks", least..=most)?;
        let keys = from.within("number of keys", 0..=blocks * BLOCK as u64)?;
        let most = if slots == 0 { 0 } else { MAX_NUMBER };
        let number = from.within("number of its places", 0..=most)? as u32;
        let ones = table::lanes(remainder);
        Ok(Quotient { slots, remainder, number, blocks, keys, ones, salt, level: Level::detect() })
    }

    fn payload_len(&self) -> u64 {
        self.blocks * (8 * u64::from(self.remainder) + table::META as u64)
    }

    fn fpr(&self) -> f64 {
        crate::math::quotient::rate(self.keys, self.slots, self.remainder)
    }

    fn details(&self) -> String {
        format!("{} slots of {} bits", self.slots, self.remainder)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
