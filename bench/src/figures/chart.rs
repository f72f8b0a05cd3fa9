//! axes and series -> a chart: labels stand at the end of their lines, moved apart where they would touch.

use super::svg::{Anchor, Colour, Svg};

/// The sizes of all charts in pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 56.0;
/// The height of a line of labels.
const LABEL: f64 = 16.0;
/// Text of labels, and of ticks.
const TEXT: u32 = 13;
const TICK: u32 = 12;

/// One direction of a chart.
pub(super) struct Axis {
    /// What is drawn, with its unit.
    pub(super) title: &'static str,
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

/// Where a series is named.
#[derive(Clone, Copy)]
pub(super) enum Label {
    /// To the right of the chart, at the height of its last point.
    Right,
    /// So far from its last point.
    At(f64, f64, Anchor),
}

/// A line with its name.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) colour: Colour,
    pub(super) points: Vec<(f64, f64)>,
    /// A bound is dashed and has no dots, and neither have lines of many points.
    pub(super) dashed: bool,
    pub(super) label: Label,
}

/// Everything in a chart.
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// What was built.
    pub(super) subtitle: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The room for labels at the right.
    pub(super) right: f64,
    pub(super) series: Vec<Series>,
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
        let mut svg = Svg::new(WIDTH, HEIGHT, self.title);
        let (right, bottom) = (WIDTH - self.right, HEIGHT - BOTTOM);
        let x = |value: f64| LEFT + self.x.at(value) * (right - LEFT);
        let y = |value: f64| bottom - self.y.at(value) * (bottom - TOP);
        svg.heading((16.0, 26.0), 16, self.title);
        svg.text((16.0, 46.0), Anchor::Start, TEXT, Colour::Faint, &self.subtitle);
        for (value, name) in &self.y.ticks {
            svg.path(&[(LEFT, y(*value)), (right, y(*value))], 1.0, false, Colour::Grid);
            svg.text((LEFT - 8.0, y(*value) + 4.0), Anchor::End, TICK, Colour::Faint, name);
        }
        for (value, name) in &self.x.ticks {
            svg.path(&[(x(*value), TOP), (x(*value), bottom)], 1.0, false, Colour::Grid);
            svg.text((x(*value), bottom + 18.0), Anchor::Middle, TICK, Colour::Faint, name);
        }
        svg.path(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], 1.0, false, Colour::Faint);
        svg.text((f64::midpoint(LEFT, right), HEIGHT - 14.0), Anchor::Middle, TEXT, Colour::Ink, self.x.title);
        svg.upright((20.0, f64::midpoint(TOP, bottom)), TEXT, self.y.title);

        let mut labels = Vec::new();
        for series in &self.series {
            let inside = |point: &&(f64, f64)| self.x.has(point.0) && self.y.has(point.1);
            let points: Vec<_> = series.points.iter().filter(inside).map(|&(a, b)| (x(a), y(b))).collect();
            let Some(&end) = points.last() else { continue };
            svg.path(&points, 2.0, series.dashed, series.colour);
            if !series.dashed && points.len() <= 20 {
                points.iter().for_each(|&point| svg.dot(point, 3.0, series.colour));
            }
            match series.label {
                Label::Right => labels.push((end, series)),
                Label::At(dx, dy, anchor) => {
                    svg.text((end.0 + dx, end.1 + dy), anchor, TEXT, series.colour, series.name);
                }
            }
        }
        labels.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let heights: Vec<f64> = labels.iter().map(|label| label.0.1).collect();
        for ((end, series), height) in labels.iter().zip(apart(&heights, LABEL)) {
            svg.path(&[*end, (right + 12.0, height), (right + 18.0, height)], 1.0, false, series.colour);
            svg.text((right + 22.0, height + 4.0), Anchor::Start, TEXT, series.colour, series.name);
        }
        svg.finish()
    }
}

/// A bar of a group.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) value: f64,
    /// What is said after its value.
    pub(super) remark: String,
}

/// Bars under a heading, with a bound that none goes below.
pub(super) struct Group {
    pub(super) heading: &'static str,
    pub(super) bound: f64,
    pub(super) bars: Vec<Bar>,
}

/// Groups of bars, one below the other, on one axis; the first line of each is the bound.
pub(super) fn bars(title: &str, subtitle: &str, axis: &Axis, groups: &[Group]) -> String {
    /// Height of a bar with the space around it, of a heading, and between groups.
    const BAR: f64 = 20.0;
    const HEADING: f64 = 26.0;
    const SPACE: f64 = 12.0;
    /// Where bars start, and what is below the last of them.
    const NAMES: f64 = 190.0;
    const FOOT: f64 = 44.0;
    let right = WIDTH - 40.0;
    let lines: usize = groups.iter().map(|group| group.bars.len() + 1).sum();
    let height = TOP + lines as f64 * BAR + groups.len() as f64 * (HEADING + SPACE) + FOOT;
    let mut svg = Svg::new(WIDTH, height, title);
    let x = |value: f64| NAMES + axis.at(value) * (right - NAMES);
    svg.heading((16.0, 26.0), 16, title);
    svg.text((16.0, 46.0), Anchor::Start, TEXT, Colour::Faint, subtitle);
    let mut top = TOP;
    for group in groups {
        svg.heading((16.0, top + 16.0), TEXT, group.heading);
        top += HEADING;
        let last = top + (group.bars.len() + 1) as f64 * BAR;
        for (value, _) in &axis.ticks {
            svg.path(&[(x(*value), top), (x(*value), last)], 1.0, false, Colour::Grid);
        }
        svg.text((NAMES - 8.0, top + 14.0), Anchor::End, TEXT, Colour::Bound, "lower bound");
        let label = format!("{:.2}", group.bound);
        svg.text((x(group.bound) + 6.0, top + 14.0), Anchor::Start, TEXT, Colour::Bound, &label);
        for (i, bar) in (1..).zip(&group.bars) {
            let y = top + f64::from(i) * BAR;
            svg.text((NAMES - 8.0, y + 14.0), Anchor::End, TEXT, bar.colour, &bar.name);
            svg.bar((NAMES, y + 3.0), (x(bar.value) - NAMES, BAR - 6.0), bar.colour);
            let label = format!("{:.2}{}", bar.value, bar.remark);
            svg.text((x(bar.value) + 6.0, y + 14.0), Anchor::Start, TEXT, Colour::Ink, &label);
        }
        svg.path(&[(x(group.bound), top + 3.0), (x(group.bound), last)], 2.0, true, Colour::Bound);
        top = last + SPACE;
    }
    for (value, name) in &axis.ticks {
        svg.text((x(*value), height - FOOT + 4.0), Anchor::Middle, TICK, Colour::Faint, name);
    }
    svg.text((f64::midpoint(NAMES, right), height - 14.0), Anchor::Middle, TEXT, Colour::Ink, axis.title);
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

    #[test]
    fn axes_are_linear_or_not() {
        let axis = |log| Axis { title: "", from: 1.0, to: 100.0, log, ticks: vec![] };
        assert!((axis(true).at(10.0) - 0.5).abs() < 1e-12);
        assert!((axis(false).at(50.5) - 0.5).abs() < 1e-12);
    }
}
