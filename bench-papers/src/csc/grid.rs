//! named rows of numbers -> a table and its JSON.

use serde::Serialize;
use tamis_bench::table::Table;

#[derive(Serialize)]
pub(super) struct Grid {
    head: String,
    /// The names of the columns, that of the rows' names first.
    columns: Vec<String>,
    rows: Vec<Row>,
    note: String,
    /// What went wrong: a structure that could not be built, or that lost a pair.
    wrong: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    values: Vec<Option<f64>>,
}

impl Grid {
    pub(super) fn new<C: Into<String>>(head: impl Into<String>, columns: impl IntoIterator<Item = C>) -> Grid {
        let columns = columns.into_iter().map(Into::into).collect();
        Grid { head: head.into(), columns, rows: Vec::new(), note: String::new(), wrong: Vec::new() }
    }

    /// Adds a row; missing values at its end are dashes.
    pub(super) fn row(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) {
        let mut values: Vec<_> = values.into_iter().collect();
        values.resize(self.columns.len() - 1, None);
        self.rows.push(Row { name: name.into(), values });
    }

    /// The same without missing values.
    pub(super) fn full(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) {
        self.row(name, values.into_iter().map(Some));
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Grid {
        self.note = note.into();
        self
    }

    pub(super) fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }

    pub(super) fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    pub(super) fn table(&self) -> Table {
        let wrong = self.wrong.iter().map(|wrong| format!(" WRONG: {wrong}."));
        Table::of(&self.rows)
            .text(&self.columns[0], |row| &row.name)
            .texts(&self.columns[1..], |row| row.values.iter().map(|value| value.map_or("-".into(), show)))
            .table(&self.head, self.note.clone() + &wrong.collect::<String>())
    }
}

/// About three digits.
pub(super) fn show(x: f64) -> String {
    match x.abs() {
        _ if x.fract() == 0.0 && x.abs() < 1e12 => format!("{x}"),
        size if size >= 1e7 => format!("{x:.3e}"),
        size if size >= 100.0 => format!("{x:.0}"),
        size if size >= 10.0 => format!("{x:.1}"),
        size if size >= 1.0 => format!("{x:.2}"),
        size if size >= 1e-3 => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [0.0, 12.0, 1234.5, 12.34, 1.2345, 0.01234, 0.0000123, 50_000_100.5].map(show);
        assert_eq!(shown, ["0", "12", "1234", "12.3", "1.23", "0.0123", "1.23e-5", "5.000e7"]);
    }

    #[test]
    fn short_rows_end_in_dashes() {
        let mut grid = Grid::new("head", ["x", "a", "b"]);
        grid.row("r", [Some(1.5)]);
        assert_eq!(grid.table().rows, [["r", "1.50", "-"]]);
        assert!(grid.is_clean());
        grid.wrong("lost");
        assert!(!grid.is_clean() && grid.table().note.contains("lost"));
    }
}
