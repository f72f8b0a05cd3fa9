//! queries to expect -> plans, filters and errors.

use std::fmt::Write as _;

use super::test_dir::TestDir;

/// 2000 keys, and a list of 3000 queries with counts of which the last thousand are keys.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.put("keys", (0..2000).map(|i| format!("key{i}\n")).collect::<String>());
    let mut queries = String::new();
    for i in 0..2000 {
        let _ = writeln!(queries, "query{i}\t{}", 1_000_000 / (i + 1));
    }
    (1000..2000).for_each(|i| queries += &format!("key{i}\t7\n"));
    dir.put("queries", queries);
    dir
}

#[test]
fn expected_queries_are_planned_for() {
    let dir = dir();
    let report = dir.run("build keys --workload queries --bits-per-key 12 -o f --json").json(0);
    let expected = &report["workload"];
    assert_eq!((expected["keys"].as_u64(), expected["dropped_members"].as_u64()), (Some(2000), Some(1000)));
    assert_eq!(expected["blank"].as_u64(), Some(0));
    assert!(report["bits_per_key"].as_f64() <= Some(12.0));
    assert_eq!(expected["covered"].as_u64(), Some(2000));
    let rate = |what: &str| expected[what]["workload_fpr"].as_f64().unwrap();
    assert!(rate("measured") < 1e-4 && rate("predicted") < 1e-4, "{expected}");
    // Every expected query that is no key is refused, every key found.
    dir.put("asked", (0..2000).map(|i| format!("query{i}\n")).collect::<String>());
    assert_eq!(dir.run("query f asked -c").text(1), "0\n");
    assert_eq!(dir.run("query f keys -c").text(0), "2000\n");
    let text = dir.run("build keys --workload queries --bits-per-key 12 -o f").text(0);
    for word in ["workload    ", "covered     2,000 keys", "predicted   ", "measured    "] {
        assert!(text.contains(word), "{text}");
    }
}

/// A list of keys is no log: it is not taken for one of which every query is for a new key.
#[test]
fn a_list_without_weights_says_so() {
    let dir = dir();
    dir.put("list", (0..2000).map(|i| format!("query{i}\n")).collect::<String>());
    let line = "build keys --workload list --bits-per-key 12 -o f";
    let text = dir.run(line).text(0);
    let warning = "warning     --workload: all weights are 1; did you mean --exclude? It is taken for a list of keys";
    assert!(text.contains(warning) && text.contains("set --unlisted-share") && text.contains("unlisted 0 %"), "{text}");
    assert_eq!(dir.run("query f list -c").text(1), "0\n");
    assert!(!dir.run(&format!("{line} --unlisted-share .5")).text(0).contains("warning"));
}

/// A log is counted, and makes the same filter as its counts.
#[test]
fn a_log_is_counted() {
    let dir = dir();
    let (mut log, mut counts) = (String::new(), String::new());
    for i in 0..300u32 {
        let count = 600 / (i + 1);
        (0..count).for_each(|_| log += &format!("query{i}\n"));
        counts += &format!("query{i}\t{count}\n");
    }
    dir.put("log", log);
    dir.put("counts", counts);
    dir.run("build keys --workload log --fpr 0.001 -o a").text(0);
    dir.run("build keys --workload counts --fpr 0.001 -o b").text(0);
    assert!(dir.read("a") == dir.read("b"));
}

/// What sort and uniq -c make of a log, and counts behind a blank, make the same filter as counts behind a tab.
#[test]
fn counts_of_other_tools_are_read() {
    let dir = dir();
    let put = |name: &str, line: fn(u32) -> String| dir.put(name, (1..300).map(line).collect::<String>());
    put("tabs", |i| format!("query{i}\t{}\n", 600 / i));
    put("uniq", |i| format!("{:7} query{i}\n", 600 / i));
    put("blanks", |i| format!("query{i} {}\n", 600 / i));
    for name in ["tabs", "uniq", "blanks"] {
        let text = dir.run(&format!("build keys --workload {name} --bits-per-key 9 -o f.{name}")).text(0);
        assert!(text.contains("\nworkload    3,642 queries for 299 keys, "), "{text}");
    }
    assert!(dir.read("f.tabs") == dir.read("f.uniq") && dir.read("f.tabs") == dir.read("f.blanks"));
    put("unclear", |i| format!("{i} query{i}\n"));
    let complaint = dir.run("build keys --workload unclear -o f").complaint();
    assert!(complaint.starts_with("unclear: line 1: \"1 query1\" begins with a number"), "{complaint}");
}

