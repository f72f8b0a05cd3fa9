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
    // Standard input that is not read does no harm, and what is no input is replaced.
    let stdin = File::open(dir.path("in.tsv")).unwrap();
    let run: Run = dir.command("build keys.txt -o hard.tsv").stdin(stdin).output().unwrap().into();
    run.text(0);
    assert_eq!(dir.read("in.tsv"), text.as_bytes());
}
