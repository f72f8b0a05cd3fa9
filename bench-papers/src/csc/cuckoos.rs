//! figures 12 and 13: methods based on cuckoo filters, and CSC-BF beside CSC-CF.

use super::Options;
use super::grid::Grid;
use super::methods::{CUCKOO, Method, REPETITIONS};
use crate::many::measured::{self, How};
use crate::many::{Index, Load, generated};

/// Absent keys, then keys by the number of their sets: false sets and ns of every method that fits.
fn compare(grid: &mut Grid, name: &str, methods: &[Method], load: &Load, bits: u64, options: &Options) {
    let absent = load.absent(options.timing.queries);
    let present = load.present(options.timing.queries, options.timing.seed);
    let mut built: Vec<(Method, Box<dyn Index>)> = Vec::new();
    for &method in methods {
        built.extend(method.built(load, bits, grid).map(|index| (method, index)));
    }
    let there: Vec<&dyn Index> = built.iter().map(|(_, index)| index.as_ref()).collect();
    let mut lists: Vec<&[u64]> = vec![&absent, &present];
    lists.extend(load.probes.iter().map(|probe| &load.keys[probe.keys.clone()]));
    let alone = measured::times(&there, &lists, How::Alone, options.timing.rounds);
    let batch = measured::times(&there, &lists[..1], How::Batch, options.timing.rounds);
    for ((method, index), (alone, batch)) in built.iter().zip(alone.iter().zip(&batch)) {
        let mut row = vec![index.bits() as f64 / load.pairs() as f64, measured::absent(index.as_ref(), &absent)];
        let all = 0..load.keys.len().min(options.timing.queries);
        let mut lost = 0;
        for keys in load.probes.iter().map(|probe| probe.keys.clone()).chain([all]) {
            let tally = measured::check_range(index.as_ref(), load, keys);
            row.push(tally.false_each());
            lost += tally.lost;
        }
        if lost > 0 {
            grid.wrong(format!("{} lost {lost} pairs", method.name()));
        }
        let times = [alone[0], batch[0], alone[1]].into_iter().chain(alone.iter().skip(2).copied());
        grid.full(format!("{}{name}", method.name()), row.into_iter().chain(times));
    }
}

fn columns(load: &Load) -> Vec<String> {
    let mut columns: Vec<String> = ["method, budget a pair", "bits a pair", "absent"].map(String::from).to_vec();
    columns.extend(load.probes.iter().map(|probe| format!("v = {}", probe.sets)));
    columns.extend(["all keys", "absent ns", "in batches", "present ns"].map(String::from));
    columns.extend(load.probes.iter().map(|probe| format!("v = {}, ns", probe.sets)));
    columns
}

const BUDGETS: [f64; 5] = [11.2, 14.0, 16.8, 19.6, 22.4];

/// Cuckoo filters on sets like those of DNA-500, and on genomes.
pub(super) fn figure12(genomes: Option<&Load>, options: &Options) -> Vec<Grid> {
    let pairs = (2e6 * options.scale) as usize;
    let dna = generated::dna500(pairs, options.timing.seed).with_probes(
        options.probes,
        &[1, 2, 4, 8, 16, 32],
        options.timing.seed,
    );
    let mut grids = Vec::new();
    // Ten genomes in partitions of ten would be one partition.
    let apart = Method::CscCuckooRepeated { repetitions: REPETITIONS, sets_each: 1 };
    let cases =
        [(Some(&dna), CUCKOO, &BUDGETS[..]), (genomes, [Method::PerSetCuckoo, Method::CscCuckoo, apart], &[16.9])];
    for (load, methods, budgets) in cases {
        let Some(load) = load else { continue };
        let head = format!("Figure 12, false sets and ns of cuckoo filters. {}.", load.describe());
        let mut grid = Grid::new(head, columns(load));
        for bits in budgets {
            compare(&mut grid, &format!(", {bits} bits"), &methods, load, (bits * load.pairs() as f64) as u64, options);
        }
        grids.push(grid.note(
            "Slots as wide as the budget allows, 4 to 32 bits, those of a filter per set to 16; a method that is not \
             there does not fit. All keys: some of the load's own. The paper, DNA-500: CSC-CF with r = 1 most accurate \
             and 38 times quicker than a filter per set (3e10 bits); with r = 3 less accurate than that below 2e10 \
             bits, more accurate above. By the sizes of its table 1 these are 17 and 11 bits a pair.",
        ));
    }
    grids
}

/// CSC-BF beside CSC-CF, both with one table.
pub(super) fn figure13(load: &Load, options: &Options) -> Grid {
    let head = format!("Figure 13, CSC-BF and CSC-CF by memory, false sets and ns. {}.", load.describe());
    let mut grid = Grid::new(head, columns(load));
    for bits in [8.5, 12.7, 17.0, 22.6] {
        let methods = [Method::Csc, Method::Tuned, Method::CscCuckoo];
        compare(&mut grid, &format!(", {bits} bits"), &methods, load, (bits * load.pairs() as f64) as u64, options);
    }
    grid.note(
        "Slots are as wide as the budget allows, 4 to 32 bits. The paper: 6.3e7 bits (17 a pair) 21.2 times fewer \
         false sets than CSC-BF with k = 3, 8.4e7 (22.6) 274.9 times, 5.7 times slower.",
    )
}
