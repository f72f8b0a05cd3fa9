//! `tamis map ...` -> its commands, and the words they share.

mod build;
mod get;
mod inspect;
mod verify;

use std::path::Path;

use anyhow::{Error, Result};
use serde_json::{Value, json};
use tamis::{KeyType, Map, QueryError};

use super::{explain, grouped, open_file, percent};
use crate::Outcome;
use crate::args::TextArgs;
use crate::input;
use crate::mapped::{self, VerifyArgs};

/// Maps: a value for every key.
///
/// A map takes about as many bits per key as its values are worth (their entropy) and does not hold the keys. A key that it
/// was not built from gets any value, or none by chance, unless fingerprints tell it apart.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Build(build::Args),
    Get(get::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    match args.command {
        Command::Build(args) => build::run(args),
        Command::Get(args) => get::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// How to read pairs.
#[derive(clap::Args, Clone, Debug)]
struct PairArgs {
    /// The column of keys of .csv, .tsv, .jsonl and .parquet inputs; '#1' is the first of a csv or tsv without a header
    #[arg(long, value_name = "NAME", requires = "value_column")]
    key_column: Option<String>,
    /// The column of their values
    #[arg(long, value_name = "NAME", requires = "key_column")]
    value_column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
}

impl PairArgs {
    fn options(&self) -> input::Options {
        self.text.options(self.key_column.as_ref(), self.value_column.as_ref())
    }
}

/// Opens a map; errors name the file.
fn open(path: &Path, how: VerifyArgs) -> Result<Map> {
    open_file(path, "map", |path| mapped::map(path, how))
}

/// A question that the map refused to answer; says what would help.
fn query_error(path: &Path, error: QueryError) -> Error {
    explain(path, error, "the keys of the map are", "these")
}

/// How many nodes its tree has.
fn nodes(map: &Map) -> usize {
    map.layers().filter_map(|layer| layer.node).max().map_or(0, |last| last + 1)
}

/// What it is, in a word.
fn kind(map: &Map) -> &'static str {
    match nodes(map) {
        _ if map.is_empty() => "empty",
        0 => "constant",
        1 if map.is_function() => "function",
        _ => "compressed",
    }
}

/// What a report says about the structures of a map.
fn layers(map: &Map) -> Vec<Value> {
    let layers = map.layers().map(|layer| {
        json!({
            "node": layer.node,
            "depth": layer.depth,
            "purpose": layer.purpose,
            "structure": layer.structure,
            "details": layer.details,
            "bytes": layer.bytes,
        })
    });
    layers.collect()
}

/// What the values are worth, and what the map is to be measured by, in bits per key.
#[derive(Clone, Copy)]
struct ValueBits {
    entropy: Option<f64>,
    /// What it takes to recognise keys: log2(1 / rate).
    recognition: f64,
}

impl ValueBits {
    /// `entropy` is that of all keys together.
    fn new(keys: u64, entropy: Option<f64>, rate: f64) -> ValueBits {
        let entropy = entropy.filter(|_| keys > 0).map(|bits| bits / keys as f64);
        ValueBits { entropy, recognition: if rate > 0.0 { -rate.log2() } else { 0.0 } }
    }

    /// The fewest bits per key for any such map; nothing where that is nothing.
    fn lower_bound(self) -> Option<f64> {
        self.entropy.map(|entropy| entropy + self.recognition).filter(|&bound| bound > 0.0)
    }

    /// The line about a file of this size.
    fn size(self, bytes: u64, keys: u64) -> String {
        let mut out = format!("size        {} bytes", grouped(bytes));
        let Some(bits) = super::bits_per_key(bytes, keys) else { return out + "\n" };
        out += &format!(", {bits:.3} bits per key");
        match (self.entropy, self.lower_bound()) {
            (Some(entropy), Some(bound)) => {
                let sum = match self.recognition > 0.0 {
                    true => format!("{entropy:.3} and {:.3} to recognise keys", self.recognition),
                    false => format!("{entropy:.3}"),
                };
                let over = 100.0 * (bits / bound - 1.0);
                out += &format!("; the entropy of the values is {sum}, so {over:.1} % above it");
            }
            (Some(_), None) => out += "; the entropy of the values is 0",
            _ => {}
        }
        out + "\n"
    }
}

/// How many values there are, and of what kind.
fn values(distinct: Option<u64>, key_type: KeyType) -> String {
    let distinct = distinct.map_or("very many".to_string(), grouped);
    format!("values      {distinct} ({})\n", words(key_type))
}

/// The kind of keys or values.
fn words(key_type: KeyType) -> &'static str {
    if key_type == KeyType::Integer { "integer" } else { "bytes" }
}

/// The line about keys that are not there.
fn fpr_line(rate: f64) -> String {
    match rate {
        1.0.. => "fpr         any value for unlisted keys\n".to_string(),
        _ => format!("fpr         {} (unlisted keys that get a value)\n", percent(rate)),
    }
}
