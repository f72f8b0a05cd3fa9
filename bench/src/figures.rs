//! recorded rows -> pictures: SVG files that no machine and no plotting library has a part in.
//!
//! ```text
//!   tamis-bench sizes .. --record docs/figures/rates.jsonl      rows of one or more commands
//!   tamis-bench figures                                         docs/figures/rates.svg, and all others
//! ```
//!
//! Beside the rows, NAME.json describes the picture ([`plot`]). Those in `papers` belong to figures of papers. `.ci/figures`
//! records all of them again. A picture is a function of its two files: a test draws each once more and compares.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use self::plot::Plot;
use crate::record;

mod chart;
mod formula;
mod plot;
mod svg;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder of descriptions and records, NAME.json and NAME.jsonl for every picture.
    #[arg(long, default_value = "docs/figures")]
    from: PathBuf,
    /// The folder that NAME.svg is written to.
    #[arg(long, default_value = "docs/figures")]
    to: PathBuf,
}

/// Draws all pictures, and says what was written.
pub(crate) fn run(Options { from, to }: &Options) -> Result<String, String> {
    let mut written = String::new();
    for name in names(from)? {
        let picture = draw(from, &name).map_err(|e| format!("{}: {e}", from.join(&name).display()))?;
        let file = to.join(name).with_extension("svg");
        file.parent().map_or(Ok(()), fs::create_dir_all).map_err(|e| format!("{}: {e}", file.display()))?;
        fs::write(&file, picture).map_err(|e| format!("{}: {e}", file.display()))?;
        written += &format!("{}\n", file.display());
    }
    Ok(written)
}

/// The names of the descriptions in a folder, and in `papers` below it.
fn names(from: &Path) -> Result<Vec<PathBuf>, String> {
    let mut names = Vec::new();
    for below in ["", "papers"] {
        let folder = from.join(below);
        if !folder.is_dir() {
            continue;
        }
        let files = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for file in files.map_err(|e| format!("{}: {e}", folder.display()))? {
            let file = PathBuf::from(file.file_name());
            if file.extension().is_some_and(|end| end == "json") {
                names.push(Path::new(below).join(file.with_extension("")));
            }
        }
    }
    names.sort();
    Ok(names)
}

fn draw(from: &Path, name: &Path) -> Result<String, String> {
    let file = from.join(name);
    let text = fs::read_to_string(file.with_extension("json")).map_err(|e| e.to_string())?;
    let plot: Plot = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let record = plot.record.as_ref().map_or(file.clone(), |record| file.with_file_name(record));
    plot.draw(&record::read(&record.with_extension("jsonl"))?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What is in the repository is what is drawn from its records, and every picture is on a page.
    #[test]
    fn pictures_are_those_of_their_records() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = root.join("docs/figures");
        let to = tempfile::tempdir().unwrap();
        let names = names(&folder).unwrap();
        let written = run(&Options { from: folder.clone(), to: to.path().into() }).unwrap();
        assert!(names.len() >= 7 && written.lines().count() == names.len(), "{written}");
        let mut pages = vec![root.join("README.md"), root.join("docs/benchmarks.md")];
        pages.extend(fs::read_dir(root.join("docs/papers")).unwrap().map(|page| page.unwrap().path()));
        let pages: String = pages.iter().map(|page| fs::read_to_string(page).unwrap()).collect();
        for name in names {
            let name = name.with_extension("svg");
            assert!(pages.contains(&format!("figures/{})", name.display())), "{} is on no page", name.display());
            let [there, drawn] = [&folder, to.path()].map(|dir: &Path| fs::read_to_string(dir.join(&name)).unwrap());
            assert!(there == drawn, "{}: draw it again with tamis-bench figures", name.display());
        }
    }

    /// A record that lacks what a picture needs is an error that says so, and no empty picture.
    #[test]
    fn missing_rows_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { from: folder.path().into(), to: folder.path().into() };
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let axis = r#"{"title": "", "from": 0, "to": 9, "ticks": []}"#;
        let series = r#"{"name": "a", "colour": "fuse", "where": {"row.name": "a*"}, "x": "1", "y": "row.bits"}"#;
        let plot = |series: &str| {
            format!(r#"{{"title": "", "subtitle": "", "x": {axis}, "y": {axis}, "series": [{series}]}}"#)
        };
        write("a.json", &plot(series));
        assert!(run(&options).unwrap_err().contains("a.jsonl"));
        let run_line = r#"{"command": "bench", "machine": {}, "options": {}}"#;
        for (row, expected) in [
            ("", "no row has [{}]"),
            (r#"{"name": "b"}"#, "{\"row.name\": String(\"a*\")}]"),
            (r#"{"name": "ab"}"#, "a row has no number \"row.bits\": {}, {\"name\":\"ab\"}"),
        ] {
            let line = format!("{{\"part\": \"x\", \"group\": {{}}, \"row\": {row}}}\n");
            write("a.jsonl", &format!("{run_line}\n{}", if row.is_empty() { "" } else { &line }));
            let found = run(&options).unwrap_err();
            assert!(found.ends_with(expected), "{found}");
        }
        write(
            "a.jsonl",
            &format!("{run_line}\n{}\n", r#"{"part": "x", "group": {}, "row": {"name": "a", "bits": 2}}"#),
        );
        assert_eq!(run(&options).unwrap().lines().count(), 1);
        write("a.json", &plot("{}"));
        assert!(run(&options).unwrap_err().contains("missing field"));
    }
}
