//! the law book -> maps and sequences: against the pairs they were built from, byte by byte, and with bytes that are wrong.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tamis::maps::{Kind, MapBuilder, ToValue, Value};
use tamis::{
    BuildError, Effort, Error, Filter, FormatError, KeyType, Layout, Limits, Map, Mismatch, QueryError, Sequence,
};

use super::corrupt::Random;
use super::memory::watched;
use super::repair::{FORM, FRONT, Parts};
use super::{integers, mix};

/// Every way to build a map.
type Shape = (&'static str, Kind, Effort, Layout);
const SHAPES: [Shape; 8] = [
    ("auto", Kind::Auto, Effort::Balanced, Layout::Compact),
    ("compressed", Kind::Compressed, Effort::Balanced, Layout::Compact),
    ("compressed, fast", Kind::Compressed, Effort::Fast, Layout::Compact),
    ("compressed, smallest", Kind::Compressed, Effort::Smallest, Layout::Compact),
    ("compressed, auto layout", Kind::Compressed, Effort::Balanced, Layout::Auto),
    ("local", Kind::Compressed, Effort::Balanced, Layout::Local),
    ("ribbon", Kind::Ribbon, Effort::Balanced, Layout::Compact),
    ("fuse", Kind::Fuse, Effort::Balanced, Layout::Compact),
];

/// Every law of values: name, and the value of the `i`-th key.
type Law = (&'static str, fn(u64) -> u64);
const LAWS: [Law; 9] = [
    ("one value", |_| 7),
    ("two, even", |i| mix(i) & 1),
    ("two, lopsided", |i| mix(i).is_multiple_of(50) as u64),
    ("geometric", |i| mix(i).trailing_zeros() as u64),
    ("three", |i| 5 + mix(i) % 3),
    ("a thousand", |i| mix(i) % 1000),
    ("Zipf", |i| 3000 / (1 + mix(i) % 3000)),
    ("far apart", |i| (mix(i) % 5) << 61),
    ("all different", |i| i),
];

fn want<I>(build: MapBuilder<'_, I>, shape: Shape) -> MapBuilder<'_, I> {
    want_with(build, shape, tamis::Options::default())
}

fn want_with<'a, I>(
    build: MapBuilder<'a, I>,
    (_, kind, effort, layout): Shape,
    options: tamis::Options<'a>,
) -> MapBuilder<'a, I> {
    build.kind(kind).options(options.effort(effort)).layout(layout)
}

/// With a fingerprint of so many bits, or none.
fn marked<I>(build: MapBuilder<'_, I>, bits: u32) -> MapBuilder<'_, I> {
    if bits == 0 { build.unchecked() } else { build.fpr(0.5f64.powi(bits as i32)) }
}

fn pairs(n: u64, law: fn(u64) -> u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    integers(n, 1).zip((0..n).map(law))
}

/// Every pair, alone and in a batch; and what the map says of itself.
fn holds(map: &Map, pairs: &[(u64, u64)], what: &str) {
    assert_eq!((map.len(), map.is_empty()), (pairs.len() as u64, pairs.is_empty()), "{what}");
    for &(key, value) in pairs {
        assert_eq!(map.get_u64(key), Ok(Some(value)), "{what}, key {key}");
        assert_eq!(map.get(key), Ok(Some(Value::Number(value))), "{what}, key {key}");
    }
    let keys: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    let mut values = vec![None; keys.len()];
    map.get_many_u64(&keys, &mut values).unwrap();
    assert!(values.iter().zip(pairs).all(|(found, pair)| *found == Some(pair.1)), "{what}");
    assert!(map.get_many(&keys).unwrap().iter().zip(pairs).all(|(found, pair)| *found == Some(Value::Number(pair.1))));
    map.verify().unwrap();
}

#[test]
fn every_key_has_its_value_for_every_small_n() {
    for shape in SHAPES {
        for (law, value) in LAWS {
            for n in (0..=20).chain([63, 64, 65, 128, 129, 300]) {
                let pairs: Vec<(u64, u64)> = pairs(n, value).collect();
                for bits in [0, 5] {
                    let one_thread = tamis::Options::default().threads(1);
                    let map = marked(want_with(tamis::map(pairs.iter().copied()), shape, one_thread), bits).finish();
                    holds(&map.unwrap(), &pairs, &format!("{}, {law}, {n} keys, {bits} bits", shape.0));
                }
            }
        }
    }
}

#[test]
fn every_key_has_its_value_for_larger_n() {
    for shape in SHAPES {
        for (law, value) in LAWS {
            for (n, bits) in [(2000, 8), (10_000, 0), (10_001, 8), (40_000, 0)] {
                let pairs: Vec<(u64, u64)> = pairs(n, value).collect();
                let map = marked(want(tamis::map(pairs.iter().copied()), shape), bits).finish().unwrap();
                holds(&map, &pairs, &format!("{}, {law}, {n} keys, {bits} bits", shape.0));
            }
        }
    }
}

/// Widths of functions, up to the two words of a fingerprint beside 64 bits.
#[test]
fn functions_of_every_width() {
    for kind in [Kind::Ribbon, Kind::Fuse] {
        for width in 1..=64 {
            let pairs: Vec<(u64, u64)> =
                integers(300, 1).zip(integers(300, 2).map(|value| value >> (64 - width))).collect();
            for bits in [0, 1, 32] {
                let build = marked(tamis::map(pairs.iter().copied()).kind(kind).width(width), bits);
                let map = build.options(tamis::Options::default().threads(1)).finish().unwrap();
                holds(&map, &pairs, &format!("{kind:?}, {width} bits and {bits}"));
            }
        }
    }
}

#[test]
fn text_and_bytes_are_values() {
    let words: Vec<String> = (0..5000u64).map(|i| format!("word-{}", mix(i).leading_zeros())).collect();
    let odd: [&[u8]; 5] = [b"", b"\0", b"\xff\xfe", b"a\tb\nc", &[0x61; 3000]];
    for shape in SHAPES {
        let map = want(tamis::map(words.iter().enumerate().map(|(i, word)| (format!("key {i}"), word))), shape);
        let map = marked(map, 20).finish().unwrap();
        assert_eq!((map.key_type(), map.value_type()), (KeyType::Bytes, KeyType::Bytes));
        for (i, word) in words.iter().enumerate() {
            assert_eq!(map.get_bytes(format!("key {i}")), Ok(Some(word.as_bytes())), "{}", shape.0);
        }
        let absent = (0..5000).filter(|i| map.get_bytes(format!("absent {i}")) != Ok(None)).count();
        assert!(absent < 5, "{absent} of 5000 absent keys have a value");
        let map = want(tamis::map((0..5u64).zip(odd)), shape).finish().unwrap();
        for (i, value) in odd.iter().enumerate() {
            assert_eq!(map.get(i as u64), Ok(Some(Value::Bytes(value))), "{}", shape.0);
        }
    }
}

/// Close to the entropy, for laws of every kind; the bytes count, the table of values among them.
#[test]
fn compressed_maps_are_close_to_the_entropy() {
    let n = 200_000;
    for (law, value, over, smallest) in [
        ("omega 3", (|i| omega(i, 3)) as fn(u64) -> u64, 0.095, 0.085),
        ("omega 4", |i| omega(i, 4), 0.045, 0.035),
        ("omega 10", |i| omega(i, 10), 0.035, 0.030),
        ("one in a thousand", |i| mix(i).is_multiple_of(1000) as u64, 0.009, 0.009),
        ("two", |i| mix(i) & 1, 0.012, 0.012),
        ("ten", |i| mix(i) % 10, 0.075, 0.065),
        ("256", |i| mix(i) & 255, 0.06, 0.06),
        ("one value", |_| 3, 0.006, 0.006),
    ] {
        for (effort, most) in [(Effort::Balanced, over), (Effort::Smallest, smallest)] {
            let map = tamis::map(pairs(n, value))
                .kind(Kind::Compressed)
                .unchecked()
                .options(tamis::Options::default().effort(effort))
                .finish()
                .unwrap();
            let mut counts: HashMap<u64, u64> = HashMap::new();
            (0..n).for_each(|i| *counts.entry(value(i)).or_default() += 1);
            let entropy: f64 = counts.values().map(|&count| count as f64 * (n as f64 / count as f64).log2()).sum();
            assert_eq!(map.distinct(), Some(counts.len() as u64), "{law}");
            assert!((map.entropy().unwrap() as f64 - entropy).abs() <= 1.0, "{law}");
            let bits = map.as_bytes().len() as f64 * 8.0 - entropy;
            assert!(bits <= most * n as f64, "{law}, {effort:?}: {} bits per key over entropy", bits / n as f64);
        }
    }
}

/// The law of [Chained] section 5.2.3: every symbol is `omega` times as frequent as the next.
fn omega(i: u64, omega: u64) -> u64 {
    let mut x = mix(i);
    let mut symbol = 0;
    while x.is_multiple_of(omega) && symbol < 40 {
        x /= omega;
        symbol += 1;
    }
    symbol
}

#[test]
fn functions_take_their_width() {
    let n = 200_000;
    for width in [1u32, 4, 8, 16, 32] {
        let map = tamis::map(integers(n, 1).zip(integers(n, 2).map(|value| value >> (64 - width)))).width(width);
        let bits = map.kind(Kind::Ribbon).unchecked().finish().unwrap().as_bytes().len() as f64 * 8.0 / n as f64;
        assert!(bits < 1.013 * f64::from(width) + 0.005, "{bits} bits for {width}");
    }
}

/// Where nothing is saved, the planner leaves it at a function, with or without fingerprints.
#[test]
fn auto_is_the_smaller_of_both() {
    for (law, value) in LAWS.into_iter().chain([("2^20", (|i| mix(i) >> 44) as fn(u64) -> u64), ("5", |i| mix(i) % 5)])
    {
        for (n, bits) in [(100, 0), (5000, 0), (5000, 8), (100_000, 0), (100_000, 16)] {
            let size = |kind: Kind| {
                let map = marked(tamis::map(pairs(n, value)).kind(kind), bits).finish().unwrap();
                map.as_bytes().len() as f64
            };
            let (auto, best) = (size(Kind::Auto), size(Kind::Ribbon).min(size(Kind::Compressed)));
            assert!(auto <= 1.025 * best + 64.0, "{law}, {n} keys, {bits} bits: {auto} bytes, {best} are possible");
        }
    }
}

/// What a map says about keys that it never had: nothing, but for one in 256, unless it is told otherwise.
#[test]
fn unlisted_keys_have_no_value() {
    type Case = (&'static str, fn(MapBuilder<Vec<(u64, u64)>>) -> MapBuilder<Vec<(u64, u64)>>, u32);
    let cases: [Case; 8] = [
        ("default", |build| build, 8),
        ("ribbon", |build| build.kind(Kind::Ribbon), 8),
        ("fuse", |build| build.kind(Kind::Fuse), 8),
        ("compressed", |build| build.kind(Kind::Compressed), 8),
        ("1/256", |build| build.fpr(1.0 / 256.0), 8),
        ("0.3 %", |build| build.fpr(0.003), 9),
        ("0.9", |build| build.fpr(0.9), 1),
        ("2^-32", |build| build.fpr(0.5f64.powi(32)), 32),
    ];
    let unlisted: Vec<u64> = integers(100_000, 9).collect();
    let some = |map: &Map| map.get_many(&unlisted).unwrap().iter().flatten().count() as f64;
    // The first node of a tree is flat or exact, or there is none.
    for (law, value) in [LAWS[0], LAWS[2], LAWS[4], LAWS[5], LAWS[8]] {
        for (case, want, bits) in cases {
            let listed: Vec<(u64, u64)> = pairs(20_000, value).collect();
            let map = want(tamis::map(listed.clone())).finish().unwrap();
            holds(&map, &listed, &format!("{law}, {case}"));
            let fpr = 0.5f64.powi(bits as i32);
            let found = some(&map);
            assert_eq!(map.fpr(), fpr, "{law}, {case}");
            assert!(found <= 1e5 * fpr + 5.0 * (1e5 * fpr).sqrt(), "{law}, {case}: {found} of 100,000");
            let unchecked = want(tamis::map(listed)).unchecked().finish().unwrap();
            assert_eq!(unchecked.fpr(), 1.0, "{law}, {case}");
            assert!(some(&unchecked) > 40_000.0, "{law}, {case}");
            let more = (map.as_bytes().len() - unchecked.as_bytes().len()) as f64 * 8.0 / 20_000.0;
            let most = if case == "fuse" { 1.32 } else { 1.04 };
            assert!(more < most * f64::from(bits) + 0.05, "{law}, {case}: {more} bits per key for {bits}");
        }
    }
}

/// Absent keys pass as often as their fingerprint says.
#[test]
fn absent_keys_are_recognised() {
    let (n, asked) = (20_000, 400_000);
    for shape in SHAPES {
        for (law, value) in [LAWS[0], LAWS[3], LAWS[5]] {
            for bits in [1, 4, 9] {
                let map = marked(want(tamis::map(pairs(n, value)), shape), bits).finish().unwrap();
                let strangers: Vec<u64> = integers(asked, 9).collect();
                let mut found = vec![None; strangers.len()];
                map.get_many_u64(&strangers, &mut found).unwrap();
                assert!(strangers.iter().zip(&found).all(|(&key, &found)| map.get_u64(key) == Ok(found)));
                let passed = found.iter().filter(|found| found.is_some()).count() as f64;
                // A class that is not full recognises some more.
                let (rate, sigma) = (map.fpr(), (asked as f64 * map.fpr()).sqrt());
                assert_eq!(rate, 0.5f64.powi(bits as i32));
                assert!(passed <= asked as f64 * rate + 5.0 * sigma, "{}, {law}, {bits}: {passed}", shape.0);
                assert!(passed >= 0.4 * asked as f64 * rate, "{}, {law}, {bits}: {passed}", shape.0);
            }
        }
    }
    // Without fingerprints every key gets a value that some key has, or none.
    let map = tamis::map(pairs(n, LAWS[3].1)).kind(Kind::Compressed).unchecked().finish().unwrap();
    assert_eq!(map.fpr(), 1.0);
    let values: std::collections::BTreeSet<u64> = pairs(n, LAWS[3].1).map(|(_, value)| value).collect();
    assert!(integers(1000, 9).all(|key| map.get_u64(key).unwrap().is_none_or(|value| values.contains(&value))));
}

#[test]
fn one_value_takes_no_bits() {
    for (value, kind) in [(0, Kind::Auto), (77, Kind::Ribbon), (u64::MAX, Kind::Compressed)] {
        let map = tamis::map(integers(100_000, 1).map(|key| (key, value))).kind(kind).unchecked().finish().unwrap();
        assert!(map.as_bytes().len() < 128, "{} bytes", map.as_bytes().len());
        assert_eq!(map.get_u64(5), Ok(Some(value)));
        assert_eq!((map.layers().count(), map.fpr(), map.entropy()), (0, 1.0, Some(0)));
    }
}

#[test]
fn empty_maps_know_nobody() {
    for shape in SHAPES {
        for bits in [0, 8] {
            let map = marked(want(tamis::map([(0u64, 0u64); 0]), shape), bits).finish().unwrap();
            assert_eq!((map.len(), map.fpr(), map.distinct()), (0, 0.0, Some(0)));
            assert!(integers(100, 1).all(|key| map.get_u64(key) == Ok(None)));
            assert_eq!(map.get_many(&[1u64, 2, 3]).unwrap(), [None; 3]);
            // Values are of no kind yet, keys are.
            assert_eq!(map.get_bytes(7u64), Ok(None));
            assert!(matches!(map.get("anybody"), Err(QueryError::KeyType(_))));
            assert!(matches!(map.get_many(&["anybody"]), Err(QueryError::KeyType(_))));
            assert!(matches!(map.get_many_u64(&["anybody"], &mut [None]), Err(QueryError::KeyType(_))));
        }
    }
    // As an empty filter: bytes, where no key said otherwise.
    let map = tamis::maps::stream().start().finish().unwrap();
    assert_eq!((map.get("anybody"), map.key_type()), (Ok(None), KeyType::Bytes));
    assert!(map.get(7u64).is_err() && tamis::stream().start().finish().unwrap().contains(7u64).is_err());
    let nothing = tamis::sequence([0u8; 0]).finish().unwrap();
    assert_eq!((nothing.len(), nothing.get(0), nothing.iter().count()), (0, None, 0));
}

#[test]
fn two_values_for_a_key_are_an_error() {
    let pairs = [("a", 1u64), ("b", 2), ("c", 3), ("b", 2), ("a", 4), ("a", 1), ("c", 5), ("a", 6)];
    let error = tamis::map(pairs).finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "pairs: 2 keys have two values (pairs 0 and 4, pairs 2 and 6); expected one value for each key"
    );
    assert!(matches!(error, Error::Build(BuildError::TwoValues { count: 2, .. })));
    // Whatever the order in which pairs meet, the first one counts and the first one that contradicts it is named.
    for memory in [1, 1 << 30] {
        let many = || integers(300_000, 1).chain(integers(300_000, 1).step_by(1000)).map(|key| (key, key % 7));
        let torn = many().chain([(integers(1, 1).next().unwrap(), 9)]);
        let limits = Limits::default().memory(memory);
        assert!(tamis::map(many()).options(tamis::Options::default().limits(limits.clone())).finish().is_ok());
        let error = tamis::map(torn).options(tamis::Options::default().limits(limits)).finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "pairs: 1 key has two values (pairs 0 and 300300); expected one value for each key"
        );
    }
}

#[test]
fn values_that_were_not_declared_are_an_error() {
    let refused = |build: Result<Map, Error>| build.unwrap_err().to_string();
    let numbers = || tamis::map([("a", 1u64), ("b", 256)]);
    assert_eq!(refused(numbers().width(8).finish()), "value 256: does not fit in 8 bits; expected at most 255");
    assert!(numbers().width(9).finish().is_ok() && numbers().width(64).finish().is_ok());
    assert_eq!(
        refused(numbers().alphabet([1u64, 2, 3]).finish()),
        "value 256: not declared; expected one of the 3 declared values"
    );
    assert!(numbers().alphabet([1u64, 256, 3]).finish().is_ok());
    let words = || tamis::map([("a", "x"), ("b", "y")]);
    assert_eq!(
        refused(words().alphabet(["x"]).finish()),
        "value \"y\": not declared; expected one of the 1 declared values"
    );
    assert_eq!(refused(words().width(3).finish()), "value \"x\": not a number; expected a number of 3 bits");
    let mut mixed = tamis::maps::stream().start();
    mixed.push("a", 1u64).unwrap();
    let error = mixed.push("b", "one").unwrap_err();
    assert_eq!(error.to_string(), "values: numbers and bytes; expected one of the two");
    assert!(matches!(mixed.push(1u64, 1u64).unwrap_err(), BuildError::MixedKeyTypes));
}

/// Options out of range, contradictions, and options that cannot matter: from a builder and from its collector.
#[test]
fn options_that_cannot_be_met_are_named() {
    type Case = (fn(MapBuilder<()>) -> MapBuilder<()>, &'static str);
    let cases: [Case; 11] = [
        (|build| build.fpr(0.0), "fpr 0: out of range; expected 2.3283064365386963e-10 to 1"),
        (|build| build.fpr(1e-10), "fpr 1e-10: out of range; expected 2.3283064365386963e-10 to 1"),
        (|build| build.fpr(1.0), "fpr 1: out of range; expected 2.3283064365386963e-10 to 1, but not 1"),
        (|build| build.fpr(f64::NAN), "fpr NaN: out of range; expected 2.3283064365386963e-10 to 1"),
        (|build| build.width(0), "width 0: out of range; expected 1 to 64"),
        (|build| build.width(65), "width 65: out of range; expected 1 to 64"),
        (|build| build.kind(Kind::Fuse).layout(Layout::Local), "layout: no effect; expected kind compressed"),
        (|build| build.layout(Layout::Local).kind(Kind::Ribbon), "layout: no effect; expected kind compressed"),
        (|build| build.width(3).alphabet([7u64, 9, 8]), "value 9: does not fit in 3 bits; expected at most 7"),
        (|build| build.alphabet(["x", "a"]).width(3), "value \"a\": not a number; expected a number of 3 bits"),
        (
            |build| build.alphabet([Value::Number(1), Value::Bytes(b"a")]),
            "values: numbers and bytes; expected one of the two",
        ),
    ];
    for (want, expected) in cases {
        let error = want(tamis::maps::stream()).start().finish().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    // Before any pair is read.
    let none = || std::iter::from_fn(|| -> Option<(u64, u64)> { unreachable!() });
    assert!(tamis::map(none()).fpr(2.0).finish().is_err());
    assert!(tamis::sequence(none().map(|pair| pair.1)).width(65).finish().is_err());
    assert!(tamis::map([(1u64, 1u64)]).width(3).alphabet([1u64, 7]).finish().is_ok());
}

#[test]
fn queries_of_the_wrong_kind_are_rejected() {
    let numbers = tamis::map([("a", 1u64), ("b", 2)]).finish().unwrap();
    assert_eq!(
        numbers.get(1u64),
        Err(QueryError::KeyType(Mismatch { filter: KeyType::Bytes, query: KeyType::Integer }))
    );
    assert_eq!(numbers.get_many(&[1u64]).unwrap_err().to_string(), "wrong key type integer; expected bytes");
    assert_eq!(numbers.get_bytes("a").unwrap_err().to_string(), "the values of the map are numbers; expected bytes");
    let words = tamis::map([("a", "x"), ("b", "y")]).finish().unwrap();
    assert_eq!(words.get_u64("a").unwrap_err().to_string(), "the values of the map are bytes; expected numbers");
    assert_eq!(
        words.get_many_u64(&["a"], &mut [None]).unwrap_err().to_string(),
        "the values of the map are bytes; expected numbers"
    );
    assert_eq!(numbers.get_many_u64(&["a"], &mut []), Err(QueryError::Length { keys: 1, answers: 0 }));
}

#[test]
fn files_of_another_kind_are_named() {
    let map = tamis::map([("a", 1u64), ("b", 2)]).finish().unwrap().as_bytes().to_vec();
    let sequence = tamis::sequence(b"abc").finish().unwrap().as_bytes().to_vec();
    let filter = tamis::build(["a"]).finish().unwrap().as_bytes().to_vec();
    let form = |found, expected| Some(FormatError::Form { found, expected });
    assert_eq!(Map::open(filter.clone()).err(), form("filter", "map"));
    assert_eq!(Map::open(sequence.clone()).err(), form("sequence", "map"));
    assert_eq!(Sequence::open(filter).err(), form("filter", "sequence"));
    assert_eq!(Sequence::open(map.clone()).err(), form("map", "sequence"));
    assert_eq!(Filter::open(map).err(), form("map", "filter"));
    assert_eq!(Filter::open(sequence).err(), form("sequence", "filter"));
    assert_eq!(Map::open(&b"no file"[..]).err(), Some(FormatError::Magic));
}

/// Order, repetition, threads and memory leave no trace.
#[test]
fn the_pairs_alone_decide_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits::default().memory(1).tmp(dir.path());
    for shape in SHAPES {
        for (law, value) in [LAWS[3], LAWS[6], LAWS[8]] {
            let pairs: Vec<(u64, u64)> = pairs(150_000, value).collect();
            let seeded = || tamis::Options::default().seed(3);
            let build = |pairs: Vec<(u64, u64)>, options| marked(want_with(tamis::map(pairs), shape, options), 3);
            let map = build(pairs.clone(), seeded().threads(1)).finish().unwrap();
            let mut other: Vec<(u64, u64)> = pairs.iter().rev().copied().collect();
            other.extend_from_slice(&pairs[..5000]);
            let other = build(other, seeded().threads(3).limits(limits.clone())).finish().unwrap();
            assert!(map.as_bytes() == other.as_bytes(), "{}, {law}", shape.0);
            let path = dir.path().join("map.tamis");
            let report = build(pairs.clone(), seeded()).finish_to(&path).unwrap();
            assert_eq!((report.keys, report.duplicates, report.bytes), (150_000, 0, map.as_bytes().len() as u64));
            for opened in [
                crate::mapped::map(&path).unwrap(),
                Map::read(&path).unwrap(),
                Map::open(map.as_bytes().to_vec()).unwrap(),
            ] {
                assert!(opened.as_bytes() == map.as_bytes());
                assert!(pairs.iter().step_by(97).all(|&(key, value)| opened.get_u64(key) == Ok(Some(value))));
            }
            std::fs::remove_file(path).unwrap();
        }
    }
    // Text has its numbers in the order of appearance: they must not show.
    let words: Vec<(u64, String)> = pairs(9000, LAWS[6].1).map(|(key, value)| (key, format!("w{value}"))).collect();
    let map = tamis::map(words.iter().cloned()).finish().unwrap();
    let other = tamis::map(words.iter().rev().cloned()).finish().unwrap();
    assert!(map.as_bytes() == other.as_bytes());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn several_shards() {
    const N: u64 = 2_000_000;
    for shape in [1, 3, 5, 6, 7].map(|i: usize| SHAPES[i]) {
        // Some values are too rare for every shard to have one.
        let value = |i: u64| if i % 700_000 == 3 { 1000 + i / 700_000 } else { omega(i, 5) };
        let pairs = || integers(N, 1).zip((0..N).map(value));
        let map = marked(want(tamis::map(pairs()), shape), 2).finish().unwrap();
        assert_eq!((map.shards(), map.len()), (2, N));
        for (start, chunk) in pairs().collect::<Vec<_>>().chunks(1000).enumerate() {
            let keys: Vec<u64> = chunk.iter().map(|pair| pair.0).collect();
            let mut found = vec![None; keys.len()];
            map.get_many_u64(&keys, &mut found).unwrap();
            for (&(key, value), found) in chunk.iter().zip(found) {
                assert_eq!(found, Some(value), "{}, chunk {start}", shape.0);
                if start.is_multiple_of(16) {
                    assert_eq!(map.get_u64(key), Ok(Some(value)), "{}", shape.0);
                }
            }
        }
    }
}

#[test]
fn a_secret_key_is_kept() {
    let build = || tamis::map((0..3000u64).map(|key| (key, key % 5)));
    let map = build().options(tamis::Options::default().secret([1, 2])).finish().unwrap();
    assert!(map.hasher().is_secret() && (0..3000).all(|key| map.get_u64(key) == Ok(Some(key % 5))));
    let mut found = vec![None; 3000];
    map.get_many_u64(&(0..3000).collect::<Vec<u64>>(), &mut found).unwrap();
    assert!((0..3000).zip(found).all(|(key, found)| found == Some(key % 5)));
    assert!(map.as_bytes() != build().options(tamis::Options::default().secret([1, 3])).finish().unwrap().as_bytes());
}

#[test]
fn a_cancelled_build_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, flag) = (dir.path().join("map.tamis"), Arc::new(AtomicBool::new(true)));
    let error = tamis::map(pairs(100_000, LAWS[3].1))
        .options(tamis::Options::default().cancel(flag))
        .finish_to(&path)
        .unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn very_many_values_are_a_function() {
    let n = (1 << 22) + 5;
    let build = || tamis::map((0..n).map(|key: u64| (key, key)));
    let map = build().finish().unwrap();
    assert_eq!((map.distinct(), map.entropy()), (None, None));
    assert!((0..n).step_by(1013).all(|key| map.get_u64(key) == Ok(Some(key))));
    let error = build().kind(Kind::Compressed).finish().unwrap_err();
    assert_eq!(error.to_string(), "compressed values: too many; expected at most 4194304; use kind ribbon or fuse");
}

fn sequences<T: ToValue + Clone>(symbols: &[T], what: &str) {
    for (name, kind, effort, layout) in SHAPES {
        let build = tamis::sequence(symbols.iter().cloned())
            .kind(kind)
            .options(tamis::Options::default().effort(effort))
            .layout(layout);
        let sequence = build.finish().unwrap();
        assert_eq!(sequence.len(), symbols.len() as u64);
        for (i, symbol) in symbols.iter().enumerate() {
            assert_eq!(sequence.get(i as u64), Some(symbol.to_value()), "{what}, {name}, {i}");
        }
        assert!(sequence.iter().eq(symbols.iter().map(ToValue::to_value)), "{what}, {name}");
        for beyond in [sequence.len(), sequence.len() + 1, u64::MAX] {
            assert_eq!(sequence.get(beyond), None);
            assert_eq!(sequence.get_many(&[beyond]), [None]);
        }
        let again = Sequence::open(sequence.as_bytes().to_vec()).unwrap();
        assert!(again.iter().eq(sequence.iter()));
        again.verify().unwrap();
    }
}

#[test]
fn sequences_are_what_they_were() {
    for n in [0, 1, 2, 3, 255, 256, 257, 1023, 1024, 1025, 5000] {
        for (law, value) in LAWS {
            sequences(&(0..n).map(value).collect::<Vec<u64>>(), &format!("{law}, {n}"));
        }
    }
    sequences(b"a random access sequence of bytes", "text");
    sequences(&["mon", "tue", "wed"], "words");
    sequences(&[true, false, true], "truth");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sequence.tamis");
    let report = tamis::sequence(b"abracadabra").finish_to(&path).unwrap();
    assert_eq!((report.keys, report.values, report.duplicates), (11, Some(5), 0));
    assert_eq!(crate::mapped::sequence(&path).unwrap().get(4), Some(Value::Number(b'c'.into())));
    assert_eq!(Sequence::read(&path).unwrap().len(), 11);
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden-maps");

/// A golden map: how it is built, and the values that its keys have.
struct Golden {
    name: &'static str,
    keys: u64,
    value: fn(u64) -> u64,
    want: fn(MapBuilder<Pairs>) -> MapBuilder<Pairs>,
}
type Pairs = Vec<(String, u64)>;

const GOLDEN: [Golden; 13] = {
    const fn golden(
        name: &'static str,
        keys: u64,
        value: fn(u64) -> u64,
        want: fn(MapBuilder<Pairs>) -> MapBuilder<Pairs>,
    ) -> Golden {
        Golden { name, keys, value, want }
    }
    [
        golden("empty", 0, LAWS[0].1, |build| build),
        golden("single", 1000, LAWS[0].1, |build| build.unchecked()),
        golden("function", 1000, LAWS[5].1, |build| build.kind(Kind::Ribbon).unchecked()),
        golden("function-fuse", 1000, LAWS[5].1, |build| build.kind(Kind::Fuse).fpr(1.0 / 128.0)),
        golden("function-wide", 1000, mix, |build| build.fpr(1.0 / (1 << 30) as f64)),
        golden("function-bumped", 12_000, LAWS[5].1, |build| build.kind(Kind::Ribbon).unchecked()),
        golden("compressed", 12_000, LAWS[3].1, |build| build.kind(Kind::Compressed).unchecked()),
        golden("compressed-fingerprint", 12_000, LAWS[3].1, |build| build.kind(Kind::Compressed)),
        golden("compressed-zipf", 12_000, LAWS[6].1, |build| build.kind(Kind::Compressed).unchecked()),
        golden("compressed-smallest", 12_000, LAWS[6].1, |build| {
            build.kind(Kind::Compressed).unchecked().options(tamis::Options::default().effort(Effort::Smallest))
        }),
        golden("compressed-local", 12_000, LAWS[3].1, |build| {
            build.kind(Kind::Compressed).unchecked().layout(Layout::Local)
        }),
        // Nodes of steered columns and a bit, more than one level deep.
        golden("compressed-steered", 60_000, |i| omega(i, 3), |build| build.kind(Kind::Compressed).unchecked()),
        golden("keyed", 1000, LAWS[3].1, |build| {
            build.unchecked().options(tamis::Options::default().secret([0x0123_4567_89ab_cdef, 42]))
        }),
    ]
};

impl Golden {
    fn pairs(&self) -> Pairs {
        (0..self.keys).map(|i| (format!("key-{i}"), (self.value)(i))).collect()
    }

    fn build(&self) -> Vec<u8> {
        (self.want)(tamis::map(self.pairs())).finish().unwrap().as_bytes().to_vec()
    }
}

fn golden() -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> = GOLDEN.iter().map(|golden| (golden.name, golden.build())).collect();
    let words = (0..3000).map(|i| (format!("key-{i}"), format!("value-{}", omega(i, 3))));
    all.push(("text", tamis::map(words).unchecked().finish().unwrap().as_bytes().to_vec()));
    let numbers = (0..3000u64).map(|key| (key, omega(key, 4)));
    all.push(("u64", tamis::map(numbers).unchecked().finish().unwrap().as_bytes().to_vec()));
    let symbols = (0..3000).map(|i| omega(i, 4) as u8);
    all.push(("sequence", tamis::sequence(symbols).finish().unwrap().as_bytes().to_vec()));
    // Several shards; parts and tables of values above 64 KB.
    let sharded = || tamis::internals::with_shard_keys(tamis::Options::default(), 1500);
    let pairs = |n, value: fn(u64) -> u64| (0..n).map(move |i| (format!("key-{i}"), value(i)));
    let mut push =
        |name, map: MapBuilder<'_, _>| all.push((name, map.unchecked().finish().unwrap().as_bytes().to_vec()));
    push("shards", tamis::map(pairs(6000, LAWS[5].1)).kind(Kind::Ribbon).options(sharded()));
    push("shards-compressed", tamis::map(pairs(6000, LAWS[3].1)).kind(Kind::Compressed).options(sharded()));
    push("large", tamis::map(pairs(70_000, |i| mix(i) % 256)).kind(Kind::Ribbon));
    push("large-wide", tamis::map(pairs(17_000, mix)));
    let symbols = (0..6000).map(|i| omega(i, 4) as u8);
    all.push(("shards-sequence", tamis::sequence(symbols).options(sharded()).finish().unwrap().as_bytes().to_vec()));
    let texts = (0..1000).map(|i| (format!("key-{i}"), format!("value-{}-{}", i % 800, "x".repeat(90))));
    all.push(("large-text", tamis::map(texts).unchecked().finish().unwrap().as_bytes().to_vec()));
    let beside = tamis::Options::default().secret(super::golden::SECRET).secret_beside();
    let beside = tamis::map(pairs(1000, LAWS[3].1)).unchecked().options(beside);
    all.push(("secret-beside", beside.finish().unwrap().as_bytes().to_vec()));
    all
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).with_extension("tamis")
}

#[test]
fn the_same_pairs_give_the_same_files() {
    let all = golden();
    let blessing = std::env::var_os("TAMIS_BLESS").is_some();
    for (name, bytes) in &all {
        if blessing {
            std::fs::create_dir_all(FOLDER).unwrap();
            std::fs::write(path(name), bytes).unwrap();
        }
        let file = std::fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(file == *bytes, "{name}: other bytes than the golden file's");
        match *name {
            "sequence" => {
                let sequence = crate::mapped::sequence(path(name)).unwrap();
                assert!(sequence.iter().eq((0..3000).map(|i| Value::Number(omega(i, 4)))));
            }
            // Their answers are in tests/questions.
            "shards-sequence" => Sequence::open(file).unwrap().verify().unwrap(),
            "secret-beside" => Map::open_with_secret(file, super::golden::SECRET).unwrap().verify().unwrap(),
            _ => crate::mapped::map(path(name)).unwrap().verify().unwrap(),
        }
    }
    // What the files say, not what was just built.
    for golden in &GOLDEN {
        let map = crate::mapped::map(path(golden.name)).unwrap();
        assert_eq!(map.len(), golden.keys, "{}", golden.name);
        for (key, value) in golden.pairs() {
            assert_eq!(map.get_u64(&key), Ok(Some(value)), "{}, {key}", golden.name);
        }
    }
    let (text, numbers) = (crate::mapped::map(path("text")).unwrap(), crate::mapped::map(path("u64")).unwrap());
    for i in 0..3000 {
        assert_eq!(text.get_bytes(format!("key-{i}")), Ok(Some(format!("value-{}", omega(i, 3)).as_bytes())));
        assert_eq!(numbers.get_u64(i), Ok(Some(omega(i, 4))));
    }
    assert_eq!(std::fs::read_dir(FOLDER).unwrap().count(), all.len(), "a golden file without a builder");
}

/// Every cut and every changed byte outside the payload is found; of the payload, by `verify`.
#[test]
fn damaged_files_are_found() {
    let small = |(name, file): &(&str, Vec<u8>)| file.len() < 3000 && *name != "secret-beside";
    for (name, file) in golden().into_iter().filter(small) {
        let open = |bytes: Vec<u8>| match name {
            "sequence" | "shards-sequence" => Sequence::open_unverified(bytes).map(|_| ()),
            _ => Map::open_unverified(bytes).map(|_| ()),
        };
        open(file.clone()).unwrap();
        for len in 0..file.len() {
            assert!(open(file[..len].to_vec()).is_err(), "{name}, {len} bytes");
        }
        let payload = FRONT..FRONT + Parts::of(&file).unwrap().payload.len();
        for at in 0..file.len() {
            for flip in [1, 0x80, 0xff] {
                let mut changed = file.clone();
                changed[at] ^= flip;
                // The table of values is read at once, and may be found to be damaged.
                match open(changed.clone()) {
                    Ok(()) => assert!(payload.contains(&at), "{name}, byte {at}"),
                    Err(error) => assert!(!payload.contains(&at) || !matches!(error, FormatError::Checksum { .. })),
                }
                if payload.contains(&at) && !name.ends_with("sequence") {
                    let damaged = FormatError::Checksum { part: "payload" };
                    assert_eq!(Map::open(changed.clone()).unwrap_err(), damaged, "{name}, byte {at}");
                    let verified = Map::open_unverified(changed).map(|map| map.verify());
                    assert!(verified.is_err() || verified == Ok(Err(damaged)), "{name}, byte {at}");
                }
            }
        }
    }
}

/// Fields that no writer produces, behind checksums that hold.
#[test]
fn impossible_fields_are_named() {
    let map = tamis::map([("a", 1u64), ("b", 2), ("c", 9)]).kind(Kind::Compressed).unchecked().finish().unwrap();
    let sound = Parts::of(map.as_bytes()).unwrap();
    let change = |edit: &dyn Fn(&mut Parts)| {
        let mut parts = sound.clone();
        edit(&mut parts);
        Map::open_unverified(parts.file()).unwrap_err().to_string()
    };
    // Entropy, no front, root, nodes; then the kind, bits, fingerprint and first symbol of the only node.
    assert_eq!(sound.directory[1..5], [0, 1, 1, 1], "{:?}", sound.directory);
    for (expected, edit) in [
        (
            "invalid file: directory: node 0 leads to node 4096",
            &(|p: &mut Parts| drop(p.directory.splice(2..3, [0x81, 0x40]))) as &dyn Fn(&mut Parts),
        ),
        ("invalid file: directory: the root is no node", &|p| p.directory[2] = 5),
        ("kind of node 3 is not supported", &|p| p.directory[4] = 3),
        ("invalid file: directory: bits of a node is 0, expected 1 to 64", &|p| p.directory[5] = 0),
        ("invalid file: directory: bits of a node is 65, expected 1 to 64", &|p| p.directory[5] = 65),
        ("invalid file: directory: bits of a fingerprint is 33, expected 0 to 32", &|p| p.directory[6] = 33),
        ("invalid file: directory: a node of 40 bits and 0 more has no function of so many", &|p| p.directory[5] = 40),
        ("invalid file: directory: number of nodes is 127", &|p| p.directory[3] = 127),
        ("invalid file: directory: the front of a map is one filter that refuses, or none", &|p| {
            drop(p.directory.splice(1..2, [1, 1, 3, 0]))
        }),
        ("the file holds a sequence; expected a map", &|p| p.head[FORM] = 3),
        ("the file holds a filter; expected a map", &|p| p.head[FORM] = 0),
        ("invalid file: directory: bytes after its end", &|p| p.directory.push(0)),
    ] {
        let text = change(edit);
        assert!(text.starts_with(expected), "{text}; expected {expected}");
    }
}

/// Changes headers, directories and payloads, repairs the checksums, and opens: the decoder's own checks must hold.
#[test]
fn repaired_mutations_never_panic() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(number("TAMIS_MUTATE_SECONDS", 3));
    let files = golden();
    let mut random = Random(number("TAMIS_MUTATE_SEED", 0) << 32 | 1 << 31);
    let asked: Vec<u64> = integers(300, 1).collect();
    let (mut tried, mut opened) = (0u64, 0u64);
    while Instant::now() < end {
        let (name, file) = &files[random.below(files.len())];
        let mut parts = Parts::of(file).unwrap();
        parts.head[FORM] = 2;
        for _ in 0..random.below(4) {
            match random.below(8) {
                0 => {
                    let at = random.below(parts.head.len());
                    parts.head[at] = [0, 1, 2, 24, 0xff][random.below(5)];
                }
                1 => random.edit(&mut parts.payload),
                _ => random.edit(&mut parts.directory),
            }
        }
        let started = Instant::now();
        parts.fit(1 << 18, Map::open);
        let map = watched(name, parts.file(), Map::open);
        assert!(started.elapsed() < Duration::from_secs(60), "{name}: {:?} to open", started.elapsed());
        tried += 1;
        let Ok(map) = map else { continue };
        opened += 1;
        map.verify().unwrap();
        match map.key_type() {
            KeyType::Integer => agree(&map, &asked, name),
            KeyType::Bytes => agree(&map, &asked.iter().map(|key| key.to_le_bytes()).collect::<Vec<_>>(), name),
            _ => agree(&map, &asked.iter().map(|&key| tamis::Digest::from_hash(key)).collect::<Vec<_>>(), name),
        }
    }
    println!("{tried} files tried, {opened} opened");
    assert!(opened * 20 > tried, "only {opened} of {tried} files opened: the mutations are too wild to test queries");
}

