//! arguments of `build` and `plan` -> the keys of a filter, read and counted, and what went wrong in terms of these arguments.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow, bail};
use tamis::{BuildError, Chained, Effort, Hasher, Key as _, Kind, Layout, OnConflict, Papers};

use super::any_builder::AnyBuilder;
use super::{at, changing, grouped, key_bytes};
use crate::args::{self, EmptyArgs, HashAndLimitArgs, InputArgs, MemberLists, named};
use crate::failure::{self, Conflict};
use crate::input::{self, Counts, KeyRef, Places, Source, expect, files, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;
use crate::secret::SecretFile;

/// The keys of a filter, and what it must reach.
#[derive(clap::Args, Debug)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    members: MemberLists,
    /// Share of unlisted keys that may match, like 0.001, 1e-3, 0.1% or 1/1000 [default: 0.01]
    ///
    /// With a workload, the ceiling for unlisted keys, 1 for none [default: --workload-fpr, or 1.42 times the rate of a plain
    /// filter of --bits-per-key].
    #[arg(long, value_name = "P", value_parser = ceiling, allow_negative_numbers = true)]
    pub(super) fpr: Option<f64>,
    /// Bits per key to spend, instead of --fpr; above 0, at most 4096
    #[arg(long, value_name = "B", value_parser = bits, allow_negative_numbers = true)]
    pub(super) bits_per_key: Option<f64>,
    /// Files of keys that must never match, or directories of them: every word up to the next option; - is standard input
    #[arg(short = 'x', long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    /// Files of expected queries: logs, one query per line, or lines of key<TAB>weight, `key weight` or `uniq -c`; every word up
    /// to the next option; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["excluded_fpr", "partition_column"])]
    workload: Vec<PathBuf>,
    /// Column of queries in .csv, .tsv, .jsonl and .parquet files of --workload
    #[arg(long, value_name = "NAME", requires = "workload")]
    workload_column: Option<String>,
    /// Column of weights [default: each row weighs 1]
    #[arg(long, value_name = "NAME", requires = "workload_column")]
    weight_column: Option<String>,
    /// Share of the negative queries of the workload that may match [default: --fpr]
    #[arg(long, value_name = "P", requires = "workload", conflicts_with_all = ["bits_per_key", "exact"], value_parser = rate, allow_negative_numbers = true)]
    pub(super) workload_fpr: Option<f64>,
    /// Share of negative queries outside the workload [default: estimated]
    #[arg(long, value_name = "P", requires = "workload", value_parser = share, allow_negative_numbers = true)]
    unlisted_share: Option<f64>,
    /// Build the smallest filter that is right for all members and excluded keys; unlisted keys get arbitrary answers. Needs
    /// --exclude or --workload
    #[arg(long, conflicts_with = "bits_per_key")]
    pub(super) exact: bool,
    /// Share of the excluded keys that may match, a repeated one counted as often; unlisted keys get arbitrary answers.
    /// Smaller than --exact. For --kind auto, steered or chained
    #[arg(long, value_name = "P", conflicts_with_all = ["fpr", "bits_per_key", "exact"], requires = "exclude", value_parser = rate, allow_negative_numbers = true)]
    pub(super) excluded_fpr: Option<f64>,
    /// What to do with a key that is a member and excluded: error (list them, exit code 4), keep (it is a member) or drop (it
    /// is excluded)
    #[arg(long, value_name = "WHAT", default_value = "error", requires = "exclude", value_parser = named(OnConflict::ALL), hide_possible_values = true)]
    pub(super) on_conflict: OnConflict,
    /// Structure
    ///
    /// With --exclude or --workload: auto, steered, chained, cascade, integrated or naive, the last four also with the structure
    /// of their layers. Stacked needs --workload. The others store members alone.
    #[arg(long, default_value = "auto", value_parser = named(Kind::ALL))]
    kind: Kind,
    /// With --kind cascade: how much shorter each list of keys is than the one before, above 0 and below 1 [default: 0.5]
    #[arg(long, value_name = "D", value_parser = delta, allow_negative_numbers = true)]
    delta: Option<f64>,
    /// With --kind cascade: number of layers, the exact one included, 1 to 64 [default: 5]
    #[arg(long, value_name = "N", value_parser = layers)]
    layers: Option<u32>,
    /// Keys that fit in all, or +20% more than there are; of bloom, classic-bloom, cuckoo, quotient, and stacked on the last three
    #[arg(long, value_name = "N|+P%", value_parser = capacity)]
    capacity: Option<Capacity>,
    /// Effort to find a smaller filter
    #[arg(long, default_value = "balanced", value_parser = named(Effort::ALL))]
    effort: Effort,
    /// Order of bits, with --exclude: auto, compact (smallest) or local (faster queries for members)
    #[arg(long, default_value = "auto", value_parser = named(Layout::ALL), hide_possible_values = true)]
    layout: Layout,
    /// Bytes of a shard, 4K to 1G: what a query of a file in an object store reads. 64K is a good choice there [default: shards of
    /// 1.5 million keys]
    #[arg(long, value_name = "SIZE", value_parser = shard_bytes)]
    shard_bytes: Option<u64>,
    #[command(flatten)]
    shared: HashAndLimitArgs,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    empty: EmptyArgs,
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    args::share(text, |p| p > 0.0 && p < 1.0, "a share above 0 and below 1, like 0.01, 1% or 1/256")
}

