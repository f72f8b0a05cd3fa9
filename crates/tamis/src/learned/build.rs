//! members and excluded keys -> a learned filter, or the plain one where the model does not pay.
//!
//! ```text
//!   examples, by digest ──train──▶ model ──score──▶ thresholds ──▶ a filter for each class ──▶ file
//!                          2^8, 2^9, .. weights, while model and filters together become smaller
//! ```

use std::path::Path;

use bytes::Bytes;

use super::classes::{self, Scored};
use super::grams::{BITS, Grams};
use super::train::{Example, train};
use super::{Class, Learned, Scorer, class_of};
use crate::debug::brief_debug;
use crate::error::{BuildError, Error, QueryError};
use crate::file::to_memory;
use crate::filter::build::Options;
use crate::filter::options::set;
use crate::filter::query::Filter;
use crate::format::{Form, Header, Writer, put_varint};
use crate::hash::{Digest, KeyType};
use crate::plan::{Goal, Kind};

/// The first model, and the last.
const MODEL_BITS: std::ops::RangeInclusive<u32> = 8..=16;
/// One of so many keys is held out: the threshold of [`LearnBuilder::accept`] is chosen on these.
const HELD_OUT: u64 = 8;
const MAX_CLASSES: usize = 16;

impl<'a> Options<'a> {
    /// Returns a builder of a learned filter of these members and excluded keys: see [`learned`](crate::learned).
    ///
    /// All keys are in memory, because a model reads them several times. The goal is [`exact`](Self::exact), [`fpr`](Self::fpr) or
    /// [`excluded_fpr`](Self::excluded_fpr), and holds for every class.
    pub fn learn<M: AsRef<[u8]>, N: AsRef<[u8]>>(self, members: &'a [M], excluded: &'a [N]) -> LearnBuilder<'a> {
        let members = members.iter().map(AsRef::as_ref).collect();
        let excluded = excluded.iter().map(AsRef::as_ref).collect();
        let (accept, sandwich, classes, share, keep) = (None, None, MAX_CLASSES, 1.0, false);
        LearnBuilder { options: self, members, excluded, accept, sandwich, classes, share, keep }
    }
}

/// Builder of a [`Learned`] filter: see [`Options::learn`].
#[must_use = "nothing is built before `finish`"]
pub struct LearnBuilder<'a> {
    options: Options<'a>,
    members: Vec<&'a [u8]>,
    excluded: Vec<&'a [u8]>,
    accept: Option<f64>,
    sandwich: Option<f64>,
    classes: usize,
    share: f64,
    keep: bool,
}

brief_debug!(LearnBuilder<'a>, it => members: it.members.len(), excluded: it.excluded.len(), options: it.options);

/// What was built: the learned filter, or a plain one that is as small and promises as much.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
pub enum Built<S = Grams> {
    /// The model pays.
    Learned(Learned<S>),
    /// It does not.
    Plain(Filter),
}

impl<S: Scorer> Built<S> {
    /// Returns whether a key matches.
    ///
    /// # Errors
    ///
    /// None; as [`Filter::contains`], which this may be.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, QueryError> {
        match self {
            Built::Learned(filter) => Ok(filter.contains(key)),
            Built::Plain(filter) => filter.contains(key.as_ref()),
        }
    }

    /// Returns the bytes, to be stored and opened again.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Built::Learned(filter) => filter.as_bytes(),
            Built::Plain(filter) => filter.as_bytes(),
        }
    }

    /// Writes the bytes to a file. An existing one is replaced when, and only when, the new one is complete.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        match self {
            Built::Learned(filter) => filter.save(path),
            Built::Plain(filter) => filter.save(path),
        }
    }
}

/// What a model saves: see [`LearnBuilder::finish`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LearnReport {
    /// Keys that the model was trained on.
    pub examples: u64,
    /// Bytes of the model.
    pub model_bytes: u64,
    /// Bytes of the learned filter, model and all.
    pub bytes: u64,
    /// Bytes of a plain filter with the same promise: [`Kind::Auto`], of all members and excluded keys.
    pub plain_bytes: u64,
    /// The classes of the learned filter, those with the lowest scores first.
    pub classes: Vec<Class>,
    /// Excluded keys that match the learned filter, of those given: 0 in strict mode with an exact goal or an fpr.
    pub excluded_matches: u64,
}

