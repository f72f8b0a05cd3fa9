//! a power law over ids -> a stream of packets, of which some ids are suspicious.
//!
//! Firehose is a benchmark of stream processing. Its front end draws ids from a fixed range, by a power law, and marks
//! a small part of the ids as biased: those are what a monitor looks for. The same here, in our own words: an id is
//! suspicious if a hash of it says so, whatever its rank, and the suspicious ones are the keys. There are two streams.
//! From the first, a log, ids are counted; the heavier half of what it saw is told to filters, as it was counted, luck
//! and all. The second, as long and drawn anew, is what they are asked for.

use std::collections::HashMap;

use tamis_bench::stream::{Stream, scramble};

use super::load::{Load, Weights, Zipf};

/// One of so many ids is suspicious.
const SUSPICIOUS: u64 = 16;

const PACKETS: usize = 20;

const EXPONENT: f64 = 1.0;

/// About `n` suspicious ids among sixteen times as many, and two streams of twenty times as many packets.
pub(super) fn load(n: usize, seed: u64) -> Load {
    let range = n * SUSPICIOUS as usize;
    let start = scramble(seed ^ 0xf12e);
    let id = |rank: usize| scramble(start.wrapping_add(rank as u64));
    // Other bits than those that scatter the ids.
    let suspicious = |id: u64| scramble(id ^ 0x5ca1_ab1e).is_multiple_of(SUSPICIOUS);
    let law = Zipf::new(EXPONENT);
    let count = |seed: u64| {
        let mut stream = Stream::new(seed);
        let mut counts = HashMap::<u64, u32>::new();
        for _ in 0..n * PACKETS {
            let id = id(law.draw(range, &mut stream));
            if !suspicious(id) {
                *counts.entry(id).or_default() += 1;
            }
        }
        counts
    };
    let (log, asked) = (count(seed), count(seed.wrapping_add(1)));
    let times = |counts: &HashMap<u64, u32>, id: &u64| counts.get(id).copied().unwrap_or(0);
    let mut values: Vec<u64> =
        log.keys().copied().chain(asked.keys().filter(|id| !log.contains_key(id)).copied()).collect();
    values.sort_unstable_by_key(|id| (std::cmp::Reverse(times(&log, id)), *id));
    let weights = |counts: &HashMap<u64, u32>| Weights::listed(values.iter().map(|id| f64::from(times(counts, id))));
    let (told, truth) = (weights(&log), weights(&asked));
    let keys = (0..range).map(id).filter(|&id| suspicious(id)).collect();
    Load::listed(keys, values, told, truth, log.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_is_suspicious_and_the_log_foretells_the_stream() {
        let load = load(2000, 1);
        assert!((1800..2200).contains(&load.keys.len()), "{}", load.keys.len());
        // The heavier half of the log: most queries of the other stream too, and as many as the log foretells.
        let mass = load.mass(load.given);
        assert!(mass > 0.7 && mass < 0.95, "{mass}");
        assert!((load.unseen() - (1.0 - mass)).abs() < 0.05, "{}, {mass}", load.unseen());
        assert!(load.expected().all(|(_, weight)| weight >= 1.0));
    }
}
