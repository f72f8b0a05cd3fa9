//! (key, set) pairs -> one Bloom filter for all sets, queried for all of them at once ([CSC] section 4).
//!
//! A key's hashes do not choose bits but anchors: the places where rows start, one bit for each set. Bit i of all k rows says that the key
//! is in set i, so a query is an AND of k rows, and every pair of the same number of hashes fills the table alike, however unequal
//! the sets are.
//!
//! ```text
//!   anchor = (word w, rotation s)        set i  ->  word (w + i / 64) mod words, bit (i + s) mod 64
//!
//!   table    . . | s+0 s+1 .. 63 0 .. s-1 | the next 64 sets, rotated alike | . .
//!                  ^ word w
//! ```
//!
//! [CSC] shifts a row by any number of bits. Rotating inside words does the same with no row that starts between two words: nothing
//! is joined, and a row is read with whole loads. Sets that come later make rows longer; a row that meets the end of the table
//! goes on at its beginning.
//!
//! With several repetitions there are as many tables, and a row has a bit for each partition of the sets ([`Groups`]).
//! A counting table has a byte in the place of each bit, which saturates at 255.

use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt};
use crate::sets::groups::{Groups, MAX_REPETITIONS, Repeats};

#[cfg(feature = "build")]
mod change;
mod kernel;

/// The most rows of a key in a table.
const MAX_HASHES: u32 = 32;
/// The most words of a table; the largest payload has 2^49 bytes.
const MAX_WORDS: u64 = 1 << 40;
/// Cache lines that are prefetched ahead of a query.
const PREFETCH_LINES: usize = 32;

