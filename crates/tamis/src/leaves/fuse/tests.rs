//! keys -> laws of the binary fuse, against the definition and against chance.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::error::BuildError;
use crate::hash::attempts::attempt_of;
use crate::hash::scramble;
use crate::leaves::Values;

const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];

/// `n` sorted distinct digests; other `seed`s give others.
fn digests(n: usize, seed: u64) -> Vec<Digest> {
    let mut keys: Vec<Digest> = (0..n as u64)
        .map(|i| {
            let hi = scramble(scramble(seed) ^ i);
            Digest { hi, lo: scramble(hi) }
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), n);
    keys
}

fn filter(keys: &[Digest], arity: Arity, width: u16, salt: u64) -> (Fuse, Vec<u8>) {
    let mut out = Vec::new();
    let fuse = build(keys, Values::Fingerprints, &Params { arity, width }, Salt::new(salt), &mut out).unwrap();
    assert_eq!(fuse.payload_len(), out.len() as u64);
    (fuse, out)
}

/// Every n up to 20,000 builds; all keys are held; and no stretch of n needs many attempts. Public code of this structure
/// fails 20 to 40 times in 100 near 11,500 keys.
fn every_n(arity: Arity) {
    let all = digests(20_000, 1);
    let mut keys = Vec::new();
    let mut window = (0, 0);
    for n in 0..=all.len() {
        // A stretch of the sorted digests is as random as any for a salted hash.
        keys.clear();
        keys.extend_from_slice(&all[(all.len() - n) / 2..][..n]);
        let (fuse, payload) = filter(&keys, arity, 2048, n as u64);
        if n <= 300 || n % 500 == 0 {
            assert!(keys.iter().all(|&key| fuse.contains(&payload, key)), "{n}");
        }
        let attempt = attempt_of(fuse.number.into(), &keys);
        window = (window.0 + 1, window.1 + attempt);
        assert!(attempt < 12, "{n} keys: attempt {attempt}");
        // Windows grow with n: 16 at first, 250 at most. A mean of 1.05 attempts is what the sizes aim at.
        if n == 16 || (n % 50 == 0 && n <= 500) || n % 250 == 0 {
            let (built, failed) = window;
            let limit = 0.08 * f64::from(built) + 4.0 * (0.08 * f64::from(built)).sqrt();
            assert!(f64::from(failed) < limit, "{failed} failed attempts in {built} tables up to {n} keys");
            window = (0, 0);
        }
    }
}

#[test]
fn every_n_builds_with_three_probes() {
    every_n(Arity::Three);
}

#[test]
fn every_n_builds_with_four_probes() {
    every_n(Arity::Four);
}

#[test]
fn a_million_keys_take_the_promised_bits() {
    let keys = digests(1_000_000, 2);
    for (arity, bits) in [(Arity::Three, 9.05), (Arity::Four, 8.65)] {
        let (fuse, payload) = filter(&keys, arity, 2048, 0);
        assert!(payload.len() as f64 * 8.0 / 1e6 < bits);
        assert!(attempt_of(fuse.number.into(), &keys) < 4);
        assert!(keys.iter().all(|&key| fuse.contains(&payload, key)));
    }
}

#[test]
fn functions_of_every_width_return_their_values() {
    for arity in ARITIES {
        for bits in 1..=32u16 {
            for n in [1, 2, 3, 7, 100, 1000, 5000] {
                let keys = digests(n, u64::from(bits));
                let values: Vec<u32> =
                    keys.iter().map(|key| (scramble(key.lo) as u32) >> (32 - u32::from(bits))).collect();
                let params = Params { arity, width: bits * 256 };
                let mut out = vec![7; 3];
                let fuse = build(&keys, Values::Given(&values), &params, Salt::new(9), &mut out).unwrap();
                assert_eq!(out[..3], [7; 3]);
                for (&key, &value) in keys.iter().zip(&values) {
                    assert_eq!(fuse.get(&out[3..], key), value, "{arity:?} {bits} bits, {n} keys");
                }
            }
        }
    }
}

