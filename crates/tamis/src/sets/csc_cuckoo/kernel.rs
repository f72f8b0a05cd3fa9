//! a key's two runs of buckets -> a bit for every set whose buckets have its values.
//!
//! 64 buckets give a word of bits. With 16 and 8 bits the lanes are whole numbers, and a loop over them compares a vector at a time; other widths are
//! read bucket by bucket: one has the value if one of its lanes is zero after an exclusive or with it, and the usual test for a zero lane, `(x - 1) & !x` in its
//! top bit, is never wrong about whether there is one. Of slots wider than 16 bits two are in a word, and two buckets are tested at a time.

use super::{CscCuckoo, Lanes, NARROW, Run};
use crate::arch::{Isa, Kernel, dispatch};
use crate::hash::Digest;
use crate::sets::coalesce::{SketchQuery, coalesce, inside, push_ones};

impl CscCuckoo {
    /// Appends the numbers of the sets that may hold a key, ascending.
    pub(crate) fn find(&self, query: SketchQuery<'_>) {
        match self.bits {
            16 => dispatch(query.scratch.level, Find::<16>(self, query)),
            8 => dispatch(query.scratch.level, Find::<8>(self, query)),
            ..=NARROW => dispatch(query.scratch.level, Find::<0>(self, query)),
            _ => dispatch(query.scratch.level, Find::<WIDE>(self, query)),
        }
    }
}

/// Stands for all widths above [`NARROW`].
const WIDE: u32 = NARROW + 1;

/// One query; `BITS` is 0 for all narrow widths without a loop of their own.
struct Find<'a, const BITS: u32>(&'a CscCuckoo, SketchQuery<'a>);

impl<const BITS: u32> Kernel for Find<'_, BITS> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Find(shape, SketchQuery { payload, groups, key, scratch, out }) = self;
        let width = groups.width();
        let (mut tables, _) = shape.parts(payload);
        if shape.repeats.repetitions == 1 {
            let Some(table) = tables.next() else { return };
            Runs::<BITS>::new(shape, table, 0, key).each(width, |at, word| push_ones(word, (64 * at) as u32, out));
            return;
        }
        scratch.rows.clear();
        for (t, table) in (0..).zip(tables) {
            let mut any = 0;
            Runs::<BITS>::new(shape, table, t, key).each(width, |_, word| {
                any |= word;
                scratch.rows.push(word);
            });
            if any == 0 {
                return;
            }
        }
        coalesce(groups, &scratch.rows, out);
    }
}

/// The two runs of a key in one table.
struct Runs<'a, const BITS: u32> {
    table: &'a [u8],
    buckets: u64,
    run: Run,
    lanes: Lanes,
}

impl<'a, const BITS: u32> Runs<'a, BITS> {
    #[inline(always)]
    fn new(shape: &CscCuckoo, table: &'a [u8], t: u32, key: Digest) -> Self {
        Runs { table, buckets: shape.buckets, run: shape.run(t, key), lanes: Lanes::new(shape.bits) }
    }

    /// Gives a word of bits for every 64 places of the runs, and its number.
    #[inline(always)]
    fn each(&self, width: u32, mut visit: impl FnMut(usize, u64)) {
        let buckets = self.buckets;
        let (near, far) = (self.lanes.all(self.run.value), self.lanes.all(self.run.value | 1));
        // Where the next 64 buckets start. The second run is read upwards too, and its words turned round.
        let mut first = self.run.first;
        let mut second = self.back(self.run.second, 63);
        for at in 0..width.div_ceil(64) as usize {
            let found = self.word(first, near) | self.word(second, far).reverse_bits();
            visit(at, found & inside(at, width));
            first += 64;
            if first >= buckets {
                first %= buckets;
            }
            second = self.back(second, 64);
        }
    }

    #[inline(always)]
    fn back(&self, bucket: u64, by: u64) -> u64 {
        if bucket >= by { bucket - by } else { (bucket + self.buckets - by % self.buckets) % self.buckets }
    }

    /// Which of 64 buckets from `first` on have the value of every lane of `all`.
    #[inline(always)]
    fn word(&self, first: u64, all: u128) -> u64 {
        if first + 64 > self.buckets {
            return self.gather(first, all);
        }
        let start = first as usize;
        match BITS {
            16 => self.table.get(8 * start..8 * (start + 64)).map_or(0, |part| sixteen(part, all as u64)),
            8 => self.table.get(4 * start..4 * (start + 64)).map_or(0, |part| eight(part, all as u32)),
            WIDE if !self.any_wide(first, all) => 0,
            _ => self.others(first, all),
        }
    }

