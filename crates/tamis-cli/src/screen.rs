//! bytes for standard output or standard error -> the same in a pipe, and on a terminal what cannot command it.
//!
//! Keys, values, names of sets and names of files are other people's bytes, and an escape sequence among them could clear a
//! terminal, rename its window or forge a line. So on a terminal control characters (all but tab and newline), characters that turn the
//! direction of text and bytes that are not UTF-8 are printed as `\u001b` or `\xff`. The first form is JSON's own, so that JSON stays
//! what it was. A pipe or a file gets every byte unchanged.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write};

/// Standard output or standard error. Each call writes whole characters.
pub(crate) struct Screen<W> {
    out: W,
    terminal: bool,
}

/// Standard output, with a buffer.
pub(crate) type Stdout = Screen<BufWriter<io::StdoutLock<'static>>>;

/// Standard output.
pub(crate) fn stdout() -> Stdout {
    let out = io::stdout().lock();
    Screen { terminal: out.is_terminal(), out: BufWriter::with_capacity(1 << 16, out) }
}

/// Standard error.
pub(crate) fn stderr() -> Screen<io::StderrLock<'static>> {
    let out = io::stderr().lock();
    Screen { terminal: out.is_terminal(), out }
}

impl<W: Write> Write for Screen<W> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        self.out.write_all(escaped(bytes).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Bytes as a terminal may see them.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_harmless(c) {
                true => out.push(c),
                false => drop(write!(out, "\\u{:04x}", u32::from(c))),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(c, '\n' | '\t') || !(c.is_control() || turns)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands() {
        for (bytes, shown) in [
            (&b"a key\tand\nanother"[..], "a key\tand\nanother"),
            ("naïve \u{4f60}\u{597d} \\u001b".as_bytes(), "naïve \u{4f60}\u{597d} \\u001b"),
            (b"evil\x1b[2Jkey", "evil\\u001b[2Jkey"),
            (b"\x00\x07\x08\r\x7f", "\\u0000\\u0007\\u0008\\u000d\\u007f"),
            // CSI as one character of two bytes, and as the byte of an old terminal.
            ("\u{9b}2J".as_bytes(), "\\u009b2J"),
            (b"\x9b2J\xff\xe4\xbd", "\\x9b2J\\xff\\xe4\\xbd"),
            ("a\u{202e}b\u{2066}c\u{200f}".as_bytes(), "a\\u202eb\\u2066c\\u200f"),
        ] {
            assert_eq!(escaped(bytes), shown);
        }
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let shown = escaped(c.to_string().as_bytes());
            assert!(shown == c.to_string() || shown.is_ascii(), "{c:?}");
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{c:?}");
        }
    }

    #[test]
    fn json_stays_what_it_was() {
        let value = serde_json::json!({ "key": "\u{1b}[2J\u{7f}\u{9b}\u{202e}\"\\u" });
        let shown = escaped(value.to_string().as_bytes());
        assert!(shown.is_ascii());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_pipe_gets_what_was_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        for (terminal, wanted) in [(false, &bytes[..]), (true, escaped(&bytes).as_bytes())] {
            let mut screen = Screen { out: vec![], terminal };
            screen.write_all(&bytes).unwrap();
            assert_eq!(screen.out, wanted);
        }
    }
}
