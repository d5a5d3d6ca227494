//! Folds events into a plan. Nothing here decides: the same events always give the same state.
//!
//! An event moves its own task here; `propagate` follows up on the tasks that build on it.

use uuid::Builder;

use super::event::{
    PlanAnswered, PlanAsked, PlanDecision, PlanEdited, PlanEnd, PlanPaused, PlanProposed, PlanQuestion, PlanResumed,
    ResourceUse, Ruling, SkipReason, TaskAnswered, TaskAsked, TaskAssigned, TaskChanged, TaskErrorKind, TaskFailed,
    TaskHeld, TaskMarked, TaskPaused, TaskReported, TaskResult, TaskRuled,
};
use super::questions::OpenQuestions;
use super::ready_queue::ReadyQueue;
use super::state::Plan;
use super::task_state::{Decision, LeadNote, SkipCause, TaskRecord, TaskState};
use super::{Draft, Graph};
use crate::event::Event;
use crate::id::TurnId;
use crate::limits::READY_SCANNED_MAX;
use crate::policy::DecidedBy;

/// Note to the owner of a task that continues after a stop.
const STOPPED_NOTE: &str = "The user stopped the plan and continues it now: go on where you were.";
/// Note to the owner of a task that continues because the budget has room again.
const MONEY_NOTE: &str = "There is more to spend now: go on where you were.";

