//! a paper -> its figures again: our numbers beside those that were printed.
//!
//! ```text
//!   cargo run --release -p tamis-bench-papers -- fpfs
//!   cargo run --release -p tamis-bench-papers -- chained
//!   cargo run --release -p tamis-bench-papers -- chained --apps huffman,zipf,functions
//!   cargo run --release -p tamis-bench-papers -- chained --apps cuckoo,lsm
//!   cargo run --release -p tamis-bench-papers -- stacked
//!   cargo run --release -p tamis-bench-papers -- csc --part targets
//!   cargo run --release -p tamis-bench-papers -- families
//! ```
//!
//! `-- paper csc` is `-- csc`. Exit codes are those of `tamis-bench`.

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tamis_bench::table::{self, Output};

mod bounds;
mod chained;
mod csc;
mod data;
mod families;
mod fpfs;
mod golomb;
mod many;
mod mapped;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod stacked;
mod xor;

/// The figures of a paper, our numbers beside its own.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    paper: Paper,
    #[command(flatten)]
    output: Output,
}

/// Which paper.
#[derive(Subcommand)]
enum Paper {
    /// Filters with a false-positive-free set: figures 5 to 13 and the three case studies.
    Fpfs(fpfs::Options),
    /// ChainedFilter: figures 4, 6, 7, 8 and 10 to 13, tables 2 and 3, and maps beside them.
    Chained(chained::Options),
    /// Circular shift and coalesce, many sets: table 1, figures 2 and 4 to 13, and the library's targets.
    Csc(csc::Options),
    /// Stacked filters: table 2, figures 2 to 5, the planner beside them; figure 6 with --adaptive.
    Stacked(stacked::Options),
    /// Learn, stack or adapt: families of filters of equal bytes, on static, skewed, shifting and adversarial queries.
    Families(families::Options),
}

fn run(Cli { paper, output }: &Cli) -> Result<bool, Box<dyn Error>> {
    match paper {
        Paper::Fpfs(options) => output.publish(&fpfs::run(options)?),
        Paper::Chained(options) => output.publish(&chained::run(options)?),
        Paper::Csc(options) => output.publish(&csc::run(options)?),
        Paper::Stacked(options) => output.publish(&stacked::run(options)?),
        Paper::Families(options) => output.publish(&families::run(options)?),
    }
}

fn main() -> ExitCode {
    // The word `paper` may come first.
    let words = std::env::args_os().enumerate().filter(|(i, word)| *i != 1 || word != "paper");
    table::exit("tamis-bench-papers", run(&Cli::parse_from(words.map(|(_, word)| word))))
}
