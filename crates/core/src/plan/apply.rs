//! Folding events into a plan. Nothing here chooses: the same events always give the same state.
//!
//! An event moves its own task here; what that means for those that build on it is in `settle`.

use uuid::Builder;

use super::event::{
    About, PlanAnswered, PlanAsked, PlanEdited, PlanProposed, Ruling, Say, SkipReason, Spent, TaskAnswered, TaskAsked,
    TaskAssigned, TaskChanged, TaskFailed, TaskHeld, TaskMarked, TaskPaused, TaskReported, TaskResult, TaskRuled,
};
use super::machine::Plan;
use super::ready::Ready;
use super::slot::{Decision, Doom, LeadNote, Slot, State};
use super::{Budget, Draft, Graph};
use crate::event::Event;
use crate::id::TurnId;
use crate::limits::READY_SCANNED_MAX;
use crate::policy::By;

impl Plan {
    /// Folds one event of the plan's stream in.
    pub fn apply(&mut self, event: &Event, at_ms: i64) {
        self.paused_by = None;
        match event {
            Event::PlanProposed(proposed) => self.begin(proposed),
            Event::PlanEdited(edited) => self.edited(edited),
            Event::PlanAsked(asked) => self.ask(asked),
            Event::PlanAnswered(answered) => self.answer(answered, at_ms),
            Event::PlanUnasked(unasked) => {
                self.asked.retain(|question, _| !unasked.questions.contains(question));
                self.asked_of.retain(|_, question| !unasked.questions.contains(question));
            }
            Event::PlanResumed(_) => self.resume(),
            Event::PlanRevised(revised) => self.revised(revised),
            Event::RevisionEnded(ended) => self.end_revision(ended),
            Event::PlanStopped(stopped) => match stopped.task.as_deref().and_then(|task| self.place(task)) {
                Some(task) => self.doom(task, Doom::Cancel(format!("stopped by {}", stopped.by))),
                None => {
                    self.replaced_by = stopped.replaced_by.or(self.replaced_by);
                    self.replaced |= stopped.replaced_by.is_some();
                    self.stop(&stopped.by, at_ms);
                }
            },
            Event::PlanPaused(paused) => self.paused_by = Some(paused.by.clone()),
            Event::PlanEnded(ended) => {
                self.ended = Some(ended.end);
                self.asked.clear();
                self.asked_of.clear();
                self.clock.clear();
                self.over_at_ms = None;
            }
            Event::TaskAssigned(event) => self.on(&event.task, |plan, task| plan.assigned(task, event, at_ms)),
            Event::TaskStarted(event) => self.on(&event.task, |plan, task| {
                plan.slot(task, |slot| {
                    if let State::Dispatched { deadline_ms } = slot.state {
                        slot.state = State::Running { deadline_ms };
                    }
                });
            }),
            Event::TaskAsked(event) => self.on(&event.task, |plan, task| plan.begin_asking(task, event)),
            Event::TaskMarked(event) => self.on(&event.task, |plan, task| plan.keep_mark(task, event)),
            Event::TaskHeld(event) => self.on(&event.task, |plan, task| plan.stop_clock(task, event)),
            Event::TaskAnswered(event) => self.on(&event.task, |plan, task| plan.end_asking(task, event)),
            Event::TaskResumed(event) => self.on(&event.task, |plan, task| plan.works(task, event.deadline_ms)),
            Event::TaskReported(event) => self.on(&event.task, |plan, task| plan.await_checks(task, event)),
            Event::TaskDone(event) => self.on(&event.task, |plan, task| {
                if event.result.cached.is_some() {
                    plan.spare(task);
                }
                plan.finish(task, event.result.clone(), at_ms);
            }),
            Event::TaskFailed(event) => self.on(&event.task, |plan, task| plan.fail(task, event, at_ms)),
            Event::TaskQueued(event) => self.on(&event.task, |plan, task| {
                plan.leave(task);
                plan.make_ready(task);
            }),
            Event::TaskDeferred(event) => self.on(&event.task, |plan, task| plan.defer(task, &event.after)),
            Event::TaskChanged(event) => self.on(&event.task, |plan, task| plan.change(task, event)),
            Event::TaskRuled(event) => self.on(&event.task, |plan, task| plan.ruled(task, event, at_ms)),
            Event::TaskPaused(event) => self.on(&event.task, |plan, task| plan.pause(task, event)),
            Event::TaskSkipped(event) => {
                self.on(&event.task, |plan, task| plan.skip(task, event.reason, &event.detail, at_ms));
            }
            Event::TaskCancelled(event) => self.on(&event.task, |plan, task| {
                plan.await_stop(task, event.stopping);
                plan.cancel(task, &event.detail, event.spent, at_ms);
            }),
            Event::TaskStopped(event) => self.on(&event.task, |plan, task| plan.at_rest(task, event.spent)),
            _ => {}
        }
        self.end_deferrals();
        self.begin_checks();
    }

