//! digests (and values) -> binary fuse: a filter or a static function, read with three or four probes and a xor.
//!
//! **Idea.** A table of cells; every key picks a few of them by hashing, and the xor of its cells is its value. For a
//! filter the value is a fingerprint of the key: a key that is not in the set matches with probability 2^-width.
//!
//! **Where the cells are** is what makes it small. Probes anywhere in the table (a plain xor filter) can be solved up to a
//! load of 0.81. Here the table is cut into segments, and a key takes one cell in each of three (or four) *consecutive*
//! segments:
//!
//! ```text
//!   segment    0        1        2        3        4        5        6
//!          |........|......*.|.*......|....*...|........|........|........|
//!                          first  second   third          a key that starts in segment 1
//! ```
//!
//! Few keys touch the two ends, so cells with a single key are found there first; taking their keys away frees cells
//! further in, and the wave runs to the middle. Loads of 0.89 (three probes) and 0.94 (four) are solved in linear time
//! by this peeling alone, without any linear algebra: see `fuse/peel.rs`. The first cell is a multiply-shift of the hash
//! over all segments a key can start in; the others are moved inside their segment by xor with other bits of the hash, so
//! that a query is one multiplication for the hash, one for the first cell, and loads that do not depend on each other.
//!
//! ```text
//!   h = digest.salted(salt), six bits cleared           h * odd constant
//!   63           42         24         6      0         63         46                      0
//!   | first cell  |  third  |  second  | zero |         |  fourth  |                       |
//! ```
//!
//! The fingerprint is the xor of two parts of h. It may share bits with the cells: their contents are random. The six
//! bits are given up so that construction can count the keys of a cell in the word that sums their hashes.
//!
//! **Widths.** Any whole number of bits from 1 to 32. For filters also fractions: keys that start at or after a *cut* slot
//! have one bit more. All cells of such a key are at or after the cut, so the wide cells are the tail of the table.
//!
//! **Why not the neighbours.** A ribbon is smaller (0.5 % over the bound instead of 12.5 or 7.5 %) and slower to build and
//! to ask; a blocked Bloom filter is faster and half as large again. Four probes instead of three save 4.5 % and cost a
//! fourth cache miss.
//!
//! Papers: Graf and Lemire, *Binary Fuse Filters: Fast and Smaller Than Xor Filters* (2022), sections 3 and 4; Dietzfelbinger
//! and Walzer, *Dense Peelable Random Uniform Hypergraphs* (2019), for why consecutive segments help.

use std::marker::PhantomData;

use crate::arch::{Answer, Isa, Level, QueryFn};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, MAX_NUMBER, Salt, reduce};
#[cfg(feature = "maps")]
use crate::leaves::Leaf;
use crate::leaves::pack::{Cells, Packed, Short, Whole};
use crate::leaves::{Entry, Geometry, Never, Part, Query, ShardedLeaf, Way, bits_in_words};
use crate::math::portable::exp2;

mod many;
#[cfg(feature = "build")]
mod peel;
use many::ask_many;
#[cfg(feature = "build")]
use many::ask_single;
#[cfg(feature = "maps")]
use many::get_many;
#[cfg(feature = "build")]
pub(in crate::leaves) use peel::{Space, size, solve_rows};
#[cfg(feature = "build")]
pub(crate) use peel::{build, payload_bits};

/// How many cells a key has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arity {
    /// 1.125 times the value's bits: the fast one.
    Three,
    /// 1.075 times.
    Four,
}

#[cfg(feature = "build")]
impl Arity {
    /// Cells of a key, each in a cache line of its own.
    pub(in crate::leaves) fn probes(self) -> f64 {
        match self {
            Arity::Three => 3.0,
            Arity::Four => 4.0,
        }
    }
}

/// What a caller may choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    pub(crate) arity: Arity,
    /// Bits of a value times 256: 8 bits are 2048. 256 to 8192; a fraction only for fingerprints.
    pub(crate) width: u16,
}

