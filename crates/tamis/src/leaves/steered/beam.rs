//! pivots of the keys, bands of the negatives -> the bits of one strip that refuse as many negatives as a beam finds.
//!
//! A state is the last 64 bits and a score: the (weight of the) negatives that passed so far, less those of the best state. All is
//! integer arithmetic, and no step depends on how many states a processor handles at once: bytes are the same everywhere.
//!
//! **A ring.** Row r is bit r % 64 of a window, so that nothing moves when a row is added; it takes the place of row r + 64, which no band
//! that is still to come can reach. Windows lie in planes of bytes, 64 states to a group (`arch/planes.rs`).
//!
//! **Eight equations at a time.** Between two free rows every pivot and every negative is a linear function of the window at the last
//! free row. A pivot that has no bit yet is substituted by its equation, once for all states. So pivots and
//! negatives collect in a `Batch`, and eight of them are answered in one pass over the planes: the answers of pivots become their rows,
//! those of negatives are counted.
//!
//! **A free row** gives every state two children. A negative that starts there begins with a 1, so that exactly one of the two
//! refuses it. The best `K` of all children live on (`states.rs`).
//!
//! What became of a state's earlier bits is kept every 64 rows (`history.rs`).
//!
//! Where no negative is left to price, all children are worth the same, and which of them live on must not favour a bit: bands that
//! find nothing but zeros match whatever key they belong to. So a hash of the row decides which child comes first, and free rows
//! that nothing steers are random. `surplus` counts the bands that find zeros all the same, where keys fix every row.

use super::SURPLUS;
use super::history::History;
use super::states::States;
use crate::arch::planes::LANES;
use crate::arch::{Isa, Kernel, Level, dispatch};
use crate::hash::scramble;

/// States of the search at every effort: a multiple of 64, the same on every processor, because bytes depend on it.
pub(crate) const FAST: u16 = 64;
pub(crate) const BALANCED: u16 = 512;
pub(crate) const SMALLEST: u16 = 2048;

/// Free rows between two looks for states with equal windows: their future is the same, so that only the best of them is worth
/// its place. Every 1, 2, 8 or 32 gives the same share of survivors.
const LOOK: u32 = 32;
/// What may pass, by count or weight, between two adjustments of the scores, and at one row: scores have 16 bits.
const BETWEEN: u32 = 1 << 14;
const AT_ROW: u32 = 1 << 15;

/// One strip to search.
pub(in crate::leaves) struct Strip<'a> {
    /// For every row the band of the key that fixes it, its first coefficient included; 0 for a free row.
    pub(in crate::leaves) pivots: &'a [u64],
    /// Where the negatives that start at a row are found in `bands`: one entry more than rows.
    pub(in crate::leaves) starts: &'a [u32],
    pub(in crate::leaves) bands: &'a [u64],
    /// As many as bands, or none if all weigh the same.
    pub(in crate::leaves) weights: &'a [u32],
    /// What decides between children that are worth the same.
    pub(in crate::leaves) filler: u64,
}

impl Strip<'_> {
    /// The negatives that start at a row, and what they weigh in all. Where they weigh more than a score can hold, the last of them
    /// do not count: no set comes near that unless somebody made it.
    #[inline(always)]
    fn at(&self, row: usize) -> (&[u64], &[u32], u32) {
        let range = match self.starts.get(row..row + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        };
        let bands = self.bands.get(range.clone()).unwrap_or(&[]);
        let weights = self.weights.get(range).unwrap_or(&[]);
        if weights.is_empty() {
            let count = bands.len().min(AT_ROW as usize);
            return (&bands[..count], weights, count as u32);
        }
        let (mut count, mut sum) = (0, 0);
        for weight in weights {
            if weight.saturating_add(sum) > AT_ROW {
                break;
            }
            (count, sum) = (count + 1, sum + weight);
        }
        (bands.get(..count).unwrap_or(bands), &weights[..count], sum)
    }
}

/// The rows of a strip, 64 to a word, found by a search of so many states.
pub(in crate::leaves) fn search(level: Level, beam: u16, strip: Strip<'_>) -> Vec<u64> {
    dispatch(level, Beam { groups: usize::from(beam).div_ceil(LANES).max(1), strip })
}

/// The search, with 64 states to a group.
struct Beam<'a> {
    groups: usize,
    strip: Strip<'a>,
}

