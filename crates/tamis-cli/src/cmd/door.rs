//! keys, with labels or without -> the builder that takes them in.

use std::path::Path;

use anyhow::{Result, bail};
use tamis::plan::Comparison;
use tamis::{Collector, Filter, Partitioned, Report, Sealed};

use crate::input::KeyRef;

/// The keys of a filter to be. Boxed, for the kinds differ much in size.
pub(crate) enum Door {
    /// Keys come in.
    Open(Box<Collector>),
    /// Keys to exclude come in.
    Sealed(Box<Sealed>),
    /// Both, each under a label.
    Labelled(Box<Partitioned>),
}

impl Door {
    /// Adds a key.
    pub(crate) fn push(&mut self, key: KeyRef<'_>, label: Option<&[u8]>) -> Result<()> {
        match (self, key) {
            (Door::Open(keys), KeyRef::Bytes(bytes)) => keys.push(bytes).map_err(tamis::Error::from)?,
            (Door::Open(keys), KeyRef::U64(number)) => keys.push(number).map_err(tamis::Error::from)?,
            (Door::Labelled(keys), key) => {
                let label = label.unwrap_or_default();
                let pushed = match key {
                    KeyRef::Bytes(bytes) => keys.push(label, bytes),
                    KeyRef::U64(number) => keys.push(label, number),
                };
                pushed.map_err(tamis::Error::from)?;
            }
            (Door::Sealed(_), _) => bail!("a key came after the last"),
        }
        Ok(())
    }

    /// No more keys will come, but keys to exclude.
    pub(crate) fn seal(self) -> Result<Door> {
        Ok(match self {
            Door::Open(keys) => Door::Sealed(Box::new(keys.seal()?)),
            door => door,
        })
    }

    /// Adds a key to exclude.
    pub(crate) fn exclude(&mut self, key: KeyRef<'_>, label: Option<&[u8]>) -> Result<()> {
        let label = label.unwrap_or_default();
        let excluded = match (self, key) {
            (Door::Sealed(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes),
            (Door::Sealed(keys), KeyRef::U64(number)) => keys.exclude(number),
            (Door::Open(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes).map_err(Into::into),
            (Door::Open(keys), KeyRef::U64(number)) => keys.exclude(number).map_err(Into::into),
            (Door::Labelled(keys), KeyRef::Bytes(bytes)) => keys.exclude(label, bytes).map_err(Into::into),
            (Door::Labelled(keys), KeyRef::U64(number)) => keys.exclude(label, number).map_err(Into::into),
        };
        Ok(excluded?)
    }

    /// Adds a query to expect.
    pub(crate) fn expect(&mut self, key: KeyRef<'_>, weight: f64) -> Result<()> {
        let expected = match (self, key) {
            (Door::Sealed(keys), KeyRef::Bytes(bytes)) => keys.expect(bytes, weight),
            (Door::Sealed(keys), KeyRef::U64(number)) => keys.expect(number, weight),
            (Door::Open(keys), KeyRef::Bytes(bytes)) => keys.expect(bytes, weight).map_err(Into::into),
            (Door::Open(keys), KeyRef::U64(number)) => keys.expect(number, weight).map_err(Into::into),
            (Door::Labelled(_), _) => bail!("expected queries carry no labels"),
        };
        Ok(expected?)
    }

    /// All designs side by side.
    pub(crate) fn plan(self) -> Result<Comparison> {
        Ok(match self {
            Door::Open(keys) => keys.seal()?.plan()?,
            Door::Sealed(keys) => keys.plan()?,
            Door::Labelled(_) => {
                bail!("--partition-column: every group of labels has a plan of its own; expected keys without labels")
            }
        })
    }

    /// Builds the filter in memory.
    pub(crate) fn finish(self) -> Result<(Filter, Report), tamis::Error> {
        match self {
            Door::Open(keys) => keys.seal()?.finish_with_report(),
            Door::Sealed(keys) => keys.finish_with_report(),
            Door::Labelled(keys) => keys.finish_with_report(),
        }
    }

    /// Builds the filter into a file.
    pub(crate) fn finish_to(self, path: &Path) -> Result<Report, tamis::Error> {
        match self {
            Door::Open(keys) => keys.finish_to(path),
            Door::Sealed(keys) => keys.finish_to(path),
            Door::Labelled(keys) => keys.finish_to(path),
        }
    }
}
