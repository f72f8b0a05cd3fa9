//! arguments -> an answer and an exit code: one file per command, and the words they share.

pub(crate) mod any_builder;
pub(crate) mod build;
mod build_args;
pub(crate) mod changing;
pub(crate) mod inspect;
mod key_batch;
mod learn;
pub(crate) mod map;
mod output;
pub(crate) mod pages;
pub(crate) mod patch;
pub(crate) mod plan;
mod prompt;
mod queried;
pub(crate) mod query;
pub(crate) mod sets;
pub(crate) mod slice;
pub(crate) mod verify;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::{Value, json};
use tamis::slices::{MANIFEST, file_name};
use tamis::{Filter, FormatError, Hasher, KeyType, Mismatch, QueryError};

use crate::failure;
use crate::input::{Counts, KeyRef, Source};
use crate::json::{self, Form};
use crate::mapped::{self, How};
use crate::screen;

/// Standard output was closed by its reader.
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
fn open(path: &Path, how: How) -> Result<Filter> {
    open_file(path, "filter", |path| mapped::filter(path, how))
}

/// A tamis file as messages name it; `-` is standard input.
fn shown(path: &Path) -> String {
    Source::from(path.to_path_buf()).to_string()
}

/// A tamis file for the field `file` of JSON.
fn as_file(path: &Path) -> Option<&Path> {
    (path.as_os_str() != "-").then_some(path)
}

/// An error that names the file, or standard output; those of the library name a file themselves.
fn at(error: Error, name: &str) -> Error {
    match error.downcast_ref() {
        Some(tamis::Error::Format { path: Some(_), .. } | tamis::Error::Io { path: Some(_), .. }) => error,
        _ => error.context(name.to_string()),
    }
}

/// Opens a file that holds `what`.
fn open_file<T>(path: &Path, what: &str, open: impl FnOnce(&Path) -> Result<T, tamis::Error>) -> Result<T> {
    let name = shown(path);
    match fs::metadata(path) {
        _ if mapped::is_folder(path) => {}
        Ok(data) if data.is_dir() && path.join(file_name(0)).is_file() => {
            bail!("{name}: has slices and no {MANIFEST}; expected both; use tamis slice join --manifest")
        }
        Ok(data) if data.is_dir() => bail!("{name}: is a directory; expected a {what} file"),
        Ok(data) if !data.is_file() && name != "standard input" => {
            bail!("{name}: is a pipe or a device; expected a {what} file, or - for standard input")
        }
        _ => {}
    }
    let is_first = !matches!(what, "tamis" | "patch");
    open(path).map_err(|error| match error {
        tamis::Error::Format { error: FormatError::Magic, .. } if is_first => {
            let message = format!("{:#}; is it a list of keys? the {what} comes first", at(Error::new(error), &name));
            failure::failure(failure::Kind::File, message)
        }
        tamis::Error::Format { error: FormatError::Form { found, expected }, path } => {
            // A file that is no manifest under its name; and `inspect` expects no form itself.
            let is_exact = expected == mapped::MANIFEST_FORM || what == "tamis";
            let (name, what) = (path.as_deref().map_or(name, shown), if is_exact { expected } else { what });
            let command = match found {
                "map" => "; use tamis map",
                "set index" => "; use tamis sets",
                "filter" => "; use tamis query or tamis verify",
                "patch" => "; use it with --patch behind its filter",
                "slice of a filter" => "; use tamis slice join",
                mapped::MANIFEST_FORM => "; use tamis query, verify or inspect with the folder of the slices",
                _ => "",
            };
            anyhow!("{name}: holds {}; expected {}{command}", with_article(found), with_article(what))
        }
        tamis::Error::Io { path: Some(slice), error } if error.kind() == io::ErrorKind::NotFound && path.exists() => {
            anyhow!("{}: no such file; expected all slices that the manifest names", shown(&slice))
        }
        tamis::Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            anyhow!("{name}: no such file; expected {} file", with_article(what))
        }
        tamis::Error::Format { error: FormatError::Secret { given: false }, .. } => {
            anyhow!("{name}: its secret is not in the file; expected --secret-file FILE")
        }
        tamis::Error::Format { error: FormatError::NoSecret, .. } => {
            anyhow!("--secret-file: {name} was built without it; expected no secret")
        }
        error => at(Error::new(error), &name),
    })
}