/// The probability that a key outside the set is found in a filter. With a fractional width the share of wide keys is
/// rounded up to a multiple of one over the table's size, so the rate reached is this or a little less.
#[cfg(feature = "build")]
fn rate(width: u16) -> f64 {
    let wide = f64::from(width & 255) / 256.0;
    (1.0 - wide / 2.0) * exp2(-f64::from(width >> 8))
}

/// The largest segment has 2^18 cells: what the bit windows of the hash have room for.
const MAX_LOG: u64 = 18;
/// More slots than memory has bytes; it keeps every product below 2^64.
const MAX_SLOTS: u64 = 1 << 40;
/// Low bits of a hash that are always zero; construction keeps a count there.
const COUNT: u64 = 63;
/// Odd; gives the fourth window, for which h has no bits left.
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// Arity and kind of cell in one word, so that a query branches once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Empty,
    Three8,
    Three16,
    Three32,
    ThreeShort,
    ThreePacked,
    Four8,
    Four16,
    Four32,
    FourShort,
    FourPacked,
}

/// Calls `$f::<cells, arity>(cells, arguments)` for the shape of `$fuse`; `$empty` for a table without keys.
macro_rules! shaped {
    ($fuse:expr, $empty:expr, $f:ident $(<$($more:ty),+>)?, $($arg:expr),*) => {{
        let fuse: &Fuse = $fuse;
        let (short, packed) = (Short::new(fuse.bits, fuse.cut), Packed::new(fuse.bits, fuse.cut));
        match fuse.shape {
            Shape::Empty => $empty,
            Shape::Three8 => $f::<_, 3 $($(, $more)+)?>(Whole::<1>, $($arg),*),
            Shape::Three16 => $f::<_, 3 $($(, $more)+)?>(Whole::<2>, $($arg),*),
            Shape::Three32 => $f::<_, 3 $($(, $more)+)?>(Whole::<4>, $($arg),*),
            Shape::ThreeShort => $f::<_, 3 $($(, $more)+)?>(short, $($arg),*),
            Shape::ThreePacked => $f::<_, 3 $($(, $more)+)?>(packed, $($arg),*),
            Shape::Four8 => $f::<_, 4 $($(, $more)+)?>(Whole::<1>, $($arg),*),
            Shape::Four16 => $f::<_, 4 $($(, $more)+)?>(Whole::<2>, $($arg),*),
            Shape::Four32 => $f::<_, 4 $($(, $more)+)?>(Whole::<4>, $($arg),*),
            Shape::FourShort => $f::<_, 4 $($(, $more)+)?>(short, $($arg),*),
            Shape::FourPacked => $f::<_, 4 $($(, $more)+)?>(packed, $($arg),*),
        }
    }};
}
#[cfg(feature = "build")]
use shaped;

/// How to read one table.
///
/// ```text
///   probes    0: no keys, and nothing follows; 3 or 4
///   width     bits of a value times 256
///   log       log2 of the cells in a segment
///   starts    segments a key can start in; the table has probes - 1 more
///   number    of the salt, below the step's: 0, or 32 bits that follow from the keys
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fuse {
    salt: Salt,
    /// Slots a key can start at.
    range: u64,
    /// Cells in a segment, a power of two.
    len: u64,
    /// The same, less one.
    mask: u64,
    /// The first slot with `bits + 1` bits.
    cut: u64,
    bits: u32,
    shape: Shape,
    log: u8,
    width: u16,
    number: u32,
}

impl Fuse {
    pub(in crate::leaves) const EMPTY: Fuse = Fuse {
        salt: Salt::new(0),
        range: 0,
        len: 1,
        mask: 0,
        cut: u64::MAX,
        bits: 0,
        shape: Shape::Empty,
        log: 0,
        width: 0,
        number: 0,
    };

