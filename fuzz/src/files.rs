//! files as an input of a fuzzer -> the same with a part changed and sums that hold, so that decoders are reached.
//!
//! Golden files are the seeds. A change of any byte breaks a checksum, and a change of a length moves all that follows it. So most changes
//! are made to one part of a file, which is then put together again; one in sixteen is made to its bytes as they are.

use libfuzzer_sys::fuzzer_mutate;
use tamis::learned::{Grams, Learned};
use tamis::{Digest, Filter, FormatError, Hasher, Key, KeyType, Map, Patch, Sequence, Sets};

#[path = "../../crates/tamis/tests/it/repair.rs"]
#[allow(dead_code)]
mod repair;

use repair::{FORM, Parts};

/// The longest payload that is made to fit a directory.
const LONGEST: usize = 1 << 16;

/// Changes the file in `data[..size]`; returns its new length, `most` at most.
pub fn mutate(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let (Some(mut parts), 1..) = (Parts::of(&data[..size]), seed % 16) else { return fuzzer_mutate(data, size, most) };
    let part = match seed % 16 {
        1 => &mut parts.head,
        2..6 => &mut parts.payload,
        // The scorer of a learned filter.
        6 if parts.head.get(FORM) == Some(&10) && !parts.more.is_empty() => &mut parts.more[0].1,
        6 => {
            parts.more = vec![(6, vec![])];
            &mut parts.more[0].1
        }
        _ => &mut parts.directory,
    };
    let mut bytes = part.clone();
    bytes.resize(part.len() + 64, 0);
    let len = fuzzer_mutate(&mut bytes, part.len(), part.len() + 64);
    bytes.truncate(len);
    *part = bytes;
    if seed >> 8 & 1 == 1 {
        parts.fit(LONGEST, open);
    }
    let file = parts.file();
    if file.len() > most {
        return fuzzer_mutate(data, size, most);
    }
    data[..file.len()].copy_from_slice(&file);
    file.len()
}

/// The form of a file, as far as it has one.
pub fn form(bytes: &[u8]) -> Option<u8> {
    Parts::of(bytes)?.head.get(FORM).copied()
}

/// Opens whatever the head says it is.
fn open(bytes: Vec<u8>) -> Result<(), FormatError> {
    match form(&bytes) {
        Some(2) => Map::open_unverified(bytes).map(drop),
        Some(3) => Sequence::open_unverified(bytes).map(drop),
        Some(4) => Sets::open_unverified(bytes).map(drop),
        Some(6) => Patch::open_unverified(bytes.clone()).map(drop).or_else(|_| Filter::open_unverified(bytes).map(drop)),
        Some(10) => Learned::<Grams>::open_unverified(bytes).map(drop),
        _ => Filter::open_unverified(bytes).map(drop),
    }
}

/// Some integers all over their range.
pub fn numbers() -> impl Iterator<Item = u64> {
    (0..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A key of two fields.
pub struct Pair(pub u64);

impl Key for Pair {
    const KEY_TYPE: KeyType = KeyType::Fields;

    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.fields().integer(self.0).bytes(b"field").finish()
    }
}

/// Runs a function with forty keys of a key type.
#[macro_export]
macro_rules! with_keys {
    ($key_type:expr, $run:ident($($with:expr),+)) => {{
        let numbers = $crate::numbers();
        match $key_type {
            tamis::KeyType::Integer => $run($($with),+, &numbers.collect::<Vec<_>>()),
            tamis::KeyType::Bytes => $run($($with),+, &numbers.map(u64::to_le_bytes).collect::<Vec<_>>()),
            tamis::KeyType::Digest => $run($($with),+, &numbers.map(tamis::Digest::from_hash).collect::<Vec<_>>()),
            tamis::KeyType::Fields => $run($($with),+, &numbers.map($crate::Pair).collect::<Vec<_>>()),
            other => panic!("{other} has no keys here"),
        }
    }};
}
