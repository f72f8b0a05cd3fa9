//! bytes -> Patch: the keys whose answer changed.
//!
//! A file of yesterday is right about yesterday's lists. A patch is an exact filter of the listed keys that it answers wrongly
//! today, against all other listed keys:
//!
//! ```text
//!   answer = base ^ patch 1 ^ patch 2 ^ ..       all from one digest: a patch has the hash of its base
//! ```
//!
//! So listed keys have the answers of a file that was built today. An unlisted key flips with the rate q of each patch: after k of
//! them its rate is (1 - (1 - 2 p) (1 - 2 q)^k) / 2. The patch is small because few answers change: c of them among n listed keys
//! take c f(0, (n - c) / c) bits at least.
//!
//! ```text
//!   base ◀──identity── patch 1 ◀──identity── patch 2        every patch names the base too
//! ```
//!
//! A patch of few keys is a list of their digests, cut to as many bits as tell them from those of all other listed keys. A filter of
//! ten keys is mostly geometry, and a list is quicker to query.
//!
//! Why not a new exact bit for the whole file: it is one bit and more for every listed key. Why not a list of insertions and one of
//! removals: each would have to be told from all other keys, as the one list is.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;

use super::open::{decode_steps, lay_out};
use super::partition::Label;
use super::steps::{self, ROUND, Steps};
use crate::debug::brief_debug;
use crate::error::FormatError;
use crate::format::{Budget, CHAIN, Form, Header, Places, Reader, Source, equal_by_bytes, from_bytes, parts};
use crate::hash::{Digest, KeyType, MAX_NUMBER, Salt};
use crate::leaves::ShardedLeaf;
use crate::leaves::ribbon::Ribbon;
use crate::math::portable::exp2;

/// Patches of a chain at most: each costs a lookup for every query.
pub(crate) const MAX_PATCHES: u64 = 128;
/// Digests of a list at most. Above, a filter is smaller by more than its geometry.
pub(crate) const MAX_LISTED: u64 = 128;
/// Of the digests of a list; no step has this number.
const SALT: Salt = Salt::new((1 << 32) + 1);

/// What the contents of a file begin with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A patch that is a list of digests.
    List = 0,
    /// A patch that is a list of steps.
    Steps = 1,
    /// A filter and its patches.
    Chain = CHAIN as isize,
}

impl Kind {
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Kind, FormatError> {
        match from.u8()? {
            0 => Ok(Kind::List),
            1 => Ok(Kind::Steps),
            CHAIN => Ok(Kind::Chain),
            number => Err(FormatError::unsupported("kind of patch", number)),
        }
    }
}

/// The difference between a [`Filter`](crate::Filter) and today's lists: the keys whose answer changed.
///
/// [`Filter::diff`](crate::Filter::diff) builds a patch, [`Filter::with_patches`](crate::Filter::with_patches) opens a filter with it. A
/// patch is bytes, as a filter is: see [`open`](Self::open) and [`as_bytes`](Self::as_bytes).
///
/// ```
/// let yesterday = tamis::build(0..1000).exclude(1000..9000).exact().finish()?;
/// let mut diff = yesterday.diff()?;
/// (5..1005).try_for_each(|key| diff.push(key))?;
/// (0..5).chain(1005..9000).try_for_each(|key| diff.exclude(key))?;
/// let patch = diff.finish()?;
/// assert_eq!(patch.len(), 10);
/// assert!(patch.as_bytes().len() < 200 && yesterday.as_bytes().len() > 500);
///
/// let today = yesterday.with_patches([patch])?;
/// assert!(!today.contains(3)? && today.contains(500)? && today.contains(1003)? && !today.contains(2000)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Patch {
    bytes: Bytes,
    opened: Arc<Opened>,
}

/// What a patch says, and how to query it.
struct Opened {
    header: Header,
    /// Its place in the chain, from 1 on.
    number: u64,
    base: [u8; 16],
    /// That of the patch before it, or of the base.
    before: [u8; 16],
    /// Members of the day it was made.
    members: u64,
    /// Keys that matched before, are in neither list of that day and still match: so many at least, and about so many at most.
    delisted: (u64, u64),
    /// Fingerprints of partitions that no file before it lists, ascending.
    labels: Bytes,
    flips: Flips,
}

