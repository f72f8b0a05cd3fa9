//! many keys -> their answers, in two passes over a batch: every place is prefetched before the first one is read.
//!
//! For leaves whose keys have one place each and need nothing after it. Ribbons, fuse tables, local and classic leaves have
//! loops of their own.

use std::marker::PhantomData;

use super::ShardedLeaf;
use crate::arch::{Isa, Kernel, Level, dispatch};
use crate::hash::Digest;

/// How a leaf answers in two passes. All of it must be `#[inline(always)]`.
pub(super) trait InBatches {
    type Geometry: Copy;
    /// What the first pass keeps of a key.
    type Found<'a>: Copy + Default;

    /// Finds the place of a key and prefetches it.
    fn find<'a>(of: &Self::Geometry, payload: &'a [u8], key: Digest) -> Self::Found<'a>;

    /// The answer.
    fn answer<I: Isa>(of: &Self::Geometry, payload: &[u8], found: Self::Found<'_>) -> bool;
}

/// Where the geometry and the payload for a key come from.
trait Parts<'a, G> {
    fn of(&self, key: Digest) -> (&G, &'a [u8]);
}

/// One part: the compiler keeps all of it in registers.
struct Single<'a, G>(G, &'a [u8]);

impl<'a, G> Parts<'a, G> for Single<'a, G> {
    #[inline(always)]
    fn of(&self, _: Digest) -> (&G, &'a [u8]) {
        (&self.0, self.1)
    }
}

impl<'a, G> Parts<'a, G> for &'a ShardedLeaf<G> {
    #[inline(always)]
    fn of(&self, key: Digest) -> (&G, &'a [u8]) {
        let part = self.part(key);
        (&part.geometry, &part.payload)
    }
}

struct Batches<'a, B, P, const N: usize> {
    parts: P,
    keys: &'a [Digest],
    out: &'a mut [bool],
    how: PhantomData<B>,
}

impl<'a, B: InBatches, P: Parts<'a, B::Geometry>, const N: usize> Kernel for Batches<'a, B, P, N> {
    const V4: bool = false;
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let mut found = [B::Found::default(); N];
        for (keys, out) in self.keys.chunks(N).zip(self.out.chunks_mut(N)) {
            first_pass::<B, P, N>(&self.parts, keys, &mut found);
            for ((out, &found), &key) in out.iter_mut().zip(&found).zip(keys) {
                let (geometry, payload) = self.parts.of(key);
                *out = B::answer::<I>(geometry, payload, found);
            }
        }
    }
}

#[inline(always)]
fn first_pass<'a, B: InBatches, P: Parts<'a, B::Geometry>, const N: usize>(
    parts: &P,
    keys: &[Digest],
    found: &mut [B::Found<'a>; N],
) {
    for (found, &key) in found.iter_mut().zip(keys) {
        let (geometry, payload) = parts.of(key);
        *found = B::find(geometry, payload, key);
    }
}

/// Answers for many keys of a leaf, `N` in a batch; `out` is as long as `keys`.
pub(super) fn ask_leaf<B: InBatches, const N: usize>(
    level: Level,
    leaf: &ShardedLeaf<B::Geometry>,
    keys: &[Digest],
    out: &mut [bool],
) {
    match leaf.parts() {
        [part] => ask_payload::<B, N>(level, part.geometry, &part.payload, keys, out),
        _ => dispatch(level, Batches::<B, _, N> { parts: leaf, keys, out, how: PhantomData }),
    }
}

/// Answers for many keys of one payload.
pub(super) fn ask_payload<B: InBatches, const N: usize>(
    level: Level,
    geometry: B::Geometry,
    payload: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    dispatch(level, Batches::<B, _, N> { parts: Single(geometry, payload), keys, out, how: PhantomData });
}
