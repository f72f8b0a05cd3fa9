//! keys with values -> maps: what the commands print, how they end, and what they refuse.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::formats::{gzip, parquet_table};
use crate::test_dir::{TestDir, quickstart};

/// 3000 keys; most have the value `red`.
fn colours() -> String {
    let colour = |i: u32| match i {
        _ if i.is_multiple_of(100) => "green, and blue",
        _ if i.is_multiple_of(10) => "blue",
        _ => "red",
    };
    (0..3000).map(|i| format!("key{i}\t{}\n", colour(i))).collect()
}

fn first_words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn the_round_of_all_commands() {
    let dir = TestDir::new();
    dir.put("pairs.tsv", colours());
    let report = dir.run("map build pairs.tsv --unchecked -o m.tamis").text(0);
    assert_eq!(first_words(&report), ["keys", "values", "layers", "file", "size", "fpr"], "{report}");
    let size = fs::metadata(dir.path("m.tamis")).unwrap().len();
    let bits = size as f64 * 8.0 / 3000.0;
    // 30 of 3000 keys have one value, 270 another.
    let entropy = 0.9 * -0.9f64.log2() + 0.09 * -0.09f64.log2() + 0.01 * -0.01f64.log2();
    let over = 100.0 * (bits / entropy - 1.0);
    for line in [
        "keys        3,000, 0 duplicates dropped\n".to_string(),
        "values      3 (bytes)\n".into(),
        "layers      compressed: a tree of 2 nodes\n".into(),
        "file        m.tamis\n".into(),
        format!(
            "size        {size} bytes, {bits:.3} bits per key; lower bound {entropy:.3}, {over:.1} % above it: entropy {entropy:.3}\n"
        ),
        "fpr         100 % (unchecked: unlisted keys get arbitrary values)\n".into(),
    ] {
        assert!(report.contains(&line), "{line:?} {report}");
    }
    assert_eq!(dir.names(), ["m.tamis", "pairs.tsv", "tmp"]);

    // Every value, in order.
    let keys: String = (0..3000).map(|i| format!("key{i}\n")).collect();
    assert_eq!(dir.feed("map get m.tamis", &keys).text(0), colours());
    assert_eq!(dir.feed("map get -c m.tamis -", &keys).text(0), "3000\n");

    let verified = dir.run("map verify m.tamis --pairs pairs.tsv").text(0);
    assert_eq!(verified, "checksum    right\npairs       3,000 checked, 0 wrong\n");
    assert_eq!(dir.run("map verify m.tamis").text(0), "checksum    right\n");

    let inspected = dir.run("inspect m.tamis").text(0);
    let expected = ["file", "identity", "keys", "values", "hash", "size", "fpr", "shards"];
    assert_eq!(first_words(&inspected)[..8], expected, "{inspected}");
    let lines: Vec<&str> = inspected.lines().skip(8).collect();
    assert!(lines[0].starts_with("node 0      yes or no: "), "{inspected}");
    assert!(lines.iter().any(|line| line.starts_with("node 1        2 ways: ")), "{inspected}");
    assert!(inspected.contains("\ntable       ") && inspected.contains("\nrest        "), "{inspected}");
    // The parts are all of the file.
    let bytes = |line: &&str| {
        let word = line.split(" bytes").next().unwrap().rsplit(' ').next().unwrap();
        word.replace(',', "").parse::<u64>().unwrap()
    };
    assert_eq!(lines.iter().map(bytes).sum::<u64>(), size, "{inspected}");
}

