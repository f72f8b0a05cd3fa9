//! a key -> the runs to read, from the oldest on, and when to stop: what readers of a level keep.

use std::sync::Arc;

use crate::debug::brief_debug;
use crate::dynamic::othello::cells::Cells;
use crate::error::QueryError;
use crate::filter::query::Filter;
use crate::hash::{Digest, Hasher, Key, KeyType};

/// Number of a run: runs of a level are numbered from 0 in the order in which they were made. No number is used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunId(pub(super) u64);

impl RunId {
    /// Returns the number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The filter of one run: what a query reads.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// Its keys.
    pub(super) first: Arc<Filter>,
    /// Of what passes: 1 for its keys, 0 for keys of later runs.
    pub(super) exact: Arc<Cells>,
}

impl Run {
    #[inline]
    fn matches(&self, key: Digest) -> bool {
        // The one error of a filter without partitions cannot occur, and a match is always safe.
        self.first.contains_digest(key).unwrap_or(true) && self.exact.get(key)
    }
}

/// What gets need of a [`Level`](super::Level): the filters of its runs, as they were at one moment.
///
/// A clone shares the filters. Exact bits are copied when the level changes them while a clone is in use.
#[derive(Clone)]
pub struct Reader {
    pub(super) hasher: Hasher,
    pub(super) key_type: KeyType,
    pub(super) all_versions: bool,
    /// From the oldest on.
    pub(super) runs: Vec<Run>,
}

brief_debug!(Reader, it => runs: it.runs.len(), stats: it.stats(), hasher: it.hasher);

impl Reader {
    /// Returns the run that a get reads, or `None` if no run holds the key.
    ///
    /// It is the newest run that holds the key. If the run that is returned lacks the key, no run holds it.
    ///
    /// With [`all_versions`](super::LevelBuilder::all_versions) it is the oldest run instead, and [`candidates`](Self::candidates) has the others.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the level's.
    ///
    /// # Complexity
    ///
    /// A query of every filter up to the one that matches, from the oldest on.
    #[inline]
    pub fn find<K: Key>(&self, key: K) -> Result<Option<RunId>, QueryError> {
        Ok(self.candidates(key)?.next())
    }

    /// Returns the runs to read, in order. Stop at the first that lacks the key: no later one holds it.
    ///
    /// It is one run at most, or with [`all_versions`](super::LevelBuilder::all_versions) every run that holds the key, from the oldest on, and others
    /// after them.
    ///
    /// ```
    /// let mut level = tamis::lsm::LevelBuilder::new().all_versions().build::<str>()?;
    /// let runs = [level.push_run(["ann", "bob"])?, level.push_run(["ann"])?];
    /// assert_eq!(level.reader().candidates("ann")?.collect::<Vec<_>>(), runs);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn candidates<K: Key>(&self, key: K) -> Result<Candidates<'_>, QueryError> {
        let key = self.key_type.digest(key, &self.hasher)?;
        Ok(Candidates { runs: self.runs.iter(), key, only_first: !self.all_versions })
    }

    /// Searches for a key: `read` reads a run and returns what it holds for the key. The first run that holds nothing ends the search.
    ///
    /// At most one run is read that does not hold the key, and only if the key is in no run. With [`all_versions`](super::LevelBuilder::all_versions) all
    /// runs that hold the key are read, from the oldest on, and one that does not may be read after them.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use tamis::lsm::Level;
    ///
    /// let mut level = Level::new::<str>()?;
    /// let tables = [HashMap::from([("ann", 30), ("bob", 41)]), HashMap::from([("ann", 31)])];
    /// for table in &tables {
    ///     level.push_run(table.keys().copied())?;
    /// }
    /// let read = |key| level.reader().search(key, |run| Ok::<_, tamis::Error>(tables[run.number() as usize].get(key)));
    /// let found = read("ann")?;
    /// assert_eq!((found.value, found.searches, found.extra), (Some(&31), 1, 0));
    /// assert_eq!(read("cid")?.value, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find), and those of `read`.
    pub fn search<K: Key, V, E: From<QueryError>>(
        &self,
        key: K,
        mut read: impl FnMut(RunId) -> Result<Option<V>, E>,
    ) -> Result<Search<V>, E> {
        let mut search = Search { value: None, run: None, searches: 0, extra: 0 };
        for run in self.candidates(key)? {
            search.searches += 1;
            let Some(value) = read(run)? else {
                search.extra = 1;
                break;
            };
            (search.value, search.run) = (Some(value), Some(run));
        }
        Ok(search)
    }

    /// Returns the runs, from the oldest on.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = RunId> + '_ {
        self.runs.iter().map(|run| run.id)
    }

    /// Returns the share of absent keys for which a run is read: `1 - (1 - p)^n` for `n` runs of rate `p`.
    pub fn absent_rate(&self) -> f64 {
        1.0 - self.runs.iter().map(|run| 1.0 - run.first.fpr() / 2.0).product::<f64>()
    }

    pub(super) fn stats(&self) -> Stats {
        let bytes = |run: &Run| run.first.as_bytes().len() as u64 + run.exact.bits().div_ceil(8);
        Stats {
            runs: self.runs.len() as u64,
            keys: self.runs.iter().map(|run| run.first.len()).sum(),
            reader_bytes: self.runs.iter().map(bytes).sum(),
            listed: 0,
            side_bytes: 0,
        }
    }
}

/// The runs to read for one key, in order: see [`Reader::candidates`].
#[derive(Clone)]
pub struct Candidates<'a> {
    runs: std::slice::Iter<'a, Run>,
    key: Digest,
    only_first: bool,
}

brief_debug!(Candidates<'a>, it => left: it.runs.len());

impl Iterator for Candidates<'_> {
    type Item = RunId;

    #[inline]
    fn next(&mut self) -> Option<RunId> {
        let found = self.runs.find(|run| run.matches(self.key))?;
        if self.only_first {
            self.runs = [].iter();
        }
        Some(found.id)
    }
}

impl std::iter::FusedIterator for Candidates<'_> {}

/// What a search found, and how many runs it read: see [`Reader::search`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Search<V> {
    /// What the newest run with the key holds for it.
    pub value: Option<V>,
    /// The newest run with the key.
    pub run: Option<RunId>,
    /// Runs that were read.
    pub searches: u32,
    /// Runs that were read and did not hold the key: 0 or 1.
    pub extra: u32,
}

/// How large a level is: see [`Level::stats`](super::Level::stats).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Runs.
    pub runs: u64,
    /// Keys of all runs; a key in two runs counts twice.
    pub keys: u64,
    /// Keys in the exact bits of all runs: members, and keys of later runs that pass the ribbon.
    pub listed: u64,
    /// Bytes that readers keep.
    pub reader_bytes: u64,
    /// Bytes that only changes need, with the writer.
    pub side_bytes: u64,
}

impl Stats {
    /// Returns the bits that readers keep for each key, or 0 without keys.
    pub fn bits_per_key(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { 8.0 * self.reader_bytes as f64 / self.keys as f64 }
    }
}
