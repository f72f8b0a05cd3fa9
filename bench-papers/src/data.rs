//! files of real data -> sets of 64-bit keys.
//!
//! The files are those of the folder that `TAMIS_DATA` names. Text is hashed to 64 bits, and a collision between keys
//! and negatives, which would make an experiment impossible and not wrong, is looked for.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tamis::Hasher;
use tamis_bench::stream::Stream;

/// Keys and negatives, distinct and disjoint.
pub(crate) struct Sets {
    pub(crate) keys: Vec<u64>,
    pub(crate) negatives: Vec<u64>,
}

/// The text behind every number.
pub(crate) type Named = HashMap<u64, Vec<u8>>;

pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("TAMIS_DATA").map(PathBuf::from).filter(|dir| dir.is_dir())
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let named = |e: std::io::Error| format!("{}: {e}", file.file_name().unwrap_or_default().display());
    let open = File::open(file).map_err(named)?;
    let mut bytes = Vec::new();
    match file.extension().and_then(|e| e.to_str()) {
        Some("xz") => liblzma::read::XzDecoder::new(open).read_to_end(&mut bytes).map_err(named)?,
        _ => zstd::Decoder::new(open).map_err(named)?.read_to_end(&mut bytes).map_err(named)?,
    };
    Ok(bytes)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty())
}

/// Hashes both sides; what is a key is not a negative.
fn sets<'a>(keys: impl Iterator<Item = &'a [u8]>, negatives: impl Iterator<Item = &'a [u8]>) -> Sets {
    let hasher = Hasher::seeded(0);
    let hash = |line: &[u8]| hasher.bytes(line).to_bits() as u64;
    let distinct = |numbers: HashSet<u64>| {
        let mut numbers: Vec<u64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers
    };
    let keys: HashSet<u64> = keys.map(hash).collect();
    let negatives = negatives.map(hash).filter(|key| !keys.contains(key)).collect();
    Sets { keys: distinct(keys), negatives: distinct(negatives) }
}

/// The Birkbeck corpus: `$` before a word, its misspellings below it. Keys are the words.
pub(crate) fn spelling(dir: &Path) -> Result<Sets, Box<dyn Error>> {
    let bytes = read(&dir.join("spelling/birkbeck-missp.dat.xz"))?;
    let words = lines(&bytes).filter_map(|line| line.strip_prefix(b"$"));
    Ok(sets(words, lines(&bytes).filter(|line| line[0] != b'$')))
}

/// So many words, and so many of their misspellings that are no words: what a corpus has, made up. A word is syllables; a
/// misspelling leaves out a letter, doubles one, swaps two or has another vowel.
pub(crate) fn generated_spelling(words: usize, misspellings: usize) -> Sets {
    let mut stream = Stream::new(1);
    let mut draw = |below: usize| (stream.draw() % below as u64) as usize;
    let mut word = || -> Vec<u8> {
        let syllables = 2 + draw(3);
        (0..syllables).flat_map(|_| [b"bcdfglmnprst"[draw(12)], b"aeiou"[draw(5)], b"lmnrst"[draw(6)]]).collect()
    };
    let mut list = BTreeSet::new();
    while list.len() < words {
        list.insert(word());
    }
    let list: Vec<Vec<u8>> = list.into_iter().collect();
    let mut wrong = BTreeSet::new();
    while wrong.len() < misspellings && !list.is_empty() {
        let mut word = list[draw(words)].clone();
        let at = draw(word.len() - 1);
        match draw(4) {
            0 => drop(word.remove(at)),
            1 => word.insert(at, word[at]),
            2 => word.swap(at, at + 1),
            _ => word[at] = b"aeiou"[draw(5)],
        }
        if list.binary_search(&word).is_err() {
            wrong.insert(word);
        }
    }
    sets(list.iter().map(Vec::as_slice), wrong.iter().map(Vec::as_slice))
}

/// Phishing hosts against the million domains of the Tranco list.
pub(crate) fn urls(dir: &Path) -> Result<Sets, Box<dyn Error>> {
    let hosts = read(&dir.join("urls/phishing-hosts.txt.zst"))?;
    let ranked = read(&dir.join("urls/tranco-top1m.txt.zst"))?;
    Ok(sets(lines(&hosts), lines(&ranked)))
}

/// The same, with the domains in the order of their ranks, and the name of every number.
pub(crate) fn ranked_urls(dir: &Path) -> Result<(Sets, Named), Box<dyn Error>> {
    let hosts = read(&dir.join("urls/phishing-hosts.txt.zst"))?;
    let ranked = read(&dir.join("urls/tranco-top1m.txt.zst"))?;
    let hasher = Hasher::seeded(0);
    let named = |line: &[u8]| (hasher.bytes(line).to_bits() as u64, line.to_vec());
    let names = lines(&hosts).chain(lines(&ranked)).map(named).collect();
    Ok((in_order(lines(&hosts), lines(&ranked)), names))
}

