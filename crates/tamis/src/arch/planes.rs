//! windows of 64 states + equations over them -> answers, and which states live on: the inner loops of the steered search.
//!
//! A *group* is 64 states. Plane `b` holds byte `b` of every window, so that one vector instruction does the same to a
//! byte of 64 states, or of 32.
//!
//! ```text
//!   answers   bit i of byte l: the parity of window l under equation i
//!             AVX-512: an 8 x 8 bit matrix for each plane, one affine instruction for 64 bytes
//!             AVX2: the sums of four columns in a table of 16, two shuffles for 32 bytes
//!             portable: words of eight bytes under masks; the halves of two equations folded into one word, thrice
//!   below     which of 64 numbers are less than a limit, as bits
//!   settle    a state becomes the child that lives on; of a state with two, the second takes the place of one without
//! ```

/// States of a group.
pub(crate) const LANES: usize = 64;
/// Byte after byte of the windows of a group.
pub(crate) type Planes = [[u8; LANES]; 8];
/// A number for every state of a group.
pub(crate) type Shorts = [u16; LANES];

/// What a state is, but for its children: what they would be worth, with bit 0 and with bit 1.
pub(crate) struct Group<'a> {
    pub(crate) planes: &'a mut Planes,
    pub(crate) scores: &'a mut Shorts,
    pub(crate) origins: &'a mut Shorts,
    pub(crate) children: &'a [Shorts; 2],
}

/// Which children of a group live on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Those with bit 0, those with bit 1, and lanes that hold a state.
    pub(crate) zero: u64,
    pub(crate) one: u64,
    pub(crate) lanes: u64,
    /// Where the bit goes.
    pub(crate) row: usize,
    /// Of two siblings, the one that keeps the place has this bit.
    pub(crate) first: bool,
    /// What the best child is worth: the new zero of all scores.
    pub(crate) best: u16,
}

impl Split {
    /// States of which both children live on.
    #[inline(always)]
    fn twins(&self) -> u64 {
        self.zero & self.one
    }

    /// States of which none does.
    #[inline(always)]
    fn dead(&self) -> u64 {
        self.lanes & !(self.zero | self.one)
    }

    /// States that become their child with bit 1.
    #[inline(always)]
    fn ones(&self) -> u64 {
        if self.first { self.one } else { self.one & !self.zero }
    }

    /// The plane and the bit of the row.
    #[inline(always)]
    fn place(&self) -> (usize, u8) {
        (self.row / 8 % 8, 1 << (self.row % 8))
    }
}

/// 1 in every byte.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// Every lane's number.
const NUMBERS: [u8; LANES] = {
    let mut numbers = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        numbers[lane] = lane as u8;
        lane += 1;
    }
    numbers
};

/// The portable twin of both `answers`.
#[inline(always)]
pub(super) fn answers(planes: &[Planes], equations: &[u64; 8], out: &mut [[u8; LANES]]) {
    let mut masks = [[0; 8]; 8];
    for (masks, equation) in masks.iter_mut().zip(equations) {
        for (mask, byte) in masks.iter_mut().zip(equation.to_le_bytes()) {
            *mask = u64::from(byte) * BYTES;
        }
    }
    for (planes, out) in planes.iter().zip(out) {
        for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mut sums = [0; 8];
            for (b, plane) in planes.iter().enumerate() {
                let word = u64::from_le_bytes(plane.as_chunks::<8>().0[at & 7]);
                for (sum, masks) in sums.iter_mut().zip(&masks) {
                    *sum ^= word & masks[b];
                }
            }
            // Half of the bits of each sum are folded onto the other half, and the room is shared with another sum.
            let [a, b, c, d, e, f, g, h] = sums;
            let [a, b, c, d] = [fold::<4>(a, e), fold::<4>(b, f), fold::<4>(c, g), fold::<4>(d, h)];
            *out = fold::<1>(fold::<2>(a, c), fold::<2>(b, d)).to_le_bytes();
        }
    }
}

/// The parities of `x` in the bits whose number has no bit `BY`, those of `y` in the others.
#[inline(always)]
fn fold<const BY: u32>(x: u64, y: u64) -> u64 {
    let low = match BY {
        4 => 0x0f * BYTES,
        2 => 0x33 * BYTES,
        _ => 0x55 * BYTES,
    };
    ((x ^ (x >> BY)) & low) | ((y ^ (y << BY)) & !low)
}

