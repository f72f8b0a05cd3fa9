//! octets of ribbon rows -> sums, products, parities: the three inner loops of a ribbon.
//!
//! An *octet* is eight neighbouring rows. In elimination it is an [`Octet`]: not the rows but all their sums. In a table it is one
//! byte per column, bit `i` of which belongs to row `i`. Here is the portable code; vector instructions are in a file for each processor.

#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

/// The part of an equation behind its octet: a value in the low bits, then one byte of coefficients per octet.
pub(crate) trait Word:
    Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + std::fmt::Debug
    + std::ops::BitXor<Output = Self>
    + std::ops::BitAnd<Output = Self>
    + std::ops::Shr<u32, Output = Self>
    + std::ops::Shl<u32, Output = Self>
    + From<u32>
    + 'static
{
    /// The low 32 bits.
    fn low(self) -> u32;
    /// All bits, or none.
    fn all(yes: bool) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => {
        $(impl Word for $word {
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn all(yes: bool) -> $word {
                <$word>::from(yes).wrapping_neg()
            }
        })*
    };
}
words!(u64, u128);

/// The rows of an octet, completely reduced (no row has a coefficient where another has its pivot), as sums: entry `x` of the first
/// sixteen is for equations whose head, the eight coefficients in this octet, has the low nibble `x`; the others are for high nibbles.
///
/// Without rows it is all zeros.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Octet<W> {
    /// What is added to the tail of an equation.
    pub(crate) tails: [W; 32],
    /// What is added to its head.
    pub(crate) heads: [u8; 32],
}

impl<W: Word> Octet<W> {
    /// No rows.
    pub(crate) fn empty() -> Octet<W> {
        Octet { tails: [W::default(); 32], heads: [0; 32] }
    }

    /// Takes all rows out.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.tails.fill(W::default());
        self.heads.fill(0);
    }

    /// Adds the rows to an equation that has coefficients at their pivots.
    #[inline(always)]
    pub(crate) fn reduce(&self, head: u8, tail: W) -> (u8, W) {
        let (low, high) = (head as usize & 15, 16 + (head as usize >> 4));
        (head ^ self.heads[low] ^ self.heads[high], tail ^ self.tails[low] ^ self.tails[high])
    }

    /// Where the row with this pivot is by itself, once all others are reduced.
    #[inline(always)]
    pub(crate) fn entry_of(pivot: u32) -> usize {
        (1 << (pivot % 4)) + 16 * (pivot as usize / 4 % 2)
    }

    /// Takes back the last row that was added: adding is its own inverse.
    pub(crate) fn remove(&mut self, pivot: u32, entries: u32) {
        let own = Self::entry_of(pivot);
        let (head, tail) = (self.heads[own], self.tails[own]);
        for x in (0..32).filter(|x| entries >> x & 1 == 1) {
            self.heads[x] ^= head;
            self.tails[x] = self.tails[x] ^ tail;
        }
    }
}

/// The nibble that an entry is for, as part of a head.
const NIBBLES: [u8; 32] = {
    let mut nibbles = [0; 32];
    let mut x = 0;
    while x < 16 {
        nibbles[x] = x as u8;
        nibbles[16 + x] = (x << 4) as u8;
        x += 1;
    }
    nibbles
};

/// Adds a reduced row to every entry that has the coefficient at its pivot left, the lowest bit of its head. Returns which.
#[inline(always)]
pub(super) fn add<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
    let (pivot, mut entries) = (head.trailing_zeros() & 7, 0);
    for (x, nibble) in NIBBLES.iter().enumerate() {
        let left = (octet.heads[x] ^ nibble) >> pivot & 1;
        entries |= u32::from(left) << x;
        octet.heads[x] ^= head & left.wrapping_neg();
        octet.tails[x] = octet.tails[x] ^ (tail & W::all(left == 1));
    }
    entries
}

