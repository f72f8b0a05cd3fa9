//! records -> shards, against a map: the same for any order, thread count and limit; and the ways a build ends early.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::sort::sort_distinct;
use super::*;
use crate::hash::scramble;

const GO: Stop<'static> = &|| false;

fn digest(i: u64) -> Digest {
    Digest { hi: scramble(2 * i), lo: scramble(2 * i + 1) }
}

/// Small cells and shards, and a memory limit below the minimum, so that few keys make many runs and shards.
fn workspace(memory: u64, threads: usize) -> Arc<Workspace> {
    let new = Workspace::new(&Limits::default(), threads);
    let mut workspace = Arc::into_inner(new).unwrap();
    (workspace.memory, workspace.cell_bits, workspace.shard_keys, workspace.part) = (memory, 3, 10, 4);
    Arc::new(workspace)
}

fn intake<R: Record>(records: &[R], workspace: &Arc<Workspace>) -> Result<Sorted<R>, BuildError> {
    let mut intake = Intake::new(workspace, workspace.memory / 2);
    let (singly, together) = records.split_at(records.len() / 2);
    singly.iter().try_for_each(|&r| intake.push(r, GO))?;
    intake.push_slice(together, GO)?;
    assert_eq!(intake.count(), records.len() as u64);
    intake.finish(GO)
}

fn tagged(input: &[(Digest, u64)]) -> Vec<Tagged> {
    input.iter().zip(0..).map(|(&(digest, weight), ordinal)| Tagged { digest, weight, ordinal }).collect()
}

/// Everything that shards say.
#[derive(PartialEq, Debug)]
struct Content {
    bits: u32,
    stats: Stats,
    shards: Vec<(Vec<Digest>, Vec<Tagged>)>,
}

fn content(shards: &Shards) -> Content {
    let load = |i| {
        let keys = shards.keys(i, GO).unwrap();
        let (mut negatives, mut largest) = (vec![], 0);
        let mut part = |part: Part<'_>| {
            let before = negatives.len();
            match part {
                Part::Plain(part) => {
                    negatives.extend(part.iter().map(|&digest| Tagged { digest, weight: 1, ordinal: 0 }))
                }
                Part::Tagged(part) => negatives.extend_from_slice(part),
            }
            largest = largest.max(negatives.len() - before);
            Ok(())
        };
        shards.negatives(i, &keys, GO, &mut part).unwrap();
        assert!(largest <= 4);
        if let Cow::Owned(keys) = &keys {
            assert!(16 * keys.len() as u64 <= shards.cost(i));
        }
        (keys.into_owned(), negatives)
    };
    Content { bits: shards.bits, stats: shards.stats, shards: (0..shards.count()).map(load).collect() }
}

type Conflict = (u64, Vec<(u64, u64)>);

fn build(
    keys: &[Tagged],
    negatives: Option<&[Tagged]>,
    on_conflict: OnConflict,
    workspace: &Arc<Workspace>,
    plain: bool,
) -> Result<Content, Conflict> {
    let keys = match plain {
        true => Keys::Plain(intake(&keys.iter().map(|k| k.digest).collect::<Vec<_>>(), workspace).unwrap()),
        false => Keys::Tagged(intake(keys, workspace).unwrap()),
    };
    let negatives = negatives.map(|n| Keys::Tagged(intake(n, workspace).unwrap()));
    match Shards::new(keys, negatives, on_conflict, GO) {
        Ok(shards) => Ok(content(&shards)),
        Err(BuildError::Conflict { count, first }) => Err((count, first)),
        Err(error) => panic!("{error}"),
    }
}

