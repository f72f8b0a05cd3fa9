//! a file -> what it holds, as a memory map.
#![allow(unsafe_code)]

use std::path::Path;

use tamis::{Error, Filter, Map, Sequence, Sets};

macro_rules! mapped {
    ($($name:ident: $type:ty;)*) => {$(
        pub(crate) fn $name(path: impl AsRef<Path>) -> Result<$type, Error> {
            // SAFETY: the tests never change a file that is mapped.
            unsafe { <$type>::mmap(path) }
        }
    )*};
}

mapped! {
    filter: Filter;
    map: Map;
    sets: Sets;
    sequence: Sequence;
}
