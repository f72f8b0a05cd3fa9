//! keys -> bytes -> answers, without files, threads or random numbers: what a program for `wasm32-unknown-unknown` can do.
//!
//! ```text
//! cargo build -p tamis --no-default-features --features build --target wasm32-unknown-unknown --example wasm
//! ```
//!
//! `.ci/engines` runs the module in Node: a failed assertion is a trap.

use tamis::{BuildError, Error, Filter, Limits};

fn main() -> Result<(), Error> {
    let allowed = ["docs.example", "mail.example"];
    let filter = tamis::build(["ads.example", "spam.example"]).exclude(allowed).fpr(1e-6).finish()?;

    // Bytes from a message, or from `include_bytes!`.
    let filter = Filter::open(filter.into_bytes())?;
    assert!(filter.contains("ads.example")? && filter.contains("spam.example")?);
    assert!(!filter.contains("docs.example")? && !filter.contains("mail.example")?);

    // Several shards, on one thread. The caller brings the secret.
    let large = tamis::build(0..2_000_000u64).secret([3, 5]).fpr(0.01).finish()?;
    assert!((0..2_000_000u64).step_by(999).all(|key| large.contains(key).is_ok_and(|yes| yes)));

    // More keys than the limit allows need temporary files.
    let limits = Limits::default().memory(4 << 20);
    let limited = tamis::build(0..2_000_000u64).limits(limits).finish();
    assert_eq!(matches!(limited, Err(Error::Build(BuildError::MemoryLimit { .. }))), !cfg!(feature = "spill"));
    Ok(())
}
