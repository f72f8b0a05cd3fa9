//! words of the command line -> options that several commands share.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use tamis::build::Common;
use tamis::{Hasher, Limits};

use crate::input::{self, Format, Source};
use crate::interrupt::Interrupt;
use crate::progress::Bar;

/// How to read keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// The column of .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The column of labels: a key belongs to its label and is asked for under it. Labels are taken as they are
    #[arg(long, value_name = "NAME", requires = "column")]
    partition_column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
}

impl InputArgs {
    pub(crate) fn options(&self) -> input::Options {
        self.text.options(self.column.as_ref(), self.partition_column.as_ref())
    }

    /// Whether every key comes with a label.
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
    /// Read every input as text, csv, tsv, jsonl or parquet, whatever its name says
    #[arg(long)]
    format: Option<Format>,
    /// Drop white space around text keys
    #[arg(long)]
    trim: bool,
    /// Turn text keys into lower case
    #[arg(long)]
    lowercase: bool,
    /// Text keys are decimal numbers from 0 to 2^64 - 1: the file holds integers
    #[arg(long)]
    integers: bool,
    /// Keys of text inputs end with a NUL byte instead of a newline
    #[arg(short = '0')]
    null_separated: bool,
}

impl TextArgs {
    /// The options of a reading of these columns, of keys and of what stands beside them.
    pub(crate) fn options(&self, column: Option<&String>, second: Option<&String>) -> input::Options {
        input::Options {
            column: column.cloned(),
            second_column: second.cloned(),
            trim: self.trim,
            lowercase: self.lowercase,
            integers: self.integers,
            null_separated: self.null_separated,
            format: self.format,
            second_holds: input::SecondColumn::default(),
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

/// What a build may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct HashAndLimitArgs {
    /// Seed of the hash: equal keys and seeds give equal files
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Hash with a random secret key (kept in the file), where others may choose keys or queries; asking takes 2 to 3 times as long
    #[arg(long, conflicts_with = "seed")]
    pub(crate) secret: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Memory, disk and threads.
#[derive(Args, Clone, Debug)]
pub(crate) struct LimitArgs {
    /// Memory for gathering and sorting keys, 4M at least; what does not fit goes to temporary files. Every thread takes some 60 MB
    /// more, and the counts of expected queries up to half of it
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    memory: u64,
    /// Disk space for temporary files; no limit unless given
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    disk: Option<u64>,
    /// Directory of temporary files; the system's unless given
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// Threads; as many as processors unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl LimitArgs {
    /// What a build gets of this, with a bar, and an end when it is interrupted.
    pub(crate) fn common(&self, interrupt: &Interrupt) -> Common {
        let limits = Limits { memory: self.memory, disk: self.disk.unwrap_or(u64::MAX), tmp: self.tmp.clone() };
        let common = Common::default().limits(limits).cancel(interrupt.flag()).progress(Bar::callback());
        self.threads.into_iter().fold(common, |common, threads| common.threads(threads.into()))
    }

    /// Whether there is room for temporary files where they shall go.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.tmp {
            Some(dir) if !dir.is_dir() => {
                bail!("{}: no such directory, expected one for temporary files", dir.display())
            }
            _ => Ok(()),
        }
    }
}

impl HashAndLimitArgs {
    /// What a build gets of this; a secret key is 128 bits from the system.
    pub(crate) fn common(&self, interrupt: &Interrupt) -> Result<Common> {
        let common = self.limits.common(interrupt);
        if !self.secret {
            return Ok(common.seed(self.seed));
        }
        let hasher =
            Hasher::random_secret().map_err(|e| anyhow!("--secret: the system gives no random numbers: {e}"))?;
        Ok(common.secret(hasher.words()))
    }
}

/// Inputs by name; standard input when there is none.
pub(crate) fn sources(names: &[PathBuf]) -> Vec<Source> {
    match names {
        [] => vec![Source::Stdin],
        names => names.iter().cloned().map(Source::from).collect(),
    }
}

/// The value that one of these words stands for.
pub(crate) fn one_of<T: Copy>(word: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(known, _)| *known == word).map(|&(_, value)| value);
    found.ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|&(name, _)| name).collect();
        match &names[..] {
            [names @ .., last] if names.len() < 3 => format!("expected {} or {last}", names.join(", ")),
            names => format!("expected one of {}", names.join(", ")),
        }
    })
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
        _ => return Err(format!("unknown unit {unit:?}, expected K, M, G or T")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a number of bytes like 512M or 2G"))?;
    let bytes = number * (1u64 << shift) as f64;
    if bytes < 1.0 || bytes > (1u64 << 60) as f64 { Err(format!("{text:?} is out of range")) } else { Ok(bytes as u64) }
}

/// A number of bytes to work in.
fn memory(text: &str) -> Result<u64, String> {
    let memory = bytes(text)?;
    if memory < 4 << 20 { Err("expected 4M at least".to_string()) } else { Ok(memory) }
}

#[cfg(test)]
mod tests {
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
}
