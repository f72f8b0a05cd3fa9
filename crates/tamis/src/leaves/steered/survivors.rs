//! others per key, slack, beam -> the share of the others that pass one steered column: measured, not computed.
//!
//! What a beam of infinitely many states would reach is a formula (`math::bounds::steered`); what 64, 512 or 2048
//! reach is not. The tables are made by
//!
//! ```text
//!   cargo run --release -p tamis-bench -- steer-table
//! ```
//!
//! which prints them as they stand in `table.rs`. Between their points the share is taken to be linear in the slack and in the
//! logarithm of the others per key.

use super::table::{SHARE_64, SHARE_512, SHARE_2048};
use super::{FAST, SMALLEST};
use crate::math::portable::log2;

/// Slacks of the columns of a table, in 1024ths.
pub(super) const SLACKS: [u16; 14] = [32, 48, 64, 80, 96, 128, 160, 208, 256, 320, 416, 512, 640, 800];
/// Lines of a table: others per key are 2^-3, 2^-2.5, ... 2^5.
pub(super) const LINES: usize = 17;
const FIRST: f64 = -3.0;
const PER_OCTAVE: f64 = 2.0;

/// The share of `mu` others per key that pass a column with this slack, in 1024ths.
pub(crate) fn share(mu: f64, slack: f64, beam: u16) -> f64 {
    let table = match beam {
        FAST => &SHARE_64,
        SMALLEST => &SHARE_2048,
        _ => &SHARE_512,
    };
    let line = ((log2(mu.max(1e-9)) - FIRST) * PER_OCTAVE).clamp(0.0, (LINES - 1) as f64);
    let above = (line as usize).min(LINES - 2);
    let part = line - above as f64;
    // The last slack that is not larger, or the first interval for one below them all.
    let last = SLACKS.iter().rposition(|&s| f64::from(s) <= slack).unwrap_or(0).min(SLACKS.len() - 2);
    let (low, high) = (f64::from(SLACKS[last]), f64::from(SLACKS[last + 1]));
    let along = ((slack - low) / (high - low)).clamp(0.0, 1.0);
    let at = |line: usize| f64::from(table[line][last]) * (1.0 - along) + f64::from(table[line][last + 1]) * along;
    (at(above) * (1.0 - part) + at(above + 1) * part) / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaves::steered::BALANCED;

    #[test]
    fn more_slack_and_fewer_others_leave_fewer() {
        for beam in [FAST, BALANCED, SMALLEST] {
            let mut before = [1.0; 60];
            for slack in (32..=800).step_by(8) {
                let now: [f64; 60] =
                    std::array::from_fn(|i| share(2f64.powf(i as f64 / 7.0 - 3.0), slack.into(), beam));
                assert!(now.is_sorted_by(|a, b| *a < b + 0.002), "{beam} {slack} {now:?}");
                assert!(now.iter().zip(&before).all(|(now, before)| now < before), "{beam} {slack}");
                before = now;
            }
        }
    }

    /// No beam is better than all solutions.
    #[test]
    fn no_table_beats_the_ideal() {
        for (line, i) in (0..LINES).zip(-6..) {
            let mu = 2f64.powf(f64::from(i) / 2.0);
            for slack in SLACKS {
                let ideal = crate::math::bounds::steered(mu, f64::from(slack) / 1024.0);
                for beam in [FAST, BALANCED, SMALLEST] {
                    let measured = share(mu, slack.into(), beam);
                    assert!(measured > ideal, "{line} {slack} {beam}: {measured} {ideal}");
                }
                let [few, some, many] = [FAST, BALANCED, SMALLEST].map(|beam| share(mu, slack.into(), beam));
                assert!(many < some && some < few, "{line} {slack}: {many} {some} {few}");
            }
        }
    }
}
