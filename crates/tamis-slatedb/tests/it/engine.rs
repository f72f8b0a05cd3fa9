//! the policy in the engine: restarts, merges, readers, prefixes, and tables of both policies in one database.

use std::ops::RangeFull;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::object_store::memory::InMemory;
use slatedb::{
    BloomFilterPolicy, Db, DbReader, Filter, FilterBuilder, FilterPolicy, FilterQuery, FilterTarget, RowEntry,
};
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::database::{Compaction, Database, PATH, Policies};
use tamis_slatedb_bench::keys::{key, value};
use tamis_slatedb_bench::store::Store;

use super::First;

const RUNS: u64 = 6;
const KEYS: u64 = 1200;

pub(super) fn memory() -> Arc<Store> {
    Store::new(Arc::new(InMemory::new()))
}

pub(super) fn tamis() -> Policies {
    vec![Arc::new(Tamis::fpr(1e-6).unwrap())]
}

fn bloom() -> Policies {
    vec![Arc::new(BloomFilterPolicy::new(10))]
}

/// Key `i` goes to run `i % RUNS`.
pub(super) async fn fill(store: &Arc<Store>, policies: &Policies) {
    let database = Database::open(store, policies, Compaction::Off).await.unwrap();
    for run in 0..RUNS {
        database.put((run..KEYS).step_by(RUNS as usize), 0).await.unwrap();
        database.flush().await.unwrap();
    }
    database.db.close().await.unwrap();
}

/// Reads all keys, and as many that are not there.
async fn check(db: &Db) {
    for number in 0..KEYS {
        assert_eq!(db.get(key(number)).await.unwrap(), Some(value(number, 0)), "{number}");
        assert_eq!(db.get(key(number + KEYS)).await.unwrap(), None, "{number}");
    }
}

#[tokio::test]
async fn wasted_reads_end_with_the_policy() {
    let mut wasted = vec![];
    for policies in [vec![Arc::new(BloomFilterPolicy::new(4)) as Arc<dyn FilterPolicy>], tamis()] {
        let store = memory();
        fill(&store, &policies).await;
        for compaction in [Compaction::Off, Compaction::All] {
            let database = Database::open(&store, &policies, compaction).await.unwrap();
            if compaction == Compaction::All {
                database.merged(1).await.unwrap();
            }
            check(&database.db).await;
            wasted.push(database.wasted());
            assert!(database.spared() > KEYS / 2);
            database.db.close().await.unwrap();
        }
    }
    assert!(wasted[0] > 500 && wasted[1] > 50 && wasted[2..] == [0, 0], "{wasted:?}");
}

/// Tables under both policies, in turn, and then all of them rewritten.
#[tokio::test]
async fn tables_of_both_policies_are_one_database() {
    let store = memory();
    fill(&store, &bloom()).await;
    let policy = Arc::new(Tamis::fpr(1e-6).unwrap());
    let both: Policies = vec![policy.clone(), Arc::new(BloomFilterPolicy::new(10))];
    let alone: Policies = vec![policy.clone()];

    // With the policy alone, old tables are read without a filter.
    let database = Database::open(&store, &alone, Compaction::Off).await.unwrap();
    check(&database.db).await;
    assert_eq!((database.spared(), policy.counts().opened), (0, 0));
    // A new table has one, next to the old ones.
    database.put(0..KEYS / 2, 0).await.unwrap();
    database.flush().await.unwrap();
    check(&database.db).await;
    assert_eq!(policy.counts().built, 1);
    database.db.close().await.unwrap();

    // With both, each table has the filter it was written with.
    let database = Database::open(&store, &both, Compaction::Off).await.unwrap();
    check(&database.db).await;
    assert!(database.spared() > RUNS * KEYS / 2 && policy.counts().opened == 1, "{:?}", policy.counts());
    database.db.close().await.unwrap();

    // What a merge writes has the filters of the policies that merged it.
    let database = Database::open(&store, &both, Compaction::All).await.unwrap();
    database.merged(1).await.unwrap();
    check(&database.db).await;
    database.db.close().await.unwrap();
    for policies in [&alone, &bloom(), &both] {
        let database = Database::open(&store, policies, Compaction::Off).await.unwrap();
        check(&database.db).await;
        assert!(database.spared() > KEYS / 2);
        database.db.close().await.unwrap();
    }
    assert_eq!(policy.counts().unreadable, 0);
}

/// A filter with one answer to every key.
#[derive(Clone)]
struct Always(bool);

impl FilterPolicy for Always {
    fn name(&self) -> &str {
        if self.0 { "yes" } else { "no" }
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(self.clone())
    }

    fn decode(&self, _data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(self.clone())
    }

    fn estimate_size(&self, _num_keys: usize) -> usize {
        1
    }
}

impl FilterBuilder for Always {
    fn add_entry(&mut self, _entry: &RowEntry) {}

    fn build(&mut self) -> Arc<dyn Filter> {
        Arc::new(self.clone())
    }
}

impl Filter for Always {
    fn might_match(&self, query: &FilterQuery) -> bool {
        self.0 || !matches!(query.target, FilterTarget::Point(_))
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_u8(0);
    }

    fn size(&self) -> usize {
        1
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(self.clone())
    }
}

