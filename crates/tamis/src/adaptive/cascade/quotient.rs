//! fingerprints in runs -> a level of a cascade.

use super::level::{Erase, Level, Store};
use crate::adaptive::file::Kind;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Salt};
use crate::leaves::change::Layer;
use crate::leaves::quotient::OwnedQuotient;
use crate::math::quotient::size;

/// A level that is a quotient filter.
#[derive(Clone)]
pub struct Quotients(OwnedQuotient);

fn sized(capacity: u64, rate: f64) -> Result<(u64, u32), BuildError> {
    size(capacity, rate).ok_or(BuildError::NoSize { structure: "quotient filter", keys: capacity, rate })
}

brief_debug!(Quotients, it => keys: it.len(), bytes: it.table().len());

impl Level for Quotients {}
impl Erase for Quotients {}

impl Store for Quotients {
    const KIND: Kind = Kind::QuotientCascade;

    fn new(capacity: u64, rate: f64, salt: Salt) -> Result<Quotients, BuildError> {
        Ok(Quotients(OwnedQuotient::empty(sized(capacity, rate)?, salt)?))
    }

    fn spots(&self) -> u64 {
        self.0.geometry.range()
    }

    #[inline]
    fn spot(&self, key: Digest) -> u64 {
        self.0.fingerprint(key)
    }

    #[inline]
    fn holds(&self, key: Digest) -> bool {
        self.0.has(self.spot(key))
    }

    fn insert(&mut self, key: Digest) -> bool {
        self.0.put(self.spot(key))
    }

    fn remove(&mut self, key: Digest) -> bool {
        self.0.take(self.spot(key))
    }

    fn copies(&self, key: Digest) -> Option<u64> {
        Some(self.0.copies(self.spot(key)))
    }

    fn len(&self) -> u64 {
        self.0.keys()
    }

    fn table(&self) -> &[u8] {
        &self.0.payload
    }

    fn load(capacity: u64, rate: f64, salt: Salt, table: &[u8], _: u64) -> Result<Option<Quotients>, BuildError> {
        Ok(OwnedQuotient::reopened(sized(capacity, rate)?, salt, table)?.map(Quotients))
    }
}
