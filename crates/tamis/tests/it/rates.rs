//! goals -> what is measured: the share of strangers let through, and the bits spent.

use tamis::{BuildError, Effort, Error, Filter, Kind};

use super::{SHAPES, integers};

/// How many of `strangers` keys that are not in it the filter lets through.
fn passed(filter: &Filter, strangers: u64) -> u64 {
    let (mut keys, mut answers) = ([0u64; 4096], [false; 4096]);
    let mut all = integers(strangers, 2);
    let mut count = 0;
    loop {
        let len = keys.iter_mut().zip(&mut all).map(|(place, key)| *place = key).count();
        if len == 0 {
            return count;
        }
        filter.contains_into(&keys[..len], &mut answers[..len]).unwrap();
        count += answers[..len].iter().filter(|&&yes| yes).count() as u64;
    }
}

/// The measured rate lies within four standard deviations of the promised one, and the promise keeps the goal.
fn check(name: &str, kind: Kind, effort: Effort, n: u64, goal: f64) {
    let filter = tamis::build(integers(n, 1)).kind(kind).effort(effort).fpr(goal).finish().unwrap();
    let rate = filter.fpr();
    assert!(rate <= goal * 1.0001, "{name}, {n} keys: promises {rate}, asked for {goal}");
    // Enough unlisted keys for a sigma of 4 % of the rate; of the lowest rates, as many as a test has time for.
    let strangers = ((600.0 / rate) as u64).clamp(20_000, 4_000_000);
    let expected = strangers as f64 * rate;
    let sigma = (expected * (1.0 - rate)).sqrt();
    let found = passed(&filter, strangers) as f64;
    assert!(
        (found - expected).abs() <= 4.0 * sigma,
        "{name}, {n} keys, goal {goal}: {found} of {strangers} passed, expected {expected:.1} +- {sigma:.1}"
    );
}

/// Small filters differ much from one another, so the mean over many seeds is measured; it must keep the goal, and from a
/// thousand keys on be what was promised.
fn small(name: &str, kind: Kind, effort: Effort, n: u64, goal: f64) {
    const SEEDS: u64 = 100;
    const EACH: u64 = 4000;
    let (mut shares, mut promised) = (vec![], 0.0);
    for seed in 0..if n < 1000 { SEEDS } else { SEEDS / 5 } {
        let build = tamis::build(integers(n, 1)).kind(kind).effort(effort).fpr(goal).seed(seed);
        let filter = build.threads(1).finish().unwrap();
        promised += filter.fpr();
        shares.push(passed(&filter, EACH) as f64 / EACH as f64);
    }
    let count = shares.len() as f64;
    let (mean, promised) = (shares.iter().sum::<f64>() / count, promised / count);
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (count - 1.0);
    // Both the chance of the unlisted keys and that of the filters is in the variance of the shares.
    let sigma = (variance / count).sqrt().max((goal / (count * EACH as f64)).sqrt());
    assert!(promised <= goal * 1.0001, "{name}, {n} keys: promises {promised}, asked for {goal}");
    assert!(mean <= goal + 4.0 * sigma, "{name}, {n} keys, goal {goal}: {mean} pass, +- {sigma}");
    let near = (mean - promised).abs() <= 4.0 * sigma;
    assert!(n < 1000 || near, "{name}, {n} keys, goal {goal}: {mean} pass, promised {promised} +- {sigma}");
}

/// One test per shape: they run side by side, and a failure names the structure.
macro_rules! rates {
    ($($name:ident: $kind:expr, $effort:expr;)*) => { $(
        mod $name {
            use super::*;

            const NAME: &str = stringify!($name);

            #[test]
            fn whole_widths() {
                for r in 1..=16 {
                    check(NAME, $kind, $effort, 25_000, 0.5f64.powi(r));
                }
            }

            #[test]
            fn fractions() {
                for goal in [0.3, 0.03, 0.01, 0.007, 0.001] {
                    check(NAME, $kind, $effort, 100_000, goal);
                }
            }

            #[test]
            fn small_sets() {
                for n in [1, 2, 10, 60, 64, 100, 500, 1000, 9000] {
                    for goal in [0.3, 0.125, 0.01] {
                        small(NAME, $kind, $effort, n, goal);
                    }
                }
            }

            #[test]
            fn budgets() {
                super::budgets(NAME, $kind, $effort);
            }
        }
    )* };
}

shapes!(rates);

