//! the library -> the rows of this repository in the figures: filters here, maps and many sets in files of their own.

use tamis::{Base, IntegratedVariant, Kind};
use tamis_bench::listed::Listed;
use tamis_bench::ours::listed::{from_keys, made};

pub(crate) mod maps;
pub(crate) mod sets;

/// Bits per key of a steered ribbon on the first integers, `n` of them, against the next ones.
pub(crate) fn steered_bits(n: usize, negatives: usize, share: f64) -> Result<f64, tamis::Error> {
    bits_of(Kind::Steered, n, negatives, share)
}

/// The same for another kind.
pub(crate) fn bits_of(kind: Kind, n: usize, negatives: usize, share: f64) -> Result<f64, tamis::Error> {
    let (keys, all) = (n as u64, (n + negatives) as u64);
    let build = tamis::build(0..keys).exclude(keys..all).kind(kind);
    let filter = if share > 0.0 { build.excluded_fpr(share) } else { build.exact() }.finish()?;
    Ok(filter.as_bytes().len() as f64 * 8.0 / n as f64)
}

/// The constructions of \[FPFS\] and the filters without a free set they are compared with.
pub(crate) const FREE_SET: [(&str, Kind); 7] = [
    ("tamis fuse, no free set", Kind::Fuse),
    ("tamis fuse TF", Kind::Chained(Base::Fuse)),
    ("tamis fuse IF, c = 1", Kind::Integrated(Base::Fuse, IntegratedVariant::One)),
    ("tamis fuse IF, c = 2", Kind::Integrated(Base::Fuse, IntegratedVariant::Two)),
    ("tamis ribbon, no free set", Kind::Ribbon),
    ("tamis ribbon TF", Kind::Chained(Base::Ribbon)),
    ("tamis steered", Kind::Steered),
];

/// [`FREE_SET`] with `r` bits.
pub(crate) fn free_set(r: u32) -> Vec<Listed> {
    FREE_SET.iter().map(|&(name, kind)| from_keys(name, kind, Some(0.5f64.powi(r as i32)))).collect()
}

/// What \[Chained\] compares: one exact bit for everything, two stages, plain or steered, a cascade, and an approximate filter at a rate at
/// which one listed negative passes on average.
pub(crate) fn chained() -> Vec<Listed> {
    vec![
        from_keys("tamis fuse, exact", Kind::Naive(Base::Fuse), None),
        from_keys("tamis fuse, chained", Kind::Chained(Base::Fuse), None),
        from_keys("tamis ribbon, chained", Kind::Chained(Base::Ribbon), None),
        from_keys("tamis steered", Kind::Steered, None),
        from_keys("tamis Bloom, cascade", Kind::Cascade(Base::Bloom), None),
        Listed::new("tamis fuse, approximate", |keys, negatives| {
            let rate = 1.0 / negatives.len().max(2) as f64;
            Ok(made(tamis::build(keys).kind(Kind::Fuse).fpr(rate).threads(1).finish()?))
        })
        .plain(),
    ]
}
