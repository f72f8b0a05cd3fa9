//! keys and all their negatives -> one table: filters that make no error on any listed key, side by side.
//!
//! Bits are compared with the information bound f(0, lambda) of \[Chained\]; every listed key is asked after every build,
//! in every round. Structures take turns on the same fresh keys, as in [`crate::filters`].

use std::error::Error;

use clap::Args;
use serde::Serialize;
use tamis::math::bounds;

use crate::listed::{self, Listed, Row, Sample};
use crate::machine::Machine;
use crate::ours;
use crate::stream::Stream;
use crate::table::{Table, number};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys.
    #[arg(long, default_value_t = 1_000_000)]
    n: usize,
    /// Negatives per key.
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 16.0, 30.0, 100.0])]
    lambdas: Vec<f64>,
    /// Keys and negatives together are at most this many; with many negatives there are fewer keys.
    #[arg(long, default_value_t = 20_000_000)]
    most: usize,
    /// Rounds; the table shows medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Queries per timing.
    #[arg(long, default_value_t = 1_000_000)]
    queries: usize,
    /// Strangers per round that measure the rate for keys that are on neither list.
    #[arg(long, default_value_t = 1_000_000)]
    strangers: usize,
    /// Only structures whose name contains one of these.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    only: Vec<String>,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// All structures at one lambda.
#[derive(Serialize)]
struct Group {
    lambda: f64,
    keys: usize,
    negatives: usize,
    bound: f64,
    rows: Vec<Row>,
}

/// The results.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    groups: Vec<Group>,
}

/// Measures every structure that the options select, at every lambda.
pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut all = ours::listed::exact();
    #[cfg(feature = "peers")]
    all.extend(crate::peers::exact::exact());
    all.retain(|listed| options.only.is_empty() || options.only.iter().any(|part| listed.name.contains(part)));
    if all.is_empty() {
        return Err("no structure has such a name".into());
    }
    if options.n == 0 || options.rounds == 0 || options.lambdas.iter().any(|l| !(0.0..1e6).contains(l)) {
        return Err("--n and --rounds must be at least 1, --lambdas from 0 to a million".into());
    }
    Ok(compare(options, &all))
}

fn compare<'a>(options: &'a Options, all: &[Listed]) -> Report<'a> {
    let mut stream = Stream::new(options.seed);
    let group = |&lambda: &f64| {
        let keys = options.n.min((options.most as f64 / (1.0 + lambda)) as usize).max(1);
        let negatives = (keys as f64 * lambda).round() as usize;
        let lists = |stream: &mut Stream| (stream.take(keys), stream.take(negatives));
        let rows = listed::compare(all, options.rounds, &mut stream, lists, options.strangers, options.queries);
        // With few keys the ratio is not quite lambda.
        Group { lambda, keys, negatives, bound: bounds::f(0.0, negatives as f64 / keys as f64), rows }
    };
    let groups = options.lambdas.iter().map(group).collect();
    Report { machine: Machine::read(), options, groups }
}

impl Report<'_> {
    /// Whether every structure was built and exact.
    pub(crate) fn is_clean(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.rows).all(|row| row.wrong.describe().is_empty())
    }

    /// The results as Markdown.
    pub(crate) fn table(&self) -> Table {
        let columns = [
            "lambda, structure",
            "keys",
            "bits/key",
            "bound",
            "over",
            "strangers %",
            "build",
            "member",
            "negative",
            "mixed",
            "member batch",
            "negative batch",
            "peak bits/element",
            "wrong",
        ];
        let cells = |group: &Group, row: &Row| {
            let sample = row.median.as_ref();
            let elements = (group.keys + group.negatives) as f64;
            let some = |field: fn(&Sample) -> f64| sample.map(field);
            let bits = some(|s| s.bits).map(|bits| bits / group.keys as f64);
            let over = bits.filter(|_| group.bound > 0.0).map(|bits| bits / group.bound);
            vec![
                format!("{}, {}", group.lambda, row.name),
                group.keys.to_string(),
                number(bits, 3),
                number(Some(group.bound), 3),
                number(over, 3),
                number(row.rate.map(|rate| rate * 100.0), 2),
                number(some(|s| s.build).map(|ms| ms * 1e6 / elements), 1),
                number(some(|s| s.members), 1),
                number(some(|s| s.negatives), 1),
                number(some(|s| s.mixed), 1),
                number(sample.and_then(|s| s.members_batch), 1),
                number(sample.and_then(|s| s.negatives_batch), 1),
                number(some(|s| s.peak).map(|bits| bits / elements), 0),
                row.wrong.describe(),
            ]
        };
        let rows = self.groups.iter().flat_map(|group| group.rows.iter().map(move |row| cells(group, row)));
        Table {
            head: format!(
                "Exact membership, random u64 keys, {} rounds, seed {}. {}.",
                self.options.rounds, self.options.seed, self.machine
            ),
            columns: columns.map(String::from).to_vec(),
            rows: rows.collect(),
            note: "over: bits over the bound f(0, lambda). Times in ns of processor time, one thread: build per \
                   listed element (keys and negatives), queries per key; member and negative from their lists, \
                   mixed from both as often as they are listed. strangers: the share of keys on neither list that \
                   pass. peak: memory while building, the lists not included."
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Every structure, ours and the peers', is exact at few and many negatives and not below the bound.
    #[test]
    fn every_structure_is_exact() {
        let options = Options {
            n: 3000,
            lambdas: vec![1.0, 2.0, 5.0, 30.0],
            most: 60_000,
            rounds: 1,
            queries: 2000,
            strangers: 20_000,
            only: vec![],
            seed: 1,
        };
        let report = run(&options).unwrap();
        for group in &report.groups {
            assert_eq!(group.keys, if group.lambda == 30.0 { 1935 } else { 3000 });
            for row in &group.rows {
                assert_eq!(row.wrong.describe(), "", "{}, lambda {}", row.name, group.lambda);
                let over = row.median.as_ref().unwrap().bits / group.keys as f64 / group.bound;
                assert!((1.0..3.5).contains(&over), "{}, lambda {}: {over}", row.name, group.lambda);
            }
        }
        assert!(report.is_clean());
    }

    #[test]
    fn unknown_names_and_bad_numbers_are_errors() {
        let bad = |only: &str, n: usize| Options {
            n,
            lambdas: vec![1.0],
            most: 1000,
            rounds: 1,
            queries: 10,
            strangers: 0,
            only: vec![only.to_string()],
            seed: 1,
        };
        assert!(run(&bad("no such filter", 10)).is_err());
        assert!(run(&bad("", 0)).is_err());
    }
}
