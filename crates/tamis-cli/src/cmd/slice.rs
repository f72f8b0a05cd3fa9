//! lists of keys -> a plan; a plan and lists -> a slice; slices -> a filter file, or a manifest; what `inspect` says of them.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use serde_json::{Value, json};
use tamis::slices::{self, Plan, SliceInfo, Sliced};
use tamis::{Hasher, Key as _, KeyType};

use super::build_args::BuildArgs;
use super::output::Output;
use super::{
    approx, at, bits_per_key, count, fpr_line, grouped, hash_line, layer_lines, layers, overhead, put_hash, shown,
    size_line,
};
use crate::Outcome;
use crate::args::{self, EmptyArgs, InputArgs, LimitArgs, MemberLists, ReportArgs, number_of_slices};
use crate::input::{self, KeyRef, Source, files, total_bytes};
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::progress::Bar;

/// Build a filter in slices, by processes that share nothing but a plan
///
/// `plan` reads all keys once and counts them. `build` makes one slice, from all keys or from those of the slice. `join` makes
/// the file that `tamis build` makes of the same keys, byte for byte.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Plan(Box<PlanArgs>),
    Build(SliceArgs),
    Join(JoinArgs),
}

/// Plan a filter in slices
///
/// Reads keys and options as build does. The plan is JSON, and has counts and options; hand it to every tamis slice build.
#[derive(clap::Args, Debug)]
struct PlanArgs {
    #[command(flatten)]
    build: BuildArgs,
    /// Slices at most, a power of two up to 4096; a slice has a shard at least, so small sets have fewer
    #[arg(long, value_name = "N", default_value = "64", value_parser = number_of_slices)]
    slices: u32,
    /// Plan file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

/// Build one slice of a plan
///
/// Keys of other slices are skipped, so every process may read all keys, or only those of its slice. Keys must be those of
/// the plan; join finds out. A slice that is built twice has the same bytes.
#[derive(clap::Args, Debug)]
struct SliceArgs {
    /// Plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    members: MemberLists,
    /// Files of keys that must never match, or directories of them: every word up to the next option; - is standard input
    #[arg(short = 'x', long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    /// Number of the slice, from 0 on
    #[arg(long, value_name = "N")]
    slice: u32,
    /// Slice file, or a folder, where it is called slice-00000.tamis, ..; replaced only when the new one is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    empty: EmptyArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Join all slices of a plan to a filter file, or write a manifest into their folder
#[derive(clap::Args, Debug)]
struct JoinArgs {
    /// Slice files in any order, or a folder of them
    #[arg(value_name = "SLICES", required = true)]
    slices: Vec<PathBuf>,
    /// Filter file, replaced only when the new one is complete
    #[arg(short, long, value_name = "FILE", required_unless_present = "manifest", conflicts_with = "manifest")]
    output: Option<PathBuf>,
    /// Leave the slices of a folder where they are, and write manifest.tamis there: a program opens the folder as one filter
    #[arg(long)]
    manifest: bool,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    match args.command {
        Command::Plan(args) => plan(*args),
        Command::Build(args) => build(args),
        Command::Join(args) => join(args),
    }
}

/// Digests of keys that are all of one type.
struct Digests {
    hasher: Hasher,
    key_type: Option<KeyType>,
}

impl Digests {
    fn of(&mut self, key: KeyRef<'_>) -> Result<tamis::Digest> {
        let (digest, key_type) = match key {
            KeyRef::Bytes(bytes) => (bytes.digest(&self.hasher), KeyType::Bytes),
            KeyRef::Integer(number) => (number.digest(&self.hasher), KeyType::Integer),
        };
        match *self.key_type.get_or_insert(key_type) {
            all if all == key_type => Ok(digest),
            KeyType::Integer => Err(anyhow!("keys: some are text; expected integers")),
            _ => Err(anyhow!("keys: some are integers; expected text, as the others")),
        }
    }
}

/// Hands on the digests of all keys.
fn read(
    what: &'static str,
    sources: &[Source],
    options: &input::Options,
    digests: &mut Digests,
    mut push: impl FnMut(tamis::Digest) -> Result<(), tamis::Error>,
) -> Result<()> {
    let bar = Bar::bytes(what, total_bytes(sources));
    input::for_each(sources, options, &mut |bytes| bar.set_position(bytes), &mut |key, _, _| {
        push(digests.of(key)?)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

fn plan(args: PlanArgs) -> Result<Outcome> {
    args.report.apply();
    let sources = args.build.sources()?;
    let output = Output::new("-o", &args.output, sources.all(), "plan")?;
    let interrupt = Interrupt::install()?;
    let [keys, excluded, expected] = sources.by_purpose();
    if !expected.is_empty() {
        bail!("--workload: not possible with slice; expected build");
    }
    if args.build.input.is_partitioned() {
        bail!("--partition-column: not possible with slice; expected keys without partitions");
    }
    if args.build.secret_file()?.is_some() {
        bail!("--secret-file: not possible with slice; expected --secret or --seed");
    }
    let options = args.build.options(None, &interrupt)?;
    let hasher = args.build.hasher()?;
    let mut digests = Digests { hasher: hasher.clone(), key_type: None };
    let how = args.build.read_options(&sources)?;
    let mut gather = slices::Gather::new(&options.hasher(hasher), slices::KeyRange::ALL)?;
    read("reading", keys, &how, &mut digests, |digest| gather.push(digest))?;
    read("excluding", excluded, &how, &mut digests, |digest| gather.exclude(digest))?;
    interrupt.build()?;
    let planned = gather.plan(digests.key_type.unwrap_or(KeyType::Bytes), args.slices);
    let plan = planned.map_err(|error| conflict(error.into()))?;
    match &output {
        Output::File(path) => plan.save(path).map_err(|error| at(error.into(), &output.to_string()))?,
        Output::Stdout | Output::Device(_) => output.write(plan.to_string().as_bytes())?,
    }
    let text = || {
        let (slices, shards) = (grouped(plan.slices().into()), count(plan.shards(), "shard"));
        format!("keys        {}\nslices      {slices} of {shards}\nfile        {output}\n", grouped(plan.keys()))
    };
    let fields = || json!({ "keys": plan.keys(), "slices": plan.slices(), "shards": plan.shards() });
    output.report(args.report, Form::Plan, text, fields)?;
    Ok(Outcome::Yes)
}

/// Keys on both sides. Their places are not known: digests alone are kept.
fn conflict(error: Error) -> Error {
    match error.downcast_ref() {
        Some(tamis::Error::Build(tamis::BuildError::Conflict { count, .. })) => {
            crate::failure::conflicts(*count, ", or --secret if the two keys differ", &[])
        }
        _ => error,
    }
}

/// The longest plan: a note of 64 KiB, escaped, and some lines.
const PLAN: u64 = 1 << 20;

fn read_plan(path: &Path) -> Result<Plan> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(PLAN + 1).read_to_string(&mut text));
    read.map_err(|error| Error::new(error).context(shown(path)))?;
    if text.len() as u64 > PLAN {
        bail!("{}: more than {} bytes; expected a plan", shown(path), grouped(PLAN));
    }
    text.parse().map_err(|error| Error::new::<tamis::Error>(error).context(shown(path)))
}

fn build(args: SliceArgs) -> Result<Outcome> {
    args.report.apply();
    let plan = read_plan(&args.plan)?;
    let plan_file = Source::from(args.plan.clone());
    let sources = [args.members.sources()?, files::lists(&args.exclude)?];
    let [keys, excluded] = &sources;
    input::check_stdin_once(sources.iter().flatten())?;
    args.limits.check()?;
    if args.input.is_partitioned() {
        bail!("--partition-column: not possible with slice; expected keys without partitions");
    }
    if args.slice >= plan.slices() {
        bail!("--slice {}: the plan has {}; expected less", args.slice, count(plan.slices().into(), "slice"));
    }
    let is_folder = args.output.is_dir();
    let path = if is_folder { args.output.join(slices::file_name(args.slice)) } else { args.output.clone() };
    let inputs = std::slice::from_ref(&plan_file).iter().chain(sources.iter().flatten());
    let output = match Output::new("-o", &path, inputs, "slice")? {
        output @ Output::File(_) => output,
        Output::Stdout | Output::Device(_) => bail!("-o {}: expected a file or a folder", path.display()),
    };
    let interrupt = Interrupt::install()?;
    let how = args.empty.apply(args.input.options(keys.iter().chain(excluded))?).within(args.limits.memory);
    let key_type = (plan.keys() > 0).then(|| plan.key_type());
    let how = args::typed(&shown(&args.plan), key_type, how)?;
    let plan = args.limits.of_slice(plan, &interrupt);
    let mut digests = Digests { hasher: plan.hasher().clone(), key_type: Some(plan.key_type()) };
    let mut gather = plan.gather(args.slice)?;
    let is_here = |digest: tamis::Digest| plan.slice_of(digest) == args.slice;
    read("reading", keys, &how, &mut digests, |digest| if is_here(digest) { gather.push(digest) } else { Ok(()) })?;
    read(
        "excluding",
        excluded,
        &how,
        &mut digests,
        |digest| {
            if is_here(digest) { gather.exclude(digest) } else { Ok(()) }
        },
    )?;
    interrupt.build()?;
    let built = gather.slice_to(&plan, &path).map_err(|error| at(conflict(error.into()), &output.to_string()))?;
    let text = || {
        let mut out = format!("slice       {} of {}\n", args.slice, grouped(plan.slices().into()));
        out += &format!("keys        {}\n", grouped(built.keys));
        out += &if built.excluded > 0 { format!("excluded    {}\n", grouped(built.excluded)) } else { String::new() };
        out + &format!("file        {output}\nsize        {} bytes\n", grouped(built.bytes))
    };
    let fields = || {
        json!({
            "slice": args.slice,
            "slices": plan.slices(),
            "keys": built.keys,
            "excluded": built.excluded,
            "bytes": built.bytes,
        })
    };
    output.report(args.report, Form::Slice, text, fields)?;
    Ok(Outcome::Yes)
}

/// The slices of a folder, by name.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| Error::new(error).context(shown(folder)))?;
    let name = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("slice-") && name.ends_with(".tamis"))
    };
    let mut slices: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(name).collect();
    slices.sort();
    if slices.is_empty() {
        bail!("{}: no slice in this folder; expected slice-00000.tamis, ..", shown(folder));
    }
    Ok(slices)
}

