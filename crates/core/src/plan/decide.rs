//! Turning what happened to a plan into events. Nothing here changes state.
//!
//! An input decides its own consequence; `advance` then decides what follows for everybody else: who is next, what
//! can no longer be done, whom to ask, whether it is over. The two alternate until nothing follows.

use super::event::{
    About, Approve, Artifact, Cause, Evidence, PlanAnswered, PlanAsked, PlanEdited, PlanEnd, PlanEnded, PlanProposed,
    PlanResumed, PlanStopped, Proof, Ruling, Say, SkipReason, Spent, TaskAnswered, TaskAsked, TaskAssigned,
    TaskCancelled, TaskDone, TaskFailed, TaskPaused, TaskQueued, TaskReported, TaskResult, TaskResumed, TaskRuled,
    TaskSkipped, TaskStarted,
};
use super::machine::{Doom, Plan, State};
use super::{Task, overlap};
use crate::event::Event;
use crate::id::{EnvelopeId, QuestionId};
use crate::limits::{READY_SCANNED_MAX, TASK_BACKOFF_MS, TASK_BACKOFF_MS_MAX, TASK_TIMEOUT_MS_DEFAULT};
use crate::policy::By;

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody has a plan.
    Propose(Box<PlanProposed>),
    /// A person changed it before saying yes; it has been checked.
    Edited(Box<PlanEdited>),
    /// A person answered a question about it.
    Answered {
        /// Which question.
        question: QuestionId,
        /// What they said.
        say: Say,
        /// Who.
        by: By,
    },
    /// An owner has begun.
    Begun {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
    },
    /// An owner is done, one way or another.
    Reported {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// How it went.
        report: Report,
        /// What this attempt used.
        spent: Spent,
    },
    /// Code has looked at what is there.
    Checked {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// What it saw.
        findings: Findings,
    },
    /// An owner needs to know something.
    Asked {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// What.
        question: String,
        /// The letter that asked.
        letter: EnvelopeId,
    },
    /// Here is what they need to know.
    Told {
        /// The task's place in the plan.
        task: usize,
        /// The answer.
        answer: String,
        /// Whose.
        by: String,
    },
    /// Somebody says what to do about a failure.
    Rule {
        /// The task's place in the plan.
        task: usize,
        /// What to do.
        ruling: Ruling,
        /// Who says so.
        by: String,
    },
    /// The lead has read about every failure and has nothing more to say.
    LeadSilent,
    /// Time has passed.
    Woke,
    /// Somebody stops it, or one task of it.
    Stop {
        /// The task's place in the plan.
        task: Option<usize>,
        /// Who.
        by: String,
    },
    /// There is more to spend.
    Resume {
        /// Who says so.
        by: String,
    },
    /// This process has just folded the log.
    Recovered,
}

/// How an owner's work went.
#[derive(Debug, Clone)]
pub enum Report {
    /// They say it is done. Where nothing is to be looked at, the findings come with it.
    Done {
        /// What they say.
        output: String,
        /// What was found, if nothing had to be looked at.
        findings: Option<Findings>,
    },
    /// They could not.
    Failed {
        /// Why.
        error: String,
    },
    /// The money ran out; this is what they handed back.
    OutOfMoney {
        /// What they say.
        output: String,
    },
    /// Somebody stopped them.
    Stopped,
}

/// What code saw.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Whether it is proven.
    pub proof: Proof,
    /// By what.
    pub evidence: Vec<Evidence>,
    /// What was collected.
    pub artifacts: Vec<Artifact>,
}

