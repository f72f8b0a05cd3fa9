//! recorded rows -> pictures: SVG files that no machine and no plotting library has a part in.
//!
//! ```text
//!   tamis-bench sizes .. --record docs/figures/rates.jsonl      rows of one or more commands
//!   tamis-bench figures                                         docs/figures/rates.svg, and all others
//! ```
//!
//! `.ci/figures` records all of them again. A picture is a function of its file: a test draws each once more and compares.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tamis::bounds;

use self::chart::{Axis, Bar, Chart, Group, Label, Series};
use self::svg::{Anchor, Colour};
use crate::record::{self, Line};

mod chart;
mod svg;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder of records, NAME.jsonl for every picture.
    #[arg(long, default_value = "docs/figures")]
    from: PathBuf,
    /// The folder that NAME.svg is written to.
    #[arg(long, default_value = "docs/figures")]
    to: PathBuf,
}

type Draw = fn(&[Line]) -> Result<String, String>;

/// Every picture: its name, and how it is drawn.
const PICTURES: [(&str, Draw); 7] = [
    ("promises", promises),
    ("rates", rates),
    ("times", times),
    ("exact", exact),
    ("skew", skew),
    ("attack", attack),
    ("sets", sets),
];

/// Draws all pictures, and says what was written.
pub(crate) fn run(Options { from, to }: &Options) -> Result<String, String> {
    let mut written = String::new();
    for (name, draw) in PICTURES {
        let records = from.join(name).with_extension("jsonl");
        let picture = draw(&record::read(&records)?).map_err(|e| format!("{}: {e}", records.display()))?;
        let file = to.join(name).with_extension("svg");
        fs::write(&file, picture).map_err(|e| format!("{}: {e}", file.display()))?;
        written += &format!("{}\n", file.display());
    }
    Ok(written)
}

/// A number in a row, by the names of its fields.
fn number(value: &Value, path: &str) -> Result<f64, String> {
    let found = path.split('.').try_fold(value, |value, field| value.get(field));
    found.and_then(Value::as_f64).ok_or_else(|| format!("a row has no number \"{path}\": {value}"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value[field].as_str().ok_or_else(|| format!("a row has no text \"{field}\": {value}"))
}

/// Lines of a part, which must be there.
fn part<'a>(lines: &'a [Line], part: &str) -> Result<Vec<&'a Line>, String> {
    let found: Vec<&Line> = lines.iter().filter(|line| line.part == part).collect();
    if found.is_empty() { Err(format!("no row of \"{part}\"")) } else { Ok(found) }
}

/// A number with commas.
fn grouped(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Ticks that are named as they are written.
fn ticks(values: &[f64], unit: &str) -> Vec<(f64, String)> {
    values.iter().map(|value| (*value, format!("{value}{unit}"))).collect()
}

/// A series of the points that `point` finds in the lines.
fn series(
    name: &'static str,
    colour: Colour,
    lines: &[&Line],
    point: impl Fn(&Line) -> Option<Result<(f64, f64), String>>,
) -> Result<Series, String> {
    joined(name, colour, lines.iter().filter_map(|line| point(line)).collect::<Result<_, _>>()?)
}

/// A series of these points, of which there must be some.
fn joined(name: &'static str, colour: Colour, points: Vec<(f64, f64)>) -> Result<Series, String> {
    match points.is_empty() {
        true => Err(format!("no point of \"{name}\"")),
        false => Ok(Series { name, colour, points, dashed: false, label: Label::Right }),
    }
}

/// The first row whose `field` starts with a name.
fn named<'a>(lines: &[&'a Line], field: &str, name: &str) -> Result<&'a Line, String> {
    let found = lines.iter().find(|line| line.row[field].as_str().is_some_and(|found| found.starts_with(name)));
    found.copied().ok_or_else(|| format!("no row of \"{name}\""))
}

fn bound(name: &'static str, points: Vec<(f64, f64)>) -> Series {
    Series { name, colour: Colour::Bound, points, dashed: true, label: Label::Right }
}

