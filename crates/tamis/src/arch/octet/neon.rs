//! an [`Octet`] or bytes of a table -> sums, parities, solved rows, with NEON: the twins of the portable loops.

use std::arch::aarch64::*;

use super::{NIBBLES, Octet, PAIRS, Word, transpose};

/// Bit `i % 8` in byte `i`.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Sixteen bytes of a table.
#[inline]
#[target_feature(enable = "neon")]
fn table(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: there are sixteen.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// The band in both halves of a register.
#[inline]
#[target_feature(enable = "neon")]
fn twice(band: u64) -> uint8x16_t {
    vreinterpretq_u8_u64(vdupq_n_u64(band))
}

/// Bit `i` is the parity of byte `i`.
#[inline]
#[target_feature(enable = "neon")]
fn odd_bytes(sum: uint8x8_t) -> u32 {
    let odd = vtst_u8(vcnt_u8(sum), vdup_n_u8(1));
    vaddv_u8(vand_u8(odd, vget_low_u8(table(&BITS)))).into()
}

/// The twin of [`super::parities`] for strides up to eight, two octets at a time; nothing if it would read too far.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::arch) fn parities(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    if bytes.len() < 6 * stride + 16 {
        return None;
    }
    let stride = stride.min(8);
    let [spread, second] = &PAIRS[stride];
    let (spread, second) = (table(spread), table(second));
    let mut sum = vdupq_n_u8(0);
    for k in [0, 2, 4, 6] {
        // SAFETY: the last load ends at 6 * stride + 16, which `bytes` has.
        let octets = unsafe { vld1q_u8(bytes.as_ptr().add(k * stride)) };
        // What is beyond the table is zero, and stays beyond it.
        let mask = vqtbl1q_u8(twice(band), vaddq_u8(spread, vdupq_n_u8(k as u8)));
        sum = veorq_u8(sum, vandq_u8(octets, mask));
    }
    Some(odd_bytes(veor_u8(vget_low_u8(sum), vqtbl1_u8(sum, vget_low_u8(second)))))
}

/// The twin of [`super::broad_parities`], up to sixteen columns in one pass and more in another; nothing if it would read too far.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::arch) fn broad_parities(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    let from = stride.saturating_sub(16);
    if !(9..=32).contains(&stride) || bytes.len() < from + 7 * stride + 16 {
        return None;
    }
    let half = |from: usize| {
        let mut sum = vdupq_n_u8(0);
        for k in 0..8 {
            // SAFETY: sixteen bytes, the last of which ends where `bytes` was found to reach.
            let octet = unsafe { vld1q_u8(bytes.as_ptr().add(from + k * stride)) };
            sum = veorq_u8(sum, vandq_u8(octet, vqtbl1q_u8(twice(band), vdupq_n_u8(k as u8))));
        }
        odd_bytes(vget_low_u8(sum)) | odd_bytes(vget_high_u8(sum)) << 8
    };
    let low = half(0);
    // The last sixteen may overlap the first: equal bits.
    let value = if from == 0 { low } else { low | half(from) << from };
    Some(value & u32::MAX >> (32 - stride))
}

