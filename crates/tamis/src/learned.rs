//! a model of the keys + filters -> a learned filter: a score of the key's bytes chooses the filter that answers.
//!
//! Members often look unlike excluded keys: names of phishing sites, misspelt words. A small model sees the difference for most of them.
//! A [`Scorer`] gives every key a score. *Thresholds* cut the scores into classes, and each class has a filter of its own:
//!
//! ```text
//!   key ──▶ front filter ──no──▶ no                       only with `sandwich`
//!              │ yes
//!              ▼
//!           scorer ──▶ score ──▶ class 0 | class 1 | .. | class k      by thresholds, ascending
//!                                filter    filter        filter        or none: every key of the class matches
//! ```
//!
//! ```
//! let members: Vec<String> = (0..4000).map(|i| format!("login-{i}.example")).collect();
//! let excluded: Vec<String> = (0..4000).map(|i| format!("{i}.shop.example")).collect();
//! let (filter, report) = tamis::stream().exact().learn(&members, &excluded).finish()?;
//! assert!(members.iter().all(|key| filter.contains(key) == Ok(true)));
//! assert!(excluded.iter().all(|key| filter.contains(key) == Ok(false)));
//! assert!(report.bytes < report.plain_bytes);
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! # Why it is smaller
//!
//! An exact filter of n members against m excluded keys takes `n f(0, m / n)` bits: the entropy of n + m labels. Classes by score are sets of
//! their own, and their filters take the entropy of the labels *given the class*. What the score says of the label is saved, less the bytes of
//! the model. In a class with members alone, or excluded keys alone, nothing is left to store.
//!
//! # Two modes
//!
//! * **Strict**, the default: every class has a filter with the caller's goal. So the filter promises what a plain one promises: every member
//!   matches, no excluded key does, and unlisted keys match at the rate of the goal, whatever they are. The score decides the size alone.
//! * **Accepting** ([`LearnBuilder::accept`]): keys with a high score match without a filter, as in [Chained] section 5.5. Of the excluded keys
//!   about so many match. The threshold is chosen on keys that the model was not trained on. Unlisted keys match at that rate only if they
//!   look like the excluded ones: a shifted workload has another rate, and an adversary finds keys that match.
//!
//! No member is rejected in either mode, by any model: those that the model gets wrong are in the filters.
//!
//! # No floats
//!
//! Scores are integers, and so is training. The same keys and options give the same bytes on every platform, for any order of the keys and any
//! number of threads.
//!
//! [Chained]: https://doi.org/10.48550/arXiv.2308.13649

use std::sync::Arc;

use bytes::Bytes;

use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::filter::query::Filter;
use crate::format::{Budget, Form, Header, Places, Reader, Source, from_bytes, parts, scorer};
use crate::hash::{Hasher, KeyType};

#[cfg(feature = "build")]
mod build;
#[cfg(feature = "build")]
mod classes;
mod grams;
#[cfg(feature = "build")]
mod train;

#[cfg(feature = "build")]
pub use build::{Built, LearnBuilder, LearnReport};
pub use grams::Grams;

/// The most classes of a file.
const MAX_CLASSES: u64 = 255;
/// Keys that are scored before their filters are queried.
const BATCH: usize = 1024;

/// A model: the bytes of a key -> a score. Members should have higher scores than other keys.
///
/// [`Grams`] is one, and it can be trained. A scorer of one's own is stored in the file as the bytes that it makes, under its number:
///
/// ```
/// use tamis::learned::{Learned, Scorer};
/// struct Length;
/// impl Scorer for Length {
///     const NUMBER: u64 = 1 << 16;
///     fn score(&self, key: &[u8]) -> i32 {
///         key.len().min(100) as i32
///     }
///     fn to_bytes(&self) -> Vec<u8> {
///         vec![]
///     }
///     fn from_bytes(bytes: bytes::Bytes) -> Option<Length> {
///         bytes.is_empty().then_some(Length)
///     }
/// }
/// let (long, short) = (["a long name", "another name"], ["a", "b"]);
/// let (filter, _) = tamis::stream().exact().learn(&long, &short).keep_model().finish_with(Length)?;
/// let filter = Learned::<Length>::open(filter.as_bytes().to_vec())?;
/// assert!(filter.contains("a long name") && !filter.contains("b"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Scorer: Sized {
    /// The number of the scorer in files. Those below 2^16 are this library's.
    const NUMBER: u64;

    /// Returns the score. It must be a function of the key and the bytes of the scorer alone, or members are rejected.
    fn score(&self, key: &[u8]) -> i32;

    /// Returns what a file stores.
    fn to_bytes(&self) -> Vec<u8>;

    /// Makes the scorer of such bytes; none if they are not possible.
    fn from_bytes(bytes: Bytes) -> Option<Self>;
}