#[test]
fn reports_in_json() {
    let dir = TestDir::new();
    dir.put("pairs", "ann\tred\n\nbob\tblue\neve\tred\nann\tred\ntom\tred\n");
    let built = dir.run("map build pairs -o m.tamis --json --fpr 0.0000152587890625 --seed 7").json(0);
    for (name, value) in [
        ("file", json!("m.tamis")),
        ("keys", json!(4)),
        ("duplicates", json!(1)),
        ("blank", json!(1)),
        ("values", json!(2)),
        ("key_type", json!("bytes")),
        ("value_type", json!("bytes")),
        ("shards", json!(1)),
    ] {
        assert_eq!(built[name], value, "{name}");
    }
    let number = |name: &str| built[name].as_f64().unwrap();
    let size = dir.read("m.tamis").len() as f64;
    let (entropy, rate) = (0.25 * 2.0 + 0.75 * -0.75f64.log2(), number("fpr"));
    assert_eq!(rate, 0.5f64.powi(16));
    assert_eq!((number("bytes"), number("bits_per_key")), (size, size * 2.0));
    assert!((number("entropy_per_key") - entropy).abs() < 1e-9);
    assert!((number("bound_bits_per_key") - entropy + rate.log2()).abs() < 1e-9);
    assert!((number("overhead") - size * 2.0 / (entropy - rate.log2()) + 1.0).abs() < 1e-9);

    let inspected = dir.run("inspect m.tamis --json").json(0);
    for name in ["keys", "values", "key_type", "value_type", "kind", "bytes", "fpr", "table_bytes", "layers"] {
        assert_eq!(inspected[name], built[name], "{name}");
    }
    assert_eq!((&inspected["seed"], &inspected["hash"]), (&json!(7), &json!("xxh3-128")));
    let layer = &inspected["layers"][0];
    assert!(layer["purpose"].is_string() && layer["details"].is_string() && layer["bytes"].is_u64(), "{layer}");

    let answers = [json!({ "key": "bob", "value": "blue" }), json!({ "key": "stranger", "value": null })];
    assert_eq!(dir.feed("map get m.tamis --json", "bob\nstranger\n").objects(0), answers);
    let counts = dir.feed("map get m.tamis --json -c", "bob\n\nstranger\n").json(0);
    assert_eq!(counts, json!({ "keys": 2, "matches": 1, "blank": 1 }));

    dir.put("others", "ann\tred\nbob\tred\nstranger\tblue\n");
    let verified = dir.run("map verify m.tamis --pairs others --json").json(1);
    let at = |line: u64, key: &str, expected: &str, value: Option<&str>| json!({ "file": "others", "unit": "line", "position": line, "key": key, "expected": expected, "value": value });
    let examples = [at(2, "bob", "red", Some("blue")), at(3, "stranger", "blue", None)];
    assert_eq!(verified, json!({ "checksum": true, "checked": 3, "wrong": 2, "examples": examples }));
    let verified = dir.run("map verify m.tamis --pairs others").text(1);
    let expected = "checksum    right\npairs       3 checked, 2 wrong\n\
                    wrong       others line 2: bob has \"blue\", expected \"red\"\n\
                    wrong       others line 3: stranger has no value, expected \"blue\"\n";
    assert_eq!(verified, expected);
}

#[test]
fn absent_keys_are_left_out() {
    let dir = TestDir::new();
    dir.put("pairs", colours());
    dir.run("map build pairs -o m.tamis --fpr 2.3283064365386963e-10").text(0);
    assert_eq!(dir.feed("map get m.tamis", "key0\nno\nkey1\n").text(0), "key0\tgreen, and blue\nkey1\tred\n");
    assert_eq!(dir.feed("map get m.tamis --all", "no\nkey1\n").text(0), "no\t\nkey1\tred\n");
    assert_eq!(dir.feed("map get m.tamis --all", "no\n").text(1), "no\t\n");
    assert_eq!(dir.feed("map get m.tamis", "no\n").text(1), "");
    assert_eq!(dir.feed("map get m.tamis", "").text(1), "");
    assert_eq!(dir.feed("map get m.tamis -c", "no\n").text(1), "0\n");
    assert_eq!(dir.feed("map get m.tamis -0", "no\0key1").text(0), "key1\tred\0");
    assert_eq!(dir.feed("map get m.tamis --trim --lowercase", " KEY1 \n").text(0), "key1\tred\n");
    // Full batches and nothing after them.
    for n in [8191, 8192, 8193] {
        assert_eq!(dir.feed("map get m.tamis -c", "key7\n".repeat(n)).text(0), format!("{n}\n"));
    }
    let report = dir.run("map build pairs -o f.tamis --kind fuse").text(0);
    let line = "\nfpr         0.391 % (unlisted keys that get a value), for 8 bits per key\n";
    assert!(report.contains(line), "{report}");
    assert!(dir.run("inspect f.tamis").text(0).contains(line));
    assert!(report.contains(" % above it: entropy 0.516, fingerprints 8.000\n"), "{report}");
}

