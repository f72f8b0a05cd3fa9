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
            "1 key is both wanted and excluded: key 3 = negative 5; if they differ, their digests were made equal, which a secret key prevents",
        ),
        (
            Conflict { count: 9, first: two() },
            "9 keys are both wanted and excluded: key 3 = negative 5, key 7 = negative 1; if they differ, their digests were made equal, which a secret key prevents",
        ),
        (
            Conflict { count: 2, first: vec![] },
            "2 keys are both wanted and excluded; if they differ, their digests were made equal, which a secret key prevents",
        ),
        (TwoValues { count: 1, first: vec![(3, 5)] }, "1 key has two values: pairs 3 and 5"),
        (TwoValues { count: 9, first: two() }, "9 keys have two values: pairs 3 and 5, pairs 7 and 1"),
        (
            Unsolvable { structure: "binary fuse", keys: 7, attempts: 100 },
            "binary fuse: no solution for 7 keys after 100 seeds; are two of them equal?",
        ),
        (
            NothingExcluded,
            "exact: no key is excluded, so every key would match; expected excluded keys, or a rate or bits per key as the goal",
        ),
        (MixedKeyTypes, "some keys are integers and some are bytes; a filter holds one kind"),
        (
            MemoryLimit { bytes: 9 },
            "the keys need more than 9 bytes of memory; raise the memory limit, or enable the feature `spill`",
        ),
        (DiskLimit { limit: 9 }, "temporary files would exceed the disk limit of 9 bytes"),
        (Cancelled, "cancelled"),
        (std::io::Error::other("no pipe").into(), "no pipe"),
        (TooManyKeys { keys: 7, place: "file" }, "7 keys are more than a file holds"),
        (TooManyKeys { keys: 7, place: "group of labels" }, "7 keys are more than a group of labels holds"),
        (TooMany { what: "labels", most: u32::MAX.into() }, "more labels than 2^32 - 1"),
        (TooMany { what: "sets", most: 9 }, "more than 9 sets"),
        (TooMany { what: "segments", most: 9 }, "more than 9 segments; build anew"),
        (TooMany { what: "set lists", most: 9 }, "more than 9 different lists of sets"),
        (
            TooMany { what: "compressed values", most: 9 },
            "more than 9 different values are not compressed; use ribbon or fuse",
        ),
        (NoMemory { bytes: 8 }, "no memory for a table of 8 bytes"),
    ]);
}

#[test]
fn what_is_wrong_with_goals() {
    use BuildError::*;
    let range = |option, given, most| Range { option, given, least: 0.0, most };
    let budget = || Box::new(Budget { keys: 1000, given: 0.5, needed: 1.8 });
    says([
        (range("fpr", 2.0, 1.0), "fpr 2: out of range; expected 0 to 1"),
        (Range { option: "fpr", given: 0.0, least: 1e-9, most: 1.0 }, "fpr 0: out of range; expected 1e-9 to 1"),
        (range("bits_per_key", f64::NAN, 4096.0), "bits_per_key NaN: out of range; expected 0 to 4096"),
        (TwoGoals { first: "exact", second: "fpr" }, "exact, fpr: two goals; expected one"),
        (NoEffect { option: "delta", needs: "Kind::Cascade" }, "delta: no effect; expected Kind::Cascade"),
        (*budget(), "0.5 bits per key are too few for 1000 keys; the smallest that works is 1.80"),
        (
            Rate { kind: "ribbon", wanted: 1e-12, lowest: 2.4e-10 },
            "a rate of 0.000000000001 needs more than 32 bits per key; the lowest is 2.4e-10",
        ),
        (
            Rate { kind: "cuckoo", wanted: 1e-12, lowest: 1e-9 },
            "cuckoo filter: a rate of 0.000000000001 needs fingerprints of more than 32 bits; the lowest is 1e-9",
        ),
        (
            BitsPerKey { structure: "Bloom filter", needed: 2e7 },
            "Bloom filter: a rate this low needs 20000000 bits per key, at most 2^24 are possible",
        ),
        (
            UnlistedFpr { fpr: 0.012_344, most: 0.01 },
            "unlisted keys would match at a rate of 1.234e-2 at least, above 0.01",
        ),
        (
            UnlistedBudget { given: 5.0, fpr: 0.0001, needed: 13.287 },
            "no structure of 5 bits per key keeps the rate of unlisted keys at 0.0001, which takes 13.29 at least",
        ),
        (Workload { rate: 0.0123, goal: 0.01 }, "expected queries would pass at a rate of 1.23e-2, above 0.01"),
        (
            NothingExpected { goal: "bits_per_key" },
            "a budget of bits says nothing of unknown keys, and no query is expected: a rate is what they need",
        ),
        (
            NothingExpected { goal: "exact" },
            "an exact set says nothing of unknown keys, and no query is expected: a rate is what they need",
        ),
        (WorkloadLate, "expected queries must be announced with `with_workload`, or come before the excluded keys"),
        (
            WorkloadDrop,
            "keys that are excluded cannot be dropped while queries are expected: keep them, or leave them out",
        ),
        (Weight { weight: -3.0 }, "a weight of -3 makes no sense, expected a number from 0 to 2^43"),
        (Weight { weight: f64::NAN }, "a weight of NaN makes no sense, expected a number from 0 to 2^43"),
        (Weight { weight: 1e300 }, "a weight of 1e300 is more than 2^43; scale the weights down"),
        (Weight { weight: 1e-7 }, "a weight of 1e-7 is less than 2^-20; scale the weights up"),
        (Weights, "the counts of the expected queries add up to more than 2^44; scale them down"),
        (ShapeError::Weight { found: -1.0 }.into(), "the weight of a query is -1; it must be a number from 0 on"),
        (
            ShapeError::Parameter { what: "the share", found: 2.0, allowed: "from 0 to 1" }.into(),
            "the share is 2; it must be from 0 to 1",
        ),
        (ShapeError::TooMany.into(), "more than 2^64 known values"),
        (
            Capacity { cause: budget() },
            "counted with the keys to come: 0.5 bits per key are too few for 1000 keys; the smallest that works is 1.80",
        ),
        (Instead { cause: Box::new(Cancelled), kinds: vec!["ribbon", "fuse"] }, "cancelled; these could: ribbon, fuse"),
        (Instead { cause: Box::new(Cancelled), kinds: vec![] }, "cancelled; no other structure could"),
        (
            Labels { cause: Box::new(Cancelled), given: 0.5, labels: 0.249 },
            "cancelled; of 0.5 bits per key the table of labels takes 0.25",
        ),
    ]);
}

