//! a file, or standard input -> what it holds, verified; files are memory maps.
#![allow(unsafe_code)]

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::OnceLock;

use tamis::{Error, Filter, FormatError, Map, Sequence, Sets};

/// Whether payloads are compared with their checksum before they are queried.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct VerifyArgs {
    /// Skip the checksum: opens large files faster, but a damaged file gives wrong answers
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// All of standard input, read once.
fn stdin() -> io::Result<&'static [u8]> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    if BYTES.get().is_none() {
        let mut bytes = vec![];
        io::stdin().lock().read_to_end(&mut bytes)?;
        let _ = BYTES.set(bytes);
    }
    Ok(BYTES.get().map_or(&[], Vec::as_slice))
}

macro_rules! mapped {
    ($($name:ident: $type:ty;)*) => {$(
        pub(crate) fn $name(path: &Path, how: VerifyArgs) -> Result<$type, Error> {
            if path.as_os_str() == "-" {
                let bytes = stdin()?;
                let opened = if how.no_verify { <$type>::open_unverified(bytes) } else { <$type>::open(bytes) };
                return Ok(opened?);
            }
            // SAFETY: a file of ours is replaced by renaming and never changed in place. Another program that cuts it while we
            // run can end this process, as with every tool that maps its input.
            let opened = unsafe { <$type>::mmap(path) }?;
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
}

/// A tamis file of any form.
pub(crate) enum Any {
    Filter(Filter),
    Map(Map),
    Sequence(Sequence),
    Sets(Sets),
    /// A snapshot, of which the library shows nothing without its keys.
    Adaptive {
        bytes: u64,
    },
}

impl Any {
    /// The version of its format.
    pub(crate) fn version(&self) -> u16 {
        match self {
            Any::Filter(filter) => filter.version(),
            Any::Map(map) => map.version(),
            Any::Sequence(sequence) => sequence.version(),
            Any::Sets(sets) => sets.version(),
            // The library found out what it is, so it knows the version, and there is one so far.
            Any::Adaptive { .. } => 1,
        }
    }

    /// Its name, as JSON has it.
    pub(crate) fn form(&self) -> &'static str {
        match self {
            Any::Filter(_) => "filter",
            Any::Map(_) => "map",
            Any::Sequence(_) => "sequence",
            Any::Sets(_) => "sets",
            Any::Adaptive { .. } => "adaptive",
        }
    }
}

/// Opens a file as what it says it is.
pub(crate) fn any(path: &Path, how: VerifyArgs) -> Result<Any, Error> {
    match filter(path, how) {
        Err(Error::Format { error: FormatError::Form { found, expected }, .. }) => match found {
            "map" => map(path, how).map(Any::Map),
            "sequence" => sequence(path, how).map(Any::Sequence),
            "set index" => sets(path, how).map(Any::Sets),
            "adaptive filter" if path.as_os_str() == "-" => Ok(Any::Adaptive { bytes: stdin()?.len() as u64 }),
            "adaptive filter" => Ok(Any::Adaptive { bytes: path.metadata()?.len() }),
            _ => Err(FormatError::Form { found, expected }.into()),
        },
        filter => filter.map(Any::Filter),
    }
}
