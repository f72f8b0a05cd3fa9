//! a filter that changes <-> a file: an ordinary filter `P E`, and digests that no query reads.
//!
//! The first layer is written as it is. The exact bit is written as a ribbon, which takes half of the room and never changes; opening the
//! file for changes builds the one that does. Sections and units are drawn in docs/format.md.

use bytes::Bytes;

use super::fixed::Fixed;
use super::{Chained, Table};
use crate::dynamic::core::{Core, is_file};
use crate::error::{BuildError, FormatError};
use crate::filter::open::{first_salt, open};
use crate::filter::steps::Step;
use crate::format::{self, Budget, Form, Header, Kept, Writer};
use crate::hash::{Digest, Salt};
use crate::leaves::change::Layer;
use crate::leaves::quotient::OwnedQuotient;
use crate::leaves::{Entry as _, Leaf, Role, Sides, Structure, Work, quotient, ribbon};

is_file!(
    Chained, 0.hasher: ".",
    "[`FormatError::ReadOnly`] if the file keeps no digests, another [`FormatError`] if the bytes are no filter file, or damaged."
);

impl Chained {
    fn write(&self, out: &mut dyn std::io::Write) -> Result<(), BuildError> {
        let Core { hasher, key_type, salts, table: Table { shown, known } } = &self.0;
        let (mut members, mut passing) = (Vec::with_capacity(known.members as usize), vec![]);
        for key in known.graphs.keys() {
            if shown.cells.get(key) { members.push(key) } else { passing.push(key) }
        }
        // Where all excluded keys wait, some of them pass as well.
        let waiting = known.waiting.keys();
        let mut excluded: Vec<Digest> = match shown.first.removes() {
            true => waiting.collect(),
            false => waiting.chain(passing.iter().copied()).collect(),
        };
        [&mut members, &mut passing, &mut excluded].into_iter().for_each(|list| list.sort_unstable());
        let exact = Structure::from(ribbon::Params { width: 256, tight: false, nested: false });
        let shards = shown.first.encoded();
        let shard_bits = shards.len().max(1).ilog2();
        let work = Work { salt: Salt::new(first_salt(*salts) + 1), skip: shard_bits, threads: 1, stop: &|| false };
        let header = Header::new(Form::Filter, hasher.clone(), *key_type);
        let header = Header { salts: *salts, keys: known.members, negatives: known.excluded, shard_bits, ..header };
        let kinds = vec![[Role::Positive.encode(), shown.first.tag()], [Role::Exact.encode(), exact.tag()]];
        let mut writer = Writer::new(out, &header, kinds)?;
        let [mut ones, mut zeros] = [&members[..], &passing[..]];
        for (shard, part) in shards.into_iter().enumerate() {
            let [listed, others] = [&mut ones, &mut zeros].map(|list| {
                let (here, later) = list.split_at(list.partition_point(|key| key.shard(shard_bits) <= shard));
                *list = later;
                here
            });
            let exact_part = exact.build(Sides::new(listed, &others).of(Role::Exact), &work)?;
            writer.shard(&[part, exact_part])?;
        }
        let kept = Kept { members: members.len() as u64, excluded: excluded.len() as u64 };
        let digests: Vec<u8> = members.iter().chain(&excluded).flat_map(|key| key.to_bits().to_le_bytes()).collect();
        writer.keep(kept, &digests)?;
        writer.finish()?;
        Ok(())
    }

    fn restored(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Chained, FormatError> {
        format::verify(&bytes)?;
        let budget = Budget::of(&bytes);
        let contents = open(&bytes, secret, &budget)?;
        let Some((kept, digests)) = contents.kept else { return Err(FormatError::ReadOnly) };
        // Digests are sorted and listed, each with a bit, links and cells; the first layer is copied.
        budget.draw(bytes.len() as u64 * (8 + OwnedQuotient::CHECK))?;
        let wrong = |what: &str| FormatError::invalid(format!("a filter that changes: {what}"));
        let first = match &contents.steps[..] {
            [Step { role: Role::Positive, leaf, .. }, Step { role: Role::Exact, .. }] => layer(&contents.header, leaf)?,
            _ => None,
        };
        let table = first.ok_or_else(|| wrong("its layers are not a first layer that it can have and an exact bit"))?;
        let Header { hasher, key_type, salts, .. } = contents.header;
        let (chunks, _) = digests.as_chunks::<16>();
        let all = chunks.iter().map(|&bytes| Digest::from_bits(u128::from_le_bytes(bytes)));
        let mut members: Vec<Digest> = all.collect();
        let excluded = members.split_off(kept.members as usize);
        let ascends = |list: &[Digest]| list.windows(2).all(|pair| pair[0] < pair[1]);
        let both = |key: &Digest| excluded.binary_search(key).is_ok();
        if !ascends(&members) || !ascends(&excluded) || members.iter().any(both) {
            return Err(wrong("its digests are not in order"));
        }
        if !members.iter().all(|&key| table.contains(key)) {
            return Err(wrong("its first layer does not match a member"));
        }
        if !table.takes_keys() && !excluded.iter().all(|&key| table.contains(key)) {
            return Err(wrong("its first layer rejects an excluded key for good"));
        }
        Chained::with(Core { hasher, key_type, salts, table }, members, excluded)
            .map_err(|error| wrong(&error.to_string()))
    }
}

/// A leaf as a first layer; none if it cannot be one.
fn layer(header: &Header, leaf: &Leaf) -> Result<Option<Box<dyn Layer>>, FormatError> {
    if let Some(fixed) = Fixed::alone(header, leaf)? {
        return Ok(Some(Box::new(fixed)));
    }
    // Without keys a built filter has no table, and a key that is put nowhere is not found again.
    if header.shard_bits > 0 || leaf.payload_len(0) == 0 {
        return Ok(None);
    }
    let Some(part) = quotient::Quotient::of(leaf).and_then(|leaf| leaf.parts().first()) else {
        return Ok(leaf.layers().and_then(|mut layers| layers.pop()));
    };
    Ok(Some(Box::new(OwnedQuotient::read(part)?)))
}
