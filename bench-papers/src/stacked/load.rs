//! keys, negatives and how often each is asked -> what a filter is told, and what of it passes.
//!
//! ```text
//!    rank        0 1 2 ......... given ............ total      heaviest first
//!    told        (value, weight) |  unseen: a share only
//!    asked       weight, of all of them: those that pass are added up
//! ```
//!
//! Negatives are many, 10^8 in the paper. Where they are random numbers they are made again from their rank for every
//! pass, and never held. Nothing is drawn when a rate is measured: every negative is asked for, and its weight is known.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use tamis::Filter;
use tamis_bench::stream::{Stream, scramble};

/// How often values are asked for, by rank.
pub(super) enum Weights {
    Zipf(Zipf),
    /// Sums of the weights up to each rank, the first of them 0.
    Listed(Vec<f64>),
}

pub(super) struct Zipf {
    exponent: f64,
    /// Sums of the first weights: beyond them the integral is exact to seven digits and more.
    head: Vec<f64>,
}

/// Ranks that are added up one by one.
const HEAD: usize = 1024;

impl Zipf {
    pub(super) fn new(exponent: f64) -> Zipf {
        let mut head = vec![0.0];
        for rank in 1..=HEAD {
            head.push(head[rank - 1] + (rank as f64).powf(-exponent));
        }
        Zipf { exponent, head }
    }

    /// The integral of x^-exponent up to x, less a constant.
    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { x.ln() } else { x.powf(rest) / rest }
    }

    /// Where the integral has this value.
    fn inverse(&self, value: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { value.exp() } else { (value * rest).powf(1.0 / rest) }
    }

    /// Weights of the heaviest `ranks` together. By the midpoint rule: the weight of a rank is the area half a rank around
    /// it.
    fn sum(&self, ranks: usize) -> f64 {
        match self.head.get(ranks) {
            Some(&sum) => sum,
            None => self.head[HEAD] + self.integral(ranks as f64 + 0.5) - self.integral(HEAD as f64 + 0.5),
        }
    }

    /// The rank, from 0 on, in whose part of the sums this one lies.
    fn rank(&self, sum: f64) -> usize {
        if sum < self.head[HEAD] {
            return self.head.partition_point(|&s| s <= sum).saturating_sub(1);
        }
        let x = self.inverse(self.integral(HEAD as f64 + 0.5) + sum - self.head[HEAD]);
        // Rank r, from 0 on, is the area from r + 1/2 to r + 3/2.
        (x - 0.5) as usize
    }

    /// One of the first `values` ranks, drawn by weight.
    pub(super) fn draw(&self, values: usize, stream: &mut Stream) -> usize {
        let all = self.sum(values);
        self.rank(stream.unit() * all).min(values.saturating_sub(1))
    }
}

impl Weights {
    pub(super) fn zipf(exponent: f64) -> Weights {
        Weights::Zipf(Zipf::new(exponent))
    }

    pub(super) fn listed(weights: impl IntoIterator<Item = f64>) -> Weights {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        sums.extend(weights.into_iter().map(|weight| {
            sum += weight;
            sum
        }));
        Weights::Listed(sums)
    }

    fn sum(&self, ranks: usize) -> f64 {
        match self {
            Weights::Zipf(zipf) => zipf.sum(ranks),
            Weights::Listed(sums) => sums[ranks.min(sums.len() - 1)],
        }
    }

    fn of(&self, rank: usize) -> f64 {
        match self {
            Weights::Zipf(zipf) => (rank as f64 + 1.0).powf(-zipf.exponent),
            Weights::Listed(_) => self.sum(rank + 1) - self.sum(rank),
        }
    }

    /// Whether no two ranks weigh the same: then it is certain which of them a filter knows.
    fn is_strict(&self) -> bool {
        matches!(self, Weights::Zipf(zipf) if zipf.exponent > 0.0)
    }
}

enum Values {
    /// By rank from here on.
    Mixed(u64),
    Listed(Vec<u64>),
}

/// Keys, and negative queries of a known law.
pub(super) struct Load {
    pub(super) keys: Vec<u64>,
    values: Values,
    /// Names of keys and negatives; none of numbers.
    pub(super) names: HashMap<u64, Vec<u8>>,
    told: Weights,
    asked: Weights,
    pub(super) total: usize,
    /// How many of them, the heaviest first, a filter is told of.
    pub(super) given: usize,
    strangers: u64,
}

/// Of the negatives that a filter knows, or of the others.
#[derive(Clone, Copy, Default)]
struct Side {
    values: usize,
    passing: usize,
    /// Weight of all, and of those that pass, as shares of all queries.
    mass: f64,
    passing_mass: f64,
}

pub(super) struct Passing {
    known: Side,
    others: Side,
    /// Values that are asked for nowhere else, and of them those that pass.
    strangers: [usize; 2],
    strict: bool,
}

/// What answers: values, and whether each passes.
type Asked<'a> = dyn FnMut(&[u64], &mut [bool]) -> Result<(), String> + 'a;

