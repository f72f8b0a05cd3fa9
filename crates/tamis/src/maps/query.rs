//! bytes -> Map: open, get, verify.

use bytes::Bytes;

use super::table::Table;
use super::tree::{self, Contents, Function, Tree};
use super::value::Value;
use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::filter::steps::ROUND;
use crate::format::{Budget, Form, Header, Source, equal_by_bytes, from_bytes};
use crate::hash::{Digest, HashKind, Hasher, Key, KeyType, Mismatch};

/// Static map from keys to numbers or bytes, which has no value for most other keys.
///
/// A map is opened from bytes: a vector, a static array or a memory map. Opening decodes the table of values and copies no
/// payload.
///
/// ```
/// let map = tamis::map((0..1000u64).map(|key| (key, key / 100))).finish()?;
/// assert_eq!(map.get_u64(321)?, Some(3));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Map {
    pub(super) bytes: Bytes,
    header: Header,
    tree: Tree,
    table: Table,
    table_len: u64,
    entropy: u64,
    /// The key type of the keys, if the hash has no secret and there are keys.
    plain: Option<KeyType>,
    /// For numbers of one function, which is all there is: the function, and the least number.
    quick: Option<(Function, u64)>,
}

equal_by_bytes!(Map);
brief_debug!(Map, it => keys: it.len(), bytes: it.bytes.len(), hasher: it.header.hasher);

