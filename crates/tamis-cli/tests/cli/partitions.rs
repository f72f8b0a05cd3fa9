//! --partition-column, --partition -> files whose keys carry labels, and what is said of them.

use serde_json::json;

use crate::formats::parquet_table;
use crate::test_dir::{TestDir, numbers};

/// Serial numbers of certificates: few revoked and few not at one issuer, many of both at another.
fn dir() -> TestDir {
    let dir = TestDir::new();
    let table = |rows: &[(&str, std::ops::Range<u64>)]| {
        let lines = rows.iter().flat_map(|(issuer, serials)| serials.clone().map(move |s| format!("{s}\t{issuer}\n")));
        format!("serial\tissuer\n{}", lines.collect::<String>())
    };
    dir.put("revoked.tsv", table(&[("one", 0..1000), ("two", 500..1500), ("three", 0..5)]));
    dir.put("valid.tsv", table(&[("one", 1000..2000), ("two", 1500..41_500), ("two", 0..500), ("four", 0..10)]));
    dir
}

const COLUMNS: &str = "--column serial --partition-column issuer";

#[test]
fn every_listed_pair_is_right() {
    let dir = dir();
    for more in ["--exact", "--fpr 0.01", "--exact --integers", "--exact --secret --memory 4M", "--bits-per-key 20"] {
        let integers = if more.contains("integers") { "--integers" } else { "" };
        let build = format!("build revoked.tsv {COLUMNS} --exclude valid.tsv -o r.tamis {more}");
        let report = dir.run(&build).text(0);
        assert!(report.starts_with("keys        2,005, 0 duplicates dropped\nexcluded    41,510, 0 dup"), "{report}");
        assert!(report.contains("\npartitions  4 in "), "{report}");
        assert!(report.contains("; lower bound "), "{report}");
        let verified = dir.run(&format!("verify r.tamis {COLUMNS} {integers} --keys revoked.tsv --exclude valid.tsv"));
        let expected = "checksum    right\nkeys        2,005 checked, 0 false negatives\nexcluded    41,510 checked, 0 false positives\n";
        assert_eq!(verified.text(0), expected, "{more}");
        let asked = format!("query r.tamis {COLUMNS} {integers} -c");
        assert_eq!(dir.run(&format!("{asked} revoked.tsv")).text(0), "2005\n", "{more}");
        assert_eq!(dir.run(&format!("{asked} valid.tsv")).text(1), "0\n", "{more}");
    }
}

#[test]
fn one_label_for_all_keys() {
    let dir = dir();
    dir.run(&format!("build revoked.tsv {COLUMNS} --exclude valid.tsv --exact -o r.tamis")).text(0);
    dir.put("serials.txt", numbers(0..2000));
    assert_eq!(dir.run("query r.tamis --partition one serials.txt -c").text(0), "1000\n");
    assert_eq!(dir.run("query r.tamis --partition two serials.txt").text(0), numbers(500..1500));
    // A partition without members is not an unknown one.
    assert_eq!(dir.run("query r.tamis --partition four serials.txt").text(1), "");
    let message = dir.run("query r.tamis --partition five serials.txt").failure(5);
    assert_eq!(message, "r.tamis: no partition \"five\"; expected one of its 4 partitions");
    let answers = dir.feed("query r.tamis --partition two --json", "499\n500\n").objects(0);
    let expected = [("499", false), ("500", true)];
    assert_eq!(answers, expected.map(|(key, matched)| json!({ "key": key, "match": matched, "partition": "two" })));
    dir.put("mixed.csv", "serial,issuer\n999,one\n999,two\n1999,one\n1999,two\n3,five\n1,three\n");
    let answers = dir.run(&format!("query r.tamis mixed.csv {COLUMNS} --tsv")).text(0);
    assert_eq!(answers, "999\t1\n999\t1\n1999\t0\n1999\t0\n3\t0\n1\t1\n");
}

#[test]
fn reports_name_groups_and_labels() {
    let dir = dir();
    let built = dir.run(&format!("build revoked.tsv {COLUMNS} --exclude valid.tsv --exact -o r.tamis --json")).json(0);
    let inspected = dir.run("inspect r.tamis --json").json(0);
    for report in [&built, &inspected] {
        assert_eq!((&report["keys"], &report["partitions"]), (&json!(2005), &json!(4)));
        let groups = report["groups"].as_array().unwrap();
        let sum = |name: &str| groups.iter().map(|group| group[name].as_u64().unwrap()).sum::<u64>();
        // The label without keys is in no group.
        assert_eq!((sum("partitions"), sum("keys"), sum("excluded")), (3, 2005, 41_500));
        assert!(groups.len() > 1 && groups.iter().all(|group| group["fpr"].as_f64().unwrap() <= 1.0));
        assert!(report["layers"].as_array().unwrap().iter().all(|layer| layer["group"].is_u64()));
    }
    for name in
        ["bits_per_key", "bound_bits_per_key", "bytes", "groups", "layers", "overhead", "partitions", "fpr", "shards"]
    {
        assert_eq!(inspected[name], built[name], "{name}");
    }
    assert_eq!((&inspected["excluded"], &built["excluded"]), (&json!(41_510), &json!(41_510)));
    // f(0, 1) = 2, f(0, 40.5) = 6.81, and five keys for nothing.
    let bound = built["bound_bits_per_key"].as_f64().unwrap() * 2005.0;
    assert!((bound / (1000.0 * (2.0 + 6.81)) - 1.0).abs() < 0.01, "{bound}");
    let text = dir.run("inspect r.tamis").text(0);
    assert!(text.contains("\nexcluded    41,510\n") && text.contains("\npartitions  4 in "), "{text}");
    assert!(text.contains("\ngroup 0     ") && text.contains("\nlayer 0     group "), "{text}");
}

