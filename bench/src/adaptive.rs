//! adaptive filters -> what they cost.
pub(crate) mod cuckoo;