impl Plan {
    /// Folds one event of the plan's stream in.
    pub fn apply(&mut self, event: &Event, at_ms: i64) {
        self.paused_by = None;
        match event {
            Event::PlanProposed(proposed) => self.begin(proposed),
            Event::PlanEdited(edited) => self.edited(edited),
            Event::PlanAsked(asked) => self.ask(asked),
            Event::PlanAnswered(answered) => self.answer(answered, at_ms),
            Event::PlanUnasked(unasked) => self.questions.forget(&unasked.questions),
            Event::PlanResumed(resumed) => self.resume(resumed, at_ms),
            Event::PlanRevised(revised) => self.revised(revised),
            Event::RevisionEnded(ended) => self.end_revision(ended),
            Event::PlanStopped(stopped) => match stopped.task.as_deref().and_then(|task| self.place(task)) {
                Some(task) => self.doom(task, SkipCause::GiveUp(TaskErrorKind::Stopped(stopped.by.clone()))),
                None => {
                    self.closing.replaced_by = stopped.replaced_by.or(self.closing.replaced_by);
                    self.closing.replaced |= stopped.replaced_by.is_some();
                    self.stop(&stopped.by, at_ms);
                }
            },
            Event::PlanPaused(paused) => self.pause_all(paused, at_ms),
            Event::PlanEnded(ended) => self.end_as(ended.end),
            Event::TaskAssigned(event) => self.on(&event.task, |plan, task| plan.assigned(task, event, at_ms)),
            Event::TaskStarted(event) => self.on(&event.task, |plan, task| {
                plan.slot(task, |slot| {
                    if let TaskState::Dispatched { deadline_ms } = slot.state {
                        slot.state = TaskState::Running { deadline_ms };
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
            Event::TaskCorrected(event) => self.on(&event.task, |plan, task| {
                plan.correct(task, event.result.clone(), Some(event.correction));
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
                plan.cancel(task, (&event.detail, &event.kind), event.spent, at_ms);
            }),
            Event::TaskStopped(event) => self.on(&event.task, |plan, task| plan.at_rest(task, event.spent)),
            _ => {}
        }
        self.end_deferrals();
        self.begin_checks();
    }

    fn end_as(&mut self, end: PlanEnd) {
        self.closing.end = Some(end);
        self.questions = OpenQuestions { count: self.questions.count, ..OpenQuestions::default() };
        self.clock.end();
    }

    /// Keeps the first snapshot of the tree in which the task began, and the checks that passed then.
    fn keep_mark(&mut self, task: usize, mark: &TaskMarked) {
        self.slot(task, |slot| {
            slot.baseline.tree = slot.baseline.tree.or(mark.tree);
            slot.baseline.passed.extend(mark.passed.iter().cloned());
        });
    }

    /// Puts a task aside until the budget has room.
    fn pause(&mut self, task: usize, event: &TaskPaused) {
        self.leave(task);
        self.queues.paused.insert(task);
        self.spend(task, event.spent);
        self.slot(task, |slot| {
            slot.state = TaskState::Paused;
            slot.money.own_short = event.own;
            slot.output.clone_from(&event.output);
        });
        self.money.keep_smallest_rest(event.left.filter(|_| !event.own));
    }

    fn begin(&mut self, proposed: &PlanProposed) {
        self.proposed = Some(Box::new(proposed.clone()));
        // The draft was checked before the proposal; if a log contradicts that, there is nothing to run.
        if let Some(graph) = shape(&proposed.draft) {
            self.reshape(graph);
        }
    }

    fn edited(&mut self, edited: &PlanEdited) {
        let Some(graph) = shape(&edited.draft) else { return };
        // Tasks that were stopped stay stopped after an edit.
        let stopped: Vec<(String, TaskRecord)> =
            self.slots.drain(..).enumerate().fold(Vec::new(), |mut stopped, (task, slot)| {
                let id =
                    self.proposed.as_ref().and_then(|proposed| proposed.draft.tasks.get(task)).map(|task| &task.id);
                stopped.extend(id.filter(|_| slot.state == TaskState::Cancelled).map(|id| (id.clone(), slot)));
                stopped
            });
        if let Some(proposed) = &mut self.proposed {
            proposed.draft = edited.draft.clone();
            proposed.forecast = edited.forecast.clone();
            if let Some(risks) = &edited.risks {
                proposed.risks.clone_from(risks);
                proposed.risky_checks.clone_from(&edited.risky_checks);
                proposed.risk_kinds.clone_from(&edited.risk_kinds);
            }
        }
        self.reshape(graph);
        for (id, slot) in stopped {
            let why = (slot.error.as_str(), &slot.error_kind);
            self.on(&id, |plan, task| plan.cancel(task, why, ResourceUse::default(), slot.outcome.ended_at_ms));
        }
    }

    /// Makes the records for the current draft.
    fn reshape(&mut self, graph: Graph) {
        self.slots = (0..graph.len())
            .map(|task| TaskRecord { open: graph.needs(task).len(), ..TaskRecord::default() })
            .collect();
        self.queues.ready = self.draft().map(ReadyQueue::new).unwrap_or_default();
        self.progress.unsettled = graph.len();
        self.progress.tally = super::event::Totals { tasks: graph.len(), ..Default::default() };
        self.graph = Some(graph);
    }

    fn ask(&mut self, asked: &PlanAsked) {
        self.questions.count += 1;
        let about = self.subject(&asked.about);
        if let Some(task) = about {
            self.queues.with_lead.remove(&task);
            self.queues.gated.remove(&task);
        }
        self.questions.open.insert(asked.question, (about, asked.about.clone()));
    }

    fn answer(&mut self, answered: &PlanAnswered, at_ms: i64) {
        let Some((_, about)) = self.questions.open.remove(&answered.question) else { return };
        if matches!(answered.by, DecidedBy::Person(_)) {
            self.said = answered.turn.or_else(|| last_of(at_ms));
        }
        if let (Some(carried), Some(proposed)) = (&answered.carried, &mut self.proposed) {
            proposed.carried.clone_from(carried);
        }
        match (&about, &answered.say) {
            (PlanQuestion::Proposal | PlanQuestion::Rest, PlanDecision::Approve) => {
                self.approve_waves(usize::MAX, at_ms)
            }
            (PlanQuestion::Proposal, PlanDecision::FirstWave) => self.approve_waves(1, at_ms),
            (PlanQuestion::Rest, PlanDecision::FirstWave) => {
                self.approve_waves(self.progress.waves.saturating_add(1), at_ms)
            }
            (PlanQuestion::Start { task }, PlanDecision::Approve | PlanDecision::FirstWave) => {
                self.on(task, |plan, task| {
                    plan.queues.passed.insert(task);
                    plan.make_ready(task);
                })
            }
            (PlanQuestion::Budget, PlanDecision::Approve | PlanDecision::FirstWave) => self.grant(),
            (_, PlanDecision::Changes(_)) => self.closing.replaced = true,
            _ => {}
        }
    }

    /// The task that a question is about; `None` if it is about the whole plan.
    fn subject(&self, about: &PlanQuestion) -> Option<usize> {
        match about {
            PlanQuestion::Start { task } | PlanQuestion::Failure { task, .. } => self.place(task),
            PlanQuestion::Proposal | PlanQuestion::Rest | PlanQuestion::Budget => None,
        }
    }

    fn approve_waves(&mut self, upto: usize, at_ms: i64) {
        let Some(graph) = &self.graph else { return };
        let from = self.progress.waves.min(graph.waves().len());
        self.clock.start(at_ms, self.draft().and_then(|draft| draft.budget.wall_ms));
        let upto = upto.min(graph.waves().len());
        let settled = |task: &usize| self.slots.get(*task).is_none_or(|slot| slot.state.is_settled());
        let tasks = graph.waves().iter().take(upto).skip(from).flatten().copied();
        let new: Vec<usize> = tasks.filter(|task| !settled(task)).collect();
        self.progress.waves = upto;
        self.progress.open += new.len();
        for task in &new {
            self.slot(*task, |slot| slot.state = TaskState::Approved);
        }
        for (task, result) in self.carried(from, upto) {
            if self.slots.get(task).is_some_and(|slot| slot.state == TaskState::Approved) {
                self.finish(task, result, at_ms);
            }
        }
        for task in new {
            if self.draft_task(task).is_some_and(|task| task.skip) {
                self.doom(task, SkipCause::Skip(SkipReason::Decision, "struck out by the user".to_owned()));
            } else {
                self.consider(task);
            }
        }
    }

    /// Results of the replaced plan for the tasks in these waves.
    fn carried(&self, from: usize, upto: usize) -> Vec<(usize, TaskResult)> {
        let (Some(graph), Some(proposed)) = (&self.graph, &self.proposed) else { return Vec::new() };
        let found = proposed.carried.iter().filter_map(|carried| {
            let task = graph.index(&carried.task)?;
            let result = || TaskResult { spent: ResourceUse::default(), ..carried.result.clone() };
            (from..upto).contains(&graph.wave(task)).then(|| (task, result()))
        });
        found.collect()
    }

    /// Grants the written amount again: to tasks whose own budget is used up, and to the plan if another task is
    /// paused.
    fn grant(&mut self) {
        let short: Vec<usize> = self.queues.paused.iter().copied().filter(|task| self.is_own_short(*task)).collect();
        self.money.grants += u64::from(short.len() < self.queues.paused.len());
        for task in short {
            self.slot(task, |slot| slot.money.grants += 1);
        }
    }

    fn pause_all(&mut self, paused: &PlanPaused, at_ms: i64) {
        if paused.stopped {
            self.clock.held_at_ms = Some(at_ms);
        } else {
            self.paused_by = Some(paused.by.clone());
        }
    }

    fn resume(&mut self, resumed: &PlanResumed, at_ms: i64) {
        self.said = resumed.turn.or(self.said);
        self.money.too_little = None;
        let note = if self.clock.go_on(at_ms) { STOPPED_NOTE } else { MONEY_NOTE };
        for task in self.queues.paused.clone() {
            self.leave(task);
            self.slot(task, |slot| slot.note = note.to_owned());
            self.make_ready(task);
        }
    }

    fn stop(&mut self, by: &str, at_ms: i64) {
        self.closing.stopped = true;
        self.closing.overdue |= self.clock.is_over(at_ms);
        self.questions.close_all();
        for task in 0..self.slots.len() {
            self.doom(task, SkipCause::GiveUp(TaskErrorKind::Stopped(by.to_owned())));
        }
    }

    fn assigned(&mut self, task: usize, assigned: &TaskAssigned, at_ms: i64) {
        self.leave(task);
        self.hold(task);
        self.clock.due.insert((assigned.deadline_ms, task));
        self.queues.active.insert(task);
        self.progress.tally.ran += usize::from(assigned.attempt == 1);
        let told = self.progress.results;
        self.slot(task, |slot| slot.assign(assigned, told, at_ms));
    }

    /// The task was answered from the cache: it does not count as run.
    fn spare(&mut self, task: usize) {
        self.progress.tally.ran = self.progress.tally.ran.saturating_sub(1);
        self.progress.tally.cached += 1;
        self.slot(task, |slot| slot.owner.agent = None);
    }

    fn begin_asking(&mut self, task: usize, asked: &TaskAsked) {
        let left_ms = match self.slots.get(task).map(|slot| &slot.state) {
            Some(TaskState::Dispatched { deadline_ms } | TaskState::Running { deadline_ms }) => {
                deadline_ms.saturating_sub(asked.at_ms).max(0)
            }
            Some(
                TaskState::Held { left_ms, .. }
                | TaskState::Asking { left_ms, .. }
                | TaskState::Answered { left_ms, .. },
            ) => *left_ms,
            _ => 0,
        };
        self.leave(task);
        self.hold(task);
        self.queues.asking.insert(task);
        let (question, envelope) = (asked.question.clone(), asked.envelope);
        self.slot(task, |slot| {
            slot.envelope = Some(envelope);
            slot.state = TaskState::Asking { question, envelope, left_ms };
        });
    }

    fn stop_clock(&mut self, task: usize, held: &TaskHeld) {
        let Some(TaskState::Dispatched { deadline_ms } | TaskState::Running { deadline_ms }) =
            self.slots.get(task).map(|slot| &slot.state)
        else {
            return;
        };
        let deadline_ms = *deadline_ms;
        self.clock.due.remove(&(deadline_ms, task));
        let left_ms = deadline_ms.saturating_sub(held.at_ms).max(0);
        self.slot(task, |slot| slot.state = TaskState::Held { left_ms, outage: held.outage.is_some() });
    }

    /// The owner of a cancelled task keeps its paths until it has stopped.
    fn await_stop(&mut self, task: usize, stopping: bool) {
        if stopping {
            self.queues.stopping.insert(task);
        }
    }

    fn at_rest(&mut self, task: usize, spent: ResourceUse) {
        self.queues.stopping.remove(&task);
        self.spend(task, spent);
        self.release(task);
    }

    fn end_asking(&mut self, task: usize, answered: &TaskAnswered) {
        let Some(TaskState::Asking { envelope, left_ms, .. }) = self.slots.get(task).map(|slot| slot.state.clone())
        else {
            return;
        };
        self.queues.asking.remove(&task);
        self.queues.answered.insert(task);
        let (answer, unanswered) = (answered.answer.clone(), answered.is_missing());
        self.slot(task, |slot| slot.state = TaskState::Answered { answer, unanswered, envelope, left_ms });
    }

    fn works(&mut self, task: usize, deadline_ms: i64) {
        self.leave(task);
        self.hold(task);
        self.queues.active.insert(task);
        self.clock.due.insert((deadline_ms, task));
        self.slot(task, |slot| {
            slot.state = match slot.state {
                TaskState::Dispatched { .. } => TaskState::Dispatched { deadline_ms },
                _ => TaskState::Running { deadline_ms },
            }
        });
    }

    fn await_checks(&mut self, task: usize, reported: &TaskReported) {
        let has_place = self.queues.active.contains(&task);
        self.leave(task);
        self.hold(task);
        self.spend(task, reported.spent);
        let state = if has_place { TaskState::Checking } else { TaskState::Unchecked };
        if has_place {
            self.queues.active.insert(task)
        } else {
            self.queues.unchecked.insert(task)
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
        self.queues.deferred.insert(task);
        self.slot(task, |slot| {
            slot.tries.deferred = true;
            slot.state = TaskState::Deferred { after };
        });
    }

    /// Checks a deferred task again when no agent works any more on the tasks it waited for.
    fn end_deferrals(&mut self) {
        let under_way = |task: &usize| self.slots.get(*task).is_some_and(|slot| slot.state.is_under_way());
        let is_due = |task: &usize| match self.slots.get(*task).map(|slot| &slot.state) {
            Some(TaskState::Deferred { after }) => !after.iter().any(under_way),
            _ => true,
        };
        let due: Vec<usize> = self.queues.deferred.iter().copied().filter(is_due).collect();
        for task in due {
            self.queues.deferred.remove(&task);
            self.queues.unchecked.insert(task);
            self.slot(task, |slot| slot.state = TaskState::Unchecked);
        }
    }

    /// A note is added to the approved text. Older entries replaced the text in the draft.
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

    /// Free places go to waiting checks first: a finished check unblocks more than a new task.
    fn begin_checks(&mut self) {
        if self.queues.unchecked.is_empty() {
            return;
        }
        let waiting: Vec<usize> = self.queues.unchecked.iter().take(READY_SCANNED_MAX).copied().collect();
        for task in waiting {
            if self.queues.active.len() >= self.places() {
                return;
            }
            let waits = self.queues.doomed.contains_key(&task) || self.queues.stopping.contains(&task);
            if !waits && !self.is_blocked(task) {
                self.queues.unchecked.remove(&task);
                self.hold(task);
                self.queues.active.insert(task);
                self.slot(task, |slot| slot.state = TaskState::Checking);
            }
        }
    }

    fn fail(&mut self, task: usize, failed: &TaskFailed, at_ms: i64) {
        self.await_stop(task, failed.stopping);
        self.leave(task);
        self.spend(task, failed.spent);
        self.slot(task, |slot| slot.fail(failed, at_ms));
        match failed.retry_at_ms {
            Some(until_ms) => {
                self.slot(task, |slot| slot.state = TaskState::Waiting { until_ms });
                self.clock.due.insert((until_ms, task));
            }
            None if self.is_handled(task) => self.fail_for_good(task, at_ms),
            None => {
                self.slot(task, |slot| slot.state = TaskState::Failed { settled: false });
                self.queues.with_lead.insert(task);
            }
        }
    }

    /// A decision moves the task. The owner's last answer stays.
    fn ruled(&mut self, task: usize, ruled: &TaskRuled, at_ms: i64) {
        let decision = Decision { ruling: ruled.ruling.clone(), by: ruled.by.clone(), note: ruled.note.clone() };
        self.slot(task, |slot| slot.decision = Some(decision));
        match &ruled.ruling {
            Ruling::Accept => {
                let slot = self.slots.get(task);
                let result = slot.and_then(|slot| slot.outcome.result.as_deref().cloned()).unwrap_or_default();
                let spent = slot.map(|slot| slot.money.spent).unwrap_or_default();
                self.finish(task, TaskResult { spent, ..result }, at_ms);
            }
            Ruling::Skip => self.skip(task, SkipReason::Decision, "left out after it failed", at_ms),
            Ruling::GiveUp => self.fail_for_good(task, at_ms),
            Ruling::Fixed => {
                self.leave(task);
                self.queues.unchecked.insert(task);
                self.slot(task, |slot| {
                    slot.tries.by_hand = true;
                    slot.state = TaskState::Unchecked;
                });
            }
            Ruling::Retry { agent, model, note } => {
                self.leave(task);
                self.slot(task, |slot| slot.retry(agent.as_ref(), model.as_ref(), note));
                self.make_ready(task);
            }
            // The question to the user follows.
            Ruling::Escalate => {
                self.queues.with_lead.remove(&task);
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

/// The graph of a draft whose members were checked before.
pub(super) fn shape(draft: &Draft) -> Option<Graph> {
    let mut members: Vec<&str> = draft.tasks.iter().map(|task| task.agent.as_str()).collect();
    members.sort_unstable();
    members.dedup();
    Graph::new(draft, &members).ok()
}

/// The turn id for an answer in an older journal, which records only the time: the last id of its millisecond, because
/// a stop in the same millisecond came before the answer.
fn last_of(at_ms: i64) -> Option<TurnId> {
    let at_ms = u64::try_from(at_ms).ok()?;
    Some(TurnId::new(Builder::from_unix_timestamp_millis(at_ms, &[u8::MAX; 10]).into_uuid()))
}
