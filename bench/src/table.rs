//! rows -> Markdown and JSON.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// A head line, a table, a note: what is printed.
pub(crate) struct Table {
    /// What was measured on what.
    pub(crate) head: String,
    /// The columns' names; the first is the rows' name.
    pub(crate) columns: Vec<String>,
    /// One cell per column.
    pub(crate) rows: Vec<Vec<String>>,
    /// How to read it.
    pub(crate) note: String,
}

/// A number with `digits` decimals, or a dash.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_string(), |v| format!("{v:.digits$}"))
}

impl fmt::Display for Table {
    /// Markdown whose source is aligned too: names to the left, numbers to the right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|c| {
                self.rows.iter().chain([&self.columns]).map(|row| row[c].chars().count()).max().unwrap_or(0).max(3)
            })
            .collect();
        let line = |f: &mut fmt::Formatter<'_>, row: &[String]| {
            for (c, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if c == 0 { write!(f, "| {cell:<width$} ")? } else { write!(f, "| {cell:>width$} ")? }
            }
            writeln!(f, "|")
        };
        writeln!(f, "{}\n", self.head)?;
        line(f, &self.columns)?;
        for (c, &width) in widths.iter().enumerate() {
            if c == 0 { write!(f, "|{:-<1$}", "", width + 2)? } else { write!(f, "|{:-<1$}:", "", width + 1)? }
        }
        writeln!(f, "|")?;
        for row in &self.rows {
            line(f, row)?;
        }
        writeln!(f, "\n{}", self.note)
    }
}

/// Prints the tables, writes the JSON, or prints the JSON instead.
pub(crate) fn publish(report: &impl Serialize, tables: &[Table], json: Option<&Path>) -> Result<(), Box<dyn Error>> {
    if json == Some(Path::new("-")) {
        println!("{}", serde_json::to_string_pretty(report)?);
        return Ok(());
    }
    for (i, table) in tables.iter().enumerate() {
        print!("{}{table}", if i > 0 { "\n" } else { "" });
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(report)? + "\n";
        fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_aligned() {
        let strings = |row: [&str; 2]| row.map(String::from).to_vec();
        let table = Table {
            head: "head".into(),
            columns: strings(["name", "x"]),
            rows: vec![strings(["a", "1.25"]), strings(["longer", &number(None, 2)])],
            note: "note".into(),
        };
        let expected = "head\n\n| name   |    x |\n|--------|-----:|\n| a      | 1.25 |\n| longer |    - |\n\nnote\n";
        assert_eq!(table.to_string(), expected);
        assert_eq!(number(Some(1.255), 1), "1.3");
    }
}
