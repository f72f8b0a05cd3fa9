//! the figures of the papers, small, in processes of their own -> what they print is JSON and right.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

fn report(options: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench-papers")).args(options.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(group: &Value) -> impl Iterator<Item = (&str, &Value)> {
    group["rows"].as_array().unwrap().iter().map(|row| (row["name"].as_str().unwrap(), row))
}

/// The sizes of figure 8 follow the formulas, and only filters without a free set let negatives pass.
#[test]
fn free_sets() {
    let options = "fpfs --part measured --n 3000 --negatives 1000,100000 --bits 8 --rounds 1 --queries 1000";
    let report = report(&format!("{options} --strangers 100000 --json -"));
    for group in report["measured"].as_array().unwrap() {
        for (name, row) in rows(group) {
            let passed = row["passed"].as_f64().unwrap();
            assert_eq!(row["wrong"]["false_positives"], 0, "{name}");
            assert!(passed == 0.0 || name.contains("no free set"), "{name}: {passed}");
        }
        let bits = |name: &str| rows(group).find(|row| row.0 == name).unwrap().1["median"]["bits"].as_f64().unwrap();
        // Where steering saves nothing, the plan is the chained filter.
        assert!(bits("tamis steered") <= 1.01 * bits("tamis ribbon TF"));
    }
}

#[test]
fn chained_filters() {
    let report =
        report("paper chained --n 3000 --lambdas 2,16 --rounds 1 --queries 1000 --threshold-keys 5000 --json -");
    for figure in ["surface", "thresholds"] {
        for point in report[figure].as_array().unwrap() {
            assert!(point["steered"].as_f64() > point["bound"].as_f64(), "{figure}: {point}");
        }
    }
    for group in report["throughput"].as_array().unwrap() {
        let exact = rows(group).filter(|(name, _)| !name.contains("approximate"));
        assert!(exact.into_iter().all(|(_, row)| row["passed"] == 0.0 && row["wrong"]["false_negatives"] == 0));
    }
}

/// Every map of figure 8 and of the tables after it is right, and none is below the entropy.
#[test]
fn maps() {
    let options = "paper chained --apps huffman,zipf,functions --n 20000 --omegas 3,10 --zipf-keys 30000 --widths 1,8";
    let report = report(&format!("{options} --rounds 1 --queries 1000 --json -"));
    assert_eq!(report["surface"].as_array().map(Vec::len), Some(0));
    for (app, groups) in [("huffman", 2), ("zipf", 1), ("functions", 2)] {
        let found = report[app].as_array().unwrap();
        assert_eq!(found.len(), groups);
        for group in found {
            let (n, needed) = (number(group, "keys"), number(group, "needed"));
            for (name, row) in rows(group) {
                let sample = &row["median"];
                assert!(row["wrong"] == 0 && row["failed"] == serde_json::json!([]), "{app}, {name}: {row}");
                assert!(number(sample, "bytes") * 8.0 > n * needed, "{app}, {name}: {sample}, {needed}");
                assert!(!sample["read"].is_null() || !sample["in_order"].is_null(), "{app}, {name}");
            }
        }
    }
}

/// The learned ChainedFilter of figure 13 is smaller than the learned Bloomier and Bloom filters at every share of training data, and the
/// strict filter matches no excluded name.
#[test]
fn learned_filters() {
    let report = report("paper chained --apps learned --n 4000 --json -");
    let all = report["learned"].as_array().unwrap();
    let named = |name: &'static str| all.iter().filter(move |row| row["name"] == name);
    assert!(named("learned chained").count() == 6 && all.iter().all(|row| row["rejected"] == 0));
    for chained in named("learned chained") {
        for rival in ["learned Bloomier", "learned Bloom", "sandwiched Bloom"] {
            let rival = named(rival).find(|row| row["share"] == chained["share"]).unwrap();
            assert!(number(chained, "bytes") < number(rival, "bytes"), "{chained}, {rival}");
        }
    }
    assert!(named("strict").chain(named("steered, exact")).all(|row| row["rate"] == 0.0));
}

