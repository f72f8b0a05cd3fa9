//! Counts agree with a map while memory lasts; then weight is conserved and frequent values are kept.
#![allow(clippy::unwrap_used)]
use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;
use crate::hash::{Hasher, scramble};

fn digest(i: u64) -> Digest {
    Hasher::seeded(1).integer(i)
}

fn count(memory: u64, queries: &[(Digest, u64)]) -> Counts {
    count_with(Counter::new(memory), queries)
}

fn count_with(mut counter: Counter, queries: &[(Digest, u64)]) -> Counts {
    queries.iter().for_each(|&(digest, weight)| counter.push(digest, weight).unwrap());
    counter.finish()
}

/// What must be true of any counts, exact or not.
fn check(counts: &Counts, pushed: u64) {
    assert_eq!(counts.queries, pushed);
    assert_eq!(counts.known.iter().map(|&(_, count)| count).sum::<u64>() + counts.outside, pushed);
    assert!(counts.known.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(counts.known.iter().all(|&(_, count)| count > 0));
    assert!((0.0..=1.0).contains(&counts.unseen()), "{}", counts.unseen());
    let by_weight = counts.histogram();
    assert!(by_weight.windows(2).all(|pair| pair[0].0 > pair[1].0));
    assert_eq!(by_weight.iter().map(|&(_, n)| n).sum::<u64>(), counts.known.len() as u64);
    assert_eq!(by_weight.iter().map(|&(weight, n)| weight * n).sum::<u64>() + counts.outside, pushed);
}

fn oracle(queries: &[(Digest, u64)]) -> BTreeMap<Digest, u64> {
    let mut map = BTreeMap::new();
    queries.iter().filter(|query| query.1 > 0).for_each(|&(digest, weight)| *map.entry(digest).or_default() += weight);
    map
}

fn check_exact(queries: &[(Digest, u64)], memory: u64) {
    let counts = count(memory, queries);
    let expected = oracle(queries);
    check(&counts, expected.values().sum());
    assert!(counts.exact && counts.outside == 0);
    assert_eq!(counts.once, expected.values().filter(|&&count| count == ONE).count() as u64);
    assert!(counts.known.iter().copied().eq(expected));
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
    let counts = count(0, &[]);
    assert_eq!(counts, Counts { known: vec![], queries: 0, once: 0, outside: 0, exact: true });
    assert_eq!((counts.unseen(), counts.histogram()), (0.0, vec![]));
    assert_eq!(count(0, &[(digest(1), 0), (digest(2), 0)]), counts);
}

/// The digest of zeros is a value like any other, though an empty slot holds it.
#[test]
fn the_empty_digest_is_counted() {
    let zero = Digest::default();
    check_exact(&[(zero, ONE), (digest(1), 3), (zero, 2 * ONE), (zero, 0)], 0);
}

/// With a salt that is known.
fn aimed_at(memory: u64) -> Counter {
    let mut counter = Counter::new(memory);
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
    let exact = count_with(aimed_at(1 << 20), &queries.repeat(2));
    assert_eq!(exact, count(1 << 20, &queries.repeat(2)));
    check_exact(&queries.repeat(2), 1 << 20);
    let queries: Vec<_> = (0..5000).map(|lo| (first(lo), ONE * (lo % 7 + 1))).collect();
    let counts = count_with(aimed_at(0), &queries);
    check(&counts, queries.iter().map(|query| query.1).sum());
    assert_eq!(counts, count(0, &queries));
}

/// No chosen values crowd: those with neighbouring homes for one salt are spread by that of another counter.
#[test]
fn chosen_values_do_not_crowd() {
    let longest = |counter: &Counter| {
        let runs = counter.table.slots.split(|&(_, count)| count == 0);
        runs.map(<[_]>::len).max().unwrap_or(0)
    };
    let places = |salt| (0..).map(digest).filter(move |digest| digest.salted(salt) >> 58 == 0).take(20_000);
    for salt in [Salt::new(0x0063_6f75_6e74), Salt::new(7), Counter::new(0).table.salt] {
        let [mut aimed, mut counter] = [aimed_at(1 << 22), Counter::new(1 << 22)];
        for digest in places(salt) {
            aimed.push(digest, ONE).unwrap();
            counter.push(digest, ONE).unwrap();
        }
        // At a load of 4/5 runs of a thousand slots are rarer than one in 10^9.
        assert!(longest(&counter) < 2000, "{}", longest(&counter));
        assert!(salt != Salt::new(7) || longest(&aimed) > 10_000);
    }
}

#[test]
fn the_nth_digest_is_that_of_the_sorted_ones() {
    let near = |i: u64| Digest { hi: 5, lo: i };
    let all: Vec<Digest> = (0..300).map(digest).chain((0..300).map(near)).collect();
    for n in [1, 2, 300, 301, 600] {
        let mut sorted = all[..n].to_vec();
        sorted.sort_unstable();
        for (rank, &digest) in sorted.iter().enumerate() {
            assert_eq!(nth(all[..n].iter().copied(), rank), Some(digest));
        }
    }
    assert_eq!(nth([Digest { hi: u64::MAX, lo: u64::MAX }].into_iter(), 0).map(|digest| digest.lo), Some(u64::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_a_map_in_any_order(
        mut queries in prop::collection::vec((0u64..400, 0u64..4), 0..3000),
        by in 0usize..3000,
    ) {
        let with_digests = |queries: &[(u64, u64)]| -> Vec<(Digest, u64)> {
            queries.iter().map(|&(i, weight)| (digest(i), weight * ONE / 2)).collect()
        };
        let forward = with_digests(&queries);
        check_exact(&forward, 0);
        let len = queries.len().max(1);
        queries.rotate_left(by % len);
        queries.reverse();
        prop_assert_eq!(count(0, &forward), count(0, &with_digests(&queries)));
    }

    /// Far too many values for the memory, with all kinds of weights: nothing is lost.
    #[test]
    fn weight_is_conserved_without_memory(seed: u64, distinct in 1u64..40_000, octaves in 1u32..40) {
        let queries: Vec<_> = (0..30_000)
            .map(|i| {
                let random = scramble(seed ^ scramble(i));
                (digest(random % distinct), (random >> 24) >> (random as u32 % octaves))
            })
            .collect();
        let counts = count(0, &queries);
        check(&counts, queries.iter().map(|query| query.1).sum());
        // The salt of the table is another one each time.
        prop_assert!(counts == count(0, &queries) && counts == count_with(aimed_at(0), &queries));
    }
}

/// Ranks 1 to about `distinct`, the chance of each about 1 / rank.
fn zipf(n: u64, distinct: f64) -> Vec<(Digest, u64)> {
    let share = |i| (scramble(i) >> 11) as f64 / (1u64 << 53) as f64;
    (0..n).map(|i| (digest(distinct.powf(share(i)) as u64), ONE)).collect()
}

/// Ten times as many values as the table holds: the frequent ones are all kept, and their counts are close.
#[test]
fn heavy_hitters_survive() {
    const MEMORY: u64 = 1 << 19;
    let room = MEMORY / 40;
    let queries = zipf(1_000_000, 400_000.0);
    let exact = oracle(&queries);
    assert!(exact.len() as u64 > 10 * room, "{} {room}", exact.len());
    let counts = count(MEMORY, &queries);
    check(&counts, queries.len() as u64 * ONE);
    assert!(!counts.exact && counts.known.len() as u64 > room / 2, "{} {room}", counts.known.len());

    let known: HashMap<Digest, u64> = counts.known.iter().copied().collect();
    let mut top: Vec<_> = exact.iter().map(|(&digest, &count)| (count, digest)).collect();
    top.sort_unstable_by(|a, b| b.cmp(a));
    // The classical bound of a count-min sketch: e / width of all weight, and then only for one in e^4.
    let width = MEMORY as f64 / 4.0 / 8.0 / ROWS as f64;
    let error = std::f64::consts::E / width * queries.len() as f64 * ONE as f64;
    for &(count, digest) in &top[..room as usize / 10] {
        let found = known.get(&digest).copied().unwrap_or(0);
        assert!(found.abs_diff(count) as f64 <= error, "{} for {}", found / ONE, count / ONE);
        assert!(found > 0);
    }
    // The first hundred came early and never left.
    assert!(top[..100].iter().all(|(count, digest)| known.get(digest) == Some(count)));
}

/// A value that becomes frequent only when the table is full of others comes in.
#[test]
fn latecomers_are_promoted() {
    let mut queries: Vec<_> = (0..100_000).map(|i| (digest(i), ONE)).collect();
    queries.extend((0..2000).map(|i| (digest(1_000_000 + i % 10), ONE)));
    let counts = count(1 << 17, &queries);
    check(&counts, queries.len() as u64 * ONE);
    for i in 0..10 {
        let at = counts.known.binary_search_by_key(&digest(1_000_000 + i), |known| known.0).unwrap();
        // Those before it in its cells may have added to it.
        assert!((190..=400).contains(&(counts.known[at].1 / ONE)), "{}", counts.known[at].1 / ONE);
    }
    // All others are alike: most of the table is still theirs.
    assert!(counts.known.len() > (1 << 17) / 40 / 2, "{}", counts.known.len());
}

#[test]
fn the_unseen_share_is_that_of_single_queries_and_of_the_outside() {
    let counts = count(0, &[(digest(1), ONE), (digest(2), 3 * ONE), (digest(3), ONE / 2), (digest(4), ONE)]);
    assert_eq!((counts.once, counts.queries), (2, 5 * ONE + ONE / 2));
    assert_eq!(counts.unseen(), 2.0 / 5.5);
    let counts = Counts { outside: 2 * ONE, queries: counts.queries + 2 * ONE, exact: false, ..counts };
    assert_eq!(counts.unseen(), 4.0 / 7.5);
}

#[test]
fn sums_do_not_wrap() {
    let mut counter = Counter::new(0);
    counter.push(digest(1), u64::MAX - 5).unwrap();
    counter.push(digest(1), 3).unwrap();
    let error = counter.push(digest(2), 2).and_then(|()| counter.push(digest(3), 1)).unwrap_err();
    assert!(error.to_string().starts_with("workload: the weights add up to 2^44"), "{error}");
    let counts = counter.finish();
    check_sum(&counts, u64::MAX);
    assert_eq!(counts.known.len(), 2);
}

fn check_sum(counts: &Counts, sum: u64) {
    assert_eq!((counts.known.iter().map(|known| known.1).sum::<u64>(), counts.queries), (sum, sum));
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
fn classes_are_in_order_and_know_their_heaviest() {
    let counts = (0..64).flat_map(|bit| [0, 1, 3, 5].map(|k| (1u64 << bit).saturating_add(k << bit >> 3)));
    for count in counts.chain(0..1000).chain([u64::MAX]) {
        let c = class(count);
        assert!(heaviest(c) >= count && class(heaviest(c)) == c, "{count}");
        assert!(heaviest(c) == u64::MAX || class(heaviest(c) + 1) == c + 1, "{count}");
    }
}
