//! safe calls -> the processor: the only unsafe code of the crate.
//!
//! A hot loop is written once, as a [`Kernel`] in safe Rust, generic over an instruction set [`Isa`]. [`dispatch`] runs it
//! compiled for the best set this processor has: the default build is fast on the user's machine, not on the machine that
//! compiled it. A [`Level`] can only be made by detection, so holding one is the proof that calling is safe.
//!
//! ```text
//!   Kernel::run::<Base>     any processor                      the scalar twin of everything below
//!   Kernel::run::<V3>       popcnt, bmi, lzcnt, avx2           most x86-64 since 2013
//!   Kernel::run::<V4>       V3 and avx512 f, bw, vl, vbmi, vpopcntdq   servers since 2019
//! ```
//!
//! Tests run every kernel at every level of [`Level::available`] and compare bytes and answers.
#![allow(unsafe_code)]

use crate::hash::Digest;

pub(crate) mod block;
mod parity;
mod select;

/// A loop that [`dispatch`] compiles for several instruction sets. `run` must be `#[inline(always)]`.
pub(crate) trait Kernel {
    /// What the loop returns.
    type Output;
    /// The loop itself.
    fn run<I: Isa>(self) -> Self::Output;
}

/// An instruction set, as a type: the methods are the operations whose best form differs between processors.
pub(crate) trait Isa: Copy + 'static {
    /// Bit `j` of the result is the parity of word `j` of `first` under `low` and word `j` of `second` under `high`.
    #[inline(always)]
    fn parities<const R: usize>(first: &[u8], second: &[u8], low: u64, high: u64) -> u32 {
        parity::scalar::<R>(first, second, low, high)
    }

    /// Whether the eight bits of `hash` are all set in a block of a split-block Bloom filter.
    #[inline(always)]
    fn block_contains(block: &[u8; 32], hash: u32) -> bool {
        block::contains(block, hash)
    }

    /// Sets the eight bits of `hash`.
    #[inline(always)]
    fn block_insert(block: &mut [u8; 32], hash: u32) {
        block::insert(block, hash);
    }

    /// The place of the `rank`-th one of a word, counted from 0; 64 if there are not so many.
    #[inline(always)]
    fn select(word: u64, rank: u32) -> u32 {
        select::scalar(word, rank)
    }
}

/// Portable code.
#[derive(Clone, Copy)]
pub(crate) struct Base;
impl Isa for Base {}

/// See the module's table.
#[derive(Clone, Copy)]
pub(crate) struct V3;
impl Isa for V3 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn block_contains(block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: only `dispatch` and `Ask` name this set, after detection found avx2.
        unsafe { block::contains_avx2(block, hash) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn block_insert(block: &mut [u8; 32], hash: u32) {
        // SAFETY: as above.
        unsafe { block::insert_avx2(block, hash) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn select(word: u64, rank: u32) -> u32 {
        // SAFETY: as above, for bmi1 and bmi2.
        unsafe { select::pdep(word, rank) }
    }
}

/// See the module's table.
#[derive(Clone, Copy)]
pub(crate) struct V4;
impl Isa for V4 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn parities<const R: usize>(first: &[u8], second: &[u8], low: u64, high: u64) -> u32 {
        // A few columns are as fast one by one.
        if R < 5 {
            return parity::scalar::<R>(first, second, low, high);
        }
        // SAFETY: only `dispatch` and `Ask` name V4, after detection found its features.
        unsafe { parity::avx512::<R>(first, second, low, high) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn block_contains(block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: only `dispatch` and `Ask` name this set, after detection found avx2.
        unsafe { block::contains_avx2(block, hash) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn block_insert(block: &mut [u8; 32], hash: u32) {
        // SAFETY: as above.
        unsafe { block::insert_avx2(block, hash) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn select(word: u64, rank: u32) -> u32 {
        // SAFETY: as above, for bmi1 and bmi2.
        unsafe { select::pdep(word, rank) }
    }
}

/// An instruction set this processor has. Only detection makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level(Set);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Set {
    Base,
    #[cfg(target_arch = "x86_64")]
    V3,
    #[cfg(target_arch = "x86_64")]
    V4,
}

impl Level {
    /// The best set of this processor.
    #[inline]
    pub(crate) fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let v3 = has!("popcnt") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("avx2");
            let v4 = has!("avx512f")
                && has!("avx512bw")
                && has!("avx512vl")
                && has!("avx512vbmi")
                && has!("avx512vpopcntdq");
            if v3 {
                return Level(if v4 { Set::V4 } else { Set::V3 });
            }
        }
        Level(Set::Base)
    }

    /// Every set this processor has, the portable one first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Level> {
        let mut sets = vec![Set::Base];
        #[cfg(target_arch = "x86_64")]
        sets.extend([Set::V3, Set::V4]);
        sets.retain(|&s| s <= Level::detect().0);
        sets.into_iter().map(Level).collect()
    }
}

/// Runs a kernel compiled for `level`.
#[inline(always)]
pub(crate) fn dispatch<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level.0 {
        Set::Base => kernel.run::<Base>(),
        // SAFETY: a Level of this set exists, so detection found every feature `run_v3` enables.
        #[cfg(target_arch = "x86_64")]
        Set::V3 => unsafe { run_v3(kernel) },
        // SAFETY: as above, for `run_v4`.
        #[cfg(target_arch = "x86_64")]
        Set::V4 => unsafe { run_v4(kernel) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2")]
fn run_v3<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<V3>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq")]
fn run_v4<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<V4>()
}

/// How something answers for one key: yes or no, or with a value. `answer` must be `#[inline(always)]`.
pub(crate) trait Answer<T: ?Sized, O = bool> {
    /// The query itself.
    fn answer<I: Isa>(asked: &T, key: Digest) -> O;
}

/// A query compiled for the best instruction set: chosen once, when a file is opened, so that asking is one indirect call
/// with everything in registers. A [`Kernel`] per key would pass its parts through memory, and one function for all
/// structures would save registers for the hungriest of them: both cost more than many a query.
pub(crate) struct Ask<T: ?Sized, O = bool>(unsafe fn(&T, Digest) -> O);

/// The same for a value.
pub(crate) type Fetch<T> = Ask<T, u32>;

impl<T: ?Sized, O> Clone for Ask<T, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized, O> Copy for Ask<T, O> {}

impl<T: ?Sized, O> std::fmt::Debug for Ask<T, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ask")
    }
}

impl<T: ?Sized, O> Ask<T, O> {
    /// The way `A` answers, compiled for `level`.
    pub(crate) fn new<A: Answer<T, O>>(level: Level) -> Ask<T, O> {
        fn base<T: ?Sized, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
            A::answer::<Base>(asked, key)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2")]
        fn v3<T: ?Sized, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
            A::answer::<V3>(asked, key)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq")]
        fn v4<T: ?Sized, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
            A::answer::<V4>(asked, key)
        }
        match level.0 {
            Set::Base => Ask(base::<T, O, A>),
            #[cfg(target_arch = "x86_64")]
            Set::V3 => Ask(v3::<T, O, A>),
            #[cfg(target_arch = "x86_64")]
            Set::V4 => Ask(v4::<T, O, A>),
        }
    }

    /// Asks.
    #[inline(always)]
    pub(crate) fn call(&self, asked: &T, key: Digest) -> O {
        // SAFETY: `new` chose the function for a Level, so detection found every feature it enables.
        unsafe { (self.0)(asked, key) }
    }
}

/// Asks for the cache line of `items[at]`. Only a hint: any `at` is allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, whatever the address, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at) as *const i8) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// A file as bytes, without reading it.
#[cfg(feature = "mmap")]
pub(crate) fn map(path: &std::path::Path) -> std::io::Result<bytes::Bytes> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(bytes::Bytes::new()); // an empty map is an error on some systems
    }
    // SAFETY: the caller was told not to change the file while the filter lives. Should it happen all the same, any payload
    // bytes give some answer: geometry was copied out and checked when the filter was opened.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(bytes::Bytes::from_owner(map))
}

