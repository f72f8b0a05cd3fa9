//! counts + a goal -> steps: how elementary leaves are put together, one file per construction.

pub(crate) mod cascade;
pub(crate) mod chained;
pub(crate) mod fpfs;
pub(crate) mod local;
pub(crate) mod stacked;
pub(crate) mod steered;
