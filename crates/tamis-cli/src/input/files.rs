//! words of the command line -> the files that they name: a file, or the files of a directory. A tamis file is no list.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use super::Source;
use crate::mapped;

/// The lists that these words name; `-` is standard input.
pub(crate) fn lists(words: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = vec![];
    for word in words {
        sources.extend(files(word)?.into_iter().map(Source::from));
    }
    Ok(sources)
}

/// A file, or the files of a directory in the order of their names, hidden ones and directories left out.
pub(super) fn files(word: &Path) -> Result<Vec<PathBuf>> {
    if !word.is_dir() {
        check(word)?;
        return Ok(vec![word.to_path_buf()]);
    }
    let failed = |error: std::io::Error| anyhow!("{}: {error}", word.display());
    let mut paths = vec![];
    for entry in fs::read_dir(word).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        if !hidden && !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        bail!("{}: no files in the directory; expected one at least", word.display());
    }
    paths.sort();
    paths.iter().try_for_each(|path| check(path))?;
    Ok(paths)
}

/// Whether it is there, and no file of ours: its bytes would make a filter of nonsense.
pub(super) fn check(path: &Path) -> Result<()> {
    Source::from(path.to_path_buf()).check()?;
    match mapped::form(path) {
        Some(form) => bail!("{} is a tamis {form}; swapped? expected a list of keys", path.display()),
        None => Ok(()),
    }
}
