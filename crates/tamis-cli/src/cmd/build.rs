//! keys, and keys to exclude -> a filter file, and a report of what became of them.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use tamis::math::bounds::free_set;
use tamis::{BuildError, Effort, Filter, Kind, Layout, Limits, OnConflict, Progress, Stats};

use super::door::Door;
use super::{bits_per_key, grouped, groups, layers, overhead, partition_lines, partitions, print, size, strangers};
use crate::Outcome;
use crate::args::{self, Reading};
use crate::input::{self, Counts, KeyRef, Places, Source, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;

/// Build a filter from keys.
///
/// Keys stand one per line, or in a column of a table (.csv, .tsv, .jsonl, .parquet); gzip, zstd and xz are recognised by
/// their content. Blank lines are no keys, and equal keys count once. No keys at all make a filter that lets nothing
/// through.
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
    /// Files of keys; - or none is standard input
    #[arg(value_name = "KEYS")]
    keys: Vec<PathBuf>,
    /// The filter file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Let at most this share of unlisted keys through
    #[arg(long, value_name = "P", default_value = "0.01", value_parser = rate, allow_negative_numbers = true)]
    fpr: f64,
    /// Spend at most this many bits per key instead
    #[arg(long, value_name = "B", conflicts_with = "fpr", value_parser = bits, allow_negative_numbers = true)]
    bits_per_key: Option<f64>,
    /// Files of keys that must never match; - is standard input. May be repeated
    #[arg(long, value_name = "FILE", num_args = 1, action = clap::ArgAction::Append)]
    exclude: Vec<PathBuf>,
    /// Only listed keys will be asked for, wanted or excluded: the smallest file, and any answer for others
    #[arg(long, conflicts_with_all = ["fpr", "bits_per_key"])]
    exact: bool,
    /// At most this share of the excluded keys may match, and any answer for keys that nobody listed: smaller still. A key
    /// that is excluded several times counts as often
    #[arg(long, value_name = "P", conflicts_with_all = ["fpr", "bits_per_key", "exact"], requires = "exclude", value_parser = rate, allow_negative_numbers = true)]
    allow: Option<f64>,
    /// A key both wanted and excluded: error (say which), keep (it is wanted) or drop (it is excluded)
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = on_conflict)]
    on_conflict: OnConflict,
    /// The structure: auto, or one of ribbon, homogeneous, fuse, fuse4, bloom, classic-bloom, cuckoo, quotient; with --exclude one of
    /// steered, chained, cascade, integrated, naive, the last four alone or followed by what they are made of (chained-fuse,
    /// cascade-bloom, ...)
    #[arg(long, default_value = "auto", value_parser = kind)]
    kind: Kind,
    /// How hard to look for a smaller filter: fast, balanced or smallest
    #[arg(long, default_value = "balanced", value_parser = effort)]
    effort: Effort,
    /// With --exclude, how bits are laid out: auto, compact (the smallest) or local (side by side: members are found faster)
    #[arg(long, default_value = "auto", value_parser = layout)]
    layout: Layout,
    /// Seed of the hash: equal keys and seeds give equal files
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Hash with a random secret key (kept in the file), for queries that an adversary may choose
    #[arg(long, conflicts_with = "seed")]
    keyed: bool,
    /// Memory for gathering and sorting keys, 4M at least; what does not fit goes to temporary files. Every thread takes some 60 MB more
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = args::bytes)]
    memory: u64,
    /// Disk space for temporary files; no limit unless given
    #[arg(long, value_name = "SIZE", value_parser = args::bytes)]
    disk: Option<u64>,
    /// Directory of temporary files; the system's unless given
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// Threads; as many as processors unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    reading: Reading,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate: &f64| rate > 0.0 && rate < 1.0);
    rate.ok_or_else(|| "expected a share between 0 and 1, like 0.01".to_string())
}

fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().ok().filter(|&bits: &f64| bits > 0.0 && bits <= 4096.0);
    bits.ok_or_else(|| "expected a number of bits between 0 and 4096, like 9.5".to_string())
}

fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind);
    found.ok_or_else(|| format!("expected one of {}", Kind::ALL.map(|(name, _)| name).join(", ")))
}

fn on_conflict(name: &str) -> Result<OnConflict, String> {
    match name {
        "error" => Ok(OnConflict::Error),
        "keep" => Ok(OnConflict::Keep),
        "drop" => Ok(OnConflict::Drop),
        _ => Err("expected error, keep or drop".to_string()),
    }
}

fn effort(name: &str) -> Result<Effort, String> {
    match name {
        "fast" => Ok(Effort::Fast),
        "balanced" => Ok(Effort::Balanced),
        "smallest" => Ok(Effort::Smallest),
        _ => Err("expected fast, balanced or smallest".to_string()),
    }
}

