//! a payload + a key -> the payload with the key in it, or without it: leaves that change after they were built.

use std::fmt::Debug;

use super::bloom::zeros;
use super::{Geometry, Part, Query, encoded};
use crate::error::{BuildError, ChangeError};
use crate::format::Encoded;
use crate::hash::{Digest, Salt};

/// No room for another key; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    /// Keys it holds.
    pub(crate) keys: u64,
    /// Keys it was made for.
    pub(crate) capacity: u64,
}

impl From<Full> for ChangeError {
    fn from(Full { keys, capacity }: Full) -> ChangeError {
        ChangeError::Full { keys, capacity }
    }
}

/// A leaf that takes keys after it was built.
pub(crate) trait Change: Query {
    /// Whether keys can be removed as well.
    const REMOVES: bool = false;

    /// How many keys it holds.
    fn keys(&self) -> u64;

    /// How many keys it was made for, if it can be full.
    fn capacity(&self) -> Option<u64> {
        None
    }

    /// The share of its room that is taken: of its bits, or of its capacity.
    fn fill(&self, _payload: &[u8]) -> f64 {
        self.keys() as f64 / self.capacity().unwrap_or(0).max(1) as f64
    }

    /// The share of unlisted keys that match, by what the payload holds and not by how many keys were added.
    fn fpr_now(&self, _payload: &[u8]) -> f64 {
        self.fpr()
    }

    /// Adds a key. If there is no room nothing is changed.
    fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full>;

    /// Removes one copy of a key; false, and nothing is changed, if there is none.
    fn remove(&mut self, _payload: &mut [u8], _key: Digest) -> bool {
        false
    }

    /// Calls `each` with the gates of a key that are closed, until it returns true.
    ///
    /// A key passes if all of its gates are open, and inserting a key opens all of its own. The gates of a Bloom filter are its bits. A table of
    /// fingerprints has one for each key: the fingerprint and its place.
    fn closed_gates(&self, payload: &[u8], key: Digest, each: impl FnMut(u64) -> bool);

    /// The only gate of a key, open or closed, in a leaf that removes keys.
    fn gate(&self, _key: Digest) -> Option<u64> {
        None
    }

    /// Puts a number that follows from these keys, which are sorted and will be the first, in place of a random one; `salt` is that of the layer.
    fn follow(&mut self, _keys: &[Digest], _salt: Salt) {}
}

/// A leaf that owns its payload.
#[derive(Clone, Debug)]
pub(crate) struct Owned<G> {
    pub(crate) geometry: G,
    pub(crate) payload: Vec<u8>,
}

impl<G: Geometry> Owned<G> {
    /// A leaf whose payload is all zeros: one without keys.
    pub(crate) fn zeros(geometry: G) -> Result<Owned<G>, BuildError> {
        let mut payload = vec![];
        zeros(&mut payload, geometry.payload_len())?;
        Ok(Owned { geometry, payload })
    }
}

impl<G: Clone> From<&Part<G>> for Owned<G> {
    fn from(part: &Part<G>) -> Owned<G> {
        Owned { geometry: part.geometry.clone(), payload: part.payload.to_vec() }
    }
}

/// Bytes of memory that a layer takes next to its payload, at most.
pub(crate) const MAX_LAYER_BYTES: u64 = 128;

