//! rates of layers -> rates, sizes and costs of a stack: filters on keys and on known negatives by turns.
//!
//! ```text
//!    layer          1 keys      2 known     3 keys      ...   T, odd: keys
//!    passes         alpha_1     alpha_2     alpha_3
//!    else           reject      accept      reject            (past the last: accept)
//!
//!    key            passes 1, 3, 5 ...       gets to layer i if it passed 2, 4 ... before it
//!    known          passes 2, 4, 6 ...       gets to layer i if it passed 1, 3 ... before it
//!    unknown        is in no layer           gets to layer i if it passed all before it
//! ```
//!
//! `nu` is the number of known negatives per key (|N_f| / |P|), `psi` the share of all negative queries that fall on
//! them. Sizes are bits per key. Layers are counted from 1, and their number is odd. Functions named `endless_` are the
//! limits for many layers of one rate.
//!
//! Paper: \[Stacked\], sections 4 to 7; what was corrected is said where it is used. Derivations are in `docs/math.md`.
//! Logarithms are those of `math::portable`, so that plans are the same everywhere.

use super::bloom::power;
use super::portable::{exp2, log2};

pub mod adaptive;
pub mod optimise;
pub mod theorems;

pub use adaptive::{Quick, observed, quick, watched};
pub use optimise::{Aim, Limits, Stack, fixed, integer, varied};
pub use theorems::{best_alpha, step};

/// The size of a filter by its rate: `s(alpha) = (log2(1/alpha) + c) / f` bits per key (\[Stacked\], section 5.2).
///
/// ```
/// use tamis::internals::math::stack::Size;
/// assert!((Size::BLOOM.bits(0.01) - 9.585).abs() < 0.001);
/// assert_eq!(Size::CUCKOO.bits(1.0 / 64.0), 9.0 / 0.95);
/// assert!((Size::BLOOM.alpha(10.0) - 0.00819).abs() < 0.00001);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    /// Bits a key costs besides its fingerprint, 0 or more.
    pub c: f64,
    /// The share of the table that is used, above 0.
    pub f: f64,
}

impl Size {
    /// Bloom filter: 1 / ln 2 bits per bit.
    pub const BLOOM: Size = Size { c: 0.0, f: std::f64::consts::LN_2 };
    /// Cuckoo filter with four slots a bucket: two buckets of four are compared, 3 bits.
    pub const CUCKOO: Size = Size { c: 3.0, f: 0.95 };
    /// Cuckoo filter with sorted buckets, which saves one bit.
    pub const CUCKOO_SEMI_SORTED: Size = Size { c: 2.0, f: 0.95 };
    /// Quotient filter with 2.125 bits of metadata a slot.
    pub const QUOTIENT: Size = Size { c: 2.125, f: 0.95 };
    /// Binary fuse filter with three probes.
    pub const FUSE: Size = Size { c: 0.0, f: 1.0 / 1.125 };
    /// Binary fuse filter with four probes.
    pub const FUSE4: Size = Size { c: 0.0, f: 1.0 / 1.075 };
    /// Bumped ribbon.
    pub const RIBBON: Size = Size { c: 0.0, f: 1.0 / 1.005 };

    /// Bits per key of a filter with rate `alpha`.
    pub fn bits(self, alpha: f64) -> f64 {
        // Numbers that are not normal have no portable logarithm.
        (self.c - log2(alpha.max(f64::MIN_POSITIVE))) / self.f
    }

    /// The rate of a filter with `bits` per key; 1 where they hold no fingerprint.
    pub fn alpha(self, bits: f64) -> f64 {
        exp2(-(bits * self.f - self.c).max(0.0))
    }
}

/// Layers a query is expected to read, or the bounds of them, by the kind of its key.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Checks {
    /// For a key.
    pub key: f64,
    /// For a known negative.
    pub known: f64,
    /// For any other value.
    pub unknown: f64,
}

