//! counts -> sizes and rates: every formula of the crate, each with the paper it comes from.

pub mod bloom;
pub mod bounds;
#[cfg(feature = "adaptive")]
pub mod broom;
#[cfg(feature = "build")]
pub(crate) mod chance;
#[cfg(feature = "sets")]
pub mod csc;
pub mod cuckoo;
#[cfg(feature = "adaptive")]
pub mod large;
pub(crate) mod portable;
pub mod quotient;
#[cfg(feature = "build")]
pub mod shape;
#[cfg(feature = "build")]
pub mod stack;
