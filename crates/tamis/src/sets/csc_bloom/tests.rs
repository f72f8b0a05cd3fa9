//! Every pair is found, false sets are as many as the formulas say, and counts go up and down.
#![allow(clippy::unwrap_used)]
use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::arch::Level;
use crate::hash::scramble;
use crate::sets::coalesce::{Scratch, SketchQuery};
use crate::sets::groups::MAX_PARTITIONS;
use proptest::prelude::*;

fn key(i: u64) -> Digest {
    Digest { hi: scramble(i), lo: scramble(!i) & !0xffff_ffff }
}

/// Key `i` and its sets: `v` numbers below `n`, some perhaps twice.
fn list(i: u64, v: u64, n: u32) -> Vec<u32> {
    let chosen: BTreeSet<u32> = (0..v).map(|j| (scramble(i << 8 | j | 1 << 60) % u64::from(n)) as u32).collect();
    chosen.into_iter().collect()
}

struct Index {
    shape: CscBloom,
    groups: Groups,
    payload: Vec<u8>,
}

impl Index {
    fn new(shape: CscBloom, sets: u32) -> Index {
        let groups = shape.repeats.groups(sets, u64::MAX);
        Index { shape, groups, payload: vec![0; shape.payload_len() as usize] }
    }

    fn insert(&mut self, key: Digest, sets: &[u32]) {
        self.shape.prefetch_list(&self.payload, &self.groups, key, sets);
        self.shape.insert_list(&mut self.payload, &self.groups, key, sets);
    }

