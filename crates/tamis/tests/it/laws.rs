//! the laws -> every kind, width and effort, by one macro.

use bytes::Bytes;
use tamis::{Effort, Filter, FilterBuilder, Kind};

use super::{ask_many, integers};

/// Rates that need whole widths, and some that need fractions.
fn rates() -> impl Iterator<Item = f64> {
    (1..=16).map(|r| 0.5f64.powi(r)).chain([0.3, 0.01, 0.007, 0.0001])
}

/// Gives the whole book to each kind.
macro_rules! laws {
    ($($name:ident: $kind:expr, $effort:expr;)*) => { $(
        mod $name {
            use super::*;

            fn want(build: FilterBuilder<'_>) -> FilterBuilder<'_> {
                build.kind($kind).effort($effort)
            }

            #[test]
            fn holds_every_key_at_every_rate() {
                for rate in rates() {
                    for n in [1u64, 2, 63, 64, 65, 1000, 12_000] {
                        let filter = want(tamis::build(integers(n, 1))).fpr(rate).threads(1).finish().unwrap();
                        holds(&filter, n, &format!("{rate}, {n} keys"));
                    }
                }
            }

            #[test]
            fn holds_every_key_for_every_small_n() {
                for n in 0..=300 {
                    let filter = want(tamis::build(integers(n, 1))).threads(1).finish().unwrap();
                    assert_eq!(filter.is_empty(), n == 0);
                    holds(&filter, n, &format!("{n} keys"));
                }
            }

            #[test]
            fn bytes_are_the_filter() {
                for n in [0, 1, 500, 20_000] {
                    round_trip(&want(tamis::build(integers(n, 1))).finish().unwrap(), n);
                }
            }

            #[test]
            fn batches_answer_like_single_queries() {
                for (n, rate) in [(0, 0.1), (1, 0.4), (900, 0.25), (900, 0.01), (30_000, 0.5), (30_000, 0.004), (30_000, 0.03)] {
                    let filter = want(tamis::build(integers(n, 1))).fpr(rate).finish().unwrap();
                    batches(&filter);
                }
            }

            #[test]
            fn the_set_alone_decides_the_bytes() {
                for n in [0, 1, 300, 15_000] {
                    same_bytes(n, |build| want(build).seed(5));
                }
            }

            #[test]
            fn empty_filters_reject_everything() {
                for build in [want(tamis::build([0u64; 0])), want(tamis::build([0u64; 0])).bits_per_key(9.0)] {
                    let filter = build.finish().unwrap();
                    assert_eq!((filter.len(), filter.fpr()), (0, 0.0));
                    assert!(!ask_many(&filter, &integers(1000, 2).collect::<Vec<_>>()).contains(&true));
                    assert!(integers(1000, 2).all(|key| filter.contains(key) == Ok(false)));
                }
            }
        }
    )* };
}

shapes!(laws);

/// All keys, alone and in batches.
fn holds(filter: &Filter, n: u64, what: &str) {
    let keys: Vec<u64> = integers(n, 1).collect();
    assert_eq!(filter.len(), n, "{what}");
    assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{what}");
    assert!(!ask_many(filter, &keys).contains(&false), "{what}, in a batch");
}

/// Owned, shared, written and mapped bytes are the same filter.
fn round_trip(filter: &Filter, n: u64) {
    filter.verify().unwrap();
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, filter.as_bytes()).unwrap();
    let again = [
        Filter::open(filter.as_bytes().to_vec()).unwrap(),
        Filter::open(Bytes::copy_from_slice(filter.as_bytes())).unwrap(),
        crate::mapped::filter(&path).unwrap(),
        Filter::read(&path).unwrap(),
    ];
    let asked: Vec<u64> = integers(n, 1).chain(integers(5000, 2)).collect();
    let answers = ask_many(filter, &asked);
    for other in again {
        assert_eq!(other.as_bytes(), filter.as_bytes());
        assert_eq!((other.len(), other.key_type(), other.fpr()), (filter.len(), filter.key_type(), filter.fpr()));
        assert_eq!(other.hasher(), filter.hasher());
        assert_eq!(
            format!("{:?}", other.layers().collect::<Vec<_>>()),
            format!("{:?}", filter.layers().collect::<Vec<_>>())
        );
        other.verify().unwrap();
        assert!(ask_many(&other, &asked) == answers);
    }
}

