#![allow(clippy::unwrap_used, clippy::panic)]
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::dynamic::access::Access;
use crate::dynamic::shared::SharedChained;
use crate::hash::{Hasher, scramble};
use crate::{Filter, FormatError};

/// Over every kind of first layer.
fn all(capacity: u64, fpr: f64) -> Vec<Chained> {
    let hasher = || Hasher::secret([3, 4]);
    let bloom = Bloom::with_capacity(capacity).fpr(fpr).hasher(hasher());
    let cuckoo = Cuckoo::with_capacity(capacity).fpr(fpr).hasher(hasher());
    vec![
        Chained::over(bloom.clone().build::<u64>().unwrap()).unwrap(),
        Chained::over(bloom.classic().build::<u64>().unwrap()).unwrap(),
        Chained::over(cuckoo.clone().build::<u64>().unwrap()).unwrap(),
        Chained::over(cuckoo.semi_sorted().build::<u64>().unwrap()).unwrap(),
        Chained::over(Quotient::with_capacity(capacity).fpr(fpr).hasher(hasher()).build::<u64>().unwrap()).unwrap(),
    ]
}

/// What a set says: members true, excluded keys false.
type Oracle = HashMap<u64, bool>;

fn check(filter: &Chained, oracle: &Oracle) {
    for (&key, &member) in oracle {
        assert_eq!(filter.contains(key).unwrap(), member, "{key} in {filter:?}");
    }
    let members = oracle.values().filter(|member| **member).count() as u64;
    assert_eq!((filter.len(), filter.excluded_len()), (members, oracle.len() as u64 - members));
}

/// One random operation on both, whose results must agree.
fn step(filter: &mut Chained, oracle: &mut Oracle, random: u64, range: u64) {
    let (key, kind) = (random % range, scramble(random) % 100);
    let known = oracle.get(&key).copied();
    let changed = |result: Result<bool, Error>| match result {
        Ok(changed) => Ok(changed),
        Err(Error::Change(error)) => Err(error),
        Err(error) => panic!("{error}"),
    };
    match kind {
        0..35 => match (changed(filter.insert(key)), known) {
            (Ok(new), None | Some(true)) => {
                assert_eq!(new, known.is_none());
                oracle.insert(key, true);
            }
            (Err(ChangeError::Excluded), Some(false)) | (Err(ChangeError::Full { .. }), None) => {}
            (other, _) => panic!("{other:?} for {known:?}"),
        },
        35..75 => match (changed(filter.exclude(key)), known) {
            (Ok(new), None | Some(false)) => {
                assert_eq!(new, known.is_none());
                oracle.insert(key, false);
            }
            (Err(ChangeError::Member), Some(true)) => {}
            (other, _) => panic!("{other:?} for {known:?}"),
        },
        75..90 => match (filter.remove(key), known) {
            (Ok(()), Some(true)) => assert_eq!(oracle.remove(&key), Some(true)),
            (Err(ChangeError::Absent), None | Some(false)) => {}
            (other, _) => panic!("{other:?} for {known:?}"),
        },
        _ => match (filter.allow(key), known) {
            (Ok(taken), None | Some(false)) => assert_eq!(taken, oracle.remove(&key).is_some()),
            (Err(ChangeError::Member), Some(true)) => {}
            (other, _) => panic!("{other:?} for {known:?}"),
        },
    }
}

/// No false negative, nothing forgotten: 10^7 operations with TAMIS_SLOW, in all.
#[test]
fn mixed_operations_agree_with_an_oracle() {
    let steps: u64 = if std::env::var_os("TAMIS_SLOW").is_some() { 2_000_000 } else { 40_000 };
    let range = steps / 5;
    for mut filter in all(range / 2, 0.06) {
        let mut oracle = Oracle::new();
        for random in 0..steps {
            step(&mut filter, &mut oracle, scramble(random), range);
            let asked = scramble(!random) % range;
            assert!(oracle.get(&asked).is_none_or(|&member| filter.contains(asked).unwrap() == member));
            if random % (steps / 8) == 0 {
                check(&filter, &oracle);
            }
        }
        check(&filter, &oracle);
        let again = Chained::restore(filter.snapshot().unwrap()).unwrap();
        check(&again, &oracle);
    }
}

