//! The end of a task, and what it means for those that build on it: they become ready, or will never run.

use std::cmp::Reverse;

use super::Wanted;
use super::event::{SkipReason, Spent, TaskResult};
use super::machine::Plan;
use super::ready::Rank;
use super::slot::{Doom, Slot, State};

impl Plan {
    pub(super) fn finish(&mut self, task: usize, result: TaskResult, at_ms: i64) {
        if self.slots.get(task).is_some_and(|slot| slot.state == State::Done) {
            return self.correct(task, result);
        }
        self.leave(task);
        let before = self.slots.get(task).map(|slot| slot.spent).unwrap_or_default();
        // What earlier steps had already reported is in there too.
        self.spend(task, more(result.spent, before));
        self.slot(task, |slot| {
            slot.state = State::Done;
            slot.error.clear();
            slot.output = String::new();
            slot.result = Some(Box::new(result));
        });
        self.tally.done += 1;
        self.tally.verified += usize::from(self.slots.get(task).is_some_and(Slot::is_verified));
        if let Some((failed, Wanted::Failed)) = self.graph.as_ref().and_then(|graph| graph.condition(task)) {
            self.mend(failed);
        }
        self.settle(task, at_ms);
    }

    /// A task that is done has another result; nothing else follows from it.
    fn correct(&mut self, task: usize, result: TaskResult) {
        let is_verified = |plan: &Self| usize::from(plan.slots.get(task).is_some_and(Slot::is_verified));
        self.tally.verified = self.tally.verified.saturating_sub(is_verified(self));
        let before = self.slots.get(task).and_then(|slot| slot.result.as_ref()).map(|known| known.spent);
        self.spend(task, more(result.spent, before.unwrap_or_default()));
        self.slot(task, |slot| slot.result = Some(Box::new(result)));
        self.tally.verified += is_verified(self);
    }

    pub(super) fn fail_for_good(&mut self, task: usize, at_ms: i64) {
        self.leave(task);
        self.slot(task, |slot| slot.state = State::Failed { settled: true });
        self.tally.failed += 1;
        let done = |other: &usize| self.slots.get(*other).is_some_and(|slot| slot.state == State::Done);
        if self.handlers(task).any(|other| done(&other)) {
            self.mend(task);
        }
        self.settle(task, at_ms);
    }

    pub(super) fn skip(&mut self, task: usize, reason: SkipReason, detail: &str, at_ms: i64) {
        self.leave(task);
        self.tally.skipped += 1;
        self.slot(task, |slot| {
            slot.state = State::Skipped(reason);
            detail.clone_into(&mut slot.error);
        });
        self.settle(task, at_ms);
    }

    pub(super) fn cancel(&mut self, task: usize, detail: &str, spent: Spent, at_ms: i64) {
        self.leave(task);
        self.tally.cancelled += 1;
        self.spend(task, spent);
        self.slot(task, |slot| {
            slot.state = State::Cancelled;
            detail.clone_into(&mut slot.error);
        });
        self.settle(task, at_ms);
    }

    fn settle(&mut self, task: usize, at_ms: i64) {
        self.slot(task, |slot| slot.ended_at_ms = at_ms);
        self.unsettled = self.unsettled.saturating_sub(1);
        let Some(graph) = &self.graph else { return };
        self.open = self.open.saturating_sub(usize::from(graph.wave(task) < self.waves));
        for dependent in graph.dependents(task).to_vec() {
            self.slot(dependent, |slot| slot.open = slot.open.saturating_sub(1));
            self.consider(dependent);
        }
    }

    /// Another task has made up for it. One failure counts once, whoever made up for it.
    fn mend(&mut self, failed: usize) {
        let Some(slot) = self.slots.get_mut(failed) else { return };
        if slot.state == (State::Failed { settled: true }) && !slot.mended {
            slot.mended = true;
            self.tally.mended += 1;
        }
    }

    /// Whether the plan itself says what happens when this fails, by a task that can still run.
    pub(super) fn is_handled(&self, task: usize) -> bool {
        let struck = |other: usize| self.draft().and_then(|draft| draft.tasks.get(other)).is_none_or(|task| task.skip);
        let settled = |other: usize| self.slots.get(other).is_none_or(|slot| slot.state.is_settled());
        self.handlers(task).any(|other| !settled(other) && !struck(other) && !self.doomed.contains_key(&other))
    }

    /// The tasks that run if this one fails.
    fn handlers(&self, task: usize) -> impl Iterator<Item = usize> {
        let graph = self.graph.as_ref();
        let dependents = graph.map_or(&[][..], |graph| graph.dependents(task));
        let handles = move |other: &usize| graph?.condition(*other).filter(|when| *when == (task, Wanted::Failed));
        dependents.iter().copied().filter(move |other| handles(other).is_some())
    }

    /// What becomes of a task once everything it builds on is settled.
    pub(super) fn consider(&mut self, task: usize) {
        let waits = self.slots.get(task).is_none_or(|slot| slot.open > 0 || slot.state != State::Approved);
        if waits || self.doomed.contains_key(&task) {
            return;
        }
        match self.fate(task) {
            None => self.make_ready(task),
            Some(doom) => self.doom(task, doom),
        }
    }

