//! other libraries -> structures that tell keys from listed negatives without error.
//!
//! * clubcard and rust_cascade are Mozilla's, made for revoked certificates: a ribbon and an exact bit, and a cascade of
//!   Bloom filters. Both want bytes.
//! * sux has no such filter, but both parts: a VFilter of floor(log2 lambda) bits, and a VFunc of one bit on the keys and
//!   on the negatives that pass.

use std::error::Error;

use dsi_progress_logger::no_logging;
use mem_dbg::{MemSize, SizeFlags};
use rust_cascade::{Cascade, CascadeBuilder, HashAlgorithm};
use sux::bits::BitFieldVec;
use sux::dict::VFilter;
use sux::func::{VBuilder, VFunc};
use sux::traits::{TryIntoUnaligned, Unaligned};

use super::clubcard::{self, Block, Item, Part};
use super::pool;
use crate::candidate::Built;
use crate::listed::{Listed, Made};
use crate::ours::listed::SLOW;

/// All peers of the experiment on exact membership.
pub(crate) fn exact() -> Vec<Listed> {
    vec![
        Listed::new("clubcard", clubcard),
        Listed::new("rust_cascade", cascade).at_most(SLOW),
        Listed::new("sux VFilter + VFunc", two_functions),
    ]
}

type Outcome = Result<Made, Box<dyn Error>>;

fn clubcard(keys: &[u64], negatives: &[u64]) -> Outcome {
    let part = |_| Part {
        block: Block::Only,
        keys: keys.iter().copied(),
        negatives: negatives.iter().copied(),
        counts: (keys.len(), negatives.len()),
    };
    let card = clubcard::build(1, part);
    let (bytes, _) = clubcard::bytes(&card);
    Ok(Made::new(Built::new(card, |card, key| card.unchecked_contains(&Item::new(Block::Only, key))), bytes * 8))
}

/// With SHA-256, as it is used. With MurmurHash3, its other hash, a million keys and two million negatives were seen to grow
/// layers until memory was gone.
fn cascade(keys: &[u64], negatives: &[u64]) -> Outcome {
    let bytes = |key: &u64| key.to_le_bytes().to_vec();
    let mut builder = CascadeBuilder::new(HashAlgorithm::Sha256, vec![7; 16], keys.len(), negatives.len());
    for key in keys {
        builder.include(bytes(key)).map_err(|e| e.to_string())?;
    }
    for key in negatives {
        builder.exclude(bytes(key)).map_err(|e| e.to_string())?;
    }
    let cascade = builder.finalize().map_err(|e| e.to_string())?;
    let bits = cascade.to_bytes().map_err(|e| e.to_string())?.len() * 8;
    let cascade: Cascade = *cascade;
    Ok(Made::new(Built::new(cascade, move |c, key| c.has(bytes(&key))), bits))
}

type Words = BitFieldVec<Box<[usize]>>;

/// The two parts, as sux answers fastest.
struct TwoFunctions {
    first: Option<Unaligned<VFilter<u64, Words>>>,
    second: Unaligned<VFunc<u64, Words>>,
}

fn two_functions(keys: &[u64], negatives: &[u64]) -> Outcome {
    let columns = (negatives.len() / keys.len().max(1)).checked_ilog2().unwrap_or(0) as usize;
    let builder = |n: usize| VBuilder::default().max_num_threads(1).expected_num_keys(n);
    let mut listed = keys.to_vec();
    let mut bytes = 0;
    let mut first = None;
    if columns > 0 {
        let build =
            || VFilter::<u64, Words>::try_par_new_with_builder(keys, columns, builder(keys.len()), no_logging![]);
        let filter = pool(1, build)??;
        bytes += filter.mem_size(SizeFlags::default());
        let filter = filter.try_into_unaligned()?;
        listed.extend(negatives.iter().filter(|&&key| filter.contains(key)));
        first = Some(filter);
    } else {
        listed.extend(negatives);
    }
    let values: Vec<usize> = (0..listed.len()).map(|i| usize::from(i < keys.len())).collect();
    let build =
        || VFunc::<u64, Words>::try_par_new_with_builder(&listed, &values, builder(listed.len()), no_logging![]);
    let second = pool(1, build)??;
    bytes += second.mem_size(SizeFlags::default());
    let second = second.try_into_unaligned()?;
    let contains =
        |f: &TwoFunctions, key: u64| f.first.as_ref().is_none_or(|first| first.contains(key)) && f.second.get(key) == 1;
    Ok(Made::new(Built::new(TwoFunctions { first, second }, contains), bytes * 8))
}
