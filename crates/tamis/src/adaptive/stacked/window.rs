//! rejections and false positives, one by one -> whether their rate is the expected one.
//!
//! A window ends after [`FALSE_POSITIVES_PER_WINDOW`] false positives were due. One that had half as many more by then is *bad*: with 100 due that
//! is five standard deviations, one window in two million, if false positives come one by one. They come in clumps where one value is
//! queried often; but those are the values that the second layer holds. Fewer than expected are no reason to do anything: the
//! filter is better than was hoped.

/// False positives that are due in a window: the least count that is judged.
pub(super) const FALSE_POSITIVES_PER_WINDOW: u64 = 100;
/// How many are too many.
pub(super) const MAX_FALSE_POSITIVES: u64 = FALSE_POSITIVES_PER_WINDOW + FALSE_POSITIVES_PER_WINDOW / 2;
/// Negative queries of the longest window.
const MAX_QUERIES: f64 = (1u64 << 40) as f64;

/// Queries since the window began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Window {
    /// Negative queries: those that were rejected, and those that matched.
    pub(super) queries: u64,
    pub(super) passed: u64,
}

/// What a window shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is not over.
    Open,
    /// No more than expected, and half as many.
    Good,
    /// More.
    Bad,
}

impl Window {
    /// Judges the queries so far where such a rate is expected; a window that is over begins again.
    pub(super) fn judge(&mut self, expected: f64) -> Verdict {
        let length = (FALSE_POSITIVES_PER_WINDOW as f64 / expected.max(f64::MIN_POSITIVE)).min(MAX_QUERIES) as u64;
        let verdict = match self.queries > length {
            _ if self.passed > MAX_FALSE_POSITIVES => Verdict::Bad,
            true => Verdict::Good,
            false => return Verdict::Open,
        };
        *self = Window::default();
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    /// Windows at a rate: how many are good, and how many bad.
    fn run(rate: f64, expected: f64, queries: u64) -> (u32, u32) {
        let (mut window, mut good, mut bad) = (Window::default(), 0, 0);
        for i in 0..queries {
            window.queries += 1;
            if (scramble(i) as f64) < rate * u64::MAX as f64 {
                window.passed += 1;
                match window.judge(expected) {
                    Verdict::Good => good += 1,
                    Verdict::Bad => bad += 1,
                    Verdict::Open => {}
                }
            }
        }
        (good, bad)
    }

    #[test]
    fn noise_is_no_alarm_and_twice_the_rate_is_one() {
        let (good, bad) = run(0.01, 0.01, 4_000_000);
        assert!(bad == 0 && good > 350, "{good}, {bad}");
        let (good, bad) = run(0.02, 0.01, 1_000_000);
        assert!(good == 0 && bad > 100, "{good}, {bad}");
        // Better than expected is good.
        assert!(run(0.001, 0.01, 1_000_000).1 == 0);
        assert_eq!(run(0.5, 0.0, 1000), (0, 3));
    }
}
