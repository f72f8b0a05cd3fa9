//! fields -> one JSON object, which says what wrote it and about what.

use std::ffi::OsString;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::input::{Place, Source};

/// Which fields there are and what they mean; a change that breaks readers makes it larger. docs/json.md lists them.
const SCHEMA: u64 = 1;

macro_rules! forms {
    ($($form:ident = $name:literal,)*) => {
        /// What a file holds, as the field `form` says it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Form {
            $($form,)*
        }

        impl Form {
            #[cfg(test)]
            const ALL: &[Form] = &[$(Form::$form,)*];

            fn name(self) -> &'static str {
                match self {
                    $(Form::$form => $name,)*
                }
            }
        }

        impl fmt::Display for Form {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

forms! {
    Filter = "filter",
    Learned = "learned",
    Patch = "patch",
    Map = "map",
    Sequence = "sequence",
    Sets = "sets",
    Adaptive = "adaptive",
    Plan = "plan",
    Slice = "slice",
    Slices = "slices",
    Manifest = "manifest",
}

/// What the command line says of its output: whether it has `--json`, also one that cannot be parsed, and the command.
static LINE: RwLock<(bool, Option<String>)> = RwLock::new((false, None));

/// Reads the words of a command line, the name of the program first.
pub(crate) fn set(words: &[OsString]) {
    let words = words.iter().skip(1).take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let mut names = words.clone().filter(|word| !word.starts_with('-'));
    let command = match names.next() {
        Some(first @ ("map" | "sets" | "slice")) => {
            Some([Some(first), names.next()].into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        first => first.map(str::to_string),
    };
    *LINE.write().unwrap_or_else(PoisonError::into_inner) = (words.clone().any(|word| word == "--json"), command);
}

/// Whether the command line has `--json`.
pub(crate) fn is_requested() -> bool {
    LINE.read().unwrap_or_else(PoisonError::into_inner).0
}

/// The command, like `sets query`, as it was typed.
pub(crate) fn command() -> Option<String> {
    LINE.read().unwrap_or_else(PoisonError::into_inner).1.clone()
}

/// The object of these fields; `form` is what the file at hand holds.
pub(crate) fn object(form: Option<Form>, mut fields: Value) -> Value {
    fields["schema"] = SCHEMA.into();
    fields["command"] = command().into();
    fields["form"] = form.map(Form::name).into();
    fields
}

/// Sets a field to bytes: as text, or as null with their hexadecimal digits in a second field, for JSON has no other strings.
pub(crate) fn put(fields: &mut Value, name: &str, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => fields[name] = text.into(),
        Err(_) => {
            fields[name] = Value::Null;
            fields[format!("{name}_hex")] = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        }
    }
}

/// Sets the field `file` to the name of a file; null for standard input and output.
pub(crate) fn put_file(fields: &mut Value, path: Option<&std::path::Path>) {
    fields["file"] = Value::Null;
    if let Some(path) = path {
        put(fields, "file", path.as_os_str().as_encoded_bytes());
    }
}

/// Sets the fields that say where a key is.
pub(crate) fn put_place(fields: &mut Value, place: Option<Place<'_>>) {
    let path = place.and_then(|place| if let Source::File(path) = place.source { Some(path.as_path()) } else { None });
    put_file(fields, path);
    fields["unit"] = place.map(|place| place.unit.to_string()).into();
    fields["position"] = place.map(|place| place.line).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_every_form() {
        let document =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md")).unwrap_or_default();
        let row = document.lines().find(|line| line.starts_with("| `form` | text or null |")).unwrap_or_default();
        let listed: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
        assert_eq!(listed, Form::ALL.iter().map(|form| form.name()).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_are_text_or_hexadecimal() {
        let mut fields = serde_json::json!({});
        put(&mut fields, "key", "né\"".as_bytes());
        put(&mut fields, "value", b"a\xff\x00");
        assert_eq!(fields, serde_json::json!({ "key": "né\"", "value": null, "value_hex": "61ff00" }));
        put_file(&mut fields, None);
        assert_eq!(fields["file"], Value::Null);
    }
}
