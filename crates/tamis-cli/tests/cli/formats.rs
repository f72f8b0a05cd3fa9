//! every format and every compression -> the same filter.

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::desk::{Desk, quickstart};

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    flate2::bufread::GzEncoder::new(data, flate2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

fn zst(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(vec![], 1).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
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
    let desk = Desk::new();
    let deny = quickstart("deny.txt");
    desk.run(&format!("build {deny} -o plain.tamis")).text(0);
    let text = fs::read(&deny).unwrap();
    for (name, packed) in [("gzip", gzip(&text)), ("zstd", zst(&text)), ("xz", xz(&text))] {
        // Recognised by content: the name says nothing, and standard input has none.
        desk.put("keys", &packed);
        desk.run("build keys -o file.tamis").text(0);
        desk.feed("build -o stdin.tamis", &packed).text(0);
        assert!(desk.read("file.tamis") == desk.read("plain.tamis"), "{name}");
        assert!(desk.read("stdin.tamis") == desk.read("plain.tamis"), "{name} from standard input");
        assert_eq!(desk.run("query -c plain.tamis keys").text(0), "93514\n", "{name}");

        desk.put("cut", &packed[..packed.len() / 2]);
        let message = desk.error("build cut -o out.tamis");
        assert!(message.contains(&format!("the {name} data ends too early")) && message.starts_with("cut: line "));
    }
}

#[test]
fn columns_of_tables_are_keys() {
    let desk = Desk::new();
    let hosts = ["a.example", "b.example", "c,d.example"];
    desk.put("hosts.txt", hosts.join("\n"));
    desk.put("hosts.csv", "id,host\n1,a.example\n2,b.example\n3,\"c,d.example\"\n");
    desk.put("hosts.tsv", "id\thost\n1\ta.example\n2\tb.example\n3\tc,d.example\n");
    let rows: Vec<_> = (1..).zip(hosts).map(|(id, host)| format!("{{\"id\":{id},\"host\":\"{host}\"}}\n")).collect();
    desk.put("hosts.jsonl", rows.concat());
    desk.put("hosts.parquet", parquet_table(&hosts));
    desk.put("hosts.csv.gz", gzip(&desk.read("hosts.csv")));
    desk.put("numbers.txt", "1\n2\n3\n");

    desk.run("build hosts.txt -o text.tamis").text(0);
    desk.run("build --integers numbers.txt -o numbers.tamis").text(0);
    for name in ["hosts.csv", "hosts.tsv", "hosts.jsonl", "hosts.parquet", "hosts.csv.gz"] {
        desk.run(&format!("build --column host {name} -o out.tamis")).text(0);
        assert_eq!(desk.read("out.tamis"), desk.read("text.tamis"), "{name}");
        let found = desk.run(&format!("query --column host text.tamis {name}")).text(0);
        assert_eq!(found.trim_end(), hosts.join("\n"), "{name}");
        desk.run(&format!("verify text.tamis --column host --keys {name}")).text(0);

        // Integers by their type in jsonl and parquet, by the option elsewhere.
        let integers = if name.contains("json") || name.contains("parquet") { "" } else { "--integers" };
        desk.run(&format!("build --column id {integers} {name} -o out.tamis")).text(0);
        assert_eq!(desk.read("out.tamis"), desk.read("numbers.tamis"), "{name}");

        let message = desk.error(&format!("build --column nobody {name} -o out2.tamis"));
        assert!(message.starts_with(name) && message.contains("nobody") && message.contains("host"), "{message}");
    }
    desk.run("build --format csv --column #2 hosts.csv -o out.tamis").text(0);
    assert_eq!(desk.run("query out.tamis hosts.txt").text(0).lines().count(), 3);
    let message = desk.error("build --column host hosts -o out2.tamis");
    assert_eq!(message, "hosts: no such file");
    let message = desk.feed("build --column host -o out2.tamis", "x").complaint();
    assert!(message.starts_with("standard input: --column does not apply to text lines"), "{message}");
}

#[test]
fn lines_are_cleaned_up() {
    let desk = Desk::new();
    desk.feed("build -o plain.tamis", "one\ntwo words\n").text(0);
    for (options, input) in [
        ("", "one\r\ntwo words\r\n"),
        ("", "\u{feff}one\n\n\ntwo words"),
        ("--trim", "  one\t\n   \ntwo words \r\n"),
        ("--lowercase", "ONE\nTwo Words\none\n"),
        ("--trim --lowercase", " One \n\ttwo WORDS\n"),
        ("-0", "one\0two words\0"),
    ] {
        desk.feed(&format!("build {options} -o out.tamis"), input).text(0);
        assert_eq!(desk.read("out.tamis"), desk.read("plain.tamis"), "{options} {input:?}");
        desk.feed(&format!("query -c {options} plain.tamis"), input).text(0);
    }
    assert_eq!(desk.feed("query -0 plain.tamis", "one\0no\0two words").text(0), "one\0two words\0");
    // Without the clean-up these are other keys.
    desk.feed("query plain.tamis", " one\nONE\none\0two\n").text(1);
}

#[test]
fn any_bytes_are_a_key() {
    let desk = Desk::new();
    let long = "x".repeat(1_000_000);
    let input = [b"nul\0inside\nnot \xff\xfe text\n", long.as_bytes(), b"\n\xf0\x9f\xa7\x80"].concat();
    desk.feed("build -o out.tamis --fpr 1e-9", &input).text(0);
    let run = desk.feed("query out.tamis", &input);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out == [&input[..], b"\n"].concat());
    desk.feed("query out.tamis", b"nul\nnot \xff\xfe\n").text(1);
    desk.feed("query out.tamis", &long[1..]).text(1);
    let line = desk.feed("query --json out.tamis", b"not \xff\xfe text\n").json(0);
    assert_eq!(line["key"], "not \u{fffd}\u{fffd} text");
}

#[test]
fn integers_are_numbers_and_not_their_digits() {
    let desk = Desk::new();
    desk.feed("build --integers -o n.tamis --fpr 1e-9", "7\n0\n18446744073709551615\n007\n").text(0);
    let inspected = desk.run("inspect --json n.tamis").json(0);
    assert_eq!((inspected["domain"].as_str(), inspected["keys"].as_u64()), (Some("u64"), Some(3)));
    let found = desk.feed("query --integers n.tamis", "07\n8\n18446744073709551615\n").text(0);
    assert_eq!(found, "7\n18446744073709551615\n");
    for (input, shown) in
        [("-1", "-1"), ("18446744073709551616", "18446744073709551616"), ("1 ", "1 "), ("a\\", "a\\\\")]
    {
        let message = desk.feed("build --integers -o out.tamis", format!("5\n{input}\n")).complaint();
        assert_eq!(message, format!("standard input: line 2: \"{shown}\" is not a number from 0 to 2^64 - 1"));
    }
}
