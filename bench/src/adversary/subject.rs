//! filters, adaptive or not -> one interface: what an adversary can do to a filter, and what it costs the filter.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use tamis::adaptive::{Adapt, AdaptError, ChangeStats, Remove, ReverseMap};
use tamis::{Bloom, Digest, Hasher, Quotient};

use super::log::Watched;
use crate::adaptive::cuckoo::AdaptiveCuckoo;
use crate::measure;

/// What is done to every key of a list.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Work {
    Insert,
    Delete,
    Report,
}

/// What an operation did, and what it cost.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) changed: bool,
    pub(crate) moved: u32,
    pub(crate) words: u32,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
}

impl From<ChangeStats> for Cost {
    fn from(stats: ChangeStats) -> Cost {
        let (moved, words) = (stats.moved(), stats.words());
        Cost { changed: stats.changed, moved, words, reads: stats.reads, writes: stats.writes }
    }
}

/// A filter, with its reverse map where it has one.
pub(crate) trait Subject {
    fn ask(&self, key: u64) -> bool;

    /// Inserts a key that is not there, removes one that is, or reports a false positive.
    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String>;

    /// Bits of the filter, without its reverse map.
    fn bits(&self) -> u64;

    /// The fpr that it promises.
    fn fpr(&self) -> f64;

    /// How often all keys have moved to a new hash function, if they ever do.
    fn epoch(&self) -> Option<u64> {
        None
    }

    fn deletes(&self) -> bool {
        true
    }

    /// Reports a false positive. Returns the members that the reverse map named; none without a map.
    fn accused(&mut self, key: u64) -> Result<(Cost, Vec<Digest>), String> {
        self.work(Work::Report, key).map(|stats| (stats, Vec::new()))
    }

    /// The digest of a key, as [`Subject::accused`] names it.
    fn digest(&self, key: u64) -> Digest;

    /// Does the work on every key, and tells how much time the reverse map alone took of it.
    fn map_alone(&mut self, work: Work, keys: &[u64]) -> Result<Option<Duration>, String> {
        self.work_all(work, keys).map(|_| None)
    }

    /// How many of these keys match. One call for all, so that the calls inside are direct.
    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&&key| self.ask(key)).count()
    }

    /// Does the work on every key; what it cost together.
    fn work_all(&mut self, work: Work, keys: &[u64]) -> Result<Cost, String> {
        let mut all = Cost::default();
        for &key in keys {
            let stats = self.work(work, key)?;
            all.moved += stats.moved;
            all.words += stats.words;
            all.reads += stats.reads;
            all.writes += stats.writes;
        }
        Ok(all)
    }
}

/// Any adaptive filter of the library, with a reverse map in memory.
pub(crate) struct Adaptive<F> {
    pub(crate) filter: F,
    map: Watched,
    /// None: keys cannot be removed.
    remove: Option<Removal<F>>,
}

type Removal<F> = fn(&mut F, u64, &mut Watched) -> Result<ChangeStats, AdaptError<Infallible>>;

impl<F: Adapt> Adaptive<F> {
    pub(crate) fn new(filter: F) -> Adaptive<F>
    where
        F: Remove,
    {
        Adaptive { filter, map: Watched::default(), remove: Some(F::remove) }
    }

    pub(crate) fn without_removal(filter: F) -> Adaptive<F> {
        Adaptive { filter, map: Watched::default(), remove: None }
    }
}

impl<F: Adapt> Subject for Adaptive<F> {
    #[inline]
    fn ask(&self, key: u64) -> bool {
        self.filter.contains(key).unwrap_or(false)
    }

    #[inline]
    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String> {
        let done = match (work, self.remove) {
            (Work::Insert, _) => self.filter.insert(key, &mut self.map),
            (Work::Delete, Some(remove)) => remove(&mut self.filter, key, &mut self.map),
            (Work::Delete, None) => return Err("keys cannot be removed".into()),
            (Work::Report, _) => self.filter.adapt(key, &mut self.map),
        };
        done.map(Cost::from).map_err(|e| e.to_string())
    }

    fn deletes(&self) -> bool {
        self.remove.is_some()
    }

    fn bits(&self) -> u64 {
        8 * self.filter.memory_bytes() as u64
    }

    fn fpr(&self) -> f64 {
        self.filter.fpr()
    }

    fn epoch(&self) -> Option<u64> {
        Some(self.filter.epoch())
    }

    fn accused(&mut self, key: u64) -> Result<(Cost, Vec<Digest>), String> {
        self.map.start();
        let done = self.work(Work::Report, key);
        let log = self.map.stop();
        Ok((done?, log.found()))
    }

    fn digest(&self, key: u64) -> Digest {
        self.filter.hasher().integer(key)
    }

    fn map_alone(&mut self, work: Work, keys: &[u64]) -> Result<Option<Duration>, String> {
        let mut copy = self.map.map.clone();
        // A copy has no room to spare: it makes some now, not while it is timed.
        let nobody = Digest::default();
        let Ok(_) = copy.file(nobody, 0).and_then(|()| copy.unfile(nobody, 0));
        self.map.start();
        let done = self.work_all(work, keys);
        let log = self.map.stop();
        done?;
        Ok(Some(measure::cpu(|| log.replay(&mut copy)).1))
    }
}

