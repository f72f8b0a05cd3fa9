//! keys of many sets -> an index file, and a report of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::json;
use tamis::sets::{self, Collector, Kind, Report, Shape};
use tamis::{BuildError, Sets};

use super::super::output::Output;
use super::super::{at, bits_per_key, grouped};
use super::{MemberArgs, blank, count, false_sets_line, segments, sequences, sequences_fields, size};
use crate::Outcome;
use crate::args::{self, HashAndLimitArgs, ReportArgs};
use crate::input::kmers::MAX_K;
use crate::input::sets::{Member, Read};
use crate::input::{KeyRef, Visited, total_bytes};
use crate::interrupt::Interrupt;
use crate::mapped::{self, How};
use crate::progress::Bar;
use crate::secret::{Created, SecretFile};

mod shape;

/// Build an index from sets of keys
///
/// Every file is a set, or with --pairs every line is a key and its sets. Reads one key per line, or a column of a table (.csv,
/// .tsv, .jsonl, .parquet); with --kmer, the k-mers of FASTA and FASTQ files, on either strand. gzip, zstd and xz are recognised
/// by content. Duplicate pairs are skipped, and a set may have no keys.
///
/// Prints the number of sets, keys and pairs, the segments, bits per pair and per key, and the expected false sets.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    members: MemberArgs,
    /// Index file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "INDEX")]
    output: PathBuf,
    /// Read FASTA or FASTQ; keys are the k-mers of this length, 1 to 31. A k-mer and its reverse complement are one key; those
    /// over letters other than A, C, G and T are skipped and counted
    #[arg(long, value_name = "K", value_parser = kmer)]
    kmer: Option<u32>,
    /// Structure: auto, bloom (more keys and sets can be added), cuckoo (as bloom, with fewer false sets per bit, slower) or frozen
    /// (the smallest, without false sets for members until keys are added)
    #[arg(long, default_value = "auto")]
    kind: Kind,
    /// False sets to expect for an unlisted key, at most [default: 0.01]
    #[arg(long, value_name = "SETS", value_parser = positive, allow_negative_numbers = true)]
    false_sets: Option<f64>,
    /// False sets to expect for a member, at most; a frozen index has none [default: 0.1]
    #[arg(long, value_name = "SETS", value_parser = positive, allow_negative_numbers = true)]
    member_false_sets: Option<f64>,
    /// Bits per pair to spend, instead of a number of false sets
    #[arg(long, value_name = "B", conflicts_with_all = ["false_sets", "member_false_sets"], value_parser = positive, allow_negative_numbers = true)]
    bits_per_pair: Option<f64>,
    /// Parameters of a sketch by hand: bloom:words=W,hashes=K or cuckoo:buckets=M,bits=F for one table; with
    /// repetitions=R,partitions=B, R tables whose rows have B columns; existence=RATE adds a filter in front, and heavy=N lists
    /// keys of more than N sets exactly
    #[arg(long, value_name = "SHAPE", conflicts_with_all = ["false_sets", "member_false_sets", "bits_per_pair", "no_existence", "kind"], value_parser = shape::parse)]
    shape: Option<Shape>,
    /// Count how often a key is in a set, up to 255: repeated lines and k-mers are counted, and --pairs reads set:COUNT
    #[arg(long)]
    counts: bool,
    /// Pairs that fit in all, for `tamis sets add`
    #[arg(long, value_name = "PAIRS", default_value = "0", value_parser = args::seed)]
    capacity: u64,
    /// Leave out the filter in front of the sketch, if nearly all queries are for members
    #[arg(long)]
    no_existence: bool,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    #[command(flatten)]
    report: ReportArgs,
}

