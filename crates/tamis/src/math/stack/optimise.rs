//! a workload and limits -> a stack: how many negatives to know, how many layers, and their rates.
//!
//! Three searches, by what a filter can do: `fixed` gives all layers one rate, `varied` polishes it, `integer` is
//! for fingerprints of whole bits. More known negatives always let fewer queries through and take more room, so two of
//! the three parts of a plan fix the third; each search uses that in its own way.

mod fixed;
mod integer;
mod sweep;
mod varied;

pub use fixed::fixed;
pub use integer::integer;
pub(super) use sweep::{Family, sweep};
pub use varied::varied;

use super::{Checks, Size, bits, checks, expected_rate, known_rate, negative_bits, positive_bits, unknown_rate};
use crate::math::shape::Shape;

/// The largest rate of a layer: under one bit of fingerprint no filter is built.
pub(crate) const MAX_ALPHA: f64 = 0.5;

/// Layers at most. The last of so many holds one entry of 2^7 and more.
pub(super) const MAX_LAYERS: usize = 15;

/// Entries that the second layer must expect. An empty layer lets nothing pass, whatever its rate, and the sums would
/// promise what it cannot do; with so many expected it is empty once in three thousand stacks.
pub(crate) const MIN_ENTRIES: f64 = 8.0;

/// What is wanted, and what may be used for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    /// The least expected rate.
    LeastRate {
        /// Bits per key at most.
        bits: f64,
    },
    /// The fewest bits per key.
    LeastBits {
        /// The expected rate at most.
        rate: f64,
    },
}

/// What a stack must keep.
///
/// ```
/// use tamis::internals::math::stack::{Aim, Limits};
/// let limits = Limits { most_efpb: Some(0.01), ..Limits::bits(10.0) };
/// assert_eq!(limits.aim, Aim::LeastRate { bits: 10.0 });
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// What is wanted.
    pub aim: Aim,
    /// The largest rate on unknown values: the bound for any query.
    pub most_efpb: Option<f64>,
    /// The most layers that a negative query may be expected to read.
    pub most_checks: Option<f64>,
    /// How far from the best a search may end, in rate or in bits per key. Searches stop at a hundredth of the best if
    /// that is less, and do not go below a ten-thousandth of it. A rate of a thousandth of this is as good as none.
    pub epsilon: f64,
}

impl Limits {
    /// The least rate in `bits` per key.
    pub fn bits(bits: f64) -> Limits {
        Limits { aim: Aim::LeastRate { bits }, most_efpb: None, most_checks: None, epsilon: 1e-4 }
    }

    /// The fewest bits for an expected rate.
    pub fn rate(rate: f64) -> Limits {
        Limits { aim: Aim::LeastBits { rate }, most_efpb: None, most_checks: None, epsilon: 1e-4 }
    }

    /// Whether the aim is a number that filters have.
    pub(super) fn possible(&self) -> bool {
        match self.aim {
            Aim::LeastRate { bits } => bits >= 0.0,
            Aim::LeastBits { rate } => rate > 0.0,
        }
    }

    /// What may be lost where `best` is the best.
    pub(super) fn slack(&self, best: f64) -> f64 {
        // Nothing may be lost of what was not found yet.
        if best.is_finite() { self.epsilon.max(best * 1e-4).min(best * 0.01) } else { 0.0 }
    }

    /// A rate that need not be lower.
    pub(super) fn enough(&self) -> f64 {
        if self.epsilon.is_finite() { self.epsilon.max(0.0) * 1e-3 } else { 0.0 }
    }

    /// The bound for any query, 1 where none is set.
    pub(super) fn efpb(&self) -> f64 {
        self.most_efpb.unwrap_or(1.0)
    }

    /// Whether a negative query may read so many layers, `psi` of them for known values.
    pub(super) fn allows(&self, psi: f64, checks: &Checks) -> bool {
        self.most_checks.is_none_or(|most| psi * checks.known + (1.0 - psi) * checks.unknown <= most)
    }
}

