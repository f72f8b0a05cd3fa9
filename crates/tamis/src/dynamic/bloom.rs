//! keys, one at a time -> a Bloom filter that grows fuller, and its snapshot as a file.
//!
//! The other structures are built once from all their keys. A Bloom filter takes keys whenever they come; its rate rises with
//! them and is what was asked for when it holds as many as it was made for. [`Bloom`] owns its table; [`Bloom::snapshot`] is an
//! ordinary filter file, and [`Bloom::restore`] takes one up again.

use bytes::Bytes;

use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, FormatError, QueryError};
use crate::filter::open::open;
use crate::filter::steps::Step;
use crate::format::{self, Budget, Encoded, Form, Header, Writer};
use crate::hash::{Digest, Domain, Hasher, Key, Mismatch, Salt};
use crate::leaves::bloom::{Classic, SplitBlock, classic, split};
use crate::leaves::{Entry, Geometry, Leaf, Query, Role};

/// A Bloom filter that keys can be added to.
///
/// Without a secret others can choose keys. They cannot stop the filter or slow it down, but [`rate`](Bloom::rate) is no longer
/// right: keys whose bits are all different raise it, from 1 % to 8 % in a classic filter at its capacity, and some strangers pass for sure.
/// If others choose keys, give the filter a keyed hash: see [`Hasher::secret`].
///
/// ```
/// use tamis::{Bloom, Domain, Filter, Hasher};
/// let mut seen = Bloom::split_block(Domain::Bytes, Hasher::seeded(0), 1000, 0.01)?;
/// seen.insert("ann")?;
/// assert!(seen.contains("ann")?);
/// let filter = Filter::open(seen.snapshot()?)?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Bloom {
    hasher: Hasher,
    domain: Domain,
    keys: u64,
    table: Table,
    payload: Vec<u8>,
}

brief_debug!(Bloom, it => keys: it.keys, bytes: it.payload.len(), hasher: it.hasher);

#[derive(Clone, Copy, Debug)]
enum Table {
    SplitBlock(SplitBlock),
    Classic(Classic),
}

/// Runs `$body` with the geometry of a table.
macro_rules! with_table {
    ($table:expr, $geometry:ident => $body:expr) => {
        match $table {
            Table::SplitBlock($geometry) => $body,
            Table::Classic($geometry) => $body,
        }
    };
}

/// The only step of a file.
const SALT: Salt = Salt::new(0);

impl Bloom {
    /// An empty split-block Bloom filter: `rate` is reached with `capacity` keys.
    pub fn split_block(domain: Domain, hasher: Hasher, capacity: u64, rate: f64) -> Result<Bloom, BuildError> {
        let params = split::Params::for_rate(capacity.max(1), rate)?;
        Bloom::empty(domain, hasher, Table::SplitBlock(SplitBlock::new(&params, 0, SALT)?))
    }

    /// An empty classic Bloom filter: `rate` is reached with `capacity` keys.
    pub fn classic(domain: Domain, hasher: Hasher, capacity: u64, rate: f64) -> Result<Bloom, BuildError> {
        let params = classic::Params::for_rate(capacity.max(1), rate)?;
        Bloom::empty(domain, hasher, Table::Classic(Classic::new(&params, 0, SALT)?))
    }

    fn empty(domain: Domain, hasher: Hasher, table: Table) -> Result<Bloom, BuildError> {
        let mut payload = vec![];
        crate::leaves::bloom::zeros(&mut payload, with_table!(&table, geometry => geometry.payload_len()))?;
        Ok(Bloom { hasher, domain, keys: 0, table, payload })
    }

