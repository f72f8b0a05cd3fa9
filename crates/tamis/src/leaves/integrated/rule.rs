//! hash -> the second-stage bits that count for it.
//!
//! One multiplication gives thirteen bits that depend on all of the hash, so that they know nothing of its places and
//! its fingerprint ([FPFS] 3.6 demands that), and one more for the rest:
//!
//! ```text
//!   dice = h * odd constant     63 .. 52: weight | 51: pick | 50: coin
//!
//!               weight < share      otherwise
//!   One         first bit           (share is all)
//!   Hybrid      first bit           none: query the rest
//!   Two         bit `pick`          none: query the rest
//!   General     both bits           bit `pick`
//! ```
//!
//! All four are a table of four masks, by `pick` and by whether the weight is below the share. The two comparisons of
//! the index are one: weight and pick, as a number of thirteen bits, against twice the share.

use super::IntegratedVariant;
use crate::math::portable::exp2;

/// Odd; different from the constants that a fuse table makes its places with.
const DICE: u64 = 0xa3b1_9535_4a39_b70d;
/// Shares are in units of one over this.
pub(super) const WHOLE: u32 = 4096;

/// Which second-stage bits count, for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    /// Bits of stage one.
    pub(super) first: u32,
    pub(super) parts: IntegratedVariant,
    /// 4096ths of the elements for which the middle column of the table above holds.
    pub(super) share: u32,
    /// Twice the share.
    limit: u64,
    /// The bits that count, of both stages: outside and inside the share, picking the first bit, and the second.
    masks: [u32; 4],
    /// The first bit of stage two, and the one to pick instead.
    picks: [u32; 2],
}

impl Rule {
    pub(super) const fn new(first: u32, parts: IntegratedVariant, share: u32) -> Rule {
        let columns = match parts {
            IntegratedVariant::One | IntegratedVariant::Hybrid => [0, 1, 0, 1],
            IntegratedVariant::Two => [0, 1, 0, 2],
            IntegratedVariant::General => [1, 3, 2, 3],
        };
        let low = !(u32::MAX << first);
        let [a, b, c, d] = columns;
        let masks = [low | a << first, low | b << first, low | c << first, low | d << first];
        let picks = [1 << first, 1 << (first + parts.columns() - 1)];
        Rule { first, parts, share, limit: 2 * share as u64, masks, picks }
    }

    /// The bits of both stages that count for a hash.
    #[inline(always)]
    pub(super) fn mask(&self, h: u64) -> u32 {
        let dice = h.wrapping_mul(DICE) >> 51;
        self.masks[((dice & 1) << 1 | (dice < self.limit) as u64) as usize]
    }

    /// The bit in which an element of F is rejected; if it does not count, the rest is queried.
    #[inline(always)]
    pub(super) fn pick(&self, h: u64) -> u32 {
        self.picks[(h.wrapping_mul(DICE) >> 51 & 1) as usize]
    }

    /// The bits of stage one.
    #[inline(always)]
    pub(super) fn low(&self) -> u32 {
        self.picks[0] - 1
    }

    /// The share of unlisted keys that match: with both bits compared, half as many.
    pub(super) fn fpr(&self) -> f64 {
        let both = if self.parts == IntegratedVariant::General { self.share as f64 / WHOLE as f64 } else { 0.0 };
        (1.0 - both / 2.0) * exp2(-f64::from(self.first + 1))
    }
}

/// Twelve bits that the share is compared with.
#[inline(always)]
pub(super) fn weight(h: u64) -> u32 {
    (h.wrapping_mul(DICE) >> 52) as u32
}

/// What a key reads in the rest, and an element of F does not.
#[inline(always)]
pub(super) fn coin(h: u64) -> u32 {
    (h.wrapping_mul(DICE) >> 50) as u32 & 1
}
