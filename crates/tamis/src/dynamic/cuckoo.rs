//! keys, one at a time -> a cuckoo filter that takes them in and gives them back, and its snapshot as a file.
//!
//! A filter that finds no place for a key says so and is what it was before: no other key is pushed out for it.

use bytes::Bytes;

use super::builder::{DynamicBuilder, Empty, Options};
use super::core::{Core, SALT, is_file, of_layer};
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::hash::attempts::random_number;
use crate::hash::{Key, KeyType};
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Entry, cuckoo};

/// Cuckoo filter that keys are inserted into and removed from.
///
/// Without a secret the table has a random number, and equal keys make other bytes each time: if the places of keys were
/// known in advance, nine keys could be chosen that fill it. The number is in the snapshot. If others choose keys and can read the
/// snapshot too, give the filter a secret: see [`Hasher::random_secret`](crate::Hasher::random_secret). The bytes then follow from the secret and from what was done.
/// Under a [`Chained`](crate::Chained) filter the number follows from the first members, if they are inserted at once.
///
/// ```
/// use tamis::{Cuckoo, Filter};
/// let mut online = Cuckoo::with_capacity(1000).fpr(0.001).build::<str>()?;
/// online.insert("ann")?;
/// online.insert("bob")?;
/// assert!(online.remove("ann")?);
/// assert!(online.contains("bob")? && !online.contains("ann")?);
///
/// let filter = Filter::open(online.snapshot()?)?;
/// assert!(filter.contains("bob")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Cuckoo(pub(super) Core<Owned<cuckoo::Cuckoo>>);

brief_debug!(Cuckoo, it => keys: it.len(), capacity: it.capacity(), bytes: it.0.table.payload.len(), hasher: it.0.hasher);

of_layer!(Cuckoo);
is_file!(Cuckoo, 0.hasher: ", or of any filter file of one shard that is a single cuckoo filter.", "[`FormatError`] if the bytes are no such file, or damaged.");

impl Cuckoo {
    /// Starts a filter for `capacity` keys.
    pub fn with_capacity(capacity: u64) -> DynamicBuilder<Cuckoo> {
        DynamicBuilder::new(capacity)
    }

    /// Inserts a key. A key can be inserted up to eight times, and removed as often.
    ///
    /// Up to its capacity a filter takes distinct keys, but for one filter in a hundred thousand; and beyond it a few percent more, at a
    /// higher rate.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Full`] if there is no slot for the key, [`ChangeError::KeyType`] if the key type is not the filter's. Nothing
    /// changes.
    ///
    /// ```
    /// use tamis::{ChangeError, Cuckoo};
    /// let mut small = Cuckoo::with_capacity(100).build::<u64>()?;
    /// let full = (0..1000u64).find_map(|key| small.insert(key).err());
    /// assert_eq!(full, Some(ChangeError::Full { keys: small.len(), capacity: 100 }));
    /// assert!((0..small.len()).all(|key| small.contains(key) == Ok(true)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let digest = self.0.digest(key)?;
        Ok(self.0.table.insert(digest)?)
    }

    /// Removes one copy of a key. Returns `false` if the filter does not match it.
    ///
    /// Remove only what was inserted: an unlisted key that matches would remove another key.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the filter's.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let digest = self.0.digest(key)?;
        Ok(self.0.table.remove(digest))
    }

    /// Returns the number of keys that it was made for.
    pub fn capacity(&self) -> u64 {
        self.0.table.geometry.capacity
    }

    fn restored(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Cuckoo, FormatError> {
        let find = |leaf: &_| cuckoo::Cuckoo::of(leaf)?.parts().first().map(Owned::from);
        match Core::read(bytes, secret, "cuckoo filter", 1, find)? {
            Some((core, _)) => Ok(Cuckoo(core)),
            None => Err(FormatError::invalid("not a cuckoo filter")),
        }
    }
}

impl Empty for Cuckoo {
    fn empty(options: &Options, key_type: KeyType) -> Result<Cuckoo, BuildError> {
        // With a secret the places of keys are unknown, whatever the number.
        let number = if options.hasher.is_secret() { 0 } else { random_number() };
        Cuckoo::numbered(options, key_type, number)
    }
}

impl Cuckoo {
    fn numbered(options: &Options, key_type: KeyType, number: u32) -> Result<Cuckoo, BuildError> {
        let Options { capacity, fpr, hasher, other_form, .. } = options.clone();
        let geometry = cuckoo::Cuckoo::empty(capacity, fpr, other_form, SALT, number)?;
        Ok(Cuckoo(Core { hasher, key_type, salts: 0, table: Owned::zeros(geometry)? }))
    }
}

#[cfg(test)]
mod tests;
