//! steered columns by hand and by plan -> shares that pass, weights, sizes.

use tamis::internals::Lack;
use tamis::{BuildError, Effort, Error, FilterBuilder, Kind, Limits, Papers};

use super::{ask_many, integers};

/// The share of the first `t` integers of seed 2 that pass.
fn passing(filter: &tamis::Filter, t: u64) -> f64 {
    let asked: Vec<u64> = integers(t, 2).collect();
    ask_many(filter, &asked).iter().filter(|yes| **yes).count() as f64 / t as f64
}

fn listed(n: u64, t: u64) -> FilterBuilder<'static> {
    tamis::build(integers(n, 1)).exclude(integers(t, 2))
}

#[test]
fn no_more_than_the_allowed_share_passes() {
    for (n, t) in [(300, 3000), (20_000, 200_000), (20_000, 30_000), (5000, 1_000_000), (30_000, 900)] {
        for share in [0.5, 0.3, 0.1, 0.03, 0.01, 0.001] {
            for effort in [Effort::Fast, Effort::Balanced, Effort::Smallest] {
                let filter = listed(n, t).excluded_fpr(share).effort(effort).finish().unwrap();
                let keys: Vec<u64> = integers(n, 1).collect();
                assert!(!ask_many(&filter, &keys).contains(&false));
                let measured = passing(&filter, t);
                // What is expected to pass is aimed at, and chance decides.
                let most = share + 3.0 * (share / t as f64).sqrt();
                assert!(measured <= most, "{n} {t} {share} {effort:?}: {measured}");
                assert_eq!(filter.excluded_len(), 0);
            }
        }
    }
}

/// In a single strip a stretch of rows without a free one would let many pass: none of these seeds may have it.
#[test]
fn a_share_is_kept_by_every_seed() {
    let (n, t, share) = (5000, 50_000, 0.01);
    for seed in 0..12 {
        let filter = listed(n, t).excluded_fpr(share).seed(seed).finish().unwrap();
        assert!(passing(&filter, t) <= share, "seed {seed}: {}", passing(&filter, t));
    }
}

/// Smaller than a filter with that rate, which knows nothing of whom it may let pass, and near the bound.
#[test]
fn an_allowed_share_saves_bits() {
    // A coarse share leaves little to save, and in few strips columns keep more slack: it wants many keys.
    for (n, lambda, share) in [(20_000, 10, 0.03), (270_000, 30, 0.1), (20_000, 30, 0.01), (20_000, 100, 0.01)] {
        let bits = |filter: &tamis::Filter| filter.as_bytes().len() as f64 * 8.0 / n as f64;
        let knowing = bits(&listed(n, lambda * n).excluded_fpr(share).finish().unwrap());
        let plain = bits(&tamis::build(integers(n, 1)).fpr(share).finish().unwrap());
        let bound = tamis::bounds::f(share, lambda as f64);
        assert!(knowing < 0.99 * plain && knowing < 1.12 * bound, "{lambda} {share}: {knowing} {plain} {bound}");
    }
}

/// Negatives that are listed often pass less often.
#[test]
fn light_ones_pass_first() {
    let (n, t) = (20_000, 100_000);
    let heavy = t / 4;
    let negatives: Vec<u64> = integers(t, 2).chain((0..15).flat_map(|_| integers(heavy, 2))).collect();
    let build = |negatives: Vec<u64>| tamis::build(integers(n, 1)).exclude(negatives).excluded_fpr(0.2);
    let filter = build(negatives.clone()).finish().unwrap();
    let all = passing(&filter, t);
    let of_heavy = passing(&filter, heavy);
    assert!(of_heavy < 0.7 * all, "{of_heavy} {all}");
    let mut reversed = negatives;
    reversed.reverse();
    let tiny = Limits::default().memory(1);
    assert!(build(reversed).limits(tiny).threads(3).finish().unwrap().as_bytes() == filter.as_bytes());
}