fn layout(name: &str) -> Result<Layout, String> {
    match name {
        "auto" => Ok(Layout::Auto),
        "compact" => Ok(Layout::Compact),
        "local" => Ok(Layout::Local),
        _ => Err("expected auto, compact or local".to_string()),
    }
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args::sources(&args.keys);
    let excluded = if args.exclude.is_empty() { vec![] } else { args::sources(&args.exclude) };
    let all: Vec<Source> = sources.iter().chain(&excluded).cloned().collect();
    if all.iter().filter(|source| matches!(source, Source::Stdin)).count() > 1 {
        bail!("standard input (-) can be read only once");
    }
    // Also those that are read last: a typing error should not show after an hour.
    for source in &all {
        source.check()?;
    }
    let output = Output::new(&args.output, &all)?;
    if let Some(dir) = args.tmp.as_ref().filter(|dir| !dir.is_dir()) {
        bail!("{}: no such directory, expected one for temporary files", dir.display());
    }
    let interrupt = Interrupt::install()?;
    let mut keys = door(&args, &interrupt)?;
    let (read, places) = read("reading", &sources, &args.reading, |key, label| keys.push(key, label))?;
    let mut keys = keys.seal()?;
    let mut inputs = Inputs { keys: read, excluded: None, places: [places, Places::default()] };
    if !excluded.is_empty() {
        let exclude = |key: KeyRef<'_>, label: Option<&[u8]>| keys.exclude(key, label);
        let (counts, places) = self::read("excluding", &excluded, &args.reading, exclude)?;
        (inputs.excluded, inputs.places[1]) = (Some(counts), places);
    }
    interrupt.build()?;
    let built = match output.write(keys) {
        Err(error) => match error.downcast_ref() {
            Some(tamis::Error::Build(BuildError::Conflict { count, first })) => {
                return Err(inputs.conflict(*count, first));
            }
            _ => return Err(error.context(output.to_string())),
        },
        Ok(built) => built,
    };
    let report = match args.json {
        true => format!("{}\n", as_json(&args, &output, &inputs, &built)),
        false => as_text(&args, &output, &inputs, &built),
    };
    match output {
        Output::File(_) => print(&report)?,
        Output::Stdout | Output::Device(_) => io::stderr().write_all(report.as_bytes())?,
    }
    Ok(Outcome::Yes)
}

/// What was read, and where it stands.
struct Inputs {
    keys: Counts,
    excluded: Option<Counts>,
    /// Of keys and of excluded keys.
    places: [Places; 2],
}

impl Inputs {
    /// Keys on both sides: how many, and where the first ones are.
    fn conflict(&self, count: u64, first: &[(u64, u64)]) -> anyhow::Error {
        let keys = if count == 1 { "key is" } else { "keys are" };
        let mut message = format!("{} {keys} both wanted and excluded", grouped(count));
        for (i, &(key, negative)) in first.iter().enumerate() {
            if let (Some(key), Some(negative)) = (self.places[0].locate(key), self.places[1].locate(negative)) {
                let lead = if i == 0 { ": " } else { ", " };
                let _ = write!(message, "{lead}{key} = {negative}");
            }
        }
        if count > first.len() as u64 {
            message += ", ...";
        }
        anyhow!("{message}; expected none, or --on-conflict keep (they are keys) or drop (they are excluded)")
    }
}

/// Where the filter goes.
enum Output {
    Stdout,
    /// A regular file, or what will be one.
    File(PathBuf),
    /// A pipe or a device: written as it is, and never read again. It may be where the report would go.
    Device(PathBuf),
}

/// What was built; the filter itself where it can be read again.
struct Built {
    stats: Stats,
    bytes: u64,
    filter: Option<Filter>,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("standard output"),
            Output::File(path) | Output::Device(path) => path.display().fmt(f),
        }
    }
}

impl Output {
    /// Finds out now what would stop the writing after an hour of reading.
    fn new(path: &Path, sources: &[Source]) -> Result<Output> {
        if path.as_os_str() == "-" {
            return Ok(Output::Stdout);
        }
        // A link stays, and what it points to is replaced.
        let real = fs::canonicalize(path);
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => bail!("{}: is a directory, expected a file to write", path.display()),
            Ok(data) if !data.is_file() => return Ok(Output::Device(path.to_path_buf())),
            _ => {}
        }
        for source in sources {
            if let Source::File(input) = source
                && real.is_ok()
                && fs::canonicalize(input).ok() == real.as_ref().ok().cloned()
            {
                bail!("{}: is a file of keys and would be replaced by the filter", path.display());
            }
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !dir.is_dir() {
            bail!("{}: no such directory: {}", path.display(), dir.display());
        }
        Ok(Output::File(if path.is_symlink() { real.unwrap_or(path.to_path_buf()) } else { path.to_path_buf() }))
    }

    fn write(&self, keys: Door) -> Result<Built> {
        let (report, filter) = match self {
            // Nobody has seen enough of half a filter: a closed pipe is an error here.
            Output::Stdout => {
                let (filter, report) = keys.finish()?;
                let mut out = io::stdout().lock();
                out.write_all(filter.as_bytes())?;
                out.flush()?;
                (report, Some(filter))
            }
            Output::File(path) => (keys.finish_to(path)?, Some(Filter::map(path)?)),
            Output::Device(path) => (keys.finish_to(path)?, None),
        };
        Ok(Built { stats: report.stats, bytes: report.bytes, filter })
    }
}

