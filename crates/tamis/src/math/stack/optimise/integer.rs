//! a workload -> a stack of whole fingerprints: branch and bound over their lengths, two layers at a time.

use super::{Aim, MIN_ENTRIES, Problem, Stack, Sums};
use crate::math::shape::Shape;
use crate::math::stack::Size;

/// Pairs of layers looked at, at most: a hundredth of a second. Some thousand are usual; a search that ended here would be without its
/// guarantee.
const MAX_LOOKS: u64 = 1 << 16;

/// Layers at most, by round: the best short stack cuts most branches of deeper ones. A layer deeper than the last is for
/// 1/8 of the keys and of the negatives at most, and mostly for far fewer.
const ROUNDS: [usize; 3] = [3, 5, 7];

/// Bits of the first layer's fingerprints at most.
const MAX_FIRST_WIDTH: u32 = 32;

/// Bits of the others: few entries get there.
const MAX_LATER_WIDTH: u32 = 16;

/// The best stack whose layers have fingerprints of whole bits, up to 32 in the first and 16 in the others (\[Stacked\], section 5.2.3), to within the
/// `epsilon` of the limits; none where no filter keeps the limits.
///
/// Lengths are chosen from the first layer on, a layer on keys and one on negatives at a time. The paper does this for
/// every number of negatives; here the lengths fix that number (as many as fit), and half a stack already bounds it: the
/// bits that are left over the bits that a negative takes so far. A branch ends where the unknown values that have
/// passed by then are too many.
///
/// ```
/// use tamis::internals::math::stack::{Limits, Size, integer};
/// use tamis::internals::Shape;
/// let shape = Shape::zipf(1.0, 100_000_000, 50_000_000)?;
/// let stack = integer(Size::CUCKOO, 1_000_000, &shape, &Limits::bits(10.0)).unwrap();
/// // One filter has 6 bits and 1/64.
/// assert_eq!(stack.widths().unwrap(), [6, 7, 5, 4, 8]);
/// assert!(stack.efpr < 0.00295 && stack.bits <= 10.0);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn integer(size: Size, keys: u64, shape: &Shape, limits: &super::Limits) -> Option<Stack> {
    if keys == 0 || !limits.possible() {
        return None;
    }
    let search = Search::run(Problem { size, keys, shape, limits });
    let alphas: Vec<f64> = search.found.iter().map(|&width| half(width)).collect();
    if alphas.is_empty() { None } else { search.problem.stack(alphas) }
}

/// A power of 1/2, exactly.
fn half(width: u32) -> f64 {
    1.0 / (1u64 << width) as f64
}

/// The state between two pairs of layers.
struct Node {
    /// What the layers so far add up to; `unknown_rate` is what was accepted by then.
    sums: Sums,
    /// The share of keys that go on.
    keys: f64,
    /// The share of known negatives that go on.
    known: f64,
}

struct Search<'a> {
    problem: Problem<'a>,
    best: f64,
    /// Lengths of the best.
    found: Vec<u32>,
    /// Lengths on the way to the current node.
    path: Vec<u32>,
    looks: u64,
    /// Nothing below this is looked for.
    enough: f64,
    /// Layers at most in this round.
    most: usize,
}

