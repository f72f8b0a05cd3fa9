//! tables of 36-byte keys and 64-byte values -> bucket reads and time per get, with rivals: figure 10 (b).

use std::cell::Cell;
use std::error::Error;
use std::time::Duration;

use serde::Serialize;
use tamis::Hasher;
use tamis::table::{Predictor, TableBuilder};
use tamis_bench::measure::{median, wall};
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use super::super::Options;
use super::emoma::Emoma;
use super::pair::bucket;
use super::predict::{OneBloom, Predict, formula_bits};
use super::slow::{Flat, Name, Record, Slow, name};
use super::{LOAD, filled};

#[derive(Serialize)]
pub(super) struct Rival {
    name: String,
    load: f64,
    mbit: f64,
    bits_per_key: f64,
    /// Buckets read per get, of keys that are there and of others.
    present: f64,
    absent: f64,
    stash: Option<usize>,
    /// Microseconds per get of a key that is there, by latency.
    micros: Vec<f64>,
    wrong: usize,
}

/// Looks up a key in a store of a latency, and adds the buckets that it has read.
type Get<'a> = &'a dyn Fn(&Name, Duration, &Cell<u64>) -> Option<Record>;

struct Work<'a> {
    options: &'a Options,
    present: Vec<Name>,
    absent: Vec<Name>,
}

/// The number that stands for a key in rivals.
fn id(name: &Name) -> u64 {
    (Hasher::seeded(0).bytes(name).to_bits() as u64).max(1)
}

const RECORD: Record = [7; 64];

impl Work<'_> {
    /// Looks up all keys once to count reads, then a few at every latency.
    fn measure(&self, name: String, (load, bits, stash): (f64, f64, Option<usize>), get: Get<'_>) -> Rival {
        let reads = Cell::new(0);
        let mut wrong = 0;
        let mut count = |names: &[Name], there: bool| {
            reads.set(0);
            wrong += names.iter().filter(|name| get(name, Duration::ZERO, &reads).is_some() != there).count();
            reads.get() as f64 / names.len().max(1) as f64
        };
        let (present, absent) = (count(&self.present, true), count(&self.absent, false));
        let micros = |&latency: &f64| {
            let many = (0.2e6 / latency.max(0.5)).min(self.options.timing.queries as f64) as usize;
            let latency = Duration::from_nanos((latency * 1e3) as u64);
            let round = |round: usize| {
                let names = self.present.iter().cycle().skip(round * 7919 % self.present.len()).take(many);
                let (_, time) = wall(|| names.filter(|name| get(name, latency, &reads).is_some()).count());
                time.as_secs_f64() * 1e6 / many.max(1) as f64
            };
            median((0..self.options.timing.rounds).map(round)).unwrap_or_default()
        };
        let micros = self.options.latencies.iter().map(micros).collect();
        let bits_per_key = bits / self.present.len() as f64;
        Rival { name, load, mbit: bits / 1e6, bits_per_key, present, absent, stash, micros, wrong }
    }
}

/// Keys of a load in random order, and half as many that are not there.
fn work<'a>(options: &'a Options, stream: &mut Stream, buckets: usize, load: f64) -> Work<'a> {
    let many = (buckets as f64 * load) as usize;
    let mut names = |count: usize| stream.take(count).into_iter().map(name).collect();
    Work { options, present: names(many), absent: names(many / 2) }
}

/// The paper's table and a predictor of it, which may be none.
fn pair(work: &Work<'_>, buckets: usize, bits: Option<f64>) -> Result<Rival, Box<dyn Error>> {
    let keys: Vec<u64> = work.present.iter().map(id).collect();
    let pair = filled(&keys, buckets)?;
    let half = buckets / 2;
    let at = |key: u64, second: bool| bucket(key, second, half) + if second { half } else { 0 };
    let mut flat = Flat::new(buckets, 1);
    work.present.iter().zip(&keys).for_each(|(name, &key)| flat.put(at(key, pair.is_second(key)), *name, RECORD));
    let mut bloom = bits.map(|bits| OneBloom::new(pair.seconds(), bits)).transpose()?;
    if let Some(bloom) = &mut bloom {
        pair.keys(true).try_for_each(|key| bloom.train(key, true))?;
    }
    let get = |name: &Name, latency: Duration, reads: &Cell<u64>| {
        let key = id(name);
        let guess = bloom.as_ref().is_some_and(|bloom| bloom.is_second(key));
        [guess, !guess].into_iter().find_map(|second| {
            reads.set(reads.get() + 1);
            flat.read(at(key, second), name, latency)
        })
    };
    let title = match bits {
        Some(bits) => format!("Bloom filter of the second table, {:.2} bits per bucket", bits / buckets as f64),
        None => "no predictor".into(),
    };
    let bits = bloom.as_ref().map_or(0.0, Predict::bits);
    Ok(work.measure(title, (LOAD, bits, None), &get))
}

