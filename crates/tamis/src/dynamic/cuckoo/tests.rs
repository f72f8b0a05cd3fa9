//! additions, removals and snapshots in any order -> what a multiset says, or an error that changes nothing.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::hash::{Digest, Hasher, scramble};
use crate::{Effort, Filter, Kind};

/// With number 0, so that a test does the same each time.
fn fixed(capacity: u64, fpr: f64, hasher: Hasher, other_form: bool) -> Cuckoo {
    Cuckoo::numbered(&Options { capacity, fpr, hasher, secret_beside: false, other_form }, KeyType::Integer, 0).unwrap()
}

fn both(capacity: u64, rate: f64) -> [Cuckoo; 2] {
    [false, true].map(|semi_sorted| fixed(capacity, rate, Hasher::seeded(3), semi_sorted))
}

#[test]
fn every_capacity_is_reached() {
    for rate in [0.3, 0.03, 0.001, 1e-6] {
        for capacity in (0..300).chain([500, 1000, 3000, 20_000]) {
            for mut filter in both(capacity, rate) {
                assert!(filter.is_empty() && filter.fpr() == 0.0 && filter.capacity() == capacity);
                assert!(!filter.contains(7u64).unwrap() && !filter.remove(7u64).unwrap());
                for key in 0..capacity {
                    filter.insert(key).unwrap();
                }
                assert!((0..capacity).all(|key| filter.contains(key).unwrap()), "{capacity} keys at {rate}");
                assert_eq!(filter.len(), capacity);
                assert!(filter.fpr() <= rate, "{capacity} keys at {rate}: {}", filter.fpr());
                for key in 0..capacity {
                    assert!(filter.remove(key).unwrap(), "{capacity} keys at {rate}");
                }
                assert!(filter.is_empty() && filter.0.table.payload.iter().all(|&byte| byte == 0));
            }
        }
    }
}

/// Of 100,000 filters at most one is full below its capacity, whatever capacity, rate, keys and number.
#[test]
fn no_filter_is_full_below_its_capacity() {
    let filters = std::env::var("TAMIS_CUCKOO_FILTERS").map_or(20_000, |filters| filters.parse().unwrap());
    let share = |seed: u64| scramble(seed) as f64 / u64::MAX as f64;
    let mut full = vec![];
    for i in 0..filters {
        let (capacity, fpr) = (20.0 * 250f64.powf(share(2 * i)), 0.5 * 0.002f64.powf(share(2 * i + 1)));
        let options = Options {
            capacity: capacity as u64,
            fpr,
            hasher: Hasher::seeded(i),
            secret_beside: false,
            other_form: i % 4 == 0,
        };
        let number = (scramble(!i) >> 32) as u32;
        let mut filter = Cuckoo::numbered(&options, KeyType::Integer, number).unwrap();
        if (0..options.capacity).any(|key| filter.insert(key).is_err()) {
            full.push((options.capacity, fpr, filter.len()));
        }
    }
    assert!(full.len() as u64 * 100_000 <= filters, "{} of {filters}; capacity, fpr, keys: {full:?}", full.len());
}

#[test]
fn a_full_filter_loses_nothing() {
    for rate in [0.3, 0.01, 1e-7] {
        for capacity in [0, 1, 5, 100, 2000] {
            for mut filter in both(capacity, rate) {
                let mut keys = 0u64;
                let error = loop {
                    let before = filter.0.table.payload.clone();
                    match filter.insert(keys) {
                        Ok(()) => keys += 1,
                        Err(error) => {
                            assert!(filter.0.table.payload == before, "{capacity} keys at {rate}");
                            break error;
                        }
                    }
                };
                assert_eq!(error, ChangeError::Full { keys, capacity });
                let text = format!("capacity {capacity}: full with {keys} keys; build a larger filter");
                assert_eq!(error.to_string(), text);
                assert!(filter.len() == keys && keys >= capacity);
                assert!((0..keys).all(|key| filter.contains(key).unwrap()), "{capacity} keys at {rate}");
                // What goes makes room.
                assert!(filter.remove(0u64).unwrap());
                filter.insert(0u64).unwrap();
                assert!((0..keys).all(|key| filter.contains(key).unwrap()), "{capacity} keys at {rate}");
            }
        }
    }
}

