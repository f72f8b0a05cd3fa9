//! opening a file -> the memory that it takes, watched in the allocator: at most 64 KiB and 64 bytes for each byte of the file.
//!
//! Every thread has its own count, so that tests beside this one do not disturb it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tamis::adaptive::{
    AdaptiveBloom, AdaptiveChained, AdaptiveFilter, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade,
    LargeBroom, QuotientCascade,
};
use tamis::learned::{Grams, Learned};
use tamis::sets::Editor;
use tamis::slices::{MANIFEST, SliceInfo, Sliced, file_name, join};
use tamis::{Bloom, Cuckoo, Error, FileInfo, Filter, FormatError, Kind, Map, Patch, Quotient, Sequence, Sets, Stacked};

use super::corrupt::Random;
use super::repair::{FORM, Parts};
use super::{SHAPES, excludes, integers, mix};

/// The system's allocator, which counts.
struct Watched;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// A secret that no block may hold when it is freed, and how many did.
    static WIPED: Cell<Option<[u64; 2]>> = const { Cell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Notes that a thread has so many bytes more.
fn note(more: isize) {
    // A thread that ends has no counts any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + more);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
    });
}

/// Looks for either word of the secret in a block that is freed.
fn look(block: &[u8]) {
    let Ok(Some(secret)) = WIPED.try_with(Cell::get) else { return };
    let holds = |word: u64| block.windows(8).any(|bytes| bytes == word.to_le_bytes());
    if secret.into_iter().any(holds) {
        LEFT.with(|left| left.set(left.get() + 1));
    }
}

