//! a built filter of all members -> a first layer that never changes.
//!
//! A key that it rejects never passes, so excluded keys have nothing to wait for: those that pass get their 0, others are not kept.

use bytes::Bytes;

use crate::error::FormatError;
use crate::filter::query::Filter;
use crate::format::{Encoded, Header, Writer};
use crate::hash::Digest;
use crate::leaves::change::{Full, Layer};
use crate::leaves::{Entry as _, Leaf, Role, fuse, ribbon};

/// A layer that takes no keys.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    /// A file of this layer alone.
    filter: Filter,
    tag: u8,
}

fn tag(leaf: &Leaf) -> Option<u8> {
    let ribbon = ribbon::Ribbon::of(leaf).map(|_| ribbon::Ribbon::TAG);
    ribbon.or_else(|| fuse::Fuse::of(leaf).map(|_| fuse::Fuse::TAG))
}

impl Fixed {
    /// None if the filter is not one ribbon or fuse filter.
    pub(super) fn new(filter: &Filter) -> Option<Fixed> {
        Some(Fixed { tag: tag(filter.only_leaf()?)?, filter: filter.clone() })
    }

    /// The same of the first leaf of a file, which it does not keep in memory.
    pub(super) fn alone(header: &Header, leaf: &Leaf) -> Result<Option<Fixed>, FormatError> {
        let Some(tag) = tag(leaf) else { return Ok(None) };
        let mut file = vec![];
        let write = |file: &mut Vec<u8>| -> std::io::Result<()> {
            let mut writer = Writer::new(file, header, vec![[Role::Positive.encode(), tag]])?;
            for part in (0..leaf.shards()).filter_map(|shard| leaf.part(shard)) {
                writer.shard(&[part])?;
            }
            writer.finish().map(|_| ())
        };
        write(&mut file).map_err(|error| FormatError::invalid(error.to_string()))?;
        Ok(Fixed::new(&Filter::opened(Bytes::from(file), header.hasher.needed_secret())?))
    }
}

impl Layer for Fixed {
    fn tag(&self) -> u8 {
        self.tag
    }

    fn removes(&self) -> bool {
        false
    }

