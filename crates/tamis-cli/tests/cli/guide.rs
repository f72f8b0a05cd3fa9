//! README and guide -> every command in them runs and prints what is shown, and every number has a command; all documents -> links, and
//! names of files and functions, lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::test_dir::{Run, TestDir};

/// A number may differ by this share from the one that is shown: a better plan need not change every page at once.
const TOLERANCE: f64 = 0.05;

/// Fractions, such as percents above a bound, may differ by this much.
const FRACTION_TOLERANCE: f64 = 0.2;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and the pages of the guide.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let guide = fs::read_dir(root.join("docs/guide")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = guide.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages.push(root.join("README.md"));
    pages
}

/// Text without its numbers, and the numbers: `1,234 of 5 %` is ` of  %`, 1234 and 5.
fn numbers_of(line: &str) -> (String, Vec<f64>) {
    let (mut text, mut digits, mut numbers) = (String::new(), String::new(), Vec::new());
    for c in line.chars().chain([' ']) {
        if c.is_ascii_digit() || (matches!(c, ',' | '.') && !digits.is_empty()) {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            let number = digits.trim_end_matches([',', '.']);
            text += &digits[number.len()..];
            numbers.extend(number.replace(',', "").parse::<f64>());
            text.push('#');
            digits.clear();
        }
        text.push(c);
    }
    (text, numbers)
}

/// Whether a line of output is the one that is shown; `..` at its end stands for anything.
fn alike(shown: &str, printed: &str) -> bool {
    if let Some(start) = shown.strip_suffix("..") {
        return printed.starts_with(start);
    }
    let ((shown, numbers), (printed, others)) = (numbers_of(shown), numbers_of(printed));
    let near = |(a, b): (&f64, &f64)| {
        let (distance, fractions) = ((a - b).abs(), a.fract() != 0.0 && b.fract() != 0.0);
        distance <= TOLERANCE * a.max(*b) || (fractions && distance <= FRACTION_TOLERANCE)
    };
    shown == printed && numbers.len() == others.len() && numbers.iter().zip(&others).all(near)
}

/// Commands behind `$` in the `console` blocks of a page, each with what is shown below it. Data that are not in the repository are
/// in the folder `TAMIS_DATA`; without one their blocks are skipped.
fn commands(page: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for block in page.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap()) {
        if block.contains("$TAMIS_DATA") && std::env::var_os("TAMIS_DATA").is_none() {
            eprintln!("skipped, TAMIS_DATA names no folder: {}", block.lines().next().unwrap());
            continue;
        }
        let mut lines = block.lines();
        while let Some(line) = lines.next() {
            if let Some(start) = line.strip_prefix("$ ") {
                let mut command = start.to_string();
                while command.ends_with('\\') {
                    command += "\n";
                    command += lines.next().unwrap();
                }
                commands.push((command, Vec::new()));
            } else {
                commands.last_mut().unwrap().1.push(line);
            }
        }
    }
    commands
}

#[test]
fn commands_print_what_is_shown() {
    let data = root().join("data");
    let (mut total, mut wrong) = (0, Vec::new());
    for page in pages() {
        let dir = TestDir::new();
        std::os::unix::fs::symlink(&data, dir.path("data")).unwrap();
        for (command, shown) in commands(&fs::read_to_string(&page).unwrap()) {
            // `cargo run --release -- ..` is the program; what else cargo does is not run here.
            let tamis = format!("tamis() {{ '{}' \"$@\"; }}", env!("CARGO_BIN_EXE_tamis"));
            let cargo = "cargo() { [ \"$1 $3\" = \"run --\" ] || return 0; shift 3; tamis \"$@\"; }";
            dir.put("example.sh", format!("{tamis}\n{cargo}\n{command}\n"));
            let run = Run::from(dir.around("sh", "example.sh").output().unwrap());
            let printed = String::from_utf8(run.out).unwrap() + &run.err;
            let any = shown == [".."];
            let same =
                shown.len() == printed.lines().count() && shown.iter().zip(printed.lines()).all(|(a, b)| alike(a, b));
            if !any && !same {
                let shown = shown.join("\n");
                wrong.push(format!("{}: $ {command}\nshown:\n{shown}\nprinted:\n{printed}", page.display()));
            }
            total += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(total > 9, "{total}");
}

/// Text with one word for every piece of code, and without the targets of links.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        out += if i % 2 == 0 { piece } else { "code" };
    }
    let mut links = out.split("](");
    let mut out = links.next().unwrap_or_default().to_string();
    for rest in links {
        out += "]";
        out += rest.split_once(')').map_or("", |(_, after)| after);
    }
    out
}

