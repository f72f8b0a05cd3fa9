//! digests to match, digests never to match -> an exact set whose every question is answered by one short run of bytes.
//!
//! **The idea.** The smallest exact set is a row of ribbons: columns of one bit that are steered to reject as many of the listed
//! negatives as they can (`leaves/steered.rs`), then one exact bit for the keys that are left. Each of them is a structure of its own,
//! so a member pays for a cache miss in every one. Here all columns of a key have the *same place*. Rows come in octets, and the
//! bytes of all columns lie side by side:
//!
//! ```text
//!             octet 0            octet 1            octet 2
//!   payload   P0 P1 .. E0 E1  |  P0 P1 .. E0 E1  |  P0 P1 .. E0 E1  |  ..          C = 2 to 8 bytes to an octet of 8 rows
//!
//!   a key     ........▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓                  8 octets from that of its row on: 8 C bytes
//!             and a random mask of 8 C bytes        first bit of each column: its row
//!
//!   answer    bytes & mask, all octets xored: C bytes.   parity of P0, P1, ..     0 for every key
//!                                                        parity of E0 or E1       a fingerprint bit for a key, its
//!                                                                                 complement for a negative that got this far
//! ```
//!
//! A query reads 16 to 64 contiguous bytes, one or two cache lines, and evaluates everything without a branch. As many octets as fit
//! in a word are taken at once, so four columns cost half of eight. With AVX-512 all words are one register (`arch/columns.rs`).
//!
//! **The columns.** `P` columns are homogeneous and steered one after the other, each against the negatives that pass those before.
//! They cannot fail. The exact columns `E` hold keys and survivors, each in the one that a bit of its hash chooses, and are bumped
//! ribbons inside the same rows: where a bucket of rows cannot take all, those with the smallest offsets are bumped, two bits
//! per bucket and column say which, and their exact bit is in the *rest*, an ordinary ribbon of one bit. Where there are many more
//! elements than rows, a hashed share of them is in the rest from the start. So the construction as a whole cannot fail either. An unlisted key passes with 2^-(columns + 1).
//!
//! **What it costs.** All columns have as many rows: n (1 + s). Separate ones may each have what serves best; here s must suit
//! all of them. The exact columns together should be full: s is such that 1 + 2 s survivors per key are left, and the
//! bits per key are C (1 + s). Around lambda = 3, 8, 16, .. negatives per key that is what one wants anyway; in between
//! it costs up to 4 %. With one exact column instead of two the rest takes the overflow: smaller there, and slower. A third of the members
//! have their bit in it, so that every query reads the rest: a branch for it could not be predicted.
//!
//! **Why not the neighbours.** An integrated ribbon has the same locality, but its columns are blind: .47 bit per key more. Blocks
//! of 64 rows (as ribbons have them) would make a query read two words per column, twice the bytes of eight octets.
//!
//! Papers: [BuRR] section 3 for bumping; [FPFS] 3.6 for stages that share their places.

