#![allow(clippy::unwrap_used)]
use std::collections::{BTreeSet, HashSet};

use super::*;
use crate::hash::scramble;

fn level(fpr: f64, all_versions: bool) -> Level {
    let builder = LevelBuilder::new().fpr(fpr);
    if all_versions { builder.all_versions() } else { builder }.build::<u64>().unwrap()
}

/// Random numbers of a test.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 += 1;
        scramble(self.0) % most
    }

    fn keys(&mut self, count: u64, universe: u64) -> BTreeSet<u64> {
        (0..count).map(|_| self.below(universe)).collect()
    }
}

/// The runs as they are.
type Oracle = Vec<(RunId, BTreeSet<u64>)>;

/// Additional searches of keys that are in a run, and of others.
#[derive(Default, Debug)]
struct Extra {
    existing: u64,
    absent: u64,
}

/// Searches for a key by the rule, and checks both theorems.
fn check(level: &Level, oracle: &Oracle, key: u64, extra: &mut Extra) {
    let holds = |run: RunId| oracle.iter().any(|(id, keys)| *id == run && keys.contains(&key));
    let holders: Vec<RunId> = oracle.iter().map(|(id, _)| *id).filter(|id| holds(*id)).collect();
    let mut read = vec![];
    let search = level.reader().search(key, |run| {
        read.push(run);
        Ok::<_, Error>(holds(run).then_some(run))
    });
    let search = search.unwrap();
    assert_eq!((search.value, search.run), (holders.last().copied(), holders.last().copied()), "{key}");
    let matched: Vec<RunId> = level.reader().candidates(key).unwrap().collect();
    assert_eq!(level.find(key).unwrap(), matched.first().copied());
    assert_eq!(matched[..read.len()], read);
    let versions = if level.shown.all_versions { holders.len() } else { holders.len().min(1) };
    if level.shown.all_versions {
        // Theorem 2: holders first, and none of them is missing.
        assert_eq!(matched[..versions.min(matched.len())], holders);
    } else {
        // Theorem 1: the newest holder, and nothing else.
        assert!(matched.len() <= 1 && (holders.is_empty() || matched == [*holders.last().unwrap()]), "{key}");
    }
    assert_eq!(search.searches as usize, read.len());
    assert_eq!(search.extra as usize, read.len() - versions);
    assert!(search.extra <= 1 && (search.extra == 0 || level.shown.all_versions || holders.is_empty()));
    *(if holders.is_empty() { &mut extra.absent } else { &mut extra.existing }) += u64::from(search.extra);
}

/// Every number of runs from 0 to 40, keys in no, one and several runs, and filters that err often.
#[test]
fn at_most_one_extra_search_with_up_to_40_runs() {
    const UNIVERSE: u64 = 900;
    for all_versions in [false, true] {
        for seed in 0..3 {
            let (mut level, mut oracle) = (level(0.15, all_versions), Oracle::new());
            let mut random = Random(seed << 32);
            let mut repeated = 0;
            for runs in 0..=40 {
                let mut extra = Extra::default();
                (0..UNIVERSE).chain(10_000..10_200).for_each(|key| check(&level, &oracle, key, &mut extra));
                repeated += (0..UNIVERSE)
                    .filter(|key| oracle.iter().filter(|(_, keys)| keys.contains(key)).count() > 1)
                    .count();
                // The bound is reached, so the filters did err.
                assert!(runs < 10 || extra.absent > 50, "{extra:?} with {runs} runs");
                assert!(runs < 10 || (extra.existing > 20) == all_versions, "{extra:?} with {runs} runs");
                let count = random.below(80);
                let keys = random.keys(count, UNIVERSE);
                oracle.push((level.push_run(keys.iter().copied()).unwrap(), keys));
            }
            assert!(repeated > 1000, "{repeated}");
        }
    }
}

/// Pushes, merges of adjacent runs, and runs that leave, against sets.
#[test]
fn merges_and_removals_agree_with_an_oracle() {
    for all_versions in [false, true] {
        let (mut level, mut oracle) = (level(0.1, all_versions), Oracle::new());
        let (mut random, mut extra) = (Random(77), Extra::default());
        let [mut merges, mut removals] = [0; 2];
        for step in 0..250 {
            match random.below(8) {
                0 if oracle.len() > 5 => {
                    let count = random.below(4) as usize;
                    level.remove_oldest(count);
                    oracle.drain(..count);
                    removals += count;
                }
                1..3 if oracle.len() > 1 => {
                    let first = random.below(oracle.len() as u64) as usize;
                    let last = (first + random.below(4) as usize).min(oracle.len() - 1);
                    let keys: BTreeSet<u64> = oracle[first..=last].iter().flat_map(|(_, keys)| keys).copied().collect();
                    let id = level.merge(oracle[first].0, oracle[last].0, keys.iter().copied()).unwrap();
                    oracle.splice(first..=last, [(id, keys)]);
                    merges += last - first;
                }
                _ => {
                    let keys = random.keys(60, 600);
                    oracle.push((level.push_run(keys.iter().copied()).unwrap(), keys));
                }
            }
            assert!(level.reader().runs().eq(oracle.iter().map(|(id, _)| *id)));
            (0..600).chain([10_000 + step]).for_each(|key| check(&level, &oracle, key, &mut extra));
        }
        assert!(merges > 20 && removals > 20, "{merges} merges, {removals} removals");
        level.remove_oldest(usize::MAX);
        assert_eq!((level.stats().runs, level.stats().keys, level.find(7u64).unwrap()), (0, 0, None));
    }
}

