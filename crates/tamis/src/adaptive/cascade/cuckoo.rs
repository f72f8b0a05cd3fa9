//! fingerprints in buckets -> a level of a cascade.

use super::level::{Erase, Level, Store};
use crate::adaptive::file::Kind;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Salt};
use crate::leaves::Geometry;
use crate::leaves::change::{Layer, Owned};
use crate::leaves::cuckoo::Cuckoo;

/// A level that is a cuckoo filter.
#[derive(Clone)]
pub struct Cuckoos(Owned<Cuckoo>);

brief_debug!(Cuckoos, it => keys: it.len(), bytes: it.0.payload.len());

impl Level for Cuckoos {}
impl Erase for Cuckoos {}

impl Store for Cuckoos {
    const KIND: Kind = Kind::CuckooCascade;

    fn new(capacity: u64, rate: f64, salt: Salt) -> Result<Cuckoos, BuildError> {
        Ok(Cuckoos(Owned::zeros(Cuckoo::empty(capacity, rate, false, salt, 0)?)?))
    }

    fn spots(&self) -> u64 {
        self.0.geometry.names().unwrap_or(u64::MAX)
    }

    #[inline]
    fn spot(&self, key: Digest) -> u64 {
        self.0.geometry.name(key)
    }

    #[inline]
    fn holds(&self, key: Digest) -> bool {
        self.0.contains(key)
    }

    fn insert(&mut self, key: Digest) -> bool {
        self.0.insert(key).is_ok()
    }

    fn remove(&mut self, key: Digest) -> bool {
        self.0.remove(key)
    }

    fn copies(&self, key: Digest) -> Option<u64> {
        Some(self.0.geometry.count(&self.0.payload, key))
    }

    fn len(&self) -> u64 {
        self.0.keys()
    }

    fn table(&self) -> &[u8] {
        &self.0.payload
    }

    fn load(capacity: u64, rate: f64, salt: Salt, payload: &[u8], _: u64) -> Result<Option<Cuckoos>, BuildError> {
        let geometry = Cuckoo::empty(capacity, rate, false, salt, 0)?;
        let fits = payload.len() as u64 == geometry.payload_len();
        Ok(fits.then(|| Cuckoos(Owned { geometry: geometry.counted(payload), payload: payload.to_vec() })))
    }
}