/// The share of known negatives that pass: the product of the odd rates (\[Stacked\], section 4.1).
///
/// ```
/// use tamis::internals::math::stack::known_rate;
/// assert_eq!(known_rate(&[0.5, 0.1, 0.25]), 0.125);
/// ```
pub fn known_rate(alphas: &[f64]) -> f64 {
    alphas.iter().step_by(2).product()
}

/// The share of other negatives that pass: those each negative layer rejects, and those that get past the last layer
/// (\[Stacked\], section 4.1). It is the bound for any query, EFPB (section 4.3).
///
/// ```
/// use tamis::internals::math::stack::unknown_rate;
/// assert_eq!(unknown_rate(&[0.5, 0.5, 0.25]), 0.25 + 0.25 * 0.25);
/// ```
pub fn unknown_rate(alphas: &[f64]) -> f64 {
    let (mut reach, mut accepted) = (1.0, 0.0);
    for (i, alpha) in alphas.iter().enumerate() {
        if i % 2 == 1 {
            accepted += reach * (1.0 - alpha);
        }
        reach *= alpha;
    }
    accepted + reach
}

/// The expected rate of a stack, EFPR, where a share `psi` of all negative queries is known (\[Stacked\], section 4.1).
///
/// ```
/// use tamis::internals::math::stack::expected_rate;
/// assert_eq!(expected_rate(0.75, &[0.5, 0.5, 0.25]), 0.75 * 0.125 + 0.25 * 0.3125);
/// ```
pub fn expected_rate(psi: f64, alphas: &[f64]) -> f64 {
    psi * known_rate(alphas) + (1.0 - psi) * unknown_rate(alphas)
}

/// [`expected_rate`] for layers of one rate (\[Stacked\], equation 1):
/// `psi alpha^((T + 1) / 2) + (1 - psi) (alpha + alpha^(T + 1)) / (1 + alpha)`.
///
/// ```
/// use tamis::internals::math::stack::{equal_rate, expected_rate};
/// assert!((equal_rate(0.7, 0.1, 5) - expected_rate(0.7, &[0.1; 5])).abs() < 1e-15);
/// ```
pub fn equal_rate(psi: f64, alpha: f64, layers: u32) -> f64 {
    let unknown = (alpha + power(alpha, u64::from(layers) + 1)) / (1.0 + alpha);
    psi * power(alpha, layers.div_ceil(2).into()) + (1.0 - psi) * unknown
}

/// Bits per key of the layers on keys (\[Stacked\], section 4.2): a key is in one if it passed all layers on negatives.
///
/// ```
/// use tamis::internals::math::stack::{Size, positive_bits};
/// let size = Size { c: 0.0, f: 1.0 };
/// assert_eq!(positive_bits(size, &[0.25, 0.5, 0.125]), 2.0 + 3.0 / 2.0);
/// ```
pub fn positive_bits(size: Size, alphas: &[f64]) -> f64 {
    let (mut reach, mut bits) = (1.0, 0.0);
    for pair in alphas.chunks(2) {
        bits += reach * size.bits(pair[0]);
        reach *= pair.get(1).copied().unwrap_or(1.0);
    }
    bits
}

/// Bits per key of the layers on `nu` known negatives per key (\[Stacked\], section 4.2): a negative is in one if it
/// passed all layers on keys before.
///
/// ```
/// use tamis::internals::math::stack::{Size, negative_bits};
/// let size = Size { c: 0.0, f: 1.0 };
/// assert_eq!(negative_bits(size, 2.0, &[0.25, 0.5, 0.125]), 2.0 * 0.25 * 1.0);
/// ```
pub fn negative_bits(size: Size, nu: f64, alphas: &[f64]) -> f64 {
    let (mut reach, mut bits) = (1.0, 0.0);
    for pair in alphas.chunks(2) {
        reach *= pair[0];
        bits += pair.get(1).map_or(0.0, |&alpha| reach * size.bits(alpha));
    }
    nu * bits
}

