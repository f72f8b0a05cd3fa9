//! keys -> a filter file, and a report of what became of them.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tamis::{Collector, Effort, Filter, Kind, Limits, Progress};

use super::{bits_per_key, bound, grouped, layers, overhead, print, size, strangers};
use crate::Outcome;
use crate::args::{self, Reading};
use crate::input::{self, Counts, KeyRef, Source, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;

/// Build a filter from keys.
///
/// Keys stand one per line, or in a column of a table (.csv, .tsv, .jsonl, .parquet); gzip, zstd and xz are recognised by
/// their content. Blank lines are no keys, and equal keys count once. No keys at all make a filter that lets nothing
/// through.
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
    /// The structure: auto, ribbon, homogeneous, fuse, fuse4, bloom or classic-bloom
    #[arg(long, default_value = "auto", value_parser = kind)]
    kind: Kind,
    /// How hard to look for a smaller filter: fast, balanced or smallest
    #[arg(long, default_value = "balanced", value_parser = effort)]
    effort: Effort,
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

fn effort(name: &str) -> Result<Effort, String> {
    match name {
        "fast" => Ok(Effort::Fast),
        "balanced" => Ok(Effort::Balanced),
        "smallest" => Ok(Effort::Smallest),
        _ => Err("expected fast, balanced or smallest".to_string()),
    }
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args::sources(&args.keys);
    let output = Output::new(&args.output, &sources)?;
    if let Some(dir) = args.tmp.as_ref().filter(|dir| !dir.is_dir()) {
        bail!("{}: no such directory, expected one for temporary files", dir.display());
    }
    let interrupt = Interrupt::install()?;
    let mut keys = collector(&args, &interrupt)?;
    let counts = read(&sources, &args.reading, &mut keys)?;
    interrupt.build()?;
    let built = output.write(keys).with_context(|| output.to_string())?;
    let report = match args.json {
        true => format!("{}\n", as_json(&output, &counts, &built)),
        false => as_text(&output, &counts, &built),
    };
    match output {
        Output::File(_) => print(&report)?,
        Output::Stdout | Output::Device(_) => io::stderr().write_all(report.as_bytes())?,
    }
    Ok(Outcome::Yes)
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
    keys: u64,
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

    fn write(&self, keys: Collector) -> Result<Built> {
        let (report, filter) = match self {
            // Nobody has seen enough of half a filter: a closed pipe is an error here.
            Output::Stdout => {
                let filter = keys.finish()?;
                let mut out = io::stdout().lock();
                out.write_all(filter.as_bytes())?;
                out.flush()?;
                return Ok(Built { keys: filter.len(), bytes: filter.as_bytes().len() as u64, filter: Some(filter) });
            }
            Output::File(path) => (keys.finish_to(path)?, Some(Filter::map(path)?)),
            Output::Device(path) => (keys.finish_to(path)?, None),
        };
        Ok(Built { keys: report.stats.keys, bytes: report.bytes, filter })
    }
}

fn collector(args: &Args, interrupt: &Interrupt) -> Result<Collector> {
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
    let build = match args.bits_per_key {
        Some(bits) => build.bits_per_key(bits),
        None => build.fpr(args.fpr),
    };
    let build = if args.keyed { build.keyed(secret()?) } else { build.seed(args.seed) };
    let build = match args.threads {
        Some(threads) => build.threads(threads.into()),
        None => build,
    };
    Ok(build.progress(tell).start())
}

/// 128 bits from the system.
fn secret() -> Result<[u64; 2]> {
    let word = || getrandom::u64().map_err(|e| anyhow!("--keyed: the system gives no random numbers: {e}"));
    Ok([word()?, word()?])
}

fn read(sources: &[Source], reading: &Reading, keys: &mut Collector) -> Result<Counts> {
    let bar = Bar::bytes("reading", total_bytes(sources));
    let (counts, _) = input::for_each(sources, &reading.options(), &mut |bytes| bar.at(bytes), &mut |key, _| {
        match key {
            KeyRef::Bytes(bytes) => keys.push(bytes)?,
            KeyRef::U64(number) => keys.push(number)?,
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(counts)
}

fn as_json(output: &Output, counts: &Counts, built: &Built) -> serde_json::Value {
    let filter = built.filter.as_ref();
    let rate = filter.map(Filter::rate);
    let (bits, bound) = (bits_per_key(built.bytes, built.keys), rate.and_then(bound));
    json!({
        "file": output.to_string(),
        "keys": built.keys,
        "duplicates": counts.keys - built.keys,
        "blank": counts.blank,
        "bytes": built.bytes,
        "bits_per_key": bits,
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "rate": rate,
        "domain": filter.map(|f| f.domain().to_string()),
        "shards": filter.map(Filter::shards),
        "layers": filter.map(layers),
    })
}

fn as_text(output: &Output, counts: &Counts, built: &Built) -> String {
    let (keys, duplicates) = (grouped(built.keys), grouped(counts.keys - built.keys));
    let mut out = format!("keys        {keys}, {duplicates} duplicates dropped");
    if counts.blank > 0 {
        let _ = write!(out, ", {} blank lines skipped", grouped(counts.blank));
    }
    let _ = writeln!(out);
    let filter = built.filter.as_ref();
    for layer in filter.iter().flat_map(|filter| filter.layers()) {
        let _ = writeln!(out, "structure   {}: {}", layer.structure, layer.details);
    }
    let rate = filter.map(Filter::rate);
    let _ = writeln!(out, "file        {output}");
    let _ = writeln!(out, "size        {}", size(built.bytes, built.keys, rate));
    out + &rate.map(strangers).unwrap_or_default()
}
