//! a level and a hash -> the value there, or whether a member reads it: the straight-line queries of a ribbon.
//!
//! One kernel per shape and number of columns, compiled for every instruction set. What a kernel knows when it is compiled,
//! the frame of its levels and the number of columns, is not computed with; what it does not serve goes the plain way of
//! [`Outcome::plainly`], which gives the same answers.

use std::marker::PhantomData;

use super::{BAND, BIT, Fast, Frame, Level, NARROW, Ribbon, SHAPES, Shape, band, fingerprint, load};
use crate::arch::{self, Answer, Isa, Kernel};
use crate::hash::{Digest, fold};
use crate::leaves::{Part, ShardedLeaf};

/// A way to read a level's value, for one shape and width.
pub(super) trait Lookup: Copy + 'static {
    const SHAPE: usize;
    const FRAME: Frame = Frame::of(&SHAPES[Self::SHAPE], 0);
    /// The thresholds of four buckets, for every byte that records their steps.
    const THRESHOLDS: &'static [[u16; 4]; 256] = &thresholds(&SHAPES[Self::SHAPE]);
    /// As [`Kernel::V4`]: up to three columns are read one by one.
    const V4: bool = Self::BYTES > 48;
    /// Bytes that a check reads from its first block on, or nearly all.
    const BYTES: usize;

    /// The numbers of a level: known when this is compiled, but for levels whose buckets are as large as they need.
    #[inline(always)]
    fn frame(_: &Level) -> Frame {
        Self::FRAME
    }

    /// Bytes that a value takes from its first block on.
    #[inline(always)]
    fn span(_: &Level) -> usize {
        Self::BYTES
    }

    /// Where in the payload a row's query starts to read.
    fn place(level: &Level, row: u64) -> usize;

    /// The bits of a value that starts at a row.
    fn mask(level: &Level, row: u64) -> u32;

    /// The value at a row, no bits outside its mask; nothing if the payload is too short.
    fn value<I: Isa>(level: &Level, payload: &[u8], h: u64, row: u64) -> Option<u32>;

    /// Whether the value at a row is `expected`; nothing if the payload is too short.
    #[inline(always)]
    fn check<I: Isa>(level: &Level, payload: &[u8], h: u64, expected: u32, row: u64) -> Option<bool> {
        Some((Self::value::<I>(level, payload, h, row)? ^ expected) & Self::mask(level, row) == 0)
    }

    /// The row of a hash, and whether it was bumped from this level.
    #[inline(always)]
    fn locate(level: &Level, payload: &[u8], h: u64) -> (u64, bool) {
        let frame = Self::frame(level);
        let (bucket, offset) = frame.bucket_of(level.buckets, h);
        (frame.row(bucket, offset), Self::bumped(payload, level.bumps_at, bucket, offset))
    }

    /// [`Frame::bumped`], with one look at a table.
    #[inline(always)]
    fn bumped(payload: &[u8], at: u64, bucket: u64, offset: u64) -> bool {
        if !SHAPES[Self::SHAPE].bumping {
            return false;
        }
        let byte = payload.get((at + bucket / 4) as usize).copied().unwrap_or(0);
        offset < Self::THRESHOLDS[byte as usize][(bucket & 3) as usize] as u64
    }
}

const fn thresholds(shape: &Shape) -> [[u16; 4]; 256] {
    let mut table = [[0; 4]; 256];
    let mut i = 0;
    while i < 1024 {
        table[i / 4][i % 4] = shape.bumps[(i / 4) >> (2 * (i % 4)) & 3] as u16;
        i += 1;
    }
    table
}

/// Bands of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Columns<const R: usize, const PART: bool>;

impl<const R: usize, const PART: bool> Lookup for Columns<R, PART> {
    const SHAPE: usize = NARROW;
    const BYTES: usize = 16 * R;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        match PART {
            true => level.block_at(R as u32 - 1, row >> 6),
            false => (level.rows_at + (row >> 6) * (8 * R as u64)) as usize,
        }
    }

    #[inline(always)]
    fn mask(level: &Level, row: u64) -> u32 {
        u32::MAX >> (32 - R as u32 + (PART && row >> 6 < level.cut) as u32)
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], h: u64, row: u64) -> Option<u32> {
        let (low, high) = spread(h, row);
        let first = Self::place(level, row);
        if !PART {
            let at = first & (usize::MAX >> 1);
            let (first, second) = payload.get(at..at + 16 * R)?.split_at(8 * R);
            return Some(I::parities::<R>(first, second, low, high));
        }
        let second = level.block_at(R as u32 - 1, (row >> 6) + 1);
        let value = I::parities::<R>(words::<R>(payload, first)?, words::<R>(payload, second)?, low, high);
        Some(value & Self::mask(level, row))
    }
}

