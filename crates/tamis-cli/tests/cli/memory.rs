//! builds of a whole shard -> the memory that they take, which is no more than --help says.

use std::fmt::{self, Write as _};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::test_dir::{Run, TestDir};

/// Close to the largest shard, which takes the most.
const KEYS: u64 = 1_450_000;

/// MB that a thread may take on top of --memory, by what is built.
const ROWS: &[(u64, &str)] = &[
    (60, "build keys.txt"),
    (60, "build keys.txt --kind fuse"),
    (120, "build keys.txt --exclude others.txt"),
    (120, "build keys.txt --workload log.tsv"),
    (120, "build table.csv --column #1 --partition-column #2 --exclude others.csv"),
    (220, "build keys.txt --exclude others.txt --exact"),
    (220, "build keys.txt --exclude others.txt --kind naive"),
    (220, "map build pairs.tsv"),
    (220, "sets build --pairs sets.tsv"),
];

const MEMORY_MB: u64 = 4;

/// The most memory that a run had, in KiB, and what it left. The system says it as long as the process is there.
fn peak(dir: &TestDir, line: &str) -> (u64, Run) {
    let mut child = dir.command(line).spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = found.unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    (peak, child.wait_with_output().unwrap().into())
}

/// A file of some kilobytes with one value of 200 MB.
#[test]
fn a_page_is_not_unpacked_beyond_the_memory() {
    let dir = TestDir::new();
    let zstd = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let schema = Arc::new(parse_message_type("message m { required binary host; }").unwrap());
    let mut out = vec![];
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(zstd.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let value = ByteArray::from(vec![b'x'; 200_000_000]);
    column.typed::<ByteArrayType>().write_batch(&[value], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    assert!(out.len() < 100_000, "{}", out.len());
    dir.put("a.parquet", out);
    let (peak, run) = peak(&dir, "build a.parquet -o out --memory 64M");
    let message = run.complaint();
    let start = "a.parquet: after row 0: a page unpacks to 200,000,004 bytes";
    assert!(
        message.starts_with(start) && message.ends_with("; expected at most 67,108,864; use a larger --memory"),
        "{message}"
    );
    assert!(peak < 64 << 10, "{peak} KiB");
}

#[test]
fn builds_take_the_memory_that_is_said() {
    let dir = TestDir::new();
    let write = |name: &str, line: &dyn Fn(&mut String, u64) -> fmt::Result| {
        let mut text = String::new();
        (0..KEYS).try_for_each(|i| line(&mut text, i)).unwrap();
        dir.put(name, text);
    };
    // Values and sets as they are met: few are frequent.
    let value = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).trailing_zeros();
    write("keys.txt", &|text, i| writeln!(text, "host-{i}.example"));
    write("others.txt", &|text, i| writeln!(text, "other-{i}.example"));
    write("log.tsv", &|text, i| writeln!(text, "query-{i}.example\t{}", 1 + KEYS / (i + 1)));
    write("table.csv", &|text, i| writeln!(text, "host-{i}.example,p{}", i % 50));
    write("others.csv", &|text, i| writeln!(text, "other-{i}.example,p{}", i % 50));
    write("pairs.tsv", &|text, i| writeln!(text, "host-{i}.example\tv{}", value(i)));
    write("sets.tsv", &|text, i| writeln!(text, "host-{i}.example\ts{},s{}", i * 7919 % 101, i % 97));
    let help = dir.run("build --help").text(0).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "up to 60 MB for members alone, 120 MB with excluded keys or a workload, 220 MB with --exact or --kind naive, \
                and for maps and set indexes";
    assert!(help.contains(said), "{help}");
    let (mut wrong, mut most) = (vec![], 0);
    for &(more, line) in ROWS {
        let (peak, run) = peak(&dir, &format!("{line} -o out -q --threads 1 --memory {MEMORY_MB}M"));
        run.text(0);
        println!("{:>4} MB of {:>3}: {line}", peak / 1000, more + MEMORY_MB);
        if peak * 1024 > (more * 1_000_000) + (MEMORY_MB << 20) {
            wrong.push(format!("{line}: {peak} KiB; expected at most {more} MB and {MEMORY_MB} MiB"));
        }
        most = most.max(peak);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What says so little is not the process that was meant.
    assert!(most > 100_000, "{most}");
}
