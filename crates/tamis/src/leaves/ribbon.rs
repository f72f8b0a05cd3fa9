//! digests -> static function or filter in about width bits per key: bumped and standard ribbons.
//!
//! # The idea
//!
//! Every key is one linear equation over GF(2): the parity of the solution bits under a random band of `w` coefficients,
//! starting at a row that its hash chooses, must equal the key's value. Sorted by start the equations form a ribbon:
//!
//! ```text
//!   start row ->
//!   key a   1 0 1 1 0 . . . . . . .          w = 5 coefficients per key, n keys, m rows.
//!   key b   . 1 1 0 0 1 . . . . . .          Elimination never leaves the band, so a step costs one
//!   key c   . . . 1 0 1 1 0 . . . .          word operation; back substitution from the last row
//!   key d   . . . . . 1 1 0 1 1 . .          gives one column of solution bits per value bit.
//! ```
//!
//! A query is `width` parities of two words. There are two ways to make the system solvable:
//!
//! * **standard** [Ribbon]: a few percent more rows than keys, another salt when it fails. For a few thousand keys; with more
//!   the needed slack grows.
//! * **bumped** [BuRR]: *fewer* rows than keys. Rows come in buckets; where a bucket cannot take all its keys, those with
//!   the smallest offsets are *bumped* to the next level, in one of three steps that two bits per bucket record. Overloading the
//!   first level by 2 or 4 % leaves almost no row empty: .4 % overhead at 8 bits, and construction never restarts.
//!
//! # Layout
//!
//! Rows come in blocks of 64, and the words of all columns of a block lie side by side, so a query touches two (w = 64) or
//! three (w = 128) neighbouring blocks:
//!
//! ```text
//!   level 0: block 0 [col 0 | col 1 | .. | col r-1] block 1 [..] ..  thresholds, 2 bits per bucket;  level 1: ..
//! ```
//!
//! All columns are evaluated before the one comparison: leaving early after each column costs more in mispredicted
//! branches than it saves (two to three times slower). With a *fractional* width r + p, blocks from `cut` on have one column more;
//! a key checks the extra bit when its first block has it.
//!
//! A level is eliminated in *strips* of 65,536 or 98,304 rows that end in `pad` rows of their own: strips are independent, so
//! two or three of them advance in lockstep, each hiding the other's load latency.
//!
//! # Why not the neighbours
//!
//! Binary fuse filters need 9-13 % more space for the same rate and answer a little faster; Bloom filters need 44 % and more.
//!
//! Papers: [Ribbon] section 2, [BuRR] sections 3 and 4 (bumping, thresholds, the overloaded first level).

use std::marker::PhantomData;

use crate::arch::{self, Level as Cpu, QueryFn};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::MAX_NUMBER;
use crate::hash::{Digest, Salt, fold, scramble};
#[cfg(feature = "maps")]
use crate::leaves::Leaf;
use crate::leaves::{Geometry, Never, Query, ShardedLeaf, Way, bits_in_words};
use crate::math::portable::exp2;
use kernel::{Any, Bit, Broad, Columns, Deep, Many, One};
use kernel::{Lookup, Outcome};

#[macro_use]
mod kernel;
#[cfg(feature = "build")]
mod build;
#[cfg(feature = "build")]
mod eliminate;
#[cfg(feature = "maps")]
mod values;
#[cfg(feature = "build")]
pub(crate) use build::{Params, build};

/// The widest value.
pub(crate) const MAX_WIDTH: u32 = 32;

/// The constants of one kind of level. Their numbers are in files: an entry of [`SHAPES`] never changes.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// Coefficients per key: 64 or 128.
    band: u32,
    /// Rows per bucket; 0: one bucket, as large as the level needs (the standard ribbon).
    bucket: u64,
    /// A bucket may bump its keys with offsets below `bumps[1]`, below `bumps[2]`, or all.
    bumps: [u64; 4],
    /// Whether the level has thresholds at all.
    bumping: bool,
    /// Starts are multiples of this: 1, or 8 where a query reads whole bytes.
    align: u64,
    /// log2 of the buckets per strip.
    strip: u32,
    /// Rows at the end of a strip that belong to no bucket: at least `band`, so that strips are independent.
    pad: u64,
}

