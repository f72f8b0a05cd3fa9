//! the laws of the broom filter: no key is lost, whatever happens; what was repaired stays repaired.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;

use super::super::file::{self, Kind};
use super::super::testing::{Flaky, Liar, Random};
use super::super::{AdaptError, Kept, Mechanism, Memory, Remove, ReverseMap, Shared};
use super::tombstones::Tombstones;
use super::*;
use crate::error::ChangeError;
use crate::math::broom::Plan;

fn options(capacity: u64, rate: f64) -> AdaptiveBuilder<Broom> {
    Broom::with_capacity(capacity).fpr(rate).secret([1, 2])
}

/// A filter whose blocks hold more keys than they should: the yard is busy.
fn crowded(capacity: u64, block: Block, percent: u32) -> Broom {
    let mut broom = options(capacity, 1.0 / 256.0).block(block).build::<u64>().unwrap();
    let now = broom.table.plan;
    let load = now.load * percent / 100;
    let blocks = capacity.div_ceil(load.into());
    broom.table = Table::new(Plan { blocks, load, yard: capacity, ..now });
    broom
}

/// Random operations next to a set. Returns false positives, and how often all keys moved.
fn oracle(mut broom: Broom, operations: u64, most: usize, seed: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let mut map = Memory::new();
    let (mut set, mut live, mut dead, mut found) = (HashSet::new(), vec![], vec![], vec![]);
    let mut repaired = 0;
    for operation in 0..operations {
        match random.below(100) {
            0..10 if live.len() < most => {
                let again = !dead.is_empty() && random.below(2) == 0;
                let key = if again { dead.swap_remove(random.below(dead.len())) } else { random.next() };
                assert_eq!(broom.insert(key, &mut map).unwrap().changed, set.insert(key));
                live.push(key);
                assert!(!broom.insert(key, &mut map).unwrap().changed, "inserted twice");
            }
            10..18 if !live.is_empty() => {
                let key = live.swap_remove(random.below(live.len()));
                broom.remove(key, &mut map).unwrap();
                set.remove(&key);
                dead.push(key);
                assert_eq!(broom.remove(key, &mut map), Err(AdaptError::NotMember));
            }
            other => {
                let replay = other < 50 && !found.is_empty();
                let key = if replay { found[random.below(found.len())] } else { random.next() };
                let yes = broom.contains(key).unwrap();
                if set.contains(&key) {
                    assert!(yes);
                    assert_eq!(broom.adapt(key, &mut map), Err(AdaptError::Member));
                } else {
                    let stats = broom.adapt(key, &mut map).unwrap();
                    assert_eq!(stats.changed, yes);
                    if yes {
                        repaired += 1;
                        found.push(key);
                        found.truncate(3000);
                    }
                }
            }
        }
        for _ in 0..4.min(live.len()) {
            assert!(broom.contains(live[random.below(live.len())]).unwrap(), "lost in operation {operation}");
        }
        if operation % 5000 == 0 {
            assert!(live.iter().all(|&key| broom.contains(key).unwrap()), "lost by operation {operation}");
            assert_eq!((broom.len(), map.len()), (set.len() as u64, set.len()));
            assert_eq!(broom.table.len() + broom.next.as_ref().map_or(0, Table::len), broom.len());
            broom = Broom::restore(broom.snapshot().unwrap()).unwrap();
        }
    }
    (repaired, broom.epoch())
}

#[test]
fn no_key_is_ever_lost() {
    for (block, percent) in [(Block::Small, 100), (Block::Medium, 100), (Block::Large, 100), (Block::Small, 125)] {
        let (repaired, epochs) = oracle(crowded(2000, block, percent), 400_000, 1900, u64::from(percent));
        assert!(repaired > 500 && epochs > 1, "{repaired} repairs, {epochs} epochs");
    }
}

#[test]
fn every_rate_works() {
    for rate in [0.6, 0.3, 0.05, 0.01, 1e-4] {
        oracle(options(500, rate).build::<u64>().unwrap(), 60_000, 500, 9);
    }
}

#[test]
fn the_smallest_filters_work() {
    for capacity in 0..6 {
        oracle(options(capacity, 0.1).build::<u64>().unwrap(), 5000, capacity as usize, capacity);
    }
}

#[test]
fn growing_loses_nothing() {
    let growing = options(16, 0.02).growing().build::<u64>().unwrap();
    oracle(growing, 300_000, usize::MAX, 3);
}

