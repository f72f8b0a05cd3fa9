//! random keys and candidates -> one table: size, false positives, build, query and memory, side by side.
//!
//! Numbers from different hours or machines cannot be compared, so everything runs interleaved:
//!
//! ```text
//!   round 1    fresh keys    A  B  C  D      each builds with two threads, with one, answers members and strangers
//!   round 2    fresh keys    B  C  D  A      nobody always follows the same one
//!   round 3    fresh keys    C  D  A  B
//! ```
//!
//! A row is the median over rounds; a ratio is the median of the rounds' ratios, so that a slow minute, which slows the
//! reference of the same round as well, cancels. Within a round a query time is the least of a few repetitions. Fresh keys
//! make a lucky or unlucky seed of a randomised construction one round's luck.

use std::error::Error;
use std::hint::black_box;

use clap::Args;
use serde::Serialize;

use crate::args::is_named;
use crate::candidate::{Built, Candidate};
use crate::machine::Machine;
use crate::measure::{self, Median as _, least_nanos, nanos_each, progress, turns};
use crate::ours;
use crate::stream::Stream;
use crate::table::{self, Columns, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys.
    #[arg(long, default_value_t = 1_000_000, value_parser = at_least_one)]
    n: usize,
    /// Rounds; the table shows medians.
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,
    /// Queries per timing.
    #[arg(long, default_value_t = 2_000_000, value_parser = at_least_one)]
    queries: usize,
    /// Unlisted keys that measure the fpr, in the first round.
    #[arg(long, default_value_t = 10_000_000, value_parser = at_least_one)]
    strangers: usize,
    /// Only structures whose name contains one of these, and the reference of the ratios.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    only: Vec<String>,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let n: usize = text.replace('_', "").parse().map_err(|e| format!("{e}"))?;
    if n == 0 { Err("must be at least 1".to_string()) } else { Ok(n) }
}

const THREADS: usize = 2;
/// With fewer keys one timing is of several builds.
const MIN_TIMED_KEYS: usize = 20_000;
const REPETITIONS: usize = 4;

#[cfg(feature = "peers")]
use crate::peers::REFERENCE;
#[cfg(not(feature = "peers"))]
const REFERENCE: &str = "";

crate::measured! {
    /// What one candidate showed in one round. Times in nanoseconds per key.
    struct Sample {
        bits: f64,
        peak_bits: f64,
        build: f64,
        build_parallel: Option<f64>,
        members: f64,
        strangers: f64,
        members_batch: Option<f64>,
        strangers_batch: Option<f64>,
    }
}

/// What must not happen.
#[derive(Default, PartialEq, Serialize)]
struct Failures {
    /// Keys the filter said no to, over all rounds, builds and ways to ask.
    false_negatives: usize,
    /// Keys it refused to take.
    refused: usize,
    /// Strangers for which loop and batch differ, at least.
    batch_differs: usize,
    builds: Vec<String>,
}

impl Failures {
    fn describe(&self) -> String {
        let counts = [
            (self.false_negatives, "false negatives"),
            (self.refused, "keys refused"),
            (self.batch_differs, "answers differ in batch"),
            (self.builds.len(), "builds failed"),
        ];
        let parts: Vec<String> = counts.iter().filter(|c| c.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
        parts.join(", ")
    }
}

#[derive(Default, Serialize)]
struct Row {
    name: String,
    keys: usize,
    fpr: Option<f64>,
    /// Medians over the rounds; none if every build failed.
    median: Option<Sample>,
    /// Medians of the ratios to the reference of the same round. A batch is compared with the reference's loop.
    ratio: Option<Sample>,
    failures: Failures,
    #[serde(skip)]
    samples: Vec<Option<Sample>>,
}

impl Row {
    fn bits(&self) -> Option<f64> {
        self.median.as_ref().map(|sample| sample.bits)
    }

    /// The least bits per key that any filter with this rate needs, log2(1/fpr) \[Carter 1978\].
    fn lower_bound(&self) -> Option<f64> {
        self.fpr.filter(|&fpr| fpr > 0.0).map(|fpr| -fpr.log2())
    }

