//! a secret outside the file -> every command opens the file with it, and none without it.

use std::fs;
use std::io::Write as _;

use crate::test_dir::{TestDir, numbers};

/// Whether these bytes hold the words of a secret file, in either order of bytes.
fn holds(file: &[u8], secret: &[u8]) -> bool {
    let digits = str::from_utf8(secret).unwrap().trim();
    [&digits[..16], &digits[16..]].into_iter().any(|digits| {
        let word = u64::from_str_radix(digits, 16).unwrap();
        file.windows(8).any(|bytes| bytes == word.to_le_bytes() || bytes == word.swap_bytes().to_le_bytes())
    })
}

#[test]
fn every_command_takes_a_secret_file() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..3000));
    dir.put("others.txt", numbers(3000..6000));
    dir.put("pairs.tsv", "a\t1\nb\t2\n");
    dir.put("log.tsv", (6000..9000).map(|key| format!("{key}\t2\n")).collect::<String>());
    dir.put("words.txt", "one\ntwo\n");
    dir.put("more.txt", "three\n");
    // The first build writes the secret, the others read it.
    dir.run("build keys.txt --secret-file s -o f.tamis -q").text(0);
    let secret = dir.read("s");
    assert_eq!((secret.len(), secret[32]), (33, b'\n'));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(fs::metadata(dir.path("s")).unwrap().mode() & 0o777, 0o600);
    }
    let first = dir.read("f.tamis");
    dir.run("build keys.txt --secret-file s -o f.tamis -q").text(0);
    assert!(dir.read("f.tamis") == first, "equal secrets give equal bytes");
    for line in [
        "build keys.txt --exclude others.txt -o exact.tamis",
        "build keys.txt --workload log.tsv --workload-fpr 0.01 -o expected.tamis",
        "build keys.txt --exclude others.txt --changing -o changing.tamis",
        "remove changing.tamis keys.txt",
        "add changing.tamis keys.txt",
        "exclude changing.tamis words.txt",
        "verify changing.tamis --keys keys.txt --exclude words.txt",
        "map build pairs.tsv -o map.tamis",
        "sets build words.txt --kind bloom -o sets.tamis",
        "query f.tamis keys.txt -c",
        "verify f.tamis --keys keys.txt",
        "verify exact.tamis --keys keys.txt --exclude others.txt",
        "verify expected.tamis --keys keys.txt",
        "inspect f.tamis",
        "map get map.tamis --key a",
        "map verify map.tamis --pairs pairs.tsv",
        "inspect map.tamis",
        "sets add sets.tamis more.txt",
        "sets query sets.tamis --key three",
        "sets verify sets.tamis words.txt more.txt",
        "sets freeze sets.tamis words.txt -o frozen.tamis",
        "sets query frozen.tamis --key one",
        "sets build more.txt -o second.tamis",
        "sets merge frozen.tamis second.tamis -o merged.tamis",
        "sets remove merged.tamis more -o less.tamis",
        "sets query less.tamis --key two",
        "inspect less.tamis --names",
    ] {
        let out = dir.run(&format!("{line} --secret-file s")).text(0);
        assert!(!out.is_empty(), "{line}");
    }
    let mut files = 0;
    for name in dir.names().iter().filter(|name| name.ends_with(".tamis")) {
        assert!(!holds(&dir.read(name), &secret), "{name} holds the secret");
        assert!(dir.error(&format!("inspect {name}")).contains("its secret is not in the file"), "{name}");
        let shown = dir.run(&format!("inspect {name} --secret-file s --json")).json(0);
        assert_eq!(shown["secret"], "outside", "{name}");
        assert!(!shown.to_string().contains(str::from_utf8(&secret[..16]).unwrap()));
        files += 1;
    }
    assert_eq!(files, 10);
    for verb in ["add", "exclude", "remove"] {
        let error = dir.error(&format!("{verb} changing.tamis keys.txt"));
        assert!(error.contains("changing.tamis: its secret is not in the file"), "{error}");
    }
    // Standard input is opened with a secret, too.
    let run = dir.feed("query - --key 17 --secret-file s", dir.read("f.tamis"));
    assert_eq!(run.text(0), "17\n");
    dir.run("build keys.txt --secret -o inside.tamis -q").text(0);
    assert_eq!(dir.run("inspect inside.tamis --json").json(0)["secret"], "inside");
    // A plan builds nothing, and writes no secret.
    dir.run("plan keys.txt --secret-file new").text(0);
    assert!(!dir.path("new").exists());
}

