//! an adaptive filter's fields and words <-> a file of the form "adaptive filter".
//!
//! ```text
//!   directory: kind u8 | number of payloads (varint) | their lengths in bytes (varints) | fields of the kind
//!   payloads:  words, little-endian, as the kind orders them
//! ```

use bytes::Bytes;

use super::keys::KeySet;
use crate::error::{BuildError, FormatError};
pub(crate) use crate::format::bytes_of;
use crate::format::{self, Budget, Form, Header, Reader, Writer, put_varint};
use crate::hash::{Digest, Hasher, KeyType};

/// The kinds of adaptive filters, as files name them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Broom = 1,
    LargeBroom = 2,
    Quotient = 3,
    Bloom = 4,
    QuotientCascade = 5,
    CuckooCascade = 6,
    Stacked = 7,
    Chained = 8,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Broom => "broom filter",
            Kind::LargeBroom => "broom filter of large remainders",
            Kind::Quotient => "adaptive quotient filter",
            Kind::Bloom => "adaptive Bloom filter",
            Kind::QuotientCascade => "cascade of quotient filters",
            Kind::CuckooCascade => "cascade of cuckoo filters",
            Kind::Stacked => "adaptive stacked filter",
            Kind::Chained => "adaptive chained filter",
        }
    }
}

/// More payloads than any kind has.
const MAX_PAYLOADS: u64 = 64;

pub(crate) fn write(
    kind: Kind,
    hasher: &Hasher,
    key_type: KeyType,
    keys: u64,
    fields: &[u8],
    payloads: &[Vec<u8>],
) -> Result<Vec<u8>, BuildError> {
    let header = Header { keys, ..Header::new(Form::Adaptive, hasher.clone(), key_type) };
    let mut file = vec![];
    let mut writer = Writer::new(&mut file, &header, vec![])?;
    let mut directory = vec![kind as u8];
    put_varint(&mut directory, payloads.len() as u64);
    for payload in payloads {
        put_varint(&mut directory, payload.len() as u64);
        writer.payload(payload)?;
    }
    directory.extend_from_slice(fields);
    writer.close(directory)?;
    Ok(file)
}

/// A file, taken apart. The checksums hold; fields and payloads are the kind's to check.
pub(crate) struct Read {
    pub(crate) header: Header,
    pub(crate) payloads: Vec<Bytes>,
    fields: Bytes,
    budget: Budget,
}

impl Read {
    /// The keys of a filter that was made of them; their sum is the next field.
    pub(crate) fn key_set(&self, from: &mut Reader<'_>) -> Result<KeySet, FormatError> {
        let Header { hasher, key_type, keys, .. } = self.header.clone();
        Ok(KeySet { hasher, key_type, keys, sum: u64::from_le_bytes(from.array()?) })
    }

    /// All payloads, of a kind that has `N`.
    pub(crate) fn all<const N: usize>(&self) -> Result<&[Bytes; N], FormatError> {
        let found = self.payloads.len();
        let wrong = |_| FormatError::invalid(format!("directory: {found} payloads, expected {N}"));
        self.payloads[..].try_into().map_err(wrong)
    }

    /// The payloads one by one, of a kind whose fields say how many it has.
    pub(crate) fn payloads(&self) -> Payloads<'_> {
        Payloads(self.payloads.iter())
    }

    pub(crate) fn fields(&self) -> Reader<'_> {
        Reader::budgeted(&self.fields, "directory", &self.budget)
    }
}

pub(crate) struct Payloads<'a>(std::slice::Iter<'a, Bytes>);

impl<'a> Payloads<'a> {
    pub(crate) fn next(&mut self) -> Result<&'a Bytes, FormatError> {
        self.0.next().ok_or_else(|| FormatError::invalid("directory: a payload is missing"))
    }

    pub(crate) fn end(self) -> Result<(), FormatError> {
        FormatError::check(self.0.len() == 0, || "directory: a payload too many")
    }
}

/// Reads a file of this kind, and checks both checksums; `secret` is what the caller knows.
pub(crate) fn read(bytes: impl Into<Bytes>, secret: Option<[u64; 2]>, kind: Kind) -> Result<Read, FormatError> {
    let bytes = bytes.into();
    let budget = Budget::of(&bytes);
    let (header, mut from, mut places) = format::parts(&bytes, secret, &budget)?;
    // Payloads become words, and words become lists.
    from.draw(4 * bytes.len() as u64)?;
    format::verify(&bytes)?;
    if header.form != Form::Adaptive {
        return Err(FormatError::Form { found: header.form.name(), expected: kind.name() });
    }
    FormatError::check(header.hasher.is_secret(), || "header: an adaptive filter without a secret key")?;
    let (found, expected) = (from.u8()?, kind as u8);
    if !(Kind::Broom as u8..=Kind::Chained as u8).contains(&found) {
        return Err(FormatError::unsupported("kind of adaptive filter", found));
    }
    let reason = || format!("directory: kind is {found}, expected {expected} ({})", kind.name());
    FormatError::check(found == expected, reason)?;
    let count = from.within("number of payloads", 0..=MAX_PAYLOADS)?;
    let lengths = (0..count).map(|_| from.varint()).collect::<Result<Vec<_>, _>>()?;
    let fields = from.len();
    let fields = bytes.slice_ref(from.take(fields)?);
    let payloads = lengths.into_iter().map(|len| places.take(len)).collect::<Result<_, _>>()?;
    places.check()?;
    Ok(Read { header, payloads, fields, budget })
}

/// The rate of a filter, from its fields.
pub(crate) fn rate(from: &mut Reader<'_>) -> Result<f64, FormatError> {
    let rate = f64::from_le_bytes(from.array()?);
    let reason = || format!("directory: rate is {rate}, expected more than 0 and less than 1");
    FormatError::check(rate > 0.0 && rate < 1.0, reason)?;
    Ok(rate)
}

/// Appends numbers as varints.
pub(crate) fn put_varints(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    numbers.into_iter().for_each(|number| put_varint(out, number));
}

pub(crate) fn put_digest(out: &mut Vec<u8>, Digest { hi, lo }: Digest) {
    out.extend([hi, lo].into_iter().flat_map(u64::to_le_bytes));
}

pub(crate) fn digest(from: &mut Reader<'_>) -> Result<Digest, FormatError> {
    Ok(Digest { hi: u64::from_le_bytes(from.array()?), lo: u64::from_le_bytes(from.array()?) })
}

/// Bytes as words; the error is a length that is no multiple of eight.
pub(crate) fn words_of(bytes: &[u8]) -> Result<Vec<u64>, FormatError> {
    let (words, rest) = bytes.as_chunks::<8>();
    FormatError::check(rest.is_empty(), || format!("payload: {} bytes, expected a multiple of 8", bytes.len()))?;
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
