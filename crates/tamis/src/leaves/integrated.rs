//! digests to match, digests never to match -> one table that does both: the integrated filter.
//!
//! **Idea.** A filter of w bits on the keys S lets through a few of the listed negatives, the set F. One more bit,
//! stored for the keys and for F, tells these two apart. Kept in a table of its own that bit costs every member a
//! second lookup ([FPFS] 3.5, a chain of two filters). But tables that are solved by linear equations may share their
//! *places*: each bit of the word is a system of its own, with the same left-hand sides for the keys, so the stages lie
//! side by side and are read together ([FPFS] 3.6):
//!
//! ```text
//!                   stage one: w fingerprint bits      stage two
//!   word            | b0 | b1 | b2 |  ..  | b(w-1) |   b(w) | b(w+1) |
//!
//!   solved for      the keys                           keys and F, or a hashed share of them
//!   a key reads     its fingerprint                    its fingerprint bit
//!   F reads         its fingerprint, by chance         the complement of its fingerprint bit
//!
//!   query:  (word(h) ^ fingerprint(h)) & mask(h) == 0
//!           where word(h) is the xor of the cells of a fuse table, or the parities of the columns of a ribbon
//! ```
//!
//! A key agrees in all bits, an element of F differs in one of stage two, other negatives differ in stage one, and a
//! stranger, for whom all bits are coins, agrees in w + 1 of them with probability 2^-(w+1): the rate of a plain filter
//! of w + 1 bits, at the price of its lookup.
//!
//! **Room.** Stage two has s + f elements where stage one has s. [`Parts`] are the ways to find room for the others:
//!
//! ```text
//!   One       a table for s + f; one bit                        (s + f) (w + 1)       the plain query
//!   Two       a table for s; two bits, a hash says which counts  s (w + 2)            one mask more
//!   Hybrid    a table for s; one bit; a hashed share of about    s (w + 1) + f        a few ask the rest as well
//!             f elements has its bit in a second table, the *rest*
//!   General   as Two; some keys are stored in both bits, as      s (w + 2)            a lower rate for strangers
//!             many as there is room for, and check both
//! ```
//!
//! Two and General have room for f <= s. Elements beyond that go to the rest: it costs them one bit, where a larger
//! table would cost w + 2. General with f > s is Two.
//!
//! **On fuse tables** the stages are peeled one after the other on one geometry. They share the seed: when stage two
//! cannot be peeled, the next seed is tried, the keys let other negatives through, and F is gathered anew.
//!
//! **On ribbons** stage one is a ribbon as it is, with all its levels. The bits of stage two are more columns in the
//! blocks of its first level, with thresholds of their own, because their equations are others. What the first level
//! bumps, in either stage, has its second-stage bit in the rest. So there is always a rest, stage two cannot fail, and
//! the negatives are read once. A small ribbon bumps nothing; if its columns cannot be solved, they are given a smaller
//! share. One would make every column larger to keep a few keys out of a rest that is there anyway: on ribbons it is
//! the same as Hybrid.
//!
//! **Why not the neighbours.** A chain of two filters has the size of Hybrid and asks twice for every member. A plain
//! filter on S and T together with w + 1 bits for each ([FPFS] 3.4) has the query of One and pays for all of T.
//!
//! Papers: [FPFS] Reviriego, Sánchez-Macián, Walzer and Dillinger, *Approximate Membership Query Filters with a False
//! Positive Free Set* (2021): 3.6 (One, Two), 3.8.1 (Hybrid), 3.8.2 (General).

use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt};
#[cfg(feature = "build")]
use crate::leaves::fuse::Arity;
use crate::leaves::fuse::{self, Fuse};
use crate::leaves::ribbon::Ribbon;
use crate::leaves::{Choose, Column, Contains, Geometry};
use bands::Bands;
use rest::Rest;
use rule::{Rule, WHOLE, coin};

mod bands;
#[cfg(feature = "build")]
mod build;
mod rest;
mod rule;
#[cfg(feature = "build")]
pub(crate) use build::{Negatives, build};

/// How an integrated filter finds room for the negatives that its first stage lets through.
///
/// `s` is the number of keys, `f` that of such negatives; the first stage has w bits.
///
/// ```
/// use tamis::Parts;
/// assert_eq!(Parts::default(), Parts::Hybrid);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parts {
    /// One second-stage bit in a table for s + f elements: asked exactly like a plain filter of w + 1 bits. On ribbons
    /// the same as [`Parts::Hybrid`].
    One,
    /// Two second-stage bits in a table for s elements; every element has one of them. For f close to s.
    Two,
    /// One second-stage bit in a table for s elements; the others, about f of them, have theirs in a small table
    /// behind. The smallest, and for most members as fast as [`Parts::One`].
    #[default]
    Hybrid,
    /// Like [`Parts::Two`], but room that is left over is used to store keys in both bits: fewer strangers match.
    General,
}

