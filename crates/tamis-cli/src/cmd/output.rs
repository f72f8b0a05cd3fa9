//! a path -> where a file of ours goes, and where the report of it.

use std::fmt;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, bail};
use serde_json::Value;

use super::{print, to_stdout};
use crate::args::ReportArgs;
use crate::input::{Identity, Source};
use crate::json::Form;
use crate::{json, screen};

/// Where a file goes.
pub(super) enum Output {
    Stdout,
    /// A regular file, or what will be one.
    File(PathBuf),
    /// A pipe or a device: written as it is, and never read again. It may be where the report would go.
    Device(PathBuf),
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("standard output"),
            Output::File(path) | Output::Device(path) => path.display().fmt(f),
        }
    }
}

impl Output {
    /// `what` goes there, by `option`. Finds out now what would stop the writing after an hour of reading.
    pub(super) fn new<'a>(
        option: &str,
        path: &Path,
        mut sources: impl Iterator<Item = &'a Source>,
        what: &str,
    ) -> Result<Output> {
        if path.as_os_str() == "-" {
            if io::stdout().is_terminal() {
                bail!("{option} -: standard output is a terminal; expected a file or a pipe for the {what}");
            }
            return Ok(Output::Stdout);
        }
        // A link stays, and what it points to is replaced.
        let real = fs::canonicalize(path);
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => bail!("{option} {}: is a directory; expected a file to write", path.display()),
            Ok(data) if !data.is_file() => return Ok(Output::Device(path.to_path_buf())),
            _ => {}
        }
        let replaced = Identity::of_path(path);
        if let Some(source) = sources.find(|source| replaced.is_some() && source.identity() == replaced) {
            let input = if *source == Source::Stdin { "standard input" } else { "a file of keys" };
            bail!("{option} {}: is {input}; expected another file for the {what}", path.display());
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !dir.is_dir() {
            bail!("{option} {}: no directory {}; expected one that exists", path.display(), dir.display());
        }
        Ok(Output::File(if path.is_symlink() { real.unwrap_or(path.to_path_buf()) } else { path.to_path_buf() }))
    }

    /// An error if it would replace one of these files, which are `what` the command reads besides keys.
    pub(super) fn spare<'a>(
        self,
        option: &str,
        files: impl IntoIterator<Item = &'a Path>,
        what: &str,
    ) -> Result<Output> {
        if let Output::File(path) = &self
            && let Some(replaced) = Identity::of_path(path)
            && files.into_iter().any(|file| Identity::of_path(file).as_ref() == Some(&replaced))
        {
            bail!("{option} {self}: is {what}; expected another file");
        }
        Ok(self)
    }

    /// Builds the file: in memory for standard output, else where it goes. It comes back, opened, where it can be read again.
    pub(super) fn build<B, T, R>(
        &self,
        builder: B,
        finish: impl FnOnce(B) -> Result<(T, R), tamis::Error>,
        finish_to: impl FnOnce(B, &Path) -> Result<R, tamis::Error>,
        open: impl FnOnce(&Path) -> Result<T, tamis::Error>,
        bytes: impl FnOnce(&T) -> &[u8],
    ) -> Result<(R, Option<T>)> {
        Ok(match self {
            // Half a file is of no use: a closed pipe is an error here.
            Output::Stdout => {
                let (built, report) = finish(builder)?;
                let mut out = io::stdout().lock();
                out.write_all(bytes(&built))?;
                out.flush()?;
                (report, Some(built))
            }
            Output::File(path) => (finish_to(builder, path)?, Some(open(path)?)),
            Output::Device(path) => (finish_to(builder, path)?, None),
        })
    }

    /// Writes all of a file that is in memory. A regular file is replaced when the new one is complete.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let written = match self {
            Output::Stdout => return to_stdout(io::stdout().write_all(bytes).and_then(|()| io::stdout().flush())),
            Output::Device(path) => {
                fs::OpenOptions::new().write(true).open(path).and_then(|mut to| to.write_all(bytes))
            }
            Output::File(path) => {
                let part = path.with_file_name(format!(".tamis-{}.part", std::process::id()));
                let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
                // Half a page is of no use; where nothing was written there is nothing to remove.
                written.inspect_err(|_| drop(fs::remove_file(&part)))
            }
        };
        written.map_err(|error| Error::new(error).context(self.to_string()))
    }

    /// Prints a report, as text or as fields, where it does not end up in the file.
    pub(super) fn report(
        &self,
        how: ReportArgs,
        form: Form,
        text: impl FnOnce() -> String,
        fields: impl FnOnce() -> Value,
    ) -> Result<()> {
        let report = match how {
            ReportArgs { quiet: true, .. } => return Ok(()),
            ReportArgs { json: false, .. } => text(),
            ReportArgs { json: true, .. } => {
                let mut fields = fields();
                let path =
                    if let Output::File(path) | Output::Device(path) = self { Some(path.as_path()) } else { None };
                json::put_file(&mut fields, path);
                format!("{}\n", json::object(Some(form), fields))
            }
        };
        match self {
            Output::File(_) => print(&report),
            Output::Stdout | Output::Device(_) => Ok(screen::stderr().write_all(report.as_bytes())?),
        }
    }
}
