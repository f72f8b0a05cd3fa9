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
use crate::measure::{cpu, nanos_each, progress};
use crate::stream::{Stream, scramble};
use crate::table::{self, Table};

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
    (found.wrong, found.query) = (n - ones, nanos_each(time, n));
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
    let member = nanos_each(time, n);
    let (matches, time) = cpu(|| others.iter().filter(|&&key| filter.contains(key) == Ok(true)).count());
    let excluded = nanos_each(time, others.len());
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

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let Options { n, repeat, seed, .. } = *options;
    if n < 100 || repeat == 0 {
        return Err("--n must be at least 100 and --repeat at least 1".into());
    }
    let mut stream = Stream::new(seed);
    let keys = stream.take(n);
    let mut best = Alone::default();
    for _ in 0..repeat {
        progress("exact bit");
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
                progress(format_args!("{name}, lambda {lambda}"));
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
    progress("");
    Ok(Report { machine: Machine::read(), options, alone: best, behind: rows })
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.alone.wrong == 0 && self.behind.iter().all(|row| row.wrong == 0)
    }

    fn tables(&self) -> Vec<Table> {
        let head = |what: &str| format!("{what}, {} keys. {}.", self.options.n, self.machine);
        let alone = Table::of([&self.alone])
            .text("", |_| "Othello")
            .number("insert M/s", 2, |row| row.insert)
            .number("batch M/s", 2, |row| row.batch)
            .number("change M/s", 2, |row| row.change)
            .number("remove M/s", 2, |row| row.remove)
            .number("query ns", 1, |row| row.query)
            .number("stall ms", 2, |row| row.stall)
            .number("bits", 3, |row| row.bits)
            .number("most bits", 3, |row| row.most_bits)
            .number("side B", 1, |row| row.side_bytes)
            .text("wrong", |row| row.wrong)
            .table(
                head("An exact bit that changes"),
                "Processor time, the best of the repetitions; the stall is the longest insertion of all. Bits and \
                 bytes per key.",
            );
        let behind = Table::of(&self.behind)
            .text("first layer", |row| row.first)
            .text("lambda", |row| row.lambda)
            .number("exclude M/s", 2, |row| row.exclude)
            .number("insert M/s", 2, |row| row.insert)
            .number("batch M/s", 2, |row| row.batch)
            .number("member ns", 1, |row| row.member)
            .number("excluded ns", 1, |row| row.excluded)
            .number("stall ms", 2, |row| row.stall)
            .number("bits", 2, |row| row.table_bits)
            .number("side B", 1, |row| row.side_bytes)
            .text("wrong", |row| row.wrong)
            .table(
                head("The same behind a first layer that takes keys"),
                "Half of the keys, then all excluded keys, then the other half, one by one or in five batches. Bits \
                 per key of both layers; bytes next to them per key or excluded key. Wrong answers are members that do \
                 not match and excluded keys that do.",
            );
        vec![alone, behind]
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