    /// Keeps the tree in which a task began, of which the first one counts, and the checks that passed then.
    fn keep_mark(&mut self, task: usize, mark: &TaskMarked) {
        self.slot(task, |slot| {
            slot.tree = slot.tree.or(mark.tree);
            slot.passed.extend(mark.passed.iter().cloned());
        });
    }

    /// Puts a task aside until the budget is larger.
    fn pause(&mut self, task: usize, event: &TaskPaused) {
        self.leave(task);
        self.paused.insert(task);
        self.spend(task, event.spent);
        self.slot(task, |slot| {
            slot.state = State::Paused;
            slot.own_short = event.own;
            slot.output.clone_from(&event.output);
        });
        self.too_little = least(self.too_little, event.left.filter(|_| !event.own));
    }

    fn begin(&mut self, proposed: &PlanProposed) {
        self.proposed = Some(Box::new(proposed.clone()));
        // It was checked before it was proposed; a log that says otherwise has nothing to run.
        if let Some(graph) = shape(&proposed.draft) {
            self.reshape(graph);
        }
    }

    fn edited(&mut self, edited: &PlanEdited) {
        let Some(graph) = shape(&edited.draft) else { return };
        // What somebody has already stopped stays stopped.
        let stopped: Vec<(String, Slot)> =
            self.slots.drain(..).enumerate().fold(Vec::new(), |mut stopped, (task, slot)| {
                let id =
                    self.proposed.as_ref().and_then(|proposed| proposed.draft.tasks.get(task)).map(|task| &task.id);
                stopped.extend(id.filter(|_| slot.state == State::Cancelled).map(|id| (id.clone(), slot)));
                stopped
            });
        if let Some(proposed) = &mut self.proposed {
            proposed.draft = edited.draft.clone();
            proposed.forecast = edited.forecast.clone();
            if let Some(risks) = &edited.risks {
                proposed.risks.clone_from(risks);
            }
        }
        self.reshape(graph);
        for (id, slot) in stopped {
            self.on(&id, |plan, task| plan.cancel(task, &slot.error, Spent::default(), slot.ended_at_ms));
        }
    }

    /// Makes the records for the draft as it stands.
    fn reshape(&mut self, graph: Graph) {
        self.slots = (0..graph.len()).map(|task| Slot { open: graph.needs(task).len(), ..Slot::default() }).collect();
        self.ready = self.draft().map(Ready::new).unwrap_or_default();
        self.unsettled = graph.len();
        self.tally = super::event::Tally { tasks: graph.len(), ..Default::default() };
        self.graph = Some(graph);
    }

    fn ask(&mut self, asked: &PlanAsked) {
        self.questions += 1;
        let about = self.subject(&asked.about);
        if let Some(task) = about {
            self.with_lead.remove(&task);
            self.gated.remove(&task);
        }
        self.asked.insert(asked.question, asked.about.clone());
        self.asked_of.insert(about, asked.question);
    }

