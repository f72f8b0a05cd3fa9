//! a comparison of designs -> one page for a browser: curves, layers and answers as SVG, without scripts and without the network.
//!
//! Sizes in pictures are units of their `viewBox`; a browser scales them to the width of the page.

use std::fmt::{self, Display, Write as _};

use tamis::{Candidate, Comparison, PredictedLayer, Prediction, Role};

use super::{COLUMNS, impossible, table};
use crate::cmd::{approx, grouped, percent, role};
use crate::input::Source;
use crate::usage;

/// Text with its markup escaped.
struct Text<T>(T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string().chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            // No browser takes them, however they are written.
            c if c.is_control() => f.write_str("\u{fffd}"),
            c => f.write_char(c),
        })
    }
}

const STYLE: &str = include_str!("page.css");

/// One colour for all designs of a family, readable on light and dark.
fn colour(kind: &str) -> &'static str {
    match kind.split('-').next().unwrap_or(kind) {
        "ribbon" => "#3b7fc4",
        "fuse" | "fuse4" => "#d9772b",
        "bloom" | "classic" => "#8b929b",
        "cuckoo" => "#b35fae",
        "quotient" => "#9c7a3c",
        "chained" => "#1496aa",
        "cascade" => "#d1495b",
        "integrated" => "#7d6cd9",
        "naive" => "#98980f",
        "stacked" => "#dd6aa3",
        _ => "#2f9e68",
    }
}

/// The page; `inputs` are the files of members, of excluded keys and of expected queries.
pub(super) fn page(plan: &Comparison, chosen: &Candidate, goal: &str, inputs: [&[Source]; 3]) -> String {
    let Ok(design) = &chosen.prediction else { return String::new() };
    let (name, size) = (chosen.name, grouped(design.bytes));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tamis plan: {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{name}: {:.3} bits per key, {size} bytes</h1>\n<dl>\n",
        design.bits_per_key
    );
    let sizes = [format!("{} in ", grouped(plan.keys)), format!("{} in ", excluded(plan)), String::new()];
    for ((what, files), size) in ["keys", "excluded", "workload"].iter().zip(inputs).zip(sizes) {
        let names: Vec<String> = files.iter().map(|file| format!("<code>{}</code>", Text(file))).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "<dt>{what}</dt><dd>{size}{}</dd>", names.join(", "));
        }
    }
    let _ = writeln!(out, "<dt>goal</dt><dd><code>{}</code></dd>\n</dl>", Text(goal));
    for reason in &plan.reasons {
        let _ = writeln!(out, "<p>{}</p>", Text(usage::in_options(reason)));
    }
    let leading = leading(plan);
    let [curves, layers] = [curves(plan, design, &leading), layers(design, &leading)];
    let _ = write!(
        out,
        "<div class=\"two\">\n<section>\n<h2>Size against rate</h2>\n{curves}</section>\n\
         <section>\n<h2>Layers</h2>\n{layers}</section>\n</div>\n\
         <h2>What happens to a query</h2>\n{}<h2>All designs</h2>\n{}</body>\n</html>\n",
        answers(plan, design),
        designs(plan)
    );
    out
}

/// How many keys are excluded: many are estimated.
fn excluded(plan: &Comparison) -> String {
    approx(plan.excluded, plan.excluded >= 1 << 14)
}

/// The chosen design, then of every other family the one closest to its lower bound: these are drawn in full.
fn leading(plan: &Comparison) -> Vec<(&'static str, &Prediction)> {
    let designs = plan.candidates.iter().filter_map(|c| Some((c.chosen, c.name, c.prediction.as_ref().ok()?)));
    let mut all: Vec<(bool, &str, &Prediction)> = designs.collect();
    let order = |(chosen, _, design): &(bool, &str, &Prediction)| {
        if *chosen { f64::NEG_INFINITY } else { design.bits_per_key / design.bound }
    };
    all.sort_by(|a, b| order(a).total_cmp(&order(b)));
    let mut leading: Vec<(&str, &Prediction)> = vec![];
    for (_, name, design) in all {
        if leading.iter().all(|(other, _)| colour(other) != colour(name)) {
            leading.push((name, design));
        }
    }
    leading
}

/// A text of a picture.
fn label(anchor: &str, x: f64, y: f64, text: impl Display) -> String {
    format!("<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n")
}

/// A square of a legend and its name.
fn key(colour: &str, name: &str) -> String {
    format!("<span><i class=\"key\" style=\"background:{colour}\"></i>{name} &nbsp;</span>\n")
}

