//! keys with values -> a map file, and a report of what became of them.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use tamis::maps::{self, Collector, Kind, Report, Value};
use tamis::{BuildError, Effort, Layout, Map};

use super::super::build_args::effort;
use super::super::output::Output;
use super::super::{bits_per_key, blank, grouped, overhead};
use super::{PairArgs, ValueBits, fpr_line, kind, layers, nodes, values, words};
use crate::Outcome;
use crate::args::{self, HashAndLimitArgs, one_of};
use crate::input::pairs::{self, Typing};
use crate::input::{self, Counts, KeyRef, Options, Places, Source, total_bytes};
use crate::interrupt::Interrupt;
use crate::mapped::{self, VerifyArgs};
use crate::progress::Bar;

/// FilterBuilder a map from keys and their values.
///
/// Pairs stand one per line, key<TAB>value: the first tab ends the key, the rest of the line is the value. Or they
/// are two columns of a table (.csv, .tsv, .jsonl, .parquet); gzip, zstd and xz are recognised by their content. Blank lines are
/// no pairs, and equal pairs count once; two values for one key are an error that says where they stand. Distinct values that are
/// text are held in memory.
///
/// Prints how many keys and values there are, what was built, its bits per key beside the entropy of the values, and
/// the share of absent keys that get a value.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Files of keys and values; - or none is standard input
    #[arg(value_name = "KEYS-VALUES")]
    pairs: Vec<PathBuf>,
    /// The map file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The structure: auto, compressed (close to the entropy of the values), ribbon (the same number of bits for
    /// every value), fuse (the same, 13 % larger and asked faster)
    #[arg(long, default_value = "auto")]
    kind: Kind,
    /// Recognise absent keys by so many bits per key, 0 to 32: all but one in 2^BITS of them get no value
    #[arg(long, value_name = "BITS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=32))]
    fingerprint: u32,
    /// Values are numbers below 2^BITS, 1 to 64; a function of fixed width has so many bits for each
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=64))]
    width: Option<u32>,
    /// A file of values, one per line: no others may occur
    #[arg(long, value_name = "FILE")]
    alphabet: Option<PathBuf>,
    /// What values are: numbers, text, or auto (integers of jsonl and parquet are numbers, with --width all are, else text)
    #[arg(long, default_value = "auto", value_parser = typing)]
    values: Typing,
    /// How hard to look for a smaller map: fast, balanced or smallest
    #[arg(long, default_value = "balanced", value_parser = effort)]
    effort: Effort,
    /// How the bits of compressed maps are laid out: compact (the smallest) or local (side by side: fewer cache lines)
    #[arg(long, default_value = "compact", value_parser = layout)]
    layout: Layout,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    #[command(flatten)]
    input: PairArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

fn typing(name: &str) -> Result<Typing, String> {
    one_of(name, &[("auto", Typing::Auto), ("numbers", Typing::Numbers), ("text", Typing::Text)])
}

fn layout(name: &str) -> Result<Layout, String> {
    one_of(name, &[("compact", Layout::Compact), ("local", Layout::Local)])
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let typing = match (args.values, args.width) {
        (Typing::Auto, Some(_)) => Typing::Numbers,
        (Typing::Text, Some(_)) => bail!("--width is for numbers, expected no --values text"),
        (typing, _) => typing,
    };
    let sources = args::sources(&args.pairs);
    let declared: Vec<Source> = args.alphabet.iter().cloned().map(Source::from).collect();
    input::check_stdin_once(sources.iter().chain(&declared))?;
    sources.iter().chain(&declared).try_for_each(Source::check)?;
    args.shared.limits.check()?;
    let output = Output::new(&args.output, sources.iter().chain(&declared), "map")?;
    let interrupt = Interrupt::install()?;
    let alphabet = if declared.is_empty() { None } else { Some(Alphabet::read(&declared, typing)?) };
    let build = options(&args, &interrupt)?;
    let mut intake = Intake { build: Some((build, alphabet)), pairs: None };
    let bar = Bar::bytes("reading", total_bytes(&sources));
    let progress = &mut |bytes| bar.set_position(bytes);
    let push = &mut |key: KeyRef<'_>, value: Value<'_>, _| {
        let pairs = intake.open(Some(value))?;
        let pushed = match key {
            KeyRef::Bytes(bytes) => pairs.push(bytes, value),
            KeyRef::U64(number) => pairs.push(number, value),
        };
        match pushed {
            // The reader knows where it stands.
            Err(BuildError::Value(error)) => Ok(Err(error.to_string())),
            pushed => Ok(Ok(pushed.map_err(tamis::Error::from)?)),
        }
    };
    let (counts, places) = pairs::for_each(&sources, &args.input.options(), typing, progress, push)?;
    drop(bar);
    let pairs = intake.close()?;
    interrupt.build()?;
    let (report, map) = match write(&output, *pairs) {
        Err(error) => match error.downcast_ref() {
            Some(tamis::Error::Build(BuildError::TwoValues { count, first })) => {
                return Err(two_values(*count, first, &places));
            }
            _ => return Err(error.context(output.to_string())),
        },
        Ok(built) => built,
    };
    let text = match args.json {
        true => format!("{}\n", as_json(&output, &counts, &report, map.as_ref())),
        false => as_text(&output, &counts, &report, map.as_ref()),
    };
    output.report(&text)?;
    Ok(Outcome::Yes)
}

