//! What others ask about a plan.

use super::Budget;
use super::event::About;
use super::machine::Plan;
use super::slot::{Slot, State};
use crate::ledger::Left;
use crate::limits::TASK_NOTES_MAX;

/// What the owner of a task was told who had asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'p> {
    /// The task.
    pub task: &'p str,
    /// The answer.
    pub answer: &'p str,
    /// Whose.
    pub by: &'p str,
    /// The letter that had asked.
    pub letter: crate::id::EnvelopeId,
}

impl Plan {
    /// Whether a task failed and somebody must say what to do.
    pub fn awaits_ruling(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(|slot| slot.state == State::Failed { settled: false })
    }

    /// Whether any task failed and somebody must say what to do.
    pub fn needs_ruling(&self) -> bool {
        !self.with_lead.is_empty() || self.asked.values().any(|about| matches!(about, About::Failure { .. }))
    }

    /// Whether the lead is to say something: about a failure, or to somebody who asked.
    pub fn awaits_lead(&self) -> bool {
        let is_stuck = !self.with_lead.is_empty() && self.revision.is_none();
        self.ended.is_none() && (is_stuck || !self.asking.is_empty() || self.awaits_rework())
    }

    /// Tasks whose owners wait for an answer.
    pub fn asking(&self) -> Vec<usize> {
        self.asking.iter().copied().collect()
    }

    /// Hashes of a task's declared files when it was first given to somebody.
    pub fn before(&self, task: usize) -> &[Option<crate::hash::Hash>] {
        self.slots.get(task).map_or(&[], |slot| &slot.before)
    }

    /// Tasks that nobody needs any more and that somebody is still at.
    pub fn stopping(&self) -> impl Iterator<Item = usize> {
        self.stopping.iter().copied()
    }

    /// Whether all of it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Globs of the paths that its tasks are at work on.
    pub fn held(&self) -> Vec<String> {
        if self.ended.is_some() { Vec::new() } else { self.claims.globs() }
    }

    /// Whether a task could run but for a place or for paths that somebody else works on.
    pub fn has_ready(&self) -> bool {
        self.ended.is_none() && self.ready.next().next().is_some()
    }

    /// Whether a task has not begun and can still run.
    pub fn has_not_begun(&self, task: usize) -> bool {
        let is_new = |slot: &Slot| slot.attempt == 0 && matches!(slot.state, State::Planned | State::Approved);
        self.ended.is_none() && self.slots.get(task).is_some_and(is_new)
    }

    /// Whether the lead may add a note to a task: the plan is approved, the task has not begun, and its `owns` keeps its owner
    /// to the files that the user saw.
    pub fn may_note(&self, task: usize) -> bool {
        let has_bounds = self.draft().and_then(|draft| draft.tasks.get(task)).is_some_and(|task| task.owns.is_some());
        let is_full = self.slots.get(task).is_none_or(|slot| slot.notes.len() >= TASK_NOTES_MAX);
        self.is_approved() && self.has_not_begun(task) && has_bounds && !is_full
    }

    /// Whether a task is not over, so that it can be given up.
    pub fn may_cancel(&self, task: usize) -> bool {
        self.ended.is_none() && self.is_approved() && self.slots.get(task).is_some_and(|slot| !slot.state.is_settled())
    }

    /// Checks that passed before a task's owner could change anything.
    pub fn passed_before(&self, task: usize) -> &[String] {
        self.slots.get(task).map_or(&[], |slot| &slot.passed)
    }

    /// The user who left while it ran, if nothing has happened to it since.
    pub fn paused_by(&self) -> Option<&str> {
        self.paused_by.as_deref()
    }

    /// Whether tasks wait for money.
    pub fn is_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// What all of it may use: what was written down, and as much again each time that a person said so.
    pub fn budget(&self) -> Budget {
        let own = self.draft().map(|draft| draft.budget).unwrap_or_default();
        let times = self.grants.saturating_add(1);
        let all = |amount: Option<u64>| amount.map(|amount| amount.saturating_mul(times));
        Budget { nano: all(own.nano), tokens: all(own.tokens), ..own }
    }

    /// What one task may use: what was written down, and as much again each time that a person said so.
    pub fn task_budget(&self, task: usize) -> Budget {
        let own = self.draft().and_then(|draft| draft.tasks.get(task)).map(|task| task.budget).unwrap_or_default();
        let times = self.slots.get(task).map_or(0, |slot| slot.grants).saturating_add(1);
        let all = |amount: Option<u64>| amount.map(|amount| amount.saturating_mul(times));
        Budget { nano: all(own.nano), tokens: all(own.tokens), ..own }
    }

    /// Whether what waits for money may go on with what is left: more than when it was found to be too little (calls
    /// that ended cheaper than they might have, a larger cap). The same once more would only be too little again, and
    /// a task whose own budget is used up waits for a person.
    pub fn may_resume(&self, left: Left) -> bool {
        let any = left.nano.is_none_or(|nano| nano > 0) && left.tokens.is_none_or(|tokens| tokens > 0);
        let shared = self.paused.iter().any(|task| !self.is_own_short(*task));
        let grown = |now: Option<u64>, then: Option<u64>| then.is_some_and(|then| now.is_none_or(|now| now > then));
        let more = |then: Budget| grown(left.nano, then.nano) || grown(left.tokens, then.tokens);
        any && shared && self.too_little.is_none_or(more)
    }

    pub(super) fn is_own_short(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(|slot| slot.own_short)
    }

    /// Blob: how the working tree was when a task was first given to somebody.
    pub fn tree(&self, task: usize) -> Option<crate::hash::Hash> {
        self.slots.get(task)?.tree
    }

    /// Whether all who are at work wait for a model server that cannot be reached.
    pub fn is_parked(&self) -> bool {
        let waits = |task: &usize| {
            self.slots.get(*task).is_some_and(|slot| matches!(slot.state, State::Held { outage: true, .. }))
        };
        self.ended.is_none() && !self.active.is_empty() && self.active.iter().all(waits)
    }

    /// Whether a failed task will be tried again by itself.
    pub fn is_retrying(&self) -> bool {
        let waits =
            |task: &usize| self.slots.get(*task).is_some_and(|slot| matches!(slot.state, State::Waiting { .. }));
        self.clock.iter().any(|(_, task)| waits(task))
    }

    /// Commands of a task's last attempt whose outcome is unknown.
    pub fn unknown_outcomes(&self, task: usize) -> &[String] {
        self.slots.get(task).map_or(&[], |slot| &slot.unknown)
    }

    /// What a task's owner said last.
    pub fn output(&self, task: usize) -> &str {
        self.slots.get(task).map_or("", |slot| &slot.output)
    }
}

impl Plan {
    /// Tasks that have their answer and wait for a place.
    pub fn tasks_told(&self) -> impl Iterator<Item = Told<'_>> {
        self.answered.iter().filter_map(|task| match &self.slots.get(*task)?.state {
            State::Answered { answer, by, letter, .. } => {
                Some(Told { task: &self.draft()?.tasks.get(*task)?.id, answer, by, letter: *letter })
            }
            _ => None,
        })
    }

    /// The letter with which a task's owner asked.
    pub fn question_letter(&self, task: usize) -> Option<crate::id::EnvelopeId> {
        match &self.slots.get(task)?.state {
            State::Asking { letter, .. } | State::Answered { letter, .. } => Some(*letter),
            _ => None,
        }
    }
}