    fn fate(&self, task: usize) -> Option<Doom> {
        let graph = self.graph.as_ref()?;
        let condition = graph.condition(task);
        let state = |other: usize| self.slots.get(other).map(|slot| &slot.state);
        let name = |other: usize| self.name(other).unwrap_or_default();
        if let Some((other, wanted)) = condition {
            let holds = match wanted {
                Wanted::Ok => state(other) == Some(&State::Done),
                Wanted::Failed => matches!(state(other), Some(State::Failed { .. })),
            };
            if !holds {
                let wanted = if wanted == Wanted::Ok { "succeed" } else { "fail" };
                return Some(skipped(format!("`{}` did not {wanted}", name(other))));
            }
        }
        let needs = graph.needs(task).iter().copied().filter(|need| condition.is_none_or(|(other, _)| other != *need));
        let (mut there, mut absent) = (condition.is_some(), None);
        for need in needs {
            match state(need) {
                Some(State::Skipped(SkipReason::Condition)) => absent = Some(need),
                Some(State::Failed { .. }) if self.is_mended(task, need) => there = true,
                Some(State::Failed { .. }) => {
                    return Some(Doom::Cancel(format!("it needs `{}`, which failed", name(need))));
                }
                Some(State::Cancelled) => {
                    return Some(Doom::Cancel(format!("it needs `{}`, which was given up", name(need))));
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
            graph.condition(*need) == Some((failed, Wanted::Failed))
                && self.slots.get(*need).is_some_and(|slot| slot.state == State::Done)
        })
    }

    pub(super) fn make_ready(&mut self, task: usize) {
        self.slot(task, |slot| slot.state = State::Approved);
        if self.awaits_revision(task) {
            return;
        }
        if self.graph.as_ref().is_some_and(|graph| graph.is_gated(task)) && !self.passed.contains(&task) {
            self.gated.insert(task);
        } else {
            self.ready.insert(self.rank(task));
        }
    }

    pub(super) fn doom(&mut self, task: usize, doom: Doom) {
        if self.slots.get(task).is_some_and(|slot| !slot.state.is_settled()) {
            self.ready.remove(self.rank(task));
            self.gated.remove(&task);
            self.doomed.insert(task, doom);
        }
    }

    /// Takes a task out of whatever it is in; the question about it, if there is one, is void.
    pub(super) fn leave(&mut self, task: usize) {
        let at_ms = match self.slots.get(task).map(|slot| &slot.state) {
            Some(State::Dispatched { deadline_ms } | State::Running { deadline_ms }) => Some(*deadline_ms),
            Some(State::Waiting { until_ms }) => Some(*until_ms),
            _ => None,
        };
        if let Some(at_ms) = at_ms {
            self.clock.remove(&(at_ms, task));
        }
        self.ready.remove(self.rank(task));
        self.doomed.remove(&task);
        let sets = [&mut self.active, &mut self.asking, &mut self.answered, &mut self.unchecked, &mut self.deferred];
        for set in sets.into_iter().chain([&mut self.with_lead, &mut self.gated]) {
            set.remove(&task);
        }
        if !self.stopping.contains(&task) {
            self.release(task);
        }
        self.close(Some(task));
        if self.paused.remove(&task) && self.paused.is_empty() {
            self.close(None);
        }
    }

    pub(super) fn release(&mut self, task: usize) {
        if let Some(written) = self.proposed.as_ref().and_then(|proposed| proposed.draft.tasks.get(task)) {
            self.claims.release(task, written.owned());
        }
    }

    /// Takes back the question about a task, or about the plan: nobody needs the answer any more.
    fn close(&mut self, about: Option<usize>) {
        if let Some(question) = self.asked_of.remove(&about) {
            self.asked.remove(&question);
        }
    }

    pub(super) fn rank(&self, task: usize) -> Rank {
        (Reverse(self.graph.as_ref().map_or(0, |graph| graph.tail(task))), task)
    }

    pub(super) fn spend(&mut self, task: usize, spent: Spent) {
        self.tally.spent.add(spent);
        self.slot(task, |slot| slot.spent.add(spent));
    }

    pub(super) fn slot(&mut self, task: usize, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(task) {
            change(slot);
        }
    }
}

/// What the one has used beyond the other.
fn more(all: Spent, known: Spent) -> Spent {
    let mut more = all;
    more.nano = all.nano.saturating_sub(known.nano);
    more.unknown_nano = all.unknown_nano.saturating_sub(known.unknown_nano);
    more.ms = all.ms.saturating_sub(known.ms);
    more.usage.input = all.usage.input.saturating_sub(known.usage.input);
    more.usage.output = all.usage.output.saturating_sub(known.usage.output);
    more.usage.cache_read = all.usage.cache_read.saturating_sub(known.usage.cache_read);
    more.usage.cache_write = all.usage.cache_write.saturating_sub(known.usage.cache_write);
    more
}

fn skipped(detail: String) -> Doom {
    Doom::Skip(SkipReason::Condition, detail)
}
