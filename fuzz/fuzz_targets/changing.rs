//! any operations on small filters and indexes that change -> no key is lost, and snapshots are what was there.
#![no_main]

use std::collections::{BTreeSet, HashMap};

use libfuzzer_sys::fuzz_target;
use tamis::sets::{Editor, Kind};
use tamis::{Bloom, Cuckoo, Quotient, Sets};

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
        kind => edit([Kind::Bloom, Kind::Cuckoo, Kind::Frozen][(kind as usize + shape as usize / 8) % 3], operations),
    }
});

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
