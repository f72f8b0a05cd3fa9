//! the options of `build` -> what they promise.

use std::fs;

use crate::test_dir::{TestDir, numbers, quickstart};

#[test]
fn equal_bytes_for_any_threads_and_memory() {
    let dir = TestDir::new();
    // Two shards, and ten times what 4 MiB hold.
    dir.put("keys.txt", numbers(0..1_600_000));
    dir.run("build --integers --threads 1 keys.txt -o one.tamis").text(0);
    dir.run("build --integers --threads 2 --memory 4M --tmp tmp keys.txt -o two.tamis").text(0);
    assert!(dir.read("one.tamis") == dir.read("two.tamis"));
    assert_eq!(dir.run("inspect --json two.tamis").json(0)["shards"], 2);
    assert_eq!(dir.names(), ["keys.txt", "one.tamis", "tmp", "two.tamis"]);
    dir.run("verify --integers two.tamis --keys keys.txt").text(0);
    dir.run("build --integers --threads 2 --seed 1 keys.txt -o two.tamis").text(0);
    assert!(dir.read("one.tamis") != dir.read("two.tamis"));

    dir.run("build --integers --threads 1024 keys.txt -o two.tamis").text(0);
    assert!(dir.read("one.tamis") == dir.read("two.tamis"));

    // Temporary files would be larger than allowed.
    let message = dir.error("build --integers --memory 4M --disk 1M keys.txt -o out.tamis");
    assert_eq!(message, "--disk 1048576: too small for the temporary files; expected a higher limit of disk or memory");
}

#[test]
fn keyed_filters_differ_and_keep_their_secret() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\ntwo\nthree\n");
    for name in ["a.tamis", "b.tamis"] {
        dir.run(&format!("build --secret keys.txt -o {name}")).text(0);
        dir.run(&format!("verify {name} --keys keys.txt")).text(0);
    }
    let (a, b) = (dir.read("a.tamis"), dir.read("b.tamis"));
    let [secret, other] = [&a, &b].map(|file| {
        // Behind the number and the length of the first section, and four bytes of the head.
        let footer = file.len() - 32;
        let directory = footer - u32::from_le_bytes(file[footer..footer + 4].try_into().unwrap()) as usize;
        assert_eq!((file[directory], file[directory + 3]), (1, 1));
        &file[directory + 6..directory + 22]
    });
    assert_ne!(secret, other);
    let text = dir.run("inspect a.tamis").text(0);
    let json = dir.run("inspect --json a.tamis").json(0);
    assert!(text.contains("SipHash-2-4-128, secret\n"), "{text}");
    assert_eq!((json["hash"].as_str(), json["seed"].is_null()), (Some("siphash-2-4-128"), true));
    for word in secret.chunks(8) {
        let word = u64::from_le_bytes(word.try_into().unwrap());
        let forms = [word.to_string(), format!("{word:x}"), format!("{:x}", word.swap_bytes())];
        for form in forms {
            assert!(!text.contains(&form) && !json.to_string().contains(&form));
        }
    }
    assert!(dir.error("build --secret --seed 1 keys.txt -o out.tamis").contains("cannot be used with"));
}

/// Builds the deny list with these options; the rate and the bits per key it has.
fn build(dir: &TestDir, options: &str) -> (f64, f64) {
    let report = dir.run(&format!("build {} {options} -o out.tamis --json", quickstart("deny.txt"))).json(0);
    let deny = dir.run(&format!("query -c out.tamis {}", quickstart("deny.txt"))).text(0);
    assert_eq!(deny, "93514\n", "{options}");
    let rate = report["fpr"].as_f64().unwrap();
    let strangers = dir.feed("query -c out.tamis", numbers(0..50_000)).out;
    let strangers: f64 = String::from_utf8(strangers).unwrap().trim().parse().unwrap();
    // Six standard deviations of a binomial.
    let (mean, deviation) = (50_000.0 * rate, (50_000.0 * rate * (1.0 - rate)).sqrt());
    assert!((strangers - mean).abs() <= 6.0 * deviation + 1.0, "{options}: {strangers}; expected {mean}");
    (rate, report["bits_per_key"].as_f64().unwrap())
}

#[test]
fn rates_are_kept() {
    let dir = TestDir::new();
    let mut before = f64::INFINITY;
    for fpr in [1e-4, 0.001, 0.02, 0.4] {
        let (rate, bits) = build(&dir, &format!("--fpr {fpr}"));
        assert!(rate <= fpr && rate > 0.9 * fpr, "{fpr}: {rate}");
        assert!(bits < before && bits > -rate.log2(), "{fpr}: {bits}");
        before = bits;
    }
}

#[test]
fn budgets_are_kept() {
    let dir = TestDir::new();
    for budget in [2.0, 7.5, 12.0] {
        let (rate, bits) = build(&dir, &format!("--bits-per-key {budget}"));
        // The planner knows the size of a ribbon to within half a percent.
        assert!(bits <= budget * 1.005 && bits > 0.97 * budget, "{budget}: {bits}");
        assert!(rate < 1.1 * (-0.95 * budget).exp2(), "{budget}: {rate}");
    }
    let message = dir.error(&format!("build {} --bits-per-key 0.01 -o x.tamis", quickstart("deny.txt")));
    assert!(message.starts_with("--bits-per-key 0.01: too small for 93,514 keys; expected at least "), "{message}");
    dir.put("one", "a");
    let message = dir.error("build one --bits-per-key 9 -o x");
    assert!(message.starts_with("--bits-per-key 9: too small for 1 key; expected at least "), "{message}");
    let message = dir.error("build --bits-per-key 9 --fpr 0.1 -o x.tamis");
    assert_eq!(message, "--fpr, --bits-per-key: two goals; expected one, or --workload with --fpr as its ceiling");
}

