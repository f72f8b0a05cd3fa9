//! keys with a bit each -> two cells each, whose xor is the bit: an exact bit that changes (Othello hashing).
//!
//! A key has a cell on either side of a table, and its bit is the xor of the two. So keys are the edges of a graph whose nodes are cells:
//!
//! ```text
//!   cells     a0  a1  a2  a3         while the graph is a forest, the bits can be anything:
//!              | \ |   |               a new edge joins two trees; the smaller one is flipped if its bit is wrong
//!   keys       |  \|   |               a bit changes: one side of its tree, without the edge, is flipped
//!              |   \   |               an edge that is removed flips nothing
//!   cells     b0  b1  b2  b3         an edge that closes a cycle needs another salt, and with it a new table
//! ```
//!
//! The graph stands next to the cells, 25 bytes for each key, and no query reads it ([`change`]).
//!
//! * *Shards.* A graph of any size has a cycle with the same probability, sqrt(1 - c^2) for c edges per two cells, so what matters is
//!   how much must be built again. It is a shard of at most 4,096 keys, found by a directory that doubles: a full shard becomes
//!   two and no other is touched. Its cells per key stay between 2.1 and 2.4. A rebuild takes twelve salts at most before it takes
//!   more cells, a fraction of a millisecond each time. Shards are placed by a salt that cannot be foreseen. Keys that were
//!   chosen for a salt that was read in a file can fill one shard: all keys are then placed by another salt.
//! * *Readers* see cells alone, and never the middle of a change. A tree is flipped, or finished shards are exchanged, while they are
//!   kept out, for a microsecond; everything else happens before, next to them ([`Access`](super::access::Access)).
//! * *Roots are random.* Otherwise the cells without keys would be zeros, and unlisted keys would find a 0 more often than a 1.
//!
//! Why not three cells per key: they take 1.96 to 2.15 bits per key instead of 2.24 to 2.46, and hardly ever need another salt. But a
//! change of a bit then searches for cells that may be flipped, where a forest has one smaller tree: it takes 2.5 to 3.8 times as
//! long, and may fail. Here bits change more often than shards are rebuilt.
//!
//! Paper: Yu, Belazzougui, Qian, Zhang, "Memory-efficient and Ultra-fast Network Lookup and Forwarding using Othello Hashing" (2018);
//! [Chained] section 4.3.1 names it as the second stage that changes.

use self::cells::Cells;
use self::change::Graphs;
use self::forest::Stream;
use self::graph::Item;
use super::access::Alone;
use super::core::Core;
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, Error, QueryError};
use crate::filter::options::check_foreign;
use crate::hash::{Digest, Hasher, Key, Salt};

pub(crate) mod cells;
pub(crate) mod change;
pub(crate) mod forest;
mod graph;

/// An exact bit for each of a set of digests: the cells and their graph.
#[derive(Clone)]
pub(crate) struct Bits {
    pub(crate) cells: Cells,
    pub(crate) graphs: Graphs,
}

impl Bits {
    /// Distinct digests with their bits. The salts come from `random`.
    pub(crate) fn build(items: impl IntoIterator<Item = (Digest, bool)>, random: Stream) -> Result<Bits, BuildError> {
        let items = items.into_iter().map(|(key, bit)| Item { key, bit }).collect();
        let (graphs, cells) = Graphs::build(items, random)?;
        Ok(Bits { cells, graphs })
    }

    /// The bit of a listed digest; either bit for another.
    #[inline(always)]
    pub(crate) fn get(&self, key: Digest) -> bool {
        self.cells.get(key)
    }

    /// The bit of a digest, if it is listed.
    pub(crate) fn listed(&self, key: Digest) -> Option<bool> {
        self.graphs.listed(&self.cells, key)
    }

    /// Lists a digest with this bit, or changes its bit; true if it was not listed. After an error nothing has changed.
    pub(crate) fn set(&mut self, key: Digest, bit: bool) -> Result<bool, BuildError> {
        self.graphs.set(&mut Alone(&mut self.cells), key, bit)
    }

    /// The same for many, of equal ones the last. After an error some are done.
    pub(crate) fn set_many(&mut self, items: impl IntoIterator<Item = (Digest, bool)>) -> Result<(), BuildError> {
        self.graphs.set_many(&mut Alone(&mut self.cells), items)
    }