    /// A table of `starts + arity - 1` segments. The numbers are within the bounds that `decode` checks.
    pub(in crate::leaves) fn new(params: &Params, log: u64, starts: u64, number: u64, salt: Salt) -> Fuse {
        let range = starts << log;
        let wide = (range * u64::from(params.width & 255)).div_ceil(256);
        let whole = wide == 0;
        let shape = match (params.arity, params.width) {
            (Arity::Three, 0x0800) => Shape::Three8,
            (Arity::Three, 0x1000) => Shape::Three16,
            (Arity::Three, 0x2000) => Shape::Three32,
            (Arity::Three, ..=0x0900) if whole => Shape::ThreeShort,
            (Arity::Three, _) => Shape::ThreePacked,
            (Arity::Four, 0x0800) => Shape::Four8,
            (Arity::Four, 0x1000) => Shape::Four16,
            (Arity::Four, 0x2000) => Shape::Four32,
            (Arity::Four, ..=0x0900) if whole => Shape::FourShort,
            (Arity::Four, _) => Shape::FourPacked,
        };
        Fuse {
            salt: salt.child(number),
            range,
            len: 1 << log,
            mask: (1 << log) - 1,
            cut: if wide == 0 { u64::MAX } else { range - wide },
            bits: u32::from(params.width >> 8),
            shape,
            log: log as u8,
            width: params.width,
            number: number as u32,
        }
    }

    /// Bits of a value times 256; 0 for no keys.
    pub(in crate::leaves) fn width(&self) -> u16 {
        self.width
    }

    /// Whether there are no keys.
    pub(in crate::leaves) fn is_empty(&self) -> bool {
        self.shape == Shape::Empty
    }

    fn probes(&self) -> u64 {
        fn arity<C: Cells, const K: usize>(_: C) -> u64 {
            K as u64
        }
        shaped!(self, 0, arity,)
    }

    /// The key's bits for this table.
    #[inline(always)]
    pub(in crate::leaves) fn hash(&self, key: Digest) -> u64 {
        key.salted(self.salt) & !COUNT
    }

    /// The slots of a hash, in consecutive segments.
    #[inline(always)]
    // Loops, because an adapter is many small functions, and each shape and processor would have its own.
    fn slots<const K: usize>(&self, h: u64) -> [u64; K] {
        let first = reduce(h, self.range);
        let windows = [0, h >> 6, h >> 24, h.wrapping_mul(MIX) >> 46];
        let mut slots = [0; K];
        for (j, slot) in slots.iter_mut().enumerate() {
            *slot = (first + j as u64 * self.len) ^ (windows[j] & self.mask);
        }
        slots
    }

    /// The xor of a hash's cells, and the bits of it that count; `None` if the payload is too short.
    #[inline(always)]
    fn sum<C: Cells, const K: usize>(&self, cells: C, payload: &[u8], h: u64) -> Option<(u32, u32)> {
        let slots = self.slots::<K>(h);
        let mut sum = 0;
        for slot in slots {
            sum ^= cells.read(payload, slot)?;
        }
        Some((sum, cells.mask(slots[0])))
    }
}

/// What a filter stores for a hash; its low bits, as many as there are in a cell.
#[inline(always)]
pub(in crate::leaves) fn fingerprint(h: u64) -> u32 {
    (h >> 6 ^ h >> 32) as u32
}

/// How a query sees a geometry that has a fuse table in it: as nothing else, or with bits that do not count for every key
/// and with another table to query.
pub(in crate::leaves) trait View: 'static {
    type Of: 'static;

    fn fuse(of: &Self::Of) -> &Fuse;

    /// The bits that count for a hash, of all there are in a cell.
    #[inline(always)]
    fn mask(_: &Self::Of, _h: u64, all: u32) -> u32 {
        all
    }

    /// Whether a match in the bits of `mask` is an answer.
    #[inline(always)]
    fn is_final(_: &Self::Of, _mask: u32) -> bool {
        true
    }

    /// Whether a key that matched, and that was no answer, is in.
    fn resolve(_: &Self::Of, _payload: &[u8], _key: Digest) -> bool {
        true
    }
}

