#![allow(clippy::unwrap_used)]
use super::*;
use crate::plan::{Comparison, Effort, Layout, compare};

fn request(keys: u64, negatives: u64, goal: Goal) -> Request {
    Request {
        keys,
        shard_bits: 0,
        negatives,
        goal,
        kind: Kind::Auto,
        effort: Effort::Balanced,
        layout: Layout::Auto,
        delta: 0.5,
        layers: crate::plan::recipes::cascade::LAYERS,
        first: None,
        columns: None,
        spare: 0.0,
        hash_bytes: 1,
    }
}

fn zipf(exponent: f64) -> Shape {
    Shape::zipf(exponent, 100_000_000, 50_000_000).unwrap()
}

fn rate_of(comparison: &Comparison, name: &str) -> f64 {
    let found = comparison.candidates.iter().find(|c| c.name == name).unwrap();
    found.prediction.as_ref().unwrap().workload_fpr.unwrap()
}

/// The setting of [Stacked] section 8: 10 bits, a million keys, a hundred million negatives of which the top half is known.
#[test]
fn the_planner_beats_stacked_bloom_by_far() {
    for (exponent, times) in [(0.5, 20.0), (0.75, 27.0), (1.0, 36.0), (1.25, 48.0)] {
        let shape = zipf(exponent);
        let expected = Expected { shape: &shape, cap: None };
        let (comparison, design) = compare(&request(1_000_000, 0, Goal::BitsPerKey(10.0)), Some(expected)).unwrap();
        let (stacked, chosen) = (rate_of(&comparison, "stacked-bloom"), design.workload_fpr.unwrap());
        println!("{exponent}: {chosen:.3e}, stacked Bloom {stacked:.3e}, {:.1} times", stacked / chosen);
        assert!(stacked >= times * chosen, "{exponent}: {chosen:.3e}, stacked Bloom {stacked:.3e}");
        if exponent == 1.0 {
            assert!((1.70e-3..1.78e-3).contains(&stacked), "{stacked}");
            assert!(rate_of(&comparison, "stacked-cuckoo") <= 2.0e-3);
        }
        // Unlisted keys fare no worse than with the best plain Bloom filter.
        assert!(design.prediction.fpr <= rate_of(&comparison, "classic-bloom"));
    }
}

#[test]
fn a_cap_on_unlisted_keys_is_kept() {
    let shape = zipf(1.0);
    for cap in [0.5, 0.01, 0.001, 1e-5] {
        let expected = Expected { shape: &shape, cap: Some(cap) };
        let (comparison, design) = compare(&request(100_000, 0, Goal::Fpr(0.01)), Some(expected)).unwrap();
        assert!(design.prediction.fpr <= cap && design.workload_fpr.unwrap() <= 0.01);
        for forecast in comparison.candidates.iter().filter_map(|c| c.prediction.as_ref().ok()) {
            assert!(forecast.fpr <= cap * 1.0001, "{forecast:?}");
        }
    }
}

/// A cap is kept by what is built, rounded as it is, and a larger one is never rejected.
#[test]
fn a_cap_that_a_lower_one_keeps_is_kept() {
    let classes = (1..=1000u64).map(|rank| ((20_000_000 / (rank * 200)) as f64, 200));
    let shape = Shape::new(classes, 0.01).unwrap();
    for &(name, kind) in Kind::ALL {
        let caps: &[f64] = if matches!(kind, Kind::Stacked(_)) {
            &[0.004, 0.0083, 0.0084, 0.0090, 0.0095, 0.0100, 0.011, 0.0125, 0.013, 0.03, 1.0]
        } else {
            &[0.001, 0.004, 0.0095, 0.03, 1.0]
        };
        for keys in [2000, 20_000, 300_000] {
            let request = request(keys, 0, Goal::BitsPerKey(10.0));
            let mut kept = None;
            for &cap in caps {
                match design(kind, &request, Some(Expected { shape: &shape, cap: Some(cap) })) {
                    Ok(design) => {
                        assert!(design.prediction.fpr <= cap * 1.0001, "{name} {keys} {cap}");
                        assert!(design.prediction.bits <= 10.0001 * keys as f64, "{name} {keys} {cap}");
                        kept.get_or_insert(cap);
                    }
                    Err(error) => assert!(kept.is_none(), "{name}, {keys}: {kept:?} is kept, {cap} is not: {error}"),
                }
            }
            if kind == Kind::Stacked(Base::Bloom) {
                let first = if keys < 10_000 { 0.0100 } else { 0.0084 };
                assert!(kept.is_some_and(|cap| cap <= first), "{keys}: {kept:?}");
            }
        }
    }
    let named = Request { kind: Kind::Stacked(Base::Bloom), ..request(20_000, 0, Goal::BitsPerKey(10.0)) };
    let error = design(named.kind, &named, Some(Expected { shape: &shape, cap: Some(0.008) })).unwrap_err().to_string();
    assert!(error.starts_with("fpr 0.008: not possible with the other options; expected at least 8.3"), "{error}");
}