/// A stack, and what it is expected to do.
#[derive(Clone, PartialEq, Debug)]
pub struct Stack {
    /// How many negatives it knows: the heaviest.
    pub known: u64,
    /// The rates of its layers, an odd number.
    pub alphas: Vec<f64>,
    /// The expected rate over all negative queries.
    pub efpr: f64,
    /// The rate on values it does not know: the bound for any query.
    pub efpb: f64,
    /// Bits per key.
    pub bits: f64,
    /// Layers read.
    pub checks: Checks,
}

impl Stack {
    /// What a stack of these layers on the `known` heaviest negatives does.
    ///
    /// ```
    /// use tamis::internals::math::stack::{Size, Stack};
    /// use tamis::internals::Shape;
    /// let shape = Shape::new([(1.0, 1000)], 0.5)?;
    /// let stack = Stack::new(Size::CUCKOO, 1000, &shape, 1000, vec![0.25, 0.5, 0.25]);
    /// assert_eq!((stack.efpr, stack.efpb), (0.5 * 0.0625 + 0.5 * 0.15625, 0.15625));
    /// assert_eq!(stack.widths(), Some(vec![2, 1, 2]));
    /// # Ok::<(), tamis::internals::ShapeError>(())
    /// ```
    pub fn new(size: Size, keys: u64, shape: &Shape, known: u64, alphas: Vec<f64>) -> Stack {
        let psi = if alphas.len() > 1 { shape.mass(known) } else { 0.0 };
        Stack {
            known,
            efpr: expected_rate(psi, &alphas),
            efpb: unknown_rate(&alphas),
            bits: bits(size, known as f64 / keys as f64, &alphas),
            checks: checks(&alphas),
            alphas,
        }
    }

    /// Bits of fingerprint per layer, where all rates are whole powers of 1/2.
    pub fn widths(&self) -> Option<Vec<u32>> {
        let width = |&alpha: &f64| {
            let width = -super::log2(alpha.max(f64::MIN_POSITIVE));
            (width >= 0.0 && width.fract() == 0.0).then_some(width as u32)
        };
        self.alphas.iter().map(width).collect()
    }
}

/// What every search is given.
#[derive(Clone, Copy)]
pub(super) struct Problem<'a> {
    size: Size,
    keys: u64,
    shape: &'a Shape,
    limits: &'a Limits,
}

