//! keys and their values -> a few bits each -> the value of a key: static functions, compressed maps, sequences.
//!
//! A map holds a value for every key and not the keys themselves. Asked for a key that it was not built from it returns any
//! value, or none by chance, unless fingerprints tell strangers apart ([`MapBuilder::fingerprint`]).
//!
//! ```
//! let colours = [("ann", "red"), ("bob", "blue"), ("eve", "red")];
//! let map = tamis::map(colours).finish()?;
//! assert_eq!(map.get_bytes("eve")?, Some(&b"red"[..]));
//!
//! let bytes = map.as_bytes().to_vec(); // to disk, into a message, into the program itself
//! assert_eq!(tamis::Map::open(bytes)?.get_bytes("ann")?, Some(&b"red"[..]));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! A *function* of fixed width takes the same number of bits for every value. A *compressed* map takes about the entropy of the
//! values: a million keys of which nine in ten have one value, and nine in ten of the others a second, and so on, take half a
//! megabit. It is a small tree of exact filters and functions ([`Map::layers`] shows it): where ways are equally
//! likely a function chooses, where they are not a filter does, at the price of their entropy ([Chained] section 5.2).
//! A *sequence* is a map whose keys are positions.
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
