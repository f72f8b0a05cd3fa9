//! a log of queries -> what will be asked, and how often: the workload that a filter is planned for.

#[cfg(feature = "build")]
pub mod counter;
pub mod shape;

#[cfg(feature = "build")]
pub use counter::{Counter, Counts, ONE, units};
pub use shape::{Shape, ShapeError};
