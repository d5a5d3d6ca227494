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
use max_team_core::rewind::MovedFile;

use super::bench::Bench;
use super::event::{ApprovalStep, BudgetStep, What};
use crate::rows::yes_or_no;
use crate::session::preview;
use max_team_core::status::{AgentStage, IdleReason, WaitTarget};

/// The stream events of an event. `bench` has already folded it; `plan` is the plan whose stream it is in, if any.
pub(super) fn tell(bench: &Bench, plan: Option<PlanId>, event: &Event) -> Vec<What> {
    let status = |message: String| vec![said(bench, message)];
    match event {
        Event::SessionOpened(opened) => status(format!("the session begins in {}", opened.cwd)),
        Event::AgentStarted(started) => vec![starting(started)],
        Event::Forked(_) | Event::Nudged(_) | Event::Interrupted(_) => status(happened(event)),
        Event::TurnStarted(_) => vec![busy()],
        Event::LlmIntent(intent) => vec![asks_model(bench, intent)],
        Event::LlmEnded(ended) => called(bench, ended),
        Event::ToolIntent(intent) => vec![begun(bench, intent)],
        Event::ToolDone(done) => vec![ended(bench, done)],
        Event::QuestionAsked(of) => asked(of),
        Event::QuestionAnswered(of) => vec![answered(of), busy()],
        Event::TaskDrafted(task) => status(format!("task `{}` is written down", task.id)),
        Event::CompactionAsked(_) | Event::Compacted(_) => status(compaction(event)),
        Event::CompactionFailed(_) | Event::Uncompacted(_) => status(compaction(event)),
        Event::TurnEnded(ended) => over(bench, ended),
        Event::Steered(steered) => status(format!("is told on its way: {}", preview(&words(&steered.input)))),
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
        Event::RewindEnded(of) => status(format!("files were put back; {} could not be", of.failed.len())),
        Event::FilesChanged(of) => moved(bench, &of.moved),
        // A message is shown as mail, a reply as the end of its turn, a submitted plan as proposed.
        Event::Said(_) | Event::Withdrawn(_) | Event::Replied(_) | Event::PlanSubmitted(_) => Vec::new(),
        Event::Configured(_) | Event::Rewound(_) | Event::CacheKept(_) | Event::CacheCleared(_) => Vec::new(),
        Event::MemorySet(_) | Event::MemoryForgotten(_) | Event::MemoryHanded(_) => Vec::new(),
    }
}

/// A fork, a nudge or an interrupt as text.
fn happened(event: &Event) -> String {
    match event {
        Event::Forked(of) => format!("goes on from {} behind {}", of.session, of.seq),
        Event::Nudged(nudged) => format!("the model is told: {}", nudged.text),
        Event::Interrupted(of) => format!("stopped by {}", of.by),
        _ => String::new(),
    }
}

fn asks_model(bench: &Bench, intent: &LlmIntent) -> What {
    let model = Some(intent.model.name.clone());
    What::Status { iteration: bench.iteration, message: calling(intent), tool_id: None, model }
}

/// An agent starts, with its task.
fn starting(started: &AgentStarted) -> What {
    let given = started.assignment.as_ref();
    let message = given.map_or("", |given| if given.title.is_empty() { &given.task } else { &given.title });
    What::Agent { state: AgentStage::Starting, reason: None, message: message.to_owned() }
}

/// A compaction as text.
fn compaction(event: &Event) -> String {
    match event {
        Event::CompactionAsked(_) => "what was said so far is to be summed up".to_owned(),
        Event::Compacted(of) => {
            let (before, after) = of.messages;
            format!("{before} messages are told in {after} from now on")
        }
        Event::CompactionFailed(of) => format!("there is no summary: {}", of.detail),
        _ => "the last summary counts no more".to_owned(),
    }
}

