//! a leaf and a key -> the value there, or whether a member reads it: the straight-line queries of a ribbon.
//!
//! One kernel per shape, compiled for every instruction set. The number of columns is no constant: it is where octets lie and which of
//! the parities count. A kernel reads the first level by [`Rows`](crate::arch::rows::Rows), which were checked when the file was opened.
//! What a kernel does not serve goes the plain way of [`Outcome::plainly`], which gives the same answers.

use std::marker::PhantomData;

use super::{FAR, Level, Ribbon, SHAPES, SMALL_WIDE, STEPS, Thresholds, WIDE, far, fingerprint, place};
use crate::arch::lanes::Lane;
use crate::arch::rows::{self, Found, View};
use crate::arch::{Answer, Isa, Kernel};
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::leaf::Output;
use crate::leaves::{Part, ShardedLeaf, Way};

/// A way to read a level's value, for one shape.
pub(super) trait Lookup: rows::Shape + 'static {
    const SHAPE: usize;
    /// As [`Kernel::V4`].
    const V4: bool = true;

    /// The value under a band that starts with these octets, with any bits beyond its columns; nothing if the kernel does not serve
    /// them.
    fn value<I: Isa>(octets: &[u8], stride: usize, band: u64) -> Option<u32>;

    /// Whether a key is bumped from its row.
    #[inline(always)]
    fn is_bumped(found: &Found<'_, Self>) -> bool {
        SHAPES[Self::SHAPE].thresholds != Thresholds::None
            && SHAPES[Self::SHAPE].is_bumped(found.threshold(), found.row)
    }
}

/// The constants of a kernel, by its shape.
macro_rules! shape {
    ($shape:expr, $columns:expr, $part:expr) => {
        const BAND: u8 = SHAPES[$shape].band as u8;
        const SHIFT: u8 = SHAPES[$shape].shift() as u8;
        const COLUMNS: u8 = $columns;
        const PART: bool = $part;
    };
}

/// Up to eight columns, `R` of them unless that is 0. `PART`: some octets have one more than others.
#[derive(Clone, Copy)]
pub(super) struct Columns<const SHAPE: usize, const PART: bool, const R: u8>;

impl<const SHAPE: usize, const PART: bool, const R: u8> rows::Shape for Columns<SHAPE, PART, R> {
    shape!(SHAPE, R, PART);
}

impl<const SHAPE: usize, const PART: bool, const R: u8> Lookup for Columns<SHAPE, PART, R> {
    const SHAPE: usize = SHAPE;

    #[inline(always)]
    fn value<I: Isa>(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        let near = I::parities(octets, stride, band)?;
        if SHAPES[SHAPE].band == 8 {
            return Some(near);
        }
        Some(near ^ I::parities(octets.get(8 * stride..)?, stride, far(band))?)
    }
}

/// More than eight columns. `PART`: some octets have one more than others.
#[derive(Clone, Copy)]
pub(super) struct Broad<const SHAPE: usize, const PART: bool>;

impl<const SHAPE: usize, const PART: bool> rows::Shape for Broad<SHAPE, PART> {
    shape!(SHAPE, 0, PART);
}

impl<const SHAPE: usize, const PART: bool> Lookup for Broad<SHAPE, PART> {
    const SHAPE: usize = SHAPE;

    #[inline(always)]
    fn value<I: Isa>(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        if SHAPES[SHAPE].band != 8 {
            return None;
        }
        I::broad_parities(octets, stride, band)
    }
}

/// Bands of 128 coefficients, one column.
#[derive(Clone, Copy)]
pub(super) struct Bit<const SHAPE: usize>;

impl<const SHAPE: usize> rows::Shape for Bit<SHAPE> {
    shape!(SHAPE, 1, false);
}

impl<const SHAPE: usize> Lookup for Bit<SHAPE> {
    const SHAPE: usize = SHAPE;
    const V4: bool = false;

    #[inline(always)]
    fn value<I: Isa>(octets: &[u8], _: usize, band: u64) -> Option<u32> {
        let x = u128::from_le_bytes(*octets.first_chunk()?) & (u128::from(far(band)) << 64 | u128::from(band));
        Some((x as u64 ^ (x >> 64) as u64).count_ones() & 1)
    }
}

