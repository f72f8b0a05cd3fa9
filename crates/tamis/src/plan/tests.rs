//! requests -> plans: goals are met or rejected, and more negatives never narrow the first step.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::leaves::bloom::classic;

fn request(keys: u64, negatives: u64) -> Request {
    let (goal, kind, effort) = (Goal::Fpr(0.01), Kind::Auto, Effort::Balanced);
    Request {
        keys,
        shard_bits: 0,
        negatives,
        goal,
        kind,
        effort,
        layout: Layout::Auto,
        delta: 0.5,
        layers: recipes::cascade::LAYERS,
        first: None,
        columns: None,
        spare: 0.0,
        hash_bytes: 1,
    }
}

/// A goal that no size reaches is an error, not a filter with another rate.
#[test]
fn a_bloom_filter_reaches_its_rate_or_is_rejected() {
    for n in [1, 10, 1000] {
        let plan = |rate| plan(&Request { goal: Goal::Fpr(rate), kind: Kind::ClassicBloom, ..request(n, 0) });
        for rate in [1e-300, 5e-324] {
            assert!(matches!(plan(rate), Err(BuildError::BitsPerKey { .. } | BuildError::NoSize { .. })), "{rate}");
        }
        let Structure::Bloom(classic::PerKey { bits_per_key, hashes }) = plan(1e-100).unwrap().steps[0].structure
        else {
            panic!()
        };
        let bits = (n * bits_per_key as u64).div_ceil(256);
        assert!(crate::math::bloom::classic_rate(n, bits, hashes.into()) <= 1e-100);
    }
}

/// The width of the first of two steps; 0 if there is one.
fn first_width(plan: &Plan) -> u16 {
    match &plan.steps[..] {
        [Step { role: Role::Positive, structure: Structure::Ribbon(params) }, _] => params.width,
        [Step { role: Role::Positive, structure: Structure::Fuse(params) }, _] => params.width,
        [_] => 0,
        other => panic!("{other:?}"),
    }
}

/// A sieve built for few negatives must serve a plan for many.
#[test]
fn more_negatives_never_narrow_the_first_step() {
    for base in [Base::Ribbon, Base::Fuse, Base::Fuse4] {
        for goal in [Goal::Exact, Goal::Fpr(0.3), Goal::Fpr(0.01), Goal::Fpr(1e-5)] {
            for keys in [1, 50, 3000, 20_000, 2_000_000] {
                let mut before = 0;
                let mut negatives = keys;
                for _ in 0..90 {
                    let request = Request { goal, kind: Kind::Chained(base), ..request(keys, negatives) };
                    let plan = plan(&request).unwrap();
                    let width = first_width(&plan);
                    assert!(
                        width >= before,
                        "{base:?}, {goal:?}, {keys} keys, {negatives} negatives: {before}, {width}"
                    );
                    before = width;
                    assert_eq!(plan.sieve.is_some(), width > 0);
                    negatives += negatives / 4 + 1;
                }
            }
        }
    }
}

/// Algorithm 1 rounds log2 lambda down; the best width for the sizes there are is that or next to it.
#[test]
fn the_first_stage_has_about_log_lambda_bits() {
    for (lambda, bits) in [(1, 0..=0), (2, 0..=1), (3, 1..=1), (5, 2..=2), (10, 3..=3), (100, 6..=6), (1000, 9..=9)] {
        let kind = Kind::Chained(Base::Ribbon);
        let request = Request { goal: Goal::Exact, kind, ..request(1_000_000, lambda * 1_000_000) };
        let width = first_width(&plan(&request).unwrap());
        assert!(width.is_multiple_of(256) && bits.contains(&(width / 256)), "{lambda}: {width}");
    }
}

/// Sides change where there are more keys than negatives.
#[test]
fn the_shorter_side_is_listed() {
    for (kind, bits) in [(Kind::Chained(Base::Ribbon), 0.25), (Kind::Steered, 0.15)] {
        let request = Request { goal: Goal::Exact, kind, ..request(1_000_000, 20_000) };
        let steps = plan(&request).unwrap().steps;
        let roles: Vec<_> = steps.iter().map(|step| step.role).collect();
        assert_eq!((roles[0], roles[roles.len() - 1]), (Role::Negative, Role::Exact));
        assert!(request.bits_of(&steps) < bits * 1e6);
    }
}

