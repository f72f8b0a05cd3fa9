//! one writer, many readers -> a table or a filter that both can use at once.
//!
//! **The guarantee.** A reader sees cells between two changes, never in the middle of one: a listed key has its bit whatever happens to
//! others meanwhile. So *a member matches if its insertion returned before the query began and its removal begins after the query ends*, and
//! an excluded key does not match in the same sense. Writers find out what to flip, or build whole shards, while readers go on, and keep them out only to flip a few cells
//! or to exchange the shards. One writer works at a time.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::access::{Access as _, Locked};
use super::chained::change::{Known, Shown};
use super::chained::{Chained, Table};
use super::core::Core;
use super::othello::cells::Cells;
use super::othello::change::Graphs;
use super::othello::{Bits, Othello};
use crate::error::{ChangeError, Error, QueryError};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch};

/// What readers see and what only writers need, each behind a lock of its own.
pub(super) struct Halves<S, K> {
    hasher: Hasher,
    key_type: KeyType,
    salts: u64,
    pub(super) shown: RwLock<S>,
    pub(super) known: Mutex<K>,
}

impl<S, K> Halves<S, K> {
    pub(super) fn new<T>(core: Core<T>, split: impl FnOnce(T) -> (S, K)) -> Halves<S, K> {
        let Core { hasher, key_type, salts, table } = core;
        let (shown, known) = split(table);
        Halves { hasher, key_type, salts, shown: RwLock::new(shown), known: Mutex::new(known) }
    }

    pub(super) fn core<T>(self, join: impl FnOnce(S, K) -> T) -> Core<T> {
        let shown = self.shown.into_inner().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        Core { hasher: self.hasher, key_type: self.key_type, salts: self.salts, table: join(shown, known) }
    }

    pub(super) fn digest<Q: Key>(&self, key: Q) -> Result<Digest, Mismatch> {
        self.key_type.digest(key, &self.hasher)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, K> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`Othello`] for several threads: many query it while one changes it.
///
/// ```
/// use tamis::{Othello, SharedOthello};
/// let shared = SharedOthello::from(Othello::new::<u64>()?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..500u64).for_each(|key| assert!(shared.set(key, true).is_ok())));
///     scope.spawn(|| shared.get(7u64));
/// });
/// assert!(shared.get(7u64)?);
/// assert_eq!(shared.into_inner().len(), 500);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct SharedOthello(Halves<Cells, Graphs>);

impl From<Othello> for SharedOthello {
    fn from(Othello(core): Othello) -> SharedOthello {
        SharedOthello(Halves::new(core, |Bits { cells, graphs }| (cells, graphs)))
    }
}

impl std::fmt::Debug for SharedOthello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedOthello").field("hasher", &self.0.hasher).finish_non_exhaustive()
    }
}

impl SharedOthello {
    /// Returns the bit of a key: see [`Othello::get`].
    ///
    /// # Errors
    ///
    /// As [`Othello::get`].
    pub fn get<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        let key = self.0.digest(key)?;
        Ok(Locked(&self.0.shown).read(|cells| cells.get(key)))
    }

    /// Sets the bit of a key: see [`Othello::set`].
    ///
    /// # Errors
    ///
    /// As [`Othello::set`].
    pub fn set<K: Key>(&self, key: K, bit: bool) -> Result<bool, Error> {
        let key = self.0.digest(key).map_err(ChangeError::from)?;
        Ok(self.0.known().set(&mut Locked(&self.0.shown), key, bit)?)
    }

    /// Removes a key: see [`Othello::remove`].
    ///
    /// # Errors
    ///
    /// As [`Othello::remove`].
    pub fn remove<K: Key>(&self, key: K) -> Result<bool, ChangeError> {
        let key = self.0.digest(key)?;
        Ok(self.0.known().remove(&mut Locked(&self.0.shown), key))
    }

    /// Returns the table, which is no longer shared.
    pub fn into_inner(self) -> Othello {
        Othello(self.0.core(|cells, graphs| Bits { cells, graphs }))
    }
}

/// [`Chained`] for several threads: many query it while one changes it.
///
/// ```
/// use tamis::{Bloom, Chained, SharedChained};
/// let shared = SharedChained::from(Chained::over(Bloom::with_capacity(1000).build::<u64>()?)?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..500u64).for_each(|key| assert!(shared.insert(key).is_ok())));
///     scope.spawn(|| shared.contains(7u64));
/// });
/// shared.exclude(700u64)?;
/// assert!(shared.contains(7u64)? && !shared.contains(700u64)?);
/// assert_eq!(shared.into_inner().len(), 500);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct SharedChained(Halves<Shown, Known>);

impl From<Chained> for SharedChained {
    fn from(Chained(core): Chained) -> SharedChained {
        SharedChained(Halves::new(core, |Table { shown, known }| (shown, known)))
    }
}

impl std::fmt::Debug for SharedChained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedChained").field("hasher", &self.0.hasher).finish_non_exhaustive()
    }
}

impl SharedChained {
    /// Returns `true` for every member: see [`Chained::contains`].
    ///
    /// # Errors
    ///
    /// As [`Chained::contains`].
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        let key = self.0.digest(key)?;
        Ok(Locked(&self.0.shown).read(|shown| shown.contains(key)))
    }

    /// Inserts a key: see [`Chained::insert`].
    ///
    /// # Errors
    ///
    /// As [`Chained::insert`].
    pub fn insert<K: Key>(&self, key: K) -> Result<bool, Error> {
        let key = self.0.digest(key).map_err(ChangeError::from)?;
        self.0.known().insert(&mut Locked(&self.0.shown), key)
    }

    /// Excludes a key: see [`Chained::exclude`].
    ///
    /// # Errors
    ///
    /// As [`Chained::exclude`].
    pub fn exclude<K: Key>(&self, key: K) -> Result<bool, Error> {
        let key = self.0.digest(key).map_err(ChangeError::from)?;
        self.0.known().exclude(&mut Locked(&self.0.shown), key)
    }

    /// Takes an exclusion back: see [`Chained::allow`].
    ///
    /// # Errors
    ///
    /// As [`Chained::allow`].
    pub fn allow<K: Key>(&self, key: K) -> Result<bool, ChangeError> {
        let key = self.0.digest(key)?;
        self.0.known().allow(&mut Locked(&self.0.shown), key)
    }

    /// Removes a member: see [`Chained::remove`].
    ///
    /// # Errors
    ///
    /// As [`Chained::remove`].
    pub fn remove<K: Key>(&self, key: K) -> Result<(), ChangeError> {
        let key = self.0.digest(key)?;
        self.0.known().remove(&mut Locked(&self.0.shown), key)
    }

    /// Returns the filter, which is no longer shared.
    pub fn into_inner(self) -> Chained {
        Chained(self.0.core(|shown, known| Table { shown, known }))
    }
}
