//! Turns inputs into events, such as the end of a task and whether a failed one is tried again (`failure`). Nothing here
//! changes state.
//!
//! An input decides its own consequence here; `advance` then decides what follows for other tasks. An input that does
//! not fit the state (any more) decides nothing, so its sender need not check.

use super::Edit;
use super::apply::shape;
use super::event::{
    CachedAnswer, Cause, Evidence, PlanAnswered, PlanAsked, PlanDecision, PlanEdited, PlanEnd, PlanEnded, PlanPaused,
    PlanProposed, PlanQuestion, PlanResumed, PlanStopped, Proof, ResourceUse, Ruling, TaskAnswered, TaskAsked,
    TaskCancelled, TaskChanged, TaskDeferred, TaskDone, TaskErrorKind, TaskFailed, TaskHeld, TaskMarked, TaskPaused,
    TaskReported, TaskResult, TaskResumed, TaskRuled, TaskStarted, TaskStopped,
};
use super::input::{Findings, PlanEnv, PlanInput, Report};
use super::state::Plan;
use super::task_state::TaskState;
use crate::delegation::ending::not_done;
use crate::event::Event;
use crate::hash::Hash;
use crate::id::{EnvelopeId, QuestionId};
use crate::limits::{
    PLAN_SNAPSHOT_ENTRIES_MIN, RULED_RETRIES_MAX, TASK_BACKOFF_MS, TASK_BACKOFF_MS_MAX, TASK_TIMEOUT_MS_DEFAULT,
};
use crate::machine::Machine;
use crate::policy::DecidedBy;

impl Machine for Plan {
    const SNAPSHOT_VERSION: u32 = 10;
    const SNAPSHOT_ENTRIES_MIN: u64 = PLAN_SNAPSHOT_ENTRIES_MIN;

    type Input = PlanInput;
    type Now<'n> = PlanEnv<'n>;

    fn decide(&self, input: PlanInput, now: &PlanEnv<'_>) -> Vec<Event> {
        self.decide(input, now)
    }

    fn advance(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        self.advance(now)
    }

    fn apply(&mut self, event: &Event, at_ms: i64) {
        self.apply(event, at_ms);
    }
}

impl Plan {
    /// What follows from an input alone.
    pub fn decide(&self, input: PlanInput, now: &PlanEnv<'_>) -> Vec<Event> {
        if let PlanInput::Propose(proposed) = input {
            return if self.proposed.is_none() { self.propose(*proposed) } else { Vec::new() };
        }
        // After the end only corrections are accepted: owners can still be asked again.
        let is_over = self.closing.end.is_some() && !matches!(input, PlanInput::Corrected { .. });
        if is_over || self.proposed.is_none() {
            return Vec::new();
        }
        match input {
            PlanInput::Propose(_) | PlanInput::Woke => Vec::new(),
            PlanInput::Edited { question, edits, edited } => self.edit(question, edits, *edited, now),
            PlanInput::Unfit(refused) => vec![Event::EditRefused(refused)],
            PlanInput::Answered { question, say, by } => self.answered(question, say, by, now),
            PlanInput::Begun { task, attempt } => self.begun(task, attempt),
            PlanInput::Reported { task, attempt, report, spent } => self.reported(task, attempt, report, spent, now),
            PlanInput::Served { task, attempt, output, findings, cached } => {
                self.served(task, attempt, output, findings, cached)
            }
            PlanInput::Corrected { task, answer } => self.corrected(task, answer),
            // The checks of a stopped plan were cancelled: they run again when it continues.
            PlanInput::Checked { .. } if self.is_held() => Vec::new(),
            PlanInput::Checked { task, attempt, findings } => self.checked(task, attempt, findings, now),
            PlanInput::Asked { task, attempt, question, envelope } => self.asks(task, attempt, question, envelope, now),
            PlanInput::Marked { task, tree } => self.mark(task, tree),
            PlanInput::Probed { tasks, line } => self.probed(&tasks, &line),
            PlanInput::Held { task, attempt, outage } => self.hold_clock(task, attempt, outage, now),
            PlanInput::Freed { task, attempt } => self.free_clock(task, attempt, now),
            PlanInput::Told { task, answer, by } => {
                self.told(task, |task| TaskAnswered { task, answer, by, unanswered: false })
            }
            PlanInput::Unanswered { task } => self.told(task, TaskAnswered::missing),
            PlanInput::Rule { task, ruling, by, note } => {
                let tried = self.slots.get(task).map_or(0, |slot| slot.tries.retried);
                // A lead that has retried this often cannot decide it again: the user must. This is a rule of the
                // code, not the lead's decision.
                match ruling {
                    Ruling::Retry { .. } if tried >= RULED_RETRIES_MAX => {
                        let why = format!("it was retried {tried} times already");
                        self.rule(task, Ruling::Escalate, DecidedBy::Rule(why), String::new())
                    }
                    Ruling::Accept if self.has_unowned_changes(task) => {
                        let why = "only the user accepts changes of files that the task does not own".to_owned();
                        self.rule(task, Ruling::Escalate, DecidedBy::Rule(why), note)
                    }
                    ruling => self.rule(task, ruling, DecidedBy::Lead(by), note),
                }
            }
            PlanInput::LeadSilent => self.lead_silent(),
            input @ (PlanInput::Pause { .. }
            | PlanInput::Hold { .. }
            | PlanInput::Continue { .. }
            | PlanInput::Resume { .. }) => self.pause_or_resume(input, now),
            PlanInput::Note { task, note, by } => self.add_note(task, note, by),
            PlanInput::Revised { revision, tasks } => self.revise(revision, &tasks),
            PlanInput::RevisionEnded { revision, reworked } => self.revision_ended(revision, reworked),
            PlanInput::Replaced { revision } => vec![Event::PlanStopped(PlanStopped {
                task: None,
                by: format!("plan {revision}"),
                replaced_by: Some(revision),
            })],
            PlanInput::Stop { task: None, by } => {
                vec![Event::PlanStopped(PlanStopped { task: None, by, replaced_by: None })]
            }
            PlanInput::Stop { task: Some(task), by } => self.stop_one(task, by),
            PlanInput::Slept { ms } => self.postpone(ms),
            PlanInput::Recovered { first } => {
                let follows = first.into_iter().flat_map(|input| self.decide(input, now));
                self.renew(now).into_iter().chain(follows).collect()
            }
        }
    }

