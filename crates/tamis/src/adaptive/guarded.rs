//! a filter + a dictionary -> lookups that adapt: query the filter, then the dictionary, adapt, count.

use super::{AdaptError, Remove, ReverseMap};
use crate::debug::brief_debug;
use crate::hash::Key;

/// Dictionary behind a filter: the keys with their values, and the [`ReverseMap`] of the filter.
///
/// A [`HashMap`](std::collections::HashMap) and a [`Memory`](super::Memory), as a pair, are one.
pub trait Dictionary<K: ?Sized>: ReverseMap {
    /// Type of the values.
    type Value;

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// Those of the dictionary, as for all methods.
    fn get(&mut self, key: &K) -> Result<Option<Self::Value>, Self::Error>;

    /// Sets the value of a key; returns the one it had.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A call that fails has changed nothing.
    fn insert(&mut self, key: &K, value: Self::Value) -> Result<Option<Self::Value>, Self::Error>;

    /// Removes a key; returns its value.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    fn remove(&mut self, key: &K) -> Result<Option<Self::Value>, Self::Error>;
}

/// Numbers of lookups. Those that are neither rejected nor false positives returned a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Lookups in all.
    pub lookups: u64,
    /// Lookups that the filter rejected: the dictionary was not read.
    pub rejected: u64,
    /// Lookups that matched, of keys that the dictionary does not have.
    pub false_positives: u64,
    /// False positives that the filter could not adapt to, because the map failed or there was no room.
    pub failed: u64,
}

/// Filter and the dictionary behind it. The filter must be able to remove keys: an insertion that the dictionary rejects is undone.
///
/// ```
/// use std::collections::HashMap;
/// use tamis::adaptive::{Broom, Guarded, Memory};
/// let broom = Broom::with_capacity(1000).build::<str>()?;
/// let mut ages = Guarded::new(broom, (HashMap::<String, u32>::new(), Memory::new()));
/// ages.insert("ann", 41)?;
/// assert_eq!(ages.get("ann")?, Some(41));
/// assert_eq!(ages.get("bob")?, None); // the dictionary is not read, most of the time
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
    /// Takes a filter and its dictionary. The keys of the filter must be those of the dictionary, filed in its reverse map.
    pub fn new(filter: F, store: S) -> Guarded<F, S> {
        Guarded { filter, store, counts: Counts::default() }
    }

    /// Returns the filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Returns the dictionary.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the numbers of lookups so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns filter and dictionary.
    pub fn into_parts(self) -> (F, S) {
        (self.filter, self.store)
    }

    /// Returns the value of a key. The filter adapts to a false positive.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's, [`AdaptError::Store`] if the dictionary fails.
    pub fn get<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        if !self.filter.contains_digest(self.filter.digest(key)?) {
            self.counts.lookups += 1;
            self.counts.rejected += 1;
            return Ok(None);
        }
        let value = self.store.get(key).map_err(AdaptError::Store)?;
        self.counts.lookups += 1;
        match value {
            Some(_) => {}
            None => {
                self.counts.false_positives += 1;
                // The answer is right, whether or not the filter adapts; the next false positive tries again.
                match self.filter.adapt(key, &mut self.store) {
                    Ok(_) => {}
                    // It is filed and has no value: what a removal left that failed half-way.
                    Err(AdaptError::Member) => self.forget(key),
                    Err(_) => self.counts.failed += 1,
                }
            }
        }
        Ok(value)
    }

    /// Sets the value of a key; returns the one it had.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's or the filter is full, [`AdaptError::Store`] if the dictionary fails.
    /// Nothing changes.
    pub fn insert<K: Key + ?Sized>(
        &mut self,
        key: &K,
        value: S::Value,
    ) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        // First the filter: a key that it has and the dictionary has not costs a lookup, the other way round the key is lost.
        let is_new = self.filter.insert(key, &mut self.store)?.changed;
        let put = self.store.insert(key, value);
        if put.is_err() && is_new {
            self.forget(key);
        }
        put.map_err(AdaptError::Store)
    }

    /// Removes a key without a value from the filter. If that fails it costs a lookup, which tries again.
    fn forget<K: Key + ?Sized>(&mut self, key: &K)
    where
        S: ReverseMap,
    {
        self.filter.remove(key, &mut self.store).ok();
    }

    /// Removes a key; returns its value, or `None` if there is no such key.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's, [`AdaptError::Store`] if the dictionary fails.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<S::Value>, AdaptError<S::Error>>
    where
        S: Dictionary<K>,
    {
        if !self.filter.contains_digest(self.filter.digest(key)?) {
            return Ok(None);
        }
        let value = self.store.remove(key).map_err(AdaptError::Store)?;
        // If this fails, a lookup of the key tries again.
        self.forget(key);
        Ok(value)
    }
}
