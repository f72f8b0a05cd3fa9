//! axes and series -> a chart: labels stand at the end of their lines, moved apart where they would touch.

use serde::Deserialize;

use super::svg::{Anchor, Colour, Svg};

/// The sizes of all charts in pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 56.0;
const LABEL: f64 = 16.0;
/// Height of a heading, and the space between panels or groups.
const HEADING: f64 = 26.0;
const SPACE: f64 = 12.0;
/// Text of labels, and of ticks.
const TEXT: u32 = 13;
const TICK: u32 = 12;

pub(super) struct Axis {
    /// What is drawn, with its unit.
    pub(super) title: String,
    pub(super) from: f64,
    pub(super) to: f64,
    /// Whether equal steps are equal ratios.
    pub(super) log: bool,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Where a value is, from 0 to 1.
    fn at(&self, value: f64) -> f64 {
        let on = |x: f64| if self.log { x.ln() } else { x };
        (on(value) - on(self.from)) / (on(self.to) - on(self.from))
    }

    fn has(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

#[derive(Clone, Copy)]
pub(super) enum Label {
    /// To the right of the chart, at the height of its last point.
    Right,
    /// So far from its last point.
    At(f64, f64, Anchor),
}

#[derive(Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Style {
    /// With dots, unless there are many points.
    #[default]
    Line,
    /// A bound or a promise: dashed, and without dots.
    Bound,
    /// What a paper printed: dashed, with hollow dots.
    Paper,
}

/// A line with its name, which may be empty.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) style: Style,
    pub(super) label: Label,
}

/// Lines on axes, under a heading if there are several panels.
pub(super) struct Panel {
    pub(super) heading: String,
    pub(super) series: Vec<Series>,
}

pub(super) struct Chart {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The room for labels at the right.
    pub(super) right: f64,
    /// Side by side, on the same axes. Lines are named in the last one.
    pub(super) panels: Vec<Panel>,
}

/// Moves heights apart to at least `gap`, as little as that takes, and keeps their order. They come sorted.
fn apart(heights: &[f64], gap: f64) -> Vec<f64> {
    // Runs that touch are centred on their mean; a run that touches the one before joins it.
    let mut runs: Vec<(f64, usize)> = Vec::new();
    for &height in heights {
        runs.push((height, 1));
        while let [.., (above, n), (below, m)] = runs[..] {
            if below - above >= gap * (n + m) as f64 / 2.0 {
                break;
            }
            let mean = (above * n as f64 + below * m as f64) / (n + m) as f64;
            runs.truncate(runs.len() - 2);
            runs.push((mean, n + m));
        }
    }
    let run = |(mean, n): (f64, usize)| (0..n).map(move |i| mean + gap * (i as f64 - (n as f64 - 1.0) / 2.0));
    runs.into_iter().flat_map(run).collect()
}

