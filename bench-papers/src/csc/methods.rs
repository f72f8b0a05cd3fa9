//! names -> indexes of the same memory: what the figures compare.

use super::grid::Grid;
use crate::many::bigsi::{PerSet, Rows};
use crate::many::per_set_cuckoo::PerSetCuckoo;
use crate::many::rambo::Rambo;
use crate::many::shifting::Shifting;
use crate::many::tree::Tree;
use crate::many::{Built, Index, Load, PROBES};
use crate::ours;

/// A way to hold a load in so many bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Method {
    Bigsi,
    BigsiRows,
    Tree,
    Shifting,
    Rambo {
        repetitions: u32,
        sets_each: usize,
    },
    /// CSC-BF with the paper's three hashes.
    Csc,
    CscRepeated {
        repetitions: u32,
        sets_each: usize,
    },
    Tuned,
    PerSetCuckoo,
    CscCuckoo,
    CscCuckooRepeated {
        repetitions: u32,
        sets_each: usize,
    },
}

use Method::{
    Bigsi, BigsiRows, Csc, CscCuckoo, CscCuckooRepeated, CscRepeated, Rambo as RamboOf, Shifting as Shift, Tuned,
};

/// What \[CSC\] 6.3 chose: three repetitions, ten sets in a partition.
pub(super) const REPETITIONS: u32 = 3;
pub(super) const SETS_EACH: usize = 10;
pub(super) const RAMBO: Method = RamboOf { repetitions: REPETITIONS, sets_each: SETS_EACH };
pub(super) const PRESET: Method = CscRepeated { repetitions: REPETITIONS, sets_each: SETS_EACH };
pub(super) const CUCKOO_PRESET: Method = CscCuckooRepeated { repetitions: REPETITIONS, sets_each: SETS_EACH };

/// All that figures 7 to 10 compare.
pub(super) const BLOOM: [Method; 8] = [Bigsi, BigsiRows, Method::Tree, Shift, RAMBO, Csc, PRESET, Tuned];

pub(super) const CUCKOO: [Method; 3] = [Method::PerSetCuckoo, CscCuckoo, CUCKOO_PRESET];

impl Method {
    pub(super) fn name(self) -> String {
        match self {
            Bigsi => "BIGSI, per set".into(),
            BigsiRows => "BIGSI, in rows".into(),
            Method::Tree => "Sequence Bloom tree (leaves charged)".into(),
            Shift => "shifting Bloom filter".into(),
            RamboOf { repetitions, sets_each } => format!("RAMBO, r = {repetitions}, b = n/{sets_each}"),
            Csc => format!("tamis CSC-BF, r = 1, k = {PROBES}"),
            CscRepeated { repetitions, sets_each } => {
                format!("tamis CSC-BF, r = {repetitions}, b = n/{sets_each}, k = {PROBES}")
            }
            Tuned => "tamis CSC-BF, tuned".into(),
            Method::PerSetCuckoo => "cuckoo filter per set".into(),
            CscCuckoo => "tamis CSC-CF, r = 1".into(),
            CscCuckooRepeated { repetitions, sets_each } => {
                format!("tamis CSC-CF, r = {repetitions}, b = n/{sets_each}")
            }
        }
    }

    pub(super) fn build(self, load: &Load, bits: u64) -> Built {
        let groups = |sets_each: usize| load.sets.div_ceil(sets_each);
        match self {
            Bigsi => PerSet::build(load, bits),
            BigsiRows => Rows::build(load, bits),
            Method::Tree => Tree::build(load, bits),
            Shift => Shifting::build(load, bits),
            RamboOf { repetitions, sets_each } => Rambo::build(load, bits, groups(sets_each), repetitions as usize),
            Csc => ours::sets::bloom(load, bits, PROBES as u32, 1, 0),
            CscRepeated { repetitions, sets_each } => {
                ours::sets::bloom(load, bits, PROBES as u32, repetitions, groups(sets_each))
            }
            Tuned => ours::sets::tuned(load, bits),
            Method::PerSetCuckoo => PerSetCuckoo::build(load, bits),
            CscCuckoo => ours::sets::cuckoo(load, bits, 1, 0),
            CscCuckooRepeated { repetitions, sets_each } => {
                ours::sets::cuckoo(load, bits, repetitions, groups(sets_each))
            }
        }
    }

    /// The index, or a word in the grid about why there is none.
    pub(super) fn built(self, load: &Load, bits: u64, grid: &mut Grid) -> Option<Box<dyn Index>> {
        // Too little memory for slots of four bits: the answer of this method, not a fault.
        if let CscCuckooRepeated { repetitions, .. } = self
            && !ours::sets::cuckoo_fits(load, bits, repetitions)
        {
            return None;
        }
        match self.build(load, bits) {
            Ok(index) => Some(index),
            // Cuckoo filters for the largest set do not fit everywhere: that is their answer, not a fault.
            Err(_) if self == Method::PerSetCuckoo => None,
            Err(e) => {
                grid.wrong(format!("{}: {e}", self.name()));
                None
            }
        }
    }
}