#[test]
fn questions_of_the_wrong_kind() {
    let dir = dir();
    dir.run(&format!("build revoked.tsv {COLUMNS} --exclude valid.tsv --exact -o r.tamis")).text(0);
    dir.put("serials.txt", numbers(0..20));
    dir.run("build serials.txt -o plain.tamis").text(0);
    let missing = "r.tamis: the filter is partitioned; expected --partition";
    assert_eq!(dir.error("query r.tamis serials.txt"), format!("{missing} NAME or --partition-column NAME"));
    assert_eq!(dir.error("verify r.tamis --keys serials.txt"), format!("{missing}-column NAME"));
    dir.run("verify r.tamis").text(0);
    let other = "plain.tamis: the filter is not partitioned; expected keys without --partition";
    assert_eq!(
        dir.error("query plain.tamis --partition a serials.txt"),
        format!("{other} NAME or --partition-column NAME")
    );
    let line = format!("verify plain.tamis {COLUMNS} --keys revoked.tsv");
    assert_eq!(dir.error(&line), format!("{other}-column NAME"));
    let text = "serials.txt: text lines have no column of partitions; expected a .csv, .tsv, .jsonl or .parquet file, or --format";
    let message = dir.error(&format!("build serials.txt {COLUMNS} -o x.tamis"));
    assert!(message.starts_with("--column: serials.txt is text, "), "{message}");
    assert_eq!(dir.error(&format!("build revoked.tsv {COLUMNS} --exclude serials.txt -o x.tamis")), text);
    let message = dir.error(&format!("query r.tamis revoked.tsv --partition one {COLUMNS}"));
    assert_eq!(message, "--partition: cannot be used with --partition-column; expected one of them");
    let message = dir.error("build revoked.tsv --column serial --partition-column nobody -o x.tamis");
    assert_eq!(message, "revoked.tsv: no column \"nobody\"; expected one of \"serial\", \"issuer\"");
}

/// A conflict is one under the same label, and is shown by its lines.
#[test]
fn conflicts_show_their_lines() {
    let dir = TestDir::new();
    dir.put("keys.csv", "key,label\na,x\nb,x\na,y\n");
    dir.put("others.csv", "key,label\na,z\nb,y\na,y\n");
    let build = "build keys.csv --column key --partition-column label --exclude others.csv -o k.tamis --exact";
    let run = dir.run(build);
    assert!(run.err.ends_with("\ntamis: conflict: \"a\" (keys.csv line 4, others.csv line 4)\n"), "{}", run.err);
    let report = dir.run(&format!("{build} --on-conflict keep")).text(0);
    assert!(report.contains("conflicts   1 key, kept as members\n"), "{report}");
    assert_eq!(dir.run("query k.tamis keys.csv --column key --partition-column label -c").text(0), "3\n");
    dir.run(&format!("{build} --on-conflict drop")).text(0);
    let wrong = dir.run("verify k.tamis --column key --partition-column label --keys keys.csv").text(1);
    assert!(wrong.contains("rejected    keys.csv line 4: a in partition \"y\"\n"), "{wrong}");
}

/// Equal tables give equal files, whatever they are written in.
#[test]
fn every_format_gives_the_same_bytes() {
    let dir = TestDir::new();
    let hosts: Vec<String> = (0..3000).map(|i| format!("h{}", i * i % 7919)).collect();
    let rows = || (1..).zip(&hosts);
    dir.put("t.csv", rows().fold("id,host\n".to_string(), |text, (id, host)| text + &format!("{id},{host}\n")));
    dir.put("t.tsv", rows().fold("host\tid\n".to_string(), |text, (id, host)| text + &format!("{host}\t{id}\n")));
    dir.put("t.jsonl", rows().map(|(id, host)| format!("{{\"id\":{id},\"host\":\"{host}\"}}\n")).collect::<String>());
    dir.put("t.parquet", parquet_table(&hosts.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut all = vec![];
    for name in ["t.csv", "t.tsv", "t.jsonl", "t.parquet"] {
        dir.run(&format!("build {name} --column host --partition-column id -o out.tamis")).text(0);
        all.push(dir.read("out.tamis"));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}