fn batches(filter: &Filter) {
    // Keys and unlisted keys in turn, so that both answers occur in every batch.
    let asked: Vec<u64> = integers(500, 1).zip(integers(500, 2)).flat_map(|(key, other)| [key, other]).collect();
    for len in [0, 1, 31, 32, 33, 255, 256, 257, 1000] {
        for asked in [&asked[..len], &asked[1000 - len..]] {
            let alone: Vec<bool> = asked.iter().map(|key| filter.contains(key).unwrap()).collect();
            assert_eq!(ask_many(filter, asked), alone, "{len} keys");
        }
    }
    let refused = filter.contains_into(&asked, &mut [false; 999]).unwrap_err();
    assert_eq!(refused.to_string(), "answers: a slice of 999 for 1000 keys; expected as many");
}

/// Threads, order and repetition leave no trace.
fn same_bytes(n: u64, want: impl Fn(FilterBuilder<'static>) -> FilterBuilder<'static>) {
    let keys: Vec<u64> = integers(n, 1).collect();
    let bytes =
        |keys: Vec<u64>, threads| want(tamis::build(keys)).threads(threads).finish().unwrap().as_bytes().to_vec();
    let first = bytes(keys.clone(), 1);
    assert!(first == bytes(keys.clone(), 2) && first == bytes(keys.clone(), 7));
    let (mut sorted, mut backwards) = (keys.clone(), keys.clone());
    sorted.sort_unstable();
    backwards.reverse();
    let twice = [&keys[..], &sorted[..]].concat();
    for other in [sorted, backwards, twice] {
        assert!(first == bytes(other, 2));
    }
}

/// Memory, a file and a writer get the same bytes, from a builder and from its collector, and the same report.
#[test]
fn every_ending_writes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    macro_rules! check {
        ($make:expr) => {{
            let (whole, report) = $make.finish_with_report().unwrap();
            assert_eq!($make.finish().unwrap(), whole);
            let mut bytes = vec![];
            let reports = [$make.finish_into(&mut bytes).unwrap(), $make.finish_to(&path).unwrap()];
            assert_eq!((&bytes[..], &std::fs::read(&path).unwrap()[..]), (whole.as_bytes(), whole.as_bytes()));
            assert_eq!(reports.map(|report| format!("{report:?}")), [format!("{report:?}"), format!("{report:?}")]);
            assert_eq!(report.bytes, bytes.len() as u64);
            assert!(matches!($make.finish_into(&mut [0u8; 40][..]), Err(tamis::Error::Io { .. })));
        }};
    }
    let pairs = || (0..500u64).map(|key| (key, key % 9));
    let members = || (0..500u64).map(|key| (key, ["a", "b"][key as usize % 2]));
    check!(tamis::map(pairs()));
    check!(tamis::sequence((0..500u64).map(|at| at % 5)));
    check!(tamis::sets(members()));
    check!({
        let mut collector = tamis::maps::stream().start();
        pairs().try_for_each(|(key, value)| collector.push(key, value)).unwrap();
        collector
    });
    check!({
        let mut collector = tamis::sets::stream().start();
        for (key, name) in members() {
            let set = collector.set(name).unwrap();
            collector.push(key, set).unwrap();
        }
        collector
    });
}

/// Filters, maps, sequences and indexes are their bytes: clones share them, equal ones have equal bytes, threads may have either.
#[test]
fn values_are_their_bytes() {
    fn check<T: Clone + Eq + AsRef<[u8]> + Send + Sync>(one: T, other: T, into_bytes: fn(T) -> bytes::Bytes) {
        let clone = one.clone();
        assert!(clone == one && clone != other);
        // A clone is no copy: the bytes are where they were.
        assert_eq!(clone.as_ref().as_ptr(), one.as_ref().as_ptr());
        let bytes = one.as_ref().to_vec();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(one));
        });
        assert_eq!(into_bytes(clone), bytes);
    }
    let shards = |n: u64| tamis::build(0..n).exclude(n..3 * n).exact().finish().unwrap();
    check(shards(1000), shards(1001), tamis::Filter::into_bytes);
    let map = |n: u64| tamis::map((0..n).map(|key| (key, key % 9))).finish().unwrap();
    check(map(1000), map(1001), tamis::Map::into_bytes);
    let sequence = |n: u64| tamis::sequence((0..n).map(|at| at % 5)).finish().unwrap();
    check(sequence(100), sequence(101), tamis::Sequence::into_bytes);
    let sets = |n: u64| tamis::sets((0..n).map(|key| (key, ["a", "b"][key as usize % 2]))).finish().unwrap();
    check(sets(100), sets(101), tamis::Sets::into_bytes);
    let clone = shards(3000).clone();
    assert!((0..9000u64).all(|key| clone.contains(key) == Ok(key < 3000)));
}
