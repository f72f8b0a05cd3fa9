//! keys, false positives that were found -> filters that fix their false positives.
//!
//! A filter in front of a database saves lookups. The false positive rate of an ordinary filter holds for unlisted keys that are
//! queried once: a false positive that is queried again and again matches each time. The filters of this module *adapt*: they reject a
//! false positive once it is reported. So their rate holds for *any* sequence of queries, also one that is chosen by the answers
//! (\[Broom\] section 2: the *sustained false-positive rate*).
//!
//! ```
//! use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory};
//! let mut filter = Broom::with_capacity(1000).fpr(0.01).build::<str>()?;
//! let mut map = Memory::new();
//! filter.insert("ann", &mut map)?;
//! if filter.contains("bob")? {
//!     // The database has no "bob": a false positive.
//!     filter.adapt("bob", &mut map)?;
//! }
//! assert!(filter.contains("ann")? && !filter.contains("bob")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | filter | for |
//! |---|---|
//! | [`Broom`] | rates down to 2^-24: the smallest; it can grow |
//! | [`LargeBroom`] | rates from 2^-24 to 2^-40 |
//! | [`AdaptiveChained`] | a fixed set and queries that repeat: reported false positives are rejected from the next rebuild on |
//! | [`AdaptiveStacked`] | a fixed set and queries of which some are frequent: it learns which ones from its false positives |
//!
//! The first two keep their rate for any sequence of queries, insertions and removals, as long as the secret and the snapshot stay
//! private. The last two do not promise that.
//!
//! ```text
//!   query ──▶ filter ──rejects──▶ not a member
//!               │matches
//!               ▼
//!           database ──has it──▶ value
//!               │has it not: a false positive
//!               ▼
//!             adapt: which key has this fingerprint?   ◀── ReverseMap
//!                    make its fingerprint longer, and move a few keys to the next hash function
//! ```
//!
//! * [`AdaptiveFilter`] has the methods of all of them, [`Adapt`] and [`Remove`] those that change the first two.
//! * [`ReverseMap`] returns the keys with a fingerprint, and the keys in the order in which they move to the next hash function.
//!   [`Memory`] is one in memory; a database that has the keys anyway can be another.
//! * [`Guarded`] is a filter and its dictionary. [`Shared`] is a filter for several threads.
//! * [`Keys`] is the store of the keys of the last two.
//!
//! **Reading first.** Every change has two halves. The first reads the filter and the map, and may fail: the filter is as it was. The
//! second changes the filter, reads no map and cannot fail. So a map that fails half-way does no harm, and readers wait for memory
//! alone, never for the map.
//!
//! **The hash is keyed, always**: with a secret of the operating system, or of the caller. With the secret, false positives can be
//! computed instead of found. A snapshot holds the secret.

mod bits;
#[cfg(feature = "papers")]
mod bloom;
mod broom;
mod builder;
#[cfg(feature = "papers")]
mod cascade;
mod chained;
mod dictionary;
mod error;
mod file;
mod frontier;
mod guarded;
#[cfg(feature = "internals")]
pub(crate) mod internals;
mod keys;
mod large;
mod map;
mod memory;
#[cfg(feature = "papers")]
mod quotient;
mod shared;
mod stacked;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod trial;
mod verbs;
mod words;

#[cfg(feature = "papers")]
pub use bloom::{AdaptiveBloom, Segments};
pub use broom::Broom;
pub use builder::AdaptiveBuilder;
#[cfg(feature = "papers")]
pub use cascade::{Cascade, CuckooCascade, Cuckoos, Erase, Level, QuotientCascade, Quotients, Schedule};
pub use chained::AdaptiveChained;
pub use error::{AdaptError, Inconsistency};
pub use guarded::{Counts, Dictionary, Guarded};
pub use keys::Keys;
pub use large::LargeBroom;
pub use map::ReverseMap;
pub use memory::Memory;
#[cfg(feature = "papers")]
pub use quotient::AdaptiveQuotient;
pub use shared::Shared;
pub use stacked::AdaptiveStacked;
pub use verbs::{Adapt, AdaptiveFilter, ChangeStats, Remove};
use verbs::{Kept, Mechanism, PlanRemoval, Task};
