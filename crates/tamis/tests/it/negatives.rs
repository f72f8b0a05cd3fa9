//! keys and excluded keys -> the laws of filters that know their negatives, for every recipe, by one macro.

use std::collections::HashSet;

use tamis::{
    Base, BuildError, Effort, Error, Filter, FilterBuilder, IntegratedVariant, Kind, Layout, Limits, OnConflict, Papers,
};

use super::{ask_many, integers};

/// Rates that whole and fractional widths reach.
const RATES: [f64; 4] = [0.4, 0.1, 0.01, 1.0 / 4096.0];

/// Gives the whole book to each recipe.
macro_rules! laws {
    ($($name:ident: $kind:expr, $effort:expr $(, $layout:expr)?;)*) => {
        const BOOK: &[Kind] = &[$($kind),*];
        $(mod $name {
            use super::*;

            fn want(build: FilterBuilder<'_>) -> FilterBuilder<'_> {
                build.kind($kind).effort($effort)$(.layout($layout))?
            }

            #[test]
            fn every_small_size_is_exact() {
                const SIZES: [u64; 7] = [0, 1, 2, 7, 100, 333, 1500];
                for n in 0..=300 {
                    for t in [SIZES[n as usize % 7], SIZES[n as usize / 7 % 7], n] {
                        for exact in [true, false] {
                            let build = want(tamis::build(integers(n, 1)).exclude(integers(t, 2))).threads(1);
                            let filter = if exact { build.exact() } else { build }.finish();
                            if exact && n > 0 && t == 0 {
                                assert!(matches!(filter, Err(Error::Build(BuildError::NothingExcluded))), "{n} keys");
                                continue;
                            }
                            let filter = filter.unwrap();
                            right(&filter, n, t, &format!("{n} keys, {t} excluded, exact {exact}"));
                        }
                    }
                }
            }

            #[test]
            fn every_rate_is_kept() {
                for rate in RATES {
                    for (n, t) in [(1, 5000), (700, 300), (700, 90_000), (12_000, 30_000), (30_000, 400)] {
                        let build = tamis::build(integers(n, 1)).exclude(integers(t, 2)).fpr(rate);
                        let filter = want(build).threads(1).finish().unwrap();
                        right(&filter, n, t, &format!("{rate}, {n} keys, {t} excluded"));
                        assert!(filter.fpr() <= rate * 1.0001, "{rate}: {}", filter.fpr());
                        if n >= 700 {
                            measured(&filter, &format!("{rate}, {n} keys, {t} excluded"));
                        }
                    }
                }
            }

            #[test]
            fn exactness_takes_few_bits() {
                for (n, t) in [(20_000u64, 20_000u64), (20_000, 60_000), (20_000, 300_000), (60_000, 3_000)] {
                    let filter = want(tamis::build(integers(n, 1)).exclude(integers(t, 2)).exact()).finish().unwrap();
                    right(&filter, n, t, &format!("exact, {n} keys, {t} excluded"));
                    if n < t {
                        measured(&filter, &format!("exact, {n} keys, {t} excluded"));
                    }
                }
            }

            #[test]
            fn bytes_are_the_filter() {
                for (n, t) in [(0, 10), (10, 0), (500, 2000), (15_000, 40_000)] {
                    let filter = want(tamis::build(integers(n, 1)).exclude(integers(t, 2))).finish().unwrap();
                    filter.verify().unwrap();
                    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
                    std::fs::write(&path, filter.as_bytes()).unwrap();
                    let asked: Vec<u64> = integers(n, 1).chain(integers(t, 2)).chain(integers(3000, 3)).collect();
                    for again in [Filter::open(filter.as_bytes().to_vec()).unwrap(), crate::mapped::filter(&path).unwrap()] {
                        assert_eq!((again.len(), again.fpr()), (n, filter.fpr()));
                        assert_eq!((again.excluded_len(), again.lower_bound()), (filter.excluded_len(), filter.lower_bound()));
                        assert!((again.excluded_len() as f64 / t.max(1) as f64 - 1.0).abs() < 0.04 || again.excluded_len() == t);
                        assert!(ask_many(&again, &asked) == ask_many(&filter, &asked));
                    }
                }
            }

            /// Order, repetition, threads and limits leave no trace, nor does it matter which side comes first.
            #[test]
            fn the_sets_alone_decide_the_bytes() {
                for (n, t) in [(0, 100), (1, 30_000), (300, 50), (300, 40_000), (5000, 90_000)] {
                    let (keys, negatives): (Vec<u64>, Vec<u64>) = (integers(n, 1).collect(), integers(t, 2).collect());
                    for exact in [false, true] {
                        let want = |build: FilterBuilder<'static>| if exact { want(build).exact() } else { want(build) };
                        let first = want(tamis::build(keys.clone()).exclude(negatives.clone())).threads(1).finish().unwrap();
                        let mut others = vec![];
                        let tiny = Limits::default().memory(1);
                        let build = tamis::build(reversed(&keys)).exclude(reversed(&negatives));
                        others.push(want(build).limits(tiny).threads(2).finish().unwrap());
                        let twice = [&negatives[..], &negatives[..t as usize / 2]].concat();
                        others.push(want(tamis::build(keys.clone()).exclude(twice)).threads(2).finish().unwrap());
                        // The negatives first: nothing can be let go.
                        let stream = if exact { tamis::stream().exact() } else { tamis::stream() };
                        let stream = stream.with_excluded().kind($kind).effort($effort)$(.layout($layout))?;
                        let mut collector = stream.start();
                        negatives.iter().for_each(|key| collector.exclude(key).unwrap());
                        keys.iter().for_each(|key| collector.push(key).unwrap());
                        others.push(collector.finish().unwrap());
                        for (i, other) in others.iter().enumerate() {
                            assert!(other.as_bytes() == first.as_bytes(), "{n} keys, {t} excluded, {i}");
                        }
                    }
                }
            }
        })*
    };
}

laws! {
    auto: Kind::Auto, Effort::Balanced;
    auto_fast: Kind::Auto, Effort::Fast;
    auto_smallest: Kind::Auto, Effort::Smallest;
    steered: Kind::Steered, Effort::Balanced;
    chained: Kind::Chained(Base::Ribbon), Effort::Balanced;
    chained_smallest: Kind::Chained(Base::Ribbon), Effort::Smallest;
    chained_fuse: Kind::Chained(Base::Fuse), Effort::Balanced;
    chained_fuse4: Kind::Chained(Base::Fuse4), Effort::Balanced;
    cascade: Kind::Cascade(Base::Ribbon), Effort::Balanced;
    cascade_fuse: Kind::Cascade(Base::Fuse), Effort::Balanced;
    cascade_fuse4: Kind::Cascade(Base::Fuse4), Effort::Balanced;
    cascade_bloom: Kind::Cascade(Base::Bloom), Effort::Balanced;
    integrated: Kind::Integrated(Base::Fuse, IntegratedVariant::One), Effort::Balanced;
    integrated_two: Kind::Integrated(Base::Fuse, IntegratedVariant::Two), Effort::Balanced;
    integrated_hybrid: Kind::Integrated(Base::Fuse, IntegratedVariant::Hybrid), Effort::Balanced;
    integrated_general: Kind::Integrated(Base::Fuse, IntegratedVariant::General), Effort::Balanced;
    integrated_fuse4: Kind::Integrated(Base::Fuse4, IntegratedVariant::Two), Effort::Balanced;
    naive: Kind::Naive(Base::Ribbon), Effort::Balanced;
    naive_fuse: Kind::Naive(Base::Fuse), Effort::Balanced;
    local: Kind::Auto, Effort::Balanced, Layout::Local;
    local_smallest: Kind::Auto, Effort::Smallest, Layout::Local;
}

fn reversed(keys: &[u64]) -> Vec<u64> {
    keys.iter().rev().copied().collect()
}

/// Every key is found and no excluded one, alone and in batches.
fn right(filter: &Filter, n: u64, t: u64, what: &str) {
    let (keys, negatives): (Vec<u64>, Vec<u64>) = (integers(n, 1).collect(), integers(t, 2).collect());
    assert_eq!(filter.len(), n, "{what}");
    assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{what}");
    assert!(negatives.iter().all(|key| filter.contains(key) == Ok(false)), "{what}");
    let both = [keys, negatives].concat();
    let answers = ask_many(filter, &both);
    assert!(answers.iter().enumerate().all(|(i, &yes)| yes == ((i as u64) < n)), "{what}, in a batch");
}

/// Unlisted keys pass as often as the filter says: within five standard deviations, and what the load of a Bloom filter does.
fn measured(filter: &Filter, what: &str) {
    let strangers: Vec<u64> = integers(60_000, 3).collect();
    let passed = ask_many(filter, &strangers).iter().filter(|yes| **yes).count() as f64;
    let expected = 6e4 * filter.fpr();
    let sigma = (expected * (1.0 - filter.fpr())).sqrt();
    assert!(
        (passed - expected).abs() <= 5.0 * sigma + 0.03 * expected + 1.0,
        "{what}: {passed} pass, expected {expected:.0}"
    );
}

/// A new recipe that is not in the book fails here.
#[test]
fn the_book_covers_every_recipe() {
    // Stacks promise nothing about a single key: see expect.rs.
    for (name, kind) in Kind::ALL.iter().filter(|(_, kind)| super::excludes(*kind)) {
        assert!(BOOK.contains(kind), "{name}");
    }
}

/// The bound of exact sets, and how near the recipes come. Sizes are those of whole files.
#[test]
fn sizes_stand_near_the_bound() {
    let (n, lambda) = (100_000u64, 8);
    let bound = tamis::bounds::f(0.0, lambda as f64) * n as f64;
    let size = |kind| {
        let build = tamis::build(integers(n, 1)).exclude(integers(lambda * n, 2)).exact().kind(kind);
        build.finish().unwrap().as_bytes().len() as f64 * 8.0 / bound
    };
    let chained = size(Kind::Chained(Base::Ribbon));
    assert!((1.10..1.13).contains(&chained), "{chained}");
    let fuse = size(Kind::Chained(Base::Fuse));
    assert!((1.2..1.35).contains(&fuse), "{fuse}");
    let cascade = size(Kind::Cascade(Base::Bloom));
    assert!((1.7..2.2).contains(&cascade), "{cascade}");
}

/// The local layout is one leaf, or one after plain bits; it takes a few percent more than the bound.
#[test]
fn the_local_layout_is_one_leaf() {
    let n = 100_000u64;
    for (lambda, leaves, most) in [(1, 1, 1.04), (3, 1, 1.07), (8, 1, 1.07), (200, 2, 1.08)] {
        let build = tamis::build(integers(n, 1)).exclude(integers(lambda * n, 2)).exact().layout(Layout::Local);
        let filter = build.finish().unwrap();
        assert_eq!(filter.layers().count(), leaves, "{lambda}");
        let bound = tamis::bounds::f(0.0, lambda as f64) * n as f64;
        let ratio = filter.as_bytes().len() as f64 * 8.0 / bound;
        assert!((1.0..most).contains(&ratio), "{lambda}: {ratio}");
        right(&filter, n, lambda * n, &format!("local, {lambda}"));
    }
}

#[test]
fn the_local_layout_knows_what_it_cannot_do() {
    let build = || tamis::build(integers(100, 1)).exclude(integers(300, 2)).layout(Layout::Local);
    let text = build().bits_per_key(9.0).finish().unwrap_err().to_string();
    assert!(text.contains("layout local: not possible with bits_per_key"), "{text}");
    let text = build().kind(Kind::Chained(Base::Fuse)).finish().unwrap_err().to_string();
    assert!(text.contains("layout local: not possible with kind"), "{text}");
    // An exact set with far fewer negatives than keys is stored by them, whatever the layout.
    let few =
        |layout| tamis::build(integers(9000, 1)).exclude(integers(300, 2)).exact().layout(layout).finish().unwrap();
    assert!(few(Layout::Local).as_bytes() == few(Layout::Auto).as_bytes());
    // Without excluded keys there is nothing to lay out.
    let plain = |layout| tamis::build(integers(100, 1)).layout(layout).finish().unwrap();
    assert!(plain(Layout::Local).as_bytes() == plain(Layout::Auto).as_bytes());
}

/// Few negatives of many keys are stored instead of the keys.
#[test]
fn the_smaller_side_is_stored() {
    let filter = tamis::build(integers(200_000, 1)).exclude(integers(1000, 2)).exact().finish().unwrap();
    right(&filter, 200_000, 1000, "complement");
    assert!(filter.as_bytes().len() * 8 < 20_000, "{} bytes", filter.as_bytes().len());
    assert!(filter.fpr() > 0.99);
}

/// A filter that matches every key is what nobody asks for: a goal that speaks of excluded keys alone needs some.
#[test]
fn without_excluded_keys_nothing_is_exact() {
    let keys = || tamis::build(integers(5000, 1));
    let stream = || {
        let mut stream = tamis::stream().exact().with_excluded().start();
        integers(50, 1).for_each(|key| stream.push(key).unwrap());
        stream.seal().unwrap()
    };
    let mut labelled = tamis::stream().exact().partitioned();
    labelled.push("a", 1u64).unwrap();
    let all = || keys().exclude(integers(5000, 1)).on_conflict(OnConflict::Keep).exact();
    let hasher = tamis::Hasher::seeded(0);
    let digests: Vec<_> = (0..9u8).map(|key| hasher.bytes(&[key])).collect();
    let refused = [
        keys().exact().finish().map(drop),
        keys().excluded_fpr(0.1).finish().map(drop),
        keys().exclude([0u64; 0]).exact().finish().map(drop),
        keys().exclude([0u64; 0]).excluded_fpr(0.1).finish().map(drop),
        keys().exact().kind(Kind::Fuse).finish().map(drop),
        keys().exact().plan().map(drop),
        keys().exact().workload(integers(9, 1).map(|key| (key, 1.0))).finish().map(drop),
        all().finish().map(drop),
        stream().finish().map(drop),
        stream().plan().map(drop),
        labelled.finish().map(drop),
        tamis::build_digests(digests, hasher, tamis::KeyType::Bytes).exact().finish().map(drop),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(Error::Build(BuildError::NothingExcluded))), "{i}: {refused:?}");
    }
    // Expected queries are listed keys too.
    let filter = keys().exact().workload(integers(900, 2).map(|key| (key, 1.0))).finish().unwrap();
    right(&filter, 5000, 900, "expected");
    let nothing = tamis::build([0u64; 0]).exclude(integers(5000, 2)).exact().finish().unwrap();
    right(&nothing, 0, 5000, "no keys");
    assert_eq!(nothing.fpr(), 0.0);
}