    /// Pauses a plan that the user leaves or stops, and resumes one that the user continues or whose budget has
    /// room again.
    fn pause_or_resume(&self, input: PlanInput, now: &PlanEnv<'_>) -> Vec<Event> {
        match input {
            PlanInput::Pause { by, files } if self.is_moving() => {
                vec![Event::PlanPaused(PlanPaused { by, files, stopped: false })]
            }
            PlanInput::Hold { by } if self.is_approved() && !self.is_held() => {
                vec![Event::PlanPaused(PlanPaused { by, files: Vec::new(), stopped: true })]
            }
            PlanInput::Continue { by } if self.is_held() => {
                vec![Event::PlanResumed(PlanResumed { by, turn: now.fresh })]
            }
            PlanInput::Resume { by } if !self.queues.paused.is_empty() && !self.is_held() => {
                vec![Event::PlanResumed(PlanResumed { by, turn: None })]
            }
            _ => Vec::new(),
        }
    }

    fn propose(&self, proposed: PlanProposed) -> Vec<Event> {
        let question = self.questions.next_id(Some(proposed.plan), 0);
        let rule = proposed.approving_rule();
        let mut events = vec![
            Event::PlanProposed(proposed),
            Event::PlanAsked(PlanAsked { question, about: PlanQuestion::Proposal }),
        ];
        if let Some(rule) = rule {
            let by = DecidedBy::Rule(rule.to_owned());
            events.push(Event::PlanAnswered(PlanAnswered {
                question,
                say: PlanDecision::Approve,
                by,
                turn: None,
                carried: None,
            }));
        }
        events
    }

