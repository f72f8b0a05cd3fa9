//! bytes -> a file that is there whole or not at all.
//!
//! Until it is complete the file has no name where the system allows that (Linux, on most file systems, with the feature
//! `spill`): whatever ends the process, nothing is left behind. Elsewhere it is called `.tamis-*.part`, and is removed unless the
//! process is killed.

use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::arch::arena::{Arena, Output};
use crate::error::Error;

/// Writes through a temporary file that takes its place when it is complete. Only its owner may read a file that holds a secret.
pub(crate) fn to_file<R>(
    path: &Path,
    secret: bool,
    write: impl FnOnce(&mut dyn Output) -> Result<R, Error>,
) -> Result<R, Error> {
    let write = || {
        let mut target = Target::new(path, secret, unnamed)?;
        let report = to_writer(&mut target, write)?;
        target.commit()?;
        Ok(report)
    };
    write().map_err(|error: Error| error.at(path))
}

/// Writes into memory.
pub(crate) fn to_memory<R>(write: impl FnOnce(&mut dyn Output) -> Result<R, Error>) -> Result<(Bytes, R), Error> {
    let mut arena = Arena::default();
    let report = write(&mut arena)?;
    Ok((arena.finish(), report))
}

/// Writes into whatever the caller has. If it fails, a part may have been written.
pub(crate) fn to_writer<R>(
    out: impl Write,
    write: impl FnOnce(&mut dyn Output) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let report = write(&mut out)?;
    out.flush()?;
    Ok(report)
}

impl<W: Write> Output for BufWriter<W> {}

/// The methods that end a build of a map, a sequence or a set index; `$collector` of a builder is its collector with all pairs.
#[cfg(feature = "maps")]
macro_rules! finish {
    ($what:literal, $built:ident, $this:ident => $collector:expr) => {
        #[doc = concat!("Builds the ", $what, " in memory.")]
        ///
        /// # Errors
        ///
        /// [`Error::Build`] if options contradict each other or the input, if a goal cannot be reached, if the build was cancelled, or if
        /// temporary files fail or grow past their limit.
        pub fn finish(self) -> Result<$built, Error> {
            Ok(self.finish_with_report()?.0)
        }

        #[doc = concat!("Builds the ", $what, " in memory, and reports what was read and built.")]
        ///
        /// # Errors
        ///
        /// As [`finish`](Self::finish).
        pub fn finish_with_report(self) -> Result<($built, Report), Error> {
            let $this = self;
            let collector = $collector;
            let secret = collector.options.common.needed_secret();
            let (bytes, report) = $crate::file::to_memory(|out| collector.write(out))?;
            Ok(($built::opened(bytes, secret)?, report))
        }

        #[doc = concat!("Builds the ", $what, " into a file.")]
        ///
        /// The file appears, or replaces an older one, when it is complete and not before.
        ///
        /// # Errors
        ///
        /// As [`finish`](Self::finish), and if the file cannot be written.
        pub fn finish_to(self, path: impl AsRef<std::path::Path>) -> Result<Report, Error> {
            let $this = self;
            let collector = $collector;
            let secret = collector.options.common.writes_secret();
            $crate::file::to_file(path.as_ref(), secret, |out| collector.write(out))
        }

        #[doc = concat!("Builds the ", $what, " and writes it to `out`.")]
        ///
        /// # Errors
        ///
        /// As [`finish`](Self::finish), and if `out` fails. A part of the bytes may have been written then.
        pub fn finish_into(self, out: impl std::io::Write) -> Result<Report, Error> {
            let $this = self;
            let collector = $collector;
            $crate::file::to_writer(out, |out| collector.write(out))
        }
    };
}
#[cfg(feature = "maps")]
pub(crate) use finish;

/// Where a filter goes.
enum Target {
    /// A device or pipe, written as it is.
    Direct(File),
    /// A temporary file, perhaps with a name, next to the place that it takes at the end.
    Temporary(File, Option<Part>, PathBuf),
}

