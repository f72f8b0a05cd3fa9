//! any bytes -> an error, or a filter, map or index that answers: as they are, and with their checksums repaired.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{Filter, FormatError, KeyType, Map, Sequence, Sets};

#[path = "../../crates/tamis/tests/it/repair.rs"]
mod repair;

fuzz_target!(|bytes: &[u8]| {
    ask(bytes.to_vec());
    // Behind a checksum that holds, the decoder sees everything: the header is given, the rest is cut in two where the first
    // byte says.
    let Some((&len, rest)) = bytes.split_first() else { return };
    let (header, rest) = rest.split_at(rest.len().min(repair::HEADER - 10));
    let mut whole = b"\x89tamis\r\n\x01\x00".to_vec();
    whole.extend_from_slice(header);
    whole.resize(repair::HEADER, 0);
    let (directory, payload) = rest.split_at(rest.len().min(len as usize));
    let mut parts =
        repair::IntegratedVariant { header: whole, payload: payload.to_vec(), directory: directory.to_vec() };
    parts.fit(1 << 16, open);
    ask(parts.file());
    // A sound file with changes: the same, from its own parts.
    if let Some(mut parts) = repair::IntegratedVariant::of(bytes) {
        parts.fit(1 << 16, open);
        ask(parts.file());
    }
});

/// Opens whatever the header says it is.
fn open(bytes: Vec<u8>) -> Result<(), FormatError> {
    match bytes.get(13) {
        Some(2) => Map::open_unverified(bytes).map(drop),
        Some(3) => Sequence::open_unverified(bytes).map(drop),
        Some(4) => Sets::open_unverified(bytes).map(drop),
        _ => Filter::open_unverified(bytes).map(drop),
    }
}

/// If it opens, all ways to ask agree.
fn ask(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    if let Ok(map) = Map::open_unverified(bytes.clone()) {
        return ask_map(&map, len);
    }
    if let Ok(index) = Sets::open_unverified(bytes.clone()) {
        return match index.key_type() {
            KeyType::Integer => ask_sets(&index, &(0..40u64).collect::<Vec<_>>()),
            KeyType::Bytes => ask_sets(&index, &(0..40u8).map(|byte| [byte; 5]).collect::<Vec<_>>()),
            KeyType::Digest => ask_sets(&index, &(0..40u64).map(tamis::Digest::from_hash).collect::<Vec<_>>()),
        };
    }
    if let Ok(sequence) = Sequence::open_unverified(bytes.clone()) {
        let positions: Vec<u64> = (0..40).collect();
        let together = sequence.get_many(&positions);
        assert!(positions.iter().zip(together).all(|(&position, symbol)| sequence.get(position) == symbol));
        return;
    }
    let Ok(filter) = Filter::open_unverified(bytes) else { return };
    let _ = filter.verify();
    assert!((0.0..=1.0).contains(&filter.fpr()));
    for layer in filter.layers() {
        assert!(layer.bytes <= len);
    }
    let keys: Vec<u64> = (0..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut answers = vec![false; keys.len()];
    if filter.is_partitioned() {
        for label in ["", "a", "b"] {
            let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
            if let Ok(answers) = filter.contains_many_in(label, &keys) {
                assert!(keys.iter().zip(&answers).all(|(key, &answer)| filter.contains_in(label, key) == Ok(answer)));
            }
        }
        return;
    }
    match filter.key_type() {
        KeyType::Integer => {
            filter.contains_into(&keys, &mut answers).unwrap();
            assert!(keys.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == Ok(answer)));
        }
        KeyType::Bytes => {
            let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
            filter.contains_into(&keys, &mut answers).unwrap();
            assert!(keys.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == Ok(answer)));
        }
        KeyType::Digest => {
            let keys: Vec<tamis::Digest> = keys.iter().map(|&key| tamis::Digest::from_hash(key)).collect();
            filter.contains_into(&keys, &mut answers).unwrap();
            assert!(keys.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == Ok(answer)));
        }
    }
}

fn ask_map(map: &Map, len: u64) {
    let _ = map.verify();
    assert!((0.0..=1.0).contains(&map.fpr()));
    assert!(map.layers().all(|layer| layer.bytes <= len));
    let keys: Vec<u64> = (0..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    match map.key_type() {
        KeyType::Integer => {
            let together = map.get_many(&keys).unwrap();
            assert!(keys.iter().zip(together).all(|(key, value)| map.get(key) == Ok(value)));
        }
        KeyType::Bytes => {
            let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
            let together = map.get_many(&keys).unwrap();
            assert!(keys.iter().zip(together).all(|(key, value)| map.get(key) == Ok(value)));
        }
        KeyType::Digest => {
            let keys: Vec<tamis::Digest> = keys.iter().map(|&key| tamis::Digest::from_hash(key)).collect();
            let together = map.get_many(&keys).unwrap();
            assert!(keys.iter().zip(together).all(|(key, value)| map.get(key) == Ok(value)));
        }
    }
}

fn ask_sets<K: tamis::Key>(index: &Sets, keys: &[K]) {
    let alone: Vec<Vec<u32>> = keys.iter().map(|key| index.find(key).unwrap_or_default()).collect();
    let agreed = index.find_many(keys, |at, ids| assert!(alone[at] == ids));
    assert!(agreed.is_ok());
    assert!(alone.iter().flatten().all(|&id| index.name(id).is_some()));
}
