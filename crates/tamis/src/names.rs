//! an enum and its names -> `Display`, `FromStr`, an error that lists the names, and the list of all.

use std::fmt;

/// A name that an enum does not have.
///
/// ```
/// let error = "bloom".parse::<tamis::maps::Kind>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown; expected auto, compressed, ribbon or fuse");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(pub(crate) Vec<&'static str>);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [names @ .., last] if !names.is_empty() => write!(f, "unknown; expected {} or {last}", names.join(", ")),
            names => write!(f, "unknown; expected {}", names.join(", ")),
        }
    }
}

impl std::error::Error for NameError {}

/// `Display` and `FromStr` of an enum by a table of its names.
macro_rules! named {
    ($type:ident: $($name:literal => $variant:ident),+) => {
        impl $type {
            /// Every value with its name.
            #[doc(hidden)]
            pub const ALL: &[(&'static str, $type)] = &[$(($name, $type::$variant)),+];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($type::$variant => $name),+ })
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::names::NameError;

            fn from_str(name: &str) -> Result<$type, $crate::names::NameError> {
                match name {
                    $($name => Ok($type::$variant),)+
                    _ => Err($crate::names::NameError(vec![$($name),+])),
                }
            }
        }
    };
}
pub(crate) use named;

#[cfg(all(test, feature = "build", feature = "sets"))]
mod tests {
    use crate::{Effort, Kind, Layout, OnConflict, maps, sets};

    #[test]
    fn names_are_read_as_they_are_printed() {
        for kind in [maps::Kind::Auto, maps::Kind::Compressed, maps::Kind::Ribbon, maps::Kind::Fuse] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for kind in [sets::Kind::Auto, sets::Kind::Bloom, sets::Kind::Cuckoo, sets::Kind::Frozen] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for wrong in ["", "Bloom", "bloom "] {
            let error = wrong.parse::<sets::Kind>().map_err(|error| error.to_string());
            assert_eq!(error, Err("unknown; expected auto, bloom, cuckoo or frozen".to_string()));
        }
        for &(name, kind) in Kind::ALL {
            assert_eq!((kind.to_string().as_str(), name.parse()), (name, Ok(kind)));
        }
        for effort in [Effort::Fast, Effort::Balanced, Effort::Smallest] {
            assert_eq!(effort.to_string().parse(), Ok(effort));
        }
        for layout in [Layout::Auto, Layout::Compact, Layout::Local] {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        for policy in [OnConflict::Error, OnConflict::Keep, OnConflict::Drop] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!(format!("{:<8}|", sets::Kind::Bloom), "bloom   |");
    }
}
