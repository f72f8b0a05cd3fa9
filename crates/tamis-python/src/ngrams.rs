//! texts -> the keys of all runs of so many words: for documents that repeat other documents.
//!
//! Each word is hashed once. The key of a run is a polynomial of the hashes of its words, which moves on by one word with two
//! multiplications, however long the run is.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyInt};
use tamis::Hasher;

use crate::chunk::Item;
use crate::column::Column;
use crate::error::Failure;

/// An odd multiplier whose bits are well mixed: 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

struct Runs {
    hasher: Hasher,
    words: usize,
    /// The multiplier of the word that leaves a run.
    last: u64,
    /// Hashes of the words of one text.
    hashes: Vec<u64>,
    keys: Vec<u64>,
    /// How many keys there are up to each text.
    offsets: Vec<u64>,
}

impl Runs {
    fn word(&mut self, word: &[u8]) {
        self.hashes.push(self.hasher.bytes(word).to_bits() as u64);
    }

    fn text(&mut self, row: usize, text: &[u8], lower: bool) -> Result<(), Failure> {
        self.hashes.clear();
        if text.is_ascii() {
            let text = if lower { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) };
            for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                self.word(word);
            }
        } else {
            let text = str::from_utf8(text)
                .map_err(|_| Failure::Input(format!("texts row {row}: not UTF-8; expected text")))?;
            let text = if lower { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) };
            text.split_whitespace().for_each(|word| self.word(word.as_bytes()));
        }
        let Some(first) = self.hashes.get(..self.words) else { return Ok(()) };
        let mut key = first.iter().fold(0u64, |key, hash| key.wrapping_mul(STEP).wrapping_add(*hash));
        self.keys.push(key);
        let last = self.last;
        self.keys.extend(self.hashes.iter().zip(&self.hashes[self.words..]).map(|(old, new)| {
            key = key.wrapping_mul(STEP).wrapping_add(*new).wrapping_sub(old.wrapping_mul(last));
            key
        }));
        Ok(())
    }
}

/// The bytes of some words, which NumPy reads as words again.
fn words_of<'py>(py: Python<'py>, words: &[u64]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 8 * words.len(), |bytes| {
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_ne_bytes());
        Ok(())
    })
}

/// The keys of all runs of words, 8 bytes each, and where those of each text start and end.
#[pyfunction]
pub(crate) fn _ngrams<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    words: &Bound<'py, PyInt>,
    lower: bool,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
    let Some(words) = words.extract::<u32>().ok().filter(|&words| words > 0) else {
        return Err(Failure::Input(format!("words: {words}; expected 1 to 2^32 - 1")).into());
    };
    let mut column = Column::of(texts, "texts")?;
    let runs = py.detach(|| {
        let (last, words) = (STEP.wrapping_pow(words), words as usize);
        let mut runs = Runs { hasher: Hasher::seeded(0), words, last, hashes: vec![], keys: vec![], offsets: vec![0] };
        loop {
            let first = column.row;
            let Some(chunk) = column.next()? else { return Ok::<_, Failure>(runs) };
            for row in 0..chunk.len {
                match chunk.get(row)? {
                    Item::Bytes(text) => runs.text(first + row, text, lower)?,
                    Item::Null => {}
                    Item::Integer(_) | Item::Float(_) => {
                        return Err(Failure::KeyType("texts: numbers; expected text".into()));
                    }
                }
                runs.offsets.push(runs.keys.len() as u64);
            }
        }
    })?;
    Ok((words_of(py, &runs.keys)?, words_of(py, &runs.offsets)?))
}
