//! any file -> an error, or a filter that changes: every adaptive and every dynamic one goes on from it without a panic.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use tamis::adaptive::{
    Adapt, AdaptiveBloom, AdaptiveChained, AdaptiveFilter, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade,
    LargeBroom, Memory, QuotientCascade, Remove,
};
use tamis::{Bloom, Chained, Cuckoo, Quotient, Stacked};
use tamis_fuzz::{form, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

/// The keys of the golden files, and others.
fn keys() -> impl Iterator<Item = u64> {
    (0..30).chain((0..6).map(|key| key << 40 | 1))
}

fuzz_target!(|bytes: &[u8]| match form(bytes) {
    Some(0) => {
        if let Ok(mut filter) = Bloom::restore(bytes.to_vec()) {
            for key in keys() {
                assert!(filter.insert(key).is_err() || filter.contains(key) == Ok(true));
            }
            Bloom::restore(filter.snapshot().unwrap()).expect("what was written restores");
        }
        if let Ok(mut filter) = Cuckoo::restore(bytes.to_vec()) {
            for key in keys() {
                assert!(filter.insert(key).is_err() || filter.contains(key) == Ok(true));
                let _ = filter.remove(key / 2);
            }
            Cuckoo::restore(filter.snapshot().unwrap()).expect("what was written restores");
        }
        if let Ok(mut filter) = Quotient::restore(bytes.to_vec()) {
            for key in keys() {
                assert!(filter.insert(key).is_err() || filter.contains(key) == Ok(true));
                let _ = (filter.count(key), filter.remove(key / 2));
            }
            let again = Quotient::restore(filter.snapshot().unwrap()).expect("what was written restores");
            let _ = (filter.merge(&again), filter.grow());
        }
        if let Ok(mut filter) = Stacked::restore(bytes.to_vec()) {
            for key in keys() {
                assert!(filter.insert(key).is_err() || filter.contains(key) == Ok(true));
                let _ = filter.remove(key / 2);
            }
            Stacked::restore(filter.snapshot().unwrap()).expect("what was written restores");
        }
        if let Ok(mut filter) = Chained::restore(bytes.to_vec()) {
            for key in keys() {
                assert!(filter.exclude(key ^ 3 << 50).is_err() || filter.contains(key ^ 3 << 50) == Ok(false));
                assert!(filter.insert(key).is_err() || filter.contains(key) == Ok(true));
                let _ = filter.remove(key / 2);
            }
            Chained::restore(filter.snapshot().unwrap()).expect("what was written restores");
        }
    }
    Some(5) => {
        macro_rules! adapt {
            ($($filter:ty $(, $remove:ident)?;)*) => {$(
                if let Ok(mut filter) = <$filter>::restore(bytes.to_vec()) {
                    let mut map = Memory::new();
                    for key in keys() {
                        let _ = (filter.contains(key), filter.insert(key, &mut map), filter.adapt(key << 20, &mut map));
                        $(let _ = filter.$remove(key / 2, &mut map);)?
                    }
                    let _ = filter.snapshot();
                }
            )*};
        }
        adapt! {
            Broom, remove;
            LargeBroom, remove;
            AdaptiveQuotient, remove;
            QuotientCascade, remove;
            CuckooCascade, remove;
            AdaptiveBloom;
        }
        let mut members: Vec<u64> = (0..200).collect();
        if let Ok(mut filter) = AdaptiveStacked::restore(bytes.to_vec()) {
            for key in keys() {
                let _ = (filter.query(key), filter.adapt(key << 20, &mut members));
            }
            let _ = filter.snapshot();
        }
        if let Ok(mut filter) = AdaptiveChained::restore(bytes.to_vec()) {
            for key in keys() {
                let _ = (filter.contains(key), filter.adapt(key << 20, &mut members));
            }
            let _ = (filter.rebuild(&mut members), filter.snapshot());
        }
    }
    _ => {}
});