#[test]
fn budgets_are_spent_and_not_exceeded() {
    for kind in [
        Kind::Steered,
        Kind::Chained(Base::Ribbon),
        Kind::Chained(Base::Fuse),
        Kind::Naive(Base::Ribbon),
        Kind::Cascade(Base::Bloom),
    ] {
        for bits in [6.0, 9.5, 14.0, 60.0] {
            let request = Request { goal: Goal::BitsPerKey(bits), kind, ..request(100_000, 200_000) };
            match plan(&request) {
                Ok(plan) => assert!(request.bits_of(&plan.steps) < bits * 1e5, "{kind:?} {bits}"),
                Err(BuildError::Budget { given, needed, .. }) => assert!(given < needed),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_rejected() {
    let reason = |request: Request| plan(&request).unwrap_err().to_string();
    let excluded = request(10, 10);
    assert!(reason(Request { kind: Kind::Ribbon, ..excluded }).starts_with("kind ribbon: cannot exclude"));
    assert!(
        reason(Request { kind: Kind::Bloom, goal: Goal::Exact, ..request(10, 0) })
            .starts_with("kind bloom: cannot be exact")
    );
    assert!(
        reason(Request { kind: Kind::Chained(Base::Bloom), ..excluded })
            .starts_with("kind classic-bloom: cannot store an exact layer")
    );
    for delta in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let cascade = Request { kind: Kind::Cascade(Base::Fuse), delta, ..excluded };
        assert!(reason(cascade).starts_with("delta "));
    }
}

/// The sieve of a steered plan: never wider than the first filter for any larger number of negatives, and growing.
#[test]
fn a_sieve_serves_every_later_plan() {
    for goal in [Goal::Exact, Goal::Fpr(0.3), Goal::Fpr(0.01), Goal::Fpr(1e-5)] {
        for keys in [1, 50, 3000, 20_000, 2_000_000] {
            let mut sieves = 0;
            let mut negatives = keys;
            for _ in 0..90 {
                let request = Request { goal, ..request(keys, negatives) };
                let planned = plan(&request).unwrap();
                if let Some(sieve) = planned.sieve {
                    let Structure::Ribbon(params) = sieve else { panic!("{sieve:?}") };
                    assert!(params.width >= sieves && params.width % 256 == 0 && params.nested);
                    sieves = params.width;
                }
                let first = match planned.steps.first() {
                    Some(Step { role: Role::Positive, structure: Structure::Ribbon(params) }) => params.width,
                    _ => 0,
                };
                assert!(first >= sieves, "{goal:?}, {keys} keys, {negatives} negatives: {first}, {sieves}");
                negatives += negatives / 4 + 1;
            }
        }
    }
}

/// What the optimiser promises is near the bound for every number of negatives per key, and what is planned is what it promised.
#[test]
fn exact_plans_are_near_the_bound() {
    // A plan counts on a little more than it will need.
    for (effort, most) in [(Effort::Balanced, 1.066), (Effort::Smallest, 1.05)] {
        for i in 0..160 {
            let lambda = 2f64.powf(f64::from(i) / 16.0);
            // With fewer negatives than that, what every table takes besides its rows shows.
            for lambda in [lambda, 1.0 / lambda.min(16.0)] {
                let keys = 1_400_000u64;
                let request =
                    Request { goal: Goal::Exact, effort, ..request(keys, (keys as f64 * lambda).round() as u64) };
                let bits = request.bits_of(&plan(&request).unwrap().steps) / keys as f64;
                let over = bits / crate::math::bounds::f(0.0, lambda);
                assert!(over > 1.0 && over < most, "{effort:?} {lambda}: {over}");
            }
        }
    }
}

/// Without excluded keys neither the steered kind nor the local layout changes anything.
#[test]
fn nothing_to_steer_against_is_a_plain_filter() {
    for effort in [Effort::Fast, Effort::Balanced, Effort::Smallest] {
        for goal in [Goal::Fpr(0.01), Goal::BitsPerKey(9.0), Goal::Exact] {
            let auto = plan(&Request { goal, effort, ..request(5000, 0) }).unwrap();
            for layout in [Layout::Auto, Layout::Local, Layout::Compact] {
                let steered = Request { goal, effort, layout, kind: Kind::Steered, ..request(5000, 0) };
                assert_eq!(plan(&steered).unwrap(), auto, "{goal:?} {effort:?} {layout:?}");
            }
        }
    }
}

/// A share is planned for with room for chance at every effort, and one that no width reaches is an exact set.
#[test]
fn every_share_has_a_plan() {
    for effort in [Effort::Fast, Effort::Balanced, Effort::Smallest] {
        for keys in [1, 300, 5000, 200_000] {
            for negatives in [1, keys, 11 * keys, 5000 * keys] {
                for share in [1e-300, 1e-12, 1e-3, 0.3, 0.999] {
                    let request = Request { goal: Goal::ExcludedFpr(share), effort, ..request(keys, negatives) };
                    let steps = plan(&request).unwrap().steps;
                    let exact = steps.last().is_some_and(|step| step.role == Role::Exact);
                    let passing: f64 = steps.iter().map(|step| step.structure.rate_at(1)).product();
                    let steered = steps.iter().any(|step| matches!(step.structure, Structure::Steered(_)));
                    assert!(exact || steered || passing < share, "{request:?} {steps:?}");
                }
            }
        }
    }
}

/// The layers of a prediction are its bits and its rates, in parts; a lower rate never takes fewer bytes.
#[test]
fn layers_add_up_and_sizes_grow() {
    for goal in [Goal::Fpr(0.01), Goal::BitsPerKey(9.0), Goal::Exact, Goal::ExcludedFpr(0.1)] {
        let request = Request { goal, ..request(100_000, 30_000) };
        let plan = compare(&request, None).unwrap().0;
        assert_eq!((plan.keys, plan.excluded), (100_000, 30_000));
        for design in plan.candidates.iter().filter_map(|c| c.prediction.as_ref().ok()) {
            let stored: f64 = design.layers.iter().map(|layer| layer.bits_per_key).sum();
            let rest = (design.bits_per_key - stored) * 100_000.0;
            assert!((rest - file_bits(&request, design.layers.len(), stored)).abs() < 1.0, "{goal:?} {design:?}");
            assert!(design.bits_per_key >= design.bound, "{goal:?} {design:?}");
            assert_eq!(design.layers[0].reached_by, [1.0; 3]);
            for pair in design.layers.windows(2) {
                let falls = |i: usize| pair[0].reached_by[i] - pair[1].reached_by[i];
                let stored = if pair[0].role == Role::Positive { 0 } else { 1 };
                assert!((0..3).all(|i| falls(i) >= 0.0) && falls(stored) == 0.0, "{design:?}");
            }
        }
        let size = |fpr| plan.at_fpr(fpr).unwrap().chosen().unwrap().prediction.as_ref().unwrap().bytes;
        assert!((1..20).map(|bits| size(2f64.powi(-bits))).is_sorted(), "{goal:?}");
        assert!(plan.at_fpr(0.0).is_err() && plan.at_fpr(f64::NAN).is_err());
    }
}
