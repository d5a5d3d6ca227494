//! Turning what happened to a plan into events. Nothing here changes state.
//!
//! An input decides its own consequence here; `advance` then decides what follows for everybody else. One that does
//! not fit (any more) decides nothing, so whoever brings it need not know whether it does.

use super::apply::shape;
use super::event::{
    About, Approve, Cause, Evidence, PlanAnswered, PlanAsked, PlanEnd, PlanEnded, PlanProposed, PlanResumed,
    PlanStopped, Proof, Ruling, Say, Spent, TaskAnswered, TaskAsked, TaskCancelled, TaskDone, TaskFailed, TaskPaused,
    TaskReported, TaskResult, TaskResumed, TaskRuled, TaskStarted,
};
use super::input::{Findings, Input, Now, Report};
use super::machine::Plan;
use super::slot::State;
use crate::event::Event;
use crate::id::{EnvelopeId, QuestionId};
use crate::limits::{RULED_RETRIES_MAX, TASK_BACKOFF_MS, TASK_BACKOFF_MS_MAX, TASK_TIMEOUT_MS_DEFAULT};
use crate::policy::By;

impl Plan {
    /// Decides and folds in everything that follows from an input. Whoever calls this commits the events before doing
    /// anything about them, and drops the plan if the commit fails.
    pub fn step(&mut self, input: Input, now: Now) -> Vec<Event> {
        let mut events = self.decide(input, now);
        events.iter().for_each(|event| self.apply(event, now.at_ms));
        loop {
            let more = self.advance(now);
            if more.is_empty() {
                return events;
            }
            more.iter().for_each(|event| self.apply(event, now.at_ms));
            events.extend(more);
        }
    }

    /// What follows from an input alone.
    fn decide(&self, input: Input, now: Now) -> Vec<Event> {
        if let Input::Propose(proposed) = input {
            return if self.proposed.is_none() { self.propose(*proposed) } else { Vec::new() };
        }
        if self.ended.is_some() || self.proposed.is_none() {
            return Vec::new();
        }
        match input {
            Input::Propose(_) | Input::Woke => Vec::new(),
            Input::Edited(edited) if !self.is_approved() && shape(&edited.draft).is_some() => {
                vec![Event::PlanEdited(*edited)]
            }
            Input::Edited(_) => Vec::new(),
            Input::Answered { question, say, by } => self.answered(question, say, by),
            Input::Begun { task, attempt } => self.begun(task, attempt),
            Input::Reported { task, attempt, report, spent } => self.reported(task, attempt, report, spent, now),
            Input::Checked { task, attempt, findings } => self.checked(task, attempt, findings, now),
            Input::Asked { task, attempt, question, letter } => self.asks(task, attempt, question, letter, now),
            Input::Told { task, answer, by } => self.told(task, answer, by),
            Input::Rule { task, ruling, by } => {
                let tried = self.slots.get(task).map_or(0, |slot| slot.retried);
                // Whoever keeps saying "again" does not know either: somebody else must.
                let again = matches!(ruling, Ruling::Retry { .. }) && tried >= RULED_RETRIES_MAX;
                self.rule(task, if again { Ruling::Escalate } else { ruling }, by)
            }
            Input::LeadSilent => self.escalate(),
            Input::Stop { task: None, by } => vec![Event::PlanStopped(PlanStopped { task: None, by })],
            Input::Stop { task: Some(task), by } => self.stop_one(task, by),
            Input::Resume { by } if !self.paused.is_empty() => vec![Event::PlanResumed(PlanResumed { by })],
            Input::Resume { .. } => Vec::new(),
            Input::Recovered => self.renew(now),
        }
    }

    fn propose(&self, proposed: PlanProposed) -> Vec<Event> {
        let plan = proposed.plan.to_string();
        let hash = crate::hash::Hash::of_fields(&[plan.as_bytes(), b"question", b"0"]);
        let question = QuestionId::new(hash.uuid());
        let rule = match proposed.approve {
            // Whoever is not to be asked has not said yes to what is risky either: that waits.
            Approve::Never if proposed.risks.is_empty() => Some("`--approve never`"),
            Approve::Risky if proposed.risks.is_empty() => Some("`--approve risky`: nothing risky in it"),
            _ => None,
        };
        let mut events =
            vec![Event::PlanProposed(proposed), Event::PlanAsked(PlanAsked { question, about: About::Proposal })];
        if let Some(rule) = rule {
            let by = By::Rule(rule.to_owned());
            events.push(Event::PlanAnswered(PlanAnswered { question, say: Say::Approve, by }));
        }
        events
    }

