//! formulas of \[Stacked\] -> table 2 and figure 2.

use std::hint::black_box;

use serde::Serialize;
use tamis::internals::Shape;
use tamis::internals::math::stack::{self, Limits, Size, Stack};
use tamis_bench::measure;
use tamis_bench::table::{Table, number};

/// Keys and negatives of the paper; formulas cost the same for any number.
const KEYS: u64 = 1_000_000;
const NEGATIVES: u64 = 100 * KEYS;

/// Table 2 at one epsilon.
#[derive(Serialize)]
pub(super) struct Search {
    epsilon: f64,
    cells: [Cell; 4],
}

/// One search for the best stack.
#[derive(Serialize)]
struct Cell {
    efpr: f64,
    layers: usize,
    known_per_key: f64,
    seconds: f64,
    /// EFPR and seconds of the paper.
    paper: Option<(f64, f64)>,
}

/// What the paper printed: epsilon, then (EFPR, seconds) of Bloom with fixed and with varied rates, and of cuckoo.
const PRINTED: [(f64, [(f64, f64); 3]); 4] = [
    (1e-2, [(0.00175, 775e-6), (0.00175, 47e-3), (0.00203, 12e-3)]),
    (1e-3, [(0.00173, 781e-6), (0.00173, 328e-3), (0.00190, 13e-3)]),
    (1e-4, [(0.00172, 1.01e-3), (0.00172, 2.9), (0.00184, 44e-3)]),
    (1e-5, [(0.00172, 3.7e-3), (0.00172, 26.7), (0.00184, 367e-3)]),
];

type Optimiser = fn(Size, u64, &Shape, &Limits) -> Option<Stack>;

