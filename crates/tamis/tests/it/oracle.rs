//! odd keys and odd sets -> the answers of a `HashSet`, except for unlisted keys.

use std::borrow::Cow;
use std::collections::HashSet;

use proptest::prelude::*;
use tamis::{BuildError, Digest, Effort, Error, Filter, Hasher, Key, KeyType, Kind, Mismatch, QueryError};

use super::{SHAPES, ask_many, integers};

/// Every way to spell a key, every odd content.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![
        b"".to_vec(),
        b"\0".to_vec(),
        b"\0\0".to_vec(),
        b"a\0b".to_vec(),
        b"a\0c".to_vec(),
        b"\xff\xfe\xc3\x28".to_vec(), // not UTF-8
        "\u{feff}h\u{e9}".as_bytes().to_vec(),
        b" line\r\n".to_vec(),
        vec![b'x'; 1 << 20],
        [vec![b'x'; (1 << 20) - 1], vec![b'y']].concat(),
    ];
    // Around every length at which hashing changes its ways.
    keys.extend((1..=300).map(|len| vec![0x5a; len]));
    keys
}

#[test]
fn odd_bytes_are_keys_like_others() {
    let keys = odd_keys();
    for &(name, kind, effort) in SHAPES {
        for build in [tamis::build(&keys), tamis::build(&keys).secret([3, 9])] {
            let filter = build.kind(kind).effort(effort).fpr(1e-4).finish().unwrap();
            assert_eq!(filter.len(), keys.len() as u64);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{name}");
            assert!(!ask_many(&filter, &keys).contains(&false), "{name}");
            // Near misses of odd keys: 290 of them pass with a chance of 1e-4 each.
            let misses = keys.iter().map(|key| [&key[..], b"\0z"].concat());
            let wrong = misses.filter(|miss| filter.contains(miss).unwrap()).count();
            assert!(wrong <= 2, "{name}: {wrong} of {} pass", keys.len());
        }
    }
}

#[test]
fn a_key_is_its_bytes_however_it_is_spelt() {
    let filter = tamis::build(["abc"]).fpr(1e-6).finish().unwrap();
    fn yes(filter: &Filter, key: impl Key) -> bool {
        filter.contains(key).unwrap()
    }
    assert!(yes(&filter, "abc") && yes(&filter, String::from("abc")) && yes(&filter, b"abc"));
    assert!(yes(&filter, &b"abc"[..]) && yes(&filter, b"abc".to_vec()) && yes(&filter, Cow::Borrowed("abc")));
    assert!(!yes(&filter, "abd") && !yes(&filter, "ab") && !yes(&filter, "abc\0"));
}

#[test]
fn integers_at_the_edges() {
    let keys = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, u32::MAX as u64, 1 << 32];
    for &(name, kind, effort) in SHAPES {
        let filter = tamis::build(keys).kind(kind).effort(effort).fpr(1e-5).finish().unwrap();
        assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{name}");
        let wrong = (2..500u64).filter(|key| filter.contains(key).unwrap()).count();
        assert!(wrong <= 1, "{name}");
    }
}

#[test]
fn equal_keys_are_one_key() {
    for &(name, kind, effort) in SHAPES {
        let filter = tamis::build(std::iter::repeat_n("same", 30_000)).kind(kind).effort(effort).finish().unwrap();
        assert_eq!(filter.len(), 1, "{name}");
        let once = tamis::build(["same"]).kind(kind).effort(effort).finish().unwrap();
        assert!(filter.as_bytes() == once.as_bytes(), "{name}");
    }
}

#[test]
fn the_other_domain_is_rejected_not_guessed() {
    let text = tamis::build(["a", "b"]).finish().unwrap();
    let numbers = tamis::build([1u64, 2]).finish().unwrap();
    assert_eq!((text.key_type(), numbers.key_type()), (KeyType::Bytes, KeyType::Integer));
    let refused = text.contains(7u64).unwrap_err();
    assert_eq!(refused, QueryError::KeyType(Mismatch { filter: KeyType::Bytes, query: KeyType::Integer }));
    assert_eq!(refused.to_string(), "wrong key type integer; expected bytes");
    let refused = numbers.contains("7").unwrap_err();
    assert_eq!(refused.to_string(), "wrong key type bytes; expected integer");
    assert_eq!(numbers.contains_into(&["7"], &mut [false]), Err(refused));
    // Even of an empty filter, and in an empty batch: the question is wrong, not the answer.
    assert!(tamis::build([0u64; 0]).finish().unwrap().contains("x").is_err());
    assert!(numbers.contains_many::<&str>(&[]).is_err());
}

