//! keys of many sets -> an index: what the commands print, how they end, and what they refuse.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::formats::{gzip, parquet_table};
use crate::test_dir::{TestDir, quickstart};

fn first_words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

/// Three sets; `red` and `blue` share 1000 keys, `none` has none.
fn colours(dir: &TestDir) {
    fs::create_dir(dir.path("d")).unwrap();
    let keys = |range: std::ops::Range<u32>| range.map(|i| format!("key{i}\n")).collect::<String>();
    dir.put("d/red.txt", keys(0..2000));
    dir.put("d/blue.csv.gz", gzip(keys(1000..3000).as_bytes()));
    dir.put("d/none", "\n");
    dir.put("d/.hidden", "no\n");
}

/// What a query must print for these keys.
fn expected(range: std::ops::Range<u32>) -> String {
    let sets = |i: u32| match i {
        0..1000 => "red",
        1000..2000 => "blue,red",
        2000..3000 => "blue",
        _ => "",
    };
    range.map(|i| format!("key{i}\t{}\n", sets(i))).collect()
}

fn keys(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("key{i}\n")).collect()
}

/// Whether every set that should be named is, and few others are: no more false sets than this.
#[track_caller]
fn holds(found: &str, wanted: &str, most: usize) {
    let mut wrong = 0;
    assert_eq!(found.lines().count(), wanted.lines().count());
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        let parse = |line: &str| -> (String, BTreeSet<String>) {
            let (key, sets) = line.split_once('\t').unwrap();
            (key.into(), sets.split(',').filter(|set| !set.is_empty()).map(String::from).collect())
        };
        let ((key, found), (expected, wanted)) = (parse(found), parse(wanted));
        assert_eq!(key, expected);
        assert!(found.is_superset(&wanted), "{key}: {found:?} {wanted:?}");
        wrong += found.len() - wanted.len();
    }
    assert!(wrong <= most, "{wrong} false sets");
}

#[test]
fn the_round_of_all_commands() {
    for kind in ["auto", "frozen", "bloom", "cuckoo"] {
        let dir = TestDir::new();
        colours(&dir);
        let report = dir.run(&format!("sets build d -o i.tamis --kind {kind}")).text(0);
        let words = ["sets", "keys", "pairs", "segment", "file", "size", "false"];
        assert_eq!(first_words(&report), words, "{report}");
        let size = fs::metadata(dir.path("i.tamis")).unwrap().len();
        let (pair, key) = (size as f64 * 8.0 / 4000.0, size as f64 * 8.0 / 3000.0);
        for line in [
            "sets        3, 1 without keys\n".to_string(),
            "keys        3,000, 1 blank line skipped\n".into(),
            "pairs       4,000, 0 duplicates dropped\n".into(),
            "file        i.tamis\n".into(),
            format!("bytes, {pair:.3} bits per pair, {key:.3} bits per key\n"),
        ] {
            assert!(report.contains(&line), "{line:?} {report}");
        }
        assert_eq!(dir.names(), ["d", "i.tamis", "tmp"]);

        // All keys and as many strangers.
        let found = dir.feed("sets query i.tamis", keys(0..6000)).text(0);
        if kind == "auto" || kind == "frozen" {
            assert_eq!(found.lines().take(3000).collect::<Vec<_>>(), expected(0..3000).lines().collect::<Vec<_>>());
        }
        holds(&found, &expected(0..6000), 600);
        // Without a set, and the exit code of grep.
        assert_eq!(dir.feed("sets query i.tamis --matches", "").text(1), "");

        let verified = dir.run("sets verify i.tamis d").text(0);
        assert_eq!(verified, "checksum    right\npairs       4,000 checked, 0 false negatives\n");
        assert_eq!(dir.run("sets verify i.tamis").text(0), "checksum    right\n");

        let inspected = dir.run("inspect i.tamis --names").text(0);
        let head = ["file", "identity", "sets", "keys", "pairs", "hash", "size", "false", "segment"];
        assert_eq!(first_words(&inspected)[..9], head, "{inspected}");
        for line in ["set 0       blue: 2,000 keys\n", "set 1       none: 0 keys\n", "set 2       red: 2,000 keys\n"] {
            assert!(inspected.contains(line), "{inspected}");
        }
        // The parts are all of the file.
        let bytes = |line: &str| {
            let word = line.split(" bytes").next().unwrap().rsplit(' ').next().unwrap();
            word.replace(',', "").parse::<u64>().unwrap()
        };
        let parts = inspected.lines().filter(|line| line.starts_with("   ") || line.starts_with("rest"));
        assert_eq!(parts.map(bytes).sum::<u64>(), size, "{inspected}");

        // More keys, a new set; then without one of them.
        dir.put("green.txt", keys(2500..3500));
        let added = dir.run("sets add i.tamis green.txt red=d/red.txt").text(0);
        // What a cuckoo sketch finds may be another's, so that it is kept once more.
        let counts = if kind == "cuckoo" { "3,000 pairs, 0" } else { "1,000 pairs, 2,000" };
        let head = format!("sets        1 new, 4 in all\nadded       {counts} skipped: they match already\n");
        assert!(added.starts_with(&head), "{added}");
        let found = dir.feed("sets query i.tamis", keys(2500..3500)).text(0);
        let wanted = |i: u32| if i < 3000 { "blue,green" } else { "green" };
        holds(&found, &(2500..3500).map(|i| format!("key{i}\t{}\n", wanted(i))).collect::<String>(), 300);
        dir.run("sets verify i.tamis d green.txt").text(0);
        let removed = dir.run("sets remove i.tamis red none").text(0);
        assert!(removed.starts_with("removed     2 sets, 2 left\nfile        i.tamis\nsize        "), "{removed}");
        let found = dir.feed("sets query i.tamis", keys(0..1100)).text(0);
        assert!(!found.contains("red") && found.ends_with("key1099\tblue\n"), "{found}");
        dir.run("sets verify i.tamis d").text(1);

        // A frozen one of it answers alike.
        dir.put("keys", keys(0..3500));
        let frozen = dir.run("sets freeze i.tamis keys -o f.tamis").text(0);
        assert!(frozen.starts_with("queries     3,500, "), "{frozen}");
        let [one, two] =
            ["i.tamis", "f.tamis"].map(|name| dir.run(&format!("sets query {name} keys --matches")).text(0));
        let two: BTreeSet<&str> = two.lines().collect();
        assert!(one.lines().all(|line| two.contains(line)), "{kind}");
    }
}

