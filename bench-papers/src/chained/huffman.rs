//! text with exponential counts -> figure 8: Huffman codes that can be read anywhere.
//!
//! Of every omega symbols omega - 1 are the most frequent one, and so on among the rest: codewords are 0, 10, 110, ...
//! with omega - 1 zeros per one. The paper fixes the ones, this table the symbols, n of them.

use tamis_bench::args::Timing;
use tamis_bench::machine::Machine;
use tamis_bench::stream::Stream;
use tamis_bench::table::{Table, number};

use crate::mapped::{Built, Mapped, Pairs};
use crate::ours;

use super::Options;
use super::maps::{self, Group, NOTE};

mod bits;
mod code;

/// What the space of the others is compared with.
const STRAWMAN: &str = "exact Bloomier, as in the paper";

/// The filters of Theorem 5.1, and their bits over the entropy at most.
pub(super) const CHAINED: &str = "chained, as in the paper";
pub(super) const THEOREM_5_1: f64 = 0.22;

/// Counts of symbols 0, 1, 2, ...: each is (omega - 1)/omega of what is left.
fn counts(n: usize, omega: u32) -> Vec<usize> {
    let share = 1.0 - 1.0 / f64::from(omega);
    let mut left = n;
    let mut counts = Vec::new();
    while left > 0 {
        let count = ((left as f64 * share).round() as usize).clamp(1, left);
        counts.push(count);
        left -= count;
    }
    counts
}

fn text(n: usize, omega: u32, stream: &mut Stream) -> Pairs {
    let symbols = counts(n, omega).into_iter().zip(0..);
    let mut values: Vec<u64> = symbols.flat_map(|(count, symbol)| std::iter::repeat_n(symbol, count)).collect();
    stream.shuffle(&mut values);
    Pairs { keys: (0..n as u64).collect(), values }
}

/// The code itself, which is read from the start.
pub(super) fn raw() -> Mapped {
    Mapped::new("Huffman code, read in order", |pairs| {
        let coded = code::Coded::new(&pairs.values)?;
        Ok(Built::in_order(coded.bytes(), move |out| coded.decode(out)))
    })
}

fn structures() -> Vec<Mapped> {
    let all = std::iter::once(raw()).chain(bits::filters());
    let all = all.chain(ours::maps::compressed()).chain([ours::maps::sequence()]).chain(ours::maps::fixed());
    #[cfg(feature = "peers")]
    let all = all.chain(crate::peers::compressed()).chain([crate::peers::fixed()]);
    all.collect()
}

pub(super) fn run(options: &Options, stream: &mut Stream) -> Vec<Group> {
    let all = structures();
    let group = |&omega: &u32| {
        let draw = |stream: &mut Stream| text(options.n, omega, stream);
        Group::measure(options, (u64::from(omega), options.n), &all, stream, draw, Pairs::entropy)
    };
    options.omegas.iter().map(group).collect()
}

pub(super) fn table(groups: &[Group], options: &Options, machine: &Machine) -> Table {
    let Options { n, timing: Timing { rounds, seed, .. }, .. } = options;
    let strawman = |group: &Group| group.bits(group.rows.iter().find(|row| row.name == STRAWMAN)?);
    let maps = maps::named(groups, "omega")
        .number("entropy", 3, |(group, _)| group.needed)
        .number("bits/key", 3, |(group, row)| group.bits(row))
        .text("over entropy", |(group, row)| {
            let theorem = if row.name == CHAINED { format!(" (< {THEOREM_5_1})") } else { String::new() };
            number(group.bits(row).map(|bits| bits - group.needed), 3) + &theorem
        })
        .number("less space %", 1, |(group, row)| Some((1.0 - group.bits(row)? / strawman(group)?) * 100.0));
    maps::timed(maps).table(
        format!("Figure 8: {n} symbols, rounds: {rounds}, seed {seed}. {machine}."),
        format!(
            "{NOTE} Sizes have the code with them. In brackets, Theorem 5.1: the paper's filters take less than .22 \
             bits over the entropy. less space: than the exact Bloomier filter. Reads of the paper's structures ask \
             for one bit after the other, from tables of 32-bit words of which a few bits are used and counted. The \
             paper, at omega = 10: chained 48.3 % less space and queries 15.5 % slower, with shared addresses 39.2 % \
             and 1.17 %."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exponential_and_complete() {
        for omega in 2..=10 {
            for n in [0, 1, 2, 10, 1_000_000] {
                let counts = counts(n, omega);
                assert_eq!(counts.iter().sum::<usize>(), n);
                assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{counts:?}");
            }
        }
        assert_eq!(counts(1_000_000, 10)[..4], [900_000, 90_000, 9000, 900]);
        let pairs = text(10_000, 3, &mut Stream::new(1));
        assert_eq!(pairs.values.iter().filter(|&&value| value == 0).count(), 6667);
        // H(1/3) for every symbol but the last of each word: 1.377 bits.
        assert!((pairs.entropy() - 1.377).abs() < 0.005);
    }
}
