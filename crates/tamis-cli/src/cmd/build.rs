//! keys, and keys to exclude -> a filter file, and a report of what became of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use tamis::internals::GUARD;
use tamis::{Filter, OnConflict, Report, Stats};

use super::any_builder::AnyBuilder;
use super::build_args::{BuildArgs, Inputs};
use super::output::Output;
use super::{
    approx, bits_per_key, blank, fpr_line, grouped, groups, is_estimate, layers, overhead, partition_lines, partitions,
    percent, size,
};
use crate::Outcome;
use crate::interrupt::Interrupt;
use crate::mapped::{self, VerifyArgs};

/// FilterBuilder a filter from keys.
///
/// Keys stand one per line, or in a column of a table (.csv, .tsv, .jsonl, .parquet); gzip, zstd and xz are recognised by
/// their content. Blank lines are no keys, and equal keys count once. A line, or a record of a table, has 16 MiB at most. No
/// keys at all make a filter that lets nothing through.
///
/// Keys listed with --exclude never match, whatever the rate for keys that nobody listed; there may be any number of them. If
/// listed keys are the only ones that will be asked for, --exact makes the smallest file.
///
/// With --partition-column every key, wanted or excluded, belongs to the label in that column of its row, and each label
/// gets as many bits as its own excluded keys call for. A key may be wanted under one label and excluded under another.
///
/// Prints how many keys there are, what was built, its bits per key beside the information bound, and the share of
/// unlisted keys that it lets through.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    build: BuildArgs,
    /// The filter file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args.build.sources()?;
    let output = Output::new(&args.output, sources.all(), "filter")?;
    let interrupt = Interrupt::install()?;
    let (keys, inputs) = args.build.gather(&sources, &interrupt)?;
    interrupt.build()?;
    let built = match write(&output, keys) {
        Err(error) => return Err(inputs.explain(&error).unwrap_or_else(|| error.context(output.to_string()))),
        Ok(built) => built,
    };
    let report = match args.json {
        true => format!("{}\n", as_json(&args.build, &output, &inputs, &built)),
        false => as_text(&args.build, &output, &inputs, &built),
    };
    output.report(&report)?;
    Ok(Outcome::Yes)
}

/// What was built; the filter itself where it can be read again.
struct Built {
    report: Report,
    filter: Option<Filter>,
}

fn write(output: &Output, keys: AnyBuilder) -> Result<Built> {
    let open = |path: &Path| mapped::filter(path, VerifyArgs { no_verify: true });
    let (report, filter) = output.build(keys, AnyBuilder::finish, AnyBuilder::finish_to, open, Filter::as_bytes)?;
    Ok(Built { report, filter })
}

/// The fewest bits per key for any filter that does as much: as the file says, which does not know the share that --excluded-fpr gives.
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

fn as_json(args: &BuildArgs, output: &Output, inputs: &Inputs, built: &Built) -> serde_json::Value {
    let Built { report: Report { stats, bytes, workload, .. }, filter } = built;
    let filter = filter.as_ref();
    let (bits, bound) = (bits_per_key(*bytes, stats.keys), bound(args, built));
    let excluded = inputs.excluded.map(|counts| {
        json!({
            "keys": stats.negatives,
            "duplicates": stats.duplicate_negatives,
            "estimated": stats.estimated,
            "blank": counts.blank,
            "conflicts": stats.conflicts,
        })
    });
    let rates = |rates: &tamis::Rates| {
        json!({
            "bits_per_key": rates.bits_per_key,
            "workload_fpr": rates.workload_fpr,
            "fpr": rates.fpr,
        })
    };
    let expected = inputs.expected.zip(workload.as_ref()).map(|(counts, workload)| {
        json!({
            "queries": workload.queries,
            "keys": workload.keys,
            "dropped_members": workload.dropped_members,
            "blank": counts.blank,
            "counted": workload.counted,
            "unlisted_share": workload.unlisted_share,
            "covered": workload.covered,
            "covered_share": workload.covered_share,
            "max_fpr": workload.max_fpr,
            "warnings": workload.warnings,
            "predicted": rates(&workload.predicted),
            "measured": workload.measured.as_ref().map(rates),
        })
    });
    json!({
        "file": output.to_string(),
        "keys": stats.keys,
        "duplicates": stats.duplicate_keys,
        "blank": inputs.keys.blank,
        "excluded": excluded,
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
        "layers": filter.map(layers),
    })
}

