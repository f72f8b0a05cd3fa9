//! the law book -> filters that repair themselves: against a set, with maps that fail, byte by byte, from several threads.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis::adaptive::{
    Adapt, AdaptError, AdaptiveBloom, AdaptiveChained, AdaptiveFilter, AdaptiveQuotient, AdaptiveStacked, Broom,
    ChangeStats, Counts, CuckooCascade, Dictionary, Guarded, LargeBroom, Memory, QuotientCascade, Remove, ReverseMap,
    Shared,
};
use tamis::internals::Shape;
use tamis::internals::adaptive::Block;
use tamis::{ChangeError, Digest, Filter, FormatError};

use super::corrupt::Random;
use super::memory::watched;
use super::mix;
use super::repair::{HASH, Parts};

/// The secret of every filter here: golden files need one.
const KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

pub(super) fn broom(capacity: u64, rate: f64) -> Broom {
    Broom::with_capacity(capacity).fpr(rate).secret(KEY).build::<u64>().unwrap()
}

pub(super) fn small(capacity: u64, rate: f64) -> Broom {
    Broom::with_capacity(capacity).fpr(rate).secret(KEY).block(Block::Small).build::<u64>().unwrap()
}

pub(super) fn large(capacity: u64, rate: f64) -> Broom {
    Broom::with_capacity(capacity).fpr(rate).secret(KEY).compact().moves_per_adapt(9).build::<u64>().unwrap()
}

pub(super) fn low(capacity: u64, rate: f64) -> LargeBroom {
    LargeBroom::with_capacity(capacity).fpr(rate).secret(KEY).build::<u64>().unwrap()
}

pub(super) fn growing(capacity: u64, rate: f64) -> Broom {
    Broom::with_capacity(capacity / 20).fpr(rate).secret(KEY).growing().build::<u64>().unwrap()
}

pub(super) fn quotients(capacity: u64, rate: f64) -> QuotientCascade {
    QuotientCascade::with_capacity(capacity).fpr(rate).secret(KEY).build::<u64>().unwrap()
}

pub(super) fn cuckoos(capacity: u64, rate: f64) -> CuckooCascade {
    CuckooCascade::with_capacity(capacity).fpr(rate).secret(KEY).moves_per_adapt(8).build::<u64>().unwrap()
}

fn bloom(capacity: u64, rate: f64) -> AdaptiveBloom {
    AdaptiveBloom::with_capacity(capacity).fpr(rate).secret(KEY).moves_per_adapt(8).build::<u64>().unwrap()
}

pub(super) fn extended(capacity: u64, rate: f64) -> AdaptiveQuotient {
    AdaptiveQuotient::with_capacity(capacity).fpr(rate).moves_per_adapt(16).secret(KEY).build::<u64>().unwrap()
}

/// Removal where a filter has it, so that one law book serves all filters.
trait Removal: Adapt {
    /// Removes a key; none: this filter removes nothing.
    fn take<M: ReverseMap>(&mut self, key: u64, map: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>>;
}

macro_rules! removal {
    ($($filter:ty),*) => { $(
        impl Removal for $filter {
            fn take<M: ReverseMap>(&mut self, key: u64, map: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>> {
                Some(self.remove(key, map))
            }
        }
    )* };
}
removal!(Broom, LargeBroom, QuotientCascade, CuckooCascade, AdaptiveQuotient);

impl Removal for AdaptiveBloom {
    fn take<M: ReverseMap>(&mut self, _: u64, _: &mut M) -> Option<Result<ChangeStats, AdaptError<M::Error>>> {
        None
    }
}

/// A map of which every so many-th call fails, in no pattern.
struct Flaky {
    inner: Memory,
    every: usize,
    random: Random,
}

impl Flaky {
    fn call<T>(&mut self, call: impl FnOnce(&mut Memory) -> T) -> Result<T, &'static str> {
        match self.random.below(self.every) {
            0 => Err("out of order"),
            _ => Ok(call(&mut self.inner)),
        }
    }
}

impl ReverseMap for Flaky {
    type Error = &'static str;
    fn file(&mut self, key: Digest, name: u64) -> Result<(), &'static str> {
        self.call(|map| map.file(key, name).unwrap())
    }
    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, &'static str> {
        self.call(|map| map.unfile(key, name).unwrap())
    }
    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, &'static str> {
        self.call(|map| map.refile(key, from, to).unwrap())
    }
    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), &'static str> {
        self.call(|map| map.filed(name, found).unwrap())
    }
    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, &'static str> {
        self.call(|map| map.next(after).unwrap())
    }
}

