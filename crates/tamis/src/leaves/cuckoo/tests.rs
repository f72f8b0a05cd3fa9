//! every size, width and form of a table -> its keys, its rate, its limits.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::Hasher;
use crate::leaves::change::Change;

/// Keys are even, unlisted keys odd.
fn digests(n: u64, stranger: u64) -> Vec<Digest> {
    let hasher = Hasher::seeded(5);
    (0..n).map(|i| hasher.integer(2 * i + stranger)).collect()
}

fn params(bits: u8, semi_sorted: bool) -> Params {
    Params { bits, semi_sorted, places: 1 << 16 }
}

/// A file with 5 bytes before the payload: nothing is aligned.
fn single(geometry: Cuckoo, payload: &[u8]) -> (ShardedLeaf<Cuckoo>, Vec<u8>) {
    let file = [&[0xff; 5], payload, &[0xff; 40]].concat();
    (ShardedLeaf::of(0, &file, vec![(geometry, 5..5 + payload.len())]), file)
}

/// Asks one by one, checks that asking together is the same, and counts.
fn count(column: &ShardedLeaf<Cuckoo>, file: &[u8], keys: &[Digest]) -> usize {
    let mut out: Vec<bool> = keys.iter().map(|key| key.lo & 1 == 0).collect();
    column.contains_many(file, keys, &mut out);
    for (&key, &yes) in keys.iter().zip(&out) {
        assert_eq!(column.contains(key), yes);
    }
    out.into_iter().filter(|&yes| yes).count()
}

#[test]
fn the_other_bucket_of_the_other_bucket_is_the_first() {
    let (geometry, _) = built(&digests(10, 0), &params(12, false), 1);
    for buckets in (1..200).chain([1000, 1001, (1 << 20) + 7, MAX_BUCKETS - 1, MAX_BUCKETS]) {
        let geometry = Cuckoo { buckets, ..geometry };
        for key in digests(300, 0) {
            let Place { first, second, fingerprint } = geometry.find(key);
            assert!(first < buckets && second < buckets && fingerprint > 0 && fingerprint < 1 << 12);
            assert_eq!(geometry.other(second, fingerprint), first, "{buckets} buckets");
            assert!(first != second || buckets % 2 == 1, "{buckets} buckets");
        }
    }
}

fn built(keys: &[Digest], params: &Params, salt: u64) -> (Cuckoo, Vec<u8>) {
    let mut payload = vec![];
    let geometry = Cuckoo::build(keys, params, Salt::new(salt), &mut payload).unwrap();
    (geometry, payload)
}

/// Every number of keys up to 2,000, at the planned load.
#[test]
fn every_small_size() {
    let all = digests(2000, 0);
    let strangers = digests(300, 1);
    for n in 0..=2000 {
        // All widths in turn, the narrowest often: it is the hardest to place.
        let bits = if n % 2 == 0 { 4 } else { 4 + (n / 2 % 29) as u8 };
        for semi_sorted in [false, true] {
            let keys = &all[..n];
            let mut out = b"before".to_vec();
            let geometry = Cuckoo::build(keys, &params(bits, semi_sorted), Salt::new(1), &mut out).unwrap();
            let payload = out.strip_prefix(b"before").unwrap();
            assert_eq!(payload.len() as u64, geometry.payload_len());
            assert!(geometry.buckets <= crate::math::cuckoo::buckets(n as u64), "{n} keys, {bits} bits");
            let mut directory = Vec::new();
            geometry.encode(&mut directory);
            let mut reader = Reader::new(&directory, "test");
            assert_eq!(Cuckoo::decode(&mut reader, Salt::new(1)).unwrap(), geometry);
            assert!(reader.is_empty());
            for cut in 0..directory.len() {
                let cut = Cuckoo::decode(&mut Reader::new(&directory[..cut], "test"), Salt::new(1));
                assert!(matches!(cut, Err(FormatError::Truncated { .. })));
            }
            let (column, file) = single(geometry, payload);
            assert_eq!(count(&column, &file, keys), n, "{n} keys, {bits} bits");
            let (yes, expected) = (count(&column, &file, &strangers) as f64, 300.0 * geometry.fpr());
            assert!(yes <= expected + 6.0 * expected.sqrt() + 6.0, "{n} keys, {bits} bits: {yes} of 300 strangers");
            assert!(n > 0 || (payload.is_empty() && yes == 0.0 && geometry.fpr() == 0.0));
        }
    }
}

#[test]
fn keys_of_any_shard_are_asked_together() {
    let (keys, strangers) = (digests(3000, 0), digests(3000, 1));
    for (bits, semi_sorted) in [(7, false), (13, true), (18, false), (21, true)] {
        let mut file = vec![0xff; 3];
        let parts: Vec<_> = (0..8)
            .map(|shard| {
                let own: Vec<_> = keys.iter().filter(|key| key.shard(3) == shard && shard != 3).copied().collect();
                let start = file.len();
                let geometry = Cuckoo::build(&own, &params(bits, semi_sorted), Salt::new(2), &mut file).unwrap();
                let end = file.len();
                file.extend([0xff; 7]);
                (geometry, start..end)
            })
            .collect();
        let column = ShardedLeaf::of(3, &file, parts);
        let held: Vec<_> = keys.iter().filter(|key| key.shard(3) != 3).copied().collect();
        assert_eq!(count(&column, &file, &held), held.len());
        let rate = crate::math::cuckoo::rate(375, 99, bits.into());
        assert!(count(&column, &file, &strangers) as f64 <= 3000.0 * rate * 1.5 + 10.0);
    }
}