impl Target {
    fn new(path: &Path, secret: bool, unnamed: impl Fn(&Path, u32) -> Option<File>) -> io::Result<Target> {
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
        let (dir, old) = (parent(path), found.ok());
        // As a program that creates a file would; the umask takes away what the user does not want. A secret is not for others
        // even for a moment.
        let mode = if secret || old.is_some() { 0o600 } else { 0o666 };
        let (file, name) = match unnamed(dir, mode) {
            Some(file) => (file, None),
            None => named(dir, mode)?,
        };
        if let Some(old) = old {
            file.set_permissions(kept(&old, secret))?;
        }
        Ok(Target::Temporary(file, name, path.to_path_buf()))
    }

    /// Makes the file durable and gives it its name.
    fn commit(self) -> io::Result<()> {
        match self {
            Target::Direct(mut file) => file.flush(),
            Target::Temporary(file, name, path) => {
                file.sync_all()?;
                let name = match name {
                    Some(name) => name,
                    // A link cannot take the place of another file, only a renamed file can.
                    None => Part::new(parent(&path), |name| link(&file, name))?.1,
                };
                std::fs::rename(&name.0, &path)?;
                // The name is the directory's; where a directory cannot be synchronised, the system does it in its own time.
                if let Ok(dir) = File::open(parent(&path)) {
                    let _ = dir.sync_all();
                }
                Ok(())
            }
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name of a file that is not complete; what still has it in the end is removed.
struct Part(PathBuf);

impl Part {
    /// Makes a file under a name that is free; `make` rejects one that is taken.
    fn new<R>(dir: &Path, mut make: impl FnMut(&Path) -> io::Result<R>) -> io::Result<(R, Part)> {
        let mut tries = 0..64;
        loop {
            let name = dir.join(format!(".tamis-{:016x}.part", RandomState::new().hash_one(())));
            match make(&name) {
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists && tries.next().is_some() => {}
                made => return Ok((made?, Part(name))),
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A temporary file with a name.
#[cfg_attr(not(unix), allow(unused_variables))]
fn named(dir: &Path, mode: u32) -> io::Result<(File, Option<Part>)> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let (file, name) = Part::new(dir, |name| options.open(name))?;
    Ok((file, Some(name)))
}

/// A file without a name that [`link`] can give one; none where the system or the file system has no such thing.
#[cfg(all(target_os = "linux", feature = "spill"))]
fn unnamed(dir: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(dir, flags, Mode::from_raw_mode(mode)).ok()?);
    // Without /proc it would stay without a name.
    descriptor(&file).exists().then_some(file)
}

#[cfg(not(all(target_os = "linux", feature = "spill")))]
fn unnamed(_: &Path, _: u32) -> Option<File> {
    None
}

/// Gives a file without a name this one.
#[cfg(all(target_os = "linux", feature = "spill"))]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(all(target_os = "linux", feature = "spill")))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The name that the system has for an open file.
#[cfg(all(target_os = "linux", feature = "spill"))]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The permissions of the file that is replaced: who could not read the old one cannot read the new one, and only its owner can read a secret.
#[cfg_attr(not(unix), allow(unused_variables))]
fn kept(old: &Metadata, secret: bool) -> Permissions {
    let kept = old.permissions();
    #[cfg(unix)]
    if secret {
        use std::os::unix::fs::PermissionsExt;
        return Permissions::from_mode(kept.mode() & 0o600);
    }
    kept
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
            Target::Temporary(file, ..) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Direct(file) => file.flush(),
            Target::Temporary(file, ..) => file.flush(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use super::{File, Part, Permissions, Target, io, unnamed};
    use crate::Filter;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    type Unnamed = fn(&Path, u32) -> Option<File>;

    /// As the system has it, and as on a system without files that have no name.
    const WAYS: [Unnamed; 2] = [unnamed, |_, _| None];

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        for (way, unnamed) in WAYS.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            let names = || -> Vec<PathBuf> {
                let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
                names.sort();
                names
            };
            for round in 0..3u8 {
                let before = names();
                let write = || {
                    let mut target = Target::new(&path, false, unnamed).unwrap();
                    target.write_all(&[round; 5000]).unwrap();
                    let parts = names().len() - before.len();
                    // Nothing cleans up behind a process that is killed here.
                    assert_eq!(parts, if cfg!(all(target_os = "linux", feature = "spill")) { way } else { 1 });
                    target
                };
                drop(write());
                assert_eq!(names(), before);
                write().commit().unwrap();
                assert_eq!(names(), std::slice::from_ref(&path));
                assert_eq!(std::fs::read(&path).unwrap(), [round; 5000]);
            }
        }
    }

    #[test]
    fn a_name_that_is_taken_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        let made = Part::new(dir.path(), |name| {
            names.push(name.to_path_buf());
            File::create_new(name)?;
            if names.len() < 3 { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) }
        });
        let ((), part) = made.unwrap();
        assert!(names.len() == 3 && part.0 == names[2]);
        drop(part);
        assert_eq!(names.iter().map(|name| name.exists()).collect::<Vec<_>>(), [true, true, false]);
        let never = Part::new(dir.path(), |_| io::Result::<()>::Err(io::ErrorKind::AlreadyExists.into()));
        assert_eq!(never.map(drop).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_secret_is_for_its_owner() {
        for unnamed in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let (path, plain) = (dir.path().join("file"), dir.path().join("plain"));
            File::create(&plain).unwrap();
            for (secret, old, new) in [
                (false, None, mode(&plain)),
                (true, None, 0o600),
                (true, Some(0o644), 0o600),
                (true, Some(0o440), 0o400),
                (false, Some(0o640), 0o640),
            ] {
                let _ = std::fs::remove_file(&path);
                if let Some(old) = old {
                    File::create(&path).unwrap().set_permissions(Permissions::from_mode(old)).unwrap();
                }
                let target = Target::new(&path, secret, unnamed).unwrap();
                let Target::Temporary(file, ..) = &target else { unreachable!() };
                // Before the first byte is written.
                assert_eq!(file.metadata().unwrap().mode() & 0o777, new);
                target.commit().unwrap();
                assert_eq!(mode(&path), new);
            }
        }
    }

    #[cfg(feature = "sets")]
    #[test]
    fn every_kind_of_file_knows_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let key = [1, 2];
        let pairs = || (0..10u64).map(|key| (key, key));
        let sets = || crate::sets((0..10u64).map(|key| (key, "a"))).options(crate::Options::default().secret(key));
        let writers: [&dyn Fn(); 8] = [
            &|| assert!(crate::build(0..10u64).secret(key).finish_to(&path).unwrap().bytes > 0),
            &|| {
                let mut keys = crate::stream().secret(key).partitioned();
                keys.push("label", 1u64).unwrap();
                keys.finish_to(&path).unwrap();
            },
            &|| {
                assert_eq!(
                    crate::map(pairs()).options(crate::Options::default().secret(key)).finish_to(&path).unwrap().keys,
                    10
                )
            },
            &|| assert!(sets().finish_to(&path).unwrap().bytes > 0),
            &|| {
                let index = sets().finish().unwrap();
                crate::sets::Editor::new(&index).unwrap().save(&path).unwrap();
            },
            &|| crate::build(0..10u64).secret(key).finish().unwrap().save(&path).unwrap(),
            &|| sets().finish().unwrap().save(&path).unwrap(),
            &|| {
                let hasher = crate::Hasher::secret(key);
                crate::Bloom::with_capacity(10).hasher(hasher).build::<u64>().unwrap().save(&path).unwrap();
            },
        ];
        for write in writers {
            write();
            assert_eq!(mode(&path), 0o600);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn links_and_permissions_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (real, near, far) = (dir.path().join("real"), dir.path().join("near"), dir.path().join("far"));
        symlink("real", &near).unwrap();
        symlink(&near, &far).unwrap();
        // First the links point to nothing.
        for wanted in [None, Some(0o600), Some(0o640), Some(0o444)] {
            if let Some(wanted) = wanted {
                std::fs::set_permissions(&real, Permissions::from_mode(wanted)).unwrap();
            }
            crate::build(0..10u64).finish_to(&far).unwrap();
            assert!(near.is_symlink() && far.is_symlink() && !real.is_symlink());
            assert!(wanted.is_none_or(|wanted| wanted == mode(&real)));
            assert!(Filter::read(&far).unwrap().contains(3u64).unwrap());
        }
    }
}
