//! counts -> chance or not: do keys lie as random ones would?

/// Whether more came than chance brings where so many were expected.
pub(crate) fn too_many(count: usize, expected: f64) -> bool {
    count as f64 > 1.125 * expected + 16.0 * expected.sqrt() + 16.0
}

/// Whether windows of rows are filled so unevenly that it is not chance: the variance of random loads is their mean, and up to
/// three times as much for what a column before in the same rows left over.
pub(crate) fn uneven(loads: &[u32]) -> bool {
    // The last window may be short, and has fewer.
    let (_, loads) = loads.split_last().unwrap_or((&0, &[]));
    let windows = loads.len() as f64;
    let loads = loads.iter().map(|&load| f64::from(load));
    let squares: f64 = loads.clone().map(|load| load * load).sum();
    let sum: f64 = loads.sum();
    squares - sum * sum / windows.max(1.0) > (8.0 + 64.0 / windows.max(1.0)) * sum
}

/// Whether negatives of this weight in all, and with this sum of squares of weights, may be left to a fair coin each, where no more than
/// `allowed` of their weight may match: surely, or but for one time in 30,000.
pub(crate) fn may_toss(weight: f64, squares: f64, allowed: f64) -> bool {
    weight <= allowed || weight / 2.0 + 2.0 * squares.sqrt() <= allowed
}

/// As many negatives of weight 1 as [`may_toss`] permits.
pub(crate) fn most_tossed(allowed: f64) -> f64 {
    // s / 2 + 2 sqrt(s) = allowed
    let root = (4.0 + 2.0 * allowed).sqrt() - 2.0;
    (root * root).max(allowed).floor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    #[test]
    fn coins_keep_what_is_allowed() {
        for allowed in [0.0, 0.7, 1.0, 9.0, 16.0, 40.0, 1234.5, 1e9] {
            let most = most_tossed(allowed);
            assert!(most >= allowed.floor() && most <= 2.0 * allowed);
            assert!(may_toss(most, most, allowed), "{allowed}: {most}");
            assert!(!may_toss(most + 1.0, most + 1.0, allowed), "{allowed}: {most}");
        }
        // A thousand coins: 500 heads, with a standard deviation of 15.8.
        assert_eq!(most_tossed(564.0), 1001.0);
        // One heavy key is no crowd.
        assert!(!may_toss(100.0, 1e4, 60.0) && may_toss(100.0, 100.0, 71.0));
    }

    #[test]
    fn chance_is_not_uneven_and_a_crowd_is() {
        for (windows, mean) in [(1, 100), (2, 5), (3, 1000), (64, 1), (512, 110), (512, 3000)] {
            for seed in 0..200 {
                let mut loads = vec![0u32; windows];
                let place = |i: u64| scramble(scramble(seed) ^ i) as usize;
                (0..windows as u64 * mean).for_each(|i| loads[place(i) % windows] += 1);
                assert!(!uneven(&loads), "{windows} windows, {mean} each, seed {seed}");
                // One window in eight takes all.
                let mut crowd = vec![0u32; windows];
                (0..windows as u64 * mean).for_each(|i| crowd[place(i) % windows / 8 * 8] += 1);
                assert!(windows < 512 || uneven(&crowd), "{windows} windows, {mean} each, seed {seed}");
            }
        }
        assert!(!uneven(&[]) && !uneven(&[7]));
    }

    #[test]
    fn too_many_are_far_more_than_expected() {
        assert!(!too_many(0, 0.0) && !too_many(16, 0.0) && too_many(17, 0.0));
        assert!(!too_many(70_000, 65_536.0) && too_many(80_000, 65_536.0));
    }
}
