//! keys, one at a time -> a cuckoo filter that takes them in and gives them back, and its snapshot as a file.
//!
//! Keys can be added and removed at any time. A filter that finds no place for a key says so and is what it was before: no other key
//! is pushed out for it. [`Cuckoo`] owns its table; [`Cuckoo::snapshot`] is an ordinary filter file, and [`Cuckoo::restore`] takes one
//! up again.

use bytes::Bytes;

use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::filter::open::open;
use crate::filter::steps::Step;
use crate::format::{self, Budget, Encoded, Form, Header, Writer};
use crate::hash::attempts::random_number;
use crate::hash::{Digest, Domain, Hasher, Key, Mismatch, Salt};
use crate::leaves::bloom::zeros;
use crate::leaves::change::{Full, Insert, Remove};
use crate::leaves::{Entry, Geometry, Leaf, Query, Role, cuckoo};

/// A cuckoo filter: keys can be added and removed.
///
/// Without a secret the table has a random number, and other bytes in each filter with the same keys: if the places of keys were
/// known in advance, nine keys could be chosen that fill it. The number is in the snapshot. If others choose keys and can read the
/// snapshot too, give the filter a keyed hash: see [`Hasher::secret`]. The bytes then follow from the secret and from what was done.
///
/// ```
/// use tamis::{Cuckoo, Domain, Filter, Hasher};
/// let mut online = Cuckoo::new(Domain::Bytes, Hasher::seeded(0), 1000, 0.001)?;
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
pub struct Cuckoo {
    hasher: Hasher,
    domain: Domain,
    table: cuckoo::Cuckoo,
    payload: Vec<u8>,
}

brief_debug!(Cuckoo, it => keys: it.len(), capacity: it.capacity(), bytes: it.payload.len(), hasher: it.hasher);

/// The only step of a file.
const SALT: Salt = Salt::new(0);

/// The number of a new table. With a secret nobody knows the places of keys, whatever it is.
fn number(hasher: &Hasher) -> u32 {
    if hasher.is_keyed() { 0 } else { random_number() }
}

impl Cuckoo {
    /// An empty filter: `rate` is reached with `capacity` keys.
    pub fn new(domain: Domain, hasher: Hasher, capacity: u64, rate: f64) -> Result<Cuckoo, BuildError> {
        Cuckoo::empty(domain, hasher, cuckoo::Cuckoo::empty(capacity, rate, false, SALT, number(&hasher))?)
    }

    /// An empty filter with semi-sorted buckets: one bit per key smaller, and slower.
    ///
    /// ```
    /// use tamis::{Cuckoo, Domain, Hasher};
    /// let of = |new: fn(_, _, _, _) -> _| new(Domain::U64, Hasher::seeded(0), 10_000, 0.001);
    /// let (plain, small) = (of(Cuckoo::new)?, of(Cuckoo::semi_sorted)?);
    /// assert!(small.snapshot()?.len() + 10_000 / 8 <= plain.snapshot()?.len());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn semi_sorted(domain: Domain, hasher: Hasher, capacity: u64, rate: f64) -> Result<Cuckoo, BuildError> {
        Cuckoo::empty(domain, hasher, cuckoo::Cuckoo::empty(capacity, rate, true, SALT, number(&hasher))?)
    }

    fn empty(domain: Domain, hasher: Hasher, table: cuckoo::Cuckoo) -> Result<Cuckoo, BuildError> {
        let mut payload = vec![];
        zeros(&mut payload, table.payload_len())?;
        Ok(Cuckoo { hasher, domain, table, payload })
    }

    /// Adds a key. The same key can be added up to eight times, and removed as often.
    ///
    /// A table without a place for the key is [`ChangeError::Full`], and nothing is changed. Up to its capacity a filter takes distinct
    /// keys, but for one filter in a hundred thousand; and beyond it a few percent more, at a higher rate.
    ///
    /// ```
    /// use tamis::{Cuckoo, Domain, Hasher, ChangeError};
    /// let mut small = Cuckoo::new(Domain::U64, Hasher::seeded(0), 100, 0.01)?;
    /// let full = (0..1000u64).find_map(|key| small.insert(key).err());
    /// assert_eq!(full, Some(ChangeError::Full { keys: small.len(), capacity: 100 }));
    /// assert!((0..small.len()).all(|key| small.contains(key) == Ok(true)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let digest = self.digest(key)?;
        let full = |Full { keys, capacity }| ChangeError::Full { keys, capacity };
        self.table.insert(&mut self.payload, digest).map_err(full)
    }

    /// Removes one copy of a key; false if the filter does not have it.
    ///
    /// Remove only what was added: a stranger that the filter takes for a key would remove that key.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let digest = self.digest(key)?;
        Ok(self.table.remove(&mut self.payload, digest))
    }

    /// Whether the key may be there.
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        let digest = self.digest(key)?;
        Ok(self.table.contains(&self.payload, digest))
    }

    #[inline]
    fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        self.domain.digest(key, &self.hasher)
    }

    /// How many keys it holds; one that was added twice counts twice.
    pub fn len(&self) -> u64 {
        self.table.keys()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys it was made for.
    pub fn capacity(&self) -> u64 {
        self.table.capacity()
    }

    /// The share of strangers it lets through now.
    pub fn rate(&self) -> f64 {
        self.table.rate()
    }

    /// The filter as a file.
    pub fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        let header = Header {
            hasher: self.hasher,
            domain: self.domain,
            shard_bits: 0,
            form: Form::Filter,
            keys: self.len(),
            negatives: 0,
        };
        let mut geometry = vec![];
        self.table.encode(&mut geometry);
        let mut writer = Writer::new(Vec::new(), &header, vec![[Role::Refuse.encode(), cuckoo::Cuckoo::TAG]])?;
        writer.shard(&[Encoded { geometry, payload: self.payload.clone().into() }])?;
        Ok(writer.finish()?.0)
    }

    /// Takes up a snapshot, or any filter file of one shard that is a single cuckoo filter. The payload is checked.
    pub fn restore(bytes: impl Into<Bytes>) -> Result<Cuckoo, FormatError> {
        let bytes = bytes.into();
        format::verify(&bytes)?;
        let budget = Budget::of(&bytes);
        let contents = open(&bytes, &budget)?;
        budget.draw(bytes.len() as u64)?;
        let Header { hasher, domain, shard_bits, .. } = contents.header;
        let [Step { role: Role::Refuse, leaf: Leaf::Cuckoo(column), .. }] = &contents.steps[..] else {
            return Err(FormatError::invalid("not a cuckoo filter"));
        };
        let Some(part) = column.parts().first().filter(|_| shard_bits == 0) else {
            return Err(FormatError::invalid("a cuckoo filter in several shards cannot be taken up"));
        };
        // Without keys a built filter has no table.
        if part.payload.is_empty() {
            return Err(FormatError::invalid("a cuckoo filter without a table takes no keys"));
        }
        Ok(Cuckoo { hasher, domain, table: part.geometry, payload: part.payload.to_vec() })
    }
}

#[cfg(test)]
mod tests;