/// A filter whose model chooses between filters: see the [module](self).
///
/// It is queried with the bytes of keys: a digest has no score.
#[derive(Clone)]
pub struct Learned<S = Grams> {
    bytes: Bytes,
    header: Header,
    opened: Arc<Opened<S>>,
}

struct Opened<S> {
    scorer: S,
    model_len: u64,
    /// Queried before the score is known.
    front: Option<Filter>,
    /// The lowest scores of the classes after the first one, ascending.
    thresholds: Vec<i32>,
    /// One more than thresholds. In a class without a filter every key matches.
    classes: Vec<Option<Filter>>,
}

brief_debug!(Learned<S>, it => keys: it.header.keys, classes: it.opened.classes.len(), bytes: it.bytes.len());

impl<S> AsRef<[u8]> for Learned<S> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<S> PartialEq for Learned<S> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<S> Eq for Learned<S> {}

/// A class of scores: see [`Learned::classes`].
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Class {
    /// The lowest score; none in the first class.
    pub from: Option<i32>,
    /// Members in the class; 0 where every key matches, which are not counted.
    pub members: u64,
    /// Excluded keys that its filter rejects.
    pub excluded: u64,
    /// Bytes of its filter.
    pub bytes: u64,
    /// Share of unlisted keys of the class that match.
    pub fpr: f64,
}

impl<S: Scorer> Learned<S> {
    /// Opens bytes and checks header and directory only: see [`open`](Self::open) and [`verify`](Self::verify).
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are not those of a learned filter with this scorer that this release supports.
    pub fn open_unverified(bytes: impl Source) -> Result<Learned<S>, FormatError> {
        Learned::opened(bytes.into_bytes(), None)
    }

    fn opened(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Learned<S>, FormatError> {
        let budget = Budget::of(&bytes);
        let (header, mut from, mut places) = parts(&bytes, secret, &budget)?;
        if header.form != Form::Learned {
            return Err(FormatError::Form { found: header.form.name(), expected: Form::Learned.name() });
        }
        if header.key_type != KeyType::Bytes {
            return Err(FormatError::invalid(format!("header: key type is {}, expected bytes", header.key_type)));
        }
        let opened = Opened::decode(&mut from, scorer(&bytes, &budget)?, &mut places, secret)?;
        Ok(Learned { header, opened: Arc::new(opened), bytes })
    }

    from_bytes!(bytes);

    /// Returns `true` for every member. See the [module](self) for other keys.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let (key, opened) = (key.as_ref(), &*self.opened);
        // Their key type is bytes: no query fails.
        let matches = |filter: &Option<Filter>| filter.as_ref().is_none_or(|filter| filter.contains(key) == Ok(true));
        matches(&opened.front) && matches(&opened.classes[opened.class(key)])
    }

    /// Writes [`contains`](Self::contains) of many keys into `answers`: keys of one class are queried together.
    ///
    /// # Errors
    ///
    /// [`QueryError::Length`] if there are not as many answers as keys.
    pub fn contains_into<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), QueryError> {
        if keys.len() != answers.len() {
            return Err(QueryError::Length { keys: keys.len(), answers: answers.len() });
        }
        let (mut left, mut classes) = (vec![], Vec::with_capacity(BATCH));
        for (keys, answers) in keys.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let Opened { front, .. } = &*self.opened;
            answers.fill(true);
            if let Some(front) = front {
                left.clear();
                left.extend(keys.iter().map(AsRef::as_ref));
                front.contains_into(&left, answers)?;
            }
            classes.clear();
            classes.extend(keys.iter().map(|key| self.opened.class(key.as_ref())));
            for (class, filter) in self.opened.classes.iter().enumerate() {
                let Some(filter) = filter else { continue };
                let at = || (0..keys.len()).filter(|&at| classes[at] == class);
                let places: Vec<usize> = at().filter(|&at| answers[at]).collect();
                let keys: Vec<&[u8]> = places.iter().map(|&at| keys[at].as_ref()).collect();
                let found = filter.contains_many(&keys)?;
                places.iter().zip(found).for_each(|(&at, found)| answers[at] = found);
            }
        }
        Ok(())
    }

    /// Returns the score of a key.
    pub fn score(&self, key: impl AsRef<[u8]>) -> i32 {
        self.opened.scorer.score(key.as_ref())
    }
}

