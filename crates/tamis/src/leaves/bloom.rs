//! digests -> bits of a table: the Bloom filters.
//!
//! A Bloom filter sets a few bits of a table per key and says yes when all bits of a key are set. It costs 1.44 times the
//! bits that are needed (fuse and ribbon filters: 1.01 to 1.13), but it is built in one pass in any order, keys can be
//! added later, and a table that gets too many keys gets worse instead of failing.
//!
//! ```text
//!   classic       k bits anywhere               ..1.....1...........1......1......1...    k cache lines
//!   split block   one block, a bit per lane     [..1.|1...|...1|.1..|...1|1...|..1.|.1..]  1 cache line
//! ```
//!
//! * [`SplitBlock`]: 256-bit blocks, eight bits per key in one block. One memory access, a handful of vector
//!   instructions, the fastest build of all leaves. The loads of the blocks vary, which costs bits: 10.5 per key for 1 %
//!   where the classic filter takes 9.6, 26 for 0.01 % instead of 19. Eight bits per key are too many below 8 bits per
//!   key and too few above 20: there the classic filter, or better a ribbon, is the right leaf.
//! * [`Classic`]: any number of bits and 1 to 32 hash functions, the smaller and the slower one. For coarse layers (a bit
//!   or two per key), for very low rates, and wherever a paper's numbers are about "a Bloom filter".
//!
//! Papers: Bloom 1970 (Communications of the ACM 13:7); Putze, Sanders, Singler 2007, "Cache-, Hash- and Space-Efficient
//! Bloom Filters", for blocks and for patterns made by vector instructions; the Apache Parquet format for the split of a
//! block into lanes; Kirsch, Mitzenmacher 2006, "Less Hashing, Same Performance", for k positions from two words. The
//! rates are computed in [`crate::math::bloom`].

pub(crate) mod classic;
pub(crate) mod split;

pub(crate) use classic::Classic;
pub(crate) use split::SplitBlock;

/// Keys that are located and prefetched together before the first is answered: about as many as there are cache misses in
/// flight, and few enough for what is known of them to stay in the first cache.
const BATCH: usize = 64;

