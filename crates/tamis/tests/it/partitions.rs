//! keys that carry labels -> every pair answered rightly, and the same bytes however they came.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tamis::{
    Base, BuildError, Effort, Error, Filter, KeyType, Kind, Limits, Mismatch, OnConflict, Options, Progress,
    QueryError, Role,
};

use super::mix;

/// A listed pair, and whether it is wanted.
type Row = (String, u64, bool);

/// Labels of every size and mixture: large and small, many negatives and few, none, nothing but negatives, the empty label.
fn rows() -> Vec<Row> {
    let mut rows = vec![];
    let sizes = [("a", 3000, 3000), ("b", 1000, 50_000), ("", 40, 400), ("only keys", 500, 0), ("only others", 0, 300)];
    let small = (0..200).map(|i| (format!("small {i}"), i % 7, (i * 13) % 90));
    for (label, keys, others) in sizes.map(|(label, k, n)| (label.to_string(), k, n)).into_iter().chain(small) {
        // The same numbers under every label, wanted in one and excluded in the next.
        let shift = mix(label.len() as u64) % 1000;
        rows.extend((0..keys).map(|i| (label.clone(), shift + i, true)));
        rows.extend((0..others).map(|i| (label.clone(), shift + keys + i, false)));
    }
    rows
}

fn build(start: Options<'_>, rows: &[Row]) -> Result<Filter, Error> {
    let mut all = start.partitioned();
    for (label, key, wanted) in rows {
        match wanted {
            true => all.push(label, *key)?,
            false => all.exclude(label, *key)?,
        }
    }
    all.finish()
}

/// Asks for every row, alone and together.
#[track_caller]
fn check(filter: &Filter, rows: &[Row], what: &str) {
    let mut by_label: HashMap<&str, (Vec<u64>, Vec<bool>)> = HashMap::new();
    for (label, key, wanted) in rows {
        assert_eq!(filter.contains_in(label, key), Ok(*wanted), "{what}: {label:?} {key}");
        let (keys, answers) = by_label.entry(label).or_default();
        keys.push(*key);
        answers.push(*wanted);
    }
    for (label, (keys, expected)) in by_label {
        let answers = filter.contains_many_in(label, &keys).unwrap();
        assert_eq!(answers, expected, "{what}: {label:?}");
        assert_eq!(filter.has_partition(label), Ok(true), "{what}: {label:?}");
    }
}

#[test]
fn every_pair_is_answered_rightly() {
    let rows = rows();
    let starts = [
        ("exact", tamis::stream().exact()),
        ("one percent", tamis::stream().fpr(0.01)),
        ("budget", tamis::stream().bits_per_key(14.0)),
        ("fast", tamis::stream().exact().effort(Effort::Fast)),
        ("smallest", tamis::stream().exact().effort(Effort::Smallest)),
        ("keyed", tamis::stream().exact().secret([1, 2])),
        ("seeded", tamis::stream().exact().seed(5)),
        ("cascade", tamis::stream().exact().kind(Kind::Cascade(Base::Fuse))),
        ("naive", tamis::stream().fpr(0.1).kind(Kind::Naive(Base::Ribbon))),
    ];
    let keys = rows.iter().filter(|row| row.2).count() as u64;
    for (what, start) in starts {
        let filter = build(start, &rows).unwrap();
        check(&filter, &rows, what);
        assert_eq!((filter.len(), filter.excluded_len()), (keys, rows.len() as u64 - keys), "{what}");
        assert_eq!((filter.partitions(), filter.is_partitioned(), filter.key_type()), (204, true, KeyType::Integer));
        filter.verify().unwrap();
        let again = Filter::open(filter.as_bytes().to_vec()).unwrap();
        check(&again, &rows, what);
        if what == "budget" {
            assert!(filter.as_bytes().len() as f64 * 8.0 <= 14.0 * keys as f64, "{}", filter.as_bytes().len());
        }
    }
}