/// Bumped ribbons with bands of 64 bits and more than eight columns: one kernel for all of them. The first eight columns refuse
/// nearly every unlisted key, so a check reads the others one by one; a value reads all of them, eight at a time.
#[derive(Clone, Copy)]
pub(super) struct Broad;

impl Lookup for Broad {
    const SHAPE: usize = NARROW;
    const BYTES: usize = 16 * 8;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        level.block_at(level.whole, row >> 6)
    }

    #[inline(always)]
    fn span(level: &Level) -> usize {
        16 * level.whole as usize
    }

    #[inline(always)]
    fn mask(level: &Level, row: u64) -> u32 {
        u32::MAX >> (32 - level.whole - (row >> 6 >= level.cut) as u32)
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], h: u64, row: u64) -> Option<u32> {
        let (low, high) = spread(h, row);
        let block = row >> 6;
        let (first, second) = (level.block_at(level.whole, block), level.block_at(level.whole, block + 1));
        let last = level.whole + (block >= level.cut) as u32 - 8;
        let (mut value, mut column) = (0, 0);
        loop {
            // The last eight may overlap those before: equal bits.
            let at = 8 * column as usize;
            let (first, second) = (words::<8>(payload, first + at)?, words::<8>(payload, second + at)?);
            value |= I::parities::<8>(first, second, low, high) << column;
            if column >= last {
                return Some(value);
            }
            column = last.min(column + 8);
        }
    }

    #[inline(always)]
    fn check<I: Isa>(level: &Level, payload: &[u8], h: u64, expected: u32, row: u64) -> Option<bool> {
        let (low, high) = spread(h, row);
        let block = row >> 6;
        let (first, second) = (level.block_at(level.whole, block), level.block_at(level.whole, block + 1));
        let value = I::parities::<8>(words::<8>(payload, first)?, words::<8>(payload, second)?, low, high);
        if (value ^ expected) & 0xff != 0 {
            return Some(false);
        }
        let columns = level.whole + (block >= level.cut) as u32;
        let agrees = |column: u32| {
            let at = |block| load(payload, block + 8 * column as usize);
            (low & at(first) ^ high & at(second)).count_ones() & 1 == expected >> column & 1
        };
        Some((8..columns).all(agrees))
    }
}

/// Bands of 128 bits that start on a byte, one column.
#[derive(Clone, Copy)]
pub(super) struct Bit;

impl Lookup for Bit {
    const SHAPE: usize = BIT;
    const BYTES: usize = 16;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        (level.rows_at + (row >> 3)) as usize
    }

    #[inline(always)]
    fn mask(_: &Level, _: u64) -> u32 {
        1
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], h: u64, row: u64) -> Option<u32> {
        let band = band(h, &SHAPES[BIT]);
        let at = Self::place(level, row);
        let bytes: &[u8; 16] = payload.get(at..)?.first_chunk()?;
        let x = u128::from_le_bytes(*bytes) & band;
        Some((x as u64 ^ (x >> 64) as u64).count_ones() & 1)
    }
}

/// `R` words from `at` on, if they are there.
#[inline(always)]
fn words<const R: usize>(payload: &[u8], at: usize) -> Option<&[u8]> {
    // A place is far below 2^63; saying so spares a check for overflow.
    let at = at & (usize::MAX >> 1);
    payload.get(at..at + 8 * R)
}

/// A band of 64 coefficients, split over the two blocks it covers.
#[inline(always)]
pub(super) fn spread(h: u64, row: u64) -> (u64, u64) {
    let band = fold(h, BAND.0) | 1;
    // 63 minus the shift, as the complement of its six bits.
    (band << (row & 63), (band >> 1) >> (!row & 63))
}

