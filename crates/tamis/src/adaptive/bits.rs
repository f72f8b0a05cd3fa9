//! a row of bits in words -> fields read, written, squeezed in and taken out: what a block is made of.
//!
//! Positions count from the low bit of the first word. All fields have at most 64 bits.

use crate::arch::Isa;

/// The low `len` bits.
#[inline(always)]
pub(super) fn low(len: u32) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// 64 bits from `at` on; what lies behind the last word is zero.
#[inline(always)]
fn window(words: &[u64], at: usize) -> u64 {
    let (word, shift) = (at / 64, at % 64);
    let here = words[word] >> shift;
    // Two shifts: one by 64 is not defined.
    let above = words.get(word + 1).map_or(0, |&next| (next << 1) << (63 - shift));
    here | above
}

/// The field of `len` bits at `at`.
#[inline(always)]
pub(super) fn get(words: &[u64], at: usize, len: u32) -> u64 {
    if len == 0 { 0 } else { window(words, at) & low(len) }
}

/// Writes the low `len` bits of `value` to `at`.
#[inline(always)]
pub(super) fn put(words: &mut [u64], at: usize, len: u32, value: u64) {
    if len == 0 {
        return;
    }
    let (mask, value) = (low(len), value & low(len));
    let (word, shift) = (at / 64, at % 64);
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + len as usize > 64 {
        words[word + 1] = words[word + 1] & !(mask >> (64 - shift)) | value >> (64 - shift);
    }
}

/// The bits of word `word` that lie in `from..to`.
#[inline(always)]
fn inside(word: usize, from: usize, to: usize) -> u64 {
    below_place(word, to) & !below_place(word, from)
}

/// Moves bits `from..to` up by `by`, 1 to 64; the bits `from..from + by` are to be written then.
#[inline(always)]
pub(super) fn move_up(words: &mut [u64], from: usize, to: usize, by: u32) {
    if from >= to || by == 0 {
        return;
    }
    let by = by as usize;
    for word in ((from + by) / 64..=(to + by - 1) / 64).rev() {
        let moved = match (64 * word).checked_sub(by) {
            Some(at) => window(words, at),
            None => words[0] << (by - 64 * word),
        };
        let mask = inside(word, from + by, to + by);
        words[word] = words[word] & !mask | moved & mask;
    }
}

/// Moves bits `from..to` down by `by`, 1 to 64; the bits `to - by..to` keep what they had.
#[inline(always)]
pub(super) fn move_down(words: &mut [u64], from: usize, to: usize, by: u32) {
    if from >= to || by == 0 {
        return;
    }
    let by = by as usize;
    for word in (from - by) / 64..=(to - by - 1) / 64 {
        let source = 64 * word + by;
        let moved = if source / 64 < words.len() { window(words, source) } else { 0 };
        let mask = inside(word, from - by, to - by);
        words[word] = words[word] & !mask | moved & mask;
    }
}

/// Squeezes a one in at `one` and a zero at `zero`, which is not before it: bits from `one` on move up by 1, those from `zero` on by 2, up to `end`. A single pass
/// over all words before `end`: their number hardly changes from call to call, and the places do.
#[inline(always)]
pub(super) fn insert_pair(words: &mut [u64], one: usize, zero: usize, end: usize) {
    for word in (0..=(end + 1) / 64).rev() {
        let here = words[word];
        let below = if word == 0 { 0 } else { words[word - 1] };
        let [start, first, second] = [one, zero + 1, end + 2].map(|at| below_place(word, at));
        let second = second & !(first | bit(word, zero + 1));
        let first = first & !(start | bit(word, one));
        let moved = (here << 1 | below >> 63) & first | (here << 2 | below >> 62) & second;
        let kept = here & (start | !below_place(word, end + 2));
        words[word] = kept | moved | bit(word, one);
    }
}

/// The bits of a word that lie before a place.
#[inline(always)]
fn below_place(word: usize, at: usize) -> u64 {
    low(at.saturating_sub(64 * word).min(64) as u32)
}

/// The bit of a place, if it is in this word.
#[inline(always)]
fn bit(word: usize, at: usize) -> u64 {
    u64::from(at / 64 == word) << (at % 64)
}

/// [`move_down`] in a pass over all words from the first one that changes, for the same reason.
#[inline(always)]
pub(super) fn move_down_to_end(words: &mut [u64], from: usize, to: usize, by: u32) {
    let by = by as usize;
    let last = words.len() - 1;
    for word in (from - by) / 64..last {
        let moved = words[word] >> (by % 64) | (words[word + 1] << 1) << (63 - by % 64);
        let mask = inside(word, from - by, to - by);
        words[word] = words[word] & !mask | moved & mask;
    }
    let mask = inside(last, from - by, to - by);
    words[last] = words[last] & !mask | words[last] >> (by % 64) & mask;
}

/// Squeezes the low `len` bits of `value` in at `at`; what lies between there and `end` gives way.
#[inline(always)]
pub(super) fn insert(words: &mut [u64], at: usize, len: u32, value: u64, end: usize) {
    move_up(words, at, end, len);
    put(words, at, len, value);
}

