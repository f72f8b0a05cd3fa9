//! numbers -> logarithms and powers that are the same everywhere: what a file is sized by must not depend on a system's library.
//!
//! Additions, products, quotients and square roots are rounded alike on every processor; `f64::log2`, `f64::powi` and their like are
//! not, and `clippy.toml` denies them to the rest of the library.

use std::f64::consts::{LN_2, LOG2_E};

/// The binary logarithm of a positive, normal number, to 12 digits.
pub(crate) fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln m = 2 artanh t.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    f64::from(exponent) + 2.0 * LOG2_E * t * artanh_over(t)
}

/// The natural logarithm of `1 + x` for `x` above -1, to 12 digits also where `x` is small.
#[cfg(feature = "build")]
pub(crate) fn ln_1p(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return LN_2 * log2(1.0 + x);
    }
    let t = x / (2.0 + x);
    2.0 * t * artanh_over(t)
}

/// `artanh(t) / t`: 1 + t^2 / 3 + t^4 / 5 + ..., for `t` of at most 1/3.
fn artanh_over(t: f64) -> f64 {
    (0..12).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1))
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
    // A mantissa below 1 has room for one more step down.
    let scale = f64::from_bits(((whole as i64 + 1023).clamp(1, 2046) as u64) << 52);
    (1.0 + t * exp_m1_over(t)) * scale
}

/// `e^x - 1`, to 12 digits also where `x` is small.
#[cfg(feature = "build")]
pub(crate) fn exp_m1(x: f64) -> f64 {
    if x.abs() > 0.35 { exp2(LOG2_E * x) - 1.0 } else { x * exp_m1_over(x) }
}

/// `(e^t - 1) / t`: 1 + t / 2 + t^2 / 6 + ..., for `t` of at most 0.35.
fn exp_m1_over(t: f64) -> f64 {
    (2..14).rev().fold(1.0, |sum, k| 1.0 + sum * t / f64::from(k))
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

    /// Powers of two are exact: `exp2(-n)` is the rate of `n` bits.
    #[test]
    fn it_is_exact_where_it_can_be() {
        for n in -1022..=1023 {
            assert_eq!(super::exp2(f64::from(n)), 2f64.powi(n));
            assert_eq!(super::log2(2f64.powi(n)), f64::from(n));
        }
    }

    #[cfg(feature = "build")]
    #[test]
    fn small_numbers_keep_their_digits() {
        for i in -600i32..600 {
            let x = f64::from(i.signum()) * 0.9f64.powi(i.abs());
            for (found, exact) in [(super::ln_1p(x), x.ln_1p()), (super::exp_m1(x), x.exp_m1())] {
                assert!((found - exact).abs() <= 1e-12 * exact.abs(), "{x}: {found} {exact}");
            }
        }
        assert_eq!([super::ln_1p(0.0), super::exp_m1(0.0), super::exp_m1(-1e9)], [0.0, 0.0, -1.0]);
    }
}
