//! keys -> bytes -> yes or no: filters, built and queried.
//!
//! ```text
//!   options      what filters, maps and sets may use to be built
//!   build/       keys, known negatives, a goal -> bytes
//!   open         bytes -> steps and partitions, checked once
//!   steps        a list of steps + a digest -> yes or no
//!   partition    a label + a digest -> the steps of its group
//!   patch        `Patch`: the keys whose answer changed
//!   chain        a base and its patches + a digest -> whether the answer is flipped
//!   patched      `Patched`: a filter and its patches
//!   sliced       `Sliced`: a folder of slices, built elsewhere, as one filter
//!   query        `Filter`: a key -> yes or no
//!   typed        `Typed`: the same, for keys whose type was checked once
//! ```

#[cfg(feature = "build")]
pub(crate) mod build;
pub(crate) mod chain;
pub(crate) mod open;
#[cfg(feature = "build")]
pub(crate) mod options;
pub(crate) mod partition;
pub(crate) mod patch;
pub(crate) mod patched;
pub(crate) mod query;
pub(crate) mod remote;
pub(crate) mod sliced;
pub(crate) mod steps;
pub(crate) mod typed;