/// The predictors of cuckoo tables have the sizes and errors of the paper or better; nothing is answered wrongly.
#[test]
fn cuckoo_tables() {
    let report = report("paper chained --apps cuckoo --n 20000 --rounds 1 --latencies 0,1 --queries 1000 --json -");
    let list = |part: &str| report[part].as_array().unwrap().clone();
    for load in list("loads") {
        let ratio = number(&load, "measured_lambda") / number(&load, "lambda");
        assert!((ratio - 1.0).abs() < 0.15 && load["wrong"] == 0, "{load}");
        assert!(number(&load, "cascade") < 1.1 * number(&load, "formula"), "{load}");
    }
    for line in list("training") {
        let wrong: Vec<f64> = line["wrong"].as_array().unwrap().iter().map(|wrong| wrong.as_f64().unwrap()).collect();
        let name = line["name"].as_str().unwrap();
        // Bloom layers that were trained on moves stay wrong.
        assert_eq!(wrong[6] == 0.0, !name.starts_with("Bloom layers, on the moves"), "{line}");
        assert!(!name.starts_with("tamis") || (wrong[3] <= 0.1 && wrong[4] == 0.0), "{line}");
    }
    for rival in list("gets") {
        let name = rival["name"].as_str().unwrap();
        assert!(rival["wrong"] == 0 && rival["micros"].as_array().unwrap().len() == 2, "{rival}");
        assert!(!name.starts_with("tamis") || number(&rival, "present") == 1.0, "{rival}");
        assert_eq!(number(&rival, "absent") == 1.0, name.contains("exact bit") || name.starts_with("EMOMA"), "{rival}");
    }
    let churn = list("churn");
    let row = |name: &str| churn.iter().find(|row| row["name"].as_str().unwrap().starts_with(name)).unwrap();
    assert_eq!(number(row("tamis table, exact bit"), "worst"), 0.0);
    let cascade = row("tamis table, cascade, resets");
    assert!(number(cascade, "worst") < 3.0 && number(cascade, "resets") > 10.0, "{cascade}");
    assert!(number(row("Bloom layers, by gets, no resets"), "worst") > 30.0);
    let lambda = number(row("exact bit, the paper's walk"), "lambda");
    assert!((1.3..1.65).contains(&lambda), "{lambda}");
}

/// A filter of [Stacked] that was built and keeps its promises.
fn kept(row: &Value) {
    assert!(row["failed"].is_null() && row["lost"] == 0, "{row}");
    assert!(row["exact"] == false || row["known_passing"] == 0, "{row}");
    assert!(number(row, "bits") <= number(row, "budget"), "{row}");
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap()
}

/// On skewed queries a stack beats the Bloom filter and the planner beats the stack, as planned; nothing excluded passes.
#[test]
fn stacked_filters() {
    let options = "stacked --n 5000 --part figure3,shares,planner --bits 10 --rounds 1 --queries 1000";
    let report = report(&format!("{options} --json -"));
    for set in report["figure3"].as_array().unwrap().iter().filter(|set| set["skipped"].is_null()) {
        let rows = set["rows"].as_array().unwrap();
        let [plain, stacked, planner] = [0, 1, 2].map(|i| number(&rows[i], "efpr"));
        rows.iter().for_each(kept);
        assert!(stacked < 0.9 * plain && planner < stacked, "{}: {plain}, {stacked}, {planner}", set["name"]);
        // The latency of a device is added, by arithmetic, where a filter lets pass, and nowhere else.
        let [slow, fast] = [0, 2].map(|i| number(&rows[i], "hdd"));
        assert!(fast > 2.0 * slow, "{slow}, {fast}");
    }
    for three in report["shares"].as_array().unwrap() {
        three["rows"].as_array().unwrap().iter().for_each(kept);
    }
    for pair in report["planner"].as_array().unwrap() {
        let (stacked, planner) = (&pair["stacked"], &pair["planner"]);
        [&pair["bloom"], &pair["ribbon"], stacked, planner].into_iter().for_each(kept);
        assert!(number(planner, "efpr") < number(stacked, "efpr"), "{pair}");
        // Whatever the queries, bits per key buy a Bloom filter less.
        assert!(number(&pair["ribbon"], "efpr") < 0.5 * number(&pair["bloom"], "efpr"), "{pair}");
        assert!(planner["known"].as_u64().unwrap() > 0 && planner["exact"] == true, "{pair}");
        // More than a million unknown values are asked for: what passes of them is near what was planned.
        for row in [stacked, planner] {
            let ratio = number(row, "unknown_rate") / number(row, "predicted_unknown");
            assert!((0.6..1.5).contains(&ratio), "{ratio}: {row}");
        }
    }
}

/// Loads that are not what was told: the planner's filter stays below the Bloom filter, a stack does not.
#[test]
fn stacked_filters_on_other_loads() {
    let options = "stacked --n 5000 --part figure5,speed --negatives-per-key 60 --rounds 1 --queries 1000 --json -";
    let report = report(options);
    let figure = &report["figure5"];
    for shift in figure["shifts"].as_array().unwrap() {
        shift["rows"].as_array().unwrap().iter().for_each(kept);
        let even = &shift["shift"]["even"];
        // With little skew a stack gains little, and few keys pay for its layers.
        let loses = even[1].as_f64().is_some_and(|share| (0.4..1.0).contains(&share));
        assert!(number(shift, "at") < 1.0 || loses, "{even}");
        assert!(even[2].is_null(), "{even}");
    }
    for three in figure["misspecified"].as_array().unwrap().iter().chain(figure["uniform"].as_array().unwrap()) {
        let rows = three["rows"].as_array().unwrap();
        rows.iter().for_each(kept);
        assert!(number(&rows[2], "efpr") < 0.5 * number(&rows[0], "efpr"), "{three}");
    }
    assert_eq!(figure["construction"].as_array().map(Vec::len), Some(5));
    let speed = report["speed"].as_array().unwrap();
    assert_eq!(speed.len(), 5);
    for pair in speed {
        let rows = pair["rows"].as_array().unwrap();
        rows.iter().for_each(kept);
        let timed = |i: usize| pair["times"][i][0].as_f64().is_some_and(|time| time > 0.0);
        assert!([0, 1].into_iter().all(timed), "{pair}");
    }
}

