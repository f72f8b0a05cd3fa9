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
//!           where word(h) is the xor of the cells of a fuse table
//! ```
//!
//! A key agrees in all bits, an element of F differs in one of stage two, other negatives differ in stage one, and a
//! unlisted key, for whom all bits are coins, agrees in w + 1 of them with probability 2^-(w+1): the rate of a plain filter
//! of w + 1 bits, at the price of its lookup.
//!
//! **Room.** Stage two has s + f elements where stage one has s. [`IntegratedVariant`] are the ways to find room for the others:
//!
//! ```text
//!   One       a table for s + f; one bit                        (s + f) (w + 1)       the plain query
//!   Two       a table for s; two bits, a hash says which counts  s (w + 2)            one mask more
//!   Hybrid    a table for s; one bit; a hashed share of about    s (w + 1) + f        a few query the rest too
//!             f elements has its bit in a second table, the *rest*
//!   General   as Two; some keys are stored in both bits, as      s (w + 2)            a lower rate for unlisted keys
//!             many as there is room for, and check both
//! ```
//!
//! Two and General have room for f <= s. Elements beyond that go to the rest: it costs them one bit, where a larger
//! table would cost w + 2. General with f > s is Two.
//!
//! **Construction.** The stages are peeled one after the other on one geometry. They share the seed: when stage two
//! cannot be peeled, the next seed is tried, the keys let other negatives through, and F is gathered again.
//!
//! Ribbons could hold the stages too ([FPFS] leaves it to later work); a steered ribbon is smaller and as fast to query.
//!
//! **Why not the neighbours.** A chain of two filters has the size of Hybrid and queries two for every member. A plain
//! filter on S and T together with w + 1 bits for each ([FPFS] 3.4) has the query of One and pays for all of T.
//!
//! Papers: [FPFS] Reviriego, Sánchez-Macián, Walzer and Dillinger, *Approximate Membership Query Filters with a False
//! Positive Free Set* (2021): 3.6 (One, Two), 3.8.1 (Hybrid), 3.8.2 (General).

#[cfg(not(feature = "papers"))]
use crate::arch::Level;
use crate::arch::QueryFn;
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt};
#[cfg(feature = "build")]
use crate::leaves::fuse::Arity;
use crate::leaves::fuse::{self, Fuse};
#[cfg(not(feature = "papers"))]
use crate::leaves::leaf::Reference;
use crate::leaves::{Geometry, Query, ShardedLeaf, Way};
use rule::{Rule, WHOLE, coin};

#[cfg(feature = "build")]
mod build;
mod rule;
#[cfg(feature = "build")]
#[cfg(test)]
pub(crate) use build::build;

/// Where an integrated filter stores the negatives that match its first stage.
///
/// `s` is the number of keys, `f` that of such negatives; the first stage has w bits.
///
/// ```
/// use tamis::IntegratedVariant;
/// assert_eq!(IntegratedVariant::default(), IntegratedVariant::Hybrid);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntegratedVariant {
    /// One second-stage bit in a table for s + f elements: queried exactly like a plain filter of w + 1 bits.
    One,
    /// Two second-stage bits in a table for s elements; every element has one of them. For f close to s.
    Two,
    /// One second-stage bit in a table for s elements; the others, about f of them, have theirs in a small table
    /// behind. The smallest, and for most members as fast as [`IntegratedVariant::One`].
    #[default]
    Hybrid,
    /// Like [`IntegratedVariant::Two`], but slots that are left over store keys in both bits: fewer unlisted keys match.
    General,
}

impl IntegratedVariant {
    /// Bits of stage two in the word.
    pub(crate) const fn columns(self) -> u32 {
        match self {
            IntegratedVariant::One | IntegratedVariant::Hybrid => 1,
            IntegratedVariant::Two | IntegratedVariant::General => 2,
        }
    }

    /// The number in files, from 1.
    fn number(self) -> u64 {
        match self {
            IntegratedVariant::One => 1,
            IntegratedVariant::Two => 2,
            IntegratedVariant::Hybrid => 3,
            IntegratedVariant::General => 4,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            IntegratedVariant::One => "one bit",
            IntegratedVariant::Two => "one of two bits",
            IntegratedVariant::Hybrid => "one bit or the rest",
            IntegratedVariant::General => "one or two bits",
        }
    }
}

/// What a caller may choose.
#[cfg(feature = "build")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    pub(crate) arity: Arity,
    /// Bits of stage one, 1 to 30.
    pub(crate) first: u8,
    pub(crate) parts: IntegratedVariant,
}

/// The most bits of stage one: two more fit in a word of 32.
const MAX_FIRST: u32 = 30;

/// How to read one shard.
#[derive(Clone, Debug)]
pub(crate) struct Integrated {
    rule: Rule,
    fuse: Fuse,
    /// Where elements without a bit in the word have theirs: a table of one bit, behind the other in the payload.
    ///
    /// There a key reads its coin, an element of F the other side, and an unlisted key either with probability 1/2.
    rest: Box<Fuse>,
}

/// The salt of the rest: numbers below 2^32 are those of the table's own attempts.
fn rest_salt(salt: Salt) -> Salt {
    salt.child(1 << 32)
}

impl Integrated {
    fn new(rule: Rule, fuse: Fuse, rest: Fuse) -> Integrated {
        Integrated { rule, fuse, rest: rest.into() }
    }

