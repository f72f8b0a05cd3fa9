//! numbers of issuers and certificates -> a generated case of revocation, whose certificates are made when they are asked for.
//!
//! What revocation data look like, as far as it matters here:
//!
//! * A few issuers have most certificates, hundreds have few.
//! * The share that is revoked depends on the issuer, not on chance: a few in ten thousand where certificates are
//!   short-lived and automatic, percents where people ask for it, most of them after an incident; some issuers revoke
//!   nothing.
//! * So a filter that knows the issuer needs much less. The documentation of the crate clubcard has 12.2 million revoked of
//!   801.4 million in 8.5 MB, 5.6 bits for each, where 7.5 is the bound for one list without issuers.
//!
//! Nothing here is real. Sizes follow Zipf's law with exponent 1. The odds that a certificate is revoked are log-normal
//! over the issuers, with a spread that makes the two bounds differ about as much as that; one issuer in twenty has revoked
//! nothing, and among the smaller half one in a hundred had an incident that made the odds a thousand times higher.
//! Equal seeds give equal cases.
//!
//! ```text
//!   certificates by number   |== revoked ==|------- valid -------|= revoked =|---- valid ----|...
//!                            |          issuer 0                 |        issuer 1           |
//! ```
//!
//! A certificate's key is its number, scrambled by a bijection: keys are distinct, any part of them can be made again, and
//! the keys do not show that the revoked ones are the first of every issuer.

use std::f64::consts::TAU;

use serde::Serialize;
use tamis::bounds;

use crate::stream::{Stream, scramble};

#[derive(Clone, Copy)]
pub(crate) struct Certificate {
    pub(crate) issuer: u32,
    pub(crate) key: u64,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Issuer {
    /// All certificates, valid and revoked.
    pub(crate) issued: u64,
    pub(crate) revoked: u64,
    /// The number of its first certificate.
    first: u64,
}

pub(crate) struct Case {
    pub(crate) issuers: Vec<Issuer>,
    /// Moves the numbers, so that every round has keys of its own.
    shift: u64,
}

/// The spread of the natural logarithm of the odds.
const SPREAD: f64 = 2.0;
/// One of so many issuers has revoked nothing.
const QUIET: u64 = 20;
/// One of so many had an incident,
const UNLUCKY: u64 = 100;
/// which made the odds so many times higher.
const INCIDENT: f64 = 1000.0;

impl Case {
    /// `certificates` of `issuers`, of which `revoked` are revoked.
    pub(crate) fn new(issuers: usize, certificates: u64, revoked: u64, stream: &mut Stream) -> Result<Case, String> {
        if issuers == 0 || issuers as u64 > u64::from(u32::MAX) || certificates < issuers as u64 {
            return Err("there must be an issuer, and a certificate for every issuer".into());
        }
        let sizes = zipf(issuers, certificates);
        let odds: Vec<f64> = (0..issuers).map(|rank| odds(2 * rank >= issuers, stream)).collect();
        let revoked = revoke(&sizes, &odds, revoked)?;
        let mut first = 0;
        let issuer = |(issued, revoked)| {
            first += issued;
            Issuer { issued, revoked, first: first - issued }
        };
        Ok(Case { issuers: sizes.into_iter().zip(revoked).map(issuer).collect(), shift: stream.draw() })
    }

    /// The same numbers of certificates, with keys that were never used.
    pub(crate) fn renew(&mut self, stream: &mut Stream) {
        self.shift = stream.draw();
    }

    fn certificate(&self, issuer: usize, number: u64) -> Certificate {
        let key = scramble(self.shift.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Certificate { issuer: issuer as u32, key }
    }

    pub(crate) fn revoked_of(&self, issuer: usize) -> impl Iterator<Item = Certificate> + '_ {
        let Issuer { revoked, first, .. } = self.issuers[issuer];
        (first..first + revoked).map(move |number| self.certificate(issuer, number))
    }

    pub(crate) fn valid_of(&self, issuer: usize) -> impl Iterator<Item = Certificate> + '_ {
        let Issuer { revoked, first, issued } = self.issuers[issuer];
        (first + revoked..first + issued).map(move |number| self.certificate(issuer, number))
    }

