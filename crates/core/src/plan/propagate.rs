//! The end of a task, and what it means for the tasks that build on it: they become ready, or will never run.

use std::cmp::Reverse;

use super::WhenCondition;
use super::event::{ResourceUse, SkipReason, TaskErrorKind, TaskResult};
use super::ready_queue::Rank;
use super::state::Plan;
use super::task_state::{SkipCause, TaskRecord, TaskState};

impl Plan {
    pub(super) fn finish(&mut self, task: usize, result: TaskResult, at_ms: i64) {
        if self.slots.get(task).is_some_and(|slot| slot.state == TaskState::Done) {
            // Older journals record a correction as a second end.
            return self.correct(task, result, None);
        }
        self.leave(task);
        let before = self.slots.get(task).map(|slot| slot.money.spent).unwrap_or_default();
        // The result includes what earlier steps have already reported.
        self.spend(task, result.spent.beyond(before));
        self.progress.results += 1;
        let number = self.progress.results;
        self.slot(task, |slot| {
            slot.state = TaskState::Done;
            slot.error.clear();
            slot.error_kind = TaskErrorKind::Text;
            slot.output = String::new();
            slot.outcome.result = Some(Box::new(result));
            slot.outcome.number = number;
        });
        self.progress.tally.done += 1;
        self.progress.tally.verified += usize::from(self.slots.get(task).is_some_and(TaskRecord::is_verified));
        if let Some((failed, WhenCondition::Failed)) = self.graph.as_ref().and_then(|graph| graph.condition(task)) {
            self.mend(failed);
        }
        self.settle(task, at_ms);
    }

    pub(super) fn fail_for_good(&mut self, task: usize, at_ms: i64) {
        self.leave(task);
        self.slot(task, |slot| slot.state = TaskState::Failed { settled: true });
        self.progress.tally.failed += 1;
        let done = |other: &usize| self.slots.get(*other).is_some_and(|slot| slot.state == TaskState::Done);
        if self.handlers(task).any(|other| done(&other)) {
            self.mend(task);
        }
        self.settle(task, at_ms);
    }

    pub(super) fn skip(&mut self, task: usize, reason: SkipReason, detail: &str, at_ms: i64) {
        self.leave(task);
        self.progress.tally.skipped += 1;
        self.slot(task, |slot| {
            slot.state = TaskState::Skipped(reason);
            detail.clone_into(&mut slot.error);
            slot.error_kind = TaskErrorKind::Text;
        });
        self.settle(task, at_ms);
    }

    pub(super) fn cancel(
        &mut self,
        task: usize,
        (detail, kind): (&str, &TaskErrorKind),
        spent: ResourceUse,
        at_ms: i64,
    ) {
        self.leave(task);
        self.progress.tally.cancelled += 1;
        self.spend(task, spent);
        self.slot(task, |slot| {
            slot.state = TaskState::Cancelled;
            detail.clone_into(&mut slot.error);
            slot.error_kind.clone_from(kind);
        });
        self.settle(task, at_ms);
    }

    fn settle(&mut self, task: usize, at_ms: i64) {
        self.slot(task, |slot| slot.outcome.ended_at_ms = at_ms);
        self.progress.unsettled = self.progress.unsettled.saturating_sub(1);
        let Some(graph) = &self.graph else { return };
        self.progress.open = self.progress.open.saturating_sub(usize::from(graph.wave(task) < self.progress.waves));
        for dependent in graph.dependents(task).to_vec() {
            self.slot(dependent, |slot| slot.open = slot.open.saturating_sub(1));
            self.consider(dependent);
        }
    }

    /// Another task has made up for this failure. It counts once, even if several tasks did.
    fn mend(&mut self, failed: usize) {
        let Some(slot) = self.slots.get_mut(failed) else { return };
        if slot.state == (TaskState::Failed { settled: true }) && !slot.outcome.mended {
            slot.outcome.mended = true;
            self.progress.tally.mended += 1;
        }
    }

    /// Whether the plan has a task for the failure of this one that can still run.
    pub(super) fn is_handled(&self, task: usize) -> bool {
        let struck = |other: usize| self.draft_task(other).is_none_or(|task| task.skip);
        let settled = |other: usize| self.slots.get(other).is_none_or(|slot| slot.state.is_settled());
        self.handlers(task).any(|other| !settled(other) && !struck(other) && !self.queues.doomed.contains_key(&other))
    }

    /// The tasks that run if this one fails.
    fn handlers(&self, task: usize) -> impl Iterator<Item = usize> {
        let graph = self.graph.as_ref();
        let dependents = graph.map_or(&[][..], |graph| graph.dependents(task));
        let handles =
            move |other: &usize| graph?.condition(*other).filter(|when| *when == (task, WhenCondition::Failed));
        dependents.iter().copied().filter(move |other| handles(other).is_some())
    }

