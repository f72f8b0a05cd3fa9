//! bytes -> Filter: open, ask, verify.

use std::sync::Arc;

use bytes::Bytes;

use super::open::{Contents, open};
use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::filter::partition::{self, Label, Partitions};
use crate::filter::steps::{self, ROUND, Role, Steps};
use crate::format::{Budget, Header, equal_by_bytes, from_bytes};
use crate::hash::{Digest, HashKind, Hasher, Key, KeyType};

/// A filter: bytes, and how to read them.
///
/// A filter comes from bytes and from nowhere else: a vector, a static array, a memory map. Opening checks header and
/// directory, is cheap, copies no payload and cannot panic. It is `Send + Sync`: share it between threads as it is.
///
/// ```
/// let filter = tamis::build(["ann", "bob", "eve"]).fpr(0.01).finish()?;
/// assert!(filter.contains("bob")?);
/// let again = tamis::Filter::open(filter.as_bytes().to_vec())?;
/// assert!(again.contains("eve")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Filter {
    bytes: Bytes,
    header: Header,
    steps: Steps,
    /// The key type, if the hash is seeded and no more, and keys carry no labels.
    plain: Option<KeyType>,
    partitions: Option<Arc<Partitions>>,
}

equal_by_bytes!(Filter);
brief_debug!(Filter, it => keys: it.len(), layers: it.layers().count(), bytes: it.bytes.len(), hasher: it.header.hasher);

