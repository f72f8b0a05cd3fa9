#![allow(clippy::unwrap_used)]
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use super::*;
use crate::hash::{KeyType, scramble};

/// Random numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 += 1;
        scramble(self.0) % n
    }
}

/// A store that fails once when `left` operations are done.
#[derive(Default)]
struct Failing {
    memory: Memory<u64, u64>,
    left: Rc<Cell<u64>>,
}

impl Failing {
    fn step(&self) -> io::Result<()> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 1 { Err(io::Error::other("planted")) } else { Ok(()) }
    }
}

impl Store<u64, u64> for Failing {
    fn fresh(&self, buckets: u64, slots: usize) -> io::Result<Failing> {
        self.step()?;
        Ok(Failing { memory: self.memory.fresh(buckets, slots)?, left: self.left.clone() })
    }

    fn read(&self, bucket: u64) -> io::Result<Bucket<'_, u64, u64>> {
        self.step()?;
        self.memory.read(bucket)
    }

    fn write(&mut self, bucket: u64, slot: usize, entry: Option<(u64, u64)>) -> io::Result<()> {
        self.step()?;
        self.memory.write(bucket, slot, entry)
    }
}

/// The table has exactly the entries of the oracle.
fn agrees<S: Store<u64, u64>>(table: &Table<u64, u64, S>, oracle: &HashMap<u64, u64>) {
    assert_eq!(table.len(), oracle.len() as u64);
    let stats = table.stats();
    assert_eq!(stats.first + stats.second, table.len());
    let all: Vec<(u64, u64)> = table.iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(all.len(), oracle.len());
    for (key, value) in all {
        assert_eq!(oracle.get(&key), Some(&value));
        assert_eq!(table.get(&key).unwrap(), Some(value));
    }
}

const ALL: [Predictor; 3] = [Predictor::Auto, Predictor::Exact, Predictor::Cascade];

#[test]
fn random_operations_agree_with_an_oracle() {
    for (seed, predictor) in ALL.into_iter().enumerate() {
        for slots in [1, 2, 4] {
            let mut draw = Draw(1000 * seed as u64 + slots as u64);
            let mut table = TableBuilder::with_capacity(0).slots(slots).predictor(predictor).build().unwrap();
            let mut oracle = HashMap::new();
            for step in 0..30_000 {
                // The table fills, is emptied by half, and fills again.
                let (key, value) = (draw.below(1500), draw.below(1 << 40));
                let inserts = if step / 7500 % 2 == 0 { 70 } else { 30 };
                match draw.below(100) {
                    kind if kind < inserts => assert_eq!(table.insert(key, value).unwrap(), oracle.insert(key, value)),
                    kind if kind < 85 => assert_eq!(table.remove(&key).unwrap(), oracle.remove(&key)),
                    kind if kind < 92 => assert_eq!(table.get(&key).unwrap(), oracle.get(&key).copied()),
                    _ => assert_eq!(table.get_and_learn(&key).unwrap(), oracle.get(&key).copied()),
                }
                if step % 5000 == 4999 {
                    table.settle().unwrap();
                    agrees(&table, &oracle);
                }
            }
            agrees(&table, &oracle);
            let stats = table.stats();
            assert!(stats.rebuilds >= 5 && stats.moves > 0, "{stats:?}");
            if predictor == Predictor::Exact {
                assert!(stats.bucket_reads == stats.gets && stats.resets == 0 && !stats.is_cascade, "{stats:?}");
            }
        }
    }
}

#[test]
fn a_store_is_opened_again() {
    for (slots, predictor) in
        [(1, Predictor::Exact), (1, Predictor::Cascade), (2, Predictor::Auto), (4, Predictor::Exact)]
    {
        for keys in [0, 1, 2, 3000] {
            let builder = TableBuilder::with_capacity(0).slots(slots).predictor(predictor);
            let mut table = builder.clone().build::<u64, u64>().unwrap();
            let mut oracle: HashMap<u64, u64> = (0..keys).map(|key| (key, scramble(key))).collect();
            for (&key, &value) in &oracle {
                table.insert(key, value).unwrap();
            }
            for key in 0..keys / 3 {
                assert_eq!(table.remove(&key).unwrap(), oracle.remove(&key));
            }
            for round in 0..3 {
                let layout = Layout::from_bytes(table.layout().to_bytes()).unwrap();
                assert_eq!((layout, layout.slots(), layout.buckets()), (table.layout(), slots, table.buckets()));
                table = builder.clone().open_in(table.into_store(), layout).unwrap();
                agrees(&table, &oracle);
                assert_eq!(table.stats().is_cascade, predictor == Predictor::Cascade);
                for key in 0..keys / 2 {
                    assert_eq!(table.insert(key, round).unwrap(), oracle.insert(key, round));
                }
            }
            agrees(&table, &oracle);
        }
    }
}

