//! a caller's wishes -> names for them: goals, kinds of structures, efforts, layouts.

use Chosen::{Always, Never, NotFast};

use super::plain::{self, plain};
use super::recipes::{cascade, chained, fpfs};
use super::{Plan, Request, by_default};
use crate::error::BuildError;
use crate::leaves::Structure;
use crate::leaves::integrated::IntegratedVariant;
use crate::names::{NameError, named};

/// Goal of a filter for unlisted keys.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Goal {
    /// At most this share of them matches; the filter is as small as that allows.
    Fpr(f64),
    /// At most this many bits per key, file and all; as few matches of unlisted keys as that allows.
    BitsPerKey(f64),
    /// Unlisted keys get arbitrary answers: the smallest filter that is right for every listed key.
    Exact,
    /// Of the known negatives at most this share matches, of their weight if they have weights; unlisted keys do not
    /// matter. For [`Kind::Steered`], which is the default, and [`Kind::Chained`].
    ExcludedFpr(f64),
}

/// From the list of kinds: the enum, the names on the command line, what the planner must know, and how a kind is planned, as a
/// `leaf` or by a `recipe`. A kind that lacks one of these does not compile.
macro_rules! kinds {
    ($(#[$about:meta])* enum Kind for $request:ident {
        $($(#[$doc:meta])* $kind:ident $(($($part:ident: $type:ty),+))?: $traits:expr, $by:ident $plan:expr,
            $($name:literal = $value:expr),+;)*
    }) => {
        $(#[$about])*
        pub enum Kind {
            $($(#[$doc])* $kind $(($($type),+))?,)*
        }

        #[allow(unused_variables, reason = "not every row looks at the parts of its kind")]
        impl Kind {
            /// Every kind with its name.
            #[doc(hidden)]
            pub const ALL: &[(&'static str, Kind)] = &[$($(($name, $value)),+),*];

            pub(super) fn traits(self) -> Traits {
                match self { $(Kind::$kind $(($($part),+))? => $traits,)* }
            }

            /// The leaf of a request for this kind, if it is one.
            pub(super) fn leaf(self, $request: &Request) -> Option<Result<Structure, BuildError>> {
                match self { $(Kind::$kind $(($($part),+))? => kinds!(@leaf $by $plan),)* }
            }

            /// The plan of a request for this kind, if it is more than a leaf.
            pub(super) fn recipe(self, $request: &Request) -> Option<Result<Plan, BuildError>> {
                match self { $(Kind::$kind $(($($part),+))? => kinds!(@recipe $by $plan),)* }
            }
        }
    };
    (@leaf leaf $plan:expr) => { Some($plan) };
    (@leaf recipe $plan:expr) => { None };
    (@recipe leaf $plan:expr) => { None };
    (@recipe recipe $plan:expr) => { Some($plan) };
}

kinds! {
/// Which structure to use.
///
/// | kind | bits per key at 1/256 | good for |
/// |---|---|---|
/// | [`Ribbon`](Kind::Ribbon) | 8.06 | the smallest; the default |
/// | [`Fuse`](Kind::Fuse) | 9.05 | faster answers than a ribbon where the processor has no AVX-512 |
/// | [`Fuse4`](Kind::Fuse4) | 8.62 | between the two |
/// | [`Bloom`](Kind::Bloom) | 12.9 | the fastest to build and to query; one cache line; keys can be added |
/// | [`ClassicBloom`](Kind::ClassicBloom) | 11.5 | keys can be added |
/// | [`Cuckoo`](Kind::Cuckoo) | 11.6 | keys can be added and removed; 10.5 with [`Effort::Smallest`] |
/// | [`Quotient`](Kind::Quotient) | 10.7 | keys can be added, counted, merged and taken out again |
///
/// These know only the keys. With keys to exclude:
///
/// | kind | what it is | good for |
/// |---|---|---|
/// | [`Steered`](Kind::Steered) | a filter, columns that are steered against the excluded keys, one exact bit | the smallest; the default |
/// | [`Chained`](Kind::Chained) | a filter, then one exact bit | faster to build and to query, up to 10 % larger |
/// | [`Integrated`](Kind::Integrated) | the same in one word | members; on fuse with [`IntegratedVariant::One`](crate::IntegratedVariant::One) they are queried as in a plain filter |
/// | [`Cascade`](Kind::Cascade) | filters of each other's errors | Bloom filters all the way |
/// | [`Naive`](Kind::Naive) | one filter on both sides | few excluded keys |
///
/// With queries to expect, all of these and:
///
/// | kind | what it is | good for |
/// |---|---|---|
/// | [`Stacked`](Kind::Stacked) | filters of keys and frequent queries in turn | layers of Bloom, cuckoo or quotient filters |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
enum Kind for request {
    /// The planner chooses.
    #[default]
    Auto:
        Traits::keys(Always).growing(true).negatives(), recipe by_default(request),
        "auto" = Kind::Auto;

    /// Bumped ribbon; a standard ribbon for small sets.
    Ribbon:
        Traits::keys(NotFast), leaf plain::ribbon(request),
        "ribbon" = Kind::Ribbon;

    /// 3-wise binary fuse filter.
    Fuse:
        Traits::keys(Always), leaf plain::fuse3(request),
        "fuse" = Kind::Fuse;

    /// 4-wise binary fuse filter.
    Fuse4:
        Traits::keys(Always), leaf plain::fuse4(request),
        "fuse4" = Kind::Fuse4;

    /// Split-block Bloom filter.
    Bloom:
        Traits::keys(Always).growing(true), leaf plain::split_block(request),
        "bloom" = Kind::Bloom;

    /// The Bloom filter of 1970.
    ClassicBloom:
        Traits::keys(Always).growing(true), leaf plain::classic_bloom(request),
        "classic-bloom" = Kind::ClassicBloom;

    /// Cuckoo filter: see [`Cuckoo`](crate::Cuckoo). With [`Effort::Smallest`] its buckets are semi-sorted.
    Cuckoo:
        Traits::keys(Always).growing(true), leaf plain::cuckoo(request),
        "cuckoo" = Kind::Cuckoo;

    /// Quotient filter: see [`Quotient`](crate::Quotient).
    Quotient:
        Traits::keys(Always).growing(true), leaf plain::quotient(request),
        "quotient" = Kind::Quotient;

    /// A filter, columns whose free bits are chosen against the excluded keys, and one exact bit: see `Papers::steered_columns`.
    Steered:
        Traits::keys(NotFast).negatives(), recipe by_default(request),
        "steered" = Kind::Steered;

    /// A filter and one exact bit for what passes it: ChainedFilter's `&`, or two filters.
    Chained(base: Base):
        Traits::keys(Always).on(base).negatives(), recipe chained::plan(base, request),
        "chained" = Kind::Chained(Base::Ribbon),
        "chained-fuse" = Kind::Chained(Base::Fuse),
        "chained-fuse4" = Kind::Chained(Base::Fuse4);

    /// Filters in turn on keys and negatives, and one exact bit: ChainedFilter's `& ~`.
    Cascade(base: Base):
        Traits::keys(Always).on(base).negatives(), recipe cascade::steps(base, request).map(Plan::new),
        "cascade" = Kind::Cascade(Base::Ribbon),
        "cascade-fuse" = Kind::Cascade(Base::Fuse),
        "cascade-fuse4" = Kind::Cascade(Base::Fuse4),
        "cascade-bloom" = Kind::Cascade(Base::Bloom);

    /// A filter and its exact bit in the same words, on [`Base::Fuse`] or [`Base::Fuse4`].
    Integrated(base: Base, parts: IntegratedVariant):
        Traits::keys(Always).on(base).negatives(), recipe fpfs::integrated(base, parts, request).map(Plan::new),
        "integrated" = Kind::Integrated(Base::Fuse, IntegratedVariant::One),
        "integrated-two" = Kind::Integrated(Base::Fuse, IntegratedVariant::Two),
        "integrated-hybrid" = Kind::Integrated(Base::Fuse, IntegratedVariant::Hybrid),
        "integrated-general" = Kind::Integrated(Base::Fuse, IntegratedVariant::General);

    /// One filter that holds the excluded keys too, with the wrong fingerprint. Building it takes memory for all of them.
    Naive(base: Base):
        Traits::keys(Never).on(base).negatives(), recipe fpfs::naive(base, request).map(Plan::new),
        "naive" = Kind::Naive(Base::Ribbon),
        "naive-fuse" = Kind::Naive(Base::Fuse);

    /// Filters in turn on keys and on queries to expect, which then pass seldom: see [`FilterBuilder::workload`](crate::FilterBuilder::workload). On
    /// Bloom, cuckoo and quotient filters it takes keys after it was built: [`Stacked`](crate::Stacked).
    Stacked(base: Base):
        Traits::keys(Always).on(base).growing(base.alone().traits().more_keys), recipe plain(base.alone(), request),
        "stacked" = Kind::Stacked(Base::Ribbon),
        "stacked-fuse" = Kind::Stacked(Base::Fuse),
        "stacked-fuse4" = Kind::Stacked(Base::Fuse4),
        "stacked-bloom" = Kind::Stacked(Base::Bloom),
        "stacked-cuckoo" = Kind::Stacked(Base::Cuckoo),
        "stacked-quotient" = Kind::Stacked(Base::Quotient);
}
}

/// What the planner must know of a kind.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    /// Whether it makes use of negatives.
    pub(super) negatives: bool,
    /// Whether it takes keys after it was built, or is not named yet.
    pub(super) more_keys: bool,
    /// When the planner may choose it.
    pub(super) chosen: Chosen,
    /// What it is made of, where that is a choice.
    pub(super) base: Option<Base>,
}

/// When the planner may choose a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    Always,
    /// Unless it must be built fast.
    NotFast,
    /// Other kinds have its size and are queried faster, or take less memory.
    Never,
}

impl Traits {
    /// A kind that knows keys alone, and is built once.
    fn keys(chosen: Chosen) -> Traits {
        Traits { negatives: false, more_keys: false, chosen, base: None }
    }

    fn negatives(self) -> Traits {
        Traits { negatives: true, ..self }
    }

    fn growing(self, more_keys: bool) -> Traits {
        Traits { more_keys, ..self }
    }

    fn on(self, base: Base) -> Traits {
        let slow = base == Base::Ribbon && self.chosen == Chosen::Always;
        Traits { base: Some(base), chosen: if slow { Chosen::NotFast } else { self.chosen }, ..self }
    }
}

impl Kind {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, known)| *known == self).map_or("custom", |(name, _)| name)
    }

    /// Whether it makes use of excluded keys.
    pub(crate) fn excludes(self) -> bool {
        self.traits().negatives
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Kind, NameError> {
        let found = Kind::ALL.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind);
        found.ok_or_else(|| NameError(Kind::ALL.iter().map(|&(name, _)| name).collect()))
    }
}

named!(Effort: "fast" => Fast, "balanced" => Balanced, "smallest" => Smallest);
named!(Layout: "auto" => Auto, "compact" => Compact, "local" => Local);

/// Structure of the layers of a kind that has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Base {
    /// Bumped ribbon: the smallest.
    #[default]
    Ribbon,
    /// 3-wise binary fuse: the fastest.
    Fuse,
    /// 4-wise binary fuse.
    Fuse4,
    /// Classic Bloom filters; for [`Kind::Stacked`], and with an exact bit on a ribbon for [`Kind::Cascade`].
    Bloom,
    /// Cuckoo filters; for [`Kind::Stacked`].
    Cuckoo,
    /// Quotient filters; for [`Kind::Stacked`].
    Quotient,
}

