//! --exclude, --exact, --on-conflict -> files that are right about both lists, and what the reports say of them.

use serde_json::json;

use crate::test_dir::{TestDir, numbers, quickstart};

/// The README's example: no well-known domain is taken for a member.
#[test]
fn excluded_keys_never_match() {
    let dir = TestDir::new();
    let (deny, allow) = (quickstart("deny.txt"), quickstart("allow.txt"));
    for more in [
        "",
        "--exact",
        "--fpr 0.3",
        "--bits-per-key 9",
        "--kind chained",
        "--kind chained-fuse",
        "--kind cascade-bloom",
        "--effort smallest --exact",
        "--layout local",
        "--secret",
    ] {
        let report = dir.run(&format!("build {deny} --exclude {allow} -o d.tamis {more}")).text(0);
        let words: Vec<_> = report.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!((words[0], words[1]), ("keys", "excluded"), "{report}");
        let numbers = ["; 30,335 listed, 0 duplicates dropped\n", "; 30,335 listed\n"];
        assert!(numbers.iter().any(|numbers| report.contains(numbers)), "{report}");
        assert!(report.contains("; lower bound "), "{report}");
        let verified = dir.run(&format!("verify d.tamis --keys {deny} --exclude {allow}")).text(0);
        let expected = "checksum    right\nkeys        93,514 checked, 0 false negatives\nexcluded    30,335 checked, 0 false positives\n";
        assert_eq!(verified, expected, "{more}");
        dir.run(&format!("query d.tamis {allow}")).text(1);
    }
    let inspected = dir.run("inspect d.tamis").text(0);
    assert!(inspected.contains("\nexcluded    about 30,"), "{inspected}");
}

/// `inspect` says of a file what `build` said of it, for both read it there.
#[test]
fn build_and_inspect_agree() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..2500));
    dir.put("few.txt", numbers(10_000..13_000));
    // More than are counted one by one.
    dir.put("many.txt", numbers(100_000..140_000));
    dir.put(
        "popular.tsv",
        (0..3000u64).map(|i| format!("{}\t{}\n", 200_000 + i, 100_000 / (i + 1) + 2)).collect::<String>(),
    );
    let rows = |keys: std::ops::Range<u64>| keys.map(|key| format!("{key},{}\n", key % 3)).collect::<String>();
    dir.put("keys.csv", rows(0..2500));
    dir.put("others.csv", rows(10_000..12_000));
    for line in [
        "--integers keys.txt",
        "--integers keys.txt --exclude few.txt --exact",
        "--integers keys.txt --exclude few.txt",
        "--integers keys.txt --exclude many.txt --exact",
        "--integers keys.txt --exclude many.txt many.txt --exact",
        "--integers keys.txt --exclude many.txt --fpr 0.3 --effort smallest",
        "--integers keys.txt --exclude many.txt --bits-per-key 9",
        "--integers keys.txt --exclude many.txt --kind chained-fuse --on-conflict drop",
        "--integers keys.txt --workload popular.tsv --fpr 0.001",
        "--integers keys.txt --workload popular.tsv --fpr 0.001 --unlisted-share 0.5 --exclude few.txt",
        "keys.csv --exclude others.csv --column #1 --partition-column #2",
    ] {
        let built = dir.run(&format!("build {line} -o f.tamis")).text(0);
        let inspected = dir.run("inspect f.tamis").text(0);
        let find = |text: &str, label: &str| {
            text.lines().find(|line| line.starts_with(label)).map(str::to_string).unwrap_or_default()
        };
        assert_eq!(find(&built, "size "), find(&inspected, "size "), "{line}");
        assert!(find(&built, "size ").contains(" % above it"), "{built}");
        if built.contains("strangers ") {
            assert_eq!(find(&built, "strangers "), find(&inspected, "strangers "), "{line}");
        }
        let (ours, theirs) = (find(&built, "excluded "), find(&inspected, "excluded "));
        assert!(ours.starts_with(&theirs) && ours.is_empty() == theirs.is_empty(), "{ours:?} and {theirs:?}: {line}");
        assert_eq!(line.contains("--exclude"), !ours.is_empty(), "{line}");
        let built = dir.run(&format!("build {line} -o f.tamis --json")).json(0);
        let inspected = dir.run("inspect f.tamis --json").json(0);
        for field in ["bytes", "bits_per_key", "bound_bits_per_key", "overhead", "fpr", "keys"] {
            assert_eq!(built[field], inspected[field], "{field}: {line}");
        }
        if built["excluded"]["estimated"] == json!(true) {
            assert_eq!(built["excluded"]["keys"], inspected["excluded"], "{line}");
        }
    }
}

