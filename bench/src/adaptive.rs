//! adaptive filters -> what they cost: space, time of every operation, the worst operation, and how full their parts get.
//!
//! ```text
//!   timing     bits per item and ns at several loads, idle and after an epoch of attack, beside a plain quotient filter
//!   worst      words and map accesses of single operations: the most that any of ten million took
//!   simulate   adaptivity bits per block, back yard and graveyard, from 10^4 to 10^7 keys, and rates down to 2^-18     (--simulate: this alone)
//! ```
//!
//! Who takes part is said in [`crate::adversary::entries`]: filters there are measured here.

use std::error::Error;

use clap::Args;
use serde::Serialize;

use crate::adversary::{self, Expected};
use crate::args::{Timing, is_named};
use crate::machine::Machine;
use crate::table::{self, Table, some};

pub(crate) mod cuckoo;
mod simulate;
mod timing;
mod worst;

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Capacity of the filters.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    keys: u64,
    /// Shares of the capacity to fill, ascending; for a plain quotient filter, shares of its slots.
    #[arg(long, value_delimiter = ',', default_values_t = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95])]
    loads: Vec<f64>,
    #[command(flatten)]
    #[serde(flatten)]
    timing: Timing,
    /// Random operations among which to find the worst one; 0 for none.
    #[arg(long, default_value_t = 10_000_000)]
    operations: u64,
    /// Only filters whose name contains one of these (the plain quotient filter always takes part).
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    filters: Vec<String>,
    /// Simulate permanent attack on broom filters of several sizes instead.
    #[arg(long)]
    simulate: bool,
    /// Sizes of the simulated filters.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000, 10_000_000])]
    sizes: Vec<u64>,
    /// Epochs of the simulation.
    #[arg(long, default_value_t = 3)]
    epochs: u64,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    timing: Option<timing::Timings>,
    worst: Vec<worst::Worst>,
    simulated: Vec<simulate::Simulated>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut report = Report { machine: Machine::read(), options, timing: None, worst: vec![], simulated: vec![] };
    if options.simulate {
        report.simulated = simulate::run(options)?;
        return Ok(report);
    }
    if !options.loads.is_sorted() || options.loads.iter().any(|load| !(0.01..=1.0).contains(load)) {
        return Err("loads must ascend and lie between .01 and 1".into());
    }
    let named = |name: &str| is_named(&options.filters, name);
    report.timing = Some(timing::run(options, named)?);
    if options.operations > 0 {
        let entries = adversary::entries().into_iter();
        let adaptive = entries.filter(|entry| entry.expected != Expected::Fails && named(entry.name));
        report.worst = adaptive.map(|entry| worst::run(options, entry)).collect::<Result<_, _>>()?;
    }
    Ok(report)
}

impl table::Report for Report<'_> {
    /// Whether no key was lost, no operation failed, and nothing was fuller than it may be.
    fn is_clean(&self) -> bool {
        self.timing.as_ref().is_none_or(timing::Timings::is_clean)
            && self.worst.iter().all(worst::Worst::is_clean)
            && self.simulated.iter().all(simulate::Simulated::is_clean)
    }

    fn tables(&self) -> Vec<Table> {
        let timing = self.timing.as_ref().map(|timing| timing.table(self.options, &self.machine));
        let worst = some(&self.worst, |worst| worst::table(self.options, worst));
        let simulated = some(&self.simulated, |all| simulate::table(self.options, &self.machine, all));
        [timing, worst, simulated].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;

    fn options(simulate: bool) -> Options {
        Options {
            keys: 3000,
            loads: vec![0.5, 0.95],
            timing: Timing { rounds: 2, queries: 2000, seed: 1 },
            operations: 30_000,
            filters: vec![],
            simulate,
            sizes: vec![1000, 3000],
            epochs: 2,
        }
    }

    #[test]
    fn every_filter_is_measured_at_every_load() {
        let options = options(false);
        let report = run(&options).unwrap();
        let tables = report.tables();
        assert!(report.is_clean(), "{}", tables.iter().map(ToString::to_string).collect::<String>());
        assert_eq!(tables.len(), 2);
        for name in ["plain quotient", "broom", "adaptive cuckoo 8 bit"] {
            assert_eq!(tables[0].rows.iter().filter(|row| row[0] == name).count(), 2, "{name}");
        }
        assert!(tables[0].rows.iter().any(|row| row[0].contains("quoted") && row[2] == "12.48"));
        // Words and map, of three operations.
        assert_eq!(tables[1].rows.iter().filter(|row| row[0].starts_with("broom, ")).count(), 6);
        let brooms = tables[1].rows.iter().filter(|row| row[0].starts_with("broom"));
        assert!(brooms.into_iter().all(|row| row[1] != "0"), "{}", tables[1]);
        assert!(run(&Options { loads: vec![0.9, 0.5], ..options }).is_err());
    }

    #[test]
    fn a_simulation_goes_through_its_epochs() {
        let options = options(true);
        let report = run(&options).unwrap();
        assert!(report.is_clean(), "{}", report.tables()[0]);
        let rows = &report.tables()[0].rows;
        // Two sizes of five filters.
        assert!(rows.len() == 10 && rows.iter().all(|row| row[2] == "2"), "{rows:?}");
        assert!(rows.iter().all(|row| row[7] != "0" || row[0].starts_with("large")), "{rows:?}");
    }
}
