//! a ribbon and a key -> the key's value: how a static function is read.

use std::marker::PhantomData;

use super::kernel::{Any, Bit, Broad, Columns, Lookup, Many, One, Outcome};
use super::{Fast, Frame, Level, Ribbon, SHAPES, STANDARD, band};
use crate::arch::{self, Isa, QueryFn};
use crate::hash::Digest;
use crate::leaves::{Leaf, Never, Query, ShardedLeaf};

/// Calls `$run!(kernel)` with the kernel that reads the values of a ribbon, or `$any`. Their width is whole, and they are not all
/// zero: fewer kernels than filters have.
macro_rules! with_value_kernel {
    ($ribbon:expr, $any:expr, $run:ident) => {
        with_value_kernel!($ribbon, $any, $run: 1 2 3 4 5 6 7 8)
    };
    ($ribbon:expr, $any:expr, $run:ident: $($columns:literal)*) => {
        match $ribbon.fast {
            $(Fast::Columns { columns: $columns, part: false } => $run!(Columns<$columns, false>),)*
            $(Fast::Small { columns: $columns } => $run!(Small<$columns>),)*
            Fast::Broad => $run!(Broad),
            Fast::Bit => $run!(Bit),
            _ => $any,
        }
    };
}

/// The function that returns the value of one key.
pub(super) fn value_fn(ribbon: &Ribbon, leaf: &ShardedLeaf<Ribbon>) -> QueryFn<Leaf, u32> {
    macro_rules! run {
        ($kernel:ty) => {
            leaf.by::<Leaf, One<$kernel>, _>(ribbon.cpu)
        };
    }
    match ribbon.empty {
        true => QueryFn::portable::<Never>(),
        false => with_value_kernel!(ribbon, leaf.by::<Leaf, Any, _>(ribbon.cpu), run),
    }
}

/// Values of many keys.
pub(super) fn get_many(ribbon: &Ribbon, leaf: &ShardedLeaf<Ribbon>, keys: &[Digest], out: &mut [u32]) {
    macro_rules! run {
        ($kernel:ty) => {
            arch::dispatch(ribbon.cpu, Many::<$kernel, u32> { leaf, keys, out, kernel: PhantomData })
        };
    }
    match ribbon.empty {
        true => out.fill(0),
        false => with_value_kernel!(ribbon, leaf.one_by_one(keys, out, Ribbon::get), run),
    }
}

/// Bytes that come from memory at once.
const LINE: usize = 64;

impl Outcome for u32 {
    #[inline(always)]
    fn at<K: Lookup, I: Isa>(level: &Level, payload: &[u8], _: u64, h: u64, row: u64) -> Option<u32> {
        K::value::<I>(level, payload, h, row)
    }

    #[inline(always)]
    fn prefetch<K: Lookup>(level: &Level, payload: &[u8], at: usize) {
        let last = K::span(level) - 1;
        (0..last).step_by(LINE).for_each(|line| arch::prefetch(payload, at + line));
        arch::prefetch(payload, at + last);
    }

    #[inline(always)]
    fn plainly(ribbon: &Ribbon, payload: &[u8], h: u64) -> u32 {
        ribbon.read(payload, h)
    }
}

/// Small sets: one level of bands of 128 bits that start anywhere, and of a whole width. `R` is the width, or eight for all
/// from there on, which are read eight columns at a time.
#[derive(Clone, Copy)]
pub(super) struct Small<const R: usize>;

impl<const R: usize> Lookup for Small<R> {
    const SHAPE: usize = STANDARD;
    const BYTES: usize = 24 * R;
    const V4: bool = R > 3;

    #[inline(always)]
    fn frame(level: &Level) -> Frame {
        level.frame
    }

    #[inline(always)]
    fn span(level: &Level) -> usize {
        24 * Self::columns(level)
    }

    #[inline(always)]
    fn place(level: &Level, row: u64) -> usize {
        (level.rows_at + (row >> 6) * 8 * Self::columns(level) as u64) as usize
    }

    #[inline(always)]
    fn mask(level: &Level, _: u64) -> u32 {
        u32::MAX >> (32 - Self::columns(level) as u32)
    }

    #[inline(always)]
    fn value<I: Isa>(level: &Level, payload: &[u8], h: u64, row: u64) -> Option<u32> {
        let band = band(h, &SHAPES[STANDARD]) & level.mask;
        let (low, high) = (band as u64, (band >> 64) as u64);
        // As in `spread`, over three blocks.
        let (first, above) = (low << (row & 63), high << (row & 63));
        let (below, third) = ((low >> 1) >> (!row & 63), (high >> 1) >> (!row & 63));
        let (words, block) = ([first, above | below, third], 8 * Self::columns(level));
        let bytes = payload.get(Self::place(level, row)..)?;
        if let Some(bytes) = bytes.get(..3 * block) {
            return Some(Self::groups::<I>(level, words, |from| bytes.get(from..from + 8 * R).unwrap_or(&[])));
        }
        // The last blocks are not there: then no coefficient is on them.
        let end = |at: usize| at.min(bytes.len());
        Some(Self::groups::<I>(level, words, |from| &bytes[end(from)..end(from + 8 * R)]))
    }
}

impl<const R: usize> Small<R> {
    #[inline(always)]
    fn columns(level: &Level) -> usize {
        if R < 8 { R } else { level.whole as usize }
    }

    /// The value under the words of a band; `words_at` has `R` columns of a block, by their place after the first byte.
    #[inline(always)]
    fn groups<'a, I: Isa>(level: &Level, [a, b, c]: [u64; 3], words_at: impl Fn(usize) -> &'a [u8]) -> u32 {
        let columns = Self::columns(level);
        let (mut value, mut column) = (0, 0);
        loop {
            let words = |block: usize| words_at(8 * (block * columns + column));
            let (first, second, third) = (words(0), words(1), words(2));
            value |= (I::parities::<R>(first, second, a, b) ^ I::parities::<R>(third, third, c, 0)) << column;
            if column + R >= columns {
                return value;
            }
            // The last eight may overlap those before: equal bits.
            column = (columns - R).min(column + R);
        }
    }
}
