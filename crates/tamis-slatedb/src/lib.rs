//! the keys of SlateDB's tables -> ribbon filters: a filter policy in place of the built-in Bloom filters.
//!
//! A get reads every table whose filter matches, newest first, until it finds the key. A wrong match is a read of a block that does
//! not have the key; on object storage that is a paid request. A ribbon filter of 11.2 bits per key errs as often as a Bloom filter
//! of 16. With 16 bits it errs about 1/30 as often.
//!
//! ```
//! use std::sync::Arc;
//! use slatedb::{Db, object_store::memory::InMemory};
//! use tamis_slatedb::Tamis;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let policy = Arc::new(Tamis::bits_per_key(16.0)?);
//! let db = Db::builder("db", Arc::new(InMemory::new())).with_filter_policies(vec![policy.clone()]).build().await?;
//! # db.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Give the same policy to all builders of one database: `Db::builder`, `CompactorBuilder`, `CompactionWorkerBuilder` and
//! `DbReader::builder`. A builder without it cannot use these filters and reads more; it answers right all the same.
//!
//! **A database with Bloom filters** keeps them: list both policies while tables of both kinds are there,
//! `vec![tamis, Arc::new(BloomFilterPolicy::new(10))]`. New tables then have both filters. With the policy alone, old tables are
//! read without a filter until compaction rewrites them.
//!
//! **Several policies.** A table is skipped if *any* of its filters rejects the key. The documentation of `with_filter_policies` in
//! SlateDB 0.18 says "only if every filter returns false". Its code skips at the first, and a test of this crate checks that.
//!
//! **Nothing is lost to bad bytes.** A filter that is cut, damaged, foreign or of a newer format matches everything, and
//! [`Counts::unreadable`] counts it. So does a filter under the name of another prefix extractor.
//!
//! What is *not* detected is the filter of another table under the same policy: the engine tells a policy the bytes of a filter, not
//! whose they are. The engine's own checksums and table names guard against it.

mod counters;
mod policy;
mod table;

pub use counters::Counts;
pub use policy::Tamis;

/// The example of the README runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
