//! a share of the excluded keys that may match, with two stages -> members, rates, sizes, weights.

use tamis::internals::Lack;
use tamis::{Base, BuildError, Error, Filter, FilterBuilder, IntegratedVariant, Kind, Limits};

use super::{ask_many, integers};

const BASES: [Base; 3] = [Base::Ribbon, Base::Fuse, Base::Fuse4];

fn listed(n: u64, t: u64, base: Base) -> FilterBuilder<'static> {
    tamis::build(integers(n, 1)).exclude(integers(t, 2)).kind(Kind::Chained(base)).threads(1)
}

/// How many of the first `t` integers of seed 2 match; all members do.
#[track_caller]
fn passing(filter: &Filter, n: u64, t: u64) -> u64 {
    let [members, excluded] = [(n, 1), (t, 2)].map(|(n, seed)| integers(n, seed).collect::<Vec<u64>>());
    assert!(!ask_many(filter, &members).contains(&false));
    ask_many(filter, &excluded).iter().filter(|yes| **yes).count() as u64
}

fn bits(filter: &Filter) -> f64 {
    filter.as_bytes().len() as f64 * 8.0 / filter.len() as f64
}

#[test]
fn every_small_size_keeps_its_share() {
    for n in 0..=130 {
        for t in [1, 2, 7, 40, 333, 4 * n + 1] {
            let share = [0.9, 0.5, 0.3, 0.1, 0.01, 1e-9][(n + t) as usize % 6];
            for base in BASES {
                let filter = listed(n, t, base).excluded_fpr(share).finish().unwrap();
                let found = passing(&filter, n, t);
                assert!(found as f64 <= share * t as f64, "{base:?}, {n} keys, {t} excluded, {share}: {found}");
                assert_eq!(filter.excluded_len(), 0);
            }
        }
    }
}

/// As many match as the plan says, within five standard deviations: half of those that are left out. Those are as many as may be, but
/// for what chance is granted; of a coarse share a first stage of one bit may leave fewer.
#[test]
fn the_share_is_used() {
    for (n, t) in [(700, 90_000), (12_000, 150_000), (20_000, 30_000), (5000, 1_000_000)] {
        for share in [0.4, 0.1, 0.03, 0.01, 0.001] {
            for base in BASES {
                let build = || listed(n, t, base).excluded_fpr(share);
                let found = passing(&build().finish().unwrap(), n, t) as f64;
                let plan = build().plan().unwrap();
                let predicted = plan.chosen().unwrap().prediction.as_ref().unwrap().excluded_fpr * t as f64;
                let allowed = share * t as f64;
                // Coins, and how many get there where all may be left out.
                let most = 5.0 * (1.5 * predicted).sqrt() + 1.0;
                let what = format!("{base:?}, {n} keys, {t} excluded, {share}: {found}, {predicted}");
                assert!(found <= allowed && (found - predicted).abs() < most, "{what}");
                // s / 2 + 2 sqrt(s) = allowed
                let left_out = ((4.0 + 2.0 * allowed).sqrt() - 2.0).powi(2).max(allowed);
                assert!(share > 0.25 || (predicted - left_out / 2.0).abs() < 0.03 * predicted + 1.0, "{what}");
            }
        }
    }
}

/// Corollary 4.1 (a) of \[Chained\]: `C (log2(2 e lambda ln 2) - 2 lambda eps)`, or `C log2(1 / eps)` where that is all. Whole bits cost
/// up to .087 more.
#[test]
fn sizes_are_those_of_the_corollary() {
    let n = 40_000;
    for base in BASES {
        let plain = bits(&tamis::build(integers(n, 1)).kind(kind_of(base)).fpr(1.0 / 256.0).finish().unwrap()) / 8.0;
        for (lambda, share) in [(10, 0.03), (16, 0.01), (16, 0.001), (4, 0.05), (30, 0.003), (10, 0.1), (30, 0.05)] {
            let filter = listed(n, lambda * n, base).excluded_fpr(share).finish().unwrap();
            let mu = lambda as f64;
            let two = (2.0 * std::f64::consts::E * mu * std::f64::consts::LN_2).log2() - 2.0 * mu * share;
            let formula = if 2.0 * share * mu * std::f64::consts::LN_2 < 1.0 { two } else { -share.log2() };
            let found = bits(&filter);
            // Tables of few keys have their own overhead, and what chance is granted is not left out.
            let range = 0.985 * plain * formula..plain * (formula + 0.087) + 0.16;
            assert!(range.contains(&found), "{base:?}, {lambda}, {share}: {found}, {formula} x {plain}");
            let exact = bits(&listed(n, lambda * n, base).exact().finish().unwrap());
            assert!(found < exact, "{base:?}, {lambda}, {share}: {found}, exact {exact}");
        }
    }
}

