//! a description and a record -> a picture: which rows are drawn, on which axes, in which colours.
//!
//! ```text
//!   {
//!     "title": "..", "subtitle": "{options.n} keys",
//!     "where": {"part": "sizes"},
//!     "x": {"title": "..", "value": "group.lambda", "from": 2, "to": 16, "log": true, "ticks": [2, 4, 8, 16]},
//!     "y": {"title": "..", "value": "row.median.bits / options.n", "from": 0, "to": 20, "ticks": [0, 10, 20]},
//!     "series": [
//!       {"name": "ribbon", "colour": "ribbon", "where": {"row.name": "ribbon"}},
//!       {"name": "the paper", "colour": "ribbon", "style": "paper", "points": [[2, 3.4], [16, 6.8]]}
//!     ]
//!   }
//! ```
//!
//! The record is NAME.jsonl beside NAME.json, unless `record` names another. Formulas are those of [`super::formula`] over
//! `row`, `group`, `options` and `machine`; a series may have its own `x` and `y`. `where` demands values of rows; a text that
//! ends in `*` is the start of one. `panels`, each with a `head` and a `where` of its own, stand side by side. With `"each":
//! "row.list"` a row has a point for every element of a list: `it` is the element and `i` its number from 0, which may be a
//! step of a path, `group.budgets.i`. A picture of bars has `groups` in the place of `y` and `series`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::chart::{self, Label, Style};
use super::formula;
use super::svg::{Anchor, Colour};
use crate::record::Line;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    /// The name of a record in the same folder.
    pub(super) record: Option<String>,
    title: String,
    subtitle: String,
    x: Axis,
    y: Option<Axis>,
    /// Numbers of the elements of lists, called `at`, where the record has them in words only.
    #[serde(default)]
    at: Vec<f64>,
    #[serde(default)]
    r#where: Where,
    #[serde(default = "right")]
    right: f64,
    #[serde(default)]
    panels: Vec<Panel>,
    #[serde(default)]
    series: Vec<Series>,
    #[serde(default)]
    groups: Vec<Group>,
}

fn right() -> f64 {
    170.0
}

/// What rows must have, by the paths of fields.
type Where = BTreeMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    title: String,
    /// The formula of series that have none of their own.
    #[serde(default)]
    value: String,
    from: f64,
    to: f64,
    #[serde(default)]
    log: bool,
    ticks: Vec<Tick>,
    /// What stands after the number of a tick.
    #[serde(default)]
    unit: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tick {
    Number(f64),
    Named(f64, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    head: String,
    #[serde(default)]
    r#where: Where,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    #[serde(default)]
    name: String,
    colour: Colour,
    #[serde(default)]
    style: Style,
    /// Where the name is, from the last point; to the right of the chart if nothing is said.
    label: Option<(f64, f64, Anchor)>,
    #[serde(default)]
    r#where: Where,
    each: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// Points that are in no record, such as those a paper printed.
    #[serde(default)]
    points: Vec<(f64, f64)>,
}

/// Bars under a heading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    head: String,
    #[serde(default)]
    r#where: Where,
    bound: Option<String>,
    bars: Vec<Bar>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bar {
    name: String,
    colour: Colour,
    #[serde(default)]
    r#where: Where,
    value: String,
    /// What the paper printed: a mark on the bar.
    paper: Option<f64>,
    /// What stands after the number, with formulas in braces.
    #[serde(default)]
    remark: String,
}

/// An element of a list: its number, what the picture has for it, its value.
#[derive(Clone, Copy)]
struct Element {
    i: usize,
    at: Option<f64>,
    it: f64,
}

/// The value of a field of a line, by its path.
fn field<'a>(line: &'a Line, element: Option<Element>, path: &str) -> Option<&'a Value> {
    let mut fields = path.split('.');
    let root = match fields.next()? {
        "row" => &line.row,
        "group" => &line.group,
        "options" => &line.run.options,
        "machine" => &line.run.machine,
        _ => return None,
    };
    fields.try_fold(root, |value, name| match value {
        Value::Array(list) => list.get(if name == "i" { element?.i } else { name.parse::<usize>().ok()? }),
        value => value.get(name),
    })
}

/// The value of a formula at a line.
fn number(line: &Line, element: Option<Element>, formula: &str) -> Result<f64, String> {
    formula::value(formula, |name| match (name, element) {
        ("i", Some(element)) => Ok(element.i as f64),
        ("it", Some(element)) => Ok(element.it),
        ("at", Some(element)) => element.at.ok_or_else(|| "\"at\" is shorter than a list".to_string()),
        _ => field(line, element, name)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("a row has no number \"{name}\": {}, {}", line.group, line.row)),
    })
}

/// A text with the values of formulas, or texts of fields, in the place of those in braces.
fn filled(text: &str, line: &Line) -> Result<String, String> {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (formula, rest) = part.split_once('}').ok_or_else(|| format!("\"{text}\": a brace stays open"))?;
        match field(line, None, formula) {
            Some(Value::String(found)) => filled += found,
            _ => filled += &written(number(line, None, formula)?),
        }
        filled += rest;
    }
    Ok(filled)
}

