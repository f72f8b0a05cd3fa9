//! the same keys, written and merged under each policy in turn -> times of both, as medians.

use std::sync::Arc;
use std::time::Instant;

use slatedb::object_store::memory::InMemory;
use tamis_slatedb_bench::database::{Compaction, Database, Policies};
use tamis_slatedb_bench::store::Store;

use crate::{Bench, Failure, contenders};

/// Seconds of processor time that this process used, all threads together. On a shared machine they say more than the clock.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit_once(") ").map_or(vec![], |(_, rest)| rest.split(' ').collect());
    // User and system time, in hundredths.
    fields
        .get(11..13)
        .map_or(0.0, |times| times.iter().filter_map(|time| time.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// Elapsed time and processor time of flushing all runs, and of merging them.
async fn times(bench: &Bench, policies: &Policies) -> Result<[f64; 4], Failure> {
    let store = Store::new(Arc::new(InMemory::new()));
    let database = Database::open(&store, policies, Compaction::Off).await?;
    let (mut flush, mut used) = (0.0, 0.0);
    for run in 0..bench.runs {
        database.put(bench.run(run), 0).await?;
        let (start, before) = (Instant::now(), processor());
        database.flush().await?;
        flush += start.elapsed().as_secs_f64();
        used += processor() - before;
    }
    database.db.close().await?;
    let database = Database::open(&store, policies, Compaction::All).await?;
    let (start, before) = (Instant::now(), processor());
    database.merged(1).await?;
    let merge = [start.elapsed().as_secs_f64(), processor() - before];
    database.db.close().await?;
    Ok([flush, used, merge[0], merge[1]])
}

pub(crate) async fn table(bench: &Bench) -> Result<(), Failure> {
    let contenders = contenders()?;
    let mut rounds = vec![vec![]; contenders.len()];
    for _ in 0..bench.rounds {
        for ((_, policies), found) in contenders.iter().zip(&mut rounds) {
            found.push(times(bench, policies).await?);
        }
    }
    println!("### Writing\n\nMedians of {} rounds, in seconds; processor time is of all threads.\n", bench.rounds);
    println!("| filter | flush | its processor time | merge of all runs | its processor time |\n|---|--:|--:|--:|--:|");
    for ((name, _), found) in contenders.iter().zip(&rounds) {
        let median = |column: usize| {
            let mut values: Vec<f64> = found.iter().map(|times| times[column]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let cells: Vec<String> = (0..4).map(|column| format!("{:.2}", median(column))).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}
