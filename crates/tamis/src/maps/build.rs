//! pairs of keys and values -> a map: builder, collector and construction.
//!
//! ```text
//!   pairs ──push──▶ Intake ──▶ Sorted ──count──▶ plan ──▶ workers, one shard each ──in order──▶ Writer
//! ```
//!
//! Pairs are gathered as the keys of a filter are, in memory or on disk, and read twice: to count the values, and shard by
//! shard to be led down the tree. Equal pairs count once; a key with two values is an error that names both.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::count::{ValueCounts, Values};
use super::plan::{Node, TreeOptions, flat_bits, plan};
use super::query::Map;
use super::shard::{Shape, Symbols};
use super::table;
use super::tree::Target;
use super::value::{ToValue, Value};
use crate::arch::arena::Output;
use crate::debug::brief_debug;
use crate::error::{BuildError, Error, ValueError};
use crate::file::finish;
use crate::filter::build::{same_key_type, total};
use crate::filter::options::{Common, Progress, common, set};
use crate::format::{Form, Header, MAX_SHARD_BITS, Writer, put_varint};
use crate::gather::{Intake, Paired, Workspace, shard_bits};
use crate::hash::{Key, KeyType};
use crate::leaves::Role;
use crate::leaves::{fuse, ribbon};
use crate::math::portable::exp2;
use crate::names::named;
use crate::parallel::in_order;
use crate::plan::{Layout, Structure};

/// Starts a map of these pairs. Values are unsigned integers, text or bytes. One key in 256 that is in no pair gets a value
/// ([`MapBuilder::fpr`]).
///
/// ```
/// let map = tamis::map([("ann", "red"), ("bob", "blue"), ("eve", "red")]).finish()?;
/// assert_eq!(map.get_bytes("bob")?, Some(&b"blue"[..]));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn map<'a, I, K: Key, V: ToValue>(pairs: I) -> MapBuilder<'a, I>
where
    I: IntoIterator<Item = (K, V)>,
{
    MapBuilder { pairs, options: Settings::default() }
}

/// Starts a map whose pairs are pushed one by one, from a source that may fail.
///
/// ```
/// let mut pairs = tamis::maps::stream().start();
/// for line in "ann 3\nbob 5".lines() {
///     let (key, value) = line.split_once(' ').unwrap();
///     pairs.push(key, value)?;
/// }
/// assert_eq!(pairs.finish()?.len(), 2);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn stream<'a>() -> MapBuilder<'a, ()> {
    MapBuilder { pairs: (), options: Settings::default() }
}

/// Structure that stores the values of a map.
///
/// ```
/// use tamis::maps::Kind;
/// assert_eq!("fuse".parse(), Ok(Kind::Fuse));
/// assert_eq!(Kind::Fuse.to_string(), "fuse");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Kind {
    /// Compressed if that saves 2 % or more, else a ribbon.
    #[default]
    Auto,
    /// About the entropy of the values: frequent values use fewer bits than rare ones.
    Compressed,
    /// A function on a ribbon: every value uses the same number of bits, and half a percent more.
    Ribbon,
    /// A function on a binary fuse table: 13 % larger than a ribbon, and faster.
    Fuse,
}

named!(Kind: "auto" => Auto, "compressed" => Compressed, "ribbon" => Ribbon, "fuse" => Fuse);

/// Builder of a [`Map`].
///
/// ```
/// use tamis::maps::Kind;
/// let pairs = (0..1000u64).map(|key| (key, key % 7));
/// let (map, report) = tamis::map(pairs).kind(Kind::Ribbon).width(3).finish_with_report()?;
/// assert_eq!((map.get_u64(500)?, report.values), (Some(3), Some(7)));
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use = "nothing is built before `finish`"]
pub struct MapBuilder<'a, I> {
    pub(super) pairs: I,
    pub(super) options: Settings<'a>,
}

brief_debug!(MapBuilder<'a, I>, it => kind: it.options.kind, options: it.options.common);

#[derive(Clone, Debug)]
pub(super) struct Settings<'a> {
    pub(super) form: Form,
    pub(super) common: Common<'a>,
    kind: Kind,
    layout: Layout,
    /// The rate of unlisted keys; none if they get any value.
    fpr: Option<f64>,
    width: Option<u32>,
    alphabet: Option<Arc<Alphabet>>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        let (common, layout) = (Common::default(), Layout::Compact);
        Settings { form: Form::Map, common, kind: Kind::Auto, layout, fpr: Some(FPR), width: None, alphabet: None }
    }
}

