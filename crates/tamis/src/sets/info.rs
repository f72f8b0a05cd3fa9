//! a segment -> its parts and what to expect of it, for a person.

use super::groups::Repeats;
use super::segment::{Body, Content, Segment, Sketch, with_body};
use crate::leaves::Geometry;
use crate::math::csc::Rows;
use crate::names::named;

/// Structure of an index or of one of its segments.
///
/// ```
/// use tamis::sets::Kind;
/// let index = tamis::sets([("ann", "red")]).kind("cuckoo".parse()?).finish()?;
/// assert!(index.segments().all(|segment| segment.kind == Kind::Cuckoo));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The builder chooses: frozen, or Bloom with counts, a capacity or a budget.
    #[default]
    Auto,
    /// CSC-BF: rows of bits. Pairs and sets can be inserted later.
    Bloom,
    /// CSC-CF: rows of fingerprints. Pairs can be removed, too. Fewer false sets in the same space, and slower queries.
    Cuckoo,
    /// Keys share set lists. The smallest, without false sets for members, and it does not change.
    Frozen,
}

named!(Kind: "auto" => Auto, "bloom" => Bloom, "cuckoo" => Cuckoo, "frozen" => Frozen);

/// One segment of an index: its structure and sizes. Pairs that are added or merged may form new segments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Bloom, cuckoo or frozen.
    pub kind: Kind,
    /// Number of its sets.
    pub sets: u32,
    /// Number of distinct keys; an upper bound after keys were inserted one by one.
    pub keys: u64,
    /// Number of pairs of a key and a set.
    pub pairs: u64,
    /// Number of pairs that fit in all.
    pub capacity: u64,
    /// Parameters of the structure, in words.
    pub details: String,
    /// Names of its parts and their bytes.
    pub parts: Vec<(&'static str, u64)>,
    /// Predicted false sets of an unlisted key.
    pub false_sets: f64,
    /// Predicted false sets of a member that is in an average number of sets.
    pub member_false_sets: f64,
}

impl SegmentInfo {
    /// Looks at the whole table of a sketch: what it does depends on how full it is.
    pub(super) fn new(segment: &Segment) -> SegmentInfo {
        let (sets, keys, pairs) = (segment.numbers.len(), segment.keys, segment.pairs);
        let each = pairs as f64 / keys.max(1) as f64;
        let (kind, details, parts, false_sets, member_false_sets) = match &segment.content {
            Content::Frozen(frozen, _) => {
                let [filter, map, lists] = frozen.payloads().map(|payload| payload.len() as u64);
                let rate = frozen.filter.as_ref().map_or(1.0, |filter| filter.fpr());
                let count = frozen.lists.count;
                let details = format!("{count} set list{}", if count == 1 { "" } else { "s" });
                (Kind::Frozen, details, vec![("filter", filter), ("map", map), ("lists", lists)], rate * each, 0.0)
            }
            Content::Sketch(sketch) => {
                let kind = if matches!(sketch.body, Body::Bloom(_)) { Kind::Bloom } else { Kind::Cuckoo };
                let (false_sets, member_false_sets) = sketch.false_sets(sets, each);
                (kind, sketch.details(), sketch.parts(), false_sets, member_false_sets)
            }
        };
        SegmentInfo {
            kind,
            sets,
            keys,
            pairs,
            capacity: segment.capacity,
            details,
            parts,
            false_sets,
            member_false_sets,
        }
    }
}

impl Sketch {
    /// For keys of no set and of so many.
    fn false_sets(&self, sets: u32, each: f64) -> (f64, f64) {
        let rate = with_body!(&self.body, body => body.fpr(&self.words));
        let Repeats { repetitions, partitions } = with_body!(&self.body, body => body.repeats);
        let rows = Rows { sets, repetitions, partitions };
        let passing = self.existence.as_ref().map_or(1.0, |(filter, _)| filter.fpr());
        (passing * rows.false_sets(0.0, rate), rows.false_sets(each, rate))
    }

    fn details(&self) -> String {
        let mut details = with_body!(&self.body, body => body.details());
        for (side, what) in [(&self.heavy, "heavy keys"), (&self.extra, "keys without room")] {
            if !side.is_empty() {
                details += &format!(", {} {what}", side.len());
            }
        }
        details
    }

    fn parts(&self) -> Vec<(&'static str, u64)> {
        let filter = self.existence.as_ref().map_or(0, |(_, payload)| payload.len() as u64);
        let sides = self.heavy.bytes() + self.extra.bytes();
        let parts = [("filter", filter), ("side tables", sides), ("table", self.words.len() as u64)];
        parts.into_iter().filter(|&(_, bytes)| bytes > 0).collect()
    }
}
