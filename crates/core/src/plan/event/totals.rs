//! The counts of a plan's tasks, and which of them a summary shows.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ResourceUse;

/// The number of tasks of each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub tasks: usize,
    /// Those that were begun.
    pub ran: usize,
    /// Those that ended well.
    pub done: usize,
    /// Those of them that a check proves; the existence of files alone does not.
    pub verified: usize,
    /// Those that failed for good.
    pub failed: usize,
    /// Failed tasks that another task made up for.
    #[serde(default)]
    pub mended: usize,
    /// Tasks that were skipped.
    pub skipped: usize,
    /// Tasks that were cancelled.
    pub cancelled: usize,
    /// Those that were answered from the cache: they ended well without being begun.
    #[serde(default)]
    pub cached: usize,
    /// Money and time of all.
    pub spent: ResourceUse,
}

/// A count that a summary shows behind the number of tasks that are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedOutcome {
    /// Done without work: answered from the cache.
    Cached,
    /// Done and proven by a check.
    Verified,
    /// Failed for good.
    Failed,
    /// Failed, and another task made up for it.
    Mended,
    Skipped,
    GivenUp,
}

impl Totals {
    /// The counts of a summary, in order. Verified and failed tasks are always counted, other outcomes if there are any.
    pub fn outcomes(&self) -> impl Iterator<Item = (CountedOutcome, usize)> {
        let all = [
            (CountedOutcome::Cached, self.cached),
            (CountedOutcome::Verified, self.verified),
            (CountedOutcome::Failed, self.failed),
            (CountedOutcome::Mended, self.mended),
            (CountedOutcome::Skipped, self.skipped),
            (CountedOutcome::GivenUp, self.cancelled),
        ];
        let is_shown = |(outcome, count): &(CountedOutcome, usize)| {
            *count > 0 || matches!(outcome, CountedOutcome::Verified | CountedOutcome::Failed)
        };
        all.into_iter().filter(is_shown)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} task{} done", self.done, self.tasks, if self.tasks == 1 { "" } else { "s" })?;
        self.outcomes().try_for_each(|(outcome, count)| {
            let name = match outcome {
                CountedOutcome::Cached => "from the cache",
                CountedOutcome::Verified => "verified",
                CountedOutcome::Failed => "failed",
                CountedOutcome::Mended => "of them repaired by another task",
                CountedOutcome::Skipped => "skipped",
                CountedOutcome::GivenUp => "given up",
            };
            write!(f, ", {count} {name}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_tasks_that_are_done_not_those_that_were_begun() {
        let begun = Totals { tasks: 2, ran: 2, done: 1, verified: 1, ..Totals::default() };
        for (tally, want) in [
            (begun, "1 of 2 tasks done, 1 verified, 0 failed"),
            (Totals { skipped: 1, ..begun }, "1 of 2 tasks done, 1 verified, 0 failed, 1 skipped"),
            (Totals { cancelled: 1, ..begun }, "1 of 2 tasks done, 1 verified, 0 failed, 1 given up"),
            (
                Totals { failed: 1, mended: 1, ..begun },
                "1 of 2 tasks done, 1 verified, 1 failed, 1 of them repaired by another task",
            ),
            (Totals { done: 2, cached: 1, ..begun }, "2 of 2 tasks done, 1 from the cache, 1 verified, 0 failed"),
            (Totals { tasks: 1, ..begun }, "1 of 1 task done, 1 verified, 0 failed"),
        ] {
            assert_eq!(tally.to_string(), want);
        }
    }
}