impl<'a> Search<'a> {
    fn run(problem: Problem<'a>) -> Search<'a> {
        let enough = match problem.limits.aim {
            Aim::LeastRate { .. } => problem.limits.enough(),
            Aim::LeastBits { .. } => 0.0,
        };
        let (found, path) = (Vec::new(), Vec::new());
        let mut search = Search { problem, best: f64::INFINITY, found, path, looks: 0, enough, most: 0 };
        for most in ROUNDS {
            search.most = most;
            search.expand(&Node { sums: Sums::default(), keys: 1.0, known: 1.0 });
        }
        search
    }

    /// Tries every next pair.
    fn expand(&mut self, node: &Node) {
        let unknown = node.keys * node.known;
        // Longest first: most of a good stack is its first layer.
        for width in (1..=self.longest(node)).rev() {
            let passed = half(width);
            let mut sums = node.sums;
            sums.keys += node.keys * self.bits(width);
            sums.first = if self.path.is_empty() { passed } else { sums.first };
            sums.known_rate = node.known * passed;
            sums.checks.key += node.keys;
            sums.checks.known += node.known;
            sums.checks.unknown += unknown;
            self.path.push(width);
            let stop = Sums { unknown_rate: node.sums.unknown_rate + unknown * passed, ..sums };
            if let Some((_, value)) = self.problem.known_and_value(&stop)
                && self.better(value)
            {
                self.best = value;
                self.found.clone_from(&self.path);
            }
            if self.path.len() + 2 <= self.most {
                for second in 1..=MAX_LATER_WIDTH {
                    let mut sums = sums;
                    sums.known += node.known * passed * self.bits(second);
                    sums.unknown_rate += unknown * passed * (1.0 - half(second));
                    sums.checks.key += node.keys;
                    sums.checks.known += node.known * passed;
                    sums.checks.unknown += unknown * passed;
                    let next = Node { sums, keys: node.keys * half(second), known: node.known * passed };
                    self.looks += 1;
                    if self.looks < MAX_LOOKS
                        && self.best > self.enough
                        && self.bound(&next) < self.best - self.problem.limits.slack(self.best) * 2.0 / 3.0
                    {
                        self.path.push(second);
                        self.expand(&next);
                        self.path.pop();
                    }
                }
            }
            self.path.pop();
        }
    }

    /// Bits of one entry in a layer.
    fn bits(&self, width: u32) -> f64 {
        (f64::from(width) + self.problem.size.c) / self.problem.size.f
    }

    /// Whether a stack replaces the best: if it has more layers they must be worth it.
    fn better(&self, value: f64) -> bool {
        let deeper = self.path.len() > self.found.len();
        value < self.best - if deeper { self.problem.limits.slack(self.best) / 3.0 } else { 0.0 }
    }

    /// The longest fingerprint that the next layer on keys may have.
    fn longest(&self, node: &Node) -> u32 {
        let bits = match self.problem.limits.aim {
            Aim::LeastRate { bits } => bits,
            // More than the best takes is of no use.
            Aim::LeastBits { .. } => self.best,
        };
        let room = (bits - node.sums.keys) / node.keys * self.problem.size.f - self.problem.size.c;
        let most = if self.path.is_empty() { MAX_FIRST_WIDTH } else { MAX_LATER_WIDTH };
        // A little more, so that rounding forbids nothing; what does not fit is not settled.
        (room + 1e-9).clamp(0.0, f64::from(most)) as u32
    }

    /// What no stack that begins like this can get below.
    fn bound(&self, node: &Node) -> f64 {
        let Problem { shape, keys, limits, .. } = self.problem;
        let longest = self.longest(node);
        if longest == 0 {
            return f64::INFINITY;
        }
        // Of the unknown that go on, some pass the next layer on keys, and half of them at least are accepted then.
        let unknown = node.sums.unknown_rate + node.keys * node.known * half(longest + 1);
        if unknown > limits.efpb() {
            return f64::INFINITY;
        }
        // Whatever follows, the next layer is read.
        let mut checks = node.sums.checks;
        checks.known += node.known;
        checks.unknown += node.keys * node.known;
        let Some(most_mass) = self.problem.most_mass(&checks) else { return f64::INFINITY };
        let least = node.sums.keys + node.keys * self.bits(1);
        let fewest = (MIN_ENTRIES / node.sums.first).ceil();
        if fewest > shape.known() as f64 {
            return f64::INFINITY;
        }
        match limits.aim {
            Aim::LeastRate { bits } => {
                let most = ((bits - least) / node.sums.known * keys as f64).max(0.0) as u64;
                // As many as fit, as the limit on layers allows, and as there are.
                if (most.min(shape.top(most_mass)) as f64) < fewest - 1.0 {
                    return f64::INFINITY;
                }
                (1.0 - shape.mass(most.saturating_add(1)).min(most_mass)) * unknown
            }
            Aim::LeastBits { rate } => match self.problem.fewest(0.0, unknown, rate) {
                Some(known) if shape.mass(known.saturating_sub(1)) <= most_mass => {
                    least + self.problem.nu(known.saturating_sub(1).max(fewest as u64)) * node.sums.known
                }
                _ => f64::INFINITY,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Limits;
    use super::*;

    /// The guarantee holds: no search of a planner is cut off, not even where all queries are known.
    #[test]
    fn searches_come_to_their_end() {
        let shapes = [(1.0, 0.0), (1.0, 0.01), (0.5, 0.2), (1.25, 0.3)].map(|(exponent, unseen)| {
            let classes = (1..=1000u64).map(|rank| (1e9 / (rank as f64 * 200.0).powf(exponent), 200));
            Shape::new(classes, unseen).unwrap()
        });
        for (size, keys) in [(Size::CUCKOO_SEMI_SORTED, 2000), (Size::QUOTIENT, 20_000), (Size::CUCKOO, 300_000)] {
            for (shape, bits) in shapes.iter().flat_map(|shape| [6.0, 10.0, 14.0].map(|bits| (shape, bits))) {
                let alone = size.alpha(bits).min(0.5);
                for most_efpb in [Some(1.42 * alone), Some(0.3), None] {
                    let limits = Limits { most_efpb, epsilon: 1e-3 * alone, ..Limits::bits(bits) };
                    let search = Search::run(Problem { size, keys, shape, limits: &limits });
                    assert!(search.looks < MAX_LOOKS, "{keys} {bits} {limits:?}: {}", search.looks);
                }
            }
        }
    }
}