/// What the documentation of `with_filter_policies` says otherwise: one filter that rejects is enough. A policy that
/// answers wrongly loses keys whatever the others say; next to one that knows nothing, ours works as if alone.
#[tokio::test]
async fn a_table_is_skipped_if_any_filter_rejects() {
    let tamis = || Arc::new(Tamis::fpr(1e-6).unwrap());
    let yes: Policies = vec![Arc::new(Always(true)), tamis(), Arc::new(Always(true))];
    let store = memory();
    fill(&store, &yes).await;
    let database = Database::open(&store, &yes, Compaction::Off).await.unwrap();
    check(&database.db).await;
    assert_eq!(database.wasted(), 0);
    let read = store.reads();
    for number in KEYS..2 * KEYS {
        database.db.get(key(number)).await.unwrap();
    }
    assert_eq!(store.reads(), read);
    database.db.close().await.unwrap();

    let no: Policies = vec![Arc::new(Always(false)), tamis()];
    let store = memory();
    fill(&store, &no).await;
    let database = Database::open(&store, &no, Compaction::Off).await.unwrap();
    for number in 0..KEYS {
        assert_eq!(database.db.get(key(number)).await.unwrap(), None);
    }
    database.db.close().await.unwrap();
}

/// Readers with the policy, with another one and without any, while a writer goes on.
#[tokio::test]
async fn readers_share_a_database() {
    let store = memory();
    fill(&store, &tamis()).await;
    let database = Database::open(&store, &tamis(), Compaction::All).await.unwrap();
    let policy = Arc::new(Tamis::fpr(1e-6).unwrap());
    let mut readers = vec![];
    for policies in [vec![policy.clone() as Arc<dyn FilterPolicy>], vec![policy.clone()], bloom(), vec![]] {
        readers.push(DbReader::builder(PATH, store.clone()).with_filter_policies(policies).build().await.unwrap());
    }
    for number in 0..KEYS {
        if number % 100 == 0 {
            database.put(2 * KEYS + number..2 * KEYS + number + 100, 0).await.unwrap();
            database.flush().await.unwrap();
        }
        for reader in &readers {
            assert_eq!(reader.get(key(number)).await.unwrap(), Some(value(number, 0)), "{number}");
            assert_eq!(reader.get(key(KEYS + number)).await.unwrap(), None, "{number}");
        }
    }
    assert!(policy.counts().opened > 0 && policy.counts().unreadable == 0);
    for reader in readers {
        reader.close().await.unwrap();
    }
    database.db.close().await.unwrap();
}

/// One policy object in two databases.
#[tokio::test]
async fn databases_share_a_policy() {
    let (policies, stores) = (tamis(), [memory(), memory()]);
    let numbers = |at: u64| at * KEYS..(at + 1) * KEYS;
    for (at, store) in (0..).zip(&stores) {
        let database = Database::open(store, &policies, Compaction::Off).await.unwrap();
        database.put(numbers(at), 0).await.unwrap();
        database.flush().await.unwrap();
        database.db.close().await.unwrap();
    }
    for (at, store) in (0..).zip(&stores) {
        let database = Database::open(store, &policies, Compaction::Off).await.unwrap();
        for number in 0..2 * KEYS {
            let expected = numbers(at).contains(&number).then(|| value(number, 0));
            assert_eq!(database.db.get(key(number)).await.unwrap(), expected, "{at}, {number}");
        }
        database.db.close().await.unwrap();
    }
}

async fn scanned(database: &Database, prefix: &str) -> usize {
    let mut rows = database.db.scan_prefix::<_, RangeFull>(prefix, ..).await.unwrap();
    let mut count = 0;
    while rows.next().await.unwrap().is_some() {
        count += 1;
    }
    count
}

#[tokio::test]
async fn scans_of_a_prefix_skip_tables() {
    let four =
        || -> Policies { vec![Arc::new(Tamis::fpr(1e-6).unwrap().with_prefix_extractor(Arc::new(First(4, "four"))))] };
    let eight =
        || -> Policies { vec![Arc::new(Tamis::fpr(1e-6).unwrap().with_prefix_extractor(Arc::new(First(8, "eight"))))] };
    let store = memory();
    let database = Database::open(&store, &four(), Compaction::Off).await.unwrap();
    // Every table has keys before and after all prefixes.
    for run in 0..8 {
        for name in ["aaaa", &format!("m{run:03}"), "zzzz"] {
            for i in 0..20 {
                database.db.put(format!("{name}-{run}-{i}"), Bytes::from_static(b"v")).await.unwrap();
            }
        }
        database.flush().await.unwrap();
    }
    database.db.close().await.unwrap();
    for (policies, skips) in [(four(), true), (tamis(), false), (eight(), false), (vec![], false)] {
        let database = Database::open(&store, &policies, Compaction::Off).await.unwrap();
        assert_eq!(scanned(&database, "m003").await, 20);
        assert_eq!(scanned(&database, "m00").await, 160);
        assert_eq!(scanned(&database, "aaaa-7").await, 20);
        assert_eq!(scanned(&database, "absent").await, 0);
        assert_eq!(database.spared() > 0, skips);
        database.db.close().await.unwrap();
    }
}
