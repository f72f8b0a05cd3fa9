//! \[Chained\] section 5.4, levels of sorted runs -> runs read per get, and what the filters take: figures 11 and 12, by counts.
//!
//! A fifth of the keys of every run are repeated from older runs. Plain filters have as many bits per key as the level above them, and are
//! queried from the newest run on, as stores do. No latency is simulated: what a get takes follows from the runs that it reads.

use std::convert::identity;
use std::error::Error;

use serde::Serialize;
use tamis::lsm::LevelBuilder;
use tamis::{Filter, Kind};
use tamis_bench::measure::{cpu, nanos_each};
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use super::Options;

/// Runs of a level: the ends of figure 12, and between.
const RUNS: [usize; 3] = [7, 24, 30];

/// One key in so many is repeated from older runs.
const REPEATED: u64 = 5;

/// Runs read for nothing, by gets of keys of one kind.
#[derive(Serialize)]
struct Extra {
    mean: f64,
    p99: u32,
    most: u32,
}

#[derive(Serialize)]
pub(super) struct Row {
    runs: usize,
    name: &'static str,
    bits_per_key: f64,
    /// Bytes per key that only the writer keeps.
    side_bytes: f64,
    existing: Extra,
    absent: Extra,
    /// Processor time of all filters that a get queries, for a key that is there, in nanoseconds.
    get: f64,
    /// The same for building a run's filter and changing the older ones, by one thread and key.
    push: f64,
    wrong: usize,
}

/// Keys, and for each the runs that hold it as bits; of runs the positions of their keys.
struct Data {
    keys: Vec<u64>,
    holders: Vec<u64>,
    runs: Vec<Vec<u32>>,
}

impl Data {
    fn draw(stream: &mut Stream, n: usize, runs: usize) -> Data {
        let (mut holders, mut lists) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let older = holders.len() as u64;
            let list = (0..n / runs).map(|_| {
                let repeated = older > 0 && stream.draw().is_multiple_of(REPEATED);
                let at = if repeated { (stream.draw() % older) as usize } else { holders.len() };
                holders.resize(holders.len().max(at + 1), 0);
                holders[at] |= 1 << run;
                at as u32
            });
            lists.push(list.collect());
        }
        Data { keys: stream.take(holders.len()), holders, runs: lists }
    }

    fn run(&self, run: usize) -> impl Iterator<Item = u64> + '_ {
        self.runs[run].iter().map(|&at| self.keys[at as usize])
    }
}

/// Searches for a key that these runs hold. Returns the newest run found, and how many were read for nothing.
type Search<'a> = &'a dyn Fn(u64, u64) -> (Option<u64>, u32);

fn extra(gets: impl Iterator<Item = u32>) -> Extra {
    let mut extra: Vec<u32> = gets.collect();
    extra.sort_unstable();
    let at = |share: f64| extra.get((extra.len() as f64 * share) as usize).copied().unwrap_or_default();
    let mean = extra.iter().sum::<u32>() as f64 / extra.len().max(1) as f64;
    Extra { mean, p99: at(0.99), most: extra.last().copied().unwrap_or_default() }
}