/// Of 20,000 unlisted keys, as many have a value as the map was told.
#[test]
fn unlisted_keys_have_no_value() {
    let dir = TestDir::new();
    dir.put("pairs", (0..5000).map(|i| format!("key{i}\t{}\n", i % 8)).collect::<String>());
    dir.put("others", (0..20_000).map(|i| format!("other{i}\n")).collect::<String>());
    for (options, fpr) in [
        ("", 1.0 / 256.0),
        ("--kind ribbon --values numbers", 1.0 / 256.0),
        ("--kind compressed", 1.0 / 256.0),
        ("--fpr 0.1", 1.0 / 16.0),
        ("--fpr 1%", 1.0 / 128.0),
        ("--fpr 1e-9", 0.5f64.powi(30)),
        ("--unchecked", 1.0),
    ] {
        let report = dir.run(&format!("map build pairs -o m.tamis --json {options}")).json(0);
        let found = report["fpr"].as_f64().unwrap();
        assert!((found - fpr).abs() < 1e-14, "{options}: {found}");
        let code = if fpr < 1e-6 { 1 } else { 0 };
        let found: f64 = dir.run("map get m.tamis others -c").text(code).trim().parse().unwrap();
        let expected = 20_000.0 * fpr;
        assert!(
            found <= expected + 5.0 * expected.sqrt() && (found > 0.5 * expected || code == 1),
            "{options}: {found}"
        );
        dir.run("map verify m.tamis --pairs pairs").text(0);
    }
    // Nothing is printed for a key without a value, and the exit code is that of a query without matches.
    dir.run("map build pairs -o m.tamis --fpr 1e-9").text(0);
    assert_eq!(dir.run("map get m.tamis --key other7").text(1), "");
    assert_eq!(dir.run("map get m.tamis --key other7 --key key7").text(0), "key7\t7\n");
}

