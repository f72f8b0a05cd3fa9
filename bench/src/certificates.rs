//! a generated case of revoked certificates -> one table: exact filters that know who issued a certificate, and others.
//!
//! Every issuer revokes its own share of what it issued, so a structure that treats issuers apart has a lower bound, the
//! sum over issuers of `n f(0, lambda)` \[Chained\]. Many small structures and an index of them cost something, which is set
//! against that gain. `certificates/case.rs` says how the case is made. Valid certificates stream into every build and are made
//! while it asks for them: none of the lists is in memory, and making a key is in the time of the build.

use std::error::Error;
use std::hint::black_box;

use clap::Args;
use serde::Serialize;

use crate::args::{Timing, is_named};
use crate::machine::Machine;
use crate::measure::{self, Median as _, least_nanos, progress, turns};
use crate::ours;
use crate::stream::Stream;
use crate::table::{self, Table};

pub(crate) mod case;

use case::{Case, Certificate, Issuer};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Revoked certificates.
    #[arg(long, default_value_t = 1_000_000)]
    n: u64,
    /// All certificates, the revoked included.
    #[arg(long, default_value_t = 100_000_000)]
    certificates: u64,
    /// Number of issuers.
    #[arg(long, default_value_t = 800)]
    issuers: usize,
    #[command(flatten)]
    #[serde(flatten)]
    timing: Timing,
    /// Valid certificates to query after every build, besides all revoked ones.
    #[arg(long, default_value_t = 10_000_000)]
    sample: usize,
    /// Only structures whose name contains one of these.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    only: Vec<String>,
}

pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) build: fn(&Case) -> Result<Made, Box<dyn Error>>,
}

pub(crate) struct Made {
    /// All that a client needs.
    bytes: usize,
    /// Bytes of its index of issuers, where it has one that can be told apart.
    pub(crate) index: Option<usize>,
    count: Count,
}

/// How many of some certificates are revoked.
type Count = Box<dyn Fn(&[Certificate]) -> usize>;

impl Made {
    /// A structure of so many bytes, and how to ask whether a certificate is revoked.
    pub(crate) fn new<F: 'static>(
        filter: F,
        bytes: usize,
        revoked: impl Fn(&F, Certificate) -> bool + 'static,
    ) -> Made {
        let count = move |all: &[Certificate]| all.iter().filter(|&&one| revoked(&filter, one)).count();
        Made { bytes, index: None, count: Box::new(count) }
    }
}

crate::measured! {
    struct Sample {
        bytes: f64,
        index: Option<f64>,
        /// Seconds.
        build: f64,
        /// Bytes in use at the worst moment of the build.
        peak: f64,
        /// Nanoseconds a query.
        revoked: f64,
        valid: f64,
    }
}

#[derive(Default, Serialize)]
struct Row {
    name: &'static str,
    median: Option<Sample>,
    /// Revoked certificates that were said to be valid, over all rounds.
    revoked_missed: usize,
    /// Valid certificates that were said to be revoked, over all rounds.
    valid_refused: usize,
    builds: Vec<String>,
    #[serde(skip)]
    samples: Vec<Sample>,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    issuers: Vec<Issuer>,
    /// Bits, with the issuers known and without.
    bound: f64,
    bound_without_issuers: f64,
    rows: Vec<Row>,
}

