//! keys -> laws of the ribbon, against the definition and against chance, on every instruction set.
#![allow(clippy::unwrap_used)]

use super::super::*;
use super::*;
use crate::hash::attempts::attempt_of;
use crate::leaves::Entry;
use crate::leaves::{Query, ShardedLeaf};

const FILTER: Params = Params { width: 2048, tight: false, nested: false };

/// `n` sorted distinct digests; other `seed`s give others.
fn digests(n: usize, seed: u64) -> Vec<Digest> {
    let digest = |i: u64| {
        let hi = scramble(scramble(seed) ^ i);
        Digest { hi, lo: scramble(hi) }
    };
    let mut keys: Vec<Digest> = (0..n as u64).map(digest).collect();
    keys.sort_unstable();
    keys
}

fn make_on(cpu: Cpu, keys: &[Digest], values: Values<'_>, params: &Params) -> (Ribbon, Vec<u8>) {
    let mut payload = vec![];
    let mut ribbon = cpu.force(|| build(keys, values, params, Salt::new(3), 0, 1, &mut payload)).unwrap();
    assert_eq!(ribbon.payload_len(), payload.len() as u64);
    ribbon.cpu = cpu;
    (ribbon, payload)
}

fn make(keys: &[Digest], params: &Params) -> (Ribbon, Vec<u8>) {
    make_on(Cpu::detect(), keys, Values::Fingerprints, params)
}

/// The answers of the fast ways, alone and in a batch, which must be those of the plain way.
fn answers(ribbon: &Ribbon, payload: &[u8], asked: &[Digest]) -> Vec<bool> {
    let column = ShardedLeaf::of(0, payload, vec![(ribbon.clone(), 0..payload.len())]);
    let (ask, whole) = (column.query_fn::<Leaf>(), Ribbon::listed(column.clone()));
    let plain: Vec<bool> = asked.iter().map(|&key| ribbon.contains(payload, key)).collect();
    let mut batch = vec![false; asked.len()];
    column.contains_many(payload, asked, &mut batch);
    assert!(asked.iter().zip(&plain).all(|(&key, &answer)| ask.call(&whole, key) == answer), "{}", ribbon.details());
    assert!(batch == plain, "{}", ribbon.details());
    plain
}

/// Every kernel: whole and fractional widths, one bit, wide bands.
fn all_params() -> Vec<Params> {
    let mut all = vec![];
    for tight in [false, true] {
        let whole = (1..=10).chain([16, 31, 32]).map(|width| width * 256);
        let widths = whole.chain((1..=9).map(|width| width * 256 + 100)).chain([257, 511, 31 * 256 + 255]);
        all.extend(widths.map(|width| Params { width, tight, nested: false }));
    }
    all
}

#[test]
fn every_instruction_set_makes_the_same_bytes_and_answers() {
    let strangers = digests(700, 2);
    for params in all_params() {
        for n in [0, 1, 60, 3000, 13_000] {
            let keys = digests(n, 1);
            let asked = [&keys[keys.len().saturating_sub(700)..], &strangers].concat();
            let (ribbon, payload) = make_on(Cpu::available()[0], &keys, Values::Fingerprints, &params);
            let expected = answers(&ribbon, &payload, &asked);
            assert!(!expected[..n.min(700)].contains(&false), "{params:?}, {n} keys");
            assert!(keys.iter().all(|&key| ribbon.contains(&payload, key)), "{params:?}, {n} keys");
            for cpu in Cpu::available() {
                let (ribbon, bytes) = make_on(cpu, &keys, Values::Fingerprints, &params);
                assert!(bytes == payload, "{params:?}, {n} keys, {cpu:?}");
                assert!(answers(&ribbon, &payload, &asked) == expected, "{params:?}, {n} keys, {cpu:?}");
            }
        }
    }
}

/// Large enough for several strips in lockstep.
#[test]
fn several_strips_on_every_instruction_set() {
    let keys = digests(300_000, 1);
    for width in [256, 1024, 1700, 2048] {
        let params = Params { width, ..FILTER };
        let (ribbon, payload) = make_on(Cpu::available()[0], &keys, Values::Fingerprints, &params);
        assert!(ribbon.first.rows > 1 << 16, "one strip");
        for cpu in Cpu::available() {
            let (ribbon, bytes) = make_on(cpu, &keys, Values::Fingerprints, &params);
            assert!(bytes == payload, "{width}, {cpu:?}");
            assert!(!answers(&ribbon, &bytes, &keys).contains(&false), "{width}, {cpu:?}");
        }
    }
}

