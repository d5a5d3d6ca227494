//! Revisions: another plan that the lead proposes to replace one that waits or runs.
//!
//! A plan that waits for approval ends as soon as its revision is proposed. A running plan continues; tasks that have
//! not begun and that the revision drops or changes are held until the user has decided. An approval of the revision
//! stops the plan, a rejection releases the held tasks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::TaskDraft;
use super::event::{PlanEnd, PlanRevised, PlanUnasked, RevisionEnded};
use super::state::Plan;
use crate::event::Event;
use crate::id::{PlanId, QuestionId};

/// The revision that a running plan waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revision {
    plan: PlanId,
    held: BTreeSet<usize>,
    /// The user asked for another revision, which the lead has not proposed yet.
    reworked: bool,
}

impl Plan {
    /// The plan that was proposed or approved to replace this one.
    pub fn replaced_by(&self) -> Option<PlanId> {
        self.closing.replaced_by
    }

    /// The revision of a running plan that the user decides about.
    pub fn revision(&self) -> Option<PlanId> {
        self.revision.as_ref().map(|revision| revision.plan)
    }

    /// The tasks of a running plan that a revision drops or changes, and that have not begun.
    pub fn affected<'p>(&'p self, tasks: &'p [TaskDraft]) -> impl Iterator<Item = &'p TaskDraft> {
        let written = self.draft().map_or(&[][..], |draft| &draft.tasks);
        let is_affected = |(task, written): &(usize, &TaskDraft)| self.has_not_begun(*task) && !tasks.contains(written);
        written.iter().enumerate().filter(is_affected).map(|(_, written)| written)
    }

    /// Whether a task does not begin before the user has decided about a revision.
    pub(super) fn awaits_revision(&self, task: usize) -> bool {
        self.revision.as_ref().is_some_and(|revision| revision.held.contains(&task))
    }

    /// Whether the lead has to propose another revision.
    pub(super) fn awaits_rework(&self) -> bool {
        self.revision.as_ref().is_some_and(|revision| revision.reworked)
    }

    pub(super) fn revise(&self, revision: PlanId, tasks: &[TaskDraft]) -> Vec<Event> {
        if !self.is_approved() {
            let questions: Vec<QuestionId> = self.questions.open.keys().copied().collect();
            return vec![
                Event::PlanRevised(PlanRevised { revision, held: Vec::new() }),
                Event::PlanUnasked(PlanUnasked { questions, replaced_by: Some(revision) }),
                self.ended_event(PlanEnd::Replaced),
            ];
        }
        let held = self.affected(tasks).map(|task| task.id.clone()).collect();
        vec![Event::PlanRevised(PlanRevised { revision, held })]
    }

    pub(super) fn revision_ended(&self, revision: PlanId, reworked: bool) -> Vec<Event> {
        match self.revision() {
            Some(known) if known == revision => vec![Event::RevisionEnded(RevisionEnded { revision, reworked })],
            _ => Vec::new(),
        }
    }

    /// The lead decided nothing more: the user decides about failures, unless a revision already waits for the user.
    pub(super) fn lead_silent(&self) -> Vec<Event> {
        match self.revision() {
            None => self.escalate(),
            Some(revision) if self.awaits_rework() => {
                let mut events = self.revision_ended(revision, false);
                events.extend(self.escalate());
                events
            }
            Some(_) => Vec::new(),
        }
    }

    pub(super) fn revised(&mut self, revised: &PlanRevised) {
        self.release_held();
        if !self.is_approved() {
            self.closing.replaced_by = Some(revised.revision);
            return;
        }
        let held: BTreeSet<usize> = revised.held.iter().filter_map(|id| self.place(id)).collect();
        for task in &held {
            self.queues.keep_back(self.rank(*task));
        }
        self.revision = Some(Revision { plan: revised.revision, held, reworked: false });
    }

    pub(super) fn end_revision(&mut self, ended: &RevisionEnded) {
        match &mut self.revision {
            Some(revision) if ended.reworked => revision.reworked = true,
            _ => self.release_held(),
        }
    }

    /// Releases held tasks that nothing else holds.
    fn release_held(&mut self) {
        let Some(revision) = self.revision.take() else { return };
        for task in revision.held {
            if !self.questions.is_asked(Some(task)) {
                self.consider(task);
            }
        }
    }
}
