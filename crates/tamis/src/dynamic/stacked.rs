//! a stack of layers that change -> keys put in and taken out after it was built ([Stacked] section 3).
//!
//! A stacked filter made of Bloom, cuckoo or quotient layers keeps what its layers can do. A key walks the path it would have
//! walked when the stack was built:
//!
//! ```text
//!   P   the key goes in
//!   N   does not know the key?  the walk ends: the key matches here
//!   P   the key goes in
//!   ..
//! ```
//!
//! The layers on negatives never change, so a key that is taken out walks the very same path. It may have been a known negative
//! itself: then every `N` knows it, and it goes into every `P`. The deep ones are small, and full
//! first; one that no key reached when the stack was built has no room at all. What is lost is precision, not truth: known negatives that the first
//! layer rejected are in no other layer, and a new key may make one of them match it. Its rate is then the first layer's.
//!
//! A walk that finds a full layer undoes what it did.

use bytes::Bytes;

use super::core::is_file;
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::filter::open::open_alone;
use crate::filter::steps::Step;
use crate::format::{self, Budget, Encoded, Form, Header, Writer};
use crate::hash::{Digest, Key, KeyType, Mismatch};
use crate::leaves::change::{self, MAX_LAYER_BYTES};
use crate::leaves::quotient::{OwnedQuotient, Quotient};
use crate::leaves::{Entry as _, Role};

/// Stacked filter that keys are inserted into, and removed from if its layers are cuckoo or quotient filters.
///
/// ```
/// use tamis::{Base, Kind, Stacked};
/// let popular = (1000..2000u64).map(|key| (key, 100.0));
/// let filter = tamis::build(0..1000u64)
///     .workload(popular)
///     .kind(Kind::Stacked(Base::Cuckoo))
///     .extra_capacity(0.2) // room for 200 keys more
///     .fpr(0.001)
///     .finish()?;
/// let mut stack = Stacked::restore(filter.as_bytes().to_vec())?;
/// stack.insert(1500u64)?; // it was a known negative
/// assert!(stack.contains(1500u64)?);
/// assert!(stack.remove(1500u64)? && !stack.contains(1500u64)?);
/// let filter = tamis::Filter::open(stack.snapshot()?)?;
/// assert!(filter.contains(7u64)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Stacked {
    header: Header,
    layers: Vec<Layer>,
}

brief_debug!(Stacked, it => keys: it.len(), layers: it.layers.len(), hasher: it.header.hasher);

/// One layer, a part for every shard.
#[derive(Clone, Debug)]
struct Layer {
    role: Role,
    parts: Vec<Box<dyn change::Layer>>,
}

impl Layer {
    fn contains(&self, shard: usize, key: Digest) -> bool {
        self.parts.get(shard).is_some_and(|part| part.contains(key))
    }
}

is_file!(
    Stacked, header.hasher: ", or of a filter file whose layers are Bloom, cuckoo or quotient filters, in turn on members and on negatives; one layer is enough.",
    "[`FormatError`] if the bytes are no such file, or damaged."
);

impl Stacked {
    fn restored(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Stacked, FormatError> {
        format::verify(&bytes)?;
        let budget = Budget::of(&bytes);
        let contents = open_alone(&bytes, secret, &budget)?;
        let header = contents.header;
        let parts = (contents.steps.len() as u64) << header.shard_bits;
        // Tables of quotient filters are checked one at a time.
        budget.draw(bytes.len() as u64 * (1 + OwnedQuotient::CHECK) + parts * MAX_LAYER_BYTES)?;
        FormatError::check(header.form == Form::Filter, || "a partitioned filter is not a stack")?;
        let layers: Vec<Layer> = contents.steps.iter().map(layer).collect::<Result<_, _>>()?;
        let turns = [Role::Positive, Role::Negative].into_iter().cycle();
        let in_turn = layers.iter().zip(turns).all(|(layer, expected)| layer.role == expected);
        FormatError::check(in_turn, || "not a stack: its layers are not on keys and negatives in turn")?;
        // Without keys a built filter has no table, and a key that is put nowhere is not found again.
        let has_table = |layer: &Layer| layer.parts.iter().all(|part| !part.payload().is_empty());
        let fits = layers.first().is_some_and(has_table);
        FormatError::check(fits, || "a stack whose first layer has no table takes no keys")?;
        Ok(Stacked { header, layers })
    }

    /// Inserts a key.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Full`] if a layer has no room for it, [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let key = self.digest(key)?;
        let shard = key.shard(self.header.shard_bits);
        let path = self.path(key, shard);
        for (i, &layer) in path.iter().enumerate() {
            let Some(part) = self.layers[layer].parts.get_mut(shard) else { continue };
            if let Err(full) = part.insert(key) {
                for &layer in &path[..i] {
                    // Bloom filters are never full, and a few bits more in one of them are no harm.
                    if let Some(part) = self.layers[layer].parts.get_mut(shard) {
                        part.remove(key);
                    }
                }
                return Err(full.into());
            }
        }
        self.header.keys = self.header.keys.saturating_add(1);
        Ok(())
    }

