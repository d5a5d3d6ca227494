//! The tasks of a plan by what they wait for: a step looks at these small sets and not at every task.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ready_queue::{Rank, ReadyQueue};
use super::task_state::SkipCause;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskQueues {
    /// Tasks whose needs are settled and that may run.
    pub ready: ReadyQueue,
    /// Tasks that need a person's approval to start, which has not been asked for yet; and tasks that have it.
    pub gated: BTreeSet<usize>,
    pub passed: BTreeSet<usize>,
    /// Tasks that will not run, and why: the next step makes events of them.
    pub doomed: BTreeMap<usize, SkipCause>,
    /// Tasks that hold one of the places that `max_parallel` gives out.
    pub active: BTreeSet<usize>,
    /// Tasks that were cancelled or timed out, and whose owners have not stopped yet. They keep their paths, and the
    /// plan does not end before they have stopped.
    pub stopping: BTreeSet<usize>,
    /// Tasks whose owners asked something; and tasks that have their answer and wait for a free place.
    pub asking: BTreeSet<usize>,
    pub answered: BTreeSet<usize>,
    /// Tasks that were reported done and wait for a free place to be checked.
    pub unchecked: BTreeSet<usize>,
    /// Tasks whose checks run again when other tasks have ended.
    pub deferred: BTreeSet<usize>,
    /// Tasks that failed and wait for the lead's decision.
    pub with_lead: BTreeSet<usize>,
    /// Tasks that wait for budget, or for a stopped plan to be continued.
    pub paused: BTreeSet<usize>,
}

impl TaskQueues {
    /// Takes a task out of the sets that say what it waits for.
    pub(super) fn leave(&mut self, rank: Rank) {
        let task = rank.1;
        self.keep_back(rank);
        self.doomed.remove(&task);
        let sets = [&mut self.active, &mut self.asking, &mut self.answered, &mut self.unchecked, &mut self.deferred];
        for set in sets.into_iter().chain([&mut self.with_lead]) {
            set.remove(&task);
        }
    }

    /// Keeps a task from starting.
    pub(super) fn keep_back(&mut self, rank: Rank) {
        self.ready.remove(rank);
        self.gated.remove(&rank.1);
    }

    /// Whether no task is worked on, checked, or ready for either as soon as a place is free.
    pub(super) fn is_at_rest(&self) -> bool {
        self.active.is_empty() && self.answered.is_empty() && self.unchecked.is_empty()
    }

    /// Whether a task can continue without the user.
    pub(super) fn is_moving(&self) -> bool {
        !(self.is_at_rest() && self.asking.is_empty() && self.stopping.is_empty() && self.with_lead.is_empty())
    }
}
