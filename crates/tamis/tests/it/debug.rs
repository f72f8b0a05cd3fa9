//! `{:?}` of everything that has a secret -> short, and nothing of the secret.

use std::collections::HashMap;
use std::fmt::Debug;

use tamis::adaptive::{
    Adapt, AdaptiveBloom, AdaptiveChained, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade, Guarded,
    LargeBroom, Memory, QuotientCascade, Remove, Shared,
};
use tamis::internals::adaptive::Task;
use tamis::internals::{Counter, ONE, Shape, Workspace};
use tamis::sets::Editor;
use tamis::{Bloom, Cuckoo, Digest, Hasher, Key, KeyType, Kind, Quotient, Stacked};

/// Letters, so that the secret shows as text too.
const SECRET: [u64; 2] = [0x4142_4344_4546_4748, 0x5152_5354_5556_5758];
const KEYS: u64 = 3000;

/// Short, without the secret in any form, and without any number of 64 bits: salts, digests and words of tables are such numbers.
fn check(name: &str, value: &impl Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(text.len() < 400, "{name}: {} characters: {:.500}", text.len(), text);
        let bytes: Vec<u8> = SECRET.iter().flat_map(|word| word.to_le_bytes()).collect();
        for eight in bytes.chunks(8) {
            let letters: String = eight.iter().map(|&byte| byte as char).collect();
            let list = |each: fn(&u8) -> String| eight.iter().map(each).collect::<Vec<_>>().join(", ");
            for form in [letters, list(|byte| byte.to_string()), list(|byte| format!("{byte:#x}"))] {
                assert!(!text.contains(&form), "{name}: {text}");
            }
        }
        // Limits of u64::MAX are none.
        let text = text.replace(&u64::MAX.to_string(), "");
        let longest = text.split(|c: char| !c.is_ascii_hexdigit() && c != '_').map(str::len).max();
        assert!(longest < Some(13), "{name}: a long number in {text}");
    }
}

fn adaptive<F: Adapt + Debug>(name: &str, mut filter: F) -> (F, Memory) {
    let mut map = Memory::new();
    (0..KEYS).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
    (KEYS..20 * KEYS).for_each(|key| assert!(filter.adapt(key, &mut map).is_ok()));
    check(name, &filter);
    check("Memory", &map);
    (filter, map)
}

/// As above, and a change that is planned and not made.
fn removing<F: Remove + Debug>(name: &str, filter: F)
where
    F::Change: Debug,
{
    let (filter, mut map) = adaptive(name, filter);
    let key = filter.digest(KEYS + 7).unwrap();
    check(name, &filter.plan(Task::Insert(key), &mut map.clone()));
    check(name, &filter.plan_remove(filter.digest(7u64).unwrap(), &mut map).map_err(|_| ()));
    check(name, &Shared::new(filter));
}

#[test]
fn adaptive_filters_and_their_options_are_brief() {
    let cascade = QuotientCascade::with_capacity(2 * KEYS).secret(SECRET);
    let broom = Broom::with_capacity(2 * KEYS).secret(SECRET);
    let chain = AdaptiveChained::with_fpr(0.01).rebuild_every(50).secret(SECRET);
    let shape = Shape::zipf(1.0, 5000, 5000).unwrap();
    let stack = AdaptiveStacked::with_bits_per_key(8.0).shape(shape).secret(SECRET);
    check("AdaptiveBuilder<Cascade>", &cascade);
    check("AdaptiveBuilder<Broom>", &broom);
    check("AdaptiveBuilder<AdaptiveChained>", &chain);
    check("AdaptiveBuilder<AdaptiveStacked>", &stack);
    removing("QuotientCascade", cascade.build::<u64>().unwrap());
    removing("CuckooCascade", CuckooCascade::with_capacity(2 * KEYS).secret(SECRET).build::<u64>().unwrap());
    adaptive("AdaptiveBloom", AdaptiveBloom::with_capacity(2 * KEYS).secret(SECRET).build::<u64>().unwrap());
    removing("Broom", broom.clone().build::<u64>().unwrap());
    removing("LargeBroom", LargeBroom::with_capacity(2 * KEYS).fpr(0.001).secret(SECRET).build::<u64>().unwrap());
    removing("AdaptiveQuotient", AdaptiveQuotient::with_capacity(2 * KEYS).secret(SECRET).build::<u64>().unwrap());
    let mut keys: Vec<u64> = (0..KEYS).collect();
    let mut chained = chain.build(&mut keys).unwrap();
    let mut stacked = stack.build(&mut keys).unwrap();
    for key in KEYS..20 * KEYS {
        chained.adapt(key, &mut keys).unwrap();
        if stacked.query(key).unwrap() {
            stacked.adapt(key, &mut keys).unwrap();
        }
    }
    check("AdaptiveChained", &chained);
    check("AdaptiveStacked", &stacked);
    let mut guarded = Guarded::new(broom.build::<u64>().unwrap(), (HashMap::<u64, u64>::new(), Memory::new()));
    (0..KEYS).for_each(|key| assert!(guarded.insert(&key, key).is_ok()));
    check("Guarded", &guarded);
}

