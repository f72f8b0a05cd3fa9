//! diff, patch, query --patch -> yesterday's file answers as today's lists say.

use crate::test_dir::{TestDir, numbers};

/// Lists of three days, and the filter of the first.
fn dir() -> TestDir {
    let dir = TestDir::new();
    for (day, (members, excluded)) in
        [(0..2000, 2000..9000), (5..2003, 2003..9000), (300..2300, 2300..9500)].iter().enumerate()
    {
        dir.put(&format!("keys{day}"), numbers(members.clone()));
        let before = numbers(0..members.start);
        dir.put(&format!("excluded{day}"), before + &numbers(excluded.clone()));
    }
    dir.run("build keys0 --exclude excluded0 --exact -o base").text(0);
    dir
}

#[test]
fn two_days_of_patches() {
    let dir = dir();
    let report = dir.run("diff base --keys keys1 --exclude excluded1 -o p1").text(0);
    assert!(
        report.starts_with("changed     8 keys, 8,992 unchanged\nfile        p1: patch 1\nsize        "),
        "{report}"
    );
    let report = dir.run("diff base --patch p1 --keys keys2 --exclude excluded2 -o p2 --json").json(0);
    assert_eq!((&report["number"], &report["rebuild"]), (&2.into(), &false.into()), "{report}");
    assert!(report["changed"].as_u64() > Some(590) && report["fpr_with_patches"].as_f64() > report["fpr"].as_f64());
    let run = |line: &str, code| dir.run(line).text(code);
    assert_eq!(run("query base --patch p1 -c keys1", 0), "1998\n");
    assert_eq!(run("query base --patch p1 -c excluded1", 1), "0\n");
    assert_eq!(run("query base --patch p1 --patch p2 -c keys2", 0), "2000\n");
    assert_eq!(run("query base --patch p1 --patch p2 -c excluded2", 1), "0\n");
    let report = run("patch base p1 p2 -o today", 0);
    assert!(report.starts_with("file        today: a filter with 2 patches\nsize        "), "{report}");
    let verified = run("verify today --keys keys2 --exclude excluded2", 0);
    assert!(
        verified.contains("2,000 checked, 0 false negatives") && verified.contains(", 0 false positives"),
        "{verified}"
    );
    // One patch after the other gives the same file.
    run("patch base p1 -o tuesday -q", 0);
    assert_eq!(run("query tuesday --patch p2 -c keys2", 0), "2000\n");
    run("patch tuesday p2 -o again -q", 0);
    assert!(dir.read("again") == dir.read("today"));
    run("patch tuesday p2 -o tuesday -q", 0);
    assert!(dir.read("tuesday") == dir.read("today"));
    let shown = run("inspect today", 0);
    assert!(shown.contains("\npatch 1     8 keys changed, ") && shown.contains("\npatch 2     "), "{shown}");
    let shown = run("inspect p2", 0);
    assert!(shown.starts_with("file        p2: patch, format version 1\nidentity    "), "{shown}");
    assert!(shown.contains("\nchanged     707 "), "{shown}");
    assert!(shown.contains("\nnumber      2 of its chain\n"), "{shown}");
    assert_eq!(dir.run("inspect p1 --json").json(0)["changed"], 8);
}

#[test]
fn verify_checks_listed_keys_through_a_chain() {
    let dir = dir();
    dir.run("diff base --keys keys1 --exclude excluded1 -o p1").text(0);
    dir.run("diff base --patch p1 --keys keys2 --exclude excluded2 -o p2").text(0);
    let chain = "verify base --patch p1 --patch p2 --keys keys2 --exclude excluded2";
    let report = dir.run(chain).text(0);
    let expected = "checksum    right\nkeys        2,000 checked, 0 false negatives\nexcluded    7,500 checked, 0 false positives\n\
                    delisted    0 to about 400 earlier members in neither list still match\n";
    assert_eq!(report, expected);
    // The lists of the second day are wrong on the third.
    let report = dir.run("verify base --patch p1 --patch p2 --keys keys1 --json").json(1);
    assert_eq!((&report["checked"], &report["false_negatives"]), (&1998.into(), &295.into()));
    assert!(dir.error("verify base --patch p2 --keys keys2").starts_with("p2: number 2 of its chain"));
    dir.put("cut", &dir.read("p1")[..60]);
    assert!(dir.run("verify base --patch cut").failure(3).starts_with("cut: truncated or damaged: "));
}