/// A table that is dropped at any write of an insertion: every other key is there once, with its last value.
#[test]
fn a_store_is_opened_again_after_a_crash() {
    let (mut twice, mut draw) = (0, Draw(5));
    for round in 0..60 {
        let store = Failing::default();
        let left = store.left.clone();
        let builder = TableBuilder::with_capacity(120).slots(1).fixed();
        let mut table = builder.clone().build_in(&store).unwrap();
        let mut oracle = HashMap::new();
        for step in 0..2000 {
            let (key, value) = (draw.below(130), draw.below(1 << 40));
            // Errors that the table survives, before the last one.
            left.set(if draw.below(2) == 0 { 1 + draw.below(12) } else { 0 });
            let removes = draw.below(10) < 4;
            let done = if removes { table.remove(&key) } else { table.insert(key, value) };
            left.set(0);
            match done {
                Ok(_) if removes => drop(oracle.remove(&key)),
                Ok(_) => drop(oracle.insert(key, value)),
                Err(_) if step > 300 && !table.holes.is_empty() => break,
                Err(_) => {}
            }
        }
        let (layout, holes) = (table.layout(), table.holes.len());
        twice += u32::from(holes > 0);
        let mut store = table.into_store();
        store.left = Rc::default();
        let table = builder.clone().open_in(store, layout).unwrap();
        agrees(&table, &oracle);
        // Another hash has other buckets.
        let other = builder.hasher(Hasher::seeded(9)).open_in::<u64, u64, _>(table.into_store(), layout);
        assert!(
            oracle.len() < 3 || other.unwrap_err().to_string().contains("expected the layout and the hash"),
            "{round}"
        );
    }
    assert!(twice > 20, "{twice}");
}

#[test]
fn layouts_that_no_table_has_are_errors() {
    let layout = TableBuilder::with_capacity(9).build::<u64, u64>().unwrap().layout().to_bytes();
    for (at, byte) in [(23, 1), (24, 0), (24, 65), (30, 1)] {
        let mut bytes = layout;
        bytes[at] = byte;
        assert!(Layout::from_bytes(bytes).is_err(), "{at}");
    }
    let mut none = layout;
    none[16..24].fill(0);
    assert!(Layout::from_bytes(none).is_err());
}

/// Whatever operation of the store fails, the operation of the table is undone and everything else is found.
#[test]
fn a_store_that_fails_loses_nothing() {
    for (slots, predictor) in [(1, Predictor::Exact), (1, Predictor::Cascade), (2, Predictor::Auto)] {
        let store = Failing::default();
        let left = store.left.clone();
        let mut table = TableBuilder::with_capacity(0).slots(slots).predictor(predictor).build_in(&store).unwrap();
        let (mut oracle, mut draw, mut failed) = (HashMap::new(), Draw(7 + slots as u64), 0);
        for step in 0..6000 {
            let (key, value) = (draw.below(400), draw.below(1 << 40));
            left.set(draw.below(12));
            let removes = draw.below(100) < 35;
            let done = if removes { table.remove(&key) } else { table.insert(key, value) };
            left.set(0);
            match done {
                Ok(old) if removes => assert_eq!(old, oracle.remove(&key)),
                Ok(old) => assert_eq!(old, oracle.insert(key, value)),
                Err(error) => {
                    assert_eq!(error.to_string(), "planted");
                    failed += 1;
                }
            }
            assert_eq!(table.get(&key).unwrap(), oracle.get(&key).copied());
            if step % 100 == 99 {
                agrees(&table, &oracle);
            }
        }
        assert!(failed > 500, "{failed} failures");
        // Buckets that cannot be read are errors, not absent keys.
        left.set(1);
        assert!(table.get(&1).is_err());
        left.set(1);
        assert_eq!(table.iter().filter(Result::is_err).count(), 1);
        left.set(1);
        assert!(table.settle().is_err());
        agrees(&table, &oracle);
    }
}

