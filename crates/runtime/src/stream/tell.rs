//! Turns an entry of the log into events of the stream.
//!
//! Pure: the same entry gives the same events to every reader. The match has no wildcard: events that are not shown
//! are listed.

mod plan;

use max_team_core::body::Body;
use max_team_core::chat::{Part, Usage};
use max_team_core::event::{
    AgentStarted, Event, LlmEnded, LlmIntent, LlmOutcome, QuestionAnswered, QuestionAsked, ToolDone, ToolIntent,
    TurnEnded, TurnOutcome,
};
use max_team_core::id::PlanId;
use max_team_core::ledger::dollars;
use max_team_core::message::Envelope;

use super::bench::Bench;
use super::event::{ApprovalStep, BudgetStep, What};
use super::step::StepText;
use crate::rows::AnswerWord;
use crate::session::preview;
use max_team_core::status::{AgentStage, FailureCause, IdleReason, WaitTarget};

/// The stream events of an event. `bench` has already folded it; `plan` is the plan whose stream it is in, if any.
pub(super) fn tell(bench: &Bench, plan: Option<PlanId>, event: &Event) -> Vec<What> {
    let status = |step| vec![said(bench, step)];
    match event {
        Event::SessionOpened(opened) => status(StepText::SessionBegins { cwd: opened.cwd.clone() }),
        Event::AgentStarted(started) => vec![starting(started)],
        Event::Forked(of) => status(StepText::Forked { session: of.session, seq: of.seq }),
        Event::Nudged(nudged) => status(StepText::Nudged(nudged.text.clone())),
        Event::Interrupted(of) => status(StepText::Stopped { by: of.by.clone() }),
        Event::TurnStarted(_) => vec![busy()],
        Event::LlmIntent(intent) => vec![asks_model(bench, intent)],
        Event::LlmEnded(ended) => called(bench, ended),
        Event::ToolIntent(intent) => vec![begun(bench, intent)],
        Event::ToolDone(done) => vec![ended(bench, done)],
        Event::QuestionAsked(of) => asked(of),
        Event::QuestionAnswered(of) => vec![answered(of), busy()],
        Event::TaskDrafted(task) => status(StepText::TaskDrafted(task.id.clone())),
        Event::CompactionAsked(_) => status(StepText::CompactionAsked),
        Event::Compacted(of) => status(StepText::Compacted { before: of.messages.0, after: of.messages.1 }),
        Event::CompactionFailed(of) => status(StepText::CompactionFailed(of.detail.clone())),
        Event::Uncompacted(_) => status(StepText::Uncompacted),
        Event::TurnEnded(ended) => over(bench, ended),
        Event::Steered(steered) => status(StepText::Steered(preview(&words(&steered.input)))),
        Event::Mailed(envelope) => vec![mail(envelope)],
        Event::PlanProposed(_)
        | Event::PlanEdited(_)
        | Event::EditRefused(_)
        | Event::PlanAsked(_)
        | Event::PlanAnswered(_)
        | Event::PlanUnasked(_)
        | Event::PlanRevised(_)
        | Event::RevisionEnded(_)
        | Event::PlanResumed(_)
        | Event::PlanStopped(_)
        | Event::PlanPaused(_)
        | Event::PlanEnded(_)
        | Event::TaskAssigned(_)
        | Event::TaskStarted(_)
        | Event::TaskAsked(_)
        | Event::TaskMarked(_)
        | Event::TaskHeld(_)
        | Event::TaskAnswered(_)
        | Event::TaskResumed(_)
        | Event::TaskReported(_)
        | Event::TaskDone(_)
        | Event::TaskCorrected(_)
        | Event::TaskFailed(_)
        | Event::TaskQueued(_)
        | Event::TaskDeferred(_)
        | Event::TaskChanged(_)
        | Event::TaskRuled(_)
        | Event::TaskPaused(_)
        | Event::TaskSkipped(_)
        | Event::TaskCancelled(_)
        | Event::TaskStopped(_) => plan.map_or_else(Vec::new, |plan| self::plan::tell(plan, event)),
        Event::Requested(_)
        | Event::Responded(_)
        | Event::MessageRefused(_)
        | Event::AgentEnded(_)
        | Event::ReviewBegun(_)
        | Event::Granted(_)
        | Event::CommandBegun(_)
        | Event::CommandOver(_)
        | Event::ItemAdded(_)
        | Event::ItemWritten(_)
        | Event::ItemMoved(_) => team(bench, event),
        Event::RewindEnded(of) => status(StepText::FilesRestored { failed: of.failed.len() }),
        // Protected files were moved away.
        Event::FilesChanged(of) => of.moved.iter().map(|file| said(bench, StepText::FileMoved(file.clone()))).collect(),
        // A message is shown as mail, a reply as the end of its turn, a submitted plan as proposed.
        Event::Said(_) | Event::Withdrawn(_) | Event::Replied(_) | Event::PlanSubmitted(_) => Vec::new(),
        Event::Configured(_) | Event::Rewound(_) | Event::CacheKept(_) | Event::CacheCleared(_) => Vec::new(),
        Event::MemorySet(_) | Event::MemoryForgotten(_) | Event::MemoryHanded(_) => Vec::new(),
    }
}

