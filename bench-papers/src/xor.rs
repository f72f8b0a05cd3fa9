//! keys and values -> a table of which three cells make a value: what the papers \[FPFS\] and \[Chained\] build on.
//!
//! ```text
//!    block 0              block 1              block 2
//!    |. . . a . . . . . | . . b . . . . . . | . . . . . c . . .|        value(key) = a ^ b ^ c
//! ```
//!
//! The second shape is that of \[Chained\], three cells anywhere in a window that slides along the table: more entries
//! fit.
//!
//! ```text
//!    |. . . . [. a . b . . c .] . . . . . . . . . . . . . . . .|        window: 1/(z + 1) of the cells, z up to 120
//! ```
//!
//! Neither is a competitor: cells are 32-bit words whatever the width, and a size is counted as cells times width. They
//! are here to reproduce the numbers of the papers, which a better structure cannot. The bits that \[FPFS\] prints come
//! from two ways to round: plain tables are cut down to a multiple of three cells ([`Room::Cut`]), integrated ones filled
//! up ([`Room::Filled`]).

use tamis_bench::stream::scramble;

pub(crate) mod free_set;
pub(crate) mod shared;

/// How cells are counted for a number of entries.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    /// 1.23 n + 32 and down to a multiple of three: 7,578 cells for the 6,136 words of the spell checker.
    Cut,
    /// 1.23 n rounded up, + 32, and up to a multiple of three: 7,581.
    Filled,
}

impl Room {
    fn block(self, entries: usize) -> usize {
        match self {
            Room::Cut => (entries * 123 / 100 + 32) / 3,
            Room::Filled => ((entries * 123).div_ceil(100) + 32).div_ceil(3),
        }
    }
}

/// Seeds tried before a construction is given up; one in a few fails near 1.23 cells per entry.
const ATTEMPTS: u64 = 200;

/// Where a key's three cells can be.
#[derive(Clone, Copy)]
enum Shape {
    /// One in each of three blocks of so many cells.
    Blocks(usize),
    /// Anywhere in a window of so many cells, which starts at one of so many places.
    Window(usize, usize),
}

pub(crate) struct Table {
    seed: u64,
    shape: Shape,
    width: u32,
    cells: Vec<u32>,
}

/// One entry with the cell that is its own to choose, once those taken off after it have chosen theirs.
struct Entry {
    hash: u64,
    cell: usize,
    /// Whether it stores its fingerprint or the complement.
    yes: bool,
}

impl Table {
    fn empty(seed: u64, block: usize, width: u32) -> Table {
        Table { seed: scramble(seed), shape: Shape::Blocks(block), width, cells: vec![0; 3 * block] }
    }

    /// A table of \[Chained\], section 3: windows of 1/(z + 1) of its cells.
    ///
    /// The paper's z = 120 is for large tables. In a window of less than some ten thousand cells the load varies too
    /// much: with a million entries z = 120 needs 1.17 cells per entry and z = 80 1.135; with a hundred thousand 1.225
    /// and, at z = 50, 1.18. So z grows with the table, to 120 at three million cells.
    fn coupled(seed: u64, cells: usize, width: u32) -> Table {
        let cells = cells.max(3);
        let z = (15.0 * (cells as f64 / 1e4).powf(0.36)).min(120.0) as usize;
        let window = (cells / (z + 1)).max(cells.min(300));
        let starts = cells + 1 - window;
        Table { seed: scramble(seed), shape: Shape::Window(window, starts), width, cells: vec![0; cells] }
    }

    /// A Bloomier filter of \[Chained\]: `per_entry` cells for each entry, yes for `members` and no for `others`.
    ///
    /// Cells are added a hundredth at a time while no seed succeeds, which happens to tables of less than some million.
    pub(crate) fn bloomier(
        members: &[u64],
        others: &[u64],
        width: u32,
        per_entry: f64,
        seed: u64,
    ) -> Result<Table, String> {
        let entries = members.len() + others.len();
        for attempt in 0..ATTEMPTS {
            let more = 1.0 + 0.01 * (attempt / 5) as f64;
            let cells = (entries as f64 * per_entry * more).ceil() as usize;
            let mut table = Table::coupled(seed ^ (attempt << 32), cells, width);
            if let Some(order) = table.peel(members, others) {
                table.assign(&order, low(width));
                return Ok(table);
            }
        }
        Err(format!("no seed of {ATTEMPTS} solves {entries} entries"))
    }

