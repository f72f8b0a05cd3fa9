//! values -> a canonical Huffman code, and back: by table from a stream of bits, or bit by bit from anywhere.
//!
//! ```text
//!    length  codewords                 words of one length follow each other, and longer ones start beyond them:
//!    1       0                         `first` of a length and how many there are say where a word ends
//!    3       100 101
//!    4       1100 ...
//! ```
//!
//! One value alone has a word of no bits. Values are small integers; the table from value to codeword is a plain array.

/// Longer codewords do not fit into what is packed; they need more than 10^11 values.
const LONGEST: u32 = 56;
/// Values from here on would need a large array.
const VALUES: u64 = 1 << 24;
/// Bits of a code that the decoding table is indexed with.
const PEEK: u32 = 11;

#[derive(Clone, Copy)]
struct Level {
    first: u64,
    count: u64,
    /// How many shorter words there are.
    before: u64,
}

pub(crate) struct Code {
    /// In the order of their codewords.
    symbols: Vec<u64>,
    /// Of lengths 1, 2, ...
    levels: Vec<Level>,
    words: Vec<(u64, u32)>,
}

/// A value's count, or a node above two others.
#[derive(Clone, Copy)]
struct Node {
    weight: u64,
    parent: usize,
}

/// Codeword lengths for counts in increasing order: leaves and nodes are two queues, each sorted as it is filled.
fn lengths(counts: &[u64]) -> Vec<u32> {
    let n = counts.len();
    let mut nodes: Vec<Node> = counts.iter().map(|&weight| Node { weight, parent: 0 }).collect();
    let (mut leaf, mut inner) = (0, n);
    while nodes.len() < (2 * n).saturating_sub(1) {
        let parent = nodes.len();
        let mut weight = 0;
        for _ in 0..2 {
            let of_leaves = leaf < n && (inner >= nodes.len() || nodes[leaf].weight <= nodes[inner].weight);
            let least = if of_leaves { &mut leaf } else { &mut inner };
            nodes[*least].parent = parent;
            weight += nodes[*least].weight;
            *least += 1;
        }
        nodes.push(Node { weight, parent });
    }
    let mut depths = vec![0; nodes.len()];
    for i in (0..nodes.len().saturating_sub(1)).rev() {
        depths[i] = depths[nodes[i].parent] + 1;
    }
    depths.truncate(n);
    depths
}

impl Code {
    pub(crate) fn of(values: &[u64]) -> Result<Code, String> {
        let largest = values.iter().copied().max().unwrap_or(0);
        if largest >= VALUES {
            return Err(format!("{largest} is no small value"));
        }
        let mut counts = vec![0u64; largest as usize + 1];
        values.iter().for_each(|&value| counts[value as usize] += 1);
        let mut used: Vec<(u64, u64)> =
            counts.iter().zip(0..).filter(|(count, _)| **count > 0).map(|(&count, value)| (count, value)).collect();
        used.sort_unstable();
        let sorted: Vec<u64> = used.iter().map(|&(count, _)| count).collect();
        let mut coded: Vec<(u32, u64)> =
            lengths(&sorted).into_iter().zip(used).map(|(l, (_, value))| (l, value)).collect();
        coded.sort_unstable();
        let longest = coded.last().map_or(0, |&(length, _)| length);
        if longest > LONGEST {
            return Err(format!("a codeword of {longest} bits"));
        }
        let mut levels = vec![Level { first: 0, count: 0, before: 0 }; longest as usize];
        let mut words = vec![(0, 0); counts.len()];
        let (mut next, mut at) = (0, 0);
        for &(length, value) in &coded {
            // A word of the old length, made longer by zeros.
            next <<= length - at;
            at = length;
            words[value as usize] = (next, length);
            if let Some(level) = levels.get_mut((length as usize).wrapping_sub(1)) {
                level.count += 1;
            }
            next += 1;
        }
        let mut above = Level { first: 0, count: 0, before: 0 };
        for level in &mut levels {
            level.first = (above.first + above.count) << 1;
            level.before = above.before + above.count;
            above = *level;
        }
        Ok(Code { symbols: coded.into_iter().map(|(_, value)| value).collect(), levels, words })
    }

    /// The codeword of one of the values and its length; its first bit is the highest.
    #[inline]
    pub(crate) fn word(&self, value: u64) -> (u64, u32) {
        self.words.get(value as usize).copied().unwrap_or((0, 0))
    }

    /// The value whose codeword is what `bit` says from bit 0 on.
    #[inline]
    pub(crate) fn follow(&self, mut bit: impl FnMut(u64) -> bool) -> u64 {
        let (mut word, mut index) = (0, 0);
        for (level, j) in self.levels.iter().zip(0..) {
            word = word << 1 | u64::from(bit(j));
            if word < level.first + level.count {
                index = level.before + word - level.first;
                break;
            }
        }
        self.symbols.get(index as usize).copied().unwrap_or(0)
    }

    /// Bytes that are enough to make the code again: words per length, and the values in the order of their words.
    pub(crate) fn bytes(&self) -> usize {
        let largest = self.symbols.iter().copied().max().unwrap_or(0);
        let each = (u64::BITS - largest.leading_zeros()).div_ceil(8).max(1);
        4 * self.levels.len() + each as usize * self.symbols.len()
    }
}

pub(crate) struct Coded {
    code: Code,
    /// Bits from the highest on, and a word of zeros.
    words: Vec<u64>,
    bits: usize,
    /// What a word that starts with these bits stands for, and its length; 0 where it is longer.
    table: Vec<(u32, u32)>,
    peek: u32,
}

