//! files, or lines of keys and sets, or sequences -> keys, each with a set that holds it.
//!
//! ```text
//!   DIR, FILE, NAME=FILE         one set per file, called as the file is, or NAME
//!   the same with --kmer         the same, of the k-mers of FASTA and FASTQ
//!   key<TAB>set[,set...]         --pairs: text, .tsv too; a key may come again
//!   csv tsv jsonl parquet        --pairs with --column and --set-column
//! ```
//!
//! With counts a set behind a tab may be `set:COUNT`. Names of sets stand behind tabs and between commas, in what is read and in what is
//! printed, so they have neither; what else they are made of is their own business.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use tamis::sets::check_name;

use super::files::{check, files};
use super::kmers::{self, Event, Sequences};
use super::sink::{quote, trim};
use super::{
    Counts, Format, KeyRef, Options, Places, SecondColumn, Source, Visited, check_not_empty, check_stdin_once,
    format_of, read_checked,
};

/// What is stripped from the name of a file, after what a compressor put there.
const EXTENSIONS: [&str; 6] = ["txt", "csv", "tsv", "jsonl", "ndjson", "parquet"];

/// The same, of files of sequences.
const SEQUENCES: [&str; 8] = ["fa", "fasta", "fna", "ffn", "frn", "fas", "fq", "fastq"];

/// Where the keys of many sets come from.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// One file for every set, and the names of the sets, all different.
    Files { names: Vec<String>, sources: Vec<Source> },
    /// Lines of a key and its sets.
    Pairs(Vec<Source>),
}

/// How they are read.
pub(crate) struct ReadOptions {
    pub(crate) options: Options,
    /// The column of sets in tables of pairs.
    pub(crate) set_column: Option<String>,
    /// The inputs are sequences, and keys are their k-mers.
    pub(crate) kmer: Option<u32>,
    /// Sets of pairs may have counts.
    pub(crate) counts: bool,
}

/// What was read.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) counts: Counts,
    /// Of sequences.
    pub(crate) sequences: Option<Sequences>,
    /// Of keys that are not k-mers.
    pub(crate) places: Places,
}

/// A key that is in a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: KeyRef<'a>,
    pub(crate) set: &'a str,
    /// How often.
    pub(crate) count: u64,
    /// The running number of its line, for [`Places::locate`].
    pub(crate) ordinal: u64,
}

/// What receives the members of sets.
pub(crate) type Visit<'a> = dyn FnMut(Member<'_>) -> Visited + 'a;

impl Inputs {
    /// Finds the files; with `pairs` no names are needed, and none is standard input.
    pub(crate) fn find(words: &[PathBuf], pairs: bool) -> Result<Inputs> {
        if pairs {
            let sources = crate::args::sources(words)?;
            check_stdin_once(&sources)?;
            return Ok(Inputs::Pairs(sources));
        }
        if words.is_empty() {
            bail!("FILE: missing; expected one for every set, a directory of them, or --pairs");
        }
        let (mut names, mut sources) = (vec![], vec![]);
        for word in words {
            if let Some((name, file)) = named(word) {
                check(&file)?;
                check_name(name).map_err(|message| anyhow!("{}: {message}", word.display()))?;
                names.push(name.to_string());
                sources.push(Source::from(file));
                continue;
            }
            for path in files(word)? {
                names.push(name_of(&path)?);
                sources.push(Source::from(path));
            }
        }
        check_stdin_once(&sources)?;
        check_distinct(&names, &sources)?;
        Ok(Inputs::Files { names, sources })
    }

    pub(crate) fn sources(&self) -> &[Source] {
        match self {
            Inputs::Files { sources, .. } | Inputs::Pairs(sources) => sources,
        }
    }

