//! sizes of real and of odd shape -> promises kept, never worse than the paper, and quick.
#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;

/// Keys by a power law: about `keys` of them, multiplicities 1 to `most`, counts falling as `v^-slope`.
fn power_law(sets: u32, most: u32, keys: f64, slope: f64) -> SetSizes {
    let weight = |v: u32| f64::from(v).powf(-slope);
    let total: f64 = (1..=most).map(weight).sum();
    let count = |v: u32| (v, (weight(v) / total * keys).round() as u64);
    SetSizes { sets, multiplicities: (1..=most).map(count).filter(|c| c.1 > 0).collect() }
}

fn rcv1() -> SetSizes {
    power_law(2456, 60, 779_000.0, 1.15)
}

fn amazon() -> SetSizes {
    power_law(14_588, 60, 1_180_000.0, 1.4)
}

/// Most keys are in few sets, and some in all.
fn countries() -> SetSizes {
    let mut sizes = power_law(223, 222, 100_000.0, 1.6);
    sizes.multiplicities.push((223, 500));
    sizes
}

fn skewed_256() -> SetSizes {
    power_law(256, 64, 8_000_000.0, 1.9)
}

fn examples() -> Vec<(&'static str, SetSizes)> {
    vec![
        ("rcv1", rcv1()),
        ("amazon", amazon()),
        ("countries", countries()),
        ("256", skewed_256()),
        ("dna", SetSizes { sets: 500, multiplicities: vec![(1, 960_000), (2, 40_000)] }),
        ("one set", SetSizes { sets: 1, multiplicities: vec![(1, 10_000)] }),
        ("100,000 sets", power_law(100_000, 2000, 1_000_000.0, 2.0)),
        ("all in all", SetSizes { sets: 300, multiplicities: vec![(300, 10_000)] }),
        ("few", SetSizes { sets: 30, multiplicities: vec![(1, 20), (3, 2)] }),
        ("one pair", SetSizes { sets: 1, multiplicities: vec![(1, 1)] }),
    ]
}

#[test]
fn promises_are_kept() {
    for (name, sizes) in examples() {
        for kind in [Sketch::Bloom, Sketch::Cuckoo] {
            for (false_sets, member_false_sets) in [(0.01, 0.1), (0.01, 0.01), (0.5, 0.9), (1e-4, 0.05)] {
                let found =
                    tune(kind, &sizes, TuneGoal::Targets { false_sets, member_false_sets }, &Options::default());
                let found = found.unwrap_or_else(|e| panic!("{name} {kind:?} {false_sets} {member_false_sets}: {e}"));
                assert!(
                    found.false_sets <= false_sets && found.member_false_sets <= member_false_sets,
                    "{name} {kind:?}: {found:?}"
                );
                assert_eq!(found, predict(&sizes, &found.shape));
            }
        }
    }
}

#[test]
fn never_worse_than_the_paper() {
    for (name, sizes) in examples() {
        for bits in [4.0, 8.0, 12.0, 16.3, 24.0, 40.0] {
            let found = tune(Sketch::Bloom, &sizes, TuneGoal::BitsPerPair(bits), &Options::default());
            let Ok(found) = found else {
                assert!(predict(&sizes, &paper(&sizes, bits)).bits > bits * sizes.pairs() as f64, "{name} {bits}");
                continue;
            };
            let theirs = predict(&sizes, &paper(&sizes, bits));
            assert!(found.bits <= (bits * sizes.pairs() as f64).max(512.0), "{name} {bits}: {found:?}");
            if theirs.bits <= (bits * sizes.pairs() as f64).max(512.0) {
                assert!(found.false_sets <= theirs.false_sets, "{name} {bits}: {found:?}, {theirs:?}");
                assert!(found.member_false_sets <= theirs.member_false_sets, "{name} {bits}: {found:?}, {theirs:?}");
            }
        }
    }
}

#[test]
fn a_space_is_used_and_not_exceeded() {
    for (name, sizes) in examples() {
        for counting in [false, true] {
            for (kind, bits) in [(Sketch::Bloom, 60.0), (Sketch::Cuckoo, 20.0), (Sketch::Cuckoo, 60.0)] {
                for existence in [None, Some(false), Some(true)] {
                    let options = Options { counting, existence, ..Options::default() };
                    let Ok(found) = tune(kind, &sizes, TuneGoal::BitsPerPair(bits), &options) else { continue };
                    let space = (bits * sizes.pairs() as f64).max(512.0);
                    assert!(found.bits <= space, "{name}: {} of {space}, {found:?}", found.bits);
                    let filter = found.shape.existence.is_some();
                    assert!(existence.is_none_or(|wanted| wanted == filter), "{name}: {found:?}");
                    let more = tune(kind, &sizes, TuneGoal::BitsPerPair(2.0 * bits), &options).unwrap();
                    // Fewer false sets than a fiftieth are none.
                    assert!(
                        more.member_false_sets <= found.member_false_sets * 1.05 + 0.02,
                        "{name}: {more:?} {found:?}"
                    );
                }
            }
        }
    }
    let tight = SetSizes { sets: 100_000, multiplicities: vec![(1, 10)] };
    let few = Options { repetitions: 1, ..Options::default() };
    for kind in [Sketch::Bloom, Sketch::Cuckoo] {
        assert!(tune(kind, &tight, TuneGoal::BitsPerPair(16.0), &few).is_err());
    }
}

