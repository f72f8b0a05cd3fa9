//! the digests of a range -> what a plan must know of them, as bytes; those of several ranges -> those of all.
//!
//! ```text
//!   survey   magic 8 | options u64 | ranges | listed, excluded, conflicts, weight, conflict weight: varints
//!            cells: number; of each the gap to the one before, its keys: varints, its hash u64        | sum u64
//!   sketch   magic 8 | plan u64 | ranges | numbers: how many, varint; u64 each, ascending             | sum u64
//!   ranges   number; of each the gap to the end of the one before, its cells: varints
//! ```
//!
//! Options and plan are XXH3-64 of what they print. The sum is XXH3-64 of all before it.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::gather::{Gather, Sides};
use super::plan::Plan;
use super::{KeyRange, text, wrong};
use crate::debug::brief_debug;
use crate::error::{BuildError, Error, FormatError};
use crate::filter::build::Options;
use crate::format::{Reader, put_varint};
use crate::gather::{Cell, Keys, Lows, Sketch as Estimate};
use crate::hash::{Digest, Salt, scramble};

/// Cells that were looked at: ascending, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen(Vec<Range<u64>>);

impl Seen {
    /// The first cells that were not looked at.
    fn missing(&self) -> Option<Range<u64>> {
        let all = KeyRange::ALL.cells();
        let mut end = 0;
        for seen in self.0.iter().chain([&(all.end..all.end)]) {
            if seen.start > end {
                return Some(end..seen.start);
            }
            end = seen.end;
        }
        None
    }

    /// Adds cells that were not looked at before.
    fn merge(&mut self, other: Seen) -> Result<(), Error> {
        self.0.extend(other.0);
        self.0.sort_unstable_by_key(|seen| seen.start);
        if let Some(pair) = self.0.windows(2).find(|pair| pair[0].end > pair[1].start) {
            let range = ends(&pair[1]);
            return Err(wrong("merge", format!("the digests {range} are there twice; expected each range once")));
        }
        let mut joined: Vec<Range<u64>> = vec![];
        for seen in self.0.drain(..) {
            match joined.last_mut().filter(|last| last.end == seen.start) {
                Some(last) => last.end = seen.end,
                None => joined.push(seen),
            }
        }
        self.0 = joined;
        Ok(())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.0.len() as u64);
        let mut end = 0;
        for seen in &self.0 {
            put_varint(out, seen.start - end);
            put_varint(out, seen.end - seen.start);
            end = seen.end;
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Seen, FormatError> {
        let most = u64::from(KeyRange::MAX);
        let (mut seen, mut end) = (vec![], 0);
        for number in 0..from.within("number of ranges", 0..=most)? {
            // They were joined: only the first can start where the one before ends.
            let start = end + from.within("gap", u64::from(number > 0)..=most)?;
            end = start + from.within("cells of a range", 1..=most)?;
            FormatError::check(end <= most, || format!("ranges: {end} cells, expected {most}"))?;
            seen.push(start..end);
        }
        Ok(Seen(seen))
    }
}

/// Cells as ends of digests, in words.
fn ends(cells: &Range<u64>) -> String {
    format!("from {:03x}.. up to {:03x}..", cells.start, cells.end - 1)
}

/// Starts the bytes of one of the two.
fn start(magic: &[u8; 8], of: u64, seen: &Seen) -> Vec<u8> {
    let mut out = [&magic[..], &of.to_le_bytes()].concat();
    seen.encode(&mut out);
    out
}

fn close(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
    out
}

/// Opens the bytes of one of the two.
fn open<'a>(bytes: &'a [u8], magic: &[u8; 8], what: &'static str) -> Result<(u64, Seen, Reader<'a>), FormatError> {
    let damaged = || FormatError::invalid(format!("{what}: its sum does not match; expected what this release wrote"));
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
    FormatError::check(body.starts_with(magic), || format!("{what}: wrong first eight bytes"))?;
    if xxh3_64(body).to_le_bytes() != *sum {
        return Err(damaged());
    }
    let mut from = Reader::new(&body[magic.len()..], what);
    let of = u64::from_le_bytes(from.array()?);
    Ok((of, Seen::decode(&mut from)?, from))
}

/// What is known of all keys before anything is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Distinct keys, those that are excluded too among them.
    pub(super) keys: u64,
    /// The hash of them all.
    pub(super) set: u64,
    /// A sum over the hashes of cells, which slices have parts of.
    pub(super) check: u64,
    /// Excluded keys, repeated or not.
    pub(super) listed: u64,
    /// Distinct excluded keys.
    pub(super) excluded: u64,
    pub(super) conflicts: u64,
    /// How often those that are no keys were listed, where that matters.
    pub(super) weight: u64,
    /// The same for those that are keys.
    pub(super) conflict_weight: u64,
}

/// More keys than there can be.
pub(super) const MAX_KEYS: u64 = Estimate::MAX_DISTINCT;

