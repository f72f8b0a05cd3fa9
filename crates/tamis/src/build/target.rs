//! bytes -> a file that is there whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Writes through a temporary file that takes its place when it is complete.
pub(crate) fn to_file<R>(
    path: &Path,
    write: impl FnOnce(BufWriter<Target>) -> Result<(BufWriter<Target>, R), Error>,
) -> Result<R, Error> {
    let (target, report) = write(BufWriter::with_capacity(1 << 20, Target::new(path)?))?;
    target.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
    Ok(report)
}

/// Where a filter goes: a temporary file beside its place, renamed at the end; or a device or pipe, written as it is.
pub(crate) enum Target {
    Direct(File),
    Temporary(tempfile::NamedTempFile, PathBuf),
}

impl Target {
    fn new(path: &Path) -> io::Result<Target> {
        // What a link points to is replaced, not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| behind_links(path));
        let found = std::fs::metadata(path);
        match &found {
            Ok(data) if data.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, expected a file to write"));
            }
            Ok(data) if !data.is_file() => return Ok(Target::Direct(File::options().write(true).open(path)?)),
            _ => {}
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tamis-").suffix(".part");
        #[cfg(unix)]
        if found.is_err() {
            // As a program that creates a file would; the umask takes away what the user does not want.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(dir)?;
        // Who could not read the old file, which may hold a secret key, cannot read the new one.
        #[cfg(unix)]
        if let Ok(old) = found {
            file.as_file().set_permissions(old.permissions())?;
        }
        Ok(Target::Temporary(file, path.to_path_buf()))
    }

    /// Makes the file durable and gives it its name.
    fn commit(self) -> io::Result<()> {
        match self {
            Target::Direct(mut file) => file.flush(),
            Target::Temporary(file, path) => {
                file.as_file().sync_all()?;
                file.persist(&path).map_err(|e| e.error)?;
                // The name is the directory's; where a directory cannot be synchronised, the system does it in its own time.
                if let Some(dir) = path.parent().and_then(|dir| File::open(dir).ok()) {
                    let _ = dir.sync_all();
                }
                Ok(())
            }
        }
    }
}

/// Where a file will be that a chain of links names and that does not exist yet.
fn behind_links(path: &Path) -> PathBuf {
    let mut place = path.to_path_buf();
    // As many links as systems follow. What exists is found by its name: not every link in /proc is a path.
    for _ in 0..40 {
        match std::fs::read_link(&place) {
            Ok(link) if std::fs::metadata(&place).is_err() => {
                place = place.parent().unwrap_or(Path::new("")).join(link)
            }
            _ => return place,
        }
    }
    path.to_path_buf()
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Direct(file) => file.write(bytes),
            Target::Temporary(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Direct(file) => file.flush(),
            Target::Temporary(file, _) => file.flush(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::Filter;

    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (real, near, far) = (dir.path().join("real"), dir.path().join("near"), dir.path().join("far"));
        symlink("real", &near).unwrap();
        symlink(&near, &far).unwrap();
        let mode = || std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
        // First the links point to nothing.
        for wanted in [None, Some(0o600), Some(0o640), Some(0o444)] {
            if let Some(wanted) = wanted {
                std::fs::set_permissions(&real, std::fs::Permissions::from_mode(wanted)).unwrap();
            }
            crate::build(0..10u64).finish_to(&far).unwrap();
            assert!(near.is_symlink() && far.is_symlink() && !real.is_symlink());
            assert!(wanted.is_none_or(|wanted| wanted == mode()));
            assert!(Filter::read(&far).unwrap().contains(3u64).unwrap());
        }
    }
}