/// The values that a map may have.
#[derive(Debug, Default)]
struct Alphabet {
    numbers: HashSet<u64>,
    bytes: HashSet<Vec<u8>>,
}

impl Alphabet {
    fn has(&self, value: Value<'_>) -> bool {
        match value {
            Value::Number(number) => self.numbers.contains(&number),
            Value::Bytes(bytes) => self.bytes.contains(bytes),
        }
    }
}

impl<'a, I> MapBuilder<'a, I> {
    set! {
        /// Sets the structure. The default is [`Kind::Auto`].
        kind(kind: Kind) => options.kind = kind;

        /// Sets the largest share of unlisted keys that get a value, 2^-32 or more and below 1. The default is 1/256.
        ///
        /// Each halving takes one bit per key: 8 bits for 1/256.
        ///
        /// ```
        /// let map = tamis::map((0..1000u64).map(|key| (key, key % 7))).fpr(1e-5).finish()?;
        /// assert_eq!(map.get_u64(500)?, Some(3));
        /// assert_eq!(map.get_u64(5000)?, None);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        fpr(p: f64) => options.fpr = Some(p);

        /// Makes a static function, which does not check keys and takes no bits for that. **It answers for any key**: an unlisted
        /// one gets the value of another key, or none by chance.
        ///
        /// ```
        /// let pairs = (0..1000u64).map(|key| (key, key % 8));
        /// let [map, function] = [tamis::map(pairs.clone()), tamis::map(pairs).unchecked()].map(|map| map.finish());
        /// let (map, function) = (map?, function?);
        /// assert_eq!((map.get_u64(5003)?, function.get_u64(5003)?.is_some()), (None, true));
        /// assert!(map.as_bytes().len() > function.as_bytes().len() + 1000);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        unchecked() => options.fpr = None;

        /// Declares that values are numbers below 2^bits, from 1 to 64 bits. Any other value is an error.
        ///
        /// A function then has this many bits for each value, even if all of them need fewer.
        width(bits: u32) => options.width = Some(bits);
    }

    /// Declares all values that may occur. Any other value is an error.
    ///
    /// ```
    /// let error = tamis::map([("ann", "red"), ("bob", "green")]).alphabet(["red", "blue"]).finish().unwrap_err();
    /// assert_eq!(error.to_string(), "value \"green\": not declared; expected one of the 2 declared values");
    /// ```
    pub fn alphabet<V: ToValue>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        let mut alphabet = Alphabet::default();
        for value in values {
            match value.to_value() {
                Value::Number(number) => drop(alphabet.numbers.insert(number)),
                Value::Bytes(bytes) => drop(alphabet.bytes.insert(bytes.to_vec())),
            }
        }
        self.options.alphabet = Some(Arc::new(alphabet));
        self
    }

    /// Sets the layout of a compressed map. [`Layout::Local`] stores the layers of an exact filter side by side: a few percent
    /// larger, and queries read fewer cache lines. The default is [`Layout::Compact`].
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options.layout = layout;
        self
    }

    common!(options.common);
}

impl<'a> crate::filter::build::Options<'a> {
    /// Returns a builder of a map of these pairs: see [`map`].
    pub fn map<I: IntoIterator<Item = (K, V)>, K: Key, V: ToValue>(self, pairs: I) -> MapBuilder<'a, I> {
        map(pairs).options(self)
    }
}

impl<'a> MapBuilder<'a, ()> {
    /// Starts a collector of pairs.
    pub fn start(self) -> Collector<'a> {
        Collector::new(self.options, None)
    }
}

impl<'a, I, K: Key, V: ToValue> MapBuilder<'a, I>
where
    I: IntoIterator<Item = (K, V)>,
{
    finish!("map", Map, this => this.collect()?);

    fn collect(self) -> Result<Collector<'a>, Error> {
        self.options.check()?;
        let mut collector = Collector::new(self.options, Some(K::KEY_TYPE));
        let pairs = self.pairs.into_iter();
        collector.total = total(&pairs);
        for (key, value) in pairs {
            collector.push(key, value)?;
        }
        Ok(collector)
    }
}