    /// Without keys.
    fn empty() -> Integrated {
        Integrated::new(Rule::new(1, IntegratedVariant::One, WHOLE), Fuse::EMPTY, Fuse::EMPTY)
    }

    /// Whether every bit of the word counts for every key.
    fn plain(&self) -> bool {
        self.rule.parts == IntegratedVariant::One
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
    fn is_final(of: &Integrated, mask: u32) -> bool {
        mask > of.rule.low()
    }

    #[inline(never)]
    fn resolve(of: &Integrated, payload: &[u8], key: Digest) -> bool {
        let rest = payload.get(of.fuse.payload_len() as usize..).unwrap_or(&[]);
        of.rest.get(rest, key) == coin(of.fuse.hash(key))
    }
}

impl Query for Integrated {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        match self.plain() {
            true => Fuse::contains_in::<EveryBit>(self, payload, key),
            false => Fuse::contains_in::<SomeBits>(self, payload, key),
        }
    }

    fn same_kernel(&self, other: &Integrated) -> bool {
        self.plain() == other.plain() && self.fuse.same_shape(&other.fuse)
    }

    // Twenty shapes for three processors: only figures of the papers are worth that much code.
    #[cfg(feature = "papers")]
    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Integrated>) -> QueryFn<W::Asked> {
        match self.plain() {
            true => self.fuse.query_fn_in::<EveryBit, W>(leaf),
            false => self.fuse.query_fn_in::<SomeBits, W>(leaf),
        }
    }

    #[cfg(not(feature = "papers"))]
    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Integrated>) -> QueryFn<W::Asked> {
        leaf.by::<W, Reference, _>(Level::detect())
    }

    #[cfg(feature = "papers")]
    fn contains_many(&self, leaf: &ShardedLeaf<Integrated>, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        match self.plain() {
            true => self.fuse.ask_many_in::<EveryBit>(leaf, file, keys, out),
            false => self.fuse.ask_many_in::<SomeBits>(leaf, file, keys, out),
        }
    }

    #[cfg(not(feature = "papers"))]
    fn contains_many(&self, leaf: &ShardedLeaf<Integrated>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        leaf.one_by_one(keys, out, Integrated::contains);
    }
}

/// Directory entry, all varints:
///
/// ```text
///   parts     0: no keys, and nothing follows; 1 One, 2 Two, 3 Hybrid, 4 General
///   0
///   share     4096ths of the elements whose bit is in the word (General: that have both), 0 to 4096; One: 4096
///   table     the entry of a fuse table, of stage one's bits and those of stage two (One, Hybrid: 1; Two, General: 2)
///   rest      the entry of a fuse table of one bit, or without keys
/// ```
///
/// The payload is that of the table and then the rest's.
impl Geometry for Integrated {
    const NAME: &'static str = "integrated";

    fn encode(&self, out: &mut Vec<u8>) {
        if self.fuse.is_empty() {
            return put_varint(out, 0);
        }
        put_varint(out, self.rule.parts.number());
        put_varint(out, 0);
        put_varint(out, self.rule.share.into());
        self.fuse.encode(out);
        self.rest.encode(out);
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Integrated, FormatError> {
        from.draw(size_of::<Fuse>() as u64)?;
        let parts = match from.varint()? {
            0 => return Ok(Integrated::empty()),
            1 => IntegratedVariant::One,
            2 => IntegratedVariant::Two,
            3 => IntegratedVariant::Hybrid,
            4 => IntegratedVariant::General,
            number => return Err(FormatError::unsupported("variant of an integrated filter", number)),
        };
        match from.varint()? {
            0 => {}
            number => return Err(FormatError::unsupported("base of an integrated filter", number)),
        }
        let share = from.within("share", 0..=WHOLE.into())? as u32;
        if parts == IntegratedVariant::One && share != WHOLE {
            return Err(FormatError::invalid("integrated filter: one bit for all, but not in a table for all"));
        }
        let fuse = Fuse::decode(from, salt)?;
        let first = match u32::from(fuse.width() >> 8).checked_sub(parts.columns()) {
            Some(first @ 1..=MAX_FIRST) if fuse.width() & 255 == 0 => first,
            _ => return Err(FormatError::invalid(format!("integrated filter: a table of {}/256 bits", fuse.width()))),
        };
        let rest = Fuse::decode(from, rest_salt(salt))?;
        // Without elements it has any width.
        if rest.width() != 256 && rest.payload_len() > 0 {
            let width = rest.width();
            return Err(FormatError::invalid(format!("integrated filter: a rest of {width}/256 bits, expected one")));
        }
        Ok(Integrated::new(Rule::new(first, parts, share), fuse, rest))
    }

    fn payload_len(&self) -> u64 {
        self.fuse.payload_len() + self.rest.payload_len()
    }

    fn fpr(&self) -> f64 {
        if self.fuse.is_empty() { 0.0 } else { self.rule.fpr() }
    }

    fn details(&self) -> String {
        if self.fuse.is_empty() {
            return "no keys".into();
        }
        let (first, parts) = (self.rule.first, self.rule.parts.in_words());
        let bits = if first == 1 { "bit" } else { "bits" };
        format!("{first} {bits} and {parts}, in a binary fuse of {}", self.fuse.details())
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