/// What a cell adds to the sum.
pub(super) fn checksum(cells: &[Cell]) -> u64 {
    let of = |cell: &Cell| scramble(cell.hash ^ scramble(cell.number ^ scramble(cell.keys)));
    cells.iter().map(of).fold(0, u64::wrapping_add)
}

/// What a plan must know of the keys of some ranges: their numbers and hashes.
///
/// ```
/// use tamis::slices::{KeyRange, Survey};
/// let options = tamis::Options::default().fpr(0.01);
/// let digests = tamis::Hasher::seeded(0).digests(&["ann", "bob", "eve"]);
/// let survey = |index| {
///     let range = KeyRange::new(index, 2)?;
///     Survey::new(&options, range, digests.iter().copied().filter(|&digest| range.contains(digest)), [])
/// };
/// let all = survey(1)?.merge(survey(0)?)?;
/// assert_eq!(all.keys(), 3);
/// assert_eq!(Survey::from_bytes(&all.to_bytes())?, all);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Survey {
    /// That of the options.
    options: u64,
    seen: Seen,
    /// Without hashes.
    totals: Totals,
    cells: Vec<Cell>,
}

brief_debug!(Survey, it => keys: it.totals.keys, excluded: it.totals.excluded);

impl Survey {
    const MAGIC: &[u8; 8] = b"tamisSv1";

    /// Surveys the digests of one range, which the hasher of the options made, in any order, repeated or not.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a digest is not of this range or an option is not for slices; else as a build with these options.
    pub fn new(
        options: &Options<'_>,
        range: KeyRange,
        keys: impl IntoIterator<Item = Digest>,
        excluded: impl IntoIterator<Item = Digest>,
    ) -> Result<Survey, Error> {
        Gather::new(options, range)?.all(keys, excluded)?.survey()
    }

    pub(super) fn of_sides(options: &Options<'_>, range: KeyRange, sides: &Sides) -> Result<Survey, Error> {
        let stop = || options.common.stop();
        let cells = sides.keys.cells(&stop)?;
        let counts = sides.keys.count_sides(sides.excluded.as_ref(), &stop)?;
        let totals = Totals {
            keys: counts.keys,
            listed: sides.excluded.as_ref().map_or(0, Keys::count),
            excluded: counts.negatives,
            conflicts: counts.conflicts,
            weight: counts.weight,
            conflict_weight: counts.conflict_weight,
            ..Totals::default()
        };
        let seen = Seen(vec![range.cells()]);
        Ok(Survey { options: fingerprint(options), seen, totals, cells })
    }

    /// Adds the survey of other ranges; the order does not matter.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a range is in both, or if their options differ.
    pub fn merge(mut self, other: Survey) -> Result<Survey, Error> {
        if self.options != other.options {
            return Err(wrong("merge", "surveys with different options, or of different seeds; expected the same"));
        }
        self.seen.merge(other.seen)?;
        let add = |to: &mut u64, more: u64| {
            *to = to.checked_add(more).filter(|&sum| sum < MAX_KEYS)?;
            Some(())
        };
        let (mine, more) = (&mut self.totals, other.totals);
        let pairs = [
            (&mut mine.keys, more.keys),
            (&mut mine.listed, more.listed),
            (&mut mine.excluded, more.excluded),
            (&mut mine.conflicts, more.conflicts),
            (&mut mine.weight, more.weight),
            (&mut mine.conflict_weight, more.conflict_weight),
        ];
        let fits = pairs.into_iter().try_for_each(|(to, more)| add(to, more));
        fits.ok_or(BuildError::TooManyKeys { keys: MAX_KEYS, place: "file" })?;
        self.cells.extend(other.cells);
        self.cells.sort_unstable_by_key(|cell| cell.number);
        Ok(self)
    }

    /// Returns the number of distinct keys, those that are also excluded among them.
    pub fn keys(&self) -> u64 {
        self.totals.keys
    }

    /// Returns the number of distinct excluded keys.
    pub fn excluded(&self) -> u64 {
        self.totals.excluded
    }

