//! equations with right-hand sides, in the order of their rows -> one column of bits, thresholds, and who was bumped.
//!
//! The elimination of a bumped ribbon (`leaves/ribbon/eliminate.rs`) on one strip: bucket by bucket, left to right, and inside a
//! bucket first those that are bumped last. When an equation contradicts the others, the rows that its class took in this
//! bucket are given back, and the class is bumped with those after it.

use super::{BUCKET, BUMPS};

/// What an element wants of a column.
#[derive(Clone, Copy)]
pub(super) struct Equation {
    pub(super) row: u64,
    /// The coefficients from the row on; the first is 1.
    pub(super) band: u64,
    pub(super) value: bool,
}

/// A column with right-hand sides.
pub(super) struct Solved {
    /// Row i is bit i % 64 of word i / 64.
    pub(super) words: Vec<u64>,
    /// A step for each bucket.
    pub(super) steps: Vec<u8>,
}

/// A system in the making.
struct System {
    /// For every row the equation that fixes it, 0 for a free one; and its right-hand side.
    pivots: Vec<u64>,
    values: Vec<bool>,
    /// Rows taken since the last class began.
    taken: Vec<usize>,
}

impl System {
    /// Takes an equation in; says no if it contradicts the others.
    fn insert(&mut self, equation: Equation) -> bool {
        let Equation { row, mut band, mut value } = equation;
        let mut row = row as usize;
        while band != 0 {
            let skip = band.trailing_zeros();
            row += skip as usize;
            band >>= skip;
            // A band ends with the strip, and so does what is left of it.
            let (Some(pivot), Some(side)) = (self.pivots.get_mut(row), self.values.get_mut(row)) else { return false };
            if *pivot == 0 {
                (*pivot, *side) = (band, value);
                self.taken.push(row);
                return true;
            }
            band ^= *pivot;
            value ^= *side;
        }
        !value
    }

    /// Takes all of a class in, or nothing.
    fn class(&mut self, equations: &[Equation]) -> bool {
        self.taken.clear();
        let all = equations.iter().all(|&equation| self.insert(equation));
        if !all {
            for &row in &self.taken {
                self.pivots[row] = 0;
                self.values[row] = false;
            }
        }
        all
    }

    /// The bits, last to first.
    fn solve(&self) -> Vec<u64> {
        let mut words = vec![0; self.pivots.len().div_ceil(64)];
        let mut window = 0u64;
        for (row, (&pivot, &value)) in self.pivots.iter().zip(&self.values).enumerate().rev() {
            let bit = u64::from((window & pivot >> 1).count_ones() & 1) ^ u64::from(value);
            window = window << 1 | bit;
            words[row / 64] |= bit << (row % 64);
        }
        words
    }
}

/// Solves a strip of so many rows for equations sorted by row, as far as there is room.
pub(super) fn solve(rows: u64, equations: &[Equation]) -> Solved {
    let mut system = System { pivots: vec![0; rows as usize], values: vec![false; rows as usize], taken: vec![] };
    let buckets = rows.div_ceil(BUCKET);
    let mut steps = Vec::with_capacity(buckets as usize);
    let mut left = equations;
    for bucket in 0..buckets {
        let (mut here, later) = left.split_at(left.partition_point(|e| e.row < (bucket + 1) * BUCKET));
        left = later;
        let mut step = 0;
        for class in (0..3).rev() {
            let (others, members) = here.split_at(here.partition_point(|e| e.row - bucket * BUCKET < BUMPS[class]));
            if !system.class(members) {
                step = class as u8 + 1;
                break;
            }
            here = others;
        }
        steps.push(step);
    }
    Solved { words: system.solve(), steps }
}