/// What the driver knows at the moment of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// The time.
    pub at_ms: i64,
}

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

    /// What follows from an input alone. One that no longer fits (a late report, a second answer) decides nothing.
    fn decide(&self, input: Input, now: Now) -> Vec<Event> {
        if let Input::Propose(proposed) = input {
            return if self.proposed.is_none() { self.propose(*proposed) } else { Vec::new() };
        }
        if self.ended.is_some() || self.proposed.is_none() {
            return Vec::new();
        }
        match input {
            Input::Propose(_) | Input::Woke => Vec::new(),
            Input::Edited(edited) if !self.is_approved() => vec![Event::PlanEdited(*edited)],
            Input::Edited(_) => Vec::new(),
            Input::Answered { question, say, by } => self.answered(question, say, by),
            Input::Begun { task, attempt } => self.begun(task, attempt),
            Input::Reported { task, attempt, report, spent } => self.reported(task, attempt, report, spent, now),
            Input::Checked { task, attempt, findings } => self.checked(task, attempt, findings, now),
            Input::Asked { task, attempt, question, letter } => self.asks(task, attempt, question, letter, now),
            Input::Told { task, answer, by } => self.told(task, answer, by),
            Input::Rule { task, ruling, by } => self.rule(task, ruling, by),
            Input::LeadSilent => self.escalate(),
            Input::Stop { task, by } => match task {
                Some(task) => match (self.name(task), self.slots.get(task)) {
                    (Some(id), Some(slot)) if !slot.state.is_settled() => {
                        vec![Event::PlanStopped(PlanStopped { task: Some(id), by })]
                    }
                    _ => Vec::new(),
                },
                None => vec![Event::PlanStopped(PlanStopped { task: None, by })],
            },
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
            Approve::Never => Some("`--approve never`"),
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
            (About::Start { task }, Say::Reject(_)) => {
                vec![
                    answered(Say::Reject(String::new())),
                    Event::PlanStopped(PlanStopped { task: Some(task.clone()), by: who }),
                ]
            }
            (About::Proposal, say @ Say::Reject(_)) => {
                vec![answered(say), self.ended_event(PlanEnd::Rejected)]
            }
            (About::Proposal, say @ Say::Changes(_)) => vec![answered(say), self.ended_event(PlanEnd::Replaced)],
            (_, say @ (Say::Reject(_) | Say::Changes(_))) => vec![answered(say), stop()],
            (About::Budget, say) => vec![answered(say), Event::PlanResumed(PlanResumed { by: who })],
            (_, say) => vec![answered(say)],
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
    fn at_work(&self, task: usize, attempt: u32) -> Option<(String, &Task)> {
        let slot = self.slots.get(task)?;
        let works = matches!(
            slot.state,
            State::Dispatched { .. } | State::Running { .. } | State::Asking { .. } | State::Answered { .. }
        );
        let written = self.draft()?.tasks.get(task)?;
        (works && slot.attempt == attempt).then(|| (written.id.clone(), written))
    }

    fn reported(&self, task: usize, attempt: u32, report: Report, spent: Spent, now: Now) -> Vec<Event> {
        let Some((id, _)) = self.at_work(task, attempt) else { return Vec::new() };
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
    fn failure(
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
        let failures = self.slots.get(task).map_or(0, |slot| slot.failures);
        let retries = self.draft().and_then(|draft| draft.tasks.get(task)).map_or(0, |task| task.retry);
        // Time that ran out once will run out again: somebody has to look first.
        let retry_at_ms = (cause != Cause::Timeout && failures < retries).then(|| now.at_ms + backoff_ms(failures));
        let id = self.name(task).unwrap_or_default();
        Event::TaskFailed(TaskFailed { task: id, attempt, cause, error, evidence, output, spent, retry_at_ms })
    }

    fn asks(&self, task: usize, attempt: u32, question: String, letter: EnvelopeId, now: Now) -> Vec<Event> {
        let Some((id, _)) = self.at_work(task, attempt) else { return Vec::new() };
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
        let mut events = vec![Event::TaskRuled(TaskRuled { task: id, ruling: ruling.clone(), by })];
        if ruling == Ruling::Escalate {
            events.extend(self.ask_about(task, 0));
        }
        events
    }

    fn escalate(&self) -> Vec<Event> {
        let waiting = self.with_lead.iter().enumerate();
        waiting.filter_map(|(ahead, task)| self.ask_about(*task, u32::try_from(ahead).unwrap_or(u32::MAX))).collect()
    }

    fn ask_about(&self, task: usize, ahead: u32) -> Option<Event> {
        let id = self.name(task)?;
        let asked = self.asked.values().any(|about| matches!(about, About::Failure { task, .. } if *task == id));
        let error = self.slots.get(task)?.error.clone();
        let about = About::Failure { task: id, error };
        (!asked).then(|| Event::PlanAsked(PlanAsked { question: self.next_question(ahead), about }))
    }

    /// Time does not run while nobody works: whoever was at it gets all of it again.
    fn renew(&self, now: Now) -> Vec<Event> {
        let working = self.active.iter().filter_map(|task| {
            let slot = self.slots.get(*task)?;
            let works = matches!(slot.state, State::Dispatched { .. } | State::Running { .. });
            let deadline_ms = now.at_ms + self.timeout_ms(*task);
            works.then(|| Event::TaskResumed(TaskResumed { task: self.name(*task).unwrap_or_default(), deadline_ms }))
        });
        working.collect()
    }

    /// What follows for everybody else, one kind of thing at a time.
    fn advance(&self, now: Now) -> Vec<Event> {
        if self.ended.is_some() || self.graph.is_none() {
            return Vec::new();
        }
        let steps: [&dyn Fn() -> Vec<Event>; 5] =
            [&|| self.by_the_clock(now), &|| self.give_up(), &|| self.fill_places(now), &|| self.ask_people(), &|| {
                if self.unsettled == 0 { vec![self.ended_event(self.outcome())] } else { Vec::new() }
            }];
        steps.iter().map(|step| step()).find(|events| !events.is_empty()).unwrap_or_default()
    }

    fn by_the_clock(&self, now: Now) -> Vec<Event> {
        let due = self.clock.iter().take_while(|(at_ms, _)| *at_ms <= now.at_ms);
        due.filter_map(|(_, task)| {
            let slot = self.slots.get(*task)?;
            Some(match &slot.state {
                State::Waiting { .. } => Event::TaskQueued(TaskQueued { task: self.name(*task)? }),
                _ => {
                    let error = format!("it took longer than {} s", self.timeout_ms(*task) / 1_000);
                    let none = Spent::default();
                    self.failure(*task, slot.attempt, Cause::Timeout, error, Vec::new(), String::new(), none, now)
                }
            })
        })
        .collect()
    }

    fn give_up(&self) -> Vec<Event> {
        let doomed = self.doomed.iter().filter_map(|(task, doom)| {
            let task = self.name(*task)?;
            Some(match doom {
                Doom::Skip(reason, detail) => {
                    Event::TaskSkipped(TaskSkipped { task, reason: *reason, detail: detail.clone() })
                }
                Doom::Cancel(detail) => {
                    Event::TaskCancelled(TaskCancelled { task, detail: detail.clone(), spent: Spent::default() })
                }
            })
        });
        doomed.collect()
    }

    fn fill_places(&self, now: Now) -> Vec<Event> {
        let mut free = self.places().saturating_sub(self.active.len());
        let mut events = Vec::new();
        let mut taken: Vec<usize> = Vec::new();
        for task in self.answered.iter().take(free) {
            let left = match self.slots.get(*task).map(|slot| &slot.state) {
                Some(State::Answered { left_ms, .. }) => *left_ms,
                _ => 0,
            };
            let Some(id) = self.name(*task) else { continue };
            events.push(Event::TaskResumed(TaskResumed { task: id, deadline_ms: now.at_ms + left }));
            free = free.saturating_sub(1);
        }
        if self.stopped || !self.paused.is_empty() {
            return events;
        }
        let mut asked = 0;
        for (_, task) in self.ready.iter().take(READY_SCANNED_MAX) {
            if free == 0 {
                break;
            }
            if self.graph.as_ref().is_some_and(|graph| graph.is_gated(*task)) && !self.passed.contains(task) {
                let about = About::Start { task: self.name(*task).unwrap_or_default() };
                if !self.asked.values().any(|open| *open == about) {
                    events.push(Event::PlanAsked(PlanAsked { question: self.next_question(asked), about }));
                    asked += 1;
                }
                continue;
            }
            if self.in_the_way(*task, &taken) {
                continue;
            }
            events.extend(self.assign(*task, now));
            taken.push(*task);
            free -= 1;
        }
        events
    }

    /// Whether somebody is at work on the same paths. Whoever asks something keeps their paths: they are half done.
    fn in_the_way(&self, task: usize, taken: &[usize]) -> bool {
        let Some(draft) = self.draft() else { return true };
        let owns = |task: usize| draft.tasks.get(task).map_or(&[][..], |task| &task.owns);
        let mine = owns(task);
        if mine.is_empty() {
            return false;
        }
        let others = self.active.iter().chain(&self.asking).chain(&self.answered).chain(taken);
        others.copied().any(|other| owns(other).iter().any(|theirs| mine.iter().any(|mine| overlap(mine, theirs))))
    }

    fn assign(&self, task: usize, now: Now) -> Option<Event> {
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
            deadline_ms: now.at_ms + self.timeout_ms(task),
            note: slot.note.clone(),
        }))
    }

    fn ask_people(&self) -> Vec<Event> {
        let ask = |about: About| vec![Event::PlanAsked(PlanAsked { question: self.next_question(0), about })];
        let waves = self.graph.as_ref().map_or(0, |graph| graph.waves().len());
        let is_asked = |wanted: &About| self.asked.values().any(|about| about == wanted);
        let first_over = self.waves > 0 && self.waves < waves && self.open == 0 && self.unsettled > 0;
        if first_over && !self.stopped && !is_asked(&About::Rest) {
            return ask(About::Rest);
        }
        let at_rest = self.active.is_empty() && self.answered.is_empty();
        if !self.paused.is_empty() && at_rest && !is_asked(&About::Budget) {
            return ask(About::Budget);
        }
        Vec::new()
    }

    fn outcome(&self) -> PlanEnd {
        let bad = self.tally.failed.saturating_sub(self.tally.mended) + self.tally.cancelled;
        match (self.stopped, bad, self.tally.done) {
            (true, ..) => PlanEnd::Stopped,
            (false, 0, _) => PlanEnd::Done,
            (false, _, 0) => PlanEnd::Failed,
            (false, ..) => PlanEnd::Partial,
        }
    }

    fn ended_event(&self, end: PlanEnd) -> Event {
        Event::PlanEnded(PlanEnded { end, tally: self.tally })
    }

    fn places(&self) -> usize {
        let Some(proposed) = &self.proposed else { return 0 };
        let own = proposed.draft.max_parallel.unwrap_or(u32::MAX);
        usize::try_from(proposed.max_parallel.min(own).max(1)).unwrap_or(1)
    }

    fn timeout_ms(&self, task: usize) -> i64 {
        let own = self.draft().and_then(|draft| draft.tasks.get(task)).and_then(|task| task.timeout_ms);
        i64::try_from(own.unwrap_or(TASK_TIMEOUT_MS_DEFAULT)).unwrap_or(i64::MAX / 2)
    }

    pub(super) fn name(&self, task: usize) -> Option<String> {
        Some(self.draft()?.tasks.get(task)?.id.clone())
    }
}

fn backoff_ms(failures: u32) -> i64 {
    let doubled = TASK_BACKOFF_MS.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX));
    i64::try_from(doubled.min(TASK_BACKOFF_MS_MAX)).unwrap_or(i64::MAX)
}

/// Why a task that waits on these will not run.
pub(super) fn skipped(detail: String) -> Doom {
    Doom::Skip(SkipReason::Condition, detail)
}