/// Random operations beside a set.
fn oracle<F: Removal>(mut filter: F, most: usize, operations: u64) {
    let mut random = Random(operations);
    let mut map = Memory::new();
    let (mut set, mut live, mut dead) = (HashSet::new(), vec![], vec![]);
    for operation in 0..operations {
        let fresh = mix(operation << 1);
        match random.below(12) {
            0..2 if live.len() < most => {
                let again = !dead.is_empty() && random.below(2) == 0;
                let key = if again { dead.swap_remove(random.below(dead.len())) } else { fresh };
                assert_eq!(filter.insert(key, &mut map).unwrap().changed, set.insert(key));
                live.push(key);
                assert!(!filter.insert(key, &mut map).unwrap().changed, "a key was put in twice");
            }
            2 if !live.is_empty() => {
                let at = random.below(live.len());
                let Some(done) = filter.take(live[at], &mut map) else { continue };
                assert!(done.unwrap().changed);
                let key = live.swap_remove(at);
                assert!(matches!(filter.take(key, &mut map), Some(Err(AdaptError::NotMember))));
                set.remove(&key);
                dead.push(key);
            }
            _ => {
                let key = if random.below(2) == 0 && !live.is_empty() { live[random.below(live.len())] } else { fresh };
                let yes = filter.contains(key).unwrap();
                match set.contains(&key) {
                    true => assert!(yes && matches!(filter.adapt(key, &mut map), Err(AdaptError::Member))),
                    false => assert_eq!(filter.adapt(key, &mut map).unwrap().changed, yes),
                }
            }
        }
        if operation % 500 == 0 {
            assert!(live.iter().all(|&key| filter.contains(key).unwrap()), "a key is lost by {operation}");
            assert_eq!((filter.len(), map.len()), (live.len() as u64, live.len()));
            filter = F::restore(filter.snapshot().unwrap()).unwrap();
        }
    }
}

/// Finds false positives, repairs them, and asks for them again: at once, and while every key is taken out and put in again.
fn replay<F: Removal>(mut filter: F, keys: u64, rate: f64) {
    let mut map = Memory::new();
    (0..keys).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
    let mut found = vec![];
    for stranger in 1u64 << 40.. {
        if filter.contains(stranger).unwrap() {
            filter.adapt(stranger, &mut map).unwrap();
            found.push(stranger);
        }
        if found.len() == 300 {
            break;
        }
    }
    let mut asked = 0;
    let mut again = 0;
    let mut replayed = |filter: &mut F, map: &mut Memory| {
        for &stranger in &found {
            asked += 1;
            if filter.contains(stranger).unwrap() {
                again += 1;
                filter.adapt(stranger, map).unwrap();
            }
        }
    };
    replayed(&mut filter, &mut map);
    for part in (0..keys).collect::<Vec<u64>>().chunks(20) {
        for &key in part {
            if let Some(done) = filter.take(key, &mut map) {
                assert!(done.unwrap().changed);
            }
        }
        let gone = part.len() as u64 * u64::from(filter.len() < keys);
        let back = part.iter().filter(|&&key| filter.insert(key, &mut map).unwrap().changed).count();
        assert_eq!(back as u64, gone);
        replayed(&mut filter, &mut map);
    }
    // An unlisted key and a key that met may meet again under the next hash function, as any two may.
    let most = rate * asked as f64;
    assert!(again as f64 <= most + 5.0 * most.sqrt(), "{again} of {asked} replays, {most} expected");
    assert!((0..keys).all(|key| filter.contains(key).unwrap()));
}