    /// The names of sets that are known before a key is read.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Inputs::Files { names, .. } => names,
            Inputs::Pairs(_) => &[],
        }
    }

    /// Gives every member of every set to `visit`; progress is that of [`super::for_each`].
    pub(crate) fn for_each(
        &self,
        read_options: &ReadOptions,
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_>,
    ) -> Result<Read> {
        let (counts, places) = match (self, read_options.kmer) {
            (Inputs::Files { names, sources }, Some(k)) => {
                let mut ordinal = 0;
                let sequences = kmers::for_each(sources, k, progress, &mut |file, event| {
                    let Event::Kmers(keys) = event else { return Ok(()) };
                    for &key in keys {
                        let member = Member { key: KeyRef::Integer(key.into()), set: &names[file], count: 1, ordinal };
                        visit(member)?.map_err(|message| anyhow!("{}: {message}", sources[file]))?;
                        ordinal += 1;
                    }
                    Ok(())
                })?;
                check_not_empty(sources, &read_options.options, sequences.kmers)?;
                let counts = Counts { keys: sequences.kmers, ..Counts::default() };
                return Ok(Read { counts, sequences: Some(sequences), places: Places::default() });
            }
            (Inputs::Files { names, sources }, None) => {
                check_formats(sources, &read_options.options)?;
                let options = Options { second_holds: SecondColumn::File, ..read_options.options.clone() };
                read_checked(sources, &options, &mut io::stdin().lock(), progress, &mut |key, file, ordinal| {
                    let set = file.and_then(|file| names.get(file.number? as usize)).map_or("", String::as_str);
                    visit(Member { key, set, count: 1, ordinal })
                })?
            }
            (Inputs::Pairs(sources), _) => {
                let options = Options {
                    second_holds: SecondColumn::Sets,
                    second_column: read_options.set_column.clone(),
                    ..read_options.options.clone()
                };
                for input in sources {
                    if options.column.is_none() && format_of(input, &options) != Format::Text {
                        bail!("{input}: a table; expected --column NAME of keys and --set-column NAME");
                    }
                }
                read_checked(sources, &options, &mut io::stdin().lock(), progress, &mut |key, sets, ordinal| {
                    for set in sets.map_or(&b""[..], |sets| sets.text).split(|&byte| byte == b',') {
                        let set = if options.trim { trim(set) } else { set };
                        let (set, count) = match parse(set, read_options.counts) {
                            Ok(parsed) => parsed,
                            Err(message) => return Ok(Err(message)),
                        };
                        if let Err(message) = visit(Member { key, set, count, ordinal })? {
                            return Ok(Err(message));
                        }
                    }
                    Ok(Ok(()))
                })?
            }
        };
        Ok(Read { counts, sequences: None, places })
    }
}

/// A set behind a tab, and how often the key is in it.
fn parse(text: &[u8], counts: bool) -> Result<(&str, u64), String> {
    let text = str::from_utf8(text).map_err(|_| format!("the set {} is not UTF-8", quote(text)))?;
    let (name, count) = match text.rsplit_once(':') {
        Some((name, count)) if counts => {
            let count = count.parse().ok().filter(|&count: &u64| count > 0);
            let wrong = || format!("the count of {} is not a number from 1", quote(text.as_bytes()));
            (name, count.ok_or_else(wrong)?)
        }
        _ => (text, 1),
    };
    check_name(name).map_err(|error| error.to_string())?;
    Ok((name, count))
}

/// `NAME=FILE`: what stands before the first equals sign, unless that is a path.
fn named(word: &Path) -> Option<(&str, PathBuf)> {
    let (name, file) = word.to_str()?.split_once('=')?;
    (!name.contains(std::path::is_separator)).then(|| (name, PathBuf::from(file)))
}

/// What the set of a file is called: the file's name without its directories and its known extensions.
fn name_of(path: &Path) -> Result<String> {
    if path.as_os_str() == "-" {
        bail!("-: standard input has no name; expected NAME=- or --pairs");
    }
    let strip = |path: &Path, known: &[&str]| {
        let extension = path.extension().is_some_and(|e| known.iter().any(|name| e.eq_ignore_ascii_case(name)));
        path.file_stem().filter(|_| extension).map(PathBuf::from)
    };
    let name = PathBuf::from(path.file_name().unwrap_or(OsStr::new("")));
    let name = strip(&name, &["gz", "zst", "xz"]).unwrap_or(name);
    let name = strip(&name, &EXTENSIONS).or_else(|| strip(&name, &SEQUENCES)).unwrap_or(name);
    let name = name.to_str().ok_or_else(|| anyhow!("{}: the name is not UTF-8; expected NAME=FILE", path.display()))?;
    check_name(name).map_err(|message| anyhow!("{}: {message}; NAME=FILE gives another", path.display()))?;
    Ok(name.to_string())
}

/// Two files of one name would silently be one set.
fn check_distinct(names: &[String], sources: &[Source]) -> Result<()> {
    let mut known: HashMap<&str, &Source> = HashMap::with_capacity(names.len());
    for (name, source) in names.iter().zip(sources) {
        if let Some(other) = known.insert(name, source) {
            bail!("{other} and {source}: both are the set {name:?}; expected different names; NAME=FILE gives another");
        }
    }
    Ok(())
}

/// Whether a file is called as files of sequences are.
pub(crate) fn is_sequences(source: &Source) -> bool {
    SEQUENCES.iter().any(|name| source.has_extension(name))
}