fn asks_model(bench: &Bench, intent: &LlmIntent) -> What {
    let model = Some(intent.model.name.clone());
    What::Status { iteration: bench.iteration, message: calling(intent).into(), tool_id: None, model }
}

/// An agent starts, with its task.
fn starting(started: &AgentStarted) -> What {
    let given = started.assignment.as_ref();
    let message = given.map_or("", |given| if given.title.is_empty() { &given.task } else { &given.title });
    What::Agent { state: AgentStage::Starting, reason: None, message: message.to_owned().into() }
}

/// Requests of teammates, and changes of the shared list.
fn team(bench: &Bench, event: &Event) -> Vec<What> {
    let step = match event {
        Event::Requested(asked) => StepText::Requested { kind: asked.kind, to: asked.to.clone() },
        Event::Responded(of) => of.kind.map_or(StepText::Unanswered, StepText::Responded),
        Event::MessageRefused(of) => {
            StepText::MessageRefused { kind: of.kind, from: of.from.clone(), why: of.why.clone() }
        }
        Event::AgentEnded(of) => {
            let message = StepText::Ended { by: of.by.clone(), reason: of.reason.clone(), forced: of.forced };
            return vec![What::Agent { state: AgentStage::Stopped, reason: None, message }];
        }
        Event::ReviewBegun(_) => StepText::ReviewBegun,
        Event::Granted(of) => StepText::Granted { asker: of.asker.clone() },
        Event::CommandBegun(of) => StepText::CommandBegun { id: of.id.clone(), name: of.name.clone() },
        Event::CommandOver(of) if of.stopped => StepText::CommandStopped { id: of.id.clone() },
        Event::CommandOver(of) => StepText::CommandOver { id: of.id.clone() },
        Event::ItemAdded(of) => StepText::ItemAdded { id: of.id, subject: of.text.subject.clone() },
        Event::ItemWritten(of) => StepText::ItemWritten { id: of.id, subject: of.text.subject.clone() },
        Event::ItemMoved(of) => {
            StepText::ItemMoved { id: of.id, status: of.state.status, owner: of.state.owner.clone() }
        }
        _ => return Vec::new(),
    };
    vec![said(bench, step)]
}

fn said(bench: &Bench, message: StepText) -> What {
    What::Status { iteration: bench.iteration, message, tool_id: None, model: None }
}

fn busy() -> What {
    What::Agent { state: AgentStage::Busy, reason: None, message: StepText::default() }
}

fn ready(reason: IdleReason) -> What {
    What::Agent { state: AgentStage::Ready, reason: Some(reason), message: StepText::default() }
}

fn calling(intent: &LlmIntent) -> String {
    let what = if intent.summary.is_some() { " for a summary" } else { "" };
    let again = if intent.attempt > 1 { format!(", attempt {}", intent.attempt) } else { String::new() };
    format!("calls {}{what}{again}", intent.model.name)
}