/// What was read and built.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Number of distinct keys.
    pub keys: u64,
    /// Number of pairs that repeat an earlier one.
    pub duplicates: u64,
    /// Number of distinct values; `None` above 2^22 numbers.
    pub values: Option<u64>,
    /// Entropy of the values in bits, summed over all keys; `None` above 2^22 numbers.
    pub entropy: Option<f64>,
    /// Length of the file.
    pub bytes: u64,
}

/// Collector of the pairs of a map: see [`stream`]. It sorts pairs, and writes them to temporary files where memory is limited.
pub struct Collector<'a> {
    pub(super) options: Settings<'a>,
    /// How many pairs come, where that is known.
    pub(super) total: Option<u64>,
    key_type: Option<KeyType>,
    workspace: Arc<Workspace>,
    pairs: Intake<Paired>,
    values: Values,
}

impl fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector of {} pairs: {:?}", self.pairs.count(), self.options.common)
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(options: Settings<'a>, key_type: Option<KeyType>) -> Collector<'a> {
        let workspace = options.common.workspace();
        let pairs = Intake::new(&workspace, workspace.memory);
        Collector { options, total: None, key_type, workspace, pairs, values: Values::default() }
    }

    /// Adds a key with its value. Equal pairs count once.
    ///
    /// # Errors
    ///
    /// [`BuildError::MixedKeyTypes`] if the key type is not that of earlier keys, [`BuildError::Value`] if the value is not as declared or
    /// not of the type of earlier values, and errors of temporary files. Two values for one key are an error of
    /// [`finish`](Collector::finish).
    pub fn push<K: Key, V: ToValue>(&mut self, key: K, value: V) -> Result<(), BuildError> {
        same_key_type::<K>(&mut self.key_type)?;
        let Settings { common, alphabet, .. } = &self.options;
        let value = value.to_value();
        self.options.check_width(value)?;
        if let Some(alphabet) = alphabet
            && !alphabet.has(value)
        {
            let declared = alphabet.numbers.len() + alphabet.bytes.len();
            return Err(ValueError::Undeclared { value: shown(value), declared }.into());
        }
        let value = self.values.number(value)?;
        let (digest, ordinal) = (key.digest(&common.hasher), self.pairs.count());
        self.pairs.push(Paired { digest, value, ordinal, rival: Paired::NONE }, &|| common.stop())?;
        common.report_progress(self.pairs.count(), Progress::Read { keys: self.pairs.count(), total: self.total })
    }

    finish!("map", Map, this => this);

    pub(super) fn write(self, out: &mut dyn Output) -> Result<Report, Error> {
        let Collector { options, key_type, workspace, pairs, values, .. } = self;
        options.check()?;
        let common = &options.common;
        common.check()?;
        common.report(Progress::Read { keys: pairs.count(), total: Some(pairs.count()) });
        let stop = || common.stop();
        let mut pairs = pairs.finish(&stop)?;
        let counted = ValueCounts::new(&pairs, &values, common.threads, &stop)?;
        let bits = shard_bits(counted.keys, workspace.shard_keys);
        if bits > MAX_SHARD_BITS {
            return Err(BuildError::TooManyKeys { keys: counted.keys, place: "file" }.into());
        }
        let mut hasher = common.hasher.clone();
        if !hasher.is_secret() && pairs.is_crowded(bits, &stop)? {
            hasher = hasher.mixed(pairs.set_hash(&stop)?);
            pairs = pairs.mapped(|digest| hasher.mix(digest), &stop)?;
        }
        let plan = options.plan(&counted, &values, bits)?;
        let shape = plan.shape();
        // A tree without nodes has no parts to shard.
        let bits = if shape.kinds().is_empty() { 0 } else { bits };
        let header = Header {
            shard_bits: bits,
            keys: counted.keys,
            negatives: counted.counts.as_ref().map_or(0, |counts| counts.len() as u64),
            ..common.header(options.form, hasher, key_type.unwrap_or(KeyType::Bytes))?
        };
        out.expect(plan.bytes);
        let mut writer = Writer::new(out, &header, shape.kinds())?.with_metadata(&common.metadata);
        let count = 1usize << bits;
        let inside = (common.threads / count).max(1);
        if !shape.kinds().is_empty() {
            let work = |shard: usize| shape.build(&pairs.range(bits, shard, &stop)?, bits, inside, &stop);
            in_order(count, common.threads, work, |shard, parts| {
                writer.shard(&parts)?;
                common.report(Progress::Built { shards: shard as u64 + 1, total: count as u64 });
                Ok(())
            })?;
        }
        let mut directory = vec![];
        put_varint(&mut directory, counted.entropy().unwrap_or(0.0).round() as u64);
        shape.encode(writer.geometries(), &mut directory);
        put_varint(&mut directory, plan.table.len() as u64);
        writer.payload(&plan.table)?;
        let bytes = writer.close(directory)?;
        common.check_cancel()?;
        Ok(Report {
            keys: counted.keys,
            duplicates: pairs.count() - counted.keys,
            values: counted.counts.as_ref().map(|counts| counts.len() as u64),
            entropy: counted.entropy(),
            bytes,
        })
    }
}

