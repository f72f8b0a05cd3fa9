//! a log of queries, or queries with counts -> keys and weights: a workload.
//!
//! ```text
//!   a log                one query per line; a query that stands there twice counts twice
//!   key<TAB>count        a number of queries, a fraction too, behind the last tab of every line
//!   `uniq -c`            blanks, a count, one blank, the key
//!   key count            a count behind the last blank of every line; no key twice
//!   csv tsv jsonl parquet     --workload-column, and --weight-column if there is one; else every row counts once
//! ```
//!
//! A text file is one or the other as a whole, and its first line that is not blank decides: does a number follow its last tab? If it
//! does, all others must have one as well. A log may have tabs and numbers in it after its first line; but where that one has
//! a tab and no number behind it, and the next one has, it is a header, and to count it as a query, and all the others as queries
//! that end with a number, would be wrong in silence.
//!
//! Without a tab and a number on the first line, the first 64 KiB decide by all their lines, for queries have blanks and numbers too ("windows 10"):
//!
//! ```text
//!   every line begins with a count, some with a blank before it      uniq -c
//!   every line ends with a count, every key stands there once        key count
//!   half of the lines or fewer are like that                         a log
//!   anything else                                                    an error: key<TAB>count (key<TAB>1 for a log) says what is meant
//! ```
//!
//! What follows the first 64 KiB must be of the same kind.
//!
//! Keys are cleaned up like all keys. A name that ends with `.tsv` means text lines here, unless a column is named.

use std::collections::HashSet;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use memchr::{memchr, memchr_iter, memrchr};
use tamis::BuildError;

use super::lines::Lines;
use super::sink::{Sink, quote, trim};
use super::{Counts, KeyRef, Options, SecondColumn, Source, read_checked};

/// What receives the queries, each with its weight, which is 1 in a log and may be 0 where counts are given.
pub(crate) type Visit<'a> = dyn FnMut(KeyRef<'_>, f64) -> Result<()> + 'a;

impl Options {
    /// The options of expected queries, for keys that are read with these: the same clean-up, other columns.
    pub(crate) fn for_queries(&self, column: Option<String>, counts: Option<String>) -> Options {
        Options { column, second_column: counts, second_holds: SecondColumn::Count, ..self.clone() }
    }
}

/// Gives every query of `inputs` to `visit`, in order. The options are those of [`Options::for_queries`], and progress is
/// that of [`super::for_each`]. A weight that the library does not take is an error that names the line.
pub(crate) fn for_each(
    inputs: &[Source],
    options: &Options,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<Counts> {
    read_all(inputs, options, &mut std::io::stdin().lock(), progress, visit)
}

/// [`for_each`] with any reader as standard input.
fn read_all(
    inputs: &[Source],
    options: &Options,
    stdin: &mut dyn Read,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<Counts> {
    if options.second_column.is_some() && options.column.is_none() {
        bail!("--weight-column: not possible without --workload-column; expected both");
    }
    let (counts, _) = read_checked(inputs, options, stdin, progress, &mut |key, count, _| {
        let weight = match count.map(|count| count.text) {
            None | Some(b"1") => 1.0,
            Some(text) => match number(text) {
                Ok(weight) => weight,
                Err(message) => return Ok(Err(message)),
            },
        };
        let Err(error) = visit(key, weight) else { return Ok(Ok(())) };
        match error.downcast_ref() {
            Some(tamis::Error::Build(refused @ (BuildError::Weight { .. } | BuildError::Weights))) => {
                Ok(Err(refused.to_string()))
            }
            _ => Err(error),
        }
    })?;
    Ok(counts)
}

/// A count as it is written, of any size and sign.
fn number(text: &[u8]) -> Result<f64, String> {
    let parsed = str::from_utf8(text.trim_ascii()).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("{} is not a weight; expected a number as in key<TAB>17", quote(text)))
}

/// What the lines of a file are.
enum Shape {
    /// Queries; the first one, on this line, may yet turn out to be a header.
    Log { header: Option<u64> },
    /// Queries and counts, the first on this line.
    Counted(u64),
    /// The same without tabs.
    Spaced(Spaced),
}

/// Where the count of a line without tabs stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spaced {
    /// Before the key, as `uniq -c` writes it.
    Before,
    /// Behind the key.
    Behind,
}

