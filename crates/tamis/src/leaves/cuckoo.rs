//! digests -> fingerprints in buckets of four: the cuckoo filter, whose keys come and go.
//!
//! A key is a fingerprint of 4 to 32 bits, never zero, in one of two buckets. The second bucket follows from the first and the
//! fingerprint, and the first from the second in the same way, so a fingerprint can be moved without its key ([Cuckoo]):
//!
//! ```text
//!   other(i) = (r - i) mod buckets        r = the mirror of the fingerprint; made odd if the number of buckets is even
//! ```
//!
//! A reflection is its own inverse for any number of buckets; the usual xor wants a power of two and wastes up to half of the
//! table. With an even number and an odd r the two buckets always differ; with an odd number one bucket in all of them is its own
//! other one.
//!
//! Mirrors decide how full a table gets. If several fingerprints have one mirror, their keys share pairs of buckets, each with room for
//! eight; so every fingerprint has its mirror in a share of the range that is its own. Where in this share is a hash: mirrors
//! at equal distances connect some buckets with each other only, and these are full while others have room.
//!
//! What an unlisted key meets depends on no placement: it passes if some key has its fingerprint and its pair of buckets. That is why
//! [`crate::math::cuckoo::rate`] is exact at every load.
//!
//! A query compares four fingerprints at once in each bucket: two cache lines. Changes are in [`change`]; `semi-sorted` buckets
//! ([`bucket`]) save a bit per key and cost a look at a table.

use self::bucket::{Buckets, Word, width, word_bytes};
use crate::arch::{Answer, Isa, Level, QueryFn, prefetch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, MAX_NUMBER, Salt, reduce};
use crate::leaves::batch::{InBatches, ask_leaf};
#[cfg(feature = "build")]
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Geometry, Part, Query, ShardedLeaf, Way};
use crate::math::cuckoo::{BITS, MAX_BUCKETS};

mod bucket;
#[cfg(feature = "build")]
mod change;

#[cfg(feature = "build")]
pub(crate) use change::Params;

/// Keys that are located and prefetched together.
const BATCH: usize = 64;

/// How to read a cuckoo filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cuckoo {
    buckets: u64,
    /// Bits of a fingerprint.
    bits: u32,
    semi_sorted: bool,
    number: u64,
    /// Keys it holds, a repeated one as often as it was added.
    keys: u64,
    /// Keys it was made for.
    pub(crate) capacity: u64,
    /// That of the number.
    salt: Salt,
    level: Level,
}

/// Runs `$body` with the type of the buckets.
macro_rules! with_buckets {
    ($geometry:expr, $buckets:ident => $body:expr) => {
        match ($geometry.bits > 16, $geometry.semi_sorted) {
            (false, false) => {
                let $buckets = Buckets::<u64, false>::new($geometry.bits);
                $body
            }
            (false, true) => {
                let $buckets = Buckets::<u64, true>::new($geometry.bits);
                $body
            }
            (true, false) => {
                let $buckets = Buckets::<u128, false>::new($geometry.bits);
                $body
            }
            (true, true) => {
                let $buckets = Buckets::<u128, true>::new($geometry.bits);
                $body
            }
        }
    };
}
#[cfg(feature = "build")]
use with_buckets;

impl Cuckoo {
    /// The first bucket of a key, and its fingerprint.
    #[inline(always)]
    fn locate(&self, key: Digest) -> (u64, u32) {
        let hash = key.salted(self.salt);
        let values = (1u64 << self.bits) - 1;
        (reduce(hash, self.buckets), ((((hash & 0xffff_ffff) * values) >> 32) + 1) as u32)
    }

    /// The other bucket of a fingerprint in this one.
    #[inline(always)]
    fn other(&self, bucket: u64, fingerprint: u32) -> u64 {
        let share = u64::from(fingerprint) << (64 - self.bits);
        let within = Digest { hi: share, lo: fingerprint.into() }.salted(self.salt) >> self.bits;
        let mirror = reduce(share | within, self.buckets) | (!self.buckets & 1);
        let other = mirror.wrapping_sub(bucket);
        if bucket > mirror { other.wrapping_add(self.buckets) } else { other }
    }

    /// Both buckets of a key, and its fingerprint.
    #[inline(always)]
    fn find(&self, key: Digest) -> Place {
        let (first, fingerprint) = self.locate(key);
        Place { first, second: self.other(first, fingerprint), fingerprint }
    }
}

/// Where a key may be, and what is there.
#[derive(Clone, Copy, Default)]
struct Place {
    first: u64,
    second: u64,
    fingerprint: u32,
}

