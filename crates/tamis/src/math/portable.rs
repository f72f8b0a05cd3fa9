//! numbers -> logarithms and powers that are the same everywhere: what a file is sized by must not depend on a system's library.
//!
//! Additions, products and quotients are rounded alike on every processor; `f64::log2` and `f64::exp2` are not.

use std::f64::consts::{LN_2, LOG2_E};

/// The binary logarithm of a positive, normal number, to 12 digits.
pub(crate) fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln m = 2 (t + t^3 / 3 + ...) with t = (m - 1) / (m + 1), at most 1/3.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for k in (0..12).rev() {
        sum = sum * t * t + 1.0 / f64::from(2 * k + 1);
    }
    f64::from(exponent) + 2.0 * LOG2_E * t * sum
}

/// Two to the power of `x`, to 12 digits; 0 below the normal numbers.
pub(crate) fn exp2(x: f64) -> f64 {
    if x < -1022.0 {
        return 0.0;
    }
    if x > 1023.0 {
        return f64::INFINITY;
    }
    // Nothing above casts what is not a number, which stays what it is: floor and sum keep it.
    let whole = (x + 0.5).floor();
    let t = (x - whole) * LN_2;
    let mut sum = 1.0;
    for k in (1..14).rev() {
        sum = 1.0 + sum * t / f64::from(k);
    }
    // A mantissa below 1 has room for one more step down.
    let scale = f64::from_bits(((whole as i64 + 1023).clamp(1, 2046) as u64) << 52);
    sum * scale
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_power() {
        for i in -4000..4000 {
            let x = f64::from(i) / 37.0;
            assert!((super::exp2(x) / x.exp2() - 1.0).abs() < 1e-13, "{x}");
        }
        assert_eq!(super::exp2(-7.0), 1.0 / 128.0);
        assert_eq!(super::exp2(-1e9), 0.0);
        assert_eq!(super::exp2(1e9), f64::INFINITY);
        assert!(super::exp2(f64::NAN).is_nan());
    }

    #[test]
    fn it_is_the_logarithm() {
        for i in 1..4000 {
            let x = f64::from(i) * f64::from(i) / 777.0;
            assert!((super::log2(x) - x.log2()).abs() < 1e-11, "{x}");
        }
        assert_eq!(super::log2(0.125), -3.0);
    }
}