use crate::arch::columns::span;
use crate::arch::{self, Answer, Base, Isa, Kernel, Level, QueryFn, prefetch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::ribbon::{ExactBit, Ribbon};
use crate::leaves::steered::SURPLUS;
use crate::leaves::strips::{LEAST, MAX_ROWS, Strips, TAIL};
use crate::leaves::{Geometry, Never, Part, Query, ShardedLeaf, Way};
use crate::math::portable::exp2;

#[cfg(feature = "build")]
mod build;
#[cfg(feature = "build")]
mod exact;
#[cfg(feature = "build")]
mod size;
#[cfg(test)]
pub(super) use build::build_on;
#[cfg(feature = "build")]
pub(crate) use size::Params;

/// The most steered columns.
pub(crate) const MAX_STEERED: u64 = 6;
/// The most exact columns.
const MAX_EXACT: u64 = 2;

/// A share of all elements.
const WHOLE: u32 = 256;

/// Rows of a bucket of the exact columns; those of its elements with offsets below one of these are bumped. Where keys lie
/// densely a steered column has few free rows and leaves more survivors, so that loads vary more than by chance (their variance is
/// 2.6 times their mean): buckets are small.
const BUCKET: u64 = 128;
const BUMPS: [u64; 4] = [0, 16, 40, BUCKET];
/// The same, 16 bits each.
const BUMPS_IN_WORD: u64 = BUMPS[0] | BUMPS[1] << 16 | BUMPS[2] << 32 | BUMPS[3] << 48;

/// The number below the leaf's salt that is the rest's.
const REST: u64 = 1 << 32;

/// Odd numbers that give a key the words of its mask.
const MASKS: [u64; 8] = [
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
    0xeb44_acca_b455_d165,
    0x9c6e_6877_736c_46e3,
    0x2127_599b_f432_5c37,
];

/// What the last word of a query reads beyond the last octet.
const fn pad(columns: usize) -> u64 {
    (span(columns) - 8 * columns) as u64
}

/// How to read one shard.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    places: Strips,
    /// Columns that are steered, and exact ones.
    steered: u32,
    exact: u32,
    /// How many 256ths of the elements have their exact bit in the octets, as far as it is not bumped.
    share: u32,
    /// By how much more than 2^-steered of the unlisted keys match all steered columns, in 2^-24: see `steered/beam.rs`.
    surplus: u32,
    strips: u64,
    /// Rows of a strip, a multiple of 8.
    rows: u64,
    /// Thresholds of a strip.
    thresholds: u64,
    salt: Salt,
    /// Where thresholds and rest start in the payload.
    steps_at: u64,
    rest_at: u64,
    rest: Option<Box<Ribbon>>,
    /// The rest where so many elements have their bit in it that every query reads it.
    rest_bit: Option<ExactBit>,
    level: Level,
}

/// Columns, strips and rows: what is known before the rest is.
#[derive(Clone, Copy, Debug)]
struct Size {
    steered: u32,
    exact: u32,
    strips: u64,
    rows: u64,
}

/// The place of a key.
#[derive(Clone, Copy, Default)]
struct Place {
    h: u64,
    strip: u64,
    row: u64,
}

impl Local {
    fn new(places: Strips, size: Size, share: u32, surplus: u32, salt: Salt, rest: Option<Ribbon>) -> Local {
        let Size { steered, exact, strips, rows } = size;
        let columns = steered + exact;
        let steps_at = strips * (rows / 8) * u64::from(columns) + pad(columns as usize);
        let thresholds = rows.div_ceil(BUCKET) * u64::from(exact);
        let rest_at = steps_at + (strips * thresholds).div_ceil(4);
        let rest_bit = rest.as_ref().filter(|_| exact == 1).and_then(|rest| rest.exact_bit(rest_at));
        Local {
            places,
            steered,
            exact,
            share,
            surplus,
            strips,
            rows,
            thresholds,
            salt: places.leaf(salt),
            steps_at,
            rest_at,
            rest: rest.map(Box::new),
            rest_bit,
            level: Level::detect(),
        }
    }

    fn empty(salt: Salt) -> Local {
        Local::new(Strips::new(0, 0, salt), Size { steered: 1, exact: 1, strips: 0, rows: LEAST }, WHOLE, 0, salt, None)
    }

    fn is_empty(&self) -> bool {
        self.strips == 0
    }

    fn columns(&self) -> usize {
        (self.steered + self.exact) as usize
    }

    /// The strip of a digest.
    #[inline(always)]
    fn strip(&self, key: Digest) -> u64 {
        reduce(self.places.place(key), self.strips)
    }

    /// The row in its strip of a key with this hash.
    #[inline(always)]
    fn row(&self, h: u64) -> u64 {
        reduce(h, self.rows - TAIL)
    }