#[test]
fn pairs_of_every_sort() {
    let dir = TestDir::new();
    dir.put("a.tsv", "ann\tred,blue\r\n\nbob\tred\nann\tgreen\n");
    dir.put("b", "eve\tblue\nann\tred\n");
    let report = dir.run("sets build --pairs a.tsv b -o i.tamis").text(0);
    assert!(
        report.starts_with("sets        3\nkeys        3, 1 blank line skipped\npairs       5, 1 duplicate dropped\n"),
        "{report}"
    );
    let all = "ann\tblue,green,red\nbob\tred\neve\tblue\n";
    assert_eq!(dir.feed("sets query i.tamis", "ann\nbob\neve\n").text(0), all);
    assert_eq!(dir.feed("sets query i.tamis --ids", "ann\n").text(0), "ann\t0,1,2\n");
    assert_eq!(dir.feed("sets query i.tamis -0", "ann\0bob\0").text(0), "ann\tblue,green,red\0bob\tred\0");
    // From standard input, from tables, with clean-up: the same bytes.
    let same = |line: &str, input: &str| {
        dir.feed(&format!("sets build {line} -o j.tamis"), input).text(0);
        assert_eq!(dir.read("j.tamis"), dir.read("i.tamis"), "{line}");
    };
    same("--pairs", "ann\tred,blue,green\nbob\tred\neve\tblue\n");
    same("--pairs --trim --lowercase -", " ANN \t red , blue\t\n ann\tgreen\nBob\tred\nEve\tblue");
    dir.put("t.csv", "who,what\nann,\"red,blue\"\nann,green\nbob,red\neve,blue\n");
    dir.put("t.jsonl", "{\"who\":\"ann\",\"what\":\"red,blue,green\"}\n{\"who\":\"bob\",\"what\":\"red\"}\n{\"who\":\"eve\",\"what\":\"blue\"}\n");
    same("--pairs t.csv --column who --set-column what", "");
    same("--pairs t.jsonl --column who --set-column what", "");
    dir.put("hosts.parquet", parquet_table(&["a.example", "b.example"]));
    dir.run("sets build --pairs hosts.parquet --column host --set-column id -o p.tamis").text(0);
    assert_eq!(dir.feed("sets query p.tamis", "b.example\n").text(0), "b.example\t2\n");
    dir.run("sets build hosts.parquet --column id -o p.tamis").text(0);
    assert_eq!(dir.feed("sets query p.tamis --integers", "2\n").text(0), "2\thosts\n");
    assert_eq!(dir.feed("sets query p.tamis", "2\n").text(0), "2\thosts\n");
    assert_eq!(
        dir.feed("sets query i.tamis --integers", "2\n").complaint(),
        "--integers: the keys of i.tamis are text; expected text, without this option"
    );
    dir.run("sets verify i.tamis --pairs a.tsv b").text(0);
    let wrong = dir.feed("sets verify i.tamis --pairs", "ann\tred\n\nbob\tred,blue\ntom\tblack\n").text(1);
    assert_eq!(
        wrong,
        "checksum    right\npairs       4 checked, 2 false negatives\nrejected    standard input line 4: tom in \"black\"\n\
         rejected    standard input line 3: bob in \"blue\"\n"
    );
    let none = dir.feed("sets verify i.tamis --allow-empty --json violet=-", "").json(1);
    assert_eq!((&none["missing_sets"], &none["false_negatives"]), (&json!(["violet"]), &json!(0)));
}

#[test]
fn all_keys_together() {
    let dir = TestDir::new();
    dir.feed("sets build --pairs -o i.tamis", "ann\tred,blue\nbob\tred\neve\tblue,green\n").text(0);
    for (options, input, code, expected) in [
        ("--union", "ann\nbob\n", 0, "blue\nred\n"),
        ("--intersection", "ann\nbob\n", 0, "red\n"),
        ("--intersection", "ann\nbob\neve\n", 1, ""),
        ("--union", "", 1, ""),
        ("--intersection", "", 1, ""),
        ("--tally", "ann\nbob\neve\nann\n", 0, "blue\t3\ngreen\t1\nred\t3\n"),
        ("--tally --ids", "eve\n", 0, "0\t1\n1\t1\n"),
    ] {
        assert_eq!(dir.feed(&format!("sets query i.tamis {options}"), input).text(code), expected, "{options}");
    }
    let red = json!({ "set": "red", "id": 2, "matches": 2 });
    let union = dir.feed("sets query i.tamis --union --json", "ann\nbob\n").json(0);
    let list = [json!({ "set": "blue", "id": 0, "matches": 1 }), red.clone()];
    assert_eq!(union, json!({ "keys": 2, "matches": 2, "set_list": list }));
    let all = dir.feed("sets query i.tamis --intersection --json", "ann\nbob\n").json(0);
    assert_eq!(all, json!({ "keys": 2, "matches": 2, "set_list": [red] }));
}

/// Equal pairs make equal bytes, in whatever order they come; the order can be kept.
#[test]
fn sets_are_numbered_by_name() {
    let dir = TestDir::new();
    let lines: Vec<String> = (0..500).map(|i| format!("key{}\tset{}\n", i % 300, i * 7 % 12)).collect();
    dir.put("pairs", lines.concat());
    dir.put("turned", lines.iter().rev().map(String::as_str).collect::<String>());
    let ids = |file: &str| -> Vec<String> {
        let names = dir.run(&format!("inspect {file} --json --names")).json(0)["names"].clone();
        names.as_array().unwrap().iter().map(|entry| entry["set"].as_str().unwrap().to_string()).collect()
    };
    for kind in ["frozen", "bloom", "cuckoo"] {
        let build = |list: &str, options: &str| {
            dir.run(&format!("sets build --pairs {list} -o i.tamis --kind {kind} {options}")).text(0);
            dir.run("sets verify i.tamis --pairs pairs").text(0);
            (dir.read("i.tamis"), ids("i.tamis"))
        };
        let (first, names) = build("pairs", "");
        assert!(names.is_sorted() && names.len() == 12, "{names:?}");
        assert!(build("turned", "").0 == first && build("turned", "--memory 4M").0 == first, "{kind}");
        let [(pairs, forward), (turned, backward)] = ["pairs", "turned"].map(|list| build(list, "--keep-order"));
        assert!(
            pairs != turned && forward[..3] == ["set0", "set7", "set2"] && backward[0] == "set1",
            "{forward:?} {backward:?}"
        );
    }
    // New sets come after those that are there, by name.
    dir.put("zoo", "key1\n");
    dir.put("aunt", "key2\n");
    dir.run("sets add i.tamis zoo aunt -o after.tamis").text(0);
    assert_eq!(ids("after.tamis")[12..], ["aunt", "zoo"]);
}