/// Effort to find a smaller filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// The fastest to build and to query: a fuse filter where the choice is free; for [`Kind::Steered`], a search of 64 states.
    Fast,
    /// A ribbon with bands of 64 bits; against excluded keys, a search of 512 states.
    #[default]
    Balanced,
    /// A ribbon with bands of 128 bits: a few tenths of a percent smaller, twice as slow to build. Against excluded keys, a
    /// search of 2048 states.
    Smallest,
}

/// Order of the bits of an exact filter.
///
/// ```
/// use tamis::Layout;
/// let build = || tamis::build(0..1000u64).exclude(1000..9000).exact();
/// let filter = build().layout(Layout::Local).finish()?;
/// assert!((0..9000).all(|key| filter.contains(key) == Ok(key < 1000)));
/// assert_eq!(filter.layers().count(), 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Layout {
    /// The planner chooses: local for exact sets of 100,000 keys and more where it costs next to nothing, else compact.
    #[default]
    Auto,
    /// One structure after the other: the smallest.
    Compact,
    /// All bits of a key side by side, in one or two cache lines: the fastest for members, and a few percent larger. For
    /// excluded keys and [`Kind::Steered`]. It changes nothing without excluded keys, and for an exact set with far fewer of
    /// them than keys, which is stored by the excluded ones.
    Local,
}
