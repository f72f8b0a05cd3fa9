//! a store that fails -> the engine's errors: no panic, no key lost, and all is well when the store is.

use std::sync::Arc;

use slatedb::object_store::local::LocalFileSystem;
use slatedb::{Db, FilterPolicy};
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::database::{Compaction, Database, Policies};
use tamis_slatedb_bench::keys::{key, value};
use tamis_slatedb_bench::store::{Fault, Store};

use super::engine::{fill, memory, tamis};

const KEYS: u64 = 1200;

/// Reads some keys of every table: those that are read are right, and the number of errors is returned.
async fn errors(db: &Db) -> u64 {
    let mut errors = 0;
    for number in (0..KEYS).step_by(101) {
        match db.get(key(number)).await {
            Ok(found) => assert_eq!(found, Some(value(number, 0)), "{number}"),
            Err(_) => errors += 1,
        }
    }
    errors
}

#[tokio::test]
async fn reads_that_fail_are_errors_and_never_no() {
    for fault in [Fault::Reads, Fault::Short, Fault::Flipped] {
        let store = memory();
        fill(&store, &tamis()).await;
        // From the start, when filters are to be read, and later, when they are cached and blocks are to be read.
        for warm in [false, true] {
            let policy = Arc::new(Tamis::fpr(1e-6).unwrap());
            let policies: Policies = vec![policy.clone() as Arc<dyn FilterPolicy>];
            let database = Database::open(&store, &policies, Compaction::Off).await.unwrap();
            if warm {
                assert_eq!(errors(&database.db).await, 0);
            }
            store.fail(fault);
            assert!(errors(&database.db).await > 0, "{fault:?}, {warm}");
            store.fail(Fault::None);
            assert_eq!(errors(&database.db).await, 0, "{fault:?}, {warm}");
            // Bad blocks do not pass the engine's checksum, and do not reach the policy.
            assert_eq!(policy.counts().unreadable, 0);
            database.db.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap()));
    fill(&store, &tamis()).await;
    let database = Database::open(&store, &tamis(), Compaction::Off).await.unwrap();
    store.fail(Fault::Writes);
    let written = async {
        database.put(KEYS..2 * KEYS, 0).await?;
        database.flush().await
    };
    assert!(written.await.is_err());
    store.fail(Fault::None);
    // The engine closes a database that cannot write; what was there is there.
    let _ = database.db.close().await;
    let database = Database::open(&store, &tamis(), Compaction::All).await.unwrap();
    assert_eq!(errors(&database.db).await, 0);
    database.put(KEYS..2 * KEYS, 0).await.unwrap();
    database.flush().await.unwrap();
    database.merged(1).await.unwrap();
    for number in 0..2 * KEYS {
        assert_eq!(database.db.get(key(number)).await.unwrap(), Some(value(number, 0)), "{number}");
    }
    database.db.close().await.unwrap();
}
