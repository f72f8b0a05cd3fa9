//! digests -> static function or filter in about width bits per key: bumped and standard ribbons.
//!
//! # The idea
//!
//! Every key is one linear equation over GF(2): the parity of the solution bits under a random band of 64 coefficients, starting at
//! a row that its hash chooses, must equal the key's value. Sorted by start the equations form a ribbon:
//!
//! ```text
//!   start row ->
//!   key a   1 0 1 1 0 . . . . . . .          w = 5 coefficients per key, n keys, m rows.
//!   key b   . 1 1 0 0 1 . . . . . .          Elimination never leaves the band; back substitution
//!   key c   . . . 1 0 1 1 0 . . . .          from the last row gives one column of solution bits
//!   key d   . . . . . 1 1 0 1 1 . .          per value bit.
//! ```
//!
//! A query is one parity per column. There are two ways to make the system solvable:
//!
//! * **standard** [Ribbon]: a few percent more rows than keys. For some thousands of keys; with more the needed slack grows.
//! * **bumped** [BuRR]: *fewer* rows than keys. Rows come in buckets; where a bucket cannot take all its keys, those with the
//!   smallest offsets are *bumped* to the next level, and a threshold per bucket records which. Overloading the first level by
//!   2 % leaves almost no row empty.
//!
//! # Octets
//!
//! Bands start at multiples of eight rows. Eight rows are an *octet*: in the table one byte per column, so that a query of `r` columns
//! reads `8 r` neighbouring bytes from a byte on, whatever its start. All columns are evaluated before the one comparison, because
//! leaving early costs more in mispredicted branches than it saves.
//!
//! ```text
//!   level 0: octet 0 [col 0 | col 1 | .. | col r-1]  octet 1 [..] ..   thresholds;   level 1: ..
//! ```
//!
//! With a *fractional* width r + p, octets from `cut` on have one column more; a key checks the extra bit when its first octet has it.
//!
//! The row of a key is monotone in its digest, as long as digests are spread evenly. So sorted digests are in the order of
//! elimination, and nothing is sorted again. Where they crowd, too many keys are bumped: that attempt has failed, and the next
//! one takes places from a salted hash.
//!
//! A level is eliminated in *strips* of 16,384 to 65,536 rows. A strip spills into the first octets of the next one, whose own keys
//! there are bumped: strips are independent, so two of them advance in lockstep, and threads share them out.
//!
//! Up to four columns have bands of 128 coefficients: there a byte of threshold per 256 rows is too much. Filters that nest have bands of
//! 64 whatever their width, and two bits of threshold.
//!
//! # Why not the neighbours
//!
//! Binary fuse filters need 9-13 % more space for the same rate; Bloom filters need 44 % and more.
//!
//! Papers: [Ribbon] section 2, [BuRR] sections 3 and 4 (bumping, thresholds, the overloaded first level).

use std::marker::PhantomData;

use crate::arch::{self, Level as Cpu, QueryFn, octet, rows};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::MAX_NUMBER;
use crate::hash::{Digest, Salt, fold, reduce, scramble};
#[cfg(feature = "maps")]
use crate::leaves::Leaf;
use crate::leaves::{Geometry, Never, Query, ShardedLeaf, Way, bits_in_words};
use crate::math::portable::exp2;
pub(crate) use kernel::ExactBit;
use kernel::{Any, Bit, Broad, Columns, Deep, Lookup, Many, One, Outcome};

#[macro_use]
mod kernel;
pub(crate) mod beside;
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
    /// Octets of a band: 8 or 16.
    band: u64,
    /// log2 of the rows per bucket.
    bucket: u32,
    thresholds: Thresholds,
}

/// Which keys a bucket bumps: those with offsets below a threshold.
#[derive(Debug, PartialEq, Eq)]
enum Thresholds {
    /// No keys: the level takes all.
    None,
    /// One byte for each bucket.
    Bytes,
    /// Two bits for each bucket, which choose one of these.
    Steps([u64; 4]),
}

#[rustfmt::skip]
const SHAPES: [Shape; 5] = [
    Shape { band: 8, bucket: 8, thresholds: Thresholds::None },
    Shape { band: 8, bucket: 8, thresholds: Thresholds::Bytes },
    Shape { band: 16, bucket: 9, thresholds: Thresholds::None },
    Shape { band: 16, bucket: 9, thresholds: Thresholds::Steps(STEPS) },
    Shape { band: 8, bucket: 8, thresholds: Thresholds::Steps([0, 24, 64, 256]) },
];
/// The second is above what a neighbouring strip spills: 120 rows.
const STEPS: [u64; 4] = [0, 40, 128, 512];
/// Bands of 64 coefficients, without thresholds and with.
const SMALL: usize = 0;
const NARROW: usize = 1;
/// Bands of 128.
const SMALL_WIDE: usize = 2;
const WIDE: usize = 3;
/// Bands of 64 for filters that nest, whatever their width: of one column, a byte of threshold for 256 rows would be 3 % of the table.
const NESTED: usize = 4;

