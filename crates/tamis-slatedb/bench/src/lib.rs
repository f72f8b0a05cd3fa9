//! what bench, tests and examples share: a store that counts, waits and fails, keys, and databases with a filter policy.

pub mod database;
pub mod keys;
pub mod store;
