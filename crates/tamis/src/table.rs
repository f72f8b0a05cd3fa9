//! keys and their values -> two buckets for each key, of which a get reads one: a cuckoo hash table with a predictor.
//!
//! A cuckoo table puts a key into one of two buckets, and moves others to make a place. A get reads the first and often the second: with buckets of one slot that are
//! 40 % full, 1.31 buckets per get of a key that is there, and two of one that is not. The [`Predictor`] knows the right one in about two bits per
//! key, so a get reads one. That pays where reading is slow: a disk, a network, memory that is not in a cache.
//!
//! ```
//! use tamis::table::Table;
//! let mut ages = Table::new()?;
//! ages.insert("ann", 30)?;
//! ages.insert("bob", 41)?;
//! assert_eq!(ages.insert("ann", 31)?, Some(30));
//! assert_eq!(ages.get("ann")?, Some(31));
//! assert_eq!(ages.remove("bob")?, Some(41));
//! assert_eq!(ages.get("bob")?, None);
//! assert_eq!(ages.stats().reads_per_get(), 1.0);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! * *Which predictor.* An exact bit for every key ([`Othello`](crate::Othello)) is right at once and stays so. The cascade of Bloom filters that [Chained]
//!   section 5.3 describes is smaller where few keys are in their second bucket. But its bits are never taken back, so moved keys fill it.
//!   Without a rule to build it again, a third of its predictions are wrong when all keys have been replaced once.
//! * *Never a wrong answer.* A key that is not in the predicted bucket is looked for in the other one, unless the predictor is exact.
//! * *Nothing is lost.* Chains of kicks are searched before anything is written, and an error of the store leaves every other key where it is found.
//!   A table that grows is copied first and exchanged last.
//!
//! * *A store can be opened again* ([`TableBuilder::open_in`]): the predictor is built from its buckets.
//!
//! Files: `store` (where buckets are), `shape` (which bucket), `kicks` (chains), `recover` (a store that is filled), `predictor` and `cascade`,
//! `stats`, `builder`.
//!
//! [Chained]: https://doi.org/10.48550/arXiv.2308.13649

use std::borrow::Borrow;
use std::marker::PhantomData;

use self::predictor::Trained;
use self::shape::{Place, Shape};
use self::stats::Counters;
use crate::debug::brief_debug;
use crate::dynamic::othello::forest::Stream;
use crate::error::{ChangeError, Error};
use crate::hash::{Digest, Hasher, Key};

mod builder;
pub(crate) mod cascade;
mod kicks;
mod predictor;
mod recover;
mod shape;
mod stats;
mod store;

pub use builder::TableBuilder;
pub use predictor::Predictor;
pub use shape::Layout;
pub use stats::Stats;
pub use store::{Bucket, Memory, Store};

/// Wrong predictions among the last thousand lookups that make a cascade be built again.
const RESET_PER_MILLE: u64 = 10;

/// Sets of buckets that a table tries before an insertion fails; by then it has grown several times.
const MAX_REBUILDS: u32 = 8;

const SAME_DIGEST: &str = "insert: another key of the table has the same digest; expected keys that differ in it: give the table a hasher with a secret";

/// Hash map that reads one bucket per get: see the [module](self).
///
/// Keys and values are cloned when they are moved and when a get returns them: large ones belong into an `Arc`. If others choose keys, give it
/// a secret: see [`TableBuilder::hasher`].
pub struct Table<K, V, S = Memory<K, V>> {
    hasher: Hasher,
    store: S,
    shape: Shape,
    choice: Predictor,
    /// None after an error of the predictor, and while a table is filled.
    trained: Option<Trained>,
    grows: bool,
    /// Keys in first buckets, and in second ones.
    keys: [u64; 2],
    /// Slots whose entry was copied elsewhere, and that were not overwritten because of an error.
    holes: Vec<Place>,
    random: Stream,
    counters: Counters,
    entries: PhantomData<fn() -> (K, V)>,
}

brief_debug!(Table<K, V, S>, it => keys: it.len(), buckets: it.shape.buckets(), slots: it.shape.slots, hasher: it.hasher);

impl<K, V, S> Table<K, V, S> {
    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.keys.iter().sum()
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many keys fit before the table grows, or is full.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> u64 {
        self.shape.buckets()
    }

    /// Returns what is needed to [open](TableBuilder::open_in) the store again. It changes when the table grows.
    pub fn layout(&self) -> Layout {
        self.shape.layout()
    }

    /// Returns the store, with all entries.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Returns what the table has done, and what its predictor takes.
    pub fn stats(&self) -> Stats {
        let (predictor_bits, side_bytes) = self.trained.as_ref().map_or((0, 0), Trained::size);
        let is_cascade = self.trained.as_ref().is_some_and(|trained| !trained.is_exact());
        let [first, second] = self.keys;
        Stats { first, second, is_cascade, predictor_bits, side_bytes, ..self.counters.stats() }
    }