#[test]
fn every_format_gives_the_same_map() {
    let dir = TestDir::new();
    let lines = "alpha\t1\nbeta\t2\ngamma\t3\n";
    dir.feed("map build -o text.tamis", lines).text(0);
    dir.feed("map build -o numbers.tamis --values numbers", lines).text(0);
    assert_ne!(dir.read("text.tamis"), dir.read("numbers.tamis"));
    let table = "host\tid\nalpha\t1\nbeta\t2\ngamma\t3\n";
    let objects: String = lines
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(host, id)| format!("{{\"host\":\"{host}\",\"id\":{id}}}\n"))
        .collect();
    dir.put("plain.tsv", lines);
    dir.put("plain", gzip(lines.as_bytes()));
    dir.put("crlf.txt", format!("\u{feff}{}", lines.replace('\n', "\r\n\r\n")));
    dir.put("named.tsv", table);
    dir.put("named.csv", table.replace('\t', ","));
    dir.put("named.csv.gz", gzip(table.replace('\t', ",").as_bytes()));
    dir.put("rows.csv", lines.replace('\t', ","));
    dir.put("typed.jsonl", objects);
    dir.put("typed.parquet", parquet_table(&["alpha", "beta", "gamma"]));
    let named = "--column host --value-column id";
    for (file, columns) in [
        ("plain.tsv", ""),
        ("plain", ""),
        ("crlf.txt", ""),
        ("named.tsv", named),
        ("named.csv", named),
        ("named.csv.gz", named),
        ("rows.csv", "--column #1 --value-column #2"),
        ("typed.jsonl", named),
        ("typed.parquet", named),
    ] {
        let typed = file.starts_with("typed");
        for (option, expected) in [
            ("--values text", "text.tamis"),
            ("--values numbers", "numbers.tamis"),
            ("", if typed { "numbers.tamis" } else { "text.tamis" }),
        ] {
            dir.run(&format!("map build {file} {columns} {option} -o out.tamis")).text(0);
            assert_eq!(dir.read("out.tamis"), dir.read(expected), "{file} {option}");
        }
        for map in ["text.tamis", "numbers.tamis"] {
            dir.run(&format!("map verify {map} --pairs {file} {columns}")).text(0);
        }
    }
    // The keys of a table; integers by their type.
    assert_eq!(dir.run("map get text.tamis named.csv --column host").text(0), lines);
    let swapped = "--column id --value-column host";
    dir.run(&format!("map build typed.parquet {swapped} -o by-id.tamis")).text(0);
    assert_eq!(dir.feed("map get by-id.tamis --integers", "2\n").text(0), "2\tbeta\n");
    dir.run(&format!("map build named.csv {swapped} --integers -o out.tamis")).text(0);
    assert_eq!(dir.read("out.tamis"), dir.read("by-id.tamis"));
    dir.run(&format!("map build --format tsv rows.csv named.tsv {swapped} -o out.tamis")).complaint();
    // Only the first tab counts, and an empty value is one.
    dir.feed("map build -o tabs.tamis --fpr 1e-6", "a\tb\tc\nd\t\n e \t f \n").text(0);
    assert_eq!(dir.feed("map get tabs.tamis", "a\nd\n e \n").text(0), "a\tb\tc\nd\t\n e \t f \n");
    dir.feed("map build -o tabs.tamis -0 --trim", " a\t1\n2\0").text(0);
    assert_eq!(dir.feed("map get tabs.tamis", "a\n").text(0), "a\t1\n2\n");
}

#[test]
fn options_of_the_build() {
    let dir = TestDir::new();
    dir.put("pairs", (0..20_000u64).map(|i| format!("{i}\t{}\n", i * i % 1000)).collect::<String>());
    dir.put("keys", (0..20_000u64).map(|i| format!("{i}\n")).collect::<String>());
    let build = |options: &str| {
        let report = dir.run(&format!("map build pairs -o m.tamis --json {options}")).json(0);
        dir.run("map verify m.tamis --pairs pairs").text(0);
        report
    };
    let bits = |report: &serde_json::Value| report["bits_per_key"].as_f64().unwrap();
    let ribbon = build("--values numbers --kind ribbon --unchecked");
    assert_eq!((ribbon["kind"].as_str(), ribbon["value_type"].as_str()), (Some("function"), Some("integer")));
    assert!((10.0..10.3).contains(&bits(&ribbon)), "{ribbon}");
    assert_eq!(ribbon["layers"][0]["structure"], "ribbon");
    let fuse = build("--values numbers --kind fuse --unchecked");
    assert_eq!(fuse["layers"][0]["structure"], "binary fuse");
    assert!((11.0..13.5).contains(&bits(&fuse)), "{fuse}");
    let wide = build("--width 16 --kind ribbon --unchecked");
    assert!((16.0..16.4).contains(&bits(&wide)), "{wide}");
    let compressed = build("--kind compressed --effort smallest");
    assert_eq!((compressed["kind"].as_str(), compressed["value_type"].as_str()), (Some("compressed"), Some("bytes")));
    let local = build("--kind compressed --layout local --effort fast");
    assert_eq!(local["keys"], 20_000);
    let marked = build("--values numbers --kind ribbon");
    assert!((18.0..18.4).contains(&bits(&marked)), "{marked}");
    assert_eq!(marked["fpr"].as_f64(), Some(1.0 / 256.0));
    dir.put("values", (0..1000u64).map(|i| format!("{i}\n")).collect::<String>());
    assert_eq!(build("--alphabet values")["value_type"], "bytes");
}

