//! a formula over the fields of a row -> a number: what a picture draws of a row.
//!
//! ```text
//!   row.median.bits / options.n / f(0, group.lambda) - 1
//! ```
//!
//! Numbers, names, + - * / and parentheses; `log2(x)`, `max(x, y)`, and `f(eps, lambda)`, the bound of \[Chained\]. A name
//! is a path of fields, or of numbers where there is a list.

use tamis::bounds;

/// What is left of the text, and where names have their values.
struct Reader<'a, N> {
    rest: &'a str,
    named: N,
}

/// The value of a formula whose names `named` knows.
pub(super) fn value(formula: &str, named: impl Fn(&str) -> Result<f64, String>) -> Result<f64, String> {
    let mut reader = Reader { rest: formula.trim(), named };
    let value = reader.sum(MAX_DEPTH).map_err(|e| format!("\"{formula}\": {e}"))?;
    match reader.rest {
        "" => Ok(value),
        rest => Err(format!("\"{formula}\": expected the end before \"{rest}\"")),
    }
}

/// How deep parentheses go.
const MAX_DEPTH: u32 = 20;

impl<N: Fn(&str) -> Result<f64, String>> Reader<'_, N> {
    /// Whether a sign comes next, which is then read.
    fn sign(&mut self, sign: char) -> bool {
        let found = self.rest.strip_prefix(sign).map(str::trim_start);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn must(&mut self, sign: char) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("expected \"{sign}\" before \"{}\"", self.rest)) }
    }

    fn sum(&mut self, depth: u32) -> Result<f64, String> {
        let mut value = self.product(depth)?;
        loop {
            value += match () {
                () if self.sign('+') => self.product(depth)?,
                () if self.sign('-') => -self.product(depth)?,
                () => return Ok(value),
            };
        }
    }

    fn product(&mut self, depth: u32) -> Result<f64, String> {
        let mut value = self.factor(depth)?;
        loop {
            value *= match () {
                () if self.sign('*') => self.factor(depth)?,
                () if self.sign('/') => 1.0 / self.factor(depth)?,
                () => return Ok(value),
            };
        }
    }

    fn factor(&mut self, depth: u32) -> Result<f64, String> {
        let depth = depth.checked_sub(1).ok_or("too many parentheses")?;
        if self.sign('(') {
            let value = self.sum(depth)?;
            return self.must(')').map(|()| value);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let (word, rest) = self.rest.split_at(self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        match word {
            "" => Err(format!("expected a number or a name before \"{rest}\"")),
            _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                word.parse().map_err(|_| format!("\"{word}\" is no number"))
            }
            "log2" if self.sign('(') => {
                let x = self.sum(depth)?;
                self.must(')').map(|()| x.log2())
            }
            "max" | "f" if self.sign('(') => {
                let x = self.sum(depth)?;
                self.must(',')?;
                let y = self.sum(depth)?;
                self.must(')').map(|()| if word == "f" { bounds::f(x, y) } else { x.max(y) })
            }
            name => (self.named)(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_their_values() {
        let named = |name: &str| if name == "row.0.x" { Ok(6.0) } else { Err(format!("no {name}")) };
        for (formula, expected) in [
            ("3", 3.0),
            (" 1 + 2 * 3 - 4 / 8 ", 6.5),
            ("(1 + 2) * row.0.x", 18.0),
            ("8 / 2 / 2", 2.0),
            ("10 - 4 - 3", 3.0),
            ("log2(row.0.x + 2)", 3.0),
            ("max(1e0, .5)", 1.0),
            ("f(0, 1)", 2.0),
        ] {
            assert_eq!(value(formula, named), Ok(expected), "{formula}");
        }
        for wrong in ["", "1 +", "(1", "1)", "row.y", "1 2", "1..2", "max(1)", "-", &"(".repeat(99)] {
            assert!(value(wrong, named).is_err(), "{wrong}");
        }
    }
}
