//! a level and a key -> the value there, or whether a member reads it: the straight-line queries of a ribbon.
//!
//! One kernel per shape, compiled for every instruction set. The number of columns is no constant: it is where octets lie and which of
//! the parities count. What a kernel does not serve goes the plain way of [`Outcome::plainly`], which gives the same answers.

use std::marker::PhantomData;

use super::{FAR, Level, Ribbon, SHAPES, SMALL_WIDE, STEPS, WIDE, far, fingerprint, place};
use crate::arch::lanes::Lane;
use crate::arch::{self, Answer, Isa, Kernel};
use crate::hash::{Digest, reduce};
use crate::leaves::{Part, ShardedLeaf};

/// A way to read a level's value, for one shape.
pub(super) trait Lookup: Copy + 'static {
    const SHAPE: usize;
    /// As [`Kernel::V4`].
    const V4: bool = true;

    /// Where in the payload a row's query starts to read.
    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        level.octet_at(row / 8)
    }

    /// Bytes that a value takes from there on.
    #[inline(always)]
    fn span(level: &Level) -> usize {
        (SHAPES[Self::SHAPE].band * u64::from(level.whole)) as usize
    }

    /// The bits of a value that starts at a row.
    #[inline(always)]
    fn mask(level: &Level, row: u64) -> u32 {
        u32::MAX >> (32 - level.whole - (row / 8 >= level.cut) as u32)
    }

    /// The value at a row, with any bits outside its mask; nothing if the kernel does not serve this row.
    fn value<I: Isa>(level: &Level, payload: &[u8], band: u64, row: u64) -> Option<u32>;

    /// The row of a key, and whether it was bumped from this level.
    #[inline(always)]
    fn locate(level: &Level, payload: &[u8], h: u64) -> (u64, bool) {
        let row = reduce(h, level.rows);
        (row, SHAPES[Self::SHAPE].bumped(payload, level.bumps_at, row))
    }
}

/// Up to eight columns, `R` of them unless that is 0. `PART`: some octets have one more than others.
#[derive(Clone, Copy)]
pub(super) struct Columns<const SHAPE: usize, const PART: bool, const R: u32>;

impl<const SHAPE: usize, const PART: bool, const R: u32> Columns<SHAPE, PART, R> {
    #[inline(always)]
    fn whole(level: &Level) -> u32 {
        if R > 0 { R } else { level.whole }
    }
}

impl<const SHAPE: usize, const PART: bool, const R: u32> Lookup for Columns<SHAPE, PART, R> {
    const SHAPE: usize = SHAPE;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        match PART {
            true => level.octet_at(row / 8),
            false => (level.rows_at + row / 8 * u64::from(Self::whole(level))) as usize,
        }
    }

    #[inline(always)]
    fn mask(level: &Level, row: u64) -> u32 {
        u32::MAX >> (32 - Self::whole(level) - (PART && row / 8 >= level.cut) as u32)
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], band: u64, row: u64) -> Option<u32> {
        let mut stride = Self::whole(level) as usize;
        if PART {
            let octet = row / 8;
            let beyond = octet >= level.cut;
            if !beyond && octet + SHAPES[SHAPE].band > level.cut {
                return None; // octets of both kinds
            }
            stride += beyond as usize;
        }
        let bytes = payload.get(Self::place(level, row)..)?;
        let near = I::parities(bytes, stride, band)?;
        if SHAPES[SHAPE].band == 8 {
            return Some(near);
        }
        Some(near ^ I::parities(bytes.get(8 * stride..)?, stride, far(band))?)
    }
}

/// More than eight columns. `PART`: some octets have one more than others.
#[derive(Clone, Copy)]
pub(super) struct Broad<const SHAPE: usize, const PART: bool>;

impl<const SHAPE: usize, const PART: bool> Lookup for Broad<SHAPE, PART> {
    const SHAPE: usize = SHAPE;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        Columns::<SHAPE, PART, 0>::place(level, row)
    }

    #[inline(always)]
    fn mask(level: &Level, row: u64) -> u32 {
        Columns::<SHAPE, PART, 0>::mask(level, row)
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], band: u64, row: u64) -> Option<u32> {
        let octet = row / 8;
        let beyond = PART && octet >= level.cut;
        if SHAPES[SHAPE].band != 8 || (PART && !beyond && octet + 8 > level.cut) {
            return None;
        }
        let stride = level.whole as usize + beyond as usize;
        I::broad_parities(payload.get(Self::place(level, row)..)?, stride, band)
    }
}

/// Bands of 128 coefficients, one column.
#[derive(Clone, Copy)]
pub(super) struct Bit<const SHAPE: usize>;

impl<const SHAPE: usize> Lookup for Bit<SHAPE> {
    const SHAPE: usize = SHAPE;
    const V4: bool = false;

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        (level.rows_at + row / 8) as usize
    }

    #[inline(always)]
    fn mask(_: &Level, _: u64) -> u32 {
        1
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], band: u64, row: u64) -> Option<u32> {
        let bytes: &[u8; 16] = payload.get(Self::place(level, row)..)?.first_chunk()?;
        let x = u128::from_le_bytes(*bytes) & (u128::from(far(band)) << 64 | u128::from(band));
        Some((x as u64 ^ (x >> 64) as u64).count_ones() & 1)
    }
}