    /// Whether so many random entries fit into so many cells of the shape of \[Chained\] under this seed.
    pub(crate) fn fits(entries: usize, cells: usize, seed: u64) -> bool {
        let keys: Vec<u64> = (0..entries as u64).collect();
        Table::coupled(seed, cells, 1).peel(&keys, &[]).is_some()
    }

    /// A filter: cells of `width` bits on `keys`.
    pub(crate) fn filter(keys: &[u64], width: u32, seed: u64) -> Result<Table, String> {
        Table::signed(keys, &[], width, seed)
    }

    /// A filter that says yes to `members` and no to `others`, which store the complement of their fingerprint.
    pub(crate) fn signed(members: &[u64], others: &[u64], width: u32, seed: u64) -> Result<Table, String> {
        let block = Room::Cut.block(members.len() + others.len());
        for attempt in 0..ATTEMPTS {
            let mut table = Table::empty(seed ^ (attempt << 32), block, width);
            if let Some(order) = table.peel(members, others) {
                table.assign(&order, low(width));
                return Ok(table);
            }
        }
        Err(format!("no seed of {ATTEMPTS} solves {} entries", members.len() + others.len()))
    }

    pub(crate) fn bits(&self) -> usize {
        self.cells.len() * self.width as usize
    }

    /// Whether the table's value is the fingerprint of this key.
    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        let hash = self.hash(key);
        (self.value(hash) ^ fingerprint(hash)) & low(self.width) == 0
    }

    #[inline]
    fn hash(&self, key: u64) -> u64 {
        scramble(key ^ self.seed)
    }

    #[inline]
    fn places(&self, hash: u64) -> [usize; 3] {
        match self.shape {
            Shape::Blocks(block) => [0, 1, 2].map(|turn| {
                let word = hash.rotate_left(21 * turn) as u32;
                ((u64::from(word) * block as u64) >> 32) as usize + turn as usize * block
            }),
            Shape::Window(window, starts) => {
                let start = (((hash >> 32) * starts as u64) >> 32) as usize;
                let words = scramble(hash ^ 0x5851_f42d_4c95_7f2d);
                let below = |shift: u32, n: usize| ((((words >> shift) & 0x1f_ffff) * n as u64) >> 21) as usize;
                // Three different cells: a key that meets itself has one cell left, and two such in one cell are stuck.
                let (a, mut b, mut c) = (below(0, window), below(21, window - 1), below(42, window - 2));
                b += usize::from(b >= a);
                c += usize::from(c >= a.min(b));
                c += usize::from(c >= a.max(b));
                [start + a, start + b, start + c]
            }
        }
    }

    #[inline]
    fn value(&self, hash: u64) -> u32 {
        let [a, b, c] = self.places(hash);
        self.cells[a] ^ self.cells[b] ^ self.cells[c]
    }

    /// Takes entries off one by one that are alone in a cell; none if some are left that never are.
    fn peel(&self, members: &[u64], others: &[u64]) -> Option<Vec<Entry>> {
        // Of every cell: how many entries, and the exclusive or of their hashes and of their signs.
        let mut sums = vec![(0u32, 0u64, false); self.cells.len()];
        let entries = members.iter().map(|&key| (key, true)).chain(others.iter().map(|&key| (key, false)));
        for (key, yes) in entries {
            let hash = self.hash(key);
            for place in self.places(hash) {
                let sum = &mut sums[place];
                *sum = (sum.0 + 1, sum.1 ^ hash, sum.2 ^ yes);
            }
        }
        let mut alone: Vec<usize> = (0..sums.len()).filter(|&cell| sums[cell].0 == 1).collect();
        let mut order = Vec::with_capacity(members.len() + others.len());
        while let Some(cell) = alone.pop() {
            let (1, hash, yes) = sums[cell] else { continue };
            order.push(Entry { hash, cell, yes });
            for place in self.places(hash) {
                let sum = &mut sums[place];
                *sum = (sum.0 - 1, sum.1 ^ hash, sum.2 ^ yes);
                if sum.0 == 1 {
                    alone.push(place);
                }
            }
        }
        (order.len() == members.len() + others.len()).then_some(order)
    }

    /// Gives every entry's cell the bits of `mask` that make its value right.
    fn assign(&mut self, order: &[Entry], mask: u32) {
        for entry in order.iter().rev() {
            let wanted = fingerprint(entry.hash) ^ if entry.yes { 0 } else { u32::MAX };
            self.cells[entry.cell] &= !mask;
            self.cells[entry.cell] |= (self.value(entry.hash) ^ wanted) & mask;
        }
    }
}

