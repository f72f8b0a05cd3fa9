//! plans -> a table whose words agree with each other, and a page that any browser can show.

use super::test_dir::{TestDir, numbers, quickstart};

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.put("keys", numbers(0..6000));
    dir.put("others", numbers(10_000..16_000));
    dir.put("visits", (1..2000).map(|i| format!("q{i}\t{}\n", 100_000 / i)).collect::<String>());
    dir.put("none", "");
    dir
}

/// Checks that every element is closed, in order, and that nothing is fetched or run; returns the text between the tags.
#[track_caller]
fn parse(page: &str) -> String {
    let (mut open, mut text, mut rest) = (vec![], String::new(), page.strip_prefix("<!DOCTYPE html>").unwrap());
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        assert!(!["script", "link", "img", "iframe", "object"].contains(&name), "{tag}");
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') || ["meta", "br"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    for outside in ["http", "//", "@import", "src=", "href=", "url(\"", "NaN", "inf"] {
        assert!(!page.contains(outside), "{outside}");
    }
    text
}

#[test]
fn tables_explain_themselves() {
    let dir = dir();
    let text = dir.run("plan keys --exclude others").text(0);
    let (table, words) = text.split_once("\n\n").unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().trim().split("  ").filter(|cell| !cell.is_empty()).collect();
    assert_eq!(
        head.iter().map(|cell| cell.trim()).collect::<Vec<_>>().join("|"),
        "kind|layers|bits/key|bytes|over bound|fpr|lines"
    );
    for column in head {
        assert!(words.lines().any(|line| line.starts_with(&format!("{} ", column.trim()))), "{column}: {text}");
    }
    // All that cannot exclude keys are on one line, which has the reason once.
    let refused: Vec<&str> = text.lines().filter(|line| line.contains("cannot exclude keys")).collect();
    assert_eq!(refused.len(), 1, "{text}");
    assert!(
        refused[0].starts_with("not possible: ribbon, fuse, fuse4, bloom, ") && !refused[0].contains("kind"),
        "{text}"
    );
    // The bytes are those of the bits.
    let plan = dir.run("plan keys --exclude others --json").json(0);
    for candidate in plan["candidates"].as_array().unwrap().iter().filter(|c| c["reason"].is_null()) {
        let bits = candidate["bits_per_key"].as_f64().unwrap() * 6000.0;
        assert_eq!(candidate["bytes"].as_f64().unwrap(), (bits / 8.0 - 1e-6).ceil(), "{candidate}");
    }
    let text = dir.run("plan keys --exclude others --fpr 1e-12").complaint();
    assert!(text.starts_with("--fpr "), "{text}");
    let text = dir.run("plan keys --workload visits --bits-per-key 9").text(0);
    assert!(text.contains("workload fpr") && text.contains("it covers 1,999 of 1,999 keys of the workload"), "{text}");
}

/// The reason never says that a design is the smallest next to one that is smaller.
#[test]
fn reasons_agree_with_the_table() {
    let dir = dir();
    let deny = quickstart("deny.txt");
    let (mut smaller, mut smallest) = (0, 0);
    for line in [
        format!("plan {deny} --workload visits"),
        format!("plan {deny} --effort fast"),
        format!("plan {deny}"),
        "plan keys --exclude others".to_string(),
        "plan keys --exclude others --exact".to_string(),
    ] {
        let plan = dir.run(&format!("{line} --json")).json(0);
        let reason = plan["reasons"][0].as_str().unwrap();
        let bits = |name: &str| {
            let candidate = plan["candidates"].as_array().unwrap().iter().find(|c| c["kind"] == name);
            candidate.unwrap()["bits_per_key"].as_f64().unwrap()
        };
        let name = plan["kind"].as_str().unwrap();
        assert!(reason.starts_with(&format!("{name} ")), "{reason}");
        let other = reason.split_once(" is smaller: ").map(|(before, _)| before.rsplit(' ').next().unwrap());
        match other {
            Some(other) => {
                smaller += 1;
                assert!(bits(other) < bits(name) && !reason.contains("the smallest"), "{reason}");
            }
            None => {
                smallest += 1;
                assert!(reason.contains("is the smallest that reaches the goal: "), "{reason}");
                let all = plan["candidates"].as_array().unwrap().iter().filter_map(|c| c["bits_per_key"].as_f64());
                assert!(all.fold(f64::INFINITY, f64::min) > bits(name) - 0.001, "{reason}");
            }
        }
    }
    assert!(smaller >= 2 && smallest >= 2, "{smaller} {smallest}");
}

