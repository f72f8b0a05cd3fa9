//! rows -> Markdown, JSON and records.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::record;

/// What is printed: a head line, a table, a note.
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
pub fn number(value: impl Into<Option<f64>>, digits: usize) -> String {
    value.into().map_or("-".to_string(), |v| format!("{v:.digits$}"))
}

/// The table of these rows; none without rows.
pub fn some<R>(rows: &[R], table: impl FnOnce(&[R]) -> Table) -> Option<Table> {
    (!rows.is_empty()).then(|| table(rows))
}

/// Every row of every group, with its group.
pub fn rows_of<'a, G, R: 'a>(groups: &'a [G], rows: fn(&G) -> &[R]) -> impl Iterator<Item = (&'a G, &'a R)> {
    groups.iter().flat_map(move |group| rows(group).iter().map(move |row| (group, row)))
}

/// A table that gets its columns one by one, each with its name, its format and the function from a row to its cell.
///
/// ```
/// # use tamis_bench::table::Table;
/// let rows = [("ribbon", 1, Some(8.3)), ("fuse", 2, None)];
/// let table = Table::of(&rows)
///     .text("structure", |row| row.0)
///     .text("rounds", |row| row.1)
///     .number("bits/key", 2, |row| row.2)
///     .table("Sizes.", "Bits of the whole file.");
/// assert_eq!(table.columns, ["structure", "rounds", "bits/key"]);
/// assert_eq!(table.rows, [["ribbon", "1", "8.30"], ["fuse", "2", "-"]]);
/// ```
pub struct Columns<R> {
    names: Vec<String>,
    rows: Vec<(R, Vec<String>)>,
}

impl Table {
    /// The rows, as yet without columns.
    pub fn of<R: Copy>(rows: impl IntoIterator<Item = R>) -> Columns<R> {
        Columns { names: Vec::new(), rows: rows.into_iter().map(|row| (row, Vec::new())).collect() }
    }
}

impl<R: Copy> Columns<R> {
    /// Adds a column of words or whole numbers.
    pub fn text<C: ToString>(self, name: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.texts([name], |row| [cell(row)])
    }

    /// Adds a column of numbers with `digits` decimals, and dashes where there are none.
    pub fn number<N: Into<Option<f64>>>(self, name: impl Into<String>, digits: usize, cell: impl Fn(R) -> N) -> Self {
        self.text(name, |row| number(cell(row), digits))
    }

    /// Adds several columns of words or whole numbers; cells that are missing at the end are dashes.
    pub fn texts<N: Into<String>, C: IntoIterator<Item: ToString>>(
        mut self,
        names: impl IntoIterator<Item = N>,
        cells: impl Fn(R) -> C,
    ) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        for (row, line) in &mut self.rows {
            line.extend(cells(*row).into_iter().map(|cell| cell.to_string()));
            line.resize(self.names.len(), "-".to_string());
        }
        self
    }

    /// Adds several columns of numbers with as many decimals.
    pub fn numbers<N: Into<String>, C: IntoIterator<Item: Into<Option<f64>>>>(
        self,
        names: impl IntoIterator<Item = N>,
        digits: usize,
        cells: impl Fn(R) -> C,
    ) -> Self {
        self.texts(names, |row| cells(row).into_iter().map(|value| number(value, digits)).collect::<Vec<_>>())
    }

    /// The table under a head line, with a note.
    pub fn table(self, head: impl Into<String>, note: impl Into<String>) -> Table {
        let rows = self.rows.into_iter().map(|(_, line)| line).collect();
        Table { head: head.into(), columns: self.names, rows, note: note.into() }
    }
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
    /// Add the rows to this file as JSON lines, replacing earlier ones of the same command.
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
        let rows = [("a", Some(1.25)), ("longer", None)];
        let table = Table::of(rows).text("name", |row| row.0).number("x", 2, |row| row.1).table("head", "note");
        let expected = "head\n\n| name   |    x |\n|--------|-----:|\n| a      | 1.25 |\n| longer |    - |\n\nnote\n";
        assert_eq!(table.to_string(), expected);
        assert_eq!(number(1.255, 1), "1.3");
    }

    #[test]
    fn short_rows_end_in_dashes() {
        let groups = [(1, vec![vec![0.5], vec![0.25, 2.0]]), (2, vec![vec![]])];
        let table = Table::of(rows_of(&groups, |group| &group.1)).text("of", |row| row.0.0);
        let table = table.numbers(["x", "y"], 1, |row| row.1.iter().copied()).table("", "");
        assert_eq!(table.rows, [["1", "0.5", "-"], ["1", "0.2", "2.0"], ["2", "-", "-"]]);
    }
}
