//! threads, memory, disk, files, a flag -> the same bytes, or an error that leaves nothing behind.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tamis::{BuildError, Effort, Error, Filter, Kind, Limits, Progress};

use super::{SHAPES, ask_many, integers};

/// Two million keys: two shards, and many runs on disk when memory is scarce.
#[test]
fn several_shards_whatever_the_threads_and_the_memory() {
    const N: u64 = 2_000_000;
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits::default().memory(1).tmp(dir.path());
    let asked: Vec<u64> = integers(2000, 1).zip(integers(2000, 2)).flat_map(|(key, other)| [key, other]).collect();
    for (kind, effort) in
        [(Kind::Ribbon, Effort::Balanced), (Kind::Fuse, Effort::Balanced), (Kind::Bloom, Effort::Balanced)]
    {
        let build = || tamis::build(integers(N, 1)).kind(kind).effort(effort).fpr(0.02);
        let filter = build().threads(2).finish().unwrap();
        assert_eq!((filter.shards(), filter.len()), (2, N));
        let answers = ask_many(&filter, &asked);
        assert!(answers.iter().step_by(2).all(|&yes| yes));
        assert!(asked.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == Ok(answer)));
        assert!(integers(N, 1).step_by(7).all(|key| filter.contains(key) == Ok(true)), "{kind:?}");
        let path = dir.path().join("large.tamis");
        let report = build().threads(1).limits(limits.clone()).finish_to(&path).unwrap();
        assert_eq!((report.stats.keys, report.bytes), (N, filter.as_bytes().len() as u64));
        assert!(crate::mapped::filter(&path).unwrap().as_bytes() == filter.as_bytes(), "{kind:?}");
        std::fs::remove_file(path).unwrap();
        if kind == Kind::Ribbon {
            // Backwards, some twice, seven threads, little memory: once is enough.
            let keys: Vec<u64> = integers(N, 1).collect();
            let other = tamis::build(keys.iter().rev().chain(&keys[..300_000])).kind(kind).effort(effort).fpr(0.02);
            let other = other.threads(7).limits(limits.clone()).finish().unwrap();
            assert!(other.as_bytes() == filter.as_bytes());
        }
        filter.verify().unwrap();
    }
    assert_eq!(files(dir.path()), 0);
}

/// Batches over two shards answer like single queries for every other shape, too, and their rates hold.
#[test]
fn two_shards_of_every_other_shape() {
    const N: u64 = 1_600_000;
    let asked: Vec<u64> = integers(100_000, 1).chain(integers(100_000, 2)).collect();
    for &(name, kind, effort) in SHAPES {
        if [Kind::Auto, Kind::Fuse, Kind::Bloom].contains(&kind) || (kind, effort) == (Kind::Ribbon, Effort::Balanced) {
            continue;
        }
        let filter = tamis::build(integers(N, 1)).kind(kind).effort(effort).fpr(0.02).threads(1).finish().unwrap();
        assert_eq!(filter.shards(), 2, "{name}");
        let answers = ask_many(&filter, &asked);
        assert!(asked.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == Ok(answer)), "{name}");
        let (keys, strangers) = answers.split_at(100_000);
        assert!(!keys.contains(&false), "{name}");
        let passed = strangers.iter().filter(|&&yes| yes).count() as f64;
        let expected = filter.fpr() * 1e5;
        assert!((passed - expected).abs() < 4.0 * expected.sqrt(), "{name}: {passed} pass, expected {expected}");
    }
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_disk_limit_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits::default().memory(1).disk(1 << 20).tmp(dir.path());
    let refused = tamis::build(integers(700_000, 1)).limits(limits).finish().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "disk 1048576: too small for the temporary files; expected a higher limit of disk or memory"
    );
    assert!(matches!(refused, Error::Build(BuildError::DiskLimit { limit: 1048576 })));
    assert_eq!(files(dir.path()), 0);
}

#[test]
fn a_missing_directory_for_temporary_files_is_named() {
    let limits = Limits::default().memory(1).tmp("/no/such/place");
    let refused = tamis::build(integers(700_000, 1)).limits(limits).finish().unwrap_err();
    assert!(refused.to_string().contains("/no/such/place"), "{refused}");
}

#[test]
fn finish_to_writes_what_finish_builds() {
    let dir = tempfile::tempdir().unwrap();
    for &(name, kind, effort) in SHAPES {
        for n in [0, 5000] {
            let build = || tamis::build(integers(n, 1).chain(integers(n / 2, 1))).kind(kind).effort(effort);
            let path = dir.path().join("a.tamis");
            let report = build().finish_to(&path).unwrap();
            let filter = build().finish().unwrap();
            assert!(std::fs::read(&path).unwrap() == filter.as_bytes(), "{name}");
            assert_eq!(report.bytes, filter.as_bytes().len() as u64);
            assert_eq!((report.stats.keys, report.stats.duplicate_keys), (n, n / 2));
        }
    }
    assert_eq!(files(dir.path()), 1);
}