fn options(args: &Args, interrupt: &Interrupt) -> Result<maps::MapBuilder<()>> {
    let build = maps::stream().common(args.shared.common(interrupt)?).effort(args.effort);
    let build = build.kind(args.kind).fingerprint(args.fingerprint).layout(args.layout);
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

/// A map to be: pairs are taken in once it is known what values are, for an alphabet of digits may be one of numbers or of text.
struct Intake {
    build: Option<(maps::MapBuilder<()>, Option<Alphabet>)>,
    pairs: Option<Box<Collector>>,
}

impl Intake {
    /// The door for pairs; the first value decides.
    fn open(&mut self, first: Option<Value<'_>>) -> Result<&mut Collector> {
        if let Some((build, alphabet)) = self.build.take() {
            let numbers = first.is_some_and(|value| value.as_u64().is_some());
            let typing = if numbers { Typing::Numbers } else { Typing::Text };
            let build = match alphabet {
                Some(alphabet) => build.alphabet(alphabet.typed(typing)?),
                None => build,
            };
            self.pairs = Some(Box::new(build.start()));
        }
        self.pairs.as_deref_mut().ok_or_else(|| anyhow!("a pair came after the last"))
    }

    /// All pairs are in.
    fn close(mut self) -> Result<Box<Collector>> {
        self.open(None)?;
        self.pairs.ok_or_else(|| anyhow!("there are no pairs"))
    }
}

/// Builds the map where it goes; it comes back where it can be read again.
fn write(output: &Output, pairs: Collector) -> Result<(Report, Option<Map>)> {
    let (finish_to, open) = (
        |pairs: Collector, path: &Path| pairs.finish_to(path),
        |path: &Path| mapped::map(path, VerifyArgs { no_verify: true }),
    );
    output.build(pairs, Collector::finish_with_report, finish_to, open, Map::as_bytes)
}

/// Keys with two values: how many, and where the first ones are.
fn two_values(count: u64, first: &[(u64, u64)], places: &Places) -> anyhow::Error {
    let mut message = format!("{} {} two values", grouped(count), if count == 1 { "key has" } else { "keys have" });
    for (i, &(one, other)) in first.iter().enumerate() {
        if let (Some(one), Some(other)) = (places.locate(one), places.locate(other)) {
            let _ = write!(message, "{}{one} and {other}", if i == 0 { ": " } else { ", " });
        }
    }
    if count > first.len() as u64 {
        message += ", ...";
    }
    anyhow!("{message}; expected one for every key")
}

fn as_json(output: &Output, counts: &Counts, report: &Report, map: Option<&Map>) -> serde_json::Value {
    let bits = bits_per_key(report.bytes, report.keys);
    let value_bits = map.map(|map| ValueBits::new(report.keys, report.entropy, map.fpr()));
    let bound = value_bits.and_then(ValueBits::lower_bound);
    json!({
        "file": output.to_string(),
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
        "layers": map.map(layers),
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
        "empty" => out += "structure   none: there are no keys\n",
        "constant" => out += "structure   constant: the value of every key is the same\n",
        "compressed" => drop(writeln!(out, "structure   compressed: a tree of {count} nodes")),
        _ => {}
    }
    for layer in map.layers().filter(|layer| count <= 1 || layer.node.is_none()) {
        let _ = writeln!(out, "structure   {}: {}, {}", layer.purpose, layer.structure, layer.details);
    }
    let _ = writeln!(out, "file        {output}");
    out += &ValueBits::new(report.keys, report.entropy, map.fpr()).size(report.bytes, report.keys);
    out + &fpr_line(map.fpr())
}