/// Asks alone and in a batch, whatever the answers are.
fn agree<K: tamis::Key>(map: &Map, keys: &[K], what: &str) {
    let alone: Vec<Option<Value<'_>>> = keys.iter().map(|key| map.get(key).unwrap()).collect();
    let together = map.get_many(keys).unwrap();
    // Which leaf they differ about is in the shapes, not in the values.
    let shapes = || {
        map.layers().map(|layer| format!("{:?} {} {}, {}", layer.node, layer.purpose, layer.structure, layer.details))
    };
    assert!(together == alone, "{what}: {:#?}", shapes().collect::<Vec<_>>());
    assert!((0.0..=1.0).contains(&map.fpr()), "{what}: rate {}", map.fpr());
    assert!(map.layers().all(|layer| layer.bytes <= map.as_bytes().len() as u64), "{what}");
    assert!(map.table().count() as u64 <= map.as_bytes().len() as u64 * 512, "{what}");
}

/// Roles and targets that no writer gives, two ways to one node among them: whatever the answer, alone and in a batch it is the same.
#[test]
fn trees_that_no_writer_makes_are_walked_alike() {
    let map = tamis::map(pairs(60_000, |i| omega(i, 3))).kind(Kind::Compressed).unchecked().finish().unwrap();
    assert!(map.layers().any(|layer| layer.structure == "steered ribbon"));
    let sound = Parts::of(map.as_bytes()).unwrap();
    let asked: Vec<u64> = integers(5000, 1).collect();
    let mut opened = 0;
    for at in 0..sound.directory.len().min(40) {
        for byte in 0..10 {
            let mut parts = sound.clone();
            parts.directory[at] = byte;
            parts.fit(1 << 18, Map::open);
            if let Ok(map) = Map::open_unverified(parts.file()) {
                agree(&map, &asked, &format!("byte {at} is {byte}"));
                opened += 1;
            }
        }
    }
    assert!(opened > 20, "{opened} files opened");
}