/// Every n up to 2,000 and around the size from which on a ribbon is bumped; of the others every seventh, or all of them
/// when TAMIS_SLOW is set.
fn every_n(width: u16) {
    let step = if std::env::var_os("TAMIS_SLOW").is_some() { 1 } else { 7 };
    let chosen =
        |n: &usize| *n <= 2000 || (9_950..10_100).contains(n) || (19_950..20_100).contains(n) || n.is_multiple_of(step);
    let mut all = digests(21_000, 1);
    all.sort_unstable_by_key(|digest| digest.lo);
    let params = Params { width, ..FILTER };
    let mut payload = vec![];
    let mut attempts = 0;
    for n in (0..=21_000).filter(chosen) {
        let mut keys = all[..n].to_vec();
        keys.sort_unstable();
        let keys = &keys[..];
        payload.clear();
        let ribbon = build(keys, Values::Fingerprints, &params, Salt::new(n as u64), 0, 1, &mut payload).unwrap();
        assert_eq!(ribbon.payload_len(), payload.len() as u64, "{n}");
        let attempt = attempt_of(ribbon.number.into(), keys);
        attempts += attempt;
        assert!(attempt < 24, "{n} keys: attempt {attempt}");
        if n <= 300 || n % 70 == 0 {
            assert!(keys.iter().all(|&key| ribbon.contains(&payload, key)), "{n} keys");
        }
        // What the planner counts on: never less than there is, and not much more.
        let (bits, predicted) = (payload.len() as f64 * 8.0, params.bits(n as u64, 0));
        assert!(bits <= predicted || attempt >= TRIES, "{n} keys: {bits} bits, {predicted} predicted");
        assert!(predicted <= bits * 1.035, "{n} keys: {bits} bits, {predicted} predicted");
    }
    // Small sets often need a second salt, large ones never.
    assert!(attempts < 20_000, "{attempts} attempts failed");
}

#[test]
fn every_n_builds_with_one_bit() {
    every_n(256);
}

#[test]
fn every_n_builds_with_eight_bits() {
    every_n(2048);
}

#[test]
fn functions_of_every_width_return_their_values() {
    for n in [1, 2, 50, 1000, 12_000, 40_000] {
        let keys = digests(n, 4);
        for width in 1..=32u16 {
            let mask = u32::MAX >> (32 - width);
            let values: Vec<u32> = keys.iter().map(|key| scramble(key.lo) as u32 & mask).collect();
            for tight in [false, true] {
                let params = Params { width: width * 256, tight, nested: false };
                let (ribbon, payload) = make_on(Cpu::detect(), &keys, Values::Given(&values), &params);
                let right = keys.iter().zip(&values).all(|(&key, &value)| ribbon.get(&payload, key) == value);
                assert!(right, "{n} keys, {width} bits, tight {tight}");
            }
        }
    }
}

/// The share of unlisted keys lies within four standard deviations of what the geometry says.
#[test]
fn rates_are_what_the_geometry_says() {
    let strangers = digests(300_000, 2);
    for n in [1000, 30_000] {
        let keys = digests(n, 1);
        for width in [256, 256 + 64, 512 + 200, 1024, 1280 + 128, 1700, 2048] {
            for tight in [false, true] {
                let (ribbon, payload) = make(&keys, &Params { width, tight, nested: false });
                let expected = ribbon.fpr() * strangers.len() as f64;
                let sigma = (expected * (1.0 - ribbon.fpr())).sqrt();
                let found = answers(&ribbon, &payload, &strangers).iter().filter(|&&yes| yes).count() as f64;
                assert!((found - expected).abs() < 4.0 * sigma, "{n} keys, {width}: {found}, expected {expected:.0}");
            }
        }
    }
}

/// The cut never leaves more starts with the short fingerprint than the width allows.
#[test]
fn fractions_are_rounded_to_the_safe_side() {
    for n in [1, 2, 60, 64, 65, 130, 1000, 9999, 10_001, 30_000] {
        let keys = digests(n, 1);
        for part in [1, 37, 128, 200, 255] {
            for tight in [false, true] {
                let params = Params { width: 3 * 256 + part, tight, nested: false };
                let (ribbon, payload) = make(&keys, &params);
                assert!(ribbon.fpr() <= params.rate_at(1) * 1.000_001, "{n} keys, {part}");
                assert!(keys.iter().all(|&key| ribbon.contains(&payload, key)), "{n} keys, {part}");
            }
        }
    }
}