    #[inline(always)]
    fn place(&self, key: Digest) -> Place {
        let h = key.salted(self.salt);
        Place { h, strip: self.strip(key), row: self.row(h) }
    }

    /// Which exact column a key has its bit in.
    #[inline(always)]
    fn pick(&self, h: u64) -> u32 {
        h as u32 & (self.exact - 1)
    }

    /// Whether a key's exact bit is in the rest whatever the thresholds say.
    #[inline(always)]
    fn outside(&self, h: u64) -> bool {
        weight(h) >= self.share
    }

    /// Whether a key's exact bit is in the rest.
    #[inline(always)]
    fn bumped(&self, payload: &[u8], place: Place) -> bool {
        let Place { h, strip, row } = place;
        // One or two to a bucket.
        let number = strip * self.thresholds + ((row / BUCKET) << (self.exact - 1)) + u64::from(self.pick(h));
        let byte = payload.get((self.steps_at + number / 4) as usize).copied().unwrap_or(0);
        self.outside(h) | (row % BUCKET < bump(byte >> (2 * (number % 4))))
    }

    /// What the parities of all columns say, and whether the rest has to be queried as well.
    #[inline(always)]
    fn verdict<I: Isa>(&self, payload: &[u8], place: Place, parities: u64) -> (bool, bool) {
        let bumped = self.bumped(payload, place);
        let every = if I::APART == 8 { 0x0101_0101_0101_0101 } else { u64::MAX };
        let steered = parities & every & !(u64::MAX << (I::APART * self.steered));
        let exact = parities >> (I::APART * (self.steered + self.pick(place.h))) ^ coin(place.h);
        (steered | exact & u64::from(!bumped) == 0, bumped)
    }

    /// Whether the rest has the key's fingerprint bit.
    #[inline(never)]
    fn rest_says(&self, payload: &[u8], key: Digest) -> bool {
        struct Says<'a>(&'a Local, &'a [u8], Digest);
        impl Kernel for Says<'_> {
            type Output = bool;
            #[inline(always)]
            fn run<I: Isa>(self) -> bool {
                let Says(local, payload, key) = self;
                let coin = coin(key.salted(local.salt)) as u32;
                let payload = payload.get(local.rest_at as usize..).unwrap_or(&[]);
                let says = |rest: &Ribbon| rest.bit_is::<I>(payload, key, coin);
                local.rest.as_ref().is_none_or(|rest| says(rest).unwrap_or_else(|| rest.get(payload, key) == coin))
            }
        }
        arch::dispatch(self.level, Says(self, payload, key))
    }
}

/// The offset below which a step bumps.
#[inline(always)]
fn bump(step: u8) -> u64 {
    BUMPS_IN_WORD >> (16 * (step & 3)) & 0xffff
}

/// The fingerprint bit of a key.
#[inline(always)]
fn coin(h: u64) -> u64 {
    h >> 1 & 1
}

/// What decides whether a key is in the share, below 256.
#[inline(always)]
fn weight(h: u64) -> u32 {
    (h >> 2) as u32 & (WHOLE - 1)
}

/// Queries for `C` columns.
struct Octets<const C: usize>;

impl<const C: usize> Octets<C> {
    /// Where a query starts to read.
    #[inline(always)]
    fn at(local: &Local, place: Place) -> usize {
        (place.strip * (local.rows / 8) + place.row / 8) as usize * C
    }

    /// What the octets say, and whether the rest has to be asked as well.
    #[inline(always)]
    fn verdict<I: Isa>(local: &Local, payload: &[u8], at: usize, place: Place) -> (bool, bool) {
        // Geometry is checked, so that the bytes are there.
        let octets = payload.get(at..).unwrap_or(&[]);
        let parities = I::columns::<C>(octets, place.h, &MASKS, (place.row % 8) as u32).unwrap_or(0);
        local.verdict::<I>(payload, place, parities)
    }
}