/// Bits per key of every design for rates of 1/2, 1/4, 1/8 and so on, with the lower bound and the chosen point.
fn curves(plan: &Comparison, chosen: &Prediction, leading: &[(&'static str, &Prediction)]) -> String {
    let halvings = |rate: f64| -rate.max(f64::MIN_POSITIVE).log2();
    let last = (halvings(chosen.fpr).ceil() + 2.0).clamp(20.0, 32.0);
    let plans = (1..=last as i32).filter_map(|i| Some((f64::from(i), plan.at_fpr(2f64.powi(-i)).ok()?)));
    let plans: Vec<(f64, Comparison)> = plans.collect();
    // Points of one curve.
    let points = |value: &dyn Fn(&Candidate) -> Option<f64>| -> Vec<(f64, f64)> {
        let value = |plan: &Comparison| plan.candidates.iter().find_map(value);
        plans.iter().filter_map(|(x, plan)| Some((*x, value(plan)?))).collect()
    };
    let bound = points(&|c| c.prediction.as_ref().ok().filter(|_| c.chosen).map(|p| p.bound));
    let tallest = bound.iter().map(|point| 1.5 * point.1).fold(chosen.bits_per_key * 1.15, f64::max).max(4.0);
    let (left, top, width, height) = (36.0, 10.0, 450.0, 300.0);
    let x = |halvings: f64| left + width * halvings.clamp(0.0, last) / last;
    let y = |bits: f64| top + height * (1.0 - bits / tallest);
    let curve = |class: &str, stroke: &str, name: &str, points: Vec<(f64, f64)>| {
        let points: Vec<String> = points.iter().map(|&(at, bits)| format!("{:.1},{:.1}", x(at), y(bits))).collect();
        let points = points.join(" ");
        format!(
            "<polyline class=\"{class}\" stroke=\"{stroke}\" points=\"{points}\"><title>{name}</title></polyline>\n"
        )
    };
    let mut out = format!(
        "<figure>\n<svg viewBox=\"0 0 520 366\" role=\"img\" aria-label=\"Bits per key of each design against its rate\">\n\
         <clipPath id=\"box\"><path d=\"M{left} {top}h{width}v{height}h-{width}z\"/></clipPath>\n"
    );
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
    let step = steps.into_iter().find(|step| tallest / step <= 8.0).unwrap_or(1000.0);
    for bits in (0..=(tallest / step) as u32).map(|i| f64::from(i) * step) {
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{left} {:.1}h{width}\"/>", y(bits));
        out += &label("end", left - 6.0, y(bits) + 5.0, bits);
    }
    for power in (0..=(last / 10f64.log2()) as i32).step_by(if last > 24.0 { 2 } else { 1 }) {
        let at = x(f64::from(power) * 10f64.log2());
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {top}v{height}\"/>");
        out += &label("middle", at, top + height + 18.0, format!("{}%", 10f64.powi(2 - power)));
    }
    out += "<g clip-path=\"url(#box)\">\n";
    // The chosen one above the others.
    let (chosen_one, others): (Vec<_>, Vec<_>) = plan.candidates.iter().partition(|c| c.chosen);
    for Candidate { name, chosen, .. } in others.into_iter().chain(chosen_one) {
        let class = match leading.iter().any(|(leader, _)| leader == name) {
            _ if *chosen => "curve chosen",
            true => "curve",
            false => "curve variant",
        };
        // Where no kind alone is what would be built, the planner's choice has a row of its own.
        let same = |c: &Candidate| c.name == *name || (c.chosen && *name == "auto");
        let bits = points(&|c| c.prediction.as_ref().ok().filter(|_| same(c)).map(|p| p.bits_per_key));
        out += &curve(class, colour(name), name, bits);
    }
    out += &curve("curve bound", "var(--text)", "lower bound", bound);
    let (at, high) = (x(halvings(chosen.fpr)), y(chosen.bits_per_key));
    let _ = write!(
        out,
        "</g>\n<circle class=\"point\" cx=\"{at:.1}\" cy=\"{high:.1}\" r=\"7\"/>\n{}</svg>\n\
         <figcaption>Bits per key. The circle is the chosen design and the thick line its size at other rates. The dashed \
         line is the lower bound. Thin lines are variants.<br>\n",
        label("middle", left + width / 2.0, top + height + 42.0, "share of unlisted keys that match")
    );
    leading.iter().for_each(|(name, _)| out += &key(colour(name), name));
    out + "</figcaption>\n</figure>\n"
}

