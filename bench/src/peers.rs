//! other libraries -> candidates: the filters that tamis is measured against.
//!
//! Each is called as its documentation recommends for 64-bit keys and with its own default hash, so a row is what a user
//! of that crate gets. Crates that want a hash from the caller get the same cheap mixing function.

use std::error::Error;
use std::thread;

use dsi_progress_logger::no_logging;
use mem_dbg::{MemSize, SizeFlags};
use sux::dict::VFilter;
use sux::func::VBuilder;
use sux::func::shard_edge::Fuse3NoShards;
// Deprecated for new files, but still the smallest of the crate at some sizes.
#[allow(deprecated)]
use sux::func::shard_edge::FuseLge3Shards;

use crate::candidate::{Built, Candidate, Outcome};
use crate::stream::scramble;

pub(crate) mod certificates;
mod clubcard;
pub(crate) mod exact;

/// The row all ratios refer to: the filter most Rust programs would take today.
pub(crate) const REFERENCE: &str = "xorf BinaryFuse8";

/// All peers of the filter experiment, the reference first.
pub(crate) fn filters() -> Vec<Candidate> {
    let mut all = vec![
        Candidate::new(REFERENCE, |keys, _| fuse(xorf::BinaryFuse8::try_from(keys)?)),
        Candidate::new("xorf BinaryFuse16", |keys, _| fuse(xorf::BinaryFuse16::try_from(keys)?)),
        Candidate::new("sux VFilter u8", sux_default).threads(),
        Candidate::new("sux VFilter u8 Fuse3NoShards 64-bit", sux_no_shards).threads(),
        Candidate::new("sux VFilter u8 FuseLge3Shards", sux_lazy_gauss).threads(),
        Candidate::new("pleat Ribbon<8>", pleat_ribbon).threads(),
        Candidate::new("pleat StdRibbon<8>", pleat_standard_ribbon).threads(),
        Candidate::new("fastbloom 1 %", fastbloom).threads(),
        Candidate::new("fastbloom 1 % insert_hash", fastbloom_hashed).threads(),
        Candidate::new("sbbf-rs-safe 10 bits", |keys, _| split_block(keys, 10)),
        Candidate::new("sbbf-rs-safe 13 bits", |keys, _| split_block(keys, 13)),
        Candidate::new("qfilter 0.4 %", |keys, _| quotient(keys)),
        Candidate::new("qfilter 0.4 % full", |keys, _| quotient(keys)).at_load(0.949),
        Candidate::new("cuckoofilter", |keys, _| cuckoo(keys)),
        Candidate::new("cuckoofilter full", |keys, _| cuckoo(keys)).at_load(CUCKOO_LOAD),
    ];
    all.extend(native());
    all
}

/// Peers that need instructions beyond the default target.
#[cfg(feature = "native")]
fn native() -> Vec<Candidate> {
    vec![
        Candidate::new("jdb_xorf Bf8", |keys, _| jdb_fuse(keys)),
        Candidate::new("autoscale_cuckoo_filter 0.4 %", |keys, _| autoscale_cuckoo(keys)),
    ]
}

#[cfg(not(feature = "native"))]
fn native() -> Vec<Candidate> {
    Vec::new()
}

fn fuse<F: xorf::Filter<u64> + 'static>(filter: F) -> Outcome {
    Ok(Built::new(filter, |f, key| f.contains(&key)))
}

/// Runs `work` in a pool of its own, so that "one thread" means one, and waits until the pool's threads have ended: what
/// they hold must not count as the filter's memory.
pub fn pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T, Box<dyn Error>> {
    let mut workers = Vec::with_capacity(threads);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(|worker| {
        workers.push(thread::Builder::new().spawn(|| worker.run())?);
        Ok(())
    });
    let pool = pool.build()?;
    let result = pool.install(work);
    drop(pool);
    for worker in workers {
        worker.join().map_err(|_| "a worker thread panicked")?;
    }
    Ok(result)
}

/// The three variants differ in a type whose bounds are not public, hence a macro and no generic function.
macro_rules! sux {
    ($name:ident, $filter:ty) => {
        #[allow(deprecated)]
        fn $name(keys: &[u64], threads: usize) -> Outcome {
            let builder = VBuilder::default().max_num_threads(threads).expected_num_keys(keys.len());
            let filter = pool(threads, || <$filter>::try_par_new_with_builder(keys, builder, no_logging![]))??;
            // Its thread pool leaves a few kilobytes behind for later, so the structure is asked for its size.
            let bytes = filter.mem_size(SizeFlags::default());
            Ok(Built::new(filter, |f, key| f.contains(key)).of_bytes(bytes))
        }
    };
}
sux!(sux_default, VFilter<u64, Box<[u8]>>);
sux!(sux_no_shards, VFilter<u64, Box<[u8]>, [u64; 1], Fuse3NoShards>);
sux!(sux_lazy_gauss, VFilter<u64, Box<[u8]>, [u64; 2], FuseLge3Shards>);