/// Where keys go: the thresholds, and whether those above the last one match without a filter.
struct Layout {
    thresholds: Vec<i32>,
    accepts: bool,
    /// About the bits of all filters.
    bits: f64,
}

impl<'a> LearnBuilder<'a> {
    set! {
        /// Lets keys with high scores match without a filter: about a share `rate` of the excluded keys does, above 0 and below 1. Without
        /// it no excluded key matches.
        ///
        /// The threshold is chosen on an eighth of the excluded keys, which the model is not trained on. A kind that knows members alone,
        /// such as [`Kind::Bloom`], is possible in this mode only: that is the learned Bloom filter.
        ///
        /// ```
        /// use tamis::Kind;
        /// let members: Vec<String> = (0..4000).map(|i| format!("login-{i}.example")).collect();
        /// let excluded: Vec<String> = (0..4000).map(|i| format!("{i}.shop.example")).collect();
        /// let options = tamis::stream().kind(Kind::Bloom).fpr(0.005);
        /// let (filter, report) = options.learn(&members, &excluded).accept(0.005).finish()?;
        /// assert!(members.iter().all(|key| filter.contains(key) == Ok(true)));
        /// assert!(report.excluded_matches < 80);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        accept(rate: f64) => accept = Some(rate);

        /// Puts a filter of all members before the model, which matches a share `fpr` of other keys, above 0 and below 1: a *sandwiched* learned
        /// filter. Fewer excluded keys reach the model.
        sandwich(fpr: f64) => sandwich = Some(fpr);

        /// Sets the most classes with a filter, 1 to 16; the default is 16. As many are made as pay.
        classes(most: usize) => classes = most;

        /// Sets the share of the keys that the model is trained on, from 0 to 1; the default is 1. All keys are in the filter.
        training_share(share: f64) => share = share;

        /// Keeps the model where a plain filter is smaller.
        keep_model() => keep = true;
    }

    /// Trains a model, and builds the learned filter and the plain one. Returns the smaller, and a report of both.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if there are no members or no excluded keys to learn from, or as [`FilterBuilder::finish`](crate::FilterBuilder::finish).
    pub fn finish(self) -> Result<(Built, LearnReport), Error> {
        self.check()?;
        let examples = self.examples();
        let training = self.training(&examples);
        let mut best: Option<(f64, Grams)> = None;
        for bits in MODEL_BITS.filter(|bits| BITS.contains(bits)) {
            let weights = train(&training, bits, &|| self.options.common.check_cancel())?;
            // As many as one of the sizes that it takes.
            let Some(grams) = Grams::from_bytes(weights.into()) else { break };
            let total = self.layout(&examples, &grams).bits + 8.0 * (1u64 << bits) as f64;
            if best.as_ref().is_some_and(|(least, _)| *least <= total) {
                break;
            }
            best = Some((total, grams));
        }
        match best {
            Some((_, grams)) => self.finish_examples(&examples, training.len() as u64, grams),
            None => Err(BuildError::NothingToLearn.into()),
        }
    }

