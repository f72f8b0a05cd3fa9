//! bytes -> Filter: open, query, verify.

use std::sync::Arc;

use bytes::Bytes;

use super::open::{Contents, open};
use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::filter::chain::Chain;
use crate::filter::partition::{self, Label, Partitions};
use crate::filter::patch::Patch;
use crate::filter::steps::{self, ROUND, Role, Steps};
use crate::format::{self, Budget, Header, Kept, Source, equal_by_bytes, from_bytes};
use crate::hash::{Digest, HashKind, Hasher, Key, KeyType};

/// A membership filter: it matches every member, no excluded key, and unlisted keys at the rate [`fpr`](Self::fpr).
///
/// A filter is bytes and how to read them. The bytes are a vector, a static array or a memory map, and are not copied. Cloning takes
/// constant time, and threads may share a filter.
///
/// ```
/// let filter = tamis::build(["ann", "bob", "eve"]).fpr(0.01).finish()?;
/// assert!(filter.contains("bob")?);
/// let path = std::env::temp_dir().join("tamis-filter-example.tamis");
/// filter.save(&path)?;
/// let again = tamis::Filter::read(&path)?;
/// assert!(again.contains("eve")? && again == filter);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Filter {
    bytes: Bytes,
    header: Header,
    steps: Steps,
    /// The key type, if the hash is seeded and no more, and keys carry no labels.
    seeded: Option<KeyType>,
    /// The same if there are no patches.
    plain: Option<KeyType>,
    partitions: Option<Arc<Partitions>>,
    chain: Option<Arc<Chain>>,
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
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are not those of a filter that this release supports.
    pub fn open_unverified(bytes: impl Source) -> Result<Filter, FormatError> {
        Filter::opened(bytes.into_bytes(), None)
    }

    /// The same for a caller who knows this secret.
    pub(crate) fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Filter, FormatError> {
        let budget = Budget::of(&bytes);
        Filter::within(bytes, secret, &budget)
    }

    /// The same on a budget.
    pub(crate) fn within(bytes: Bytes, secret: Option<[u64; 2]>, budget: &Budget) -> Result<Filter, FormatError> {
        let Contents { header, steps, partitions, chain, .. } = open(&bytes, secret, budget)?;
        let steps = Steps::new(steps, chain.as_ref().map_or(&bytes, |chain| &chain.base));
        let seeded = (header.hasher.kind() == HashKind::Seeded && partitions.is_none()).then_some(header.key_type);
        let plain = seeded.filter(|_| chain.is_none());
        let (partitions, chain) = (partitions.map(Arc::new), chain.map(Arc::new));
        Ok(Filter { bytes, header, steps, seeded, plain, partitions, chain })
    }

    /// A filter whose layers lie in bytes that are no file of their own.
    pub(super) fn of_steps(bytes: Bytes, header: Header, steps: Vec<steps::Step>) -> Filter {
        let steps = Steps::new(steps, &bytes);
        let seeded = (header.hasher.kind() == HashKind::Seeded).then_some(header.key_type);
        Filter { bytes, header, steps, seeded, plain: seeded, partitions: None, chain: None }
    }

    pub(super) fn with_chain(mut self, chain: Option<Chain>) -> Filter {
        self.plain = self.seeded.filter(|_| chain.is_none());
        self.chain = chain.map(Arc::new);
        self
    }

    #[inline]
    pub(super) fn chain(&self) -> Option<&Chain> {
        self.chain.as_deref()
    }

    /// The file that the steps are in: the base, if there are patches.
    pub(super) fn file(&self) -> &Bytes {
        self.chain().map_or(&self.bytes, |chain| &chain.base)
    }

    /// The answer of a list of steps, and of the patches.
    #[inline]
    fn answer(&self, steps: &Steps, digest: Digest) -> bool {
        steps.contains(digest) ^ self.chain().is_some_and(|chain| chain.flips(digest))
    }

    /// The digest of a key, as the steps and the patches have it.
    pub(super) fn digest_of<K: Key>(&self, key: &K) -> Result<Digest, QueryError> {
        self.check::<K>()?;
        Ok(key.digest(&self.header.hasher))
    }

    /// The same for a key that carries a label.
    pub(super) fn digest_of_label<K: Key>(&self, label: &Label, key: &K) -> Result<Digest, QueryError> {
        self.header.key_type.check(K::KEY_TYPE)?;
        Ok(self.digest_in(label, key))
    }

    /// The answer for the digest of a key that is listed, under a label that then is listed too.
    pub(crate) fn answer_listed(&self, label: Option<&Label>, digest: Digest) -> bool {
        let Some(label) = label else { return self.answer(&self.steps, digest) };
        let group = self.partitions.as_ref().and_then(|partitions| partitions.group(label));
        group.is_some_and(|group| group.steps.contains(digest)) ^ self.chain().is_some_and(|chain| chain.flips(digest))
    }

    /// The secret that the file needs to be opened.
    #[cfg(feature = "build")]
    pub(super) fn needed_secret(&self) -> Option<[u64; 2]> {
        self.header.hasher.needed_secret()
    }

    /// The same for at most [`ROUND`] keys; without steps the base matches none.
    fn answer_round(&self, steps: Option<&Steps>, digests: &[Digest], answers: &mut [bool]) {
        match steps {
            Some(steps) => steps::contains_many(steps, self.file(), digests, answers),
            None => answers.fill(false),
        }
        if let Some(chain) = self.chain() {
            chain.flip_many(digests, answers);
        }
    }

    from_bytes!(bytes);

    /// Returns `true` for every member and for a share [`fpr`](Self::fpr) of unlisted keys.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's, [`QueryError::Partition`] if the filter is partitioned: see
    /// [`contains_in`](Self::contains_in).
    ///
    /// # Complexity
    ///
    /// One hash of the key, then one lookup per layer until a layer decides.
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

    /// The same where patches are likely: the common case is in line.
    #[inline]
    pub(super) fn contains_patched<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        match self.chain() {
            Some(chain) if self.seeded == Some(K::KEY_TYPE) => {
                let digest = key.seeded_digest(&self.header.hasher);
                Ok(self.steps.contains(digest) ^ chain.flips(digest))
            }
            Some(_) | None => self.contains(key),
        }
    }

    /// Returns [`contains`](Self::contains) of many keys, several times faster than one by one where the filter is larger than the
    /// caches.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    ///
    /// ```
    /// let filter = tamis::build(0..1000).finish()?;
    /// assert_eq!(filter.contains_many(&[5, 500])?, [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, QueryError> {
        let mut answers = vec![false; keys.len()];
        self.contains_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// Writes [`contains`](Self::contains) of many keys into `answers`, which is as long as `keys`: for a caller that reuses it.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains), and [`QueryError::Length`] if the lengths differ.
    pub fn contains_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), QueryError> {
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
        if self.steps.near && self.chain.is_none() {
            return keys.iter().zip(answers).for_each(|(of, answer)| *answer = self.contains_checked(key(of)));
        }
        let hasher = &self.header.hasher;
        let mut digests = [Digest::default(); ROUND];
        for (keys, answers) in keys.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            hasher.digests_into(keys, &key, &mut digests[..keys.len()]);
            self.answer_round(Some(&self.steps), &digests[..keys.len()], answers);
        }
    }

    /// The answer for a key whose type was checked.
    #[inline(always)]
    pub(super) fn contains_checked<K: Key + ?Sized>(&self, key: &K) -> bool {
        let hasher = &self.header.hasher;
        match self.plain.is_some() {
            true => self.steps.contains(key.seeded_digest(hasher)),
            false => self.answer(&self.steps, key.digest(hasher)),
        }
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
            (None, KeyType::Bytes | KeyType::Integer | KeyType::Fields) => Ok(self.answer(&self.steps, digest)),
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
            self.answer_round(Some(&self.steps), keys, answers);
        }
    }

    /// One shard of its first step, as it was built.
    #[cfg(feature = "build")]
    pub(crate) fn part(&self, shard: usize) -> Option<crate::format::Encoded> {
        self.steps.iter().next()?.leaf.part(shard)
    }

    /// Its leaf, if it is nothing but one layer on keys.
    #[cfg(feature = "build")]
    pub(crate) fn only_leaf(&self) -> Option<&crate::leaves::Leaf> {
        let mut steps = self.steps.iter();
        let plain = self.partitions.is_none() && self.chain.is_none();
        match (steps.next(), steps.next()) {
            (Some(step), None) if plain && step.role == Role::Positive => Some(&step.leaf),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) fn check<K: Key + ?Sized>(&self) -> Result<(), QueryError> {
        match self.partitions.is_none() {
            true => Ok(self.header.key_type.check(K::KEY_TYPE)?),
            false => Err(QueryError::Partition { partitioned: true }),
        }
    }

    fn partitioned(&self) -> Result<&Partitions, QueryError> {
        self.partitions.as_deref().ok_or(QueryError::Partition { partitioned: false })
    }

    /// Returns `true` for every member of this partition and for a share of unlisted keys; `false` for every key that is excluded in
    /// it, and for every key of a partition that was not listed ([`has_partition`](Self::has_partition)).
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's, [`QueryError::Partition`] if the filter is not partitioned.
    ///
    /// ```
    /// let mut keys = tamis::stream().exact().partitioned();
    /// keys.push("DE", 17)?;
    /// keys.exclude("FR", 17)?;
    /// let filter = keys.finish()?;
    /// assert!(filter.contains_in("DE", 17)? && !filter.contains_in("FR", 17)?);
    /// assert!(!filter.contains_in("IT", 17)? && !filter.has_partition("IT")?);
    /// assert!(filter.contains(17).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_in<K: Key>(&self, partition: impl AsRef<[u8]>, key: K) -> Result<bool, QueryError> {
        let partitions = self.partitioned()?;
        self.header.key_type.check(K::KEY_TYPE)?;
        let label = self.label(partition.as_ref());
        let Some(group) = self.group(partitions, &label) else { return Ok(false) };
        let digest = self.digest_in(&label, &key);
        let base = group.is_some_and(|group| group.steps.contains(digest));
        Ok(base ^ self.chain().is_some_and(|chain| chain.flips(digest)))
    }

    /// Returns [`contains_in`](Self::contains_in) of many keys of one partition.
    ///
    /// # Errors
    ///
    /// As [`contains_in`](Self::contains_in).
    ///
    /// ```
    /// let mut keys = tamis::stream().fpr(0.01).partitioned();
    /// for key in 0..1000 {
    ///     keys.push(if key < 500 { "low" } else { "high" }, key)?;
    /// }
    /// assert_eq!(keys.finish()?.contains_many_in("low", &[5, 499])?, [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many_in<K: Key>(&self, partition: impl AsRef<[u8]>, keys: &[K]) -> Result<Vec<bool>, QueryError> {
        let partitions = self.partitioned()?;
        self.header.key_type.check(K::KEY_TYPE)?;
        let mut answers = vec![false; keys.len()];
        let label = self.label(partition.as_ref());
        let Some(group) = self.group(partitions, &label) else { return Ok(answers) };
        let mut digests = [Digest::default(); ROUND];
        for (keys, answers) in keys.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = self.digest_in(&label, key));
            self.answer_round(group.map(|group| &group.steps), &digests[..keys.len()], answers);
        }
        Ok(answers)
    }

    /// The group of a label, if it has one; none if the label was not listed, so that all its keys are rejected.
    #[inline]
    fn group<'a>(&self, partitions: &'a Partitions, label: &Label) -> Option<Option<&'a partition::Group>> {
        match (partitions.group(label), self.chain()) {
            (None, None) => None,
            (None, Some(chain)) => (partitions.table.find(label).is_some() || chain.lists(label)).then_some(None),
            (group, _) => Some(group),
        }
    }

    pub(super) fn label(&self, label: &[u8]) -> Label {
        let hasher = &self.header.hasher;
        // Digests are mixed when they carry their label.
        Label::new(&hasher.unmixed(), label)
    }

    /// The digest of a key that carries a label.
    #[inline]
    pub(super) fn digest_in<K: Key>(&self, label: &Label, key: &K) -> Digest {
        let hasher = &self.header.hasher;
        match hasher.kind() {
            HashKind::Mixed | HashKind::Foreign => hasher.mix(label.mix(key.digest(&hasher.unmixed()))),
            HashKind::Seeded | HashKind::Secret => label.mix(key.digest(hasher)),
        }
    }

    /// Returns whether the filter is partitioned.
    pub fn is_partitioned(&self) -> bool {
        self.partitions.is_some()
    }

    /// Returns the number of partitions, those with excluded keys alone included; 0 if the filter is not partitioned.
    pub fn partitions(&self) -> u64 {
        let own = self.partitions.as_ref().map_or(0, |partitions| partitions.table.len() as u64);
        own + self.chain().map_or(0, Chain::partitions)
    }

    /// Returns whether this partition was listed, with a member or an excluded key. Only fingerprints of names are stored: a partition
    /// that was not listed is taken for a listed one less than once in 2^32.
    ///
    /// # Errors
    ///
    /// [`QueryError::Partition`] if the filter is not partitioned.
    pub fn has_partition(&self, partition: impl AsRef<[u8]>) -> Result<bool, QueryError> {
        let label = self.label(partition.as_ref());
        Ok(self.partitioned()?.table.find(&label).is_some() || self.chain().is_some_and(|chain| chain.lists(&label)))
    }

    /// Returns the groups of partitions that share layers; none if the filter is not partitioned.
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

    /// Returns the number of members; of a file with patches, that of its base.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// Returns the number of excluded keys: exact up to 16,384, then an estimate with a standard deviation of 0.8 %. It is always exact
    /// for a partitioned filter.
    pub fn excluded_len(&self) -> u64 {
        self.header.negatives
    }

    /// Returns the bytes of digests that changes need and queries never read: see [`Chained`](crate::Chained). 0 if the file is read-only.
    pub fn kept_bytes(&self) -> u64 {
        format::kept(&self.bytes).map_or(0, Kept::len)
    }

    /// Returns the least bits, on average over all sets, of any filter with as many members and excluded keys and the same fpr
    /// ([`bounds::free_set`](crate::bounds::free_set)). For a partitioned filter it is the sum over the partitions, computed when it
    /// was built.
    ///
    /// ```
    /// let filter = tamis::build(0..30_000u64).fpr(1.0 / 256.0).finish()?;
    /// let (bits, bound) = (filter.as_bytes().len() as f64 * 8.0, filter.lower_bound());
    /// assert!(bound / 30_000.0 > 7.9 && bits > bound && bits < 1.1 * bound);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn lower_bound(&self) -> f64 {
        match &self.partitions {
            Some(partitions) => partitions.bound as f64,
            None => crate::math::bounds::free_set(self.header.keys, self.header.negatives, self.fpr()).bits,
        }
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0 && self.patches().iter().all(Patch::is_empty)
    }

    /// The number that the salts of the layers follow from.
    #[cfg(feature = "build")]
    pub(crate) fn salts(&self) -> u64 {
        self.header.salts
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.header.hasher
    }

    /// Returns the number of shards, all groups together.
    pub fn shards(&self) -> u64 {
        match &self.partitions {
            Some(partitions) => partitions.groups.iter().map(|group| 1 << group.shard_bits).sum(),
            None => 1 << self.header.shard_bits,
        }
    }

    /// Returns the false positive rate: the expected share of unlisted keys that match. For a partitioned filter it is the average over
    /// the members, each with unlisted keys of its partition.
    pub fn fpr(&self) -> f64 {
        let base = match &self.partitions {
            Some(partitions) => partitions.fpr(),
            None => steps::rate(&self.steps),
        };
        self.chain().map_or(base, |chain| chain.fpr(base))
    }

    /// Returns the layers in query order; those of a partitioned filter group by group.
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

/// Partitions with about the same number of excluded keys per member, which share layers.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Group {
    /// Number of partitions.
    pub partitions: u64,
    /// Members, each with its partition.
    pub keys: u64,
    /// Distinct excluded keys, each with its partition.
    pub excluded: u64,
    /// Number of shards.
    pub shards: u64,
    /// Expected share of unlisted keys that match in its partitions.
    pub fpr: f64,
}

/// One layer of a filter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerInfo {
    /// Group that it belongs to, in a partitioned filter.
    pub group: Option<usize>,
    /// Meaning of its answer.
    pub role: Role,
    /// Name of the structure.
    pub structure: &'static str,
    /// Parameters of the structure, as text.
    pub details: String,
    /// Payload bytes, all shards together.
    pub bytes: u64,
}