fn with_article(what: &str) -> String {
    format!("{} {what}", if what.starts_with('a') { "an" } else { "a" })
}

/// A query that the filter rejected; says what would help.
fn query_error(path: &Path, error: QueryError) -> Error {
    explain(path, error, "the filter")
}

/// A query that `what` rejected.
fn explain(path: &Path, error: QueryError, what: &str) -> Error {
    let path = shown(path);
    match error {
        QueryError::KeyType(Mismatch { filter: KeyType::Integer, .. }) => {
            anyhow!("{path}: the keys of {what} are integers; expected integers, not text")
        }
        QueryError::KeyType(Mismatch { filter: KeyType::Bytes, .. }) => {
            anyhow!("{path}: the keys of {what} are text; expected text, not integers")
        }
        error => Error::new(error).context(path),
    }
}

/// A partitioned filter is queried by partition, any other without: the answer would be a guess.
fn check_partitions(path: &Path, is_partitioned: bool, partitioned: bool, options: &str) -> Result<()> {
    match (is_partitioned, partitioned) {
        (true, false) => bail!("{}: the filter is partitioned; expected {options}", shown(path)),
        (false, true) => bail!("{}: the filter is not partitioned; expected keys without {options}", shown(path)),
        _ => Ok(()),
    }
}

/// Writes fields as one line of JSON to standard output.
fn print_json(form: Form, fields: Value) -> Result<()> {
    print(&format!("{}\n", json::object(Some(form), fields)))
}

/// Adds what a file says about its hash to the fields of a report. A secret is not shown.
fn put_hash(fields: &mut Value, hasher: &Hasher) {
    let hash = match (hasher.is_secret(), hasher.is_foreign()) {
        (true, _) => "siphash-2-4-128",
        (_, true) => "foreign",
        _ => "xxh3-128",
    };
    fields["hash"] = hash.into();
    fields["seed"] = (hash == "xxh3-128").then(|| hasher.words()[0]).into();
}

/// The line about the hash.
fn hash_line(hasher: &Hasher) -> String {
    match (hasher.is_secret(), hasher.is_foreign()) {
        (true, _) => "hash        SipHash-2-4-128, secret\n".to_string(),
        (_, true) => format!("hash        the caller's, number {}\n", hasher.words()[0]),
        _ => format!("hash        XXH3-128, seed {}\n", hasher.words()[0]),
    }
}

/// The bytes of a key, as they are printed.
fn key_bytes(key: KeyRef<'_>) -> Vec<u8> {
    match key {
        KeyRef::Bytes(bytes) => bytes.to_vec(),
        KeyRef::Integer(number) => number.to_string().into_bytes(),
    }
}