fn kind_of(base: Base) -> Kind {
    match base {
        Base::Fuse => Kind::Fuse,
        Base::Fuse4 => Kind::Fuse4,
        _ => Kind::Ribbon,
    }
}

/// With more keys than excluded keys the sides are exchanged, and a first stage by hand promises the same.
#[test]
fn other_shapes_keep_the_share() {
    for base in BASES {
        for share in [0.5, 0.05] {
            let filter = listed(30_000, 2000, base).excluded_fpr(share).finish().unwrap();
            assert!(passing(&filter, 30_000, 2000) as f64 <= share * 2000.0, "{base:?}, {share}");
            assert!(bits(&filter) < 0.6, "{base:?}, {share}: {}", bits(&filter));
            for first in [0.0, 1.0, 2.5, 9.0] {
                let papers = tamis::Papers::default().first_bits(first);
                let filter = listed(3000, 9000, base).excluded_fpr(share).papers(papers).finish().unwrap();
                assert!(passing(&filter, 3000, 9000) as f64 <= share * 9000.0, "{base:?}, {share}, {first}");
            }
        }
    }
}

/// With fewer excluded keys than members those that may match are not stored: the file is as small as an exact one of the others.
#[test]
fn few_excluded_keys_save_bits_too() {
    for (n, t) in [(40_000, 30_000), (40_000, 10_000), (60_000, 3000)] {
        for share in [0.3, 0.1, 0.03] {
            for kind in [Kind::Auto, Kind::Chained(Base::Ribbon), Kind::Chained(Base::Fuse4)] {
                let build = |t| listed(n, t, Base::Ribbon).kind(kind);
                let bytes = |filter: Filter| filter.as_bytes().len() as f64;
                let (all, others) = (t as f64, (t as f64 * (1.0 - share)) as u64);
                let [exact, fewer] = [t, others].map(|t| bytes(build(t).exact().finish().unwrap()));
                let filter = build(t).excluded_fpr(share).finish().unwrap();
                let found = passing(&filter, n, t) as f64;
                let plan = build(t).excluded_fpr(share).plan().unwrap();
                let predicted = plan.chosen().unwrap().prediction.as_ref().unwrap().excluded_fpr * all;
                let what = format!("{kind:?}, {n} keys, {t} excluded, {share}: {found}, {predicted}");
                assert!(found <= share * all && (found - predicted).abs() < 5.0 * predicted.sqrt(), "{what}");
                let found = bytes(filter);
                assert!(found < 1.02 * fewer + 64.0, "{what}: {found} bytes, {fewer} without what may match");
                // Fuse tables come in steps.
                let steps = kind == Kind::Chained(Base::Fuse4);
                assert!(steps || found < (1.0 - 0.4 * share) * exact, "{what}: {found} bytes, {exact} for all");
            }
        }
    }
}

/// Of few excluded keys the light ones match as well.
#[test]
fn the_lightest_of_few_excluded_keys_match() {
    let (n, t, share) = (20_000, 4000, 0.1);
    let keys: Vec<u64> = integers(t, 2).collect();
    // Every tenth is listed eleven times: half of the weight.
    let weight = |i: u64| if i.is_multiple_of(10) { 11 } else { 1 };
    let all: Vec<u64> = (0..).zip(&keys).flat_map(|(i, &key)| (0..weight(i)).map(move |_| key)).collect();
    for kind in [Kind::Auto, Kind::Chained(Base::Ribbon)] {
        let filter = tamis::build(integers(n, 1)).exclude(all.clone()).kind(kind).excluded_fpr(share).finish().unwrap();
        let answers = ask_many(&filter, &keys);
        let matching = || (0..t).zip(&answers).filter(|(_, yes)| **yes).map(|(i, _)| weight(i));
        let (sum, count): (u64, usize) = (matching().sum(), matching().count());
        assert!(
            sum as f64 <= share * all.len() as f64 && count as f64 > 1.6 * share * t as f64,
            "{kind:?}: {sum}, {count}"
        );
        assert!(matching().all(|weight| weight == 1), "{kind:?}");
    }
}

