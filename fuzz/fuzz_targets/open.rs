//! any file -> an error, or a filter, map, sequence or index that answers alone and in batches alike, also through serde and an editor.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde::{Serialize, de::DeserializeOwned};
use tamis::sets::Editor;
use tamis::{Filter, Key, Map, Sequence, Sets};
use tamis_fuzz::{form, mutate, with_keys};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

fuzz_target!(|bytes: &[u8]| {
    let (file, len) = (bytes.to_vec(), bytes.len() as u64);
    match form(bytes) {
        Some(2) => {
            let Ok(map) = Map::open_unverified(file) else { return };
            assert!((0.0..=1.0).contains(&map.fpr()));
            assert!(map.layers().all(|layer| layer.bytes <= len));
            assert_eq!(map.verify().is_ok(), through_serde(&map));
            with_keys!(map.key_type(), query_map(&map));
        }
        Some(3) => {
            let Ok(sequence) = Sequence::open_unverified(file) else { return };
            assert_eq!(sequence.verify().is_ok(), through_serde(&sequence));
            let positions: Vec<u64> = (0..40).chain([u64::MAX]).collect();
            let together = sequence.get_many(&positions);
            assert!(positions.iter().zip(together).all(|(&position, symbol)| sequence.get(position) == symbol));
        }
        Some(4) => {
            let Ok(index) = Sets::open_unverified(file) else { return };
            assert_eq!(index.verify().is_ok(), through_serde(&index));
            with_keys!(index.key_type(), query_sets(&index));
        }
        // Others are an error for a filter.
        _ => {
            let Ok(filter) = Filter::open_unverified(file) else { return };
            assert!((0.0..=1.0).contains(&filter.fpr()));
            assert!(filter.layers().all(|layer| layer.bytes <= len));
            assert_eq!(filter.verify().is_ok(), through_serde(&filter));
            match filter.is_partitioned() {
                true => with_keys!(filter.key_type(), query_partitions(&filter)),
                false => with_keys!(filter.key_type(), query_filter(&filter)),
            }
        }
    }
});

/// Whether a value comes back from JSON, which verifies it.
fn through_serde<T: Serialize + DeserializeOwned + PartialEq>(value: &T) -> bool {
    let text = serde_json::to_string(value).expect("bytes are text");
    serde_json::from_str::<T>(&text).is_ok_and(|again| again == *value)
}

fn query_filter<K: Key>(filter: &Filter, keys: &[K]) {
    let mut answers = vec![false; keys.len()];
    filter.contains_into(keys, &mut answers).unwrap();
    assert!(keys.iter().zip(answers).all(|(key, answer)| filter.contains(key) == Ok(answer)));
}

fn query_partitions<K: Key>(filter: &Filter, keys: &[K]) {
    for name in ["", "a", "b", "part 1"] {
        let answers = filter.contains_many_in(name, keys).unwrap();
        assert!(keys.iter().zip(answers).all(|(key, answer)| filter.contains_in(name, key) == Ok(answer)));
    }
}

fn query_map<K: Key>(map: &Map, keys: &[K]) {
    let together = map.get_many(keys).unwrap();
    assert!(keys.iter().zip(together).all(|(key, value)| map.get(key) == Ok(value)));
}

fn query_sets<K: Key>(index: &Sets, keys: &[K]) {
    let alone: Vec<Vec<u32>> = keys.iter().map(|key| index.find(key).unwrap_or_default()).collect();
    index.find_many(keys, |at, ids| assert!(alone[at] == ids)).unwrap();
    assert!(alone.iter().flatten().all(|&id| index.name(id).is_some()));
    if index.has_counts() {
        keys.iter().for_each(|key| drop(index.frequencies(key)));
    }
    // Sound or not, an index can be changed, and what comes of it opens.
    let Ok(mut editor) = Editor::new(index) else { return };
    let Ok(set) = editor.add_set("fuzz") else { return };
    for key in &keys[..4] {
        if editor.insert(key, set).is_ok() {
            assert!(editor.find(key).unwrap().contains(&set));
        }
        let _ = editor.remove(key, 0);
    }
    if let Ok(bytes) = editor.snapshot() {
        Sets::open(bytes).expect("what was written opens");
    }
}
