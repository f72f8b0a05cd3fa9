//! a file -> what it holds, as a memory map that was verified.
#![allow(unsafe_code)]

use std::path::Path;

use tamis::{Error, Filter, Map, Sets};

/// Whether payloads are compared with their checksum before they are queried.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct VerifyArgs {
    /// Do not compare the file with its checksum first: quicker for large files, and a damaged one gives wrong answers
    #[arg(long)]
    pub(crate) no_verify: bool,
}

macro_rules! mapped {
    ($($name:ident: $type:ty;)*) => {$(
        pub(crate) fn $name(path: &Path, how: VerifyArgs) -> Result<$type, Error> {
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
    sets: Sets;
}
