//! FASTA and FASTQ -> canonical k-mers as integers, record by record.
//!
//! ```text
//!   >id words                 @id words
//!   ACGT                      ACGT          letters, over any number of lines
//!   ACNT                      +
//!                             IIII          as many signs of quality, over any number of lines
//! ```
//!
//! A k-mer is packed two bits a letter (A 0, C 1, G 2, T 3, the first letter highest), and its key is the smaller of the numbers of
//! itself and of its reverse complement: both strands of a molecule have the same keys. Letters of either case count; any other letter,
//! a gap or a stop breaks the sequence, and the k-mers over it are counted as skipped. Blanks within lines are nothing.
//!
//! The parser is ours and not a crate's because it holds no record: a chromosome of a gigabyte on one line passes through one buffer, where
//! those of the crates hold a whole record, without a limit.

use std::io::{self, Read};
use std::rc::Rc;

use anyhow::{Error, Result, anyhow, bail};
use memchr::memchr;

use super::sink::quote;
use super::source::{Meter, Raw};
use super::{Source, sniff};

/// Read at a time.
const BUFFER: usize = 1 << 18;

/// k-mers given together.
const BATCH: usize = 1 << 13;

/// Of a record's name, whatever its length, so much is kept.
const NAME: usize = 1 << 16;

/// What is looked at of every file before the first is read.
const HEAD: u64 = 1 << 12;

/// The longest k-mer: 62 bits.
pub(crate) const MAX_K: u32 = 31;

/// What is met in a file of sequences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event<'a> {
    /// A record begins: the first word of its header.
    Record(&'a [u8]),
    /// Canonical k-mers of the record, in order.
    Kmers(&'a [u64]),
    /// The record ends.
    End,
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sequences {
    /// Records of all files.
    pub(crate) records: u64,
    /// Records with fewer than k letters.
    pub(crate) short: u64,
    /// k-mers that were given.
    pub(crate) kmers: u64,
    /// k-mers over letters other than A, C, G and T.
    pub(crate) skipped: u64,
}

/// What receives the events, each with the number of its input.
pub(crate) type Visit<'a> = dyn FnMut(usize, Event<'_>) -> Result<()> + 'a;

/// Reads the sequences of all inputs; progress is that of [`super::for_each`].
pub(crate) fn for_each(
    inputs: &[Source],
    k: u32,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<Sequences> {
    read_all(inputs, k, BUFFER, &mut io::stdin().lock(), progress, visit)
}

/// [`for_each`] with any reader as standard input, and so many bytes at a time.
fn read_all(
    inputs: &[Source],
    k: u32,
    size: usize,
    stdin: &mut dyn Read,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<Sequences> {
    // All files are looked at before the first is read: a list of keys among genomes should not show after an hour.
    if inputs.iter().filter(|input| matches!(input, Source::Stdin)).count() > 1 {
        bail!("-: standard input is given twice; expected it once");
    }
    inputs.iter().try_for_each(Source::check)?;
    for input in inputs.iter().filter(|input| input.is_regular()) {
        let (mut head, mut nothing) = (vec![], io::empty());
        let reader = open(input, &mut nothing, Rc::default())?;
        // What is wrong further down is found in its turn.
        let _ = reader.take(HEAD).read_to_end(&mut head);
        if !matches!(head.trim_ascii_start().first(), None | Some(b'>' | b'@')) {
            Parser::new(input, 0, k, &mut |_, _| Ok(())).read(Box::new(&head[..]), head.len(), &mut || ())?;
        }
    }
    let meter: Rc<Meter> = Rc::default();
    let mut sum = Sequences::default();
    for (file, input) in inputs.iter().enumerate() {
        let reader = open(input, &mut *stdin, Rc::clone(&meter))?;
        let mut parser = Parser::new(input, file, k, &mut *visit);
        parser.read(reader, size, &mut || progress(meter.bytes.get()))?;
        sum.records += parser.counts.records;
        sum.short += parser.counts.short;
        sum.kmers += parser.counts.kmers;
        sum.skipped += parser.counts.skipped;
    }
    Ok(sum)
}

fn open<'a>(input: &Source, stdin: &'a mut dyn Read, meter: Rc<Meter>) -> Result<Box<dyn Read + 'a>> {
    let reading = sniff::Reading { format: None, forced: false, records: false };
    sniff::open(Raw::open(input, stdin, meter)?, reading).map_err(|e| anyhow!("{input}: {e}"))
}

/// The letters of a k-mer, for a message.
pub(crate) fn spell(key: u64, k: u32) -> String {
    (0..k).rev().map(|i| char::from(b"ACGT"[(key >> (2 * i) & 3) as usize])).collect()
}

/// What a byte of a sequence is: the code of a letter, or one of these.
const BREAK: u8 = 4;
const NOTHING: u8 = 5;
const WRONG: u8 = 6;

const CLASSES: [u8; 256] = {
    let mut classes = [WRONG; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'A' | b'a' => 0,
            b'C' | b'c' => 1,
            b'G' | b'g' => 2,
            b'T' | b't' => 3,
            b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'*' | b'.' => BREAK,
            b' ' | b'\t' | b'\r' => NOTHING,
            _ => WRONG,
        };
        byte += 1;
    }
    classes
};