    /// Bits beyond the bound, in percent of it.
    fn waste(&self) -> Option<f64> {
        let bound = self.lower_bound().filter(|&bound| bound > 0.0)?;
        Some((self.bits()? / bound - 1.0) * 100.0)
    }
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    reference: Option<&'static str>,
    rows: Vec<Row>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut candidates = ours::filters();
    #[cfg(feature = "peers")]
    candidates.extend(crate::peers::filters());
    candidates.retain(|c| c.name == REFERENCE || is_named(&options.only, &c.name));
    if candidates.is_empty() {
        return Err("no structure has such a name".into());
    }
    Ok(compare(options, &candidates))
}

fn compare<'a>(options: &'a Options, candidates: &[Candidate]) -> Report<'a> {
    let row = |c: &Candidate| Row { name: c.name.clone(), keys: c.keys_of(options.n), ..Row::default() };
    let mut rows: Vec<Row> = candidates.iter().map(row).collect();
    let mut stream = Stream::new(options.seed);
    for round in 0..options.rounds {
        let keys = stream.take(options.n);
        let strangers = stream.take(options.queries);
        for i in turns(candidates.len(), round) {
            progress(format_args!("round {} of {}: {}", round + 1, options.rounds, candidates[i].name));
            let many = if round == 0 { options.strangers } else { 0 };
            measure_one(&candidates[i], &keys, &strangers, many, &mut stream, &mut rows[i]);
        }
    }
    progress("");
    let reference = rows.iter().position(|row| row.name == REFERENCE);
    let reference_samples = reference.map(|r| rows[r].samples.clone());
    for row in &mut rows {
        row.median = Sample::median(row.samples.iter().flatten());
        row.ratio = reference_samples.as_ref().and_then(|reference| {
            let pairs = row.samples.iter().zip(reference);
            let ratios: Vec<Sample> = pairs.filter_map(|(a, b)| Some(ratio(a.as_ref()?, b.as_ref()?))).collect();
            Sample::median(ratios.iter())
        });
    }
    Report { machine: Machine::read(), options, reference: reference.map(|_| REFERENCE), rows }
}

fn measure_one(
    candidate: &Candidate,
    keys: &[u64],
    strangers: &[u64],
    fpr_strangers: usize,
    stream: &mut Stream,
    row: &mut Row,
) {
    let keys = &keys[..row.keys];
    let members = stream.sample(keys, strangers.len());
    let mut out = vec![false; strangers.len()];

    let build = candidate.ready(keys);
    // A few keys are built in less time than it takes to read a clock.
    let again = MIN_TIMED_KEYS / keys.len();
    let mut build_parallel = None;
    if candidate.threads {
        let (built, mut time) = measure::wall(|| build(THREADS));
        if again > 0 {
            time = measure::wall(|| (0..again).for_each(|_| drop(black_box(build(THREADS))))).1 / again as u32;
        }
        match built {
            Ok(built) => {
                build_parallel = Some(nanos_each(time, keys.len()));
                check(&built, keys, strangers, &mut out, &mut row.failures);
            }
            Err(e) => row.failures.builds.push(e.to_string()),
        }
    }
    let ((built, mut time), memory) = measure::memory(|| measure::cpu(|| build(1)));
    if again > 0 {
        time = measure::cpu(|| (0..again).for_each(|_| drop(black_box(build(1))))).1 / again as u32;
    }
    let built = match built {
        Ok(built) => built,
        Err(e) => {
            row.failures.builds.push(e.to_string());
            row.samples.push(None);
            return;
        }
    };
    // The check also warms the caches for the timings.
    check(&built, keys, strangers, &mut out, &mut row.failures);
    if fpr_strangers > 0 {
        row.fpr = Some(false_positive_rate(&built, fpr_strangers, stream));
    }
    let mut batch = |queries: &[u64]| built.has_batch().then(|| time_batch(&built, queries, &mut out));
    let per_key = |bytes: usize| bytes as f64 * 8.0 / keys.len() as f64;
    row.samples.push(Some(Sample {
        bits: per_key(built.bytes.unwrap_or(memory.kept)),
        peak_bits: per_key(memory.peak_with(built.bytes.unwrap_or(0))),
        build: nanos_each(time, keys.len()),
        build_parallel,
        members: time_loop(&built, &members),
        strangers: time_loop(&built, strangers),
        members_batch: batch(&members),
        strangers_batch: batch(strangers),
    }));
}

