//! keys with values of a fixed width -> bits over the width, and reads beside those of sux.

use tamis_bench::args::Timing;
use tamis_bench::machine::Machine;
use tamis_bench::measure;
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use crate::mapped::{Mapped, Pairs, Row, Sample};
use crate::ours;

use super::Options;
use super::maps::{self, Group, NOTE};

/// The rows that reads are compared with; the quickest of them counts.
const REFERENCE: &str = "sux VFunc";

fn pairs(n: usize, width: u32, stream: &mut Stream) -> Pairs {
    let values = stream.take(n).into_iter().map(|x| x >> (u64::BITS - width)).collect();
    Pairs { keys: stream.take(n), values }
}

fn structures(width: u32) -> Vec<Mapped> {
    let all = ours::maps::fixed().into_iter();
    #[cfg(feature = "peers")]
    let all = all.chain([crate::peers::fixed()]).chain(crate::peers::slices(width));
    #[cfg(not(feature = "peers"))]
    let _ = width;
    all.collect()
}

pub(super) fn run(options: &Options, stream: &mut Stream) -> Vec<Group> {
    let group = |&width: &u32| {
        let draw = |stream: &mut Stream| pairs(options.n, width, stream);
        let all = structures(width);
        Group::measure(options, (u64::from(width), options.n), &all, stream, draw, |_| f64::from(width))
    };
    options.widths.iter().map(group).collect()
}

/// The time of this row's reads over the quickest reference's, round by round; the median.
fn ratio(group: &Group, row: &Row, field: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let references: Vec<&Row> = group.rows.iter().filter(|row| row.name.starts_with(REFERENCE)).collect();
    let of_round = |(round, sample): (usize, &Option<Sample>)| {
        let theirs = references.iter().filter_map(|row| row.rounds.get(round)?.as_ref()?.read);
        let least = theirs.min_by(f64::total_cmp)?;
        sample.as_ref().and_then(field).map(|time| time / least)
    };
    measure::median(row.rounds.iter().enumerate().filter_map(of_round))
}

pub(super) fn table(groups: &[Group], options: &Options, machine: &Machine) -> Table {
    let Options { n, timing: Timing { rounds, seed, .. }, .. } = options;
    let maps = maps::named(groups, "width")
        .number("bits/key", 3, |(group, row)| group.bits(row))
        .number("over width", 4, |(group, row)| Some(group.bits(row)? / group.needed))
        .number("read / sux", 2, |(group, row)| ratio(group, row, |s| s.read))
        .number("batch / sux", 2, |(group, row)| ratio(group, row, |s| s.batch));
    maps::timed(maps).table(
        format!("Functions: random values for {n} random u64 keys, rounds: {rounds}, seed {seed}. {machine}."),
        format!("{NOTE} / sux: over the quickest {REFERENCE} of the same round and width, which has no batch."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let sample = |time: f64| {
            let [build, bytes] = [1.0; 2];
            let (build_twice, speedup, in_order) = (None, None, None);
            Some(Sample { bytes, build, build_twice, speedup, read: Some(time), batch: None, in_order })
        };
        let row =
            |name: &str, times: [Option<Sample>; 3]| Row { name: name.into(), rounds: times.into(), ..Row::default() };
        let rows = vec![
            row("sux VFunc", [sample(10.0), sample(20.0), None]),
            row("sux VFunc u8", [sample(8.0), sample(40.0), None]),
            row("other", [sample(16.0), sample(20.0), sample(1.0)]),
        ];
        let group = Group { of: 8, keys: 1, needed: 8.0, rows };
        let ratios = [0, 1, 2].map(|i| ratio(&group, &group.rows[i], |s| s.read));
        assert_eq!(ratios, [Some(1.125), Some(1.5), Some(1.5)]);
        assert_eq!(ratio(&group, &group.rows[2], |s| s.batch), None);
    }
}