/// To be right about the listed keys alone takes no more than to keep a rate for others too. What passes a column is chance: a few bytes.
#[test]
fn exact_is_the_smallest() {
    for n in [1, 10, 60, 100, 200, 256, 400, 600, 1000, 1500, 2000, 3000] {
        for tenths in [1, 3, 5, 10, 20, 100, 200, 500, 1500] {
            let build = || tamis::build(integers(n, 1)).exclude(integers((n * tenths).div_ceil(10), 2));
            let exact = build().exact().finish().unwrap().as_bytes().len();
            for rate in [0.5, 0.1, 0.03, 0.01, 0.001] {
                let rated = build().fpr(rate).finish().unwrap().as_bytes().len();
                assert!(exact <= rated + rated / 256 + 2, "{n}, {tenths} tenths, {rate}: {exact} bytes, {rated}");
            }
        }
    }
}

/// The stream of negatives is far longer than what is kept of it.
#[test]
fn a_key_among_ten_million_negatives() {
    for (keys, t) in [(1, 10_000_000), (300, 2_000_000)] {
        let build = tamis::build(integers(keys, 1)).exclude(integers(t, 2)).fpr(1.0 / 256.0);
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // So little disk that the negatives cannot be on it, and so little memory that they cannot be there.
        let limits = Limits::default().memory(4 << 20).disk(1 << 20);
        let report = build.limits(limits).finish_to(&path).unwrap();
        assert!(report.stats.estimated);
        assert!((report.stats.negatives as f64 / t as f64 - 1.0).abs() < 0.04, "{}", report.stats.negatives);
        let filter = crate::mapped::filter(&path).unwrap();
        right(&filter, keys, t, "ten million");
        assert!(report.bytes < 1000 + 4 * keys, "{} bytes", report.bytes);
    }
}

