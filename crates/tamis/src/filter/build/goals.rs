//! goals as the caller set them -> one goal for the planner, a ceiling for unlisted keys, or an error.

use crate::error::BuildError;
use crate::plan::Goal;

/// What the caller set.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Goals {
    pub(super) fpr: Option<f64>,
    pub(super) bits_per_key: Option<f64>,
    pub(super) exact: bool,
    pub(super) excluded_fpr: Option<f64>,
    pub(super) workload_fpr: Option<f64>,
    pub(super) unlisted_share: Option<f64>,
}

impl Goals {
    /// The false positive rate where the caller sets no goal.
    const DEFAULT: f64 = 0.01;

    /// The goal, and the largest rate of unlisted keys where that is not the goal.
    pub(super) fn resolve(&self) -> (Goal, Option<f64>) {
        match *self {
            Goals { exact: true, fpr, .. } => (Goal::Exact, fpr),
            Goals { excluded_fpr: Some(p), fpr, .. } => (Goal::ExcludedFpr(p), fpr),
            Goals { bits_per_key: Some(bits), fpr, .. } => (Goal::BitsPerKey(bits), fpr),
            Goals { workload_fpr: Some(p), fpr, .. } => (Goal::Fpr(p), fpr),
            Goals { fpr, .. } => (Goal::Fpr(fpr.unwrap_or(Goals::DEFAULT)), None),
        }
    }

    /// The name of one that is set.
    #[cfg(feature = "maps")]
    pub(super) fn first(&self) -> Option<&'static str> {
        let Goals { fpr, bits_per_key, exact, excluded_fpr, workload_fpr, unlisted_share } = self;
        let set = [
            ("fpr", fpr.is_some()),
            ("bits_per_key", bits_per_key.is_some()),
            ("exact", *exact),
            ("excluded_fpr", excluded_fpr.is_some()),
            ("workload_fpr", workload_fpr.is_some()),
            ("unlisted_share", unlisted_share.is_some()),
        ];
        set.iter().find(|(_, set)| *set).map(|(name, _)| *name)
    }

    /// Rejects two goals, and what matters with a workload alone. With a workload `fpr` is no goal but a ceiling.
    pub(super) fn check(&self, workload: bool) -> Result<(), BuildError> {
        let goals = [
            ("exact", self.exact),
            ("excluded_fpr", self.excluded_fpr.is_some()),
            ("bits_per_key", self.bits_per_key.is_some()),
            ("workload_fpr", self.workload_fpr.is_some()),
            ("fpr", self.fpr.is_some() && !workload),
        ];
        let mut set = goals.iter().filter(|(_, set)| *set).map(|(name, _)| *name);
        if let (Some(first), Some(second)) = (set.next(), set.next()) {
            return Err(BuildError::TwoGoals { first, second });
        }
        let shares = [("workload_fpr", self.workload_fpr), ("unlisted_share", self.unlisted_share)];
        match shares.iter().find(|(_, given)| given.is_some() && !workload) {
            Some((option, _)) => Err(BuildError::NoEffect { option, needs: "a workload" }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goal_and_a_ceiling_with_a_workload() {
        let none = Goals::default();
        assert_eq!(none.resolve(), (Goal::Fpr(0.01), None));
        let both = Goals { fpr: Some(0.1), bits_per_key: Some(9.0), ..none };
        assert_eq!(both.resolve(), (Goal::BitsPerKey(9.0), Some(0.1)));
        let says = |goals: Goals, workload| goals.check(workload).err().map(|error| error.to_string());
        assert_eq!(says(both, true), None);
        assert_eq!(says(both, false).unwrap_or_default(), "bits_per_key, fpr: two goals; expected one");
        let two = Goals { exact: true, ..both };
        assert_eq!(says(two, true).unwrap_or_default(), "exact, bits_per_key: two goals; expected one");
        let share = Goals { workload_fpr: Some(0.1), fpr: Some(1.0), ..none };
        assert_eq!((share.resolve(), says(share, true)), ((Goal::Fpr(0.1), Some(1.0)), None));
        let alone = Goals { unlisted_share: Some(0.1), ..none };
        assert_eq!(says(alone, false).unwrap_or_default(), "unlisted_share: no effect; expected a workload");
    }
}
