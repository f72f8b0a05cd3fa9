//! the library -> filters that know their negatives, as something to measure.
//!
//! Rows start from keys: hashing, sorting, dropping duplicates and looking for keys on both sides are in their time.
//! Rows "from digests" start where a structure starts, sorted distinct digests in memory.

use std::error::Error;
use std::sync::Arc;

use tamis::{Base, Digest, Effort, Filter, Hasher, KeyType, Kind, Layout};

use super::{built, digests};
use crate::listed::{Listed, Made};

/// A build on both lists.
type Both<'a> = tamis::FilterBuilder<'a>;
/// What a row asks of it.
type Shape = for<'a> fn(Both<'a>) -> Both<'a>;

/// The steered ribbon; a row for every way to build it.
const STEERED: [(&str, Shape); 2] = [
    ("tamis steered", |build| build.kind(Kind::Steered).layout(Layout::Compact)),
    ("tamis steered smallest", |build| build.kind(Kind::Steered).effort(Effort::Smallest)),
];

/// The same with all columns side by side; there is an exact bit among them.
const LOCAL: (&str, Shape) = ("tamis steered local", |build| build.kind(Kind::Steered).layout(Layout::Local));

/// With more keys and negatives than this a cascade takes most of the time, and hashing is little beside the rest.
pub(crate) const SLOW: usize = 20_000_000;

/// Exact membership: steered, chained on every base, cascades.
pub(crate) fn exact() -> Vec<Listed> {
    let rows = [
        ("tamis chained ribbon", Kind::Chained(Base::Ribbon)),
        ("tamis chained fuse", Kind::Chained(Base::Fuse)),
        ("tamis chained fuse4", Kind::Chained(Base::Fuse4)),
        ("tamis cascade ribbon", Kind::Cascade(Base::Ribbon)),
        ("tamis cascade Bloom", Kind::Cascade(Base::Bloom)),
    ];
    let steered =
        STEERED.into_iter().chain([LOCAL]).map(|(name, shape)| shaped(name, move |build| shape(build).exact()));
    let keys = rows.into_iter().map(|(name, kind)| {
        let listed = from_keys(name, kind, None);
        if matches!(kind, Kind::Cascade(_)) { listed.at_most(SLOW) } else { listed }
    });
    let digests = [("tamis steered", Kind::Steered), rows[0], rows[1]];
    let digests = digests.into_iter().map(|(name, kind)| from_digests(name, kind).at_most(SLOW));
    steered.chain(keys).chain(digests).map(Listed::twice).collect()
}

/// A share of the negatives may pass: steered, beside a filter of that rate that is told nothing.
pub(crate) fn share(share: f64) -> Vec<Listed> {
    let allow =
        |(name, shape): (&str, Shape)| shaped(name, move |build| shape(build).excluded_fpr(share)).allowing(share);
    let plain = from_keys("tamis ribbon, told nothing", Kind::Ribbon, Some(share));
    STEERED.into_iter().map(allow).chain([plain]).map(Listed::twice).collect()
}

/// Whether a kind can be told what to refuse.
pub fn knows_negatives(kind: Kind) -> bool {
    use Kind::{Auto, Cascade, Chained, Integrated, Naive, Steered};
    matches!(kind, Auto | Steered | Chained(_) | Cascade(_) | Integrated(..) | Naive(_))
}

/// From keys and negatives, as `shape` wants it.
fn shaped(name: &str, shape: impl for<'a> Fn(Both<'a>) -> Both<'a> + 'static) -> Listed {
    Listed::threaded(name, move |keys, negatives, threads| {
        Ok(made(shape(tamis::build(keys).exclude(negatives)).threads(threads).finish()?))
    })
}

/// From keys and negatives; without a rate, exact.
pub fn from_keys(name: &str, kind: Kind, rate: Option<f64>) -> Listed {
    if !knows_negatives(kind) {
        let build = move |keys: &[u64], threads| {
            let build = tamis::build(keys).kind(kind).threads(threads);
            if let Some(rate) = rate { build.fpr(rate) } else { build }.finish()
        };
        return Listed::threaded(name, move |keys, _, threads| Ok(made(build(keys, threads)?))).plain();
    }
    shaped(name, move |build| {
        let build = build.kind(kind);
        if let Some(rate) = rate { build.fpr(rate) } else { build.exact() }
    })
}

fn from_digests(name: &str, kind: Kind) -> Listed {
    let prepare = |keys: &[u64], negatives: &[u64]| (digests(keys), digests(negatives));
    let build =
        move |(keys, negatives): &(Arc<Vec<Digest>>, Arc<Vec<Digest>>), threads| -> Result<Made, Box<dyn Error>> {
            let build = tamis::build_digests(Arc::clone(keys), Hasher::seeded(0), KeyType::Integer)
                .exclude_digests(Arc::clone(negatives));
            Ok(made(build.exact().kind(kind).threads(threads).finish()?))
        };
    Listed::prepared(format!("{name}, from digests"), prepare, build)
}

/// How many of these keys match.
pub fn matches<K: tamis::Key>(filter: &Filter, keys: &[K]) -> Result<usize, tamis::Error> {
    Ok(filter.contains_many(keys)?.into_iter().filter(|&yes| yes).count())
}

/// A filter of the library as something to measure.
pub fn made(filter: Filter) -> Made {
    let bits = filter.as_bytes().len() * 8;
    Made::new(built(filter), bits)
}