    fn answer(&mut self, answered: &PlanAnswered, at_ms: i64) {
        let Some(about) = self.asked.remove(&answered.question) else { return };
        self.asked_of.remove(&self.subject(&about));
        if matches!(answered.by, By::Person(_)) {
            self.said = answered.turn.or_else(|| last_of(at_ms));
        }
        if let (Some(carried), Some(proposed)) = (&answered.carried, &mut self.proposed) {
            proposed.carried.clone_from(carried);
        }
        match (&about, &answered.say) {
            (About::Proposal | About::Rest, Say::Approve) => self.approve_waves(usize::MAX, at_ms),
            (About::Proposal, Say::FirstWave) => self.approve_waves(1, at_ms),
            (About::Rest, Say::FirstWave) => self.approve_waves(self.waves.saturating_add(1), at_ms),
            (About::Start { task }, Say::Approve | Say::FirstWave) => self.on(task, |plan, task| {
                plan.passed.insert(task);
                plan.make_ready(task);
            }),
            (About::Budget, Say::Approve | Say::FirstWave) => self.grant(),
            (_, Say::Changes(_)) => self.replaced = true,
            _ => {}
        }
    }

    /// The task that a question is about; none if it is about the whole plan.
    fn subject(&self, about: &About) -> Option<usize> {
        match about {
            About::Start { task } | About::Failure { task, .. } => self.place(task),
            About::Proposal | About::Rest | About::Budget => None,
        }
    }

    fn approve_waves(&mut self, upto: usize, at_ms: i64) {
        let Some(graph) = &self.graph else { return };
        let from = self.waves.min(graph.waves().len());
        let wall_ms = self.draft().and_then(|draft| draft.budget.wall_ms).and_then(|ms| i64::try_from(ms).ok());
        self.over_at_ms = self.over_at_ms.or(wall_ms.map(|wall_ms| at_ms.saturating_add(wall_ms)));
        let upto = upto.min(graph.waves().len());
        let settled = |task: &usize| self.slots.get(*task).is_none_or(|slot| slot.state.is_settled());
        let tasks = graph.waves().iter().take(upto).skip(from).flatten().copied();
        let new: Vec<usize> = tasks.filter(|task| !settled(task)).collect();
        self.waves = upto;
        self.open += new.len();
        for task in &new {
            self.slot(*task, |slot| slot.state = State::Approved);
        }
        for (task, result) in self.carried(from, upto) {
            if self.slots.get(task).is_some_and(|slot| slot.state == State::Approved) {
                self.finish(task, result, at_ms);
            }
        }
        for task in new {
            if self.draft().and_then(|draft| draft.tasks.get(task)).is_some_and(|task| task.skip) {
                self.doom(task, Doom::Skip(SkipReason::Decision, "struck out by the user".to_owned()));
            } else {
                self.consider(task);
            }
        }
    }

    /// What an earlier plan had finished of the tasks in these waves.
    fn carried(&self, from: usize, upto: usize) -> Vec<(usize, TaskResult)> {
        let (Some(graph), Some(proposed)) = (&self.graph, &self.proposed) else { return Vec::new() };
        let found = proposed.carried.iter().filter_map(|carried| {
            let task = graph.index(&carried.task)?;
            let result = || TaskResult { spent: Spent::default(), ..carried.result.clone() };
            (from..upto).contains(&graph.wave(task)).then(|| (task, result()))
        });
        found.collect()
    }

    /// As much again: for those whose own budget is used up, and for all if it was theirs.
    fn grant(&mut self) {
        let short: Vec<usize> = self.paused.iter().copied().filter(|task| self.is_own_short(*task)).collect();
        self.grants += u64::from(short.len() < self.paused.len());
        for task in short {
            self.slot(task, |slot| slot.grants += 1);
        }
    }