/// The low `bits` bits, 32 at most.
#[inline]
fn low(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}

/// Bits of a key that are independent of its places.
#[inline]
fn prints(hash: u64) -> u64 {
    scramble(hash.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[inline]
fn fingerprint(hash: u64) -> u32 {
    prints(hash) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tamis_bench::stream::Stream;

    /// The plain filter of the spell checker, and the cells per position of the other two cases of the paper.
    #[test]
    fn sizes_are_those_of_the_paper() {
        assert_eq!(8 * 3 * Room::Cut.block(6136), 60_624);
        assert_eq!([6136 + 257, 6136].map(|n| 3 * Room::Filled.block(n)), [63_168 / 8, 68_229 / 9]);
        assert_eq!([2500 + 167, 2500].map(|n| 3 * Room::Filled.block(n)), [76_245 / 23, 65_268 / 21]);
        assert_eq!([2500 + 306, 2500].map(|n| 3 * Room::Filled.block(n)), [59_262 / 17, 46_620 / 15]);
    }

    #[test]
    fn listed_keys_are_right_and_strangers_follow_the_width() {
        for n in [0, 1, 2, 3, 10, 100, 5000] {
            for width in [1, 4, 13] {
                let mut stream = Stream::new(n as u64);
                let (members, others) = (stream.take(n), stream.take(n / 2));
                let table = Table::signed(&members, &others, width, 7).unwrap();
                assert!(members.iter().all(|&key| table.contains(key)));
                assert!(!others.iter().any(|&key| table.contains(key)));
                assert_eq!(table.bits(), 3 * Room::Cut.block(n + n / 2) * width as usize);
                let hits = stream.take(100_000).iter().filter(|&&key| table.contains(key)).count() as f64;
                let mean = 1e5 / f64::from(1u32 << width);
                assert!((hits - mean).abs() < 5.0 * mean.sqrt() + 1.0, "{n} keys, {width} bits: {hits}, {mean}");
            }
        }
    }

    /// 1.20 cells are enough for a hundred thousand entries, 1.10 are not (\[Chained\], section 3: 1.12 in the limit).
    #[test]
    fn windows_hold_more() {
        assert!((0..5).all(|seed| Table::fits(100_000, 120_000, seed)));
        assert!(!(0..5).any(|seed| Table::fits(100_000, 110_000, seed)));
        for n in [0, 1, 2, 3, 10, 200, 20_000] {
            let mut stream = Stream::new(5);
            let (members, others) = (stream.take(n), stream.take(2 * n));
            let table = Table::bloomier(&members, &others, 2, 1.13, 3).unwrap();
            assert!(members.iter().all(|&key| table.contains(key)));
            assert!(!others.iter().any(|&key| table.contains(key)));
        }
    }

    #[test]
    fn the_same_key_on_both_sides_is_an_error() {
        assert!(Table::signed(&[1, 2, 3], &[3], 4, 0).is_err());
    }
}
