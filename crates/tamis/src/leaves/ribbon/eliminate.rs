//! keys of one strip -> solved rows, thresholds, bumped keys: Gaussian elimination inside the band.
//!
//! A strip is eliminated bucket by bucket, left to right, and inside a bucket in three classes: first the keys that are bumped
//! last. When a key finds no row, the rows its class took in this bucket are given back (rows are only ever added, so that
//! is all there is to undo), and the class and those after it are bumped.
//!
//! One elimination step is a load that depends on the step before, about five nanoseconds of waiting. [`Lockstep`] therefore
//! advances up to three strips in turn: three chains of loads in flight instead of one.
//!
//! Row arrays have a constant power-of-two length and indices are masked with it, so the compiler needs no bounds checks.

use super::{Level, band, fingerprint};
use crate::arch::{Isa, Kernel};

/// Rows of one lane: the largest strip and its pad.
pub(super) const ROWS: usize = 1 << 17;
const MASK: usize = ROWS - 1;

/// A right-hand side: bytes while the width allows, because rows should stay in the second-level cache.
pub(super) trait Rhs: Copy + Default + PartialEq + Send + std::ops::BitXor<Output = Self> + 'static {
    const BYTE: bool;
    fn new(value: u32) -> Self;
    fn bits(self) -> u32;
}
impl Rhs for u8 {
    const BYTE: bool = true;
    #[inline(always)]
    fn new(value: u32) -> u8 {
        value as u8
    }
    #[inline(always)]
    fn bits(self) -> u32 {
        self as u32
    }
}
impl Rhs for u32 {
    const BYTE: bool = false;
    #[inline(always)]
    fn new(value: u32) -> u32 {
        value
    }
    #[inline(always)]
    fn bits(self) -> u32 {
        self
    }
}

/// A key on its way into the system: its hash on this level, and its value (or the means to know it).
pub(super) trait Item: Copy + Default + Send + Sync + 'static {
    fn hash(self) -> u64;
    /// The value under `mask`.
    fn value(self, mask: u32) -> u32;
    /// The same key with the hash of the next level.
    fn rehashed(self, mask: u32, hash: u64) -> Valued;
}

/// A key whose value is its fingerprint.
impl Item for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        self
    }
    #[inline(always)]
    fn value(self, mask: u32) -> u32 {
        fingerprint(self) & mask
    }
    fn rehashed(self, mask: u32, hash: u64) -> Valued {
        Valued { hash, value: self.value(mask) }
    }
}

/// A key with a value of its own.
#[derive(Clone, Copy, Default)]
pub(super) struct Valued {
    pub(super) hash: u64,
    pub(super) value: u32,
}
impl Item for Valued {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.hash
    }
    #[inline(always)]
    fn value(self, mask: u32) -> u32 {
        self.value & mask
    }
    fn rehashed(self, _: u32, hash: u64) -> Valued {
        Valued { hash, ..self }
    }
}

/// A key's equation, shifted so that its first coefficient belongs to row `row`.
#[derive(Clone, Copy, Default)]
struct Equation<V> {
    low: u64,
    high: u64,
    value: V,
    row: usize,
}

/// Coefficients of the solved rows: low words, high words (w = 128), right-hand sides. A used row has bit 0 of its low word
/// set.
pub(super) struct Rows<V> {
    low: Box<[u64; ROWS]>,
    high: Box<[u64; ROWS]>,
    rhs: Box<[V; ROWS]>,
}

/// One strip: its keys, sorted into (bucket, class) bins, and its rows.
pub(super) struct Lane<T, V> {
    /// First bucket of the strip.
    bucket: u64,
    keys: Vec<T>,
    /// Where each bin starts in `keys`; four bins per bucket, the last one always empty.
    bins: Vec<u32>,
    /// The bin of each key, while they are sorted.
    bin_of: Vec<u16>,
    /// The bin being inserted, the key in it, and where the bin starts and ends.
    bin: usize,
    at: usize,
    start: usize,
    end: usize,
    /// Rows taken by the current bin.
    taken: Vec<u32>,
    pub(super) rows: Rows<V>,
    pub(super) bumped: Vec<T>,
    /// One threshold step per bucket.
    pub(super) steps: Vec<u8>,
}

impl<T: Item, V: Rhs> Lane<T, V> {
    pub(super) fn new() -> Lane<T, V> {
        Lane {
            bucket: 0,
            keys: vec![],
            bins: vec![],
            bin_of: vec![],
            bin: 0,
            at: 0,
            start: 0,
            end: 0,
            taken: vec![],
            rows: Rows { low: boxed(0), high: boxed(0), rhs: boxed(V::default()) },
            bumped: vec![],
            steps: vec![],
        }
    }