    fn resume(&mut self) {
        self.too_little = None;
        for task in self.paused.clone() {
            self.leave(task);
            self.slot(task, |slot| slot.note = "There is more to spend now: go on where you were.".to_owned());
            self.make_ready(task);
        }
    }

    fn stop(&mut self, by: &str, at_ms: i64) {
        self.stopped = true;
        self.overdue |= self.over_at_ms.is_some_and(|over_at_ms| at_ms >= over_at_ms);
        self.asked.clear();
        self.asked_of.clear();
        for task in 0..self.slots.len() {
            self.doom(task, Doom::Cancel(format!("stopped by {by}")));
        }
    }

    fn assigned(&mut self, task: usize, assigned: &TaskAssigned, at_ms: i64) {
        self.leave(task);
        self.hold(task);
        self.clock.insert((assigned.deadline_ms, task));
        self.active.insert(task);
        self.tally.ran += usize::from(assigned.attempt == 1);
        self.slot(task, |slot| {
            slot.state = State::Dispatched { deadline_ms: assigned.deadline_ms };
            slot.attempt = assigned.attempt;
            slot.agent = Some(assigned.agent);
            slot.member = Some(assigned.member.clone());
            slot.model.clone_from(&assigned.model);
            slot.assigned_at_ms = at_ms;
            // What the first attempt found is what the task as a whole is measured against.
            if slot.before.is_empty() {
                slot.before.clone_from(&assigned.before);
            }
            slot.tree = slot.tree.or(assigned.tree);
            slot.output.clear();
            slot.by_hand = false;
            slot.deferred = false;
            slot.decision = None;
        });
    }

    /// Nobody has begun with it, nor will.
    fn spare(&mut self, task: usize) {
        self.tally.ran = self.tally.ran.saturating_sub(1);
        self.tally.cached += 1;
        self.slot(task, |slot| slot.agent = None);
    }

    fn begin_asking(&mut self, task: usize, asked: &TaskAsked) {
        let left_ms = match self.slots.get(task).map(|slot| &slot.state) {
            Some(State::Dispatched { deadline_ms } | State::Running { deadline_ms }) => {
                deadline_ms.saturating_sub(asked.at_ms).max(0)
            }
            Some(State::Held { left_ms, .. } | State::Asking { left_ms, .. } | State::Answered { left_ms, .. }) => {
                *left_ms
            }
            _ => 0,
        };
        self.leave(task);
        self.hold(task);
        self.asking.insert(task);
        let (question, letter) = (asked.question.clone(), asked.letter);
        self.slot(task, |slot| {
            slot.letter = Some(letter);
            slot.state = State::Asking { question, letter, left_ms };
        });
    }

    fn stop_clock(&mut self, task: usize, held: &TaskHeld) {
        let Some(State::Dispatched { deadline_ms } | State::Running { deadline_ms }) =
            self.slots.get(task).map(|slot| &slot.state)
        else {
            return;
        };
        let deadline_ms = *deadline_ms;
        self.clock.remove(&(deadline_ms, task));
        let left_ms = deadline_ms.saturating_sub(held.at_ms).max(0);
        self.slot(task, |slot| slot.state = State::Held { left_ms, outage: held.outage.is_some() });
    }

    /// Whoever is at a task that nobody needs any more keeps its paths until they have stopped.
    fn await_stop(&mut self, task: usize, stopping: bool) {
        if stopping {
            self.stopping.insert(task);
        }
    }

    fn at_rest(&mut self, task: usize, spent: Spent) {
        self.stopping.remove(&task);
        self.spend(task, spent);
        self.release(task);
    }

    fn end_asking(&mut self, task: usize, answered: &TaskAnswered) {
        let Some(State::Asking { letter, left_ms, .. }) = self.slots.get(task).map(|slot| slot.state.clone()) else {
            return;
        };
        self.asking.remove(&task);
        self.answered.insert(task);
        let (answer, by) = (answered.answer.clone(), answered.by.clone());
        self.slot(task, |slot| slot.state = State::Answered { answer, by, letter, left_ms });
    }

