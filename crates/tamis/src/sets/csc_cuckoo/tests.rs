//! Every pair is found and can be taken out, false sets are as many as the formulas say, and a full table stays as it was.
#![allow(clippy::unwrap_used)]
use std::collections::{BTreeSet, HashMap};

use super::change::Full;
use super::*;
use crate::arch::Level;
use crate::sets::coalesce::{Scratch, SketchQuery};
use crate::sets::groups::MAX_PARTITIONS;
use proptest::prelude::*;

fn key(i: u64) -> Digest {
    Digest { hi: scramble(i), lo: scramble(!i) & !0xffff_ffff }
}

/// The sets of key `i`: at most `v` numbers below `n`.
fn list(i: u64, v: u64, n: u32) -> Vec<u32> {
    let chosen: BTreeSet<u32> = (0..v).map(|j| (scramble(i << 8 | j | 1 << 60) % u64::from(n)) as u32).collect();
    chosen.into_iter().collect()
}

struct Index {
    shape: CscCuckoo,
    groups: Groups,
    payload: Vec<u8>,
}

impl Index {
    fn new(shape: CscCuckoo, sets: u32) -> Index {
        let groups = shape.repeats.groups(sets, u64::MAX);
        Index { shape, groups, payload: vec![0; shape.payload_len() as usize] }
    }

    fn add(&mut self, key: Digest, set: u32, times: u8) -> Result<(), Full> {
        let before = self.payload.clone();
        let added = self.shape.add(&mut self.payload, &self.groups, key, set, times);
        assert!(added.is_ok() || before == self.payload, "nothing is changed");
        added
    }

    fn insert(&mut self, key: Digest, sets: &[u32]) -> Result<(), Full> {
        self.shape.prefetch_list(&self.payload, &self.groups, key, sets);
        self.shape.insert_list(&mut self.payload, &self.groups, key, sets)
    }

    fn remove(&mut self, key: Digest, set: u32) -> bool {
        self.shape.remove(&mut self.payload, &self.groups, key, set)
    }

    fn frequency(&self, key: Digest, set: u32) -> u8 {
        self.shape.frequency(&self.payload, &self.groups, key, set)
    }

    /// The same at every level.
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
        (0..self.groups.sets).filter(|&id| self.frequency(key, id) > 0).collect()
    }

    fn is_empty(&self) -> bool {
        self.payload.iter().all(|&byte| byte == 0)
    }
}

fn shape(buckets: u64, bits: u32, repetitions: u32, partitions: u32, counting: bool) -> CscCuckoo {
    CscCuckoo::new(buckets, bits, repetitions, partitions, counting).unwrap()
}

/// Any geometry: filled until it is full, every pair found, everything taken out again.
#[test]
fn no_pair_is_ever_lost() {
    for &buckets in &[1, 2, 3, 7, 20, 63, 64, 65, 130, 700] {
        for &(repetitions, partitions) in &[(1, 0), (2, 1), (2, 64), (3, 65), (4, 700)] {
            for &sets in &[1, 2, 64, 65, 513, 5000] {
                let bits = 4 + (buckets as u32 + sets + partitions) % 29;
                let counting = (buckets + u64::from(sets)) % 3 == 0;
                let mut index = Index::new(shape(buckets, bits, repetitions, partitions, counting), sets);
                let what = format!("{:?} {sets} sets", index.shape);
                let mut held = vec![];
                let mut full = 0;
                for i in 0..40 {
                    for set in list(i, 1 + i % 7, sets) {
                        match index.add(key(i), set, 1) {
                            Ok(()) => held.push((i, set)),
                            Err(Full) => full += 1,
                        }
                    }
                }
                assert!(held.len() as u64 <= index.shape.slots() || counting, "{what}");
                assert!(full > 0 || buckets > 20 || counting || sets < 65, "{what}: {full}");
                for i in 0..44 {
                    let found = index.find(key(i));
                    assert_eq!(found, index.plain(key(i)), "{what}, key {i}");
                    let mut mine = held.iter().filter(|pair| pair.0 == i);
                    assert!(mine.all(|pair| found.binary_search(&pair.1).is_ok()), "{what}, key {i}");
                }
                for (at, &(i, set)) in held.iter().enumerate() {
                    assert!(index.remove(key(i), set), "{what}");
                    let next = held.get(at + 1);
                    assert!(next.is_none_or(|&(i, set)| index.frequency(key(i), set) > 0), "{what}");
                }
                assert!(index.is_empty(), "{what}");
                assert!(!index.remove(key(0), 0));
            }
        }
    }
}

