//! sorted distinct digests -> bytes that answer: the elementary structures.
//!
//! A *leaf* is one kind of elementary structure. In a file it is a *column*: one payload and one geometry per shard, all of
//! the same kind. The payload stays where it is (a vector, a memory map, a static array); the geometry is the handful of
//! integers that say how to read it, decoded and checked once when a file is opened, so that a query needs no check that
//! could fail: any payload bytes of the right length give some answer.

use std::marker::PhantomData;

use bytes::Bytes;

use crate::arch::{Answer, Ask, Fetch, Isa, Level};
use crate::error::FormatError;
use crate::format::Reader;
use crate::hash::{Digest, Salt};

pub(crate) mod bloom;
#[cfg(all(test, feature = "build"))]
mod chosen;
pub(crate) mod cuckoo;
#[cfg(feature = "build")]
pub(crate) mod dynamic;
pub(crate) mod fuse;
pub(crate) mod integrated;
pub(crate) mod local;
mod pack;
pub(crate) mod quotient;
pub(crate) mod ribbon;
pub(crate) mod steered;
pub(crate) mod strips;

/// How to read one shard's payload of one leaf.
pub(crate) trait Geometry: Sized {
    /// Appends the directory entry: small integers, as varints.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads and checks a directory entry. `salt` is the step's; the leaf derives its own from it.
    ///
    /// After success `payload_len` is exact and no query on a payload of that length can be out of bounds.
    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError>;

    /// Length of the payload in bytes.
    fn payload_len(&self) -> u64;

    /// The share of strangers that are let through.
    fn rate(&self) -> f64;

    /// The parameters in words, for a person.
    fn details(&self) -> String;
}

/// A leaf that answers yes or no; never no for a key it was built on.
pub(crate) trait Contains: Geometry {
    /// Asks for one key, whatever the shape.
    fn contains(&self, payload: &[u8], key: Digest) -> bool;

    /// Whether the fast ways below, chosen by `self`, also fit `other`.
    fn alike(&self, other: &Self) -> bool;

    /// Tells `chooser` the fast way to ask parts that are all like this one.
    fn choose<C: Choose<Self>>(&self, chooser: C) -> C::Chosen;

    /// Asks for many keys of any shards of a column whose parts are all like this one; `out` is as long as `keys`.
    fn ask_many(&self, column: &Column<Self>, file: &[u8], keys: &[Digest], out: &mut [bool]);
}

/// Someone who wants to know how a leaf answers, as a type.
pub(crate) trait Choose<G, O = bool> {
    /// What becomes of it.
    type Chosen;
    /// Is told.
    fn choose<A: Answer<Part<G>, O>>(self, level: Level) -> Self::Chosen;
}

/// A leaf that holds a value for every key it was built on; any value for other keys.
pub(crate) trait Retrieve: Contains {
    /// The value of one key, whatever the shape.
    fn get(&self, payload: &[u8], key: Digest) -> u32;

    /// Tells `chooser` the fast way to read values from parts that are all [`Contains::alike`] this one.
    fn choose_value<C: Choose<Self, u32>>(&self, chooser: C) -> C::Chosen;

    /// The values of many keys of any shards of a column whose parts are all like this one; `out` is as long as `keys`.
    fn get_many(&self, column: &Column<Self>, file: &[u8], keys: &[Digest], out: &mut [u32]);
}

/// A width in 256ths of a bit, as a person writes it.
pub(crate) fn bits_in_words(width: u16) -> f64 {
    (f64::from(width) / 2.56).round() / 100.0
}