    fn works(&mut self, task: usize, deadline_ms: i64) {
        self.leave(task);
        self.hold(task);
        self.active.insert(task);
        self.clock.insert((deadline_ms, task));
        self.slot(task, |slot| {
            slot.state = match slot.state {
                State::Dispatched { .. } => State::Dispatched { deadline_ms },
                _ => State::Running { deadline_ms },
            }
        });
    }

    fn await_checks(&mut self, task: usize, reported: &TaskReported) {
        let has_place = self.active.contains(&task);
        self.leave(task);
        self.hold(task);
        self.spend(task, reported.spent);
        let state = if has_place { State::Checking } else { State::Unchecked };
        if has_place {
            self.active.insert(task)
        } else {
            self.unchecked.insert(task)
        };
        self.slot(task, |slot| {
            slot.state = state;
            slot.output.clone_from(&reported.output);
            slot.unknown.clone_from(&reported.unknown);
        });
    }

    fn defer(&mut self, task: usize, after: &[String]) {
        let after = after.iter().filter_map(|id| self.place(id)).collect();
        self.leave(task);
        self.hold(task);
        self.deferred.insert(task);
        self.slot(task, |slot| {
            slot.deferred = true;
            slot.state = State::Deferred { after };
        });
    }

    /// Checks a deferred task again when no agent works any more on the tasks it waited for.
    fn end_deferrals(&mut self) {
        let under_way = |task: &usize| self.slots.get(*task).is_some_and(|slot| slot.state.is_under_way());
        let is_due = |task: &usize| match self.slots.get(*task).map(|slot| &slot.state) {
            Some(State::Deferred { after }) => !after.iter().any(under_way),
            _ => true,
        };
        let due: Vec<usize> = self.deferred.iter().copied().filter(is_due).collect();
        for task in due {
            self.deferred.remove(&task);
            self.unchecked.insert(task);
            self.slot(task, |slot| slot.state = State::Unchecked);
        }
    }

    /// A note stands beside the approved words. Older entries replaced them in the draft.
    fn change(&mut self, task: usize, changed: &TaskChanged) {
        if let Some(text) = changed.note.clone() {
            let by = changed.by.clone();
            self.slot(task, |slot| slot.notes.push(LeadNote { by, text }));
        }
        let written = self.proposed.as_mut().and_then(|proposed| proposed.draft.tasks.get_mut(task));
        let Some(written) = written else { return };
        if let Some(title) = &changed.title {
            written.title.clone_from(title);
        }
        if let Some(description) = &changed.description {
            written.description.clone_from(description);
        }
    }

    /// Gives free places to what is to be looked at: that frees more than any new task would.
    fn begin_checks(&mut self) {
        if self.unchecked.is_empty() {
            return;
        }
        let waiting: Vec<usize> = self.unchecked.iter().take(READY_SCANNED_MAX).copied().collect();
        for task in waiting {
            if self.active.len() >= self.places() {
                return;
            }
            let waits = self.doomed.contains_key(&task) || self.stopping.contains(&task);
            if !waits && !self.is_blocked(task) {
                self.unchecked.remove(&task);
                self.hold(task);
                self.active.insert(task);
                self.slot(task, |slot| slot.state = State::Checking);
            }
        }
    }

    fn fail(&mut self, task: usize, failed: &TaskFailed, at_ms: i64) {
        self.await_stop(task, failed.stopping);
        self.leave(task);
        self.spend(task, failed.spent);
        self.slot(task, |slot| {
            slot.failures += 1;
            slot.error.clone_from(&failed.error);
            slot.note = format!("The last attempt failed: {}", failed.error);
            slot.ended_at_ms = at_ms;
            // A check that this task made fail tells its states apart: that it passes later shows something.
            let has_failed = |line: &String| failed.evidence.iter().any(|found| !found.ok && found.what == *line);
            slot.passed.retain(|line| !has_failed(line));
            if !failed.output.is_empty() {
                slot.output.clone_from(&failed.output);
            }
            // The last answer stays, also after an attempt without one.
            if let Some(result) = TaskResult::of_failure(failed, &slot.unknown) {
                slot.result = Some(Box::new(result));
            }
        });
        match failed.retry_at_ms {
            Some(until_ms) => {
                self.slot(task, |slot| slot.state = State::Waiting { until_ms });
                self.clock.insert((until_ms, task));
            }
            None if self.is_handled(task) => self.fail_for_good(task, at_ms),
            None => {
                self.slot(task, |slot| slot.state = State::Failed { settled: false });
                self.with_lead.insert(task);
            }
        }
    }

