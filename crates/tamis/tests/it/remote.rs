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

/// Sums of units that are no shards of the filter are sums of another file.
#[test]
fn lengths_of_sums_are_those_of_the_shards() {
    for name in ["shards", "changing"] {
        let path = format!("{}/tests/golden/{name}.tamis", env!("CARGO_MANIFEST_DIR"));
        let sound = Parts::of(&std::fs::read(path).unwrap()).unwrap();
        let open = |parts: &Parts| Remote::open(parts.file(), parts.file().len() as u64);
        let mut places = vec![];
        open(&sound.clone().with_sums(|at, _| places.push(at))).unwrap();
        assert!(places.len() >= 2, "{name}");
        for changed in places {
            // A byte less leaves all other shards of a multiple of 64 where they are.
            let shorter = sound.clone().with_sums(|at, len| *len -= u64::from(at == changed));
            let error = open(&shorter).unwrap_err().to_string();
            assert!(error.contains("its shards are not those of its sums"), "{name}, {changed}: {error}");
        }
    }
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

/// Shards without keys have no bytes, and lie between others; ranges of any cut find all that are inside them.
#[test]
fn empty_shards_are_no_obstacle() {
    // All digests in a few of 16 shards. With a secret they are not mixed: only those who know it could choose them.
    let digest = |shard: u64, i: u64| Digest::from_bits((u128::from(shard) << 124) | u128::from(i * 0x9e37_79b9) << 40);
    let full = [0u64, 3, 9, 10, 15];
    let digests: Vec<Digest> = full.into_iter().flat_map(|shard| (0..9000).map(move |i| digest(shard, i))).collect();
    let options = || tamis::Options::default().secret([1, 2]).shard_bytes(4096);
    let filter = options().build_digests(digests.clone(), tamis::KeyType::Bytes).fpr(0.01).finish().unwrap();
    assert_eq!(filter.shards(), 16);
    let file = filter.as_bytes();
    let (len, fetch, _) = store(file);
    let mut remote = Fetch::open(len, fetch).unwrap();
    let others: Vec<Digest> = (0..16).flat_map(|shard| (15_000..15_050).map(move |i| digest(shard, i))).collect();
    for asked in [&digests, &others] {
        assert_eq!(remote.contains_digests(asked).unwrap(), filter.contains_many_digests(asked).unwrap());
    }
    // One range of all, and ranges that start or end inside a shard.
    for cut in 0..40 {
        let mut remote = Remote::open(file.to_vec(), len).unwrap();
        let range = cut * len / 90..len - cut * len / 90;
        remote.supply(range.clone(), file[range.start as usize..range.end as usize].to_vec()).unwrap();
        let held = remote.cached_bytes();
        assert!(cut > 0 || digests.iter().all(|&digest| remote.answer(digest) == Some(true)));
        let needed = remote.needs(&digests);
        let inside = |needed: &Range<u64>| needed.start >= range.start && needed.end <= range.end;
        assert!(!needed.iter().any(inside), "{cut}: {needed:?} of {range:?}, {held} held");
        for range in needed {
            remote.supply(range.clone(), file[range.start as usize..range.end as usize].to_vec()).unwrap();
        }
        assert!(digests.iter().all(|&digest| remote.answer(digest) == Some(true)), "{cut}");
    }
}

/// Digests of callers that all lie in one shard are mixed, in a store as in a whole file.
#[test]
fn digests_that_were_mixed_are_found() {
    let digests: Vec<Digest> = (0..20_000u128).map(|i| Digest::from_bits((7 << 120) | (i << 90))).collect();
    let options = tamis::Options::default().hasher(tamis::Hasher::foreign(5)).shard_bytes(4096);
    let filter = options.build_digests(digests.clone(), tamis::KeyType::Digest).finish().unwrap();
    assert_ne!(filter.hasher().words()[1], 0, "the digests were spread");
    let (len, fetch, _) = store(filter.as_bytes());
    let mut remote = Fetch::open(len, fetch).unwrap();
    assert!(remote.contains_digests(&digests).unwrap().iter().all(|&yes| yes));
    assert!(remote.contains_many(&digests).unwrap().iter().all(|&yes| yes));
    let ranges = Remote::open(filter.as_bytes().to_vec(), len).unwrap().needs(&digests);
    assert_eq!(ranges.len(), 1);
    let mut remote = Remote::open(filter.as_bytes().to_vec(), len).unwrap();
    remote.supply(0..len, filter.as_bytes().to_vec()).unwrap();
    assert!(digests.iter().all(|&digest| remote.answer(digest) == Some(true)));
}

/// The shard that was needed longest ago is let go, and none that a query needs now.
#[test]
fn the_least_recently_needed_goes_first() {
    let filter = tamis::build(integers(100_000, 1)).fpr(0.004).shard_bytes(4096).finish().unwrap();
    let file = filter.as_bytes();
    let mut digests: Vec<Digest> = integers(5000, 1).map(|key| filter.hasher().integer(key)).collect();
    digests.sort_unstable();
    let some = [0, 1000, 2000, 3000, 4000].map(|at| digests[at]);
    let mut remote = Remote::open(file.to_vec(), file.len() as u64).unwrap();
    let one = supplies(&mut remote, file, &some[..1])[0].1.len() as u64;
    let mut remote = remote.with_cache(3 * one + one / 2);
    let mut ask = |digest: Digest| {
        for (range, bytes) in supplies(&mut remote, file, &[digest]) {
            remote.supply(range, bytes).unwrap();
        }
        assert_eq!(remote.answer(digest), Some(true));
        some.map(|digest| remote.answer(digest).is_some())
    };
    [0, 1, 2].into_iter().for_each(|i| assert!(ask(some[i])[i]));
    ask(some[0]);
    assert_eq!(ask(some[3]), [true, false, true, true, false]);
    assert_eq!(ask(some[4]), [true, false, false, true, true]);
    // What was supplied beyond the cache goes when the next query comes.
    remote.supply(0..file.len() as u64, file.to_vec()).unwrap();
    assert!(remote.cached_bytes() > 20 * one);
    assert!(remote.needs(&some[..1]).is_empty());
    assert!(remote.cached_bytes() <= 3 * one + one / 2 && remote.answer(some[0]) == Some(true));
}

/// A tail of just the directory is enough for every structure, and no other length opens with another answer or a panic.
#[test]
fn the_directory_alone_opens_every_structure() {
    for (name, filter) in filters() {
        let (file, len) = (filter.as_bytes(), filter.as_bytes().len() as u64);
        let needed = match Remote::open(file[file.len() - 32..].to_vec(), len) {
            Err(FormatError::Truncated { needed, .. }) => needed as usize,
            other => panic!("{name}: {other:?}"),
        };
        Remote::open(file[file.len() - needed..].to_vec(), len).unwrap_or_else(|error| panic!("{name}: {error}"));
        for cut in [0, 1, 4, 31, 32, 33, needed - 1] {
            assert!(Remote::open(file[file.len() - cut..].to_vec(), len).is_err(), "{name}, {cut}");
        }
    }
    let closing = Remote::open(vec![7; 5000], 5000).unwrap_err();
    assert_eq!(closing, FormatError::Closing);
    // What is no tamis file is read once.
    let (len, fetch, reads) = store(&vec![7; 3 << 20]);
    assert!(matches!(Fetch::open(len, fetch), Err(Error::Format { error: FormatError::Closing, .. })));
    assert_eq!(reads.borrow().len(), 1);
    for len in [0, 1, 31, 32] {
        assert!(Fetch::open(len, |range: Range<u64>| Ok(vec![0; (range.end - range.start) as usize].into())).is_err());
    }
}

/// Every form is opened with its secret: bytes, a file, a map of it, a store. Another secret, or none, is an error.
#[test]
fn secrets_that_are_not_in_the_file() {
    let secret = [7, u64::MAX];
    let options = || tamis::Options::default().secret(secret).secret_beside().metadata("a note");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let has_secret = |bytes: &[u8]| bytes.windows(8).any(|word| word == u64::MAX.to_le_bytes());
    macro_rules! check {
        ($type:ident, $built:expr, $good:expr) => {{
            let built: tamis::$type = $built;
            let good: fn(&tamis::$type) -> bool = $good;
            let info = tamis::FileInfo::of(built.as_bytes()).unwrap();
            assert!(good(&built) && info.secret_beside && built.metadata() == b"a note");
            assert_eq!((info.metadata, info.identity), (b"a note".to_vec(), built.identity()));
            assert!(!has_secret(built.as_bytes()), stringify!($type));
            std::fs::write(&path, built.as_bytes()).unwrap();
            let bytes = || built.as_bytes().to_vec();
            assert!(good(&tamis::$type::open_with_secret(bytes(), secret).unwrap()));
            assert!(good(&tamis::$type::read_with_secret(&path, secret).unwrap()));
            // SAFETY: nothing changes the file.
            #[allow(unsafe_code)]
            let map = |secret| unsafe { tamis::$type::mmap_with_secret(&path, secret) };
            assert!(good(&map(secret).unwrap()));
            assert_eq!(tamis::$type::open(bytes()).unwrap_err(), FormatError::Secret { given: false });
            assert_eq!(tamis::$type::open_unverified(bytes()).unwrap_err(), FormatError::Secret { given: false });
            for wrong in [[7, 7], [u64::MAX, 7], [0, 0]] {
                let refused = FormatError::Secret { given: true };
                assert_eq!(tamis::$type::open_with_secret(bytes(), wrong).unwrap_err(), refused);
                let is_refused = |error: Error| matches!(error, Error::Format { error, .. } if error == refused);
                assert!(is_refused(tamis::$type::read_with_secret(&path, wrong).unwrap_err()));
                assert!(is_refused(map(wrong).unwrap_err()));
            }
        }};
    }
    let words = ["ann", "bob", "eve"];
    check!(Filter, options().build(words).finish().unwrap(), |filter| filter.contains("bob").unwrap());
    let pairs = || words.into_iter().zip([1u64, 2, 3]);
    check!(Map, tamis::map(pairs()).options(options()).finish().unwrap(), |map| map.get_u64("bob") == Ok(Some(2)));
    for kind in [tamis::sets::Kind::Bloom, tamis::sets::Kind::Cuckoo, tamis::sets::Kind::Frozen] {
        let sets = words.into_iter().map(|word| (word, "red"));
        let index = tamis::sets(sets).options(options()).kind(kind).finish().unwrap();
        check!(Sets, index, |index| index.find("bob").unwrap() == [0]);
    }
    check!(Sequence, tamis::sequence(b"abc").options(options()).finish().unwrap(), |it| it.get(2).is_some());
    // A workload is measured in the file.
    let build = || options().build(0..3000).workload((3000..6000).map(|key| (key, 2.0))).workload_fpr(0.01);
    assert!(build().finish_to(&path).unwrap().workload.unwrap().measured.workload_fpr <= 0.0102);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let new = dir.path().join("new");
        build().finish_to(&new).unwrap();
        assert_ne!(std::fs::metadata(&new).unwrap().permissions().mode() & 0o077, 0, "there is no secret in it");
    }
    let bytes = std::fs::read(&path).unwrap();
    let (len, fetch, _) = store(&bytes);
    assert!(Fetch::open_with_secret(len, secret, fetch).unwrap().contains(7).unwrap());
    for (given, error) in
        [(None, FormatError::Secret { given: false }), (Some([7, 8]), FormatError::Secret { given: true })]
    {
        let (len, fetch, _) = store(&bytes);
        let opened = match given {
            None => Fetch::open(len, fetch),
            Some(secret) => Fetch::open_with_secret(len, secret, fetch),
        };
        assert!(matches!(opened, Err(Error::Format { error: found, .. }) if found == error));
    }
    // A secret for a file that needs none.
    let plain = tamis::build(words).finish().unwrap();
    let error = Filter::open_with_secret(plain.as_bytes().to_vec(), secret).unwrap_err();
    assert_eq!(error, FormatError::NoSecret);
    assert!(!tamis::FileInfo::of(plain.as_bytes()).unwrap().secret_beside);
    assert_eq!(error.to_string(), "a secret was given; expected none, as the file holds all of its hash");
}