/// A cuckoo filter that is overfull: a chain of kicks that finds no end changes nothing.
#[test]
fn a_failed_chain_of_kicks_is_undone() {
    let mut full = 0;
    for mut filter in all(300, 0.1).into_iter().skip(2) {
        let mut oracle = Oracle::new();
        (10_000..12_000u64)
            .for_each(|key| assert!(filter.exclude(key).unwrap() && oracle.insert(key, false).is_none()));
        for key in 0..400u64 {
            let before = (filter.len(), filter.side_items());
            match filter.insert(key) {
                Ok(new) => assert!(new && oracle.insert(key, true).is_none()),
                Err(Error::Change(ChangeError::Full { .. })) => {
                    full += 1;
                    assert_eq!((filter.len(), filter.side_items()), before);
                    check(&filter, &oracle);
                }
                Err(error) => panic!("{error}"),
            }
        }
        // All or nothing.
        let before = filter.side_items();
        assert!(matches!(filter.insert_many(20_000..21_000u64), Err(Error::Change(ChangeError::Full { .. }))));
        assert_eq!(filter.side_items(), before);
        check(&filter, &oracle);
        let none = filter.insert_many([30_000u64, 10_000]);
        assert!(matches!(none, Err(Error::Change(ChangeError::Excluded))) && filter.side_items() == before);
    }
    assert!(full > 100, "{full} failed insertions");
}

impl Chained {
    /// Items with a bit, and keys that wait.
    fn side_items(&self) -> (usize, usize) {
        let Known { graphs, waiting, .. } = &self.0.table.known;
        (graphs.len(), waiting.keys().count())
    }
}

/// Exclusions that do not pass when they are made are let in by later members unless they wait: with each of these layers some are.
#[test]
fn what_was_excluded_early_stays_excluded() {
    for mut filter in all(4_000, 0.06) {
        filter.insert_many(0..2_000u64).unwrap();
        (10_000..30_000u64).for_each(|key| assert!(filter.exclude(key).unwrap()));
        let early = filter.side_items().0;
        (2_000..3_000u64).for_each(|key| assert!(filter.insert(key).unwrap()));
        assert_eq!(filter.insert_many(2_500..4_000u64).unwrap(), 1_000);
        // Each of them would match half of the time.
        let admitted = filter.side_items().0 - early - 2_000;
        assert!(admitted > 50, "{admitted}");
        let oracle = (0..4_000).map(|key| (key, true)).chain((10_000..30_000).map(|key| (key, false))).collect();
        check(&filter, &oracle);
        let found = (100_000..200_000u64).filter(|&key| filter.contains(key).unwrap()).count() as f64;
        let expected = 1e5 * filter.fpr();
        assert!(
            (found - expected).abs() < 6.0 * expected.sqrt() + 0.05 * expected,
            "{found} of {expected} in {filter:?}"
        );
        // Excluded keys that no longer pass need no bit: it does not grow with turnovers.
        if filter.0.table.shown.first.removes() {
            (0..4_000u64).for_each(|key| filter.remove(key).unwrap());
            assert_eq!(filter.side_items(), (0, 20_000));
        }
    }
}

/// Checks every listed key at every change that readers can see.
struct Watched<'a> {
    shown: &'a mut Shown,
    oracle: &'a Oracle,
    hasher: &'a Hasher,
    changes: usize,
}

impl Access<Shown> for Watched<'_> {
    fn read<R>(&self, with: impl FnOnce(&Shown) -> R) -> R {
        with(self.shown)
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut Shown) -> R) -> R {
        let result = with(self.shown);
        self.changes += 1;
        for (&key, &member) in self.oracle {
            assert_eq!(self.shown.contains(self.hasher.integer(key)), member);
        }
        result
    }
}

