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

// Which feature an item needs, on pages that all features are documented on.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A new variant is decided everywhere, or does not compile.
#![deny(clippy::wildcard_enum_match_arm)]
// `clippy.toml` says which, and why; tests compare with them.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Encoders live beside their decoders, and tools of maps, sets and adaptive filters in the rooms before them: with fewer features
// some have no caller, and with other processors than these some instruction sets.
#![cfg_attr(
    not(all(
        target_arch = "x86_64",
        feature = "spill",
        feature = "maps",
        feature = "sets",
        feature = "adaptive",
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
mod leaves;
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

#[cfg(feature = "build")]
pub use dynamic::{bloom::Bloom, builder::DynamicBuilder, cuckoo::Cuckoo, quotient::Quotient, stacked::Stacked};
pub use error::{BuildError, ChangeError, Error, FormatError, Lack, QueryError, ValueError};
#[cfg(all(feature = "build", feature = "papers"))]
pub use filter::build::Papers;
#[cfg(feature = "build")]
pub use filter::build::{
    Collector, FilterBuilder, Options, Partitioned, Progress, Rates, Report, Sealed, WorkloadReport, build,
    build_digests, stream,
};
pub use filter::query::{Filter, Group, LayerInfo};
pub use filter::typed::Typed;
pub use format::Source;
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
pub use plan::{Base, Candidate, Comparison, Effort, Kind, Layout, Prediction};
#[cfg(feature = "sets")]
pub use sets::Sets;
#[cfg(all(feature = "build", feature = "sets"))]
pub use sets::sets;

/// Parts that benchmarks, fuzzing and the tests of this repository use. They may change in any release.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::error::Difference;
    pub use crate::hash::Salt;
    #[cfg(feature = "build")]
    pub use crate::{
        gather::counter::{Counter, Counts, ONE, units},
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
    #[doc = include_str!("../../../docs/guide/excluded-keys.md")]
    mod excluded_keys {}
    #[doc = include_str!("../../../docs/guide/exact-sets.md")]
    mod exact_sets {}
    #[doc = include_str!("../../../docs/guide/workloads.md")]
    mod workloads {}
    #[doc = include_str!("../../../docs/guide/partitions.md")]
    mod partitions {}
    #[doc = include_str!("../../../docs/guide/maps.md")]
    mod maps {}
    #[doc = include_str!("../../../docs/guide/many-sets.md")]
    mod many_sets {}
    #[doc = include_str!("../../../docs/guide/changing-filters.md")]
    mod changing_filters {}
    #[doc = include_str!("../../../docs/guide/adaptive-filters.md")]
    mod adaptive_filters {}
    #[doc = include_str!("../../../docs/guide/choosing.md")]
    mod choosing {}
    #[doc = include_str!("../../../docs/guide/hostile.md")]
    mod hostile {}
    #[doc = include_str!("../../../docs/guide/operating.md")]
    mod operating {}
    #[doc = include_str!("../../../docs/guide/coming-from.md")]
    mod coming_from {}
}
