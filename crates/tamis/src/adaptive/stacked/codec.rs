//! a stack that learns <-> a file; queries that were counted for another plan are not in it, and are counted again.

use bytes::Bytes;

use crate::adaptive::Kept;
use crate::adaptive::file::{self, Kind, put_varints};
use crate::error::{BuildError, FormatError};
use crate::format::Reader;
use crate::hash::{Digest, Hasher, KeyType, Salt};
use crate::leaves::{Entry, Leaf, bloom, cuckoo, quotient};
use crate::math::shape::Shape;
use crate::plan::Base;

use super::plan::{Plan, StackGoal};
use super::window::Window;
use super::{AdaptiveStacked, Layer, Phase, counter};

/// More layers than any plan has.
const MAX_LAYERS: u64 = 15;
/// More classes of queries than a shape has.
const MAX_CLASSES: usize = 4096;

impl Kept for AdaptiveStacked {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.set.hasher, self.set.key_type)
    }

    #[inline]
    fn contains_digest(&self, key: Digest) -> bool {
        match self.layers.iter().position(|layer| !layer.part.contains(key)) {
            // A layer on negatives does not have it: yes. One on keys: no.
            Some(layer) => layer % 2 == 1,
            None => true,
        }
    }

    /// ```text
    ///   base u8, the tag of its leaf | bits per key f64 | lifetime + 1, or 0 | sample | memory      numbers without a type: varints
    ///   sum over the keys u64 | phase u8 | dropped u8 | layers ever made | queries | psi f64 | window: queries, passed
    ///   plan: layers, their rates f64 | known f64 | queries
    ///   share of unseen queries f64 | layers that answer | whether one is open u8
    ///   per layer, the open one last: number of its salt | entries | geometry
    ///   payloads: the classes of queries (share f64, values u64), then the layers
    /// ```
    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let mut fields = vec![tag(self.goal.base)];
        fields.extend(self.goal.bits.to_le_bytes());
        let lifetime = self.goal.lifetime.map_or(0, |queries| queries.saturating_add(1));
        put_varints(&mut fields, [lifetime, self.sample, self.memory]);
        fields.extend(self.set.sum.to_le_bytes());
        fields.extend([self.phase as u8, u8::from(self.dropped)]);
        put_varints(&mut fields, [self.made, self.queries]);
        fields.extend(self.psi.to_le_bytes());
        put_varints(&mut fields, [self.window.queries, self.window.passed, self.plan.alphas.len() as u64]);
        fields.extend(self.plan.alphas.iter().chain([&self.plan.known]).flat_map(|number| number.to_le_bytes()));
        put_varints(&mut fields, [self.plan.queries]);
        fields.extend(self.shape.unseen().to_le_bytes());
        put_varints(&mut fields, [self.layers.len() as u64]);
        fields.push(u8::from(self.open.is_some()));
        let classes = self.shape.classes().flat_map(|(share, values)| [share.to_bits(), values]);
        let mut payloads = vec![file::bytes_of(&classes.collect::<Vec<_>>())];
        for layer in self.layers.iter().chain(&self.open) {
            put_varints(&mut fields, [layer.number, layer.entries]);
            fields.extend(layer.part.encoded().into_iter().flat_map(|part| part.geometry));
            payloads.push(layer.part.payload().to_vec());
        }
        file::write(Kind::Stacked, &self.set.hasher, self.set.key_type, self.set.keys, &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<AdaptiveStacked, FormatError> {
        let file = file::read(bytes, secret, Kind::Stacked)?;
        let mut from = file.fields();
        let base = base(from.u8()?)?;
        let bits = number(&mut from, "bits per key", 1.0, 1024.0)?;
        let lifetime = from.varint()?.checked_sub(1);
        let (sample, memory) = (from.within("sample", 1..=u64::MAX)?, from.varint()?);
        let set = file.key_set(&mut from)?;
        let phase = match from.within("phase", 0..=2)? {
            0 => Phase::Collecting,
            1 => Phase::Stacked,
            _ => Phase::Remodelling,
        };
        let dropped = from.within("dropped", 0..=1)? == 1;
        let made = from.within("layers ever made", 1..=u64::MAX >> 1)?;
        let queries = from.varint()?;
        let psi = number(&mut from, "share of known queries", 0.0, 1.0)?;
        let window = Window { queries: from.varint()?, passed: from.varint()? };
        let planned = from.within("planned layers", 1..=MAX_LAYERS)?;
        let alphas = (0..planned).map(|_| number(&mut from, "rate", 0.0, 1.0)).collect::<Result<Vec<_>, _>>()?;
        let known = number(&mut from, "known negatives", 0.0, (1u64 << 48) as f64)?;
        let plan = Plan { alphas, known, queries: from.varint()? };
        let unseen = number(&mut from, "share of unlisted queries", 0.0, 1.0)?;
        let count = from.within("layers", 1..=planned)?;
        let is_open = from.within("open layer", 0..=1)? == 1;
        let fits = match phase {
            Phase::Collecting => is_open && count < planned,
            Phase::Stacked => !is_open && count == planned,
            Phase::Remodelling => !is_open && count == 1,
        };
        FormatError::check(fits && count % 2 == 1 && planned % 2 == 1, || {
            format!("directory: {count} of {planned} layers do not fit the phase {phase:?}")
        })?;
        let mut payloads = file.payloads();
        let shape = shape(payloads.next()?, unseen)?;
        let mut layers = vec![];
        for _ in 0..count + u64::from(is_open) {
            let number = from.within("number of a salt", 0..=made - 1)?;
            let entries = from.varint()?;
            let mut leaf = Leaf::decode(tag(base), &mut from, 0, Salt::secret(&set.hasher, number))?;
            let (payload, len) = (payloads.next()?, leaf.payload_len(0));
            let found = payload.len();
            FormatError::check(found as u64 == len, || format!("payload: a layer of {found} bytes, expected {len}"))?;
            leaf.set_place(0, 0, payload.clone());
            let part = leaf.layers().and_then(|mut parts| parts.pop());
            let part = part.ok_or_else(|| FormatError::invalid("directory: a layer that does not change"))?;
            layers.push(Layer { number, part, entries });
        }
        from.end()?;
        payloads.end()?;
        let open = if is_open { layers.pop() } else { None };
        // A key that is put into a table without room is not found again.
        let no_table = |layer: &Layer| layer.part.payload().is_empty();
        let missing = open.as_ref().is_some_and(no_table) || (set.keys > 0 && no_table(&layers[0]));
        FormatError::check(!missing, || "payload: a layer without a table")?;
        // An open layer is made by the plan, so the plan must be one for such a first layer.
        let goal = StackGoal { base, bits, lifetime };
        let (planned, first) = (plan.bits_from(1, goal.size(), set.keys), layers[0].part.payload().len());
        FormatError::check(planned <= 512.0 * first as f64 + 4096.0, || {
            format!("directory: {planned:.0} bits above a first layer of {first} bytes")
        })?;
        // Its first table.
        from.draw(if phase == Phase::Remodelling { 8 << 10 } else { 0 })?;
        let counter = (phase == Phase::Remodelling).then(|| counter(memory));
        let queries = if counter.is_some() { 0 } else { queries };
        Ok(AdaptiveStacked {
            set,
            goal,
            shape,
            sample,
            memory,
            plan,
            layers,
            open,
            phase,
            dropped,
            made,
            queries,
            psi,
            window,
            counter,
        })
    }
}

