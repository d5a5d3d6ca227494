//! What follows for everybody else once an input has been folded in: who is given up, what the clock says, who is
//! next, whom to ask, whether it is over. Nothing here changes state.
//!
//! Each kind of thing is decided on the state that the one before left behind, until nothing follows. None of them
//! looks at more than what moves, except the end of all.

use super::event::{
    About, Cause, PlanAsked, PlanEnd, PlanStopped, Spent, TaskAssigned, TaskCancelled, TaskQueued, TaskResumed,
    TaskSkipped,
};
use super::machine::Plan;
use super::slot::{Doom, State};
use super::{Findings, Now, overlap};
use crate::event::Event;
use crate::limits::READY_SCANNED_MAX;

impl Plan {
    /// What follows, one kind of thing at a time.
    pub(super) fn advance(&self, now: Now<'_>) -> Vec<Event> {
        if self.ended.is_some() || self.proposed.is_none() {
            return Vec::new();
        }
        // What is given up comes first: a task that was stopped must not fail by the clock as well.
        let steps: [&dyn Fn() -> Vec<Event>; 7] = [
            &|| self.give_up(),
            &|| self.out_of_time(now),
            &|| self.by_the_clock(now),
            &|| self.ask_to_start(),
            &|| self.fill_places(now),
            &|| self.ask_about_all(),
            &|| self.end(),
        ];
        steps.iter().map(|step| step()).find(|events| !events.is_empty()).unwrap_or_default()
    }

    fn give_up(&self) -> Vec<Event> {
        let doomed = self.doomed.iter().filter_map(|(task, doom)| {
            let stopping = self.slots.get(*task)?.state.is_at_work();
            let task = self.name(*task)?;
            Some(match doom {
                Doom::Skip(reason, detail) => {
                    Event::TaskSkipped(TaskSkipped { task, reason: *reason, detail: detail.clone() })
                }
                Doom::Cancel(detail) => {
                    let (detail, spent) = (detail.clone(), Spent::default());
                    Event::TaskCancelled(TaskCancelled { task, detail, spent, stopping, files: Vec::new() })
                }
            })
        });
        doomed.collect()
    }

    fn out_of_time(&self, now: Now<'_>) -> Vec<Event> {
        let wall_ms = self.draft().and_then(|draft| draft.budget.wall_ms).unwrap_or_default();
        if self.stopped || self.over_at_ms.is_none_or(|over_at_ms| now.at_ms < over_at_ms) {
            return Vec::new();
        }
        let by = format!("its time budget of {} s", wall_ms / 1_000);
        vec![Event::PlanStopped(PlanStopped { task: None, by, replaced_by: None })]
    }