impl Spaced {
    /// The key and the count of a line.
    fn split(self, line: &[u8]) -> Option<(&[u8], &[u8])> {
        match self {
            Spaced::Before => {
                let line = line.trim_ascii_start();
                let (count, key) = line.split_at(memchr(b' ', line)?);
                count.iter().all(u8::is_ascii_digit).then_some((&key[1..], count))
            }
            Spaced::Behind => {
                let (key, count) = line.split_at(memrchr(b' ', line)?);
                let (key, count) = (key.trim_ascii_end(), &count[1..]);
                // "to infinity" ends with a number too, as Rust reads them.
                let counts = count.first().is_some_and(u8::is_ascii_digit) && number(count).is_ok();
                (counts && !key.is_empty() && memchr(b'\t', line).is_none()).then_some((key, count))
            }
        }
    }

    fn words(self) -> &'static str {
        match self {
            Spaced::Before => "before the key, as uniq -c writes them",
            Spaced::Behind => "behind the key",
        }
    }
}

/// So many bytes decide whether counts stand next to blanks.
const HEAD: u64 = 1 << 16;

/// Whether these lines, with their numbers, have counts next to blanks; a line and what is wrong with it if that cannot be told.
fn spaced(lines: &[(u64, &[u8])]) -> Result<Option<Spaced>, (u64, String)> {
    let Some(&(first, line)) = lines.first() else { return Ok(None) };
    if split(line).is_some_and(|(_, count)| number(count).is_ok()) {
        return Ok(None);
    }
    let all = |spaced: Spaced| lines.iter().all(|(_, line)| spaced.split(line).is_some());
    let unclear = |at: u64, what: String| {
        let expected = "expected key<TAB>weight on every line (key<TAB>1 for a log), or the output of uniq -c";
        Err((at, format!("{what}; {expected}")))
    };
    if all(Spaced::Before) {
        return match lines.iter().any(|(_, line)| line.starts_with(b" ")) {
            true => Ok(Some(Spaced::Before)),
            false => unclear(first, format!("{} begins with a number, as every line: a count?", quote(line))),
        };
    }
    if all(Spaced::Behind) {
        let mut keys = HashSet::new();
        let again = lines.iter().find(|(_, line)| !keys.insert(Spaced::Behind.split(line)));
        return match again {
            None => Ok(Some(Spaced::Behind)),
            Some(&(at, line)) => {
                let what = "every line up to here ends with a number, but this key came before: a log, or counts?";
                unclear(at, format!("{}: {what}", quote(line)))
            }
        };
    }
    for spaced in [Spaced::Before, Spaced::Behind] {
        let without = |(_, line): &&(u64, &[u8])| spaced.split(line).is_none();
        let some = lines.iter().filter(without).count();
        if let Some(&(at, line)) = lines.iter().find(without).filter(|_| 2 * some < lines.len()) {
            return unclear(at, format!("{} has no count, but most lines have one {}", quote(line), spaced.words()));
        }
    }
    Ok(None)
}