impl Kernel for Beam<'_> {
    /// The rows, 64 to a word.
    type Output = Vec<u64>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Vec<u64> {
        let Beam { groups, strip } = self;
        let mut states = States::new(groups);
        let mut history = History::new(groups, strip.pivots.len().div_ceil(64));
        let mut batch = Batch::default();
        let (mut free, mut passed) = (0u32, 0);
        for (row, &pivot) in strip.pivots.iter().enumerate().rev() {
            let (bands, weights, all) = strip.at(row);
            if passed + all > BETWEEN {
                states.take::<I>(&mut batch);
                states.adjust();
                passed = 0;
            }
            passed += all;
            let turn = (row % 64) as u32;
            if pivot != 0 {
                states.make_room::<I>(&mut batch);
                batch.pivot(row, (pivot & !1).rotate_left(turn));
            }
            // At a free row they are priced with bit 0.
            let own = u64::from(pivot == 0);
            for (i, band) in bands.iter().enumerate() {
                states.make_room::<I>(&mut batch);
                let weight = weights.get(i).copied().unwrap_or(1);
                batch.other((band & !own).rotate_left(turn), weight as u16, pivot == 0);
            }
            if pivot == 0 {
                states.take::<I>(&mut batch);
                free += 1;
                if free.is_multiple_of(LOOK) {
                    states.drop_copies(!(1 << turn));
                }
                states.branch::<I>(row, scramble(strip.filler ^ row as u64) & 1 == 1, all as u16);
                passed = 0;
            }
            if row % 64 == 0 {
                states.take::<I>(&mut batch);
                history.write(&mut states);
            }
        }
        history.finish(states.best())
    }
}

/// Up to eight equations in terms of the windows as they are.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) equations: [u64; 8],
    /// What the negatives among them weigh.
    pub(super) weights: [u16; 8],
    pub(super) len: usize,
    /// Which of them are negatives at rows that are fixed, and at the free row.
    pub(super) fixed: u8,
    pub(super) free: u8,
    pub(super) pivots: [Pivot; 8],
    pub(super) rows: usize,
}

/// A row that has no bit yet.
#[derive(Clone, Copy, Default)]
pub(super) struct Pivot {
    pub(super) row: usize,
    /// Which equation of the batch is its own.
    pub(super) number: u32,
    /// Its bit, and what takes its place: the bit and the equation.
    bit: u64,
    instead: u64,
}

impl Batch {
    /// Substitutes rows that have no bit yet. In their place the ring holds the row 64 further on, so that the equation itself, not what
    /// becomes of it, says which to substitute.
    #[inline(always)]
    fn push(&mut self, equation: u64) -> (usize, u64) {
        let mut sum = equation;
        for pivot in &self.pivots[..self.rows & 7] {
            sum ^= u64::from(equation & pivot.bit != 0).wrapping_neg() & pivot.instead;
        }
        let number = self.len & 7;
        self.equations[number] = sum;
        self.len += 1;
        (number, sum)
    }

    #[inline(always)]
    fn pivot(&mut self, row: usize, equation: u64) {
        let (number, sum) = self.push(equation);
        let bit = 1 << (row % 64);
        self.pivots[self.rows & 7] = Pivot { row, number: number as u32, bit, instead: sum ^ bit };
        self.rows += 1;
    }

    #[inline(always)]
    fn other(&mut self, equation: u64, weight: u16, free: bool) {
        let (number, _) = self.push(equation);
        self.weights[number] = weight;
        *(if free { &mut self.free } else { &mut self.fixed }) |= 1 << number;
    }

    /// What is left of earlier equations is answered too, and counts for nothing.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.len, self.rows, self.fixed, self.free) = (0, 0, 0, 0);
    }
}

/// The 64 bits from a row on.
#[inline(always)]
pub(in crate::leaves) fn window(words: &[u64], row: usize) -> u64 {
    let word = |i: usize| words.get(i).copied().unwrap_or(0);
    let (low, high) = (word(row / 64), word(row / 64 + 1));
    low >> (row % 64) | high << 1 << (63 - row % 64)
}

/// By how much more than one in 2^columns of the random bands that start in the first `starts` rows match every column: summed
/// over the rows, in 2^-columns.
///
/// One in two matches a column, because its coefficients are random; but where all rows of a band are 0 after its first, that one
/// decides for every band.
pub(in crate::leaves) fn surplus(columns: &[Vec<u64>], starts: usize) -> i64 {
    let mut sum = 0;
    for octet in (0..starts).step_by(8) {
        // A one beyond the octet is in the band of each of its rows.
        if columns.iter().all(|words| window(words, octet) >> 8 != 0) {
            continue;
        }
        for row in octet..starts.min(octet + 8) {
            let twice = columns.iter().map(|words| match window(words, octet) >> (row % 8) {
                0 => 2,
                1 => 0,
                _ => 1,
            });
            sum += twice.product::<i64>() - 1;
        }
    }
    sum
}

/// A surplus per row and column as files hold it, in 2^-24.
pub(in crate::leaves) fn scaled(surplus: i64, columns: u32, starts: u64) -> u32 {
    ((surplus.max(0) as u128 * SURPLUS as u128 / u128::from(starts.max(1))) >> columns) as u32
}