/// Repetitions of every query timing; the least counts.
const REPETITIONS: usize = 3;
/// So many certificates are made and asked for at a time.
const CHUNK: usize = 1 << 16;

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut all = ours::certificates::entrants();
    #[cfg(feature = "peers")]
    all.extend(crate::peers::certificates::entrants());
    all.retain(|entrant| is_named(&options.only, entrant.name));
    if all.is_empty() {
        return Err("no structure has such a name".into());
    }
    let Timing { rounds, seed, .. } = options.timing;
    if options.n == 0 || rounds == 0 {
        return Err("--n and --rounds must be at least 1".into());
    }
    let mut stream = Stream::new(seed);
    let mut case = Case::new(options.issuers, options.certificates, options.n, &mut stream)?;
    let mut rows: Vec<Row> = all.iter().map(|entrant| Row { name: entrant.name, ..Row::default() }).collect();
    for round in 0..rounds {
        for i in turns(all.len(), round) {
            progress(format_args!("round {}: {}", round + 1, all[i].name));
            rows[i].round(&all[i], &case, options, &mut stream);
        }
        case.renew(&mut stream);
    }
    progress("");
    rows.iter_mut().for_each(|row| row.median = Sample::median(row.samples.iter()));
    let (bound, bound_without_issuers) = (case.lower_bound(), case.bound_without_issuers());
    Ok(Report { machine: Machine::read(), options, issuers: case.issuers, bound, bound_without_issuers, rows })
}

impl Row {
    /// Builds once, asks for all revoked and for a sample of valid certificates, times queries.
    fn round(&mut self, entrant: &Entrant, case: &Case, options: &Options, stream: &mut Stream) {
        let ((made, time), memory) = measure::memory(|| measure::cpu(|| (entrant.build)(case)));
        let made = match made {
            Ok(made) => made,
            Err(e) => return self.builds.push(e.to_string()),
        };
        let mut revoked = case.revoked().peekable();
        while revoked.peek().is_some() {
            let chunk: Vec<Certificate> = revoked.by_ref().take(CHUNK).collect();
            self.revoked_missed += chunk.len() - (made.count)(&chunk);
        }
        for start in (0..options.sample).step_by(CHUNK) {
            let valid = case.sample(false, CHUNK.min(options.sample - start), stream);
            self.valid_refused += (made.count)(&valid);
        }
        let mut time_loop = |revoked: bool| {
            let queries = case.sample(revoked, options.timing.queries, stream);
            least_nanos(REPETITIONS, queries.len(), || (made.count)(black_box(&queries)))
        };
        self.samples.push(Sample {
            bytes: made.bytes as f64,
            index: made.index.map(|bytes| bytes as f64),
            build: time.as_secs_f64(),
            peak: memory.peak_with(made.bytes) as f64,
            revoked: time_loop(true),
            valid: time_loop(false),
        });
    }

    fn line(&self) -> Line<'_> {
        let bytes = self.median.as_ref().map(|sample| sample.bytes);
        Line { name: self.name, bytes, bits: bytes.map(|bytes| bytes * 8.0), row: Some(self) }
    }

    fn wrong(&self) -> String {
        let counts = [(self.revoked_missed, "revoked missed"), (self.valid_refused, "valid refused")];
        let parts = counts.iter().filter(|c| c.0 > 0).map(|(n, what)| format!("{n} {what}"));
        parts.chain(self.builds.iter().cloned()).collect::<Vec<_>>().join(", ")
    }
}

/// A line of the table: a bound, or a structure.
#[derive(Clone, Copy)]
struct Line<'a> {
    name: &'static str,
    bytes: Option<f64>,
    bits: Option<f64>,
    row: Option<&'a Row>,
}

