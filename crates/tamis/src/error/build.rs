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
///
/// The sentence of each starts with the method or the value at fault: `fpr 2: out of range; expected 0 to 1`.
enum BuildError {
    /// Keys that are members and excluded: how many, and the first few as (position among the keys, position among the excluded), from 0.
    Conflict { count: u64, first: Vec<(u64, u64)> } =>
        "exclude: {count} {} also {}{}; expected none; use on_conflict, or secret if the keys differ",
        if *count == 1 { "key is" } else { "keys are" }, if *count == 1 { "a member" } else { "members" },
        positions(first, |member, excluded| format!("key {member} = excluded key {excluded}"));
    /// Keys of a map that come with two values: how many, and the first few as the positions of two of their pairs, from 0.
    TwoValues { count: u64, first: Vec<(u64, u64)> } => "pairs: {count} {} two values{}; expected one value for each key",
        if *count == 1 { "key has" } else { "keys have" }, positions(first, |one, other| format!("pairs {one} and {other}"));
    /// An exact filter, or one that may match a share of the excluded keys, without any excluded key: it would match every key.
    NothingExcluded =>
        "exclude: no excluded key is left, so every key would match; expected at least one that is not a member, or fpr or bits_per_key as the goal";
    /// A learned filter without members, or without excluded keys: a model tells the ones from the others.
    NothingToLearn => "learn: members alone or excluded keys alone; expected both";
    /// Two goals where one is possible; both are names of methods.
    TwoGoals { first: &'static str, second: &'static str } => "{first}, {second}: two goals; expected one";
    /// An option that the other options leave without effect; `option` is the name of its method.
    NoEffect { option: &'static str, needs: &'static str } => "{option}: no effect; expected {needs}";
    /// The keys are of two key types.
    MixedKeyTypes => "keys: of two key types; expected one key type";
    /// The keys need more memory than this, and the crate was compiled without temporary files.
    MemoryLimit { bytes: u64 } =>
        "memory {bytes}: too small for the keys; expected a higher limit; use the feature `spill` for temporary files";
    /// The temporary files would grow past the limit of the caller, in bytes.
    DiskLimit { limit: u64 } => "disk {limit}: too small for the temporary files; expected a higher limit of disk or memory";
    /// The flag that the caller gave to [`cancel`](crate::FilterBuilder::cancel) became true.
    Cancelled => "cancelled";
    /// Reading keys back or writing temporary files failed; `path` is the folder of temporary files, where it is known.
    Io { path: Option<PathBuf>, error: io::Error } => "{}{error}",
        path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
    /// An option of a builder outside its range; `option` is the name of its method.
    Range { option: &'static str, given: f64, least: f64, most: f64 } =>
        "{option} {}: out of range; expected {} to {}{}", short(*given), short(*least), short(*most),
        // A bound that is out of range itself.
        if given == least || given == most { format!(", but not {}", short(*given)) } else { String::new() };
    /// Fewer bits per key than the smallest file takes.
    Budget { keys: u64, given: f64, needed: f64 } =>
        "bits_per_key {}: too small for {keys} key{}; expected at least {:.2}", short(*given),
        if *keys == 1 { "" } else { "s" }, up(*needed);
    /// More unlisted keys would match than may.
    UnlistedFpr { fpr: f64, most: f64 } =>
        "fpr {}: not possible with the other options; expected at least {:.3e}", short(*most), 1.0005 * fpr;
    /// A weight of an expected query that is negative, not finite, below 2^-20 or above 2^43.
    Weight { weight: f64 } => "weight {}: {}", short(*weight),
        match *weight {
            weight if !weight.is_finite() || weight < 0.0 => "out of range; expected 0 to 2^43",
            weight if weight > 1.0 => "too large; expected at most 2^43; scale the weights down",
            _ => "too small; expected 0, or at least 2^-20; scale the weights up",
        };
    /// More keys than a file, or a group of partitions, holds.
    TooManyKeys { keys: u64, place: &'static str } => "keys: {keys} are more than a {place} holds; expected fewer";
    /// A filter that patches cannot be made of.
    Patch { reason: &'static str } => "diff: {reason}";
    /// Ranges, surveys, plans or slices that do not belong together, or keys that are not those of a plan.
    Slices { subject: &'static str, reason: String } => "{subject}: {reason}";
    /// So many more excluded keys pass the first layer than a plan of slices has it that they were chosen for that.
    PlanAgain { passed: u64 } =>
        "join: {passed} excluded keys pass the first layer, more than by chance; expected fewer; use refine and build the slices again";
    /// There is no memory for a table.
    NoMemory { bytes: u64 } => "table: {bytes} bytes cannot be allocated; expected fewer keys or more memory";
    /// A value of a map, or the name or number of a set, that is not possible.
    Value(error: ValueError) => "{error}";
    hidden:
    /// No seed gave a solvable system. Distinct digests make this practically impossible; equal ones make it certain.
    Unsolvable { structure: &'static str, keys: usize, attempts: u32 } =>
        "{structure}: no solution for {keys} keys after {attempts} seeds; expected distinct digests";
    /// A false positive rate below the lowest of the structure.
    Rate { kind: &'static str, fpr: f64, lowest: f64 } =>
        "fpr {}: too small for kind {kind}; expected at least {lowest:e}", short(*fpr);
    /// A false positive rate that takes more bits per key than the structure can have.
    BitsPerKey { structure: &'static str, needed: f64 } =>
        "fpr: too small for a {structure}, which would take {} bits per key; expected at most 2^24", short(needed.round());
    /// A kind of structure that lacks what the other options call for.
    Unfit { kind: &'static str, lacks: Lack } => "{}", lacks.sentence(kind);
    /// No structure of these bits per key keeps the false positive rate.
    UnlistedBudget { given: f64, fpr: f64, needed: f64 } =>
        "fpr {}: not possible with bits_per_key {}; expected at least {:.2} bits per key", short(*fpr), short(*given), up(*needed);
    /// More expected queries would match than may.
    Workload { rate: f64, goal: f64 } =>
        "workload_fpr {}: not possible with the other options; expected at least {:.3e}", short(*goal), 1.0005 * rate;
    /// A limit for unlisted keys, no expected query, and a goal that is not a rate; `goal` is the name of its method.
    NothingExpected { goal: &'static str } =>
        "fpr, {goal}: two goals, because the workload is empty; expected one, or a workload with queries";
    /// An expected query that comes after excluded keys were sieved.
    WorkloadLate => "push_query: called after exclude; expected before; use with_workload on the builder";
    /// Conflicts drop members while queries are expected: the plan is made before it is known which.
    WorkloadDrop => "on_conflict drop: not possible with a workload; expected error or keep";
    /// The weights of the expected queries have a sum of 2^44 or more.
    Weights => "workload: the weights add up to 2^44 or more; expected less; scale the weights down";
    /// The expected queries are not a workload.
    Shape(error: ShapeError) => "{error}";
    /// The plan failed for the keys and the extra capacity together.
    Capacity { cause: Box<BuildError> } => "{cause}; keys up to the capacity count";
    /// The plan failed for a kind that was named; these other kinds reach the goal.
    Instead { cause: Box<BuildError>, kinds: Vec<&'static str> } => "{cause}{}{}",
        if kinds.is_empty() { "" } else { "; use kind " }, kinds.join(", ");
    /// The plan of a partition failed: of the bits per key, the table of partition names takes so many.
    PartitionTable { cause: Box<BuildError>, given: f64, table: f64 } =>
        "{cause}; the table of partitions takes {table:.2} of {} bits per key", short(*given);
    /// More partitions, sets, segments, set lists, compressed values or steered columns than are possible.
    TooMany { what: &'static str, most: u64 } => "{what}: too many; expected at most {most}{}", match *what {
        "segments" => "; build the index again",
        "compressed values" => "; use kind ribbon or fuse",
        _ => "",
    };
    /// No size of a structure reaches the rate.
    NoSize { structure: &'static str, keys: u64, rate: f64 } =>
        "fpr {}: too small for a {structure} of {keys} keys; expected a larger fpr or fewer keys", short(*rate);
    /// No size of a broom filter reaches the rate.
    BroomSize { keys: u64, rate: f64, remainder: u32, most: u64 } =>
        "fpr {}: not possible for a broom filter of {keys} keys; expected at least 2^-{remainder} and at most {most} keys", short(*rate);
    /// Bits per key that are not a size of the structure.
    NotASize { structure: &'static str, keys: u64, bits: f64 } =>
        "bits_per_key {}: not a size of a {structure} of {keys} keys; expected more than 0, and fewer keys if it is", short(*bits);
    /// A number of parts that a structure cannot have.
    Size { structure: &'static str, what: &'static str, given: u64, least: u64, most: u64 } => "{structure}: {}; expected {}",
        if *what == "slots" { format!("slots of {given} bits") } else { format!("{given} {what}") },
        if *least == 0 { format!("at most {most}") } else { format!("{least} to {most}") };
    /// A table without parts for its keys.
    Empty { structure: &'static str, what: &'static str, keys: usize } => "{structure}: no {what} for {keys} keys; expected some";
    /// Values, or a first stage, of a width that the structure cannot have.
    Width { structure: &'static str, given: f64, most: u32 } => "{} {}{}; expected 1 to {most}",
        if *structure == "integrated" { "first_bits".into() } else { format!("{structure}: values of") }, short(*given),
        if *structure == "integrated" { ": out of range" } else { " bits" };
    /// Values that are not as many as the keys.
    Values { given: usize, keys: usize } => "values: {given} for {keys} keys; expected as many";
    /// Given values of a width that is not a whole number of bits.
    PartOfABit => "values: the width is not a whole number of bits; expected one";
    /// Bits and hash functions that a classic Bloom filter cannot have.
    ClassicSize { bits: u64, hashes: u8, most_bits: u64, most_hashes: u32 } =>
        "classic Bloom filter: {bits} bits and {hashes} hash functions; expected at most {most_bits} and 1 to {most_hashes}";
    /// Slots and remainders that a quotient filter cannot have.
    QuotientSize { slots: u64, remainder: u32 } => "quotient filter: {slots} slots of {remainder} bits; expected fewer slots or bits";
    /// A quotient filter whose remainders have no bit left to double it.
    CannotGrow { keys: u64 } => "grow: the remainders of {keys} keys have 1 bit; expected at least 2; build a larger filter";
    /// Parameters that no steered column, or local filter, has.
    Parameters { structure: &'static str, keys: usize, given: String } => "{structure}: {given} is not possible for {keys} keys; expected less";
    /// An adaptive filter with more fingerprints than its tables can distinguish.
    Fingerprints { structure: &'static str, keys: u64, rate: f64, bits: u32 } =>
        "fpr {}: too small for a {structure} of {keys} keys, which would have more than 2^{bits} fingerprints; expected a larger fpr or fewer keys",
        short(*rate);

    /// A frozen index has no such option; `option` is the name of its method.
    Frozen { option: &'static str } => "{option}: not possible with kind frozen; expected bloom or cuckoo";
    /// Sizes of sets that contradict themselves: keys of `multiplicity` sets are listed after keys of `last`.
    Census { sets: u32, multiplicity: u32, last: u32 } =>
        "multiplicities: keys of {multiplicity} sets after keys of {last}; expected ascending numbers from 1 to {sets}";
    /// A target of a sketch that is not a positive number.
    NotPositive { target: &'static str, given: f64 } => "{target} {}: out of range; expected a number above 0", short(*given);
    /// A target of a sketch above the number of sets.
    MoreThanSets { target: &'static str, given: f64, sets: u32 } =>
        "{target} {}: out of range; expected at most {sets}, the number of sets", short(*given);
    /// No table of at most 2^48 bits has so few false sets.
    FalseSets { false_sets: f64, member_false_sets: f64 } =>
        "false_sets {}, member_false_sets {}: would take more than 2^48 bits; expected larger numbers",
        short(*false_sets), short(*member_false_sets);
    /// No table fits into so many bits per pair.
    BitsPerPair { given: f64 } => "bits_per_pair {}: too small for a table; expected more", short(*given);
    /// A number of partitions that does not go with the number of repetitions.
    Partitions { structure: &'static str, partitions: u32, repetitions: u32, least: u32, most: u32 } =>
        "{structure}: {partitions} partitions with {repetitions} repetitions; expected {least} to {most}";
    /// More partitions than go with the number of sets.
    SetPartitions { partitions: u32, sets: u32, most: u32 } =>
        "shape: {partitions} partitions of {sets} sets; expected at most {most}";
    /// Two indexes that cannot be merged.
    CannotMerge { difference: Difference } => "merge: {difference}";
    /// Pairs that cannot be added to an index.
    CannotAdd { difference: Difference } => "add: {difference}";
}
}

sentences! {
/// Why weights are not a law.
#[derive(Clone, Copy, PartialEq)]
enum ShapeError {
    /// A weight that is negative, infinite or not a number.
    Weight { found: f64 } => "weight {}: out of range; expected 0 or more", short(*found);
    /// A share of unlisted queries, or an exponent, that is out of range.
    Parameter { what: &'static str, found: f64, allowed: &'static str } => "{what} {}: out of range; expected {allowed}", short(*found);
    /// More keys than 64 bits count.
    TooMany => "workload: too many keys; expected fewer than 2^64";
}
}

sentences! {
/// Why a value of a map, or a set of an index, is rejected.
enum ValueError {

    hidden:
    /// A number that needs more bits than declared.
    Width { number: u64, bits: u32 } => "value {number}: does not fit in {bits} bits; expected at most {}",
        u64::MAX.checked_shr(64u32.saturating_sub(*bits)).unwrap_or(0);
    /// A value, as it is shown, that is not a number where numbers are declared.
    NotANumber { value: String, bits: u32 } => "value {value}: not a number; expected a number of {bits} bits";
    /// A value, as it is shown, that is not in the alphabet.
    Undeclared { value: String, declared: usize } => "value {value}: not declared; expected one of the {declared} declared values";
    /// Numbers and bytes in one map.
    Mixed => "values: numbers and bytes; expected one of the two";
    /// More different values than a table of them holds.
    TooMany { most: u64 } => "values: too many different values that are not numbers; expected at most {most}";
    /// A set without a name.
    NoName => "set name: empty; expected at least one letter";
    /// A name of a set that is too long.
    LongName { bytes: usize, most: usize } => "set name: {bytes} bytes; expected at most {most}";
    /// A name of a set with a character that separates names.
    Separator { name: String } => "set name {name:?}: a comma, a tab, a NUL or the end of a line in it; expected none of them";
    /// A name that no set has.
    NoSet { name: String } => "set {name:?}: no such set; expected a name of the index";
    /// A number that no set has.
    NoSetNumber { set: u32 } => "set {set}: no such set; expected an id of the index";
    /// A number that no set of a builder has.
    NotFromSet { set: u32, sets: usize } => "set {set}: no such set; expected one of the {sets} ids that `set` returned";
}
}

sentences! {
/// What two indexes, or an index and pairs, do not share.
enum Difference {
    /// Lengths of k-mers; 0 if keys are something else.
    Kmers { ours: u32, theirs: u32 } => "keys are {} and {}; expected k-mers of one length, or none", kmers(*ours), kmers(*theirs);
    /// Key types.
    KeyTypes { ours: KeyType, theirs: KeyType } => "key types {ours} and {theirs}; expected the same";
    /// Seeds.
    Seeds { ours: u64, theirs: u64 } => "seeds {ours} and {theirs}; expected the same";
    /// Secrets.
    Secrets => "two secrets; expected the same";
    /// One has a secret and the other has none.
    OneSecret => "one hash has a secret and the other has none; expected the same hash";
    /// Nothing: a segment is in both, so its pairs would count twice.
    Common => "a segment is in both indexes, so its pairs would count twice; expected different pairs";
}
}

/// What a kind of structure lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lack {
    /// It cannot exclude keys.
    Negatives,
    /// It cannot be exact.
    Exactness,
    /// It cannot store an exact bit.
    ExactBit,
    /// It cannot match a chosen share of the excluded keys.
    Share,
    /// Keys cannot be inserted after it was built.
    MoreKeys,
    /// Keys cannot be inserted, so a stack of it cannot adapt.
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
        const EXCLUDING: &str = "steered, chained, cascade, integrated or naive";
        match self {
            Lack::Negatives => format!("kind {kind}: cannot exclude keys; expected {EXCLUDING}"),
            Lack::Exactness => format!("kind {kind}: cannot be exact; expected {EXCLUDING}"),
            Lack::ExactBit => format!("kind {kind}: cannot store an exact layer; expected layers of ribbon or fuse"),
            Lack::Share => format!("excluded_fpr: not possible with kind {kind}; expected auto, steered or chained"),
            Lack::MoreKeys => format!(
                "capacity: keys cannot be inserted with kind {kind}; expected bloom, classic-bloom, cuckoo, quotient, stacked-bloom, stacked-cuckoo or stacked-quotient"
            ),
            Lack::Learning => format!("base {kind}: keys cannot be inserted; expected bloom, cuckoo or quotient"),
            Lack::LocalLayout => format!("layout local: not possible with kind {kind}; expected auto or steered"),
            Lack::LocalBudget => {
                "layout local: not possible with bits_per_key; expected fpr or exact as the goal".into()
            }
            Lack::FuseTable => format!("kind integrated: not possible with {kind}; expected fuse or fuse4"),
        }
    }
}

/// Pairs of positions, in brackets.
fn positions(first: &[(u64, u64)], each: impl Fn(u64, u64) -> String) -> String {
    let shown: Vec<String> = first.iter().map(|&(one, other)| each(one, other)).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

/// A bound with two digits that still holds.
fn up(number: f64) -> f64 {
    (100.0 * number).ceil() / 100.0
}

/// A number without hundreds of digits.
fn short(number: f64) -> String {
    if number != 0.0 && !(1e-6..1e15).contains(&number.abs()) { format!("{number:e}") } else { number.to_string() }
}

fn kmers(length: u32) -> String {
    if length == 0 { "not k-mers".to_string() } else { format!("{length}-mers") }
}

#[cfg(feature = "build")]
impl BuildError {
    /// Checks a number of parts of a structure.
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