impl<const C: usize> Answer<Part<Local>> for Octets<C> {
    const V4: bool = true;

    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Local>, key: Digest) -> bool {
        let (local, payload) = (&part.geometry, &part.payload[..]);
        let place = local.place(key);
        let (yes, open) = Self::verdict::<I>(local, payload, Self::at(local, place), place);
        let Some(rest) = &local.rest_bit else { return yes && (!open || local.rest_says(payload, key)) };
        let (octet, odd) = rest.lane.find_bit(payload, key, key.hi << rest.skip);
        if rest.bumped(payload, octet, u32::from(!(yes & open))) {
            return local.rest_says(payload, key);
        }
        yes & (!open | (u64::from(odd) == coin(place.h)))
    }
}

/// Keys per round of a batch.
const BATCH: usize = 32;

/// Many queries: all places first, prefetched, then all parities, then the few that query the rest.
struct Many<'a, const C: usize> {
    leaf: &'a ShardedLeaf<Local>,
    keys: &'a [Digest],
    out: &'a mut [bool],
}

impl<const C: usize> Kernel for Many<'_, C> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Many { leaf, keys, out } = self;
        if I::QUICK && leaf.parts().len() == 1 {
            rounds::<I, C, true>(leaf, keys, out)
        } else {
            rounds::<I, C, false>(leaf, keys, out)
        }
    }
}

#[inline(always)]
fn rounds<I: Isa, const C: usize, const SINGLE: bool>(leaf: &ShardedLeaf<Local>, keys: &[Digest], out: &mut [bool]) {
    let mut places = [(0, Place::default()); BATCH];
    for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        for (found, &key) in places.iter_mut().zip(keys) {
            let part = leaf.part_of::<SINGLE>(key);
            let place = part.geometry.place(key);
            let at = Octets::<C>::at(&part.geometry, place);
            prefetch(&part.payload, at);
            prefetch(&part.payload, at + 8 * C - 1);
            *found = (at, place);
        }
        // A bit for each key that queries the rest.
        let mut open = 0u32;
        for (i, (out, &(at, place))) in out.iter_mut().zip(&places).enumerate() {
            let Some(&key) = keys.get(i) else { break };
            let part = leaf.part_of::<SINGLE>(key);
            let (yes, bumped) = Octets::<C>::verdict::<I>(&part.geometry, &part.payload, at, place);
            *out = yes;
            open |= u32::from(yes & bumped) << i;
        }
        while open != 0 {
            let i = open.trailing_zeros() as usize;
            let (Some(&key), Some(out)) = (keys.get(i), out.get_mut(i)) else { break };
            let part = leaf.part_of::<SINGLE>(key);
            *out = part.geometry.rest_says(&part.payload, key);
            open &= open - 1;
        }
    }
}

/// Calls `$run!(columns)` with the number of columns as a constant.
macro_rules! with_columns {
    ($columns:expr, $run:ident) => {
        match $columns {
            ..=2 => $run!(2),
            3 => $run!(3),
            4 => $run!(4),
            5 => $run!(5),
            6 => $run!(6),
            7 => $run!(7),
            _ => $run!(8),
        }
    };
}

impl Query for Local {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        if self.is_empty() {
            return false;
        }
        let place = self.place(key);
        macro_rules! run {
            ($columns:literal) => {
                Octets::<$columns>::verdict::<Base>(self, payload, Octets::<$columns>::at(self, place), place)
            };
        }
        let (yes, open) = with_columns!(self.columns(), run);
        yes && (!open || self.rest_says(payload, key))
    }

    fn same_kernel(&self, other: &Local) -> bool {
        (self.is_empty(), self.columns()) == (other.is_empty(), other.columns())
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Local>) -> QueryFn<W::Asked> {
        macro_rules! run {
            ($columns:literal) => {
                leaf.by::<W, Octets<$columns>, _>(self.level)
            };
        }
        match self.is_empty() {
            true => QueryFn::portable::<Never>(),
            false => with_columns!(self.columns(), run),
        }
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Local>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        macro_rules! run {
            ($columns:literal) => {
                arch::dispatch(self.level, Many::<$columns> { leaf, keys, out })
            };
        }
        match self.is_empty() {
            true => out.fill(false),
            false => with_columns!(self.columns(), run),
        }
    }
}