    fn by_the_clock(&self, now: Now<'_>) -> Vec<Event> {
        let due = self.clock.iter().take_while(|(at_ms, _)| *at_ms <= now.at_ms);
        due.filter_map(|(_, task)| {
            let slot = self.slots.get(*task)?;
            Some(match &slot.state {
                State::Waiting { .. } => Event::TaskQueued(TaskQueued { task: self.name(*task)? }),
                _ => {
                    let error = format!("it took longer than {} s", self.timeout_ms(*task) / 1_000);
                    let none = Spent::default();
                    self.failure(
                        *task,
                        slot.attempt,
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
        let gated = self.gated.iter().zip(0..).filter_map(|(task, ahead)| {
            let about = About::Start { task: self.name(*task)? };
            Some(Event::PlanAsked(PlanAsked { question: self.next_question(ahead), about }))
        });
        gated.collect()
    }

    fn fill_places(&self, now: Now<'_>) -> Vec<Event> {
        let mut free = self.places().saturating_sub(self.active.len());
        let mut events = Vec::new();
        for task in self.answered.iter().take(free) {
            let left_ms = match self.slots.get(*task).map(|slot| &slot.state) {
                Some(State::Answered { left_ms, .. }) => *left_ms,
                _ => 0,
            };
            let Some(id) = self.name(*task) else { continue };
            events.push(Event::TaskResumed(TaskResumed { task: id, deadline_ms: now.at_ms.saturating_add(left_ms) }));
            free -= 1;
        }
        if !self.paused.is_empty() {
            return events;
        }
        let mut taken: Vec<usize> = Vec::new();
        let mut next = self.ready.next().take(free + READY_SCANNED_MAX);
        while taken.len() < free
            && let Some(task) = next.next()
        {
            let free = !self.stopping.contains(&task) && !self.is_blocked(task) && !self.is_taken(task, now);
            if free && !taken.iter().any(|other| self.collide(task, *other)) {
                events.extend(self.assign(task, now));
                taken.push(task);
            }
        }
        events
    }

    /// Whether somebody is at work on the same paths. Whoever asks something keeps their paths: they are half done.
    pub(super) fn is_blocked(&self, task: usize) -> bool {
        self.claims.block(task, self.owns(task))
    }

    /// Whether another plan is at work on the same paths.
    fn is_taken(&self, task: usize, now: Now<'_>) -> bool {
        let meets = |mine: &String| now.taken.iter().any(|theirs| overlap(mine, theirs));
        self.owns(task).iter().any(meets)
    }

    fn collide(&self, task: usize, other: usize) -> bool {
        self.owns(task).iter().any(|mine| self.owns(other).iter().any(|theirs| overlap(mine, theirs)))
    }

    fn owns(&self, task: usize) -> &[String] {
        self.draft().and_then(|draft| draft.tasks.get(task)).map_or(&[], |task| task.owned())
    }

    fn assign(&self, task: usize, now: Now<'_>) -> Option<Event> {
        let written = self.draft()?.tasks.get(task)?;
        let slot = self.slots.get(task)?;
        let member = slot.member.clone().unwrap_or_else(|| written.agent.clone());
        let model = slot.model.clone().or_else(|| written.model.clone());
        Some(Event::TaskAssigned(TaskAssigned {
            task: written.id.clone(),
            attempt: slot.attempt + 1,
            agent: self.agent_for(&written.id, &member, model.as_deref()),
            member,
            model,
            deadline_ms: now.at_ms.saturating_add(self.timeout_ms(task)),
            note: slot.note.clone(),
            before: Vec::new(),
            tree: None,
            beside: Vec::new(),
        }))
    }

    /// Of the questions about the plan as a whole, one is open at a time.
    fn ask_about_all(&self) -> Vec<Event> {
        if self.asked_of.contains_key(&None) {
            return Vec::new();
        }
        let waves = self.graph.as_ref().map_or(0, |graph| graph.waves().len());
        let first_over = self.waves > 0 && self.waves < waves && self.open == 0 && self.unsettled > 0;
        let at_rest = self.active.is_empty() && self.answered.is_empty() && self.unchecked.is_empty();
        let about = match (first_over, !self.paused.is_empty() && at_rest) {
            (true, _) => About::Rest,
            (false, true) => About::Budget,
            (false, false) => return Vec::new(),
        };
        vec![Event::PlanAsked(PlanAsked { question: self.next_question(0), about })]
    }

    fn end(&self) -> Vec<Event> {
        // A log without a sound draft has nothing to run, but somebody may still have to say no to it.
        let over = self.unsettled == 0 && self.stopping.is_empty() && (self.graph.is_some() || self.asked.is_empty());
        if over { vec![self.ended_event(self.outcome())] } else { Vec::new() }
    }

    fn outcome(&self) -> PlanEnd {
        let failed = self.tally.failed.saturating_sub(self.tally.mended);
        match (self.stopped, failed, self.tally.cancelled, self.tally.done) {
            (true, ..) if self.replaced => PlanEnd::Replaced,
            (true, ..) => PlanEnd::Stopped,
            _ if self.graph.is_none() => PlanEnd::Failed,
            (false, 0, 0, _) => PlanEnd::Done,
            // Nothing failed: its tasks, or whoever worked at them, were stopped one by one.
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