/// Found by a search over about 70 configurations; `cargo run --release -p tamis-bench -- filters` shows what they reach.
#[rustfmt::skip]
const SHAPES: [Shape; 4] = [
    // Standard: small sets and last levels.
    Shape { band: 128, bucket: 0, bumps: [0; 4], bumping: false, align: 1, strip: 0, pad: 127 },
    // Bumped, w = 64.
    Shape { band: 64, bucket: 192, bumps: [0, 24, 56, 192], bumping: true, align: 1, strip: 9, pad: 64 },
    // Bumped, w = 128: one bit, read as sixteen bytes; more bits.
    Shape { band: 128, bucket: 512, bumps: [0, 40, 104, 512], bumping: true, align: 8, strip: 7, pad: 128 },
    Shape { band: 128, bucket: 512, bumps: [0, 40, 104, 512], bumping: true, align: 1, strip: 7, pad: 128 },
];
const STANDARD: usize = 0;
const NARROW: usize = 1;
const BIT: usize = 2;
const WIDE: usize = 3;

/// More rows than this in one level are refused: 2^40 of them are a terabit per column.
const MAX_ROWS: u64 = 1 << 40;

/// The numbers of a level that a query computes with. A kernel knows them when it is compiled, because they follow from the
/// shape: what is left of the arithmetic are shifts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Frame {
    /// Rows per bucket.
    bucket: u64,
    /// `!(align - 1)`.
    align: u64,
    /// `bumps` of the shape, 16 bits each; 0 for none.
    bumps: u64,
    strip: u32,
    pad: u64,
}

impl Frame {
    const fn of(shape: &Shape, bucket: u64) -> Frame {
        let [a, b, c, d] = shape.bumps;
        Frame {
            bucket: if shape.bucket == 0 { bucket } else { shape.bucket },
            align: !(shape.align - 1),
            bumps: a | b << 16 | c << 32 | d << 48,
            strip: shape.strip,
            pad: shape.pad,
        }
    }

    /// Bucket and offset: two multiplications, no division, any bucket size.
    #[inline(always)]
    fn bucket_of(self, buckets: u64, h: u64) -> (u64, u64) {
        let p = h as u128 * buckets as u128;
        ((p >> 64) as u64, (((p as u64) >> 32) * self.bucket) >> 32)
    }

    /// The first row of a key's band.
    #[inline(always)]
    fn row(self, bucket: u64, offset: u64) -> u64 {
        bucket * self.bucket + (offset & self.align) + (bucket >> self.strip) * self.pad
    }

    /// Whether the bucket passes keys with this offset on to the next level. Thresholds start at `at`.
    #[inline(always)]
    fn bumped(self, payload: &[u8], at: u64, bucket: u64, offset: u64) -> bool {
        self.bumps != 0 && offset < self.threshold(payload, at, bucket)
    }

    #[inline(always)]
    fn threshold(self, payload: &[u8], at: u64, bucket: u64) -> u64 {
        let byte = payload.get((at + bucket / 4) as usize).copied().unwrap_or(0);
        let step = (byte >> (2 * (bucket & 3))) & 3;
        (self.bumps >> (16 * step)) & 0xffff
    }
}

/// One level: where its rows are and which keys it passes on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    shape: u8,
    /// Which rehash made this level solvable; 0 for the first level, whose salt is the leaf's.
    attempt: u32,
    /// What that rehash starts from.
    twist: u64,
    buckets: u64,
    frame: Frame,
    /// Coefficients beyond the last row of a tiny level are cut off.
    mask: u128,
    /// Columns of every block; from which block on there is one more, and how many blocks there are.
    whole: u32,
    cut: u64,
    blocks: u64,
    /// Offsets in the payload: rows, then thresholds.
    rows_at: u64,
    bumps_at: u64,
}