#[test]
fn seeds_threads_and_memory() {
    let dir = TestDir::new();
    dir.put("pairs", colours());
    let build = |options: &str| {
        dir.run(&format!("map build pairs -o m.tamis {options}")).text(0);
        dir.read("m.tamis")
    };
    let plain = build("");
    assert!(plain == build("--threads 1"));
    assert!(plain == build("--seed 0") && plain != build("--seed 1"));
    assert!(build("--secret") != build("--secret"));
    let inspected = dir.run("inspect m.tamis").text(0);
    assert!(inspected.contains("hash        SipHash-2-4-128, secret\n"), "{inspected}");
    assert_eq!(dir.run("inspect m.tamis --json").json(0)["seed"], json!(null));
    dir.run("map verify m.tamis --pairs pairs").text(0);
    // To standard output, and to a device.
    let run = dir.run("map build pairs -o -");
    assert!(run.code == Some(0) && run.out == plain);
    assert!(run.err.contains("\nfile        standard output\n"), "{}", run.err);
    if cfg!(unix) {
        let run = dir.run("map build pairs -o /dev/null");
        assert_eq!((run.code, run.out.len()), (Some(0), 0));
        assert_eq!(first_words(&run.err), ["keys", "values", "file", "size"], "{}", run.err);
    }
    assert_eq!(dir.names(), ["m.tamis", "pairs", "tmp"]);
    // More than memory holds goes to the disk and makes the same file.
    dir.put("pairs", (0..300_000u32).map(|i| format!("{i}\t{}\n", i.trailing_zeros())).collect::<String>());
    assert!(build("") == build("--memory 4M --tmp tmp --disk 1G"));
    dir.run("map verify m.tamis --pairs pairs").text(0);
    let message = dir.error("map build pairs -o m.tamis --memory 4M --disk 1M");
    assert_eq!(message, "--disk 1048576: too small for the temporary files; expected a higher limit of disk or memory");
}

#[test]
fn maps_of_nothing_and_of_one_value() {
    let dir = TestDir::new();
    let report = dir.feed("map build -o empty.tamis --allow-empty", "\n").text(0);
    assert!(
        report.starts_with("keys        0, 0 duplicates dropped, 1 blank line skipped\nvalues      0 "),
        "{report}"
    );
    assert!(report.contains("\nlayers      none: no keys\n"), "{report}");
    assert!(report.ends_with("fpr         0 % (no keys)\n"), "{report}");
    assert_eq!(dir.feed("map get empty.tamis", "a\n").text(1), "");
    let message = dir.feed("map get empty.tamis --integers", "1\n").complaint();
    assert!(message.starts_with("empty.tamis: the keys of "), "{message}");
    dir.run("inspect empty.tamis").text(0);
    assert_eq!(dir.run("inspect empty.tamis --json").json(0)["bits_per_key"], json!(null));
    dir.run("map verify empty.tamis").text(0);
    dir.feed("map verify empty.tamis --pairs -", "a\tb\n").text(1);

    let same: String = (0..5000).map(|i| format!("{i}\tyes\n")).collect();
    let report = dir.feed("map build --unchecked -o one.tamis", &same).text(0);
    for line in ["values      1 (bytes)\n", "layers      none: all keys have the same value\n", "; entropy 0\n"] {
        assert!(report.contains(line), "{report}");
    }
    assert!(dir.read("one.tamis").len() < 200);
    assert_eq!(dir.feed("map get one.tamis", "17\nanything\n").text(0), "17\tyes\nanything\tyes\n");
    dir.feed("map build -o one.tamis --fpr 1e-5", &same).text(0);
    assert_eq!(dir.feed("map get one.tamis", "17\nanything\n").text(0), "17\tyes\n");
    dir.feed("map build -o one.tamis --values numbers", "a\t7\nb\t7\n").text(0);
    assert_eq!(dir.feed("map get one.tamis", "b\n").text(0), "b\t7\n");
}

