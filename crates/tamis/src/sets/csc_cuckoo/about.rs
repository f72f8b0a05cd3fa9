//! the shape of a sketch -> what the rest of an index wants to know.

use super::CscCuckoo;
use crate::math::csc::fingerprints;
use crate::math::portable::{exp2, log2};
use crate::sets::groups::Groups;

impl CscCuckoo {
    /// The partitions of so many sets, tabled if that takes no more than `most` bytes.
    pub(crate) fn groups(&self, sets: u32, most: u64) -> Groups {
        match Groups::cost(self.repetitions, self.partitions, sets) <= most {
            true => Groups::new(self.repetitions, self.partitions, sets),
            false => Groups::hashed(self.repetitions, self.partitions, sets),
        }
    }

    /// How many repetitions there are, of how many partitions.
    pub(crate) fn repeated(&self) -> (u32, u32) {
        (self.repetitions, self.partitions)
    }

    /// Whether pairs are counted.
    pub(crate) fn counting(&self) -> bool {
        self.counting
    }

    /// Pairs that it can hold, each as often as it can be counted.
    pub(crate) fn room(&self) -> u64 {
        self.slots() * if self.counting { 255 } else { 1 }
    }

    /// The share of places in a row of one table at which a key is seen that is not there, as full as the tables are: it is compared with the
    /// fingerprints of two buckets ([CSC] equation 2, corrected).
    pub(crate) fn rate(&self, payload: &[u8]) -> f64 {
        1.0 - exp2(8.0 * self.fill(payload) * log2(1.0 - 1.0 / fingerprints(self.bits)))
    }

    /// The parameters in words.
    pub(crate) fn details(&self) -> String {
        let CscCuckoo { buckets, bits, repetitions, partitions, counting, .. } = *self;
        let counts = if counting { " with counts" } else { "" };
        let more = match repetitions {
            1 => String::new(),
            _ => format!(", {repetitions} repetitions of {partitions} partitions"),
        };
        format!("{buckets} buckets of 4 fingerprints of {bits} bits{counts}{more}")
    }
}
