//! keys, false positives as they come -> a filter and an exact bit that rejects them: `P E` that adapts ([Chained] section 4.1).
//!
//! ```text
//!   adapt    P ──yes──▶ a list of false positives          ┐ enough are new: only E is built again,
//!   E        1 for every key, 0 for every one of the list  ┘ from the keys and the whole list
//!
//!   query    P ──no──▶ no
//!            │yes
//!            E, once there is one ──▶ yes or no
//! ```
//!
//! P stays as it is, so what it rejects is rejected for good. E is a ribbon of one bit: about 1.01 bits for every key and every one of the list.
//!
//! **What is promised.** Every key matches. Every false positive of the list is rejected by the next E and by all after it; until that is built it
//! still matches. An unlisted key matches P as ever, and E with a chance of one half, whatever its table holds.
//!
//! **What is not.** Between two builds new ones match as often as they are queried: by default the exact bit is built after n / 64 of them.
//! When the list is full, what comes after it matches for good. Every build decides again which unlisted keys match E. The list takes 16 bytes
//! for each false positive, up to a limit that the caller sets; so this is for queries that repeat.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::builder::{AdaptiveBuilder, Built, check_fpr};
use super::file::{self, Kind};
use super::keys::{KeySet, Keys};
use super::{AdaptError, AdaptiveFilter, ChangeStats, Kept};
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError};
use crate::filter::options::set;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Hasher, Key, KeyType, Salt};
use crate::leaves::ribbon::{self, Ribbon};
use crate::leaves::{Design, Geometry, Query, Values};

/// The options of an [`AdaptiveChained`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    fpr: f64,
    rebuild_every: Option<u64>,
    max_false_positives: Option<u64>,
}

impl Built for AdaptiveChained {
    type Options = Options;
}

impl AdaptiveBuilder<AdaptiveChained> {
    set! {
        /// Sets how many new false positives make another exact bit, at least 1. The default is one for every 64 keys, and at least 16.
        rebuild_every(positives: u64) => options.rebuild_every = Some(positives);

        /// Sets how many false positives are stored. The default is the number of keys, and at least 1024.
        max_false_positives(positives: u64) => options.max_false_positives = Some(positives);
    }

    /// Reads the keys and makes the filter. Keys take 16 bytes of memory each meanwhile, as in every build of the exact bit.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Store`] if the keys cannot be read, [`AdaptError::Build`] if the rate is below 2^-32 or another option is out of range.
    pub fn build<M: Keys>(self, keys: &mut M) -> Result<AdaptiveChained, AdaptError<M::Error>> {
        let Options { fpr, rebuild_every, max_false_positives } = self.options;
        check_fpr(fpr)?;
        if rebuild_every == Some(0) {
            return Err(
                BuildError::Range { option: "rebuild_every", given: 0.0, least: 1.0, most: u64::MAX as f64 }.into()
            );
        }
        let width = width(fpr)?;
        let (set, digests) = KeySet::new(self.hasher(), keys)?;
        Ok(AdaptiveChained {
            first: layer(&digests, Values::Fingerprints, width, 0, &set.hasher)?,
            rebuild_every: rebuild_every.unwrap_or((set.keys / 64).max(16)),
            max_false_positives: max_false_positives.unwrap_or(set.keys.max(1024)),
            made: 1,
            exact: None,
            stored: vec![],
            pending: BTreeSet::new(),
            set,
        })
    }
}

/// Filter of a fixed set with an exact bit for reported false positives.
///
/// Every member matches. A reported false positive is rejected from the next [`rebuild`](Self::rebuild) on, and matches until then. When
/// [`max_false_positives`](AdaptiveBuilder::max_false_positives) are stored, new ones match for good. It keeps no rate against an
/// attacker: it is for queries that repeat.
///
/// ```
/// use tamis::adaptive::{AdaptiveChained, AdaptiveFilter};
/// let mut keys: Vec<u64> = (0..1000).collect();
/// let mut filter = AdaptiveChained::with_fpr(1.0 / 64.0).rebuild_every(500).build(&mut keys)?;
/// let passing: Vec<u64> = (1000..10_000).filter(|&key| filter.contains(key) == Ok(true)).collect();
/// for &key in &passing {
///     filter.adapt(key, &mut keys)?;
/// }
/// filter.rebuild(&mut keys)?;
/// assert!(passing.iter().all(|&key| filter.contains(key) == Ok(false)));
/// assert!((0..1000u64).all(|key| filter.contains(key) == Ok(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AdaptiveChained {
    set: KeySet,
    rebuild_every: u64,
    max_false_positives: u64,
    /// How often something was built: the number of the next salt.
    made: u64,
    first: Layer,
    exact: Option<Layer>,
    /// False positives that the exact bit knows, sorted.
    stored: Vec<Digest>,
    /// False positives that the next exact bit will know.
    pending: BTreeSet<Digest>,
}