/// Every line is a query, or every line is a query and its count.
pub(super) fn read(mut reader: Box<dyn Read + '_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let options = sink.options();
    let separator = if options.null_separated { 0 } else { b'\n' };
    let head = peek(&mut *reader, separator).map_err(|(line, e)| sink.error_at(line, e))?;
    let spaced = spaced(&whole_lines(&head, options)).map_err(|(line, e)| sink.error_at(line, e))?;
    let mut shape = spaced.map(Shape::Spaced);
    let mut lines = Lines::new(Box::new(Cursor::new(head).chain(reader)), separator);
    while let Some((at, line)) = lines.next().map_err(|(line, e)| sink.error_at(line, e))? {
        let line = if options.null_separated { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        if line.is_empty() || (options.trim && trim(line).is_empty()) {
            sink.blank(1);
            continue;
        }
        let shape = shape.get_or_insert_with(|| match split(line) {
            Some((_, count)) if number(count).is_ok() => Shape::Counted(at),
            tab => Shape::Log { header: tab.map(|_| at) },
        });
        let query = match shape {
            Shape::Counted(first) => {
                let Some((query, count)) = split(line) else {
                    let message = format!(
                        "{} has no count, but line {first} has one; expected key<TAB>weight on every line, or on none",
                        quote(line)
                    );
                    bail!(sink.error_at(at, message));
                };
                sink.second(count);
                query
            }
            Shape::Spaced(spaced) => {
                let Some((query, count)) = spaced.split(line) else {
                    let words = spaced.words();
                    let message = format!(
                        "{} has no count, but the lines before have one {words}; expected the same on every line, or key<TAB>count",
                        quote(line)
                    );
                    bail!(sink.error_at(at, message));
                };
                sink.second(count);
                query
            }
            Shape::Log { header } => {
                if let Some(first) = header.filter(|&first| first < at) {
                    if split(line).is_some_and(|(_, count)| number(count).is_ok()) {
                        let message = format!(
                            "has a count, but line {first} has none; expected key<TAB>weight on every line, without a header"
                        );
                        bail!(sink.error_at(at, message));
                    }
                    *header = None;
                }
                line
            }
        };
        if sink.text(at, query)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The first [`HEAD`] bytes or all; the number of the line that cannot be read.
fn peek(reader: &mut dyn Read, separator: u8) -> Result<Vec<u8>, (u64, io::Error)> {
    let mut head = Vec::new();
    match reader.take(HEAD).read_to_end(&mut head) {
        Ok(_) => Ok(head),
        Err(e) => Err((1 + memchr_iter(separator, &head).count() as u64, e)),
    }
}

/// The lines of a text that are no blank ones, with their numbers; without the last if it may go on.
fn whole_lines<'a>(head: &'a [u8], options: &Options) -> Vec<(u64, &'a [u8])> {
    let separator = if options.null_separated { 0 } else { b'\n' };
    let whole = match head.len() as u64 {
        HEAD => &head[..memrchr(separator, head).unwrap_or(0)],
        _ => head,
    };
    let lines = whole.split(|&byte| byte == separator).zip(1..);
    let lines = lines
        .map(|(line, at)| (at, if options.null_separated { line } else { line.strip_suffix(b"\r").unwrap_or(line) }));
    lines.filter(|(_, line)| !trim(line).is_empty()).collect()
}

/// A line at its last tab.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = memrchr(b'\t', line)?;
    Some((&line[..tab], &line[tab + 1..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;

    use anyhow::anyhow;

    use super::super::Format;
    use super::*;

    type Queries = Vec<(String, f64)>;

    /// Reads one file of this name; integers are written with a sign before them.
    fn read_named(name: &str, bytes: &[u8], options: &Options) -> Result<(Queries, Counts)> {
        let folder = tempfile::tempdir()?;
        let path = if name == "-" { PathBuf::from("-") } else { folder.path().join(name) };
        if name != "-" {
            fs::write(&path, bytes)?;
        }
        let mut queries = Vec::new();
        let mut library = tamis::Options::default().with_workload().start();
        let counts = read_all(&[Source::from(path)], options, &mut &bytes[..], &mut |_| {}, &mut |key, weight| {
            queries.push(match key {
                KeyRef::Bytes(key) => (String::from_utf8_lossy(key).into_owned(), weight),
                KeyRef::Integer(key) => (format!("+{key}"), weight),
            });
            Ok(library.push_query(0u64, weight).map_err(tamis::Error::from)?)
        });
        // The folder's name is random.
        let folder = format!("{}/", folder.path().display());
        counts.map(|counts| (queries, counts)).map_err(|e| anyhow!("{}", e.to_string().replace(&folder, "")))
    }

    fn plain() -> Options {
        Options::default().for_queries(None, None)
    }

    fn columns(keys: &str, counts: Option<&str>) -> Options {
        Options::default().for_queries(Some(keys.into()), counts.map(String::from))
    }

    fn read(bytes: &[u8]) -> Queries {
        read_named("log", bytes, &plain()).unwrap().0
    }

    fn fails(name: &str, bytes: &[u8], options: &Options) -> String {
        let message = read_named(name, bytes, options).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    fn expected(queries: &[(&str, f64)]) -> Queries {
        queries.iter().map(|&(key, weight)| (key.into(), weight)).collect()
    }

    #[test]
    fn a_log_counts_every_line_once() {
        assert_eq!(read(b"a\nb\na"), expected(&[("a", 1.0), ("b", 1.0), ("a", 1.0)]));
        assert_eq!(read(b""), []);
        assert_eq!(read(b"17\n18\n"), expected(&[("17", 1.0), ("18", 1.0)]));
        // Tabs and numbers behind them are part of a query where the first has none.
        assert_eq!(read(b"a\nb\t7\n"), expected(&[("a", 1.0), ("b\t7", 1.0)]));
        assert_eq!(read(b"a\tx\nb\tc\nd\t7\n"), expected(&[("a\tx", 1.0), ("b\tc", 1.0), ("d\t7", 1.0)]));
        assert_eq!(read(b"a\t\n"), expected(&[("a\t", 1.0)]));
    }

    #[test]
    fn counts_stand_behind_the_last_tab() {
        let text = b"a\t3\nb c\t0.5\nd\te\t1e3\nf\t 12 \ng\t0\nh\t+1\ni\t1\n";
        let queries = [("a", 3.0), ("b c", 0.5), ("d\te", 1000.0), ("f", 12.0), ("g", 0.0), ("h", 1.0), ("i", 1.0)];
        for name in ["log", "log.tsv", "log.txt", "log.counts", "-"] {
            assert_eq!(read_named(name, text, &plain()).unwrap().0, expected(&queries), "{name}");
        }
    }

    #[test]
    fn counts_of_uniq_stand_before_the_key() {
        // As GNU writes them, and BSD; keys keep their blanks, and a blank line that was counted is no key.
        let text = b"      3 a\n   1204 b  c \n1000000  d\n      2 \n      1 e\t7x\n";
        let queries = [("a", 3.0), ("b  c ", 1204.0), (" d", 1e6), ("e\t7x", 1.0)];
        let (read, counts) = read_named("log.txt", text, &plain()).unwrap();
        assert_eq!((read, counts.blank), (expected(&queries), 1));
        assert_eq!(self::read(b"   2 17\n  30 4\n"), expected(&[("17", 2.0), ("4", 30.0)]));
        assert_eq!(self::read(b"   2 windows 10\r\n\r\n   1 x 3\r\n"), expected(&[("windows 10", 2.0), ("x 3", 1.0)]));
        let keys = Options { integers: true, null_separated: true, ..Options::default() };
        let queries = read_named("log", b"      2 7\x00      3 8\x00", &keys.for_queries(None, None)).unwrap().0;
        assert_eq!(queries, expected(&[("+7", 2.0), ("+8", 3.0)]));
    }

    #[test]
    fn counts_may_stand_behind_a_blank() {
        let text = b"a 3\nb c   0.5\n\n d 1e3\nwindows 10 7\n";
        assert_eq!(read(text), expected(&[("a", 3.0), ("b c", 0.5), (" d", 1000.0), ("windows 10", 7.0)]));
    }

    #[test]
    fn queries_with_numbers_are_a_log() {
        let text = b"windows 10\nweather\n7 eleven\nto infinity\nwindows 10\n";
        let queries = ["windows 10", "weather", "7 eleven", "to infinity", "windows 10"].map(|query| (query, 1.0));
        assert_eq!(read(text), expected(&queries));
        assert_eq!(read(b"to infinity\n a\n"), expected(&[("to infinity", 1.0), (" a", 1.0)]));
        // The last line that was looked at was cut: it does not count.
        let mut text = b"weather\n".repeat(HEAD as usize / 8 - 1);
        text.extend_from_slice(b"a 7 b\n");
        assert_eq!(read(&text).len(), HEAD as usize / 8);
    }

    #[test]
    fn blanks_that_say_nothing_clear_are_refused() {
        let wanted = "; expected key<TAB>weight on every line (key<TAB>1 for a log), or the output of uniq -c";
        for (text, what) in [
            (&b"3 a\n10 b\n"[..], "log: line 1: \"3 a\" begins with a number, as every line: a count?"),
            (b"\n17 3\n18 4\n", "log: line 2: \"17 3\" begins with a number, as every line: a count?"),
            (
                b"a 443\nb 80\na 443\n",
                "log: line 3: \"a 443\": every line up to here ends with a number, but this key came before: a log, or counts?",
            ),
            (b"a 3\nb\nc 4\n", "log: line 2: \"b\" has no count, but most lines have one behind the key"),
            (
                b"  3 a\n  4 b\n c\n",
                "log: line 3: \" c\" has no count, but most lines have one before the key, as uniq -c writes them",
            ),
        ] {
            assert_eq!(fails("log", text, &plain()), format!("{what}{wanted}"));
        }
        // Behind what was looked at, one that differs is an error with its line.
        let mut text: Vec<u8> = (0..20_000).flat_map(|i| format!("{:7} k{i}\n", i % 9).into_bytes()).collect();
        text.extend_from_slice(b"end\n");
        let message = fails("log", &text, &plain());
        assert!(
            message.starts_with("log: line 20001: \"end\" has no count, but the lines before have one before"),
            "{message}"
        );
        // What cannot be read is an error on its line.
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"a\nb\n").unwrap();
        let packed = gzip.finish().unwrap();
        assert!(fails("log", &packed[..packed.len() - 8], &plain()).starts_with("log: line 3: "));
    }

    #[test]
    fn keys_are_cleaned_up_like_all_keys() {
        let text = b"\xef\xbb\xbf\r\n A \t3\r\n\r\nB\t4\r\n\t5\r\n  \t6";
        let (queries, counts) = read_named("log", text, &plain()).unwrap();
        assert_eq!(queries, expected(&[(" A ", 3.0), ("B", 4.0), ("  ", 6.0)]));
        assert_eq!((counts.keys, counts.blank, counts.read_bytes), (3, 3, text.len() as u64));

        let keys = Options { trim: true, lowercase: true, ..Options::default() };
        let options = keys.for_queries(None, None);
        let (queries, counts) = read_named("log", text, &options).unwrap();
        assert_eq!(queries, expected(&[("a", 3.0), ("b", 4.0)]));
        assert_eq!((counts.keys, counts.blank), (2, 4));
        let (queries, counts) = read_named("log", b" \n X\n\t\ny \n", &options).unwrap();
        assert_eq!((queries, counts.blank), (expected(&[("x", 1.0), ("y", 1.0)]), 2));

        let keys = Options { integers: true, null_separated: true, ..Options::default() };
        let options = keys.for_queries(None, None);
        assert_eq!(read_named("log", b"7\t2\x008\t3", &options).unwrap().0, expected(&[("+7", 2.0), ("+8", 3.0)]));
        assert!(fails("log", b"7\t2\x00x\t3", &options).starts_with("log: record 2: \"x\" is not an integer"));
    }

    #[cfg(feature = "xz")]
    #[test]
    fn compression_is_seen_through() {
        let text = b"a\t3\nb\t4\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(text).unwrap();
        for packed in [gzip.finish().unwrap(), xz.finish().unwrap(), zstd::encode_all(&text[..], 1).unwrap()] {
            for name in ["log", "log.tsv.gz", "-"] {
                assert_eq!(read_named(name, &packed, &plain()).unwrap().0, expected(&[("a", 3.0), ("b", 4.0)]));
            }
        }
    }

    #[test]
    fn a_file_that_mixes_is_refused() {
        let message = fails("log", b"\na\t3\n\nb\nc\t4\n", &plain());
        assert_eq!(
            message,
            "log: line 4: \"b\" has no count, but line 2 has one; expected key<TAB>weight on every line, or on none"
        );
        let message = fails("-", b"a\t3\nb\tx\n", &plain());
        assert_eq!(message, "standard input: line 2: \"x\" is not a weight; expected a number as in key<TAB>17");
        let message = fails("log", b"host\thits\n\na\t3\n", &plain());
        assert_eq!(
            message,
            "log: line 3: has a count, but line 1 has none; expected key<TAB>weight on every line, without a header"
        );
    }

    #[test]
    fn counts_that_make_no_sense_are_refused_with_their_line() {
        let cases: [(&str, &str); 14] = [
            ("-1", "weight -1: out of range; expected 0 to 2^43"),
            ("-1e-300", "weight -1e-300: out of range"),
            ("nan", "weight NaN: out of range; expected 0 to 2^43"),
            ("inf", "weight inf: out of range"),
            ("-Infinity", "weight -inf: out of range; expected 0 to 2^43"),
            ("1e400", "weight inf: out of range"),
            ("1e300", "weight 1e300: too large; expected at most 2^43; scale the weights down"),
            ("0.0000001", "weight 1e-7: too small; expected 0, or at least 2^-20; scale the weights up"),
            ("", "\"\" is not a weight"),
            ("1,000", "\"1,000\" is not a weight"),
            ("0x10", "\"0x10\" is not a weight"),
            ("1 2", "\"1 2\" is not a weight"),
            ("\u{661}", "is not a weight"),
            ("8796093022208\nc\t8796093022208", "add up to 2^44 or more"),
        ];
        for (count, what) in cases {
            let message = fails("log", format!("a\t3\nb\t{count}\nd\t4\n").as_bytes(), &plain());
            let line = if count.contains('\n') { 3 } else { 2 };
            assert!(message.starts_with(&format!("log: line {line}: ")) && message.contains(what), "{message}");
        }
        // Of the first line too, if a number is what it is.
        for count in ["-1", "NaN", "1e999", "1e-9"] {
            let message = fails("log", format!("a\t{count}\n").as_bytes(), &plain());
            assert!(message.starts_with("log: line 1: ") && message.contains("weight"), "{message}");
        }
        let long = [b"a\t3\nb\t", &[b'9'; 5000][..], b"x"].concat();
        assert!(fails("log", &long, &plain()).len() < 200);
    }

    #[test]
    fn tables_have_columns_of_queries_and_counts() {
        let csv = b"query,n\n\"a,b\",3\nc,0.5\n,9\n";
        let pairs = [("a,b", 3.0), ("c", 0.5)];
        assert_eq!(read_named("log.csv", csv, &columns("query", Some("n"))).unwrap().0, expected(&pairs));
        assert_eq!(
            read_named("log.csv", csv, &columns("query", None)).unwrap().0,
            expected(&[("a,b", 1.0), ("c", 1.0)])
        );
        let tsv = b"a\tx\t3\nc\ty\t4\n";
        let pairs = [("a", 3.0), ("c", 4.0)];
        assert_eq!(read_named("log.tsv", tsv, &columns("#1", Some("#3"))).unwrap().0, expected(&pairs));
        let jsonl = b"{\"q\":\"a\",\"n\":3}\n{\"q\":\"c\",\"n\":\"4\"}\n";
        assert_eq!(read_named("log.jsonl", jsonl, &columns("q", Some("n"))).unwrap().0, expected(&pairs));
        let numbers = b"{\"q\":5,\"n\":3}\n";
        assert_eq!(read_named("l.jsonl", numbers, &columns("q", Some("n"))).unwrap().0, expected(&[("+5", 3.0)]));
        let bare = Options { format: Some(Format::Jsonl), ..plain() };
        assert_eq!(read_named("-", b"\"a\"\n\"a\"\n", &bare).unwrap().0, expected(&[("a", 1.0), ("a", 1.0)]));
    }

    #[test]
    fn errors_of_tables_speak_of_counts() {
        let both = columns("q", Some("n"));
        for (name, text, options, what) in [
            ("l.csv", &b"q,n\na,\n"[..], &both, "l.csv: line 2: \"\" is not a weight"),
            ("l.csv", b"q,n\na,-4\n", &both, "l.csv: line 2: weight -4: out of range; expected 0 to 2^43"),
            ("l.csv", b"q,n\na,4\n", &plain(), "--workload-column NAME"),
            ("l.csv", b"q,m\na,4\n", &both, "no column \"n\""),
            ("l.jsonl", b"{\"q\":\"a\",\"n\":1.5}\n", &both, "l.jsonl: line 1: the weight is "),
            ("l.jsonl", b"{\"q\":\"a\",\"n\":1}\n{\"q\":\"a\"}\n", &both, "l.jsonl: line 2: \"\" is not a weight"),
            ("l.jsonl", b"{\"q\":\"a\",\"n\":1}\n", &plain(), "choose with --workload-column NAME"),
            ("l.log", b"a\n", &both, "text lines have no column of weights"),
            ("l.log", b"a\n", &columns("q", None), "--workload-column does not apply to text lines"),
            ("l.csv", b"q,n\n", &columns("q", Some("q")), "--weight-column: the same column as --workload-column"),
            (
                "l.csv",
                b"q,n\n",
                &Options::default().for_queries(None, Some("n".into())),
                "--weight-column: not possible without",
            ),
        ] {
            let message = fails(name, text, options);
            assert!(message.contains(what), "{message}");
        }
    }

    /// A count said in one file says nothing about the next.
    #[test]
    fn every_file_is_of_its_own_kind() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("counts", "a\t5\n"), ("log", "b\n"), ("more", "c\t6\n"), ("one.csv", "d\n")];
        let inputs = files.map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            Source::from(path)
        });
        let mut weights = Vec::new();
        let mut heard = 0;
        let counts = read_all(&inputs, &plain(), &mut &b""[..], &mut |bytes| heard = bytes, &mut |_, weight| {
            weights.push(weight);
            Ok(())
        });
        assert_eq!(counts.unwrap().read_bytes, heard);
        assert_eq!(weights, [5.0, 1.0, 6.0, 1.0]);
    }

    #[test]
    fn errors_of_the_receiver_end_the_reading_and_pass() {
        let mut seen = 0;
        let mut refuse = |_: KeyRef<'_>, _: f64| {
            seen += 1;
            Err(anyhow!("no more"))
        };
        let read = read_all(&[Source::Stdin], &plain(), &mut &b"a\t1\nb\n"[..], &mut |_| {}, &mut refuse);
        assert_eq!((read.unwrap_err().to_string(), seen), ("no more".into(), 1));
    }
}
