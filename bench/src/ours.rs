//! the library -> candidates: the structures of this repository.
//!
//! Peers are given distinct keys and trust that they are. Ours start from distinct digests in memory, which is where a structure
//! starts; the rows "from keys" show the whole front door: hashing, sorting, dropping duplicates, and then the same.

use std::sync::Arc;

use tamis::{Digest, Effort, Filter, Hasher, KeyType, Kind};

use crate::candidate::{Built, Candidate};

pub(crate) mod certificates;
pub mod listed;

/// A row's name, and what is built.
type Wanted = (&'static str, Kind, Effort, f64);

/// The structures of this repository that the filter experiment measures.
pub(crate) fn filters() -> Vec<Candidate> {
    use Effort::{Balanced, Smallest};
    use Kind::{Bloom, ClassicBloom, Cuckoo, Fuse, Fuse4, Quotient, Ribbon};
    const BITS8: f64 = 1.0 / 256.0;
    // Remainders of eight bits at full load.
    const QUOTIENT: f64 = 0.95 * BITS8;
    let rows = [
        ("ribbon 8 bit", Ribbon, Balanced, BITS8),
        ("ribbon 8 bit, smallest", Ribbon, Smallest, BITS8),
        ("ribbon 3 bit", Ribbon, Balanced, 0.125),
        ("ribbon 1 bit", Ribbon, Balanced, 0.5),
        ("ribbon 1 %", Ribbon, Balanced, 0.01),
        ("fuse 3-wise 8 bit", Fuse, Balanced, BITS8),
        ("fuse 4-wise 8 bit", Fuse4, Balanced, BITS8),
        ("split-block Bloom 1.26 %", Bloom, Balanced, 0.0126),
        ("split-block Bloom 0.37 %", Bloom, Balanced, 0.0037),
        ("classic Bloom 1 %", ClassicBloom, Balanced, 0.01),
        ("cuckoo 3 %", Cuckoo, Balanced, 0.03),
        ("cuckoo 0.4 %", Cuckoo, Balanced, BITS8),
        ("cuckoo 0.4 %, semi-sorted", Cuckoo, Smallest, BITS8),
        ("quotient 0.37 %", Quotient, Balanced, QUOTIENT),
    ];
    let digests = rows.into_iter().map(from_digests);
    let keys = [rows[0], rows[5], rows[7]].into_iter().map(from_keys);
    // Keys are inserted one by one, as those of a set that changes, into a filter that is full in the end.
    let cuckoo = [("tamis cuckoo 3 %, insert", 0.03), ("tamis cuckoo 0.4 %, insert", BITS8)].map(|(name, rate)| {
        Candidate::new(name, move |keys, _| {
            let filter = tamis::Cuckoo::with_capacity(keys.len() as u64).fpr(rate).build::<u64>()?;
            let insert = |f: &mut tamis::Cuckoo, key| f.insert(key).is_ok();
            Ok(Built::inserted(filter, keys, insert, |f, key| f.contains(key).unwrap_or(false)))
        })
    });
    let quotient = Candidate::new("tamis quotient 0.37 %, insert", |keys, _| {
        let filter = tamis::Quotient::with_capacity(keys.len() as u64).fpr(QUOTIENT).build::<u64>()?;
        let insert = |f: &mut tamis::Quotient, key| f.insert(key).is_ok();
        Ok(Built::inserted(filter, keys, insert, |f, key| f.contains(key).unwrap_or(false)))
    });
    digests.chain(keys).chain(cuckoo).chain([quotient]).collect()
}

/// The digests of keys, as a structure wants them.
pub(crate) fn digests(keys: &[u64]) -> Arc<Vec<Digest>> {
    let hasher = Hasher::seeded(0);
    let mut digests: Vec<Digest> = keys.iter().map(|&key| hasher.integer(key)).collect();
    digests.sort_unstable();
    digests.into()
}

fn from_digests((name, kind, effort, rate): Wanted) -> Candidate {
    let build = move |digests: &Arc<Vec<Digest>>, threads| {
        let build = tamis::build_digests(Arc::clone(digests), Hasher::seeded(0), KeyType::Integer);
        Ok(built(build.kind(kind).effort(effort).fpr(rate).threads(threads).finish()?))
    };
    Candidate::prepared(format!("tamis {name}"), digests, build).threads()
}

fn from_keys((name, kind, effort, rate): Wanted) -> Candidate {
    let build = move |keys: &[u64], threads| {
        Ok(built(tamis::build(keys).kind(kind).effort(effort).fpr(rate).threads(threads).finish()?))
    };
    Candidate::new(format!("tamis {name}, from keys"), build).threads()
}

fn built(filter: Filter) -> Built {
    let bytes = filter.as_bytes().len();
    let contains = |f: &Filter, key: u64| f.contains(key).unwrap_or(false);
    // The lengths agree and the key type is right; a wrong answer would show as a missing key.
    let batch = |f: &Filter, keys: &[u64], out: &mut [bool]| {
        let _ = f.contains_into(keys, out);
    };
    Built::with_batch(filter, contains, batch).of_bytes(bytes)
}
