//! command line -> one command: parse, run, and turn errors into one line and an exit code.
//!
//! Exit codes are grep's, 0, 1 and 2, and a few more for errors that a script can act on. An error is one line that begins with
//! "tamis: ", those of the parser of the command line too.
//!
//! A library, so that a package of another language can bring the command along: [`run`] is all of it.

mod args;
mod cmd;
mod failure;
mod grammar;
mod help;
mod input;
mod interrupt;
mod json;
mod mapped;
mod progress;
mod screen;
mod secret;
mod usage;

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Build and query membership filters
///
/// A filter uses a few bits per key to tell whether a key is in a set. It matches every member, no excluded key, and unlisted
/// keys at a rate that you choose.
#[derive(Parser)]
#[command(name = "tamis", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// At the end of `tamis --help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    a match, or done; also if the reader of the output closes the pipe
  1    no match, or a wrong answer
  2    an error
  3    a tamis file that is damaged or not supported, or a wrong secret
  4    a conflict: a key is a member and excluded
  5    an unknown partition
  130  interrupted";

#[derive(Subcommand)]
enum Command {
    Build(cmd::build::Args),
    Plan(cmd::plan::Args),
    Query(cmd::query::Args),
    Diff(cmd::patch::DiffArgs),
    Patch(cmd::patch::PatchArgs),
    Inspect(cmd::inspect::Args),
    Verify(cmd::verify::Args),
    Add(cmd::changing::AddArgs),
    Exclude(cmd::changing::ExcludeArgs),
    Remove(cmd::changing::RemoveArgs),
    Map(cmd::map::Args),
    Sets(cmd::sets::Args),
    Slice(cmd::slice::Args),
    Completions(cmd::pages::CompletionsArgs),
    Man(cmd::pages::ManArgs),
}

/// The answer of a command that did its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Yes,
    /// Exit code 1.
    No,
}

/// Runs one command line, the name of the program first, and returns the exit code. It may end the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    interrupt::survive_file_limit();
    let parser = parser();
    let words = grammar::json_behind_command(&parser, arguments);
    json::set(&words);
    let done = grammar::read(&parser, &words).and_then(|matches| execute(Cli::from_arg_matches(&matches)?.command));
    match done.or_else(|error| error.downcast().map_or_else(Err, |error| refuse(&error))) {
        Ok(Outcome::Yes) => 0,
        Ok(Outcome::No) => 1,
        // The reader of our output has seen enough: not an error, as in `tamis query ... | head`.
        Err(error) if error.is::<cmd::Closed>() => 0,
        Err(error) => failure::report(&error),
    }
}

/// The parser of the command line.
fn parser() -> clap::Command {
    help::arranged(Cli::command())
}

fn execute(command: Command) -> Result<Outcome> {
    match command {
        Command::Build(args) => cmd::build::run(args),
        Command::Plan(args) => cmd::plan::run(args),
        Command::Query(args) => cmd::query::run(args),
        Command::Diff(args) => cmd::patch::diff(args),
        Command::Patch(args) => cmd::patch::patch(args),
        Command::Inspect(args) => cmd::inspect::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Add(args) => cmd::changing::add(args),
        Command::Exclude(args) => cmd::changing::exclude(args),
        Command::Remove(args) => cmd::changing::remove(args),
        Command::Map(args) => cmd::map::run(args),
        Command::Sets(args) => cmd::sets::run(args),
        Command::Slice(args) => cmd::slice::run(args),
        Command::Completions(args) => cmd::pages::completions(args, parser()),
        Command::Man(args) => cmd::pages::man(args, parser()),
    }
}

/// What the parser has to say: help, the version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> Result<Outcome> {
    if !error.use_stderr() {
        let _ = error.print();
        return Ok(Outcome::Yes);
    }
    if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        std::process::exit(2);
    }
    bail!("{}", usage::message(error))
}
