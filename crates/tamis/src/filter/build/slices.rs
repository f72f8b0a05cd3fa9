//! digests in ranges, on machines that share nothing but a plan -> slices -> the file that one process builds.
//!
//! An engine (Spark, Dask, a shell) sends every digest to the *range* of its top bits. Ranges are whole cells of the gathering room, so
//! what a build decides from all keys follows from numbers of the ranges. There are three rounds; each takes and gives plain bytes:
//!
//! ```text
//!   range ──survey──▶ Survey ─┐                                 numbers and hashes of keys, number of excluded keys, conflicts
//!   range ──survey──▶ Survey ─┴─merge──▶ Plan: number of shards, salt of the sketch
//!   range ──sketch──▶ Sketch ─┐                                 more than 16,384 excluded keys: their smallest salted numbers
//!   range ──sketch──▶ Sketch ─┴─merge──▶ Plan: layers
//!   slice ──build───▶ Slice ──┐                                 whole shards, and what passes the first layer
//!   slice ──build───▶ Slice ──┴─join───▶ the file;  or a manifest beside them, opened as one filter
//! ```
//!
//! *What is global, and who knows it.* The number of shards follows from the number of distinct keys, and with `OnConflict::Drop`
//! from the conflicts: round one. Layers follow from that and from the sketch of excluded keys, whose salt is the hash of all keys, a
//! hash of the hashes of cells: round two, left out where the excluded keys are few enough to be counted. All else is local to a shard.
//!
//! *What passes the first layer* must be counted before the rest is planned (docs/design/build.md, *Keys that were chosen*). A round of its own
//! would build every first layer twice, and ordinary keys never change the plan. So a slice is built at once and says how many passed.
//! [`join`] adds the numbers up; where they are too large it fails, and [`Plan::refine`] gives the next plan, which has the
//! layers that one process would have come to.
//!
//! *Ranges and slices.* A slice is the work of one task: as many as are wanted, and at most one per shard. A set with fewer shards
//! has fewer slices, and several ranges fold into one.
//!
//! *A plan holds counts and no layers.* Layers are planned again from the counts wherever a plan is read, which takes microseconds. So
//! there is one planner, and a plan whose numbers disagree with its layers cannot be read. Plans and surveys are private to a release.
//!
//! *Tasks may fail and run twice.* All bytes follow from the digests of a range as a set, so a second run gives the same. A
//! slice holds the plan and a sum over the hashes of its cells. The sums of all slices must be that of the surveys: a range that was
//! lost, sent twice, or read from other data is an error.
//!
//! Why not build with more shards than the plan's: the bytes would depend on the number of workers. Why no mixed digests
//! (keys that crowd in one shard): every digest would have to be sent again. Such keys are an error here.

use std::fmt;
use std::str::FromStr;

use crate::error::{BuildError, Error};
use crate::gather::CELL_BITS;
use crate::hash::Digest;

mod gather;
mod join;
mod plan;
mod survey;
mod text;

pub use gather::Gather;
pub use join::{join, join_to, write_manifest};
pub use plan::{Plan, Round, SliceReport};
pub use survey::{Sketch, Survey};

pub use crate::filter::sliced::{MANIFEST, SliceInfo, Sliced, file_name};

/// Range of digests: number `index` of `count` equal ones, by their top bits. Written `3/64`.
///
/// ```
/// use tamis::slices::KeyRange;
/// let range: KeyRange = "3/64".parse()?;
/// assert_eq!(range, KeyRange::new(3, 64)?);
/// let digest = tamis::Hasher::seeded(0).bytes(b"ann");
/// let ranges = (0..64).map(|index| KeyRange::new(index, 64)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(ranges.iter().filter(|range| range.contains(digest)).count(), 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRange {
    index: u32,
    bits: u32,
}

impl KeyRange {
    /// The most ranges.
    pub const MAX: u32 = 1 << CELL_BITS;
    /// All digests.
    pub const ALL: KeyRange = KeyRange { index: 0, bits: 0 };

    /// Returns range `index` of `count`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if `count` is no power of two or above 4,096, or `index` is not below it.
    pub fn new(index: u32, count: u32) -> Result<KeyRange, Error> {
        match count.is_power_of_two() && count <= KeyRange::MAX && index < count {
            true => Ok(KeyRange { index, bits: count.trailing_zeros() }),
            false => Err(wrong("range", format!("{index}/{count}; expected 0/1, 3/64, ..: a power of two up to 4096"))),
        }
    }

    /// Returns the number of the range.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns how many ranges there are.
    pub fn count(self) -> u32 {
        1 << self.bits
    }

    /// Returns whether a digest is in the range.
    pub fn contains(self, digest: Digest) -> bool {
        digest.shard(self.bits) == self.index as usize
    }

    /// The cells of the range.
    fn cells(self) -> std::ops::Range<u64> {
        let finer = CELL_BITS - self.bits;
        u64::from(self.index) << finer..u64::from(self.index + 1) << finer
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count())
    }
}

impl FromStr for KeyRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<KeyRange, Error> {
        let numbers = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match numbers {
            Some((Ok(index), Ok(count))) => KeyRange::new(index, count),
            _ => Err(wrong("range", format!("\"{}\"; expected INDEX/COUNT, as 3/64", text.escape_debug()))),
        }
    }
}

/// What does not fit together.
fn wrong(subject: &'static str, reason: impl Into<String>) -> Error {
    BuildError::Slices { subject, reason: reason.into() }.into()
}