fn emoma(work: &Work<'_>, buckets: usize, load: f64) -> Rival {
    let (slots, block, hashes) = (4, 8, 2);
    let mut emoma = Emoma::new(buckets / slots, slots, block, hashes);
    work.present.iter().for_each(|name| emoma.insert(id(name)));
    let half = buckets / slots / 2;
    let mut flat = Flat::new(2 * half, slots);
    let stash: std::collections::HashMap<Name, Record> =
        work.present.iter().filter(|name| emoma.stash.contains(&id(name))).map(|name| (*name, RECORD)).collect();
    let at = |key: u64, second: bool| emoma.bucket(key, second) + if second { half } else { 0 };
    for name in work.present.iter().filter(|name| !stash.contains_key(*name)) {
        flat.put(at(id(name), emoma.is_second(id(name))), *name, RECORD);
    }
    let get = |name: &Name, latency: Duration, reads: &Cell<u64>| {
        if let Some(record) = stash.get(name).filter(|_| !stash.is_empty()) {
            return Some(*record);
        }
        let key = id(name);
        reads.set(reads.get() + 1);
        flat.read(at(key, emoma.is_second(key)), name, latency)
    };
    let title = format!("EMOMA, buckets of {slots}, {block} counters each");
    work.measure(title, (load, emoma.bits() as f64, Some(stash.len())), &get)
}

/// A table of tamis with as many slots as the others.
fn ours(
    work: &Work<'_>,
    slots: usize,
    predictor: Predictor,
    capacity: u64,
    load: f64,
) -> Result<Rival, Box<dyn Error>> {
    let store = Slow::default();
    let mut table = TableBuilder::with_capacity(capacity).slots(slots).predictor(predictor).fixed().build_in(&store)?;
    for name in &work.present {
        table.insert(*name, RECORD)?;
    }
    if predictor == Predictor::Cascade {
        table.settle()?;
    }
    let get = |name: &Name, latency: Duration, reads: &Cell<u64>| {
        store.latency.set(latency);
        let before = store.reads.get();
        let found = table.get(name).ok().flatten();
        reads.set(reads.get() + store.reads.get() - before);
        found
    };
    let kind = if predictor == Predictor::Cascade { "cascade" } else { "exact bit" };
    let title = format!("tamis table, buckets of {slots}, {kind}");
    let load = load.min(work.present.len() as f64 / (table.buckets() * slots as u64) as f64);
    Ok(work.measure(title, (load, table.stats().predictor_bits as f64, None), &get))
}

pub(super) fn run(options: &Options, stream: &mut Stream, buckets: usize) -> Result<Vec<Rival>, Box<dyn Error>> {
    let low = work(options, stream, buckets, LOAD);
    let formula = formula_bits(buckets, LOAD);
    let one = buckets as u64 * 45 / 100;
    let mut rivals = vec![
        pair(&low, buckets, None)?,
        pair(&low, buckets, Some(formula))?,
        pair(&low, buckets, Some(4.0 * buckets as f64))?,
        emoma(&low, buckets, LOAD),
        ours(&low, 1, Predictor::Exact, one, LOAD)?,
        ours(&low, 1, Predictor::Cascade, one, LOAD)?,
    ];
    drop(low);
    let high = work(options, stream, buckets, 0.8);
    let four = buckets as u64 * 92 / 100;
    rivals.extend([emoma(&high, buckets, 0.8), ours(&high, 4, Predictor::Exact, four, 0.8)?]);
    Ok(rivals)
}

impl Rival {
    pub(super) fn is_clean(&self) -> bool {
        self.wrong == 0
    }
}

pub(super) fn table(rivals: &[Rival], options: &Options) -> Table {
    Table::of(rivals)
        .text("table", |rival| &rival.name)
        .number("load", 2, |rival| rival.load)
        .number("Mbit", 3, |rival| rival.mbit)
        .number("bits/key", 3, |rival| rival.bits_per_key)
        .number("reads, present", 3, |rival| rival.present)
        .number("reads, absent", 3, |rival| rival.absent)
        .number("stash", 0, |rival| rival.stash.map(|keys| keys as f64))
        .numbers(options.latencies.iter().map(|latency| format!("get at {latency} us")), 2, |rival| {
            rival.micros.iter().copied()
        })
        .text("wrong", |rival| rival.wrong)
        .table(
            format!(
                "Figure 10 (b): {} slots, keys of 36 bytes, values of 64, a store that takes so long to read a bucket.",
                options.n
            ),
            "Reads: buckets per get of a key that is there, and of one that is not. Times: microseconds of wall time \
             per get of a key that is there, medians over the rounds; the wait is busy. EMOMA's insertion is simpler \
             than its authors': its stash is ours.",
        )
}
