//! arguments -> an answer and an exit code: one file per command, and the words they share.

pub(crate) mod any_builder;
pub(crate) mod build;
mod build_args;
pub(crate) mod inspect;
mod key_batch;
pub(crate) mod map;
mod output;
pub(crate) mod plan;
mod prompt;
pub(crate) mod query;
pub(crate) mod sets;
pub(crate) mod verify;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::Value;
use tamis::{Filter, FormatError, KeyType, Mismatch, QueryError};

use crate::input::Counts;
use crate::mapped::{self, VerifyArgs};
use crate::screen;

/// Standard output was closed by whoever reads it.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for Closed {}

/// What became of a write to standard output.
fn to_stdout(result: io::Result<()>) -> Result<()> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Error::new(Closed),
        _ => Error::new(error).context("standard output"),
    })
}

/// Opens a filter; errors name the file.
fn open(path: &Path, how: VerifyArgs) -> Result<Filter> {
    open_file(path, "filter", |path| mapped::filter(path, how))
}

/// Opens a file that holds `what`.
fn open_file<T>(path: &Path, what: &str, open: impl FnOnce(&Path) -> Result<T, tamis::Error>) -> Result<T> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => bail!("{}: is a directory, expected a {what} file", path.display()),
        Ok(data) if !data.is_file() => {
            bail!("{}: is a pipe or a device, expected a {what} file, which is read at any place", path.display())
        }
        _ => {}
    }
    open(path).map_err(|error| match error {
        tamis::Error::Format { error: FormatError::Form { found: "map", .. }, .. } => {
            anyhow!("{}: the file holds a map, expected a {what}; `tamis map` reads it", path.display())
        }
        tamis::Error::Format { error: FormatError::Form { found: "set index", .. }, .. } => {
            anyhow!("{}: the file holds a set index, expected a {what}; `tamis sets` reads it", path.display())
        }
        tamis::Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            anyhow!("{}: no such file", path.display())
        }
        error => Error::new(error).context(path.display().to_string()),
    })
}

/// A question that the filter refused to answer; says what would help.
fn query_error(path: &Path, error: QueryError) -> Error {
    explain(path, error, "the filter holds", "the keys")
}

/// A question that a file refused to answer: `holds` and `keys` say whose key types differ.
fn explain(path: &Path, error: QueryError, holds: &str, keys: &str) -> Error {
    let path = path.display();
    match error {
        QueryError::KeyType(Mismatch { filter: KeyType::Integer, .. }) => {
            anyhow!("{path}: {holds} integers, and {keys} are text; with --integers they are read as numbers")
        }
        QueryError::KeyType(_) => {
            anyhow!("{path}: {holds} text, and {keys} are integers; expected text, without --integers")
        }
        error => Error::new(error).context(path.to_string()),
    }
}

/// A filter whose keys carry labels is asked with them, any other without: "no" would be a guess.
fn check_labels(path: &Path, filter: &Filter, labelled: bool, options: &str) -> Result<()> {
    match (filter.is_partitioned(), labelled) {
        (true, false) => {
            bail!("{}: the filter is partitioned, and the keys have no labels; expected {options}", path.display())
        }
        (false, true) => bail!("{}: the filter is not partitioned; expected keys without {options}", path.display()),
        _ => Ok(()),
    }
}

/// Writes a value as one line of JSON to standard output.
fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value}\n"))
}