brief_debug!(AdaptiveChained, it => keys: it.len(), false_positives: it.listed(), bytes: it.memory_bytes());

/// A ribbon, and the number of its salt.
#[derive(Clone, Debug)]
struct Layer {
    number: u64,
    ribbon: Ribbon,
    payload: Vec<u8>,
}

impl Layer {
    fn contains(&self, key: Digest) -> bool {
        self.ribbon.contains(&self.payload, key)
    }
}

impl AdaptiveChained {
    /// Starts a filter whose first part has at most this false positive rate, 2^-32 or more.
    pub fn with_fpr(p: f64) -> AdaptiveBuilder<AdaptiveChained> {
        let options = Options { fpr: p, rebuild_every: None, max_false_positives: None };
        AdaptiveBuilder { secret: None, secret_beside: false, options }
    }

    /// Stores a false positive. When enough are new, this reads all keys and builds the exact bit: from then on the filter rejects
    /// every stored false positive. Until then they match.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's, or [`max_false_positives`](AdaptiveBuilder::max_false_positives) are
    /// stored: then this key goes on matching. [`AdaptError::Store`] and [`AdaptError::Inconsistent`] if the keys cannot be read or are
    /// others than before. The filter answers as before, and what is stored stays so.
    pub fn adapt<K: Key, M: Keys>(&mut self, key: K, keys: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let key = self.digest(key)?;
        if !self.contains_digest(key) {
            return Ok(ChangeStats::default());
        }
        let known = self.listed();
        if known >= self.max_false_positives && !self.pending.contains(&key) {
            // What is stored is rejected at least.
            self.rebuild(keys)?;
            return Err(ChangeError::Full { keys: known, capacity: self.max_false_positives }.into());
        }
        self.pending.insert(key);
        let rebuilds = self.pending.len() as u64 >= self.rebuild_every;
        if rebuilds {
            self.rebuild(keys)?;
        }
        Ok(ChangeStats { changed: true, reads: rebuilds.into(), ..ChangeStats::default() })
    }

    /// Builds the exact bit now, if a false positive was stored since it was built.
    ///
    /// A stored key that is a member after all is dropped: it matches.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Store`] and [`AdaptError::Inconsistent`] if the keys cannot be read or are others than before.
    pub fn rebuild<M: Keys>(&mut self, keys: &mut M) -> Result<(), AdaptError<M::Error>> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let digests = self.set.read(keys, |_| true)?;
        let mut stored = self.stored.clone();
        stored.extend(self.pending.iter().filter(|key| digests.binary_search(key).is_err()));
        stored.sort_unstable();
        stored.dedup();
        let mut both: Vec<(Digest, bool)> = digests.into_iter().map(|key| (key, true)).collect();
        both.extend(stored.iter().map(|&key| (key, false)));
        both.sort_unstable();
        let (all, wanted): (Vec<Digest>, Vec<bool>) = both.into_iter().unzip();
        let exact = layer(&all, Values::Signed(&wanted), 256, self.made, &self.set.hasher)?;
        // From here on nothing fails.
        (self.exact, self.stored) = (Some(exact), stored);
        self.pending.clear();
        self.made += 1;
        Ok(())
    }

    /// How many false positives are stored.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn adapted(&self) -> u64 {
        self.listed()
    }

    fn listed(&self) -> u64 {
        (self.stored.len() + self.pending.len()) as u64
    }
}

impl AdaptiveFilter for AdaptiveChained {
    fn len(&self) -> u64 {
        self.set.keys
    }

    fn fpr(&self) -> f64 {
        self.first.ribbon.fpr() * self.exact.as_ref().map_or(1.0, |exact| exact.ribbon.fpr())
    }

    fn memory_bytes(&self) -> usize {
        self.first.payload.len() + self.exact.as_ref().map_or(0, |exact| exact.payload.len())
    }
}

