//! words of the command line -> options that several commands share.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tamis::slices::Plan;
use tamis::{Hasher, KeyType, Limits, Options};

use crate::input::{self, Format, Source, files};
use crate::interrupt::Interrupt;
use crate::json;
use crate::progress::{self, Bar};
use crate::secret::{SecretFile, random};

/// How to read keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Column of partitions: each key belongs to the partition of its row
    #[arg(long, value_name = "NAME", requires = "column")]
    partition_column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
}

impl InputArgs {
    /// How all these inputs are read.
    pub(crate) fn options<'a>(&self, sources: impl IntoIterator<Item = &'a Source>) -> Result<input::Options> {
        self.text.options(self.column.as_ref(), self.partition_column.as_ref(), sources)
    }

    /// Whether every key has a partition.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partition_column.is_some()
    }

    /// What separates keys in output.
    pub(crate) fn separator(&self) -> u8 {
        self.text.separator()
    }
}

/// What a file of keys is, and what is done to text.
#[derive(Args, Clone, Debug)]
pub(crate) struct TextArgs {
    /// Format of every input [default: by extension]
    #[arg(long, value_parser = named(Format::ALL))]
    format: Option<Format>,
    /// Drop white space around text keys
    #[arg(long)]
    trim: bool,
    /// Turn text keys into lower case
    #[arg(long, conflicts_with = "integers")]
    lowercase: bool,
    /// Read text keys as decimal integers from -2^63 to 2^64 - 1
    #[arg(long)]
    integers: bool,
    /// End text keys with a NUL byte instead of a newline
    #[arg(short = '0')]
    null_separated: bool,
}

impl TextArgs {
    /// How inputs are read, whatever they are: the columns of keys and of what comes with them.
    pub(crate) fn any_options(&self, column: Option<&String>, second: Option<&String>) -> input::Options {
        input::Options {
            column: column.cloned(),
            second_column: second.cloned(),
            trim: self.trim,
            lowercase: self.lowercase,
            integers: self.integers,
            null_separated: self.null_separated,
            format: self.format,
            ..input::Options::default()
        }
    }

    /// How these inputs are read; an option that is for none of them is an error.
    pub(crate) fn options<'a>(
        &self,
        column: Option<&String>,
        second: Option<&String>,
        sources: impl IntoIterator<Item = &'a Source>,
    ) -> Result<input::Options> {
        let options = self.any_options(column, second);
        // A column may be for some inputs alone, as with a table of keys and a plain list of exclusions, but not for none.
        let formats: Vec<_> = sources.into_iter().map(|source| (source, input::format_of(source, &options))).collect();
        match formats.first() {
            Some((first, _)) if column.is_some() && formats.iter().all(|&(_, format)| format == Format::Text) => {
                bail!(
                    "--column: {first} is text, which has no columns; expected a .csv, .tsv, .jsonl or .parquet file, or --format"
                )
            }
            Some((first, _)) if self.null_separated && formats.iter().all(|&(_, format)| format != Format::Text) => {
                bail!("-0: {first} is a table, whose keys end as its format says; expected text")
            }
            _ => Ok(options),
        }
    }

    /// An option that was given, if one was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.format.is_some(), "--format"),
            (self.trim, "--trim"),
            (self.lowercase, "--lowercase"),
            (self.integers, "--integers"),
            (self.null_separated, "-0"),
        ];
        given.into_iter().find(|&(given, _)| given).map(|(_, name)| name)
    }

    /// What separates keys in output.
    pub(crate) fn separator(&self) -> u8 {
        if self.null_separated { 0 } else { b'\n' }
    }
}

/// Lists that a command is about: words before the first option that names lists, or behind `--keys`.
macro_rules! lists {
    ($name:ident, $value:literal, $what:literal) => {
        #[doc = concat!("Lists of ", $what, ".")]
        #[derive(Args, Clone, Debug)]
        pub(crate) struct $name {
            #[arg(value_name = $value, help = concat!("Files of ", $what, ", or directories of them; - or none is standard input"))]
            lists: Vec<PathBuf>,
            #[arg(long, value_name = "FILE", num_args = 1.., hide_short_help = true, help = concat!("More files of ", $what, ": every word up to the next option"))]
            keys: Vec<PathBuf>,
        }

        impl $name {
            /// All of them; standard input when there is none.
            pub(crate) fn sources(&self) -> Result<Vec<Source>> {
                sources(&[&self.lists[..], &self.keys].concat())
            }
        }
    };
}

lists!(KeyLists, "KEYS", "keys");
lists!(MemberLists, "MEMBERS", "members");

/// Whether lists may have no keys.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct EmptyArgs {
    /// Accept lists without keys
    #[arg(long)]
    allow_empty: bool,
}

impl EmptyArgs {
    /// The same, and an error if nothing is read where that is not allowed.
    pub(crate) fn apply(self, options: input::Options) -> input::Options {
        input::Options { not_empty: !self.allow_empty, ..options }
    }
}

