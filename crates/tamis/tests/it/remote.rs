//! filters in a store -> the answers of the whole file, in few reads; a store that errs -> an error.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use tamis::{Digest, Error, Fetch, Filter, FormatError, Kind, Layout, Remote};

use super::repair::Parts;
use super::{integers, mix};

/// What a store was asked for.
type Reads = Rc<RefCell<Vec<Range<u64>>>>;

/// A store with one file, which counts its reads.
fn store(file: &[u8]) -> (u64, impl FnMut(Range<u64>) -> std::io::Result<Bytes> + use<>, Reads) {
    let (bytes, reads) = (Bytes::copy_from_slice(file), Reads::default());
    let log = reads.clone();
    let fetch = move |range: Range<u64>| {
        log.borrow_mut().push(range.clone());
        Ok(bytes.slice(range.start as usize..range.end as usize))
    };
    (file.len() as u64, fetch, reads)
}

/// Filters of one shard, of many, without keys, with layers of every role.
fn filters() -> Vec<(String, Filter)> {
    let mut all = vec![];
    for n in [0, 1, 2, 1000, 60_000] {
        let build = || tamis::build(integers(n, 1)).shard_bytes(4096);
        all.push((format!("ribbon, {n}"), build().fpr(0.003).finish().unwrap()));
        all.push((format!("exact, {n}"), build().exclude(integers(3 * n, 2)).exact().finish().unwrap()));
        let local = build().exclude(integers(3 * n, 2)).exact().layout(Layout::Local);
        all.push((format!("local, {n}"), local.finish().unwrap()));
        for kind in [Kind::Bloom, Kind::Fuse, Kind::Cuckoo, Kind::Quotient] {
            all.push((format!("{kind:?}, {n}"), build().kind(kind).fpr(0.01).finish().unwrap()));
        }
    }
    all
}

#[test]
fn a_store_answers_as_the_file_does() {
    let asked: Vec<u64> = [1, 2, 3].into_iter().flat_map(|seed| integers(2000, seed)).collect();
    for (name, filter) in filters() {
        let (len, fetch, reads) = store(filter.as_bytes());
        let mut remote = Fetch::open(len, fetch).unwrap();
        assert_eq!(reads.borrow().len(), 1, "{name}: one read opens");
        assert_eq!(remote.remote().len(), filter.len(), "{name}");
        assert_eq!(remote.remote().identity(), filter.identity(), "{name}");
        assert_eq!(remote.contains_many(&asked).unwrap(), filter.contains_many(&asked).unwrap(), "{name}");
        reads.borrow_mut().clear();
        for key in asked.iter().step_by(37) {
            assert_eq!(remote.contains(key).unwrap(), filter.contains(key).unwrap(), "{name}");
        }
        assert!(reads.borrow().is_empty(), "{name}: all shards are held");
    }
}

#[test]
fn a_query_is_one_read_of_one_shard_and_neighbours_are_merged() {
    let filter = tamis::build(integers(300_000, 1)).fpr(1.0 / 256.0).shard_bytes(65_536).finish().unwrap();
    assert_eq!(filter.shards(), 8);
    let (len, fetch, reads) = store(filter.as_bytes());
    let mut remote = Fetch::open(len, fetch).unwrap();
    for (number, key) in integers(40, 1).enumerate() {
        reads.borrow_mut().clear();
        assert!(remote.contains(key).unwrap());
        let reads = reads.borrow();
        assert!(reads.len() <= 1 && reads.iter().all(|range| range.end - range.start <= 65_536), "{number}: {reads:?}");
    }
    let (len, fetch, reads) = store(filter.as_bytes());
    let mut remote = Fetch::open(len, fetch).unwrap();
    reads.borrow_mut().clear();
    let all: Vec<u64> = integers(10_000, 1).collect();
    assert!(remote.contains_many(&all).unwrap().iter().all(|&yes| yes));
    assert_eq!(reads.borrow().len(), 1, "all eight shards in one read");
}

#[test]
fn the_cache_is_bounded() {
    let filter = tamis::build(integers(100_000, 1)).fpr(0.004).shard_bytes(4096).finish().unwrap();
    let bytes = filter.as_bytes();
    let (len, fetch, reads) = store(bytes);
    let tail = bytes[bytes.len() - 8000..].to_vec();
    let mut remote = Fetch::new(Remote::open(tail, len).unwrap().with_cache(10_000), fetch);
    let all: Vec<u64> = integers(5000, 1).collect();
    assert!(remote.contains_many(&all).unwrap().iter().all(|&yes| yes));
    assert!(remote.remote().cached_bytes() <= 10_000, "{}", remote.remote().cached_bytes());
    for key in &all {
        assert!(remote.contains(key).unwrap());
        assert!(remote.remote().cached_bytes() <= 10_000);
    }
    assert!(reads.borrow().len() > 1000);
    // Without a cache one shard is held at a time.
    let (len, fetch, _) = store(bytes);
    let tail = bytes[bytes.len() - 8000..].to_vec();
    let mut remote = Fetch::new(Remote::open(tail, len).unwrap().with_cache(0), fetch);
    assert!(remote.contains_many(&all[..500]).unwrap().iter().all(|&yes| yes));
    assert!(remote.remote().cached_bytes() <= 4096);
}