fn as_text(args: &BuildArgs, output: &Output, inputs: &Inputs, built: &Built) -> String {
    let Built { report: Report { stats, bytes, workload, .. }, filter } = built;
    let mut out = String::new();
    let (keys, duplicates) = (grouped(stats.keys), grouped(stats.duplicate_keys));
    let _ = writeln!(out, "keys        {keys}, {duplicates} duplicates dropped{}", blank(&inputs.keys));
    if let Some(counts) = &inputs.excluded {
        // As `inspect` will say it, where the file says it.
        let (count, estimate) = match filter.as_ref().filter(|filter| filter.excluded_len() > 0) {
            Some(filter) => (filter.excluded_len(), is_estimate(filter)),
            None => (stats.negatives, stats.estimated),
        };
        let mut numbers = approx(count, estimate);
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
            None => writeln!(out, "workload    no query that is not for a member{}", blank(counts)),
            Some(w) => writeln!(
                out,
                "workload    {} queries for {} keys, {} of them dropped because they are members{}",
                grouped(w.queries as u64),
                grouped(w.keys + w.dropped_members),
                grouped(w.dropped_members),
                blank(counts)
            ),
        };
    }
    if let Some(w) = workload {
        let how = if w.counted { "" } else { "; memory was short, and light ones count as unlisted" };
        let _ = writeln!(
            out,
            "covered     {} keys, {} of negative queries; unlisted {}{how}",
            grouped(w.covered),
            percent(w.covered_share),
            percent(w.unlisted_share)
        );
        let origin = match args.bits_per_key {
            _ if args.fpr.is_some() => "--fpr".to_string(),
            _ if args.exact => "--exact".to_string(),
            Some(_) => format!("{GUARD} times a plain filter; --fpr changes it"),
            None if args.workload_fpr.is_some() => "--workload-fpr; --fpr changes it".to_string(),
            None => "the default; --fpr changes it".to_string(),
        };
        let _ = writeln!(out, "ceiling     {} of unlisted keys may match ({origin})", percent(w.max_fpr));
        w.warnings.iter().for_each(|warning| out += &format!("warning     {warning}\n"));
    }
    if stats.conflicts > 0 {
        let became = if args.on_conflict == OnConflict::Keep { "stay keys" } else { "are no keys" };
        let _ = writeln!(out, "conflicts   {} both wanted and excluded: they {became}", grouped(stats.conflicts));
    }
    let filter = filter.as_ref();
    out += &filter.map(partition_lines).unwrap_or_default();
    for layer in filter.iter().flat_map(|filter| filter.layers()) {
        let group = layer.group.map(|group| format!("group {group}, ")).unwrap_or_default();
        let _ = writeln!(out, "structure   {group}{}: {}", layer.structure, layer.details);
    }
    let _ = writeln!(out, "file        {output}");
    let _ = writeln!(out, "size        {}", size(*bytes, stats.keys, bound(args, built)));
    if let Some(w) = workload {
        let line = |name: &str, rates: &tamis::Rates| {
            let [workload, unknown] = [rates.workload_fpr, rates.fpr].map(percent);
            format!(
                "{name} {:.3} bits per key, {workload} of the workload matches, {unknown} of unlisted keys\n",
                rates.bits_per_key
            )
        };
        out += &line("predicted  ", &w.predicted);
        out += &w.measured.as_ref().map(|real| line("measured   ", real)).unwrap_or_default();
        return out;
    }
    out + &filter.map(|filter| fpr_line(filter.fpr())).unwrap_or_default()
}
