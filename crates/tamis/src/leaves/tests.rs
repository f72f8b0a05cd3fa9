//! keys and values -> laws of the leaves that hold values, for every shape, width and instruction set.
#![allow(clippy::unwrap_used)]

use super::fuse::{self, Arity, Fuse};
use super::ribbon::{self, Ribbon};
use super::*;
use crate::arch::Level;
use crate::hash::scramble;

/// A kind of leaf with values.
trait Kind: Query {
    /// What it can be apart from its width.
    const VARIANTS: u32;

    fn build(keys: &[Digest], values: &[u32], variant: u32, bits: u16, out: &mut Vec<u8>) -> Self;

    /// The same leaf as a lesser processor would have opened it.
    fn on(self, level: Level) -> Self;
}

impl Kind for Fuse {
    const VARIANTS: u32 = 2;

    fn build(keys: &[Digest], values: &[u32], variant: u32, bits: u16, out: &mut Vec<u8>) -> Fuse {
        let arity = if variant == 0 { Arity::Three } else { Arity::Four };
        let params = fuse::Params { arity, width: bits * 256 };
        fuse::build(keys, Values::Given(values), &params, Salt::new(5), out).unwrap()
    }

    fn on(self, _: Level) -> Fuse {
        self
    }
}

impl Kind for Ribbon {
    const VARIANTS: u32 = 3;

    fn build(keys: &[Digest], values: &[u32], variant: u32, bits: u16, out: &mut Vec<u8>) -> Ribbon {
        let (wide, nested) = (variant == 1, variant == 2);
        let params = ribbon::Params { width: bits * 256, tight: wide, nested };
        ribbon::build(keys, Values::Given(values), &params, Salt::new(5), 0, 1, out).unwrap()
    }

    fn on(mut self, level: Level) -> Ribbon {
        self.cpu = level;
        self
    }
}

/// `n` sorted distinct digests.
fn digests(n: usize) -> Vec<Digest> {
    let digest = |i| Digest { hi: scramble(i), lo: scramble(!i) };
    let mut keys: Vec<Digest> = (0..n as u64).map(digest).collect();
    keys.sort_unstable();
    keys
}

fn value(key: Digest, bits: u16) -> u32 {
    (scramble(key.lo) as u32) >> (32 - bits)
}

/// A column of the keys by shard, for any level; what comes before it in the file belongs to others.
fn column<G: Kind>(shards: &[Vec<Digest>], variant: u32, bits: u16) -> (impl Fn(Level) -> ShardedLeaf<G>, Vec<u8>) {
    let mut file = vec![0xa5; 11];
    let mut part = |keys: &Vec<Digest>| {
        let start = file.len();
        let values: Vec<u32> = keys.iter().map(|&key| value(key, bits)).collect();
        let geometry = G::build(keys, &values, variant, bits, &mut file);
        (geometry, start..file.len())
    };
    let parts: Vec<_> = shards.iter().map(&mut part).collect();
    let (shard_bits, whole) = (shards.len().ilog2(), file.clone());
    let on = move |level| {
        let parts = parts.iter().map(|(leaf, range)| (leaf.clone().on(level), range.clone()));
        ShardedLeaf::of(shard_bits, &whole, parts.collect())
    };
    (on, file)
}

/// What the slow way reads, after all fast ways have read the same.
fn read<G: Kind>(column: &ShardedLeaf<G>, file: &[u8], level: Level, asked: &[Digest], what: &str) -> Vec<u32> {
    let reference = |key| {
        let part = column.part(key);
        part.geometry.get(&part.payload, key)
    };
    let plain: Vec<u32> = asked.iter().map(|&key| reference(key)).collect();
    let (value, whole) = (level.force(|| column.value_fn()).unwrap(), G::listed(column.clone()));
    assert!(asked.iter().map(|&key| value.call(&whole, key)).eq(plain.iter().copied()), "{what}");
    for len in [asked.len(), 33, 1] {
        let asked = &asked[..len.min(asked.len())];
        let mut many = vec![!0; asked.len()];
        column.get_many(file, asked, &mut many);
        assert!(many[..] == plain[..asked.len()], "{what}, {} at once", asked.len());
    }
    plain
}

