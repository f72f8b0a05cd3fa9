//! section by section, what the command line promises about its own words -> a table of command lines, each with its exit code and its answer.

use crate::test_dir::TestDir;

/// Lists, directories of them, and files of every form.
fn dir() -> TestDir {
    let dir = TestDir::new();
    for folder in ["allow", "none", "many"] {
        std::fs::create_dir(dir.path(folder)).unwrap();
    }
    for (name, text) in [
        ("deny.txt", "a\nb\n"),
        ("more.txt", "c\nd\n"),
        ("allow/1.txt", "x\ny\n"),
        ("allow/2.txt", "z\n"),
        ("allow/.hidden", "a\n"),
        ("many/one.txt", "a\n"),
        ("many/two.txt", "b\n"),
        ("today.txt", "a\nb\ne\n"),
        ("numbers.txt", "1\n2\n"),
        ("others.txt", "8\n9\n"),
        ("log.tsv", "x\t3\ny\t1\n"),
        ("pairs.tsv", "1\tred\n2\tblue\n"),
        ("words.tsv", "a\tred\nb\tblue\n"),
        ("t.csv", "key,value\na,1\nb,2\n"),
        ("t.jsonl", "{\"key\":\"1\"}\n{\"key\":2}\n"),
        ("blank.txt", "\n\n"),
        ("empty.txt", ""),
        ("empty.fa", ""),
        ("s.fa", ">s\nACGTACGT\n"),
    ] {
        dir.put(name, text);
    }
    for line in [
        "build deny.txt -o f.tamis",
        "build deny.txt --exclude allow -o both.tamis",
        "build numbers.txt --integers --exclude others.txt -o ints.tamis",
        "build numbers.txt --integers --changing -o change.tamis",
        "build deny.txt --changing -o text.tamis",
        "diff both.tamis --keys today.txt --exclude allow -o one.patch",
        "map build pairs.tsv --integers --fpr 1/65536 -o map.tamis",
        "sets build numbers.txt --integers -o sets.tamis",
        "sets build s.fa --kmer 5 -o kmers.tamis",
        "slice plan deny.txt --exclude allow/1.txt --slices 1 -o plan.json",
        "slice plan numbers.txt --integers --slices 1 -o numbers.json",
    ] {
        dir.run(&format!("{line} -q")).text(0);
    }
    dir.put("kept.tamis", dir.read("f.tamis"));
    dir
}

