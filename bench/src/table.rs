//! rows -> Markdown, JSON and records.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::record;

/// A head line, a table, a note: what is printed.
pub struct Table {
    /// What was measured on what.
    pub head: String,
    /// The columns' names; the first is the rows' name.
    pub columns: Vec<String>,
    /// One cell per column.
    pub rows: Vec<Vec<String>>,
    /// How to read it.
    pub note: String,
}

/// A number with `digits` decimals, or a dash.
pub fn number(value: Option<f64>, digits: usize) -> String {
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

/// What an experiment found.
pub trait Report: Serialize {
    /// The results as Markdown.
    fn tables(&self) -> Vec<Table>;

    /// Whether everything was built and answered rightly.
    fn is_clean(&self) -> bool;
}

/// Where results go.
#[derive(Args)]
pub struct Output {
    /// Write the results as JSON to this file; `-` prints JSON instead of the table.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Add the rows to this file as JSON lines, in place of those of the same command.
    #[arg(long, global = true, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Output {
    /// Prints the tables and writes the JSON, or prints the JSON instead, and records the rows. Returns whether the report
    /// is clean.
    pub fn publish(&self, report: &impl Report) -> Result<bool, Box<dyn Error>> {
        if let Some(file) = &self.record {
            record::add(file, &record::command(), report)?;
        }
        let json = || serde_json::to_string_pretty(report).map(|text| text + "\n");
        if self.json.as_deref() == Some(Path::new("-")) {
            print!("{}", json()?);
            return Ok(report.is_clean());
        }
        for (i, table) in report.tables().iter().enumerate() {
            print!("{}{table}", if i > 0 { "\n" } else { "" });
        }
        if let Some(file) = &self.json {
            fs::write(file, json()?).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        Ok(report.is_clean())
    }
}

/// The exit code of a program: 0 if its report is clean, 1 if not, 2 after an error, which is printed.
pub fn exit(program: &str, clean: Result<bool, Box<dyn Error>>) -> ExitCode {
    clean.map_or_else(
        |e| {
            eprintln!("{program}: {e}");
            ExitCode::from(2)
        },
        |clean| ExitCode::from(u8::from(!clean)),
    )
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
