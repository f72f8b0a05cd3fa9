//! the pages of docs/papers -> every figure and table of the papers is on its page.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// The pages, with the numbers of the last figure and the last table of each paper.
const PAGES: [(&str, u32, u32); 5] =
    [("broom", 1, 0), ("chained", 13, 3), ("csc", 13, 1), ("fpfs", 13, 1), ("stacked", 6, 2)];

/// Whether a page names a figure or a table, not merely one whose number starts with the same digits.
fn names(page: &str, kind: &str, number: u32) -> bool {
    let name = format!("{kind} {number}");
    page.match_indices(&name).any(|(at, _)| !page[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn every_figure_and_table_is_on_its_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    for file in fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_str().unwrap().to_string();
        if name == "README" {
            continue;
        }
        let &(_, figures, tables) = PAGES.iter().find(|page| page.0 == name).unwrap();
        let page = fs::read_to_string(&file).unwrap();
        for (kind, last) in [("Figure", figures), ("Table", tables)] {
            let missing: Vec<u32> = (1..=last).filter(|&number| !names(&page, kind, number)).collect();
            assert!(missing.is_empty(), "{name}.md: no {kind} {missing:?}");
        }
        assert!(page.contains("\n## Not reproduced"), "{name}.md: what is not reproduced?");
        assert!(index.contains(&format!("]({name}.md)")), "README.md: no link to {name}.md");
    }
}

#[test]
fn a_number_is_not_the_start_of_another() {
    assert!(names("Figure 1: x", "Figure", 1) && names("(Figure 1)", "Figure", 1));
    assert!(!names("Figure 12, Table 1", "Figure", 1) && !names("Table 1", "Figure", 1));
}