/// Layers of the leading designs as bars of bits per key, with the lower bound of the chosen one behind the labels.
fn layers(chosen: &Prediction, leading: &[(&'static str, &Prediction)]) -> String {
    let widest = leading.iter().map(|row| row.1.bits_per_key).fold(0.0, f64::max).min(4.0 * chosen.bits_per_key);
    let (left, width, height) = (118.0, 330.0, leading.len() * 30 + 8);
    let mut out = format!(
        "<figure>\n<svg viewBox=\"0 0 520 {height}\" role=\"img\" aria-label=\"Bits per key of each layer\">\n"
    );
    let mut labels = String::new();
    for (i, (name, design)) in leading.iter().enumerate() {
        let (top, mut at) = (30.0 * i as f64 + 4.0, left);
        labels += &label("end", left - 8.0, top + 16.0, name);
        let stored: f64 = design.layers.iter().map(|layer| layer.bits_per_key).sum();
        let rest = ("rest".to_string(), "header and directory", design.bits_per_key - stored);
        let parts = design.layers.iter().map(|layer| (role(layer.role), layer.structure, layer.bits_per_key));
        for (class, structure, bits) in parts.chain([rest]) {
            let wide = (width * bits / widest).clamp(0.0, left + width - at);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{at:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"22\">\
                 <title>{class}: {structure}, {bits:.3} bits per key</title></rect>",
                (wide - 1.0).max(0.4)
            );
            at += wide;
        }
        labels += &label("start", at + 6.0, top + 16.0, format!("{:.2}", design.bits_per_key));
    }
    let bound = left + width * chosen.bound / widest;
    let _ = write!(
        out,
        "<path class=\"bound\" d=\"M{bound:.1} 0v{height}\"/>\n{labels}</svg>\n\
         <figcaption>Bits per key, layer by layer, of the chosen design and of the best of every other family. \
         The dashed line is the lower bound for the rates of the chosen one.<br>\n"
    );
    for class in ["positive", "negative", "exact"] {
        out += &key(&format!("var(--{class})"), class);
    }
    out + &key("var(--rest)", "header and directory") + "</figcaption>\n</figure>\n"
}

/// Which keys reach which layer of the chosen design, and the answers that they get.
fn answers(plan: &Comparison, chosen: &Prediction) -> String {
    let (sort, sizes) = match (plan.excluded, chosen.covered) {
        (_, 0) => ("excluded", excluded(plan)),
        (0, covered) => ("covered", grouped(covered)),
        (_, covered) => ("excluded and covered", format!("{} and {}", excluded(plan), grouped(covered))),
    };
    let known = plan.excluded + chosen.covered;
    let answer = match known {
        0 => "there are none".to_string(),
        _ if chosen.excluded_fpr > 0.0 => format!("about {} match", percent(chosen.excluded_fpr)),
        _ => "none matches".to_string(),
    };
    let (members, unlisted) = (grouped(plan.keys), percent(chosen.fpr));
    let mut out = format!(
        "<ul>\n<li>members, {members}: all match</li>\n<li>{sort} keys, {sizes}: {answer}</li>\n\
         <li>unlisted keys: about {unlisted} match</li>\n</ul>\n<div class=\"wide\"><table>\n<tr><th>layer</th>\
         <th>what it does</th><th class=\"left\">members</th><th class=\"left\">{sort}</th><th class=\"left\">unlisted</th></tr>\n"
    );
    let mut row = |name: String, does: &str, shares: [f64; 3]| {
        let _ = write!(out, "<tr><td>{name}</td><td>{does}</td>");
        for (i, share) in shares.into_iter().enumerate() {
            let _ = match i == 1 && known == 0 {
                true => write!(out, "<td class=\"left\">-</td>"),
                false => write!(
                    out,
                    "<td class=\"left\"><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">\
                     <rect class=\"positive\" width=\"{:.2}\" height=\"10\"/></svg>{}</td>",
                    100.0 * share,
                    percent(share)
                ),
            };
        }
        out += "</tr>\n";
    };
    let does = |layer: &PredictedLayer| match layer.role {
        Role::Positive => "rejects what it misses",
        Role::Negative => "matches what it misses",
        _ => "decides",
    };
    for (i, layer) in chosen.layers.iter().enumerate() {
        row(format!("{i}: {}, {}", role(layer.role), layer.structure), does(layer), layer.reached_by);
    }
    row("match".to_string(), "", [1.0, chosen.excluded_fpr, chosen.fpr]);
    out + "</table></div>\n<p class=\"soft\">Share of keys that reach each layer, because the layers before it leave their answer \
           open. The last row is the share that matches.</p>\n"
}

/// The table of `plan` on a terminal, and what its columns mean.
fn designs(plan: &Comparison) -> String {
    let (rows, columns) = table(plan);
    let head: String = columns.iter().map(|&column| format!("<th>{}</th>", COLUMNS[column].0)).collect();
    let mut out = format!("<div class=\"wide\"><table>\n<tr>{head}</tr>\n");
    for (Candidate { name, chosen, .. }, row) in &rows {
        let cells: String = columns.iter().skip(1).map(|&column| format!("<td>{}</td>", row[column])).collect();
        let class = if *chosen { " class=\"star\"" } else { "" };
        let _ = writeln!(out, "<tr{class}><td>{}</td>{cells}</tr>", key(colour(name), name));
    }
    out += "</table></div>\n<ul class=\"soft\">\n";
    for (name, meaning) in columns.iter().map(|&column| COLUMNS[column]) {
        let _ = writeln!(out, "<li>{name}: {}</li>", Text(meaning));
    }
    for (reason, kinds) in impossible(plan) {
        let _ = writeln!(out, "<li>Not possible: {} ({}).</li>", kinds.join(", "), Text(reason));
    }
    out + "</ul>\n"
}
