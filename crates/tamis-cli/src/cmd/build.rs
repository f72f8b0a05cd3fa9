//! keys, excluded keys, a workload -> a filter file, and a report of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use tamis::{Filter, OnConflict, Report, Stats};

use super::any_builder::AnyBuilder;
use super::build_args::{BuildArgs, Inputs, rate};
use super::changing;
use super::learn;
use super::output::Output;
use super::{
    approx, bits_per_key, blank, count, fpr_line, grouped, groups, is_estimate, layer_lines, layers, overhead,
    partition_lines, partitions, percent, size_line,
};
use crate::Outcome;
use crate::args::ReportArgs;
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::mapped::{self, How};
use crate::usage;

/// Build a filter from keys
///
/// Reads one key per line, or a column of a table (.csv, .tsv, .jsonl, .parquet). gzip, zstd and xz are recognised by content.
/// Blank lines and duplicates are skipped. A line, or a record of a table, has at most 16 MiB. A filter without keys matches
/// nothing, and needs --allow-empty.
///
/// Keys listed with --exclude never match, at any --fpr; there may be any number of them. If only members and excluded keys
/// will be queried, --exact builds the smallest file.
///
/// With --partition-column every key belongs to the partition in that column of its row, and each partition gets as many bits
/// as its own excluded keys need. A key may be a member of one partition and excluded from another.
///
/// Prints the number of keys, the layers, the bits per key with their lower bound, and the fpr.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    build: BuildArgs,
    /// Build a filter for tamis add, exclude and remove, over bloom, classic-bloom, cuckoo (the default) or quotient; or for
    /// exclude alone, over ribbon, fuse or fuse4. The file keeps 16 bytes more for each member and excluded key, which queries
    /// do not read
    #[arg(long, conflicts_with_all = ["bits_per_key", "workload", "exact", "excluded_fpr", "partition_column", "on_conflict", "effort", "layout", "memory", "disk", "tmp", "threads", "metadata", "shard_bytes", "delta", "layers"])]
    changing: bool,
    /// Train a model of the keys, and build a filter for each class of its scores. Needs --exclude. All keys are held in
    /// memory. The plain filter is built where it is smaller
    #[arg(long, requires = "exclude", conflicts_with_all = ["bits_per_key", "workload", "partition_column", "changing", "capacity", "integers"])]
    learn: bool,
    /// Share of the excluded keys that the model may match without a filter; without it none matches
    #[arg(long, value_name = "P", requires = "learn", value_parser = rate, allow_negative_numbers = true)]
    learn_accept: Option<f64>,
    /// Filter file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.report.apply();
    let sources = args.build.sources()?;
    let output = Output::new("-o", &args.output, sources.all(), "filter")?;
    let interrupt = Interrupt::install()?;
    let secret = args.build.secret_file()?.map(|secret| secret.write(&args.output)).transpose()?;
    if args.changing {
        let (filter, counts) = args.build.changing(&sources, secret.as_ref())?;
        interrupt.build()?;
        let words = secret.as_ref().map(|file| file.secret);
        return changing::save(&output, &filter, words, args.report, &counts);
    }
    if args.learn {
        return learn::build(
            &args.build,
            &sources,
            &output,
            secret.as_ref(),
            &interrupt,
            args.learn_accept,
            args.report,
        );
    }
    let (keys, inputs) = args.build.gather(&sources, secret.as_ref(), &interrupt)?;
    interrupt.build()?;
    let built = write(&output, keys, secret.as_ref().map(|file| file.secret))
        .map_err(|error| args.build.explain(&sources, &inputs, error, Some(&output.to_string())))?;
    let text = || as_text(&args.build, &output, &inputs, &built);
    output.report(args.report, Form::Filter, text, || as_fields(&args.build, &inputs, &built))?;
    Ok(Outcome::Yes)
}

/// What was built; the filter itself where it can be read again.
struct Built {
    report: Report,
    filter: Option<Filter>,
}

fn write(output: &Output, keys: AnyBuilder, secret: Option<[u64; 2]>) -> Result<Built> {
    let open = |path: &Path| mapped::filter(path, How::written(secret));
    let (report, filter) = output.build(keys, AnyBuilder::finish, AnyBuilder::finish_to, open, Filter::as_bytes)?;
    Ok(Built { report, filter })
}

/// The least bits per key of any filter that does as much; the file does not know the share of --excluded-fpr.
fn bound(args: &BuildArgs, built: &Built) -> Option<f64> {
    let Stats { keys, negatives, .. } = built.report.stats;
    let filter = built.filter.as_ref()?;
    match args.excluded_fpr {
        Some(share) if !filter.is_partitioned() => {
            let bits = tamis::bounds::f(share, negatives as f64 / keys.max(1) as f64);
            (keys > 0 && bits > 0.0).then_some(bits)
        }
        _ => super::bound(filter),
    }
}

