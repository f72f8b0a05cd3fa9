//! stand-ins whose faults are known -> the trials find them.

#![allow(clippy::unwrap_used)]
use std::collections::{HashMap, HashSet};

use tamis::{Digest, Hasher};

use super::subject::{Cost, Work};
use super::*;

/// Fingerprints of eight bits, counted exactly, and a list of keys to refuse: adaptive, at any cost of space.
struct Denier {
    hasher: Hasher,
    capacity: u64,
    held: HashMap<u64, Vec<Digest>>,
    denied: HashMap<u64, HashSet<Digest>>,
    fault: Fault,
    reports: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It only grows.
    None,
    /// A key that is taken out takes along what was learned about its fingerprint.
    Forgets,
    /// A key that is taken out still matches, as in a Bloom filter; but only half of them, so that others do not mask it.
    Keeps,
    /// One report in a hundred makes a key disappear.
    Loses,
    /// A report reads the map three times.
    Asks,
    /// Fingerprints are seven bits long.
    Short,
    /// What was learned is thrown away after n/2 reports.
    Amnesia,
    /// A report of the right key is an error.
    Breaks,
}

impl Denier {
    fn name(&self, key: Digest) -> u64 {
        let values = if self.fault == Fault::Short { 128 } else { 256 };
        ((u128::from(key.to_bits() as u64) * u128::from(self.capacity * values)) >> 64) as u64
    }
}

impl Subject for Denier {
    fn ask(&self, key: u64) -> bool {
        let key = self.digest(key);
        let name = self.name(key);
        let held = self.held.get(&name).is_some_and(|keys| !keys.is_empty());
        held && !self.denied.get(&name).is_some_and(|denied| denied.contains(&key))
    }

    fn work(&mut self, work: Work, key: u64) -> Result<Cost, String> {
        let yes = self.ask(key);
        let key = self.digest(key);
        let name = self.name(key);
        let keys = self.held.entry(name).or_default();
        let denied = self.denied.entry(name).or_default();
        match work {
            Work::Insert => {
                keys.push(key);
                denied.remove(&key);
            }
            Work::Delete => {
                if self.fault != Fault::Keeps || key.to_bits() & 1 == 0 {
                    keys.retain(|&held| held != key);
                }
                if self.fault == Fault::Forgets {
                    denied.clear();
                }
            }
            Work::Report if !yes => return Ok(Cost::default()),
            Work::Report => {
                denied.insert(key);
                self.reports += 1;
                match self.fault {
                    Fault::Loses if self.reports.is_multiple_of(100) => keys.clear(),
                    Fault::Amnesia if self.reports.is_multiple_of(self.capacity / 2) => self.denied.clear(),
                    Fault::Breaks if self.reports.is_multiple_of(100) => return Err("broken".into()),
                    _ => {}
                }
            }
        }
        let reads = if self.fault == Fault::Asks { 3 } else { 1 };
        Ok(Cost { changed: true, reads, ..Cost::default() })
    }

    fn bits(&self) -> u64 {
        let denied: usize = self.denied.values().map(HashSet::len).sum();
        64 * self.capacity + 16 * denied as u64
    }

    fn fpr(&self) -> f64 {
        RATE
    }

    fn accused(&mut self, key: u64) -> Result<(Cost, Vec<Digest>), String> {
        let stats = self.work(Work::Report, key)?;
        let name = self.name(self.digest(key));
        Ok((stats, self.held.get(&name).cloned().unwrap_or_default()))
    }

    fn digest(&self, key: u64) -> Digest {
        self.hasher.integer(key)
    }
}

fn denier(capacity: u64, key: [u64; 2], fault: Fault) -> Built {
    let hasher = Hasher::secret(key);
    Ok(Box::new(Denier { hasher, capacity, held: HashMap::new(), denied: HashMap::new(), fault, reports: 0 }))
}

fn options(keys: u32, queries: u64, tests: &[Trial]) -> Options {
    Options { keys, filters: vec![], tests: tests.to_vec(), queries, window: 10_000, threads: 2, seed: 3 }
}

