//! figures 5 to 11: sizes of sets; false sets and times of methods based on Bloom filters.

use std::error::Error;

use tamis_bench::measure;

use super::Options;
use super::formulas::bloom_rate;
use super::grid::Grid;
use super::methods::{BLOOM, Method, REPETITIONS, SETS_EACH};
use crate::many::bigsi::{PerSet, Rows};
use crate::many::measured::{self, How};
use crate::many::{Index, Load, PROBES, generated};
use crate::ours;

/// Sizes of sets, in means of their data.
const SIZES: [f64; 11] = [0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];

/// Table 1 and figure 5: the data, and which share of its sets is how large.
pub(super) fn figure5(options: &Options) -> Vec<Grid> {
    let columns = ["data", "sets", "largest", "least", "largest, in means", "sets a key", "pairs"];
    let mut data = Grid::new(format!("Table 1, the data at scale {}.", options.scale), columns);
    let columns =
        std::iter::once("data, sets of at least so many means".into()).chain(SIZES.map(|size| format!("{size}")));
    let mut shares = Grid::new("Figure 5, shares of sets by their size.", columns);
    let pairs = (2e6 * options.scale) as usize;
    let loads: [&dyn Fn() -> Load; 4] = [
        &|| generated::rcv1(options.scale, options.timing.seed),
        &|| generated::amazon(options.scale, options.timing.seed),
        &|| generated::dna100(pairs, options.timing.seed),
        &|| generated::dna500(pairs, options.timing.seed),
    ];
    for load in loads {
        let load = load();
        let sizes = load.sizes();
        let (largest, least) = (sizes.iter().max().unwrap_or(&0), sizes.iter().min().unwrap_or(&0));
        let [sets, pairs, keys] = [load.sets, load.pairs(), load.keys.len()].map(|x| x as f64);
        let (mean, [largest, least]) = (pairs / sets, [largest, least].map(|&x| x as f64));
        data.full(load.name.clone(), [sets, largest, least, largest / mean, pairs / keys, pairs]);
        let share = |size: f64| sizes.iter().filter(|&&x| x as f64 >= size * mean).count() as f64 / sets;
        shares.row(load.name, SIZES.map(|size| Some(share(size)).filter(|&share| share > 0.0)));
    }
    vec![
        data.note(
            "The paper: 2456 sets of 148 to 2,106,588 keys, 4.76 sets a key; 14,588 of 29 to 15,890,312, 3.53; 100 of \
             913,912 to 9,286,278, 1.00; 500 of 461,136 to 12,207,582, 1.04. Ours have fewer keys, and no set of all \
             of them.",
        ),
        shares.note("The paper prints no numbers."),
    ]
}

/// The keys that were added in `v` sets each.
fn probe(load: &Load, v: usize) -> std::ops::Range<usize> {
    load.probes.iter().find(|probe| probe.sets == v).map_or(0..0, |probe| probe.keys.clone())
}