    /// Takes a digest out; false if it is not listed.
    pub(crate) fn remove(&mut self, key: Digest) -> bool {
        self.graphs.remove(&mut Alone(&mut self.cells), key)
    }

    /// How many digests are listed.
    pub(crate) fn len(&self) -> usize {
        self.graphs.len()
    }
}

/// Salts for tables with this hash: with a secret they follow from it, without one they are random.
///
/// If salts could be foreseen, keys could be chosen that close a cycle each.
pub(crate) fn salts(hasher: &Hasher) -> Stream {
    match hasher.is_secret() {
        true => Stream::new(Salt::secret(hasher, 0x6f74_6865_6c6c_6f00).words()),
        false => Stream::random(),
    }
}

/// Exact bit for each of a set of keys: bits change, and keys come and go. It takes 2.24 to 2.46 bits per key.
///
/// An unlisted key has a random bit: use it where only listed keys are queried, such as the second stage of a filter, or to choose one of
/// two servers. The digests of all keys are kept next to the table, 25 bytes for each key; queries do not read them.
///
/// ```
/// use tamis::Othello;
/// let mut servers = Othello::new::<str>()?;
/// servers.set("ann", true)?;
/// servers.set("bob", false)?;
/// servers.set("ann", false)?;
/// assert!(!servers.get("ann")? && !servers.get("bob")?);
/// assert!(servers.remove("ann")? && !servers.remove("ann")?);
/// assert_eq!(servers.len(), 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Othello(pub(super) Core<Bits>);

brief_debug!(Othello, it => keys: it.len(), table_bits: it.table_bits(), hasher: it.0.hasher);

impl Othello {
    /// Makes an empty table for keys of type `K`: `u64`, `str`, `[u8]`, ..
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is no memory.
    pub fn new<K: Key + ?Sized>() -> Result<Othello, BuildError> {
        Othello::with_hasher::<K>(Hasher::seeded(0))
    }

    /// Makes an empty table with this hash. With a secret the table follows from the secret and from what was done; without one it is
    /// different each time.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoEffect`] if the hash is foreign and keys are no digests, another [`BuildError`] if there is no memory.
    pub fn with_hasher<K: Key + ?Sized>(hasher: Hasher) -> Result<Othello, BuildError> {
        check_foreign(&hasher, K::KEY_TYPE)?;
        let table = Bits::build([], salts(&hasher))?;
        Ok(Othello(Core { hasher, key_type: K::KEY_TYPE, salts: 0, table }))
    }

    /// Returns the bit of a key that was set; of another key, either bit.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the table's.
    #[inline]
    pub fn get<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        Ok(self.0.table.get(self.0.digest(key)?))
    }

    /// Returns the bit of a key, or `None` if it was not set. Slower than [`get`](Self::get): it reads the digests.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the table's.
    pub fn listed<K: Key>(&self, key: K) -> Result<Option<bool>, QueryError> {
        Ok(self.0.table.listed(self.0.digest(key)?))
    }

    /// Sets the bit of a key. Returns `true` if the key was not there before.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the table's, [`BuildError::Unsolvable`] if a hundred salts failed, which is not to be
    /// expected of any keys. Nothing changes.
    pub fn set<K: Key>(&mut self, key: K, bit: bool) -> Result<bool, Error> {
        let key = self.0.digest(key).map_err(ChangeError::from)?;
        Ok(self.0.table.set(key, bit)?)
    }

    /// Sets the bits of many keys, of equal keys the last bit: several times as fast as one by one if they are many.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set); some of the keys may be set.
    pub fn set_many<K: Key>(&mut self, items: impl IntoIterator<Item = (K, bool)>) -> Result<(), Error> {
        let digest = |(key, bit)| Ok((self.0.digest(key)?, bit));
        let items = items.into_iter().map(digest).collect::<Result<Vec<_>, _>>().map_err(ChangeError::KeyType)?;
        Ok(self.0.table.set_many(items)?)
    }

    /// Removes a key. Returns `false` if it is not there.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the table's.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let key = self.0.digest(key)?;
        Ok(self.0.table.remove(key))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.0.table.len() as u64
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bits of the table that queries read.
    pub fn table_bits(&self) -> u64 {
        self.0.table.cells.bits()
    }

    /// Returns the bytes of memory next to the table, which only changes read: digests and their graph.
    pub fn side_bytes(&self) -> u64 {
        self.0.table.graphs.bytes()
    }
}

#[cfg(test)]
mod tests;
