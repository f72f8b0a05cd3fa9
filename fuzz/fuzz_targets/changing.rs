//! any operations on small filters and indexes that change -> no key is lost, and snapshots are what was there.
#![no_main]

use std::collections::{BTreeSet, HashMap};

use libfuzzer_sys::fuzz_target;
use tamis::sets::{Editor, Kind};
use tamis::{Bloom, Chained, Cuckoo, Othello, Quotient, Sets};

/// Inserts, removes and restores; keys that were inserted more often than removed match.
macro_rules! change {
    ($type:ty, $filter:expr, $operations:expr $(, $remove:ident)?) => {{
        let mut filter: $type = $filter;
        let mut held: HashMap<u64, u32> = HashMap::new();
        for operation in $operations.chunks_exact(2) {
            let key = u64::from(operation[1]);
            match operation[0] % 8 {
                0..4 => {
                    if filter.insert(key).is_ok() {
                        *held.entry(key).or_default() += 1;
                    }
                }
                $(4..7 => {
                    if let Some(count) = held.get_mut(&key).filter(|count| **count > 0) {
                        assert_eq!(filter.$remove(key), Ok(true));
                        *count -= 1;
                    }
                })?
                _ => filter = <$type>::restore(filter.snapshot().unwrap()).expect("what was written restores"),
            }
            assert!(held.get(&key).is_none_or(|&count| count == 0) || filter.contains(key) == Ok(true));
        }
        assert!(held.iter().all(|(&key, &count)| count == 0 || filter.contains(key) == Ok(true)));
    }};
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[shape, capacity], operations)) = bytes.split_first_chunk::<2>() else { return };
    let rate = [0.5, 0.1, 0.01, 1.0 / 256.0][shape as usize / 8 % 4];
    let capacity = u64::from(capacity);
    match shape % 8 {
        0 | 1 => {
            let Ok(filter) = Bloom::with_capacity(capacity).fpr(rate).build::<u64>() else { return };
            change!(Bloom, filter, operations);
        }
        2 | 3 => {
            let Ok(filter) = Cuckoo::with_capacity(capacity).fpr(rate).build::<u64>() else { return };
            change!(Cuckoo, filter, operations, remove);
        }
        4 | 5 => {
            let Ok(filter) = Quotient::with_capacity(capacity).fpr(rate).build::<u64>() else { return };
            change!(Quotient, filter, operations, remove);
        }
        _ if shape >> 6 == 1 => {
            let Ok(first) = Bloom::with_capacity(capacity).fpr(rate).build::<u64>() else { return };
            chained(Chained::over(first).expect("it is empty"), operations);
        }
        _ if shape >> 6 == 2 => {
            let Ok(first) = Cuckoo::with_capacity(capacity).fpr(rate).build::<u64>() else { return };
            chained(Chained::over(first).expect("it is empty"), operations);
        }
        _ if shape >> 6 == 3 => othello(operations),
        kind => edit([Kind::Bloom, Kind::Cuckoo, Kind::Frozen][(kind as usize + shape as usize / 8) % 3], operations),
    }
});

/// Inserts, excludes and removes: members match, and excluded keys never do.
fn chained(mut filter: Chained, operations: &[u8]) {
    let mut listed: HashMap<u64, bool> = HashMap::new();
    for operation in operations.chunks_exact(2) {
        let key = u64::from(operation[1]);
        let known = listed.get(&key).copied();
        match operation[0] % 8 {
            0..3 => match filter.insert(key) {
                Ok(new) => assert_eq!((new, listed.insert(key, true)), (known.is_none(), known)),
                Err(_) => assert_ne!(known, Some(true)),
            },
            3 | 4 => match filter.exclude(key) {
                Ok(new) => assert_eq!((new, listed.insert(key, false)), (known.is_none(), known)),
                Err(_) => assert_eq!(known, Some(true)),
            },
            5 => {
                assert_eq!(filter.remove(key).is_ok(), known == Some(true));
                if known == Some(true) {
                    listed.remove(&key);
                }
            }
            6 => {
                if filter.allow(key) == Ok(true) {
                    assert_eq!(listed.remove(&key), Some(false));
                }
            }
            _ => filter = Chained::restore(filter.snapshot().unwrap()).expect("what was written restores"),
        }
        assert!(listed.iter().all(|(&key, &member)| filter.contains(key) == Ok(member)));
    }
}

/// Sets and removes bits, next to a map.
fn othello(operations: &[u8]) {
    let mut table = Othello::new::<u64>().expect("memory");
    let mut bits: HashMap<u64, bool> = HashMap::new();
    for operation in operations.chunks_exact(2) {
        let key = u64::from(operation[1]) | u64::from(operation[0] / 8) << 8;
        match operation[0] % 8 {
            kind @ 0..5 => {
                assert_eq!(table.set(key, kind % 2 == 1).expect("memory"), bits.insert(key, kind % 2 == 1).is_none());
            }
            5 | 6 => assert_eq!(table.remove(key), Ok(bits.remove(&key).is_some())),
            _ => {
                let all: Vec<(u64, bool)> = bits.iter().map(|(&key, &bit)| (key, !bit)).collect();
                bits.extend(all.iter().copied());
                table.set_many(all).expect("memory");
            }
        }
        assert!(bits.iter().all(|(&key, &bit)| table.get(key) == Ok(bit) && table.listed(key) == Ok(Some(bit))));
        assert_eq!(table.len(), bits.len() as u64);
    }
}

/// Changes an index, next to its pairs.
fn edit(kind: Kind, operations: &[u8]) {
    let first = [(0u64, "a"), (1, "b"), (1, "a")];
    let index = tamis::sets(first).kind(kind).finish().expect("three pairs");
    let mut editor = Editor::new(&index).expect("it was just built");
    let mut pairs: BTreeSet<(u64, u32)> = first.map(|(key, set)| (key, index.id(set).expect("a set"))).into();
    let mut live: Vec<u32> = index.names().map(|(id, _)| id).collect();
    for operation in operations.chunks_exact(2) {
        let (key, set) = (u64::from(operation[1]), live[usize::from(operation[1]) % live.len()]);
        match operation[0] % 8 {
            0..3 => {
                editor.insert(key, set).expect("a set that is there");
                pairs.insert((key, set));
            }
            3 | 4 if pairs.contains(&(key, set)) => {
                if editor.remove(key, set).is_ok_and(|removed| removed) {
                    pairs.remove(&(key, set));
                }
            }
            5 if live.len() < 6 => live.push(editor.add_set(&format!("s{}", operation[1])).map_or(live[0], |id| id)),
            6 => {
                let other = tamis::sets([(key, "a")]).kind(kind).finish().expect("one pair");
                if editor.merge(&other).is_ok() {
                    pairs.insert((key, editor.id("a").expect("it has pairs")));
                }
            }
            7 => {
                let again = Sets::open(editor.snapshot().unwrap()).expect("what was written opens");
                editor = Editor::new(&again).expect("it opened");
            }
            _ => {}
        }
        assert!(pairs.iter().all(|(key, set)| editor.find(*key).unwrap().contains(set)));
    }
}
