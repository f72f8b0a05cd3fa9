//! command lines -> what they print and how they end: build, query, inspect, verify.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::test_dir::{TestDir, numbers, quickstart};

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
        ("m.tamis", ["map get", "inspect", "map verify"]),
        ("s.tamis", ["sets query", "inspect", "sets verify"]),
    ] {
        let mut bytes = dir.read(file);
        bytes[60] ^= 1;
        dir.put(file, bytes);
        for query in queries {
            let complaint = dir.run(&format!("{query} {file}")).failure(3);
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
        "layer 0     positive: ribbon, ".into(),
        "file        d.tamis".into(),
        format!("size        {},{:03} bytes, {bits:.3} bits per key; lower bound 6.6", size / 1000, size % 1000),
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
    assert_eq!(verified, "checksum    right\nkeys        93,514 checked, 0 false negatives\n");
    assert_eq!(dir.run("verify d.tamis").text(0), "checksum    right\n");

    let inspected = dir.run("inspect d.tamis").text(0);
    let first_words: Vec<_> = inspected.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(first_words, ["file", "identity", "keys", "hash", "size", "fpr", "shards", "layer"], "{inspected}");
    assert!(inspected.contains("93,514 (bytes)") && inspected.contains("seed 0\n"), "{inspected}");
}

#[test]
fn verify_shows_what_is_missing() {
    let dir = with_deny();
    dir.put("some.txt", "0.ackzany.com\n\nnot-there.example\n0.ackzany.com\nnor-this.example\n");
    let answer = dir.run("verify d.tamis --keys some.txt").text(1);
    let expected = "checksum    right\nkeys        4 checked, 2 false negatives\n\
                    rejected    some.txt line 3: not-there.example\nrejected    some.txt line 5: nor-this.example\n";
    assert_eq!(answer, expected);
    let answer = dir.run("verify d.tamis --json --keys some.txt").json(1);
    let example = |position: u64, key: &str| {
        json!({
            "file": "some.txt", "unit": "line", "position": position, "key": key, "partition": null, "match": false,
        })
    };
    let report = |checked: u64, examples: &[Value]| {
        json!({
            "checksum": true, "checked": checked, "false_negatives": examples.len(), "excluded_checked": 0,
            "false_positives": 0, "conflicts": 0, "delisted_min": 0, "delisted_max": 0, "examples": examples,
        })
    };
    assert_eq!(answer, report(4, &[example(3, "not-there.example"), example(5, "nor-this.example")]));
    let answer = dir.run("verify d.tamis --json").json(0);
    assert_eq!(answer, report(0, &[]));
    dir.feed("verify d.tamis --keys -", "0.ackzany.com\n").text(0);
}

/// `no` is not in the filter of these few keys: seed 0 gives the same answer everywhere.
const MIXED: &str = "one\nno\ntwo\nother\n";

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
    assert_eq!(dir.run("query -v s.tamis mixed.txt").text(0), "no\nother\n");
    assert_eq!(dir.run("query -c s.tamis mixed.txt").text(0), "2\n");
    assert_eq!(dir.run("query -c s.tamis mixed.txt mixed.txt").text(0), "4\n");
    assert_eq!(dir.run("query -v -c s.tamis mixed.txt").text(0), "2\n");
    assert_eq!(dir.run("query --tsv s.tamis mixed.txt").text(0), "one\t1\nno\t0\ntwo\t1\nother\t0\n");
    let answers = [("one", true), ("no", false), ("two", true), ("other", false)];
    let objects = answers.map(|(key, matched)| json!({ "key": key, "match": matched, "partition": null }));
    assert_eq!(dir.run("query --json s.tamis mixed.txt").objects(0), objects);
    let counts = dir.feed("query --json -c s.tamis", format!("\n{MIXED}")).json(0);
    assert_eq!(counts, json!({ "keys": 4, "matches": 2, "blank": 1 }));
}

