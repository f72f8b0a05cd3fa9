//! an output -> a file that only those can read who may, and that is never one of the inputs.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use crate::test_dir::{Run, TestDir, numbers};

#[test]
fn a_file_with_a_secret_is_for_its_owner() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..10));
    dir.put("pairs.tsv", "a\t1\nb\t2\n");
    for line in ["build keys.txt", "map build pairs.tsv", "sets build keys.txt"] {
        // Others may read the files of this shell.
        dir.put("open.sh", format!("umask 022; exec {} $*", env!("CARGO_BIN_EXE_tamis")));
        for (more, mode) in [("--secret", 0o600), ("", 0o644)] {
            let run: Run = dir.around("sh", &format!("open.sh {line} {more} -o out.tamis")).output().unwrap().into();
            run.text(0);
            assert_eq!(fs::metadata(dir.path("out.tamis")).unwrap().mode() & 0o777, mode, "{line} {more}");
            fs::remove_file(dir.path("out.tamis")).unwrap();
        }
    }
    // A change leaves it so.
    dir.run("sets build keys.txt --kind bloom --secret -o out.tamis").text(0);
    dir.put("more.txt", "11\n");
    dir.run("sets add out.tamis more.txt").text(0);
    dir.run("sets remove out.tamis keys -o less.tamis").text(0);
    for name in ["out.tamis", "less.tamis"] {
        assert_eq!(fs::metadata(dir.path(name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

/// Devices have no end: what is read whole says what it expects, or is refused.
#[cfg(target_os = "linux")]
#[test]
fn a_device_is_not_read_to_its_end() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..10));
    dir.run("build keys.txt -o f.tamis").text(0);
    dir.run("build keys.txt --changing -o c.tamis").text(0);
    for (line, message) in [
        ("slice build /dev/zero keys.txt --slice 0 -o x", "/dev/zero: more than 1,048,576 bytes; expected a plan"),
        ("build /dev/zero -o x", "/dev/zero: line 1: a NUL byte; "),
        ("build /dev/zero --format csv -o x", "/dev/zero: line 1: a NUL byte; "),
        ("build /dev/zero --format text -o x", "/dev/zero: line 1: too long; expected at most 16777216 bytes"),
        ("query /dev/zero keys.txt", "/dev/zero: is a pipe or a device; "),
        ("map build keys.txt --alphabet /dev/zero -o x", "/dev/zero: line 1: too long; "),
        ("add c.tamis /dev/zero", "/dev/zero: line 1: a NUL byte; "),
        ("build keys.txt --secret-file /dev/zero -o x", "--secret-file /dev/zero: not a secret; "),
        ("slice join /dev/zero -o x", "/dev/zero: "),
        ("sets merge /dev/zero /dev/zero -o x", "/dev/zero: "),
    ] {
        let found = dir.run(line);
        assert!(found.code != Some(0) && found.err.starts_with(&format!("tamis: {message}")), "{line}: {}", found.err);
    }
    // A file of ours from standard input, too.
    for line in ["query - --key a", "inspect -", "map get - --key a", "patch - f.tamis -o x"] {
        let run: Run = dir.command(line).stdin(File::open("/dev/zero").unwrap()).output().unwrap().into();
        assert!(run.failure(3).starts_with("standard input: not a tamis file"), "{line}");
    }
}

#[test]
fn an_input_is_never_replaced() {
    let dir = TestDir::new();
    let text = "1\t1\n2\t1\n";
    dir.put("keys.txt", "3\n");
    dir.put("in.tsv", text);
    dir.run("sets build keys.txt -o index.tamis").text(0);
    let index = dir.read("index.tamis");
    fs::hard_link(dir.path("in.tsv"), dir.path("hard.tsv")).unwrap();
    std::os::unix::fs::symlink("hard.tsv", dir.path("soft.tsv")).unwrap();
    for out in ["in.tsv", "./in.tsv", "hard.tsv", "soft.tsv"] {
        for (line, what) in [
            ("build --format text in.tsv", "filter"),
            ("build keys.txt --format text --exclude in.tsv", "filter"),
            ("build keys.txt --workload in.tsv", "filter"),
            ("map build in.tsv", "map"),
            ("map build in.tsv --alphabet in.tsv", "map"),
            ("sets build --format text in.tsv", "index"),
            ("sets build --pairs in.tsv", "index"),
            ("sets add index.tamis --pairs in.tsv", "index"),
            ("sets freeze index.tamis --format text in.tsv", "index"),
        ] {
            let message = dir.error(&format!("{line} -o {out}"));
            assert_eq!(message, format!("-o {out}: is a file of keys; expected another file for the {what}"), "{line}");
        }
        for (line, what) in [
            ("build", "filter"),
            ("build keys.txt --exclude -", "filter"),
            ("map build", "map"),
            ("sets build --pairs", "index"),
            ("sets freeze index.tamis", "index"),
        ] {
            let stdin = File::open(dir.path("in.tsv")).unwrap();
            let run: Run = dir.command(&format!("{line} -o {out}")).stdin(stdin).output().unwrap().into();
            let expected = format!("-o {out}: is standard input; expected another file for the {what}");
            assert_eq!(run.complaint(), expected, "{line}");
        }
    }
    assert_eq!((dir.read("in.tsv"), dir.read("index.tamis")), (text.as_bytes().to_vec(), index));
    // Files that are no lists of keys, and are read.
    dir.put("more.txt", "4\n");
    dir.put("secret", "00112233445566778899aabbccddeeff\n");
    for line in [
        "build keys.txt --exclude more.txt --exact -o base.tamis",
        "diff base.tamis --keys keys.txt --exclude more.txt -o p1",
        "diff base.tamis --patch p1 --keys keys.txt --exclude more.txt -o p2",
        "build keys.txt --exclude more.txt --secret-file secret -o secret.tamis",
        "diff secret.tamis --secret-file secret --keys keys.txt --exclude more.txt -o p3",
        "build keys.txt --changing --secret-file secret -o changing.tamis",
        "sets build keys.txt --kind bloom --secret-file secret -o secretsets.tamis",
        "slice plan keys.txt -o plan.json",
        "slice build plan.json keys.txt --slice 0 -o slice-00000.tamis",
    ] {
        dir.run(&format!("{line} -q")).text(0);
    }
    fs::hard_link(dir.path("p2"), dir.path("p2.link")).unwrap();
    for (line, message) in [
        ("patch base.tamis p1 -o p1", "is a patch; expected another file"),
        ("patch base.tamis p1 p2 -o p2.link", "is a patch; expected another file"),
        ("patch secret.tamis p3 --secret-file secret -o secret", "is the secret; expected another file"),
        (
            "diff base.tamis --keys keys.txt --exclude more.txt -o base.tamis",
            "is the filter or a patch of it; expected another file",
        ),
        (
            "diff base.tamis --patch p1 --keys keys.txt --exclude more.txt -o p1",
            "is the filter or a patch of it; expected another file",
        ),
        (
            "diff secret.tamis --secret-file secret --keys keys.txt --exclude more.txt -o secret",
            "is the secret; expected another file",
        ),
        ("add changing.tamis more.txt --secret-file secret -o secret", "is the secret; expected another file"),
        (
            "add changing.tamis more.txt --secret-file secret -o more.txt",
            "is a file of keys; expected another file for the filter",
        ),
        ("sets add secretsets.tamis more.txt --secret-file secret -o secret", "is the secret; expected another file"),
        ("sets remove secretsets.tamis keys --secret-file secret -o secret", "is the secret; expected another file"),
        (
            "sets freeze secretsets.tamis keys.txt --secret-file secret -o secret",
            "is the secret; expected another file",
        ),
        (
            "sets merge secretsets.tamis secretsets.tamis --secret-file secret -o secret",
            "is the secret; expected another file",
        ),
        (
            "slice build plan.json keys.txt --slice 0 -o plan.json",
            "is a file of keys; expected another file for the slice",
        ),
        (
            "slice join slice-00000.tamis -o slice-00000.tamis",
            "is a file of keys; expected another file for the filter",
        ),
    ] {
        let output = line.rsplit(' ').next().unwrap();
        assert_eq!(dir.error(line), format!("-o {output}: {message}"), "{line}");
    }
    assert_eq!(
        dir.error("plan keys.txt --secret-file secret --html secret"),
        "--html secret: is the secret; expected another file"
    );
    // The old filter may be replaced.
    dir.run("patch base.tamis p1 p2 -o base.tamis").text(0);
    // Standard input that is not read does no harm, and what is no input is replaced.
    let stdin = File::open(dir.path("in.tsv")).unwrap();
    let run: Run = dir.command("build keys.txt -o hard.tsv").stdin(stdin).output().unwrap().into();
    run.text(0);
    assert_eq!(dir.read("in.tsv"), text.as_bytes());
}