/// More rows than this in one level are refused: 2^40 of them are a terabit per column.
const MAX_ROWS: u64 = 1 << 40;

impl Shape {
    /// Bytes of the thresholds for so many rows.
    fn thresholds_len(&self, rows: u64) -> u64 {
        let buckets = rows.div_ceil(1 << self.bucket);
        match self.thresholds {
            Thresholds::None => 0,
            Thresholds::Bytes => buckets,
            Thresholds::Steps(_) => buckets.div_ceil(4),
        }
    }

    /// log2 of the rows that share a byte of thresholds; 63, all rows, where there are none.
    #[inline(always)]
    const fn shift(&self) -> u32 {
        match self.thresholds {
            Thresholds::None => 63,
            Thresholds::Bytes => self.bucket,
            Thresholds::Steps(_) => self.bucket + 2,
        }
    }

    /// Whether a row's keys are passed on to the next level, by the byte of thresholds for this row.
    #[inline(always)]
    fn is_bumped(&self, byte: u8, row: u64) -> bool {
        let threshold = match self.thresholds {
            Thresholds::None => return false,
            Thresholds::Bytes => u64::from(byte),
            Thresholds::Steps(steps) => steps[(byte >> (2 * (row >> self.bucket & 3))) as usize & 3],
        };
        row & ((1 << self.bucket) - 1) < threshold
    }

    /// The same; thresholds start at `at`.
    #[inline(always)]
    fn bumped(&self, payload: &[u8], at: u64, row: u64) -> bool {
        self.is_bumped(payload.get((at + (row >> self.shift())) as usize).copied().unwrap_or(0), row)
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
    /// Rows where bands start, a multiple of eight.
    rows: u64,
    /// Columns of every octet; from which octet on there is one more.
    whole: u32,
    cut: u64,
    /// Offsets in the payload: rows, then thresholds.
    rows_at: u64,
    bumps_at: u64,
}

impl Level {
    /// The level with bands in `rows` rows, its bytes placed from `at` on.
    fn new(shape: usize, attempt: u32, rows: u64, width: Width, at: u64) -> Level {
        let cut = width.cut(rows);
        let mut level = Level {
            shape: shape as u8,
            attempt,
            twist: scramble(attempt as u64),
            rows,
            whole: width.whole,
            cut,
            rows_at: at,
            bumps_at: 0,
        };
        level.bumps_at = level.octet_at(rows / 8 + level.shape().band - 1) as u64;
        level
    }

    /// The probability that a random value agrees with a stored one: one bit more is compared beyond the cut.
    fn fpr(&self, width: Width) -> f64 {
        let wide = 1.0 - (self.cut as f64 * 8.0 / self.rows as f64).min(1.0);
        (1.0 - wide / 2.0) * exp2(-f64::from(width.whole))
    }

    #[inline(always)]
    fn shape(&self) -> &'static Shape {
        &SHAPES[self.shape as usize]
    }

    /// Where the level's bytes end.
    fn end(&self) -> u64 {
        self.bumps_at + self.shape().thresholds_len(self.rows)
    }

    /// The coefficients that this level sees of a key whose coefficients on the level before were these.
    #[inline]
    fn rehash(&self, band: u64) -> u64 {
        fold(band ^ self.twist, 0xd6e8_feb8_6659_fd93)
    }

    /// Where an octet starts, in bytes.
    #[inline(always)]
    fn octet_at(&self, octet: u64) -> usize {
        (self.rows_at + octet * u64::from(self.whole) + octet.saturating_sub(self.cut)) as usize
    }