#[test]
fn query_has_the_manners_of_grep() {
    let dir = small();
    dir.put("t.csv", "id,name\r\n1,\"one\"\r\n2,other\r\n3,\" Two\"\r\n");
    dir.put("t.jsonl", "{\"name\": \"two\",  \"n\": 1}\n\n{\"name\":\"no\"}\n");
    for (line, code, output) in [
        ("query s.tamis --key one", 0, "one\n"),
        ("query s.tamis --key no --key two --key -x", 0, "two\n"),
        ("query s.tamis --key no", 1, ""),
        ("query s.tamis -c --key one --key two", 0, "2\n"),
        ("query s.tamis --lowercase --key ONE --tsv", 0, "one\t1\n"),
        ("query s.tamis -q mixed.txt", 0, ""),
        ("query s.tamis -q --key no", 1, ""),
        ("query s.tamis -q -v --key no", 0, ""),
        ("query s.tamis -n mixed.txt", 0, "1:one\n3:two\n"),
        ("query s.tamis -n -v mixed.txt", 0, "2:no\n4:other\n"),
        (
            "query s.tamis -n mixed.txt mixed.txt",
            0,
            "mixed.txt:1:one\nmixed.txt:3:two\nmixed.txt:1:one\nmixed.txt:3:two\n",
        ),
        ("query s.tamis --rows t.csv --column name", 0, "1,\"one\"\n"),
        ("query s.tamis --rows -n --trim --lowercase t.csv --column name", 0, "2:1,\"one\"\n4:3,\" Two\"\n"),
        ("query s.tamis --rows t.jsonl --column name", 0, "{\"name\": \"two\",  \"n\": 1}\n"),
    ] {
        assert_eq!(dir.run(line).text(code), output, "{line}");
    }
    assert_eq!(dir.feed("query s.tamis --rows --trim", " one \r\n").text(0), " one \r\n");
    // The filter from standard input, as inspect and verify take it.
    let filter = dir.read("s.tamis");
    assert_eq!(dir.feed("query - mixed.txt", &filter).text(0), "one\ntwo\n");
    assert_eq!(dir.feed("verify - --keys mixed.txt", &filter).text(1).lines().count(), 4);
    assert_eq!(dir.feed("inspect - --json", &filter).json(0)["file"], Value::Null);
    let mut bytes = filter.clone();
    bytes[60] ^= 1;
    assert!(dir.feed("query - mixed.txt", &bytes).failure(3).starts_with("standard input: "));
    // The first match ends it: what comes after would be an error.
    let long = format!("one\n{}\nx", "no\n".repeat(300_000));
    dir.feed("build --integers -o n.tamis", "1\n").text(0);
    assert_eq!(dir.feed("query --integers -q n.tamis", format!("1\n{}x\n", "2\n".repeat(300_000))).text(0), "");
    assert_eq!(dir.feed("query -q s.tamis", long).text(0), "");
}

/// A key that is typed is answered with an exit code at once.
#[test]
fn quiet_does_not_wait_for_more() {
    let dir = small();
    let mut child = dir.command("query -q s.tamis").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"no\none\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn reports_are_quiet_and_small_sets_have_no_shares() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\ntwo\n");
    dir.put("pairs.tsv", "a\t1\n");
    for line in ["build keys.txt", "map build pairs.tsv", "sets build keys.txt"] {
        assert_eq!(dir.run(&format!("{line} -o q.tamis --quiet")).text(0), "");
        let run = dir.run(&format!("{line} -o - -q"));
        assert_eq!((run.code, run.err.as_str(), run.out), (Some(0), "", dir.read("q.tamis")), "{line}");
        let report = dir.run(&format!("{line} -o q.tamis")).text(0);
        assert!(!report.contains("above it"), "{report}");
    }
    for rate in ["0.001", "1e-3", "0.1%"] {
        dir.run(&format!("build keys.txt --fpr {rate} -o {rate}")).text(0);
        assert_eq!(dir.read(rate), dir.read("0.001"));
    }
}

