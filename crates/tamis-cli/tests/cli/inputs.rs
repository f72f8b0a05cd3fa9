//! files that are no lists, or that other programs wrote -> what they are taken for, an error that names it, or a warning.

use std::fs;

use crate::formats::{gzip, parquet_table, xz, zst};
use crate::test_dir::TestDir;

/// An archive with one file; `magic` is what modern ones have behind the old header.
fn tar(name: &str, text: &str, magic: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    let fields = [(100, "0000644\0".into()), (124, format!("{:011o}\0", text.len())), (136, format!("{:011o}\0", 0))];
    fields.iter().for_each(|(at, field)| block[*at..at + field.len()].copy_from_slice(field.as_bytes()));
    block[156] = b'0';
    block[257..257 + magic.len()].copy_from_slice(magic);
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend(text.as_bytes());
    block.resize(block.len().next_multiple_of(512) + 1024, 0);
    block
}

fn utf_16(text: &str, big: bool) -> Vec<u8> {
    text.encode_utf16().flat_map(|unit| if big { unit.swap_bytes() } else { unit }.to_le_bytes()).collect()
}

fn utf_32(text: &str, big: bool) -> Vec<u8> {
    let unit = |c| if big { u32::from(c).swap_bytes() } else { u32::from(c) }.to_le_bytes();
    text.chars().flat_map(unit).collect()
}

/// The smallest Windows program that says that it is one.
fn windows_program() -> Vec<u8> {
    let mut bytes = vec![0; 200];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[60] = 128;
    bytes[128..132].copy_from_slice(b"PE\0\0");
    bytes
}

const HOSTS: &str = "one.example\ntwo.example\nthree.example\n";

const TEXT: &str = "; expected lines of text; --format text to read it as lines";
const UNPACK: &str = "; expected lines of text; unpack it first, or --format text to read it as lines";
const CONVERT: &str = "; expected lines of text; convert it to UTF-8, or --format text to read it as lines";
const NUL: &str = ": a NUL byte; expected text; use -0 if NUL bytes end the keys, or --format text to keep them";

