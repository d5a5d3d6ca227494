//! What follows for other tasks once an input has been folded in: cancellations, deadlines, the next tasks, questions,
//! the end. Nothing here changes state.
//!
//! Each step is decided on the state that the step before left, until nothing follows. A step looks only at the tasks
//! in its queue, except at the end of the plan.

use std::collections::BTreeSet;

use super::event::{
    Cause, PlanAsked, PlanEnd, PlanQuestion, PlanStopped, PlanUnasked, ResourceUse, TaskAssigned, TaskCancelled,
    TaskErrorKind, TaskQueued, TaskResumed, TaskSkipped,
};
use super::state::Plan;
use super::task_state::{SkipCause, TaskState};
use super::{Findings, PlanEnv, overlap};
use crate::event::Event;
use crate::limits::{BESIDE_TASKS_MAX, READY_SCANNED_MAX};

impl Plan {
    /// The next events that follow from the state: the first step that has any.
    pub(super) fn advance(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        if self.closing.end.is_some() || self.proposed.is_none() {
            return Vec::new();
        }
        // Cancellations come first: a task that was stopped must not fail by a timeout as well.
        let steps: [(bool, &dyn Fn() -> Vec<Event>); 8] = [
            (true, &|| self.give_up()),
            (false, &|| self.out_of_time(now)),
            (false, &|| self.by_the_clock(now)),
            (true, &|| self.ask_to_start()),
            (false, &|| self.assign_ready(now)),
            (false, &|| self.ask_about_all()),
            (true, &|| self.unask()),
            (true, &|| self.end()),
        ];
        // A stopped plan starts nothing, and its deadlines do not run.
        let due = steps.iter().filter(|(is_always, _)| *is_always || !self.is_held());
        due.map(|(_, step)| step()).find(|events| !events.is_empty()).unwrap_or_default()
    }

    fn give_up(&self) -> Vec<Event> {
        let doomed = self.queues.doomed.iter().filter_map(|(task, doom)| {
            let stopping = self.slots.get(*task)?.state.is_at_work();
            let task = self.name(*task)?;
            Some(match doom {
                SkipCause::Skip(reason, detail) => {
                    Event::TaskSkipped(TaskSkipped { task, reason: *reason, detail: detail.clone() })
                }
                SkipCause::Cancel(detail) => given_up(task, detail.clone(), TaskErrorKind::Text, stopping),
                SkipCause::GiveUp(kind) => given_up(task, kind.to_string(), kind.clone(), stopping),
            })
        });
        doomed.collect()
    }

    fn out_of_time(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        let wall_ms = self.draft().and_then(|draft| draft.budget.wall_ms).unwrap_or_default();
        if self.closing.stopped || !self.clock.is_over(now.at_ms) {
            return Vec::new();
        }
        let by = format!("its time budget of {} s", wall_ms / 1_000);
        vec![Event::PlanStopped(PlanStopped { task: None, by, replaced_by: None })]
    }

    fn by_the_clock(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        let due = self.clock.due.iter().take_while(|(at_ms, _)| *at_ms <= now.at_ms);
        due.filter_map(|(_, task)| {
            let slot = self.slots.get(*task)?;
            Some(match &slot.state {
                TaskState::Waiting { .. } => Event::TaskQueued(TaskQueued { task: self.name(*task)? }),
                _ => {
                    let error = format!("it took longer than {} s", self.timeout_ms(*task) / 1_000);
                    let none = ResourceUse::default();
                    self.failure(
                        *task,
                        slot.tries.attempt,
                        Cause::Timeout,
                        error,
                        Findings::default(),
                        String::new(),
                        none,
                        now,
                    )
                }
            })
        })
        .collect()
    }

    fn ask_to_start(&self) -> Vec<Event> {
        let gated = self.queues.gated.iter().zip(0..).filter_map(|(task, ahead)| {
            let about = PlanQuestion::Start { task: self.name(*task)? };
            Some(Event::PlanAsked(PlanAsked { question: self.next_question(ahead), about }))
        });
        gated.collect()
    }

    fn assign_ready(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        let mut free = self.places().saturating_sub(self.queues.active.len());
        let mut events = Vec::new();
        let resumed = self.queues.answered.iter().take(free);
        for task in resumed.clone() {
            let left_ms = match self.slots.get(*task).map(|slot| &slot.state) {
                Some(TaskState::Answered { left_ms, .. }) => *left_ms,
                _ => 0,
            };
            let Some(id) = self.name(*task) else { continue };
            events.push(Event::TaskResumed(TaskResumed { task: id, deadline_ms: now.at_ms.saturating_add(left_ms) }));
            free -= 1;
        }
        if !self.queues.paused.is_empty() {
            return events;
        }
        let mut taken: Vec<usize> = Vec::new();
        let mut next = self.queues.ready.next().take(free + READY_SCANNED_MAX);
        while taken.len() < free
            && let Some(task) = next.next()
        {
            let free = !self.queues.stopping.contains(&task) && !self.is_blocked(task) && !self.is_taken(task, now);
            if free && !taken.iter().any(|other| self.collide(task, *other)) {
                taken.push(task);
            }
        }
        let at_work: BTreeSet<usize> = self.queues.active.iter().chain(resumed).chain(&taken).copied().collect();
        events.extend(taken.iter().filter_map(|task| self.assign(*task, &at_work, now)));
        events
    }