/// Insertions alone must end every growth before the filter is full.
#[test]
fn a_growing_filter_is_never_full() {
    for (capacity, block) in [(1, Block::Small), (100, Block::Medium), (5000, Block::Large)] {
        let mut broom = options(capacity, 0.01).growing().block(block).build::<u64>().unwrap();
        let (mut map, mut most) = (Memory::new(), 0);
        for key in 0..40_000u64 {
            let stats = broom.insert(key, &mut map).unwrap();
            most = most.max(stats.words);
        }
        assert!((0..40_000u64).all(|key| broom.contains(key).unwrap()));
        assert!(broom.capacity() >= 40_000 && broom.capacity() < 4 * 40_000);
        // Nine steps of a few blocks each, and never the whole filter.
        assert!(most < 9 * 8 * block.words() + 2000, "{most} words");
        let strangers = (1 << 40..(1 << 40) + 100_000u64).filter(|&key| broom.contains(key).unwrap()).count();
        assert!(strangers < 1100, "{strangers} of 100,000 at 1 %");
    }
}

/// A pair of an unlisted key and a key that collided once must not collide again under the same hash functions: keys move to the yard and back,
/// are deleted and inserted, and the filter is too full.
fn repeated_pairs(mut broom: Broom, keys: usize, epochs: u64, remember: bool) -> (u64, u64) {
    let mut random = Random(1234);
    let mut map = Memory::new();
    let mut live: Vec<u64> = (0..keys).map(|_| random.next() | 1).collect();
    live.iter().for_each(|&key| assert!(broom.insert(key, &mut map).unwrap().changed));
    let (mut pool, mut pairs, mut repeated, mut fresh) = (vec![], HashSet::new(), 0, 0);
    while broom.epoch() < epochs {
        if random.below(16) == 0 {
            let at = random.below(keys);
            broom.remove(live[at], &mut map).unwrap();
            if !remember {
                broom.table.tombstones = Tombstones::new(broom.table.tombstones.room);
            }
            if random.below(4) == 0 {
                live[at] = random.next() | 1;
            }
            broom.insert(live[at], &mut map).unwrap();
        }
        let stranger =
            if pool.len() < 100 || random.below(4) == 0 { random.next() & !1 } else { pool[random.below(pool.len())] };
        let digest = broom.digest(stranger).unwrap();
        let side = broom.frontier.side(digest);
        let spot = broom.spot(digest, side);
        if let Some(slot) = broom.table.look(&spot).hit {
            let mut found = vec![];
            map.filed(broom.table.name(&spot), &mut found).unwrap();
            let (owner, _) = broom.owner::<()>(side, &spot, slot, &found).unwrap();
            let numbers = (broom.frontier.number(side), broom.frontier.number(broom.frontier.side(owner)));
            fresh += 1;
            repeated += u64::from(!pairs.insert((stranger, owner, numbers)));
            broom.adapt(stranger, &mut map).unwrap();
            pool.push(stranger);
            if pool.len() > 5000 {
                let at = random.below(5000);
                pool.swap_remove(at);
            }
        }
        assert!(broom.contains(live[random.below(keys)]).unwrap());
    }
    (fresh, repeated)
}

#[test]
fn a_repaired_pair_never_meets_again() {
    for percent in [100, 118] {
        let (fresh, repeated) = repeated_pairs(crowded(5000, Block::Medium, percent), 5000, 30, true);
        assert!(fresh > 5000 && repeated == 0, "{repeated} of {fresh} at {percent} %");
    }
}

/// The same without a graveyard: the test above can fail.
#[test]
fn deleting_as_the_paper_does_brings_pairs_back() {
    let (fresh, repeated) = repeated_pairs(crowded(5000, Block::Medium, 100), 5000, 30, false);
    assert!(repeated > 20, "{repeated} of {fresh}");
}

#[test]
fn unlisted_keys_pass_as_often_as_was_promised() {
    for block in [Block::Small, Block::Medium, Block::Large] {
        for rate in [0.2, 1.0 / 256.0] {
            let mut broom = options(50_000, rate).block(block).build::<u64>().unwrap();
            let mut map = Memory::new();
            (0..50_000u64).for_each(|key| assert!(broom.insert(key, &mut map).unwrap().changed));
            let asked = 400_000;
            let passed = (1u64 << 40..(1 << 40) + asked).filter(|&key| broom.contains(key).unwrap()).count() as f64;
            let capacity = broom.capacity() as f64;
            let expected = broom.table.plan.fpr() * 50_000.0 / capacity * asked as f64;
            assert!(passed <= rate * asked as f64);
            // Keys that met one another have longer fingerprints: about `rate` of them, each with a quarter of the chance at most.
            let least = expected * (1.0 - rate) - 5.0 * expected.sqrt();
            assert!((least..expected + 5.0 * expected.sqrt()).contains(&passed), "{passed}, expected {expected}");
        }
    }
}

