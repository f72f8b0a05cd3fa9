//! Counts agree with a map, in memory and on disk, in any order; so do classes of weights and the heaviest keys.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::gather::{Keys, Limits, OnConflict};
use crate::hash::{Hasher, scramble};

const NEVER: Stop<'static> = &|| false;

fn digest(i: u64) -> Digest {
    Hasher::seeded(1).integer(i)
}

fn counter(memory: u64) -> Counter {
    Counter::new(&Workspace::new(&Limits::default(), 2), memory)
}

fn count(memory: u64, queries: &[(Digest, u64)]) -> Counts {
    count_with(counter(memory), queries)
}

fn count_with(mut counter: Counter, queries: &[(Digest, u64)]) -> Counts {
    queries.iter().for_each(|&(digest, weight)| counter.push(digest, weight, NEVER).unwrap());
    counter.finish(NEVER).unwrap()
}

fn known(counts: &Counts) -> Vec<(Digest, u64)> {
    let mut known = vec![];
    let mut take = |part: &[Counted]| {
        known.extend(part.iter().map(|key| (key.digest, key.weight)));
        Ok(())
    };
    counts.each(NEVER, &mut take).unwrap();
    known
}

fn oracle(queries: &[(Digest, u64)]) -> BTreeMap<Digest, u64> {
    let mut map = BTreeMap::new();
    queries.iter().filter(|query| query.1 > 0).for_each(|&(digest, weight)| *map.entry(digest).or_default() += weight);
    map
}

/// Whether everything that is said of these queries is true; returns it.
fn check_counts(counts: &Counts, queries: &[(Digest, u64)]) -> Weights {
    let expected = oracle(queries);
    assert!(known(counts).into_iter().eq(expected.clone()));
    assert_eq!(counts.queries(), expected.values().sum::<u64>());
    let weights = counts.weights(NEVER).unwrap();
    assert_eq!(weights.keys, expected.len() as u64);
    assert_eq!(weights.once, expected.values().filter(|&&weight| weight == ONE).count() as u64);
    assert!(weights.classes.windows(2).all(|pair| pair[0].0 > pair[1].0));
    assert_eq!(weights.classes.iter().map(|class| class.1).sum::<u64>(), weights.keys);
    let mut by_weight: Vec<_> = expected.into_iter().collect();
    by_weight.sort_unstable_by_key(|&(digest, weight)| (!weight, digest.lo, digest.hi));
    for most in [0, 1, 2, by_weight.len() / 3, by_weight.len(), by_weight.len() + 1] {
        let mut heaviest = BTreeMap::new();
        let take = |key: Counted| {
            heaviest.insert(key.digest, key.weight);
            Ok(())
        };
        counts.heaviest(most as u64, NEVER, take).unwrap();
        let expected: BTreeMap<_, _> = by_weight.iter().take(most).copied().collect();
        assert!(heaviest == expected, "{most}: {} {}", heaviest.len(), expected.len());
    }
    weights
}

fn check_exact(queries: &[(Digest, u64)], memory: u64) -> Weights {
    check_counts(&count(memory, queries), queries)
}

#[test]
fn every_small_number_of_values_and_every_growth() {
    for n in (0..300).chain([1000, 5000, 70_000]) {
        // i mod 3 + 1 times each, in an order that spreads the repetitions.
        let queries: Vec<_> =
            (0..3).flat_map(|k| (0..n).filter(move |i| i % 3 >= k).map(|i| (digest(i), ONE))).collect();
        check_exact(&queries, 1 << 24);
    }
}

#[test]
fn nothing_at_all_and_weights_of_nothing() {
    for queries in [&[][..], &[(digest(1), 0), (digest(2), 0)]] {
        let weights = check_exact(queries, 0);
        assert_eq!((weights.unseen(), weights.classes), (0.0, vec![]));
    }
}

/// The digest of zeros is a value like any other, though an empty slot holds it.
#[test]
fn the_empty_digest_is_counted() {
    let zero = Digest::default();
    check_exact(&[(zero, ONE), (digest(1), 3), (zero, 2 * ONE), (zero, 0)], 0);
}

