//! keys that come and go -> filters that change: Bloom, cuckoo and quotient filters, and stacks of them.

pub mod bloom;
mod core;
pub mod cuckoo;
pub mod quotient;
pub mod stacked;
