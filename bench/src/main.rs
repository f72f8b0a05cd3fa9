//! command line -> tables: the measurements behind every number the documentation quotes.
//!
//! ```text
//!   cargo run --release -p tamis-bench -- filters --n 1000000
//!   cargo run --release -p tamis-bench -- end-to-end --n 10000000
//!   cargo run --release -p tamis-bench -- exact
//!   cargo run --release -p tamis-bench -- certificates
//!   cargo run --release -p tamis-bench -- paper fpfs
//!   cargo run --release -p tamis-bench -- paper chained
//!   cargo run --release -p tamis-bench -- paper chained --apps huffman,zipf,functions
//!   cargo run --release -p tamis-bench -- paper stacked
//!   cargo run --release -p tamis-bench -- paper csc --part targets
//!   cargo run --release -p tamis-bench -- count-log
//!   cargo run --release -p tamis-bench -- adversary
//!   cargo run --release -p tamis-bench -- adaptive
//!   cargo run --release -p tamis-bench -- adaptive --simulate
//!   cargo run --release -p tamis-bench -- steer-table
//! ```
//!
//! One file per experiment; an experiment turns [`candidate::Candidate`]s into rows, [`table`] prints them. The candidates
//! of this repository are in [`ours`], those of other libraries in `peers` (a feature, so that a quick build needs none of
//! them). Exit code 1: some structure answered wrongly or could not be built; the last column says which. Needs Unix.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::paper::Paper;

mod adaptive;
mod adversary;
mod arch;
mod candidate;
mod certificates;
mod count_log;
mod end_to_end;
mod exact;
mod filters;
mod golomb;
mod listed;
mod machine;
mod many;
mod mapped;
mod measure;
mod ours;
mod paper;
#[cfg(feature = "peers")]
mod peers;
mod steer_table;
mod stream;
mod table;
mod xor;

/// Measures tamis beside other libraries, in one run, on one machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
    /// Write the results as JSON to this file; `-` prints JSON instead of the table.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Experiment {
    /// Approximate filters on random 64-bit keys: size, false positives, build, query, memory.
    Filters(filters::Options),
    /// The `tamis` command on a file of random text keys: time and resident memory of whole processes.
    EndToEnd(end_to_end::Options),
    /// Filters that know all keys they will be asked for: bits over the bound, build and queries.
    Exact(exact::Options),
    /// Revoked certificates of many issuers, a generated case: bytes with and without knowing the issuer.
    Certificates(certificates::Options),
    /// A log of queries, generated: time and memory to count it, beside `sort | uniq -c`.
    CountLog(count_log::Options),
    /// The table that plans of steered columns are made from: prints Rust source.
    SteerTable(steer_table::Options),
    /// Filters under attack: somebody watches their answers and tries to be let in more often than promised.
    Adversary(adversary::Options),
    /// Adaptive filters at several loads: bits per item, time of every operation, the worst operation.
    Adaptive(adaptive::Options),
    /// The figures of a paper, our numbers beside its own.
    #[command(subcommand)]
    Paper(paper::Paper),
}

fn run(cli: &Cli) -> Result<bool, Box<dyn Error>> {
    match &cli.experiment {
        Experiment::Filters(options) => {
            let report = filters::run(options)?;
            table::publish(&report, &[report.table()], cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::EndToEnd(options) => {
            let report = end_to_end::run(options)?;
            table::publish(&report, &[report.table()], cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Exact(options) => {
            let report = exact::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Certificates(options) => {
            let report = certificates::run(options)?;
            table::publish(&report, &[report.table()], cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::CountLog(options) => {
            if let Some(log) = &options.log {
                print!("{}", count_log::count_alone(log, options)?);
                return Ok(true);
            }
            let report = count_log::run(options)?;
            table::publish(&report, &[report.table()], cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Adversary(options) => {
            let report = adversary::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Adaptive(options) => {
            let report = adaptive::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::SteerTable(options) => {
            print!("{}", steer_table::run(options)?);
            Ok(true)
        }
        Experiment::Paper(Paper::Fpfs(options)) => {
            let report = paper::fpfs::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Paper(Paper::Chained(options)) => {
            let report = paper::chained::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Paper(Paper::Csc(options)) => {
            let report = paper::csc::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
        Experiment::Paper(Paper::Stacked(options)) => {
            let report = paper::stacked::run(options)?;
            table::publish(&report, &report.tables(), cli.json.as_deref())?;
            Ok(report.is_clean())
        }
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("tamis-bench: {e}");
            ExitCode::from(2)
        }
    }
}
