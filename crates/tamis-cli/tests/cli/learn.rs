//! --learn -> a file that is built, inspected, queried and verified like other filters, and smaller.

use crate::test_dir::{TestDir, numbers, quickstart};

#[test]
fn learned_filters_are_right_and_smaller() {
    let dir = TestDir::new();
    let (deny, allow) = (quickstart("deny.txt"), quickstart("allow.txt"));
    let built = dir.run(&format!("build {deny} --exclude {allow} --exact --learn -o d.tamis")).text(0);
    assert!(built.contains("\nlearned     ") && built.contains(" less than 12,775 without\n"), "{built}");
    assert!(built.contains("\nmatched     0 excluded keys\nfile        d.tamis\n"), "{built}");
    assert!(dir.read("d.tamis").len() < 9000, "{built}");
    dir.run(&format!("verify d.tamis --keys {deny} --exclude {allow}")).text(0);
    let inspected = dir.run("inspect d.tamis").text(0);
    assert!(inspected.starts_with("file        d.tamis: learned, format version 1\n"), "{inspected}");
    assert!(
        inspected.contains("\nkeys        93,514 (bytes)\n") && inspected.contains("\nmodel       "),
        "{inspected}"
    );
    assert_eq!(dir.run(&format!("query d.tamis {deny} -c")).text(0), "93514\n");
    assert_eq!(dir.run(&format!("query d.tamis {allow} -c")).text(1), "0\n");
    let json = dir.run("inspect d.tamis --json").json(0);
    let bytes: u64 = json["classes"].as_array().unwrap().iter().map(|class| class["bytes"].as_u64().unwrap()).sum();
    assert!(bytes + json["model_bytes"].as_u64().unwrap() < json["bytes"].as_u64().unwrap(), "{json}");
    // Of the excluded keys about so many match, and every member.
    let line = format!("build {deny} --exclude {allow} --exact --learn --learn-accept 1% -o a.tamis --json");
    let matched = dir.run(&line).json(0)["learned"]["excluded_matches"].as_u64().unwrap();
    assert!(matched < 600, "{matched}");
    dir.run(&format!("verify a.tamis --keys {deny}")).text(0);
}

/// Where looks say nothing the file is a plain filter.
#[test]
fn a_model_that_does_not_pay_is_left_out() {
    let dir = TestDir::new();
    dir.put("odd.txt", (0..500).map(|i| format!("{}\n", i * 7919 % 100_003 * 2 + 1)).collect::<String>());
    dir.put("even.txt", (0..500).map(|i| format!("{}\n", i * 104_729 % 100_003 * 2)).collect::<String>());
    let built = dir.run("build odd.txt --exclude even.txt --fpr 1% --learn -o d.tamis").text(0);
    assert!(built.contains("\nlearned     the model does not pay: "), "{built}");
    assert!(dir.run("inspect d.tamis").text(0).starts_with("file        d.tamis: filter, "));
    dir.run("verify d.tamis --keys odd.txt --exclude even.txt").text(0);
}

#[test]
fn what_cannot_be_learned_is_said() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..100));
    dir.put("others.txt", numbers(1000..1100));
    dir.put("none.txt", "");
    for (line, expected) in [
        ("build keys.txt --learn -o d.tamis", "--exclude"),
        (
            "build keys.txt --exclude none.txt --allow-empty --learn -o d.tamis",
            "--learn: members alone or excluded keys alone; expected both",
        ),
        (
            "build none.txt --exclude keys.txt --allow-empty --learn -o d.tamis",
            "--learn: members alone or excluded keys alone; expected both",
        ),
        (
            "build keys.txt --exclude others.txt --learn --bits-per-key 9 -o d.tamis",
            "--learn: cannot be used with --bits-per-key",
        ),
        (
            "build keys.txt --exclude others.txt --learn --integers -o d.tamis",
            "--learn: cannot be used with --integers",
        ),
        ("build keys.txt --exclude others.txt --learn-accept 1% -o d.tamis", "--learn"),
        ("build keys.txt --exclude others.txt --learn --learn-accept 2 -o d.tamis", "--learn-accept 2"),
    ] {
        let error = dir.error(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let conflict = dir.run("build keys.txt --exclude keys.txt --learn -o d.tamis");
    assert!(conflict.code == Some(4) && conflict.err.contains("100 keys are also members"), "{}", conflict.err);
    dir.put("names.txt", (0..3000).map(|i| format!("login-{i}\n")).collect::<String>());
    dir.put("words.txt", (0..3000).map(|i| format!("{i}.shop\n")).collect::<String>());
    dir.run("build names.txt --exclude words.txt --exact --learn -o d.tamis").text(0);
    let integers = dir.run("query d.tamis keys.txt --integers").failure(2);
    assert!(integers.contains("the keys of d.tamis are text; expected text, without"), "{integers}");
    let patch = dir.run("query d.tamis keys.txt --patch d.tamis").failure(2);
    assert!(patch.contains("--patch: d.tamis is a learned filter, which has no patches"), "{patch}");
}
