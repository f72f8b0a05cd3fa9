//! a report -> lines of JSON, one for every measured row, kept in a file: what pictures are drawn from.
//!
//! ```text
//!   {"command": .., "machine": {..}, "options": {..}}                                        a run: the rows below are of it
//!   {"part": "groups", "group": {"lambda": 3, ..}, "row": {"name": .., ..}}
//! ```
//!
//! A row is an element of a list of the report; an element that has `rows` of its own is a group, and its other fields go
//! with each of them. A file has one run of every command: a run takes the place of an earlier one with the same words.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// Where rows come from.
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) command: String,
    pub(crate) machine: Value,
    pub(crate) options: Value,
}

#[derive(Serialize, Deserialize)]
struct Measured {
    /// The list of the report that it is in.
    part: String,
    /// Fields of its group.
    group: Value,
    row: Value,
}

/// A line of a file: a run, or a row of the run above it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Run(Run),
    Measured(Measured),
}

/// A measured row and where it comes from.
pub(crate) struct Line {
    pub(crate) run: Rc<Run>,
    pub(crate) part: String,
    pub(crate) group: Value,
    pub(crate) row: Value,
}

/// The words of this process, those with spaces quoted.
pub(crate) fn command() -> String {
    let words = std::env::args().enumerate().map(|(i, word)| match i {
        0 => Path::new(&word).file_stem().map_or(word.clone(), |name| name.to_string_lossy().into_owned()),
        _ if word.contains(' ') => format!("\"{word}\""),
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Adds the rows of a report to a file, in place of those of the same command.
pub(crate) fn add(file: &Path, command: &str, report: &impl Serialize) -> Result<(), Box<dyn Error>> {
    let mut lines = if file.exists() { read(file)? } else { Vec::new() };
    lines.retain(|line| line.run.command != command);
    lines.extend(rows(command, serde_json::to_value(report)?));
    let (mut text, mut last) = (String::new(), None);
    for Line { run, part, group, row } in lines {
        if last.as_ref() != Some(&run) {
            text += &serde_json::to_string(&*run)?;
            text.push('\n');
            last = Some(run);
        }
        text += &serde_json::to_string(&Measured { part, group, row })?;
        text.push('\n');
    }
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()).into())
}

pub(crate) fn read(file: &Path) -> Result<Vec<Line>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let (mut lines, mut last) = (Vec::new(), None);
    for (i, line) in (1..).zip(text.lines()) {
        let wrong = |e: &dyn std::fmt::Display| format!("{}: line {i}: {e}", file.display());
        match serde_json::from_str(line).map_err(|e| wrong(&e))? {
            Stored::Run(run) => last = Some(Rc::new(run)),
            Stored::Measured(Measured { part, group, row }) => {
                let run = last.clone().ok_or_else(|| wrong(&"a row before the command that measured it"))?;
                lines.push(Line { run, part, group, row });
            }
        }
    }
    Ok(lines)
}

fn rows(command: &str, report: Value) -> Vec<Line> {
    let Value::Object(mut report) = report else { return Vec::new() };
    let [machine, options] = ["machine", "options"].map(|field| report.remove(field).unwrap_or_default());
    let run = Rc::new(Run { command: command.to_string(), machine, options });
    let mut lines = Vec::new();
    for (part, value) in report {
        collect(value, Fields::new(), &mut |group, row| {
            let (group, row) = (short(Value::Object(group)), short(row));
            lines.push(Line { run: Rc::clone(&run), part: part.clone(), group, row });
        });
    }
    lines
}

/// Finds the rows in a value, each with the fields of its group.
fn collect(value: Value, group: Fields, found: &mut impl FnMut(Fields, Value)) {
    match value {
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(mut fields) => match fields.remove("rows") {
                        Some(rows) => collect(rows, group.clone().into_iter().chain(fields).collect(), found),
                        None => found(group.clone(), Value::Object(fields)),
                    },
                    Value::Array(_) => collect(item, group.clone(), found),
                    _ => {}
                }
            }
        }
        Value::Object(fields) => fields.into_iter().for_each(|(_, value)| collect(value, group.clone(), found)),
        _ => {}
    }
}

/// The same with seven digits of every number and without what is not there: more is noise.
fn short(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().and_then(|x| format!("{x:.6e}").parse::<f64>().ok()).map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.into_iter().map(short).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, short(value)));
            Value::Object(fields.filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_row_is_a_line_with_its_group() {
        let report = json!({
            "machine": {"cores": 2}, "options": {"n": 5}, "reference": "x",
            "groups": [{"lambda": 2.0, "rows": [{"name": "a", "bits": 0.1 + 0.2}, {"name": "b", "times": null}]}],
            "figure": {"shifts": [{"at": 1, "claims": [{"what": "all"}]}]},
        });
        let lines = rows("bench exact", report);
        let found: Vec<_> = lines.iter().map(|line| (line.part.as_str(), &line.group, &line.row)).collect();
        let group = json!({"lambda": 2.0});
        let expected = [
            ("figure", &json!({}), &json!({"at": 1, "claims": [{"what": "all"}]})),
            ("groups", &group, &json!({"name": "a", "bits": 0.3})),
            ("groups", &group, &json!({"name": "b"})),
        ];
        assert_eq!(found, expected);
        assert!(lines.iter().all(|line| line.run.machine["cores"] == 2 && line.run.options["n"] == 5));
    }

    /// A second run of a command takes the place of the first, and other commands stay.
    #[test]
    fn a_file_has_one_run_of_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.jsonl");
        for (command, bits) in [("a", 1), ("b", 2), ("a", 3)] {
            add(&file, command, &json!({"rows": [{"bits": bits}, {"bits": bits}]})).unwrap();
        }
        let lines = read(&file).unwrap();
        let found: Vec<_> = lines.iter().map(|line| (line.run.command.clone(), line.row["bits"].clone())).collect();
        let expected = [("b", 2), ("b", 2), ("a", 3), ("a", 3)].map(|(name, bits)| (name.to_string(), json!(bits)));
        assert_eq!(found, expected);
        // A line for each run, and one for each row.
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 6);
        for wrong in ["{}\n", "{\"part\": \"a\", \"group\": {}, \"row\": {}}\n"] {
            fs::write(&file, wrong).unwrap();
            assert!(read(&file).err().unwrap().contains("x.jsonl: line 1: "));
        }
    }
}