/// What is no list: the name of the file, its bytes, and what is said of it behind the name.
fn no_lists() -> Vec<(&'static str, Vec<u8>, String)> {
    let program = fs::read(env!("CARGO_BIN_EXE_tamis")).unwrap();
    let dir = TestDir::new();
    dir.put("keys.txt", HOSTS);
    dir.run("build keys.txt -o f.tamis").text(0);
    let filter = dir.read("f.tamis");
    let list = HOSTS.as_bytes();
    let page = "<!DOCTYPE html>\n<html>\n<head><title>404 Not Found</title></head>\n</html>\n";
    let mut late = HOSTS.repeat(3000).into_bytes();
    late[89_000] = 0;
    let line = late[..89_000].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let mut rows = vec![
        // Archives, and what is packed twice.
        ("a.tar", tar("deny.txt", HOSTS, b"ustar\x0000"), format!("is a tar archive{UNPACK}")),
        ("gnu.tar", tar("deny.txt", HOSTS, b"ustar  \0"), format!("is a tar archive{UNPACK}")),
        ("v7.tar", tar("deny.txt", HOSTS, b""), format!("is a tar archive{UNPACK}")),
        ("deny.tar.gz", gzip(&tar("deny.txt", HOSTS, b"ustar\x0000")), format!("is a tar archive inside gzip{UNPACK}")),
        ("deny.tar.zst", zst(&tar("deny.txt", HOSTS, b"")), format!("is a tar archive inside zstd{UNPACK}")),
        ("a.gz.gz", gzip(&gzip(list)), format!("is gzip data inside gzip{UNPACK}")),
        ("a.zst.xz", xz(&zst(list)), format!("is zstd data inside xz{UNPACK}")),
        ("a.xz.zst", zst(&xz(list)), format!("is xz data inside zstd{UNPACK}")),
        ("a.bz2.gz", gzip(b"BZh91AY&SY...."), format!("is bzip2 data inside gzip{UNPACK}")),
        ("a.zip", b"PK\x03\x04....".to_vec(), format!("is a zip archive{UNPACK}")),
        // Encodings that are not read.
        ("le", utf_16(HOSTS, false), format!("is UTF-16 text without a byte order mark{CONVERT}")),
        ("be", utf_16(HOSTS, true), format!("is UTF-16 text without a byte order mark{CONVERT}")),
        ("le32", utf_32(&format!("\u{feff}{HOSTS}"), false), format!("is UTF-32 text{CONVERT}")),
        ("be32", utf_32(&format!("\u{feff}{HOSTS}"), true), format!("is UTF-32 text{CONVERT}")),
        ("bare32", utf_32(HOSTS, false), format!("is UTF-32 text without a byte order mark{CONVERT}")),
        ("big32", utf_32(HOSTS, true), format!("is UTF-32 text without a byte order mark{CONVERT}")),
        (
            "half",
            [utf_16("\u{feff}one\n", false), vec![0x3e, 0xd8], utf_16("x\n", false)].concat(),
            "line 2: half of a surrogate pair; expected UTF-16, as the file begins".into(),
        ),
        (
            "odd",
            [utf_16("\u{feff}one\ntwo", false), vec![b'x']].concat(),
            "line 2: ends in the middle of a character; expected UTF-16, as the file begins".into(),
        ),
        // Files of ours, programs and documents.
        ("f.tamis.gz", gzip(&filter), "is a tamis filter inside gzip; swapped?".into()),
        ("renamed.txt", filter, "is a tamis filter; swapped?".into()),
        ("elf", [&b"\x7fELF\x02\x01\x01"[..], &[0; 57]].concat(), format!("is an ELF program{TEXT}")),
        ("macho", b"\xcf\xfa\xed\xfe\x07\0\0\x01".to_vec(), format!("is a Mach-O program{TEXT}")),
        ("macho32", b"\xfe\xed\xfa\xce\0\0\0\x07".to_vec(), format!("is a Mach-O program{TEXT}")),
        ("fat", b"\xca\xfe\xba\xbe\0\0\0\x02".to_vec(), format!("is a Mach-O program or a Java class{TEXT}")),
        ("a.exe", windows_program(), format!("is a Windows program{TEXT}")),
        ("a.pdf", b"%PDF-1.7\n%\xe2\xe3\n".to_vec(), format!("is a PDF document{TEXT}")),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec(), format!("is a PNG picture{TEXT}")),
        ("a.db", b"SQLite format 3\0\x10".to_vec(), format!("is an SQLite database{TEXT}")),
        (
            "renamed",
            parquet_table(&["one.example"]),
            "is a Parquet file; expected lines of text; --format parquet, or --format text to read it as lines".into(),
        ),
        ("page", page.into(), format!("is an HTML document{TEXT}")),
        ("page.txt", format!("\u{feff}\r\n <!-- by a tool -->\n{}", &page[16..]).into(), format!("is an HTML document{TEXT}")),
        ("page.gz", gzip(page.as_bytes()), format!("is an HTML document inside gzip{TEXT}")),
        ("s3", b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>".to_vec(), format!("is an XML document{TEXT}")),
        ("error", b"{\"error\":\"not found\"}\n".to_vec(), format!("is a JSON document{TEXT}")),
        ("list.json", b"[\n  \"one.example\",\n  \"two.example\"\n]\n".to_vec(), format!("is a JSON document{TEXT}")),
        ("none.json", b"[]".to_vec(), format!("is a JSON document{TEXT}")),
        ("cut.json", b"{\n  \"hosts\": [\n    \"one.exam".to_vec(), format!("is a JSON document{TEXT}")),
        (
            "long.json",
            format!("[{}\"end\"]", "\"one.example\",\n".repeat(9000)).into(),
            format!("is a JSON document{TEXT}"),
        ),
        (
            "lines.txt",
            b"{\"host\":\"one\"}\n{\"host\":\"two\"}\n".to_vec(),
            "is JSON, a value on each line; expected lines of text; --format jsonl, or --format text to read it as lines".into(),
        ),
        // NUL bytes, wherever they are.
        ("nul", b"one\ntwo\0three\n".to_vec(), format!("line 2{NUL}")),
        ("zeros", vec![0; 100_000], format!("line 1{NUL}")),
        ("late", late, format!("line {line}{NUL}")),
    ];
    if cfg!(target_os = "linux") {
        rows.push(("tamis", program, format!("is an ELF program{TEXT}")));
    }
    rows
}

