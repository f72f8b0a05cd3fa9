//! the paper's preset beside what the library chooses, at the same size, and every pair of every data set.

use tamis::sets::{self, Kind};

use super::Options;
use super::grid::Grid;
use super::methods::{CUCKOO_PRESET, Method, PRESET, SETS_EACH};
use crate::many::measured::{self, How, Tally};
use crate::many::{Index, Load};
use crate::ours;

/// False sets of absent keys and of all keys of the load.
pub(super) struct Errors {
    pub(super) bits: f64,
    pub(super) absent: f64,
    pub(super) all: Tally,
}

pub(super) fn errors(index: &dyn Index, load: &Load, options: &Options) -> Errors {
    let absent = measured::absent(index, &load.absent(options.timing.queries));
    Errors { bits: index.bits() as f64 / load.pairs() as f64, absent, all: measured::check(index, load) }
}

/// False sets of absent keys that frozen indexes are made for.
const FALSE_SETS: [f64; 3] = [1.0, 0.1, 0.01];

/// k = 3, r = 3, b = n/10 and 4 slots, beside the search.
pub(super) fn run(load: &Load, bits_per_pair: f64, options: &Options) -> Grid {
    let mut columns: Vec<String> = ["index", "bits a pair", "absent", "all keys"].map(String::from).to_vec();
    columns.extend(load.probes.iter().map(|probe| format!("v = {}", probe.sets)));
    columns.extend(["absent ns", "in batches", "present ns"].map(String::from));
    let mut grid = Grid::new(format!("The preset of the paper and the search. {}.", load.describe()), columns);
    let bits = (bits_per_pair * load.pairs() as f64) as u64;
    let methods = [PRESET, CUCKOO_PRESET, Method::Tuned, Method::CscCuckoo];
    let built: Vec<_> = methods.iter().map(|method| method.built(load, bits, &mut grid)).collect();
    let mut named: Vec<(String, &dyn Index)> = Vec::new();
    for (method, index) in methods.iter().zip(&built) {
        named.extend(index.as_ref().map(|index| (method.name(), index.as_ref())));
    }
    let frozen = FALSE_SETS.map(|false_sets| (false_sets, ours::sets::frozen(load, false_sets)));
    for (false_sets, index) in &frozen {
        match index {
            Ok(index) => named.push((format!("tamis frozen, {false_sets} false sets for absent keys"), index.as_ref())),
            Err(e) => grid.wrong(format!("frozen: {e}")),
        }
    }
    let (absent, present) =
        (load.absent(options.timing.queries), load.present(options.timing.queries, options.timing.seed));
    let indexes: Vec<&dyn Index> = named.iter().map(|(_, index)| *index).collect();
    let alone = measured::times(&indexes, &[&absent, &present], How::Alone, options.timing.rounds);
    let batch = measured::times(&indexes, &[&absent], How::Batch, options.timing.rounds);
    for ((name, index), (alone, batch)) in named.iter().zip(alone.iter().zip(&batch)) {
        let errors = errors(*index, load, options);
        if errors.all.lost > 0 {
            grid.wrong(format!("{name} lost {} pairs", errors.all.lost));
        }
        let probes =
            load.probes.iter().map(|probe| measured::check_range(*index, load, probe.keys.clone()).false_each());
        let first = [errors.bits, errors.absent, errors.all.false_each()].into_iter();
        grid.full(name.clone(), first.chain(probes).chain([alone[0], batch[0], alone[1]]));
    }
    grid.note(
        "False sets for absent keys, for all keys of the load, and for added keys in v random sets; ns for a query.",
    )
}

const ALONE: usize = 100_000;

/// Every pair of a load, asked of every kind of index in batches, and some of them one by one.
pub(super) fn every_pair(load: &Load, grid: &mut Grid) {
    let bits = 12 * load.pairs() as u64;
    // With fewer partitions a key of many sets has more copies in one of them than its buckets have slots.
    let b = load.sets.div_ceil(SETS_EACH).max(16);
    let rows = [
        ("CSC-BF, r = 1", ours::sets::bloom(load, bits, 3, 1, 0)),
        ("CSC-BF, r = 3", ours::sets::bloom(load, bits, 3, 3, b)),
        ("CSC-BF, tuned", ours::sets::tuned(load, bits)),
        ("CSC-CF, r = 1", ours::sets::cuckoo(load, bits, 1, 0)),
        ("CSC-CF, r = 3", ours::sets::cuckoo(load, 3 * bits, 3, b)),
        ("frozen", ours::sets::build(load, sets::stream().kind(Kind::Frozen)).map(|(index, _)| Box::new(index) as _)),
    ];
    for (name, built) in rows {
        let name = format!("{}, {name}", load.name);
        let index = match built {
            Ok(index) => index,
            Err(e) => {
                grid.wrong(format!("{name}: {e}"));
                continue;
            }
        };
        let tally = measured::check(index.as_ref(), load);
        let differ = measured::differ(index.as_ref(), load, 0..load.keys.len().min(ALONE));
        if tally.lost > 0 || differ > 0 || !tally.ascending || tally.pairs != load.pairs() as u64 {
            grid.wrong(format!("{name}: {} pairs asked for, {} lost", tally.pairs, tally.lost));
        }
        let numbers = [tally.keys, tally.pairs, tally.lost, differ].map(|x| x as f64);
        grid.full(name, numbers.into_iter().chain([tally.false_each()]));
    }
}

pub(super) fn pairs_grid() -> Grid {
    let columns = ["data, index", "keys", "pairs", "lost", "batch differs", "false sets a key"];
    Grid::new(format!("Every pair of every data set, asked in batches; {ALONE} keys of each one by one too."), columns)
}