impl Level {
    /// The level with `buckets` buckets (of `bucket` rows, for the standard shape), its bytes placed from `at` on.
    fn new(shape: usize, attempt: u32, buckets: u64, bucket: u64, width: Width, at: u64) -> Level {
        let s = &SHAPES[shape];
        let tiny = shape == STANDARD && bucket == 0;
        let frame = Frame::of(s, bucket.max(1));
        let strips = buckets.div_ceil(1 << s.strip);
        let rows = match shape {
            // A tiny standard level has one start and fewer rows than coefficients.
            STANDARD if tiny => 64,
            STANDARD => bucket + s.pad,
            _ => buckets * s.bucket + strips * s.pad,
        };
        let blocks = rows.div_ceil(64);
        let starts = if shape == STANDARD { frame.bucket } else { rows };
        let cut = width.cut(starts);
        let words = blocks * width.whole as u64 + blocks.saturating_sub(cut);
        let mask = if tiny { u64::MAX as u128 } else { u128::MAX };
        Level {
            shape: shape as u8,
            attempt,
            twist: scramble(attempt as u64),
            buckets,
            frame,
            mask,
            whole: width.whole,
            cut,
            blocks,
            rows_at: at,
            bumps_at: at + words * 8,
        }
    }

    /// The probability that a random value agrees with a stored one: one bit more is compared beyond the cut.
    fn fpr(&self, width: Width) -> f64 {
        let starts = if self.shape as usize == STANDARD { self.frame.bucket } else { self.blocks * 64 };
        let wide = 1.0 - (self.cut as f64 * 64.0 / starts as f64).min(1.0);
        (1.0 - wide / 2.0) * exp2(-f64::from(width.whole))
    }

    /// Rows per bucket; 0 for a tiny level, which has one start.
    fn bucket(&self) -> u64 {
        if self.mask == u128::MAX { self.frame.bucket } else { 0 }
    }

    /// Bytes of the thresholds.
    fn steps_len(&self) -> u64 {
        if self.shape().bumping { self.buckets.div_ceil(4) } else { 0 }
    }

    fn shape(&self) -> &'static Shape {
        &SHAPES[self.shape as usize]
    }

    /// Where the level's bytes end.
    fn end(&self) -> u64 {
        self.bumps_at + self.steps_len()
    }

    /// The hash that this level sees of a key whose hash on the level before was `h`.
    #[inline]
    fn rehash(&self, h: u64) -> u64 {
        fold(h ^ self.twist, 0xd6e8_feb8_6659_fd93)
    }

    /// Bucket and offset of a key.
    #[cfg(feature = "build")]
    #[inline(always)]
    fn bucket_of(&self, h: u64) -> (u64, u64) {
        self.frame.bucket_of(self.buckets, h)
    }

    /// Where block `block` starts, in bytes, with `whole` columns before the cut.
    #[inline(always)]
    fn block_at(&self, whole: u32, block: u64) -> usize {
        (self.rows_at + (block * whole as u64 + block.saturating_sub(self.cut)) * 8) as usize
    }

    /// The value under a key's band: any band, any width, any bytes. What the kernels below do faster.
    fn value(&self, width: Width, payload: &[u8], h: u64, row: u64) -> u32 {
        let (block, shift) = (row / 64, row % 64);
        let band = band(h, self.shape()) & self.mask;
        let words = [(band << shift) as u64, ((band << shift) >> 64) as u64, ((band >> 1) >> (127 - shift)) as u64];
        let columns = width.columns(block >= self.cut);
        let mut value = 0;
        for column in 0..columns {
            let mut x = 0;
            for (i, word) in words.iter().enumerate() {
                let at = self.block_at(width.whole, block + i as u64) + 8 * column as usize;
                x ^= word & load(payload, at);
            }
            value |= (x.count_ones() & 1) << column;
        }
        value
    }
}

/// Eight bytes at `at`, as far as they exist.
#[inline(always)]
fn load(payload: &[u8], at: usize) -> u64 {
    match payload.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// The coefficients of a key. Bit 0 belongs to the first row; it is set where starts may be anywhere.
#[inline(always)]
fn band(h: u64, shape: &Shape) -> u128 {
    let low = fold(h, BAND.0);
    if shape.band == 64 {
        return (low | 1) as u128;
    }
    let high = fold(h, BAND.1);
    // With aligned starts the first coefficient is random; one bit of the low word is set, so that it is never zero.
    let low = low | if shape.align == 1 { 1 } else { 1 << 63 };
    (high as u128) << 64 | low as u128
}
const BAND: (u64, u64) = (0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3);

/// The fingerprint of a key: bits that the start does not use.
#[inline(always)]
fn fingerprint(h: u64) -> u32 {
    h as u32
}

/// Bits per value: `whole`, and one more from a cut on that leaves `part` 256ths of the starts with it, or a little more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    pub(crate) whole: u32,
    pub(crate) part: u32,
}

