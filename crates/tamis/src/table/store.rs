//! a bucket's number -> its entries: where a table keeps them, in memory or wherever reading is slow.

use std::borrow::Cow;
use std::io;

use crate::debug::brief_debug;

/// What a bucket holds: a place for each of its slots, the empty ones too.
pub type Bucket<'a, K, V> = Cow<'a, [Option<(K, V)>]>;

/// Where a table keeps its entries. Implement it for storage that is slow to read: a get reads one bucket.
///
/// Slots of all buckets are empty at first. Only the table writes them.
///
/// ```
/// use std::{cell::Cell, io, rc::Rc};
/// use tamis::table::{Bucket, Memory, Store, TableBuilder};
///
/// /// Counts reads.
/// #[derive(Default)]
/// struct Counted(Memory<String, u64>, Rc<Cell<u64>>);
///
/// impl Store<String, u64> for Counted {
///     fn fresh(&self, buckets: u64, slots: usize) -> io::Result<Counted> {
///         Ok(Counted(self.0.fresh(buckets, slots)?, self.1.clone()))
///     }
///     fn read(&self, bucket: u64) -> io::Result<Bucket<'_, String, u64>> {
///         self.1.set(self.1.get() + 1);
///         self.0.read(bucket)
///     }
///     fn write(&mut self, bucket: u64, slot: usize, entry: Option<(String, u64)>) -> io::Result<()> {
///         self.0.write(bucket, slot, entry)
///     }
/// }
///
/// let reads = Rc::new(Cell::new(0));
/// let mut ages = TableBuilder::with_capacity(100).build_in(&Counted(Memory::default(), reads.clone()))?;
/// ages.insert("ann".into(), 30)?;
/// reads.set(0);
/// assert_eq!((ages.get("ann")?, ages.get("bob")?), (Some(30), None));
/// assert_eq!(reads.get(), 2);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Store<K: Clone, V: Clone>: Sized {
    /// Makes an empty store of so many buckets with so many slots each. A table that grows moves to it, and this one is dropped.
    ///
    /// # Errors
    ///
    /// An error of the storage; the table stays as it is.
    fn fresh(&self, buckets: u64, slots: usize) -> io::Result<Self>;

    /// Reads the slots of a bucket.
    ///
    /// # Errors
    ///
    /// An error of the storage, which the operation on the table returns.
    fn read(&self, bucket: u64) -> io::Result<Bucket<'_, K, V>>;

    /// Replaces what a slot holds.
    ///
    /// # Errors
    ///
    /// An error of the storage. The slot must then hold what it held before.
    fn write(&mut self, bucket: u64, slot: usize, entry: Option<(K, V)>) -> io::Result<()>;
}

/// Buckets in memory.
pub struct Memory<K, V> {
    slots: usize,
    entries: Vec<Option<(K, V)>>,
}

brief_debug!(Memory<K, V>, it => slots: it.entries.len());

impl<K, V> Default for Memory<K, V> {
    /// A store without buckets, for [`Store::fresh`].
    fn default() -> Memory<K, V> {
        Memory { slots: 0, entries: vec![] }
    }
}

impl<K: Clone, V: Clone> Store<K, V> for Memory<K, V> {
    fn fresh(&self, buckets: u64, slots: usize) -> io::Result<Memory<K, V>> {
        let len = usize::try_from(buckets).ok().and_then(|buckets| buckets.checked_mul(slots));
        let len = len.ok_or(io::ErrorKind::OutOfMemory)?;
        let mut entries = vec![];
        entries.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        entries.resize_with(len, || None);
        Ok(Memory { slots, entries })
    }

    #[inline]
    fn read(&self, bucket: u64) -> io::Result<Bucket<'_, K, V>> {
        let start = (bucket as usize).saturating_mul(self.slots);
        let slots = self.entries.get(start..start.saturating_add(self.slots));
        slots.map(Cow::Borrowed).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn write(&mut self, bucket: u64, slot: usize, entry: Option<(K, V)>) -> io::Result<()> {
        let at = (bucket as usize).saturating_mul(self.slots).saturating_add(slot);
        let old = self.entries.get_mut(at).filter(|_| slot < self.slots);
        *old.ok_or(io::ErrorKind::InvalidInput)? = entry;
        Ok(())
    }
}
