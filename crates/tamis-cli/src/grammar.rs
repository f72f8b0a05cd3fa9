//! words of a command line -> the role of each, the same for all commands; a word without a role is an error.
//!
//! ```text
//!   tamis build deny.txt more.txt --exclude allow/*.txt -o f.tamis
//!               └── members ────┘           └ one list option ┘
//! ```
//!
//! An option that names lists takes every word up to the next option, as many as a shell puts there. A command's own lists stand before
//! the first such option, or behind `--`. A word that stands elsewhere could be meant for either: it has no role. All of that is read off the
//! parser, so a command has nothing to do for it: its list options are those that take several words, and its own lists the argument
//! that does.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Result, bail};
use clap::error::ErrorKind::{MissingRequiredArgument, UnknownArgument};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::mapped;

/// Words that are shown of each role.
const SHOWN: usize = 8;

/// The argument of words that the parser has no place for.
const OTHERS: &str = "others";

/// Parses the words of a command line, the name of the program first. The parser's errors are `clap::Error`.
pub(crate) fn read(parser: &Command, words: &[OsString]) -> Result<ArgMatches> {
    // The parser does not say which words it found behind `--`; they all are arguments.
    let escape = (1..words.len()).find(|&at| words[at] == "--" && words[at - 1] != "--key");
    let escaped = escape.map_or(0, |at| words.len() - at - 1);
    match parser.clone().try_get_matches_from(words) {
        Ok(matches) => {
            check(parser, &matches, escaped)?;
            Ok(matches)
        }
        Err(error) => {
            // With a place for every word, and none that must be filled: what did the words become?
            if let UnknownArgument | MissingRequiredArgument = error.kind()
                && let Ok(matches) = lenient(parser.clone()).try_get_matches_from(words)
            {
                check(parser, &matches, escaped)?;
            }
            Err(error.into())
        }
    }
}

/// The same words with `--json` behind the command, wherever it stood before it.
pub(crate) fn json_behind_command(parser: &Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let (mut level, mut at, mut moved) = (Some(parser), 1, vec![]);
    while let Some(command) = level.filter(|command| command.has_subcommands()) {
        while words.get(at).is_some_and(|word| word == "--json") {
            moved.push(words.remove(at));
        }
        level = words.get(at).and_then(|word| command.find_subcommand(word));
        // A word that is no command will be an error.
        at += 1;
    }
    let at = at.min(words.len());
    words.splice(at..at, moved);
    words
}

fn lenient(command: Command) -> Command {
    let takes_all = command.has_subcommands() || command.get_positionals().any(is_list);
    let command = command.mut_args(|arg| arg.required(false)).mut_subcommands(lenient);
    if takes_all { command } else { command.arg(Arg::new(OTHERS).num_args(0..)) }
}

/// Whether it takes several words at once.
fn is_list(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

/// Whether the words of this command line have roles, the last `escaped` of them behind `--`.
fn check(parser: &Command, matches: &ArgMatches, escaped: usize) -> Result<()> {
    let (mut command, mut matches) = (parser, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { return Ok(()) };
        (command, matches) = (found, inner);
    }
    let others = Arg::new(OTHERS);
    let line = Line::new(command, matches, &others, escaped);
    line.check_roles()?;
    line.check_file()?;
    line.check_lists()
}

/// A word, and the argument or option that it became.
struct Word<'a> {
    index: usize,
    text: &'a OsStr,
    became: &'a Arg,
    has_role: bool,
}

/// The words of a command that name files.
struct Line<'a> {
    command: &'a Command,
    matches: &'a ArgMatches,
    /// In the order of the command line.
    words: Vec<Word<'a>>,
    /// Those that take several words at once.
    options: Vec<&'a Arg>,
    /// The lists that the command is about.
    lists: Option<&'a Arg>,
}