    fn answered(&self, question: QuestionId, say: Say, by: By) -> Vec<Event> {
        let Some(about) = self.asked.get(&question) else { return Vec::new() };
        let who = by.name();
        let answered = |say: Say| Event::PlanAnswered(PlanAnswered { question, say, by: by.clone() });
        let stop = || Event::PlanStopped(PlanStopped { task: None, by: who.clone() });
        match (about, say) {
            (_, Say::Edit(_)) => Vec::new(),
            (About::Failure { task, .. }, say) => {
                let Some(index) = self.graph.as_ref().and_then(|graph| graph.index(task)) else { return Vec::new() };
                let ruling = match &say {
                    Say::Rule(Ruling::Escalate) | Say::FirstWave | Say::Edit(_) => return Vec::new(),
                    Say::Rule(ruling) => ruling.clone(),
                    Say::Approve => Ruling::Retry { agent: None, model: None, note: String::new() },
                    Say::Changes(_) | Say::Reject(_) => Ruling::GiveUp,
                };
                let mut events = vec![answered(say)];
                events.extend(self.rule(index, ruling, who));
                events
            }
            (_, Say::Rule(_)) => Vec::new(),
            (About::Start { task }, say @ Say::Reject(_)) => {
                vec![answered(say), Event::PlanStopped(PlanStopped { task: Some(task.clone()), by: who })]
            }
            (About::Proposal, say @ Say::Reject(_)) => vec![answered(say), self.ended_event(PlanEnd::Rejected)],
            (About::Proposal, say @ Say::Changes(_)) => vec![answered(say), self.ended_event(PlanEnd::Replaced)],
            (_, say @ (Say::Reject(_) | Say::Changes(_))) => vec![answered(say), stop()],
            (About::Budget, say) => vec![answered(say), Event::PlanResumed(PlanResumed { by: who })],
            (_, say) => vec![answered(say)],
        }
    }