/// Bits per key of a stack: [`positive_bits`] and [`negative_bits`].
///
/// ```
/// use tamis::internals::math::stack::{Size, bits};
/// // [Stacked], section 3: as many negatives as keys at 1 % cost 2 % over one layer.
/// assert!((bits(Size::BLOOM, 1.0, &[0.01; 3]) / Size::BLOOM.bits(0.01) - 1.02).abs() < 1e-9);
/// ```
pub fn bits(size: Size, nu: f64, alphas: &[f64]) -> f64 {
    positive_bits(size, alphas) + negative_bits(size, nu, alphas)
}

/// [`bits`] for layers of one rate: both sums are geometric, with (T + 1) / 2 and (T - 1) / 2 terms.
///
/// ```
/// use tamis::internals::math::stack::{Size, bits, equal_bits};
/// assert!((equal_bits(Size::CUCKOO, 3.0, 0.1, 5) - bits(Size::CUCKOO, 3.0, &[0.1; 5])).abs() < 1e-9);
/// ```
pub fn equal_bits(size: Size, nu: f64, alpha: f64, layers: u32) -> f64 {
    let terms = |count: u32| (1.0 - power(alpha, count.into())) / (1.0 - alpha);
    size.bits(alpha) * (terms(layers.div_ceil(2)) + nu * alpha * terms(layers / 2))
}

/// [`equal_bits`] without end, and the bound of it (\[Stacked\], equation 2):
/// `s(alpha) (1 / (1 - alpha) + nu alpha / (1 - alpha))`.
///
/// ```
/// use tamis::internals::math::stack::{Size, endless_bits};
/// assert!((endless_bits(Size::BLOOM, 1.0, 0.01) / Size::BLOOM.bits(0.01) - 1.0202).abs() < 0.0001);
/// ```
pub fn endless_bits(size: Size, nu: f64, alpha: f64) -> f64 {
    size.bits(alpha) * (1.0 + nu * alpha) / (1.0 - alpha)
}

/// Layers a query is expected to read, exactly: the sum of the probabilities that it gets to each (\[Stacked\], section
/// 4.4).
///
/// ```
/// use tamis::internals::math::stack::checks;
/// let checks = checks(&[0.5, 0.25, 0.125]);
/// assert_eq!((checks.key, checks.known, checks.unknown), (2.25, 2.0, 1.625));
/// ```
pub fn checks(alphas: &[f64]) -> Checks {
    let mut sum = Checks::default();
    let mut reach = Checks { key: 1.0, known: 1.0, unknown: 1.0 };
    for (i, alpha) in alphas.iter().enumerate() {
        sum.key += reach.key;
        sum.known += reach.known;
        sum.unknown += reach.unknown;
        if i % 2 == 0 {
            reach.known *= alpha
        } else {
            reach.key *= alpha
        }
        reach.unknown *= alpha;
    }
    sum
}

/// [`checks`] without end: `2 / (1 - alpha)`, `(1 + alpha) / (1 - alpha)` and `1 / (1 - alpha)`.
///
/// \[Stacked\], equation 3; its bound for known negatives, `(1 + 2 alpha) / (1 - alpha)`, is not the sum but above it.
///
/// ```
/// use tamis::internals::math::stack::{checks, endless_checks};
/// let (many, limit) = (checks(&[0.1; 41]), endless_checks(0.1));
/// assert!((many.key - limit.key).abs() < 1e-9);
/// assert!((many.known - limit.known).abs() < 1e-9 && limit.known < 1.2 / 0.9);
/// assert!((many.unknown - limit.unknown).abs() < 1e-9);
/// ```
pub fn endless_checks(alpha: f64) -> Checks {
    let rest = 1.0 - alpha;
    Checks { key: 2.0 / rest, known: (1.0 + alpha) / rest, unknown: 1.0 / rest }
}

#[cfg(test)]
mod tests;