fn conflict(error: Error) -> (u64, Vec<(u64, u64)>) {
    match error {
        Error::Build(BuildError::Conflict { count, first }) => (count, first),
        other => panic!("{other}"),
    }
}

#[test]
fn a_key_on_both_sides_is_named_or_settled() {
    for (n, t) in [(100u64, 1000u64), (20, 200_000)] {
        let (keys, negatives): (Vec<u64>, Vec<u64>) = (integers(n, 1).collect(), integers(t, 2).collect());
        // Keys 3, 7 and 11 are negatives 40, 41 and 42.
        let mut both = negatives.clone();
        (both[40], both[41], both[42]) = (keys[3], keys[7], keys[11]);
        let places = vec![(3, 40), (7, 41), (11, 42)];
        for exact in [false, true] {
            let build = || {
                let build = tamis::build(keys.clone()).exclude(both.clone());
                if exact { build.exact() } else { build }
            };
            assert_eq!(conflict(build().finish().unwrap_err()), (3, places.clone()));
            let mut first = tamis::stream().with_excluded().start();
            both.iter().for_each(|key| first.exclude(key).unwrap());
            keys.iter().for_each(|key| first.push(key).unwrap());
            assert_eq!(conflict(first.finish().unwrap_err()), (3, places.clone()));

            let wanted: HashSet<u64> = keys.iter().copied().collect();
            let keep = build().on_conflict(OnConflict::Keep).finish().unwrap();
            assert_eq!(keep.len(), n);
            assert!(keep.excluded_len() == t - 3 || t > 16_384);
            assert!(keys.iter().all(|key| keep.contains(key) == Ok(true)));
            assert!(both.iter().all(|key| keep.contains(key) == Ok(wanted.contains(key))));
            let drop = build().on_conflict(OnConflict::Drop).finish().unwrap();
            assert_eq!(drop.len(), n - 3);
            assert!(both.iter().all(|key| drop.contains(key) == Ok(false)));
            let left = keys.iter().enumerate().filter(|(i, _)| ![3, 7, 11].contains(i));
            assert!(left.into_iter().all(|(_, key)| drop.contains(key) == Ok(true)));
        }
    }
    let all = tamis::build(0..50u64).exclude(0..50u64).finish().unwrap_err();
    assert!(all.to_string().starts_with("exclude: 50 keys are also members (key 0 = excluded key 0, key 1 ="), "{all}");
    assert!(all.to_string().ends_with("; expected none; use on_conflict, or secret if the keys differ"), "{all}");
}