#[test]
fn what_is_no_list_is_not_read_as_one() {
    let dir = TestDir::new();
    dir.put("keys.txt", HOSTS);
    dir.put("more.txt", "four.example\n");
    dir.run("build keys.txt -o f.tamis").text(0);
    dir.run("build keys.txt --changing -o changing.tamis").text(0);
    dir.run("sets build keys.txt --kind bloom -o sets.tamis").text(0);
    let rows = no_lists();
    for (name, bytes, said) in &rows {
        dir.put(name, bytes);
        // A file of ours is recognised by its name on the command line, before anything is read, and is never a list.
        let is_ours = *name == "renamed.txt";
        let expected = match is_ours {
            true => format!("{name} {said} expected a list of keys"),
            false => format!("{name}: {said}"),
        };
        assert_eq!(dir.error(&format!("build {name} -o out")), expected);
        // As one of several, packed or not, and whatever it is for.
        assert_eq!(dir.error(&format!("build keys.txt more.txt --exclude {name} -o out")), expected);
        // Keys before the wrong line are answered before it is met.
        let run = dir.run(&format!("query f.tamis {name}"));
        assert_eq!((run.code, run.err), (Some(2), format!("tamis: {expected}\n")));
        // What says that it is text is read.
        let forced = dir.run(&format!("build {name} --format text -o out"));
        let is_broken = is_ours || ["half", "odd"].contains(name);
        assert_eq!(forced.code, Some(if is_broken { 2 } else { 0 }), "{name}: {}", forced.err);
        let _ = fs::remove_file(dir.path("out"));
    }
    // Standard input, and every reader of lines.
    let find =
        |wanted: &str| rows.iter().find(|(name, ..)| *name == wanted).map(|(_, bytes, said)| (bytes, said)).unwrap();
    for (name, line) in [
        ("deny.tar.gz", "build - -o out"),
        ("page", "build keys.txt --exclude - -o out"),
        ("a.gz.gz", "build keys.txt --workload - -o out"),
        ("a.tar", "plan -"),
        ("nul", "query f.tamis"),
        ("elf", "verify f.tamis --keys -"),
        ("page", "add changing.tamis -"),
        ("page", "exclude changing.tamis -"),
        ("be", "remove changing.tamis -"),
        ("error", "map build - -o out"),
        ("page", "sets build --pairs - -o out"),
        ("a.tar", "sets build one=- -o out"),
        ("list.json", "sets query sets.tamis -"),
        ("a.pdf", "slice plan - -o out"),
        ("f.tamis.gz", "build --learn keys.txt --exclude - -o out"),
        ("renamed.txt", "query f.tamis -"),
    ] {
        let (bytes, said) = find(name);
        assert_eq!(dir.feed(line, bytes).complaint(), format!("standard input: {said}"), "{line}");
    }
    // Tables and sequences, where it makes sense.
    let table = |said: &str, what| said.split(';').next().unwrap().to_string() + "; expected " + what;
    for (name, format, what) in [
        ("page", "csv", "lines of a table"),
        ("page", "tsv", "lines of a table"),
        ("page", "jsonl", "lines of JSON"),
        ("renamed", "csv", "lines of a table"),
        ("deny.tar.gz", "csv", "lines of a table; unpack it first"),
        ("a.tar", "jsonl", "lines of JSON; unpack it first"),
        ("le", "tsv", "lines of a table; convert it to UTF-8"),
        ("a.gz.gz", "jsonl", "lines of JSON; unpack it first"),
    ] {
        let (bytes, said) = find(name);
        let help = if name == "renamed" { "; --format parquet" } else { "" };
        let expected = format!("standard input: {}{help}", table(said, what));
        assert_eq!(
            dir.feed(&format!("build - --format {format} -o out"), bytes).complaint(),
            expected,
            "{name} {format}"
        );
    }
    assert_eq!(
        dir.feed("build --format csv - -o out", "a\nb\0\n").complaint(),
        "standard input: line 2: a NUL byte; expected text"
    );
    let (bytes, _) = find("deny.tar.gz");
    let expected = "standard input: is a tar archive inside gzip; expected sequences; unpack it first";
    assert_eq!(dir.feed("sets build x=- --kmer 5 -o out", bytes).complaint(), expected);
    assert!(!dir.path("out").exists());
}

