//! any operations on small filters -> no key is lost, what was repaired is refused, and any bytes restore or are refused.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use tamis::adaptive::{Adapt, AdaptError, AdaptiveFilter, Broom, Memory, Remove};
use tamis::internals::adaptive::Block;

fuzz_target!(|bytes: &[u8]| {
    // The same bytes as a file; most are none.
    let _ = Broom::restore(bytes.to_vec());
    let Some((&[shape, capacity], operations)) = bytes.split_first_chunk::<2>() else { return };
    let block = [Block::Small, Block::Medium, Block::Large][shape as usize % 3];
    let rate = [0.5, 0.1, 0.01, 1.0 / 256.0][shape as usize / 3 % 4];
    let builder = Broom::with_capacity(capacity.into()).fpr(rate).block(block).secret([1, 2]);
    let builder = if shape & 128 == 0 { builder } else { builder.growing() };
    let Ok(mut filter) = builder.build::<u64>() else { return };
    let (mut map, mut set) = (Memory::new(), HashSet::new());
    for operation in operations.chunks_exact(2) {
        let key = u64::from(operation[1]) << 8 | u64::from(operation[0] >> 3);
        match operation[0] & 7 {
            0..=2 => match filter.insert(key, &mut map) {
                Ok(stats) => assert_eq!(stats.changed, set.insert(key)),
                Err(error) => assert!(matches!(error, AdaptError::Change(_)), "{error:?}"),
            },
            3 => assert_eq!(filter.remove(key, &mut map).is_ok(), set.remove(&key)),
            4 => filter = Broom::restore(filter.snapshot().expect("in memory")).expect("what was written restores"),
            _ => match filter.adapt(key, &mut map) {
                Ok(_) => assert!(!set.contains(&key) && filter.contains(key) == Ok(false)),
                Err(AdaptError::Member) => assert!(set.contains(&key)),
                Err(error) => assert!(matches!(error, AdaptError::Change(_)), "{error:?}"),
            },
        }
        assert!(set.contains(&key) <= (filter.contains(key) == Ok(true)));
    }
    assert!(set.iter().all(|&key| filter.contains(key) == Ok(true)));
    assert_eq!(filter.len(), set.len() as u64);
});