/// Digests that were made before take the same way.
#[test]
fn digests_are_excluded_too() {
    let hasher = tamis::Hasher::seeded(7);
    let digests = |n: u64, seed: u64| integers(n, seed).map(|key| hasher.integer(key)).collect::<Vec<_>>();
    for (n, t) in [(0, 3), (500, 0), (500, 9000), (2000, 200_000)] {
        let build = tamis::build_digests(digests(n, 1), hasher.clone(), tamis::KeyType::Integer);
        let filter = build.exclude_digests(digests(t, 2)).finish().unwrap();
        right(&filter, n, t, &format!("{n} digests, {t} excluded"));
        let plain = tamis::build(integers(n, 1)).exclude(integers(t, 2)).seed(7).finish().unwrap();
        assert!(plain.as_bytes() == filter.as_bytes(), "{n} digests, {t} excluded");
    }
    let build = tamis::build_digests(digests(10, 1), hasher.clone(), tamis::KeyType::Integer);
    let both = [digests(5, 2), digests(3, 1)].concat();
    let (count, first) = conflict(build.exclude_digests(both).finish().unwrap_err());
    assert_eq!((count, first), (3, vec![(0, 5), (1, 6), (2, 7)]));
}

#[test]
fn sides_of_different_domains_do_not_mix() {
    let mut collector = tamis::stream().start();
    collector.push("a").unwrap();
    assert!(matches!(collector.exclude(1u64), Err(BuildError::MixedKeyTypes)));
    let mut sealed = collector.seal().unwrap();
    assert!(matches!(sealed.exclude(1u64), Err(Error::Build(BuildError::MixedKeyTypes))));
    let mixed = tamis::build(["a"]).exclude([1u64]).finish();
    assert!(matches!(mixed, Err(Error::Build(BuildError::MixedKeyTypes))));
}