/// A filter that learns nothing from reports.
pub(crate) struct Plain<F> {
    filter: F,
    hasher: Hasher,
}

/// Our quotient filter, with a keyed hash.
pub(crate) fn quotient(capacity: u64, rate: f64, key: [u64; 2]) -> Result<Plain<Quotient>, Box<dyn Error>> {
    let hasher = Hasher::secret(key);
    Ok(Plain { filter: Quotient::with_capacity(capacity).fpr(rate).hasher(hasher.clone()).build::<u64>()?, hasher })
}

/// Our classic Bloom filter, with a keyed hash.
pub(crate) fn bloom(capacity: u64, rate: f64, key: [u64; 2]) -> Result<Plain<Bloom>, Box<dyn Error>> {
    let hasher = Hasher::secret(key);
    Ok(Plain {
        filter: Bloom::with_capacity(capacity).fpr(rate).classic().hasher(hasher.clone()).build::<u64>()?,
        hasher,
    })
}

pub(crate) trait Ordinary {
    const REMOVES: bool;
    fn has(&self, key: u64) -> bool;
    fn add(&mut self, key: u64) -> Result<(), String>;
    /// Whether the key was there to be removed.
    fn take(&mut self, key: u64) -> Result<bool, String>;
    fn bytes(&self) -> usize;
}

impl Ordinary for Quotient {
    const REMOVES: bool = true;

    #[inline]
    fn has(&self, key: u64) -> bool {
        self.contains(key).unwrap_or(false)
    }

    fn add(&mut self, key: u64) -> Result<(), String> {
        self.insert(key).map_err(|e| e.to_string())
    }

    fn take(&mut self, key: u64) -> Result<bool, String> {
        self.remove(key).map_err(|e| e.to_string())
    }

    /// A snapshot is the table and a few dozen bytes.
    fn bytes(&self) -> usize {
        self.snapshot().map_or(0, |bytes| bytes.len())
    }
}

impl Ordinary for Bloom {
    const REMOVES: bool = false;

    #[inline]
    fn has(&self, key: u64) -> bool {
        self.contains(key).unwrap_or(false)
    }

    fn add(&mut self, key: u64) -> Result<(), String> {
        self.insert(key).map_err(|e| e.to_string())
    }

    fn take(&mut self, _: u64) -> Result<bool, String> {
        Err("a Bloom filter does not delete".into())
    }

    fn bytes(&self) -> usize {
        self.snapshot().map_or(0, |bytes| bytes.len())
    }
}

impl<F: Ordinary> Subject for Plain<F> {
    #[inline]
    fn ask(&self, key: u64) -> bool {
        self.filter.has(key)
    }

    #[inline]
    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String> {
        match work {
            Work::Insert => self.filter.add(key)?,
            Work::Delete if !self.filter.take(key)? => return Err("a key was not found".into()),
            Work::Delete | Work::Report => {}
        }
        Ok(Cost { changed: work != Work::Report, ..Cost::default() })
    }

    fn bits(&self) -> u64 {
        8 * self.filter.bytes() as u64
    }

    fn fpr(&self) -> f64 {
        super::RATE
    }

    fn deletes(&self) -> bool {
        F::REMOVES
    }

    fn digest(&self, key: u64) -> Digest {
        self.hasher.integer(key)
    }
}

impl Subject for AdaptiveCuckoo {
    #[inline]
    fn ask(&self, key: u64) -> bool {
        self.contains(AdaptiveCuckoo::digest(self, key))
    }

    #[inline]
    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String> {
        let key = AdaptiveCuckoo::digest(self, key);
        match work {
            Work::Insert => self.insert(key),
            Work::Delete => self.remove(key),
            Work::Report => self.adapt(key, &mut Vec::new()),
        }
    }

    fn bits(&self) -> u64 {
        8 * self.bytes() as u64
    }

    fn fpr(&self) -> f64 {
        AdaptiveCuckoo::fpr(self)
    }

    fn accused(&mut self, key: u64) -> Result<(Cost, Vec<Digest>), String> {
        let mut found = Vec::new();
        let stats = self.adapt(AdaptiveCuckoo::digest(self, key), &mut found)?;
        Ok((stats, found))
    }

    fn digest(&self, key: u64) -> Digest {
        AdaptiveCuckoo::digest(self, key)
    }
}

/// A quotient filter of another library, with its own hash.
#[cfg(feature = "peers")]
pub(crate) fn qfilter(capacity: u64, rate: f64) -> Result<Plain<qfilter::Filter>, Box<dyn Error>> {
    let filter = qfilter::Filter::new(capacity, rate).map_err(|e| format!("{e:?}"))?;
    Ok(Plain { filter, hasher: Hasher::seeded(0) })
}

#[cfg(feature = "peers")]
impl Ordinary for qfilter::Filter {
    const REMOVES: bool = true;

    #[inline]
    fn has(&self, key: u64) -> bool {
        self.contains(key)
    }

    fn add(&mut self, key: u64) -> Result<(), String> {
        self.insert_duplicated(key).map_err(|e| format!("{e:?}"))
    }

    fn take(&mut self, key: u64) -> Result<bool, String> {
        Ok(self.remove(key))
    }

    fn bytes(&self) -> usize {
        self.memory_usage()
    }
}
