//! keys and all their negatives -> one table: filters that make no error on any listed key, side by side.
//!
//! Bits are compared with the lower bound f(0, lambda) of \[Chained\]; every listed key is queried after every build, in
//! every round. Structures take turns on the same fresh keys, as in [`crate::filters`]. A second table is about filters
//! that may let a share of the negatives pass (`share.rs`).

use std::error::Error;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tamis::bounds;

use crate::args::{Timing, is_named};
use crate::listed::{self, Listed, Row};
use crate::machine::Machine;
use crate::ours;
use crate::stream::Stream;
use crate::table::{self, Table, rows_of, some};

mod share;

#[derive(Args, Serialize)]
#[command(mut_arg("rounds", |arg| arg.default_value("1")))]
pub(crate) struct Options {
    /// Which tables.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Exact, Part::Share])]
    part: Vec<Part>,
    /// Number of keys.
    #[arg(long, default_value_t = 1_000_000)]
    n: usize,
    /// Negatives per key.
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 15.0, 16.0, 30.0, 31.0, 63.0, 100.0, 1000.0])]
    lambdas: Vec<f64>,
    /// Negatives per key and the share of them that may pass.
    #[arg(long, value_delimiter = ',', value_name = "LAMBDA:SHARE,...", default_values_t = share::DEFAULT)]
    shares: Vec<share::Wanted>,
    /// Most keys and negatives together: many negatives leave fewer keys. Beyond 20 million, cascades and builds from
    /// digests are left out, because they would take most of the time.
    #[arg(long, default_value_t = 32_000_000)]
    most: usize,
    #[command(flatten)]
    #[serde(flatten)]
    timing: Timing,
    /// Unlisted keys per round, which measure the fpr.
    #[arg(long, default_value_t = 1_000_000)]
    strangers: usize,
    /// Only structures whose name contains one of these.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    only: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// No listed negative may pass.
    Exact,
    /// A share of them may.
    Share,
}

impl Options {
    /// How many keys and negatives, with `lambda` negatives per key.
    fn sizes(&self, lambda: f64) -> (usize, usize) {
        let keys = self.n.min((self.most as f64 / (1.0 + lambda)) as usize).max(1);
        (keys, (keys as f64 * lambda).round() as usize)
    }

    /// Measures those structures that take part with `lambda` negatives per key.
    fn rows(&self, lambda: f64, all: &[Listed], stream: &mut Stream) -> Vec<Row> {
        let (keys, negatives) = self.sizes(lambda);
        let wanted = |listed: &&Listed| is_named(&self.only, &listed.name) && listed.takes(keys + negatives);
        let all: Vec<&Listed> = all.iter().filter(wanted).collect();
        let lists = |stream: &mut Stream| (stream.take(keys), stream.take(negatives));
        listed::compare(&all, &self.timing, stream, lists, self.strangers)
    }
}

/// More negatives per key never reach a steered column: plain bits reject the others.
const STEERED: usize = 16;

#[derive(Serialize)]
struct Group {
    lambda: f64,
    keys: usize,
    negatives: usize,
    bound: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    groups: Vec<Group>,
    shares: Vec<share::Group>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut lambdas = options.lambdas.iter().copied().chain(options.shares.iter().map(share::Wanted::lambda));
    if options.n == 0 || options.timing.rounds == 0 || lambdas.any(|lambda| !(0.0..1e6).contains(&lambda)) {
        return Err("--n and --rounds must be at least 1, --lambdas and --shares from 0 to a million".into());
    }
    let mut stream = Stream::new(options.timing.seed);
    let has = |part| options.part.contains(&part);
    let groups = if has(Part::Exact) { exact(options, &mut stream) } else { Vec::new() };
    let shares = if has(Part::Share) { share::run(options, &mut stream) } else { Vec::new() };
    if groups.iter().all(|group| group.rows.is_empty()) && shares.iter().all(|group| group.rows.is_empty()) {
        return Err("no structure has such a name".into());
    }
    Ok(Report { machine: Machine::read(), options, groups, shares })
}

fn exact(options: &Options, stream: &mut Stream) -> Vec<Group> {
    let all = ours::listed::exact().into_iter();
    #[cfg(feature = "peers")]
    let all = all.chain(crate::peers::exact::exact());
    let all: Vec<Listed> = all.collect();
    let group = |&lambda: &f64| {
        let (keys, negatives) = options.sizes(lambda);
        let rows = options.rows(lambda, &all, stream);
        // With few keys the ratio is not quite lambda.
        Group { lambda, keys, negatives, bound: bounds::f(0.0, negatives as f64 / keys as f64), rows }
    };
    options.lambdas.iter().map(group).collect()
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        let exact = self.groups.iter().flat_map(|group| &group.rows);
        exact.chain(self.shares.iter().flat_map(|group| &group.rows)).all(Row::is_clean)
    }

    fn tables(&self) -> Vec<Table> {
        let exact = some(&self.groups, |_| self.exact_table());
        exact.into_iter().chain(some(&self.shares, |groups| share::table(groups, self))).collect()
    }
}