    pub(crate) fn revoked(&self) -> impl Iterator<Item = Certificate> + '_ {
        (0..self.issuers.len()).flat_map(|issuer| self.revoked_of(issuer))
    }

    pub(crate) fn valid(&self) -> impl Iterator<Item = Certificate> + '_ {
        (0..self.issuers.len()).flat_map(|issuer| self.valid_of(issuer))
    }

    /// `n` revoked or `n` valid certificates, drawn with repetition; none where there are none.
    pub(crate) fn sample(&self, revoked: bool, n: usize, stream: &mut Stream) -> Vec<Certificate> {
        let mut end = 0;
        let count = |issuer: &Issuer| {
            end += if revoked { issuer.revoked } else { issuer.issued - issuer.revoked };
            end
        };
        let ends: Vec<u64> = self.issuers.iter().map(count).collect();
        let all = ends.last().copied().unwrap_or(0);
        let draw = |_| {
            let place = stream.below(all as usize) as u64;
            let issuer = ends.partition_point(|&end| end <= place);
            let Issuer { first, issued, revoked: count, .. } = self.issuers[issuer];
            // Counted from the end of the issuer's revoked, or of all that it issued.
            let number = if revoked { first + count } else { first + issued } - (ends[issuer] - place);
            self.certificate(issuer, number)
        };
        if all == 0 { Vec::new() } else { (0..n).map(draw).collect() }
    }

    pub(crate) fn totals(&self) -> (u64, u64) {
        self.issuers.iter().fold((0, 0), |(revoked, issued), i| (revoked + i.revoked, issued + i.issued))
    }

    /// Bits that whoever knows the issuers needs at least: `n f(0, lambda)` for every one of them.
    pub(crate) fn lower_bound(&self) -> f64 {
        self.issuers.iter().map(|issuer| bound(issuer.revoked, issuer.issued)).sum()
    }

    /// Bits that one list without issuers needs at least.
    pub(crate) fn bound_without_issuers(&self) -> f64 {
        let (revoked, issued) = self.totals();
        bound(revoked, issued)
    }
}

fn bound(revoked: u64, issued: u64) -> f64 {
    if revoked == 0 {
        return 0.0;
    }
    let n = revoked as f64;
    n * bounds::f(0.0, (issued - revoked) as f64 / n)
}

/// Sizes in proportion to 1, 1/2, 1/3, ...; every issuer has one at least, and the first what rounding left.
fn zipf(issuers: usize, certificates: u64) -> Vec<u64> {
    let weights = (1..=issuers).map(|rank| 1.0 / rank as f64);
    let unit = (certificates - issuers as u64) as f64 / weights.clone().sum::<f64>();
    let mut sizes: Vec<u64> = weights.map(|weight| 1 + (weight * unit) as u64).collect();
    let given: u64 = sizes.iter().sum();
    // Rounding can also have given one too many.
    sizes[0] = (sizes[0] + certificates).saturating_sub(given);
    sizes
}

