//! hash -> yes or no: both stages in the columns of a ribbon's first level.
//!
//! ```text
//!   payload   block 0 [P .. P | E E] block 1 [P .. P | E E] ..     the first level of the ribbon P, with columns E
//!             thresholds of P's first level, its other levels      as in a ribbon
//!             thresholds of the first E, of the second E
//! ```
//!
//! The ribbon does not know of the columns between its own. All it has to say after its first level's rows lies `shift`
//! bytes later than it thinks, so it is shown the payload without its first `shift` bytes, and is asked only for keys
//! that its first level bumps.

use std::marker::PhantomData;

use super::Integrated;
use super::rest::Rest;
use super::rule::coin;
use crate::arch::{self, Answer, Isa, Kernel};
use crate::error::FormatError;
use crate::format::Reader;
use crate::hash::{Digest, Salt};
use crate::leaves::ribbon::{Columns, Fast, Lookup, Ribbon, Width, fingerprint, spread};
use crate::leaves::{Choose, Column, Geometry, Part};

/// A ribbon with more columns in its first level.
#[derive(Clone, Debug)]
pub(super) struct Bands {
    pub(super) ribbon: Ribbon,
    /// Columns of stage two, and of both.
    columns: u32,
    width: Width,
    /// Bytes that the columns of stage two take.
    shift: u64,
    /// Where the thresholds of stage two are.
    steps_at: u64,
}

impl Bands {
    pub(super) fn new(ribbon: Ribbon, columns: u32) -> Bands {
        let shift = ribbon.first.blocks * 8 * columns as u64;
        let steps_at = shift + ribbon.payload_len();
        let width = Width { whole: ribbon.width() as u32 / 256 + columns, part: 0 };
        Bands { ribbon, columns, width, shift, steps_at }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.ribbon.encode(out);
    }

    pub(super) fn decode(from: &mut Reader<'_>, columns: u32, salt: Salt) -> Result<Bands, FormatError> {
        let ribbon = Ribbon::decode(from, salt)?;
        if ribbon.is_empty() || !ribbon.stores() {
            return Err(FormatError::invalid("integrated filter: a ribbon that stores nothing"));
        }
        if ribbon.width() as u32 / 256 + columns > 32 {
            return Err(FormatError::invalid("integrated filter: a ribbon of more than 30 bits"));
        }
        Ok(Bands::new(ribbon, columns))
    }

    pub(super) fn payload_len(&self) -> u64 {
        self.steps_at + self.columns as u64 * self.ribbon.first.steps_len()
    }

    /// Bits of stage one times 256.
    pub(super) fn width(&self) -> u16 {
        self.ribbon.width()
    }

    pub(super) fn details(&self) -> String {
        self.ribbon.details()
    }

    pub(super) fn same_kernel(&self, other: &Bands) -> bool {
        (self.ribbon.fast, self.columns) == (other.ribbon.fast, other.columns)
    }

    /// The share of keys that compare a column of stage two which they could do without: not those that it, or the ribbon, passes on.
    pub(super) fn compared(&self, payload: &[u8]) -> f64 {
        let level = &self.ribbon.first;
        if level.steps_len() == 0 {
            return 1.0;
        }
        let kept = |bucket: u64| -> f64 {
            let own = level.frame.kept(self.shifted(payload), level.bumps_at, bucket);
            let at = |column: u32| self.steps_at + u64::from(column) * level.steps_len();
            (0..self.columns).map(|column| own.min(level.frame.kept(payload, at(column), bucket))).sum()
        };
        (0..level.buckets).map(kept).sum::<f64>() / (level.buckets * u64::from(self.columns)) as f64
    }

    /// What the ribbon takes for its payload.
    #[inline(always)]
    fn shifted<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        payload.get(self.shift as usize..).unwrap_or(&[])
    }
}

impl Integrated {
    /// Asks for one key, whatever the shape.
    #[inline(never)]
    pub(super) fn contains_in(&self, bands: &Bands, payload: &[u8], key: Digest) -> bool {
        let h = key.salted(bands.ribbon.salt);
        let level = &bands.ribbon.first;
        let (bucket, offset) = level.frame.bucket_of(level.buckets, h);
        let rest = || self.rest.says(self.behind(payload), key, coin(h));
        if level.frame.bumped(bands.shifted(payload), level.bumps_at, bucket, offset) {
            return bands.ribbon.matches(bands.shifted(payload), h) && rest();
        }
        let mut mask = self.rule.mask(h);
        for column in 0..bands.columns {
            let at = bands.steps_at + column as u64 * level.steps_len();
            mask &= !((level.frame.bumped(payload, at, bucket, offset) as u32) << (self.rule.first + column));
        }
        let value = level.value(bands.width, payload, h, level.frame.row(bucket, offset));
        (value ^ fingerprint(h)) & mask == 0 && (mask & self.rule.pick(h) != 0 || rest())
    }
}

