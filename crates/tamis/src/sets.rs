//! pairs of keys and sets -> which sets hold this key: indexes of many sets.
//!
//! An index answers which of many named sets hold a key, in one query instead of one for each set. It names every set that holds the key.
//! It may also name *false sets*, at a rate that the builder sets.
//!
//! ```
//! let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).false_sets(0.001).finish()?;
//! let names: Vec<&str> = index.find("ann")?.into_iter().filter_map(|id| index.name(id)).collect();
//! assert_eq!(names, ["red", "blue"]);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! * A *frozen* index ([`Kind::Frozen`]) is the smallest, has no false sets for members, and does not change. Keys with equal set lists
//!   share them: a compressed map leads from a key to its set list.
//! * A *sketch* ([`Kind::Bloom`], [`Kind::Cuckoo`]) can be changed by an [`Editor`]. It stores all sets in one table (Li et al., \[CSC\] in
//!   docs/papers). The key chooses a place, the *anchor*, and the number of a set is the distance from it. The sets of a key are
//!   side by side, so that one read of a row answers for all of them, whatever the sizes of the sets.
//!
//! ```text
//!   pairs ──▶ counts ──▶ tune ──▶ csc_bloom or csc_cuckoo, a filter in front, heavy keys aside ──┐
//!                └─────────────▶ frozen: filter, map from key to set list, set lists ────────────┴──▶ segment
//!   names of sets + segments = an index, one file
//! ```

pub(crate) mod bits;
#[cfg(feature = "build")]
pub(crate) mod build;
pub(crate) mod coalesce;
pub(crate) mod csc_bloom;
pub(crate) mod csc_cuckoo;
#[cfg(feature = "build")]
pub(crate) mod editor;
#[cfg(feature = "build")]
mod freeze;
pub(crate) mod frozen;
pub(crate) mod groups;
pub(crate) mod index;
mod info;
pub(crate) mod key;
pub(crate) mod lists;
#[cfg(feature = "build")]
mod pairs;
pub(crate) mod query;
pub(crate) mod segment;
pub(crate) mod side;
#[cfg(feature = "build")]
mod sketch;
#[cfg(feature = "build")]
pub(crate) mod tune;
pub(crate) mod words;

#[cfg(feature = "build")]
pub use build::{Collector, Report, SetsBuilder, sets, stream};
#[cfg(feature = "build")]
pub use editor::{Added, Editor};
pub use index::check_name;
pub use info::{Kind, SegmentInfo};
pub use query::{Sets, Tally};
#[cfg(feature = "build")]
pub use tune::{Body, Shape};
