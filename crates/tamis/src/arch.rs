//! safe calls -> the processor: the only unsafe code of the crate.
//!
//! A hot loop is written once, as a [`Kernel`] in safe Rust, generic over an instruction set [`Isa`]. [`dispatch`] runs it
//! compiled for the best set this processor has: the default build is fast on the user's machine, not on the machine that
//! compiled it. A [`Level`] can only be made by detection, so holding one is the proof that calling is safe.
//!
//! ```text
//!   Kernel::run::<Base>     any processor                      the scalar twin of everything below
//!   Kernel::run::<V3>       popcnt, bmi, lzcnt, avx2           most x86-64 since 2013
//!   Kernel::run::<V4>       V3, avx512 f, bw, dq, vl, vbmi, vbmi2, bitalg, vpopcntdq, gfni   servers since 2019
//!   Kernel::run::<Neon>     neon, little-endian                every usual aarch64
//! ```
//!
//! Tests run every kernel at every level of [`Level::available`] and compare bytes and answers.
#![allow(unsafe_code)]

use crate::hash::Digest;
use lanes::{Lanes, Places};
use octet::{Octet, Word};
#[cfg(feature = "build")]
use planes::{Group, LANES, Planes, Shorts, Split};

pub(crate) mod arena;
pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod lanes;
pub(crate) mod octet;
#[cfg(feature = "build")]
pub(crate) mod planes;
pub(crate) mod rows;
mod select;

/// How often a test repeats what is random: Miri takes a thousand times as long.
#[cfg(test)]
const fn rounds(count: u64) -> u64 {
    if cfg!(miri) { count / 20 } else { count }
}

/// A loop that [`dispatch`] compiles for several instruction sets. `run` must be `#[inline(always)]`.
pub(crate) trait Kernel {
    /// Whether the instructions of [`V4`] make the loop faster; if not, [`V3`] serves processors that have them.
    const V4: bool = true;
    /// What the loop returns.
    type Output;
    /// The loop itself.
    fn run<I: Isa>(self) -> Self::Output;
}

/// An instruction set, as a type: the methods are the operations whose best form differs between processors.
pub(crate) trait Isa: Copy + 'static {
    /// Whether loops have a form of their own for files of one shard. x86-64 processors without AVX2 do with one form.
    const QUICK: bool = true;

    /// Bit `j` of the result is the parity of column `j` of eight octets, `stride` bytes apart, under a band of 64 coefficients. There
    /// are eight columns at most; higher bits than `stride` mean nothing. Nothing if it would read beyond the end.
    #[inline(always)]
    fn parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        (octets.len() >= 7 * stride + 8).then(|| octet::parities(octets, stride, band))
    }

    /// The same for 9 to 32 columns, zero above them.
    #[inline(always)]
    fn broad_parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        (octets.len() >= 8 * stride).then(|| octet::broad_parities(octets, stride, band))
    }

    /// How many bits lie from the parity of a column to that of the next one in what [`Isa::columns`] returns.
    const APART: u32 = 8;

    /// Every [`Isa::APART`]-th bit of the result is the parity of a column of eight octets of `C` bytes, under the mask of a hash: see
    /// `columns.rs`. Other bits mean nothing. Nothing if it would read beyond the end.
    #[inline(always)]
    fn columns<const C: usize>(octets: &[u8], h: u64, masks: &[u64; 8], first: u32) -> Option<u64> {
        columns::scalar::<C>(octets, h, masks, first)
    }

    /// Where an exact bit and `N` steered columns of a key are: see `lanes.rs`.
    #[inline(always)]
    fn places<const N: usize>(lanes: &Lanes, key: Digest, place: u64) -> Places {
        lanes::places::<N>(lanes, key, place)
    }

    /// Bit `i` of the result is the parity of the bit, which is lane 0, or of a column; higher bits than `N` mean nothing.
    #[inline(always)]
    fn odd<const N: usize>(file: &[u8], places: &Places) -> u32 {
        lanes::odd::<N>(file, places)
    }

    /// Adds a row to an octet; returns the entries that it was added to.
    #[inline(always)]
    fn add_row<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
        octet::add(octet, head, tail)
    }

    /// Back substitution of octets of rows whose values are bytes; `out` is as long as `rows`.
    #[inline(always)]
    fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
        octet::solve(rows, out);
    }

    /// The same for rows of bands of 128.
    #[inline(always)]
    fn solve_wide(rows: &[[u128; 8]], out: &mut [u64]) {
        octet::solve_wide(rows, out);
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

    /// Bit `i` of byte `l` is the parity of window `l` of a group under equation `i`.
    #[cfg(feature = "build")]
    #[inline(always)]
    fn answers(planes: &[Planes], equations: &[u64; 8], out: &mut [[u8; LANES]]) {
        planes::answers(planes, equations, out);
    }

    /// Which numbers are less than `limit`.
    #[cfg(feature = "build")]
    #[inline(always)]
    fn below(values: &Shorts, limit: u16) -> u64 {
        planes::below(values, limit)
    }

    /// States become their children: those whose second child found no place, and the places that are left.
    #[cfg(feature = "build")]
    #[inline(always)]
    fn settle(group: Group<'_>, split: Split) -> (u64, u64) {
        planes::settle(group, split)
    }
}

