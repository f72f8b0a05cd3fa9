//! bad filter bytes -> maybe, and a count: cut, damaged, foreign, newer, of another extractor.

use std::sync::Arc;

use slatedb::{BloomFilterPolicy, FilterPolicy};
use tamis::{Hasher, KeyType};
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::keys::{Random, key};

use super::{First, build, encode, has};

const KEYS: u64 = 300;

/// Whether bytes are read as a filter that says nothing.
fn unreadable(policy: &Tamis, bytes: &[u8]) -> bool {
    let before = policy.counts();
    let filter = policy.decode(bytes);
    let after = policy.counts();
    // They are kept as they are, for a reader that understands them.
    assert_eq!(encode(&*filter), bytes);
    // Any key at all, and so none is lost.
    after.unreadable == before.unreadable + 1
        && after.opened == before.opened
        && (0..3000).all(|number| has(&*filter, number))
}

#[test]
fn cut_and_damaged_bytes_match_everything() {
    let policy = Tamis::fpr(0.001).unwrap();
    let bytes = encode(&*build(&policy, (0..KEYS).map(key)));
    assert!(!unreadable(&policy, &bytes) && !has(&*policy.decode(&bytes), 2999));
    for len in 0..bytes.len() {
        assert!(unreadable(&policy, &bytes[..len]), "cut to {len} bytes");
    }
    assert!(unreadable(&policy, &[&bytes[..], b"more"].concat()));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        // A flag that readers may skip is the one change that a file survives.
        if !unreadable(&policy, &damaged) {
            let filter = policy.decode(&damaged);
            assert!((0..KEYS).all(|number| has(&*filter, number)), "byte {at}");
        }
    }
    let mut random = Random(3);
    for len in [1, 16, 48, 500] {
        assert!(unreadable(&policy, &(0..len).map(|_| random.below(256) as u8).collect::<Vec<_>>()));
    }
}

#[test]
fn a_newer_format_matches_everything() {
    let policy = Tamis::fpr(0.001).unwrap();
    let mut bytes = encode(&*build(&policy, (0..KEYS).map(key)));
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    assert_eq!(tamis::Filter::open(bytes.clone()).unwrap().len(), KEYS);
    bytes[8..10].copy_from_slice(&(version + 1).to_le_bytes());
    let error = tamis::Filter::open(bytes.clone()).unwrap_err();
    assert!(matches!(error, tamis::FormatError::Unsupported { .. }), "{error}");
    assert!(unreadable(&policy, &bytes));
}

#[test]
fn foreign_bytes_match_everything() {
    let policy = Tamis::fpr(0.001).unwrap();
    // A Bloom filter of the engine.
    assert!(unreadable(&policy, &encode(&*build(&BloomFilterPolicy::new(10), (0..KEYS).map(key)))));
    // Files of the library that are not of this policy: another seed, a secret, other key types, partitions.
    let keys = || (0..KEYS).map(|number| key(number).to_vec());
    let foreign = [
        tamis::build(keys()).finish().unwrap(),
        tamis::stream().hasher(Hasher::secret([1, 2])).build(keys()).finish().unwrap(),
        tamis::build(0..KEYS).finish().unwrap(),
        tamis::build_digests(Hasher::foreign(1).digests(&["ann"]), Hasher::foreign(1), KeyType::Digest)
            .finish()
            .unwrap(),
    ];
    for filter in foreign {
        assert!(unreadable(&policy, filter.as_bytes()), "{filter:?}");
    }
    let mut keys = tamis::stream().exact().partitioned();
    keys.push("DE", key(17).to_vec()).unwrap();
    keys.exclude("FR", key(17).to_vec()).unwrap();
    assert!(unreadable(&policy, keys.finish().unwrap().as_bytes()));
}

/// Names tell policies apart, and so do the bytes, should they come under another name.
#[test]
fn bytes_of_another_extractor_match_everything() {
    let first = |len, name| Tamis::fpr(0.001).unwrap().with_prefix_extractor(Arc::new(First(len, name)));
    let policies = [
        Tamis::fpr(0.001).unwrap(),
        first(3, "three"),
        first(4, "four"),
        first(3, "three").with_whole_key_filtering(false),
        Tamis::bits_per_key(9.0).unwrap().with_whole_key_filtering(false),
    ];
    for (i, writer) in policies.iter().enumerate() {
        let bytes = encode(&*build(writer, (0..KEYS).map(key)));
        for (j, reader) in policies.iter().enumerate() {
            assert_eq!(i == j, writer.name() == reader.name());
            assert_eq!(i != j, unreadable_to(reader, &bytes), "{} read by {}", writer.name(), reader.name());
        }
    }
    // Rate, size and kind are no part of the name: any reader reads any of them.
    let ribbon = encode(&*build(&policies[0], (0..KEYS).map(key)));
    let fuse = Tamis::bits_per_key(14.0).unwrap().with_fuse().unwrap();
    let read = fuse.decode(&ribbon);
    assert!((0..KEYS).all(|number| has(&*read, number)) && fuse.counts().opened == 1);
}

fn unreadable_to(policy: &Tamis, bytes: &[u8]) -> bool {
    let before = policy.counts().unreadable;
    policy.decode(bytes);
    policy.counts().unreadable > before
}
