//! mixed operations, merges, three restarts and a kill -> every read is right.
//!
//! Operation `i` follows from `i` alone. Every batch also writes how many operations there were, so that after a kill the
//! database itself says which state it must be in. 60,000 operations; with `TAMIS_SLOW` ten million.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use slatedb::WriteBatch;
use slatedb::object_store::local::LocalFileSystem;
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::database::{Compaction, Database, Policies};
use tamis_slatedb_bench::keys::{Random, key, mix, value};
use tamis_slatedb_bench::store::Store;

const FOLDER: &str = "TAMIS_SOAK_FOLDER";
const DONE: &[u8] = b"operations";
const BATCH: u64 = 50;
/// Batches from one table to the next.
const TABLE: u64 = 60;

fn operations() -> u64 {
    if std::env::var_os("TAMIS_SLOW").is_some() { 10_000_000 } else { 60_000 }
}

enum Operation {
    Put(u64),
    Delete(u64),
    Get(u64),
}

/// A tenth of the keys is half of the operations, and a fifth of all gets is of keys that never are.
fn operation(i: u64, keys: u64) -> Operation {
    let mut random = Random(mix(i));
    let keys = if random.below(2) == 0 { keys / 10 } else { keys };
    let number = random.below(keys);
    match random.below(10) {
        0..4 => Operation::Put(number),
        4 => Operation::Delete(number),
        5..9 => Operation::Get(number),
        _ => Operation::Get(number + 1_000_000_000),
    }
}

/// What the database must hold: for each key the operation that wrote it.
struct Oracle {
    keys: u64,
    written: Vec<Option<u64>>,
}

impl Oracle {
    fn new() -> Oracle {
        let keys = operations() / 30;
        Oracle { keys, written: vec![None; keys as usize] }
    }

    fn get(&self, number: u64) -> Option<bytes::Bytes> {
        self.written.get(number as usize).copied().flatten().map(|version| value(number, version))
    }

    /// Follows an operation.
    fn apply(&mut self, i: u64) -> Operation {
        let operation = operation(i, self.keys);
        match operation {
            Operation::Put(number) => self.written[number as usize] = Some(i),
            Operation::Delete(number) => self.written[number as usize] = None,
            Operation::Get(_) => {}
        }
        operation
    }
}

async fn open(folder: &str) -> Database {
    let store = Store::new(Arc::new(LocalFileSystem::new_with_prefix(folder).unwrap()));
    let policies: Policies = vec![Arc::new(Tamis::bits_per_key(10.0).unwrap())];
    Database::open(&store, &policies, Compaction::Tiered).await.unwrap()
}

/// Runs operations, checks every get, and calls `durable` with the number of those that are.
async fn run(database: &Database, oracle: &mut Oracle, from: u64, to: u64, durable: impl Fn(u64)) {
    for start in (from..to).step_by(BATCH as usize) {
        let end = (start + BATCH).min(to);
        let (mut batch, mut gets) = (WriteBatch::new(), vec![]);
        for i in start..end {
            match oracle.apply(i) {
                Operation::Put(number) => batch.put(key(number), value(number, i)),
                Operation::Delete(number) => batch.delete(key(number)),
                Operation::Get(number) => gets.push(number),
            }
        }
        batch.put(DONE, end.to_string());
        database.db.write(batch).await.unwrap();
        for number in gets {
            let found = database.db.get(key(number)).await.unwrap();
            assert_eq!(found, oracle.get(number), "key {number} after operation {end}");
        }
        if (start / BATCH).is_multiple_of(TABLE) {
            database.flush().await.unwrap();
            durable(end);
        }
    }
}

/// The process that is killed.
#[tokio::test]
#[ignore = "a part of the test below"]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let database = open(&folder).await;
    run(&database, &mut Oracle::new(), 0, u64::MAX / 2, |done| println!("done {done}")).await;
}

fn killed_after(folder: &str, operations: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["soak::child", "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let durable = |line: String| line.rsplit_once("done ").and_then(|(_, done)| done.parse::<u64>().ok());
    let done = lines.map_while(Result::ok).filter_map(durable).find(|done| *done >= operations);
    child.kill().unwrap();
    child.wait().unwrap();
    done.expect("the child went on until it was killed")
}

#[tokio::test]
async fn every_read_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let all = operations();
    let durable = killed_after(folder, all / 4);

    let mut database = open(folder).await;
    let done = database.db.get(DONE).await.unwrap().unwrap();
    let done: u64 = std::str::from_utf8(&done).unwrap().parse().unwrap();
    assert!(done >= durable, "{done} operations are left of {durable}");
    let mut oracle = Oracle::new();
    for i in 0..done {
        oracle.apply(i);
    }
    let mut from = done;
    let mut merged = false;
    for part in 2..=4 {
        verify(&database, &oracle).await;
        let to = (all / 4 * part).max(from);
        run(&database, &mut oracle, from, to, |_| ()).await;
        merged |= !database.db.manifest().compacted().is_empty();
        database.db.close().await.unwrap();
        database = open(folder).await;
        from = to;
    }
    verify(&database, &oracle).await;
    assert!(merged && database.spared() > 0);
    database.db.close().await.unwrap();
}

/// Reads every key.
async fn verify(database: &Database, oracle: &Oracle) {
    for number in 0..oracle.keys {
        assert_eq!(database.db.get(key(number)).await.unwrap(), oracle.get(number), "key {number}");
    }
}
