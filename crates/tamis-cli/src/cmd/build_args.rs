//! arguments of `build` and `plan` -> the keys of a filter to be, read and counted.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use tamis::{BuildError, Effort, Kind, Layout, OnConflict};

use super::any_builder::AnyBuilder;
use super::grouped;
use crate::args::{self, HashAndLimitArgs, InputArgs, one_of};
use crate::input::{self, Counts, KeyRef, Places, Source, expect, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;

/// What a filter shall be made of, and what it shall reach.
#[derive(clap::Args, Debug)]
pub(crate) struct BuildArgs {
    /// Files of keys; - or none is standard input
    #[arg(value_name = "KEYS")]
    keys: Vec<PathBuf>,
    /// Share of unlisted keys that may match [default: 0.01]; with a workload, the ceiling for unlisted keys, 1 for none
    /// [default: --workload-fpr, or 1.42 times the rate of a plain filter of --bits-per-key]
    #[arg(long, value_name = "P", value_parser = ceiling, allow_negative_numbers = true)]
    pub(super) fpr: Option<f64>,
    /// Spend at most this many bits per key instead
    #[arg(long, value_name = "B", value_parser = bits, allow_negative_numbers = true)]
    pub(super) bits_per_key: Option<f64>,
    /// Files of keys that must never match; - is standard input. May be repeated
    #[arg(long, value_name = "FILE", num_args = 1, action = clap::ArgAction::Append)]
    exclude: Vec<PathBuf>,
    /// Files of expected queries: a log, one query per line, which is counted; or lines of key<TAB>weight, of `key weight`, or of
    /// `uniq -c`. - is standard input. May be repeated
    #[arg(long, value_name = "FILE", num_args = 1, action = clap::ArgAction::Append, conflicts_with_all = ["excluded_fpr", "partition_column"])]
    workload: Vec<PathBuf>,
    /// Column of queries in .csv, .tsv, .jsonl and .parquet files of --workload
    #[arg(long, value_name = "NAME", requires = "workload")]
    workload_column: Option<String>,
    /// Column of weights; without it every row counts once
    #[arg(long, value_name = "NAME", requires = "workload_column")]
    weight_column: Option<String>,
    /// Share of the negative queries of the workload that may match [default: --fpr]
    #[arg(long, value_name = "P", requires = "workload", conflicts_with_all = ["bits_per_key", "exact"], value_parser = rate, allow_negative_numbers = true)]
    pub(super) workload_fpr: Option<f64>,
    /// Share of negative queries outside the workload [default: estimated]
    #[arg(long, value_name = "P", requires = "workload", value_parser = share, allow_negative_numbers = true)]
    unlisted_share: Option<f64>,
    /// FilterBuilder the smallest filter that is right for all members and excluded keys; unlisted keys get arbitrary answers. Needs
    /// --exclude or --workload
    #[arg(long, conflicts_with = "bits_per_key")]
    pub(super) exact: bool,
    /// Share of the excluded keys that may match; unlisted keys get arbitrary answers. Smaller than --exact. A key that is
    /// excluded several times counts as often
    #[arg(long, value_name = "P", conflicts_with_all = ["fpr", "bits_per_key", "exact"], requires = "exclude", value_parser = rate, allow_negative_numbers = true)]
    pub(super) excluded_fpr: Option<f64>,
    /// A key both wanted and excluded: error (say which), keep (it is wanted) or drop (it is excluded)
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = on_conflict)]
    pub(super) on_conflict: OnConflict,
    /// The structure: auto, or one of ribbon, fuse, fuse4, bloom, classic-bloom, cuckoo, quotient; with --exclude or --workload
    /// one of steered, chained, cascade, integrated, naive, the last four alone or followed by what they are made of
    /// (chained-fuse, cascade-bloom, ...); with --workload also stacked, alone or followed by what it is made of
    #[arg(long, default_value = "auto", value_parser = kind)]
    kind: Kind,
    /// Room for this many keys in all, or for +20% more, in structures that take keys after they were built: bloom, classic-bloom,
    /// cuckoo, quotient, and stacked on the last three
    #[arg(long, value_name = "N|+P%", value_parser = capacity)]
    capacity: Option<Capacity>,
    /// How hard to look for a smaller filter: fast, balanced or smallest
    #[arg(long, default_value = "balanced", value_parser = effort)]
    effort: Effort,
    /// With --exclude, how bits are laid out: auto, compact (the smallest) or local (side by side: members are found faster)
    #[arg(long, default_value = "auto", value_parser = layout)]
    layout: Layout,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    #[command(flatten)]
    input: InputArgs,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate: &f64| rate > 0.0 && rate < 1.0);
    rate.ok_or_else(|| "expected a share between 0 and 1, like 0.01".to_string())
}

