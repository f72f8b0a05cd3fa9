//! a store and policies -> a database with counters, whose filters are cached and whose blocks are not.

use std::sync::Arc;
use std::time::Duration;

use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView, SourceId,
};
use slatedb::config::{CompactionWorkerOptions, CompactorOptions, FlushOptions, FlushType};
use slatedb::db_cache::SplitCache;
use slatedb::db_cache::moka::MokaCache;
use slatedb::{CompactorBuilder, Db, Error, FilterPolicy, Settings, WriteBatch, db_stats};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

use crate::keys::{key, value};
use crate::store::Store;

/// The policies of a database.
pub type Policies = Vec<Arc<dyn FilterPolicy>>;

/// When tables are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// Never: all tables stay as they were flushed.
    Off,
    /// All of them into one run, whenever there are two.
    All,
    /// As the engine does, four runs or more at a time.
    Tiered,
}

/// A database, and the counters of its engine.
pub struct Database {
    /// The database.
    pub db: Db,
    recorder: Arc<DefaultMetricsRecorder>,
}

/// Where databases are in their stores.
pub const PATH: &str = "db";

const POLL: Duration = Duration::from_millis(20);

/// The settings of all databases here: no flush, no merge and no retry that was not called for.
pub fn settings() -> Settings {
    Settings {
        flush_interval: None,
        manifest_poll_interval: POLL,
        l0_max_ssts: 256,
        l0_max_ssts_per_key: 256,
        l0_sst_size_bytes: 1 << 30,
        max_unflushed_bytes: 4 << 30,
        min_filter_keys: 0,
        compactor_options: None,
        garbage_collector_options: None,
        object_store_max_retries: Some(0),
        ..Settings::default()
    }
}

fn compactor_options() -> CompactorOptions {
    let worker = CompactionWorkerOptions { compactions_poll_interval: POLL, ..CompactionWorkerOptions::default() };
    CompactorOptions {
        poll_interval: POLL,
        commit_compacted_interval: POLL,
        worker: Some(worker),
        object_store_max_retries: Some(0),
        ..CompactorOptions::default()
    }
}

/// Merges everything.
struct Everything;

impl CompactionScheduler for Everything {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let busy = state.compactions().is_some_and(|all| all.recent_compactions().any(|one| one.active()));
        let manifest = state.manifest();
        let tables = manifest.l0().iter().map(|view| SourceId::SstView(view.id));
        let runs = manifest.compacted().iter().map(|run| SourceId::SortedRun(run.id));
        let sources: Vec<_> = tables.chain(runs).collect();
        let last = manifest.compacted().last().map_or(0, |run| run.id);
        if busy || sources.len() < 2 { vec![] } else { vec![CompactionSpec::new(sources, last)] }
    }
}

impl CompactionSchedulerSupplier for Everything {
    fn compaction_scheduler(&self, _options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        Box::new(Everything)
    }
}

impl Database {
    /// Opens or creates the database of a store.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn open(store: &Arc<Store>, policies: &Policies, compaction: Compaction) -> Result<Database, Error> {
        let recorder = Arc::new(DefaultMetricsRecorder::new());
        let cache = SplitCache::new().with_meta_cache(Some(Arc::new(MokaCache::new()))).build();
        let mut builder = Db::builder(PATH, store.clone())
            .with_settings(settings())
            .with_metrics_recorder(recorder.clone())
            .with_db_cache(Arc::new(cache), 0)
            .with_filter_policies(policies.clone());
        if compaction != Compaction::Off {
            let mut compactor = CompactorBuilder::new(PATH, store.clone())
                .with_options(compactor_options())
                .with_filter_policies(policies.clone());
            if compaction == Compaction::All {
                compactor = compactor.with_scheduler_supplier(Arc::new(Everything));
            }
            builder = builder.with_compactor_builder(compactor);
        }
        Ok(Database { db: builder.build().await?, recorder })
    }

    /// Writes the keys with these numbers.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn put(&self, numbers: impl IntoIterator<Item = u64>, version: u64) -> Result<(), Error> {
        let mut numbers = numbers.into_iter().peekable();
        while numbers.peek().is_some() {
            let mut batch = WriteBatch::new();
            for number in numbers.by_ref().take(1000) {
                batch.put(key(number), value(number, version));
            }
            self.db.write(batch).await?;
        }
        Ok(())
    }

    /// Makes a table of what was written since the last one.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn flush(&self) -> Result<(), Error> {
        self.db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await
    }

    /// Waits until the database has at most this many runs.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub async fn merged(&self, runs: usize) -> Result<(), Error> {
        loop {
            self.db.refresh_manifest().await?;
            if self.runs() <= runs {
                return Ok(());
            }
            tokio::time::sleep(POLL / 4).await;
        }
    }

    /// How many runs a get may have to read.
    pub fn runs(&self) -> usize {
        let manifest = self.db.manifest();
        manifest.l0().len() + manifest.compacted().len()
    }

    /// The bytes of all filter blocks, with all that the engine puts around a filter.
    pub fn filter_bytes(&self) -> u64 {
        self.db.manifest().all_sst_views().map(|view| view.sst.info.filter_len).sum()
    }

    /// The engine's count of tables that were read for a key which they do not have.
    pub fn wasted(&self) -> u64 {
        self.counter(db_stats::SST_FILTER_FALSE_POSITIVE_COUNT)
    }

    /// The engine's count of tables that a filter spared.
    pub fn spared(&self) -> u64 {
        self.counter(db_stats::SST_FILTER_NEGATIVE_COUNT)
    }

    fn counter(&self, name: &str) -> u64 {
        let count = |value: &MetricValue| if let MetricValue::Counter(count) = value { *count } else { 0 };
        self.recorder.snapshot().by_name(name).iter().map(|metric| count(&metric.value)).sum()
    }
}
