//! changed, cut and foreign bytes -> an error, or answers; never a panic, never more memory than the bytes pay for.

use std::time::{Duration, Instant};

use tamis::{Filter, FormatError, Kind, Layout, Quotient, Stacked};

use super::memory::watched;
use super::repair::{BITS, FOOTER, FORM, FRONT, HASH, KEY_TYPE, Parts};
use super::{SHAPES, ask_many, integers, is_plain, mix};

/// One small file of every shape: one standard level, 4-wise, 3-wise, Bloom; ribbons with several levels; several steps.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    for &(name, kind, effort) in SHAPES {
        for n in [0, 40] {
            let filter = tamis::build(integers(n, 1)).kind(kind).effort(effort).fpr(0.06).finish().unwrap();
            files.push((format!("{name}, {n} keys"), filter.as_bytes().to_vec()));
        }
    }
    for (name, kind) in Kind::ALL.iter().filter(|(_, kind)| !is_plain(*kind)) {
        files.push((format!("{name}, 40 keys"), knowing(*kind, 40, 90, 0.06)));
    }
    files.push(("partitioned, no keys".to_string(), partitioned(0)));
    files.push(("partitioned".to_string(), partitioned(40)));
    files.push(("local, 40 keys".into(), local(40, 90)));
    files
}

/// The file of a filter with all columns side by side.
fn local(keys: u64, negatives: u64) -> Vec<u8> {
    let build = tamis::build(integers(keys, 1)).exclude(integers(negatives, 2)).exact().layout(Layout::Local);
    build.finish().unwrap().as_bytes().to_vec()
}

/// A file of several groups and labels of every kind: with keys, without, without negatives.
fn partitioned(keys: u64) -> Vec<u8> {
    let mut all = tamis::stream().exact().partitioned();
    for (label, lambda) in LABELS.iter().zip([0, 1, 2, 90]) {
        for key in integers(keys, 1) {
            all.push(label, key).unwrap();
        }
        for key in integers(keys * lambda, 2) {
            all.exclude(label, key).unwrap();
            all.exclude("others", key).unwrap();
        }
    }
    all.finish().unwrap().as_bytes().to_vec()
}

const LABELS: [&str; 4] = ["", "a", "b", "c"];

/// The file of a filter that knows its negatives: lists of several steps, and two tables in one leaf.
fn knowing(kind: Kind, keys: u64, negatives: u64, rate: f64) -> Vec<u8> {
    let build = tamis::build(integers(keys, 1)).kind(kind).fpr(rate);
    let others = integers(negatives, 2);
    // A stack knows them by how often they are asked for.
    let filter = match kind {
        Kind::Stacked(_) => {
            build.workload(others.map(|key| (key, 9.0))).unlisted_share(0.5).workload_fpr(0.01).fpr(1.0).finish()
        }
        _ => build.exclude(others).finish(),
    };
    filter.unwrap().as_bytes().to_vec()
}

/// Larger ones, for the mutator.
fn large_files() -> Vec<(String, Vec<u8>)> {
    let mut files = files();
    for &(name, kind, effort) in SHAPES {
        for rate in [0.5, 0.06] {
            let filter = tamis::build(integers(12_000, 1)).kind(kind).effort(effort).fpr(rate).finish().unwrap();
            files.push((format!("{name}, 12,000 keys, {rate}"), filter.as_bytes().to_vec()));
        }
    }
    for (name, kind) in Kind::ALL.iter().filter(|(_, kind)| !is_plain(*kind)) {
        files.push((format!("{name}, 12,000 keys"), knowing(*kind, 12_000, 30_000, 0.06)));
    }
    for negatives in [12_000, 36_000, 96_000] {
        files.push((format!("local, 12,000 keys, {negatives} excluded"), local(12_000, negatives)));
    }
    // Several times: their directories have more to go wrong.
    for i in 1..6 {
        files.push((format!("partitioned, {i}"), partitioned(40 * i)));
    }
    files
}

#[test]
fn the_helper_takes_files_apart_and_together() {
    for (name, file) in files() {
        assert_eq!(Parts::of(&file).unwrap().file(), file, "{name}");
    }
}

#[test]
fn every_cut_is_an_error() {
    for (name, file) in files() {
        for len in 0..file.len() {
            let error = Filter::open_unverified(file[..len].to_vec()).expect_err(&name);
            match len {
                0 => assert_eq!(error, FormatError::Magic),
                _ => assert!(matches!(error, FormatError::Truncated { .. }), "{name}, {len} bytes: {error}"),
            }
            assert!(
                Filter::open_unverified(file[file.len() - len..].to_vec()).is_err(),
                "{name}: the last {len} bytes"
            );
        }
    }
}