fn ceiling(text: &str) -> Result<f64, String> {
    args::share(text, |p| p > 0.0 && p <= 1.0, "a share above 0 and at most 1, like 0.01, 1% or 1/256")
}

fn share(text: &str) -> Result<f64, String> {
    args::share(text, |p| (0.0..=1.0).contains(&p), "a share from 0 to 1, like 0.2, 20% or 1/5")
}

fn bits(text: &str) -> Result<f64, String> {
    args::number(text, |bits| bits > 0.0 && bits <= 4096.0, "bits above 0 and at most 4096, like 9.5")
}

fn delta(text: &str) -> Result<f64, String> {
    args::share(text, |delta| delta > 0.0 && delta < 1.0, "a number above 0 and below 1, like 0.7")
}

fn layers(text: &str) -> Result<u32, String> {
    args::whole(text, 1..=64).map(|layers| layers as u32)
}

fn shard_bytes(text: &str) -> Result<u64, String> {
    match args::bytes(text)? {
        bytes @ 4096..=0x4000_0000 => Ok(bytes),
        _ => Err("out of range; expected 4K to 1G".to_string()),
    }
}

/// How many keys fit.
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
    found
        .ok_or_else(|| "not a capacity; expected a number of keys, like 120000, or a share more, like +20%".to_string())
}

impl BuildArgs {
    /// All inputs, checked before the first is read: a typing error should not show after an hour.
    pub(super) fn sources(&self) -> Result<Sources> {
        if let (Some(fpr), []) = (self.fpr, &self.workload[..]) {
            let other = if self.exact { Some("--exact") } else { self.bits_per_key.map(|_| "--bits-per-key") };
            match other {
                Some(other) => {
                    bail!("--fpr, {other}: two goals; expected one, or --workload with --fpr as its ceiling")
                }
                None if fpr >= 1.0 => bail!("--fpr {fpr}: every key would match; expected a share below 1"),
                None => {}
            }
        }
        let is_plain = self.exclude.is_empty() && self.workload.is_empty();
        if self.layout != Layout::Auto && is_plain {
            bail!("--layout: no effect on members alone; expected --exclude or --workload too");
        }
        if self.exact && is_plain {
            bail!(
                "--exact: no key is excluded, so every key would match; expected --exclude FILE, or --fpr or --bits-per-key instead"
            );
        }
        let sources = Sources {
            keys: self.members.sources()?,
            excluded: files::lists(&self.exclude)?,
            expected: files::lists(&self.workload)?,
        };
        input::check_stdin_once(sources.all())?;
        self.shared.limits.check()?;
        Ok(sources)
    }