    fn answered(&self, question: QuestionId, say: PlanDecision, by: DecidedBy, now: &PlanEnv<'_>) -> Vec<Event> {
        let Some(about) = self.questions.about(question) else { return Vec::new() };
        let who = by.name();
        let carried = now.carried.filter(|_| *about == PlanQuestion::Proposal);
        let answered = |say: PlanDecision| {
            let carried =
                carried.filter(|_| matches!(say, PlanDecision::Approve | PlanDecision::FirstWave)).map(<[_]>::to_vec);
            Event::PlanAnswered(PlanAnswered { question, say, by: by.clone(), turn: now.fresh, carried })
        };
        let stop = || Event::PlanStopped(PlanStopped { task: None, by: who.clone(), replaced_by: None });
        match (about, say) {
            (_, PlanDecision::Edit(_)) => Vec::new(),
            (PlanQuestion::Failure { task, .. }, say) => {
                let Some(index) = self.graph.as_ref().and_then(|graph| graph.index(task)) else { return Vec::new() };
                let ruling = match &say {
                    PlanDecision::Rule(Ruling::Escalate) | PlanDecision::FirstWave | PlanDecision::Edit(_) => {
                        return Vec::new();
                    }
                    PlanDecision::Rule(ruling) => ruling.clone(),
                    PlanDecision::Approve => Ruling::Retry { agent: None, model: None, note: String::new() },
                    PlanDecision::Changes(_) | PlanDecision::Reject(_) => Ruling::GiveUp,
                };
                let mut events = vec![answered(say)];
                events.extend(self.rule(index, ruling, by.clone(), String::new()));
                events
            }
            (_, PlanDecision::Rule(_)) => Vec::new(),
            (PlanQuestion::Start { task }, say @ PlanDecision::Reject(_)) => {
                vec![
                    answered(say),
                    Event::PlanStopped(PlanStopped { task: Some(task.clone()), by: who, replaced_by: None }),
                ]
            }
            (PlanQuestion::Proposal, say @ PlanDecision::Reject(_)) => {
                vec![answered(say), self.ended_event(PlanEnd::Rejected)]
            }
            (PlanQuestion::Proposal, say @ PlanDecision::Changes(_)) => {
                vec![answered(say), self.ended_event(PlanEnd::Replaced)]
            }
            (_, say @ (PlanDecision::Reject(_) | PlanDecision::Changes(_))) => vec![answered(say), stop()],
            (PlanQuestion::Budget, say) => vec![answered(say), Event::PlanResumed(PlanResumed { by: who, turn: None })],
            (_, say) => vec![answered(say)],
        }
    }