/// How many bits are set.
fn ones(payload: &[u8]) -> u64 {
    payload.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

/// Appends `len` zeros and returns them.
#[cfg(feature = "build")]
pub(crate) fn zeros(out: &mut Vec<u8>, len: u64) -> Result<&mut [u8], crate::error::BuildError> {
    let start = out.len();
    let end = usize::try_from(len).ok().and_then(|len| {
        out.try_reserve_exact(len).ok()?;
        Some(start + len)
    });
    out.resize(end.ok_or(crate::error::BuildError::NoMemory { bytes: len })?, 0);
    Ok(&mut out[start..])
}

#[cfg(all(test, feature = "build"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::Reader;
    use crate::hash::Salt;
    use crate::leaves::{Geometry, Query, ShardedLeaf};
    use crate::{BuildError, Digest, FormatError, Hasher};

    /// Keys are even, unlisted keys odd.
    fn digests(n: u64, stranger: u64) -> Vec<Digest> {
        let hasher = Hasher::seeded(5);
        (0..n).map(|i| hasher.integer(2 * i + stranger)).collect()
    }

    /// A file with 5 bytes before the payload: nothing is aligned.
    fn single<G: Query + Clone>(geometry: G, payload: &[u8]) -> (ShardedLeaf<G>, Vec<u8>) {
        let mut file = vec![0xff; 5];
        file.extend_from_slice(payload);
        let part = (geometry, 5..file.len());
        file.extend([0xff; 40]);
        (ShardedLeaf::of(0, &file, vec![part]), file)
    }

    /// Queries one by one, checks that queries together agree, and counts.
    fn count<G: Query + Clone>(column: &ShardedLeaf<G>, file: &[u8], keys: &[Digest]) -> usize {
        let mut out: Vec<bool> = keys.iter().map(|key| key.lo & 1 == 0).collect();
        column.contains_many(file, keys, &mut out);
        for (&key, &yes) in keys.iter().zip(&out) {
            assert_eq!(column.contains(key), yes);
        }
        out.into_iter().filter(|&yes| yes).count()
    }

    /// The mean share of unlisted keys that are let in, over filters with different salts, and the error of that mean.
    fn measure<G: Query>(salts: u64, strangers: u64, build: impl Fn(Salt, &mut Vec<u8>) -> G) -> (f64, f64) {
        let strangers = digests(strangers, 1);
        let rates: Vec<f64> = (0..salts)
            .map(|salt| {
                let mut payload = Vec::new();
                let geometry = build(Salt::new(salt), &mut payload);
                let yes = strangers.iter().filter(|&&key| geometry.contains(&payload, key)).count();
                yes as f64 / strangers.len() as f64
            })
            .collect();
        let n = salts as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    }

    #[track_caller]
    fn agree(what: &str, (mean, sigma): (f64, f64), formula: f64) {
        println!(
            "{what}: measured {mean:.6}, formula {formula:.6}, {:+.2} sigma, sigma {:.2} %",
            (mean - formula) / sigma,
            100.0 * sigma / mean
        );
        // Too few false positives would make any formula agree.
        assert!(sigma < 0.03 * mean, "{what}: too few unlisted keys for a verdict: {mean} +- {sigma}");
        assert!((mean - formula).abs() < 4.0 * sigma, "{what}: measured {mean} +- {sigma}, formula {formula}");
    }

    /// The laws of every Bloom filter. `$small` are parameters for n keys that fill half of the table.
    macro_rules! laws {
        ($module:ident, $Leaf:ident, $small:expr, $directories:expr) => {
            mod $module {
                use proptest::prelude::*;

                use super::super::$module::Params;
                use super::*;

                fn decode(bytes: &[u8]) -> Result<$Leaf, FormatError> {
                    $Leaf::decode(&mut Reader::new(bytes, "test"), Salt::new(1))
                }

                #[test]
                fn every_small_size() {
                    let strangers = digests(300, 1);
                    for n in 0..=300 {
                        let keys = digests(n, 0);
                        let mut out = b"before".to_vec();
                        let params: Params = $small(n);
                        let geometry = $Leaf::build(&keys, &params, Salt::new(1), &mut out).unwrap();
                        let payload = out.strip_prefix(b"before").unwrap();
                        assert_eq!(payload.len() as u64, geometry.payload_len());
                        let mut directory = Vec::new();
                        geometry.encode(&mut directory);
                        let mut reader = Reader::new(&directory, "test");
                        let again = $Leaf::decode(&mut reader, Salt::new(1)).unwrap();
                        assert!(reader.is_empty());
                        assert_eq!(again, geometry);
                        for cut in 0..directory.len() {
                            assert!(matches!(decode(&directory[..cut]), Err(FormatError::Truncated { .. })));
                        }
                        let (column, file) = single(again, payload);
                        assert_eq!(count(&column, &file, &keys), keys.len());
                        let yes = count(&column, &file, &strangers);
                        // Small tables differ; the rates are measured below.
                        assert!(yes as f64 <= 12.0 + 600.0 * again.fpr(), "{n} keys: {yes} of 300 unlisted keys");
                        if n == 0 {
                            assert_eq!((payload.len(), yes), (0, 0));
                            assert_eq!(geometry.fpr(), 0.0);
                        }
                    }
                }

                #[test]
                fn keys_of_any_shard_are_asked_together() {
                    let (keys, strangers) = (digests(3000, 0), digests(3000, 1));
                    let mut file = vec![0xff; 3];
                    let parts: Vec<_> = (0..8)
                        .map(|shard| {
                            // One shard is empty, the others are too small and differ in size.
                            let own: Vec<_> =
                                keys.iter().filter(|key| key.shard(3) == shard && shard != 3).copied().collect();
                            let start = file.len();
                            let params: Params = $small(own.len() as u64 / 64 * 32 + shard as u64);
                            let geometry = $Leaf::build(&own, &params, Salt::new(2), &mut file).unwrap();
                            let end = file.len();
                            file.extend([0xff; 7]);
                            (geometry, start..end)
                        })
                        .collect();
                    let column = ShardedLeaf::of(3, &file, parts);
                    // The second file is long enough for the way that large tables are queried.
                    let mut long = file.clone();
                    long.resize(file.len() + (4 << 20), 0xff);
                    for file in [file, long] {
                        let kept: Vec<_> = keys.iter().filter(|key| key.shard(3) != 3).copied().collect();
                        assert_eq!(count(&column, &file, &kept), kept.len());
                        let yes = count(&column, &file, &strangers);
                        assert!((10..1200).contains(&yes), "{yes} of 3000 unlisted keys");
                        let lost: Vec<_> = keys.iter().filter(|key| key.shard(3) == 3).copied().collect();
                        assert_eq!(count(&column, &file, &lost), 0);
                        for n in [0, 1, 2, 63, 64, 65, 127, 128, 129] {
                            assert_eq!(count(&column, &file, &kept[..n]), n);
                        }
                    }
                }

                #[test]
                fn a_payload_of_the_wrong_length_is_safe() {
                    let keys = digests(100, 0);
                    let mut payload = Vec::new();
                    let geometry = $Leaf::build(&keys, &$small(100), Salt::new(1), &mut payload).unwrap();
                    payload.extend([0xff; 33]);
                    for len in 0..payload.len() {
                        let (column, file) = single(geometry, &payload[..len]);
                        let yes = count(&column, &file, &keys);
                        assert_eq!(yes == keys.len(), len as u64 >= geometry.payload_len());
                        let mut part = payload[..len].to_vec();
                        geometry.insert(&mut part, keys[0]);
                        geometry.insert_many(&mut part, &keys);
                        assert_eq!(part, payload[..len]);
                    }
                    // A part that lies outside of its file.
                    for (start, end) in [(0, usize::MAX), (7, 5), (usize::MAX, usize::MAX)] {
                        let column = ShardedLeaf::of(0, &payload, vec![(geometry, start..end)]);
                        assert_eq!(count(&column, &payload, &keys), 0);
                    }
                }

                #[test]
                fn directories_out_of_range_are_rejected() {
                    let good: &[&[u8]] = &$directories.0;
                    let bad: &[&[u8]] = &$directories.1;
                    for bytes in good {
                        let geometry = decode(bytes).unwrap();
                        assert!(geometry.payload_len() <= 1 << 45);
                        assert!(!geometry.contains(&[], Digest::default()));
                    }
                    for bytes in bad {
                        assert!(matches!(decode(bytes), Err(FormatError::Invalid { .. })), "{bytes:?}");
                    }
                }

                #[test]
                fn sizes_that_are_none_are_rejected() {
                    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
                        assert!(matches!(Params::for_bits_per_key(9, bits), Err(BuildError::NotASize { .. })));
                    }
                    for rate in [0.0, -1.0, f64::NAN] {
                        assert!(matches!(Params::for_rate(9, rate), Err(BuildError::NoSize { .. })));
                    }
                    assert!(
                        Params::for_bits_per_key(u64::MAX, 1.0).is_err() && Params::for_rate(u64::MAX, 0.1).is_err()
                    );
                    let nothing = Params::for_bits_per_key(0, 10.0).unwrap();
                    assert!($Leaf::build(&[], &nothing, Salt::new(0), &mut Vec::new()).is_ok());
                    assert!($Leaf::build(&digests(1, 0), &nothing, Salt::new(0), &mut Vec::new()).is_err());
                }

                /// The planned rate is reached, and the rate of a filter that got twice or half the keys is foreseen.
                #[test]
                fn planned_rates_are_measured() {
                    let n = 2000;
                    for rate in [0.3, 0.05, 0.01, 0.002] {
                        let params = Params::for_rate(n, rate).unwrap();
                        for keys in [n / 2, n, n * 2] {
                            let formula = $Leaf::new(&params, keys, Salt::new(0)).unwrap().fpr();
                            assert!(keys != n || (formula <= rate && formula > 0.8 * rate), "{formula}, {rate}");
                            let keys = digests(keys, 0);
                            if formula < 5e-4 {
                                continue;
                            }
                            let strangers = (500.0 / formula) as u64;
                            let measured =
                                measure(40, strangers, |salt, out| $Leaf::build(&keys, &params, salt, out).unwrap());
                            agree(&format!("{params:?}, {} keys", keys.len()), measured, formula);
                        }
                    }
                }

                proptest! {
                    #[test]
                    fn no_key_is_ever_refused(
                        words in prop::collection::vec((any::<u64>(), prop_oneof![Just(0), any::<u64>()]), 1..400),
                        later in 0usize..100,
                        size in 1u64..500,
                        salt in any::<u64>(),
                    ) {
                        let keys: Vec<_> = words.into_iter().map(|(hi, lo)| Digest { hi, lo }).collect();
                        let (later, first) = keys.split_at(later.min(keys.len() - 1));
                        let mut payload = Vec::new();
                        let geometry = $Leaf::build(first, &$small(size), Salt::new(salt), &mut payload).unwrap();
                        for &key in later {
                            geometry.insert(&mut payload, key);
                            prop_assert!(geometry.contains(&payload, key));
                        }
                        let mut all = Vec::new();
                        $Leaf::build(&keys, &$small(size), Salt::new(salt), &mut all).unwrap();
                        prop_assert!(payload == all);
                        let (column, file) = single(geometry, &payload);
                        prop_assert_eq!(count(&column, &file, &keys), keys.len());
                    }

                    #[test]
                    fn random_directories_never_panic(
                        bytes in prop::collection::vec(any::<u8>(), 0..12),
                        payload in prop::collection::vec(any::<u8>(), 0..100),
                        hi in any::<u64>(),
                    ) {
                        if let Ok(geometry) = decode(&bytes) {
                            prop_assert!(geometry.payload_len() <= 1 << 45);
                            let (column, file) = single(geometry, &payload);
                            count(&column, &file, &[Digest { hi, lo: hi.rotate_left(7) }]);
                        }
                    }
                }
            }
        };
    }

    /// Eight multipliers make eight bits that are nearly independent; nearly must not be seen.
    #[test]
    fn split_block_rate_holds_to_half_a_percent() {
        for (n, blocks, salts) in [(20, 1, 4000), (100, 4, 800), (20_000, 781, 30)] {
            let keys = digests(n, 0);
            let params = super::split::Params { blocks };
            let strangers = 20_000_000 / salts;
            let measured = measure(salts, strangers, |salt, out| SplitBlock::build(&keys, &params, salt, out).unwrap());
            let formula = crate::math::bloom::split_block_rate(n, blocks);
            agree(&format!("{n} keys, {blocks} blocks"), measured, formula);
        }
    }

    /// Plain double hashing has two to three times the rate of the formula in the two smallest of these tables.
    #[test]
    fn classic_rate_holds_in_tiny_tables() {
        for (n, bits, hashes) in [(3, 30, 7), (5, 64, 8), (10, 100, 7), (10, 101, 3), (30, 300, 7), (200, 2001, 12)] {
            let keys = digests(n, 0);
            let params = super::classic::Params { bits, hashes };
            let measured = measure(2000, 4000, |salt, out| Classic::build(&keys, &params, salt, out).unwrap());
            let formula = crate::math::bloom::classic_rate(n, bits, hashes.into());
            agree(&format!("{n} keys, {bits} bits, {hashes} hashes"), measured, formula);
        }
    }

    laws!(
        split,
        SplitBlock,
        |n: u64| Params { blocks: (n * 10).div_ceil(256).max(1) },
        (
            [&[0, 0][..], &[1, 5], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0]],
            [&[0x81, 0x80, 0x80, 0x80, 0x80, 0x20][..], &[0xff; 10]]
        )
    );
    laws!(
        classic,
        Classic,
        |n: u64| {
            let hashes = 1 + n as u8 % 32;
            Params { bits: (n * u64::from(hashes) * 3 / 2).max(13), hashes }
        },
        (
            [&[0, 1, 0][..], &[1, 32, 9], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 7, 0]],
            [&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 7][..], &[8, 0], &[8, 33], &[8, 0xff, 1], &[0xff; 10]]
        )
    );
}