/// A merge that drops a deleted key: older versions of it stay hidden, and all other keys are found.
#[test]
fn a_dropped_key_stays_deleted() {
    let mut level = level(0.01, false);
    let old = level.push_run(0..100u64).unwrap();
    let [a, b] = [level.push_run(50..60u64).unwrap(), level.push_run(70..80u64).unwrap()];
    let merged = level.merge(a, b, (51..60u64).chain(70..80)).unwrap();
    assert_ne!(level.find(50u64).unwrap(), Some(old));
    assert_eq!(level.find(51u64).unwrap(), Some(merged));
    assert!((0..50).chain(60..70).chain(80..100u64).all(|key| level.find(key).unwrap() == Some(old)));
}

/// How far a count of `n` events of these probabilities may be from what is expected: five standard deviations. The coins of unlisted keys
/// share their cells, which adds the error of `cells` coins for each run.
fn close(count: f64, n: f64, rate: f64, cells: f64) {
    let allowed = 5.0 * ((n * rate * (1.0 - rate)).sqrt() + n * rate / cells.sqrt());
    assert!((count - n * rate).abs() <= allowed, "{count} of {n}; expected {} +- {allowed}", n * rate);
}

/// Runs of distinct keys: what absent keys cost, and by the rule of the paper keys of the level.
#[test]
fn rates_are_those_of_the_formulas() {
    let (runs, each, p) = (30u64, 2000u64, 0.01);
    for hasher in [Hasher::seeded(1), Hasher::secret([1, 2])] {
        for all_versions in [false, true] {
            let builder = LevelBuilder::new().fpr(p).hasher(hasher.clone());
            let builder = if all_versions { builder.all_versions() } else { builder };
            let mut level = builder.build::<u64>().unwrap();
            (0..runs).for_each(|run| assert_eq!(level.push_run(run * each..(run + 1) * each).unwrap().number(), run));
            let search = |key: u64| {
                let holds = |run: RunId| Ok::<_, Error>((key / each == run.number()).then_some(()));
                level.reader().search(key, holds).unwrap()
            };
            let keys = runs * each;
            let found: Vec<_> = (0..keys).map(search).collect();
            assert!(found.iter().all(|search| search.value.is_some() && search.searches == 1 + search.extra));
            let extra = found.iter().map(|search| f64::from(search.extra)).sum();
            let by_rule = (0..runs).map(|j| 1.0 - (1.0 - p).powf((runs - 1 - j) as f64)).sum::<f64>() / runs as f64;
            let cells = 2.3 * keys as f64;
            close(extra, keys as f64, if all_versions { by_rule } else { 0.0 }, cells);
            let absent = (1 << 40..(1 << 40) + 200_000).map(search);
            let absent: f64 =
                absent.inspect(|search| assert_eq!(search.searches, search.extra)).map(|s| f64::from(s.extra)).sum();
            let rate = 1.0 - (1.0 - p).powf(runs as f64);
            assert!((level.reader().absent_rate() - rate).abs() < 0.02 * rate, "{}", level.reader().absent_rate());
            close(absent, 200_000.0, level.reader().absent_rate(), cells);
        }
    }
}

/// Ribbon, exact bit for members, exact bit for what passes: all later keys are queried once in each older filter.
#[test]
fn sizes_are_those_of_the_formula() {
    for (runs, p) in [(1, 0.01), (7, 0.01), (7, 0.05)] {
        let (mut level, each) = (level(p, false), 50_000u64);
        (0..runs).for_each(|run| assert!(level.push_run(run * each..(run + 1) * each).is_ok()));
        let stats = level.stats();
        assert_eq!((stats.runs, stats.keys), (runs, runs * each));
        let later = (runs - 1) as f64 / 2.0;
        let listed = 1.0 + 2.0 * p * later;
        close(stats.listed as f64 - stats.keys as f64, stats.keys as f64 * later, 2.0 * p, 1e9);
        let bits = -(2.0 * p).log2();
        let (least, most) = (bits + 2.1 * listed, 1.05 * bits + 2.55 * listed);
        assert!((least..most).contains(&stats.bits_per_key()), "{} not in {least} to {most}", stats.bits_per_key());
        let side = stats.side_bytes as f64 / stats.listed as f64;
        assert!((24.0..32.0).contains(&side), "{side} bytes");
    }
}