#[test]
fn readers_between_the_steps_find_members_and_no_excluded_key() {
    for mut filter in all(400, 0.1) {
        let (mut oracle, mut changes) = (Oracle::new(), 0);
        let hasher = &filter.0.hasher.clone();
        for random in (0..2_500).map(scramble) {
            let (key, Table { shown, known }) = (random % 900, &mut filter.0.table);
            // What changes is not known while it changes; a member that is inserted again, or excluded in vain, is.
            let before = oracle.get(&key).copied();
            let act = random >> 32 & 3;
            if before.is_none() || (act > 1 && before == Some(act == 2)) {
                oracle.remove(&key);
            }
            let mut shown = Watched { shown, oracle: &oracle, hasher, changes: 0 };
            let digest = hasher.integer(key);
            let after = match act {
                0 => known.insert(&mut shown, digest).map_or(before, |_| Some(true)),
                1 => known.exclude(&mut shown, digest).map_or(before, |_| Some(false)),
                2 => known.remove(&mut shown, digest).map_or(before, |()| None),
                _ => known.allow(&mut shown, digest).map_or(before, |_| None),
            };
            changes += shown.changes;
            match after {
                Some(member) => oracle.insert(key, member),
                None => oracle.remove(&key),
            };
        }
        let batch = (1_000..1_050).map(|key| hasher.integer(key)).collect();
        let Table { shown, known } = &mut filter.0.table;
        let mut shown = Watched { shown, oracle: &oracle, hasher, changes };
        if known.insert_many(&mut shown, batch).is_ok() {
            oracle.extend((1_000..1_050).map(|key| (key, true)));
        }
        check(&filter, &oracle);
        assert!(changes > 500, "{changes} changes");
    }
}

#[test]
fn readers_in_other_threads_find_members_and_no_excluded_key() {
    for mut filter in all(20_000, 0.06) {
        filter.insert_many(0..500u64).unwrap();
        (500..2_500u64).for_each(|key| assert!(filter.exclude(key).unwrap()));
        let (shared, done) = (SharedChained::from(filter), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    (0..2_500u64).for_each(|key| assert_eq!(shared.contains(key).unwrap(), key < 500, "{key}"));
                }
            });
            for random in (0..6_000).map(scramble) {
                assert!(shared.insert(3_000 + random % 10_000).is_ok());
                assert!(shared.remove(3_000 + random % 10_000).is_ok() || random % 3 > 0);
                assert!(shared.exclude(20_000 + random % 10_000).is_ok() && shared.allow(random % 500).is_err());
            }
            done.store(true, Ordering::Relaxed);
        });
        let filter = shared.into_inner();
        assert!((0..2_500u64).all(|key| filter.contains(key).unwrap() == (key < 500)));
    }
}

#[test]
fn edge_sizes_go_through_files() {
    for n in [0, 1, 2, 3, 100] {
        for mut filter in all(n, 0.1) {
            assert_eq!(filter.insert_many(0..n).unwrap(), n);
            (n..3 * n).for_each(|key| assert!(filter.exclude(key).unwrap()));
            let bytes = filter.snapshot().unwrap();
            let (file, again) = (Filter::open(bytes.clone()).unwrap(), Chained::restore(bytes).unwrap());
            assert_eq!((file.len(), file.excluded_len(), again.len(), again.excluded_len()), (n, 2 * n, n, 2 * n));
            for key in 0..3 * n {
                assert_eq!((file.contains(key).unwrap(), again.contains(key).unwrap()), (key < n, key < n));
            }
            assert_eq!(again.is_empty(), n == 0);
        }
    }
}

/// Digests whose first closed bit is the same, and digests with the same fingerprint and buckets.
#[test]
fn exclusions_that_collide_are_kept_apart() {
    let (bloom, hasher) = (Bloom::with_capacity(64), || Hasher::foreign(1));
    let filters = [
        Chained::over(bloom.clone().hasher(hasher()).build::<Digest>().unwrap()),
        Chained::over(bloom.hasher(hasher()).classic().build::<Digest>().unwrap()),
        Chained::over(Cuckoo::with_capacity(64).hasher(hasher()).build::<Digest>().unwrap()),
    ];
    for mut filter in filters.map(Result::unwrap) {
        let layer = filter.0.table.shown.first.clone();
        let gate = layer.closed_gate(Digest::from_hash(0), &[]);
        let alike: Vec<Digest> = (0..3_000_000u64)
            .map(Digest::from_hash)
            .filter(|&key| layer.closed_gate(key, &[]) == gate)
            .take(300)
            .collect();
        assert!(alike.len() > 100, "{} in {filter:?}", alike.len());
        for &key in &alike[1..] {
            assert!(filter.exclude(key).unwrap() && !filter.exclude(key).unwrap());
        }
        assert!(filter.insert(alike[0]).unwrap());
        assert!(filter.contains(alike[0]).unwrap());
        assert!(alike[1..].iter().all(|&key| !filter.contains(key).unwrap()));
        assert_eq!(filter.excluded_len(), alike.len() as u64 - 1);
        assert!(alike[1..].iter().all(|&key| filter.allow(key).unwrap()) && filter.excluded_len() == 0);
    }
}

