//! the laws of the leaf, against a sorted list.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::table::{BLOCK, MANY};
use super::*;
use crate::Hasher;
use crate::hash::attempts::attempt_of;
use crate::hash::scramble;
use crate::leaves::change::Change;
use crate::math::quotient::{rate, slots};

const SALT: Salt = Salt::new(1);

fn digests(n: u64, from: u64) -> Vec<Digest> {
    let hasher = Hasher::seeded(5);
    (0..n).map(|i| hasher.integer(from + i)).collect()
}

fn build(keys: &[Digest], params: &Params, level: Level) -> (Quotient, Vec<u8>) {
    let mut out = b"before".to_vec();
    let geometry = Quotient::build(keys, params, SALT, &mut out).unwrap();
    let payload = out.strip_prefix(b"before").unwrap().to_vec();
    assert_eq!(payload.len() as u64, geometry.payload_len());
    (Quotient { level, ..geometry }, payload)
}

/// Asks alone and together, with 5 bytes before the payload.
fn answers(geometry: Quotient, payload: &[u8], keys: &[Digest]) -> Vec<bool> {
    let file = [&[0xff; 5], payload, &[0xff; 40]].concat();
    let column = ShardedLeaf::of(0, &file, vec![(geometry, 5..5 + payload.len())]);
    let mut out = vec![false; keys.len()];
    column.contains_many(&file, keys, &mut out);
    for (&key, &yes) in keys.iter().zip(&out) {
        assert_eq!((column.contains(key), geometry.contains(payload, key)), (yes, yes));
    }
    out
}

fn decode(bytes: &[u8]) -> Result<Quotient, FormatError> {
    Quotient::decode(&mut Reader::new(bytes, "test"), SALT)
}

#[test]
fn every_size_up_to_two_thousand_keys() {
    let all = digests(2000, 0);
    for n in 0..=2000 {
        let (keys, others) = all.split_at(n);
        let params = Params { per_key: 0, remainder: 1 + n as u32 % 32 };
        let (geometry, payload) = build(keys, &params, Level::detect());
        assert_eq!((geometry.keys, geometry.slots), (n as u64, slots(n as u64)));
        let mut directory = vec![];
        geometry.encode(&mut directory);
        assert_eq!(decode(&directory).unwrap(), geometry);
        for cut in 0..directory.len() {
            assert!(matches!(decode(&directory[..cut]), Err(FormatError::Truncated { .. })));
        }
        assert!(answers(geometry, &payload, keys).iter().all(|&yes| yes), "{n} keys");
        let strangers = answers(geometry, &payload, others);
        assert!(n > 0 || !strangers.contains(&true));
    }
}

