//! keys inserted and removed, false positives reported -> a quotient filter, and next to it the fingerprints that had to be longer (\[Broom\] section 3.1).
//!
//! The plain way to extendible fingerprints. A quotient table holds a *base* of every key, `log2 n/eps` bits, as a multiset. A key whose
//! fingerprint is longer than that has an entry in a small hash table too: the base again, 1 to 18 more bits of its hash, and how many. Most
//! keys have none, and most queries end at the quotient table.
//!
//! ```text
//!   query: base not in the table              no
//!          more copies of it than entries     yes: some key has no more than the base
//!          an entry agrees in all its bits    yes
//!          otherwise                          no
//! ```
//!
//! The rules are those of the broom filter: no fingerprint is a prefix of another, of whichever hash function; adapting makes the fingerprint of
//! the one key to blame longer; a key that is inserted where it would be taken for another makes both longer. A key that would need more than 18
//! bits leaves the quotient table and is kept as 58 bits of another hash.
//!
//! * **Removed keys.** The entry of a removed key stays as a *tombstone*: it matches no query, but a key that is inserted under the same hash function
//!   and agrees with it gets a fingerprint that is at least as long. So removing and inserting a key does not undo what adapting did.
//! * **Steps.** A false positive moves 32 keys (`steps`) to the next hash function, a removal that leaves a tombstone three times as many; both functions share one table. When all have moved, tombstones
//!   of the old function are swept out, 64 slots a step, and the functions change places.
//! * **Room.** Let an epoch have N steps and c be `steps`. Entries of keys come from the false positives of the last epoch: c L <= N. A tombstone is gone after two, and
//!   cost c when it became longer and 3 c when its key was removed: c L + 4 c B <= 3 N. So L + B is at most 3/2 N / c, and there is room for that many, and for keys that
//!   collide among themselves, about n eps. It does not grow: a filter that holds its capacity is full.
//!
//! The [`Broom`](super::Broom) keeps the extra bits beside the remainders and takes 13 bits per key where this takes 15; this is what
//! can be built on any table that holds fingerprints as they are.

mod entry;
mod plan;
mod snapshot;

use self::entry::{BASE_BITS, Entry, Match, Place, SHIFT, Whole};
use super::AdaptiveFilter;
use super::builder::{AdaptiveBuilder, Built, Empty, Sizing, check_range};
use super::frontier::{Frontier, Side};
use super::words::{Scattered, Words};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::filter::options::set;
use crate::hash::{Digest, Hasher, KeyType, Salt};
use crate::leaves::quotient::OwnedQuotient;
use crate::math::quotient::size;

/// A quotient filter that makes fingerprints longer where they were mistaken.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, AdaptiveQuotient, Memory};
/// let mut filter = AdaptiveQuotient::with_capacity(1000).build::<u64>()?;
/// let mut map = Memory::new();
/// for key in 0..1000u64 {
///     filter.insert(key, &mut map)?;
/// }
/// let mistake = (1000..100_000u64).find(|&key| filter.contains(key) == Ok(true)).expect("one in a hundred");
/// filter.adapt(mistake, &mut map)?;
/// assert!(!filter.contains(mistake)?);
/// assert!((0..1000u64).all(|key| filter.contains(key) == Ok(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AdaptiveQuotient {
    capacity: u64,
    rate: f64,
    steps: u32,
    frontier: Frontier,
    /// The base of every key but those that are kept whole.
    held: OwnedQuotient,
    /// Bases that found no slot, which the table's end makes possible and chance does not.
    spare: Vec<u64>,
    /// Longer fingerprints.
    long: Words<Scattered<SHIFT>>,
    /// Hashes of keys that are kept whole.
    whole: Words<Scattered<{ Whole::SHIFT }>>,
    /// Keys under the old hash function.
    old: u64,
    /// Keys that are kept whole, without tombstones.
    whole_keys: u64,
    /// Tombstones under the even hash functions and the odd.
    tombstones: [u64; 2],
    /// The slot of `long` and `whole` that is swept next.
    swept: usize,
}

brief_debug!(AdaptiveQuotient, it => keys: it.len(), capacity: it.capacity, rate: it.rate, bytes: it.memory_bytes());

/// Keys that are moved for each false positive.
const DEFAULT_STEPS: u32 = 32;
/// What they can be.
const STEPS: std::ops::RangeInclusive<u32> = 4..=128;

/// What is to be made, and how large its tables are.
struct Sizes {
    capacity: u64,
    rate: f64,
    steps: u32,
    /// Slots, and bits of a remainder.
    table: (u64, u32),
    long: usize,
    whole: usize,
}