/// Bit `l` says whether number `l` is less than `limit`: the portable twin of both `below`.
#[inline(always)]
pub(super) fn below(values: &Shorts, limit: u16) -> u64 {
    let mut mask = 0;
    for (at, values) in values.as_chunks::<8>().0.iter().enumerate() {
        let bytes = values.map(|value| u8::from(value < limit));
        // Every byte's lowest bit moves to the top byte.
        mask |= (u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    mask
}

/// All bits of byte `l` are bit `l` of the mask.
#[inline(always)]
fn spread(mask: u64) -> [u8; LANES] {
    let mut out = [0; LANES];
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let bits = ((mask >> (8 * at) & 255) * BYTES) & 0x8040_2010_0804_0201;
        let high = (((bits & (0x7f * BYTES)) + 0x7f * BYTES) | bits) & (0x80 * BYTES);
        *out = (high | (high - (high >> 7))).to_le_bytes();
    }
    out
}

/// Every state becomes a child of its own.
#[inline(always)]
fn replace(plane: &mut [u8; LANES], scores: &mut Shorts, [zero, one]: &[Shorts; 2], split: &Split) {
    let (_, bit) = split.place();
    let ones = spread(split.ones());
    for (byte, one) in plane.iter_mut().zip(&ones) {
        *byte = (*byte & !bit) | (one & bit);
    }
    for (((score, &mask), &zero), &one) in scores.iter_mut().zip(&ones).zip(zero).zip(one) {
        let mask = mask as i8 as i16 as u16;
        *score = (zero ^ ((zero ^ one) & mask)).wrapping_sub(split.best);
    }
}

/// States become their children. The second child of a state goes where one without children was, in the order of lanes; returned
/// are the states whose second child found no place, and the places that are left. The portable twin of both `settle`.
#[inline(always)]
pub(super) fn settle(group: Group<'_>, split: Split) -> (u64, u64) {
    let Group { planes, scores, origins, children } = group;
    let (plane, bit) = split.place();
    replace(&mut planes[plane], scores, children, &split);
    let second = &children[usize::from(!split.first)];
    let (mut twins, mut dead) = (split.twins(), split.dead());
    while twins != 0 && dead != 0 {
        let (from, to) = (twins.trailing_zeros() as usize % LANES, dead.trailing_zeros() as usize % LANES);
        for plane in planes.iter_mut() {
            plane[to] = plane[from];
        }
        planes[plane][to] ^= bit;
        scores[to] = second[from].wrapping_sub(split.best);
        origins[to] = origins[from];
        (twins, dead) = (twins & (twins - 1), dead & (dead - 1));
    }
    (twins, dead)
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use std::arch::x86_64::*;

    use super::{Group, LANES, NUMBERS, Planes, Shorts, Split, replace, spread};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: there are 32 bytes, and this load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(bytes: &mut [u8; 32], x: __m256i) {
        // SAFETY: there are 32 bytes, borrowed for writing, and this store needs no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), x) }
    }

    /// Entry y of a table is the sum of those columns whose bits y has: column x, or none, for each x. The lower half is about the low
    /// bits of a byte, the upper half about the high ones.
    const COLUMNS: [[u8; 32]; 4] = {
        let mut columns = [[0x80; 32]; 4];
        let mut y = 0;
        while y < 32 {
            let mut x = 0;
            while x < 4 {
                if (y >> x) & 1 == 1 {
                    columns[x][y] = (x + y / 16 * 4) as u8;
                }
                x += 1;
            }
            y += 1;
        }
        columns
    };

    /// Rows and columns of eight bytes exchanged.
    #[inline(always)]
    fn transpose(x: u64) -> u64 {
        let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
        let x = x ^ t ^ (t << 7);
        let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
        let x = x ^ t ^ (t << 14);
        let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
        x ^ t ^ (t << 28)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn answers(planes: &[Planes], equations: &[u64; 8], out: &mut [[u8; LANES]]) {
        let [a, b, c, d] = [load(&COLUMNS[0]), load(&COLUMNS[1]), load(&COLUMNS[2]), load(&COLUMNS[3])];
        let mut tables = [[_mm256_setzero_si256(); 2]; 8];
        for (byte, table) in (0..).step_by(8).zip(&mut tables) {
            let mut rows = 0;
            for (i, equation) in equations.iter().enumerate() {
                rows |= ((equation >> byte) & 255) << (8 * i);
            }
            let columns = _mm256_set1_epi64x(transpose(rows) as i64);
            let low = _mm256_xor_si256(_mm256_shuffle_epi8(columns, a), _mm256_shuffle_epi8(columns, b));
            let high = _mm256_xor_si256(_mm256_shuffle_epi8(columns, c), _mm256_shuffle_epi8(columns, d));
            let sums = _mm256_xor_si256(low, high);
            *table = [_mm256_permute2x128_si256::<0x00>(sums, sums), _mm256_permute2x128_si256::<0x11>(sums, sums)];
        }
        let four = _mm256_set1_epi8(15);
        for (planes, out) in planes.iter().zip(out) {
            for (half, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let mut sum = _mm256_setzero_si256();
                for (plane, [low, high]) in planes.iter().zip(&tables) {
                    let x = load(&plane.as_chunks::<32>().0[half % 2]);
                    let low = _mm256_shuffle_epi8(*low, _mm256_and_si256(x, four));
                    let high = _mm256_shuffle_epi8(*high, _mm256_and_si256(_mm256_srli_epi16::<4>(x), four));
                    sum = _mm256_xor_si256(sum, _mm256_xor_si256(low, high));
                }
                store(out, sum);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn below(values: &Shorts, limit: u16) -> u64 {
        let limit = _mm256_set1_epi16(limit as i16);
        let mut not = 0;
        for (half, [a, b]) in values.as_chunks::<16>().0.as_chunks::<2>().0.iter().enumerate() {
            // SAFETY: each of the two is 32 bytes, and these loads need no alignment.
            let (a, b) = unsafe { (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())) };
            let a = _mm256_cmpeq_epi16(_mm256_max_epu16(a, limit), a);
            let b = _mm256_cmpeq_epi16(_mm256_max_epu16(b, limit), b);
            let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(a, b));
            not |= u64::from(_mm256_movemask_epi8(both) as u32) << (32 * half);
        }
        !not
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1")]
    pub(in crate::arch) fn settle(group: Group<'_>, split: Split) -> (u64, u64) {
        let Group { planes, scores, origins, children } = group;
        let (plane, bit) = split.place();
        replace(&mut planes[plane], scores, children, &split);
        let second = &children[usize::from(!split.first)];
        let (mut twins, mut dead) = (split.twins(), split.dead());
        let mut source = NUMBERS;
        while twins != 0 && dead != 0 {
            let (from, to) = (twins.trailing_zeros() as usize % LANES, dead.trailing_zeros() as usize % LANES);
            source[to] = from as u8;
            scores[to] = second[from].wrapping_sub(split.best);
            origins[to] = origins[from];
            (twins, dead) = (twins & (twins - 1), dead & (dead - 1));
        }
        // A shuffle looks into 16 bytes: of the four that hold a plane, the three others must give 0, which a set top bit does.
        let mut index = [[_mm256_setzero_si256(); 4]; 2];
        for (index, source) in index.iter_mut().zip(source.as_chunks::<32>().0) {
            for (block, index) in (0..).step_by(16).zip(index) {
                let inside = _mm256_xor_si256(load(source), _mm256_set1_epi8(block));
                *index = _mm256_add_epi8(inside, _mm256_set1_epi8(0x70));
            }
        }
        for plane in planes.iter_mut() {
            let mut blocks = [_mm256_setzero_si256(); 4];
            for (block, bytes) in blocks.iter_mut().zip(plane.as_chunks::<16>().0) {
                // SAFETY: there are 16 bytes, and this load needs no alignment.
                *block = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) });
            }
            for (out, index) in plane.as_chunks_mut::<32>().0.iter_mut().zip(&index) {
                let mut sum = _mm256_setzero_si256();
                for (block, index) in blocks.iter().zip(index) {
                    sum = _mm256_or_si256(sum, _mm256_shuffle_epi8(*block, *index));
                }
                store(out, sum);
            }
        }
        let seconds = spread(split.dead() & !dead);
        for (byte, second) in planes[plane].iter_mut().zip(&seconds) {
            *byte ^= second & bit;
        }
        (twins, dead)
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::*;

    use super::{Group, LANES, NUMBERS, Planes, Shorts, Split};

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[u8; LANES]) -> __m512i {
        // SAFETY: there are 64 bytes, and this load needs no alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(bytes: &mut [u8; LANES], x: __m512i) {
        // SAFETY: there are 64 bytes, borrowed for writing, and this store needs no alignment.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), x) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_both(numbers: &Shorts) -> [__m512i; 2] {
        let (halves, _) = numbers.as_chunks::<32>();
        // SAFETY: each half is 64 bytes, and these loads need no alignment.
        unsafe { [_mm512_loadu_si512(halves[0].as_ptr().cast()), _mm512_loadu_si512(halves[1].as_ptr().cast())] }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store_both(numbers: &mut Shorts, [low, high]: [__m512i; 2]) {
        let (halves, _) = numbers.as_chunks_mut::<32>();
        // SAFETY: each half is 64 bytes, borrowed for writing, and these stores need no alignment.
        unsafe {
            _mm512_storeu_si512(halves[0].as_mut_ptr().cast(), low);
            _mm512_storeu_si512(halves[1].as_mut_ptr().cast(), high);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,gfni")]
    pub(in crate::arch) fn answers(planes: &[Planes], equations: &[u64; 8], out: &mut [[u8; LANES]]) {
        let mut matrices = [_mm512_setzero_si512(); 8];
        for (byte, matrix) in (0..).step_by(8).zip(&mut matrices) {
            // The instruction takes the row of answer i from byte 7 - i.
            let mut rows = 0;
            for equation in equations {
                rows = (rows << 8) | ((equation >> byte) & 255);
            }
            *matrix = _mm512_set1_epi64(rows as i64);
        }
        for (planes, out) in planes.iter().zip(out) {
            let mut sum = _mm512_setzero_si512();
            for (plane, matrix) in planes.iter().zip(&matrices) {
                sum = _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(load(plane), *matrix));
            }
            store(out, sum);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in crate::arch) fn below(values: &Shorts, limit: u16) -> u64 {
        let limit = _mm512_set1_epi16(limit as i16);
        let [low, high] = load_both(values);
        let (low, high) = (_mm512_cmplt_epu16_mask(low, limit), _mm512_cmplt_epu16_mask(high, limit));
        u64::from(low) | u64::from(high) << 32
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    pub(in crate::arch) fn settle(group: Group<'_>, split: Split) -> (u64, u64) {
        let Group { planes, scores, origins, children: [zero, one] } = group;
        let ((plane, bit), ones, twins, dead) = (split.place(), split.ones(), split.twins(), split.dead());
        let moves = twins.count_ones().min(dead.count_ones());
        let few = u64::MAX.checked_shr(LANES as u32 - moves).unwrap_or(0);
        let (from, to) = (_pdep_u64(few, twins), _pdep_u64(few, dead));
        let numbers = load(&NUMBERS);
        let source = _mm512_mask_expand_epi8(numbers, to, _mm512_maskz_compress_epi8(from, numbers));

        let bit = _mm512_set1_epi8(bit as i8);
        let byte = _mm512_andnot_si512(bit, load(&planes[plane]));
        store(&mut planes[plane], _mm512_or_si512(byte, _mm512_maskz_mov_epi8(ones, bit)));
        for plane in planes.iter_mut() {
            store(plane, _mm512_permutexvar_epi8(source, load(plane)));
        }
        let byte = load(&planes[plane]);
        store(&mut planes[plane], _mm512_xor_si512(byte, _mm512_maskz_mov_epi8(to, bit)));

        let sources = [
            _mm512_cvtepu8_epi16(_mm512_castsi512_si256(source)),
            _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(source)),
        ];
        let (zero, one, best) = (load_both(zero), load_both(one), _mm512_set1_epi16(split.best as i16));
        let (second, before) = (if split.first { zero } else { one }, load_both(origins));
        let (mut worth, mut after) = (zero, before);
        for half in 0..2 {
            let (ones, to) = ((ones >> (32 * half)) as u32, (to >> (32 * half)) as u32);
            let own = _mm512_mask_blend_epi16(ones, zero[half], one[half]);
            let moved = _mm512_permutex2var_epi16(second[0], sources[half], second[1]);
            worth[half] = _mm512_sub_epi16(_mm512_mask_blend_epi16(to, own, moved), best);
            after[half] = _mm512_permutex2var_epi16(before[0], sources[half], before[1]);
        }
        store_both(scores, worth);
        store_both(origins, after);
        (twins & !from, dead & !to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    /// Groups, eight equations, children, a limit, and which of them live on.
    #[derive(Clone)]
    struct All(Vec<Planes>, [u64; 8], [Shorts; 2], u16, Split);

    impl Kernel for All {
        type Output = (Vec<[u8; LANES]>, u64, (u64, u64), Vec<Planes>, Shorts, Shorts);

        #[inline(always)]
        fn run<I: Isa>(self) -> Self::Output {
            let All(mut groups, equations, children, limit, split) = self;
            let mut out = vec![[0; LANES]; groups.len()];
            I::answers(&groups, &equations, &mut out);
            let (mut scores, mut origins) = (children[1], children[0]);
            let group =
                Group { planes: &mut groups[0], scores: &mut scores, origins: &mut origins, children: &children };
            let left = I::settle(group, split);
            (out, I::below(&children[0], limit), left, groups, scores, origins)
        }
    }

    fn example(i: u64) -> All {
        let mut next = i << 32;
        let mut random = || {
            next += 1;
            scramble(next)
        };
        let groups = (0..3).map(|_| std::array::from_fn(|_| std::array::from_fn(|_| random() as u8))).collect();
        let equations = std::array::from_fn(|_| random());
        // Few values, so that some are equal to the limit; the largest too.
        let mut number = || if random().is_multiple_of(9) { u16::MAX } else { 40_000 + (random() % 9) as u16 };
        let children = [std::array::from_fn(|_| number()), std::array::from_fn(|_| number())];
        let limit = number();
        // All densities: from no child to two of every state.
        let mut mask = || match i % 5 {
            0 => random() & random(),
            1 => random() | random(),
            2 => u64::MAX * (random() & 1),
            _ => random(),
        };
        let (zero, one) = (mask(), mask());
        let lanes = u64::MAX >> (i % 64);
        let first = i % 2 == 1;
        let split = Split { zero: zero & lanes, one: one & lanes, lanes, row: (i % 200) as usize, first, best: 39_990 };
        All(groups, equations, children, limit, split)
    }

    #[test]
    fn every_level_is_the_portable_twin() {
        for i in 0..crate::arch::rounds(3000) {
            let all = example(i);
            let All(mut groups, equations, children, limit, split) = all.clone();
            let mut out = vec![[0; LANES]; groups.len()];
            answers(&groups, &equations, &mut out);
            let (mut scores, mut origins) = (children[1], children[0]);
            let group =
                Group { planes: &mut groups[0], scores: &mut scores, origins: &mut origins, children: &children };
            let left = settle(group, split);
            let expected = (out, below(&children[0], limit), left, groups, scores, origins);
            for level in Level::available() {
                assert!(dispatch(level, all.clone()) == expected, "{level:?} {i}");
            }
        }
    }

    /// The portable twin does what it says, bit by bit.
    #[test]
    fn states_become_their_children() {
        for i in 0..crate::arch::rounds(300) {
            let All(groups, equations, children, limit, split) = example(i);
            let window = |planes: &Planes, lane: usize| u64::from_le_bytes(planes.map(|plane| plane[lane]));
            let mut out = vec![[0; LANES]; groups.len()];
            answers(&groups, &equations, &mut out);
            for (planes, out) in groups.iter().zip(&out) {
                for (lane, &byte) in out.iter().enumerate() {
                    for (i, equation) in equations.iter().enumerate() {
                        let parity = (window(planes, lane) & equation).count_ones() & 1;
                        assert_eq!(u32::from(byte >> i & 1), parity);
                    }
                }
            }
            for (lane, &value) in children[0].iter().enumerate() {
                assert_eq!(below(&children[0], limit) >> lane & 1 == 1, value < limit);
            }
            let (bit, mut planes, mut scores, mut origins) =
                (1 << (split.row % 64), groups[0], [0; LANES], children[0]);
            let group = Group { planes: &mut planes, scores: &mut scores, origins: &mut origins, children: &children };
            let (mut twins, mut dead) = settle(group, split);
            // Every child that lives on is there once, or is the second of a state that is returned.
            let now = |lane: usize| (window(&planes, lane), scores[lane], origins[lane]);
            let mut found: Vec<_> = (0..LANES).filter(|lane| (split.lanes & !dead) >> lane & 1 == 1).map(now).collect();
            let mut expected = vec![];
            for (lane, origin) in children[0].into_iter().enumerate() {
                for (one, mask) in [(false, split.zero), (true, split.one)] {
                    let second = one != split.first && twins >> lane & 1 == 1;
                    if mask >> lane & 1 == 1 && !second {
                        let window = window(&groups[0], lane) & !bit | if one { bit } else { 0 };
                        let score = children[usize::from(one)][lane].wrapping_sub(split.best);
                        expected.push((window, score, origin));
                    }
                }
            }
            (found, expected) = (sorted(found), sorted(expected));
            assert_eq!(found, expected, "{i}");
            (twins, dead) = (twins.min(1), dead.min(1));
            assert!(twins + dead <= 1, "{i}: a place is left, and one without a place");
        }
    }

    fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
        all.sort_unstable();
        all
    }
}
