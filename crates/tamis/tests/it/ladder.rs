//! up to ten million keys -> every one held: slow, and only when TAMIS_SLOW is set.

use tamis::Kind;

use super::{ask_many, filter, integers};

#[test]
fn up_to_ten_million_keys() {
    if std::env::var_os("TAMIS_SLOW").is_none() {
        println!("skipped: set TAMIS_SLOW to climb to ten million keys");
        return;
    }
    for kind in [Kind::Ribbon, Kind::Fuse] {
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
            let expected = 1e6 * filter.rate();
            assert!((passed - expected).abs() < 4.0 * expected.sqrt(), "{kind:?}, {n} keys: {passed} pass");
            println!("{kind:?}, {n} keys: {:.3} bits each", filter.as_bytes().len() as f64 * 8.0 / n as f64);
        }
    }
}