#[test]
fn bytes_are_keys_too() {
    let mut all = tamis::stream().exact().partitioned();
    all.push("one", "apple").unwrap();
    all.exclude("two", "apple").unwrap();
    all.push("two", "pear").unwrap();
    assert!(matches!(all.push("one", 7u64), Err(BuildError::MixedKeyTypes)));
    assert!(matches!(all.exclude("one", 7u64), Err(BuildError::MixedKeyTypes)));
    let filter = all.finish().unwrap();
    assert_eq!(filter.contains_in("one", "apple"), Ok(true));
    assert_eq!(filter.contains_in(b"two", String::from("apple")), Ok(false));
    assert_eq!(filter.contains_in("two", "pear"), Ok(true));
    let refused = QueryError::KeyType(Mismatch { filter: KeyType::Bytes, query: KeyType::Integer });
    assert_eq!(filter.contains_in("one", 7u64), Err(refused));
    assert_eq!(filter.contains_many_in("nowhere", &[7u64]), Err(refused));
    assert_eq!(filter.contains_many_in("one", &["a", "b"]).map(|answers| answers.len()), Ok(2));
}

/// Under a label that nobody listed, or that has no keys, the answer is no; a question without its label is none.
#[test]
fn unknown_labels_and_missing_ones() {
    let rows = rows();
    let filter = build(tamis::stream().fpr(0.5), &rows).unwrap();
    let keys: Vec<u64> = (0..500).collect();
    for label in ["c", "A", "only keys ", "small 200", "\0"] {
        assert_eq!(filter.has_partition(label), Ok(false), "{label}");
        let answers = filter.contains_many_in(label, &keys).unwrap();
        assert!(!answers.contains(&true), "{label}");
        assert!(keys.iter().all(|key| filter.contains_in(label, key) == Ok(false)), "{label}");
    }
    assert_eq!(filter.has_partition("only others"), Ok(true));
    assert!((0..5000u64).all(|key| filter.contains_in("only others", key) == Ok(false)));

    let refused = QueryError::Partition { partitioned: true };
    assert_eq!((filter.contains(7u64), filter.contains("7")), (Err(refused), Err(refused)));
    assert_eq!(filter.contains_many(&keys), Err(refused));
    assert_eq!(refused.to_string(), "the filter is partitioned; expected a partition with the key");
    let plain = tamis::build(0..10u64).finish().unwrap();
    let refused = QueryError::Partition { partitioned: false };
    assert_eq!(plain.contains_in("a", 7u64), Err(refused));
    assert_eq!(plain.has_partition("a"), Err(refused));
    assert_eq!(plain.contains_many_in("a", &keys), Err(refused));
    assert_eq!(refused.to_string(), "the filter is not partitioned; expected a key without a partition");
    assert_eq!((plain.is_partitioned(), plain.partitions(), plain.groups().count()), (false, 0, 0));
}