    /// The secret that is kept outside the filter.
    pub(super) fn secret_file(&self) -> Result<Option<SecretFile>> {
        self.shared.secret_file()
    }

    /// What the library gets of this.
    pub(super) fn options(
        &self,
        secret: Option<&SecretFile>,
        interrupt: &Interrupt,
    ) -> Result<tamis::Options<'static>> {
        build_options(self, secret, interrupt)
    }

    /// The hash, where its secret is in the file.
    pub(super) fn hasher(&self) -> Result<Hasher> {
        self.shared.hasher()
    }

    /// The goal, as options.
    pub(super) fn goal(&self) -> String {
        let shares =
            [("--workload-fpr", self.workload_fpr), ("--excluded-fpr", self.excluded_fpr), ("--fpr", self.fpr)];
        let given = shares.iter().filter_map(|(option, share)| Some(format!("{option} {}", (*share)?)));
        let bits = self.bits_per_key.map(|bits| format!("--bits-per-key {bits}"));
        let all: Vec<String> = self.exact.then(|| "--exact".to_string()).into_iter().chain(bits).chain(given).collect();
        if all.is_empty() { "--fpr 0.01, the default".to_string() } else { all.join(", ") }
    }

    /// How keys and excluded keys are read.
    pub(super) fn read_options(&self, sources: &Sources) -> Result<input::Options> {
        let options = self.input.options(sources.keys.iter().chain(&sources.excluded))?;
        Ok(self.empty.apply(options).within(self.shared.limits.memory))
    }

    /// Reads everything.
    pub(super) fn gather(
        &self,
        sources: &Sources,
        secret: Option<&SecretFile>,
        interrupt: &Interrupt,
    ) -> Result<(AnyBuilder, Inputs)> {
        let options = self.read_options(sources)?;
        let mut keys = new_builder(self, secret, interrupt)?;
        let (read, places) = read("reading", &sources.keys, &options, |key, partition| keys.push(key, partition))?;
        let mut keys = keys.seal()?;
        let mut inputs = Inputs { keys: read, excluded: None, expected: None, places: [places, Places::default()] };
        if !sources.expected.is_empty() {
            let bar = Bar::bytes("expecting", total_bytes(&sources.expected));
            let options = options.for_queries(self.workload_column.clone(), self.weight_column.clone());
            let take = &mut |key: KeyRef<'_>, weight: f64| {
                keys.push_query(key, weight).map_err(|error| of_another_type("--workload", error))
            };
            inputs.expected =
                Some(expect::for_each(&sources.expected, &options, &mut |bytes| bar.set_position(bytes), take)?);
        }
        if !sources.excluded.is_empty() {
            let exclude = |key: KeyRef<'_>, partition: Option<&[u8]>| {
                keys.exclude(key, partition).map_err(|error| of_another_type("--exclude", error))
            };
            let (counts, places) = self::read("excluding", &sources.excluded, &options, exclude)?;
            (inputs.excluded, inputs.places[1]) = (Some(counts), places);
        }
        Ok((keys, inputs))
    }

    /// Reads everything into memory, for a model.
    pub(super) fn keys_in_memory(
        &self,
        sources: &Sources,
        secret: Option<&SecretFile>,
        interrupt: &Interrupt,
    ) -> Result<(tamis::Options<'static>, [InMemory; 2], Inputs)> {
        let build = build_options(self, secret, interrupt)?;
        let options = self.read_options(sources)?;
        let (mut members, mut excluded) = (vec![], vec![]);
        let push = |keys: &mut Vec<Vec<u8>>, key: KeyRef<'_>| match key {
            KeyRef::Bytes(bytes) => {
                keys.push(bytes.to_vec());
                Ok(())
            }
            KeyRef::Integer(_) => Err(anyhow!("--learn: the keys are integers, which have no letters; expected text")),
        };
        let (read, places) = self::read("reading", &sources.keys, &options, |key, _| push(&mut members, key))?;
        let (counts, of_excluded) =
            self::read("excluding", &sources.excluded, &options, |key, _| push(&mut excluded, key))?;
        let inputs = Inputs { keys: read, excluded: Some(counts), expected: None, places: [places, of_excluded] };
        Ok((build, [members, excluded], inputs))
    }

    /// Reads everything into a filter that changes.
    pub(super) fn changing(
        &self,
        sources: &Sources,
        secret: Option<&SecretFile>,
    ) -> Result<(Chained, Vec<changing::Counted>)> {
        let hasher = secret.map_or_else(|| self.shared.hasher(), |file| Ok(Hasher::secret(file.secret)))?;
        let options = self.read_options(sources)?;
        let (mut digests, mut integers) = (vec![], false);
        let (keys, _) = read("reading", &sources.keys, &options, |key, _| {
            digests.push(match key {
                KeyRef::Bytes(bytes) => bytes.digest(&hasher),
                KeyRef::Integer(number) => number.digest(&hasher),
            });
            integers = matches!(key, KeyRef::Integer(_));
            Ok(())
        })?;
        digests.sort_unstable();
        digests.dedup();
        let share = |share: f64| (digests.len() as f64 * (1.0 + share)).ceil() as u64;
        let capacity = match self.capacity {
            Some(Capacity::Keys(keys)) if keys < digests.len() as u64 => {
                bail!("--capacity {}: out of range; expected at least {}", grouped(keys), grouped(digests.len() as u64))
            }
            Some(Capacity::Keys(keys)) => keys,
            Some(Capacity::Share(more)) => share(more),
            None => share(0.2),
        };
        // Half of what passes the first layer matches.
        let fpr = (2.0 * self.fpr.unwrap_or(0.01)).min(0.5);
        let new = changing::New { kind: self.kind, fpr, hasher, secret, integers };
        let mut filter = match self.kind {
            kind @ (Kind::Ribbon | Kind::Fuse | Kind::Fuse4) if self.capacity.is_some() => {
                bail!("--capacity: no effect with --kind {kind}; expected a kind that takes keys")
            }
            Kind::Ribbon | Kind::Fuse | Kind::Fuse4 => changing::fixed(new, digests)?,
            _ => {
                let mut filter = changing::empty(new, capacity)?;
                filter.insert_digests(digests)?;
                filter
            }
        };
        let added = filter.len();
        let mut counted = vec![changing::Counted::new("added", added, &keys)];
        if !sources.excluded.is_empty() {
            counted.push(changing::apply(&sources.excluded, &options, &mut filter, changing::Verb::Exclude)?);
        }
        Ok((filter, counted))
    }

    /// An error of the library in terms of files; `output` is where the filter would go.
    pub(super) fn explain(&self, sources: &Sources, inputs: &Inputs, error: Error, output: Option<&str>) -> Error {
        match error.downcast_ref() {
            Some(tamis::Error::Build(BuildError::Conflict { count, first })) => {
                self.conflict(sources, inputs, *count, first)
            }
            Some(tamis::Error::Build(_)) => error,
            _ => match output {
                Some(output) => at(error, output),
                None => error,
            },
        }
    }

    /// Keys on both sides: how many, and the first ones with their places.
    fn conflict(&self, sources: &Sources, inputs: &Inputs, count: u64, first: &[(u64, u64)]) -> Error {
        let keys = self.conflicting_keys(sources, first).unwrap_or_default();
        let locate = |(i, &(member, excluded)): (usize, &(u64, u64))| {
            let (member, excluded) = (inputs.places[0].locate(member)?, inputs.places[1].locate(excluded)?);
            Some(Conflict::new(keys.get(i).cloned(), member, excluded))
        };
        let first: Vec<Conflict> = first.iter().enumerate().filter_map(locate).collect();
        failure::conflicts(count, ", or --secret if the two keys differ", &first)
    }

    /// The keys of these conflicts, read again: none of them was kept. Only files can be read twice.
    fn conflicting_keys(&self, sources: &Sources, first: &[(u64, u64)]) -> Option<Vec<Vec<u8>>> {
        let sides = [&sources.keys, &sources.excluded];
        let side = sides.iter().position(|sources| sources.iter().all(Source::is_regular))?;
        let ordinals: Vec<u64> = first.iter().map(|pair| if side == 0 { pair.0 } else { pair.1 }).collect();
        let options = self.read_options(sources).ok()?;
        let mut keys = vec![vec![]; ordinals.len()];
        let mut left = ordinals.len();
        let read = input::for_each(sides[side], &options, &mut |_| (), &mut |key, _, at| {
            for (found, _) in keys.iter_mut().zip(&ordinals).filter(|(_, ordinal)| **ordinal == at.ordinal) {
                *found = key_bytes(key);
                left -= 1;
            }
            Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        read.ok().filter(|_| left == 0).map(|_| keys)
    }
}

/// Names the option whose keys are not of the type of the members, if that is the error.
fn of_another_type(option: &str, error: Error) -> Error {
    match error.downcast_ref() {
        Some(tamis::Error::Build(BuildError::MixedKeyTypes)) => {
            anyhow!(
                "{option}: keys of another type than the members; expected all text or all integers; use --integers"
            )
        }
        _ => error,
    }
}

/// Keys as they were read.
pub(super) type InMemory = Vec<Vec<u8>>;

/// The inputs by what they are for.
pub(super) struct Sources {
    keys: Vec<Source>,
    excluded: Vec<Source>,
    expected: Vec<Source>,
}

impl Sources {
    /// Files of members, of excluded keys and of expected queries.
    pub(super) fn by_purpose(&self) -> [&[Source]; 3] {
        [&self.keys, &self.excluded, &self.expected]
    }

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

/// The options of a build, as the library has them.
fn build_options(
    args: &BuildArgs,
    secret: Option<&SecretFile>,
    interrupt: &Interrupt,
) -> Result<tamis::Options<'static>> {
    let build = args.shared.common(secret, interrupt)?.kind(args.kind).effort(args.effort);
    let build = build.layout(args.layout).on_conflict(args.on_conflict);
    let build = match args.capacity {
        Some(Capacity::Keys(keys)) => build.capacity(keys),
        Some(Capacity::Share(share)) => build.extra_capacity(share),
        None => build,
    };
    let papers = args.delta.into_iter().fold(Papers::default(), |papers, delta| papers.delta(delta));
    let build = build.papers(args.layers.into_iter().fold(papers, |papers, layers| papers.layers(layers)));
    let build = if args.exclude.is_empty() { build } else { build.with_excluded() };
    let build = if args.workload.is_empty() { build } else { build.with_workload() };
    let build = if args.exact { build.exact() } else { build };
    let build = args.fpr.into_iter().fold(build, |build, p| build.fpr(p));
    let build = args.workload_fpr.into_iter().fold(build, |build, p| build.workload_fpr(p));
    let build = args.excluded_fpr.into_iter().fold(build, |build, p| build.excluded_fpr(p));
    let build = args.bits_per_key.into_iter().fold(build, |build, bits| build.bits_per_key(bits));
    let build = args.shard_bytes.into_iter().fold(build, |build, bytes| build.shard_bytes(bytes));
    Ok(args.unlisted_share.into_iter().fold(build, |build, share| build.unlisted_share(share)))
}

fn new_builder(args: &BuildArgs, secret: Option<&SecretFile>, interrupt: &Interrupt) -> Result<AnyBuilder> {
    let build = build_options(args, secret, interrupt)?;
    Ok(match args.input.is_partitioned() {
        true => AnyBuilder::Partitioned(Box::new(build.partitioned())),
        false => AnyBuilder::Collecting(Box::new(build.start())),
    })
}

fn read(
    what: &'static str,
    sources: &[Source],
    options: &input::Options,
    mut push: impl FnMut(KeyRef<'_>, Option<&[u8]>) -> Result<()>,
) -> Result<(Counts, Places)> {
    let bar = Bar::bytes(what, total_bytes(sources));
    input::for_each(sources, options, &mut |bytes| bar.set_position(bytes), &mut |key, partition, _| {
        push(key, partition.map(|partition| partition.text))?;
        Ok(ControlFlow::Continue(()))
    })
}