/// Directory entry, all varints:
///
/// ```text
///   strips    0: no keys, and nothing follows
///   octets    an eighth of the rows of a strip; 8 to 2^37
///   steered   columns that every key reads 0 in, 0 to 6
///   exact     columns of which a key has its bit in one, 1 or 2; with the steered ones at least 2
///   share     256ths of the elements whose exact bit is in these columns, 0 to 256; others have it in the rest
///   skip      top bits of a digest that choose the shard, 0 to 24; or 25 and a number: `leaves/strips.rs`
///   surplus   2^24 times the share of unlisted keys that match all steered columns beyond 2^-steered, 0 to 2^24
///   rest      the entry of a ribbon of one bit, or without keys
/// ```
///
/// The payload is one octet after the other, a byte of every column, steered ones first; row i of a strip is bit i % 8 of octet
/// i / 8. Then zeros, 2 for 3 columns and 3, 2, 1 for 5, 6, 7; the thresholds, two bits for each bucket of 128 rows and
/// each exact column; the rest's payload.
impl Geometry for Local {
    const NAME: &'static str = "local";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.strips);
        if !self.is_empty() {
            put_varint(out, self.rows / 8);
            put_varint(out, self.steered.into());
            put_varint(out, self.exact.into());
            put_varint(out, self.share.into());
            self.places.encode(out);
            put_varint(out, self.surplus.into());
            if let Some(rest) = &self.rest {
                rest.encode(out);
            }
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Local, FormatError> {
        let strips = from.within("strips", 0..=MAX_ROWS / LEAST)?;
        if strips == 0 {
            return Ok(Local::empty(salt));
        }
        let rows = 8 * from.within("octets", LEAST / 8..=MAX_ROWS / 8 / strips)?;
        let steered = from.within("steered columns", 0..=MAX_STEERED)? as u32;
        let exact = from.within("exact columns", 1..=MAX_EXACT)? as u32;
        if steered + exact < 2 {
            return Err(FormatError::invalid("local filter: one column, expected two at least"));
        }
        let share = from.within("share", 0..=WHOLE.into())? as u32;
        let places = Strips::decode(from, salt)?;
        let surplus = from.within("surplus", 0..=SURPLUS)? as u32;
        from.draw(size_of::<Ribbon>() as u64)?;
        let rest = Ribbon::decode(from, salt.child(REST))?;
        if rest.width() != 256 && !rest.is_empty() {
            return Err(FormatError::invalid(format!(
                "local filter: a rest of {}/256 bits, expected one",
                rest.width()
            )));
        }
        Ok(Local::new(places, Size { steered, exact, strips, rows }, share, surplus, salt, Some(rest)))
    }

    fn payload_len(&self) -> u64 {
        if self.is_empty() { 0 } else { self.rest_at + self.rest.as_ref().map_or(0, |rest| rest.payload_len()) }
    }

    fn fpr(&self) -> f64 {
        let steered = exp2(-f64::from(self.steered)) + f64::from(self.surplus) / SURPLUS as f64;
        if self.is_empty() { 0.0 } else { steered.min(1.0) / 2.0 }
    }

    fn details(&self) -> String {
        let bits = match self.exact {
            1 => "one exact bit",
            _ => "one of two exact bits",
        };
        match self.strips {
            0 => "no keys".into(),
            strips => format!(
                "{} steered bits and {bits} side by side, band 57 to 64, {} rows",
                self.steered,
                strips * self.rows
            ),
        }
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
