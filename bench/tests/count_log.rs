//! the `count-log` table, small -> the library and `sort | uniq -c` find the same lines.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

fn count_log(options: &str) -> (bool, Value) {
    let words = ["count-log", "--json", "-"].into_iter().chain(options.split(' '));
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(words).output().unwrap();
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn all_ways_agree_whatever_the_memory() {
    for options in ["--lines 50000 --distinct 20000 --memory 2", "--lines 200000 --distinct 200000 --memory 1"] {
        let (clean, report) = count_log(options);
        assert!(clean, "{report}");
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row["distinct"].as_u64() > Some(5000) && row["peak"].as_f64() > Some(0.5)));
    }
}
