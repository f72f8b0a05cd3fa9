//! sources and documents -> no retired name or word: one idea has one word, in Rust, on the command line, in JSON and in English.
//!
//! The words are those of a vocabulary that was fixed before the first release. A name that comes back is a second word for
//! an idea that has one. Help and manual pages are checked by the tests of the command line.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Options, with what they are called now.
const OPTIONS: &[(&str, &str)] = &[
    ("--expect", "--workload"),
    ("--expect-column", "--workload-column"),
    ("--count-column", "--weight-column"),
    ("--allow", "--excluded-fpr"),
    ("--unseen", "--unlisted-share"),
    ("--max-rate-unknown", "--fpr"),
    ("--absent", "--false-sets"),
    ("--present", "--member-false-sets"),
    ("--spare", "--capacity"),
    ("--room", "--capacity"),
    ("--keyed", "--secret"),
    ("--key-file", "--secret-file"),
];

/// Rust names and fields of JSON.
const NAMES: &[(&str, &str)] = &[
    ("Role::Refuse", "Role::Positive"),
    ("Role::Admit", "Role::Negative"),
    ("Role::Decide", "Role::Exact"),
    ("Goal::Rate", "Goal::Fpr"),
    ("Goal::Share", "Goal::ExcludedFpr"),
    ("Hasher::keyed", "Hasher::secret"),
    ("is_keyed", "is_secret"),
    ("max_rate_unknown", "fpr"),
    ("max_unknown_rate", "max_fpr"),
    ("workload_rate", "workload_fpr"),
    ("known_share", "covered_share"),
    ("value_domain", "value_type"),
    ("MixedDomains", "MixedKeyTypes"),
    ("SequenceBuild", "SequenceBuilder"),
    ("Domain", "KeyType"),
    ("KeyType::U64", "KeyType::Integer"),
    ("QueryError::Domain", "QueryError::KeyType"),
    ("Filter::negatives", "excluded_len"),
    ("Group::negatives", "excluded"),
    ("Group::labels", "partitions"),
    ("BuildError::Labels", "BuildError::PartitionTable"),
    ("Hasher::from_secret", "Hasher::secret"),
    ("Filter::map", "mmap"),
    ("Forecast", "Prediction"),
    ("Foreseen", "WorkloadPlan"),
    ("Outlook", "LayersPrediction"),
    ("LearnError", "AdaptError"),
    ("Receipt", "ChangeStats"),
    ("Task::Step", "Task::Move"),
    ("Taker", "DigestSink"),
    ("Grave", "Tombstones"),
    ("Wish", "StackGoal or TuneGoal"),
    ("SOMEBODY", "MIN_UNLISTED_SHARE"),
];

/// English words, with `let through`: what is plainer is in the documents.
const WORDS: &str =
    "stranger strangers unseen whoever nobody somebody shall told anew ask asks asked wanted wish beside";

/// Whether `text` has `word`, with nothing around it that would make it another one.
fn has(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Lines with a retired word.
fn retired(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut last) = (vec![], String::new());
    for (number, line) in (1..).zip(text.lines()) {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let through = word == "through" && (last == "let" || last == "lets");
            if WORDS.split(' ').any(|retired| retired == word) || through {
                found.push((number, if through { format!("{last} through") } else { word.clone() }));
            }
            last = word;
        }
    }
    found
}

/// The string literals of a source, each on the line where it is; without comments and tests.
fn literals(source: &str) -> String {
    let source: Vec<char> = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default().chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    let begins = |at: usize, text: &str| text.chars().enumerate().all(|(i, c)| source.get(at + i) == Some(&c));
    while let Some(&c) = source.get(at) {
        if begins(at, "//") {
            while source.get(at).is_some_and(|c| *c != '\n') {
                at += 1;
            }
        } else if c == '\'' && (source.get(at + 1) == Some(&'\\') || source.get(at + 2) == Some(&'\'')) {
            // A character, not a lifetime.
            at += 2;
            while source.get(at).is_some_and(|c| *c != '\'') {
                at += 1;
            }
            at += 1;
        } else if c == '"' {
            let marks = source[..at].iter().rev().take_while(|c| **c == '#').count();
            let raw = at > marks && source[at - marks - 1] == 'r';
            let end = format!("\"{}", "#".repeat(if raw { marks } else { 0 }));
            at += 1;
            while source.get(at).is_some() && !begins(at, &end) {
                let escaped = !raw && source[at] == '\\';
                out.push(if escaped { ' ' } else { source[at] });
                at += if escaped { 2 } else { 1 };
                // An escaped end of a line is one.
                if escaped && source[at - 1] == '\n' {
                    out.push('\n');
                }
            }
            out.push(' ');
            at += end.len();
        } else {
            out.extend((c == '\n').then_some('\n'));
            at += 1;
        }
    }
    out
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            files(&path, found);
        } else if ["rs", "md"].iter().any(|end| path.extension().is_some_and(|e| e == *end)) && name != "vocabulary.rs"
        {
            found.push(path);
        }
    }
}

/// The repository; a crate alone, as it is packaged, has no documents around it.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("docs").is_dir() { root } else { env!("CARGO_MANIFEST_DIR").into() }
}

#[test]
fn no_retired_name_comes_back() {
    assert!(has("use `--room 5`", "--room") && !has("--room-size", "--room") && !has("a--room", "--room"));
    let root = root();
    let mut all = vec![];
    files(&root, &mut all);
    assert!(all.len() > 100, "{}: {} files", root.display(), all.len());
    let mut wrong = vec![];
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        for (word, now) in OPTIONS.iter().chain(NAMES).filter(|(word, _)| has(&text, word)) {
            wrong.push(format!("{}: {word} is {now} now", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_retired_word_in_documents_and_messages() {
    assert_eq!(retired("It shall\nlet\nthrough untold askers"), [(1, "shall".into()), (3, "let through".into())]);
    let source = "// \"told\"\nlet c = '\"'; f(\"a\\\"wish\", r#\"b\"anew\"#);\n#[cfg(test)]\nmod tests { \"ask\" }";
    assert_eq!(retired(&literals(source)), [(2, "wish".into()), (2, "anew".into())]);
    let root = root();
    let mut all = vec![];
    files(&root, &mut all);
    let (mut documents, mut messages, mut wrong) = (0, 0, vec![]);
    for path in all {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).unwrap();
        let text = if name.ends_with(".md") && (name.starts_with("docs/") || !name.contains('/')) {
            documents += 1;
            text
        } else if ["crates/tamis/src/", "crates/tamis-cli/src/", "src/"].iter().any(|start| name.starts_with(start))
            && !name.ends_with("tests.rs")
        {
            messages += 1;
            literals(&text)
        } else {
            continue;
        };
        wrong.extend(retired(&text).into_iter().map(|(line, word)| format!("{name}:{line}: {word}")));
    }
    assert!(messages > 100 && (documents > 5 || !root.join("docs").is_dir()), "{documents}, {messages}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