#[test]
fn a_fixed_table_is_full_and_keeps_its_keys() {
    for (capacity, slots) in [(0, 1), (1, 1), (2, 1), (3, 2), (100, 1), (100, 4), (1000, 64)] {
        let mut table = TableBuilder::with_capacity(capacity).slots(slots).fixed().build::<u64, u64>().unwrap();
        let mut oracle = HashMap::new();
        let room = table.capacity();
        assert!(room >= capacity && room <= 2 * capacity + 128, "{capacity}: {room}");
        for key in 0..room + 10 {
            match table.insert(key, 2 * key) {
                Ok(old) => assert_eq!(old, oracle.insert(key, 2 * key)),
                Err(error) => {
                    let sentence = format!("capacity {room}: full with {} keys; build a larger filter", oracle.len());
                    assert_eq!(error.to_string(), sentence);
                }
            }
        }
        // Tiny tables may be full before: all three keys of one bucket.
        assert!(oracle.len() as u64 == room || room < 4, "{} of {room}", oracle.len());
        agrees(&table, &oracle);
        // Values change in a full table, absent keys are not removed, and a removed one makes a place.
        assert_eq!(table.insert(0, 5).unwrap(), oracle.insert(0, 5));
        assert_eq!(table.remove(&(1 << 50)).unwrap(), None);
        agrees(&table, &oracle);
        assert_eq!(table.remove(&0).unwrap(), oracle.remove(&0));
        assert_eq!(table.insert(0, 6).unwrap(), oracle.insert(0, 6));
        agrees(&table, &oracle);
    }
}

/// One slot, 40 % full: lambda of Theorem 5.2, 1.31 reads without a predictor, one with it, of absent keys too.
#[test]
fn an_exact_bit_reads_one_bucket() {
    let keys = 40_000;
    let mut table = TableBuilder::with_capacity(45_000).slots(1).build::<u64, u64>().unwrap();
    (0..keys).for_each(|key| assert_eq!(table.insert(key, key).unwrap(), None));
    let stats = table.stats();
    let load = 2.0 * keys as f64 / table.buckets() as f64;
    assert!((load - 0.8).abs() < 0.001 && stats.rebuilds <= 1);
    let lambda = stats.first as f64 / stats.second as f64;
    let theorem = 1.0 / (load / (1.0 - (-load).exp()) - 1.0);
    // The keys of the second table are about 12,500, with a deviation below that of a coin.
    assert!((lambda / theorem - 1.0).abs() < 0.05, "{lambda}, {theorem}");
    (0..2 * keys).for_each(|key| assert_eq!(table.get(&key).unwrap().is_some(), key < keys));
    let stats = table.stats();
    assert_eq!((stats.bucket_reads, stats.wrong, stats.reads_per_get()), (2 * keys, 0, 1.0));
    assert!((2.2..2.55).contains(&(stats.predictor_bits as f64 / keys as f64)), "{stats:?}");
}

/// Built from the finished table a cascade is right; when keys are replaced it is built again, and is hardly ever wrong.
#[test]
fn a_cascade_is_reset() {
    let keys = 20_000;
    let builder = TableBuilder::with_capacity(22_500).slots(1).predictor(Predictor::Cascade);
    let mut table = builder.build::<u64, u64>().unwrap();
    (0..keys).for_each(|key| assert_eq!(table.insert(key, key).unwrap(), None));
    table.settle().unwrap();
    (0..keys).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(key)));
    let settled = table.stats();
    assert_eq!((settled.wrong, settled.bucket_reads), (0, keys));
    assert!((settled.predictor_bits as f64) < 2.3 * keys as f64, "{settled:?}");
    let mut draw = Draw(5);
    let mut live: Vec<u64> = (0..keys).collect();
    let mut worst = 0;
    for step in 0..2 * keys {
        let at = draw.below(keys) as usize;
        assert_eq!(table.remove(&live[at]).unwrap(), Some(live[at]));
        live[at] = keys + step;
        table.insert(live[at], live[at]).unwrap();
        let key = live[draw.below(keys) as usize];
        assert_eq!(table.get_and_learn(&key).unwrap(), Some(key));
        if step % 2000 == 1999 {
            let before = table.stats().wrong;
            live.iter().for_each(|key| assert_eq!(table.get(key).unwrap(), Some(*key)));
            worst = worst.max(table.stats().wrong - before);
        }
    }
    let stats = table.stats();
    assert!(worst * 1000 < 25 * keys, "{worst} of {keys} wrong");
    assert!(stats.resets > settled.resets + 20, "{stats:?}");
}