#[test]
fn every_kind_and_effort_works() {
    let dir = TestDir::new();
    for (options, structure) in [
        ("--kind auto", "ribbon"),
        ("--kind ribbon", "ribbon"),
        ("--kind fuse", "binary fuse"),
        ("--kind fuse4", "binary fuse"),
        ("--kind bloom", "split-block Bloom"),
        ("--kind classic-bloom", "classic Bloom"),
        ("--kind cuckoo", "cuckoo"),
        ("--kind cuckoo --effort smallest", "cuckoo"),
        ("--kind quotient", "quotient"),
        ("--effort fast", "binary fuse"),
        ("--effort balanced", "ribbon"),
        ("--effort smallest", "ribbon"),
    ] {
        let (rate, _) = build(&dir, options);
        assert!(rate <= 0.01, "{options}: {rate}");
        assert_eq!(dir.run("inspect --json out.tamis").json(0)["layers"][0]["structure"], structure, "{options}");
    }
    let (_, balanced) = build(&dir, "--effort balanced");
    assert!(build(&dir, "--effort smallest").1 < balanced && build(&dir, "--effort fast").1 > balanced);
}

#[test]
fn few_keys_are_a_filter_too() {
    let dir = TestDir::new();
    for (input, keys, duplicates, blank) in
        [("", 0, 0, 0), ("\n\n", 0, 0, 2), ("one\n", 1, 0, 0), ("a\na\na\n", 1, 2, 0)]
    {
        for (kind, _) in tamis::Kind::ALL {
            let report = dir.feed(&format!("build --kind {kind} --allow-empty --json -o out.tamis"), input).json(0);
            assert_eq!(
                (&report["keys"], &report["duplicates"]),
                (&keys.into(), &duplicates.into()),
                "{kind} {input:?}"
            );
            assert_eq!(report["blank"], blank, "{kind} {input:?}");
            dir.feed("verify out.tamis --allow-empty --keys -", input).text(0);
        }
    }
    // A filter of nothing lets nothing through, whatever it is asked for.
    assert!(dir.run("build -o empty.tamis --allow-empty").text(0).contains("fpr         0 % ("));
    dir.feed("query empty.tamis", numbers(0..1000)).text(1);
    dir.feed("query --integers empty.tamis", numbers(0..1000)).text(1);
    let answer = dir.feed("verify --integers --json empty.tamis --keys -", "5\n").json(1);
    assert_eq!(answer["false_negatives"], 1);
}

#[test]
fn the_output_is_replaced_when_it_is_complete() {
    let dir = TestDir::new();
    dir.put("keys.txt", "1\n2\n");
    dir.put("bad.txt", "1\ntwo\n");
    dir.put("out.tamis", "old");
    assert_eq!(dir.error("build --integers keys.txt bad.txt -o out.tamis").split(':').next(), Some("bad.txt"));
    assert_eq!(dir.read("out.tamis"), b"old");
    dir.run("build --integers keys.txt -o out.tamis").text(0);
    dir.run("verify --integers out.tamis --keys keys.txt").text(0);
    // A list of keys is not overwritten by its own filter, under whatever name.
    let message = dir.error("build keys.txt -o tmp/../keys.txt");
    assert_eq!(message, "-o tmp/../keys.txt: is a file of keys; expected another file for the filter");
    assert_eq!(dir.read("keys.txt"), b"1\n2\n");
}

#[test]
fn a_filter_may_go_to_standard_output() {
    let dir = TestDir::new();
    dir.put("keys.txt", "one\ntwo\n");
    dir.run("build keys.txt -o file.tamis").text(0);
    for output in ["-", if cfg!(target_os = "linux") { "/dev/stdout" } else { "-" }] {
        let run = dir.run(&format!("build keys.txt -o {output}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.out == dir.read("file.tamis"), "{output}");
        assert!(run.err.starts_with("keys        2, 0 duplicates dropped\n"), "{}", run.err);
    }
    let mut child = dir.command(&format!("build {} -o -", quickstart("deny.txt"))).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "half a filter is no success");
    assert!(message.starts_with("tamis: standard output: ") && message.lines().count() == 1, "{message}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_file_is_replaced() {
    let dir = TestDir::new();
    dir.put("tmp/real", "old");
    std::os::unix::fs::symlink("tmp/real", dir.path("link.tamis")).unwrap();
    dir.feed("build -o link.tamis", "one\n").text(0);
    assert!(fs::symlink_metadata(dir.path("link.tamis")).unwrap().is_symlink());
    dir.feed("verify tmp/real --keys -", "one\n").text(0);
}

/// Room for keys to come, in all or as a share.
#[test]
fn capacity_is_a_number_or_a_share() {
    let dir = TestDir::new();
    dir.put("keys", (0..1000).map(|i| format!("key{i}\n")).collect::<String>());
    for (capacity, least) in [("1500", 1500), ("+50%", 1500), ("1000", 1000)] {
        dir.run(&format!("build keys --kind cuckoo --capacity {capacity} -o f.tamis")).text(0);
        let mut filter = tamis::Cuckoo::restore(dir.read("f.tamis")).unwrap();
        (1000..least).for_each(|i| filter.insert(format!("key{i}")).unwrap());
        assert_eq!(filter.len(), least as u64, "{capacity}");
    }
    for wrong in ["+50", "50%", "-1", "+-1%", "many"] {
        let message = dir.error(&format!("build keys --kind cuckoo --capacity={wrong} -o x.tamis"));
        assert!(message.contains("like 120000, or a share more, like +20%"), "{wrong}: {message}");
    }
    let message = dir.error("build keys --capacity 2000 -o x.tamis");
    assert!(message.starts_with("--capacity: keys cannot be inserted with --kind auto; expected bloom"), "{message}");
}