impl Kept for AdaptiveChained {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.set.hasher, self.set.key_type)
    }

    fn contains_digest(&self, key: Digest) -> bool {
        self.first.contains(key) && self.exact.as_ref().is_none_or(|exact| exact.contains(key))
    }

    /// The filter with its list.
    ///
    /// ```text
    ///   sum over the keys u64 | every | most | ever built | whether there is an exact bit u8      numbers without a type: varints
    ///   per layer: number of its salt | geometry
    ///   payloads: the first filter, the exact bit if there is one, digests that it knows (hi, lo), ascending, digests that are new
    /// ```
    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let mut fields = self.set.sum.to_le_bytes().to_vec();
        file::put_varints(&mut fields, [self.rebuild_every, self.max_false_positives, self.made]);
        fields.push(u8::from(self.exact.is_some()));
        let mut payloads = vec![];
        for layer in [&self.first].into_iter().chain(&self.exact) {
            put_varint(&mut fields, layer.number);
            layer.ribbon.encode(&mut fields);
            payloads.push(layer.payload.clone());
        }
        let words = |keys: &mut dyn Iterator<Item = &Digest>| {
            file::bytes_of(&keys.flat_map(|key| [key.hi, key.lo]).collect::<Vec<u64>>())
        };
        payloads.push(words(&mut self.stored.iter()));
        payloads.push(words(&mut self.pending.iter()));
        file::write(Kind::Chained, &self.set.hasher, self.set.key_type, self.set.keys, &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<AdaptiveChained, FormatError> {
        let file = file::read(bytes, secret, Kind::Chained)?;
        let mut from = file.fields();
        let set = file.key_set(&mut from)?;
        let rebuild_every = from.within("false positives for another exact bit", 1..=u64::MAX)?;
        let max_false_positives = from.varint()?;
        let made = from.within("ever built", 1..=u64::MAX >> 1)?;
        let is_exact = from.within("exact bit", 0..=1)? == 1;
        let mut payloads = file.payloads();
        let first = decode(&mut from, payloads.next()?, made, &set.hasher)?;
        let exact = if is_exact { Some(decode(&mut from, payloads.next()?, made, &set.hasher)?) } else { None };
        let (stored, pending) = (list(payloads.next()?)?, list(payloads.next()?)?);
        from.end()?;
        payloads.end()?;
        // What has no exact bit knows nothing, and what it knows is not new.
        let once = pending.iter().all(|key| stored.binary_search(key).is_err());
        let reason = || "payload: false positives that are known twice, or without an exact bit";
        FormatError::check(once && (exact.is_some() || stored.is_empty()), reason)?;
        let pending = pending.into_iter().collect();
        Ok(AdaptiveChained { set, rebuild_every, max_false_positives, made, first, exact, stored, pending })
    }
}

/// The fewest 256ths of a bit that reach a rate.
fn width(rate: f64) -> Result<u16, BuildError> {
    let params = |width| ribbon::Params { width, tight: false, nested: false };
    let none = BuildError::Range { option: "fpr", given: rate, least: 1.0 / (1u64 << 32) as f64, most: 1.0 };
    (256..=32 * 256).find(|&width| params(width).rate_at(1) <= rate).ok_or(none)
}

/// A ribbon on sorted distinct keys.
fn layer(keys: &[Digest], values: Values<'_>, width: u16, number: u64, hasher: &Hasher) -> Result<Layer, BuildError> {
    let params = ribbon::Params { width, tight: false, nested: false };
    let mut payload = vec![];
    let ribbon = ribbon::build(keys, values, &params, Salt::secret(hasher, number), 0, 1, &mut payload)?;
    Ok(Layer { number, ribbon, payload })
}

fn decode(from: &mut Reader<'_>, payload: &[u8], made: u64, hasher: &Hasher) -> Result<Layer, FormatError> {
    let number = from.within("number of a salt", 0..=made - 1)?;
    let ribbon = Ribbon::decode(from, Salt::secret(hasher, number))?;
    let (found, expected) = (payload.len(), ribbon.payload_len());
    let reason = || format!("payload: a ribbon of {found} bytes, expected {expected}");
    FormatError::check(found as u64 == expected, reason)?;
    Ok(Layer { number, ribbon, payload: payload.to_vec() })
}

/// Ascending digests.
fn list(payload: &[u8]) -> Result<Vec<Digest>, FormatError> {
    let words = file::words_of(payload)?;
    let (pairs, rest) = words.as_chunks::<2>();
    let keys: Vec<Digest> = pairs.iter().map(|&[hi, lo]| Digest { hi, lo }).collect();
    let ascends = rest.is_empty() && keys.windows(2).all(|pair| pair[0] < pair[1]);
    FormatError::check(ascends, || "payload: a list of digests that does not ascend")?;
    Ok(keys)
}

#[cfg(test)]
mod tests;