#[test]
fn trailing_bytes_are_an_error() {
    for (name, file) in files() {
        for tail in [&b"\0"[..], b"\n", b"sieV", &file[file.len() - FOOTER..], &file] {
            assert!(Filter::open_unverified([&file[..], tail].concat()).is_err(), "{name}, {} bytes more", tail.len());
        }
    }
}

/// Every value of every byte outside the payload is covered by what `open` checks.
#[test]
fn every_changed_byte_of_the_frame_is_found_by_open() {
    for (name, file) in files() {
        let payload = Parts::of(&file).unwrap().payload.len();
        for at in (0..FRONT).chain(FRONT + payload..file.len()) {
            let mut changed = file.clone();
            for flip in 1..=255 {
                changed[at] = file[at] ^ flip;
                let error = Filter::open_unverified(changed.clone()).expect_err(&name);
                let version = file.len() - FOOTER + 4;
                match at {
                    0..8 => assert_eq!(error, FormatError::Magic),
                    _ if (8..10).contains(&at) || (version..version + 2).contains(&at) => {
                        assert!(matches!(error, FormatError::Unsupported { .. } | FormatError::Invalid { .. }));
                    }
                    _ if at >= file.len() - 4 => assert!(matches!(error, FormatError::Truncated { .. })),
                    _ => assert!(matches!(error, FormatError::Checksum { .. }), "{name}, byte {at}: {error}"),
                }
            }
        }
    }
}

#[test]
fn every_changed_byte_of_the_payload_is_found_by_verify() {
    let asked: Vec<u64> = (0..64).collect();
    for (name, file) in files() {
        let payload = Parts::of(&file).unwrap().payload.len();
        for at in FRONT..FRONT + payload {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut changed = file.clone();
                changed[at] ^= flip;
                // Opening reads no payload, and any payload gives answers.
                if flip == 1 {
                    let error = Filter::open(changed.clone()).unwrap_err();
                    assert_eq!(error, FormatError::Checksum { part: "payload" }, "{name}, byte {at}");
                }
                let filter = match Filter::open_unverified(changed) {
                    Ok(filter) => filter,
                    // The table of partitions is read at once.
                    Err(_) if name.starts_with("partitioned") => continue,
                    Err(error) => panic!("{name}, byte {at}: {error}"),
                };
                assert_eq!(filter.verify(), Err(FormatError::Checksum { part: "payload" }), "{name}, byte {at}");
                agree(&filter, &asked, &name);
            }
        }
    }
}

/// Asks alone and in a batch, whatever the answers are.
fn agree(filter: &Filter, asked: &[u64], what: &str) {
    if filter.is_partitioned() {
        for label in LABELS.into_iter().chain(["others", "nobody"]) {
            agree_in(filter, label, asked, what);
        }
        assert_eq!(filter.contains(7u64), Err(tamis::QueryError::Partition { partitioned: true }), "{what}");
        assert!(filter.groups().all(|group| (0.0..=1.0).contains(&group.fpr)), "{what}");
        assert!(filter.groups().map(|group| group.partitions).sum::<u64>() <= filter.partitions(), "{what}");
    } else {
        fn both<K: tamis::Key>(filter: &Filter, keys: &[K]) -> (Vec<bool>, Vec<bool>) {
            (keys.iter().map(|key| filter.contains(key).unwrap()).collect(), ask_many(filter, keys))
        }
        let (alone, together) = match filter.key_type() {
            tamis::KeyType::Integer => both(filter, asked),
            tamis::KeyType::Bytes => both(filter, &asked.iter().map(|key| key.to_le_bytes()).collect::<Vec<_>>()),
            _ => both(filter, &asked.iter().map(|&key| tamis::Digest::from_hash(key)).collect::<Vec<_>>()),
        };
        assert_eq!(alone, together, "{what}");
    }
    assert!((0.0..=1.0).contains(&filter.fpr()), "{what}: rate {}", filter.fpr());
    assert!(filter.lower_bound() >= 0.0, "{what}: bound {}", filter.lower_bound());
    for layer in filter.layers() {
        assert!(layer.bytes <= filter.as_bytes().len() as u64 && !layer.structure.is_empty(), "{what}");
    }
}