/// Sequences are no lists of keys: their lines would be taken for keys.
fn check_formats(sources: &[Source], options: &Options) -> Result<()> {
    let Some(found) = sources.iter().find(|source| is_sequences(source)).filter(|_| options.format.is_none()) else {
        return Ok(());
    };
    match sources.iter().find(|source| !is_sequences(source)) {
        Some(other) => bail!("{found}: sequences, and {other}: keys; expected one kind, sequences with --kmer K"),
        None => bail!("{found}: sequences; expected --kmer K, or --format text if its lines are keys"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    struct TestDir(tempfile::TempDir);

    impl TestDir {
        fn put(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn words(&self, words: &[&str]) -> Vec<PathBuf> {
            let folder = self.0.path().to_str().unwrap();
            words.iter().map(|word| word.replace('@', folder).into()).collect()
        }

        fn error(&self, words: &[&str], read_options: &ReadOptions, pairs: bool) -> String {
            let read = Inputs::find(&self.words(words), pairs).and_then(|inputs| list(&inputs, read_options));
            format!("{:#}", read.unwrap_err()).replace(&format!("{}/", self.0.path().display()), "")
        }
    }

    fn read_options() -> ReadOptions {
        ReadOptions { options: Options::default(), set_column: None, kmer: None, counts: false }
    }

    fn list(inputs: &Inputs, read_options: &ReadOptions) -> Result<Vec<String>> {
        let mut all = vec![];
        inputs.for_each(read_options, &mut |_| {}, &mut |member| {
            let key = match member.key {
                KeyRef::Bytes(bytes) => String::from_utf8(bytes.to_vec())?,
                KeyRef::Integer(number) => number.to_string(),
            };
            all.push(format!("{key} {} {}", member.set, member.count));
            Ok(if key == "bad" { Err("is bad".into()) } else { Ok(()) })
        })?;
        Ok(all)
    }

    #[test]
    fn sets_are_called_as_their_files() {
        for (path, name) in [
            ("a.txt", "a"),
            ("d/e.f/a.b.csv.gz", "a.b"),
            ("a.FASTQ.ZST", "a"),
            ("a.gz", "a"),
            ("a.txt.txt", "a.txt"),
            ("a.gz.gz", "a.gz"),
            ("a.bin", "a.bin"),
            ("gz", "gz"),
            (".txt", ".txt"),
        ] {
            assert_eq!(name_of(Path::new(path)).unwrap(), name, "{path}");
        }
        assert!(name_of(Path::new("a,b.txt")).is_err());
        assert!(name_of(Path::new("-")).is_err());
        assert_eq!(named(Path::new("a=b=c")), Some(("a", PathBuf::from("b=c"))));
        assert_eq!(named(Path::new("./a=b")), None);
        assert_eq!(named(Path::new("=b")), Some(("", PathBuf::from("b"))));
    }

    #[test]
    fn files_directories_and_names() {
        let dir = TestDir(tempfile::tempdir().unwrap());
        dir.put("d/b.csv", "x\n\"y\"\n");
        dir.put("d/a.jsonl", "{\"k\":\"z\"}\n\n");
        dir.put("d/.hidden", "no\n");
        dir.put("d/e/deep", "no\n");
        dir.put("d/none", "");
        dir.put("c.txt", "x\n");
        let inputs = Inputs::find(&dir.words(&["@/d", "last=@/c.txt"]), false).unwrap();
        assert_eq!(inputs.names(), ["a", "b", "none", "last"]);
        assert_eq!(list(&inputs, &read_options()).unwrap(), ["z a 1", "x b 1", "y b 1", "x last 1"]);
        let numbers = ReadOptions { options: Options { integers: true, ..Options::default() }, ..read_options() };
        dir.put("n.txt", "1\n");
        let inputs = Inputs::find(&dir.words(&["@/n.txt"]), false).unwrap();
        assert_eq!(list(&inputs, &numbers).unwrap(), ["1 n 1"]);
    }

    #[test]
    fn files_that_do_not_fit() {
        let dir = TestDir(tempfile::tempdir().unwrap());
        for (name, text) in [("a.txt", "x\nbad\n"), ("d/a.csv", "y\n"), ("g.fa", ">r\nACGT\n"), ("q.fq.gz", "")] {
            dir.put(name, text);
        }
        fs::create_dir(dir.0.path().join("empty")).unwrap();
        for (words, expected) in [
            (&[][..], "FILE: missing; expected one for every set, a directory of them, or --pairs"),
            (&["-"], "-: standard input has no name; expected NAME=- or --pairs"),
            (&["@/none"], "none: no such file; expected a file of keys"),
            (&["x=@/none"], "none: no such file; expected a file of keys"),
            (&["x=@/d"], "d: is a directory; expected a file of keys"),
            (&["@/empty"], "empty: no files in the directory; expected one at least"),
            (
                &["@/a.txt", "@/d"],
                "a.txt and d/a.csv: both are the set \"a\"; expected different names; NAME=FILE gives another",
            ),
            (&["x=-", "y=-"], "-: standard input is given twice; expected it once"),
            (&["@/a.txt"], "a.txt: line 2: is bad"),
            (&["@/g.fa", "@/q.fq.gz"], "g.fa: sequences; expected --kmer K, or --format text if its lines are keys"),
            (&["@/a.txt", "@/g.fa"], "g.fa: sequences, and a.txt: keys; expected one kind, sequences with --kmer K"),
        ] {
            assert_eq!(dir.error(words, &read_options(), false), expected, "{words:?}");
        }
        assert!(
            dir.error(&["=@/a.txt"], &read_options(), false).ends_with("set name: empty; expected at least one letter")
        );
        let kmers = ReadOptions { kmer: Some(3), ..read_options() };
        assert_eq!(
            dir.error(&["@/g.fa", "@/a.txt"], &kmers, false),
            "a.txt: line 1: expected '>' or '@', as sequences begin, found \"x\""
        );
        let inputs = Inputs::find(&dir.words(&["@/g.fa", "@/q.fq.gz"]), false).unwrap();
        assert_eq!(list(&inputs, &kmers).unwrap(), ["6 g 1", "6 g 1"]);
        let text =
            ReadOptions { options: Options { format: Some(Format::Text), ..Options::default() }, ..read_options() };
        assert_eq!(list(&inputs, &text).unwrap(), [">r g 1", "ACGT g 1"]);
    }

    #[test]
    fn lines_of_keys_and_sets() {
        let dir = TestDir(tempfile::tempdir().unwrap());
        let counts = || ReadOptions { counts: true, ..read_options() };
        let trimmed = || ReadOptions { options: Options { trim: true, ..Options::default() }, ..read_options() };
        let pairs = |text: &str, read_options: ReadOptions| {
            let path = dir.put("p.tsv", text);
            list(&Inputs::find(&[path], true).unwrap(), &read_options)
        };
        assert_eq!(pairs("a\tx,y\r\n\nb\ty:2\na\tz", read_options()).unwrap(), ["a x 1", "a y 1", "b y:2 1", "a z 1"]);
        assert_eq!(pairs("a\tx:7,y\nb\tq:r:1\n", counts()).unwrap(), ["a x 7", "a y 1", "b q:r 1"]);
        assert_eq!(pairs(" a\t x , y z \n", trimmed()).unwrap(), ["a x 1", "a y z 1"]);
        let empty = "set name: empty; expected at least one letter";
        for (text, read_options, expected) in [
            ("a\tx\nb\n", read_options(), "line 2: \"b\" has no tab; expected key<TAB>set[,set...]"),
            ("a\tx\n\nb\tx,,y\n", read_options(), &format!("line 3: {empty}")),
            ("a\t\n", read_options(), &format!("line 1: {empty}")),
            ("a\tx,\n", read_options(), &format!("line 1: {empty}")),
            ("a\t , \n", trimmed(), &format!("line 1: {empty}")),
            ("\tx\n", read_options(), "line 1: the key is empty; expected key<TAB>set[,set...]"),
            (
                "a\tx\ty\n",
                read_options(),
                "line 1: set name \"x\\ty\": a comma, a tab, a NUL or the end of a line in it; expected none of them",
            ),
            ("a\tx:0\n", counts(), "line 1: the count of \"x:0\" is not a number from 1"),
            ("a\tx:y\n", counts(), "line 1: the count of \"x:y\" is not a number from 1"),
            ("a\t:3\n", counts(), &format!("line 1: {empty}")),
        ] {
            dir.put("p.tsv", text);
            assert_eq!(dir.error(&["@/p.tsv"], &read_options, true), format!("p.tsv: {expected}"), "{text:?}");
        }
        dir.put("t.csv", "k,s\na,\"x,y\"\n");
        assert_eq!(
            dir.error(&["@/t.csv"], &read_options(), true),
            "t.csv: a table; expected --column NAME of keys and --set-column NAME"
        );
        let columns = ReadOptions {
            options: Options { column: Some("k".into()), ..Options::default() },
            set_column: Some("s".into()),
            ..read_options()
        };
        let inputs = Inputs::find(&dir.words(&["@/t.csv"]), true).unwrap();
        assert_eq!(list(&inputs, &columns).unwrap(), ["a x 1", "a y 1"]);
        dir.put("t.jsonl", "{\"k\":\"a\",\"s\":null}\n");
        assert_eq!(
            dir.error(&["@/t.jsonl"], &columns, true),
            "t.jsonl: line 1: the key has no set; expected text or an integer in the column \"s\""
        );
    }
}