/// Bytes as allocated; the yard at its full size, and no graveyard before something is buried.
#[test]
fn it_is_as_small_as_promised() {
    for (block, most) in [(Block::Medium, 13.3), (Block::Large, 12.8)] {
        let broom = options(1_000_000, 1.0 / 256.0).block(block).build::<u64>().unwrap();
        let bits = broom.memory_bytes() as f64 * 8.0 / 1e6;
        assert!(bits <= most, "{bits} bits per key");
        let tombstones = 32.0 * 1.3 * broom.table.tombstones.room as f64 / 1e6;
        assert!(tombstones < 1.1, "{tombstones} bits per key more while keys come and go");
    }
}

#[test]
fn full_is_an_error_and_changes_nothing() {
    let mut broom = options(100, 0.01).build::<u64>().unwrap();
    let mut map = Memory::new();
    let capacity = broom.capacity();
    (0..capacity).for_each(|key| assert!(broom.insert(key, &mut map).unwrap().changed));
    let before = broom.snapshot().unwrap();
    let full = ChangeError::Full { keys: capacity, capacity };
    assert_eq!(broom.insert(capacity, &mut map), Err(AdaptError::Change(full)));
    assert_eq!((broom.snapshot().unwrap(), map.len() as u64), (before, capacity));
    assert!(!broom.insert(0u64, &mut map).unwrap().changed, "a full filter knows its keys");
    broom.remove(0u64, &mut map).unwrap();
    assert!(broom.insert(capacity, &mut map).unwrap().changed);
    assert!(broom.insert("text", &mut map).is_err());
    assert!(options(10, 0.0).build::<u64>().is_err() && options(u64::MAX, 0.1).build::<u64>().is_err());
}

