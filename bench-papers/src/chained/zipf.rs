//! keys with values from a large alphabet, counts by Zipf's law -> bits over the entropy.

use tamis_bench::args::Timing;
use tamis_bench::machine::Machine;
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use crate::mapped::{Mapped, Pairs};
use crate::ours;

use super::Options;
use super::huffman;
use super::maps::{self, Group, NOTE};

const ALPHABET: usize = 50_000;

/// How often each rank occurs among `n`: the share of rank r is 1/r of the first, rounded so that the sum is n.
fn counts(n: usize, alphabet: usize) -> Vec<usize> {
    let harmonic = |r: usize| 1.0 / r as f64;
    let all: f64 = (1..=alphabet).map(harmonic).sum();
    let mut sum = 0.0;
    let end = |rank: usize| {
        sum += harmonic(rank);
        if rank == alphabet { n } else { (n as f64 * sum / all).round() as usize }
    };
    let ends: Vec<usize> = (1..=alphabet).map(end).collect();
    std::iter::once(&0).chain(&ends).zip(&ends).map(|(start, end)| end - start).collect()
}

/// Random keys, and values whose ranks say nothing about them.
fn pairs(n: usize, stream: &mut Stream) -> Pairs {
    let mut values_of_ranks: Vec<u64> = (0..ALPHABET as u64).collect();
    stream.shuffle(&mut values_of_ranks);
    let counts = counts(n, ALPHABET).into_iter().zip(values_of_ranks);
    let mut values: Vec<u64> = counts.flat_map(|(count, value)| std::iter::repeat_n(value, count)).collect();
    stream.shuffle(&mut values);
    Pairs { keys: stream.take(n), values }
}

fn structures() -> Vec<Mapped> {
    let all = std::iter::once(huffman::raw()).chain(ours::maps::compressed()).chain(ours::maps::fixed());
    #[cfg(feature = "peers")]
    let all = all.chain(crate::peers::compressed()).chain([crate::peers::fixed()]);
    all.collect()
}

pub(super) fn run(options: &Options, stream: &mut Stream) -> Vec<Group> {
    let all = structures();
    let group = |&keys: &usize| {
        let draw = |stream: &mut Stream| pairs(keys, stream);
        Group::measure(options, (keys as u64, keys), &all, stream, draw, Pairs::entropy)
    };
    options.zipf_keys.iter().map(group).collect()
}

pub(super) fn table(groups: &[Group], options: &Options, machine: &Machine) -> Table {
    let Timing { rounds, seed, .. } = options.timing;
    let maps = maps::named(groups, "keys")
        .number("entropy", 3, |(group, _)| group.needed)
        .number("bits/key", 3, |(group, row)| group.bits(row))
        .number("over entropy", 3, |(group, row)| Some(group.bits(row)? - group.needed))
        .number("%", 1, |(group, row)| Some((group.bits(row)? / group.needed - 1.0) * 100.0));
    maps::timed(maps).table(
        format!(
            "Random u64 keys, {ALPHABET} values with counts by Zipf's law (exponent 1), rounds: {rounds}, seed {seed}. \
             {machine}."
        ),
        format!("{NOTE} Sizes have the code and its values with them."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_law_and_add_up() {
        for (n, alphabet) in [(0, 10), (7, 10), (1_000_000, ALPHABET)] {
            let counts = counts(n, alphabet);
            assert_eq!((counts.len(), counts.iter().sum::<usize>()), (alphabet, n));
        }
        let counts = counts(1_000_000, ALPHABET);
        assert!(counts[0].abs_diff(2 * counts[1]) <= 3 && counts[0].abs_diff(100 * counts[99]) <= 100);
    }
}
