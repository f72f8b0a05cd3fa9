#![allow(clippy::unwrap_used)]
use super::entry::MAX_EXTRA_BITS;
use super::*;
use crate::adaptive::file::Kind;
use crate::adaptive::testing::Random;
use crate::adaptive::{Adapt, AdaptError, Mechanism, Memory, Remove, ReverseMap, Task, trial};
use crate::error::ChangeError;

fn builder(capacity: u64, rate: f64, steps: u32) -> AdaptiveBuilder<AdaptiveQuotient> {
    AdaptiveQuotient::with_capacity(capacity).fpr(rate).moves_per_adapt(steps).secret([1, 2])
}

fn made(capacity: u64, rate: f64, steps: u32) -> AdaptiveQuotient {
    builder(capacity, rate, steps).build::<u64>().unwrap()
}

fn filled(capacity: u64, rate: f64, steps: u32) -> (AdaptiveQuotient, Memory) {
    let (mut filter, mut map) = (made(capacity, rate, steps), Memory::new());
    (0..capacity).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
    (filter, map)
}

/// No fingerprint is a prefix of another.
fn prefix_free(filter: &AdaptiveQuotient) {
    let words = filter.long.sorted();
    let live: Vec<Entry> = words.into_iter().map(Entry::unpack).filter(|entry| !entry.tombstone).collect();
    for (i, one) in live.iter().enumerate() {
        let same = live.iter().filter(|other| other.base == one.base).count() as u64;
        assert_eq!(filter.copies(one.base), same, "a bare fingerprint beside a longer one");
        for other in live.iter().skip(i + 1).take_while(|other| other.base == one.base) {
            let len = one.len.min(other.len);
            // The further bits lie lowest first: shift them to the same place.
            let top = |entry: &Entry| (entry.pack() >> 8 & ((1 << MAX_EXTRA_BITS) - 1)) >> (entry.len - len);
            assert!(top(one) != top(other), "{one:?} and {other:?}");
        }
    }
}

#[test]
fn no_key_is_ever_lost() {
    for (capacity, rate, steps, universe) in
        [(200, 0.5, 4, 250), (200, 0.25, 8, 250), (500, 0.1, 32, 5000), (2000, 0.5, 4, 1500), (64, 0.01, 128, 100)]
    {
        trial::oracle(made(capacity, rate, steps), 12_000, universe, capacity + u64::from(steps));
    }
}

#[test]
fn the_smallest_filters_work() {
    for capacity in 0..40 {
        let (mut filter, mut map) = filled(capacity, 0.3, 4);
        let full = filter.insert(capacity, &mut map).unwrap_err();
        assert_eq!(full, ChangeError::Full { keys: capacity, capacity }.into());
        trial::oracle(made(capacity, 0.3, 4), 600, 60, capacity);
    }
    for (capacity, rate, steps) in [(10, 0.0, 8), (10, 0.7, 8), (10, f64::NAN, 8), (1 << 37, 0.01, 8), (10, 0.1, 3)] {
        let wrong = builder(capacity, rate, steps).build::<u64>();
        assert!(
            matches!(wrong, Err(BuildError::Range { .. } | BuildError::Fingerprints { .. })),
            "{capacity}, {rate}, {steps}"
        );
    }
}

#[test]
fn a_failing_map_loses_nothing() {
    trial::failing_map(|| made(400, 0.3, 8), 300);
    trial::failing_map(|| made(60, 0.5, 4), 60);
}

#[test]
fn a_lying_map_loses_nothing() {
    trial::lying_map(made(1000, 0.002, 16), 1000);
}

#[test]
fn damaged_files_are_rejected_or_harmless() {
    let (mut filter, mut map) = filled(60, 0.3, 4);
    trial::damage(&filter, Kind::Quotient);
    trial::attack(&mut filter, &mut map, 0, 7);
    for key in (0..60u64).step_by(7) {
        filter.remove(key, &mut map).unwrap();
    }
    trial::damage(&filter, Kind::Quotient);
}