/// Bit `j` of the result is the parity of column `j` under a band of 64 coefficients, for eight columns at most. Octet `k` of the
/// band starts at `k * stride`. Bytes that are not there are zero.
#[inline(always)]
pub(crate) fn parities(bytes: &[u8], stride: usize, band: u64) -> u32 {
    let mut sum = 0;
    for k in 0..8 {
        sum ^= load(bytes, k * stride) & (band >> (8 * k) & 255).wrapping_mul(0x0101_0101_0101_0101);
    }
    sum ^= sum >> 4;
    sum ^= sum >> 2;
    sum ^= sum >> 1;
    ((sum & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Eight bytes, as far as they exist.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(octet) => u64::from_le_bytes(*octet),
        None => load_part(bytes, at),
    }
}

#[cold]
fn load_part(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).unwrap_or(&[]).iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The same for more than eight columns, and 32 at most.
#[inline(always)]
pub(crate) fn broad_parities(bytes: &[u8], stride: usize, band: u64) -> u32 {
    let (mut value, mut column) = (0, 0);
    loop {
        value |= parities(bytes.get(column..).unwrap_or(&[]), stride, band) << column;
        if column + 8 >= stride {
            return value;
        }
        // The last eight may overlap those before: equal bits.
        column = (stride - 8).min(column + 8);
    }
}

/// Two octets of up to eight columns: which of two bytes of the band belongs to each byte, and where to find the second octet.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const PAIRS: [[[u8; 16]; 2]; 9] = {
    let mut pairs = [[[0x80; 16]; 2]; 9];
    let mut stride = 0;
    while stride < 9 {
        let mut j = 0;
        while j < stride {
            pairs[stride][0][j] = 0;
            pairs[stride][0][stride + j] = 1;
            pairs[stride][1][j] = (stride + j) as u8;
            j += 1;
        }
        stride += 1;
    }
    pairs
};

/// Eight rows of eight bits (byte `i` is row `i`) -> eight columns (byte `j` is column `j`), and back.
#[inline(always)]
pub(crate) fn transpose(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Back substitution for bands of 64 and values of a byte. Eight rows are an octet, each with its value in byte 0 and its coefficients
/// in the `k`-th octet from here in byte `k`; a free row is zero. From the last octet to the first, `out` gets eight columns each.
pub(super) fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
    solve_rows(rows, out, u64::to_le_bytes);
}

/// The same for bands of 128.
pub(super) fn solve_wide(rows: &[[u128; 8]], out: &mut [u64]) {
    solve_rows(rows, out, u128::to_le_bytes);
}