/// The same from maps.
fn oracle(keys: &[Tagged], negatives: &[Tagged], on_conflict: OnConflict) -> Result<Content, Conflict> {
    let map = |records: &[Tagged]| {
        let mut map = BTreeMap::<Digest, Tagged>::new();
        for r in records {
            let entry = map.entry(r.digest).or_insert(Tagged { weight: 0, ..*r });
            entry.weight = entry.weight.saturating_add(r.weight);
            entry.ordinal = entry.ordinal.min(r.ordinal);
        }
        map
    };
    let (mut k, mut n) = (map(keys), map(negatives));
    let mut stats = Stats {
        duplicate_keys: (keys.len() - k.len()) as u64,
        duplicate_negatives: (negatives.len() - n.len()) as u64,
        ..Default::default()
    };
    let mut both: Vec<_> = k.values().filter_map(|k| Some((k.ordinal, n.get(&k.digest)?.ordinal, k.digest))).collect();
    both.sort();
    stats.conflicts = both.len() as u64;
    match on_conflict {
        OnConflict::Error if !both.is_empty() => {
            return Err((stats.conflicts, both.iter().map(|b| (b.0, b.1)).take(8).collect()));
        }
        OnConflict::Error => {}
        OnConflict::Keep => n.retain(|d, _| both.iter().all(|b| b.2 != *d)),
        OnConflict::Drop => k.retain(|d, _| both.iter().all(|b| b.2 != *d)),
    }
    stats.keys = k.len() as u64;
    stats.negatives = n.len() as u64;
    stats.negative_weight = n.values().fold(0, |sum: u64, r| sum.saturating_add(r.weight));
    let bits = (0..).find(|b| stats.keys >> b <= 10).unwrap();
    let shard = |i| {
        let within = |d: &Digest| d.shard(bits) == i;
        (k.keys().copied().filter(within).collect(), n.values().copied().filter(|r| within(&r.digest)).collect())
    };
    Ok(Content { bits, stats, shards: (0..1 << bits).map(shard).collect() })
}

const POLICIES: [OnConflict; 3] = [OnConflict::Error, OnConflict::Keep, OnConflict::Drop];

/// Keys from a small universe, so that they repeat and conflict; a few share their high half.
fn input(size: usize) -> impl Strategy<Value = Vec<(Digest, u64)>> {
    let key = (0u64..300).prop_map(|i| if i < 20 { Digest { hi: 7 << 60, lo: scramble(i) } } else { digest(i) });
    let weight = prop_oneof![8 => 0u64..10, 1 => any::<u64>()];
    prop::collection::vec((key, weight), 0..size)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn shards_equal_the_oracle(
        keys in input(400),
        negatives in input(300),
        two_sides in any::<bool>(),
        memory in prop_oneof![1u64..40_000, Just(1 << 20)],
        threads in prop::sample::select(vec![1usize, 2, 7]),
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let (keys, negatives) = (tagged(&keys), tagged(&negatives));
        let some = two_sides.then_some(&negatives[..]);
        let workspace = workspace(memory, threads);
        let expected = oracle(&keys, some.unwrap_or(&[]), policy);
        prop_assert_eq!(&build(&keys, some, policy, &workspace, false), &expected);
        // Without places, the examples are missing and nothing else.
        let plain = expected.map_err(|(count, _)| (count, vec![]));
        prop_assert_eq!(&build(&keys, some, policy, &workspace, true), &plain);
        prop_assert_eq!(workspace.used.load(Ordering::Relaxed), 0, "disk is given back");
    }

    #[test]
    fn order_does_not_matter(
        keys in input(200),
        negatives in input(200),
        memory in 1u64..20_000,
        seed in any::<u64>(),
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let (mut keys, mut negatives) = (tagged(&keys), tagged(&negatives));
        let before = build(&keys, Some(&negatives), policy, &workspace(1 << 20, 1), false);
        // The ordinals travel with their records.
        keys.sort_by_key(|r| scramble(seed ^ r.ordinal));
        negatives.sort_by_key(|r| scramble(!seed ^ r.ordinal));
        prop_assert_eq!(build(&keys, Some(&negatives), policy, &workspace(memory, 2), false), before);
    }

    #[test]
    fn sorting_equals_the_oracle(
        seed in any::<u64>(),
        n in prop_oneof![0u64..200, 0u64..20_000],
        // How many bits differ, from the top or below a common prefix, and how often keys repeat.
        mask in prop::sample::select(vec![u64::MAX, 0, 1, 0xff, 0xff << 56, 0xffff_ffff, 0x8000_0000_0000_0001]),
        universe in prop::sample::select(vec![1u64, 2, 100, 1 << 40]),
    ) {
        let records: Vec<Tagged> = (0..n)
            .map(|ordinal| {
                let Digest { hi, lo } = digest(scramble(seed ^ ordinal) % universe);
                Tagged { digest: Digest { hi: hi & mask, lo }, weight: 1, ordinal }
            })
            .collect();
        check_sort(&records, 1);
    }
}

