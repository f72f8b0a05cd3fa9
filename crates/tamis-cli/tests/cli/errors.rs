//! every way to be wrong -> one line that names what is at fault and what was expected, the exit code, and nothing left on the disk.

use serde_json::{Value, json};

use crate::test_dir::{Run, TestDir, numbers};

/// Lists, tables, files of every form, and files that are not what they were.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..1000));
    dir.put("excluded.txt", numbers(1000..1100));
    dir.put("both.txt", "7\n2000\n8\n");
    dir.put("words.txt", "one\ntwo\n");
    dir.put("t.csv", "key,part\na,x\nb,y\n");
    dir.put("ragged.csv", "a,b\n1,2,3\n");
    dir.put("open.csv", "\"a\nb\n");
    dir.put("t.jsonl", "{\"key\":\"a\"}\n{\"key\":1}\n");
    dir.put("bad.jsonl", "{\"key\":\n");
    dir.put("visits.tsv", "a\t3\nb\t-3\n");
    dir.put("good.tsv", "a\t3\nb\t4\n");
    dir.put("pairs.tsv", "a\tred\nb\tblue\na\tgreen\n");
    dir.put("s.fa", ">s\nACGTACGT\n");
    dir.put("not.parquet", "PAR0");
    dir.put("archive.txt", b"PK\x03\x04....");
    dir.put("good.secret", "00112233445566778899aabbccddeeff\n");
    dir.put("wrong.secret", "00112233445566778899aabbccddeefe\n");
    for line in [
        "build keys.txt -o f.tamis",
        "build --integers keys.txt -o ints.tamis",
        "build t.csv --column key --partition-column part -o parts.tamis",
        "map build good.tsv -o map.tamis",
        "sets build words.txt keys.txt -o sets.tamis",
        "sets build s.fa --kmer 5 -o kmers.tamis",
        "build keys.txt --secret-file good.secret -o keyed.tamis",
        "map build good.tsv --secret-file good.secret -o keyedmap.tamis",
        "sets build words.txt --secret-file good.secret -o keyedsets.tamis",
    ] {
        dir.run(line).text(0);
    }
    let good = dir.read("f.tamis");
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 16;
        bytes
    };
    dir.put("payload.tamis", changed(100));
    dir.put("header.tamis", changed(20));
    dir.put("version.tamis", changed(8));
    dir.put("cut.tamis", &good[..good.len() - 7]);
    dir.put("head.tamis", &good[..20]);
    dir.put("empty.tamis", "");
    dir
}

