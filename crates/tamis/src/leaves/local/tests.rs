#![allow(clippy::unwrap_used)]
use super::*;
use crate::hash::scramble;
use crate::leaves::Work;
use crate::leaves::steered::{BALANCED, FAST, SMALLEST};
use crate::leaves::{Entry, Leaf};

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
    let local = build_on(
        level,
        &digests(0..n),
        &negatives(others),
        params,
        &Work { salt, skip: 0, threads, stop: &|| false },
        &mut out,
    )
    .unwrap();
    out.remove(0);
    (local, out)
}

/// Alone and in a batch, both ways.
fn right(local: &Local, bytes: &[u8], n: u64, others: u64, what: &str) {
    assert_eq!(bytes.len() as u64, local.payload_len(), "{what}");
    let column = ShardedLeaf::of(0, bytes, vec![(local.clone(), 0..bytes.len())]);
    for (asked, is_key) in [(digests(0..n), true), (negatives(others), false)] {
        assert!(asked.iter().all(|&key| local.contains(bytes, key) == is_key), "{what}");
        let mut out = vec![!is_key; asked.len()];
        column.contains_many(bytes, &asked, &mut out);
        assert!(out.iter().all(|&yes| yes == is_key), "{what}, in a batch");
    }
}

/// The function for one key and the batch give the answers of the reference at every level, on bytes that no builder wrote too.
#[test]
fn every_level_gives_the_answers_of_the_reference() {
    let asked: Vec<Digest> = digests(0..3000).into_iter().chain(negatives(6000)).collect();
    for columns in 0..=6 {
        for exact in 1..=2 {
            if columns + exact < 2 {
                continue;
            }
            let params = Params { columns, exact, slack: 100, beam: FAST };
            let (local, mut bytes) = made(Level::detect(), 3000, 12_000, &params, 2);
            for hostile in [false, true] {
                if hostile {
                    bytes.iter_mut().zip(0..).for_each(|(byte, i)| *byte = scramble(i) as u8);
                }
                let right: Vec<bool> = asked.iter().map(|&key| local.contains(&bytes, key)).collect();
                for level in Level::available() {
                    let local = Local { level, ..local.clone() };
                    let leaf = ShardedLeaf::of(0, &bytes, vec![(local, 0..bytes.len())]);
                    let one = leaf.query_fn::<Leaf>();
                    let mut out = vec![false; asked.len()];
                    leaf.contains_many(&bytes, &asked, &mut out);
                    assert!(out == right, "{level:?} {params:?}, in a batch");
                    let leaf = Local::listed(leaf);
                    assert!(
                        asked.iter().zip(&right).all(|(&key, &yes)| one.call(&leaf, key) == yes),
                        "{level:?} {params:?}"
                    );
                }
            }
        }
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

/// However few there are to reject, and however few rows are free.
#[test]
fn unlisted_keys_match_as_often_as_the_leaf_says() {
    let unlisted = digests(1 << 50..(1 << 50) + 200_000);
    for (columns, exact) in [(0, 2), (1, 1), (3, 2), (6, 1)] {
        for others in [1, 10, 1000] {
            for slack in [32, 100, 512] {
                let params = Params { columns, exact, slack, beam: BALANCED };
                let (local, bytes) = made(Level::detect(), 20_000, others, &params, 2);
                let found = unlisted.iter().filter(|&&key| local.contains(&bytes, key)).count() as f64;
                let expected = 2e5 * local.fpr();
                assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{others} {params:?}: {found} of {expected}");
            }
        }
    }
}

/// Unlisted keys pass as often as promised.
#[test]
fn unlisted_keys_pass_as_promised() {
    for columns in [1, 3, 5] {
        let params = Params { columns, exact: 2, slack: 100, beam: BALANCED };
        let (local, bytes) = made(Level::detect(), 30_000, 30_000 << columns, &params, 2);
        let strangers = digests(1 << 50..(1 << 50) + 200_000);
        let passed = strangers.iter().filter(|&&key| local.contains(&bytes, key)).count() as f64;
        let expected = 2e5 * local.fpr();
        assert!(
            (passed - expected).abs() < 5.0 * expected.sqrt() + 0.02 * expected,
            "{columns}: {passed} of {expected}"
        );
    }
}
