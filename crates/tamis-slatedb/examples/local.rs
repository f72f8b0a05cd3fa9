//! A database on the local file system that was written with Bloom filters, and is opened with ribbon filters from then on.
//!
//! `cargo run --release --example local [FOLDER]`

use std::sync::Arc;

use slatedb::config::{FlushOptions, FlushType};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{BloomFilterPolicy, Db, DbReader};
use tamis_slatedb::Tamis;

const FLUSH: FlushOptions = FlushOptions { flush_type: FlushType::MemTable };

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = std::env::args().nth(1).map_or(temporary.path().to_path_buf(), Into::into);
    std::fs::create_dir_all(&folder)?;
    let store = Arc::new(LocalFileSystem::new_with_prefix(&folder)?);

    // Before: the engine's default, Bloom filters of 10 bits.
    let db = Db::open("db", store.clone()).await?;
    for number in 0..5000u64 {
        db.put(number.to_be_bytes(), b"before").await?;
    }
    db.flush_with_options(FLUSH).await?;
    db.close().await?;

    // After: new tables have ribbon filters. The old policy stays in the list while tables of its kind are there.
    let policy = Arc::new(Tamis::bits_per_key(11.0)?);
    let db = Db::builder("db", store.clone())
        .with_filter_policies(vec![policy.clone(), Arc::new(BloomFilterPolicy::new(10))])
        .build()
        .await?;
    for number in 4000..9000u64 {
        db.put(number.to_be_bytes(), b"after").await?;
    }
    db.flush_with_options(FLUSH).await?;
    assert_eq!(db.get(17u64.to_be_bytes()).await?.as_deref(), Some(&b"before"[..]));
    assert_eq!(db.get(4017u64.to_be_bytes()).await?.as_deref(), Some(&b"after"[..]));
    assert_eq!(db.get(9017u64.to_be_bytes()).await?, None);

    // A reader has the same policies.
    let reader = DbReader::builder("db", store).with_filter_policies(vec![policy.clone()]).build().await?;
    assert_eq!(reader.get(8999u64.to_be_bytes()).await?.as_deref(), Some(&b"after"[..]));
    reader.close().await?;
    db.close().await?;
    println!("{:?}", policy.counts());
    Ok(())
}
