//! a family of filters -> how many negatives it should know: one pass over their number, with steps that skip nothing.

use super::{Aim, Limits};
use crate::math::shape::Shape;
use crate::math::stack::step;

/// Filters that reject all known negatives, told apart by how many these are per key and by their rate on other values.
pub(crate) trait Family {
    /// The least rate on other values in so many bits per key, if it can be done.
    fn rate(&mut self, nu: f64, bits: f64) -> Option<f64>;

    /// The fewest bits per key for such a rate or a lower one.
    fn bits(&mut self, nu: f64, rate: f64) -> f64;

    /// Whether other limits allow this rate, where a share `psi` of all queries is known. If not, then neither do they
    /// for more negatives.
    fn allows(&self, psi: f64, rate: f64) -> bool;

    /// Whether so few known negatives are enough for a filter of such a rate.
    fn enough(&self, known: u64, rate: f64) -> bool;
}

/// The best number of known negatives, to within the slack of the limits; `best` is what is to be beaten.
///
/// More negatives make the rate on others larger in the same bits, and the bits more for the same rate. So what lies
/// between two looks is bounded by the negatives of the first and the queries of the second ([`step`]).
pub(crate) fn sweep(family: &mut impl Family, keys: u64, shape: &Shape, limits: &Limits, mut best: f64) -> Option<u64> {
    let mut found = None;
    let mut known = 0;
    loop {
        let nu = known as f64 / keys as f64;
        let psi = shape.mass(known);
        let (value, unknown, goal);
        match limits.aim {
            Aim::LeastRate { bits } => {
                let Some(rate) = family.rate(nu, bits).filter(|&rate| family.allows(psi, rate)) else { break };
                value = (1.0 - psi) * rate;
                unknown = rate.max(f64::MIN_POSITIVE);
                if value < best && known > 0 && family.enough(known, rate) {
                    (best, found) = (value, Some(known));
                }
                goal = best - limits.slack(best) / 3.0;
            }
            Aim::LeastBits { rate } => {
                let most = (rate / (1.0 - psi).max(f64::MIN_POSITIVE)).min(limits.efpb());
                if !family.allows(psi, most) {
                    break;
                }
                value = family.bits(nu, most);
                if value < best && known > 0 && family.enough(known, most) {
                    (best, found) = (value, Some(known));
                }
                // The rate on others that would take fewer bits by the slack; if none does, nor does any further on.
                let Some(rate_there) = family.rate(nu, best - limits.slack(best) / 3.0) else { break };
                unknown = rate_there;
                goal = rate;
            }
        }
        if known == shape.known() {
            break;
        }
        known = step(shape, known, unknown, goal).min(shape.known());
    }
    found
}