/// Calls `$run!(kernel)` with the kernel of a ribbon, or `$any`.
macro_rules! with_kernel {
    ($ribbon:expr, $any:expr, $run:ident) => {
        with_kernel!($ribbon, $any, $run:
            (1 false) (2 false) (3 false) (4 false) (5 false) (6 false) (7 false) (8 false)
            (2 true) (3 true) (4 true) (5 true) (6 true) (7 true) (8 true))
    };
    ($ribbon:expr, $any:expr, $run:ident: $(($columns:literal $part:literal))*) => {
        match $ribbon.fast {
            $(Fast::Columns { columns: $columns, part: $part } => $run!(Columns<$columns, $part>),)*
            Fast::Broad => $run!(Broad),
            Fast::Bit => $run!(Bit),
            _ => $any,
        }
    };
}

/// What a query finds out: whether a member reads this, or the value itself.
pub(super) trait Outcome: Copy {
    /// At a row; nothing if the payload is too short. `key` is the hash of the key on the first level, `h` on this one.
    fn at<K: Lookup, I: Isa>(level: &Level, payload: &[u8], key: u64, h: u64, row: u64) -> Option<Self>;

    /// Asks for the bytes at a place.
    fn prefetch<K: Lookup>(level: &Level, payload: &[u8], at: usize);

    /// For a hash, without any kernel.
    fn plainly(ribbon: &Ribbon, payload: &[u8], h: u64) -> Self;
}

impl Outcome for bool {
    #[inline(always)]
    fn at<K: Lookup, I: Isa>(level: &Level, payload: &[u8], key: u64, h: u64, row: u64) -> Option<bool> {
        K::check::<I>(level, payload, h, fingerprint(key), row)
    }

    #[inline(always)]
    fn prefetch<K: Lookup>(_: &Level, payload: &[u8], at: usize) {
        arch::prefetch(payload, at);
        arch::prefetch(payload, at + K::BYTES - 1);
    }

    #[inline(always)]
    fn plainly(ribbon: &Ribbon, payload: &[u8], h: u64) -> bool {
        ribbon.matches(payload, h)
    }
}

impl Ribbon {
    /// Whether the only bit of a key is `bit`; nothing where no kernel serves.
    #[inline(always)]
    pub(in crate::leaves) fn bit_is<I: Isa>(&self, payload: &[u8], key: Digest, bit: u32) -> Option<bool> {
        if self.fast != Fast::Bit {
            return None;
        }
        let h = key.salted(self.salt);
        let (row, bumped) = Bit::locate(&self.first, payload, h);
        if bumped { None } else { Bit::check::<I>(&self.first, payload, h, bit, row) }
    }
}

impl ShardedLeaf<Ribbon> {
    /// Whether [`Part::bit`] serves most keys.
    pub(crate) fn is_bit(&self) -> bool {
        self.parts().iter().all(|part| part.geometry.fast == Fast::Bit)
    }
}

impl Part<Ribbon> {
    /// Whether a key's only bit is that of a member.
    #[inline(always)]
    pub(crate) fn bit<I: Isa>(&self, key: Digest) -> bool {
        let (ribbon, payload) = (&self.geometry, &self.payload[..]);
        let h = key.salted(ribbon.salt);
        let says = ribbon.bit_is::<I>(payload, key, fingerprint(h));
        says.unwrap_or_else(|| ribbon.deep::<Bit, bool>(payload, h))
    }
}

/// One query that the first level passed on.
pub(super) struct Deep<'a, K, O> {
    pub(super) ribbon: &'a Ribbon,
    pub(super) payload: &'a [u8],
    pub(super) h: u64,
    pub(super) kinds: PhantomData<(K, O)>,
}

impl<K: Lookup, O: Outcome> Kernel for Deep<'_, K, O> {
    const V4: bool = K::V4;
    type Output = O;
    #[inline(always)]
    fn run<I: Isa>(self) -> O {
        let Deep { ribbon, payload, h, .. } = self;
        if I::QUICK
            && let Some((level, hash, row)) = ribbon.deeper::<K>(payload, h)
            && let Some(found) = O::at::<K, I>(level, payload, h, hash, row)
        {
            return found;
        }
        O::plainly(ribbon, payload, h)
    }
}

impl Ribbon {
    /// The first later level that has a key, with its hash and row there; nothing if it has another shape than the first.
    #[inline(always)]
    fn deeper<K: Lookup>(&self, payload: &[u8], mut h: u64) -> Option<(&Level, u64, u64)> {
        for level in &self.rest {
            // All levels but the last have the shape of the first.
            if level.shape != self.first.shape {
                return None;
            }
            h = level.rehash(h);
            let (row, bumped) = K::locate(level, payload, h);
            if !bumped {
                return Some((level, h, row));
            }
        }
        None
    }
}

