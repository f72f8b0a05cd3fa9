//! random keys -> a filter in a file that is read as a store would be: reads and bytes to open it and to query it.
//!
//! The store is a local file behind a function that counts. What a network adds is a time per read and per byte, so the counts are what
//! matters. Nothing is kept but the digests of the keys, which the build sorts.

use std::cell::RefCell;
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use tamis::{Digest, Fetch, Filter, FormatError, Limits, Remote};

use crate::args::Folder;
use crate::machine::Machine;
use crate::measure;
use crate::stream::Stream;
use crate::table::{self, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys.
    #[arg(long, default_value_t = 10_000_000)]
    n: u64,
    /// Share of unlisted keys that match.
    #[arg(long, default_value_t = 0.01)]
    fpr: f64,
    /// Bytes of a shard.
    #[arg(long, default_value_t = 65_536)]
    shard_bytes: u64,
    /// GiB in which keys are sorted before temporary files are used; 10^9 keys need 30.
    #[arg(long, default_value_t = 2)]
    memory: u64,
    /// Threads [default: all processors].
    #[arg(long)]
    threads: Option<usize>,
    /// Single queries, half of them for members.
    #[arg(long, default_value_t = 2000)]
    queries: u64,
    /// Keys of one batch.
    #[arg(long, default_value_t = 10_000)]
    batch: u64,
    /// Members to verify, spread evenly over all.
    #[arg(long, default_value_t = 10_000_000)]
    sample: u64,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    folder: Folder,
}

/// Reads of a store: how many, their bytes, the longest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
struct Reads {
    count: u64,
    bytes: u64,
    most: u64,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    #[serde(flatten)]
    found: Found,
}

#[derive(Default, Serialize)]
struct Found {
    file_bytes: u64,
    bits_per_key: f64,
    shards: u64,
    shard_most: u64,
    /// Seconds.
    build: f64,
    /// The most memory that this process had when the filter was built: MiB.
    peak: Option<f64>,
    /// Directory and footer: what a read of the end must have.
    tail: u64,
    open: Reads,
    /// Of single queries, nothing held before; the most reads of one of them.
    single: Reads,
    single_most: u64,
    cached: Reads,
    batch: Reads,
    verified: u64,
    false_negatives: u64,
    /// Of the single queries for others.
    matches: u64,
}

/// The most memory that this process had so far, in MiB.
fn peak() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}

/// Every `step`-th of the `n` keys, the last of each `step`.
fn spread(options: &Options, count: u64) -> Vec<u64> {
    let mut stream = Stream::new(options.seed);
    let step = (options.n / count.max(1)).max(1);
    (1..=options.n).map(|i| (i, stream.draw())).filter(|(i, _)| i % step == 0).map(|(_, key)| key).collect()
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let dir = options.folder.make()?;
    let path = dir.path().join("keys.tamis");
    let mut keys = Stream::new(options.seed);
    let keys = (0..options.n).map(move |_| keys.draw());
    let limits = Limits::default().memory(options.memory << 30).tmp(dir.path());
    let mut build = tamis::build(keys).fpr(options.fpr).shard_bytes(options.shard_bytes).limits(limits);
    if let Some(threads) = options.threads {
        build = build.threads(threads);
    }
    let (built, time) = measure::wall(|| build.finish_to(&path));
    let (file_bytes, peak) = (built?.bytes, peak());
    eprintln!("built in {:.1} s", time.as_secs_f64());
    let mut found = Found {
        file_bytes,
        bits_per_key: file_bytes as f64 * 8.0 / options.n.max(1) as f64,
        build: time.as_secs_f64(),
        peak,
        ..Found::default()
    };
    query(options, &path, &mut found)?;
    Ok(Report { machine: Machine::read(), options, found })
}