/// Writes lines to standard output.
fn print(text: &str) -> Result<()> {
    let mut out = screen::stdout();
    to_stdout(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What a report says about a filter's layers.
fn layers(layers: impl Iterator<Item = tamis::LayerInfo>) -> Vec<Value> {
    let layers = layers.map(|layer| {
        json!({
            "group": layer.group,
            "role": role(layer.role),
            "structure": layer.structure,
            "details": layer.details,
            "bytes": layer.bytes,
        })
    });
    layers.collect()
}

fn role(role: tamis::Role) -> String {
    format!("{role:?}").to_lowercase()
}

/// The lines about the layers of a filter.
fn layer_lines(layers: impl Iterator<Item = tamis::LayerInfo>) -> String {
    let line = |(i, layer): (usize, tamis::LayerInfo)| {
        let group = layer.group.map(|group| format!("group {group}, ")).unwrap_or_default();
        let (role, size) = (role(layer.role), grouped(layer.bytes));
        format!("layer {i:<5} {group}{role}: {}, {}, {size} bytes\n", layer.structure, layer.details)
    };
    layers.enumerate().map(line).collect()
}

/// What a report says about the groups of a partitioned filter.
fn groups(filter: &Filter) -> Option<Vec<Value>> {
    let group = |group: tamis::Group| {
        json!({
            "partitions": group.partitions,
            "keys": group.keys,
            "excluded": group.excluded,
            "shards": group.shards,
            "fpr": group.fpr,
        })
    };
    filter.is_partitioned().then(|| filter.groups().map(group).collect())
}

/// How many partitions a partitioned filter has.
fn partitions(filter: &Filter) -> Option<u64> {
    filter.is_partitioned().then(|| filter.partitions())
}

/// The lines about partitions and groups.
fn partition_lines(filter: &Filter) -> String {
    let Some(names) = partitions(filter) else { return String::new() };
    let groups: Vec<tamis::Group> = filter.groups().collect();
    let mut out = format!("partitions  {} in {}\n", grouped(names), count(groups.len() as u64, "group"));
    for (i, group) in groups.iter().enumerate() {
        let (names, keys) = (count(group.partitions, "partition"), count(group.keys, "key"));
        out += &format!("group {i:<5} {names}, {keys}, {} excluded\n", grouped(group.excluded));
    }
    out
}

/// Whether the number of excluded keys is an estimate: few are counted, and so are those of partitions and of filters that change.
fn is_estimate(filter: &Filter) -> bool {
    filter.excluded_len() >= 1 << 14 && !filter.is_partitioned() && filter.kept_bytes() == 0
}

/// A number, or an estimate of one with three digits that mean something.
fn approx(count: u64, estimate: bool) -> String {
    if !estimate {
        return grouped(count);
    }
    let unit = 10u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(2));
    format!("about {}", grouped((count / unit + u64::from(count % unit >= unit.div_ceil(2))).saturating_mul(unit)))
}

/// The line about unlisted keys, with three digits that mean something.
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
        lines => format!(", {} skipped", count(lines, "blank line")),
    }
}

/// Bytes for a message: as text, and not all of a megabyte.
fn short(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

/// 1234567 as "1,234,567".
pub(crate) fn grouped(n: u64) -> String {
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

/// Keys from which on a share of the size says something of the structure, and not of the header before it.
const MIN_KEYS_FOR_SHARE: u64 = 1000;

/// The line about the size of a file, and the lower bound of its bits per key.
fn size_line(bytes: u64, keys: u64, bound: Option<f64>) -> String {
    let mut out = format!("size        {} bytes", grouped(bytes));
    if let Some(bits) = bits_per_key(bytes, keys) {
        out += &format!(", {bits:.3} bits per key");
        if let Some(bound) = bound {
            out += &format!("; lower bound {bound:.3}");
            if keys >= MIN_KEYS_FOR_SHARE {
                out += &format!(", {:.1} % above it", 100.0 * (bits / bound - 1.0));
            }
        }
    }
    out + "\n"
}

/// Bits per key, none for no keys.
fn bits_per_key(bytes: u64, keys: u64) -> Option<f64> {
    (keys > 0).then(|| bytes as f64 * 8.0 / keys as f64)
}

/// The distance of a size to the bound, as a share of the bound.
fn overhead(bits: Option<f64>, bound: Option<f64>) -> Option<f64> {
    Some(bits? / bound? - 1.0)
}

/// The least bits per key of any filter that excludes as many keys and matches no more unlisted keys.
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
    fn sizes_come_with_the_bound() {
        for (bytes, keys, bound, line) in [
            (1000, 1000, Some(5.0), "1,000 bytes, 8.000 bits per key; lower bound 5.000, 60.0 % above it"),
            (999, 999, Some(5.0), "999 bytes, 8.000 bits per key; lower bound 5.000"),
            (1000, 1000, None, "1,000 bytes, 8.000 bits per key"),
            (72, 0, None, "72 bytes"),
        ] {
            assert_eq!(size_line(bytes, keys, bound), format!("size        {line}\n"));
        }
        assert_eq!(
            (overhead(Some(8.0), Some(5.0)), overhead(None, Some(5.0)), overhead(Some(8.0), None)),
            (Some(0.6000000000000001), None, None)
        );
    }
}