fn check_sort(records: &[Tagged], threads: usize) {
    let mut map = BTreeMap::<Digest, Tagged>::new();
    for r in records {
        map.entry(r.digest).and_modify(|m| m.merge(r)).or_insert(*r);
    }
    let mut sorted = records.to_vec();
    sort_distinct(&mut sorted, threads, GO).unwrap();
    assert!(sorted.iter().eq(map.values()), "{} records, {threads} threads", records.len());
}

/// Stripes are used from 65,536 records on: random, sorted, reversed, few values, all equal, one bucket that is too large.
#[test]
fn threads_share_a_sort() {
    const N: u64 = 70_001;
    let patterns: [&dyn Fn(u64) -> Digest; 6] = [
        &digest,
        &|i| Digest { hi: i << 40, lo: i },
        &|i| Digest { hi: !(i << 40), lo: i },
        &|i| digest(i % 3),
        &|_| digest(0),
        &|i| if i % 10 < 9 { Digest { hi: 5 << 50, lo: scramble(i) } } else { digest(i) },
    ];
    for pattern in patterns {
        let records: Vec<_> = (0..N).map(|i| Tagged { digest: pattern(i), weight: i, ordinal: scramble(i) }).collect();
        [1, 2, 7].into_iter().for_each(|threads| check_sort(&records, threads));
    }
}

#[test]
fn edge_sizes() {
    for n in 0..40 {
        for (memory, equal) in [(1, false), (1 << 20, false), (1, true), (1 << 20, true)] {
            let keys: Vec<_> = (0..n).map(|i| (digest(if equal { 0 } else { i }), i)).collect();
            let keys = tagged(&keys);
            let negatives = tagged(&[(digest(1000), 3)]);
            for negatives in [&[][..], &negatives] {
                let got = build(&keys, Some(negatives), OnConflict::Error, &workspace(memory, 2), false);
                assert_eq!(got, oracle(&keys, negatives, OnConflict::Error), "{n} keys in {memory} bytes");
            }
        }
    }
}

#[test]
fn the_number_of_shards_follows_from_the_number_of_keys() {
    let m = 1_000_000;
    let known = [(0, 0), (1, 0), (m, 0), (10 * m, 3), (100 * m, 7), (1000 * m, 10), (u64::MAX, MAX_SHARD_BITS)];
    known.into_iter().for_each(|(n, bits)| assert_eq!(shard_bits(n, SHARD_KEYS), bits, "{n} keys"));
    for bits in 0..MAX_SHARD_BITS {
        let last = (1_500_001 << bits) - 1;
        assert_eq!([last, last + 1].map(|n| shard_bits(n, SHARD_KEYS)), [bits, bits + 1]);
    }
    // However small shards are to be, a file with more of them could not be opened.
    assert_eq!([1 << 25, u64::MAX].map(|n| shard_bits(n, 1)), [MAX_SHARD_BITS; 2]);
}

/// With real cells and 2^15 shards: several shards to a cell.
#[test]
fn shards_finer_than_cells() {
    let limits = Limits::default();
    let mut workspace = Arc::into_inner(Workspace::new(&limits, 2)).unwrap();
    (workspace.memory, workspace.shard_keys) = (1 << 19, 1);
    let workspace = Arc::new(workspace);
    let keys: Vec<_> = (0..40_000).map(digest).collect();
    let sorted = intake(&keys, &workspace).unwrap();
    assert!(sorted.in_memory().is_none());
    let shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, GO).unwrap();
    assert_eq!(shards.bits, 15);
    let mut expected = keys.clone();
    expected.sort();
    let mut rest = &expected[..];
    for i in (0..shards.count()).step_by(1000) {
        let keys = shards.keys(i, GO).unwrap();
        rest = &rest[rest.partition_point(|d| d.shard(15) < i)..];
        assert_eq!(keys[..], rest[..rest.partition_point(|d| d.shard(15) == i)]);
    }
}

