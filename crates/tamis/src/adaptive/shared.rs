//! one writer, many readers -> a filter that both can use at once.
//!
//! **The guarantee.** A reader sees the filter between two changes, never in the middle of one. So *a key matches if its insertion returned
//! before the query began and its removal begins after the query ends*, whatever happens meanwhile. A key that the filter adapted to is
//! rejected until it, or a key that it meets by chance, moves to the next hash function.
//!
//! Writers plan while readers go on, and that is when the reverse map is read. They keep readers out only while a planned change is
//! made: a bounded number of words of memory. One writer plans at a time.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::verbs::{self, Access};
use super::{Adapt, AdaptError, ChangeStats, Remove, ReverseMap, Task};
use crate::error::QueryError;
use crate::hash::{Hasher, Key, KeyType};

/// Adaptive filter for several threads: many query it while one changes it.
///
/// ```
/// use tamis::adaptive::{Broom, Memory, Shared};
/// let shared = Shared::new(Broom::with_capacity(1000).build::<u64>()?);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut map = Memory::new();
///         (0..500u64).for_each(|key| assert!(shared.insert(key, &mut map).is_ok()));
///     });
///     scope.spawn(|| shared.contains(7u64));
/// });
/// assert!(shared.contains(7u64)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Shared<F> {
    /// Neither ever changes.
    hasher: Hasher,
    key_type: KeyType,
    filter: RwLock<F>,
    writer: Mutex<()>,
}

impl<F: Adapt> Shared<F> {
    /// Takes a filter to share.
    pub fn new(filter: F) -> Shared<F> {
        let (hasher, key_type) = (filter.hasher().clone(), filter.key_type());
        Shared { hasher, key_type, filter: RwLock::new(filter), writer: Mutex::new(()) }
    }

    /// Calls `with` with the filter as it is between two changes, for instance to make a snapshot.
    pub fn read<R>(&self, with: impl FnOnce(&F) -> R) -> R {
        // A thread that panicked while it read has changed nothing, and `apply` does not panic.
        with(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` for every member: see [`AdaptiveFilter::contains`](super::AdaptiveFilter::contains).
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        // Hashing needs no lock.
        let key = self.key_type.digest(key, &self.hasher)?;
        Ok(self.read(|filter| filter.contains_digest(key)))
    }

    /// Inserts a key: see [`Adapt::insert`].
    ///
    /// # Errors
    ///
    /// As [`Adapt::insert`].
    pub fn insert<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let task = Task::Insert(self.read(|filter| filter.digest(key))?);
        self.run(task, map)
    }

    /// Removes a key: see [`Remove::remove`].
    ///
    /// # Errors
    ///
    /// As [`Remove::remove`].
    pub fn remove<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>>
    where
        F: Remove,
    {
        let key = self.read(|filter| filter.digest(key))?;
        let _writer = self.lock_writer();
        verbs::remove(&mut &*self, key, map)
    }

    /// Makes the filter reject a key that is no member: see [`Adapt::adapt`].
    ///
    /// # Errors
    ///
    /// As [`Adapt::adapt`].
    pub fn adapt<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let task = Task::Adapt(self.read(|filter| filter.digest(key))?);
        self.run(task, map)
    }

    fn run<M: ReverseMap>(&self, task: Task, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let _writer = self.lock_writer();
        verbs::run(&mut &*self, task, map)
    }

    fn lock_writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Adapt> Access<F> for &Shared<F> {
    fn read<R>(&self, with: impl FnOnce(&F) -> R) -> R {
        Shared::read(self, with)
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut F) -> R) -> R {
        with(&mut self.filter.write().unwrap_or_else(PoisonError::into_inner))
    }
}
