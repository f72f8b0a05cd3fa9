//! \[Stacked\] -> its table 2 and figures 2 to 6, recomputed and measured, and the planner beside stacked Bloom filters.
//!
//! The figures are printed without numbers; what the text says about them is in the notes below our tables. Filters are
//! those of this library, with all their bytes counted: a stack of classic Bloom filters is built as the paper has it.
//! Every filter is asked for every key and for every negative, and the weights of the negatives that pass are added up:
//! a rate is no sample.

use std::error::Error;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tamis_bench::args::Timing;
use tamis_bench::machine::Machine;
use tamis_bench::table::{self, Table};

mod adaptive;
mod built;
mod families;
mod firehose;
mod formulas;
mod guarded;
mod learned;
mod load;
mod planner;
mod robust;
mod sets;

#[derive(Args, Serialize)]
#[command(mut_arg("rounds", |arg| arg.default_value("5").help("Rounds; the tables show medians (the paper has 25)")))]
pub(crate) struct Options {
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    n: usize,
    /// Negatives per key; filters are told half of them.
    #[arg(long, default_value_t = 100)]
    negatives_per_key: usize,
    /// Budgets of figure 3 in bits per key.
    #[arg(long, value_delimiter = ',', default_values_t = [6.0, 8.0, 10.0, 12.0, 14.0])]
    bits: Vec<f64>,
    /// Budgets of the planner's part in bits per key.
    #[arg(long, value_delimiter = ',', default_values_t = [8.0, 10.0, 12.0])]
    budgets: Vec<f64>,
    /// Exponents of Zipf's law of the planner's part.
    #[arg(long, value_delimiter = ',', default_values_t = ETAS)]
    etas: Vec<f64>,
    #[command(flatten)]
    #[serde(flatten)]
    timing: Timing,
    /// Latency of a solid-state drive in µs. No device is read: throughput is computed from reads x latency.
    #[arg(long, default_value_t = 100.0)]
    ssd_us: f64,
    /// Latency of a hard disk in µs.
    #[arg(long, default_value_t = 5000.0)]
    hdd_us: f64,
    /// Only figure 6: an adaptive stack beside one filter of its size.
    #[arg(long)]
    adaptive: bool,
    /// Negative queries of each phase of figure 6.
    #[arg(long, default_value_t = 10_000_000)]
    lifetime: usize,
    /// Latencies in µs of a false positive in figure 6; its parts are shown with the first.
    #[arg(long, value_delimiter = ',', default_values_t = [100.0, 20.0, 5000.0])]
    read_us: Vec<f64>,
    /// What to do [default: everything].
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true)]
    #[arg(default_values_t = Part::value_variants().to_vec())]
    part: Vec<Part>,
}