/// The bytes do not depend on the processor, nor on whether, in what order and with what detours keys came.
#[test]
fn one_by_one_gives_the_bytes_of_all_at_once() {
    for level in Level::available() {
        for (n, remainder) in [(1, 1), (2, 32), (60, 7), (64, 8), (500, 3), (5000, 5), (5000, 8), (3000, 31)] {
            let keys = digests(n + 50, 0);
            let (keys, others) = keys.split_at(n as usize);
            let held = OwnedQuotient::empty((slots(n), remainder), SALT).unwrap();
            let (mut geometry, mut payload) = (Quotient { level, ..held.geometry }, held.payload);
            for (i, &key) in keys.iter().enumerate() {
                if let Some(&other) = others.get(i) {
                    let _ = geometry.insert(&mut payload, other);
                    assert!(geometry.remove(&mut payload, other));
                }
                geometry.insert(&mut payload, key).unwrap();
            }
            let params = Params { per_key: 0, remainder };
            let (built, expected) = build(keys, &params, level);
            assert!(payload.starts_with(&expected) && payload[expected.len()..].iter().all(|&byte| byte == 0));
            assert_eq!((built.keys, built.slots), (geometry.keys, geometry.slots));
            assert!(answers(geometry, &payload, keys).iter().all(|&yes| yes));
            for &key in keys.iter().rev() {
                assert!(geometry.remove(&mut payload, key));
            }
            assert!(geometry.keys == 0 && payload.iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn a_full_table_says_so_and_stays_as_it_is() {
    let keys = digests(300, 0);
    let mut held = OwnedQuotient::empty((200, 6), SALT).unwrap();
    for (i, &key) in keys.iter().enumerate() {
        let before = held.clone();
        let result = held.geometry.insert(&mut held.payload, key);
        if i < 190 {
            result.unwrap();
        } else {
            let full = result.unwrap_err();
            assert_eq!((full.keys, full.capacity), (190, 190));
            assert!(before.payload == held.payload && before.geometry == held.geometry);
        }
    }
    // A built filter has no spare blocks: the last slot may be taken before the last key has come.
    let (mut geometry, mut payload) = build(&keys[..64], &Params { per_key: 2 << 16, remainder: 4 }, Level::detect());
    let last = *digests(100_000, 1000).iter().find(|&&key| geometry.locate(key).0 == 127).unwrap();
    let mut refused = false;
    for _ in 0..50 {
        let before = (geometry, payload.clone());
        if geometry.insert(&mut payload, last).is_err() {
            assert!(before == (geometry, payload.clone()));
            refused = true;
        }
    }
    assert!(refused && answers(geometry, &payload, &keys[..64]).iter().all(|&yes| yes));
}

/// The spare blocks are enough: a table of random fingerprints takes all that it is made for.
#[test]
fn no_table_is_full_at_its_end_by_chance() {
    for (capacity, tables) in [(1u64, 50), (2, 50), (10, 50), (60, 50), (190, 50), (300, 50), (3000, 30), (40_000, 10)]
    {
        for table in 0..tables {
            let mut held = OwnedQuotient::empty((slots(capacity), 4), SALT).unwrap();
            for i in 0..held.geometry.capacity() {
                let fingerprint = held.fingerprint(Hasher::seeded(table).integer(i));
                assert!(held.put(fingerprint), "{i} of {capacity}");
            }
        }
    }
}

/// One key a thousand times, and others that must give way: offsets beyond a byte.
#[test]
fn offsets_that_do_not_fit_are_counted() {
    let keys = digests(1500, 0);
    let mut held = OwnedQuotient::empty((4000, 9), SALT).unwrap();
    let early = *keys.iter().min_by_key(|&&key| held.geometry.locate(key)).unwrap();
    let mut oracle = vec![];
    for (i, &key) in keys.iter().enumerate() {
        held.geometry.insert(&mut held.payload, key).unwrap();
        oracle.push(held.geometry.locate(key));
        if i < 1000 {
            held.geometry.insert(&mut held.payload, early).unwrap();
            oracle.push(held.geometry.locate(early));
        }
    }
    let table = held.geometry.table();
    assert!((0..table.blocks).filter(|&block| table.meta(&held.payload, block).offset == MANY).count() > 5);
    check(&held, &mut oracle);
    assert_eq!(held.copies(held.fingerprint(early)), 1001);
    for _ in 0..900 {
        assert!(held.geometry.remove(&mut held.payload, early));
        oracle.remove(oracle.iter().position(|found| *found == held.geometry.locate(early)).unwrap());
    }
    check(&held, &mut oracle);
    assert!(answers(held.geometry, &held.payload, &keys).iter().all(|&yes| yes));
}

/// The table holds what the list holds, in the only way it can.
fn check(held: &OwnedQuotient, oracle: &mut [(usize, u64)]) {
    oracle.sort_unstable();
    let found: Vec<(usize, u64)> = held.places().iter().map(|&f| held.geometry.split(f)).collect();
    assert!(found == oracle && held.geometry.keys == oracle.len() as u64);
    let again = OwnedQuotient::checked(held.geometry, &held.payload).unwrap().unwrap();
    assert!(again.payload == held.payload);
}

#[test]
fn growing_moves_a_bit_and_changes_nothing_else() {
    let keys = digests(1000, 0);
    let mut held = OwnedQuotient::empty((slots(1000), 5), SALT).unwrap();
    keys.iter().for_each(|&key| held.geometry.insert(&mut held.payload, key).unwrap());
    let strangers = digests(3000, 5000);
    let before = answers(held.geometry, &held.payload, &strangers);
    let fingerprints = held.places();
    let mut table = Changing::from(held);
    for bits in (1..5).rev() {
        table = table.doubled().unwrap().unwrap();
        let held = &table.held;
        assert_eq!((held.geometry.remainder, held.geometry.keys), (bits, 1000));
        assert!(held.places() == fingerprints);
        assert!(answers(held.geometry, &held.payload, &strangers) == before);
        check(held, &mut fingerprints.iter().map(|&f| held.geometry.split(f)).collect::<Vec<_>>());
    }
    assert!(table.doubled().unwrap().is_none());
}

/// The formula holds at high and low loads, and for few keys, within four standard deviations of the mean over salts.
#[test]
fn measured_rates_are_those_of_the_formula() {
    for (n, per_key, remainder, salts) in [(3, 0, 2, 3000), (40, 0, 3, 1500), (1000, 0, 6, 80), (20_000, 90_000, 4, 8)]
    {
        let (keys, strangers) = (digests(n, 0), digests(4000, 1 << 40));
        let params = Params { per_key, remainder };
        let shares: Vec<f64> = (0..salts)
            .map(|salt| {
                let mut payload = vec![];
                let geometry = Quotient::build(&keys, &params, Salt::new(salt), &mut payload).unwrap();
                let yes = strangers.iter().filter(|&&key| geometry.contains(&payload, key)).count();
                yes as f64 / strangers.len() as f64
            })
            .collect();
        let (geometry, _) = build(&keys, &params, Level::detect());
        let formula = rate(n, geometry.slots, remainder);
        assert_eq!(geometry.fpr(), formula);
        let mean = shares.iter().sum::<f64>() / salts as f64;
        let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (salts - 1) as f64;
        let sigma = (variance / salts as f64).sqrt();
        assert!(sigma < 0.03 * mean, "{n} keys: too few strangers for a verdict, {mean} +- {sigma}");
        assert!((mean - formula).abs() < 4.0 * sigma, "{n} keys: measured {mean} +- {sigma}, formula {formula}");
    }
}

#[test]
fn a_full_filter_spends_the_bits_of_the_paper() {
    for (n, remainder) in [(20_000, 8), (100_000, 1), (100_000, 13), (300_000, 32)] {
        let (_, payload) = build(&digests(n, 0), &Params { per_key: 0, remainder }, Level::detect());
        let (spent, paper) = (payload.len() as f64 * 8.0 / n as f64, (f64::from(remainder) + 2.125) / 0.95);
        assert!((spent / paper - 1.0).abs() < 0.03, "{n} keys: {spent} bits per key, {paper} in the paper");
    }
}

/// Keys in a 256th of the table, at its end and elsewhere: the number follows from the set, and the size is that of others.
#[test]
fn a_crowd_is_built_in_other_places() {
    let params = Params { per_key: 0, remainder: 12 };
    let (plain, expected) = build(&digests(60_000, 0), &params, Level::detect());
    assert_eq!(plain.number, 0);
    for with in [0, 9, 255] {
        let mut keys = digests(20_000_000, 0);
        keys.retain(|key| key.salted(SALT) >> 56 == with);
        keys.truncate(60_000);
        keys.sort_unstable();
        let (geometry, payload) = build(&keys, &params, Level::detect());
        assert_eq!(attempt_of(geometry.number.into(), &keys), 1);
        assert!(payload.len() as f64 <= 1.02 * expected.len() as f64, "{} {}", payload.len(), expected.len());
        assert!(answers(geometry, &payload, &keys).iter().all(|&yes| yes));
        assert!(OwnedQuotient::checked(geometry, &payload).unwrap().is_some());
        let mut directory = vec![];
        geometry.encode(&mut directory);
        assert_eq!(decode(&directory).unwrap(), geometry);
        let strangers = digests(400_000, 1 << 40);
        let yes = answers(geometry, &payload, &strangers).iter().filter(|&&yes| yes).count() as f64;
        let mean = geometry.fpr() * 4e5;
        assert!((yes - mean).abs() < 5.0 * mean.sqrt(), "{yes} strangers, expected {mean}");
    }
}

/// Digests with one fingerprint cannot be spread: a long run is built, and skipped through.
#[test]
fn a_flood_of_one_fingerprint_is_built() {
    let run: Vec<Digest> = (0..30_000).map(|lo| Digest { hi: scramble(1), lo }).collect();
    let mut keys = [run, digests(30_000, 0)].concat();
    keys.sort_unstable();
    let (geometry, payload) = build(&keys, &Params { per_key: 0, remainder: 5 }, Level::detect());
    assert_eq!(geometry.number, 0);
    assert!(answers(geometry, &payload, &keys).iter().all(|&yes| yes));
    // All of its quotient: those above and below it in the run.
    let oracle: std::collections::HashSet<_> = keys.iter().map(|&key| geometry.locate(key)).collect();
    let table = geometry.table();
    for remainder in 0..32 {
        let found = table.has::<Base>(&payload, 0, remainder, geometry.ones);
        assert_eq!(found, oracle.contains(&(0, remainder)), "{remainder}");
    }
}

#[test]
fn directories_that_no_writer_makes_are_rejected() {
    let bad: [&[u8]; 8] = [
        &[1, 0, 1, 0, 0],
        &[1, 33, 1, 0, 0],
        &[0, 1, 1, 0, 0],
        &[65, 1, 1, 0, 0],
        &[64, 1, 1, 65, 0],
        &[64, 1, 1, 1, 0x80, 0x80, 0x80, 0x80, 0x10], // number 2^32
        &[0, 1, 0, 0, 1],                             // other places of nothing
        &[0xff; 10],
    ];
    for bad in bad {
        assert!(matches!(decode(bad), Err(FormatError::Invalid { .. })), "{bad:?}");
    }
    // 2^40 slots of 32 bits are too many fingerprints.
    assert!(decode(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 32, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]).is_err());
    assert_eq!(decode(&[0, 1, 0, 0, 0]).unwrap().payload_len(), 0);
    assert!(!decode(&[0, 1, 0, 0, 0]).unwrap().contains(&[], Digest { hi: 1, lo: 2 }));
    // The smallest table that there is, and the largest number.
    let smallest = decode(&[1, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]).unwrap();
    assert!(!smallest.contains(&[0; 25], Digest { hi: 1, lo: 2 }));
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u8),
    Remove(u8),
    Count(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => any::<u8>().prop_map(Op::Insert),
        2 => any::<u8>().prop_map(Op::Remove),
        1 => any::<u8>().prop_map(Op::Count),
    ];
    prop::collection::vec(op, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_a_multiset_of_fingerprints(slots in 1u64..400, remainder in 1u32..=32, spread in 1u64..=256, ops in ops()) {
        let mut held = OwnedQuotient::empty((slots, remainder), SALT).unwrap();
        let hasher = Hasher::seeded(9);
        let mut oracle: Vec<(usize, u64)> = vec![];
        for op in ops {
            match op {
                Op::Insert(key) => {
                    let key = hasher.integer(u64::from(key) % spread);
                    let before = held.payload.clone();
                    match held.geometry.insert(&mut held.payload, key) {
                        Ok(()) => oracle.push(held.geometry.locate(key)),
                        Err(full) => prop_assert!(before == held.payload && full.keys == oracle.len() as u64),
                    }
                }
                Op::Remove(key) => {
                    let key = hasher.integer(u64::from(key) % spread);
                    let at = oracle.iter().position(|found| *found == held.geometry.locate(key));
                    prop_assert_eq!(held.geometry.remove(&mut held.payload, key), at.is_some());
                    at.map(|at| oracle.swap_remove(at));
                }
                Op::Count(key) => {
                    let key = hasher.integer(u64::from(key) % spread);
                    let copies = oracle.iter().filter(|found| **found == held.geometry.locate(key)).count();
                    prop_assert_eq!(held.copies(held.fingerprint(key)), copies as u64);
                    prop_assert_eq!(held.geometry.contains(&held.payload, key), copies > 0);
                }
            }
        }
        check(&held, &mut oracle);
    }

    /// Any bytes give some answer, in finite time, and a refusal changes nothing.
    #[test]
    fn hostile_payloads_are_survived(
        slots in 1u64..600,
        remainder in 1u32..=32,
        keys in 0u64..600,
        number in prop_oneof![Just(0), any::<u32>()],
        pattern in 0u8..4,
        bytes in prop::collection::vec(any::<u8>(), 4096),
    ) {
        for level in Level::available() {
            let mut geometry = Quotient { keys, number, level, ..Quotient::new((slots, remainder), SALT).unwrap() };
            let bytes = bytes.iter().map(|&byte| match pattern {
                0 => byte,
                1 => 0xff,
                2 => if byte & 1 == 1 { 0xff } else { 0 },
                _ => byte & byte.rotate_left(3) & byte.rotate_left(5),
            });
            let mut payload: Vec<u8> = bytes.cycle().take(geometry.payload_len() as usize).collect();
            for key in digests(100, keys) {
                let yes = geometry.contains(&payload, key);
                prop_assert_eq!(answers(geometry, &payload, &[key]), [yes]);
                let before = payload.clone();
                prop_assert!(geometry.insert(&mut payload, key).is_ok() || before == payload);
                let before = payload.clone();
                prop_assert!(geometry.remove(&mut payload, key) || before == payload);
            }
            let held = OwnedQuotient { geometry, payload };
            prop_assert!(held.places().len() <= geometry.blocks as usize * BLOCK);
            prop_assert!(OwnedQuotient::checked(geometry, &held.payload).unwrap().is_none_or(|again| again.payload.starts_with(&held.payload)));
            // Too short a payload is read as zeros.
            geometry.contains(&held.payload[..held.payload.len() / 2], digests(1, 0)[0]);
        }
    }

    #[test]
    fn random_directories_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..14), hi in any::<u64>()) {
        if let Ok(geometry) = decode(&bytes) {
            prop_assert!(geometry.payload_len() <= 1 << 49);
            prop_assert!((0.0..=1.0).contains(&geometry.fpr()));
            geometry.contains(&bytes, Digest { hi, lo: hi.rotate_left(7) });
        }
    }
}