/// Takes `len` bits out at `at`; what lies between there and `end` closes the gap, and zeros follow.
#[inline(always)]
pub(super) fn remove(words: &mut [u64], at: usize, len: u32, end: usize) {
    move_down(words, at + len as usize, end, len);
    put(words, end - len as usize, len, 0);
}

/// Where the `rank`-th zero from `at` on is, counted from 0, which is in word `last` at the latest. There must be one.
///
/// All words that can be meant are counted: how many there are hardly changes from call to call, and which is meant does, so that stopping there would be
/// guessed wrong most of the time.
#[inline(always)]
pub(super) fn select_zero<I: Isa>(words: &[u64], at: usize, rank: u32, last: usize) -> usize {
    let first = at / 64;
    let all = !low((at % 64) as u32);
    let (mut word, mut before, mut zeros) = (first, 0, (!words[first] & all).count_ones());
    for &next in &words[first + 1..=last] {
        let past = zeros <= rank;
        word += usize::from(past);
        before = if past { zeros } else { before };
        zeros += next.count_zeros();
    }
    let all = if word == first { all } else { u64::MAX };
    64 * word + I::select(!words[word] & all, rank - before) as usize
}

/// Where the next zero from `at` on is. There must be one.
#[inline(always)]
pub(super) fn next_zero(words: &[u64], at: usize) -> usize {
    let mut word = at / 64;
    let mut zeros = !words[word] & !low((at % 64) as u32);
    while zeros == 0 {
        word += 1;
        zeros = !words[word];
    }
    64 * word + zeros.trailing_zeros() as usize
}

/// How many ones are in `from..to`.
pub(super) fn ones(words: &[u64], from: usize, to: usize) -> usize {
    let words = words.iter().enumerate().take(to.div_ceil(64)).skip(from / 64);
    words.map(|(at, word)| (word & inside(at, from, to)).count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Kernel, Level, dispatch};
    use crate::hash::scramble;

    /// Every operation against a vector of bools.
    #[test]
    fn a_row_of_bits_is_a_vector() {
        let mut state = 7;
        let mut random = |below: usize| {
            state = scramble(state);
            state as usize % below
        };
        let (mut words, mut bits) = ([0u64; 9], vec![false; 576]);
        let number = |bits: &[bool]| bits.iter().rev().fold(0u64, |n, &bit| n << 1 | u64::from(bit));
        for round in 0..20_000 {
            let len = random(65);
            let value = scramble(round);
            let at = random(576 - len);
            let end = at + len + random(576 - at - len + 1);
            match round % 5 {
                3 => {
                    let end = end.min(574).max(at);
                    let zero = at + random(end - at + 1);
                    insert_pair(&mut words, at, zero, end);
                    bits.copy_within(zero..end, zero + 2);
                    bits.copy_within(at..zero, at + 1);
                    (bits[at], bits[zero + 1]) = (true, false);
                }
                4 => {
                    let by = 1 + random(63);
                    let (from, to) = (at.max(by), end.max(at.max(by)));
                    move_down_to_end(&mut words, from, to, by as u32);
                    bits.copy_within(from..to, from - by);
                }
                0 => {
                    put(&mut words, at, len as u32, value);
                    (0..len).for_each(|i| bits[at + i] = value >> i & 1 == 1);
                }
                1 => {
                    let end = end - len; // what was there moves up to it
                    insert(&mut words, at, len as u32, value, end.max(at));
                    bits.copy_within(at..end.max(at), at + len);
                    (0..len).for_each(|i| bits[at + i] = value >> i & 1 == 1);
                }
                _ => {
                    remove(&mut words, at, len as u32, end);
                    bits.copy_within(at + len..end, at);
                    bits[end - len..end].fill(false);
                }
            }
            assert_eq!(get(&words, at, len as u32), number(&bits[at..at + len]), "round {round}");
            let found: Vec<bool> = (0..576).map(|i| get(&words, i, 1) == 1).collect();
            assert!(found == bits, "round {round}: {at} {len} {end}");
            assert_eq!(ones(&words, at, end), bits[at..end].iter().filter(|&&bit| bit).count());
        }
    }

    struct Select<'a>(&'a [u64], usize, u32, usize);

    impl Kernel for Select<'_> {
        type Output = usize;
        #[inline(always)]
        fn run<I: Isa>(self) -> usize {
            select_zero::<I>(self.0, self.1, self.2, self.3)
        }
    }

    #[test]
    fn zeros_are_found() {
        let words = [u64::MAX, !0x0001_0000_8000_0001, u64::MAX, 0, 0x5555_5555_5555_5555];
        for at in 0..320 {
            let zeros: Vec<usize> = (at..320).filter(|&i| get(&words, i, 1) == 0).collect();
            for level in Level::available() {
                for (rank, &zero) in zeros.iter().enumerate() {
                    for last in zero / 64..words.len() {
                        assert_eq!(dispatch(level, Select(&words, at, rank as u32, last)), zero);
                    }
                }
            }
            if let Some(&first) = zeros.first() {
                assert_eq!(next_zero(&words, at), first);
            }
        }
    }
}