impl Problem<'_> {
    /// Known negatives per key.
    fn nu(&self, known: u64) -> f64 {
        known as f64 / self.keys as f64
    }

    /// What is to be small.
    fn value(&self, stack: &Stack) -> f64 {
        match self.limits.aim {
            Aim::LeastRate { .. } => stack.efpr,
            Aim::LeastBits { .. } => stack.bits,
        }
    }

    /// Whether every limit is kept.
    fn keeps(&self, stack: &Stack) -> bool {
        let aim = match self.limits.aim {
            Aim::LeastRate { bits } => stack.bits <= bits,
            Aim::LeastBits { rate } => stack.efpr <= rate,
        };
        let psi = self.shape.mass(stack.known);
        let enough = match stack.alphas[..] {
            [_] => true,
            [first, ..] => stack.known as f64 * first >= MIN_ENTRIES,
            [] => false,
        };
        enough && aim && stack.efpb <= self.limits.efpb() && self.limits.allows(psi, &stack.checks)
    }

    /// The stack of these layers, with the negatives that [`Problem::known_and_value`] gives it.
    fn stack(&self, alphas: Vec<f64>) -> Option<Stack> {
        let (known, _) = self.known_and_value(&Sums::of(self.size, &alphas))?;
        let stack = Stack::new(self.size, self.keys, self.shape, known, alphas);
        self.keeps(&stack).then_some(stack)
    }

    /// One layer, which knows nothing.
    fn single(&self) -> Option<Stack> {
        let mut alpha = match self.limits.aim {
            Aim::LeastRate { bits } => self.size.alpha(bits),
            Aim::LeastBits { rate } => rate.min(self.limits.efpb()).min(1.0),
        };
        // A budget is kept to the last digit: a logarithm has twelve.
        if let Aim::LeastRate { bits } = self.limits.aim {
            for _ in 0..8 {
                if self.size.bits(alpha) > bits && alpha < 1.0 {
                    alpha = (alpha * (1.0 + 1e-12)).min(1.0);
                }
            }
        }
        (alpha > 0.0).then(|| self.stack(vec![alpha]))?
    }

    /// How many negatives layers should know, and what is to be small then; none where they cannot keep the limits.
    ///
    /// For given layers the bits grow linearly with the negatives and the rate falls, so as many as fit are best, or as
    /// few as reach the rate.
    fn known_and_value(&self, sums: &Sums) -> Option<(u64, f64)> {
        if sums.unknown_rate > self.limits.efpb() {
            return None;
        }
        let most_mass = self.most_mass(&sums.checks)?;
        let bits_for = |known: u64| sums.keys + self.nu(known) * sums.known;
        match self.limits.aim {
            Aim::LeastRate { bits } => {
                let mut known = self.most(sums, bits)?;
                if self.shape.mass(known) > most_mass {
                    known = self.shape.top(most_mass).min(known);
                    known -= u64::from(known > 0 && self.shape.mass(known) > most_mass);
                }
                if sums.known == 0.0 {
                    return Some((0, sums.unknown_rate));
                }
                let psi = self.shape.mass(known);
                if (known as f64) * sums.first < MIN_ENTRIES {
                    return None;
                }
                Some((known, psi * sums.known_rate + (1.0 - psi) * sums.unknown_rate))
            }
            Aim::LeastBits { rate } => {
                let known = self.fewest(sums.known_rate, sums.unknown_rate, rate)?;
                let least = if sums.known > 0.0 { (MIN_ENTRIES / sums.first).ceil() as u64 } else { 0 };
                let known = known.max(least);
                (known <= self.shape.known() && self.shape.mass(known) <= most_mass).then(|| (known, bits_for(known)))
            }
        }
    }

    /// The largest mass of known negatives that the limit on layers allows. They read more layers than others.
    fn most_mass(&self, checks: &Checks) -> Option<f64> {
        match self.limits.most_checks {
            Some(most) if most < checks.unknown => None,
            Some(most) if most < checks.known => Some((most - checks.unknown) / (checks.known - checks.unknown)),
            _ => Some(1.0),
        }
    }

    /// The most negatives for which layers keep a budget.
    fn most(&self, sums: &Sums, bits: f64) -> Option<u64> {
        let room = bits - sums.keys;
        if room < 0.0 {
            return None;
        }
        if sums.known == 0.0 {
            return Some(0);
        }
        // A cast of what is too large is the largest integer.
        let mut known = ((room / sums.known * self.keys as f64) as u64).min(self.shape.known());
        for _ in 0..4 {
            if known > 0 && sums.keys + self.nu(known) * sums.known > bits {
                known -= 1 + (known >> 50);
            }
        }
        Some(known)
    }

    /// The fewest negatives that bring the expected rate down to `rate`.
    fn fewest(&self, known_rate: f64, unknown_rate: f64, rate: f64) -> Option<u64> {
        if unknown_rate <= rate {
            return Some(0);
        }
        let psi = (unknown_rate - rate) / (unknown_rate - known_rate);
        let reached = |known: u64| {
            let psi = self.shape.mass(known);
            psi * known_rate + (1.0 - psi) * unknown_rate <= rate
        };
        let known = self.shape.top(psi);
        // The last digit of a mass may be short of one value.
        [known, known.saturating_add(1)].into_iter().find(|&known| known <= self.shape.known() && reached(known))
    }
}

/// What layers add up to.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Bits per key of the layers on keys.
    keys: f64,
    /// Bits per known negative of the others.
    known: f64,
    known_rate: f64,
    unknown_rate: f64,
    /// The rate of the first layer.
    first: f64,
    checks: Checks,
}

impl Sums {
    fn of(size: Size, alphas: &[f64]) -> Sums {
        Sums {
            keys: positive_bits(size, alphas),
            known: negative_bits(size, 1.0, alphas),
            known_rate: known_rate(alphas),
            unknown_rate: unknown_rate(alphas),
            first: alphas.first().copied().unwrap_or(1.0),
            checks: checks(alphas),
        }
    }
}

#[cfg(test)]
mod tests;
