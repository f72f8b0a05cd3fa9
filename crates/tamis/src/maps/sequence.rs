//! symbols in order -> bytes -> the symbol at any position: a map whose keys are positions.

use bytes::Bytes;

use super::query::Map;
use super::value::Value;
use crate::error::FormatError;
use crate::format::{Budget, Form, Source, equal_by_bytes, from_bytes};
use crate::hash::KeyType;

/// Static sequence of symbols that uses about their entropy. Symbols are read in any order ([Chained] section 5.2).
///
/// ```
/// use tamis::maps::Value::Number;
/// let text = b"mississippi";
/// let sequence = tamis::sequence(text).finish()?;
/// assert_eq!(sequence.get(4), Some(Number(b'i'.into())));
/// assert_eq!(sequence.get(11), None);
/// let again: Vec<u8> = sequence.iter().filter_map(|symbol| symbol.as_u64()).map(|symbol| symbol as u8).collect();
/// assert_eq!(again, text);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// [Chained]: https://doi.org/10.48550/arXiv.2308.13649
#[derive(Clone, Debug)]
pub struct Sequence {
    map: Map,
}

equal_by_bytes!(Sequence);

impl Sequence {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`open`](Self::open), except for a damaged payload.
    pub fn open_unverified(bytes: impl Source) -> Result<Sequence, FormatError> {
        Sequence::opened(bytes.into_bytes(), None)
    }

    /// The same for a caller who knows this secret.
    pub(crate) fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Sequence, FormatError> {
        let budget = Budget::of(&bytes);
        let map = Map::within(bytes, Form::Sequence, secret, &budget)?;
        match map.key_type() {
            KeyType::Integer => Ok(Sequence { map }),
            other @ (KeyType::Bytes | KeyType::Digest | KeyType::Fields) => {
                Err(FormatError::invalid(format!("header: the keys of a sequence are {other}, expected integers")))
            }
        }
    }

    from_bytes!(map.bytes);

    /// Returns the symbol at a position; `None` past the end.
    #[inline]
    pub fn get(&self, position: u64) -> Option<Value<'_>> {
        if position >= self.len() {
            return None;
        }
        // The keys of a sequence are numbers, which was checked when it was opened.
        self.map.get(position).ok().flatten()
    }

    /// Returns the symbols at many positions: faster than one by one where the sequence is larger than the caches.
    pub fn get_many(&self, positions: &[u64]) -> Vec<Option<Value<'_>>> {
        // As above: a number has the right key type.
        let mut symbols = self.map.get_many(positions).unwrap_or_else(|_| vec![None; positions.len()]);
        for (symbol, &position) in symbols.iter_mut().zip(positions) {
            if position >= self.len() {
                *symbol = None;
            }
        }
        symbols
    }

    /// Returns all symbols in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'_>> {
        let starts = (0..self.len()).step_by(CHUNK as usize);
        starts.flat_map(|start| {
            let positions: Vec<u64> = (start..self.len().min(start.saturating_add(CHUNK))).collect();
            // Only a damaged sequence lacks a symbol.
            self.get_many(&positions).into_iter().map(|symbol| symbol.unwrap_or(self.nothing()))
        })
    }

    fn nothing(&self) -> Value<'static> {
        if self.map.value_type() == KeyType::Integer { Value::Number(0) } else { Value::Bytes(&[]) }
    }

    /// Returns the map from positions to symbols, which says more about them.
    ///
    /// ```
    /// let sequence = tamis::sequence("abracadabra".bytes().map(u64::from)).finish()?;
    /// assert_eq!(sequence.as_map().distinct(), Some(5));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn as_map(&self) -> &Map {
        &self.map
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    /// Returns `true` if the sequence has no symbols.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

/// Positions that an iterator reads at a time.
const CHUNK: u64 = 1024;

#[cfg(feature = "build")]
pub use construction::{SequenceBuilder, sequence};

#[cfg(feature = "build")]
mod construction {
    use super::Sequence;
    use crate::debug::brief_debug;
    use crate::error::Error;
    use crate::file::finish;
    use crate::filter::build::total;
    use crate::filter::options::common;
    use crate::format::Form;
    use crate::hash::KeyType;
    use crate::maps::build::{Collector, Kind, MapBuilder, Report};
    use crate::maps::{ToValue, map};
    use crate::plan::Layout;

    /// Starts a sequence of these symbols: unsigned integers, text or bytes.
    ///
    /// ```
    /// let days = ["mon", "tue", "wed"];
    /// let sequence = tamis::sequence(days.iter().cycle().take(1000)).finish()?;
    /// assert_eq!(sequence.get(7).unwrap().to_string(), "tue");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn sequence<'a, I: IntoIterator<Item: ToValue>>(symbols: I) -> SequenceBuilder<'a, I> {
        SequenceBuilder { build: map(std::iter::empty::<(u64, u64)>()).unchecked(), symbols }
    }

    impl<'a> crate::filter::build::Options<'a> {
        /// Returns a builder of a sequence of these symbols: see [`sequence`].
        pub fn sequence<I: IntoIterator<Item: ToValue>>(self, symbols: I) -> SequenceBuilder<'a, I> {
            sequence(symbols).options(self)
        }
    }

    /// Builder of a [`Sequence`].
    ///
    /// ```
    /// let (sequence, report) = tamis::sequence(b"abracadabra").alphabet(b"abcdr").finish_with_report()?;
    /// assert_eq!((sequence.len(), report.values), (11, Some(5)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use = "nothing is built before `finish`"]
    pub struct SequenceBuilder<'a, I> {
        build: MapBuilder<'a, std::iter::Empty<(u64, u64)>>,
        symbols: I,
    }

    brief_debug!(SequenceBuilder<'a, I>, it => build: it.build);

    impl<'a, I: IntoIterator<Item: ToValue>> SequenceBuilder<'a, I> {
        /// Sets the structure. The default is [`Kind::Auto`].
        pub fn kind(self, kind: Kind) -> Self {
            SequenceBuilder { build: self.build.kind(kind), ..self }
        }

        /// Sets the layout of a compressed sequence: see [`MapBuilder::layout`].
        pub fn layout(self, layout: Layout) -> Self {
            SequenceBuilder { build: self.build.layout(layout), ..self }
        }

        /// Declares all symbols that may occur. Any other symbol is an error.
        pub fn alphabet<V: ToValue>(self, values: impl IntoIterator<Item = V>) -> Self {
            SequenceBuilder { build: self.build.alphabet(values), ..self }
        }

        /// Declares that symbols are numbers below 2^bits, from 1 to 64 bits: see [`MapBuilder::width`].
        pub fn width(self, bits: u32) -> Self {
            SequenceBuilder { build: self.build.width(bits), ..self }
        }

        common!(build.options.common);

        finish!("sequence", Sequence, this => this.collect()?);

        fn collect(self) -> Result<Collector<'a>, Error> {
            let mut options = self.build.options;
            options.form = Form::Sequence;
            options.check()?;
            let mut pairs = Collector::new(options, Some(KeyType::Integer));
            let symbols = self.symbols.into_iter();
            pairs.total = total(&symbols);
            for (position, symbol) in (0u64..).zip(symbols) {
                pairs.push(position, symbol)?;
            }
            Ok(pairs)
        }
    }
}