/// Sums: bytes of a filter, and 4 for each exception in a list.
const LISTS: [(&str, &str, &str); 4] = [
    ("80,826", "79,622", "301"),
    ("51,270", "33,990", "4,320"),
    ("28,922", "23,458", "1,366"),
    ("39,320", "0", "9,830"),
];

/// Numbers that no command prints: ratios of printed ones, and what the code or another test has.
const OTHERS: [(&str, &str); 14] = [
    ("1.89", "rust-version in Cargo.toml"),
    ("3.10", "requires-python in crates/tamis-python/pyproject.toml"),
    ("3.11", "the first Python whose stable interface has buffers"),
    ("4.1", "the first Spark with functions of Arrow columns"),
    ("1.8", "117,902 / 65,909"),
    ("1.44", "log2(e)"),
    ("190,215", "189,906 + 309"),
    ("16,384", "the sketch of excluded keys is exact up to here"),
    ("0.8", "its standard deviation"),
    ("1.42", "GUARD of the planner"),
    ("120", "tests/cli/memory.rs"),
    ("220", "tests/cli/memory.rs"),
    ("320", "build with --kind naive, a million keys and five million excluded ones"),
    ("1.2", "tests/it/chosen.rs, as 2.5, which is also 2^24 shards of 1.5 million keys"),
];

/// The number, or none that equals another: addresses have digits, too.
fn value(number: &str) -> f64 {
    number.replace(',', "").parse().unwrap_or(f64::NAN)
}

/// Every number in the text and tables of a page stands in what a command prints there, or in benchmarks.md below its command.
#[test]
fn every_number_has_a_command() {
    let number = |word: &str| {
        let start = word.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = start.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(start.len());
        start[..end].trim_end_matches([',', '.']).to_string()
    };
    let numbers = |text: &str| text.split_whitespace().map(number).filter(|n| !n.is_empty()).collect::<Vec<_>>();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let mut printed: Vec<f64> = numbers(&read(&root().join("docs/benchmarks.md"))).iter().map(|n| value(n)).collect();
    for page in pages() {
        let text = read(&page);
        let blocks = text.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
        blocks.for_each(|block| printed.extend(numbers(block).iter().map(|n| value(n))));
    }
    for (sum, filter, exceptions) in LISTS {
        assert!(value(sum) == value(filter) + 4.0 * value(exceptions) && printed.contains(&value(exceptions)), "{sum}");
    }
    assert!(read(&root().join("Cargo.toml")).contains("rust-version = \"1.89\""));
    let known = |n: &String| {
        printed.contains(&value(n)) || LISTS.iter().any(|list| list.0 == n) || OTHERS.iter().any(|other| other.0 == n)
    };
    let (mut all, mut wrong) = (0, vec![]);
    for page in pages() {
        let text = read(&page);
        let text: Vec<&str> = text.split("```").step_by(2).flat_map(str::lines).collect();
        // Numbers of one or two digits are ordinary words.
        for n in numbers(&plain(&text.join("\n"))).iter().filter(|n| n.len() > 2) {
            all += 1;
            if !known(n) && n != "2.5" {
                wrong.push(format!("{}: {n}", page.display()));
            }
        }
    }
    assert!(all > 50 && wrong.is_empty(), "{all} numbers, without a command:\n{}", wrong.join("\n"));
}

/// The table of sizes in benchmarks.md, which README and guide quote, is what its command prints.
#[test]
fn the_table_of_sizes_is_that_of_its_command() {
    let text = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
    let table = text.split("### Sizes").nth(1).unwrap().split("![").next().unwrap();
    let dir = TestDir::new();
    dir.put("keys.txt", (1..=1_000_000).map(|key| format!("{key}\n")).collect::<String>());
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| `") && !line.contains("bits per key")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = cells[1].split('`').nth(1).unwrap();
        let effort = if cells[1].contains("--effort smallest") { "--effort smallest" } else { "" };
        let line = format!("build keys.txt --integers --fpr 0.00390625 --kind {kind} {effort} -o k.tamis --json");
        let found = dir.run(&line).json(0)["bits_per_key"].as_f64().unwrap();
        assert!((found / value(cells[2]) - 1.0).abs() < 0.01, "{row}: {found}");
        rows += 1;
    }
    assert!(rows >= 8, "{rows}");
}