/// Digests that share their top bits, or all of one half, among a few others: read in parts that fit, and the same as from memory.
#[test]
fn chosen_digests_are_read_in_parts() {
    type Choice = fn(u64) -> Digest;
    let chosen: [Choice; 4] = [
        |i| Digest { hi: scramble(i) >> 20, lo: scramble(!i) },
        |i| Digest { hi: 3 << 50, lo: scramble(i) },
        |i| Digest { hi: 3 << 50, lo: i },
        |i| Digest { hi: scramble(i) >> 20 << 20, lo: 0 },
    ];
    for choice in chosen {
        let records = |from: u64, n: u64| -> Vec<Tagged> {
            let all: Vec<_> =
                (0..n).map(|i| (if i % 9 == 0 { digest(from + i) } else { choice(from + i) }, 1)).collect();
            tagged(&[&all[..], &all[..n as usize / 3]].concat())
        };
        let (keys, negatives) = (records(0, 700), records(650, 900));
        for on_conflict in POLICIES {
            let expected = oracle(&keys, &negatives, on_conflict);
            for (memory, threads) in [(1, 2), (100_000, 1), (1 << 22, 2)] {
                for plain in [false, true] {
                    let got = build(&keys, Some(&negatives), on_conflict, &workspace(memory, threads), plain);
                    match (&got, &expected) {
                        // Without places a conflict has no examples.
                        (Err((count, _)), Err((wanted, _))) if plain => assert_eq!(count, wanted),
                        _ => assert_eq!(got, expected, "{memory} bytes, {threads} threads"),
                    }
                }
            }
        }
    }
}

/// A cell that does not fit is cut into parts of which every one does.
#[test]
fn parts_of_a_cell_fit() {
    let workspace = workspace(1 << 18, 1);
    let records: Vec<Digest> = (0..100_000).map(|i| Digest { hi: scramble(i) >> 30, lo: scramble(!i) }).collect();
    let mut sorted = records.clone();
    sorted.sort_unstable();
    let intake = intake(&records, &workspace).unwrap();
    assert!(intake.in_memory().is_none());
    let (spans, _) = span::all(&intake, None, 1, GO).unwrap();
    assert!(spans.len() > 10);
    let parts: Vec<Vec<Digest>> = spans.iter().map(|span| intake.span(span, GO).unwrap().into_owned()).collect();
    assert!(parts.iter().all(|part| part.len() * 16 <= 1 << 17), "{:?}", parts.iter().map(Vec::len).max());
    assert!(parts.concat() == sorted);
}

/// Order, repetition, limits and threads leave no trace in the hash of a set; every key does.
#[test]
fn the_hash_of_a_set_follows_from_the_set() {
    let hash = |keys: &[Digest], memory: u64, threads: usize| {
        let keys = Keys::Plain(intake(keys, &workspace(memory, threads)).unwrap());
        Shards::new(keys, None, OnConflict::Error, GO).unwrap().set_hash(GO).unwrap()
    };
    type Choice = fn(u64) -> Digest;
    let chosen: [Choice; 2] = [digest, |i| Digest { hi: scramble(i) >> 30, lo: scramble(!i) }];
    for choice in chosen {
        let keys: Vec<Digest> = (0..3000).map(choice).collect();
        let expected = hash(&keys, 1 << 20, 1);
        let shuffled: Vec<Digest> = keys.iter().rev().chain(&keys[..500]).copied().collect();
        for (memory, threads) in [(1, 1), (1, 3), (100_000, 2), (1 << 20, 4)] {
            assert_eq!(hash(&keys, memory, threads), expected);
            assert_eq!(hash(&shuffled, memory, threads), expected);
        }
        assert_ne!(hash(&keys[1..], 1 << 20, 1), expected);
        let tagged = Keys::Tagged(
            intake(&tagged(&keys.iter().map(|&key| (key, 1)).collect::<Vec<_>>()), &workspace(1, 2)).unwrap(),
        );
        let shards = Shards::new(tagged, None, OnConflict::Error, GO).unwrap();
        assert_eq!(shards.set_hash(GO).unwrap(), expected);
    }
    assert_ne!(hash(&[], 1, 1), hash(&[Digest::default()], 1, 1));
}