#[test]
fn alphabets() {
    let dir = TestDir::new();
    dir.put("digits", "1\n2\n\n3\n");
    dir.put("colours.gz", gzip(b"red\nblue\n"));
    dir.put("pairs", "a\t1\nb\t2\n");
    dir.put("nobody", "a\t1\n\n\t2\n");
    dir.put("typed.jsonl", "{\"k\":\"a\",\"v\":1}\n{\"k\":\"b\",\"v\":2}\n");
    dir.run("map build pairs -o m.tamis --alphabet digits").text(0);
    dir.run("map build pairs -o m.tamis --alphabet digits --values numbers").text(0);
    dir.run("map build typed.jsonl --column k --value-column v -o m.tamis --alphabet digits").text(0);
    dir.run("map build pairs -o m.tamis --alphabet -").complaint();
    dir.feed("map build pairs -o m.tamis --alphabet -", "1\n2").text(0);
    dir.feed("map build -o m.tamis --allow-empty --alphabet digits", "").text(0);
    fs::remove_file(dir.path("m.tamis")).unwrap();
    for (line, expected) in [
        (
            "pairs --alphabet colours.gz",
            "pairs: line 1: value \"1\": not declared; expected one of the 2 declared values",
        ),
        (
            "pairs --alphabet colours.gz --values numbers",
            "colours.gz: line 1: the value \"red\" is not an integer; expected 0 to 2^64 - 1",
        ),
        (
            "typed.jsonl --column k --value-column v --alphabet colours.gz",
            "colours.gz: line 1: the value \"red\" is not an integer; expected 0 to 2^64 - 1",
        ),
        ("pairs --alphabet missing", "missing: no such file; expected a file of keys"),
        ("nobody", "nobody: line 3: the key is empty; expected key<TAB>value"),
    ] {
        assert_eq!(dir.error(&format!("map build -o m.tamis {line}")), expected);
    }
}

