//! keys of many sets -> an index file, and a report of what became of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use tamis::sets::{self, Collector, Kind, Report};
use tamis::{BuildError, Sets};

use super::super::output::Output;
use super::super::{bits_per_key, grouped};
use super::{MemberArgs, blank, count, false_sets_line, sequences, sequences_json, size};
use crate::Outcome;
use crate::args::HashAndLimitArgs;
use crate::input::kmers::MAX_K;
use crate::input::sets::{Member, Read};
use crate::input::{KeyRef, Visited, total_bytes};
use crate::interrupt::Interrupt;
use crate::mapped::{self, VerifyArgs};
use crate::progress::Bar;

/// FilterBuilder an index from sets of keys.
///
/// Every file is a set, or with --pairs every line is a key and its sets. Keys stand one per line, or in a column of a table (.csv, .tsv,
/// .jsonl, .parquet); with --kmer they are the k-mers of FASTA and FASTQ files, on either strand. gzip, zstd and xz are recognised by their
/// content. Equal pairs count once, and a set may be without keys.
///
/// Prints how many sets, keys and pairs there are, what was built, its bits per pair and per key, and how many sets it is expected
/// to name that do not hold a key.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    members: MemberArgs,
    /// The index file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "INDEX")]
    output: PathBuf,
    /// Files are FASTA or FASTQ, and keys are their k-mers of this length, 1 to 31. A k-mer and its reverse complement are the same key; those
    /// over letters other than A, C, G and T are skipped and counted
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_K)))]
    kmer: Option<u32>,
    /// The structure: auto, bloom (takes more keys and sets later), cuckoo (the same, fewer false sets in the same room, slower),
    /// frozen (the smallest, and no false set for a key that is there, until more is added)
    #[arg(long, default_value = "auto")]
    kind: Kind,
    /// The most false sets to expect for a key that is in no set [default: 0.01]
    #[arg(long, value_name = "SETS", value_parser = positive, allow_negative_numbers = true)]
    false_sets: Option<f64>,
    /// The most false sets to expect for a key that is in some set; a frozen index has none [default: 0.1]
    #[arg(long, value_name = "SETS", value_parser = positive, allow_negative_numbers = true)]
    member_false_sets: Option<f64>,
    /// Spend so many bits per pair instead, on as few false sets as they buy
    #[arg(long, value_name = "B", conflicts_with_all = ["false_sets", "member_false_sets"], value_parser = positive, allow_negative_numbers = true)]
    bits_per_pair: Option<f64>,
    /// Keep how often a key is in a set, up to 255: lines and k-mers that come again are counted, and --pairs reads set:COUNT
    #[arg(long)]
    counts: bool,
    /// Leave room for so many pairs in all, for `tamis sets add`
    #[arg(long, value_name = "PAIRS", default_value_t = 0)]
    capacity: u64,
    /// Without a filter in front of the sketch: if nearly all keys asked for are in some set
    #[arg(long)]
    no_existence: bool,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| number > 0.0 && number <= 1e6);
    number.ok_or_else(|| "expected a number above 0, like 0.01".to_string())
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let (inputs, read_options) = args.members.find(args.kmer, args.counts)?;
    args.shared.limits.check()?;
    let output = Output::new(&args.output, inputs.sources().iter(), "index")?;
    let interrupt = Interrupt::install()?;
    let mut intake = Intake::new(options(&args, &interrupt)?.start());
    // A set without keys is a set.
    for name in inputs.names() {
        intake.pairs.set(name).map_err(tamis::Error::from)?;
    }
    let bar = Bar::bytes("reading", total_bytes(inputs.sources()));
    let read =
        inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| intake.push(member))?;
    drop(bar);
    interrupt.build()?;
    let (report, index) = write(&output, intake.pairs).map_err(|error| error.context(output.to_string()))?;
    let text = match args.json {
        true => format!("{}\n", as_json(&output, &read, &report, index.as_ref())),
        false => as_text(&args, &output, &read, &report, index.as_ref()),
    };
    output.report(&text)?;
    Ok(Outcome::Yes)
}

