//! README and guide -> every command in them runs, and prints what is shown.

use std::fs;
use std::path::{Path, PathBuf};

use crate::test_dir::{Run, TestDir};

/// A number may differ by this share from the one that is shown: a better plan need not change every page at once.
const TOLERANCE: f64 = 0.05;

/// Fractions, such as percents above a bound, may differ by this much.
const FRACTION_TOLERANCE: f64 = 0.2;

/// README and the pages of the guide.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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

/// Commands behind `$` in the `console` blocks of a page, each with what is shown below it.
fn commands(page: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let mut lines = block.lines().take_while(|line| *line != "```");
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
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
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
