//! layers -> sums: the formulas against a simulation, and the theorems against sizes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::math::shape::Shape;

/// Numbers from 0 to 1, always the same.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// What a simulated stack does: a layer lets its own entries pass, and others by chance.
#[derive(Default)]
struct Simulated {
    bits: f64,
    known_passed: f64,
    unknown_passed: f64,
    checks: Checks,
}

fn simulate(size: Size, keys: u32, known: u32, alphas: &[f64], seed: u64) -> Simulated {
    let mut state = seed;
    let mut result = Simulated::default();
    let unknown = 200_000;
    let (mut own, mut other, mut strangers) = (keys, known, unknown);
    let mut pass = |count: u32, alpha: f64| (0..count).filter(|_| random(&mut state) < alpha).count() as u32;
    for (i, &alpha) in alphas.iter().enumerate() {
        let (keys_here, known_here) = if i % 2 == 0 { (own, other) } else { (other, own) };
        result.checks.key += f64::from(keys_here) / f64::from(keys);
        result.checks.known += f64::from(known_here) / f64::from(known);
        result.checks.unknown += f64::from(strangers) / f64::from(unknown);
        result.bits += f64::from(own) * size.bits(alpha) / f64::from(keys);
        let passed = pass(strangers, alpha);
        if i % 2 == 1 {
            result.unknown_passed += f64::from(strangers - passed) / f64::from(unknown);
        }
        strangers = passed;
        (own, other) = (pass(other, alpha), own);
    }
    // After an odd number of layers the next would hold negatives.
    result.known_passed = f64::from(own) / f64::from(known);
    result.unknown_passed += f64::from(strangers) / f64::from(unknown);
    result
}

#[test]
fn the_sums_are_those_of_a_simulation() {
    for alphas in [&[0.3, 0.2, 0.4, 0.5, 0.1][..], &[0.5; 7], &[0.05], &[0.2, 0.7, 0.3]] {
        let (keys, known) = (100_000, 300_000);
        let real = simulate(Size::CUCKOO, keys, known, alphas, 7);
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 0.01 * expected + 0.002, "{found} {expected}")
        };
        near(real.known_passed, known_rate(alphas));
        near(real.unknown_passed, unknown_rate(alphas));
        near(real.bits, bits(Size::CUCKOO, 3.0, alphas));
        let expected = checks(alphas);
        near(real.checks.key, expected.key);
        near(real.checks.known, expected.known);
        near(real.checks.unknown, expected.unknown);
    }
}

#[test]
fn equal_rates_are_the_general_sums() {
    for alpha in [0.5, 0.1, 0.003] {
        for layers in [1, 3, 5, 9] {
            let alphas = vec![alpha; layers];
            let count = layers as u32;
            let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
            near(equal_rate(0.6, alpha, count), expected_rate(0.6, &alphas));
            near(equal_bits(Size::QUOTIENT, 7.0, alpha, count), bits(Size::QUOTIENT, 7.0, &alphas));
            assert!(endless_bits(Size::QUOTIENT, 7.0, alpha) >= equal_bits(Size::QUOTIENT, 7.0, alpha, count));
            // Equation 3.
            let found = checks(&alphas);
            assert!(found.key <= 2.0 / (1.0 - alpha) && found.unknown <= 1.0 / (1.0 - alpha));
            assert!(found.known <= (1.0 + 2.0 * alpha) / (1.0 - alpha));
        }
    }
    // The share of unknown values that pass is never below that of known ones.
    let mut state = 3;
    for _ in 0..1000 {
        let alphas: Vec<f64> = (0..7).map(|_| random(&mut state)).collect();
        assert!(unknown_rate(&alphas) >= known_rate(&alphas) && unknown_rate(&alphas) <= alphas[0] + 1e-15);
    }
}

#[test]
fn theorem_2_one_minimum() {
    for size in [Size::BLOOM, Size::CUCKOO, Size::QUOTIENT, Size { c: 0.01, f: 1.0 }] {
        for nu in [0.0, 0.5, 1.0, 1.5, 10.0, 1e4, 1e9] {
            let best = best_alpha(size, nu);
            let mut before = f64::INFINITY;
            for i in 1..2000 {
                let alpha = exp2(-40.0 * (1.0 - f64::from(i) / 2000.0));
                let now = endless_bits(size, nu, alpha);
                // Falling before, rising after; the last digits aside.
                if alpha < best {
                    assert!(now <= before * (1.0 + 1e-11), "{size:?} {nu} {alpha}");
                } else if before.is_finite() && alpha * exp2(-0.02) > best {
                    assert!(now >= before * (1.0 - 1e-11), "{size:?} {nu} {alpha}");
                }
                before = now;
            }
        }
    }
}

#[test]
fn observed_queries_by_hand() {
    let shape = Shape::new([(8.0, 1), (1.0, 4)], 0.4).unwrap();
    assert_eq!(observed(&shape, 0), (0.0, 0.0));
    let (psi, known) = observed(&shape, 1);
    assert!((known - 1.0).abs() < 1e-12 && (psi - (0.16 + 4.0 * 0.0025)).abs() < 1e-12);
    let (psi, known) = observed(&shape, 1_000_000);
    assert!((psi - 0.6).abs() < 1e-9 && (known - 400_005.0).abs() < 1e-6);
}