/// The same under a label.
fn agree_in(filter: &Filter, label: &str, asked: &[u64], what: &str) {
    fn both<K: tamis::Key>(filter: &Filter, label: &str, keys: &[K]) -> (Vec<bool>, Vec<bool>) {
        let together = filter.contains_many_in(label, keys).unwrap();
        (keys.iter().map(|key| filter.contains_in(label, key).unwrap()).collect(), together)
    }
    let (alone, together) = match filter.key_type() {
        tamis::KeyType::Integer => both(filter, label, asked),
        tamis::KeyType::Bytes => both(filter, label, &asked.iter().map(|key| key.to_le_bytes()).collect::<Vec<_>>()),
        _ => both(filter, label, &asked.iter().map(|&key| tamis::Digest::from_hash(key)).collect::<Vec<_>>()),
    };
    assert_eq!(alone, together, "{what}, label {label:?}");
    assert!(filter.has_partition(label) == Ok(true) || !alone.contains(&true), "{what}, label {label:?}");
}

#[test]
fn foreign_files_are_told_apart() {
    let noise: Vec<u8> = (0..5000).map(|i| mix(i) as u8).collect();
    for foreign in
        [&b""[..], b"\n", b"# a list of hosts\n0.0.0.0 ads.example\n", &[0; 4096], b"\x7fELF\x02\x01\x01", &noise]
    {
        let error = Filter::open_unverified(foreign.to_vec()).unwrap_err();
        assert_eq!(error, FormatError::Magic);
        assert_eq!(error.to_string(), "not a tamis file: wrong first eight bytes; expected a file that tamis wrote");
    }
    // Sent as text, with its line ends translated.
    let file = files().remove(1).1;
    let translated: Vec<u8> = file.iter().copied().filter(|&byte| byte != b'\r').collect();
    assert_eq!(Filter::open_unverified(translated).unwrap_err(), FormatError::Magic);
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let empty = format!("{}: {}", path.display(), FormatError::Magic);
    assert_eq!(crate::mapped::filter(&path).unwrap_err().to_string(), empty);
}

#[test]
fn a_newer_version_is_named() {
    for version in [2u16, 3, 256, u16::MAX] {
        let mut parts = Parts::of(&files()[1].1).unwrap();
        parts.front[8..10].copy_from_slice(&version.to_le_bytes());
        let error = Filter::open_unverified(parts.file()).unwrap_err();
        assert_eq!(error, FormatError::Unsupported { what: "format version", number: version.into() });
        let text = format!("format version {version} is not supported by this release; upgrade tamis");
        assert_eq!(error.to_string(), text);
    }
    let mut parts = Parts::of(&files()[1].1).unwrap();
    parts.front[8] = 0;
    assert_eq!(
        Filter::open_unverified(parts.file()).unwrap_err().to_string(),
        "invalid file: version is 0, expected 1"
    );
}

/// Fields that no writer produces, behind checksums that hold.
#[test]
fn impossible_fields_are_named() {
    let change = |edit: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::of(&files()[1].1).unwrap();
        edit(&mut parts);
        Filter::open_unverified(parts.file()).unwrap_err().to_string()
    };
    for (expected, edit) in [
        (
            "hash 7 is not supported by this release; upgrade tamis",
            &(|p: &mut Parts| p.head[HASH] = 7) as &dyn Fn(&mut Parts),
        ),
        ("key type 4 is not supported by this release; upgrade tamis", &|p| p.head[KEY_TYPE] = 4),
        ("invalid file: header: hash is 3 for integer keys, expected digests", &|p| p.head[HASH] = 3),
        ("invalid file: header: 2^25 shards", &|p| p.head[BITS] = 25),
        ("flags 1 is not supported by this release", &|p| p.front[10] = 1),
        ("the secret is not in the file; expected to be given it", &|p| {
            p.head[HASH] = 4;
            p.head.splice(4..5, [0; 8]);
        }),
        ("section 7 is not supported by this release", &|p| p.more.push((7, vec![]))),
        ("preparation of keys 3 is not supported by this release", &|p| p.more.push((5, vec![3]))),
        ("invalid file: directory: section 2 after section 3", &|p| p.more.push((2, vec![]))),
        ("invalid file: directory: section 6 after section 6", &|p| p.more = vec![(6, vec![]); 2]),
        ("invalid file: header: bytes after its end", &|p| p.head.push(0)),
        ("invalid file: directory: number of steps is 65, expected 0 to 64", &|p| p.directory[0] = 65),
        ("role of a layer 3 is not supported by this release", &|p| p.directory[1] = 3),
        ("structure 99 is not supported by this release; upgrade tamis", &|p| p.directory[2] = 99),
        ("invalid file: directory: too short for 1 steps of 16777216 shards", &|p| p.head[BITS] = 24),
        ("invalid file: directory: bytes after its end", &|p| p.directory.push(0)),
        ("invalid file: 3 bytes between payload and directory", &|p| p.payload.extend([0; 3])),
        ("truncated or damaged: the payload needs", &|p| p.payload.truncate(p.payload.len() - 1)),
        ("truncated or damaged: directory needs 1 bytes, found 0", &|p| p.directory.truncate(p.directory.len() - 1)),
        ("truncated or damaged: directory needs 1 bytes, found 0", &|p| p.directory.clear()),
        ("invalid file: directory: a number is too long", &|p| p.directory[0] |= 0x80),
    ] {
        let text = change(edit);
        assert!(text.starts_with(expected), "{text}; expected {expected}");
    }
}

