//! keys -> a few bits each -> yes or no: membership filters that match no excluded key.
//!
//! A filter uses a few bits per key to tell whether a key is in a set. It matches every member, no excluded key, and unlisted
//! keys at a rate that you choose.
//!
//! ```
//! let filter = tamis::build(["ads.example", "spam.example"]).fpr(0.01).finish()?;
//! assert!(filter.contains("spam.example")?);
//!
//! let bytes = filter.as_bytes().to_vec(); // to disk, into a message, into the program itself
//! let blocked = tamis::Filter::open(bytes)?.into_typed::<str>()?; // checks the key type once
//! assert!(blocked.contains("ads.example")); // a `bool`
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! [`Filter::save`] writes a file, [`Filter::read`] opens it. [`stream`]`().start()` takes keys one by one, and [`Options`] is one
//! policy for many filters.
//!
//! **Excluded keys** never match ([`FilterBuilder::exclude`]):
//!
//! ```
//! let popular = ["news.example", "mail.example"];
//! let filter = tamis::build(["ads.example", "spam.example"]).exclude(popular).fpr(0.01).finish()?;
//! assert!(!filter.contains("news.example")? && !filter.contains("mail.example")?);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Exact** filters are the smallest, for programs that query only members and excluded keys ([`FilterBuilder::exact`]):
//!
//! ```
//! let filter = tamis::build(0..1000).exclude(1000..100_000).exact().finish()?;
//! assert!(filter.contains(7)? && !filter.contains(7000)?);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Patches** make a filter of yesterday answer as the lists of today say ([`Filter::diff`]):
//!
//! ```
//! let filter = tamis::build(0..1000).exclude(1000..9000).exact().finish()?;
//! let mut diff = filter.diff()?;
//! (1..1000).try_for_each(|key| diff.push(key))?;
//! (1000..9000).chain([0]).try_for_each(|key| diff.exclude(key))?;
//! let today = filter.with_patches([diff.finish()?])?;
//! assert!(!today.contains(0)? && today.contains(1)?);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Workloads** are expected queries with their weights. The filter spends its bits on the frequent ones
//! ([`FilterBuilder::workload`]):
//!
//! ```
//! let queries = (1000..3000u64).map(|key| (key, 1e6 / key as f64));
//! let filter = tamis::build(0..1000u64).workload(queries).bits_per_key(10.0).finish()?;
//! assert!(filter.contains(7)?);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Maps** store a value for every key ([`maps`]):
//!
//! ```
//! let map = tamis::map([("ann", 30u64), ("bob", 41)]).finish()?;
//! assert_eq!(map.get_u64("bob")?, Some(41));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Set indexes** tell which of many sets hold a key ([`sets`](mod@sets)):
//!
//! ```
//! let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).finish()?;
//! assert_eq!(index.find("ann")?.len(), 2);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Adaptive filters** reject a false positive once it is reported ([`adaptive`]):
//!
//! ```
//! use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory};
//! let (mut filter, mut map) = (Broom::with_capacity(1000).fpr(0.01).build::<str>()?, Memory::new());
//! filter.insert("ann", &mut map)?;
//! assert!(filter.contains("ann")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Tables** are hash maps that read one bucket per get, for storage that is slow to read ([`table`]):
//!
//! ```
//! let mut ages = tamis::table::Table::new()?;
//! ages.insert("ann", 30)?;
//! assert_eq!(ages.get("ann")?, Some(30));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Levels** tell which sorted run of a log-structured store holds a key, so that a get reads one run ([`lsm`]):
//!
//! ```
//! let mut level = tamis::lsm::Level::new::<str>()?;
//! let old = level.push_run(["ann", "bob"])?;
//! let new = level.push_run(["ann"])?;
//! assert_eq!(level.find("ann")?, Some(new));
//! assert_eq!(level.find("bob")?, Some(old));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! **Slices** are parts that processes build apart; joined, they are the file of one build ([`slices`]).
//!
//! [`Bloom`], [`Cuckoo`], [`Quotient`], [`Stacked`] and [`Chained`] are filters whose keys change; [`bounds`] has the least sizes possible.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `build` | all builders; without it the crate opens and queries every file |
//! | `spill` | temporary files for builds past the memory limit |
//! | `secret` | secrets from the operating system ([`Hasher::random_secret`]) |
//! | `mmap` | files as memory maps ([`Filter::mmap`]) |
//! | `maps`, `sets`, `adaptive`, `table`, `lsm`, `learned` | the modules of these names |
//! | `serde` | `Serialize` and `Deserialize` of [`Filter`], [`Map`], [`Sequence`] and [`Sets`] |
//! | `papers` | what only figures of papers need |
//!
//! The first four are on by default: `cargo add tamis --features maps,sets,adaptive` adds the modules.

// Which feature an item needs, on pages that all features are documented on.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A new variant is decided everywhere, or does not compile.
#![deny(clippy::wildcard_enum_match_arm)]
// `clippy.toml` says which, and why; tests compare with them.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Encoders live next to their decoders, and tools of maps, sets and adaptive filters in the rooms before them: with fewer features
// some have no caller, and with other processors than these some instruction sets.
#![cfg_attr(
    not(all(
        target_arch = "x86_64",
        feature = "spill",
        feature = "maps",
        feature = "sets",
        feature = "adaptive",
        feature = "table",
        feature = "lsm",
        feature = "learned",
        feature = "papers",
        feature = "internals"
    )),
    allow(dead_code, unused_imports, unused_macros, unreachable_pub)
)]

