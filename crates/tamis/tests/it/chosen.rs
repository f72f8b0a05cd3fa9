//! keys that share bits of something which the code derives from them -> structures as good as those of ordinary keys.
//!
//! The hash is public, so that whoever supplies keys can look for some that lie together: in a shard, a strip, a row, a bucket, a cell
//! of a sketch. This test does so. A *trial* takes one of the values that the code derives from a digest, a window of its bits,
//! and keys that agree there; the keys of one side, or of both, are such keys, or half of them. From these it builds a structure of some
//! kind, and from as many ordinary keys another. Both must answer right, the first may take 1.2 times the bytes of
//! the second, and unlisted keys must match no more often than it says.
//!
//! `TAMIS_CHOSEN=5000 cargo test --release -p tamis --test it chosen::` is the long run; without the variable there are
//! 400 trials with `TAMIS_SLOW`, else 60. The trials are the same in every run.

use tamis::internals::Salt;
use tamis::internals::{Counter, ONE, Workspace};
use tamis::{Bloom, Cuckoo, Digest, Hasher, Key, Kind, Layout, Limits, OnConflict, Quotient};

use super::unlisted::Dice;
use super::{excludes, mix};

/// Something that the code derives from a digest. Every salt and every constant of it is here.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "numbers are for the reader of a failure")]
enum Derived {
    Hi,
    Lo,
    /// Bits for a salt of this number, for a digest or for a name, and what is made of them with a constant.
    Salted(Salt, (u64, bool), &'static [u64], u64),
}

/// Salts of steps; of labels and maps; of sets, for names of keys: cells, fingerprints and the filter in front.
const NUMBERS: [(u64, bool); 9] = [
    (0, false),
    (1, false),
    (2, false),
    (3, false),
    (1 << 32, false),
    (1 << 33, false),
    (0x5e75, true),
    (0x0063_7363_626c_6f6f, true),
    (0x0063_7363_6375_636b, true),
];

/// Children of these salts: attempts, levels, repetitions, rests.
const CHILDREN: [&[u64]; 8] = [&[], &[0], &[1], &[2], &[63], &[1 << 32], &[0, 0], &[0, 1]];

/// What hashes are folded with for bands, masks, windows and levels; 1 leaves them as they are.
const FOLDED: [u64; 12] = [
    1,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
    0xeb44_acca_b455_d165,
    0x9c6e_6877_736c_46e3,
    0x2127_599b_f432_5c37,
    0xd6e8_feb8_6659_fd93,
    0x9fb2_1c65_1e98_df25,
    0x9e37_79b9_7f4a_7c15,
];

impl Derived {
    fn new(dice: &mut Dice) -> Derived {
        match dice.below(8) {
            0 => Derived::Hi,
            1 => Derived::Lo,
            _ => {
                let (number, path) = (dice.of(&NUMBERS), dice.of(&CHILDREN));
                let salt = path.iter().fold(Salt::new(number.0), |salt, &child| salt.child(child));
                let factor = if dice.below(2) == 0 { 1 } else { dice.of(&FOLDED) };
                Derived::Salted(salt, number, path, factor)
            }
        }
    }

    fn of(&self, digest: Digest) -> u64 {
        match *self {
            Derived::Hi => (digest.to_bits() >> 64) as u64,
            Derived::Lo => digest.to_bits() as u64,
            Derived::Salted(salt, (_, named), _, factor) => {
                let digest = if named { name(digest) } else { digest };
                if factor == 1 {
                    return digest.salted(salt);
                }
                let product = u128::from(digest.salted(salt)) * u128::from(factor);
                product as u64 ^ (product >> 64) as u64
            }
        }
    }
}

/// What an index of sets knows of a key: see `sets/key.rs`.
fn name(digest: Digest) -> Digest {
    let (hi, lo) = ((digest.to_bits() >> 64) as u64, digest.to_bits() as u64);
    let (hi, lo) = (hi ^ lo.wrapping_mul(0xd6e8_feb8_6659_fd93), lo & !u64::from(u32::MAX));
    Digest::from_bits(u128::from(hi) << 64 | u128::from(lo))
}

/// What is chosen.
#[derive(Clone, Debug)]
struct Choice {
    derived: Derived,
    /// A window of its bits, from the lowest, and what is in it.
    shift: u32,
    bits: u32,
    wanted: u64,
}

impl Choice {
    fn new(dice: &mut Dice, bits: u32) -> Choice {
        // The top bits are places, the lowest fingerprints; they are tried most.
        let shift = match dice.below(4) {
            0 | 1 => 64 - bits,
            2 => 0,
            _ => dice.below(u64::from(65 - bits)) as u32,
        };
        Choice { derived: Derived::new(dice), shift, bits, wanted: dice.below(1 << bits) }
    }