/// Sections and flags that may be skipped are, whatever they hold.
#[test]
fn what_may_be_ignored_is() {
    for (name, file) in files() {
        let mut parts = Parts::of(&file).unwrap();
        parts.more = vec![(4, b"another writer".to_vec()), (6, vec![7; 9]), (8, vec![]), (1 << 40, vec![0xff; 300])];
        parts.front[12..].copy_from_slice(&[0xfe; 4]);
        let (filter, plain) = (Filter::open(parts.file()).unwrap(), Filter::open(file).unwrap());
        assert_eq!((filter.metadata(), filter.may_change(), filter.len()), (&[7; 9][..], false, plain.len()), "{name}");
        assert_ne!(filter.identity(), plain.identity(), "{name}");
    }
}

/// A plain filter of one shard spends little on everything but its payload.
/// Slots that contradict each other would lose keys: filters that change reject them, and go on from the others.
#[test]
fn slots_that_contradict_each_other_take_no_keys() {
    let filter = tamis::build(integers(200, 1)).kind(Kind::Quotient).fpr(0.01).finish().unwrap();
    let parts = Parts::of(filter.as_bytes()).unwrap();
    let mut rejected = 0;
    for bit in (0..8 * parts.payload.len()).step_by(3) {
        let mut parts = parts.clone();
        parts.payload[bit / 8] ^= 1 << (bit % 8);
        let file = parts.file();
        let sound = Quotient::restore(file.clone()).is_ok();
        let stacked = Stacked::restore(file);
        assert_eq!(stacked.is_ok(), sound, "bit {bit}");
        rejected += u64::from(!sound);
        let Ok(mut stacked) = stacked else { continue };
        for key in integers(40, 2) {
            assert!(stacked.insert(key).is_err() || stacked.contains(key) == Ok(true), "bit {bit}");
        }
    }
    assert!(rejected > 100, "{rejected}");
}

#[test]
fn small_files_are_small() {
    for n in [0, 1, 10, 1000, 7000] {
        for kind in [Kind::Auto, Kind::Ribbon, Kind::Fuse, Kind::Bloom] {
            let filter = tamis::build(integers(n, 1)).kind(kind).fpr(1.0 / 256.0).finish().unwrap();
            let payload: u64 = filter.layers().map(|layer| layer.bytes).sum();
            let beside = filter.as_bytes().len() as u64 - payload;
            assert!(beside <= 110, "{kind:?}, {n} keys: {beside} bytes beside the payload");
        }
    }
}