#[test]
fn what_changes_need_is_checked() {
    let mut filter = all(100, 0.1).remove(2);
    filter.insert_many(0..50u64).unwrap();
    (50..150u64).for_each(|key| assert!(filter.exclude(key).unwrap()));
    let bytes = filter.snapshot().unwrap();
    // Every byte matters.
    for at in (0..bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert!(Chained::restore(bytes).is_err(), "byte {at}");
    }
    for len in 0..bytes.len() {
        assert!(Chained::restore(bytes[..len].to_vec()).is_err(), "{len} bytes");
    }
    // Files without digests, and of other structures.
    let built = crate::build(0..50u64).exclude(50..60u64).finish().unwrap();
    assert_eq!(Chained::restore(built.as_bytes().to_vec()).unwrap_err(), FormatError::ReadOnly);
    let cuckoo = Cuckoo::with_capacity(10).build::<u64>().unwrap();
    assert_eq!(Chained::restore(cuckoo.snapshot().unwrap()).unwrap_err(), FormatError::ReadOnly);
    // A first layer with keys, and another key type.
    let mut held = Cuckoo::with_capacity(10).build::<u64>().unwrap();
    held.insert(1u64).unwrap();
    let error = Chained::over(held).unwrap_err().to_string();
    assert!(error.starts_with("over: the first layer holds keys"), "{error}");
    assert!(filter.insert("text").is_err() && filter.contains("text").is_err());
}

/// A file whose sums are right and whose digests are not: no writer writes it.
#[test]
fn digests_that_contradict_are_rejected() {
    use crate::format::{Form, Header, Kept, Writer};
    use crate::hash::Salt;
    use crate::leaves::{Role, Sides, Structure, Work, ribbon};

    let mut filter = all(100, 0.01).remove(2);
    filter.insert_many(0..20u64).unwrap();
    let Core { hasher, key_type, table, .. } = &filter.0;
    let file = |members: &[Digest], excluded: &[Digest], claimed: u64| {
        let exact = Structure::from(ribbon::Params { width: 256, tight: false, nested: false });
        let work = Work { salt: Salt::new(1), skip: 0, threads: 1, stop: &|| false };
        let part = exact.build(Sides::new(&[], &&[][..]).of(Role::Exact), &work).unwrap();
        let kinds = vec![[Role::Positive.encode(), table.shown.first.tag()], [Role::Exact.encode(), exact.tag()]];
        let mut bytes = vec![];
        let mut writer = Writer::new(&mut bytes, &Header::new(Form::Filter, hasher.clone(), *key_type), kinds).unwrap();
        writer.shard(&[table.shown.first.encoded().remove(0), part]).unwrap();
        let digests: Vec<u8> = members.iter().chain(excluded).flat_map(|key| key.to_bits().to_le_bytes()).collect();
        writer.keep(Kept { members: claimed, excluded: excluded.len() as u64 }, &digests).unwrap();
        writer.finish().unwrap();
        bytes
    };
    let mut members: Vec<Digest> = (0..20u64).map(|key| hasher.integer(key)).collect();
    let mut others: Vec<Digest> = (100..120u64).map(|key| hasher.integer(key)).collect();
    members.sort();
    others.sort();
    let good = Chained::restore(file(&members, &others, 20)).unwrap();
    assert!((0..20u64).all(|key| good.contains(key).unwrap()) && good.excluded_len() == 20);
    let mut both = others.clone();
    both[0] = members[0];
    both.sort();
    let twice = [&members[..], &members[19..]].concat();
    let reversed: Vec<Digest> = members.iter().rev().copied().collect();
    for (bytes, expected) in [
        (file(&members, &both, 20), "its digests are not in order"),
        (file(&twice, &others, 21), "its digests are not in order"),
        (file(&reversed, &others, 20), "its digests are not in order"),
        (file(&others, &members, 20), "its first layer does not match a member"),
        (file(&members, &others, 19), "bytes between payload and directory"),
        (file(&members, &others, 21), "the payload"),
        (file(&members, &others, 1 << 40), "the payload"),
        (file(&members, &others, 1 << 41), "number of members"),
    ] {
        let error = Chained::restore(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}; expected {expected}");
    }
}
