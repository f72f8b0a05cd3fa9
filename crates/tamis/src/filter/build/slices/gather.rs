//! the digests of a range, one by one -> both sides, sorted; on disk past the memory limit.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::plan::{Plan, Round, SliceReport, prepared};
use super::survey::{Sketch, Survey};
use super::{KeyRange, wrong};
use crate::debug::brief_debug;
use crate::error::Error;
use crate::file::{to_file, to_memory};
use crate::filter::build::Options;
use crate::gather::{KeyIntake, Keys, Tagged, Workspace};
use crate::hash::{Digest, KeyType};
use crate::plan::Goal;

/// Digests of one range that come one by one, for a survey, a plan or a slice.
///
/// ```
/// use tamis::slices::{Gather, KeyRange, join};
/// let options = tamis::Options::default().fpr(0.01);
/// let hasher = tamis::Hasher::seeded(0);
/// let mut keys = Gather::new(&options, KeyRange::ALL)?;
/// for name in ["ann", "bob"] {
///     keys.push(hasher.bytes(name.as_bytes()))?;
/// }
/// let plan = keys.plan(tamis::KeyType::Bytes, 64)?;
///
/// let mut keys = plan.gather(0)?;
/// keys.push(hasher.bytes(b"bob"))?;
/// keys.push(hasher.bytes(b"ann"))?;
/// assert!(join([keys.slice(&plan)?])?.contains("ann")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Gather {
    options: Options<'static>,
    range: KeyRange,
    workspace: Arc<Workspace>,
    keys: KeyIntake,
    excluded: Option<KeyIntake>,
}

brief_debug!(Gather, it => range: it.range, keys: it.keys.count());

/// Both sides of a range.
pub(super) struct Sides {
    pub(super) keys: Keys,
    pub(super) excluded: Option<Keys>,
}

impl Gather {
    /// Starts with no digest, within the limits of the options.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`](crate::BuildError::Slices) if an option is not for slices; else as a build with these options.
    pub fn new(options: &Options<'_>, range: KeyRange) -> Result<Gather, Error> {
        Ok(Gather::prepared(prepared(options)?, range))
    }

    pub(super) fn prepared(options: Options<'static>, range: KeyRange) -> Gather {
        let workspace = options.common.workspace();
        let keys = KeyIntake::new(&workspace, workspace.memory, false);
        Gather { options, range, workspace, keys, excluded: None }
    }

    fn check(&self, digest: Digest, what: &'static str) -> Result<(), Error> {
        if self.range.contains(digest) {
            return Ok(());
        }
        let (top, range) = (digest.to_bits() >> 116, self.range);
        Err(wrong(what, format!("a digest {top:03x}.. is not of range {range}; expected another range")))
    }

    /// Adds the digest of a key.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`](crate::BuildError::Slices) if it is not of this range; errors of limits and temporary files.
    pub fn push(&mut self, digest: Digest) -> Result<(), Error> {
        self.check(digest, "keys")?;
        let options = &self.options;
        Ok(self.keys.push(Tagged { digest, weight: 1, ordinal: 0 }, &|| options.common.stop())?)
    }

    /// Adds the digest of an excluded key.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn exclude(&mut self, digest: Digest) -> Result<(), Error> {
        self.check(digest, "excluded")?;
        let Gather { options, workspace, keys, excluded, .. } = self;
        let stop = || options.common.stop();
        let excluded = match excluded {
            Some(excluded) => excluded,
            none => {
                // From now on there are two sides to share the memory.
                keys.share(workspace.memory / 2, &stop)?;
                let tagged = matches!(options.goal, Goal::ExcludedFpr(_));
                none.insert(KeyIntake::new(workspace, workspace.memory / 2, tagged))
            }
        };
        Ok(excluded.push(Tagged { digest, weight: 1, ordinal: 0 }, &stop)?)
    }

    /// Adds many.
    pub(super) fn all(
        mut self,
        keys: impl IntoIterator<Item = Digest>,
        excluded: impl IntoIterator<Item = Digest>,
    ) -> Result<Gather, Error> {
        keys.into_iter().try_for_each(|digest| self.push(digest))?;
        excluded.into_iter().try_for_each(|digest| self.exclude(digest))?;
        Ok(self)
    }

    pub(super) fn finish(self) -> Result<(Options<'static>, KeyRange, Sides), Error> {
        let Gather { options, range, keys, excluded, .. } = self;
        let stop = || options.common.stop();
        let sides =
            Sides { keys: keys.finish(&stop)?, excluded: excluded.map(|excluded| excluded.finish(&stop)).transpose()? };
        Ok((options, range, sides))
    }

    /// Surveys them: see [`Survey::new`].
    ///
    /// # Errors
    ///
    /// As [`Survey::new`].
    pub fn survey(self) -> Result<Survey, Error> {
        let (options, range, sides) = self.finish()?;
        Survey::of_sides(&options, range, &sides)
    }

    /// Sketches the excluded keys among them: see [`Plan::sketch`].
    ///
    /// # Errors
    ///
    /// Errors of limits and temporary files.
    pub fn sketch(self, plan: &Plan) -> Result<Sketch, Error> {
        let (_, range, sides) = self.finish()?;
        Sketch::of_sides(plan, range, &sides)
    }

    /// Plans for them, where they are all there are: both rounds before the build at once. See [`Plan::new`].
    ///
    /// # Errors
    ///
    /// As [`Plan::new`], and if the range is not [`KeyRange::ALL`].
    pub fn plan(self, key_type: KeyType, slices: u32) -> Result<Plan, Error> {
        let (options, range, sides) = self.finish()?;
        let survey = Survey::of_sides(&options, range, &sides)?;
        let plan = Plan::of_prepared(options, key_type, survey, slices)?;
        match plan.round() {
            Round::Sketch => {
                let sketch = Sketch::of_sides(&plan, range, &sides)?;
                plan.with_sketch(sketch)
            }
            Round::Build => Ok(plan),
        }
    }

    fn check_slice(&self, plan: &Plan) -> Result<u32, Error> {
        match plan.range(self.range.index())? == self.range {
            true => Ok(self.range.index()),
            false => {
                Err(wrong("slice", format!("range {} is no slice of the plan; expected Plan::gather", self.range)))
            }
        }
    }

    /// Builds the slice of a plan: see [`Plan::slice`].
    ///
    /// # Errors
    ///
    /// As [`Plan::slice`].
    pub fn slice(self, plan: &Plan) -> Result<Bytes, Error> {
        let slice = self.check_slice(plan)?;
        let (options, _, sides) = self.finish()?;
        Ok(to_memory(|out| plan.write(&options, slice, sides, out))?.0)
    }

    /// Builds the slice of a plan into a file, which is there whole or not at all.
    ///
    /// # Errors
    ///
    /// As [`Plan::slice`], and [`Error::Io`] if the file cannot be written.
    pub fn slice_to(self, plan: &Plan, path: impl AsRef<Path>) -> Result<SliceReport, Error> {
        let slice = self.check_slice(plan)?;
        let (options, _, sides) = self.finish()?;
        to_file(path.as_ref(), options.common.writes_secret(), |out| plan.write(&options, slice, sides, out))
    }
}