/// The first stage by hand: none, narrow, wide; the answers stay right.
#[test]
fn the_first_stage_can_be_chosen() {
    for kind in
        [Kind::Chained(Base::Ribbon), Kind::Chained(Base::Fuse), Kind::Integrated(Base::Fuse, IntegratedVariant::Two)]
    {
        for bits in [0.0, 1.0, 2.5, 9.0] {
            let build = tamis::build(integers(3000, 1)).exclude(integers(10_000, 2)).kind(kind);
            let filter = build.papers(Papers::default().first_bits(bits)).finish().unwrap();
            right(&filter, 3000, 10_000, &format!("{kind:?}, {bits}"));
            let layers = if bits == 0.0 || matches!(kind, Kind::Integrated(..)) { 1 } else { 2 };
            assert_eq!(filter.layers().count(), layers);
        }
    }
}

/// A cascade is exact for any delta.
#[test]
fn delta_changes_the_size_and_nothing_else() {
    for delta in [1e-300, 1e-5, 0.05, 0.3, 0.5, 0.9, 1.0 - 1e-9] {
        for base in [Base::Ribbon, Base::Fuse, Base::Bloom] {
            let build = tamis::build(integers(4000, 1)).exclude(integers(30_000, 2)).exact();
            let filter = build.kind(Kind::Cascade(base)).papers(Papers::default().delta(delta)).finish().unwrap();
            right(&filter, 4000, 30_000, &format!("{base:?}, delta {delta}"));
            assert_eq!(filter.layers().count(), 5);
        }
    }
}

