//! a case of revocation -> filters of the library for it.

use std::error::Error;

use tamis::{Effort, Filter};

use crate::certificates::case::{Case, Certificate};
use crate::certificates::{Entrant, Made};

/// One list of all certificates, and a partition for every issuer.
pub(crate) fn entrants() -> Vec<Entrant> {
    vec![
        Entrant { name: "tamis, one list", build: in_one },
        Entrant { name: "tamis, one partition per issuer", build: |case| by_issuer(case, Effort::Balanced) },
        Entrant { name: "tamis, one partition per issuer, smallest", build: |case| by_issuer(case, Effort::Smallest) },
    ]
}

fn by_issuer(case: &Case, effort: Effort) -> Result<Made, Box<dyn Error>> {
    let label = |issuer: u32| issuer.to_le_bytes();
    let mut all = tamis::stream().exact().effort(effort).threads(1).partitioned();
    for certificate in case.revoked() {
        all.push(label(certificate.issuer), certificate.key)?;
    }
    for certificate in case.valid() {
        all.exclude(label(certificate.issuer), certificate.key)?;
    }
    let filter = all.finish()?;
    let bytes = filter.as_bytes().len();
    let revoked = move |f: &Filter, certificate: Certificate| {
        f.contains_in(label(certificate.issuer), certificate.key).unwrap_or(false)
    };
    Ok(Made::new(filter, bytes, revoked))
}

fn in_one(case: &Case) -> Result<Made, Box<dyn Error>> {
    let build = tamis::build(case.revoked().map(|c| c.key)).exclude(case.valid().map(|c| c.key));
    let filter = build.exact().threads(1).finish()?;
    let bytes = filter.as_bytes().len();
    // The key type is right; an error would show as a revoked certificate that is refused.
    Ok(Made::new(filter, bytes, |f: &Filter, certificate| f.contains(certificate.key).unwrap_or(false)))
}
