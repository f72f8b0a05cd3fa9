//! chosen keys and copies -> the answers of a sorted list, at the cost of ordinary keys.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::hash::{Hasher, Salt, scramble};
use crate::math::quotient::slots;

const SALT: Salt = Salt::new(1);

fn empty(capacity: u64, remainder: u32) -> Changing {
    OwnedQuotient::empty((slots(capacity), remainder), SALT).unwrap().into()
}

fn digests(n: u64) -> impl Iterator<Item = Digest> {
    (0..n).map(|i| Hasher::seeded(5).integer(i))
}

/// Digests whose bits begin with these.
fn beginning(bits: u32, with: u64) -> impl Iterator<Item = Digest> {
    digests(u64::MAX).filter(move |key| key.salted(SALT) >> (64 - bits) == with)
}

/// Any number of digests with one fingerprint: the first factor of their bits is zero.
fn equal(n: u64) -> impl Iterator<Item = Digest> {
    (0..n).map(|lo| Digest { hi: scramble(1), lo })
}

/// The table holds these keys and no others, and a file of it does.
fn check(table: &Changing, keys: &[Digest]) {
    let geometry = table.held.geometry;
    let mut expected: Vec<u64> = keys.iter().map(|&key| geometry.fingerprint(key)).collect();
    expected.sort_unstable();
    assert!(table.fingerprints() == expected && geometry.keys == keys.len() as u64);
    let ask = table.held.ask();
    assert!(keys.iter().all(|&key| ask.call(&table.held, key)));
    let whole = table.whole().unwrap();
    let again = Changing::checked(whole.geometry, &whole.payload).unwrap().unwrap();
    assert!(again.fingerprints() == expected && again.copies == table.copies);
    assert_eq!(again.whole().unwrap().payload, whole.payload);
}

/// Fills a table and says how many blocks that took.
fn fill(table: &mut Changing, keys: &[Digest]) -> usize {
    let mut blocks = 0;
    for &key in keys {
        // What the next insertion costs is known only to the budget.
        let before = table.budget;
        table.insert(key).unwrap();
        let left = (before.left + before.allowance).min(before.most);
        if table.budget.spent == before.spent {
            blocks += (left - table.budget.left) as usize;
        }
    }
    blocks
}

#[test]
fn keys_that_crowd_are_spread() {
    let far = |keys: &[Digest]| {
        let mut table = empty(200_000, 7);
        let blocks = fill(&mut table, keys);
        check(&table, keys);
        (table, blocks)
    };
    let (plain, _) = far(&digests(20_000).collect::<Vec<_>>());
    assert_eq!(plain.held.geometry.number, 0);
    for with in [0, 100, 255] {
        let keys: Vec<Digest> = beginning(8, with).take(20_000).collect();
        let (table, blocks) = far(&keys);
        assert!(table.held.geometry.number != 0 && table.budget.spent == 1);
        assert!(!table.held.geometry.is_crowded(&table.places()));
        // 20,000 in 800 slots move 150 blocks each, as long as nobody spreads them.
        assert!(blocks < 6 * 20_000, "{blocks}");
    }
}

/// A packed table, one key for each slot, moves as a whole when one more comes to its beginning.
#[test]
fn a_packed_table_is_spread_too() {
    let mut table = empty(50_000, 3);
    let geometry = table.held.geometry;
    let mut first = vec![None; 40_000];
    for key in digests(2_000_000) {
        if let Some(slot) = first.get_mut(geometry.locate(key).0) {
            slot.get_or_insert(key);
        }
    }
    let mut keys: Vec<Digest> = first.into_iter().flatten().collect();
    assert!(keys.len() > 39_990);
    fill(&mut table, &keys);
    assert_eq!(table.held.geometry.number, 0);
    let more: Vec<Digest> = digests(3_000_000).filter(|&key| geometry.locate(key).0 < 200).take(3000).collect();
    let blocks = fill(&mut table, &more);
    assert!(table.budget.spent == 1 && blocks < 200_000, "{blocks}");
    keys.extend(more);
    check(&table, &keys);
}

#[test]
fn the_end_of_the_table_is_not_the_end() {
    for capacity in [1u64, 10, 300, 100_000] {
        let mut table = empty(capacity, 5);
        let keys: Vec<Digest> = match capacity {
            100_000 => beginning(8, 255).take(10_000).collect(),
            _ => beginning(8, 255).take(table.held.geometry.capacity() as usize).collect(),
        };
        fill(&mut table, &keys);
        check(&table, &keys);
    }
}

/// A table that is as full as it may be, and goes on changing: nothing that happens by chance is taken for a crowd.
#[test]
fn ordinary_keys_stay_where_they_are() {
    for capacity in [100, 1000, 10_000, 200_000] {
        let mut table = empty(capacity, 8);
        let keys: Vec<Digest> = digests(3 * capacity).collect();
        let (now, later) = keys.split_at(capacity as usize);
        fill(&mut table, now);
        for (i, &key) in later.iter().enumerate() {
            assert!(table.remove(keys[i]));
            table.insert(key).unwrap();
        }
        let [number, spent] = [table.held.geometry.number, table.budget.spent];
        assert_eq!([number, spent], [0, 0], "{capacity}");
        check(&table, &later[capacity as usize..]);
    }
}