/// Digests that crowd are seen, and mapped to others, wherever they are.
#[test]
fn crowds_are_seen_and_can_be_spread() {
    for (memory, crowd) in [(1, 0), (1 << 20, 0), (1, 3000), (1 << 20, 3000)] {
        let mut keys: Vec<Digest> = (0..3000).map(digest).collect();
        keys.extend((0..crowd).map(|i| Digest { hi: i, lo: 5 }));
        let sorted = Keys::Plain(intake(&keys, &workspace(memory, 2)).unwrap());
        let shards = Shards::new(sorted, None, OnConflict::Error, GO).unwrap();
        assert_eq!(shards.is_crowded(GO).unwrap(), crowd > 0);
        let map = |key: Digest| Digest { hi: scramble(key.hi ^ key.lo), lo: key.hi };
        let mapped = shards.mapped(map, GO).unwrap();
        assert_eq!((mapped.is_crowded(GO).unwrap(), mapped.stats.keys), (false, 3000 + crowd));
        let mut expected: Vec<Digest> = keys.iter().map(|&key| map(key)).collect();
        expected.sort_unstable();
        let got: Vec<Digest> = (0..mapped.count()).flat_map(|i| mapped.keys(i, GO).unwrap().into_owned()).collect();
        assert!(got == expected, "{memory} bytes");
    }
}

#[test]
fn in_memory_shards_are_slices() {
    let keys: Vec<_> = (0..1000).map(digest).collect();
    let keys = Keys::Plain(intake(&keys, &workspace(1 << 20, 1)).unwrap());
    let shards = Shards::new(keys, None, OnConflict::Error, GO).unwrap();
    assert!(matches!(shards.keys(3, GO).unwrap(), Cow::Borrowed(_)));
    assert_eq!(shards.cost(3), 0);
}

#[test]
fn repeated_keys_stay_in_memory() {
    let keys: Vec<_> = (0..100_000).map(|i| digest(i % 100)).collect();
    let sorted = intake(&keys, &workspace(20_000, 1)).unwrap();
    assert_eq!(sorted.in_memory().unwrap().len(), 100);
}

#[test]
fn weights_stop_at_the_top() {
    let negatives = [(digest(1), u64::MAX - 1), (digest(1), 1), (digest(1), 1), (digest(2), 5)];
    for memory in [1, 1 << 20] {
        let got = build(&[], Some(&tagged(&negatives)), OnConflict::Error, &workspace(memory, 1), true).unwrap();
        assert_eq!(got.stats.negative_weight, u64::MAX);
        let mut weights: Vec<_> = got.shards[0].1.iter().map(|n| n.weight).collect();
        weights.sort();
        assert_eq!(weights, [5, u64::MAX]);
    }
}

#[test]
fn a_conflict_names_the_first_by_place() {
    let keys = tagged(&(0..5000).map(|i| (digest(i), 1)).collect::<Vec<_>>());
    let negatives = tagged(&(0..5000).map(|i| (digest(9000 - i), 1)).collect::<Vec<_>>());
    let expected = (999, (0..8).map(|i| (4001 + i, 4999 - i)).collect());
    for (memory, threads) in [(1, 1), (50_000, 2), (300_000, 7), (1 << 30, 1), (1 << 30, 7)] {
        let got = build(&keys, Some(&negatives), OnConflict::Error, &workspace(memory, threads), false);
        assert_eq!(got.unwrap_err(), expected, "{memory} bytes, {threads} threads");
    }
}

fn limited(memory: u64, disk: u64, dir: &std::path::Path) -> Arc<Workspace> {
    let limits = Limits { memory, disk, tmp: Some(dir.to_path_buf()) };
    Workspace::new(&limits, 1)
}

#[test]
fn the_disk_limit_is_checked_before_writing() {
    let dir = tempfile::tempdir().unwrap();
    // A limit of one byte is raised to the minimum: 147,456 digests to a run.
    let n = MIN_MEMORY / 16 * 9 / 16;
    let run = 8 * 4097 + 16 * n;
    let keys: Vec<_> = (0..=n).map(digest).collect();
    let push = |disk| {
        let workspace = limited(1, disk, dir.path());
        let mut intake = Intake::new(&workspace, workspace.memory);
        intake.push_slice(&keys, GO).map(|()| workspace.used.load(Ordering::Relaxed))
    };
    assert_eq!(push(run).unwrap(), run);
    assert!(matches!(push(run - 1), Err(BuildError::DiskLimit { limit }) if limit == run - 1));
}