/// Of processes that draw a secret for one file, all use the one that was written.
#[test]
fn one_new_secret_is_for_all() {
    let dir = TestDir::new();
    let lines = [
        ("build - -o 0.tamis", numbers(0..300)),
        ("build - -o 1.tamis", numbers(0..300)),
        ("map build - -o 2.tamis", "a\t1\nb\t2\n".into()),
        ("sets build x=- -o 3.tamis", numbers(0..300)),
        ("build - --changing -o 4.tamis", numbers(0..300)),
    ];
    for round in 0..20 {
        // All are there before one of them has read a key.
        let start = |line: &str| {
            let mut command = dir.command(&format!("{line} -q --secret-file s"));
            command.stdin(std::process::Stdio::piped()).spawn().unwrap()
        };
        let mut children: Vec<_> = lines.iter().map(|(line, _)| start(line)).collect();
        std::thread::sleep(std::time::Duration::from_millis(30 * (round % 5)));
        for (child, (_, keys)) in children.iter_mut().zip(&lines) {
            child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
        }
        for child in children {
            crate::test_dir::Run::from(child.wait_with_output().unwrap()).text(0);
        }
        let secret = dir.read("s");
        for file in 0..lines.len() {
            dir.run(&format!("inspect {file}.tamis --secret-file s")).text(0);
        }
        assert!(dir.read("0.tamis") == dir.read("1.tamis"), "round {round}");
        assert_eq!((secret.len(), dir.names().iter().filter(|name| name.contains(".part")).count()), (33, 0));
        fs::remove_file(dir.path("s")).unwrap();
    }
}

/// A secret is written before keys are hashed with it, and another process may have read it when the build fails.
#[test]
fn a_build_that_fails_leaves_its_secret() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..300));
    for line in ["build keys.txt --bits-per-key 0.01", "build keys.txt --exclude keys.txt"] {
        let run = dir.run(&format!("{line} -o x --secret-file s"));
        assert!(run.code != Some(0) && !dir.path("x").exists());
        let secret = dir.read("s");
        dir.run("build keys.txt -o f.tamis -q --secret-file s").text(0);
        assert_eq!(dir.read("s"), secret);
        fs::remove_file(dir.path("s")).unwrap();
    }
    // What is wrong before that writes none.
    for line in ["build none.txt", "build keys.txt --fpr 1", "build keys.txt -o none/f.tamis"] {
        dir.run(&format!("{line} -o x --secret-file s")).complaint();
        assert!(!dir.path("s").exists(), "{line}");
    }
    for (output, secret) in [("x", "x"), ("./x", "x"), ("tmp/../x", "x")] {
        let message = dir.error(&format!("build keys.txt -o {output} --secret-file {secret}"));
        assert_eq!(message, format!("--secret-file {secret}: is the file to build; expected another one"));
    }
}

#[test]
fn notes_and_identities_are_shown() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..50_000));
    let build = |options: &[&str]| {
        let mut command = dir.command("build keys.txt -q -o f.tamis");
        assert!(command.args(options).status().unwrap().success());
    };
    build(&["--metadata", "list of today", "--shard-bytes", "16K"]);
    let text = dir.run("inspect f.tamis").text(0);
    let json = dir.run("inspect f.tamis --json").json(0);
    assert!(text.contains("metadata    list of today\n"), "{text}");
    assert_eq!(
        (&json["metadata"], &json["may_change"], &json["secret"]),
        (&"list of today".into(), &false.into(), &serde_json::Value::Null)
    );
    assert!(json["shards"].as_u64().unwrap() >= 3 && !text.contains("may change") && !text.contains("secret"));
    let identity = json["identity"].as_str().unwrap().to_string();
    assert!(text.contains(&format!("identity    {identity}\n")) && identity.len() == 32);
    build(&["--shard-bytes", "16K"]);
    let other = dir.run("inspect f.tamis --json").json(0);
    assert!(other["identity"] != identity.as_str() && other["metadata"].is_null());
    // What a note says is not for the terminal to carry out.
    build(&["--metadata", "a\u{1b}[2Jb\nfile"]);
    let text = dir.run("inspect f.tamis").text(0);
    assert!(text.contains("metadata    \"a\\x1b[2Jb\\nfile\"\n"), "{text}");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tamis/tests/golden-adaptive/broom_small.tamis");
    let text = dir.run(&format!("inspect {golden}")).text(0);
    assert!(text.contains("may change  a later release may not read this file\n"), "{text}");
    assert_eq!(dir.run(&format!("inspect {golden} --json")).json(0)["may_change"], true);
}

#[test]
fn a_long_note_is_refused() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\n");
    let note = "x".repeat(65_537);
    let mut command = dir.command("build keys.txt -q -o f.tamis");
    let run = crate::test_dir::Run::from(command.args(["--metadata", &note]).output().unwrap());
    assert_eq!(run.failure(2), "--metadata 65537: out of range; expected 0 to 65,536");
    assert!(!dir.path("f.tamis").exists());
}
