//! other libraries -> maps from keys to values, as something to measure.
//!
//! The functions of sux: `VFunc` with values of one width, `CompVFunc` with a Huffman code, `VFunc2` in between. Each is
//! turned into its variant of unaligned reads where there is one, which is its fastest. None has a call for many keys.

use std::error::Error;

use dsi_progress_logger::no_logging;
use mem_dbg::{MemSize, SizeFlags};
use sux::bits::{BitFieldVec, BitVec};
use sux::func::codec::HuffmanConf;
use sux::func::{CompVFunc, VBuilder, VFunc, VFunc2};
use sux::traits::TryIntoUnaligned;
use tamis_bench::peers::pool;

use crate::mapped::{Built, Mapped, Outcome, Pairs};

type Words = BitFieldVec<Box<[usize]>>;

/// A function on `$value`s. Those on fields of bits are turned into their variant of unaligned reads.
macro_rules! function {
    ($name:literal, $value:ty, $map:ty $(, $unaligned:ident)?) => {
        Mapped::threaded($name, |pairs, threads| {
            let (values, n) = (narrow::<$value>(pairs)?, pairs.keys.len());
            let builder = VBuilder::default().max_num_threads(threads).expected_num_keys(n);
            let new = || <$map>::try_par_new_with_builder(&pairs.keys, &values, builder, no_logging![]);
            let map = pool(threads, new)??;
            let bytes = map.mem_size(SizeFlags::default());
            Ok(Built::new(bytes, map$(.$unaligned()?)?, |map, key| map.get(key) as u64))
        })
    };
}

/// Functions that use less space where some values are frequent.
pub(crate) fn compressed() -> Vec<Mapped> {
    vec![
        Mapped::threaded("sux CompVFunc", |pairs, threads| huffman(pairs, threads, HuffmanConf::new())),
        // Rare values have codewords too and are not escaped.
        Mapped::threaded("sux CompVFunc, whole code", |pairs, threads| {
            huffman(pairs, threads, HuffmanConf::unlimited())
        }),
        function!("sux VFunc2", usize, VFunc2<u64, Words>, try_into_unaligned),
    ]
}

/// A function with as many bits as the largest value has.
pub(crate) fn fixed() -> Mapped {
    function!("sux VFunc", usize, VFunc<u64, Words>, try_into_unaligned)
}

/// The values in the type a structure wants.
fn narrow<W: TryFrom<u64, Error: Error + 'static>>(pairs: &Pairs) -> Result<Vec<W>, Box<dyn Error>> {
    Ok(pairs.values.iter().map(|&value| W::try_from(value)).collect::<Result<_, _>>()?)
}

/// Words of 32 bits: the table of values takes half of what it would with the default.
fn huffman(pairs: &Pairs, threads: usize, code: HuffmanConf) -> Outcome {
    let (values, n) = (narrow::<u32>(pairs)?, pairs.keys.len());
    let builder = VBuilder::default().max_num_threads(threads).expected_num_keys(n);
    let map = pool(threads, || {
        let keys = &pairs.keys;
        CompVFunc::<u64, BitVec<Box<[u32]>>>::try_par_new_with_builder(keys, &values, code, builder, no_logging![])
    })??;
    let bytes = map.mem_size(SizeFlags::default());
    Ok(Built::new(bytes, map.try_into_unaligned()?, |map, key| u64::from(map.get(key))))
}

/// The function on a slice of integers of this width, if there are such integers: quicker than fields of bits.
pub(crate) fn slices(width: u32) -> Option<Mapped> {
    match width {
        8 => Some(function!("sux VFunc u8", u8, VFunc<u64, Box<[u8]>>)),
        16 => Some(function!("sux VFunc u16", u16, VFunc<u64, Box<[u16]>>)),
        32 => Some(function!("sux VFunc u32", u32, VFunc<u64, Box<[u32]>>)),
        _ => None,
    }
}
