//! \[CSC\] -> its table and figures 2 and 4 to 13 again, and what the library's many-sets index reaches.
//!
//! The figures are printed without numbers; what the text says about them is in the notes below our tables. The paper's
//! rivals are our own ([`crate::many`]), the data is generated with its skew, and real where `TAMIS_DATA` names a folder.
//! All methods of a table have the same memory and are asked for the same keys in turns.

use std::error::Error;
use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tamis_bench::args::Timing;
use tamis_bench::machine::Machine;
use tamis_bench::table::{self, Table};

use self::grid::Grid;
use crate::data;
use crate::many::{Load, generated, real};

mod cuckoos;
mod figures;
mod formulas;
mod grid;
mod methods;
mod targets;
mod tuned;

#[derive(Args, Serialize)]
#[command(mut_arg("rounds", |arg| arg.default_value("5")))]
#[command(mut_arg("queries", |arg| arg.default_value("10000").help("Absent keys that are queried, and present ones")))]
pub(crate) struct Options {
    /// What to do [default: everything].
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true)]
    #[arg(default_values_t = Part::value_variants().to_vec())]
    part: Vec<Part>,
    /// How much of the generated data: 1 has 3,708,886 pairs like RCV1-X, 4.2 million like AmazonCat, 20 million in 256 sets.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    #[command(flatten)]
    #[serde(flatten)]
    timing: Timing,
    /// Keys to add for every number of sets (the paper has 1,000).
    #[arg(long, default_value_t = 1000)]
    probes: usize,
}

/// Bits of the paper's statements about RCV1-X.
const RCV1_BITS: f64 = 5e7;

/// The numbers of sets that added keys are in.
const MULTIPLICITIES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

impl Options {
    fn rcv1_bits(&self) -> u64 {
        (RCV1_BITS * self.scale) as u64
    }

    fn wants(&self, part: Part) -> bool {
        self.part.contains(&part)
    }

    fn rcv1(&self) -> Load {
        generated::rcv1(self.scale, self.timing.seed).with_probes(self.probes, &MULTIPLICITIES, self.timing.seed)
    }

    fn amazon(&self) -> Load {
        generated::amazon(self.scale, self.timing.seed).with_probes(self.probes, &MULTIPLICITIES, self.timing.seed)
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// How full filters of one size are.
    Figure2,
    /// What repetitions gain, by the formula.
    Figure4,
    /// The data: table 1 and figure 5.
    Figure5,
    /// Partitions and repetitions.
    Figure6,
    /// False sets and times by memory: figures 7 and 9.
    Figure7,
    /// False sets and times by multiplicity: figures 8 and 10.
    Figure8,
    /// Times by the number of sets; insertion.
    Figure11,
    /// Cuckoo filters.
    Figure12,
    /// CSC-BF and CSC-CF.
    Figure13,
    /// The paper's preset beside the search.
    Tuned,
    /// Every pair of every data set.
    Pairs,
    /// What must be reached.
    Targets,
}

fn countries(dir: &Path) -> Result<Load, Box<dyn Error>> {
    Ok(real::countries(&data::read(&dir.join("multiset/crux-origin-countries.tsv.zst"))?))
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    figures: Vec<Grid>,
    targets: Option<targets::Targets>,
    /// What was left out for want of data.
    skipped: Option<&'static str>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    if !(options.scale > 0.0 && options.scale <= 100.0) || options.timing.queries == 0 || options.probes == 0 {
        return Err("--scale must be more than 0 and at most 100, --queries and --probes at least 1".into());
    }
    let folder = data::folder();
    let mut figures = Vec::new();
    if options.wants(Part::Figure4) {
        figures.extend(formulas::figure4());
    }
    if options.wants(Part::Figure5) {
        figures.extend(figures::figure5(options));
    }
    of_rcv1(options, &mut figures);
    if options.wants(Part::Figure7) || options.wants(Part::Figure8) || options.wants(Part::Tuned) {
        of_amazon(options, &mut figures);
    }
    if options.wants(Part::Figure11) {
        figures.extend(figures::figure11(options)?);
    }
    of_files(options, folder.as_deref(), &mut figures)?;
    let targets = options.wants(Part::Targets).then(|| targets::run(options, folder.as_deref())).transpose()?;
    let skipped = folder.is_none().then_some("Real data was skipped: TAMIS_DATA names no folder.");
    Ok(Report { machine: Machine::read(), options, figures, targets, skipped })
}

