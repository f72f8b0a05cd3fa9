//! a plan <-> text: a flat JSON object of strings and whole numbers, in a fixed order.
//!
//! Words of 64 bits are strings of hexadecimal digits, because many readers of JSON take numbers for doubles.

use std::fmt::Write;
use std::str::FromStr;

use super::wrong;
use crate::error::Error;
use crate::filter::build::Options;
use crate::hash::{HashKind, Hasher, KeyType};
use crate::plan::{Goal, Kind};

/// Longer than any plan: metadata of 64 KiB are twice as long in hexadecimal digits.
const MAX_LEN: usize = 1 << 18;

/// The lines of an object, name and value; strings have their quotes.
pub(super) struct Lines(Vec<(String, String)>);

impl Lines {
    pub(super) fn new() -> Lines {
        Lines(vec![])
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.0.push((name.into(), value.to_string()));
    }

    pub(super) fn text(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push((name.into(), format!("\"{value}\"")));
    }

    pub(super) fn word(&mut self, name: &str, value: u64) {
        self.text(name, format_args!("{value:016x}"));
    }

    /// As JSON.
    pub(super) fn print(&self) -> String {
        let mut out = String::new();
        for (number, (name, value)) in self.0.iter().enumerate() {
            // A string takes everything.
            let _ = write!(out, "{}\n  \"{name}\": {value}", if number == 0 { "{" } else { "," });
        }
        out + "\n}\n"
    }

    /// Reads an object, whatever its spaces.
    pub(super) fn parse(text: &str) -> Result<Lines, Error> {
        let bad = |what: &str| wrong("plan", format!("{what}; expected the text of a plan, as it was printed"));
        if text.len() > MAX_LEN {
            return Err(bad("too long"));
        }
        let mut rest = text.trim().strip_prefix('{').ok_or_else(|| bad("no object"))?;
        let mut lines = vec![];
        loop {
            let (name, after) = string(rest.trim_start()).ok_or_else(|| bad("no name of a field"))?;
            let after = after.trim_start().strip_prefix(':').ok_or_else(|| bad("no colon after a name"))?.trim_start();
            let value = match string(after) {
                Some((text, _)) => text.len() + 2,
                None => after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()),
            };
            let (value, after) = after.split_at(value);
            if value.is_empty() {
                return Err(bad("a value that is no string and no whole number"));
            }
            lines.push((name.to_string(), value.to_string()));
            let after = after.trim_start();
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None if after == "}" => return Ok(Lines(lines)),
                None => return Err(bad("no comma or end after a value")),
            }
        }
    }

    /// The value of a field, a string without its quotes.
    fn value(&self, name: &str, is_text: bool) -> Result<&str, Error> {
        let mut found = self.0.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
        let value = match (found.next(), found.next()) {
            (Some(value), None) => value,
            (None, _) => return Err(wrong("plan", format!("no field {name}; expected one of this release"))),
            (Some(_), Some(_)) => return Err(wrong("plan", format!("{name}: there twice; expected once"))),
        };
        let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        match (text, is_text) {
            (Some(text), true) => Ok(text),
            (None, false) => Ok(value),
            _ => Err(self.wrong(name)),
        }
    }

    /// The error of a field whose value is not possible.
    pub(super) fn wrong(&self, name: &str) -> Error {
        // The words of a hash may be a secret.
        let found =
            self.0.iter().find(|(other, _)| other == name && name != "hash").map_or("the value", |(_, value)| value);
        let short: String = found.chars().take(40).collect();
        wrong("plan", format!("{name}: {} is not possible; expected what this release wrote", short.escape_debug()))
    }

    pub(super) fn read_text<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        self.value(name, true)?.parse().map_err(|_| self.wrong(name))
    }

    pub(super) fn read_number(&self, name: &str, most: u64) -> Result<u64, Error> {
        let number = self.value(name, false)?.parse().ok().filter(|&number| number <= most);
        number.ok_or_else(|| self.wrong(name))
    }

    pub(super) fn read_word(&self, name: &str) -> Result<u64, Error> {
        u64::from_str_radix(self.value(name, true)?, 16).map_err(|_| self.wrong(name))
    }

    /// Whether both have the same fields with the same values, in any order: where they do not, the name of one that differs.
    pub(super) fn differs(&self, other: &Lines) -> Option<String> {
        let missing = |a: &Lines, b: &Lines| a.0.iter().find(|line| !b.0.contains(line)).map(|line| line.0.clone());
        missing(self, other).or_else(|| missing(other, self))
    }
}