/// Bits per key against what is promised.
fn promises(lines: &[Line]) -> Result<String, String> {
    let lines = part(lines, "promises")?;
    let group = |promise: &str, heading: &'static str| -> Result<Group, String> {
        let lines = lines.iter().filter(|line| line.row["promise"] == promise);
        let bar = |line: &&Line| {
            let name = text(&line.row, "name")?;
            let colour = match name {
                _ if name.starts_with("tamis") => Colour::Tamis,
                "Bloom cascade" => Colour::BloomLayers,
                _ if name.starts_with("Bloom") => Colour::Bloom,
                _ if name.starts_with("fuse") => Colour::Fuse,
                _ => Colour::Ribbon,
            };
            let remark = match number(&line.row, "exceptions")? {
                0.0 => String::new(),
                found => format!(" ({} popular domains match)", grouped(found)),
            };
            Ok(Bar { name: name.into(), colour, value: number(&line.row, "bits_per_key")?, remark })
        };
        let bound = number(&lines.clone().next().ok_or("a promise has no row")?.row, "bound")?;
        Ok(Group { heading, bound, bars: lines.map(bar).collect::<Result<_, String>>()? })
    };
    let axis = Axis {
        title: "size in bits per key",
        from: 0.0,
        to: 24.0,
        log: false,
        ticks: ticks(&[0.0, 5.0, 10.0, 15.0, 20.0], ""),
    };
    let groups = [
        group("any key", "1 % of keys outside the set match, popular domains among them")?,
        group("excluded keys", "1 % of other keys match, and no popular domain")?,
        group("listed keys", "No popular domain matches, and other keys are never queried")?,
    ];
    let [keys, excluded] = ["keys", "excluded"].map(|field| number(&lines[0].row, field).map(grouped));
    let lists = format!("{} blocked hosts, {} popular domains", keys?, excluded?);
    Ok(chart::bars("What a promise costs", &lists, &axis, &groups))
}

/// Bits per key against the rate.
fn rates(lines: &[Line]) -> Result<String, String> {
    let lines = part(lines, "sizes")?;
    let of = |name: &'static str, label, colour| {
        let point = |line: &Line| Ok((1.0 / number(&line.row, "fpr")?, number(&line.row, "bits_per_key")?));
        series(label, colour, &lines, |line| (line.row["name"] == name).then(|| point(line)))
    };
    // It leaves the chart at the top.
    let mut split_block = of("split-block Bloom", "split-block Bloom", Colour::SplitBlock)?;
    split_block.label = Label::At(-10.0, 2.0, Anchor::End);
    let powers = [2u32, 16, 256, 4096, 65_536];
    let least = powers.map(|power| (f64::from(power), f64::from(power.ilog2()))).to_vec();
    Ok(Chart {
        title: "Size against rate",
        subtitle: format!("{} random keys, the whole file", grouped(number(&lines[0].run.options, "n")?)),
        x: Axis {
            title: "fpr: the share of keys outside the set that match",
            from: 2.0,
            to: 80_000.0,
            log: true,
            ticks: powers.map(|power| (f64::from(power), format!("1/{}", grouped(f64::from(power))))).to_vec(),
        },
        y: Axis {
            title: "size in bits per key",
            from: 0.0,
            to: 25.0,
            log: false,
            ticks: ticks(&[0.0, 5.0, 10.0, 15.0, 20.0, 25.0], ""),
        },
        right: 170.0,
        series: vec![
            split_block,
            of("classic Bloom", "classic Bloom", Colour::Bloom)?,
            of("cuckoo, semi-sorted", "cuckoo, semi-sorted", Colour::Cuckoo)?,
            of("quotient", "quotient", Colour::Quotient)?,
            of("fuse 3-wise", "fuse, 3-wise", Colour::Fuse)?,
            of("fuse 4-wise", "fuse, 4-wise", Colour::Fuse4)?,
            of("ribbon", "ribbon", Colour::Ribbon)?,
            bound("lower bound", least),
        ],
    }
    .draw())
}