    /// Removes a key. Returns `false`, and changes nothing, if the filter does not match it.
    ///
    /// Remove members only: an unlisted key that matches would remove another key.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if layers are Bloom filters, [`ChangeError::KeyType`] if the key type is not the filter's.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let key = self.digest(key)?;
        let shard = key.shard(self.header.shard_bits);
        let fixed = |layer: &Layer| layer.role == Role::Positive && layer.parts.iter().any(|part| !part.removes());
        if self.layers.iter().any(fixed) {
            return Err(ChangeError::Unsupported {
                what: "remove: keys cannot be removed from a Bloom filter; expected cuckoo or quotient",
            });
        }
        let path = self.path(key, shard);
        if !path.iter().all(|&layer| self.layers[layer].contains(shard, key)) {
            return Ok(false);
        }
        for layer in path {
            if let Some(part) = self.layers[layer].parts.get_mut(shard) {
                part.remove(key);
            }
        }
        self.header.keys = self.header.keys.saturating_sub(1);
        Ok(true)
    }

    /// The layers on keys that a key is in, or would be.
    fn path(&self, key: Digest, shard: usize) -> Vec<usize> {
        let ends = |layer: &Layer| layer.role == Role::Negative && !layer.contains(shard, key);
        let last = self.layers.iter().position(ends).unwrap_or(self.layers.len());
        (0..last).step_by(2).collect()
    }

    /// Returns `true` for every member, and for some other keys.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        let key = self.digest(key)?;
        let shard = key.shard(self.header.shard_bits);
        let misses = self.layers.iter().find(|layer| !layer.contains(shard, key));
        Ok(misses.is_none_or(|layer| layer.role == Role::Negative))
    }

    fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        self.header.key_type.digest(key, &self.header.hasher)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }

    fn write(&self, out: &mut dyn std::io::Write) -> Result<(), BuildError> {
        let kinds = |layer: &Layer| layer.parts.first().map(|part| [layer.role.encode(), part.tag()]);
        let kinds = self.layers.iter().filter_map(kinds).collect();
        let mut writer = Writer::new(out, &self.header, kinds)?;
        for shard in 0..1usize << self.header.shard_bits {
            let parts = self.layers.iter().filter_map(|layer| layer.parts.get(shard));
            let parts: Vec<Encoded> = parts.flat_map(|part| part.encoded()).collect();
            writer.shard(&parts)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// A step as a layer that can change.
fn layer(step: &Step) -> Result<Layer, FormatError> {
    let parts = step.leaf.layers().ok_or_else(|| {
        let name = step.leaf.name();
        FormatError::invalid(format!(
            "a layer is a {name}: only Bloom, cuckoo and quotient filters take keys after they were built"
        ))
    })?;
    for part in Quotient::of(&step.leaf).map_or(&[][..], |leaf| leaf.parts()) {
        // A layer without keys has no table.
        if !part.payload.is_empty() {
            OwnedQuotient::read(part)?;
        }
    }
    Ok(Layer { role: step.role, parts })
}

#[cfg(test)]
mod tests;
