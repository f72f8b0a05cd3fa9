//! a ribbon and a key -> the key's value: how a static function is read.

use std::marker::PhantomData;

use super::Ribbon;
use super::kernel::{Any, Bit, Broad, Columns, Lookup, Many, One, Outcome, mask};
use crate::arch::{self, Isa, QueryFn};
use crate::hash::Digest;
use crate::leaves::{Leaf, Never, Query, ShardedLeaf};

/// The function that returns the value of one key.
pub(super) fn value_fn(ribbon: &Ribbon, leaf: &ShardedLeaf<Ribbon>) -> QueryFn<Leaf, u32> {
    macro_rules! run {
        ($kernel:ty) => {
            QueryFn::new::<One<Leaf, $kernel, false>>(ribbon.cpu)
        };
    }
    match ribbon.empty {
        true => QueryFn::portable::<Never>(),
        false => with_kernel!(ribbon, leaf.by::<Leaf, Any, _>(ribbon.cpu), run),
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
        false => with_kernel!(ribbon, leaf.one_by_one(keys, out, Ribbon::get), run),
    }
}

impl Outcome for u32 {
    #[inline(always)]
    fn at<K: Lookup, I: Isa>(octets: &[u8], stride: usize, _: u64, band: u64) -> Option<u32> {
        Some(K::value::<I>(octets, stride, band)? & mask(stride))
    }

    #[inline(always)]
    fn plainly(ribbon: &Ribbon, payload: &[u8], key: Digest) -> u32 {
        ribbon.read(payload, key)
    }
}
