//! a payload and its geometry -> answers: what every leaf can do, and how a query finds its function.
//!
//! A *leaf* is one kind of elementary structure. In a file it is a [`ShardedLeaf`]: one payload and one geometry per shard, all
//! of the same kind. The payload stays where it is (a vector, a memory map, a static array). The geometry is the handful of
//! integers that say how to read it, decoded and checked once when a file is opened, so that a query needs no check that could
//! fail: any payload bytes of the right length give some answer.
//!
//! # How a query finds its function
//!
//! A query takes 3 to 20 ns, so nothing is decided twice. When a file is opened every leaf gives a [`QueryFn`]: a pointer
//! to one function that is compiled for its shape and for the processor.
//!
//! ```text
//!   Step::new ─▶ Leaf::query_fn ─▶ ShardedLeaf::query_fn ─▶ Ribbon::query_fn                  which shape?
//!                                                                │  One<Columns<..>>
//!   Filter::contains ── one indirect call ──▶ v4(leaf, digest) ◀─┴─ ShardedLeaf::by           which processor?
//! ```
//!
//! * The *shape* is a type that implements [`Answer`] for a [`Part`]: what matters is a constant of it: the bands of a
//!   ribbon and the form of its thresholds, the width of a fuse table.
//! * The *processor* is a `Level`, which `arch.rs` turns into one of three copies of the function.
//! * The *way* to the leaf is a [`Way`]. A list of steps whose first leaf has one shard has a function that starts at the list and
//!   looks for no shard: a fifth less for the shortest queries, and a "no" of the first leaf is the answer at once. The
//!   functions of later leaves, and of leaves with several shards, go by the key's shard.
//!
//! Shards of one leaf nearly always share a shape ([`Query::same_kernel`]). Where they do not, each answers by its reference,
//! [`Query::contains`]: slower, and the same answers. Many keys at once are a loop of the leaf's own, [`Query::contains_many`].

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;

use super::Leaf;
use crate::arch::rows::{self, Rows};
use crate::arch::{Answer, Isa, Level, QueryFn};
use crate::error::FormatError;
use crate::format::Reader;
use crate::hash::{Digest, Salt};

/// How to read one shard's payload of one leaf.
pub(crate) trait Geometry: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// The structure's name, for a person.
    const NAME: &'static str;

    /// Appends the directory entry: small integers, as varints.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads and checks a directory entry. `salt` is the step's; the leaf derives its own from it.
    ///
    /// After success `payload_len` is exact and no query on a payload of that length can be out of bounds.
    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError>;

    /// Length of the payload in bytes.
    fn payload_len(&self) -> u64;

    /// The share of unlisted keys that match.
    fn fpr(&self) -> f64;

    /// The same of this very payload, where what is in it decides and is soon read.
    fn counted_rate(&self, _payload: &[u8]) -> f64 {
        self.fpr()
    }

    /// The parameters in words, for a person.
    fn details(&self) -> String;
}

/// A leaf that answers yes or no; never no for a key it was built on. Some leaves hold a value for every key as well.
pub(crate) trait Query: Geometry + Entry {
    /// Whether it can hold a value for every key.
    const HAS_VALUES: bool = false;

    /// The reference: answers for one key, whatever the shape and the processor.
    fn contains(&self, payload: &[u8], key: Digest) -> bool;

    /// Whether the functions below, chosen by `self`, also fit `other`.
    fn same_kernel(&self, other: &Self) -> bool;

    /// Where the first level lies in the payload, of a leaf that has its rows checked when it is opened.
    fn first_level(&self) -> Option<(rows::Form, rows::Place)> {
        None
    }

    /// The function that answers for one key where all shards have the kernel of this one.
    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Self>) -> QueryFn<W::Asked>;

    /// Answers for many keys of any shards where all have the kernel of this one; `out` is as long as `keys`.
    fn contains_many(&self, leaf: &ShardedLeaf<Self>, file: &[u8], keys: &[Digest], out: &mut [bool]);

    /// A part as a layer that changes, of a leaf that can.
    #[cfg(feature = "build")]
    fn layer(_part: &Part<Self>) -> Option<Box<dyn super::change::Layer>> {
        None
    }

    /// The reference for values: that of one key, and any for a key that it was not built on.
    fn get(&self, _payload: &[u8], _key: Digest) -> u32 {
        0
    }

    /// The function that returns the value of one key, of a leaf that holds values.
    #[cfg(feature = "maps")]
    fn value_fn(&self, _leaf: &ShardedLeaf<Self>) -> Option<QueryFn<Leaf, u32>> {
        None
    }

    /// Values of many keys.
    #[cfg(feature = "maps")]
    fn get_many(&self, _leaf: &ShardedLeaf<Self>, _file: &[u8], _keys: &[Digest], out: &mut [u32]) {
        out.fill(0);
    }
}