// SAFETY: every call goes to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promises are those of the system's allocator. Zeros, for all of a block is read when it is freed.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the block has so many bytes, which were zeros before its owner wrote to them.
        look(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        // SAFETY: the block came from there.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// What opening takes at most.
fn allowed(len: usize) -> usize {
    (64 << 10) + 64 * len
}

/// What `open` returns for a file, and the most memory it had at a time on the way.
fn measured<T>(file: Vec<u8>, open: impl FnOnce(Bytes) -> T) -> (T, usize) {
    let file = Bytes::from(file);
    let before = LIVE.get();
    PEAK.set(before);
    let opened = open(file);
    (opened, (PEAK.get() - before) as usize)
}

/// The same, within what the file may take.
pub(crate) fn watched<T>(what: &str, file: Vec<u8>, open: impl FnOnce(Bytes) -> T) -> T {
    let len = file.len();
    let (opened, taken) = measured(file, open);
    assert!(taken <= allowed(len), "{what}: {len} bytes take {taken}, at most {} are allowed", allowed(len));
    opened
}

#[test]
fn the_allocator_is_watched() {
    let file = vec![0; 1000];
    assert!((4096..5000).contains(&measured(file.clone(), |_| vec![1u8; 4096]).1));
    assert!(measured(file, |file| vec![1u8; 1 << 20].len() + file.len()).1 >= 1 << 20);
}

/// Opens a file of any form in every way there is for it; how many ways opened it.
pub(crate) fn open_all(what: &str, file: &[u8]) -> usize {
    macro_rules! ways {
        ($($open:path),*) => {
            [$(watched(what, file.to_vec(), |file| $open(file).is_ok())),*].into_iter().filter(|&opened| opened).count()
        };
    }
    watched(what, file.to_vec(), |file| drop(FileInfo::of(&file)));
    match Parts::of(file).and_then(|parts| parts.head.get(FORM).copied()) {
        Some(0 | 1) => ways!(Filter::open, Bloom::restore, Cuckoo::restore, Quotient::restore, Stacked::restore),
        Some(2) => ways!(Map::open),
        Some(3) => ways!(Sequence::open),
        Some(4) => ways!(Sets::open),
        Some(6) => ways!(Filter::open, Patch::open),
        Some(7) => {
            LazyLock::force(&PLANNER);
            ways!(slice_info, read_slice)
        }
        Some(8) => ways!(read_manifest),
        Some(10) => ways!(Learned::<Grams>::open),
        _ => ways!(
            Broom::restore,
            LargeBroom::restore,
            AdaptiveQuotient::restore,
            AdaptiveBloom::restore,
            QuotientCascade::restore,
            CuckooCascade::restore,
            AdaptiveStacked::restore,
            AdaptiveChained::restore
        ),
    }
}

/// The planner has tables, which are made once and not for a file: slices are compared with their plan.
static PLANNER: LazyLock<()> = LazyLock::new(|| {
    let slice = std::fs::read(Path::new(TESTS).join("golden-slices").join(file_name(0))).unwrap();
    drop(join([slice]));
});

fn slice_info(file: Bytes) -> Result<SliceInfo, FormatError> {
    SliceInfo::open(&file)
}

/// Reads a slice. One alone cannot be joined, and that it is alone is found when it was read.
fn read_slice(file: Bytes) -> Result<(), Error> {
    match join([file]) {
        Err(Error::Build(_)) => Ok(()),
        other => other.map(drop),
    }
}

/// Opens a manifest among the golden slices.
fn read_manifest(file: Bytes) -> Result<Sliced, Error> {
    let (golden, folder) = (Path::new(TESTS).join("golden-slices"), tempfile::tempdir()?);
    for slice in 0..2 {
        std::fs::copy(golden.join(file_name(slice)), folder.path().join(file_name(slice)))?;
    }
    std::fs::write(folder.path().join(MANIFEST), file)?;
    Sliced::read(folder.path())
}

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// All golden files: every form and every kind.
pub(crate) fn golden() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    let folders = [
        "golden",
        "golden-maps",
        "golden-sets",
        "golden-adaptive",
        "golden-learned",
        "golden-patches",
        "golden-slices",
    ];
    for folder in folders {
        for entry in std::fs::read_dir(Path::new(TESTS).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|name| name == "tamis") {
                files.push((path.display().to_string(), std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Small files of every kind, and files of many small parts: what real ones come nearest to the limit with.
fn small() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    for n in [0, 1, 2, 20] {
        for &(name, kind, effort) in SHAPES {
            let filter = tamis::build(integers(n, 1)).kind(kind).effort(effort).fpr(0.01).finish().unwrap();
            files.push((format!("{name}, {n} keys"), filter.as_bytes().to_vec()));
        }
        for (name, kind) in Kind::ALL.iter().filter(|(_, kind)| excludes(*kind)) {
            let filter = tamis::build(integers(n, 1)).kind(*kind).fpr(0.06).exclude(integers(30, 2)).finish().unwrap();
            files.push((format!("{name}, {n} keys"), filter.as_bytes().to_vec()));
        }
        let index = tamis::sets((0..n).map(|key| (key, format!("s{key}")))).finish().unwrap();
        files.push((format!("sets, {n} keys"), index.as_bytes().to_vec()));
    }
    // A group for every quarter of an octave.
    let mut labels = tamis::stream().fpr(0.01).partitioned();
    for octave in 0..12u64 {
        for key in integers(600, octave) {
            labels.push(format!("label {octave}"), key).unwrap();
        }
        for key in integers(300 << octave >> 6, 100 + octave) {
            labels.exclude(format!("label {octave}"), key).unwrap();
        }
    }
    files.push(("partitioned".into(), labels.finish().unwrap().as_bytes().to_vec()));
    // Values of every frequency: a tree of many nodes; and as many values as keys.
    for (name, value) in [
        ("zipf", (|key| 3000 / (key + 1)) as fn(u64) -> u64),
        ("halves", |key| u64::from((key + 1).trailing_zeros())),
        ("distinct", |key| key),
        ("scattered", mix),
    ] {
        for n in [10, 3000] {
            let map = tamis::map((0..n).map(|key| (key, value(key)))).kind(tamis::maps::Kind::Compressed).finish();
            files.push((format!("map, {name}, {n} keys"), map.unwrap().as_bytes().to_vec()));
        }
    }
    for kind in [tamis::sets::Kind::Bloom, tamis::sets::Kind::Cuckoo, tamis::sets::Kind::Frozen] {
        let one = |key: u64| tamis::sets([(key, format!("s{key}"))]).kind(kind).finish().unwrap();
        let mut editor = Editor::new(&one(0)).unwrap();
        (1..500).for_each(|key| editor.merge(&one(key)).unwrap());
        files.push((format!("500 {kind:?} segments of one pair"), editor.snapshot().unwrap()));
    }
    for rate in [0.5, 0.01] {
        for capacity in [1, 1000, 30_000] {
            let quotient = AdaptiveQuotient::with_capacity(capacity).fpr(rate).moves_per_adapt(4);
            let quotient = quotient.secret([1, 2]).build::<u64>().unwrap().snapshot().unwrap();
            files.push((format!("adaptive quotient, {capacity} keys at {rate}"), quotient));
            let cascade = QuotientCascade::with_capacity(capacity).fpr(rate).moves_per_adapt(4);
            let cascade = cascade.secret([1, 2]).build::<u64>().unwrap().snapshot().unwrap();
            files.push((format!("quotient cascade, {capacity} keys at {rate}"), cascade));
            let cascade = CuckooCascade::with_capacity(capacity).fpr(rate).moves_per_adapt(4);
            let cascade = cascade.secret([1, 2]).build::<u64>().unwrap().snapshot().unwrap();
            files.push((format!("cuckoo cascade, {capacity} keys at {rate}"), cascade));
        }
    }
    files
}

/// Opens a patch, or a base and its patches.
fn open_patch(file: impl Into<Bytes>) -> Result<(), FormatError> {
    let file = file.into();
    Patch::open(file.clone()).map(drop).or_else(|_| Filter::open(file).map(drop))
}

/// What is built can be opened.
#[test]
fn real_files_take_what_they_pay_for() {
    let mut most = (0.0, String::new());
    for (name, file) in golden().into_iter().chain(small()) {
        let lacks_secret = Filter::open(file.clone()).err() == Some(FormatError::Secret { given: false });
        assert!(open_all(&name, &file) > 0 || lacks_secret, "{name}");
        let taken = match Parts::of(&file).unwrap().head[FORM] {
            0 | 1 => measured(file.clone(), Filter::open).1,
            2 => measured(file.clone(), Map::open).1,
            4 => measured(file.clone(), Sets::open).1,
            6 => measured(file.clone(), open_patch).1,
            10 => measured(file.clone(), Learned::<Grams>::open).1,
            _ => 0,
        };
        let share = taken as f64 / allowed(file.len()) as f64;
        if share > most.0 {
            most = (share, name);
        }
    }
    println!("{:.0} % of what is allowed: {}", 100.0 * most.0, most.1);
}

/// Damages files of every form in the ways in which bytes go wrong, and in the ways in which they ask for memory: parts that take a byte, repeated.
///
/// For as many seconds as TAMIS_MUTATE_SECONDS says, 3 unless it is set; TAMIS_MUTATE_SEED continues elsewhere.
#[test]
fn damaged_files_take_what_they_pay_for() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let mut random = Random(number("TAMIS_MUTATE_SEED", 0) << 32 | 3 << 30);
    let mut files = golden();
    files.extend(small());
    // Small files have as many ways to go wrong, and are opened sooner.
    files.retain(|(_, file)| file.len() < 20_000);
    let of = |form: u8| files.iter().filter(move |(_, file)| Parts::of(file).unwrap().head[FORM] == form);
    let forms: Vec<Vec<_>> = (0..=10).map(|form| of(form).collect::<Vec<_>>()).filter(|of| !of.is_empty()).collect();
    // All but the number that is reserved.
    assert_eq!(forms.len(), 10);
    let (mut tried, mut opened) = ([0u64; 10], 0u64);
    let end = Instant::now() + Duration::from_secs(number("TAMIS_MUTATE_SECONDS", 3));
    while Instant::now() < end {
        let form = random.below(forms.len());
        let (name, file) = &forms[form][random.below(forms[form].len())];
        let mut parts = Parts::of(file).unwrap();
        for _ in 0..random.below(4) {
            match random.below(12) {
                0 => parts.head[random.below(4)] = [0, 1, 2, 5, 10][random.below(5)],
                1 => random.edit(&mut parts.payload),
                2 => {
                    let (at, byte) = (random.below(parts.directory.len() + 1), [0, 1, 0xff, 3][random.below(4)]);
                    let count = 1 << random.below(13);
                    parts.directory.splice(at..at, std::iter::repeat_n(byte, count));
                }
                3 => {
                    let at = random.below(parts.directory.len());
                    let piece = parts.directory[at..(at + 1 + random.below(40)).min(parts.directory.len())].to_vec();
                    parts.directory.splice(at..at, piece.repeat(1 << random.below(7)));
                }
                _ => random.edit(&mut parts.directory),
            }
        }
        if random.below(2) == 0 {
            match parts.head[FORM] {
                0 | 1 => parts.fit(1 << 14, Filter::open),
                2 => parts.fit(1 << 14, Map::open),
                4 => parts.fit(1 << 14, Sets::open),
                6 => parts.fit(1 << 14, open_patch),
                10 => parts.fit(1 << 14, Learned::<Grams>::open),
                _ => {}
            }
        }
        tried[form] += 1;
        opened += u64::from(open_all(name, &parts.file()) > 0);
    }
    println!("{} damaged files, by form {tried:?}; {opened} opened", tried.iter().sum::<u64>());
    assert!(tried.iter().all(|&tried| tried > 100) && opened > 100, "{tried:?}, {opened}");
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A file of a form: header, payload and directory as they are given, with checksums that hold.
fn file(form: u8, bits: u8, keys: u64, payload: &[u8], directory: &[u8]) -> Vec<u8> {
    let mut head = vec![form, 0, 0, bits, 0];
    varint(&mut head, keys);
    varint(&mut head, keys);
    Parts::new(&head, payload, directory).file()
}

/// Every leaf without keys, a byte for each shard.
#[test]
fn empty_parts_take_what_they_pay_for() {
    for bits in [0, 4, 10, 14] {
        for tag in 1..=9u8 {
            // The first of these is an empty table, of one to six bytes.
            let empty: &[u8] = match tag {
                1 => &[0, 0],
                2 => &[0, 1, 0],
                4 => &[0, 0x80, 2, 0, 0],
                8 => &[0, 4, 0, 0, 0, 0],
                9 => &[0, 1, 0, 0, 0],
                _ => &[0],
            };
            let mut list = vec![1, 0, tag];
            list.extend(empty.repeat(1 << bits));
            let filter = file(0, bits, 0, &[], &list);
            let opened = open_all(&format!("2^{bits} parts of leaf {tag}"), &filter);
            assert!(opened > 0 || bits > 4, "2^{bits} parts of leaf {tag}");
            let mut map = vec![0, 0, 1, 1, 1, 1, 0, 0];
            map.extend(&list);
            map.push(2);
            open_all(&format!("a map of 2^{bits} parts of leaf {tag}"), &file(2, bits, 0, &[0, 0], &map));
            if bits <= 10 {
                let mut groups = vec![0; 8];
                varint(&mut groups, 255);
                (0..255).for_each(|_| {
                    groups.extend([bits, 0, 0]);
                    groups.extend(&list);
                });
                groups.extend([0, 0]);
                open_all(&format!("255 groups of 2^{bits} parts of leaf {tag}"), &file(1, 0, 0, &[], &groups));
            }
        }
    }
    // All the steps there may be.
    let mut list = vec![64];
    list.extend([0, 5].repeat(64));
    list.extend([0; 64]);
    open_all("64 steps", &file(0, 0, 0, &[], &list));
    // A level of a ribbon takes three bytes.
    let mut list = vec![1, 0, 4, 0, 0x80, 2, 0, 64];
    list.extend([0; 3 * 64]);
    open_all("64 levels", &file(0, 0, 0, &[], &list));
}

/// The coder of a map's values: so many decisions that are all yes, with one chance that learns.
fn coded(count: u64) -> Vec<u8> {
    let (mut low, mut high, mut chance, mut out) = (0u32, u32::MAX, 2048u32, vec![]);
    for _ in 0..count {
        high = low + ((u64::from(high - low) * u64::from(chance)) >> 12) as u32;
        chance += 4064u32.saturating_sub(chance) >> 5;
        while (low ^ high) >> 24 == 0 {
            out.push((high >> 24) as u8);
            low <<= 8;
            high = high << 8 | 255;
        }
    }
    out.push((low >> 24) as u8 + 1);
    out
}

/// A map to so many consecutive numbers, whose table takes a few bytes.
fn many_values(values: u64) -> Vec<u8> {
    let coded = coded(values);
    let mut table = vec![1, 1];
    varint(&mut table, values);
    varint(&mut table, coded.len() as u64);
    table.extend(&coded);
    let mut directory = vec![0, 0, 0, 0];
    varint(&mut directory, table.len() as u64);
    file(2, 0, 1, &table, &directory)
}

/// The names of some sets, and how the directory of their index begins.
fn names(names: &[&str]) -> (Vec<u8>, Vec<u8>) {
    let (mut payload, mut directory) = (vec![], vec![0]);
    for name in names {
        varint(&mut payload, name.len() as u64);
        payload.extend(name.as_bytes());
        payload.extend([0, 1]);
    }
    varint(&mut directory, names.len() as u64);
    varint(&mut directory, payload.len() as u64);
    (payload, directory)
}

#[test]
fn tables_of_values_take_what_they_pay_for() {
    for values in [1000, 1 << 14, 1 << 22] {
        let map = many_values(values);
        let opened = watched(&format!("{values} values"), map.clone(), Map::open);
        assert_eq!(opened.is_ok(), values == 1000, "{values}: {:?}", opened.err());
        // Files inside a file have no allowance of their own.
        for segments in [1, 60, if values == 1000 { 2000 } else { 100 }] {
            let (mut payload, mut directory) = names(&["a"]);
            varint(&mut directory, segments);
            for _ in 0..segments {
                directory.extend([0, 1, 1, 0, 1, 0, 0]);
                varint(&mut directory, map.len() as u64);
                directory.extend([0, 0, 0]);
            }
            payload.extend(map.repeat(segments as usize));
            let opened = watched(
                &format!("{segments} maps of {values} values"),
                file(4, 0, 1, &payload, &directory),
                Sets::open,
            );
            assert_eq!(opened.is_ok(), values == 1000 && segments == 1, "{segments} maps of {values} values");
        }
    }
}

/// An index whose only segment claims so many pairs, of one key: a frozen one, a word of a Bloom table, or four slots of a cuckoo table.
fn index(kind: u8, sets: &[&str], pairs: u64, numbers: &[u64]) -> Result<Sets, FormatError> {
    let (mut payload, mut directory) = names(sets);
    directory.extend([1, kind, 1]);
    varint(&mut directory, pairs);
    directory.push(0);
    varint(&mut directory, numbers.len() as u64);
    directory.push(1);
    numbers.iter().for_each(|&number| varint(&mut directory, number + 1));
    payload.extend(vec![0xff; 8 * usize::from(kind)]);
    match kind {
        0 => {
            let map = many_values(1);
            payload.extend(&map);
            directory.push(0);
            varint(&mut directory, map.len() as u64);
            directory.extend([0, 0, 0]);
        }
        1 => directory.extend([0, 0, 0, 1, 1, 1, 0, 0]),
        _ => directory.extend([0, 0, 0, 1, 4, 1, 0, 0]),
    }
    Sets::open_unverified(file(4, 0, 1, &payload, &directory))
}

/// What no builder writes no reader takes.
#[test]
fn impossible_indexes_are_named() {
    assert_eq!(index(1, &["a", "b"], 2, &[0, 1]).unwrap().find(&b"k"[..]).unwrap(), [0, 1]);
    let refused =
        |kind, sets: &[&str], pairs, numbers: &[u64]| index(kind, sets, pairs, numbers).unwrap_err().to_string();
    for pairs in [5, 10_000_000_000] {
        let reason = format!("invalid file: directory: {pairs} pairs in a sketch that holds 4 at most");
        assert_eq!(refused(2, &["a"], pairs, &[0]), reason);
    }
    index(2, &["a"], 4, &[0]).unwrap();
    assert_eq!(refused(1, &["a", "b"], 2, &[1, 1, 0]), "invalid file: directory: a segment has a set twice");
    assert_eq!(refused(1, &["a", "b", "a"], 2, &[0]), "invalid file: names: two sets are named \"a\"");
    for name in ["a,b", "a\tb", "a\nb", "a\rb", "a\0b", ""] {
        let reason = tamis::sets::check_name(name).unwrap_err().to_string();
        assert_eq!(refused(1, &[name], 1, &[0]), format!("invalid file: names: {reason}"));
        let build = tamis::sets([("key", name)]).finish().unwrap_err();
        assert!(build.to_string().contains(&reason), "{build}");
    }
}

/// An index that claims any number of pairs grows by what it takes: a frozen one may have so many, and so may a Bloom table.
#[test]
fn claims_make_no_room() {
    for kind in [0, 1] {
        let index = index(kind, &["a", "b"], 10_000_000_000, &[1, 0]).unwrap();
        assert_eq!(index.pairs(), 10_000_000_000);
        let mut editor = Editor::new(&index).unwrap();
        editor.insert("key", 0).unwrap();
        assert!(editor.snapshot().unwrap().len() < 1 << 16);
        let mut pairs = tamis::sets::stream().like(&index).start();
        pairs.push("key", 0).unwrap();
        assert!(pairs.finish().unwrap().as_bytes().len() < 1 << 16);
    }
}

/// A list that names every set in a few bits, in many segments: neither time nor memory for each.
#[test]
fn long_lists_take_what_they_pay_for() {
    let all: Vec<String> = (0..3000).map(|set| format!("{set}")).collect();
    let mut pairs = vec![];
    for key in 0..3u64 {
        pairs.extend(all.iter().map(|set| (key, set.as_str())));
    }
    let one = |seed: u64| tamis::sets(pairs.iter().map(|&(key, set)| (key + 10 * seed, set))).finish().unwrap();
    let mut editor = Editor::new(&one(0)).unwrap();
    (1..100).for_each(|seed| editor.merge(&one(seed)).unwrap());
    let file = editor.snapshot().unwrap();
    let opened = watched("long lists", file, Sets::open).unwrap();
    assert_eq!(opened.find(990u64).unwrap().len(), 3000);
}

/// How many blocks hold a word of the secret when they are freed.
fn left_by(run: impl FnOnce()) -> u32 {
    LEFT.set(0);
    WIPED.set(Some(SECRET));
    run();
    WIPED.set(None);
    LEFT.get()
}

const SECRET: [u64; 2] = [0x5ec2_e75e_c2e7_0001, 0x5ec2_e75e_c2e7_0002];

#[test]
fn no_memory_is_freed_with_a_secret_in_it() {
    assert_eq!(left_by(|| drop(vec![SECRET])), 1);
    let options = || tamis::Options::default().threads(1).secret(SECRET).secret_beside();
    let hasher = || tamis::Hasher::secret(SECRET);
    let all: [(&str, &dyn Fn()); 9] = [
        ("hasher", &|| drop(Box::new([hasher(), hasher().clone()]))),
        ("options", &|| drop(Box::new(options().clone()))),
        ("filter", &|| {
            let filter = options().build(0..1000u64).exclude(1000..2000u64).finish().unwrap();
            let again = Box::new(Filter::open_with_secret(filter.as_bytes().to_vec(), SECRET).unwrap());
            assert!(again.clone().contains(7u64).unwrap() && Filter::open(filter.into_bytes()).is_err());
        }),
        ("partitions", &|| {
            let mut keys = options().partitioned();
            (0..1000u64).for_each(|key| keys.push(if key % 2 == 0 { "even" } else { "odd" }, key).unwrap());
            assert!(keys.finish().unwrap().contains_in("odd", 7u64).unwrap());
        }),
        ("map", &|| {
            let map = tamis::map((0..1000u64).map(|key| (key, key % 3))).options(options()).finish().unwrap();
            assert!(Map::open_with_secret(map.into_bytes(), SECRET).unwrap().get(7u64).unwrap().is_some());
        }),
        ("sets", &|| {
            let pairs = (0..1000u64).map(|key| (key, if key % 2 == 0 { "even" } else { "odd" }));
            let sets = tamis::sets(pairs).options(options()).finish().unwrap();
            assert_eq!(Editor::new(&sets).unwrap().find(7u64).unwrap(), [1]);
        }),
        ("remote", &|| {
            let file = options().build(0..1000u64).finish().unwrap().into_bytes();
            let len = file.len() as u64;
            drop(Box::new(tamis::Remote::open_with_secret(file, len, SECRET).unwrap()));
        }),
        ("filters that change", &|| {
            let mut bloom = Bloom::with_capacity(100).hasher(hasher()).build::<u64>().unwrap();
            bloom.insert(7u64).unwrap();
            drop(Box::new(bloom.clone()));
            let empty = Bloom::with_capacity(100).hasher(hasher()).build::<u64>().unwrap();
            let mut chained = Box::new(tamis::Chained::over(empty).unwrap());
            chained.insert(8u64).unwrap();
            drop(Box::new(Quotient::with_capacity(100).hasher(hasher()).build::<u64>().unwrap()));
            drop(Box::new(Cuckoo::with_capacity(100).hasher(hasher()).build::<u64>().unwrap()));
        }),
        ("adaptive filters", &|| {
            let mut keys: Vec<u64> = (0..100).collect();
            drop(Box::new(AdaptiveChained::with_fpr(0.01).secret(SECRET).build(&mut keys).unwrap()));
            drop(Box::new(Broom::with_capacity(100).secret(SECRET).build::<u64>().unwrap()));
        }),
    ];
    for (name, run) in all {
        assert_eq!(left_by(run), 0, "{name}: blocks that were freed with the secret");
    }
}
