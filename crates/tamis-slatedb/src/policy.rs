//! a rate or a size -> `Tamis`: the policy that the engine's builders take.

use std::fmt;
use std::sync::Arc;

use slatedb::{Filter, FilterBuilder, FilterPolicy, PrefixExtractor};
use slatedb_common::metrics::MetricsRecorder;
use tamis::{Effort, Error, Hasher, Kind, Options};

use crate::counters::{Counters, Counts};
use crate::table::{TableBuilder, TableFilter};

/// A filter policy of ribbon filters, for `with_filter_policies` of the engine's builders.
///
/// ```
/// use std::sync::Arc;
/// use slatedb::{Db, FilterPolicy, object_store::memory::InMemory};
/// use tamis_slatedb::Tamis;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let policy: Arc<dyn FilterPolicy> = Arc::new(Tamis::fpr(0.0005)?);
/// let db = Db::builder("db", Arc::new(InMemory::new())).with_filter_policies(vec![policy]).build().await?;
/// db.put(b"ann", b"30").await?;
/// db.flush().await?;
/// assert_eq!(db.get(b"ann").await?.as_deref(), Some(&b"30"[..]));
/// db.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tamis {
    recipe: Recipe,
    size: Size,
    shape: Arc<Shape>,
    counters: Arc<Counters>,
}

/// How filters are built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    goal: Goal,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Goal {
    Fpr(f64),
    Bits(f64),
}

/// Where a filter has fewer keys, what it says about itself is more than one bit for each.
const FEW_KEYS: usize = 1000;

impl Recipe {
    /// The options for the filter of a table with this many keys.
    pub(crate) fn options(self, keys: usize) -> Options<'static> {
        // Tables are written by many tasks already, each with its own filter. The effort costs no time with ribbons, and 5 % are
        // saved up to 20,000 keys.
        let options = Options::default().kind(self.kind).effort(Effort::Smallest).threads(1);
        match self.goal {
            Goal::Fpr(rate) => options.fpr(rate),
            Goal::Bits(bits) if keys < FEW_KEYS => options.fpr((-bits).exp2().max(f64::MIN_POSITIVE)),
            Goal::Bits(bits) => options.bits_per_key(bits),
        }
    }
}

/// What the filters of a policy hold, and how their bytes are recognised.
pub(crate) struct Shape {
    name: String,
    pub(crate) hasher: Hasher,
    pub(crate) whole_keys: bool,
    pub(crate) extractor: Option<Arc<dyn PrefixExtractor>>,
}

impl Shape {
    /// The name has all that makes filters incompatible; rate, size and kind are in the bytes of each filter.
    fn new(whole_keys: bool, extractor: Option<Arc<dyn PrefixExtractor>>) -> Arc<Shape> {
        let mut name = Tamis::NAME.to_string();
        if let Some(extractor) = &extractor {
            name += &format!(":p={}", extractor.name());
        }
        if !whole_keys {
            name += ":wh=0";
        }
        // The seed is stored with every filter, so that it is the mark of the policy too: a filter under another name has another
        // seed. 28 bits are four bytes there.
        let seed = Hasher::seeded(0).bytes(name.as_bytes()).to_bits() as u64 & ((1 << 28) - 1);
        Arc::new(Shape { name, hasher: Hasher::seeded(seed), whole_keys, extractor })
    }
}

impl Tamis {
    /// The name of the policy without a prefix extractor.
    pub const NAME: &'static str = "tamis";

    /// Returns the policy of the smallest filters that match a key which is not in the table with this probability.
    ///
    /// The engine's Bloom filter has 0.0084 at 10 bits per key and 0.00046 at 16 bits.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if the rate is out of range.
    ///
    /// ```
    /// assert!(tamis_slatedb::Tamis::fpr(0.001).is_ok());
    /// assert_eq!(tamis_slatedb::Tamis::fpr(2.0).unwrap_err().to_string(), "fpr 2: out of range; expected 0 to 1");
    /// ```
    pub fn fpr(rate: f64) -> Result<Tamis, Error> {
        Tamis::new(Goal::Fpr(rate))
    }

