//! goals that are numbers -> kept by every file that was built, and not by files on average; equal inputs -> equal bytes.

use tamis::internals::with_shard_keys;
use tamis::{Kind, Options};

use super::{excludes, integers};

/// What every file keeps, and a test of each.
const PROMISES: &[(&str, fn())] = &[("fpr is at most that, in small shards too", small_shards)];

#[test]
fn promises_are_kept() {
    for (promise, test) in PROMISES {
        println!("{promise}");
        test();
    }
}

/// A Bloom filter of few keys needs more bits for each of them, and shards may have few.
fn small_shards() {
    for &(name, kind) in Kind::ALL.iter().filter(|(_, kind)| !matches!(kind, Kind::Stacked(_))) {
        for rate in [1e-9, 1e-6, 1e-4, 0.001, 0.01, 0.1, 0.3] {
            for shard_keys in [40, 100, 400, 3000] {
                let build =
                    with_shard_keys(Options::default(), shard_keys).kind(kind).fpr(rate).build(integers(3000, 1));
                let build = if excludes(kind) { build.exclude(integers(6000, 3)) } else { build };
                let fpr = build.finish().unwrap().fpr();
                assert!(fpr <= rate, "{name}, {shard_keys} keys in a shard: {fpr} for {rate}");
            }
        }
    }
}
