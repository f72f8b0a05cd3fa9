//! digests to match, digests to refuse -> one column of bits that refuses more than half of them: the steered ribbon.
//!
//! **The idea.** A homogeneous ribbon column asks that the solution bits under a key's band have parity 0, for every key.
//! With n keys and m = n (1 + s) rows there are 2^(sn) solutions and more, and they differ in nothing but the answers they
//! give to others. So far nobody chose: free rows were filled at random, and half of the known negatives passed. Here the
//! solution is chosen so that as few of them pass as can be:
//!
//! ```text
//!   rows            .  .  p  p  f  p  p  p  f  p  p          p: a pivot, fixed by a key's equation
//!                                                             f: free, one bit to choose
//!   last to first   <───────────── the search ───────────
//!
//!   beam            states of equal age: the last 64 bits, and how many negatives they refused
//!   p               every state gets the bit that its key forces
//!   f               every state has two children; the best K of all children live on
//! ```
//!
//! A negative is priced when the row it starts at has a bit. Its first coefficient is 1, so that of two children exactly one
//! refuses it, and one pass over the states prices both. Dependent equations are redundant, because all right-hand sides are 0: the
//! construction cannot fail, and there is no bumping. Only keys that somebody chose to lie in one place get a second attempt.
//!
//! **How good can it be?** Each of the 2^(sn) solutions passes a negative with probability 1/2, and it pays to look for the
//! rarest of them: mu n negatives leave x mu n where mu (1 - H(x)) = s (docs/math.md, *Steering*). A filter of r whole bits
//! and one such column that leaves as many survivors as an exact bit then likes takes, all slacks ideal,
//!
//! ```text
//!   r + 1 - lambda log2(1 - 2^-(r+1))   bits per key
//! ```
//!
//! and that is the least that any structure needs which is right on lambda negatives per key and passes 2^-(r+1) of all others: the
//! bound of the false-positive-free set. It is a sum over what must be told apart: r + 1 bits for a key, and for a negative
//! the surprise that it is not among the 2^-(r+1) that agree with a key by chance. A chain of a filter and an exact bit spends
//! .47 bit per key more than the bound, because its filter is blind; a beam loses a tenth of that and less.
//!
//! **Strips.** The rows lie in strips of about 65,536, which are independent, so that strips are built on several threads and what
//! the search remembers stays small. The strip follows from the top bits of the digest, by which keys and negatives are sorted
//! already: nothing is moved (`leaves/strips.rs` has the exception). Inside a strip a band is 57 to 64 coefficients long and ends on a byte, so a query reads eight bytes
//! at once. The last 56 rows of a strip start no band.
//!
//! **Why not the neighbours.** A bumped ribbon has no free rows to choose. Trying many seeds finds the best of a few; the best of
//! 2^(sn) needs a search. A trellis with all states would need 2^64 of them; a beam of 512 comes near.
//!
//! Papers: [Ribbon], on homogeneous ribbons. Steering is new here; the search is the M-algorithm of trellis source coding.

use crate::arch::lanes::Lane;
use crate::arch::{Answer, Isa, Level, QueryFn, prefetch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt, fold, reduce};
use crate::leaves::batch::{InBatches, ask_leaf};
use crate::leaves::strips::{LEAST, MAX_ROWS, Strips, TAIL};
use crate::leaves::{Geometry, Never, Part, Query, ShardedLeaf, Way};

#[cfg(feature = "build")]
pub(in crate::leaves) mod beam;
#[cfg(feature = "build")]
mod build;
#[cfg(feature = "build")]
mod history;
#[cfg(feature = "build")]
mod states;
#[cfg(feature = "build")]
mod survivors;
#[cfg(feature = "build")]
mod table;
#[cfg(feature = "build")]
pub(crate) use beam::{BALANCED, FAST, SMALLEST};
#[cfg(feature = "build")]
pub(crate) use build::Params;
#[cfg(test)]
pub(super) use build::build_on;
#[cfg(feature = "build")]
pub(crate) use survivors::share;

/// A share of all keys.
const WHOLE: u16 = 256;
/// A surplus of all keys.
pub(in crate::leaves) const SURPLUS: u64 = 1 << 24;
const BAND: u64 = 0xa076_1d64_78bd_642f;

/// How to read one shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steered {
    places: Strips,
    strips: u64,
    /// Rows of a strip, a multiple of 8.
    rows: u64,
    /// How many 256ths of the keys the column knows; to the others it says yes.
    share: u16,
    /// By how much more than half of the unlisted keys that it knows match, in 2^-24: see `beam.rs`.
    surplus: u32,
    /// Strips per 2^48 of the digests that the column knows.
    scale: u64,
    salt: Salt,
    level: Level,
}

impl Steered {
    fn new(places: Strips, strips: u64, rows: u64, share: u16, surplus: u32, salt: Salt) -> Steered {
        let scale = (strips << 24).div_ceil(share.max(1).into());
        Steered { places, strips, rows, share, surplus, scale, salt: places.leaf(salt), level: Level::detect() }
    }

    fn is_empty(&self) -> bool {
        self.strips == 0
    }

    /// The strip of a digest; beyond the last for one that the column does not know.
    #[inline(always)]
    fn strip(&self, key: Digest) -> u64 {
        ((self.places.place(key) as u128 * self.scale as u128) >> 80) as u64
    }