#[test]
fn odd_runs_are_runs() {
    let mut level = level(0.01, false);
    assert_eq!(
        (level.find(1u64).unwrap(), level.stats().bits_per_key(), level.reader().absent_rate()),
        (None, 0.0, 0.0)
    );
    level.remove_oldest(3);
    let empty = level.push_run(Vec::<u64>::new()).unwrap();
    assert_eq!(level.find(1u64).unwrap(), None);
    // Duplicates count once.
    let double = level.push_run([5u64, 5, 6, 5]).unwrap();
    assert_eq!((level.stats().keys, level.find(5u64).unwrap()), (2, Some(double)));
    let one = level.push_run([5u64]).unwrap();
    assert_eq!((level.find(5u64).unwrap(), level.find(6u64).unwrap()), (Some(one), Some(double)));
    // The same run again supersedes all of it.
    let keys = 1000..101_000u64;
    let [_, again] = [(), ()].map(|()| level.push_run(keys.clone()).unwrap());
    assert!(keys.clone().all(|key| level.find(key).unwrap() == Some(again)));
    assert_eq!(level.reader().runs().len(), 5);
    let merged = level.merge(empty, again, keys.clone().chain([5, 6])).unwrap();
    assert!(keys.chain([5, 6]).all(|key| level.find(key).unwrap() == Some(merged)));
    assert_eq!(level.stats().keys, 100_002);
}

#[test]
fn wrong_keys_and_options_are_errors() {
    let mut level = level(0.01, false);
    let run = level.push_run(0..10u64).unwrap();
    assert!(level.find("text").is_err() && level.reader().candidates("text").is_err());
    assert_eq!(level.push_run(["text"]).unwrap_err().to_string(), "wrong key type bytes; expected integer");
    assert!(level.reader().search("text", |_| Ok::<Option<()>, Error>(None)).is_err());
    let newer = level.push_run([7u64]).unwrap();
    for (first, last) in [(newer, run), (RunId(9), newer), (run, RunId(9))] {
        let error = level.merge(first, last, [1u64]).unwrap_err().to_string();
        assert!(error.contains("expected the first and the last of adjacent runs"), "{error}");
    }
    assert!((0..10u64).all(|key| level.find(key).unwrap() == Some(if key == 7 { newer } else { run })));
    for fpr in [0.0, 0.5, 1.0, -1.0, f64::NAN] {
        let error = LevelBuilder::new().fpr(fpr).build::<u64>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("fpr {fpr}: out of range; expected 0 to 0.5")), "{error}");
    }
    let error = LevelBuilder::new().threads(0).build::<u64>().unwrap_err().to_string();
    assert_eq!(error, "threads 0: out of range; expected 1 to 1024");
    let foreign = LevelBuilder::new().hasher(Hasher::foreign(3));
    assert!(foreign.clone().build::<str>().is_err());
    let mut level = foreign.build::<Digest>().unwrap();
    let run = level.push_run([Digest::from_hash(7)]).unwrap();
    assert_eq!(level.find(Digest::from_hash(7)).unwrap(), Some(run));
    // An error of a read is that of the search.
    let error = level.reader().search(Digest::from_hash(7), |_| Err::<Option<()>, _>(Error::from(ChangeError::Absent)));
    assert!(matches!(error, Err(Error::Change(ChangeError::Absent))));
}

/// What a reader keeps does not change with the level, and shares what did not change.
#[test]
fn a_reader_stays_as_it_was() {
    let mut level = level(0.01, false);
    let old = level.push_run(0..5000u64).unwrap();
    let reader = level.reader().clone();
    let new = level.push_run(2500..7500u64).unwrap();
    assert!((0..5000u64).all(|key| reader.find(key).unwrap() == Some(old)));
    assert!((0..7500u64).all(|key| level.find(key).unwrap() == Some(if key < 2500 { old } else { new })));
    assert!(Arc::ptr_eq(&reader.runs[0].first, &level.shown.runs[0].first));
    let other = std::thread::spawn(move || reader.find(3000u64).unwrap());
    assert_eq!(other.join().unwrap(), Some(old));
}

/// No answer and no text shows a digest or a secret.
#[test]
fn debug_is_brief() {
    let mut level = LevelBuilder::new().hasher(Hasher::secret([0xdead_beef, 2])).build::<u64>().unwrap();
    level.push_run(0..100u64).unwrap();
    let texts = [
        format!("{level:?}"),
        format!("{:?}", level.reader()),
        format!("{:?}", level.reader().candidates(7u64).unwrap()),
    ];
    let words: HashSet<&str> = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric())).collect();
    assert!(texts.iter().all(|text| text.len() < 250) && !words.contains("3735928559"), "{texts:?}");
}