/// A string without escapes, which no plan has, and what follows it.
fn string(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix('"')?.split_once('"')?;
    (!inside.contains(['\\', '\n'])).then_some((inside, after))
}

/// What of the options decides about bytes.
pub(super) fn of_options(options: &Options<'_>) -> String {
    let mut lines = Lines::new();
    put_options(&mut lines, options);
    lines.print()
}

pub(super) fn put_options(lines: &mut Lines, options: &Options<'_>) {
    let common = &options.common;
    lines.text(
        "goal",
        match options.goal {
            Goal::Fpr(p) => format!("fpr {p:?}"),
            Goal::BitsPerKey(bits) => format!("bits_per_key {bits:?}"),
            Goal::Exact => "exact".into(),
            Goal::ExcludedFpr(p) => format!("excluded_fpr {p:?}"),
        },
    );
    lines.text("kind", options.kind.name());
    lines.text("effort", common.effort);
    lines.text("layout", options.layout);
    lines.text("on_conflict", options.on_conflict);
    lines.number("capacity", options.capacity.unwrap_or(0));
    lines.text("extra_capacity", format_args!("{:?}", options.spare));
    lines.number("shard_keys", common.shard_keys);
    let [a, b] = common.hasher.words();
    lines.text(
        "hash",
        match common.hasher.kind() {
            HashKind::Seeded => format!("seeded {a:016x}"),
            HashKind::Secret => format!("secret {a:016x} {b:016x}"),
            HashKind::Mixed => format!("mixed {a:016x} {b:016x}"),
            HashKind::Foreign => format!("foreign {a:016x} {b:016x}"),
        },
    );
    lines.text("metadata", common.metadata.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")));
}

/// The options of a plan's text.
pub(super) fn read_options(lines: &Lines) -> Result<Options<'static>, Error> {
    let mut options = Options::default();
    let goal: String = lines.read_text("goal")?;
    let (name, value) = goal.split_once(' ').unwrap_or((&goal, "0"));
    let value: f64 = value.parse().map_err(|_| lines.wrong("goal"))?;
    options.goal = match name {
        "fpr" => Goal::Fpr(value),
        "bits_per_key" => Goal::BitsPerKey(value),
        "exact" => Goal::Exact,
        "excluded_fpr" => Goal::ExcludedFpr(value),
        _ => return Err(lines.wrong("goal")),
    };
    options.kind = lines.read_text::<Kind>("kind")?;
    options.common.effort = lines.read_text("effort")?;
    options.layout = lines.read_text("layout")?;
    options.on_conflict = lines.read_text("on_conflict")?;
    options.capacity = Some(lines.read_number("capacity", u64::MAX)?).filter(|&capacity| capacity > 0);
    options.spare = lines.read_text("extra_capacity")?;
    options.common.shard_keys = lines.read_number("shard_keys", u64::MAX)?.max(1);
    let hash: String = lines.read_text("hash")?;
    let mut words = hash.split(' ');
    let kind = words.next().unwrap_or_default();
    let words = words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<Vec<_>, _>>();
    options.common.hasher = match (kind, words.as_deref()) {
        ("seeded", Ok(&[seed])) => Hasher::seeded(seed),
        ("secret", Ok(&[a, b])) => Hasher::secret([a, b]),
        ("mixed", Ok(&[seed, number])) => Hasher::seeded(seed).mixed(number),
        ("foreign", Ok(&[number, 0])) => Hasher::foreign(number),
        ("foreign", Ok(&[number, mix])) => Hasher::foreign(number).mixed(mix),
        _ => return Err(lines.wrong("hash")),
    };
    let hex: String = lines.read_text("metadata")?;
    let digits: Option<Vec<u8>> = hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(|| lines.wrong("metadata"))?;
    options.common.metadata = digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect();
    Ok(options)
}

pub(super) fn read_key_type(lines: &Lines) -> Result<KeyType, Error> {
    let name: String = lines.read_text("key_type")?;
    let all = [KeyType::Bytes, KeyType::Integer, KeyType::Digest, KeyType::Fields];
    all.into_iter().find(|key_type| key_type.to_string() == name).ok_or_else(|| lines.wrong("key_type"))
}