#[test]
fn filters_maps_and_indexes_are_brief() {
    let hasher = Hasher::secret(SECRET);
    let digests: Vec<Digest> = (0..KEYS).map(|key| key.digest(&hasher)).collect();
    check("Hasher", &hasher);
    check("FilterBuilder<Digests>", &tamis::build_digests(digests.clone(), hasher.clone(), KeyType::Integer));
    for &(name, kind) in Kind::ALL {
        let build = tamis::build(0..KEYS).secret(SECRET).kind(kind);
        check("FilterBuilder", &build);
        // Kinds that need negatives, and those that need queries.
        let plain = build.finish().map_err(|_| ());
        let filter = match plain {
            Ok(filter) => filter,
            Err(()) => match tamis::build(0..KEYS).secret(SECRET).kind(kind).exclude(KEYS..2 * KEYS).finish() {
                Ok(filter) => filter,
                Err(_) => continue,
            },
        };
        check(name, &filter);
    }
    let spare = tamis::build(0..KEYS).secret(SECRET).kind(Kind::Cuckoo).extra_capacity(0.5).finish().unwrap();
    check("Stacked", &Stacked::restore(spare.as_bytes().to_vec()).unwrap());
    let mut quotient = Quotient::with_capacity(KEYS).hasher(hasher.clone()).build::<u64>().unwrap();
    let mut cuckoo = Cuckoo::with_capacity(KEYS).hasher(hasher.clone()).build::<u64>().unwrap();
    let bloom = Bloom::with_capacity(KEYS).hasher(hasher).classic();
    check("DynamicBuilder", &bloom);
    let mut bloom = bloom.build::<u64>().unwrap();
    for key in 0..KEYS {
        quotient.insert(key).unwrap();
        cuckoo.insert(key).unwrap();
        bloom.insert(key).unwrap();
    }
    check("Quotient", &quotient);
    check("Cuckoo", &cuckoo);
    check("Bloom", &bloom);
    let pairs = || (0..KEYS).map(|key| (key, key % 7));
    check("maps::MapBuilder", &tamis::map(pairs()).options(tamis::Options::default().secret(SECRET)));
    check("Map", &tamis::map(pairs()).options(tamis::Options::default().secret(SECRET)).finish().unwrap());
    check("SequenceBuilder", &tamis::sequence((0..KEYS).map(|i| i % 7)));
    check("Sequence", &tamis::sequence((0..KEYS).map(|i| i % 7)).finish().unwrap());
    let members = || (0..KEYS).map(|key| (key, format!("s{}", key % 7)));
    check("sets::SetsBuilder", &tamis::sets(members()).options(tamis::Options::default().secret(SECRET)));
    let sets = tamis::sets(members()).options(tamis::Options::default().secret(SECRET)).finish().unwrap();
    check("Sets", &sets);
    check("Editor", &Editor::new(&sets).unwrap());
    let mut counter = Counter::new(&Workspace::new(&tamis::Limits::default(), 1), 1 << 20);
    digests.iter().for_each(|&digest| counter.push(digest, ONE, &|| false).unwrap());
    check("Counter", &counter);
    check("Counts", &counter.finish(&|| false).unwrap());
}

/// Builders that take keys one by one.
#[test]
fn collectors_are_brief() {
    let mut keys = tamis::stream().secret(SECRET).start();
    (0..KEYS).for_each(|key| keys.push(key).unwrap());
    check("Collector", &keys);
    check("Sealed", &keys.seal().unwrap());
    let mut labels = tamis::stream().secret(SECRET).partitioned();
    (0..KEYS).for_each(|key| labels.push("label", key).unwrap());
    check("Partitioned", &labels);
    let mut pairs = tamis::maps::stream().options(tamis::Options::default().secret(SECRET)).start();
    (0..KEYS).for_each(|key| pairs.push(key, key % 7).unwrap());
    check("maps::Collector", &pairs);
    let mut members = tamis::sets::stream().options(tamis::Options::default().secret(SECRET)).start();
    let set = members.set("red").unwrap();
    (0..KEYS).for_each(|key| members.push(key, set).unwrap());
    check("sets::Collector", &members);
}
