//! arguments that several experiments have, and what follows from them.

use std::io;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tempfile::TempDir;

/// How often something is timed, and on which keys. An experiment may have other defaults.
#[derive(Clone, Copy, Args, Serialize)]
pub struct Timing {
    /// Rounds; the tables show medians.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Queries per timing.
    #[arg(long, default_value_t = 1_000_000)]
    pub queries: usize,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Where files are written.
#[derive(Args, Default)]
pub struct Folder {
    /// Folder to write files to [default: the system's temporary directory].
    #[arg(long, value_name = "DIR")]
    pub tmp: Option<PathBuf>,
}

impl Folder {
    /// A folder that is removed in the end.
    pub fn make(&self) -> io::Result<TempDir> {
        self.tmp.as_ref().map_or_else(tempfile::tempdir, tempfile::tempdir_in)
    }
}

/// Whether a structure is one of those that `--only` names by parts of their names; without names all are.
pub fn is_named(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|part| name.contains(part))
}
