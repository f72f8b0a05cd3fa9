//! every format and every compression -> the same filter.

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use serde_json::Value;

use crate::test_dir::{TestDir, quickstart};

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    flate2::bufread::GzEncoder::new(data, flate2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

pub(crate) fn zst(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(vec![], 1).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(data: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    liblzma::bufread::XzEncoder::new(data, 0).read_to_end(&mut out).unwrap();
    out
}

/// A table with a text column `host` and an integer column `id`.
pub(crate) fn parquet_table(hosts: &[&str]) -> Vec<u8> {
    let schema = "message m { required binary host (UTF8); required int64 id; }";
    let mut out = vec![];
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                let values: Vec<ByteArray> = hosts.iter().map(|&host| host.into()).collect();
                writer.write_batch(&values, None, None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(writer) => {
                let values: Vec<i64> = (1..).take(hosts.len()).collect();
                writer.write_batch(&values, None, None).unwrap();
            }
            _ => panic!("no such column in the schema"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn compressed_inputs_give_the_same_bytes() {
    let dir = TestDir::new();
    let deny = quickstart("deny.txt");
    dir.run(&format!("build {deny} -o plain.tamis")).text(0);
    let text = fs::read(&deny).unwrap();
    for (name, packed) in [("gzip", gzip(&text)), ("zstd", zst(&text)), ("xz", xz(&text))] {
        // Recognised by content: the name says nothing, and standard input has none.
        dir.put("keys", &packed);
        dir.run("build keys -o file.tamis").text(0);
        dir.feed("build -o stdin.tamis", &packed).text(0);
        assert!(dir.read("file.tamis") == dir.read("plain.tamis"), "{name}");
        assert!(dir.read("stdin.tamis") == dir.read("plain.tamis"), "{name} from standard input");
        assert_eq!(dir.run("query -c plain.tamis keys").text(0), "93514\n", "{name}");

        dir.put("cut", &packed[..packed.len() / 2]);
        let message = dir.error("build cut -o out.tamis");
        assert!(message.contains(&format!("the {name} data ends too early")) && message.starts_with("cut: line "));
    }
}

#[test]
fn columns_of_tables_are_keys() {
    let dir = TestDir::new();
    let hosts = ["a.example", "b.example", "c,d.example"];
    dir.put("hosts.txt", hosts.join("\n"));
    dir.put("hosts.csv", "id,host\n1,a.example\n2,b.example\n3,\"c,d.example\"\n");
    dir.put("hosts.tsv", "id\thost\n1\ta.example\n2\tb.example\n3\tc,d.example\n");
    let rows: Vec<_> = (1..).zip(hosts).map(|(id, host)| format!("{{\"id\":{id},\"host\":\"{host}\"}}\n")).collect();
    dir.put("hosts.jsonl", rows.concat());
    dir.put("hosts.parquet", parquet_table(&hosts));
    dir.put("hosts.csv.gz", gzip(&dir.read("hosts.csv")));
    dir.put("numbers.txt", "1\n2\n3\n");

    dir.run("build hosts.txt -o text.tamis").text(0);
    dir.run("build --integers numbers.txt -o numbers.tamis").text(0);
    for name in ["hosts.csv", "hosts.tsv", "hosts.jsonl", "hosts.parquet", "hosts.csv.gz"] {
        dir.run(&format!("build --column host {name} -o out.tamis")).text(0);
        assert_eq!(dir.read("out.tamis"), dir.read("text.tamis"), "{name}");
        let found = dir.run(&format!("query --column host text.tamis {name}")).text(0);
        assert_eq!(found.trim_end(), hosts.join("\n"), "{name}");
        dir.run(&format!("verify text.tamis --column host --keys {name}")).text(0);

        // Integers by their type in jsonl and parquet, by the option elsewhere.
        let integers = if name.contains("json") || name.contains("parquet") { "" } else { "--integers" };
        dir.run(&format!("build --column id {integers} {name} -o out.tamis")).text(0);
        assert_eq!(dir.read("out.tamis"), dir.read("numbers.tamis"), "{name}");

        let message = dir.error(&format!("build --column nobody {name} -o out2.tamis"));
        assert!(message.starts_with(name) && message.contains("nobody") && message.contains("host"), "{message}");
    }
    dir.run("build --format csv --column #2 hosts.csv -o out.tamis").text(0);
    assert_eq!(dir.run("query out.tamis hosts.txt").text(0).lines().count(), 3);
    let message = dir.error("build --column host hosts -o out2.tamis");
    assert_eq!(message, "hosts: no such file; expected a file of keys");
    let message = dir.feed("build --column host -o out2.tamis", "x").complaint();
    assert!(message.starts_with("--column: standard input is text, which has no columns; expected "), "{message}");
}

#[test]
fn lines_are_cleaned_up() {
    let dir = TestDir::new();
    dir.feed("build -o plain.tamis", "one\ntwo words\n").text(0);
    for (options, input) in [
        ("", "one\r\ntwo words\r\n"),
        ("", "\u{feff}one\n\n\ntwo words"),
        ("--trim", "  one\t\n   \ntwo words \r\n"),
        ("--lowercase", "ONE\nTwo Words\none\n"),
        ("--trim --lowercase", " One \n\ttwo WORDS\n"),
        ("-0", "one\0two words\0"),
    ] {
        dir.feed(&format!("build {options} -o out.tamis"), input).text(0);
        assert_eq!(dir.read("out.tamis"), dir.read("plain.tamis"), "{options} {input:?}");
        dir.feed(&format!("query -c {options} plain.tamis"), input).text(0);
    }
    assert_eq!(dir.feed("query -0 plain.tamis", "one\0no\0two words").text(0), "one\0two words\0");
    // Without the clean-up these are other keys.
    dir.feed("query plain.tamis", " one\nONE\noneself\n").text(1);
    dir.feed("query plain.tamis --format text", "one\0two\n").text(1);
}

#[test]
fn any_bytes_are_a_key() {
    let dir = TestDir::new();
    let long = "x".repeat(1_000_000);
    let input = [b"nul\0inside\nnot \xff\xfe text\n", long.as_bytes(), b"\n\xf0\x9f\xa7\x80"].concat();
    dir.feed("build -o out.tamis --fpr 1e-9 --format text", &input).text(0);
    let run = dir.feed("query out.tamis --format text", &input);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out == [&input[..], b"\n"].concat());
    dir.feed("query out.tamis", b"nul\nnot \xff\xfe\n").text(1);
    dir.feed("query out.tamis", &long[1..]).text(1);
    let line = dir.feed("query --json out.tamis", b"not \xff\xfe text\n").json(0);
    assert_eq!((&line["key"], &line["key_hex"]), (&Value::Null, &"6e6f7420fffe2074657874".into()));
}

#[test]
fn integers_are_numbers_and_not_their_digits() {
    let dir = TestDir::new();
    dir.feed("build --integers -o n.tamis --fpr 1e-9", "7\n0\n18446744073709551615\n007\n").text(0);
    let inspected = dir.run("inspect --json n.tamis").json(0);
    assert_eq!((inspected["key_type"].as_str(), inspected["keys"].as_u64()), (Some("integer"), Some(3)));
    let found = dir.feed("query --integers n.tamis", "07\n8\n18446744073709551615\n").text(0);
    assert_eq!(found, "7\n18446744073709551615\n");
    let below = "-7\n-9223372036854775808\n";
    dir.feed("build --integers -o below.tamis --fpr 1e-9", below).text(0);
    assert_eq!(dir.feed("query --integers below.tamis", format!("7\n{below}18446744073709551609\n")).text(0), below);
    for (input, shown) in [
        ("-9223372036854775809", "-9223372036854775809"),
        ("18446744073709551616", "18446744073709551616"),
        ("1 ", "1 "),
        ("a\\", "a\\\\"),
    ] {
        let message = dir.feed("build --integers -o out.tamis", format!("5\n{input}\n")).complaint();
        assert_eq!(
            message,
            format!("standard input: line 2: \"{shown}\" is not an integer; expected -2^63 to 2^64 - 1")
        );
    }
}
