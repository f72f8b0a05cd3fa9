//! symbols <-> values: the alphabet of a map.
//!
//! The tree of a map ends at a *symbol*, a number from 0 on in the order of the tree's leaves. Symbols of about the same
//! count form a *class*, whose symbols are neighbours and ascend with their values. So the table need not list values in the
//! order of symbols, which would take log2 of their number for each: it goes through the values in ascending order and says how
//! far the next is and which class it belongs to. Of a Zipf law that is a bit and a half per value. What it cannot do is to be
//! read in place: it is decoded when a map is opened.
//!
//! A function of fixed width needs no table: its symbol is the value, less the smallest.

use bytes::Bytes;

use super::coder::{Chance, Decoder, MOST_PER_BYTE, Number};
use super::value::Value;
use crate::error::FormatError;
use crate::format::Reader;
use crate::hash::Domain;

/// The most values that a table holds.
pub(crate) const MOST: u64 = 1 << 22;

/// The values by symbol.
#[derive(Debug)]
pub(crate) enum Table {
    /// The symbol plus this is the value.
    Offset(u64),
    Numbers(Box<[u64]>),
    /// Where each lies in the bytes.
    Bytes(Bytes, Box<[(u32, u32)]>),
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
            _ => self.number(symbol).map(Value::Number),
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

    pub(crate) fn domain(&self) -> Domain {
        match self {
            Table::Bytes(..) => Domain::Bytes,
            _ => Domain::U64,
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
    ///   2: length, the values' bytes one after the other, in ascending order
    /// ```
    pub(crate) fn decode(from: &mut Reader<'_>, bytes: &Bytes) -> Result<Table, FormatError> {
        let kind = from.u8()?;
        match kind {
            OFFSET => return Ok(Table::Offset(from.varint()?)),
            NUMBERS | BYTES => {}
            _ => return Err(FormatError::invalid(format!("directory: kind of values is {kind}, expected 0 to 2"))),
        }
        let classes = from.within("classes of values", 0..=from.len())?;
        let mut sizes = vec![];
        let mut count = 0;
        for _ in 0..classes {
            let size = from.within("values of a class", 1..=MOST)?;
            sizes.push(size as u32);
            count += size;
        }
        let len = from.varint()?;
        let coded = from.take(len)?;
        if count > MOST.min((len + 8) * MOST_PER_BYTE) {
            return Err(FormatError::invalid(format!("directory: {count} values in {len} bytes")));
        }
        let mut coded = Coded { decoder: Decoder::new(coded), classes: Classes::new(&sizes), size: Number::default() };
        if kind == NUMBERS {
            let mut numbers = vec![0; count as usize];
            let mut last: Option<u64> = None;
            for _ in 0..count {
                let (symbol, gap) = coded.next()?;
                let value = match last {
                    None => Some(gap),
                    Some(last) => last.checked_add(1).and_then(|next| next.checked_add(gap)),
                };
                let value = value.ok_or_else(|| FormatError::invalid("directory: a value exceeds 2^64"))?;
                numbers[symbol] = value;
                last = Some(value);
            }
            coded.decoder.finish()?;
            return Ok(Table::Numbers(numbers.into()));
        }
        let mut spans = vec![(0, 0); count as usize];
        let mut end = 0u64;
        for _ in 0..count {
            let (symbol, len) = coded.next()?;
            let place = u32::try_from(end).ok().zip(u32::try_from(len).ok());
            spans[symbol] = place.ok_or_else(|| FormatError::invalid("directory: values of more than 4 GiB"))?;
            end += len;
        }
        coded.decoder.finish()?;
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

impl Classes {
    fn new(sizes: &[u32]) -> Classes {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&class| (std::cmp::Reverse(sizes[class]), class));
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

/// Writes the table of a function.
#[cfg(feature = "build")]
pub(crate) fn encode_offset(least: u64, out: &mut Vec<u8>) {
    out.push(OFFSET);
    crate::format::put_varint(out, least);
}

/// Writes a table of values, which ascend, each with its class; classes are as large as `sizes` says.
#[cfg(feature = "build")]
pub(crate) fn encode<'a>(
    domain: Domain,
    sizes: &[u32],
    values: impl Iterator<Item = (Value<'a>, usize)>,
    out: &mut Vec<u8>,
) {
    use super::coder::Encoder;
    use crate::format::put_varint;
    out.push(if domain == Domain::U64 { NUMBERS } else { BYTES });
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
