//! keys and their values -> a few bits each -> the value of a key: static functions, compressed maps, sequences.
//!
//! A [`Map`] stores the values of its keys and not the keys. It checks a key by a fingerprint of 8 bits: one unlisted key in 256 gets a
//! value ([`MapBuilder::fpr`] sets another share), all others get none. A static function has no fingerprints and a value for any key,
//! and has to be asked for ([`MapBuilder::unchecked`]).
//!
//! ```
//! let teams = [("ann", "red"), ("bob", "blue"), ("eve", "red")];
//! let map = tamis::map(teams).finish()?;
//! assert_eq!(map.get_bytes("eve")?, Some(&b"red"[..]));
//! assert_eq!(map.get_bytes("tom")?, None);
//!
//! let bytes = map.as_bytes().to_vec(); // store them anywhere
//! assert_eq!(tamis::Map::open(bytes)?.get_bytes("ann")?, Some(&b"red"[..]));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! Besides fingerprints,
//!
//! * a *function* uses the same number of bits for every value;
//! * a *compressed* map uses about the entropy of the values. Suppose nine in ten of a million keys have one value, nine in ten of the
//!   others a second, and so on: the map has half a megabit. It is a tree of exact filters and functions, which [`Map::layers`]
//!   lists. A function decides between values that are equally frequent, a filter between a rare and a frequent one ([Chained] section 5.2).
//! * a [`Sequence`] is a map whose keys are positions, which need no check.
//!
//! [Chained]: https://doi.org/10.48550/arXiv.2308.13649

#[cfg(feature = "build")]
mod build;
mod coder;
#[cfg(feature = "build")]
mod count;
#[cfg(feature = "build")]
mod plan;
mod query;
mod sequence;
#[cfg(feature = "build")]
mod shard;
pub(crate) mod table;
mod tree;
mod value;

#[cfg(feature = "build")]
pub use build::{Collector, Kind, MapBuilder, Report, map, stream};
pub use query::{LayerInfo, Map};
pub use sequence::Sequence;
#[cfg(feature = "build")]
pub use sequence::{SequenceBuilder, sequence};
pub use value::{ToValue, Value};