/// Unlisted keys pass as often as `rate` says, within four and a half sigma.
#[test]
fn rates_are_as_computed() {
    let keys = digests(30_000, 3);
    let strangers = digests(600_000, 4);
    for arity in ARITIES {
        for width in [256, 384, 700, 1024, 1664, 1919, 2048, 2049, 2176, 2303, 2560, 3000, 4096] {
            let (fuse, payload) = filter(&keys, arity, width, u64::from(width));
            assert!(keys.iter().all(|&key| fuse.contains(&payload, key)));
            let passed = strangers.iter().filter(|&&key| fuse.contains(&payload, key)).count() as f64;
            let rate = rate(width);
            let mean = rate * strangers.len() as f64;
            let sigma = (mean * (1.0 - rate)).sqrt();
            assert!((passed - mean).abs() < 4.5 * sigma + 1.0, "{arity:?} {width}: {passed} passed, expected {mean}");
        }
    }
}

/// The share of wide keys is the fraction, rounded up by less than one slot.
#[test]
fn fractions_cost_what_they_should() {
    for arity in ARITIES {
        for n in [1, 5, 100, 10_000] {
            for width in [256, 257, 300, 2048 + 64, 2048 + 255, 31 * 256 + 128] {
                let (fuse, _) = filter(&digests(n, 5), arity, width, 0);
                let wide = fuse.range.saturating_sub(fuse.cut);
                let exact = fuse.range * u64::from(width & 255);
                assert!(wide * 256 >= exact && wide * 256 < exact + 256);
            }
        }
    }
}

#[test]
fn size_formula_is_exact() {
    for arity in ARITIES {
        for width in [256, 512, 1000, 2048, 2100, 4096, 5120, 8192] {
            let params = Params { arity, width };
            for n in [0, 1, 2, 3, 4, 10, 31, 100, 999, 4096, 11_500] {
                // The formula is for the first four attempts.
                let keys = digests(n, 6);
                let (fuse, payload) = filter(&keys, arity, width, 1);
                assert!(attempt_of(fuse.number.into(), &keys) < 4);
                assert_eq!(payload_bits(n as u64, &params), 8 * payload.len() as u64, "{arity:?} {width} {n}");
            }
        }
    }
    // Small sets are small.
    let bytes = |n| payload_bits(n, &Params { arity: Arity::Three, width: 2048 }) / 8;
    assert!([bytes(1), bytes(2), bytes(3)].iter().all(|&b| b <= 16));
}

/// A column of `1 << bits` shards, some of them empty if `keys` are few.
fn column(keys: &[Digest], bits: u32, arity: Arity, width: u16) -> (ShardedLeaf<Fuse>, Vec<u8>) {
    let mut file = vec![0xee; 5];
    let parts = (0..1usize << bits)
        .map(|shard| {
            let part: Vec<Digest> = keys.iter().copied().filter(|key| key.shard(bits) == shard).collect();
            let start = file.len();
            let params = Params { arity, width };
            let geometry = build(&part, Values::Fingerprints, &params, Salt::new(3), &mut file).unwrap();
            (geometry, start..file.len())
        })
        .collect();
    (ShardedLeaf::of(bits, &file, parts), file)
}

#[test]
fn many_at_once_answer_as_one_by_one() {
    let strangers = digests(2000, 8);
    for arity in ARITIES {
        for width in [2048, 4096, 8192, 512, 1200, 2200] {
            for (n, bits) in [(0, 0), (1, 2), (5, 3), (1000, 0), (3000, 2)] {
                let keys = digests(n, 7);
                let (column, file) = column(&keys, bits, arity, width);
                let mut asked: Vec<Digest> = keys.iter().chain(&strangers).copied().collect();
                asked.sort_unstable_by_key(|key| scramble(key.lo));
                for asked in [&asked[..], &asked[..1], &asked[..64], &asked[..65], &[]] {
                    let mut out = vec![false; asked.len()];
                    column.contains_many(&file, asked, &mut out);
                    for (&key, &out) in asked.iter().zip(&out) {
                        assert_eq!(column.contains(key), out, "{n} {bits} {width}");
                        assert!(out || keys.binary_search(&key).is_err());
                    }
                }
            }
        }
    }
}

