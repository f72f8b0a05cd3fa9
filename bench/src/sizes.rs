//! keys -> bytes: sizes by rate, and by what is promised about keys outside the set.
//!
//! Nothing is timed, and bytes do not depend on the machine. The second table has three promises about the same two lists:
//!
//! ```text
//!   any key         a share of all other keys may match, whatever they are
//!   excluded keys   the same, and no key of the second list matches
//!   listed keys     no key of the second list matches; other keys are never queried
//! ```
//!
//! A filter that cannot exclude keeps the second promise by a low rate and a seed at which no excluded key happens to match,
//! or with a list of its exceptions, four bytes for each.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tamis::{Base, Effort, Filter, Kind};

use crate::machine::Machine;
use crate::ours::listed::matches;
use crate::stream::Stream;
use crate::table::{self, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Which tables.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Rates, Part::Promises])]
    part: Vec<Part>,
    /// Random keys of the table of rates.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// The table of rates has 2^-1, 2^-2, .., 2^-BITS.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=24))]
    bits: u32,
    /// The rate of the table of promises.
    #[arg(long, default_value_t = 0.01)]
    fpr: f64,
    /// A file of keys for the table of promises, one on each line.
    #[arg(long, default_value = "data/quickstart/deny.txt")]
    keys: PathBuf,
    /// A file of excluded keys.
    #[arg(long, default_value = "data/quickstart/allow.txt")]
    exclude: PathBuf,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// Every structure at every rate.
    Rates,
    /// Filters of two lists.
    Promises,
}

#[derive(Serialize)]
struct Size {
    name: &'static str,
    /// The rate that it was made for, and the one that it has.
    goal: f64,
    fpr: f64,
    bits_per_key: f64,
    bound: f64,
}

#[derive(Serialize)]
struct Promise {
    promise: &'static str,
    name: String,
    keys: u64,
    excluded: usize,
    bytes: usize,
    bits_per_key: f64,
    /// The least bits per key of any filter that promises as much.
    bound: f64,
    exceptions: usize,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    sizes: Vec<Size>,
    promises: Vec<Promise>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let has = |part| options.part.contains(&part);
    Ok(Report {
        machine: Machine::read(),
        options,
        sizes: if has(Part::Rates) { sizes(options)? } else { Vec::new() },
        promises: if has(Part::Promises) { promises(options)? } else { Vec::new() },
    })
}

fn bits_per_key(filter: &Filter) -> f64 {
    filter.as_bytes().len() as f64 * 8.0 / filter.len().max(1) as f64
}

fn sizes(options: &Options) -> Result<Vec<Size>, tamis::Error> {
    let kinds = [
        ("ribbon", Kind::Ribbon, Effort::Balanced),
        ("fuse 4-wise", Kind::Fuse4, Effort::Balanced),
        ("fuse 3-wise", Kind::Fuse, Effort::Balanced),
        ("quotient", Kind::Quotient, Effort::Balanced),
        ("cuckoo, semi-sorted", Kind::Cuckoo, Effort::Smallest),
        ("classic Bloom", Kind::ClassicBloom, Effort::Balanced),
        ("split-block Bloom", Kind::Bloom, Effort::Balanced),
    ];
    let keys = Stream::new(options.seed).take(options.n as usize);
    let mut sizes = Vec::new();
    for (name, kind, effort) in kinds {
        for bits in 1..=options.bits {
            let goal = 0.5f64.powi(bits as i32);
            let filter = tamis::build(&keys[..]).kind(kind).effort(effort).fpr(goal).finish()?;
            let (fpr, bound) = (filter.fpr(), filter.lower_bound() / f64::from(options.n));
            sizes.push(Size { name, goal, fpr, bits_per_key: bits_per_key(&filter), bound });
        }
    }
    Ok(sizes)
}

fn lines(file: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(text.lines().map(String::from).collect())
}