#[test]
fn pages_show_the_plan() {
    let dir = dir();
    for (line, excluded) in [
        ("plan keys", "excluded keys, 0: there are none"),
        ("plan keys --exclude others", "excluded keys, 6,000: none matches"),
        ("plan keys --exclude others --exact", "excluded keys, 6,000: none matches"),
        ("plan keys --exclude others --excluded-fpr 0.1", "excluded keys, 6,000: about "),
        ("plan keys --workload visits --bits-per-key 9", "covered keys, 1,999: none matches"),
        ("plan keys --kind fuse --fpr 1e-9", "excluded keys, 0: there are none"),
    ] {
        let text = dir.run(&format!("{line} --html page")).text(0);
        assert_eq!(text, dir.run(line).text(0));
        let page = String::from_utf8(dir.read("page")).unwrap();
        let words = parse(&page);
        let chosen = text.lines().find_map(|line| line.strip_prefix("*  ")).unwrap();
        let name = chosen.split_whitespace().next().unwrap();
        assert!(!chosen.contains(" -"), "no design is below its bound: {text}");
        for what in [excluded, "members, 6,000: all match", "unlisted keys: about ", "lower bound", name] {
            assert!(words.contains(what), "{line}: {what}");
        }
        // Curves of all designs, one of them chosen, with the bound and one point.
        let count = |what: &str| page.matches(what).count();
        assert_eq!([count("curve chosen\""), count("<circle "), count("curve bound\"")], [1; 3], "{line}");
        assert!(count("<polyline ") > usize::from(!line.contains("--kind")) * 5 + 1, "{line}");
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
        assert!(count("<rect class=\"positive\" x=") + count("<rect class=\"exact\" x=") > 0, "{line}");
    }
    // A page may go to standard output, the report then goes to standard error.
    let run = dir.run("plan keys --html -");
    assert!(run.code == Some(0) && run.err.contains("bits/key"), "{}", run.err);
    parse(&String::from_utf8(run.out).unwrap());
    let report = dir.run("plan keys --html page --json").json(0);
    assert_eq!((&report["kind"], &report["file"]), (&"ribbon".into(), &"page".into()));
}

#[cfg(unix)]
#[test]
fn names_with_markup_are_escaped() {
    let dir = dir();
    let name = "<script>alert('1')&\"x\".txt";
    dir.put(name, numbers(0..6000));
    let run = dir.command("plan --html page").args([name, "--exclude", "others"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let page = String::from_utf8(dir.read("page")).unwrap();
    parse(&page);
    assert!(page.contains("<code>&lt;script&gt;alert(&#39;1&#39;)&amp;&quot;x&quot;.txt</code>"), "{page}");
}

#[test]
fn pages_that_cannot_be_made() {
    let dir = dir();
    dir.put("page", "as it was");
    for (line, expected) in [
        ("plan keys --html nowhere/page", "--html nowhere/page: no directory nowhere; expected one that exists"),
        ("plan keys --html tmp", "--html tmp: is a directory; expected a file to write"),
        ("plan keys --html keys", "--html keys: is a file of keys; expected another file for the page"),
        ("plan none --allow-empty --html page", "--html: no keys to plan for; expected at least one"),
        (
            "plan keys --bits-per-key 0.1 --html page",
            "--bits-per-key 0.1: too small for 6,000 keys; expected at least ",
        ),
        ("plan keys --exclude others --fpr 1e-12 --html page", "--fpr 1e-12: too small for "),
        ("plan keys --kind fuse --exclude others --html page", "--kind fuse: cannot exclude keys; expected "),
        (
            "plan keys --exclude none --allow-empty --exact --html page",
            "--exclude: no excluded key is left, so every key would match",
        ),
        ("plan missing --html page", "missing: "),
        ("plan missing.csv --column a --partition-column b", "--partition-column: not possible with plan; expected "),
    ] {
        let message = dir.error(line);
        assert!(message.starts_with(expected), "{line}: {message}");
        assert_eq!(dir.read("page"), b"as it was", "{line}");
    }
    #[cfg(target_os = "linux")]
    assert!(dir.error("plan keys --html /dev/full").starts_with("/dev/full: "));
}
