//! one writer, many readers -> a filter that both can use at once.
//!
//! **The guarantee.** A reader sees the filter between two changes, never in the middle of one. So *a key whose insertion had returned before
//! a query began, and whose removal begins after it ends, is answered with yes*, whatever goes on meanwhile. A repair that has returned is
//! in force until the key, or one that it meets by chance, is moved to the next hash function.
//!
//! Writers plan beside the readers, which is when the reverse map is asked, and keep them out only while a planned change is made:
//! a bounded number of words of memory. One writer plans at a time.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::verbs::{self, Access};
use super::{Adapt, AdaptError, ChangeStats, Remove, ReverseMap, Task};
use crate::error::{BuildError, QueryError};
use crate::hash::Key;

/// An adaptive filter for several threads.
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
    filter: RwLock<F>,
    writer: Mutex<()>,
}

impl<F: Adapt> Shared<F> {
    /// Shares a filter.
    pub fn new(filter: F) -> Shared<F> {
        Shared { filter: RwLock::new(filter), writer: Mutex::new(()) }
    }

    /// The filter alone again.
    pub fn into_inner(self) -> F {
        self.filter.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the filter as it is between two changes.
    pub fn look<R>(&self, with: impl FnOnce(&F) -> R) -> R {
        // A thread that panicked while it looked has changed nothing, and `apply` does not panic.
        with(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a key may be in the set.
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        // Hashing needs no lock; neither hash nor key type ever changes.
        let (hasher, key_type) = self.look(|filter| (*filter.hasher(), filter.key_type()));
        let key = key_type.digest(key, &hasher)?;
        Ok(self.look(|filter| filter.contains_digest(key)))
    }

    /// Puts a key in; see [`Adapt::insert`].
    pub fn insert<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let task = Task::Insert(self.look(|filter| filter.digest(key))?);
        self.run(task, map)
    }

    /// Removes a key; see [`Remove::remove`].
    pub fn remove<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>>
    where
        F: Remove,
    {
        let key = self.look(|filter| filter.digest(key))?;
        let _writer = self.lock_writer();
        verbs::remove(&mut &*self, key, map)
    }

    /// Makes the filter refuse a key that is not in the set; see [`Adapt::adapt`].
    pub fn adapt<K: Key, M: ReverseMap>(&self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let task = Task::Adapt(self.look(|filter| filter.digest(key))?);
        self.run(task, map)
    }

    /// The filter as a file, as it is between two changes.
    pub fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        self.look(F::snapshot)
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
        self.look(with)
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut F) -> R) -> R {
        with(&mut self.filter.write().unwrap_or_else(PoisonError::into_inner))
    }
}