/// The last k letters, read both ways.
struct Window {
    k: u32,
    mask: u64,
    forward: u64,
    reverse: u64,
    /// Letters since the last break, at most k.
    filled: u32,
}

impl Window {
    fn new(k: u32) -> Window {
        let k = k.clamp(1, MAX_K);
        Window { k, mask: (1 << (2 * k)) - 1, forward: 0, reverse: 0, filled: 0 }
    }

    /// The key of the k-mer that ends with this letter.
    #[inline]
    fn push(&mut self, code: u8) -> Option<u64> {
        let code = u64::from(code);
        self.forward = (self.forward << 2 | code) & self.mask;
        self.reverse = self.reverse >> 2 | (3 - code) << (2 * (self.k - 1));
        self.filled = (self.filled + 1).min(self.k);
        (self.filled == self.k).then(|| self.forward.min(self.reverse))
    }

    fn clear(&mut self) {
        self.filled = 0;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first record.
    Start,
    /// In the header of a FASTA record, of a FASTQ record.
    Header,
    HeaderQ,
    /// In the letters.
    Letters,
    LettersQ,
    /// In the line that begins with `+`.
    Plus,
    Quality,
    /// Behind a FASTQ record.
    Between,
}

/// One file, given in pieces that end where lines end or anywhere before.
struct Parser<'a, 'v> {
    input: &'a Source,
    file: usize,
    visit: &'a mut Visit<'v>,
    window: Window,
    keys: Vec<u64>,
    state: State,
    /// From 1.
    line: u64,
    /// Nothing of this line was seen yet.
    fresh: bool,
    /// The first word of the header, as far as it was seen, and whether that is all.
    name: Vec<u8>,
    named: bool,
    /// The line where the record began, and its letters.
    began: u64,
    letters: u64,
    given: u64,
    /// Signs of quality yet to come.
    left: u64,
    counts: Sequences,
}

impl<'a, 'v> Parser<'a, 'v> {
    fn new(input: &'a Source, file: usize, k: u32, visit: &'a mut Visit<'v>) -> Parser<'a, 'v> {
        Parser {
            input,
            file,
            visit,
            window: Window::new(k),
            keys: Vec::with_capacity(BATCH),
            state: State::Start,
            line: 1,
            fresh: true,
            name: vec![],
            named: false,
            began: 0,
            letters: 0,
            given: 0,
            left: 0,
            counts: Sequences::default(),
        }
    }

    fn read(&mut self, mut reader: Box<dyn Read + '_>, size: usize, progress: &mut dyn FnMut()) -> Result<()> {
        let mut buffer = Vec::with_capacity(size);
        loop {
            buffer.clear();
            let read = reader.by_ref().take(size as u64).read_to_end(&mut buffer);
            let mut rest = &buffer[..];
            while let Some(end) = memchr(b'\n', rest) {
                self.piece(&rest[..end])?;
                self.line_end()?;
                rest = &rest[end + 1..];
            }
            if !rest.is_empty() {
                self.piece(rest)?;
            }
            progress();
            // Behind what was read before it: there the line is known.
            if read.map_err(|e| self.error(e))? == 0 {
                break;
            }
        }
        if !self.fresh {
            self.line_end()?;
        }
        match self.state {
            State::Start | State::Between => Ok(()),
            State::Letters => self.end(),
            _ => {
                let what = if self.state == State::Quality { "its quality" } else { "+ and its quality" };
                Err(anyhow!("{}: ends inside the record of line {}; expected {what}", self.input, self.began))
            }
        }
    }