#[test]
fn what_a_kind_lacks() {
    for (lacks, sentence) in [
        (
            Lack::Negatives,
            "ribbon knows only its keys; to exclude others use steered, chained, cascade, integrated or naive",
        ),
        (
            Lack::Exclusion,
            "a stack makes false positives rare among the keys it knows, and excluded keys must never match: use steered, chained, cascade, integrated or naive",
        ),
        (Lack::Exactness, "an exact filter needs the keys that are not in the set"),
        (Lack::ExactLayer, "no layer of a stack is exact: use steered, chained, cascade, integrated or naive"),
        (Lack::ExactBit, "Bloom, cuckoo and quotient filters cannot hold an exact bit"),
        (Lack::Share, "a share of the excluded keys may match only where columns are steered: use steered"),
        (
            Lack::MoreKeys,
            "room for more keys is for structures that take them: use bloom, classic-bloom, cuckoo, quotient, stacked-bloom, stacked-cuckoo or stacked-quotient",
        ),
        (Lack::Learning, "a stack that learns is made of Bloom, cuckoo or quotient filters: others take no keys later"),
        (Lack::LocalLayout, "the local layout is one of steered columns; leave out the kind, or the layout"),
        (Lack::LocalBudget, "the local layout keeps no budget of bits: ask for a rate, or for an exact set"),
        (Lack::FuseTable, "integrated filters are made of fuse tables: use fuse or fuse4"),
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
            "classic Bloom filter: no size gives a rate of 0.0000001 with 9 keys",
        ),
        (
            NoSize { structure: "quotient filter", keys: 9, rate: 0.0 },
            "quotient filter: no size gives a rate of 0 with 9 keys; remainders have 32 bits at most",
        ),
        (
            BroomSize { keys: 9, rate: 0.0, remainder: 24, most: 99 },
            "broom filter: no size for a rate of 0 with 9 keys, expected at least 2^-24 and at most 99 keys",
        ),
        (
            NotASize { structure: "split-block Bloom filter", keys: 9, bits: -1.0 },
            "split-block Bloom filter: -1 bits for each of 9 keys is not a size",
        ),
        (size("cuckoo filter", "buckets", 17, 0), "cuckoo filter: 17 buckets, at most 16"),
        (size("CSC-Bloom", "hash functions", 0, 1), "CSC-Bloom: 0 hash functions, 1 to 16 are possible"),
        (size("CSC-Cuckoo", "slots", 3, 4), "CSC-Cuckoo: slots of 3 bits, 4..=16 are possible"),
        (
            Empty { structure: "classic Bloom filter", what: "bits", keys: 9 },
            "classic Bloom filter: no bits for 9 keys",
        ),
        (Width { structure: "binary fuse", given: 0.5, most: 32 }, "a binary fuse has 1 to 32 bits per value, not 0.5"),
        (Width { structure: "ribbon", given: 33.0, most: 32 }, "a ribbon holds values of 1 to 32 bits, not of 33"),
        (
            Width { structure: "integrated", given: 0.0, most: 30 },
            "the first stage of an integrated filter has 1 to 30 bits, not 0",
        ),
        (Values { given: 3, keys: 4 }, "3 values for 4 keys"),
        (PartOfABit, "given values need a whole number of bits"),
        (
            ClassicSize { bits: 9, hashes: 0, most_bits: 8, most_hashes: 64 },
            "classic Bloom filter: 9 bits and 0 hash functions, at most 8 and 1 to 64 are possible",
        ),
        (QuotientSize { slots: 9, remainder: 33 }, "quotient filter: 9 slots of 33 bits are too many"),
        (CannotGrow { keys: 9 }, "the filter of 9 keys cannot grow: no bits are left in its remainders"),
        (
            Parameters { structure: "steered column", keys: 9, given: "Params".into() },
            "9 keys with Params are no steered column",
        ),
        (
            Fingerprints { structure: "cascade", keys: 9, rate: 0.1, bits: 57 },
            "cascade: 9 keys at a rate of 0.1 have more than 2^57 fingerprints",
        ),
        (Range { option: "fpr", given: 0.7, least: 1e-7, most: 0.5 }, "fpr 0.7: out of range; expected 1e-7 to 0.5"),
        (Range { option: "bits", given: 0.5, least: 1.0, most: 1024.0 }, "bits 0.5: out of range; expected 1 to 1024"),
    ]);
}