#[test]
fn a_collector_takes_one_domain() {
    let mut keys = tamis::stream().start();
    keys.push("a").unwrap();
    let refused = keys.push(1u64).unwrap_err();
    assert!(matches!(refused, BuildError::MixedKeyTypes));
    assert_eq!(refused.to_string(), "keys: of two key types; expected one key type");
    // What was taken before stays, and the collector is of use.
    keys.push("b").unwrap();
    let filter = keys.finish().unwrap();
    assert_eq!((filter.len(), filter.contains("a"), filter.contains("b")), (2, Ok(true), Ok(true)));
}

#[test]
fn a_collector_builds_what_build_builds() {
    let mut keys = tamis::stream().fpr(0.02).kind(Kind::Fuse).effort(Effort::Fast).seed(4).start();
    integers(5000, 1).for_each(|key| keys.push(key).unwrap());
    let whole = tamis::build(integers(5000, 1)).fpr(0.02).kind(Kind::Fuse).seed(4).finish().unwrap();
    assert!(keys.finish().unwrap().as_bytes() == whole.as_bytes());
    assert_eq!(tamis::stream().start().finish().unwrap().len(), 0);
}

#[test]
fn the_hash_is_in_the_file() {
    let bytes = |build: tamis::FilterBuilder<'_>| build.finish().unwrap().as_bytes().to_vec();
    let build = || tamis::build(0..500u64);
    let all = [bytes(build()), bytes(build().seed(1)), bytes(build().secret([0, 0])), bytes(build().secret([0, 1]))];
    for (i, one) in all.iter().enumerate() {
        let filter = Filter::open(one.clone()).unwrap();
        assert_eq!(filter.hasher().is_secret(), i >= 2);
        assert!((0..500u64).all(|key| filter.contains(key) == Ok(true)));
        assert!(all[..i].iter().all(|other| other != one));
    }
    let keyed = Filter::open(all[3].clone()).unwrap();
    assert_eq!(keyed.hasher().words(), [0, 1]);
    assert!(!format!("{keyed:?}").contains("words"), "a secret key in a log");
}

#[test]
fn a_keyed_filter_errs_as_rarely() {
    let filter = tamis::build(integers(20_000, 1)).secret([11, 12]).fpr(0.01).finish().unwrap();
    let found = integers(100_000, 2).filter(|key| filter.contains(key).unwrap()).count() as f64;
    let expected = 1e5 * filter.fpr();
    assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} of 100,000, expected {expected}");
}

#[test]
fn threads_share_a_filter() {
    let filter = tamis::build(integers(20_000, 1)).finish().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(integers(20_000, 1).all(|key| filter.contains(key) == Ok(true))));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any small set of any bytes, any shape, any goal: members yes, unlisted keys almost always no.
    #[test]
    fn any_set_of_bytes(
        keys in prop::collection::hash_set(prop::collection::vec(any::<u8>(), 0..12), 0..400),
        others in prop::collection::hash_set(prop::collection::vec(any::<u8>(), 0..12), 0..400),
        shape in 0..SHAPES.len(),
        log_rate in 1.0..20.0f64,
        seed in any::<u64>(),
    ) {
        let (_, kind, effort) = SHAPES[shape];
        let rate = (-log_rate).exp2();
        let filter = tamis::build(&keys).kind(kind).effort(effort).fpr(rate).seed(seed).finish();
        let filter = match filter {
            Err(Error::Build(BuildError::BitsPerKey { .. } | BuildError::NoSize { .. })) if kind == Kind::Bloom => return Ok(()),
            filter => filter.unwrap(),
        };
        prop_assert_eq!(filter.len(), keys.len() as u64);
        prop_assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
        let strangers: Vec<&Vec<u8>> = others.difference(&keys).collect();
        let answers = ask_many(&filter, &strangers);
        let alone: Vec<bool> = strangers.iter().map(|key| filter.contains(key).unwrap()).collect();
        prop_assert_eq!(&answers, &alone);
        let expected = strangers.len() as f64 * filter.fpr();
        let passed = answers.iter().filter(|&&yes| yes).count() as f64;
        prop_assert!(passed <= expected + 6.0 * expected.sqrt() + 6.0, "{} pass, expected {}", passed, expected);
    }

    /// Sets of integers that are close together or far apart.
    #[test]
    fn any_set_of_integers(keys in prop::collection::vec(any::<u64>(), 0..300), shift in 0..64u32, shape in 0..SHAPES.len()) {
        let keys: HashSet<u64> = keys.into_iter().map(|key| key >> shift).collect();
        let (_, kind, effort) = SHAPES[shape];
        let filter = tamis::build(&keys).kind(kind).effort(effort).finish().unwrap();
        prop_assert_eq!(filter.len(), keys.len() as u64);
        prop_assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
    }
}

