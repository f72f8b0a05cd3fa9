//! names, a law of popularity -> a log that filters are built from, and the negative queries that come then.
//!
//! ```text
//!   log         drawn by the law: what a builder knows
//!   static      every negative alike                        log: alike
//!   skewed      Zipf's law by rank                          log: Zipf
//!   shifting    Zipf's law, and after every fifth of the    log: Zipf, so it tells of the first fifth alone
//!               queries all ranks move on by a fifth
//!   adversarial names that look like members, new ones,     log: Zipf
//!               and every other query one that matched before
//! ```

use clap::ValueEnum;
use serde::Serialize;
use tamis_bench::stream::Stream;

/// What queries are like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Workload {
    Static,
    Skewed,
    Shifting,
    Adversarial,
}

impl Workload {
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The exponent of Zipf's law of its log.
    pub(super) fn exponent(self) -> f64 {
        if self == Workload::Static { 0.0 } else { 1.0 }
    }

    /// The share of the queries that the log tells nothing of, if it misses this share of queries of its own kind: what a builder knows of
    /// the kind of workload. None: the planner estimates it.
    pub(super) fn unlisted_share(self, missed: f64) -> Option<f64> {
        match self {
            Workload::Static | Workload::Skewed => None,
            Workload::Shifting => Some(1.0 - (1.0 - missed) / PHASES as f64),
            Workload::Adversarial => Some(1.0),
        }
    }
}

const PHASES: usize = 5;

/// How often each of a list of names is queried: rank^-exponent.
pub(super) struct Law {
    /// Shares of the first names together; the first is 0.
    sums: Vec<f64>,
}

impl Law {
    pub(super) fn new(exponent: f64, names: usize) -> Law {
        let weights: Vec<f64> = (1..=names).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let mut sums = vec![0.0];
        for weight in weights {
            sums.push(sums[sums.len() - 1] + weight / all);
        }
        Law { sums }
    }

    fn names(&self) -> usize {
        self.sums.len() - 1
    }

    fn draw(&self, stream: &mut Stream) -> usize {
        let at = stream.unit();
        self.sums.partition_point(|&sum| sum <= at).saturating_sub(1).min(self.names() - 1)
    }

    /// A log of past queries: how often each name came.
    pub(super) fn log(&self, queries: usize, stream: &mut Stream) -> Vec<u32> {
        let mut counts = vec![0; self.names()];
        for _ in 0..queries {
            counts[self.draw(stream)] += 1;
        }
        counts
    }

    /// The name in the place of a rank, after so many shifts.
    fn name(&self, rank: usize, phase: usize) -> usize {
        (rank + phase * self.names() / PHASES) % self.names()
    }

    /// Draws queries: places in the list of names.
    pub(super) fn queries(&self, workload: Workload, count: usize, stream: &mut Stream) -> Vec<u32> {
        let phase = |at: usize| if workload == Workload::Shifting { at * PHASES / count } else { 0 };
        (0..count).map(|at| self.name(self.draw(stream), phase(at)) as u32).collect()
    }

    /// The share of the queries that every name has.
    pub(super) fn shares(&self, workload: Workload) -> Vec<f64> {
        let phases = if workload == Workload::Shifting { PHASES } else { 1 };
        let mut shares = vec![0.0; self.names()];
        for (phase, rank) in (0..phases).flat_map(|phase| (0..self.names()).map(move |rank| (phase, rank))) {
            shares[self.name(rank, phase)] += (self.sums[rank + 1] - self.sums[rank]) / phases as f64;
        }
        shares
    }
}

/// Names that an adversary makes: those of members, with a number.
pub(super) fn forged(members: &[Vec<u8>], count: usize, stream: &mut Stream) -> Vec<Vec<u8>> {
    let forge = |number: usize| {
        let member = &members[stream.below(members.len())];
        let end = member.iter().rposition(|&byte| byte == b'.').unwrap_or(member.len());
        [&member[..end], format!("-{number}").as_bytes(), &member[end..]].concat()
    };
    (0..count).map(forge).collect()
}

/// Queries those names, and every other time one that matched. Returns how many queries matched.
pub(super) fn attack<E>(
    forged: &[Vec<u8>],
    stream: &mut Stream,
    mut query: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut found, mut matched, mut next): (Vec<usize>, _, _) = (vec![], 0, 0);
    for _ in 0..forged.len() {
        let replay = !found.is_empty() && stream.draw() & 1 == 1;
        if !replay {
            let matches = query(&forged[next])?;
            matched += usize::from(matches);
            found.extend(matches.then_some(next));
            next += 1;
            continue;
        }
        let at = stream.below(found.len());
        if query(&forged[found[at]])? {
            matched += 1;
        } else {
            // It was fixed.
            found.swap_remove(at);
        }
    }
    Ok(matched)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn queries_follow_their_shares() {
        for workload in [Workload::Static, Workload::Skewed, Workload::Shifting] {
            let law = Law::new(workload.exponent(), 1000);
            let shares = law.shares(workload);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let mut counts = vec![0.0; 1000];
            law.queries(workload, 500_000, &mut Stream::new(1)).iter().for_each(|&name| counts[name as usize] += 1.0);
            for (name, (count, share)) in counts.iter().zip(&shares).enumerate() {
                let mean = 5e5 * share;
                assert!((count - mean).abs() < 6.0 * mean.sqrt() + 1.0, "{workload:?} {name}: {count}, {mean}");
            }
        }
        // Every fifth of the names leads once.
        let shifting = Law::new(1.0, 1000).shares(Workload::Shifting);
        assert!([0, 200, 400, 600, 800].iter().all(|&name| shifting[name] > 0.02), "{shifting:?}");
    }

    #[test]
    fn an_attack_repeats_what_matches() {
        let members = vec![b"login.example".to_vec(), b"dotless".to_vec()];
        let names = forged(&members, 10_000, &mut Stream::new(1));
        assert!(names.iter().all(|name| name.ends_with(b".example") || name.starts_with(b"dotless-")));
        // A filter that matches one in ten: with the replays more than half of the queries.
        let one_in_ten = |name: &[u8]| name.iter().map(|&byte| u64::from(byte)).sum::<u64>().is_multiple_of(10);
        let plain = attack(&names, &mut Stream::new(2), |name| Ok::<_, ()>(one_in_ten(name))).unwrap();
        assert!((4900..6100).contains(&plain), "{plain}");
        // One that fixes what was found.
        let mut fixed = std::collections::HashSet::new();
        let adapting = |name: &[u8]| Ok::<_, ()>(one_in_ten(name) && fixed.insert(name.to_vec()));
        let adaptive = attack(&names, &mut Stream::new(2), adapting).unwrap();
        assert!((700..1100).contains(&adaptive), "{adaptive}");
    }
}