    /// Decides what happens to a task once everything it builds on is settled.
    pub(super) fn consider(&mut self, task: usize) {
        let waits = self.slots.get(task).is_none_or(|slot| slot.open > 0 || slot.state != TaskState::Approved);
        if waits || self.queues.doomed.contains_key(&task) {
            return;
        }
        match self.fate(task) {
            None => self.make_ready(task),
            Some(doom) => self.doom(task, doom),
        }
    }

    fn fate(&self, task: usize) -> Option<SkipCause> {
        let graph = self.graph.as_ref()?;
        let condition = graph.condition(task);
        let state = |other: usize| self.slots.get(other).map(|slot| &slot.state);
        let name = |other: usize| self.name(other).unwrap_or_default();
        if let Some((other, wanted)) = condition {
            let holds = match wanted {
                WhenCondition::Ok => state(other) == Some(&TaskState::Done),
                WhenCondition::Failed => matches!(state(other), Some(TaskState::Failed { .. })),
            };
            if !holds {
                let wanted = if wanted == WhenCondition::Ok { "succeed" } else { "fail" };
                return Some(skipped(format!("`{}` did not {wanted}", name(other))));
            }
        }
        let needs = graph.needs(task).iter().copied().filter(|need| condition.is_none_or(|(other, _)| other != *need));
        let (mut there, mut absent) = (condition.is_some(), None);
        for need in needs {
            match state(need) {
                Some(TaskState::Skipped(SkipReason::Condition)) => absent = Some(need),
                Some(TaskState::Failed { .. }) if self.is_mended(task, need) => there = true,
                Some(TaskState::Failed { .. }) => {
                    return Some(SkipCause::GiveUp(TaskErrorKind::NeedFailed(name(need))));
                }
                Some(TaskState::Cancelled) => {
                    return Some(SkipCause::GiveUp(TaskErrorKind::NeedGivenUp(name(need))));
                }
                _ => there = true,
            }
        }
        match absent {
            Some(need) if !there => Some(skipped(format!("`{}` was skipped", name(need)))),
            _ => None,
        }
    }

    /// Whether a task also builds on one that made up for a failed need.
    fn is_mended(&self, task: usize, failed: usize) -> bool {
        let Some(graph) = &self.graph else { return false };
        graph.needs(task).iter().any(|need| {
            graph.condition(*need) == Some((failed, WhenCondition::Failed))
                && self.slots.get(*need).is_some_and(|slot| slot.state == TaskState::Done)
        })
    }

    pub(super) fn make_ready(&mut self, task: usize) {
        self.slot(task, |slot| slot.state = TaskState::Approved);
        if self.awaits_revision(task) {
            return;
        }
        if self.graph.as_ref().is_some_and(|graph| graph.is_gated(task)) && !self.queues.passed.contains(&task) {
            self.queues.gated.insert(task);
        } else {
            self.queues.ready.insert(self.rank(task));
        }
    }

    pub(super) fn doom(&mut self, task: usize, doom: SkipCause) {
        if self.slots.get(task).is_some_and(|slot| !slot.state.is_settled()) {
            self.queues.keep_back(self.rank(task));
            self.queues.doomed.insert(task, doom);
        }
    }

    /// Takes a task out of its queue, and withdraws an open question about it.
    pub(super) fn leave(&mut self, task: usize) {
        let at_ms = match self.slots.get(task).map(|slot| &slot.state) {
            Some(TaskState::Dispatched { deadline_ms } | TaskState::Running { deadline_ms }) => Some(*deadline_ms),
            Some(TaskState::Waiting { until_ms }) => Some(*until_ms),
            _ => None,
        };
        if let Some(at_ms) = at_ms {
            self.clock.due.remove(&(at_ms, task));
        }
        self.queues.leave(self.rank(task));
        if !self.queues.stopping.contains(&task) {
            self.release(task);
        }
        self.questions.close(Some(task));
        if self.queues.paused.remove(&task) && self.queues.paused.is_empty() {
            self.questions.close(None);
        }
    }

    pub(super) fn release(&mut self, task: usize) {
        if let Some(written) = self.proposed.as_ref().and_then(|proposed| proposed.draft.tasks.get(task)) {
            self.claims.release(task, written.owned());
        }
    }

    pub(super) fn rank(&self, task: usize) -> Rank {
        (Reverse(self.graph.as_ref().map_or(0, |graph| graph.tail(task))), task)
    }

    pub(super) fn spend(&mut self, task: usize, spent: ResourceUse) {
        self.progress.tally.spent.add(spent);
        self.slot(task, |slot| slot.money.spent.add(spent));
    }

    pub(super) fn slot(&mut self, task: usize, change: impl FnOnce(&mut TaskRecord)) {
        if let Some(slot) = self.slots.get_mut(task) {
            change(slot);
        }
    }
}

fn skipped(detail: String) -> SkipCause {
    SkipCause::Skip(SkipReason::Condition, detail)
}
