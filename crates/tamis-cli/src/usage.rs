//! what the parser of the command line, or the library, found -> one line: the option, what is wrong with it, what was expected.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cmd::grouped;
use crate::json;

/// A sentence of the library with options of this command instead of methods, and numbers as the command line writes them.
///
/// Options are the words of the subject, which ends at the first colon. Behind it only those that mean nothing else.
pub(crate) fn in_options(sentence: &str) -> String {
    let top = crate::Cli::command();
    let find = |at: Option<clap::Command>, name| at.and_then(|at| at.find_subcommand(name).cloned());
    let command = json::command().unwrap_or_default().split(' ').fold(Some(top), find);
    let option = |word: &str| {
        let all = command.iter().flat_map(clap::Command::get_arguments);
        all.filter(|arg| arg.get_id() == word).find_map(|arg| Some(format!("--{}", arg.get_long()?)))
    };
    let (subject, rest) = sentence.split_once(": ").map_or(("", sentence), |(subject, rest)| (subject, rest));
    let subject = words(subject, &option);
    let rest = words(rest, &|word| match word {
        "fpr" | "kind" => option(word),
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
    let similar = |kind| match text(kind) {
        similar if similar.is_empty() => String::new(),
        similar => format!("; try {similar}"),
    };
    match error.kind() {
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map_or("not valid".to_string(), ToString::to_string);
            format!("{option} {}: {reason}", text(ContextKind::InvalidValue))
        }
        ErrorKind::InvalidValue => {
            let values = text(ContextKind::ValidValue);
            let expected = if values.is_empty() { text(ContextKind::InvalidArg) } else { values };
            match text(ContextKind::InvalidValue).as_str() {
                "" => format!("{option}: no value; expected {expected}"),
                value => format!("{option} {value}: unknown value; expected {expected}"),
            }
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            format!("{option}: unknown option; expected one of --help{}", similar(ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => format!("{option}: one argument too many; expected options, see --help"),
        ErrorKind::InvalidSubcommand => {
            let similar = similar(ContextKind::SuggestedSubcommand);
            format!("{}: unknown command; expected one of --help{similar}", text(ContextKind::InvalidSubcommand))
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
