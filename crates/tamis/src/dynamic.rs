//! keys inserted and removed -> filters that change: Bloom, cuckoo and quotient filters, stacks of them, and an exact bit behind them.
//!
//! Each owns its table. Its snapshot is an ordinary filter file, and `restore` reads it again.

pub(crate) mod access;
pub(crate) mod bloom;
pub(crate) mod builder;
pub(crate) mod chained;
mod core;
pub(crate) mod cuckoo;
pub(crate) mod othello;
pub(crate) mod quotient;
pub(crate) mod shared;
pub(crate) mod stacked;