#[inline(always)]
fn solve_rows<W: Copy, const BAND: usize>(rows: &[[W; 8]], out: &mut [u64], bytes: impl Fn(W) -> [u8; BAND]) {
    // The sums of rows 0..4 and of rows 4..8, for every nibble; those of octet o at o % BAND.
    let mut sums = [[[0u8; 16]; 2]; BAND];
    for (o, (rows, out)) in rows.iter().zip(out).enumerate().rev() {
        let mut solved = [0u8; 8];
        for (solved, &row) in solved.iter_mut().zip(rows) {
            let row = bytes(row);
            *solved = row[0];
            for k in 1..BAND {
                let [low, high] = &sums[(o + k) % BAND];
                *solved ^= low[row[k] as usize & 15] ^ high[row[k] as usize >> 4];
            }
        }
        for (half, sums) in sums[o % BAND].iter_mut().enumerate() {
            for x in 1..16usize {
                sums[x] = sums[x & (x - 1)] ^ solved[4 * half + x.trailing_zeros() as usize];
            }
        }
        *out = transpose(u64::from_le_bytes(solved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Parities<'a>(&'a [u8], usize, u64);
    impl Kernel for Parities<'_> {
        type Output = Option<u32>;
        #[inline(always)]
        fn run<I: Isa>(self) -> Option<u32> {
            I::parities(self.0, self.1, self.2)
        }
    }

    struct BroadParities<'a>(&'a [u8], usize, u64);
    impl Kernel for BroadParities<'_> {
        type Output = Option<u32>;
        #[inline(always)]
        fn run<I: Isa>(self) -> Option<u32> {
            I::broad_parities(self.0, self.1, self.2)
        }
    }

    /// The definition: the parity of each column, bit by bit.
    fn expected(bytes: &[u8], stride: usize, band: u64) -> u32 {
        let bit = |column: usize, row: usize| {
            let byte = bytes.get(row / 8 * stride + column).copied().unwrap_or(0);
            u32::from(byte >> (row % 8) & 1) & (band >> row) as u32 & 1
        };
        (0..stride).map(|column| (0..64).fold(0, |sum, row| sum ^ bit(column, row)) << column).sum()
    }

    #[test]
    fn parities_are_those_of_the_definition_at_every_level() {
        for i in 0..crate::arch::rounds(4000) {
            let stride = 1 + i as usize % 8;
            let bytes: Vec<u8> = (0..i % 150).map(|j| scramble(i << 8 | j) as u8).collect();
            let (band, mask) = (scramble(i), u32::MAX >> (32 - stride));
            let right = expected(&bytes, stride, band);
            assert_eq!(parities(&bytes, stride, band) & mask, right, "{stride} {i}");
            for level in Level::available() {
                let found = dispatch(level, Parities(&bytes, stride, band));
                assert!(found.is_none_or(|found| found & mask == right), "{level:?} {stride} {i}");
                assert!(found.is_some() || bytes.len() < 80, "{level:?} {stride} {i}");
            }
        }
        for i in 0..crate::arch::rounds(2000) {
            let stride = 9 + i as usize % 24;
            let bytes: Vec<u8> = (0..i % 300).map(|j| scramble(i << 9 | j) as u8).collect();
            let right = expected(&bytes, stride, scramble(i));
            assert_eq!(broad_parities(&bytes, stride, scramble(i)), right, "{stride} {i}");
            for level in Level::available() {
                let found = dispatch(level, BroadParities(&bytes, stride, scramble(i)));
                assert!(found.is_none_or(|found| found == right), "{level:?} {stride} {i}");
                assert!(found.is_some() || bytes.len() < 8 * stride + 16, "{level:?} {stride} {i}");
            }
        }
    }

    struct Add<'a, W>(&'a mut Octet<W>, u8, W);
    impl<W: Word> Kernel for Add<'_, W> {
        type Output = u32;
        #[inline(always)]
        fn run<I: Isa>(self) -> u32 {
            I::add_row(self.0, self.1, self.2)
        }
    }

    /// Rows that come in reduce every equation alike, at every level, and go out again.
    fn rows_come_and_go<W: Word>(tail: impl Fn(u64) -> W) {
        for level in Level::available() {
            for seed in 0..crate::arch::rounds(200) {
                let (mut octet, mut twin) = (Octet::empty(), Octet::empty());
                let mut added = vec![];
                for i in 0..12 {
                    let random = scramble(seed << 8 | i);
                    let (head, tail) = octet.reduce(random as u8, tail(random));
                    if head != 0 {
                        let pivot = head.trailing_zeros();
                        let entries = dispatch(level, Add(&mut octet, head, tail));
                        assert_eq!(add(&mut twin, head, tail), entries, "{level:?}");
                        assert!(octet.heads == twin.heads && octet.tails == twin.tails, "{level:?}");
                        assert_eq!(octet.reduce(random as u8, W::default()).0, 0);
                        added.push((pivot, entries));
                    }
                }
                for (pivot, entries) in added.into_iter().rev() {
                    octet.remove(pivot, entries);
                }
                assert!(octet.heads == [0; 32] && octet.tails == [W::default(); 32], "{level:?}");
            }
        }
    }

    #[test]
    fn rows_of_either_size_come_and_go() {
        rows_come_and_go::<u64>(|random| scramble(!random));
        rows_come_and_go::<u128>(|random| u128::from(scramble(!random)) << 64 | u128::from(random));
    }

    struct Solve<'a>(&'a [[u64; 8]], &'a [[u128; 8]], [&'a mut [u64]; 2]);
    impl Kernel for Solve<'_> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self) {
            let [narrow, wide] = self.2;
            I::solve(self.0, narrow);
            I::solve_wide(self.1, wide);
        }
    }

    #[test]
    fn every_level_solves_alike() {
        for len in [0, 1, 2, 9, 17, 100] {
            let rows: Vec<[u64; 8]> = (0..len).map(|o| std::array::from_fn(|i| scramble(o << 3 | i as u64))).collect();
            let wide: Vec<[u128; 8]> =
                rows.iter().map(|rows| rows.map(|row| u128::from(scramble(row)) << 64 | u128::from(row))).collect();
            // Rows whose second half is empty are those of bands of 64.
            let half: Vec<[u128; 8]> = rows.iter().map(|rows| rows.map(u128::from)).collect();
            let mut right = [vec![0; rows.len()], vec![0; rows.len()], vec![0; rows.len()]];
            solve(&rows, &mut right[0]);
            solve_wide(&wide, &mut right[1]);
            solve_wide(&half, &mut right[2]);
            assert_eq!(right[0], right[2], "{len}");
            for level in Level::available() {
                let (mut narrow, mut found) = (vec![1; rows.len()], vec![1; rows.len()]);
                dispatch(level, Solve(&rows, &wide, [&mut narrow, &mut found]));
                assert_eq!([&narrow, &found], [&right[0], &right[1]], "{level:?} {len}");
            }
        }
    }
}