#[test]
fn inspect_shows_any_form() {
    let dir = TestDir::new();
    let sequence = tamis::sequence((0..2000u64).map(|i| i % 3)).finish().unwrap();
    dir.put("sequence", sequence.as_bytes());
    let golden = |name: &str| fs::read(format!("{}/../tamis/tests/golden-{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    dir.put("adaptive", golden("adaptive/adaptive_quotient.tamis"));
    dir.put("patch", golden("patches/list.tamis"));
    dir.put("learned", golden("learned/strict.tamis"));
    dir.feed("build -o filter -q", "a\n").text(0);
    dir.feed("map build -o map -q", "a\t1\n").text(0);
    dir.feed("sets build --pairs -o sets -q", "a\tx\n").text(0);
    for form in ["filter", "map", "sets", "sequence", "adaptive", "patch", "learned"] {
        let text = dir.run(&format!("inspect {form}")).text(0);
        assert!(text.starts_with(&format!("file        {form}: {form}, format version 1\n")), "{text}");
        let object: Value = serde_json::from_str(&dir.run(&format!("inspect {form} --json")).text(0)).unwrap();
        assert_eq!((&object["form"], &object["command"]), (&json!(form), &json!("inspect")));
        assert_eq!(object["bytes"], dir.read(form).len());
        // The payload is compared with its sums, unless that is too slow.
        let mut damaged = dir.read(form);
        damaged[16] ^= 1;
        dir.put("damaged", damaged);
        assert_eq!(dir.run("inspect damaged").code, Some(3), "{form}");
        if form == "adaptive" {
            assert_eq!(dir.run("inspect damaged --no-verify").text(0).lines().count(), text.lines().count());
        }
    }
    // A base and its patches are a filter.
    dir.put("chain", golden("patches/chain.tamis"));
    let text = dir.run("inspect chain").text(0);
    assert!(text.starts_with("file        chain: filter,") && text.contains("\npatch 2 "), "{text}");
    let expected = "checksum    right\ndelisted    0 to about 205 earlier members in neither list still match\n";
    assert_eq!(dir.run("verify chain").text(0), expected);
}

/// Pages and completions have every command.
#[test]
fn pages_and_completions() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = dir.run(&format!("completions {shell}")).text(0);
        assert!(text.contains("no-verify") && text.contains("freeze"), "{shell}");
    }
    let page = dir.run("man").text(0);
    assert!(page.contains(".TH tamis 1") && page.contains("Exit codes"), "{page}");
    dir.run("man -o tmp").text(0);
    for name in ["tamis.1", "tamis-build.1", "tamis-map-get.1", "tamis-sets-freeze.1"] {
        assert!(dir.path("tmp").join(name).exists(), "{name}");
    }
}

/// Help and manual pages use the words of the documents.
#[test]
fn help_has_no_retired_words() {
    let dir = TestDir::new();
    dir.run("man -o tmp").text(0);
    let words = "stranger strangers unseen whoever nobody somebody shall told anew ask asks asked wanted wish beside label labels";
    let words: Vec<&str> = words.split(' ').collect();
    for entry in fs::read_dir(dir.path("tmp")).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap().to_lowercase();
        let retired = page.split(|c: char| !c.is_alphabetic()).find(|word| words.contains(word));
        assert_eq!((retired, page.contains("let through")), (None, false), "{page}");
    }
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
    assert_eq!(run.err, "tamis: standard input: line 3: \"x\" is not an integer; expected -2^63 to 2^64 - 1\n");
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
    let common = "bits_per_key blank bound_bits_per_key bytes conflicts duplicates excluded excluded_blank \
                  excluded_duplicates excluded_estimated file fpr groups key_type keys layers overhead partitions \
                  shards workload";
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
    let expected = "bits_per_key bound_bits_per_key bytes excluded excluded_estimated file fpr groups hash identity \
                    kept_bytes key_type keys layers may_change metadata overhead partitions secret seed shards version";
    assert_eq!(fields(&inspected), expected);
    assert_eq!((&inspected["hash"], &inspected["seed"]), (&json!("xxh3-128"), &json!(7)));
    assert_eq!(inspected["version"], json!(1));
    for name in ["bits_per_key", "bound_bits_per_key", "bytes", "key_type", "keys", "layers", "overhead", "fpr"] {
        assert_eq!(inspected[name], built[name], "{name}");
    }
}