/// What the list of leaves (`leaves.rs`) says of a geometry.
pub(crate) trait Entry: Sized {
    /// The tag in a directory.
    const TAG: u8;

    /// The leaf as itself, if it has this geometry.
    fn of(leaf: &Leaf) -> Option<&ShardedLeaf<Self>>;

    /// A leaf of the list, for tests.
    #[cfg(test)]
    fn listed(leaf: ShardedLeaf<Self>) -> Leaf;
}

/// A width in 256ths of a bit, as a person writes it.
pub(crate) fn bits_in_words(width: u16) -> String {
    let bits = (f64::from(width) / 2.56).round() / 100.0;
    format!("{bits} bit{}", if bits == 1.0 { "" } else { "s" })
}

/// One shard's part of a leaf.
#[derive(Debug, Clone)]
pub(crate) struct Part<G> {
    pub(crate) geometry: G,
    pub(crate) payload: Bytes,
    /// Where the payload starts in the file.
    pub(crate) start: usize,
}

/// The parts of one leaf, one per shard: `1 << bits` of them.
#[derive(Debug, Clone)]
pub(crate) struct ShardedLeaf<G> {
    bits: u32,
    /// All parts; none if there is one, which is the first.
    parts: Arc<Vec<Part<G>>>,
    /// The first part, or a copy of it: with one shard, a query gets along without an index.
    first: Part<G>,
    /// Whether all parts have the kernel of the first.
    uniform: bool,
    /// The rows of all parts, of a leaf that has them checked.
    rows: Option<Arc<Rows>>,
}

impl<G: Query> ShardedLeaf<G> {
    /// A leaf of `1 << bits` parts; nothing for any other number.
    pub(crate) fn new(bits: u32, parts: Vec<Part<G>>) -> Option<ShardedLeaf<G>> {
        let first = parts.first().filter(|_| parts.len() as u64 == 1 << bits)?.clone();
        let uniform = parts.iter().all(|part| first.geometry.same_kernel(&part.geometry));
        let parts = if bits == 0 { Arc::default() } else { Arc::new(parts) };
        Some(ShardedLeaf { bits, parts, first, uniform, rows: None })
    }

    /// Reads the geometries of all parts and leaves their places open.
    pub(crate) fn decode(from: &mut Reader<'_>, bits: u32, salt: Salt) -> Result<ShardedLeaf<G>, FormatError> {
        let part =
            |from: &mut Reader<'_>| Ok(Part { geometry: G::decode(from, salt)?, payload: Bytes::new(), start: 0 });
        let left = from.left();
        let first = part(from)?;
        let size = left - from.left();
        if first.geometry.first_level().is_some() {
            from.draw(Rows::memory(1 << bits))?;
        }
        if bits == 0 {
            return Ok(ShardedLeaf::single(first));
        }
        // The first part is kept twice.
        from.draw(size)?;
        let mut parts = from.room(1 << bits)?;
        parts.push(first);
        for _ in 1..1u64 << bits {
            parts.push(part(from)?);
        }
        ShardedLeaf::new(bits, parts).ok_or_else(|| FormatError::invalid("directory: no shards"))
    }

    /// A leaf over the ranges of `file`, for tests.
    #[cfg(test)]
    pub(crate) fn of(bits: u32, file: &[u8], parts: Vec<(G, std::ops::Range<usize>)>) -> ShardedLeaf<G> {
        let part = |(geometry, range): (G, std::ops::Range<usize>)| {
            let payload = Bytes::copy_from_slice(file.get(range.clone()).unwrap_or(&[]));
            Part { geometry, payload, start: range.start }
        };
        let parts: Vec<Part<G>> = parts.into_iter().map(part).collect();
        #[allow(clippy::unwrap_used)]
        let mut leaf = ShardedLeaf::new(bits, parts.clone()).unwrap();
        parts.into_iter().enumerate().for_each(|(shard, part)| leaf.set_place(shard, part.start, part.payload));
        leaf
    }