/// The share is one of weight: what is listed often is stored, and the light ones match.
#[test]
fn a_share_of_the_weight_matches() {
    let (n, t) = (4000, 40_000);
    // The first key has about half of the weight, a tenth of the others five times that of the rest.
    let weight = |i: u64| {
        if i == 0 {
            60_000
        } else if i.is_multiple_of(10) {
            5
        } else {
            1
        }
    };
    let keys: Vec<u64> = integers(t, 2).collect();
    let all: Vec<u64> = (0..).zip(&keys).flat_map(|(i, &key)| (0..weight(i)).map(move |_| key)).collect();
    let sum: u64 = (0..t).map(weight).sum();
    for (seed, share) in [(0, 0.1), (1, 0.1), (2, 0.02), (3, 0.02), (4, 0.3)] {
        for base in BASES {
            let build = |all: Vec<u64>| {
                let build = tamis::build(integers(n, 1)).exclude(all).kind(Kind::Chained(base));
                build.excluded_fpr(share).seed(seed)
            };
            let filter = build(all.clone()).finish().unwrap();
            let answers = ask_many(&filter, &keys);
            let matching: u64 = (0..t).zip(&answers).filter(|(_, yes)| **yes).map(|(i, _)| weight(i)).sum();
            assert!(matching as f64 <= share * sum as f64, "{base:?}, {seed}, {share}: {matching} of {sum}");
            // The share of the keys is larger, where so many of the light ones get that far.
            let rate = answers.iter().filter(|yes| **yes).count() as f64 / t as f64;
            assert!(!answers[0] && (share > 0.05 || rate > 2.0 * share), "{base:?}, {seed}, {share}: {rate}");
            let mut reversed = all.clone();
            reversed.reverse();
            let again = build(reversed).limits(Limits::default().memory(1)).threads(3).finish().unwrap();
            assert!(again.as_bytes() == filter.as_bytes(), "{base:?}, {seed}");
        }
    }
}

/// Shards and partitions keep it together.
#[test]
fn shards_and_partitions_keep_the_share() {
    let (n, t, share) = (40_000, 400_000, 0.02);
    let filter = listed(n, t, Base::Ribbon).excluded_fpr(share).shard_bytes(4096).finish().unwrap();
    assert!(filter.shards() > 4);
    let found = passing(&filter, n, t) as f64;
    assert!(found <= share * t as f64 && found > 0.7 * share * t as f64, "{found}");
    let mut partitions = tamis::stream().kind(Kind::Chained(Base::Fuse)).excluded_fpr(share).partitioned();
    for (name, t) in [("few", 30_000), ("many", 300_000)] {
        integers(3000, 1).for_each(|key| partitions.push(name, key).unwrap());
        integers(t, 2).for_each(|key| partitions.exclude(name, key).unwrap());
    }
    let filter = partitions.finish().unwrap();
    let mut matching = 0;
    for (name, t) in [("few", 30_000), ("many", 300_000)] {
        assert!(integers(3000, 1).all(|key| filter.contains_in(name, key) == Ok(true)));
        matching += integers(t, 2).filter(|&key| filter.contains_in(name, key) == Ok(true)).count();
    }
    assert!(matching as f64 <= share * 330_000.0, "{matching}");
}

/// Other kinds have no layer that may leave keys out.
#[test]
fn other_kinds_have_no_share() {
    for kind in
        [Kind::Cascade(Base::Ribbon), Kind::Integrated(Base::Fuse, IntegratedVariant::One), Kind::Naive(Base::Fuse)]
    {
        let refused = listed(10, 10, Base::Ribbon).excluded_fpr(0.1).kind(kind).finish();
        assert!(matches!(refused, Err(Error::Build(BuildError::Unfit { lacks: Lack::Share, .. }))), "{kind:?}");
    }
}