/// A field has the same type wherever it is, or is null.
fn one_type_per_field(value: &Value, types: &mut BTreeMap<String, &'static str>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let type_name = match value {
            Value::Null => continue,
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() => "count",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        assert_eq!(*types.entry(name.clone()).or_insert(type_name), type_name, "{name}");
        one_type_per_field(value, types);
        value.as_array().into_iter().flatten().for_each(|item| one_type_per_field(item, types));
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
    assert_eq!(examples.len(), 55);
    let mut types = BTreeMap::new();
    for line in printed.lines().filter(|line| line.starts_with('{')) {
        one_type_per_field(&serde_json::from_str(line).unwrap(), &mut types);
    }
    if std::env::var_os("TAMIS_BLESS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    assert!(printed == document, "docs/json.md differs from what is printed; expected:\n{printed}");
}

/// Commands that print every form of object, with what is in none of the repository's files before them.
const PRINTED: &[&str] = &[
    "build keys.txt -o f.tamis",
    "build t.csv --column key --partition-column part -o parts.tamis",
    "build keys.txt --workload log.tsv -o w.tamis",
    "build keys.txt --exclude others.txt --exact -o base.tamis",
    "build keys.txt --exclude others.txt --changing -o changing.tamis",
    "build names.txt --exclude words.txt --exact --learn -o learned.tamis",
    "build hosts.txt -o hosts.tamis",
    "build keys.txt --exclude keys.txt -o none.tamis",
    "plan keys.txt",
    "plan keys.txt --html page.html",
    "query f.tamis keys.txt",
    "query parts.tamis t.csv --column key --partition-column part",
    "query -c f.tamis keys.txt",
    "diff base.tamis --keys less.txt --exclude more.txt -o one.patch",
    "patch base.tamis one.patch -o patched.tamis",
    "verify f.tamis --keys others.txt",
    "add changing.tamis some.txt",
    "exclude changing.tamis never.txt",
    "remove changing.tamis some.txt",
    "map build pairs.tsv -o map.tamis",
    "map get map.tamis --key a",
    "map get -c map.tamis --key a",
    "map verify map.tamis --pairs wrong.tsv",
    "sets build --pairs sets.tsv --kind bloom -o sets.tamis",
    "sets build s.fa --kmer 5 -o kmers.tamis",
    "sets query sets.tamis --key a",
    "sets query kmers.tamis s.fa --threshold 0.5",
    "sets query -c sets.tamis --key a",
    "sets add sets.tamis names.txt",
    "sets verify sets.tamis others.txt",
    "sets freeze sets.tamis names.txt -o frozen.tamis",
    "sets merge sets.tamis frozen.tamis -o merged.tamis",
    "sets remove sets.tamis names",
    "slice plan keys.txt --shard-bytes 4096 --slices 2 -o plan.json",
    "slice build plan.json keys.txt --slice 0 -o slices",
    "slice build plan.json keys.txt --slice 1 -o slices",
    "slice join slices -o joined.tamis",
    "slice join slices --manifest",
    "inspect f.tamis",
    "inspect parts.tamis",
    "inspect changing.tamis",
    "inspect learned.tamis",
    "inspect one.patch",
    "inspect patched.tamis",
    "inspect map.tamis",
    "inspect sets.tamis --names",
    "inspect kmers.tamis",
    "inspect slices",
    "inspect slices/slice-00000.tamis",
    "inspect golden-maps/sequence.tamis",
    "inspect golden-adaptive/broom_small.tamis",
    "inspect golden-learned/sandwich.tamis",
    "inspect none",
    "inspect keys.txt",
];

/// Every name of a field, wherever it is.
fn field_names(value: &Value, names: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        names.insert(name.clone());
        field_names(value, names);
    }
    value.as_array().into_iter().flatten().for_each(|item| field_names(item, names));
}

