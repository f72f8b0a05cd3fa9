//! figures 2 and 4: how full filters of one size are, and what repetitions gain by the formula.

use tamis::internals::math::csc::{Rows, zeros};

use super::Options;
use super::grid::Grid;
use super::methods::{REPETITIONS, SETS_EACH};
use crate::many::bigsi::PerSet;
use crate::many::rambo::Rambo;
use crate::many::{Load, PROBES};

/// The shares of ones in the filters of BIGSI and RAMBO.
pub(super) fn figure2(load: &Load, options: &Options) -> Grid {
    let bits = options.rcv1_bits();
    let shares = [0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0];
    let head = format!("Figure 2, how full filters are: {}, {} bits in all.", load.describe(), bits);
    let columns = std::iter::once("% of the filters are fuller".into()).chain(shares.map(|share| format!("{share} %")));
    let mut grid = Grid::new(head, columns);
    let mut text = String::new();
    let mut add = |name: String, mut loads: Vec<f64>| {
        loads.sort_by(|a, b| b.total_cmp(a));
        let share =
            |wanted: fn(f64) -> bool| loads.iter().filter(|&&load| wanted(load)).count() as f64 / loads.len() as f64;
        let quantile = |share: f64| loads[((loads.len() - 1) as f64 * share / 100.0).round() as usize];
        let [over, under] = [share(|load| load > 0.2), share(|load| load < 0.1)].map(|share| 100.0 * share);
        text += &format!("{name}: {over:.1} % over .2, {under:.1} % under .1. ");
        grid.full(name, shares.map(quantile));
    };
    add("BIGSI".into(), PerSet::filters(load, bits).loads());
    let b = load.sets.div_ceil(SETS_EACH);
    let rambo = Rambo::filters(load, bits, b, REPETITIONS as usize);
    add(format!("RAMBO, r = {REPETITIONS}, b = n/{SETS_EACH}"), rambo.loads());
    let full = 1.0 - zeros(bits as f64, PROBES as u32, [(1.0, load.pairs() as f64)]);
    grid.full("CSC-BF, r = 1 (formula)", [full; 13]);
    grid.note(format!(
        "The share of ones, of the fullest filter first. {text}The paper, on RCV1-X: a tenth of BIGSI's filters over \
         .2, some over .9, more than 2,000 of 2,456 (81 %) under .1; RAMBO's skewed too."
    ))
}

/// The rate of a Bloom filter of `m` bits that holds so many pairs (\[CSC\], equation 1).
pub(super) fn bloom_rate(m: f64, pairs: f64) -> f64 {
    let k = PROBES as f64;
    (-(k * pairs * (-1.0 / m).ln_1p()).exp_m1()).powf(k)
}

/// By what factor repetitions lower the rate for a key of `v` sets at the same size (\[CSC\], equation 9). The table without
/// them has `r m` bits.
fn gain(m: f64, pairs: f64, repetitions: u32, partitions: u32, v: f64) -> f64 {
    let rows = Rows { sets: u32::MAX, repetitions, partitions };
    bloom_rate(f64::from(repetitions) * m, pairs) / rows.reported(v, bloom_rate(m, pairs))
}

pub(super) fn figure4() -> Vec<Grid> {
    let (m, pairs) = (4e7, 3_708_886.0);
    let repetitions = 1..=5;
    let columns =
        |first: &str| std::iter::once(first.to_string()).chain(repetitions.clone().map(|r| format!("r = {r}")));
    let gains = |b: u32, v: f64| repetitions.clone().map(move |r| gain(m, pairs, r, b, v));
    let head =
        "Figure 4, by how much repetitions lower the rate at equal size: k = 3, 3,708,886 pairs, m = 4e7 bits each";
    let mut by_v = Grid::new(format!("{head}, b = 120."), columns("sets of the key"));
    for v in [1, 2, 4, 8, 16] {
        by_v.full(format!("{v}"), gains(120, f64::from(v)));
    }
    let mut by_b = Grid::new(format!("{head}, keys of one set."), columns("partitions"));
    for b in [30, 60, 120, 240, 480] {
        by_b.full(format!("{b}"), gains(b, 1.0));
    }
    vec![
        by_v.note("The paper: 2.3 at r = 2 and 342.3 at r = 4, for keys of two sets."),
        by_b.note("The paper: 2.2 times more at b = 240 than at b = 120, r = 4."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the text of the paper names.
    #[test]
    fn gains_of_the_paper() {
        let gain = |r, b, v| gain(4e7, 3_708_886.0, r, b, v);
        assert!((gain(2, 120, 2.0) - 2.3).abs() < 0.05, "{}", gain(2, 120, 2.0));
        assert!((gain(4, 120, 2.0) - 342.3).abs() < 1.0, "{}", gain(4, 120, 2.0));
        let ratio = gain(4, 240, 1.0) / gain(4, 120, 1.0);
        assert!((ratio - 2.2).abs() < 0.05, "{ratio}");
        assert!(gain(4, 120, 60.0) < 1.0, "many sets: repetitions lose");
        // One pair and three hashes in 64 bits; none.
        assert!((bloom_rate(64.0, 1.0) - (1.0 - (63.0f64 / 64.0).powi(3)).powi(3)).abs() < 1e-12);
        assert_eq!(bloom_rate(64.0, 0.0), 0.0);
    }
}