fn join(args: JoinArgs) -> Result<Outcome> {
    args.report.apply();
    let (path, slices) = match (&args.output, &args.slices[..]) {
        (Some(output), [folder]) if folder.is_dir() => (output.clone(), of_folder(folder)?),
        (Some(output), slices) => match slices.iter().find(|slice| slice.is_dir()) {
            Some(folder) => bail!("{}: a folder among others; expected slice files, or one folder", shown(folder)),
            None => (output.clone(), slices.to_vec()),
        },
        (None, [folder]) if folder.is_dir() => (folder.join(slices::MANIFEST), vec![]),
        (None, _) => bail!("--manifest: the slices are files; expected a folder of slices"),
    };
    let sources: Vec<Source> = slices.iter().cloned().map(Source::from).collect();
    let output = match Output::new("-o", &path, sources.iter(), "filter")? {
        Output::Stdout => bail!("-o -: expected a file"),
        output => output,
    };
    let written = match args.output {
        Some(_) => slices::join_to(&path, &slices).map(|bytes| (Form::Filter, bytes)),
        None => slices::write_manifest(path.parent().unwrap_or(Path::new(".")))
            .map(|()| (Form::Manifest, std::fs::metadata(&path).map_or(0, |data| data.len()))),
    };
    let (form, bytes) = written.map_err(|error| match error {
        // The rounds that would count them are calls of the library.
        tamis::Error::Build(tamis::BuildError::PlanAgain { passed }) => anyhow!(
            "{output}: join: {} excluded keys pass the first layer, more than by chance; expected fewer; use slice plan with another \
             --seed, or --secret",
            grouped(passed)
        ),
        error => at(error.into(), &output.to_string()),
    })?;
    let text = || format!("file        {output}: {form}\nsize        {} bytes\n", grouped(bytes));
    output.report(args.report, form, text, || json!({ "bytes": bytes }))?;
    Ok(Outcome::Yes)
}

