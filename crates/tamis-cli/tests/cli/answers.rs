//! command lines -> what they print and how they end: build, query, inspect, verify.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::test_dir::{TestDir, quickstart};

/// `d.tamis` holds the deny list.
fn with_deny() -> TestDir {
    let dir = TestDir::new();
    dir.run(&format!("build {} -o d.tamis", quickstart("deny.txt"))).text(0);
    dir
}

/// One changed byte loses no member in silence: not in a filter, a map or an index.
#[test]
fn damaged_files_are_not_queried() {
    let dir = TestDir::new();
    let lines = |line: fn(u32) -> String| (0..500).map(line).collect::<String>();
    dir.feed("build -o f.tamis", lines(|i| format!("key{i}\n"))).text(0);
    dir.feed("map build -o m.tamis", lines(|i| format!("key{i}\t{}\n", i % 7))).text(0);
    dir.feed("sets build --kind bloom --pairs -o s.tamis", lines(|i| format!("key{i}\tset{}\n", i % 7))).text(0);
    for (file, queries) in [
        ("f.tamis", ["query", "inspect", "verify"]),
        ("m.tamis", ["map get", "map inspect", "map verify"]),
        ("s.tamis", ["sets query", "sets inspect", "sets verify"]),
    ] {
        let mut bytes = dir.read(file);
        bytes[60] ^= 1;
        dir.put(file, bytes);
        for query in queries {
            let complaint = dir.run(&format!("{query} {file}")).complaint();
            assert!(complaint.starts_with(&format!("{file}: ")) && complaint.contains("checksum"), "{complaint}");
        }
        dir.run(&format!("{} --no-verify {file}", queries[1])).text(0);
    }
}

#[test]
fn the_round_of_all_commands() {
    let dir = TestDir::new();
    let (deny, allow) = (quickstart("deny.txt"), quickstart("allow.txt"));
    let report = dir.run(&format!("build {deny} -o d.tamis")).text(0);
    let size = fs::metadata(dir.path("d.tamis")).unwrap().len();
    let bits = size as f64 * 8.0 / 93514.0;
    let start = [
        "keys        93,514, 0 duplicates dropped".to_string(),
        "structure   ribbon: ".into(),
        "file        d.tamis".into(),
        format!(
            "size        {},{:03} bytes, {bits:.3} bits per key; the information bound is 6.6",
            size / 1000,
            size % 1000
        ),
        "fpr         0.99".into(),
    ];
    assert_eq!(report.lines().count(), start.len(), "{report}");
    for (line, start) in report.lines().zip(start) {
        assert!(line.starts_with(&start), "{line:?} {start:?}");
    }
    assert!(report.contains(" % above it\n"), "{report}");
    assert_eq!(dir.names(), ["d.tamis", "tmp"]);

    // Every key, in order.
    let found = dir.run(&format!("query d.tamis {deny}")).text(0);
    assert_eq!(found, fs::read_to_string(&deny).unwrap());

    // Strangers: 30,335 at 1 % are 303 on average, with a standard deviation of 17.
    let strangers: HashSet<String> = fs::read_to_string(&allow).unwrap().lines().map(str::to_string).collect();
    let let_through = dir.run(&format!("query d.tamis {allow}")).text(0);
    assert!(let_through.lines().all(|line| strangers.contains(line)));
    assert!((200..=406).contains(&let_through.lines().count()), "{}", let_through.lines().count());

    let verified = dir.run(&format!("verify d.tamis --keys {deny}")).text(0);
    assert_eq!(verified, "checksum    right\nkeys        93,514 checked, 0 missing\n");
    assert_eq!(dir.run("verify d.tamis").text(0), "checksum    right\n");

    let inspected = dir.run("inspect d.tamis").text(0);
    let first_words: Vec<_> = inspected.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(first_words, ["file", "keys", "hash", "size", "fpr", "shards", "layer"], "{inspected}");
    assert!(inspected.contains("93,514 (bytes)") && inspected.contains("seed 0\n"), "{inspected}");
}

#[test]
fn verify_shows_what_is_missing() {
    let dir = with_deny();
    dir.put("some.txt", "0.ackzany.com\n\nnot-there.example\n0.ackzany.com\nnor-this.example\n");
    let answer = dir.run("verify d.tamis --keys some.txt").text(1);
    let expected = "checksum    right\nkeys        4 checked, 2 missing\n\
                    missing     some.txt line 3: not-there.example\nmissing     some.txt line 5: nor-this.example\n";
    assert_eq!(answer, expected);
    let answer = dir.run("verify d.tamis --json --keys some.txt").json(1);
    let examples = json!([
        { "file": "some.txt", "unit": "line", "position": 3, "key": "not-there.example", "partition": null },
        { "file": "some.txt", "unit": "line", "position": 5, "key": "nor-this.example", "partition": null },
    ]);
    assert_eq!(answer, json!({ "checksum": true, "checked": 4, "missing": 2, "examples": examples, "excluded": null }));
    let answer = dir.run("verify d.tamis --json").json(0);
    assert_eq!(answer, json!({ "checksum": true, "checked": 0, "missing": 0, "examples": [], "excluded": null }));
    dir.feed("verify d.tamis --keys -", "0.ackzany.com\n").text(0);
}