/// A table and nothing else.
struct Itself;

impl View for Itself {
    type Of = Fuse;
    #[inline(always)]
    fn fuse(of: &Fuse) -> &Fuse {
        of
    }
}

/// The bits that count for a key, if it matches in them.
#[inline(always)]
fn matching<C: Cells, const K: usize, V: View>(cells: C, of: &V::Of, payload: &[u8], key: Digest) -> Option<u32> {
    let fuse = V::fuse(of);
    let h = fuse.hash(key);
    // A payload that is too short cannot say no.
    let Some((sum, all)) = fuse.sum::<C, K>(cells, payload, h) else { return Some(u32::MAX) };
    let mask = V::mask(of, h, all);
    ((sum ^ fingerprint(h)) & mask == 0).then_some(mask)
}

#[inline(always)]
fn contains<C: Cells, const K: usize, V: View>(cells: C, of: &V::Of, payload: &[u8], key: Digest) -> bool {
    matching::<C, K, V>(cells, of, payload, key)
        .is_some_and(|mask| V::is_final(of, mask) || V::resolve(of, payload, key))
}

/// Queries on. Apart, and with few arguments, because the few keys it serves must not cost the others registers.
#[inline(never)]
fn resolve<V: View>(part: &Part<V::Of>, key: Digest) -> bool {
    V::resolve(&part.geometry, &part.payload, key)
}

#[inline(always)]
fn get<C: Cells, const K: usize>(cells: C, fuse: &Fuse, payload: &[u8], key: Digest) -> u32 {
    fuse.sum::<C, K>(cells, payload, fuse.hash(key)).map_or(0, |(sum, mask)| sum & mask)
}

/// One query on tables of cells `C`.
struct One<C, const K: usize, V>(PhantomData<(C, V)>);

impl<C: Cells, const K: usize, V: View> Answer<Part<V::Of>> for One<C, K, V> {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<V::Of>, key: Digest) -> bool {
        let fuse = V::fuse(&part.geometry);
        matching::<C, K, V>(C::new(fuse.bits, fuse.cut), &part.geometry, &part.payload, key)
            .is_some_and(|mask| V::is_final(&part.geometry, mask) || resolve::<V>(part, key))
    }
}

/// One value from tables of cells `C`.
#[cfg(feature = "maps")]
struct Value<C, const K: usize>(PhantomData<C>);

#[cfg(feature = "maps")]
impl<C: Cells, const K: usize> Answer<Part<Fuse>, u32> for Value<C, K> {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Fuse>, key: Digest) -> u32 {
        let fuse = &part.geometry;
        get::<C, K>(C::new(fuse.bits, fuse.cut), fuse, &part.payload, key)
    }
}

/// What [`Query`] needs of a geometry, for one with a fuse table in it.
impl Fuse {
    /// [`Query::contains`].
    pub(in crate::leaves) fn contains_in<V: View>(of: &V::Of, payload: &[u8], key: Digest) -> bool {
        shaped!(V::fuse(of), false, contains<V>, of, payload, key)
    }

    /// [`Query::same_kernel`].
    pub(in crate::leaves) fn same_shape(&self, other: &Fuse) -> bool {
        self.shape == other.shape
    }

    /// [`Query::query_fn`].
    pub(in crate::leaves) fn query_fn_in<V: View<Of: Entry>, W: Way>(
        &self,
        leaf: &ShardedLeaf<V::Of>,
    ) -> QueryFn<W::Asked> {
        fn by<C: Cells, const K: usize, V: View<Of: Entry>, W: Way>(
            _: C,
            leaf: &ShardedLeaf<V::Of>,
            level: Level,
        ) -> QueryFn<W::Asked> {
            leaf.by::<W, One<C, K, V>, _>(level)
        }
        let level = Level::detect();
        shaped!(self, QueryFn::portable::<Never>(), by<V, W>, leaf, level)
    }

