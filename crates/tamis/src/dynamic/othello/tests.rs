#![allow(clippy::unwrap_used, clippy::panic)]
use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::dynamic::access::{Access, Locked};
use crate::dynamic::shared::SharedOthello;
use crate::hash::scramble;

fn digest(i: u64) -> Digest {
    Hasher::seeded(1).integer(i)
}

fn empty(key: u64) -> Bits {
    Bits::build([], Stream::new([key, 1])).unwrap()
}

fn bit(i: u64) -> bool {
    scramble(i) & 1 == 1
}

#[test]
fn edge_sizes_come_and_go() {
    for n in [0, 1, 2, 3, 27, 28, 64, 300] {
        let mut bits = empty(n);
        assert!((0..n).all(|i| bits.set(digest(i), bit(i)).unwrap()));
        assert!((0..n).all(|i| !bits.set(digest(i), bit(i)).unwrap()));
        assert!((0..n).all(|i| bits.get(digest(i)) == bit(i) && bits.listed(digest(i)) == Some(bit(i))));
        assert_eq!((bits.len() as u64, bits.listed(digest(n))), (n, None));
        assert!(!bits.remove(digest(n)) && (0..n).all(|i| bits.remove(digest(i))) && bits.len() == 0);
    }
}

/// Mixed operations, one by one and in batches, against a hash map; the table grows, splits and shrinks.
#[test]
fn mixed_operations_agree_with_a_hash_map() {
    let steps = if std::env::var_os("TAMIS_SLOW").is_some() { 10_000_000 } else { 400_000 };
    let (mut bits, mut map) = (empty(2), HashMap::<u64, bool>::new());
    let range = steps / 8;
    for step in 0..steps {
        let random = scramble(step);
        let i = random % range;
        match random >> 32 & 15 {
            // Nearly empty again in the third quarter.
            0..8 if step * 4 / steps != 2 => {
                assert_eq!(bits.set(digest(i), bit(random)).unwrap(), map.insert(i, bit(random)).is_none());
            }
            8 if random >> 36 & 255 == 0 => {
                let batch: Vec<(u64, bool)> =
                    (0..range / 16).map(|j| (scramble(step + j) % range, bit(step ^ j))).collect();
                bits.set_many(batch.iter().map(|&(i, bit)| (digest(i), bit))).unwrap();
                map.extend(batch);
            }
            _ => assert_eq!(bits.remove(digest(i)), map.remove(&i).is_some()),
        }
        let asked = scramble(step + 7) % range;
        assert_eq!(bits.listed(digest(asked)), map.get(&asked).copied());
        assert!(map.get(&asked).is_none_or(|&bit| bits.get(digest(asked)) == bit));
        if step % (steps / 16) == 0 {
            assert!(map.iter().all(|(&i, &bit)| bits.get(digest(i)) == bit));
        }
    }
    assert_eq!(bits.len(), map.len());
    assert!(bits.graphs.keys().all(|key| bits.listed(key).is_some()));
    assert_eq!(bits.graphs.keys().count(), map.len());
}

#[test]
fn a_table_stays_below_two_and_a_half_bits_while_it_grows_and_shrinks() {
    let mut bits = empty(3);
    let n = 120_000;
    let check = |bits: &Bits| {
        let each = bits.cells.bits() as f64 / bits.len() as f64;
        assert!(each < 2.5 || bits.len() < 15_000, "{each} bits at {}", bits.len());
        let side = bits.graphs.bytes() as f64 / bits.len() as f64;
        assert!(side < 30.0 || bits.len() < 15_000, "{side} bytes at {}", bits.len());
    };
    for i in 0..n {
        bits.set(digest(i), bit(i)).unwrap();
        if i % 500 == 499 {
            check(&bits);
        }
    }
    let built = Bits::build((0..n).map(|i| (digest(i), bit(i))), Stream::new([1, 1])).unwrap();
    check(&built);
    assert!((0..n).all(|i| built.get(digest(i)) == bit(i)));
    (0..n / 2).for_each(|i| assert!(bits.remove(digest(i))));
    // Shards do not become one again; each shrinks.
    assert!((bits.cells.bits() as f64) < 2.95 * (n / 2) as f64, "{} bits", bits.cells.bits());
    assert!((n / 2..n).all(|i| bits.get(digest(i)) == bit(i)));
}

/// Whatever the bits of the keys are, those of unlisted keys are fair: five standard deviations.
#[test]
fn unlisted_keys_get_a_fair_coin() {
    for share in [0, 1, 4, 8] {
        let value = |i: u64| scramble(i) % 8 < share;
        let mut bits = empty(share);
        (0..20_000).for_each(|i| assert!(bits.set(digest(i), value(i)).unwrap()));
        let built = Bits::build((0..20_000).map(|i| (digest(i), value(i))), Stream::new([share, 2])).unwrap();
        for bits in [bits, built] {
            let ones = (1_000_000..1_200_000).filter(|&i| bits.get(digest(i))).count() as f64;
            // Unlisted keys share 48,000 cells, so their bits are not independent: the error of the cells is added.
            assert!(
                (ones - 100_000.0).abs() < 5.0 * (50_000f64.sqrt() + 200_000.0 / (2.0 * 24_000f64.sqrt())),
                "{ones}"
            );
        }
    }
}

/// Counts what a reader would see at every change.
struct Watched<'a> {
    cells: &'a mut Cells,
    listed: &'a HashMap<u64, bool>,
    changes: usize,
}

