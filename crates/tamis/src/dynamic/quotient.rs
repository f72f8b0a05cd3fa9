//! keys, one at a time, in and out -> a quotient filter, and its snapshot as a file.
//!
//! [`Quotient`] is the filter to take where keys come and go: it inserts, deletes, counts, merges and grows. It keeps a short
//! fingerprint of every key, exactly; so two keys with the same fingerprint count as two copies of one, and deleting a key that
//! was never inserted may delete another: delete only what is in.
//!
//! **Growing** doubles the slots and takes one bit from every remainder. Fingerprints stay what they are, hence the keys are not
//! needed again; the rate for a given number of keys stays too, and with twice the keys it is twice as high. A filter that
//! grows k times and needs a rate at the end is made for a rate 2^k times lower.
//!
//! **Chosen keys** that crowd in a table without a secret are spread by a random number, which the file then has. Ordinary keys never
//! need it, and give the same bytes each time.

use bytes::Bytes;

use super::builder::{DynamicBuilder, Empty, Options};
use super::core::{Core, SALT, is_file};
use crate::arch::QueryFn;
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, Error, FormatError, QueryError};
use crate::hash::{Key, KeyType};
use crate::leaves::change::{Layer, Owned};
use crate::leaves::quotient::{Changing, OwnedQuotient};
use crate::leaves::{Entry, Geometry, quotient};
use crate::math::quotient::size;

/// Quotient filter that keys are inserted into and removed from. It counts copies, merges and grows.
///
/// If others choose keys and can read the snapshot too, give the filter a secret: see [`Hasher::random_secret`](crate::Hasher::random_secret). Without one they can
/// compute which keys share a fingerprint, and keys that crowd in the table.
///
/// ```
/// use tamis::{Filter, Quotient};
/// let mut seen = Quotient::with_capacity(1000).build::<str>()?;
/// seen.insert("ann")?;
/// seen.insert("ann")?;
/// seen.insert("bob")?;
/// assert_eq!((seen.count("ann")?, seen.len()), (2, 3));
///
/// assert!(seen.remove("bob")?);
/// assert!(!seen.contains("bob")?);
///
/// let filter = Filter::open(seen.snapshot()?)?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Quotient {
    pub(super) core: Core<Changing>,
    ask: QueryFn<OwnedQuotient>,
}

brief_debug!(Quotient, it => keys: it.len(), capacity: it.capacity(), bytes: it.table().payload.len(), hasher: it.core.hasher);

impl Quotient {
    /// Starts a filter for `capacity` keys or a few more. Full, it [grows](Self::grow) at the caller's call.
    pub fn with_capacity(capacity: u64) -> DynamicBuilder<Quotient> {
        DynamicBuilder::new(capacity)
    }

    fn table(&self) -> &OwnedQuotient {
        &self.core.table.held
    }

