//! a filter + a reverse map + a task -> a change, planned and then made: the operations of adaptive filters.

use std::path::Path;

use bytes::Bytes;

use super::frontier::Frontier;
use super::map::{Asked, Metered};
use super::{AdaptError, ReverseMap};
use crate::arch::arena;
use crate::error::{BuildError, ChangeError, Error, FormatError, QueryError};
use crate::file::to_file;
use crate::format::{Source, open_file};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch};

/// What an adaptive filter does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Insert a key.
    Insert(Digest),
    /// Reject this key, which is not in the set and matches.
    Adapt(Digest),
    /// Move the next key to the next hash function.
    Move,
}

/// What an operation did, and what it cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ChangeStats {
    /// Whether the filter changed: not if the key to insert is a member, or the key to adapt to is rejected already.
    pub changed: bool,
    /// Reads of the reverse map, or of all keys.
    pub reads: u32,
    /// Writes of the reverse map.
    pub writes: u32,
    /// Keys that were moved to the next hash function meanwhile, and turns.
    pub(super) moved: u32,
    /// Words of the filter that were read or written.
    pub(super) words: u32,
}

#[cfg(feature = "internals")]
impl ChangeStats {
    /// Keys that were moved to the next hash function meanwhile, and turns.
    #[doc(hidden)]
    pub fn moved(&self) -> u32 {
        self.moved
    }

    /// Words of the filter that were read or written.
    #[doc(hidden)]
    pub fn words(&self) -> u32 {
        self.words
    }
}

/// What an adaptive filter is behind its methods. It seals them: the trial of this crate has all filters.
pub trait Kept: Sized {
    /// The keyed hash, and the key type of the keys.
    fn hash(&self) -> (&Hasher, KeyType);

    /// Whether the key of this digest matches.
    fn contains_digest(&self, key: Digest) -> bool;

    /// See [`AdaptiveFilter::snapshot`].
    fn encoded(&self) -> Result<Vec<u8>, BuildError>;

    /// See [`AdaptiveFilter::restore`].
    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Self, FormatError>;

    /// The digest of a key.
    #[inline]
    fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        let (hasher, key_type) = self.hash();
        key_type.digest(key, hasher)
    }
}

/// Methods that all adaptive filters have.
///
/// ```
/// use tamis::adaptive::{AdaptiveChained, AdaptiveFilter};
/// let mut keys = vec!["ann", "bob"];
/// let filter = AdaptiveChained::with_fpr(0.01).build(&mut keys)?;
/// let again = AdaptiveChained::restore(filter.snapshot()?)?;
/// assert!(again.contains("ann")? && again.len() == 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AdaptiveFilter: Kept {
    /// Returns the number of keys.
    fn len(&self) -> u64;

    /// Returns the false positive rate of unlisted keys.
    fn fpr(&self) -> f64;

    /// Returns the bytes of memory that the filter takes, without its reverse map or list of false positives.
    fn memory_bytes(&self) -> usize;

    /// Returns `true` if there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key type.
    fn key_type(&self) -> KeyType {
        self.hash().1
    }

    /// Returns the keyed hash. It makes the digests that a [`ReverseMap`] stores.
    fn hasher(&self) -> &Hasher {
        self.hash().0
    }

    /// Returns `true` for every member, and for some other keys.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    #[inline]
    fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        Ok(self.contains_digest(self.digest(key)?))
    }

    /// Returns the filter as a file. The secret is in it, unless the builder's `secret_beside` keeps it out.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoMemory`] or another [`BuildError`] if there is no memory for the file.
    fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        self.encoded()
    }

    /// Writes the [`snapshot`](Self::snapshot) to a file, which appears, or replaces an older one, when it is complete and not
    /// before: [`read`](Self::read) restores it. Only its owner may read a file that holds a secret.
    ///
    /// ```
    /// use tamis::adaptive::{AdaptiveFilter, Broom};
    /// let path = std::env::temp_dir().join("tamis-adaptive-example.tamis");
    /// Broom::with_capacity(10).build::<str>()?.save(&path)?;
    /// assert!(Broom::read(&path)?.is_empty());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot), and if the file cannot be written.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        to_file(path.as_ref(), self.hasher().is_written(), |out| Ok(out.write_all(&snapshot)?))
    }

    /// Reads a file and restores its filter: see [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore), and if the file cannot be read.
    fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        open_file(path.as_ref(), arena::read(path.as_ref()), Self::restore)
    }

    /// Reads a file whose secret is not in it: see [`restore_with_secret`](Self::restore_with_secret).
    ///
    /// # Errors
    ///
    /// As [`restore_with_secret`](Self::restore_with_secret), and if the file cannot be read.
    fn read_with_secret(path: impl AsRef<Path>, secret: [u64; 2]) -> Result<Self, Error> {
        let restore = |bytes| Self::restore_with_secret(bytes, secret);
        open_file(path.as_ref(), arena::read(path.as_ref()), restore)
    }

    /// Returns the filter of a snapshot. All of it is checked.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are no snapshot of such a filter, or damaged.
    fn restore(bytes: impl Source) -> Result<Self, FormatError> {
        Self::decoded(bytes.into_bytes(), None)
    }

    /// Returns the filter of a snapshot whose secret is not in it. Later snapshots do not hold it either.
    ///
    /// ```
    /// use tamis::adaptive::{AdaptiveFilter, Broom};
    /// let filter = Broom::with_capacity(10).secret([1, 2]).secret_beside().build::<str>()?;
    /// let snapshot = filter.snapshot()?;
    /// assert!(Broom::restore(snapshot.clone()).is_err());
    /// assert!(Broom::restore_with_secret(snapshot, [1, 2])?.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore), and [`FormatError::Secret`] if the secret is another one.
    fn restore_with_secret(bytes: impl Source, secret: [u64; 2]) -> Result<Self, FormatError> {
        Self::decoded(bytes.into_bytes(), Some(secret))
    }
}