/// Calls `$run!(kernel)` with the kernel of a ribbon, or `$any`.
macro_rules! with_kernel {
    ($ribbon:expr, $any:expr, $run:ident) => {{
        use crate::leaves::ribbon::{Fast, NARROW, NESTED, SMALL, SMALL_WIDE, WIDE};
        let Fast { shape, part, broad, bit, eight } = $ribbon.fast;
        match (shape as usize, part, broad, bit) {
            (SMALL, ..) if eight => $run!(Columns<SMALL, false, 8>),
            (NARROW, ..) if eight => $run!(Columns<NARROW, false, 8>),
            (SMALL, _, true, _) => $run!(Broad<SMALL, true>),
            (NARROW, true, true, _) => $run!(Broad<NARROW, true>),
            (NARROW, false, true, _) => $run!(Broad<NARROW, false>),
            (NESTED, _, true, _) => $run!(Broad<NESTED, true>),
            (NESTED, true, ..) => $run!(Columns<NESTED, true, 0>),
            (NESTED, false, ..) => $run!(Columns<NESTED, false, 0>),
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
    /// Under a band that starts with these octets; nothing if the kernel does not serve them. `key` are the coefficients on the first level,
    /// `band` those on this one.
    fn at<K: Lookup, I: Isa>(octets: &[u8], stride: usize, key: u64, band: u64) -> Option<Self>;

    /// For a key, without any kernel.
    fn plainly(ribbon: &Ribbon, payload: &[u8], key: Digest) -> Self;
}

/// The bits of a value of so many columns, 1 to 32.
#[inline(always)]
pub(super) fn mask(columns: usize) -> u32 {
    u32::MAX >> ((32 - columns as u32) & 31)
}

impl Outcome for bool {
    #[inline(always)]
    fn at<K: Lookup, I: Isa>(octets: &[u8], stride: usize, key: u64, band: u64) -> Option<bool> {
        Some((K::value::<I>(octets, stride, band)? ^ fingerprint(key)) & mask(stride) == 0)
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
        let (level, band) = (&self.first, key.salted(self.salt));
        let row = reduce(self.first_place(key, band), level.rows);
        if SHAPES[WIDE].bumped(payload, level.bumps_at, row) {
            return None;
        }
        let octets = payload.get((level.rows_at + row / 8) as usize..)?;
        Some(Bit::<WIDE>::value::<I>(octets, 1, band)? == bit)
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
            && let Some((octets, stride)) = level.octets(payload, row)
            && let Some(found) = O::at::<K, I>(octets, stride, key.salted(ribbon.salt), band)
        {
            return found;
        }
        O::plainly(ribbon, payload, key)
    }
}

impl Ribbon {
    /// The first level that has a key, with its coefficients and row there; nothing if bands differ from those of the first.
    #[inline(always)]
    fn deeper<K: Lookup>(&self, payload: &[u8], key: Digest) -> Option<(&Level, u64, u64)> {
        let mut band = key.salted(self.salt);
        let mut row = reduce(self.first_place(key, band), self.first.rows);
        let mut level = &self.first;
        let mut rest = self.rest.iter();
        // All levels but the last have thresholds, and the last one none.
        while level.shape().band == SHAPES[K::SHAPE].band {
            if !level.shape().bumped(payload, level.bumps_at, row) {
                return Some((level, band, row));
            }
            level = rest.next()?;
            band = level.rehash(band);
            row = reduce(place(band), level.rows);
        }
        None
    }
}

/// One query, of rows that [`Way::rows`] gives; `SINGLE` as for [`Rows::view`](rows::Rows::view).
pub(super) struct One<W, K, const SINGLE: bool>(PhantomData<(W, K)>);

impl<W: Way, K: Lookup, O: Outcome + Output, const SINGLE: bool> Answer<W::Asked, O> for One<W, K, SINGLE> {
    const V4: bool = K::V4;

    #[inline(always)]
    fn answer<I: Isa>(asked: &W::Asked, key: Digest) -> O {
        // Not by closures: they would be compiled for any processor.
        if let Some(rows) = W::rows(asked)
            && let Some(view) = rows.view::<K, SINGLE>()
            && let Some(found) = view.find(key.hi)
            && !K::is_bumped(&found)
        {
            let band = key.salted(rows.salt);
            if let Some((octets, stride)) = found.octets()
                && let Some(found) = O::at::<K, I>(octets, stride, band, band)
            {
                return found.of::<W>(asked, key);
            }
        }
        deep::<W, K, O>(asked, key)
    }
}

/// The answer for a key that the first level passed on. Apart, because the few keys it serves must not cost the others registers.
#[inline(never)]
fn deep<W: Way, K: Lookup, O: Outcome + Output>(asked: &W::Asked, key: Digest) -> O {
    match W::leaf::<Ribbon>(asked) {
        Some(leaf) => leaf.deep::<K, O>(key).of::<W>(asked, key),
        None => O::MISSING,
    }
}

impl ShardedLeaf<Ribbon> {
    /// What a key reads that the first level passed on.
    fn deep<K: Lookup, O: Outcome>(&self, key: Digest) -> O {
        let part = self.part(key);
        part.geometry.deep::<K, O>(&part.payload, key)
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
        let Some(rows) = self.leaf.rows() else { return self.leaf.one_by_one(self.keys, self.out, O::plainly) };
        if let Some(view) = rows.view::<K, true>().filter(|_| I::QUICK) {
            self.rounds::<I, true>(rows.salt, view);
        } else if let Some(view) = rows.view::<K, false>() {
            self.rounds::<I, false>(rows.salt, view);
        } else {
            self.leaf.one_by_one(self.keys, self.out, O::plainly);
        }
    }
}

impl<K: Lookup, O: Outcome> Many<'_, K, O> {
    #[inline(always)]
    fn rounds<I: Isa, const SINGLE: bool>(self, salt: Salt, view: View<'_, K, SINGLE>) {
        let Many { leaf, keys, out, .. } = self;
        let (mut passed_on, mut places) = ([0u8; BATCH], [None; BATCH]);
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let mut count = 0;
            for (i, (key, place)) in keys.iter().zip(&mut places).enumerate() {
                *place = view.find(key.hi);
                let bumped = match place {
                    Some(found) => {
                        found.prefetch();
                        K::is_bumped(found)
                    }
                    None => true,
                };
                passed_on[count % BATCH] = i as u8;
                count += bumped as usize;
            }
            for ((key, place), out) in keys.iter().zip(&places).zip(out.iter_mut()) {
                let band = key.salted(salt);
                if let Some(found) = place
                    && let Some((octets, stride)) = found.octets()
                    && let Some(found) = O::at::<K, I>(octets, stride, band, band)
                {
                    *out = found;
                } else {
                    *out = leaf.deep::<K, O>(*key);
                }
            }
            for &i in &passed_on[..count] {
                out[i as usize] = leaf.deep::<K, O>(keys[i as usize]);
            }
        }
    }
}
