//! stacks and exact bits that learn -> subjects: they have all keys from the start, and no reverse map.
//!
//! They remember false positives but promise nothing against an adversary; they are shown for comparison.

use std::cell::RefCell;

use tamis::adaptive::{AdaptiveChained, AdaptiveFilter, AdaptiveStacked};
use tamis::internals::Shape;
use tamis::{Digest, Hasher};

use super::RATE;
use super::subject::{Cost, Subject, Work};

/// Bits per key at which one Bloom filter has the rate.
const BITS: f64 = 11.55;

/// A filter that is built when its last key has been inserted.
pub(super) struct Learning<F> {
    capacity: u64,
    key: [u64; 2],
    keys: Vec<u64>,
    /// Queries change it, because it counts what it rejects.
    filter: RefCell<Option<F>>,
}

impl<F> Learning<F> {
    pub(super) fn new(capacity: u64, key: [u64; 2]) -> Learning<F> {
        Learning { capacity, key, keys: vec![], filter: RefCell::new(None) }
    }
}

pub(super) trait Learner: Sized {
    fn build(keys: &mut Vec<u64>, key: [u64; 2]) -> Result<Self, String>;
    fn has(&mut self, key: u64) -> bool;
    fn adapt(&mut self, key: u64, keys: &mut Vec<u64>) -> Result<(), String>;
    fn size(&self) -> usize;
}

impl Learner for AdaptiveStacked {
    fn build(keys: &mut Vec<u64>, key: [u64; 2]) -> Result<AdaptiveStacked, String> {
        let n = keys.len() as u64;
        let shape = Shape::zipf(1.0, 100 * n, 50 * n).map_err(|e| e.to_string())?;
        let builder = AdaptiveStacked::with_bits_per_key(BITS).shape(shape).lifetime(10 * n).secret(key);
        builder.build(keys).map_err(|e| e.to_string())
    }

    fn has(&mut self, key: u64) -> bool {
        self.query(key).unwrap_or(false)
    }

    fn adapt(&mut self, key: u64, keys: &mut Vec<u64>) -> Result<(), String> {
        AdaptiveStacked::adapt(self, key, keys).map(|_| ()).map_err(|e| e.to_string())
    }

    fn size(&self) -> usize {
        self.memory_bytes()
    }
}

impl Learner for AdaptiveChained {
    fn build(keys: &mut Vec<u64>, key: [u64; 2]) -> Result<AdaptiveChained, String> {
        AdaptiveChained::with_fpr(RATE).secret(key).build(keys).map_err(|e| e.to_string())
    }

    fn has(&mut self, key: u64) -> bool {
        self.contains(key).unwrap_or(false)
    }

    fn adapt(&mut self, key: u64, keys: &mut Vec<u64>) -> Result<(), String> {
        AdaptiveChained::adapt(self, key, keys).map(|_| ()).map_err(|e| e.to_string())
    }

    fn size(&self) -> usize {
        self.memory_bytes()
    }
}

impl<F: Learner> Subject for Learning<F> {
    fn ask(&self, key: u64) -> bool {
        self.filter.borrow_mut().as_mut().is_some_and(|filter| filter.has(key))
    }

    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String> {
        match work {
            Work::Insert => {
                self.keys.push(key);
                if self.keys.len() as u64 == self.capacity {
                    *self.filter.borrow_mut() = Some(F::build(&mut self.keys, self.key)?);
                }
            }
            Work::Delete => return Err("it gives no keys back".into()),
            Work::Report => {
                let yes = self.ask(key);
                if let Some(filter) = self.filter.borrow_mut().as_mut() {
                    filter.adapt(key, &mut self.keys)?;
                }
                return Ok(Cost { changed: yes, ..Cost::default() });
            }
        }
        Ok(Cost { changed: true, ..Cost::default() })
    }

    fn bits(&self) -> u64 {
        8 * self.filter.borrow().as_ref().map_or(0, F::size) as u64
    }

    fn fpr(&self) -> f64 {
        RATE
    }

    fn deletes(&self) -> bool {
        false
    }

    fn digest(&self, key: u64) -> Digest {
        Hasher::secret(self.key).integer(key)
    }
}