/// One layer of a filter that changes, whatever its leaf.
pub(crate) trait Layer: Debug + Send + Sync {
    /// The tag of its leaf in a directory.
    fn tag(&self) -> u8;
    /// See [`Change::REMOVES`].
    fn removes(&self) -> bool;
    /// See [`Change::keys`].
    fn keys(&self) -> u64;
    /// See [`Change::capacity`].
    fn capacity(&self) -> Option<u64>;
    /// The share of unlisted keys that match, with so many keys.
    fn fpr(&self) -> f64;
    /// See [`Change::fill`].
    fn fill(&self) -> f64;
    /// See [`Change::fpr_now`].
    fn fpr_now(&self) -> f64;
    /// Its table.
    fn payload(&self) -> &[u8];
    /// Whether the key may be there.
    fn contains(&self, key: Digest) -> bool;
    /// See [`Change::insert`]; a layer without a table is full.
    fn insert(&mut self, key: Digest) -> Result<(), Full>;
    /// See [`Change::remove`].
    fn remove(&mut self, key: Digest) -> bool;
    /// The first gate that keeps a key out, those aside that are about to open: see [`Change::closed_gates`].
    fn closed_gate(&self, key: Digest, opening: &[u64]) -> Option<u64>;
    /// Appends all gates that keep a key out, each once.
    fn closed_gates(&self, key: Digest, out: &mut Vec<u64>);
    /// See [`Change::gate`].
    fn gate(&self, key: Digest) -> Option<u64>;
    /// See [`Change::follow`].
    fn follow(&mut self, _keys: &[Digest], _salt: Salt) {}
    /// Whether keys can be added: a layer that was built from all of its keys keeps every other key out for good.
    fn takes_keys(&self) -> bool {
        true
    }
    /// Its shards, ready to be written: one, where keys can be added.
    fn encoded(&self) -> Vec<Encoded>;
    /// A copy.
    fn boxed(&self) -> Box<dyn Layer>;
}

impl<G: Change> Layer for Owned<G> {
    fn tag(&self) -> u8 {
        G::TAG
    }

    fn removes(&self) -> bool {
        G::REMOVES
    }

    fn keys(&self) -> u64 {
        self.geometry.keys()
    }

    fn capacity(&self) -> Option<u64> {
        self.geometry.capacity()
    }

    fn fpr(&self) -> f64 {
        // A layer without a table rejects all keys.
        if self.payload.is_empty() { 0.0 } else { self.geometry.fpr() }
    }

    fn fill(&self) -> f64 {
        self.geometry.fill(&self.payload)
    }

    fn fpr_now(&self) -> f64 {
        if self.payload.is_empty() { 0.0 } else { self.geometry.fpr_now(&self.payload) }
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    #[inline]
    fn contains(&self, key: Digest) -> bool {
        self.geometry.contains(&self.payload, key)
    }

    #[inline]
    fn insert(&mut self, key: Digest) -> Result<(), Full> {
        // A key that is put where there is no table is not found again.
        if self.payload.is_empty() {
            return Err(Full { keys: 0, capacity: 0 });
        }
        self.geometry.insert(&mut self.payload, key)
    }

    #[inline]
    fn remove(&mut self, key: Digest) -> bool {
        self.geometry.remove(&mut self.payload, key)
    }

    #[inline]
    fn closed_gate(&self, key: Digest, opening: &[u64]) -> Option<u64> {
        let mut found = None;
        self.geometry.closed_gates(&self.payload, key, |gate| {
            found = Some(gate).filter(|gate| !opening.contains(gate));
            found.is_some()
        });
        found
    }

    fn closed_gates(&self, key: Digest, out: &mut Vec<u64>) {
        self.geometry.closed_gates(&self.payload, key, |gate| {
            if !out.contains(&gate) {
                out.push(gate);
            }
            false
        });
    }

    fn gate(&self, key: Digest) -> Option<u64> {
        self.geometry.gate(key)
    }

    fn follow(&mut self, keys: &[Digest], salt: Salt) {
        self.geometry.follow(keys, salt);
    }

    fn encoded(&self) -> Vec<Encoded> {
        vec![encoded(&self.geometry, self.payload.clone().into())]
    }

    fn boxed(&self) -> Box<dyn Layer> {
        const { assert!((size_of::<Self>() + size_of::<Box<dyn Layer>>()) as u64 <= MAX_LAYER_BYTES) };
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Layer> {
    fn clone(&self) -> Box<dyn Layer> {
        self.boxed()
    }
}