/// The ranges of some keys and their bytes.
fn supplies(remote: &mut Remote, file: &[u8], digests: &[Digest]) -> Vec<(Range<u64>, Vec<u8>)> {
    let bytes = |range: &Range<u64>| file[range.start as usize..range.end as usize].to_vec();
    remote.needs(digests).into_iter().map(|range| (range.clone(), bytes(&range))).collect()
}

#[test]
fn wrong_ranges_are_errors_and_change_nothing() {
    let filter = tamis::build(integers(100_000, 1)).fpr(0.004).shard_bytes(4096).finish().unwrap();
    let file = filter.as_bytes();
    let mut remote = Remote::open(file[file.len() - 8000..].to_vec(), file.len() as u64).unwrap();
    // Far apart, so that they are in shards that are no neighbours.
    let mut digests: Vec<Digest> = integers(1000, 1).map(|key| filter.hasher().integer(key)).collect();
    digests.sort_unstable();
    let digests = [digests[0], digests[500], digests[999]];
    let supply = supplies(&mut remote, file, &digests);
    assert_eq!(supply.len(), 3);
    let (range, bytes) = supply[1].clone();
    for cut in [0, 1, bytes.len() - 1] {
        let short = remote.supply(range.clone(), bytes[..cut].to_vec());
        assert!(matches!(short, Err(FormatError::Truncated { what: "the range", .. })), "{short:?}");
    }
    assert!(remote.supply(range.clone(), [&bytes[..], b"x"].concat()).is_err());
    let mut changed = bytes.clone();
    changed[77] ^= 1;
    assert!(matches!(remote.supply(range.clone(), changed), Err(FormatError::Checksum { .. })));
    let other = vec![7; bytes.len()];
    assert!(matches!(remote.supply(range.clone(), other), Err(FormatError::Checksum { .. })));
    assert_eq!((remote.answer(digests[1]), remote.cached_bytes()), (None, 0));
    // Out of order, twice, parts of shards, and a range that ends before it starts.
    for (range, bytes) in supply.iter().rev().chain(&supply) {
        remote.supply(range.clone(), bytes.clone()).unwrap();
    }
    let held = remote.cached_bytes();
    remote.supply(range.start..range.end - 1, bytes[1..].to_vec()).unwrap();
    #[allow(clippy::reversed_empty_ranges)]
    remote.supply(9..3, vec![]).unwrap();
    remote.supply(0..16, file[..16].to_vec()).unwrap();
    assert_eq!(remote.cached_bytes(), held);
    assert_eq!(digests.map(|digest| remote.answer(digest)), [Some(true); 3]);
    assert!(remote.needs(&digests).is_empty());
    // The whole file is a range too.
    remote.supply(0..file.len() as u64, file.to_vec()).unwrap();
    assert!(integers(1000, 1).all(|key| remote.answer(filter.hasher().integer(key)) == Some(true)));
}

#[test]
fn a_file_that_is_replaced_is_noticed() {
    let file = |seed| tamis::build(integers(50_000, seed)).fpr(0.004).shard_bytes(4096).finish().unwrap();
    let (old, new) = (file(1), file(5));
    let bytes = RefCell::new(old.as_bytes().to_vec());
    let fetch = |range: Range<u64>| {
        let (bytes, mut read) = (bytes.borrow(), vec![0; (range.end - range.start) as usize]);
        // The new file may be shorter.
        let there = bytes.get(range.start as usize..(range.end as usize).min(bytes.len())).unwrap_or(&[]);
        read[..there.len()].copy_from_slice(there);
        Ok(read.into())
    };
    let mut remote = Fetch::open(old.as_bytes().len() as u64, fetch).unwrap();
    assert!(remote.contains(integers(1, 1).next().unwrap()).unwrap());
    *bytes.borrow_mut() = new.as_bytes().to_vec();
    let found: Vec<Result<bool, Error>> = integers(2000, 1).map(|key| remote.contains(key)).collect();
    assert!(found.iter().all(|answer| !matches!(answer, Ok(false))), "a member was lost");
    assert!(found.iter().any(|answer| matches!(answer, Err(Error::Format { .. }))));
}