fn of_rcv1(options: &Options, figures: &mut Vec<Grid>) {
    let parts = [Part::Figure2, Part::Figure6, Part::Figure7, Part::Figure8, Part::Figure13, Part::Tuned];
    if !parts.into_iter().any(|part| options.wants(part)) {
        return;
    }
    let load = options.rcv1();
    // The bits that the paper names, for the pairs that are there.
    let per_pair = |bits: f64| bits / 3_708_886.0;
    if options.wants(Part::Figure2) {
        figures.push(formulas::figure2(&load, options));
    }
    if options.wants(Part::Figure6) {
        figures.extend(figures::figure6(&load, options));
    }
    if options.wants(Part::Figure7) {
        let bits = [3e7, 5e7, 7e7, 1e8].map(per_pair);
        figures.extend(figures::by_memory(&load, &bits, options));
    }
    if options.wants(Part::Figure8) {
        figures.extend(figures::by_multiplicity(&load, per_pair(RCV1_BITS), options));
    }
    if options.wants(Part::Figure13) {
        figures.push(cuckoos::figure13(&load, options));
    }
    if options.wants(Part::Tuned) {
        figures.push(tuned::run(&load, per_pair(RCV1_BITS), options));
    }
}

fn of_amazon(options: &Options, figures: &mut Vec<Grid>) {
    let load = options.amazon();
    if options.wants(Part::Figure7) {
        figures.extend(figures::by_memory(&load, &[10.0, 20.0, 40.0, 60.0], options));
    }
    if options.wants(Part::Figure8) {
        figures.extend(figures::by_multiplicity(&load, 20.0, options));
    }
    if options.wants(Part::Tuned) {
        figures.push(tuned::run(&load, 20.0, options));
    }
}

/// What is read or checked on real data, and every pair of all data.
fn of_files(options: &Options, folder: Option<&Path>, figures: &mut Vec<Grid>) -> Result<(), Box<dyn Error>> {
    let [figure12, tuned, pairs] = [Part::Figure12, Part::Tuned, Part::Pairs].map(|part| options.wants(part));
    let countries = folder.filter(|_| tuned || pairs).map(countries).transpose()?;
    if let Some(load) = countries.as_ref().filter(|_| tuned) {
        figures.push(tuned::run(load, 13.0, options));
    }
    let genomes = folder.filter(|_| figure12 || pairs).map(|dir| real::genomes(&dir.join("genomes"))).transpose()?;
    if figure12 {
        figures.extend(cuckoos::figure12(genomes.as_ref(), options));
    }
    if pairs {
        let mut grid = tuned::pairs_grid();
        countries.iter().chain(&genomes).for_each(|load| tuned::every_pair(load, &mut grid));
        drop((countries, genomes));
        tuned::every_pair(&options.rcv1(), &mut grid);
        tuned::every_pair(&options.amazon(), &mut grid);
        tuned::every_pair(&generated::large(options.scale, options.timing.seed), &mut grid);
        figures.push(grid);
    }
    Ok(())
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.figures.iter().all(Grid::is_clean) && self.targets.as_ref().is_none_or(targets::Targets::is_clean)
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.figures.iter().map(Grid::table).collect();
        tables.extend(self.targets.as_ref().map(|targets| targets.table(self.options.scale)));
        if let Some(first) = tables.first_mut() {
            let Timing { rounds, seed, .. } = self.options.timing;
            first.head = format!("{} {}, rounds: {rounds}, seed {seed}.", first.head, self.machine);
        }
        if let (Some(last), Some(skipped)) = (tables.last_mut(), self.skipped) {
            last.note = format!("{} {skipped}", last.note);
        }
        tables
    }
}
