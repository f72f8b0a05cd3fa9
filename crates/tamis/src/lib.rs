//! keys -> a few bits each -> yes or no: membership filters that know what they must refuse.
//!
//! A filter answers "is this key in the set?" in a few bits per key: always yes for a key of the set, and rarely for
//! another.
//!
//! ```
//! let filter = tamis::build(["ads.example", "spam.example"]).fpr(0.01).finish()?;
//! assert!(filter.contains("spam.example")?);
//!
//! let bytes = filter.as_bytes().to_vec(); // to disk, into a message, into the program itself
//! assert!(tamis::Filter::open(bytes)?.contains("ads.example")?);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! The path of a key, and the modules along it:
//!
//! ```text
//!   keys ──hash──▶ digests ──shard──▶ shards ──plan──▶ plan ──build──▶ bytes ──query──▶ yes / no
//!                                                     leaves, steps, format
//! ```
//!
//! Without the feature `build` (on by default) only the last arrow is left, with few dependencies.

// Encoders live beside their decoders; without `build` nothing calls them.
#![cfg_attr(not(feature = "build"), allow(dead_code))]

#[cfg(feature = "build")]
pub mod adaptive;
#[cfg(feature = "build")]
pub mod bloom;
#[cfg(feature = "build")]
pub mod build;
#[cfg(feature = "build")]
pub mod cuckoo;
pub mod error;
pub mod format;
pub mod hash;
pub mod maps;
pub mod math;
pub mod multiset;
#[cfg(feature = "build")]
pub mod plan;
pub mod query;
#[cfg(feature = "build")]
pub mod quotient;
#[cfg(feature = "build")]
pub mod shard;
#[cfg(feature = "build")]
pub mod stacked;
pub mod steps;
pub mod workload;

pub(crate) mod arch;
pub(crate) mod debug;
pub(crate) mod leaves;
#[cfg(feature = "build")]
pub(crate) mod parallel;
pub(crate) mod partition;
#[cfg(feature = "build")]
pub(crate) mod recipes;

#[cfg(feature = "build")]
pub use bloom::Bloom;
#[cfg(feature = "build")]
pub use build::{Build, Collector, Digests, Partitioned, Progress, Report, Sealed, build, build_digests, stream};
#[cfg(feature = "build")]
pub use cuckoo::Cuckoo;
pub use error::{BuildError, Error, FormatError, QueryError};
pub use hash::{Digest, Domain, Hasher, Key, Salt};
pub use leaves::integrated::Parts;
pub use maps::{Map, Sequence};
#[cfg(feature = "build")]
pub use maps::{map, sequence};
pub use multiset::Sets;
#[cfg(feature = "build")]
pub use multiset::sets;
#[cfg(feature = "build")]
pub use plan::{Base, Effort, Goal, Kind, Layout};
pub use query::{Filter, Group, Layer};
#[cfg(feature = "build")]
pub use quotient::Quotient;
#[cfg(feature = "build")]
pub use shard::{Limits, OnConflict, Stats};
#[cfg(feature = "build")]
pub use stacked::Stacked;
pub use steps::Role;
