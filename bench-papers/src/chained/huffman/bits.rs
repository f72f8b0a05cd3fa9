//! values and their Huffman code -> a filter that knows every bit of it: \[Chained\], section 5.2.
//!
//! Bit j of the codeword at position i is an entry of its own, (i, j), and the filter says yes to the ones: a value is
//! read by asking for one bit after the other. Ones and zeros change places where ones are more, for it is the keys of a
//! chained filter that cost.

use super::super::{CELLS, Chained};
use super::code::Code;
use crate::mapped::{Built, Mapped, Outcome, Pairs};
use crate::xor::Table;
use crate::xor::shared::Shared;

/// The entry of bit `j` at a position; codewords have less than 64 bits.
#[inline]
fn entry(position: u64, j: u64) -> u64 {
    position << 6 | j
}

/// The filters of figure 8. They take positions as keys.
pub(super) fn filters() -> Vec<Mapped> {
    vec![
        Mapped::new(super::STRAWMAN, |pairs| {
            let build = |keys: &[u64], negatives: &[u64]| Table::bloomier(keys, negatives, 1, CELLS, 5);
            build_with(pairs, build, Table::bits, Table::contains)
        }),
        Mapped::new(super::CHAINED, |pairs| {
            let build = |keys: &[u64], negatives: &[u64]| Chained::build(keys, negatives, 5);
            build_with(pairs, build, Chained::bits, Chained::contains)
        }),
        Mapped::new("chained, shared addresses", |pairs| {
            let build = |keys: &[u64], negatives: &[u64]| Shared::build(keys, negatives, CELLS, 5);
            build_with(pairs, build, Shared::bits, Shared::contains)
        }),
    ]
}

fn build_with<F: 'static>(
    pairs: &Pairs,
    build: impl Fn(&[u64], &[u64]) -> Result<F, String>,
    bits: impl Fn(&F) -> usize,
    contains: impl Fn(&F, u64) -> bool + 'static,
) -> Outcome {
    let code = Code::of(&pairs.values)?;
    let [mut ones, mut zeros] = [Vec::new(), Vec::new()];
    for (&position, &value) in pairs.keys.iter().zip(&pairs.values) {
        let (word, length) = code.word(value);
        for j in 0..length {
            let side = if word >> (length - 1 - j) & 1 == 1 { &mut ones } else { &mut zeros };
            side.push(entry(position, u64::from(j)));
        }
    }
    let yes = ones.len() <= zeros.len();
    let (keys, negatives) = if yes { (ones, zeros) } else { (zeros, ones) };
    let filter = build(&keys, &negatives)?;
    let bytes = bits(&filter).div_ceil(8) + code.bytes();
    Ok(Built::new(bytes, filter, move |filter, position| code.follow(|j| contains(filter, entry(position, j)) == yes)))
}