    /// `n` distinct keys of which `share` in four are chosen; others for other seeds.
    fn keys<K: Key>(&self, n: u64, share: u64, seed: u64, key: fn(u64) -> K) -> Vec<K> {
        let hasher = Hasher::seeded(0);
        let fits = |key: &K| self.derived.of(key.digest(&hasher)) >> self.shift & ((1 << self.bits) - 1) == self.wanted;
        let numbers = |half: u64| (0..).map(move |i: u64| key(mix(seed << 41 | half << 40 | i)));
        let chosen = numbers(0).filter(fits).take((n * share / 4) as usize);
        chosen.chain(numbers(1).take((n - n * share / 4) as usize)).collect()
    }
}

/// A structure, built: its bytes, and how many of the unlisted keys it let through and should have, at most.
struct Built {
    bytes: usize,
    passed: usize,
    most: f64,
}

/// What can be built of keys and of others.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the name is for the reader of a failure")]
enum Structure {
    Filter(&'static str, Kind, Layout, bool),
    Partitions,
    Map(tamis::maps::Kind),
    Sets(tamis::sets::Kind),
    Bloom,
    Cuckoo,
    Quotient,
    Counter,
}

impl Structure {
    fn new(dice: &mut Dice) -> Structure {
        use tamis::{maps, sets};
        match dice.below(16) {
            0..=8 => {
                let (name, kind) = dice.of(Kind::ALL);
                let layout = if kind == Kind::Auto { dice.of(&[Layout::Auto, Layout::Local]) } else { Layout::Compact };
                Structure::Filter(name, kind, layout, dice.below(2) == 0)
            }
            9 => Structure::Partitions,
            10 => Structure::Map(dice.of(&[maps::Kind::Compressed, maps::Kind::Ribbon, maps::Kind::Fuse])),
            11 => {
                let kinds = [sets::Kind::Bloom, sets::Kind::Cuckoo, sets::Kind::Frozen];
                Structure::Sets(dice.of(&kinds))
            }
            12 => Structure::Bloom,
            13 => Structure::Cuckoo,
            14 => Structure::Quotient,
            _ => Structure::Counter,
        }
    }

    fn knows_others(&self) -> bool {
        match self {
            Structure::Filter(_, kind, ..) => *kind == Kind::Auto || excludes(*kind),
            Structure::Partitions => true,
            _ => false,
        }
    }