/// Filters that change are restored with the secret, and their snapshots do not hold it either.
#[test]
fn filters_that_change_keep_their_secret_outside() {
    use tamis::adaptive::{
        AdaptiveBloom, AdaptiveChained, AdaptiveFilter, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade,
        LargeBroom, QuotientCascade,
    };
    use tamis::{Bloom, Chained, Cuckoo, Hasher, Quotient, Stacked};
    let secret = [7, 0xfedc_ba98_7654_3210u64];
    let holds = |bytes: &[u8]| bytes.windows(8).any(|word| word == secret[1].to_le_bytes());
    macro_rules! check {
        ($type:ty, $snapshot:expr) => {{
            let first: Vec<u8> = $snapshot;
            assert!(!holds(&first) && tamis::FileInfo::of(&first).unwrap().secret_beside, stringify!($type));
            let error = <$type>::restore(first.clone()).unwrap_err();
            assert_eq!(error, FormatError::Secret { given: false }, stringify!($type));
            let error = <$type>::restore_with_secret(first.clone(), [7, 8]).unwrap_err();
            assert_eq!(error, FormatError::Secret { given: true }, stringify!($type));
            let again = <$type>::restore_with_secret(first, secret).unwrap();
            assert_eq!(again.contains(7u64), Ok(true), stringify!($type));
            let second = again.snapshot().unwrap();
            assert!(!holds(&second) && tamis::FileInfo::of(&second).unwrap().secret_beside, stringify!($type));
            assert!(<$type>::restore_with_secret(second, secret).unwrap().contains(7u64).unwrap());
        }};
    }
    macro_rules! changing {
        ($type:ident) => {{
            let builder = $type::with_capacity(100).hasher(Hasher::secret(secret));
            let mut filter = builder.clone().secret_beside().build::<u64>().unwrap();
            filter.insert(7u64).unwrap();
            check!($type, filter.snapshot().unwrap());
            let mut chained = Chained::over(builder.clone().secret_beside().build::<u64>().unwrap()).unwrap();
            chained.insert(7u64).unwrap();
            check!(Chained, chained.snapshot().unwrap());
            // Inside, unless it is kept outside: also where the hash comes from a file that had it outside.
            let outside = tamis::Options::default().secret(secret).secret_beside().build([7u64]).finish().unwrap();
            let inside = $type::with_capacity(100).hasher(outside.hasher().clone()).build::<u64>().unwrap();
            assert!(holds(&inside.snapshot().unwrap()));
            let error = $type::restore_with_secret(inside.snapshot().unwrap(), secret).unwrap_err();
            assert_eq!(error, FormatError::NoSecret);
            let error = $type::with_capacity(100).secret_beside().build::<u64>().unwrap_err().to_string();
            assert_eq!(error, "secret_beside: no effect; expected a secret");
        }};
    }
    changing!(Bloom);
    changing!(Cuckoo);
    changing!(Quotient);
    let built = |kind| {
        let options = tamis::Options::default().secret(secret).secret_beside().kind(kind);
        options.build(0..100u64).finish().unwrap().as_bytes().to_vec()
    };
    check!(Bloom, built(tamis::Kind::ClassicBloom));
    check!(Cuckoo, built(tamis::Kind::Cuckoo));
    check!(Quotient, built(tamis::Kind::Quotient));
    check!(Stacked, built(tamis::Kind::Bloom));
    macro_rules! adaptive {
        ($($type:ident),*) => {$({
            let mut map = tamis::adaptive::Memory::new();
            let mut filter = $type::with_capacity(100).secret(secret).secret_beside().build::<u64>().unwrap();
            tamis::adaptive::Adapt::insert(&mut filter, 7u64, &mut map).unwrap();
            check!($type, filter.snapshot().unwrap());
        })*};
    }
    adaptive!(Broom, LargeBroom, AdaptiveQuotient, AdaptiveBloom, QuotientCascade, CuckooCascade);
    let mut keys: Vec<u64> = (0..100).collect();
    let chained = AdaptiveChained::with_fpr(0.01).secret(secret).secret_beside().build(&mut keys).unwrap();
    check!(AdaptiveChained, chained.snapshot().unwrap());
    let stacked = AdaptiveStacked::with_bits_per_key(10.0).secret(secret).secret_beside().build(&mut keys).unwrap();
    check!(AdaptiveStacked, stacked.snapshot().unwrap());
}

