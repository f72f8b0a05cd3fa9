//! a paper -> its figures again: our numbers beside those that were printed.

use clap::Subcommand;

pub(crate) mod chained;
pub(crate) mod csc;
mod data;
pub(crate) mod fpfs;
pub(crate) mod stacked;

/// Which paper.
#[derive(Subcommand)]
pub(crate) enum Paper {
    /// Filters with a false-positive-free set: figures 5 to 13 and the three case studies.
    Fpfs(fpfs::Options),
    /// ChainedFilter: figures 4, 6, 7, 8 and table 2, and maps beside them.
    Chained(chained::Options),
    /// Circular shift and coalesce, many sets: figures 2, 4 and 6 to 13, and the library's targets.
    Csc(csc::Options),
    /// Stacked filters: table 2, figures 2 to 5, the planner beside them; figure 6 with --adaptive.
    Stacked(stacked::Options),
}