    /// The same at every level, with and without a prefetch.
    fn find(&self, key: Digest) -> Vec<u32> {
        let mut answers = vec![];
        self.shape.prefetch(&self.payload, key, self.groups.sets);
        for level in Level::available() {
            let mut out = vec![7];
            let scratch = &mut Scratch { level, rows: vec![] };
            self.shape.find(SketchQuery { payload: &self.payload, groups: &self.groups, key, scratch, out: &mut out });
            assert_eq!(out.remove(0), 7, "appended");
            answers.push(out);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        answers.remove(0)
    }

    /// The slow way.
    fn plain(&self, key: Digest) -> Vec<u32> {
        let frequency = |&id: &u32| self.shape.frequency(&self.payload, &self.groups, key, id) > 0;
        (0..self.groups.sets).filter(frequency).collect()
    }
}

fn shape(words: u64, hashes: u32, repetitions: u32, partitions: u32, counting: bool) -> CscBloom {
    CscBloom::new(words, hashes, repetitions, partitions, counting).unwrap()
}

#[test]
fn no_pair_is_ever_lost() {
    for &words in &[1, 2, 7, 8, 9, 30, 63, 64, 500] {
        for &(repetitions, partitions) in &[(1, 0), (2, 1), (2, 64), (3, 65), (4, 700)] {
            for &sets in &[1, 2, 63, 64, 65, 511, 512, 513, 1500, 5000] {
                for counting in [false, true] {
                    let hashes = 1 + (words as u32 + sets) % 5;
                    let mut index = Index::new(shape(words, hashes, repetitions, partitions, counting), sets);
                    for i in 0..8 {
                        index.insert(key(i), &list(i, i, sets));
                    }
                    for i in 0..12 {
                        let found = index.find(key(i));
                        assert_eq!(found, index.plain(key(i)), "{:?} {sets} sets, key {i}", index.shape);
                        let all = i >= 8 || list(i, i, sets).iter().all(|id| found.binary_search(id).is_ok());
                        assert!(all, "{:?} {sets} sets, key {i}", index.shape);
                    }
                }
            }
        }
    }
}

/// With room the answers are exact, also for sets that came later.
#[test]
fn emerging_sets() {
    for (repetitions, partitions) in [(1, 0), (3, 40)] {
        let mut index = Index::new(shape(50_000, 4, repetitions, partitions, false), 0);
        let mut expected = HashMap::<u64, Vec<u32>>::new();
        for sets in 1..300 {
            index.groups.grow(sets);
            let i = scramble(sets.into()) % 40;
            index.insert(key(i), &[sets - 1]);
            expected.entry(i).or_default().push(sets - 1);
        }
        let mut wrong = 0;
        for i in 0..60 {
            let (found, right) = (index.find(key(i)), expected.remove(&i).unwrap_or_default());
            assert!(right.iter().all(|id| found.contains(id)));
            wrong += found.len() - right.len();
        }
        assert!(wrong <= if repetitions == 1 { 0 } else { 400 }, "{wrong}");
    }
}

/// Averages of `keys` answers against an expectation per answer, five standard deviations on either side. Cells of one word are filled
/// together, so false sets come in small groups: `clump` is how many.
fn close(what: &str, total: usize, keys: u64, expected: f64, clump: f64) {
    let mean = expected * keys as f64;
    let sigma = (mean * clump).sqrt() + 0.01 * mean;
    assert!((total as f64 - mean).abs() < 5.0 * sigma, "{what}: {total}, expected {mean} +- {sigma}");
}

/// Theorem 1 and 2 of [CSC], for keys that are absent (v = 0) and present.
#[test]
fn false_sets_are_as_many_as_the_formula_says() {
    // words, hashes, repetitions, partitions, sets, pairs per key
    for (words, hashes, repetitions, partitions, sets, v) in [
        (4000, 3, 1, 0, 2456, 4),
        (6000, 10, 1, 0, 2456, 4),
        (6000, 10, 1, 0, 256, 4),
        (9000, 32, 1, 0, 1000, 2),
        (2000, 1, 1, 0, 300, 3),
        (3000, 3, 3, 245, 2456, 4),
        (3000, 2, 2, 100, 1000, 3),
        (2500, 2, 4, 245, 2456, 1),
    ] {
        let mut index = Index::new(shape(words, hashes, repetitions, partitions, false), sets);
        let keys = 8000;
        let lists: Vec<_> = (0..keys).map(|i| list(i, v, sets)).collect();
        let mut pairs = 0;
        for (i, list) in (0..).zip(&lists) {
            index.insert(key(i), list);
            pairs += list.len();
        }
        let what = format!("{:?} {sets} sets of {pairs} pairs", index.shape);
        let (n, k) = (f64::from(sets), f64::from(hashes));
        let rho = 1.0 - (-k * pairs as f64 / (64 * words) as f64).exp();
        assert!((index.shape.fill(&index.payload) - rho).abs() < 0.02, "{what}");
        let r = repetitions as i32;
        // Two keys of one partition are one pair, so Theorem 2 is a little more than the truth.
        let strangers = (0..3000).map(|i| index.find(key(1 << 40 | i)).len()).sum();
        let clump = if repetitions == 1 { 1.0 } else { n / f64::from(partitions) };
        close(&format!("absent, {what}"), strangers, 3000, n * rho.powf(k).powi(r), clump);
        let mut wrong = 0;
        let mut expected = 0.0;
        for i in 0..3000 {
            let list = &lists[i as usize];
            let found = index.find(key(i));
            assert!(list.iter().all(|id| found.binary_search(id).is_ok()));
            wrong += found.len() - list.len();
            let v = list.len() as f64;
            let apart = if repetitions == 1 { 1.0 } else { (1.0 - 1.0 / f64::from(partitions)).powf(v) };
            expected += (n - v) * (1.0 - (1.0 - rho.powf(k)) * apart).powi(r);
        }
        close(&format!("present, {what}"), wrong, 3000, expected / 3000.0, clump);
    }
}

/// One set with nearly everything: the others have no more false keys than without it, and neither has it.
#[test]
fn unequal_sets_do_not_matter() {
    let (sets, words, hashes) = (512u32, 5000, 5);
    let mut index = Index::new(shape(words, hashes, 1, 0, false), sets);
    let keys = 40_000;
    for i in 0..keys {
        let set = if i % 10 == 0 { 1 + (scramble(i) % 511) as u32 } else { 0 };
        index.insert(key(i), &[set]);
    }
    let rho = 1.0 - (-f64::from(hashes) * keys as f64 / (64 * words) as f64).exp();
    let found: Vec<u32> = (0..20_000).flat_map(|i| index.find(key(1 << 40 | i))).collect();
    let rate = rho.powi(hashes as i32);
    close("all", found.len(), 20_000, f64::from(sets) * rate, 1.0);
    close("the large one", found.iter().filter(|&&id| id == 0).count(), 20_000, rate, 1.0);
    close("a small one", found.iter().filter(|&&id| id == 300).count(), 20_000, rate, 1.0);
}

#[test]
fn counts_go_up_and_down() {
    for (words, repetitions, partitions) in [(2000, 1, 0), (2000, 3, 100), (1, 1, 0), (3, 2, 5)] {
        let mut index = Index::new(shape(words, 4, repetitions, partitions, true), 200);
        let add = |index: &mut Index, i, set, times| {
            index.shape.add(&mut index.payload, &index.groups, key(i), set, times);
        };
        let mut counts = HashMap::<(u64, u32), u32>::new();
        for j in 0..60 {
            let (i, set, times) = (j % 20, (scramble(j) % 4 * 50) as u32, (j % 3) as u8);
            add(&mut index, i, set, times);
            *counts.entry((i, set)).or_default() += u32::from(times);
        }
        let mut wrong = 0;
        for (&(i, set), &count) in &counts {
            let found = index.shape.frequency(&index.payload, &index.groups, key(i), set);
            assert!(u32::from(found) >= count.min(255));
            wrong += u32::from(u32::from(found) != count);
        }
        assert!(words < 2000 || wrong <= if repetitions == 1 { 0 } else { 3 }, "{wrong}");
        if words == 2000 {
            let before = index.payload.clone();
            let absent = (100..130).any(|i| index.shape.remove(&mut index.payload, &index.groups, key(i), 9));
            assert!(!absent && before == index.payload, "a stranger changes nothing");
        }
        if words > 1 {
            for (&(i, set), &count) in &counts {
                for _ in 0..count {
                    assert!(index.shape.remove(&mut index.payload, &index.groups, key(i), set));
                }
            }
            assert!(index.payload.iter().all(|&byte| byte == 0));
        }
        assert!(words == 1 || !index.shape.remove(&mut index.payload, &index.groups, key(0), 0));
    }
}

#[test]
fn a_saturated_count_stays() {
    let mut index = Index::new(shape(100, 3, 1, 0, true), 10);
    let Index { shape, groups, payload } = &mut index;
    shape.add(payload, groups, key(1), 3, 200);
    shape.add(payload, groups, key(1), 3, 54);
    assert_eq!(shape.frequency(payload, groups, key(1), 3), 254);
    assert!(shape.remove(payload, groups, key(1), 3));
    assert_eq!(shape.frequency(payload, groups, key(1), 3), 253);
    shape.add(payload, groups, key(1), 3, 2);
    assert!((0..1000).all(|_| shape.remove(payload, groups, key(1), 3)));
    assert_eq!(shape.frequency(payload, groups, key(1), 3), 255);
}

/// Two rows that share a cell: what was lowered before a zero was met is raised again.
#[test]
fn a_failed_removal_changes_nothing() {
    for i in 0..300 {
        let mut index = Index::new(shape(1, 5, 1 + i as u32 % 3, if i % 3 == 0 { 0 } else { 60 }, true), 64);
        let Index { shape, groups, payload } = &mut index;
        for (j, count) in (0..).zip(payload.iter_mut()) {
            *count = [0, 1, 2, 254, 255, 255, 9, 9][(scramble(i << 20 | j) % 8) as usize];
        }
        let before = payload.clone();
        let removed = shape.remove(payload, groups, key(i), 11);
        assert_eq!(removed, *payload != before || removed);
        if removed {
            // Adding it again gives the same, but for cells that were nearly saturated.
            shape.add(payload, groups, key(i), 11, 1);
        }
        assert_eq!(before, *payload, "{i}");
    }
    let mut index = Index::new(shape(4, 2, 1, 0, false), 64);
    index.insert(key(1), &[5]);
    let before = index.payload.clone();
    assert!(!index.shape.remove(&mut index.payload, &index.groups, key(1), 5), "bits are not counted");
    assert_eq!(before, index.payload);
}

fn decode(values: &[u64]) -> Result<CscBloom, FormatError> {
    let mut bytes = vec![];
    values.iter().for_each(|&value| put_varint(&mut bytes, value));
    CscBloom::decode(&mut Reader::new(&bytes, "test"))
}

/// The file promises the same bytes for ever.
#[test]
fn bytes_are_fixed_for_ever() {
    let mut sums = vec![];
    for (repetitions, partitions, counting) in [(1, 0, false), (3, 70, false), (2, 70, true)] {
        let mut index = Index::new(shape(5, 3, repetitions, partitions, counting), 200);
        for i in 0..3 {
            index.insert(key(i), &list(i, 3, 200));
        }
        sums.push(xxhash_rust::xxh3::xxh3_64(&index.payload));
    }
    assert_eq!(sums, [4782455215670276019, 4475733353260499621, 12110894232853764678]);
}

#[test]
fn numbers_are_checked() {
    for shape in [shape(1, 1, 1, 0, false), shape(MAX_WORDS, 32, 8, MAX_PARTITIONS, true)] {
        let mut bytes = vec![];
        shape.encode(&mut bytes);
        let mut from = Reader::new(&bytes, "test");
        assert_eq!(CscBloom::decode(&mut from).unwrap(), shape);
        from.end().unwrap();
        assert!(CscBloom::decode(&mut Reader::new(&bytes[..bytes.len() - 1], "test")).is_err());
    }
    assert_eq!(shape(MAX_WORDS, 32, 8, 9, true).payload_len(), 1 << 49);
    for (expected, values) in [
        ("words of a table is 0", [0, 3, 1, 0, 0]),
        ("words of a table is 1099511627777", [MAX_WORDS + 1, 3, 1, 0, 0]),
        ("number of hash functions is 0", [9, 0, 1, 0, 0]),
        ("number of hash functions is 33", [9, 33, 1, 0, 0]),
        ("repetitions is 0", [9, 3, 0, 0, 0]),
        ("repetitions is 9", [9, 3, 9, 5, 0]),
        ("partitions is 5, expected 0 to 0", [9, 3, 1, 5, 0]),
        ("partitions is 0, expected 1 to 1048576", [9, 3, 2, 0, 0]),
        ("partitions is 1048577", [9, 3, 2, 1048577, 0]),
        ("counting is 2", [9, 3, 2, 5, 2]),
    ] {
        let error = decode(&values).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let [words, hashes, repetitions, partitions, counting] = values;
        let new = CscBloom::new(words, hashes as u32, repetitions as u32, partitions as u32, counting == 1);
        assert!(new.is_err() || counting == 2);
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: if std::env::var_os("TAMIS_SLOW").is_some() { 5000 } else { 300 }, ..Default::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// Any shape, any payload, also one that is too short: an answer, the same at every level.
    #[test]
    fn random_tables_never_panic(
        words in prop_oneof![1..40u64, Just(MAX_WORDS), 1..=MAX_WORDS],
        hashes in 1..=32u32,
        repetitions in 1..=8u32,
        partitions in prop_oneof![1..300u32, Just(20_000)],
        counting in any::<bool>(),
        sets in 0..2000u32,
        mut payload in prop::collection::vec(any::<u8>(), 0..4000),
        i in any::<u64>(),
    ) {
        let partitions = if repetitions == 1 { 0 } else { partitions };
        let mut index = Index::new(shape(1, hashes, repetitions, partitions, counting), sets);
        index.shape.words = words;
        index.payload = payload.clone();
        let found = index.find(key(i));
        prop_assert!(found.is_sorted() && found.iter().all(|&id| id < sets));
        prop_assert_eq!(found, index.plain(key(i)));
        prop_assert!((0.0..=1.0).contains(&index.shape.fill(&payload)));
        let Index { shape, groups, .. } = &index;
        shape.add(&mut payload, groups, key(i), sets / 2, 3);
        shape.remove(&mut payload, groups, key(i), sets / 2);
        shape.insert_list(&mut payload, groups, key(i), &[0, sets, u32::MAX]);
    }
}
