//! the sources of the library -> its layers: a top-level module uses only modules that stand before it.
//!
//! Only the text of the sources is read, in the form that `cargo fmt` gives it, so the test takes any features.
//! Tests may use everything, and so may links of doc comments.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The modules of `src`, each behind all that it may use; those on one line do not use each other.
const LAYERS: [&str; 16] = [
    "debug names",
    "hash",
    "error",
    "arch",
    "parallel",
    "math",
    "file",
    "format",
    "gather",
    "leaves",
    "plan",
    "filter",
    "dynamic",
    "maps table lsm learned",
    "sets adaptive",
    "serde",
];

/// The position of a module; none for items that `lib.rs` exports, which only its users may name.
fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.split(' ').any(|name| name == module))
}

/// Returns the text without comments and without the items behind `#[cfg(test)]`, line by line.
fn code(source: &str) -> String {
    let (mut code, mut test) = (String::new(), None);
    for line in source.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("#[cfg(test)]") || text.starts_with("#[cfg(all(test,") {
            test = Some(indent);
        } else if test.is_none() && !text.starts_with("//") {
            code.push_str(line.split(" // ").next().unwrap());
        }
        // An item ends at its own indentation.
        if test == Some(indent) && text.ends_with([';', '}', ',']) {
            test = None;
        }
        code.push('\n');
    }
    code
}

/// Returns the modules that a path starts with: one, or several in braces.
fn heads(path: &str) -> Vec<&str> {
    let (mut heads, mut depth, mut first) = (vec![], 0, true);
    let not_in_names = |c: char| !c.is_alphanumeric() && c != '_';
    for piece in path.split_inclusive(not_in_names) {
        let name = piece.trim_end_matches(not_in_names);
        if first && depth < 2 && !name.is_empty() {
            heads.push(name);
            first = false;
        }
        match &piece[name.len()..] {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => first = true,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

/// Returns every use of a module that does not stand before that of the file, as `file:line: module -> module`.
fn wrong(file: &str, source: &str) -> Vec<String> {
    let (code, module) = (code(source), file.split(['/', '.']).next().unwrap());
    let paths = code.match_indices("crate::").flat_map(|(at, crate_)| {
        heads(&code[at + crate_.len()..]).into_iter().map(move |head| (at, head)).collect::<Vec<_>>()
    });
    // In `a/b.rs`, two `super` are the root of the crate.
    let root = "super::".repeat(file.matches('/').count() + 1);
    paths
        .chain(code.match_indices(&root).map(|(at, _)| (at, "super")))
        .filter(|(_, used)| *used != module && !(layer(used).is_some() && layer(used) < layer(module)))
        .map(|(at, used)| format!("src/{file}:{}: {module} -> {used}", code[..at].matches('\n').count() + 1))
        .collect()
}

/// Visits every source file below a folder: its path from `src` and its text.
fn visit(folder: &Path, from: &str, take: &mut dyn FnMut(&str, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().into_string().unwrap())).unwrap();
        let file = format!("{from}{name}");
        if path.is_dir() {
            visit(&path, &format!("{file}/"), take);
        } else if name.ends_with(".rs") {
            take(&file, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn modules_use_only_those_before_them() {
    let (mut found, mut files) = (vec![], 0);
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut |file, source| {
        if file == "lib.rs" || file.ends_with("tests.rs") {
            return;
        }
        files += 1;
        let module = file.split(['/', '.']).next().unwrap();
        if layer(module).is_none() {
            found.push(format!("src/{file}: {module} is not in the list of layers"));
        }
        found.extend(wrong(file, source));
    });
    assert!(files > 100, "{files} files");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_planted_use_is_found() {
    let planted = |file: &str, source: &str| wrong(file, source).join(", ");
    assert_eq!(planted("math/shape.rs", "//! x\nuse crate::plan::Kind;\n"), "src/math/shape.rs:2: math -> plan");
    assert_eq!(planted("math.rs", "fn f(\n    x: &crate::gather::Record,\n) {\n"), "src/math.rs:2: math -> gather");
    assert_eq!(
        planted(
            "math.rs",
            "use crate::{\n    hash::{self, plan, Key},\n    leaves, filter::{build},\n};\nplan, gather"
        ),
        "src/math.rs:1: math -> leaves, src/math.rs:1: math -> filter"
    );
    assert_eq!(planted("sets/build.rs", "use crate::adaptive::Adapt;"), "src/sets/build.rs:1: sets -> adaptive");
    assert_eq!(planted("adaptive.rs", "use crate::sets;"), "src/adaptive.rs:1: adaptive -> sets");
    // What `lib.rs` exports, a module that is not in the list, and the root by another name.
    assert_eq!(planted("leaves.rs", "use crate::BuildError;"), "src/leaves.rs:1: leaves -> BuildError");
    assert_eq!(planted("new.rs", "use crate::hash;"), "src/new.rs:1: new -> hash");
    assert_eq!(planted("math/shape.rs", "use super::super::plan;"), "src/math/shape.rs:1: math -> super");
    // After a test has ended.
    let test = "#[cfg(test)]\nmod tests {\n    use crate::plan::Kind;\n}\n";
    assert_eq!(planted("math.rs", test), "");
    assert_eq!(planted("math.rs", &format!("{test}use crate::plan;\n")), "src/math.rs:5: math -> plan");
    // Allowed: what stands before, the module itself, a link, a neighbour.
    let allowed =
        "/// See [`crate::plan`].\nuse crate::hash::Key;\nuse crate::math::stack;\nuse super::stack; // crate::plan\n";
    assert_eq!(planted("math/shape.rs", allowed), "");
}
