//! `tamis map ...` -> its commands, and the words they share.

mod build;
mod get;
pub(super) mod inspect;
mod verify;

use std::path::Path;

use anyhow::{Error, Result};
use serde_json::{Value, json};
use tamis::maps::LayerInfo;
use tamis::{KeyType, Map, QueryError};

use super::{MIN_KEYS_FOR_SHARE, explain, grouped, open_file, percent, shown};
use crate::Outcome;
use crate::args::{self, EmptyArgs, TextArgs};
use crate::input;
use crate::mapped::{self, How};

/// Build and query maps: a value for every key
///
/// A map takes about as many bits per key as the entropy of its values, and 8 more to check keys, which it does not store: one
/// unlisted key in 256 gets a value.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Build(build::Args),
    Get(get::Args),
    Verify(verify::Args),
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    match args.command {
        Command::Build(args) => build::run(args),
        Command::Get(args) => get::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// How to read pairs.
#[derive(clap::Args, Clone, Debug)]
struct PairArgs {
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#1' is the first of a csv or tsv without a header
    #[arg(long, value_name = "NAME", requires = "value_column")]
    column: Option<String>,
    /// Column of values
    #[arg(long, value_name = "NAME", requires = "column")]
    value_column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    empty: EmptyArgs,
}

impl PairArgs {
    fn options(&self) -> input::Options {
        self.empty.apply(self.text.any_options(self.column.as_ref(), self.value_column.as_ref()))
    }
}

/// Opens a map; errors name the file.
fn open(path: &Path, how: How) -> Result<Map> {
    open_file(path, "map", |path| mapped::map(path, how))
}

/// How keys of this map are read.
fn typed(path: &Path, map: &Map, options: input::Options) -> Result<input::Options> {
    args::typed(&shown(path), (!map.is_empty()).then(|| map.key_type()), options)
}

/// A query that the map rejected; says what would help.
fn query_error(path: &Path, error: QueryError) -> Error {
    explain(path, error, "the map")
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
fn layers(layers: impl Iterator<Item = LayerInfo>) -> Vec<Value> {
    let layers = layers.map(|layer| {
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

/// The lower bound of the size of a map, in bits per key.
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

    /// The least bits per key of any such map; none if that is 0.
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
                out += &format!("; lower bound {bound:.3}");
                if keys >= MIN_KEYS_FOR_SHARE {
                    out += &format!(", {:.1} % above it", 100.0 * (bits / bound - 1.0));
                }
                out += &format!(": entropy {entropy:.3}");
                if self.recognition > 0.0 {
                    out += &format!(", fingerprints {:.3}", self.recognition);
                }
            }
            (Some(_), None) => out += "; entropy 0",
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

/// The line about unlisted keys.
fn fpr_line(rate: f64) -> String {
    match rate {
        1.0.. => "fpr         100 % (unchecked: unlisted keys get arbitrary values)\n".to_string(),
        0.0 => "fpr         0 % (no keys)\n".to_string(),
        _ => format!(
            "fpr         {} (unlisted keys that get a value), for {} bits per key\n",
            percent(rate),
            -rate.log2()
        ),
    }
}