fn failing_map<F: Removal>(make: impl Fn() -> F, most: usize) {
    for every in [2, 3, 10] {
        let mut filter = make();
        let mut map = Flaky { inner: Memory::new(), every, random: Random(every as u64) };
        let mut live: Vec<u64> = vec![];
        let mut failed = 0;
        for operation in 0..6000u64 {
            let key = mix(operation);
            let outcome = match operation % 8 {
                0 if live.len() < most => filter.insert(key, &mut map).map(|_| live.push(key)),
                1 if live.len() > most / 2 => {
                    let at = (key % live.len() as u64) as usize;
                    let done = filter.take(live[at], &mut map).transpose();
                    done.map(|removed| removed.map(|_| live.swap_remove(at)).map_or((), drop))
                }
                _ => filter.adapt(key, &mut map).map(|_| ()),
            };
            if let Err(error) = outcome {
                // A filter whose steps fail cannot grow.
                let full = matches!(error, AdaptError::Change(ChangeError::Full { .. }));
                assert!(full || error.to_string() == "store of the keys: out of order", "{error}");
                failed += 1;
            }
            if operation % 50 == 0 {
                assert!(live.iter().all(|&key| filter.contains(key).unwrap()), "a key is lost");
                assert_eq!((filter.len(), map.inner.len()), (live.len() as u64, live.len()));
            }
        }
        assert!(failed > 30, "{failed}");
    }
}

fn full<F: Removal>(mut filter: F) {
    let mut map = Memory::new();
    let mut keys = 0u64;
    let error = loop {
        match filter.insert(keys, &mut map) {
            Ok(_) => keys += 1,
            Err(error) => break error,
        }
        assert!(keys < 100_000, "never full");
    };
    assert!(matches!(error, AdaptError::Change(ChangeError::Full { .. })), "{error}");
    assert_eq!((filter.len(), map.len() as u64), (keys, keys));
    assert!((0..keys).all(|key| filter.contains(key).unwrap()));
    if let Some(done) = filter.take(0, &mut map) {
        assert!(done.unwrap().changed && filter.insert(keys, &mut map).unwrap().changed);
    }
}

/// Readers beside a writer: a key that is in before a query begins, and stays, is found.
fn readers<F: Adapt + Send + Sync>(filter: F, keys: u64, remove: impl Fn(&Shared<F>, u64, &mut Memory)) {
    let shared = Shared::new(filter);
    let (inserted, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (shared, inserted, done) = (&shared, &inserted, &done);
            scope.spawn(move || {
                let mut random = Random(thread);
                while done.load(Ordering::Acquire) == 0 {
                    let known = inserted.load(Ordering::Acquire);
                    let key = random.below(known as usize) as u64;
                    assert!(known == 0 || shared.contains(key).unwrap(), "{key} of {known} is missed");
                }
            });
        }
        let mut map = Memory::new();
        for key in 0..keys {
            shared.insert(key, &mut map).unwrap();
            inserted.store(key + 1, Ordering::Release);
            for stranger in 0..20 {
                shared.adapt(mix(key << 8 | stranger) | 1 << 63, &mut map).unwrap();
            }
            remove(&shared, key | 1 << 40, &mut map);
        }
        done.store(1, Ordering::Release);
    });
    assert_eq!(shared.read(|filter| filter.len()), keys);
}

