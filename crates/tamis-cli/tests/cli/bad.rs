//! what is wrong -> one line that says so, exit code 2, and nothing left on the disk.

use crate::test_dir::{TestDir, numbers};

#[test]
fn words_of_the_command_line() {
    let dir = TestDir::new();
    let share = "expected a share between 0 and 1, like 0.01, or 1 for no limit";
    let bits = "expected a number of bits between 0 and 4096, like 9.5";
    let kinds =
        &format!("expected one of {}", tamis::Kind::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
    assert!(kinds.contains("auto, ribbon, ") && kinds.contains("cuckoo, quotient, steered, chained, "));
    let sizes = "is not a number of bytes like 512M or 2G";
    for (option, value, expected) in [
        ("--fpr <P>", "0", share),
        ("--fpr <P>", "2", share),
        ("--fpr <P>", "-0.5", share),
        ("--fpr <P>", "nan", share),
        ("--fpr <P>", "inf", share),
        ("--fpr <P>", "1%", share),
        ("--bits-per-key <B>", "0", bits),
        ("--bits-per-key <B>", "-3", bits),
        ("--bits-per-key <B>", "5000", bits),
        ("--kind <KIND>", "nonsense", kinds),
        ("--effort <EFFORT>", "nonsense", "expected fast, balanced or smallest"),
        ("--layout <LAYOUT>", "nonsense", "expected auto, compact or local"),
        ("--memory <SIZE>", "nonsense", "unknown unit \"nonsense\", expected K, M, G or T"),
        ("--memory <SIZE>", "2X", "unknown unit \"X\", expected K, M, G or T"),
        ("--memory <SIZE>", "1M", "expected 4M at least"),
        ("--memory <SIZE>", "1", "expected 4M at least"),
        ("--disk <SIZE>", "1.2.3", &format!("\"1.2.3\" {sizes}")),
        ("--threads <N>", "0", "0 is not in 1..=1024"),
        ("--threads <N>", "65535", "65535 is not in 1..=1024"),
        ("--format <FORMAT>", "xml", "unknown format \"xml\", expected text, csv, tsv, jsonl or parquet"),
    ] {
        let name = option.split(' ').next().unwrap();
        let message = dir.error(&format!("build -o out.tamis {name} {value}"));
        assert_eq!(message, format!("invalid value '{value}' for '{option}': {expected}; see --help"));
    }
    for (line, expected) in [
        ("build keys.txt", "the following required arguments were not provided: --output <FILE>; see --help"),
        ("build -o", "a value is required for '--output <FILE>' but none was supplied; see --help"),
        ("build -o x --fp 2", "unexpected argument '--fp' found; a similar argument exists: '--fpr'; see --help"),
        ("query --json -v x", "the argument '--json' cannot be used with '--invert'; see --help"),
        ("biuld", "unrecognized subcommand 'biuld'; a similar subcommand exists: 'build'; see --help"),
    ] {
        assert_eq!(dir.error(line), expected);
    }
}

#[test]
fn inputs_and_outputs_that_are_not_there() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\n");
    for (line, expected) in [
        ("build missing.txt -o out.tamis", "missing.txt: no such file"),
        ("build keys.txt missing.txt -o out.tamis", "missing.txt: no such file"),
        ("build tmp -o out.tamis", "tmp: is a directory, expected a file of keys"),
        ("build - - -o out.tamis", "standard input (-) can be read only once"),
        ("build keys.txt -o tmp", "tmp: is a directory, expected a file to write"),
        ("build keys.txt -o none/out.tamis", "none/out.tamis: no such directory: none"),
        ("build keys.txt -o out.tamis --tmp none", "none: no such directory, expected one for temporary files"),
        ("inspect tmp", "tmp: is a directory, expected a filter file"),
        ("verify tmp", "tmp: is a directory, expected a filter file"),
        ("query tmp keys.txt", "tmp: is a directory, expected a filter file"),
        ("query missing.tamis keys.txt", "missing.tamis: no such file"),
    ] {
        assert_eq!(dir.error(line), expected);
    }
    if cfg!(unix) {
        let expected = "/dev/null: is a pipe or a device, expected a filter file, which is read at any place";
        assert_eq!(dir.error("inspect /dev/null"), expected);
    }
    dir.run("build keys.txt -o out.tamis").text(0);
    assert_eq!(dir.error("query out.tamis none"), "none: no such file");
    assert_eq!(dir.error("verify out.tamis --keys tmp"), "tmp: is a directory, expected a file of keys");
}

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
    let line = "line 2: longer than 16777216 bytes, the limit for a line";
    for (command, expected) in [
        ("build long.txt", format!("long.txt: {line}")),
        ("build bomb.txt.gz", format!("bomb.txt.gz: {line}")),
        ("build -0 good.txt --exclude long.txt", format!("long.txt: {}", line.replace("line 2", "record 1"))),
        (
            "build long.csv",
            "long.csv: line 2: longer than 16777216 bytes, the limit for a record; is a quote left open?".into(),
        ),
        ("build wide.csv", "wide.csv: line 2: more than 1048576 fields, the limit for a record".into()),
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
    let integers =
        "numbers.tamis: the filter holds integers, and the keys are text; with --integers they are read as numbers";
    let text = "text.tamis: the filter holds text, and the keys are integers; expected text, without --integers";
    assert_eq!(dir.error("query numbers.tamis numbers.txt"), integers);
    assert_eq!(dir.error("verify numbers.tamis --keys numbers.txt"), integers);
    assert_eq!(dir.error("query --integers text.tamis numbers.txt"), text);
    assert_eq!(dir.error("verify text.tamis --integers --keys numbers.txt"), text);
    let message = dir.error("build mixed.jsonl -o out.tamis");
    let expected =
        "mixed.jsonl: line 2: found text, but the keys before are integers (the first at mixed.jsonl line 1)";
    assert_eq!(message, expected);
}

#[test]
fn files_that_are_not_filters() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..1000));
    dir.put("empty", "");
    dir.run("build keys.txt -o good.tamis").text(0);
    let good = dir.read("good.tamis");
    let mark = "not a tamis file (the first eight bytes are not its mark)";
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
        (changed(20, 1), damaged),
        (changed(32, 1), damaged),
        (changed(last - 10, good[last - 10] ^ 1), damaged),
        (
            good[..20].to_vec(),
            "truncated or damaged: the header needs 72 bytes, found 20; copy or build the file again",
        ),
        (good[..last].to_vec(), "truncated or damaged: the footer needs "),
        (good[..good.len() / 2].to_vec(), "truncated or damaged: the footer needs "),
        ([&good[..], b"more"].concat(), "truncated or damaged: the footer needs "),
    ] {
        dir.put("bad.tamis", bytes);
        for line in ["inspect bad.tamis", "verify bad.tamis", "query bad.tamis keys.txt"] {
            let message = dir.error(line);
            assert!(message.starts_with(&format!("bad.tamis: {expected}")), "{line}: {message}");
            assert_eq!(message.matches("tamis: ").count(), 1, "said twice: {message}");
        }
    }
    // Damage inside the payload is looked for by every command, unless told otherwise.
    dir.put("bad.tamis", changed(60, good[60] ^ 1));
    dir.run("inspect bad.tamis --no-verify").text(0);
    for line in [
        "inspect bad.tamis",
        "query bad.tamis keys.txt",
        "verify bad.tamis",
        "verify --json bad.tamis",
        "verify bad.tamis --keys keys.txt",
    ] {
        assert_eq!(dir.error(line), "bad.tamis: damaged: the checksum of the payload does not match");
    }
}