/// Command line, exit code, subject, and a part of what is said of it.
const ERRORS: &[(&str, i32, &str, &str)] = &[
    // Values that no option takes.
    ("build keys.txt -o x --fpr 0", 2, "--fpr 0: ", "out of range; expected a share above 0 and at most 1"),
    ("build keys.txt -o x --fpr 2", 2, "--fpr 2: ", "out of range"),
    ("build keys.txt -o x --fpr 1", 2, "--fpr 1: ", "expected a share below 1"),
    ("build keys.txt -o x --fpr -0.5", 2, "--fpr -0.5: ", "out of range"),
    ("build keys.txt -o x --fpr nan", 2, "--fpr nan: ", "not a number"),
    ("build keys.txt -o x --fpr 101%", 2, "--fpr 101%: ", "out of range"),
    ("build keys.txt -o x --fpr %", 2, "--fpr %: ", "not a number; expected a share above 0"),
    ("build keys.txt -o x --bits-per-key 0", 2, "--bits-per-key 0: ", "expected bits above 0 and at most 4096"),
    ("build keys.txt -o x --bits-per-key 5000", 2, "--bits-per-key 5000: ", "out of range"),
    ("build keys.txt -o x --kind nonsense", 2, "--kind nonsense: ", "expected auto, ribbon, "),
    ("build keys.txt -o x --effort none", 2, "--effort none: ", "expected fast, balanced or smallest"),
    ("build keys.txt -o x --layout flat", 2, "--layout flat: ", "expected auto, compact or local"),
    ("build keys.txt -o x --memory 1M", 2, "--memory 1M: ", "expected at least 4M"),
    ("build keys.txt -o x --memory 2X", 2, "--memory 2X: ", "unknown unit \"X\"; expected K, M, G or T"),
    ("build keys.txt -o x --disk 1.2.3", 2, "--disk 1.2.3: ", "not a number; expected 1 to 2^60 bytes"),
    ("build keys.txt -o x --threads 0", 2, "--threads 0: ", "out of range; expected 1 to 1024"),
    ("build keys.txt -o x --threads 65535", 2, "--threads 65535: ", "out of range; expected 1 to 1024"),
    ("build keys.txt -o x --seed=-1", 2, "--seed -1: ", "not a whole number; expected 0 to 2^64 - 1"),
    ("build keys.txt -o x --format xml", 2, "--format xml: ", "expected text, csv, tsv, jsonl or parquet"),
    ("build keys.txt -o x --capacity many", 2, "--capacity many: ", "expected a number of keys"),
    (
        "build keys.txt -o x --kind cuckoo --capacity 2199023255552",
        2,
        "--capacity 2199023255552: ",
        "out of range; expected 1,000 to 1,001,000",
    ),
    (
        "sets build words.txt -o x --kind cuckoo --capacity 2199023255552",
        2,
        "--capacity 2199023255552: ",
        "out of range; expected 0 to 4,294,967,296",
    ),
    (
        "build keys.txt -o x --exclude excluded.txt --on-conflict no",
        2,
        "--on-conflict no: ",
        "expected error, keep or drop",
    ),
    ("map build good.tsv -o x --fpr 1e-10", 2, "--fpr 1e-10: ", "expected a share from 2^-32 to below 1"),
    ("map build good.tsv -o x --fpr 1", 2, "--fpr 1: ", "expected a share from 2^-32 to below 1"),
    ("map build good.tsv -o x --fpr 0.1 --unchecked", 2, "--fpr: ", "cannot be used with --unchecked; expected one"),
    ("map build good.tsv -o x --width 0", 2, "--width 0: ", "out of range; expected 1 to 64"),
    ("sets build s.fa -o x --kmer 32", 2, "--kmer 32: ", "out of range; expected 1 to 31"),
    ("sets build words.txt -o x --false-sets 0", 2, "--false-sets 0: ", "out of range; expected a number above 0"),
    ("sets query kmers.tamis s.fa --threshold 1.1", 2, "--threshold 1.1: ", "expected a share from 0 to 1"),
    ("completions csh", 2, "SHELL csh: ", "expected bash, "),
    // Options that are unknown, missing, or given twice.
    ("query", 2, "FILTER: ", "missing; expected <FILTER>"),
    ("biuld", 2, "biuld: ", "unknown command; expected one of --help; try build"),
    ("build keys.txt -o x --fp 2", 2, "--fp: ", "unknown option; expected one of --help; try --fpr"),
    ("build keys.txt", 2, "--output: ", "missing; expected --output <FILE>"),
    ("build keys.txt -o", 2, "--output: ", "no value; expected --output <FILE>"),
    ("build keys.txt -o x --fpr 0.1 --fpr 0.2", 2, "--fpr: ", "given twice; expected once"),
    ("build keys.txt -o x --trim --trim", 2, "--trim: ", "given twice; expected once"),
    ("inspect f.tamis ints.tamis", 2, "ints.tamis: ", "one argument too many; expected options"),
    // Goals that exclude one another, or that nothing reaches.
    ("build keys.txt -o x --fpr 0.1 --bits-per-key 9", 2, "--fpr, --bits-per-key: ", "two goals; expected one"),
    (
        "build keys.txt -o x --exact --bits-per-key 9",
        2,
        "--exact: ",
        "cannot be used with --bits-per-key; expected one",
    ),
    ("build keys.txt -o x --exact", 2, "--exact: ", "no key is excluded, so every key would match; expected --exclude"),
    (
        "build keys.txt -o x --bits-per-key 0.01",
        2,
        "--bits-per-key 0.01: ",
        "too small for 1,000 keys; expected at least ",
    ),
    (
        "build keys.txt -o x --kind fuse --exclude excluded.txt",
        2,
        "--kind fuse: ",
        "cannot exclude keys; expected steered",
    ),
    (
        "build keys.txt -o x --capacity 2000",
        2,
        "--capacity: ",
        "keys cannot be inserted with --kind auto; expected bloom",
    ),
    (
        "build keys.txt -o x --fpr 1e-12 --kind cuckoo",
        2,
        "--fpr 1e-12: ",
        "too small for --kind cuckoo; expected at least",
    ),
    (
        "build keys.txt -o x --fpr 1e-15 --kind quotient",
        2,
        "--fpr 1e-15: ",
        "too small for a quotient filter of 1,000 keys; expected a larger --fpr or fewer keys",
    ),
    (
        "sets build words.txt -o x --kind frozen --bits-per-pair 9",
        2,
        "--bits-per-pair: ",
        "not possible with --kind frozen; expected bloom",
    ),
    // Options that cannot matter.
    ("build keys.txt -o x --delta 0.3", 2, "--delta: ", "no effect; expected --kind cascade"),
    ("plan keys.txt --layers 3", 2, "--layers: ", "no effect; expected --kind cascade"),
    ("build keys.txt -o x --kind cascade --delta 1", 2, "--delta 1: ", "out of range; expected a number above 0 and"),
    ("build keys.txt -o x --kind cascade --delta nan", 2, "--delta nan: ", "not a number; expected a number above 0"),
    ("build keys.txt -o x --kind cascade --layers 65", 2, "--layers 65: ", "out of range; expected 1 to 64"),
    ("build keys.txt -o x --kind cascade --layers 0", 2, "--layers 0: ", "out of range; expected 1 to 64"),
    ("build keys.txt -o x --layout local", 2, "--layout: ", "no effect on members alone; expected --exclude"),
    (
        "sets build words.txt -o x --kind frozen --no-existence",
        2,
        "--no-existence: ",
        "no effect with --kind frozen; expected bloom",
    ),
    (
        "sets build words.txt -o x --kind frozen --member-false-sets 1",
        2,
        "--member-false-sets: ",
        "no effect with --kind frozen; expected",
    ),
    ("build keys.txt -o x --on-conflict keep", 2, "--exclude: ", "missing; expected --exclude <FILE>"),
    ("build keys.txt -o x --workload-fpr 0.1", 2, "--workload: ", "missing; expected --workload <FILE>"),
    ("build keys.txt -o x --unlisted-share 0.1", 2, "--workload: ", "missing; expected --workload <FILE>"),
    ("build keys.txt -o x --excluded-fpr 0.1", 2, "--exclude: ", "missing; expected --exclude <FILE>"),
    ("build keys.txt -o x --column key", 2, "--column: ", "keys.txt is text, which has no columns; expected a .csv"),
    ("query f.tamis keys.txt --column key", 2, "--column: ", "keys.txt is text, which has no columns; expected a .csv"),
    (
        "build t.csv --column key -0 -o x",
        2,
        "-0: ",
        "t.csv is a table, whose keys end as its format says; expected text",
    ),
    ("build keys.txt -o x --lowercase --integers", 2, "--lowercase: ", "cannot be used with --integers; expected one"),
    ("build t.csv -o x --partition-column part", 2, "--column: ", "missing; expected --column <NAME>"),
    ("build keys.txt -o x --secret --seed 1", 2, "--secret: ", "cannot be used with --seed; expected one of them"),
    ("query f.tamis -n -c keys.txt", 2, "--line-number: ", "cannot be used with --count; expected one of them"),
    ("query f.tamis --rows --tsv keys.txt", 2, "--rows: ", "cannot be used with --tsv; expected one of them"),
    ("query f.tamis -q -c keys.txt", 2, "--quiet: ", "cannot be used with --count; expected one of them"),
    ("query f.tamis --key one keys.txt", 2, "--key: ", "cannot be used with KEYS; expected one of them"),
    ("verify f.tamis --keys keys.txt --on-conflict keep", 2, "--exclude: ", "missing; expected --exclude <FILE>"),
    ("inspect f.tamis --names", 2, "--names: ", "f.tamis is no set index; expected one"),
    (
        "sets query sets.tamis words.txt --threshold 0.5",
        2,
        "--threshold: ",
        "are no k-mers; expected an index of k-mers",
    ),
    ("sets query kmers.tamis --key ACGTA", 2, "--key: ", "are k-mers; expected FASTA or FASTQ files"),
    ("sets build s.fa --kmer 5 --trim -o x", 2, "--trim: ", "not possible with sequences; expected FASTA or FASTQ"),
    (
        "map build good.tsv -o x --width 8 --values text",
        2,
        "--width: ",
        "not possible with --values text; expected numbers",
    ),
    ("build keys.txt -o x --shard-bytes 1K", 2, "--shard-bytes 1K: ", "out of range; expected 4K to 1G"),
    ("build keys.txt -o x --shard-bytes 2G", 2, "--shard-bytes 2G: ", "out of range; expected 4K to 1G"),
    // Secrets outside the file.
    (
        "build keys.txt -o x --secret --secret-file y",
        2,
        "--secret: ",
        "cannot be used with --secret-file; expected one",
    ),
    ("build keys.txt -o x --seed 1 --secret-file y", 2, "--seed: ", "cannot be used with --secret-file; expected one"),
    ("build keys.txt -o x --secret-file words.txt", 2, "--secret-file words.txt: ", "expected 32 hexadecimal digits"),
    ("build keys.txt -o x --secret-file tmp", 2, "--secret-file tmp: ", "expected 32 hexadecimal digits"),
    ("build keys.txt -o x --secret-file none/y", 2, "--secret-file none/y: ", "expected a file that can be written"),
    ("build keys.txt -o x --secret-file x", 2, "--secret-file x: ", "is the file to build; expected another one"),
    ("map build pairs.tsv -o x", 2, "pairs.tsv line 1 and pairs.tsv line 3: ", "expected one value"),
    ("query keyed.tamis keys.txt", 2, "keyed.tamis: ", "its secret is not in the file; expected --secret-file FILE"),
    ("verify keyed.tamis", 2, "keyed.tamis: ", "its secret is not in the file; expected --secret-file FILE"),
    ("inspect keyed.tamis", 2, "keyed.tamis: ", "its secret is not in the file; expected --secret-file FILE"),
    ("map get keyedmap.tamis --key a", 2, "keyedmap.tamis: ", "its secret is not in the file; expected --secret-file"),
    ("sets query keyedsets.tamis --key one", 2, "keyedsets.tamis: ", "not in the file; expected --secret-file FILE"),
    ("query keyed.tamis keys.txt --secret-file none", 2, "--secret-file none: ", "no such file; expected the one"),
    ("query keyed.tamis keys.txt --secret-file words.txt", 2, "--secret-file words.txt: ", "not a secret; expected 32"),
    (
        "query f.tamis keys.txt --secret-file good.secret",
        2,
        "--secret-file: ",
        "f.tamis was built without it; expected",
    ),
    ("query keyed.tamis --key 5 --secret-file wrong.secret", 3, "keyed.tamis: ", "wrong secret; expected the one that"),
    ("verify keyed.tamis --secret-file wrong.secret", 3, "keyed.tamis: ", "wrong secret; expected the one that"),
    ("inspect keyed.tamis --secret-file wrong.secret", 3, "keyed.tamis: ", "wrong secret; expected the one that"),
    ("map get keyedmap.tamis --key a --secret-file wrong.secret", 3, "keyedmap.tamis: ", "wrong secret; expected"),
    ("map verify keyedmap.tamis --secret-file wrong.secret", 3, "keyedmap.tamis: ", "wrong secret; expected"),
    (
        "sets query keyedsets.tamis --key one --secret-file wrong.secret",
        3,
        "keyedsets.tamis: ",
        "wrong secret; expected",
    ),
    ("sets verify keyedsets.tamis --secret-file wrong.secret", 3, "keyedsets.tamis: ", "wrong secret; expected"),
    ("sets add keyedsets.tamis keys.txt --secret-file wrong.secret", 3, "keyedsets.tamis: ", "wrong secret; expected"),
    ("sets remove keyedsets.tamis words --secret-file wrong.secret", 3, "keyedsets.tamis: ", "wrong secret; expected"),
    (
        "sets freeze keyedsets.tamis words.txt -o x --secret-file wrong.secret",
        3,
        "keyedsets.tamis: ",
        "wrong secret; expected the one that the file was built with",
    ),
    (
        "sets merge keyedsets.tamis sets.tamis -o x --secret-file wrong.secret",
        3,
        "keyedsets.tamis: ",
        "wrong secret; expected the one that the file was built with",
    ),
    // Paths.
    ("build missing.txt -o x", 2, "missing.txt: ", "no such file; expected a file of keys"),
    ("build tmp -o x", 2, "tmp: ", "no files in the directory; expected one at least"),
    ("build keys.txt -o none/x", 2, "-o none/x: ", "no directory none; expected one that exists"),
    ("build keys.txt -o tmp", 2, "-o tmp: ", "is a directory; expected a file to write"),
    ("build keys.txt -o keys.txt", 2, "-o keys.txt: ", "is a file of keys; expected another file for the filter"),
    ("build keys.txt -o x --tmp none", 2, "--tmp none: ", "no such directory; expected one for temporary files"),
    ("build - - -o x", 2, "-: ", "standard input is given twice; expected it once"),
    ("query - -", 2, "-: ", "standard input is given twice; expected it once"),
    ("query missing.tamis keys.txt", 2, "missing.tamis: ", "no such file; expected a filter file"),
    ("query f.tamis missing.txt", 2, "missing.txt: ", "no such file; expected a file of keys"),
    (
        "query f.tamis google.com",
        2,
        "google.com: ",
        "no such file; to query this key: tamis query f.tamis --key google.com",
    ),
    ("inspect tmp", 2, "tmp: ", "is a directory; expected a tamis file"),
    ("man -o none", 2, "-o none: ", "no such directory; expected one for the pages"),
    // Files of keys that are not what they should be.
    ("build t.csv -o x", 2, "t.csv: ", "has 2 columns (\"key\", \"part\"); expected one; choose with --column NAME"),
    ("build t.csv --column name -o x", 2, "t.csv: ", "no column \"name\"; expected one of \"key\", \"part\""),
    ("build t.csv --column #9 -o x", 2, "t.csv: ", "no column #9; expected #1 to #2"),
    ("build ragged.csv --column #1 -o x", 2, "ragged.csv: line 2: ", "3 fields; expected 2 as in the first row"),
    ("build open.csv -o x", 2, "open.csv: line 1: ", "a quoted field does not end; expected a closing quote"),
    ("build t.jsonl -o x", 2, "t.jsonl: line 2: ", "found integers; expected text as before"),
    ("build bad.jsonl -o x", 2, "bad.jsonl: line 1: ", "expected a JSON value"),
    (
        "build --integers words.txt -o x",
        2,
        "words.txt: line 1: ",
        "\"one\" is not an integer; expected -2^63 to 2^64 - 1",
    ),
    ("query ints.tamis --key one", 2, "--key: argument 1: ", "\"one\" is not an integer; expected -2^63 to 2^64 - 1"),
    ("build keys.txt --workload visits.tsv --bits-per-key 8 -o x", 2, "visits.tsv: line 2: ", "weight"),
    ("build not.parquet -o x", 2, "not.parquet: ", "expected a parquet file"),
    ("build archive.txt -o x", 2, "archive.txt: ", "is a zip archive; expected lines of text; unpack it first"),
    (
        "map build pairs.tsv -o x",
        2,
        "pairs.tsv line 1 and pairs.tsv line 3: ",
        "1 key has two values; expected one value",
    ),
    ("map build words.txt -o x", 2, "words.txt: line 1: ", "\"one\" has no tab; expected key<TAB>value"),
    ("map build t.csv -o x", 2, "t.csv: ", "a table; expected --column NAME and --value-column NAME"),
    ("sets build -o x", 2, "FILE: ", "missing; expected one for every set"),
    ("sets build s.fa -o x", 2, "s.fa: ", "sequences; expected --kmer K"),
    ("sets remove sets.tamis nothing", 2, "sets.tamis: ", "no set \"nothing\"; expected names of its sets"),
    // Queries that a file does not answer.
    ("query --integers f.tamis keys.txt", 2, "--integers: ", "the keys of f.tamis are text; expected text"),
    ("query parts.tamis keys.txt", 2, "parts.tamis: ", "the filter is partitioned; expected --partition NAME"),
    ("query f.tamis --partition x keys.txt", 2, "f.tamis: ", "the filter is not partitioned; expected keys without"),
    (
        "query parts.tamis --partition z --key a",
        5,
        "parts.tamis: ",
        "no partition \"z\"; expected one of its 2 partitions",
    ),
    ("query map.tamis keys.txt", 2, "map.tamis: ", "holds a map; expected a filter; use tamis map"),
    ("map get f.tamis keys.txt", 2, "f.tamis: ", "holds a filter; expected a map; use tamis query"),
    ("sets query f.tamis words.txt", 2, "f.tamis: ", "holds a filter; expected a set index"),
    ("verify sets.tamis", 2, "sets.tamis: ", "holds a set index; expected a filter; use tamis sets"),
];