    /// Inserts a key, or another copy of it.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Full`] if the filter holds [`capacity`](Self::capacity) keys: see [`grow`](Self::grow).
    /// [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let digest = self.core.digest(key)?;
        Ok(self.core.table.insert(digest)?)
    }

    /// Inserts a key. A full filter grows first.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the filter's, and the errors of [`grow`](Self::grow).
    ///
    /// ```
    /// let mut filter = tamis::Quotient::with_capacity(10).fpr(0.0001).build::<u64>()?;
    /// for key in 0..1000u64 {
    ///     filter.insert_growing(key)?;
    /// }
    /// assert!((0..1000u64).all(|key| filter.contains(key) == Ok(true)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_growing<K: Key>(&mut self, key: K) -> Result<(), Error> {
        let digest = self.core.digest(key).map_err(ChangeError::from)?;
        while self.core.table.insert(digest).is_err() {
            self.grow()?;
        }
        Ok(())
    }

    /// Removes one copy of a key. Returns `false` if the filter does not match it.
    ///
    /// Remove only what was inserted: an unlisted key that matches would remove another key.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the filter's.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let digest = self.core.digest(key)?;
        Ok(self.core.table.remove(digest))
    }

    /// Returns `true` for every member and for a share [`fpr`](Self::fpr) of unlisted keys.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        Ok(self.ask.call(self.table(), self.core.digest(key)?))
    }

    /// Returns how often a key was inserted: never too few, and rarely too many.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    pub fn count<K: Key>(&self, key: K) -> Result<u64, QueryError> {
        Ok(self.core.table.count(self.core.digest(key)?))
    }

    /// Returns the number of keys, copies counted.
    pub fn len(&self) -> u64 {
        self.table().keys()
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that fit: at least what the builder was given, twice that after growing.
    pub fn capacity(&self) -> u64 {
        self.table().geometry.capacity()
    }

    /// Returns the share of unlisted keys that match now, if keys are distinct. With copies it is lower.
    pub fn fpr(&self) -> f64 {
        self.table().geometry.fpr()
    }

    /// Doubles the capacity. Keys and rate stay.
    ///
    /// # Errors
    ///
    /// [`BuildError::CannotGrow`] if remainders have one bit already, [`BuildError::NoMemory`] if there is no memory.
    ///
    /// ```
    /// let mut filter = tamis::Quotient::with_capacity(100).build::<u64>()?;
    /// (0..100u64).try_for_each(|key| filter.insert(key))?;
    /// let (capacity, rate) = (filter.capacity(), filter.fpr());
    /// filter.grow()?;
    /// assert!(filter.capacity() >= 2 * capacity && filter.fpr() == rate);
    /// (100..200u64).try_for_each(|key| filter.insert(key))?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn grow(&mut self) -> Result<(), BuildError> {
        self.core.table = self.core.table.doubled()?.ok_or(BuildError::CannotGrow { keys: self.len() })?;
        Ok(())
    }

    /// Inserts all keys of another filter. Both must have been built with equal key types, hashes, capacities and rates; how often each has
    /// grown does not matter.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unlike`] if they differ, [`ChangeError::Full`] if there is no room, [`BuildError::NoMemory`] if there is no memory.
    /// Nothing changes.
    ///
    /// ```
    /// let empty = tamis::Quotient::with_capacity(100).build::<u64>()?;
    /// let (mut one, mut two) = (empty.clone(), empty);
    /// one.insert(1u64)?;
    /// two.insert(2u64)?;
    /// one.merge(&two)?;
    /// assert!(one.contains(1u64)? && one.contains(2u64)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merge(&mut self, other: &Quotient) -> Result<(), Error> {
        let differ = [
            (self.core.key_type != other.core.key_type, "their key types"),
            (self.core.hasher != other.core.hasher, "their hash"),
            (self.core.salts != other.core.salts, "their salts"),
            (self.table().geometry.range() != other.table().geometry.range(), "the number of their fingerprints"),
        ];
        if let Some((_, what)) = differ.into_iter().find(|(differs, _)| *differs) {
            return Err(ChangeError::Unlike { what }.into());
        }
        self.core.table = self.core.table.merged(&other.core.table)?.map_err(ChangeError::from)?;
        Ok(())
    }

    fn write(&self, out: &mut dyn std::io::Write) -> Result<(), BuildError> {
        let whole = self.core.table.whole()?;
        self.core.write(out, whole.tag(), self.len(), &whole.encoded())
    }

    fn restored(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Quotient, FormatError> {
        let find = |leaf: &_| quotient::Quotient::of(leaf)?.parts().first().map(Owned::from);
        let found = Core::read(bytes, secret, "quotient filter", 1 + OwnedQuotient::CHECK, find)?;
        let Some((Core { hasher, key_type, salts, table }, keys)) = found else {
            return Err(FormatError::invalid("not a quotient filter"));
        };
        let table =
            Changing::checked(table.geometry, &table.payload).map_err(|e| FormatError::invalid(e.to_string()))?;
        match table.filter(|table| table.held.keys() == keys) {
            Some(table) => Ok(Core { hasher, key_type, salts, table }.into()),
            None => Err(FormatError::invalid("the slots of the quotient filter contradict one another")),
        }
    }
}

is_file!(Quotient, core.hasher: ", or of any filter file of one shard that is a single quotient filter.", "[`FormatError`] if the bytes are no such file, or damaged.");

impl Empty for Quotient {
    fn empty(options: &Options, key_type: KeyType) -> Result<Quotient, BuildError> {
        let Options { capacity, fpr, hasher, .. } = options.clone();
        let none = BuildError::NoSize { structure: "quotient filter", keys: capacity, rate: fpr };
        let size = size(capacity.max(1), fpr).ok_or(none)?;
        Ok(Core { hasher, key_type, salts: 0, table: OwnedQuotient::empty(size, SALT)?.into() }.into())
    }
}

impl From<Core<Changing>> for Quotient {
    fn from(core: Core<Changing>) -> Quotient {
        Quotient { ask: core.table.held.ask(), core }
    }
}

#[cfg(test)]
mod tests;
