//! An experiment, simulated: filters that also know the keys of all older tables, and so never waste a read of an existing key.
//!
//! The engine reads tables from the newest on. A get of a key in table `t` queries the filters of newer tables, and to each of those `t`
//! is older. So if every filter excludes the keys of older tables, none of them matches. Merges only make older tables fewer.
//! What it costs is at the writer: whenever a table is written, all keys of older tables are needed. They are read again from the
//! tables, or their digests are kept in memory, 16 bytes for each.

use std::sync::Arc;
use std::time::Instant;

use tamis::{Digest, Effort, Filter, Hasher, KeyType, Kind, Options};
use tamis_slatedb_bench::keys::{Random, key};

use crate::{Bench, Failure, bloom_rate};

/// What keys, values and the rest take in a table.
const BYTES_OF_A_KEY: f64 = 110.0;

struct Found {
    bits: f64,
    existing: u64,
    absent: u64,
    /// Nanoseconds of building for each key that is written.
    build: f64,
}

/// Builds a filter per table, and counts matches of tables that a get would read in vain.
fn simulate(
    bench: &Bench,
    tables: &[Arc<Vec<Digest>>],
    options: Options<'static>,
    know: bool,
) -> Result<Found, Failure> {
    let hasher = Hasher::seeded(0);
    let start = Instant::now();
    let mut filters: Vec<Filter> = vec![];
    let mut older: Vec<Digest> = vec![];
    for table in tables {
        // The oldest one has no older ones, and there is nothing to be exact about.
        let plain = know && older.is_empty();
        let options = if plain { Options::default().fpr(bloom_rate(10.0)) } else { options.clone() };
        let builder = options.hasher(hasher.clone()).build_digests(table.clone(), KeyType::Bytes);
        let builder = if know && !plain { builder.exclude_digests(older.clone()) } else { builder };
        filters.push(builder.finish()?);
        older.extend(table.iter());
    }
    let build = start.elapsed().as_nanos() as f64 / bench.n as f64;
    let bytes: usize = filters.iter().map(|filter| filter.as_bytes().len()).sum();
    let mut random = Random(5);
    let mut wasted = |first: u64| -> Result<u64, Failure> {
        let mut wasted = 0;
        for _ in 0..bench.gets {
            let number = random.below(bench.n);
            let digest = hasher.bytes(&key(first + number));
            // Down to the table with the key, or through all of them.
            let newer = if first == 0 { (number % bench.runs) as usize + 1 } else { 0 };
            for filter in &filters[newer..] {
                wasted += u64::from(filter.contains_digest(digest)?);
            }
        }
        Ok(wasted)
    };
    let (existing, absent) = (wasted(0)?, wasted(bench.n)?);
    Ok(Found { bits: 8.0 * bytes as f64 / bench.n as f64, existing, absent, build })
}

pub(crate) fn table(bench: &Bench) -> Result<(), Failure> {
    let hasher = Hasher::seeded(0);
    let tables: Vec<Arc<Vec<Digest>>> = (0..bench.runs)
        .map(|run| {
            let mut digests: Vec<Digest> = bench.run(run).map(|number| hasher.bytes(&key(number))).collect();
            digests.sort_unstable();
            Arc::new(digests)
        })
        .collect();
    println!("### Tables that know their neighbours, simulated\n");
    println!(
        "Wasted reads of {} gets. The keys of older tables come from the tables, or from the writer's memory.\n",
        bench.gets
    );
    println!(
        "| filter | bits per key | wasted reads, existing | wasted reads, absent | build, ns per key | bytes read again per key written | or writer's bytes per key |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let ribbon = |bits| Options::default().kind(Kind::Ribbon).effort(Effort::Smallest).threads(1).bits_per_key(bits);
    let steered = || Options::default().threads(1);
    let row = |name: &str, options, know| -> Result<f64, Failure> {
        let Found { bits, existing, absent, build } = simulate(bench, &tables, options, know)?;
        // Half of all other tables are older, on average.
        let again = (bench.runs - 1) as f64 / 2.0 * BYTES_OF_A_KEY;
        let cost = if know { format!("{again:.0} | 16") } else { "0 | 0".into() };
        println!("| {name} | {bits:.2} | {existing} | {absent} | {build:.0} | {cost} |");
        Ok(bits)
    };
    let rates = [("Bloom 10", bloom_rate(10.0)), ("a ribbon of 10 bits", (-9.9f64).exp2())];
    let knowing = rates.map(|(whose, rate)| (format!("neighbours, rate of {whose}"), steered().fpr(rate)));
    for (name, options) in [("neighbours, exact".to_string(), steered().exact())].into_iter().chain(knowing) {
        let bits = row(&name, options, true)?;
        row("ribbon, the same size", ribbon(bits), false)?;
    }
    for bits in [10.0, 11.0, 16.0, 20.0] {
        row(&format!("ribbon, {bits} bits"), ribbon(bits), false)?;
    }
    println!();
    Ok(())
}
