//! inputs and files that are wrong in depth -> an error, and nothing left on the disk.

use crate::test_dir::{TestDir, numbers};

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    let message = dir.error("build keys.txt -o /dev/full");
    assert_eq!(message, "/dev/full: No space left on device (os error 28)");
    dir.run("build keys.txt -o out.tamis").text(0);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    for line in ["query out.tamis keys.txt", "query -c out.tamis keys.txt", "inspect out.tamis"] {
        let run = dir.command(line).stdout(full.try_clone().unwrap()).output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        let expected = "tamis: standard output: No space left on device (os error 28)\n";
        assert_eq!((run.status.code(), message.as_str()), (Some(2), expected), "{line}");
    }
}

/// A line is held in memory whole, so there is a longest one, in every format and behind every compression.
#[test]
fn lines_without_an_end() {
    use std::io::Write;
    let dir = TestDir::new();
    let long = "x".repeat((1 << 24) + 1);
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(format!("one\n{long}").as_bytes()).unwrap();
    dir.put("bomb.txt.gz", gzip.finish().unwrap());
    dir.put("long.txt", format!("one\n{long}\ntwo\n"));
    dir.put("long.csv", format!("one\n\"{long}\"\n"));
    dir.put("wide.csv", format!("one\n{}\n", ",".repeat(1 << 20)));
    dir.put("long.jsonl", format!("\"one\"\n\"{long}\"\n"));
    dir.put("long.tsv", format!("one\t1\n{long}\t2\n"));
    dir.put("good.txt", "x".repeat(1 << 24));
    let line = "line 2: too long; expected at most 16777216 bytes for a line";
    for (command, expected) in [
        ("build long.txt", format!("long.txt: {line}")),
        ("build bomb.txt.gz", format!("bomb.txt.gz: {line}")),
        ("build -0 good.txt --exclude long.txt", format!("long.txt: {}", line.replace("line 2", "record 1"))),
        (
            "build long.csv",
            "long.csv: line 2: too long; expected at most 16777216 bytes for a record; is a quote left open?".into(),
        ),
        ("build wide.csv", "wide.csv: line 2: too many fields; expected at most 1048576 in a record".into()),
        ("build long.jsonl", format!("long.jsonl: {line}")),
        ("build good.txt --workload long.tsv", format!("long.tsv: {line}")),
        ("map build long.tsv", format!("long.tsv: {line}")),
        ("sets build long.txt", format!("long.txt: {line}")),
    ] {
        assert_eq!(dir.error(&format!("{command} --memory 4M -o out.tamis")), expected);
    }
    dir.run("build good.txt -o out.tamis").text(0);
    assert_eq!(dir.run("query -c out.tamis long.txt").err, format!("tamis: long.txt: {line}\n"));
}

#[test]
fn keys_of_the_other_kind() {
    let dir = TestDir::new();
    dir.put("numbers.txt", "1\n2\n");
    dir.put("mixed.jsonl", "1\n\"one\"\n");
    dir.run("build --integers numbers.txt -o numbers.tamis").text(0);
    dir.run("build numbers.txt -o text.tamis").text(0);
    dir.put("words.txt", "one\n");
    let integers = "words.txt: line 1: \"one\" is not an integer; expected -2^63 to 2^64 - 1";
    let text = "--integers: the keys of text.tamis are text; expected text, without this option";
    assert_eq!(dir.error("query numbers.tamis words.txt"), integers);
    assert_eq!(dir.error("verify numbers.tamis --keys words.txt"), integers);
    assert_eq!(dir.error("query --integers text.tamis numbers.txt"), text);
    assert_eq!(dir.error("verify text.tamis --integers --keys numbers.txt"), text);
    let message = dir.error("build mixed.jsonl -o out.tamis");
    let expected = "mixed.jsonl: line 2: found text; expected integers as before (the first at mixed.jsonl line 1)";
    assert_eq!(message, expected);
}

#[test]
fn files_that_are_not_filters() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..1000));
    dir.put("empty", "");
    dir.run("build keys.txt -o good.tamis").text(0);
    let good = dir.read("good.tamis");
    let mark = "not a tamis file: wrong first eight bytes; expected a file that tamis wrote";
    let damaged = "damaged: the checksum of the header and directory does not match";
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        assert_ne!(bytes[at], to);
        bytes[at] = to;
        bytes
    };
    let last = good.len() - 1;
    for (bytes, expected) in [
        (vec![], mark),
        (b"one\ntwo\nthree\n".to_vec(), mark),
        (changed(0, 0), mark),
        (changed(8, 9), "format version 9 is not supported by this release; upgrade tamis"),
        // A flag of the front that the footer does not have, and the last byte of the directory.
        (changed(12, 1), damaged),
        (changed(last - 32, good[last - 32] ^ 1), damaged),
        (changed(last - 10, good[last - 10] ^ 1), damaged),
        (
            good[..20].to_vec(),
            "truncated or damaged: the header needs 48 bytes, found 20; copy or build the file again",
        ),
        (good[..last].to_vec(), "truncated or damaged: the footer needs "),
        (good[..good.len() / 2].to_vec(), "truncated or damaged: the footer needs "),
        ([&good[..], b"more"].concat(), "truncated or damaged: the footer needs "),
    ] {
        dir.put("bad.tamis", bytes);
        for line in ["inspect bad.tamis", "verify bad.tamis", "query bad.tamis keys.txt"] {
            let message = dir.run(line).failure(3);
            assert!(message.starts_with(&format!("bad.tamis: {expected}")), "{line}: {message}");
            assert_eq!(message.matches("tamis: ").count(), 1, "said twice: {message}");
        }
    }
    // Damage inside the payload is found by every command, unless --no-verify is given.
    dir.put("bad.tamis", changed(60, good[60] ^ 1));
    dir.run("inspect bad.tamis --no-verify").text(0);
    for line in
        ["inspect bad.tamis", "query bad.tamis keys.txt", "verify bad.tamis", "verify bad.tamis --keys keys.txt"]
    {
        assert_eq!(
            dir.run(line).failure(3),
            "bad.tamis: damaged: the checksum of the payload does not match; copy or build the file again"
        );
    }
}
