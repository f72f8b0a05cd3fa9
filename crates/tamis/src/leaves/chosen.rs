//! chosen keys -> every leaf is built, in about the bytes of ordinary keys.
//!
//! Three ways to choose: pairs with the same bits under each of the 64 salts that a list would have, keys in one place of the
//! first salt, and keys that share the top bits of their digests.
#![allow(clippy::unwrap_used)]

use super::design::RejectSide;
use super::integrated::{self, IntegratedVariant};
use super::{Geometry, Query, Values, Work, cuckoo, fuse, local, ribbon, steered};
use crate::arch::Level;
use crate::hash::attempts::ATTEMPTS;
use crate::hash::{Digest, Salt, scramble};

const SALT: Salt = Salt::new(3);
const WORK: Work<'static> = Work { salt: SALT, skip: 0, threads: 2, stop: &|| false };

/// Sorted, distinct, as random as any.
fn ordinary(n: usize, seed: u64) -> Vec<Digest> {
    let digest = |i: u64| {
        let hi = scramble(scramble(seed) ^ i);
        Digest { hi, lo: scramble(hi) }
    };
    sorted((0..n as u64).map(digest).collect())
}

fn sorted(mut digests: Vec<Digest>) -> Vec<Digest> {
    digests.sort_unstable();
    digests.dedup();
    digests
}

/// So many digests with the same bits under each of the first numbers, among others.
fn alike(count: u32, others: usize) -> Vec<Digest> {
    let mut all = ordinary(others, 1);
    for number in 0..u64::from(ATTEMPTS) {
        let salt = SALT.child(number);
        let group = salt.alike(number, count);
        assert!(group.iter().all(|key| key.salted(salt) == group[0].salted(salt)));
        all.extend(group);
    }
    let wanted = all.len();
    let all = sorted(all);
    assert_eq!(all.len(), wanted);
    all
}

/// Digests in one 256th of what the first salt makes of them.
fn crowded(n: usize) -> Vec<Digest> {
    let salt = SALT.child(0);
    let all = (0..).map(|i| Digest { hi: scramble(i), lo: scramble(!i) });
    sorted(all.filter(|key| key.salted(salt) >> 56 == 7).take(n).collect())
}

/// Builds both, finds all chosen keys, and compares the bytes.
fn compare<L: Query>(chosen: &[Digest], most: f64, what: &str, build: impl Fn(&[Digest], &mut Vec<u8>) -> L) {
    let (mut payload, mut other) = (vec![], vec![]);
    let leaf = build(chosen, &mut payload);
    build(&ordinary(chosen.len(), 2), &mut other);
    assert!(chosen.iter().all(|&key| leaf.contains(&payload, key)), "{what}");
    let (bytes, usual) = (payload.len() as f64, other.len() as f64);
    assert!(bytes <= most * usual + 16.0, "{what}, {} keys: {bytes} bytes, ordinary {usual}", chosen.len());
}

fn ribbons() -> impl Iterator<Item = ribbon::Params> {
    let forms = [(false, false), (true, false), (false, true)];
    let params =
        move |width: u16| forms.map(|(wide, nested)| ribbon::Params { width: width * 256, tight: wide, nested });
    [1, 8, 9].into_iter().flat_map(params)
}

#[test]
fn pairs_for_every_number_of_a_list_stop_nobody() {
    for others in [0, 1000, 30_000] {
        let keys = alike(2, others);
        for arity in [fuse::Arity::Three, fuse::Arity::Four] {
            compare(&keys, 1.2, "fuse", |keys, out| {
                fuse::build(keys, Values::Fingerprints, &fuse::Params { arity, width: 2048 }, SALT, out).unwrap()
            });
        }
        for params in ribbons() {
            compare(&keys, 1.2, &format!("{params:?}"), |keys, out| {
                ribbon::build(keys, Values::Fingerprints, &params, SALT, 0, 1, out).unwrap()
            });
        }
        let params = cuckoo::Params { bits: 8, semi_sorted: false, places: 1 << 16 };
        compare(&alike(9, others), 1.2, "cuckoo", |keys, out| cuckoo::Cuckoo::build(keys, &params, SALT, out).unwrap());
    }
}

#[test]
fn values_of_chosen_keys_are_held() {
    for others in [0, 1000, 30_000] {
        let keys = alike(2, others);
        let values: Vec<u32> = (0..keys.len() as u32).map(|i| i & 7).collect();
        let given = Values::Given(&values);
        let mut out = vec![];
        let params = fuse::Params { arity: fuse::Arity::Three, width: 3 * 256 };
        let leaf = fuse::build(&keys, given, &params, SALT, &mut out).unwrap();
        assert!(keys.iter().zip(&values).all(|(&key, &value)| leaf.get(&out, key) == value), "fuse");
        out.clear();
        let params = ribbon::Params { width: 3 * 256, tight: false, nested: false };
        let leaf = ribbon::build(&keys, given, &params, SALT, 0, 1, &mut out).unwrap();
        assert!(keys.iter().zip(&values).all(|(&key, &value)| leaf.get(&out, key) == value), "ribbon");
    }
}