/// Both sides count against one limit.
#[test]
fn the_disk_limit_is_shared() {
    let workspace = limited(1, 1000, &std::env::temp_dir());
    workspace.take_disk(600).unwrap();
    assert!(workspace.take_disk(401).is_err());
    assert!(workspace.take_disk(u64::MAX).is_err());
    workspace.take_disk(400).unwrap();
}

#[test]
fn a_bad_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let keys: Vec<_> = (0..200_000).map(digest).collect();
    for bad in [dir.path().join("missing"), file] {
        let mut intake = Intake::new(&limited(1, u64::MAX, &bad), MIN_MEMORY);
        let Err(error) = intake.push_slice(&keys, GO) else { panic!("{}", bad.display()) };
        assert!(matches!(&error, BuildError::Io { path: Some(path), .. } if *path == bad), "{error:?}");
        assert!(error.to_string().starts_with(&format!("{}: temporary file: ", bad.display())), "{error}");
    }
    // Where everything fits in memory, the directory is not touched.
    let workspace = limited(1, 0, &dir.path().join("missing"));
    assert_eq!(intake(&keys[..1000], &workspace).unwrap().in_memory().unwrap().len(), 1000);
}

#[test]
fn the_temporary_file_has_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let keys: Vec<_> = (0..400_000).map(digest).collect();
    let workspace = limited(1, u64::MAX, dir.path());
    let sorted = intake(&keys, &workspace).unwrap();
    assert!(sorted.in_memory().is_none() && workspace.used.load(Ordering::Relaxed) > 16 * 400_000);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    drop(sorted);
    assert_eq!(workspace.used.load(Ordering::Relaxed), 0);
}

/// The n-th question is answered with "stop", for every n until the work is done: no question goes unheard.
#[test]
fn every_question_can_stop_the_work() {
    let keys = tagged(&(0..700).map(|i| (digest(i), 1)).collect::<Vec<_>>());
    for (memory, threads) in [(4000, 1), (1 << 20, 1), (4000, 2)] {
        let workspace = workspace(memory, threads);
        let work = |stop: Stop<'_>| {
            let mut sides = [Intake::new(&workspace, memory / 2), Intake::new(&workspace, memory / 2)];
            sides[0].push_slice(&keys, stop)?;
            sides[1].push_slice(&keys[..50], stop)?;
            let [keys, negatives] = sides.map(|side| side.finish(stop));
            let shards = Shards::new(Keys::Tagged(keys?), Some(Keys::Tagged(negatives?)), OnConflict::Drop, stop)?;
            (0..shards.count()).try_for_each(|i| {
                let keys = shards.keys(i, stop)?;
                shards.negatives(i, &keys, stop, &mut |_| Ok(()))
            })
        };
        let asked = AtomicUsize::new(0);
        work(&|| asked.fetch_add(1, Ordering::Relaxed) == usize::MAX).unwrap();
        let questions = asked.load(Ordering::Relaxed);
        assert!(questions >= 6, "{questions}");
        for n in (0..questions).step_by(1 + questions / 50) {
            asked.store(0, Ordering::Relaxed);
            let result = work(&|| asked.fetch_add(1, Ordering::Relaxed) >= n);
            assert!(matches!(result, Err(BuildError::Cancelled)), "question {n} of {questions}");
            assert!(asked.load(Ordering::Relaxed) <= n + threads + 1, "work went on");
            assert_eq!(workspace.used.load(Ordering::Relaxed), 0);
        }
    }
}