/// Digests of a hash that tamis does not know: found by their digests, and no other key gets an answer.
#[test]
fn foreign_digests() {
    let mine = |key: u64| Digest::from_hash(key << 32);
    let hasher = Hasher::foreign(7);
    let build = |n: u64| tamis::build_digests((0..n).map(mine).collect::<Vec<_>>(), hasher.clone(), KeyType::Bytes);
    for n in [0, 1, 2, 1000] {
        let excluded: Vec<Digest> = (n..20 * n).map(mine).collect();
        let filter = match n {
            0 => build(n).finish().unwrap(),
            _ => build(n).exclude_digests(excluded).exact().finish().unwrap(),
        };
        let filter = Filter::open(filter.as_bytes().to_vec()).unwrap();
        assert_eq!((filter.key_type(), filter.hasher()), (KeyType::Digest, &hasher));
        let all: Vec<Digest> = (0..20 * n).map(mine).collect();
        let answers: Vec<bool> = (0..20 * n).map(|key| key < n).collect();
        assert_eq!(filter.contains_many_digests(&all), Ok(answers.clone()));
        let mut together = vec![false; all.len()];
        filter.contains_into(&all, &mut together).unwrap();
        assert_eq!(together, answers);
        for (&digest, answer) in all.iter().zip(answers) {
            assert_eq!((filter.contains(digest), filter.contains_digest(digest)), (Ok(answer), Ok(answer)));
        }
        let mismatch = |error| matches!(error, Err(tamis::QueryError::KeyType(_)));
        assert!(mismatch(filter.contains("ann")) && mismatch(filter.contains(7u64)));
        assert!(n < 1000 || (filter.as_bytes().len() as u64) * 8 < 8 * n, "mixed hashes need no more bits than others");
    }
    // Digests are keys like others: hashed again where there is a secret, and shared by maps and sets.
    let all: Vec<Digest> = (0..2000).map(mine).collect();
    for secret in [false, true] {
        let build = tamis::build(all[..1000].to_vec());
        let filter = if secret { build.secret([3, 4]) } else { build }.finish().unwrap();
        let answers: Vec<bool> = all.iter().map(|&key| filter.contains(key).unwrap()).collect();
        assert!(answers[..1000].iter().all(|&yes| yes) && answers.iter().filter(|&&yes| yes).count() < 1100);
        assert_eq!(filter.contains_many_digests(&all), Ok(answers));
    }
    let map = tamis::map(all.iter().map(|&key| (key, key.to_bits() as u64 % 5))).finish().unwrap();
    assert!(all.iter().all(|&key| map.get_u64(key) == Ok(Some(key.to_bits() as u64 % 5))));
    let sets = tamis::sets(all.iter().map(|&key| (key, "one"))).finish().unwrap();
    assert!(all.iter().all(|&key| sets.find(key) == Ok(vec![0])));
    // Of a filter of texts, digests of its own hasher are queried and no others.
    let texts = tamis::build(["ann", "bob"]).finish().unwrap();
    assert_eq!(texts.contains_digest(texts.hasher().bytes(b"bob")), Ok(true));
    assert!(texts.contains(mine(1)).is_err());
    // Hashes in one half only: mixed, they crowd in no shard, and no bit of either half is special.
    for digest in [Digest::from(1u128 << 64), Digest::from(1u128), Digest::from_hash(1), Digest::from_hash(1 << 63)] {
        assert!((20..108).contains(&digest.to_bits().count_ones()), "{digest:?}");
    }
}

/// A filter whose key type was checked answers as it does itself, and goes where it goes.
#[test]
fn typed_filters_answer_alike() {
    fn anywhere<T: Send + Sync + Clone>(_: &T) {}
    let texts: Vec<String> = (0..2000).map(|i| format!("key{i}")).collect();
    for secret in [false, true] {
        let build = tamis::build(&texts[..1000]);
        let filter = if secret { build.secret([1, 2]) } else { build }.finish().unwrap();
        let typed = filter.typed::<str>().unwrap();
        anywhere(&typed);
        let expected: Vec<bool> = texts.iter().map(|key| filter.contains(key).unwrap()).collect();
        assert_eq!(typed.contains_many(&texts), expected);
        assert!(texts.iter().zip(&expected).all(|(key, &answer)| typed.contains(key) == answer));
        assert!(filter.typed::<[u8]>().unwrap().contains(&b"key7"[..]));
        assert!(matches!(filter.typed::<u64>(), Err(QueryError::KeyType(_))));
    }
    let numbers = tamis::build(0..1000u64).finish().unwrap().into_typed::<u64>().unwrap();
    anywhere(&numbers);
    assert!((0..1000).all(|key| numbers.contains(key)) && numbers.contains_many::<u64>(&[]).is_empty());
    assert_eq!(numbers.filter().len(), 1000);
    let mut parts = tamis::stream().exact().partitioned();
    parts.push("a", 1u64).unwrap();
    parts.exclude("a", 2u64).unwrap();
    let error = parts.finish().unwrap().typed::<u64>().map(drop);
    assert_eq!(error, Err(QueryError::Partition { partitioned: true }));
}

