//! keys with values -> a map file, and a report of it.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use tamis::maps::{self, Collector, Kind, Report, Value};
use tamis::{BuildError, Effort, Layout, Map};

use super::super::output::Output;
use super::super::{at, bits_per_key, blank, grouped, overhead};
use super::{PairArgs, ValueBits, fpr_line, kind, layers, nodes, values, words};
use crate::Outcome;
use crate::args::{self, HashAndLimitArgs, ReportArgs, named};
use crate::input::pairs::{self, Typing};
use crate::input::{self, Counts, KeyRef, Options, Places, Source, files, total_bytes};
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::mapped::{self, How};
use crate::progress::Bar;
use crate::secret::SecretFile;

/// Build a map from keys and their values
///
/// Reads one pair per line, key<TAB>value: the first tab ends the key, the rest of the line is the value. Or reads two columns
/// of a table (.csv, .tsv, .jsonl, .parquet). gzip, zstd and xz are recognised by content. Blank lines and duplicates are
/// skipped; two values for one key are an error. Distinct text values are kept in memory.
///
/// A key that the map was not built with gets no value, but for a share --fpr of them; with --unchecked it gets any.
///
/// Prints the number of keys and values, the layers, the bits per key with their lower bound, and the fpr.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Files of keys and values, or directories of them; - or none is standard input
    #[arg(value_name = "KEYS-VALUES")]
    pairs: Vec<PathBuf>,
    /// Map file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Structure: auto, compressed (close to the entropy of the values), ribbon (equal bits for every value) or fuse (as
    /// ribbon, 13 % larger, faster queries)
    #[arg(long, default_value = "auto", value_parser = named(Kind::ALL), hide_possible_values = true)]
    kind: Kind,
    /// Share of unlisted keys that get a value, 2^-32 at least: a bit per key halves it [default: 1/256, 8 bits per key]
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Store no bits to check keys: a static function, which has a value for any key, also for one that it was not built with
    #[arg(long, conflicts_with = "fpr")]
    unchecked: bool,
    /// Read values as numbers below 2^BITS, 1 to 64; ribbon and fuse store that many bits for each
    #[arg(long, value_name = "BITS", value_parser = width)]
    width: Option<u32>,
    /// File of the values that may occur, one per line
    #[arg(long, value_name = "FILE")]
    alphabet: Option<PathBuf>,
    /// Type of values: numbers, text, or auto (numbers with --width, and integers of jsonl and parquet; else text)
    #[arg(long, default_value = "auto", value_parser = named(Typing::ALL), hide_possible_values = true)]
    values: Typing,
    /// Effort to find a smaller map
    #[arg(long, default_value = "balanced", value_parser = named(Effort::ALL))]
    effort: Effort,
    /// Order of bits in compressed maps: compact (smallest) or local (fewer cache lines)
    #[arg(long, default_value = "compact", value_parser = named(LAYOUTS), hide_possible_values = true)]
    layout: Layout,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    #[command(flatten)]
    input: PairArgs,
    #[command(flatten)]
    report: ReportArgs,
}

fn share(text: &str) -> Result<f64, String> {
    args::share(text, |p| (0.5f64.powi(32)..1.0).contains(&p), "a share from 2^-32 to below 1, like 0.01, 1e-2 or 1%")
}

fn width(text: &str) -> Result<u32, String> {
    Ok(args::whole(text, 1..=64)? as u32)
}

