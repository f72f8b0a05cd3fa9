//! keys, one at a time -> a Bloom filter that grows fuller, and its snapshot as a file.
//!
//! Keys can be inserted at any time. The rate rises with them and reaches its goal at the capacity; nothing stops it there, so the filter
//! says how full it is.

use bytes::Bytes;

use super::builder::{DynamicBuilder, Empty, Options};
use super::core::{Core, SALT, is_file, of_layer};
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
///
/// let path = std::env::temp_dir().join("tamis-bloom-example.tamis");
/// seen.save(&path)?;
/// let mut seen = Bloom::read(&path)?; // or, if no keys come later, `Filter::read`
/// seen.insert("bob")?;
/// assert!(seen.contains("ann")? && Filter::read(&path)?.contains("ann")?);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Bloom(pub(super) Core<Box<dyn Layer>>);

brief_debug!(Bloom, it => keys: it.len(), bytes: it.0.table.payload().len(), hasher: it.0.hasher);

of_layer!(Bloom);
is_file!(Bloom, 0.hasher: ", or of any filter file of one shard that is a single Bloom filter.", "[`FormatError`] if the bytes are no such file, or damaged.");

impl Bloom {
    /// Starts a filter for `capacity` keys. It takes more of them, and then its false positive rate is above
    /// [`fpr`](DynamicBuilder::fpr): see [`fpr_now`](Self::fpr_now).
    pub fn with_capacity(capacity: u64) -> DynamicBuilder<Bloom> {
        DynamicBuilder::new(capacity)
    }

    /// Returns the share of unlisted keys that match, by the bits that are set. Reads the whole table.
    ///
    /// [`fpr`](Self::fpr) follows from the number of keys. It is too high if keys were inserted twice, and too low if they were chosen
    /// to set many bits.
    ///
    /// ```
    /// use tamis::Bloom;
    /// let mut seen = Bloom::with_capacity(1000).fpr(0.01).build::<u64>()?;
    /// (0..1000).try_for_each(|key: u64| seen.insert(key))?;
    /// assert!(seen.fpr_now() < 0.013);
    /// (1000..4000).try_for_each(|key: u64| seen.insert(key))?; // past its capacity: time for a larger one
    /// assert!(seen.fpr_now() > 0.3);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn fpr_now(&self) -> f64 {
        self.0.table.fpr_now()
    }

    /// Returns the share of bits that are set, from 0 to 1. Reads the whole table.
    ///
    /// A classic filter with as many keys as its capacity has about one half; a filter with all of them matches every key.
    ///
    /// ```
    /// use tamis::Bloom;
    /// let mut seen = Bloom::with_capacity(1000).fpr(0.01).classic().build::<u64>()?;
    /// (0..1000).try_for_each(|key: u64| seen.insert(key))?;
    /// assert!((seen.fill() - 0.5).abs() < 0.03);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn fill(&self) -> f64 {
        self.0.table.fill()
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

    /// Past the capacity, with keys that come again, and with keys that were chosen to set many bits.
    #[test]
    fn the_rate_now_is_the_measured_one() {
        type Keys = fn(&Bloom, u64) -> u64;
        let next: Keys = |_, i| i;
        let again: Keys = |_, i| i % 1000;
        let chosen: Keys = |bloom, i| {
            let new_bits = |key: &u64| {
                let mut closed = vec![];
                bloom.0.table.closed_gates(bloom.0.digest(*key).unwrap(), &mut closed);
                closed.len()
            };
            (100 * i..100 * i + 100).max_by_key(new_bits).unwrap()
        };
        for empty in both(2000) {
            assert_eq!((empty.fill(), empty.fpr_now()), (0.0, 0.0));
            // Insertions, and the rate as a multiple of what their number says.
            let cases = [
                (next, 1000, 0.8..1.25),
                (next, 2000, 0.8..1.25),
                (next, 4000, 0.8..1.25),
                (next, 20_000, 0.8..1.25),
                (again, 4000, 0.0..0.1),
                (chosen, 2000, 2.0..20.0),
            ];
            let mut fills = vec![];
            for (keys, n, expected) in cases {
                let mut bloom = empty.clone();
                (0..n).for_each(|i| bloom.insert(keys(&bloom, i)).unwrap());
                let (now, of) = (bloom.fpr_now(), bloom.fpr());
                let found =
                    (1 << 40..(1u64 << 40) + 400_000).filter(|&key| bloom.contains(key).unwrap()).count() as f64;
                let sigma = (400_000.0 * now * (1.0 - now)).sqrt();
                assert!((found - 400_000.0 * now).abs() < 5.0 * sigma + 1.0, "{n} keys: {found} of 400,000 at {now}");
                assert!(expected.contains(&(now / of)), "{n} keys: {now}, {of} by their number");
                let restored = Bloom::restore(bloom.snapshot().unwrap()).unwrap();
                assert_eq!((restored.fill(), restored.fpr_now()), (bloom.fill(), now));
                fills.push(bloom.fill());
            }
            assert!(fills[..4].is_sorted() && fills[3] > 0.95 && fills[3] <= 1.0, "{fills:?}");
            assert!(fills[5] > fills[1], "{fills:?}");
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
