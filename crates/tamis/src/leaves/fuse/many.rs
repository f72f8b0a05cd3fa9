//! many keys -> their answers or values: all cells are asked from memory before the first one is looked at.

#[cfg(feature = "maps")]
use super::{Fuse, Itself};
use super::{View, fingerprint, settle};
use crate::arch;
use crate::hash::Digest;
use crate::leaves::pack::Cells;
use crate::leaves::{Part, ShardedLeaf};

/// Keys whose cells are asked from memory before the first one is looked at.
const BLOCK: usize = 64;

/// The cells are those of the first part and give the type; every shard has its own cut.
pub(super) fn ask_many<C: Cells, const K: usize, V: View>(
    _: C,
    leaf: &ShardedLeaf<V::Of>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    match leaf.parts() {
        // With one part its geometry stays in registers.
        [part] => ask_in_blocks::<C, K, V>(|_| part, file, keys, out),
        _ => ask_in_blocks::<C, K, V>(|key| leaf.part(key), file, keys, out),
    }
}

/// The same for values.
#[cfg(feature = "maps")]
pub(super) fn get_many<C: Cells, const K: usize>(
    _: C,
    leaf: &ShardedLeaf<Fuse>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [u32],
) {
    // As in `get`, bytes that are not there are no value.
    let value = |sum: Option<u32>, mask, _| sum.map_or(0, |sum| sum & mask);
    let start = |_: &Fuse, _, all| (0, all);
    match leaf.parts() {
        [part] => in_blocks::<C, K, Itself, _>(|_| part, start, value, file, keys, out),
        _ => in_blocks::<C, K, Itself, _>(|key| leaf.part(key), start, value, file, keys, out),
    }
}

#[inline(always)]
pub(super) fn ask_in_blocks<'a, C: Cells, const K: usize, V: View>(
    part: impl Fn(Digest) -> &'a Part<V::Of>,
    file: &[u8],
    keys: &[Digest],
    out: &mut [bool],
) {
    let wanted = |of: &V::Of, h, all| (fingerprint(h), V::mask(of, h, all));
    let answer = |sum: Option<u32>, mask, key| match sum {
        Some(sum) if sum & mask == 0 => {
            let part = part(key);
            V::settled(&part.geometry, mask) || settle::<V>(part, key)
        }
        // As in `contains`, bytes that are not there cannot say no.
        sum => sum.is_none(),
    };
    in_blocks::<C, K, V, _>(&part, wanted, answer, file, keys, out);
}

/// For every key `start` says, by its hash and the bits of its cells, what the sum of these starts with and which bits count,
/// and `finish` what follows from the sum.
#[inline(always)]
fn in_blocks<'a, C: Cells, const K: usize, V: View, O>(
    part: impl Fn(Digest) -> &'a Part<V::Of>,
    start: impl Fn(&V::Of, u64, u32) -> (u32, u32),
    finish: impl Fn(Option<u32>, u32, Digest) -> O,
    file: &[u8],
    keys: &[Digest],
    out: &mut [O],
) {
    let mut addresses = [[0; K]; BLOCK];
    let mut starts = [(0, 0); BLOCK];
    for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        for ((&key, addresses), from) in keys.iter().zip(&mut addresses).zip(&mut starts) {
            let part = part(key);
            let fuse = V::fuse(&part.geometry);
            let cells = C::new(fuse.bits, fuse.cut);
            let h = fuse.hash(key);
            let slots = fuse.slots::<K>(h);
            for (address, &slot) in addresses.iter_mut().zip(&slots) {
                *address = cells.address(part.start, slot);
                arch::prefetch(file, C::byte(*address));
            }
            *from = start(&part.geometry, h, cells.mask(slots[0]));
        }
        for (((out, &key), addresses), &(from, mask)) in out.iter_mut().zip(keys).zip(&addresses).zip(&starts) {
            let mut sum = Some(from);
            for &address in addresses {
                sum = sum.and_then(|sum| Some(sum ^ C::load(file, address)?));
            }
            *out = finish(sum, mask, key);
        }
    }
}