/// A value for a message: printable and short.
fn shown(value: Value<'_>) -> String {
    const MAX_QUOTED_BYTES: usize = 60;
    match value {
        Value::Number(number) => number.to_string(),
        Value::Bytes(bytes) => match bytes.get(..MAX_QUOTED_BYTES) {
            Some(head) => format!("\"{}...\"", head.escape_ascii()),
            None => format!("\"{}\"", bytes.escape_ascii()),
        },
    }
}

struct Planned {
    fingerprint: u32,
    structure: Flats,
    root: Target,
    nodes: Vec<Node>,
    symbols: Symbols,
    table: Vec<u8>,
    /// About how long the file will be.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Flats {
    Ribbon,
    Fuse,
}

impl Flats {
    pub(super) fn leaf(self, bits: u32) -> Structure {
        let width = 256 * bits as u16;
        match self {
            // The bits of a map are what it is for.
            Flats::Ribbon => ribbon::Params { width, tight: true, nested: false }.into(),
            Flats::Fuse => fuse::Params { arity: fuse::Arity::Three, width }.into(),
        }
    }
}

impl Planned {
    fn shape(&self) -> Shape<'_> {
        let Planned { fingerprint, structure, root, nodes, symbols, .. } = self;
        Shape::new(*fingerprint, *structure, *root, nodes, symbols)
    }
}

/// A compressed map that is not smaller than this share of a function is a function, which is read faster.
const MAX_COMPRESSED_SHARE: f64 = 0.98;

/// With more values the table of them matters.
const MIN_TABLED_VALUES: usize = 256;

/// The share of unlisted keys that get a value, unless the caller sets another.
const FPR: f64 = 1.0 / 256.0;

/// The most bits of a fingerprint, and of a value.
const MAX_FINGERPRINT: u32 = 32;
const MAX_WIDTH: u32 = 64;

