//! up to ten million keys -> every one held: slow, and only when TAMIS_SLOW is set.

use tamis::{Kind, Layout};

use super::{ask_many, filter, integers};

#[test]
fn up_to_ten_million_keys() {
    if std::env::var_os("TAMIS_SLOW").is_none() {
        println!("skipped: set TAMIS_SLOW to climb to ten million keys");
        return;
    }
    for kind in [Kind::Ribbon, Kind::Fuse, Kind::Cuckoo, Kind::Quotient] {
        for n in
            [1, 3, 10, 100, 1000, 10_000, 10_001, 30_000, 100_000, 300_000, 1_000_000, 1_500_001, 3_000_000, 10_000_000]
        {
            let filter = filter(n, kind, 1.0 / 256.0);
            assert_eq!(filter.len(), n);
            let keys: Vec<u64> = integers(n, 1).collect();
            assert!(!ask_many(&filter, &keys).contains(&false), "{kind:?}, {n} keys");
            assert!(keys.iter().step_by(11).all(|key| filter.contains(key) == Ok(true)), "{kind:?}, {n} keys");
            let strangers: Vec<u64> = integers(1_000_000, 2).collect();
            let passed = ask_many(&filter, &strangers).into_iter().filter(|&yes| yes).count() as f64;
            let expected = 1e6 * filter.fpr();
            // What one key lets through is chance as well: buckets that are their own other one, quotients of other sizes.
            let sigma = (expected + expected * expected / n as f64).sqrt();
            assert!((passed - expected).abs() < 4.0 * sigma, "{kind:?}, {n} keys: {passed} pass");
            println!("{kind:?}, {n} keys: {:.3} bits each", filter.as_bytes().len() as f64 * 8.0 / n as f64);
        }
    }
}

/// All columns side by side: few keys and many, one shard and two, with and without steered columns and plain bits before them.
#[test]
fn local_up_to_a_million_and_more() {
    if std::env::var_os("TAMIS_SLOW").is_none() {
        println!("skipped: set TAMIS_SLOW to climb to a million keys");
        return;
    }
    for (n, lambda) in
        [(10, 8), (1000, 8), (10_000, 300), (100_000, 40), (1_000_000, 8), (1_600_000, 1), (1_600_000, 3)]
    {
        let (keys, negatives): (Vec<u64>, Vec<u64>) = (integers(n, 1).collect(), integers(lambda * n, 2).collect());
        let build = tamis::build(keys.clone()).exclude(negatives.clone()).exact().layout(Layout::Local);
        let filter = build.finish().unwrap();
        assert!(!ask_many(&filter, &keys).contains(&false), "{n} keys, {lambda} each");
        assert!(!ask_many(&filter, &negatives).contains(&true), "{n} keys, {lambda} each");
        assert!(keys.iter().step_by(11).all(|key| filter.contains(key) == Ok(true)), "{n} keys, {lambda} each");
        println!("{n} keys, {lambda} each: {:.3} bits", filter.as_bytes().len() as f64 * 8.0 / n as f64);
    }
}
