//! sorted distinct digests -> bytes that answer: the elementary structures, and the one list of them.
//!
//! ```text
//!   leaf       Geometry, Query, ShardedLeaf: what every leaf can do, and how a query finds its function
//!   role       what an answer means in a list of steps
//!   design     planning and building: Design, Sides, Work
//!   change     leaves that take and return keys after they were built
//!   batch      many keys at once, for leaves of one place per key
//!   strips     where the rows of steered and local leaves lie
//!   pack       cells of any width
//!   bloom, fuse, ribbon, integrated, steered, local, cuckoo, quotient     one room per leaf
//! ```

use bytes::Bytes;

use crate::arch::QueryFn;
use crate::error::FormatError;
#[cfg(feature = "build")]
use crate::format::Encoded;
use crate::format::Reader;
use crate::hash::{Digest, Salt};

mod batch;
pub(crate) mod bloom;
#[cfg(feature = "build")]
pub(crate) mod change;
#[cfg(all(test, feature = "build"))]
mod chosen;
pub(crate) mod cuckoo;
#[cfg(feature = "build")]
pub(crate) mod design;
pub(crate) mod fuse;
pub(crate) mod integrated;
pub(crate) mod leaf;
pub(crate) mod local;
mod pack;
pub(crate) mod quotient;
pub(crate) mod ribbon;
pub(crate) mod role;
pub(crate) mod steered;
pub(crate) mod strips;

#[cfg(feature = "build")]
pub(crate) use design::{Design, Sides, Values, Work};
use leaf::bits_in_words;
pub(crate) use leaf::{Entry, Geometry, Never, Part, Query, ShardedLeaf, Way};
pub use role::Role;

