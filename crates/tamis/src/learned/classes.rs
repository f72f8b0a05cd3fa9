//! scores of members and of excluded keys -> thresholds: the classes whose filters take the fewest bits.
//!
//! A filter of n members and m excluded keys takes about the bits of the bound, and a class some bytes for itself. Scores are cut into at
//! most 64 cells of about as many keys, and dynamic programming finds the best classes of adjacent cells.

use std::f64::consts::LOG2_E;

use crate::math::portable::{ln_1p, log2};

/// A score, and whether it is a member's.
pub(super) type Scored = (i32, bool);

const CELLS: usize = 64;
/// What a class takes beyond its table, in bits: the front, directory and footer of a file.
const CLASS_BITS: f64 = 110.0 * 8.0;

/// The least bits of a filter of so many members and excluded keys that matches a share `fpr` of unlisted keys, by operations that round
/// alike everywhere: [`free_set`](crate::bounds::free_set).
pub(super) fn bits(members: u64, excluded: u64, fpr: f64) -> f64 {
    let (members, excluded) = (members as f64, excluded as f64);
    if members == 0.0 {
        return 0.0;
    }
    let rate = fpr.min(members / (members + excluded));
    let passed = if rate < 1.0 { excluded * -ln_1p(-rate) * LOG2_E } else { 0.0 };
    members * -log2(rate) + passed
}

/// The first scores of all classes but the lowest, and the bits of all.
///
/// `scored` ascends. There are at most `most` classes.
pub(super) fn thresholds(scored: &[Scored], fpr: f64, most: usize) -> (Vec<i32>, f64) {
    // Cells end where scores differ: a class is a set of scores.
    let mut ends = vec![0];
    for cell in 1..=CELLS {
        let at = cell * scored.len() / CELLS;
        let same = scored.get(at).map_or(0, |&(score, _)| scored[at..].partition_point(|other| other.0 == score));
        if ends.last().is_some_and(|&last| at > last) {
            ends.push(if scored.get(at).zip(scored.get(at - 1)).is_some_and(|(a, b)| a.0 == b.0) {
                at + same
            } else {
                at
            });
        }
    }
    let mut members = vec![0u64; ends.len()];
    for at in 1..ends.len() {
        members[at] =
            members[at - 1] + scored[ends[at - 1]..ends[at]].iter().filter(|(_, member)| *member).count() as u64;
    }
    let cost = |from: usize, to: usize| {
        let inside = members[to] - members[from];
        bits(inside, (ends[to] - ends[from]) as u64 - inside, fpr) + CLASS_BITS
    };
    let cells = ends.len() - 1;
    // By the number of classes so far and of cells in them: the bits, and where the last class starts.
    let mut best: Vec<(f64, usize)> = (0..=cells).map(|to| (if to == 0 { 0.0 } else { cost(0, to) }, 0)).collect();
    let mut found = (best[cells].0, vec![]);
    let mut rows = vec![best.clone()];
    for _ in 1..most.max(1) {
        let next = |to: usize| {
            let cut = |from: usize| (best[from].0 + cost(from, to), from);
            (1..to).map(cut).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
        };
        best = (0..=cells).map(next).collect();
        rows.push(best.clone());
        if best[cells].0 >= found.0 {
            continue;
        }
        let (mut at, mut cuts) = (cells, vec![]);
        for row in rows[1..].iter().rev() {
            at = row[at].1;
            cuts.push(scored[ends[at]].0);
        }
        cuts.reverse();
        found = (best[cells].0, cuts);
    }
    (found.1, found.0)
}

/// The lowest threshold that at most a share `rate` of these scores reach; they descend.
pub(super) fn accept(held_out: &[i32], rate: f64) -> Option<i32> {
    let most = (held_out.len() as f64 * rate).floor() as usize;
    // One above the first score that is too many: equal ones would all pass.
    held_out.get(most).and_then(|score| score.checked_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::class_of;

    #[test]
    fn the_bits_are_those_of_the_bound() {
        for (members, excluded) in [(0, 0), (0, 9), (9, 0), (1, 1), (1000, 10), (10, 100_000)] {
            for fpr in [1.0, 0.5, 0.01] {
                let bound = crate::math::bounds::free_set(members, excluded, fpr).bits;
                assert!(
                    (bits(members, excluded, fpr) - bound).abs() < 1e-6 * bound.max(1.0),
                    "{members}, {excluded}, {fpr}"
                );
            }
        }
    }

    /// Against all cuts of few scores.
    #[test]
    fn no_other_thresholds_are_better() {
        let scored: Vec<Scored> = (0..12_000)
            .map(|i: u32| {
                ((i / 2000) as i32, i.wrapping_mul(2_654_435_761) >> 16 & 7 < [0, 1, 4, 4, 7, 8][(i / 2000) as usize])
            })
            .collect();
        let total = |cuts: &[i32]| {
            (0..=cuts.len())
                .map(|class| {
                    let inside = scored.iter().filter(|(score, _)| class_of(cuts, *score) == class);
                    let members = inside.clone().filter(|(_, member)| *member).count() as u64;
                    bits(members, inside.count() as u64 - members, 1.0) + CLASS_BITS
                })
                .sum::<f64>()
        };
        let all = (0..32u32).map(|set| (1..6).filter(|&cut| set >> (cut - 1) & 1 == 1).collect::<Vec<i32>>());
        let least = all.map(|cuts| total(&cuts)).fold(f64::INFINITY, f64::min);
        let (cuts, found) = thresholds(&scored, 1.0, 16);
        assert!((total(&cuts) - found).abs() < 1e-6 && (found - least).abs() < 1e-6, "{cuts:?}: {found}, {least}");
        assert!(thresholds(&scored, 1.0, 1).0.is_empty());
        assert!(thresholds(&scored, 1.0, 3).0.len() <= 2);
    }

    #[test]
    fn few_and_equal_scores_are_one_class() {
        for scored in [vec![], vec![(0, true)], vec![(i32::MIN, false), (i32::MAX, true)], vec![(5, true); 10_000]] {
            assert!(thresholds(&scored, 1.0, 16).0.is_empty(), "{} scores", scored.len());
        }
    }

    #[test]
    fn at_most_the_share_is_accepted() {
        let scores = [9, 8, 8, 7, 3, 3, 2, 1, 0, -5];
        for (rate, expected) in
            [(0.0, Some(10)), (0.1, Some(9)), (0.2, Some(9)), (0.3, Some(8)), (0.9, Some(-4)), (1.0, None)]
        {
            assert_eq!(accept(&scores, rate), expected, "{rate}");
        }
        assert_eq!((accept(&[], 0.5), accept(&[i32::MAX], 0.0)), (None, None));
    }
}
