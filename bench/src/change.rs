//! filters that change -> millions of changes per second, the longest one, and bits: an exact bit alone, and behind a first layer.
//!
//! Times are processor time, so that a busy machine adds little; every rate is the best of the repetitions. All answers are checked.

use std::error::Error;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tamis::{Bloom, Chained, Cuckoo, Othello, Quotient};

use crate::arch::cpu_time;
use crate::machine::Machine;
use crate::measure::cpu;
use crate::stream::{Stream, scramble};
use crate::table::{self, Table, number};

/// Makes an empty filter over a first layer.
type Empty<'a> = &'a dyn Fn() -> Result<Chained, tamis::Error>;

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    n: usize,
    /// Excluded keys per key.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 8])]
    lambda: Vec<usize>,
    /// Repetitions.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Of the exact bit alone.
#[derive(Serialize, Default)]
struct Alone {
    /// Millions per second.
    insert: f64,
    change: f64,
    remove: f64,
    /// Insertions in batches of a tenth of the keys.
    batch: f64,
    /// Nanoseconds.
    query: f64,
    /// Milliseconds.
    stall: f64,
    bits: f64,
    /// At any size from a tenth of the keys on.
    most_bits: f64,
    side_bytes: f64,
    wrong: usize,
}

/// Of a first layer with the exact bit behind it.
#[derive(Serialize)]
struct Behind {
    first: &'static str,
    lambda: usize,
    exclude: f64,
    insert: f64,
    batch: f64,
    member: f64,
    excluded: f64,
    stall: f64,
    table_bits: f64,
    side_bytes: f64,
    wrong: usize,
}

/// The experiment's results.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    alone: Alone,
    behind: Vec<Behind>,
}

fn millions(n: usize, time: Duration) -> f64 {
    n as f64 / time.as_secs_f64() / 1e6
}

fn nanos(n: usize, time: Duration) -> f64 {
    time.as_nanos() as f64 / n as f64
}

/// The longest of some operations, in milliseconds of processor time.
fn longest(keys: &[u64], mut work: impl FnMut(u64) -> Result<(), tamis::Error>) -> Result<f64, tamis::Error> {
    let mut most = Duration::ZERO;
    for &key in keys {
        let start = cpu_time();
        work(key)?;
        most = most.max(cpu_time() - start);
    }
    Ok(most.as_secs_f64() * 1e3)
}

fn alone(keys: &[u64], seed: u64) -> Result<Alone, tamis::Error> {
    let (n, bit) = (keys.len(), |key: u64| scramble(key ^ seed) & 1 == 1);
    let mut found = Alone::default();
    let mut table = Othello::new::<u64>()?;
    let (inserted, time) = cpu(|| keys.iter().try_for_each(|&key| table.set(key, bit(key)).map(|_| ())));
    inserted?;
    found.insert = millions(n, time);
    (found.bits, found.side_bytes) = (table.table_bits() as f64 / n as f64, table.side_bytes() as f64 / n as f64);
    let (ones, time) = cpu(|| keys.iter().filter(|&&key| table.get(key) == Ok(bit(key))).count());
    (found.wrong, found.query) = (n - ones, nanos(n, time));
    let order = Stream::new(seed + 1).sample(keys, n);
    let mut flips = std::collections::HashMap::<u64, bool>::new();
    let changes: Vec<(u64, bool)> = order
        .iter()
        .map(|&key| {
            let now = flips.entry(key).or_insert(bit(key));
            *now = !*now;
            (key, *now)
        })
        .collect();
    let (changed, time) = cpu(|| changes.iter().try_for_each(|&(key, bit)| table.set(key, bit).map(|_| ())));
    changed?;
    found.change = millions(n, time);
    found.wrong += flips.iter().filter(|&(&key, &bit)| table.get(key) != Ok(bit)).count();
    let (removed, time) = cpu(|| order.iter().filter(|&&key| table.remove(key) == Ok(true)).count());
    found.remove = millions(order.len(), time);
    found.wrong += n - removed - table.len() as usize;
    // In steps: the size at each, and then the longest step.
    let mut table = Othello::new::<u64>()?;
    for (i, &key) in keys.iter().enumerate() {
        table.set(key, bit(key))?;
        if i >= n / 10 && i % (n / 200).max(1) == 0 {
            found.most_bits = found.most_bits.max(table.table_bits() as f64 / (i + 1) as f64);
        }
    }
    let mut table = Othello::new::<u64>()?;
    found.stall = longest(keys, |key| table.set(key, bit(key)).map(|_| ()))?;
    let mut table = Othello::new::<u64>()?;
    let (first, rest) = keys.split_at(n / 2);
    table.set_many(first.iter().map(|&key| (key, bit(key))))?;
    let mut batches = rest.chunks((n / 10).max(1));
    let (done, time) = cpu(|| batches.try_for_each(|keys| table.set_many(keys.iter().map(|&key| (key, bit(key))))));
    done?;
    found.batch = millions(rest.len(), time);
    found.wrong += keys.iter().filter(|&&key| table.get(key) != Ok(bit(key))).count();
    Ok(found)
}

