//! a digest -> its two buckets: how many there are, and how many keys fit.

use crate::dynamic::othello::forest::Stream;
use crate::hash::{Digest, Salt, reduce};

/// The most slots of a bucket.
pub(super) const MAX_SLOTS: usize = 64;

/// A slot of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) bucket: u64,
    pub(super) slot: usize,
}

/// Two tables of buckets; the second one's numbers follow the first one's.
#[derive(Clone, Copy)]
pub(super) struct Shape {
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
        Shape { salts: [Salt::new(random.next()), Salt::new(random.next())], half, slots }
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