/// With a salt that is known.
fn aimed_at(memory: u64) -> Counter {
    let mut counter = counter(memory);
    counter.table.salt = Salt::new(7);
    counter
}

/// Values that all want the first slot, or the last: slow, and right.
#[test]
fn values_with_one_home() {
    // A factor of zero makes the salted hash zero.
    let first = |lo| Digest { hi: scramble(7), lo };
    let table = Table::new(1000, Salt::new(7));
    assert!((0..100).all(|lo| table.home(first(lo)) == 0));
    let last = (0..).map(digest).filter(|&digest| table.home(digest) == 999).take(500);
    let queries: Vec<_> = (0..500).map(first).chain(last).map(|digest| (digest, ONE)).collect();
    for queries in [queries.repeat(2), (0..5000).map(|lo| (first(lo), ONE * (lo % 7 + 1))).collect()] {
        check_counts(&count_with(aimed_at(1 << 20), &queries), &queries);
        check_counts(&count_with(aimed_at(0), &queries), &queries);
    }
}

/// No chosen values crowd: those with neighbouring homes for one salt are spread by that of another counter.
#[test]
fn chosen_values_do_not_crowd() {
    let longest = |counter: &Counter| {
        let runs = counter.table.slots.split(|slot| slot.weight == 0);
        runs.map(<[_]>::len).max().unwrap_or(0)
    };
    let places = |salt| (0..).map(digest).filter(move |digest| digest.salted(salt) >> 58 == 0).take(20_000);
    for salt in [Salt::new(0x0063_6f75_6e74), Salt::new(7), counter(0).table.salt] {
        let [mut aimed, mut counter] = [aimed_at(1 << 22), counter(1 << 22)];
        for digest in places(salt) {
            aimed.push(digest, ONE, NEVER).unwrap();
            counter.push(digest, ONE, NEVER).unwrap();
        }
        // At a load of 4/5 runs of a thousand slots are rarer than one in 10^9.
        assert!(longest(&counter) < 2000, "{}", longest(&counter));
        assert!(salt != Salt::new(7) || longest(&aimed) > 10_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The memory is enough for some of the keys or for all of them, and leaves no trace.
    #[test]
    fn agrees_with_a_map_in_any_order(seed: u64, distinct in 1u64..9000, octaves in 1u32..40, by in 0usize..30_000) {
        let mut queries: Vec<_> = (0..20_000)
            .map(|i| {
                let random = scramble(seed ^ scramble(i));
                (digest(random % distinct), (random >> 24) >> (random as u32 % octaves))
            })
            .collect();
        let weights = check_exact(&queries, 1 << 22);
        queries.rotate_left(by % 20_000);
        queries.reverse();
        prop_assert_eq!(weights, check_exact(&queries, 0));
    }
}

/// Many different weights are classes that meet where they should: sums of exact weights, a percent wide.
#[test]
fn many_weights_are_classes() {
    let queries: Vec<_> = (1..50_000u64).map(|i| (digest(i), ONE * 1000 / i + i)).collect();
    let weights = check_exact(&queries, 0);
    assert!((500..MAX_EXACT_WEIGHTS).contains(&weights.classes.len()), "{}", weights.classes.len());
    let sum: f64 = weights.classes.iter().map(|&(weight, count)| weight * count as f64).sum();
    let exact = queries.iter().map(|query| query.1).sum::<u64>() as f64 / ONE as f64;
    assert!((sum / exact - 1.0).abs() < 1e-12);
    assert!(weights.classes.windows(2).all(|pair| pair[1].0 < pair[0].0 * 1.0001));
    let few = &queries[..MAX_EXACT_WEIGHTS];
    assert_eq!(check_exact(few, 0).classes.len(), MAX_EXACT_WEIGHTS);
}

/// Queries for keys are taken out, in memory and on disk.
#[test]
fn members_are_taken_out() {
    let workspace = Workspace::new(&Limits::default().memory(0), 2);
    let member = |i: u64| i.is_multiple_of(7);
    let members = (0..30_000).filter(|&i| member(i)).map(digest).collect::<Vec<_>>();
    let sorted = Sorted::shared(members.into(), &workspace, NEVER).unwrap();
    let shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, NEVER).unwrap();
    let queries = |from: u64| (from..20_000).map(|i| (digest(i), ONE * (i % 3 + 1))).collect::<Vec<_>>();
    for memory in [0, 1 << 24] {
        let (left, dropped, once) = count(memory, &queries(0)).without_keys(&shards, NEVER).unwrap();
        let kept: Vec<_> = (0..20_000).filter(|&i| !member(i)).map(|i| (digest(i), ONE * (i % 3 + 1))).collect();
        check_counts(&left, &kept);
        assert_eq!((dropped, once), ((0..20_000).filter(|&i| member(i)).count() as u64, false));
    }
}

/// Past the memory everything is on disk, within its limit; an error leaves all that was counted.
#[test]
fn disk_is_used_within_its_limit() {
    let limits = Limits::default().disk(100_000);
    let workspace = Workspace::new(&limits, 1);
    let mut counter = Counter::new(&workspace, 0);
    let error = (0..10_000).find_map(|i| counter.push(digest(i), ONE, NEVER).err().map(|error| (i, error)));
    let (failed, error) = error.unwrap();
    assert!(matches!(error, BuildError::DiskLimit { limit: 100_000 }) && failed > 1000, "{failed}: {error}");
    assert_eq!(counter.table.entries as u64 + counter.pending.len() as u64 + run_records(&counter), failed);
    assert!(counter.finish(NEVER).is_err());
}

fn run_records(counter: &Counter) -> u64 {
    counter.spill.as_ref().map_or(0, |spill| spill.records(0..1 << super::super::CELL_BITS))
}

#[test]
fn the_unseen_share_is_that_of_single_queries() {
    let weights = check_exact(&[(digest(1), ONE), (digest(2), 3 * ONE), (digest(3), ONE / 2), (digest(4), ONE)], 0);
    assert_eq!((weights.once, weights.unseen()), (2, 2.0 / 5.5));
}

#[test]
fn sums_do_not_wrap() {
    let mut counter = counter(0);
    counter.push(digest(1), u64::MAX - 5, NEVER).unwrap();
    counter.push(digest(1), 3, NEVER).unwrap();
    let error = counter.push(digest(2), 2, NEVER).and_then(|()| counter.push(digest(3), 1, NEVER)).unwrap_err();
    assert!(error.to_string().starts_with("workload: the weights add up to 2^44"), "{error}");
    check_counts(&counter.finish(NEVER).unwrap(), &[(digest(1), u64::MAX - 2), (digest(2), 2)]);
}

#[test]
fn weights_become_units() {
    for (weight, expected) in
        [(0.0, 0), (-0.0, 0), (1.0, ONE), (0.5, ONE / 2), (1e6, 1_000_000 * ONE), (MAX_WEIGHT, 1 << 63)]
    {
        assert_eq!(units(weight).unwrap(), expected, "{weight}");
    }
    assert_eq!(units(1.0 / ONE as f64).unwrap(), 1);
    for (weight, expected) in [
        (-1.0, "weight -1: out of range"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (1e-7, "scale the weights up"),
        (f64::MIN_POSITIVE, "scale the weights up"),
        (MAX_WEIGHT * 1.01, "scale the weights down"),
        (f64::MAX, "scale the weights down"),
    ] {
        let error = units(weight).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn classes_are_in_order() {
    let octaves = (0..57).flat_map(|octave| (128..256u64).map(move |top| top << octave));
    let starts: Vec<u64> = (0..128).chain(octaves).collect();
    for (number, &start) in starts.iter().enumerate() {
        let last = starts.get(number + 1).map_or(u64::MAX, |next| next - 1);
        assert_eq!([class(start), class(last)], [number; 2], "{start}");
    }
}