/// Half of the keys, all exclusions, the other half: one by one, or in five batches.
fn behind(name: &'static str, empty: Empty<'_>, keys: &[u64], others: &[u64]) -> Result<Behind, tamis::Error> {
    let (n, lambda) = (keys.len(), others.len() / keys.len().max(1));
    let (early, late) = keys.split_at(n / 2);
    let mut filter = empty()?;
    filter.insert_many(early.iter().copied())?;
    let (excluded, time) = cpu(|| others.iter().try_for_each(|&key| filter.exclude(key).map(|_| ())));
    excluded?;
    let exclude = millions(others.len(), time);
    let mut batched = filter.clone();
    let (inserted, time) = cpu(|| late.iter().try_for_each(|&key| filter.insert(key).map(|_| ())));
    inserted?;
    let insert = millions(late.len(), time);
    let mut batches = late.chunks((n / 10).max(1));
    let (done, time) = cpu(|| batches.try_for_each(|keys| batched.insert_many(keys.iter().copied()).map(|_| ())));
    done?;
    let batch = millions(late.len(), time);
    let (members, time) = cpu(|| keys.iter().filter(|&&key| filter.contains(key) == Ok(true)).count());
    let member = nanos(n, time);
    let (matches, time) = cpu(|| others.iter().filter(|&&key| filter.contains(key) == Ok(true)).count());
    let excluded = nanos(others.len(), time);
    let forgotten = others.iter().filter(|&&key| batched.contains(key) == Ok(true)).count();
    let lost = keys.iter().filter(|&&key| batched.contains(key) != Ok(true)).count();
    let (table_bits, side_bytes) = (filter.table_bits() as f64 / n as f64, filter.side_bytes() as f64);
    // More keys than it was made for, each timed; a full layer ends it.
    let more: Vec<u64> = Stream::new(77).take(n / 50);
    let mut full = false;
    let stall = longest(&more, |key| {
        full = full || filter.insert(key).is_err();
        Ok(())
    })?;
    let side_bytes = side_bytes / (n + others.len()) as f64;
    let wrong = n - members + matches + forgotten + lost;
    Ok(Behind { first: name, lambda, exclude, insert, batch, member, excluded, stall, table_bits, side_bytes, wrong })
}

