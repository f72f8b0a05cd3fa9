//! bytes -> Sets: open, find, count, verify.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::index::{Index, by_name};
use super::info::SegmentInfo;
use super::segment::Segment;
use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::format::{self, Budget, Form, Source, equal_by_bytes, from_bytes};
use crate::hash::{Hasher, Key, KeyType};

/// Index of many sets: which of them hold a key?
///
/// An index is opened from bytes: a vector, a static array or a memory map. Opening reads the names of the sets and copies no table. Sets
/// have ids from 0 on, in the order in which they were first named.
///
/// ```
/// let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).finish()?;
/// let names: Vec<&str> = index.find("ann")?.into_iter().filter_map(|id| index.name(id)).collect();
/// assert_eq!(names, ["red", "blue"]);
/// assert!(index.find("eve")?.is_empty());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Sets {
    bytes: Bytes,
    pub(super) index: Arc<Index>,
    /// Ids by name, from the first use on.
    by_name: Arc<OnceLock<HashMap<Box<str>, u32>>>,
}

equal_by_bytes!(Sets);
brief_debug!(Sets, it => keys: it.keys(), sets: it.index.names.len(), bytes: it.bytes.len(), hasher: it.index.hasher);

impl Sets {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`open`](Self::open), except for a damaged payload.
    ///
    /// ```
    /// let filter = tamis::build(["ann"]).finish()?;
    /// let error = tamis::Sets::open(filter.as_bytes().to_vec()).unwrap_err();
    /// assert_eq!(error.to_string(), "the file holds a filter; expected a set index");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn open_unverified(bytes: impl Source) -> Result<Sets, FormatError> {
        Sets::opened(bytes.into_bytes(), None)
    }

    /// The same for a caller who knows this secret.
    pub(crate) fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Sets, FormatError> {
        let budget = Budget::of(&bytes);
        let (header, from, places) = format::parts(&bytes, secret, &budget)?;
        if header.form != Form::Sets {
            return Err(FormatError::Form { found: header.form.name(), expected: Form::Sets.name() });
        }
        let index = Index::decode(&header, format::metadata(&bytes), from, places)?;
        Ok(Sets { index: Arc::new(index), bytes, by_name: Arc::default() })
    }

    from_bytes!(bytes);

    /// Returns the ids of the sets that hold this key, ascending: all of them, and false sets at the rates that
    /// [`false_sets`](Sets::false_sets) predicts.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    pub fn find<K: Key>(&self, key: K) -> Result<Vec<u32>, QueryError> {
        let mut ids = vec![];
        self.find_into(key, &mut ids)?;
        Ok(ids)
    }

    /// Replaces the content of `ids` by the ids of the sets that hold this key: see [`find`](Sets::find).
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    pub fn find_into<K: Key>(&self, key: K, ids: &mut Vec<u32>) -> Result<(), QueryError> {
        self.index.check::<K>()?;
        self.index.find(self.index.digest_of(&key), ids);
        Ok(())
    }

    /// Calls `found` with the position and the set ids of each key, in order: several times faster than one by one where the index is
    /// larger than the caches.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    ///
    /// ```
    /// let index = tamis::sets((0..1000u64).map(|key| (key, format!("s{}", key % 3)))).finish()?;
    /// let mut sizes = [0; 3];
    /// index.find_many(&[0u64, 1, 2, 3], |at, ids| ids.iter().for_each(|&id| sizes[id as usize] += 1))?;
    /// assert_eq!(sizes, [2, 1, 1]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn find_many<K: Key>(&self, keys: &[K], found: impl FnMut(usize, &[u32])) -> Result<(), QueryError> {
        self.index.check::<K>()?;
        self.index.find_many(keys, found);
        Ok(())
    }

    /// Counts for every set how many of these keys it holds. Equal keys count as often as they are listed.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    ///
    /// ```
    /// let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).finish()?;
    /// let tally = index.tally(&["ann", "bob", "eve"])?;
    /// assert_eq!((tally.found, tally.counts), (2, vec![2, 1]));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn tally<K: Key>(&self, keys: &[K]) -> Result<Tally, QueryError> {
        let mut tally = Tally { keys: keys.len() as u64, found: 0, counts: vec![0; self.index.names.len()] };
        self.find_many(keys, |_, ids| {
            tally.found += !ids.is_empty() as u64;
            for &id in ids {
                tally.counts[id as usize] += 1;
            }
        })?;
        Ok(tally)
    }

    /// Returns the sets of a key, each with the number of times that the pair was pushed: for an index with
    /// [counts](super::SetsBuilder::counts). 255 stands for any larger number. Without counts the number is 1.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    pub fn frequencies<K: Key>(&self, key: K) -> Result<Vec<(u32, u8)>, QueryError> {
        self.index.check::<K>()?;
        Ok(self.index.frequencies(self.index.digest_of(&key)))
    }

    /// Returns true if a segment counts how often each pair was pushed: see [`frequencies`](Self::frequencies).
    pub fn has_counts(&self) -> bool {
        self.index.segments.iter().any(Segment::has_counts)
    }

    /// Returns the number of sets, without removed ones.
    pub fn sets(&self) -> u32 {
        self.index.names.len() as u32 - self.index.removed
    }

    /// Returns the ids and names of all sets, without removed ones.
    pub fn names(&self) -> impl Iterator<Item = (u32, &str)> + '_ {
        let all = (0..).zip(&self.index.names);
        all.filter(|(_, entry)| !entry.removed).map(|(id, entry)| (id, &*entry.name))
    }

    /// Returns the name of a set; `None` if no set has this id, or it was removed.
    pub fn name(&self, id: u32) -> Option<&str> {
        self.index.names.get(id as usize).filter(|entry| !entry.removed).map(|entry| &*entry.name)
    }

    /// Returns the id of the set with this name.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.by_name.get_or_init(|| by_name(&self.index.names)).get(name).copied()
    }

    /// Returns the number of keys of a set; an upper bound after keys were inserted one by one.
    pub fn size(&self, id: u32) -> u64 {
        self.index.names.get(id as usize).map_or(0, |entry| entry.pairs)
    }

    /// Returns the number of distinct keys, summed over all segments: a key in two of them counts twice.
    pub fn keys(&self) -> u64 {
        self.index.keys()
    }

    /// Returns the number of pairs of a key and a set, summed over all segments.
    pub fn pairs(&self) -> u64 {
        self.index.pairs()
    }

    /// Returns the length of the k-mers that are the keys; `None` if keys are something else.
    pub fn kmer(&self) -> Option<u32> {
        Some(self.index.kmer).filter(|&kmer| kmer > 0)
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.index.key_type
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.index.hasher
    }

    /// Returns the segments of the index, with the sizes of their parts.
    ///
    /// # Complexity
    ///
    /// Reads the whole table of a sketch: its false sets depend on how full it is.
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.index.segments.iter().map(SegmentInfo::new)
    }

    /// Returns the predicted false sets of an unlisted key and of a member, of all segments together. A member of one segment is an
    /// unlisted key to the others.
    ///
    /// ```
    /// let one = tamis::sets((0..1000u64).map(|key| (key, "red"))).finish()?;
    /// assert_eq!(one.false_sets().1, 0.0);
    /// let two = tamis::sets((1000..2000u64).map(|key| (key, "blue"))).finish()?;
    /// let mut both = tamis::sets::Editor::new(&one)?;
    /// both.merge(&two)?;
    /// assert!(tamis::Sets::open(both.snapshot()?)?.false_sets().1 > 0.009);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn false_sets(&self) -> (f64, f64) {
        let all: Vec<SegmentInfo> = self.segments().collect();
        let false_sets: f64 = all.iter().map(|segment| segment.false_sets).sum();
        let keys: f64 = all.iter().map(|segment| segment.keys as f64).sum();
        let member_false_sets =
            |segment: &SegmentInfo| segment.keys as f64 * (segment.member_false_sets + false_sets - segment.false_sets);
        (false_sets, all.iter().map(member_false_sets).sum::<f64>() / keys.max(1.0))
    }
}

/// How many of some keys every set holds: see [`Sets::tally`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    keys: u64,
    /// Number of keys that are in any set.
    pub found: u64,
    /// Number of keys by set id; 0 for removed sets.
    pub counts: Vec<u64>,
}

impl Tally {
    /// Returns the sets that hold at least this share of the keys, and at least one of them, each with its number of keys.
    ///
    /// 0 selects the union, the sets that hold any of the keys, and 1 the intersection, those that hold all of them. A share in
    /// between searches for a sequence by its k-mers.
    ///
    /// ```
    /// let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).finish()?;
    /// let tally = index.tally(&["ann", "bob"])?;
    /// assert_eq!(tally.at_least(0.5), [(0, 2), (1, 1)]);
    /// assert_eq!(tally.at_least(1.0), [(0, 2)]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn at_least(&self, share: f64) -> Vec<(u32, u64)> {
        // A product that is a little more than the whole number it stands for means that number.
        let least = share * self.keys as f64 * (1.0 - 1e-12);
        let counts = (0..).zip(self.counts.iter().copied());
        counts.filter(|&(_, count)| count > 0 && count as f64 >= least).collect()
    }
}