/// Where no cap is given there is one: the rate, or half a bit more than without expected queries.
#[test]
fn without_a_cap_there_is_a_ceiling() {
    // All of it is known, and nothing else is to come.
    let shape = Shape::new([(3.0, 10_000), (2.0, 10_000)], 0.0).unwrap();
    let expected = Some(Expected { shape: &shape, cap: None });
    for &(_, kind) in Kind::ALL {
        for keys in [100, 5000, 200_000] {
            let of = |goal: Goal| Request { kind, ..request(keys, 0, goal) };
            if let Ok(design) = design(kind, &of(Goal::Fpr(0.001)), expected) {
                assert!(design.cap == 0.001 && design.prediction.fpr <= 0.001 * 1.0001, "{kind:?} {keys}");
            }
            let budget = of(Goal::BitsPerKey(11.0));
            let Ok(design) = design(kind, &budget, expected) else { continue };
            let plain = predict(&plan(&budget).unwrap().steps, &budget).fpr;
            assert!(design.prediction.fpr <= design.cap * 1.0001, "{kind:?} {keys}");
            assert!(design.known == 0 || design.cap <= GUARD * plain, "{kind:?} {keys}: {} {plain}", design.cap);
        }
    }
}

/// Nothing that the planner looked at is better than what it takes, by more than the slack for speed.
#[test]
fn the_best_is_chosen() {
    let shape = zipf(0.75);
    let expected = Some(Expected { shape: &shape, cap: None });
    for goal in [Goal::BitsPerKey(6.0), Goal::BitsPerKey(14.0), Goal::Fpr(0.03), Goal::Fpr(1e-4)] {
        let (comparison, design) = compare(&request(300_000, 0, goal), expected).unwrap();
        let open = comparison.candidates.iter().filter(|c| eligible(c.kind, Effort::Balanced));
        for forecast in open.filter_map(|c| c.prediction.as_ref().ok()) {
            match goal {
                Goal::BitsPerKey(bits) => {
                    assert!(forecast.bits_per_key <= bits * 1.0001, "{goal:?} {forecast:?}");
                    assert!(design.workload_fpr.unwrap() <= 1.031 * forecast.workload_fpr.unwrap());
                }
                Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => {
                    assert!(design.prediction.bits <= 1.004 * forecast.bits_per_key * 300_000.0, "{forecast:?}")
                }
            }
        }
        assert_eq!(comparison.candidates.iter().filter(|c| c.chosen).count(), 1);
        assert!(!comparison.reasons.is_empty());
    }
}

/// Without expected queries the planner marks what a plain build makes.
#[test]
fn without_expectations_the_plan_is_the_builds() {
    for (negatives, goal) in [(0, Goal::Fpr(0.01)), (80_000, Goal::Exact), (500, Goal::Fpr(0.001))] {
        let request = request(10_000, negatives, goal);
        let (comparison, design) = compare(&request, None).unwrap();
        assert_eq!(design.plan.steps, plan(&request).unwrap().steps);
        assert_eq!(comparison.candidates.iter().filter(|c| c.chosen).count(), 1);
    }
}

#[test]
fn what_cannot_be_reached_says_what_could() {
    let shape = zipf(1.0);
    let expected = Some(Expected { shape: &shape, cap: Some(1e-4) });
    let bloom = Request { kind: Kind::ClassicBloom, ..request(100_000, 0, Goal::BitsPerKey(15.0)) };
    let error = compare(&bloom, expected).unwrap_err().to_string();
    assert!(error.contains("; use kind ") && error.contains("ribbon"), "{error}");
    let tiny = compare(&request(100_000, 0, Goal::BitsPerKey(0.001)), Some(Expected { shape: &shape, cap: None }));
    let error = tiny.unwrap_err().to_string();
    assert!(error.contains("too small for 100000 keys; expected at least "), "{error}");
    let excluded = Request { kind: Kind::Stacked(Base::Bloom), ..request(1000, 10, Goal::Fpr(0.01)) };
    let error = compare(&excluded, expected).unwrap_err().to_string();
    assert!(error.contains("kind stacked-bloom: cannot exclude keys; expected steered"), "{error}");
}

/// All sizes, skews and goals give a plan or an error, and the plan is quick.
#[test]
fn plans_for_all_sizes() {
    for keys in [0, 1, 2, 10, 1000, 1_000_000, 1 << 40] {
        for known in [1, 2, 1000, 1_000_000] {
            let shape = Shape::new([(2.0, known)], 0.25).unwrap();
            for goal in [Goal::Fpr(0.3), Goal::Fpr(1e-9), Goal::BitsPerKey(12.0), Goal::Exact] {
                let expected = Some(Expected { shape: &shape, cap: None });
                if let Ok((_, design)) = compare(&request(keys, 0, goal), expected) {
                    assert!(design.known <= known && design.prediction.fpr <= 1.0, "{keys} {known} {goal:?}");
                }
            }
        }
    }
}