#[test]
fn columns_by_hand() {
    let (n, t) = (3000, 20_000);
    for slacks in [&[][..], &[0.1], &[0.1, 0.25], &[0.04, 4.0], &[0.06; 8]] {
        for first in [0.0, 1.0, 2.5] {
            let build = listed(n, t)
                .kind(Kind::Steered)
                .papers(Papers::default().steered_columns(slacks).first_bits(first))
                .exact();
            let filter = build.finish().unwrap();
            let steps = slacks.len() + 1 + (first > 0.0) as usize;
            assert_eq!(filter.layers().count(), steps);
            assert!(integers(n, 1).all(|key| filter.contains(key) == Ok(true)));
            assert!(integers(t, 2).all(|key| filter.contains(key) == Ok(false)), "{slacks:?} {first}");
        }
    }
}

/// What is out of range, or has no effect, is rejected: nothing is clamped or ignored.
#[test]
fn columns_that_cannot_be() {
    let steered = || listed(10, 10).kind(Kind::Steered).exact();
    let says = |result: Result<tamis::Filter, Error>| result.unwrap_err().to_string();
    for slack in [0.0, 9.0, f64::NAN] {
        let expected = format!("steered_columns {slack}: out of range; expected 0.03125 to 4");
        assert_eq!(says(steered().papers(Papers::default().steered_columns(&[0.1, slack])).finish()), expected);
    }
    assert_eq!(
        says(steered().papers(Papers::default().steered_columns(&[0.06; 9])).finish()),
        "steered_columns: too many; expected at most 8"
    );
    for bits in [0.5, 33.0, -1.0, f64::NAN] {
        let expected = format!("first_bits {bits}: out of range; expected 1 to 32");
        assert_eq!(says(steered().papers(Papers::default().first_bits(bits)).finish()), expected);
    }
    let chained = || listed(10, 10).kind(Kind::Chained(tamis::Base::Ribbon));
    assert_eq!(
        says(chained().papers(Papers::default().steered_columns(&[0.1])).finish()),
        "steered_columns: no effect; expected kind steered"
    );
    assert_eq!(
        says(chained().papers(Papers::default().delta(0.5)).finish()),
        "delta: no effect; expected kind cascade"
    );
    assert_eq!(says(chained().exact().fpr(0.1).finish()), "exact, fpr: two goals; expected one");
    let cuckoo = tamis::build(0..10u64).kind(Kind::Cuckoo).capacity(20).extra_capacity(0.5);
    assert_eq!(says(cuckoo.finish()), "capacity, extra_capacity: two goals; expected one");
    for capacity in [0, 9, 10_011] {
        for kind in [Kind::Auto, Kind::Cuckoo] {
            let said = says(tamis::build(0..10u64).kind(kind).capacity(capacity).finish());
            assert_eq!(said, format!("capacity {capacity}: out of range; expected 10 to 10010"), "{kind}");
        }
    }
    assert!(tamis::build(0..10u64).kind(Kind::Cuckoo).capacity(10).finish().is_ok());
    assert_eq!(says(chained().workload_fpr(0.1).finish()), "workload_fpr: no effect; expected a workload");
}

#[test]
fn shares_that_cannot_be() {
    for share in [0.0, -1.0, 1.0, 2.0, f64::NAN] {
        let error = listed(10, 10).excluded_fpr(share).finish().unwrap_err();
        assert!(matches!(error, Error::Build(BuildError::Range { option: "excluded_fpr", .. })), "{share}: {error}");
    }
    let cascade = listed(10, 10).excluded_fpr(0.1).kind(Kind::Cascade(tamis::Base::Ribbon)).finish();
    assert!(matches!(cascade, Err(Error::Build(BuildError::Unfit { lacks: Lack::Share, .. }))));
}

/// More than one shard: strips begin anew in each.
#[test]
fn shards_have_strips_of_their_own() {
    let (n, t) = (1_600_000, 3_200_000);
    let filter = listed(n, t).exact().finish().unwrap();
    assert!(filter.shards() > 1);
    assert!(passing(&filter, t) == 0.0);
    let keys: Vec<u64> = integers(n, 1).collect();
    assert!(!ask_many(&filter, &keys).contains(&false));
    let bits = filter.as_bytes().len() as f64 * 8.0 / n as f64;
    assert!(bits < 1.056 * tamis::bounds::f(0.0, 2.0), "{bits}");
}