#[test]
fn a_key_can_be_there_eight_times() {
    for mut filter in both(1000, 0.001) {
        (0..8).for_each(|_| filter.insert(5u64).unwrap());
        let before = filter.0.table.payload.clone();
        assert_eq!(filter.insert(5u64), Err(ChangeError::Full { keys: 8, capacity: 1000 }));
        assert!(filter.0.table.payload == before);
        (10..500u64).for_each(|key| filter.insert(key).unwrap());
        for left in (0..8).rev() {
            assert!(filter.contains(5u64).unwrap() && filter.remove(5u64).unwrap());
            assert_eq!(filter.len(), 490 + left);
        }
        assert!(!filter.remove(5u64).unwrap() && (10..500u64).all(|key| filter.contains(key).unwrap()));
    }
}

/// A key with a digest that somebody chose.
struct Chosen(Digest);

impl Key for Chosen {
    const KEY_TYPE: KeyType = KeyType::Integer;
    fn digest(&self, _: &Hasher) -> Digest {
        self.0
    }
}

/// Digests with the same bits under the first thousand numbers: a table whose number is known takes eight of each.
#[test]
fn no_keys_can_be_chosen_that_fill_it() {
    let capacity = 100_000;
    let builder = Cuckoo::with_capacity(capacity);
    for builder in [builder.clone(), builder.semi_sorted()] {
        let mut filter = builder.build::<u64>().unwrap();
        for number in 0..1000 {
            for digest in SALT.child(number).alike(number, 40) {
                filter.insert(Chosen(digest)).unwrap();
            }
        }
        let restored = Cuckoo::restore(filter.snapshot().unwrap()).unwrap();
        assert!(SALT.child(0).alike(0, 40).into_iter().all(|digest| restored.contains(Chosen(digest)).unwrap()));
    }
    let mut known = fixed(capacity, 0.01, Hasher::seeded(0), false);
    let taken = SALT.child(0).alike(0, 40).into_iter().take_while(|&digest| known.insert(Chosen(digest)).is_ok());
    assert_eq!(taken.count(), 8);
}

#[test]
fn the_number_is_random_unless_there_is_a_secret() {
    let of = |hasher| Cuckoo::with_capacity(10).hasher(hasher).build::<u64>().unwrap().snapshot().unwrap();
    let seeded: std::collections::HashSet<Vec<u8>> = (0..20).map(|_| of(Hasher::seeded(0))).collect();
    assert!(seeded.len() >= 19, "{} of 20", seeded.len());
    assert_eq!(of(Hasher::secret([1, 2])), of(Hasher::secret([1, 2])));
}

#[test]
fn keys_stay_through_snapshots() {
    for mut filter in both(2000, 0.01) {
        for round in 0..4u64 {
            (round * 500..round * 500 + 500).for_each(|key| filter.insert(key).unwrap());
            let bytes = filter.snapshot().unwrap();
            let opened = Filter::open(bytes.clone()).unwrap();
            assert_eq!((opened.len(), opened.fpr()), (filter.len(), filter.fpr()));
            filter = Cuckoo::restore(bytes.clone()).unwrap();
            assert!(filter.snapshot().unwrap() == bytes && filter.capacity() == 2000);
            for key in 0..round * 500 + 500 {
                assert!(filter.contains(key).unwrap() && opened.contains(key).unwrap());
            }
        }
        let found = (10_000..60_000u64).filter(|&key| filter.contains(key).unwrap()).count() as f64;
        let expected = filter.fpr() * 50_000.0;
        assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found} strangers, expected {expected}");
    }
}

#[test]
fn a_built_filter_can_be_taken_up() {
    for effort in [Effort::Balanced, Effort::Smallest] {
        let built = crate::build(0..500u64).kind(Kind::Cuckoo).effort(effort).finish().unwrap();
        let mut filter = Cuckoo::restore(built.as_bytes().to_vec()).unwrap();
        assert_eq!((filter.len(), filter.capacity(), filter.fpr()), (500, 500, built.fpr()));
        assert!((0..250u64).all(|key| filter.remove(key).unwrap()));
        (1000..1200u64).for_each(|key| filter.insert(key).unwrap());
        assert!((250..500u64).chain(1000..1200).all(|key| filter.contains(key).unwrap()));
        assert_eq!(filter.len(), 450);
    }
}