/// A filter with some history: two epochs of repairs, removals, snapshots in the middle.
fn aged<F: Removal>(mut filter: F, keys: u64) -> (F, Memory) {
    let mut map = Memory::new();
    (0..keys).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
    for stranger in 0..40 * keys {
        filter.adapt(stranger | 1 << 40, &mut map).unwrap();
    }
    (0..keys / 5).filter_map(|key| filter.take(key * 5, &mut map)).for_each(|done| assert!(done.is_ok()));
    (filter, map)
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden-adaptive");

/// The golden file of a filter, and what a restored filter does.
fn golden<F: Removal>(name: &str, filter: F) {
    let (filter, mut map) = aged(filter, 200);
    let bytes = filter.snapshot().unwrap();
    let path = Path::new(FOLDER).join(name).with_extension("tamis");
    if std::env::var_os("TAMIS_BLESS").is_some() {
        std::fs::create_dir_all(FOLDER).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(file == bytes, "{name}: other bytes than the golden file's");
    let mut again = F::restore(file).unwrap();
    assert_eq!(again.snapshot().unwrap(), bytes);
    assert_eq!((again.len(), again.epoch(), again.fpr()), (filter.len(), filter.epoch(), filter.fpr()));
    for key in (0..200u64).chain(1 << 41..(1 << 41) + 2000) {
        assert_eq!(again.contains(key), filter.contains(key));
        assert!(key >= 200 || key % 5 == 0 || again.contains(key).unwrap());
    }
    // It goes on with the map it had.
    let removed = again.len() < 200;
    (0..40u64).for_each(|key| assert_eq!(again.insert(key * 5, &mut map).unwrap().changed, removed));
    (0..4000u64).for_each(|stranger| assert!(again.adapt(stranger | 1 << 42, &mut map).is_ok()));
    assert!((0..200u64).all(|key| again.contains(key).unwrap()));
}

/// Cuts and changed bytes are found; with sums that hold, nothing panics or loops.
fn damaged<F: Removal>(filter: F) {
    let (filter, map) = aged(filter, 60);
    let file = filter.snapshot().unwrap();
    for len in (0..file.len()).step_by(1 + file.len() / 500) {
        assert!(F::restore(file[..len].to_vec()).is_err(), "{len} bytes");
    }
    for at in (0..file.len()).step_by(1 + file.len() / 2000) {
        let mut changed = file.clone();
        changed[at] ^= 0x41;
        assert!(F::restore(changed).is_err(), "byte {at}");
    }
    let rounds: u64 = std::env::var("TAMIS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let seed: u64 = std::env::var("TAMIS_MUTATE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut taken = 0;
    for round in 0..rounds {
        let mut random = Random((seed << 32 | round) << 16);
        let mut parts = Parts::of(&file).unwrap();
        for _ in 0..1 + random.below(3) {
            match random.below(8) {
                0 => random.edit(&mut parts.head),
                1..5 => random.edit(&mut parts.directory),
                _ => random.edit(&mut parts.payload),
            }
        }
        let Ok(mut filter) = watched("damaged", parts.file(), |file| F::restore(file)) else { continue };
        taken += 1;
        let mut map = map.clone();
        for key in 0..100u64 {
            let _ = filter.contains(key);
            let _ = filter.insert(key, &mut map);
            let _ = filter.adapt(key | 1 << 40, &mut map);
            let _ = filter.take(key / 2, &mut map);
        }
        let _ = filter.snapshot();
    }
    assert!(taken > rounds / 100, "{taken} of {rounds} were taken up");
}

/// Inserts a key and removes it, beside readers.
fn pass_through<F: Remove>(shared: &Shared<F>, key: u64, map: &mut Memory) {
    shared.insert(key, map).unwrap();
    shared.remove(key, map).unwrap();
}

/// The whole book for one filter: its name, how to make it, whether it is ever full, and what else is written beside readers.
macro_rules! book {
    ($name:ident, $make:expr, $fills:expr) => {
        book!($name, $make, $fills, pass_through);
    };
    ($name:ident, $make:expr, $fills:expr, $remove:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn it_is_right_beside_a_set() {
                for (most, rate, operations) in
                    [(600, 1.0 / 32.0, 60_000), (50, 0.3, 20_000), (2000, 1.0 / 256.0, 30_000)]
                {
                    oracle($make(most as u64, rate), most, operations);
                }
            }

            #[test]
            fn the_smallest_work() {
                (0..5).for_each(|most| oracle($make(most as u64, 0.1), most, 3000));
            }

            #[test]
            fn a_repaired_key_stays_repaired() {
                replay($make(1000, 1.0 / 64.0), 1000, 1.0 / 64.0);
            }

            #[test]
            fn a_map_that_fails_loses_nothing() {
                failing_map(|| $make(300, 0.05), 200);
                // Many keys meet here: what was half done meets what comes next.
                failing_map(|| $make(60, 0.5), 50);
            }

            #[test]
            fn full_is_an_error() {
                if $fills {
                    full($make(150, 0.02));
                }
            }

            #[test]
            fn readers_miss_nothing() {
                readers($make(1500, 0.02), 1200, $remove);
            }

            #[test]
            fn its_file_is_golden() {
                golden(stringify!($name), $make(256, 0.05));
            }

            #[test]
            fn damaged_files_are_found() {
                damaged($make(64, 0.05));
            }
        }
    };
}

book!(broom_medium, broom, true);
book!(broom_small, small, true);
book!(broom_large, large, true);
book!(broom_growing, growing, false);
book!(large_broom, low, true);
book!(quotient_cascade, quotients, true);
book!(cuckoo_cascade, cuckoos, true);
book!(adaptive_bloom, bloom, true, |_, _, _| ());
book!(adaptive_quotient, extended, true);

/// Stacks and exact bits that learn: what was written is taken up, answers as before, and goes on.
#[test]
fn files_of_filters_that_learn_are_golden() {
    let mut keys: Vec<u64> = (0..500).collect();
    let shape = Shape::zipf(1.0, 5000, 5000).unwrap();
    let stack = AdaptiveStacked::with_bits_per_key(8.0).shape(shape).lifetime(20_000).secret(KEY);
    let mut stack = stack.build(&mut keys).unwrap();
    let mut chain = AdaptiveChained::with_fpr(0.05).rebuild_every(20).secret(KEY).build(&mut keys).unwrap();
    // Some unlisted keys are asked for again and again.
    for query in 0..20_000u64 {
        let stranger = (1 << 40) + mix(query) % (1 + mix(query + 1) % 1000);
        if stack.query(stranger).unwrap() {
            stack.adapt(stranger, &mut keys).unwrap();
        }
        if chain.contains(stranger).unwrap() {
            chain.adapt(stranger, &mut keys).unwrap();
        }
    }
    let files = [("adaptive_stacked", stack.snapshot().unwrap()), ("adaptive_chained", chain.snapshot().unwrap())];
    for (name, bytes) in &files {
        let path = Path::new(FOLDER).join(name).with_extension("tamis");
        if std::env::var_os("TAMIS_BLESS").is_some() {
            std::fs::write(&path, bytes).unwrap();
        }
        let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(file == *bytes, "{name}: other bytes than the golden file's");
    }
    let mut again = AdaptiveStacked::restore(files[0].1.clone()).unwrap();
    let known = AdaptiveChained::restore(files[1].1.clone()).unwrap();
    for key in (0..500u64).chain(1 << 40..(1 << 40) + 3000) {
        assert_eq!((again.contains(key), known.contains(key)), (stack.contains(key), chain.contains(key)));
        assert!(key >= 500 || again.contains(key).unwrap() && known.contains(key).unwrap());
        if key >= 500 && again.contains(key).unwrap() {
            again.adapt(key, &mut keys).unwrap();
        }
    }
    assert!((0..500u64).all(|key| again.contains(key).unwrap()));
    assert!(stack.layers() == 3 && chain.adapted() > 20, "{} layers, {} learned", stack.layers(), chain.adapted());
}

#[test]
fn every_golden_file_has_a_filter() {
    assert_eq!(std::fs::read_dir(FOLDER).unwrap().count(), 11);
}

#[test]
fn other_files_are_rejected() {
    let filter = tamis::build(0..10u64).finish().unwrap();
    let error = Broom::restore(filter.as_bytes().to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "the file holds a filter; expected a broom filter");
    let file = broom(10, 0.1).snapshot().unwrap();
    let error = Filter::open(file.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the file holds an adaptive filter; expected a filter");
    let mut parts = Parts::of(&file).unwrap();
    parts.directory[0] = 99;
    let error = Broom::restore(parts.file()).unwrap_err();
    assert_eq!(error, FormatError::Unsupported { what: "kind of adaptive filter", number: 99 });
    parts.directory[0] = 2;
    let error = Broom::restore(parts.file()).unwrap_err().to_string();
    assert_eq!(error, "invalid file: directory: kind is 2, expected 1 (broom filter)");
    // Without a secret key: a seed of one byte instead of sixteen.
    parts.head[HASH] = 0;
    parts.head.splice(4..20, [0]);
    let error = Broom::restore(parts.file()).unwrap_err().to_string();
    assert_eq!(error, "invalid file: header: an adaptive filter without a secret key");
    assert_eq!(Broom::restore(vec![]).unwrap_err(), FormatError::Magic);
}

/// Two filters of the same keys have different secrets: what is false in one is not in the other.
#[test]
fn every_filter_has_its_own_secret() {
    let both = [(); 2].map(|()| {
        let mut filter = Broom::with_capacity(500).fpr(0.2).build::<u64>().unwrap();
        let mut map = Memory::new();
        (0..500u64).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
        (1 << 40..(1 << 40) + 2000u64).filter(|&key| filter.contains(key).unwrap()).collect::<HashSet<u64>>()
    });
    let common = both[0].intersection(&both[1]).count();
    assert!(common * 2 < both[0].len(), "{common} of {}", both[0].len());
}

/// Delete, insert and replay, after growing while keys went: what is remembered must have grown too.
#[test]
fn a_filter_that_grew_remembers_what_was_deleted() {
    let mut filter = Broom::with_capacity(16).fpr(1.0 / 64.0).secret(KEY).growing().build::<u64>().unwrap();
    let mut map = Memory::new();
    let mut live = vec![];
    for key in 0..30_000u64 {
        filter.insert(key, &mut map).unwrap();
        live.push(key);
        // Some repairs, so that there are long fingerprints to forget.
        filter.adapt(mix(key) | 1 << 63, &mut map).unwrap();
        if key % 2 == 1 {
            let at = (mix(key) % live.len() as u64) as usize;
            filter.remove(live.swap_remove(at), &mut map).unwrap();
        }
    }
    let statistics = filter.statistics();
    assert!(statistics.tombstone_room as f64 > 0.02 * filter.capacity() as f64, "{statistics:?}");
    let found: Vec<u64> = (1 << 40..).filter(|&key| filter.contains(key).unwrap()).take(200).collect();
    found.iter().for_each(|&key| assert!(filter.adapt(key, &mut map).is_ok()));
    for part in live.chunks(100) {
        part.iter().for_each(|&key| assert!(filter.remove(key, &mut map).is_ok()));
        part.iter().for_each(|&key| assert!(filter.insert(key, &mut map).unwrap().changed));
    }
    let again = found.iter().filter(|&&key| filter.contains(key).unwrap()).count();
    // A 64th of them by chance, under other hash functions.
    assert!(again <= 14, "{again} of 200 are false again");
    assert!(live.iter().all(|&key| filter.contains(key).unwrap()));
}

/// A dictionary of which some calls fail.
struct Brittle {
    inner: (HashMap<u64, u64>, Memory),
    random: Random,
}

impl Brittle {
    fn call<T>(&mut self, call: impl FnOnce(&mut (HashMap<u64, u64>, Memory)) -> T) -> Result<T, &'static str> {
        match self.random.below(6) {
            0 => Err("out of order"),
            _ => Ok(call(&mut self.inner)),
        }
    }
}

impl ReverseMap for Brittle {
    type Error = &'static str;
    fn file(&mut self, key: Digest, name: u64) -> Result<(), &'static str> {
        self.call(|store| store.file(key, name).unwrap())
    }
    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, &'static str> {
        self.call(|store| store.unfile(key, name).unwrap())
    }
    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, &'static str> {
        self.call(|store| store.refile(key, from, to).unwrap())
    }
    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), &'static str> {
        self.call(|store| store.filed(name, found).unwrap())
    }
    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, &'static str> {
        self.call(|store| store.next(after).unwrap())
    }
}