/// Counts the reads of every kind of query.
#[allow(unsafe_code)]
fn query(options: &Options, path: &Path, found: &mut Found) -> Result<(), Box<dyn Error>> {
    let (file, reads) = (File::open(path)?, RefCell::new(Reads::default()));
    let len = file.metadata()?.len();
    let read = |range: std::ops::Range<u64>| {
        let bytes = range.end - range.start;
        let Reads { count, bytes: all, most } = *reads.borrow();
        *reads.borrow_mut() = Reads { count: count + 1, bytes: all + bytes, most: most.max(bytes) };
        let mut buffer = vec![0; bytes as usize];
        file.read_exact_at(&mut buffer, range.start)?;
        Ok(buffer.into())
    };
    let mut store = Fetch::open(len, read)?;
    found.open = reads.take();
    // What is too short says how long it must be.
    let mut end = vec![0; 32];
    file.read_exact_at(&mut end, len - 32)?;
    if let Err(FormatError::Truncated { needed, .. }) = Remote::open(end, len) {
        found.tail = needed;
    }
    let members = spread(options, options.queries / 2);
    // Of another stream: some may be members by chance, one in 2^64.
    let others = Stream::new(options.seed ^ 0x73_746f_7265).take((options.queries / 2) as usize);
    for (key, is_member) in members.iter().map(|key| (key, true)).chain(others.iter().map(|key| (key, false))) {
        let before = reads.borrow().count;
        let answer = store.contains(key)?;
        found.single_most = found.single_most.max(reads.borrow().count - before);
        found.false_negatives += u64::from(is_member && !answer);
        found.matches += u64::from(!is_member && answer);
    }
    found.single = reads.take();
    // The last ones are still held.
    for key in others.iter().rev().take(100) {
        store.contains(key)?;
    }
    found.cached = reads.take();
    // SAFETY: the file is in a folder of ours, and nothing changes it before the filter is gone.
    let filter = unsafe { Filter::mmap(path) }?;
    found.shards = filter.shards();
    let mut fresh = Fetch::new(remote(&file, len, found.tail)?, read);
    let keys = spread(options, options.batch);
    let keys = &keys[..keys.len().min(options.batch as usize)];
    found.false_negatives += fresh.contains_many(keys)?.iter().filter(|&&yes| !yes).count() as u64;
    found.batch = reads.take();
    let mut every = remote(&file, len, found.tail)?;
    for shard in 0..found.shards {
        let digest = Digest::from_bits(u128::from(shard) << (128 - found.shards.ilog2().max(1)));
        for range in every.needs(&[digest]) {
            found.shard_most = found.shard_most.max(range.end - range.start);
        }
    }
    filter.verify()?;
    let sample = spread(options, options.sample);
    found.verified = sample.len() as u64;
    for keys in sample.chunks(1 << 16) {
        found.false_negatives += filter.contains_many(keys)?.iter().filter(|&&yes| !yes).count() as u64;
    }
    Ok(())
}

/// The filter by just its directory.
fn remote(file: &File, len: u64, tail: u64) -> Result<Remote, Box<dyn Error>> {
    let mut bytes = vec![0; tail as usize];
    file.read_exact_at(&mut bytes, len - tail)?;
    Ok(Remote::open(bytes, len)?)
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.found.false_negatives == 0
    }

    fn tables(&self) -> Vec<Table> {
        let Report { machine, options, found } = self;
        let Options { n, fpr, shard_bytes, seed, .. } = options;
        let queries = options.queries / 2 * 2;
        let peak = found.peak.map_or("unknown".to_string(), |peak| format!("{peak:.0} MiB"));
        let table = Table::of([
            ("opening", 0, found.open),
            ("one by one", queries, found.single),
            ("the last 100 again", 100.min(queries / 2), found.cached),
            ("one batch", options.batch, found.batch),
        ]);
        let table = table
            .text("what", |row| row.0)
            .text("queries", |row| row.1)
            .text("reads", |row| row.2.count)
            .text("bytes", |row| row.2.bytes)
            .text("longest read", |row| row.2.most)
            .table(
                format!(
                    "A filter of {n} keys in a store: fpr {fpr}, shards of {shard_bytes} bytes, seed {seed}. {machine}."
                ),
                format!(
                    "{} bytes, {:.3} bits per key, {} shards, the longest of {} bytes; directory and footer {} bytes. \
                     Built in {:.1} s, peak memory {peak}. A single query took {} read at most. {} of {} others \
                     matched. {} members verified, {} false negatives.",
                    found.file_bytes,
                    found.bits_per_key,
                    found.shards,
                    found.shard_most,
                    found.tail,
                    found.build,
                    found.single_most,
                    found.matches,
                    queries / 2,
                    found.verified,
                    found.false_negatives
                ),
            );
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_store_is_opened_and_queried_in_few_reads() {
        let options = Options {
            n: 100_000,
            fpr: 0.01,
            shard_bytes: 4096,
            memory: 1,
            threads: Some(2),
            queries: 200,
            batch: 1000,
            sample: 5000,
            seed: 1,
            folder: Folder::default(),
        };
        let report = run(&options).unwrap();
        let found = &report.found;
        assert!(table::Report::is_clean(&report) && found.verified >= 5000);
        assert_eq!((found.open.count, found.single_most), (1, 1));
        assert!(found.shards == 32 && found.shard_most <= 4096 && found.single.most <= 4096);
        assert!(found.batch.count <= 16 && found.cached.count == 0 && found.matches < 10);
        assert!(found.tail < 2000 && found.peak.is_some_and(|peak| peak > 1.0));
        assert!(table::Report::tables(&report)[0].to_string().contains("32 shards"));
        assert_eq!(spread(&options, 10).len(), 10);
    }
}
