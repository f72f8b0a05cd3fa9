//! overwrites, deletes, a restart, a merge -> every answer is checked, and wasted reads are counted in each state.

use std::sync::Arc;

use slatedb::WriteBatch;
use slatedb::object_store::memory::InMemory;
use tamis_slatedb_bench::database::{Compaction, Database};
use tamis_slatedb_bench::keys::{Random, key, value};
use tamis_slatedb_bench::store::Store;

use crate::{Bench, Failure, contenders};

/// Every tenth key is overwritten, every twentieth deleted after that.
fn expected(number: u64, n: u64) -> Option<bytes::Bytes> {
    let exists = number < n && !number.is_multiple_of(20);
    exists.then(|| value(number, u64::from(number.is_multiple_of(10))))
}

/// Wasted reads of gets: of keys that exist, and of those that do not, half of which were deleted. And reads per get.
async fn wasted(database: &Database, store: &Store, bench: &Bench) -> Result<String, Failure> {
    let (mut random, mut cells) = (Random(17), vec![]);
    for exist in [true, false] {
        let (wasted, reads) = (database.wasted(), store.reads());
        let mut left = bench.gets;
        while left > 0 {
            let number = match exist {
                true => random.below(bench.n),
                false if left.is_multiple_of(2) => random.below(bench.n / 20) * 20,
                false => bench.n + random.below(bench.n),
            };
            if exist == expected(number, bench.n).is_some() {
                if database.db.get(key(number)).await? != expected(number, bench.n) {
                    return Err(format!("key {number}: wrong answer").into());
                }
                left -= 1;
            }
        }
        let reads = (store.reads() - reads) as f64 / bench.gets as f64;
        cells.push(format!("{} | {reads:.4}", database.wasted() - wasted));
    }
    Ok(cells.join(" | "))
}

pub(crate) async fn table(bench: &Bench) -> Result<(), Failure> {
    println!("### Overwrites and deletes, a restart, and a merge\n");
    println!("A tenth of the keys is overwritten in a further run, a twentieth deleted in another.\n");
    println!(
        "| filter | state | runs | wasted reads, existing | reads per get | wasted reads, deleted or absent | reads per get |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    let names = ["Bloom 10, built in", "Bloom 16, built in", "ribbon, 10 bits", "ribbon, 16 bits"];
    for (name, policies) in contenders()?.into_iter().filter(|(name, _)| names.contains(name)) {
        let store = Store::new(Arc::new(InMemory::new()));
        let database = Database::open(&store, &policies, Compaction::Off).await?;
        for run in 0..bench.runs {
            database.put(bench.run(run), 0).await?;
            database.flush().await?;
        }
        database.put((0..bench.n).step_by(10), 1).await?;
        database.flush().await?;
        let mut batch = WriteBatch::new();
        (0..bench.n).step_by(20).for_each(|number| batch.delete(key(number)));
        database.db.write(batch).await?;
        database.flush().await?;
        println!("| {name} | written | {} | {} |", database.runs(), wasted(&database, &store, bench).await?);
        database.db.close().await?;
        let database = Database::open(&store, &policies, Compaction::Off).await?;
        println!("| {name} | after a restart | {} | {} |", database.runs(), wasted(&database, &store, bench).await?);
        database.db.close().await?;
        let database = Database::open(&store, &policies, Compaction::All).await?;
        database.merged(1).await?;
        println!("| {name} | merged | {} | {} |", database.runs(), wasted(&database, &store, bench).await?);
        database.db.close().await?;
    }
    println!();
    Ok(())
}
