//! files of real data -> keys and the sets that hold them.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::Path;

use tamis::Hasher;
use tamis_bench::stream::Stream;

use super::Load;

/// The length of the genomes' words.
pub(crate) const KMER: usize = 31;

/// Where absent keys come from: none of 2^64 numbers is likely to be a key.
const STRANGERS: u64 = 0x7374_7261;

/// `origin<TAB>cc:rank,cc:rank,...`: the countries in which a web origin is popular.
pub(crate) fn countries(text: &[u8]) -> Load {
    let hasher = Hasher::seeded(0);
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let (mut keys, mut starts, mut ids) = (Vec::new(), vec![0], Vec::new());
    for line in text.split(|&b| b == b'\n') {
        let mut columns = line.split(|&b| b == b'\t');
        let (Some(origin), Some(countries)) = (columns.next(), columns.next()) else { continue };
        let first = ids.len();
        for country in countries.split(|&b| b == b',') {
            let code = country.split(|&b| b == b':').next().unwrap_or(country);
            let next = numbers.len() as u32;
            ids.push(*numbers.entry(code).or_insert(next));
        }
        ids[first..].sort_unstable();
        keys.push(hasher.bytes(origin).to_bits() as u64);
        starts.push(ids.len() as u32);
    }
    Load::from_lists("Countries of web origins", numbers.len(), (keys, starts, ids), Stream::new(STRANGERS))
}

/// Ten genomes as sets of canonical words of 31 bases.
pub(crate) fn genomes(dir: &Path) -> Result<Load, Box<dyn Error>> {
    let named = |e: std::io::Error| format!("genomes: {e}");
    let mut files: Vec<_> = fs::read_dir(dir).map_err(named)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    let mut sets = Vec::new();
    for file in &files {
        let mut text = Vec::new();
        let open = fs::File::open(file).map_err(named)?;
        flate2::read::MultiGzDecoder::new(open).read_to_end(&mut text).map_err(named)?;
        let mut words = Vec::new();
        kmers(&text, |word| words.push(word));
        words.sort_unstable();
        words.dedup();
        sets.push(words);
    }
    Ok(merge("Genomes, canonical 31-mers", &sets))
}

/// Sorted sets of keys, merged to keys with their sets.
fn merge(name: &str, sets: &[Vec<u64>]) -> Load {
    let (mut keys, mut starts, mut ids) = (Vec::new(), vec![0], Vec::new());
    let mut rest: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
    while let Some(key) = rest.iter().filter_map(|rest| rest.first().copied()).min() {
        for (set, rest) in rest.iter_mut().enumerate() {
            if let Some((_, after)) = rest.split_first().filter(|(first, _)| **first == key) {
                ids.push(set as u32);
                *rest = after;
            }
        }
        keys.push(key);
        starts.push(ids.len() as u32);
    }
    Load::from_lists(name, sets.len(), (keys, starts, ids), Stream::new(STRANGERS))
}

/// Calls `each` with the canonical words of a FASTA file, two bits for a base: the lesser of a word and its reverse
/// complement. A letter that is no base ends a word, and so does a header.
pub(crate) fn kmers(fasta: &[u8], mut each: impl FnMut(u64)) {
    const MASK: u64 = (1 << (2 * KMER)) - 1;
    let (mut forward, mut backward, mut length) = (0u64, 0u64, 0);
    for line in fasta.split(|&b| b == b'\n') {
        if line.first() == Some(&b'>') {
            length = 0;
            continue;
        }
        for letter in line {
            let base = match letter | 32 {
                b'a' => 0,
                b'c' => 1,
                b'g' => 2,
                b't' => 3,
                b'\r' | b'-' => continue,
                _ => {
                    length = 0;
                    continue;
                }
            };
            forward = (forward << 2 | base) & MASK;
            backward = backward >> 2 | (3 - base) << (2 * KMER - 2);
            length += 1;
            if length >= KMER {
                each(forward.min(backward));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_countries() {
        let load = countries(b"http://a\tkr:5000,us:1000\nhttp://b\tus:10\n\n");
        let lists: Vec<&[u32]> = load.entries().map(|(_, sets)| sets).collect();
        assert_eq!((load.sets, lists), (2, vec![&[0, 1][..], &[1]]));
    }

    /// Words of both strands are the same, lines do not matter, headers and unknown letters do.
    #[test]
    fn words_of_a_genome() {
        let words = |text: &str| {
            let mut words = Vec::new();
            kmers(text.as_bytes(), |word| words.push(word));
            words
        };
        let text = "ACGTTGCAAGGCTTAACCGGATATCGCGATTTAGCC";
        let reverse: String = text
            .chars()
            .rev()
            .map(|base| match base {
                'A' => 'T',
                'C' => 'G',
                'G' => 'C',
                _ => 'A',
            })
            .collect();
        let expected = words(text);
        assert_eq!(expected.len(), text.len() - KMER + 1);
        let mut of_reverse = words(&reverse);
        of_reverse.reverse();
        assert_eq!(of_reverse, expected);
        assert_eq!(words(&format!(">name ACGT\n{}\r\n{}\n", &text[..9].to_lowercase(), &text[9..])), expected);
        assert!(words(&text.replacen("GGC", "GNC", 1)).is_empty());
        assert!(words(&format!("{}\n>x\n{}", &text[..20], &text[20..])).is_empty());
    }

    #[test]
    fn sets_are_merged() {
        let load = merge("x", &[vec![1, 5, 9], vec![], vec![5, 6]]);
        let entries: Vec<_> = load.entries().collect();
        assert_eq!(entries, [(1, &[0][..]), (5, &[0, 2]), (6, &[2]), (9, &[0])]);
    }
}
