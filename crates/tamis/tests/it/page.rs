//! docs/format.md -> its example, its test vectors and its numbers, against the library.

use std::path::{Path, PathBuf};

use tamis::adaptive::{AdaptiveFilter, Broom};
use tamis::{Digest, Filter, FormatError, Hasher, Kind, Map, Remote, Sequence, Sets};

use super::memory::{golden, open_all};
use super::questions::Asked;
use super::repair::{FORM, HASH, KEY_TYPE, Parts};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/format.md")).unwrap()
}

/// The lines of a chapter.
fn chapter<'a>(page: &'a str, title: &str) -> impl Iterator<Item = &'a str> {
    let title = title.to_string();
    let lines = page.lines().skip_while(move |line| !(line.starts_with("## ") && line.ends_with(&title)));
    lines.skip(1).take_while(|line| !line.starts_with("## "))
}

#[test]
fn the_file_of_the_page_is_written_so() {
    let page = page();
    let mut drawn: Vec<u8> = vec![];
    for line in chapter(&page, "A file, byte by byte") {
        let Some((at, rest)) = line.trim_start().split_once("  ") else { continue };
        let Ok(at) = at.parse::<usize>() else { continue };
        assert_eq!(at, drawn.len(), "{line}");
        let bytes = rest.split("  ").next().unwrap_or_default();
        drawn.extend(bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    let filter = tamis::build([42]).kind(Kind::ClassicBloom).finish().unwrap();
    assert_eq!(drawn, filter.as_bytes());
    let digest = Hasher::seeded(0).integer(42).to_bits();
    let text = format!("hi = `{:#018x}`, lo = `{:#018x}`", (digest >> 64) as u64, digest as u64);
    assert!(page.replace('\n', " ").contains(&text), "{text}");
}

/// A hash as the page names it. Mixed ones are those of golden files.
fn hasher(words: &[&str]) -> Hasher {
    let word = |at: usize| u64::from_str_radix(words[at], 16).unwrap();
    let golden = |name: &str| {
        let file = std::fs::read(root().join("crates/tamis/tests/golden").join(name)).unwrap();
        Filter::open(file).unwrap().hasher().clone()
    };
    match words[0] {
        "0" => Hasher::seeded(word(1)),
        "1" | "4" => Hasher::secret([word(1), word(2)]),
        "2" => golden("mixed.tamis"),
        _ if word(2) == 0 => Hasher::foreign(word(1)),
        _ => golden("digests-mixed.tamis"),
    }
}

#[test]
fn test_vectors_hold() {
    let (page, mut count) = (page(), 0);
    for line in chapter(&page, "Test vectors").filter(|line| line.starts_with("  hash ")) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let [hash @ .., key, hi, lo] = &words[..] else { panic!("{line}") };
        let hasher = hasher(hash);
        let stored: Vec<u64> = hash[1..].iter().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        assert_eq!(hasher.words()[..stored.len()], stored[..], "{line}");
        let digest = Asked::parse(key).digest(&hasher).to_bits();
        assert_eq!([format!("{:016x}", digest >> 64), format!("{:016x}", digest as u64)], [*hi, *lo], "{line}");
        count += 1;
    }
    for line in chapter(&page, "Test vectors").filter(|line| line.starts_with("  xxh3-64 ")) {
        let [_, key, sum] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let Asked::Bytes(bytes) = Asked::parse(key) else { panic!("{line}") };
        assert_eq!(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)), sum, "{line}");
        count += 1;
    }
    assert!(count > 50, "{count} vectors");
    for bits in [64, 128] {
        let hash = |i: u128| if bits == 64 { Digest::from_hash(i as u64) } else { Digest::from(i) };
        let text = format!("  {bits} bits  {:032x}  {:032x}", 1, hash(1).to_bits());
        assert!(page.contains(&text), "{text}");
    }
}

