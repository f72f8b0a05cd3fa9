//! command line -> one command: parse, run, and turn errors into one line and an exit code.
//!
//! Exit codes are grep's: 0 found or done, 1 not found or wrong, 2 an error; and 130 after an interrupt. An error is one line
//! that begins with "tamis: ", whoever found it: the parser of the command line too.

mod args;
mod cmd;
mod input;
mod interrupt;
mod mapped;
mod progress;
mod screen;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Error;
use clap::{Parser, Subcommand};

/// Membership filters that know what they must refuse.
///
/// Exit codes: 0 found or done, 1 not found or wrong, 2 an error, 130 interrupted.
#[derive(Parser)]
#[command(name = "tamis", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(cmd::build::Args),
    Plan(cmd::plan::Args),
    Query(cmd::query::Args),
    Inspect(cmd::inspect::Args),
    Verify(cmd::verify::Args),
    Map(cmd::map::Args),
    Sets(cmd::sets::Args),
}

/// The answer of a command that did its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Yes,
    /// Exit code 1.
    No,
}

fn main() -> ExitCode {
    interrupt::survive_file_limit();
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return usage(&error),
    };
    let result = match command {
        Command::Build(args) => cmd::build::run(args),
        Command::Plan(args) => cmd::plan::run(args),
        Command::Query(args) => cmd::query::run(args),
        Command::Inspect(args) => cmd::inspect::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Map(args) => cmd::map::run(args),
        Command::Sets(args) => cmd::sets::run(args),
    };
    match result {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        // Whoever reads our output has seen enough: not an error, as in `tamis query ... | head`.
        Err(error) if error.is::<cmd::Closed>() => ExitCode::SUCCESS,
        Err(error) if is_cancelled(&error) => {
            interrupt::say();
            ExitCode::from(interrupt::CODE)
        }
        Err(error) => complain(&format!("{error:#}")),
    }
}

/// The one line of an error.
fn complain(message: &str) -> ExitCode {
    let _ = writeln!(screen::stderr(), "tamis: {message}");
    ExitCode::from(2)
}

/// What the parser has to say: help, the version, or what is wrong with the command line, in one line.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let mut message = String::new();
    for line in text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")) {
        let line = line.trim();
        match (line.strip_prefix("error: "), line.strip_prefix("tip: ")) {
            (Some(what), _) => message.push_str(what),
            (_, Some(tip)) => message.extend(["; ", tip]),
            _ if line.is_empty() => {}
            _ => message.extend([" ", line]),
        }
    }
    complain(&format!("{message}; see --help"))
}

fn is_cancelled(error: &Error) -> bool {
    use tamis::BuildError::Cancelled;
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(Cancelled))
            || matches!(cause.downcast_ref(), Some(tamis::Error::Build(Cancelled)))
    })
}