fn tag(base: Base) -> u8 {
    match base {
        Base::Cuckoo => cuckoo::Cuckoo::TAG,
        Base::Quotient => quotient::Quotient::TAG,
        Base::Bloom | Base::Ribbon | Base::Fuse | Base::Fuse4 => bloom::Classic::TAG,
    }
}

fn base(tag: u8) -> Result<Base, FormatError> {
    match tag {
        bloom::Classic::TAG => Ok(Base::Bloom),
        cuckoo::Cuckoo::TAG => Ok(Base::Cuckoo),
        quotient::Quotient::TAG => Ok(Base::Quotient),
        _ => Err(FormatError::invalid(format!("directory: layers have tag {tag}, expected that of one that changes"))),
    }
}

fn number(from: &mut Reader<'_>, name: &str, low: f64, high: f64) -> Result<f64, FormatError> {
    let value = f64::from_le_bytes(from.array()?);
    let reason = || format!("directory: {name} is {value}, expected {low} to {high}");
    FormatError::check((low..=high).contains(&value), reason)?;
    Ok(value)
}

/// The shape of queries from its classes.
fn shape(payload: &[u8], unseen: f64) -> Result<Shape, FormatError> {
    let words = file::words_of(payload)?;
    let (classes, rest) = words.as_chunks::<2>();
    let fits = rest.is_empty() && classes.len() <= MAX_CLASSES;
    FormatError::check(fits, || format!("payload: {} words of a shape", words.len()))?;
    Shape::new(classes.iter().map(|&[share, values]| (f64::from_bits(share), values)), unseen)
        .map_err(|e| FormatError::invalid(format!("payload: {e}")))
}
