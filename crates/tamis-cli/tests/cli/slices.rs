//! slice plan, build, join -> processes that share a plan, and the file of one build.

use std::fs;
use std::process::Stdio;

use crate::test_dir::{TestDir, numbers};

/// Lists, a plan of four slices, and the folder of the slices.
fn dir(options: &str) -> TestDir {
    let dir = TestDir::new();
    dir.put("keys", numbers(0..20_000));
    dir.put("excluded", numbers(20_000..60_000));
    fs::create_dir(dir.path("slices")).unwrap();
    let report = dir.run(&format!("slice plan keys --slices 4 -o plan {options}")).text(0);
    assert!(report.starts_with("keys        20,000\nslices      4 of "), "{report}");
    dir
}

const GOAL: &str = "--exclude excluded --fpr 0.01 --shard-bytes 4K --metadata note";

#[test]
fn processes_that_share_a_plan_make_the_file_of_one() {
    let dir = dir(GOAL);
    // All at once, in any order; some read all keys, some only a part of them twice.
    let build = |slice: u32| {
        let line =
            format!("slice build plan keys --exclude excluded --slice {slice} -o slices --memory 4M --threads 1");
        dir.command(&line).stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = [2, 0, 3, 1, 2].map(build).into_iter().collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let names = |folder: &str| fs::read_dir(dir.path(folder)).unwrap().count();
    assert_eq!(names("slices"), 4);
    let report = dir.run("slice join slices -o joined").text(0);
    assert!(report.starts_with("file        joined: filter\nsize        "), "{report}");
    dir.run(&format!("build keys -o one -q {GOAL}")).text(0);
    assert!(dir.read("joined") == dir.read("one"));
    let files = "slices/slice-00003.tamis slices/slice-00001.tamis slices/slice-00000.tamis slices/slice-00002.tamis";
    assert_eq!(dir.run(&format!("slice join {files} -o again --json")).json(0)["bytes"], dir.read("one").len());
    #[cfg(unix)]
    assert!(dir.run("slice join slices -o /dev/null").err.trim_end().ends_with(report.lines().last().unwrap()));
    assert!(dir.read("again") == dir.read("one"));
    let report = dir.run("slice join slices --manifest").text(0);
    assert!(report.starts_with("file        slices/manifest.tamis: manifest\n"), "{report}");
    assert_eq!(names("slices"), 5);
    // A second run of a task writes the same bytes, and says what it did.
    let before = dir.read("slices/slice-00001.tamis");
    let line = "slice build plan keys --exclude excluded --slice 1 -o slices";
    let report = dir.run(line).text(0);
    assert!(report.starts_with("slice       1 of 4\nkeys        ") && report.contains("\nexcluded    "), "{report}");
    assert!(dir.read("slices/slice-00001.tamis") == before);
    let fields = dir.run(&format!("{line} --json")).json(0);
    assert_eq!((&fields["slice"], &fields["slices"], &fields["bytes"]), (&1.into(), &4.into(), &before.len().into()));
}

#[test]
fn members_alone_integers_and_a_secret() {
    let dir = TestDir::new();
    dir.put("keys", numbers(0..9000));
    for options in ["--integers --exact --exclude none", "--integers --seed 7", "--bits-per-key 12", "--secret"] {
        dir.put("none", numbers(9000..9100));
        let plan = dir.run(&format!("slice plan keys -o plan --shard-bytes 4K {options} --json")).json(0);
        let exclude = if options.contains("exclude") { "--exclude none" } else { "" };
        let integers = if options.contains("integers") { "--integers" } else { "" };
        let slices: Vec<String> = (0..plan["slices"].as_u64().unwrap())
            .map(|slice| {
                dir.run(&format!("slice build plan keys {exclude} {integers} --slice {slice} -o s{slice} -q")).text(0);
                format!("s{slice}")
            })
            .collect();
        dir.run(&format!("slice join {} -o joined -q", slices.join(" "))).text(0);
        assert_eq!(dir.run(&format!("query joined keys {integers} -c")).text(0), "9000\n");
        if !options.contains("secret") {
            dir.run(&format!("build keys -o one -q --shard-bytes 4K {options}")).text(0);
            assert!(dir.read("joined") == dir.read("one"), "{options}");
        }
        #[cfg(unix)]
        if options.contains("secret") {
            use std::os::unix::fs::PermissionsExt;
            for name in ["plan", "s0", "joined"] {
                assert_eq!(fs::metadata(dir.path(name)).unwrap().permissions().mode() & 0o077, 0, "{name}");
            }
        }
        for name in ["plan", "joined"].map(str::to_string).iter().chain(&slices) {
            fs::remove_file(dir.path(name)).unwrap();
        }
    }
}

#[test]
fn what_does_not_belong_together_is_an_error() {
    let dir = dir(GOAL);
    for slice in 0..4 {
        dir.run(&format!("slice build plan keys --exclude excluded --slice {slice} -o slices -q")).text(0);
    }
    fs::rename(dir.path("slices/slice-00002.tamis"), dir.path("two")).unwrap();
    let says = |line: &str| dir.error(line);
    assert_eq!(says("slice join slices -o out"), "out: join: slice 2 of 4 is missing; expected each once");
    assert!(says("slice join slices --manifest").contains("slice-00002.tamis"));
    let text = dir.run("slice join keys -o out").failure(3);
    assert!(text.contains("keys: wrong last four bytes; expected the end of a file that tamis wrote"), "{text}");
    // Another goal, other keys.
    dir.run("slice plan keys --slices 4 --shard-bytes 4K --fpr 0.02 -o other -q").text(0);
    dir.run("slice build other keys --slice 2 -o slices -q").text(0);
    assert!(says("slice join slices -o out").contains("slices of different plans"));
    dir.put("fewer", numbers(1..20_000));
    for slice in 0..4 {
        dir.run(&format!("slice build plan fewer --exclude excluded --slice {slice} -o slices -q")).text(0);
    }
    assert!(says("slice join slices -o out").contains("19,999 keys where 20,000 were surveyed"));
    assert!(says("slice build plan keys --slice 4 -o slices").starts_with("--slice 4: the plan has 4 slices"));
    assert!(says("slice build plan keys --integers --slice 1 -o slices").contains("expected text"));
    assert!(says("slice build keys keys --slice 1 -o slices").starts_with("keys: plan: "));
    assert!(says("slice build plan keys --slice 1 -o nowhere/out").contains("no directory nowhere"));
    assert!(says("slice build plan keys --slice 1 -o plan").starts_with("-o plan: is a file of keys"));
    assert_eq!(says("slice join slices -o -"), "-o -: expected a file");
    assert!(says("slice join keys slices -o out").starts_with("slices: a folder among others"));
    assert!(says("slice plan keys --slices 3 -o p").contains("not a power of two"));
    assert!(says("slice plan keys --workload excluded --fpr 0.01 -o p").contains("not possible with slice"));
    assert!(says("slice plan keys --secret-file s -o p").contains("not possible with slice"));
    let conflict = dir.run("slice plan keys --exclude keys --fpr 0.01 -o p").failure(4);
    assert!(conflict.contains("20,000 keys"), "{conflict}");
    assert!(says("query slices/slice-00000.tamis --key 1").contains("use tamis slice join"));
}

/// Whoever excludes the false positives of an earlier filter gets the same first layer, which they pass. Another seed helps.
#[test]
fn excluded_keys_that_pass_the_first_layer_need_another_seed() {
    let dir = TestDir::new();
    dir.put("keys", numbers(0..5000));
    dir.put("others", numbers(5000..1_000_000));
    dir.run("build keys --fpr 0.01 --shard-bytes 4K -o first -q").text(0);
    let matches = dir.run("query first others").text(0);
    dir.put("excluded", &matches);
    for seed in [0, 1] {
        let _ = fs::remove_dir_all(dir.path("slices"));
        fs::create_dir(dir.path("slices")).unwrap();
        let goal = format!("--fpr 0.01 --shard-bytes 4K --slices 2 --seed {seed}");
        dir.run(&format!("slice plan keys --exclude excluded {goal} -o plan -q")).text(0);
        for slice in 0..2 {
            dir.run(&format!("slice build plan keys --exclude excluded --slice {slice} -o slices -q")).text(0);
        }
        let join = "slice join slices -o joined -q";
        if seed == 0 {
            let says = dir.error(join);
            assert!(says.ends_with("; use slice plan with another --seed, or --secret"), "{says}");
        } else {
            dir.run(join).text(0);
            assert_eq!(dir.run("query joined excluded -c").text(1), "0\n");
        }
    }
}

/// The folder of slices, its manifest and the joined file are one filter to every command that reads.
#[test]
fn a_folder_with_its_manifest_opens_like_a_file() {
    let dir = dir(GOAL);
    for slice in 0..4 {
        dir.run(&format!("slice build plan keys --exclude excluded --slice {slice} -o slices -q")).text(0);
    }
    let not_yet = dir.error("query slices --key 1");
    assert_eq!(not_yet, "slices: has slices and no manifest.tamis; expected both; use tamis slice join --manifest");
    dir.run("slice join slices --manifest -q").text(0);
    dir.run("slice join slices -o joined -q").text(0);
    for name in ["slices", "slices/manifest.tamis"] {
        assert_eq!(dir.run(&format!("query {name} keys -c")).text(0), "20000\n");
        assert_eq!(dir.run(&format!("query {name} excluded -c")).text(1), "0\n");
        dir.put("unlisted", numbers(60_000..90_000));
        let matches = dir.run("query joined unlisted").text(0);
        assert_eq!(dir.run(&format!("query {name} unlisted --no-verify")).text(0), matches);
        let report = dir.run(&format!("verify {name} --keys keys --exclude excluded")).text(0);
        assert!(report.contains("20,000 checked, 0 false negatives"), "{report}");
        dir.run(&format!("verify {name} --keys unlisted")).text(1);
        let report = dir.run(&format!("inspect {name}")).text(0);
        assert!(report.starts_with(&format!("file        {name}: slices, format version 1\nidentity    ")), "{report}");
        assert!(report.contains("metadata    note\nslices      4\nkeys        20,000 (bytes)\n"), "{report}");
        let [fields, joined] = [name, "joined"].map(|name| dir.run(&format!("inspect {name} --json")).json(0));
        for same in
            ["keys", "excluded", "excluded_estimated", "key_type", "fpr", "shards", "layers", "hash", "metadata"]
        {
            assert_eq!(fields[same], joined[same], "{same}");
        }
        assert_eq!(fields["slices"], 4);
        assert!(dir.error(&format!("query {name} keys --integers")).contains("are text; expected text"));
        assert!(dir.error(&format!("query {name} keys --patch joined")).contains("no patches"));
        dir.put("secret", "0123456789abcdef0123456789abcdef");
        assert!(dir.error(&format!("query {name} keys --secret-file secret")).contains("built without it"));
    }
    assert!(dir.error("map get slices").contains("holds a manifest of slices; expected a map; use tamis query"));
    // A manifest elsewhere is not of the slices that are around it, and a slice is no manifest.
    fs::create_dir(dir.path("others")).unwrap();
    for (from, to) in [("manifest.tamis", "slices/copy"), ("slice-00001.tamis", "others/manifest.tamis")] {
        fs::copy(dir.path(format!("slices/{from}")), dir.path(to)).unwrap();
    }
    for (line, says) in [
        ("query slices/copy --key 1", "slices/copy: holds a manifest of slices; expected a filter; use tamis query"),
        ("add slices keys", "slices: holds a manifest of slices; expected a filter; use tamis query"),
        ("inspect slices/copy", "slices/copy: holds a manifest of slices; expected a filter; use tamis query"),
        ("query others --key 1", "others/manifest.tamis: holds a slice of a filter; expected a manifest of slices"),
        ("inspect others", "others/manifest.tamis: holds a slice of a filter; expected a manifest of slices"),
    ] {
        let error = dir.error(line);
        assert!(error.starts_with(says), "{line}: {error}");
    }
    // One slice, alone.
    let fields = dir.run("inspect slices/slice-00002.tamis --json").json(0);
    assert_eq!((&fields["slice"], &fields["slices"]), (&2.into(), &4.into()));
    let report = dir.run("inspect slices/slice-00002.tamis").text(0);
    assert!(report.contains("slice       2 of 4\nkeys        "), "{report}");
    // Damage of the payload is found, unless nobody looks.
    let path = "slices/slice-00001.tamis";
    let mut bytes = dir.read(path);
    bytes[20] ^= 1;
    fs::write(dir.path(path), bytes).unwrap();
    for line in ["query slices --key 1", "inspect slices", "verify slices", &format!("inspect {path}")] {
        let says = dir.run(line).failure(3);
        assert!(says.contains("slice-00001.tamis") && says.contains("damaged"), "{says}");
    }
    dir.run("query slices --key 1 --no-verify").text(0);
    dir.run(&format!("inspect {path} --no-verify")).text(0);
    fs::remove_file(dir.path(path)).unwrap();
    assert!(dir.error("query slices --key 1").contains("slice-00001.tamis"));
}

/// Whatever ends a worker, the folder has no part of a slice.
#[cfg(unix)]
#[test]
fn a_worker_that_is_killed_leaves_no_slice() {
    use std::io::Write;
    let dir = dir("--shard-bytes 4K");
    let line = "slice build plan - --slice 1 -o slices";
    let mut child = dir.command(line).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(numbers(0..20_000).as_bytes()).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert_eq!(fs::read_dir(dir.path("slices")).unwrap().count(), 0);
    dir.feed(line, numbers(0..20_000)).text(0);
    assert_eq!(fs::read_dir(dir.path("slices")).unwrap().count(), 1);
}