/// Requests of teammates, and changes of the shared list.
fn team(bench: &Bench, event: &Event) -> Vec<What> {
    let status = |message: String| vec![said(bench, message)];
    match event {
        Event::Requested(asked) => status(format!("{} is sent to {}", asked.kind.name(), asked.to)),
        Event::Responded(of) => status(match of.kind {
            Some(kind) => format!("{} has come", kind.name()),
            None => "no answer came in time".to_owned(),
        }),
        Event::MessageRefused(of) => status(format!("{} of {} is refused: {}", of.kind.name(), of.from, of.why)),
        Event::AgentEnded(of) => {
            let forced = if of.forced { ", forced" } else { "" };
            let message = format!("ended by {}{forced} {}", of.by, of.reason).trim_end().to_owned();
            vec![What::Agent { state: AgentStage::Stopped, reason: None, message }]
        }
        Event::ReviewBegun(_) => status("its changes in its worktree are reviewed".to_owned()),
        Event::Granted(of) => status(format!("may do what {} was allowed for the session", of.asker)),
        Event::CommandBegun(of) => status(format!("{} runs in the background: {}", of.id, of.name)),
        Event::CommandOver(of) if of.stopped => status(format!("{} was stopped", of.id)),
        Event::CommandOver(of) => status(format!("{} is over", of.id)),
        Event::ItemAdded(of) => status(format!("task #{} is added: {}", of.id, of.text.subject)),
        Event::ItemWritten(of) => status(format!("task #{} says: {}", of.id, of.text.subject)),
        Event::ItemMoved(of) => {
            let owner = Some(of.state.owner.as_str()).filter(|owner| !owner.is_empty()).unwrap_or("nobody");
            status(format!("task #{} is {}, of {owner}", of.id, of.state.status.name()))
        }
        _ => Vec::new(),
    }
}

/// Protected files were moved away.
fn moved(bench: &Bench, files: &[MovedFile]) -> Vec<What> {
    let words = |MovedFile { path, to }: &MovedFile| match to.as_str() {
        "" => format!("a command made the protected file {path} without approval; it could not be moved away"),
        to => format!("a command made the protected file {path} without approval; it was moved to {to}"),
    };
    files.iter().map(|file| said(bench, words(file))).collect()
}

fn said(bench: &Bench, message: String) -> What {
    What::Status { iteration: bench.iteration, message, tool_id: None, model: None }
}

fn busy() -> What {
    What::Agent { state: AgentStage::Busy, reason: None, message: String::new() }
}

fn ready(reason: IdleReason) -> What {
    What::Agent { state: AgentStage::Ready, reason: Some(reason), message: String::new() }
}

fn calling(intent: &LlmIntent) -> String {
    let what = if intent.summary.is_some() { " for a summary" } else { "" };
    let again = if intent.attempt > 1 { format!(", attempt {}", intent.attempt) } else { String::new() };
    format!("calls {}{what}{again}", intent.model.name)
}

fn called(bench: &Bench, ended: &LlmEnded) -> Vec<What> {
    let iteration = bench.iteration;
    let failed = |message: String, retry_at_ms| What::Error {
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
            let words = words.map(|message| said(bench, message));
            words.into_iter().chain([spent]).collect()
        }
        LlmOutcome::Failed { detail, retry_at_ms, .. } => {
            [failed(detail.clone(), *retry_at_ms)].into_iter().chain(estimated).collect()
        }
        LlmOutcome::Cancelled { usage, .. } => {
            vec![estimated.unwrap_or_else(|| paid(BudgetStep::Spent, Some(*usage)))]
        }
        LlmOutcome::Lost => {
            let words = "the process died while the model was called".to_owned();
            vec![failed(words, None), estimated.unwrap_or_else(|| paid(BudgetStep::Unknown, None))]
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
        message: of.action.target.clone(),
        preview: of.action.preview.clone(),
        said: String::new(),
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
        message: of.answer.comment.clone(),
        preview: String::new(),
        said: yes_or_no(&of.answer).to_owned(),
        by: Some(of.answer.by.name()),
    }
}

fn over(bench: &Bench, ended: &TurnEnded) -> Vec<What> {
    let (iteration, response, done, end) = (bench.iteration, ended.text.clone(), true, name(&ended.end));
    let reason = IdleReason::of(&ended.end);
    let last = match (&ended.end, reason.detail()) {
        (TurnOutcome::Answered | TurnOutcome::Proposed, _) => What::Final { iteration, response, done, end },
        (_, Some(message)) => What::Error { iteration, message, done, response, end, retry_at_ms: None },
        (_, None) => {
            let message = "the answer was too long and is cut".to_owned();
            What::Error { iteration, message, done, response, end, retry_at_ms: None }
        }
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

/// The name that an end has in the journal.
fn name(end: &TurnOutcome) -> String {
    let value = serde_json::to_value(end).unwrap_or_default();
    let named = value.as_str().or_else(|| value.as_object()?.keys().next().map(String::as_str));
    named.unwrap_or_default().to_owned()
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