    /// The same with a scorer of the caller's, which is not trained here.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn finish_with<S: Scorer>(self, scorer: S) -> Result<(Built<S>, LearnReport), Error> {
        self.check()?;
        let examples = self.examples();
        self.finish_examples(&examples, 0, scorer)
    }

    fn check(&self) -> Result<(), BuildError> {
        let shares = [("accept", self.accept), ("sandwich", self.sandwich)];
        let out =
            shares.iter().find_map(|(name, rate)| Some((*name, rate.filter(|rate| !(*rate > 0.0 && *rate < 1.0))?)));
        let classes = (!(1..=MAX_CLASSES).contains(&self.classes)).then_some(("classes", self.classes as f64));
        let share = (!(0.0..=1.0).contains(&self.share)).then_some(("training_share", self.share));
        if let Some((option, given)) = out.or(share) {
            return Err(BuildError::Range { option, given, least: 0.0, most: 1.0 });
        }
        if let Some((option, given)) = classes {
            return Err(BuildError::Range { option, given, least: 1.0, most: MAX_CLASSES as f64 });
        }
        if matches!(self.options.aim().0, Goal::BitsPerKey(_)) {
            return Err(BuildError::NoEffect { option: "learn", needs: "exact, fpr or excluded_fpr as the goal" });
        }
        if self.members.is_empty() || self.excluded.is_empty() { Err(BuildError::NothingToLearn) } else { Ok(()) }
    }

    /// All keys in the order of their digests, distinct.
    fn examples(&self) -> Vec<(Digest, Example<'a>)> {
        let hasher = &self.options.common.hasher;
        let labelled =
            |keys: &[&'a [u8]], member| keys.iter().map(|&key| (hasher.bytes(key), (key, member))).collect::<Vec<_>>();
        let mut all = labelled(&self.members, true);
        all.append(&mut labelled(&self.excluded, false));
        all.sort_unstable_by_key(|&(digest, (_, member))| (digest, member));
        all.dedup_by_key(|(digest, (_, member))| (*digest, *member));
        all
    }

    /// Whether the threshold of [`accept`](Self::accept) is chosen on this key.
    fn holds_out(&self, digest: Digest) -> bool {
        self.accept.is_some() && digest.lo.is_multiple_of(HELD_OUT)
    }

    /// What the model is trained on.
    fn training(&self, examples: &[(Digest, Example<'a>)]) -> Vec<Example<'a>> {
        // By other bits than those that are sorted or held out.
        let share = (self.share * (1u64 << 32) as f64) as u64;
        let trained = |digest: &Digest| digest.lo >> 32 < share && !self.holds_out(*digest);
        examples.iter().filter(|(digest, _)| trained(digest)).map(|&(_, example)| example).collect()
    }

    /// Thresholds for these scores.
    fn layout(&self, examples: &[(Digest, Example<'a>)], scorer: &impl Scorer) -> Layout {
        let (goal, kind) = self.options.aim();
        let mut scored: Vec<Scored> = vec![];
        let mut held_out = vec![];
        for &(digest, (key, member)) in examples {
            let score = scorer.score(key);
            if !member && self.holds_out(digest) {
                held_out.push(score);
            }
            // A filter that knows members alone is no larger for other keys.
            if member || kind.excludes() {
                scored.push((score, member));
            }
        }
        held_out.sort_unstable_by_key(|&score| std::cmp::Reverse(score));
        let accept = self.accept.and_then(|rate| classes::accept(&held_out, rate));
        scored.retain(|(score, _)| accept.is_none_or(|accept| *score < accept));
        scored.sort_unstable();
        let fpr = match goal {
            Goal::Fpr(p) => p,
            Goal::Exact | Goal::ExcludedFpr(_) | Goal::BitsPerKey(_) => 1.0,
        };
        let (mut thresholds, bits) = classes::thresholds(&scored, fpr, self.classes);
        thresholds.extend(accept);
        Layout { thresholds, accepts: accept.is_some(), bits }
    }

    /// A plain filter that promises as much.
    fn plain(&self) -> Result<Filter, Error> {
        let (goal, _) = self.options.aim();
        let options = match (self.accept, goal) {
            (None, _) => return self.filter(&self.options.clone().kind(Kind::Auto), &self.members, &self.excluded),
            (Some(rate), Goal::Fpr(p)) => self.options.with_goal(Goal::Fpr((p + rate).min(0.999))),
            (Some(rate), Goal::ExcludedFpr(p)) => self.options.with_goal(Goal::ExcludedFpr((p + rate).min(0.999))),
            (Some(rate), Goal::Exact | Goal::BitsPerKey(_)) => self.options.with_goal(Goal::ExcludedFpr(rate)),
        };
        let excluded = if matches!(goal, Goal::Fpr(_)) { &[][..] } else { &self.excluded };
        self.filter(&options, &self.members, excluded)
    }

    /// A filter of some of the keys.
    fn filter(&self, options: &Options<'a>, members: &[&'a [u8]], excluded: &[&'a [u8]]) -> Result<Filter, Error> {
        let builder = options.clone().build(members.to_vec());
        if excluded.is_empty() { builder.finish() } else { builder.exclude(excluded.to_vec()).finish() }
    }

    fn finish_examples<S: Scorer>(
        self,
        examples: &[(Digest, Example<'a>)],
        trained: u64,
        scorer: S,
    ) -> Result<(Built<S>, LearnReport), Error> {
        // First: it finds keys that are members and excluded.
        let plain = self.plain()?;
        let learned = self.build(examples, scorer)?;
        let bytes = [learned.as_bytes(), plain.as_bytes()].map(|bytes| bytes.len() as u64);
        let mut answers = vec![false; self.excluded.len()];
        learned.contains_into(&self.excluded, &mut answers).map_err(Error::from)?;
        let report = LearnReport {
            examples: trained,
            model_bytes: learned.model_len(),
            bytes: bytes[0],
            plain_bytes: bytes[1],
            classes: learned.classes().collect(),
            excluded_matches: answers.iter().filter(|&&matched| matched).count() as u64,
        };
        let pays = bytes[0] < bytes[1] || self.keep;
        Ok((if pays { Built::Learned(learned) } else { Built::Plain(plain) }, report))
    }

    /// Builds the filters of all classes, and the file.
    fn build<S: Scorer>(&self, examples: &[(Digest, Example<'a>)], scorer: S) -> Result<Learned<S>, Error> {
        let Layout { thresholds, accepts, .. } = self.layout(examples, &scorer);
        let (goal, kind) = self.options.aim();
        let options = self.options.clone().metadata([]);
        let all =
            |member: bool| examples.iter().filter(move |example| example.1.1 == member).map(|example| example.1.0);
        let front = match self.sandwich {
            Some(fpr) => {
                let kind = if kind.excludes() { Kind::Ribbon } else { kind };
                let options = self.options.with_goal(Goal::Fpr(fpr)).kind(kind).metadata([]);
                Some(self.filter(&options, &all(true).collect::<Vec<_>>(), &[])?)
            }
            None => None,
        };
        let count = thresholds.len() + 1;
        let mut sides = vec![[vec![], vec![]]; count];
        let uses_excluded = kind.excludes() || self.accept.is_none();
        for &(_, (key, member)) in examples {
            let passes = || front.as_ref().is_none_or(|front| front.contains(key) == Ok(true));
            if member || uses_excluded && passes() {
                sides[class_of(&thresholds, scorer.score(key))][usize::from(!member)].push(key);
            }
        }
        let mut classes = Vec::with_capacity(count);
        let mut accepted = 0;
        for (class, [members, excluded]) in sides.iter().enumerate() {
            let nothing_to_reject = !matches!(goal, Goal::Fpr(_)) && excluded.is_empty() && uses_excluded;
            classes.push(if accepts && class + 1 == count || nothing_to_reject && !members.is_empty() {
                accepted += members.len() as u64;
                None
            } else if members.is_empty() {
                Some(self.filter(&self.options.with_goal(Goal::Fpr(0.5)).metadata([]), &[], &[])?)
            } else {
                Some(self.filter(&options, members, excluded)?)
            });
        }
        let bytes = self.encode(&scorer, &thresholds, front.as_ref(), &classes, accepted)?;
        Ok(Learned::opened(bytes, self.options.common.needed_secret())?)
    }

    fn encode<S: Scorer>(
        &self,
        scorer: &S,
        thresholds: &[i32],
        front: Option<&Filter>,
        classes: &[Option<Filter>],
        accepted: u64,
    ) -> Result<Bytes, Error> {
        let common = &self.options.common;
        let inside = || classes.iter().flatten();
        let header = Header {
            keys: accepted + inside().map(Filter::len).sum::<u64>(),
            negatives: inside().map(Filter::excluded_len).sum(),
            may_change: inside().any(Filter::may_change),
            ..common.header(Form::Learned, common.hasher.clone(), KeyType::Bytes)?
        };
        let model = scorer.to_bytes();
        let (mut section, mut contents) = (vec![], vec![]);
        put_varint(&mut section, S::NUMBER);
        put_varint(&mut section, model.len() as u64);
        put_varint(&mut contents, thresholds.len() as u64);
        let mut last = None;
        for &threshold in thresholds {
            let next = i64::from(threshold);
            put_varint(&mut contents, last.map_or((next << 1 ^ next >> 63) as u64, |last| (next - last) as u64));
            last = Some(next);
        }
        let files = || {
            std::iter::once(front)
                .chain(classes.iter().map(Option::as_ref))
                .map(|filter| filter.map_or(&[][..], Filter::as_bytes))
        };
        files().for_each(|file| put_varint(&mut contents, file.len() as u64));
        let (bytes, ()) = to_memory(|out| {
            let mut writer = Writer::new(out, &header, vec![])?.with_metadata(&common.metadata).with_scorer(section);
            writer.payload(&model)?;
            files().try_for_each(|file| writer.payload(file))?;
            writer.close(contents)?;
            Ok(())
        })?;
        Ok(bytes)
    }
}