/// Measures everything.
pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let Options { n, repeat, seed, .. } = *options;
    if n < 100 || repeat == 0 {
        return Err("--n must be at least 100 and --repeat at least 1".into());
    }
    let mut stream = Stream::new(seed);
    let keys = stream.take(n);
    let mut best = Alone::default();
    for _ in 0..repeat {
        eprint!("\r\x1b[Kexact bit");
        let found = alone(&keys, seed)?;
        best = Alone {
            insert: best.insert.max(found.insert),
            change: best.change.max(found.change),
            remove: best.remove.max(found.remove),
            batch: best.batch.max(found.batch),
            query: if best.query == 0.0 { found.query } else { best.query.min(found.query) },
            stall: best.stall.max(found.stall),
            most_bits: best.most_bits.max(found.most_bits),
            wrong: best.wrong + found.wrong,
            ..found
        };
    }
    let capacity = n as u64 + n as u64 / 25;
    let firsts: [(&'static str, Empty<'_>); 4] = [
        ("split-block Bloom", &|| Chained::over(Bloom::with_capacity(n as u64).fpr(0.0625).build::<u64>()?)),
        ("classic Bloom", &|| Chained::over(Bloom::with_capacity(n as u64).fpr(0.0625).classic().build::<u64>()?)),
        ("cuckoo", &|| Chained::over(Cuckoo::with_capacity(capacity).fpr(0.03).build::<u64>()?)),
        ("quotient", &|| Chained::over(Quotient::with_capacity(capacity).fpr(0.03).build::<u64>()?)),
    ];
    let mut rows: Vec<Behind> = vec![];
    for &lambda in &options.lambda {
        let others = stream.take(n * lambda);
        for (name, empty) in firsts {
            let mut row: Option<Behind> = None;
            for _ in 0..repeat {
                eprint!("\r\x1b[K{name}, lambda {lambda}");
                let new = behind(name, empty, &keys, &others)?;
                row = Some(match row {
                    None => new,
                    Some(old) => Behind {
                        exclude: old.exclude.max(new.exclude),
                        insert: old.insert.max(new.insert),
                        batch: old.batch.max(new.batch),
                        member: old.member.min(new.member),
                        excluded: old.excluded.min(new.excluded),
                        stall: old.stall.max(new.stall),
                        wrong: old.wrong + new.wrong,
                        ..new
                    },
                });
            }
            rows.extend(row);
        }
    }
    eprint!("\r\x1b[K");
    Ok(Report { machine: Machine::read(), options, alone: best, behind: rows })
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.alone.wrong == 0 && self.behind.iter().all(|row| row.wrong == 0)
    }

    fn tables(&self) -> Vec<Table> {
        let cells = |numbers: &[(f64, usize)]| -> Vec<String> {
            numbers.iter().map(|&(value, digits)| number(Some(value), digits)).collect()
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let a = &self.alone;
        let alone = [
            (a.insert, 2),
            (a.batch, 2),
            (a.change, 2),
            (a.remove, 2),
            (a.query, 1),
            (a.stall, 2),
            (a.bits, 3),
            (a.most_bits, 3),
            (a.side_bytes, 1),
            (a.wrong as f64, 0),
        ];
        let row = |row: &Behind| {
            let numbers = [
                (row.lambda as f64, 0),
                (row.exclude, 2),
                (row.insert, 2),
                (row.batch, 2),
                (row.member, 1),
                (row.excluded, 1),
                (row.stall, 2),
                (row.table_bits, 2),
                (row.side_bytes, 1),
                (row.wrong as f64, 0),
            ];
            [vec![row.first.to_string()], cells(&numbers)].concat()
        };
        let head = |what: &str| format!("{what}, {} keys. {}.", self.options.n, self.machine);
        vec![
            Table {
                head: head("An exact bit that changes"),
                columns: names(&[
                    "", "insert M/s", "batch M/s", "change M/s", "remove M/s", "query ns", "stall ms", "bits", "most bits",
                    "side B", "wrong",
                ]),
                rows: vec![[vec!["Othello".to_string()], cells(&alone)].concat()],
                note: "Processor time, the best of the repetitions; the stall is the longest insertion of all. Bits and bytes per key."
                    .to_string(),
            },
            Table {
                head: head("The same behind a first layer that takes keys"),
                columns: names(&[
                    "first layer", "lambda", "exclude M/s", "insert M/s", "batch M/s", "member ns", "excluded ns", "stall ms",
                    "bits", "side B", "wrong",
                ]),
                rows: self.behind.iter().map(row).collect(),
                note: "Half of the keys, then all excluded keys, then the other half, one by one or in five batches. Bits per key of both \
                       layers; bytes next to them per key or excluded key. Wrong answers are members that do not match and excluded keys \
                       that do."
                    .to_string(),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use table::Report as _;

    #[test]
    fn a_small_run_is_clean() {
        let options = Options { n: 2_000, lambda: vec![2], repeat: 1, seed: 3 };
        let report = run(&options).unwrap();
        assert!(report.is_clean() && report.behind.len() == 4);
        assert!(report.tables().iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
    }
}
