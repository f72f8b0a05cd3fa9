//! pairs of keys and sets -> which sets hold this key: many sets in one file.

pub mod tune;
