//! a case of revocation -> other libraries' structures for it.

use std::error::Error;

use super::clubcard::{self, Block, Card, Item, Part};
use crate::certificates::case::{Case, Certificate};
use crate::certificates::{Entrant, Made};

/// Clubcard with a block for every issuer, which is what it was made for, and with all certificates in one.
pub(crate) fn entrants() -> Vec<Entrant> {
    vec![
        Entrant { name: "clubcard, a block for every issuer", build: by_issuer },
        Entrant { name: "clubcard, one block", build: in_one },
    ]
}

type Outcome = Result<Made, Box<dyn Error>>;

/// An issuer's name, as short as it can be for any number of issuers: real ones are 32 bytes.
fn name(issuer: u32) -> Block {
    Block::Named(issuer.to_le_bytes())
}

/// Issuers that revoked nothing have no block: clubcard says no to whoever is of none.
fn by_issuer(case: &Case) -> Outcome {
    let issuers: Vec<usize> = (0..case.issuers.len()).filter(|&i| case.issuers[i].revoked > 0).collect();
    let part = |i: usize| {
        let issuer = issuers[i];
        let counts = &case.issuers[issuer];
        Part {
            block: name(issuer as u32),
            keys: case.revoked_of(issuer).map(|c| c.key),
            negatives: case.valid_of(issuer).map(|c| c.key),
            counts: (counts.revoked as usize, (counts.issued - counts.revoked) as usize),
        }
    };
    made(issuers.len(), part, |c| Item::new(name(c.issuer), c.key))
}

fn in_one(case: &Case) -> Outcome {
    let (revoked, issued) = case.totals();
    let part = |_| Part {
        block: Block::Only,
        keys: case.revoked().map(|c| c.key),
        negatives: case.valid().map(|c| c.key),
        counts: (revoked as usize, (issued - revoked) as usize),
    };
    made(usize::from(revoked > 0), part, |c| Item::new(Block::Only, c.key))
}

fn made<K, N>(
    blocks: usize,
    part: impl Fn(usize) -> Part<K, N>,
    item: impl Fn(Certificate) -> Item + 'static,
) -> Outcome
where
    K: Iterator<Item = u64>,
    N: Iterator<Item = u64>,
{
    // It panics on a clubcard without blocks.
    if blocks == 0 {
        return Err("clubcard cannot be empty".into());
    }
    let card: Card = clubcard::build(blocks, part);
    let (bytes, index) = clubcard::bytes(&card);
    let mut made = Made::new(card, bytes, move |card, certificate| card.unchecked_contains(&item(certificate)));
    made.index = Some(index);
    Ok(made)
}
