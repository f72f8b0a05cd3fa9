//! others per key -> the columns that make a steered filter smallest: dynamic programming over the measured survivors.
//!
//! The state is mu, the negatives per key that are still undecided; V(mu) is the least bits per key from there on:
//!
//! ```text
//!   E     C (1 + mu)                                          the exact bit, on keys and negatives
//!   P(s)  1 + s + V(mu x)             x = share(mu, s)        a column on the keys, steered against the negatives
//!   N(s)  mu (1 + s) + y V(mu / y)    y = share(1 / mu, s)    a column on the negatives, steered against the keys
//! ```
//!
//! V is kept on a grid of mu and taken to be linear between its points. A plan is found by looking one step ahead from the mu it
//! really has, as long as an E at once is not the best.
//!
//! Behind an N comes an E, but at effort smallest. Where an N pays, a P behind it often pays as well (at two negatives per key `P N E`
//! saves .007 bits over `P E`, and `P N P E` another .008), so that no price of a column would stop in between. But each is another
//! place to read, and the answer turns twice on the way: what saves the last .3 % is for those who care about bytes alone.

use std::sync::OnceLock;

use super::MIN_SLACK_SMALL_SET;
use crate::leaves::steered::{FAST, SMALLEST, share};
use crate::math::portable::log2;

/// A column to build: which side is listed, and its slack in 1024ths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Column {
    Keys(u16),
    Negatives(u16),
}

/// What an exact bit costs per element, measured: `cargo run --release -p tamis-bench -- filters`.
const EXACT_BITS: f64 = 1.0067;
/// The grid: mu from 2^-4 to 2^5.
const POINTS: usize = 145;
const FIRST_EXPONENT: f64 = -4.0;
const POINTS_PER_OCTAVE: f64 = 16.0;
/// Slacks that are tried, in 1024ths.
const MIN_SLACK: u16 = 40;
const MAX_SLACK: u16 = 800;
/// A column costs a query its time: it must save this much, in bits per key. That is a tenth of a percent: less is within what a
/// table of survivors is off by, and a plan with one column more would be chosen by chance.
const COLUMN_COST_BITS: f64 = 0.005;
/// More columns than any plan has.
pub(super) const MAX_COLUMNS: usize = 4;

/// The least bits per key from every state on, for one beam.
pub(super) struct Values {
    beam: u16,
    /// With columns on both sides.
    both: Vec<f64>,
    /// With exactly so many columns, all on the keys and of ample slack.
    keys: Vec<Vec<f64>>,
}