    /// Returns the bytes, private to a release: equal ranges give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = start(Survey::MAGIC, self.options, &self.seen);
        let Totals { listed, excluded, conflicts, weight, conflict_weight, .. } = self.totals;
        for number in [listed, excluded, conflicts, weight, conflict_weight, self.cells.len() as u64] {
            put_varint(&mut out, number);
        }
        let mut next = 0;
        for cell in &self.cells {
            put_varint(&mut out, cell.number - next);
            put_varint(&mut out, cell.keys);
            out.extend_from_slice(&cell.hash.to_le_bytes());
            next = cell.number + 1;
        }
        close(out)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are damaged or of another release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Survey, FormatError> {
        let (options, seen, mut from) = open(bytes, Survey::MAGIC, "survey")?;
        let mut number = |name| from.within(name, 0..=MAX_KEYS - 1);
        let mut totals = Totals {
            listed: number("listed")?,
            excluded: number("excluded")?,
            conflicts: number("conflicts")?,
            weight: number("weight")?,
            conflict_weight: number("weight")?,
            ..Totals::default()
        };
        let (mut cells, mut next) = (vec![], 0);
        for _ in 0..from.within("number of cells", 0..=u64::from(KeyRange::MAX))? {
            let number = next + from.within("gap", 0..=u64::from(KeyRange::MAX))?;
            let keys = from.within("keys", 1..=MAX_KEYS - 1)?;
            let hash = u64::from_le_bytes(from.array()?);
            let of = seen.0.iter().find(|seen| seen.contains(&number));
            FormatError::check(of.is_some(), || format!("survey: cell {number} is of no range"))?;
            cells.push(Cell { number, keys, hash });
            totals.keys += keys;
            next = number + 1;
        }
        from.end()?;
        let fits = totals.keys < MAX_KEYS && totals.excluded <= totals.listed;
        FormatError::check(fits && totals.conflicts <= totals.keys.min(totals.excluded), || {
            format!("survey: {} conflicts of {} excluded keys", totals.conflicts, totals.excluded)
        })?;
        Ok(Survey { options, seen, totals, cells })
    }

    /// All ranges, surveyed with these options: what a plan needs, and the cells.
    pub(super) fn complete(self, options: &Options<'_>) -> Result<(Totals, Vec<Cell>), Error> {
        if self.options != fingerprint(options) {
            return Err(wrong("plan", "the survey has other options; expected those of the plan"));
        }
        if let Some(cells) = self.seen.missing() {
            return Err(wrong("plan", format!("no survey of the digests {}; expected all ranges", ends(&cells))));
        }
        let totals = Totals { set: crate::gather::hash_of(&self.cells), check: checksum(&self.cells), ..self.totals };
        Ok((totals, self.cells))
    }
}

fn fingerprint(options: &Options<'_>) -> u64 {
    xxh3_64(text::of_options(options).as_bytes())
}

/// The smallest salted numbers of the excluded keys of some ranges: what their number is estimated from.
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch {
    /// That of the plan.
    plan: u64,
    seen: Seen,
    /// Sorted.
    lows: Lows,
}

brief_debug!(Sketch, it => ranges: it.seen.0.len());

impl Sketch {
    const MAGIC: &[u8; 8] = b"tamisSk1";

    /// Of the excluded keys of one range.
    pub(super) fn of_sides(plan: &Plan, range: KeyRange, sides: &Sides) -> Result<Sketch, Error> {
        let (mut lows, salt) = (Lows::default(), Salt::new(plan.set()));
        if let Some(excluded) = &sides.excluded {
            excluded.digests(&|| plan.is_cancelled(), &mut |digests| {
                digests.iter().for_each(|digest| lows.add(digest.salted(salt)));
            })?;
        }
        lows.sorted();
        Ok(Sketch { plan: xxh3_64(plan.to_string().as_bytes()), seen: Seen(vec![range.cells()]), lows })
    }

    /// Adds the sketch of other ranges; the order does not matter.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a range is in both, or if their plans differ.
    pub fn merge(mut self, mut other: Sketch) -> Result<Sketch, Error> {
        if self.plan != other.plan {
            return Err(wrong("merge", "sketches for different plans; expected the same"));
        }
        self.seen.merge(other.seen)?;
        other.lows.sorted().iter().for_each(|&number| self.lows.add(number));
        self.lows.sorted();
        Ok(self)
    }

    /// Returns the bytes, private to a release: equal ranges give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = start(Sketch::MAGIC, self.plan, &self.seen);
        let mut lows = self.lows.clone();
        put_varint(&mut out, lows.sorted().len() as u64);
        lows.sorted().iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        close(out)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are damaged or of another release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Sketch, FormatError> {
        let (plan, seen, mut from) = open(bytes, Sketch::MAGIC, "sketch")?;
        let mut lows = Lows::default();
        let mut last = None;
        for _ in 0..from.within("numbers", 0..=Lows::MAX as u64)? {
            let number = u64::from_le_bytes(from.array()?);
            FormatError::check(last < Some(number), || "sketch: numbers do not ascend")?;
            last = Some(number);
            lows.add(number);
        }
        from.end()?;
        lows.sorted();
        Ok(Sketch { plan, seen, lows })
    }

    /// About how many distinct excluded keys there are, of all ranges of this plan.
    pub(super) fn complete(mut self, plan: &Plan) -> Result<u64, Error> {
        if self.plan != xxh3_64(plan.to_string().as_bytes()) {
            return Err(wrong("sketch", "it is for another plan; expected this one's"));
        }
        match self.seen.missing() {
            Some(cells) => Err(wrong("sketch", format!("none of the digests {}; expected all ranges", ends(&cells)))),
            None => Ok(self.lows.distinct()),
        }
    }
}