impl Filter {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open) and [`verify`](Self::verify).
    ///
    /// ```
    /// let error = tamis::Filter::open(&b"not a filter"[..]).unwrap_err();
    /// assert_eq!(error, tamis::FormatError::Magic);
    /// ```
    pub fn open_unverified(bytes: impl Into<Bytes>) -> Result<Filter, FormatError> {
        let bytes = bytes.into();
        let budget = Budget::of(&bytes);
        Filter::within(bytes, &budget)
    }

    /// The same on a budget.
    pub(crate) fn within(bytes: Bytes, budget: &Budget) -> Result<Filter, FormatError> {
        let Contents { header, steps, partitions } = open(&bytes, budget)?;
        let steps = Steps::new(steps);
        let plain = (header.hasher.kind() == HashKind::Seeded && partitions.is_none()).then_some(header.key_type);
        Ok(Filter { bytes, header, steps, plain, partitions: partitions.map(Arc::new) })
    }

    from_bytes!(bytes);

    /// Whether the key may be in the set: always true for a key of the set, and rarely for others.
    ///
    /// A key of the wrong key type (an integer asked of a filter of strings) is refused with an error, because "no" would be
    /// a guess. So is any key, if the keys carry labels: see [`Filter::contains_in`].
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        // One test for the common case: the right key type and no secret.
        if self.plain != Some(K::KEY_TYPE) {
            return self.contains_carefully(key);
        }
        Ok(self.steps.contains(key.seeded_digest(&self.header.hasher)))
    }

    /// The same with all checks.
    #[inline(never)]
    fn contains_carefully<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        self.check::<K>()?;
        Ok(self.contains_checked(&key))
    }

    /// Asks for many keys at once, several times faster than one by one when the filter is larger than the caches.
    /// `answers` is as long as `keys`.
    ///
    /// ```
    /// let filter = tamis::build(0..1000u64).finish()?;
    /// let mut answers = [false; 3];
    /// filter.contains_many(&[5, 500, 999_999], &mut answers)?;
    /// assert_eq!(answers[..2], [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), QueryError> {
        self.check::<K>()?;
        if keys.len() != answers.len() {
            return Err(QueryError::Length { keys: keys.len(), answers: answers.len() });
        }
        self.fill_answers(keys, |key| key, answers);
        Ok(())
    }

    /// The answers for as many keys, whose type was checked.
    #[inline]
    pub(super) fn fill_answers<K: Key + ?Sized, Q>(&self, keys: &[Q], key: impl Fn(&Q) -> &K, answers: &mut [bool]) {
        let hasher = self.header.hasher;
        let mut digests = [Digest::default(); ROUND];
        for (keys, answers) in keys.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            let pairs = digests.iter_mut().zip(keys);
            match self.plain {
                Some(_) => pairs.for_each(|(digest, asked)| *digest = key(asked).seeded_digest(&hasher)),
                None => pairs.for_each(|(digest, asked)| *digest = key(asked).digest(&hasher)),
            }
            steps::contains_many(&self.steps, &self.bytes, &digests[..keys.len()], answers);
        }
    }

    /// The answer for a key whose type was checked.
    #[inline(always)]
    pub(super) fn contains_checked<K: Key + ?Sized>(&self, key: &K) -> bool {
        let hasher = &self.header.hasher;
        self.steps.contains(if self.plain.is_some() { key.seeded_digest(hasher) } else { key.digest(hasher) })
    }

    /// Returns [`contains`](Self::contains) for a digest that this filter's [`hasher`](Self::hasher) made, or that the caller made
    /// where the keys are digests ([`Hasher::foreign`]): for an engine that hashes a key once for many filters.
    ///
    /// # Errors
    ///
    /// [`QueryError::Partition`] if the filter is partitioned.
    ///
    /// ```
    /// let filter = tamis::build(["ann", "bob"]).finish()?;
    /// let digest = filter.hasher().bytes(b"ann");
    /// assert!(filter.contains_digest(digest)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> Result<bool, QueryError> {
        match (&self.partitions, self.header.key_type) {
            (Some(_), _) => Err(QueryError::Partition { partitioned: true }),
            (None, KeyType::Digest) => Ok(self.contains_checked(&digest)),
            (None, KeyType::Bytes | KeyType::Integer | KeyType::Fields) => Ok(self.steps.contains(digest)),
        }
    }

    /// Returns [`contains_digest`](Self::contains_digest) of many digests at once.
    ///
    /// # Errors
    ///
    /// [`QueryError::Partition`] if the filter is partitioned.
    pub fn contains_many_digests(&self, digests: &[Digest]) -> Result<Vec<bool>, QueryError> {
        if self.partitions.is_some() {
            return Err(QueryError::Partition { partitioned: true });
        }
        let mut answers = vec![false; digests.len()];
        match self.header.key_type {
            KeyType::Digest => self.fill_answers(digests, |digest| digest, &mut answers),
            KeyType::Bytes | KeyType::Integer | KeyType::Fields => self.contains_digests(digests, &mut answers),
        }
        Ok(answers)
    }

    /// Answers for digests as the filter has them; `answers` is as long as `keys`.
    pub(crate) fn contains_digests(&self, keys: &[Digest], answers: &mut [bool]) {
        for (keys, answers) in keys.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            steps::contains_many(&self.steps, &self.bytes, keys, answers);
        }
    }

    /// One shard of its first step, as it was built.
    #[cfg(feature = "build")]
    pub(crate) fn part(&self, shard: usize) -> Option<crate::format::Encoded> {
        self.steps.iter().next()?.leaf.part(shard)
    }

    #[inline(always)]
    pub(super) fn check<K: Key + ?Sized>(&self) -> Result<(), QueryError> {
        match self.partitions.is_none() {
            true => Ok(self.header.key_type.check(K::KEY_TYPE)?),
            false => Err(QueryError::Partition { partitioned: true }),
        }
    }

    fn labelled(&self) -> Result<&Partitions, QueryError> {
        self.partitions.as_deref().ok_or(QueryError::Partition { partitioned: false })
    }

    /// Whether the key may be in the set under this label: always true for a key that carries it, rarely for others, and never
    /// for a key that is excluded under it.
    ///
    /// Under a label that no key carries the answer is false, whether the label is known or not: see [`Filter::has_partition`]. A
    /// filter whose keys carry no labels refuses the question, and [`Filter::contains`] that of one whose keys do.
    ///
    /// ```
    /// let mut keys = tamis::stream().exact().partitioned();
    /// keys.push("DE", 17u64)?;
    /// keys.exclude("FR", 17u64)?;
    /// let filter = keys.finish()?;
    /// assert!(filter.contains_in("DE", 17u64)? && !filter.contains_in("FR", 17u64)?);
    /// assert!(!filter.contains_in("IT", 17u64)? && !filter.has_partition("IT"));
    /// assert!(filter.contains(17u64).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_in<K: Key>(&self, label: impl AsRef<[u8]>, key: K) -> Result<bool, QueryError> {
        let partitions = self.labelled()?;
        self.header.key_type.check(K::KEY_TYPE)?;
        let label = self.label(label.as_ref());
        let ask = |group: &partition::Group| group.steps.contains(self.digest_in(&label, &key));
        Ok(partitions.group(&label).is_some_and(ask))
    }

    /// Asks for many keys under one label at once; `answers` is as long as `keys`.
    ///
    /// ```
    /// let mut keys = tamis::stream().fpr(0.01).partitioned();
    /// for key in 0..1000u64 {
    ///     keys.push(if key < 500 { "low" } else { "high" }, key)?;
    /// }
    /// let filter = keys.finish()?;
    /// let mut answers = [false; 2];
    /// filter.contains_many_in("low", &[5, 499], &mut answers)?;
    /// assert_eq!(answers, [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many_in<K: Key>(
        &self,
        label: impl AsRef<[u8]>,
        keys: &[K],
        answers: &mut [bool],
    ) -> Result<(), QueryError> {
        let partitions = self.labelled()?;
        self.header.key_type.check(K::KEY_TYPE)?;
        if keys.len() != answers.len() {
            return Err(QueryError::Length { keys: keys.len(), answers: answers.len() });
        }
        let label = self.label(label.as_ref());
        let Some(group) = partitions.group(&label) else {
            answers.fill(false);
            return Ok(());
        };
        let mut digests = [Digest::default(); ROUND];
        for (keys, answers) in keys.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = self.digest_in(&label, key));
            steps::contains_many(&group.steps, &self.bytes, &digests[..keys.len()], answers);
        }
        Ok(())
    }

    fn label(&self, label: &[u8]) -> Label {
        let hasher = &self.header.hasher;
        // Digests are mixed when they carry their label.
        if hasher.kind() == HashKind::Mixed { Label::new(&hasher.unmixed(), label) } else { Label::new(hasher, label) }
    }

    /// The digest of a key that carries a label.
    #[inline]
    fn digest_in<K: Key>(&self, label: &Label, key: &K) -> Digest {
        let hasher = &self.header.hasher;
        match hasher.kind() {
            HashKind::Mixed => hasher.mix(label.mix(key.digest(&hasher.unmixed()))),
            HashKind::Seeded | HashKind::Secret | HashKind::Foreign => label.mix(key.digest(hasher)),
        }
    }

    /// Whether the keys carry labels.
    pub fn is_partitioned(&self) -> bool {
        self.partitions.is_some()
    }

    /// How many labels it knows, those with nothing but excluded keys included; 0 if keys carry none.
    pub fn partitions(&self) -> u64 {
        self.partitions.as_ref().map_or(0, |partitions| partitions.table.len() as u64)
    }

    /// Whether this label was listed, with a key or with an excluded one. Only fingerprints of labels are stored: a label that
    /// was not listed is taken for a listed one less than once in 2^32.
    pub fn has_partition(&self, label: impl AsRef<[u8]>) -> bool {
        let label = self.label(label.as_ref());
        self.partitions.as_ref().is_some_and(|partitions| partitions.table.find(&label).is_some())
    }

    /// The groups of labels that share a list of steps, for a person to read; none if keys carry no labels.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        let partitions = self.partitions.as_deref();
        let sizes = partitions.map(|p| p.table.sizes(p.groups.len())).unwrap_or_default();
        let groups = partitions.map_or(&[][..], |partitions| &partitions.groups);
        groups.iter().zip(sizes.into_iter().skip(1)).map(|(group, partitions)| Group {
            partitions,
            keys: group.keys,
            excluded: group.negatives,
            shards: 1 << group.shard_bits,
            fpr: steps::rate(&group.steps),
        })
    }

    /// How many distinct keys the filter was built from.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// About how many keys the filter was told to exclude: exact up to 16,384, then an estimate with a
    /// standard deviation of 0.8 %. Always exact if keys carry labels.
    pub fn excluded_len(&self) -> u64 {
        self.header.negatives
    }

    /// The fewest bits, on average over all sets, for a filter that is right about as many listed keys on either side and lets no
    /// more strangers through ([`math::bounds::free_set`](crate::math::bounds::free_set)). If keys carry labels, the sum of the
    /// labels' bounds for what was asked for, computed when the filter was built.
    ///
    /// ```
    /// let filter = tamis::build(0..3000u64).fpr(1.0 / 256.0).finish()?;
    /// let (bits, bound) = (filter.as_bytes().len() as f64 * 8.0, filter.lower_bound());
    /// assert!(bound / 3000.0 > 7.9 && bits > bound && bits < 1.1 * bound);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn lower_bound(&self) -> f64 {
        match &self.partitions {
            Some(partitions) => partitions.bound as f64,
            None => crate::math::bounds::free_set(self.header.keys, self.header.negatives, self.fpr()).bits,
        }
    }

    /// Whether the filter was built from no key at all.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// The key type of its keys.
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }

    /// Its hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.header.hasher
    }

    /// How many shards it has, all groups together.
    pub fn shards(&self) -> u64 {
        match &self.partitions {
            Some(partitions) => partitions.groups.iter().map(|group| 1 << group.shard_bits).sum(),
            None => 1 << self.header.shard_bits,
        }
    }

    /// The expected share of strangers, keys that nobody listed, that it lets through. If keys carry labels, of strangers under
    /// the label of a key, on average over the keys.
    pub fn fpr(&self) -> f64 {
        match &self.partitions {
            Some(partitions) => partitions.fpr(),
            None => steps::rate(&self.steps),
        }
    }

    /// What is in it, step by step; if keys carry labels, group by group.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo> + '_ {
        let groups = self.partitions.iter().flat_map(|partitions| partitions.groups.iter().enumerate());
        let groups = groups.map(|(number, group)| (Some(number), &group.steps, group.shard_bits));
        let lists = groups.chain(std::iter::once((None, &self.steps, self.header.shard_bits)));
        lists.flat_map(|(group, steps, bits)| {
            steps.iter().map(move |step| LayerInfo {
                group,
                role: step.role,
                structure: step.leaf.name(),
                details: step.leaf.details(),
                bytes: (0..1usize << bits).map(|shard| step.leaf.payload_len(shard)).sum(),
            })
        })
    }
}

/// Labels of about the same number of negatives per key, for a person to read.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Group {
    /// How many labels it has.
    pub partitions: u64,
    /// Distinct keys, each with its label.
    pub keys: u64,
    /// Distinct excluded keys, each with its label.
    pub excluded: u64,
    /// How many shards it has.
    pub shards: u64,
    /// The expected share of strangers that it lets through under its labels.
    pub fpr: f64,
}

/// One step of a filter, for a person to read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerInfo {
    /// The group whose step it is, if keys carry labels.
    pub group: Option<usize>,
    /// What the step's answer means.
    pub role: Role,
    /// The elementary structure.
    pub structure: &'static str,
    /// Its parameters, in words.
    pub details: String,
    /// Payload bytes, all shards together.
    pub bytes: u64,
}