/// Time of a query against the number of keys, on the machine that recorded it.
fn times(lines: &[Line]) -> Result<String, String> {
    let lines = part(lines, "rows")?;
    let of = |name: &'static str, label, colour| {
        let point = |line: &Line| {
            let [member, unlisted] = ["median.members", "median.strangers"].map(|field| number(&line.row, field));
            Ok((number(&line.run.options, "n")?, f64::midpoint(member?, unlisted?)))
        };
        series(label, colour, &lines, |line| (line.row["name"] == name).then(|| point(line)))
    };
    Ok(Chart {
        title: "Time of a query against the number of keys",
        subtitle: format!(
            "random keys, queries one by one, every second a member; {}",
            text(&lines[0].run.machine, "cpu")?
        ),
        x: Axis {
            title: "keys",
            from: 100.0,
            to: 1e7,
            log: true,
            ticks: (2..=7).map(|power| (10f64.powi(power), grouped(10f64.powi(power)))).collect(),
        },
        y: Axis {
            title: "nanoseconds of processor time",
            from: 2.0,
            to: 100.0,
            log: true,
            ticks: ticks(&[2.0, 5.0, 10.0, 20.0, 50.0, 100.0], ""),
        },
        right: 190.0,
        series: vec![
            of("fastbloom 1 %", "fastbloom, 1 %", Colour::Bloom)?,
            of("pleat Ribbon<8>", "pleat ribbon, 8 bits", Colour::Ribbon)?,
            of("sux VFilter u8", "sux VFilter, 8 bits", Colour::Sux)?,
            of("xorf BinaryFuse8", "xorf fuse, 8 bits", Colour::Fuse)?,
            of("sbbf-rs-safe 13 bits", "sbbf-rs, 13 bits", Colour::SplitBlock)?,
            of("tamis ribbon 8 bit, from keys", "tamis ribbon, 8 bits", Colour::Tamis)?,
        ],
    }
    .draw())
}

/// Size over the bound against lambda, for exact sets.
fn exact(lines: &[Line]) -> Result<String, String> {
    let ours = part(lines, "groups")?;
    let paper = part(lines, "throughput")?;
    let keys = grouped(number(&ours[0].run.options, "n")?);
    let of = |lines: &[&Line], name: &'static str, label, colour| {
        let point = |line: &Line| {
            let lambda = number(&line.group, "lambda")?;
            let keys = number(&line.group, "keys").or_else(|_| number(&line.run.options, "n"))?;
            let over = number(&line.row, "median.bits")? / keys / bounds::f(0.0, lambda) - 1.0;
            Ok((lambda, 100.0 * over))
        };
        series(label, colour, lines, |line| (line.row["name"] == name).then(|| point(line)))
    };
    Ok(Chart {
        title: "Exact sets: size above the lower bound",
        subtitle: format!("{keys} random keys, lambda times as many excluded ones"),
        x: Axis {
            title: "lambda: excluded keys per member",
            from: 1.0,
            to: 100.0,
            log: true,
            ticks: ticks(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0], ""),
        },
        y: Axis {
            title: "above the bound, in percent of it",
            from: 0.5,
            to: 200.0,
            log: true,
            ticks: ticks(&[0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0], " %"),
        },
        right: 190.0,
        series: vec![
            of(&ours, "rust_cascade", "rust_cascade", Colour::BloomLayers)?,
            of(&ours, "sux VFilter + VFunc", "sux VFilter + VFunc", Colour::Sux)?,
            of(&paper, "chained, as in the paper", "chained, as in its paper", Colour::Chained)?,
            of(&ours, "clubcard", "clubcard", Colour::Clubcard)?,
            of(&ours, "tamis chained ribbon", "tamis chained ribbon", Colour::Ribbon)?,
            of(&ours, "tamis steered", "tamis", Colour::Tamis)?,
            of(&ours, "tamis steered smallest", "tamis, effort smallest", Colour::Smallest)?,
        ],
    }
    .draw())
}

