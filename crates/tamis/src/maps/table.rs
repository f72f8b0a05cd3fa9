//! symbols <-> values: the alphabet of a map.
//!
//! The tree of a map ends at a *symbol*, a number from 0 on in the order of the tree's leaves. Symbols of about the same
//! count form a *class*, whose symbols are neighbours and ascend with their values. So the table need not list values in the
//! order of symbols, which would take log2 of their number for each: it goes through the values in ascending order and says how
//! far the next is and which class it belongs to. Of a Zipf law that is a bit and a half per value. What it cannot do is to be
//! read in place: it is decoded when a map is opened.
//!
//! A function of fixed width needs no table: its symbol is the value, less the smallest.

use std::sync::Arc;

use bytes::Bytes;

use super::coder::{Chance, Decoder, Encoder, MAX_DECISIONS_PER_BYTE, Number};
use super::value::Value;
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::KeyType;

/// The most values that a table holds.
pub(crate) const MAX_VALUES: u64 = 1 << 22;

#[derive(Clone, Debug)]
pub(crate) enum Table {
    /// The symbol plus this is the value.
    Offset(u64),
    Numbers(Arc<Vec<u64>>),
    /// Where each lies in the bytes.
    Bytes(Bytes, Arc<Vec<(u32, u32)>>),
}

const OFFSET: u8 = 0;
const NUMBERS: u8 = 1;
const BYTES: u8 = 2;

impl Table {
    /// The value of a symbol; nothing for a symbol that no key has.
    #[inline(always)]
    pub(crate) fn get(&self, symbol: u64) -> Option<Value<'_>> {
        match self {
            Table::Bytes(bytes, spans) => {
                let &(start, len) = spans.get(symbol as usize)?;
                let start = start as usize;
                Some(Value::Bytes(bytes.get(start..start + len as usize)?))
            }
            Table::Offset(_) | Table::Numbers(_) => self.number(symbol).map(Value::Number),
        }
    }

    /// The same where values are numbers.
    #[inline(always)]
    pub(crate) fn number(&self, symbol: u64) -> Option<u64> {
        match self {
            Table::Offset(least) => Some(least.wrapping_add(symbol)),
            Table::Numbers(numbers) => numbers.get(symbol as usize).copied(),
            Table::Bytes(..) => None,
        }
    }

    pub(crate) fn key_type(&self) -> KeyType {
        match self {
            Table::Bytes(..) => KeyType::Bytes,
            Table::Offset(_) | Table::Numbers(_) => KeyType::Integer,
        }
    }

    /// How many symbols it names, if it names them one by one.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Table::Offset(_) => None,
            Table::Numbers(numbers) => Some(numbers.len() as u64),
            Table::Bytes(_, spans) => Some(spans.len() as u64),
        }
    }

    /// Reads and checks a table, which is the last part of a directory; `bytes` is the file around it.
    ///
    /// ```text
    ///   kind u8                      0: offset, 1: numbers, 2: bytes
    ///   0: the least value           varint
    ///   else: classes                varint, at least 1 if there are values
    ///         values of each class   varints
    ///         length, coded values   varint, so many bytes
    ///   2: the values' bytes one after the other, in ascending order
    /// ```
    pub(crate) fn decode(from: &mut Reader<'_>, bytes: &Bytes) -> Result<Table, FormatError> {
        let kind = from.u8()?;
        match kind {
            OFFSET => return Ok(Table::Offset(from.varint()?)),
            NUMBERS | BYTES => {}
            _ => return Err(FormatError::unsupported("kind of values", kind)),
        }
        let classes = from.within("classes of values", 0..=from.len())?;
        let mut sizes = from.room(classes)?;
        let mut count = 0;
        for _ in 0..classes {
            let size = from.within("values of a class", 1..=MAX_VALUES)?;
            sizes.push(size as u32);
            count += size;
        }
        let len = from.varint()?;
        let coded = from.take(len)?;
        if count > MAX_VALUES.min((len + 8) * MAX_DECISIONS_PER_BYTE) {
            return Err(FormatError::invalid(format!("directory: {count} values in {len} bytes")));
        }
        from.draw(classes * Classes::EACH)?;
        let mut numbers = from.room(if kind == NUMBERS { count } else { 0 })?;
        let mut spans = from.room(if kind == BYTES { count } else { 0 })?;
        let most = from.left();
        let decoder = Decoder::new(coded, most);
        let mut coded = Coded { decoder, classes: Classes::new(&sizes), size: Number::default() };
        if kind == NUMBERS {
            numbers.resize(count as usize, 0);
            let mut next = Some(0u64);
            for _ in 0..count {
                let (symbol, gap) = coded.next()?;
                let value = next.and_then(|next| next.checked_add(gap));
                let value = value.ok_or_else(|| FormatError::invalid("directory: a value exceeds 2^64"))?;
                numbers[symbol] = value;
                next = value.checked_add(1);
            }
            coded.decoder.finish()?;
            from.draw(most - coded.decoder.left)?;
            return Ok(Table::Numbers(numbers.into()));
        }
        spans.resize(count as usize, (0, 0));
        let mut end = 0u64;
        for _ in 0..count {
            let (symbol, len) = coded.next()?;
            let place = u32::try_from(end).ok().zip(u32::try_from(len).ok());
            spans[symbol] = place.ok_or_else(|| FormatError::invalid("directory: values of more than 4 GiB"))?;
            end += len;
        }
        coded.decoder.finish()?;
        from.draw(most - coded.decoder.left)?;
        let blob = from.take(end)?;
        Ok(Table::Bytes(bytes.slice_ref(blob), spans.into()))
    }
}

