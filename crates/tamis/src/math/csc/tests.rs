//! pairs in a table of plain bits -> false sets counted: the formulas against the paper's numbers and against simulation.
#![allow(clippy::unwrap_used)]
use super::*;

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected.abs(), "{found}, expected {expected}");
}

#[test]
fn small_numbers_by_hand() {
    // One key in 100 of 128 sets, one hash: its row is all there is, and nothing is false.
    let z = zeros(128.0, 1, [(100.0, 1.0)]);
    close(z, 28.0 / 128.0, 1e-9);
    assert!(bloom_column(128.0, 1, z, 100.0) < 1e-9);
    close(bloom_column(128.0, 1, z, 0.0), 100.0 / 128.0, 1e-9);
    // A row that fills the table leaves no zero.
    assert_eq!(zeros(64.0, 2, [(64.0, 1.0)]), 0.0);
    assert_eq!((zeros(64.0, 2, []), misses(5.0, 8, [])), (1.0, 1.0));
    // One pair, ten buckets, 7 fingerprints.
    close(1.0 - misses(10.0, 4, [(1.0, 1.0)]), 1.0 / 70.0, 1e-9);
    // Equal rows of one pair: the formula of the plain cuckoo filter, and Theorem 3 as corrected.
    for bits in [4, 8, 12, 16] {
        let rate = 1.0 - misses(1e6, bits, [(1.0, 3.8e6)]);
        close(rate, crate::math::cuckoo::rate(3_800_000, 1_000_000, bits), 0.07);
        close(rate, 1.0 - (1.0 - 0.5f64.powi(bits as i32)).powf(7.6), 0.14);
    }
}

#[test]
fn partitions_share() {
    let rows = Rows { sets: 50, repetitions: 3, partitions: 7 };
    for v in 0..50u32 {
        let apart = (6.0f64 / 7.0).powi(v as i32);
        assert!((rows.shared(f64::from(v)) - (1.0 - apart)).abs() < 1e-12);
        assert!((rows.offsets(f64::from(v)) - 7.0 * (1.0 - apart)).abs() < 1e-11);
        let one = 1.0 - (1.0 - 0.01) * apart;
        close(rows.false_sets(f64::from(v), 0.01), f64::from(50 - v) * one.powi(3), 1e-9);
    }
    let one = Rows { sets: 50, repetitions: 1, partitions: 0 };
    assert_eq!((one.columns(), one.offsets(9.0), one.shared(9.0)), (50, 9.0, 0.0));
    let single = Rows { sets: 50, repetitions: 2, partitions: 1 };
    assert_eq!((single.shared(0.0), single.shared(1.0), single.offsets(9.0)), (0.0, 1.0, 1.0));
}

#[test]
fn logarithms_of_binomials() {
    let (n, mut exact) = (300u32, 0.0);
    for v in 0..=n {
        assert!((log2_choose(f64::from(n), f64::from(v)) - exact).abs() < 1e-6, "{v}");
        exact += (f64::from(n - v) / f64::from(v + 1)).log2();
    }
    close(log2_choose(1e5, 1.0), 1e5f64.log2(), 1e-6);
    for x in [1e-9, 9.9e-4, 1.01e-3, 0.3, 0.999] {
        close(minus_ln(x), -(-x).ln_1p(), 1e-8);
    }
}

/// Random numbers for the simulations: a counter, scrambled.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(n)) >> 64) as u64
    }
    fn sets(&mut self, n: u32, v: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n).collect();
        for i in 0..v as usize {
            let j = i + self.below(u64::from(n) - i as u64) as usize;
            all.swap(i, j);
        }
        all.truncate(v as usize);
        all
    }
}

/// The sum of samples against their expectation: at most five standard errors away, taken from the samples themselves.
#[track_caller]
fn agree(samples: &[f64], expected: f64, what: &str) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    assert!((mean - expected).abs() <= 5.0 * error + 1e-9, "{what}: {mean} +- {error}, the formula says {expected}");
}

/// Keys of the simulations: (sets, keys).
const CENSUS: [(u32, u32); 5] = [(1, 1500), (2, 700), (5, 200), (20, 40), (60, 8)];

fn census(rows: Option<Rows>) -> impl Iterator<Item = (f64, f64)> {
    CENSUS.into_iter().map(move |(v, keys)| (rows.map_or(f64::from(v), |r| r.offsets(f64::from(v))), f64::from(keys)))
}