/// Partitions and repetitions of RAMBO and CSC-BF, by keys of eight sets.
pub(super) fn figure6(load: &Load, options: &Options) -> Vec<Grid> {
    let bits = options.rcv1_bits();
    let head = format!("Figure 6, keys of 8 sets: {}, {bits} bits in all", load.describe());
    let keys = probe(load, 8);
    let queries = &load.keys[keys.clone()];
    let fill = |head: String, names: &[String], points: &[(u32, usize)]| {
        let mut grid = Grid::new(head, std::iter::once("method").chain(names.iter().map(String::as_str)));
        let mut rows = ["RAMBO, false sets", "tamis CSC-BF, false sets", "RAMBO, ns", "tamis CSC-BF, ns"]
            .map(|name| (name, Vec::new()));
        for &(repetitions, sets_each) in points {
            let pair = [Method::Rambo { repetitions, sets_each }, Method::CscRepeated { repetitions, sets_each }];
            let built = pair.map(|method| method.built(load, bits, &mut grid));
            let [Some(rambo), Some(csc)] = &built else { continue };
            let both: [&dyn Index; 2] = [rambo.as_ref(), csc.as_ref()];
            let tallies = both.map(|index| measured::check_range(index, load, keys.clone()));
            for (method, tally) in pair.iter().zip(&tallies).filter(|(_, tally)| tally.lost > 0) {
                grid.wrong(format!("{} lost {} pairs", method.name(), tally.lost));
            }
            let times = measured::times(&both, &[queries], How::Alone, options.timing.rounds);
            let values = tallies.map(|t| t.false_each()).into_iter().chain(times.iter().map(|t| t[0]));
            rows.iter_mut().zip(values).for_each(|((_, row), value)| row.push(Some(value)));
        }
        rows.into_iter().for_each(|(name, row)| grid.row(name, row));
        grid
    };
    let by_b = [2, 5, 10, 20, 50];
    let by_r = [2, 3, 4, 5, 6];
    vec![
        fill(
            format!("{head}, r = {REPETITIONS}."),
            &by_b.map(|each| format!("n/b = {each}")),
            &by_b.map(|each| (REPETITIONS, each)),
        )
        .note(
            "The paper: with smaller b more false sets, RAMBO quicker, CSC a little slower. ns for each query, one by \
             one.",
        ),
        fill(format!("{head}, b = n/{SETS_EACH}."), &by_r.map(|r| format!("r = {r}")), &by_r.map(|r| (r, SETS_EACH)))
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
    let absent = load.absent(options.timing.queries);
    let mut rows = vec![(Vec::new(), Vec::new()); BLOOM.len()];
    for &bits in &budgets {
        let built: Vec<_> = BLOOM.iter().map(|method| method.built(load, bits, &mut counts)).collect();
        let there: Vec<&dyn Index> = built.iter().flatten().map(AsRef::as_ref).collect();
        let mut times = measured::times(&there, &[&absent], How::Alone, options.timing.rounds).into_iter();
        for (row, index) in rows.iter_mut().zip(&built) {
            row.0.push(index.as_ref().map(|index| measured::absent(index.as_ref(), &absent)));
            row.1.push(index.as_ref().and_then(|_| times.next()).map(|times| times[0]));
        }
    }
    let expected = |rate: &dyn Fn(u64) -> f64| budgets.iter().map(|&bits| Some(rate(bits))).collect::<Vec<_>>();
    let sizes = load.sizes();
    let bigsi = |bits: u64| {
        let m = bits as f64 / load.sets as f64;
        sizes.iter().map(|&size| bloom_rate(m, size as f64)).sum()
    };
    counts.row("BIGSI (formula)", expected(&bigsi));
    let csc = |bits: u64| load.sets as f64 * bloom_rate(bits as f64, load.pairs() as f64);
    counts.row("CSC-BF, r = 1, k = 3 (formula)", expected(&csc));
    for (method, (false_sets, times)) in BLOOM.iter().zip(rows) {
        counts.row(method.name(), false_sets);
        clocks.row(method.name(), times);
    }
    let queries = options.timing.queries;
    vec![
        counts.note(format!(
            "{queries} random keys. k = 3 where nothing else is said. The paper, RCV1-X, 5e7 bits: CSC with r = 1 4.5 \
             times fewer than BIGSI, with r = 3 4.6 times fewer than with r = 1."
        )),
        clocks.note(
            "The paper, RCV1-X: CSC with r = 1 49 times quicker than BIGSI per set, with r = 3 8 times quicker than \
             RAMBO.",
        ),
    ]
}

/// False sets and times by the number of sets that hold the key: figures 8 and 10.
pub(super) fn by_multiplicity(load: &Load, bits_per_pair: f64, options: &Options) -> Vec<Grid> {
    let bits = (bits_per_pair * load.pairs() as f64) as u64;
    let columns = || {
        let keys = load.probes.iter().map(|probe| format!("v = {}", probe.sets));
        ["method".to_string(), "absent".into()].into_iter().chain(keys)
    };
    let of = format!("{}; {bits_per_pair:.1} bits a pair", load.describe());
    let mut counts = Grid::new(format!("Figure 8, false sets by the number of the key's sets. {of}."), columns());
    let mut clocks =
        Grid::new(format!("Figure 10, ns by the number of the key's sets, one by one. {}.", load.name), columns());
    let absent = load.absent(options.timing.queries);
    let mut lists: Vec<&[u64]> = vec![&absent];
    lists.extend(load.probes.iter().map(|probe| &load.keys[probe.keys.clone()]));
    let built: Vec<_> = BLOOM.iter().map(|method| method.built(load, bits, &mut counts)).collect();
    let there: Vec<&dyn Index> = built.iter().flatten().map(AsRef::as_ref).collect();
    let mut times = measured::times(&there, &lists, How::Alone, options.timing.rounds).into_iter();
    for (method, index) in BLOOM.iter().zip(&built) {
        let Some(index) = index else { continue };
        let mut row = vec![measured::absent(index.as_ref(), &absent)];
        let mut lost = 0;
        for keys in load.probes.iter().map(|probe| probe.keys.clone()) {
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
            "v: new keys in v random sets. The paper: RAMBO and CSC with r = 3 err more with every set of the key, the \
             others do not.",
        ),
        clocks.note("The paper: CSC with r = 1 quickest; RAMBO and CSC with r = 3 slower with every set of the key."),
    ]
}

const QUERIED: [usize; 5] = [1000, 2000, 4000, 8000, 14_588];

/// Times by the number of sets that are queried, and of an insertion.
pub(super) fn figure11(options: &Options) -> Result<Vec<Grid>, Box<dyn Error>> {
    let load = generated::amazon(options.scale, options.timing.seed);
    let bits = 40 * load.pairs() as u64;
    let head = format!(
        "Figure 11, left: ns for an absent key by the number of sets queried. {}, 40 bits a pair.",
        load.describe()
    );
    let columns = ["method".to_string()].into_iter().chain(QUERIED.map(|sets| format!("{sets} sets")));
    let mut left = Grid::new(head, columns);
    let absent = load.absent(options.timing.queries.min(1000));
    let names = ["BIGSI, per set".to_string(), "BIGSI, in rows".into(), Method::Csc.name()];
    let mut rows = names.map(|name| (name, Vec::new()));
    for sets in QUERIED.map(|sets| sets.min(load.sets)) {
        let csc = Method::Csc.built(&load.folded(sets), bits, &mut left);
        let bigsi = PerSet::filters(&load, bits).queried(sets);
        let beside = Rows::filters(&load, bits).queried(sets);
        let Some(csc) = csc else { continue };
        let times = measured::times(&[&bigsi, &beside, csc.as_ref()], &[&absent], How::Alone, options.timing.rounds);
        rows.iter_mut().zip(times).for_each(|((_, row), times)| row.push(Some(times[0])));
    }
    rows.into_iter().for_each(|(name, row)| left.row(name, row));
    Ok(vec![
        left.note(
            "All pairs of all sets are stored; the first so many sets are queried. In a row of CSC the pairs of the \
             others are other keys' in the queried sets, so that table and fill are the same. The paper: BIGSI grows \
             with the sets, CSC with r = 1 much more slowly.",
        ),
        insertions(options)?,
    ])
}

const BATCH: usize = 1000;

fn insertions(options: &Options) -> Result<Grid, Box<dyn Error>> {
    let load = generated::rcv1(options.scale, options.timing.seed);
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
    let bloom = |repetitions, b| ours::sets::bloom_shape(bits, PROBES as u32, repetitions, b);
    let cuckoo = ours::sets::cuckoo_shape(&load, bits, 1, 0);
    let shapes = [
        (format!("tamis CSC-BF, r = 1, k = {PROBES}"), bloom(1, 0)),
        (format!("tamis CSC-BF, r = {REPETITIONS}, k = {PROBES}"), bloom(REPETITIONS, load.sets.div_ceil(SETS_EACH))),
        ("tamis CSC-CF, r = 1".into(), cuckoo),
        ("tamis CSC-CF, r = 1, half full".into(), ours::sets::half_full(cuckoo)),
    ];
    for (name, shape) in shapes {
        for batch in [1, BATCH] {
            let mut samples = Vec::new();
            for _ in 0..options.timing.rounds.max(1) {
                let mut table = ours::sets::insert_all(&load, shape)?;
                let (inserted, time) =
                    measure::cpu(|| if batch == 1 { table.alone() } else { table.in_batches(batch) });
                inserted?;
                samples.push(each(time));
            }
            let how =
                if batch == 1 { "Editor::insert".into() } else { format!("Editor::insert_many, {batch} in a call") };
            grid.full(format!("{name}, {how}"), measure::median(samples));
        }
    }
    Ok(grid.note(
        "Processor time of the whole construction from keys. tamis sorts all pairs and drops equal ones first, except \
         in the last rows, where an editor takes them as they come. The paper: CSC a little slower than BIGSI; three \
         repetitions take three times as long.",
    ))
}