impl Options {
    fn negatives(&self) -> usize {
        self.n * self.negatives_per_key
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// Searches for the best stack.
    Table2,
    /// When a stack is smaller, and by how much.
    Figure2,
    /// Rates, query times and throughput on three sets of data.
    Figure3,
    /// Other filters, alone and stacked.
    Figure4,
    /// Loads that differ from what was told; construction.
    Figure5,
    /// More and fewer negatives told.
    Shares,
    /// The planner beside stacked Bloom filters.
    Planner,
    /// Queries of a stack beside one layer.
    Speed,
}

/// The exponent of the paper's experiments where it names none, and those it varies.
const ETA: f64 = 0.75;
const ETAS: [f64; 4] = [0.5, 0.75, 1.0, 1.25];

/// Bits per key of the paper's experiments where it names none.
const BITS: f64 = 10.0;

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    table2: Option<Vec<formulas::Search>>,
    figure2: Option<formulas::Figure2>,
    figure3: Option<Vec<sets::Set>>,
    figure4: Option<Vec<families::Pair>>,
    figure5: Option<robust::Figure5>,
    shares: Option<Vec<robust::Three>>,
    planner: Option<Vec<planner::Pair>>,
    speed: Option<Vec<families::Pair>>,
    figure6: Option<adaptive::Figure6>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    if options.n == 0 || options.negatives_per_key == 0 || options.timing.queries == 0 {
        return Err("--n, --negatives-per-key and --queries must be at least 1".into());
    }
    if options.lifetime == 0 || !options.etas.iter().all(|eta| (0.0..=4.0).contains(eta)) {
        return Err("--lifetime must be at least 1, --etas from 0 to 4".into());
    }
    let wanted = |part| !options.adaptive && options.part.contains(&part);
    Ok(Report {
        machine: Machine::read(),
        options,
        table2: wanted(Part::Table2).then(|| formulas::table2(options.timing.rounds)).transpose()?,
        figure2: wanted(Part::Figure2).then(formulas::figure2),
        figure3: wanted(Part::Figure3).then(|| sets::figure3(options)).transpose()?,
        figure4: wanted(Part::Figure4).then(|| families::figure4(options)).transpose()?,
        figure5: wanted(Part::Figure5).then(|| robust::figure5(options)).transpose()?,
        shares: wanted(Part::Shares).then(|| robust::shares(options)).transpose()?,
        planner: wanted(Part::Planner).then(|| planner::run(options)).transpose()?,
        speed: wanted(Part::Speed).then(|| families::speed(options)).transpose()?,
        figure6: options.adaptive.then(|| adaptive::figure6(options)).transpose()?,
    })
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        let sets = self.figure3.iter().flatten().flat_map(sets::Set::rows);
        let pairs = self.figure4.iter().chain(&self.speed).flatten().flat_map(families::Pair::rows);
        let robust = self.figure5.iter().flat_map(robust::Figure5::rows);
        let shares = self.shares.iter().flatten().flat_map(robust::Three::rows);
        let planner = self.planner.iter().flatten().flat_map(planner::Pair::rows);
        sets.chain(pairs).chain(robust).chain(shares).chain(planner).all(|row| row.wrong().is_empty())
            && self.figure6.as_ref().is_none_or(adaptive::Figure6::is_clean)
    }

    fn tables(&self) -> Vec<Table> {
        let options = self.options;
        let mut tables = Vec::new();
        tables.extend(self.table2.as_deref().map(formulas::table2_table));
        tables.extend(self.figure2.iter().flat_map(formulas::figure2_tables));
        tables.extend(self.figure3.iter().flatten().map(|set| set.table(options)));
        tables.extend(self.figure4.as_deref().map(|pairs| families::figure4_table(pairs, options)));
        tables.extend(self.figure5.iter().flat_map(|figure| robust::figure5_tables(figure, options)));
        let shares = |shares: &[robust::Three]| {
            let head = format!("More or fewer negatives told: {} keys, {BITS} bits per key, Zipf {ETA}.", options.n);
            robust::threes(shares, head, "share told", "The paper: the same relations from 10 to 80 %.")
        };
        tables.extend(self.shares.as_deref().map(shares));
        tables.extend(self.planner.as_deref().map(|pairs| planner::table(pairs, options)));
        tables.extend(self.speed.as_deref().map(|pairs| families::speed_table(pairs, options)));
        tables.extend(self.figure6.iter().flat_map(|figure| figure.tables(options)));
        if let Some(first) = tables.first_mut() {
            first.head = format!("{} {}, seed {}.", first.head, self.machine, options.timing.seed);
        }
        if let Some(last) = tables.last_mut().filter(|_| self.measured()) {
            last.note += " EFPR, here and above: every negative is asked for; each side, known or not, counts with its \
                          share of the queries and the share of its values that pass, so that it is no luck whether \
                          one of the heaviest is among them (the JSON has the sums of this very file too).";
        }
        tables
    }
}

impl Report<'_> {
    fn measured(&self) -> bool {
        !self.options.adaptive && self.options.part.iter().any(|part| !matches!(part, Part::Table2 | Part::Figure2))
    }
}