impl Sizes {
    fn new(capacity: u64, rate: f64, steps: u32) -> Result<Sizes, BuildError> {
        check_range("fpr", rate, 1e-7..=0.5)?;
        let (least, most) = STEPS.into_inner();
        check_range("moves_per_adapt", steps, least.into()..=most.into())?;
        let fits = |&(slots, remainder): &(u64, u32)| slots.leading_zeros() + BASE_BITS >= 64 + remainder;
        let (structure, bits) = ("adaptive quotient filter", BASE_BITS);
        let many = BuildError::Fingerprints { structure, keys: capacity, rate, bits };
        let table = size(capacity.max(1), rate).filter(fits).ok_or(many)?;
        let collide = (capacity as f64 * rate * 1.5) as u64;
        let long = (3 * capacity).div_ceil(2 * u64::from(steps)) + collide.min(capacity) + 64;
        Ok(Sizes { capacity, rate, steps, table, long: long as usize, whole: (capacity >> 12) as usize + 64 })
    }
}

impl Built for AdaptiveQuotient {
    type Options = Sizing<u32>;
}

impl Empty for AdaptiveQuotient {
    /// Keys that are moved for each false positive.
    type More = u32;

    fn empty(sizing: &Sizing<u32>, key_type: KeyType, hasher: Hasher) -> Result<AdaptiveQuotient, BuildError> {
        let sizes = Sizes::new(sizing.capacity, sizing.fpr, sizing.more)?;
        let held = OwnedQuotient::empty(sizes.table, Salt::new(0))?;
        AdaptiveQuotient::of(key_type, hasher, &sizes, held)
    }
}

impl AdaptiveBuilder<AdaptiveQuotient> {
    set! {
        /// Sets how many keys each false positive moves to the next hash function, 4 to 128; the default is 32. With more of them, fewer
        /// keys have longer fingerprints at a time: the filter is smaller.
        ///
        /// ```
        /// use tamis::adaptive::{AdaptiveFilter, AdaptiveQuotient};
        /// let of = |moves| AdaptiveQuotient::with_capacity(10_000).moves_per_adapt(moves).build::<u64>();
        /// assert!(of(64)?.memory_bytes() < of(16)?.memory_bytes());
        /// # Ok::<(), tamis::Error>(())
        /// ```
        moves_per_adapt(keys: u32) => options.more = keys;
    }
}

impl AdaptiveQuotient {
    /// Starts a filter for `capacity` keys and a rate of 1e-7 to 0.5.
    pub fn with_capacity(capacity: u64) -> AdaptiveBuilder<AdaptiveQuotient> {
        AdaptiveBuilder::new(capacity, DEFAULT_STEPS)
    }

    fn of(
        key_type: KeyType,
        hasher: Hasher,
        sizes: &Sizes,
        held: OwnedQuotient,
    ) -> Result<AdaptiveQuotient, BuildError> {
        let &Sizes { capacity, rate, steps, .. } = sizes;
        Ok(AdaptiveQuotient {
            capacity,
            rate,
            steps,
            frontier: Frontier::new(hasher, key_type),
            held,
            spare: vec![],
            long: Words::new(sizes.long)?,
            whole: Words::new(sizes.whole)?,
            old: 0,
            whole_keys: 0,
            tombstones: [0; 2],
            swept: 0,
        })
    }

    /// How many removed keys have tombstones.
    #[cfg(test)]
    fn tombstones(&self) -> u64 {
        self.tombstones.iter().sum()
    }

    #[inline]
    fn place(&self, key: Digest, side: Side) -> Place {
        let salt = self.frontier.salt(side);
        let product = u128::from(key.salted(salt)) * u128::from(self.held.geometry.range());
        let parity = self.frontier.number(side) & 1;
        Place { base: (product >> 64) as u64, rest: product as u64, parity, whole: key.salted(salt.child(1)) }
    }

    fn place_of(&self, key: Digest) -> Place {
        self.place(key, self.frontier.side(key))
    }

    /// How many keys have this base.
    fn copies(&self, base: u64) -> u64 {
        self.held.copies(base) + self.spare.iter().filter(|&&spare| spare == base).count() as u64
    }

    fn entries(&self, base: u64) -> impl Iterator<Item = Entry> + '_ {
        self.long.like(base << SHIFT).map(|(_, word)| Entry::unpack(word))
    }

    /// The fingerprint in the quotient table that is a prefix of a hash.
    #[inline]
    fn in_table(&self, place: &Place) -> Option<Match> {
        if !self.held.has(place.base) && (self.spare.is_empty() || !self.spare.contains(&place.base)) {
            return None;
        }
        let mut long = 0;
        for entry in self.entries(place.base).filter(|entry| !entry.tombstone) {
            if entry.is_prefix(place) {
                return Some(Match::Long(entry));
            }
            long += 1;
        }
        (self.copies(place.base) > long).then_some(Match::Bare)
    }

    /// Whether a key with this hash is kept whole.
    #[inline]
    fn is_whole(&self, place: &Place) -> bool {
        self.whole_keys > 0 && self.whole.like(place.whole).any(|(_, word)| !Whole::is_tombstone(word))
    }

    /// A table so full that a change may find no room.
    fn is_full(&self) -> bool {
        self.long.len() + 2 > self.long.capacity() || self.whole.len() + 1 > self.whole.capacity()
    }
}

#[cfg(test)]
mod tests;