fn ceiling(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate: &f64| rate > 0.0 && rate <= 1.0);
    rate.ok_or_else(|| "expected a share between 0 and 1, like 0.01, or 1 for no limit".to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, like 0.2".to_string())
}

fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().ok().filter(|&bits: &f64| bits > 0.0 && bits <= 4096.0);
    bits.ok_or_else(|| "expected a number of bits between 0 and 4096, like 9.5".to_string())
}

/// Room for keys to come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Capacity {
    Keys(u64),
    Share(f64),
}

fn capacity(text: &str) -> Result<Capacity, String> {
    let share = text.strip_prefix('+').and_then(|text| text.strip_suffix('%')?.parse().ok());
    let share = share.filter(|&percent: &f64| (0.0..=100_000.0).contains(&percent)).map(|percent| percent / 100.0);
    let found =
        share.map(Capacity::Share).or_else(|| text.parse().ok().filter(|_| !text.starts_with('+')).map(Capacity::Keys));
    found.ok_or_else(|| "expected a number of keys, like 120000, or a share of them, like +20%".to_string())
}

fn kind(name: &str) -> Result<Kind, String> {
    one_of(name, Kind::ALL)
}

fn on_conflict(name: &str) -> Result<OnConflict, String> {
    one_of(name, &[("error", OnConflict::Error), ("keep", OnConflict::Keep), ("drop", OnConflict::Drop)])
}

pub(super) fn effort(name: &str) -> Result<Effort, String> {
    one_of(name, &[("fast", Effort::Fast), ("balanced", Effort::Balanced), ("smallest", Effort::Smallest)])
}

fn layout(name: &str) -> Result<Layout, String> {
    one_of(name, &[("auto", Layout::Auto), ("compact", Layout::Compact), ("local", Layout::Local)])
}

impl BuildArgs {
    /// All inputs, looked at before the first is read: a typing error should not show after an hour.
    pub(super) fn sources(&self) -> Result<Sources> {
        let named = |names: &[PathBuf]| if names.is_empty() { vec![] } else { args::sources(names) };
        let sources = Sources {
            keys: args::sources(&self.keys),
            excluded: named(&self.exclude),
            expected: named(&self.workload),
        };
        if let (Some(fpr), []) = (self.fpr, &self.workload[..]) {
            let other = if self.exact { Some("--exact") } else { self.bits_per_key.map(|_| "--bits-per-key") };
            match other {
                Some(other) => {
                    bail!("--fpr, {other}: two goals; expected one, or --workload with --fpr as its ceiling")
                }
                None if fpr >= 1.0 => bail!("--fpr {fpr}: every key would match; expected a share between 0 and 1"),
                None => {}
            }
        }
        if self.exact && sources.excluded.is_empty() && sources.expected.is_empty() {
            bail!(
                "--exact: no keys are excluded, so every key would match; expected --exclude FILE, or --fpr or --bits-per-key instead"
            );
        }
        input::check_stdin_once(sources.all())?;
        sources.all().try_for_each(Source::check)?;
        self.shared.limits.check()?;
        Ok(sources)
    }