/// Whole tables, built again: rows in 64-bit words that rotate, as the format has them. One sample per table, so that what the keys of
/// one table have in common counts as one.
fn simulate_bloom(rows: Rows, words: u64, k: usize, tables: usize) {
    let mut dice = Dice(u64::from(rows.repetitions) * 1000 + k as u64);
    let (n, r) = (rows.sets, rows.repetitions as usize);
    let mut strangers = Vec::new();
    let mut present = vec![Vec::new(); CENSUS.len()];
    let place = |(w, s): (u64, u64), column: u32| {
        let column = u64::from(column);
        ((w + column / 64) % words * 64 + (column + s) % 64) as usize
    };
    for _ in 0..tables {
        let columns: Vec<Vec<u32>> = (0..r)
            .map(|_| (0..n).map(|i| if r == 1 { i } else { dice.below(u64::from(rows.partitions)) as u32 }).collect())
            .collect();
        let mut bits = vec![vec![false; words as usize * 64]; r];
        let anchors =
            |dice: &mut Dice| -> Vec<(u64, u64)> { (0..r * k).map(|_| (dice.below(words), dice.below(64))).collect() };
        let mut keys = Vec::new();
        for (group, (v, count)) in CENSUS.into_iter().enumerate() {
            for _ in 0..count {
                let (at, sets) = (anchors(&mut dice), dice.sets(n, v));
                for &set in &sets {
                    for (j, &anchor) in at.iter().enumerate() {
                        bits[j / k][place(anchor, columns[j / k][set as usize])] = true;
                    }
                }
                keys.push((group, at, sets));
            }
        }
        let answers = |at: &[(u64, u64)]| {
            let hit = |set: u32| {
                at.iter().enumerate().all(|(j, &anchor)| bits[j / k][place(anchor, columns[j / k][set as usize])])
            };
            (0..n).filter(|&set| hit(set)).count()
        };
        let mut sums = [0usize; CENSUS.len()];
        for (group, at, sets) in &keys {
            sums[*group] += answers(at) - sets.len();
        }
        for (group, sum) in sums.into_iter().enumerate() {
            present[group].push(sum as f64 / f64::from(CENSUS[group].1));
        }
        let asked = 1000;
        let found: usize = (0..asked).map(|_| answers(&anchors(&mut dice))).sum();
        strangers.push(found as f64 / f64::from(asked));
    }
    let m = words as f64 * 64.0;
    let z = zeros(m, k as u32, census(Some(rows)));
    agree(&strangers, rows.false_sets(0.0, bloom_column(m, k as u32, z, 0.0)), "strangers");
    for (group, (v, _)) in CENSUS.into_iter().enumerate() {
        let v = f64::from(v);
        let expected = rows.false_sets(v, bloom_column(m, k as u32, z, rows.offsets(v)));
        agree(&present[group], expected, &format!("keys of {v} sets"));
    }
}

#[test]
fn bloom_tables_measured() {
    simulate_bloom(Rows { sets: 100, repetitions: 1, partitions: 0 }, 500, 3, 40);
    simulate_bloom(Rows { sets: 70, repetitions: 1, partitions: 0 }, 300, 1, 40);
    simulate_bloom(Rows { sets: 100, repetitions: 3, partitions: 40 }, 250, 2, 60);
    simulate_bloom(Rows { sets: 100, repetitions: 2, partitions: 90 }, 300, 2, 60);
}

/// A cuckoo table answers by fingerprint and pair of buckets alone, wherever the fingerprints lie: a set of both is the table.
fn simulate_cuckoo(rows: Rows, m: u64, bits: u32, tables: usize) {
    use std::collections::HashSet;
    let mut dice = Dice(m + u64::from(bits));
    let (n, r) = (rows.sets, rows.repetitions as usize);
    let mut strangers = Vec::new();
    let mut present = vec![Vec::new(); CENSUS.len()];
    for _ in 0..tables {
        let columns: Vec<Vec<u64>> = (0..r)
            .map(|_| {
                (0..n).map(|i| if r == 1 { u64::from(i) } else { dice.below(u64::from(rows.partitions)) }).collect()
            })
            .collect();
        // Wherever a pair lies, its first bucket is known from its slot.
        let slot = |(p, f): (u64, u64), column: u64| (f, (p + column) % m);
        let anchors = |dice: &mut Dice| -> Vec<(u64, u64)> {
            (0..r).map(|_| (dice.below(m), 1 + dice.below((1 << (bits - 1)) - 1))).collect()
        };
        let mut table = vec![HashSet::new(); r];
        let mut keys = Vec::new();
        for (group, (v, count)) in CENSUS.into_iter().enumerate() {
            for _ in 0..count {
                let (at, sets) = (anchors(&mut dice), dice.sets(n, v));
                for &set in &sets {
                    for t in 0..r {
                        table[t].insert(slot(at[t], columns[t][set as usize]));
                    }
                }
                keys.push((group, at, sets));
            }
        }
        let answers = |at: &[(u64, u64)]| {
            let hit = |set: u32| (0..r).all(|t| table[t].contains(&slot(at[t], columns[t][set as usize])));
            (0..n).filter(|&set| hit(set)).count()
        };
        let mut sums = [0usize; CENSUS.len()];
        for (group, at, sets) in &keys {
            sums[*group] += answers(at) - sets.len();
        }
        for (group, sum) in sums.into_iter().enumerate() {
            present[group].push(sum as f64 / f64::from(CENSUS[group].1));
        }
        let found: usize = (0..1000).map(|_| answers(&anchors(&mut dice))).sum();
        strangers.push(found as f64 / 1000.0);
    }
    // Pairs of one key in one partition are one entry of the answers, though copies in the table.
    let rate = misses(m as f64, bits, census(Some(rows)));
    agree(&strangers, rows.false_sets(0.0, 1.0 - rate), "strangers");
    for (group, (v, _)) in CENSUS.into_iter().enumerate() {
        let v = f64::from(v);
        let expected = rows.false_sets(v, 1.0 - rate);
        agree(&present[group], expected, &format!("keys of {v} sets"));
    }
}

#[test]
fn cuckoo_tables_measured() {
    simulate_cuckoo(Rows { sets: 100, repetitions: 1, partitions: 0 }, 1537, 6, 30);
    simulate_cuckoo(Rows { sets: 100, repetitions: 1, partitions: 0 }, 1600, 9, 30);
    simulate_cuckoo(Rows { sets: 100, repetitions: 3, partitions: 60 }, 1600, 4, 40);
}
