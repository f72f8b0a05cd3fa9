//! an index and keys -> a frozen index of the keys, with the sets that the first one names.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tamis::sets::{self, Collector, Kind};
use tamis::{BuildError, Key, Sets};

use super::super::key_batch::KeyBatch;
use super::super::{grouped, output::Output};
use super::build::{positive, write};
use super::lock::Lock;
use super::{QueryArgs, false_sets_line, open, query_error, sequences, sequences_fields, size};
use crate::Outcome;
use crate::args::{EmptyArgs, KeyLists, LimitArgs, ReportArgs};
use crate::input::kmers::{self, Event};
use crate::input::{self, total_bytes};
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Freeze an index: build the smallest index with the same answers for these keys
///
/// KEYS are the members of the index, or those that matter, in files of any format; for an index of k-mers, FASTA or FASTQ
/// files. False sets of these keys stay. Keys without a set are left out and counted.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index file
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    keys: KeyLists,
    /// Frozen index, replaced only when it is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// False sets to expect for an unlisted key, at most
    #[arg(long, value_name = "SETS", default_value = "0.01", value_parser = positive, allow_negative_numbers = true)]
    false_sets: f64,
    #[command(flatten)]
    input: QueryArgs,
    #[command(flatten)]
    empty: EmptyArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.report.apply();
    let _lock = Lock::new(&args.output, [&args.index])?;
    let how = args.secret.how(true)?;
    let index = open(&args.index, how)?;
    // The new file has a checksum of its own.
    index.verify().with_context(|| args.index.display().to_string())?;
    let sources = args.keys.sources()?;
    let options = args.empty.apply(args.input.options(&args.index, &index, &sources)?).within(args.limits.memory);
    args.limits.check()?;
    let output = Output::new("-o", &args.output, sources.iter(), "index")?;
    let output = output.spare("-o", args.secret.path(), "the secret")?;
    let interrupt = Interrupt::install()?;
    let build = sets::stream().options(args.limits.common(&interrupt));
    let build = build.like(&index).kind(Kind::Frozen).false_sets(args.false_sets);
    let mut freezer = Freezer { path: &args.index, index: &index, pairs: build.start(), keys: 0, rejected: 0 };
    let bar = Bar::bytes("reading", total_bytes(&sources));
    let progress = &mut |bytes| bar.set_position(bytes);
    let read = match index.kmer() {
        Some(k) => Some(kmers::for_each(&sources, k, progress, &mut |_, event| match event {
            Event::Kmers(keys) => freezer.take(keys),
            _ => Ok(()),
        })?),
        None => {
            let mut keys = KeyBatch::default();
            input::for_each(&sources, &options, progress, &mut |key, _, _| {
                if keys.push(key) {
                    freezer.gathered(&mut keys)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
            freezer.gathered(&mut keys)?;
            None
        }
    };
    drop(bar);
    input::check_not_empty(&sources, &options, freezer.keys)?;
    interrupt.build()?;
    let Freezer { pairs, keys, rejected, .. } = freezer;
    if options.not_empty && keys > 0 && rejected == keys {
        bail!(
            "{}: holds none of the {} keys that are listed; expected the keys it was built from; use --allow-empty if that is meant",
            args.index.display(),
            grouped(keys)
        );
    }
    let (report, _) = write(&output, pairs, how.secret)?;
    let text = || {
        let mut out = format!("queries     {}, {} rejected and left out\n", grouped(keys), grouped(rejected));
        out += &sequences(read.as_ref(), index.kmer());
        out += &format!("sets        {}\n", grouped(report.sets.into()));
        out += &format!("keys        {}\n", grouped(report.keys));
        out += &format!("pairs       {}\nfile        {output}\n", grouped(report.pairs));
        out + &size(report.bytes, report.pairs, report.keys)
            + &false_sets_line(report.false_sets, report.member_false_sets)
    };
    output.report(args.report, Form::Sets, text, || {
        json!({
            "queries": keys,
            "rejected": rejected,
            "sequences": sequences_fields(read.as_ref()),
            "sets": report.sets,
            "keys": report.keys,
            "pairs": report.pairs,
            "bytes": report.bytes,
            "false_sets": report.false_sets,
        })
    })?;
    Ok(Outcome::Yes)
}

/// Queries keys and passes them on with their sets.
struct Freezer<'a> {
    path: &'a Path,
    index: &'a Sets,
    pairs: Collector<'static>,
    keys: u64,
    rejected: u64,
}

impl Freezer<'_> {
    fn gathered(&mut self, keys: &mut KeyBatch) -> Result<()> {
        match keys.numbers.is_empty() {
            true => self.take(&keys.bytes())?,
            false => self.take(&keys.numbers)?,
        }
        keys.clear();
        Ok(())
    }

    fn take<K: Key + Copy>(&mut self, keys: &[K]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let Freezer { path, index, pairs, rejected, .. } = self;
        let mut pushed: Result<(), BuildError> = Ok(());
        let queried = index.find_many(keys, |at, ids| {
            *rejected += u64::from(ids.is_empty());
            for &id in ids {
                if pushed.is_ok() {
                    pushed = pairs.push(keys[at], id);
                }
            }
        });
        queried.map_err(|error| query_error(path, error))?;
        self.keys += keys.len() as u64;
        Ok(pushed.map_err(tamis::Error::from)?)
    }
}