/// Rates of a workload against its skew.
fn skew(lines: &[Line]) -> Result<String, String> {
    let lines = part(lines, "planner")?;
    let of = |field: &'static str, label, colour| {
        let point = |line: &Line| Ok((number(&line.row, "eta")?, number(&line.row[field], "efpr")?));
        series(label, colour, &lines, |line| Some(point(line)))
    };
    let options = &lines[0].run.options;
    let (n, each) = (number(options, "n")?, number(options, "negatives_per_key")?);
    Ok(Chart {
        title: "Negative queries that match, against the skew of the workload",
        subtitle: format!(
            "{} keys, {} negatives queried by Zipf's law, the heavier half listed; {} bits per key",
            grouped(n),
            grouped(n * each),
            number(&lines[0].row, "planner.budget")?
        ),
        x: Axis {
            title: "exponent of Zipf's law",
            from: 0.25,
            to: 1.5,
            log: false,
            ticks: ticks(&[0.25, 0.5, 0.75, 1.0, 1.25, 1.5], ""),
        },
        y: Axis {
            title: "share of negative queries that match",
            from: 1e-7,
            to: 0.02,
            log: true,
            ticks: (2..)
                .zip(["²", "³", "⁴", "⁵", "⁶", "⁷"])
                .map(|(i, power)| (0.1f64.powi(i), format!("10⁻{power}")))
                .collect(),
        },
        right: 170.0,
        series: vec![
            of("bloom", "classic Bloom", Colour::Bloom)?,
            of("ribbon", "ribbon", Colour::Ribbon)?,
            of("stacked", "stacked Bloom", Colour::BloomLayers)?,
            of("planner", "tamis, with workload", Colour::Tamis)?,
        ],
    }
    .draw())
}

/// Rates over time under attack.
fn attack(lines: &[Line]) -> Result<String, String> {
    let lines = part(lines, "outcomes")?;
    let options = &lines[0].run.options;
    let (keys, window) = (number(options, "keys")?, number(options, "window")?);
    let most = number(options, "queries")? / 1e6;
    let of = |name: &'static str, label, colour| -> Result<Series, String> {
        let row = &named(&lines, "filter", name)?.row;
        let promised = number(row, "promised_rate")? * window;
        let windows = row["windows"].as_array().ok_or("a row has no windows")?;
        let counts = windows.iter().map(|count| count.as_f64().unwrap_or_default());
        let points = (1..).zip(counts).map(|(i, count)| (f64::from(i) * window / 1e6, count / promised));
        joined(label, colour, points.collect())
    };
    let millions: Vec<f64> = (0..=5).map(|i| f64::from(i) * most / 5.0).collect();
    Ok(Chart {
        title: "False positives over time, under attack",
        subtitle: format!(
            "{} keys; fresh, replayed and neighbouring queries; every false positive is reported",
            grouped(keys)
        ),
        x: Axis { title: "million queries", from: 0.0, to: most, log: false, ticks: ticks(&millions, "") },
        y: Axis {
            title: "false positives, times the promised rate",
            from: 0.3,
            to: 150.0,
            log: true,
            ticks: ticks(&[0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], " ×"),
        },
        right: 190.0,
        series: vec![
            of("plain Bloom", "Bloom", Colour::Bloom)?,
            of("plain quotient", "quotient", Colour::Quotient)?,
            of("adaptive cuckoo 11 bit", "adaptive cuckoo", Colour::Cuckoo)?,
            of("broom", "tamis Broom", Colour::Tamis)?,
            bound("promised", vec![(0.0, 1.0), (most, 1.0)]),
        ],
    }
    .draw())
}