/// An old file stays until the new one is complete, and a failed build leaves no other.
#[test]
fn finish_to_replaces_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    tamis::build(["old"]).finish_to(&path).unwrap();
    let old = std::fs::read(&path).unwrap();
    let mapped = crate::mapped::filter(&path).unwrap();

    let cancelled = Arc::new(AtomicBool::new(true));
    assert!(tamis::build(["new"]).cancel(cancelled).finish_to(&path).is_err());
    assert!(tamis::build(["new"]).fpr(0.0).finish_to(&path).is_err());
    let mut mixed = tamis::stream().start();
    mixed.push("a").unwrap();
    assert!(mixed.push(1u64).is_err());
    drop(mixed);
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(files(dir.path()), 1);

    tamis::build(["new"]).finish_to(&path).unwrap();
    assert_eq!(crate::mapped::filter(&path).unwrap().contains("new"), Ok(true));
    assert_eq!(mapped.as_bytes(), old, "a map keeps the file it was made of");
    assert_eq!(files(dir.path()), 1);
}

#[test]
fn finish_to_a_place_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let refused = tamis::build(["a"]).finish_to(dir.path()).unwrap_err();
    let text = format!("{}: is a directory, expected a file to write", dir.path().display());
    assert_eq!(refused.to_string(), text);
    let refused = tamis::build(["a"]).finish_to(dir.path().join("no/such.tamis")).unwrap_err();
    assert!(matches!(refused, Error::Io { path: Some(_), .. }), "{refused}");
    assert_eq!(files(dir.path()), 0);
    assert!(matches!(crate::mapped::filter(dir.path().join("none")), Err(Error::Io { path: Some(_), .. })));
    assert!(matches!(Filter::read(dir.path().join("none")), Err(Error::Io { path: Some(_), .. })));
}

#[cfg(target_os = "linux")]
#[test]
fn finish_to_a_device_writes_straight() {
    let report = tamis::build(["a"]).finish_to("/dev/null").unwrap();
    assert_eq!(report.stats.keys, 1);
    let refused = tamis::build(integers(10_000, 1)).finish_to("/dev/full").unwrap_err();
    assert!(matches!(refused, Error::Io { path: Some(_), .. }), "{refused}");
}

#[test]
fn progress_is_told_and_ends_with_all_shards() {
    for (n, threads) in [(0, 1), (10, 2), (200_000, 1), (1_600_000, 1), (1_600_000, 2)] {
        let told = Arc::new(Mutex::new(vec![]));
        let log = told.clone();
        let build = tamis::build(integers(n, 1)).kind(Kind::Bloom).threads(threads);
        let filter = build.progress(move |progress| log.lock().unwrap().push(progress)).finish().unwrap();
        let told = told.lock().unwrap();
        let shards = filter.shards();
        let (mut read, mut built) = (vec![], vec![]);
        for progress in told.iter() {
            match *progress {
                Progress::Read { keys, total } => {
                    assert!(total.is_none_or(|total| total == n));
                    read.push(keys);
                }
                Progress::Built { shards: done, total } => {
                    assert_eq!(total, shards);
                    built.push(done);
                }
                _ => panic!("{progress:?}"),
            }
        }
        assert!(read.is_sorted() && read.last() == Some(&n), "{n} keys: {read:?}");
        assert!(read.len() as u64 >= n >> 16);
        assert_eq!(built, (1..=shards).collect::<Vec<_>>());
        assert_eq!(told.last(), Some(&Progress::Built { shards, total: shards }));
    }
}

#[test]
fn a_raised_flag_stops_the_build() {
    // Before it begins, while keys come in, and while shards are built.
    let flag = Arc::new(AtomicBool::new(true));
    for n in [0, 10, 100_000] {
        let refused = tamis::build(integers(n, 1)).cancel(flag.clone()).finish().unwrap_err();
        assert!(matches!(refused, Error::Build(BuildError::Cancelled)), "{n} keys: {refused}");
        assert_eq!(refused.to_string(), "cancelled");
    }
    for threads in [1, 2] {
        for after in [Progress::Read { keys: 131_072, total: Some(1_600_000) }, Progress::Built { shards: 1, total: 2 }]
        {
            let flag = Arc::new(AtomicBool::new(false));
            let raise = flag.clone();
            let build = tamis::build(integers(1_600_000, 1)).kind(Kind::Bloom).threads(threads).cancel(flag);
            let tell = move |progress| {
                if progress == after {
                    raise.store(true, Ordering::Relaxed);
                }
            };
            let result = build.progress(tell).finish();
            // With two threads the last shard may be under way already when the first one is told of.
            match (result, after, threads) {
                (Err(Error::Build(BuildError::Cancelled)), ..) => {}
                (Ok(_), Progress::Built { .. }, 2) => {}
                (other, ..) => panic!("{threads} threads, {after:?}: {other:?}"),
            }
        }
    }
}
