//! members, a log of queries, a number of bytes -> a filter of each family that is no larger.

use std::time::Duration;

use tamis::adaptive::{Adapt, AdaptiveFilter, AdaptiveStacked, Broom, Memory};
use tamis::learned::{Built, Grams, LearnBuilder, Learned};
use tamis::{Base, Filter, Kind, Options};
use tamis_bench::measure::cpu;
use tamis_bench::stream::scramble;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Ribbon,
    Learned,
    Sandwiched,
    /// Classes by score; those with the highest score match without a filter.
    Accepting,
    /// Classes by score, each with a filter.
    Strict,
    StackedBloom,
    Stacked,
    Planner,
    AdaptiveStacked,
    Broom,
}

impl Family {
    const NAMES: [(Family, &str); 10] = [
        (Family::Ribbon, "ribbon"),
        (Family::Learned, "learned Bloom"),
        (Family::Sandwiched, "sandwiched learned Bloom"),
        (Family::Accepting, "partitioned learned, accepting"),
        (Family::Strict, "partitioned learned, strict"),
        (Family::StackedBloom, "stacked Bloom"),
        (Family::Stacked, "stacked ribbon"),
        (Family::Planner, "planner"),
        (Family::AdaptiveStacked, "adaptive stacked"),
        (Family::Broom, "broom"),
    ];

    pub(crate) fn all() -> impl Iterator<Item = Family> {
        Family::NAMES.into_iter().map(|(family, _)| family)
    }

    pub(crate) fn name(self) -> &'static str {
        Family::NAMES[self as usize].1
    }

    /// Whether it is given neither a model nor false positives.
    pub(crate) fn is_static(self) -> bool {
        matches!(self, Family::Ribbon | Family::StackedBloom | Family::Stacked)
    }

    /// Whether it is another filter on every workload, though the log is the same.
    pub(crate) fn depends_on_queries(self) -> bool {
        matches!(self, Family::Planner | Family::AdaptiveStacked | Family::Broom)
    }
}

/// What filters are built from.
pub(crate) struct Known<'a> {
    pub(crate) members: &'a [&'a [u8]],
    /// Negatives of the log, and how often each came.
    pub(crate) log: &'a [(&'a [u8], f64)],
    pub(crate) bytes: u64,
    pub(crate) seed: u64,
}

/// A filter, and what it took.
pub(crate) struct Made {
    pub(crate) filter: Answers,
    /// Of the model in it.
    pub(crate) model: u64,
    /// Processor time of one build of it, training and all; not of the search for the rate that fits.
    pub(crate) build: Duration,
}

#[allow(clippy::large_enum_variant, reason = "there are a few of them")]
pub(crate) enum Answers {
    Static(Filter),
    Learned(Learned),
    Broom(Box<(Broom, Memory)>),
    Stacked(Box<AdaptiveStacked>),
}

impl Answers {
    /// Bytes: of the file, or in memory where there is none.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Answers::Static(filter) => filter.as_bytes().len() as u64,
            Answers::Learned(filter) => filter.as_bytes().len() as u64,
            Answers::Broom(broom) => broom.0.memory_bytes() as u64,
            Answers::Stacked(filter) => filter.memory_bytes() as u64,
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match self {
            Answers::Static(filter) => filter.contains(key) == Ok(true),
            Answers::Learned(filter) => filter.contains(key),
            Answers::Broom(broom) => broom.0.contains(key) == Ok(true),
            Answers::Stacked(filter) => filter.contains(key) == Ok(true),
        }
    }

    /// Whether it matches a key that is no member. Adaptive filters are told that it is none.
    pub(crate) fn query(&mut self, key: &[u8], members: &mut Vec<&[u8]>) -> Result<bool, String> {
        match self {
            Answers::Static(_) | Answers::Learned(_) => Ok(self.contains(key)),
            Answers::Broom(broom) => {
                let (filter, map) = &mut **broom;
                let matches = filter.contains(key).map_err(|e| e.to_string())?;
                if matches {
                    filter.adapt(key, map).map_err(|e| e.to_string())?;
                }
                Ok(matches)
            }
            Answers::Stacked(filter) => {
                let matches = filter.query(key).map_err(|e| e.to_string())?;
                if matches {
                    filter.adapt(key, members).map_err(|e| e.to_string())?;
                }
                Ok(matches)
            }
        }
    }
}

/// Rates of learned filters and of brooms: 2^(-step / 4).
const STEPS: i32 = 4;
const LAST: i32 = 20 * STEPS;

fn rate(step: i32) -> f64 {
    (-f64::from(step) / f64::from(STEPS)).exp2()
}

/// The largest step whose result has no more bytes than there are.
fn fit<T>(most: u64, build: impl Fn(i32) -> Result<T, String>, bytes: impl Fn(&T) -> u64) -> Result<Option<T>, String> {
    let (mut low, mut high, mut best) = (1, LAST + 1, None);
    while low < high {
        let middle = (low + high) / 2;
        let made = build(middle)?;
        if bytes(&made) <= most {
            (low, best) = (middle + 1, Some(made));
        } else {
            high = middle;
        }
    }
    Ok(best)
}