    /// A part of a line.
    fn piece(&mut self, text: &[u8]) -> Result<()> {
        let (fresh, first) = (self.fresh, text.first().copied());
        self.fresh = false;
        match self.state {
            State::Start | State::Between => {
                let text = text.trim_ascii_start();
                self.state = match (text.first(), self.state) {
                    (None, _) => return Ok(()),
                    (Some(b'>'), State::Start) => State::Header,
                    (Some(b'@'), _) => State::HeaderQ,
                    (_, State::Start) => return Err(self.wrong("'>' or '@', as sequences begin", text)),
                    _ => return Err(self.wrong("'@', as the next record begins", text)),
                };
                self.header(&text[1..]);
            }
            State::Header | State::HeaderQ => self.header(text),
            State::Letters if fresh && first == Some(b'>') => {
                self.end()?;
                self.state = State::Header;
                self.header(&text[1..]);
            }
            State::LettersQ if fresh && first == Some(b'+') => self.state = State::Plus,
            State::Letters | State::LettersQ => self.letters(text)?,
            State::Plus => {}
            State::Quality => {
                let signs = text.iter().filter(|&&sign| sign > b' ').count() as u64;
                self.left = self.left.checked_sub(signs).ok_or_else(|| {
                    let (line, letters) = (self.began, self.letters);
                    self.error(format!("more signs of quality than the record of line {line} has letters, {letters}"))
                })?;
            }
        }
        Ok(())
    }

    fn line_end(&mut self) -> Result<()> {
        match self.state {
            State::Header | State::HeaderQ => {
                self.state = if self.state == State::Header { State::Letters } else { State::LettersQ };
                (self.letters, self.given) = (0, 0);
                self.window.clear();
                (self.visit)(self.file, Event::Record(&self.name))?;
                self.name.clear();
                self.named = false;
            }
            State::Plus => {
                (self.state, self.left) = (State::Quality, self.letters);
                // No letters have no quality, and perhaps no line of it.
                if self.letters == 0 {
                    self.state = State::Between;
                    self.end()?;
                }
            }
            State::Quality if self.left == 0 => {
                self.state = State::Between;
                self.end()?;
            }
            _ => {}
        }
        self.line += 1;
        self.fresh = true;
        Ok(())
    }

    fn header(&mut self, text: &[u8]) {
        if self.name.is_empty() && !self.named {
            self.began = self.line;
        }
        if self.named {
            return;
        }
        let word = text.iter().position(u8::is_ascii_whitespace);
        let text = &text[..word.unwrap_or(text.len())];
        self.named = word.is_some();
        self.name.extend_from_slice(&text[..text.len().min(NAME - self.name.len().min(NAME))]);
    }

    fn letters(&mut self, text: &[u8]) -> Result<()> {
        for (at, &byte) in text.iter().enumerate() {
            match CLASSES[usize::from(byte)] {
                code @ 0..4 => {
                    self.letters += 1;
                    if let Some(key) = self.window.push(code) {
                        self.keys.push(key);
                        if self.keys.len() == BATCH {
                            self.give()?;
                        }
                    }
                }
                BREAK => {
                    self.letters += 1;
                    self.window.clear();
                }
                NOTHING => {}
                _ => return Err(self.wrong("letters of a sequence", &text[at..])),
            }
        }
        Ok(())
    }

    fn give(&mut self) -> Result<()> {
        if !self.keys.is_empty() {
            self.given += self.keys.len() as u64;
            (self.visit)(self.file, Event::Kmers(&self.keys))?;
            self.keys.clear();
        }
        Ok(())
    }

    /// The record is complete.
    fn end(&mut self) -> Result<()> {
        self.give()?;
        let places = (self.letters + 1).saturating_sub(self.window.k.into());
        self.counts.records += 1;
        self.counts.short += u64::from(places == 0);
        self.counts.kmers += self.given;
        self.counts.skipped += places - self.given;
        (self.visit)(self.file, Event::End)
    }

    fn wrong(&self, expected: &str, found: &[u8]) -> Error {
        self.error(format!("expected {expected}, found {}", quote(found.trim_ascii_end())))
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        anyhow!("{}: line {}: {message}", self.input, self.line)
    }
}

#[cfg(test)]
mod tests;