/// Pairs of two keys, and of a key and a negative.
#[test]
fn integrated_filters_tell_chosen_pairs_apart() {
    for parts in [IntegratedVariant::One, IntegratedVariant::General] {
        for others in [0, 2000] {
            let both = alike(2, others);
            let (keys, negatives): (Vec<Digest>, Vec<Digest>) =
                both.iter().partition(|key| key.hi.count_ones() % 2 == 0);
            for (keys, negatives) in [(both.clone(), ordinary(3000, 5)), (keys, negatives)] {
                let params = integrated::Params { arity: fuse::Arity::Three, first: 2, parts };
                let mut out = vec![];
                let leaf = integrated::build(&keys, &&negatives[..], &params, SALT, &mut out).unwrap();
                assert!(keys.iter().all(|&key| leaf.contains(&out, key)), "{params:?}");
                assert!(!negatives.iter().any(|&key| leaf.contains(&out, key)), "{params:?}");
            }
        }
    }
}

/// A crowd has the bits of any other set, at most a fiftieth more.
#[test]
fn crowds_take_no_more_bits() {
    for n in [5000, 12_000, 60_000] {
        let keys = crowded(n);
        for arity in [fuse::Arity::Three, fuse::Arity::Four] {
            compare(&keys, 1.02, "fuse", |keys, out| {
                fuse::build(keys, Values::Fingerprints, &fuse::Params { arity, width: 2048 }, SALT, out).unwrap()
            });
        }
        for params in ribbons() {
            compare(&keys, 1.02, &format!("{params:?}"), |keys, out| {
                ribbon::build(keys, Values::Fingerprints, &params, SALT, 0, 1, out).unwrap()
            });
        }
        let params = cuckoo::Params { bits: 12, semi_sorted: false, places: 69_000 };
        compare(&keys, 1.02, "cuckoo", |keys, out| cuckoo::Cuckoo::build(keys, &params, SALT, out).unwrap());
    }
}

