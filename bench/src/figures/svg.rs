//! shapes -> SVG text, and the one table of colours.
//!
//! A picture has a ground of its own, light or dark as the reader prefers, so that it can be read on any page. Shapes are
//! drawn in `currentColor`, and a class says which colour that is in either case.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use serde::Deserialize;

/// What has a colour: the same one in all pictures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Colour {
    /// Text and axes.
    Ink,
    /// Secondary text.
    Faint,
    Grid,
    /// A lower bound, or a promise.
    Bound,
    /// What the library does unless another structure is named: steered ribbons, plans for a workload, frozen indexes,
    /// broom filters.
    Tamis,
    /// The same with more effort.
    Smallest,
    Ribbon,
    Fuse,
    Fuse4,
    Bloom,
    SplitBlock,
    BloomLayers,
    Cuckoo,
    Quotient,
    Clubcard,
    Sux,
    /// As its paper has it.
    Chained,
    Rambo,
    /// Circular shift and coalesce: tuned, and as its paper has it.
    Csc,
    CscPaper,
}

impl Colour {
    /// Its class, on a light ground, on a dark one.
    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Colour::Ink => ("ink", "#1f2328", "#e6edf3"),
            Colour::Faint => ("faint", "#59636e", "#9aa4af"),
            Colour::Grid => ("grid", "#e3e6ea", "#2b313a"),
            Colour::Bound => ("bound", "#1f2328", "#e6edf3"),
            Colour::Tamis => ("tamis", "#c2185b", "#ff6fa5"),
            Colour::Smallest => ("smallest", "#8e2453", "#e0a3bd"),
            Colour::Ribbon => ("ribbon", "#1565c0", "#64a8ff"),
            Colour::Fuse => ("fuse", "#1b7f3b", "#4fc878"),
            Colour::Fuse4 => ("fuse4", "#5b7f00", "#a3c93a"),
            Colour::Bloom => ("bloom", "#c25700", "#ff9d4d"),
            Colour::SplitBlock => ("split", "#8a5a2b", "#cfa277"),
            Colour::BloomLayers => ("layers", "#7b1fa2", "#d08fe8"),
            Colour::Cuckoo => ("cuckoo", "#8a6d00", "#e0bd3a"),
            Colour::Quotient => ("quotient", "#00798c", "#3fc3d8"),
            Colour::Clubcard => ("clubcard", "#827717", "#d4c94a"),
            Colour::Sux => ("sux", "#00796b", "#4cd0bd"),
            Colour::Chained => ("chained", "#55606b", "#a7b3bf"),
            Colour::Rambo => ("rambo", "#33691e", "#8bd15a"),
            Colour::Csc => ("csc", "#3949ab", "#8f9dff"),
            Colour::CscPaper => ("preset", "#5c6bc0", "#b3bcf5"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    body: String,
    used: BTreeSet<Colour>,
}

/// A text with the signs of markup replaced.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Svg {
        Svg { width, height, title: escape(title), body: String::new(), used: BTreeSet::from([Colour::Ink]) }
    }

    /// Notes the colour of a shape, and returns its class.
    fn class(&mut self, colour: Colour) -> &'static str {
        self.used.insert(colour);
        colour.row().0
    }

    fn push(&mut self, shape: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{shape}");
    }

    /// Text in pixels of height `size`; a heading is bold.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: u32, colour: Colour, text: &str) {
        let class = self.class(colour);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{text}</text>"#
        ));
    }

    pub(super) fn heading(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="ink" x="{x:.1}" y="{y:.1}" font-size="{size}" font-weight="600">{text}</text>"#
        ));
    }

    /// Text that is read from below.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="ink" transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="middle" font-size="{size}">{text}</text>"#
        ));
    }

    /// A line from point to point, dashed or not.
    pub(super) fn path(&mut self, points: &[(f64, f64)], width: f64, dashed: bool, colour: Colour) {
        let class = self.class(colour);
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
        let points = points.join(" ");
        self.push(format_args!(
            r#"<polyline class="{class}" points="{points}" fill="none" stroke="currentColor" stroke-width="{width}" stroke-linejoin="round"{dashes}/>"#
        ));
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: Colour) {
        let class = self.class(colour);
        self.push(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#));
    }

    /// A dot that is hollow: the ground shows in it.
    pub(super) fn ring(&mut self, (x, y): (f64, f64), radius: f64, colour: Colour) {
        let class = self.class(colour);
        self.push(format_args!(
            r#"<circle class="ground" cx="{x:.1}" cy="{y:.1}" r="{radius}"/><circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}" style="fill:none;stroke:currentColor;stroke-width:1.5"/>"#
        ));
    }

    pub(super) fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: Colour) {
        let class = self.class(colour);
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        ));
    }

    pub(super) fn finish(self) -> String {
        let Svg { width, height, title, body, used } = self;
        let rules = |dark: bool| -> String {
            let rule = |colour: &Colour| {
                let (class, on_light, on_dark) = colour.row();
                format!(".{class}{{color:{}}}", if dark { on_dark } else { on_light })
            };
            used.iter().map(rule).collect()
        };
        let (light, dark) = (rules(false), rules(true));
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
<title>{title}</title>
<style>
text,circle,rect{{fill:currentColor}}
.ground{{color:#ffffff}}{light}
@media (prefers-color-scheme:dark){{.ground{{color:#0d1117}}{dark}}}
</style>
<rect class="ground" width="{width}" height="{height}" rx="8"/>
{body}</svg>
"##
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_used_colours_are_in_the_style_and_markup_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0, "a < b");
        svg.bar((0.0, 0.0), (1.0, 1.0), Colour::Bloom);
        svg.text((1.0, 1.0), Anchor::End, 9, Colour::Faint, "x & \"y\"");
        let text = svg.finish();
        assert!(text.contains("<title>a &lt; b</title>") && text.contains(">x &amp; &quot;y&quot;</text>"));
        assert_eq!(text.matches(".bloom{").count(), 2);
        assert!(!text.contains(".fuse{"));
    }
}