/// The decisions that name a class: whether it is the largest, the next, and so on. Values of one class often follow one
/// another, so each decision has a chance for when the value before was of that class.
struct Classes {
    /// Largest first.
    order: Vec<usize>,
    chances: Vec<[Chance; 2]>,
    /// The next symbol of each class, and where the class ends.
    next: Vec<(u32, u32)>,
    last: usize,
}

/// The numbers of these weights, the heaviest first; equal weights stay in their order.
pub(crate) fn heaviest_first(weights: &[u64]) -> Vec<u32> {
    let mut order: Vec<(u64, u64)> = weights.iter().zip(0..).map(|(weight, number)| (!weight, number)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number as u32).collect()
}

impl Classes {
    /// Bytes of memory for each class.
    const EACH: u64 = size_of::<(usize, [Chance; 2], (u32, u32))>() as u64;

    fn new(sizes: &[u32]) -> Classes {
        let weights: Vec<u64> = sizes.iter().map(|&size| size.into()).collect();
        let order = heaviest_first(&weights).into_iter().map(|class| class as usize).collect();
        let mut end = 0;
        let next = sizes.iter().map(|size| {
            end += size;
            (end - size, end)
        });
        Classes { next: next.collect(), chances: vec![Default::default(); sizes.len()], order, last: usize::MAX }
    }

    /// The class that `decide` says yes to; the last one needs no decision.
    fn find(&mut self, mut decide: impl FnMut(usize, &mut Chance) -> bool) -> Option<usize> {
        let (last, others) = self.order.split_last()?;
        let mut found = *last;
        for &class in others {
            let repeated = (self.last == class) as usize;
            if decide(class, &mut self.chances[class][repeated]) {
                found = class;
                break;
            }
        }
        self.last = found;
        Some(found)
    }

    /// The next symbol of a class, if it has one more.
    fn take(&mut self, class: usize) -> Option<u32> {
        let (next, end) = self.next.get_mut(class)?;
        let symbol = *next;
        *next += 1;
        (symbol < *end).then_some(symbol)
    }
}

struct Coded<'a> {
    decoder: Decoder<'a>,
    classes: Classes,
    size: Number,
}

impl Coded<'_> {
    /// The next value's symbol, and its distance or its length.
    fn next(&mut self) -> Result<(usize, u64), FormatError> {
        let Coded { decoder, classes, size } = self;
        let class = classes.find(|_, chance| decoder.get(chance));
        let symbol = class.and_then(|class| classes.take(class));
        decoder.check()?;
        let symbol = symbol.ok_or_else(|| FormatError::invalid("directory: more values of a class than it has"))?;
        Ok((symbol as usize, decoder.number(size)))
    }
}

pub(crate) fn encode_offset(least: u64, out: &mut Vec<u8>) {
    out.push(OFFSET);
    put_varint(out, least);
}

