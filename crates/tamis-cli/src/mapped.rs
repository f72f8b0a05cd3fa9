//! a file, standard input, or a folder of slices -> what it holds, verified; files are memory maps.
#![allow(unsafe_code)]

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::OnceLock;

use tamis::learned::Learned;
use tamis::slices::{MANIFEST, SliceInfo, Sliced};
use tamis::{Error, FileInfo, Filter, FormatError, Map, Patch, Sequence, Sets};

use crate::json::Form;

/// Whether payloads are compared with their checksum before they are queried.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct VerifyArgs {
    /// Skip the checksum: opens large files faster, but a damaged file gives wrong answers
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) no_verify: bool,
    /// The secret of its hash, if it is not in the file.
    pub(crate) secret: Option<[u64; 2]>,
}

impl How {
    /// A file that this command just wrote.
    pub(crate) fn written(secret: Option<[u64; 2]>) -> How {
        How { no_verify: true, secret }
    }
}

/// The first bytes of a file of ours.
const FIRST: &[u8] = b"\x89tamis\r\n";

/// All of standard input, read once; its first bytes, if it is no file of ours.
fn stdin() -> io::Result<&'static [u8]> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    if BYTES.get().is_none() {
        let (mut bytes, mut from) = (vec![], io::stdin().lock());
        from.by_ref().take(FIRST.len() as u64).read_to_end(&mut bytes)?;
        // A device has no end.
        if bytes == FIRST {
            from.read_to_end(&mut bytes)?;
        }
        let _ = BYTES.set(bytes);
    }
    Ok(BYTES.get().map_or(&[], Vec::as_slice))
}

/// What the library calls the form of a manifest.
pub(crate) const MANIFEST_FORM: &str = "manifest of slices";

/// Whether a path is a folder of slices with their manifest.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir() && path.join(MANIFEST).is_file()
}

/// Opens the slices of a folder, which is named by itself or by its manifest, as one filter.
pub(crate) fn sliced(path: &Path, how: How) -> Result<Sliced, Error> {
    if how.secret.is_some() {
        return Err(FormatError::NoSecret.into());
    }
    // Under another name, it may be of other slices than those around it.
    if !path.is_dir() && path.file_name() != Some(MANIFEST.as_ref()) {
        return Err(FormatError::Form { found: MANIFEST_FORM, expected: "filter" }.into());
    }
    let parent = || path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // SAFETY: as for a file: slices are replaced by renaming and never changed in place.
    let opened = unsafe { Sliced::mmap(if path.is_dir() { path } else { parent() }) }?;
    if !how.no_verify {
        opened.verify()?;
    }
    Ok(opened)
}

macro_rules! mapped {
    ($($name:ident: $type:ty;)*) => {$(
        pub(crate) fn $name(path: &Path, how: How) -> Result<$type, Error> {
            if path.as_os_str() == "-" {
                let bytes = stdin()?;
                let opened = match how.secret {
                    Some(secret) => <$type>::open_with_secret(bytes, secret),
                    None if how.no_verify => <$type>::open_unverified(bytes),
                    None => <$type>::open(bytes),
                };
                return Ok(opened?);
            }
            if is_folder(path) {
                return Err(FormatError::Form { found: MANIFEST_FORM, expected: stringify!($name) }.into());
            }
            // SAFETY: a file of ours is replaced by renaming and never changed in place. Another program that cuts it while we
            // run can end this process, as with every tool that maps its input.
            let opened = unsafe {
                match how.secret {
                    Some(secret) => <$type>::mmap_with_secret(path, secret),
                    None => <$type>::mmap(path),
                }
            }?;
            if !how.no_verify {
                opened.verify()?;
            }
            Ok(opened)
        }
    )*};
}

mapped! {
    filter: Filter;
    map: Map;
    sequence: Sequence;
    sets: Sets;
    patch: Patch;
    learned: Learned;
}

/// A tamis file of any form.
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
pub(crate) enum Any {
    Filter(Filter),
    Map(Map),
    Sequence(Sequence),
    Sets(Sets),
    Patch(Patch),
    Learned(Learned),
    /// The bytes of one slice.
    Slice(Vec<u8>, SliceInfo),
    /// A folder of slices.
    Sliced(Sliced),
    /// The bytes of a snapshot, of which the library shows little without its keys.
    Adaptive(Vec<u8>),
}

impl Any {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Any::Filter(filter) => filter.as_bytes(),
            Any::Map(map) => map.as_bytes(),
            Any::Sequence(sequence) => sequence.as_bytes(),
            Any::Sets(sets) => sets.as_bytes(),
            Any::Patch(patch) => patch.as_bytes(),
            Any::Learned(filter) => filter.as_bytes(),
            Any::Sliced(slices) => slices.manifest(),
            Any::Adaptive(bytes) | Any::Slice(bytes, _) => bytes,
        }
    }

    /// Its name, as JSON has it.
    pub(crate) fn form(&self) -> Form {
        match self {
            Any::Filter(_) => Form::Filter,
            Any::Map(_) => Form::Map,
            Any::Sequence(_) => Form::Sequence,
            Any::Sets(_) => Form::Sets,
            Any::Patch(_) => Form::Patch,
            Any::Learned(_) => Form::Learned,
            Any::Slice(..) => Form::Slice,
            Any::Sliced(_) => Form::Slices,
            Any::Adaptive(_) => Form::Adaptive,
        }
    }
}

/// All bytes of a file.
fn all(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" { Ok(stdin()?.to_vec()) } else { std::fs::read(path) }
}

/// What a regular file says it is, in a word or two, if its first bytes are those of a tamis file.
pub(crate) fn form(path: &Path) -> Option<&'static str> {
    let is_file = path.as_os_str() != "-" && std::fs::metadata(path).is_ok_and(|data| data.is_file());
    let mut mark = [0; 8];
    let read = is_file.then(|| std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut mark)));
    if !matches!(read, Some(Ok(()))) || mark != *b"\x89tamis\r\n" {
        return None;
    }
    match filter(path, How::written(None)) {
        Ok(_) => Some("filter"),
        Err(Error::Format { error: FormatError::Form { found, .. }, .. }) => Some(found),
        // Its secret is elsewhere, or it is damaged.
        Err(_) => Some("file"),
    }
}

/// Opens a file as what it says it is.
pub(crate) fn any(path: &Path, how: How) -> Result<Any, Error> {
    match filter(path, how) {
        Err(Error::Format { error: FormatError::Form { found, expected }, .. }) => match found {
            "map" => map(path, how).map(Any::Map),
            "sequence" => sequence(path, how).map(Any::Sequence),
            "set index" => sets(path, how).map(Any::Sets),
            "patch" => patch(path, how).map(Any::Patch),
            "learned filter" => learned(path, how).map(Any::Learned),
            "adaptive filter" => {
                let bytes = all(path)?;
                if !how.no_verify {
                    FileInfo::verified(&bytes)?;
                }
                Ok(Any::Adaptive(bytes))
            }
            "slice of a filter" => {
                let bytes = all(path)?;
                let info = if how.no_verify { SliceInfo::open_unverified(&bytes) } else { SliceInfo::open(&bytes) };
                Ok(Any::Slice(bytes, info?))
            }
            MANIFEST_FORM if path.as_os_str() != "-" => sliced(path, how).map(Any::Sliced),
            _ => Err(FormatError::Form { found, expected }.into()),
        },
        filter => filter.map(Any::Filter),
    }
}
