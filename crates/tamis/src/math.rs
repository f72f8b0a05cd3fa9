//! counts -> sizes and rates: every formula of the crate, each with the paper it comes from.

pub mod bloom;
pub mod bounds;
pub mod broom;
#[cfg(feature = "build")]
pub(crate) mod chance;
pub mod csc;
pub mod cuckoo;
pub mod large;
pub(crate) mod portable;
pub mod quotient;
pub mod shape;
pub mod stack;
