//! a capacity and a few options -> an empty table, or that of a store that is filled.

use std::marker::PhantomData;

use super::predictor::{Predictor, Trained};
use super::shape::{Layout, MAX_SLOTS, Shape};
use super::stats::Counters;
use super::store::{Memory, Store};
use super::{Error, Table};
use crate::dynamic::othello::forest::Stream;
use crate::error::BuildError;
use crate::filter::options::{check_capacity, check_foreign, set};
use crate::hash::{Hasher, Key};

/// Builder of a [`Table`].
///
/// ```
/// use tamis::table::{Predictor, TableBuilder};
/// let mut table = TableBuilder::with_capacity(1000).slots(1).predictor(Predictor::Exact).build::<u64, String>()?;
/// table.insert(7, "seven".into())?;
/// assert_eq!(table.get(&7)?, Some("seven".to_string()));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `build`"]
pub struct TableBuilder {
    capacity: u64,
    slots: usize,
    hasher: Hasher,
    predictor: Predictor,
    grows: bool,
}

impl TableBuilder {
    /// Starts a table for so many keys. With more keys it grows.
    pub fn with_capacity(capacity: u64) -> TableBuilder {
        TableBuilder { capacity, slots: 4, hasher: Hasher::seeded(0), predictor: Predictor::Auto, grows: true }
    }

    set! {
        /// Sets the slots of a bucket, 1 to 64. The default is 4. Keys may fill 92 % of four slots or more, 45 % of one.
        slots(slots: usize) => slots = slots;

        /// Sets the hash: a seed, a secret, or [`Hasher::foreign`] for keys of type [`Digest`](crate::Digest). The default is
        /// `Hasher::seeded(0)`. If others choose keys, they can find two with the same digest, unless the hash has a secret: the second one is then an
        /// error.
        hasher(hasher: Hasher) => hasher = hasher;

        /// Sets how the table knows which bucket to read. The default is [`Predictor::Auto`].
        predictor(predictor: Predictor) => predictor = predictor;

        /// Makes a table that does not grow: an insertion into a full one is an error.
        fixed() => grows = false;
    }

    /// Makes the empty table in memory.
    ///
    /// # Errors
    ///
    /// As [`build_in`](Self::build_in).
    pub fn build<K: Key + Eq + Clone, V: Clone>(self) -> Result<Table<K, V>, Error> {
        self.build_in(&Memory::default())
    }

    /// Makes the empty table in a fresh store like this one.
    ///
    /// # Errors
    ///
    /// [`BuildError::Range`] if the capacity is above 2^32 or the slots are not 1 to 64, [`BuildError::NoEffect`] if the hash is foreign and keys are
    /// no digests, [`Error::Io`] if the store fails.
    pub fn build_in<K: Key + Eq + Clone, V: Clone, S: Store<K, V>>(self, store: &S) -> Result<Table<K, V, S>, Error> {
        let TableBuilder { capacity, slots, .. } = self;
        check_capacity(capacity, 0)?;
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(
                BuildError::Range { option: "slots", given: slots as f64, least: 1.0, most: MAX_SLOTS as f64 }.into()
            );
        }
        let shape = Shape::new(Shape::half_for(capacity, slots), slots, &mut Stream::random());
        self.table(shape, || Ok(store.fresh(shape.buckets(), slots)?))
    }

    /// Opens a store that a table of this [`layout`](Table::layout) and hash has filled: all buckets are read, and the predictor is built from them.
    /// Capacity and slots of the builder do not matter.
    ///
    /// A table that was dropped in the middle of an insertion may have left an entry twice. One of the two is then removed.
    ///
    /// ```
    /// use tamis::table::{Layout, Memory, TableBuilder};
    /// let mut ages = TableBuilder::with_capacity(100).build_in(&Memory::default())?;
    /// ages.insert("ann", 30)?;
    /// let layout = ages.layout().to_bytes(); // to be written down next to the store
    ///
    /// let store = ages.into_store();
    /// let ages = TableBuilder::with_capacity(0).open_in(store, Layout::from_bytes(layout)?)?;
    /// assert_eq!((ages.get("ann")?, ages.len()), (Some(30), 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FormatError`](crate::FormatError) if a key is in a bucket that is not its own, because layout or hash are another table's; [`BuildError::NoEffect`]
    /// as [`build_in`](Self::build_in); [`Error::Io`] if the store fails.
    pub fn open_in<K: Key + Eq + Clone, V: Clone, S: Store<K, V>>(
        self,
        store: S,
        layout: Layout,
    ) -> Result<Table<K, V, S>, Error> {
        let mut table = self.table(Shape::of(layout), || Ok(store))?;
        table.recover()?;
        Ok(table)
    }

    /// A table without keys.
    fn table<K: Key + Eq + Clone, V: Clone, S: Store<K, V>>(
        self,
        shape: Shape,
        store: impl FnOnce() -> Result<S, Error>,
    ) -> Result<Table<K, V, S>, Error> {
        let TableBuilder { hasher, predictor, grows, .. } = self;
        check_foreign(&hasher, K::KEY_TYPE)?;
        Ok(Table {
            hasher,
            store: store()?,
            shape,
            choice: predictor,
            trained: Some(Trained::build(&[], predictor == Predictor::Cascade)?),
            grows,
            keys: [0; 2],
            holes: vec![],
            random: Stream::random(),
            counters: Counters::default(),
            entries: PhantomData,
        })
    }
}
