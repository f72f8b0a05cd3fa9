#![allow(clippy::unwrap_used)]
use super::*;
use crate::hash::scramble;
use std::collections::HashSet;

/// Numbers from 0 to 1.
fn uniform(state: &mut u64) -> f64 {
    *state = scramble(*state);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// Values drawn by a law, each as its number; those that are not known get numbers of their own.
fn draw(sums: &[f64], state: &mut u64) -> u64 {
    let at = uniform(state);
    match sums.partition_point(|&sum| sum <= at) {
        rank if rank < sums.len() => rank as u64,
        _ => scramble(*state) | 1 << 63,
    }
}

fn sums(shape: &Shape) -> Vec<f64> {
    (1..=shape.known()).map(|rank| shape.mass(rank)).collect()
}

/// Both expectations against draws.
#[test]
fn what_is_seen_is_what_was_expected() {
    let laws = [
        (Shape::zipf(1.0, 20_000, 20_000).unwrap(), [100, 3000, 100_000]),
        (Shape::zipf(0.5, 5000, 2500).unwrap(), [300, 1000, 20_000]),
        (Shape::new([(5.0, 10), (1.0, 300)], 0.2).unwrap(), [1, 50, 1000]),
    ];
    for (shape, lengths) in laws {
        let sums = sums(&shape);
        for queries in lengths {
            let rounds = 60;
            let (mut masses, mut counts) = (vec![], vec![]);
            for round in 0..rounds {
                let mut state = scramble(round + 1000 * queries);
                let seen: HashSet<u64> = (0..queries).map(|_| draw(&sums, &mut state)).collect();
                masses.push(seen.iter().map(|&rank| if rank >> 63 == 0 { shape.share(rank + 1) } else { 0.0 }).sum());
                counts.push(seen.len() as f64);
            }
            let (psi, known) = observed(&shape, queries);
            within(&masses, psi);
            within(&counts, known);
        }
    }
}

#[track_caller]
fn within(sample: &[f64], expected: f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let sigma = (sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    assert!((mean - expected).abs() <= 4.5 * sigma + 1e-9, "{mean} +- {sigma}, expected {expected}");
}

/// The rates before and after, and their mean, against a stack of coins: every value passes a layer it is not in by its rate.
#[test]
fn the_mean_rate_is_that_of_a_simulated_stack() {
    let shape = Shape::zipf(1.0, 20_000, 20_000).unwrap();
    let (keys, lifetime) = (2000, 40_000);
    let plan = quick(Size::BLOOM, false, keys, &shape, 8.0, lifetime).unwrap();
    assert!(plan.queries < lifetime && plan.bits <= 8.0 + 1e-9);
    let sums = sums(&shape);
    let coin = |value: u64, layer: u64, salt: u64, rate: f64| {
        let hash = scramble(value ^ scramble(layer ^ scramble(salt)));
        (hash >> 11) as f64 / ((1u64 << 53) as f64) < rate
    };
    let (mut rates, mut late_rates) = (vec![], vec![]);
    for salt in 0..400 {
        let mut state = scramble(salt);
        let mut second = HashSet::new();
        let (mut passed, mut late) = (0, 0);
        for query in 0..lifetime {
            let value = draw(&sums, &mut state);
            let passes = |layer: u64| coin(value, layer, salt, plan.alphas[layer as usize]);
            if !passes(0) {
                continue;
            }
            if query < plan.queries {
                second.insert(value);
                passed += 1;
            } else if !(second.contains(&value) || passes(1)) || passes(2) {
                passed += 1;
                late += 1;
            }
        }
        rates.push(f64::from(passed) / lifetime as f64);
        late_rates.push(f64::from(late) / (lifetime - plan.queries) as f64);
    }
    within(&rates, plan.mean);
    within(&late_rates, plan.late);
}

/// The search against a brute grid of its own.
#[test]
fn no_plan_of_a_grid_is_better() {
    let shape = Shape::zipf(1.0, 1_000_000, 500_000).unwrap();
    for (size, whole) in [(Size::BLOOM, false), (Size::CUCKOO_SEMI_SORTED, true), (Size::QUOTIENT, true)] {
        for (budget, lifetime) in [(8.0, 100_000), (12.0, 1_000_000)] {
            let plan = quick(size, whole, 10_000, &shape, budget, lifetime).unwrap();
            assert!(plan.bits <= budget * (1.0 + 1e-9), "{plan:?}");
            let mut least = f64::INFINITY;
            for look in 1..60 {
                let queries = (lifetime as f64 * 0.8f64.powi(look)) as u64;
                let (psi, known) = observed(&shape, queries);
                let power = |i: u32| if whole { 0.5f64.powi(i as i32) } else { 0.5f64.powf(f64::from(i) / 3.0) };
                for [first, second, third] in (1..40)
                    .flat_map(|a| (1..30).map(move |b| [a, b]))
                    .flat_map(|[a, b]| (1..30).map(move |c| [a, b, c]))
                {
                    let alphas = [first, second, third].map(power);
                    if alphas.iter().any(|&alpha| alpha > 0.5)
                        || bits(size, known / 10_000.0, &alphas) > budget
                        || alphas[0] * known < MIN_ENTRIES
                    {
                        continue;
                    }
                    let early = queries as f64 / lifetime as f64;
                    least = least.min(early * alphas[0] + (1.0 - early) * expected_rate(psi, &alphas));
                }
            }
            assert!(plan.mean <= least * 1.003, "{size:?}, {budget}: {plan:?}, {least}");
        }
    }
}

#[test]
fn where_nothing_can_be_learned_there_is_no_plan() {
    let nobody = Shape::zipf(1.0, 0, 0).unwrap();
    assert_eq!(quick(Size::BLOOM, false, 1000, &nobody, 10.0, 1_000_000), None);
    let shape = Shape::zipf(1.0, 1_000_000, 500_000).unwrap();
    assert_eq!(quick(Size::BLOOM, false, 1000, &shape, 10.0, 10), None);
    assert_eq!(quick(Size::BLOOM, false, 0, &shape, 10.0, 1000), None);
    assert_eq!(quick(Size::BLOOM, false, 1000, &shape, f64::NAN, 1000), None);
    assert_eq!(quick(Size::CUCKOO, true, 1000, &shape, 1.0, 1000), None);
}