#[cfg(feature = "adaptive")]
pub mod adaptive;
mod arch;
mod debug;
#[cfg(feature = "build")]
mod dynamic;
mod error;
#[cfg(feature = "build")]
mod file;
mod filter;
mod format;
#[cfg(feature = "build")]
mod gather;
mod hash;
#[cfg(feature = "learned")]
pub mod learned;
mod leaves;
#[cfg(feature = "lsm")]
pub mod lsm;
#[cfg(feature = "maps")]
pub mod maps;
mod math;
mod names;
#[cfg(feature = "build")]
mod parallel;
#[cfg(feature = "build")]
mod plan;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "sets")]
pub mod sets;
#[cfg(feature = "table")]
pub mod table;

#[cfg(feature = "build")]
pub use dynamic::{
    bloom::Bloom, builder::DynamicBuilder, chained::Chained, chained::First, cuckoo::Cuckoo, othello::Othello,
    quotient::Quotient, shared::SharedChained, shared::SharedOthello, stacked::Stacked,
};
pub use error::{BuildError, ChangeError, Error, FormatError, QueryError, ValueError};
#[cfg(all(feature = "build", feature = "papers"))]
pub use filter::build::Papers;
#[cfg(feature = "build")]
pub use filter::build::slices;
#[cfg(feature = "build")]
pub use filter::build::{
    Collector, Diff, FilterBuilder, Options, Partitioned, Progress, Rates, Report, Sealed, WorkloadReport, build,
    build_digests, stream,
};
pub use filter::patch::Patch;
pub use filter::patched::Patched;
pub use filter::query::{Filter, Group, LayerInfo};
pub use filter::remote::{Fetch, Remote};
pub use filter::typed::{AsKey, Typed};
pub use format::{FileInfo, Source};
#[cfg(feature = "build")]
pub use gather::{Limits, OnConflict, Stats};
pub use hash::{Digest, Fields, Hasher, Integer, Key, KeyType, Mismatch};
pub use leaves::Role;
#[cfg(feature = "build")]
pub use leaves::integrated::IntegratedVariant;
#[cfg(feature = "maps")]
pub use maps::{Map, Sequence};
#[cfg(all(feature = "build", feature = "maps"))]
pub use maps::{map, sequence};
pub use math::bounds;
pub use names::NameError;
#[cfg(feature = "build")]
pub use plan::{Base, Candidate, Comparison, Effort, Kind, Layout, PredictedLayer, Prediction};
#[cfg(feature = "sets")]
pub use sets::Sets;
#[cfg(all(feature = "build", feature = "sets"))]
pub use sets::sets;

/// Parts that benchmarks, fuzzing and the tests of this repository use. They may change in any release.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::error::{Difference, Lack};
    pub use crate::hash::Salt;
    #[cfg(feature = "build")]
    pub use crate::{
        filter::build::with_shard_keys,
        gather::counter::{Counter, Counts, ONE, units},
        gather::{Counted, Workspace},
        math::shape::{Shape, ShapeError},
        plan::{GUARD, Goal},
    };

    pub mod math {
        pub use crate::math::*;
    }

    #[cfg(all(feature = "build", feature = "sets"))]
    pub mod tune {
        pub use crate::sets::tune::*;
    }

    #[cfg(feature = "adaptive")]
    pub mod adaptive {
        pub use crate::adaptive::internals::*;
    }

    #[cfg(feature = "table")]
    pub mod table {
        pub use crate::table::cascade::Cascade;
    }

    #[cfg(feature = "build")]
    pub mod gather {
        pub use crate::gather::*;
    }
}

/// README and guide, whose Rust blocks are tests. They are files of the repository, and no part of the package.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide/keys.md")]
    mod keys {}
    #[doc = include_str!("../../../docs/guide/excluded-keys.md")]
    mod excluded_keys {}
    #[doc = include_str!("../../../docs/guide/exact-sets.md")]
    mod exact_sets {}
    #[doc = include_str!("../../../docs/guide/workloads.md")]
    mod workloads {}
    #[doc = include_str!("../../../docs/guide/partitions.md")]
    mod partitions {}
    #[doc = include_str!("../../../docs/guide/patches.md")]
    mod patches {}
    #[doc = include_str!("../../../docs/guide/maps.md")]
    mod maps {}
    #[doc = include_str!("../../../docs/guide/many-sets.md")]
    mod many_sets {}
    #[doc = include_str!("../../../docs/guide/changing-filters.md")]
    mod changing_filters {}
    #[doc = include_str!("../../../docs/guide/cuckoo-table.md")]
    mod cuckoo_table {}
    #[doc = include_str!("../../../docs/guide/adaptive-filters.md")]
    mod adaptive_filters {}
    #[doc = include_str!("../../../docs/guide/choosing.md")]
    mod choosing {}
    #[doc = include_str!("../../../docs/guide/hostile.md")]
    mod hostile {}
    #[doc = include_str!("../../../docs/guide/operating.md")]
    mod operating {}
    #[cfg_attr(unix, doc = include_str!("../../../docs/guide/storing.md"))]
    mod storing {}
    #[doc = include_str!("../../../docs/guide/slices.md")]
    mod slices {}
    #[doc = include_str!("../../../docs/guide/coming-from.md")]
    mod coming_from {}
}