type Set = fn(LearnBuilder<'_>, f64) -> LearnBuilder<'_>;

impl<'a> Known<'a> {
    fn options(&self) -> Options<'a> {
        Options::default().threads(1).seed(self.seed)
    }

    fn bits(&self) -> f64 {
        8.0 * self.bytes as f64 / self.members.len() as f64
    }

    /// Builds a filter of the family; none where the bytes are too few for one.
    ///
    /// `unlisted` is told to the planner alone, `queries` to the adaptive stack.
    pub(crate) fn build(&self, family: Family, unlisted: Option<f64>, queries: usize) -> Result<Option<Made>, String> {
        let static_filter = |kind: Kind, unlisted: Option<f64>| {
            let options = self.options().kind(kind).bits_per_key(self.bits());
            let build = options.build(self.members.iter().copied());
            let build = if kind == Kind::Ribbon { build } else { build.workload(self.log.iter().copied()) };
            let build = if let Some(share) = unlisted { build.unlisted_share(share) } else { build };
            let (filter, build) = cpu(|| build.finish());
            let filter = Answers::Static(filter.map_err(|e| e.to_string())?);
            Ok(Some(Made { filter, model: 0, build }))
        };
        let bloom = || self.options().kind(Kind::ClassicBloom);
        match family {
            Family::Ribbon => static_filter(Kind::Ribbon, None),
            Family::StackedBloom => static_filter(Kind::Stacked(Base::Bloom), None),
            Family::Stacked => static_filter(Kind::Stacked(Base::Ribbon), None),
            Family::Planner => static_filter(Kind::Auto, unlisted),
            Family::Learned => self.learned(&bloom, &[|it, p| it.accept(p / 2.0).classes(1)]),
            Family::Sandwiched => self.learned(
                &bloom,
                &[
                    |it, p| it.accept(p / 2.0).classes(1).sandwich(0.5),
                    |it, p| it.accept(p / 2.0).classes(1).sandwich(0.25),
                ],
            ),
            Family::Accepting => self.learned(&|| self.options(), &[|it, p| it.accept(p / 2.0)]),
            Family::Strict => self.learned(&|| self.options(), &[|it, _| it]),
            Family::AdaptiveStacked => {
                let builder = AdaptiveStacked::with_bits_per_key(self.bits()).secret(self.secret());
                let builder = builder.sample(queries as u64 / 10).lifetime(queries as u64);
                let (filter, build) = cpu(|| builder.build(&mut self.members.to_vec()));
                let filter = Answers::Stacked(Box::new(filter.map_err(|e| e.to_string())?));
                Ok(Some(Made { filter, model: 0, build }))
            }
            Family::Broom => self.broom(),
        }
    }

    fn secret(&self) -> [u64; 2] {
        [scramble(self.seed), scramble(!self.seed)]
    }

    fn broom(&self) -> Result<Option<Made>, String> {
        let builder = |step| {
            let builder = Broom::with_capacity(self.members.len() as u64).fpr(rate(step)).secret(self.secret());
            builder.build::<[u8]>().map_err(|e| e.to_string())
        };
        let Some(mut filter) = fit(self.bytes, builder, |filter| filter.memory_bytes() as u64)? else {
            return Ok(None);
        };
        let mut map = Memory::new();
        let insert = || self.members.iter().try_for_each(|&key| filter.insert(key, &mut map).map(|_| ()));
        let (inserted, build) = cpu(insert);
        inserted.map_err(|e| e.to_string())?;
        Ok(Some(Made { filter: Answers::Broom(Box::new((filter, map))), model: 0, build }))
    }

    /// The best of some variants by what matches of the log, each with the lowest rate that fits. The model is trained once for each variant, at
    /// the rate of a plain filter of half the bytes.
    fn learned(&self, options: &dyn Fn() -> Options<'a>, variants: &[Set]) -> Result<Option<Made>, String> {
        let excluded: Vec<&[u8]> = self.log.iter().map(|(name, _)| *name).collect();
        let mut best: Option<(f64, Made)> = None;
        for set in variants {
            let builder = |rate: f64| set(options().fpr(rate / 2.0).learn(self.members, &excluded), rate).keep_model();
            let (trained, build) = cpu(|| builder((-self.bits() / 2.0).exp2()).finish());
            let (Built::Learned(trained), _) = trained.map_err(|e| e.to_string())? else {
                return Err("a model was to be kept".into());
            };
            let make = |step| match builder(rate(step)).finish_with::<Grams>(trained.scorer().clone()) {
                Ok((Built::Learned(filter), _)) => Ok(filter),
                Ok((Built::Plain(_), _)) => Err("a model was to be kept".into()),
                Err(e) => Err(e.to_string()),
            };
            let Some(filter) = fit(self.bytes, make, |filter| filter.as_bytes().len() as u64)? else { continue };
            let matched: f64 = self.log.iter().filter(|(name, _)| filter.contains(name)).map(|(_, count)| count).sum();
            if best.as_ref().is_none_or(|(least, _)| matched < *least) {
                best = Some((matched, Made { model: filter.model_len(), filter: Answers::Learned(filter), build }));
            }
        }
        Ok(best.map(|(_, made)| made))
    }
}