/// What is read, and as which keys.
#[test]
fn encodings_and_line_ends_are_read() {
    let dir = TestDir::new();
    dir.put("keys.txt", HOSTS);
    dir.run("build keys.txt -o expected.tamis").text(0);
    let crs = HOSTS.replace('\n', "\r");
    let marked = format!("\u{feff}{HOSTS}");
    for (name, bytes) in [
        ("le", utf_16(&marked, false)),
        ("be", utf_16(&marked, true)),
        ("windows", utf_16(&marked.replace('\n', "\r\n"), false)),
        ("le.gz", gzip(&utf_16(&marked, false))),
        ("marked", marked.clone().into()),
        ("mac", crs.clone().into()),
        ("open", crs.trim_end().into()),
        ("mixed", "one.example\r\r\ntwo.example\r\n\rthree.example\r".into()),
        ("le.csv", utf_16(&marked, false)),
        ("mac.csv", crs.into()),
        ("le.jsonl", utf_16("\u{feff}\"one.example\"\r\n\"two.example\"\r\n\"three.example\"\r\n", false)),
    ] {
        dir.put(name, bytes);
        dir.run(&format!("build {name} -o out.tamis")).text(0);
        assert!(dir.read("out.tamis") == dir.read("expected.tamis"), "{name}");
        assert_eq!(dir.run(&format!("query -c expected.tamis {name}")).text(0), "3\n", "{name}");
    }
    // A carriage return is part of a record of -0, and of a field in quotes.
    dir.feed("build -0 -o out.tamis --fpr 1e-9", "a\rb\0c\r\0").text(0);
    assert_eq!(dir.feed("query -0 out.tamis", "a\rb\0a\0c\0c\r\0").text(0), "a\rb\0c\r\0");
    dir.feed("build --format csv -o out.tamis --fpr 1e-9", "\"a\rb\"\rc\r").text(0);
    assert_eq!(dir.feed("query -0 out.tamis", "a\rb\0a\0c\0").text(0), "a\rb\0c\0");
    // Lines are counted as they end, and rows are printed as they are.
    assert_eq!(
        dir.feed("query -n expected.tamis", "x\rtwo.example\r\none.example\r").text(0),
        "2:two.example\n3:one.example\n"
    );
    let rows = dir.feed("query --rows --trim expected.tamis", " two.example\r\n one.example\rx\r\n").text(0);
    assert_eq!(rows, " two.example\r\n one.example\n");
    // Workloads, maps and sets.
    dir.feed("map build -o map.tamis", "a\t1\rb\t2\r").text(0);
    assert_eq!(dir.run("map get map.tamis --key b").text(0), "b\t2\n");
    dir.feed("map build -o map.tamis", utf_16("\u{feff}a\t1\r\nb\t2\r\n", true)).text(0);
    assert_eq!(dir.run("map get map.tamis --key a").text(0), "a\t1\n");
    dir.feed("sets build --pairs -o sets.tamis", "a\tx\rb\ty,x\r").text(0);
    assert_eq!(dir.run("sets query sets.tamis --key b").text(0), "b\tx,y\n");
    let report = dir.feed("build keys.txt --workload - -o out.tamis --json", "a\t7\rb\t2\r").json(0);
    assert_eq!((&report["workload"]["queries"], &report["workload"]["keys"]), (&9.into(), &2.into()));
    let report = dir.feed("sets build x=- --kmer 3 -o k.tamis --json", ">r one\rACGT\rAC\r>s\rGG\r").json(0);
    assert_eq!(report["sequences"], serde_json::json!({ "records": 2, "short": 1, "kmers": 4, "skipped": 0 }));
}

