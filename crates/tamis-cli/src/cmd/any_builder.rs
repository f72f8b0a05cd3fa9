//! keys, with labels or without -> the builder that takes them in.

use std::path::Path;

use anyhow::{Result, bail};
use tamis::Comparison;
use tamis::{Collector, Filter, Partitioned, Report, Sealed};

use crate::input::KeyRef;

/// The keys of a filter to be. Boxed, for the kinds differ much in size.
pub(crate) enum AnyBuilder {
    /// Keys come in.
    Collecting(Box<Collector<'static>>),
    /// Keys to exclude come in.
    Sealed(Box<Sealed<'static>>),
    /// Both, each under a label.
    Partitioned(Box<Partitioned<'static>>),
}

impl AnyBuilder {
    /// Adds a key.
    pub(crate) fn push(&mut self, key: KeyRef<'_>, label: Option<&[u8]>) -> Result<()> {
        match (self, key) {
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.push(bytes).map_err(tamis::Error::from)?,
            (AnyBuilder::Collecting(keys), KeyRef::U64(number)) => keys.push(number).map_err(tamis::Error::from)?,
            (AnyBuilder::Partitioned(keys), key) => {
                let label = label.unwrap_or_default();
                let pushed = match key {
                    KeyRef::Bytes(bytes) => keys.push(label, bytes),
                    KeyRef::U64(number) => keys.push(label, number),
                };
                pushed.map_err(tamis::Error::from)?;
            }
            (AnyBuilder::Sealed(_), _) => bail!("a key came after the last"),
        }
        Ok(())
    }

    /// No more keys will come, but keys to exclude.
    pub(crate) fn seal(self) -> Result<AnyBuilder> {
        Ok(match self {
            AnyBuilder::Collecting(keys) => AnyBuilder::Sealed(Box::new(keys.seal()?)),
            builder => builder,
        })
    }

    /// Adds a key to exclude.
    pub(crate) fn exclude(&mut self, key: KeyRef<'_>, label: Option<&[u8]>) -> Result<()> {
        let label = label.unwrap_or_default();
        let excluded = match (self, key) {
            (AnyBuilder::Sealed(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes),
            (AnyBuilder::Sealed(keys), KeyRef::U64(number)) => keys.exclude(number),
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes).map_err(Into::into),
            (AnyBuilder::Collecting(keys), KeyRef::U64(number)) => keys.exclude(number).map_err(Into::into),
            (AnyBuilder::Partitioned(keys), KeyRef::Bytes(bytes)) => keys.exclude(label, bytes).map_err(Into::into),
            (AnyBuilder::Partitioned(keys), KeyRef::U64(number)) => keys.exclude(label, number).map_err(Into::into),
        };
        Ok(excluded?)
    }

    /// Adds a query to expect.
    pub(crate) fn push_query(&mut self, key: KeyRef<'_>, weight: f64) -> Result<()> {
        let expected = match (self, key) {
            (AnyBuilder::Sealed(keys), KeyRef::Bytes(bytes)) => keys.push_query(bytes, weight),
            (AnyBuilder::Sealed(keys), KeyRef::U64(number)) => keys.push_query(number, weight),
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.push_query(bytes, weight).map_err(Into::into),
            (AnyBuilder::Collecting(keys), KeyRef::U64(number)) => keys.push_query(number, weight).map_err(Into::into),
            (AnyBuilder::Partitioned(_), _) => bail!("expected queries carry no labels"),
        };
        Ok(expected?)
    }

    /// All designs side by side.
    pub(crate) fn plan(self) -> Result<Comparison> {
        Ok(match self {
            AnyBuilder::Collecting(keys) => keys.seal()?.plan()?,
            AnyBuilder::Sealed(keys) => keys.plan()?,
            AnyBuilder::Partitioned(_) => {
                bail!("--partition-column: every group of labels has a plan of its own; expected keys without labels")
            }
        })
    }

    /// Builds the filter in memory.
    pub(crate) fn finish(self) -> Result<(Filter, Report), tamis::Error> {
        match self {
            AnyBuilder::Collecting(keys) => keys.seal()?.finish_with_report(),
            AnyBuilder::Sealed(keys) => keys.finish_with_report(),
            AnyBuilder::Partitioned(keys) => keys.finish_with_report(),
        }
    }

    /// Builds the filter into a file.
    pub(crate) fn finish_to(self, path: &Path) -> Result<Report, tamis::Error> {
        match self {
            AnyBuilder::Collecting(keys) => keys.finish_to(path),
            AnyBuilder::Sealed(keys) => keys.finish_to(path),
            AnyBuilder::Partitioned(keys) => keys.finish_to(path),
        }
    }
}
