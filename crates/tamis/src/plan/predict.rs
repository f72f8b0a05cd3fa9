//! steps + counts -> what a filter of these steps will do: bits, rates, cache lines.
//!
//! Three sorts of keys walk through the steps: members, listed negatives, and unlisted keys. At every step a share of those that are
//! still undecided goes on, and the rest has its answer:
//!
//! ```text
//!            members                    listed negatives          unlisted keys
//!   Positive all go on                  a share goes on,          a share goes on,
//!                                       the rest gets a no        the rest gets a no
//!   Negative a share goes on,           all go on                 a share goes on,
//!            the rest gets its yes                                the rest gets a yes
//!   Exact    yes                        no, but those left out    a share gets a yes
//!   (end)    yes                        yes                       yes
//! ```

use super::{Request, Step, file_bits};
use crate::leaves::Role;

/// What is expected of a list of steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LayersPrediction {
    /// Bits of the whole file; rather more than less.
    pub(crate) bits: f64,
    /// The share of listed negatives that get a yes.
    pub(crate) known_fpr: f64,
    /// The share of unlisted keys that get a yes.
    pub(crate) fpr: f64,
    /// Cache lines that a query reads: of a member, of a listed negative, of an unlisted key.
    pub(crate) lines: [f64; 3],
    /// The shares of members, of listed negatives and of unlisted keys that no step gave an answer.
    pub(crate) undecided: [f64; 3],
}

/// The share of each sort that is still undecided.
#[derive(Clone, Copy)]
struct Undecided {
    members: f64,
    listed: f64,
    strangers: f64,
}

/// Looks at the steps of a request.
pub(crate) fn predict(steps: &[Step], request: &Request) -> LayersPrediction {
    let per_key = request.bits_of(steps) / request.keys.max(1) as f64;
    let bits = request.bits_of(steps) + file_bits(request, steps.len(), per_key);
    let mut here = Undecided { members: 1.0, listed: 1.0, strangers: 1.0 };
    let (mut admitted, mut lines) = (0.0, [0.0; 3]);
    // Of listed negatives that were left out: the share that got a yes, and the share that is still undecided.
    let (mut allowed, mut matched, mut left_out) = (request.allowed(steps), 0.0, 0.0);
    for Step { role, structure } in steps {
        let keys = here.members * request.keys as f64;
        if *role != Role::Positive && allowed > 0.0 {
            let count = request.left_out(*role, std::mem::take(&mut allowed));
            left_out = (count / request.negatives.max(1) as f64).min(here.listed);
            here.listed -= left_out;
        }
        let negatives = here.listed * request.negatives as f64;
        let whole = |x: f64| x.ceil() as u64;
        // Shares of members, listed negatives and unlisted keys that the leaf says yes to.
        let yes = match role {
            Role::Positive => {
                let rate = structure.rate_at(whole(keys));
                [1.0, structure.passing(negatives / keys.max(1.0), whole(keys)), rate]
            }
            Role::Negative => {
                let rate = structure.rate_at(whole(negatives));
                [structure.passing(keys / negatives.max(1.0), whole(negatives)), 1.0, rate]
            }
            Role::Exact => [1.0, 0.0, structure.rate_at(whole(keys + negatives))],
        };
        let [long, short] = structure.lines();
        for ((lines, yes), left) in lines.iter_mut().zip(yes).zip([here.members, here.listed, here.strangers]) {
            *lines += left * (yes * long + (1.0 - yes) * short);
        }
        if *role == Role::Exact {
            let strangers = (admitted + here.strangers * yes[2]).min(1.0);
            let known_fpr = matched + left_out / 2.0;
            return LayersPrediction { bits, known_fpr, fpr: strangers, lines, undecided: [0.0; 3] };
        }
        if *role == Role::Negative {
            admitted += here.strangers * (1.0 - yes[2]);
            matched += left_out * (1.0 - yes[2]);
        }
        left_out *= yes[2];
        here.members *= yes[0];
        here.listed *= yes[1];
        here.strangers *= yes[2];
    }
    let undecided = [here.members, here.listed, here.strangers].map(|share| share.min(1.0));
    LayersPrediction { bits, known_fpr: undecided[1], fpr: (admitted + here.strangers).min(1.0), lines, undecided }
}