/// How a filter over a reverse map changes: what has to change is planned first, then made.
pub trait Mechanism: AdaptiveFilter {
    /// A change that is ready to be made.
    type Change;

    /// The hash functions, and the moves from one to the next.
    fn frontier(&self) -> &Frontier;

    /// Looks for what a task has to change, and writes to the map. `None`: nothing is to be done. The filter stays as it is.
    ///
    /// A change must be made, and at once: the map has changed, and the change fits the filter that it was planned for and no other.
    /// [`run`](Self::run) does so.
    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Result<Option<Self::Change>, AdaptError<M::Error>>;

    /// Makes a planned change; returns how many words planning and making it touched.
    fn apply(&mut self, change: Self::Change) -> u32;

    /// The number of key moves to the next hash function that are still to be made. Each later call makes a bounded number of them.
    fn pending_moves(&self) -> u32 {
        self.frontier().pending_moves
    }

    /// How often all keys have got a new hash function.
    fn epoch(&self) -> u64 {
        self.frontier().epoch
    }

    /// Carries out a task, and the moves that are due after it.
    fn run<M: ReverseMap>(&mut self, task: Task, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        run(&mut Owned(self), task, map)
    }
}

/// How a key is removed.
pub trait PlanRemoval: Mechanism {
    /// Plans the removal of a key, as [`plan`](Mechanism::plan) does a task. A key that is not in the set is [`AdaptError::NotMember`].
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Result<Self::Change, AdaptError<M::Error>>;
}

/// An adaptive filter over a [`ReverseMap`]: keys are inserted, and each reported false positive is rejected from then on.
///
/// Every call gets the same reverse map. Most of these filters implement [`Remove`] too.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory};
/// let mut filter = Broom::with_capacity(1000).build::<u64>()?;
/// let mut map = Memory::new();
/// for key in 0..1000u64 {
///     filter.insert(key, &mut map)?;
/// }
/// for query in 1000..10_000u64 {
///     if filter.contains(query)? {
///         filter.adapt(query, &mut map)?;
///     }
///     assert!(!filter.contains(query)?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Adapt: Mechanism {
    /// Returns the number of keys that fit.
    fn capacity(&self) -> u64;

    /// Inserts a key. Nothing changes if it is a member.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's, or the filter is full; [`AdaptError::Store`] if the map fails. No key is
    /// lost, and this one is not inserted.
    fn insert<K: Key, M: ReverseMap>(&mut self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        self.run(Task::Insert(key), map)
    }

    /// Makes the filter reject a key that is not in the set. Nothing changes if it does already.
    ///
    /// Later changes may make it match again by chance, at the filter's rate, as any other key.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Member`] if the key is a member, [`AdaptError::Change`] if the key type is not the filter's or there is no room,
    /// [`AdaptError::Store`] if the map fails. No key is lost.
    fn adapt<K: Key, M: ReverseMap>(&mut self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        self.run(Task::Adapt(key), map)
    }
}

/// An adaptive filter that keys can be removed from: it keeps its rate for removed keys too.
///
/// `AdaptiveBloom` does not implement it. The bits of a removed key would stay set, so that the key would match.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory, Remove};
/// let mut filter = Broom::with_capacity(1000).build::<str>()?;
/// let mut map = Memory::new();
/// filter.insert("ann", &mut map)?;
/// filter.remove("ann", &mut map)?;
/// assert!(filter.is_empty() && !filter.contains("ann")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail
/// use tamis::adaptive::{Adapt, AdaptiveBloom, Memory, Remove};
/// let mut filter = AdaptiveBloom::with_capacity(1000).build::<str>().unwrap();
/// let mut map = Memory::new();
/// filter.insert("ann", &mut map).unwrap();
/// filter.remove("ann", &mut map).unwrap(); // no such method
/// ```
pub trait Remove: Adapt + PlanRemoval {
    /// Removes a key.
    ///
    /// # Errors
    ///
    /// [`AdaptError::NotMember`] if the key is no member, [`AdaptError::Change`] if the key type is not the filter's, [`AdaptError::Store`] if
    /// the map fails. The filter is as before.
    fn remove<K: Key, M: ReverseMap>(&mut self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        remove(&mut Owned(self), key, map)
    }
}