impl Coded {
    /// Codes `values` with a code of their own.
    pub(crate) fn new(values: &[u64]) -> Result<Coded, String> {
        let code = Code::of(values)?;
        let mut words = Vec::new();
        let (mut bits, mut filled, mut current) = (0, 0, 0u64);
        for &value in values {
            let (word, length) = code.word(value);
            bits += length as usize;
            if filled + length < 64 {
                filled += length;
                // A word of no bits is shifted by 64 while nothing is filled.
                current |= word.checked_shl(64 - filled).unwrap_or(0);
                continue;
            }
            filled = filled + length - 64;
            words.push(current | word >> filled);
            current = word.checked_shl(64 - filled).unwrap_or(0);
        }
        words.extend([current, 0]);
        let peek = PEEK.min(code.levels.len() as u32);
        let mut table = vec![(0, 0); 1 << peek];
        for &value in &code.symbols {
            let (word, length) = code.word(value);
            if length <= peek {
                let (start, copies) = ((word << (peek - length)) as usize, 1 << (peek - length));
                table[start..start + copies].fill((value as u32, length));
            }
        }
        Ok(Coded { code, words, bits, table, peek })
    }

    /// Decodes as many values as there is room for, from the first on.
    pub(crate) fn decode(&self, out: &mut [u64]) {
        let mut at = 0;
        for out in out {
            let (index, shift) = (at / 64, at % 64);
            let [high, low] = [index, index + 1].map(|i| self.words.get(i).copied().unwrap_or(0));
            let ahead = high << shift | (low >> 1) >> (63 - shift);
            let start = ahead.checked_shr(64 - self.peek).unwrap_or(0);
            let (value, length) = self.table[start as usize];
            if length > 0 {
                (*out, at) = (u64::from(value), at + length as usize);
                continue;
            }
            *out = self.code.follow(|j| {
                at += 1;
                ahead << j >> 63 == 1
            });
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.div_ceil(8) + self.code.bytes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tamis_bench::stream::Stream;

    /// Codes, decodes by table and bit by bit, and returns the bits per value.
    fn back(values: &[u64]) -> f64 {
        let coded = Coded::new(values).unwrap();
        let mut out = vec![u64::MAX; values.len()];
        coded.decode(&mut out);
        assert_eq!(out, values);
        for &value in values.iter().take(20_000) {
            let (word, length) = coded.code.word(value);
            assert_eq!(coded.code.follow(|j| word >> (u64::from(length) - 1 - j) & 1 == 1), value);
        }
        assert!(coded.bytes() >= coded.bits.div_ceil(8));
        coded.bits as f64 / values.len().max(1) as f64
    }

    #[test]
    fn few_symbols() {
        assert_eq!(back(&[]), 0.0);
        assert_eq!(back(&[5]), 0.0);
        assert_eq!(back(&[5; 1000]), 0.0);
        assert_eq!(back(&[5, 0]), 1.0);
        assert_eq!(back(&[1, 0, 1, 1, 0, 1]), 1.0);
        assert_eq!(back(&[2, 1, 0]), 5.0 / 3.0);
    }

    #[test]
    fn equal_counts_have_equal_lengths() {
        for n in [4, 64, 4096] {
            let values: Vec<u64> = (0..3 * n).map(|i| i % n).collect();
            assert_eq!(back(&values), (n as f64).log2());
        }
        // Between two powers of two lengths differ by one.
        let code = Code::of(&(0..100).collect::<Vec<_>>()).unwrap();
        assert!((0..100).all(|value| [6, 7].contains(&code.word(value).1)));
    }

    #[test]
    fn many_symbols() {
        let mut stream = Stream::new(1);
        let mut values: Vec<u64> = (0..100_000).collect();
        values.extend(stream.take(200_000).into_iter().map(|x| ((x >> 44) * (x & 0xf_ffff)) >> 24));
        stream.shuffle(&mut values);
        let bits = back(&values);
        assert!((12.0..17.0).contains(&bits), "{bits}");
    }

    /// Counts like the Fibonacci numbers make the longest words, far beyond the table's bits.
    #[test]
    fn long_words() {
        let (mut a, mut b) = (1, 1);
        let mut values = Vec::new();
        for value in 0..24 {
            values.extend(std::iter::repeat_n(value, a));
            (a, b) = (b, a + b);
        }
        Stream::new(2).shuffle(&mut values);
        let code = Code::of(&values).unwrap();
        assert_eq!((code.word(0).1, code.word(23).1, code.levels.len()), (23, 1, 23));
        back(&values);
    }

    /// Not longer than entropy and a bit, and no shorter code exists where the counts are powers of two.
    #[test]
    fn codes_are_as_short_as_can_be() {
        let powers: Vec<u64> = (0..10u64).flat_map(|v| std::iter::repeat_n(v, 1 << v)).chain([10]).collect();
        let kraft: f64 = (0..=10).map(|v| 0.5f64.powi(Code::of(&powers).unwrap().word(v).1 as i32)).sum();
        assert_eq!(kraft, 1.0);
        let pairs = crate::mapped::Pairs { keys: Vec::new(), values: powers.clone() };
        assert!((back(&powers) - pairs.entropy()).abs() < 1e-9);
    }

    #[test]
    fn large_values_are_refused() {
        assert!(Code::of(&[1 << 40]).is_err());
    }
}