/// False sets of an absent key against memory, for many sets.
fn sets(lines: &[Line]) -> Result<String, String> {
    let all = part(lines, "figures")?;
    let under = |head: &str| -> Vec<&Line> {
        let has = |line: &&&Line| {
            line.group["head"].as_str().is_some_and(|text| text.starts_with(head) && text.contains("RCV1"))
        };
        all.iter().filter(has).copied().collect()
    };
    let (by_memory, tuned) = (under("Figure 7"), under("The preset"));
    // Budgets are in the heads of the columns: "5.0e7 bits, 13.5 a pair". None at all were seen where there is no point.
    let of = |name: &str, label, colour| -> Result<Series, String> {
        let line = named(&by_memory, "name", name)?;
        let empty = Vec::new();
        let [columns, values] =
            [&line.group["columns"], &line.row["values"]].map(|list| list.as_array().unwrap_or(&empty));
        let budget = |column: &Value| column.as_str()?.split(", ").nth(1)?.split(' ').next()?.parse::<f64>().ok();
        let points =
            columns[1..].iter().zip(values).filter_map(|(column, value)| Some((budget(column)?, value.as_f64()?)));
        joined(label, colour, points.filter(|point| point.1 > 0.0).collect())
    };
    let frozen = |line: &Line| {
        let [bits, absent] =
            [0, 1].map(|i| line.row["values"][i].as_f64().ok_or("a row has too few values".to_string()));
        Ok((bits?, absent?))
    };
    let is_frozen = |line: &Line| line.row["name"].as_str().is_some_and(|name| name.contains("frozen"));
    let mut frozen = series("tamis, frozen", Colour::Tamis, &tuned, |line| is_frozen(line).then(|| frozen(line)))?;
    frozen.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    frozen.label = Label::At(-10.0, 4.0, Anchor::End);
    let mut tuned = of("tamis CSC-BF, tuned", "tamis CSC, tuned", Colour::Csc)?;
    tuned.label = Label::At(10.0, 4.0, Anchor::Start);
    Ok(Chart {
        title: "Many sets: false sets against memory",
        subtitle: format!("2,456 sets with the sizes of RCV1-X, scale {}", number(&all[0].run.options, "scale")?),
        x: Axis {
            title: "memory in bits per pair of a key and a set",
            from: 5.0,
            to: 28.0,
            log: false,
            ticks: ticks(&[5.0, 10.0, 15.0, 20.0, 25.0], ""),
        },
        y: Axis {
            title: "false sets for a key in no set",
            from: 0.0001,
            to: 1000.0,
            log: true,
            ticks: ticks(&[0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], ""),
        },
        right: 190.0,
        series: vec![
            of("BIGSI, per set", "Bloom filter per set", Colour::Bloom)?,
            of("RAMBO", "RAMBO, r = 3", Colour::Rambo)?,
            of("tamis CSC-BF, r = 3", "CSC, as in its paper", Colour::CscPaper)?,
            tuned,
            frozen,
        ],
    }
    .draw())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    /// What is in the repository is what is drawn from its records.
    #[test]
    fn pictures_are_those_of_their_records() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        let to = tempfile::tempdir().unwrap();
        let written = run(&Options { from: folder.clone(), to: to.path().into() }).unwrap();
        assert_eq!(written.lines().count(), PICTURES.len());
        let pages = ["../README.md", "../docs/benchmarks.md"];
        let pages =
            pages.map(|page| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()).concat();
        for (name, _) in PICTURES {
            assert!(pages.contains(&format!("figures/{name}.svg)")), "{name}.svg is on no page");
            let [there, drawn] =
                [folder.as_path(), to.path()].map(|dir| fs::read_to_string(dir.join(format!("{name}.svg"))).unwrap());
            assert!(there == drawn, "{name}.svg: draw it again with tamis-bench figures");
        }
    }

    /// A record that lacks what a picture needs is an error that says so, and no empty picture.
    #[test]
    fn missing_rows_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { from: folder.path().into(), to: folder.path().into() };
        assert!(run(&options).unwrap_err().contains("promises.jsonl"));
        fs::write(folder.path().join("promises.jsonl"), "").unwrap();
        assert!(run(&options).unwrap_err().ends_with("promises.jsonl: no row of \"promises\""));
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0.0, 999.0, 1000.0, 1_234_567.0].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
