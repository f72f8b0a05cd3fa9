//! keys, negatives, parameters -> the size and rate of a local leaf.
//!
//! All columns have n (1 + s) rows, and what each of them leaves is measured (`steered::share`). Where slack is small there are
//! stretches without a free row, in all columns at once because they share their rows, and what starts there passes.

use super::{BUCKET, LEAST, Local, Size, build, pad};
use crate::arch::Level;
use crate::error::BuildError;
use crate::leaves::design::lines_of;
use crate::leaves::{Design, Sides, Work, ribbon, steered};
use crate::math::portable::exp2;

/// Rows of a strip, about.
const STRIP: u64 = 1 << 16;

/// (slack, rows in 100,000ths in stretches where keys lie so densely that no row is free and all columns are 0): there every negative
/// passes. An estimate that only weighs small slacks against each other; what a leaf really leaves is counted when it is built.
const FULL_STRETCHES: [(u16, u16); 4] = [(64, 2300), (80, 260), (96, 30), (128, 0)];

/// Elements of the exact columns per row: a few more than there is room for, so that hardly a row stays empty.
pub(super) const FULL: (u64, u64) = (102, 100);

/// What the planner chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    /// Steered columns, 0 to 6.
    pub(crate) columns: u8,
    /// Exact columns, 1 or 2; two columns at least in all.
    pub(crate) exact: u8,
    /// Rows beyond one per key, in 1024ths.
    pub(crate) slack: u16,
    /// States of the search for a steered column.
    pub(crate) beam: u16,
}

impl Params {
    pub(super) fn size(&self, n: u64) -> Size {
        let rows = n + (n * u64::from(self.slack)).div_ceil(1024);
        let strips = ((rows + STRIP / 2) / STRIP).max(1);
        let rows = rows.div_ceil(strips).next_multiple_of(8).max(LEAST);
        Size { steered: self.columns.into(), exact: self.exact.into(), strips, rows }
    }

    /// Bits of the payload before the rest, for `n` keys.
    fn octet_bits(&self, n: u64) -> f64 {
        if n == 0 {
            return 0.0;
        }
        let Size { strips, rows, .. } = self.size(n);
        let (columns, exact) = (u64::from(self.columns) + u64::from(self.exact), u64::from(self.exact));
        (strips * (rows * columns + 2 * exact * rows.div_ceil(BUCKET)) + 8 * pad(columns as usize)) as f64
    }

    /// Elements in the rest and bits, both per key, with `mu` negatives per key.
    pub(crate) fn cost(&self, mu: f64) -> (f64, f64) {
        let rows = 1.0 + f64::from(self.slack) / 1024.0;
        let (columns, exact) = (f64::from(self.columns), f64::from(self.exact));
        let elements = 1.0 + self.left(mu);
        let full = FULL.0 as f64 / FULL.1 as f64;
        let load = (elements / (exact * rows)).min(full);
        // A full column bumps one in 27, one of nine tenths hardly any; fewer where no steered column makes loads vary.
        let most = if self.columns == 0 { 0.024 } else { 0.0375 };
        let over = ((load - 0.85) / (full - 0.85)).max(0.0);
        let inside = load * exact * rows;
        let in_rest = elements - inside + most * inside * over * over * over;
        (in_rest, (columns + exact) * rows + exact * rows / 64.0 + 1.01 * in_rest)
    }

    /// Negatives per key that are left after the steered columns.
    pub(crate) fn left(&self, mu: f64) -> f64 {
        let share = |mu: f64| steered::share(mu, self.slack.into(), self.beam);
        let left = (0..self.columns).fold(mu, |mu, _| mu * share(mu));
        let zero = if self.columns == 0 { 0.0 } else { full_stretches(self.slack) };
        left + (mu - left) * zero
    }
}

impl Design for Params {
    type Leaf = Local;

    /// Rather more than less.
    fn bits(&self, listed: u64, others: u64) -> f64 {
        let n = listed.max(1) as f64;
        let (in_rest, _) = self.cost(others as f64 / n);
        // A strip of few rows has few places to start at, and bumps nearly all.
        let in_rest = if listed < 4096 { listed as f64 + others as f64 } else { 1.1 * in_rest * n };
        self.octet_bits(listed) + REST_PARAMS.bits(in_rest as u64, 0)
    }

    fn rate_at(&self, _: u64) -> f64 {
        exp2(-f64::from(self.columns + 1))
    }

    fn lines(&self) -> [f64; 2] {
        [lines_of(12.0 * f64::from(self.columns + self.exact)); 2]
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Local, BuildError> {
        let (keys, negatives) = sides.both()?;
        build::build_on(Level::detect(), keys, negatives, self, work, out)
    }
}

/// The share of rows in full stretches.
fn full_stretches(slack: u16) -> f64 {
    let next = FULL_STRETCHES.iter().position(|line| slack <= line.0).unwrap_or(FULL_STRETCHES.len() - 1);
    let ((low, a), (high, b)) = (FULL_STRETCHES[next.saturating_sub(1)], FULL_STRETCHES[next]);
    let along = f64::from(slack.min(high).saturating_sub(low)) / f64::from((high - low).max(1));
    (f64::from(a) + (f64::from(b) - f64::from(a)) * along) / 1e5
}

/// The ribbon of the rest.
pub(super) const REST_PARAMS: ribbon::Params = ribbon::Params { width: 256, tight: false, nested: false };