    /// Lookups that the share of wrong predictions is of: one in a hundred keys.
    fn window(&self) -> u64 {
        (self.len() / 100).max(100)
    }
}

impl<K: Key + Eq + Clone, V: Clone> Table<K, V> {
    /// Makes an empty table in memory, which grows: see [`TableBuilder`].
    ///
    /// # Errors
    ///
    /// [`BuildError`](crate::BuildError) if there is no memory.
    pub fn new() -> Result<Table<K, V>, Error> {
        TableBuilder::with_capacity(0).build()
    }
}

impl<K: Key + Eq + Clone, V: Clone, S: Store<K, V>> Table<K, V, S> {
    /// The entries of a bucket that was read, with their slots.
    fn entries<'a>(
        &'a self,
        bucket: u64,
        slots: &'a [Option<(K, V)>],
    ) -> impl Iterator<Item = (usize, &'a (K, V))> + 'a {
        let there = move |slot: &usize| self.holes.is_empty() || !self.holes.contains(&Place { bucket, slot: *slot });
        let entry = move |slot: usize| slots.get(slot)?.as_ref().map(|entry| (slot, entry));
        (0..self.shape.slots).filter(there).filter_map(entry)
    }

    /// Looks for the key with this digest that `is` accepts. Returns what `with` makes of it, and how many buckets were read.
    fn look<R>(
        &self,
        digest: Digest,
        is: impl Fn(&K) -> bool,
        with: impl FnOnce(Place, &(K, V)) -> R,
    ) -> Result<(Option<R>, u64), Error> {
        let guess = self.trained.as_ref().is_some_and(|trained| trained.second(digest));
        let exact = self.trained.as_ref().is_some_and(Trained::is_exact);
        let mut reads = 0;
        for second in [guess, !guess] {
            let bucket = self.shape.bucket(digest, second);
            let slots = self.store.read(bucket)?;
            reads += 1;
            let found = self.entries(bucket, &slots).find(|(_, (key, _))| is(key));
            if let Some((slot, entry)) = found {
                self.counters.look(reads > 1, self.window());
                return Ok((Some(with(Place { bucket, slot }, entry)), reads));
            }
            if exact {
                break;
            }
        }
        Ok((None, reads))
    }

    /// Returns the value of a key. `Q` is what `K` lends: `str` for `String`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the store cannot be read.
    pub fn get<Q>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let digest = key.digest(&self.hasher);
        let (found, reads) = self.look(digest, |known| known.borrow() == key, |_, (_, value)| value.clone())?;
        self.counters.get(reads, found.is_some() && reads > 1);
        Ok(found)
    }

    /// Returns the value of a key, as [`get`](Self::get) does, and lets a cascade learn from a wrong prediction.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_and_learn<Q>(&mut self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let digest = key.digest(&self.hasher);
        let with = |place, (_, value): &(K, V)| (place, value.clone());
        let (found, reads) = self.look(digest, |known| known.borrow() == key, with)?;
        self.counters.get(reads, found.is_some() && reads > 1);
        let Some((place, value)) = found else { return Ok(None) };
        // What is predicted rightly is trained too: a key that reaches the exact bit by luck is listed there.
        if self.trained.as_ref().is_some_and(|trained| !trained.is_exact()) {
            let second = self.shape.is_second(place.bucket);
            let learnt = self.trained.as_mut().is_none_or(|trained| trained.put(digest, second).is_ok());
            if !learnt {
                self.trained = None;
            }
            self.renew();
        }
        Ok(Some(value))
    }

    /// Inserts a key with its value, or changes the value of a key. Returns the value that it had.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Full`] if the table does not grow and the key has no place, [`ChangeError::Unsupported`] if another key has the same
    /// digest, [`Error::Io`] if the store fails, [`Error::Build`] if there is no memory. The key and its value are then as before, and so are all others.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, Error> {
        let digest = key.digest(&self.hasher);
        let is = |known: &K| known.digest(&self.hasher) == digest;
        let (found, _) = self.look(digest, is, |place, (known, old)| (place, *known == key, old.clone()))?;
        match found {
            Some((_, false, _)) => return Err(ChangeError::Unsupported { what: SAME_DIGEST }.into()),
            Some((place, true, old)) => {
                self.fill_holes()?;
                self.store.write(place.bucket, place.slot, Some((key, value)))?;
                return Ok(Some(old));
            }
            None => {}
        }
        let is_full = self.len() >= self.capacity();
        if is_full && !self.grows {
            return Err(self.full());
        }
        let chain = if is_full { None } else { self.chain(digest)? };
        match chain {
            Some(chain) => self.follow(&chain, digest, (key, value))?,
            None => self.rebuild(is_full, (key, value))?,
        }
        self.renew();
        Ok(None)
    }

    /// Removes a key. Returns its value, or `None` if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the store fails; the key stays.
    pub fn remove<Q>(&mut self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let digest = key.digest(&self.hasher);
        let with = |place, (_, value): &(K, V)| (place, value.clone());
        let (Some((place, value)), _) = self.look(digest, |known| known.borrow() == key, with)? else {
            return Ok(None);
        };
        self.fill_holes()?;
        self.store.write(place.bucket, place.slot, None)?;
        self.keys[usize::from(self.shape.is_second(place.bucket))] -= 1;
        if let Some(trained) = &mut self.trained {
            trained.remove(digest);
        }
        self.renew();
        Ok(Some(value))
    }

    /// Returns all keys with their values, bucket by bucket.
    ///
    /// An item is an error where a bucket cannot be read; the next item is of the next bucket.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K, V), Error>> + '_ {
        (0..self.shape.buckets()).flat_map(move |bucket| match self.store.read(bucket) {
            Ok(slots) => self.entries(bucket, &slots).map(|(_, entry)| Ok(entry.clone())).collect::<Vec<_>>(),
            Err(error) => vec![Err(error.into())],
        })
    }

    /// Builds the predictor from the whole table: call it when the keys are complete. With [`Predictor::Auto`] it takes the smaller
    /// predictor. A cascade is then right for every key.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the store cannot be read, [`Error::Build`] if there is no memory. The predictor stays as it was.
    pub fn settle(&mut self) -> Result<(), Error> {
        let [first, second] = self.keys;
        self.train(self.choice.takes_cascade(first, second, true))
    }

    /// Builds the predictor from all buckets.
    fn train(&mut self, cascade: bool) -> Result<(), Error> {
        let mut items = Vec::with_capacity(self.len() as usize);
        for bucket in 0..self.shape.buckets() {
            let (slots, second) = (self.store.read(bucket)?, self.shape.is_second(bucket));
            items.extend(self.entries(bucket, &slots).map(|(_, (key, _))| (key.digest(&self.hasher), second)));
        }
        self.trained = Some(Trained::build(&items, cascade)?);
        self.counters.begin();
        Ok(())
    }

    /// Builds a predictor again that is wrong too often, too small or missing.
    ///
    /// If it fails, gets read a bucket more, and the next change tries again: what called it has succeeded.
    fn renew(&mut self) {
        let due = match &self.trained {
            None => true,
            Some(Trained::Exact(_)) => false,
            Some(Trained::Cascade(cascade)) => {
                self.len() > 2 * cascade.keys().max(64) || self.counters.recent_per_mille() >= RESET_PER_MILLE
            }
        };
        let [first, second] = self.keys;
        if due && self.train(self.choice.takes_cascade(first, second, false)).is_ok() {
            self.counters.resets += 1;
        }
    }

    /// Moves everything to other buckets, with one entry more: to twice as many if the table is full, to as many with other salts if not.
    fn rebuild(&mut self, is_full: bool, more: (K, V)) -> Result<(), Error> {
        let mut half = self.shape.half;
        for attempt in 0..MAX_REBUILDS {
            // Two failures at one size are bad luck in a small table, and mean that a large one is too full.
            if self.grows && (attempt > 1 || (attempt == 0 && is_full)) {
                half *= 2;
            }
            let shape = Shape::new(half, self.shape.slots, &mut self.random);
            let store = self.store.fresh(shape.buckets(), shape.slots)?;
            let mut next = self.with_store(shape, store);
            if self.copy_to(&mut next, &more)? {
                next.train(self.choice == Predictor::Cascade)?;
                (self.shape, self.store, self.trained) = (next.shape, next.store, next.trained);
                (self.keys, self.holes) = (next.keys, next.holes);
                self.counters.begin();
                self.counters.rebuilds += 1;
                return Ok(());
            }
        }
        Err(self.full())
    }

    /// A table like this one, without keys and predictor.
    fn with_store(&self, shape: Shape, store: S) -> Table<K, V, S> {
        Table {
            hasher: self.hasher.clone(),
            store,
            shape,
            choice: self.choice,
            trained: None,
            grows: false,
            keys: [0; 2],
            holes: vec![],
            random: Stream::random(),
            counters: Counters::default(),
            entries: PhantomData,
        }
    }

    /// Copies all entries and one more; false if one of them has no place.
    fn copy_to(&self, next: &mut Table<K, V, S>, more: &(K, V)) -> Result<bool, Error> {
        for entry in self.iter().chain([Ok(more.clone())]) {
            let entry = entry?;
            let digest = entry.0.digest(&self.hasher);
            match next.chain(digest)? {
                Some(chain) => next.follow(&chain, digest, entry)?,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn full(&self) -> Error {
        ChangeError::Full { keys: self.len(), capacity: self.capacity() }.into()
    }
}

#[cfg(test)]
mod tests;