#[test]
fn few_labels_and_few_keys() {
    for start in [|| tamis::stream().exact(), || tamis::stream().fpr(0.1), || tamis::stream().bits_per_key(4000.0)] {
        let none = start().partitioned().finish().unwrap();
        assert_eq!((none.len(), none.partitions(), none.shards(), none.fpr(), none.lower_bound()), (0, 0, 0, 0.0, 0.0));
        assert!(none.is_partitioned() && none.is_empty() && none.has_partition("") == Ok(false));
        assert_eq!(none.contains_in("a", "b"), Ok(false));

        for rows in [
            vec![("a".to_string(), 1, true)],
            vec![(String::new(), 1, false)],
            vec![(String::new(), 1, true), (String::new(), 2, false)],
            vec![("a".to_string(), 1, true), ("b".to_string(), 1, false)],
            vec![("a".to_string(), 1, true), ("b".to_string(), 1, true), ("b".to_string(), 2, false)],
        ] {
            match build(start(), &rows) {
                Ok(filter) => check(&filter, &rows, "few"),
                // Nothing is excluded: every key would match.
                Err(Error::Build(BuildError::NothingExcluded)) => assert!(rows.iter().all(|row| row.2), "{rows:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
    // Nothing is excluded under the label of the keys and others do not matter: no steps at all.
    let rows = [("a".to_string(), 1, true), ("b".to_string(), 1, false)];
    let only = build(tamis::stream().exact(), &rows).unwrap();
    assert_eq!((only.layers().count(), only.lower_bound(), only.fpr()), (0, 0.0, 1.0));
    assert_eq!((only.contains_in("a", 99u64), only.contains_in("b", 1u64)), (Ok(true), Ok(false)));
}

#[test]
fn five_thousand_labels_of_one_key() {
    let mut rows: Vec<Row> = (0..5000).map(|i| (format!("label {i}"), mix(i), true)).collect();
    rows.extend((0..20_000).map(|i| (format!("label {}", i % 5000), mix(1 << 40 | i), false)));
    let filter = build(tamis::stream().exact(), &rows).unwrap();
    check(&filter, &rows, "5000");
    assert_eq!((filter.partitions(), filter.groups().count()), (5000, 1));
    let bits = filter.as_bytes().len() as f64 * 8.0;
    // Seven bytes for each label, f(0, 4) = 3.61 bits for each key, and what structures add.
    assert!(bits < 5000.0 * (56.0 + 1.14 * 3.61) + 1500.0, "{bits}");
}

/// What the groups are for: labels of different lambda together take less than in one group.
#[test]
fn the_bound_is_the_sum_over_the_labels() {
    use tamis::bounds::f;
    let mut rows: Vec<Row> = vec![];
    let sizes = [(20_000, 1), (20_000, 16), (4000, 100)];
    for (label, (keys, lambda)) in sizes.into_iter().enumerate() {
        rows.extend((0..keys).map(|i| (label.to_string(), i, true)));
        rows.extend((0..keys * lambda).map(|i| (label.to_string(), keys + i, false)));
    }
    let filter = build(tamis::stream().exact(), &rows).unwrap();
    check(&filter, &rows, "lambdas");
    let bound: f64 = sizes.iter().map(|&(keys, lambda)| keys as f64 * f(0.0, lambda as f64)).sum();
    assert!((filter.lower_bound() / bound - 1.0).abs() < 1e-4, "{} and {bound}", filter.lower_bound());
    let bits = filter.as_bytes().len() as f64 * 8.0;
    assert!(bits > bound && bits < 1.12 * bound, "{bits} bits, bound {bound}");
    // One filter of all pairs is larger.
    let (keys, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.2);
    let pairs = |rows: Vec<&Row>| rows.into_iter().map(|(label, key, _)| format!("{label} {key}")).collect::<Vec<_>>();
    let one = tamis::build(pairs(keys)).exclude(pairs(others)).exact().finish().unwrap();
    assert!(one.as_bytes().len() as f64 > 1.05 * filter.as_bytes().len() as f64);

    let groups: Vec<_> = filter.groups().collect();
    assert_eq!(groups.iter().map(|group| group.partitions).sum::<u64>(), 3);
    assert_eq!(groups.iter().map(|group| group.keys).sum::<u64>(), 44_000);
    assert!(groups.len() == 3 && groups.is_sorted_by_key(|group| group.excluded / group.keys));
    assert_eq!(filter.layers().map(|layer| layer.group).max(), Some(Some(2)));
    assert!(filter.layers().all(|layer| layer.role != Role::Negative && layer.bytes > 0));
    let rate = groups.iter().map(|group| group.keys as f64 * group.fpr).sum::<f64>() / 44_000.0;
    assert!((filter.fpr() - rate).abs() < 1e-12);
}

/// Unlisted keys pass at the promised rate under a known label.
#[test]
fn unlisted_keys_pass_at_the_rate() {
    let rows: Vec<Row> = (0..20_000).map(|i| (["x", "y"][i as usize % 2].to_string(), mix(i), true)).collect();
    let filter = build(tamis::stream().fpr(0.03), &rows).unwrap();
    check(&filter, &rows, "rate");
    let passed = (0..200_000u64).filter(|&i| filter.contains_in("x", mix(1 << 50 | i)).unwrap()).count() as f64;
    let expected = filter.fpr() * 2e5;
    assert!(filter.fpr() <= 0.03 && (passed - expected).abs() < 4.0 * expected.sqrt(), "{passed} of {expected}");
}

/// Order, repetition, threads, memory and how labels were numbered leave no trace.
#[test]
fn equal_sets_give_equal_bytes() {
    let mut rows = rows();
    rows.extend((0..150_000).map(|i| (["p", "q", "r"][i as usize % 3].to_string(), mix(i), i % 10 < 3)));
    let start = || tamis::stream().exact().seed(3);
    let first = build(start().threads(1), &rows).unwrap();
    check(&first, &rows, "first");
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4u64 {
        let mut rows = rows.clone();
        match round {
            0 => rows.reverse(),
            1 => rows.sort_unstable_by_key(|row| (row.2, mix(row.1))),
            2 => rows.sort_unstable_by_key(|row| mix(row.1)),
            _ => rows.extend(rows.clone()),
        }
        let memory = [1, 12 << 20, 2 << 30, 1][round as usize];
        let limits = Limits::default().memory(memory).tmp(dir.path());
        let other = build(start().threads(1 + round as usize % 3).limits(limits), &rows).unwrap();
        assert!(other.as_bytes() == first.as_bytes(), "round {round}");
    }
    // And a file has what memory has.
    let path = dir.path().join("f.tamis");
    let mut all = start().partitioned();
    for (label, key, wanted) in &rows {
        if *wanted { all.push(label, *key).unwrap() } else { all.exclude(label, *key).unwrap() }
    }
    let report = all.finish_to(&path).unwrap();
    assert!(std::fs::read(&path).unwrap() == first.as_bytes());
    assert_eq!((report.bytes, report.stats.keys), (first.as_bytes().len() as u64, first.len()));
    assert_eq!((report.stats.negatives, report.stats.estimated), (first.excluded_len(), false));
}

#[test]
fn duplicates_are_counted() {
    let mut rows = rows();
    let (keys, all) = (rows.iter().filter(|row| row.2).count() as u64, rows.len() as u64);
    rows.extend(rows.clone());
    let mut both = tamis::stream().exact().partitioned();
    for (label, key, wanted) in &rows {
        if *wanted { both.push(label, *key).unwrap() } else { both.exclude(label, *key).unwrap() }
    }
    let stats = both.finish_with_report().unwrap().1.stats;
    assert_eq!((stats.keys, stats.duplicate_keys), (keys, keys));
    assert_eq!((stats.negatives, stats.duplicate_negatives), (all - keys, all - keys));
}

/// A key is in conflict under its own label only, and settled there.
#[test]
fn conflicts_are_those_of_one_label() {
    let start = |policy| tamis::stream().exact().on_conflict(policy).partitioned();
    for memory in [1, 2 << 30] {
        for (policy, found) in
            [(OnConflict::Error, None), (OnConflict::Keep, Some(true)), (OnConflict::Drop, Some(false))]
        {
            let limits = Limits::default().memory(memory);
            let mut all = tamis::stream().exact().on_conflict(policy).limits(limits).partitioned();
            for i in 0..50_000u64 {
                all.push(["a", "b"][i as usize % 2], i).unwrap();
                // The other label's keys: no conflict.
                all.exclude(["b", "a"][i as usize % 2], i).unwrap();
            }
            for i in [7, 4, 4, 40_001] {
                all.exclude(["a", "b"][i as usize % 2], i).unwrap();
            }
            match (all.finish_with_report(), found) {
                (Err(Error::Build(BuildError::Conflict { count, first })), None) => {
                    assert_eq!((count, &first[..]), (3, &[(4, 50_001), (7, 50_000), (40_001, 50_003)][..]));
                }
                (Ok((filter, report)), Some(found)) => {
                    for i in 0..50_000u64 {
                        let expected = found || ![4, 7, 40_001].contains(&i);
                        assert_eq!(filter.contains_in(["a", "b"][i as usize % 2], i), Ok(expected), "{i}");
                        assert_eq!(filter.contains_in(["b", "a"][i as usize % 2], i), Ok(false), "{i}");
                    }
                    let stats = report.stats;
                    let keys = if found { 50_000 } else { 49_997 };
                    assert_eq!((stats.keys, stats.negatives, stats.conflicts), (keys, 100_000 - keys, 3));
                }
                (other, _) => panic!("{policy:?}: {other:?}"),
            }
        }
    }
    // A label all of whose keys are dropped has none left.
    let mut all = start(OnConflict::Drop);
    all.push("a", 1u64).unwrap();
    all.exclude("a", 1u64).unwrap();
    let filter = all.finish().unwrap();
    assert_eq!((filter.len(), filter.excluded_len(), filter.contains_in("a", 1u64)), (0, 1, Ok(false)));
    assert_eq!(filter.has_partition("a"), Ok(true));
}

/// Many negatives for every key: what the sieve lets go leaves no trace either, in memory or on disk.
#[test]
fn many_negatives_stream_through_the_sieve() {
    let negatives = if std::env::var_os("TAMIS_SLOW").is_some() { 5_000_000u64 } else { 400_000 };
    let build = |memory: u64| {
        let limits = Limits::default().memory(memory);
        let mut all = tamis::stream().exact().limits(limits).partitioned();
        for i in 0..negatives {
            all.exclude(["a", "b", "c"][(i % 3) as usize], mix(i)).unwrap();
        }
        for i in 0..3000 {
            all.push(["a", "b", "c"][(i % 3) as usize], mix(1 << 50 | i)).unwrap();
        }
        all.finish().unwrap()
    };
    let filter = build(2 << 30);
    assert!((0..3000).all(|i| filter.contains_in(["a", "b", "c"][(i % 3) as usize], mix(1 << 50 | i)) == Ok(true)));
    assert!((0..negatives).all(|i| filter.contains_in(["a", "b", "c"][(i % 3) as usize], mix(i)) == Ok(false)));
    assert!(build(1).as_bytes() == filter.as_bytes());
}

#[test]
fn limits_progress_and_cancelling() {
    let limits = Limits::default().memory(1).disk(1 << 20);
    let refused = build(tamis::stream().exact().limits(limits), &many()).unwrap_err();
    assert!(matches!(refused, Error::Build(BuildError::DiskLimit { limit: 1048576 })), "{refused}");

    let told = Arc::new(Mutex::new(vec![]));
    let log = told.clone();
    let start = tamis::stream().exact().progress(move |progress| log.lock().unwrap().push(progress));
    let filter = build(start, &many()).unwrap();
    let told = told.lock().unwrap();
    let last = |wanted: fn(&Progress) -> bool| told.iter().rev().find(|progress| wanted(progress)).copied();
    assert_eq!(
        last(|p| matches!(p, Progress::Read { .. })),
        Some(Progress::Read { keys: 100_000, total: Some(100_000) })
    );
    assert_eq!(
        last(|p| matches!(p, Progress::Excluded { .. })),
        Some(Progress::Excluded { keys: 200_000, total: Some(200_000) })
    );
    let shards = filter.shards();
    assert_eq!(told.last(), Some(&Progress::Built { shards, total: shards }));

    let flag = Arc::new(AtomicBool::new(true));
    for rows in [vec![], many()] {
        let refused = build(tamis::stream().exact().cancel(flag.clone()), &rows).unwrap_err();
        assert!(matches!(refused, Error::Build(BuildError::Cancelled)), "{refused}");
    }
    flag.store(false, Ordering::Relaxed);
    assert!(build(tamis::stream().exact().cancel(flag), &many()).is_ok());
}

/// One label with keys, two of them for every negative, and one with none.
fn many() -> Vec<Row> {
    let row = |i: u64| match i % 6 {
        0 | 1 => ("a".to_string(), mix(i), true),
        2 => ("a".to_string(), mix(i), false),
        _ => ("b".to_string(), mix(i), false),
    };
    (0..300_000).map(row).collect()
}

#[test]
fn goals_that_cannot_be_reached_say_why() {
    let rows = rows();
    let error = |start| build(start, &rows).unwrap_err().to_string();
    assert!(error(tamis::stream().bits_per_key(2.0)).contains("the table of partitions takes"), "budget");
    assert!(error(tamis::stream().fpr(0.01).kind(Kind::Bloom)).contains("cannot exclude keys"));
    assert!(error(tamis::stream().fpr(2.0)).contains("fpr 2: out of range"));
}
