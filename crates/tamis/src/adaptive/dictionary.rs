//! a hash map next to a reverse map -> a dictionary: for tests, examples and caches.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use super::map::hand_on;
use super::{Dictionary, ReverseMap};
use crate::hash::Digest;

impl<K, V, M: ReverseMap> ReverseMap for (HashMap<K, V>, M) {
    type Error = M::Error;
    hand_on!(self => self.1);
}

impl<Q, K, V, M> Dictionary<Q> for (HashMap<K, V>, M)
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Hash + Eq,
    V: Clone,
    M: ReverseMap,
{
    type Value = V;

    fn get(&mut self, key: &Q) -> Result<Option<V>, M::Error> {
        Ok(self.0.get(key).cloned())
    }

    fn insert(&mut self, key: &Q, value: V) -> Result<Option<V>, M::Error> {
        Ok(self.0.insert(key.to_owned(), value))
    }

    fn remove(&mut self, key: &Q) -> Result<Option<V>, M::Error> {
        Ok(self.0.remove(key))
    }
}