impl Width {
    /// The first block with an extra column, for a level where keys start in the first `starts` rows: so that `part` 256ths
    /// of the starts, and no fewer, lie beyond it.
    fn cut(self, starts: u64) -> u64 {
        if self.part == 0 { u64::MAX } else { starts * (256 - self.part as u64) / (256 * 64) }
    }

    /// Columns of a block on one side of the cut.
    #[inline(always)]
    fn columns(self, extra: bool) -> u32 {
        self.whole + extra as u32
    }

    #[inline(always)]
    fn mask(self, extra: bool) -> u32 {
        u32::MAX >> (32 - self.columns(extra)) // 1..=32 columns: the width is checked when it is made
    }
}

/// How to read one ribbon.
#[derive(Clone, Debug)]
pub(crate) struct Ribbon {
    pub(in crate::leaves) cpu: Cpu,
    salt: Salt,
    number: u32,
    width: Width,
    fast: Fast,
    /// Levels, the first one apart because nearly all queries end there. No level: no keys.
    first: Level,
    rest: Box<[Level]>,
    empty: bool,
}

/// Which straight-line kernel answers for the first level and those of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fast {
    /// Bands of 64: the columns to read; with a fraction, the last one is there only in some blocks.
    Columns { columns: u8, part: bool },
    /// Bumped, bands of 64, more than eight columns.
    Broad,
    /// Bands of 128, one bit, starts on bytes.
    Bit,
    /// Standard, a whole width: the columns to read at once, eight at most. Only values have kernels for it.
    Small { columns: u8 },
    /// Anything else.
    Any,
}

impl Ribbon {
    fn new(salt: Salt, number: u32, width: Width, first: Option<Level>, rest: Box<[Level]>) -> Ribbon {
        let empty = first.is_none();
        let first = first.unwrap_or(Level::new(STANDARD, 0, 0, 0, width, 0));
        let columns = width.columns(width.part > 0);
        let fast = match first.shape().band {
            64 if columns <= 8 => Fast::Columns { columns: columns as u8, part: width.part > 0 },
            64 => Fast::Broad,
            128 if columns == 1 && first.shape().align == 8 => Fast::Bit,
            _ if first.shape as usize == STANDARD && width.part == 0 => Fast::Small { columns: columns.min(8) as u8 },
            _ => Fast::Any,
        };
        Ribbon { cpu: Cpu::detect(), salt: salt.child(number as u64), number, width, fast, first, rest, empty }
    }

    /// Bits of a value times 256.
    pub(in crate::leaves) fn width(&self) -> u16 {
        (self.width.whole * 256 + self.width.part) as u16
    }

    /// Whether there are no keys.
    pub(in crate::leaves) fn is_empty(&self) -> bool {
        self.empty
    }

    fn levels(&self) -> impl Iterator<Item = &Level> {
        (!self.empty).then_some(&self.first).into_iter().chain(&self.rest)
    }

    /// The value and the mask of valid bits for any key on any level, without any kernel.
    fn value_and_mask(&self, payload: &[u8], mut h: u64) -> (u32, u32) {
        for (i, level) in self.levels().enumerate() {
            if i > 0 {
                h = level.rehash(h);
            }
            let (bucket, offset) = level.frame.bucket_of(level.buckets, h);
            if !level.frame.bumped(payload, level.bumps_at, bucket, offset) {
                let row = level.frame.row(bucket, offset);
                return (level.value(self.width, payload, h, row), self.width.mask(row / 64 >= level.cut));
            }
        }
        (0, 0) // no builder leaves a key without a level; hostile bytes may
    }

    /// Whether a key with this hash reads what a member reads, without any kernel.
    #[inline(never)]
    fn matches(&self, payload: &[u8], h: u64) -> bool {
        let (value, mask) = self.value_and_mask(payload, h);
        !self.empty && (value ^ fingerprint(h)) & mask == 0
    }

    /// The value of a key with this hash, without any kernel.
    #[inline(never)]
    fn read(&self, payload: &[u8], h: u64) -> u32 {
        self.value_and_mask(payload, h).0
    }

    /// What a key that the first level passed on reads. Apart, because the few keys it serves must not cost the others
    /// registers.
    #[inline(never)]
    fn deep<K: Lookup, O: Outcome>(&self, payload: &[u8], h: u64) -> O {
        arch::dispatch(self.cpu, Deep::<K, O> { ribbon: self, payload, h, kinds: PhantomData })
    }
}

