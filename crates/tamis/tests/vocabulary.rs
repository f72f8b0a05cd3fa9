//! sources, comments and documents -> no retired name: one idea has one name, in Rust, on the command line and in JSON.
//!
//! A name that comes back is a second one for an idea that has one.
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

/// Whether `text` has `word`, with nothing around it that would make it another one.
fn has(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
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