/// The odds before scaling: nothing, or log-normal around 1.
fn odds(small: bool, stream: &mut Stream) -> f64 {
    // From (0, 1], so that the logarithm is finite.
    let mut uniform = || ((stream.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let normal = (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
    let [quiet, unlucky] = [QUIET, UNLUCKY].map(|often| stream.draw().is_multiple_of(often));
    if quiet {
        return 0.0;
    }
    (SPREAD * normal).exp() * if small && unlucky { INCIDENT } else { 1.0 }
}

/// How many every issuer revokes: by the odds, scaled so that the sum is `total`.
fn revoke(sizes: &[u64], odds: &[f64], total: u64) -> Result<Vec<u64>, String> {
    let room: u64 = sizes.iter().zip(odds).filter(|(_, odds)| **odds > 0.0).map(|(size, _)| size).sum();
    if total > room {
        return Err(format!("{total} revoked: the issuers that revoke have {room} certificates"));
    }
    let at = |scale: f64| -> Vec<u64> {
        let one = |(&size, &odds): (&u64, &f64)| (size as f64 * (1.0 - 1.0 / (1.0 + odds * scale))) as u64;
        sizes.iter().zip(odds).map(one).collect()
    };
    let (mut low, mut high) = (0.0, 1.0);
    // Ends: odds beyond the digits of a number are certainty, and the smallest are not far below 1.
    while at(high).iter().sum::<u64>() < total {
        high *= 2.0;
    }
    // As many halvings as a number has digits.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if at(middle).iter().sum::<u64>() <= total { low = middle } else { high = middle }
    }
    let mut counts = at(low);
    // Several issuers may step at the same scale: what is missing then is given to the first that have room.
    let mut missing = total - counts.iter().sum::<u64>();
    for ((count, &size), &odds) in counts.iter_mut().zip(sizes).zip(odds) {
        let more = if odds > 0.0 { missing.min(size - *count) } else { 0 };
        *count += more;
        missing -= more;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counts_are_as_wanted_and_keys_distinct() {
        let mut stream = Stream::new(1);
        let case = Case::new(50, 30_000, 700, &mut stream).unwrap();
        assert_eq!(case.totals(), (700, 30_000));
        assert!(case.issuers.windows(2).all(|pair| pair[0].issued >= pair[1].issued));
        assert!(case.issuers.iter().any(|issuer| issuer.revoked == 0));
        let revoked: HashSet<u64> = case.revoked().map(|c| c.key).collect();
        let valid: HashSet<u64> = case.valid().map(|c| c.key).collect();
        assert_eq!((revoked.len(), valid.len()), (700, 29_300));
        assert!(revoked.is_disjoint(&valid));
        // Samples are of the right kind, name the right issuer, and reach everything.
        let issuer_of = |c: &Certificate, kind: bool| match kind {
            true => case.revoked_of(c.issuer as usize).any(|other| other.key == c.key),
            false => case.valid_of(c.issuer as usize).any(|other| other.key == c.key),
        };
        for kind in [true, false] {
            assert!(case.sample(kind, 200, &mut stream).iter().all(|c| issuer_of(c, kind)));
        }
        let reached: HashSet<u64> = case.sample(true, 20_000, &mut stream).iter().map(|c| c.key).collect();
        assert_eq!(reached, revoked);
    }

    /// What the essay above says of the odds.
    #[test]
    fn issuers_differ_as_they_should() {
        let case = Case::new(800, 100_000_000, 1_000_000, &mut Stream::new(1)).unwrap();
        let ratio = case.lower_bound() / case.bound_without_issuers();
        assert!((0.6..0.8).contains(&ratio), "{ratio}");
        let quiet = case.issuers.iter().filter(|issuer| issuer.revoked == 0).count();
        assert!((20..60).contains(&quiet), "{quiet}");
        let most = case.issuers.iter().filter(|issuer| 2 * issuer.revoked > issuer.issued).count();
        assert!((1..20).contains(&most), "{most}");
    }

    #[test]
    fn extremes_and_impossible_numbers() {
        let mut stream = Stream::new(3);
        assert_eq!(Case::new(7, 7, 0, &mut stream).unwrap().totals(), (0, 7));
        assert!(Case::new(7, 7, 0, &mut stream).unwrap().sample(true, 5, &mut stream).is_empty());
        assert!(Case::new(0, 7, 0, &mut stream).is_err());
        assert!(Case::new(8, 7, 0, &mut stream).is_err());
        assert!(Case::new(3, 7, 8, &mut stream).is_err());
        for n in [1, 2, 3, 10, 1000] {
            assert_eq!(zipf(n, n as u64 + 5).iter().sum::<u64>(), n as u64 + 5);
        }
        // Everything may be revoked.
        assert_eq!(revoke(&[5, 3, 2], &[1e-3, 2.0, 0.0], 8).unwrap(), [5, 3, 0]);
        assert_eq!(revoke(&[5, 5, 5], &[1.0, 1.0, 1.0], 7).unwrap().iter().sum::<u64>(), 7);
    }
}
