//! an enum and its names -> `Display`, `FromStr`, and an error that lists the names.

use std::fmt;

/// A name that an enum does not have.
///
/// ```
/// let error = "bloom".parse::<tamis::maps::Kind>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown name; expected one of auto, compressed, ribbon, fuse");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(pub(crate) &'static [&'static str]);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name; expected one of {}", self.0.join(", "))
    }
}

impl std::error::Error for NameError {}

/// `Display` and `FromStr` of an enum by a table of its names.
macro_rules! named {
    ($type:ident: $($name:literal => $variant:ident),+) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($type::$variant => $name),+ })
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::NameError;

            fn from_str(name: &str) -> Result<$type, $crate::NameError> {
                match name {
                    $($name => Ok($type::$variant),)+
                    _ => Err($crate::NameError(&[$($name),+])),
                }
            }
        }
    };
}
pub(crate) use named;

#[cfg(all(test, feature = "build", feature = "sets"))]
mod tests {
    use crate::{maps, sets};

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
            assert_eq!(error, Err("unknown name; expected one of auto, bloom, cuckoo, frozen".to_string()));
        }
        assert_eq!(format!("{:<8}|", sets::Kind::Bloom), "bloom   |");
    }
}