/// The trials that a filter fails.
fn failed(keys: u32, queries: u64, expected: Expected, build: fn(u64, [u64; 2]) -> Built) -> Vec<Trial> {
    let entry = Entry { name: "stand-in", expected, steps: 0.0, build };
    let options = options(keys, queries, &[]);
    let outcomes = attack_all(&options, &[entry]).unwrap();
    assert_eq!(outcomes.len(), Trial::value_variants().len());
    let clean = outcomes.iter().all(Outcome::is_expected);
    let failed: Vec<Trial> = outcomes.iter().filter(|outcome| !outcome.holds()).map(|outcome| outcome.trial).collect();
    if expected == Expected::Holds {
        assert_eq!(clean, failed.is_empty());
    }
    let report = Report { machine: Machine::read(), options: &options, rate: RATE, outcomes };
    assert_eq!(report.is_clean(), clean);
    assert!(report.tables().iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
    failed
}

#[test]
fn every_fault_is_found_by_the_trial_that_is_there_for_it() {
    let run = |build| failed(2000, 1_500_000, Expected::Holds, build);
    // It grows, and does nothing else wrong.
    assert_eq!(run(|n, key| denier(n, key, Fault::None)), [Trial::Space]);
    assert_eq!(run(|n, key| denier(n, key, Fault::Forgets)), [Trial::Reinsert, Trial::Space]);
    assert_eq!(run(|n, key| denier(n, key, Fault::Asks)), [Trial::Space, Trial::Reads]);
    let keeps = run(|n, key| denier(n, key, Fault::Keeps));
    assert!(keeps.contains(&Trial::Removed) && keeps.contains(&Trial::Churn), "{keeps:?}");
    assert!(!keeps.contains(&Trial::Fresh) && !keeps.contains(&Trial::Replay), "{keeps:?}");
    let loses = run(|n, key| denier(n, key, Fault::Loses));
    assert!(loses.contains(&Trial::Fresh) && loses.contains(&Trial::Replay), "{loses:?}");
    let short = run(|n, key| denier(n, key, Fault::Short));
    assert!(short.contains(&Trial::Fresh) && !short.contains(&Trial::Replay), "{short:?}");
    let amnesia = run(|n, key| denier(n, key, Fault::Amnesia));
    for trial in [Trial::Crossing, Trial::Survivors, Trial::Timed] {
        assert!(amnesia.contains(&trial), "{amnesia:?}");
    }
    assert!(!amnesia.contains(&Trial::Fresh), "{amnesia:?}");
    let breaks = run(|n, key| denier(n, key, Fault::Breaks));
    assert!(breaks.len() >= 9, "{breaks:?}");
}

#[test]
fn plain_filters_fail_and_the_rival_is_caught() {
    let all = entries();
    let build = |name: &str| all.iter().find(|entry| entry.name == name).unwrap().build;
    for name in ["plain quotient", "plain Bloom"] {
        let failed = failed(2000, 1_500_000, Expected::Fails, build(name));
        assert!(!failed.contains(&Trial::Fresh) && !failed.contains(&Trial::Space), "{name}: {failed:?}");
        for trial in [Trial::Replay, Trial::Mixed, Trial::Crossing, Trial::Survivors, Trial::Concentrate, Trial::Timed]
        {
            assert!(failed.contains(&trial), "{name}: {failed:?}");
        }
    }
    let cuckoo = failed(2000, 3_000_000, Expected::Shown, build("adaptive cuckoo 11 bit"));
    assert!(!cuckoo.contains(&Trial::Fresh) && !cuckoo.contains(&Trial::Replay), "{cuckoo:?}");
    assert!(cuckoo.contains(&Trial::Concentrate), "{cuckoo:?}");
}

#[test]
fn only_what_is_named_takes_part() {
    let options =
        Options { filters: vec!["plain Bloom".into()], ..options(200, 100_000, &[Trial::Churn, Trial::Replay]) };
    let report = run(&options).unwrap();
    let found: Vec<(&str, String)> = report.outcomes.iter().map(|o| (o.filter, o.to_string())).collect();
    assert!(found.iter().all(|pair| pair.0 == "plain Bloom"));
    assert_eq!(found.iter().map(|pair| pair.1.as_str()).collect::<Vec<_>>(), ["-", "FAILS"]);
    assert!(run(&Options { filters: vec!["nothing".into()], ..options }).is_err());
}