fn time_loop(built: &Built, queries: &[u64]) -> f64 {
    least_nanos(REPETITIONS, queries.len(), || built.count(black_box(queries)))
}

fn time_batch(built: &Built, queries: &[u64], out: &mut [bool]) -> f64 {
    least_nanos(REPETITIONS, queries.len(), || {
        built.batch(black_box(queries), out);
        black_box(&out);
    })
}

/// Asks for every key, and lets loop and batch answer the same strangers.
fn check(built: &Built, keys: &[u64], strangers: &[u64], out: &mut [bool], failures: &mut Failures) {
    failures.refused += built.refused;
    failures.false_negatives += keys.len() - built.count(keys);
    let loop_says = built.count(strangers);
    if !built.has_batch() {
        return;
    }
    for part in keys.chunks(out.len()) {
        let out = &mut out[..part.len()];
        out.fill(false);
        built.batch(part, out);
        failures.false_negatives += out.iter().filter(|&&yes| !yes).count();
    }
    out.fill(false);
    built.batch(strangers, out);
    failures.batch_differs += loop_says.abs_diff(out.iter().filter(|&&yes| yes).count());
}

fn false_positive_rate(built: &Built, strangers: usize, stream: &mut Stream) -> f64 {
    /// Drawn in parts, so that the strangers fit in the cache.
    const PART: usize = 1 << 16;
    let parts = (0..strangers).step_by(PART).map(|start| PART.min(strangers - start));
    let hits: usize = parts.map(|n| built.count(&stream.take(n))).sum();
    hits as f64 / strangers as f64
}

/// How many times the reference's. Where the reference has no parallel build or batch, its plain one stands in.
fn ratio(of: &Sample, to: &Sample) -> Sample {
    Sample {
        bits: of.bits / to.bits,
        peak_bits: of.peak_bits / to.peak_bits,
        build: of.build / to.build,
        build_parallel: of.build_parallel.map(|x| x / to.build_parallel.unwrap_or(to.build)),
        members: of.members / to.members,
        strangers: of.strangers / to.strangers,
        members_batch: of.members_batch.map(|x| x / to.members_batch.unwrap_or(to.members)),
        strangers_batch: of.strangers_batch.map(|x| x / to.strangers_batch.unwrap_or(to.strangers)),
    }
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.rows.iter().all(|row| row.failures == Failures::default())
    }

    fn tables(&self) -> Vec<Table> {
        type Field = fn(&Sample) -> Option<f64>;
        fn timed<'a>(columns: Columns<&'a Row>, name: &str, field: Field, ratios: bool) -> Columns<&'a Row> {
            let columns = columns.number(name, 1, |row| row.median.as_ref().and_then(field));
            if ratios { columns.number("×", 2, |row| row.ratio.as_ref().and_then(field)) } else { columns }
        }
        let ratios = self.reference.is_some();
        let columns = Table::of(&self.rows)
            .text("structure", |row| &row.name)
            .number("bits/key", 2, Row::bits)
            .number("fpr %", 4, |row| row.fpr.map(|fpr| fpr * 100.0))
            .number("bound", 2, Row::lower_bound)
            .number("waste %", 1, Row::waste);
        let columns = timed(columns, "build 1T", |s| Some(s.build), ratios);
        let mut columns = columns.number("build 2T", 1, |row| row.median.as_ref()?.build_parallel);
        let queries: [(_, Field); 4] = [
            ("member", |s| Some(s.members)),
            ("stranger", |s| Some(s.strangers)),
            ("member batch", |s| s.members_batch),
            ("stranger batch", |s| s.strangers_batch),
        ];
        for (name, field) in queries {
            columns = timed(columns, name, field, ratios);
        }
        columns = columns.number("peak bits/key", 0, |row| row.median.as_ref().map(|s| s.peak_bits));
        if !self.is_clean() {
            columns = columns.text("failures", |row| row.failures.describe());
        }
        let Options { n, queries, rounds, seed, .. } = self.options;
        let head = format!("{n} random u64 keys, {queries} queries, {rounds} rounds, seed {seed}. {}.", self.machine);
        vec![columns.table(head, self.note())]
    }
}

