//! The policy alone, in the engine, with stores that fail, and in a long run.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod bytes;
mod engine;
mod faults;
mod filters;
mod soak;

use std::sync::Arc;

use ::bytes::Bytes;
use slatedb::{Filter, FilterPolicy, FilterQuery, PrefixExtractor, PrefixTarget, RowEntry, ValueDeletable};
use tamis_slatedb_bench::keys::key;

/// The rate of the engine's Bloom filter of 16 bits and 11 probes: (1 - e^(-11/16))^11.
const BLOOM_16: f64 = 4.6e-4;

fn build(policy: &dyn FilterPolicy, keys: impl IntoIterator<Item = Bytes>) -> Arc<dyn Filter> {
    let mut builder = policy.builder();
    for key in keys {
        let value = ValueDeletable::Value(Bytes::from_static(b"v"));
        builder.add_entry(&RowEntry { key, value, seq: 0, create_ts: None, expire_ts: None });
    }
    builder.build()
}

fn encode(filter: &dyn Filter) -> Vec<u8> {
    let mut bytes = vec![];
    filter.encode(&mut bytes);
    bytes
}

fn has(filter: &dyn Filter, number: u64) -> bool {
    filter.might_match(&FilterQuery::point(key(number)))
}

/// The first bytes of keys that are long enough.
struct First(usize, &'static str);

impl PrefixExtractor for First {
    fn name(&self) -> &str {
        self.1
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= self.0).then_some(self.0)
    }
}