/// Every width, nearly full, and with room for the few tables that are not.
#[test]
fn tables_fill_up() {
    for bits in BITS {
        for (repetitions, partitions, sets) in [(1, 0, 100), (2, 50, 300)] {
            let mut index = Index::new(shape(1001, bits, repetitions, partitions, bits % 2 == 0), sets);
            let mut held = vec![];
            for i in 0.. {
                let list = list(i, 3, sets);
                if index.insert(key(i), &list).is_err() {
                    break;
                }
                held.push((i, list));
            }
            let fill = index.shape.fill(&index.payload);
            assert!(fill > if bits < 6 { 0.8 } else { 0.93 }, "{bits} bits, {repetitions} repetitions: {fill}");
            for (i, list) in &held {
                let found = index.find(key(*i));
                assert!(list.iter().all(|id| found.binary_search(id).is_ok()));
            }
            for (i, list) in held {
                assert!(list.iter().all(|&set| index.remove(key(i), set)));
            }
            assert!(index.is_empty());
        }
    }
}

/// Tables of as many buckets as the tuner plans for have room for the pairs, all but one in 20,000, which are listed next to the table.
#[test]
fn planned_tables_have_room_for_their_pairs() {
    for bits in [4, 5, 7, 12] {
        for (v, sets) in [(1, 1), (1, 100), (3, 100), (5, 20)] {
            let (mut full, mut all) = (0, 0);
            for i in 0..300 {
                let n = (20.0 * 250f64.powf(scramble(i) as f64 / u64::MAX as f64)) as u64;
                let lists: Vec<_> = (0..n).map(|k| list(k ^ i << 20, v, sets)).collect();
                let pairs: usize = lists.iter().map(Vec::len).sum();
                let buckets = crate::math::cuckoo::roomy(pairs as u64, bits) + 6 * v;
                let Index { shape, groups, mut payload } =
                    Index::new(shape(buckets.max(sets.into()), bits, 1, 0, false), sets);
                let mut add = |k: u64, set| shape.add(&mut payload, &groups, key(i << 32 | k), set, 1).is_err();
                for (k, list) in (0..).zip(&lists) {
                    full += list.iter().filter(|&&set| add(k, set)).count();
                }
                all += pairs;
            }
            assert!(full * 20_000 <= all, "{bits} bits, {v} of {sets} sets: {full} of {all}");
        }
    }
}

/// Eight copies fit in two buckets; one more does not, and in a later table that changes nothing in an earlier one.
#[test]
fn full_is_all_or_nothing() {
    let mut index = Index::new(shape(100, 12, 3, 2, false), 60);
    let mut held = 0;
    while held < 60 && index.add(key(1), held, 1).is_ok() {
        held += 1;
    }
    // Two partitions with eight places each, and sets are dealt out unevenly.
    assert!((8..=16).contains(&held), "{held}");
    let before = index.payload.clone();
    assert_eq!(index.insert(key(1), &(held..60).collect::<Vec<_>>()), Err(Full));
    assert_eq!(before, index.payload);
    // The first are taken out again.
    let mut index = Index::new(shape(10, 12, 1, 0, false), 60);
    assert_eq!(index.insert(key(5), &(0..60).collect::<Vec<_>>()), Err(Full));
    assert!(index.is_empty());
}

fn close(what: &str, total: usize, keys: u64, expected: f64, clump: f64) {
    let mean = expected * keys as f64;
    let sigma = (mean * clump).sqrt() + 0.01 * mean;
    assert!((total as f64 - mean).abs() < 5.0 * sigma, "{what}: {total}, expected {mean} +- {sigma}");
}