fn door(args: &Args, interrupt: &Interrupt) -> Result<Door> {
    let limits = Limits { memory: args.memory, disk: args.disk.unwrap_or(u64::MAX), tmp: args.tmp.clone() };
    // Not before there is something to show: until then the line belongs to the bar of the reading.
    let bar = OnceLock::new();
    let tell = move |progress| {
        if let Progress::Built { shards, total } = progress {
            let bar = bar.get_or_init(Bar::shards);
            bar.of(total);
            bar.at(shards);
            if shards == total {
                bar.clear();
            }
        }
    };
    let build = tamis::stream().kind(args.kind).effort(args.effort).limits(limits).cancel(interrupt.flag());
    let build = build.layout(args.layout).on_conflict(args.on_conflict);
    let build = if args.exclude.is_empty() { build } else { build.excluding() };
    let build = match args.bits_per_key {
        _ if args.exact => build.exact(),
        _ if args.allow.is_some() => build.allow(args.allow.unwrap_or_default()),
        Some(bits) => build.bits_per_key(bits),
        None => build.fpr(args.fpr),
    };
    let build = if args.keyed { build.keyed(secret()?) } else { build.seed(args.seed) };
    let build = match args.threads {
        Some(threads) => build.threads(threads.into()),
        None => build,
    };
    let build = build.progress(tell);
    Ok(match args.reading.is_partitioned() {
        true => Door::Labelled(Box::new(build.partitioned())),
        false => Door::Open(Box::new(build.start())),
    })
}

/// 128 bits from the system.
fn secret() -> Result<[u64; 2]> {
    let word = || getrandom::u64().map_err(|e| anyhow!("--keyed: the system gives no random numbers: {e}"));
    Ok([word()?, word()?])
}

fn read(
    what: &'static str,
    sources: &[Source],
    reading: &Reading,
    mut push: impl FnMut(KeyRef<'_>, Option<&[u8]>) -> Result<()>,
) -> Result<(Counts, Places)> {
    let bar = Bar::bytes(what, total_bytes(sources));
    input::for_each(sources, &reading.options(), &mut |bytes| bar.at(bytes), &mut |key, label, _| {
        push(key, label)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// The fewest bits per key for any filter that is right about the listed keys and serves strangers as asked for.
fn bound(args: &Args, built: &Built) -> Option<f64> {
    let Stats { keys, negatives, .. } = built.stats;
    let filter = built.filter.as_ref()?;
    // The sum over its labels, for what was asked for, is in the file.
    if filter.is_partitioned() {
        return super::bound(filter);
    }
    if let Some(share) = args.allow {
        let bits = tamis::math::bounds::f(share, negatives as f64 / keys.max(1) as f64);
        return (keys > 0 && bits > 0.0).then_some(bits);
    }
    let rate = filter.rate();
    let allowed = match args.bits_per_key {
        _ if args.exact => 1.0,
        // More negatives than strangers call for make a filter stricter than it was asked to be.
        None if negatives > 0 => args.fpr.max(rate),
        _ => rate,
    };
    let bits = free_set(keys, negatives, allowed).bits;
    (keys > 0 && bits > 0.0).then(|| bits / keys as f64)
}

fn as_json(args: &Args, output: &Output, inputs: &Inputs, built: &Built) -> serde_json::Value {
    let Built { stats, bytes, filter } = built;
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
    json!({
        "file": output.to_string(),
        "keys": stats.keys,
        "duplicates": stats.duplicate_keys,
        "blank": inputs.keys.blank,
        "excluded": excluded,
        "bytes": bytes,
        "bits_per_key": bits,
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "rate": filter.map(Filter::rate),
        "domain": filter.map(|f| f.domain().to_string()),
        "shards": filter.map(Filter::shards),
        "partitions": filter.and_then(partitions),
        "groups": filter.and_then(groups),
        "layers": filter.map(layers),
    })
}

fn as_text(args: &Args, output: &Output, inputs: &Inputs, built: &Built) -> String {
    let Built { stats, bytes, filter } = built;
    let blank = |counts: &Counts| match counts.blank {
        0 => String::new(),
        lines => format!(", {} blank lines skipped", grouped(lines)),
    };
    let mut out = String::new();
    let (keys, duplicates) = (grouped(stats.keys), grouped(stats.duplicate_keys));
    let _ = writeln!(out, "keys        {keys}, {duplicates} duplicates dropped{}", blank(&inputs.keys));
    if let Some(counts) = &inputs.excluded {
        let (negatives, duplicates) = (grouped(stats.negatives), grouped(stats.duplicate_negatives));
        let numbers = match stats.estimated {
            // The difference of two large numbers, one of them an estimate, says nothing about duplicates.
            true => format!("{} listed, about {negatives} of them distinct", grouped(counts.keys)),
            false => format!("{negatives}, {duplicates} duplicates dropped"),
        };
        let _ = writeln!(out, "excluded    {numbers}{}", blank(counts));
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
    out + &filter.map(|filter| strangers(filter.rate())).unwrap_or_default()
}
