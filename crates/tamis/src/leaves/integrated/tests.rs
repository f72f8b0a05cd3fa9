//! keys and negatives -> laws of the integrated filter: nobody missed, nobody listed let through, unlisted keys by the
//! rate.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::error::BuildError;
use crate::hash::scramble;
use crate::leaves::Design;
use crate::leaves::Entry;
use crate::leaves::design::{DigestSink, Listed};

const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];
const PARTS: [IntegratedVariant; 4] =
    [IntegratedVariant::One, IntegratedVariant::Two, IntegratedVariant::Hybrid, IntegratedVariant::General];

/// Every number of cells with every way to find room.
fn all() -> impl Iterator<Item = (Arity, IntegratedVariant)> {
    ARITIES.into_iter().flat_map(|arity| PARTS.into_iter().map(move |parts| (arity, parts)))
}

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

fn make(keys: &[Digest], negatives: &[Digest], params: &Params) -> (Integrated, Vec<u8>) {
    let mut payload = vec![];
    let built = build(keys, &negatives, params, Salt::new(3), &mut payload).unwrap();
    assert_eq!(built.payload_len(), payload.len() as u64);
    (built, payload)
}

/// The answers of the fast ways, alone and in a batch, which must be those of the plain way.
fn answers(built: &Integrated, payload: &[u8], asked: &[Digest]) -> Vec<bool> {
    // Not at the start of the file.
    let file = [&[0x77; 5], payload].concat();
    let column = ShardedLeaf::of(0, &file, vec![(built.clone(), 5..file.len())]);
    let (ask, whole) = (column.query_fn::<crate::leaves::Leaf>(), Integrated::listed(column.clone()));
    let plain: Vec<bool> = asked.iter().map(|&key| built.contains(payload, key)).collect();
    let mut batch = vec![false; asked.len()];
    column.contains_many(&file, asked, &mut batch);
    assert!(asked.iter().zip(&plain).all(|(&key, &answer)| ask.call(&whole, key) == answer), "{}", built.details());
    assert!(batch == plain, "{}", built.details());
    plain
}

/// No key is missed and no negative matches.
fn check(keys: &[Digest], negatives: &[Digest], params: &Params) -> (Integrated, Vec<u8>) {
    let (built, payload) = make(keys, negatives, params);
    let (s, t) = (keys.len(), negatives.len());
    assert!(!answers(&built, &payload, keys).contains(&false), "{params:?}, {s} keys, {t} negatives");
    assert!(!answers(&built, &payload, negatives).contains(&true), "{params:?}, {s} keys, {t} negatives");
    (built, payload)
}

#[test]
fn every_small_n_is_exact() {
    let (keys, negatives) = (digests(300, 1), digests(3000, 2));
    for (arity, parts) in all() {
        for n in 0..=keys.len() {
            for (first, t) in [(1, n / 2), (3, 4 * n), (7, 1000)] {
                check(&keys[..n], &negatives[..t], &Params { arity, first, parts });
            }
        }
        check(&keys[..1], &negatives, &Params { arity, first: 1, parts });
        check(&keys, &[], &Params { arity, first: 7, parts });
    }
}

/// Few survivors, as many as keys, more than keys; every kernel and every kind of cell.
#[test]
fn every_width_is_exact() {
    let (keys, negatives) = (digests(12_500, 3), digests(60_000, 4));
    for (arity, parts) in all() {
        for first in (1..=9).chain([14, 15, 22, 29, 30]) {
            check(&keys, &negatives, &Params { arity, first, parts });
        }
        for first in [2, 7, 8] {
            check(&keys[..5000], &negatives, &Params { arity, first, parts });
            check(&keys, &negatives[..1000], &Params { arity, first, parts });
        }
    }
}

#[test]
fn large_sets_are_exact() {
    let (keys, negatives) = (digests(150_000, 5), digests(1_000_000, 6));
    for (arity, parts) in all() {
        for first in [3, 7] {
            check(&keys, &negatives, &Params { arity, first, parts });
        }
    }
}