impl Dictionary<u64> for Brittle {
    type Value = u64;
    fn get(&mut self, key: &u64) -> Result<Option<u64>, &'static str> {
        self.call(|store| store.get(key).unwrap())
    }
    fn insert(&mut self, key: &u64, value: u64) -> Result<Option<u64>, &'static str> {
        self.call(|store| store.insert(key, value).unwrap())
    }
    fn remove(&mut self, key: &u64) -> Result<Option<u64>, &'static str> {
        self.call(|store| store.remove(key).unwrap())
    }
}

/// Lookups that returned a value.
fn found(counts: Counts) -> u64 {
    counts.lookups - counts.rejected - counts.false_positives
}

/// Whatever fails half-way: what a lookup answers is what the dictionary holds, and nothing is left for ever.
#[test]
fn a_dictionary_that_fails_is_still_asked_rightly() {
    let store = Brittle { inner: (HashMap::new(), Memory::new()), random: Random(5) };
    let mut guarded = Guarded::new(broom(300, 0.1), store);
    let mut expected = HashMap::new();
    let mut random = Random(9);
    for operation in 0..30_000u64 {
        let key = random.below(400) as u64;
        match random.below(5) {
            0 if expected.len() < 250 => {
                if guarded.insert(&key, operation).is_ok() {
                    expected.insert(key, operation);
                }
            }
            1 => {
                if let Ok(taken) = guarded.remove(&key) {
                    assert_eq!(taken, expected.remove(&key));
                }
            }
            _ => {
                if let Ok(value) = guarded.get(&key) {
                    assert_eq!(value, expected.get(&key).copied(), "key {key}, operation {operation}");
                }
            }
        }
    }
    // Every key is asked for until it is clear what it has: then filter and dictionary agree.
    for key in 0..400u64 {
        for _ in 0..40 {
            let _ = guarded.get(&key);
        }
    }
    let counts = guarded.counts();
    assert!(counts.failed > 0 && found(counts) > 1000, "{counts:?}");
    assert_eq!(guarded.filter().len(), expected.len() as u64);
}

