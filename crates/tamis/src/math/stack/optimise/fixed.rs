//! a workload -> a stack whose layers have one rate: the endless stack first, then as few layers as come close.

use std::f64::consts::LOG2_E;

use super::{Aim, Family, Limits, MAX_ALPHA, MAX_LAYERS, MIN_ENTRIES, Problem, Stack, sweep};
use crate::math::shape::Shape;
use crate::math::stack::{Size, best_alpha, endless_bits, endless_checks, equal_bits, equal_rate};

/// The best stack of equal layers (\[Stacked\], section 5.2.2), or one layer where that is better; none where no filter
/// keeps the limits.
///
/// The number of negatives comes from the endless stack, where the rate follows from the budget. Then layers are cut
/// off, and what they took goes to the rate of the others.
///
/// ```
/// use tamis::internals::math::stack::{Limits, Size, fixed};
/// use tamis::internals::Shape;
/// // [Stacked], Table 2: 10 bits per key, 10^6 keys, 10^8 values by Zipf's law, the heavier half known: 0.00172.
/// let shape = Shape::zipf(1.0, 100_000_000, 50_000_000)?;
/// let stack = fixed(Size::BLOOM, 1_000_000, &shape, &Limits::bits(10.0)).unwrap();
/// assert!(stack.efpr < 0.00178 && stack.bits <= 10.0);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn fixed(size: Size, keys: u64, shape: &Shape, limits: &Limits) -> Option<Stack> {
    if keys == 0 || !limits.possible() {
        return None;
    }
    let problem = Problem { size, keys, shape, limits };
    let single = problem.single();
    let to_beat = single.as_ref().map_or(f64::INFINITY, |stack| problem.value(stack));
    let start = match limits.aim {
        Aim::LeastRate { .. } => to_beat.min(1.0),
        Aim::LeastBits { rate } => to_beat.min(size.bits(rate.clamp(1e-300, 1.0))),
    };
    let mut endless = Endless { size, limits, left: 0.0 };
    let Some(known) = sweep(&mut endless, keys, shape, limits, start) else {
        return single;
    };
    let mut best = single;
    for layers in (3..=MAX_LAYERS).step_by(2) {
        let alpha = endless.truncated(&problem, known, layers as u32);
        let Some(stack) = alpha.and_then(|alpha| problem.stack(vec![alpha; layers])) else { continue };
        // Another two layers must be worth it.
        let value = problem.value(&stack);
        if best.as_ref().is_none_or(|best| value < problem.value(best) - limits.slack(value) / 3.0) {
            best = Some(stack);
        }
    }
    best
}

/// Stacks of one rate and without end.
struct Endless<'a> {
    size: Size,
    limits: &'a Limits,
    /// The answer of the last call of `rate` with a budget: for more negatives the rate is larger.
    left: f64,
}

impl Endless<'_> {
    /// The least rate of layers with which `nu` negatives per key fit into `bits`: the root left of the smallest stack.
    fn alpha(&self, nu: f64, bits: f64, left: f64) -> Option<f64> {
        let size = self.size;
        // One layer alone leaves no room for others: its rate is too low.
        let mut low = size.alpha(bits).max(left);
        if low > MAX_ALPHA {
            return None;
        }
        let mut high = None;
        let mut alpha = low;
        for _ in 0..100 {
            let one = size.bits(alpha);
            let over = one * (1.0 + nu * alpha) / (1.0 - alpha) - bits;
            if over.abs() <= 1e-13 * bits {
                return Some(alpha);
            }
            if over > 0.0 {
                low = alpha
            } else {
                high = Some(alpha)
            }
            let slope =
                (one * (1.0 + nu) / (1.0 - alpha) - LOG2_E / (size.f * alpha) * (1.0 + nu * alpha)) / (1.0 - alpha);
            let newton = alpha - over / slope;
            alpha = match high {
                Some(high) if newton > low && newton < high => newton,
                Some(high) => (low + high) / 2.0,
                None if slope < 0.0 && newton < MAX_ALPHA => newton,
                None => {
                    // It went past the smallest stack, or there is no root.
                    let smallest = best_alpha(size, nu).min(MAX_ALPHA);
                    if endless_bits(size, nu, smallest) > bits {
                        return None;
                    }
                    high = Some(smallest);
                    low = low.min(smallest);
                    (low + smallest) / 2.0
                }
            };
            if alpha <= low {
                break;
            }
        }
        high.or(Some(low))
    }

    /// The best rate of so many layers on so many negatives: what cut layers took goes to the others.
    fn truncated(&mut self, problem: &Problem<'_>, known: u64, layers: u32) -> Option<f64> {
        let nu = problem.nu(known);
        let psi = problem.shape.mass(known);
        // Between a rate that is too low for the budget, and one that keeps it; or too high for the rate.
        let (mut low, mut high, falls);
        match self.limits.aim {
            Aim::LeastRate { bits } => {
                (low, high, falls) = (self.size.alpha(bits), self.alpha(nu, bits, 0.0)?, true);
            }
            Aim::LeastBits { rate } => {
                let most = (rate / (1.0 - psi)).min(self.limits.efpb());
                (low, high, falls) = (0.0, self.smallest(nu, most), false);
                if equal_rate(psi, high, layers) <= rate {
                    return Some(high);
                }
            }
        }
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            let fits = match self.limits.aim {
                // A last digit is left, so that rounding does not cost a negative.
                Aim::LeastRate { bits } => equal_bits(self.size, nu, middle, layers) <= bits * (1.0 - 1e-12),
                Aim::LeastBits { rate } => equal_rate(psi, middle, layers) <= rate,
            };
            if fits == falls { high = middle } else { low = middle }
        }
        Some(if falls { high } else { low })
    }

    /// The rate of layers for the smallest stack with a rate on others of at most `rate`.
    fn smallest(&self, nu: f64, rate: f64) -> f64 {
        // rate = alpha / (1 + alpha)
        let most = if rate < MAX_ALPHA / (1.0 + MAX_ALPHA) { rate / (1.0 - rate) } else { MAX_ALPHA };
        let falls = most * (1.0 + nu) * (self.size.c - super::super::log2(most.max(1e-300)))
            < (1.0 + nu * most) * (1.0 - most) * LOG2_E;
        if falls { most } else { best_alpha(self.size, nu).min(most) }
    }
}

impl Family for Endless<'_> {
    fn rate(&mut self, nu: f64, bits: f64) -> Option<f64> {
        // The budget stays, the negatives grow: from the last root on. Where the budget falls the root grows too.
        let alpha = self.alpha(nu, bits, self.left)?;
        self.left = alpha * (1.0 - 1e-9);
        Some(alpha / (1.0 + alpha))
    }

    fn bits(&mut self, nu: f64, rate: f64) -> f64 {
        endless_bits(self.size, nu, self.smallest(nu, rate))
    }

    fn enough(&self, known: u64, rate: f64) -> bool {
        // A little more: the rate of the layers falls when some are cut off.
        known as f64 * rate >= MIN_ENTRIES * 1.05
    }

    fn allows(&self, psi: f64, rate: f64) -> bool {
        rate <= self.limits.efpb() && self.limits.allows(psi, &endless_checks(rate / (1.0 - rate)))
    }
}