/// Theorem 3 of [CSC] with the right exponent: two buckets are met by 2 pairs / buckets others, each alike with probability 1/(2^f - 2).
#[test]
fn false_sets_are_as_many_as_the_formula_says() {
    for (buckets, bits, repetitions, partitions, sets, v) in [
        (9000, 16, 1, 0, 2456, 4),
        (9000, 12, 1, 0, 2456, 4),
        (9000, 9, 1, 0, 2456, 4),
        (9000, 17, 1, 0, 2456, 4),
        (9000, 20, 1, 0, 8000, 4),
        (9001, 17, 2, 10, 2456, 4),
        (9001, 8, 1, 0, 256, 4),
        (20_000, 5, 1, 0, 300, 2),
        (9000, 8, 3, 245, 2456, 3),
        (9000, 4, 2, 100, 1000, 3),
    ] {
        let mut index = Index::new(shape(buckets, bits, repetitions, partitions, false), sets);
        let keys = 8000;
        let lists: Vec<_> = (0..keys).map(|i| list(i, v, sets)).collect();
        let mut pairs = 0;
        for (i, list) in (0..).zip(&lists) {
            index.insert(key(i), list).unwrap();
            pairs += list.len();
        }
        let what = format!("{:?} {sets} sets of {pairs} pairs", index.shape);
        assert!((index.shape.fill(&index.payload) - pairs as f64 / (4 * buckets) as f64).abs() < 1e-9);
        let one = 1.0 - (1.0 - 1.0 / (2f64.powi(bits as i32) - 2.0)).powf(2.0 * pairs as f64 / buckets as f64);
        let (n, r) = (f64::from(sets), repetitions as i32);
        let clump = if repetitions == 1 { 2.0 } else { n / f64::from(partitions) };
        let strangers = (0..3000).map(|i| index.find(key(1 << 40 | i)).len()).sum();
        close(&format!("absent, {what}"), strangers, 3000, n * one.powi(r), clump);
        let (mut wrong, mut expected) = (0, 0.0);
        for (i, list) in (0..3000).zip(&lists) {
            let found = index.find(key(i));
            wrong += found.len() - list.len();
            let v = list.len() as f64;
            let apart = if repetitions == 1 { 1.0 } else { (1.0 - 1.0 / f64::from(partitions)).powf(v) };
            expected += (n - v) * (1.0 - (1.0 - one) * apart).powi(r);
        }
        close(&format!("present, {what}"), wrong, 3000, expected / 3000.0, clump);
    }
}

/// One set with nearly everything fills the table as evenly as equal sets, and has no more false keys.
#[test]
fn unequal_sets_do_not_matter() {
    let (sets, buckets) = (512u32, 11_000);
    let mut index = Index::new(shape(buckets, 10, 1, 0, false), sets);
    let keys = 40_000;
    for i in 0..keys {
        let set = if i % 10 == 0 { 1 + (scramble(i) % 511) as u32 } else { 0 };
        index.insert(key(i), &[set]).unwrap();
    }
    let rate = 1.0 - (1.0 - 1.0 / 1022.0f64).powf(2.0 * keys as f64 / buckets as f64);
    let found: Vec<u32> = (0..20_000).flat_map(|i| index.find(key(1 << 40 | i))).collect();
    close("all", found.len(), 20_000, f64::from(sets) * rate, 1.0);
    close("the large one", found.iter().filter(|&&id| id == 0).count(), 20_000, rate, 1.0);
    close("a small one", found.iter().filter(|&&id| id == 300).count(), 20_000, rate, 1.0);
}

#[test]
fn counts_go_up_and_down() {
    for (repetitions, partitions) in [(1, 0), (3, 100)] {
        let mut index = Index::new(shape(60, 14, repetitions, partitions, true), 200);
        let mut counts = HashMap::<(u64, u32), u32>::new();
        // Nearly full, so that counts travel with their fingerprints.
        for j in 0..220 {
            let (i, set, times) = (j, (scramble(j) % 200) as u32, 1 + (j % 3) as u8);
            index.add(key(i), set, times).unwrap();
            index.add(key(i), set, 0).unwrap();
            *counts.entry((i, set)).or_default() += u32::from(times);
        }
        for j in 0..50 {
            let (i, set) = (j, (scramble(j) % 200) as u32);
            index.add(key(i), set, 2).unwrap();
            *counts.entry((i, set)).or_default() += 2;
        }
        let wrong = counts.iter().filter(|((i, set), count)| u32::from(index.frequency(key(*i), *set)) != **count);
        assert!(wrong.count() <= 2);
        let strangers = (1000..1100).filter(|&i| index.remove(key(i), 9)).count();
        assert_eq!(strangers, 0);
        for (&(i, set), &count) in &counts {
            assert!((0..count).all(|_| index.remove(key(i), set)));
        }
        assert!(index.is_empty());
        index.add(key(1), 2, 200).unwrap();
        index.add(key(1), 2, 200).unwrap();
        assert!((0..500).all(|_| index.remove(key(1), 2)));
        assert_eq!(index.frequency(key(1), 2), 255, "a saturated count stays");
    }
}

