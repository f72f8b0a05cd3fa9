#![allow(clippy::unwrap_used)]
use super::build::build_on;
use super::*;
use crate::hash::scramble;
use crate::leaves::steered::{BALANCED, SMALLEST};

fn digests(range: std::ops::Range<u64>) -> Vec<Digest> {
    let mut digests: Vec<Digest> = range.map(|i| Digest { hi: scramble(i), lo: scramble(!i) }).collect();
    digests.sort_unstable();
    digests
}

fn negatives(count: u64) -> Vec<Digest> {
    digests(1 << 40..(1 << 40) + count)
}

fn made(level: Level, n: u64, others: u64, params: &Params, threads: usize) -> (Local, Vec<u8>) {
    let mut out = vec![7];
    let salt = Salt::new(3);
    let local =
        build_on(level, &digests(0..n), &negatives(others), params, 0, salt, threads, &|| false, &mut out).unwrap();
    out.remove(0);
    (local, out)
}

/// Alone and in a batch, both ways.
fn right(local: &Local, bytes: &[u8], n: u64, others: u64, what: &str) {
    assert_eq!(bytes.len() as u64, local.payload_len(), "{what}");
    let column = Column::of(0, bytes, vec![(local.clone(), 0..bytes.len())]);
    for (asked, is_key) in [(digests(0..n), true), (negatives(others), false)] {
        assert!(asked.iter().all(|&key| local.contains(bytes, key) == is_key), "{what}");
        let mut out = vec![!is_key; asked.len()];
        column.contains_many(bytes, &asked, &mut out);
        assert!(out.iter().all(|&yes| yes == is_key), "{what}, in a batch");
    }
}

#[test]
fn every_listed_element_is_right() {
    let sizes = [
        (0, 10),
        (1, 0),
        (1, 5),
        (2, 30),
        (9, 100),
        (63, 500),
        (64, 64),
        (65, 65),
        (300, 0),
        (1000, 3000),
        (40_000, 90_000),
    ];
    for (n, others) in sizes {
        for columns in 0..=6 {
            for exact in 1..=2 {
                if columns + exact < 2 {
                    continue;
                }
                let params = Params { columns, exact, slack: 100, beam: BALANCED };
                let (local, bytes) = made(Level::detect(), n, others, &params, 2);
                right(&local, &bytes, n, others, &format!("{n} {others} {params:?}"));
            }
        }
    }
}

#[test]
fn every_small_size_is_exact() {
    for n in 0..=300 {
        let params = Params { columns: (n % 5) as u8, exact: 2, slack: (n % 7 * 30) as u16, beam: BALANCED };
        let (local, bytes) = made(Level::detect(), n, 3 * n, &params, 1);
        right(&local, &bytes, n, 3 * n, &format!("{n} {params:?}"));
    }
}

#[test]
fn every_instruction_set_and_any_threads_give_the_same_bytes() {
    for beam in [BALANCED, SMALLEST] {
        let params = Params { columns: 2, exact: 2, slack: 140, beam };
        let (_, bytes) = made(Level::detect(), 70_000, 300_000, &params, 1);
        for level in Level::available() {
            for threads in [1, 2, 7] {
                let (_, again) = made(level, 70_000, 300_000, &params, threads);
                assert!(bytes == again, "{level:?} {threads}");
            }
        }
    }
}

/// Strangers pass as often as promised.
#[test]
fn strangers_pass_as_promised() {
    for columns in [1, 3, 5] {
        let params = Params { columns, exact: 2, slack: 100, beam: BALANCED };
        let (local, bytes) = made(Level::detect(), 30_000, 30_000 << columns, &params, 2);
        let strangers = digests(1 << 50..(1 << 50) + 200_000);
        let passed = strangers.iter().filter(|&&key| local.contains(&bytes, key)).count() as f64;
        let expected = 2e5 * local.rate();
        assert!(
            (passed - expected).abs() < 5.0 * expected.sqrt() + 0.02 * expected,
            "{columns}: {passed} of {expected}"
        );
    }
}

#[test]
#[ignore = "prints sizes and times"]
fn measure() {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let n = number("N", 1_000_000);
    let (lambda, columns, exact) = (number("LAMBDA", 8), number("C", 2), number("E", 2));
    let beam = number("BEAM", 64) as u16;
    for slack in number("FROM", 120)..=number("TO", 120) {
        if (slack - number("FROM", 120)) % number("STEP", 10) != 0 {
            continue;
        }
        let params = Params { columns: columns as u8, exact: exact as u8, slack: slack as u16, beam };
        let start = std::time::Instant::now();
        let (local, bytes) = made(Level::detect(), n, lambda * n, &params, 1);
        let built = start.elapsed().as_nanos() as f64 / ((lambda + 1) * n) as f64;
        let bits = bytes.len() as f64 * 8.0 / n as f64;
        let bound = crate::math::bounds::f(0.0, lambda as f64);
        let rest = (bytes.len() as u64 - local.rest_at) as f64 * 8.0 / n as f64;
        let steered = !(u64::MAX << (8 * local.steered)) & 0x0101_0101_0101_0101;
        let passes = |key: &&Digest| {
            let place = local.place(**key);
            macro_rules! run {
                ($columns:literal) => {
                    Octets::<$columns>::parities(&bytes, Octets::<$columns>::at(&local, place), place)
                };
            }
            with_columns!(local.columns(), run) & steered == 0
        };
        let left = negatives(lambda * n).iter().filter(passes).count() as f64 / n as f64;
        let of = bits / bound;
        print!(
            "slack {slack}: left {left:.4}, {bits:.4} bits, {of:.4} of the bound, rest {rest:.4}, built {built:.0} ns;"
        );
        if number("ASK", 1) == 0 {
            println!();
            continue;
        }
        times(&local, &bytes, n, lambda);
    }
}

fn times(local: &Local, bytes: &[u8], n: u64, lambda: u64) {
    let column = Column::of(0, bytes, vec![(local.clone(), 0..bytes.len())]);
    struct Asks;
    impl crate::leaves::Find<Column<Local>, Local> for Asks {
        fn find(column: &Column<Local>) -> Option<&Column<Local>> {
            Some(column)
        }
    }
    let ask = column.ask::<Column<Local>, Asks, crate::leaves::Whole>();
    for (name, mut asked) in [("members", digests(0..n)), ("negatives", negatives(lambda * n))] {
        asked.sort_unstable_by_key(|key| key.lo);
        asked.truncate(1_000_000);
        // The best of each short piece: whoever shares the processor is in few of them.
        const PIECE: usize = 1 << 14;
        let mut out = vec![false; asked.len()];
        let mut best = vec![[f64::MAX; 2]; asked.len().div_ceil(PIECE)];
        for _ in 0..9 {
            for ((asked, out), best) in asked.chunks(PIECE).zip(out.chunks_mut(PIECE)).zip(&mut best) {
                let start = std::time::Instant::now();
                let yes = asked.iter().filter(|&&key| ask.call(&column, key)).count();
                best[0] = best[0].min(start.elapsed().as_nanos() as f64);
                let start = std::time::Instant::now();
                for (keys, out) in asked.chunks(256).zip(out.chunks_mut(256)) {
                    column.contains_many(bytes, keys, out);
                }
                best[1] = best[1].min(start.elapsed().as_nanos() as f64);
                assert_eq!(yes, out.iter().filter(|yes| **yes).count());
            }
        }
        let [alone, batch] = [0, 1].map(|i| best.iter().map(|best| best[i]).sum::<f64>() / asked.len() as f64);
        print!(" {name} loop {alone:.1} batch {batch:.1} ns;");
    }
    println!();
}
