//! Queries about the state of a plan.

use super::Budget;
use super::event::PlanQuestion;
use super::state::Plan;
use super::task_state::{TaskRecord, TaskState};
use crate::ledger::RemainingBudget;
use crate::limits::TASK_NOTES_MAX;

/// The answer to the question of a task's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskReply<'p> {
    pub task: &'p str,
    pub answer: &'p str,
    /// Whether the lead had no answer: the owner then asks the user.
    pub unanswered: bool,
    /// The message that asked.
    pub envelope: crate::id::EnvelopeId,
}

impl Plan {
    /// Whether a task failed and needs a decision.
    pub fn awaits_ruling(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(|slot| slot.state == TaskState::Failed { settled: false })
    }

    /// Whether any failed task waits for a decision of the lead or the user.
    pub fn needs_ruling(&self) -> bool {
        !self.queues.with_lead.is_empty()
            || self.asked().any(|(_, about)| matches!(about, PlanQuestion::Failure { .. }))
    }

    /// Whether the lead has to act: decide about a failure, answer an owner, or propose another revision.
    pub fn awaits_lead(&self) -> bool {
        let is_stuck = !self.queues.with_lead.is_empty() && self.revision.is_none();
        self.closing.end.is_none()
            && !self.is_held()
            && (is_stuck || !self.queues.asking.is_empty() || self.awaits_rework())
    }

    /// Tasks whose owners wait for an answer.
    pub fn asking(&self) -> Vec<usize> {
        self.queues.asking.iter().copied().collect()
    }

    /// Hashes of a task's declared files when it was first assigned.
    pub fn before(&self, task: usize) -> &[Option<crate::hash::Hash>] {
        self.slots.get(task).map_or(&[], |slot| &slot.baseline.before)
    }

    /// Tasks that were cancelled or timed out and whose owners have not stopped yet.
    pub fn stopping(&self) -> impl Iterator<Item = usize> {
        self.queues.stopping.iter().copied()
    }

    /// Whether the whole plan was stopped.
    pub fn is_stopped(&self) -> bool {
        self.closing.stopped
    }

    /// Globs of the paths that its tasks work on.
    pub fn held(&self) -> Vec<String> {
        if self.closing.end.is_some() { Vec::new() } else { self.claims.globs() }
    }

    /// Whether a task could run but for a free place, or for paths that another task works on.
    pub fn has_ready(&self) -> bool {
        self.closing.end.is_none() && self.queues.ready.next().next().is_some()
    }

    /// Whether a task has not begun and can still run.
    pub fn has_not_begun(&self, task: usize) -> bool {
        let is_new = |slot: &TaskRecord| {
            slot.tries.attempt == 0 && matches!(slot.state, TaskState::Planned | TaskState::Approved)
        };
        self.closing.end.is_none() && self.slots.get(task).is_some_and(is_new)
    }

    /// Whether the lead may add a note to a task: the plan is approved, the task has not begun, and its `owns` keeps its owner
    /// to the files that the user saw.
    pub fn may_note(&self, task: usize) -> bool {
        let has_bounds = self.draft_task(task).is_some_and(|task| task.owns.is_some());
        let is_full = self.slots.get(task).is_none_or(|slot| slot.notes.len() >= TASK_NOTES_MAX);
        self.is_approved() && self.has_not_begun(task) && has_bounds && !is_full
    }

    /// Whether a task is not over, so that it can be cancelled.
    pub fn may_cancel(&self, task: usize) -> bool {
        self.closing.end.is_none()
            && self.is_approved()
            && self.slots.get(task).is_some_and(|slot| !slot.state.is_settled())
    }

    /// Checks that passed before a task's owner could change anything.
    pub fn passed_before(&self, task: usize) -> &[String] {
        self.slots.get(task).map_or(&[], |slot| &slot.baseline.passed)
    }

    /// The user who left while the plan ran, if nothing has happened to it since.
    pub fn paused_by(&self) -> Option<&str> {
        self.paused_by.as_deref()
    }

    /// Whether tasks wait for budget.
    pub fn is_paused(&self) -> bool {
        !self.queues.paused.is_empty()
    }

    /// The plan's budget: the written one, plus the same amount for each grant of a person.
    pub fn budget(&self) -> Budget {
        let own = self.draft().map(|draft| draft.budget).unwrap_or_default();
        own.granted(self.money.grants)
    }

    /// A task's budget: the written one, plus the same amount for each grant of a person.
    pub fn task_budget(&self, task: usize) -> Budget {
        let own = self.draft_task(task).map(|task| task.budget).unwrap_or_default();
        own.granted(self.slots.get(task).map_or(0, |slot| slot.money.grants))
    }

    /// Whether paused tasks may continue with what is left: only if it is more than when it was too little (calls that
    /// ended cheaper than reserved, a larger cap). A task whose own budget is used up waits for a person.
    pub fn may_resume(&self, left: RemainingBudget) -> bool {
        let any = left.nano.is_none_or(|nano| nano > 0) && left.tokens.is_none_or(|tokens| tokens > 0);
        let shared = self.queues.paused.iter().any(|task| !self.is_own_short(*task));
        let grown = |now: Option<u64>, then: Option<u64>| then.is_some_and(|then| now.is_none_or(|now| now > then));
        let more = |then: Budget| grown(left.nano, then.nano) || grown(left.tokens, then.tokens);
        any && shared && self.money.too_little.is_none_or(more)
    }

    pub(super) fn is_own_short(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(|slot| slot.money.own_short)
    }

    /// Blob: snapshot of the working tree when a task was first assigned.
    pub fn tree(&self, task: usize) -> Option<crate::hash::Hash> {
        self.slots.get(task)?.baseline.tree
    }

    /// Whether all active owners wait for a model server that cannot be reached.
    pub fn is_parked(&self) -> bool {
        let waits = |task: &usize| {
            self.slots.get(*task).is_some_and(|slot| matches!(slot.state, TaskState::Held { outage: true, .. }))
        };
        self.closing.end.is_none() && !self.queues.active.is_empty() && self.queues.active.iter().all(waits)
    }

    /// Whether a failed task will be retried automatically.
    pub fn is_retrying(&self) -> bool {
        let waits =
            |task: &usize| self.slots.get(*task).is_some_and(|slot| matches!(slot.state, TaskState::Waiting { .. }));
        self.clock.due.iter().any(|(_, task)| waits(task))
    }

    /// Commands of a task's last attempt whose outcome is unknown.
    pub fn unknown_outcomes(&self, task: usize) -> &[String] {
        self.slots.get(task).map_or(&[], |slot| &slot.unknown)
    }

    /// The last answer of a task's owner.
    pub fn output(&self, task: usize) -> &str {
        self.slots.get(task).map_or("", |slot| &slot.output)
    }
}

impl Plan {
    /// Tasks whose questions are answered and that wait for a free place.
    pub fn answered_tasks(&self) -> impl Iterator<Item = TaskReply<'_>> {
        self.queues.answered.iter().filter_map(|task| match &self.slots.get(*task)?.state {
            TaskState::Answered { answer, unanswered, envelope, .. } => {
                let task = &self.draft_task(*task)?.id;
                Some(TaskReply { task, answer, unanswered: *unanswered, envelope: *envelope })
            }
            _ => None,
        })
    }

    /// The message with which a task's owner asked.
    pub fn question_envelope(&self, task: usize) -> Option<crate::id::EnvelopeId> {
        match &self.slots.get(task)?.state {
            TaskState::Asking { envelope, .. } | TaskState::Answered { envelope, .. } => Some(*envelope),
            _ => None,
        }
    }
}
