//! what is known about one listed key -> fixed-size records that can be sorted, merged and written.
//!
//! Plain keys are their digest, 16 bytes. Queries have a weight, [`Counted`], 24 bytes. Where the place in the input matters too, a
//! record is [`Tagged`], 32 bytes; where keys carry labels, [`Labelled`], 32 bytes too; where they have values, [`Paired`], 40 bytes.
//! Equal digests become one record; merging is commutative and associative, so its result does not depend on the order in
//! which threads and runs meet.

use crate::hash::Digest;

/// A record of fixed size that stands for one digest.
pub trait Record: Copy + Send + Sync + 'static {
    /// Bytes of a written record.
    const SIZE: usize;

    /// What it is sorted by.
    fn digest(&self) -> Digest;

    /// Where it stood in the input, if that is kept.
    fn ordinal(&self) -> Option<u64> {
        None
    }

    /// How often it was listed, or is queried.
    fn weight(&self) -> u64 {
        1
    }

    /// The same record of another digest.
    fn with(self, digest: Digest) -> Self;

    /// Takes in another record of the same digest.
    fn merge(&mut self, other: &Self);

    /// Writes exactly [`Record::SIZE`] bytes.
    fn write(&self, out: &mut [u8]);

    /// Reads what [`Record::write`] wrote.
    fn read(from: &[u8]) -> Self;

    /// The digest as one number: a comparison of two takes no branch.
    #[inline(always)]
    fn order(&self) -> u128 {
        let digest = self.digest();
        (digest.hi as u128) << 64 | digest.lo as u128
    }
}

impl Record for Digest {
    const SIZE: usize = 16;

    #[inline(always)]
    fn digest(&self) -> Digest {
        *self
    }

    fn with(self, digest: Digest) -> Digest {
        digest
    }

    #[inline(always)]
    fn merge(&mut self, _: &Digest) {}

    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        put(out, [self.hi, self.lo]);
    }

    #[inline(always)]
    fn read(from: &[u8]) -> Digest {
        let [hi, lo] = words(from);
        Digest { hi, lo }
    }
}

/// All of a [`Record`] but its merge: it is written as so many words, its digest's two and its fields.
macro_rules! as_words {
    ($count:literal, $($field:ident),+) => {
        const SIZE: usize = 8 * $count;

        #[inline(always)]
        fn digest(&self) -> Digest {
            self.digest
        }

        fn with(self, digest: Digest) -> Self {
            Self { digest, ..self }
        }

        #[inline(always)]
        fn write(&self, out: &mut [u8]) {
            put::<$count>(out, [self.digest.hi, self.digest.lo, $(self.$field as u64),+]);
        }

        #[inline(always)]
        fn read(from: &[u8]) -> Self {
            let [hi, lo, $($field),+] = words::<$count>(from);
            Self { digest: Digest { hi, lo }, $($field: $field as _),+ }
        }
    };
}

/// A digest with its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// The key's digest.
    pub digest: Digest,
    /// How often it is queried; the weights of equal keys add up.
    pub weight: u64,
}

impl Record for Counted {
    as_words!(3, weight);

    fn weight(&self) -> u64 {
        self.weight
    }

    #[inline(always)]
    fn merge(&mut self, other: &Counted) {
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// A digest with its weight and its place in the input, from which file and line are found again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tagged {
    /// The key's digest.
    pub digest: Digest,
    /// How often it is queried; the weights of equal keys add up and stop at `u64::MAX`.
    pub weight: u64,
    /// Its position in the input, from 0; the first one of equal keys.
    pub ordinal: u64,
}

impl Record for Tagged {
    as_words!(4, weight, ordinal);

    fn ordinal(&self) -> Option<u64> {
        Some(self.ordinal)
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    #[inline(always)]
    fn merge(&mut self, other: &Tagged) {
        self.weight = self.weight.saturating_add(other.weight);
        self.ordinal = self.ordinal.min(other.ordinal);
    }
}

/// A digest of a key under a label, with the label's number and the key's place in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Labelled {
    /// Of the key, mixed with the label's.
    pub(crate) digest: Digest,
    /// Numbers are given in the order of appearance, and leave no trace in a file.
    pub(crate) label: u32,
    /// Its position in the input, from 0; the first one of equal keys.
    pub(crate) ordinal: u64,
}

impl Record for Labelled {
    as_words!(4, label, ordinal);

    fn ordinal(&self) -> Option<u64> {
        Some(self.ordinal)
    }

    #[inline(always)]
    fn merge(&mut self, other: &Labelled) {
        // Equal digests have equal labels, but for one chance in 2^128.
        self.label = self.label.min(other.label);
        self.ordinal = self.ordinal.min(other.ordinal);
    }
}

/// A digest with a value, and the places in the input of the first pair and of the first that contradicts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paired {
    pub(crate) digest: Digest,
    pub(crate) value: u64,
    /// The position of the pair in the input, from 0; the first one of equal keys, whose value counts.
    pub(crate) ordinal: u64,
    /// The first position at which the same key has another value; [`Paired::NONE`] if there is none.
    pub(crate) rival: u64,
}

impl Paired {
    pub(crate) const NONE: u64 = u64::MAX;
}

impl Record for Paired {
    as_words!(5, value, ordinal, rival);

    fn ordinal(&self) -> Option<u64> {
        Some(self.ordinal)
    }

    #[inline(always)]
    fn merge(&mut self, other: &Paired) {
        let (first, later) = if self.ordinal <= other.ordinal { (*self, *other) } else { (*other, *self) };
        // What contradicts the later one agrees with the first, or comes after the later one: it need not be looked at
        // where the two differ.
        let rival = if first.value == later.value { later.rival } else { later.ordinal };
        *self = Paired { rival: first.rival.min(rival), ..first };
    }
}

#[inline(always)]
fn put<const N: usize>(out: &mut [u8], words: [u64; N]) {
    for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

#[inline(always)]
pub(super) fn words<const N: usize>(from: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(from.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
