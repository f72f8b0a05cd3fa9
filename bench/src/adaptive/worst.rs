//! random operations -> what single ones cost: words touched and accesses of the reverse map, up to the worst.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Serialize;

use super::Options;
use crate::adversary::Entry;
use crate::adversary::subject::{self, Work};
use crate::measure::progress;
use crate::stream::{Stream, place, scramble};
use crate::table::Table;

/// How often each value came up.
#[derive(Default, Serialize)]
struct Histogram {
    counts: BTreeMap<u32, u64>,
}

impl Histogram {
    fn note(&mut self, value: u32) {
        *self.counts.entry(value).or_insert(0) += 1;
    }

    fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    fn mean(&self) -> f64 {
        let sum: f64 = self.counts.iter().map(|(&value, &count)| f64::from(value) * count as f64).sum();
        sum / self.total().max(1) as f64
    }

    /// The least value that at least this share of all does not exceed.
    fn quantile(&self, share: f64) -> u32 {
        let wanted = (share * self.total() as f64).ceil() as u64;
        let mut seen = 0;
        for (&value, &count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return value;
            }
        }
        0
    }
}

#[derive(Default, Serialize)]
struct Cost {
    words: Histogram,
    reads: Histogram,
    accesses: Histogram,
}

impl Cost {
    fn note(&mut self, stats: subject::Cost) {
        self.words.note(stats.words);
        self.reads.note(stats.reads);
        self.accesses.note(stats.reads + stats.writes);
    }
}

#[derive(Default, Serialize)]
pub(super) struct Worst {
    filter: &'static str,
    queries: u64,
    insert: Cost,
    delete: Cost,
    report: Cost,
    lost: u64,
    errors: Vec<String>,
}

impl Worst {
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.errors.is_empty()
    }
}

/// The share of the capacity that is filled, about.
const LOAD: f64 = 0.9;

/// One operation in eight is an insertion and one a removal where the filter has it, the others are queries of strangers, whose false positives are reported. A third of the queries
/// are for old false positives, a third of the keys that come were there before.
pub(super) fn run(options: &Options, entry: Entry) -> Result<Worst, Box<dyn Error>> {
    progress(format_args!("worst operation: {}", entry.name));
    let seed = options.timing.seed;
    let secret = scramble(seed);
    let mut subject = (entry.build)(options.keys, [secret, scramble(secret)])?;
    let mut dice = Stream::new(seed);
    let target = (LOAD * options.keys as f64) as usize;
    let mut members: Vec<u64> = (0..target).map(|_| dice.draw() | 1).collect();
    subject.work_all(Work::Insert, &members)?;
    let (mut pool, mut gone): (Vec<u64>, Vec<u64>) = (vec![], vec![]);
    let mut worst = Worst { filter: entry.name, ..Worst::default() };
    for _ in 0..options.operations {
        let draw = dice.draw();
        let at = |n: usize| place(scramble(draw), n);
        let (done, cost) = match draw >> 61 {
            0 if (members.len() as u64) < options.keys => {
                let key = match gone.is_empty() || !draw.is_multiple_of(3) {
                    true => draw | 1,
                    false => gone.swap_remove(at(gone.len())),
                };
                members.push(key);
                (subject.work(Work::Insert, key), &mut worst.insert)
            }
            0 | 1 if members.len() > target / 2 && subject.deletes() => {
                let key = members.swap_remove(at(members.len()));
                match gone.len() {
                    4096 => gone[at(4096)] = key,
                    _ => gone.push(key),
                }
                (subject.work(Work::Delete, key), &mut worst.delete)
            }
            _ => {
                worst.queries += 1;
                let key = if pool.is_empty() || !draw.is_multiple_of(3) { draw & !1 } else { pool[at(pool.len())] };
                if !subject.ask(key) {
                    continue;
                }
                match pool.len() {
                    4096 => pool[at(4096)] = key,
                    _ => pool.push(key),
                }
                (subject.work(Work::Report, key), &mut worst.report)
            }
        };
        match done {
            Ok(stats) => cost.note(stats),
            Err(e) => {
                worst.errors.push(e);
                break;
            }
        }
    }
    worst.lost = (members.len() - subject.count(&members)) as u64;
    progress("");
    Ok(worst)
}

pub(super) fn table(options: &Options, all: &[Worst]) -> Table {
    let mut rows = vec![];
    for worst in all {
        for (name, cost) in [("insert", &worst.insert), ("delete", &worst.delete), ("repair", &worst.report)] {
            let histograms = [("words", &cost.words), ("map", &cost.accesses)];
            rows.extend(histograms.map(|(of, histogram)| (worst.filter, name, cost, of, histogram)));
        }
    }
    let unclean = all.iter().filter(|worst| !worst.is_clean());
    let faults: String =
        unclean.map(|w| format!(" {}: {} keys lost, {}.", w.filter, w.lost, w.errors.join(", "))).collect();
    Table::of(rows)
        .text("filter, operation", |(filter, name, ..)| format!("{filter}, {name}"))
        .text("how many", |(.., histogram)| histogram.total())
        .number("reads, mean", 4, |(_, _, cost, ..)| cost.reads.mean())
        .text("of", |(.., of, _)| of)
        .number("mean", 2, |(.., histogram)| histogram.mean())
        .texts(["p50", "p99", "p99.99", "max"], |(.., histogram)| {
            [0.5, 0.99, 0.9999, 1.0].map(|share| histogram.quantile(share))
        })
        .table(
            format!("{} random operations on a filter for {} keys, {LOAD} full.", options.operations, options.keys),
            format!(
                "words: of the filter, read or written by one operation and the moves that it makes, as its statistics \
                 say; map: reads and writes of the reverse map. An operation in eight inserts, one deletes; a third of \
                 the queries are for old false positives, and a third of the keys that come were there before.{faults}"
            ),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_histogram() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0);
        (0..9999).for_each(|_| histogram.note(1));
        histogram.note(77);
        assert_eq!([0.5, 0.99, 0.9999, 1.0].map(|share| histogram.quantile(share)), [1, 1, 1, 77]);
        assert!((histogram.mean() - 1.0076).abs() < 1e-9 && histogram.total() == 10_000);
    }
}