    /// Adds a key. Adding one again changes nothing but the count.
    pub fn insert<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let digest = self.digest(key)?;
        with_table!(&self.table, geometry => geometry.insert(&mut self.payload, digest));
        self.keys = self.keys.saturating_add(1); // a file may claim any number
        Ok(())
    }

    /// Whether the key may have been added.
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        let digest = self.digest(key)?;
        Ok(with_table!(&self.table, geometry => geometry.contains(&self.payload, digest)))
    }

    fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        self.domain.digest(key, &self.hasher)
    }

    /// How many keys were added.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The share of strangers it lets through now.
    pub fn rate(&self) -> f64 {
        with_table!(&self.current(), geometry => geometry.rate())
    }

    /// The table with the number of keys as it is.
    fn current(&self) -> Table {
        match self.table {
            Table::SplitBlock(table) => Table::SplitBlock(table.holding(self.keys)),
            Table::Classic(table) => Table::Classic(table.holding(self.keys)),
        }
    }

    /// The filter as a file.
    pub fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        let header = Header {
            hasher: self.hasher,
            domain: self.domain,
            shard_bits: 0,
            form: Form::Filter,
            keys: self.keys,
            negatives: 0,
        };
        let tag = match self.table {
            Table::SplitBlock(_) => SplitBlock::TAG,
            Table::Classic(_) => Classic::TAG,
        };
        let mut geometry = vec![];
        with_table!(&self.current(), table => table.encode(&mut geometry));
        let mut writer = Writer::new(Vec::new(), &header, vec![[Role::Refuse.encode(), tag]])?;
        writer.shard(&[Encoded { geometry, payload: self.payload.clone().into() }])?;
        Ok(writer.finish()?.0)
    }

    /// Takes up a snapshot, or any filter file of one shard that is a single Bloom filter. The payload is checked.
    pub fn restore(bytes: impl Into<Bytes>) -> Result<Bloom, FormatError> {
        let bytes = bytes.into();
        format::verify(&bytes)?;
        let budget = Budget::of(&bytes);
        let contents = open(&bytes, &budget)?;
        budget.draw(bytes.len() as u64)?;
        let Header { hasher, domain, keys, .. } = contents.header;
        if contents.header.shard_bits > 0 {
            return Err(FormatError::invalid("a Bloom filter in several shards cannot be taken up"));
        }
        let only = match &contents.steps[..] {
            [Step { role: Role::Refuse, leaf, .. }] => Some(leaf),
            _ => None,
        };
        let found = match only {
            Some(Leaf::SplitBlock(column)) => {
                column.parts().first().map(|p| (Table::SplitBlock(p.geometry), &p.payload))
            }
            Some(Leaf::Bloom(column)) => column.parts().first().map(|p| (Table::Classic(p.geometry), &p.payload)),
            _ => None,
        };
        let Some((table, payload)) = found else {
            return Err(FormatError::invalid("not a Bloom filter: only those take more keys"));
        };
        let payload = payload.to_vec();
        // Without keys a built filter has no table, and a key that is put nowhere is not found again.
        if payload.is_empty() {
            return Err(FormatError::invalid("a Bloom filter without a table takes no keys"));
        }
        Ok(Bloom { hasher, domain, keys, table, payload })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Filter;

    fn both(capacity: u64) -> [Bloom; 2] {
        let hasher = Hasher::seeded(3);
        [
            Bloom::split_block(Domain::U64, hasher, capacity, 0.01).unwrap(),
            Bloom::classic(Domain::U64, hasher, capacity, 0.01).unwrap(),
        ]
    }

    #[test]
    fn keys_stay_through_snapshots_and_more_keys() {
        for mut bloom in both(2000) {
            assert!(!bloom.contains(1u64).unwrap() && bloom.is_empty() && bloom.rate() == 0.0);
            for round in 0..4 {
                (round * 500..round * 500 + 500).for_each(|key| bloom.insert(key).unwrap());
                let bytes = bloom.snapshot().unwrap();
                let filter = Filter::open(bytes.clone()).unwrap();
                assert_eq!((filter.len(), filter.rate()), (bloom.len(), bloom.rate()));
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
    fn a_table_without_room_is_refused() {
        for kind in [crate::Kind::Bloom, crate::Kind::ClassicBloom] {
            let empty = crate::build([0u64; 0]).kind(kind).finish().unwrap();
            let error = Bloom::restore(empty.as_bytes().to_vec()).unwrap_err().to_string();
            assert_eq!(error, "invalid file: a Bloom filter without a table takes no keys");
        }
    }

    #[test]
    fn a_count_at_its_end_stays_there() {
        for mut bloom in both(10) {
            bloom.keys = u64::MAX;
            let mut bloom = Bloom::restore(bloom.snapshot().unwrap()).unwrap();
            bloom.insert(1u64).unwrap();
            assert!(bloom.contains(1u64).unwrap());
            assert!(bloom.len() == u64::MAX && bloom.rate() > 0.999);
        }
    }

    #[test]
    fn what_is_no_bloom_filter_is_refused() {
        let ribbon = crate::build(0..500u64).finish().unwrap();
        let error = Bloom::restore(ribbon.as_bytes().to_vec()).unwrap_err().to_string();
        assert_eq!(error, "invalid file: not a Bloom filter: only those take more keys");
        let mut bytes = both(10)[0].snapshot().unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        assert!(Bloom::restore(bytes).is_err());
        assert!(both(10)[0].insert("text").is_err());
        assert!(Bloom::split_block(Domain::U64, Hasher::seeded(0), 10, 0.0).is_err());
    }
}
