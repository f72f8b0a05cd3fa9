//! --changing, add, exclude, remove -> files that stay right about both lists while these change.

use crate::test_dir::{TestDir, numbers, quickstart};

#[test]
fn files_change_and_stay_right() {
    let dir = TestDir::new();
    let (deny, allow) = (quickstart("deny.txt"), quickstart("allow.txt"));
    dir.put("more.txt", "one.example\ntwo.example\n\ntwo.example\n");
    dir.put("others.txt", "three.example\nfour.example\n");
    for kind in ["", "--kind cuckoo", "--kind bloom", "--kind classic-bloom --fpr 3%", "--kind quotient --secret"] {
        let built = dir.run(&format!("build {deny} --exclude {allow} --changing -o d.tamis {kind}")).text(0);
        assert!(
            built.starts_with("added       93,514 keys, 0 as before\nexcluded    30,335 keys, 0 as before\n"),
            "{built}"
        );
        // Sixteen bytes for each of both.
        assert!(built.contains("\nkept        1,981,584 bytes more of digests"), "{built}");
        let excluded = dir.run("exclude d.tamis others.txt").text(0);
        assert!(excluded.starts_with("excluded    2 keys, 0 as before\n"), "{excluded}");
        let added = dir.run("add d.tamis more.txt").text(0);
        assert!(added.starts_with("added       2 keys, 1 as before, 1 blank line skipped\n"), "{added}");
        assert!(added.contains("\nkeys        93,516 (bytes)\nexcluded    30,337\n"), "{added}");
        for list in [&allow, &"others.txt".to_string()] {
            dir.run(&format!("verify d.tamis --keys {deny} --exclude {list}")).text(0);
        }
        dir.run("verify d.tamis --keys more.txt").text(0);
        let again = dir.run("exclude d.tamis others.txt -q").text(0);
        assert_eq!(again, "");
        // To another file; the old one stays as it is.
        dir.run("remove d.tamis others.txt --excluded -o e.tamis").text(0);
        let removed = dir.run("remove e.tamis more.txt").failure(2);
        assert!(
            removed.contains("more.txt: line 4: \"two.example\" is no member; expected one; nothing was changed"),
            "{removed}"
        );
        dir.put("once.txt", "one.example\ntwo.example\n");
        dir.run("remove e.tamis once.txt").text(0);
        let inspected = dir.run("inspect e.tamis").text(0);
        assert!(inspected.contains("\nkeys        93,514 (bytes)\nexcluded    30,335\n"), "{inspected}");
        dir.run("verify d.tamis --keys more.txt").text(0);
    }
}

/// Equal lists in any order make equal bytes, and equal changes of equal files do.
#[test]
fn equal_lists_make_equal_files() {
    let dir = TestDir::new();
    let turned = |lines: &str| lines.lines().rev().map(|line| format!("{line}\n")).collect::<String>();
    for (name, keys) in [("keys", numbers(0..5000)), ("others", numbers(9000..12_000)), ("more", numbers(5000..5500))] {
        dir.put(name, &keys);
        dir.put(&format!("{name}2"), turned(&keys));
    }
    let kinds = ["auto", "cuckoo", "bloom", "classic-bloom", "quotient", "ribbon", "fuse", "fuse4"];
    for (kind, options) in kinds.into_iter().flat_map(|kind| ["", "--seed 9"].map(|options| (kind, options))) {
        let build = |turn: &str| {
            let line = format!("build keys{turn} --exclude others{turn} --changing --kind {kind} {options}");
            dir.run(&format!("{line} -o d{turn}.tamis")).text(0);
            dir.read(&format!("d{turn}.tamis"))
        };
        let first = build("");
        assert!(first == build("") && first == build("2"), "{kind} {options}");
        if !["ribbon", "fuse", "fuse4"].contains(&kind) {
            for turn in ["", "2"] {
                dir.run(&format!("add d{turn}.tamis more")).text(0);
            }
            assert!(dir.read("d.tamis") == dir.read("d2.tamis"), "{kind} {options}");
        }
    }
}