#[test]
fn builds_are_deterministic() {
    let keys = digests(5000, 10);
    for arity in ARITIES {
        for width in [2048, 1300] {
            assert_eq!(filter(&keys, arity, width, 4), filter(&keys, arity, width, 4));
            assert_ne!(filter(&keys, arity, width, 4).1, filter(&keys, arity, width, 5).1);
        }
    }
    // Bytes that must never change: a file written today is read tomorrow, on any machine.
    let bytes = ARITIES.map(|arity| {
        let (_, payload) = filter(&keys, arity, 1152, 0);
        payload.iter().fold(0, |sum, &byte| scramble(sum ^ u64::from(byte)))
    });
    assert_eq!(bytes, [17312740442381005533, 3349130009668347153]);
}

#[test]
fn geometries_survive_their_bytes() {
    for arity in ARITIES {
        for (n, width) in [(0, 2048), (1, 2048), (50, 256), (3000, 2100), (20_000, 8192)] {
            let (fuse, payload) = filter(&digests(n, 12), arity, width, 6);
            let mut bytes = Vec::new();
            fuse.encode(&mut bytes);
            assert!(bytes.len() <= 12);
            let mut reader = Reader::new(&bytes, "fuse");
            let back = Fuse::decode(&mut reader, Salt::new(6)).unwrap();
            assert!(reader.is_empty());
            assert_eq!((&back, back.payload_len()), (&fuse, payload.len() as u64));
            for cut in 0..bytes.len() {
                assert!(Fuse::decode(&mut Reader::new(&bytes[..cut], "fuse"), Salt::new(6)).is_err());
            }
        }
    }
}

/// Whatever `decode` accepts can be asked: every slot of every hash is inside a payload of the length it names.
#[test]
fn any_bytes_decode_to_something_safe_or_to_an_error() {
    let mut accepted = 0;
    for i in 0..200_000u64 {
        let mut bytes: Vec<u8> = (0..2).flat_map(|j| scramble(3 * i + j).to_le_bytes()).collect();
        // Steer towards geometries that are accepted: a right arity, short numbers.
        bytes[0] = [0, 3, 4, bytes[0]][i as usize % 4];
        bytes[1] |= 0x80;
        bytes[2] &= 0x3f;
        bytes[3] &= 0x1f;
        let Ok(fuse) = Fuse::decode(&mut Reader::new(&bytes, "fuse"), Salt::new(i)) else { continue };
        accepted += u32::from(fuse.shape != Shape::Empty);
        let len = fuse.payload_len();
        for h in [0, !COUNT, scramble(i) & !COUNT, scramble(!i) & !COUNT] {
            fn inside<C: Cells, const K: usize>(cells: C, fuse: &Fuse, h: u64, len: u64) {
                let slots = fuse.slots::<K>(h);
                assert!(slots.windows(2).all(|w| (w[0] >> fuse.log) + 1 == w[1] >> fuse.log));
                for slot in slots {
                    let need = if matches!(fuse.width, 2048 | 4096 | 8192) { u64::from(fuse.bits / 8) } else { 8 };
                    assert!(C::byte(cells.address(0, slot)) as u64 + need <= len);
                }
            }
            shaped!(&fuse, (), inside, &fuse, h, len);
        }
        if len < 1 << 16 {
            let payload = vec![0x5a; len as usize];
            for key in digests(20, i) {
                fuse.contains(&payload, key);
                fuse.get(&payload, key);
            }
        }
    }
    assert!(accepted > 10_000, "{accepted}");
}