/// A whole file, in huge pages where the system has them.
pub(crate) fn read(path: &std::path::Path) -> std::io::Result<bytes::Bytes> {
    let mut file = std::fs::File::open(path)?;
    let mut arena = Arena::new(file.metadata()?.len());
    std::io::copy(&mut file, &mut arena)?;
    Ok(arena.finish())
}

/// Memory for a whole filter: a vector while it is small; then pages, so that the lines of a structure are cache lines, and
/// huge ones where the system has them: fewer misses of the address cache.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    small: Vec<u8>,
    #[cfg(feature = "mmap")]
    pages: Option<memmap2::MmapMut>,
    len: usize,
}

/// Less stays in the vector.
#[cfg(feature = "mmap")]
const LARGE: usize = 1 << 16;

impl Arena {
    /// An arena for about this many bytes.
    pub(crate) fn new(expected: u64) -> Arena {
        let mut arena = Arena::default();
        arena.reserve(usize::try_from(expected.min(1 << 32)).unwrap_or(0));
        arena
    }

    /// Makes room for `len` bytes in all; fails only where a vector would.
    fn reserve(&mut self, len: usize) {
        #[cfg(feature = "mmap")]
        if len >= LARGE
            && let Ok(mut pages) = memmap2::MmapMut::map_anon(len)
        {
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage); // only a wish
            pages[..self.len].copy_from_slice(self.bytes());
            self.small = Vec::new();
            self.pages = Some(pages);
            return;
        }
        self.small.reserve(len.saturating_sub(self.small.len()));
    }

    fn bytes(&self) -> &[u8] {
        #[cfg(feature = "mmap")]
        if let Some(pages) = &self.pages {
            return &pages[..self.len];
        }
        &self.small
    }

    /// What was written.
    pub(crate) fn finish(self) -> bytes::Bytes {
        #[cfg(feature = "mmap")]
        if let Some(pages) = self.pages {
            return bytes::Bytes::from_owner(pages).slice(..self.len);
        }
        self.small.into()
    }
}

impl std::io::Write for Arena {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let end = self.len + bytes.len();
        #[cfg(feature = "mmap")]
        {
            let room = self.pages.as_ref().map_or(LARGE, |pages| pages.len());
            if end > room {
                self.reserve(end + end / 2);
            }
            if let Some(pages) = self.pages.as_mut().filter(|pages| pages.len() >= end) {
                pages[self.len..end].copy_from_slice(bytes);
                self.len = end;
                return Ok(bytes.len());
            }
            if let Some(pages) = self.pages.take() {
                self.small = pages[..self.len].to_vec(); // no more pages to be had
            }
        }
        self.small.extend_from_slice(bytes);
        self.len = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    /// An arena is a vector, whatever it expects.
    #[test]
    fn an_arena_holds_what_was_written() {
        let data: Vec<u8> = (0..300_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
        for expected in [0, 10, 70_000, 299_999, 300_000, 1 << 20] {
            for step in [1000, 65_536, 150_000, 300_000] {
                let mut arena = Arena::new(expected);
                data.chunks(step).for_each(|part| arena.write_all(part).unwrap());
                assert!(arena.finish() == data, "{expected} {step}");
            }
        }
        assert!(Arena::new(1 << 20).finish().is_empty());
    }
}
