//! README and guide -> every command in them runs and prints what is shown, every number has a command, and sentences are short.

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

/// Text between blocks of code, without headings, tables, pictures, code and the targets of links: a paragraph or an item each.
fn paragraphs(page: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in page.split("```").step_by(2).flat_map(|text| text.lines().chain([""])) {
        let item = line.starts_with("* ");
        if item || line.is_empty() || ["#", "|", "!["].iter().any(|start| line.starts_with(start)) {
            paragraphs.push(String::new());
        }
        if item || !["#", "|", "!["].iter().any(|start| line.starts_with(start)) {
            *paragraphs.last_mut().unwrap() += &format!("{} ", line.trim_start_matches("* ").trim());
        }
    }
    paragraphs.iter().map(|text| plain(text)).filter(|text| !text.trim().is_empty()).collect()
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

/// Sentences of a paragraph. A colon before a capital letter ends one, too.
fn sentences(paragraph: &str) -> Vec<String> {
    let (mut sentences, mut now) = (vec![], vec![]);
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    for (i, word) in words.iter().enumerate() {
        now.push(*word);
        let next = words.get(i + 1).and_then(|next| next.trim_start_matches(['(', '[', '*', '"']).chars().next());
        let ends = word.trim_end_matches([')', ']', '*', '"']).ends_with(['.', '?', '!']);
        let colon = word.ends_with(':') && next.is_some_and(char::is_uppercase);
        if ends || colon || next.is_none() {
            sentences.push(std::mem::take(&mut now).join(" "));
        }
    }
    sentences
}

#[test]
fn sentences_are_short() {
    let text = "* One `a. b` is here. Two, [a link](x.md): the\n  end\n\n```console\n$ no. no.\n```\nAt 1.5 %? Yes\n";
    let found: Vec<_> = paragraphs(text).iter().flat_map(|text| sentences(text)).collect();
    assert_eq!(found, ["One code is here.", "Two, [a link]: the end", "At 1.5 %?", "Yes"]);
    let (mut all, mut words, mut long) = (0, 0, vec![]);
    for page in pages() {
        for sentence in paragraphs(&fs::read_to_string(&page).unwrap()).iter().flat_map(|text| sentences(text)) {
            let count = sentence.split_whitespace().count();
            (all, words) = (all + 1, words + count);
            if count > 30 {
                long.push(format!("{}: {count} words: {sentence}", page.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    assert!(all > 200 && words <= 16 * all, "{words} words in {all} sentences");
}

#[test]
fn pages_are_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 180 && readme.len() <= 12_000, "{} lines", readme.lines().count());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('|') && !line.contains("](")) {
            assert!(line.chars().count() <= 100, "{}: {line}", page.display());
        }
    }
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

/// A link to a file leads to one.
#[test]
fn links_lead_to_files() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let file = link.split('#').next().unwrap();
            let found = link.contains("://") || page.parent().unwrap().join(file).exists();
            assert!(found, "{}: {link}", page.display());
        }
    }
}

#[test]
fn numbers_are_compared_loosely() {
    assert!(alike("size  79,160 bytes, 1.8 %", "size  79,200 bytes, 1.9 %"));
    assert!(!alike("size  79,160 bytes", "size  89,160 bytes"));
    assert!(!alike("2 keys", "2 sets") && !alike("0 false negatives", "1 false negatives"));
    assert!(alike("layer 0 positive: ..", "layer 0 positive: ribbon"));
}
