//! weights -> masses: sums by hand, laws at their ends, and weights that are none.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn masses_and_ranks_are_inverse() {
    let shape = Shape::new([(3.0, 5), (1.0, 100), (10.0, 2), (3.0, 1)], 0.25).unwrap();
    assert_eq!(shape.known(), 108);
    assert_eq!(shape.classes().map(|class| class.1).collect::<Vec<_>>(), [2, 6, 100]);
    let mut before = 0.0;
    for top in 1..=108 {
        let mass = shape.mass(top);
        assert!((mass - before - shape.share(top)).abs() < 1e-12, "{top}");
        assert_eq!(shape.top(mass - 1e-9), top);
        before = mass;
    }
    assert_eq!(shape.mass(0), 0.0);
    assert_eq!(shape.mass(u64::MAX), 0.75);
    assert_eq!(shape.top(0.75), 108);
    assert_eq!(shape.top(2.0), 108);
    assert_eq!((shape.top(0.0), shape.top(-1.0), shape.top(f64::NAN)), (0, 0, 0));
    assert_eq!((shape.share(0), shape.share(109)), (0.0, 0.0));
}

#[test]
fn bad_weights_are_errors() {
    for weight in [f64::NAN, f64::INFINITY, -1.0] {
        let error = Shape::new([(weight, 1)], 0.0).unwrap_err();
        assert!(error.to_string().starts_with("weight "), "{error}");
    }
    for unseen in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(Shape::new([(1.0, 1)], unseen), Err(ShapeError::Parameter { .. })));
    }
    assert_eq!(Shape::new([(1.0, u64::MAX), (2.0, 1)], 0.0), Err(ShapeError::TooMany));
    assert!(Shape::zipf(f64::NAN, 5, 5).is_err());
    // Weights at both ends of the numbers, and none at all.
    let wide = Shape::new([(f64::MAX, u64::MAX - 9), (f64::MIN_POSITIVE, 3), (0.0, 9)], 0.5).unwrap();
    assert_eq!((wide.known(), wide.mass(u64::MAX)), (u64::MAX - 6, 0.5));
    let none = Shape::new([(0.0, 9), (1.0, 0)], 0.0).unwrap();
    assert_eq!((none.known(), none.unseen(), none.mass(7), none.top(0.5)), (0, 1.0, 0.0, 0));
}

#[test]
fn merged_classes_meet_where_they_should() {
    // 20,000 different weights; sums by hand.
    let weights: Vec<f64> = (1..=20_000u32).map(|i| 1e6 / f64::from(i) + f64::from(i % 7) * 1e-4).collect();
    let shape = Shape::new(weights.iter().map(|&weight| (weight, 1)), 0.1).unwrap();
    assert!(shape.classes().len() <= MAX_CLASSES + 1 && shape.classes().len() > 1000, "{}", shape.classes().len());
    assert_eq!(shape.known(), 20_000);
    let mut sorted = weights;
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().sum();
    let (mut sum, mut top) = (0.0, 0);
    let mut borders = shape
        .classes()
        .scan(0, |ranks, class| {
            *ranks += class.1;
            Some(*ranks)
        })
        .peekable();
    for weight in sorted {
        sum += weight * 0.9 / total;
        top += 1;
        let exact = if borders.next_if_eq(&top).is_some() { 1e-12 } else { 1e-6 };
        assert!((shape.mass(top) - sum).abs() < exact, "{top}");
    }
}

#[test]
fn zipf_is_the_sum() {
    for (exponent, values, known) in [
        (0.0, 5000, 100),
        (0.5, 300_000, 200_000),
        (0.999_999, 200_000, 150_000),
        (1.0, 1000, 400),
        (1.0, 300_000, 20_000),
        (1.25, 250_000, 250_000),
        (3.0, 100_000, 900),
    ] {
        let shape = Shape::zipf(exponent, values, known).unwrap();
        assert_eq!(shape.known(), known);
        let total: f64 = (1..=values).map(|rank| (rank as f64).powf(-exponent)).sum();
        let mut sum = 0.0;
        for rank in 1..=known {
            sum += (rank as f64).powf(-exponent) / total;
            assert!((shape.mass(rank) - sum).abs() < 1e-6, "{exponent} {rank}: {} for {sum}", shape.mass(rank));
        }
        assert!((shape.unseen() - (1.0 - sum)).abs() < 1e-9, "{exponent}");
    }
    assert_eq!(Shape::zipf(1.0, 10, 0).unwrap().unseen(), 1.0);
    let large = Shape::zipf(0.5, u64::MAX, u64::MAX / 2).unwrap();
    assert!((large.unseen() - (1.0 - 0.5f64.sqrt())).abs() < 1e-6);
    assert!(large.classes().len() <= MAX_CLASSES);
}
