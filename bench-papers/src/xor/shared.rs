//! keys and negatives -> a chained filter both stages of which read the same three cells: \[Chained\], the remark of
//! theorem 5.1.
//!
//! ```text
//!    a cell:  | ceil(log2 lambda) bits, of the keys | 1 bit | 1 bit |     an entry of the second stage is in one of the two
//! ```
//!
//! So many bits let less than one negative per key pass. The second stage has then less than two entries per key, which
//! a hash shares among two bits, each as full as the first stage is. All of them are peeled in the same table.

use super::{ATTEMPTS, Table, low, prints};

pub(crate) struct Shared {
    table: Table,
    columns: u32,
}

impl Shared {
    /// Yes for `members`, no for `others`; `per_entry` cells for each member.
    pub(crate) fn build(members: &[u64], others: &[u64], per_entry: f64, seed: u64) -> Result<Shared, String> {
        let lambda = others.len() as f64 / members.len().max(1) as f64;
        // A hair more than a power of two is no reason for another bit: seeds and cells have more to spare than that.
        let columns = (0.99 * lambda).max(1.0).log2().ceil().min(30.0) as u32;
        for attempt in 0..ATTEMPTS {
            let more = 1.0 + 0.01 * (attempt / 5) as f64;
            let cells = (members.len() as f64 * per_entry * more).ceil() as usize;
            let table = Table::coupled(seed ^ (attempt << 32), cells, columns + 2);
            let mut shared = Shared { table, columns };
            if shared.solve(members, others) {
                return Ok(shared);
            }
        }
        Err(format!("no seed of {ATTEMPTS} solves {} members and {} others", members.len(), others.len()))
    }

    fn solve(&mut self, members: &[u64], others: &[u64]) -> bool {
        let Some(order) = self.table.peel(members, &[]) else { return false };
        self.table.assign(&order, low(self.columns));
        let passed: Vec<u64> = others.iter().filter(|&&key| self.passes(key)).copied().collect();
        (0..2).all(|half| {
            let of_half = |keys: &[u64]| -> Vec<u64> {
                keys.iter().filter(|&&key| half_of(self.table.hash(key)) == half).copied().collect()
            };
            let Some(order) = self.table.peel(&of_half(members), &of_half(&passed)) else { return false };
            self.table.assign(&order, 1 << (self.columns + half));
            true
        })
    }

    #[inline]
    fn passes(&self, key: u64) -> bool {
        let hash = self.table.hash(key);
        (self.table.value(hash) ^ super::fingerprint(hash)) & low(self.columns) == 0
    }

    /// Whether this is one of the members; both stages from the same three cells.
    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        let hash = self.table.hash(key);
        let mask = low(self.columns) | 1 << (self.columns + half_of(hash));
        (self.table.value(hash) ^ super::fingerprint(hash)) & mask == 0
    }

    pub(crate) fn bits(&self) -> usize {
        self.table.bits()
    }
}

/// Which of the two bits an entry of the second stage is in.
#[inline]
fn half_of(hash: u64) -> u32 {
    (prints(hash) >> 63) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tamis_bench::stream::Stream;

    #[test]
    fn both_sides_are_right_and_the_size_is_that_of_the_remark() {
        for (n, lambda) in [(0, 0), (1, 3), (10, 0), (300, 1), (20_000, 2), (20_000, 9)] {
            let mut stream = Stream::new(n as u64);
            let (members, others) = (stream.take(n), stream.take(n * lambda + 7));
            let filter = Shared::build(&members, &others, 1.13, 3).unwrap();
            assert!(members.iter().all(|&key| filter.contains(key)));
            assert!(!others.iter().any(|&key| filter.contains(key)));
            if n == 20_000 {
                let bits = filter.bits() as f64 / n as f64;
                let perfect = (lambda as f64).log2().ceil() + 2.0;
                assert!((1.13 * perfect..1.35 * perfect).contains(&bits), "{lambda}: {bits}");
            }
        }
    }
}