impl Report<'_> {
    fn note(&self) -> String {
        let mut note = format!(
            "Times in ns per key: processor time, except builds with {THREADS} threads (2T), which are wall time. \
             member, stranger: one call per key in a loop; batch: one call for all. bound: log2(1/fpr) of the measured \
             fpr ({} strangers); waste: bits/key beyond it. peak: memory while building with one thread, the result \
             included, the input not; that of tamis counts its file as there from the start. full: built on fewer \
             keys, as many as fill a power of two of places.",
            self.options.strangers
        );
        if let Some(reference) = self.reference {
            note += &format!(" ×: times the time of {reference} in the same round (batch: of its loop).");
        }
        note
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;
    use std::collections::HashSet;

    fn small(n: usize) -> Options {
        Options { n, rounds: 2, queries: 3000, strangers: 100_000, only: vec![], seed: 1 }
    }

    /// An exact set of keys with a chosen number of defects.
    fn set(name: &str, lost: usize, batch_says_yes: bool) -> Candidate {
        Candidate::new(name, move |keys, _| {
            let set: HashSet<u64> = keys.iter().skip(lost).copied().collect();
            let batch = move |set: &HashSet<u64>, keys: &[u64], out: &mut [bool]| {
                for (out, key) in out.iter_mut().zip(keys) {
                    *out = batch_says_yes || set.contains(key);
                }
            };
            Ok(Built::with_batch(set, |set, key| set.contains(&key), batch).of_bytes(keys.len() * 8))
        })
    }

    #[test]
    fn an_exact_set_is_clean_and_has_64_bits() {
        let options = small(1000);
        let report = compare(&options, &[set("exact", 0, false).threads()]);
        assert!(report.is_clean());
        let (row, median) = (&report.rows[0], report.rows[0].median.as_ref().unwrap());
        assert_eq!((median.bits, row.fpr, row.lower_bound()), (64.0, Some(0.0), None));
        assert!(median.build > 0.0 && median.build_parallel.unwrap() > 0.0);
        assert!(!report.tables()[0].columns.iter().any(|c| c == "failures"));
    }

    #[test]
    fn wrong_answers_are_found() {
        let options = small(1000);
        let broken = Candidate::new("broken", |_, _| Err("no luck".into()));
        let candidates = [set("loses 3", 3, false), set("batch differs", 0, true), broken];
        let report = compare(&options, &candidates);
        assert!(!report.is_clean());
        let table = &report.tables()[0];
        let last: Vec<&str> = table.rows.iter().map(|row| row.last().unwrap().as_str()).collect();
        // Two rounds; the lost keys are missed by loop and batch.
        assert_eq!(last, ["12 false negatives", "6000 answers differ in batch", "2 builds failed"]);
        assert_eq!(table.columns.last().unwrap(), "failures");
    }

    #[test]
    fn waste_is_relative_to_the_bound() {
        let options = small(1000);
        let mut report = compare(&options, &[set("exact", 0, false)]);
        report.rows[0].fpr = Some(1.0 / 256.0);
        assert_eq!((report.rows[0].lower_bound(), report.rows[0].waste()), (Some(8.0), Some(700.0)));
    }

    #[cfg(feature = "peers")]
    #[test]
    fn only_selects_by_name_and_keeps_the_reference() {
        let options = Options { only: vec!["sbbf".into(), "qfilter".into()], ..small(500) };
        let report = run(&options).unwrap();
        let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names[0], REFERENCE);
        assert!(names.len() > 2 && names[1..].iter().all(|name| name.contains("sbbf") || name.contains("qfilter")));
    }
}