impl Parts {
    /// Bits of stage two in the word.
    pub(crate) const fn columns(self) -> u32 {
        match self {
            Parts::One | Parts::Hybrid => 1,
            Parts::Two | Parts::General => 2,
        }
    }

    /// The number in files, from 1.
    fn number(self) -> u64 {
        match self {
            Parts::One => 1,
            Parts::Two => 2,
            Parts::Hybrid => 3,
            Parts::General => 4,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Parts::One => "one bit",
            Parts::Two => "one of two bits",
            Parts::Hybrid => "one bit or the rest",
            Parts::General => "one or two bits",
        }
    }
}

/// The structure whose words hold both stages.
#[cfg(feature = "build")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Fuse(Arity),
    Ribbon,
}

/// What a caller may choose.
#[cfg(feature = "build")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    pub(crate) base: Base,
    /// Bits of stage one, 1 to 30.
    pub(crate) first: u8,
    pub(crate) parts: Parts,
}

/// The most bits of stage one: two more fit in a word of 32.
const MAX_FIRST: u32 = 30;

/// How to read one shard.
#[derive(Clone, Debug)]
pub(crate) struct Integrated {
    rule: Rule,
    /// The table, if the words are cells; else without keys. Not behind a tag, because the fastest queries go there.
    fuse: Fuse,
    /// The table, if the words are columns of the first level of a ribbon.
    bands: Option<Bands>,
    /// Where elements without a bit in the word have theirs, and where it starts in the payload.
    rest: Box<Rest>,
    rest_at: u64,
}

impl Integrated {
    /// The rate of this very table: thresholds say who compares one bit less.
    pub(crate) fn counted_rate(&self, payload: &[u8]) -> f64 {
        match &self.bands {
            Some(bands) if self.rule.parts == Parts::General => self.rule.rate(bands.compared(payload)),
            _ => self.rate(),
        }
    }

    /// Without keys.
    fn empty() -> Integrated {
        Integrated::on_fuse(Rule::new(1, Parts::One, WHOLE), Fuse::EMPTY, Fuse::EMPTY)
    }

    fn on_fuse(rule: Rule, fuse: Fuse, rest: Fuse) -> Integrated {
        let rest_at = fuse.payload_len();
        Integrated { rule, fuse, bands: None, rest: Rest::Fuse(rest).into(), rest_at }
    }

    fn on_ribbon(rule: Rule, bands: Bands, rest: Ribbon) -> Integrated {
        let rest_at = bands.payload_len();
        Integrated { rule, fuse: Fuse::EMPTY, bands: Some(bands), rest: Rest::Ribbon(rest).into(), rest_at }
    }

    /// Whether every bit of the word counts for every key.
    fn plain(&self) -> bool {
        self.rule.parts == Parts::One
    }

    fn is_empty(&self) -> bool {
        self.bands.is_none() && self.fuse.is_empty()
    }

    /// The payload of the rest.
    #[inline(always)]
    fn behind<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        payload.get(self.rest_at as usize..).unwrap_or(&[])
    }
}

/// Cells of which every bit counts for every key: the plain query.
struct EveryBit;

/// Cells with bits of stage two that count for some keys.
struct SomeBits;

impl fuse::View for EveryBit {
    type Of = Integrated;
    #[inline(always)]
    fn fuse(of: &Integrated) -> &Fuse {
        &of.fuse
    }
}

impl fuse::View for SomeBits {
    type Of = Integrated;
    #[inline(always)]
    fn fuse(of: &Integrated) -> &Fuse {
        &of.fuse
    }

    #[inline(always)]
    fn mask(of: &Integrated, h: u64, _: u32) -> u32 {
        of.rule.mask(h)
    }

    #[inline(always)]
    fn settled(of: &Integrated, mask: u32) -> bool {
        mask > of.rule.low()
    }

    fn settle(of: &Integrated, payload: &[u8], key: Digest) -> bool {
        of.rest.says(of.behind(payload), key, coin(of.fuse.hash(key)))
    }
}

