//! a case of revocation -> filters of the library for it.

use std::error::Error;

use tamis::Filter;

use crate::certificates::case::Case;
use crate::certificates::{Entrant, Made};

/// One list of all certificates.
pub(crate) fn entrants() -> Vec<Entrant> {
    vec![Entrant { name: "tamis, one list", build: in_one }]
}

fn in_one(case: &Case) -> Result<Made, Box<dyn Error>> {
    let build = tamis::build(case.revoked().map(|c| c.key)).exclude(case.valid().map(|c| c.key));
    let filter = build.exact().threads(1).finish()?;
    let bytes = filter.as_bytes().len();
    // The domain is right; an error would show as a revoked certificate that is refused.
    Ok(Made::new(filter, bytes, |f: &Filter, certificate| f.contains(certificate.key).unwrap_or(false)))
}