/// Unlisted keys pass as often as the geometry says, within four and a half standard deviations, and never more than the
/// parameters promise.
#[test]
fn rates_are_what_the_geometry_says() {
    let (keys, negatives, strangers) = (digests(30_000, 7), digests(200_000, 8), digests(400_000, 9));
    for (arity, parts) in all() {
        for first in [1, 3, 5, 7] {
            let params = Params { arity, first, parts };
            let (built, payload) = make(&keys, &negatives, &params);
            let expected = built.fpr() * strangers.len() as f64;
            let found = answers(&built, &payload, &strangers).iter().filter(|&&yes| yes).count() as f64;
            let sigma = (expected * (1.0 - built.fpr())).sqrt();
            assert!((found - expected).abs() < 4.5 * sigma, "{params:?}: {found}, expected {expected:.0}");
            assert!(built.fpr() <= params.fpr() && built.fpr() >= params.fpr() / 2.0, "{params:?}");
        }
    }
    // With few survivors General lets through hardly more than half as many unlisted keys as Two.
    let params = Params { arity: Arity::Three, first: 7, parts: IntegratedVariant::General };
    let (built, _) = make(&keys, &negatives[..20_000], &params);
    assert!(built.fpr() < 0.51 * params.fpr(), "{}", built.fpr());
}

/// What the planner counts on.
#[test]
fn sizes_are_as_expected() {
    for (s, t) in [(600, 9_000), (3_000, 20_000), (9_000, 500_000), (20_000, 100_000), (100_000, 1_000_000)] {
        let (keys, negatives) = (digests(s, 10), digests(t, 11));
        for (arity, parts) in all() {
            for first in [2, 4, 7] {
                let params = Params { arity, first, parts };
                let (_, payload) = make(&keys, &negatives, &params);
                let (bits, predicted) = (payload.len() as f64 * 8.0, params.bits(s as u64, t as u64));
                // A few elements more or less in the rest of a small set are a few percent.
                let slack = if s < 5000 { 0.04 } else { 0.015 };
                assert!((bits / predicted - 1.0).abs() < slack, "{params:?}, {s}, {t}: {bits}, predicted {predicted}");
            }
        }
    }
}

/// The point of the matter: the bits of [FPFS] 3.6 and 3.8.1, with the overhead of the tables and nothing else.
#[test]
fn sizes_are_those_of_the_paper() {
    let (s, t, first) = (100_000, 3_200_000, 7);
    let f = t as f64 / 128.0;
    let (keys, negatives) = (digests(s, 12), digests(t, 13));
    let s = s as f64;
    for (arity, overhead) in [(Arity::Three, 1.2), (Arity::Four, 1.14)] {
        let formula = |parts| match parts {
            IntegratedVariant::One => (s + f) * 8.0,
            IntegratedVariant::Hybrid => s * 8.0 + f,
            IntegratedVariant::Two | IntegratedVariant::General => s * 9.0,
        };
        for parts in PARTS {
            let (_, payload) = make(&keys, &negatives, &Params { arity, first, parts });
            let ratio = payload.len() as f64 * 8.0 / formula(parts);
            assert!(ratio < overhead && ratio > 1.0, "{arity:?}, {parts:?}: {ratio}");
        }
    }
}

/// One is asked like a plain filter because it is one: the table's entry and its bytes serve a fuse as well.
#[test]
fn one_bit_is_a_plain_filter() {
    let (keys, negatives, strangers) = (digests(5000, 14), digests(50_000, 15), digests(50_000, 16));
    let params = Params { arity: Arity::Three, first: 7, parts: IntegratedVariant::One };
    let (built, payload) = make(&keys, &negatives, &params);
    let fuse = &built.fuse;
    assert_eq!((fuse.width(), fuse.payload_len()), (2048, payload.len() as u64));
    for &key in keys.iter().chain(&negatives).chain(&strangers) {
        assert_eq!(fuse.contains(&payload, key), built.contains(&payload, key));
    }
}

