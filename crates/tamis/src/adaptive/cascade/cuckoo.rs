//! fingerprints in buckets -> a level of a cascade.

use super::level::{Erase, Level, Store};
use crate::adaptive::file::Kind;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::zeros;
use crate::leaves::change::{Insert, Remove};
use crate::leaves::cuckoo::Cuckoo;
use crate::leaves::{Geometry, Query};

/// A level that is a cuckoo filter.
#[derive(Clone)]
pub struct Cuckoos {
    table: Cuckoo,
    payload: Vec<u8>,
}

brief_debug!(Cuckoos, it => keys: it.len(), bytes: it.payload.len());

impl Level for Cuckoos {}
impl Erase for Cuckoos {}

impl Store for Cuckoos {
    const KIND: Kind = Kind::CuckooCascade;

    fn new(capacity: u64, rate: f64, salt: Salt) -> Result<Cuckoos, BuildError> {
        let table = Cuckoo::empty(capacity, rate, false, salt, 0)?;
        let mut payload = vec![];
        zeros(&mut payload, table.payload_len())?;
        Ok(Cuckoos { table, payload })
    }

    fn spots(&self) -> u64 {
        self.table.names().unwrap_or(u64::MAX)
    }

    #[inline]
    fn spot(&self, key: Digest) -> u64 {
        self.table.name(key)
    }

    #[inline]
    fn holds(&self, key: Digest) -> bool {
        self.table.contains(&self.payload, key)
    }

    fn insert(&mut self, key: Digest) -> bool {
        self.table.insert(&mut self.payload, key).is_ok()
    }

    fn remove(&mut self, key: Digest) -> bool {
        self.table.remove(&mut self.payload, key)
    }

    fn copies(&self, key: Digest) -> Option<u64> {
        Some(self.table.count(&self.payload, key))
    }

    fn len(&self) -> u64 {
        self.table.keys()
    }

    fn table(&self) -> &[u8] {
        &self.payload
    }

    fn load(capacity: u64, rate: f64, salt: Salt, payload: &[u8], _: u64) -> Result<Option<Cuckoos>, BuildError> {
        let table = Cuckoo::empty(capacity, rate, false, salt, 0)?;
        let fits = payload.len() as u64 == table.payload_len();
        Ok(fits.then(|| Cuckoos { table: table.counted(payload), payload: payload.to_vec() }))
    }
}