/// `no` is not in the filter of these few keys: seed 0 gives the same answer everywhere.
const MIXED: &str = "one\nno\ntwo\nstranger\n";

fn small() -> TestDir {
    let dir = TestDir::new();
    assert!(dir.feed("build -o s.tamis --fpr 1e-9", "one\ntwo\nthree\n").text(0).starts_with("keys        3,"));
    dir.put("mixed.txt", MIXED);
    dir
}

#[test]
fn query_prints_like_grep() {
    let dir = small();
    assert_eq!(dir.run("query s.tamis mixed.txt").text(0), "one\ntwo\n");
    assert_eq!(dir.run("query -v s.tamis mixed.txt").text(0), "no\nstranger\n");
    assert_eq!(dir.run("query -c s.tamis mixed.txt").text(0), "2\n");
    assert_eq!(dir.run("query -c s.tamis mixed.txt mixed.txt").text(0), "4\n");
    assert_eq!(dir.run("query -v -c s.tamis mixed.txt").text(0), "2\n");
    assert_eq!(dir.run("query --tsv s.tamis mixed.txt").text(0), "one\t1\nno\t0\ntwo\t1\nstranger\t0\n");
    let lines = "{\"found\":true,\"key\":\"one\"}\n{\"found\":false,\"key\":\"no\"}\n\
                 {\"found\":true,\"key\":\"two\"}\n{\"found\":false,\"key\":\"stranger\"}\n";
    assert_eq!(dir.run("query --json s.tamis mixed.txt").text(0), lines);
    let counts = dir.feed("query --json -c s.tamis", format!("\n{MIXED}")).json(0);
    assert_eq!(counts, json!({ "keys": 4, "found": 2, "blank": 1 }));
}

#[test]
fn query_ends_like_grep() {
    let dir = small();
    // Standard input, by no name and by its name.
    assert_eq!(dir.feed("query s.tamis", "two\n").text(0), "two\n");
    assert_eq!(dir.feed("query s.tamis -", "two").text(0), "two\n");
    assert_eq!(dir.feed("query s.tamis - mixed.txt", "three").text(0), "three\none\ntwo\n");
    for (line, input, code, output) in [
        ("query s.tamis", "no\n", 1, ""),
        ("query s.tamis", "", 1, ""),
        ("query -c s.tamis", "no\n", 1, "0\n"),
        ("query -v s.tamis", "two\n", 1, ""),
        ("query -v s.tamis", "no\n", 0, "no\n"),
        ("query --tsv s.tamis", "no\n", 1, "no\t0\n"),
    ] {
        assert_eq!(dir.feed(line, input).text(code), output, "{line} {input:?}");
    }
    // Full batches and nothing after them.
    for n in [8191, 8192, 8193, 16384] {
        assert_eq!(dir.feed("query -c s.tamis", "two\n".repeat(n)).text(0), format!("{n}\n"));
    }
    // What was read before a bad line is answered.
    dir.feed("build --integers -o n.tamis", "1\n2\n").text(0);
    let run = dir.feed("query --integers n.tamis", "1\n2\nx\n1\n");
    assert_eq!((run.code, &run.out[..]), (Some(2), &b"1\n2\n"[..]));
    assert_eq!(run.err, "tamis: standard input: line 3: \"x\" is not a number from 0 to 2^64 - 1\n");
}

#[test]
fn a_key_that_is_typed_is_answered_before_the_next() {
    let dir = small();
    let mut child = dir.command("query s.tamis").stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (send, answers) = mpsc::channel();
    let reader =
        std::thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| send.send(line.unwrap())));
    for key in ["one", "three", "two"] {
        stdin.write_all(format!("no\n{key}\n").as_bytes()).unwrap();
        assert_eq!(answers.recv_timeout(Duration::from_secs(10)).as_deref(), Ok(key));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap().unwrap();
}

