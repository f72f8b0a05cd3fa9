//! members and excluded keys -> the weights of a model, by integers alone.
//!
//! Logistic regression by stochastic gradient descent: the score of each key is compared with what it is, and all its weights move a little
//! towards it. Keys come in the order of their digests, which is random and the same for any order of the input. Weights are numbers of 20
//! binary places while they are trained, and signed sixteenths in the model.

use super::grams::for_each_run;
use crate::error::BuildError;
use crate::math::portable::exp2;

/// A key, and whether it is a member.
pub(super) type Example<'a> = (&'a [u8], bool);

/// How often all keys are read.
const EPOCHS: i64 = 5;
/// Binary places of weights, and of probabilities.
const PLACES: u32 = 20;
const PROBABILITY: u32 = 16;
/// Of weights in the model.
const MODEL_PLACES: u32 = 4;
/// The first step: .02 of the error, in units of 2^-10 for numbers of these places.
const STEP: i64 = 328;
/// Runs of a key of usual length: keys of more take smaller steps for each.
const RUNS: i64 = 40;
/// The largest score whose probability is told apart, and entries of the table for each unit.
const REACH: i64 = 8;
const ENTRIES: i64 = 64;

/// The probability of a member for a score of 20 places: a table, made of operations that round alike everywhere.
fn probabilities() -> Vec<i64> {
    let places = (-REACH * ENTRIES)..=(REACH * ENTRIES);
    let logistic = |at: i64| 1.0 / (1.0 + exp2(-(at as f64) / ENTRIES as f64 * std::f64::consts::LOG2_E));
    places.map(|at| (logistic(at) * (1u32 << PROBABILITY) as f64).round() as i64).collect()
}

/// Trains 2^bits weights.
pub(super) fn train(
    examples: &[Example<'_>],
    bits: u32,
    stop: &dyn Fn() -> Result<(), BuildError>,
) -> Result<Vec<u8>, BuildError> {
    let table = probabilities();
    let mut weights = vec![0i32; 1 << bits];
    let mut runs = vec![];
    let most = REACH as i32 * (1 << PLACES);
    for epoch in 0..EPOCHS {
        for (number, &(key, is_member)) in examples.iter().enumerate() {
            if number % 65_536 == 0 {
                stop()?;
            }
            runs.clear();
            for_each_run(key, bits, |at| runs.push(at));
            let score: i64 = runs.iter().map(|&at| i64::from(weights[at])).sum();
            let entry = (score >> PLACES.saturating_sub(ENTRIES.ilog2())).clamp(-REACH * ENTRIES, REACH * ENTRIES);
            let probability = table[(entry + REACH * ENTRIES) as usize];
            let error = (i64::from(is_member) << PROBABILITY) - probability;
            let step = error * STEP * (EPOCHS - epoch) / EPOCHS * RUNS / RUNS.max(runs.len() as i64) / 1024;
            for &at in &runs {
                weights[at] = (weights[at] + step as i32).clamp(-most, most);
            }
        }
    }
    let half = 1 << (PLACES - MODEL_PLACES - 1);
    let quantised = |weight: i32| ((weight + half) >> (PLACES - MODEL_PLACES)).clamp(-127, 127) as i8 as u8;
    Ok(weights.into_iter().map(quantised).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::learned::{Grams, Scorer};

    #[test]
    fn probabilities_are_the_logistic_function() {
        let table = probabilities();
        assert_eq!(table.len(), 1025);
        for (at, &p) in table.iter().enumerate() {
            let exact = 1.0 / (1.0 + (-(at as f64 - 512.0) / 64.0).exp());
            assert!((p as f64 / 65_536.0 - exact).abs() < 1e-5, "{at}: {p}");
        }
    }

    /// Keys that differ by one letter somewhere are told apart, and one class alone does no harm.
    #[test]
    fn it_learns_what_there_is_to_learn() {
        let names: Vec<String> =
            (0..2000).map(|i| format!("{}{}", i * 7919 % 9973, if i % 2 == 0 { "q" } else { "" })).collect();
        let examples: Vec<Example<'_>> = names.iter().map(|name| (name.as_bytes(), name.ends_with('q'))).collect();
        let model =
            |examples: &[Example<'_>]| Grams::from_bytes(train(examples, 10, &|| Ok(())).unwrap().into()).unwrap();
        let grams = model(&examples);
        let right = examples.iter().filter(|(key, member)| (grams.score(key) > 0) == *member).count();
        assert!(right > 1990, "{right}");
        let members: Vec<_> = examples.iter().copied().filter(|example| example.1).collect();
        assert!(members.iter().all(|(key, _)| model(&members).score(key) > 0));
    }

    #[test]
    fn the_caller_can_stop_it() {
        let stopped = train(&[(b"key", true)], 6, &|| Err(BuildError::Cancelled));
        assert!(matches!(stopped, Err(BuildError::Cancelled)));
    }
}
