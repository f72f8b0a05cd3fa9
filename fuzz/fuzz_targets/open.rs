//! any bytes -> an error, or a filter, map or index that answers: as they are, and with their checksums repaired.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{Digest, Filter, FormatError, Hasher, Key, KeyType, Map, Sequence, Sets};

#[path = "../../crates/tamis/tests/it/repair.rs"]
mod repair;

fuzz_target!(|bytes: &[u8]| {
    query(bytes.to_vec());
    // Behind a checksum that holds, the decoder sees everything: the header is given, the rest is cut in two where the first
    // byte says.
    let Some((&len, rest)) = bytes.split_first() else { return };
    let (header, rest) = rest.split_at(rest.len().min(repair::HEADER - 10));
    let mut whole = b"\x89tamis\r\n\x01\x00".to_vec();
    whole.extend_from_slice(header);
    whole.resize(repair::HEADER, 0);
    let (directory, payload) = rest.split_at(rest.len().min(len as usize));
    let mut parts = repair::Parts { header: whole, payload: payload.to_vec(), directory: directory.to_vec() };
    parts.fit(1 << 16, open);
    query(parts.file());
    // A sound file with changes: the same, from its own parts.
    if let Some(mut parts) = repair::Parts::of(bytes) {
        parts.fit(1 << 16, open);
        query(parts.file());
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

/// Runs a function with forty keys of a key type.
macro_rules! with_keys {
    ($key_type:expr, $run:ident($with:expr)) => {{
        let numbers = (0..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        match $key_type {
            KeyType::Integer => $run($with, &numbers.collect::<Vec<_>>()),
            KeyType::Bytes => $run($with, &numbers.map(u64::to_le_bytes).collect::<Vec<_>>()),
            KeyType::Digest => $run($with, &numbers.map(Digest::from_hash).collect::<Vec<_>>()),
            KeyType::Fields => $run($with, &numbers.map(Pair).collect::<Vec<_>>()),
            other => panic!("{other} has no keys here"),
        }
    }};
}

/// A key of two fields.
struct Pair(u64);

impl Key for Pair {
    const KEY_TYPE: KeyType = KeyType::Fields;

    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.fields().integer(self.0).bytes(b"field").finish()
    }
}

/// If it opens, single keys and many get equal answers.
fn query(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    if let Ok(map) = Map::open_unverified(bytes.clone()) {
        let _ = map.verify();
        assert!((0.0..=1.0).contains(&map.fpr()));
        assert!(map.layers().all(|layer| layer.bytes <= len));
        return with_keys!(map.key_type(), query_map(&map));
    }
    if let Ok(index) = Sets::open_unverified(bytes.clone()) {
        return with_keys!(index.key_type(), query_sets(&index));
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
    assert!(filter.layers().all(|layer| layer.bytes <= len));
    match filter.is_partitioned() {
        true => with_keys!(filter.key_type(), query_partitions(&filter)),
        false => with_keys!(filter.key_type(), query_filter(&filter)),
    }
}

fn query_filter<K: Key>(filter: &Filter, keys: &[K]) {
    let mut answers = vec![false; keys.len()];
    filter.contains_into(keys, &mut answers).unwrap();
    assert!(keys.iter().zip(answers).all(|(key, answer)| filter.contains(key) == Ok(answer)));
}

fn query_partitions<K: Key>(filter: &Filter, keys: &[K]) {
    for name in ["", "a", "b"] {
        if let Ok(answers) = filter.contains_many_in(name, keys) {
            assert!(keys.iter().zip(answers).all(|(key, answer)| filter.contains_in(name, key) == Ok(answer)));
        }
    }
}

fn query_map<K: Key>(map: &Map, keys: &[K]) {
    let together = map.get_many(keys).unwrap();
    assert!(keys.iter().zip(together).all(|(key, value)| map.get(key) == Ok(value)));
}

fn query_sets<K: Key>(index: &Sets, keys: &[K]) {
    let alone: Vec<Vec<u32>> = keys.iter().map(|key| index.find(key).unwrap_or_default()).collect();
    let agreed = index.find_many(keys, |at, ids| assert!(alone[at] == ids));
    assert!(agreed.is_ok());
    assert!(alone.iter().flatten().all(|&id| index.name(id).is_some()));
}