impl Access<Cells> for Watched<'_> {
    fn read<R>(&self, with: impl FnOnce(&Cells) -> R) -> R {
        with(self.cells)
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut Cells) -> R) -> R {
        let result = with(self.cells);
        self.changes += 1;
        assert!(self.listed.iter().all(|(&i, &bit)| self.cells.get(digest(i)) == bit));
        result
    }
}

#[test]
fn readers_between_the_steps_see_right_bits() {
    let Bits { mut cells, mut graphs } = empty(4);
    let (mut map, mut changes) = (HashMap::new(), 0);
    for step in 0..3_000u64 {
        let i = scramble(step) % 1_000;
        map.remove(&i);
        let mut shown = Watched { cells: &mut cells, listed: &map, changes: 0 };
        if step % 5 == 0 {
            graphs.remove(&mut shown, digest(i));
        } else {
            graphs.set(&mut shown, digest(i), bit(step)).unwrap();
        }
        changes += shown.changes;
        if step % 5 != 0 {
            map.insert(i, bit(step));
        }
    }
    // A batch that splits shards.
    let batch: Vec<u64> = (10_000..30_000).collect();
    let mut shown = Watched { cells: &mut cells, listed: &map, changes: 0 };
    graphs.set_many(&mut shown, batch.iter().map(|&i| (digest(i), bit(i)))).unwrap();
    assert!(batch.iter().all(|&i| cells.get(digest(i)) == bit(i)));
    assert!(changes > 500, "{changes}");
}

#[test]
fn readers_in_other_threads_see_right_bits() {
    let mut table = Othello::new::<u64>().unwrap();
    table.set_many((0..2_000u64).map(|i| (i, bit(i)))).unwrap();
    let (shared, done) = (SharedOthello::from(table), AtomicBool::new(false));
    let reads: u64 = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) || reads == 0 {
                (0..2_000u64).for_each(|i| assert_eq!(shared.get(i).unwrap(), bit(i), "{i}"));
                reads += 2_000;
            }
            reads
        });
        for step in 0..60_000u64 {
            shared.set(2_000 + scramble(step) % 8_000, bit(step)).unwrap();
            shared.remove(2_000 + scramble(!step) % 16_000).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(reads > 0);
    let table = shared.into_inner();
    assert!((0..2_000u64).all(|i| table.listed(i) == Ok(Some(bit(i)))));
}

/// Digests that share their prefix under a salt that was read: the table is placed by another one.
#[test]
fn keys_chosen_for_one_shard_do_not_grow_the_directory() {
    let mut bits = empty(5);
    let chosen: Vec<Digest> = {
        let salt = bits.cells.salt();
        (0..).map(digest).filter(|key| key.salted(salt) >> 52 == 7).take(9_000).collect()
    };
    chosen.iter().for_each(|&key| assert!(bits.set(key, key.lo & 1 == 1).unwrap()));
    assert!(chosen.iter().all(|&key| bits.listed(key) == Some(key.lo & 1 == 1)));
    let (depth, directory) = bits.cells.directory();
    assert!(depth <= 4 && directory.len() <= 16, "depth {depth}");
    assert_eq!(bits.len(), chosen.len());
    // The same in one batch.
    let mut bits = empty(5);
    bits.set_many(chosen.iter().map(|&key| (key, key.lo & 1 == 1))).unwrap();
    assert!(chosen.iter().all(|&key| bits.listed(key) == Some(key.lo & 1 == 1)) && bits.len() == chosen.len());
    assert!(bits.cells.directory().0 <= 4);
}

/// Pairs of digests with equal cells under the salt of their shard: each costs a rebuild and no more.
#[test]
fn keys_chosen_for_a_cycle_cost_a_rebuild_each() {
    let mut bits = empty(6);
    (0..1_000).for_each(|i| assert!(bits.set(digest(i), bit(i)).unwrap()));
    for round in 0..20u64 {
        let before = bits.graphs.work();
        let shard = bits.cells.shard(0);
        let key = digest(5_000 + round);
        let twin = (1..).map(|i| Digest { hi: key.hi, lo: key.lo.wrapping_add(i) });
        let twin = twin.clone().find(|twin| shard.ends(*twin) == shard.ends(key));
        bits.set(key, true).unwrap();
        let twin = twin.unwrap();
        bits.set(twin, false).unwrap();
        assert!(bits.get(key) && !bits.get(twin));
        assert!(bits.graphs.work() - before < 60 * 1_100, "{} items", bits.graphs.work() - before);
    }
    assert!((0..1_000).all(|i| bits.get(digest(i)) == bit(i)));
}

#[test]
fn tables_follow_from_a_secret_and_are_random_without() {
    let words = |hasher: Hasher| {
        let mut table = Othello::with_hasher::<u64>(hasher).unwrap();
        (0..100u64).for_each(|i| assert!(table.set(i, bit(i)).unwrap()));
        table.0.table.cells.shard(0).words.to_vec()
    };
    assert_eq!(words(Hasher::secret([1, 2])), words(Hasher::secret([1, 2])));
    assert_ne!(words(Hasher::secret([1, 2])), words(Hasher::secret([1, 3])));
    assert_ne!(words(Hasher::seeded(1)), words(Hasher::seeded(1)));
    assert!(Othello::with_hasher::<u64>(Hasher::foreign(1)).is_err());
    assert!(Othello::new::<u64>().unwrap().set("text", true).is_err());
}

#[test]
fn a_lock_that_a_panic_broke_still_works() {
    let lock = RwLock::new(empty(7).cells);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Locked(&lock).change(|_| panic!("a writer that changes nothing"));
    }));
    assert!(broken.is_err() && lock.is_poisoned());
    Locked(&lock).read(|cells| assert_eq!(cells.shards().len(), 1));
}