    fn keys(&self) -> u64 {
        self.filter.len()
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.filter.len())
    }

    fn fpr(&self) -> f64 {
        self.filter.fpr()
    }

    fn fill(&self) -> f64 {
        1.0
    }

    fn fpr_now(&self) -> f64 {
        self.fpr()
    }

    fn payload(&self) -> &[u8] {
        self.filter.as_bytes()
    }

    fn contains(&self, key: Digest) -> bool {
        self.filter.answer_listed(None, key)
    }

    fn insert(&mut self, _key: Digest) -> Result<(), Full> {
        Err(Full { keys: self.filter.len(), capacity: self.filter.len() })
    }

    fn remove(&mut self, _key: Digest) -> bool {
        false
    }

    /// One gate for all other keys, which never opens.
    fn closed_gate(&self, key: Digest, _opening: &[u64]) -> Option<u64> {
        (!self.contains(key)).then_some(0)
    }

    fn closed_gates(&self, key: Digest, out: &mut Vec<u64>) {
        out.extend(self.closed_gate(key, &[]));
    }

    fn gate(&self, _key: Digest) -> Option<u64> {
        None
    }

    fn takes_keys(&self) -> bool {
        false
    }

    fn encoded(&self) -> Vec<Encoded> {
        (0..self.filter.shards() as usize).filter_map(|shard| self.filter.part(shard)).collect()
    }

    fn boxed(&self) -> Box<dyn Layer> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::collections::BTreeSet;

    use super::super::{Chained, Table};
    use super::*;
    use crate::dynamic::chained::change::Known;
    use crate::error::{ChangeError, Error};
    use crate::format::Kept;
    use crate::hash::{Hasher, Salt, scramble};
    use crate::leaves::{Sides, Structure, Work};
    use crate::{Kind, Options};

    /// Members 0..n over every kind of built filter, in one shard and in several.
    fn all(n: u64, fpr: f64) -> Vec<Chained> {
        let of = |options: Options<'static>, kind| {
            let first = options.kind(kind).fpr(fpr).hasher(Hasher::secret([3, 4])).build(0..n).finish().unwrap();
            Chained::over_built(&first, 0..n).unwrap()
        };
        let kinds = [Kind::Ribbon, Kind::Fuse, Kind::Fuse4];
        let [shards, whole] = [Options::default().shard_bytes(4096), Options::default()];
        kinds.iter().flat_map(|&kind| [of(whole.clone(), kind), of(shards.clone(), kind)]).collect()
    }

    /// All members match, no excluded key does, and files answer alike; `excluded` also has keys that do not pass.
    fn check(filter: &Chained, n: u64, excluded: &BTreeSet<u64>) {
        let bytes = filter.snapshot().unwrap();
        let (file, again) = (Filter::open(bytes.clone()).unwrap(), Chained::restore(bytes.clone()).unwrap());
        for key in 0..n {
            assert!(filter.contains(key).unwrap() && file.contains(key).unwrap() && again.contains(key).unwrap());
        }
        for &key in excluded {
            assert!(!filter.contains(key).unwrap() && !file.contains(key).unwrap() && !again.contains(key).unwrap());
        }
        let passing = excluded.iter().filter(|&&key| filter.passes(key)).count() as u64;
        assert_eq!((filter.len(), filter.excluded_len(), file.len(), file.excluded_len()), (n, passing, n, passing));
        assert_eq!((again.len(), again.excluded_len(), again.takes_keys()), (n, passing, false));
        assert_eq!(again.snapshot().unwrap(), bytes);
    }

    impl Chained {
        fn passes(&self, key: u64) -> bool {
            self.0.table.shown.first.contains(self.0.hasher.integer(key))
        }
    }

    #[test]
    fn exclusions_agree_with_an_oracle() {
        let n = 40_000;
        for mut filter in all(n, 0.06) {
            let mut excluded = BTreeSet::new();
            for random in (0..60_000).map(scramble) {
                let key = random % 100_000;
                let passes = filter.passes(key);
                match (random >> 32) % 4 {
                    0 => match filter.allow(key) {
                        Ok(taken) => assert_eq!(taken, key >= n && excluded.remove(&key) && passes),
                        Err(error) => assert!(error == ChangeError::Member && key < n),
                    },
                    _ => match filter.exclude(key) {
                        Ok(new) => assert_eq!(new, key >= n && excluded.insert(key) && passes),
                        Err(Error::Change(ChangeError::Member)) => assert!(key < n),
                        Err(error) => panic!("{error}"),
                    },
                }
                assert!(!excluded.contains(&key) || !filter.contains(key).unwrap());
            }
            check(&filter, n, &excluded);
            let Known { waiting, .. } = &filter.0.table.known;
            assert!(waiting.keys().next().is_none(), "nothing waits for a layer that never changes");
            let found = (1_000_000..1_200_000u64).filter(|&key| filter.contains(key).unwrap()).count() as f64;
            let expected = 2e5 * filter.fpr();
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found} of {expected} in {filter:?}");
        }
        let shards = |filter: Chained| Filter::open(filter.snapshot().unwrap()).unwrap().shards();
        assert!(all(n, 0.06).into_iter().map(shards).enumerate().all(|(i, shards)| (shards > 1) == (i % 2 == 1)));
    }

    #[test]
    fn edge_sizes_go_through_files() {
        for n in [0, 1, 2, 3, 300] {
            for mut filter in all(n, 0.3) {
                let excluded: BTreeSet<u64> = (n..n + 200).collect();
                excluded.iter().for_each(|&key| assert_eq!(filter.exclude(key).unwrap(), filter.passes(key)));
                check(&filter, n, &excluded);
                assert_eq!(filter.is_empty(), n == 0);
            }
        }
    }

    #[test]
    fn members_stay() {
        for mut filter in all(100, 0.5) {
            (100..200u64).for_each(|key| assert_eq!(filter.exclude(key).unwrap(), filter.passes(key)));
            let before = filter.snapshot().unwrap();
            let refused = [
                filter.insert(7u64).map(drop),
                filter.insert(150u64).map(drop),
                filter.insert(1000u64).map(drop),
                filter.insert_many([1000u64, 1001]).map(drop),
                filter.remove(7u64).map_err(Error::from),
                filter.remove(1000u64).map_err(Error::from),
            ];
            for result in refused {
                let Err(Error::Change(ChangeError::Unsupported { what })) = result else { panic!("{result:?}") };
                assert!(
                    what.contains("the first layer was built") && what.contains("build the filter again"),
                    "{what}"
                );
            }
            assert_eq!(filter.snapshot().unwrap(), before);
        }
    }

    #[test]
    fn other_layers_and_other_keys_are_refused() {
        let refused = |first: &Filter, n: u64| match Chained::over_built(first, 0..n) {
            Err(Error::Change(ChangeError::Unsupported { what })) => what,
            other => panic!("{other:?}"),
        };
        let first = crate::build(0..100u64).kind(Kind::Ribbon).finish().unwrap();
        for n in [0, 99, 101] {
            assert!(refused(&first, n).contains("not the keys of the filter"));
        }
        assert!(Chained::over_built(&first, (0..100u64).chain(0..100)).is_ok(), "each key counts once");
        assert!(Chained::over_built(&first, 1..101u64).is_err());
        assert!(matches!(Chained::over_built(&first, ["text"]), Err(Error::Change(ChangeError::KeyType(_)))));
        let mut labelled = Options::default().partitioned();
        labelled.push("a", 1u64).unwrap();
        for first in [
            crate::build(0..100u64).kind(Kind::Bloom).finish().unwrap(),
            crate::build(0..100u64).kind(Kind::Cuckoo).finish().unwrap(),
            crate::build(0..100u64).exclude(100..9000u64).finish().unwrap(),
            labelled.finish().unwrap(),
        ] {
            assert!(refused(&first, 100).contains("expected a filter of one layer, a ribbon or a fuse filter"));
        }
    }

    #[test]
    fn damaged_files_are_rejected() {
        let mut filter = all(50, 0.3).remove(0);
        (50..150u64).for_each(|key| assert_eq!(filter.exclude(key).unwrap(), filter.passes(key)));
        let bytes = filter.snapshot().unwrap();
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(Chained::restore(bytes).is_err(), "byte {at}");
            assert!(Chained::restore(filter.snapshot().unwrap()[..at].to_vec()).is_err(), "{at} bytes");
        }
        // Right sums, and an excluded key that needs no digest: no writer writes it.
        let Table { shown, .. } = &filter.0.table;
        let digest = |key: u64| filter.0.hasher.integer(key);
        let file = |other: u64| {
            let exact = Structure::from(ribbon::Params { width: 256, tight: false, nested: false });
            let work = Work { salt: Salt::new(1), skip: 0, threads: 1, stop: &|| false };
            let part = exact.build(Sides::new(&[], &&[][..]).of(Role::Exact), &work).unwrap();
            let kinds = vec![[Role::Positive.encode(), shown.first.tag()], [Role::Exact.encode(), exact.tag()]];
            let header = Header::new(crate::format::Form::Filter, filter.0.hasher.clone(), filter.0.key_type);
            let mut members: Vec<Digest> = (0..50).map(digest).collect();
            members.sort();
            let mut bytes = vec![];
            let mut writer = Writer::new(&mut bytes, &header, kinds).unwrap();
            writer.shard(&[shown.first.encoded().remove(0), part]).unwrap();
            let all = members.into_iter().chain([digest(other)]).flat_map(|key| key.to_bits().to_le_bytes());
            writer.keep(Kept { members: 50, excluded: 1 }, &all.collect::<Vec<u8>>()).unwrap();
            writer.finish().unwrap();
            Chained::restore(bytes)
        };
        let [passes, rejected] = [true, false].map(|yes| (50..).find(|&key| filter.passes(key) == yes).unwrap());
        assert_eq!(file(passes).unwrap().excluded_len(), 1);
        let error = file(rejected).unwrap_err().to_string();
        assert!(error.contains("its first layer rejects an excluded key for good"), "{error}");
    }
}
