//! a digest -> its two buckets: how many there are, and how many keys fit; and what a store needs to be opened again.

use crate::debug::brief_debug;
use crate::dynamic::othello::forest::Stream;
use crate::error::FormatError;
use crate::hash::{Digest, Salt, reduce};

/// The most slots of a bucket.
pub(super) const MAX_SLOTS: usize = 64;

/// A slot of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) bucket: u64,
    pub(super) slot: usize,
}

/// What a table needs to know to [open](super::TableBuilder::open_in) a store again: how many buckets there are, and which of them are a key's.
///
/// It changes when the table grows: write it down when [`Table::layout`](super::Table::layout) says another one than before. Keep it secret if the
/// hash is: who knows it can choose keys that fill one bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    seeds: [u64; 2],
    half: u64,
    slots: u64,
}

brief_debug!(Layout, it => buckets: it.buckets(), slots: it.slots);

impl Layout {
    /// Returns the number of buckets.
    pub fn buckets(&self) -> u64 {
        2 * self.half
    }

    /// Returns the slots of a bucket.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Returns the layout as bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let words = [self.seeds[0], self.seeds[1], self.half, self.slots];
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(out, word)| *out = word.to_le_bytes());
        bytes
    }

    /// Returns the layout of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// [`FormatError`] if no table has such a layout.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Layout, FormatError> {
        let word = |i: usize| bytes.as_chunks().0.get(i).map_or(0, |word| u64::from_le_bytes(*word));
        let layout = Layout { seeds: [word(0), word(1)], half: word(2), slots: word(3) };
        let fits = (1..=MAX_HALF).contains(&layout.half) && (1..=MAX_SLOTS as u64).contains(&layout.slots);
        FormatError::check(fits, || format!("layout of a table: {} buckets of {} slots", word(2), word(3)))?;
        Ok(layout)
    }
}

/// Buckets of either table at most: more than 2^32 keys with one slot for each need, and the doubles of a table that fails to be filled.
const MAX_HALF: u64 = 1 << 48;

/// Two tables of buckets; the second one's numbers follow the first one's.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    seeds: [u64; 2],
    salts: [Salt; 2],
    /// Buckets of either table.
    pub(super) half: u64,
    pub(super) slots: usize,
}

/// Slots in a hundred that keys may fill. Chains of kicks end while less than 50, 89.7, 95.9 and 98.0 are full.
fn percent(slots: usize) -> u64 {
    match slots {
        0 | 1 => 45,
        2 => 80,
        3 => 88,
        _ => 92,
    }
}

impl Shape {
    /// Salts that cannot be foreseen: or else keys could be chosen that fill one bucket.
    pub(super) fn new(half: u64, slots: usize, random: &mut Stream) -> Shape {
        Shape::of(Layout { seeds: [random.next(), random.next()], half, slots: slots as u64 })
    }

    pub(super) fn of(Layout { seeds, half, slots }: Layout) -> Shape {
        Shape { seeds, salts: seeds.map(Salt::new), half, slots: slots as usize }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout { seeds: self.seeds, half: self.half, slots: self.slots as u64 }
    }

    /// Buckets of either table that so many keys need.
    pub(super) fn half_for(capacity: u64, slots: usize) -> u64 {
        (capacity * 100).div_ceil(percent(slots)).div_ceil(2 * slots as u64).max(1)
    }

    /// The bucket of a digest in the second table, or in the first.
    #[inline(always)]
    pub(super) fn bucket(&self, key: Digest, second: bool) -> u64 {
        reduce(key.salted(self.salts[usize::from(second)]), self.half) + if second { self.half } else { 0 }
    }

    pub(super) fn is_second(&self, bucket: u64) -> bool {
        bucket >= self.half
    }

    /// Buckets of both tables.
    pub(super) fn buckets(&self) -> u64 {
        2 * self.half
    }

    /// Keys that the table takes before it grows.
    pub(super) fn capacity(&self) -> u64 {
        (self.buckets() * self.slots as u64 * percent(self.slots) / 100).max(1)
    }
}