impl Settings<'_> {
    /// Rejects options that are out of range, contradict each other, or have no effect.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let least = exp2(-f64::from(MAX_FINGERPRINT));
        if let Some(given) = self.fpr.filter(|p| !(least..1.0).contains(p)) {
            return Err(BuildError::Range { option: "fpr", given, least, most: 1.0 });
        }
        if let Some(bits) = self.width.filter(|bits| !(1..=MAX_WIDTH).contains(bits)) {
            let [given, least, most] = [bits, 1, MAX_WIDTH].map(f64::from);
            return Err(BuildError::Range { option: "width", given, least, most });
        }
        if self.layout == Layout::Local && matches!(self.kind, Kind::Ribbon | Kind::Fuse) {
            return Err(BuildError::NoEffect { option: "layout", needs: "kind compressed" });
        }
        let Some(Alphabet { numbers, bytes }) = self.alphabet.as_deref() else { return Ok(()) };
        // Of several the first in order, so that the message is the same every time.
        let values =
            [numbers.iter().max().map(|&number| Value::Number(number)), bytes.iter().min().map(|b| Value::Bytes(b))];
        if values.iter().all(Option::is_some) {
            return Err(ValueError::Mixed.into());
        }
        Ok(values.into_iter().flatten().try_for_each(|value| self.check_width(value))?)
    }

    /// Rejects a value that does not have the declared width.
    fn check_width(&self, value: Value<'_>) -> Result<(), ValueError> {
        match (value, self.width) {
            (Value::Number(number), Some(bits)) if bits < MAX_WIDTH && number >> bits > 0 => {
                Err(ValueError::Width { number, bits })
            }
            (Value::Bytes(_), Some(bits)) => Err(ValueError::NotANumber { value: shown(value), bits }),
            (Value::Number(_) | Value::Bytes(_), _) => Ok(()),
        }
    }

    /// Bits per key that tell members from unlisted keys. Where there are no keys, there is nothing to tell.
    fn fingerprint(&self, keys: u64) -> u32 {
        let enough = |p: f64| (1..MAX_FINGERPRINT).find(|&bits| exp2(-f64::from(bits)) <= p);
        self.fpr.filter(|_| keys > 0).map_or(0, |p| enough(p).unwrap_or(MAX_FINGERPRINT))
    }

    fn plan(&self, counted: &ValueCounts, values: &Values, bits: u32) -> Result<Planned, BuildError> {
        let function = match values {
            Values::Numbers | Values::None => Some(self.function(counted)),
            Values::Bytes { .. } => None,
        };
        let uniform = matches!(self.kind, Kind::Ribbon | Kind::Fuse);
        if uniform && let Some((function, _)) = function {
            return Ok(function);
        }
        let Some(counts) = &counted.counts else {
            let many = BuildError::TooMany { what: "compressed values", most: table::MAX_VALUES };
            return function.map(|(function, _)| function).filter(|_| self.kind == Kind::Auto).ok_or(many);
        };
        let fingerprint = self.fingerprint(counted.keys);
        let (effort, layout) = (self.common.effort, self.layout);
        let each: Vec<u64> = counts.iter().map(|&(_, count)| count).collect();
        // What the table will take is known when it is there: of two plans, the smaller.
        let made = |naming: f64| {
            let tree_options = TreeOptions { effort, layout, shards: 1 << bits, uniform, naming };
            let tree = plan(&each, &tree_options)?;
            let classes = tree.classes.iter().map(|&class| class as usize);
            let mut table = vec![];
            let listed = counts.iter().map(|&(value, _)| values.value(value)).zip(classes);
            table::encode(values.key_type(), &tree.sizes, listed, &mut table);
            Ok::<_, BuildError>(((tree.bits / 8.0) as u64 + table.len() as u64, tree, table))
        };
        let mut best = made(1.0)?;
        if each.len() > MIN_TABLED_VALUES && !uniform {
            let other = made(0.0)?;
            best = if other.0 < best.0 { other } else { best };
        }
        let (bytes, tree, table) = best;
        // Fingerprints take the same either way.
        if self.kind == Kind::Auto
            && let Some((function, whole)) = function
            && bytes as f64 > MAX_COMPRESSED_SHARE * whole
        {
            return Ok(function);
        }
        let symbols = Symbols::listed(counts.iter().map(|&(value, _)| value).zip(tree.symbols.iter().copied()));
        Ok(Planned {
            fingerprint,
            structure: match self.kind {
                Kind::Fuse => Flats::Fuse,
                Kind::Auto | Kind::Compressed | Kind::Ribbon => Flats::Ribbon,
            },
            root: tree.root,
            nodes: tree.nodes,
            symbols,
            table,
            bytes: bytes + (counted.keys * u64::from(fingerprint)) / 8 + 4096,
        })
    }

    /// A function of fixed width: values less the least of them; and how many bytes its values take.
    fn function(&self, counted: &ValueCounts) -> (Planned, f64) {
        let (least, bits) = match self.width {
            Some(width) => (0, width),
            None => (counted.least, 64 - (counted.most - counted.least).leading_zeros()),
        };
        let mut table = vec![];
        table::encode_offset(least, &mut table);
        let (root, nodes) = match bits {
            0 => (Target::Symbol(0), vec![]),
            _ if counted.keys == 0 => (Target::Symbol(0), vec![]),
            _ => (Target::Node(0), vec![Node::Symbols { bits, first: 0 }]),
        };
        let structure = if self.kind == Kind::Fuse { Flats::Fuse } else { Flats::Ribbon };
        let values = flat_bits(counted.keys, bits) / 8.0;
        let fingerprint = self.fingerprint(counted.keys);
        let marks = counted.keys as f64 * f64::from(fingerprint) / 8.0;
        let planned = Planned {
            fingerprint,
            structure,
            root,
            nodes,
            symbols: Symbols::Offset(least),
            table,
            bytes: ((values + marks) * 1.14) as u64 + 4096,
        };
        (planned, values)
    }
}

/// A filter in front of the tree.
pub(super) const FRONT: Role = Role::Positive;
