//! command line -> tables: the measurements behind every number the documentation quotes.
//!
//! ```text
//!   cargo run --release -p tamis-bench -- filters --n 1000000
//!   cargo run --release -p tamis-bench -- end-to-end --n 10000000
//!   cargo run --release -p tamis-bench -- exact
//!   cargo run --release -p tamis-bench -- certificates
//!   cargo run --release -p tamis-bench -- count-log
//!   cargo run --release -p tamis-bench -- adversary
//!   cargo run --release -p tamis-bench -- adaptive
//!   cargo run --release -p tamis-bench -- adaptive --simulate
//!   cargo run --release -p tamis-bench -- change
//!   cargo run --release -p tamis-bench -- patches
//!   cargo run --release -p tamis-bench -- sizes
//!   cargo run --release -p tamis-bench -- steer-table
//!   cargo run --release -p tamis-bench -- store
//!   cargo run --release -p tamis-bench -- figures
//! ```
//!
//! One file per experiment. An experiment turns [`candidate::Candidate`]s into a [`table::Report`], [`table`] prints it. The
//! candidates of this repository are in [`ours`], those of other libraries in `peers` (a feature, so that a quick build needs
//! none of them). Exit code 1: some structure answered wrongly or could not be built; the last column says which. Needs Unix.
//!
//! The public modules are those that `tamis-bench-papers`, the figures of the papers, needs too.

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod adaptive;
mod adversary;
mod arch;
pub mod args;
pub mod bits;
pub mod candidate;
mod certificates;
mod change;
mod count_log;
mod end_to_end;
mod exact;
mod figures;
mod filters;
pub mod listed;
pub mod machine;
pub mod measure;
pub mod ours;
mod patches;
#[cfg(feature = "peers")]
pub mod peers;
mod record;
mod sizes;
mod slices;
mod steer_table;
mod store;
pub mod stream;
pub mod table;

/// Measures tamis beside other libraries, in one run, on one machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
    #[command(flatten)]
    output: table::Output,
}

#[derive(Subcommand)]
enum Experiment {
    /// Approximate filters on random 64-bit keys: size, false positives, build, query, memory.
    Filters(filters::Options),
    /// The `tamis` command on a file of random text keys: time and resident memory of whole processes.
    EndToEnd(end_to_end::Options),
    /// Filters that are told every key that will be queried: bits over the bound, build and queries.
    Exact(exact::Options),
    /// Revoked certificates of many issuers, a generated case: bytes with and without knowing the issuer.
    Certificates(certificates::Options),
    /// A log of queries, generated: time and memory to count it, beside `sort | uniq -c`.
    CountLog(count_log::Options),
    /// The table that plans of steered columns are made from: prints Rust source.
    SteerTable(steer_table::Options),
    /// Filters under attack by an adversary who watches their answers and looks for more false positives than promised.
    Adversary(adversary::Options),
    /// Sizes by rate, and by what is promised about keys outside the set: nothing is timed.
    Sizes(sizes::Options),
    /// Patches of exact filters: sizes next to the bound, lists and filters; several days; queries through them.
    Patches(patches::Options),
    /// Pictures of recorded results (`--record`), as SVG.
    Figures(figures::Options),
    /// A filter in an object store: reads and bytes to open it and to query it.
    Store(store::Options),
    /// Adaptive filters at several loads: bits per item, time of every operation, the worst operation.
    Adaptive(adaptive::Options),
    /// Filters that change: an exact bit alone and behind a first layer; changes per second, the longest one, bits.
    Change(change::Options),
    /// A filter built in slices by several processes: time and peak memory of each, and whether the bytes are those of one build.
    Slices(slices::Options),
}

fn run(Cli { experiment, output }: &Cli) -> Result<bool, Box<dyn Error>> {
    match experiment {
        Experiment::Filters(options) => output.publish(&filters::run(options)?),
        Experiment::EndToEnd(options) => output.publish(&end_to_end::run(options)?),
        Experiment::Exact(options) => output.publish(&exact::run(options)?),
        Experiment::Certificates(options) => output.publish(&certificates::run(options)?),
        Experiment::CountLog(options) => match &options.log {
            Some(log) => plain(&count_log::count_alone(log, options)?),
            None => output.publish(&count_log::run(options)?),
        },
        Experiment::SteerTable(options) => plain(&steer_table::run(options)?),
        Experiment::Adversary(options) => output.publish(&adversary::run(options)?),
        Experiment::Sizes(options) => output.publish(&sizes::run(options)?),
        Experiment::Patches(options) => output.publish(&patches::run(options)?),
        Experiment::Figures(options) => plain(&figures::run(options)?),
        Experiment::Store(options) => output.publish(&store::run(options)?),
        Experiment::Adaptive(options) => output.publish(&adaptive::run(options)?),
        Experiment::Change(options) => output.publish(&change::run(options)?),
        Experiment::Slices(options) if !options.worker.is_empty() => plain(&slices::work(options)?),
        Experiment::Slices(options) => output.publish(&slices::run(options)?),
    }
}

/// Prints what is no table.
fn plain(text: &str) -> Result<bool, Box<dyn Error>> {
    print!("{text}");
    Ok(true)
}

/// The whole program.
pub fn main() -> ExitCode {
    table::exit("tamis-bench", run(&Cli::parse()))
}
