//! a database, lookups of which most are in vain -> the reads that a filter spares it, and those that an adaptive one spares it.
//!
//! The database holds the deny list. Lookups are skewed, as they are everywhere: few hosts are asked for again and again, and most of them are not on
//! the list. A plain filter is wrong about some of those, and then it is wrong about them every time. The broom filter is told, asks the
//! database which key was behind it, and is not wrong about that host again.
//!
//! ```text
//! cargo run --release -p tamis --example guarded_database -- LIST OTHERS     one host per line
//! ```
//!
//! Without names it takes the lists of the repository. `store.rs` has the tables, and says how filter and database stay together.

mod store;

use std::collections::HashSet;
use std::error::Error;
use std::fs;

use store::Store;
use tamis::adaptive::{AdaptiveFilter, Broom, Guarded};
use tamis::{Hasher, Quotient};

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart/deny.txt");
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart/allow.txt");
const RATE: f64 = 1.0 / 256.0;
const LOOKUPS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [list, others] = match &names[..] {
        [] => [LIST, OTHERS],
        [list, others] => [list.as_str(), others.as_str()],
        _ => return Err("expected two files: hosts of the database, and hosts that are asked for".into()),
    };
    let read = |name: &str| fs::read_to_string(name).map_err(|e| format!("{name}: {e}"));
    let (list, others) = (read(list)?, read(others)?);
    let keys: HashSet<&str> = list.lines().filter(|line| !line.is_empty()).collect();
    let strangers: Vec<&str> = others.lines().filter(|line| !line.is_empty() && !keys.contains(line)).collect();
    let mut keys: Vec<&str> = keys.into_iter().collect();
    keys.sort_unstable();
    if keys.is_empty() || strangers.is_empty() {
        return Err("expected at least one host of each kind".into());
    }

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("hosts.redb");
    // Filters of the same rate; the plain one is a quotient filter, which the broom filter is a relative of. The keys are fixed here so that every
    // run prints the same; `Broom::new` takes a secret of the operating system's.
    let broom = Broom::with_capacity(keys.len() as u64).fpr(RATE).secret([1, 2]).build::<str>()?;
    let mut plain =
        Quotient::with_capacity(keys.len() as u64).fpr(RATE).hasher(Hasher::secret([3, 4])).build::<str>()?;
    let store = Store::open(&file, broom.hasher().clone())?;
    let mut hosts = Guarded::new(broom, store);
    for (number, key) in (0..).zip(&keys) {
        hosts.insert(*key, number)?;
        plain.insert(*key)?;
    }
    // Tables and filter are written together. From here on the filter lives in the file too.
    let (broom, mut store) = hosts.into_parts();
    store.commit(&broom.snapshot()?)?;
    let before = (store.reads, store.writes);
    let bytes = (broom.memory_bytes(), plain.snapshot()?.len());
    let mut hosts = Guarded::new(broom, store);

    let mut random = Random(2024);
    let (mut found, mut plain_reads, mut plain_in_vain) = (0u64, 0u64, 0u64);
    for _ in 0..LOOKUPS {
        // One lookup in ten is for a host of the list. Of the others, rank r is asked for one r-th as often as the first.
        let host = match random.below(10) {
            0 => keys[random.below(keys.len())],
            _ => strangers[random.zipf(strangers.len()) - 1],
        };
        let value = hosts.get(host)?;
        found += u64::from(value.is_some());
        if plain.contains(host)? {
            plain_reads += 1;
            plain_in_vain += u64::from(value.is_none());
        }
    }
    let counts = hosts.counts();
    let (broom, mut store) = hosts.into_parts();
    store.commit(&broom.snapshot()?)?;
    let (reads, writes) = (store.reads - before.0, store.writes - before.1);

    println!(
        "{} hosts in the database, {} others; {LOOKUPS} lookups, {found} of them found",
        keys.len(),
        strangers.len()
    );
    println!("reads of the database, and those in vain:");
    println!("  without a filter {LOOKUPS:>8} {:>8}", LOOKUPS - found);
    println!("  plain filter     {plain_reads:>8} {plain_in_vain:>8}");
    println!("  broom filter     {reads:>8} {:>8}", reads - found);
    println!(
        "the broom filter was wrong {} times; to adapt it read the database {} times more and wrote {writes} rows",
        counts.false_positives,
        reads - found - counts.false_positives
    );
    println!("filters: {} bytes plain, {} bytes broom", bytes.1, bytes.0);

    // Work that is given up half-way: the tables go back to the last commit, and so does the filter that was committed with them.
    let mut hosts = Guarded::new(broom, store);
    let some = keys.len().min(1000);
    for key in &keys[..some] {
        hosts.remove(*key)?;
    }
    let (_, mut store) = hosts.into_parts();
    let broom = Broom::restore(store.abort()?.ok_or("the database holds no filter")?)?;
    println!("after {some} removals that were given up the filter holds {} hosts", broom.len());

    // What was committed last is what is there: a new process takes up both.
    drop(store);
    let snapshot = Store::snapshot(&file)?.ok_or("the database holds no filter")?;
    let broom = Broom::restore(snapshot)?;
    let store = Store::open(&file, broom.hasher().clone())?;
    let mut hosts = Guarded::new(broom, store);
    println!("opened again: {} -> {:?}", keys[0], hosts.get(keys[0])?);
    Ok(())
}

/// Random numbers (SplitMix64), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A rank from 1 on; r with a probability of about 1 / r.
    fn zipf(&mut self, ranks: usize) -> usize {
        let uniform = self.next() as f64 / u64::MAX as f64;
        (((ranks + 1) as f64).powf(uniform) as usize).clamp(1, ranks)
    }
}