#[test]
fn tails_and_forms_are_checked() {
    let filter = tamis::build(integers(100_000, 1)).shard_bytes(4096).finish().unwrap();
    let (file, len) = (filter.as_bytes(), filter.as_bytes().len() as u64);
    // A tail that is too short says how long it must be.
    let Err(FormatError::Truncated { needed, .. }) = Remote::open(file[file.len() - 40..].to_vec(), len) else {
        panic!("40 bytes opened");
    };
    let tail = |bytes: u64| file[file.len() - bytes as usize..].to_vec();
    Remote::open(tail(needed), len).unwrap();
    assert!(Remote::open(tail(needed - 1), len).is_err());
    for wrong in [0, len - 1, len + 1, u64::MAX] {
        assert!(Remote::open(tail(needed), wrong).is_err(), "{wrong}");
    }
    let text = |error: FormatError| error.to_string();
    let map = tamis::map([("a", 1u64)]).finish().unwrap();
    let refused = Remote::open(map.as_bytes().to_vec(), map.as_bytes().len() as u64).unwrap_err();
    assert_eq!(text(refused), "the file holds a map; expected a filter without partitions");
    let mut parts = tamis::stream().partitioned();
    parts.push("a", 1).unwrap();
    let parts = parts.finish().unwrap();
    assert!(Remote::open(parts.as_bytes().to_vec(), parts.as_bytes().len() as u64).is_err());

    let keyed = tamis::build(0..1000).secret([1, 2]).secret_beside().finish().unwrap();
    let (bytes, len) = (keyed.as_bytes().to_vec(), keyed.as_bytes().len() as u64);
    assert_eq!(Remote::open(bytes.clone(), len).unwrap_err(), FormatError::Secret { given: false });
    let wrong = Remote::open_with_secret(bytes.clone(), len, [2, 1]).unwrap_err();
    assert_eq!(text(wrong), "wrong secret; expected the one that the file was built with");
    Remote::open_with_secret(bytes, len, [1, 2]).unwrap();
    // The wrong key type is an error, not "no".
    let (len, fetch, _) = store(filter.as_bytes());
    assert!(matches!(Fetch::open(len, fetch).unwrap().contains("text"), Err(Error::Query(_))));
}

/// Shards without payload lie between others: ranges before and after them are found all the same.
#[test]
fn shards_without_keys_are_skipped() {
    for used in [[0u64, 3], [5, 6], [1, 7], [7, 7], [0, 0]] {
        // Digests of an eighth or two of their range.
        let digest =
            |key: u64| Digest::from_bits(u128::from(used[key as usize % 2]) << 125 | u128::from(mix(key)) << 40);
        let digests: Vec<Digest> = (0..7000).map(digest).collect();
        let build = tamis::build_digests(digests.clone(), tamis::Hasher::foreign(7), tamis::KeyType::Digest);
        let filter = build.fpr(0.01).shard_bytes(4096).finish().unwrap();
        let (len, fetch, _) = store(filter.as_bytes());
        let mut remote = Fetch::open(len, fetch).unwrap();
        println!("{used:?}: {} shards, {:?}", filter.shards(), filter.hasher());
        assert!(remote.contains_many(&digests).unwrap().iter().all(|&yes| yes), "{used:?}");
    }
}

/// Sums that hold over a payload that no builder made: some answer, the same as that of the whole file.
#[test]
fn right_sums_of_a_wrong_payload_answer_alike() {
    let filter = tamis::build(integers(5000, 1)).exclude(integers(9000, 2)).exact().finish().unwrap();
    let mut parts = Parts::of(filter.as_bytes()).unwrap();
    parts.payload.iter_mut().zip(0u32..).for_each(|(byte, i)| *byte = (i * 167) as u8);
    let file = parts.file();
    let wrong = Filter::open(file.clone()).unwrap();
    let (len, fetch, _) = store(&file);
    let mut remote = Fetch::open(len, fetch).unwrap();
    let asked: Vec<u64> = integers(4000, 1).collect();
    assert_eq!(remote.contains_many(&asked).unwrap(), wrong.contains_many(&asked).unwrap());
}

/// Bytes and answers are the same however a file is cut, and shards of a store differ from the default in number alone.
#[test]
fn shard_bytes_are_a_limit() {
    for bytes in [4096, 16_384, 65_536] {
        for fpr in [0.2, 0.01, 1e-6] {
            let filter = tamis::build(integers(200_000, 1)).fpr(fpr).shard_bytes(bytes).finish().unwrap();
            let per_shard = filter.as_bytes().len() as u64 / filter.shards();
            assert!(per_shard <= bytes && per_shard > bytes / 4, "{bytes}, {fpr}: {per_shard} bytes per shard");
            assert!(integers(1000, 1).all(|key| filter.contains(key) == Ok(true)));
        }
    }
    let refused = |bytes| tamis::build(0..9).shard_bytes(bytes).finish().unwrap_err().to_string();
    assert_eq!(refused(4095), "shard_bytes 4095: out of range; expected 4096 to 1073741824");
    assert!(refused(u64::MAX).starts_with("shard_bytes"));
}