    /// Reads everything.
    pub(super) fn gather(&self, sources: &Sources, interrupt: &Interrupt) -> Result<(AnyBuilder, Inputs)> {
        let mut keys = new_builder(self, interrupt)?;
        let (read, places) = read("reading", &sources.keys, &self.input, |key, label| keys.push(key, label))?;
        let mut keys = keys.seal()?;
        let mut inputs = Inputs { keys: read, excluded: None, expected: None, places: [places, Places::default()] };
        if !sources.expected.is_empty() {
            let bar = Bar::bytes("expecting", total_bytes(&sources.expected));
            let options = self.input.options().for_queries(self.workload_column.clone(), self.weight_column.clone());
            let take = &mut |key: KeyRef<'_>, weight: f64| keys.push_query(key, weight);
            inputs.expected =
                Some(expect::for_each(&sources.expected, &options, &mut |bytes| bar.set_position(bytes), take)?);
        }
        if !sources.excluded.is_empty() {
            let exclude = |key: KeyRef<'_>, label: Option<&[u8]>| keys.exclude(key, label);
            let (counts, places) = self::read("excluding", &sources.excluded, &self.input, exclude)?;
            (inputs.excluded, inputs.places[1]) = (Some(counts), places);
        }
        Ok((keys, inputs))
    }
}

/// The inputs by what they are for.
pub(super) struct Sources {
    keys: Vec<Source>,
    excluded: Vec<Source>,
    expected: Vec<Source>,
}

impl Sources {
    pub(super) fn all(&self) -> impl Iterator<Item = &Source> {
        self.keys.iter().chain(&self.excluded).chain(&self.expected)
    }
}

/// What was read, and where it stands.
pub(super) struct Inputs {
    pub(super) keys: Counts,
    pub(super) excluded: Option<Counts>,
    pub(super) expected: Option<Counts>,
    /// Of keys and of excluded keys.
    places: [Places; 2],
}

impl Inputs {
    /// An error of the library in terms of files and options, if it is about them.
    pub(super) fn explain(&self, error: &anyhow::Error) -> Option<anyhow::Error> {
        match error.downcast_ref() {
            Some(tamis::Error::Build(BuildError::Conflict { count, first })) => Some(self.conflict(*count, first)),
            Some(tamis::Error::Build(BuildError::NothingExcluded)) => Some(anyhow!(
                "--exclude: no key is left to exclude, so every key would match; expected at least one key that is not in the set, or --fpr or --bits-per-key as the goal"
            )),
            _ => None,
        }
    }

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
        anyhow!(
            "{message}; expected none, or --on-conflict keep (they are keys) or drop (they are excluded), or --secret where two lines differ (their digests were made equal)"
        )
    }
}

fn new_builder(args: &BuildArgs, interrupt: &Interrupt) -> Result<AnyBuilder> {
    let build = args.shared.common(interrupt)?.kind(args.kind).effort(args.effort);
    let build = build.layout(args.layout).on_conflict(args.on_conflict);
    let build = match args.capacity {
        Some(Capacity::Keys(keys)) => build.capacity(keys),
        Some(Capacity::Share(share)) => build.extra_capacity(share),
        None => build,
    };
    let build = if args.exclude.is_empty() { build } else { build.with_excluded() };
    let build = if args.workload.is_empty() { build } else { build.with_workload() };
    let build = if args.exact { build.exact() } else { build };
    let build = args.fpr.into_iter().fold(build, |build, p| build.fpr(p));
    let build = args.workload_fpr.into_iter().fold(build, |build, p| build.workload_fpr(p));
    let build = args.excluded_fpr.into_iter().fold(build, |build, p| build.excluded_fpr(p));
    let build = args.bits_per_key.into_iter().fold(build, |build, bits| build.bits_per_key(bits));
    let build = args.unlisted_share.into_iter().fold(build, |build, share| build.unlisted_share(share));
    Ok(match args.input.is_partitioned() {
        true => AnyBuilder::Partitioned(Box::new(build.partitioned())),
        false => AnyBuilder::Collecting(Box::new(build.start())),
    })
}

fn read(
    what: &'static str,
    sources: &[Source],
    args: &InputArgs,
    mut push: impl FnMut(KeyRef<'_>, Option<&[u8]>) -> Result<()>,
) -> Result<(Counts, Places)> {
    let bar = Bar::bytes(what, total_bytes(sources));
    input::for_each(sources, &args.options(), &mut |bytes| bar.set_position(bytes), &mut |key, label, _| {
        push(key, label.map(|label| label.text))?;
        Ok(ControlFlow::Continue(()))
    })
}