/// Calls `$run!(kernel)` with the kernel of a ribbon, or `$any`.
macro_rules! with_kernel {
    ($ribbon:expr, $any:expr, $run:ident) => {{
        use crate::leaves::ribbon::{Fast, NARROW, SMALL, SMALL_WIDE, WIDE};
        let Fast { shape, part, broad, bit, eight } = $ribbon.fast;
        match (shape as usize, part, broad, bit) {
            (SMALL, ..) if eight => $run!(Columns<SMALL, false, 8>),
            (NARROW, ..) if eight => $run!(Columns<NARROW, false, 8>),
            (SMALL, _, true, _) => $run!(Broad<SMALL, true>),
            (NARROW, true, true, _) => $run!(Broad<NARROW, true>),
            (NARROW, false, true, _) => $run!(Broad<NARROW, false>),
            (SMALL, true, ..) => $run!(Columns<SMALL, true, 0>),
            (SMALL, false, ..) => $run!(Columns<SMALL, false, 0>),
            (NARROW, true, ..) => $run!(Columns<NARROW, true, 0>),
            (NARROW, false, ..) => $run!(Columns<NARROW, false, 0>),
            (SMALL_WIDE, _, _, true) => $run!(Bit<SMALL_WIDE>),
            (WIDE, _, _, true) => $run!(Bit<WIDE>),
            (SMALL_WIDE, true, false, _) => $run!(Columns<SMALL_WIDE, true, 0>),
            (SMALL_WIDE, false, false, _) => $run!(Columns<SMALL_WIDE, false, 0>),
            (WIDE, true, false, _) => $run!(Columns<WIDE, true, 0>),
            (WIDE, false, false, _) => $run!(Columns<WIDE, false, 0>),
            _ => $any,
        }
    }};
}

/// What a query finds out: whether a member reads this, or the value itself.
pub(super) trait Outcome: Copy {
    /// At a row; nothing if the kernel does not serve it. `key` are the coefficients on the first level, `band` those on this one.
    fn at<K: Lookup, I: Isa>(level: &Level, payload: &[u8], key: u64, band: u64, row: u64) -> Option<Self>;

    /// For a key, without any kernel.
    fn plainly(ribbon: &Ribbon, payload: &[u8], key: Digest) -> Self;
}

impl Outcome for bool {
    #[inline(always)]
    fn at<K: Lookup, I: Isa>(level: &Level, payload: &[u8], key: u64, band: u64, row: u64) -> Option<bool> {
        Some((K::value::<I>(level, payload, band, row)? ^ fingerprint(key)) & K::mask(level, row) == 0)
    }

    #[inline(always)]
    fn plainly(ribbon: &Ribbon, payload: &[u8], key: Digest) -> bool {
        ribbon.matches(payload, key)
    }
}

impl Ribbon {
    /// Whether the only bit of a key is `bit`; nothing where no kernel serves.
    #[inline(always)]
    pub(in crate::leaves) fn bit_is<I: Isa>(&self, payload: &[u8], key: Digest, bit: u32) -> Option<bool> {
        if !self.fast.bit || self.fast.shape as usize != WIDE {
            return None;
        }
        let band = key.salted(self.salt);
        let (row, bumped) = Bit::<WIDE>::locate(&self.first, payload, self.first_place(key, band));
        if bumped { None } else { Some(Bit::<WIDE>::value::<I>(&self.first, payload, band, row)? == bit) }
    }
}

/// A ribbon of one bit that is queried along with other columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactBit {
    pub(crate) lane: Lane,
    /// Top bits of a digest that its place does not depend on.
    pub(crate) skip: u32,
    /// Where the thresholds start, two bits to a bucket of 64 octets.
    thresholds_at: u64,
    /// How many octets of its bucket each of the four bumps, a byte each.
    thresholds: u64,
}

impl ExactBit {
    /// Whether the keys of an octet are passed on to the next level; no if `known` is not 0. The one comparison stands for two
    /// conditions, of which compilers would make two branches.
    #[inline(always)]
    pub(crate) fn bumped(&self, file: &[u8], octet: u64, known: u32) -> bool {
        let byte = file.get((self.thresholds_at + (octet >> 8)) as usize).copied().unwrap_or(0);
        let step = byte >> (octet >> 5 & 6) & 3;
        (octet & 63) + (u64::from(known) << 8) < self.thresholds >> (8 * step) & 255
    }
}