/// Command lines that read a damaged or unsupported file.
const FILES: &[(&str, &str)] = &[
    ("payload.tamis", "checksum"),
    ("header.tamis", ""),
    ("version.tamis", "version"),
    ("cut.tamis", ""),
    ("head.tamis", ""),
    ("empty.tamis", "not a tamis file"),
    ("words.txt", "not a tamis file"),
];

/// What is wrong with the message of a run that must fail with this code: it is one line.
fn check(run: Run, code: i32, subject: &str, part: &str) -> Result<String, String> {
    let message = run.err.strip_prefix("tamis: ").and_then(|message| message.strip_suffix('\n'));
    let message = message.filter(|message| !message.contains('\n') && !message.ends_with('.') && run.out.is_empty());
    let right = |message: &&str| run.code == Some(code) && message.starts_with(subject) && message.contains(part);
    message.filter(right).map(str::to_string).ok_or(format!("{:?} {}", run.code, run.err))
}

#[test]
fn every_error_says_what_is_at_fault() {
    let dir = dir();
    let before = dir.names();
    let mut wrong = vec![];
    for &(line, code, subject, part) in ERRORS {
        match check(dir.run(line), code, subject, part) {
            Ok(message) if message.contains("expected ") || message.contains("to query this key: ") => {}
            Ok(message) | Err(message) => wrong.push(format!("{line}: {message}")),
        }
    }
    for (file, part) in FILES {
        for line in ["inspect", "query", "verify"] {
            let run = check(dir.run(&format!("{line} {file}")), 3, &format!("{file}: "), part);
            wrong.extend(run.err().map(|message| format!("{line} {file}: {message}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(dir.names(), before);
    assert!(ERRORS.len() + FILES.len() >= 50);
}

/// With --json the same message is a field of an object.
#[test]
fn errors_are_json_with_the_option() {
    let dir = dir();
    let before = dir.names();
    for &(line, code, subject, _) in ERRORS {
        let text = dir.run(line).err;
        let run = dir.run(&format!("{line} --json"));
        assert_eq!((run.code, run.out.len()), (Some(code), 0), "{line}");
        let object: Value = serde_json::from_str(&run.err).unwrap();
        let command = match line.split(' ').next() {
            Some("map" | "sets") => line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" "),
            first => first.unwrap_or_default().to_string(),
        };
        assert_eq!(object["command"], command);
        assert_eq!((&object["schema"], &object["form"]), (&json!(1), &json!(null)), "{line}");
        let error = &object["error"];
        assert_eq!(error["code"], code, "{line}");
        // Some commands have no such option, and say so.
        let message = error["message"].as_str().unwrap();
        let unknown = message.contains("--json");
        assert!(unknown || format!("tamis: {message}\n") == text, "{line}: {message}");
        assert!(unknown || message.starts_with(subject), "{line}: {message}");
    }
    let run = dir.run("inspect cut.tamis --json");
    let object: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!((run.code, &object["error"]["kind"]), (Some(3), &json!("file")));
    assert_eq!(dir.names(), before);
}

#[test]
fn conflicts_are_listed_with_their_keys() {
    let dir = dir();
    let line = "build keys.txt --exclude both.txt -o x";
    let run = dir.run(line);
    let expected = "tamis: --exclude: 2 keys are also members, first \"7\" (keys.txt line 8, both.txt line 1); expected none; \
                    use --on-conflict keep (they stay members) or drop (they are excluded), or --secret if the two keys differ\n\
                    tamis: conflict: \"7\" (keys.txt line 8, both.txt line 1)\n\
                    tamis: conflict: \"8\" (keys.txt line 9, both.txt line 3)\n";
    assert_eq!((run.code, run.err.as_str()), (Some(4), expected));
    let run = dir.run(&format!("{line} --json"));
    let object: Value = serde_json::from_str(&run.err).unwrap();
    let place = |file: &str, line: u64| json!({ "file": file, "unit": "line", "position": line });
    let first = json!({ "key": "7", "member_at": place("keys.txt", 8), "excluded_at": place("both.txt", 1) });
    assert_eq!((run.code, &object["error"]["kind"]), (Some(4), &json!("conflict")));
    assert_eq!(object["error"]["conflict_list"][0], first);
    // Keys of standard input cannot be read again, those of the other list can.
    let run = dir.feed("build --exclude both.txt -o x", numbers(0..10));
    assert!(run.err.contains("tamis: conflict: \"7\" (standard input line 8, both.txt line 1)\n"), "{}", run.err);
    for (what, matches) in [("keep", "7\n8\n"), ("drop", "")] {
        dir.run(&format!("{line} --fpr 1e-9 --on-conflict {what} --quiet")).text(0);
        assert_eq!(dir.run("query x both.txt").text(i32::from(matches.is_empty())), matches);
        dir.run(&format!("verify x --keys keys.txt --exclude both.txt --on-conflict {what}")).text(0);
        let run = dir.run("verify x --keys keys.txt --exclude both.txt");
        assert_eq!((run.code, run.err.lines().count()), (Some(4), 3), "{}", run.err);
        let other = if what == "keep" { "drop" } else { "keep" };
        dir.run(&format!("verify x --keys keys.txt --exclude both.txt --on-conflict {other}")).text(1);
    }
}
