//! parts of adaptive filters -> benchmarks and tests of the repository.

pub use super::broom::{Block, Statistics};
pub use super::stacked::{Phase, StackedOutcome};
pub use super::verbs::{Kept, Mechanism, PlanRemoval, Task};