/// Keys to query.
#[derive(Args, Clone, Debug)]
pub(crate) struct QueriedKeys {
    #[command(flatten)]
    lists: KeyLists,
    /// Query this key instead of files of keys; may be repeated
    #[arg(long, value_name = "KEY", num_args = 1, allow_hyphen_values = true, conflicts_with_all = ["lists", "keys", "column", "format", "null_separated"])]
    key: Vec<OsString>,
}

impl QueriedKeys {
    /// Where the keys come from, if `file` is what they are queried in.
    pub(crate) fn sources(&self, file: &Path) -> Result<Vec<Source>> {
        if self.key.iter().any(|key| key.is_empty()) {
            bail!("--key: an empty key; expected a byte at least");
        }
        let file = Source::from(file.to_path_buf());
        let sources = match &self.key[..] {
            [] => self.lists.sources().map_err(|error| self.meant_as_key(&file).unwrap_or(error))?,
            keys => vec![Source::Keys(keys.to_vec())],
        };
        input::check_stdin_once(sources.iter().chain([&file]))?;
        Ok(sources)
    }

    /// What to type if a word is no file but a key.
    fn meant_as_key(&self, file: &Source) -> Option<anyhow::Error> {
        let is_path = |path: &Path| path.is_absolute() || path.starts_with(".") || path.starts_with("..");
        let word = self.lists.lists.iter().find(|path| path.as_os_str() != "-" && !path.exists())?;
        let source = Source::from(word.clone());
        let key = word.to_str().filter(|_| !is_path(word) && !source.has_known_extension())?;
        let (command, key) = (json::command().unwrap_or_default(), quoted(key));
        Some(anyhow!("{source}: no such file; to query this key: tamis {command} {} --key {key}", quoted(&file.name())))
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._/:@%+=,-".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// How a command reports what it made.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ReportArgs {
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no report and no progress
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

impl ReportArgs {
    /// Shows no progress if the report is not to be shown.
    pub(crate) fn apply(self) {
        if self.quiet {
            progress::silence();
        }
    }
}

/// What a build may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct HashAndLimitArgs {
    /// Seed of the hash; equal keys, options and seeds give equal files
    #[arg(long, value_name = "N", default_value = "0", value_parser = seed)]
    pub(crate) seed: u64,
    /// Hash with a random secret, stored in the file, where others choose keys or queries; queries take 2 to 3 times as long
    #[arg(long, conflicts_with = "seed")]
    pub(crate) secret: bool,
    /// Hash with the secret in this file, 32 hexadecimal digits, and keep it out of the output. A random one is written if there
    /// is no such file, readable by its owner only
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "secret"])]
    secret_file: Option<PathBuf>,
    /// Note to store in the file, at most 65536 bytes; `tamis inspect` shows it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    metadata: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Memory, disk and threads.
#[derive(Args, Clone, Debug)]
pub(crate) struct LimitArgs {
    /// Memory for sorting keys and counting queries, at least 4M; the rest goes to temporary files. Each thread takes more: up
    /// to 60 MB for members alone, 120 MB with excluded keys or a workload, 220 MB with --exact or --kind naive, and for maps and
    /// set indexes
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    pub(crate) memory: u64,
    /// Disk space for temporary files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    disk: Option<u64>,
    /// Directory of temporary files [default: the system's]
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// Threads, 1 to 1024 [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        let limits = Limits::default().memory(self.memory).disk(self.disk.unwrap_or(u64::MAX));
        self.tmp.iter().fold(limits, |limits, folder| limits.tmp(folder))
    }

    /// What a build gets of this, with a bar, and an end when it is interrupted.
    pub(crate) fn common(&self, interrupt: &Interrupt) -> Options<'static> {
        let common = Options::default().limits(self.limits()).cancel(interrupt.flag()).progress(Bar::callback());
        self.threads.into_iter().fold(common, |common, threads| common.threads(threads))
    }

    /// A plan of slices with what one of them gets of this.
    pub(crate) fn of_slice(&self, plan: Plan, interrupt: &Interrupt) -> Plan {
        let plan = plan.limits(self.limits()).cancel(interrupt.flag());
        self.threads.into_iter().fold(plan, |plan, threads| plan.threads(threads))
    }

    /// Whether the directory of temporary files exists.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.tmp {
            Some(dir) if !dir.is_dir() => {
                bail!("--tmp {}: no such directory; expected one for temporary files", dir.display())
            }
            _ => Ok(()),
        }
    }
}

impl HashAndLimitArgs {
    /// The secret that is kept outside the output.
    pub(crate) fn secret_file(&self) -> Result<Option<SecretFile>> {
        self.secret_file.as_deref().map(SecretFile::new).transpose()
    }