/// A cascade of any depth is exact, and deep ones cost what Theorem 4.3 of \[Chained\] says: with delta 0.7071 `C (log2 lambda + 2.914)`.
#[test]
fn depth_changes_the_size_and_nothing_else() {
    for layers in [1, 2, 3, 4, 6, 17, 63, 64] {
        for (n, t) in [(0, 9), (1, 1), (7, 900), (3000, 24_000), (900, 50)] {
            for (base, delta) in [(Base::Ribbon, 0.5), (Base::Fuse, 0.7), (Base::Bloom, 0.9)] {
                let build = tamis::build(integers(n, 1)).exclude(integers(t, 2)).kind(Kind::Cascade(base));
                let papers = Papers::default().delta(delta).layers(layers);
                let filter = build.papers(papers).exact().finish().unwrap();
                let what = format!("{base:?}, {layers} layers, {n} keys, {t} excluded");
                right(&filter, n, t, &what);
                assert_eq!(filter.layers().count(), if n == 0 { 1 } else { layers as usize }, "{what}");
                let again = Filter::open(filter.as_bytes().to_vec()).unwrap();
                right(&again, n, t, &what);
            }
        }
    }
    let (n, lambda) = (60_000, 8);
    let build =
        || tamis::build(integers(n, 1)).exclude(integers(lambda * n, 2)).kind(Kind::Cascade(Base::Bloom)).exact();
    let bits = |layers| {
        let papers = Papers::default().delta(0.5f64.sqrt()).layers(layers);
        build().papers(papers).finish().unwrap().as_bytes().len() as f64 * 8.0 / n as f64
    };
    // Theorem 4.3 is for filters alone; in front of an exact bit fewer of them are smaller.
    let (shallow, deep) = (bits(3), bits(40));
    let theorem = std::f64::consts::LOG2_E * (3.0 + 2.914);
    assert!(shallow < deep && deep > 0.98 * theorem && deep < 1.04 * theorem, "{shallow} {deep} {theorem}");
    for layers in [0, 65, u32::MAX] {
        let error = build().papers(Papers::default().layers(layers)).finish().unwrap_err();
        assert_eq!(error.to_string(), format!("layers {layers}: out of range; expected 1 to 64"));
    }
    let error = tamis::build(0..9u64).papers(Papers::default().layers(3)).finish().unwrap_err();
    assert_eq!(error.to_string(), "layers: no effect; expected kind cascade");
}