impl<W: Word, const SEMI: bool> Buckets<W, SEMI> {
    #[inline(always)]
    fn contains(&self, payload: &[u8], place: Place) -> bool {
        let Place { first, second, fingerprint } = place;
        let all = self.all(fingerprint);
        // Both, whatever the first says: a branch that cannot be predicted costs more.
        self.has(payload, first, fingerprint, all) | self.has(payload, second, fingerprint, all)
    }

    #[inline(always)]
    fn prefetch(&self, payload: &[u8], place: Place) {
        prefetch(payload, self.byte(place.first));
        prefetch(payload, self.byte(place.second));
    }
}

impl<W: Word, const SEMI: bool> Answer<Part<Cuckoo>> for Buckets<W, SEMI> {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Cuckoo>, key: Digest) -> bool {
        Buckets::<W, SEMI>::new(part.geometry.bits).contains(&part.payload, part.geometry.find(key))
    }
}

impl<W: Word, const SEMI: bool> InBatches for Buckets<W, SEMI> {
    type Geometry = Cuckoo;
    type Found<'a> = (&'a [u8], Place);

    #[inline(always)]
    fn find<'a>(of: &Cuckoo, payload: &'a [u8], key: Digest) -> (&'a [u8], Place) {
        let place = of.find(key);
        Buckets::<W, SEMI>::new(of.bits).prefetch(payload, place);
        (payload, place)
    }

    #[inline(always)]
    fn answer<I: Isa>(of: &Cuckoo, _: &[u8], (payload, place): (&[u8], Place)) -> bool {
        Buckets::<W, SEMI>::new(of.bits).contains(payload, place)
    }
}

impl Query for Cuckoo {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        with_buckets!(self, buckets => buckets.contains(payload, self.find(key)))
    }

    fn same_kernel(&self, other: &Cuckoo) -> bool {
        (self.bits, self.semi_sorted) == (other.bits, other.semi_sorted)
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Cuckoo>) -> QueryFn<W::Asked> {
        match (self.bits > 16, self.semi_sorted) {
            (false, false) => leaf.by::<W, Buckets<u64, false>, _>(self.level),
            (false, true) => leaf.by::<W, Buckets<u64, true>, _>(self.level),
            (true, false) => leaf.by::<W, Buckets<u128, false>, _>(self.level),
            (true, true) => leaf.by::<W, Buckets<u128, true>, _>(self.level),
        }
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Cuckoo>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        fn ask<W: Word, const SEMI: bool>(
            _: Buckets<W, SEMI>,
            level: Level,
            leaf: &ShardedLeaf<Cuckoo>,
            keys: &[Digest],
            out: &mut [bool],
        ) {
            ask_leaf::<Buckets<W, SEMI>, BATCH>(level, leaf, keys, out);
        }
        with_buckets!(self, buckets => ask(buckets, self.level, leaf, keys, out));
    }

    #[cfg(feature = "build")]
    fn layer(part: &Part<Cuckoo>) -> Option<Box<dyn Layer>> {
        Some(Box::new(Owned::from(part)))
    }
}

/// Directory: buckets, bits, semi-sorted, number of the salt, keys, capacity (varints). Payload: the buckets, bit after bit, and zeros up to the
/// end of the word in which the last one starts.
impl Geometry for Cuckoo {
    const NAME: &'static str = "cuckoo";

    fn encode(&self, out: &mut Vec<u8>) {
        let Cuckoo { buckets, bits, semi_sorted, number, keys, capacity, .. } = *self;
        for value in [buckets, bits.into(), semi_sorted.into(), number, keys, capacity] {
            put_varint(out, value);
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError> {
        let buckets = from.within("number of buckets", 0..=MAX_BUCKETS)?;
        let bits = from.within("bits of a fingerprint", (*BITS.start()).into()..=(*BITS.end()).into())? as u32;
        let semi_sorted = from.within("semi-sorted", 0..=1)? == 1;
        let number = from.within("salt", 0..=MAX_NUMBER)?;
        let (keys, capacity) = (from.varint()?, from.varint()?);
        let salt = salt.child(number);
        Ok(Cuckoo { buckets, bits, semi_sorted, number, keys, capacity, salt, level: Level::detect() })
    }

    fn payload_len(&self) -> u64 {
        match self.buckets.checked_sub(1) {
            Some(last) => last * u64::from(width(self.bits, self.semi_sorted)) / 8 + word_bytes(self.bits),
            None => 0,
        }
    }

    fn fpr(&self) -> f64 {
        crate::math::cuckoo::rate(self.keys, self.buckets, self.bits)
    }

    fn details(&self) -> String {
        let sorted = if self.semi_sorted { ", semi-sorted" } else { "" };
        format!("{} buckets of four fingerprints of {} bits{sorted}", self.buckets, self.bits)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
