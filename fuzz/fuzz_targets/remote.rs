//! any file in a store -> an error, or the answers of the whole file; tails of any length and ranges that are wrong do no harm.
#![no_main]

use std::ops::Range;

use bytes::Bytes;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use tamis::{Digest, Fetch, Filter, Remote};
use tamis_fuzz::{mutate, numbers};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

fuzz_target!(|bytes: &[u8]| {
    let (file, len) = (Bytes::copy_from_slice(bytes), bytes.len() as u64);
    // As the input goes, so goes the length of the tail.
    let tail = bytes.len() / 2 + bytes.get(bytes.len() / 2).map_or(0, |&byte| usize::from(byte));
    let _ = Remote::open(file.slice(file.len().saturating_sub(tail)..), len);
    let Ok(mut remote) = Remote::open(file.clone(), len) else { return };
    let whole = Filter::open(file.clone());
    let digests: Vec<Digest> = numbers().map(|number| remote.hasher().integer(number)).collect();
    let read = |range: Range<u64>| file.slice(range.start as usize..range.end as usize);
    // Short, shifted and changed ranges first: none of them may leave a shard behind that answers.
    for range in remote.needs(&digests) {
        let bytes = read(range.clone());
        assert!(range.start < range.end && range.end <= len);
        assert!(remote.supply(range.clone(), bytes.slice(1..)).is_err());
        let _ = remote.supply(range.start + 1..range.end, bytes.slice(1..));
        let mut changed = bytes.to_vec();
        changed[0] ^= 1;
        // In a file that is damaged the change may be what repairs it.
        assert!(remote.supply(range, changed).is_err() || whole.is_err());
    }
    let Ok(filter) = whole else { return };
    let expected = filter.contains_many_digests(&digests).expect("it is not partitioned");
    for cache in [0, 5000, Remote::DEFAULT_CACHE] {
        let remote = Remote::open(file.clone(), len).expect("it opened before").with_cache(cache);
        let mut fetch = Fetch::new(remote, |range| Ok(read(range)));
        assert_eq!(fetch.contains_digests(&digests).expect("the sums hold"), expected);
    }
});