/// The searches of table 2 find what the paper found, and figure 2 says what the text says.
#[test]
fn stacked_formulas() {
    let report = report("stacked --part table2,figure2 --rounds 1 --json -");
    for search in report["table2"].as_array().unwrap() {
        let rate = |i: usize| search["cells"][i]["efpr"].as_f64().unwrap();
        assert!((rate(0) - 0.00172).abs() < 0.00004 && rate(1) <= 1.0001 * rate(0), "{search}");
    }
    let line = &report["figure2"]["least_psi"][1];
    assert_eq!(line["known_per_key"], 0.5);
    assert!((line["values"][0].as_f64().unwrap() - 0.25).abs() < 0.01, "{line}");
    assert!(report["figure3"].is_null() && report["planner"].is_null());
}

/// Nothing is lost, one table errs as its formula says, and less than a filter per set.
#[test]
fn many_sets() {
    let options = "csc --part figure2,figure5,figure6,figure7,figure8,figure11,figure13 --scale 0.02";
    let report = report(&format!("{options} --probes 20 --queries 500 --rounds 1 --json -"));
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| figure["wrong"].as_array().unwrap().is_empty()));
    let figure = figures.iter().find(|figure| figure["head"].as_str().unwrap().starts_with("Figure 7")).unwrap();
    let value = |name: &str, column: usize| {
        let (_, row) = rows(figure).find(|(found, _)| found.starts_with(name)).unwrap();
        row["values"][column].as_f64().unwrap()
    };
    // 13.5 bits a pair, 2,456 sets: 2456 (1 - exp(-3 / 13.5))^3 = 19.5 false sets.
    let csc = value("tamis CSC-BF, r = 1", 1);
    assert!((18.0..21.0).contains(&csc), "{csc}");
    assert!((value("shifting", 1) - csc).abs() < 1.5);
    assert!((value("CSC-BF, r = 1, k = 3 (formula)", 1) - 19.5).abs() < 0.1);
    // What the sizes of the sets say: 407 bits for each of them, and some probes meet.
    let (bigsi, expected) = (value("BIGSI, per set", 1), value("BIGSI (formula)", 1));
    assert!((0.95..1.15).contains(&(bigsi / expected)), "{bigsi}, expected {expected}");
    assert!(value("RAMBO", 3) > value("tamis CSC-BF, r = 3", 3));
    assert_eq!(value("BIGSI, per set", 1), value("Sequence Bloom tree", 1));
}

/// Cuckoo sketches: figure 12's order by false sets, figure 13's gap to CSC-BF, and nothing is lost.
#[test]
fn many_sets_in_cuckoo_filters() {
    let options = "csc --part figure12,figure13 --scale 0.05 --probes 20 --queries 5000 --rounds 1 --json -";
    let report = report(options);
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| figure["wrong"].as_array().unwrap().is_empty()));
    let head = |head: &str| figures.iter().find(|figure| figure["head"].as_str().unwrap().starts_with(head)).unwrap();
    let absent = |figure: &Value, name: String| {
        let found = rows(figure).find(|(found, _)| *found == name);
        found.map(|(_, row)| row["values"][1].as_f64().unwrap())
    };
    for (bits, methods) in [("11.2", 1), ("14", 2), ("16.8", 3), ("19.6", 3), ("22.4", 3)] {
        let names = ["tamis CSC-CF, r = 1", "tamis CSC-CF, r = 3, b = n/10", "cuckoo filter per set"];
        let found = names.map(|name| absent(head("Figure 12"), format!("{name}, {bits} bits")));
        let there: Vec<f64> = found.into_iter().flatten().collect();
        assert!(there.len() >= methods && there.is_sorted_by(|a, b| a < b), "{bits} bits: {found:?}");
    }
    // The paper: 274.9 times fewer.
    let of = |name: &str| absent(head("Figure 13"), format!("{name}, 22.6 bits")).unwrap();
    let [bloom, cuckoo] = [of("tamis CSC-BF, r = 1, k = 3"), of("tamis CSC-CF, r = 1")];
    assert!(bloom > 4.0 && bloom >= 200.0 * cuckoo, "{bloom}, {cuckoo}");
}