/// Those that a map may have.
const LAYOUTS: &[(&str, Layout)] = &[("compact", Layout::Compact), ("local", Layout::Local)];

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.report.apply();
    let typing = match (args.values, args.width) {
        (Typing::Auto, Some(_)) => Typing::Numbers,
        (Typing::Text, Some(_)) => bail!("--width: not possible with --values text; expected numbers"),
        (typing, _) => typing,
    };
    let sources = args::sources(&args.pairs)?;
    let declared = files::lists(args.alphabet.as_slice())?;
    input::check_stdin_once(sources.iter().chain(&declared))?;
    args.shared.limits.check()?;
    let output = Output::new("-o", &args.output, sources.iter().chain(&declared), "map")?;
    let interrupt = Interrupt::install()?;
    let alphabet = if declared.is_empty() { None } else { Some(Alphabet::read(&declared, typing)?) };
    let secret = args.shared.secret_file()?.map(|secret| secret.write(&args.output)).transpose()?;
    let build = options(&args, secret.as_ref(), &interrupt)?;
    let mut intake = Intake { build: Some((build, alphabet)), pairs: None };
    let bar = Bar::bytes("reading", total_bytes(&sources));
    let progress = &mut |bytes| bar.set_position(bytes);
    let push = &mut |key: KeyRef<'_>, value: Value<'_>, _| {
        let pairs = intake.open(Some(value))?;
        let pushed = match key {
            KeyRef::Bytes(bytes) => pairs.push(bytes, value),
            KeyRef::Integer(number) => pairs.push(number, value),
        };
        match pushed {
            // The reader knows where it stands.
            Err(BuildError::Value(error)) => Ok(Err(error.to_string())),
            pushed => Ok(Ok(pushed.map_err(tamis::Error::from)?)),
        }
    };
    let read_options = args.input.options().within(args.shared.limits.memory);
    let (counts, places) = pairs::for_each(&sources, &read_options, typing, progress, push)?;
    drop(bar);
    let pairs = intake.close()?;
    interrupt.build()?;
    let (report, map) = match write(&output, *pairs, secret.as_ref().map(|file| file.secret)) {
        Err(error) => match error.downcast_ref() {
            Some(tamis::Error::Build(BuildError::TwoValues { count, first })) => {
                return Err(two_values(*count, first, &places));
            }
            Some(tamis::Error::Build(_)) => return Err(error),
            _ => return Err(at(error, &output.to_string())),
        },
        Ok(built) => built,
    };
    let text = || as_text(&output, &counts, &report, map.as_ref());
    output.report(args.report, Form::Map, text, || as_fields(&counts, &report, map.as_ref()))?;
    Ok(Outcome::Yes)
}

fn options(args: &Args, secret: Option<&SecretFile>, interrupt: &Interrupt) -> Result<maps::MapBuilder<'static, ()>> {
    let build = maps::stream().options(args.shared.common(secret, interrupt)?.effort(args.effort));
    let build = build.kind(args.kind).layout(args.layout);
    let build = if args.unchecked { build.unchecked() } else { build };
    let build = args.fpr.into_iter().fold(build, |build, p| build.fpr(p));
    Ok(args.width.into_iter().fold(build, |build, bits| build.width(bits)))
}

/// The values that may occur, as they are written.
struct Alphabet {
    values: Vec<Vec<u8>>,
    places: Places,
}

