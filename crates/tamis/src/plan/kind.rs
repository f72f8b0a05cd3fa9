//! a caller's wishes -> names for them: goals, kinds of structures, efforts, layouts.

use crate::leaves::integrated::Parts;

/// What a filter shall reach for strangers: keys that nobody listed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Goal {
    /// At most this share of them is let through; the filter is as small as that allows.
    Rate(f64),
    /// At most this many bits per key, file and all; as few strangers as that allows.
    BitsPerKey(f64),
    /// Strangers will not be asked for, or do not matter: the smallest filter that is right about every listed key.
    Exact,
    /// Of the listed negatives at most this share is let through, of their weight if they have weights; strangers do not
    /// matter. For [`Kind::Steered`], which is the default.
    Share(f64),
}

/// From the list of kinds: the enum, and every kind with its name on the command line. A kind without a name does not compile.
macro_rules! kinds {
    ($(#[$about:meta])* enum Kind { $($(#[$doc:meta])* $kind:ident $(($($part:ty),+))?: $($name:literal = $value:expr),+;)* }) => {
        $(#[$about])*
        pub enum Kind {
            $($(#[$doc])* $kind $(($($part),+))?,)*
        }

        impl Kind {
            /// Every kind with its name on the command line.
            pub const ALL: &[(&'static str, Kind)] = &[$($(($name, $value)),+),*];
        }
    };
}

kinds! {
/// Which structure to use.
///
/// | kind | bits per key at 1/256 | good for |
/// |---|---|---|
/// | [`Ribbon`](Kind::Ribbon) | 8.03 | the smallest; the default |
/// | [`Fuse`](Kind::Fuse) | 9.05 | the fastest answers of the static ones |
/// | [`Fuse4`](Kind::Fuse4) | 8.62 | between the two |
/// | [`Bloom`](Kind::Bloom) | 12.9 | the fastest to build and to ask; one cache line; keys can be added |
/// | [`ClassicBloom`](Kind::ClassicBloom) | 11.5 | keys can be added |
/// | [`Cuckoo`](Kind::Cuckoo) | 11.6 | keys can be added and removed; 10.5 with [`Effort::Smallest`] |
/// | [`Quotient`](Kind::Quotient) | 10.7 | keys can be added, counted, merged and taken out again |
///
/// These know only the keys. With keys to exclude:
///
/// | kind | what it is | good for |
/// |---|---|---|
/// | [`Steered`](Kind::Steered) | a filter, columns that are steered against the excluded keys, one exact bit | the smallest; the default |
/// | [`Chained`](Kind::Chained) | a filter, then one exact bit | faster to build and to ask, up to 10 % larger |
/// | [`Integrated`](Kind::Integrated) | the same in one word | members; on fuse with [`Parts::One`](crate::Parts::One) they are asked for as in a plain filter |
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
enum Kind {
    /// The planner chooses.
    #[default]
    Auto: "auto" = Kind::Auto;

    /// Bumped ribbon; a standard ribbon for small sets.
    Ribbon: "ribbon" = Kind::Ribbon;

    /// 3-wise binary fuse filter.
    Fuse: "fuse" = Kind::Fuse;

    /// 4-wise binary fuse filter.
    Fuse4: "fuse4" = Kind::Fuse4;

    /// Split-block Bloom filter.
    Bloom: "bloom" = Kind::Bloom;

    /// The Bloom filter of 1970.
    ClassicBloom: "classic-bloom" = Kind::ClassicBloom;

    /// Cuckoo filter: see [`Cuckoo`](crate::Cuckoo). With [`Effort::Smallest`] its buckets are semi-sorted.
    Cuckoo: "cuckoo" = Kind::Cuckoo;

    /// Quotient filter: see [`Quotient`](crate::Quotient).
    Quotient: "quotient" = Kind::Quotient;

    /// A filter, columns whose free bits are chosen against the excluded keys, and one exact bit: see [`Build::columns`](crate::Build::columns).
    Steered: "steered" = Kind::Steered;

    /// A filter and one exact bit for what passes it: ChainedFilter's `&`, or two filters.
    Chained(Base):
        "chained" = Kind::Chained(Base::Ribbon),
        "chained-fuse" = Kind::Chained(Base::Fuse),
        "chained-fuse4" = Kind::Chained(Base::Fuse4);

    /// Filters in turn on keys and negatives, and one exact bit: ChainedFilter's `& ~`.
    Cascade(Base):
        "cascade" = Kind::Cascade(Base::Ribbon),
        "cascade-fuse" = Kind::Cascade(Base::Fuse),
        "cascade-fuse4" = Kind::Cascade(Base::Fuse4),
        "cascade-bloom" = Kind::Cascade(Base::Bloom);

    /// A filter and its exact bit in the same words, on [`Base::Fuse`] or [`Base::Fuse4`].
    Integrated(Base, Parts):
        "integrated" = Kind::Integrated(Base::Fuse, Parts::One),
        "integrated-two" = Kind::Integrated(Base::Fuse, Parts::Two),
        "integrated-hybrid" = Kind::Integrated(Base::Fuse, Parts::Hybrid),
        "integrated-general" = Kind::Integrated(Base::Fuse, Parts::General);

    /// One filter that holds the excluded keys too, with the wrong fingerprint. Building it takes memory for all of them.
    Naive(Base):
        "naive" = Kind::Naive(Base::Ribbon),
        "naive-fuse" = Kind::Naive(Base::Fuse);

    /// Filters in turn on keys and on queries to expect, which then pass seldom: see [`Build::expect`](crate::Build::expect). On
    /// Bloom, cuckoo and quotient filters it takes keys after it was built: [`Stacked`](crate::Stacked).
    Stacked(Base):
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
    /// Other kinds have its size and are asked faster, or take less memory.
    Never,
}

impl Kind {
    pub(super) fn traits(self) -> Traits {
        use Chosen::{Always, Never, NotFast};
        let on = |base: Base, chosen: Chosen| if base == Base::Ribbon && chosen == Always { NotFast } else { chosen };
        let (negatives, more_keys, chosen, base) = match self {
            Kind::Auto => (true, true, Always, None),
            Kind::Ribbon => (false, false, NotFast, None),
            Kind::Fuse | Kind::Fuse4 => (false, false, Always, None),
            Kind::Bloom | Kind::ClassicBloom | Kind::Cuckoo | Kind::Quotient => (false, true, Always, None),
            Kind::Steered => (true, false, NotFast, None),
            Kind::Chained(base) | Kind::Cascade(base) | Kind::Integrated(base, _) => {
                (true, false, on(base, Always), Some(base))
            }
            Kind::Naive(base) => (true, false, Never, Some(base)),
            Kind::Stacked(base) => {
                let changes = matches!(base, Base::Bloom | Base::Cuckoo | Base::Quotient);
                (false, changes, on(base, Always), Some(base))
            }
        };
        Traits { negatives, more_keys, chosen, base }
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, known)| *known == self).map_or("custom", |(name, _)| name)
    }
}

/// The elementary structure under a construction of several.
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

/// How hard to look for a smaller filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// The quickest to build and to ask: a fuse filter where the choice is free.
    Fast,
    /// A ribbon with bands of 64 bits; against excluded keys, a search of 64 states.
    #[default]
    Balanced,
    /// A ribbon with bands of 128 bits: a few tenths of a percent smaller, twice as slow to build. Against excluded keys, a
    /// search of 512 states.
    Smallest,
}

/// How the bits of an exact set are laid out.
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