/// A name that is wrong is found before the first key is read.
#[test]
fn a_missing_list_shows_at_once() {
    let dir = TestDir::new();
    dir.put("keys.csv", "a,b\nc,d\n");
    let error = dir.error("build keys.csv --exclude nowhere.txt -o k.tamis");
    assert!(error.contains("nowhere.txt: no such file"), "{error}");
}

/// Listed keys and nothing else: smaller than any filter that knows only the keys.
#[test]
fn exact_is_small() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    dir.put("others.txt", numbers(20_000..80_000));
    let report = dir.run("build --integers keys.txt --exclude others.txt -o e.tamis --exact --json").json(0);
    assert_eq!((&report["keys"], &report["fpr"]), (&json!(20_000), &json!(0.25)));
    let bits = report["bits_per_key"].as_f64().unwrap();
    // f(0, 3) = 3.245
    assert!((report["bound_bits_per_key"].as_f64().unwrap() - 3.245).abs() < 0.03, "{report}");
    assert!((3.3..3.45).contains(&bits), "{report}");
    assert_eq!((&report["excluded_blank"], &report["conflicts"]), (&json!(0), &json!(0)));
    assert!((report["excluded"].as_f64().unwrap() / 6e4 - 1.0).abs() < 0.04, "{report}");
    dir.run("verify --integers e.tamis --keys keys.txt --exclude others.txt").text(0);
}

/// What docs/benchmarks.md says of 100,000 keys, and few excluded ones among them.
#[test]
fn exact_sets_are_near_the_bound() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(1..100_001));
    // Of 500 listed keys the first layer is a standard ribbon, which has 7 % more rows than keys, and 20 bytes are sums and identity.
    for (excluded, most) in [(500, 0.296), (5000, 0.0885), (10_000, 0.0705), (20_000, 0.0575), (187_000, 0.0667)] {
        dir.put("others.txt", numbers(1_000_000_001..1_000_000_001 + excluded));
        let report = dir.run("build --integers keys.txt --exclude others.txt -o e.tamis --exact --json").json(0);
        let overhead = report["overhead"].as_f64().unwrap();
        assert!(overhead > 0.0 && overhead <= most, "{excluded}: {overhead}");
    }
}

/// A share of the excluded keys may match: smaller than exact, and no more than that share does.
#[test]
fn an_allowed_share_matches() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    dir.put("others.txt", numbers(20_000..220_000));
    let report =
        dir.run("build --integers keys.txt --exclude others.txt -o e.tamis --excluded-fpr 0.03 --json").json(0);
    // f(0.03, 10) = 3.82
    assert!((report["bound_bits_per_key"].as_f64().unwrap() - 3.82).abs() < 0.01, "{report}");
    assert!((3.85..4.3).contains(&report["bits_per_key"].as_f64().unwrap()), "{report}");
    dir.run("verify --integers e.tamis --keys keys.txt").text(0);
    let matching: u64 = dir.run("query --integers -c e.tamis others.txt").text(0).trim().parse().unwrap();
    assert!((4000..=6000).contains(&matching), "{matching}");
    let errors = [
        ("--excluded-fpr 0.1 --exact", "--excluded-fpr: cannot be used with --exact"),
        ("--excluded-fpr 1.5", "expected a share above 0 and below 1"),
        (
            "--excluded-fpr 0.1 --kind cascade",
            "--excluded-fpr: not possible with --kind cascade; expected auto, steered or chained",
        ),
    ];
    for (more, expected) in errors {
        let error = dir.error(&format!("build --integers keys.txt --exclude others.txt -o f.tamis {more}"));
        assert!(error.contains(expected), "{error}");
    }
    let error = dir.error("build --integers keys.txt -o f.tamis --excluded-fpr 0.1");
    assert!(error.contains("--exclude"), "{error}");
}

