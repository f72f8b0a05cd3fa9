//! a Boolean function -> f(0, lambda) bits: the static dictionary of [Chained] section 5.1.
//!
//! The inputs for which the function is true are the keys, all other inputs are excluded, and nobody asks for anything else: an exact
//! set. Here: is a number below two million prime? There are 148,933 primes, and 12.4 other numbers for each.
//!
//! Run it with `cargo run --release -p tamis --example static_dictionary`.
//!
//! [Chained]: https://doi.org/10.48550/arXiv.2308.13649

use tamis::bounds;
use tamis::{Effort, Error};

const BELOW: usize = 2_000_000;

fn main() -> Result<(), Error> {
    // The sieve of Eratosthenes.
    let mut prime = vec![true; BELOW];
    prime[..2].fill(false);
    for i in 2..BELOW {
        if prime[i] {
            (i * i..BELOW).step_by(i).for_each(|multiple| prime[multiple] = false);
        }
    }
    let inputs = |wanted: bool| (0..BELOW).filter(|&i| prime[i] == wanted).map(|i| i as u64).collect::<Vec<u64>>();
    let (primes, others) = (inputs(true), inputs(false));
    let lambda = others.len() as f64 / primes.len() as f64;
    let bound = bounds::f(0.0, lambda) * primes.len() as f64;
    println!("{} inputs, true for {}: {lambda:.2} others each", BELOW, primes.len());
    println!("a bit for every input        {:>9} bytes", BELOW / 8);
    println!("the bound f(0, lambda)       {:>9.0} bytes", bound / 8.0);

    let report = |name: &str, bytes: usize| {
        let over = 100.0 * (bytes as f64 * 8.0 / bound - 1.0);
        println!("{name:<28} {bytes:>9} bytes, {over:.1} % over the bound");
    };
    for (name, effort) in [("exact set", Effort::Balanced), ("exact set, smallest", Effort::Smallest)] {
        let filter = tamis::build(&primes).exclude(&others).exact().effort(effort).finish()?;
        assert!((0..BELOW).all(|i| filter.contains(i as u64) == Ok(prime[i])));
        report(name, filter.as_bytes().len());
    }
    // The same as a sequence of truths, in which a position is an input.
    let sequence = tamis::sequence(&prime).finish()?;
    assert!(sequence.iter().zip(&prime).all(|(value, &truth)| value.as_u64() == Some(truth.into())));
    report("sequence of bools", sequence.as_bytes().len());
    Ok(())
}
