//! the parser of the command line -> completions for a shell, manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::print;
use crate::Outcome;

/// Print completions for a shell
///
/// For example: tamis completions bash > ~/.local/share/bash-completion/completions/tamis
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page of tamis, or write the pages of all commands
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// Directory for the pages of all commands, like tamis-build.1
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: CompletionsArgs, mut parser: Command) -> Result<Outcome> {
    let mut out = vec![];
    clap_complete::generate(args.shell, &mut parser, "tamis", &mut out);
    print(&String::from_utf8_lossy(&out))?;
    Ok(Outcome::Yes)
}

pub(crate) fn man(args: ManArgs, parser: Command) -> Result<Outcome> {
    let Some(dir) = args.output else {
        let mut out = vec![];
        Man::new(parser).render(&mut out)?;
        print(&String::from_utf8_lossy(&out))?;
        return Ok(Outcome::Yes);
    };
    if !fs::metadata(&dir).is_ok_and(|data| data.is_dir()) {
        bail!("-o {}: no such directory; expected one for the pages", dir.display());
    }
    clap_mangen::generate_to(parser, &dir).with_context(|| format!("-o {}", dir.display()))?;
    Ok(Outcome::Yes)
}