impl Values {
    /// Computed once.
    pub(super) fn of(beam: u16) -> &'static Values {
        static ALL: [OnceLock<Values>; 3] = [const { OnceLock::new() }; 3];
        let [fast, balanced, smallest] = &ALL;
        let values = match beam {
            FAST => fast,
            SMALLEST => smallest,
            _ => balanced,
        };
        values.get_or_init(|| Values::compute(beam))
    }

    fn compute(beam: u16) -> Values {
        let exact: Vec<f64> = grid().map(|mu| EXACT_BITS * (1.0 + mu)).collect();
        let mut values = Values { beam, both: exact.clone(), keys: vec![exact] };
        // Where every column leads from every point: asked for in every round below, and the same in all of them.
        let ahead = |on_keys: bool| -> Vec<Vec<Ahead>> {
            let from = |mu: f64| slacks().map(|slack| values.ahead(mu, slack, on_keys)).collect();
            grid().map(from).collect()
        };
        let (keys, negatives) = (ahead(true), ahead(false));
        let scant = slacks().filter(|&slack| slack < MIN_SLACK_SMALL_SET).count();
        let least = |choices: &[Ahead], then: &[f64]| {
            choices.iter().map(|ahead| ahead.bits(then)).fold(f64::INFINITY, |a, b| if b < a { b } else { a })
        };
        for _ in 0..MAX_COLUMNS {
            let last = values.keys.last().map_or(&[][..], Vec::as_slice);
            let next = keys.iter().map(|choices| least(choices.get(scant..).unwrap_or(&[]), last)).collect();
            values.keys.push(next);
        }
        // One column more in every round, until there is nothing to gain.
        for _ in 0..2 * MAX_COLUMNS {
            let next: Vec<f64> = grid()
                .zip(&values.both)
                .zip(keys.iter().zip(&negatives))
                .map(|((mu, &now), (keys, negatives))| {
                    let (on_keys, on_negatives) = measured(mu);
                    let keys = if on_keys { least(keys, &values.both) } else { now };
                    let negatives = if on_negatives { least(negatives, values.behind_negatives()) } else { now };
                    now.min(keys).min(negatives)
                })
                .collect();
            let settled = next.iter().zip(&values.both).all(|(next, now)| now - next < 1e-9);
            values.both = next;
            if settled {
                break;
            }
        }
        values
    }

    /// What may come behind a column on the negatives.
    fn behind_negatives(&self) -> &[f64] {
        if self.beam == SMALLEST { &self.both } else { self.keys.first().map_or(&[], Vec::as_slice) }
    }

    /// What a column costs from `mu` on, and where it leads.
    fn ahead(&self, mu: f64, slack: u16, on_keys: bool) -> Ahead {
        let s = f64::from(slack);
        match on_keys {
            true => Ahead {
                cost: 1.0 + s / 1024.0 + COLUMN_COST_BITS,
                kept: 1.0,
                then: Place::of(mu * share(mu, s, self.beam)),
            },
            false => {
                let kept = share(1.0 / mu, s, self.beam);
                Ahead { cost: mu * (1.0 + s / 1024.0) + COLUMN_COST_BITS, kept, then: Place::of(mu / kept) }
            }
        }
    }

    /// A column, on the keys or on the negatives, that is best before what `then` costs, with a slack of `least` and more.
    fn best(&self, mu: f64, then: &[f64], on_keys: bool, least: u16) -> (u16, f64) {
        let bits = |slack: u16| self.ahead(mu, slack, on_keys).bits(then);
        let all = slacks().filter(|&slack| slack >= least).map(|slack| (slack, bits(slack)));
        all.fold((least, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
    }

    /// The better of the two; none where neither is measured.
    fn best_of_both(&self, mu: f64) -> Option<(Column, f64)> {
        let (on_keys, on_negatives) = measured(mu);
        let keys = on_keys.then(|| self.best(mu, &self.both, true, MIN_SLACK));
        let negatives = on_negatives.then(|| self.best(mu, self.behind_negatives(), false, MIN_SLACK));
        let keys = keys.map(|(slack, bits)| (Column::Keys(slack), bits));
        let negatives = negatives.map(|(slack, bits)| (Column::Negatives(slack), bits));
        keys.into_iter().chain(negatives).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Columns on both sides, and then an exact bit.
    pub(super) fn exact(&self, mut mu: f64) -> Vec<Column> {
        let mut columns = vec![];
        while columns.len() < 2 * MAX_COLUMNS {
            match self.best_of_both(mu) {
                Some((column, bits)) if bits < EXACT_BITS * (1.0 + mu) => {
                    columns.push(column);
                    mu = self.after(mu, column);
                    if self.beam != SMALLEST && matches!(column, Column::Negatives(_)) {
                        break;
                    }
                }
                _ => break,
            }
        }
        columns
    }

    /// `count` columns on the keys, and then an exact bit: for a rate, so that all have ample slack.
    pub(super) fn on_keys(&self, mut mu: f64, count: usize) -> Vec<Column> {
        let mut columns = vec![];
        for then in self.keys.iter().take(count).rev() {
            let column = Column::Keys(self.best(mu, then, true, MIN_SLACK_SMALL_SET).0);
            columns.push(column);
            mu = self.after(mu, column);
        }
        columns
    }

    /// Negatives per key that a column leaves.
    pub(super) fn after(&self, mu: f64, column: Column) -> f64 {
        match column {
            Column::Keys(slack) => mu * share(mu, slack.into(), self.beam),
            Column::Negatives(slack) => mu / share(1.0 / mu, slack.into(), self.beam),
        }
    }

    /// The fewest bits per key of whole columns on the keys that leave at most `target` of `mu` negatives per key; the last of them
    /// may be for a share of the keys, in 256ths. All have a slack of `least` 1024ths and more.
    pub(super) fn leaving(&self, mu: f64, target: f64, count: usize, least: u16) -> Option<(f64, Vec<Last>)> {
        if mu <= target {
            return Some((0.0, vec![]));
        }
        if count == 0 || mu > 32.0 {
            return None;
        }
        let slacks = || COARSE_SLACKS.iter().filter(|&&slack| slack >= least);
        let ending = slacks().filter_map(|&slack| {
            let left = share(mu, slack.into(), self.beam);
            let wanted = (1.0 - target / mu) / (1.0 - left);
            let share = (wanted * 256.0).ceil();
            let bits = share / 256.0 * (1.0 + f64::from(slack) / 1024.0);
            (share <= 256.0).then(|| (bits + COLUMN_COST_BITS, vec![Last { slack, share: share as u16 }]))
        });
        let going_on = slacks().filter_map(|&slack| {
            let (bits, mut columns) = self.leaving(self.after(mu, Column::Keys(slack)), target, count - 1, least)?;
            columns.insert(0, Last { slack, share: 256 });
            Some((bits + 1.0 + f64::from(slack) / 1024.0 + COLUMN_COST_BITS, columns))
        });
        ending.chain(going_on).min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// A column on a share of the keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Last {
    pub(super) slack: u16,
    pub(super) share: u16,
}

fn slacks() -> impl Iterator<Item = u16> {
    (MIN_SLACK..=MAX_SLACK).step_by(8)
}

/// Slacks tried where the search is exhaustive.
const COARSE_SLACKS: [u16; 16] = [56, 72, 88, 104, 128, 160, 192, 224, 264, 304, 352, 400, 456, 512, 640, 800];

/// The points of the grid, from multiplications alone.
fn grid() -> impl Iterator<Item = f64> {
    (0..POINTS).map(point)
}

fn point(i: usize) -> f64 {
    static GRID: OnceLock<[f64; POINTS]> = OnceLock::new();
    let points = || {
        let mut mu = 0.0625 / GRID_FACTOR;
        std::array::from_fn(|_| {
            mu *= GRID_FACTOR;
            mu
        })
    };
    GRID.get_or_init(points).get(i).copied().unwrap_or(32.0)
}

/// 2^(1/16).
const GRID_FACTOR: f64 = 1.044_273_782_427_413_8;

/// Whether columns on the keys, and on the negatives, were measured for so many negatives per key.
fn measured(mu: f64) -> (bool, bool) {
    let measured = 0.125..=32.0;
    (measured.contains(&mu), mu < 4.0 && measured.contains(&(1.0 / mu)))
}

/// A column, seen from one state.
struct Ahead {
    cost: f64,
    /// The share of keys that go on.
    kept: f64,
    /// The state behind it.
    then: Place,
}

impl Ahead {
    fn bits(&self, then: &[f64]) -> f64 {
        self.cost + self.kept * self.then.at(then)
    }
}

/// A state between the points of the grid.
struct Place {
    mu: f64,
    /// The point below it and the part of the way to the next; none below the grid, where nothing is left but the exact bit.
    between: Option<(usize, f64)>,
}

impl Place {
    fn of(mu: f64) -> Place {
        let place = (log2(mu.max(1e-9)) - FIRST_EXPONENT) * POINTS_PER_OCTAVE;
        let below = (place.max(0.0) as usize).min(POINTS - 2);
        Place { mu, between: (place >= 0.0).then_some((below, (place - below as f64).min(1.0))) }
    }

    /// V there.
    fn at(&self, values: &[f64]) -> f64 {
        let Some((below, part)) = self.between else { return EXACT_BITS * (1.0 + self.mu) };
        // V / (1 + mu) is nearly constant, which V is not.
        let per = |i: usize| values.get(i).map_or(EXACT_BITS, |v| v / (1.0 + point(i)));
        (per(below) * (1.0 - part) + per(below + 1) * part) * (1.0 + self.mu)
    }
}