impl Chart {
    pub(super) fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title);
        svg.heading((16.0, 26.0), 16, &self.title);
        svg.text((16.0, 46.0), Anchor::Start, TEXT, Colour::Faint, &self.subtitle);
        let several = self.panels.len() > 1;
        let top = if several { TOP + HEADING } else { TOP };
        let (right, bottom) = (WIDTH - self.right, HEIGHT - BOTTOM);
        let width = (right - LEFT + SPACE) / self.panels.len() as f64 - SPACE;
        let mut labels = Vec::new();
        for (i, panel) in self.panels.iter().enumerate() {
            let left = LEFT + i as f64 * (width + SPACE);
            let place = |(x, y): (f64, f64)| {
                let point = (left + self.x.at(x) * width, bottom - self.y.at(y) * (bottom - top));
                (self.x.has(x) && self.y.has(y)).then_some(point)
            };
            if several {
                svg.heading((left, top - 8.0), TEXT, &panel.heading);
            }
            self.grid(&mut svg, (left, top), (left + width, bottom), i == 0);
            for series in &panel.series {
                let points: Vec<_> = series.points.iter().filter_map(|&point| place(point)).collect();
                let Some(&end) = points.last() else { continue };
                svg.path(&points, 2.0, series.style != Style::Line, series.colour);
                match series.style {
                    Style::Line if points.len() <= 20 => points.iter().for_each(|&p| svg.dot(p, 3.0, series.colour)),
                    Style::Paper => points.iter().for_each(|&p| svg.ring(p, 3.0, series.colour)),
                    _ => {}
                }
                match series.label {
                    _ if series.name.is_empty() || i + 1 < self.panels.len() => {}
                    Label::Right => labels.push((end, series)),
                    Label::At(dx, dy, anchor) => {
                        svg.text((end.0 + dx, end.1 + dy), anchor, TEXT, series.colour, &series.name);
                    }
                }
            }
        }
        svg.text((f64::midpoint(LEFT, right), HEIGHT - 14.0), Anchor::Middle, TEXT, Colour::Ink, &self.x.title);
        svg.upright((20.0, f64::midpoint(top, bottom)), TEXT, &self.y.title);
        labels.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let heights: Vec<f64> = labels.iter().map(|label| label.0.1).collect();
        for ((end, series), height) in labels.iter().zip(apart(&heights, LABEL)) {
            svg.path(&[*end, (right + 12.0, height), (right + 18.0, height)], 1.0, false, series.colour);
            svg.text((right + 22.0, height + 4.0), Anchor::Start, TEXT, series.colour, &series.name);
        }
        svg.finish()
    }

    /// Lines of the grid and the axes of a panel; heights are named at the first.
    fn grid(&self, svg: &mut Svg, (left, top): (f64, f64), (right, bottom): (f64, f64), first: bool) {
        for (value, name) in &self.y.ticks {
            let y = bottom - self.y.at(*value) * (bottom - top);
            svg.path(&[(left, y), (right, y)], 1.0, false, Colour::Grid);
            if first {
                svg.text((left - 8.0, y + 4.0), Anchor::End, TICK, Colour::Faint, name);
            }
        }
        for (value, name) in &self.x.ticks {
            let x = left + self.x.at(*value) * (right - left);
            svg.path(&[(x, top), (x, bottom)], 1.0, false, Colour::Grid);
            svg.text((x, bottom + 18.0), Anchor::Middle, TICK, Colour::Faint, name);
        }
        svg.path(&[(left, top), (left, bottom), (right, bottom)], 1.0, false, Colour::Faint);
    }
}

pub(super) struct Bar {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) value: f64,
    /// What its paper printed.
    pub(super) paper: Option<f64>,
    /// What is said after its value.
    pub(super) remark: String,
}

/// Bars under a heading, with a bound that none goes below if there is one.
pub(super) struct Group {
    pub(super) heading: String,
    pub(super) bound: Option<f64>,
    pub(super) bars: Vec<Bar>,
}

impl Group {
    fn lines(&self) -> usize {
        self.bars.len() + usize::from(self.bound.is_some())
    }
}