    fn build<K: Key + Clone + Send + Sync>(&self, keys: &[K], others: &[K], unlisted: &[K]) -> Built {
        let passing = |contains: &dyn Fn(&K) -> bool| {
            assert!(keys.iter().all(contains), "a key is lost");
            assert!(!others.iter().any(contains), "one of the others passes");
            unlisted.iter().filter(|key| contains(key)).count()
        };
        match *self {
            Structure::Filter(_, kind, layout, exact) => {
                let build = tamis::build(keys).exclude(others).kind(kind).layout(layout).threads(2);
                let build = if exact && !others.is_empty() { build.exact() } else { build.fpr(0.02) };
                let filter = build.finish().unwrap();
                let passed = passing(&|key| filter.contains(key).unwrap());
                Built { bytes: filter.as_bytes().len(), passed, most: filter.fpr() }
            }
            Structure::Partitions => {
                let label = |i: usize| format!("label {}", i % 20);
                let mut build = tamis::stream().fpr(0.02).partitioned();
                keys.iter().enumerate().for_each(|(i, key)| build.push(label(i), key).unwrap());
                others.iter().enumerate().for_each(|(i, key)| build.exclude(label(i), key).unwrap());
                let filter = build.finish().unwrap();
                let asked = |keys: &[K]| {
                    keys.iter().enumerate().filter(|(i, key)| filter.contains_in(label(*i), *key).unwrap()).count()
                };
                assert_eq!((asked(keys), asked(others)), (keys.len(), 0));
                Built { bytes: filter.as_bytes().len(), passed: asked(unlisted), most: filter.fpr() }
            }
            Structure::Map(kind) => {
                let value = |i: usize| mix(i as u64).trailing_zeros() as u64;
                let pairs = keys.iter().enumerate().map(|(i, key)| (key.clone(), value(i)));
                let map = tamis::map(pairs).kind(kind).options(tamis::Options::default().threads(2)).finish().unwrap();
                assert!(keys.iter().enumerate().all(|(i, key)| map.get_u64(key) == Ok(Some(value(i)))));
                Built { bytes: map.as_bytes().len(), passed: 0, most: 0.0 }
            }
            Structure::Sets(kind) => {
                let mut build = tamis::sets::stream().kind(kind).start();
                let names = [0; 8].map(|_: u32| ());
                names.iter().enumerate().for_each(|(set, ())| {
                    build.set(&format!("set {set}")).unwrap();
                });
                let lists = |i: usize| [mix(i as u64) as u32 % 8, (mix(i as u64) >> 32) as u32 % 8];
                for (i, key) in keys.iter().enumerate() {
                    lists(i).iter().for_each(|&set| build.push(key, set).unwrap());
                }
                let index = build.finish().unwrap();
                for (i, key) in keys.iter().enumerate() {
                    let found = index.find(key).unwrap();
                    assert!(lists(i).iter().all(|set| found.contains(set)), "a pair is lost");
                }
                Built { bytes: index.as_bytes().len(), passed: 0, most: 0.0 }
            }
            Structure::Bloom => {
                let mut filter = Bloom::with_capacity(keys.len() as u64).fpr(0.02).build::<K>().unwrap();
                keys.iter().for_each(|key| filter.insert(key).map(|_| ()).unwrap());
                let passed = passing(&|key| filter.contains(key).unwrap());
                Built { bytes: filter.snapshot().unwrap().len(), passed, most: 0.02 }
            }
            Structure::Cuckoo => {
                let mut filter = Cuckoo::with_capacity(keys.len() as u64).fpr(0.02).build::<K>().unwrap();
                keys.iter().for_each(|key| filter.insert(key).unwrap());
                let passed = passing(&|key| filter.contains(key).unwrap());
                Built { bytes: filter.snapshot().unwrap().len(), passed, most: 0.02 }
            }
            Structure::Quotient => {
                let mut filter = Quotient::with_capacity(keys.len() as u64).fpr(0.02).build::<K>().unwrap();
                keys.iter().for_each(|key| filter.insert(key).unwrap());
                let passed = passing(&|key| filter.contains(key).unwrap());
                Built { bytes: filter.snapshot().unwrap().len(), passed, most: 0.02 }
            }
            Structure::Counter => {
                let hasher = Hasher::seeded(0);
                let mut counter = Counter::new(&Workspace::new(&Limits::default(), 1), 1 << 24);
                keys.iter().for_each(|key| counter.push(key.digest(&hasher), ONE, &|| false).unwrap());
                let weights = counter.finish(&|| false).unwrap().weights(&|| false).unwrap();
                assert_eq!(weights.classes, [(1.0, keys.len() as u64)]);
                Built { bytes: 0, passed: 0, most: 0.0 }
            }
        }
    }
}

/// Bytes that every file may have more.
const FRAME: usize = 64;

fn trial<K: Key + Clone + Send + Sync>(number: u64, key: fn(u64) -> K) {
    let mut dice = Dice(number << 20);
    let structure = Structure::new(&mut dice);
    let n = 100 << dice.below(9);
    let m = if structure.knows_others() { n * dice.of(&[1, 1, 4, 12]) } else { 0 };
    // As many bits as can be looked for.
    let bits = (1u64 << 23).checked_div(n + m).unwrap_or(1).max(8).ilog2().min(12);
    let choice = Choice::new(&mut dice, bits);
    let (share, other_share) = dice.of(&[(4, 0), (0, 4), (4, 4), (2, 2), (1, 0), (2, 4)]);
    let what =
        || format!("trial {number}: {structure:?}, {n} keys, {m} others, {share} and {other_share} of 4, {choice:?}");

    let unlisted = choice.keys(20_000, 0, 9, key);
    let chosen = (choice.keys(n, share, 1, key), choice.keys(m, other_share, 2, key));
    let ordinary = (choice.keys(n, 0, 3, key), choice.keys(m, 0, 4, key));
    let built = structure.build(&chosen.0, &chosen.1, &unlisted);
    let usual = structure.build(&ordinary.0, &ordinary.1, &unlisted);
    let most = usual.bytes as f64 * 1.2 + FRAME as f64;
    assert!(built.bytes as f64 <= most, "{}: {} bytes, ordinary {}", what(), built.bytes, usual.bytes);
    // How many of its places a small table's keys have hit is chance.
    let expected = built.most * 2e4 * (1.0 + 10.0 / (n as f64).sqrt());
    assert!(built.passed as f64 <= expected + 6.0 * expected.sqrt() + 1.0, "{}: {} pass", what(), built.passed);
}

#[test]
fn no_shared_bits_make_a_structure_worse() {
    let trials = match std::env::var("TAMIS_CHOSEN") {
        Ok(trials) => trials.parse().unwrap(),
        Err(_) if std::env::var_os("TAMIS_SLOW").is_some() => 400,
        Err(_) => 60,
    };
    for number in 0..trials {
        match number % 3 {
            0 => trial::<[u8; 8]>(number, u64::to_le_bytes),
            _ => trial::<u64>(number, |i| i),
        }
    }
}

/// Keys in one part of a cuckoo table of sets: their other bucket alone has not room for all.
#[test]
fn indexes_of_chosen_keys_are_as_small() {
    let hasher = Hasher::seeded(0);
    let salt = Salt::new(0x0063_7363_6375_636b).child(0);
    let together = |key: &u64| name(hasher.integer(*key)).salted(salt) >> 56 == 7;
    let bytes = |keys: &[u64], kind| {
        let mut build = tamis::sets::stream().kind(kind).start();
        build.set("a").unwrap();
        keys.iter().for_each(|key| build.push(key, 0).unwrap());
        let index = build.finish().unwrap();
        assert!(keys.iter().all(|key| index.find(key).unwrap() == [0]));
        // The number is in the file.
        let again = tamis::Sets::open(index.as_bytes().to_vec()).unwrap();
        assert!(keys.iter().all(|key| again.find(key).unwrap() == [0]));
        index.as_bytes().len() as f64
    };
    let (chosen, ordinary): (Vec<u64>, Vec<u64>) =
        ((0..).filter(together).take(20_000).collect(), (0..20_000).collect());
    for kind in [tamis::sets::Kind::Cuckoo, tamis::sets::Kind::Bloom, tamis::sets::Kind::Frozen] {
        let (chosen, ordinary) = (bytes(&chosen, kind), bytes(&ordinary, kind));
        assert!(chosen <= 1.01 * ordinary, "{kind:?}: {chosen} bytes, ordinary {ordinary}");
    }
}

/// Excluded keys that somebody chose to pass the first stage, because all keys are known: the plan is made again for what is seen.
#[test]
fn excluded_keys_that_pass_the_first_stage_are_planned_for() {
    let keys: Vec<u64> = (0..2000).map(|i| mix(1 << 50 | i)).collect();
    let first = tamis::build(&keys).kind(Kind::Ribbon).fpr(1.0 / 128.0).finish().unwrap();
    let chosen: Vec<u64> = (0..).map(mix).filter(|key| first.contains(key) == Ok(true)).take(60_000).collect();
    let bits = |others: &[u64]| {
        let filter = tamis::build(&keys).exclude(others).exact().finish().unwrap();
        assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
        assert!(!others.iter().any(|key| filter.contains(key) == Ok(true)));
        // The same bytes if they come first, or twice.
        let mut mixed = tamis::stream().exact().with_excluded().start();
        others.iter().rev().for_each(|key| mixed.exclude(key).unwrap());
        keys.iter().for_each(|key| mixed.push(key).unwrap());
        others[..1000].iter().for_each(|key| mixed.exclude(key).unwrap());
        assert!(mixed.finish().unwrap().as_bytes() == filter.as_bytes());
        filter.as_bytes().len() as f64 * 8.0 / 2000.0
    };
    let ordinary: Vec<u64> = (0..60_000).map(|i| mix(1 << 52 | i)).collect();
    let (chosen, ordinary) = (bits(&chosen), bits(&ordinary));
    // One bit for each of the chosen, 30 per key, were it not for a wider first stage.
    assert!(chosen < 2.5 * ordinary, "{chosen} bits per key, ordinary {ordinary}");
    // Fewer of them, and a first stage that a rate calls for.
    let bytes = |others: &[u64]| tamis::build(&keys).exclude(others).finish().unwrap().as_bytes().len() as f64;
    let few: Vec<u64> = (0..).map(mix).filter(|key| first.contains(key) == Ok(true)).take(30_000).collect();
    let usual: Vec<u64> = (0..30_000).map(|i| mix(1 << 52 | i)).collect();
    let (chosen, ordinary) = (bytes(&few), bytes(&usual));
    assert!(chosen < 2.0 * ordinary, "{chosen} bytes, ordinary {ordinary}");
}

/// A filter of these keys, in one partition if that is wanted; and whether it matches another key.
fn excluding(
    options: &tamis::Options,
    partition: bool,
    keys: &[u64],
    others: &[u64],
) -> (usize, impl Fn(u64) -> bool + use<>) {
    let filter = match partition {
        false => options.clone().build(keys).exclude(others).finish().unwrap(),
        true => {
            let mut build = options.clone().partitioned();
            keys.iter().for_each(|key| build.push("a", key).unwrap());
            others.iter().for_each(|key| build.exclude("a", key).unwrap());
            build.finish().unwrap()
        }
    };
    let bytes = filter.as_bytes().len();
    let matches = move |key| if partition { filter.contains_in("a", key) } else { filter.contains(key) };
    (bytes, move |key| matches(key).unwrap())
}

/// Excluded keys chosen by somebody who knows members, seed and kind: all of them match a filter of these members and of as many other
/// excluded keys, so they pass its first layer.
#[test]
fn excluded_keys_chosen_against_known_members_cost_at_most_thrice_the_bytes() {
    let kinds = Kind::ALL.iter().filter(|(_, kind)| *kind == Kind::Auto || excludes(*kind));
    let kinds = kinds.map(|&(name, kind)| (name, kind, Layout::Compact, false));
    let more = [("local", Kind::Auto, Layout::Local, false), ("partition", Kind::Auto, Layout::Compact, true)];
    for (name, kind, layout, partition) in kinds.chain(more) {
        for (n, m) in [(100, 4000), (2000, 60_000), (20_000, 40_000)] {
            for (goal, options) in [("exact", tamis::stream().exact()), ("fpr 1 %", tamis::stream().fpr(0.01))] {
                let options = options.kind(kind).layout(layout).threads(1);
                let keys: Vec<u64> = (0..n).map(|i| mix(1 << 50 | i)).collect();
                let ordinary: Vec<u64> = (0..m).map(|i| mix(1 << 52 | i)).collect();
                let (usual, matches) = excluding(&options, partition, &keys, &ordinary);
                let chosen: Vec<u64> = (0..).map(mix).filter(|&key| matches(key)).take(m as usize).collect();
                for policy in [OnConflict::Error, OnConflict::Drop] {
                    let (bytes, matches) = excluding(&options.clone().on_conflict(policy), partition, &keys, &chosen);
                    assert!(keys.iter().all(|&key| matches(key)) && !chosen.iter().any(|&key| matches(key)), "{name}");
                    let times = bytes as f64 / usual as f64;
                    let what = format!("{name}, {goal}, {n} members, {m} excluded keys, {policy:?}: {times:.2} times");
                    println!("{what} {usual} bytes");
                    assert!(times <= 3.0, "{what} {usual} bytes");
                }
            }
        }
    }
}

/// However they come: in any order, repeated, before or after the keys, on disk or in memory, on any number of threads.
#[test]
fn chosen_keys_give_the_same_bytes_however_they_come() {
    let hasher = Hasher::seeded(0);
    // What is chosen: halves of digests (the lower half of an integer's is a bijection of it), top bits, bits for the first salt.
    let inverse = (0..6).fold(INTEGER, |x: u64, _| x.wrapping_mul(2u64.wrapping_sub(INTEGER.wrapping_mul(x))));
    let low = |lo: u64| lo.wrapping_mul(inverse) ^ ((hasher.integer(0).to_bits() as u64).wrapping_mul(inverse));
    assert!((1..100).all(|lo| (hasher.integer(low(lo)).to_bits() as u64) == lo));
    let top = |key: &u64| hasher.integer(*key).to_bits() >> 122 == 0;
    let row = |key: &u64| hasher.integer(*key).salted(Salt::new(0)) >> 58 == 5;
    let sets: [(&str, Vec<u64>, Vec<u64>); 4] = [
        ("small halves", (0..5000).map(mix).collect(), (1..=40_000).map(low).collect()),
        ("large halves", (0..5000).map(mix).collect(), (1..=40_000).map(|i: u64| low(i.wrapping_neg())).collect()),
        ("top bits", (0..).filter(top).take(40_000).collect(), (1 << 40..).filter(top).take(80_000).collect()),
        ("rows", (0..).filter(row).take(40_000).collect(), (1 << 40..).filter(row).take(80_000).collect()),
    ];
    for (what, keys, others) in &sets {
        for kind in [Kind::Auto, Kind::Steered, Kind::Chained(tamis::Base::Fuse)] {
            let build = || tamis::stream().exact().kind(kind).with_excluded();
            let whole = tamis::build(keys).exclude(others).kind(kind).exact().finish().unwrap();
            for (threads, memory) in [(1, 4 << 20), (2, 4 << 20), (3, 1 << 30)] {
                let limits = tamis::Limits::default().memory(memory);
                let mut parts = build().threads(threads).limits(limits).start();
                // Backwards, with repetitions, the sides in turns.
                for (i, key) in keys.iter().rev().enumerate() {
                    parts.push(key).unwrap();
                    others.iter().rev().skip(i * 3).take(5).for_each(|other| parts.exclude(other).unwrap());
                }
                let mut sealed = parts.seal().unwrap();
                others.iter().for_each(|other| sealed.exclude(other).unwrap());
                let filter = sealed.finish().unwrap();
                assert!(filter.as_bytes() == whole.as_bytes(), "{what}, {kind:?}, {threads} threads, {memory} bytes");
            }
        }
    }
}

/// Keys of one shard, enough for two: filters, maps and partitions spread them, and are as large as others.
#[test]
fn crowded_shards_are_spread() {
    if std::env::var_os("TAMIS_SLOW").is_none() {
        return;
    }
    let hasher = Hasher::seeded(0);
    let label = "a";
    let crowd: Vec<u64> =
        (0..).filter(|&key: &u64| hasher.integer(key).to_bits() >> 124 == 0).take(1_700_000).collect();
    let ordinary: Vec<u64> = (0..1_700_000).collect();
    let partitioned = |keys: &[u64]| {
        let mut build = tamis::stream().partitioned();
        keys.iter().for_each(|key| build.push(label, key).unwrap());
        build.finish().unwrap()
    };
    // A label moves all digests by the same amount.
    let there: Vec<u64> =
        (0..).filter(|&key: &u64| hasher.integer(key).to_bits() >> 124 == 3).take(1_700_000).collect();
    let sizes = |keys: &[u64], there: &[u64]| {
        let filter = tamis::build(keys).finish().unwrap();
        let limits = tamis::Limits::default().memory(8 << 20);
        let again = tamis::build(keys.iter().rev()).threads(1).limits(limits).finish().unwrap();
        assert!(filter.as_bytes() == again.as_bytes());
        let map = tamis::map(keys.iter().map(|key| (key, key % 3))).finish().unwrap();
        let parts = partitioned(there);
        assert_eq!((filter.shards(), map.shards(), parts.shards()), (2, 2, 2));
        for key in keys.iter().step_by(7) {
            assert_eq!((filter.contains(key), map.get_u64(key)), (Ok(true), Ok(Some(key % 3))));
        }
        assert!(super::ask_many(&filter, keys).iter().all(|yes| *yes));
        assert!(
            there.iter().step_by(7).all(|key| parts.contains_in(label, key) == Ok(true))
                && parts.has_partition(label) == Ok(true)
        );
        let answers = parts.contains_many_in(label, there).unwrap();
        assert!(answers.iter().all(|yes| *yes) && parts.contains_in("b", there[0]) == Ok(false));
        let unlisted = (1u64 << 50..).take(100_000).filter(|key| filter.contains(key) == Ok(true)).count() as f64;
        let expected = 1e5 * filter.fpr();
        assert!((unlisted - expected).abs() < 5.0 * expected.sqrt(), "{unlisted} of {expected}");
        [filter.as_bytes().len(), map.as_bytes().len(), parts.as_bytes().len()].map(|bytes| bytes as f64)
    };
    let (chosen, usual) = (sizes(&crowd, &there), sizes(&ordinary, &ordinary));
    for (chosen, usual) in chosen.into_iter().zip(usual) {
        assert!(chosen < 1.01 * usual, "{chosen} bytes, ordinary {usual}");
    }
}

/// A multiplier of the code's: see `hash.rs`.
const INTEGER: u64 = 0x9fb2_1c65_1e98_df25;
