//! pairs of keys and sets -> which sets hold this key: indexes of many sets.
//!
//! One filter for each of a thousand sets has to be asked a thousand times. The sketches of Li et al. (\[CSC\], see docs/papers.md) hold all
//! sets in one table: the key chooses a place, the *anchor*, and the set's number is the distance from it. The sets of a key then lie
//! side by side, and one look at a row of the table answers for all of them; a skew of set sizes, which ruins tables of one size per set, is levelled.
//!
//! ```text
//!   pairs ──▶ counts ──▶ tune ──▶ csc_bloom or csc_cuckoo, a filter in front, heavy keys aside ──┐
//!                └─────────────▶ frozen: filter, map from key to colour, lists of colours ───────┴──▶ segment
//!   names of sets + segments = an index, one file
//! ```
//!
//! Where the data does not change, the *frozen* index is smaller than any sketch and has no false set for a key that is there: keys share lists of sets,
//! each distinct list is a colour, and a compressed map leads keys to colours. [`Editor`] changes an index, adds, marks and merges.

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
pub use index::{MAX_KMER, MAX_NAME, MAX_SETS, check_name};
pub use info::{Kind, SegmentInfo};
pub use query::{Sets, Tally};