    /// A decision moves the task and stands beside its owner's last answer, which stays.
    fn ruled(&mut self, task: usize, ruled: &TaskRuled, at_ms: i64) {
        let decision = Decision { ruling: ruled.ruling.clone(), by: ruled.by.clone(), note: ruled.note.clone() };
        self.slot(task, |slot| slot.decision = Some(decision));
        match &ruled.ruling {
            Ruling::Accept => {
                let slot = self.slots.get(task);
                let result = slot.and_then(|slot| slot.result.as_deref().cloned()).unwrap_or_default();
                let spent = slot.map(|slot| slot.spent).unwrap_or_default();
                self.finish(task, TaskResult { spent, ..result }, at_ms);
            }
            Ruling::Skip => self.skip(task, SkipReason::Decision, "left out after it failed", at_ms),
            Ruling::GiveUp => self.fail_for_good(task, at_ms),
            Ruling::Fixed => {
                self.leave(task);
                self.unchecked.insert(task);
                self.slot(task, |slot| {
                    slot.by_hand = true;
                    slot.state = State::Unchecked;
                });
            }
            Ruling::Retry { agent, model, note } => {
                self.leave(task);
                self.slot(task, |slot| {
                    slot.failures = 0;
                    slot.retried += 1;
                    if let Some(agent) = agent {
                        slot.member = Some(agent.clone());
                    }
                    if model.is_some() {
                        slot.model.clone_from(model);
                    }
                    if !note.is_empty() {
                        slot.note = format!("{}\n{note}", slot.note);
                    }
                });
                self.make_ready(task);
            }
            // The question to the user follows.
            Ruling::Escalate => {
                self.with_lead.remove(&task);
            }
        }
    }

    fn hold(&mut self, task: usize) {
        if let Some(written) = self.proposed.as_ref().and_then(|proposed| proposed.draft.tasks.get(task)) {
            self.claims.hold(task, written.owned());
        }
    }

    fn on(&mut self, task: &str, change: impl FnOnce(&mut Self, usize)) {
        if let Some(task) = self.place(task) {
            change(self, task);
        }
    }

    pub(super) fn place(&self, task: &str) -> Option<usize> {
        self.graph.as_ref()?.index(task)
    }
}

/// Of several, whoever had the least goes on first.
fn least(one: Option<Budget>, other: Option<Budget>) -> Option<Budget> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Budget { nano: one.nano.min(other.nano), tokens: one.tokens.min(other.tokens), wall_ms: None })
        }
        (one, other) => one.or(other),
    }
}

/// The shape of a draft whose members somebody else has looked at.
pub(super) fn shape(draft: &Draft) -> Option<Graph> {
    let mut members: Vec<&str> = draft.tasks.iter().map(|task| task.agent.as_str()).collect();
    members.sort_unstable();
    members.dedup();
    Graph::new(draft, &members).ok()
}

/// What an answer of former times counts as, of which only the time is known: the last turn of its millisecond, as whoever stops
/// and then answers has answered later.
fn last_of(at_ms: i64) -> Option<TurnId> {
    let at_ms = u64::try_from(at_ms).ok()?;
    Some(TurnId::new(Builder::from_unix_timestamp_millis(at_ms, &[u8::MAX; 10]).into_uuid()))
}
