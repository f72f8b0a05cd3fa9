//! the `filters` table, small, in a process of its own -> every peer answers rightly and its size is its own.
//!
//! Sizes of peers are read off the allocator, so nothing else may run beside them: not even other tests.
#![cfg(feature = "peers")]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

#[test]
fn every_peer_takes_part_and_answers_rightly() {
    let options = "filters --n 5000 --rounds 2 --queries 3000 --strangers 100000 --json -";
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(options.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reference = report["reference"].as_str().unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() > 20);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let fpr = row["fpr"].as_f64().unwrap();
        // Wide enough for every row, and the narrow ribbons are meant to let more through.
        let most = match name {
            _ if name.contains(" 1 bit") => 0.6,
            _ if name.contains(" 3 bit") => 0.15,
            _ => 0.04,
        };
        assert!(fpr < most, "{name}: {fpr}");
        // No filter is below the bound by more than the luck of 100,000 strangers.
        let (bits, peak) = (row["median"]["bits"].as_f64().unwrap(), row["median"]["peak_bits"].as_f64().unwrap());
        assert!(fpr == 0.0 || bits > -0.95 * fpr.log2(), "{name}: {bits} bits at {fpr}");
        assert!(peak >= 0.95 * bits, "{name}: {bits} bits, {peak} at the peak");
        if name == reference {
            assert_eq!(row["ratio"]["build"].as_f64(), Some(1.0));
            // 100,000 strangers at 2^-8: 391 expected, sigma 20.
            assert!((fpr - 1.0 / 256.0).abs() < 0.0012, "{fpr}");
        }
    }
}