    /// What a build gets of this; a secret key is 128 bits from the system.
    pub(crate) fn common(&self, secret: Option<&SecretFile>, interrupt: &Interrupt) -> Result<Options<'static>> {
        let common = self.limits.common(interrupt).metadata(&self.metadata);
        Ok(match secret {
            Some(file) => common.secret(file.secret).secret_beside(),
            None => common.hasher(self.hasher()?),
        })
    }

    /// The hash: with the seed, or with a random secret.
    pub(crate) fn hasher(&self) -> Result<Hasher> {
        if self.secret { random("--secret") } else { Ok(Hasher::seeded(self.seed)) }
    }
}

/// Lists by name; standard input when there is none.
pub(crate) fn sources(names: &[PathBuf]) -> Result<Vec<Source>> {
    if names.is_empty() { Ok(vec![Source::Stdin]) } else { files::lists(names) }
}

/// How keys for a file with keys of this type are read: it knows better than an option whether they are integers.
pub(crate) fn typed(name: &str, key_type: Option<KeyType>, options: input::Options) -> Result<input::Options> {
    match key_type {
        Some(KeyType::Bytes) if options.integers => {
            bail!("--integers: the keys of {name} are text; expected text, without this option")
        }
        Some(KeyType::Integer) if options.lowercase => {
            bail!("--lowercase: the keys of {name} are integers; expected no such option")
        }
        Some(KeyType::Integer) => Ok(input::Options { integers: true, ..options }),
        _ => Ok(options),
    }
}

/// Reads a value by its name; completions and errors list all names.
pub(crate) fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> + use<T> {
    PossibleValuesParser::new(all.iter().map(|(name, _)| name)).try_map(|word| {
        let found = all.iter().find(|(name, _)| *name == word).map(|&(_, value)| value);
        found.ok_or("unknown")
    })
}

/// A number that fits; `expected` says which do.
pub(crate) fn number(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if fits(number) => Ok(number),
        Ok(number) if !f64::is_nan(number) => Err(format!("out of range; expected {expected}")),
        _ => Err(format!("not a number; expected {expected}")),
    }
}

/// A share like `0.01`, `1e-2`, `1%` or `1/256`.
pub(crate) fn share(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    if let Some(percent) = text.strip_suffix('%') {
        return Ok(number(percent, |percent| fits(percent / 100.0), expected)? / 100.0);
    }
    let Some((above, below)) = text.split_once('/') else { return number(text, fits, expected) };
    let below = number(below, |below| below > 0.0 && below.is_finite(), expected)?;
    Ok(number(above, |above| fits(above / below), expected)? / below)
}

/// A whole number that is in the range.
pub(crate) fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let (least, most) = (*range.start(), *range.end());
    let most = if most == u64::MAX { "2^64 - 1".to_string() } else { most.to_string() };
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(_) => Err(format!("out of range; expected {least} to {most}")),
        Err(_) => Err(format!("not a whole number; expected {least} to {most}")),
    }
}

pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

/// How many slices a plan may have.
pub(crate) fn number_of_slices(text: &str) -> Result<u32, String> {
    match whole(text, 1..=4096)? as u32 {
        slices if slices.is_power_of_two() => Ok(slices),
        _ => Err("not a power of two; expected 1, 2, 4, .. 4096".to_string()),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    Ok(whole(text, 1..=1024)? as usize)
}

/// A number of bytes: `1500`, `64K`, `2G`, `1.5GiB`. Units are powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(format!("unknown unit {unit:?}; expected K, M, G or T")),
    };
    let unit = (1u64 << shift) as f64;
    let fits = |number: f64| (1.0..=(1u64 << 60) as f64).contains(&(number * unit));
    Ok((self::number(number, fits, "1 to 2^60 bytes, like 512M or 2G")? * unit) as u64)
}

/// A number of bytes to work in.
fn memory(text: &str) -> Result<u64, String> {
    let memory = bytes(text)?;
    if memory < 4 << 20 { Err("out of range; expected at least 4M".to_string()) } else { Ok(memory) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_have_units() {
        let good = [("1", 1), ("1500", 1500), ("64K", 65536), ("2G", 2 << 30), ("1.5GiB", 3 << 29), ("1 t", 1 << 40)];
        for (text, size) in good {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "G", "2X", "-1", "0", "1e9", "1.2.3", "99999999T"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_percents_fractions_and_exponents() {
        for text in ["0.01", ".01", "1e-2", "1%", "1.0%", "100e-2%", "1/100", "2.5/250"] {
            assert_eq!(share(text, |p| p < 1.0, "less than 1"), Ok(0.01), "{text}");
        }
        for (text, message) in [
            ("200%", "out of range"),
            ("inf", "out of range"),
            ("nan", "not a number"),
            ("%", "not"),
            ("1/", "not a number"),
            ("/2", "not a number"),
            ("1/0", "out of range"),
            ("5/2", "out of range"),
            ("1/2/3", "not a number"),
        ] {
            let error = share(text, |p| p < 1.0, "less than 1").unwrap_err();
            assert!(error.starts_with(message) && error.ends_with("; expected less than 1"), "{error}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!([quoted("google.com"), quoted("it's a key")], ["google.com".to_string(), r"'it'\''s a key'".into()]);
    }
}