enum Flips {
    List(List),
    Steps(Steps),
}

equal_by_bytes!(Patch);
brief_debug!(Patch, it => keys: it.len(), number: it.number(), bytes: it.bytes.len());

impl Patch {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open) and [`verify`](Self::verify).
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are not those of a patch that this release supports.
    pub fn open_unverified(bytes: impl Source) -> Result<Patch, FormatError> {
        Patch::opened(bytes.into_bytes(), None)
    }

    pub(crate) fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Patch, FormatError> {
        // The secret is the base's, which is not here.
        if secret.is_some() {
            return Err(FormatError::NoSecret);
        }
        let budget = Budget::of(&bytes);
        Patch::within(bytes, &budget)
    }

    pub(super) fn within(bytes: Bytes, budget: &Budget) -> Result<Patch, FormatError> {
        let (header, mut from, mut places) = parts(&bytes, None, budget)?;
        let wrong = |found| FormatError::Form { found, expected: Form::Patch.name() };
        if header.form != Form::Patch {
            return Err(wrong(header.form.name()));
        }
        let kind = Kind::decode(&mut from)?;
        if kind == Kind::Chain {
            return Err(wrong(Form::Filter.name()));
        }
        from.draw(size_of::<Opened>() as u64)?;
        let number = from.within("number of the patch", 1..=MAX_PATCHES)?;
        let base = from.array()?;
        let before = if number == 1 { base } else { from.array()? };
        let labels = from.within("number of partitions", 0..=u32::MAX as u64)?;
        let (members, least, more) = (from.varint()?, from.varint()?, from.varint()?);
        let delisted = (least, least.saturating_add(more));
        let flips = match kind {
            Kind::Steps => {
                let mut steps = decode_steps(&mut from, header.shard_bits, 0)?;
                lay_out(&mut places, &mut steps, header.shard_bits)?;
                Flips::Steps(Steps::new(steps, &bytes))
            }
            Kind::List | Kind::Chain => Flips::List(List::decode(&mut from, &header, &mut places)?),
        };
        from.end()?;
        let labels = places.take(8 * labels)?;
        FormatError::check(words(&labels).is_sorted_by(|a, b| a < b), || "partitions of a patch are not in order")?;
        places.check()?;
        let opened = Arc::new(Opened { header, number, base, before, members, delisted, labels, flips });
        Ok(Patch { bytes, opened })
    }

    from_bytes!(bytes);

    /// Returns the number of listed keys whose answer the patch flips.
    pub fn len(&self) -> u64 {
        self.opened.header.keys
    }

    /// Returns whether no answer changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of listed keys whose answer did not change, as [`Filter::excluded_len`](crate::Filter::excluded_len) counts
    /// them.
    pub fn unchanged(&self) -> u64 {
        self.opened.header.negatives
    }

    /// Returns the number of members that its lists had.
    pub fn members(&self) -> u64 {
        self.opened.members
    }

    /// Returns how many keys are in neither list of the patch and match nevertheless, because they were members before: so many at
    /// least, and about so many at most.
    ///
    /// The old list turns them off ([`Diff::push_old`](crate::Diff::push_old)). Without it they are counted: all members of the files
    /// before, less the listed keys that matched. A listed key that matched by chance hides one that is delisted, so that their number
    /// is exact only if few keys could. What earlier patches left is counted again, as long as it matches.
    ///
    /// ```
    /// let yesterday = tamis::build(0..1000).exclude(1000..9000).fpr(0.001).finish()?;
    /// let mut diff = yesterday.diff()?;
    /// (100..1000).try_for_each(|key| diff.push(key))?;
    /// (1000..9000).try_for_each(|key| diff.exclude(key))?;
    /// let patch = diff.finish()?;
    /// assert_eq!((patch.members(), patch.delisted()), (900, 100..=100));
    /// assert!(yesterday.with_patches([patch])?.contains(7)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn delisted(&self) -> RangeInclusive<u64> {
        self.opened.delisted.0..=self.opened.delisted.1
    }

    /// Returns the place in the chain: 1 for the patch of a base, 2 for the next one.
    pub fn number(&self) -> u64 {
        self.opened.number
    }

    /// Returns the [`identity`](crate::Filter::identity) of the base.
    pub fn base(&self) -> [u8; 16] {
        self.opened.base
    }

    /// Returns the [`identity`](Self::identity) of the patch before it, or of the base if it is the first.
    pub fn before(&self) -> [u8; 16] {
        self.opened.before
    }

    /// Partitions that no file before it lists.
    pub(super) fn new_partitions(&self) -> u64 {
        self.opened.labels.len() as u64 / 8
    }

    /// Returns the key type, that of the base.
    pub fn key_type(&self) -> KeyType {
        self.opened.header.key_type
    }

    /// Returns the expected share of unlisted keys that the patch flips.
    pub fn fpr(&self) -> f64 {
        match &self.opened.flips {
            Flips::List(list) => list.words.len() as f64 / exp2(f64::from(list.bits)),
            Flips::Steps(steps) => steps::rate(steps),
        }
    }

    /// Returns the least bits, on average, that tell the changed keys from the other listed ones: `c f(0, u / c)` for c changed and
    /// u unchanged keys ([`bounds::f`](crate::bounds::f)).
    pub fn lower_bound(&self) -> f64 {
        crate::math::bounds::free_set(self.len(), self.unchanged(), 1.0).bits
    }

    /// Whether the answer for this digest, as the base has it, is flipped.
    #[inline(always)]
    pub(super) fn flips(&self, digest: Digest) -> bool {
        match &self.opened.flips {
            Flips::List(list) => list.contains(digest),
            Flips::Steps(steps) => steps.contains(self.opened.header.hasher.mix(digest)),
        }
    }

    /// Flips the answers of at most [`ROUND`] digests.
    pub(super) fn flip_many(&self, digests: &[Digest], answers: &mut [bool]) {
        match &self.opened.flips {
            Flips::List(list) => {
                answers.iter_mut().zip(digests).for_each(|(answer, &digest)| *answer ^= list.contains(digest));
            }
            Flips::Steps(steps) => {
                let hasher = &self.opened.header.hasher;
                let (mut mixed, mut flips) = ([Digest::default(); ROUND], [false; ROUND]);
                let flips = &mut flips[..digests.len().min(ROUND)];
                mixed.iter_mut().zip(digests).for_each(|(mixed, &digest)| *mixed = hasher.mix(digest));
                steps::contains_many(steps, &self.bytes, &mixed[..flips.len()], flips);
                answers.iter_mut().zip(flips).for_each(|(answer, flip)| *answer ^= *flip);
            }
        }
    }

    /// Its first layer, to be queried with those of other patches: one that rejects nearly every key.
    pub(super) fn first_layer(&self) -> Option<&ShardedLeaf<Ribbon>> {
        match &self.opened.flips {
            Flips::Steps(steps) if !self.opened.header.hasher.mixes() => steps.refuses(),
            Flips::Steps(_) | Flips::List(_) => None,
        }
    }

    pub(super) fn lists(&self, label: &Label) -> bool {
        let (labels, wanted) = (&self.opened.labels, label.fingerprint(0, 8));
        !labels.is_empty() && words(labels).any(|found| found == wanted)
    }
}

