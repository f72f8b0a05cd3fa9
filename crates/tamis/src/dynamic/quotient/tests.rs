//! the owned filter, against a map of counts.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::{Error, Filter, Hasher, Kind};

fn seeded(seed: u64, capacity: u64, rate: f64) -> DynamicBuilder<Quotient> {
    Quotient::with_capacity(capacity).fpr(rate).hasher(Hasher::seeded(seed))
}

fn new(capacity: u64, rate: f64) -> Quotient {
    seeded(3, capacity, rate).build::<u64>().unwrap()
}

#[test]
fn keys_come_and_go_through_snapshots() {
    let mut filter = new(2000, 0.01);
    assert!(!filter.contains(1u64).unwrap() && filter.is_empty() && filter.fpr() == 0.0);
    for round in 0..4u64 {
        (round * 500..round * 500 + 500).for_each(|key| filter.insert(key).unwrap());
        let bytes = filter.snapshot().unwrap();
        let file = Filter::open(bytes.clone()).unwrap();
        assert_eq!((file.len(), file.fpr()), (filter.len(), filter.fpr()));
        filter = Quotient::restore(bytes.clone()).unwrap();
        assert_eq!(filter.snapshot().unwrap(), bytes);
        for key in 0..round * 500 + 500 {
            assert!(filter.contains(key).unwrap() && file.contains(key).unwrap());
        }
    }
    let found = (10_000..60_000u64).filter(|&key| filter.contains(key).unwrap()).count() as f64;
    let expected = 50_000.0 * filter.fpr();
    assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found} of 50,000 strangers, expected {expected}");
    assert!(filter.fpr() <= 0.01);
    for key in 0..2000u64 {
        assert!(filter.remove(key).unwrap());
    }
    assert_eq!(filter.snapshot().unwrap(), new(2000, 0.01).snapshot().unwrap());
}

#[test]
fn small_and_odd_capacities() {
    for capacity in (0..200).chain([1000, 1023, 1024, 1025]) {
        for rate in [0.6, 0.3, 0.01, 1e-8] {
            let mut filter = new(capacity, rate);
            assert!(filter.capacity() >= capacity.max(1) && filter.is_empty());
            for key in 0..filter.capacity() {
                filter.insert(key).unwrap();
            }
            assert!((0..filter.capacity()).all(|key| filter.contains(key).unwrap() && filter.count(key).unwrap() >= 1));
            let error = filter.insert(7u64).unwrap_err();
            let keys = filter.len();
            assert_eq!(error, ChangeError::Full { keys, capacity: keys });
            assert_eq!(error.to_string(), format!("capacity {keys}: full with {keys} keys; build a larger filter"));
        }
    }
}

#[test]
fn a_built_filter_can_be_taken_up() {
    for n in [1u64, 2, 63, 500, 20_000] {
        let built = crate::build(0..n).kind(Kind::Quotient).finish().unwrap();
        let mut filter = Quotient::restore(built.as_bytes().to_vec()).unwrap();
        assert_eq!(filter.len(), n);
        filter.remove(0u64).unwrap();
        filter.insert(77_777u64).unwrap();
        assert!((1..n).chain([77_777]).all(|key| filter.contains(key).unwrap()));
        filter.grow().unwrap();
        (n..2 * n).for_each(|key| filter.insert(key).unwrap());
        assert!((1..2 * n).chain([77_777]).all(|key| filter.contains(key).unwrap()));
    }
    let empty = crate::build([0u64; 0]).kind(Kind::Quotient).finish().unwrap();
    let error = Quotient::restore(empty.as_bytes().to_vec()).unwrap_err().to_string();
    assert_eq!(error, "invalid file: a quotient filter without a table takes no keys");
}

#[test]
fn growing_ends_where_the_bits_do() {
    let mut filter = new(10, 0.02);
    let mut grown = 0;
    let error = loop {
        match filter.grow() {
            Ok(()) => grown += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(grown > 3);
    assert_eq!(error, "grow: the remainders of 0 keys have 1 bit; expected at least 2; build a larger filter");
    let mut filter = new(1, 0.3);
    let error = (0..1000u64).find_map(|key| filter.insert_growing(key).err()).unwrap();
    assert!(matches!(error, Error::Build(BuildError::CannotGrow { .. })));
    assert!((0..filter.len()).all(|key| filter.contains(key).unwrap()));
}

#[test]
fn merging_needs_the_same_fingerprints() {
    let mut one = new(100, 0.01);
    (0..60u64).for_each(|key| one.insert(key).unwrap());
    let mut others = vec![
        (seeded(3, 100, 0.01).build::<str>().unwrap(), "their key types"),
        (seeded(4, 100, 0.01).build::<u64>().unwrap(), "their hash"),
        (new(101, 0.01), "the number of their fingerprints"),
        (new(100, 0.001), "the number of their fingerprints"),
    ];
    let before = one.snapshot().unwrap();
    for (other, what) in &mut others {
        let error = one.merge(other).unwrap_err();
        assert_eq!(error.to_string(), format!("merge: the filters differ in {what}; expected the same"));
    }
    let twin = one.clone();
    let error = one.merge(&twin).unwrap_err();
    assert_eq!(error.to_string(), "capacity 100: full with 60 keys; build a larger filter");
    assert!(before == one.snapshot().unwrap());
    one.grow().unwrap();
    one.merge(&twin).unwrap();
    assert!((0..60u64).all(|key| one.count(key).unwrap() >= 2) && one.len() == 120);
}

#[test]
fn what_is_no_quotient_filter_is_rejected() {
    let ribbon = crate::build(0..500u64).finish().unwrap();
    let error = Quotient::restore(ribbon.as_bytes().to_vec()).unwrap_err().to_string();
    assert_eq!(error, "invalid file: not a quotient filter");
    assert!(new(10, 0.1).insert("text").is_err() && new(10, 0.1).contains("text").is_err());
    for rate in [0.0, 1.0, -1.0, 2.0, f64::NAN, 1e-12] {
        assert!(Quotient::with_capacity(10).fpr(rate).build::<u64>().is_err(), "{rate}");
    }
}

/// A file whose checksums are right and whose slots are not.
fn forged(filter: &Quotient, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut filter = filter.clone();
    change(&mut filter.core.table.held.payload);
    filter.snapshot().unwrap()
}

#[test]
fn hostile_snapshots_are_rejected() {
    let mut filter = new(300, 0.05);
    (0..250u64).for_each(|key| filter.insert(key).unwrap());
    let len = filter.core.table.held.payload.len();
    for at in 0..len {
        let bytes = forged(&filter, |payload| payload[at] ^= 1 << (at % 8));
        // A remainder that is another may be in order all the same; then it is a filter of other keys.
        if let Ok(restored) = Quotient::restore(bytes) {
            assert_eq!(restored.len(), 250);
        }
    }
    for byte in [0, 1, 0x55, 0xff] {
        assert!(Quotient::restore(forged(&filter, |payload| payload.fill(byte))).is_err());
    }
    let bytes = filter.snapshot().unwrap();
    for cut in 0..bytes.len() {
        assert!(Quotient::restore(bytes[..cut].to_vec()).is_err());
    }
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Quotient::restore(damaged).is_err());
    }
}

