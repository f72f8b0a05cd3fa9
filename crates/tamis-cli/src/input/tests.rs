//! files of every kind on disk -> keys, counts, places and errors: whole readings.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::{ByteArray, FixedLenByteArray};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;

use super::*;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Key {
    B(Vec<u8>),
    N(Number),
}

fn texts(keys: &[&str]) -> Vec<Key> {
    keys.iter().map(|key| Key::B(key.as_bytes().to_vec())).collect()
}

fn numbers(keys: &[u64]) -> Vec<Key> {
    keys.iter().map(|&key| Key::N(key.into())).collect()
}

/// A folder of inputs, and `-`.
struct TestDir {
    folder: tempfile::TempDir,
    stdin: Vec<u8>,
    options: Options,
}

/// All that a reading gives.
struct Reading {
    keys: Vec<Key>,
    counts: Counts,
    places: Places,
    progress: Vec<u64>,
}

impl TestDir {
    fn new() -> TestDir {
        TestDir { folder: tempfile::tempdir().unwrap(), stdin: Vec::new(), options: Options::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name == "-" { PathBuf::from(name) } else { self.folder.path().join(name) }
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn column(mut self, name: &str) -> TestDir {
        self.options.column = Some(name.into());
        self
    }

    fn try_read(&self, names: &[&str]) -> Result<Reading> {
        let inputs: Vec<Source> = names.iter().map(|name| self.path(name).into()).collect();
        let (mut keys, mut progress) = (Vec::new(), Vec::new());
        let (counts, places) = read_all(
            &inputs,
            &self.options,
            &mut &self.stdin[..],
            &mut |bytes| progress.push(bytes),
            &mut |key, _, at| {
                assert_eq!(at.ordinal, keys.len() as u64);
                keys.push(match key {
                    KeyRef::Bytes(bytes) => Key::B(bytes.to_vec()),
                    KeyRef::Integer(value) => Key::N(value),
                });
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let key_bytes = keys.iter().map(|key| if let Key::B(bytes) = key { bytes.len() as u64 } else { 8 }).sum();
        assert_eq!((counts.keys, counts.key_bytes), (keys.len() as u64, key_bytes));
        assert!(progress.is_sorted() && progress.last().is_none_or(|&last| last == counts.read_bytes));
        if let Some(total) = total_bytes(&inputs) {
            assert_eq!(counts.read_bytes, total);
        }
        Ok(Reading { keys, counts, places, progress })
    }

    #[track_caller]
    fn read(&self, names: &[&str]) -> Reading {
        self.try_read(names).unwrap()
    }

    /// The error's text with the folder left out, so that file names stand alone.
    #[track_caller]
    fn error(&self, names: &[&str]) -> String {
        let Err(error) = self.try_read(names) else { panic!("{names:?} was read") };
        let folder = format!("{}{}", self.folder.path().display(), std::path::MAIN_SEPARATOR);
        format!("{error:#}").replace(&folder, "")
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::bufread::GzEncoder::new(data, flate2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    liblzma::bufread::XzEncoder::new(data, 1).read_to_end(&mut out).unwrap();
    out
}

fn zst(data: &[u8]) -> Vec<u8> {
    zstd::encode_all(data, 1).unwrap()
}

#[test]
fn lines_of_every_sort() {
    let dir = TestDir::new();
    dir.put("unix", "a\nb\n\nc\n");
    dir.put("dos", "a\r\nb\r\n\r\nc\r\n");
    dir.put("open", "a\nb\n\nc");
    dir.put("marked", "\u{feff}a\nb\n\nc\n");
    dir.put("mac", "a\rb\r\rc\r");
    dir.put("mixed", "a\rb\r\n\rc\n");
    dir.put("wide", "\u{feff}a\r\nb\n\nc".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    for name in ["unix", "dos", "open", "marked", "mac", "mixed", "wide"] {
        let reading = dir.read(&[name]);
        assert_eq!(reading.keys, texts(&["a", "b", "c"]), "{name}");
        assert_eq!(reading.counts.blank, 1, "{name}");
        let lines: Vec<u64> = (0..3).map(|i| reading.places.locate(i).unwrap().line).collect();
        assert_eq!(lines, [1, 2, 4], "{name}");
    }
    dir.put("empty", "");
    dir.put("newline", "\n");
    assert_eq!(dir.read(&["empty"]).counts, Counts::default());
    assert_eq!(dir.read(&["newline"]).counts, Counts { blank: 1, read_bytes: 1, ..Counts::default() });
}

#[test]
fn bytes_are_bytes() {
    let mut dir = TestDir::new();
    dir.put("raw", b"z\n\xff\xfe\xc3\n \t\n\xef\xbb\xbfz\n");
    let expected: [&[u8]; 4] = [b"z", b"\xff\xfe\xc3", b" \t", b"\xef\xbb\xbfz"];
    assert_eq!(dir.read(&["raw"]).keys, expected.map(|key| Key::B(key.to_vec())));
    dir.put("nul", b"a\nx\0y\n");
    let help = "expected text; use -0 if NUL bytes end the keys, or --format text to keep them";
    assert_eq!(dir.error(&["nul"]), format!("nul: line 2: a NUL byte; {help}"));
    dir.options.format = Some(Format::Text);
    assert_eq!(dir.read(&["nul"]).keys, [&b"a"[..], b"x\0y"].map(|key| Key::B(key.to_vec())));
}

#[test]
fn lines_longer_than_any_buffer() {
    let dir = TestDir::new();
    let long = vec![b'x'; 2_000_001];
    dir.put("long", [b"a\n", &long[..], b"\r\nb\n", &long].concat());
    let keys = [b"a".to_vec(), long.clone(), b"b".to_vec(), long].map(Key::B);
    assert_eq!(dir.read(&["long"]).keys, keys);
}

#[test]
fn null_separated_records() {
    let mut dir = TestDir::new();
    dir.options.null_separated = true;
    dir.put("nul", b"\xef\xbb\xbfa\nb\0\0c\r\0\r\n");
    let reading = dir.read(&["nul"]);
    assert_eq!(reading.keys, [&b"\xef\xbb\xbfa\nb"[..], b"c\r", b"\r\n"].map(|key| Key::B(key.to_vec())));
    assert_eq!(reading.counts.blank, 1);
    assert!(reading.places.locate(2).unwrap().to_string().ends_with("nul record 4"));
}

#[test]
fn clean_up_applies_to_every_text_format() {
    let mut dir = TestDir::new();
    dir.put("a.txt", " A É \n \t\n\u{a0}\nB\n");
    dir.put("a.csv", "\" A É \"\n\" \"\n\"\u{a0}\"\nB\n");
    dir.put("a.jsonl", "\" A É \"\n\" \"\n\"\\u00a0\"\n\"B\"\n");
    (dir.options.trim, dir.options.lowercase) = (true, true);
    for name in ["a.txt", "a.csv", "a.jsonl"] {
        let reading = dir.read(&[name]);
        assert_eq!(reading.keys, texts(&["a é", "b"]), "{name}");
        assert_eq!(reading.counts.blank, 2, "{name}");
        assert_eq!(reading.places.locate(1).unwrap().line, 4, "{name}");
    }
    dir.options.trim = false;
    assert_eq!(dir.read(&["a.txt"]).keys, texts(&[" a é ", " \t", "\u{a0}", "b"]));
}

#[test]
fn compression_by_content_under_any_name() {
    let dir = TestDir::new();
    let text: String = (0..50_000).map(|i| format!("key{}\n", i * 7919 % 100_003)).collect();
    dir.put("plain.gz", &text);
    dir.put("a", gzip(text.as_bytes()));
    dir.put("b.txt", zst(text.as_bytes()));
    dir.put("c.gz", xz(text.as_bytes()));
    let expected: Vec<Key> = text.lines().map(|line| Key::B(line.into())).collect();
    for name in ["plain.gz", "a", "b.txt", "c.gz"] {
        assert!(dir.read(&[name]).keys == expected, "{name}");
    }
    // Progress counts what lies on the disk, and comes more than once.
    let reading = dir.read(&["a", "plain.gz"]);
    assert!(reading.progress.len() > 3, "{:?}", reading.progress);
    assert_eq!(reading.keys.len(), 100_000);
    assert_eq!(reading.places.locate(50_000).unwrap().file, 1);
}

#[test]
fn damaged_streams_name_file_and_line() {
    let dir = TestDir::new();
    let text: String = (0..40_000u32).map(|i| format!("{:x}\n", i.wrapping_mul(0x9e37_79b9))).collect();
    for (kind, packed) in [("gzip", gzip(text.as_bytes())), ("zstd", zst(text.as_bytes())), ("xz", xz(text.as_bytes()))]
    {
        let cut = packed.len() / 2;
        dir.put("cut", &packed[..cut]);
        let error = dir.error(&["cut"]);
        assert!(error.starts_with("cut: line "), "{error}");
        assert!(error.ends_with(&format!(": the {kind} data ends too early, after {cut} bytes")), "{error}");
        dir.put("cut.csv", &packed[..cut]);
        assert!(dir.error(&["cut.csv"]).ends_with(&format!("the {kind} data ends too early, after {cut} bytes")));
        dir.put("more", [&packed[..], b"junk that is no member"].concat());
        let error = dir.error(&["more"]);
        assert!(error.contains(&format!("the {kind} data is damaged near byte")), "{error}");
    }
    dir.put("x.txt.bz2", b"BZh91AY&SY....");
    assert_eq!(
        dir.error(&["x.txt.bz2"]),
        "x.txt.bz2: is bzip2 data; expected lines of text; unpack it first, or --format text to read it as lines"
    );
}

#[test]
fn standard_input_is_read_once() {
    let mut dir = TestDir::new();
    dir.stdin = gzip(b"s\nt\n");
    dir.put("f", "a\n");
    let reading = dir.read(&["f", "-", "f"]);
    assert_eq!(reading.keys, texts(&["a", "s", "t", "a"]));
    assert_eq!(reading.places.locate(2).unwrap().to_string(), "standard input line 2");
    assert_eq!(dir.error(&["-", "f", "-"]), "-: standard input is given twice; expected it once");
    dir.options.format = Some(Format::Jsonl);
    dir.stdin = b"\"s\"\n".to_vec();
    assert_eq!(dir.read(&["-"]).keys, texts(&["s"]));
    dir.options.format = Some(Format::Parquet);
    assert!(dir.error(&["-"]).starts_with("standard input: parquet cannot be read from a pipe"));
}

#[test]
fn what_is_not_a_file_of_keys() {
    let dir = TestDir::new();
    fs::create_dir(dir.path("dir")).unwrap();
    dir.put("f", "a\n");
    assert_eq!(dir.error(&["dir"]), "dir: is a directory; expected a file of keys");
    assert_eq!(dir.error(&["f", "none"]), "none: no such file; expected a file of keys");
    assert_eq!(dir.error(&["f/below"]).split(": ").next(), Some("f/below"));
}

#[test]
fn the_closure_can_stop_and_fail() {
    let dir = TestDir::new();
    dir.put("a", "1\n2\n3\n");
    dir.put("b.csv", "4\n");
    let inputs = [dir.path("a").into(), dir.path("b.csv").into()];
    let read = |stop: u64, fail: u64| {
        read_all(&inputs, &dir.options, &mut io::empty(), &mut |_| {}, &mut |_, _, at| {
            if at.ordinal == fail {
                bail!("the closure's own words");
            }
            Ok(if at.ordinal == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    };
    for stop in 0..4 {
        assert_eq!(read(stop, 9).unwrap().0.keys, stop + 1);
    }
    assert_eq!(format!("{:#}", read(9, 3).unwrap_err()), "the closure's own words");
}

#[test]
fn places_over_several_files() {
    let dir = TestDir::new();
    dir.put("a.txt", "\n\nx\n\ny\n");
    dir.put("none.txt", "\n");
    dir.put("b.csv", "id,v\n1,\"p\nq\"\n\n2,r\n3,\n4,s\n");
    dir.put("c.jsonl", "{\"v\":\"j\"}\n\n{\"w\":1}\n{\"v\":null}\n{\"v\":\"k\"}\n");
    let reading = dir.column("v").read(&["a.txt", "none.txt", "b.csv", "c.jsonl"]);
    assert_eq!(reading.keys, texts(&["x", "y", "p\nq", "r", "s", "j", "k"]));
    let places: Vec<(usize, u64)> =
        (0..7).map(|i| reading.places.locate(i).map(|place| (place.file, place.line)).unwrap()).collect();
    assert_eq!(places, [(0, 3), (0, 5), (2, 2), (2, 5), (2, 7), (3, 1), (3, 5)]);
    assert_eq!(reading.places.locate(7), None);
    assert_eq!(reading.counts.blank, 3 + 1 + 2 + 3);
}

#[test]
fn csv_columns() {
    let dir = TestDir::new();
    dir.put("one.csv", "name\nx\n\"y,z\"\n\"\"\n");
    assert_eq!(dir.read(&["one.csv"]).keys, texts(&["name", "x", "y,z"]));
    dir.put("two.csv.gz", gzip("\u{feff}id,na\"me\r\n7,x\r\n8,y\r\n".as_bytes()));
    dir.put("ragged.csv", "id,name\n1,a\n2,b,c\n");
    dir.put("twice.csv", "id,id\n1,2\n");
    dir.put("empty.csv", "");
    dir.put("open.csv", "id,name\n1,a\n2,\"b\n3,c\n");
    dir.put("wide.csv", "a\nb\nc,d\n");
    assert_eq!(
        dir.error(&["two.csv.gz"]),
        "two.csv.gz: has 2 columns (\"id\", \"na\\\"me\"); expected one; choose with --column NAME, or --column '#N' if there is no header"
    );
    assert_eq!(dir.error(&["wide.csv"]), "wide.csv: line 3: 2 fields; expected 1 as in the first row");
    assert_eq!(dir.read(&["empty.csv"]).keys, []);
    let dir = dir.column("id");
    let reading = dir.read(&["two.csv.gz"]);
    assert_eq!(reading.keys, texts(&["7", "8"]));
    assert_eq!(reading.places.locate(1).unwrap().line, 3);
    assert_eq!(dir.error(&["one.csv"]), "one.csv: no column \"id\"; expected one of \"name\"");
    assert_eq!(dir.error(&["ragged.csv"]), "ragged.csv: line 3: 3 fields; expected 2 as in the first row");
    assert_eq!(
        dir.error(&["twice.csv"]),
        "twice.csv: more than one column \"id\"; expected one, or its number like '#1'"
    );
    assert_eq!(dir.error(&["empty.csv"]), "empty.csv: is empty; expected a header with the column \"id\"");
    assert_eq!(dir.error(&["open.csv"]), "open.csv: line 3: a quoted field does not end; expected a closing quote");
    let dir = dir.column("#2");
    assert_eq!(dir.read(&["two.csv.gz"]).keys, texts(&["na\"me", "x", "y"]));
    assert_eq!(dir.error(&["one.csv"]), "one.csv: no column #2; expected #1 to #1");
    assert!(dir.column("#0").error(&["one.csv"]).contains("no column #0"));
}

#[test]
fn tsv_columns() {
    let dir = TestDir::new().column("k");
    dir.put("a.tsv", "k\tn\n\"a\t1\nb, c\t2\n");
    assert_eq!(dir.read(&["a.tsv"]).keys, texts(&["\"a", "b, c"]));
    let error = TestDir { options: Options::default(), ..dir }.error(&["a.tsv"]);
    assert!(error.contains("has 2 columns (\"k\", \"n\")"), "{error}");
}

#[test]
fn a_column_of_text_lines_is_a_mistake() {
    let dir = TestDir::new().column("id");
    dir.put("keys", "a\n");
    dir.put("keys.txt", "a\n");
    dir.put("keys.txt.zst", zst(b"a\n"));
    assert!(dir.error(&["keys"]).starts_with("keys: --column does not apply to text lines"));
    assert!(dir.error(&["-"]).starts_with("standard input: --column does not apply to text lines"));
    assert_eq!(dir.read(&["keys.txt", "keys.txt.zst"]).keys, texts(&["a", "a"]));
}

#[test]
fn jsonl_values() {
    let dir = TestDir::new();
    dir.put("bare.jsonl", "\"a\"\r\n  \n\"\\u00e9\\n\"\nnull\n\"\"\n");
    let reading = dir.read(&["bare.jsonl"]);
    assert_eq!(reading.keys, texts(&["a", "é\n"]));
    assert_eq!(reading.counts.blank, 3);
    dir.put("numbers.ndjson", "0\n18446744073709551615\n");
    assert_eq!(dir.read(&["numbers.ndjson"]).keys, numbers(&[0, u64::MAX]));
    dir.put("only.jsonl", "{}\n{\"u\\u0072l\": \"a\"}\n{}\n{\"url\": \"b\", \"url\": \"c\"}\n");
    assert_eq!(dir.read(&["only.jsonl"]).keys, texts(&["a", "c"]));
    dir.put("deep.jsonl", "{\"x\": [1, {\"id\": 2}], \"id\": 5, \"y\": {\"id\": 6}}\n{\"x\": 1}\n{\"id\": null}\n");
    let dir = dir.column("id");
    let reading = dir.read(&["deep.jsonl"]);
    assert_eq!((reading.keys, reading.counts.blank), (numbers(&[5]), 2));
}

#[test]
fn jsonl_errors() {
    let expected = "expected text or an integer from -2^63 to 2^64 - 1";
    for (text, message) in [
        (
            "\"a\"\n7\n".to_string(),
            "line 2: found integers; expected text as before (the first at x.jsonl line 1)".into(),
        ),
        ("1\n\"a\"\n".into(), "line 2: found text; expected integers as before (the first at x.jsonl line 1)".into()),
        (
            "1\n\n-9223372036854775809\n".into(),
            format!("line 3: found a fraction or a number beyond 64 bits; {expected}"),
        ),
        ("1.5\n".into(), format!("line 1: found a fraction or a number beyond 64 bits; {expected}")),
        ("18446744073709551616\n".into(), format!("line 1: found a fraction or a number beyond 64 bits; {expected}")),
        ("true\n".into(), format!("line 1: found true or false; {expected}")),
        ("[1, [2]]\n".into(), format!("line 1: found an array; {expected}")),
        ("{\"a\": {\"b\": 1}}\n".into(), format!("line 1: found an object; {expected}")),
        ("{\"a\":1}\n2\n".into(), "line 2: expected an object with the field \"a\"".into()),
        ("2\n{\"a\":1}\n".into(), "line 2: found an object; expected a bare value as before".into()),
        (
            "{\"a\":1,\"b\":2}\n".into(),
            "line 1: found 2 fields (\"a\", \"b\"); expected one; choose with --column NAME".into(),
        ),
        (
            "{\"a\":1}\n{\"b\":2}\n".into(),
            "line 2: found 2 fields (\"a\", \"b\"); expected one; choose with --column NAME".into(),
        ),
        ("\"a\"\n{\"a\n".into(), "line 2: found an object; expected a bare value as before".into()),
        ("abc\n".into(), "line 1: expected a JSON value: expected value at column 1".into()),
        ("\"a\" \"b\"\n".into(), "line 1: expected a JSON value: trailing characters at column 5".into()),
        ("\"a".into(), "line 1: expected a JSON value: EOF while parsing a string at column 2".into()),
    ] {
        let dir = TestDir::new();
        dir.put("x.jsonl", &text);
        assert_eq!(dir.error(&["x.jsonl"]), format!("x.jsonl: {message}"), "{text}");
    }
    let dir = TestDir::new().column("id");
    dir.put("x.jsonl", "\n{\"a\":1,\"b\":{}}\n{\"c\":1}\n");
    assert_eq!(dir.error(&["x.jsonl"]), "x.jsonl: no object has the field \"id\"; expected one of \"a\", \"b\"");
    dir.put("x.jsonl", b"{\"id\":\"\xff\"}\n");
    assert!(dir.error(&["x.jsonl"]).starts_with("x.jsonl: line 1: expected a JSON value: invalid unicode"));
    dir.put("x.jsonl", "[".repeat(100_000));
    assert!(dir.error(&["x.jsonl"]).starts_with("x.jsonl: line 1: expected"));
}

/// One column of a test file; `None` is a null.
enum Column {
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
}

fn split<T: Clone>(column: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (column.iter().flatten().cloned().collect(), column.iter().map(|value| value.is_some().into()).collect())
}

/// The row groups of a file, each with all columns.
fn parquet_file(schema: &str, compression: Compression, groups: &[Vec<Column>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let properties =
        Arc::new(WriterProperties::builder().set_compression(compression).set_data_page_row_count_limit(1000).build());
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, properties).unwrap();
    for group in groups {
        let mut row_group = writer.next_row_group().unwrap();
        for column in group {
            let mut column_writer = row_group.next_column().unwrap().unwrap();
            match (column_writer.untyped(), column) {
                (ColumnWriter::Int32ColumnWriter(writer), Column::I32(column)) => {
                    let (values, levels) = split(column);
                    writer.write_batch(&values, Some(&levels), None).unwrap();
                }
                (ColumnWriter::Int64ColumnWriter(writer), Column::I64(column)) => {
                    let (values, levels) = split(column);
                    writer.write_batch(&values, Some(&levels), None).unwrap();
                }
                (ColumnWriter::ByteArrayColumnWriter(writer), Column::Bytes(column)) => {
                    let (values, levels) = split(column);
                    let values: Vec<ByteArray> = values.into_iter().map(ByteArray::from).collect();
                    writer.write_batch(&values, Some(&levels), None).unwrap();
                }
                (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Column::Fixed(column)) => {
                    let (values, levels) = split(column);
                    let values: Vec<FixedLenByteArray> = values.into_iter().map(FixedLenByteArray::from).collect();
                    writer.write_batch(&values, Some(&levels), None).unwrap();
                }
                _ => panic!("the schema and the column differ"),
            }
            column_writer.close().unwrap();
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

fn strings(keys: &[Option<&str>]) -> Column {
    Column::Bytes(keys.iter().map(|key| key.map(|key| key.as_bytes().to_vec())).collect())
}

#[test]
fn parquet_text_in_several_groups_and_codecs() {
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
    ] {
        let dir = TestDir::new();
        // Few distinct values make a dictionary, many make plain pages; both span batches and groups.
        let few: Vec<String> = (0..9000).map(|i| format!("k{}", i % 5)).collect();
        let many: Vec<String> = (0..9000).map(|i| format!("key number {i}")).collect();
        let column = |keys: &[String]| Column::Bytes(keys.iter().map(|key| Some(key.clone().into_bytes())).collect());
        let groups = [vec![column(&few)], vec![strings(&[Some("x"), None, Some(""), Some("y")])], vec![column(&many)]];
        dir.put("a.parquet", parquet_file("optional binary k (UTF8);", codec, &groups));
        let reading = dir.read(&["a.parquet"]);
        let middle = ["x".to_string(), "y".to_string()];
        let expected: Vec<Key> = few.iter().chain(&middle).chain(&many).map(|key| Key::B(key.clone().into())).collect();
        assert!(reading.keys == expected, "{codec:?}");
        assert_eq!(reading.counts.blank, 2);
        assert_eq!(reading.places.locate(9001).unwrap().line, 9004);
        assert!(reading.places.locate(9002).unwrap().to_string().ends_with("a.parquet row 9005"));
        assert!(reading.progress.len() > 3, "{:?}", reading.progress);
    }
}

#[test]
fn parquet_integers_of_every_width() {
    let wide = [Some(0), None, Some(i64::MAX)];
    let narrow = [Some(0), None, Some(i32::MAX)];
    for (schema, column, expected) in [
        ("optional int64 k;", Column::I64(wide.to_vec()), [0, i64::MAX as u64]),
        ("optional int64 k (INTEGER(64,true));", Column::I64(wide.to_vec()), [0, i64::MAX as u64]),
        ("optional int64 k (INTEGER(64,false));", Column::I64(vec![Some(0), None, Some(-1)]), [0, u64::MAX]),
        ("optional int64 k (UINT_64);", Column::I64(vec![Some(0), None, Some(-1)]), [0, u64::MAX]),
        ("optional int32 k;", Column::I32(narrow.to_vec()), [0, i32::MAX as u64]),
        ("optional int32 k (INT_8);", Column::I32(vec![Some(0), None, Some(127)]), [0, 127]),
        ("optional int32 k (INTEGER(16,false));", Column::I32(vec![Some(0), None, Some(65535)]), [0, 65535]),
        ("optional int32 k (UINT_32);", Column::I32(vec![Some(0), None, Some(-1)]), [0, u32::MAX as u64]),
        ("required int64 k;", Column::I64(vec![Some(5), Some(6)]), [5, 6]),
    ] {
        let dir = TestDir::new();
        dir.put("a.parquet", parquet_file(schema, Compression::SNAPPY, &[vec![column]]));
        let reading = dir.read(&["a.parquet"]);
        assert_eq!(reading.keys, numbers(&expected), "{schema}");
        assert_eq!(reading.counts.blank, u64::from(schema.starts_with("optional")), "{schema}");
    }
}

#[test]
fn parquet_binary_and_fixed() {
    let dir = TestDir::new();
    let raw = || vec![Some(vec![0xff, 0, 1]), None, Some(vec![2, 3, 4])];
    dir.put("a.parquet", parquet_file("optional binary k;", Compression::SNAPPY, &[vec![Column::Bytes(raw())]]));
    let fixed = parquet_file("optional fixed_len_byte_array(3) k;", Compression::SNAPPY, &[vec![Column::Fixed(raw())]]);
    dir.put("b.PARQUET", fixed);
    let expected = [vec![0xff, 0, 1], vec![2, 3, 4]].map(Key::B);
    assert_eq!(dir.read(&["a.parquet"]).keys, expected);
    assert_eq!(dir.read(&["b.PARQUET"]).keys, expected);
}

#[test]
fn parquet_errors() {
    let dir = TestDir::new();
    let put = |name: &str, schema: &str, groups: &[Vec<Column>]| {
        dir.put(name, parquet_file(schema, Compression::SNAPPY, groups))
    };
    put(
        "minus.parquet",
        "optional int32 k;",
        &[vec![Column::I32(vec![Some(1), None])], vec![Column::I32(vec![Some(2), Some(-3)])]],
    );
    let minus = [1i64, 2, -3].map(|key| Key::N(key.into()));
    assert_eq!(dir.try_read(&["minus.parquet"]).unwrap().keys, minus);
    put(
        "two.parquet",
        "optional binary url (UTF8); optional int64 id;",
        &[vec![strings(&[Some("x"), Some("y")]), Column::I64(vec![Some(1), Some(2)])]],
    );
    assert_eq!(
        dir.error(&["two.parquet"]),
        "two.parquet: has 2 columns (\"url\", \"id\"); expected one; choose with --column NAME"
    );
    put("date.parquet", "optional int32 k (DATE);", &[]);
    assert_eq!(
        dir.error(&["date.parquet"]),
        "date.parquet: the column \"k\" is INT32 (Date); expected text, binary or integers"
    );
    put("double.parquet", "optional double k;", &[]);
    assert_eq!(
        dir.error(&["double.parquet"]),
        "double.parquet: the column \"k\" is DOUBLE; expected text, binary or integers"
    );
    put("decimal.parquet", "optional int64 k (DECIMAL(9,2));", &[]);
    assert!(dir.error(&["decimal.parquet"]).contains("expected text, binary or integers"));
    put("list.parquet", "repeated int64 k;", &[]);
    assert_eq!(dir.error(&["list.parquet"]), "list.parquet: the column \"k\" is nested; expected one value per row");
    put("group.parquet", "optional group k { optional int64 v; }", &[]);
    assert_eq!(dir.error(&["group.parquet"]), "group.parquet: the column \"k\" is nested; expected one value per row");
    dir.put("text.parquet", "a\n");
    assert!(dir.error(&["text.parquet"]).starts_with("text.parquet: does not begin with PAR1"));
    dir.put("a.txt", "a\n");
    put("n.parquet", "required int64 k;", &[vec![Column::I64(vec![Some(1)])]]);
    assert_eq!(
        dir.error(&["a.txt", "n.parquet"]),
        "n.parquet: row 1: found integers; expected text as before (the first at a.txt line 1)"
    );
    let dir = dir.column("id");
    assert_eq!(dir.read(&["two.parquet"]).keys, numbers(&[1, 2]));
    assert_eq!(dir.error(&["minus.parquet"]), "minus.parquet: no column \"id\"; expected one of \"k\"");
}

/// Cuts and flipped bits give an error or other keys, and never a panic.
#[test]
fn parquet_damage() {
    let dir = TestDir::new();
    let keys: Vec<Option<String>> = (0..60).map(|i| (i % 7 > 0).then(|| format!("key{}", i % 40))).collect();
    let column = || Column::Bytes(keys.iter().map(|key| key.as_ref().map(|key| key.clone().into_bytes())).collect());
    let whole = parquet_file("optional binary k (UTF8);", Compression::SNAPPY, &[vec![column()], vec![column()]]);
    assert_eq!(dir.options.column, None);
    for cut in (0..whole.len()).step_by(whole.len() / 40) {
        dir.put("cut.parquet", &whole[..cut]);
        assert!(dir.error(&["cut.parquet"]).starts_with("cut.parquet: "), "cut at {cut}");
    }
    let mut errors = 0;
    for at in (0..whole.len()).step_by(3) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        dir.put("flipped.parquet", &flipped);
        errors += usize::from(dir.try_read(&["flipped.parquet"]).is_err());
    }
    assert!(errors > whole.len() / 20, "{errors} flips were noticed, of {} bytes", whole.len());
}

/// The keys of a reading, each with its second value.
fn pairs(dir: &TestDir, name: &str) -> Vec<(String, String)> {
    let mut pairs = vec![];
    let inputs = [dir.path(name).into()];
    read_all(&inputs, &dir.options, &mut io::empty(), &mut |_| {}, &mut |key, label, _| {
        let key = match key {
            KeyRef::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            KeyRef::Integer(value) => value.to_string(),
        };
        pairs.push((String::from_utf8(label.unwrap().text.to_vec()).unwrap(), key));
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    pairs
}

#[test]
fn labels_of_every_format() {
    let mut dir = TestDir::new().column("key");
    dir.options.second_column = Some("label".into());
    dir.options.lowercase = true;
    dir.put("t.csv", "x,label,key\n,A,k1\n1,,k2\n2,\"b,\nc\",K3\n3,d,\n");
    dir.put("t.tsv", "key\tlabel\nk1\tA\nk2\t\nk3\tb c\n");
    dir.put("t.jsonl", "{\"label\":\"A\",\"key\":\"k1\"}\n{\"key\":\"k2\"}\n{\"key\":\"k3\",\"label\":17}\n{\"key\":\"k4\",\"label\":null}\n");
    let expect = |rows: &[(&str, &str)]| rows.iter().map(|(l, k)| (l.to_string(), k.to_string())).collect::<Vec<_>>();
    // Keys are lower-cased, second values are as they are.
    assert_eq!(pairs(&dir, "t.csv"), expect(&[("A", "k1"), ("", "k2"), ("b,\nc", "k3")]));
    assert_eq!(pairs(&dir, "t.tsv"), expect(&[("A", "k1"), ("", "k2"), ("b c", "k3")]));
    assert_eq!(pairs(&dir, "t.jsonl"), expect(&[("A", "k1"), ("", "k2"), ("17", "k3"), ("", "k4")]));

    dir.put("bad.csv", "key,other\n1,2\n");
    assert_eq!(dir.error(&["bad.csv"]), "bad.csv: no column \"label\"; expected one of \"key\", \"other\"");
    dir.put("bad.jsonl", "{\"key\":\"a\"}\n");
    assert_eq!(dir.error(&["bad.jsonl"]), "bad.jsonl: no object has the field \"label\"; expected one of \"key\"");
    dir.put("odd.jsonl", "{\"key\":\"a\",\"label\":[1]}\n");
    assert_eq!(dir.error(&["odd.jsonl"]), "odd.jsonl: line 1: the partition is an array; expected text or an integer");
    dir.put("lines.txt", "a\n");
    let text = "lines.txt: text lines have no column of partitions; expected a .csv, .tsv, .jsonl or .parquet file, or --format";
    assert_eq!(dir.error(&["lines.txt"]), text);

    dir.options.second_column = Some("#2".into());
    let mixed = "t.csv: one column by its name and one by its number; expected both by name or both by number";
    assert_eq!(dir.error(&["t.csv"]), mixed);
    dir.options.column = Some("#1".into());
    assert_eq!(pairs(&dir, "t.tsv")[1..], expect(&[("A", "k1"), ("", "k2"), ("b c", "k3")]));
    dir.options.second_column = Some("#1".into());
    let same = "--partition-column: the same column as --column; expected one of keys and one of partitions";
    assert_eq!(dir.error(&["t.csv"]), same);
}

/// Nulls on either side, several batches, pages and row groups: keys and second values stay beside each other.
/// What one column of a text file would take is known before it is taken.
#[test]
fn parquet_within_the_memory() {
    let keys: Vec<String> = (0..6000).map(|i| format!("{:0>50}", i * i)).collect();
    let column = || Column::Bytes(keys.iter().map(|key| Some(key.clone().into_bytes())).collect());
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
    ] {
        let mut dir = TestDir::new();
        dir.put("a.parquet", parquet_file("optional binary k (UTF8);", codec, &[vec![column()]]));
        dir.options.memory = Some(2_000_000);
        assert_eq!(dir.read(&["a.parquet"]).keys.len(), 6000);
        for memory in [10_000, 400_000] {
            dir.options.memory = Some(memory);
            let error = dir.error(&["a.parquet"]);
            let start = "a.parquet: after row 0: a page unpacks to ";
            assert!(error.starts_with(start) && error.ends_with("; use a larger --memory"), "{memory}: {error}");
        }
    }
    // The dictionary is held with a place for each value, and gzip may unpack to more than is said.
    let properties = |codec| WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false);
    let write = |value: Vec<u8>, properties: WriterProperties| {
        let schema = Arc::new(parse_message_type("message m { required binary k; }").unwrap());
        let mut out = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<::parquet::data_type::ByteArrayType>().write_batch(&[value.into()], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        out
    };
    let mut dir = TestDir::new();
    let honest = write(vec![b'x'; 99_996], properties(Compression::GZIP(Default::default())).build());
    let varint = |n: u32| [n as u8 | 0x80, (n >> 7) as u8 | 0x80, (n >> 14) as u8];
    let at = honest.windows(3).position(|bytes| bytes == varint(200_000)).unwrap();
    let lying = [&honest[..at], &varint(80_000), &honest[at + 3..]].concat();
    dir.put("lying.parquet", lying);
    dir.options.memory = Some(50_000);
    let expected = "lying.parquet: after row 0: a page unpacks to 50,001 bytes or more; expected at most 50,000; use a larger --memory";
    assert_eq!(dir.error(&["lying.parquet"]), expected);
    dir.options.memory = Some(200_000);
    assert!(dir.error(&["lying.parquet"]).starts_with("lying.parquet: after row 0: the file is damaged"));
    // A value has the limit of a line.
    for (length, fits) in [(1 << 24, true), ((1 << 24) + 1, false)] {
        dir.put("long.parquet", write(vec![b'x'; length], properties(Compression::ZSTD(Default::default())).build()));
        dir.options.memory = None;
        match fits {
            true => assert_eq!(dir.read(&["long.parquet"]).counts.key_bytes, length as u64),
            false => assert_eq!(
                dir.error(&["long.parquet"]),
                "long.parquet: row 1: too long; expected at most 16777216 bytes for a value"
            ),
        }
    }
    // Values that repeat the one before are decoded a few at a time.
    let delta = properties(Compression::UNCOMPRESSED).set_encoding(::parquet::basic::Encoding::DELTA_BYTE_ARRAY);
    dir.put("delta.parquet", write(vec![b'x'; 1000], delta.build()));
    dir.options.memory = Some(3000);
    assert_eq!(dir.read(&["delta.parquet"]).keys.len(), 1);
}

#[test]
fn parquet_without_its_ends() {
    let dir = TestDir::new();
    let column = Column::I64(vec![Some(1), Some(2)]);
    let whole = parquet_file("optional int64 k;", Compression::SNAPPY, &[vec![column]]);
    let end = whole.len() - 8;
    let long = u32::try_from(whole.len()).unwrap().to_le_bytes();
    let size = whole.len();
    for (bytes, what) in [
        (b"PAR1".to_vec(), "is too short, 4 bytes; expected a whole Parquet file".to_string()),
        (b"PAR1PAR1".to_vec(), "is too short, 8 bytes; expected a whole Parquet file".into()),
        (
            b"PAR1xxxxPAR1".to_vec(),
            "its table of contents would have 2,021,161,080 bytes, and all of it has 12; expected a whole Parquet file"
                .into(),
        ),
        (
            [&whole[..end], &long, b"PAR1"].concat(),
            format!(
                "its table of contents would have {size} bytes, and all of it has {size}; expected a whole Parquet file"
            ),
        ),
        (whole[..size - 1].to_vec(), "does not end with PAR1; expected a whole Parquet file; was it cut?".into()),
        ([&whole[..size - 4], b"PARE"].concat(), "is encrypted; expected a plain Parquet file".into()),
        (whole[1..].to_vec(), "does not begin with PAR1; expected a parquet file (not compressed as a whole)".into()),
    ] {
        dir.put("a.parquet", bytes);
        assert_eq!(dir.error(&["a.parquet"]), format!("a.parquet: {what}"));
    }
}

#[test]
fn parquet_labels() {
    let mut dir = TestDir::new().column("key");
    dir.options.second_column = Some("label".into());
    let rows = 10_000usize;
    let key = |i: usize| (i % 11 != 3).then(|| format!("k{i}"));
    let label = |i: usize| (i % 7 != 5).then_some((i * i % 1009) as i64 - 500);
    let group = || {
        let keys: Vec<Option<String>> = (0..rows).map(key).collect();
        let keys = strings(&keys.iter().map(Option::as_deref).collect::<Vec<_>>());
        vec![Column::I64((0..rows).map(label).collect()), keys]
    };
    let schema = "optional int64 label; optional binary key (UTF8);";
    dir.put("t.parquet", parquet_file(schema, Compression::SNAPPY, &[group(), group()]));
    let pair = |i: usize| Some((label(i).map(|label| label.to_string()).unwrap_or_default(), key(i)?));
    let expected: Vec<_> = (0..rows).filter_map(pair).collect();
    assert_eq!(pairs(&dir, "t.parquet"), [expected.clone(), expected].concat());

    dir.options.second_column = Some("none".into());
    assert_eq!(dir.error(&["t.parquet"]), "t.parquet: no column \"none\"; expected one of \"label\", \"key\"");
}