/// The queries that do not end in the word. Apart, and with few arguments, because the few keys they serve shall not
/// cost the others registers.
#[inline(never)]
fn deep<K: Lookup>(part: &Part<Integrated>, key: Digest) -> bool {
    part.geometry.bands.as_ref().is_none_or(|bands| {
        bands.ribbon.deep::<K, bool>(bands.shifted(&part.payload), key.salted(bands.ribbon.salt)) && says(part, key)
    })
}

/// Asks the rest.
#[inline(never)]
fn says(part: &Part<Integrated>, key: Digest) -> bool {
    struct Says<'a>(&'a Rest, &'a [u8], Digest, u32);
    impl Kernel for Says<'_> {
        type Output = bool;
        #[inline(always)]
        fn run<I: Isa>(self) -> bool {
            self.0.says_on::<I>(self.1, self.2, self.3)
        }
    }
    let built = &part.geometry;
    built.bands.as_ref().is_none_or(|bands| {
        let coin = coin(key.salted(bands.ribbon.salt));
        arch::dispatch(bands.ribbon.cpu, Says(&built.rest, built.behind(&part.payload), key, coin))
    })
}

/// Asks for one key, whatever the shape.
#[inline(never)]
fn plainly(part: &Part<Integrated>, key: Digest) -> bool {
    part.geometry.bands.as_ref().is_none_or(|bands| part.geometry.contains_in(bands, &part.payload, key))
}

/// Straight-line queries for `P` columns of stage one and `R` in all.
struct Woven<const SHAPE: usize, const P: usize, const R: usize>;

impl<const SHAPE: usize, const P: usize, const R: usize> Woven<SHAPE, P, R> {
    /// Where a row's query starts to read.
    #[inline(always)]
    fn place(row: u64) -> usize {
        (row >> 6) as usize * (8 * R)
    }

    /// The bits at a row against the fingerprint: ones where they differ. Nothing if the payload is too short.
    #[inline(always)]
    fn differ<I: Isa>(payload: &[u8], h: u64, row: u64) -> Option<u32> {
        let (low, high) = spread(h, row);
        let at = Self::place(row) & (usize::MAX >> 1);
        let (first, second) = payload.get(at..at + 16 * R)?.split_at(8 * R);
        // Up to eight columns are one operation of some instruction sets; those beyond are done one by one.
        if R <= 8 {
            return Some(I::parities::<R>(first, second, low, high) ^ fingerprint(h));
        }
        let mut value = I::parities::<P>(first, second, low, high);
        for j in P..R {
            value |= I::parities::<1>(&first[8 * j..], &second[8 * j..], low, high) << j;
        }
        Some(value ^ fingerprint(h))
    }

    /// Whether the first level of stage one bumps a key.
    #[inline(always)]
    fn passed_on(bands: &Bands, payload: &[u8], bucket: u64, offset: u64) -> bool {
        Columns::<SHAPE, P, false>::bumped(payload, bands.ribbon.first.bumps_at + bands.shift, bucket, offset)
    }

    /// For a key that matches stage one: whether it matches stage two, as far as the word knows, and whether that is
    /// all.
    #[inline(always)]
    fn second(built: &Integrated, bands: &Bands, payload: &[u8], h: u64, differ: u32) -> (bool, bool) {
        let level = &bands.ribbon.first;
        let (bucket, offset) = Columns::<SHAPE, P, false>::FRAME.bucket_of(level.buckets, h);
        let bumps = |column: u64| {
            let at = bands.steps_at + column * level.buckets.div_ceil(4);
            Columns::<SHAPE, P, false>::bumped(payload, at, bucket, offset)
        };
        if R - P == 1 {
            let inside = built.rule.inside(h) && !bumps(0);
            return (!inside || differ >> P & 1 == 0, inside);
        }
        let mask = built.rule.mask(h) & !((bumps(0) as u32 | (bumps(1) as u32) << 1) << P);
        (differ & mask == 0, mask & built.rule.pick(h) != 0)
    }
}

/// Calls `$run!(kernel)` with the kernel of a ribbon with more columns, or `$any`.
macro_rules! with_kernel {
    ($bands:expr, $any:expr, $run:ident) => {
        with_kernel!($bands, $any, $run:
            (1 1 1 2) (1 2 1 3) (1 3 1 4) (1 4 1 5) (1 5 1 6) (1 6 1 7) (1 7 1 8) (1 8 1 9)
            (1 1 2 3) (1 2 2 4) (1 3 2 5) (1 4 2 6) (1 5 2 7) (1 6 2 8) (1 7 2 9) (1 8 2 10))
    };
    ($bands:expr, $any:expr, $run:ident: $(($shape:literal $p:literal $c:literal $r:literal))*) => {
        match ($bands.ribbon.fast, $bands.columns) {
            $((Fast::Columns { shape: $shape, columns: $p, part: false }, $c) => $run!(Woven<$shape, $p, $r>),)*
            _ => $any,
        }
    };
}

impl Bands {
    pub(super) fn choose<C: Choose<Integrated>>(&self, chooser: C) -> C::Chosen {
        macro_rules! run {
            ($kernel:ty) => {
                chooser.choose::<$kernel>(self.ribbon.cpu)
            };
        }
        with_kernel!(self, chooser.choose::<Any>(self.ribbon.cpu), run)
    }

