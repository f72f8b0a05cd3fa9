//! counts -> claims: what was measured, what is allowed, and how likely chance alone breaks the limit.
//!
//! A filter that errs with probability eps on every query, whatever came before, errs a binomial number of times. Its upper tail is below
//! that of the Poisson law of the same mean (from one above the mean on), so the Poisson quantile is a safe limit. "Three sigma" is the
//! probability .00135 of a normal law beyond them, on one side. Where a claim is about the worst of many windows, each has its share of that
//! probability (Bonferroni): an honest filter fails the claim with probability .00135 at most, however many windows there are.

use std::collections::VecDeque;

use serde::Serialize;

/// The probability beyond three sigma, on one side.
pub(crate) const CHANCE: f64 = 0.00135;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Claim {
    pub(super) what: String,
    pub(super) measured: f64,
    pub(super) limit: f64,
}

impl Claim {
    pub(super) fn new(what: impl Into<String>, measured: f64, limit: f64) -> Claim {
        Claim { what: what.into(), measured, limit }
    }

    /// At most as many wrong answers as a filter of this rate gives.
    pub(super) fn rate(what: impl Into<String>, wrong: u64, asked: u64, rate: f64) -> Claim {
        Claim::new(what, wrong as f64, most(rate * asked as f64, CHANCE) as f64)
    }

    pub(super) fn holds(&self) -> bool {
        self.measured <= self.limit
    }

    pub(super) fn describe(&self) -> String {
        let (found, relation) = (short(self.measured), if self.holds() { "<=" } else { "ABOVE" });
        format!("{} {found} {relation} {}", self.what, short(self.limit))
    }
}

fn short(x: f64) -> String {
    if x.fract() == 0.0 { format!("{x}") } else { format!("{x:.4}") }
}

/// The least count that a Poisson variable of this mean exceeds with probability at most `chance`.
pub(crate) fn most(mean: f64, chance: f64) -> u64 {
    if mean <= 0.0 {
        return 0;
    }
    // Far out in the tail, where nothing is left, and back until too much is.
    let mut k = (mean + 12.0 * mean.sqrt() + 60.0).floor();
    let mut mass = (k * mean.ln() - mean - ln_factorial(k)).exp();
    let mut tail = 0.0;
    while k > 0.0 && tail + mass <= chance {
        tail += mass;
        mass *= k / mean;
        k -= 1.0;
    }
    k as u64
}

/// Stirling's series; below 10 the product itself.
fn ln_factorial(k: f64) -> f64 {
    if k < 10.0 {
        return (1..=k as u32).map(|i| f64::from(i).ln()).sum();
    }
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    (k + 0.5) * k.ln() - k + half_ln_tau + 1.0 / (12.0 * k) - 1.0 / (360.0 * k.powi(3))
}

/// Counts wrong answers: in all, in each window, and in any `span` queries in a row.
#[derive(Default)]
pub(super) struct Meter {
    pub(super) asked: u64,
    pub(super) wrong: u64,
    window: u64,
    in_window: u64,
    /// Wrong answers of every window so far.
    pub(super) windows: Vec<u64>,
    span: u64,
    /// The numbers of the queries that were answered wrongly, the last `span` queries only.
    recent: VecDeque<u64>,
    worst_span: u64,
}

impl Meter {
    pub(super) fn new(window: u64, span: u64) -> Meter {
        Meter { window: window.max(1), span, ..Meter::default() }
    }

    #[inline]
    pub(super) fn note(&mut self, wrong: bool) {
        if wrong {
            self.wrong += 1;
            self.in_window += 1;
            self.recent.push_back(self.asked);
            while self.recent.front().is_some_and(|&first| first + self.span <= self.asked) {
                self.recent.pop_front();
            }
            self.worst_span = self.worst_span.max(self.recent.len() as u64);
        }
        self.asked += 1;
        if self.asked.is_multiple_of(self.window) {
            self.windows.push(std::mem::take(&mut self.in_window));
        }
    }

    /// All queries, the worst window, and any `span` queries in a row: a sustained rate (\[Broom\] section 2) leaves eps n + O(sqrt(eps n log n)) of n.
    pub(super) fn claims(&self, rate: f64) -> Vec<Claim> {
        let mut claims = vec![Claim::rate("all", self.wrong, self.asked, rate)];
        if let Some(&worst) = self.windows.iter().max() {
            let windows = self.windows.len();
            let limit = most(rate * self.window as f64, CHANCE / windows as f64);
            claims.push(Claim::new(format!("worst of {windows} windows"), worst as f64, limit as f64));
        }
        if self.asked >= self.span {
            let n = self.span as f64;
            let limit = rate * n + 4.0 * (rate * n * n.ln()).sqrt();
            claims.push(Claim::new("any n", self.worst_span as f64, limit.floor()));
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tails by hand: P[X > 0] = 1 - 1/e for mean 1; the normal law for large means.
    #[test]
    fn quantiles() {
        assert_eq!(most(0.0, CHANCE), 0);
        assert_eq!(most(1.0, 0.64), 0);
        assert_eq!(most(1.0, 0.63), 1);
        // P[X > 5] = 5.9e-4, P[X > 4] = 3.7e-3 for mean 1.
        assert_eq!((most(1.0, 6.0e-4), most(1.0, 5.8e-4), most(1.0, 3.6e-3)), (5, 6, 5));
        for mean in [400.0, 1e4, 1e6] {
            let sigmas = (most(mean, CHANCE) as f64 - mean) / f64::sqrt(mean);
            // The skewness of the law, 1/sqrt(mean), adds (9 - 1) / 6 of it.
            assert!((sigmas - 3.0 - 8.0 / 6.0 / f64::sqrt(mean)).abs() < 0.06, "{mean}: {sigmas}");
        }
        assert!((ln_factorial(10.0) - 3_628_800f64.ln()).abs() < 1e-7);
    }

    #[test]
    fn a_meter_finds_the_worst_of_everything() {
        let mut meter = Meter::new(10, 15);
        for i in 0..100 {
            meter.note((38..42).contains(&i) || i == 55 || i == 70);
        }
        assert_eq!((meter.asked, meter.wrong, meter.worst_span), (100, 6, 4));
        assert_eq!(meter.windows, [0, 0, 0, 2, 2, 1, 0, 1, 0, 0]);
        let claims = meter.claims(0.06);
        assert!(claims.iter().all(Claim::holds), "{claims:?}");
        let claims = meter.claims(0.001);
        assert!(claims.iter().take(2).all(|claim| !claim.holds()), "{claims:?}");
        assert!(claims[0].describe().starts_with("all 6 ABOVE "));
    }
}
