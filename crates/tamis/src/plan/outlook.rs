//! steps + counts -> what a filter of these steps will do: bits, rates, cache lines.
//!
//! Three sorts of keys walk through the steps: members, listed negatives, and strangers. At every step a share of those that are
//! still undecided goes on, and the rest has its answer:
//!
//! ```text
//!            members                    listed negatives          strangers
//!   Refuse   all go on                  a share goes on,          a share goes on,
//!                                       the rest gets a no        the rest gets a no
//!   Admit    a share goes on,           all go on                 a share goes on,
//!            the rest gets its yes                                the rest gets a yes
//!   Decide   yes                        no                        a share gets a yes
//!   (end)    yes                        yes                       yes
//! ```

use super::{Request, Step, Structure, file_bits};
use crate::filter::steps::Role;
use crate::leaves::fuse;

/// What is expected of a list of steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Outlook {
    /// Bits of the whole file; rather more than less.
    pub(crate) bits: f64,
    /// The share of listed negatives that get a yes.
    pub(crate) listed: f64,
    /// The share of strangers that get a yes.
    pub(crate) strangers: f64,
    /// Cache lines that a query reads: of a member, of a listed negative, of a stranger.
    pub(crate) lines: [f64; 3],
}

/// The share of each sort that is still undecided.
#[derive(Clone, Copy)]
struct Undecided {
    members: f64,
    listed: f64,
    strangers: f64,
}

/// Looks at the steps of a request.
pub(crate) fn outlook(steps: &[Step], request: &Request) -> Outlook {
    let per_key = request.bits_of(steps) / request.keys.max(1) as f64;
    let bits = request.bits_of(steps) + file_bits(request.keys, steps.len(), per_key);
    let mut here = Undecided { members: 1.0, listed: 1.0, strangers: 1.0 };
    let (mut admitted, mut lines) = (0.0, [0.0; 3]);
    for Step { role, structure } in steps {
        let keys = here.members * request.keys as f64;
        let negatives = here.listed * request.negatives as f64;
        let whole = |x: f64| x.ceil() as u64;
        // Shares of members, listed negatives and strangers that the leaf says yes to.
        let yes = match role {
            Role::Refuse => {
                let rate = structure.rate_at(whole(keys));
                [1.0, passing(structure, negatives / keys.max(1.0), rate), rate]
            }
            Role::Admit => {
                let rate = structure.rate_at(whole(negatives));
                [passing(structure, keys / negatives.max(1.0), rate), 1.0, rate]
            }
            Role::Decide => [1.0, 0.0, structure.rate_at(whole(keys + negatives))],
        };
        let [long, short] = structure.lines();
        for ((lines, yes), left) in lines.iter_mut().zip(yes).zip([here.members, here.listed, here.strangers]) {
            *lines += left * (yes * long + (1.0 - yes) * short);
        }
        if *role == Role::Decide {
            let strangers = (admitted + here.strangers * yes[2]).min(1.0);
            return Outlook { bits, listed: 0.0, strangers, lines };
        }
        if *role == Role::Admit {
            admitted += here.strangers * (1.0 - yes[2]);
        }
        here.members *= yes[0];
        here.listed *= yes[1];
        here.strangers *= yes[2];
    }
    Outlook { bits, listed: here.listed.min(1.0), strangers: (admitted + here.strangers).min(1.0), lines }
}

/// The share of the other side that a leaf lets pass, `mu` of them for each of its own.
fn passing(structure: &Structure, mu: f64, rate: f64) -> f64 {
    match structure {
        Structure::Steered(params) => params.passing(mu),
        _ => rate,
    }
}

impl Structure {
    /// Cache lines that a query reads, about: if the answer is yes, and if it is no. What is asked so often that it stays near
    /// the processor (thresholds, directories) is left out.
    fn lines(&self) -> [f64; 2] {
        // Bytes that lie side by side, at any place.
        let run = |bytes: f64| 1.0 + (bytes - 1.0) / 64.0;
        match self {
            Structure::SplitBlock { .. } => [1.0, 1.0],
            // Half of the bits are set: a stranger is refused at the second position, on average.
            Structure::Bloom { hashes, .. } => [f64::from(*hashes), f64::from(*hashes).min(2.0)],
            Structure::Fuse(params) => [probes(params.arity); 2],
            // Two blocks of 64 rows, all columns of a block side by side; a single column is read as sixteen bytes.
            Structure::Ribbon(params) if params.width <= 256 => [run(16.0); 2],
            Structure::Ribbon(params) => [run(16.0 * f64::from(params.width.div_ceil(256))); 2],
            Structure::Integrated(params) => [probes(params.arity); 2],
            // One of two buckets, or both; a run of remainders behind the words of its block.
            Structure::Cuckoo(_) => [1.5, 2.0],
            Structure::Quotient(_) => [2.0, 1.5],
            Structure::Steered(_) => [run(9.0); 2],
            Structure::Local(params) => [run(12.0 * f64::from(params.columns + params.exact)); 2],
        }
    }
}

/// Cells of a key, each in a line of its own.
fn probes(arity: fuse::Arity) -> f64 {
    match arity {
        fuse::Arity::Three => 3.0,
        fuse::Arity::Four => 4.0,
    }
}
