//! keys, one at a time -> a cuckoo filter that takes them in and gives them back, and its snapshot as a file.
//!
//! A filter that finds no place for a key says so and is what it was before: no other key is pushed out for it.

use bytes::Bytes;

use super::builder::{DynamicBuilder, Empty, Options};
use super::core::{Core, SALT, of_layer};
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::hash::attempts::random_number;
use crate::hash::{Key, KeyType};
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Entry, cuckoo};

/// A cuckoo filter: keys can be added and removed.
///
/// Without a secret the table has a random number, and other bytes in each filter with the same keys: if the places of keys were
/// known in advance, nine keys could be chosen that fill it. The number is in the snapshot. If others choose keys and can read the
/// snapshot too, give the filter a keyed hash: see [`Hasher::random_secret`](crate::Hasher::random_secret). The bytes then follow from the secret and from what was done.
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
pub struct Cuckoo(Core<Owned<cuckoo::Cuckoo>>);

brief_debug!(Cuckoo, it => keys: it.len(), capacity: it.capacity(), bytes: it.0.table.payload.len(), hasher: it.0.hasher);

of_layer!(Cuckoo);

impl Cuckoo {
    /// Starts a filter for `capacity` keys.
    pub fn with_capacity(capacity: u64) -> DynamicBuilder<Cuckoo> {
        DynamicBuilder::new(capacity)
    }

    /// Adds a key. The same key can be added up to eight times, and removed as often.
    ///
    /// A table without a place for the key is [`ChangeError::Full`], and nothing is changed. Up to its capacity a filter takes distinct
    /// keys, but for one filter in a hundred thousand; and beyond it a few percent more, at a higher rate.
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

    /// Removes one copy of a key; false if the filter does not have it.
    ///
    /// Remove only what was added: a stranger that the filter takes for a key would remove that key.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let digest = self.0.digest(key)?;
        Ok(self.0.table.remove(digest))
    }

    /// How many keys it was made for.
    pub fn capacity(&self) -> u64 {
        self.0.table.geometry.capacity
    }

    /// Takes up a snapshot, or any filter file of one shard that is a single cuckoo filter. The payload is checked.
    pub fn restore(bytes: impl Into<Bytes>) -> Result<Cuckoo, FormatError> {
        let find = |leaf: &_| cuckoo::Cuckoo::of(leaf)?.parts().first().map(Owned::from);
        match Core::read(bytes.into(), "cuckoo filter", 1, find)? {
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
        let Options { capacity, fpr, hasher, other_form } = *options;
        let geometry = cuckoo::Cuckoo::empty(capacity, fpr, other_form, SALT, number)?;
        Ok(Cuckoo(Core { hasher, key_type, table: Owned::zeros(geometry)? }))
    }
}

#[cfg(test)]
mod tests;
