//! keys inserted and removed -> filters that change: Bloom, cuckoo and quotient filters, and stacks of them.
//!
//! Each owns its table. Its snapshot is an ordinary filter file, and `restore` reads it again.

pub(crate) mod bloom;
pub(crate) mod builder;
mod core;
pub(crate) mod cuckoo;
pub(crate) mod quotient;
pub(crate) mod stacked;
