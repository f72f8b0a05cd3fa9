//! a filter + a dictionary -> lookups that learn: ask the filter, ask the dictionary, repair, count.

use super::{AdaptError, ChangeStats, Remove, ReverseMap};
use crate::debug::brief_debug;
use crate::hash::Key;

/// A dictionary behind a filter: the keys with their values, and the [`ReverseMap`] of the filter.
pub trait Dictionary<K: ?Sized>: ReverseMap {
    /// What a key leads to.
    type Value;

    /// The value of a key.
    fn get(&mut self, key: &K) -> Result<Option<Self::Value>, Self::Error>;

    /// Gives a key a value; returns the one it had.
    fn put(&mut self, key: &K, value: Self::Value) -> Result<Option<Self::Value>, Self::Error>;

    /// Takes a key out; returns its value.
    fn take(&mut self, key: &K) -> Result<Option<Self::Value>, Self::Error>;
}

/// What lookups came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Lookups.
    pub lookups: u64,
    /// Lookups that the filter answered alone.
    pub refused: u64,
    /// Lookups that found a value.
    pub found: u64,
    /// Lookups that the dictionary was asked for in vain.
    pub false_positives: u64,
    /// Those of them that could not be repaired, since the map failed or there was no room.
    pub unrepaired: u64,
    /// Reads of the reverse map, for repairs, insertions and removals.
    pub map_reads: u64,
    /// Writes of the reverse map.
    pub map_writes: u64,
}

impl Counts {
    fn add(&mut self, stats: ChangeStats) {
        self.map_reads += u64::from(stats.reads);
        self.map_writes += u64::from(stats.writes);
    }
}

/// A filter and the dictionary it guards. The filter must be able to remove keys: an insertion that the dictionary refuses is undone.
///
/// ```
/// use tamis::adaptive::{Broom, Guarded, MemoryDictionary};
/// let broom = Broom::with_capacity(1000).build::<str>()?;
/// let mut ages = Guarded::new(broom, MemoryDictionary::<String, u32>::new());
/// ages.insert("ann", 41)?;
/// assert_eq!(ages.get("ann")?, Some(41));
/// assert_eq!(ages.get("bob")?, None); // the table is not even asked, most of the time
/// assert_eq!(ages.remove("ann")?, Some(41));
/// assert_eq!(ages.counts().lookups, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Guarded<F, S> {
    filter: F,
    store: S,
    counts: Counts,
}

brief_debug!(Guarded<F: std::fmt::Debug, S>, it => filter: it.filter, lookups: it.counts.lookups);

impl<F: Remove, S> Guarded<F, S> {
    /// A filter and its dictionary. The keys that the filter holds must be those of the dictionary, filed in its reverse map.
    pub fn new(filter: F, store: S) -> Guarded<F, S> {
        Guarded { filter, store, counts: Counts::default() }
    }

    /// The filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The dictionary.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// What lookups came to so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Filter and dictionary again.
    pub fn into_parts(self) -> (F, S) {
        (self.filter, self.store)
    }

    /// The value of a key. A false positive is repaired on the way.
    pub fn get<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        if !self.filter.contains_digest(self.filter.digest(key)?) {
            self.counts.lookups += 1;
            self.counts.refused += 1;
            return Ok(None);
        }
        let value = self.store.get(key).map_err(AdaptError::Store)?;
        self.counts.lookups += 1;
        match value {
            Some(_) => self.counts.found += 1,
            None => {
                self.counts.false_positives += 1;
                // The answer is known, whatever becomes of the repair; the next false positive tries again.
                match self.filter.adapt(key, &mut self.store) {
                    Ok(stats) => self.counts.add(stats),
                    // It is filed and has no value: what a removal left that failed half-way.
                    Err(AdaptError::Member) => self.forget(key),
                    Err(_) => self.counts.unrepaired += 1,
                }
            }
        }
        Ok(value)
    }

    /// Gives a key a value; returns the one it had. A filter without room for the key is an error, and nothing is changed.
    pub fn insert<K: Key + ?Sized>(
        &mut self,
        key: &K,
        value: S::Value,
    ) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        // First the filter: a key that it knows and the dictionary does not is a question in vain, the other way round it is lost.
        let stats = self.filter.insert(key, &mut self.store)?;
        self.counts.add(stats);
        let put = self.store.put(key, value);
        if put.is_err() && stats.changed {
            self.forget(key);
        }
        put.map_err(AdaptError::Store)
    }

    /// Takes a key without a value out of the filter. If that fails it costs a lookup, which tries again.
    fn forget<K: Key + ?Sized>(&mut self, key: &K)
    where
        S: ReverseMap,
    {
        if let Ok(stats) = self.filter.remove(key, &mut self.store) {
            self.counts.add(stats);
        }
    }

    /// Takes a key out; returns its value. A key that is not there is no error here.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        if !self.filter.contains_digest(self.filter.digest(key)?) {
            return Ok(None);
        }
        let value = self.store.take(key).map_err(AdaptError::Store)?;
        // A filter that could not be told costs a lookup in vain, and is told then.
        self.forget(key);
        Ok(value)
    }
}
