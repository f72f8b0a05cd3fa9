//! keys -> filters: no false negative, the promised sizes and rates, and prefixes as the built-in policy has them.

use std::sync::Arc;

use bytes::Bytes;
use slatedb::{BloomFilterPolicy, FilterPolicy, FilterQuery, PrefixExtractor, PrefixTarget};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::keys::{Random, key};

use super::{BLOOM_16, First, build, encode, has};

/// What the engine puts around a filter: number of filters, lengths of name and data, and a checksum.
const FRAMING: usize = 2 + 2 + Tamis::NAME.len() + 8 + 4;

#[test]
fn every_key_matches() {
    let policies = [
        Tamis::fpr(BLOOM_16).unwrap(),
        Tamis::bits_per_key(10.0).unwrap(),
        Tamis::fpr(0.01).unwrap().with_fuse().unwrap(),
        Tamis::bits_per_key(12.0).unwrap().with_fuse().unwrap(),
    ];
    for policy in &policies {
        for count in [0, 1, 2, 3, 100, 5000] {
            let filter = build(policy, (0..count).map(key));
            let read = policy.decode(&encode(&*filter));
            assert!((0..count).all(|number| has(&*filter, number) && has(&*read, number)), "{policy:?}, {count}");
            assert_eq!((filter.size(), read.size()), (encode(&*filter).len(), encode(&*filter).len()));
            assert!(has(&*read.clamp_allocated_size(), 0) || count == 0);
            // Without a prefix extractor nothing is known of prefixes, and never of ranges.
            assert!(read.might_match(&FilterQuery::prefix(Bytes::from_static(b"a"))));
            let range = FilterQuery::range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            assert!(read.might_match(&range));
        }
        let counts = policy.counts();
        assert_eq!((counts.built, counts.opened, counts.not_built, counts.unreadable), (6, 6, 0, 0));
    }
    // Versions of one key come one after the other.
    let policy = &policies[0];
    let (once, often) = (build(policy, (0..900).map(key)), build(policy, (0..2700).map(|i| key(i / 3))));
    assert_eq!(encode(&*once), encode(&*often));
}

/// Filter blocks with all that the engine adds: 13 bits per key for a thousand keys, 11.4 from ten thousand on.
#[test]
fn sizes_are_as_promised() {
    let policy = Tamis::fpr(BLOOM_16).unwrap();
    for (count, most) in [(1000, 13.0), (10_000, 11.4), (20_000, 11.4), (100_000, 11.4), (500_000, 11.4)] {
        let size = encode(&*build(&policy, (0..count).map(key))).len();
        let bits = 8.0 * (size + FRAMING) as f64 / count as f64;
        eprintln!("{count} keys: {bits:.2} bits per key");
        assert!(bits <= most, "{count} keys: {bits:.3} bits per key");
        let estimate = policy.estimate_size(count as usize) as f64;
        assert!((estimate / size as f64 - 1.0).abs() < 0.05, "{count} keys: {size} bytes, estimated {estimate}");
    }
    let bits =
        |bits: f64| 8.0 * encode(&*build(&Tamis::bits_per_key(bits).unwrap(), (0..50_000).map(key))).len() as f64 / 5e4;
    for goal in [8.0, 10.0, 11.0, 16.0] {
        assert!((goal * 0.97..=goal * 1.01).contains(&bits(goal)), "{goal}: {}", bits(goal));
    }
}

/// The share of unlisted keys that match, within four standard deviations of what was promised.
#[test]
fn rates_are_as_promised() {
    let (keys, queries) = (20_000, 4_000_000);
    let rate = |policy: &dyn FilterPolicy| {
        let filter = build(policy, (0..keys).map(key));
        (keys..keys + queries).filter(|&number| has(&*filter, number)).count() as f64 / queries as f64
    };
    let deviation = (BLOOM_16 / queries as f64).sqrt();
    let bloom = rate(&BloomFilterPolicy::new(16));
    assert!((bloom - BLOOM_16).abs() < 5e-6 + 4.0 * deviation, "Bloom 16: {bloom:e}");
    let ribbon = rate(&Tamis::fpr(BLOOM_16).unwrap());
    assert!(ribbon < BLOOM_16 + 4.0 * deviation && ribbon > 0.8 * BLOOM_16, "ribbon: {ribbon:e}");
    let fuse = rate(&Tamis::fpr(BLOOM_16).unwrap().with_fuse().unwrap());
    assert!(fuse < BLOOM_16 + 4.0 * deviation, "fuse: {fuse:e}");
}

