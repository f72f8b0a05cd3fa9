//! `bloom:words=2000,hashes=8` -> the parameters of a sketch.

use tamis::sets::{Body, Shape};

use crate::args;

/// The largest table, in words or buckets, and the most columns of one.
const MAX_TABLE: u64 = 1 << 40;
const MAX_PARTITIONS: u64 = 1 << 20;

const EXPECTED: &str = "expected bloom:words=W,hashes=K or cuckoo:buckets=M,bits=F, see --help";

/// Fields as they are typed, each taken out by who needs it.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Fields<'a>, String> {
        let mut fields: Vec<(&str, &str)> = vec![];
        for field in text.split(',') {
            let (name, value) = field.split_once('=').ok_or_else(|| format!("{field}: no value; {EXPECTED}"))?;
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(format!("{name}: given twice; expected once"));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }

    /// The value of a field, read by `read`.
    fn take<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(at) = self.0.iter().position(|field| field.0 == name) else { return Ok(None) };
        let (_, value) = self.0.swap_remove(at);
        read(value).map(Some).map_err(|reason| format!("{name} {value}: {reason}"))
    }

    /// A whole number up to `most`; `otherwise` where there is none, and an error if it must be given.
    fn whole(&mut self, name: &str, least: u64, most: u64, otherwise: Option<u64>) -> Result<u64, String> {
        let given = self.take(name, |value| args::whole(value, least..=most))?;
        given.or(otherwise).ok_or_else(|| format!("{name}: missing; {EXPECTED}"))
    }
}

/// Reads a shape, every number checked.
pub(super) fn parse(text: &str) -> Result<Shape, String> {
    let (kind, fields) = text.split_once(':').ok_or(EXPECTED)?;
    let mut fields = Fields::parse(fields)?;
    let repetitions = fields.whole("repetitions", 1, 8, Some(1))? as u32;
    // One table has a column for each set.
    let partitions = match repetitions {
        1 => 0,
        _ => fields.whole("partitions", 1, MAX_PARTITIONS, None)? as u32,
    };
    let body = match kind {
        "bloom" => {
            let words = fields.whole("words", 1, MAX_TABLE, None)?;
            let hashes = fields.whole("hashes", 1, 32, None)? as u32;
            Body::Bloom { words, hashes, repetitions, partitions }
        }
        "cuckoo" => {
            let buckets = fields.whole("buckets", 1, MAX_TABLE, None)?;
            let bits = fields.whole("bits", 4, 32, None)? as u32;
            Body::Cuckoo { buckets, bits, repetitions, partitions }
        }
        _ => return Err(format!("unknown structure {kind:?}; {EXPECTED}")),
    };
    let rate = |value: &str| args::share(value, |rate| rate > 0.0 && rate < 1.0, "a number between 0 and 1");
    let existence = fields.take("existence", rate)?;
    let heavy = fields.take("heavy", |value| args::whole(value, 1..=u64::from(u32::MAX)))?.map(|sets| sets as u32);
    match fields.0.first() {
        Some(("partitions", _)) => Err("partitions: no effect with one table; expected repetitions=2 or more".into()),
        Some((name, _)) => Err(format!("{name}: no such field; {EXPECTED}")),
        None => Ok(Shape { body, existence, heavy }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_any_order() {
        let body = Body::Bloom { words: 2000, hashes: 3, repetitions: 1, partitions: 0 };
        assert_eq!(parse("bloom:words=2000,hashes=3"), Ok(Shape { body, existence: None, heavy: None }));
        let body = Body::Cuckoo { buckets: 9, bits: 32, repetitions: 2, partitions: 7 };
        let text = "cuckoo:heavy=5,bits=32,partitions=7,existence=0.5,buckets=9,repetitions=2";
        assert_eq!(parse(text), Ok(Shape { body, existence: Some(0.5), heavy: Some(5) }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("", "expected bloom:"),
            ("bloom", "expected bloom:"),
            ("fuse:words=1", "unknown structure \"fuse\"; expected bloom:"),
            ("bloom:", ": no value; "),
            ("bloom:words", "words: no value; "),
            ("bloom:hashes=3", "words: missing; "),
            ("bloom:words=1", "hashes: missing; "),
            ("bloom:words=0,hashes=3", "words 0: out of range; expected 1 to 1099511627776"),
            ("bloom:words=9,hashes=33", "hashes 33: out of range; expected 1 to 32"),
            ("bloom:words=9,hashes=3,bits=8", "bits: no such field; "),
            ("bloom:words=9,hashes=3,words=9", "words: given twice"),
            ("cuckoo:buckets=9,bits=3", "bits 3: out of range; expected 4 to 32"),
            ("cuckoo:buckets=9,bits=33", "bits 33: out of range; "),
            ("cuckoo:buckets=x,bits=8", "buckets x: not a whole number; "),
            ("cuckoo:buckets=9,bits=8,repetitions=9", "repetitions 9: out of range; expected 1 to 8"),
            ("cuckoo:buckets=9,bits=8,repetitions=2", "partitions: missing; "),
            ("cuckoo:buckets=9,bits=8,partitions=5", "partitions: no effect with one table"),
            ("cuckoo:buckets=9,bits=8,existence=1", "existence 1: out of range; "),
            ("cuckoo:buckets=9,bits=8,heavy=0", "heavy 0: out of range; "),
        ] {
            let found = parse(text).err().unwrap_or_default();
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
}
