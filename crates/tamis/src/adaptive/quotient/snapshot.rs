//! an adaptive quotient filter <-> a file.
//!
//! ```text
//!   fields:   capacity | rate f64 | steps | epoch, frontier | pending_moves | keys under the old function | slot to sweep next | bases without a slot: number, each
//!   payloads: quotient table | entries, sorted | whole hashes, sorted
//! ```

use bytes::Bytes;

use super::entry::{Entry, Whole};
use super::{AdaptiveQuotient, STEPS, Sizes};
use crate::adaptive::AdaptiveFilter;
use crate::adaptive::file::{self, Kind, bytes_of, put_varints, words_of};
use crate::adaptive::frontier::Frontier;
use crate::adaptive::verbs::Kept;
use crate::adaptive::words::cost;
use crate::error::{BuildError, FormatError};
use crate::hash::{Digest, Hasher, KeyType, Salt};
use crate::leaves::quotient::OwnedQuotient;

/// Bases without a slot, more than chance has.
const MAX_SPARE_BASES: u64 = 64;

impl Kept for AdaptiveQuotient {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.frontier.hasher, self.frontier.key_type)
    }

    #[inline]
    fn contains_digest(&self, key: Digest) -> bool {
        let place = self.place_of(key);
        self.in_table(&place).is_some() || self.is_whole(&place)
    }

    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let mut fields = vec![];
        put_varints(&mut fields, [self.capacity]);
        fields.extend_from_slice(&self.rate.to_le_bytes());
        put_varints(&mut fields, [self.steps.into()]);
        self.frontier.encode(&mut fields);
        let due = self.frontier.pending_moves.into();
        put_varints(&mut fields, [due, self.old, self.swept as u64, self.spare.len() as u64]);
        put_varints(&mut fields, self.spare.iter().copied());
        let payloads = [self.held.payload.clone(), bytes_of(&self.long.sorted()), bytes_of(&self.whole.sorted())];
        file::write(Kind::Quotient, &self.frontier.hasher, self.frontier.key_type, self.len(), &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<AdaptiveQuotient, FormatError> {
        let read = file::read(bytes, secret, Kind::Quotient)?;
        let (hasher, key_type) = (read.header.hasher.clone(), read.header.key_type);
        let [table, long, whole] = read.all()?;
        let mut from = read.fields();
        let capacity = from.within("capacity", 0..=4 * table.len() as u64)?;
        let rate = f64::from_le_bytes(from.array()?);
        let steps = from.within("steps", u64::from(*STEPS.start())..=u64::from(*STEPS.end()))? as u32;
        let fail = |e: BuildError| FormatError::invalid(e.to_string());
        let wrong = |what: &str| format!("payload: {what}");
        let sizes = Sizes::new(capacity, rate, steps).map_err(fail)?;
        from.draw(OwnedQuotient::CHECK * table.len() as u64 + cost(sizes.long) + cost(sizes.whole))?;
        let held = OwnedQuotient::reopened(sizes.table, Salt::new(0), table).map_err(fail)?;
        let held = held.ok_or_else(|| FormatError::invalid(wrong("the slots of the table contradict one another")))?;
        let mut filter = AdaptiveQuotient::of(key_type, hasher, &sizes, held).map_err(fail)?;
        filter.frontier = Frontier::decode(&mut from, &read.header)?;
        filter.frontier.pending_moves = from.within("steps due", 0..=u32::MAX.into())? as u32;
        filter.old = from.within("keys under the old function", 0..=capacity)?;
        filter.swept = from.within("slot to sweep next", 0..=filter.long.bytes() as u64)? as usize;
        let range = filter.held.geometry.range();
        for _ in 0..from.within("bases without a slot", 0..=MAX_SPARE_BASES)? {
            filter.spare.push(from.within("base", 0..=range - 1)?);
        }
        from.end()?;
        let (long, whole) = (words_of(long)?, words_of(whole)?);
        let sound = long.iter().all(|&word| Entry::is_sound(word)) && filter.long.fill(&long);
        FormatError::check(sound, || wrong("entries that no key has, or too many"))?;
        let sound = whole.iter().all(|&word| Whole::is_sound(word)) && filter.whole.fill(&whole);
        FormatError::check(sound, || wrong("hashes that no key has, or too many"))?;
        let live = |word: &u64| !Entry::unpack(*word).tombstone;
        // Sorted: to count the copies of a base in its run would take as long as the run is, for every base of it.
        let mut bases = filter.held.places();
        bases.extend(&filter.spare);
        bases.sort_unstable();
        let copies =
            |base| bases.partition_point(|&found| found <= base) - bases.partition_point(|&found| found < base);
        for entries in long.chunk_by(|a, b| Entry::unpack(*a).base == Entry::unpack(*b).base) {
            let base = Entry::unpack(entries[0]).base;
            let has_keys = base < range && entries.iter().filter(|word| live(word)).count() <= copies(base);
            FormatError::check(has_keys, || wrong("an entry without a key"))?;
        }
        for entry in long.iter().map(|&word| Entry::unpack(word)).filter(|entry| entry.tombstone) {
            filter.tombstones[entry.parity as usize] += 1;
        }
        for &word in &whole {
            match Whole::is_tombstone(word) {
                true => filter.tombstones[Whole::parity(word) as usize] += 1,
                false => filter.whole_keys += 1,
            }
        }
        let keys = filter.len();
        let fits = keys == read.header.keys && keys <= capacity && filter.old <= keys;
        FormatError::check(fits, || wrong("more keys or fewer than the header says"))?;
        Ok(filter)
    }
}