/// Integers whose bits begin with so many ones: they want the end of the table.
fn at_the_end(bits: u32) -> impl Iterator<Item = u64> {
    (0..).filter(move |key: &u64| key.digest(&Hasher::seeded(3)).salted(SALT).leading_ones() >= bits)
}

#[test]
fn chosen_keys_fill_a_filter_and_need_no_more_room() {
    let mut filter = new(20_000, 0.01);
    let keys: Vec<u64> = at_the_end(10).take(19_000).collect();
    for &key in &keys {
        filter.insert_growing(key).unwrap();
    }
    assert!(filter.capacity() < 21_000 && filter.len() == 19_000);
    let bytes = filter.snapshot().unwrap();
    let restored = Quotient::restore(bytes.clone()).unwrap();
    let file = Filter::open(bytes).unwrap();
    assert!(keys.iter().all(|&key| restored.contains(key).unwrap() && file.contains(key).unwrap()));
    // Built at once they have the same bytes each time.
    let built = || crate::build(keys.clone()).kind(Kind::Quotient).finish().unwrap();
    assert_eq!(built().as_bytes(), built().as_bytes());
    let mut taken_up = Quotient::restore(built().as_bytes().to_vec()).unwrap();
    assert_eq!(taken_up.len(), 19_000);
    assert!(keys.iter().all(|&key| taken_up.remove(key).unwrap()) && taken_up.is_empty());
}

#[test]
fn copies_stay_through_snapshots_and_merges() {
    let mut filter = new(50_000, 0.01);
    (0..20_000).for_each(|_| filter.insert(7u64).unwrap());
    let bytes = filter.snapshot().unwrap();
    assert!(Filter::open(bytes.clone()).unwrap().contains(7u64).unwrap());
    let mut restored = Quotient::restore(bytes.clone()).unwrap();
    assert!(restored.count(7u64).unwrap() == 20_000 && restored.snapshot().unwrap() == bytes);
    restored.merge(&filter).unwrap();
    restored.grow().unwrap();
    assert_eq!((restored.count(7u64).unwrap(), restored.len()), (40_000, 40_000));
    assert!((0..40_000).all(|_| restored.remove(7u64).unwrap()) && !restored.contains(7u64).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Fingerprints of 40 bits and more: none of these few keys is taken for another.
    #[test]
    fn it_counts_like_a_map(
        capacity in 0u64..150,
        ops in prop::collection::vec((0u8..10, 0u64..60), 0..500),
    ) {
        let mut filters = [new(capacity, 1e-8), new(capacity, 1e-8)];
        let mut oracles = [HashMap::<u64, u64>::new(), HashMap::new()];
        for (op, key) in ops {
            let side = (key % 2) as usize;
            let total: u64 = oracles[side].values().sum();
            prop_assert_eq!(filters[side].len(), total);
            match op {
                0..=4 => match filters[side].insert(key) {
                    Ok(()) => *oracles[side].entry(key).or_default() += 1,
                    Err(error) => prop_assert_eq!(error, ChangeError::Full { keys: total, capacity: filters[side].capacity() }),
                },
                5 | 6 => {
                    let count = oracles[side].entry(key).or_default();
                    prop_assert_eq!(filters[side].remove(key).unwrap(), *count > 0);
                    *count = count.saturating_sub(1);
                }
                7 => {
                    if filters[side].capacity() < 5000 {
                        filters[side].grow().unwrap();
                    }
                }
                8 => {
                    let [one, two] = &mut filters;
                    if one.merge(two).is_ok() {
                        for (key, count) in oracles[1].clone() {
                            *oracles[0].entry(key).or_default() += count;
                        }
                    } else {
                        prop_assert!(one.len() + two.len() > one.capacity());
                    }
                }
                _ => filters[side] = Quotient::restore(filters[side].snapshot().unwrap()).unwrap(),
            }
        }
        for (filter, oracle) in filters.iter().zip(&oracles) {
            for key in 0..60u64 {
                let expected = oracle.get(&key).copied().unwrap_or(0);
                prop_assert_eq!(filter.count(key).unwrap(), expected);
                prop_assert_eq!(filter.contains(key).unwrap(), expected > 0);
            }
        }
    }
}