#[test]
fn the_bytes_follow_from_keys_and_salt_alone() {
    let keys = digests(14_000, 6);
    for params in [FILTER, Params { tight: true, ..FILTER }] {
        let (ribbon, payload) = make(&keys, &params);
        let (again, bytes) = make(&keys, &params);
        assert!(bytes == payload && again.levels().eq(ribbon.levels()));
        // Appended to what is there already.
        let mut out = vec![7; 13];
        build(&keys, Values::Fingerprints, &params, Salt::new(3), 0, 1, &mut out).unwrap();
        assert!(out[..13] == [7; 13] && out[13..] == payload);
        let mut other = vec![];
        build(&keys, Values::Fingerprints, &params, Salt::new(4), 0, 1, &mut other).unwrap();
        assert!(other != payload, "two salts, the same bytes");
    }
}

/// Two values for one key: an error after a bounded number of attempts.
#[test]
fn contradictions_are_unsolvable() {
    for n in [2, 300, 5000, 20_000] {
        let mut keys = digests(n, 7);
        keys[1] = keys[0];
        let mut values: Vec<u32> = (0..n as u32).map(|i| i & 7).collect();
        let params = Params { width: 3 * 256, ..FILTER };
        let mut out = vec![1, 2, 3];
        let error = build(&keys, Values::Given(&values), &params, Salt::new(0), 0, 1, &mut out).unwrap_err();
        assert!(matches!(error, BuildError::Unsolvable { structure: "ribbon", keys, .. } if keys == n), "{error}");
        assert_eq!(out, [1, 2, 3], "a failed build leaves nothing behind");
        // The same value twice says nothing new.
        values[1] = values[0];
        let (ribbon, payload) = make_on(Cpu::detect(), &keys, Values::Given(&values), &params);
        assert!(keys.iter().zip(&values).all(|(&key, &value)| ribbon.get(&payload, key) == value));
    }
    // As many as there are: all equal, with two values.
    let keys = vec![digests(1, 1)[0]; 12_000];
    let values: Vec<u32> = (0..12_000).map(|i| i & 1).collect();
    let params = Params { width: 256, ..FILTER };
    assert!(build(&keys, Values::Given(&values), &params, Salt::new(0), 0, 1, &mut vec![]).is_err());
}

#[test]
fn impossible_widths_are_refused() {
    let keys = digests(10, 1);
    for (width, values) in [
        (0, Values::Fingerprints),
        (255, Values::Fingerprints),
        (32 * 256 + 1, Values::Fingerprints),
        (u16::MAX, Values::Fingerprints),
        (300, Values::Given(&[0; 10])),
    ] {
        let params = Params { width, ..FILTER };
        let error = build(&keys, values, &params, Salt::new(0), 0, 1, &mut vec![]).unwrap_err();
        assert!(error.to_string().starts_with("ribbon: values of "), "{error}");
    }
}

fn decode(bytes: &[u8]) -> Result<Ribbon, FormatError> {
    let mut from = Reader::new(bytes, "directory");
    let ribbon = Ribbon::decode(&mut from, Salt::new(3))?;
    if from.is_empty() { Ok(ribbon) } else { Err(FormatError::invalid("bytes left")) }
}

#[test]
fn geometries_round_trip_and_cuts_are_found() {
    let strangers = digests(1000, 2);
    for params in all_params() {
        for n in [0, 1, 64, 3000, 13_000, 60_000] {
            let keys = digests(n, 1);
            let (ribbon, payload) = make(&keys, &params);
            let mut bytes = vec![];
            ribbon.encode(&mut bytes);
            let again = decode(&bytes).unwrap();
            assert_eq!(again.payload_len(), ribbon.payload_len());
            assert_eq!((again.fpr(), again.details()), (ribbon.fpr(), ribbon.details()));
            assert!(again.levels().eq(ribbon.levels()));
            assert!(answers(&again, &payload, &strangers) == answers(&ribbon, &payload, &strangers));
            assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()), "{params:?}, {n} keys");
            if n > 10_000 {
                break; // one bumped ribbon of each kind is enough
            }
        }
    }
}

