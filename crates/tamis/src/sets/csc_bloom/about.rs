//! the shape of a sketch -> what the rest of an index wants to know.

use super::CscBloom;
use crate::sets::groups::Groups;

impl CscBloom {
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

    /// Pairs that it can hold: a table of ones holds any number, and is all that is needed where every key is in every set.
    pub(crate) fn room(&self) -> u64 {
        u64::MAX
    }

    /// Whether pairs are counted, and can be taken out.
    pub(crate) fn counting(&self) -> bool {
        self.counting
    }

    /// The share of places in a row of one table at which a key is seen that is not there, as full as the tables are.
    pub(crate) fn rate(&self, payload: &[u8]) -> f64 {
        std::iter::repeat_n(self.fill(payload), self.hashes as usize).product()
    }

    /// The parameters in words.
    pub(crate) fn details(&self) -> String {
        let CscBloom { words, hashes, repetitions, partitions, counting } = *self;
        let cells = if counting { "counters" } else { "bits" };
        let more = match repetitions {
            1 => String::new(),
            _ => format!(", {repetitions} repetitions of {partitions} partitions"),
        };
        format!("{} {cells}, {hashes} hashes{more}", 64 * words)
    }
}
