//! figures 6 to 11: false sets and times of methods based on Bloom filters.

use std::error::Error;

use tamis_bench::measure;

use super::Options;
use super::grid::Grid;
use super::methods::{BLOOM, Method, PRESET, RAMBO, REPETITIONS, SETS_EACH};
use crate::many::measured::{self, How};
use crate::many::{Index, Load, PROBES, generated};
use crate::ours;

/// The keys that were added in `v` sets each.
fn probe(load: &Load, v: usize) -> std::ops::Range<usize> {
    load.probes.iter().find(|probe| probe.sets == v).map_or(0..0, |probe| probe.keys.clone())
}

/// Partitions and repetitions of RAMBO and CSC-BF, by keys of eight sets.
pub(super) fn figure6(load: &Load, options: &Options) -> Vec<Grid> {
    let bits = options.rcv1_bits();
    let columns = |first| [first, "RAMBO false sets", "CSC false sets", "RAMBO ns", "CSC ns"];
    let head = format!("Figure 6, keys of 8 sets: {}, {bits} bits in all", load.describe());
    let keys = probe(load, 8);
    let queries = &load.keys[keys.clone()];
    let fill = |mut grid: Grid, points: &[(String, u32, usize)]| {
        for (name, repetitions, sets_each) in points {
            let (repetitions, sets_each) = (*repetitions, *sets_each);
            let pair = [Method::Rambo { repetitions, sets_each }, Method::CscRepeated { repetitions, sets_each }];
            let built = pair.map(|method| method.built(load, bits, &mut grid));
            let [Some(rambo), Some(csc)] = &built else { continue };
            let both: [&dyn Index; 2] = [rambo.as_ref(), csc.as_ref()];
            let tallies = both.map(|index| measured::check_range(index, load, keys.clone()));
            for (method, tally) in pair.iter().zip(&tallies).filter(|(_, tally)| tally.lost > 0) {
                grid.wrong(format!("{} lost {} pairs", method.name(), tally.lost));
            }
            let times = measured::times(&both, &[queries], How::Alone, options.rounds);
            grid.full(name.clone(), tallies.map(|t| t.false_each()).into_iter().chain(times.iter().map(|t| t[0])));
        }
        grid
    };
    let by_b = [2, 5, 10, 20, 50].map(|each| (format!("{each}"), REPETITIONS, each));
    let by_r = [2, 3, 4, 5, 6].map(|r| (format!("{r}"), r, SETS_EACH));
    vec![
        fill(Grid::new(format!("{head}, r = {REPETITIONS}."), columns("n/b")), &by_b).note(
            "The paper: with smaller b more false sets, RAMBO quicker, CSC a little slower. ns for each query, one by one.",
        ),
        fill(Grid::new(format!("{head}, b = n/{SETS_EACH}."), columns("r")), &by_r)
            .note("The paper: with larger r fewer false sets (the fastest drop is at 3) and slower queries."),
    ]
}

/// False sets and times of absent keys by memory: figures 7 and 9.
pub(super) fn by_memory(load: &Load, bits_per_pair: &[f64], options: &Options) -> Vec<Grid> {
    let budgets: Vec<u64> = bits_per_pair.iter().map(|bits| (bits * load.pairs() as f64) as u64).collect();
    let columns = || {
        let budgets = budgets.iter().zip(bits_per_pair);
        let budgets = budgets.map(|(&bits, per_pair)| format!("{:.1e} bits, {per_pair:.1} a pair", bits as f64));
        std::iter::once("method".to_string()).chain(budgets)
    };
    let of = load.describe();
    let mut counts = Grid::new(format!("Figure 7, false sets of an absent key by memory. {of}."), columns());
    let mut clocks = Grid::new(format!("Figure 9, ns for an absent key, one by one. {}.", load.name), columns());
    let absent = load.absent(options.queries);
    let mut rows = vec![(Vec::new(), Vec::new()); BLOOM.len()];
    for &bits in &budgets {
        let built: Vec<_> = BLOOM.iter().map(|method| method.built(load, bits, &mut counts)).collect();
        let there: Vec<&dyn Index> = built.iter().flatten().map(AsRef::as_ref).collect();
        let mut times = measured::times(&there, &[&absent], How::Alone, options.rounds).into_iter();
        for (row, index) in rows.iter_mut().zip(&built) {
            row.0.push(index.as_ref().map(|index| measured::absent(index.as_ref(), &absent)));
            row.1.push(index.as_ref().and_then(|_| times.next()).map(|times| times[0]));
        }
    }
    for (method, (false_sets, times)) in BLOOM.iter().zip(rows) {
        counts.row(method.name(), false_sets);
        clocks.row(method.name(), times);
    }
    let queries = options.queries;
    vec![
        counts.note(format!(
            "{queries} random keys. k = 3 where nothing else is said. The paper, RCV1-X, 5e7 bits: CSC with r = 1 4.5 times \
             fewer than BIGSI, with r = 3 4.6 times fewer than with r = 1."
        )),
        clocks.note(
            "The paper, RCV1-X: CSC with r = 1 49 times quicker than BIGSI per set, with r = 3 8 times quicker than RAMBO.",
        ),
    ]
}