    /// Returns the policy of filters of this many bits per key.
    ///
    /// That is all of a filter, also the 100 bytes that it says about itself. Tables of fewer than 1,000 keys have them on top: their
    /// filters have the rate 2^-bits.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if the number is out of range.
    ///
    /// ```
    /// let policy = tamis_slatedb::Tamis::bits_per_key(10.0)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn bits_per_key(bits: f64) -> Result<Tamis, Error> {
        Tamis::new(Goal::Bits(bits))
    }

    fn new(goal: Goal) -> Result<Tamis, Error> {
        let recipe = Recipe { goal, kind: Kind::Ribbon };
        Ok(Tamis { recipe, size: Size::of(recipe)?, shape: Shape::new(true, None), counters: Arc::default() })
    }

    /// Uses fuse filters: faster answers than a ribbon where the processor has no AVX-512, 12 % larger.
    ///
    /// Tables with ribbon filters stay readable.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if fuse filters cannot reach the goal.
    pub fn with_fuse(mut self) -> Result<Tamis, Error> {
        self.recipe.kind = Kind::Fuse;
        self.size = Size::of(self.recipe)?;
        Ok(self)
    }

    /// Adds the prefixes of keys to the filter, so that `scan_prefix` skips tables.
    ///
    /// The name of the extractor is part of the policy's name. Filters of another extractor are not used.
    pub fn with_prefix_extractor(mut self, extractor: Arc<dyn PrefixExtractor>) -> Tamis {
        self.shape = Shape::new(self.shape.whole_keys, Some(extractor));
        self
    }

    /// Sets whether the filter has whole keys. Without them it has the prefixes alone, and a get is answered by the key's prefix.
    pub fn with_whole_key_filtering(mut self, enabled: bool) -> Tamis {
        self.shape = Shape::new(enabled, self.shape.extractor.clone());
        self
    }

    /// Adds the policy's counters to a recorder, the one that the engine's builders take: `tamis.filters_built`,
    /// `tamis.filter_bytes_built`, `tamis.filters_not_built`, `tamis.filters_opened`, `tamis.filters_unreadable`.
    ///
    /// Filter answers and false positives are counted by the engine: `slatedb.db.sst_filter_false_positive_count`.
    pub fn with_metrics_recorder(mut self, recorder: &dyn MetricsRecorder) -> Tamis {
        self.counters = Arc::new(Counters::recorded(recorder));
        self
    }

    /// Returns what this policy did so far, in all databases that use it.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }
}

/// Bytes of a filter as a line. The engine needs them at every write, so that planning would be too slow.
#[derive(Clone, Copy)]
struct Size {
    first: f64,
    per_key: f64,
}

impl Size {
    /// Builds two filters. A goal that cannot be reached is an error here: when a table is written there is no place for one.
    fn of(recipe: Recipe) -> Result<Size, Error> {
        const MANY: usize = 20_000;
        let bytes = |keys: usize| -> Result<f64, Error> {
            let filter = recipe.options(keys).build((0..keys as u64).map(u64::to_le_bytes)).finish()?;
            Ok(filter.as_bytes().len() as f64)
        };
        let first = bytes(FEW_KEYS)?;
        let per_key = (bytes(MANY)? - first) / (MANY - FEW_KEYS) as f64;
        Ok(Size { first: first - FEW_KEYS as f64 * per_key, per_key })
    }

    fn bytes(self, keys: usize) -> usize {
        (self.first + self.per_key * keys as f64) as usize
    }
}

impl fmt::Debug for Tamis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tamis").field("name", &self.shape.name).field("recipe", &self.recipe).finish()
    }
}

impl FilterPolicy for Tamis {
    fn name(&self) -> &str {
        &self.shape.name
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(TableBuilder::new(self.recipe, self.shape.clone(), self.counters.clone()))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(TableFilter::decode(data, self.shape.clone(), &self.counters))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.size.bytes(num_keys)
    }

    fn supports_prefix_queries(&self) -> bool {
        self.shape.extractor.is_some()
    }
}