fn promises(options: &Options) -> Result<Vec<Promise>, Box<dyn Error>> {
    let (keys, excluded) = (lines(&options.keys)?, lines(&options.exclude)?);
    let plain = |kind, fpr: f64| tamis::build(&keys[..]).kind(kind).fpr(fpr).finish();
    let both = || tamis::build(&keys[..]).exclude(&excluded[..]);
    let exceptions = |filter: &Filter| matches(filter, &excluded);
    // What one filter comes to, with four bytes for each exception that is listed.
    let row = |promise, name: &str, bound, filter: &Filter, listed: usize| -> Result<Promise, tamis::Error> {
        let (keys, bytes) = (filter.len(), filter.as_bytes().len() + 4 * listed);
        let bits_per_key = bytes as f64 * 8.0 / keys.max(1) as f64;
        let exceptions = exceptions(filter)? - listed;
        let (name, excluded) = (name.into(), excluded.len());
        Ok(Promise { promise, name, keys, excluded, bytes, bits_per_key, bound, exceptions })
    };
    let least = |filter: &Filter| filter.lower_bound() / filter.len().max(1) as f64;
    let structures = [("Bloom", Kind::ClassicBloom), ("fuse", Kind::Fuse), ("ribbon", Kind::Ribbon)];
    let mut rows = Vec::new();

    for (name, kind) in structures {
        let filter = plain(kind, options.fpr)?;
        let bound = tamis::bounds::f(options.fpr, f64::INFINITY);
        rows.push(row("any key", name, bound, &filter, 0)?);
    }
    let free = both().fpr(options.fpr).finish()?;
    let bound = least(&free);
    // One of them is expected to match: with one seed in three none does.
    let fpr = options.fpr.min(1.0 / excluded.len().max(1) as f64);
    for (name, kind) in structures {
        let mut seed = 0;
        let filter = loop {
            let filter = tamis::build(&keys[..]).kind(kind).fpr(fpr).seed(seed).finish()?;
            if exceptions(&filter)? == 0 {
                break filter;
            }
            seed += 1;
        };
        rows.push(row("excluded keys", &format!("{name}, lower rate"), bound, &filter, 0)?);
    }
    let listed = plain(Kind::Ribbon, options.fpr)?;
    rows.push(row("excluded keys", "ribbon, list of exceptions", bound, &listed, exceptions(&listed)?)?);
    rows.push(row("excluded keys", "tamis exclude", bound, &free, 0)?);

    let kinds = [
        ("Bloom cascade", Kind::Cascade(Base::Bloom)),
        ("fuse, chained", Kind::Chained(Base::Fuse)),
        ("ribbon, chained", Kind::Chained(Base::Ribbon)),
        ("tamis exact", Kind::Auto),
    ];
    for (name, kind) in kinds {
        let filter = both().kind(kind).exact().finish()?;
        rows.push(row("listed keys", name, least(&filter), &filter, 0)?);
    }
    Ok(rows)
}

impl table::Report for Report<'_> {
    /// Whether nothing that is excluded matches.
    fn is_clean(&self) -> bool {
        self.promises.iter().all(|row| row.exceptions == 0 || row.promise == "any key")
    }

    fn tables(&self) -> Vec<Table> {
        let Options { n, seed, fpr, keys, exclude, .. } = self.options;
        let sizes = Table::of(&self.sizes)
            .text("structure, goal", |row| format!("{}, 2^{}", row.name, row.goal.log2()))
            .text("fpr", |row| format!("{:.3e}", row.fpr))
            .number("bits/key", 3, |row| row.bits_per_key)
            .number("bound", 3, |row| row.bound)
            .table(
                format!("Sizes by rate: {n} random keys, seed {seed}. {}.", self.machine),
                "fpr: the rate that the filter states. Bits of the whole file.",
            );
        let lists = format!("{} and {}", keys.display(), exclude.display());
        let promises = Table::of(&self.promises)
            .text("promise, structure", |row| format!("{}: {}", row.promise, row.name))
            .text("bytes", |row| row.bytes)
            .number("bits/key", 3, |row| row.bits_per_key)
            .number("bound", 3, |row| row.bound)
            .text("exceptions", |row| row.exceptions)
            .table(
                format!("Sizes by promise: {lists}, fpr {fpr}. {}.", self.machine),
                "exceptions: excluded keys that match. A lower rate: one by the number of excluded keys, with the \
                 first seed at which none matches.",
            );
        [sizes, promises].into_iter().filter(|table| !table.rows.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;

    fn small(part: Part, folder: &Path) -> Options {
        let [keys, exclude] = ["keys", "exclude"].map(|name| folder.join(name));
        fs::write(&keys, (0..3000).map(|i| format!("k{i}\n")).collect::<String>()).unwrap();
        fs::write(&exclude, (0..2000).map(|i| format!("x{i}\n")).collect::<String>()).unwrap();
        Options { part: vec![part], n: 3000, bits: 10, fpr: 0.01, keys, exclude, seed: 1 }
    }

    #[test]
    fn sizes_are_above_the_bound_and_ribbons_near_it() {
        let folder = tempfile::tempdir().unwrap();
        let options = small(Part::Rates, folder.path());
        let report = run(&options).unwrap();
        assert_eq!(report.sizes.len(), 70);
        for row in &report.sizes {
            let (least, most) = (row.bound, if row.name == "ribbon" { 1.1 * row.bound + 0.4 } else { 30.0 });
            assert!(
                (least..most).contains(&row.bits_per_key) && row.fpr <= 1.001 * row.goal,
                "{}: {}",
                row.name,
                row.goal
            );
        }
        assert_eq!(report.tables().len(), 1);
    }

    /// The same promise takes fewer bits where the filter knows the keys it is about.
    #[test]
    fn promises_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let options = small(Part::Promises, folder.path());
        let report = run(&options).unwrap();
        assert!(report.is_clean() && report.tables()[0].rows.len() == 12);
        let bits = |name: &str| report.promises.iter().find(|row| row.name == name).unwrap().bits_per_key;
        assert!(bits("tamis exclude") < 0.8 * bits("ribbon, lower rate"));
        assert!(bits("tamis exact") < bits("fuse, chained") && bits("fuse, chained") < bits("Bloom cascade"));
        assert!(run(&Options { keys: "no such file".into(), ..options }).is_err());
    }
}