/// Hashes both sides and keeps the order of the negatives.
fn in_order<'a>(keys: impl Iterator<Item = &'a [u8]>, negatives: impl Iterator<Item = &'a [u8]> + Clone) -> Sets {
    let Sets { keys, negatives: wanted } = sets(keys, negatives.clone());
    let mut wanted: HashSet<u64> = wanted.into_iter().collect();
    let hasher = Hasher::seeded(0);
    let negatives =
        negatives.map(|line| hasher.bytes(line).to_bits() as u64).filter(|key| wanted.remove(key)).collect();
    Sets { keys, negatives }
}

/// Names of hosts: members, and negatives in the order of their ranks.
pub(crate) struct Names {
    pub(crate) source: &'static str,
    pub(crate) members: Vec<Vec<u8>>,
    pub(crate) negatives: Vec<Vec<u8>>,
}

/// Names of one dot, without `www.`.
fn comparable(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines(bytes)
        .map(|line| line.trim_ascii())
        .map(|line| line.strip_prefix(b"www.").unwrap_or(line))
        .filter(|line| line.iter().filter(|&&byte| byte == b'.').count() == 1)
}

/// Names of phishing hosts against well-known names of the Tranco list; without that data, the two lists of the repository. At most `most`
/// members, and at most so many negatives for each.
///
/// Names of one dot on both sides, so that the number of dots tells nothing, and names on both lists are left out.
pub(crate) fn host_names(most: usize, per_member: usize) -> Result<Names, Box<dyn Error>> {
    let (source, [bad, good]) = match folder() {
        Some(dir) => {
            let files = ["urls/phishing-hosts.txt.zst", "urls/tranco-top1m.txt.zst"];
            ("phishing hosts against the Tranco list", [read(&dir.join(files[0]))?, read(&dir.join(files[1]))?])
        }
        None => {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/quickstart");
            let files = [std::fs::read(dir.join("deny.txt"))?, std::fs::read(dir.join("allow.txt"))?];
            ("the two lists of the repository", files)
        }
    };
    let [bad_names, good_names] = [&bad, &good].map(|bytes| comparable(bytes).collect::<BTreeSet<&[u8]>>());
    let members: Vec<Vec<u8>> = bad_names.difference(&good_names).take(most).map(|name| name.to_vec()).collect();
    let mut seen = bad_names;
    let negatives = comparable(&good).filter(|name| seen.insert(name)).take(members.len() * per_member);
    let negatives = negatives.map(<[u8]>::to_vec).collect();
    Ok(Names { source, members, negatives })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn both_sides_are_distinct_and_disjoint() {
        let text = b"$word\r\nwrod\r\nworld\r\n$world\r\nwrold\r\nwrod\r\n\r\n";
        let words = lines(text).filter_map(|line| line.strip_prefix(b"$"));
        let sets = sets(words, lines(text).filter(|line| line[0] != b'$'));
        assert_eq!((sets.keys.len(), sets.negatives.len()), (2, 2));
    }

    #[test]
    fn ranks_are_kept() {
        let hash = |line: &str| Hasher::seeded(0).bytes(line.as_bytes()).to_bits() as u64;
        let sets = in_order(lines(b"bad\n"), lines(b"zeta\nbad\nalpha\nzeta\n"));
        assert_eq!((sets.keys, sets.negatives), (vec![hash("bad")], vec![hash("zeta"), hash("alpha")]));
    }

    #[test]
    fn names_of_hosts_are_comparable_and_disjoint() {
        let Names { members, negatives, .. } = host_names(5000, 2).unwrap();
        assert_eq!((members.len(), negatives.len()), (5000, 10_000));
        let all: HashSet<&Vec<u8>> = members.iter().chain(&negatives).collect();
        assert_eq!(all.len(), 15_000);
        assert!(all.iter().all(|name| name.iter().filter(|&&byte| byte == b'.').count() == 1));
    }

    /// The numbers of the paper's section 5.1.
    #[test]
    fn corpora_have_the_sizes_of_the_paper() {
        let of = |sets: Sets| (sets.keys.len(), sets.negatives.len());
        assert_eq!(of(generated_spelling(6136, 32_894)), (6136, 32_894));
        assert_eq!(of(generated_spelling(3, 5)), (3, 5));
        if let Some(dir) = folder() {
            assert_eq!(of(spelling(&dir).unwrap()), (6136, 32_894));
        }
    }
}