/// A yard without room: clear errors, no key lost, and room again after a removal.
#[test]
fn a_full_yard_is_an_error() {
    let mut broom = crowded(400, Block::Small, 300);
    let plan = broom.table.plan;
    broom.table = Table::new(Plan { yard: 0, ..plan });
    let mut map = Memory::new();
    let keys: Vec<u64> = (0..1000u64).filter(|&key| broom.insert(key, &mut map).is_ok()).collect();
    assert!(keys.len() > 100 && keys.len() < 400, "{}", keys.len());
    let mut full = 0;
    for stranger in 1 << 40..(1 << 40) + 20_000u64 {
        match broom.adapt(stranger, &mut map) {
            Ok(_) => {}
            Err(AdaptError::Change(ChangeError::Full { .. })) => full += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(full > 0);
    assert!(keys.iter().all(|&key| broom.contains(key).unwrap()));
    assert_eq!(broom.len(), map.len() as u64);
}

#[test]
fn a_map_that_fails_loses_nothing() {
    for every in [1, 2, 3, 7, 20] {
        let mut broom = options(300, 0.05).growing().build::<u64>().unwrap();
        let mut map = Flaky::new(Memory::new(), every);
        let (mut live, mut failures) = (vec![], 0);
        let mut random = Random(every);
        for operation in 0..30_000u64 {
            let key = random.next();
            let outcome = match random.below(10) {
                0 => broom.insert(key, &mut map).map(|_| live.push(key)),
                1 if live.len() > 200 => {
                    let at = random.below(live.len());
                    broom.remove(live[at], &mut map).map(|_| {
                        live.swap_remove(at);
                    })
                }
                _ => broom.adapt(key, &mut map).map(|_| ()),
            };
            failures += u64::from(outcome.is_err());
            if operation % 100 == 0 {
                assert!(live.iter().all(|&key| broom.contains(key).unwrap()), "every {every}: lost at {operation}");
                assert_eq!((broom.len(), map.inner.len()), (live.len() as u64, live.len()));
            }
        }
        assert!(failures > 50, "{failures}");
    }
}

#[test]
fn a_map_that_lies_loses_nothing() {
    let mut random = Random(5);
    let mut broom = options(1000, 0.05).build::<u64>().unwrap();
    let mut honest = Memory::new();
    let keys: Vec<u64> = (0..1000).map(|_| random.next()).collect();
    keys.iter().for_each(|&key| assert!(broom.insert(key, &mut honest).unwrap().changed));
    let mut refused = 0;
    for (lie, liar) in Liar::all(honest.clone()).into_iter().enumerate() {
        let mut map = liar;
        let mut broom = broom.clone();
        for _ in 0..3000 {
            let stranger = random.next();
            refused += u64::from(broom.adapt(stranger, &mut map).is_err());
            let absent = broom.remove(stranger, &mut map);
            assert!(absent.is_err(), "lie {lie}");
        }
        assert!(keys.iter().all(|&key| broom.contains(key).unwrap()), "lie {lie}: a key is lost");
    }
    assert!(refused > 100);
}

/// Every byte of fields and payloads changed, checksums made right: an error, or a filter that works without a panic.
#[test]
fn damaged_snapshots_never_panic() {
    let mut broom = options(60, 0.05).growing().build::<u64>().unwrap();
    let mut map = Memory::new();
    (0..60u64).for_each(|key| assert!(broom.insert(key, &mut map).unwrap().changed));
    (1000..6000u64).for_each(|key| assert!(broom.adapt(key, &mut map).is_ok()));
    (0..20u64).for_each(|key| assert!(broom.remove(key, &mut map).is_ok()));
    let bytes = broom.snapshot().unwrap();
    (0..bytes.len()).for_each(|at| assert!(Broom::restore(bytes[..at].to_vec()).is_err()));
    let read = file::read(bytes.clone(), None, Kind::Broom).unwrap();
    let fields = {
        let mut from = read.fields();
        from.take(from.len()).unwrap().to_vec()
    };
    let payloads: Vec<Vec<u8>> = read.payloads.iter().map(|payload| payload.to_vec()).collect();
    let (mut refused, mut taken) = (0, 0);
    let places = std::iter::repeat_n(usize::MAX, fields.len()).enumerate();
    let places = places.map(|(at, _)| (usize::MAX, at));
    let inside = payloads.iter().enumerate().flat_map(|(which, payload)| (0..payload.len()).map(move |at| (which, at)));
    for (which, at) in places.chain(inside) {
        for change in [1u8, 0x80, 0xff] {
            let (mut fields, mut payloads) = (fields.clone(), payloads.clone());
            if which == usize::MAX {
                fields[at] ^= change
            } else {
                payloads[which][at] ^= change
            }
            let file = file::write(
                Kind::Broom,
                &broom.frontier.hasher,
                broom.frontier.key_type,
                broom.len,
                &fields,
                &payloads,
            )
            .unwrap();
            let Ok(mut damaged) = Broom::restore(file) else {
                refused += 1;
                continue;
            };
            taken += 1;
            let mut map = map.clone();
            for key in 0..200u64 {
                let _ = damaged.contains(key);
                let _ = damaged.insert(key, &mut map);
                let _ = damaged.adapt(key + 5000, &mut map);
                let _ = damaged.remove(key / 2, &mut map);
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken up");
}

/// A repair reads the map once, and once for every key it moves; a negative, and an insertion that meets nobody, never.
#[test]
fn the_map_is_asked_as_seldom_as_promised() {
    let mut broom = options(20_000, 1.0 / 256.0).build::<u64>().unwrap();
    let mut map = Memory::new();
    let mut reads = 0;
    for key in 0..20_000u64 {
        reads += broom.insert(key, &mut map).unwrap().reads;
    }
    assert!(f64::from(reads) < 20_000.0 / 256.0, "{reads} reads by insertions");
    let (mut repairs, mut reads, mut random) = (0, 0, Random(8));
    while repairs < 20_000 {
        let stats = broom.adapt(random.next() & !1 | 1 << 63, &mut map).unwrap();
        assert!(stats.changed || stats == Default::default());
        repairs += u32::from(stats.changed);
        reads += stats.reads;
    }
    let each = f64::from(reads) / f64::from(repairs);
    assert!(each <= 5.02, "{each} reads for each repair");
}

/// Readers next to a writer that inserts, repairs, removes and grows: what was in before a query began, and stays, is found.
#[test]
fn readers_never_miss_a_key() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let shared = Shared::new(options(64, 0.05).growing().build::<u64>().unwrap());
    let (inserted, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (shared, inserted, done) = (&shared, &inserted, &done);
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut asked = 0u64;
                while done.load(Ordering::Acquire) == 0 || asked < 1000 {
                    let known = inserted.load(Ordering::Acquire);
                    if known > 0 {
                        let key = random.below(known as usize) as u64;
                        assert!(shared.contains(key).unwrap(), "{key} of {known} is missed");
                        asked += 1;
                    }
                }
            });
        }
        let mut map = Memory::new();
        let mut random = Random(77);
        for key in 0..6000u64 {
            shared.insert(key, &mut map).unwrap();
            inserted.store(key + 1, Ordering::Release);
            for _ in 0..10 {
                shared.adapt(random.next() | 1 << 63, &mut map).unwrap();
            }
            let passing = 1 << 40 | key;
            shared.insert(passing, &mut map).unwrap();
            shared.remove(passing, &mut map).unwrap();
        }
        done.store(1, Ordering::Release);
    });
    shared.read(|broom| assert!(broom.epoch() > 3 && broom.len() == 6000));
}
