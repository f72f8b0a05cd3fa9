//! keys, with partitions or without -> the builder of their filter.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use tamis::{Collector, Comparison, Filter, Partitioned, Report, Sealed};

use crate::input::KeyRef;

/// Builder of a filter. Boxed, for the kinds differ much in size.
pub(crate) enum AnyBuilder {
    /// Takes keys.
    Collecting(Box<Collector<'static>>),
    /// Takes excluded keys.
    Sealed(Box<Sealed<'static>>),
    /// Takes both, each with a partition.
    Partitioned(Box<Partitioned<'static>>),
}

/// The error of a plan for partitions.
pub(crate) fn no_partitions() -> Error {
    anyhow!("--partition-column: not possible with plan; expected keys without partitions")
}

impl AnyBuilder {
    /// Adds a key.
    pub(crate) fn push(&mut self, key: KeyRef<'_>, partition: Option<&[u8]>) -> Result<()> {
        match (self, key) {
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.push(bytes).map_err(tamis::Error::from)?,
            (AnyBuilder::Collecting(keys), KeyRef::Integer(number)) => keys.push(number).map_err(tamis::Error::from)?,
            (AnyBuilder::Partitioned(keys), key) => {
                let partition = partition.unwrap_or_default();
                let pushed = match key {
                    KeyRef::Bytes(bytes) => keys.push(partition, bytes),
                    KeyRef::Integer(number) => keys.push(partition, number),
                };
                pushed.map_err(tamis::Error::from)?;
            }
            (AnyBuilder::Sealed(_), _) => bail!("a key after the last"),
        }
        Ok(())
    }

    /// Ends the keys; excluded keys may follow.
    pub(crate) fn seal(self) -> Result<AnyBuilder> {
        Ok(match self {
            AnyBuilder::Collecting(keys) => AnyBuilder::Sealed(Box::new(keys.seal()?)),
            builder => builder,
        })
    }

    /// Adds an excluded key.
    pub(crate) fn exclude(&mut self, key: KeyRef<'_>, partition: Option<&[u8]>) -> Result<()> {
        let partition = partition.unwrap_or_default();
        let excluded = match (self, key) {
            (AnyBuilder::Sealed(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes),
            (AnyBuilder::Sealed(keys), KeyRef::Integer(number)) => keys.exclude(number),
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.exclude(bytes).map_err(Into::into),
            (AnyBuilder::Collecting(keys), KeyRef::Integer(number)) => keys.exclude(number).map_err(Into::into),
            (AnyBuilder::Partitioned(keys), KeyRef::Bytes(bytes)) => keys.exclude(partition, bytes).map_err(Into::into),
            (AnyBuilder::Partitioned(keys), KeyRef::Integer(number)) => {
                keys.exclude(partition, number).map_err(Into::into)
            }
        };
        Ok(excluded?)
    }

    /// Adds an expected query.
    pub(crate) fn push_query(&mut self, key: KeyRef<'_>, weight: f64) -> Result<()> {
        let expected = match (self, key) {
            (AnyBuilder::Sealed(keys), KeyRef::Bytes(bytes)) => keys.push_query(bytes, weight),
            (AnyBuilder::Sealed(keys), KeyRef::Integer(number)) => keys.push_query(number, weight),
            (AnyBuilder::Collecting(keys), KeyRef::Bytes(bytes)) => keys.push_query(bytes, weight).map_err(Into::into),
            (AnyBuilder::Collecting(keys), KeyRef::Integer(number)) => {
                keys.push_query(number, weight).map_err(Into::into)
            }
            (AnyBuilder::Partitioned(_), _) => {
                bail!("--workload: not possible with --partition-column; expected one of them")
            }
        };
        Ok(expected?)
    }

    /// All designs side by side.
    pub(crate) fn plan(self) -> Result<Comparison> {
        Ok(match self {
            AnyBuilder::Collecting(keys) => keys.seal()?.plan()?,
            AnyBuilder::Sealed(keys) => keys.plan()?,
            AnyBuilder::Partitioned(_) => return Err(no_partitions()),
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