#[test]
fn pairs_that_are_wrong() {
    let dir = TestDir::new();
    let named = "--column k --value-column v";
    let numbers = "is not an integer; expected 0 to 2^64 - 1";
    for (name, text, options, expected) in [
        (
            "twice",
            "a\t1\nb\t1\n\na\t2\n",
            "",
            "twice line 1 and twice line 4: 1 key has two values; expected one value for each key",
        ),
        ("cut.tsv", "a\t1\nb 2\n", "", "cut.tsv: line 2: \"b 2\" has no tab; expected key<TAB>value"),
        ("cut", "a\t1\0b\0", "-0", "cut: record 2: \"b\" has no tab; expected key<TAB>value"),
        ("words", "a\t1\n\nb\ttwo\n", "--values numbers", &format!("words: line 3: the value \"two\" {numbers}")),
        ("words", "a\t-1\n", "--width 8", &format!("words: line 1: the value \"-1\" {numbers}")),
        (
            "large",
            "a\t255\nb\t256\n",
            "--width 8",
            "large: line 2: value 256: does not fit in 8 bits; expected at most 255",
        ),
        (
            "mixed.jsonl",
            "{\"k\":1,\"v\":1}\n{\"k\":2,\"v\":\"x\"}\n",
            named,
            "mixed.jsonl: line 2: the value is text, but those before are numbers; expected one kind, or --values text",
        ),
        (
            "mixed.jsonl",
            "{\"k\":1,\"v\":\"x\"}\n{\"k\":2,\"v\":1}\n",
            named,
            "mixed.jsonl: line 2: the value is a number, but those before are text; expected one kind, or --values text",
        ),
        (
            "mixed.jsonl",
            "{\"k\":1,\"v\":1}\n{\"k\":\"2\",\"v\":1}\n",
            named,
            "mixed.jsonl: line 2: found text; expected integers as before (the first at mixed.jsonl line 1)",
        ),
        (
            "null.jsonl",
            "{\"k\":null}\n{\"k\":\"a\",\"v\":1}\n{\"k\":\"b\",\"v\":null}\n",
            named,
            "null.jsonl: line 3: the key has no value; expected text or an integer in the column \"v\"",
        ),
        (
            "odd.jsonl",
            "{\"k\":1,\"v\":1.5}\n",
            named,
            "odd.jsonl: line 1: the value is a fraction or a number beyond 64 bits; expected text or an integer",
        ),
        (
            "odd.jsonl",
            "{\"k\":1}\n",
            named,
            "odd.jsonl: line 1: the key has no value; expected text or an integer in the column \"v\"",
        ),
        ("t.csv", "k,x\na,1\n", named, "t.csv: no column \"v\"; expected one of \"k\", \"x\""),
        ("t.csv", "k,v\na,1\n", "", "t.csv: a table; expected --column NAME and --value-column NAME"),
        (
            "t.csv",
            "k,v\na,1\n",
            "--column k --value-column k",
            "--value-column: the same column as --column; expected one of keys and one of values",
        ),
        (
            "t",
            "a\t1\n",
            named,
            "t: text lines have no column of values; expected a .csv, .tsv, .jsonl or .parquet file, or --format",
        ),
        ("words", "x\t1\n", "--integers", "words: line 1: \"x\" is not an integer; expected -2^63 to 2^64 - 1"),
    ] {
        dir.put(name, text);
        assert_eq!(dir.error(&format!("map build {name} {options} -o out.tamis")), expected);
    }
    // Many, in two files, and equal pairs among them.
    dir.put("one", (0..50).map(|i| format!("k{i}\t{i}\n")).collect::<String>());
    dir.put("two", (0..50).map(|i| format!("k{i}\t{}\n", if i % 2 == 0 { i } else { 0 })).collect::<String>());
    let places: Vec<String> = (0..8).map(|i| format!("one line {0} and two line {0}", 2 * i + 2)).collect();
    let expected = format!("{}, ..: 25 keys have two values; expected one value for each key", places.join(", "));
    assert_eq!(dir.error("map build one two -o out.tamis"), expected);
    let message = dir.feed("map build -o out.tamis", "a\t1\na\t2\n").complaint();
    assert!(message.starts_with("standard input line 1 and standard input line 2: 1 key has two values;"), "{message}");
}