/// Words of eight bytes.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Hashes of digests, each cut to its top bits, ascending: as many bits as tell them from those of all other listed keys.
///
/// ```text
///   number                       varint, 0 to 2^32 - 1: which child of the salt makes the hashes
///   bits b of each               varint, 1 to 64
///   low bits l of a gap          varint, 0 to 63
///   length in bytes              varint
/// ```
///
/// The payload has a gap for every key of the header, bit after bit: gap >> l ones, a zero, the low l bits. The first gap is the first
/// hash, the others are what the next one has more than the last one and 1. Zeros fill the last byte.
struct List {
    salt: Salt,
    bits: u32,
    /// At the top of each word.
    words: Box<[u64]>,
    /// A bit for the top bits of every word: most queries end here.
    seen: [u64; SEEN],
}

const SEEN: usize = 64;

/// The hash of a digest in a list whose salt has this number, before it is cut.
#[cfg(feature = "build")]
pub(crate) fn list_hash(digest: Digest, number: u64) -> u64 {
    digest.salted(SALT.child(number))
}

/// Hashes, ascending and distinct in their top `bits` -> low bits of a gap, and the payload.
#[cfg(feature = "build")]
pub(crate) fn encode_list(hashes: &[u64], bits: u32) -> (u32, Vec<u8>) {
    let mut next = 0u64;
    let gap = |hash: &u64| {
        let cut = hash >> (64 - bits);
        cut.wrapping_sub(std::mem::replace(&mut next, cut.wrapping_add(1)))
    };
    let gaps: Vec<u64> = hashes.iter().map(gap).collect();
    let len = |low: &u32| gaps.iter().map(|gap| u128::from(gap >> low) + u128::from(*low) + 1).sum::<u128>();
    let low = (0..bits.max(1)).min_by_key(len).unwrap_or(0);
    let mut payload = vec![0; (len(&low) as usize).div_ceil(8)];
    let mut at = 0usize;
    let mut put = |bit: u64| {
        if let Some(byte) = payload.get_mut(at / 8) {
            *byte |= (bit as u8) << (at % 8);
        }
        at += 1;
    };
    for gap in gaps {
        (0..gap >> low).for_each(|_| put(1));
        put(0);
        (0..low).for_each(|i| put(gap >> i & 1));
    }
    (low, payload)
}