/// Unlisted keys may read anything that fits, but all ways read the same.
fn every_way<G: Kind>(shards: &[Vec<Digest>], step: usize, widths: &[u16]) {
    let strangers: Vec<Digest> = digests(150_300).split_off(150_000);
    let keys: Vec<Digest> = shards.iter().flatten().step_by(step).copied().collect();
    let asked = [&keys[..], &strangers].concat();
    for variant in 0..G::VARIANTS {
        for &bits in widths {
            let (column, file) = column::<G>(shards, variant, bits);
            for level in Level::available() {
                let column = column(level);
                let what = format!("{}, {level:?}, {} keys", column.details(), keys.len());
                let found = read(&column, &file, level, &asked, &what);
                assert!(keys.iter().zip(&found).all(|(&key, &found)| found == value(key, bits)), "{what}");
                assert!(found.iter().all(|&found| found <= u32::MAX >> (32 - bits)), "{what}");
            }
        }
    }
}

fn every_width<G: Kind>() {
    let all: Vec<u16> = (1..=32).collect();
    for n in [0, 1, 2, 3, 100] {
        every_way::<G>(&[digests(n)], 1, &all);
    }
    every_way::<G>(&[digests(9_999)], 7, &all);
    every_way::<G>(&[digests(10_001)], 3, &all);
    every_way::<G>(&[digests(100_000)], 19, &all);
}

#[test]
fn fuses_of_every_width_are_read_alike_by_all_ways() {
    every_width::<Fuse>();
}

#[test]
fn ribbons_of_every_width_are_read_alike_by_all_ways() {
    every_width::<Ribbon>();
}

/// Shards of one shape, of several, and without keys.
fn shards<G: Kind>() {
    for sizes in [[50; 4], [0; 4], [11_000; 4], [11_000, 300, 0, 5], [0, 0, 1, 11_000]] {
        let mut shards = vec![vec![]; 4];
        for key in digests(50_000) {
            let shard = key.shard(2);
            if shards[shard].len() < sizes[shard] {
                shards[shard].push(key);
            }
        }
        every_way::<G>(&shards, 5, &[1, 4, 8, 9, 16, 21, 32]);
    }
}

#[test]
fn shards_of_fuses_are_read_alike_by_all_ways() {
    shards::<Fuse>();
}

#[test]
fn shards_of_ribbons_are_read_alike_by_all_ways() {
    shards::<Ribbon>();
}

/// Bytes that are not there are read as something.
fn short<G: Kind>() {
    let asked = digests(400);
    for n in [1, 100, 3000, 11_000] {
        for bits in [1, 3, 8, 9, 16, 17, 31, 32] {
            for variant in 0..G::VARIANTS {
                let keys = digests(n);
                let values: Vec<u32> = keys.iter().map(|&key| value(key, bits)).collect();
                let mut payload = vec![];
                let leaf = G::build(&keys, &values, variant, bits, &mut payload);
                for level in Level::available() {
                    let leaf = leaf.clone().on(level);
                    for len in [0, 1, 7, payload.len() / 2, payload.len().saturating_sub(9), payload.len() - 1] {
                        let payload = &payload[..len.min(payload.len())];
                        let column = ShardedLeaf::of(0, payload, vec![(leaf.clone(), 0..payload.len())]);
                        let found = read(&column, payload, level, &asked, &format!("{}, {len} bytes", leaf.details()));
                        assert!(found.iter().all(|&found| found <= u32::MAX >> (32 - bits)));
                    }
                }
            }
        }
    }
}

#[test]
fn short_payloads_of_fuses_are_read_alike_by_all_ways() {
    short::<Fuse>();
}

#[test]
fn short_payloads_of_ribbons_are_read_alike_by_all_ways() {
    short::<Ribbon>();
}
