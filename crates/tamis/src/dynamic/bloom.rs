//! keys, one at a time -> a Bloom filter that grows fuller, and its snapshot as a file.
//!
//! Keys can be inserted at any time. The rate rises with them and reaches its goal at the capacity.

use bytes::Bytes;

use super::builder::{DynamicBuilder, Empty, Options};
use super::core::{Core, SALT, of_layer, restores};
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::hash::{Hasher, Key, KeyType};
use crate::leaves::bloom::{Classic, SplitBlock, classic, split};
use crate::leaves::change::{Change, Layer, Owned};
use crate::leaves::{Entry, Leaf};

/// Bloom filter that keys are inserted into.
///
/// If others choose keys, give it a secret: see [`Hasher::random_secret`]. Without one, chosen keys cannot stop the filter or slow it
/// down, but [`fpr`](Bloom::fpr) is no longer right: keys whose bits all differ raise it, from 1 % to 8 % in a classic filter at its
/// capacity, and some unlisted keys match for sure.
///
/// ```
/// use tamis::{Bloom, Filter};
/// let mut seen = Bloom::with_capacity(1000).fpr(0.01).build::<str>()?;
/// seen.insert("ann")?;
/// assert!(seen.contains("ann")?);
/// let filter = Filter::open(seen.snapshot()?)?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Bloom(pub(super) Core<Box<dyn Layer>>);

brief_debug!(Bloom, it => keys: it.len(), bytes: it.0.table.payload().len(), hasher: it.0.hasher);

of_layer!(Bloom);
restores!(Bloom: ", or of any filter file of one shard that is a single Bloom filter.", "[`FormatError`] if the bytes are no such file, or damaged.");

impl Bloom {
    /// Starts a filter for `capacity` keys. With more keys its false positive rate is above [`fpr`](DynamicBuilder::fpr).
    pub fn with_capacity(capacity: u64) -> DynamicBuilder<Bloom> {
        DynamicBuilder::new(capacity)
    }

    fn of(key_type: KeyType, hasher: Hasher, geometry: impl Change) -> Result<Bloom, BuildError> {
        Ok(Bloom(Core { hasher, key_type, salts: 0, table: Box::new(Owned::zeros(geometry)?) }))
    }

    /// Inserts a key. Inserting one again changes nothing but the count.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the filter's.
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let digest = self.0.digest(key)?;
        Ok(self.0.table.insert(digest)?)
    }

    fn restored(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Bloom, FormatError> {
        let is_bloom = |leaf: &Leaf| SplitBlock::of(leaf).is_some() || Classic::of(leaf).is_some();
        let find = |leaf: &Leaf| if is_bloom(leaf) { leaf.layers()?.pop() } else { None };
        match Core::read(bytes, secret, "Bloom filter", 1, find)? {
            Some((core, _)) => Ok(Bloom(core)),
            None => Err(FormatError::invalid("not a Bloom filter: only those take more keys")),
        }
    }
}

impl Empty for Bloom {
    fn empty(options: &Options, key_type: KeyType) -> Result<Bloom, BuildError> {
        let Options { capacity, fpr, hasher, other_form, .. } = options.clone();
        match other_form {
            false => {
                let params = split::Params::for_rate(capacity.max(1), fpr)?;
                Bloom::of(key_type, hasher, SplitBlock::new(&params, 0, SALT)?)
            }
            true => {
                let params = classic::Params::for_rate(capacity.max(1), fpr)?;
                Bloom::of(key_type, hasher, Classic::new(&params, 0, SALT)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Filter;

    fn both(capacity: u64) -> [Bloom; 2] {
        let builder = Bloom::with_capacity(capacity).fpr(0.01).hasher(Hasher::seeded(3));
        [builder.clone().build::<u64>().unwrap(), builder.classic().build::<u64>().unwrap()]
    }

    #[test]
    fn keys_stay_through_snapshots_and_more_keys() {
        for mut bloom in both(2000) {
            assert!(!bloom.contains(1u64).unwrap() && bloom.is_empty() && bloom.fpr() == 0.0);
            for round in 0..4 {
                (round * 500..round * 500 + 500).for_each(|key| bloom.insert(key).unwrap());
                let bytes = bloom.snapshot().unwrap();
                let filter = Filter::open(bytes.clone()).unwrap();
                assert_eq!((filter.len(), filter.fpr()), (bloom.len(), bloom.fpr()));
                bloom = Bloom::restore(bytes).unwrap();
                for key in 0..round * 500 + 500 {
                    assert!(bloom.contains(key).unwrap() && filter.contains(key).unwrap());
                }
            }
            let found = (10_000..60_000u64).filter(|&key| bloom.contains(key).unwrap()).count() as f64;
            assert!((found - 500.0).abs() < 5.0 * 500f64.sqrt(), "{found} of 50,000 strangers at 1 %");
        }
    }

    #[test]
    fn a_built_filter_can_be_taken_up() {
        for kind in [crate::Kind::Bloom, crate::Kind::ClassicBloom] {
            let built = crate::build(0..500u64).kind(kind).finish().unwrap();
            let mut bloom = Bloom::restore(built.as_bytes().to_vec()).unwrap();
            bloom.insert(777u64).unwrap();
            assert!((0..500u64).chain([777]).all(|key| bloom.contains(key).unwrap()));
            assert_eq!(bloom.len(), 501);
        }
    }

    #[test]
    fn a_table_without_room_is_rejected() {
        for kind in [crate::Kind::Bloom, crate::Kind::ClassicBloom] {
            let empty = crate::build([0u64; 0]).kind(kind).finish().unwrap();
            let error = Bloom::restore(empty.as_bytes().to_vec()).unwrap_err().to_string();
            assert_eq!(error, "invalid file: a Bloom filter without a table takes no keys");
        }
    }

    #[test]
    fn a_count_at_its_end_stays_there() {
        let hasher = Hasher::seeded(3);
        let split = SplitBlock::new(&split::Params::for_rate(10, 0.01).unwrap(), u64::MAX, SALT).unwrap();
        let classic = Classic::new(&classic::Params::for_rate(10, 0.01).unwrap(), u64::MAX, SALT).unwrap();
        let full = [Bloom::of(KeyType::Integer, hasher.clone(), split), Bloom::of(KeyType::Integer, hasher, classic)];
        for bloom in full {
            let mut bloom = Bloom::restore(bloom.unwrap().snapshot().unwrap()).unwrap();
            bloom.insert(1u64).unwrap();
            assert!(bloom.contains(1u64).unwrap());
            assert!(bloom.len() == u64::MAX && bloom.fpr() > 0.999);
        }
    }

    #[test]
    fn what_is_no_bloom_filter_is_rejected() {
        let ribbon = crate::build(0..500u64).finish().unwrap();
        let error = Bloom::restore(ribbon.as_bytes().to_vec()).unwrap_err().to_string();
        assert_eq!(error, "invalid file: not a Bloom filter: only those take more keys");
        let mut bytes = both(10)[0].snapshot().unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        assert!(Bloom::restore(bytes).is_err());
        assert!(both(10)[0].insert("text").is_err());
        assert!(Bloom::with_capacity(10).fpr(0.0).build::<u64>().is_err());
    }
}