/// From the list of leaves: the closed enums of built leaves and of leaves to build, their tags, and what is forwarded to them.
///
/// Tags are in files and are never reused; two equal ones are a compile error.
macro_rules! leaves {
    ($($tag:literal $name:ident: $geometry:ty, built by $design:ty;)*) => {
        /// The leaves there are.
        #[derive(Debug, Clone)]
        #[allow(clippy::large_enum_variant, reason = "there is one per step, and a query must have no pointer to follow")]
        pub(crate) enum Leaf {
            $($name(ShardedLeaf<$geometry>),)*
        }

        $(
            impl Entry for $geometry {
                const TAG: u8 = $tag;

                #[inline(always)]
                fn of(leaf: &Leaf) -> Option<&ShardedLeaf<Self>> {
                    if let Leaf::$name(leaf) = leaf { Some(leaf) } else { None }
                }

                #[cfg(test)]
                fn listed(leaf: ShardedLeaf<Self>) -> Leaf {
                    Leaf::$name(leaf)
                }
            }
        )*

        impl Leaf {
            /// Reads the geometries of all shards.
            #[deny(unreachable_patterns)]
            pub(crate) fn decode(tag: u8, from: &mut Reader<'_>, bits: u32, salt: Salt) -> Result<Leaf, FormatError> {
                match tag {
                    $($tag => Ok(Leaf::$name(ShardedLeaf::decode(from, bits, salt)?)),)*
                    _ => Err(FormatError::unsupported("structure", tag)),
                }
            }

            /// The structure's name.
            pub(crate) fn name(&self) -> &'static str {
                match self { $(Leaf::$name(_) => <$geometry>::NAME,)* }
            }

            /// The parameters of the largest shard, in words.
            pub(crate) fn details(&self) -> String {
                match self { $(Leaf::$name(leaf) => leaf.details(),)* }
            }

            /// The share of unlisted keys that match.
            pub(crate) fn fpr(&self) -> f64 {
                match self { $(Leaf::$name(leaf) => leaf.fpr(|part| part.geometry.fpr()),)* }
            }

            /// The same of the very payloads that it has.
            pub(crate) fn counted_rate(&self) -> f64 {
                match self { $(Leaf::$name(leaf) => leaf.fpr(|part| part.geometry.counted_rate(&part.payload)),)* }
            }

            /// How many shards it has.
            pub(crate) fn shards(&self) -> usize {
                match self { $(Leaf::$name(leaf) => leaf.parts().len(),)* }
            }

            /// Whether a query of it looks for no shard: there is one, or the leaf finds it by itself.
            pub(crate) fn is_single(&self) -> bool {
                self.shards() == 1 || matches!(self, Leaf::Ribbon(leaf) if leaf.is_uniform())
            }

            /// Length of one shard's payload.
            pub(crate) fn payload_len(&self, shard: usize) -> u64 {
                match self {
                    $(Leaf::$name(leaf) => leaf.parts().get(shard).map_or(0, |part| part.geometry.payload_len()),)*
                }
            }

            /// Says where one shard's payload lies.
            pub(crate) fn set_place(&mut self, shard: usize, start: usize, payload: Bytes) {
                match self { $(Leaf::$name(leaf) => leaf.set_place(shard, start, payload),)* }
            }

            /// One shard as a leaf of its own, its place left open.
            pub(crate) fn alone(&self, shard: usize) -> Option<Leaf> {
                match self {
                    $(Leaf::$name(leaf) => leaf.alone(shard).map(Leaf::$name),)*
                }
            }

            /// The function that answers for one key.
            pub(crate) fn query_fn<W: Way>(&self) -> QueryFn<W::Asked> {
                match self { $(Leaf::$name(leaf) => leaf.query_fn::<W>(),)* }
            }

            /// Answers for many keys; `file` is the whole file.
            pub(crate) fn contains_many(&self, file: &[u8], keys: &[Digest], out: &mut [bool]) {
                match self { $(Leaf::$name(leaf) => leaf.contains_many(file, keys, out),)* }
            }

            /// The reference for one key, for tests.
            #[cfg(test)]
            pub(crate) fn contains(&self, key: Digest) -> bool {
                match self { $(Leaf::$name(leaf) => leaf.contains(key),)* }
            }

            /// The function that returns the value of one key, if the leaf holds values.
            #[cfg(feature = "maps")]
            pub(crate) fn value_fn(&self) -> Option<QueryFn<Leaf, u32>> {
                match self { $(Leaf::$name(leaf) => leaf.value_fn(),)* }
            }

            /// Values of many keys; zeros if it holds none.
            #[cfg(feature = "maps")]
            pub(crate) fn get_many(&self, file: &[u8], keys: &[Digest], out: &mut [u32]) {
                match self { $(Leaf::$name(leaf) => leaf.get_many(file, keys, out),)* }
            }

            /// All shards as layers that change; none if the leaf cannot.
            #[cfg(feature = "build")]
            pub(crate) fn layers(&self) -> Option<Vec<Box<dyn change::Layer>>> {
                match self { $(Leaf::$name(leaf) => leaf.parts().iter().map(<$geometry>::layer).collect(),)* }
            }

            /// One shard, as it was built.
            #[cfg(feature = "build")]
            pub(crate) fn part(&self, shard: usize) -> Option<Encoded> {
                match self {
                    $(Leaf::$name(leaf) => leaf.parts().get(shard).map(|part| encoded(&part.geometry, part.payload.clone())),)*
                }
            }
        }

        /// A leaf to build, the same for every shard.
        #[cfg(feature = "build")]
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub(crate) enum Structure {
            $($name($design),)*
        }

        $(
            #[cfg(feature = "build")]
            impl From<$design> for Structure {
                fn from(design: $design) -> Structure {
                    Structure::$name(design)
                }
            }
        )*

        #[cfg(feature = "build")]
        impl Structure {
            /// The tag in a directory.
            pub(crate) fn tag(&self) -> u8 {
                match self { $(Structure::$name(_) => $tag,)* }
            }

            /// The structure's name, as [`Leaf::name`] has it.
            pub(crate) fn name(&self) -> &'static str {
                match self { $(Structure::$name(_) => <$geometry>::NAME,)* }
            }

            /// See [`Design::bits`].
            pub(crate) fn bits(&self, listed: u64, others: u64) -> f64 {
                match self { $(Structure::$name(design) => design.bits(listed, others),)* }
            }

            /// See [`Design::rate_at`]; no key matches where none is listed.
            pub(crate) fn rate_at(&self, listed: u64) -> f64 {
                match self {
                    _ if listed == 0 => 0.0,
                    $(Structure::$name(design) => design.rate_at(listed),)*
                }
            }

            /// See [`Design::passing`].
            pub(crate) fn passing(&self, mu: f64, listed: u64) -> f64 {
                match self {
                    _ if listed == 0 => 0.0,
                    $(Structure::$name(design) => design.passing(mu, listed),)*
                }
            }

            /// See [`Design::MARGIN`].
            pub(crate) fn margin(&self) -> f64 {
                match self { $(Structure::$name(_) => <$design>::MARGIN,)* }
            }

            /// See [`Design::lines`].
            pub(crate) fn lines(&self) -> [f64; 2] {
                match self { $(Structure::$name(design) => design.lines(),)* }
            }

            /// See [`Design::with_room`].
            pub(crate) fn with_room(self, spare: f64) -> Option<Structure> {
                match self { $(Structure::$name(design) => design.with_room(spare).map(Structure::$name),)* }
            }

            /// See [`Design::nested`].
            pub(crate) fn nested(self) -> Option<Structure> {
                match self { $(Structure::$name(design) => design.nested().map(Structure::$name),)* }
            }

            /// Builds the leaf of one shard.
            pub(crate) fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>) -> Result<Encoded, crate::error::BuildError> {
                let mut payload = vec![];
                match self {
                    $(Structure::$name(design) => {
                        let geometry = design.build(sides, work, &mut payload)?;
                        Ok(encoded(&geometry, payload.into()))
                    })*
                }
            }
        }
    };
}

/// Whether the leaf with this tag is one whose bytes may still change: what only figures of papers need.
#[cfg(feature = "build")]
pub(crate) fn may_change(tag: u8) -> bool {
    tag == <integrated::Integrated as Entry>::TAG
}

// Tag 10 is reserved: an exact bit that changes.
leaves! {
    1 SplitBlock: bloom::SplitBlock, built by bloom::split::PerKey;
    2 Bloom: bloom::Classic, built by bloom::classic::PerKey;
    3 Fuse: fuse::Fuse, built by fuse::Params;
    4 Ribbon: ribbon::Ribbon, built by ribbon::Params;
    5 Integrated: integrated::Integrated, built by integrated::Params;
    6 Steered: steered::Steered, built by steered::Params;
    7 Local: local::Local, built by local::Params;
    8 Cuckoo: cuckoo::Cuckoo, built by cuckoo::Params;
    9 Quotient: quotient::Quotient, built by quotient::Params;
}

/// A part, ready to be written.
#[cfg(feature = "build")]
fn encoded(geometry: &impl Geometry, payload: Bytes) -> Encoded {
    let mut entry = Vec::with_capacity(32);
    geometry.encode(&mut entry);
    Encoded { geometry: entry, payload }
}

#[cfg(all(test, feature = "build", feature = "maps"))]
mod tests;