    /// The same with any other number of bits: one bucket after the other, up to the next that has the value.
    #[inline(always)]
    fn others(&self, first: u64, all: u128) -> u64 {
        let (mut word, mut at) = (0, first);
        while let Some(found) = (at..first + 64).find(|&bucket| self.has(bucket, all) != 0) {
            word |= 1 << (found - first);
            at = found + 1;
        }
        word
    }

    #[inline(always)]
    fn has(&self, bucket: u64, all: u128) -> u64 {
        let Lanes { ones, tops, .. } = self.lanes;
        u64::from(match BITS {
            WIDE => {
                let x = self.lanes.read_wide(self.table, bucket) ^ all;
                x.wrapping_sub(ones) & !x & tops != 0
            }
            _ => {
                let x = self.lanes.read_narrow(self.table, bucket) ^ all as u64;
                x.wrapping_sub(ones as u64) & !x & tops as u64 != 0
            }
        })
    }

    /// Whether one of 64 buckets of wide slots may have the value; mostly none has. Two buckets are as many bytes as a slot has bits, and four
    /// words have two of their slots each, at the same bits in all pairs of buckets.
    #[inline(always)]
    fn any_wide(&self, first: u64, all: u128) -> bool {
        let bits = u64::from(self.lanes.bits);
        let (start, shift) = (first * bits / 2, first * bits % 2 * 4);
        let places: [u64; 4] = std::array::from_fn(|i| shift + 2 * bits * i as u64);
        if places.iter().any(|place| place % 8 + 2 * bits > 64) {
            return true;
        }
        let two = |lanes: u128| places.map(|place| (lanes as u64 & (u64::MAX >> (64 - 2 * bits))) << (place % 8));
        let (values, ones, tops) = (two(all), two(self.lanes.ones), two(self.lanes.tops));
        let mut any = [0; 4];
        for pair in 0..32 {
            let window = self.table.get((start + pair * bits) as usize..).and_then(|rest| rest.first_chunk::<WINDOW>());
            // The end of the table is near.
            let Some(window) = window else { return true };
            for i in 0..4 {
                let at = (places[i] / 8) as usize % (WINDOW - 8);
                let Some(word) = window[at..].first_chunk() else { return true };
                let x = u64::from_le_bytes(*word) ^ values[i];
                any[i] |= x.wrapping_sub(ones[i]) & !x & tops[i];
            }
        }
        any != [0; 4]
    }

    /// The same as `word`, past the end of the table and on at its beginning.
    #[cold]
    #[inline(never)]
    fn gather(&self, first: u64, all: u128) -> u64 {
        let (mut word, mut bucket) = (0, first);
        for i in 0..64 {
            word |= self.has(bucket, all) << i;
            bucket = if bucket + 1 >= self.buckets { 0 } else { bucket + 1 };
        }
        word
    }
}

/// Bytes in which the eight slots of two buckets are, and a word more.
const WINDOW: usize = 40;

/// Which of 64 buckets of four times 16 bits have a lane of `all`'s. Mostly none has: that is found out with one comparison of vectors after the other,
/// and which it is only where there is one.
#[inline(always)]
fn sixteen(part: &[u8], all: u64) -> u64 {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let value = (all as u16).to_le_bytes();
    if !part.as_chunks::<2>().0.iter().fold(false, |any, lane| any | (*lane == value)) {
        return 0;
    }
    let mut word = 0;
    for (step, part) in part.as_chunks::<64>().0.iter().enumerate() {
        for (i, bytes) in part.as_chunks().0.iter().enumerate() {
            let x = u64::from_le_bytes(*bytes) ^ all;
            word |= u64::from(x.wrapping_sub(ONES) & !x & (ONES << 15) != 0) << (8 * step + i);
        }
    }
    word
}

/// The same with 8 bits, where one of them mostly has.
#[inline(always)]
fn eight(part: &[u8], all: u32) -> u64 {
    let ([a, b, c, d], _) = part.as_chunks::<64>() else { return 0 };
    let half = |a, b| {
        // A lane has a bit for each of its two buckets.
        let (a, b) = (eight_lanes(a, all), eight_lanes(b, all));
        let both = a.iter().zip(&b).fold(0, |word, (a, b)| word | a | b << 16);
        u64::from(both)
    };
    half(a, b) | half(c, d) << 32
}

/// Bit i of lane i, of the buckets that have a lane of `all`'s.
#[inline(always)]
fn eight_lanes(part: &[u8; 64], all: u32) -> [u32; 16] {
    const ONES: u32 = 0x0101_0101;
    let mut found = [0; 16];
    for (i, (found, bytes)) in found.iter_mut().zip(part.as_chunks().0).enumerate() {
        let x = u32::from_le_bytes(*bytes) ^ all;
        let zero = x.wrapping_sub(ONES) & !x & (ONES << 7);
        *found = if zero == 0 { 0 } else { 1 << i };
    }
    found
}
