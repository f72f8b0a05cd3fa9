//! the library -> filters that know their negatives, as something to measure.
//!
//! Rows start from keys: hashing, sorting, dropping duplicates and looking for keys on both sides are in their time.
//! Rows "from digests" start where a structure starts, sorted distinct digests in memory.

use std::error::Error;
use std::sync::Arc;

use tamis::{Base, Digest, Domain, Filter, Hasher, Kind, Parts};

use super::built;
use crate::listed::{Listed, Made};

/// Exact membership: chained on every base, cascades, and one exact bit for everything.
pub(crate) fn exact() -> Vec<Listed> {
    let rows = [
        ("tamis chained ribbon", Kind::Chained(Base::Ribbon)),
        ("tamis chained fuse", Kind::Chained(Base::Fuse)),
        ("tamis chained fuse4", Kind::Chained(Base::Fuse4)),
        ("tamis cascade ribbon", Kind::Cascade(Base::Ribbon)),
        ("tamis cascade Bloom", Kind::Cascade(Base::Bloom)),
    ];
    let keys = rows.into_iter().map(|(name, kind)| from_keys(name, kind, None));
    let digests = rows.into_iter().take(2).map(|(name, kind)| from_digests(name, kind));
    keys.chain(digests).collect()
}

/// The constructions of \[FPFS\] and the filters without a free set they are compared with.
pub(crate) const FREE_SET: [(&str, Kind); 8] = [
    ("tamis fuse, no free set", Kind::Fuse),
    ("tamis fuse TF", Kind::Chained(Base::Fuse)),
    ("tamis fuse IF, c = 1", Kind::Integrated(Base::Fuse, Parts::One)),
    ("tamis fuse IF, c = 2", Kind::Integrated(Base::Fuse, Parts::Two)),
    ("tamis ribbon, no free set", Kind::Ribbon),
    ("tamis ribbon TF", Kind::Chained(Base::Ribbon)),
    ("tamis ribbon IF, c = 1", Kind::Integrated(Base::Ribbon, Parts::One)),
    ("tamis ribbon IF, c = 2", Kind::Integrated(Base::Ribbon, Parts::Two)),
];

/// [`FREE_SET`] with `r` bits.
pub(crate) fn free_set(r: u32) -> Vec<Listed> {
    FREE_SET.iter().map(|&(name, kind)| from_keys(name, kind, Some(0.5f64.powi(r as i32)))).collect()
}

/// What \[Chained\] compares: one exact bit for everything, two stages, a cascade, and an approximate filter at a rate at
/// which one listed negative passes on average.
pub(crate) fn chained() -> Vec<Listed> {
    vec![
        from_keys("tamis fuse, exact", Kind::Naive(Base::Fuse), None),
        from_keys("tamis fuse, chained", Kind::Chained(Base::Fuse), None),
        from_keys("tamis ribbon, chained", Kind::Chained(Base::Ribbon), None),
        from_keys("tamis Bloom, cascade", Kind::Cascade(Base::Bloom), None),
        Listed::new("tamis fuse, approximate", |keys, negatives| {
            let rate = 1.0 / negatives.len().max(2) as f64;
            Ok(made(tamis::build(keys).kind(Kind::Fuse).fpr(rate).threads(1).finish()?))
        })
        .plain(),
    ]
}

/// Whether a kind can be told what to refuse.
pub(crate) fn knows_negatives(kind: Kind) -> bool {
    matches!(kind, Kind::Auto | Kind::Chained(_) | Kind::Cascade(_) | Kind::Integrated(..) | Kind::Naive(_))
}

/// From keys and negatives; without a rate, exact.
fn from_keys(name: &str, kind: Kind, rate: Option<f64>) -> Listed {
    let knows = knows_negatives(kind);
    let listed = Listed::new(name, move |keys, negatives| {
        let build = tamis::build(keys).kind(kind).threads(1);
        let build = match rate {
            Some(rate) => build.fpr(rate),
            None => build.exact(),
        };
        Ok(made(if knows { build.exclude(negatives).finish()? } else { build.finish()? }))
    });
    if knows { listed } else { listed.plain() }
}

fn from_digests(name: &str, kind: Kind) -> Listed {
    let hasher = Hasher::seeded(0);
    let digests = move |keys: &[u64]| -> Arc<[Digest]> {
        let mut digests: Vec<Digest> = keys.iter().map(|&key| hasher.integer(key)).collect();
        digests.sort_unstable();
        digests.into()
    };
    let prepare = move |keys: &[u64], negatives: &[u64]| (digests(keys), digests(negatives));
    let build = move |(keys, negatives): (Arc<[Digest]>, Arc<[Digest]>)| -> Result<Made, Box<dyn Error>> {
        let build = tamis::build_digests(keys, hasher, Domain::U64).exclude_digests(negatives);
        Ok(made(build.exact().kind(kind).threads(1).finish()?))
    };
    Listed::prepared(format!("{name}, from digests"), prepare, build)
}

fn made(filter: Filter) -> Made {
    let bits = filter.as_bytes().len() * 8;
    Made::new(built(filter), bits)
}