#[test]
fn rates_are_those_of_the_table() {
    let n = 50_000;
    let (filter, _) = filled(n, 1.0 / 64.0, 16);
    let (slots, remainder) = size(n, 1.0 / 64.0).unwrap();
    // Keys that collide among themselves are longer already, and a few unlisted keys fewer pass.
    trial::rate(&filter, crate::math::quotient::rate(n, slots, remainder) * (1.0 - 0.5 / 64.0), 400_000);
    prefix_free(&filter);
}

/// What was repaired is rejected as long as its hash function lives, whatever is repaired meanwhile.
#[test]
fn repairs_hold() {
    let (mut filter, mut map) = filled(3000, 0.1, 4);
    let mut repaired: Vec<u64> = vec![];
    let mut queries = 0;
    while filter.epoch() < 3 {
        let found = trial::false_positives(&filter, queries, 1000, 1);
        let Some(&stranger) = found.first() else { continue };
        queries = stranger - trial::UNLISTED + 1;
        filter.adapt(stranger, &mut map).unwrap();
        repaired.push(stranger);
        // Keys that move are new to all unlisted keys: a few of these pass again.
        let again = repaired.iter().filter(|&&stranger| filter.contains(stranger).unwrap()).count();
        assert!(again <= 5 + repaired.len() / 4, "{again} of {}", repaired.len());
        if queries % 64 == 0 {
            prefix_free(&filter);
        }
    }
    prefix_free(&filter);
}

/// Remove, insert, ask again: the buried fingerprint is as long as it was.
#[test]
fn removed_keys_come_back_as_long_as_they_were() {
    let mut random = Random(1);
    let mut came_back = 0;
    for seed in 0..20 {
        let mut filter = builder(4000, 0.05, 4).secret([seed, 9]).build::<u64>().unwrap();
        let mut map = Memory::new();
        (0..4000u64).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
        let epoch = filter.epoch();
        let found = trial::false_positives(&filter, 0, 100_000, 100);
        for stranger in found {
            let before = filter.frontier.last;
            let side = |filter: &AdaptiveQuotient, key| filter.frontier.side(trial::digest(filter, key));
            let place = filter.place_of(trial::digest(&filter, stranger));
            let owners: Vec<u64> =
                (0..4000u64).filter(|&key| filter.place_of(trial::digest(&filter, key)).base == place.base).collect();
            let sides: Vec<Side> = owners.iter().chain([&stranger]).map(|&key| side(&filter, key)).collect();
            filter.adapt(stranger, &mut map).unwrap();
            for &owner in &owners {
                filter.remove(owner, &mut map).unwrap();
                if random.below(2) == 0 {
                    filter = AdaptiveQuotient::restore(filter.snapshot().unwrap()).unwrap();
                }
                filter.insert(owner, &mut map).unwrap();
            }
            // Those that moved meanwhile have another hash function.
            let now: Vec<Side> = owners.iter().chain([&stranger]).map(|&key| side(&filter, key)).collect();
            if now == sides && filter.epoch() == epoch && before <= filter.frontier.last {
                came_back += 1;
                let culprit = filter.in_table(&filter.place_of(trial::digest(&filter, stranger)));
                // A key that moved may be to blame now, under the other hash function.
                let moved = |entry: Match| match entry {
                    Match::Long(entry) => entry.parity != place.parity,
                    Match::Bare | Match::Whole => owners.is_empty(),
                };
                assert!(culprit.is_none_or(moved), "{stranger} came back: {culprit:?}");
            }
        }
    }
    assert!(came_back > 500, "{came_back} cases");
}