/// Lists with a strange key or two, which are lists all the same.
#[test]
fn a_strange_key_is_a_key() {
    let dir = TestDir::new();
    let long = "a".repeat(255) + "\nustar\nb\n" + &"c\n".repeat(300);
    for (list, keys) in [
        ("{\n", 1),
        ("[\n", 1),
        ("<\n", 1),
        ("{\none\n}\n", 3),
        ("[one]\n[two]\n", 2),
        ("[::1]:80\n[::2]:80\n", 2),
        ("{1b4e28ba-2fa1}\n", 1),
        ("[\n1\n2\n", 3),
        ("{\"a\":1}\nplain\n", 2),
        ("[1]\nplain\n", 2),
        ("\"a\"\n\"b\"\n", 2),
        ("17\n18\n", 2),
        ("null\ntrue\n", 2),
        ("<htmlx>\n<html-tag>\n", 2),
        ("<a@b.example>\n", 1),
        ("<!-- a note -->\none\n", 2),
        ("<!doctype\n", 1),
        ("htmlexample\n", 1),
        ("MZ\nPE\n", 2),
        ("PK\nPKZIP\n", 2),
        ("PAR1\nPAR2\n", 2),
        ("BZh91\n", 1),
        ("%PDF\n", 1),
        ("ELF\n\u{7f}EL\n", 2),
        ("SQLite format 3\n", 1),
        ("tamis\n", 1),
        ("ustar\n", 1),
        (&long, 4),
        ("# not a comment file\none\n", 2),
        ("\u{fffe}x\n", 1),
        ("a\u{feff}b\n", 1),
    ] {
        let report = dir.feed("build - -o out --json", list).json(0);
        assert_eq!(report["keys"], keys, "{list:?}");
    }
    // Keys on the command line are what was typed.
    dir.feed("build - -o out --fpr 1e-9 --format text", "{\"a\":1}\n<html>\n").text(0);
    for key in ["{\"a\":1}", "<html>"] {
        let mut command = dir.command("query out --key");
        assert_eq!(crate::test_dir::Run::from(command.arg(key).output().unwrap()).text(0), format!("{key}\n"));
    }
    // Digests and other bytes, one in each line.
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match (state >> 56) as u8 {
            0 | b'\n' | b'\r' => 1,
            byte => byte,
        }
    };
    for _ in 0..20 {
        let list: Vec<u8> =
            (0..500).flat_map(|_| (0..20).map(|_| random()).chain([b'\n']).collect::<Vec<u8>>()).collect();
        let report = dir.feed("build - -o out --json", &list).json(0);
        assert_eq!(report["keys"], 500);
    }
}