fn kmer(text: &str) -> Result<u32, String> {
    Ok(args::whole(text, 1..=MAX_K.into())? as u32)
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    args::number(text, |number| number > 0.0 && number <= 1e6, "a number above 0 and at most 1,000,000, like 0.01")
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.report.apply();
    let unfit = [(args.no_existence, "--no-existence"), (args.member_false_sets.is_some(), "--member-false-sets")];
    if let (Kind::Frozen, Some((_, option))) = (args.kind, unfit.iter().find(|(given, _)| *given)) {
        bail!("{option}: no effect with --kind frozen; expected bloom or cuckoo");
    }
    let (inputs, read_options) = args.members.find(args.kmer, args.counts)?;
    args.shared.limits.check()?;
    let output = Output::new("-o", &args.output, inputs.sources().iter(), "index")?;
    let interrupt = Interrupt::install()?;
    let secret = args.shared.secret_file()?;
    let mut intake = Intake::new(options(&args, secret.as_ref(), &interrupt)?.start());
    // A set without keys is a set.
    for name in inputs.names() {
        intake.pairs.set(name).map_err(tamis::Error::from)?;
    }
    let bar = Bar::bytes("reading", total_bytes(inputs.sources()));
    let read =
        inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| intake.push(member))?;
    drop(bar);
    interrupt.build()?;
    let created = secret.as_ref().map(|secret| secret.create(&args.output)).transpose()?;
    let (report, index) = write(&output, intake.pairs, secret.as_ref().map(|file| file.secret))?;
    created.into_iter().for_each(Created::keep);
    let text = || as_text(&args, &output, &read, &report, index.as_ref());
    output.report(args.report, "sets", text, || as_fields(&read, &report, index.as_ref()))?;
    Ok(Outcome::Yes)
}

fn options(args: &Args, secret: Option<&SecretFile>, interrupt: &Interrupt) -> Result<sets::SetsBuilder<'static, ()>> {
    let build = args.members.numbered(sets::stream().options(args.shared.common(secret, interrupt)?));
    let build = build.kind(args.kind).capacity(args.capacity);
    let build = args.false_sets.into_iter().fold(build.counts(args.counts), |build, sets| build.false_sets(sets));
    let build = args.member_false_sets.into_iter().fold(build, |build, sets| build.member_false_sets(sets));
    let build = args.bits_per_pair.into_iter().fold(build, |build, bits| build.bits_per_pair(bits));
    let build = args.shape.into_iter().fold(build, |build, shape| build.shape(shape));
    let build = args.kmer.into_iter().fold(build, |build, k| build.kmer(k));
    Ok(if args.no_existence { build.without_filter() } else { build })
}

/// Members of sets on their way in.
pub(super) struct Intake {
    pub(super) pairs: Collector<'static>,
    /// The set of the last one: nearly always that of the next.
    last: Option<(String, u32)>,
}

impl Intake {
    pub(super) fn new(pairs: Collector<'static>) -> Intake {
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
            KeyRef::Integer(number) => self.pairs.push_times(number, id, member.count),
        };
        Ok(Ok(pushed.map_err(tamis::Error::from)?))
    }
}

/// Builds the index where it goes; it comes back where it can be read again.
pub(super) fn write(
    output: &Output,
    pairs: Collector<'static>,
    secret: Option<[u64; 2]>,
) -> Result<(Report, Option<Sets>)> {
    let (finish_to, open) = (
        |pairs: Collector<'static>, path: &Path| pairs.finish_to(path),
        |path: &Path| mapped::sets(path, How::written(secret)),
    );
    let built = output.build(pairs, Collector::finish_with_report, finish_to, open, Sets::as_bytes);
    built.map_err(|error| match error.downcast_ref() {
        Some(tamis::Error::Build(_)) => error,
        _ => at(error, &output.to_string()),
    })
}

fn as_fields(read: &Read, report: &Report, index: Option<&Sets>) -> serde_json::Value {
    json!({
        "sets": report.sets,
        "empty": report.empty,
        "keys": report.keys,
        "pairs": report.pairs,
        "duplicates": report.duplicates,
        "blank": read.counts.blank,
        "sequences": sequences_fields(read.sequences.as_ref()),
        "kmer": index.and_then(Sets::kmer),
        "key_type": index.map(|index| index.key_type().to_string()),
        "bytes": report.bytes,
        "bits_per_pair": bits_per_key(report.bytes, report.pairs),
        "bits_per_key": bits_per_key(report.bytes, report.keys),
        "false_sets": report.false_sets,
        "member_false_sets": report.member_false_sets,
        "segments": index.map(segments),
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
    for (i, segment) in index.into_iter().flat_map(Sets::segments).enumerate() {
        let _ = writeln!(out, "segment {i:<3} {}: {}", segment.kind, segment.details);
    }
    if index.is_some_and(|index| index.segments().next().is_none()) {
        out += "segments    none: no keys\n";
    }
    let _ = writeln!(out, "file        {output}");
    out += &size(report.bytes, report.pairs, report.keys);
    out + &false_sets_line(report.false_sets, report.member_false_sets)
}