/// A number as it is read: integers have commas.
fn written(value: f64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if value.fract() == 0.0 && i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Lines that have what is demanded, of which there must be some.
fn found<'a>(lines: &'a [Line], demands: &[&Where]) -> Result<Vec<&'a Line>, String> {
    let fits = |line: &Line, (path, value): (&String, &Value)| match path.as_str() {
        "part" => value == &line.part,
        path => match (field(line, None, path), value) {
            (Some(Value::String(there)), Value::String(text)) => match text.strip_suffix('*') {
                Some(start) => there.starts_with(start),
                None => there == text,
            },
            (Some(there), value) => there == value || there.as_f64().is_some_and(|x| value.as_f64() == Some(x)),
            (None, _) => false,
        },
    };
    let fits = |line: &&Line| demands.iter().all(|demand| demand.iter().all(|demand| fits(line, demand)));
    let found: Vec<&Line> = lines.iter().filter(fits).collect();
    match found.is_empty() {
        true => Err(format!("no row has {demands:?}")),
        false => Ok(found),
    }
}

impl Axis {
    fn axis(&self) -> chart::Axis {
        let ticks = self.ticks.iter().map(|tick| match tick {
            Tick::Number(value) => (*value, written(*value) + &self.unit),
            Tick::Named(value, name) => (*value, name.clone()),
        });
        chart::Axis { title: self.title.clone(), from: self.from, to: self.to, log: self.log, ticks: ticks.collect() }
    }
}

impl Plot {
    /// The line of a series in a panel, by growing x.
    fn series(&self, y: &Axis, series: &Series, lines: &[Line], panel: &Where) -> Result<chart::Series, String> {
        let mut points = series.points.clone();
        let [x, y] = [(&series.x, &self.x), (&series.y, y)].map(|(own, axis)| own.as_ref().unwrap_or(&axis.value));
        let mut add = |line: &Line, element: Option<Element>| {
            points.push((number(line, element, x)?, number(line, element, y)?));
            Ok::<(), String>(())
        };
        let rows = match series.points.is_empty() {
            true => found(lines, &[&self.r#where, panel, &series.r#where])?,
            false => Vec::new(),
        };
        for line in rows {
            let Some(path) = &series.each else {
                add(line, None)?;
                continue;
            };
            let list = field(line, None, path).and_then(Value::as_array);
            for (i, it) in list.ok_or_else(|| format!("a row has no list \"{path}\": {}", line.row))?.iter().enumerate()
            {
                let element = it.as_f64().map(|it| Element { i, at: self.at.get(i).copied(), it });
                element.map_or(Ok(()), |element| add(line, Some(element)))?;
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if points.is_empty() {
            return Err(format!("no point of \"{}\"", series.name));
        }
        if points.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("two points of \"{}\" are above each other: \"where\" is too wide", series.name));
        }
        let label = series.label.map_or(Label::Right, |(dx, dy, anchor)| Label::At(dx, dy, anchor));
        Ok(chart::Series { name: series.name.clone(), colour: series.colour, points, style: series.style, label })
    }
}

impl Group {
    fn group(&self, lines: &[Line], all: &Where) -> Result<chart::Group, String> {
        let bar = |bar: &Bar| {
            let [line] = found(lines, &[all, &self.r#where, &bar.r#where])?[..] else {
                return Err(format!("\"{}\": more than one row", bar.name));
            };
            Ok(chart::Bar {
                name: bar.name.clone(),
                colour: bar.colour,
                value: number(line, None, &bar.value)?,
                paper: bar.paper,
                remark: filled(&bar.remark, line)?,
            })
        };
        let first = found(lines, &[all, &self.r#where])?[0];
        Ok(chart::Group {
            heading: filled(&self.head, first)?,
            bound: self.bound.as_ref().map(|bound| number(first, None, bound)).transpose()?,
            bars: self.bars.iter().map(bar).collect::<Result<_, _>>()?,
        })
    }
}

impl Plot {
    pub(super) fn draw(&self, lines: &[Line]) -> Result<String, String> {
        let first = found(lines, &[&self.r#where])?[0];
        let (x, subtitle) = (self.x.axis(), filled(&self.subtitle, first)?);
        let Some(y) = &self.y else {
            let groups: Result<Vec<_>, String> =
                self.groups.iter().map(|group| group.group(lines, &self.r#where)).collect();
            return Ok(chart::bars(&self.title, &subtitle, &x, &groups?));
        };
        let panel = |heading: &str, demand: &Where| {
            let series = self.series.iter().map(|series| self.series(y, series, lines, demand));
            Ok(chart::Panel { heading: heading.into(), series: series.collect::<Result<_, String>>()? })
        };
        let panels = match self.panels.is_empty() {
            true => vec![panel("", &Where::new())?],
            false => self.panels.iter().map(|p| panel(&p.head, &p.r#where)).collect::<Result<_, String>>()?,
        };
        Ok(chart::Chart { title: self.title.clone(), subtitle, x, y: y.axis(), right: self.right, panels }.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_commas() {
        let texts = [0.0, 999.0, 1000.0, 1_234_567.0, 0.25, 1234.5].map(written);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567", "0.25", "1234.5"]);
    }
}