/// Any geometry that decodes answers on any payload, also on one of the wrong length; and all ways to ask agree.
#[test]
fn hostile_geometries_and_payloads_never_panic() {
    let asked = digests(100, 8);
    let mut state = 1;
    let mut random = |below: u64| {
        state = scramble(state);
        state % below
    };
    let mut decoded = 0;
    for _ in 0..30_000 {
        let mut bytes = vec![];
        let levels = random(4);
        for value in [random(3), 256 + random(32 * 256), random(2), levels] {
            put_varint(&mut bytes, value);
        }
        for _ in 0..levels {
            put_varint(&mut bytes, random(SHAPES.len() as u64));
            put_varint(&mut bytes, random(3));
            let log = random(12);
            put_varint(&mut bytes, 1 + random(1 << log));
        }
        if random(4) == 0 {
            let at = random(bytes.len() as u64) as usize;
            bytes[at] = random(256) as u8;
        }
        let Ok(ribbon) = decode(&bytes) else { continue };
        if ribbon.payload_len() > 1 << 16 {
            assert!(!answers(&ribbon, &[], &asked).is_empty());
            continue;
        }
        decoded += 1;
        let whole: Vec<u8> = (0..ribbon.payload_len() + 9).map(|_| random(256) as u8).collect();
        let len = ribbon.payload_len() as usize;
        for payload in [&whole[..len], &whole, &whole[..len / 2], &whole[..len.saturating_sub(1)], &[]] {
            answers(&ribbon, payload, &asked);
            assert!(asked.iter().all(|&key| ribbon.get(payload, key) <= ribbon.width.mask(ribbon.width.part > 0)));
        }
    }
    assert!(decoded > 3000, "{decoded}");
}

/// What passes a wide filter passes every narrower one on the same keys: a narrow filter is the first columns of a wide one.
#[test]
fn narrow_filters_are_the_first_columns_of_wide_ones() {
    for (n, tight) in [(1, false), (60, false), (9000, false), (40_000, false), (40_000, true)] {
        let keys = digests(n, 5);
        let strangers = digests(30_000, 6);
        let mut before: Vec<bool> = vec![true; strangers.len()];
        for width in [256, 512, 700, 768, 1279, 1280, 1281, 2048, 2304, 4096] {
            let params = Params { width, tight, nested: true };
            let (ribbon, payload) = make(&keys, &params);
            for (key, before) in strangers.iter().zip(&mut before) {
                let now = ribbon.contains(&payload, *key);
                assert!(!now || *before, "{n} keys, width {width}");
                *before = now;
            }
        }
    }
}

/// Keys are found, the others are not, and unlisted keys pass as they pass any filter of this width.
#[test]
fn signed_values_tell_keys_from_negatives() {
    for (n, width) in [(1, 256), (2, 256), (300, 256), (300, 1024), (30_000, 256), (30_000, 768)] {
        let keys = digests(n, 7);
        let wanted: Vec<bool> = (0..keys.len()).map(|i| i % 3 == 0).collect();
        let mut payload = vec![];
        let params = Params { width, tight: false, nested: false };
        let ribbon = build(&keys, Values::Signed(&wanted), &params, Salt::new(3), 0, 1, &mut payload).unwrap();
        assert!(keys.iter().zip(&wanted).all(|(key, &yes)| ribbon.contains(&payload, *key) == yes), "{n} keys");
        if n > 100 {
            let passed = digests(40_000, 8).iter().filter(|k| ribbon.contains(&payload, **k)).count();
            let expected = 4e4 * 0.5f64.powi(width as i32 / 256);
            assert!((passed as f64 - expected).abs() < 5.0 * expected.sqrt(), "{n} keys: {passed} of {expected}");
        }
    }
}

/// Strips are shared out among threads; the bytes are the same.
#[test]
fn threads_leave_no_trace() {
    let keys = digests(600_000, 1);
    for width in [256, 3 * 256] {
        let params = Params { width, ..FILTER };
        let built = |threads| {
            let mut payload = vec![];
            build(&keys, Values::Fingerprints, &params, Salt::new(1), 0, threads, &mut payload).unwrap();
            payload
        };
        let alone = built(1);
        assert!([2, 5, 100].into_iter().all(|threads| built(threads) == alone), "{width}");
    }
}