/// The same for the directory of a partitioned file.
#[test]
fn impossible_partitions_are_named() {
    let file = partitioned(40);
    let sound = Parts::of(&file).unwrap();
    let change = |edit: &dyn Fn(&mut Parts)| {
        let mut parts = sound.clone();
        edit(&mut parts);
        Filter::open_unverified(parts.file()).unwrap_err().to_string()
    };
    // Bound, number of groups; then shard bits, keys and negatives of the first. The last payload has five labels of six bytes.
    let (labels, end) = (sound.payload.len() - 5 * 6, sound.directory.len());
    for (expected, edit) in [
        ("form 9 is not supported by this release", &(|p: &mut Parts| p.head[FORM] = 9) as &dyn Fn(&mut Parts)),
        ("the file holds a set index; expected a filter", &|p| p.head[FORM] = 4),
        ("the file holds a map; expected a filter", &|p| p.head[FORM] = 2),
        ("the file holds a sequence; expected a filter", &|p| p.head[FORM] = 3),
        ("invalid file: header: shards of a partitioned file, expected none", &|p| p.head[BITS] = 1),
        ("invalid file: header: shards of a set index, expected none", &|p| (p.head[FORM], p.head[BITS]) = (4, 1)),
        ("flags 256 is not supported by this release", &|p| p.front[11] = 1),
        ("truncated or damaged: directory needs 8 bytes, found 7", &|p| p.directory.truncate(7)),
        ("invalid file: directory: shard bits of a group is 25, expected 0 to 24", &|p| p.directory[9] = 25),
        ("invalid file: directory: too short for", &|p| p.directory[9] = 24),
        ("invalid file: directory: the group of a label is 9, expected 0 to ", &|p| p.payload[labels + 5] = 9),
        ("invalid file: directory: the labels are not in order", &|p| p.payload[labels + 4] = 0xff),
        ("invalid file: directory: salt of the labels is 4294967296, expected 0 to 4294967295", &|p| {
            p.directory.splice(end - 1..end, [0x80, 0x80, 0x80, 0x80, 0x10]);
        }),
        ("truncated or damaged: the payload needs 36 bytes, found 30", &|p| p.directory[end - 2] = 6),
        ("invalid file: directory: bytes after its end", &|p| p.directory.push(0)),
        ("invalid file: 3 bytes between payload and directory", &|p| p.payload.extend([0; 3])),
        ("truncated or damaged: the payload needs", &|p| p.payload.truncate(p.payload.len() - 1)),
        // Read as an ordinary file, the bound is no list of steps.
        ("", &|p| p.head[FORM] = 0),
    ] {
        let text = change(edit);
        assert!(text.starts_with(expected), "{text}; expected {expected}");
    }
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 += 1;
        (mix(self.0) % n.max(1) as u64) as usize
    }

    /// Edits a part of a file in one of the ways in which bytes go wrong.
    pub(crate) fn edit(&mut self, bytes: &mut Vec<u8>) {
        const ODD: [u8; 10] = [0, 1, 2, 3, 4, 0x40, 0x7f, 0x80, 0x81, 0xff];
        let (at, other) = (self.below(bytes.len()), self.below(bytes.len()));
        match self.below(6) {
            _ if bytes.is_empty() => bytes.push(self.below(256) as u8),
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = ODD[self.below(ODD.len())],
            2 => bytes[at] = self.below(256) as u8,
            3 => bytes.insert(at, ODD[self.below(ODD.len())]),
            4 => drop(bytes.remove(at)),
            _ => bytes.swap(at, other),
        }
    }
}

/// Changes headers, directories and payloads, repairs the checksums, and opens: the decoder's own checks must hold.
///
/// For as many seconds as TAMIS_MUTATE_SECONDS says, 3 unless it is set; TAMIS_MUTATE_SEED continues elsewhere.
#[test]
fn repaired_mutations_never_panic() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let seed = number("TAMIS_MUTATE_SEED", 0);
    let files = large_files();
    let end = Instant::now() + Duration::from_secs(number("TAMIS_MUTATE_SECONDS", 3));
    let mut random = Random(seed << 32);
    let asked: Vec<u64> = integers(40, 1).chain(integers(40, 2)).collect();
    let (mut tried, mut opened) = (0u64, 0u64);
    while Instant::now() < end {
        let (name, file) = &files[random.below(files.len())];
        let mut parts = Parts::of(file).unwrap();
        if random.below(4) == 0 && parts.head[FORM] == 0 {
            // Two files as the steps of one: the geometries follow one another, as do the payloads.
            let other = Parts::of(&files[random.below(files.len())].1).unwrap();
            let (mine, theirs) = (&parts.directory, &other.directory);
            parts.directory = [&[2], &mine[1..3], &theirs[1..3], &mine[3..], &theirs[3..]].concat();
            parts.directory[1] = random.below(3) as u8;
            parts.directory[3] = random.below(3) as u8;
            parts.payload.extend_from_slice(&other.payload);
        }
        for _ in 0..random.below(4) {
            match random.below(8) {
                0 => {
                    let at = random.below(parts.head.len());
                    parts.head[at] = [0, 1, 2, 24, 0xff][random.below(5)];
                }
                1 => random.edit(&mut parts.payload),
                _ => random.edit(&mut parts.directory),
            }
        }
        let started = Instant::now();
        parts.fit(1 << 18, Filter::open_unverified);
        let filter = watched(name, parts.file(), Filter::open_unverified);
        assert!(started.elapsed() < Duration::from_secs(60), "{name}: {:?} to open", started.elapsed());
        tried += 1;
        if let Ok(filter) = filter {
            opened += 1;
            filter.verify().unwrap();
            agree(&filter, &asked, name);
        }
    }
    println!("{tried} files tried, {opened} opened");
    assert!(opened * 20 > tried, "only {opened} of {tried} files opened: the mutations are too wild to test queries");
}
