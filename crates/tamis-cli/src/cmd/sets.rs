//! `tamis sets ...` -> its commands, and the words they share.

mod add;
mod build;
mod freeze;
pub(super) mod inspect;
pub(super) mod lock;
mod merge;
mod query;
mod remove;
mod tally;
mod verify;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, bail};
use serde_json::{Value, json};
use tamis::sets::{Editor, SetsBuilder};
use tamis::{QueryError, Sets};

use super::output::Output;
use super::{at, bits_per_key, blank, count, explain, grouped, open_file, three_digits};
use crate::Outcome;
use crate::args::TextArgs;
use crate::input;
use crate::input::kmers::Sequences;
use crate::input::sets::{Inputs, ReadOptions};
use crate::mapped::{self, How};

/// Build and query set indexes: which of many sets have a key as a member
///
/// One query answers for all sets. It reports every set of the key, and a few false sets; how few is chosen when the index is
/// built. Keys are lines of text, integers, columns of tables, or the k-mers of sequences.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Build(build::Args),
    Query(query::Args),
    Add(add::Args),
    Remove(remove::Args),
    Merge(merge::Args),
    Freeze(freeze::Args),
    Verify(verify::Args),
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    match args.command {
        Command::Build(args) => build::run(args),
        Command::Query(args) => query::run(args),
        Command::Add(args) => add::run(args),
        Command::Remove(args) => remove::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Freeze(args) => freeze::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// What the sets are made of.
#[derive(clap::Args, Clone, Debug)]
struct MemberArgs {
    /// One file per set, or directories of them (not their subdirectories). A set has the name of its file, without known
    /// extensions; NAME=FILE gives another name, and a path with an equals sign begins with ./
    #[arg(value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Read lines of key<TAB>set[,set...]; a key may be repeated; - or no file is standard input
    #[arg(long)]
    pairs: bool,
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Column of sets, with --pairs
    #[arg(long, value_name = "NAME", requires_all = ["pairs", "column"])]
    set_column: Option<String>,
    /// Number sets in the order in which they come, and not by name
    #[arg(long)]
    keep_order: bool,
    #[command(flatten)]
    text: TextArgs,
}

impl MemberArgs {
    /// How sets are numbered.
    fn numbered<I>(&self, build: SetsBuilder<'static, I>) -> SetsBuilder<'static, I> {
        if self.keep_order { build } else { build.by_name() }
    }

    /// The files and how to read them; `kmer` if they are sequences.
    fn find(&self, kmer: Option<u32>, counts: bool) -> Result<(Inputs, ReadOptions)> {
        let unfit = self.pairs.then_some("--pairs").or(self.set_column.as_ref().map(|_| "--set-column"));
        check_sequences(kmer, unfit, self.column.as_ref(), &self.text)?;
        let inputs = Inputs::find(&self.inputs, self.pairs)?;
        let options = match self.pairs {
            true => self.text.any_options(self.column.as_ref(), None),
            false => self.text.options(self.column.as_ref(), None, inputs.sources())?,
        };
        let read_options = ReadOptions { options, set_column: self.set_column.clone(), kmer, counts };
        Ok((inputs, read_options))
    }
}

/// How to read the keys of queries.
#[derive(clap::Args, Clone, Debug)]
struct QueryArgs {
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
}

impl QueryArgs {
    /// The options of a reading, for an index whose keys are k-mers of this length or anything else.
    fn options(&self, kmer: Option<u32>, sources: &[input::Source]) -> Result<input::Options> {
        check_sequences(kmer, None, self.column.as_ref(), &self.text)?;
        let options = self.text.options(self.column.as_ref(), None, sources)?;
        let sequences = sources.iter().find(|source| input::sets::is_sequences(source));
        if let (None, None, Some(found)) = (kmer, options.format, sequences) {
            bail!("{found}: sequences, and the keys of the index are no k-mers; expected keys, or --format text");
        }
        Ok(options)
    }
}

/// Sequences are not cleaned as text is, and have no columns.
fn check_sequences(
    kmer: Option<u32>,
    unfit: Option<&'static str>,
    column: Option<&String>,
    text: &TextArgs,
) -> Result<()> {
    match unfit.or(column.map(|_| "--column")).or(text.given()) {
        Some(option) if kmer.is_some() => {
            bail!("{option}: not possible with sequences; expected FASTA or FASTQ files without it")
        }
        _ => Ok(()),
    }
}

/// Opens an index; errors name the file.
fn open(path: &Path, how: How) -> Result<Sets> {
    open_file(path, "set index", |path| mapped::sets(path, how))
}

/// A query that the index rejected; says what would help.
fn query_error(path: &Path, error: QueryError) -> Error {
    explain(path, error, "the index")
}

/// Where a changed index goes: to a file of its own, or where it was.
fn changed(index: &Path, output: Option<&PathBuf>, inputs: &[input::Source]) -> Result<Output> {
    Output::new("-o", output.map_or(index, PathBuf::as_path), inputs.iter(), "index")
}

/// Writes a changed index; returns it as it can be read.
fn save(output: &Output, editor: &Editor, secret: Option<[u64; 2]>) -> Result<Sets> {
    let write = || -> Result<Sets> {
        if let Output::File(path) = output {
            editor.save(path)?;
            return Ok(mapped::sets(path, How::written(secret))?);
        }
        let bytes = editor.snapshot()?;
        match output {
            Output::Device(path) => OpenOptions::new().write(true).open(path)?.write_all(&bytes)?,
            _ => {
                let mut out = io::stdout().lock();
                out.write_all(&bytes)?;
                out.flush()?;
            }
        }
        Ok(match secret {
            Some(secret) => Sets::open_with_secret(bytes, secret)?,
            None => Sets::open(bytes)?,
        })
    };
    write().map_err(|error| at(error, &output.to_string()))
}

/// The line about the size of an index.
fn size(bytes: u64, pairs: u64, keys: u64) -> String {
    let mut out = format!("size        {} bytes", grouped(bytes));
    if let (Some(pair), Some(key)) = (bits_per_key(bytes, pairs), bits_per_key(bytes, keys)) {
        out += &format!(", {pair:.3} bits per pair, {key:.3} bits per key");
    }
    out + "\n"
}

/// The line about false sets.
fn false_sets_line(false_sets: f64, member_false_sets: f64) -> String {
    format!(
        "false sets  {} expected for an unlisted key, {} for a member\n",
        three_digits(false_sets),
        three_digits(member_false_sets)
    )
}

/// The line about sequences.
fn sequences(read: Option<&Sequences>, k: Option<u32>) -> String {
    let (Some(read), Some(k)) = (read, k) else { return String::new() };
    format!(
        "sequences   {}, {} shorter than {k}; {} read, {} skipped for letters other than ACGT\n",
        grouped(read.records),
        grouped(read.short),
        count(read.kmers, "k-mer"),
        grouped(read.skipped)
    )
}

/// What a report says about sequences.
fn sequences_fields(read: Option<&Sequences>) -> Option<Value> {
    read.map(|read| {
        json!({
            "records": read.records, "short": read.short, "kmers": read.kmers, "skipped": read.skipped,
        })
    })
}

/// What a report says about the segments of an index.
fn segments(index: &Sets) -> Vec<Value> {
    let part = |(part, bytes): &(&str, u64)| json!({ "part": part, "bytes": bytes });
    let segments = index.segments().map(|segment| {
        json!({
            "kind": segment.kind.to_string(),
            "details": segment.details,
            "sets": segment.sets,
            "keys": segment.keys,
            "pairs": segment.pairs,
            "capacity": segment.capacity,
            "parts": segment.parts.iter().map(part).collect::<Vec<_>>(),
            "false_sets": segment.false_sets,
            "member_false_sets": segment.member_false_sets,
        })
    });
    segments.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (number, text) in
            [(0.0, "0"), (0.012_345, "0.0123"), (1.5, "1.50"), (12.0, "12.0"), (1e-30, "0.00000000000000000000")]
        {
            assert_eq!(three_digits(number), text);
        }
        assert_eq!((count(1, "set"), count(2000, "set")), ("1 set".into(), "2,000 sets".into()));
        assert_eq!(size(100, 100, 50), "size        100 bytes, 8.000 bits per pair, 16.000 bits per key\n");
        assert_eq!(size(100, 0, 0), "size        100 bytes\n");
    }
}