#[test]
fn options_are_followed() {
    let (sizes, goal) = (countries(), TuneGoal::Targets { false_sets: 0.01, member_false_sets: 0.1 });
    let with = |options: Options| tune(Sketch::Bloom, &sizes, goal, &options).unwrap();
    let free = with(Options::default());
    for existence in [true, false] {
        let found = with(Options { existence: Some(existence), ..Options::default() });
        assert_eq!(found.shape.existence.is_some(), existence);
        assert!(found.bits >= free.bits / 1.05);
    }
    assert_eq!(with(Options { heavy: Some(100), ..Options::default() }).shape.heavy, Some(100));
    let none = with(Options { heavy: Some(u32::MAX), ..Options::default() });
    assert!(none.shape.heavy.is_none() && none.bits > free.bits);
    let counting = with(Options { counting: true, ..Options::default() });
    assert!(counting.bits >= predict(&sizes, &counting.shape).bits + counters(&counting.shape));
    for (_, sizes) in examples() {
        let one = Options { repetitions: 1, ..Options::default() };
        let body = tune(Sketch::Bloom, &sizes, goal, &one).unwrap().shape.body;
        assert!(matches!(body, Body::Bloom { repetitions: 1, partitions: 0, .. }));
    }
}

#[test]
fn wishes_that_are_none() {
    let sizes = countries();
    let default = Options::default();
    for kind in [Sketch::Bloom, Sketch::Cuckoo] {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 224.0] {
            assert!(
                tune(kind, &sizes, TuneGoal::Targets { false_sets: bad, member_false_sets: 0.1 }, &default).is_err()
            );
            assert!(
                tune(kind, &sizes, TuneGoal::Targets { false_sets: 0.1, member_false_sets: bad }, &default).is_err()
            );
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(tune(kind, &sizes, TuneGoal::BitsPerPair(bad), &default).is_err());
        }
        for multiplicities in [vec![(0, 5)], vec![(3, 1), (2, 1)], vec![(2, 1), (2, 1)], vec![(224, 1)]] {
            let wrong = SetSizes { sets: 223, multiplicities };
            assert!(tune(kind, &wrong, TuneGoal::BitsPerPair(10.0), &default).is_err());
        }
        let huge = SetSizes { sets: 7, multiplicities: vec![(1, u64::MAX), (7, u64::MAX)] };
        assert!(tune(kind, &huge, TuneGoal::Targets { false_sets: 0.01, member_false_sets: 0.1 }, &default).is_err());
        for sets in [0, 1, 65, 100_000] {
            for multiplicities in [vec![], if sets > 0 { vec![(1, 0)] } else { vec![] }] {
                let empty = SetSizes { sets, multiplicities };
                for goal in
                    [TuneGoal::Targets { false_sets: 0.01, member_false_sets: 0.1 }, TuneGoal::BitsPerPair(10.0)]
                {
                    let found = tune(kind, &empty, goal, &default).unwrap();
                    assert_eq!((found.false_sets, found.member_false_sets), (0.0, 0.0));
                    assert!(found.bits > 0.0);
                }
            }
        }
    }
}

/// All small sizes, every kind: what is promised is kept, and nothing panics.
#[test]
fn small_sizes() {
    for sets in [1, 2, 3, 19, 20, 64, 65] {
        for keys in [1, 2, 5, 33] {
            for v in [1, sets / 2, sets] {
                let sizes = SetSizes { sets, multiplicities: vec![(v.max(1), keys)] };
                for kind in [Sketch::Bloom, Sketch::Cuckoo] {
                    let (false_sets, member_false_sets) = (0.01, 0.1);
                    let found =
                        tune(kind, &sizes, TuneGoal::Targets { false_sets, member_false_sets }, &Options::default())
                            .unwrap();
                    assert!(
                        found.false_sets <= false_sets && found.member_false_sets <= member_false_sets,
                        "{sizes:?} {found:?}"
                    );
                    let (words, columns) = (found.shape.body.size().0, found.shape.body.rows(sets).columns());
                    assert!(words >= f64::from(columns), "{sizes:?} {found:?}");
                }
            }
        }
    }
}

#[test]
fn predictions_by_multiplicity_average_to_the_mean() {
    let sizes = rcv1();
    for shape in [paper(&sizes, 16.0), Shape { heavy: Some(8), ..paper(&sizes, 16.0) }] {
        let sum: f64 = sizes.multiplicities.iter().map(|&(v, keys)| present_at(&sizes, &shape, v) * keys as f64).sum();
        let mean = predict(&sizes, &shape).member_false_sets;
        assert!((sum / sizes.keys() as f64 / mean - 1.0).abs() < 1e-9);
        assert_eq!(present_at(&sizes, &shape, 9) == 0.0, shape.heavy.is_some());
    }
    // Section 6: more partitions than sets of a key, or the repetitions are of no use to it.
    let at = |v| present_at(&sizes, &paper(&sizes, 16.0), v);
    assert!(at(60) > 30.0 * at(4));
}

/// Sizes of 100,000 multiplicities take no longer than another: far below a second here, milliseconds when optimised.
#[test]
fn it_is_quick() {
    let wide =
        SetSizes { sets: 100_000, multiplicities: (1..=100_000).map(|v| (v, 1 + 1_000_000 / u64::from(v))).collect() };
    for kind in [Sketch::Bloom, Sketch::Cuckoo] {
        for goal in [TuneGoal::Targets { false_sets: 0.01, member_false_sets: 0.1 }, TuneGoal::BitsPerPair(16.3)] {
            for existence in [None, Some(true)] {
                let start = std::time::Instant::now();
                let found = tune(kind, &wide, goal, &Options { existence, ..Options::default() }).unwrap();
                let took = start.elapsed();
                assert!(took.as_millis() < 1500, "{kind:?} {goal:?} {existence:?}: {took:?}, {found:?}");
            }
        }
    }
}