    /// Whether another task works on the same paths. A task whose owner asked something keeps its paths, because its
    /// work is half done.
    pub(super) fn is_blocked(&self, task: usize) -> bool {
        self.claims.block(task, self.owns(task))
    }

    /// Whether another plan works on the same paths.
    fn is_taken(&self, task: usize, now: &PlanEnv<'_>) -> bool {
        let meets = |mine: &String| now.taken.iter().any(|theirs| overlap(mine, theirs));
        self.owns(task).iter().any(meets)
    }

    fn collide(&self, task: usize, other: usize) -> bool {
        self.owns(task).iter().any(|mine| self.owns(other).iter().any(|theirs| overlap(mine, theirs)))
    }

    fn owns(&self, task: usize) -> &[String] {
        self.draft_task(task).map_or(&[], |task| task.owned())
    }

    fn assign(&self, task: usize, at_work: &BTreeSet<usize>, now: &PlanEnv<'_>) -> Option<Event> {
        let written = self.draft_task(task)?;
        let slot = self.slots.get(task)?;
        let member = slot.owner.member.clone().unwrap_or_else(|| written.agent.clone());
        let model = slot.owner.model.clone().or_else(|| written.model.clone());
        let beside = at_work.iter().filter(|other| **other != task).filter_map(|other| self.name(*other));
        Some(Event::TaskAssigned(TaskAssigned {
            task: written.id.clone(),
            attempt: slot.tries.attempt + 1,
            agent: self.agent_for(&written.id, &member, model.as_deref()),
            member,
            model,
            deadline_ms: now.at_ms.saturating_add(self.timeout_ms(task)),
            note: slot.note.clone(),
            before: Vec::new(),
            tree: None,
            beside: beside.take(BESIDE_TASKS_MAX).collect(),
        }))
    }

    /// Of the questions about the plan as a whole, one is open at a time.
    fn ask_about_all(&self) -> Vec<Event> {
        if self.questions.is_asked(None) {
            return Vec::new();
        }
        let waves = self.graph.as_ref().map_or(0, |graph| graph.waves().len());
        let first_over = self.progress.waves > 0
            && self.progress.waves < waves
            && self.progress.open == 0
            && self.progress.unsettled > 0;
        let about = match (first_over, !self.queues.paused.is_empty() && self.queues.is_at_rest()) {
            (true, _) => PlanQuestion::Rest,
            (false, true) => PlanQuestion::Budget,
            (false, false) => return Vec::new(),
        };
        vec![Event::PlanAsked(PlanAsked { question: self.next_question(0), about })]
    }

    /// Withdraws questions whose answers would change nothing any more.
    fn unask(&self) -> Vec<Event> {
        let (questions, replaced_by) = (self.questions.withdrawn.clone(), self.closing.replaced_by);
        if questions.is_empty() { Vec::new() } else { vec![Event::PlanUnasked(PlanUnasked { questions, replaced_by })] }
    }

    fn end(&self) -> Vec<Event> {
        // A log without a valid draft has nothing to run, but the plan ends only after its open questions are
        // answered.
        let over = self.progress.unsettled == 0
            && self.queues.stopping.is_empty()
            && (self.graph.is_some() || self.questions.open.is_empty());
        if over { vec![self.ended_event(self.outcome())] } else { Vec::new() }
    }

    fn outcome(&self) -> PlanEnd {
        let failed = self.progress.tally.failed.saturating_sub(self.progress.tally.mended);
        match (self.closing.stopped, failed, self.progress.tally.cancelled, self.progress.tally.done) {
            (true, ..) if self.closing.replaced => PlanEnd::Replaced,
            (true, ..) => PlanEnd::Stopped,
            _ if self.graph.is_none() => PlanEnd::Failed,
            (false, 0, 0, _) => PlanEnd::Done,
            // Nothing failed: its tasks, or their owners, were stopped one by one.
            (false, 0, _, 0) => PlanEnd::Stopped,
            (false, _, _, 0) => PlanEnd::Failed,
            (false, ..) => PlanEnd::Partial,
        }
    }

    pub(super) fn places(&self) -> usize {
        let Some(proposed) = &self.proposed else { return 0 };
        let own = proposed.draft.max_parallel.unwrap_or(u32::MAX);
        usize::try_from(proposed.max_parallel.min(own).max(1)).unwrap_or(1)
    }
}

fn given_up(task: String, detail: String, kind: TaskErrorKind, stopping: bool) -> Event {
    Event::TaskCancelled(TaskCancelled {
        task,
        detail,
        kind,
        spent: ResourceUse::default(),
        stopping,
        files: Vec::new(),
    })
}
