//! what the parser of the command line, or the library, found -> one line: the option, what is wrong with it, what was expected.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cmd::grouped;
use crate::json;

/// Words that people type for commands, options and values, with what they are called here. Several names: those that there are at that place.
const KNOWN_AS: &[(&str, &str)] = &[
    ("search find lookup contains has match grep filter", "query get"),
    ("check test validate", "verify query"),
    ("create make new compile", "build"),
    ("info show stat stats dump ls", "inspect"),
    ("insert append", "add"),
    ("delete rm drop", "remove"),
    ("apply", "patch"),
    ("compare explain", "plan"),
    ("-e -k --word --query", "--key"),
    ("-i -m --input --include --members --file --files", "--keys"),
    ("--negatives --exclusions --except --not --deny", "--exclude"),
    ("-p --epsilon --error --error-rate --fp-rate --fp --rate --false-positive-rate", "--fpr"),
    ("-b --bits", "--bits-per-key"),
    ("-k -t --type --structure", "--kind"),
    ("-j --jobs", "--threads"),
    ("--out --to", "--output"),
    ("-s --silent", "--quiet"),
    ("--queries --log", "--workload"),
    ("--key-column", "--column"),
    ("xor xor8 xor16 xorf bfuse binary-fuse binary-fuse8 binary-fuse16 fuse3 fuse8 fuse16", "fuse"),
    ("bf bloomfilter bloom-filter sbbf split-block blocked-bloom", "bloom"),
    ("standard-bloom classic plain-bloom", "classic-bloom"),
    ("cf cuckoofilter cuckoo-filter", "cuckoo"),
    ("qf cqf rsqf quotient-filter", "quotient"),
    ("burr bumped-ribbon standard-ribbon", "ribbon"),
    ("csv.gz comma", "csv"),
    ("tab tabs", "tsv"),
    ("json ndjson", "jsonl"),
    ("txt lines plain", "text"),
];

/// What a word is called here: those of `names` that the table knows for it.
fn known_as(word: &str, names: &[String]) -> String {
    let rows = KNOWN_AS.iter().filter(|(words, _)| words.split(' ').any(|known| known == word));
    let found = rows.flat_map(|(_, names)| names.split(' ')).filter(|name| names.iter().any(|known| known == name));
    found.collect::<Vec<_>>().join(" or ")
}

/// The command of this command line, as far as there is one.
fn command() -> clap::Command {
    let words = json::command().unwrap_or_default();
    words.split(' ').fold(crate::parser(), |at, name| at.find_subcommand(name).cloned().unwrap_or(at))
}

/// A sentence of the library with options of this command instead of methods, and numbers as the command line writes them.
///
/// Options are the words of the subject, which ends at the first colon. Behind it only those that mean nothing else.
pub(crate) fn in_options(sentence: &str) -> String {
    let command = command();
    let option = |word: &str| {
        let mut all = command.get_arguments().filter(|arg| arg.get_id() == word);
        all.find_map(|arg| Some(format!("--{}", arg.get_long()?)))
    };
    let (subject, rest) = sentence.split_once(": ").map_or(("", sentence), |(subject, rest)| (subject, rest));
    let subject = words(subject, &option);
    let rest = words(rest, &|word| match word {
        "fpr" | "kind" => option(word),
        "exclude?" => option("exclude").map(|option| option + "?"),
        word if word.contains('_') => option(word),
        word if word.len() > 3 => word.parse().ok().map(grouped),
        _ => None,
    });
    if subject.is_empty() { rest } else { format!("{subject}: {rest}") }
}

/// The text with some of its words replaced.
fn words(text: &str, replaced: &dyn Fn(&str) -> Option<String>) -> String {
    let replace = |part: &str| {
        let word = part.trim_end_matches([' ', ',', ';', ':']);
        replaced(word).map_or_else(|| part.to_string(), |new| new + &part[word.len()..])
    };
    text.split_inclusive(' ').map(replace).collect()
}

/// The one line.
pub(crate) fn message(error: &clap::Error) -> String {
    let all = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(list)) => list.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        _ => vec![],
    };
    let text = |kind| all(kind).join(", ");
    let names = |kind| all(kind).iter().map(|arg| name(arg)).collect::<Vec<_>>().join(", ");
    let option = names(ContextKind::InvalidArg);
    // The parser only knows words that look alike.
    let similar = |kind, word: &str, all: &[String]| match (known_as(word, all), text(kind)) {
        (known, _) if !known.is_empty() => format!("; try {known}"),
        (_, similar) if !similar.is_empty() => format!("; try {similar}"),
        _ => String::new(),
    };
    let command = command();
    match error.kind() {
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map_or("not valid".to_string(), ToString::to_string);
            format!("{option} {}: {reason}", text(ContextKind::InvalidValue))
        }
        ErrorKind::InvalidValue => {
            let values = all(ContextKind::ValidValue);
            let expected = match &values[..] {
                [] => text(ContextKind::InvalidArg),
                [value] => value.clone(),
                [values @ .., last] => format!("{} or {last}", values.join(", ")),
            };
            match text(ContextKind::InvalidValue).as_str() {
                "" => format!("{option}: no value; expected {expected}"),
                value => {
                    let similar = similar(ContextKind::SuggestedValue, value, &values);
                    format!("{option} {value}: unknown; expected {expected}{similar}")
                }
            }
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let names = |arg: &clap::Arg| arg.get_long().map(|long| format!("--{long}"));
            let all: Vec<String> = command.get_opts().filter_map(names).collect();
            let similar = similar(ContextKind::SuggestedArg, &option, &all);
            format!("{option}: unknown option; expected one of --help{similar}")
        }
        ErrorKind::UnknownArgument => format!("{option}: one argument too many; expected options, see --help"),
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let names = |of: &clap::Command| of.get_subcommands().map(|of| of.get_name().to_string()).collect();
            let all: Vec<String> = names(&command);
            let inner = |outer: &clap::Command| {
                outer.find_subcommand(&word).map(|inner| format!("{} {}", outer.get_name(), inner.get_name()))
            };
            let inner: Vec<String> = command.get_subcommands().filter_map(inner).collect();
            let similar = match &inner[..] {
                [] => similar(ContextKind::SuggestedSubcommand, &word, &all),
                inner => format!("; try {}", inner.join(" or ")),
            };
            format!("{word}: unknown command; expected one of --help{similar}")
        }
        ErrorKind::ArgumentConflict => match names(ContextKind::PriorArg) {
            prior if prior == option => format!("{option}: given twice; expected once"),
            prior => format!("{option}: cannot be used with {prior}; expected one of them"),
        },
        ErrorKind::MissingRequiredArgument => {
            format!("{option}: missing; expected {}, see --help", text(ContextKind::InvalidArg))
        }
        // The rest, like an argument that is not UTF-8, in the parser's words.
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}; see --help", first.trim_start_matches("error: "))
        }
    }
}

/// An option as it is typed, without its value; an argument without brackets.
fn name(arg: &str) -> &str {
    match arg.starts_with('-') {
        true => arg.split([' ', '=']).next().unwrap_or(arg),
        false => arg.trim_matches(['<', '>', '[', ']', '.']),
    }
}