#[test]
fn what_is_wrong_with_maps_and_sets() {
    use BuildError::*;
    let (structure, target) = ("CSC-Bloom", "false sets for absent keys");
    says([
        (ValueError::Width { number: 8, bits: 3 }.into(), "the value 8 does not fit in 3 bits"),
        (ValueError::NotANumber { value: "\"a\"".into(), bits: 3 }.into(), "the value \"a\" is not a number of 3 bits"),
        (
            ValueError::Undeclared { value: "\"a\"".into(), declared: 2 }.into(),
            "the value \"a\" is not one of the 2 that were declared",
        ),
        (ValueError::Mixed.into(), "some values are numbers and some are bytes; a map holds one kind"),
        (ValueError::TooMany { most: 9 }.into(), "more than 9 different values that are no numbers"),
        (ValueError::NoName.into(), "the name of a set is empty, expected a letter at least"),
        (
            ValueError::LongName { bytes: 5000, most: 4096 }.into(),
            "the name of a set has 5000 bytes, expected at most 4096",
        ),
        (
            ValueError::Separator { name: "a,b".into() }.into(),
            "the name of the set \"a,b\" has a comma, a tab or the end of a line, expected none of them",
        ),
        (ValueError::NoSet { name: "a".into() }.into(), "no set is named \"a\""),
        (ValueError::NoSetNumber { set: 3 }.into(), "there is no set 3"),
        (ValueError::NotFromSet { set: 3, sets: 2 }.into(), "set 3 of 2: numbers come from `set`"),
        (Frozen { option: "counts" }, "a frozen index has no counts"),
        (Frozen { option: "bits_per_pair" }, "a frozen index has no budget: it takes what its lists need"),
        (Frozen { option: "capacity" }, "a frozen index has no capacity"),
        (Frozen { option: "shape" }, "a frozen index has no shape"),
        (
            Census { sets: 5, multiplicity: 2, last: 3 },
            "a census of 5 sets lists keys of 2 sets after keys of 3; they ascend from 1 to 5",
        ),
        (NotPositive { target, given: 0.0 }, "false sets for absent keys must be a positive number, not 0"),
        (
            MoreThanSets { target, given: 7.5, sets: 5 },
            "false sets for absent keys: 7.5 were allowed, and there are 5 sets in all",
        ),
        (
            FalseSets { false_sets: 0.01, member_false_sets: 0.1 },
            "no table of at most 2^48 bits has 0.01 false sets for unlisted keys and 0.1 for members",
        ),
        (BitsPerPair { given: 0.01 }, "no table fits into 0.01 bits per pair"),
        (
            Partitions { structure, partitions: 9, repetitions: 1, least: 0, most: 0 },
            "CSC-Bloom: 9 partitions with 1 repetitions, 0..=0 are possible",
        ),
        (SetPartitions { partitions: 9, sets: 3, most: 4 }, "9 partitions of 3 sets, at most 4 are possible"),
        (
            CannotMerge { difference: Difference::Kmers { ours: 21, theirs: 0 } },
            "the indexes cannot be merged: their keys are 21-mers and no k-mers",
        ),
        (
            CannotAdd { difference: Difference::KeyTypes { ours: KeyType::Bytes, theirs: KeyType::Integer } },
            "the pairs cannot be added: their keys are bytes and integer",
        ),
        (
            CannotMerge { difference: Difference::Seeds { ours: 0, theirs: 7 } },
            "the indexes cannot be merged: their seeds are 0 and 7",
        ),
        (CannotAdd { difference: Difference::Secrets }, "the pairs cannot be added: their secret keys differ"),
        (
            CannotMerge { difference: Difference::OneSecret },
            "the indexes cannot be merged: one is hashed with a secret key and the other is not",
        ),
        (
            CannotMerge { difference: Difference::Common },
            "the indexes cannot be merged: they have pairs in common: a segment of one is a segment of the other",
        ),
    ]);
}