/// A pipe that brings a byte at a time is the same list.
#[cfg(unix)]
#[test]
fn slow_pipes_say_the_same() {
    use std::io::Write as _;
    let dir = TestDir::new();
    dir.put("keys.txt", HOSTS);
    dir.run("build keys.txt -o f.tamis").text(0);
    for (bytes, expected) in [
        (tar("deny.txt", HOSTS, b"")[..600].to_vec(), format!("standard input: is a tar archive{UNPACK}")),
        (b"<!doctype HTML><p>no</p>".to_vec(), format!("standard input: is an HTML document{TEXT}")),
        (b"{\"a\":\n[1, 2]}\n".to_vec(), format!("standard input: is a JSON document{TEXT}")),
        (b"\x7fELF...".to_vec(), format!("standard input: is an ELF program{TEXT}")),
        (utf_16("one\n", true), format!("standard input: is UTF-16 text without a byte order mark{CONVERT}")),
        (utf_16("\u{feff}one.example\n", true), String::new()),
    ] {
        let mut child = dir.command("query f.tamis").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for byte in bytes {
            let _ = stdin.write_all(&[byte]);
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        drop(stdin);
        let run = crate::test_dir::Run::from(child.wait_with_output().unwrap());
        match expected.is_empty() {
            true => assert_eq!(run.text(0), "one.example\n"),
            false => assert_eq!(run.complaint(), expected),
        }
    }
}

/// Lists of other programs are built as they stand, with a warning that counts their lines.
#[test]
fn lists_of_other_programs_are_a_warning() {
    let dir = TestDir::new();
    let lines = |from: usize, to: usize, line: &dyn Fn(usize) -> String| (from..to).map(line).collect::<String>();
    let hosts = |from, to| lines(from, to, &|i| format!("0.0.0.0 h{i}.example\n"));
    let names = |from, to| lines(from, to, &|i| format!("h{i}.example\n"));
    let rules = |from, to| lines(from, to, &|i| format!("||h{i}.example^$third-party\n"));
    let stand = "and are read as keys as they stand";
    for (list, warning) in [
        (hosts(0, 1234) + &names(0, 66), format!("1,234 of 1,300 lines look like a hosts file (0.0.0.0 name) {stand}")),
        (
            "127.0.0.1\tlocalhost\n::1 localhost\n".to_string(),
            format!("2 of 2 lines look like a hosts file (0.0.0.0 name) {stand}"),
        ),
        (
            "# by a tool\r\n#\r\n\r\n".to_string() + &hosts(0, 3).replace('\n', "\r\n") + "a\r\n",
            format!("3 of 6 lines look like a hosts file (0.0.0.0 name), 2 like comments (#, !) {stand}"),
        ),
        (
            "! Title: a list\n".to_string() + &rules(0, 2000) + "@@||a.example^\n",
            format!("2,001 of 2,002 lines look like rules of an ad blocker (||name^), 1 like comments (#, !) {stand}"),
        ),
        ("# a\n# b\nc\n".to_string(), format!("2 of 3 lines look like comments (#, !) {stand}")),
        // The first thousand lines decide whether the rest is counted.
        (hosts(0, 501) + &names(0, 5000), String::new()),
        (names(0, 501) + &hosts(0, 5000), String::new()),
        (
            hosts(0, 2000) + &names(0, 1000),
            format!("2,000 of 3,000 lines look like a hosts file (0.0.0.0 name) {stand}"),
        ),
        // Half is not most, and a word behind a sign is a key.
        ("# a\nb\n".to_string(), String::new()),
        ("#rust\n#channel\n!important\n#fff\n".to_string(), String::new()),
        ("0.0.0.0\n127.0.0.1\n1.2.3.4 a\n10 b\n".to_string(), String::new()),
        ("||\n|| a\n@home\n".to_string(), String::new()),
        (names(0, 3000), String::new()),
    ] {
        dir.put("deny.txt", &list);
        let run = dir.run("build deny.txt -o out");
        let expected =
            if warning.is_empty() { String::new() } else { format!("tamis: warning: deny.txt: {warning}\n") };
        assert_eq!((run.code, run.err), (Some(0), expected.clone()));
        dir.run("build deny.txt --format text -o out").text(0);
        // A quiet command has no report, but nobody wants to miss this.
        for line in ["build deny.txt -q -o out", "query -q out deny.txt"] {
            let run = dir.run(line);
            assert_eq!((run.code, run.out, run.err), (Some(0), vec![], expected.clone()));
        }
        // Once for a list that is read twice, and for every list.
        let run = dir.run("build deny.txt --exclude deny.txt -o out");
        assert_eq!(
            (run.code, run.err.matches("warning").count()),
            (Some(4), usize::from(!warning.is_empty())),
            "{}",
            run.err
        );
        let run = dir.run("query out deny.txt");
        assert_eq!((run.code, run.err), (Some(0), expected));
        let run = dir.run("build deny.txt -o out --json");
        let objects: Vec<serde_json::Value> = run.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        match warning.is_empty() {
            true => assert!(objects.is_empty()),
            false => assert_eq!(
                objects,
                [serde_json::json!({
                    "schema": 1, "command": "build", "form": null,
                    "warning": { "message": format!("deny.txt: {warning}") },
                })]
            ),
        }
    }
}

/// Whatever is wrong with a Parquet file is one line, or one object.
#[test]
fn a_damaged_parquet_file_is_one_line() {
    let dir = TestDir::new();
    let whole = parquet_table(&["one.example", "two.example"]);
    let mut refused = 0;
    for at in (4..whole.len() - 4).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        dir.put("a.parquet", bytes);
        for line in ["build a.parquet --column host -o out", "build a.parquet --column id -o out --json"] {
            let run = dir.run(line);
            if run.code == Some(0) {
                assert_eq!(run.err, "", "byte {at}: {line}");
                continue;
            }
            refused += 1;
            assert_eq!((run.code, run.err.lines().count()), (Some(2), 1), "byte {at}: {line}: {}", run.err);
            match serde_json::from_str::<serde_json::Value>(&run.err) {
                Ok(object) => {
                    assert!(object["error"]["message"].as_str().unwrap().starts_with("a.parquet: "), "{}", run.err)
                }
                Err(_) => assert!(run.err.starts_with("tamis: a.parquet: "), "{}", run.err),
            }
        }
    }
    assert!(refused > 30, "{refused} of {}", 2 * whole.len());
    dir.put("a.parquet", b"PAR1xxxxPAR1");
    let expected = "a.parquet: its table of contents would have 2,021,161,080 bytes, and all of it has 12; expected a whole Parquet file";
    assert_eq!(dir.run("build a.parquet -o out").complaint(), expected);
}

/// Records that end with NUL, and a list of lines that was meant to have some.
#[test]
fn lines_that_are_read_as_one_record_are_a_warning() {
    let dir = TestDir::new();
    for (list, is_one) in
        [("one\ntwo\n", true), ("one\ntwo", true), ("one\n", false), ("one\ntwo\0", false), ("one\0two\nthree", false)]
    {
        let run = dir.feed("build - -0 -q -o out", list);
        let warning = "tamis: warning: standard input: no NUL byte and several lines, which -0 reads as one key\n";
        assert_eq!((run.code, run.err.as_str()), (Some(0), if is_one { warning } else { "" }), "{list:?}");
    }
}