/// The bit that counts, the places and the fingerprint know nothing of each other.
#[test]
fn the_choice_is_independent_of_places_and_fingerprints() {
    const N: u64 = 1 << 18;
    let rule = Rule::new(7, IntegratedVariant::General, WHOLE / 4);
    for low in [0, 63] {
        // [first place, second place, fingerprint bit, coin], by the choice.
        let mut counts = [[0u32; 64]; 4];
        for i in 0..N {
            let h = scramble(i) & !low;
            let (columns, pick) = (rule.mask(h) >> 7, rule.pick(h) >> 7);
            let choice = ((columns - 1) * 2 + (pick - 1)) as usize;
            assert!(columns & pick != 0 && choice < 6);
            let bits = [h >> 61, h >> 6 & 7, fuse::fingerprint(h) as u64 >> 7 & 7, coin(h) as u64];
            for (count, bits) in counts.iter_mut().zip(bits) {
                count[bits as usize * 8 + choice] += 1;
            }
        }
        for (count, values) in counts.iter().zip([8, 8, 8, 2]) {
            for value in 0..values {
                // Two bits alone, one of them with weight 1/8 each in both.
                for (choice, share) in [(0, 0.375), (3, 0.375), (4, 0.125), (5, 0.125)] {
                    let mean = N as f64 / values as f64 * share;
                    let found = count[value * 8 + choice] as f64;
                    assert!((found - mean).abs() < 5.0 * mean.sqrt(), "{value}, {choice}: {found}, expected {mean}");
                }
            }
        }
    }
}

/// Shards that differ in kind are asked one by one, and right.
#[test]
fn shards_may_differ() {
    let (keys, negatives) = (digests(60_000, 17), digests(200_000, 18));
    let kinds: Vec<(Arity, IntegratedVariant)> = all().collect();
    for alike in [true, false] {
        for first in [3, 6, 7] {
            for &kind in &kinds {
                let mut file = vec![0xee; 5];
                let parts = (0..4)
                    .map(|shard| {
                        let of = |all: &[Digest]| -> Vec<Digest> {
                            all.iter().copied().filter(|key| key.shard(2) == shard).collect()
                        };
                        let (arity, parts) = if alike { kind } else { kinds[(shard * 3 + 1) % kinds.len()] };
                        let start = file.len();
                        let params = Params { arity, first, parts };
                        let salt = Salt::new(shard as u64);
                        let built = build(&of(&keys), &&of(&negatives)[..], &params, salt, &mut file).unwrap();
                        (built, start..file.len())
                    })
                    .collect();
                let column = ShardedLeaf::of(2, &file, parts);
                let (ask, whole) = (column.query_fn::<crate::leaves::Leaf>(), Integrated::listed(column.clone()));
                for (asked, answer) in [(&keys, true), (&negatives, false)] {
                    let mut out = vec![!answer; asked.len()];
                    column.contains_many(&file, asked, &mut out);
                    assert!(out.iter().all(|&out| out == answer), "{kind:?}");
                    assert!(asked.iter().all(|&key| ask.call(&whole, key) == answer), "{kind:?}");
                }
                if !alike {
                    break;
                }
            }
        }
    }
}

#[test]
fn builds_are_deterministic() {
    let (keys, negatives) = (digests(12_000, 19), digests(100_000, 20));
    let mut turned = negatives.clone();
    turned.reverse();
    for (arity, parts) in all() {
        let params = Params { arity, first: 5, parts };
        let (built, payload) = make(&keys, &negatives, &params);
        // The order of the negatives does not matter, nor what is in `out` already.
        let mut out = vec![7; 13];
        let again = build(&keys, &&turned[..], &params, Salt::new(3), &mut out).unwrap();
        assert!(out[..13] == [7; 13] && out[13..] == payload, "{params:?}");
        assert_eq!(encoded(&again), encoded(&built));
        let mut other = vec![];
        build(&keys, &&negatives[..], &params, Salt::new(4), &mut other).unwrap();
        assert!(other != payload, "two salts, the same bytes");
    }
}

/// Negatives in parts, and an error on the way.
#[test]
fn negatives_may_come_in_parts() {
    struct Parted<'a>(&'a [Digest], usize, std::cell::Cell<u32>);
    impl Listed for Parted<'_> {
        fn each(&self, part: &mut DigestSink<'_>) -> Result<(), BuildError> {
            if self.2.replace(self.2.get().wrapping_sub(1)) == 0 {
                return Err(BuildError::Cancelled);
            }
            self.0.chunks(self.1).try_for_each(|chunk| part(chunk, &[]))
        }
    }
    let (keys, negatives) = (digests(3000, 21), digests(30_000, 22));
    for (arity, parts) in all() {
        let params = Params { arity, first: 4, parts };
        let (_, payload) = make(&keys, &negatives, &params);
        for size in [1, 7, 1000, 1024, 1025, 50_000] {
            let mut out = vec![];
            let parted = Parted(&negatives, size, 99.into());
            build(&keys, &parted, &params, Salt::new(3), &mut out).unwrap();
            assert!(out == payload, "{params:?}, {size}");
        }
        let mut out = vec![1, 2, 3];
        let error = build(&keys, &Parted(&negatives, 7, 0.into()), &params, Salt::new(3), &mut out).unwrap_err();
        assert!(matches!(error, BuildError::Cancelled) && out == [1, 2, 3]);
    }
}