fn called(bench: &Bench, ended: &LlmEnded) -> Vec<What> {
    let iteration = bench.iteration;
    let failed = |message, retry_at_ms| What::Error {
        iteration,
        message,
        done: false,
        response: String::new(),
        end: String::new(),
        retry_at_ms,
    };
    let paid = |state, usage: Option<Usage>| What::Budget {
        state,
        model: Some(bench.model.clone()),
        usage,
        cost_usd: usage.zip(bench.price).map(|(usage, price)| dollars(price.cost_of(usage))),
        plan: None,
        task: None,
    };
    let estimated = ended.estimate.map(|usage| paid(BudgetStep::Unknown, Some(usage)));
    match &ended.outcome {
        LlmOutcome::Done(answer) => {
            let spent = estimated.unwrap_or_else(|| paid(BudgetStep::Spent, Some(answer.usage)));
            // The text of the last answer is shown as the end of the turn.
            let goes_on = !ended.summary && answer.message.tool_uses().next().is_some();
            let words = Some(answer.message.text()).filter(|words| goes_on && !words.is_empty());
            let words = words.map(|words| said(bench, StepText::Text(words)));
            words.into_iter().chain([spent]).collect()
        }
        LlmOutcome::Failed { detail, retry_at_ms, .. } => {
            [failed(FailureCause::Error(detail.clone()), *retry_at_ms)].into_iter().chain(estimated).collect()
        }
        LlmOutcome::Cancelled { usage, .. } => {
            vec![estimated.unwrap_or_else(|| paid(BudgetStep::Spent, Some(*usage)))]
        }
        LlmOutcome::Lost => {
            vec![failed(FailureCause::Lost, None), estimated.unwrap_or_else(|| paid(BudgetStep::Unknown, None))]
        }
    }
}

fn begun(bench: &Bench, intent: &ToolIntent) -> What {
    let args = bench.calls.get(&intent.key).map(|(_, args)| args.clone());
    What::ToolStart {
        iteration: bench.iteration,
        tool_id: intent.key.clone(),
        tool_name: intent.tool.clone(),
        tool_args: args.unwrap_or_default(),
        target: intent.action.target.clone(),
    }
}

fn ended(bench: &Bench, done: &ToolDone) -> What {
    let text = words(&done.content);
    What::ToolResult {
        iteration: bench.iteration,
        tool_id: done.key.clone(),
        tool_name: bench.calls.get(&done.key).map(|(tool, _)| tool.clone()).unwrap_or_default(),
        summary: preview(&text),
        tool_result: text,
        ending: done.ending,
        is_error: done.is_error,
        ms: done.ms,
    }
}

/// All text parts.
fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn asked(of: &QuestionAsked) -> Vec<What> {
    let question = What::Approval {
        question: of.question,
        state: ApprovalStep::Asked,
        plan: None,
        tool_id: Some(of.key.clone()),
        tool_name: Some(of.tool.clone()),
        message: of.action.target.clone().into(),
        preview: of.action.preview.clone(),
        said: None,
        by: None,
    };
    vec![question, ready(IdleReason::waits_for(WaitTarget::You))]
}

fn answered(of: &QuestionAnswered) -> What {
    What::Approval {
        question: of.question,
        state: ApprovalStep::Answered,
        plan: None,
        tool_id: None,
        tool_name: None,
        message: of.answer.comment.clone().into(),
        preview: String::new(),
        said: Some(AnswerWord::of(&of.answer)),
        by: Some(of.answer.by.clone()),
    }
}

fn over(bench: &Bench, ended: &TurnEnded) -> Vec<What> {
    let (iteration, response, done) = (bench.iteration, ended.text.clone(), true);
    let (reason, end) = (IdleReason::of(&ended.end), ended.end.name().to_owned());
    let last = match FailureCause::of(&ended.end) {
        None => What::Final { iteration, response, done, end },
        Some(message) => What::Error { iteration, message, done, response, end, retry_at_ms: None },
    };
    let reached = (ended.end == TurnOutcome::Budget).then_some(What::Budget {
        state: BudgetStep::Reached,
        model: None,
        usage: None,
        cost_usd: None,
        plan: None,
        task: None,
    });
    [Some(last), reached, Some(ready(reason))].into_iter().flatten().collect()
}

/// A message of any kind, with its text if it has one.
fn mail(envelope: &Envelope) -> What {
    let words = match Body::read(envelope) {
        Body::Clarification(asked) => asked.question,
        _ => envelope.text(),
    };
    What::Mail {
        id: envelope.id,
        from: envelope.from.clone(),
        to: envelope.to.clone(),
        to_name: String::new(),
        kind: envelope.kind,
        reply_to: envelope.reply_to,
        message: words.to_owned(),
    }
}