/// Portable code.
#[derive(Clone, Copy)]
pub(crate) struct Base;
impl Isa for Base {
    const QUICK: bool = cfg!(not(target_arch = "x86_64"));
}

/// What V3 and V4 share.
macro_rules! v3 {
    () => {
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        fn block_contains(block: &[u8; 32], hash: u32) -> bool {
            // SAFETY: only `dispatch` and `QueryFn` name this set, after detection found avx2.
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
    };
}

/// The inner loops of the steered search, by the functions of a module of `planes`.
macro_rules! search {
    ($set:ident) => {
        #[cfg(all(feature = "build", target_arch = "x86_64"))]
        #[inline(always)]
        fn answers(planes: &[Planes], equations: &[u64; 8], out: &mut [[u8; LANES]]) {
            // SAFETY: only `dispatch` names this set, after detection found its features.
            unsafe { planes::$set::answers(planes, equations, out) }
        }

        #[cfg(all(feature = "build", target_arch = "x86_64"))]
        #[inline(always)]
        fn below(values: &Shorts, limit: u16) -> u64 {
            // SAFETY: as above.
            unsafe { planes::$set::below(values, limit) }
        }

        #[cfg(all(feature = "build", target_arch = "x86_64"))]
        #[inline(always)]
        fn settle(group: Group<'_>, split: Split) -> (u64, u64) {
            // SAFETY: as above.
            unsafe { planes::$set::settle(group, split) }
        }
    };
}

/// See the module's table.
#[derive(Clone, Copy)]
pub(crate) struct V3;
impl Isa for V3 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: only `dispatch` and `QueryFn` name V3, after detection found avx2.
        unsafe { octet::x86::parities_avx2(octets, stride, band) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn broad_parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: as above.
        unsafe { octet::x86::broad_parities_avx2(octets, stride, band) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_row<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
        // SAFETY: as above.
        unsafe { octet::x86::add_avx2(octet, head, tail) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
        // SAFETY: as above.
        unsafe { octet::x86::solve_avx2(rows, out) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn places<const N: usize>(lanes: &Lanes, key: Digest, place: u64) -> Places {
        match N {
            // SAFETY: as above. For fewer columns, lanes that are not used cost more than is saved.
            3 => unsafe { lanes::places_avx2(lanes, key, place) },
            _ => lanes::places::<N>(lanes, key, place),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn odd<const N: usize>(file: &[u8], places: &Places) -> u32 {
        // SAFETY: as above, for popcnt.
        unsafe { lanes::odd_popcnt::<N>(file, places) }.unwrap_or_else(|| lanes::odd::<N>(file, places))
    }

    v3!();
    search!(avx2);
}

/// See the module's table.
#[derive(Clone, Copy)]
pub(crate) struct V4;
impl Isa for V4 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: only `dispatch` and `QueryFn` name V4, after detection found its features.
        unsafe { octet::x86::parities_avx512(octets, stride, band) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn broad_parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: as above.
        unsafe { octet::x86::broad_parities_avx512(octets, stride, band) }
    }

    #[cfg(target_arch = "x86_64")]
    const APART: u32 = 1;

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn columns<const C: usize>(octets: &[u8], h: u64, masks: &[u64; 8], first: u32) -> Option<u64> {
        // SAFETY: as above.
        unsafe {
            match C {
                ..=4 => columns::four_avx512::<C>(octets, h, masks, first),
                _ => columns::eight_avx512::<C>(octets, h, masks, first),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn places<const N: usize>(lanes: &Lanes, key: Digest, place: u64) -> Places {
        match N {
            // SAFETY: as above.
            ..=3 => unsafe { lanes::places_avx2(lanes, key, place) },
            _ => lanes::places::<N>(lanes, key, place),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn odd<const N: usize>(file: &[u8], places: &Places) -> u32 {
        // SAFETY: as above.
        let odd = if N <= 3 { unsafe { lanes::odd_avx512::<N>(file, places) } } else { None };
        odd.unwrap_or_else(|| lanes::odd::<N>(file, places))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_row<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
        // SAFETY: as above.
        unsafe { octet::x86::add_avx512(octet, head, tail) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
        // SAFETY: as above.
        unsafe { octet::x86::solve_avx512(rows, out) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn solve_wide(rows: &[[u128; 8]], out: &mut [u64]) {
        // SAFETY: as above.
        unsafe { octet::x86::solve_wide_avx512(rows, out) }
    }

    v3!();
    search!(avx512);
}

/// See the module's table.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
pub(crate) struct Neon;
#[cfg(target_arch = "aarch64")]
impl Isa for Neon {
    #[inline(always)]
    fn parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: only `dispatch` and `QueryFn` name Neon, after detection found it.
        unsafe { octet::neon::parities(octets, stride, band) }
    }

    #[inline(always)]
    fn broad_parities(octets: &[u8], stride: usize, band: u64) -> Option<u32> {
        // SAFETY: as above.
        unsafe { octet::neon::broad_parities(octets, stride, band) }
    }

    #[inline(always)]
    fn add_row<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
        // SAFETY: as above.
        unsafe { octet::neon::add(octet, head, tail) }
    }

    #[inline(always)]
    fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
        // SAFETY: as above.
        unsafe { octet::neon::solve::<u64, 4>(rows, out) }
    }

    #[inline(always)]
    fn solve_wide(rows: &[[u128; 8]], out: &mut [u64]) {
        // SAFETY: as above.
        unsafe { octet::neon::solve::<u128, 8>(rows, out) }
    }

    #[inline(always)]
    fn block_contains(block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: as above.
        unsafe { block::neon::contains(block, hash) }
    }

    #[inline(always)]
    fn block_insert(block: &mut [u8; 32], hash: u32) {
        // SAFETY: as above.
        unsafe { block::neon::insert(block, hash) }
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
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// The best set of this processor.
    #[inline]
    pub(crate) fn detect() -> Level {
        #[cfg(test)]
        if let Some(level) = FORCED.get() {
            return level;
        }
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let v3 = has!("popcnt") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("avx2");
            let v4 = has!("avx512f")
                && has!("avx512bw")
                && has!("avx512dq")
                && has!("avx512vl")
                && has!("avx512vbmi")
                && has!("avx512vbmi2")
                && has!("avx512bitalg")
                && has!("avx512vpopcntdq")
                && has!("gfni");
            if v3 {
                return Level(allowed(if v4 { Set::V4 } else { Set::V3 }));
            }
        }
        // The kernels read lanes in the order of bytes in memory.
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon") {
            return Level(Set::Neon);
        }
        Level(Set::Base)
    }

    /// Runs `work` as if this were the best set, on this thread.
    #[cfg(test)]
    pub(crate) fn force<T>(self, work: impl FnOnce() -> T) -> T {
        FORCED.set(Some(self));
        let done = work();
        FORCED.set(None);
        done
    }

    /// Every set this processor has, the portable one first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Level> {
        let mut sets = vec![Set::Base];
        #[cfg(target_arch = "x86_64")]
        sets.extend([Set::V3, Set::V4]);
        #[cfg(target_arch = "aarch64")]
        sets.push(Set::Neon);
        sets.retain(|&s| s <= Level::detect().0);
        sets.into_iter().map(Level).collect()
    }
}

#[cfg(test)]
thread_local! {
    /// What detection finds, for tests of lesser processors.
    static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// The set that is used where this one is there: in the bench and the tests, a lesser one that `TAMIS_LEVEL` names (`v3` or `base`).
#[cfg(target_arch = "x86_64")]
#[inline]
fn allowed(found: Set) -> Set {
    #[cfg(feature = "internals")]
    {
        static MOST: std::sync::OnceLock<Set> = std::sync::OnceLock::new();
        let most = MOST.get_or_init(|| match std::env::var("TAMIS_LEVEL").as_deref() {
            Ok("base") => Set::Base,
            Ok("v3") => Set::V3,
            _ => Set::V4,
        });
        found.min(*most)
    }
    #[cfg(not(feature = "internals"))]
    found
}

/// Runs a kernel compiled for `level`.
#[inline(always)]
pub(crate) fn dispatch<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level.0 {
        Set::Base => kernel.run::<Base>(),
        // SAFETY: a Level of this set exists, so detection found every feature `run_v4` enables.
        #[cfg(target_arch = "x86_64")]
        Set::V4 if K::V4 => unsafe { run_v4(kernel) },
        // SAFETY: as above, for `run_v3`, whose features V4 has too.
        #[cfg(target_arch = "x86_64")]
        Set::V3 | Set::V4 => unsafe { run_v3(kernel) },
        // SAFETY: as above, for `run_neon`.
        #[cfg(target_arch = "aarch64")]
        Set::Neon => unsafe { run_neon(kernel) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2")]
fn run_v3<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<V3>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "popcnt,bmi1,bmi2,lzcnt,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg,avx512vpopcntdq,gfni"
)]
fn run_v4<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<V4>()
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn run_neon<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon>()
}

/// How something answers for one key: yes or no, or with a value. `answer` must be `#[inline(always)]`.
pub(crate) trait Answer<T, O = bool> {
    /// As [`Kernel::V4`].
    const V4: bool = false;
    /// The query itself.
    fn answer<I: Isa>(asked: &T, key: Digest) -> O;
}

/// A query compiled for the best instruction set: chosen once, when a file is opened, so that asking is one indirect call
/// with everything in registers. A [`Kernel`] per key would pass its parts through memory, and one function for all
/// structures would save registers for the hungriest of them: both cost more than many a query.
pub(crate) struct QueryFn<T, O = bool>(unsafe fn(&T, Digest) -> O);

impl<T, O> Clone for QueryFn<T, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, O> Copy for QueryFn<T, O> {}

impl<T, O> std::fmt::Debug for QueryFn<T, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueryFn")
    }
}

impl<T, O> QueryFn<T, O> {
    /// The way `A` answers, compiled for `level`.
    pub(crate) fn new<A: Answer<T, O>>(level: Level) -> QueryFn<T, O> {
        match level.0 {
            Set::Base => QueryFn(answer_base::<T, O, A>),
            #[cfg(target_arch = "x86_64")]
            Set::V4 if A::V4 => QueryFn(answer_v4::<T, O, A>),
            #[cfg(target_arch = "x86_64")]
            Set::V3 | Set::V4 => QueryFn(answer_v3::<T, O, A>),
            #[cfg(target_arch = "aarch64")]
            Set::Neon => QueryFn(answer_neon::<T, O, A>),
        }
    }

    /// The way `A` answers, compiled for any processor: where speed does not matter.
    pub(crate) fn portable<A: Answer<T, O>>() -> QueryFn<T, O> {
        QueryFn(answer_base::<T, O, A>)
    }

    /// Asks.
    #[inline(always)]
    pub(crate) fn call(&self, asked: &T, key: Digest) -> O {
        // SAFETY: `new` chose the function for a Level, so detection found every feature it enables.
        unsafe { (self.0)(asked, key) }
    }
}

fn answer_base<T, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
    A::answer::<Base>(asked, key)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt,avx2")]
fn answer_v3<T, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
    A::answer::<V3>(asked, key)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "popcnt,bmi1,bmi2,lzcnt,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg,avx512vpopcntdq,gfni"
)]
fn answer_v4<T, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
    A::answer::<V4>(asked, key)
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn answer_neon<T, O, A: Answer<T, O>>(asked: &T, key: Digest) -> O {
    A::answer::<Neon>(asked, key)
}

/// Asks for the cache line of `items[at]`. Only a hint: any `at` is allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    prefetch_at(items.as_ptr().wrapping_add(at).cast());
}

/// Asks for the cache line of an address.
#[inline(always)]
fn prefetch_at(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, whatever the address, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