/// Strangers that are asked for besides: where all negatives are told there are no others.
const STRANGERS: usize = 1_000_000;

const BATCH: usize = 4096;

/// Weights of all negatives that are told, in queries: the lightest are still far from a millionth.
const TOLD: f64 = (1u64 << 40) as f64;

impl Load {
    /// Random keys, random negatives by Zipf's law.
    pub(super) fn random(keys: usize, total: usize, given: usize, exponent: f64, seed: u64) -> Load {
        let start = scramble(seed);
        let at = |i: usize| scramble(start.wrapping_add(i as u64));
        Load {
            keys: (0..keys).map(at).collect(),
            values: Values::Mixed(start.wrapping_add(keys as u64)),
            names: HashMap::new(),
            told: Weights::zipf(exponent),
            asked: Weights::zipf(exponent),
            total,
            given: given.min(total),
            strangers: start.wrapping_add((keys + total) as u64),
        }
    }

    /// Lists, with what is told of the negatives' weights and what is true. Heaviest first by what is told.
    pub(super) fn listed(keys: Vec<u64>, values: Vec<u64>, told: Weights, asked: Weights, given: usize) -> Load {
        let total = values.len();
        // Lists are hashes: a number is a member of both with a chance of one in a million million.
        let strangers = scramble(total as u64);
        let (values, names) = (Values::Listed(values), HashMap::new());
        Load { keys, values, names, told, asked, total, given: given.min(total), strangers }
    }

    /// The same queries, but filters are told another exponent.
    pub(super) fn told_exponent(mut self, exponent: f64) -> Load {
        self.told = Weights::zipf(exponent);
        self
    }

    /// The same queries, but filters are told of another number of negatives.
    pub(super) fn with_given(mut self, given: usize) -> Load {
        self.given = given.min(self.total);
        self
    }

    /// The same numbers, each with the name that it is the hash of.
    pub(super) fn named(mut self, names: HashMap<u64, Vec<u8>>) -> Load {
        self.names = names;
        self
    }

    /// The bytes of a key or a negative: its name, or the number where there are none.
    pub(super) fn text(&self, value: u64) -> Cow<'_, [u8]> {
        match self.names.get(&value) {
            Some(name) => Cow::Borrowed(name),
            None if self.names.is_empty() => Cow::Owned(value.to_le_bytes().to_vec()),
            None => Cow::Owned(format!("{value:016x}.com").into_bytes()),
        }
    }

    pub(super) fn value(&self, rank: usize) -> u64 {
        match &self.values {
            Values::Mixed(start) => scramble(start.wrapping_add(rank as u64)),
            Values::Listed(values) => values[rank],
        }
    }

    pub(super) fn expected(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let scale = TOLD / self.told.sum(self.given).max(f64::MIN_POSITIVE);
        // Counts of a log are told as they are.
        let scale = if matches!(self.told, Weights::Listed(_)) { 1.0 } else { scale };
        (0..self.given).map(move |rank| (self.value(rank), self.told.of(rank) * scale))
    }

    /// The share of queries on negatives that a filter is not told of, as far as whoever tells it knows. Of a log, what was
    /// seen once stands for as much that was not seen (section 5.1).
    pub(super) fn unseen(&self) -> f64 {
        let all = self.told.sum(self.total);
        let fresh = match &self.told {
            Weights::Zipf(_) => 0.0,
            Weights::Listed(sums) => sums.windows(2).filter(|pair| pair[1] - pair[0] == 1.0).count() as f64 / all,
        };
        (1.0 - (1.0 - fresh) * self.told.sum(self.given) / all).clamp(0.0, 1.0)
    }

    /// The share of queries that are for the heaviest so many.
    pub(super) fn mass(&self, known: usize) -> f64 {
        self.asked.sum(known) / self.asked.sum(self.total)
    }

    /// Asks for all negatives a filter that knows the heaviest `known`.
    pub(super) fn ask(&self, filter: &Filter, known: usize) -> Result<Passing, String> {
        self.ask_by(known, &mut |values, answers| filter.contains_into(values, answers).map_err(|e| e.to_string()))
    }

    /// Asks for all negatives whatever answers.
    pub(super) fn ask_by(&self, known: usize, filter: &mut Asked<'_>) -> Result<Passing, String> {
        let known = known.min(self.total);
        let strict = self.told.is_strict() || known == 0 || known == self.given;
        let strangers = self.strangers(STRANGERS);
        let mut answers = vec![false; strangers.len()];
        filter(&strangers, &mut answers)?;
        let strangers = [strangers.len(), answers.iter().filter(|yes| **yes).count()];
        let (known, others) = (self.ask_for(filter, 0..known)?, self.ask_for(filter, known..self.total)?);
        Ok(Passing { known, others, strangers, strict })
    }

    fn ask_for(&self, filter: &mut Asked<'_>, ranks: Range<usize>) -> Result<Side, String> {
        let (mut values, mut answers) = (Vec::with_capacity(BATCH), [false; BATCH]);
        let (mut passing, mut weight) = (0, 0.0);
        let mut from = ranks.start;
        while from < ranks.end {
            let to = ranks.end.min(from + BATCH);
            values.clear();
            values.extend((from..to).map(|rank| self.value(rank)));
            let answers = &mut answers[..values.len()];
            filter(&values, answers)?;
            for (rank, _) in (from..to).zip(answers).filter(|(_, yes)| **yes) {
                passing += 1;
                weight += self.asked.of(rank);
            }
            from = to;
        }
        let all = self.asked.sum(self.total);
        let mass = (self.asked.sum(ranks.end) - self.asked.sum(ranks.start)) / all;
        Ok(Side { values: ranks.len(), passing, mass, passing_mass: weight / all })
    }

    pub(super) fn sample(&self, count: usize, seed: u64) -> Vec<u64> {
        let mut stream = Stream::new(seed);
        let all = self.asked.sum(self.total);
        let rank = |stream: &mut Stream| match &self.asked {
            Weights::Zipf(zipf) => zipf.draw(self.total, stream),
            Weights::Listed(sums) => {
                let sum = stream.unit() * all;
                sums.partition_point(|&s| s <= sum).saturating_sub(1).min(self.total - 1)
            }
        };
        (0..count).map(|_| self.value(rank(&mut stream))).collect()
    }

    /// Values that are neither keys nor negatives.
    pub(super) fn strangers(&self, count: usize) -> Vec<u64> {
        (0..count).map(|i| scramble(self.strangers.wrapping_add(i as u64))).collect()
    }
}