#[test]
fn reports_in_json() {
    let dir = TestDir::new();
    dir.put("pairs", "ann\tred,blue\n\nbob\tred\nann\tred\n");
    let built = dir.run("sets build --pairs pairs -o i.tamis --json --seed 7").json(0);
    for (name, value) in [
        ("file", json!("i.tamis")),
        ("sets", json!(2)),
        ("empty", json!(0)),
        ("keys", json!(2)),
        ("pairs", json!(3)),
        ("duplicates", json!(1)),
        ("blank", json!(1)),
        ("sequences", json!(null)),
        ("kmer", json!(null)),
        ("key_type", json!("bytes")),
        ("bytes", json!(dir.read("i.tamis").len())),
        ("member_false_sets", json!(0.0)),
    ] {
        assert_eq!(built[name], value, "{name}");
    }
    assert_eq!(built["segments"][0]["kind"], json!("frozen"));
    let inspected = dir.run("inspect i.tamis --json").json(0);
    assert_eq!((&inspected["seed"], &inspected["hash"]), (&json!(7), &json!("xxh3-128")));
    assert_eq!((&inspected["names"], &inspected["segments"][0]["pairs"]), (&json!(null), &json!(3)));
    let names = dir.run("inspect i.tamis --json --names").json(0);
    assert_eq!(names["names"][1], json!({ "id": 1, "set": "red", "keys": 2 }));
    let found = dir.feed("sets query i.tamis --json", "ann\n").json(0);
    assert_eq!(found, json!({ "key": "ann", "set_list": [{ "set": "blue", "id": 0 }, { "set": "red", "id": 1 }] }));
    let verified = dir.run("sets verify i.tamis --pairs pairs --json").json(0);
    let clean = json!({ "checksum": true, "checked": 4, "false_negatives": 0, "missing_sets": [], "examples": [] });
    assert_eq!(verified, clean);
    dir.put("green", "eve\n");
    let added = dir.run("sets add i.tamis green --json").json(0);
    assert_eq!((&added["new_sets"], &added["added"], &added["skipped"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(added["segments"].as_array().map(Vec::len), Some(2));
    let removed = dir.run("sets remove i.tamis green --json").json(0);
    assert_eq!((&removed["removed"], &removed["sets"]), (&json!(1), &json!(2)));
    dir.run("sets build green --seed 7 -o g.tamis").text(0);
    let merged = dir.run("sets merge i.tamis g.tamis -o m.tamis --json").json(0);
    assert_eq!((&merged["indexes"], &merged["sets"]), (&json!(2), &json!(3)));
    assert_eq!(merged["segments"].as_array().map(Vec::len), Some(3));
    let frozen = dir.feed("sets freeze m.tamis -o f.tamis --json", "ann\ntom\n").json(0);
    assert_eq!((&frozen["queries"], &frozen["keys"], &frozen["pairs"]), (&json!(2), &json!(1), &json!(2)));
    // To standard output: the index there, the report beside it.
    let run = dir.run("sets build --pairs pairs -o - --seed 7 --json");
    assert_eq!(
        (run.code, run.out),
        (Some(0), {
            dir.run("sets build --pairs pairs -o i.tamis --seed 7").text(0);
            dir.read("i.tamis")
        })
    );
    assert!(run.err.contains("\"file\":null"));
}

#[test]
fn one_set_no_keys_and_a_key_in_every_set() {
    let dir = TestDir::new();
    dir.put("one", "a\nb\n");
    dir.run("sets build one -o i.tamis").text(0);
    assert_eq!(dir.feed("sets query i.tamis", "a\n").text(0), "a\tone\n");
    dir.put("nothing", "");
    for kind in ["auto", "bloom", "cuckoo", "frozen"] {
        let report = dir.run(&format!("sets build nothing -o e.tamis --allow-empty --kind {kind}")).text(0);
        assert!(report.starts_with("sets        1, 1 without keys\nkeys        0\npairs       0, "), "{report}");
        assert_eq!(dir.feed("sets query e.tamis", "a\n").text(1), "a\t\n");
        dir.run("inspect e.tamis --names").text(0);
        dir.run("sets verify e.tamis nothing --allow-empty").text(0);
        // An index without keys takes any.
        dir.feed("sets add e.tamis --pairs --integers", "17\tnumbers\n").text(0);
        assert_eq!(dir.feed("sets query e.tamis --integers", "17\n").text(0), "17\tnumbers\n");
    }
    // Thousands of tiny sets, and a key that is in all of them.
    let sets: Vec<String> = (0..5000).map(|i| format!("s{i:04}")).collect();
    let mut pairs = format!("all\t{}\n", sets.join(","));
    for (i, set) in sets.iter().enumerate() {
        pairs += &format!("k{i}\t{set}\nk{}\t{set}\n", i / 2);
    }
    dir.put("pairs", &pairs);
    for kind in ["frozen", "bloom", "cuckoo"] {
        let report = dir.run(&format!("sets build --pairs pairs -o i.tamis --kind {kind}")).text(0);
        assert!(report.starts_with("sets        5,000\nkeys        5,001\n"), "{report}");
        dir.run("sets verify i.tamis --pairs pairs").text(0);
        let all = dir.feed("sets query i.tamis", "all\n").text(0);
        assert_eq!(all, format!("all\t{}\n", sets.join(",")), "{kind}");
        let found = dir.feed("sets query i.tamis", "k4999\nstranger\n").text(0);
        holds(&found, "k4999\ts4999\nstranger\t\n", 20);
    }
}

#[test]
fn counts_of_pairs() {
    let dir = TestDir::new();
    dir.put("pairs", "ann\tred:3,blue\nann\tred:2\nbob\tred:999\n");
    let report = dir.run("sets build --pairs pairs --counts -o i.tamis").text(0);
    assert!(report.contains("\npairs       3, "), "{report}");
    let found = dir.feed("sets query i.tamis --counts", "ann\nbob\n").text(0);
    assert_eq!(found, "ann\tblue:1,red:5\nbob\tred:255\n");
    let found = dir.feed("sets query i.tamis --counts --json", "ann\n").json(0);
    let red = json!({ "set": "red", "id": 1, "count": 5 });
    assert_eq!(found["set_list"], json!([{ "set": "blue", "id": 0, "count": 1 }, red]));
    dir.run("sets verify i.tamis --pairs pairs --counts").text(0);
    // An index without counts has none to print.
    dir.put("uncounted", "ann\tred\n");
    dir.run("sets build --pairs uncounted -o plain.tamis").text(0);
    assert_eq!(
        dir.error("sets query plain.tamis --counts --key ann"),
        "--counts: plain.tamis has no counts; expected an index built with --counts"
    );
    // Lines that come again are counted too.
    dir.put("words", "a\nb\na\n");
    dir.run("sets build words --counts -o w.tamis").text(0);
    assert_eq!(dir.feed("sets query w.tamis --counts", "a\nb\n").text(0), "a\twords:2\nb\twords:1\n");
    assert!(
        dir.error("sets build words --counts --kind frozen -o x.tamis")
            .contains("--counts: not possible with --kind frozen")
    );
}

/// Letters of a genome, the same for the same seed.
fn genome(seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut letter = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(b"ACGT"[(state >> 62) as usize])
    };
    (0..length).map(|_| letter()).collect()
}

fn reversed(sequence: &str) -> String {
    sequence.chars().rev().map(|c| char::from(b"TGCA"["ACGT".find(c).unwrap()])).collect()
}

fn folded(sequence: &str) -> String {
    sequence.as_bytes().chunks(70).map(|line| format!("{}\n", str::from_utf8(line).unwrap())).collect()
}

#[test]
fn sequences_by_their_kmers() {
    let dir = TestDir::new();
    let [a, b] = [1, 2].map(|seed| genome(seed, 5000));
    dir.put("a.fa", format!(">a one\n{}>short\nACGT\n", folded(&a)));
    dir.put("b.fasta.gz", gzip(format!(">b\n{}", folded(&b.to_lowercase())).as_bytes()));
    dir.put("c.fq", format!("@c\n{}NN{}\n+\n{}\n", &a[..100], &b[..100], "I".repeat(202)));
    // So few false sets that none is met here.
    let few = "--false-sets 0.00001 --member-false-sets 0.00001";
    for (kind, few) in [("frozen", "--false-sets 0.00001"), ("bloom", few), ("cuckoo", few)] {
        let report =
            dir.run(&format!("sets build a.fa b.fasta.gz c.fq --kmer 31 -o i.tamis --kind {kind} {few}")).text(0);
        // 4970 of each genome, 70 and 70 of the read, whose other 32 hold an N.
        let line = "sequences   4, 1 shorter than 31; 10,080 k-mers read, 32 skipped for letters other than ACGT\n";
        assert!(report.contains(line), "{report}");
        assert!(report.contains("\nkeys        9,940\npairs       10,080, 0 duplicates dropped\n"), "{report}");
        dir.run("sets verify i.tamis a.fa b.fasta.gz c.fq").text(0);
        // A read of either strand, one with an error, one of both, none.
        let mut wrong = a[1000..1200].to_string();
        wrong.replace_range(10..11, if &wrong[10..11] == "A" { "C" } else { "A" });
        let reads = format!(
            ">plus x\n{}\n>minus\n{}\n>wrong\n{wrong}\n>both\n{}{}\n>none\n{}\n>short\nACG\n",
            &a[2000..2200],
            reversed(&b[3000..3200]),
            &a[500..600],
            &b[500..600],
            genome(9, 200)
        );
        dir.put("reads.fa", &reads);
        let found = dir.run("sets query i.tamis reads.fa").text(0);
        assert_eq!(found, "plus\ta:170/170\nminus\tb:170/170\nwrong\ta:159/170\nboth\t\nnone\t\nshort\t\n", "{kind}");
        let found = dir.run("sets query i.tamis reads.fa --threshold 0.95 --matches").text(0);
        assert_eq!(found, "plus\ta:170/170\nminus\tb:170/170\n");
        let found = dir.feed("sets query i.tamis --threshold 0.4 --matches --ids", &reads).text(0);
        // Where the two meet the next letter may be the right one by chance.
        assert!(found.contains("\nboth\t0:7") && found.contains("/170,1:7"), "{found}");
        let counts = dir.run("sets query i.tamis c.fq --counts").text(0);
        assert_eq!(counts, "c\ta:70/140,b:70/140,c:140/140\n");
        let tally = dir.run("sets query i.tamis c.fq --tally").text(0);
        assert_eq!(tally, "a\t70\nb\t70\nc\t140\n");
        let json = dir.run("sets query i.tamis c.fq --json").json(0);
        assert_eq!(
            json,
            json!({ "sequence": "c", "kmers": 140, "matches": 140, "set_list": [{ "set": "c", "id": 2, "matches": 140 }] })
        );
        assert_eq!(dir.feed("sets query i.tamis", format!(">x\n{}\n", genome(9, 200))).text(1), "x\t\n");
        // More of it, and frozen.
        dir.put("d.fa", format!(">d\n{}\n", genome(4, 300)));
        let added = dir.run("sets add i.tamis d.fa").text(0);
        assert!(added.contains("added       270 pairs, 0 skipped"), "{added}");
        dir.run("sets verify i.tamis a.fa b.fasta.gz c.fq d.fa").text(0);
        dir.run("sets freeze i.tamis a.fa d.fa -o f.tamis").text(0);
        dir.run("sets verify f.tamis a.fa d.fa").text(0);
        assert_eq!(dir.run("inspect f.tamis --json").json(0)["kmer"], json!(31));
        let missing = dir.run("sets verify f.tamis b.fasta.gz").text(1);
        assert!(missing.contains(" false negatives\nrejected    "), "{missing}");
        assert!(missing.lines().last().unwrap().ends_with(" in \"b\""), "{missing}");
    }
}

#[test]
fn sequences_that_are_wrong() {
    let dir = TestDir::new();
    dir.put("a.fa", ">a\nACGTACGTACGT\n");
    dir.put("keys.txt", "x\ny\n");
    dir.put("bad.fa", ">a\nACGT\nAC=T\n");
    dir.put("cut.fq", "@a\nACGT\n+\nIIII\n@b\nACGT\n+\nII");
    let packed = gzip(format!(">a\n{}\n", genome(1, 5000)).as_bytes());
    dir.put("cut.fa.gz", &packed[..packed.len() / 2]);
    dir.run("sets build a.fa --kmer 5 -o k5.tamis").text(0);
    dir.run("sets build keys.txt -o keys.tamis").text(0);
    for (line, expected) in [
        ("build a.fa -o x.tamis", "a.fa: sequences; expected --kmer K, or --format text if its lines are keys"),
        (
            "build a.fa keys.txt -o x.tamis",
            "a.fa: sequences, and keys.txt: keys; expected one kind, sequences with --kmer K",
        ),
        (
            "build a.fa keys.txt --kmer 5 -o x.tamis",
            "keys.txt: line 1: expected '>' or '@', as sequences begin, found \"x\"",
        ),
        ("build bad.fa --kmer 5 -o x.tamis", "bad.fa: line 3: expected letters of a sequence, found \"=T\""),
        ("build cut.fq --kmer 5 -o x.tamis", "cut.fq: ends inside the record of line 5; expected its quality"),
        (
            "build a.fa --kmer 5 --trim -o x.tamis",
            "--trim: not possible with sequences; expected FASTA or FASTQ files without it",
        ),
        (
            "build a.fa --kmer 5 --pairs -o x.tamis",
            "--pairs: not possible with sequences; expected FASTA or FASTQ files without it",
        ),
        (
            "build a.fa --kmer 5 --column x -o x.tamis",
            "--column: not possible with sequences; expected FASTA or FASTQ files without it",
        ),
        ("query k5.tamis keys.txt", "keys.txt: line 1: expected '>' or '@', as sequences begin, found \"x\""),
        (
            "query k5.tamis a.fa --integers",
            "--integers: not possible with sequences; expected FASTA or FASTQ files without it",
        ),
        (
            "query keys.tamis a.fa",
            "a.fa: sequences, and the keys of the index are no k-mers; expected keys, or --format text",
        ),
        (
            "query keys.tamis keys.txt --threshold 0.5",
            "--threshold: the keys of keys.tamis are no k-mers; expected an index of k-mers",
        ),
        ("add keys.tamis a.fa", "a.fa: sequences; expected --kmer K, or --format text if its lines are keys"),
    ] {
        assert_eq!(dir.error(&format!("sets {line}")), expected, "{line}");
    }
    let cut = dir.error("sets build a.fa cut.fa.gz --kmer 5 -o x.tamis");
    assert!(cut.starts_with("cut.fa.gz: line 2: the gzip data ends too early, after "), "{cut}");
    for kmer in ["0", "32", "x"] {
        let message = dir.error(&format!("sets build a.fa --kmer {kmer} -o x.tamis"));
        assert!(message.starts_with(&format!("--kmer {kmer}: ")), "{message}");
    }
}

#[test]
fn inputs_that_are_wrong() {
    let dir = TestDir::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.put("d/a.csv", "x\n");
    dir.put("a.txt", "x\n");
    dir.put("pairs", "x\ta\n");
    for (name, text, options, expected) in [
        ("p", "a\tx\n\nb\n", "--pairs", "p: line 3: \"b\" has no tab; expected key<TAB>set[,set...]"),
        ("p", "a\tx,,y\n", "--pairs", "p: line 1: set name: empty; expected at least one letter"),
        ("p", "a\tx\nb\t\n", "--pairs", "p: line 2: set name: empty; expected at least one letter"),
        ("p", "a\tx:y\n", "--pairs --counts", "p: line 1: the count of \"x:y\" is not a number from 1"),
        ("p", "a\tx:0\n", "--pairs --counts", "p: line 1: the count of \"x:0\" is not a number from 1"),
        ("p", "\tx\n", "--pairs", "p: line 1: the key is empty; expected key<TAB>set[,set...]"),
        ("p.csv", "k,s\na,x\n", "--pairs", "p.csv: a table; expected --column NAME of keys and --set-column NAME"),
        ("p", "1\nx\n", "--integers", "p: line 2: \"x\" is not an integer; expected -2^63 to 2^64 - 1"),
    ] {
        dir.put(name, text);
        assert_eq!(dir.error(&format!("sets build {name} {options} -o x.tamis")), expected);
    }
    dir.put("long", format!("a\t{}\n", "x".repeat(5000)));
    let message = dir.error("sets build long --pairs -o x.tamis");
    assert!(message.starts_with("long: line 1: set name: 5000 bytes"), "{message}");
    let packed = gzip("key\tset\n".repeat(1000).as_bytes());
    dir.put("cut.gz", &packed[..packed.len() - 9]);
    for options in ["", "--pairs"] {
        let message = dir.error(&format!("sets build cut.gz {options} -o x.tamis"));
        assert!(message.starts_with("cut.gz: line ") && message.contains("the gzip data ends too early"), "{message}");
    }
    for (line, expected) in [
        ("sets build -o x.tamis", "FILE: missing; expected one for every set, a directory of them, or --pairs"),
        ("sets build - -o x.tamis", "-: standard input has no name; expected NAME=- or --pairs"),
        (
            "sets build a.txt d -o x.tamis",
            "a.txt and d/a.csv: both are the set \"a\"; expected different names; NAME=FILE gives another",
        ),
        ("sets build tmp -o x.tamis", "tmp: no files in the directory; expected one at least"),
        ("sets build missing -o x.tamis", "missing: no such file; expected a file of keys"),
        ("sets build n=missing -o x.tamis", "missing: no such file; expected a file of keys"),
        ("sets build a.txt -o a.txt", "-o a.txt: is a file of keys; expected another file for the index"),
        ("sets build a.txt -o none/x", "-o none/x: no directory none; expected one that exists"),
        ("sets build a.txt -o x --tmp none", "--tmp none: no such directory; expected one for temporary files"),
        ("sets build pairs --pairs --set-column s -o x", "--column: missing; expected --column <NAME>, see --help"),
        ("sets query missing", "missing: no such file; expected a set index file"),
        ("sets query tmp", "tmp: is a directory; expected a set index file"),
    ] {
        assert_eq!(dir.error(line), expected, "{line}");
    }
    for (option, value) in [
        ("--false-sets", "0"),
        ("--member-false-sets", "-1"),
        ("--bits-per-pair", "x"),
        ("--kind", "fuse"),
        ("--shape", "bloom:words=9,hashes=33"),
        ("--shape", "cuckoo:buckets=9,bits=3"),
    ] {
        let message = dir.error(&format!("sets build a.txt -o x {option} {value}"));
        assert!(message.starts_with(&format!("{option} {value}: ")), "{message}");
    }
}

#[test]
fn a_shape_by_hand_is_built_as_it_is() {
    let dir = TestDir::new();
    dir.put("a.txt", keys(0..1000));
    dir.put("b.txt", keys(500..1500));
    for (shape, details) in [
        ("bloom:words=900,hashes=5", "57600 bits, 5 hashes"),
        ("cuckoo:buckets=700,bits=22", "700 buckets of 4 fingerprints of 22 bits"),
        ("cuckoo:buckets=700,bits=9,repetitions=2,partitions=40", "2 repetitions of 40 partitions"),
    ] {
        dir.run(&format!("sets build a.txt b.txt --shape {shape} -o x.tamis")).text(0);
        let inspected = dir.run("inspect x.tamis").text(0);
        assert!(inspected.contains(details), "{inspected}");
        assert_eq!(dir.run("sets query x.tamis --key key700").text(0), "key700\ta,b\n");
    }
    for other in ["--kind bloom", "--false-sets 1", "--member-false-sets 1", "--bits-per-pair 9", "--no-existence"] {
        let message = dir.error(&format!("sets build a.txt -o y --shape bloom:words=9,hashes=3 {other}"));
        assert!(message.contains("cannot be used with"), "{message}");
    }
    let message = dir.error("sets build a.txt -o y --shape bloom:words=9,hashes=3,repetitions=2,partitions=9000");
    assert!(message.contains("9,000 partitions") || message.contains("9000 partitions"), "{message}");
}

#[test]
fn changes_that_are_refused_change_nothing() {
    let dir = TestDir::new();
    dir.feed("sets build --pairs -o a.tamis", "ann\tred\nbob\tblue\n").text(0);
    dir.feed("sets build --pairs -o seven.tamis --seed 7", "ann\tred\n").text(0);
    dir.feed("sets build --pairs -o keyed.tamis --secret", "ann\tred\n").text(0);
    dir.feed("sets build --pairs --integers -o numbers.tamis", "1\tred\n").text(0);
    for k in [5, 6] {
        dir.feed(&format!("sets build g=- --kmer {k} -o k{k}.tamis"), ">g\nACGTTGCATT\n").text(0);
    }
    dir.feed("sets build --pairs -o tom.tamis", "tom\tred\n").text(0);
    let before = dir.read("a.tamis");
    for (line, expected) in [
        (
            "remove a.tamis red violet black",
            "a.tamis: no set \"black\", \"violet\"; expected names of its sets; nothing was changed",
        ),
        ("add a.tamis missing", "missing: no such file; expected a file of keys"),
    ] {
        assert_eq!(dir.error(&format!("sets {line}")), expected);
    }
    for (others, words) in [
        ("a.tamis seven.tamis", ["a.tamis and seven.tamis: ", "seeds 0 and 7"]),
        ("a.tamis keyed.tamis", ["a.tamis and keyed.tamis: ", "has a secret"]),
        ("a.tamis numbers.tamis", ["a.tamis and numbers.tamis: ", "key types "]),
        ("k5.tamis k6.tamis", ["k5.tamis and k6.tamis: ", "5-mers and 6-mers"]),
        ("numbers.tamis k6.tamis", ["numbers.tamis and k6.tamis: ", "6-mers"]),
        ("a.tamis tom.tamis seven.tamis", ["a.tamis and seven.tamis: ", "0 and 7"]),
    ] {
        let message = dir.error(&format!("sets merge {others} -o m.tamis"));
        assert!(message.starts_with(words[0]) && message.contains(words[1]), "{message}");
    }
    let message = dir.feed("sets add a.tamis --pairs", "eve\tred\ntom\t\n").complaint();
    assert_eq!(message, "standard input: line 2: set name: empty; expected at least one letter");
    let message = dir.feed("sets add a.tamis --pairs --integers", "1\tred\n").complaint();
    assert!(message.starts_with("--integers: the keys of a.tamis are text"), "{message}");
    assert_eq!(dir.read("a.tamis"), before);
    // To a file of its own the old one stays.
    dir.feed("sets add a.tamis --pairs -o b.tamis", "eve\tred\n").text(0);
    dir.run("sets remove a.tamis red -o c.tamis").text(0);
    assert_eq!(dir.read("a.tamis"), before);
    assert_eq!(dir.feed("sets query b.tamis", "eve\n").text(0), "eve\tred\n");
    assert_eq!(dir.feed("sets query c.tamis", "ann\n").text(1), "ann\t\n");
    dir.run("sets merge b.tamis c.tamis -o m.tamis").text(0);
    assert_eq!(dir.feed("sets query m.tamis", "ann\nbob\neve\n").text(0), "ann\tred\nbob\tblue\neve\tred\n");
    // A set that was removed may come again, with other keys.
    dir.feed("sets add c.tamis --pairs", "tom\tred\n").text(0);
    assert_eq!(dir.feed("sets query c.tamis", "ann\ntom\n").text(0), "ann\t\ntom\tred\n");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new();
    fs::create_dir(dir.path("locked")).unwrap();
    dir.feed("sets build --pairs -o locked/i.tamis", "ann\tred\n").text(0);
    let before = dir.read("locked/i.tamis");
    fs::set_permissions(dir.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    // Root writes everywhere.
    if fs::write(dir.path("locked/probe"), "").is_err() {
        for line in ["sets remove locked/i.tamis red", "sets merge locked/i.tamis locked/i.tamis -o locked/m.tamis"] {
            assert!(dir.error(line).starts_with("locked/"), "{line}");
        }
        assert_eq!(dir.read("locked/i.tamis"), before);
    }
    fs::set_permissions(dir.path("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    // A full device is an error for everybody.
    dir.put("pairs", "ann\tred\n");
    for line in ["sets build --pairs pairs -o /dev/full", "sets remove locked/i.tamis red -o /dev/full"] {
        let message = dir.error(line);
        assert!(message.starts_with("/dev/full: "), "{message}");
    }
}

#[test]
fn room_for_more() {
    let dir = TestDir::new();
    dir.put("red", keys(0..1000));
    dir.put("more", keys(1000..2000));
    for kind in ["bloom", "cuckoo"] {
        dir.run(&format!("sets build red -o i.tamis --kind {kind} --capacity 3000")).text(0);
        let size = dir.read("i.tamis").len();
        assert!(dir.run("inspect i.tamis").text(0).contains("capacity for 2,000 more"), "{kind}");
        for name in ["red", "blue"] {
            let added = dir.run(&format!("sets add i.tamis {name}=more")).text(0);
            assert!(added.contains("\nsegments    1\n"), "{added}");
        }
        assert!(dir.read("i.tamis").len() < size + 1000);
        dir.run("sets verify i.tamis red=more").text(0);
        // The room is used up.
        let added = dir.run("sets add i.tamis green=more").text(0);
        assert!(added.contains("\nsegments    2\n"), "{added}");
        let json = dir.run("inspect i.tamis --json").json(0);
        assert_eq!((&json["segments"][0]["kind"], &json["segments"][1]["kind"]), (&json!(kind), &json!(kind)));
        dir.run("sets verify i.tamis green=more red=red blue=more").text(0);
    }
    let message = dir.error("sets build red -o x.tamis --kind frozen --capacity 3000");
    assert!(message.contains("--capacity: not possible with --kind frozen"), "{message}");
}

#[test]
fn files_of_the_other_kind() {
    let dir = TestDir::new();
    dir.put("keys", "1\n");
    dir.put("pairs", "1\ta\n");
    dir.run("build keys -o filter.tamis").text(0);
    dir.run("map build pairs -o map.tamis").text(0);
    dir.run("sets build keys -o sets.tamis").text(0);
    for (line, expected) in [
        ("query sets.tamis keys", "sets.tamis: holds a set index; expected a filter; use tamis sets"),
        ("map get sets.tamis keys", "sets.tamis: holds a set index; expected a map; use tamis sets"),
        ("sets query map.tamis keys", "map.tamis: holds a map; expected a set index; use tamis map"),
        (
            "sets query filter.tamis keys",
            "filter.tamis: holds a filter; expected a set index; use tamis query or tamis verify",
        ),
    ] {
        assert_eq!(dir.error(line), expected);
    }
    // Damage in the payload is found by one command.
    dir.put("many", keys(0..3000));
    dir.run("sets build many -o bad.tamis").text(0);
    let mut bytes = dir.read("bad.tamis");
    bytes[200] ^= 1;
    dir.put("bad.tamis", &bytes);
    assert_eq!(
        dir.run("sets verify bad.tamis").failure(3),
        "bad.tamis: damaged: the checksum of the payload does not match; copy or build the file again"
    );
    bytes.truncate(100);
    dir.put("bad.tamis", &bytes);
    assert!(dir.run("sets query bad.tamis keys").failure(3).starts_with("bad.tamis: truncated or damaged: "));
}

#[test]
fn help_names_every_option_and_fits_a_terminal() {
    let dir = TestDir::new();
    for (command, options) in [
        (
            "build",
            "--output --pairs --column --set-column --keep-order --kmer --kind --false-sets --member-false-sets --bits-per-pair --shape --counts --capacity --no-existence --seed --secret --memory --disk --tmp --threads --trim --lowercase --integers --json",
        ),
        ("query", "--matches --ids --counts --threshold --union --intersection --tally --json --column --integers"),
        ("add", "--output --pairs --column --set-column --memory --threads --json"),
        ("remove", "--output --json"),
        ("merge", "--output --json"),
        ("freeze", "--output --false-sets --column --memory --json"),
        ("verify", "--pairs --column --set-column --counts --json"),
    ] {
        let help = dir.run(&format!("sets {command} --help")).text(0);
        options.split(' ').for_each(|option| assert!(help.contains(option), "{command} {option}"));
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(dir.run("sets --help").text(0).contains(&format!("\n  {command} ")));
    }
}

#[test]
fn a_key_that_is_typed_is_answered_before_the_next() {
    let dir = TestDir::new();
    dir.feed("sets build --pairs -o i.tamis", "ann\tred\nbob\tblue\n").text(0);
    let mut child = dir.command("sets query i.tamis").stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (send, answers) = mpsc::channel();
    let reader =
        std::thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| send.send(line.unwrap())));
    for (key, answer) in [("ann", "ann\tred"), ("bob", "bob\tblue")] {
        stdin.write_all(format!("{key}\n").as_bytes()).unwrap();
        assert_eq!(answers.recv_timeout(Duration::from_secs(10)).as_deref(), Ok(answer));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap().unwrap();
}

/// The example of docs/guide/many-sets.md: words of host names, by the endings they occur under.
#[test]
fn words_by_the_endings_of_their_hosts() {
    let dir = TestDir::new();
    let hosts = ["allow.txt", "deny.txt"].map(|name| fs::read_to_string(quickstart(name)).unwrap()).concat();
    let mut pairs = String::new();
    for host in hosts.lines() {
        let words: Vec<&str> = host.split('.').collect();
        let (end, words) = words.split_last().unwrap();
        words.iter().for_each(|word| pairs += &format!("{word}\t{end}\n"));
    }
    dir.put("pairs", &pairs);
    let report = dir.run("sets build --pairs pairs -o words.tamis").text(0);
    let head =
        "sets        514\nkeys        79,168\npairs       92,343, 109,251 duplicates dropped\nsegment 0   frozen: ";
    assert!(report.starts_with(head), "{report}");
    dir.run("sets verify words.tamis --pairs pairs").text(0);
    let found = dir.feed("sets query words.tamis", "wikipedia\nbing\n").text(0);
    assert_eq!(found, "wikipedia\torg\nbing\tcn,com,net\n");
}

/// Keys that a cuckoo sketch only seems to hold are kept when they are added: they are found after all others were taken out.
#[test]
fn a_pair_that_only_seems_to_be_there_is_added() {
    use tamis::Sets;
    use tamis::sets::{Editor, Kind};
    let dir = TestDir::new();
    let pairs: Vec<(u64, String)> = (0..5000u64).map(|key| (key, format!("s{}", key % 8))).collect();
    let build = tamis::sets(pairs.iter().map(|(key, set)| (*key, set.as_str())));
    let index = build.kind(Kind::Cuckoo).false_sets(0.5).member_false_sets(0.5).capacity(6000).finish().unwrap();
    dir.put("i.tamis", index.as_bytes());
    let seeming = |key: u64| index.find(key).unwrap().first().map(|&set| (key, index.name(set).unwrap().to_string()));
    let more: Vec<(u64, String)> = (1_000_000..1_004_000).filter_map(seeming).collect();
    assert!(more.len() > 100, "{}", more.len());
    dir.put("more.tsv", more.iter().map(|(key, set)| format!("{key}\t{set}\n").repeat(2)).collect::<String>());
    let added = dir.run("sets add --pairs --integers i.tamis more.tsv").text(0);
    assert!(added.contains(&format!("added       {} pairs, 0 skipped: they match already\n", more.len())), "{added}");
    let mut editor = Editor::new(&Sets::open(dir.read("i.tamis")).unwrap()).unwrap();
    for (key, set) in &pairs {
        assert!(editor.remove(*key, editor.id(set).unwrap()).unwrap());
    }
    assert!(more.iter().all(|(key, set)| editor.find(*key).unwrap().contains(&editor.id(set).unwrap())));
}

/// Of two changes at once the second waits, and then changes what the first has left.
#[test]
fn changes_of_one_index_wait_for_each_other() {
    use std::io::{BufRead, BufReader};
    let dir = TestDir::new();
    dir.put("a.txt", keys(0..1000));
    dir.put("b.txt", keys(1000..2000));
    dir.put("c.txt", keys(2000..3000));
    dir.run("sets build a.txt --kind cuckoo --capacity 5000 -o i.tamis").text(0);
    let children: Vec<_> =
        ["b", "c"].map(|set| dir.command(&format!("sets add i.tamis {set}.txt")).spawn().unwrap()).into();
    children.into_iter().for_each(|child| assert!(child.wait_with_output().unwrap().status.success()));
    dir.run("sets verify i.tamis a.txt b.txt c.txt").text(0);

    // Another one holds the lock, and puts another index in place before it lets go.
    dir.run("sets build a.txt -o other.tamis").text(0);
    dir.put("keys", keys(0..3000));
    for line in [
        "sets add i.tamis b.txt",
        "sets remove i.tamis a",
        "sets merge i.tamis other.tamis -o i.tamis",
        "sets freeze i.tamis keys -o i.tamis",
    ] {
        dir.run("sets build a.txt -o i.tamis").text(0);
        let held = std::fs::File::open(dir.path("i.tamis")).unwrap();
        held.lock().unwrap();
        let mut child = dir.command(line).spawn().unwrap();
        let mut message = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut message).unwrap();
        assert_eq!(message, "tamis: i.tamis: waiting for another command that changes it\n", "{line}");
        dir.run("sets build a.txt c.txt -o new.tamis").text(0);
        std::fs::rename(dir.path("new.tamis"), dir.path("i.tamis")).unwrap();
        drop(held);
        assert!(child.wait().unwrap().success(), "{line}");
        dir.run("sets verify i.tamis c.txt").text(0);
    }
    // Where nothing is changed in place nothing waits.
    let held = std::fs::File::open(dir.path("i.tamis")).unwrap();
    held.lock().unwrap();
    dir.run("sets add i.tamis b.txt -o new.tamis").text(0);
    dir.run("sets query i.tamis keys").text(0);
}

/// Twice the same would count every pair twice.
#[test]
fn an_index_is_not_merged_with_itself() {
    let dir = TestDir::new();
    dir.put("a.txt", keys(0..1000));
    dir.put("b.txt", keys(1000..2000));
    for kind in ["bloom", "cuckoo", "frozen"] {
        dir.run(&format!("sets build a.txt --kind {kind} -o a.tamis")).text(0);
        dir.run(&format!("sets build b.txt --kind {kind} -o b.tamis")).text(0);
        dir.run("sets merge a.tamis b.tamis -o ab.tamis").text(0);
        let reason = "merge: a segment is in both indexes, so its pairs would count twice; expected different pairs";
        for (one, two) in [("a", "a"), ("ab", "ab"), ("ab", "b"), ("b", "ab")] {
            let message = dir.error(&format!("sets merge {one}.tamis {two}.tamis -o {one}.tamis"));
            assert_eq!(message, format!("{one}.tamis and {two}.tamis: {reason}"));
        }
        // The same keys in another set are other pairs.
        dir.run(&format!("sets build c=a.txt --kind {kind} -o c.tamis")).text(0);
        dir.run("sets merge a.tamis c.tamis -o ac.tamis").text(0);
        dir.run("sets verify ac.tamis a.txt c=a.txt").text(0);
    }
}

/// A list that has nothing to do with the index would leave an empty one.
#[test]
fn an_index_is_not_frozen_to_nothing() {
    let dir = TestDir::new();
    dir.put("keys", "ann\nbob\n");
    dir.put("others", "zoe\n");
    dir.run("sets build keys -o i.tamis").text(0);
    let before = dir.read("i.tamis");
    let said = dir.error("sets freeze i.tamis others -o i.tamis");
    assert!(said.starts_with("i.tamis: holds none of the 1 keys that are listed; expected the keys"), "{said}");
    assert!(dir.read("i.tamis") == before);
    dir.run("sets freeze i.tamis others --allow-empty -o f.tamis").text(0);
}