/// Files of the repository whose names end like this; without hidden folders, but with the scripts of `.ci`.
fn files(ends: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (vec![], vec![root(), root().join(".ci")]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if path.is_file() && ends.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A document without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The names of headings, as anchors have them: small letters, no punctuation, and a number from the second of a name on.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = vec![];
    for heading in prose(text).lines().filter(|line| line.starts_with('#')) {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name: String = heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// Where the links of a document lead: `[text](target)`, and `[key]: target` on a line of its own.
fn targets(text: &str) -> Vec<String> {
    // Code may look like a link, and is none; a link whose text is code is one.
    let text: String =
        prose(text).split('`').enumerate().map(|(i, piece)| if i % 2 == 0 { piece } else { "code" }).collect();
    let inline = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    let defined = text.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    inline.chain(defined.map(|(_, target)| target)).map(str::to_string).collect()
}

/// What is wrong with the links of a document.
fn wrong_links(page: &Path, text: &str) -> Vec<String> {
    let wrong = |target: &String| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { page.to_path_buf() } else { page.parent().unwrap().join(file) };
        let leads = || {
            path.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|name| name == anchor)))
        };
        !target.contains("://") && !leads()
    };
    targets(text).into_iter().filter(wrong).map(|target| format!("{}: {target}", page.display())).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let text = "# A `b` c: d\n## x\n# X\n[a](#a-b-c-d), [`x`](#x-1), [y](../README.md#licence) `[no](no.md)`\n```\n[no](no.md)\n```\n";
    let here = root().join("docs/math.md");
    assert_eq!((anchors(text), targets(text).len()), (vec!["a-b-c-d".into(), "x".into(), "x-1".into()], 3));
    let planted =
        "[none](missing.md) [none](../README.md#missing) [a web page](https://missing.example)\n\n[key]: missing\n";
    assert_eq!(wrong_links(&here, planted).len(), 3);
    let (mut all, mut wrong) = (0, vec![]);
    for page in files(&[".md"]) {
        let text = fs::read_to_string(&page).unwrap();
        all += targets(&text).len();
        wrong.extend(wrong_links(&page, &text));
    }
    assert!(all > 200 && wrong.is_empty(), "{all} links; these lead nowhere:\n{}", wrong.join("\n"));
}

/// The file that a document or a comment means by this name.
fn named(name: &str) -> Option<PathBuf> {
    let bases = ["", "crates", "crates/tamis", "crates/tamis/src", "crates/tamis/tests", "crates/tamis-cli"];
    bases.iter().map(|base| root().join(base).join(name)).find(|path| path.is_file())
}

/// Sources that a document names, and functions in them, that do not exist: `file.rs`: `function`, `function`.
fn wrong_names(text: &str) -> Vec<String> {
    let (prose, mut wrong) = (prose(text), vec![]);
    for line in prose.lines() {
        // The text of a source, while names of its functions follow, and what stands before the next one.
        let (mut source, mut between) = (None, "");
        for (i, piece) in line.split('`').enumerate() {
            if i % 2 == 0 {
                source = source.filter(|_| piece == between);
            } else if piece.ends_with(".rs") && !piece.contains(' ') {
                let path = named(piece);
                wrong.extend(path.is_none().then(|| piece.to_string()));
                (source, between) = (path.map(|path| fs::read_to_string(path).unwrap()), ": ");
            } else if let Some(text) = &source {
                wrong.extend((!text.contains(&format!("fn {piece}"))).then(|| piece.to_string()));
                between = ", ";
            }
        }
    }
    wrong
}

#[test]
fn files_and_functions_that_are_named_exist() {
    let planted = "`hash.rs`: `spread`, `missing`, and `Other`; `hash.rs`, `Other`; `gone.rs`";
    assert_eq!(wrong_names(planted), ["missing", "gone.rs"]);
    let (mut all, mut wrong) = (0, vec![]);
    for page in files(&[".md"]).into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = fs::read_to_string(&page).unwrap();
        all += text.matches(".rs`").count();
        wrong.extend(wrong_names(&text).into_iter().map(|name| format!("{}: {name}", page.display())));
    }
    // Documents that sources name, by their paths from the root.
    for file in files(&[".rs", ".py", ".toml", "run", "engines", "figures", "python"]) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for word in text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '-' | '_')) {
            let page = word.trim_end_matches('.');
            let is_page = page.ends_with(".md") && (page.starts_with("docs/") || page == "ARCHITECTURE.md");
            all += usize::from(is_page);
            wrong.extend((is_page && !root().join(page).is_file()).then(|| format!("{}: {page}", file.display())));
        }
    }
    assert!(all > 100 && wrong.is_empty(), "{all} names; these are of nothing:\n{}", wrong.join("\n"));
}

#[test]
fn numbers_are_compared_loosely() {
    assert!(alike("size  79,160 bytes, 1.8 %", "size  79,200 bytes, 1.9 %"));
    assert!(!alike("size  79,160 bytes", "size  89,160 bytes"));
    assert!(!alike("2 keys", "2 sets") && !alike("0 false negatives", "1 false negatives"));
    assert!(alike("layer 0 positive: ..", "layer 0 positive: ribbon"));
}