/// Groups of bars, one below the other, on one axis; the first line of each is its bound.
pub(super) fn bars(title: &str, subtitle: &str, axis: &Axis, groups: &[Group]) -> String {
    /// Height of a bar with the space around it.
    const BAR: f64 = 20.0;
    /// Where bars start, and what is below the last of them.
    const NAMES: f64 = 190.0;
    const FOOT: f64 = 44.0;
    let right = WIDTH - 40.0;
    let lines: usize = groups.iter().map(Group::lines).sum();
    let height = TOP + lines as f64 * BAR + groups.len() as f64 * (HEADING + SPACE) + FOOT;
    let mut svg = Svg::new(WIDTH, height, title);
    let x = |value: f64| NAMES + axis.at(value) * (right - NAMES);
    svg.heading((16.0, 26.0), 16, title);
    svg.text((16.0, 46.0), Anchor::Start, TEXT, Colour::Faint, subtitle);
    let mut top = TOP;
    for group in groups {
        svg.heading((16.0, top + 16.0), TEXT, &group.heading);
        top += HEADING;
        let last = top + group.lines() as f64 * BAR;
        for (value, _) in &axis.ticks {
            svg.path(&[(x(*value), top), (x(*value), last)], 1.0, false, Colour::Grid);
        }
        if let Some(bound) = group.bound {
            svg.text((NAMES - 8.0, top + 14.0), Anchor::End, TEXT, Colour::Bound, "lower bound");
            svg.text((x(bound) + 6.0, top + 14.0), Anchor::Start, TEXT, Colour::Bound, &format!("{bound:.2}"));
        }
        let before = group.lines() - group.bars.len();
        for (i, bar) in (before as u32..).zip(&group.bars) {
            let y = top + f64::from(i) * BAR;
            svg.text((NAMES - 8.0, y + 14.0), Anchor::End, TEXT, bar.colour, &bar.name);
            svg.bar((NAMES, y + 3.0), (x(bar.value) - NAMES, BAR - 6.0), bar.colour);
            let label = format!("{:.2}{}", bar.value, bar.remark);
            let end = x(bar.paper.map_or(bar.value, |paper| paper.max(bar.value)));
            svg.text((end + 6.0, y + 14.0), Anchor::Start, TEXT, Colour::Ink, &label);
            if let Some(paper) = bar.paper {
                svg.path(&[(x(paper), y + 1.0), (x(paper), y + BAR - 1.0)], 2.0, false, Colour::Ink);
            }
        }
        if let Some(bound) = group.bound {
            svg.path(&[(x(bound), top + 3.0), (x(bound), last)], 2.0, true, Colour::Bound);
        }
        top = last + SPACE;
    }
    for (value, name) in &axis.ticks {
        svg.text((x(*value), height - FOOT + 4.0), Anchor::Middle, TICK, Colour::Faint, name);
    }
    svg.text((f64::midpoint(NAMES, right), height - 14.0), Anchor::Middle, TEXT, Colour::Ink, &axis.title);
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_no_further() {
        assert_eq!(apart(&[10.0, 50.0], 16.0), [10.0, 50.0]);
        assert_eq!(apart(&[10.0, 12.0], 16.0), [3.0, 19.0]);
        assert_eq!(apart(&[0.0, 20.0, 20.0, 20.0], 10.0), [0.0, 10.0, 20.0, 30.0]);
        let many = apart(&[1.0, 1.0, 5.0, 30.0, 31.0, 90.0], 10.0);
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{many:?}");
    }

    /// Panels have headings and dots of their own, and lines are named in the last one.
    #[test]
    fn panels_stand_side_by_side() {
        let axis = || Axis { title: String::new(), from: 0.0, to: 2.0, log: false, ticks: vec![(1.0, "one".into())] };
        let series = |style| Series {
            name: "line".into(),
            colour: Colour::Fuse,
            points: vec![(0.0, 1.0), (1.0, 1.0), (5.0, 1.0)],
            style,
            label: Label::Right,
        };
        let panel = |heading: &str| Panel {
            heading: heading.into(),
            series: vec![series(Style::Line), series(Style::Paper), series(Style::Bound)],
        };
        let chart = |panels| Chart {
            title: "title".into(),
            subtitle: String::new(),
            x: axis(),
            y: axis(),
            right: 100.0,
            panels,
        };
        let svg = chart(vec![panel("left"), panel("right")]).draw();
        // Two of three points are on the axes; a hollow dot is two circles.
        let counts = ["<circle", ">left<", ">right<", ">line<", ">one<", "stroke-dasharray"];
        assert_eq!(counts.map(|part| svg.matches(part).count()), [2 * (2 + 4), 1, 1, 3, 3, 4]);
        assert!(!chart(vec![panel("alone")]).draw().contains("alone"));
    }

    /// A bar has the paper's number as a mark, and a bound is a line of its own.
    #[test]
    fn bars_have_marks_and_bounds() {
        let axis = Axis { title: String::new(), from: 0.0, to: 9.0, log: false, ticks: vec![] };
        let bar = |paper| Bar { name: "bar".into(), colour: Colour::Fuse, value: 3.0, paper, remark: " (x)".into() };
        let group = |bound| Group { heading: "head".into(), bound, bars: vec![bar(None), bar(Some(4.0))] };
        let svg = bars("", "", &axis, &[group(None), group(Some(2.0))]);
        let counts = [">bar<", ">3.00 (x)<", ">lower bound<", "<polyline", "stroke-dasharray"];
        assert_eq!(counts.map(|part| svg.matches(part).count()), [4, 4, 1, 3, 1]);
    }

    #[test]
    fn axes_are_linear_or_not() {
        let axis = |log| Axis { title: String::new(), from: 1.0, to: 100.0, log, ticks: vec![] };
        assert!((axis(true).at(10.0) - 0.5).abs() < 1e-12);
        assert!((axis(false).at(50.5) - 0.5).abs() < 1e-12);
    }
}