/// Reads more of the key than there is, for some keys.
struct Broken;

impl PrefixExtractor for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        Some(if bytes.ends_with(b"7") { 1000 } else { 2 })
    }
}

#[test]
fn prefixes_are_answered_as_by_the_built_in_policy() {
    let words: Vec<Bytes> = (0..400u64).map(|i| Bytes::from(format!("{:x}", i * i * 37))).collect();
    let stored = &words[..200];
    let first = |len| Arc::new(First(len, "first"));
    for whole in [true, false] {
        for len in [0, 1, 3, 9] {
            let bloom = BloomFilterPolicy::new(30).with_prefix_extractor(first(len)).with_whole_key_filtering(whole);
            let tamis = Tamis::fpr(1e-9).unwrap().with_prefix_extractor(first(len)).with_whole_key_filtering(whole);
            assert!(tamis.supports_prefix_queries());
            assert_eq!(tamis.name(), bloom.name().replace("_bf", "tamis"));
            let (theirs, ours) = (build(&bloom, stored.to_vec()), build(&tamis, stored.to_vec()));
            let ours = tamis.decode(&encode(&*ours));
            for word in &words {
                for cut in 0..=word.len() {
                    for query in [FilterQuery::point(word.slice(..cut)), FilterQuery::prefix(word.slice(..cut))] {
                        assert_eq!(ours.might_match(&query), theirs.might_match(&query), "{query:?}, {len}, {whole}");
                    }
                }
            }
        }
    }
    // Neither keys nor prefixes: nothing is known.
    let none = Tamis::fpr(0.01).unwrap().with_whole_key_filtering(false);
    assert!(has(&*build(&none, stored.to_vec()), 77) && !none.supports_prefix_queries());
    // An extractor that breaks its promise: no panic, and no filter for the table.
    let broken = Tamis::fpr(0.01).unwrap().with_prefix_extractor(Arc::new(Broken));
    let good = build(&broken, [Bytes::from_static(b"abc")]);
    assert!(good.might_match(&FilterQuery::prefix(Bytes::from_static(b"7"))));
    assert!(!good.might_match(&FilterQuery::point(Bytes::from_static(b"7"))));
    let bad = build(&broken, [Bytes::from_static(b"abc"), Bytes::from_static(b"ab7")]);
    assert!((0..1000).all(|number| has(&*bad, number)) && broken.counts().not_built == 1);
    assert!(has(&*broken.decode(&encode(&*bad)), 5));
}

#[test]
fn goals_out_of_reach_are_errors() {
    for rate in [0.0, 1.5, -1.0, f64::NAN] {
        assert!(Tamis::fpr(rate).unwrap_err().to_string().starts_with("fpr"), "{rate}");
    }
    for bits in [0.0, -1.0, 1e9, f64::NAN] {
        assert!(Tamis::bits_per_key(bits).unwrap_err().to_string().starts_with("bits_per_key"), "{bits}");
    }
}

#[test]
fn the_engines_recorder_has_the_counters() {
    let recorder = DefaultMetricsRecorder::new();
    let policy = Tamis::fpr(0.01).unwrap().with_metrics_recorder(&recorder);
    let bytes = encode(&*build(&policy, (0..1000).map(key)));
    policy.decode(&bytes);
    policy.decode(b"?");
    let metrics = recorder.snapshot();
    let counts = policy.counts();
    let expected = [
        ("filters_built", 1),
        ("filter_bytes_built", bytes.len() as u64),
        ("filters_not_built", 0),
        ("filters_opened", 1),
        ("filters_unreadable", 1),
    ];
    for (name, count) in expected {
        let MetricValue::Counter(found) = metrics.by_name(&format!("tamis.{name}"))[0].value else { panic!("{name}") };
        assert_eq!(found, count, "{name}");
    }
    assert_eq!((counts.built, counts.bytes_built, counts.opened, counts.unreadable), (1, bytes.len() as u64, 1, 1));
}

#[test]
fn any_keys_and_any_order() {
    let policy = Tamis::fpr(0.001).unwrap();
    let mut random = Random(5);
    for round in 0..200 {
        let word = |random: &mut Random| (0..random.below(20)).map(|_| random.below(256) as u8).collect::<Bytes>();
        let keys: Vec<Bytes> = (0..1 + random.below(60)).map(|_| word(&mut random)).collect();
        let filter = build(&policy, keys.clone());
        assert!(keys.iter().all(|key| filter.might_match(&FilterQuery::point(key.clone()))), "{round}");
    }
}