#[test]
fn copies_cost_no_more_than_keys() {
    let others: Vec<Digest> = digests(2000).collect();
    let key = beginning(16, 7).next().unwrap();
    let mut table = empty(100_000, 6);
    fill(&mut table, &others);
    let blocks = fill(&mut table, &vec![key; 60_000]);
    assert!(blocks < 61_000, "{blocks}");
    assert!(table.count(key) == 60_000 && table.held.geometry.number == 0);
    let all = [vec![key; 60_000], others.clone()].concat();
    check(&table, &all);
    // The bytes of a file are those of a table that has them all in its slots.
    let plain = OwnedQuotient::of(Quotient { keys: 0, ..table.held.geometry }, &table.places()).unwrap();
    assert_eq!(table.whole().unwrap().payload, plain.payload);
    let doubled = table.doubled().unwrap().unwrap();
    assert!(doubled.count(key) == 60_000 && doubled.fingerprints() == table.fingerprints());
    for left in (0..60_000).rev() {
        assert!(table.remove(key) && table.held.geometry.keys == left + 2000);
    }
    assert!(!table.remove(key) && table.count(key) == 0);
    check(&table, &others);
}

#[test]
fn equal_fingerprints_are_copies() {
    let mut table = empty(100_000, 6);
    let keys: Vec<Digest> = equal(90_000).collect();
    let blocks = fill(&mut table, &keys);
    assert!(blocks < 91_000 && table.count(keys[5]) == 90_000, "{blocks}");
    check(&table, &keys);
    // Sixty copies of each of many: other places do not help, and nobody tries for ever.
    let mut table = empty(100_000, 6);
    let keys: Vec<Digest> = digests(1500).flat_map(|key| [key; 60]).collect();
    fill(&mut table, &keys);
    assert!(table.budget.spent < 8, "{}", table.budget.spent);
    check(&table, &keys);
}

#[test]
fn tables_with_different_places_are_merged() {
    let crowd: Vec<Digest> = beginning(8, 3).take(20_000).collect();
    let plain: Vec<Digest> = digests(30_000).collect();
    let [mut one, mut two] = [empty(200_000, 7), empty(200_000, 7)];
    fill(&mut one, &crowd);
    fill(&mut two, &plain);
    assert!(one.held.geometry.number != 0 && two.held.geometry.number == 0);
    let all = [crowd.clone(), plain].concat();
    for (a, b) in [(&one, &two), (&two, &one)] {
        let merged = a.merged(b).unwrap().unwrap();
        check(&merged, &all);
        assert!(!merged.held.geometry.is_crowded(&merged.places()));
        check(&merged.doubled().unwrap().unwrap(), &all);
    }
    // Two halves of a crowd, each of them small.
    let [mut one, mut two] = [empty(200_000, 7), empty(200_000, 7)];
    fill(&mut one, &crowd[..2000]);
    fill(&mut two, &crowd[2000..4000]);
    assert_eq!([&one, &two].map(|table| table.held.geometry.number), [0, 0]);
    let merged = one.merged(&two).unwrap().unwrap();
    assert_ne!(merged.held.geometry.number, 0);
    check(&merged, &crowd[..4000]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any changes, with a budget that is spent now and then.
    #[test]
    fn it_is_a_multiset_of_fingerprints(
        capacity in 1u64..300,
        remainder in 1u32..=32,
        spread in 1u64..=60,
        ops in prop::collection::vec((0u8..16, any::<u64>()), 0..600),
    ) {
        let mut table = empty(capacity, remainder);
        let mut oracle: Vec<u64> = vec![];
        for (op, random) in ops {
            let key = Hasher::seeded(9).integer(random % spread);
            let fingerprint = table.held.geometry.fingerprint(key);
            match op {
                0..=9 => match table.insert(key) {
                    Ok(()) => oracle.push(fingerprint),
                    Err(full) => prop_assert!(full.keys == oracle.len() as u64 && full.keys == full.capacity),
                },
                10..=12 => {
                    let at = oracle.iter().position(|&found| found == fingerprint);
                    prop_assert_eq!(table.remove(key), at.is_some());
                    at.map(|at| oracle.swap_remove(at));
                }
                13 => table.budget.left = -table.budget.allowance,
                14 => {
                    let whole = table.whole().unwrap();
                    table = Changing::checked(whole.geometry, &whole.payload).unwrap().unwrap();
                }
                _ => {
                    if table.held.geometry.remainder > 1 && table.held.geometry.slots < 5000 {
                        table = table.doubled().unwrap().unwrap();
                    }
                }
            }
            let copies = oracle.iter().filter(|&&found| found == fingerprint).count();
            prop_assert_eq!(table.count(key), copies as u64);
            prop_assert_eq!(table.held.ask().call(&table.held, key), copies > 0);
        }
        oracle.sort_unstable();
        prop_assert_eq!(table.fingerprints(), oracle);
    }
}
