#![allow(clippy::unwrap_used)]
use std::collections::HashSet;

use super::*;
use crate::{Base, Filter, Kind};

const BASES: [Base; 3] = [Base::Bloom, Base::Cuckoo, Base::Quotient];

/// Keys are 0 to 4999; 10,000 to 19,999 are asked for often.
fn stack(base: Base, spare: f64) -> Stacked {
    let popular = (10_000..20_000u64).map(|key| (key, 50.0));
    let build =
        tamis_build(base).workload(popular).extra_capacity(spare).unlisted_share(0.1).workload_fpr(0.002).fpr(1.0);
    let filter = build.finish().unwrap();
    assert!(filter.layers().count() >= 3, "{base:?}: {:?}", filter.layers().collect::<Vec<_>>());
    Stacked::restore(filter.as_bytes().to_vec()).unwrap()
}

fn tamis_build(base: Base) -> crate::FilterBuilder<'static> {
    crate::build(0..5000u64).kind(Kind::Stacked(base))
}

#[test]
fn keys_go_in_and_out() {
    for base in BASES {
        let mut stack = stack(base, 0.5);
        let mut inside: HashSet<u64> = (0..5000).collect();
        // Unlisted keys, and keys that were known negatives.
        for key in (30_000..32_000).chain(10_000..10_050) {
            stack.insert(key).unwrap();
            inside.insert(key);
        }
        assert_eq!(stack.len(), 7050);
        if base != Base::Bloom {
            for key in (0..500).chain(30_000..31_000).chain(10_000..10_025) {
                assert!(stack.remove(key).unwrap(), "{base:?}: {key} was not there");
                inside.remove(&key);
            }
            assert_eq!(stack.len(), 5525);
        }
        for &key in &inside {
            assert!(stack.contains(key).unwrap(), "{base:?}: {key} is lost");
        }
        // What was taken out is gone, but for false positives.
        let gone = (0..500u64).chain(30_000..31_000).chain(10_000..10_025).filter(|key| !inside.contains(key));
        let found = gone.filter(|&key| stack.contains(key).unwrap()).count();
        assert!(found < 60, "{base:?}: {found} of 1525 still there");
        // A snapshot is a filter that answers alike, and can be taken up again.
        let bytes = stack.snapshot().unwrap();
        let filter = Filter::open(bytes.clone()).unwrap();
        filter.verify().unwrap();
        assert_eq!(filter.len(), stack.len());
        for key in 0..40_000u64 {
            assert_eq!(filter.contains(key).unwrap(), stack.contains(key).unwrap());
        }
        assert_eq!(Stacked::restore(bytes.clone()).unwrap().snapshot().unwrap(), bytes);
    }
}

/// Known negatives stay rare false positives after keys have come and gone.
#[test]
fn known_negatives_stay_rare() {
    for base in BASES {
        let mut stack = stack(base, 0.2);
        let passing = |stack: &Stacked| (10_000..20_000u64).filter(|&key| stack.contains(key).unwrap()).count();
        let before = passing(&stack);
        (30_000..30_500u64).for_each(|key| stack.insert(key).unwrap());
        // New keys revive a few, at the rate of the first layer at most.
        assert!(passing(&stack) <= before + 60, "{base:?}: {} after {before}", passing(&stack));
    }
}

#[test]
fn a_full_layer_changes_nothing() {
    for base in [Base::Cuckoo, Base::Quotient] {
        let mut stack = stack(base, 0.0);
        let full = (50_000..1_000_000u64).find_map(|key| {
            let before = stack.snapshot().unwrap();
            stack.insert(key).err().map(|error| (before, error))
        });
        let (before, error) = full.unwrap();
        assert!(matches!(error, ChangeError::Full { .. }), "{error}");
        assert_eq!(stack.snapshot().unwrap(), before, "{base:?}");
        assert!((0..5000u64).all(|key| stack.contains(key).unwrap()));
    }
}

#[test]
fn what_is_no_stack_is_rejected() {
    let ribbon = crate::build(0..500u64).finish().unwrap();
    let error = Stacked::restore(ribbon.as_bytes().to_vec()).unwrap_err().to_string();
    assert!(error.contains("a layer is a ribbon"), "{error}");
    let mut bloom = stack(Base::Bloom, 0.0);
    assert!(matches!(bloom.remove(1u64), Err(ChangeError::Unsupported { .. })));
    assert!(matches!(bloom.insert("text"), Err(ChangeError::KeyType(_))));
    let empty = crate::build([0u64; 0]).kind(Kind::Cuckoo).finish().unwrap();
    assert!(Stacked::restore(empty.as_bytes().to_vec()).is_err());
    let mut bytes = bloom.snapshot().unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    assert!(Stacked::restore(bytes).is_err());
    // One layer is a stack too, and shards are no matter.
    let cuckoo = crate::build(0..500u64).kind(Kind::Cuckoo).finish().unwrap();
    let mut one = Stacked::restore(cuckoo.as_bytes().to_vec()).unwrap();
    assert!(one.remove(7u64).unwrap() && !one.remove(1_000_000u64).unwrap_or(true));
}

/// Deep layers that no key reached have no table: a key that would go there is rejected, and none is lost.
#[test]
fn no_key_is_lost_in_an_empty_layer() {
    for base in BASES {
        for (keys, spare) in [(20u64, 0.0), (20, 0.2), (200, 0.2)] {
            let often = (10_000..12_000u64).map(|key| (key, 50.0));
            let build = crate::build(0..keys)
                .kind(Kind::Stacked(base))
                .workload(often)
                .unlisted_share(0.05)
                .extra_capacity(spare)
                .fpr(0.001);
            let mut stack = Stacked::restore(build.finish().unwrap().as_bytes().to_vec()).unwrap();
            let mut inside: Vec<u64> = (0..keys).collect();
            for key in 10_000..12_000 {
                match stack.insert(key) {
                    Ok(()) => inside.push(key),
                    Err(error) => assert!(matches!(error, ChangeError::Full { .. }), "{error}"),
                }
            }
            assert!(inside.iter().all(|&key| stack.contains(key).unwrap()), "{base:?}, {keys} keys, {spare}");
        }
    }
}