/// Two keys that agree in all of their bits: one of them is kept whole, found, removed, remembered.
#[test]
fn keys_that_agree_are_kept_whole() {
    let mut filter = made(100, 0.1, 16);
    let mut map = Memory::new();
    // Bits of the hash are what the filter makes of a digest: look for one that agrees with the first key by changing what a place is.
    let key = trial::digest(&filter, 1);
    filter.run(Task::Insert(key), &mut map).unwrap();
    let place = filter.place_of(key);
    let twin = Place { rest: place.rest ^ 1 << 40, whole: !place.whole, ..place };
    assert!(place.common(&twin) >= MAX_EXTRA_BITS);
    let arrival = filter.arrive::<()>(Digest { hi: 5, lo: 5 }, twin, None, || Ok(vec![key])).unwrap();
    assert!(format!("{arrival:?}").contains("to: Whole, other: None"), "{arrival:?}");
    // A file may hold such a key: take one up, and let it come and go.
    let change = |filter: &mut AdaptiveQuotient, digest: Digest, map: &mut Memory| {
        let place = filter.place_of(digest);
        assert!(filter.whole.insert(Whole::pack(&place, false)).is_some());
        filter.whole_keys += 1;
        filter.old += 1;
        map.file(digest, 1 << 63 | Whole::upper(&place)).unwrap();
    };
    let other = trial::digest(&filter, 2);
    change(&mut filter, other, &mut map);
    assert!(filter.contains(2u64).unwrap() && !filter.insert(2u64, &mut map).unwrap().changed);
    assert_eq!(filter.adapt(2u64, &mut map), Err(AdaptError::Member));
    filter.remove(2u64, &mut map).unwrap();
    assert!(!filter.contains(2u64).unwrap());
    if filter.tombstones() == 1 {
        filter.insert(2u64, &mut map).unwrap();
        assert_eq!((filter.whole_keys, filter.contains(2u64)), (1, Ok(true)));
    }
    while filter.epoch() < 2 {
        filter.run(Task::Move, &mut map).unwrap();
    }
    assert_eq!((filter.tombstones(), filter.whole_keys), (0, 0));
    assert!(filter.contains(1u64).unwrap());
}

#[test]
fn the_rate_holds_under_attack() {
    let (capacity, rate) = (5000, 1.0 / 32.0);
    let (mut filter, mut map) = filled(capacity, rate, 16);
    let mut random = Random(3);
    let mut positives: Vec<u64> = vec![];
    let mut from = 0;
    while filter.epoch() < 5 {
        let mut passed = 0u64;
        for _ in 0..20_000 {
            let replay = random.below(2) == 0 && !positives.is_empty();
            from += 1;
            let stranger = if replay { positives[random.below(positives.len())] } else { trial::UNLISTED + from };
            if filter.contains(stranger).unwrap() {
                passed += 1;
                positives.push(stranger);
                let stats = filter.adapt(stranger, &mut map).unwrap();
                assert!(stats.reads <= 1 + 16 + 6, "{stats:?}");
            }
        }
        let mean = rate * 20_000.0;
        assert!((passed as f64) < mean + 5.0 * mean.sqrt(), "{passed} of 20,000, at most {mean}");
        assert!(!filter.is_full() && filter.pending_moves() <= 16);
    }
    assert!((0..capacity).all(|key| filter.contains(key).unwrap()));
}

/// Unlisted keys are repaired at full speed while all keys go and come again: the table of longer fingerprints is never full.
#[test]
fn deleting_and_inserting_all_keys_fills_no_table() {
    for (n, rate, steps) in [(4000u64, 1.0 / 64.0, 16), (2000, 1.0 / 8.0, 32), (4000, 1.0 / 256.0, 8)] {
        let mut filter = builder(n, rate, steps).secret([5, 6]).build::<u64>().unwrap();
        let mut map = Memory::new();
        (0..n).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
        let (mut repairs, mut stranger) = (0, 1u64 << 40);
        for round in 0..12u64 {
            while repairs < 60 * (round + 1) {
                stranger += 1;
                repairs += u64::from(filter.adapt(stranger, &mut map).unwrap().changed);
            }
            for key in 0..n {
                filter.remove(key, &mut map).unwrap();
                // Every fourth comes back later.
                if key % 4 > 0 {
                    filter.insert(key, &mut map).unwrap();
                }
            }
            (0..n).filter(|key| key % 4 == 0).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
        }
        assert!((0..n).all(|key| filter.contains(key).unwrap()));
    }
}