/// Name, bits and side bytes per key, and the time of a push.
type Made = (&'static str, f64, f64, f64);

fn measure(data: &Data, absent: &[u64], (name, bits_per_key, side_bytes, push): Made, search: Search<'_>) -> Row {
    let mut wrong = 0;
    let mut get = |key: u64, holders: u64| {
        let (found, extra) = search(key, holders);
        wrong += usize::from(found != holders.checked_ilog2().map(u64::from));
        extra
    };
    let existing = extra(data.keys.iter().zip(&data.holders).map(|(&key, &holders)| get(key, holders)));
    let absent = extra(absent.iter().map(|&key| get(key, 0)));
    let gets = || data.keys.iter().zip(&data.holders).map(|(&key, &holders)| search(key, holders).1).sum::<u32>();
    let get = nanos_each(cpu(gets).1, data.keys.len());
    Row { runs: data.runs.len(), name, bits_per_key, side_bytes, existing, absent, get, push, wrong }
}

fn level(data: &Data, absent: &[u64], all_versions: bool) -> Result<Row, Box<dyn Error>> {
    let builder = if all_versions { LevelBuilder::all_versions } else { identity };
    let mut level = builder(LevelBuilder::new().threads(1)).build::<u64>()?;
    let (pushed, time) = cpu(|| (0..data.runs.len()).try_for_each(|run| level.push_run(data.run(run)).map(drop)));
    pushed?;
    let stats = level.stats();
    let name = if all_versions { "level, all versions (the paper)" } else { "level, newest version" };
    let push = nanos_each(time, stats.keys as usize);
    let reader = level.reader();
    let search = |key: u64, holders: u64| {
        let read = |run: tamis::lsm::RunId| Ok::<_, tamis::Error>((holders >> run.number() & 1 == 1).then_some(()));
        let Ok(search) = reader.search(key, read) else { return (None, 0) };
        (search.run.map(tamis::lsm::RunId::number), search.extra)
    };
    let made = (name, stats.bits_per_key(), stats.side_bytes as f64 / stats.keys.max(1) as f64, push);
    Ok(measure(data, absent, made, &search))
}

fn plain(data: &Data, absent: &[u64], name: &'static str, kind: Kind, bits: f64) -> Result<Row, Box<dyn Error>> {
    let build = |run| tamis::build(data.run(run)).kind(kind).bits_per_key(bits).threads(1).finish();
    let (filters, time) = cpu(|| (0..data.runs.len()).map(build).collect::<Result<Vec<Filter>, _>>());
    let filters = filters?;
    let (bytes, keys) = filters.iter().fold((0, 0), |sum, f| (sum.0 + f.as_bytes().len(), sum.1 + f.len() as usize));
    let search = |key: u64, holders: u64| {
        let mut extra = 0;
        for (run, _) in filters.iter().enumerate().rev().filter(|(_, filter)| filter.contains(key) == Ok(true)) {
            if holders >> run & 1 == 1 {
                return (Some(run as u64), extra);
            }
            extra += 1;
        }
        (None, extra)
    };
    let made = (name, 8.0 * bytes as f64 / keys.max(1) as f64, 0.0, nanos_each(time, keys));
    Ok(measure(data, absent, made, &search))
}

pub(super) fn run(options: &Options, stream: &mut Stream) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for runs in RUNS {
        let data = Data::draw(stream, options.n, runs);
        let absent = stream.take(options.n / 4);
        let newest = level(&data, &absent, false)?;
        let bits = newest.bits_per_key;
        rows.push(newest);
        rows.push(level(&data, &absent, true)?);
        for (name, kind) in [("ribbon for each run", Kind::Ribbon), ("Bloom for each run", Kind::ClassicBloom)] {
            rows.push(plain(&data, &absent, name, kind, bits)?);
        }
    }
    Ok(rows)
}

impl Row {
    /// Every get was right, and levels keep their bounds.
    pub(super) fn is_clean(&self) -> bool {
        let bound = match self.name {
            name if !name.starts_with("level") => u32::MAX,
            name if name.contains("all versions") => 1,
            _ => 0,
        };
        self.wrong == 0 && self.existing.most <= bound && self.absent.most <= bound.max(1)
    }
}

pub(super) fn table(rows: &[Row], options: &Options) -> Table {
    Table::of(rows)
        .text("runs", |row| row.runs)
        .text("filters", |row| row.name)
        .number("bits per key", 2, |row| row.bits_per_key)
        .number("side bytes", 1, |row| row.side_bytes)
        .number("extra, existing", 4, |row| row.existing.mean)
        .texts(["P99", "most"], |row| [row.existing.p99, row.existing.most])
        .number("extra, absent", 4, |row| row.absent.mean)
        .texts(["P99", "most"], |row| [row.absent.p99, row.absent.most])
        .number("get ns", 0, |row| row.get)
        .number("push ns", 0, |row| row.push)
        .text("wrong", |row| row.wrong)
        .table(
            format!("Figures 11 and 12: levels of {} keys, one in {REPEATED} repeated from older runs.", options.n),
            "Extra: runs read that do not hold the key, per get. The paper has at most 1, for keys that are in several \
             runs too; the keys of its experiment are distinct, in 7 to 30 runs of RocksDB, and it prints latencies. \
             Side bytes are per key and with the writer. Times are the processor's, of one thread; no run is read.",
        )
}