    fn stop_one(&self, task: usize, by: String) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if !slot.state.is_settled() => {
                vec![Event::PlanStopped(PlanStopped { task: Some(id), by })]
            }
            _ => Vec::new(),
        }
    }

    fn begun(&self, task: usize, attempt: u32) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if slot.attempt == attempt && matches!(slot.state, State::Dispatched { .. }) => {
                vec![Event::TaskStarted(TaskStarted { task: id, attempt })]
            }
            _ => Vec::new(),
        }
    }

    /// The task's name, if that attempt is under way.
    fn at_work(&self, task: usize, attempt: u32) -> Option<String> {
        let slot = self.slots.get(task)?;
        let works = matches!(
            slot.state,
            State::Dispatched { .. } | State::Running { .. } | State::Asking { .. } | State::Answered { .. }
        );
        if works && slot.attempt == attempt { self.name(task) } else { None }
    }

    fn reported(&self, task: usize, attempt: u32, report: Report, spent: Spent, now: Now) -> Vec<Event> {
        let Some(id) = self.at_work(task, attempt) else { return Vec::new() };
        match report {
            Report::Done { output, findings: None } => {
                vec![Event::TaskReported(TaskReported { task: id, attempt, output, spent })]
            }
            Report::Done { output, findings: Some(findings) } => {
                let mut all = self.slots.get(task).map(|slot| slot.spent).unwrap_or_default();
                all.add(spent);
                vec![self.done(id, attempt, output, findings, all)]
            }
            Report::Failed { error } => {
                vec![self.failure(task, attempt, Cause::Agent, error, Vec::new(), String::new(), spent, now)]
            }
            Report::OutOfMoney { output } => vec![Event::TaskPaused(TaskPaused { task: id, output, spent })],
            Report::Stopped => {
                let detail = "its work was stopped".to_owned();
                vec![Event::TaskCancelled(TaskCancelled { task: id, detail, spent })]
            }
        }
    }

    fn done(&self, task: String, attempt: u32, output: String, findings: Findings, spent: Spent) -> Event {
        let Findings { proof, evidence, artifacts } = findings;
        let result = TaskResult { output, artifacts, proof, evidence, spent };
        Event::TaskDone(TaskDone { task, attempt, result })
    }

    fn checked(&self, task: usize, attempt: u32, findings: Findings, now: Now) -> Vec<Event> {
        let (Some(id), Some(slot)) = (self.name(task), self.slots.get(task)) else { return Vec::new() };
        if slot.state != State::Checking || slot.attempt != attempt {
            return Vec::new();
        }
        if findings.proof != Proof::Failed {
            return vec![self.done(id, attempt, slot.output.clone(), findings, slot.spent)];
        }
        let wrong = findings.evidence.iter().filter(|evidence| !evidence.ok);
        let words: Vec<String> = wrong.map(|evidence| format!("{}: {}", evidence.what, evidence.detail)).collect();
        let error = format!("said to be done, but {}", words.join("; "));
        let output = slot.output.clone();
        vec![self.failure(task, attempt, Cause::Checks, error, findings.evidence, output, Spent::default(), now)]
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one event, named at each call")]
    pub(super) fn failure(
        &self,
        task: usize,
        attempt: u32,
        cause: Cause,
        error: String,
        evidence: Vec<Evidence>,
        output: String,
        spent: Spent,
        now: Now,
    ) -> Event {
        let (failures, by_hand) = self.slots.get(task).map_or((0, false), |slot| (slot.failures, slot.by_hand));
        let retries = self.draft().and_then(|draft| draft.tasks.get(task)).map_or(0, |task| task.retry);
        // Time that ran out once will run out again, and what somebody mended is theirs: they have to look first.
        let again = cause != Cause::Timeout && !by_hand && failures < retries;
        let retry_at_ms = again.then(|| now.at_ms.saturating_add(backoff_ms(failures)));
        let id = self.name(task).unwrap_or_default();
        Event::TaskFailed(TaskFailed { task: id, attempt, cause, error, evidence, output, spent, retry_at_ms })
    }

    fn asks(&self, task: usize, attempt: u32, question: String, letter: EnvelopeId, now: Now) -> Vec<Event> {
        let Some(id) = self.at_work(task, attempt) else { return Vec::new() };
        if self.slots.get(task).is_some_and(|slot| slot.letter == Some(letter)) {
            return Vec::new();
        }
        vec![Event::TaskAsked(TaskAsked { task: id, attempt, question, letter, at_ms: now.at_ms })]
    }

    fn told(&self, task: usize, answer: String, by: String) -> Vec<Event> {
        match (self.name(task), self.slots.get(task).map(|slot| &slot.state)) {
            (Some(id), Some(State::Asking { .. })) => {
                vec![Event::TaskAnswered(TaskAnswered { task: id, answer, by })]
            }
            _ => Vec::new(),
        }
    }

    fn rule(&self, task: usize, ruling: Ruling, by: String) -> Vec<Event> {
        let (Some(id), Some(slot)) = (self.name(task), self.slots.get(task)) else { return Vec::new() };
        if slot.state != (State::Failed { settled: false }) {
            return Vec::new();
        }
        let escalates = ruling == Ruling::Escalate;
        let ruled = Event::TaskRuled(TaskRuled { task: id, ruling, by });
        match self.ask_about(task, 0) {
            // The user has been asked already.
            None if escalates => Vec::new(),
            Some(asked) if escalates => vec![ruled, asked],
            _ => vec![ruled],
        }
    }

    fn escalate(&self) -> Vec<Event> {
        self.with_lead.iter().zip(0..).filter_map(|(task, ahead)| self.ask_about(*task, ahead)).collect()
    }

    fn ask_about(&self, task: usize, ahead: u32) -> Option<Event> {
        let about = About::Failure { task: self.name(task)?, error: self.slots.get(task)?.error.clone() };
        let question = self.next_question(ahead);
        (!self.asked_of.contains_key(&Some(task))).then_some(Event::PlanAsked(PlanAsked { question, about }))
    }

    /// Time does not run while nobody works: whoever was at it gets all of it again.
    fn renew(&self, now: Now) -> Vec<Event> {
        let working = self.active.iter().filter_map(|task| {
            let slot = self.slots.get(*task)?;
            let works = matches!(slot.state, State::Dispatched { .. } | State::Running { .. });
            let deadline_ms = now.at_ms.saturating_add(self.timeout_ms(*task));
            works.then(|| Event::TaskResumed(TaskResumed { task: self.name(*task).unwrap_or_default(), deadline_ms }))
        });
        working.collect()
    }

    pub(super) fn ended_event(&self, end: PlanEnd) -> Event {
        Event::PlanEnded(PlanEnded { end, tally: self.tally })
    }

    pub(super) fn timeout_ms(&self, task: usize) -> i64 {
        let own = self.draft().and_then(|draft| draft.tasks.get(task)).and_then(|task| task.timeout_ms);
        i64::try_from(own.unwrap_or(TASK_TIMEOUT_MS_DEFAULT)).unwrap_or(i64::MAX)
    }

    pub(super) fn name(&self, task: usize) -> Option<String> {
        Some(self.draft()?.tasks.get(task)?.id.clone())
    }
}

fn backoff_ms(failures: u32) -> i64 {
    let doubled = TASK_BACKOFF_MS.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX));
    i64::try_from(doubled.min(TASK_BACKOFF_MS_MAX)).unwrap_or(i64::MAX)
}