    /// The payload from the octet of a row on, and the bytes of an octet; nothing if octets of the band differ.
    #[inline(always)]
    fn octets<'a>(&self, payload: &'a [u8], row: u64) -> Option<(&'a [u8], usize)> {
        let octet = row / 8;
        let beyond = octet >= self.cut;
        if !beyond && octet + self.shape().band > self.cut {
            return None;
        }
        Some((payload.get(self.octet_at(octet)..)?, self.whole as usize + beyond as usize))
    }

    /// The value under a key's band: any band, any width, any bytes. What the kernels do faster.
    fn value(&self, payload: &[u8], band: u64, row: u64) -> u32 {
        let (octet, whole) = (row / 8, self.whole as usize);
        let columns = whole + (octet >= self.cut) as usize;
        let octets = self.shape().band;
        if octet >= self.cut || octet + octets <= self.cut {
            // All octets have as many columns.
            let bytes = |from: u64| payload.get(self.octet_at(octet + from)..).unwrap_or(&[]);
            let parities = if columns > 8 { octet::broad_parities } else { octet::parities };
            let far = if octets == 8 { 0 } else { parities(bytes(8), columns, far(band)) };
            return (parities(bytes(0), columns, band) ^ far) & (u32::MAX >> (32 - columns));
        }
        let mut value = 0;
        for k in 0..octets {
            let coefficients = (if k < 8 { band } else { far(band) } >> (8 * (k & 7))) as u8;
            let bytes = payload.get(self.octet_at(octet + k)..).unwrap_or(&[]).iter().take(columns);
            for (column, byte) in bytes.enumerate() {
                value ^= ((byte & coefficients).count_ones() & 1) << column;
            }
        }
        value
    }
}

/// A place for a key with these coefficients, where its digest does not give it one.
#[inline(always)]
fn place(band: u64) -> u64 {
    fold(band ^ 0x8ebc_6af0_9c88_c6e3, 0xe703_7ed1_a0b4_28db)
}

/// The second half of a band of 128 coefficients.
#[inline(always)]
fn far(band: u64) -> u64 {
    fold(band, FAR)
}
const FAR: u64 = 0x5895_67b8_45fb_2c9d;

/// The fingerprint of a key. Its bits depend on the coefficients, but no sum of coefficients is one of them.
#[inline(always)]
pub(crate) fn fingerprint(band: u64) -> u32 {
    (band.wrapping_mul(0x9e6c_63d0_876a_68ed) >> 32) as u32
}

/// Bits per value: `whole`, and one more from a cut on that leaves `part` 256ths of the starts with it, or a little more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    pub(crate) whole: u32,
    pub(crate) part: u32,
}

impl Width {
    /// The first octet with an extra column, for a level where bands start in the first `rows` rows: so that `part` 256ths of the
    /// starts, and no fewer, lie beyond it.
    fn cut(self, rows: u64) -> u64 {
        if self.part == 0 { u64::MAX } else { rows * (256 - self.part as u64) / (256 * 8) }
    }

    /// Columns, with the one that only some octets have.
    fn columns(self) -> u32 {
        self.whole + (self.part > 0) as u32
    }

    fn mask(self, extra: bool) -> u32 {
        u32::MAX >> (32 - self.whole - extra as u32) // 1..=32 columns: the width is checked when it is made
    }
}

/// How to read one ribbon.
#[derive(Clone, Debug)]
pub(crate) struct Ribbon {
    pub(in crate::leaves) cpu: Cpu,
    salt: Salt,
    /// The salt of number 0.
    plain: Salt,
    number: u32,
    /// Top bits in which the digests agree: places come from those below.
    skip: u32,
    width: Width,
    fast: Fast,
    /// Levels, the first one apart because nearly all queries end there. No level: no keys.
    first: Level,
    rest: Box<[Level]>,
    empty: bool,
}

/// Which straight-line kernel answers for the first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fast {
    shape: u8,
    /// Whether some octets have a column more.
    part: bool,
    /// More than eight columns.
    broad: bool,
    /// One.
    bit: bool,
    /// Eight.
    eight: bool,
}

impl Ribbon {
    fn new(salt: Salt, number: u32, skip: u32, width: Width, first: Option<Level>, rest: Box<[Level]>) -> Ribbon {
        let empty = first.is_none();
        let first = first.unwrap_or(Level::new(SMALL, 0, 8, width, 0));
        let columns = width.columns();
        let (part, broad, bit) = (width.part > 0, columns > 8, columns == 1);
        let fast = Fast { shape: first.shape, part, broad, bit, eight: columns == 8 && !part };
        let (plain, salt) = (salt.child(0), salt.child(number as u64));
        Ribbon { cpu: Cpu::detect(), salt, plain, number, skip, width, fast, first, rest, empty }
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

    /// What chooses the row of a key with these coefficients on the first level.
    #[inline(always)]
    fn first_place(&self, key: Digest, band: u64) -> u64 {
        if self.number == 0 { key.hi << self.skip } else { place(band) }
    }

    /// The value and the mask of valid bits for any key on any level, without any kernel.
    fn value_and_mask(&self, payload: &[u8], key: Digest) -> (u32, u32) {
        let mut band = key.salted(self.salt);
        let mut h = self.first_place(key, band);
        for (i, level) in self.levels().enumerate() {
            if i > 0 {
                band = level.rehash(band);
                h = place(band);
            }
            let row = reduce(h, level.rows);
            if !level.shape().bumped(payload, level.bumps_at, row) {
                return (level.value(payload, band, row), self.width.mask(row / 8 >= level.cut));
            }
        }
        (0, 0) // no builder leaves a key without a level; hostile bytes may
    }

    /// Whether a key reads what a member reads, without any kernel.
    #[inline(never)]
    fn matches(&self, payload: &[u8], key: Digest) -> bool {
        let (value, mask) = self.value_and_mask(payload, key);
        !self.empty && (value ^ fingerprint(key.salted(self.salt))) & mask == 0
    }

    /// The value of a key, without any kernel.
    #[inline(never)]
    fn read(&self, payload: &[u8], key: Digest) -> u32 {
        self.value_and_mask(payload, key).0
    }

    /// What a key that the first level passed on reads. Apart, because the few keys it serves must not cost the others
    /// registers.
    #[inline(never)]
    fn deep<K: Lookup, O: Outcome>(&self, payload: &[u8], key: Digest) -> O {
        arch::dispatch(self.cpu, Deep::<K, O> { ribbon: self, payload, key, kinds: PhantomData })
    }
}

impl Query for Ribbon {
    const HAS_VALUES: bool = true;

    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        self.matches(payload, key)
    }