/// Lists of different types add up, and so do workloads.
#[test]
fn lists_may_come_in_several_calls() {
    let texts: Vec<String> = (0..500).map(|i| format!("b{i}")).collect();
    let build = || tamis::build((0..1000).map(|i| format!("a{i}"))).exclude(&texts).exclude(["c", "d"]);
    let filter = build().exact().finish().unwrap();
    assert!((0..1000).all(|i| filter.contains(format!("a{i}")) == Ok(true)));
    assert!(texts.iter().map(String::as_str).chain(["c", "d"]).all(|key| filter.contains(key) == Ok(false)));
    assert_eq!(filter.excluded_len(), 502);
    let (_, report) = build().workload([("x", 3.0)]).workload([("y", 2.0), ("x", 1.0)]).finish_with_report().unwrap();
    let workload = report.workload.unwrap();
    assert_eq!((workload.keys, workload.queries), (2, 6.0));
    // An integer is no text, wherever it comes.
    let mixed = tamis::build(["a"]).exclude([1]).finish().unwrap_err();
    assert!(matches!(mixed, tamis::Error::Build(tamis::BuildError::MixedKeyTypes)), "{mixed}");
}

/// Options serve many builds; what has no effect on one is an error there.
#[test]
fn options_serve_many_builds() {
    let options = tamis::Options::default().seed(7).threads(2);
    let filter = options.clone().fpr(0.001).build(0..100).finish().unwrap();
    assert_eq!(filter.as_bytes(), tamis::build(0..100).fpr(0.001).seed(7).finish().unwrap().as_bytes());
    let map = options.clone().map((0..100).map(|key| (key, 3u64))).finish().unwrap();
    assert_eq!((map.get_u64(5), map.hasher()), (Ok(Some(3)), filter.hasher()));
    let index = options.clone().sets([("ann", "red")]).finish().unwrap();
    assert_eq!(index.hasher(), filter.hasher());
    let error = options.clone().fpr(0.1).map([("a", 1u64)]).finish().unwrap_err().to_string();
    assert_eq!(error, "fpr: no effect; expected a filter");
    let error = options.kind(tamis::Kind::Fuse).sets([("ann", "red")]).finish().unwrap_err().to_string();
    assert_eq!(error, "kind: no effect; expected a filter");
    for threads in [0, 1025] {
        let error = tamis::build([1]).threads(threads).finish().unwrap_err().to_string();
        assert_eq!(error, format!("threads {threads}: out of range; expected 1 to 1024"));
    }
}

/// Digests are taken over, sorted or not, repeated or not, and shared where the caller keeps them.
#[test]
fn digests_are_taken_over() {
    use std::sync::Arc;
    use tamis::{Hasher, KeyType};
    let hasher = Hasher::seeded(3);
    let keys: Vec<u64> = (0..3000).collect();
    let expected = tamis::build(&keys).seed(3).finish().unwrap();
    let mut digests = hasher.digests(&keys);
    digests.extend_from_within(..10);
    let unsorted = tamis::build_digests(digests.clone(), hasher.clone(), KeyType::Integer).finish().unwrap();
    digests.sort_unstable();
    digests.dedup();
    let sorted = Arc::new(digests);
    let shared = tamis::build_digests(Arc::clone(&sorted), hasher.clone(), KeyType::Integer).finish().unwrap();
    assert!(unsorted == expected && shared == expected);
    let excluded = hasher.digests(&[5000, 5001, 7]);
    let build = || tamis::build_digests(Arc::clone(&sorted), hasher.clone(), KeyType::Integer);
    let error = build().exclude_digests(excluded.clone()).finish().unwrap_err();
    let at = sorted.iter().position(|digest| *digest == excluded[2]).unwrap() as u64;
    assert!(
        matches!(&error, tamis::Error::Build(tamis::BuildError::Conflict { count: 1, first }) if *first == [(at, 2)]),
        "{error}"
    );
    let filter = build().exclude_digests(excluded[..1].to_vec()).exclude([5001]).finish().unwrap();
    assert!(filter.contains(7) == Ok(true) && filter.contains(5000) == Ok(false) && filter.contains(5001) == Ok(false));
}