impl Line<'_> {
    fn median<N: Into<Option<f64>>>(self, field: impl Fn(&Sample) -> N) -> Option<f64> {
        field(self.row?.median.as_ref()?).into()
    }
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.rows.iter().all(|row| row.wrong().is_empty())
    }

    fn tables(&self) -> Vec<Table> {
        let n = self.options.n as f64;
        let over = |line: Line<'_>| line.bits.filter(|_| self.bound > 0.0).map(|bits| bits / self.bound);
        let certificates = self.options.certificates as f64;
        let bounds = [("bound, issuers known", self.bound), ("bound, issuers not known", self.bound_without_issuers)];
        let bounds =
            bounds.map(|(name, bits)| Line { name, bytes: (bits / 8.0).ceil().into(), bits: bits.into(), row: None });
        let count = |which: fn(&Issuer) -> bool| self.issuers.iter().filter(|issuer| which(issuer)).count();
        let table = Table::of(bounds.into_iter().chain(self.rows.iter().map(Row::line)))
            .text("structure", |line| line.name)
            .number("bytes", 0, |line| line.bytes)
            .number("bits/revoked", 3, |line| Some(line.bits? / n))
            .number("over", 3, over)
            .number("index", 0, |line| line.median(|s| s.index))
            .number("build s", 2, |line| line.median(|s| s.build))
            .number("ns/certificate", 1, |line| line.median(|s| s.build * 1e9 / certificates))
            .number("revoked ns", 1, |line| line.median(|s| s.revoked))
            .number("valid ns", 1, |line| line.median(|s| s.valid))
            .number("peak MB", 0, |line| line.median(|s| s.peak / 1e6))
            .text("wrong", |line| line.row.map_or(String::new(), Row::wrong))
            .table(
                format!(
                    "{} revoked of {} certificates of {} issuers (generated; {} revoked none, {} a tenth and more, {} \
                     more than half), {} rounds, seed {}. {}.",
                    self.options.n,
                    self.options.certificates,
                    self.options.issuers,
                    count(|issuer| issuer.revoked == 0),
                    count(|issuer| issuer.revoked * 10 >= issuer.issued),
                    count(|issuer| issuer.revoked * 2 > issuer.issued),
                    self.options.timing.rounds,
                    self.options.timing.seed,
                    self.machine
                ),
                "bytes: all that a client needs; clubcard's as Mozilla's client writes it, without dates and logs, \
                 with 4 bytes for an issuer, and none where nothing is revoked. over: over the bound with issuers \
                 known. index: of the bytes, those that say where an issuer's part is, exceptions included. Times of \
                 one thread, processor time; a build makes the certificates it reads. peak: memory while building, the \
                 file of tamis counted from the start. wrong: of all revoked and of a sample of valid certificates.",
            );
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;

    fn options(n: u64, only: &str) -> Options {
        let only = vec![only.to_string()];
        let timing = Timing { rounds: 2, queries: 500, seed: 1 };
        Options { n, certificates: 40_000, issuers: 30, timing, sample: 70_000, only }
    }

    /// Every structure, ours and the peers', is right, and not below its bound.
    #[test]
    fn every_structure_is_right() {
        let options = options(1500, "");
        let report = run(&options).unwrap();
        assert!(report.is_clean());
        assert!(report.bound < report.bound_without_issuers);
        for row in &report.rows {
            let bytes = row.median.as_ref().unwrap().bytes;
            let bound = if row.name.contains("one ") { report.bound_without_issuers } else { report.bound };
            assert!(bytes * 8.0 > bound && bytes * 8.0 < 2.5 * bound, "{}: {bytes}, {bound}", row.name);
        }
        assert_eq!(report.tables()[0].rows.len(), report.rows.len() + 2);
    }

    /// A structure that forgets some and refuses others is found out.
    #[test]
    fn wrong_answers_are_counted() {
        let options = options(1500, "");
        let mut stream = Stream::new(1);
        let case = Case::new(options.issuers, options.certificates, options.n, &mut stream).unwrap();
        let entrant = Entrant {
            name: "wrong",
            build: |case| {
                let revoked: std::collections::HashSet<u64> = case.revoked().skip(3).map(|c| c.key).collect();
                Ok(Made::new(revoked, 1, |set, c| set.contains(&c.key) || c.issuer == 1))
            },
        };
        let mut row = Row { name: "wrong", ..Row::default() };
        row.round(&entrant, &case, &options, &mut stream);
        assert_eq!(row.revoked_missed, 3);
        // The second issuer has an eighth of all.
        assert!((5_000..13_000).contains(&row.valid_refused), "{}", row.valid_refused);
        assert!(row.wrong().starts_with("3 revoked missed, "));
    }

    #[test]
    fn unknown_names_and_bad_numbers_are_errors() {
        assert!(run(&options(1500, "no such filter")).is_err());
        assert!(run(&options(0, "")).is_err());
        assert!(run(&options(50_000, "")).is_err());
    }
}