    pub(super) fn ask_many(&self, column: &Column<Integrated>, keys: &[Digest], out: &mut [bool]) {
        macro_rules! run {
            ($kernel:ty) => {
                arch::dispatch(self.ribbon.cpu, Many::<$kernel> { column, keys, out, kernel: PhantomData })
            };
        }
        let one_by_one = |out: &mut [bool]| {
            for (out, &key) in out.iter_mut().zip(keys) {
                *out = column.contains(key);
            }
        };
        with_kernel!(self, one_by_one(out), run)
    }
}

/// One query of any shape.
struct Any;

impl Answer<Part<Integrated>> for Any {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Integrated>, key: Digest) -> bool {
        plainly(part, key)
    }
}

impl<const SHAPE: usize, const P: usize, const R: usize> Answer<Part<Integrated>> for Woven<SHAPE, P, R> {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Integrated>, key: Digest) -> bool {
        let payload = &part.payload[..];
        let Some(bands) = &part.geometry.bands else { return true };
        let h = key.salted(bands.ribbon.salt);
        let (bucket, offset) = Columns::<SHAPE, P, false>::FRAME.bucket_of(bands.ribbon.first.buckets, h);
        if Self::passed_on(bands, payload, bucket, offset) {
            return deep::<Columns<SHAPE, P, false>>(part, key);
        }
        let row = Columns::<SHAPE, P, false>::FRAME.row(bucket, offset);
        let Some(differ) = Self::differ::<I>(payload, h, row) else { return plainly(part, key) };
        // Most strangers end here, and spare themselves the choice.
        if differ & !(u32::MAX << P) != 0 {
            return false;
        }
        let (matches, settled) = Self::second(&part.geometry, bands, payload, h, differ);
        matches && (settled || says(part, key))
    }
}

/// Keys per round of a batch: enough loads in flight, few enough to stay in the first cache.
const BATCH: usize = 32;

/// Many queries: all places first, prefetched; then all words; then the few that ask elsewhere.
struct Many<'a, K> {
    column: &'a Column<Integrated>,
    keys: &'a [Digest],
    out: &'a mut [bool],
    kernel: PhantomData<K>,
}

impl<const SHAPE: usize, const P: usize, const R: usize> Kernel for Many<'_, Woven<SHAPE, P, R>> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.column.parts() {
            // With one part its geometry stays in registers.
            [part] => self.rounds::<I>(|_| part),
            _ => {
                let column = self.column;
                self.rounds::<I>(|key| column.part(key))
            }
        }
    }
}

impl<'a, const SHAPE: usize, const P: usize, const R: usize> Many<'a, Woven<SHAPE, P, R>> {
    #[inline(always)]
    fn rounds<I: Isa>(self, part: impl Fn(Digest) -> &'a Part<Integrated>) {
        let Many { keys, out, .. } = self;
        let mut hashes = [0; BATCH];
        let mut rows = [0; BATCH];
        let mut differs = [0; BATCH];
        // Keys that the first level passes on, and keys that match stage one.
        let mut open = [0u8; BATCH];
        let mut matched = [0u8; BATCH];
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let mut passed_on = 0;
            for (i, &key) in keys.iter().enumerate() {
                let part = part(key);
                let Some(bands) = &part.geometry.bands else { continue };
                let h = key.salted(bands.ribbon.salt);
                let (bucket, offset) = Columns::<SHAPE, P, false>::FRAME.bucket_of(bands.ribbon.first.buckets, h);
                let row = Columns::<SHAPE, P, false>::FRAME.row(bucket, offset);
                (hashes[i], rows[i]) = (h, row);
                let at = Woven::<SHAPE, P, R>::place(row);
                arch::prefetch(&part.payload, at);
                arch::prefetch(&part.payload, at + 16 * R - 1);
                open[passed_on % BATCH] = i as u8;
                passed_on += Woven::<SHAPE, P, R>::passed_on(bands, &part.payload, bucket, offset) as usize;
            }
            let mut matches = 0;
            for (i, (&key, out)) in keys.iter().zip(out.iter_mut()).enumerate() {
                let Some(differ) = Woven::<SHAPE, P, R>::differ::<I>(&part(key).payload, hashes[i], rows[i]) else {
                    *out = plainly(part(key), key);
                    continue;
                };
                differs[i] = differ;
                *out = differ & !(u32::MAX << P) == 0;
                matched[matches % BATCH] = i as u8;
                matches += *out as usize;
            }
            for &i in &matched[..matches] {
                let (i, key) = (i as usize, keys[i as usize]);
                let part = part(key);
                let Some(bands) = &part.geometry.bands else { continue };
                let (matches, settled) =
                    Woven::<SHAPE, P, R>::second(&part.geometry, bands, &part.payload, hashes[i], differs[i]);
                out[i] = matches && (settled || says(part, key));
            }
            for &i in &open[..passed_on] {
                let (i, key) = (i as usize, keys[i as usize]);
                out[i] = deep::<Columns<SHAPE, P, false>>(part(key), key);
            }
        }
    }
}