#[test]
fn words_of_the_command_line() {
    let dir = TestDir::new();
    dir.put("pairs", "a\t1\n");
    for (option, expected) in [
        ("--kind bloom", "expected auto, compressed, ribbon or fuse"),
        ("--width 65", "out of range; expected 1 to 64"),
        ("--values words", "expected auto, numbers or text"),
        ("--layout auto", "expected compact or local"),
    ] {
        let message = dir.error(&format!("map build pairs -o out.tamis {option}"));
        assert!(message.starts_with(&format!("{option}: ")) && message.ends_with(expected), "{message}");
    }
    for (line, expected) in [
        ("map get missing", "missing: no such file; expected a map file"),
        ("map verify missing", "missing: no such file; expected a map file"),
        ("map get tmp", "tmp: is a directory; expected a map file"),
    ] {
        assert_eq!(dir.error(line), expected, "{line}");
    }
    for (command, options) in [
        (
            "build",
            "--output --kind --fpr --unchecked --width --alphabet --values --effort --layout --seed --secret --memory --disk --tmp --threads --column --value-column --integers --json",
        ),
        ("get", "--all --count --json --column --integers"),
        ("verify", "--pairs --column --value-column --json"),
    ] {
        let help = dir.run(&format!("map {command} --help")).text(0);
        options.split(' ').for_each(|option| assert!(help.contains(option), "{command} {option}"));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

#[test]
fn files_of_the_other_kind() {
    let dir = TestDir::new();
    dir.put("pairs", "1\ta\n2\tb\n");
    dir.put("keys", "1\n");
    dir.run("map build pairs -o map.tamis").text(0);
    dir.run("map build pairs --integers -o numbers.tamis").text(0);
    dir.run("build keys -o filter.tamis").text(0);
    let map = "map.tamis: holds a map; expected a filter; use tamis map";
    for line in ["query map.tamis keys", "verify map.tamis --keys keys"] {
        assert_eq!(dir.error(line), map);
    }
    let filter = "filter.tamis: holds a filter; expected a map; use tamis query or tamis verify";
    for line in ["map get filter.tamis keys", "map verify filter.tamis"] {
        assert_eq!(dir.error(line), filter);
    }
    dir.put("words", "one\n");
    let text = "words: line 1: \"one\" is not an integer; expected -2^63 to 2^64 - 1";
    assert_eq!(dir.error("map get numbers.tamis words"), text);
    dir.run("map verify numbers.tamis --pairs pairs").text(0);
    let integers = "--integers: the keys of map.tamis are text; expected text, without this option";
    assert_eq!(dir.error("map get map.tamis --integers keys"), integers);
    // Damage in the payload is found, unless it is not looked for.
    dir.put("many", colours());
    dir.run("map build many -o bad.tamis").text(0);
    let mut bytes = dir.read("bad.tamis");
    bytes[200] ^= 1;
    dir.put("bad.tamis", &bytes);
    dir.run("inspect bad.tamis --no-verify").text(0);
    assert_eq!(
        dir.run("map verify bad.tamis").failure(3),
        "bad.tamis: damaged: the checksum of the payload does not match; copy or build the file again"
    );
    bytes.truncate(100);
    dir.put("bad.tamis", &bytes);
    assert!(dir.run("map get bad.tamis keys").failure(3).starts_with("bad.tamis: truncated or damaged: "));
}

#[test]
fn a_key_that_is_typed_is_answered_before_the_next() {
    let dir = TestDir::new();
    dir.put("pairs", colours());
    dir.run("map build pairs -o m.tamis --fpr 1e-5").text(0);
    let mut child = dir.command("map get m.tamis").stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (send, answers) = mpsc::channel();
    let reader =
        std::thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| send.send(line.unwrap())));
    for (key, answer) in [("key1", "key1\tred"), ("key10", "key10\tblue")] {
        stdin.write_all(format!("no\n{key}\n").as_bytes()).unwrap();
        assert_eq!(answers.recv_timeout(Duration::from_secs(10)).as_deref(), Ok(answer));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap().unwrap();
    // What was read before a bad line is answered.
    dir.feed("map build --integers -o n.tamis", "1\ta\n2\tb\n").text(0);
    let run = dir.feed("map get --integers n.tamis", "1\n2\nx\n1\n");
    assert_eq!((run.code, &run.out[..]), (Some(2), &b"1\ta\n2\tb\n"[..]));
    assert_eq!(run.err, "tamis: standard input: line 3: \"x\" is not an integer; expected -2^63 to 2^64 - 1\n");
}

/// The example of docs/guide/maps.md.
#[test]
fn hosts_by_their_last_label() {
    let dir = TestDir::new();
    let hosts = fs::read_to_string(quickstart("deny.txt")).unwrap();
    let pairs: String = hosts.lines().map(|host| format!("{host}\t{}\n", host.rsplit('.').next().unwrap())).collect();
    let report = dir.feed("map build -o ends.tamis --json", &pairs).json(0);
    assert_eq!((report["keys"].as_u64(), report["kind"].as_str()), (Some(93_514), Some("compressed")));
    assert!(report["overhead"].as_f64() < Some(0.1), "{report}");
    assert_eq!(dir.run(&format!("map get ends.tamis {}", quickstart("deny.txt"))).text(0), pairs);
}
