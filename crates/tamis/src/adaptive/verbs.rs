//! a filter + a reverse map + a task -> a change, planned and then made: the verbs of adaptive filters.

use bytes::Bytes;

use super::frontier::Frontier;
use super::map::{Asked, Metered};
use super::{AdaptError, ReverseMap};
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch};

/// What an adaptive filter can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Put a key in.
    Insert(Digest),
    /// This key is not in the set, and the filter said it was.
    Repair(Digest),
    /// Move the next key to the next hash function.
    Move,
}

/// What a task did, and what it cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangeStats {
    /// Whether anything was done: not if a key was there already, or if the filter refused the key to repair.
    pub changed: bool,
    /// Steps that were made meanwhile: keys that were moved to the next hash function, and turns.
    pub moved: u32,
    /// Words of the filter that were read or written.
    pub words: u32,
    /// How often the reverse map was read.
    pub reads: u32,
    /// How often the reverse map was written.
    pub writes: u32,
}

/// What a filter is behind the verbs. It seals them: the trial of this crate knows all filters that have them.
pub(crate) trait Kept: Sized {
    /// The keyed hash, the keys' key type, and the moves.
    fn frontier(&self) -> &Frontier;

    /// See [`Adapt::snapshot`].
    fn encoded(&self) -> Result<Vec<u8>, BuildError>;

    /// See [`Adapt::restore`].
    fn decoded(bytes: Bytes) -> Result<Self, FormatError>;
}

/// A filter that can be told of its false positives.
///
/// Every call gets the same reverse map. [`adapt`](Self::adapt) is for keys that the caller knows to be absent. Filters that keys can be removed
/// from implement [`Remove`] too.
#[allow(private_bounds)]
pub trait Adapt: Kept {
    /// A change that is ready to be made.
    type Change;

    /// Looks for what a task has to change, and tells the map. `None`: nothing is to be done. The filter stays as it is.
    ///
    /// A change must be made, and at once: the map has been told, and the change fits the filter that it was planned for and no other.
    /// [`run`](Self::run) does so.
    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Result<Option<Self::Change>, AdaptError<M::Error>>;

    /// Makes a planned change; returns how many words planning and making it touched.
    fn apply(&mut self, change: Self::Change) -> u32;

    /// Returns the number of [`Task::Move`]s that are still pending: key moves to the next hash function. Each later call makes a bounded number of them.
    fn pending_moves(&self) -> u32 {
        self.frontier().pending_moves
    }

    /// Whether the key of this digest may be in the set.
    fn contains_digest(&self, key: Digest) -> bool;

    /// The keyed hash.
    fn hasher(&self) -> &Hasher {
        &self.frontier().hasher
    }

    /// The key type of the keys.
    fn key_type(&self) -> KeyType {
        self.frontier().key_type
    }

    /// How many keys it holds.
    fn len(&self) -> u64;

    /// How many keys it takes.
    fn capacity(&self) -> u64;

    /// Bytes of memory it has allocated; the reverse map is not among them.
    fn bytes(&self) -> usize;

    /// The rate that it holds.
    fn fpr(&self) -> f64;

    /// How often all keys have got a new hash function.
    fn epoch(&self) -> u64 {
        self.frontier().epoch
    }

    /// The filter as a file. The secret key is in it.
    fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        self.encoded()
    }

    /// Takes up a snapshot. All of it is checked.
    fn restore(bytes: impl Into<Bytes>) -> Result<Self, FormatError> {
        Self::decoded(bytes.into())
    }

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digest of a key.
    #[inline]
    fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        self.key_type().digest(key, self.hasher())
    }

    /// Whether a key may be in the set.
    #[inline]
    fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        Ok(self.contains_digest(self.digest(key)?))
    }

    /// Puts a key in. Nothing is changed if it is there.
    fn insert<K: Key, M: ReverseMap>(&mut self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        self.run(Task::Insert(key), map)
    }

    /// Makes the filter refuse a key that is not in the set, if there is room for it. Nothing is changed if it does already; a key of the set is an error.
    fn adapt<K: Key, M: ReverseMap>(&mut self, key: K, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        self.run(Task::Repair(key), map)
    }

    /// Carries out a task, and the steps that are due after it.
    fn run<M: ReverseMap>(&mut self, task: Task, map: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        run(&mut Owned(self), task, map)
    }
}

