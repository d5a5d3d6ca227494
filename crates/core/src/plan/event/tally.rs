//! The counts of a plan's tasks, and which of them a summary shows.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Spent;

/// The number of tasks of each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
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
    pub spent: Spent,
}

/// A count that a summary shows behind the number of tasks that are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
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

impl Tally {
    /// The counts of a summary, in order. Verified and failed tasks are always counted, other outcomes if there are any.
    pub fn outcomes(&self) -> impl Iterator<Item = (Outcome, usize)> {
        let all = [
            (Outcome::Cached, self.cached),
            (Outcome::Verified, self.verified),
            (Outcome::Failed, self.failed),
            (Outcome::Mended, self.mended),
            (Outcome::Skipped, self.skipped),
            (Outcome::GivenUp, self.cancelled),
        ];
        let is_shown =
            |(outcome, count): &(Outcome, usize)| *count > 0 || matches!(outcome, Outcome::Verified | Outcome::Failed);
        all.into_iter().filter(is_shown)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} task{} done", self.done, self.tasks, if self.tasks == 1 { "" } else { "s" })?;
        self.outcomes().try_for_each(|(outcome, count)| {
            let name = match outcome {
                Outcome::Cached => "from the cache",
                Outcome::Verified => "verified",
                Outcome::Failed => "failed",
                Outcome::Mended => "of them made up for",
                Outcome::Skipped => "skipped",
                Outcome::GivenUp => "given up",
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
        let begun = Tally { tasks: 2, ran: 2, done: 1, verified: 1, ..Tally::default() };
        for (tally, want) in [
            (begun, "1 of 2 tasks done, 1 verified, 0 failed"),
            (Tally { skipped: 1, ..begun }, "1 of 2 tasks done, 1 verified, 0 failed, 1 skipped"),
            (Tally { cancelled: 1, ..begun }, "1 of 2 tasks done, 1 verified, 0 failed, 1 given up"),
            (Tally { failed: 1, mended: 1, ..begun }, "1 of 2 tasks done, 1 verified, 1 failed, 1 of them made up for"),
            (Tally { done: 2, cached: 1, ..begun }, "2 of 2 tasks done, 1 from the cache, 1 verified, 0 failed"),
            (Tally { tasks: 1, ..begun }, "1 of 1 task done, 1 verified, 0 failed"),
        ] {
            assert_eq!(tally.to_string(), want);
        }
    }
}