/// A chained filter keeps the share too, and `plan` shows it beside the steered one.
#[test]
fn a_chained_filter_keeps_the_share() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    dir.put("others.txt", numbers(20_000..220_000));
    // Slots per key of so few keys, by 3 probes and by 4.
    for (kind, slots) in [("chained", 1.08), ("chained-fuse", 1.29), ("chained-fuse4", 1.22)] {
        let goal = format!("--exclude others.txt --excluded-fpr 3% --kind {kind}");
        let report = dir.run(&format!("build --integers keys.txt -o c.tamis {goal} --json")).json(0);
        // Corollary 4.1 (a): 4.636 bits, times what the structure takes.
        assert!((4.636..4.636 * slots).contains(&report["bits_per_key"].as_f64().unwrap()), "{report}");
        dir.run("verify --integers c.tamis --keys keys.txt").text(0);
        let matching: u64 = dir.run("query --integers -c c.tamis others.txt").text(0).trim().parse().unwrap();
        assert!((5500..=6000).contains(&matching), "{kind}: {matching}");
        let plan = dir.run("plan --integers keys.txt --exclude others.txt --excluded-fpr 3% --json").json(0);
        let row = plan["candidates"].as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap();
        let predicted = row["bits_per_key"].as_f64().unwrap();
        assert!((report["bits_per_key"].as_f64().unwrap() / predicted - 1.0).abs() < 0.03, "{row}");
    }
}

/// A cascade of so many layers.
#[test]
fn the_shape_of_a_cascade_can_be_chosen() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..3000));
    dir.put("others.txt", numbers(3000..20_000));
    for (options, layers) in [("", 5), ("--layers 9 --delta 0.7", 9), ("--layers 2", 2), ("--delta 0.1", 5)] {
        let build = format!("build --integers keys.txt --exclude others.txt --exact --kind cascade-bloom {options}");
        let report = dir.run(&format!("{build} -o c.tamis --json")).json(0);
        assert_eq!(report["layers"].as_array().unwrap().len(), layers, "{report}");
        dir.run("verify --integers c.tamis --keys keys.txt --exclude others.txt").text(0);
    }
}

/// All bits side by side are one layer.
#[test]
fn a_layout_can_be_chosen() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    dir.put("others.txt", numbers(20_000..80_000));
    let build = "build --integers keys.txt --exclude others.txt -o e.tamis --exact --json --layout";
    let local = dir.run(&format!("{build} local")).json(0);
    let layers = local["layers"].as_array().unwrap();
    assert_eq!((layers.len(), &layers[0]["structure"]), (1, &json!("local")), "{local}");
    assert!((3.3..3.5).contains(&local["bits_per_key"].as_f64().unwrap()), "{local}");
    dir.run("verify --integers e.tamis --keys keys.txt --exclude others.txt").text(0);
    assert_ne!(dir.run(&format!("{build} compact")).json(0)["layers"], local["layers"]);
    let error = dir.error("build --integers keys.txt --exclude others.txt -o e.tamis --layout local --kind naive");
    assert!(error.contains("--layout local: not possible with --kind"), "{error}");
}

#[test]
fn verify_shows_what_should_not_be_found() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\ntwo\nthree\n");
    dir.put("others.txt", "four\n\ntwo\n");
    dir.run("build keys.txt -o k.tamis --fpr 1e-9").text(0);
    let answer = dir.run("verify k.tamis --keys keys.txt --exclude others.txt --on-conflict drop").text(1);
    let expected = "checksum    right\nkeys        3 checked, 0 false negatives\nexcluded    2 checked, 1 false positive\n\
                    matched     others.txt line 3: two\n";
    assert_eq!(answer, expected);
    let answer = dir.run("verify k.tamis --exclude others.txt --json").json(1);
    let example = json!({
        "file": "others.txt", "unit": "line", "position": 3, "key": "two", "partition": null, "match": true,
    });
    let numbers = (&answer["excluded_checked"], &answer["false_positives"], &answer["examples"]);
    assert_eq!(numbers, (&json!(2), &json!(1), &json!([example])));
}

