//! any pairs and options -> an error in words, or a map, a sequence, an index or a partitioned filter that has them, also once reopened.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tamis::{Error, Filter, Map, Sequence, Sets, maps, sets};

/// What was built, or nothing if an error says why not.
fn built<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(built) => Some(built),
        Err(Error::Build(error)) => {
            assert!(!error.to_string().is_empty());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[what, kind, spread, repeat], rest)) = bytes.split_first_chunk::<4>() else { return };
    // The last value of a key counts: builders refuse two.
    let mut pairs = BTreeMap::new();
    for round in 0..=u64::from(repeat) {
        for pair in rest.chunks_exact(2) {
            pairs.insert(round << 8 | u64::from(pair[0]), u64::from(pair[1]) % (u64::from(spread) + 1));
        }
    }
    let all = || pairs.iter().map(|(&key, &value)| (key, value));
    let name = |value: u64| format!("part {value}");
    match what % 4 {
        0 => {
            let kind = [maps::Kind::Compressed, maps::Kind::Ribbon, maps::Kind::Fuse][kind as usize % 3];
            let Some(map) = built(tamis::map(all()).kind(kind).finish()) else { return };
            let map = Map::open(map.into_bytes()).expect("what was built opens");
            assert!(all().all(|(key, value)| map.get_u64(key) == Ok(Some(value))));
        }
        1 => {
            let values: Vec<u64> = pairs.values().copied().collect();
            let Some(sequence) = built(tamis::sequence(&values).finish()) else { return };
            let sequence = Sequence::open(sequence.into_bytes()).expect("what was built opens");
            assert!((0..).zip(&values).all(|(at, &value)| sequence.get(at) == Some(maps::Value::Number(value))));
        }
        2 => {
            let kind = [sets::Kind::Auto, sets::Kind::Bloom, sets::Kind::Cuckoo, sets::Kind::Frozen][kind as usize % 4];
            let index = tamis::sets(all().map(|(key, value)| (key, name(value)))).kind(kind).finish();
            let Some(index) = built(index) else { return };
            let index = Sets::open(index.into_bytes()).expect("what was built opens");
            for (key, value) in all() {
                let set = index.id(&name(value)).expect("a set of pairs");
                assert!(index.find(key).unwrap().contains(&set));
            }
        }
        _ => {
            let mut parts =
                if kind % 2 == 0 { tamis::stream().fpr(0.01) } else { tamis::stream().exact() }.partitioned();
            for (key, value) in all() {
                parts.push(name(value), key).unwrap();
                parts.exclude(name(value), key + (1 << 40)).unwrap();
            }
            let Some(filter) = built(parts.finish()) else { return };
            let filter = Filter::open(filter.into_bytes()).expect("what was built opens");
            assert!(all().all(|(key, value)| filter.contains_in(name(value), key) == Ok(true)));
            assert!(all().all(|(key, value)| filter.contains_in(name(value), key + (1 << 40)) == Ok(false)));
        }
    }
});