impl Report<'_> {
    /// What both tables were measured on.
    fn setting(&self) -> String {
        let Timing { rounds, seed, .. } = self.options.timing;
        let s = if rounds == 1 { "" } else { "s" };
        format!("random u64 keys, {rounds} round{s}, seed {seed}. {}.", self.machine)
    }

    fn exact_table(&self) -> Table {
        let elements = |group: &Group| (group.keys + group.negatives) as f64;
        let steered = |group: &Group| (group.keys + group.negatives.min(STEERED * group.keys)) as f64;
        let over = |group: &Group, row: &Row| {
            (group.bound > 0.0).then(|| row.median(|s| s.bits / group.keys as f64 / group.bound)).flatten()
        };
        Table::of(rows_of(&self.groups, |group| &group.rows))
            .text("lambda, structure", |(group, row)| format!("{}, {}", group.lambda, row.name))
            .text("keys", |(group, _)| group.keys)
            .number("bits/key", 3, |(group, row)| row.median(|s| s.bits / group.keys as f64))
            .number("bound", 3, |(group, _)| group.bound)
            .number("over", 3, |(group, row)| over(group, row))
            .number("strangers %", 2, |(_, row)| row.rate.map(|rate| rate * 100.0))
            .number("build", 1, |(group, row)| row.median(|s| s.build * 1e6 / elements(group)))
            .number("build, 2 threads", 1, |(group, row)| row.median(|s| Some(s.build_twice? * 1e6 / elements(group))))
            .number("member", 1, |(_, row)| row.median(|s| s.members))
            .number("negative", 1, |(_, row)| row.median(|s| s.negatives))
            .number("mixed", 1, |(_, row)| row.median(|s| s.mixed))
            .number("member batch", 1, |(_, row)| row.median(|s| s.members_batch))
            .number("negative batch", 1, |(_, row)| row.median(|s| s.negatives_batch))
            .number("peak bits/element", 0, |(group, row)| row.median(|s| s.peak / elements(group)))
            .number("peak bits/steered", 0, |(group, row)| row.median(|s| s.peak / steered(group)))
            .text("wrong", |(_, row)| row.wrong.describe())
            .table(
                format!("Exact membership, {}", self.setting()),
                "over: bits over the bound f(0, lambda). Times in ns of processor time, one thread (builds with 2 \
                 threads: wall time): build per listed element (keys and negatives), queries per key; member and \
                 negative from their lists, mixed from both as often as they are listed. strangers: the share of keys \
                 on neither list that pass. peak: memory while building, the lists not included, the file of tamis \
                 from the start; by listed element, and by those that may reach a steered column: the keys and at most \
                 16 negatives for each. Cascades and what starts from digests take no part with more than 20 million \
                 listed elements.",
            )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;

    fn small(n: usize, only: &[&str]) -> Options {
        Options {
            part: vec![Part::Exact, Part::Share],
            n,
            lambdas: vec![1.0, 2.0, 5.0, 30.0],
            shares: vec!["10:0.03".parse().unwrap()],
            most: 60_000,
            timing: Timing { rounds: 1, queries: 2000, seed: 1 },
            strangers: 20_000,
            only: only.iter().map(ToString::to_string).collect(),
        }
    }

    /// Every structure, ours and the peers', is exact at few and many negatives and not below the bound.
    #[test]
    fn every_structure_is_exact() {
        let options = small(3000, &[]);
        let report = run(&options).unwrap();
        for group in &report.groups {
            assert_eq!(group.keys, if group.lambda == 30.0 { 1935 } else { 3000 });
            for row in &group.rows {
                assert_eq!(row.wrong.describe(), "", "{}, lambda {}", row.name, group.lambda);
                let sample = row.median.as_ref().unwrap();
                let over = sample.bits / group.keys as f64 / group.bound;
                assert!((1.0..3.5).contains(&over), "{}, lambda {}: {over}", row.name, group.lambda);
                assert_eq!(sample.build_twice.is_some(), row.name.starts_with("tamis"), "{}", row.name);
            }
        }
        assert!(report.is_clean());
        assert_eq!(report.tables().len(), 2);
    }

    #[test]
    fn slow_rows_leave_large_sets_to_the_others() {
        let names = |elements: usize| -> Vec<String> {
            let all = ours::listed::exact().into_iter();
            all.filter(|listed| listed.takes(elements)).map(|listed| listed.name).collect()
        };
        let (few, many) = (names(20_000_000), names(20_000_001));
        assert_eq!(many.len() + 5, few.len());
        assert!(many.iter().all(|name| !name.contains("cascade") && !name.contains("digests")));
    }

    #[test]
    fn unknown_names_and_bad_numbers_are_errors() {
        assert!(run(&small(10, &["no such filter"])).is_err());
        assert!(run(&small(0, &[])).is_err());
        let mut negative = small(10, &[]);
        negative.lambdas.push(-1.0);
        assert!(run(&negative).is_err());
    }
}