#[test]
fn payloads_of_a_wrong_length_never_panic() {
    let keys = digests(200, 13);
    for arity in ARITIES {
        for width in [256, 1152, 2048, 4096, 8192] {
            let (fuse, mut payload) = filter(&keys, arity, width, 0);
            payload.extend([0; 20]);
            for len in (0..payload.len()).step_by(7) {
                let column = ShardedLeaf::of(0, &payload[..len], vec![(fuse.clone(), 0..len)]);
                let mut out = vec![false; keys.len()];
                column.contains_many(&payload[..len], &keys, &mut out);
                for (&key, &out) in keys.iter().zip(&out) {
                    assert_eq!(fuse.contains(&payload[..len], key), out);
                    fuse.get(&payload[..len], key);
                    // What a short payload does not know, it does not deny.
                    assert!(out);
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_built_is_an_error_and_leaves_no_trace() {
    let mut out = vec![1, 2, 3];
    let mut fails = |keys: &[Digest], values: Values<'_>, width: u16| {
        let error = build(keys, values, &Params { arity: Arity::Three, width }, Salt::new(0), &mut out).unwrap_err();
        assert_eq!(out, [1, 2, 3]);
        error
    };
    let keys = digests(10, 14);
    for width in [0, 255, 8193, u16::MAX] {
        assert!(matches!(fails(&keys, Values::Fingerprints, width), BuildError::Width { .. }));
    }
    assert!(matches!(fails(&keys, Values::Given(&[0; 10]), 300), BuildError::PartOfABit));
    assert!(matches!(fails(&keys, Values::Given(&[0; 9]), 256), BuildError::Values { given: 9, keys: 10 }));
    // Equal digests: for two of them, and for so many that the count of a cell would run over.
    for equal in [2, 64, 65, 200] {
        let mut keys = keys.clone();
        keys.extend(vec![Digest { hi: u64::MAX, lo: 1 }; equal]);
        let error = fails(&keys, Values::Fingerprints, 2048);
        assert!(matches!(error, BuildError::Unsolvable { attempts: 1, .. }), "{error}");
    }
}

/// What passes a filter passes every one of fewer whole bits on the same keys: those are its low bits.
#[test]
fn narrow_filters_are_the_low_bits_of_wide_ones() {
    for (n, arity) in [(1, Arity::Three), (900, Arity::Four), (30_000, Arity::Three)] {
        let (keys, strangers) = (digests(n, 5), digests(30_000, 6));
        let mut whole = vec![true; strangers.len()];
        for width in [256, 300, 512, 1280, 1281, 1535, 2048, 2100, 4096] {
            let (fuse, payload) = filter(&keys, arity, width, 3);
            for (key, whole) in strangers.iter().zip(&mut whole) {
                let now = fuse.contains(&payload, *key);
                assert!(!now || *whole, "{n} keys, width {width}");
                if width.is_multiple_of(256) {
                    *whole = now;
                }
            }
        }
    }
}

/// Keys are found, the others are not, and unlisted keys pass as they pass any filter of this width.
#[test]
fn signed_values_tell_keys_from_negatives() {
    for (n, width) in [(1, 256), (2, 256), (300, 256), (300, 1024), (30_000, 256), (30_000, 768)] {
        for arity in ARITIES {
            let keys = digests(n, 7);
            let wanted: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let mut payload = vec![];
            let params = Params { arity, width };
            let fuse = build(&keys, Values::Signed(&wanted), &params, Salt::new(3), &mut payload).unwrap();
            assert!(keys.iter().zip(&wanted).all(|(key, &yes)| fuse.contains(&payload, *key) == yes), "{n} keys");
            if n > 100 {
                let passed = digests(40_000, 8).iter().filter(|key| fuse.contains(&payload, **key)).count();
                let expected = 4e4 * 0.5f64.powi(i32::from(width / 256));
                assert!((passed as f64 - expected).abs() < 5.0 * expected.sqrt(), "{n} keys: {passed} of {expected}");
            }
        }
    }
    let short = build(
        &digests(3, 1),
        Values::Signed(&[true]),
        &Params { arity: Arity::Three, width: 256 },
        Salt::new(0),
        &mut vec![],
    );
    assert!(matches!(short, Err(BuildError::Values { given: 1, keys: 3 })));
}
