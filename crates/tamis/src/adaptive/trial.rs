//! a filter -> what every adaptive filter must stand: operations next to an oracle, maps that fail or lie, snapshots, damage.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::file::{self, Kind};
use super::testing::{Flaky, Liar, Random};
use super::{
    Adapt, AdaptError, AdaptiveQuotient, Cascade, ChangeStats, Cuckoos, Memory, Quotients, Remove, ReverseMap, Segments,
};
use crate::error::ChangeError;
use crate::hash::{Digest, Key};

/// Keys are below this, unlisted keys are not.
pub(super) const UNLISTED: u64 = 1 << 32;

/// Removal where a filter has it, so that tests of all filters are written once.
pub(super) trait Removal: Adapt {
    /// Removes a key; none: this filter removes nothing.
    fn take<M: ReverseMap>(&mut self, key: u64, map: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>>;
}

macro_rules! removal {
    ($($filter:ty),*) => { $(
        impl Removal for $filter {
            fn take<M: ReverseMap>(&mut self, key: u64, map: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>> {
                Some(self.remove(key, map))
            }
        }
    )* };
}
removal!(AdaptiveQuotient, Cascade<Quotients>, Cascade<Cuckoos>);

impl Removal for Cascade<Segments> {
    fn take<M: ReverseMap>(&mut self, _: u64, _: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>> {
        None
    }
}

/// The keys of a set; every member must match.
pub(super) fn check<F: Adapt>(filter: &F, keys: &BTreeSet<u64>) {
    assert_eq!(filter.len(), keys.len() as u64);
    for &key in keys {
        assert!(filter.contains(key).unwrap(), "key {key} is lost");
    }
}

/// Unlisted keys that the filter lets through, from `from` on; as many as are wanted, or as the first `tries` have.
pub(super) fn false_positives<F: Adapt>(filter: &F, from: u64, tries: u64, wanted: usize) -> Vec<u64> {
    (UNLISTED + from..UNLISTED + from + tries).filter(|&key| filter.contains(key).unwrap()).take(wanted).collect()
}

/// Random operations next to a set: no key is lost, removed keys can be repaired and come back, repairs hold until the hash function or the set
/// changes, a snapshot goes on as the filter does.
pub(super) fn oracle<F: Removal>(mut filter: F, rounds: u64, universe: usize, seed: u64) {
    let mut map = Memory::new();
    let mut random = Random(seed);
    let mut keys = BTreeSet::new();
    let mut repaired: Vec<u64> = vec![];
    for round in 0..rounds {
        let key = random.below(universe) as u64;
        match random.below(8) {
            0..3 => match filter.insert(key, &mut map) {
                Ok(stats) => {
                    assert_eq!(stats.changed, keys.insert(key), "round {round}, key {key}");
                    repaired.clear();
                }
                Err(AdaptError::Change(ChangeError::Full { keys: found, capacity })) => {
                    assert_eq!((found, capacity), (keys.len() as u64, filter.capacity()));
                    assert!(found >= capacity && !keys.contains(&key), "round {round}: full too early");
                    // Steps that were due may have been made to find room.
                    repaired.clear();
                }
                Err(e) => panic!("round {round}: {e:?}"),
            },
            3..5 => match filter.take(key, &mut map) {
                None => {}
                Some(Ok(stats)) => {
                    assert!(stats.changed && keys.remove(&key), "round {round}, key {key}");
                    if stats.moved > 0 {
                        repaired.clear();
                    }
                }
                Some(Err(e)) => assert!(e == AdaptError::NotMember && !keys.contains(&key), "round {round}: {e:?}"),
            },
            _ => {
                let unlisted = if random.below(4) == 0 { key } else { UNLISTED + random.below(1 << 16) as u64 };
                let passed = filter.contains(unlisted).unwrap();
                match filter.adapt(unlisted, &mut map) {
                    Ok(stats) => {
                        assert!(!keys.contains(&unlisted) && stats.changed == passed);
                        assert!(stats.changed || stats.reads == 0, "a refusal reads nothing");
                        match stats.moved {
                            0 => repaired.push(unlisted),
                            _ => repaired.clear(),
                        }
                    }
                    Err(e) => assert!(e == AdaptError::Member && keys.contains(&unlisted), "round {round}: {e:?}"),
                }
            }
        }
        assert_eq!(map.len(), keys.len());
        if round % 64 == 0 {
            check(&filter, &keys);
            for &unlisted in &repaired {
                assert!(
                    keys.contains(&unlisted) || !filter.contains(unlisted).unwrap(),
                    "round {round}: {unlisted} again"
                );
            }
        }
        if round % 1000 == 999 {
            let again = F::restore(filter.snapshot().unwrap()).unwrap();
            let (a, b) = (again.snapshot().unwrap(), filter.snapshot().unwrap());
            assert!(a == b && again.epoch() == filter.epoch() && again.pending_moves() == filter.pending_moves());
            for unlisted in UNLISTED..UNLISTED + 500 {
                assert_eq!(again.contains(unlisted), filter.contains(unlisted));
            }
            filter = again;
        }
    }
    let removed = keys.iter().filter_map(|&key| filter.take(key, &mut map)).map(Result::unwrap).count() as u64;
    assert_eq!((filter.len() + removed, map.len() as u64 + removed), (keys.len() as u64, keys.len() as u64));
}

/// Every operation with a map that fails now and then, and again until it is done.
pub(super) fn failing_map<F: Removal>(make: impl Fn() -> F, n: u64) {
    for every in [1, 2, 3, 7, 20] {
        let (mut filter, mut map) = (make(), Flaky::new(Memory::new(), every));
        let mut keys = BTreeSet::new();
        let mut failures = 0;
        fn until<T, E: Debug + PartialEq>(mut f: impl FnMut() -> Result<T, AdaptError<E>>, failures: &mut u64) -> T {
            for _ in 0..10_000 {
                match f() {
                    Ok(done) => return done,
                    // Steps that were not made for long fill a generation; they are made up for.
                    Err(AdaptError::Store(_) | AdaptError::Change(ChangeError::Full { .. })) => *failures += 1,
                    Err(e) => panic!("{e:?}"),
                }
            }
            panic!("no end")
        }
        /// Whether the key is gone now.
        fn take<F: Removal>(filter: &mut F, key: u64, map: &mut Flaky<Memory>, failures: &mut u64) -> bool {
            until(|| filter.take(key, map).transpose(), failures).is_some()
        }
        for key in 0..n {
            until(|| filter.insert(key, &mut map), &mut failures);
            keys.insert(key);
            for unlisted in false_positives(&filter, key * 100, 100, 3) {
                until(|| filter.adapt(unlisted, &mut map), &mut failures);
                check(&filter, &keys);
            }
            if key % 5 == 4 && take(&mut filter, key - 2, &mut map, &mut failures) {
                keys.remove(&(key - 2));
            }
        }
        check(&filter, &keys);
        assert!(failures > 0);
        keys.retain(|&key| !take(&mut filter, key, &mut map, &mut failures));
        assert_eq!((filter.len(), map.inner.len()), (keys.len() as u64, keys.len()));
    }
}

/// A map that lies spoils repairs and steps, and loses no key.
pub(super) fn lying_map<F: Adapt + Clone>(mut filter: F, n: u64) {
    let mut map = Memory::new();
    for key in 0..n {
        filter.insert(key, &mut map).unwrap();
    }
    let keys: BTreeSet<u64> = (0..n).collect();
    for (number, mut liar) in Liar::all(map).into_iter().enumerate() {
        let mut filter = filter.clone();
        let mut refused = 0;
        for unlisted in false_positives(&filter, 0, 200_000, 400) {
            refused += u64::from(filter.adapt(unlisted, &mut liar).is_err());
            let lost = keys.iter().find(|&&key| !filter.contains(key).unwrap());
            assert_eq!(lost, None, "lie {number}");
        }
        assert!(number > 2 || refused > 0, "lie {number} was believed");
    }
}

/// Snapshots cut anywhere or with any byte changed are rejected; with checksums made right again they are rejected or go on without panic.
pub(super) fn damage<F: Removal>(filter: &F, kind: Kind) {
    let bytes = filter.snapshot().unwrap();
    for len in (0..bytes.len()).step_by(1 + bytes.len() / 700) {
        assert!(F::restore(bytes[..len].to_vec()).is_err(), "{len} of {} bytes", bytes.len());
        let mut flipped = bytes.clone();
        flipped[len] ^= 1 << (len % 8);
        assert!(F::restore(flipped).is_err(), "byte {len} of {}", bytes.len());
    }
    let read = file::read(bytes, None, kind).unwrap();
    let mut from = read.fields();
    let fields = from.take(from.len()).unwrap().to_vec();
    let payloads: Vec<Vec<u8>> = read.payloads.iter().map(|payload| payload.to_vec()).collect();
    let (hasher, key_type) = (&read.header.hasher, read.header.key_type);
    let mut accepted = 0;
    let mut open = |keys: u64, fields: &[u8], payloads: &[Vec<u8>]| {
        let again = file::write(kind, hasher, key_type, keys, fields, payloads).unwrap();
        let Ok(mut filter) = F::restore(again) else { return };
        accepted += 1;
        let mut map = Memory::new();
        for key in 0..40u64 {
            let _ = filter.insert(key, &mut map);
            let _ = filter.adapt(UNLISTED + key, &mut map);
            let _ = filter.take(key * 3, &mut map);
        }
    };
    let keys = read.header.keys;
    [0, 1, keys + 1, u64::MAX].into_iter().for_each(|keys| open(keys, &fields, &payloads));
    for at in 0..fields.len() {
        for change in [1, 2, 0x40, 0x80, 0xff, fields[at]] {
            let mut changed = fields.clone();
            changed[at] ^= change;
            open(keys, &changed, &payloads);
        }
        open(keys, &fields[..at], &payloads);
    }
    for number in 0..payloads.len() {
        let len = payloads[number].len();
        let mut changed = payloads.clone();
        for at in (0..len).step_by(1 + len / 200) {
            for change in [1 << (at % 8), 0xff] {
                changed[number][at] ^= change;
                open(keys, &fields, &changed);
                changed[number][at] ^= change;
            }
        }
        for other in [0, len.saturating_sub(8), len.saturating_sub(1), len + 1, len + 8] {
            changed[number].resize(other, 1);
            open(keys, &fields, &changed);
            changed[number].clone_from(&payloads[number]);
        }
        changed.remove(number);
        open(keys, &fields, &changed);
    }
    assert!(accepted > 0, "nothing was let in: the test looks at nothing");
}

/// Remove every key, insert it again, query again what was found to be false: nothing comes back while the hash function stays.
pub(super) fn churn_and_replay<F: Remove>(mut filter: F, n: u64, wanted: usize) {
    let mut map = Memory::new();
    for key in 0..n {
        filter.insert(key, &mut map).unwrap();
    }
    let epoch = filter.epoch();
    let found = false_positives(&filter, 0, 10_000_000, wanted);
    assert_eq!(found.len(), wanted);
    // A key that moves to a level may meet one of those that were sent there before: so once more, until all are rejected.
    for _ in 0..100 {
        for &unlisted in &found {
            let stats = filter.adapt(unlisted, &mut map).unwrap();
            assert!(!filter.contains(unlisted).unwrap());
            assert_eq!(stats.moved, 0, "the filter is too small for this test");
        }
    }
    let repaired = found;
    assert!(repaired.iter().all(|&unlisted| !filter.contains(unlisted).unwrap()), "replayed");
    for round in 0..2 {
        let mut moved = 0;
        for key in 0..n {
            moved += filter.remove(key, &mut map).unwrap().moved;
            moved += filter.insert(key, &mut map).unwrap().moved;
        }
        assert_eq!((moved, filter.epoch()), (0, epoch), "the filter is too small for this test");
        let back = repaired.iter().filter(|&&unlisted| filter.contains(unlisted).unwrap()).count();
        assert_eq!(back, 0, "round {round}: {back} of {} came back", repaired.len());
    }
}

/// The share of unlisted keys that pass lies within five deviations of `expected`.
pub(super) fn rate<F: Adapt>(filter: &F, expected: f64, queries: u64) {
    let found = false_positives(filter, 0, queries, usize::MAX).len() as f64;
    let mean = expected * queries as f64;
    let deviation = (mean * (1.0 - expected)).sqrt();
    assert!(
        (found - mean).abs() <= 5.0 * deviation,
        "{found} of {queries} unlisted keys passed, expected {mean:.0} ± {deviation:.0}"
    );
}

/// Fresh unlisted keys until `repairs` of them were repaired: returns the number of queries, the most bytes, the most words of a repair.
pub(super) fn attack<F: Adapt, M: ReverseMap>(filter: &mut F, map: &mut M, from: u64, repairs: u64) -> (u64, usize, u32)
where
    M::Error: Debug + PartialEq,
{
    let (mut queries, mut bytes, mut words) = (0, 0, 0);
    let mut done = 0;
    while done < repairs {
        let unlisted = UNLISTED + from + queries;
        queries += 1;
        if filter.contains(unlisted).unwrap() {
            let stats = filter.adapt(unlisted, map).unwrap();
            assert!(stats.changed);
            (bytes, words) = (bytes.max(filter.memory_bytes()), words.max(stats.words));
            done += 1;
        }
    }
    (queries, bytes, words)
}

/// The digest of a key, for maps.
pub(super) fn digest<F: Adapt>(filter: &F, key: u64) -> Digest {
    key.digest(filter.hasher())
}
