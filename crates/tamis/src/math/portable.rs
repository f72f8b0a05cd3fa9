//! numbers -> logarithms that are the same everywhere: what a file is sized by must not depend on a system's library.
//!
//! Additions, products and quotients are rounded alike on every processor; `f64::log2` is not.

use std::f64::consts::LOG2_E;

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

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_logarithm() {
        for i in 1..4000 {
            let x = f64::from(i) * f64::from(i) / 777.0;
            assert!((super::log2(x) - x.log2()).abs() < 1e-11, "{x}");
        }
        assert_eq!(super::log2(0.125), -3.0);
    }
}
