//! Deadlines of a plan.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Deadlines {
    /// When a task times out or is retried.
    pub due: BTreeSet<(i64, usize)>,
    /// When the time budget of the plan ends.
    pub over_at_ms: Option<i64>,
    /// When the user stopped it, until it is continued or cancelled.
    pub held_at_ms: Option<i64>,
}

impl Deadlines {
    /// Starts the plan's time budget, unless it has started before.
    pub(super) fn start(&mut self, at_ms: i64, wall_ms: Option<u64>) {
        let wall_ms = wall_ms.and_then(|wall_ms| i64::try_from(wall_ms).ok());
        self.over_at_ms = self.over_at_ms.or(wall_ms.map(|wall_ms| at_ms.saturating_add(wall_ms)));
    }

    /// Continues a stopped plan: the time budget does not count the time in which it was stopped. Returns whether it
    /// was stopped.
    pub(super) fn go_on(&mut self, at_ms: i64) -> bool {
        let Some(held_at_ms) = self.held_at_ms.take() else { return false };
        let stood_ms = at_ms.saturating_sub(held_at_ms).max(0);
        self.over_at_ms = self.over_at_ms.map(|over_at_ms| over_at_ms.saturating_add(stood_ms));
        true
    }

    pub(super) fn end(&mut self) {
        self.due.clear();
        self.over_at_ms = None;
    }

    /// Whether the plan's time budget is used up.
    pub(super) fn is_over(&self, at_ms: i64) -> bool {
        self.over_at_ms.is_some_and(|over_at_ms| at_ms >= over_at_ms)
    }

    /// The next moment at which something is due.
    pub(super) fn next_ms(&self) -> Option<i64> {
        let over_at_ms = self.over_at_ms.filter(|_| self.held_at_ms.is_none());
        self.due.first().map(|(until_ms, _)| *until_ms).into_iter().chain(over_at_ms).min()
    }
}