    /// Answers for many keys of a leaf of one part.
    #[cfg(feature = "build")]
    pub(in crate::leaves) fn ask_single_in<V: View>(
        &self,
        leaf: &ShardedLeaf<V::Of>,
        file: &[u8],
        keys: &[Digest],
        out: &mut [bool],
    ) {
        shaped!(self, out.fill(false), ask_single<V>, leaf, file, keys, out)
    }

    /// [`Query::contains_many`].
    pub(in crate::leaves) fn ask_many_in<V: View>(
        &self,
        leaf: &ShardedLeaf<V::Of>,
        file: &[u8],
        keys: &[Digest],
        out: &mut [bool],
    ) {
        shaped!(self, out.fill(false), ask_many<V>, leaf, file, keys, out)
    }
}

impl Query for Fuse {
    const HAS_VALUES: bool = true;

    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        Fuse::contains_in::<Itself>(self, payload, key)
    }

    fn same_kernel(&self, other: &Fuse) -> bool {
        self.same_shape(other)
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Fuse>) -> QueryFn<W::Asked> {
        self.query_fn_in::<Itself, W>(leaf)
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Fuse>, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        self.ask_many_in::<Itself>(leaf, file, keys, out)
    }

    fn get(&self, payload: &[u8], key: Digest) -> u32 {
        shaped!(self, 0, get, self, payload, key)
    }

    #[cfg(feature = "maps")]
    fn value_fn(&self, leaf: &ShardedLeaf<Fuse>) -> Option<QueryFn<Leaf, u32>> {
        fn by<C: Cells, const K: usize>(_: C, leaf: &ShardedLeaf<Fuse>, level: Level) -> QueryFn<Leaf, u32> {
            leaf.by::<Leaf, Value<C, K>, _>(level)
        }
        let level = Level::detect();
        Some(shaped!(self, QueryFn::portable::<Never>(), by, leaf, level))
    }

    #[cfg(feature = "maps")]
    fn get_many(&self, leaf: &ShardedLeaf<Fuse>, file: &[u8], keys: &[Digest], out: &mut [u32]) {
        shaped!(self, out.fill(0), get_many, leaf, file, keys, out)
    }
}

impl Geometry for Fuse {
    const NAME: &'static str = "binary fuse";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.probes());
        if self.shape != Shape::Empty {
            put_varint(out, self.width.into());
            put_varint(out, self.log.into());
            put_varint(out, self.range >> self.log);
            put_varint(out, self.number.into());
        }
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Fuse, FormatError> {
        let arity = match from.varint()? {
            0 => return Ok(Fuse::EMPTY),
            3 => Arity::Three,
            4 => Arity::Four,
            other => return Err(FormatError::unsupported("number of probes", other)),
        };
        let width = from.within("width", 256..=8192)? as u16;
        let log = from.within("log of the segment", 0..=MAX_LOG)?;
        let starts = from.within("starts", 1..=MAX_SLOTS >> log)?;
        let number = from.within("salt", 0..=MAX_NUMBER)?;
        Ok(Fuse::new(&Params { arity, width }, log, starts, number, salt))
    }

    fn payload_len(&self) -> u64 {
        fn len<C: Cells, const K: usize>(cells: C, fuse: &Fuse) -> u64 {
            cells.payload_len(fuse.range + (K as u64 - 1) * fuse.len)
        }
        shaped!(self, 0, len, self)
    }

    fn fpr(&self) -> f64 {
        // The cut is at a whole slot: in a small table more keys have the extra bit than the width says.
        let wide = self.range.saturating_sub(self.cut) as f64 / self.range.max(1) as f64;
        if self.shape == Shape::Empty { 0.0 } else { (1.0 - wide / 2.0) * exp2(-f64::from(self.width >> 8)) }
    }

    fn details(&self) -> String {
        format!("{}, {} probes, segments of {}", bits_in_words(self.width), self.probes(), self.len)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