/// A failed write leaves the intake as it was: the run can be written again.
#[test]
fn a_cancelled_spill_can_be_repeated() {
    let workspace = workspace(4000, 1);
    let mut intake = Intake::new(&workspace, 1500);
    let (mut refused, mut n) = (0, 0);
    for attempt in 0..5000 {
        let asked = AtomicUsize::new(0);
        if n == 1000 {
            break;
        }
        match intake.push(digest(n), &|| asked.fetch_add(1, Ordering::Relaxed) >= attempt % 7) {
            Ok(()) => n += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(n == 1000 && refused > 5, "{refused} refused");
    let shards = Shards::new(Keys::Plain(intake.finish(GO).unwrap()), None, OnConflict::Error, GO).unwrap();
    assert_eq!((shards.stats.keys, shards.stats.duplicate_keys), (1000, 0));
}

/// Counters and other patterns of integers must not crowd into few shards: one multiplication is all they get.
#[test]
fn integers_in_patterns_fill_shards_evenly() {
    let hasher = crate::Hasher::seeded(1);
    type Pattern = fn(u64) -> u64;
    let patterns: [(&str, Pattern); 5] = [
        ("counter", |i| i),
        ("multiples of 2^20", |i| i << 20),
        ("multiples of 1000003", |i| i * 1_000_003),
        ("descending", |i| u64::MAX - i),
        ("two halves", |i| (i >> 8) << 40 | (i & 255)),
    ];
    for (name, pattern) in patterns {
        let mut shards = [0u32; 128];
        (0..128_000).for_each(|i| shards[hasher.integer(pattern(i)).shard(7)] += 1);
        // Random digests would stay within six sigma of 1000.
        assert!(shards.iter().all(|n| (810..1190).contains(n)), "{name}: {shards:?}");
    }
}

/// The first pair of a key counts, and the first that contradicts it is named, in whatever order pairs meet.
#[test]
fn pairs_merge_in_any_order() {
    let pair = |ordinal: u64, value: u64| Paired { digest: Digest::default(), value, ordinal, rival: Paired::NONE };
    for values in [[1, 1, 1, 1], [1, 2, 1, 2], [1, 1, 2, 1], [1, 2, 2, 1], [1, 2, 3, 4], [1, 1, 1, 2]] {
        let rival = values.iter().position(|&value| value != 1).map_or(Paired::NONE, |at| at as u64);
        let expected = Paired { rival, ..pair(0, 1) };
        for order in 0..24u64 {
            let mut left: Vec<Paired> = (0..).zip(values).map(|(ordinal, value)| pair(ordinal, value)).collect();
            let mut shuffled: Vec<Paired> =
                (1..=4).map(|n| left.remove((order as usize * 7 / n) % left.len())).collect();
            // From the left, from the right, and two by two.
            let fold = |pairs: &[Paired]| pairs.iter().copied().reduce(|mut a, b| (a.merge(&b), a).1).unwrap();
            assert_eq!(fold(&shuffled), expected);
            let halves = [fold(&shuffled[..2]), fold(&shuffled[2..])];
            assert_eq!(fold(&halves), expected);
            shuffled.reverse();
            assert_eq!(fold(&shuffled), expected);
            let mut bytes = [0; Paired::SIZE];
            expected.write(&mut bytes);
            assert_eq!(Paired::read(&bytes), expected);
        }
    }
}

/// Negatives without places are shown with them all the same, and counted like those with.
#[test]
fn suspects_show_every_conflict() {
    let keys = tagged(&(0..500).map(|i| (digest(i), 1)).collect::<Vec<_>>());
    // Every conflict twice, among others.
    let listed: Vec<Digest> = (0..3000).map(|i| digest(if i % 10 == 7 { i % 30 } else { 1000 + i % 1500 })).collect();
    let negatives = tagged(&listed.iter().map(|&digest| (digest, 1)).collect::<Vec<_>>());
    for memory in [10_000, 1 << 22] {
        let workspace = workspace(memory, 1);
        for on_conflict in POLICIES {
            let mut shards =
                Shards::new(Keys::Tagged(intake(&keys, &workspace).unwrap()), None, on_conflict, GO).unwrap();
            let Some(mut suspects) = shards.suspects(&workspace, GO).unwrap() else {
                assert!(memory == 10_000, "500 keys have a filter of a kilobyte");
                continue;
            };
            listed.chunks(7).zip((0..).step_by(7)).for_each(|(part, at)| suspects.look(part, at, GO).unwrap());
            let plain = Keys::Plain(intake(&listed, &workspace).unwrap());
            let got = shards.set_negatives(plain, Some(suspects.finish(GO).unwrap()), on_conflict, GO);
            match (got, oracle(&keys, &negatives, on_conflict)) {
                (Ok(()), Ok(expected)) => assert_eq!(shards.stats, expected.stats),
                (Err(BuildError::Conflict { count, first }), Err(expected)) => assert_eq!((count, first), expected),
                (got, _) => panic!("{got:?}"),
            }
        }
    }
}