    /// Takes on a strip of `buckets` buckets and `rows` rows: sorts its keys into bins by counting.
    pub(super) fn load(&mut self, level: &Level, first: u64, buckets: usize, rows: usize, keys: &[T]) {
        let bumps = level.shape().bumps;
        let bin = |key: T| {
            let (bucket, offset) = level.bucket_of(key.hash());
            // Class 0 is bumped last, so it goes first.
            (bucket - first) as usize * 4 + (offset < bumps[1]) as usize + (offset < bumps[2]) as usize
        };
        self.bucket = first;
        self.bins.clear();
        self.bins.resize(buckets * 4 + 1, 0);
        self.bin_of.clear();
        self.bin_of.reserve(keys.len());
        for &key in keys {
            let bin = bin(key);
            self.bin_of.push(bin as u16); // a strip has 512 buckets at most
            self.bins[bin] += 1;
        }
        let mut sum = 0;
        for count in &mut self.bins {
            sum += *count;
            *count = sum;
        }
        self.keys.clear();
        self.keys.resize(keys.len(), T::default());
        // From the back, so that each bin's counter ends at its start and equal bins keep their order.
        for (&key, &bin) in keys.iter().zip(&self.bin_of).rev() {
            let start = &mut self.bins[bin as usize];
            *start -= 1;
            self.keys[*start as usize] = key;
        }
        let rows = rows.min(ROWS);
        self.rows.low[..rows].fill(0);
        self.rows.rhs[..rows].fill(V::default());
        self.bumped.clear();
        self.steps.clear();
        self.steps.resize(buckets, 0);
        self.bin = usize::MAX;
        (self.at, self.start, self.end) = (0, 0, 0);
        self.taken.clear();
    }

    /// Turns to the equation of the next key; false when the strip is done.
    #[inline(always)]
    fn next<const WIDE: bool>(&mut self, e: &mut Equation<V>, level: &Level, mask: u32) -> bool {
        if self.at >= self.end && !self.next_bin() {
            return false;
        }
        let Some(&key) = self.keys.get(self.at) else { return false };
        let h = key.hash();
        let (bucket, offset) = level.bucket_of(h);
        let row = ((bucket - self.bucket) * level.frame.bucket + (offset & level.frame.align)) as usize;
        let band = band(h, level.shape());
        let value = V::new(key.value(mask));
        if !WIDE {
            *e = Equation { low: band as u64, high: 0, value, row };
            return true;
        }
        let band = band & level.mask;
        let skip = band.trailing_zeros() & 63; // the low word is never zero
        let band = band >> skip;
        *e = Equation { low: band as u64, high: (band >> 64) as u64, value, row: row + skip as usize };
        true
    }

    #[inline(never)]
    fn next_bin(&mut self) -> bool {
        loop {
            self.bin = self.bin.wrapping_add(1);
            let (Some(&start), Some(&end)) = (self.bins.get(self.bin), self.bins.get(self.bin + 1)) else {
                return false;
            };
            if start < end {
                (self.at, self.start, self.end) = (start as usize, start as usize, end as usize);
                self.taken.clear();
                return true;
            }
        }
    }

    /// Bumps the current class and those after it in this bucket.
    #[inline(never)]
    fn bump(&mut self) {
        for &row in &self.taken {
            self.rows.low[row as usize & MASK] = 0;
            self.rows.rhs[row as usize & MASK] = V::default();
        }
        let (bucket, class) = (self.bin / 4, self.bin % 4);
        self.steps[bucket] = 3 - class as u8;
        let end = self.bins[bucket * 4 + 4] as usize;
        self.bumped.extend_from_slice(&self.keys[self.start..end]);
        self.bin = bucket * 4 + 3;
        (self.at, self.end) = (0, 0);
    }

    /// One step of elimination; false when the strip is done.
    #[inline(always)]
    fn step<const WIDE: bool>(&mut self, e: &mut Equation<V>, level: &Level, mask: u32, strict: bool) -> bool {
        let i = e.row & MASK;
        let pivot = self.rows.low[i];
        if pivot == 0 {
            self.rows.low[i] = e.low;
            if WIDE {
                self.rows.high[i] = e.high;
            }
            self.rows.rhs[i] = e.value;
            self.taken.push(i as u32);
            self.at += 1;
            return self.next::<WIDE>(e, level, mask);
        }
        e.low ^= pivot;
        if WIDE {
            e.high ^= self.rows.high[i];
        }
        e.value = e.value ^ self.rows.rhs[i];
        if e.low == 0 {
            if WIDE && e.high != 0 {
                let skip = e.high.trailing_zeros();
                *e = Equation { low: e.high >> skip, high: 0, row: e.row + 64 + skip as usize, ..*e };
                return true;
            }
            // The equation says nothing new, or contradicts the others.
            if e.value == V::default() && !strict {
                self.at += 1;
            } else {
                self.bump();
            }
            return self.next::<WIDE>(e, level, mask);
        }
        let skip = e.low.trailing_zeros() & 63;
        e.low >>= skip;
        if WIDE {
            e.low |= (e.high << 1) << (63 - skip);
            e.high >>= skip;
        }
        e.row += skip as usize;
        true
    }
}

