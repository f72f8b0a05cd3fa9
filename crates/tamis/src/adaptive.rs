//! keys that come and go, false positives that were found -> filters that repair themselves.
//!
//! A filter in front of a dictionary saves lookups. One false positive of an ordinary filter can be queried again and again: its
//! rate holds for unlisted keys only. The filters of this module fix each false positive that is reported. So their rate holds for
//! *any* sequence of queries, also one that is chosen by the answers (\[Broom\] section 2: the *sustained false-positive rate*).
//!
//! ```text
//!   query ──▶ filter ──no──▶ not there
//!               │yes
//!               ▼
//!           dictionary ──found──▶ value
//!               │not found: a false positive
//!               ▼
//!             repair: which key is behind this fingerprint?   ◀── ReverseMap
//!                     make its fingerprint longer, and move a few keys to the next hash function
//! ```
//!
//! * [`Adapt`] is what such a filter does: insert, contains, repair; [`Remove`] is what all but `AdaptiveBloom` do too.
//! * [`ReverseMap`] is what it must be told: the keys behind a fingerprint, and the keys in the order in which they are hashed anew.
//!   [`Memory`] is one in memory; a database that holds the keys anyway can be another.
//! * [`Guarded`] is filter and dictionary together; [`Shared`] lets many threads ask beside one that writes.
//!
//! **Reading first.** Every change has two halves. `plan` looks at the filter and asks the map, and may fail: the filter is as it
//! was. `apply` changes the filter, asks no map and cannot fail. So a map that breaks half-way harms nothing, and readers wait for
//! memory alone, never for the map.
//!
//! **The hash is keyed, always**: with a secret of the operating system, or of the caller. With the secret, false
//! positives can be computed instead of found. A snapshot holds the secret.

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
mod keys;
mod large;
mod map;
mod memory;
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
pub use quotient::AdaptiveQuotient;
pub use shared::Shared;
pub use stacked::AdaptiveStacked;
pub use verbs::{Adapt, AdaptiveFilter, ChangeStats, Remove};
use verbs::{Kept, Mechanism, PlanRemoval, Task};

/// What benchmarks and tests of the repository use too.
#[cfg(feature = "internals")]
pub(crate) mod internals {
    pub use super::broom::{Block, Statistics};
    pub use super::stacked::{Phase, StackedOutcome};
    pub use super::verbs::{Kept, Mechanism, PlanRemoval, Task};
}