/// A file that says `number` where this release knows fewer is refused, and the error names the number.
#[track_caller]
fn refused<T>(parts: &Parts, open: fn(Vec<u8>) -> Result<T, FormatError>, what: &str, number: u64) {
    match open(parts.file()).err() {
        Some(FormatError::Unsupported { what: found, number: n }) if found == what && n == number => {}
        other => panic!("{what} {number}: {other:?}"),
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = vec![];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn filter(bytes: Vec<u8>) -> Result<Filter, FormatError> {
    Filter::open(bytes)
}

fn map(bytes: Vec<u8>) -> Result<Map, FormatError> {
    Map::open_unverified(bytes)
}

fn sets(bytes: Vec<u8>) -> Result<Sets, FormatError> {
    Sets::open_unverified(bytes)
}

/// The end of a file is enough to refuse it.
fn remote(bytes: Vec<u8>) -> Result<Remote, FormatError> {
    let len = bytes.len() as u64;
    Remote::open(bytes, len)
}

#[test]
fn every_unknown_number_of_the_frame_is_unsupported() {
    let sound = Parts::of(tamis::build(0..40).kind(Kind::Ribbon).finish().unwrap().as_bytes()).unwrap();
    let check = |edit: &dyn Fn(&mut Parts), what: &str, number: u64| {
        let mut parts = sound.clone();
        edit(&mut parts);
        refused(&parts, filter, what, number);
        refused(&parts, remote, what, number);
    };
    for bit in 0..16 {
        check(&|p| p.front[10 + bit / 8] = 1 << (bit % 8), "flags", 1 << bit);
    }
    let sections = (7..400).step_by(2).chain([(1 << 40) + 1, u64::MAX]);
    for number in sections {
        check(&|p| p.more.push((number, vec![])), "section", number);
    }
    for number in (0..300).chain([u64::MAX]) {
        check(&|p| p.more.push((5, varint(number))), "preparation of keys", number);
    }
    for byte in 0..=255 {
        let number = u64::from(byte);
        if byte == 9 || byte > 10 {
            check(&|p| p.head[FORM] = byte, "form", number);
        }
        if byte > 4 {
            check(&|p| p.head[HASH] = byte, "hash", number);
        }
        if byte > 3 {
            check(&|p| p.head[KEY_TYPE] = byte, "key type", number);
            // Also where the secret is kept outside.
            let hash = |p: &mut Parts| (p.head[HASH], p.head[KEY_TYPE]) = (4, byte);
            check(&hash, "key type", number);
        }
        if byte > 2 {
            check(&|p| p.directory[1] = byte, "role of a layer", number);
        }
        if byte == 0 || byte > 9 {
            check(&|p| p.directory[2] = byte, "structure", number);
        }
    }
}

#[test]
fn every_unknown_number_of_a_structure_is_unsupported() {
    // A number of a salt, a width of two bytes, a skip and a number of levels come before the shape.
    let ribbon = Parts::of(tamis::build(0..40).kind(Kind::Ribbon).finish().unwrap().as_bytes()).unwrap();
    let fuse = Parts::of(tamis::build(0..40).kind(Kind::Fuse).finish().unwrap().as_bytes()).unwrap();
    let integrated: Kind = "integrated".parse().unwrap();
    let integrated = tamis::build(0..40).exclude(40..90).kind(integrated).finish().unwrap();
    assert!(integrated.may_change());
    let integrated = Parts::of(integrated.as_bytes()).unwrap();
    let values = Parts::of(tamis::map((0..40u64).map(|i| (i, i % 3))).finish().unwrap().as_bytes()).unwrap();
    let index = Parts::of(tamis::sets([("ann", "red")]).finish().unwrap().as_bytes()).unwrap();
    assert_eq!((&ribbon.directory[..4], &fuse.directory[..3]), (&[1, 0, 4, 0][..], &[1, 0, 3][..]));
    assert_eq!((&values.directory[1..4], index.directory[3]), (&[0, 1, 1][..], 1), "{:?}", index.directory);
    let with = |parts: &Parts, at: usize, number: u64| {
        let mut parts = parts.clone();
        parts.directory.splice(at..at + 1, varint(number));
        parts
    };
    for number in (0..300).chain([u64::MAX]) {
        if number > 4 {
            refused(&with(&ribbon, 8, number), filter, "shape of a ribbon", number);
            refused(&with(&integrated, 3, number), filter, "variant of an integrated filter", number);
        }
        if number > 0 {
            refused(&with(&integrated, 4, number), filter, "base of an integrated filter", number);
        }
        if ![0, 3, 4].contains(&number) {
            refused(&with(&fuse, 3, number), filter, "number of probes", number);
        }
        if (3..256).contains(&number) {
            refused(&with(&values, 4, 0).with_byte(4, number), map, "kind of node", number);
            let mut table = values.clone();
            let at = table.payload.len() - table_len(&table);
            table.payload[at] = number as u8;
            refused(&table, map, "kind of values", number);
            refused(&index.clone().with_byte(4, number), sets, "kind of segment", number);
        }
        if (2..256).contains(&number) {
            // Keys, pairs, capacity and sets of the segment lie between.
            refused(&index.clone().with_byte(9, number), sets, "list of a segment's sets", number);
        }
    }
}

/// The length of the table of values, which is the last number of the contents.
fn table_len(parts: &Parts) -> usize {
    parts.directory.last().copied().unwrap().into()
}

impl Parts {
    fn with_byte(mut self, at: usize, number: u64) -> Parts {
        self.directory[at] = number as u8;
        self
    }
}

/// Files of every form: what readers may skip changes nothing, what they must know does.
#[test]
fn every_form_can_grow() {
    let mut forms = [0; 11];
    for (name, file) in golden().into_iter().filter(|(_, file)| file.len() < 20_000) {
        let sound = Parts::of(&file).unwrap();
        let ways = open_all(&name, &file);
        let mut later = sound.clone();
        later.more.push((2000, vec![0xff; 40]));
        later.front[15] ^= 0x80;
        assert_eq!(open_all(&name, &later.file()), ways, "{name}");
        forms[usize::from(sound.head[FORM])] += 1;
        later.front[11] = 0x80;
        assert_eq!(open_all(&name, &later.file()), 0, "{name}");
        let unsupported = FormatError::Unsupported { what: "flags", number: 0x8000 };
        assert_eq!(Filter::open(later.file()).unwrap_err(), unsupported, "{name}");
        assert_eq!(Map::open(later.file()).unwrap_err(), unsupported, "{name}");
        assert_eq!(Sequence::open(later.file()).unwrap_err(), unsupported, "{name}");
        assert_eq!(Sets::open(later.file()).unwrap_err(), unsupported, "{name}");
    }
    assert!([0, 1, 2, 3, 4, 5, 6, 7, 8, 10].iter().all(|&form| forms[form] > 0), "{forms:?}");
}

#[test]
fn every_unknown_adaptive_filter_is_unsupported() {
    let folder = root().join("crates/tamis/tests/golden-adaptive");
    let sound = Parts::of(&std::fs::read(folder.join("broom_small.tamis")).unwrap()).unwrap();
    for kind in (0..=255).filter(|kind| !(1..=8).contains(kind)) {
        let open = |bytes: Vec<u8>| Broom::restore(bytes).map(drop);
        refused(&sound.clone().with_byte(0, kind), open, "kind of adaptive filter", kind);
    }
}

/// Units of sections that a reader does not know are skipped with them.
#[test]
fn units_of_skipped_sections_are_skipped() {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/changing.tamis")).unwrap();
    let known = Filter::open(file.clone()).unwrap();
    let mut parts = Parts::of(&file).unwrap();
    let section = parts.more.iter_mut().find(|section| section.0 == 10).unwrap();
    section.0 = 12;
    let later = parts.file();
    let filter = Filter::open(later.clone()).unwrap();
    let remote = remote(later).unwrap();
    assert_eq!((filter.len(), remote.len()), (known.len(), known.len()));
    for number in 0..3000 {
        let digest = known.hasher().integer(number);
        assert_eq!(filter.contains_digest(digest), known.contains_digest(digest));
    }
    // Only whole units are skipped: here the first unit goes on behind what the filter reads.
    let mut joined = parts.clone();
    joined.payload.extend([0; 64]);
    let error = Filter::open(joined.file()).unwrap_err().to_string();
    assert!(error.contains("between payload and directory"), "{error}");
    // Nothing is skipped with a section that is known, or with none.
    parts.more.retain(|section| section.0 != 12);
    assert!(Filter::open_unverified(parts.file()).is_err());
    let len = parts.file().len() as u64;
    assert!(Remote::open(parts.file(), len).is_err());
}