/// The twin of [`super::add`].
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::arch) fn add<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
    let (heads, tails) = (octet.heads.as_mut_ptr(), octet.tails.as_mut_ptr().cast::<u8>());
    let bit = vdupq_n_u8(head & head.wrapping_neg());
    // Tails in a register, and the entries of the first one by byte.
    let step = 16 / size_of::<W>();
    let first = vcombine_u8(vdup_n_u8(0), vdup_n_u8(step as u8 - 1));
    // SAFETY: a tail has eight bytes, or sixteen.
    let tail = unsafe {
        match step {
            2 => vreinterpretq_u8_u64(vld1q_dup_u64((&raw const tail).cast())),
            _ => vld1q_u8((&raw const tail).cast()),
        }
    };
    let mut marks = [vdupq_n_u8(0); 2];
    for (half, marks) in marks.iter_mut().enumerate() {
        // SAFETY: 32 heads and 32 nibbles are two registers each; what is written is part of the octet that is borrowed.
        let has = unsafe {
            let heads = heads.add(16 * half);
            let old = vld1q_u8(heads);
            let has = vtstq_u8(veorq_u8(old, vld1q_u8(NIBBLES.as_ptr().add(16 * half))), bit);
            vst1q_u8(heads, veorq_u8(old, vandq_u8(has, vdupq_n_u8(head))));
            has
        };
        for i in 0..16 / step {
            let mask = vqtbl1q_u8(has, vaddq_u8(first, vdupq_n_u8((i * step) as u8)));
            // SAFETY: sixteen entries are `16 / step` registers of tails.
            unsafe {
                let at = tails.add(16 * (16 / step * half + i));
                vst1q_u8(at, veorq_u8(vld1q_u8(at), vandq_u8(mask, tail)));
            }
        }
        *marks = vandq_u8(has, table(&BITS));
    }
    // Eight bytes with a bit each become one, by three sums of neighbours.
    let sum = vpaddq_u8(marks[0], marks[1]);
    let sum = vpaddq_u8(sum, sum);
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(sum, sum)))
}

/// Entry `x` is row `i` if bit `i % 4` of `x` is set, and beyond any table if not.
const ROWS: [[u8; 16]; 8] = {
    let mut rows = [[255; 16]; 8];
    let mut at = 0;
    while at < 128 {
        let (i, x) = (at / 16, at % 16);
        if x >> (i % 4) & 1 == 1 {
            rows[i][x] = i as u8;
        }
        at += 1;
    }
    rows
};

/// The twin of [`super::solve`] and [`super::solve_wide`], for eight rows that fill `N` registers: sixteen look-ups at a time.
#[target_feature(enable = "neon")]
pub(in crate::arch) fn solve<W: Word, const N: usize>(rows: &[[W; 8]], out: &mut [u64]) {
    const { assert!(size_of::<[W; 8]>() == 16 * N) };
    // The sums of rows 0..4 and of rows 4..8; those of octet o at o % 2 and o / 2 % N.
    let mut sums = [[[vdupq_n_u8(0); 2]; N]; 2];
    for (o, (rows, out)) in rows.iter().zip(out).enumerate().rev() {
        let mut bytes = [vdupq_n_u8(0); N];
        for (i, bytes) in bytes.iter_mut().enumerate() {
            // SAFETY: eight rows are `N` registers.
            *bytes = unsafe { vld1q_u8(rows.as_ptr().cast::<u8>().add(16 * i)) };
        }
        // Shuffling the first half into the second moves the top bit of a byte's place to the bottom. Three times, and the
        // three bits of the row are there: register i has bytes 2 i and 2 i + 1 of all rows.
        for _ in 0..3 {
            let old = bytes;
            for i in 0..N / 2 {
                let (a, b) = (old[i], old[i + N / 2]);
                (bytes[2 * i], bytes[2 * i + 1]) = (vzip1q_u8(a, b), vzip2q_u8(a, b));
            }
        }
        let mut found = [vdupq_n_u8(0); 2];
        for (i, &bytes) in bytes.iter().enumerate() {
            let (low, high) = (vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes));
            for (odd, found) in found.iter_mut().enumerate() {
                // Byte 0 is the value.
                if i + odd > 0 {
                    let at = o + 2 * i + odd;
                    let sums = sums[at % 2][at / 2 % N];
                    *found = veorq_u8(*found, veorq_u8(vqtbl1q_u8(sums[0], low), vqtbl1q_u8(sums[1], high)));
                }
            }
        }
        let sum = veor_u8(vget_low_u8(found[0]), vget_high_u8(found[1]));
        let solved = veor_u8(vget_low_u8(bytes[0]), sum);
        let both = vcombine_u8(solved, solved);
        for (half, sums) in sums[o % 2][o / 2 % N].iter_mut().enumerate() {
            *sums = vdupq_n_u8(0);
            for i in 0..4 {
                *sums = veorq_u8(*sums, vqtbl1q_u8(both, table(&ROWS[4 * half + i])));
            }
        }
        *out = transpose(vget_lane_u64::<0>(vreinterpret_u64_u8(solved)));
    }
}