/// What a leaf stores for its keys.
#[cfg(feature = "build")]
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    /// A fingerprint of each key: the function becomes a filter.
    Fingerprints,
    /// One value per key, in the order of the keys, each below 2^width.
    Given(&'a [u32]),
    /// A fingerprint of each key that is wanted, and for the others one whose lowest bit is wrong: the leaf says yes to the
    /// first and no to the second, and to a stranger as seldom as any filter ([Chained] section 4.2.1, strategy (a)).
    Signed(&'a [bool]),
}

/// One shard's part of a column.
#[derive(Debug, Clone)]
pub(crate) struct Part<G> {
    pub(crate) geometry: G,
    pub(crate) payload: Bytes,
    /// Where the payload starts in the file.
    pub(crate) start: usize,
}

/// The parts of one leaf, one per shard: `1 << bits` of them.
#[derive(Debug, Clone)]
pub(crate) struct Column<G> {
    bits: u32,
    /// All parts; none if there is one, which is the first.
    parts: Box<[Part<G>]>,
    /// The first part, or a copy of it: with one shard, a query gets along without an index.
    first: Part<G>,
    /// Whether all parts are like the first.
    alike: bool,
}

impl<G: Contains + Clone> Column<G> {
    /// A column of `1 << bits` parts; nothing for any other number.
    pub(crate) fn new(bits: u32, parts: Box<[Part<G>]>) -> Option<Column<G>> {
        let first = parts.first().filter(|_| parts.len() as u64 == 1 << bits)?.clone();
        let alike = parts.iter().all(|part| first.geometry.alike(&part.geometry));
        let parts = if bits == 0 { Box::default() } else { parts };
        Some(Column { bits, parts, first, alike })
    }

    /// A column of one part.
    pub(crate) fn single(part: Part<G>) -> Column<G> {
        Column { bits: 0, parts: Box::default(), first: part, alike: true }
    }

    /// A column over the ranges of `file`, for tests.
    #[cfg(test)]
    pub(crate) fn of(bits: u32, file: &[u8], parts: Vec<(G, std::ops::Range<usize>)>) -> Column<G> {
        let part = |(geometry, range): (G, std::ops::Range<usize>)| {
            let payload = Bytes::copy_from_slice(file.get(range.clone()).unwrap_or(&[]));
            Part { geometry, payload, start: range.start }
        };
        #[allow(clippy::unwrap_used)]
        Column::new(bits, parts.into_iter().map(part).collect()).unwrap()
    }

    /// The fastest way to find this column in `T`, with `F`, to ask it for one key, and to go on from there as `E` does.
    pub(crate) fn ask<T: ?Sized, F: Find<T, G>, E: Finish<T>>(&self) -> Ask<T> {
        struct Chooser<T: ?Sized, F, E> {
            single: bool,
            kinds: PhantomData<(F, E, T)>,
        }
        impl<G, T: ?Sized, F: Find<T, G>, E: Finish<T>> Choose<G> for Chooser<T, F, E> {
            type Chosen = Ask<T>;
            fn choose<A: Answer<Part<G>>>(self, level: Level) -> Ask<T> {
                match E::QUICK && self.single {
                    true => E::finish::<Single<F, G, A>>(level),
                    false => E::finish::<Sharded<F, G, A>>(level),
                }
            }
        }
        if self.alike {
            return self.first.geometry.choose(Chooser::<T, F, E> { single: self.bits == 0, kinds: PhantomData });
        }
        E::finish::<Sharded<F, G, Slowly>>(Level::detect())
    }

    /// Asks for many keys. `file` is the whole file: parts know their place.
    pub(crate) fn contains_many(&self, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        if self.alike {
            return self.first.geometry.ask_many(self, file, keys, out);
        }
        for (out, &key) in out.iter_mut().zip(keys) {
            *out = self.contains(key);
        }
    }

    /// Asks for one key, whatever the shape.
    pub(crate) fn contains(&self, key: Digest) -> bool {
        let part = self.part(key);
        part.geometry.contains(&part.payload, key)
    }

    /// Says where the payload of one shard lies.
    pub(crate) fn set_place(&mut self, shard: usize, start: usize, payload: Bytes) {
        if shard == 0 {
            (self.first.start, self.first.payload) = (start, payload.clone());
        }
        if let Some(part) = self.parts.get_mut(shard) {
            (part.start, part.payload) = (start, payload);
        }
    }
}

/// How values are read; maps are made of it.
impl<G: Retrieve> Column<G> {
    /// The fastest way to find this column in `T`, with `F`, and to read the value of one key.
    pub(crate) fn fetch<T: ?Sized, F: Find<T, G>>(&self) -> Fetch<T> {
        struct Chooser<T: ?Sized, F> {
            single: bool,
            kinds: PhantomData<(F, T)>,
        }
        impl<G, T: ?Sized, F: Find<T, G>> Choose<G, u32> for Chooser<T, F> {
            type Chosen = Fetch<T>;
            fn choose<A: Answer<Part<G>, u32>>(self, level: Level) -> Fetch<T> {
                match self.single {
                    true => Fetch::new::<Single<F, G, A>>(level),
                    false => Fetch::new::<Sharded<F, G, A>>(level),
                }
            }
        }
        if self.alike {
            return self.first.geometry.choose_value(Chooser::<T, F> { single: self.bits == 0, kinds: PhantomData });
        }
        Fetch::new::<Sharded<F, G, Slowly>>(Level::detect())
    }

    /// The values of many keys. `file` is the whole file: parts know their place.
    pub(crate) fn get_many(&self, file: &[u8], keys: &[Digest], out: &mut [u32]) {
        if self.alike {
            return self.first.geometry.get_many(self, file, keys, out);
        }
        for (out, &key) in out.iter_mut().zip(keys) {
            *out = self.get(key);
        }
    }

    /// The value of one key, whatever the shape.
    pub(crate) fn get(&self, key: Digest) -> u32 {
        let part = self.part(key);
        part.geometry.get(&part.payload, key)
    }
}

impl<G> Column<G> {
    /// All parts, in the order of the shards.
    pub(crate) fn parts(&self) -> &[Part<G>] {
        if self.bits == 0 { std::slice::from_ref(&self.first) } else { &self.parts }
    }

    /// The same where it may be known that there is one part.
    #[inline(always)]
    pub(crate) fn part_of<const SINGLE: bool>(&self, key: Digest) -> &Part<G> {
        if SINGLE { &self.first } else { self.part(key) }
    }

    /// The part for a key.
    #[inline(always)]
    pub(crate) fn part(&self, key: Digest) -> &Part<G> {
        self.parts.get(key.shard(self.bits)).unwrap_or(&self.first)
    }
}

/// Finds a column inside something larger.
pub(crate) trait Find<T: ?Sized, G> {
    /// The column, if it is there.
    fn find(inside: &T) -> Option<&Column<G>>;
}

/// What becomes of a column's answer in something larger.
pub(crate) trait Finish<T: ?Sized> {
    /// Whether a column of one part is worth code of its own.
    const QUICK: bool;

    /// The way to ask the whole, if `A` asks the column.
    fn finish<A: Answer<T>>(level: Level) -> Ask<T>;
}

/// The column's answer is the answer.
pub(crate) struct Whole;

impl<T: ?Sized> Finish<T> for Whole {
    const QUICK: bool = true;

    fn finish<A: Answer<T>>(level: Level) -> Ask<T> {
        Ask::new::<A>(level)
    }
}

/// The answer of a column that is not there: what denies nothing.
trait Missing {
    const MISSING: Self;
}
impl Missing for bool {
    const MISSING: bool = true;
}
impl Missing for u32 {
    const MISSING: u32 = 0;
}

/// Asks the only part of a column.
struct Single<F, G, A>(PhantomData<(F, G, A)>);

impl<T: ?Sized, F: Find<T, G>, G, O: Missing, A: Answer<Part<G>, O>> Answer<T, O> for Single<F, G, A> {
    #[inline(always)]
    fn answer<I: Isa>(asked: &T, key: Digest) -> O {
        match F::find(asked) {
            // Not by a closure: it would be compiled for any processor.
            Some(column) => A::answer::<I>(&column.first, key),
            None => O::MISSING,
        }
    }
}

/// Asks the part of a column that the key belongs to.
struct Sharded<F, G, A>(PhantomData<(F, G, A)>);

impl<T: ?Sized, F: Find<T, G>, G, O: Missing, A: Answer<Part<G>, O>> Answer<T, O> for Sharded<F, G, A> {
    #[inline(always)]
    fn answer<I: Isa>(asked: &T, key: Digest) -> O {
        match F::find(asked) {
            // Not by a closure: it would be compiled for any processor.
            Some(column) => A::answer::<I>(column.part(key), key),
            None => O::MISSING,
        }
    }
}

/// For the rare column whose shards differ in shape.
struct Slowly;

impl<G: Contains> Answer<Part<G>> for Slowly {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<G>, key: Digest) -> bool {
        part.geometry.contains(&part.payload, key)
    }
}

impl<G: Retrieve> Answer<Part<G>, u32> for Slowly {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<G>, key: Digest) -> u32 {
        part.geometry.get(&part.payload, key)
    }
}

/// A leaf without keys: no, or zero.
pub(crate) struct Never;

impl<G, O: Default> Answer<Part<G>, O> for Never {
    #[inline(always)]
    fn answer<I: Isa>(_: &Part<G>, _: Digest) -> O {
        O::default()
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