/// Runs the searches of table 2. Cuckoo filters twice, with sorted buckets and without: the paper's numbers lie between.
pub(super) fn table2(rounds: usize) -> Result<Vec<Search>, String> {
    let shape = Shape::zipf(1.0, NEGATIVES, NEGATIVES / 2).map_err(|e| e.to_string())?;
    let searches: [(Optimiser, Size); 4] = [
        (stack::fixed, Size::BLOOM),
        (stack::varied, Size::BLOOM),
        (stack::integer, Size::CUCKOO_SEMI_SORTED),
        (stack::integer, Size::CUCKOO),
    ];
    let cell = |epsilon: f64, (search, size): (Optimiser, Size), paper: Option<(f64, f64)>| -> Result<_, String> {
        let limits = Limits { epsilon, ..Limits::bits(10.0) };
        let mut found = None;
        let timed = |_| {
            let (stack, time) = measure::cpu(|| search(size, KEYS, black_box(&shape), &limits));
            found = stack;
            time.as_secs_f64()
        };
        let seconds = measure::median((0..rounds.max(1)).map(timed).collect::<Vec<_>>()).unwrap_or(0.0);
        let stack = found.ok_or("no stack of ten bits per key was found")?;
        Ok(Cell {
            efpr: stack.efpr,
            layers: stack.alphas.len(),
            known_per_key: stack.known as f64 / KEYS as f64,
            seconds,
            paper,
        })
    };
    let row = |&(epsilon, printed): &(f64, [(f64, f64); 3])| {
        let mut cells = Vec::new();
        for (i, search) in searches.into_iter().enumerate() {
            cells.push(cell(epsilon, search, printed.get(i).copied())?);
        }
        let cells = cells.try_into().map_err(|_| "four searches".to_string())?;
        Ok(Search { epsilon, cells })
    };
    PRINTED.iter().map(row).collect()
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

pub(super) fn table2_table(searches: &[Search]) -> Table {
    let printed = |paper: Option<String>| paper.map_or(String::new(), |paper| format!(" ({paper})"));
    let mut columns = Table::of(searches).text("epsilon", |search| format!("{:.0e}", search.epsilon));
    for (i, name) in ["Bloom, fixed", "Bloom, varied", "cuckoo, c = 2", "cuckoo, c = 3"].into_iter().enumerate() {
        columns = columns.texts([&format!("{name}: EFPR"), "time", "layers, known/key"], |search| {
            let cell = &search.cells[i];
            [
                format!("{:.5}{}", cell.efpr, printed(cell.paper.map(|(efpr, _)| format!("{efpr:.5}")))),
                time(cell.seconds) + &printed(cell.paper.map(|(_, seconds)| time(seconds))),
                format!("{}, {:.1}", cell.layers, cell.known_per_key),
            ]
        });
    }
    columns.table(
        "Table 2: searches for the best stack of 10 bits per key; Zipf 1.0, 10^6 keys, 10^8 negatives, the heavier \
         half known; in brackets the paper's.",
        "EFPR by the formulas, processor time of one thread, without reading the negatives. Our searches never stop \
         further than a hundredth from the best, so a large epsilon changes little. Cuckoo filters: (log2(1/rate) + c) \
         / 0.95 bits per key, c = 2 with sorted buckets and 3 without; the paper does not say which it has. Its \
         0.00184 is that of a c between 2.3 and 2.4.",
    )
}

/// A point of figure 2: known negatives per key, and a number for every rate or every psi.
#[derive(Serialize)]
pub(super) struct Line {
    /// Of figures 2a and 2b, or of 2c.
    figure: &'static str,
    known_per_key: f64,
    values: Vec<Option<f64>>,
}

#[derive(Serialize)]
pub(super) struct Figure2 {
    /// Rates of figures 2a and 2b, and the least psi with which a stack is smaller than one filter.
    rates: Vec<f64>,
    least_psi: Vec<Line>,
    /// Shares psi of figure 2c, and the bits per key that a stack saves at a rate of 1 %.
    psis: Vec<f64>,
    saved: Vec<Line>,
}

/// The most known negatives per key for which a stack reaches `alpha` in fewer bits than one filter, if they carry a
/// share `psi` of the queries (\[Stacked\], Theorem 3); below 0 where there is none.
///
/// `log2(1 / (1 - k)) / (log2((1 - k) / alpha) + c) (1 - k - alpha) / alpha - 1` for the best k up to `psi`: layers of
/// rate `alpha / (1 - k)` against one of rate `alpha`. The paper has natural logarithms, right for c = 0 alone: c counts
/// bits.
fn most_known(size: Size, alpha: f64, psi: f64) -> f64 {
    let at = |k: f64| {
        let layer = ((1.0 - k) / alpha).log2() + size.c;
        -(1.0 - k).log2() / layer * (1.0 - k - alpha) / alpha - 1.0
    };
    // Beyond 1 - alpha layers would let everything pass.
    let most = psi.min(1.0 - alpha * (1.0 + 1e-9)).max(0.0);
    let mut best = -1.0f64;
    // One maximum: a grid, then the two cells around it.
    let (mut low, mut high) = (0.0, most);
    for _ in 0..12 {
        let width = (high - low) / 16.0;
        let (mut top, mut here) = (low, f64::NEG_INFINITY);
        for i in 0..=16 {
            let k = if i == 16 { high } else { low + f64::from(i) * width };
            let value = at(k);
            if value > here {
                (top, here) = (k, value);
            }
        }
        best = best.max(here);
        (low, high) = ((top - width).max(low), (top + width).min(high));
    }
    best
}

/// Bits per key that an endless stack of equal layers saves against one filter of rate `alpha`, where `nu` known
/// negatives per key carry a share `psi` of the queries; 0 where none (\[Stacked\], section 7, Figure 2c).
///
/// The layers may have rates up to `alpha / (1 - psi)`; the smallest stack is there, or at [`stack::best_alpha`] before it.
fn saved(size: Size, alpha: f64, nu: f64, psi: f64) -> f64 {
    let layer = (alpha / (1.0 - psi)).min(stack::best_alpha(size, nu)).min(1.0 - 1e-9);
    (size.bits(alpha) - stack::endless_bits(size, nu, layer)).max(0.0)
}

/// The least psi for which Theorem 3 promises a smaller stack.
fn least_psi(alpha: f64, known_per_key: f64) -> Option<f64> {
    let enough = |psi: f64| most_known(Size::BLOOM, alpha, psi) >= known_per_key;
    let (mut low, mut high) = (0.0, 1.0);
    if !enough(high) {
        return None;
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Evaluates Theorem 3 and the saving of section 7.
pub(super) fn figure2() -> Figure2 {
    let rates = vec![0.05, 0.03, 0.01, 0.003, 0.001, 0.0001];
    let psis = vec![0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
    let line = |figure, known_per_key: f64, of: &dyn Fn(f64) -> Option<f64>, at: &[f64]| Line {
        figure,
        known_per_key,
        values: at.iter().map(|&x| of(x)).collect(),
    };
    let least = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0];
    let saving = [0.1, 0.5, 1.0, 5.0, 10.0, 50.0];
    let saved = |nu: f64| move |psi| Some(saved(Size::BLOOM, 0.01, nu, psi));
    Figure2 {
        least_psi: least.iter().map(|&nu| line("2ab", nu, &|alpha| least_psi(alpha, nu), &rates)).collect(),
        saved: saving.iter().map(|&nu| line("2c", nu, &saved(nu), &psis)).collect(),
        rates,
        psis,
    }
}

/// The lines of a part of figure 2, at some values of what is varied.
fn lines(lines: &[Line], (what, at): (&str, &[f64]), digits: usize, head: &str, note: &str) -> Table {
    Table::of(lines)
        .text("known negatives per key", |line| line.known_per_key)
        .texts(at.iter().map(|x| format!("{what} {x}")), |line| {
            let value = |value: &Option<f64>| value.map_or("never".into(), |value| number(value, digits));
            line.values.iter().map(value).collect::<Vec<_>>()
        })
        .table(head, note)
}

pub(super) fn figure2_tables(figure: &Figure2) -> [Table; 2] {
    let least = lines(
        &figure.least_psi,
        ("EFPR", &figure.rates),
        4,
        "Figures 2a and 2b: the least share psi of queries on the known negatives with which a stacked Bloom filter is \
         certainly smaller than one Bloom filter (Theorem 3).",
        "The paper: at 0.05, half as many negatives as keys need 25 % of the queries; at 0.01, as many need 7 % (the \
         theorem, for layers of one rate, asks for 9.6 %; layers of their own rates do with 7 %).",
    );
    let saved = lines(
        &figure.saved,
        ("psi", &figure.psis),
        2,
        "Figure 2c: bits per key that a stacked Bloom filter saves at an EFPR of 0.01 (of 9.585).",
        "The paper: from 0 up to 7 bits, and then no more even as psi grows.",
    );
    [least, saved]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::f64::consts::LN_2;

    #[test]
    fn theorem_3_is_the_comparison() {
        for size in [Size::BLOOM, Size::CUCKOO] {
            for (alpha, psi) in [(0.05, 0.25), (0.03, 0.4), (0.01, 0.1), (0.001, 0.02), (0.01, 0.9)] {
                let most = most_known(size, alpha, psi);
                // A cuckoo filter of 5 % is too small to gain.
                if most <= 0.0 {
                    assert!(size == Size::CUCKOO && alpha > 0.02 && saved(size, alpha, 0.0, psi) == 0.0);
                    continue;
                }
                // At the border the two sizes meet, for the best layers that the theorem allows.
                assert!(saved(size, alpha, most * 0.999, psi) > 0.0, "{size:?} {alpha} {psi}");
                assert!(saved(size, alpha, most * 1.001, psi) == 0.0, "{size:?} {alpha} {psi}");
            }
        }
        // [Stacked], section 7. At 5 %: 25 % of the queries on half as many values as keys.
        assert!((most_known(Size::BLOOM, 0.05, 0.25) - 0.5).abs() < 0.02);
        // At 1 % and as many values as keys the text says 7 %. The theorem, which is for equal layers, asks for 9.6 %; layers of
        // their own rates do it with 7 %.
        let seven = Shape::new([(1.0, 1_000_000)], 0.93).unwrap();
        let stack = stack::varied(Size::BLOOM, 1_000_000, &seven, &Limits::rate(0.01)).unwrap();
        assert!(stack.bits < Size::BLOOM.bits(0.01) - 0.01, "{stack:?}");
        assert!(most_known(Size::BLOOM, 0.01, 0.095) < 1.0 && most_known(Size::BLOOM, 0.01, 0.097) > 1.0);
        assert!(most_known(Size::BLOOM, 0.01, 0.0) < 0.0);
    }

    #[test]
    fn space_saved_grows_to_a_plateau() {
        // Figure 2c: nothing at first, then more than linear, then flat where the smallest stack is reached.
        let at = |psi: f64| saved(Size::BLOOM, 0.01, 2.0, psi);
        assert_eq!(at(0.05), 0.0, "{:?}", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99].map(at));
        assert!(
            at(0.3) > 0.0 && at(0.5) - at(0.3) > at(0.3) - at(0.1),
            "{:?}",
            [0.1, 0.3, 0.5, 0.7, 0.9, 0.99].map(at)
        );
        assert!(at(0.99) < 7.0 && (at(0.99) - at(0.999)).abs() < 1e-9);
    }

    /// What the text of the paper says of its figures.
    #[test]
    fn figure_2_has_the_numbers_of_the_text() {
        let figure = figure2();
        let at = |lines: &[Line], nu: f64, i: usize| {
            lines.iter().find(|line| line.known_per_key == nu).unwrap().values[i].unwrap()
        };
        assert!((at(&figure.least_psi, 0.5, 0) - 0.25).abs() < 0.01);
        // The text has 7 % for as many negatives as keys; the theorem, for layers of one rate, asks for more.
        assert!((at(&figure.least_psi, 1.0, 2) - 0.096).abs() < 0.001);
        let most = at(&figure.saved, 0.1, figure.psis.len() - 1);
        // With so few negatives layers take the less the higher their rate a, down to (1 + nu a) log2(1 / a) / ((1 - a) ln 2) at a = 1.
        let (alone, least) = (100f64.log2() / LN_2, 1.1 / (LN_2 * LN_2));
        assert!((most - (alone - least)).abs() < 1e-3, "{most}, {alone} less {least}");
        assert_eq!(figure2_tables(&figure).map(|table| table.rows.len()), [8, 6]);
    }

    #[test]
    fn table_2_has_the_rates_of_the_paper() {
        for search in table2(1).unwrap() {
            let [fixed, varied, sorted, cuckoo] = &search.cells;
            // The finest search of the paper found 0.00172; ours may be better, and is at most 2 % worse.
            assert!((0.00165..0.00176).contains(&fixed.efpr), "{}", fixed.efpr);
            assert!(varied.efpr <= fixed.efpr * 1.0001, "{}", varied.efpr);
            // Cuckoo filters: neither size is the paper's. Its best rate is that of a size between them, as narrow as c = 2.3 to 2.4.
            assert!((0.00113..0.00115).contains(&sorted.efpr) && (0.00294..0.00298).contains(&cuckoo.efpr));
        }
        let shape = Shape::zipf(1.0, NEGATIVES, NEGATIVES / 2).unwrap();
        let best = |c: f64| {
            let size = Size { c, ..Size::CUCKOO };
            stack::integer(size, KEYS, &shape, &Limits { epsilon: 1e-5, ..Limits::bits(10.0) }).unwrap().efpr
        };
        let paper = PRINTED[3].1[2].0;
        let [below, above] = [2.3, 2.4].map(best);
        assert!(below < paper && paper < above && above - below < 0.0004, "{below}, {paper}, {above}");
    }
}