    fn stop_one(&self, task: usize, by: String) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if !slot.state.is_settled() => {
                vec![Event::PlanStopped(PlanStopped { task: Some(id), by, replaced_by: None })]
            }
            _ => Vec::new(),
        }
    }

    fn begun(&self, task: usize, attempt: u32) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot))
                if slot.tries.attempt == attempt && matches!(slot.state, TaskState::Dispatched { .. }) =>
            {
                vec![Event::TaskStarted(TaskStarted { task: id, attempt })]
            }
            _ => Vec::new(),
        }
    }

    /// The task's name, if this attempt is being worked on.
    fn at_work(&self, task: usize, attempt: u32) -> Option<String> {
        let slot = self.slots.get(task)?;
        if slot.state.is_at_work() && slot.tries.attempt == attempt { self.name(task) } else { None }
    }

    /// An owner that was told to stop has stopped: only the cost of its work counts.
    fn stopped(&self, task: usize, attempt: u32, spent: ResourceUse) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if slot.tries.attempt == attempt && self.queues.stopping.contains(&task) => {
                vec![Event::TaskStopped(TaskStopped { task: id, attempt, spent, files: Vec::new() })]
            }
            _ => Vec::new(),
        }
    }

    fn reported(&self, task: usize, attempt: u32, report: Report, spent: ResourceUse, now: &PlanEnv<'_>) -> Vec<Event> {
        let Some(id) = self.at_work(task, attempt) else { return self.stopped(task, attempt, spent) };
        match report {
            Report::Done { output, findings: None, unknown } => {
                vec![Event::TaskReported(TaskReported { task: id, attempt, output, spent, unknown })]
            }
            Report::Done { output, findings: Some(findings), unknown } => {
                let mut all = self.slots.get(task).map(|slot| slot.money.spent).unwrap_or_default();
                all.add(spent);
                let result = TaskResult { unknown, ..result(output, findings, all) };
                vec![Event::TaskDone(TaskDone { task: id, attempt, result })]
            }
            Report::Failed { error, output } => {
                vec![self.failure(task, attempt, Cause::Agent, error, Findings::default(), output, spent, now)]
            }
            Report::NotDone { output } => {
                let error = format!("not done: {}", not_done(&output).unwrap_or(&output));
                vec![self.failure(task, attempt, Cause::NotDone, error, Findings::default(), output, spent, now)]
            }
            Report::OutOfMoney { output, left, own } => {
                vec![Event::TaskPaused(TaskPaused { task: id, output, spent, left, own, stopped: false })]
            }
            Report::Stopped if self.is_held() => {
                let (output, left, own, stopped) = (String::new(), None, false, true);
                vec![Event::TaskPaused(TaskPaused { task: id, output, spent, left, own, stopped })]
            }
            Report::Stopped => {
                let detail = "its work was stopped".to_owned();
                vec![Event::TaskCancelled(TaskCancelled {
                    task: id,
                    detail,
                    kind: TaskErrorKind::Text,
                    spent,
                    stopping: false,
                    files: Vec::new(),
                })]
            }
        }
    }

    /// Only a first attempt can be answered from the cache, because a retry should do something else; and only a task
    /// that leaves nothing but its answer, because files of the earlier run may be gone.
    fn served(
        &self,
        task: usize,
        attempt: u32,
        output: String,
        findings: Findings,
        cached: CachedAnswer,
    ) -> Vec<Event> {
        let written = self.draft_task(task).filter(|task| task.leaves_only_words());
        match (written, self.slots.get(task)) {
            (Some(written), Some(slot))
                if slot.tries.attempt == attempt
                    && attempt == 1
                    && matches!(slot.state, TaskState::Dispatched { .. }) =>
            {
                let result = TaskResult { cached: Some(cached), ..result(output, findings, ResourceUse::default()) };
                vec![Event::TaskDone(TaskDone { task: written.id.clone(), attempt, result })]
            }
            _ => Vec::new(),
        }
    }

    fn checked(&self, task: usize, attempt: u32, findings: Findings, now: &PlanEnv<'_>) -> Vec<Event> {
        let (Some(id), Some(slot)) = (self.name(task), self.slots.get(task)) else { return Vec::new() };
        if slot.state != TaskState::Checking || slot.tries.attempt != attempt {
            return Vec::new();
        }
        if findings.proof != Proof::Failed {
            let result = result(slot.output.clone(), findings, slot.money.spent);
            let result = TaskResult { unknown: slot.unknown.clone(), ..result };
            return vec![Event::TaskDone(TaskDone { task: id, attempt, result })];
        }
        let wrong: Vec<&Evidence> = findings.evidence.iter().filter(|evidence| !evidence.ok).collect();
        let words: Vec<String> =
            wrong.iter().map(|evidence| format!("{}: {}", evidence.what, evidence.detail)).collect();
        let (cause, error) = if wrong.iter().all(|evidence| evidence.is_unstartable()) {
            let advice =
                "this says nothing about the task: mend the environment and decide `fixed`, or change the check";
            (Cause::Environment, format!("a check cannot be started here, {}; {advice}", words.join("; ")))
        } else {
            let is_unowned = wrong.iter().all(|evidence| evidence.is_unowned());
            let error = TaskErrorKind::Checks(wrong.iter().copied().cloned().collect()).to_string();
            (if is_unowned { Cause::Unowned } else { Cause::Checks }, error)
        };
        // A missing declared file cannot be caused by other tasks.
        let declared = self.draft_task(task).map_or(&[][..], |task| &task.outputs);
        let is_shared = !wrong.iter().any(|evidence| declared.contains(&evidence.what));
        let after = if is_shared { self.changing(task, &findings.beside) } else { Vec::new() };
        if cause == Cause::Checks && !slot.tries.deferred && !slot.tries.by_hand && !after.is_empty() {
            return vec![Event::TaskDeferred(TaskDeferred { task: id, attempt, after, evidence: findings.evidence })];
        }
        let output = slot.output.clone();
        vec![self.failure(task, attempt, cause, error, findings, output, ResourceUse::default(), now)]
    }

    /// The names of those tasks that are being worked on, and so may have made the checks of another task fail.
    fn changing(&self, task: usize, beside: &[usize]) -> Vec<String> {
        let at_work = |other: &&usize| self.slots.get(**other).is_some_and(|slot| slot.state.is_at_work());
        let others = beside.iter().filter(|other| **other != task).filter(at_work);
        others.filter_map(|other| self.name(*other)).collect()
    }

    /// A note only adds to the approved text, and changes no permission of the task.
    fn add_note(&self, task: usize, note: String, by: String) -> Vec<Event> {
        match self.name(task) {
            Some(id) if self.may_note(task) && !note.trim().is_empty() => {
                let note = Some(note);
                vec![Event::TaskChanged(TaskChanged { task: id, note, title: None, description: None, by })]
            }
            _ => Vec::new(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one event, named at each call")]
    pub(super) fn failure(
        &self,
        task: usize,
        attempt: u32,
        cause: Cause,
        error: String,
        findings: Findings,
        output: String,
        spent: ResourceUse,
        now: &PlanEnv<'_>,
    ) -> Event {
        let Findings { evidence, artifacts, .. } = findings;
        let (failures, by_hand) =
            self.slots.get(task).map_or((0, false), |slot| (slot.tries.failures, slot.tries.by_hand));
        let retries = self.draft_task(task).map_or(0, |task| task.retry);
        // A retry does not help after a timeout, a fault of the machine or an owner's own `NOT DONE`; after a fix by
        // hand, and about changes that are not the task's to make, the person decides first.
        let is_final = matches!(cause, Cause::Timeout | Cause::Environment | Cause::NotDone | Cause::Unowned);
        let again = !is_final && !by_hand && failures < retries;
        let retry_at_ms = again.then(|| now.at_ms.saturating_add(backoff_ms(failures)));
        let id = self.name(task).unwrap_or_default();
        let stopping = cause == Cause::Timeout;
        Event::TaskFailed(TaskFailed {
            task: id,
            attempt,
            cause,
            error,
            evidence,
            output,
            artifacts,
            spent,
            retry_at_ms,
            stopping,
        })
    }

    fn asks(&self, task: usize, attempt: u32, question: String, envelope: EnvelopeId, now: &PlanEnv<'_>) -> Vec<Event> {
        let Some(id) = self.at_work(task, attempt) else { return Vec::new() };
        if self.slots.get(task).is_some_and(|slot| slot.envelope == Some(envelope)) {
            return Vec::new();
        }
        vec![Event::TaskAsked(TaskAsked { task: id, attempt, question, envelope, at_ms: now.at_ms })]
    }

    /// The first snapshot counts: changes of earlier attempts belong to the task, too.
    fn mark(&self, task: usize, tree: Hash) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(task), Some(slot)) if slot.baseline.tree.is_none() && slot.state.is_at_work() => {
                vec![Event::TaskMarked(TaskMarked { task, tree: Some(tree), passed: Vec::new() })]
            }
            _ => Vec::new(),
        }
    }

    fn probed(&self, tasks: &[usize], line: &str) -> Vec<Event> {
        let is_new = |task: &&usize| {
            self.slots
                .get(**task)
                .is_some_and(|slot| slot.tries.attempt == 1 && !slot.baseline.passed.iter().any(|known| known == line))
        };
        let marked = tasks.iter().filter(is_new).filter_map(|task| {
            let (task, passed) = (self.name(*task)?, vec![line.to_owned()]);
            Some(Event::TaskMarked(TaskMarked { task, tree: None, passed }))
        });
        marked.collect()
    }

    fn hold_clock(&self, task: usize, attempt: u32, outage: Option<String>, now: &PlanEnv<'_>) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if slot.tries.attempt == attempt && self.deadline_ms(task).is_some() => {
                vec![Event::TaskHeld(TaskHeld { task: id, attempt, at_ms: now.at_ms, outage })]
            }
            _ => Vec::new(),
        }
    }

    fn free_clock(&self, task: usize, attempt: u32, now: &PlanEnv<'_>) -> Vec<Event> {
        match (self.name(task), self.slots.get(task)) {
            (Some(id), Some(slot)) if slot.tries.attempt == attempt => match slot.state {
                TaskState::Held { left_ms, .. } => vec![resumed(id, now.at_ms.saturating_add(left_ms))],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn told(&self, task: usize, answered: impl FnOnce(String) -> TaskAnswered) -> Vec<Event> {
        match (self.name(task), self.slots.get(task).map(|slot| &slot.state)) {
            (Some(id), Some(TaskState::Asking { .. })) => vec![Event::TaskAnswered(answered(id))],
            _ => Vec::new(),
        }
    }

    fn has_unowned_changes(&self, task: usize) -> bool {
        let result = self.slots.get(task).and_then(|slot| slot.outcome.result.as_deref());
        result.is_some_and(|result| result.evidence.iter().any(Evidence::is_unowned))
    }

    fn rule(&self, task: usize, ruling: Ruling, who: DecidedBy, note: String) -> Vec<Event> {
        let (Some(id), Some(slot)) = (self.name(task), self.slots.get(task)) else { return Vec::new() };
        if slot.state != (TaskState::Failed { settled: false }) {
            return Vec::new();
        }
        let escalates = ruling == Ruling::Escalate;
        let ruled = Event::TaskRuled(TaskRuled { task: id, ruling, by: who.name(), who: Some(who), note });
        match self.ask_about(task, 0) {
            // The user has been asked already.
            None if escalates => Vec::new(),
            Some(asked) if escalates => vec![ruled, asked],
            _ => vec![ruled],
        }
    }

    pub(super) fn escalate(&self) -> Vec<Event> {
        self.queues.with_lead.iter().zip(0..).filter_map(|(task, ahead)| self.ask_about(*task, ahead)).collect()
    }

    fn ask_about(&self, task: usize, ahead: u32) -> Option<Event> {
        let slot = self.slots.get(task)?;
        let (error, kind) = (slot.error.clone(), slot.error_kind.clone());
        let about = PlanQuestion::Failure { task: self.name(task)?, error, kind };
        let question = self.next_question(ahead);
        (!self.questions.is_asked(Some(task))).then_some(Event::PlanAsked(PlanAsked { question, about }))
    }

    /// After a restart every active task gets its whole timeout again, because its time does not run while no process
    /// works on it.
    fn renew(&self, now: &PlanEnv<'_>) -> Vec<Event> {
        let working = self.queues.active.iter().filter(|task| self.deadline_ms(**task).is_some());
        working
            .filter_map(|task| Some(resumed(self.name(*task)?, now.at_ms.saturating_add(self.timeout_ms(*task)))))
            .collect()
    }

    /// After a sleep of the process every deadline moves by its length, so that tasks keep the time they had left.
    fn postpone(&self, ms: i64) -> Vec<Event> {
        let later = |task: &usize| Some(resumed(self.name(*task)?, self.deadline_ms(*task)?.saturating_add(ms)));
        self.queues.active.iter().filter_map(later).collect()
    }

    /// When a task times out, if its time runs.
    fn deadline_ms(&self, task: usize) -> Option<i64> {
        match self.slots.get(task)?.state {
            TaskState::Dispatched { deadline_ms } | TaskState::Running { deadline_ms } => Some(deadline_ms),
            _ => None,
        }
    }

    /// An edited plan is asked about again: an approval of the old text does not cover it.
    fn edit(&self, question: QuestionId, edits: Vec<Edit>, edited: PlanEdited, now: &PlanEnv<'_>) -> Vec<Event> {
        if self.questions.about(question) != Some(&PlanQuestion::Proposal) || shape(&edited.draft).is_none() {
            return Vec::new();
        }
        let by = DecidedBy::person(&edited.by);
        let asked = PlanAsked { question: self.next_question(0), about: PlanQuestion::Proposal };
        vec![
            Event::PlanAnswered(PlanAnswered {
                question,
                say: PlanDecision::Edit(edits),
                by,
                turn: now.fresh,
                carried: None,
            }),
            Event::PlanEdited(edited),
            Event::PlanAsked(asked),
        ]
    }

    pub(super) fn ended_event(&self, end: PlanEnd) -> Event {
        Event::PlanEnded(PlanEnded { end, tally: self.progress.tally })
    }

    pub(super) fn timeout_ms(&self, task: usize) -> i64 {
        let own = self.draft_task(task).and_then(|task| task.timeout_ms);
        i64::try_from(own.unwrap_or(TASK_TIMEOUT_MS_DEFAULT)).unwrap_or(i64::MAX)
    }

    pub(super) fn name(&self, task: usize) -> Option<String> {
        Some(self.draft_task(task)?.id.clone())
    }
}

fn result(output: String, findings: Findings, spent: ResourceUse) -> TaskResult {
    let Findings { proof, evidence, artifacts, beside: _ } = findings;
    TaskResult { output, artifacts, proof, evidence, spent, unknown: Vec::new(), cached: None }
}

fn resumed(task: String, deadline_ms: i64) -> Event {
    Event::TaskResumed(TaskResumed { task, deadline_ms })
}

fn backoff_ms(failures: u32) -> i64 {
    let doubled = TASK_BACKOFF_MS.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX));
    i64::try_from(doubled.min(TASK_BACKOFF_MS_MAX)).unwrap_or(i64::MAX)
}