impl<'a> Line<'a> {
    fn new(command: &'a Command, matches: &'a ArgMatches, others: &'a Arg, escaped: usize) -> Line<'a> {
        let options = command.get_opts().filter(|arg| is_list(arg)).collect();
        let lists = command.get_positionals().find(|arg| is_list(arg));
        let mut line = Line { command, matches, words: vec![], options, lists };
        for became in command.get_positionals().chain(line.options.clone()).chain([others]) {
            let id = became.get_id().as_str();
            if line.is_given(became) {
                let texts = matches.get_raw(id).into_iter().flatten();
                let indices = matches.indices_of(id).into_iter().flatten();
                let word = |(text, index)| Word { index, text, became, has_role: id != OTHERS };
                line.words.extend(texts.zip(indices).map(word));
            }
        }
        line.words.sort_by_key(|word| word.index);
        let last = line.words.len().saturating_sub(escaped);
        for word in line.words[..last].iter_mut().skip_while(|word| word.became.is_positional()) {
            word.has_role &= !(word.became.is_positional() && is_list(word.became));
        }
        line
    }

    /// Whether this command line has it.
    fn is_given(&self, arg: &Arg) -> bool {
        let id = arg.get_id().as_str();
        // Of what the parser does not know it must not be asked more.
        self.matches.try_contains_id(id).is_ok() && self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// The most words that went to a list option at once.
    fn taken(&self) -> usize {
        let given = self.options.iter().filter(|arg| self.is_given(arg));
        let occurrences = given.filter_map(|arg| self.matches.get_raw_occurrences(arg.get_id().as_str()));
        occurrences.flatten().map(Iterator::count).max().unwrap_or(0)
    }

    /// The option that names the command's own lists.
    fn by_name(&self) -> Option<&Arg> {
        self.options.iter().copied().find(|arg| arg.get_id() == "keys")
    }

    /// A word that stands behind an option that names lists, or is one too many.
    fn check_roles(&self) -> Result<()> {
        let Some(word) = self.words.iter().find(|word| !word.has_role) else { return Ok(()) };
        let expected = match self.lists {
            Some(lists) => {
                let by_name = self.by_name().map(|arg| format!(", or {}", name(arg))).unwrap_or_default();
                format!("{} before the first option that names lists{by_name}", name(lists))
            }
            None if self.options.is_empty() => return Ok(()),
            None => format!("{} before it", self.options.iter().map(|arg| name(arg)).collect::<Vec<_>>().join(" or ")),
        };
        let (text, roles) = (word.text.to_string_lossy(), self.roles());
        match mapped::form(Path::new(word.text)) {
            Some(form) => bail!("{text} is a tamis {form}; swapped? {roles}; expected {expected}"),
            None => bail!("{text}: no role; {roles}; expected {expected}"),
        }
    }

    /// A file of ours that went to a list option.
    fn check_file(&self) -> Result<()> {
        let is_missing = |arg: &&Arg| arg.is_required_set() && !is_list(arg) && !self.is_given(arg);
        let Some(file) = self.command.get_positionals().find(is_missing).filter(|_| self.taken() > 0) else {
            return Ok(());
        };
        let expected = format!("{}; expected {} before the first option that names lists", self.roles(), name(file));
        for word in &self.words {
            if let Some(form) = mapped::form(Path::new(word.text)) {
                bail!("{} is a tamis {form}; swapped? {expected}", word.text.to_string_lossy());
            }
        }
        bail!("{}: missing; {expected}", name(file))
    }

    /// Lists that went to a list option: of several words one may have been meant for the command itself, and at a terminal one is enough.
    fn check_lists(&self) -> Result<()> {
        let Some(lists) = self.lists.filter(|lists| !lists.is_required_set() && !self.is_given(lists)) else {
            return Ok(());
        };
        let taken = self.taken();
        let by_name = self.by_name();
        if by_name.is_some_and(|arg| self.is_given(arg)) || taken == 0 || (taken == 1 && !io::stdin().is_terminal()) {
            return Ok(());
        }
        let (lists, roles) = (name(lists), self.roles());
        let by_name = by_name.map(|arg| format!(", behind {}", name(arg))).unwrap_or_default();
        bail!("{lists}: none; {roles}; expected {lists} before that option{by_name}, or - for standard input")
    }

    /// `members a.txt b.txt, --exclude c.txt`.
    fn roles(&self) -> String {
        let words: Vec<&Word<'_>> = self.words.iter().filter(|word| word.has_role).collect();
        let same = |a: &&Word<'_>, b: &&Word<'_>| a.became.get_id() == b.became.get_id();
        let shown = |words: &[&Word<'_>]| {
            let first: Vec<_> = words.iter().take(SHOWN).map(|word| word.text.to_string_lossy()).collect();
            let more = words.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} {}{more}", name(words[0].became), first.join(" "))
        };
        words.chunk_by(same).map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// What a user calls an argument or an option.
fn name(arg: &Arg) -> String {
    let value = || arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_lowercase());
    arg.get_long().map_or_else(|| value().unwrap_or_default(), |long| format!("--{long}"))
}