    /// The reference for one key, for tests.
    #[cfg(test)]
    pub(crate) fn contains(&self, key: Digest) -> bool {
        let part = self.part(key);
        part.geometry.contains(&part.payload, key)
    }

    /// The function that answers for one key.
    pub(crate) fn query_fn<W: Way>(&self) -> QueryFn<W::Asked> {
        match self.uniform {
            true => self.first.geometry.query_fn::<W>(self),
            false => QueryFn::portable::<Ask<W, G, Reference>>(),
        }
    }

    /// Answers for many keys. `file` is the whole file: parts know their place.
    pub(crate) fn contains_many(&self, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        match self.uniform {
            true => self.first.geometry.contains_many(self, file, keys, out),
            false => self.one_by_one(keys, out, G::contains),
        }
    }

    /// Answers for many keys, each by the reference of its part.
    pub(crate) fn one_by_one<O>(&self, keys: &[Digest], out: &mut [O], reference: impl Fn(&G, &[u8], Digest) -> O) {
        for (out, &key) in out.iter_mut().zip(keys) {
            let part = self.part(key);
            *out = reference(&part.geometry, &part.payload, key);
        }
    }

    /// The function that returns the value of one key, if this leaf holds values.
    #[cfg(feature = "maps")]
    pub(crate) fn value_fn(&self) -> Option<QueryFn<Leaf, u32>> {
        let quick = self.first.geometry.value_fn(self);
        if G::HAS_VALUES && !self.uniform { Some(QueryFn::portable::<Ask<Leaf, G, Reference>>()) } else { quick }
    }

    /// Values of many keys.
    #[cfg(feature = "maps")]
    pub(crate) fn get_many(&self, file: &[u8], keys: &[Digest], out: &mut [u32]) {
        match G::HAS_VALUES && !self.uniform {
            true => self.one_by_one(keys, out, G::get),
            false => self.first.geometry.get_many(self, file, keys, out),
        }
    }

    /// The parameters of the largest shard, in words; the others differ in size alone.
    pub(crate) fn details(&self) -> String {
        let largest = self.parts().iter().max_by_key(|part| part.geometry.payload_len());
        largest.map(|part| part.geometry.details()).unwrap_or_default()
    }

    /// The share of unlisted keys that match, on average over the shards.
    pub(crate) fn fpr(&self, of: impl Fn(&Part<G>) -> f64) -> f64 {
        self.parts().iter().map(of).sum::<f64>() / self.parts().len().max(1) as f64
    }

    /// Says where the payload of one shard lies.
    pub(crate) fn set_place(&mut self, shard: usize, start: usize, payload: Bytes) {
        if shard == 0 {
            (self.first.start, self.first.payload) = (start, payload.clone());
        }
        // There is no copy of a leaf that is being opened.
        if let Some(part) = Arc::get_mut(&mut self.parts).and_then(|parts| parts.get_mut(shard)) {
            (part.start, part.payload) = (start, payload);
        }
        if shard + 1 == self.parts().len() && self.first.geometry.first_level().is_some() {
            let levels = self.parts().iter().map(|part| {
                let (form, place) = part.geometry.first_level()?;
                Some((&part.payload, form, place))
            });
            self.rows = Some(Arc::new(Rows::new(levels)));
        }
    }
}

impl<G: Entry> ShardedLeaf<G> {
    /// The function for what `A` answers about a part, for this processor.
    pub(crate) fn by<W: Way, A: Answer<Part<G>, O>, O: Output>(&self, level: Level) -> QueryFn<W::Asked, O> {
        QueryFn::new::<Ask<W, G, A>>(level)
    }
}

impl<G> ShardedLeaf<G> {
    /// A leaf of one part.
    pub(crate) fn single(part: Part<G>) -> ShardedLeaf<G> {
        ShardedLeaf { bits: 0, parts: Arc::default(), first: part, uniform: true, rows: None }
    }

    /// One shard as a leaf of its own.
    pub(crate) fn alone(&self, shard: usize) -> Option<ShardedLeaf<G>>
    where
        G: Clone,
    {
        self.parts().get(shard).cloned().map(ShardedLeaf::single)
    }