/// The ceiling for unlisted keys is always said, and why it may be needed.
#[test]
fn the_ceiling_is_said() {
    let dir = dir();
    dir.put("cut", (1..1000).map(|i| format!("query{i}\t{}\n", 9000 / i)).collect::<String>());
    for (goal, ceiling) in [
        ("--fpr 0.001", "0.100 % (--fpr)"),
        ("--bits-per-key 9", " (the default of --bits-per-key; --fpr changes it)"),
        ("--workload-fpr 0.001 --fpr 1", "100 % (--fpr)"),
        ("--workload-fpr 0.001", "0.100 % (--workload-fpr; --fpr changes it)"),
        ("--exact", "100 % (--exact)"),
    ] {
        let text = dir.run(&format!("build keys --workload cut {goal} -o f")).text(0);
        let line = text.lines().find(|line| line.starts_with("max fpr     ")).unwrap_or_default();
        assert!(line.ends_with(ceiling), "{text}");
        assert!(text.contains("\nwarning     --unlisted-share: cannot be estimated"), "{text}");
    }
    let report = dir.run("build keys --workload cut --fpr 0.001 -o f --json").json(0);
    assert_eq!(report["workload"]["max_fpr"].as_f64(), Some(0.001));
    assert_eq!(report["workload"]["warnings"].as_array().map(Vec::len), Some(1));
    assert!(report["fpr"].as_f64() <= Some(0.001));
    let text = dir.run("build keys --workload cut --unlisted-share 0.1 -o f").text(0);
    assert!(text.contains("\nmax fpr     1.00 % (") && !text.contains("\nwarning "), "{text}");
}

#[test]
fn plans_are_tables() {
    let dir = dir();
    let text = dir.run("plan keys --workload queries --bits-per-key 10").text(0);
    let head = text.lines().next().unwrap();
    for word in ["kind", "layers", "bits/key", "over bound", "workload fpr", "fpr", "lines"] {
        assert!(head.contains(word), "{text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with('*')).count(), 1, "{text}");
    for name in ["classic-bloom", "fuse ", "ribbon", "stacked-bloom", "chained ", "cascade", "integrated", "steered"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    // What is marked is what is built.
    let plan = dir.run("plan keys --workload queries --bits-per-key 10 --json").json(0);
    let chosen = plan["candidates"].as_array().unwrap().iter().find(|c| c["chosen"] == true).unwrap();
    assert_eq!(plan["kind"], chosen["kind"]);
    let report = dir.run("build keys --workload queries --bits-per-key 10 -o f --json").json(0);
    assert_eq!(report["workload"]["predicted"]["bits_per_key"], chosen["bits_per_key"]);
    assert_eq!(report["workload"]["predicted"]["workload_fpr"], chosen["workload_fpr"]);
    // Without queries, and with one structure.
    assert!(dir.run("plan keys").text(0).lines().any(|line| line.starts_with("*  ribbon")));
    assert!(dir.run("plan keys --kind fuse").text(0).contains("kind fuse was given"));
    assert_eq!(dir.names(), ["f", "keys", "queries", "tmp"]);
}

#[test]
fn bad_expectations_are_refused() {
    let dir = dir();
    for (line, expected) in [
        ("query\t-1", "expected"),
        ("query\tNaN", "expected"),
        ("query\tinf", "expected"),
        ("query\t1e300", "scale the weights down"),
        ("query\tmany", "expected"),
        ("query", "expected"),
    ] {
        dir.put("bad", format!("first\t1\n{line}\n"));
        let complaint = dir.run("build keys --workload bad -o f").complaint();
        assert!(complaint.starts_with("bad: line 2: ") && complaint.contains(expected), "{complaint}");
    }
    let complaint = dir.run("build keys --workload missing -o f").complaint();
    assert!(complaint.contains("missing: no such file"), "{complaint}");
    let complaint = dir.run("build keys --workload-fpr 0.1 -o f").complaint();
    assert!(complaint.contains("--workload"), "{complaint}");
    let complaint = dir.run("build keys --workload queries --fpr 2 -o f").complaint();
    assert!(complaint.contains("--fpr 2: out of range"), "{complaint}");
    let complaint = dir.run("build keys --workload queries --bits-per-key 0.01 -o f").complaint();
    assert!(complaint.contains("too small for 2,000 keys; expected at least "), "{complaint}");
    let complaint =
        dir.run("build keys --workload queries --kind classic-bloom --bits-per-key 16 --fpr 0.0001 -o f").complaint();
    assert!(complaint.contains("; use --kind "), "{complaint}");
    let complaint = dir.run("build keys --workload queries --exclude keys --kind stacked -o f").complaint();
    assert!(complaint.starts_with("--kind stacked: "), "{complaint}");
    assert_eq!(dir.names(), ["bad", "keys", "queries", "tmp"]);
}