#[test]
fn filter_and_dictionary_agree() {
    let filter = Broom::with_capacity(100).fpr(0.1).secret(KEY).growing().build::<str>().unwrap();
    let mut guarded = Guarded::new(filter, (HashMap::<String, u64>::new(), Memory::new()));
    let mut expected = HashMap::new();
    let mut random = Random(3);
    let (mut lookups, mut found) = (0, 0);
    for operation in 0..20_000u64 {
        let key = format!("key {}", random.below(2000));
        match random.below(6) {
            0 => assert_eq!(guarded.insert(&key[..], operation).unwrap(), expected.insert(key, operation)),
            1 => assert_eq!(guarded.remove(&key[..]).unwrap(), expected.remove(&key)),
            _ => {
                lookups += 1;
                found += u64::from(expected.contains_key(&key));
                assert_eq!(guarded.get(&key[..]).unwrap(), expected.get(&key).copied());
            }
        }
    }
    let counts = guarded.counts();
    assert_eq!((counts.lookups, self::found(counts)), (lookups, found));
    assert!(counts.rejected > 20 * counts.false_positives, "{counts:?}");
    let (filter, store) = guarded.into_parts();
    assert_eq!((filter.len(), store.0.len(), store.1.len()), (expected.len() as u64, expected.len(), expected.len()));
    assert!(filter.contains(7u64).is_err(), "an integer in a filter of text");
}