#[test]
fn a_conflict_is_named_or_settled() {
    let dir = TestDir::new();
    dir.put("deny.txt", "a\n\nb\nc\nd\n");
    dir.put("allow.txt", "x\nc\n");
    dir.put("more.txt", "b\nb\n");
    let build = "build deny.txt --exclude allow.txt --exclude more.txt -o f.tamis";
    let run = dir.run(build);
    let lines = "\ntamis: conflict: \"b\" (deny.txt line 3, more.txt line 1)\n\
                 tamis: conflict: \"c\" (deny.txt line 4, allow.txt line 2)\n";
    assert!(
        run.err.starts_with("tamis: --exclude: 2 keys are also members, ") && run.err.ends_with(lines),
        "{}",
        run.err
    );
    assert_eq!(run.code, Some(4));
    let report = dir.run(&format!("{build} --on-conflict keep")).text(0);
    assert!(
        report.starts_with(
            "keys        4, 0 duplicates dropped, 1 blank line skipped\nexcluded    1, 1 duplicates dropped\n"
        ),
        "{report}"
    );
    assert!(report.contains("\nconflicts   2 keys, kept as members\n"), "{report}");
    dir.run("verify f.tamis --keys deny.txt").text(0);
    let report = dir.run(&format!("{build} --on-conflict drop")).text(0);
    assert!(report.contains("\nconflicts   2 keys, excluded\n"), "{report}");
    dir.run("verify f.tamis --exclude allow.txt more.txt").text(0);
    dir.feed("verify f.tamis --keys -", "a\nd\n").text(0);
    let json = dir.run(&format!("{build} --on-conflict drop --json")).json(0);
    assert_eq!((&json["keys"], &json["conflicts"], &json["excluded"]), (&json!(2), &json!(2), &json!(3)));
    // Many are counted, few are shown.
    dir.put("many.txt", numbers(0..1000));
    let run = dir.run("build many.txt --exclude many.txt -o f2.tamis");
    let first =
        "tamis: --exclude: 1,000 keys are also members, first \"0\" (many.txt line 1, many.txt line 1); expected none";
    assert!(run.err.starts_with(first) && run.err.lines().count() == 9, "{}", run.err);
}

#[test]
fn empty_sides_are_fine() {
    let dir = TestDir::new();
    dir.put("keys.txt", "a\nb\n");
    dir.put("none.txt", "\n");
    let report = dir.run("build keys.txt --exclude none.txt --allow-empty -o f.tamis").text(0);
    assert!(report.contains("\nexcluded    0, 0 duplicates dropped, 1 blank line skipped\n"), "{report}");
    dir.run("verify f.tamis --keys keys.txt").text(0);
    for goal in ["", "--exact"] {
        dir.run(&format!("build none.txt --exclude keys.txt --allow-empty -o g.tamis {goal}")).text(0);
        dir.run("verify g.tamis --exclude keys.txt").text(0);
    }
}

#[test]
fn words_that_do_not_go_together() {
    let dir = TestDir::new();
    dir.put("keys.txt", "a\n");
    dir.put("others.txt", "b\n");
    dir.put("blank.txt", "\n");
    dir.put("numbers.jsonl", "1\n2\n");
    for (line, expected) in [
        ("build - --exclude - -o f.tamis", "-: standard input is given twice; expected it once"),
        ("build --exclude - -o f.tamis", "-: standard input is given twice; expected it once"),
        ("build keys.txt --exclude none.txt -o f.tamis", "none.txt: no such file; expected a file of keys"),
        ("build keys.txt --exclude tmp -o f.tamis", "tmp: no files in the directory; expected one at least"),
        (
            "build keys.txt --exclude others.txt -o others.txt",
            "-o others.txt: is a file of keys; expected another file for the filter",
        ),
        (
            "build keys.txt --exact --fpr 0.1 -o f.tamis",
            "--fpr, --exact: two goals; expected one, or --workload with --fpr as its ceiling",
        ),
        (
            "build keys.txt --exclude others.txt --on-conflict ask -o f.tamis",
            "--on-conflict ask: unknown; expected error, keep or drop",
        ),
        (
            "build keys.txt --exclude numbers.jsonl -o f.tamis",
            "--exclude: keys of another type than the members; expected all text or all integers; use --integers",
        ),
        (
            "build keys.txt --exclude others.txt --kind ribbon -o f.tamis",
            "--kind ribbon: cannot exclude keys; expected steered, chained, cascade, integrated or naive",
        ),
        (
            "build keys.txt --exact --kind bloom -o f.tamis",
            "--exact: no key is excluded, so every key would match; expected --exclude FILE, or --fpr or --bits-per-key instead",
        ),
        (
            "build keys.txt --exact --exclude blank.txt --allow-empty -o f.tamis",
            "--exclude: no excluded key is left, so every key would match; expected at least one that is not a member, or --fpr or --bits-per-key as the goal",
        ),
    ] {
        assert_eq!(dir.error(line), expected, "{line}");
    }
}

/// Twenty thousand negatives for each key, in little memory and no disk.
#[test]
fn negatives_stream() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..50));
    let line = "build --integers keys.txt --exclude - -o f.tamis --fpr 0.004 --memory 4M --disk 1M --json";
    let report = dir.feed(line, numbers(50..1_000_000)).json(0);
    assert_eq!(report["excluded_estimated"], json!(true));
    assert!(report["bytes"].as_u64().unwrap() < 500, "{report}");
    dir.feed("verify --integers f.tamis --keys keys.txt --exclude -", numbers(50..1_000_000)).text(0);
}