/// The formula is exact at every load: a full table, a third of one, a few keys in two buckets.
#[test]
fn the_rate_is_that_of_the_formula() {
    let slow = if std::env::var_os("TAMIS_SLOW").is_some() { 10 } else { 1 };
    for (n, buckets, bits, salts) in [
        (3u64, 1u64, 4, 4000),
        (5, 2, 5, 4000),
        (4, 3, 4, 4000),
        (9, 3, 4, 2000),
        (30, 9, 5, 1000),
        (70, 64, 4, 1000),
        (380, 100, 6, 400),
        (380, 101, 8, 800),
        (380, 300, 6, 800),
        (20_000, 5264, 9, 40),
        (20_000, 15_001, 8, 40),
    ] {
        for semi_sorted in [false, true] {
            let (keys, strangers) = (digests(n, 0), digests(8_000_000 / salts, 1));
            let places = ((buckets << 18) / n) as u32;
            let rates: Vec<f64> = (0..salts * slow)
                .map(|salt| {
                    let (geometry, payload) = built(&keys, &Params { bits, semi_sorted, places }, salt);
                    assert_eq!(geometry.buckets, buckets);
                    let yes = strangers.iter().filter(|&&key| geometry.contains(&payload, key)).count();
                    yes as f64 / strangers.len() as f64
                })
                .collect();
            let count = rates.len() as f64;
            let mean = rates.iter().sum::<f64>() / count;
            let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
            let (sigma, formula) = ((variance / count).sqrt(), crate::math::cuckoo::rate(n, buckets, bits.into()));
            let what = format!("{n} keys, {buckets} buckets, {bits} bits: {mean} +- {sigma}, formula {formula}");
            assert!(sigma < 0.03 * mean, "too few strangers: {what}");
            assert!((mean - formula).abs() < 4.0 * sigma, "{what}");
        }
    }
}

/// Large tables hold 95 % of their places at every width.
#[test]
fn large_tables_keep_their_load() {
    let keys = digests(200_000, 0);
    for bits in [4, 5, 6, 8, 12, 16, 17, 32] {
        for semi_sorted in [false, true] {
            let (geometry, payload) = built(&keys, &params(bits, semi_sorted), 7);
            assert_eq!(geometry.buckets, 52_632, "{bits} bits");
            let per_key = payload.len() as f64 * 8.0 / 200_000.0;
            let ideal = (f64::from(bits) - f64::from(u8::from(semi_sorted))) / 0.95;
            assert!(per_key < ideal * 1.001, "{bits} bits: {per_key} per key, {ideal} at 95 %");
            assert!(keys.iter().all(|&key| geometry.contains(&payload, key)));
        }
    }
}

/// The bytes and the answers do not depend on the processor.
#[test]
fn every_level_gives_the_same_answers() {
    let (keys, strangers) = (digests(2000, 0), digests(2000, 1));
    for (bits, semi_sorted) in [(4, true), (9, false), (9, true), (20, false), (31, true)] {
        let (geometry, payload) = built(&keys, &params(bits, semi_sorted), 3);
        let asked = [&keys[..], &strangers].concat();
        let alone: Vec<bool> = asked.iter().map(|&key| geometry.contains(&payload, key)).collect();
        for level in Level::available() {
            let (column, file) = single(Cuckoo { level, ..geometry }, &payload);
            let mut out = vec![false; asked.len()];
            column.contains_many(&file, &asked, &mut out);
            assert!(out == alone, "{level:?}, {bits} bits");
        }
    }
}

#[test]
fn impossible_directories_are_rejected() {
    let decode = |bytes: &[u8]| Cuckoo::decode(&mut Reader::new(bytes, "test"), Salt::new(1));
    for (expected, bytes) in [
        ("test: bits of a fingerprint is 3, expected 4 to 32", &[1, 3, 0, 0, 1, 1][..]),
        ("test: bits of a fingerprint is 33, expected 4 to 32", &[1, 33, 0, 0, 1, 1]),
        ("test: semi-sorted is 2, expected 0 to 1", &[1, 8, 2, 0, 1, 1]),
        ("test: salt is 4294967296, expected 0 to 4294967295", &[1, 8, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1]),
        ("test: number of buckets is 1099511627777", &[0x81, 0x80, 0x80, 0x80, 0x80, 0x20, 8, 0, 0, 1, 1]),
    ] {
        let error = decode(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let most = decode(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 32, 0, 63, 1, 1]).unwrap();
    assert_eq!(most.payload_len(), (1 << 44));
}

proptest! {
    /// Any directory and any payload, also one that is too short: an answer, and changes that end.
    #[test]
    fn random_directories_never_panic(
        buckets in prop_oneof![0..40u64, Just(MAX_BUCKETS), 0..=MAX_BUCKETS],
        bits in 4..=32u32,
        semi_sorted in any::<bool>(),
        keys in any::<u64>(),
        payload in prop::collection::vec(any::<u8>(), 0..400),
        hi in any::<u64>(),
    ) {
        let (made, _) = built(&[], &params(8, false), 1);
        let mut geometry = Cuckoo { buckets, bits, semi_sorted, keys, ..made };
        prop_assert!((0.0..=1.0).contains(&geometry.fpr()));
        let (column, file) = single(geometry, &payload);
        let key = Digest { hi, lo: hi.rotate_left(7) };
        count(&column, &file, &[key]);
        let mut changed = payload.clone();
        let there = geometry.contains(&payload, key);
        prop_assert_eq!(geometry.remove(&mut changed, key), there);
        prop_assert!(there || changed == payload);
        let _ = geometry.insert(&mut changed, key);
    }
}