impl Ribbon {
    /// The numbers of one bit whose place follows from the bits of a digest, in a file where the payload starts at `start`.
    pub(in crate::leaves) fn exact_bit(&self, start: u64) -> Option<ExactBit> {
        let Ribbon { salt, number, skip, fast, first: Level { rows, rows_at, bumps_at, .. }, empty, .. } = *self;
        let steps = match (fast.shape as usize, fast.bit && !empty && number == 0) {
            (WIDE, true) => STEPS,
            (SMALL_WIDE, true) => [0; 4],
            _ => return None,
        };
        let thresholds = steps.iter().rev().fold(0, |word, step| (word << 8) | (step / 8));
        let lane = Lane { salt: salt.words(), rows: 0, strips: rows / 8, octets: 1, at: start + rows_at, factor: FAR };
        Some(ExactBit { lane, skip, thresholds_at: start + bumps_at, thresholds })
    }
}

impl Part<Ribbon> {
    /// The numbers of an exact bit, for a query that reads the file.
    pub(crate) fn exact_bit(&self) -> Option<ExactBit> {
        self.geometry.exact_bit(self.start as u64)
    }

    /// Whether a key that the first level passed on has the only bit of a member.
    pub(crate) fn deep_bit(&self, key: Digest) -> bool {
        self.geometry.deep::<Bit<WIDE>, bool>(&self.payload, key)
    }
}

/// One query that the first level passed on.
pub(super) struct Deep<'a, K, O> {
    pub(super) ribbon: &'a Ribbon,
    pub(super) payload: &'a [u8],
    pub(super) key: Digest,
    pub(super) kinds: PhantomData<(K, O)>,
}

impl<K: Lookup, O: Outcome> Kernel for Deep<'_, K, O> {
    const V4: bool = K::V4;
    type Output = O;
    #[inline(always)]
    fn run<I: Isa>(self) -> O {
        let Deep { ribbon, payload, key, .. } = self;
        if I::QUICK
            && let Some((level, band, row)) = ribbon.deeper::<K>(payload, key)
            && let Some(found) = O::at::<K, I>(level, payload, key.salted(ribbon.salt), band, row)
        {
            return found;
        }
        O::plainly(ribbon, payload, key)
    }
}

impl Ribbon {
    /// The first later level that has a key, with its coefficients and row there; nothing if bands differ from those of the first.
    #[inline(always)]
    fn deeper<K: Lookup>(&self, payload: &[u8], key: Digest) -> Option<(&Level, u64, u64)> {
        let mut band = key.salted(self.salt);
        for level in &self.rest {
            // All levels but the last have thresholds, and the last one none.
            if level.shape().band != SHAPES[K::SHAPE].band {
                return None;
            }
            band = level.rehash(band);
            let row = reduce(place(band), level.rows);
            if !level.shape().bumped(payload, level.bumps_at, row) {
                return Some((level, band, row));
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
        let band = key.salted(ribbon.salt);
        let (row, bumped) = K::locate(level, payload, ribbon.first_place(key, band));
        if bumped {
            return ribbon.deep::<K, O>(payload, key);
        }
        match O::at::<K, I>(level, payload, band, band, row) {
            Some(found) => found,
            None => O::plainly(ribbon, payload, key),
        }
    }
}

/// One query of any shape.
pub(super) struct Any;

impl<O: Outcome> Answer<Part<Ribbon>, O> for Any {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Ribbon>, key: Digest) -> O {
        O::plainly(&part.geometry, &part.payload, key)
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
    bands: [u64; BATCH],
    rows: [u64; BATCH],
    bumped: [u8; BATCH],
}

/// Bytes that come from memory at once.
const LINE: usize = 64;

// Indices: iterators of several slices are a third more code for each of a hundred forms.
#[allow(clippy::needless_range_loop)]
impl<K: Lookup, O: Outcome> Many<'_, K, O> {
    #[inline(always)]
    fn rounds<I: Isa, const SINGLE: bool>(self) {
        let Many { leaf, keys, out, .. } = self;
        let mut places = Places { bands: [0; BATCH], rows: [0; BATCH], bumped: [0; BATCH] };
        let mut done = 0;
        while done < keys.len() {
            let end = keys.len().min(done + BATCH);
            let (keys, out) = (&keys[done..end], &mut out[done..end]);
            let count = Self::find::<SINGLE>(leaf, keys, &mut places);
            for i in 0..keys.len() {
                let part = leaf.part_of::<SINGLE>(keys[i]);
                let (ribbon, payload) = (&part.geometry, &part.payload[..]);
                let band = places.bands[i];
                out[i] = match O::at::<K, I>(&ribbon.first, payload, band, band, places.rows[i]) {
                    Some(found) => found,
                    None => O::plainly(ribbon, payload, keys[i]),
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
            let band = keys[i].salted(ribbon.salt);
            let (row, bumped) = K::locate(level, payload, ribbon.first_place(keys[i], band));
            places.bands[i] = band;
            places.rows[i] = row;
            let (at, last) = (K::place(level, row), K::span(level) - 1);
            (0..last).step_by(LINE).for_each(|line| arch::prefetch(payload, at + line));
            arch::prefetch(payload, at + last);
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
            out[i] = part.geometry.deep::<K, O>(&part.payload, keys[i]);
        }
    }
}
