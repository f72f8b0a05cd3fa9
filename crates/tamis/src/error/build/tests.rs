//! every variant -> its sentence, word for word.

use super::{BuildError, Difference, Lack, ShapeError, ValueError};
use crate::hash::KeyType;

fn says(table: impl IntoIterator<Item = (BuildError, &'static str)>) {
    for (error, sentence) in table {
        assert_eq!(error.to_string(), sentence, "{error:?}");
    }
}

#[test]
fn what_is_wrong_with_keys_and_files() {
    use BuildError::*;
    let two = || vec![(3, 5), (7, 1)];
    says([
        (
            Conflict { count: 1, first: vec![(3, 5)] },
            "exclude: 1 key is also a member (key 3 = excluded key 5); expected none; use on_conflict, or secret if the keys differ",
        ),
        (
            Conflict { count: 9, first: two() },
            "exclude: 9 keys are also members (key 3 = excluded key 5, key 7 = excluded key 1); expected none; use on_conflict, or secret if the keys differ",
        ),
        (
            Conflict { count: 2, first: vec![] },
            "exclude: 2 keys are also members; expected none; use on_conflict, or secret if the keys differ",
        ),
        (
            TwoValues { count: 1, first: vec![(3, 5)] },
            "pairs: 1 key has two values (pairs 3 and 5); expected one value for each key",
        ),
        (
            TwoValues { count: 9, first: two() },
            "pairs: 9 keys have two values (pairs 3 and 5, pairs 7 and 1); expected one value for each key",
        ),
        (
            Unsolvable { structure: "binary fuse", keys: 7, attempts: 100 },
            "binary fuse: no solution for 7 keys after 100 seeds; expected distinct digests",
        ),
        (
            NothingExcluded,
            "exclude: no excluded key is left, so every key would match; expected at least one that is not a member, or fpr or bits_per_key as the goal",
        ),
        (NothingToLearn, "learn: members alone or excluded keys alone; expected both"),
        (MixedKeyTypes, "keys: of two key types; expected one key type"),
        (
            MemoryLimit { bytes: 9 },
            "memory 9: too small for the keys; expected a higher limit; use the feature `spill` for temporary files",
        ),
        (
            DiskLimit { limit: 9 },
            "disk 9: too small for the temporary files; expected a higher limit of disk or memory",
        ),
        (Cancelled, "cancelled"),
        (std::io::Error::other("no pipe").into(), "no pipe"),
        (TooManyKeys { keys: 7, place: "file" }, "keys: 7 are more than a file holds; expected fewer"),
        (
            TooManyKeys { keys: 7, place: "group of partitions" },
            "keys: 7 are more than a group of partitions holds; expected fewer",
        ),
        (TooMany { what: "partitions", most: 9 }, "partitions: too many; expected at most 9"),
        (TooMany { what: "sets", most: 9 }, "sets: too many; expected at most 9"),
        (TooMany { what: "segments", most: 9 }, "segments: too many; expected at most 9; build the index again"),
        (TooMany { what: "set lists", most: 9 }, "set lists: too many; expected at most 9"),
        (
            TooMany { what: "compressed values", most: 9 },
            "compressed values: too many; expected at most 9; use kind ribbon or fuse",
        ),
        (NoMemory { bytes: 8 }, "table: 8 bytes cannot be allocated; expected fewer keys or more memory"),
    ]);
}

#[test]
fn what_is_wrong_with_goals() {
    use BuildError::*;
    let range = |option, given, most| Range { option, given, least: 0.0, most };
    let budget = || Box::new(Budget { keys: 1000, given: 0.5, needed: 1.8 });
    says([
        (range("fpr", 2.0, 1.0), "fpr 2: out of range; expected 0 to 1"),
        (range("fpr", 1.0, 1.0), "fpr 1: out of range; expected 0 to 1, but not 1"),
        (range("fpr", 0.0, 1.0), "fpr 0: out of range; expected 0 to 1, but not 0"),
        (Range { option: "fpr", given: 0.0, least: 1e-9, most: 1.0 }, "fpr 0: out of range; expected 1e-9 to 1"),
        (range("bits_per_key", f64::NAN, 4096.0), "bits_per_key NaN: out of range; expected 0 to 4096"),
        (TwoGoals { first: "exact", second: "fpr" }, "exact, fpr: two goals; expected one"),
        (NoEffect { option: "delta", needs: "kind cascade" }, "delta: no effect; expected kind cascade"),
        (*budget(), "bits_per_key 0.5: too small for 1000 keys; expected at least 1.80"),
        (
            Rate { kind: "ribbon", fpr: 1e-12, lowest: 2.4e-10 },
            "fpr 1e-12: too small for kind ribbon; expected at least 2.4e-10",
        ),
        (
            BitsPerKey { structure: "Bloom filter", needed: 2e7 },
            "fpr: too small for a Bloom filter, which would take 20000000 bits per key; expected at most 2^24",
        ),
        (
            UnlistedFpr { fpr: 0.012_344, most: 0.01 },
            "fpr 0.01: not possible with the other options; expected at least 1.235e-2",
        ),
        (
            UnlistedBudget { given: 5.0, fpr: 0.0001, needed: 13.287 },
            "fpr 0.0001: not possible with bits_per_key 5; expected at least 13.29 bits per key",
        ),
        (
            Workload { rate: 0.0123, goal: 0.01 },
            "workload_fpr 0.01: not possible with the other options; expected at least 1.231e-2",
        ),
        (
            NothingExpected { goal: "bits_per_key" },
            "fpr, bits_per_key: two goals, because the workload is empty; expected one, or a workload with queries",
        ),
        (
            NothingExpected { goal: "exact" },
            "fpr, exact: two goals, because the workload is empty; expected one, or a workload with queries",
        ),
        (WorkloadLate, "push_query: called after exclude; expected before; use with_workload on the builder"),
        (WorkloadDrop, "on_conflict drop: not possible with a workload; expected error or keep"),
        (Weight { weight: -3.0 }, "weight -3: out of range; expected 0 to 2^43"),
        (Weight { weight: f64::NAN }, "weight NaN: out of range; expected 0 to 2^43"),
        (Weight { weight: 1e300 }, "weight 1e300: too large; expected at most 2^43; scale the weights down"),
        (Weight { weight: 1e-7 }, "weight 1e-7: too small; expected 0, or at least 2^-20; scale the weights up"),
        (Weights, "workload: the weights add up to 2^44 or more; expected less; scale the weights down"),
        (ShapeError::Weight { found: -1.0 }.into(), "weight -1: out of range; expected 0 or more"),
        (
            ShapeError::Parameter { what: "unlisted_share", found: 2.0, allowed: "0 to 1" }.into(),
            "unlisted_share 2: out of range; expected 0 to 1",
        ),
        (ShapeError::TooMany.into(), "workload: too many keys; expected fewer than 2^64"),
        (
            Capacity { cause: budget() },
            "bits_per_key 0.5: too small for 1000 keys; expected at least 1.80; keys up to the capacity count",
        ),
        (Instead { cause: Box::new(Cancelled), kinds: vec!["ribbon", "fuse"] }, "cancelled; use kind ribbon, fuse"),
        (Instead { cause: Box::new(Cancelled), kinds: vec![] }, "cancelled"),
        (
            PartitionTable { cause: Box::new(Cancelled), given: 0.5, table: 0.249 },
            "cancelled; the table of partitions takes 0.25 of 0.5 bits per key",
        ),
    ]);
}

#[test]
fn what_a_kind_lacks() {
    for (lacks, sentence) in [
        (Lack::Negatives, "kind ribbon: cannot exclude keys; expected steered, chained, cascade, integrated or naive"),
        (Lack::Exactness, "kind ribbon: cannot be exact; expected steered, chained, cascade, integrated or naive"),
        (Lack::ExactBit, "kind ribbon: cannot store an exact layer; expected layers of ribbon or fuse"),
        (Lack::Share, "excluded_fpr: not possible with kind ribbon; expected auto, steered or chained"),
        (
            Lack::MoreKeys,
            "capacity: keys cannot be inserted with kind ribbon; expected bloom, classic-bloom, cuckoo, quotient, stacked-bloom, stacked-cuckoo or stacked-quotient",
        ),
        (Lack::Learning, "base ribbon: keys cannot be inserted; expected bloom, cuckoo or quotient"),
        (Lack::LocalLayout, "layout local: not possible with kind ribbon; expected auto or steered"),
        (Lack::LocalBudget, "layout local: not possible with bits_per_key; expected fpr or exact as the goal"),
        (Lack::FuseTable, "kind integrated: not possible with ribbon; expected fuse or fuse4"),
    ] {
        assert_eq!(BuildError::Unfit { kind: "ribbon", lacks }.to_string(), sentence);
    }
}

#[test]
fn what_is_wrong_with_a_structure() {
    use BuildError::*;
    let size = |structure, what, given, least| Size { structure, what, given, least, most: 16 };
    says([
        (
            NoSize { structure: "classic Bloom filter", keys: 9, rate: 1e-7 },
            "fpr 1e-7: too small for a classic Bloom filter of 9 keys; expected a larger fpr or fewer keys",
        ),
        (
            BroomSize { keys: 9, rate: 0.0, remainder: 24, most: 99 },
            "fpr 0: not possible for a broom filter of 9 keys; expected at least 2^-24 and at most 99 keys",
        ),
        (
            NotASize { structure: "split-block Bloom filter", keys: 9, bits: -1.0 },
            "bits_per_key -1: not a size of a split-block Bloom filter of 9 keys; expected more than 0, and fewer keys if it is",
        ),
        (size("cuckoo filter", "buckets", 17, 0), "cuckoo filter: 17 buckets; expected at most 16"),
        (size("CSC-Bloom", "hash functions", 0, 1), "CSC-Bloom: 0 hash functions; expected 1 to 16"),
        (size("CSC-Cuckoo", "slots", 3, 4), "CSC-Cuckoo: slots of 3 bits; expected 4 to 16"),
        (
            Empty { structure: "classic Bloom filter", what: "bits", keys: 9 },
            "classic Bloom filter: no bits for 9 keys; expected some",
        ),
        (Width { structure: "binary fuse", given: 0.5, most: 32 }, "binary fuse: values of 0.5 bits; expected 1 to 32"),
        (Width { structure: "ribbon", given: 33.0, most: 32 }, "ribbon: values of 33 bits; expected 1 to 32"),
        (Width { structure: "integrated", given: 0.0, most: 30 }, "first_bits 0: out of range; expected 1 to 30"),
        (Values { given: 3, keys: 4 }, "values: 3 for 4 keys; expected as many"),
        (PartOfABit, "values: the width is not a whole number of bits; expected one"),
        (
            ClassicSize { bits: 9, hashes: 0, most_bits: 8, most_hashes: 64 },
            "classic Bloom filter: 9 bits and 0 hash functions; expected at most 8 and 1 to 64",
        ),
        (QuotientSize { slots: 9, remainder: 33 }, "quotient filter: 9 slots of 33 bits; expected fewer slots or bits"),
        (
            CannotGrow { keys: 9 },
            "grow: the remainders of 9 keys have 1 bit; expected at least 2; build a larger filter",
        ),
        (
            Parameters { structure: "steered column", keys: 9, given: "Params".into() },
            "steered column: Params is not possible for 9 keys; expected less",
        ),
        (
            Fingerprints { structure: "cascade", keys: 9, rate: 0.1, bits: 57 },
            "fpr 0.1: too small for a cascade of 9 keys, which would have more than 2^57 fingerprints; expected a larger fpr or fewer keys",
        ),
        (Range { option: "fpr", given: 0.7, least: 1e-7, most: 0.5 }, "fpr 0.7: out of range; expected 1e-7 to 0.5"),
        (Range { option: "bits", given: 0.5, least: 1.0, most: 1024.0 }, "bits 0.5: out of range; expected 1 to 1024"),
    ]);
}

#[test]
fn what_is_wrong_with_maps_and_sets() {
    use BuildError::*;
    let (structure, target) = ("CSC-Bloom", "false_sets");
    says([
        (ValueError::Width { number: 8, bits: 3 }.into(), "value 8: does not fit in 3 bits; expected at most 7"),
        (
            ValueError::NotANumber { value: "\"a\"".into(), bits: 3 }.into(),
            "value \"a\": not a number; expected a number of 3 bits",
        ),
        (
            ValueError::Undeclared { value: "\"a\"".into(), declared: 2 }.into(),
            "value \"a\": not declared; expected one of the 2 declared values",
        ),
        (ValueError::Mixed.into(), "values: numbers and bytes; expected one of the two"),
        (
            ValueError::TooMany { most: 9 }.into(),
            "values: too many different values that are not numbers; expected at most 9",
        ),
        (ValueError::NoName.into(), "set name: empty; expected at least one letter"),
        (ValueError::LongName { bytes: 5000, most: 4096 }.into(), "set name: 5000 bytes; expected at most 4096"),
        (
            ValueError::Separator { name: "a,b".into() }.into(),
            "set name \"a,b\": a comma, a tab, a NUL or the end of a line in it; expected none of them",
        ),
        (ValueError::NoSet { name: "a".into() }.into(), "set \"a\": no such set; expected a name of the index"),
        (ValueError::NoSetNumber { set: 3 }.into(), "set 3: no such set; expected an id of the index"),
        (
            ValueError::NotFromSet { set: 3, sets: 2 }.into(),
            "set 3: no such set; expected one of the 2 ids that `set` returned",
        ),
        (Frozen { option: "counts" }, "counts: not possible with kind frozen; expected bloom or cuckoo"),
        (
            Census { sets: 5, multiplicity: 2, last: 3 },
            "multiplicities: keys of 2 sets after keys of 3; expected ascending numbers from 1 to 5",
        ),
        (NotPositive { target, given: 0.0 }, "false_sets 0: out of range; expected a number above 0"),
        (
            MoreThanSets { target, given: 7.5, sets: 5 },
            "false_sets 7.5: out of range; expected at most 5, the number of sets",
        ),
        (
            FalseSets { false_sets: 0.01, member_false_sets: 0.1 },
            "false_sets 0.01, member_false_sets 0.1: would take more than 2^48 bits; expected larger numbers",
        ),
        (BitsPerPair { given: 0.01 }, "bits_per_pair 0.01: too small for a table; expected more"),
        (
            Partitions { structure, partitions: 9, repetitions: 1, least: 0, most: 0 },
            "CSC-Bloom: 9 partitions with 1 repetitions; expected 0 to 0",
        ),
        (SetPartitions { partitions: 9, sets: 3, most: 4 }, "shape: 9 partitions of 3 sets; expected at most 4"),
        (
            CannotMerge { difference: Difference::Kmers { ours: 21, theirs: 0 } },
            "merge: keys are 21-mers and not k-mers; expected k-mers of one length, or none",
        ),
        (
            CannotAdd { difference: Difference::KeyTypes { ours: KeyType::Bytes, theirs: KeyType::Integer } },
            "add: key types bytes and integer; expected the same",
        ),
        (
            CannotMerge { difference: Difference::Seeds { ours: 0, theirs: 7 } },
            "merge: seeds 0 and 7; expected the same",
        ),
        (CannotAdd { difference: Difference::Secrets }, "add: two secrets; expected the same"),
        (
            CannotMerge { difference: Difference::OneSecret },
            "merge: one hash has a secret and the other has none; expected the same hash",
        ),
        (
            CannotMerge { difference: Difference::Common },
            "merge: a segment is in both indexes, so its pairs would count twice; expected different pairs",
        ),
    ]);
}
