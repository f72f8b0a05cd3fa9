//! why something could not be built -> numbers and names, and one line that says them.

#[cfg(feature = "build")]
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::{fmt, io};

use crate::hash::KeyType;

/// From a table of variants and their sentences: the enum, and its `Display`. A sentence prints fields by their names.
///
/// No caller has a reason to match the variants after `hidden`. Their sentence is what they are for, and they may change.
macro_rules! sentences {
    ($(#[$about:meta])* enum $name:ident { $(
        $(#[doc = $doc:literal])+
        $variant:ident $({ $($field:ident: $type:ty),+ })? $(($inner:ident: $of:ty))? => $sentence:literal $(, $part:expr)*;
    )* $(hidden: $(
        $(#[doc = $hidden_doc:literal])+
        $hidden:ident $({ $($hidden_field:ident: $hidden_type:ty),+ })? $(($hidden_inner:ident: $hidden_of:ty))? =>
            $hidden_sentence:literal $(, $hidden_part:expr)*;
    )*)? }) => {
        $(#[$about])*
        #[derive(Debug)]
        #[non_exhaustive]
        #[allow(missing_docs)] // of fields: the sentences say what they are
        pub enum $name {
            $($(#[doc = $doc])+ $variant $({ $($field: $type),+ })? $(($of))?,)*
            $($($(#[doc = $hidden_doc])+ #[doc(hidden)] $hidden $({ $($hidden_field: $hidden_type),+ })? $(($hidden_of))?,)*)?
        }

        impl fmt::Display for $name {
            #[allow(unused_variables)] // some fields choose the sentence
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($name::$variant $({ $($field),+ })? $(($inner))? => write!(f, $sentence $(, $part)*),)*
                    $($($name::$hidden $({ $($hidden_field),+ })? $(($hidden_inner))? =>
                        write!(f, $hidden_sentence $(, $hidden_part)*),)*)?
                }
            }
        }
    };
}

sentences! {
/// Why a filter, a map, a sequence or a set index could not be built.
enum BuildError {
    /// Keys that are members and excluded: how many, and the first few as (position among the keys, position among the excluded), from 0.
    Conflict { count: u64, first: Vec<(u64, u64)> } =>
        "{count} {} both wanted and excluded{}; if they differ, their digests were made equal, which a secret key prevents",
        if *count == 1 { "key is" } else { "keys are" }, places(first, "key", "= negative");
    /// Keys of a map that come with two values: how many, and the first few as the positions of two of their pairs, from 0.
    TwoValues { count: u64, first: Vec<(u64, u64)> } => "{count} {} two values{}",
        if *count == 1 { "key has" } else { "keys have" }, places(first, "pairs", "and");
    /// An exact filter, or one that may match a share of the excluded keys, without any excluded key: it would match every key.
    NothingExcluded =>
        "exact: no key is excluded, so every key would match; expected excluded keys, or a rate or bits per key as the goal";
    /// Two goals where one is possible; both are names of methods.
    TwoGoals { first: &'static str, second: &'static str } => "{first}, {second}: two goals; expected one";
    /// An option that the other options leave without effect; `option` is the name of its method.
    NoEffect { option: &'static str, needs: &'static str } => "{option}: no effect; expected {needs}";
    /// The keys are of two key types.
    MixedKeyTypes => "some keys are integers and some are bytes; a filter holds one kind";
    /// The keys need more memory than this, and the crate was compiled without temporary files.
    MemoryLimit { bytes: u64 } =>
        "the keys need more than {bytes} bytes of memory; raise the memory limit, or enable the feature `spill`";
    /// The temporary files would grow past the limit of the caller, in bytes.
    DiskLimit { limit: u64 } => "temporary files would exceed the disk limit of {limit} bytes";
    /// The flag that the caller gave to [`cancel`](crate::FilterBuilder::cancel) became true.
    Cancelled => "cancelled";
    /// Reading keys back or writing temporary files failed; `path` is the folder of temporary files, where it is known.
    Io { path: Option<PathBuf>, error: io::Error } => "{}{error}",
        path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
    /// An option of a builder outside its range; `option` is the name of its method.
    Range { option: &'static str, given: f64, least: f64, most: f64 } =>
        "{option} {}: out of range; expected {} to {most}", short(*given), short(*least);
    /// Fewer bits per key than the smallest file takes.
    Budget { keys: u64, given: f64, needed: f64 } =>
        "{given} bits per key are too few for {keys} keys; the smallest that works is {needed:.2}";
    /// More unlisted keys would match than may.
    UnlistedFpr { fpr: f64, most: f64 } => "unlisted keys would match at a rate of {fpr:.3e} at least, above {most}";
    /// A weight of an expected query that is negative, not finite, below 2^-20 or above 2^43.
    Weight { weight: f64 } => "a weight of {}",
        match *weight {
            weight if !weight.is_finite() || weight < 0.0 => format!("{} makes no sense, expected a number from 0 to 2^43", short(weight)),
            weight if weight > 1.0 => format!("{} is more than 2^43; scale the weights down", short(weight)),
            weight => format!("{} is less than 2^-20; scale the weights up", short(weight)),
        };
    /// More keys than a file, or a group of labels, holds.
    TooManyKeys { keys: u64, place: &'static str } => "{keys} keys are more than a {place} holds";
    /// There is no memory for a table.
    NoMemory { bytes: u64 } => "no memory for a table of {bytes} bytes";
    /// A value of a map, or the name or number of a set, that cannot be taken.
    Value(error: ValueError) => "{error}";
    hidden:
    /// No seed gave a solvable system. Distinct digests make this practically impossible; equal ones make it certain.
    Unsolvable { structure: &'static str, keys: usize, attempts: u32 } =>
        "{structure}: no solution for {keys} keys after {attempts} seeds; are two of them equal?";
    /// A false positive rate below the lowest of the structure.
    Rate { kind: &'static str, wanted: f64, lowest: f64 } => "{} bits{}; the lowest is {lowest:e}",
        match *kind {
            "cuckoo" => format!("cuckoo filter: a rate of {wanted} needs fingerprints of more than 32"),
            _ => format!("a rate of {wanted} needs more than 32"),
        },
        if *kind == "cuckoo" { "" } else { " per key" };
    /// A false positive rate that takes more bits per key than the structure can have.
    BitsPerKey { structure: &'static str, needed: f64 } =>
        "{structure}: a rate this low needs {needed:.0} bits per key, at most 2^24 are possible";
    /// A kind of structure that lacks what the other options call for.
    Unfit { kind: &'static str, lacks: Lack } => "{}", lacks.sentence(kind);
    /// No structure of these bits per key keeps the false positive rate.
    UnlistedBudget { given: f64, fpr: f64, needed: f64 } =>
        "no structure of {given} bits per key keeps the rate of unlisted keys at {fpr}, which takes {needed:.2} at least";
    /// More expected queries would match than may.
    Workload { rate: f64, goal: f64 } => "expected queries would pass at a rate of {rate:.2e}, above {goal}";
    /// A limit for unlisted keys, no expected query, and a goal that is not a rate; `goal` is the name of its method.
    NothingExpected { goal: &'static str } =>
        "{} says nothing of unknown keys, and no query is expected: a rate is what they need",
        if *goal == "bits_per_key" { "a budget of bits" } else { "an exact set" };
    /// An expected query that comes after excluded keys were let go.
    WorkloadLate => "expected queries must be announced with `with_workload`, or come before the excluded keys";
    /// Conflicts shall drop keys while queries are expected: the plan is made before it is known which.
    WorkloadDrop =>
        "keys that are excluded cannot be dropped while queries are expected: keep them, or leave them out";
    /// The weights of the expected queries have a sum of 2^44 or more.
    Weights => "the counts of the expected queries add up to more than 2^44; scale them down";
    /// The expected queries are not a workload.
    Shape(error: ShapeError) => "{error}";
    /// The plan failed for the keys and the extra capacity together.
    Capacity { cause: Box<BuildError> } => "counted with the keys to come: {cause}";
    /// The plan failed for a kind that was named; these other kinds reach the goal.
    Instead { cause: Box<BuildError>, kinds: Vec<&'static str> } => "{cause}; {}{}",
        if kinds.is_empty() { "no other structure could" } else { "these could: " }, kinds.join(", ");
    /// The plan of a partition failed: of the bits per key, the table of partition names takes so many.
    Labels { cause: Box<BuildError>, given: f64, labels: f64 } =>
        "{cause}; of {given} bits per key the table of labels takes {labels:.2}";
    /// More labels, sets, segments, set lists or compressed values than are possible.
    TooMany { what: &'static str, most: u64 } => "{}", match *what {
        "labels" => "more labels than 2^32 - 1".to_string(),
        "segments" => format!("more than {most} segments; build anew"),
        "set lists" => format!("more than {most} different lists of sets"),
        "compressed values" => format!("more than {most} different values are not compressed; use ribbon or fuse"),
        what => format!("more than {most} {what}"),
    };
    /// No size of a structure reaches the rate.
    NoSize { structure: &'static str, keys: u64, rate: f64 } =>
        "{structure}: no size gives a rate of {rate} with {keys} keys{}",
        if *structure == "quotient filter" { "; remainders have 32 bits at most" } else { "" };
    /// No size of a broom filter reaches the rate.
    BroomSize { keys: u64, rate: f64, remainder: u32, most: u64 } =>
        "broom filter: no size for a rate of {rate} with {keys} keys, expected at least 2^-{remainder} and at most {most} keys";
    /// Bits per key that are not a size of the structure.
    NotASize { structure: &'static str, keys: u64, bits: f64 } => "{structure}: {bits} bits for each of {keys} keys is not a size";
    /// A number of parts that a structure cannot have.
    Size { structure: &'static str, what: &'static str, given: u64, least: u64, most: u64 } => "{structure}: {}", match (*what, *least) {
        ("slots", _) => format!("slots of {given} bits, {least}..={most} are possible"),
        (what, 0) => format!("{given} {what}, at most {most}"),
        (what, _) => format!("{given} {what}, {least} to {most} are possible"),
    };
    /// A table without parts for its keys.
    Empty { structure: &'static str, what: &'static str, keys: usize } => "{structure}: no {what} for {keys} keys";
    /// Values, or a first stage, of a width that the structure cannot have.
    Width { structure: &'static str, given: f64, most: u32 } => "{} {given}", match *structure {
        "binary fuse" => format!("a binary fuse has 1 to {most} bits per value, not"),
        "ribbon" => format!("a ribbon holds values of 1 to {most} bits, not of"),
        structure => format!("the first stage of an {structure} filter has 1 to {most} bits, not"),
    };
    /// Values that are not as many as the keys.
    Values { given: usize, keys: usize } => "{given} values for {keys} keys";
    /// Given values of a width that is not a whole number of bits.
    PartOfABit => "given values need a whole number of bits";
    /// Bits and hash functions that a classic Bloom filter cannot have.
    ClassicSize { bits: u64, hashes: u8, most_bits: u64, most_hashes: u32 } =>
        "classic Bloom filter: {bits} bits and {hashes} hash functions, at most {most_bits} and 1 to {most_hashes} are possible";
    /// Slots and remainders that a quotient filter cannot have.
    QuotientSize { slots: u64, remainder: u32 } => "quotient filter: {slots} slots of {remainder} bits are too many";
    /// A quotient filter whose remainders have no bit left to double it.
    CannotGrow { keys: u64 } => "the filter of {keys} keys cannot grow: no bits are left in its remainders";
    /// Parameters that no steered column, or local filter, has.
    Parameters { structure: &'static str, keys: usize, given: String } => "{keys} keys with {given} are no {structure}";
    /// An adaptive filter with more fingerprints than its tables can tell apart.
    Fingerprints { structure: &'static str, keys: u64, rate: f64, bits: u32 } =>
        "{structure}: {keys} keys at a rate of {rate} have more than 2^{bits} fingerprints";

    /// A frozen index has no such option; `option` is the name of its method.
    Frozen { option: &'static str } => "a frozen index has no {}", match *option {
        "bits_per_pair" => "budget: it takes what its lists need",
        "capacity" => "capacity",
        option => option,
    };
    /// A census of sets that contradicts itself: keys of `multiplicity` sets are listed after keys of `last`.
    Census { sets: u32, multiplicity: u32, last: u32 } =>
        "a census of {sets} sets lists keys of {multiplicity} sets after keys of {last}; they ascend from 1 to {sets}";
    /// A target of a sketch that is not a positive number.
    NotPositive { target: &'static str, given: f64 } => "{target} must be a positive number, not {given}";
    /// A target of a sketch above the number of sets.
    MoreThanSets { target: &'static str, given: f64, sets: u32 } =>
        "{target}: {given} were allowed, and there are {sets} sets in all";
    /// No table of at most 2^48 bits has so few false sets.
    FalseSets { false_sets: f64, member_false_sets: f64 } =>
        "no table of at most 2^48 bits has {false_sets} false sets for unlisted keys and {member_false_sets} for members";
    /// No table fits into so many bits per pair.
    BitsPerPair { given: f64 } => "no table fits into {given} bits per pair";
    /// A number of partitions that does not go with the number of repetitions.
    Partitions { structure: &'static str, partitions: u32, repetitions: u32, least: u32, most: u32 } =>
        "{structure}: {partitions} partitions with {repetitions} repetitions, {least}..={most} are possible";
    /// More partitions than go with the number of sets.
    SetPartitions { partitions: u32, sets: u32, most: u32 } =>
        "{partitions} partitions of {sets} sets, at most {most} are possible";
    /// Two indexes that cannot be merged.
    CannotMerge { difference: Difference } => "the indexes cannot be merged: {difference}";
    /// Pairs that cannot be added to an index.
    CannotAdd { difference: Difference } => "the pairs cannot be added: {difference}";
}
}

sentences! {
/// Why weights are not a law.
#[derive(Clone, Copy, PartialEq)]
enum ShapeError {
    /// A weight that is negative, infinite or not a number.
    Weight { found: f64 } => "the weight of a query is {found}; it must be a number from 0 on";
    /// A share of unseen queries, or an exponent, that is out of range.
    Parameter { what: &'static str, found: f64, allowed: &'static str } => "{what} is {found}; it must be {allowed}";
    /// More values than 64 bits count.
    TooMany => "more than 2^64 known values";
}
}

sentences! {
/// Why a value of a map, or a set of an index, is refused.
enum ValueError {

    hidden:
    /// A number that needs more bits than declared.
    Width { number: u64, bits: u32 } => "the value {number} does not fit in {bits} bits";
    /// A value, as it is shown, that is not a number where numbers are declared.
    NotANumber { value: String, bits: u32 } => "the value {value} is not a number of {bits} bits";
    /// A value, as it is shown, that is not in the alphabet.
    Undeclared { value: String, declared: usize } => "the value {value} is not one of the {declared} that were declared";
    /// Numbers and bytes in one map.
    Mixed => "some values are numbers and some are bytes; a map holds one kind";
    /// More different values than a table of them holds.
    TooMany { most: u64 } => "more than {most} different values that are no numbers";
    /// A set without a name.
    NoName => "the name of a set is empty, expected a letter at least";
    /// A name of a set that is too long.
    LongName { bytes: usize, most: usize } => "the name of a set has {bytes} bytes, expected at most {most}";
    /// A name of a set with a character that separates names.
    Separator { name: String } =>
        "the name of the set {name:?} has a comma, a tab or the end of a line, expected none of them";
    /// A name that no set has.
    NoSet { name: String } => "no set is named {name:?}";
    /// A number that no set has.
    NoSetNumber { set: u32 } => "there is no set {set}";
    /// A number that no set of a builder has.
    NotFromSet { set: u32, sets: usize } => "set {set} of {sets}: numbers come from `set`";
}
}

sentences! {
/// What two indexes, or an index and pairs, do not share.
enum Difference {
    /// Lengths of k-mers; 0 if keys are something else.
    Kmers { ours: u32, theirs: u32 } => "their keys are {} and {}", kmers(*ours), kmers(*theirs);
    /// Key types.
    KeyTypes { ours: KeyType, theirs: KeyType } => "their keys are {ours} and {theirs}";
    /// Seeds.
    Seeds { ours: u64, theirs: u64 } => "their seeds are {ours} and {theirs}";
    /// Secrets.
    Secrets => "their secret keys differ";
    /// One has a secret and the other has none.
    OneSecret => "one is hashed with a secret key and the other is not";
    /// Nothing: a segment is in both, so its pairs would count twice.
    Common => "they have pairs in common: a segment of one is a segment of the other";
}
}

/// What a kind of structure lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lack {
    /// It cannot exclude keys.
    Negatives,
    /// It makes false positives rare, and cannot rule them out for excluded keys.
    Exclusion,
    /// It is not exact without excluded keys.
    Exactness,
    /// None of its layers is exact.
    ExactLayer,
    /// It cannot store an exact bit.
    ExactBit,
    /// It cannot match a chosen share of the excluded keys.
    Share,
    /// Keys cannot be inserted after it was built.
    MoreKeys,
    /// Keys cannot be inserted, so a stack of it cannot learn.
    Learning,
    /// It has no local layout.
    LocalLayout,
    /// The local layout keeps no budget.
    LocalBudget,
    /// It is not made of fuse tables.
    FuseTable,
}

impl Lack {
    fn sentence(self, kind: &str) -> String {
        let sentence = match self {
            Lack::Negatives => {
                return format!(
                    "{kind} knows only its keys; to exclude others use steered, chained, cascade, integrated or naive"
                );
            }
            Lack::Exclusion => {
                "a stack makes false positives rare among the keys it knows, and excluded keys must never match: use steered, chained, cascade, integrated or naive"
            }
            Lack::Exactness => "an exact filter needs the keys that are not in the set",
            Lack::ExactLayer => "no layer of a stack is exact: use steered, chained, cascade, integrated or naive",
            Lack::ExactBit => "Bloom, cuckoo and quotient filters cannot hold an exact bit",
            Lack::Share => "a share of the excluded keys may match only where columns are steered: use steered",
            Lack::MoreKeys => {
                "room for more keys is for structures that take them: use bloom, classic-bloom, cuckoo, quotient, stacked-bloom, stacked-cuckoo or stacked-quotient"
            }
            Lack::Learning => {
                "a stack that learns is made of Bloom, cuckoo or quotient filters: others take no keys later"
            }
            Lack::LocalLayout => "the local layout is one of steered columns; leave out the kind, or the layout",
            Lack::LocalBudget => "the local layout keeps no budget of bits: ask for a rate, or for an exact set",
            Lack::FuseTable => "integrated filters are made of fuse tables: use fuse or fuse4",
        };
        sentence.into()
    }
}

/// Pairs of positions, as the end of a sentence.
fn places(first: &[(u64, u64)], lead: &str, between: &str) -> String {
    let mut places = String::new();
    for (i, (one, other)) in first.iter().enumerate() {
        places += &format!("{} {lead} {one} {between} {other}", if i == 0 { ":" } else { "," });
    }
    places
}

/// A number without hundreds of digits.
fn short(number: f64) -> String {
    if number != 0.0 && !(1e-6..1e15).contains(&number.abs()) { format!("{number:e}") } else { number.to_string() }
}

fn kmers(length: u32) -> String {
    if length == 0 { "no k-mers".to_string() } else { format!("{length}-mers") }
}

#[cfg(feature = "build")]
impl BuildError {
    /// Refuses a number of parts that a structure cannot have.
    pub(crate) fn check_size(
        structure: &'static str,
        what: &'static str,
        given: u64,
        possible: RangeInclusive<u64>,
    ) -> Result<(), BuildError> {
        let (least, most) = possible.into_inner();
        match (least..=most).contains(&given) {
            true => Ok(()),
            false => Err(BuildError::Size { structure, what, given, least, most }),
        }
    }
}

impl std::error::Error for ShapeError {}
impl std::error::Error for ValueError {}
impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // It speaks for its cause already.
        if let BuildError::Io { error, .. } = self { error.source() } else { None }
    }
}

#[cfg(test)]
mod tests;