impl Map {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`open`](Self::open), except for a damaged payload.
    ///
    /// ```
    /// let filter = tamis::build(["ann"]).finish()?;
    /// let error = tamis::Map::open(filter.as_bytes().to_vec()).unwrap_err();
    /// assert_eq!(error.to_string(), "the file holds a filter; expected a map");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn open_unverified(bytes: impl Source) -> Result<Map, FormatError> {
        Map::opened(bytes.into_bytes(), None)
    }

    /// The same for a caller who knows this secret.
    pub(crate) fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Map, FormatError> {
        let budget = Budget::of(&bytes);
        Map::within(bytes, Form::Map, secret, &budget)
    }

    /// A file of this form, on a budget.
    pub(crate) fn within(
        bytes: Bytes,
        form: Form,
        secret: Option<[u64; 2]>,
        budget: &Budget,
    ) -> Result<Map, FormatError> {
        let Contents { header, tree, table, table_len, entropy } = tree::open(&bytes, form, secret, budget)?;
        let plain = (header.hasher.kind() == HashKind::Seeded && header.keys > 0).then_some(header.key_type);
        let quick = match table {
            Table::Offset(least) => tree.function().map(|function| (function, least)),
            Table::Numbers(_) | Table::Bytes(..) => None,
        };
        Ok(Map { bytes, header, tree, table, table_len, entropy, plain, quick })
    }

    from_bytes!(bytes);

    /// Returns the value of a key, and `None` for an unlisted one; but for a share [`fpr`](Map::fpr) of them, which get the value of
    /// another key.
    ///
    /// An [unchecked](crate::maps::MapBuilder::unchecked) map has an fpr of 1: it has no means to tell and answers for any key.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the map's.
    #[inline]
    pub fn get<K: Key>(&self, key: K) -> Result<Option<Value<'_>>, QueryError> {
        Ok(self.symbol(key)?.and_then(|symbol| self.table.get(symbol)))
    }

    /// Returns the value of a key, which is a number: see [`get`](Map::get).
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the map's, [`QueryError::Values`] if the values are bytes.
    #[inline]
    pub fn get_u64<K: Key>(&self, key: K) -> Result<Option<u64>, QueryError> {
        if let Some((function, least)) = &self.quick
            && self.plain == Some(K::KEY_TYPE)
        {
            let symbol = function.get(key.seeded_digest(&self.header.hasher));
            return Ok(symbol.map(|symbol| least.wrapping_add(symbol)));
        }
        let symbol = self.symbol(key)?;
        match symbol.and_then(|symbol| self.table.number(symbol)) {
            None => self.check_values(KeyType::Integer).map(|()| None),
            number => Ok(number),
        }
    }

    /// Returns the value of a key, which is text or bytes: see [`get`](Map::get).
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the map's, [`QueryError::Values`] if the values are numbers.
    #[inline]
    pub fn get_bytes<K: Key>(&self, key: K) -> Result<Option<&[u8]>, QueryError> {
        self.check_values(KeyType::Bytes)?;
        match self.get(key)? {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// Returns the values of many keys: faster than one by one where the map is larger than the caches.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the map's.
    ///
    /// ```
    /// use tamis::maps::Value::Number;
    /// let map = tamis::map((0..1000u64).map(|key| (key, key % 7))).finish()?;
    /// assert_eq!(map.get_many(&[7u64, 8])?, [Some(Number(0)), Some(Number(1))]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn get_many<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<Value<'_>>>, QueryError> {
        let mut values = vec![None; keys.len()];
        self.each(keys, |at, symbol| values[at] = symbol.and_then(|symbol| self.table.get(symbol)))?;
        Ok(values)
    }

    /// Writes the values of many keys, which are numbers, to `values`.
    ///
    /// # Errors
    ///
    /// As [`get_u64`](Map::get_u64), and [`QueryError::Length`] if `values` is not as long as `keys`.
    pub fn get_many_u64<K: Key>(&self, keys: &[K], values: &mut [Option<u64>]) -> Result<(), QueryError> {
        self.check_values(KeyType::Integer)?;
        if keys.len() != values.len() {
            return Err(QueryError::Length { keys: keys.len(), answers: values.len() });
        }
        if let Some((function, least)) = &self.quick
            && self.plain == Some(K::KEY_TYPE)
        {
            let mut digests = [Digest::default(); ROUND];
            for (keys, values) in keys.chunks(ROUND).zip(values.chunks_mut(ROUND)) {
                let hasher = &self.header.hasher;
                digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = key.seeded_digest(hasher));
                function.get_many(&self.bytes, &digests[..keys.len()], |at, symbol| {
                    values[at] = symbol.map(|symbol| least.wrapping_add(symbol));
                });
            }
            return Ok(());
        }
        self.each(keys, |at, symbol| values[at] = symbol.and_then(|symbol| self.table.number(symbol)))
    }

    fn each<K: Key>(&self, keys: &[K], mut found: impl FnMut(usize, Option<u64>)) -> Result<(), QueryError> {
        self.check::<K>()?;
        let mut symbols = [None; ROUND];
        let mut digests = [Digest::default(); ROUND];
        let mut scratch = self.tree.scratch();
        for (round, keys) in keys.chunks(ROUND).enumerate() {
            digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = key.digest(&self.header.hasher));
            let symbols = &mut symbols[..keys.len()];
            self.tree.find_many(&self.bytes, &digests[..keys.len()], symbols, &mut scratch);
            for (at, &symbol) in symbols.iter().enumerate() {
                found(round * ROUND + at, symbol.filter(|_| self.header.keys > 0));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn symbol<K: Key>(&self, key: K) -> Result<Option<u64>, QueryError> {
        // One test for the common case: the right key type, no secret, keys at all.
        if self.plain != Some(K::KEY_TYPE) {
            return self.symbol_carefully(key);
        }
        Ok(self.tree.find(key.seeded_digest(&self.header.hasher)))
    }

    #[inline(never)]
    fn symbol_carefully<K: Key>(&self, key: K) -> Result<Option<u64>, QueryError> {
        self.check::<K>()?;
        let symbol = self.tree.find(key.digest(&self.header.hasher));
        Ok(symbol.filter(|_| self.header.keys > 0))
    }

    fn check<K: Key>(&self) -> Result<(), Mismatch> {
        self.header.key_type.check(K::KEY_TYPE)
    }

    fn check_values(&self, wanted: KeyType) -> Result<(), QueryError> {
        let found = self.table.key_type();
        if found == wanted || self.header.keys == 0 { Ok(()) } else { Err(QueryError::Values { found }) }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// Returns `true` if the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }

    /// Returns the type of the values: numbers or bytes.
    pub fn value_type(&self) -> KeyType {
        self.table.key_type()
    }

    /// Returns the number of distinct values; `None` above 2^22 numbers.
    pub fn distinct(&self) -> Option<u64> {
        Some(self.header.negatives).filter(|&distinct| distinct > 0 || self.header.keys == 0)
    }

    /// Returns all values by their symbols, if the map has a table of them.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn table(&self) -> impl Iterator<Item = Value<'_>> {
        (0..self.table.len().unwrap_or(0)).filter_map(|symbol| self.table.get(symbol))
    }

    /// Returns the bytes of the table of values. Most other bytes of the file are those of [`layers`](Map::layers).
    pub fn table_bytes(&self) -> u64 {
        self.table_len
    }

    /// Returns the entropy of the values in bits, summed over all keys; `None` above 2^22 numbers.
    pub fn entropy(&self) -> Option<u64> {
        self.distinct().map(|_| self.entropy)
    }

    /// Returns `true` if every value uses the same number of bits.
    pub fn is_function(&self) -> bool {
        self.tree.is_function()
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.header.hasher
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> u64 {
        1 << self.header.shard_bits
    }

    /// Returns the largest share of unlisted keys that get a value: 2^-bits with fingerprints of that many bits, and 1 if the map is
    /// unchecked.
    pub fn fpr(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.tree.fpr() }
    }

    /// Returns the structures of the map, node by node, in the order of the tree.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo> + '_ {
        let shards = 0..1usize << self.header.shard_bits;
        self.tree.parts().into_iter().flat_map(move |(node, depth, what, leaves)| {
            let layer = |leaf: &crate::leaves::Leaf| LayerInfo {
                node,
                depth,
                purpose: what.clone(),
                structure: leaf.name(),
                details: leaf.details(),
                bytes: shards.clone().map(|shard| leaf.payload_len(shard)).sum(),
            };
            leaves.into_iter().map(layer).collect::<Vec<_>>()
        })
    }
}

/// One structure of a map.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerInfo {
    /// Number of its node; `None` for the filter in front of the tree.
    pub node: Option<usize>,
    /// Depth of the node below the root.
    pub depth: usize,
    /// Purpose of the node, in words.
    pub purpose: String,
    /// Name of the structure.
    pub structure: &'static str,
    /// Parameters of the structure, in words.
    pub details: String,
    /// Payload bytes, all shards together.
    pub bytes: u64,
}
