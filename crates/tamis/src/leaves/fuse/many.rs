//! many keys -> their answers or values: all cells are prefetched before the first one is read.

// Indices: iterators of several slices are a third more code for each of ninety forms.
#![allow(clippy::needless_range_loop)]

#[cfg(feature = "maps")]
use super::{Fuse, Itself};
use super::{View, fingerprint, resolve};
use crate::arch;
use crate::hash::Digest;
use crate::leaves::ShardedLeaf;
use crate::leaves::pack::Cells;

/// Keys whose cells are prefetched before the first one is read.
const BLOCK: usize = 64;

/// The cells are those of the first part and give the type; every shard has its own cut.
pub(super) fn ask_many<C: Cells, const K: usize, V: View>(
    cells: C,
    leaf: &ShardedLeaf<V::Of>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    match leaf.parts() {
        // With one part its geometry stays in registers.
        [_] => ask_single::<C, K, V>(cells, leaf, file, keys, out),
        _ => ask_in_blocks::<C, K, V, false>(leaf, file, keys, out),
    }
}

/// [`ask_many`] for a leaf of one part.
pub(super) fn ask_single<C: Cells, const K: usize, V: View>(
    _: C,
    leaf: &ShardedLeaf<V::Of>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    ask_in_blocks::<C, K, V, true>(leaf, file, keys, out);
}

/// [`ask_many`] for values.
#[cfg(feature = "maps")]
pub(super) fn get_many<C: Cells, const K: usize>(
    _: C,
    leaf: &ShardedLeaf<Fuse>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [u32],
) {
    // As in `get`, bytes that are not there are no value.
    let value = |sum: Option<u32>, _, mask, _| sum.map_or(0, |sum| sum & mask);
    match leaf.parts() {
        [_] => in_blocks::<C, K, Itself, _, true>(leaf, value, file, keys, out),
        _ => in_blocks::<C, K, Itself, _, false>(leaf, value, file, keys, out),
    }
}

#[inline(always)]
fn ask_in_blocks<C: Cells, const K: usize, V: View, const SINGLE: bool>(
    leaf: &ShardedLeaf<V::Of>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    let answer = |sum: Option<u32>, fingerprint, mask, key| match sum {
        Some(sum) if (sum ^ fingerprint) & mask == 0 => {
            let part = leaf.part_of::<SINGLE>(key);
            V::is_final(&part.geometry, mask) || resolve::<V>(part, key)
        }
        // As in `contains`, bytes that are not there cannot say no.
        sum => sum.is_none(),
    };
    in_blocks::<C, K, V, _, SINGLE>(leaf, answer, file, keys, out);
}

/// What the first look at a key finds: where its cells are, its fingerprint, and the bits that count.
#[derive(Clone, Copy)]
struct Found<const K: usize> {
    addresses: [u64; K],
    fingerprint: u32,
    mask: u32,
}

/// For every key `finish` says what follows from the sum of its cells, from its fingerprint and from the bits that count.
#[inline(always)]
fn in_blocks<C: Cells, const K: usize, V: View, O: Copy, const SINGLE: bool>(
    leaf: &ShardedLeaf<V::Of>,
    finish: impl Fn(Option<u32>, u32, u32, Digest) -> O,
    file: &[u8],
    keys: &[Digest],
    out: &mut [O],
) {
    let mut block = [Found { addresses: [0; K], fingerprint: 0, mask: 0 }; BLOCK];
    let mut done = 0;
    while done < keys.len() {
        let end = keys.len().min(done + BLOCK);
        let (keys, out) = (&keys[done..end], &mut out[done..end]);
        find::<C, K, V, SINGLE>(leaf, file, keys, &mut block);
        for i in 0..keys.len() {
            let found = &block[i];
            let mut sum = Some(0);
            for j in 0..K {
                sum = match (sum, C::load(file, found.addresses[j])) {
                    (Some(sum), Some(cell)) => Some(sum ^ cell),
                    _ => None,
                };
            }
            out[i] = finish(sum, found.fingerprint, found.mask, keys[i]);
        }
        done = end;
    }
}

/// Finds and prefetches the cells of a block of keys.
#[inline(always)]
fn find<C: Cells, const K: usize, V: View, const SINGLE: bool>(
    leaf: &ShardedLeaf<V::Of>,
    file: &[u8],
    keys: &[Digest],
    block: &mut [Found<K>; BLOCK],
) {
    for i in 0..keys.len() {
        let (found, key) = (&mut block[i], keys[i]);
        let part = leaf.part_of::<SINGLE>(key);
        let fuse = V::fuse(&part.geometry);
        let cells = C::new(fuse.bits, fuse.cut);
        let h = fuse.hash(key);
        let slots = fuse.slots::<K>(h);
        for j in 0..K {
            found.addresses[j] = cells.address(part.start, slots[j]);
            arch::prefetch(file, C::byte(found.addresses[j]));
        }
        found.fingerprint = fingerprint(h);
        found.mask = V::mask(&part.geometry, h, cells.mask(slots[0]));
    }
}