/// What `inspect` says of one slice.
pub(super) fn fields(info: &SliceInfo, bytes: usize) -> Value {
    let mut fields = json!({
        "slice": info.slice,
        "slices": info.slices,
        "keys": info.keys,
        "excluded": info.excluded,
        "key_type": info.key_type.to_string(),
        "bytes": bytes,
        "shards": info.shards,
    });
    put_hash(&mut fields, &info.hasher);
    fields
}

pub(super) fn lines(info: &SliceInfo, bytes: usize) -> String {
    let mut out = format!("slice       {} of {}\n", info.slice, grouped(info.slices.into()));
    out += &format!("keys        {} ({})\n", grouped(info.keys), info.key_type);
    if info.excluded > 0 {
        out += &format!("excluded    {}\n", grouped(info.excluded));
    }
    out += &hash_line(&info.hasher);
    out + &size_line(bytes as u64, info.keys, None) + &format!("shards      {}\n", grouped(info.shards))
}

/// Whether the number of excluded keys is an estimate: few are counted.
fn is_estimate(slices: &Sliced) -> bool {
    slices.excluded_len() >= 1 << 14
}

fn bound(slices: &Sliced) -> Option<f64> {
    let bits = slices.lower_bound();
    (!slices.is_empty() && bits > 0.0).then(|| bits / slices.len() as f64)
}

/// What `inspect` says of a folder of slices.
pub(super) fn folder_fields(slices: &Sliced) -> Value {
    let (bits, bound) = (bits_per_key(slices.bytes(), slices.len()), bound(slices));
    let mut fields = json!({
        "slices": slices.slices(),
        "keys": slices.len(),
        "excluded": slices.excluded_len(),
        "excluded_estimated": is_estimate(slices),
        "key_type": slices.key_type().to_string(),
        "bytes": slices.bytes(),
        "bits_per_key": bits,
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "fpr": slices.fpr(),
        "shards": slices.shards(),
        "layers": layers(slices.layers()),
    });
    put_hash(&mut fields, slices.hasher());
    fields
}

pub(super) fn folder_lines(slices: &Sliced) -> String {
    let mut out = format!("slices      {}\n", grouped(slices.slices() as u64));
    out += &format!("keys        {} ({})\n", grouped(slices.len()), slices.key_type());
    if slices.excluded_len() > 0 {
        out += &format!("excluded    {}\n", approx(slices.excluded_len(), is_estimate(slices)));
    }
    out += &hash_line(slices.hasher());
    out += &size_line(slices.bytes(), slices.len(), bound(slices));
    out += &fpr_line(slices.fpr());
    out += &format!("shards      {}\n", grouped(slices.shards()));
    out + &layer_lines(slices.layers())
}
