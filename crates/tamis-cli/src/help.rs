//! the parser of the command line -> the same with its options under headings, and the most used ones alone in `-h`.

use clap::{Arg, ArgAction, Command};

/// Headings, each with the options that `-h` shows and those that only `--help` shows.
const HEADINGS: &[(&str, &[&str], &[&str])] = &[
    (
        "Lists",
        &[
            "key",
            "keys",
            "exclude",
            "old_keys",
            "workload",
            "pairs",
            "patch",
            "column",
            "value_column",
            "set_column",
            "partition",
        ],
        &[
            "partition_column",
            "workload_column",
            "weight_column",
            "on_conflict",
            "format",
            "trim",
            "lowercase",
            "integers",
            "null_separated",
            "allow_empty",
            "keep_order",
            "excluded",
            "alphabet",
            "values",
            "slice",
        ],
    ),
    (
        "Goal",
        &["fpr", "bits_per_key", "exact", "unchecked", "false_sets", "member_false_sets", "bits_per_pair"],
        &["workload_fpr", "unlisted_share", "excluded_fpr", "learn_accept", "max_fpr", "width"],
    ),
    (
        "Structure",
        &["kind", "kmer", "counts", "slices"],
        &[
            "delta",
            "layers",
            "capacity",
            "effort",
            "layout",
            "shard_bytes",
            "changing",
            "learn",
            "shape",
            "no_existence",
        ],
    ),
    ("File", &[], &["seed", "secret", "secret_file", "metadata", "no_verify"]),
    ("Resources", &[], &["memory", "disk", "tmp", "threads"]),
    (
        "Output",
        &[
            "output",
            "json",
            "quiet",
            "count",
            "invert",
            "line_number",
            "rows",
            "tsv",
            "html",
            "all",
            "matches",
            "ids",
            "threshold",
            "union",
            "intersection",
            "tally",
            "names",
            "manifest",
        ],
        &[],
    ),
];

/// The parser with its options in order.
pub(crate) fn arranged(command: Command) -> Command {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    under_headings(command.arg(json.help("Report as JSON; may also stand behind the command")))
}

fn under_headings(command: Command) -> Command {
    command.mut_args(under_heading).mut_subcommands(under_headings)
}

fn under_heading(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let has = |ids: &[&str]| ids.contains(&id);
    match HEADINGS.iter().find(|(_, brief, more)| has(brief) || has(more)) {
        Some(&(heading, _, more)) if !arg.is_positional() => {
            let more = has(more);
            let brief = arg.is_hide_short_help_set();
            arg.help_heading(heading).hide_short_help(more || brief)
        }
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option has a heading, and no heading names an option that no command has.
    #[test]
    fn every_option_has_a_heading() {
        let mut found = vec![];
        let mut commands = vec![crate::parser()];
        while let Some(command) = commands.pop() {
            for arg in command.get_opts() {
                let known = HEADINGS.iter().any(|(heading, ..)| arg.get_help_heading() == Some(heading));
                assert!(known, "{}: {}", command.get_name(), arg.get_id());
                found.push(arg.get_id().to_string());
            }
            commands.extend(command.get_subcommands().cloned());
        }
        for id in HEADINGS.iter().flat_map(|(_, brief, more)| brief.iter().chain(*more)) {
            assert!(found.iter().any(|found| found == id), "{id}");
        }
    }
}