fn as_fields(args: &BuildArgs, inputs: &Inputs, built: &Built) -> serde_json::Value {
    let Built { report: Report { stats, bytes, workload, .. }, filter } = built;
    let filter = filter.as_ref();
    let (bits, bound) = (bits_per_key(*bytes, stats.keys), bound(args, built));
    let rates = |rates: &tamis::Rates| {
        json!({
            "bits_per_key": rates.bits_per_key,
            "workload_fpr": rates.workload_fpr,
            "fpr": rates.fpr,
        })
    };
    let expected = inputs.expected.zip(workload.as_ref()).map(|(counts, workload)| {
        json!({
            "queries": workload.queries.round() as u64,
            "keys": workload.keys,
            "dropped_members": workload.dropped_members,
            "blank": counts.blank,
            "unlisted_share": workload.unlisted_share,
            "covered": workload.covered,
            "covered_share": workload.covered_share,
            "max_fpr": workload.max_fpr,
            "warnings": workload.warnings.iter().map(|warning| usage::in_options(warning)).collect::<Vec<_>>(),
            "predicted": rates(&workload.predicted),
            "measured": rates(&workload.measured),
        })
    });
    json!({
        "keys": stats.keys,
        "duplicates": stats.duplicate_keys,
        "blank": inputs.keys.blank,
        "excluded": stats.negatives,
        "excluded_duplicates": stats.duplicate_negatives,
        "excluded_blank": inputs.excluded.map_or(0, |counts| counts.blank),
        "excluded_estimated": stats.estimated,
        "conflicts": stats.conflicts,
        "workload": expected,
        "bytes": bytes,
        "bits_per_key": bits,
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "fpr": filter.map(Filter::fpr),
        "key_type": filter.map(|f| f.key_type().to_string()),
        "shards": filter.map(Filter::shards),
        "partitions": filter.and_then(partitions),
        "groups": filter.and_then(groups),
        "layers": filter.map(|filter| layers(filter.layers())),
    })
}

fn as_text(args: &BuildArgs, output: &Output, inputs: &Inputs, built: &Built) -> String {
    let Built { report: Report { stats, bytes, workload, .. }, filter } = built;
    let mut out = String::new();
    let (keys, duplicates) = (grouped(stats.keys), grouped(stats.duplicate_keys));
    let _ = writeln!(out, "keys        {keys}, {duplicates} duplicates dropped{}", blank(&inputs.keys));
    if let Some(counts) = &inputs.excluded {
        // As `inspect` prints it, where the file has it.
        let (n, estimate) = match filter.as_ref().filter(|filter| filter.excluded_len() > 0) {
            Some(filter) => (filter.excluded_len(), is_estimate(filter)),
            None => (stats.negatives, stats.estimated),
        };
        let mut numbers = approx(n, estimate);
        if estimate {
            let _ = write!(numbers, "; {} listed", grouped(counts.keys));
        }
        // The difference of two large numbers, one of them an estimate, says nothing about duplicates.
        if !(estimate && stats.estimated) {
            let _ = write!(numbers, ", {} duplicates dropped", grouped(stats.duplicate_negatives));
        }
        let _ = writeln!(out, "excluded    {numbers}{}", blank(counts));
    }
    if let Some(counts) = &inputs.expected {
        let _ = match workload {
            None => writeln!(out, "workload    no query for a key outside the set{}", blank(counts)),
            Some(w) => writeln!(
                out,
                "workload    {} queries for {} keys, {} members dropped{}",
                grouped(w.queries.round() as u64),
                grouped(w.keys + w.dropped_members),
                grouped(w.dropped_members),
                blank(counts)
            ),
        };
    }
    if let Some(w) = workload {
        let _ = writeln!(
            out,
            "covered     {} keys, {} of negative queries; unlisted {}",
            grouped(w.covered),
            percent(w.covered_share),
            percent(w.unlisted_share)
        );
        let origin = match args.bits_per_key {
            _ if args.fpr.is_some() => "--fpr".to_string(),
            _ if args.exact => "--exact".to_string(),
            Some(_) => "the default of --bits-per-key; --fpr changes it".to_string(),
            None if args.workload_fpr.is_some() => "--workload-fpr; --fpr changes it".to_string(),
            None => "the default; --fpr changes it".to_string(),
        };
        let _ = writeln!(out, "max fpr     {} ({origin})", percent(w.max_fpr));
        w.warnings.iter().for_each(|warning| out += &format!("warning     {}\n", usage::in_options(warning)));
    }
    if stats.conflicts > 0 {
        let became = if args.on_conflict == OnConflict::Keep { "kept as members" } else { "excluded" };
        let _ = writeln!(out, "conflicts   {}, {became}", count(stats.conflicts, "key"));
    }
    let filter = filter.as_ref();
    out += &filter.map(partition_lines).unwrap_or_default();
    out += &filter.map(|filter| layer_lines(filter.layers())).unwrap_or_default();
    let _ = writeln!(out, "file        {output}");
    out += &size_line(*bytes, stats.keys, bound(args, built));
    if let Some(w) = workload {
        let line = |name: &str, rates: &tamis::Rates| {
            let [workload, unlisted] = [rates.workload_fpr, rates.fpr].map(percent);
            format!("{name} {:.3} bits per key, workload fpr {workload}, fpr {unlisted}\n", rates.bits_per_key)
        };
        out += &line("predicted  ", &w.predicted);
        out += &line("measured   ", &w.measured);
        return out;
    }
    out + &filter.map(|filter| fpr_line(filter.fpr())).unwrap_or_default()
}