/// False sets and times by the number of sets that hold the key: figures 8 and 10.
pub(super) fn by_multiplicity(load: &Load, bits_per_pair: f64, options: &Options) -> Vec<Grid> {
    let bits = (bits_per_pair * load.pairs() as f64) as u64;
    let columns = || {
        let keys = load.probes.iter().map(|probe| format!("v = {}", probe.sets));
        ["method".to_string(), "absent".into()].into_iter().chain(keys).chain(["all keys".into()])
    };
    let of = format!("{}; {bits_per_pair:.1} bits a pair", load.describe());
    let mut counts = Grid::new(format!("Figure 8, false sets by the number of the key's sets. {of}."), columns());
    let mut clocks =
        Grid::new(format!("Figure 10, ns by the number of the key's sets, one by one. {}.", load.name), columns());
    let absent = load.absent(options.queries);
    let present = load.present(options.queries.min(load.keys.len()), options.seed);
    let mut lists: Vec<&[u64]> = vec![&absent];
    lists.extend(load.probes.iter().map(|probe| &load.keys[probe.keys.clone()]));
    lists.push(&present);
    let built: Vec<_> = BLOOM.iter().map(|method| method.built(load, bits, &mut counts)).collect();
    let there: Vec<&dyn Index> = built.iter().flatten().map(AsRef::as_ref).collect();
    let mut times = measured::times(&there, &lists, How::Alone, options.rounds).into_iter();
    for (method, index) in BLOOM.iter().zip(&built) {
        let Some(index) = index else { continue };
        let mut row = vec![measured::absent(index.as_ref(), &absent)];
        let mut lost = 0;
        // The answers of slow methods for all keys would take an hour: a part of them is enough for a mean.
        let sample = 0..load.keys.len().min(options.queries);
        for keys in load.probes.iter().map(|probe| probe.keys.clone()).chain([sample]) {
            let tally = measured::check_range(index.as_ref(), load, keys);
            row.push(tally.false_each());
            lost += tally.lost;
        }
        if lost > 0 {
            counts.wrong(format!("{} lost {lost} pairs", method.name()));
        }
        counts.full(method.name(), row);
        clocks.full(method.name(), times.next().unwrap_or_default());
    }
    vec![
        counts.note(
            "v: new keys in v random sets. All keys: some of the load's own, as they come. The paper: RAMBO and CSC with \
             r = 3 err more with every set of the key, the others do not.",
        ),
        clocks.note("The paper: CSC with r = 1 quickest; RAMBO and CSC with r = 3 slower with every set of the key."),
    ]
}

/// Times by the number of sets, and of an insertion.
pub(super) fn figure11(options: &Options) -> Result<Vec<Grid>, Box<dyn Error>> {
    let methods = [Method::Bigsi, Method::BigsiRows, RAMBO, Method::Csc, PRESET, Method::Tuned];
    let names = methods.map(Method::name);
    let pairs = (1e6 * options.scale) as usize;
    let head = format!("Figure 11, left: ns for an absent key by the number of sets; {pairs} pairs, 40 bits a pair.");
    let mut left = Grid::new(head, std::iter::once("sets").chain(names.iter().map(String::as_str)));
    for sets in [1000, 2000, 4000, 8000, 14_588] {
        let load = generated::skewed("", sets, pairs, 3.53, pairs / sets / 50, options.seed);
        let built: Vec<_> = methods.iter().map(|method| method.built(&load, 40 * pairs as u64, &mut left)).collect();
        let there: Vec<&dyn Index> = built.iter().flatten().map(AsRef::as_ref).collect();
        let absent = load.absent(options.queries);
        let mut times = measured::times(&there, &[&absent], How::Alone, options.rounds).into_iter();
        let values = built.iter().map(|index| index.as_ref().and_then(|_| times.next()).map(|times| times[0]));
        left.row(format!("{sets}"), values);
    }
    Ok(vec![
        left.note(
            "The paper: BIGSI grows with the sets, CSC with r = 1 much more slowly, RAMBO not at all once b is fixed.",
        ),
        insertions(options)?,
    ])
}

fn insertions(options: &Options) -> Result<Grid, Box<dyn Error>> {
    let load = generated::rcv1(options.scale, options.seed);
    let bits = options.rcv1_bits();
    let head = format!("Figure 11, right: ns for a pair inserted. {}, {bits} bits in all.", load.describe());
    let mut grid = Grid::new(head, ["method", "ns a pair"]);
    let each = |time| measure::nanos_each(time, load.pairs());
    for method in BLOOM {
        let (built, time) = measure::cpu(|| method.build(&load, bits));
        match built {
            Ok(_) => grid.full(method.name(), [each(time)]),
            Err(e) => grid.wrong(format!("{}: {e}", method.name())),
        }
    }
    for (repetitions, b) in [(1, 0), (REPETITIONS, load.sets.div_ceil(SETS_EACH))] {
        let shape = ours::sets::bloom_shape(bits, PROBES as u32, repetitions, b);
        let mut table = ours::sets::insert_all(&load, shape)?;
        let (inserted, time) = measure::cpu(|| table.run());
        inserted?;
        grid.full(format!("tamis CSC-BF, r = {repetitions}, k = {PROBES}, Editor::insert"), [each(time)]);
    }
    Ok(grid.note(
        "Processor time of the whole construction from keys. tamis sorts all pairs and drops equal ones first, except in the \
         last rows, where an editor takes them one by one. The paper: CSC a little slower than BIGSI; three repetitions take \
         three times as long.",
    ))
}