/// Two copies of a pair without counts: both must go.
#[test]
fn a_second_copy_is_a_copy() {
    let mut index = Index::new(shape(30, 16, 1, 0, false), 20);
    index.add(key(1), 3, 1).unwrap();
    index.add(key(1), 3, 1).unwrap();
    assert!(index.remove(key(1), 3) && index.find(key(1)) == [3]);
    assert!(index.remove(key(1), 3) && index.is_empty());
}

/// The file promises the same bytes for ever.
#[test]
fn bytes_are_fixed_for_ever() {
    let mut sums = vec![];
    for (repetitions, partitions, counting) in [(1, 0, false), (3, 70, false), (2, 70, true)] {
        let mut index = Index::new(shape(5, 11, repetitions, partitions, counting), 200);
        for i in 0..3 {
            index.insert(key(i), &list(i, 3, 200)).unwrap();
        }
        sums.push(xxhash_rust::xxh3::xxh3_64(&index.payload));
    }
    assert_eq!(sums, [7367560774054495621, 12291845529753653811, 9321737501508923432]);
}

#[test]
fn numbers_are_checked() {
    for shape in [shape(1, 4, 1, 0, false), shape(MAX_BUCKETS, 32, 8, MAX_PARTITIONS, true)] {
        let mut bytes = vec![];
        shape.encode(&mut bytes);
        let mut from = Reader::new(&bytes, "test");
        assert_eq!(CscCuckoo::decode(&mut from).unwrap(), shape);
        from.end().unwrap();
        assert!(CscCuckoo::decode(&mut Reader::new(&bytes[..bytes.len() - 1], "test")).is_err());
    }
    assert_eq!(shape(MAX_BUCKETS, 16, 8, 9, true).payload_len(), 8 * ((1 << 43) + 8 + (1 << 42)));
    assert_eq!([4, 5, 16, 32].map(|bits| shape(3, bits, 1, 0, false).payload_len()), [16, 16, 32, 56]);
    for (expected, values) in [
        ("buckets of a table is 0", [0, 8, 1, 0, 0]),
        ("buckets of a table is 1099511627777", [MAX_BUCKETS + 1, 8, 1, 0, 0]),
        ("bits of a slot is 3", [9, 3, 1, 0, 0]),
        ("bits of a slot is 33", [9, 33, 1, 0, 0]),
        ("repetitions is 0", [9, 8, 0, 0, 0]),
        ("repetitions is 9", [9, 8, 9, 5, 0]),
        ("partitions is 5, expected 0 to 0", [9, 8, 1, 5, 0]),
        ("partitions is 0, expected 1 to 1048576", [9, 8, 2, 0, 0]),
        ("partitions is 1048577", [9, 8, 2, 1048577, 0]),
        ("counting is 4", [9, 8, 2, 5, 4]),
    ] {
        let mut bytes = vec![];
        values.iter().for_each(|&value| put_varint(&mut bytes, value));
        let error = CscCuckoo::decode(&mut Reader::new(&bytes, "test")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let [buckets, bits, repetitions, partitions, counting] = values;
        let new = CscCuckoo::new(buckets, bits as u32, repetitions as u32, partitions as u32, counting == 1);
        assert!(new.is_err() || counting == 4);
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: if std::env::var_os("TAMIS_SLOW").is_some() { 5000 } else { 300 }, ..Default::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// Any shape, any payload, also one that is too short: an answer, the same at every level, and changes that end.
    #[test]
    fn random_tables_never_panic(
        buckets in prop_oneof![1..400u64, Just(MAX_BUCKETS), 1..=MAX_BUCKETS],
        bits in BITS,
        repetitions in 1..=8u32,
        partitions in prop_oneof![1..300u32, Just(20_000)],
        counting in any::<bool>(),
        sets in 0..2000u32,
        payload in prop::collection::vec(any::<u8>(), 0..6000),
        i in any::<u64>(),
    ) {
        let partitions = if repetitions == 1 { 0 } else { partitions };
        let mut index = Index::new(shape(1, bits, repetitions, partitions, counting), sets);
        index.shape.buckets = buckets;
        index.payload = payload;
        let found = index.find(key(i));
        prop_assert!(found.is_sorted() && found.iter().all(|&id| id < sets));
        prop_assert_eq!(found, index.plain(key(i)));
        prop_assert!((0.0..=1.0).contains(&index.shape.fill(&index.payload)));
        let _ = index.add(key(i), sets / 2, 3);
        index.remove(key(i), sets / 2);
        let _ = index.insert(key(i), &[0, sets, u32::MAX]);
    }
}