/// 100 members are taken off the list: they match until the old list is given, and every command about the patch says so.
#[test]
fn delisted_keys_are_counted_or_turned_off() {
    let dir = TestDir::new();
    dir.put("old", numbers(0..2000));
    dir.put("gone", numbers(0..100));
    dir.put("keys", numbers(100..2000));
    dir.put("excluded", numbers(2000..9000));
    for goal in ["", "--exact", "--fpr 0.0001"] {
        dir.run(&format!("build old --exclude excluded {goal} -o base")).text(0);
        let lists = "--keys keys --exclude excluded";
        let report = dir.run(&format!("diff base {lists} -o p")).text(0);
        let line = "\ndelisted    100 earlier members in neither list still match";
        assert!(report.contains(&format!("{line}; see --old-keys\n")), "{goal}: {report}");
        assert_eq!(dir.run("query base --patch p -c gone").text(0), "100\n", "{goal}");
        dir.run(&format!("diff base --patch p {lists} -o again")).text(0);
        for command in [
            "patch base p -o today".to_string(),
            "inspect p".into(),
            "inspect today".into(),
            "inspect again".into(),
            format!("verify today {lists}"),
            format!("verify base --patch p --patch again {lists}"),
        ] {
            let text = dir.run(&command).text(0);
            assert!(text.contains(&format!("{line}\n")), "{goal}: {command}: {text}");
            if !command.contains("-o") {
                let fields = dir.run(&format!("{command} --json")).json(0);
                let fields = fields["chain"].as_array().map_or(&fields, |chain| &chain[0]);
                assert_eq!(
                    (&fields["delisted_min"], &fields["delisted_max"]),
                    (&100.into(), &100.into()),
                    "{goal}: {command}"
                );
            }
        }
        let report = dir.run(&format!("diff base {lists} --old-keys old -o p --json")).json(0);
        assert_eq!((&report["delisted_max"], &report["members"]), (&0.into(), &1900.into()), "{goal}");
        assert_eq!(dir.run("query base --patch p -c gone").text(1), "0\n", "{goal}");
        assert_eq!(dir.run("query base --patch p -c keys").text(0), "1900\n", "{goal}");
        // Also those that an earlier patch left.
        dir.run(&format!("diff today {lists} --old-keys old -o next")).text(0);
        assert_eq!(dir.run("query today --patch next -c gone").text(1), "0\n", "{goal}");
        assert!(!dir.run("inspect next").text(0).contains("delisted"), "{goal}");
    }
    // A filter without excluded keys has patches too.
    dir.run("build old -o base").text(0);
    dir.run("diff base --keys keys --old-keys old -o p").text(0);
    assert_eq!(dir.run("query base --patch p -c gone").text(1), "0\n");
    assert_eq!(dir.run("query base --patch p -c keys").text(0), "1900\n");
}

#[test]
fn on_conflict_decides_what_a_key_of_both_lists_is() {
    let dir = dir();
    // 0 to 4 are members of the base, 2000 to 2299 are not; all of them are in both lists now.
    dir.put("both", numbers(0..5) + &numbers(2000..2300));
    for (what, members, excluded) in [("keep", "305\n", "6700\n"), ("drop", "0\n", "7000\n")] {
        let lists = "--keys keys0 --keys both --exclude excluded0 --exclude both";
        dir.run(&format!("diff base {lists} --on-conflict {what} -o p")).text(0);
        assert_eq!(dir.run("query base --patch p -c both").text((what == "drop") as i32), members);
        assert_eq!(dir.run("query base --patch p -v -c excluded0").text(0), excluded);
        let report = dir.run(&format!("verify base --patch p {lists} --on-conflict {what}")).text(0);
        assert!(report.contains("0 false negatives") && report.contains("0 false positives"), "{report}");
        // As many as a list of digests holds.
        dir.put("few", numbers(0..3) + &numbers(2000..2004));
        dir.run(&format!(
            "diff base --keys keys0 --keys few --exclude excluded0 --exclude few --on-conflict {what} -o p"
        ))
        .text(0);
        assert_eq!(
            dir.run("query base --patch p -c few").text((what == "drop") as i32),
            if what == "keep" { "7\n" } else { "0\n" }
        );
    }
    let error = dir.error("diff base --keys keys1 --on-conflict keep -o p");
    assert!(error.contains("--exclude"), "{error}");
}

#[test]
fn a_rebuild_is_advised_above_a_rate() {
    let dir = dir();
    let run = |more: &str| dir.run(&format!("diff base --keys keys2 --exclude excluded2 -o p {more}")).text(0);
    assert!(!run("").contains("advice"));
    let advice = run("--max-fpr 1%").lines().last().map(String::from);
    let expected = "advice      build the filter again: the fpr with all patches is above 1.00 %";
    assert_eq!(advice.as_deref(), Some(expected));
    let [any, low] = ["", "--fpr 0.0001"].map(|more| {
        dir.run(&format!("diff base --keys keys2 --exclude excluded2 -o p --json {more}")).json(0)["fpr"]
            .as_f64()
            .unwrap()
    });
    assert!(any > 0.001 && low <= 0.0001, "{any} {low}");
}

