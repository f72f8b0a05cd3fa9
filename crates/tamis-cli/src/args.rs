//! words of the command line -> options that several commands share.

use std::path::PathBuf;

use clap::Args;

use crate::input::{self, Format, Source};

/// How to read keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reading {
    /// The column of .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The column of labels: a key belongs to its label and is asked for under it. Labels are taken as they are
    #[arg(long, value_name = "NAME", requires = "column")]
    partition_column: Option<String>,
    /// Read every input as text, csv, tsv, jsonl or parquet, whatever its name says
    #[arg(long)]
    format: Option<Format>,
    /// Drop white space around text keys
    #[arg(long)]
    trim: bool,
    /// Turn text keys into lower case
    #[arg(long)]
    lowercase: bool,
    /// Text keys are decimal numbers from 0 to 2^64 - 1: the filter holds integers
    #[arg(long)]
    integers: bool,
    /// Keys of text inputs end with a NUL byte instead of a newline
    #[arg(short = '0')]
    null_separated: bool,
}

impl Reading {
    pub(crate) fn options(&self) -> input::Options {
        input::Options {
            column: self.column.clone(),
            partition_column: self.partition_column.clone(),
            trim: self.trim,
            lowercase: self.lowercase,
            integers: self.integers,
            null_separated: self.null_separated,
            format: self.format,
            counted: false,
        }
    }

    /// Whether every key comes with a label.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partition_column.is_some()
    }

    /// What separates keys in output.
    pub(crate) fn separator(&self) -> u8 {
        if self.null_separated { 0 } else { b'\n' }
    }
}

/// Inputs by name; standard input when there is none.
pub(crate) fn sources(names: &[PathBuf]) -> Vec<Source> {
    match names {
        [] => vec![Source::Stdin],
        names => names.iter().cloned().map(Source::from).collect(),
    }
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