/// Few keys reach the last layer, and some cascades store nothing before it or pass nothing on to the exact bit.
#[test]
fn a_cascade_of_few_keys_is_right() {
    let hasher = Hasher::seeded(6);
    for first in [0, 1, 2, 5, 30, 100] {
        for second in [0, 1, 2, 3, 10, 40] {
            for round in 0..40 {
                let digest = |key: u64| hasher.integer(1000 * round + key);
                let items: Vec<_> = (0..first + second).map(|key| (digest(key), key >= first)).collect();
                let cascade = cascade::Cascade::build(&items).unwrap();
                assert!(items.iter().all(|(key, bit)| cascade.second(*key) == *bit), "{first} {second}");
            }
        }
    }
}

#[test]
fn the_planner_takes_what_suits() {
    let filled = |keys: u64| {
        let mut table = TableBuilder::with_capacity(45_000).slots(1).build::<u64, ()>().unwrap();
        (0..keys).for_each(|key| assert_eq!(table.insert(key, ()).unwrap(), None));
        table
    };
    // 10 % full: the cascade has less than half of the bits, until keys change.
    let mut table = filled(10_000);
    let exact = table.stats();
    table.settle().unwrap();
    let cascade = table.stats();
    assert!(!exact.is_cascade && cascade.is_cascade);
    assert!(2 * cascade.predictor_bits < exact.predictor_bits, "{cascade:?}");
    let planned = cascade::cascade_bits(cascade.first, cascade.second) as f64;
    assert!((planned / cascade.predictor_bits as f64 - 1.0).abs() < 0.1, "{planned}");
    for key in 0..10_000u64 {
        table.remove(&key).unwrap();
        table.insert(key + (1 << 32), ()).unwrap();
        table.get(&(key + (1 << 32))).unwrap();
    }
    let changed = table.stats();
    assert!(!changed.is_cascade && changed.resets == 1, "{changed:?}");
    // 40 % full: the exact bit.
    let mut table = filled(40_000);
    table.settle().unwrap();
    assert!(!table.stats().is_cascade);
    // Nothing at all.
    let mut table = filled(0);
    table.settle().unwrap();
    assert_eq!(table.get(&1).unwrap(), None);
}

/// A key type whose digest does not tell its keys apart.
#[derive(Clone, PartialEq, Eq)]
struct Alike(u64);

impl Key for Alike {
    const KEY_TYPE: KeyType = KeyType::Integer;
    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.integer(self.0 % 10)
    }
}

#[test]
fn bad_input_is_an_error() {
    let mut table = TableBuilder::with_capacity(10).build::<Alike, u64>().unwrap();
    table.insert(Alike(3), 1).unwrap();
    let error = table.insert(Alike(13), 2).unwrap_err().to_string();
    assert!(error.starts_with("insert: another key of the table has the same digest; expected"), "{error}");
    assert_eq!((table.get(&Alike(3)).unwrap(), table.get(&Alike(13)).unwrap(), table.len()), (Some(1), None, 1));
    assert_eq!(table.remove(&Alike(13)).unwrap(), None);
    for slots in [0, 65] {
        let error = TableBuilder::with_capacity(1).slots(slots).build::<u64, u64>().unwrap_err().to_string();
        assert_eq!(error, format!("slots {slots}: out of range; expected 1 to 64"));
    }
    assert!(TableBuilder::with_capacity(1 << 33).build::<u64, u64>().is_err());
    let foreign = || TableBuilder::with_capacity(1).hasher(Hasher::foreign(1));
    assert!(foreign().build::<u64, u64>().is_err() && foreign().build::<Digest, u64>().is_ok());
}