impl Side {
    fn fpr(&self) -> f64 {
        self.passing as f64 / self.values.max(1) as f64
    }
}

impl Passing {
    /// The share of queries that pass this very filter. Whether one of the heaviest is among them is luck.
    pub(super) fn of_this_file(&self) -> f64 {
        self.known.passing_mass + self.others.passing_mass
    }

    /// The same without that luck: a filter treats all alike that it knows, and all that it does not know, so each side
    /// counts with its mass and with the share of its values that pass.
    pub(super) fn fpr(&self) -> f64 {
        if !self.strict {
            return self.of_this_file();
        }
        self.known.mass * self.known.fpr() + self.others.mass * self.others.fpr()
    }

    /// The share of known values that pass, and of unknown ones.
    pub(super) fn rates(&self) -> [f64; 2] {
        let [strangers, passing] = self.strangers;
        [self.known.fpr(), (self.others.passing + passing) as f64 / (self.others.values + strangers) as f64]
    }

    /// How many of the values that it knows pass.
    pub(super) fn known_passing(&self) -> usize {
        self.known.passing
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sums_and_draws_follow_the_law() {
        for exponent in [0.0, 0.5, 1.0, 1.25] {
            let zipf = Zipf::new(exponent);
            let exact: f64 = (1..=100_000).map(|rank| f64::from(rank).powf(-exponent)).sum();
            assert!((zipf.sum(100_000) / exact - 1.0).abs() < 1e-7, "{exponent}");
            let mut stream = Stream::new(1);
            let draws: Vec<usize> = (0..200_000).map(|_| zipf.draw(100_000, &mut stream)).collect();
            assert!(draws.iter().all(|&rank| rank < 100_000));
            for top in [1, 10, 1000, 3000, 50_000] {
                let (found, mean) = (draws.iter().filter(|&&r| r < top).count() as f64, 2e5 * zipf.sum(top) / exact);
                assert!((found - mean).abs() < 6.0 * mean.sqrt() + 1.0, "{exponent}, {top}: {found}, {mean}");
            }
        }
    }

    #[test]
    fn what_is_told_and_what_is_asked_agree() {
        let load = Load::random(100, 10_000, 5000, 1.0, 1);
        let told: Vec<(u64, f64)> = load.expected().collect();
        assert_eq!(told.len(), 5000);
        let share: f64 = told.iter().map(|(_, weight)| weight).sum::<f64>() / TOLD;
        assert!((share - 1.0).abs() < 1e-6 && (load.unseen() + load.mass(5000) - 1.0).abs() < 1e-12);
        let all: std::collections::HashSet<u64> =
            load.keys.iter().copied().chain((0..10_000).map(|r| load.value(r))).chain(load.strangers(100)).collect();
        assert_eq!(all.len(), 10_200);
        // A filter without keys lets nothing pass, and one that holds all that is asked for everything.
        let none = tamis::build(std::iter::empty::<u64>()).finish().unwrap();
        assert_eq!(load.ask(&none, 5000).unwrap().fpr(), 0.0);
        let every = (0..10_000).map(|r| load.value(r)).chain(load.strangers(STRANGERS));
        let every = tamis::build(every).finish().unwrap();
        let passing = load.ask(&every, 5000).unwrap();
        assert!((passing.fpr() - 1.0).abs() < 1e-9 && (passing.of_this_file() - 1.0).abs() < 1e-6);
        assert_eq!((passing.rates(), passing.known_passing()), ([1.0, 1.0], 5000));
    }
}
