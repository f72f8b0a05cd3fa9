//! A database in memory, before and after: what its filters take, and how often a get reads a table for nothing.
//!
//! `cargo run --release --example memory`

use std::sync::Arc;

use slatedb::config::{FlushOptions, FlushType};
use slatedb::object_store::memory::InMemory;
use slatedb::{BloomFilterPolicy, Db, FilterPolicy, Settings, db_stats};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};
use tamis_slatedb::Tamis;

const TABLES: u64 = 8;
const KEYS: u64 = 16_000;

fn key(number: u64) -> String {
    // Every table has keys from the whole range.
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

async fn show(name: &str, policy: Arc<dyn FilterPolicy>) -> Result<(), Box<dyn std::error::Error>> {
    let recorder = Arc::new(DefaultMetricsRecorder::new());
    let db = Db::builder("db", Arc::new(InMemory::new()))
        .with_settings(Settings { compactor_options: None, ..Settings::default() })
        .with_metrics_recorder(recorder.clone())
        .with_filter_policies(vec![policy])
        .build()
        .await?;
    for table in 0..TABLES {
        for number in (table..KEYS).step_by(TABLES as usize) {
            db.put(key(number), number.to_string()).await?;
        }
        db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }
    for number in 0..KEYS {
        assert_eq!(db.get(key(number)).await?.as_deref(), Some(number.to_string().as_bytes()));
    }
    let bytes: u64 = db.manifest().all_sst_views().map(|view| view.sst.info.filter_len).sum();
    let metrics = recorder.snapshot();
    let wasted: u64 = metrics
        .by_name(db_stats::SST_FILTER_FALSE_POSITIVE_COUNT)
        .iter()
        .map(|metric| if let MetricValue::Counter(count) = metric.value { count } else { 0 })
        .sum();
    let bits = 8.0 * bytes as f64 / KEYS as f64;
    println!("{name}: {bits:.1} bits per key, {wasted} reads for nothing in {KEYS} gets");
    db.close().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    show("before, Bloom filters of 10 bits", Arc::new(BloomFilterPolicy::new(10))).await?;
    show("after, ribbon filters at their rate", Arc::new(Tamis::fpr(0.0084)?)).await?;
    show("after, ribbon filters of 11 bits", Arc::new(Tamis::bits_per_key(11.0)?)).await
}
