//! a key's rows -> the AND of them, eight words at a time.
//!
//! Eight words are a cache line and a vector register, so the rows meet in registers: every row is loaded, rotated and added to
//! the rest, then the ones that are left are written down. Only a row that meets the end of its table is read word by word.

use super::{Anchor, CscBloom, MAX_HASHES};
use crate::arch::{Isa, Kernel, dispatch};
use crate::hash::Digest;
use crate::sets::coalesce::{BLOCK, SketchQuery, coalesce, inside, push_block};

const STEP: usize = 8;

impl CscBloom {
    /// Appends the numbers of the sets that may hold a key, ascending.
    pub(crate) fn find(&self, query: SketchQuery<'_>) {
        match self.counting {
            false => dispatch(query.scratch.level, Find::<false>(self, query)),
            true => dispatch(query.scratch.level, Find::<true>(self, query)),
        }
    }
}

struct Find<'a, const COUNTING: bool>(&'a CscBloom, SketchQuery<'a>);

impl<const COUNTING: bool> Kernel for Find<'_, COUNTING> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Find(shape, SketchQuery { payload, groups, key, scratch, out }) = self;
        let width = groups.width();
        let words = width.div_ceil(64) as usize;
        let mut tables = shape.tables(payload);
        if shape.repeats.repetitions == 1 {
            let Some(table) = tables.next() else { return };
            // Whole blocks first: what was just written in one piece is not read well in others.
            let mut block = [0; BLOCK];
            Rows::<COUNTING>::new(shape, table, 0, key).each(width, |at, eight| {
                let filled = at % BLOCK;
                if let Some(to) = block.get_mut(filled..filled + STEP) {
                    to.copy_from_slice(&eight);
                }
                if filled + STEP == BLOCK || at + STEP >= words {
                    push_block(&block[..filled + STEP], (64 * (at - filled)) as u32, out);
                }
            });
            return;
        }
        scratch.rows.clear();
        for (t, table) in (0..).zip(tables) {
            let mut ones = 0;
            Rows::<COUNTING>::new(shape, table, t, key).each(width, |_, eight| {
                ones |= any(&eight);
                scratch.rows.extend_from_slice(&eight);
            });
            if ones == 0 {
                return;
            }
            scratch.rows.truncate(words * (t as usize + 1));
        }
        coalesce(groups, &scratch.rows, out);
    }
}

#[inline(always)]
fn any(eight: &[u64; STEP]) -> u64 {
    eight.iter().fold(0, |any, word| any | word)
}

/// Clears the bits behind the end of a row in the step that starts at word `at`.
#[inline(always)]
fn cut(eight: &mut [u64; STEP], at: usize, width: u32) {
    for (i, word) in eight.iter_mut().enumerate() {
        *word &= inside(at + i, width);
    }
}

/// The rows of a key in one table.
struct Rows<'a, const COUNTING: bool> {
    table: &'a [u8],
    anchors: [(usize, u32); MAX_HASHES as usize],
    count: usize,
}

impl<'a, const COUNTING: bool> Rows<'a, COUNTING> {
    #[inline(always)]
    fn new(shape: &CscBloom, table: &'a [u8], t: u32, key: Digest) -> Self {
        let mut anchors = [(0, 0); MAX_HASHES as usize];
        for (to, Anchor { word, rotation }) in anchors.iter_mut().zip(shape.anchors(t, key)) {
            *to = (word as usize, rotation);
        }
        Rows { table, anchors, count: shape.hashes as usize }
    }

    /// Gives the AND of all rows, eight words at a time, and the word where each of them starts.
    #[inline(always)]
    fn each(&self, width: u32, mut visit: impl FnMut(usize, [u64; STEP])) {
        let words = width.div_ceil(64) as usize;
        let steps = words.next_multiple_of(STEP);
        let end = self.table.len() / bytes(COUNTING);
        // Two loops: what is read word by word is kept in memory, and so would everything be that might be.
        let whole = self.anchors().iter().all(|&(word, _)| word + steps <= end);
        for at in (0..words).step_by(STEP) {
            let mut eight = if whole { self.step::<false>(at) } else { self.wrapped(at) };
            if at + STEP >= words {
                cut(&mut eight, at, width);
            }
            visit(at, eight);
        }
    }

    #[inline(always)]
    fn anchors(&self) -> &[(usize, u32)] {
        self.anchors.get(..self.count).unwrap_or(&self.anchors)
    }

    /// The AND of eight words of all rows, from word `at` on; whether rows may meet the end of the table.
    #[inline(always)]
    fn step<const END: bool>(&self, at: usize) -> [u64; STEP] {
        let mut all = [u64::MAX; STEP];
        for &(word, rotation) in self.anchors() {
            let row = match load::<COUNTING>(self.table, word + at) {
                Some(row) => row,
                None if END => gather::<COUNTING>(self.table, word + at),
                None => return [0; STEP],
            };
            for (all, row) in all.iter_mut().zip(row) {
                *all &= row.rotate_right(rotation);
            }
        }
        all
    }

    #[cold]
    #[inline(never)]
    fn wrapped(&self, at: usize) -> [u64; STEP] {
        self.step::<true>(at)
    }
}

/// Bytes of a word.
const fn bytes(counting: bool) -> usize {
    if counting { 64 } else { 8 }
}

/// Eight words of a table from `first` on, if there are so many.
#[inline(always)]
fn load<const COUNTING: bool>(table: &[u8], first: usize) -> Option<[u64; STEP]> {
    let size = bytes(COUNTING);
    let part = table.get(size * first..size * (first + STEP))?;
    let mut eight = [0; STEP];
    for (word, part) in eight.iter_mut().zip(part.chunks_exact(size)) {
        *word = marks::<COUNTING>(part);
    }
    Some(eight)
}

/// Eight words of a table that goes on at its beginning.
fn gather<const COUNTING: bool>(table: &[u8], first: usize) -> [u64; STEP] {
    let size = bytes(COUNTING);
    let words = table.len() / size;
    let mut at = first % words.max(1);
    let mut eight = [0; STEP];
    for word in &mut eight {
        *word = table.get(size * at..size * (at + 1)).map_or(0, marks::<COUNTING>);
        at = if at + 1 == words { 0 } else { at + 1 };
    }
    eight
}

/// A word: its bits, or a bit for each of its counts that is not zero.
#[inline(always)]
fn marks<const COUNTING: bool>(part: &[u8]) -> u64 {
    let (eights, _) = part.as_chunks::<8>();
    if !COUNTING {
        return eights.first().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }
    let mut marks = 0;
    for (i, bytes) in eights.iter().enumerate() {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let counts = u64::from_le_bytes(*bytes);
        let tops = (((counts & LOW) + LOW) | counts) & !LOW;
        // Byte j's top bit meets the multiplier's bit that takes it to bit 56 + j.
        marks |= ((tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    marks
}