    /// The rows of all parts, once all payloads have their places.
    #[inline(always)]
    pub(crate) fn rows(&self) -> Option<&Rows> {
        self.rows.as_deref()
    }

    /// Whether all parts have the kernel of the first.
    pub(crate) fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// All parts, in the order of the shards.
    pub(crate) fn parts(&self) -> &[Part<G>] {
        if self.bits == 0 { std::slice::from_ref(&self.first) } else { &self.parts }
    }

    /// The part for a key.
    #[inline(always)]
    pub(crate) fn part(&self, key: Digest) -> &Part<G> {
        // A branch that is always the same costs less than an index to wait for.
        match self.bits {
            0 => &self.first,
            bits => self.parts.get(key.shard(bits)).unwrap_or(&self.first),
        }
    }

    /// The part for a key where it may be known that there is one.
    #[inline(always)]
    pub(crate) fn part_of<const SINGLE: bool>(&self, key: Digest) -> &Part<G> {
        if SINGLE { &self.first } else { self.part(key) }
    }
}

/// What a leaf answers with.
pub(crate) trait Output {
    /// The answer of a leaf that is not there: what denies nothing.
    const MISSING: Self;

    /// The answer to the question, from that of the leaf.
    fn of<W: Way>(self, asked: &W::Asked, key: Digest) -> Self;
}

impl Output for bool {
    const MISSING: bool = true;

    #[inline(always)]
    fn of<W: Way>(self, asked: &W::Asked, key: Digest) -> bool {
        W::go_on(asked, self, key)
    }
}

impl Output for u32 {
    const MISSING: u32 = 0;

    #[inline(always)]
    fn of<W: Way>(self, _: &W::Asked, _: Digest) -> u32 {
        self
    }
}

/// The way from what a function is called with to a leaf's part, and from the part's answer to the whole.
pub(crate) trait Way: 'static {
    /// A leaf, or a list of steps that starts with it.
    type Asked: 'static;
    /// Whether the leaf has one shard, or is a ribbon, which finds the shard of a key by itself.
    const SINGLE: bool;

    /// The leaf, if it has this geometry.
    fn leaf<G: Entry>(asked: &Self::Asked) -> Option<&ShardedLeaf<G>>;

    /// The rows of the leaf, if it is a ribbon.
    fn rows(asked: &Self::Asked) -> Option<&Rows>;

    /// The answer for a key, from the leaf's own.
    #[inline(always)]
    fn go_on(_: &Self::Asked, yes: bool, _: Digest) -> bool {
        yes
    }
}

impl Way for Leaf {
    type Asked = Leaf;
    const SINGLE: bool = false;

    #[inline(always)]
    fn leaf<G: Entry>(leaf: &Leaf) -> Option<&ShardedLeaf<G>> {
        G::of(leaf)
    }

    #[inline(always)]
    fn rows(leaf: &Leaf) -> Option<&Rows> {
        if let Leaf::Ribbon(leaf) = leaf { leaf.rows() } else { None }
    }
}

/// Queries the part of a leaf that the key belongs to.
struct Ask<W, G, A>(PhantomData<(W, G, A)>);

impl<W: Way, G: Entry, O: Output, A: Answer<Part<G>, O>> Answer<W::Asked, O> for Ask<W, G, A> {
    const V4: bool = A::V4;

    #[inline(always)]
    fn answer<I: Isa>(asked: &W::Asked, key: Digest) -> O {
        // Not by a closure: it would be compiled for any processor.
        match W::leaf::<G>(asked) {
            Some(leaf) => {
                let part = if W::SINGLE { leaf.part_of::<true>(key) } else { leaf.part(key) };
                A::answer::<I>(part, key).of::<W>(asked, key)
            }
            None => O::MISSING,
        }
    }
}

/// Queries the reference of a geometry.
pub(super) struct Reference;

impl<G: Query> Answer<Part<G>> for Reference {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<G>, key: Digest) -> bool {
        part.geometry.contains(&part.payload, key)
    }
}

impl<G: Query> Answer<Part<G>, u32> for Reference {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<G>, key: Digest) -> u32 {
        part.geometry.get(&part.payload, key)
    }
}

/// A leaf without keys: no, or zero.
pub(crate) struct Never;

impl<T, O: Default> Answer<T, O> for Never {
    #[inline(always)]
    fn answer<I: Isa>(_: &T, _: Digest) -> O {
        O::default()
    }
}
