//! what went wrong -> one line, or with `--json` one object, on standard error, and an exit code.

use std::fmt;
use std::io::Write as _;
use std::sync::Mutex;

use anyhow::Error;
use serde_json::{Value, json};
use tamis::{BuildError, FormatError};

use crate::cmd::grouped;
use crate::input::{self, Place};
use crate::{interrupt, json, screen, usage};

/// What is at fault, and with it the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The command line, an input, the system.
    Error,
    /// A tamis file that is damaged, or that this build does not support.
    File,
    /// Keys that are members and excluded.
    Conflict,
    /// A partition that the filter does not have.
    Partition,
    /// A signal.
    Interrupted,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Error => 2,
            Kind::File => 3,
            Kind::Conflict => 4,
            Kind::Partition => 5,
            Kind::Interrupted => interrupt::CODE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::File => "file",
            Kind::Conflict => "conflict",
            Kind::Partition => "partition",
            Kind::Interrupted => "interrupted",
        }
    }

    /// The kind of an error, whatever was said around it.
    fn of(error: &Error) -> Kind {
        let kind = |cause: &(dyn std::error::Error + 'static)| -> Option<Kind> {
            if let Some(failure) = cause.downcast_ref::<Failure>() {
                return Some(failure.kind);
            }
            let (file, build) = match cause.downcast_ref::<tamis::Error>() {
                Some(tamis::Error::Format { error, .. }) => (Some(error), None),
                Some(tamis::Error::Build(build)) => (None, Some(build)),
                _ => (cause.downcast_ref(), cause.downcast_ref()),
            };
            match (file, build) {
                // A good file, and the wrong command.
                (Some(FormatError::Form { .. } | FormatError::ReadOnly), _) => Some(Kind::Error),
                (Some(_), _) => Some(Kind::File),
                (_, Some(BuildError::Cancelled)) => Some(Kind::Interrupted),
                _ => None,
            }
        };
        error.chain().find_map(kind).unwrap_or(Kind::Error)
    }
}

/// Conflicts that are shown.
const CONFLICTS: usize = 100;

/// An error of a known kind.
#[derive(Debug)]
struct Failure {
    kind: Kind,
    message: String,
    /// The conflicts that are known.
    conflicts: Vec<Conflict>,
}

/// A key that is a member and excluded: as a line, and as fields.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    line: String,
    fields: Value,
}

impl Conflict {
    /// The key, if it is known, and where it is in both lists.
    pub(crate) fn new(key: Option<Vec<u8>>, member: Place<'_>, excluded: Place<'_>) -> Conflict {
        let mut fields = json!({ "key": null, "member_at": {}, "excluded_at": {} });
        let name = key.map(|key| {
            json::put(&mut fields, "key", &key);
            format!("{} ", input::quote(&key))
        });
        json::put_place(&mut fields["member_at"], Some(member));
        json::put_place(&mut fields["excluded_at"], Some(excluded));
        Conflict { line: format!("{}({member}, {excluded})", name.unwrap_or_default()), fields }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error of this kind.
pub(crate) fn failure(kind: Kind, message: String) -> Error {
    Error::new(Failure { kind, message, conflicts: vec![] })
}

/// So many keys are members and excluded; these are the first. `advice` is added to what helps.
pub(crate) fn conflicts(count: u64, advice: &str, first: &[Conflict]) -> Error {
    let are = if count == 1 { "key is also a member" } else { "keys are also members" };
    let shown = first.first().map(|conflict| format!(", first {}", conflict.line)).unwrap_or_default();
    let message = format!(
        "--exclude: {} {are}{shown}; expected none; use --on-conflict keep (they stay members) or drop (they are excluded){advice}",
        grouped(count)
    );
    Error::new(Failure { kind: Kind::Conflict, message, conflicts: first.iter().take(CONFLICTS).cloned().collect() })
}

/// Prints an error.
pub(crate) fn report(error: &Error) -> u8 {
    let kind = Kind::of(error);
    if kind == Kind::Interrupted {
        interrupt::say();
        return kind.code();
    }
    let conflicts = error.downcast_ref::<Failure>().map_or(&[][..], |failure| &failure.conflicts);
    let causes: Vec<String> = error.chain().map(shown).collect();
    write(kind, &causes.join(": "), conflicts);
    kind.code()
}

/// A cause; one of the library, which names methods, with the options of the command instead.
fn shown(cause: &(dyn std::error::Error + 'static)) -> String {
    let built = matches!(cause.downcast_ref(), Some(tamis::Error::Build(_))) || cause.is::<BuildError>();
    if built { usage::in_options(&cause.to_string()) } else { cause.to_string() }
}

/// Writes an error: on one line, followed by a line for each conflict that is known.
pub(crate) fn write(kind: Kind, message: &str, conflicts: &[Conflict]) {
    let mut err = screen::stderr();
    if json::is_requested() {
        let mut error = json!({ "code": kind.code(), "kind": kind.name(), "message": message });
        if kind == Kind::Conflict {
            error["conflict_list"] = conflicts.iter().map(|conflict| conflict.fields.clone()).collect();
        }
        let _ = writeln!(err, "{}", json::object(None, json!({ "error": error })));
        return;
    }
    let _ = writeln!(err, "tamis: {message}");
    for conflict in conflicts {
        let _ = writeln!(err, "tamis: conflict: {}", conflict.line);
    }
}

/// Writes what may be wrong, and does not stop a command: once. A quiet command says it too, as errors: nobody sees its report.
pub(crate) fn warn(message: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(vec![]);
    let Ok(mut said) = SAID.lock() else { return };
    if said.iter().any(|other| other == message) {
        return;
    }
    said.push(message.to_string());
    let mut err = screen::stderr();
    let _ = match json::is_requested() {
        true => writeln!(err, "{}", json::object(None, json!({ "warning": { "message": message } }))),
        false => writeln!(err, "tamis: warning: {message}"),
    };
}
