//! keys and values in memory -> a dictionary with its reverse map: for tests, examples and caches.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;

use super::map::hand_on;
use super::{Dictionary, Memory, ReverseMap};
use crate::debug::brief_debug;
use crate::hash::Digest;

/// A hash map with a [`Memory`] beside it.
///
/// ```
/// use tamis::adaptive::{Dictionary, MemoryDictionary};
/// let mut ages = MemoryDictionary::<String, u32>::new();
/// ages.put("ann", 41)?;
/// assert_eq!(ages.get("ann")?, Some(41));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Clone)]
pub struct MemoryDictionary<K, V> {
    values: HashMap<K, V>,
    map: Memory,
}

brief_debug!(MemoryDictionary<K, V>, it => keys: it.values.len());

impl<K, V> MemoryDictionary<K, V> {
    /// An empty one.
    pub fn new() -> MemoryDictionary<K, V> {
        MemoryDictionary { values: HashMap::new(), map: Memory::new() }
    }

    /// How many keys have values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K, V> Default for MemoryDictionary<K, V> {
    fn default() -> MemoryDictionary<K, V> {
        MemoryDictionary::new()
    }
}

impl<K, V> ReverseMap for MemoryDictionary<K, V> {
    type Error = Infallible;
    hand_on!(self => self.map);
}

impl<Q, K, V> Dictionary<Q> for MemoryDictionary<K, V>
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Hash + Eq,
    V: Clone,
{
    type Value = V;

    fn get(&mut self, key: &Q) -> Result<Option<V>, Infallible> {
        Ok(self.values.get(key).cloned())
    }

    fn put(&mut self, key: &Q, value: V) -> Result<Option<V>, Infallible> {
        Ok(self.values.insert(key.to_owned(), value))
    }

    fn take(&mut self, key: &Q) -> Result<Option<V>, Infallible> {
        Ok(self.values.remove(key))
    }
}