impl Alphabet {
    fn read(sources: &[Source], typing: Typing) -> Result<Alphabet> {
        let mut values = vec![];
        let options = Options { format: Some(input::Format::Text), ..Options::default() };
        let (_, places) = input::for_each(sources, &options, &mut |_| {}, &mut |value, _, _| {
            if let KeyRef::Bytes(bytes) = value {
                values.push(bytes.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let alphabet = Alphabet { values, places };
        alphabet.typed(typing)?;
        Ok(alphabet)
    }

    fn typed(&self, typing: Typing) -> Result<Vec<Value<'_>>> {
        let mut values = Vec::with_capacity(self.values.len());
        for (value, ordinal) in self.values.iter().zip(0..) {
            values.push(typing.read(value).map_err(|message| self.places.error(ordinal, &message))?);
        }
        Ok(values)
    }
}

/// The pairs of a map; the first value tells whether an alphabet of digits is one of numbers or of text.
struct Intake {
    build: Option<(maps::MapBuilder<'static, ()>, Option<Alphabet>)>,
    pairs: Option<Box<Collector<'static>>>,
}

impl Intake {
    /// The builder of pairs; the first value decides.
    fn open(&mut self, first: Option<Value<'_>>) -> Result<&mut Collector<'static>> {
        if let Some((build, alphabet)) = self.build.take() {
            let numbers = first.is_some_and(|value| value.as_u64().is_some());
            let typing = if numbers { Typing::Numbers } else { Typing::Text };
            let build = match alphabet {
                Some(alphabet) => build.alphabet(alphabet.typed(typing)?),
                None => build,
            };
            self.pairs = Some(Box::new(build.start()));
        }
        self.pairs.as_deref_mut().ok_or_else(|| anyhow!("a pair after the last"))
    }

    /// All pairs are in.
    fn close(mut self) -> Result<Box<Collector<'static>>> {
        self.open(None)?;
        self.pairs.ok_or_else(|| anyhow!("there are no pairs"))
    }
}

/// Builds the map where it goes; it comes back where it can be read again.
fn write(output: &Output, pairs: Collector<'static>, secret: Option<[u64; 2]>) -> Result<(Report, Option<Map>)> {
    let (finish_to, open) = (
        |pairs: Collector<'static>, path: &Path| pairs.finish_to(path),
        |path: &Path| mapped::map(path, How::written(secret)),
    );
    output.build(pairs, Collector::finish_with_report, finish_to, open, Map::as_bytes)
}

/// Keys with two values: how many, and where the first ones are.
fn two_values(count: u64, first: &[(u64, u64)], places: &Places) -> anyhow::Error {
    let place = |&(one, other): &(u64, u64)| Some(format!("{} and {}", places.locate(one)?, places.locate(other)?));
    let shown: Vec<String> = first.iter().filter_map(place).collect();
    let (keys, more) = (if count == 1 { "key has" } else { "keys have" }, count > shown.len() as u64);
    let (shown, more) = (shown.join(", "), if more { ", .." } else { "" });
    anyhow!("{shown}{more}: {} {keys} two values; expected one value for each key", grouped(count))
}

fn as_fields(counts: &Counts, report: &Report, map: Option<&Map>) -> serde_json::Value {
    let bits = bits_per_key(report.bytes, report.keys);
    let value_bits = map.map(|map| ValueBits::new(report.keys, report.entropy, map.fpr()));
    let bound = value_bits.and_then(ValueBits::lower_bound);
    json!({
        "keys": report.keys,
        "duplicates": report.duplicates,
        "blank": counts.blank,
        "values": report.values,
        "bytes": report.bytes,
        "bits_per_key": bits,
        "entropy_per_key": value_bits.and_then(|value_bits| value_bits.entropy),
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "fpr": map.map(Map::fpr),
        "key_type": map.map(|map| words(map.key_type())),
        "value_type": map.map(|map| words(map.value_type())),
        "kind": map.map(kind),
        "shards": map.map(Map::shards),
        "table_bytes": map.map(Map::table_bytes),
        "layers": map.map(|map| layers(map.layers())),
    })
}

fn as_text(output: &Output, counts: &Counts, report: &Report, map: Option<&Map>) -> String {
    let mut out = String::new();
    let (keys, duplicates) = (grouped(report.keys), grouped(report.duplicates));
    let _ = writeln!(out, "keys        {keys}, {duplicates} duplicates dropped{}", blank(counts));
    let Some(map) = map else {
        let distinct = report.values.map_or("very many".to_string(), grouped);
        let _ = writeln!(out, "values      {distinct}\nfile        {output}");
        return out + &ValueBits::new(report.keys, None, 1.0).size(report.bytes, report.keys);
    };
    out += &values(report.values, map.value_type());
    let count = nodes(map);
    match kind(map) {
        "empty" => out += "layers      none: no keys\n",
        "constant" => out += "layers      none: all keys have the same value\n",
        "compressed" => drop(writeln!(out, "layers      compressed: a tree of {count} nodes")),
        _ => {}
    }
    for layer in map.layers().filter(|layer| count <= 1 || layer.node.is_none()) {
        let (what, size) = (format!("{}: {}, {}", layer.purpose, layer.structure, layer.details), grouped(layer.bytes));
        let _ = writeln!(out, "{:<11} {what}, {size} bytes", layer.node.map_or("front", |_| "node 0"));
    }
    let _ = writeln!(out, "file        {output}");
    out += &ValueBits::new(report.keys, report.entropy, map.fpr()).size(report.bytes, report.keys);
    out + &fpr_line(map.fpr())
}