/// One query.
pub(super) struct One<K>(PhantomData<K>);

impl<K: Lookup, O: Outcome> Answer<Part<Ribbon>, O> for One<K> {
    const V4: bool = K::V4;

    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Ribbon>, key: Digest) -> O {
        let (ribbon, payload) = (&part.geometry, &part.payload[..]);
        let level = &ribbon.first;
        let h = key.salted(ribbon.salt);
        let (row, bumped) = K::locate(level, payload, h);
        if bumped {
            return ribbon.deep::<K, O>(payload, h);
        }
        match O::at::<K, I>(level, payload, h, h, row) {
            Some(found) => found,
            None => O::plainly(ribbon, payload, h),
        }
    }
}

/// One query of any shape.
pub(super) struct Any;

impl<O: Outcome> Answer<Part<Ribbon>, O> for Any {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Ribbon>, key: Digest) -> O {
        O::plainly(&part.geometry, &part.payload, key.salted(part.geometry.salt))
    }
}

/// Keys per round of a batch: enough loads in flight, few enough to stay in the first cache.
const BATCH: usize = 32;

/// Many queries: all places first, prefetched; then all values; then the few that were bumped.
pub(super) struct Many<'a, K, O> {
    pub(super) leaf: &'a ShardedLeaf<Ribbon>,
    pub(super) keys: &'a [Digest],
    pub(super) out: &'a mut [O],
    pub(super) kernel: PhantomData<K>,
}

impl<K: Lookup, O: Outcome> Kernel for Many<'_, K, O> {
    const V4: bool = K::V4;
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // With one part its geometry stays in registers.
        if I::QUICK && self.leaf.parts().len() == 1 { self.rounds::<I, true>() } else { self.rounds::<I, false>() }
    }
}

/// What the first look at up to [`BATCH`] keys finds.
struct Places {
    hashes: [u64; BATCH],
    rows: [u64; BATCH],
    bumped: [u8; BATCH],
}

// Indices: iterators of several slices are a third more code for each of a hundred forms.
#[allow(clippy::needless_range_loop)]
impl<K: Lookup, O: Outcome> Many<'_, K, O> {
    #[inline(always)]
    fn rounds<I: Isa, const SINGLE: bool>(self) {
        let Many { leaf, keys, out, .. } = self;
        let mut places = Places { hashes: [0; BATCH], rows: [0; BATCH], bumped: [0; BATCH] };
        let mut done = 0;
        while done < keys.len() {
            let end = keys.len().min(done + BATCH);
            let (keys, out) = (&keys[done..end], &mut out[done..end]);
            let count = Self::find::<SINGLE>(leaf, keys, &mut places);
            for i in 0..keys.len() {
                let part = leaf.part_of::<SINGLE>(keys[i]);
                let (ribbon, payload) = (&part.geometry, &part.payload[..]);
                let h = places.hashes[i];
                out[i] = match O::at::<K, I>(&ribbon.first, payload, h, h, places.rows[i]) {
                    Some(found) => found,
                    None => O::plainly(ribbon, payload, h),
                };
            }
            Self::ask_bumped(leaf, keys, &places, count, out);
            done = end;
        }
    }

    /// Finds and prefetches the places of up to [`BATCH`] keys; returns how many are bumped. For any processor, and inlined.
    #[inline(always)]
    fn find<const SINGLE: bool>(leaf: &ShardedLeaf<Ribbon>, keys: &[Digest], places: &mut Places) -> usize {
        let mut count = 0;
        for i in 0..keys.len() {
            let part = leaf.part_of::<SINGLE>(keys[i]);
            let (ribbon, payload) = (&part.geometry, &part.payload[..]);
            let level = &ribbon.first;
            let h = keys[i].salted(ribbon.salt);
            let (row, bumped) = K::locate(level, payload, h);
            places.hashes[i] = h;
            places.rows[i] = row;
            O::prefetch::<K>(level, payload, K::place(level, row));
            places.bumped[count % BATCH] = i as u8;
            count += bumped as usize;
        }
        count
    }

    /// The answers for the bumped keys of a batch.
    fn ask_bumped(leaf: &ShardedLeaf<Ribbon>, keys: &[Digest], places: &Places, count: usize, out: &mut [O]) {
        for &i in &places.bumped[..count] {
            let i = i as usize;
            let part = leaf.part(keys[i]);
            out[i] = part.geometry.deep::<K, O>(&part.payload, places.hashes[i]);
        }
    }
}
