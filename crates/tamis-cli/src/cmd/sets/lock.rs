//! a file that is changed in place -> one command at a time.
//!
//! A change reads the file, and in the end renames a new file over it. Of two changes at once one would be lost. So a command that changes a file
//! locks it before it reads it; another one waits, and then reads what the first has written. The lock is the system's, on the file itself: it needs no
//! file of its own, and ends with the process. After a wait the name may belong to another file, which is then the one to lock.

use std::fs::{File, Metadata, TryLockError, metadata};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};

use crate::input::Identity;
use crate::{json, screen};

/// Holds the lock of a file, if it takes one.
pub(in crate::cmd) struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Locks the output of a command, if it is one of the files that it changes; waits for it if need be.
    pub(in crate::cmd) fn new<'a>(
        output: &Path,
        files: impl IntoIterator<Item = &'a std::path::PathBuf>,
    ) -> Result<Lock> {
        let changed = Identity::of_path(output);
        if changed.is_none() || !files.into_iter().any(|file| Identity::of_path(file) == changed) {
            return Ok(Lock { _file: None });
        }
        let file = lock(output).with_context(|| format!("{}: it cannot be locked", output.display()))?;
        Ok(Lock { _file: Some(file) })
    }
}

fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                // With --json only errors are written there.
                if !json::is_requested() {
                    writeln!(
                        screen::stderr(),
                        "tamis: {}: waiting for another command that changes it",
                        path.display()
                    )?;
                }
                file.lock()?;
            }
            // Without locks in its file system a file can be changed all the same.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            tried => tried?,
        }
        if is_same(&file.metadata()?, &metadata(path)?) {
            return Ok(file);
        }
    }
}

/// Whether an open file is the one that the name leads to.
#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The same as far as it can be seen: two changes of one length in one instant are not distinguished.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len() && one.modified().ok() == other.modified().ok()
}