impl Contains for Integrated {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        match &self.bands {
            Some(bands) => self.contains_in(bands, payload, key),
            None if self.plain() => Fuse::contains_in::<EveryBit>(self, payload, key),
            None => Fuse::contains_in::<SomeBits>(self, payload, key),
        }
    }

    fn alike(&self, other: &Integrated) -> bool {
        match (&self.bands, &other.bands) {
            (Some(a), Some(b)) => a.same_kernel(b),
            (None, None) => self.plain() == other.plain() && self.fuse.same_shape(&other.fuse),
            _ => false,
        }
    }

    fn choose<C: Choose<Integrated>>(&self, chooser: C) -> C::Chosen {
        match &self.bands {
            Some(bands) => bands.choose(chooser),
            None if self.plain() => self.fuse.choose_in::<EveryBit, C>(chooser),
            None => self.fuse.choose_in::<SomeBits, C>(chooser),
        }
    }

    fn ask_many(&self, column: &Column<Integrated>, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        match &self.bands {
            Some(bands) => bands.ask_many(column, keys, out),
            None if self.plain() => self.fuse.ask_many_in::<EveryBit>(column, file, keys, out),
            None => self.fuse.ask_many_in::<SomeBits>(column, file, keys, out),
        }
    }
}

/// Directory entry, all varints:
///
/// ```text
///   parts     0: no keys, and nothing follows; 1 One (on fuse tables alone), 2 Two, 3 Hybrid, 4 General
///   base      0 fuse, 1 ribbon
///   share     4096ths of the elements whose bit is in the word (General: that have both), 0 to 4096; One: 4096
///   table     the entry of a fuse table, of stage one's bits and those of stage two (One, Hybrid: 1; Two, General: 2);
///             or the entry of a ribbon, of stage one's bits alone
///   rest      the entry of a table of the same kind, of one bit, or without keys
/// ```
///
/// The payload is that of the fuse table and then the rest's. For a ribbon: the blocks of its first level, each with
/// one or two columns more at its end; the ribbon's payload from the first level's thresholds on; the thresholds of the
/// first and of the second of those columns; the rest's payload.
impl Geometry for Integrated {
    fn encode(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return put_varint(out, 0);
        }
        put_varint(out, self.rule.parts.number());
        put_varint(out, self.bands.is_some() as u64);
        put_varint(out, self.rule.share.into());
        match &self.bands {
            Some(bands) => bands.encode(out),
            None => self.fuse.encode(out),
        }
        self.rest.encode(out);
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Integrated, FormatError> {
        from.draw(size_of::<Rest>() as u64)?;
        let parts = match from.within("parts", 0..=4)? {
            0 => return Ok(Integrated::empty()),
            1 => Parts::One,
            2 => Parts::Two,
            3 => Parts::Hybrid,
            _ => Parts::General,
        };
        let ribbon = from.within("base", 0..=1)? == 1;
        let share = from.within("share", 0..=WHOLE.into())? as u32;
        if parts == Parts::One && (ribbon || share != WHOLE) {
            return Err(FormatError::invalid("integrated filter: one bit for all, but not on a fuse table for all"));
        }
        let first = |width: u16, columns: u32| match u32::from(width >> 8).checked_sub(columns) {
            Some(first @ 1..=MAX_FIRST) if width & 255 == 0 => Ok(first),
            _ => Err(FormatError::invalid(format!("integrated filter: a table of {}/256 bits", width))),
        };
        if ribbon {
            let bands = Bands::decode(from, parts.columns(), salt)?;
            let rule = Rule::new(first(bands.width(), 0)?, parts, share);
            return Ok(Integrated::on_ribbon(rule, bands, rest::one_bit(Ribbon::decode(from, Rest::salt(salt))?)?));
        }
        let fuse = Fuse::decode(from, salt)?;
        let rule = Rule::new(first(fuse.width(), parts.columns())?, parts, share);
        Ok(Integrated::on_fuse(rule, fuse, rest::one_bit(Fuse::decode(from, Rest::salt(salt))?)?))
    }

    fn payload_len(&self) -> u64 {
        self.rest_at + self.rest.payload_len()
    }

    fn rate(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.rule.rate(1.0) }
    }

    fn details(&self) -> String {
        let base = match &self.bands {
            Some(bands) => format!("a ribbon of {}", bands.details()),
            None if self.is_empty() => return "no keys".into(),
            None => format!("a binary fuse of {}", self.fuse.details()),
        };
        format!("{} bits and {}, in {base}", self.rule.first, self.rule.parts.in_words())
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
