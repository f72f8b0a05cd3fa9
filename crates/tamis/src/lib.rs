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

// A new variant is decided everywhere, or does not compile.
#![deny(clippy::wildcard_enum_match_arm)]
// `clippy.toml` says which, and why; tests compare with them.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Encoders live beside their decoders, and tools of maps, sets and adaptive filters in the rooms before them: with fewer features
// some have no caller.
#![cfg_attr(
    not(all(feature = "build", feature = "maps", feature = "sets", feature = "adaptive", feature = "papers")),
    allow(dead_code)
)]

#[cfg(feature = "adaptive")]
pub mod adaptive;
pub(crate) mod arch;
pub(crate) mod debug;
#[cfg(feature = "build")]
pub mod dynamic;
pub mod error;
#[cfg(feature = "build")]
pub(crate) mod file;
pub mod filter;
pub mod format;
#[cfg(feature = "build")]
pub mod gather;
pub mod hash;
pub(crate) mod leaves;
#[cfg(feature = "maps")]
pub mod maps;
pub mod math;
#[cfg(feature = "build")]
pub(crate) mod parallel;
#[cfg(feature = "build")]
pub mod plan;
#[cfg(feature = "sets")]
pub mod sets;

/// What will be asked, and how often.
#[cfg(feature = "build")]
pub mod workload {
    pub use crate::gather::counter::{self, Counter, Counts, ONE, units};
    pub use crate::math::shape::{self, Shape, ShapeError};
}

#[cfg(feature = "build")]
pub use dynamic::{
    bloom, bloom::Bloom, cuckoo, cuckoo::Cuckoo, quotient, quotient::Quotient, stacked, stacked::Stacked,
};
pub use error::{BuildError, ChangeError, Difference, Error, FormatError, Lack, QueryError, ValueError};
#[cfg(feature = "build")]
pub use filter::build::{
    self, Collector, Digests, FilterBuilder, Partitioned, Progress, Report, Sealed, build, build_digests, stream,
};
pub use filter::query::{self, Filter, Group, LayerInfo};
pub use filter::steps::{self, Role};
pub use filter::typed::Typed;
#[cfg(feature = "build")]
pub use gather as shard;
#[cfg(feature = "build")]
pub use gather::{Limits, OnConflict, Stats};
pub use hash::{Digest, Hasher, Key, KeyType, Mismatch, Salt};
pub use leaves::integrated::IntegratedVariant;
#[cfg(feature = "maps")]
pub use maps::{Map, Sequence};
#[cfg(all(feature = "build", feature = "maps"))]
pub use maps::{map, sequence};
#[cfg(feature = "build")]
pub use plan::{Base, Effort, Goal, Kind, Layout};
#[cfg(all(feature = "build", feature = "sets"))]
pub use sets::sets;
#[cfg(feature = "sets")]
pub use sets::{self as multiset, Sets};