/// Writes lines to standard output.
fn print(text: &str) -> Result<()> {
    let mut out = screen::stdout();
    to_stdout(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What a report says about a filter's layers.
fn layers(filter: &Filter) -> Vec<Value> {
    let layers = filter.layers().map(|layer| {
        serde_json::json!({
            "group": layer.group,
            "role": format!("{:?}", layer.role).to_lowercase(),
            "structure": layer.structure,
            "details": layer.details,
            "bytes": layer.bytes,
        })
    });
    layers.collect()
}

/// What a report says about the groups of a partitioned filter.
fn groups(filter: &Filter) -> Option<Vec<Value>> {
    let group = |group: tamis::Group| {
        serde_json::json!({
            "partitions": group.partitions,
            "keys": group.keys,
            "excluded": group.excluded,
            "shards": group.shards,
            "fpr": group.fpr,
        })
    };
    filter.is_partitioned().then(|| filter.groups().map(group).collect())
}

/// How many labels a partitioned filter knows.
fn partitions(filter: &Filter) -> Option<u64> {
    filter.is_partitioned().then(|| filter.partitions())
}

/// The lines about labels and groups.
fn partition_lines(filter: &Filter) -> String {
    let Some(labels) = partitions(filter) else { return String::new() };
    let groups: Vec<tamis::Group> = filter.groups().collect();
    let mut out = format!("partitions  {} in {}\n", grouped(labels), count(groups.len() as u64, "group"));
    for (i, group) in groups.iter().enumerate() {
        let (labels, keys) = (count(group.partitions, "partition"), count(group.keys, "key"));
        out += &format!("group {i:<5} {labels}, {keys}, {} excluded\n", grouped(group.excluded));
    }
    out
}

/// Whether the number of excluded keys is an estimate: few are counted, and those that carry labels.
fn is_estimate(filter: &Filter) -> bool {
    filter.excluded_len() >= 1 << 14 && !filter.is_partitioned()
}

/// A number, or an estimate of one with three digits that mean something.
fn approx(count: u64, estimate: bool) -> String {
    if !estimate {
        return grouped(count);
    }
    let unit = 10u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(2));
    format!("about {}", grouped((count / unit + u64::from(count % unit >= unit.div_ceil(2))).saturating_mul(unit)))
}

/// The line about keys that nobody listed, with three digits that mean something.
fn fpr_line(rate: f64) -> String {
    format!("fpr         {} (unlisted keys)\n", percent(rate))
}

/// A share in percent, with three digits that mean something.
fn percent(share: f64) -> String {
    format!("{} %", three_digits(100.0 * share))
}

/// A number with three digits that mean something.
fn three_digits(number: f64) -> String {
    let digits = if number > 0.0 { (2.0 - number.log10().floor()).clamp(0.0, 20.0) as usize } else { 0 };
    format!("{number:.digits$}")
}

/// `1 set`, `2,000 sets`.
fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// The end of a line about what was read: how many lines were blank.
fn blank(counts: &Counts) -> String {
    match counts.blank {
        0 => String::new(),
        lines => format!(", {} blank lines skipped", grouped(lines)),
    }
}

/// Bytes for a message or for JSON: as text, and not all of a megabyte.
fn short(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

/// 1234567 as "1,234,567".
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The sizes of a filter, beside the least bits per key that any filter as good can have.
fn size(bytes: u64, keys: u64, bound: Option<f64>) -> String {
    let mut out = format!("{} bytes", grouped(bytes));
    if let Some(bits) = bits_per_key(bytes, keys) {
        out += &format!(", {bits:.3} bits per key");
        if let Some(bound) = bound {
            out += &format!("; the information bound is {bound:.3}, so {:.1} % above it", 100.0 * (bits / bound - 1.0));
        }
    }
    out
}

/// Bits per key, none for no keys.
fn bits_per_key(bytes: u64, keys: u64) -> Option<f64> {
    (keys > 0).then(|| bytes as f64 * 8.0 / keys as f64)
}

/// The distance of a size to the bound, as a share of the bound.
fn overhead(bits: Option<f64>, bound: Option<f64>) -> Option<f64> {
    Some(bits? / bound? - 1.0)
}

/// The fewest bits per key for any filter that excludes as much as the file says and lets no more unlisted keys through.
fn bound(filter: &Filter) -> Option<f64> {
    let bits = filter.lower_bound();
    (!filter.is_empty() && bits > 0.0).then(|| bits / filter.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let groups = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (100_000, "100,000")];
        for (n, text) in groups {
            assert_eq!(grouped(n), text);
        }
        let estimates = [(0, "0"), (99, "99"), (5_002_638, "5,000,000"), (16_384, "16,400"), (99_950, "100,000")];
        for (n, text) in estimates {
            assert_eq!((approx(n, true), approx(n, false)), (format!("about {text}"), grouped(n)));
        }
        let shares = [
            (0.0, "0"),
            (1.0, "100"),
            (0.380_859, "38.1"),
            (0.009_979, "0.998"),
            (2f64.powi(-32), "0.0000000233"),
            (f64::MIN_POSITIVE, "0.00000000000000000000"),
        ];
        for (rate, text) in shares {
            assert_eq!(fpr_line(rate), format!("fpr         {text} % (unlisted keys)\n"));
        }
    }

    #[test]
    fn sizes_stand_beside_the_bound() {
        assert_eq!(
            size(1000, 1000, Some(5.0)),
            "1,000 bytes, 8.000 bits per key; the information bound is 5.000, so 60.0 % above it"
        );
        assert_eq!(size(1000, 1000, None), "1,000 bytes, 8.000 bits per key");
        assert_eq!(size(72, 0, None), "72 bytes");
        assert_eq!(
            (overhead(Some(8.0), Some(5.0)), overhead(None, Some(5.0)), overhead(Some(8.0), None)),
            (Some(0.6000000000000001), None, None)
        );
    }
}