#[test]
fn what_cannot_be_changed_is_said() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..100));
    dir.put("others.txt", numbers(1000..1100));
    dir.put("words.txt", "one\n");
    dir.run("build keys.txt --exclude others.txt -o fixed.tamis").text(0);
    dir.run("build keys.txt --exclude others.txt --changing --capacity 110 -o d.tamis").text(0);
    dir.run("build keys.txt --exclude others.txt --changing --integers -o integers.tamis").text(0);
    let before = dir.read("d.tamis");
    for (line, code, expected) in [
        ("exclude fixed.tamis others.txt", 2, "fixed.tamis: read-only, it keeps no digests"),
        ("add fixed.tamis others.txt", 2, "expected a filter built with --changing"),
        ("exclude d.tamis keys.txt", 4, "keys.txt: line 1: \"0\" is a member; expected none; remove it first"),
        ("add d.tamis others.txt", 4, "others.txt: line 1: \"1000\" is excluded; expected none"),
        ("remove d.tamis others.txt", 2, "others.txt: line 1: \"1000\" is no member; expected one"),
        ("add integers.tamis words.txt", 2, "words.txt: line 1: \"one\" is not an integer"),
        ("add missing.tamis others.txt", 2, "missing.tamis: no such file"),
        ("add keys.txt others.txt", 3, "keys.txt: not a tamis file"),
        ("build keys.txt --exclude keys.txt --changing -o e.tamis", 4, "is a member; expected none"),
        (
            "build keys.txt --changing --kind naive -o e.tamis",
            2,
            "--kind naive: no first layer of a filter that changes",
        ),
        (
            "build keys.txt --changing --kind fuse --capacity 200 -o e.tamis",
            2,
            "--capacity: no effect with --kind fuse",
        ),
        ("build keys.txt --changing --exact -o e.tamis", 2, "--changing: cannot be used with --exact"),
        ("build keys.txt --changing --capacity 50 -o e.tamis", 2, "--capacity 50: out of range; expected at least 100"),
    ] {
        let error = dir.run(line).failure(code);
        assert!(error.contains(expected), "{line}: {error}");
    }
    dir.put("many.txt", numbers(5000..6000));
    let full = dir.run("add d.tamis many.txt").failure(2);
    assert!(full.contains("full with"), "{full}");
    assert_eq!(dir.read("d.tamis"), before);
    assert!(!dir.path("e.tamis").exists());
}

/// Over a first layer that was built, keys are excluded and members stay.
#[test]
fn a_built_first_layer_stays() {
    let dir = TestDir::new();
    let (deny, allow) = (quickstart("deny.txt"), quickstart("allow.txt"));
    dir.run(&format!("build {deny} --changing -o cuckoo.tamis -q")).text(0);
    for kind in ["ribbon", "fuse", "fuse4 --secret", "ribbon --secret-file s"] {
        let secret = if kind.ends_with(" s") { "--secret-file s" } else { "" };
        let built = dir.run(&format!("build {deny} --changing -o d.tamis --kind {kind}")).text(0);
        assert!(built.starts_with("added       93,514 keys, 0 as before\n"), "{built}");
        let structure = if kind.starts_with("ribbon") { "ribbon" } else { "binary fuse" };
        assert!(built.contains(&format!("layer 0     positive: {structure}")), "{built}");
        assert!(dir.read("d.tamis").len() < dir.read("cuckoo.tamis").len());
        dir.put("matching.txt", dir.run(&format!("query d.tamis {allow} {secret}")).text(0));
        let before = dir.read("d.tamis");
        let excluded = dir.run(&format!("exclude d.tamis {allow} {secret}")).text(0);
        assert!(excluded.contains("\nkeys        93,514 (bytes)\nexcluded    "), "{excluded}");
        dir.run(&format!("verify d.tamis --keys {deny} --exclude {allow} {secret}")).text(0);
        assert!(dir.read("d.tamis") != before);
        // What it has to know of them: those that pass the first layer, of which half matched.
        let count = dir.run(&format!("inspect d.tamis --json {secret}")).json(0)["excluded"].as_u64().unwrap();
        let matching = dir.read("matching.txt").iter().filter(|&&byte| byte == b'\n').count() as f64;
        assert!((count as f64 - 2.0 * matching).abs() < 6.0 * (count as f64).sqrt(), "{count}, {matching}");
        let before = dir.read("d.tamis");
        for verb in ["add", "remove"] {
            let error = dir.run(&format!("{verb} d.tamis {allow} {secret}")).failure(2);
            assert!(error.contains("d.tamis: its members do not change"), "{error}");
        }
        let error = dir.run(&format!("exclude d.tamis {deny} {secret}")).failure(4);
        assert!(error.contains(" is a member; expected none; nothing was changed"), "{error}");
        assert!(dir.read("d.tamis") == before);
        // An exclusion is taken back.
        let taken = dir.run(&format!("remove d.tamis matching.txt --excluded {secret} -o e.tamis")).text(0);
        assert!(taken.starts_with(&format!("allowed     {matching} key")), "{taken}");
    }
}

#[test]
fn reports_are_json_too() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..100));
    let built = dir.run("build keys.txt --changing --capacity 200 -o d.tamis --json").json(0);
    assert_eq!((&built["changed"], &built["keys"], &built["kept_bytes"]), (&100.into(), &100.into(), &1600.into()));
    dir.put("more.txt", numbers(50..150));
    let added = dir.run("add d.tamis more.txt --json").json(0);
    assert_eq!((&added["changed"], &added["unchanged"], &added["keys"]), (&50.into(), &50.into(), &150.into()));
}
