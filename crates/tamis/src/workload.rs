//! queries -> what a filter will be asked: how often each value that is not a key is expected.

pub mod shape;

pub use shape::{Shape, ShapeError};