/// A budget of bits per key covers the whole file, and large sets use it up.
fn budgets(name: &str, kind: Kind, effort: Effort) {
    for n in [100u64, 1000, 10_000, 10_001, 60_000, 300_000] {
        for budget in [9.0, 10.5, 13.0, 17.3] {
            let build = tamis::build(integers(n, 1)).kind(kind).effort(effort).bits_per_key(budget).threads(1);
            let filter = match build.finish() {
                Ok(filter) => filter,
                Err(Error::Build(BuildError::Budget { .. })) if n == 100 => continue,
                Err(e) => panic!("{name}, {n} keys, {budget} bits: {e}"),
            };
            let spent = filter.as_bytes().len() as f64 * 8.0 / n as f64;
            assert!(spent <= budget, "{name}, {n} keys: {spent} bits spent, {budget} allowed");
            assert!(n < 10_000 || spent > budget * 0.96, "{name}, {n} keys: {spent} bits spent of {budget}");
        }
    }
}

fn refused(build: tamis::FilterBuilder<'_>) -> String {
    match build.finish() {
        Err(Error::Build(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn impossible_goals_are_rejected_in_words() {
    for &(name, kind, effort) in SHAPES {
        let build = || tamis::build(integers(100, 1)).kind(kind).effort(effort);
        for (rate, text) in [(0.0, "0"), (1.0, "1"), (-0.5, "-0.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let expected = format!("fpr {text}: out of range; expected 0 to 1");
            assert!(refused(build().fpr(rate)).starts_with(&expected), "{name}");
        }
        for (bits, text) in [(0.0, "0"), (-3.0, "-3"), (f64::NAN, "NaN"), (1e9, "1000000000")] {
            let expected = format!("bits_per_key {text}: out of range; expected 0 to 4096");
            assert!(refused(build().bits_per_key(bits)).starts_with(&expected), "{name}");
        }
    }
    for kind in [Kind::Auto, Kind::Ribbon, Kind::Fuse, Kind::Fuse4] {
        let low = refused(tamis::build(integers(100, 1)).kind(kind).fpr(1e-12));
        assert!(
            low.starts_with("fpr 1e-12: too small for kind ") && low.contains("; expected at least 2.4e-10"),
            "{low}"
        );
    }
    let cuckoo = refused(tamis::build(integers(100, 1)).kind(Kind::Cuckoo).fpr(1e-12));
    assert!(cuckoo.starts_with("fpr 1e-12: too small for kind cuckoo"), "{cuckoo}");
    let quotient = refused(tamis::build(integers(100, 1)).kind(Kind::Quotient).fpr(1e-12));
    assert!(quotient.contains("too small for a quotient filter"), "{quotient}");
    // A goal is checked even where there is nothing to build.
    assert!(refused(tamis::build([0u64; 0]).fpr(2.0)).contains("fpr 2: out of range"));
}

/// A budget that is too small is answered with the smallest that works; and it does work.
#[test]
fn the_smallest_budget_is_named_and_works() {
    for &(name, kind, effort) in SHAPES {
        for n in [10u64, 1000, 50_000] {
            let build = || tamis::build(integers(n, 1)).kind(kind).effort(effort);
            // Bloom filters have a size for nearly any budget; only room for the file itself may be missing.
            if matches!(kind, Kind::Bloom | Kind::ClassicBloom) && n > 1000 {
                continue;
            }
            let smallest = match build().bits_per_key(0.1).finish() {
                Err(Error::Build(BuildError::Budget { keys, given: 0.1, needed })) if keys == n => needed,
                other => panic!("{name}, {n} keys: {other:?}"),
            };
            // The number is rounded to hundredths.
            let filter = build().bits_per_key(smallest + 0.01).finish().unwrap();
            assert!(filter.as_bytes().len() as f64 * 8.0 <= (smallest + 0.01) * n as f64, "{name}, {n} keys");
            assert!(integers(n, 1).all(|key| filter.contains(key) == Ok(true)));
        }
    }
}

#[test]
fn more_bits_let_fewer_unlisted_keys_through() {
    for &(name, kind, effort) in SHAPES {
        let rate = |bits| {
            let build = tamis::build(integers(20_000, 1)).kind(kind).effort(effort).bits_per_key(bits);
            build.finish().unwrap().fpr()
        };
        let least = match kind {
            Kind::Cuckoo => 4.5,   // fingerprints have four bits at least
            Kind::Quotient => 3.5, // a slot has three bits and an eighth at least
            _ => 3.0,
        };
        let rates = [least, 5.0, 8.0, 12.0, 20.0].map(rate);
        assert!(rates.is_sorted_by(|a, b| a > b), "{name}: {rates:?}");
    }
}