impl Query for Ribbon {
    const HAS_VALUES: bool = true;

    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        self.matches(payload, key.salted(self.salt))
    }

    fn same_kernel(&self, other: &Ribbon) -> bool {
        self.fast == other.fast && self.empty == other.empty
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Ribbon>) -> QueryFn<W::Asked> {
        macro_rules! run {
            ($kernel:ty) => {
                leaf.by::<W, One<$kernel>, _>(self.cpu)
            };
        }
        match self.empty {
            true => QueryFn::portable::<Never>(),
            false => with_kernel!(self, leaf.by::<W, Any, _>(self.cpu), run),
        }
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Ribbon>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        macro_rules! run {
            ($kernel:ty) => {
                arch::dispatch(self.cpu, Many::<$kernel, bool> { leaf, keys, out, kernel: PhantomData })
            };
        }
        match self.empty {
            true => out.fill(false),
            false => with_kernel!(self, leaf.one_by_one(keys, out, Ribbon::contains), run),
        }
    }

    fn get(&self, payload: &[u8], key: Digest) -> u32 {
        self.read(payload, key.salted(self.salt))
    }

    #[cfg(feature = "maps")]
    fn value_fn(&self, leaf: &ShardedLeaf<Ribbon>) -> Option<QueryFn<Leaf, u32>> {
        Some(values::value_fn(self, leaf))
    }

    #[cfg(feature = "maps")]
    fn get_many(&self, leaf: &ShardedLeaf<Ribbon>, _: &[u8], keys: &[Digest], out: &mut [u32]) {
        values::get_many(self, leaf, keys, out);
    }
}

/// Directory entry, all varints:
///
/// ```text
///   number of the salt | width * 256 | 0 | number of levels | per level: shape, attempt, buckets
///                                                                  (standard shape: rows per bucket instead of buckets)
/// ```
impl Geometry for Ribbon {
    const NAME: &'static str = "ribbon";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number as u64);
        put_varint(out, self.width() as u64);
        put_varint(out, 0);
        put_varint(out, self.levels().count() as u64);
        for level in self.levels() {
            put_varint(out, level.shape as u64);
            put_varint(out, level.attempt as u64);
            let standard = level.shape as usize == STANDARD;
            put_varint(out, if standard { level.bucket() } else { level.buckets });
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Ribbon, FormatError> {
        let number = from.within("salt", 0..=MAX_NUMBER)? as u32;
        let width = from.within("width", 256..=MAX_WIDTH as u64 * 256)? as u32;
        let width = Width { whole: width / 256, part: width % 256 };
        from.within("homogeneous", 0..=0)?;
        let count = from.within("levels", 0..=64)?;
        let (mut first, mut rest) = (None, from.room(count.saturating_sub(1))?);
        let mut at = 0;
        for _ in 0..count {
            let shape = from.within("shape", 0..=SHAPES.len() as u64 - 1)? as usize;
            let attempt = from.within("attempt", 0..=u32::MAX as u64)? as u32;
            let level = match shape {
                STANDARD => {
                    // The offset in a bucket is a 32-bit fraction.
                    let bucket = from.within("rows", 0..=u32::MAX as u64)?;
                    Level::new(STANDARD, attempt, 1, bucket, width, at)
                }
                _ => {
                    let buckets = from.within("buckets", 1..=MAX_ROWS / SHAPES[shape].bucket)?;
                    Level::new(shape, attempt, buckets, 0, width, at)
                }
            };
            at = level.end();
            match first {
                None => first = Some(level),
                Some(_) => rest.push(level),
            }
        }
        Ok(Ribbon::new(salt, number, width, first, rest.into()))
    }

    fn payload_len(&self) -> u64 {
        self.levels().last().map_or(0, Level::end)
    }

    fn fpr(&self) -> f64 {
        if self.empty { 0.0 } else { self.first.fpr(self.width) }
    }

    fn details(&self) -> String {
        let kind = if self.first.shape().bumping { "bumped" } else { "standard" };
        let levels = match self.levels().count() {
            1 => "1 level".to_string(),
            n => format!("{n} levels"),
        };
        format!("{}, {kind}, band {}, {levels}", bits_in_words(self.width()), self.first.shape().band)
    }
}