pub(super) fn full<E>(filter: &impl Adapt) -> AdaptError<E> {
    ChangeError::Full { keys: filter.len(), capacity: filter.capacity() }.into()
}

/// Access to a filter, through a reference or a lock.
pub(super) trait Access<F> {
    fn read<R>(&self, with: impl FnOnce(&F) -> R) -> R;
    fn change<R>(&mut self, with: impl FnOnce(&mut F) -> R) -> R;
}

struct Owned<'a, F>(&'a mut F);

impl<F> Access<F> for Owned<'_, F> {
    fn read<R>(&self, with: impl FnOnce(&F) -> R) -> R {
        with(self.0)
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut F) -> R) -> R {
        with(self.0)
    }
}

/// Moves after one task: they bound the worst case of every task.
const MAX_MOVES_PER_TASK: u32 = 128;
/// Moves of an adaptation that finds no room.
const MIN_ADAPT_MOVES: u32 = 8;
/// With more pending moves a task fails unless one of them succeeds. Until then a map that fails in a move fails no task.
const MAX_PENDING_MOVES: u32 = 4096;
/// A false positive collides with one key of a broom filter, and with a few keys of a cascade.
const MAX_CHANGES_PER_ADAPT: u32 = 64;

/// See [`Mechanism::run`].
pub(super) fn run<F: Mechanism, M: ReverseMap>(
    access: &mut impl Access<F>,
    task: Task,
    map: &mut M,
) -> Asked<ChangeStats, M> {
    let is_adapt = matches!(task, Task::Adapt(_));
    let mut stats = ChangeStats::default();
    let mut map = Metered { map, reads: 0, writes: 0 };
    if task != Task::Move && access.read(F::pending_moves) > MAX_PENDING_MOVES {
        step(access, &mut map, &mut stats)?;
    }
    for _ in 0..MAX_CHANGES_PER_ADAPT {
        let mut made = plan_and_apply(access, task, &mut map, &mut stats);
        if matches!(made, Err(AdaptError::Change(ChangeError::Full { .. }))) && task != Task::Move {
            // Steps make room: those that are due, and a few for a false positive, which would have made some due.
            let few = if is_adapt { MIN_ADAPT_MOVES } else { 0 };
            for _ in 0..access.read(F::pending_moves).clamp(few, MAX_MOVES_PER_TASK) {
                step(access, &mut map, &mut stats)?;
            }
            made = plan_and_apply(access, task, &mut map, &mut stats);
        }
        let made = made?;
        stats.changed |= made;
        if !made || !is_adapt {
            break;
        }
    }
    // A task that changes nothing makes no moves.
    if stats.changed || task == Task::Move {
        make_due_steps(access, &mut map, &mut stats);
    }
    // A step may have moved the very key that was adapted to, or one that it meets, to the next hash function.
    if is_adapt && stats.moved > 0 {
        for _ in 0..MAX_CHANGES_PER_ADAPT {
            let Ok(true) = plan_and_apply(access, task, &mut map, &mut stats) else { break };
        }
    }
    Ok(ChangeStats { reads: map.reads, writes: map.writes, ..stats })
}

/// Plans a task and makes the change; false if nothing is to be done.
fn plan_and_apply<F: Mechanism, M: ReverseMap>(
    access: &mut impl Access<F>,
    task: Task,
    map: &mut M,
    stats: &mut ChangeStats,
) -> Asked<bool, M> {
    let Some(change) = access.read(|filter| filter.plan(task, map))? else { return Ok(false) };
    stats.words += access.change(|filter| filter.apply(change));
    Ok(true)
}

/// See [`Remove::remove`]. A removal makes room, so it does not wait for steps that need some.
pub(super) fn remove<F: PlanRemoval, M: ReverseMap>(
    access: &mut impl Access<F>,
    key: Digest,
    map: &mut M,
) -> Asked<ChangeStats, M> {
    let mut map = Metered { map, reads: 0, writes: 0 };
    let change = access.read(|filter| filter.plan_remove(key, &mut map))?;
    let words = access.change(|filter| filter.apply(change));
    let mut stats = ChangeStats { changed: true, words, ..ChangeStats::default() };
    make_due_steps(access, &mut map, &mut stats);
    Ok(ChangeStats { reads: map.reads, writes: map.writes, ..stats })
}

/// The steps that are due after a task. The task itself is done: a step that fails stays due.
fn make_due_steps<F: Mechanism, M: ReverseMap>(access: &mut impl Access<F>, map: &mut M, stats: &mut ChangeStats) {
    for _ in 0..access.read(F::pending_moves).min(MAX_MOVES_PER_TASK) {
        if step(access, map, stats).is_err() {
            break;
        }
    }
}

/// One step that is due.
fn step<F: Mechanism, M: ReverseMap>(
    access: &mut impl Access<F>,
    map: &mut M,
    stats: &mut ChangeStats,
) -> Asked<(), M> {
    stats.moved += u32::from(plan_and_apply(access, Task::Move, map, stats)?);
    Ok(())
}
