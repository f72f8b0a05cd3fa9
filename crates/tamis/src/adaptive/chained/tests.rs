#![allow(clippy::unwrap_used)]
use super::*;
use crate::hash::scramble;

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| scramble(i + 1)).collect()
}

fn stranger(i: u64) -> u64 {
    scramble(i + (1 << 50))
}

#[track_caller]
fn complete(filter: &AdaptiveChained, keys: &[u64]) {
    assert!(keys.iter().all(|&key| filter.contains(key).unwrap()));
}

/// Unlisted keys that repeat: keys stay, and after every build all that was ever learned is rejected.
#[test]
fn known_false_positives_never_pass_again() {
    for n in (0..30).chain([100, 2000, 12_000]) {
        let mut list = keys(n);
        let options = AdaptiveChained::with_fpr(1.0 / 16.0).secret([n, 1]).rebuild_every(40).max_false_positives(5000);
        let mut filter = options.build(&mut list).unwrap();
        complete(&filter, &list);
        let (mut learned, mut built) = (vec![], 0);
        for i in 0..12_000 {
            let query = stranger(scramble(i) % 8000);
            if filter.contains(query).unwrap() {
                let stats = filter.adapt(query, &mut list).unwrap();
                assert!(stats.changed, "it matched");
                learned.push(query);
                if stats.reads == 1 {
                    built += 1;
                    complete(&filter, &list);
                    assert!(!learned.iter().any(|&query| filter.contains(query).unwrap()));
                }
            }
        }
        filter.rebuild(&mut list).unwrap();
        complete(&filter, &list);
        assert!(!learned.iter().any(|&query| filter.contains(query).unwrap()));
        learned.sort_unstable();
        learned.dedup();
        assert!(filter.adapted() == learned.len() as u64 && (n < 2000 || built > 4), "{n}: {built}");
    }
}

#[test]
fn rates_are_those_of_both_stages() {
    let mut list = keys(20_000);
    for rate in [1.0 / 16.0, 0.01] {
        let mut filter = AdaptiveChained::with_fpr(rate).secret([3, 4]).build(&mut list).unwrap();
        for exact in [false, true] {
            let mean = filter.fpr() * 400_000.0;
            let passed = (0..400_000).filter(|&i| filter.contains(stranger(i)).unwrap()).count() as f64;
            assert!((passed - mean).abs() < 5.0 * mean.sqrt(), "{rate}: {passed}, {mean}");
            assert!(filter.fpr() <= rate && (filter.fpr() < 0.51 * rate) == exact);
            let more = (1 << 30..).map(stranger).find(|&i| filter.contains(i).unwrap()).unwrap();
            filter.adapt(more, &mut list).unwrap();
            filter.rebuild(&mut list).unwrap();
        }
    }
}

/// A false positive that was stored, and nothing built.
const LISTED: ChangeStats = ChangeStats { changed: true, reads: 0, writes: 0, moved: 0, words: 0 };

/// Keys that cannot be read, that are others, that are reported by mistake; a full list.
#[test]
fn what_goes_wrong_does_no_harm() {
    let mut list = keys(1000);
    let mut filter = AdaptiveChained::with_fpr(0.1)
        .secret([1, 1])
        .rebuild_every(3)
        .max_false_positives(10)
        .build(&mut list)
        .unwrap();
    let passing: Vec<u64> = (0..).map(stranger).filter(|&i| filter.contains(i).unwrap()).take(12).collect();
    assert_eq!(filter.adapt(list[5], &mut list).unwrap(), LISTED);
    assert_eq!(filter.adapt(passing[0], &mut list).unwrap(), LISTED);
    assert_eq!(filter.adapt(passing[0], &mut list).unwrap(), LISTED);
    let error = filter.adapt(passing[1], &mut list[1..].to_vec()).unwrap_err().to_string();
    assert_eq!(error, "keys: 999 keys; expected the 1000 that the filter was made of");
    complete(&filter, &list);
    assert!(filter.contains(passing[0]).unwrap());
    assert_eq!(filter.adapt(passing[1], &mut list).unwrap(), ChangeStats { reads: 1, ..LISTED });
    complete(&filter, &list);
    assert!(filter.adapted() == 2 && !filter.contains(passing[0]).unwrap());
    let mut full = 0;
    for query in (100..).map(stranger).filter(|&i| i % 3 == 0).take(2000) {
        full += u32::from(matches!(filter.adapt(query, &mut list), Err(AdaptError::Change(ChangeError::Full { .. }))));
    }
    assert!(full > 0 && filter.adapted() == 10);
    // What comes when the list is full goes on matching.
    let stuck: Vec<u64> = (3000..).map(stranger).filter(|&i| filter.contains(i).unwrap()).take(5).collect();
    assert!(stuck.iter().all(|&i| filter.adapt(i, &mut list).is_err() && filter.contains(i).unwrap()));
    complete(&filter, &list);
    assert!(filter.adapt("text", &mut list).is_err() && filter.contains("text").is_err());
    for rate in [0.0, -1.0, f64::NAN, 1e-12] {
        assert!(AdaptiveChained::with_fpr(rate).build(&mut list).is_err());
    }
}

#[test]
fn snapshots_go_on_and_damaged_ones_do_no_harm() {
    let mut list = keys(500);
    let mut filter = AdaptiveChained::with_fpr(0.1).secret([1, 1]).rebuild_every(20).build(&mut list).unwrap();
    for round in 0..4u64 {
        let bytes = filter.snapshot().unwrap();
        let mut again = AdaptiveChained::restore(bytes.clone()).unwrap();
        assert!(again.snapshot().unwrap() == bytes && again.adapted() == filter.adapted());
        complete(&again, &list);
        assert!((0..5000).all(|i| filter.contains(stranger(i)) == again.contains(stranger(i))));
        for i in 0..200 {
            let query = stranger(i + round * 200);
            let noted = filter.adapt(query, &mut list).unwrap();
            assert_eq!(again.adapt(query, &mut list).unwrap(), noted);
        }
        complete(&again, &list);
        for end in (0..bytes.len()).step_by(3) {
            assert!(AdaptiveChained::restore(bytes[..end].to_vec()).is_err());
        }
        let file = file::read(bytes, None, Kind::Chained).unwrap();
        let mut from = file.fields();
        let fields = from.take(from.len()).unwrap().to_vec();
        let payloads: Vec<Vec<u8>> = file.payloads.iter().map(|payload| payload.to_vec()).collect();
        let mut try_out = |fields: &[u8], payloads: &[Vec<u8>]| {
            let bytes =
                file::write(Kind::Chained, &filter.set.hasher, filter.set.key_type, 500, fields, payloads).unwrap();
            let Ok(mut filter) = AdaptiveChained::restore(bytes) else { return };
            for i in 0..60 {
                filter.adapt(stranger(i), &mut list).ok();
            }
            filter.snapshot().unwrap();
        };
        for at in 0..fields.len() {
            for flip in [1, 2, 0x80, 0xff] {
                let mut fields = fields.clone();
                fields[at] ^= flip;
                try_out(&fields, &payloads);
            }
            try_out(&fields[..at], &payloads);
        }
        for which in 0..payloads.len() {
            let mut payloads = payloads.clone();
            for at in (0..payloads[which].len()).step_by(41) {
                payloads[which][at] ^= 0x41;
                try_out(&fields, &payloads);
            }
            payloads[which].pop();
            try_out(&fields, &payloads);
        }
    }
}