/// docs/json.md has every command that prints JSON, every form, and every field: of commands, as the program itself lists them.
#[cfg(unix)]
#[test]
fn the_document_has_every_form_and_field() {
    let dir = TestDir::new();
    let lines = |line: &dyn Fn(u64) -> String| (0..3000).map(line).collect::<String>();
    for (name, text) in [
        ("keys.txt", numbers(0..3000)),
        ("less.txt", numbers(2..3000)),
        ("others.txt", numbers(3000..6000)),
        ("more.txt", numbers(3000..6000) + "0\n1\n"),
        ("some.txt", "a\n".into()),
        ("never.txt", "b\n".into()),
        ("hosts.txt", "0.0.0.0 a\n".into()),
        ("t.csv", "key,part\na,x\nb,y\n".into()),
        ("log.tsv", "a\t3\nb\t4\n".into()),
        ("pairs.tsv", "a\t3\nb\t4\n".into()),
        ("wrong.tsv", "a\t4\n".into()),
        ("sets.tsv", "a\tx\nb\ty,x\n".into()),
        ("s.fa", ">s\nACGTACGT\n".into()),
        ("names.txt", lines(&|i| format!("login-{i}\n"))),
        ("words.txt", lines(&|i| format!("{i}.shop\n"))),
    ] {
        dir.put(name, text);
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tamis/tests");
    for folder in ["golden-maps", "golden-adaptive", "golden-learned"] {
        std::os::unix::fs::symlink(format!("{golden}/{folder}"), dir.path(folder)).unwrap();
    }
    fs::create_dir(dir.path("slices")).unwrap();
    let (mut commands, mut forms, mut names) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in PRINTED {
        let run = dir.run(&format!("{line} --json"));
        let printed = String::from_utf8(run.out).unwrap() + &run.err;
        assert!(!printed.is_empty(), "{line}");
        for line in printed.lines() {
            let object: Value = serde_json::from_str(line).unwrap();
            commands.insert(object["command"].as_str().unwrap().to_string());
            forms.extend(object["form"].as_str().map(str::to_string));
            field_names(&object, &mut names);
        }
    }
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md")).unwrap();
    let row = document.lines().find(|line| line.starts_with("| `form` | ")).unwrap();
    assert_eq!(forms, row.split('`').skip(3).step_by(2).map(str::to_string).collect());
    let missing: Vec<_> = names.iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/json.md does not have the fields {missing:?}");
    // Commands with the option, by the manual.
    fs::create_dir(dir.path("manual")).unwrap();
    dir.run("man -o manual").text(0);
    let mut all = BTreeSet::new();
    for page in fs::read_dir(dir.path("manual")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = page.file_stem().unwrap().to_str().unwrap().strip_prefix("tamis-");
        let text = fs::read_to_string(&page).unwrap().replace('\\', "");
        all.extend(name.filter(|_| text.contains("--json")).map(|name| name.replace('-', " ")));
    }
    assert_eq!(commands, all, "printed here, and all");
    let headings: BTreeSet<&str> =
        document.lines().filter_map(|line| line.strip_prefix("## ")).flat_map(|heading| heading.split(", ")).collect();
    let missing: Vec<_> = all.iter().filter(|name| !headings.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/json.md has no heading for {missing:?}");
}

#[test]
fn help_names_every_option_and_fits_a_terminal() {
    let dir = TestDir::new();
    for (command, options) in [
        (
            "build",
            "--output --quiet --fpr --bits-per-key --exclude --exact --excluded-fpr --on-conflict --kind --delta --layers --effort --seed --secret --memory --disk --tmp --threads --json --partition-column",
        ),
        (
            "query",
            "--patch --no-verify --key --quiet --line-number --rows --invert --count --tsv --json --partition --partition-column",
        ),
        (
            "diff",
            "--patch --keys --exclude --old-keys --fpr --max-fpr --output --json --quiet --partition-column --memory",
        ),
        ("patch", "--output --json --quiet"),
        ("inspect", "--no-verify --names --json"),
        ("verify", "--keys --exclude --on-conflict --json --partition-column"),
    ] {
        let help = dir.run(&format!("{command} --help")).text(0);
        options.split(' ').for_each(|option| assert!(help.contains(option), "{command} {option}"));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(dir.run("--help").text(0).contains(&format!("\n  {command} ")));
    }
    assert!(dir.run("--version").text(0).starts_with("tamis 0."));
    let run = dir.run("");
    assert_eq!((run.code, run.out.len()), (Some(2), 0));
    assert!(run.err.contains("Usage: tamis [OPTIONS] <COMMAND>"), "{}", run.err);
}