#[test]
fn what_cannot_be_built_is_an_error_and_leaves_no_trace() {
    let keys = digests(2000, 23);
    let mut out = vec![1, 2, 3];
    let mut fails = |keys: &[Digest], negatives: &[Digest], params: &Params| {
        let error = build(keys, &negatives, params, Salt::new(0), &mut out).unwrap_err();
        assert_eq!(out, [1, 2, 3]);
        error
    };
    for (arity, parts) in all() {
        for first in [0, 31, 255] {
            let error = fails(&keys, &[], &Params { arity, first, parts });
            assert!(matches!(error, BuildError::Width { .. }), "{error}");
        }
        // A key that must match and must not.
        let params = Params { arity, first: 7, parts };
        let error = fails(&keys, &keys[100..101], &params);
        assert!(matches!(error, BuildError::Unsolvable { .. }), "{params:?}: {error}");
        let twice = [&keys[..], &keys[..1]].concat();
        assert!(matches!(fails(&twice, &[], &params), BuildError::Unsolvable { .. }));
    }
}

fn encoded(built: &Integrated) -> Vec<u8> {
    let mut bytes = vec![];
    built.encode(&mut bytes);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Integrated, FormatError> {
    let mut from = Reader::new(bytes, "directory");
    let built = Integrated::decode(&mut from, Salt::new(3))?;
    if from.is_empty() { Ok(built) } else { Err(FormatError::invalid("bytes left")) }
}

#[test]
fn geometries_round_trip_and_cuts_are_found() {
    let (keys, negatives, strangers) = (digests(15_000, 24), digests(100_000, 25), digests(2000, 26));
    for (arity, parts) in all() {
        for (n, first) in [(0, 7), (1, 7), (50, 1), (3000, 6), (15_000, 7), (15_000, 30)] {
            let (built, payload) = make(&keys[..n], &negatives, &Params { arity, first, parts });
            let bytes = encoded(&built);
            assert!(bytes.len() < 40);
            let again = decode(&bytes).unwrap();
            assert_eq!(again.payload_len(), built.payload_len());
            assert_eq!((again.fpr(), again.details()), (built.fpr(), built.details()));
            assert_eq!(encoded(&again), bytes);
            assert!(answers(&again, &payload, &strangers) == answers(&built, &payload, &strangers));
            assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()), "{arity:?}, {parts:?}, {n}");
        }
    }
}

/// Any geometry that decodes answers on any payload, also on one of the wrong length; and all ways to ask agree.
#[test]
fn hostile_geometries_and_payloads_never_panic() {
    let (keys, negatives, asked) = (digests(12_000, 27), digests(50_000, 28), digests(100, 29));
    let mut state = 1;
    let mut random = |below: u64| {
        state = scramble(state);
        state % below
    };
    let kinds: Vec<Vec<u8>> = all()
        .flat_map(|(arity, parts)| [(3, 1), (60, 7), (400, 3), (12_000, 7)].map(|(n, first)| (arity, parts, n, first)))
        .map(|(arity, parts, n, first)| encoded(&make(&keys[..n], &negatives, &Params { arity, first, parts }).0))
        .collect();
    let (mut decoded, mut refused) = (0, 0);
    for i in 0..30_000 {
        let mut bytes = kinds[i % kinds.len()].clone();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len() as u64) as usize;
            bytes[at] = random([2, 9, 128, 256][i % 4]) as u8;
        }
        let Ok(built) = decode(&bytes) else {
            refused += 1;
            continue;
        };
        if built.payload_len() > 1 << 16 {
            assert!(!answers(&built, &[], &asked).is_empty());
            continue;
        }
        decoded += 1;
        let len = built.payload_len() as usize;
        let whole: Vec<u8> = (0..len as u64 + 9).map(|_| random(256) as u8).collect();
        for payload in [&whole[..len], &whole, &whole[..len / 2], &whole[..len.saturating_sub(1)], &[]] {
            answers(&built, payload, &asked);
        }
    }
    assert!(decoded > 3000 && refused > 3000, "{decoded} {refused}");
}