#[test]
fn a_closed_pipe_is_no_error_of_a_query() {
    let dir = with_deny();
    let mut child = dir.command(&format!("query d.tamis {}", quickstart("deny.txt"))).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(first, "0-ilxrc-w285.p9bckp.sbs\n");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn reports_in_json_have_their_fields() {
    let dir = TestDir::new();
    dir.put("keys.txt", "a\nb\n\nc\nb\n\n\n");
    let built = dir.run("build keys.txt -o k.tamis --json --seed 7").json(0);
    let fields = |value: &Value| {
        let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    let common = "bits_per_key blank bound_bits_per_key bytes duplicates excluded file fpr groups key_type keys \
                  layers overhead partitions shards workload";
    assert_eq!(fields(&built), common);
    assert_eq!((&built["partitions"], &built["groups"]), (&json!(null), &json!(null)));
    let (size, rate) = (dir.read("k.tamis").len() as f64, built["fpr"].as_f64().unwrap());
    assert_eq!((&built["file"], &built["key_type"], &built["shards"]), (&json!("k.tamis"), &json!("bytes"), &json!(1)));
    assert_eq!((&built["keys"], &built["duplicates"], &built["blank"]), (&json!(3), &json!(1), &json!(3)));
    assert_eq!(built["bytes"].as_f64(), Some(size));
    let near = |name: &str, expected: f64| {
        let found = built[name].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{name}: {found} {expected}");
    };
    assert!(rate > 0.005 && rate <= 0.01, "{rate}");
    near("bits_per_key", size * 8.0 / 3.0);
    near("bound_bits_per_key", -rate.log2());
    near("overhead", size * 8.0 / 3.0 / -rate.log2() - 1.0);
    let layer = &built["layers"][0];
    assert_eq!(fields(layer), "bytes details group role structure");
    assert_eq!((&layer["role"], &layer["structure"]), (&json!("positive"), &json!("ribbon")));

    let inspected = dir.run("inspect k.tamis --json").json(0);
    let expected = "bits_per_key bound_bits_per_key bytes excluded file fpr groups hash key_type keys layers overhead \
                    partitions seed shards version";
    assert_eq!(fields(&inspected), expected);
    assert_eq!((&inspected["hash"], &inspected["seed"]), (&json!("xxh3-128"), &json!(7)));
    assert_eq!(inspected["version"], json!(1));
    for name in ["bits_per_key", "bound_bits_per_key", "bytes", "key_type", "keys", "layers", "overhead", "fpr"] {
        assert_eq!(inspected[name], built[name], "{name}");
    }
}

/// docs/json.md shows commands behind `$` and what they print. `TAMIS_BLESS=1 cargo test` writes what they print now.
#[cfg(unix)]
#[test]
fn the_document_shows_what_is_printed() {
    let dir = TestDir::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::os::unix::fs::symlink(format!("{root}/data"), dir.path("data")).unwrap();
    let path = format!("{root}/docs/json.md");
    let document = fs::read_to_string(&path).unwrap();
    let mut printed = document.clone();
    let blocks = document.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<&str> = blocks.flat_map(|block| block.split("$ ").skip(1)).collect();
    for example in &examples {
        let command = example.lines().next().unwrap();
        dir.put("example.sh", format!("tamis() {{ '{}' \"$@\"; }}\n{command}\n", env!("CARGO_BIN_EXE_tamis")));
        let run = crate::test_dir::Run::from(dir.around("sh", "example.sh").output().unwrap());
        assert_eq!(run.err, "", "{command}");
        printed = printed.replace(example, &format!("{command}\n{}", String::from_utf8(run.out).unwrap()));
    }
    assert_eq!(examples.len(), 38);
    if std::env::var_os("TAMIS_BLESS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    assert!(printed == document, "docs/json.md differs from what is printed; expected:\n{printed}");
}

#[test]
fn help_names_every_option_and_fits_a_terminal() {
    let dir = TestDir::new();
    for (command, options) in [
        (
            "build",
            "--output --fpr --bits-per-key --exclude --exact --excluded-fpr --on-conflict --kind --effort --seed --secret --memory --disk --tmp --threads --json --partition-column",
        ),
        ("query", "--no-verify --invert --count --tsv --json --partition --partition-column"),
        ("inspect", "--no-verify --json"),
        ("verify", "--keys --exclude --json --partition-column"),
    ] {
        let help = dir.run(&format!("{command} --help")).text(0);
        options.split(' ').for_each(|option| assert!(help.contains(option), "{command} {option}"));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(dir.run("--help").text(0).contains(&format!("\n  {command} ")));
    }
    assert!(dir.run("--version").text(0).starts_with("tamis 0."));
    let run = dir.run("");
    assert_eq!((run.code, run.out.len()), (Some(2), 0));
    assert!(run.err.contains("Usage: tamis <COMMAND>"), "{}", run.err);
}