/// Writes a table of values, which ascend, each with its class; classes are as large as `sizes` says.
pub(crate) fn encode<'a>(
    key_type: KeyType,
    sizes: &[u32],
    values: impl Iterator<Item = (Value<'a>, usize)>,
    out: &mut Vec<u8>,
) {
    out.push(if key_type == KeyType::Integer { NUMBERS } else { BYTES });
    put_varint(out, sizes.len() as u64);
    sizes.iter().for_each(|&size| put_varint(out, size.into()));
    let (mut encoder, mut classes, mut size) = (Encoder::new(), Classes::new(sizes), Number::default());
    let (mut blob, mut last): (Vec<u8>, Option<u64>) = (vec![], None);
    for (value, class) in values {
        classes.find(|candidate, chance| {
            encoder.put(candidate == class, chance);
            candidate == class
        });
        match value {
            Value::Number(value) => {
                let gap = last.map_or(value, |last| value.wrapping_sub(last).wrapping_sub(1));
                encoder.number(gap, &mut size);
                last = Some(value);
            }
            Value::Bytes(bytes) => {
                encoder.number(bytes.len() as u64, &mut size);
                blob.extend_from_slice(bytes);
            }
        }
    }
    let coded = if sizes.is_empty() { vec![] } else { encoder.finish() };
    put_varint(out, coded.len() as u64);
    out.extend_from_slice(&coded);
    out.extend_from_slice(&blob);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::scramble;

    fn decode(bytes: &[u8]) -> Result<Table, FormatError> {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut from = Reader::new(&bytes, "directory");
        let table = Table::decode(&mut from, &bytes)?;
        from.end()?;
        Ok(table)
    }

    /// Values with classes as a plan makes them -> the sizes of the classes and, by symbol, which value.
    fn classes(values: usize, class: impl Fn(usize) -> usize) -> (Vec<u32>, Vec<usize>, Vec<usize>) {
        let classes: Vec<usize> = (0..values).map(class).collect();
        let count = classes.iter().max().map_or(0, |most| most + 1);
        let sizes = (0..count).map(|class| classes.iter().filter(|&&c| c == class).count() as u32).collect();
        let mut order: Vec<usize> = (0..values).collect();
        order.sort_by_key(|&value| (classes[value], value));
        (sizes, classes, order)
    }

    #[test]
    fn values_come_back_by_their_symbols() {
        for n in [0usize, 1, 2, 3, 100, 3000] {
            let laws: [fn(usize) -> usize; 4] =
                [|_| 0, |i| (scramble(i as u64).trailing_zeros() as usize).min(9), |i| (i / 100).min(20), |i| i % 7];
            for law in laws {
                let (sizes, classes, order) = classes(n, law);
                // Dense classes only: a plan has no empty ones.
                if sizes.contains(&0) {
                    continue;
                }
                let mut numbers: Vec<u64> = (0..n as u64).map(|i| scramble(i) >> (i % 60)).collect();
                numbers.extend([0, u64::MAX].iter().take(n));
                numbers.sort_unstable();
                numbers.dedup();
                numbers.truncate(n);
                if numbers.len() == n {
                    let mut bytes = vec![];
                    let values = numbers.iter().map(|&value| Value::Number(value)).zip(classes.iter().copied());
                    encode(KeyType::Integer, &sizes, values, &mut bytes);
                    let table = decode(&bytes).unwrap();
                    assert_eq!((table.len(), table.get(n as u64)), (Some(n as u64), None));
                    for (symbol, &value) in order.iter().enumerate() {
                        assert_eq!(table.get(symbol as u64), Some(Value::Number(numbers[value])));
                    }
                }
                let words: Vec<Vec<u8>> = (0..n).map(|i| format!("{i:05}").repeat(i % 3).into_bytes()).collect();
                let mut bytes = vec![];
                let values = words.iter().map(|word| Value::Bytes(word)).zip(classes.iter().copied());
                encode(KeyType::Bytes, &sizes, values, &mut bytes);
                let table = decode(&bytes).unwrap();
                for (symbol, &value) in order.iter().enumerate() {
                    assert_eq!(table.get(symbol as u64), Some(Value::Bytes(&words[value])));
                }
                for cut in 0..bytes.len() {
                    assert!(decode(&bytes[..cut]).is_err(), "{n}, {cut} of {}", bytes.len());
                }
            }
        }
    }

    /// Neighbours of one class cost next to nothing; classes in any order cost their entropy.
    #[test]
    fn tables_take_the_entropy_of_their_classes() {
        let size = |class: fn(usize) -> usize| {
            let (sizes, classes, _) = classes(50_000, class);
            let mut bytes = vec![];
            encode(KeyType::Integer, &sizes, (0..50_000).map(Value::Number).zip(classes), &mut bytes);
            bytes.len() as f64 * 8.0 / 50_000.0
        };
        assert!(size(|_| 0) < 0.03);
        assert!(size(|i| i / 10_000) < 0.15);
        // Two bits are the entropy of halves, quarters, eighths ...
        let zipf = size(|i| (scramble(i as u64).trailing_zeros() as usize).min(10));
        assert!((1.95..2.08).contains(&zipf), "{zipf}");
    }

    #[test]
    fn tables_that_no_writer_makes_are_rejected() {
        let refused = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert_eq!(refused(&[3]), "kind of values 3 is not supported by this release; upgrade tamis");
        // Four million values in two bytes.
        assert!(refused(&[1, 1, 0x80, 0x80, 0x80, 2, 2, 0, 0]).contains("4194304 values in 2 bytes"));
        assert!(refused(&[1, 2, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 1, 1, 0]).contains("values in 1 bytes"));
        assert!(refused(&[1, 1, 0, 0]).contains("values of a class is 0, expected 1 to 4194304"));
        // A class of three that gets four, and numbers beyond the last.
        let mut bytes = vec![];
        let values = [(Value::Number(u64::MAX - 1), 0), (Value::Number(u64::MAX), 0), (Value::Number(1), 0)];
        encode(KeyType::Integer, &[3], values.into_iter(), &mut bytes);
        assert!(refused(&bytes).contains("a value exceeds 2^64"));
        let mut bytes = vec![];
        let values = (0..4u64).map(|i| (Value::Number(i), 0));
        encode(KeyType::Integer, &[3, 1], values, &mut bytes);
        assert!(refused(&bytes).contains("more values of a class than it has"));
        let mut bytes = vec![];
        encode(KeyType::Integer, &[1], [(Value::Number(7), 0)].into_iter(), &mut bytes);
        let coded = bytes[3] + 3;
        bytes[3] = coded;
        bytes.extend([0; 3]);
        assert!(refused(&bytes).contains("bytes after the table of values"));
    }
}