/// Two for each repetition.
const SALTS: [[Salt; 2]; MAX_REPETITIONS as usize] = {
    let mut salts = [[Salt::new(0x0063_7363_626c_6f6f); 2]; MAX_REPETITIONS as usize];
    let mut t = 0;
    while t < salts.len() {
        let salt = salts[t][0].child(t as u64);
        salts[t] = [salt.child(0), salt.child(1)];
        t += 1;
    }
    salts
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CscBloom {
    /// Words of 64 cells in each table.
    words: u64,
    /// Rows of a key in each table.
    hashes: u32,
    pub(crate) repeats: Repeats,
    /// Bytes instead of bits: pairs are counted, and can be taken out.
    pub(crate) counting: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Anchor {
    word: u64,
    rotation: u32,
}

impl Anchor {
    /// The cell of a place in the row.
    #[inline(always)]
    fn cell(self, offset: u32, words: u64) -> u64 {
        let word = self.word + u64::from(offset / 64);
        let word = if word < words { word } else { word % words };
        64 * word + u64::from(offset.wrapping_add(self.rotation) % 64)
    }
}

/// The anchors of a key in one table.
///
/// The i-th comes from a + b + M b + .. + M^(i-1) b, as in a classic Bloom filter of tamis: two of them differ by a random amount, and
/// no three are in arithmetic progression. Word and rotation are the quotient and the remainder of one random position.
#[derive(Debug, Clone, Copy)]
struct Anchors {
    a: u64,
    b: u64,
    cells: u64,
    left: u32,
}

impl Iterator for Anchors {
    type Item = Anchor;
    #[inline(always)]
    fn next(&mut self) -> Option<Anchor> {
        self.left = self.left.checked_sub(1)?;
        let cell = ((u128::from(self.a) * u128::from(self.cells)) >> 64) as u64;
        self.a = self.a.wrapping_add(self.b);
        // A good multiplier of a congruential generator modulo 2^64 (Steele, Vigna 2022).
        self.b = self.b.wrapping_mul(0xd134_2543_de82_ef95);
        Some(Anchor { word: cell / 64, rotation: (cell % 64) as u32 })
    }
}

impl CscBloom {
    #[inline(always)]
    fn anchors(&self, t: u32, key: Digest) -> Anchors {
        let [a, b] = SALTS[t as usize % SALTS.len()];
        Anchors { a: key.salted(a), b: key.salted(b), cells: 64 * self.words, left: self.hashes }
    }

    fn table_len(&self) -> u64 {
        self.words * if self.counting { 64 } else { 8 }
    }

    /// The tables of a payload; none if it is too short.
    fn tables<'a>(&self, payload: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let len = usize::try_from(self.table_len()).unwrap_or(usize::MAX);
        let whole = usize::try_from(self.payload_len()).ok().and_then(|len| payload.get(..len));
        whole.unwrap_or(&[]).chunks_exact(len)
    }

    pub(crate) fn payload_len(&self) -> u64 {
        u64::from(self.repeats.repetitions) * self.table_len()
    }

    /// Directory: words, hashes, repeats, counting (varints). Payload: the tables, words little-endian.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let CscBloom { words, hashes, repeats, counting } = *self;
        put_varint(out, words);
        put_varint(out, hashes.into());
        repeats.encode(out);
        put_varint(out, counting.into());
    }

    /// Reads what [`CscBloom::encode`] wrote, every number checked.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<CscBloom, FormatError> {
        let words = from.within("words of a table", 1..=MAX_WORDS)?;
        let hashes = from.within("number of hash functions", 1..=MAX_HASHES.into())? as u32;
        let repeats = Repeats::decode(from)?;
        let counting = from.within("counting", 0..=1)? == 1;
        Ok(CscBloom { words, hashes, repeats, counting })
    }

    /// Prefetches the first cache lines of a key's rows.
    #[inline]
    pub(crate) fn prefetch(&self, payload: &[u8], key: Digest, sets: u32) {
        let width = self.repeats.width(sets);
        let word = if self.counting { 64 } else { 8 };
        let row = u64::from(width.div_ceil(64)) * word;
        let rows = self.repeats.repetitions * self.hashes;
        // The same number of lines of every row, and one line of as many rows as there may be.
        let lines = (PREFETCH_LINES as u64 / u64::from(rows)).clamp(1, row.div_ceil(64) + 1);
        let mut budget = PREFETCH_LINES;
        for t in 0..self.repeats.repetitions {
            for anchor in self.anchors(t, key).take(budget) {
                let start = u64::from(t) * self.table_len() + anchor.word * word;
                for line in 0..lines {
                    crate::arch::prefetch(payload, (start + 64 * line) as usize);
                }
                budget -= 1;
            }
        }
    }

    /// How often a pair was added, or more; without counts 1 or 0.
    pub(crate) fn frequency(&self, payload: &[u8], groups: &Groups, key: Digest, set: u32) -> u8 {
        let mut least = u8::MAX;
        let mut tables = 0;
        for (t, table) in (0..).zip(self.tables(payload)) {
            let offset = groups.offset(t, set);
            for anchor in self.anchors(t, key) {
                let cell = anchor.cell(offset, self.words) as usize;
                least = least.min(if self.counting { table[cell] } else { table[cell / 8] >> (cell % 8) & 1 });
            }
            tables += 1;
        }
        if tables == self.repeats.repetitions { least } else { 0 }
    }

    /// The share of cells that are in use, of the fullest table.
    pub(crate) fn fill(&self, payload: &[u8]) -> f64 {
        let used = |table: &[u8]| match self.counting {
            true => table.iter().filter(|&&count| count != 0).count() as u64,
            false => table.iter().map(|byte| u64::from(byte.count_ones())).sum(),
        };
        self.tables(payload).map(used).max().unwrap_or(0) as f64 / (64 * self.words) as f64
    }

    /// Pairs that it can hold: a table of ones holds any number, and is all that is needed where every key is in every set.
    pub(crate) fn capacity(&self) -> u64 {
        u64::MAX
    }

    /// The share of places in a row of one table at which a key is seen that is not there, as full as the tables are.
    pub(crate) fn fpr(&self, payload: &[u8]) -> f64 {
        std::iter::repeat_n(self.fill(payload), self.hashes as usize).product()
    }

    pub(crate) fn details(&self) -> String {
        let cells = if self.counting { "counters" } else { "bits" };
        format!("{} {cells}, {} hashes{}", 64 * self.words, self.hashes, self.repeats)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