/// An adaptive filter that keys can be removed from: it keeps its rate for removed keys too.
///
/// `AdaptiveBloom` does not implement it. The bits of a removed key would stay set, so that the key would match.
///
/// ```
/// use tamis::adaptive::{Adapt, Broom, Memory, Remove};
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
pub trait Remove: Adapt {
    /// Plans the removal of a key, as [`plan`](Adapt::plan) does a task. A key that is not in the set is [`AdaptError::Absent`].
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Result<Self::Change, AdaptError<M::Error>>;

    /// Removes a key. One that is not in the set is an error.
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
/// Moves of a repair that finds no room.
const MIN_REPAIR_MOVES: u32 = 8;
/// With more pending moves a task fails unless one of them succeeds. Until then a map that fails in a move fails no task.
const MAX_PENDING_MOVES: u32 = 4096;
/// A false positive collides with one key of a broom filter, and with a few keys of a cascade.
const MAX_CHANGES_PER_REPAIR: u32 = 64;

/// See [`Adapt::run`].
pub(super) fn run<F: Adapt, M: ReverseMap>(
    access: &mut impl Access<F>,
    task: Task,
    map: &mut M,
) -> Asked<ChangeStats, M> {
    let is_repair = matches!(task, Task::Repair(_));
    let mut stats = ChangeStats::default();
    let mut map = Metered { map, reads: 0, writes: 0 };
    if task != Task::Move && access.read(F::pending_moves) > MAX_PENDING_MOVES {
        step(access, &mut map, &mut stats)?;
    }
    for _ in 0..MAX_CHANGES_PER_REPAIR {
        let mut made = plan_and_apply(access, task, &mut map, &mut stats);
        if matches!(made, Err(AdaptError::Change(ChangeError::Full { .. }))) && task != Task::Move {
            // Steps make room: those that are due, and a few for a repair, which would have made some due.
            let few = if is_repair { MIN_REPAIR_MOVES } else { 0 };
            for _ in 0..access.read(F::pending_moves).clamp(few, MAX_MOVES_PER_TASK) {
                step(access, &mut map, &mut stats)?;
            }
            made = plan_and_apply(access, task, &mut map, &mut stats);
        }
        let made = made?;
        stats.changed |= made;
        if !made || !is_repair {
            break;
        }
    }
    // A task that changes nothing makes no moves.
    if stats.changed || task == Task::Move {
        make_due_steps(access, &mut map, &mut stats);
    }
    // A step may have moved the very key that was repaired, or one that it meets, to the next hash function.
    if is_repair && stats.moved > 0 {
        for _ in 0..MAX_CHANGES_PER_REPAIR {
            let Ok(true) = plan_and_apply(access, task, &mut map, &mut stats) else { break };
        }
    }
    Ok(ChangeStats { reads: map.reads, writes: map.writes, ..stats })
}

/// Plans a task and makes the change; false if nothing is to be done.
fn plan_and_apply<F: Adapt, M: ReverseMap>(
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
pub(super) fn remove<F: Remove, M: ReverseMap>(
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
fn make_due_steps<F: Adapt, M: ReverseMap>(access: &mut impl Access<F>, map: &mut M, stats: &mut ChangeStats) {
    for _ in 0..access.read(F::pending_moves).min(MAX_MOVES_PER_TASK) {
        if step(access, map, stats).is_err() {
            break;
        }
    }
}

/// One step that is due.
fn step<F: Adapt, M: ReverseMap>(access: &mut impl Access<F>, map: &mut M, stats: &mut ChangeStats) -> Asked<(), M> {
    stats.moved += u32::from(plan_and_apply(access, Task::Move, map, stats)?);
    Ok(())
}