/// What is made from an index keeps its secret outside, too.
#[test]
fn a_secret_stays_outside_when_an_index_changes() {
    use tamis::sets::{Editor, Kind, stream};
    let secret = [7, u64::MAX];
    let has_secret = |bytes: &[u8]| bytes.windows(8).any(|word| word == u64::MAX.to_le_bytes());
    let build = |key: &'static str, beside: bool| {
        let options = tamis::Options::default().secret(secret);
        let options = if beside { options.secret_beside() } else { options };
        tamis::sets([(key, "red")]).kind(Kind::Bloom).options(options).finish().unwrap()
    };
    let index = build("ann", true);
    let mut frozen = stream().like(&index).kind(Kind::Frozen).start();
    frozen.push("ann", 0).unwrap();
    assert!(!has_secret(frozen.finish().unwrap().as_bytes()));
    let into = |start: &tamis::Sets, other: &tamis::Sets| {
        let mut editor = Editor::new(start).unwrap();
        editor.merge(other).unwrap();
        has_secret(&editor.snapshot().unwrap())
    };
    let (inside, empty) = (build("bob", false), tamis::sets([("x", "y"); 0]).finish().unwrap());
    assert!(has_secret(inside.as_bytes()) && !has_secret(index.as_bytes()));
    assert!(!into(&index, &inside) && !into(&inside, &index) && !into(&empty, &index) && !into(&index, &empty));
    assert!(into(&inside, &empty) && into(&empty, &inside));
}

/// Shards of a few keys, where a key has hundreds of bits: a file that opens.
#[test]
fn small_shards_of_long_keys() {
    let filter =
        tamis::build(integers(3000, 1)).bits_per_key(3000.0).kind(Kind::Bloom).shard_bytes(4096).finish().unwrap();
    assert!(filter.shards() <= 4096, "{}", filter.shards());
    assert!(integers(3000, 1).all(|key| filter.contains(key) == Ok(true)));
}
