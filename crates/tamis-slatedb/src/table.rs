//! the keys of one table -> its filter -> maybe, or no.
//!
//! The engine has no place for an error here: building and decoding cannot fail, and a wrong "no" loses data. So whatever
//! goes wrong ends in a filter that matches everything, and in a counter.

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterBuilder, FilterQuery, FilterTarget, PrefixExtractor, PrefixTarget, RowEntry};
use tamis::{Digest, Error, KeyType, Typed};

use crate::counters::Counters;
use crate::policy::{Recipe, Shape};

/// Collects the keys of a table that is being written, 16 bytes each.
pub(crate) struct TableBuilder {
    recipe: Recipe,
    shape: Arc<Shape>,
    counters: Arc<Counters>,
    digests: Vec<Digest>,
    /// Keys come in order, and those with the same prefix one after the other.
    last_prefix: Option<Digest>,
    /// Whether the extractor broke its promise, so that nothing can be said about prefixes.
    broken: bool,
}

/// The prefix of a target, nothing if it has none, and an error if the extractor's length is not one of a prefix.
fn prefix<'a>(extractor: &dyn PrefixExtractor, target: &'a PrefixTarget) -> Result<Option<&'a [u8]>, TooLong> {
    let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
    match extractor.prefix_len(target) {
        Some(len) => bytes.get(..len).map(Some).ok_or(TooLong),
        None => Ok(None),
    }
}

struct TooLong;

impl TableBuilder {
    pub(crate) fn new(recipe: Recipe, shape: Arc<Shape>, counters: Arc<Counters>) -> TableBuilder {
        TableBuilder { recipe, shape, counters, digests: vec![], last_prefix: None, broken: false }
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        let digests = std::mem::take(&mut self.digests);
        let mut bytes = Vec::new();
        let options = self.recipe.options(digests.len()).hasher(self.shape.hasher.clone());
        options.build_digests(digests, KeyType::Bytes).finish_into(&mut bytes)?;
        // The cache counts what a filter holds, not what it reserves.
        bytes.shrink_to_fit();
        Ok(Bytes::from(bytes))
    }
}

impl FilterBuilder for TableBuilder {
    fn add_entry(&mut self, entry: &RowEntry) {
        let hasher = &self.shape.hasher;
        if let Some(extractor) = &self.shape.extractor {
            match prefix(&**extractor, &PrefixTarget::Point(entry.key.clone())) {
                Ok(Some(prefix)) => {
                    let digest = Some(hasher.bytes(prefix));
                    if digest != self.last_prefix {
                        self.digests.extend(digest);
                        self.last_prefix = digest;
                    }
                }
                Ok(None) => {}
                Err(TooLong) => self.broken = true,
            }
        }
        if self.shape.whole_keys {
            self.digests.push(hasher.bytes(&entry.key));
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let bytes = if self.broken { None } else { self.finish().ok() };
        let filter = bytes.as_ref().and_then(|bytes| open(bytes, &self.shape));
        match &filter {
            Some(filter) => {
                self.counters.built.add(1);
                self.counters.bytes_built.add(filter.filter().as_bytes().len() as u64);
            }
            None => self.counters.not_built.add(1),
        }
        // Without a filter there are no bytes, which no reader takes for one.
        let bytes = filter.as_ref().and(bytes).unwrap_or_default();
        Arc::new(TableFilter { bytes, filter, shape: self.shape.clone() })
    }
}

/// Opens bytes in place and checks their sums. The payload of a filter has no redundancy: one wrong bit there is a key that is lost.
fn open(bytes: &Bytes, shape: &Shape) -> Option<Typed<[u8]>> {
    let filter = tamis::Filter::open(bytes.clone()).ok()?.into_typed::<[u8]>().ok()?;
    let hasher = filter.filter().hasher();
    let own = !hasher.is_secret() && hasher.words()[0] == shape.hasher.words()[0];
    own.then_some(filter)
}

/// The filter of one table. Without one that can be read it matches everything.
#[derive(Clone)]
pub(crate) struct TableFilter {
    bytes: Bytes,
    filter: Option<Typed<[u8]>>,
    shape: Arc<Shape>,
}

impl TableFilter {
    /// The engine lends the bytes, so that they are copied once. The copy is what its cache keeps, and is queried where it is.
    pub(crate) fn decode(data: &[u8], shape: Arc<Shape>, counters: &Counters) -> TableFilter {
        let bytes = Bytes::copy_from_slice(data);
        let filter = open(&bytes, &shape);
        match filter {
            Some(_) => counters.opened.add(1),
            None => counters.unreadable.add(1),
        }
        TableFilter { bytes, filter, shape }
    }
}

impl Filter for TableFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Some(filter) = &self.filter else { return true };
        if let (FilterTarget::Point(key), true) = (&query.target, self.shape.whole_keys) {
            return filter.contains(&key[..]);
        }
        // The rest is answered by prefixes, where the extractor has one for the query.
        let Some((extractor, target)) = self.shape.extractor.as_ref().zip(query.target.as_prefix_target()) else {
            return true;
        };
        match prefix(&**extractor, &target) {
            Ok(Some(prefix)) => filter.contains(prefix),
            Ok(None) | Err(TooLong) => true,
        }
    }

    /// What was read is written again as it is, also if it could not be understood: the engine's disk cache encodes filters that it read.
    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&self.bytes);
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(self.clone())
    }
}
