//! the experiments on listed negatives, small, in processes of their own -> what they print is JSON and right.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

fn report(options: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(options.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(group: &Value) -> impl Iterator<Item = (&str, &Value)> {
    group["rows"].as_array().unwrap().iter().map(|row| (row["name"].as_str().unwrap(), row))
}

/// Every structure takes part at every lambda, and the smallest of ours is near what its construction costs.
#[test]
fn exact_structures() {
    let report = report("exact --n 4000 --lambdas 1,3,16 --rounds 2 --queries 2000 --strangers 5000 --json -");
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    for (group, perfect) in groups.iter().zip([2.0, 3.5, 6.0]) {
        let bits = |name: &str| {
            let (_, row) = rows(group).find(|(found, _)| *found == name).unwrap();
            row["median"]["bits"].as_f64().unwrap() / 4000.0
        };
        assert!(rows(group).all(|(_, row)| row["wrong"]["builds"].as_array().unwrap().is_empty()));
        let [balanced, smallest] = ["tamis steered", "tamis steered smallest"].map(bits);
        let bound = group["bound"].as_f64().unwrap();
        // A small file has three or four steps, 0.2 bits per key and more.
        assert!(bound < smallest && smallest < 1.01 * balanced && balanced < 1.07 * bound + 0.4, "{balanced}, {bound}");
        let ribbon = bits("tamis chained ribbon");
        // Small ribbons take a few percent, and the file's header 0.2 bits per key.
        assert!(ribbon > 0.99 * perfect && ribbon < 1.06 * perfect + 0.3, "{ribbon}, {perfect}");
        if cfg!(feature = "peers") {
            assert!(ribbon < bits("rust_cascade") && ribbon < bits("sux VFilter + VFunc"));
        }
    }
}

/// Every row of ours is timed on two threads and in batches, and has a peak above its size.
#[test]
fn exact_rows_are_complete() {
    let report = report("exact --part exact --n 2000 --lambdas 7 --only tamis --rounds 1 --queries 500 --json -");
    let group = &report["groups"][0];
    assert!(rows(group).count() >= 10);
    for (name, row) in rows(group) {
        let sample = &row["median"];
        for field in ["build", "build_twice", "members_batch", "negatives_batch"] {
            assert!(sample[field].as_f64().is_some_and(|time| time > 0.0), "{name}: {field}");
        }
        assert!(sample["peak"].as_f64() > sample["bits"].as_f64(), "{name}");
    }
    assert_eq!(report["shares"].as_array().map(Vec::len), Some(0));
}

/// Not more than may pass, and fewer bits than a filter that is told nothing.
#[test]
fn shares_that_may_pass() {
    let report = report("exact --part share --n 20000 --shares 10:0.03,30:0.01 --rounds 1 --queries 500 --json -");
    let groups = report["shares"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for group in groups {
        let number = |name: &str, field: &str| {
            let (_, row) = rows(group).find(|(found, _)| found.contains(name)).unwrap();
            row[field].as_f64().or_else(|| row["median"][field].as_f64()).unwrap()
        };
        let may = group["negatives"].as_f64().unwrap() * group["wanted"]["share"].as_f64().unwrap();
        assert!(number("steered", "passed") <= may && number("smallest", "passed") <= may);
        // Without a list it is chance: as many as may pass, give or take.
        assert!((number("told nothing", "passed") - may).abs() < 6.0 * may.sqrt());
        let [bits, plain] = ["steered", "told nothing"].map(|name| number(name, "bits") / 20_000.0);
        let bound = group["bound"].as_f64().unwrap();
        assert!(bound < bits && bits < 0.97 * plain, "{bits}, {plain}, {bound}");
    }
}

/// Every structure is right about certificates, and those that know the issuers are measured against the lower bound.
#[test]
fn certificates() {
    let options = "certificates --n 3000 --certificates 100000 --issuers 20 --rounds 1 --queries 1000 --sample 50000";
    let report = report(&format!("{options} --json -"));
    let (bound, whole) = (report["bound"].as_f64().unwrap(), report["bound_without_issuers"].as_f64().unwrap());
    assert!(bound < 0.9 * whole, "{bound}, {whole}");
    for (name, row) in rows(&report) {
        assert_eq!((row["revoked_missed"].as_u64(), row["valid_refused"].as_u64()), (Some(0), Some(0)), "{name}");
        let bits = 8.0 * row["median"]["bytes"].as_f64().unwrap();
        assert!(bits > bound && bits < 1.5 * whole, "{name}: {bits}, {bound}, {whole}");
    }
    if cfg!(feature = "peers") {
        let bytes = |name: &str| {
            let (_, row) = rows(&report).find(|(found, _)| found.contains(name)).unwrap();
            row["median"]["bytes"].as_f64().unwrap()
        };
        // Twenty blocks are few enough that knowing the issuer pays.
        assert!(bytes("clubcard, a block") < bytes("clubcard, one block"));
    }
}