impl List {
    fn decode(from: &mut Reader<'_>, header: &Header, places: &mut Places<'_>) -> Result<List, FormatError> {
        let keys = header.keys;
        FormatError::check(keys <= MAX_LISTED && header.shard_bits == 0, || {
            format!("header: {keys} keys in 2^{} shards, expected at most {MAX_LISTED} in one", header.shard_bits)
        })?;
        let salt = SALT.child(from.within("salt of the digests", 0..=MAX_NUMBER)?);
        let bits = from.within("bits of a digest", 1..=64)? as u32;
        let low = from.within("low bits of a gap", 0..=63)? as u32;
        let payload = places.take(from.varint()?)?;
        let mut words = from.room(keys)?;
        let wrong = || FormatError::invalid("digests of a patch: not a list of as many");
        let (mut at, mut next) = (0usize, 0u64);
        let mut bit = || {
            let bit = payload.get(at / 8).map(|byte| byte >> (at % 8) & 1);
            at += 1;
            bit.ok_or_else(wrong)
        };
        for _ in 0..keys {
            let mut high = 0u64;
            while bit()? == 1 {
                high += 1;
            }
            let mut gap = high.checked_mul(1 << low).ok_or_else(wrong)?;
            for i in 0..low {
                gap |= u64::from(bit()?) << i;
            }
            let cut = next.checked_add(gap).filter(|cut| cut.leading_zeros() >= 64 - bits).ok_or_else(wrong)?;
            // A list may end with the last hash there is, and none follows it.
            next = cut.saturating_add(1);
            if words.last() == Some(&(cut << (64 - bits))) {
                return Err(wrong());
            }
            words.push(cut << (64 - bits));
        }
        let (mut rest, mut ones) = (0, 0);
        while let Ok(found) = bit() {
            rest += 1;
            ones |= found;
        }
        if rest >= 8 || ones != 0 {
            return Err(wrong());
        }
        let mut seen = [0; SEEN];
        for &word in &words {
            let (at, bit) = place(word);
            seen[at] |= bit;
        }
        Ok(List { salt, bits, words: words.into(), seen })
    }

    #[inline(always)]
    fn contains(&self, digest: Digest) -> bool {
        let word = digest.salted(self.salt);
        let word = word >> (64 - self.bits) << (64 - self.bits);
        let (at, bit) = place(word);
        self.seen[at] & bit != 0 && self.words.binary_search(&word).is_ok()
    }
}

/// Where the top bits of a word are seen.
#[inline]
fn place(word: u64) -> (usize, u64) {
    ((word >> 58) as usize % SEEN, 1 << (word >> 52 & 63))
}
