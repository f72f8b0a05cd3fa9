#![allow(clippy::unwrap_used)]
use super::*;
use crate::hash::scramble;
use crate::leaves::Work;
use crate::leaves::design::RejectSide;

fn digests(range: std::ops::Range<u64>) -> Vec<Digest> {
    let mut digests: Vec<Digest> = range.map(|i| Digest { hi: scramble(i), lo: scramble(!i) }).collect();
    digests.sort_unstable();
    digests
}

fn column(
    level: Level,
    n: u64,
    others: u64,
    params: &Params,
    threads: usize,
) -> (Steered, Vec<u8>, RejectSide<'static>, Vec<Digest>) {
    let keys = digests(0..n);
    let mut left = RejectSide { digests: digests(1 << 40..(1 << 40) + others).into(), weights: vec![] };
    let mut out = vec![];
    let work = Work { salt: Salt::new(3), skip: 0, threads, stop: &|| false };
    let column = build_on(level, &keys, &mut left, params, &work, &mut out).unwrap();
    (column, out, left, keys)
}

#[test]
fn a_column_knows_its_keys_and_who_is_left() {
    for (n, others) in
        [(0, 10), (1, 0), (1, 5), (2, 30), (9, 100), (63, 500), (64, 64), (65, 65), (1000, 3000), (200_000, 400_000)]
    {
        for share in [WHOLE, 100, 1] {
            let params = Params { slack: 100, beam: BALANCED, share };
            let (column, bytes, left, keys) = column(Level::detect(), n, others, &params, 2);
            assert_eq!(bytes.len() as u64, column.payload_len());
            assert!(keys.iter().all(|&key| column.contains(&bytes, key)), "{n} {others}");
            let mut passing = digests(1 << 40..(1 << 40) + others);
            passing.retain(|&key| column.contains(&bytes, key));
            assert_eq!(left.digests, passing, "{n} {others} {share}");
            assert!(n > 1 || share < WHOLE || left.digests.len() as u64 <= others / 2 + 1);
        }
    }
}

/// The first column has three strips, the others one; the last has weights.
#[test]
fn every_instruction_set_and_any_threads_give_the_same_bytes() {
    for (beam, n, weighed) in
        [(FAST, 180_000, false), (BALANCED, 70_000, false), (SMALLEST, 50_000, false), (BALANCED, 20_000, true)]
    {
        let (keys, others) = (digests(0..n), digests(1 << 40..(1 << 40) + 2 * n));
        let weights: Vec<u32> =
            if weighed { (0..2 * n).map(|i| 1 + scramble(i) as u32 % 40).collect() } else { vec![] };
        let make = |level, threads| {
            let mut left = RejectSide { digests: (&others[..]).into(), weights: weights.clone() };
            let mut out = vec![];
            let work = Work { salt: Salt::new(3), skip: 0, threads, stop: &|| false };
            build_on(level, &keys, &mut left, &Params::new(150, beam), &work, &mut out).unwrap();
            (out, left.digests.into_owned(), left.weights)
        };
        let expected = make(Level::detect(), 1);
        for level in Level::available() {
            for threads in if beam == FAST { &[1, 2, 7][..] } else { &[2] } {
                assert!(make(level, *threads) == expected, "{beam} {level:?} {threads}");
            }
        }
    }
}

/// Weights decide who is refused first, and travel with whom they belong to.
#[test]
fn heavy_ones_are_refused_first() {
    let (keys, all) = (digests(0..20_000), digests(1 << 40..(1 << 40) + 100_000));
    let heavy = |i: usize| i.is_multiple_of(4);
    let weights: Vec<u32> = (0..all.len()).map(|i| if heavy(i) { 100 } else { 1 }).collect();
    let mut left = RejectSide { digests: (&all[..]).into(), weights };
    let params = Params::new(200, BALANCED);
    let work = Work { salt: Salt::new(1), skip: 0, threads: 1, stop: &|| false };
    build_on(Level::detect(), &keys, &mut left, &params, &work, &mut vec![]).unwrap();
    assert_eq!(left.digests.len(), left.weights.len());
    let heavier = left.weights.iter().filter(|&&weight| weight == 100).count();
    assert!(heavier < 9000 && left.digests.len() > 40_000, "{heavier} of {}", left.digests.len());
    for (digest, weight) in left.digests.iter().zip(&left.weights) {
        assert_eq!(heavy(all.binary_search(digest).unwrap()), *weight == 100);
    }
}

/// However few there are to refuse, and however few rows are free.
#[test]
fn unlisted_keys_match_as_often_as_the_column_says() {
    let unlisted = digests(1 << 50..(1 << 50) + 200_000);
    for others in [0, 1, 10, 1000, 20_000] {
        for (slack, beam) in [32, 64, 160, 1024, 4096].into_iter().flat_map(|slack| [(slack, FAST), (slack, BALANCED)])
        {
            let params = Params { slack, beam, share: 200 };
            let (column, bytes, ..) = column(Level::detect(), 20_000, others, &params, 2);
            let found = unlisted.iter().filter(|&&key| column.contains(&bytes, key)).count() as f64 / 2e5;
            let (rate, sigma) = (column.fpr(), (column.fpr() * (1.0 - column.fpr()) / 2e5).sqrt());
            assert!((found - rate).abs() < 5.0 * sigma, "{others} {slack}: {found} of {rate}");
            // Stretches without a free row are rare but where slack is least.
            assert!(slack < 160 || column.surplus == 0, "{others} {slack}: {}", column.surplus);
            assert!(slack > 32 || column.surplus > 0, "{others} {slack}: {}", column.surplus);
        }
    }
}

#[test]
fn a_search_can_be_stopped() {
    let mut left = RejectSide { digests: digests(1000..2000).into(), weights: vec![] };
    let work = Work { salt: Salt::new(1), skip: 0, threads: 1, stop: &|| true };
    let stopped =
        build_on(Level::detect(), &digests(0..100), &mut left, &Params::new(100, BALANCED), &work, &mut vec![]);
    assert!(matches!(stopped, Err(crate::BuildError::Cancelled)));
}

#[test]
fn odd_geometries_are_refused() {
    let decode = |bytes: &[u8]| Steered::decode(&mut Reader::new(bytes, "test"), Salt::new(0));
    assert!(decode(&[0]).is_ok() && decode(&[1, 8, 128, 2, 0, 0]).is_ok());
    assert_eq!(decode(&[1, 8, 128, 2, 0, 128, 128, 128, 4]).unwrap().fpr(), 1.0);
    // No octets, too few, no share, more than all, more skipped than there are shards, more than all match, rows without end.
    for bytes in [
        &[1, 0, 1, 0, 0][..],
        &[1, 7, 1, 0, 0],
        &[1, 8, 0, 0, 0],
        &[1, 8, 129, 2, 0, 0],
        &[1, 8, 1, 26, 0],
        &[1, 8, 1, 25, 0, 0],
        &[1, 8, 128, 2, 0, 129, 128, 128, 4],
    ] {
        assert!(decode(bytes).is_err(), "{bytes:?}");
    }
    assert!(decode(&[255, 255, 255, 255, 31, 255, 255, 255, 255, 31, 1, 0, 0]).is_err());
}