/// A zeroed array on the heap; pages that are never touched cost nothing.
fn boxed<V: Copy>(zero: V) -> Box<[V; ROWS]> {
    match vec![zero; ROWS].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => Box::new([zero; ROWS]), // cannot happen: the lengths agree
    }
}

/// Eliminates up to three loaded strips at once.
pub(super) struct Lockstep<'a, T, V, const WIDE: bool> {
    pub(super) lanes: &'a mut [Lane<T, V>],
    pub(super) level: &'a Level,
    pub(super) mask: u32,
    /// Whether a dependent equation is refused even where it agrees with the others.
    pub(super) strict: bool,
}

impl<T: Item, V: Rhs, const WIDE: bool> Kernel for Lockstep<'_, T, V, WIDE> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Lockstep { lanes, level, mask, strict } = self;
        let level = *level;
        // Local equations stay in registers.
        let (mut x, mut y, mut z) = (Equation::default(), Equation::default(), Equation::default());
        macro_rules! turn {
            ($lane:ident, $equation:ident) => {
                $lane.step::<WIDE>(&mut $equation, &level, mask, strict)
            };
        }
        match lanes {
            [a, b, c] => {
                let mut on = [
                    a.next::<WIDE>(&mut x, &level, mask),
                    b.next::<WIDE>(&mut y, &level, mask),
                    c.next::<WIDE>(&mut z, &level, mask),
                ];
                while on[0] && on[1] && on[2] {
                    on = [turn!(a, x), turn!(b, y), turn!(c, z)];
                }
                // One lane is done: the other two keep each other busy.
                while on[0] && on[1] {
                    (on[0], on[1]) = (turn!(a, x), turn!(b, y));
                }
                while on[1] && on[2] {
                    (on[1], on[2]) = (turn!(b, y), turn!(c, z));
                }
                while on[0] && on[2] {
                    (on[0], on[2]) = (turn!(a, x), turn!(c, z));
                }
                while on[0] && turn!(a, x) {}
                while on[1] && turn!(b, y) {}
                while on[2] && turn!(c, z) {}
            }
            lanes => {
                for a in lanes {
                    let on = a.next::<WIDE>(&mut x, &level, mask);
                    while on && turn!(a, x) {}
                }
            }
        }
    }
}

/// Solves a strip from its last row to its first: one word per block and column, written to `words` (block-major).
pub(super) struct Solve<'a, V, const WIDE: bool> {
    pub(super) rows: &'a Rows<V>,
    pub(super) blocks: usize,
    pub(super) columns: usize,
    pub(super) words: &'a mut [u64],
}

impl<V: Rhs, const WIDE: bool> Kernel for Solve<'_, V, WIDE> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // Right-hand sides of one byte have eight columns at most, wider ones more.
        if !V::BYTE {
            return self.columns::<32>();
        }
        match self.columns {
            1 => self.columns::<1>(),
            2 => self.columns::<2>(),
            3 => self.columns::<3>(),
            4 => self.columns::<4>(),
            5 => self.columns::<5>(),
            6 => self.columns::<6>(),
            7 => self.columns::<7>(),
            _ => self.columns::<8>(),
        }
    }
}

impl<V: Rhs, const WIDE: bool> Solve<'_, V, WIDE> {
    #[inline(always)]
    fn columns<const C: usize>(self) {
        let Solve { rows, blocks, columns, words } = self;
        let columns = if C == 32 { columns } else { C };
        // The solution bits of the 128 rows above the current one, per column.
        let mut near = [0u64; C];
        let mut far = [0u64; C];
        for (block, words) in words.chunks_exact_mut(columns).enumerate().take(blocks).rev() {
            for row in (block * 64..block * 64 + 64).rev() {
                let low = rows.low[row & MASK];
                let value = rows.rhs[row & MASK].bits();
                let high = if WIDE && low != 0 { rows.high[row & MASK] } else { 0 };
                let (a, b) = if WIDE { (low >> 1 | high << 63, high >> 1) } else { (low >> 1, 0) };
                for j in 0..columns {
                    let mut x = a & near[j];
                    if WIDE {
                        x ^= b & far[j];
                    }
                    let bit = (x.count_ones() ^ (value >> j)) as u64 & 1;
                    if WIDE {
                        far[j] = far[j] << 1 | near[j] >> 63;
                    }
                    near[j] = near[j] << 1 | bit;
                }
            }
            words.copy_from_slice(&near[..columns]);
        }
    }
}