/// Ways to choose `n` digests for a leaf in strips whose salt is the step's: what they share, and the digests.
fn shared(n: usize, seed: u64) -> [(&'static str, Vec<Digest>); 4] {
    let all = || (0..).map(|i| Digest { hi: scramble(scramble(seed) ^ i), lo: scramble(scramble(!seed) ^ i) });
    let rows = |bits: u32, shift: u32| {
        let row = |key: Digest| key.salted(SALT) << shift >> (64 - bits);
        sorted(all().filter(|&key| row(key) == 5).take(n).collect())
    };
    [
        ("nothing", ordinary(n, seed)),
        ("top bits", sorted(all().take(n).map(|key| Digest { hi: key.hi >> 20, lo: key.lo }).collect())),
        ("a stretch of rows", rows(5, 0)),
        ("rows here and there", rows(4, 5)),
    ]
}

/// Bits of the column and one for each of the others that is left, and it answers right.
fn steer(keys: &[Digest], others: &[Digest], share: u16) -> usize {
    let mut left = RejectSide { digests: others.into(), weights: vec![] };
    let params = steered::Params { slack: 160, beam: steered::FAST, share };
    let mut out = vec![];
    let leaf = steered::build_on(Level::detect(), keys, &mut left, &params, &WORK, &mut out).unwrap();
    let mut geometry = vec![];
    leaf.encode(&mut geometry);
    let leaf = steered::Steered::decode(&mut crate::format::Reader::new(&geometry, "test"), SALT).unwrap();
    assert!(keys.iter().all(|&key| leaf.contains(&out, key)));
    let passing: Vec<Digest> = others.iter().copied().filter(|&key| leaf.contains(&out, key)).collect();
    assert!(left.digests == passing);
    // Unlisted keys match at no higher rate either.
    let unlisted = ordinary(50_000, 99);
    let rate = unlisted.iter().filter(|&&key| leaf.contains(&out, key)).count() as f64 / 5e4;
    assert!(rate < 1.0 - f64::from(share) / 512.0 + 0.015, "{rate}");
    8 * out.len() + left.digests.len()
}

#[test]
fn steered_columns_reject_chosen_keys_as_well() {
    let (n, m) = (150_000, 300_000);
    for share in [256, 128] {
        let usual = steer(&ordinary(n, 1), &ordinary(m, 2), share) as f64;
        for (what, keys) in shared(n, 1) {
            for (with, others) in shared(m, 2) {
                let bits = steer(&keys, &others, share) as f64;
                assert!(bits < 1.02 * usual, "keys share {what}, others {with}: {bits}, usual {usual}");
            }
        }
    }
}

/// Others that are taken for a key each: they have its bits.
#[test]
fn steered_columns_reject_the_doubles_of_keys() {
    let pair = |i: u64| SALT.alike(i, 2);
    let (keys, others): (Vec<Digest>, Vec<Digest>) = (0..20_000).map(|i| (pair(i)[0], pair(i)[1])).unzip();
    let (keys, others) = (sorted(keys), sorted(others));
    let (bits, usual) = (steer(&keys, &others, 256), steer(&ordinary(20_000, 1), &ordinary(20_000, 2), 256));
    assert!((bits as f64) < 1.05 * usual as f64, "{bits}, usual {usual}");
}

#[test]
fn local_leaves_hold_chosen_keys_in_as_many_bytes() {
    let params = local::Params { columns: 2, exact: 2, slack: 160, beam: steered::FAST };
    let make = |keys: &[Digest], negatives: &[Digest]| {
        let (mut out, mut geometry) = (vec![], vec![]);
        let leaf = local::build_on(Level::detect(), keys, negatives, &params, &WORK, &mut out).unwrap();
        leaf.encode(&mut geometry);
        let leaf = local::Local::decode(&mut crate::format::Reader::new(&geometry, "test"), SALT).unwrap();
        assert!(keys.iter().all(|&key| leaf.contains(&out, key)));
        assert!(!negatives.iter().any(|&key| leaf.contains(&out, key)));
        out.len() as f64
    };
    let usual = make(&ordinary(100_000, 1), &ordinary(500_000, 2));
    for (what, keys) in shared(100_000, 1) {
        for (with, negatives) in shared(500_000, 2) {
            let bytes = make(&keys, &negatives);
            assert!(bytes < 1.02 * usual, "keys share {what}, negatives {with}: {bytes}, usual {usual}");
        }
    }
}

/// What chance makes of ordinary keys is no crowd: they keep the first salt.
#[test]
fn ordinary_keys_are_built_at_once() {
    for n in [1, 2, 10, 100, 1000, 10_000, 100_000] {
        for mu in [0.1, 0.5, 1.0, 4.0, 20.0] {
            for (seed, slack) in (0..).zip([64, 100, 160, 512, 2000]) {
                let (keys, others) = (ordinary(n, 2 * seed + 1), ordinary((n as f64 * mu) as usize, 2 * seed + 2));
                let mut left = RejectSide { digests: (&others[..]).into(), weights: vec![] };
                let beam = if n > 10_000 { steered::FAST } else { steered::BALANCED };
                let params = steered::Params { slack, beam, share: 256 };
                let (mut out, mut geometry) = (vec![], vec![]);
                steered::build_on(Level::detect(), &keys, &mut left, &params, &WORK, &mut out)
                    .unwrap()
                    .encode(&mut geometry);
                let plain = |geometry: &[u8]| {
                    let mut from = crate::format::Reader::new(geometry, "test");
                    (0..4).map(|_| from.varint().unwrap()).last()
                };
                assert_eq!(plain(&geometry), Some(0), "{n} keys, {mu} others each, slack {slack}");
                let params = local::Params { columns: 2, exact: 1, slack: slack.min(512), beam };
                let (mut out, mut geometry) = (vec![], vec![]);
                local::build_on(Level::detect(), &keys, &others, &params, &WORK, &mut out)
                    .unwrap()
                    .encode(&mut geometry);
                let mut from = crate::format::Reader::new(&geometry, "test");
                assert_eq!((0..6).map(|_| from.varint().unwrap()).last(), Some(0), "local, {n} keys, {mu} others each");
            }
        }
    }
}

/// The numbers follow from the set: in the file, and the same again.
#[test]
fn the_number_of_a_chosen_set_is_in_the_file() {
    let keys = alike(2, 100);
    let params = fuse::Params { arity: fuse::Arity::Three, width: 2048 };
    let make = || {
        let (mut payload, mut geometry) = (vec![], vec![]);
        fuse::build(&keys, Values::Fingerprints, &params, SALT, &mut payload).unwrap().encode(&mut geometry);
        (payload, geometry)
    };
    let (payload, geometry) = make();
    assert_eq!((payload.clone(), geometry.clone()), make());
    let leaf = fuse::Fuse::decode(&mut crate::format::Reader::new(&geometry, "test"), SALT).unwrap();
    assert!(keys.iter().all(|&key| leaf.contains(&payload, key)));
}