fn options(args: &Args, interrupt: &Interrupt) -> Result<sets::SetsBuilder<()>> {
    let build = sets::stream().common(args.shared.common(interrupt)?).kind(args.kind).capacity(args.capacity);
    let build = args.false_sets.into_iter().fold(build.counts(args.counts), |build, sets| build.false_sets(sets));
    let build = args.member_false_sets.into_iter().fold(build, |build, sets| build.member_false_sets(sets));
    let build = args.bits_per_pair.into_iter().fold(build, |build, bits| build.bits_per_pair(bits));
    let build = args.kmer.into_iter().fold(build, |build, k| build.kmer(k));
    Ok(if args.no_existence { build.without_filter() } else { build })
}

/// Members of sets on their way in.
pub(super) struct Intake {
    pub(super) pairs: Collector,
    /// The set of the last one: nearly always that of the next.
    last: Option<(String, u32)>,
}

impl Intake {
    pub(super) fn new(pairs: Collector) -> Intake {
        Intake { pairs, last: None }
    }

    /// Takes a key in.
    pub(super) fn push(&mut self, member: Member<'_>) -> Visited {
        let id = match &self.last {
            Some((name, id)) if name == member.set => *id,
            _ => match self.pairs.set(member.set) {
                Err(BuildError::Value(error)) => return Ok(Err(error.to_string())),
                id => {
                    let id = id.map_err(tamis::Error::from)?;
                    self.last = Some((member.set.to_string(), id));
                    id
                }
            },
        };
        let pushed = match member.key {
            KeyRef::Bytes(bytes) => self.pairs.push_times(bytes, id, member.count),
            KeyRef::U64(number) => self.pairs.push_times(number, id, member.count),
        };
        Ok(Ok(pushed.map_err(tamis::Error::from)?))
    }
}

/// Builds the index where it goes; it comes back where it can be read again.
pub(super) fn write(output: &Output, pairs: Collector) -> Result<(Report, Option<Sets>)> {
    let (finish_to, open) = (
        |pairs: Collector, path: &Path| pairs.finish_to(path),
        |path: &Path| mapped::sets(path, VerifyArgs { no_verify: true }),
    );
    output.build(pairs, Collector::finish_with_report, finish_to, open, Sets::as_bytes)
}

/// What a segment is called in a report.
fn structures(index: Option<&Sets>) -> Vec<(String, String)> {
    index.into_iter().flat_map(Sets::segments).map(|segment| (segment.kind.to_string(), segment.details)).collect()
}

fn as_json(output: &Output, read: &Read, report: &Report, index: Option<&Sets>) -> serde_json::Value {
    let structures = index.map(|index| {
        let list = structures(Some(index)).into_iter();
        list.map(|(kind, details)| json!({ "kind": kind, "details": details })).collect::<Vec<_>>()
    });
    json!({
        "file": output.to_string(),
        "sets": report.sets,
        "empty": report.empty,
        "keys": report.keys,
        "pairs": report.pairs,
        "duplicates": report.duplicates,
        "blank": read.counts.blank,
        "sequences": sequences_json(read.sequences.as_ref()),
        "kmer": index.and_then(Sets::kmer),
        "key_type": index.map(|index| index.key_type().to_string()),
        "bytes": report.bytes,
        "bits_per_pair": bits_per_key(report.bytes, report.pairs),
        "bits_per_key": bits_per_key(report.bytes, report.keys),
        "false_sets": report.false_sets,
        "member_false_sets": report.member_false_sets,
        "structures": structures,
    })
}

fn as_text(args: &Args, output: &Output, read: &Read, report: &Report, index: Option<&Sets>) -> String {
    let empty = match report.empty {
        0 => String::new(),
        sets => format!(", {} without keys", grouped(sets.into())),
    };
    let mut out = format!("sets        {}{empty}\n", grouped(report.sets.into()));
    out += &sequences(read.sequences.as_ref(), args.kmer);
    let _ = writeln!(out, "keys        {}{}", grouped(report.keys), blank(&read.counts));
    let duplicates = match (report.duplicates, args.counts) {
        (0, true) => String::new(),
        (n, true) => format!(", {} counted", count(n, "repetition")),
        (n, false) => format!(", {} dropped", count(n, "duplicate")),
    };
    let _ = writeln!(out, "pairs       {}{duplicates}", grouped(report.pairs));
    for (kind, details) in structures(index) {
        let _ = writeln!(out, "structure   {kind}: {details}");
    }
    if index.is_some_and(|index| index.segments().next().is_none()) {
        out += "structure   none: there are no keys\n";
    }
    let _ = writeln!(out, "file        {output}");
    out += &size(report.bytes, report.pairs, report.keys);
    out + &false_sets_line(report.false_sets, report.member_false_sets)
}