impl<S> Learned<S> {
    /// Returns the number of members.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of excluded keys that never match, as [`Filter::excluded_len`] counts them.
    pub fn excluded_len(&self) -> u64 {
        self.header.negatives
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.header.hasher
    }

    /// Returns the model.
    pub fn scorer(&self) -> &S {
        &self.opened.scorer
    }

    /// Returns the bytes of the model.
    pub fn model_len(&self) -> u64 {
        self.opened.model_len
    }

    /// Returns the filter in front of the model: see [`LearnBuilder::sandwich`].
    pub fn front(&self) -> Option<&Filter> {
        self.opened.front.as_ref()
    }

    /// Returns the classes, those with the lowest scores first.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> + '_ {
        self.opened.classes.iter().enumerate().map(|(class, filter)| Class {
            from: class.checked_sub(1).and_then(|before| self.opened.thresholds.get(before)).copied(),
            members: filter.as_ref().map_or(0, Filter::len),
            excluded: filter.as_ref().map_or(0, Filter::excluded_len),
            bytes: filter.as_ref().map_or(0, |filter| filter.as_bytes().len() as u64),
            fpr: filter.as_ref().map_or(1.0, Filter::fpr),
        })
    }

    /// Returns the highest share of unlisted keys that match, whatever their scores: that of the worst class.
    pub fn fpr(&self) -> f64 {
        let front = self.front().map_or(1.0, Filter::fpr);
        front * self.classes().map(|class| class.fpr).fold(0.0, f64::max)
    }
}

impl<S: Scorer> Opened<S> {
    /// The class of a key.
    #[inline]
    fn class(&self, key: &[u8]) -> usize {
        class_of(&self.thresholds, self.scorer.score(key))
    }

    /// Reads the section of the scorer and the contents.
    ///
    /// ```text
    ///   scorer:    its number, the length of its bytes            varints
    ///   contents:  number of thresholds                           varint, 0 to 254
    ///              the first threshold                            varint: 2 t if t is not negative, else -2 t - 1
    ///              the others: how far above the one before       varints, 1 to 2^32 - 1
    ///              length of the front filter, 0 for none         varint
    ///              lengths of the filters of the classes, 0 for none: every key of the class matches
    /// ```
    ///
    /// The payloads are the bytes of the scorer, then the filters, which are whole files.
    fn decode(
        from: &mut Reader<'_>,
        mut scorer: Reader<'_>,
        places: &mut Places<'_>,
        secret: Option<[u64; 2]>,
    ) -> Result<Opened<S>, FormatError> {
        let number = scorer.varint()?;
        if number != S::NUMBER {
            return Err(FormatError::unsupported("scorer", number));
        }
        let model_len = scorer.varint()?;
        scorer.end()?;
        let model = places.take(model_len)?;
        let scorer = S::from_bytes(model).ok_or_else(|| FormatError::invalid("scorer: not the bytes of a model"))?;
        let count = from.within("number of thresholds", 0..=MAX_CLASSES - 1)?;
        let mut thresholds = from.room(count)?;
        let mut last: Option<i64> = None;
        for _ in 0..count {
            let next = match (last, from.within("threshold", 0..=u64::from(u32::MAX))?) {
                (None, code) => (code >> 1) as i64 ^ -((code & 1) as i64),
                (Some(last), gap) => last + gap as i64,
            };
            let valid = |next: &i32| last.is_none_or(|last| i64::from(*next) > last);
            let wrong = || FormatError::invalid("directory: thresholds are not ascending numbers of 32 bits");
            thresholds.push(i32::try_from(next).ok().filter(valid).ok_or_else(wrong)?);
            last = Some(next);
        }
        let mut filter = |len: u64| match len {
            0 => Ok(None),
            len => {
                let filter = Filter::within(places.take(len)?, secret, places.budget)?;
                let fits = !filter.is_partitioned() && filter.key_type() == KeyType::Bytes;
                FormatError::check(fits, || "directory: a class has another filter than of bytes")?;
                Ok::<_, FormatError>(Some(filter))
            }
        };
        from.draw(size_of::<Self>() as u64)?;
        let front = filter(from.varint()?)?;
        let mut classes = from.room(count + 1)?;
        for _ in 0..=count {
            classes.push(filter(from.varint()?)?);
        }
        from.end()?;
        places.check()?;
        Ok(Opened { scorer, model_len, front, thresholds, classes })
    }
}

/// How many thresholds a score has reached.
#[inline]
fn class_of(thresholds: &[i32], score: i32) -> usize {
    // Few enough that counting all is faster than a search.
    thresholds.iter().map(|&threshold| usize::from(score >= threshold)).sum()
}