fn pleat_ribbon(keys: &[u64], threads: usize) -> Outcome {
    use pleat::filter::Ribbon;
    let filter = match threads {
        1 => Ribbon::<8>::from_keys_pleated(keys),
        _ => Ribbon::<8>::from_keys_parallel(keys, threads),
    };
    Ok(Built::with_batch(filter, |f, key| f.contains(key), |f, keys, out| f.contains_batch(keys, out)))
}

fn pleat_standard_ribbon(keys: &[u64], threads: usize) -> Outcome {
    use pleat::filter::StdRibbon;
    let filter = match threads {
        1 => StdRibbon::<8>::from_keys_pleated(keys),
        _ => StdRibbon::<8>::from_keys_parallel(keys, threads),
    };
    let filter = filter.map_err(|e| format!("{e:?}"))?;
    Ok(Built::with_batch(filter, |f, key| f.contains(key), |f, keys, out| f.contains_batch(keys, out)))
}

/// Shares `keys` among threads.
fn each_thread(keys: &[u64], threads: usize, work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for part in keys.chunks(keys.len().div_ceil(threads).max(1)) {
            let work = &work;
            scope.spawn(move || part.iter().for_each(|&key| work(key)));
        }
    });
}

/// A Bloom filter of fastbloom, whose keys are inserted and asked for in a way of the caller's.
macro_rules! fastbloom {
    ($name:ident, $insert:ident, $contains:ident, |$key:ident| $asked:expr) => {
        fn $name(keys: &[u64], threads: usize) -> Outcome {
            if threads == 1 {
                let filter = fastbloom::BloomFilter::with_false_pos(0.01).seed(&7).expected_items(keys.len());
                let insert = |f: &mut fastbloom::BloomFilter, $key: u64| {
                    f.$insert($asked);
                    true
                };
                return Ok(Built::inserted(filter, keys, insert, |f, $key| f.$contains($asked)));
            }
            let filter = fastbloom::AtomicBloomFilter::with_false_pos(0.01).seed(&7).expected_items(keys.len());
            each_thread(keys, threads, |$key| _ = filter.$insert($asked));
            Ok(Built::new(filter, |f, $key| f.$contains($asked)))
        }
    };
}
// SipHash inside, as by default; and the caller hashes.
fastbloom!(fastbloom, insert, contains, |key| &key);
fastbloom!(fastbloom_hashed, insert_hash, contains_hash, |key| scramble(key));

fn split_block(keys: &[u64], bits_per_key: usize) -> Outcome {
    let mut filter = sbbf_rs_safe::Filter::new(bits_per_key, keys.len());
    for &key in keys {
        filter.insert_hash(scramble(key));
    }
    Ok(Built::new(filter, |f, key| f.contains_hash(scramble(key))))
}

fn quotient(keys: &[u64]) -> Outcome {
    let filter = qfilter::Filter::new(keys.len() as u64, 0.004).map_err(|e| format!("{e:?}"))?;
    let insert = |f: &mut qfilter::Filter, key| f.insert_duplicated(key).is_ok();
    Ok(Built::inserted(filter, keys, insert, |f, key| f.contains(key)))
}

/// Above this share of its places the filter starts to refuse keys, and every refusal drops another key.
const CUCKOO_LOAD: f64 = 0.93;

fn cuckoo(keys: &[u64]) -> Outcome {
    type Cuckoo = cuckoofilter::CuckooFilter<std::collections::hash_map::DefaultHasher>;
    let filter = Cuckoo::with_capacity((keys.len() as f64 / CUCKOO_LOAD) as usize);
    Ok(Built::inserted(filter, keys, |f, key| f.add(&key).is_ok(), |f, key| f.contains(&key)))
}

#[cfg(feature = "native")]
fn jdb_fuse(keys: &[u64]) -> Outcome {
    use jdb_xorf::{Bf8, Filter};
    let filter = Bf8::try_from(keys)?;
    Ok(Built::with_batch(
        filter,
        |f, key| f.has_key(key),
        |f, keys, out| <Bf8 as Filter<u64>>::contains_batch_keys(f, keys, out),
    ))
}

#[cfg(feature = "native")]
fn autoscale_cuckoo(keys: &[u64]) -> Outcome {
    let mut filter = autoscale_cuckoo_filter::CuckooFilter::<u64>::new(keys.len(), 0.004);
    for key in keys {
        filter.add(key);
    }
    Ok(Built::with_batch(filter, |f, key| f.contains(&key), |f, keys, out| f.contains_batch_into(keys, out)))
}