#[test]
fn what_cannot_be_taken_up_is_rejected() {
    let error = |bytes: &[u8]| Cuckoo::restore(bytes.to_vec()).unwrap_err().to_string();
    let ribbon = crate::build(0..500u64).finish().unwrap();
    assert_eq!(error(ribbon.as_bytes()), "invalid file: not a cuckoo filter");
    let empty = crate::build([0u64; 0]).kind(Kind::Cuckoo).finish().unwrap();
    assert_eq!(error(empty.as_bytes()), "invalid file: a cuckoo filter without a table takes no keys");
    let [plain, _] = both(10, 0.01);
    let mut bytes = plain.snapshot().unwrap();
    bytes[50] ^= 1;
    assert_eq!(error(&bytes), "damaged: the checksum of the payload does not match; copy or build the file again");
    assert!(plain.contains("text").is_err() && plain.clone().insert("text").is_err());
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        let error = Cuckoo::with_capacity(10).fpr(rate).build::<u64>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("fpr {rate}: out of range; expected 0 to 1")), "{error}");
    }
    let error = |capacity, rate| Cuckoo::with_capacity(capacity).fpr(rate).build::<u64>().unwrap_err().to_string();
    assert!(error(10, 1e-12).starts_with("fpr 1e-12: too small for kind cuckoo"));
}

/// A payload that nobody wrote, behind a checksum that holds: all calls end, and counts stay what they can be.
#[test]
fn hostile_snapshots_neither_panic_nor_loop() {
    for (round, filter) in both(200, 0.01).into_iter().cycle().take(40).enumerate() {
        let mut hostile = filter;
        for (i, byte) in hostile.0.table.payload.iter_mut().enumerate() {
            *byte = match round % 5 {
                0 => 0xff,
                1 => 0x11,
                _ => scramble((round * 1000 + i) as u64) as u8,
            };
        }
        let mut restored = Cuckoo::restore(hostile.snapshot().unwrap()).unwrap();
        for key in 0..300u64 {
            let before = restored.0.table.payload.clone();
            match restored.insert(key) {
                Ok(()) => assert!(restored.contains(key).unwrap()),
                Err(_) => assert!(restored.0.table.payload == before),
            }
            if key % 3 == 0 {
                let there = restored.contains(key).unwrap();
                assert_eq!(restored.remove(key).unwrap(), there);
            }
        }
        assert!((0.0..=1.0).contains(&restored.fpr()) && restored.snapshot().is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A multiset of at most eight copies of a key is the oracle. Fingerprints are wide enough that no unlisted key passes.
    #[test]
    fn a_multiset_agrees(
        changes in prop::collection::vec((any::<bool>(), 0..60u64), 0..600),
        capacity in 0..120u64,
        semi_sorted in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut filter = fixed(capacity, 1e-8, Hasher::seeded(seed), semi_sorted);
        let mut oracle: HashMap<u64, u64> = HashMap::new();
        let mut total = 0;
        for (i, (add, key)) in changes.into_iter().enumerate() {
            let distinct = oracle.values().all(|&copies| copies < 2);
            let copies = oracle.entry(key).or_default();
            if add {
                let before = filter.0.table.payload.clone();
                match filter.insert(key) {
                    Ok(()) => {
                        *copies += 1;
                        total += 1;
                        prop_assert!(*copies <= 8);
                    }
                    Err(error) => {
                        prop_assert_eq!(error, ChangeError::Full { keys: total, capacity });
                        prop_assert!(filter.0.table.payload == before);
                        // Copies crowd together; distinct keys find room.
                        prop_assert!(!distinct || total >= capacity);
                    }
                }
            } else {
                prop_assert_eq!(filter.remove(key).unwrap(), *copies > 0);
                total -= u64::from(*copies > 0);
                *copies = copies.saturating_sub(1);
            }
            prop_assert_eq!(filter.len(), total);
            if i % 100 == 99 {
                filter = Cuckoo::restore(filter.snapshot().unwrap()).unwrap();
            }
            for (&key, &copies) in &oracle {
                prop_assert_eq!(filter.contains(key).unwrap(), copies > 0);
            }
        }
    }
}