#[test]
fn partitions_and_secrets() {
    let dir = TestDir::new();
    let table = |rows: &[(&str, std::ops::Range<u64>)]| {
        let lines = rows.iter().flat_map(|(issuer, serials)| serials.clone().map(move |s| format!("{s}\t{issuer}\n")));
        format!("serial\tissuer\n{}", lines.collect::<String>())
    };
    dir.put("k0.tsv", table(&[("one", 0..500), ("two", 0..50)]));
    dir.put("x0.tsv", table(&[("one", 500..3000), ("two", 50..300)]));
    dir.put("k1.tsv", table(&[("one", 3..510), ("two", 0..50), ("three", 0..4)]));
    dir.put("x1.tsv", table(&[("one", 0..3), ("one", 510..3000), ("two", 50..300), ("three", 4..9)]));
    let columns = "--column serial --partition-column issuer --integers";
    dir.run(&format!("build k0.tsv --exclude x0.tsv {columns} --exact --secret -o base")).text(0);
    dir.run(&format!("diff base --keys k1.tsv --exclude x1.tsv {columns} -o p")).text(0);
    assert_eq!(dir.run(&format!("query base --patch p -c k1.tsv {columns}")).text(0), "561\n");
    assert_eq!(dir.run(&format!("query base --patch p -c x1.tsv {columns}")).text(1), "0\n");
    dir.put("serials", numbers(0..20));
    assert_eq!(dir.run("query base --patch p --partition three --integers -c serials").text(0), "4\n");
    assert!(dir.run("query base --partition three --integers serials").failure(5).contains("no partition \"three\""));
    dir.run("patch base p -o today").text(0);
    dir.run(&format!("verify today --keys k1.tsv --exclude x1.tsv {columns}")).text(0);
    let error = dir.error("diff base --keys serials -o q --integers");
    assert!(error.contains("the filter is partitioned; expected --partition-column NAME"), "{error}");
}

#[test]
fn what_does_not_fit_is_named() {
    let dir = dir();
    dir.run("diff base --keys keys1 --exclude excluded1 -o p1").text(0);
    dir.run("diff base --patch p1 --keys keys2 --exclude excluded2 -o p2").text(0);
    dir.run("build keys1 --exclude excluded1 --exact -o other").text(0);
    dir.put("cut", &dir.read("p2")[..100]);
    let lists = "--keys keys2 --exclude excluded2 -o new";
    for (line, expected) in [
        ("query other --patch p1 keys0", "p1: made for the file "),
        ("query base --patch p2 keys0", "p2: number 2 of its chain; expected number 1"),
        ("query base --patch p1 --patch p1 keys0", "p1: number 1 of its chain; expected number 2"),
        ("patch base p2 p1 -o new", "p2: number 2 of its chain; expected number 1"),
        ("patch p1 base -o new", "p1: holds a patch; expected a filter; use it with --patch behind its filter"),
        ("query base --patch other keys0", "other: holds a filter; expected a patch"),
        (&format!("diff p1 {lists}"), "p1: holds a patch; expected a filter"),
        (
            &format!("diff base {lists} --integers"),
            "--integers: the keys of base are text; expected text, without this option",
        ),
        ("diff base -o new", "--keys, --exclude: no lists; expected the members and the excluded keys of today"),
        ("diff base --keys keys1 -o keys1", "-o keys1: is a file of keys; expected another file for the patch"),
        ("diff base --keys keys1 -o base", "-o base: is the filter or a patch of it; expected another file"),
        ("query base --patch missing keys0", "missing: no such file; expected a patch file"),
    ] {
        let error = dir.error(line);
        assert!(error.starts_with(expected), "{line}: {error}");
    }
    assert!(dir.run("query base --patch p1 --patch cut keys0").failure(3).starts_with("cut: truncated or damaged: "));
    let conflict = dir.run("diff base --keys keys1 --exclude keys0 -o new").failure(4);
    let expected =
        "--exclude: 1,995 keys are also members; expected none; use --on-conflict keep (they stay members) or drop";
    assert!(conflict.starts_with(expected), "{conflict}");
    let thousand = "--patch p1 ".repeat(1000);
    let error = dir.error(&format!("query base {thousand} keys0"));
    assert!(error.contains("number 1 of its chain; expected number 2"), "{error}");
}