/// More than one shard, more negatives than memory.
#[test]
fn shards_and_spills_agree() {
    let (n, t) = (1_600_000, 400_000);
    let limits = |memory| Limits::default().memory(memory);
    let build = || tamis::build(integers(n, 1)).exclude(integers(t, 2)).fpr(0.1);
    let filter = build().limits(limits(8 << 20)).threads(2).finish().unwrap();
    assert_eq!(filter.shards(), 2);
    right(&filter, n, t, "two shards");
    assert!(build().threads(1).finish().unwrap().as_bytes() == filter.as_bytes());
}

/// Whoever goes on after an error gets it again in the end.
#[test]
fn an_error_while_excluding_is_not_forgotten() {
    let mut keys = tamis::stream().kind(Kind::Bloom).with_excluded().start();
    keys.push(1u64).unwrap();
    let mut sealed = keys.seal().unwrap();
    let errors = integers(6000, 2).filter(|key| sealed.exclude(key).is_err()).count();
    assert!(errors > 0);
    assert!(sealed.finish().unwrap_err().to_string().contains("kind bloom: cannot exclude keys"));
}

/// A budget is judged when all negatives are known, whichever side came first: the error says what would work.
#[test]
fn the_smallest_budget_that_works_works() {
    for (kind, n, t) in [
        (Kind::Chained(Base::Fuse), 300, 9000),
        (Kind::Chained(Base::Ribbon), 3000, 90_000),
        (Kind::Cascade(Base::Bloom), 3000, 90_000),
        (Kind::Cascade(Base::Ribbon), 100, 300),
        (Kind::Integrated(Base::Fuse, IntegratedVariant::Two), 100, 100),
        (Kind::Naive(Base::Ribbon), 300, 9000),
    ] {
        let build = |bits: f64| {
            let build = tamis::build(integers(n, 1)).exclude(integers(t, 2)).kind(kind).bits_per_key(bits);
            build.threads(1).finish()
        };
        let refused = build(3.0).unwrap_err().to_string();
        let least = refused.rsplit(' ').next().and_then(|bits| bits.parse().ok()).unwrap();
        right(&build(least).unwrap(), n, t, &format!("{kind:?}, {least} bits per key"));
        assert!(build(least - 0.02).is_err(), "{kind:?}: less than {least} works");
    }
}

/// Files are within their budgets, although how many negatives pass the first step is chance, and their number an estimate.
#[test]
fn budgets_are_kept() {
    for (i, (n, t)) in [(300, 3000), (1000, 20_000), (3000, 9000), (3000, 90_000)].into_iter().enumerate() {
        for (j, kind) in BOOK.iter().filter(|kind| **kind != Kind::Cascade(Base::Bloom)).enumerate() {
            for step in 0..12 {
                let bits = 6.0 + 1.37 * f64::from(step) + 0.01 * (7 * i + j) as f64;
                let build = tamis::build(integers(n, 1)).exclude(integers(t, 2)).kind(*kind).bits_per_key(bits);
                if let Ok(filter) = build.threads(1).finish() {
                    let found = filter.as_bytes().len() as f64 * 8.0 / n as f64;
                    assert!(found <= bits, "{kind:?}, {n} keys, {t} excluded, {bits} bits per key: {found}");
                }
            }
        }
    }
}