/// A command line, its exit code, and what its output, or its message, has in this order.
type Row = (&'static str, i32, &'static [&'static str]);

/// Roles of words: a list option takes every word up to the next option, on every command.
const ROLES: &[Row] = &[
    ("build deny.txt --exclude allow/1.txt allow/2.txt -o o", 0, &["keys        2,", "excluded    3,"]),
    ("build deny.txt -x allow/1.txt allow/2.txt -o o", 0, &["excluded    3,"]),
    ("build deny.txt -x allow/1.txt -x allow/2.txt -o o", 0, &["excluded    3,"]),
    ("build deny.txt -x allow -o o", 0, &["keys        2,", "excluded    3,"]),
    ("build many more.txt -x allow -o o", 0, &["keys        4,", "excluded    3,"]),
    ("build --keys deny.txt more.txt -x allow -o o", 0, &["keys        4,", "excluded    3,"]),
    ("build deny.txt --keys more.txt -x allow -o o", 0, &["keys        4,", "excluded    3,"]),
    ("build -x allow/1.txt allow/2.txt -o o -- deny.txt", 0, &["keys        2,", "excluded    3,"]),
    ("build deny.txt --workload log.tsv log.tsv -o o", 0, &["workload    8 queries for 2 keys"]),
    ("plan deny.txt -x allow/1.txt allow/2.txt", 0, &["steered"]),
    ("slice plan many -x allow/1.txt allow/2.txt -o o", 0, &["keys        2\n"]),
    ("slice build plan.json many -x allow/1.txt allow/2.txt --slice 0 -o o", 0, &["excluded    3\n"]),
    ("slice build plan.json --keys many/one.txt many/two.txt --slice 0 -x allow/1.txt -o o", 0, &["keys        2\n"]),
    ("verify both.tamis --keys many -x allow/1.txt allow/2.txt", 0, &["2 checked", "3 checked, 0 false positives"]),
    ("diff both.tamis --keys many/one.txt today.txt -x allow/1.txt allow/2.txt -o o", 0, &["changed     "]),
    ("query f.tamis many", 0, &["a\nb\n"]),
    ("query f.tamis --keys deny.txt more.txt -c", 0, &["2\n"]),
    ("add text.tamis many --keys more.txt today.txt -o o", 0, &["added       3 keys"]),
    ("exclude text.tamis allow -o o", 0, &["excluded    3 keys"]),
    ("remove text.tamis many -o o", 0, &["removed     2 keys"]),
    ("map verify map.tamis --pairs pairs.tsv pairs.tsv", 0, &["pairs       4 checked"]),
    ("sets freeze sets.tamis --keys numbers.txt numbers.txt -o o", 0, &["keys        2"]),
    // A word without a role.
    (
        "build deny.txt -x allow/1.txt -o o more.txt",
        2,
        &["more.txt: no role; members deny.txt, --exclude allow/1.txt; expected members before", ", or --keys"],
    ),
    (
        "build -x allow/1.txt -q more.txt -o o",
        2,
        &["more.txt: no role; --exclude allow/1.txt; expected members before"],
    ),
    ("build --exclude=allow/1.txt more.txt -o o", 2, &["more.txt: no role; --exclude allow/1.txt; expected"]),
    (
        "plan deny.txt --workload log.tsv --html o more.txt",
        2,
        &["more.txt: no role; members deny.txt, --workload log.tsv"],
    ),
    ("slice plan deny.txt -x allow -o o more.txt", 2, &["more.txt: no role; members deny.txt, --exclude allow;"]),
    (
        "slice build plan.json deny.txt -x allow --slice 0 -o o more.txt",
        2,
        &["more.txt: no role; plan plan.json, members deny.txt, --exclude allow; expected members before"],
    ),
    (
        "query f.tamis --keys deny.txt -c more.txt",
        2,
        &["more.txt: no role; filter f.tamis, --keys deny.txt; expected keys"],
    ),
    ("add text.tamis --keys deny.txt -q more.txt", 2, &["more.txt: no role; filter text.tamis, --keys deny.txt;"]),
    ("verify f.tamis deny.txt", 2, &["deny.txt: no role; filter f.tamis; expected --keys or --exclude before it"]),
    (
        "diff both.tamis deny.txt -o o",
        2,
        &["deny.txt: no role; old both.tamis; expected --keys or --exclude or --old-keys before it"],
    ),
    ("map verify map.tamis pairs.tsv", 2, &["pairs.tsv: no role; map map.tamis; expected --pairs before it"]),
    // A command whose own lists went to an option; standard input has nothing to say.
    (
        "build --exclude allow/1.txt deny.txt -o o",
        2,
        &[
            "members: none; --exclude allow/1.txt deny.txt; expected members before that option, behind --keys, or - for",
        ],
    ),
    ("build --workload log.tsv deny.txt -o o", 2, &["members: none; --workload log.tsv deny.txt; "]),
    ("plan -x allow/1.txt deny.txt", 2, &["members: none; --exclude allow/1.txt deny.txt; "]),
    ("slice plan -x allow/1.txt deny.txt -o o", 2, &["members: none; --exclude allow/1.txt deny.txt; "]),
    (
        "slice build plan.json -x allow deny.txt --slice 0 -o o",
        2,
        &["members: none; plan plan.json, --exclude allow deny.txt"],
    ),
    ("verify --keys deny.txt more.txt", 2, &["filter: missing; --keys deny.txt more.txt; expected filter before"]),
    (
        "slice build -x allow plan.json deny.txt --slice 0 -o o",
        2,
        &["plan: missing; --exclude allow plan.json deny.txt;"],
    ),
    // Files of ours among lists, and lists in the place of one.
    ("build f.tamis -o o", 2, &["f.tamis is a tamis filter; swapped? expected a list of keys"]),
    ("build deny.txt -x f.tamis -o o", 2, &["f.tamis is a tamis filter; swapped?"]),
    ("build deny.txt --workload f.tamis -o o", 2, &["f.tamis is a tamis filter; swapped?"]),
    ("plan map.tamis", 2, &["map.tamis is a tamis map; swapped?"]),
    ("slice plan f.tamis -o o", 2, &["f.tamis is a tamis filter; swapped?"]),
    ("query deny.txt f.tamis", 2, &["f.tamis is a tamis filter; swapped?"]),
    ("query both.tamis --patch one.patch one.patch", 2, &["one.patch is a tamis patch; swapped?"]),
    ("query deny.txt more.txt", 3, &["deny.txt: not a tamis file", "is it a list of keys? the filter comes first"]),
    (
        "verify --keys deny.txt f.tamis",
        2,
        &["f.tamis is a tamis filter; swapped? --keys deny.txt f.tamis; expected filter"],
    ),
    ("verify deny.txt f.tamis", 2, &["f.tamis is a tamis filter; swapped? filter deny.txt; expected --keys"]),
    ("verify deny.txt --keys f.tamis", 2, &["f.tamis is a tamis filter; swapped?"]),
    (
        "verify deny.txt --keys more.txt",
        3,
        &["deny.txt: not a tamis file", "is it a list of keys? the filter comes first"],
    ),
    ("diff deny.txt --keys both.tamis -o o", 2, &["both.tamis is a tamis filter; swapped?"]),
    ("add deny.txt text.tamis", 2, &["text.tamis is a tamis filter; swapped?"]),
    ("map build map.tamis -o o", 2, &["map.tamis is a tamis map; swapped?"]),
    ("map get pairs.tsv map.tamis", 2, &["map.tamis is a tamis map; swapped?"]),
    ("map get pairs.tsv numbers.txt", 3, &["pairs.tsv: not a tamis file", "the map comes first"]),
    ("sets build sets.tamis -o o", 2, &["sets.tamis is a tamis set index; swapped?"]),
    ("sets query numbers.txt sets.tamis", 2, &["sets.tamis is a tamis set index; swapped?"]),
];

/// Lists without keys.
const EMPTY: &[Row] = &[
    (
        "build empty.txt -o kept.tamis",
        2,
        &["empty.txt: no keys; expected one at least; use --allow-empty if that is meant"],
    ),
    ("build empty.txt blank.txt -o kept.tamis", 2, &["empty.txt, blank.txt: no keys;"]),
    ("build deny.txt -x empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("build deny.txt --workload empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("build -o kept.tamis", 2, &["standard input: no keys;"]),
    ("build none -o kept.tamis", 2, &["none: no files in the directory;"]),
    ("build blank.txt --changing -o kept.tamis", 2, &["blank.txt: no keys;"]),
    ("build deny.txt -x blank.txt --learn -o kept.tamis", 2, &["blank.txt: no keys;"]),
    ("plan empty.txt", 2, &["empty.txt: no keys;"]),
    ("slice plan empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("slice build plan.json empty.txt --slice 0 -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("map build empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("sets build empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("sets build empty.fa --kmer 5 -o kept.tamis", 2, &["empty.fa: no keys;"]),
    ("sets add sets.tamis empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("sets freeze sets.tamis empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("sets verify sets.tamis empty.txt", 2, &["empty.txt: no keys;"]),
    ("diff both.tamis --keys empty.txt -x allow -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("add text.tamis empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("exclude text.tamis empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("remove text.tamis empty.txt -o kept.tamis", 2, &["empty.txt: no keys;"]),
    ("verify f.tamis --keys empty.txt", 2, &["empty.txt: no keys;"]),
    ("map verify map.tamis --pairs empty.txt", 2, &["empty.txt: no keys;"]),
    ("build empty.txt --allow-empty -o o", 0, &["keys        0,"]),
    ("build deny.txt -x empty.txt --allow-empty -o o", 0, &["excluded    0,"]),
    ("sets build empty.txt --allow-empty -o o", 0, &["1 without keys"]),
    ("verify f.tamis --keys empty.txt --allow-empty", 0, &["keys        0 checked"]),
];

/// A file knows the type of its keys.
const TYPES: &[Row] = &[
    ("query ints.tamis numbers.txt others.txt", 0, &["1\n2\n"]),
    ("query ints.tamis --key 1", 0, &["1\n"]),
    ("query ints.tamis t.jsonl --column key", 0, &["1\n2\n"]),
    (
        "verify ints.tamis --keys numbers.txt --exclude others.txt",
        0,
        &["2 checked, 0 false neg", "2 checked, 0 false pos"],
    ),
    ("diff ints.tamis --keys numbers.txt --exclude others.txt -o o", 0, &["changed     "]),
    ("add change.tamis others.txt -o o", 0, &["added       2 keys"]),
    ("map get map.tamis numbers.txt", 0, &["1\tred\n2\tblue\n"]),
    ("map verify map.tamis --pairs pairs.tsv", 0, &["2 checked, 0 wrong"]),
    ("sets query sets.tamis numbers.txt", 0, &["1\tnumbers\n2\tnumbers\n"]),
    ("sets verify sets.tamis numbers.txt", 0, &["2 checked, 0 false"]),
    ("sets add sets.tamis others.txt -o o", 0, &["added       2 pairs"]),
    ("sets freeze sets.tamis numbers.txt -o o", 0, &["keys        2"]),
    ("slice build numbers.json numbers.txt --slice 0 -o o", 0, &["keys        2"]),
    ("query ints.tamis deny.txt", 2, &["deny.txt: line 1: \"a\" is not an integer"]),
    ("query ints.tamis numbers.txt --lowercase", 2, &["--lowercase: the keys of ints.tamis are integers"]),
    ("map get map.tamis --key red", 2, &["\"red\" is not an integer"]),
    ("query --integers f.tamis numbers.txt", 2, &["--integers: the keys of f.tamis are text; expected text, without"]),
    ("verify f.tamis --integers --keys numbers.txt", 2, &["--integers: the keys of f.tamis are text;"]),
    ("add text.tamis --integers numbers.txt", 2, &["--integers: the keys of text.tamis are text;"]),
    (
        "slice build plan.json numbers.txt --integers --slice 0 -o o",
        2,
        &["--integers: the keys of plan.json are text;"],
    ),
];

/// Numbers, names, and words of other programs.
const WORDS: &[Row] = &[
    ("build deny.txt --fpr 1/256 -o o", 0, &["fpr         0.39"]),
    ("build deny.txt -x allow --excluded-fpr 1/4 -o o", 0, &["excluded"]),
    ("build deny.txt --workload log.tsv --workload-fpr 1/100 --unlisted-share 1/5 -o o", 0, &["unlisted 20"]),
    ("diff both.tamis --keys today.txt -x allow --fpr 1/256 --max-fpr 1/2 -o o", 0, &["fpr"]),
    ("sets query kmers.tamis s.fa --threshold 1/2", 0, &["s\ts:4/4"]),
    ("sets build numbers.txt --false-sets 1/100 -o o", 0, &["sets        1"]),
    ("build deny.txt --fpr 1/0 -o o", 2, &["--fpr 1/0: out of range"]),
    ("build deny.txt --fpr 3/2 -o o", 2, &["--fpr 3/2: out of range"]),
    ("build deny.txt --capacity 1 -o o", 2, &["--capacity 1: out of range; expected 2 to 2,002"]),
    ("build deny.txt --kind cuckoo --capacity 1 -o o", 2, &["--capacity 1: out of range; expected 2 to 2,002"]),
    ("build deny.txt --changing --capacity 1 -o o", 2, &["--capacity 1: out of range; expected at least 2"]),
    ("map build t.csv --column key --value-column value -o o", 0, &["keys        2,"]),
    (
        "map build t.csv --key-column key --value-column value -o o",
        2,
        &["--key-column: unknown option", "try --column"],
    ),
    ("--json build deny.txt -o o", 0, &["\"command\":\"build\"", "\"keys\":2"]),
    ("--json sets build numbers.txt -o o", 0, &["\"command\":\"sets build\""]),
    ("sets --json query sets.tamis --key 1", 0, &["\"command\":\"sets query\""]),
    ("build deny.txt --kind xor -o o", 2, &["--kind xor: unknown; expected auto, ribbon,", "; try fuse"]),
    ("build deny.txt --kind binary-fuse -o o", 2, &["; try fuse"]),
    ("build deny.txt --kind xor8 -o o", 2, &["; try fuse"]),
    ("build deny.txt --kind bf -o o", 2, &["; try bloom"]),
    ("build deny.txt --kind bloomfilter -o o", 2, &["; try bloom"]),
    ("map build pairs.tsv --kind xor -o o", 2, &["expected auto, compressed, ribbon or fuse; try fuse"]),
    ("search f.tamis deny.txt", 2, &["search: unknown command", "try query"]),
    ("contains f.tamis deny.txt", 2, &["contains: unknown command", "try query"]),
    ("check f.tamis", 2, &["check: unknown command", "try verify"]),
    ("test f.tamis deny.txt", 2, &["test: unknown command", "try verify or query"]),
    ("merge a b", 2, &["merge: unknown command", "try sets merge"]),
    ("map search a b", 2, &["search: unknown command", "try get"]),
    ("query f.tamis -e a", 2, &["-e: unknown option", "try --key"]),
    ("build deny.txt --error-rate 0.1 -o o", 2, &["--error-rate: unknown option", "try --fpr"]),
];

/// What is wrong with a run of this row.
fn wrong(dir: &TestDir, &(line, code, parts): &Row) -> Option<String> {
    let run = dir.run(line);
    let out = String::from_utf8_lossy(&run.out).into_owned();
    // Errors are one line on standard error; what is printed in success has nothing next to it.
    let (text, other) = if code < 2 { (&out, &run.err) } else { (&run.err, &out) };
    let form = code < 2 || (text.starts_with("tamis: ") && text.matches('\n').count() == 1);
    let mut rest = text.as_str();
    let found = parts.iter().all(|part| rest.find(part).map(|at| rest = &rest[at + part.len()..]).is_some());
    let good = run.code == Some(code) && form && found && other.is_empty();
    (!good).then(|| format!("{line}: {:?} {out}{}", run.code, run.err))
}

#[test]
fn the_command_line_says_what_it_took_for_what() {
    let dir = dir();
    let (names, kept) = (dir.names(), dir.read("kept.tamis"));
    let mut all = vec![];
    for row in [ROLES, EMPTY, TYPES, WORDS].into_iter().flatten() {
        all.extend(wrong(&dir, row));
        // An error writes nothing.
        let _ = std::fs::remove_file(dir.path("o")).map(|()| assert!(row.1 < 2, "{}", row.0));
        assert_eq!((dir.names(), dir.read("kept.tamis") == kept), (names.clone(), true), "{}", row.0);
    }
    assert!(all.is_empty(), "{} rows: {}", all.len(), all.join("\n"));
}

/// Standard input is read where one word went to an option, and not where several did: one of them may have been meant as members.
#[test]
fn standard_input_is_for_whom_it_is_meant() {
    let dir = dir();
    assert!(dir.feed("build -x allow -o o", "a\n").text(0).contains("keys        1,"));
    assert!(dir.feed("build - -x allow/1.txt allow/2.txt -o o", "a\n").text(0).contains("keys        1,"));
    assert!(dir.feed("build --keys - -x allow/1.txt allow/2.txt -o o", "a\n").text(0).contains("keys        1,"));
    let message = dir.feed("build -x allow/1.txt allow/2.txt -o o", "a\n").complaint();
    assert!(message.starts_with("members: none; --exclude allow/1.txt allow/2.txt; "), "{message}");
    // Queries of nothing have an answer.
    assert_eq!(dir.run("query f.tamis empty.txt -c").text(1), "0\n");
    assert_eq!(dir.feed("query f.tamis", "").text(1), "");
    // Many words are counted.
    let many = (0..20).map(|_| "allow/1.txt").collect::<Vec<_>>().join(" ");
    let message = dir.run(&format!("build -x {many} -o o")).complaint();
    assert!(message.contains(&format!("--exclude {} and 12 more; ", ["allow/1.txt"; 8].join(" "))), "{message}");
}

/// `build -h` has ten options, `--help` has all under headings, and so have the others.
#[test]
fn help_has_headings() {
    let dir = TestDir::new();
    let options = |help: &str| help.lines().filter(|line| line.trim_start().starts_with('-')).count();
    let headings = |help: &str| -> Vec<String> {
        let lines = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' '));
        lines.map(|line| line.trim_end_matches(':').to_string()).collect()
    };
    let short = dir.run("build -h").text(0);
    // And -h itself.
    assert_eq!(options(&short), 11, "{short}");
    assert!(short.lines().count() < 50 && short.contains("-x, --exclude"), "{short}");
    let long = dir.run("build --help").text(0);
    let all = ["Arguments", "Options", "Lists", "Goal", "Structure", "File", "Resources", "Output"];
    assert_eq!(headings(&long), all);
    assert!(options(&long) > 40, "{long}");
    let under_options = long.split("\nOptions:\n").nth(1).unwrap().split("\nLists:\n").next().unwrap();
    assert_eq!(options(under_options), 1, "{under_options}");
    for command in ["plan", "query", "verify", "diff", "slice plan", "slice build", "map build", "sets build", "add"] {
        for help in ["-h", "--help"] {
            let help = dir.run(&format!("{command} {help}")).text(0);
            assert!(headings(&help).contains(&"Lists".to_string()), "{command}: {help}");
            assert!(help.contains("Files of ") || help.contains("One file per set"), "{command}: {help}");
        }
    }
}

/// Completions know the values of options, as the library names them.
#[test]
fn completions_know_values() {
    let dir = TestDir::new();
    let script = dir.run("completions bash").text(0);
    let kinds = tamis::Kind::ALL.iter().map(|(name, _)| *name);
    let names = |all: &[&str]| all.join(" ");
    for values in [
        kinds.collect::<Vec<_>>().join(" "),
        names(&["fast", "balanced", "smallest"]),
        names(&["auto", "compact", "local"]),
        names(&["text", "csv", "tsv", "jsonl", "parquet"]),
        names(&["error", "keep", "drop"]),
        names(&["auto", "compressed", "ribbon", "fuse"]),
        names(&["auto", "bloom", "cuckoo", "frozen"]),
    ] {
        assert!(script.contains(&format!("compgen -W \"{values}\"")), "{values}");
    }
}
