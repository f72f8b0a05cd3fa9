//! censuses of real and of odd shape -> promises kept, never worse than the paper, and quick.
#![allow(clippy::unwrap_used)]
use super::*;

/// Keys by a power law: about `keys` of them, multiplicities 1 to `most`, counts falling as `v^-slope`.
fn power_law(sets: u32, most: u32, keys: f64, slope: f64) -> Census {
    let weight = |v: u32| f64::from(v).powf(-slope);
    let total: f64 = (1..=most).map(weight).sum();
    let count = |v: u32| (v, (weight(v) / total * keys).round() as u64);
    Census { sets, multiplicities: (1..=most).map(count).filter(|c| c.1 > 0).collect() }
}

fn rcv1() -> Census {
    power_law(2456, 60, 779_000.0, 1.15)
}

fn amazon() -> Census {
    power_law(14_588, 60, 1_180_000.0, 1.4)
}

/// Most keys are in few sets, and some in all.
fn countries() -> Census {
    let mut census = power_law(223, 222, 100_000.0, 1.6);
    census.multiplicities.push((223, 500));
    census
}

fn skewed_256() -> Census {
    power_law(256, 64, 8_000_000.0, 1.9)
}

fn censuses() -> Vec<(&'static str, Census)> {
    vec![
        ("rcv1", rcv1()),
        ("amazon", amazon()),
        ("countries", countries()),
        ("256", skewed_256()),
        ("dna", Census { sets: 500, multiplicities: vec![(1, 960_000), (2, 40_000)] }),
        ("one set", Census { sets: 1, multiplicities: vec![(1, 10_000)] }),
        ("100,000 sets", power_law(100_000, 2000, 1_000_000.0, 2.0)),
        ("all in all", Census { sets: 300, multiplicities: vec![(300, 10_000)] }),
        ("few", Census { sets: 30, multiplicities: vec![(1, 20), (3, 2)] }),
        ("one pair", Census { sets: 1, multiplicities: vec![(1, 1)] }),
    ]
}

#[test]
fn promises_are_kept() {
    for (name, census) in censuses() {
        for kind in [Sketch::Bloom, Sketch::Cuckoo] {
            for (absent, present) in [(0.01, 0.1), (0.01, 0.01), (0.5, 0.9), (1e-4, 0.05)] {
                let found = tune(kind, &census, Wish::Targets { absent, present }, &Options::default());
                let found = found.unwrap_or_else(|e| panic!("{name} {kind:?} {absent} {present}: {e}"));
                assert!(found.absent <= absent && found.present <= present, "{name} {kind:?}: {found:?}");
                assert_eq!(found, predict(&census, &found.shape));
                println!(
                    "{name:14} {kind:?} absent {absent} present {present}: {:.2} bits/pair, {:.1} lines, {:?}",
                    found.bits / census.pairs() as f64,
                    found.lines,
                    found.shape
                );
            }
        }
    }
}

#[test]
fn never_worse_than_the_paper() {
    for (name, census) in censuses() {
        for bits in [4.0, 8.0, 12.0, 16.3, 24.0, 40.0] {
            let found = tune(Sketch::Bloom, &census, Wish::BitsPerPair(bits), &Options::default());
            let Ok(found) = found else {
                assert!(predict(&census, &paper(&census, bits)).bits > bits * census.pairs() as f64, "{name} {bits}");
                continue;
            };
            let theirs = predict(&census, &paper(&census, bits));
            println!(
                "{name:14} {bits}: absent {:.3e} for {:.3e}, present {:.3e} for {:.3e}, {:?}",
                found.absent, theirs.absent, found.present, theirs.present, found.shape
            );
            assert!(found.bits <= (bits * census.pairs() as f64).max(512.0), "{name} {bits}: {found:?}");
            if theirs.bits <= (bits * census.pairs() as f64).max(512.0) {
                assert!(found.absent <= theirs.absent, "{name} {bits}: {found:?}, {theirs:?}");
                assert!(found.present <= theirs.present, "{name} {bits}: {found:?}, {theirs:?}");
            }
            assert_eq!(found.shape.existence, None);
        }
    }
}
