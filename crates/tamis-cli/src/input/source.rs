//! path or `-` -> raw bytes, counted as they come from the disk.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, anyhow, bail};

/// Where keys come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// `-`. A file of that name is `./-`.
    Stdin,
    /// Anything else.
    File(PathBuf),
    /// `--key`, as often as it was given.
    Keys(Vec<OsString>),
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Source {
        if path.as_os_str() == "-" { Source::Stdin } else { Source::File(path) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Stdin => f.write_str("standard input"),
            Source::File(path) => path.display().fmt(f),
            Source::Keys(_) => f.write_str("--key"),
        }
    }
}

impl Source {
    /// Whether the name ends so, letter case and one extension of a compressor aside.
    pub(super) fn has_extension(&self, wanted: &str) -> bool {
        let Source::File(path) = self else { return false };
        let is = |extension: Option<&OsStr>, name: &str| extension.is_some_and(|e| e.eq_ignore_ascii_case(name));
        let packed = ["gz", "zst", "xz"].iter().any(|name| is(path.extension(), name));
        let inner = if packed { path.file_stem().map(Path::new) } else { Some(path.as_path()) };
        is(inner.and_then(Path::extension), wanted)
    }

    /// Whether the name says that it is a list or a table.
    pub(crate) fn has_known_extension(&self) -> bool {
        ["txt", "csv", "tsv", "jsonl", "ndjson", "parquet"].iter().any(|name| self.has_extension(name))
    }

    /// What a user types for it.
    pub(crate) fn name(&self) -> String {
        if *self == Source::Stdin { "-".to_string() } else { self.to_string() }
    }

    /// Whether it is there and not a directory.
    pub(crate) fn check(&self) -> Result<()> {
        let Source::File(path) = self else { return Ok(()) };
        if fs::metadata(path).map_err(|e| self.io_error(e))?.is_dir() {
            bail!("{self}: is a directory; expected a file of keys");
        }
        Ok(())
    }

    /// Which file it is; none for a pipe.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Source::Stdin => Identity::of_stdin(),
            Source::File(path) => Identity::of_path(path),
            Source::Keys(_) => None,
        }
    }

    /// Whether it has a size and can be read at any place.
    pub(crate) fn is_regular(&self) -> bool {
        matches!(self, Source::File(path) if fs::metadata(path).is_ok_and(|m| m.is_file()))
    }

    /// The open file. Standard input has none.
    pub(super) fn open_file(&self) -> Result<File> {
        match self {
            Source::Stdin | Source::Keys(_) => bail!("{self}: expected a file"),
            Source::File(path) => File::open(path).map_err(|e| self.io_error(e)),
        }
    }

    fn io_error(&self, error: io::Error) -> anyhow::Error {
        match error.kind() {
            io::ErrorKind::NotFound => anyhow!("{self}: no such file; expected a file of keys"),
            io::ErrorKind::PermissionDenied => anyhow!("{self}: permission denied; expected a readable file of keys"),
            _ => anyhow!("{self}: {error}"),
        }
    }
}

/// What a file is, whatever it is called: links to it, hard ones too, have the same.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Identity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

#[cfg(unix)]
impl Identity {
    fn of(file: io::Result<fs::Metadata>) -> Option<Identity> {
        use std::os::unix::fs::MetadataExt;
        file.ok().filter(fs::Metadata::is_file).map(|data| Identity((data.dev(), data.ino())))
    }

    /// Of a regular file that is there.
    pub(crate) fn of_path(path: &Path) -> Option<Identity> {
        Identity::of(fs::metadata(path))
    }

    fn of_stdin() -> Option<Identity> {
        use std::os::fd::AsFd;
        let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
        Identity::of(File::from(stdin).metadata())
    }
}

#[cfg(not(unix))]
impl Identity {
    /// Of a regular file that is there.
    pub(crate) fn of_path(path: &Path) -> Option<Identity> {
        fs::canonicalize(path).ok().map(Identity)
    }

    fn of_stdin() -> Option<Identity> {
        None
    }
}

/// The size of all inputs together, where each has one: not for pipes and standard input.
pub(crate) fn total_bytes(inputs: &[Source]) -> Option<u64> {
    let size = |input: &Source| match input {
        Source::Stdin | Source::Keys(_) => None,
        Source::File(path) => fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len()),
    };
    inputs.iter().try_fold(0u64, |sum, input| sum.checked_add(size(input)?))
}

/// How far the reading has come: shared by the reader at the bottom and those above it, who see only decoded bytes.
#[derive(Default, Debug)]
pub(super) struct Meter {
    /// Bytes read from all inputs so far.
    pub(super) bytes: Cell<u64>,
    /// Whether the system failed, and not the decoder.
    pub(super) failed: Cell<bool>,
}

/// An input before decompression.
pub(super) struct Raw<'a> {
    reader: Box<dyn Read + 'a>,
    meter: Rc<Meter>,
    begin: u64,
}

impl<'a> Raw<'a> {
    /// Opens a file, or takes `stdin`.
    pub(super) fn open(source: &Source, stdin: &'a mut dyn Read, meter: Rc<Meter>) -> Result<Raw<'a>> {
        let reader: Box<dyn Read + 'a> = match source {
            Source::Stdin => Box::new(stdin),
            Source::File(_) | Source::Keys(_) => Box::new(source.open_file()?),
        };
        let begin = meter.bytes.get();
        Ok(Raw { reader, meter, begin })
    }

    /// A handle on the meter, and where it stood at this input's first byte.
    pub(super) fn meter(&self) -> (Rc<Meter>, u64) {
        (Rc::clone(&self.meter), self.begin)
    }
}

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(buffer) {
            Ok(n) => {
                self.meter.bytes.set(self.meter.bytes.get() + n as u64);
                Ok(n)
            }
            Err(e) => {
                self.meter.failed.set(e.kind() != io::ErrorKind::Interrupted);
                Err(e)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn extensions_see_through_compressors_and_case() {
        let source = |name: &str| Source::from(PathBuf::from(name));
        for name in ["a.csv", "a.CSV", "a.csv.gz", "d.x/a.b.csv.zst", "a.Csv.XZ", "é.csv"] {
            assert!(source(name).has_extension("csv"), "{name}");
        }
        for name in ["csv", ".csv", "a.csv.txt", "a.csv.bz2", "a.csv.gz.gz", "a.gz", "-", "a.tsv", "csv.gz"] {
            assert!(!source(name).has_extension("csv"), "{name}");
        }
        assert_eq!(source("-"), Source::Stdin);
        assert_eq!(source("./-"), Source::File(PathBuf::from("./-")));
    }

    #[test]
    fn total_is_known_for_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, n: usize| {
            let path = dir.path().join(name);
            fs::write(&path, vec![0; n]).unwrap();
            Source::from(path)
        };
        let (a, b) = (write("a", 10), write("b", 7));
        assert_eq!(total_bytes(&[]), Some(0));
        assert_eq!(total_bytes(&[a.clone(), b.clone(), a.clone()]), Some(27));
        assert_eq!(total_bytes(&[a.clone(), Source::Stdin]), None);
        assert_eq!(total_bytes(&[a, dir.path().to_path_buf().into()]), None);
        assert_eq!(total_bytes(&[b, dir.path().join("none").into()]), None);
    }
}