    fn same_kernel(&self, other: &Ribbon) -> bool {
        self.fast == other.fast && self.empty == other.empty
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Ribbon>) -> QueryFn<W::Asked> {
        macro_rules! run {
            ($kernel:ty) => {
                if self.skip == 0 {
                    QueryFn::new::<One<W, $kernel, true>>(self.cpu)
                } else {
                    QueryFn::new::<One<W, $kernel, false>>(self.cpu)
                }
            };
        }
        match self.empty {
            true => QueryFn::portable::<Never>(),
            false => with_kernel!(self, leaf.by::<W, Any, _>(self.cpu), run),
        }
    }

    fn first_level(&self) -> Option<(rows::Form, rows::Place)> {
        let Level { rows, whole, cut, bumps_at: bumps, .. } = self.first;
        let shape = self.first.shape();
        let (band, columns, shift) = (shape.band as u8, whole as u8, shape.shift() as u8);
        let form = rows::Form { salt: self.plain, skip: self.skip, band, columns, shift };
        let bumps = if shape.thresholds == Thresholds::None { 0 } else { bumps };
        (!self.empty).then_some((form, rows::Place { rows, bumps, cut, salted: self.number > 0 }))
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
        self.read(payload, key)
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
///   number of the salt | width * 256 | skipped bits | number of levels | per level: shape, attempt, rows / 8
/// ```
impl Geometry for Ribbon {
    const NAME: &'static str = "ribbon";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number as u64);
        put_varint(out, self.width() as u64);
        put_varint(out, self.skip as u64);
        put_varint(out, self.levels().count() as u64);
        for level in self.levels() {
            put_varint(out, level.shape as u64);
            put_varint(out, level.attempt as u64);
            put_varint(out, level.rows / 8);
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Ribbon, FormatError> {
        let number = from.within("salt", 0..=MAX_NUMBER)? as u32;
        let width = from.within("width", 256..=MAX_WIDTH as u64 * 256)? as u32;
        let width = Width { whole: width / 256, part: width % 256 };
        let skip = from.within("skipped bits", 0..=63)? as u32;
        let count = from.within("levels", 0..=64)?;
        let (mut first, mut rest) = (None, from.room(count.saturating_sub(1))?);
        let mut at = 0;
        for _ in 0..count {
            let number = from.varint()?;
            let unknown = || FormatError::unsupported("shape of a ribbon", number);
            let shape = usize::try_from(number).ok().filter(|&shape| shape < SHAPES.len()).ok_or_else(unknown)?;
            let attempt = from.within("attempt", 0..=u32::MAX as u64)? as u32;
            let rows = 8 * from.within("octets", 1..=MAX_ROWS / 8)?;
            let level = Level::new(shape, attempt, rows, width, at);
            at = level.end();
            match first {
                None => first = Some(level),
                Some(_) => rest.push(level),
            }
        }
        Ok(Ribbon::new(salt, number, skip, width, first, rest.into()))
    }

    fn payload_len(&self) -> u64 {
        self.levels().last().map_or(0, Level::end)
    }

    fn fpr(&self) -> f64 {
        if self.empty { 0.0 } else { self.first.fpr(self.width) }
    }

    fn details(&self) -> String {
        let Shape { band, thresholds, .. } = self.first.shape();
        let kind = if *thresholds == Thresholds::None { "standard" } else { "bumped" };
        let levels = match self.levels().count() {
            1 => "1 level".to_string(),
            n => format!("{n} levels"),
        };
        format!("{}, {kind}, band {}, {levels}", bits_in_words(self.width()), 8 * band)
    }
}