    /// First row in the strip, and the band.
    #[inline(always)]
    fn equation(&self, key: Digest) -> (u64, u64) {
        let h = key.salted(self.salt);
        let row = reduce(h, self.rows - TAIL);
        (row, fold(h, BAND) | 1)
    }

    /// Where the eight bytes start, and which of their bits count.
    #[inline(always)]
    fn find(&self, key: Digest) -> (usize, u64) {
        let (row, band) = self.equation(key);
        ((self.strip(key) * (self.rows / 8) + row / 8) as usize, band << (row % 8))
    }
}

/// Whether the bits of a place have parity 0; places beyond the end belong to keys that the column does not know.
#[inline(always)]
fn passes(payload: &[u8], (at, band): (usize, u64)) -> bool {
    let bytes = payload.get(at..).and_then(|rest| rest.first_chunk());
    bytes.is_none_or(|bytes| (u64::from_le_bytes(*bytes) & band).count_ones() & 1 == 0)
}

impl Part<Steered> {
    /// The numbers of a column that knows every key, and how many top bits of a digest it skips.
    pub(crate) fn lane(&self) -> Option<(Lane, u32)> {
        let Steered { places, strips, rows, share, salt, .. } = self.geometry;
        let known = share == WHOLE && strips > 0;
        let (rows, octets) = (rows - TAIL, rows / 8);
        let lane = Lane { salt: salt.words(), rows, strips, octets, at: self.start as u64, factor: BAND };
        Some((lane, places.by_bits().filter(|_| known)?))
    }
}

/// One query.
struct One;

impl Answer<Part<Steered>> for One {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Steered>, key: Digest) -> bool {
        passes(&part.payload, part.geometry.find(key))
    }
}

/// Keys per round of a batch.
const BATCH: usize = 32;

impl InBatches for One {
    type Geometry = Steered;
    type Found<'a> = (usize, u64);

    #[inline(always)]
    fn find(of: &Steered, payload: &[u8], key: Digest) -> (usize, u64) {
        let place = of.find(key);
        prefetch(payload, place.0);
        place
    }

    #[inline(always)]
    fn answer<I: Isa>(_: &Steered, payload: &[u8], place: (usize, u64)) -> bool {
        passes(payload, place)
    }
}

impl Query for Steered {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        !self.is_empty() && passes(payload, self.find(key))
    }

    fn same_kernel(&self, other: &Steered) -> bool {
        self.is_empty() == other.is_empty()
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Steered>) -> QueryFn<W::Asked> {
        match self.is_empty() {
            true => QueryFn::portable::<Never>(),
            false => leaf.by::<W, One, _>(self.level),
        }
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Steered>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        match self.is_empty() {
            true => out.fill(false),
            false => ask_leaf::<One, BATCH>(self.level, leaf, keys, out),
        }
    }
}

/// Directory entry, all varints:
///
/// ```text
///   strips    0: no keys, and nothing follows
///   octets    bytes of a strip: an eighth of its rows; 8 to 2^37
///   share     256ths of the keys that the column knows, 1 to 256: those whose places come first
///   skip      top bits of a digest that choose the shard, 0 to 24; or 25 and a number: `leaves/strips.rs`
///   surplus   2^24 times the share of unlisted keys, of those that the column knows, that match beyond one half; 0 to 2^23
/// ```
///
/// The payload is one strip after the other; row i is bit i % 8 of byte i / 8.
impl Geometry for Steered {
    const NAME: &'static str = "steered ribbon";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.strips);
        if !self.is_empty() {
            put_varint(out, self.rows / 8);
            put_varint(out, self.share.into());
            self.places.encode(out);
            put_varint(out, self.surplus.into());
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Steered, FormatError> {
        let strips = from.within("strips", 0..=MAX_ROWS / LEAST)?;
        if strips == 0 {
            return Ok(Steered::new(Strips::new(0, 0, salt), 0, LEAST, WHOLE, 0, salt));
        }
        let rows = 8 * from.within("octets", LEAST / 8..=MAX_ROWS / 8 / strips)?;
        let share = from.within("share", 1..=WHOLE.into())? as u16;
        let places = Strips::decode(from, salt)?;
        let surplus = from.within("surplus", 0..=SURPLUS / 2)? as u32;
        Ok(Steered::new(places, strips, rows, share, surplus, salt))
    }

    fn payload_len(&self) -> u64 {
        if self.is_empty() { 0 } else { self.strips * (self.rows / 8) }
    }

    fn fpr(&self) -> f64 {
        let refused = 0.5 - f64::from(self.surplus) / SURPLUS as f64;
        if self.is_empty() { 0.0 } else { 1.0 - f64::from(self.share) / f64::from(WHOLE) * refused }
    }

    fn details(&self) -> String {
        match (self.strips, self.share) {
            (0, _) => "no keys".into(),
            (strips, WHOLE) => format!("1 bit, band 57 to 64, {} rows", strips * self.rows),
            (strips, share) => {
                let percent = f64::from(share) / 2.56;
                format!("1 bit for {percent:.0} % of the keys, band 57 to 64, {} rows", strips * self.rows)
            }
        }
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
