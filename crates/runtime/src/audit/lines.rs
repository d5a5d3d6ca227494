//! The audit line of each event; most events have none.
//!
//! A result knows only the key of its call, so the tool names of an answer's calls are remembered until its agent
//! answers again or its turn is over.

use std::borrow::Cow;
use std::collections::HashMap;

use max_team_core::chat::Part;
use max_team_core::event::{Event, LlmEnded, LlmOutcome, ToolDone, ToolIntent, ToolOutcome};
use max_team_core::id::AgentId;
use max_team_core::plan::event::{PlanEnd, Ruling, TaskResult};
use max_team_core::policy::DecidedBy;
use max_team_core::task_list::ItemMoved;
use max_team_core::turn::call_key;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::AuditLevel;
use crate::handle::Origin;
use crate::rows::AnswerWord;
use crate::session::preview;

/// The names of calls by agent, each with its key.
pub(super) type Names = HashMap<Option<AgentId>, Vec<(String, String)>>;

/// Level, type and data of a line.
pub(super) type Line<'e> = (AuditLevel, &'static str, Data<'e>);

/// The data of a line. The two most frequent kinds are serialised directly from the event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Data<'e> {
    Called(Called<'e>),
    Executed(Executed<'e>),
    Other(Value),
}

#[derive(Debug, Serialize)]
pub(super) struct Called<'e> {
    model: &'e str,
    input_tokens: u64,
    output_tokens: u64,
    ms: u64,
    request_id: Option<&'e str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Executed<'e> {
    tool: Option<Cow<'e, str>>,
    duration: String,
    success: bool,
    call: &'e str,
    ending: ToolOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    refused: Option<RefusedCall<'e>>,
}

/// A refused call, and what refused it.
#[derive(Debug, Serialize)]
pub(super) struct RefusedCall<'e> {
    target: &'e str,
    by: &'e DecidedBy,
}

/// The line about an event, unless its kind is less important than `least`.
pub(super) fn line<'e>(from: &Origin, event: &'e Event, names: &mut Names, least: AuditLevel) -> Option<Line<'e>> {
    match event {
        Event::LlmEnded(ended) => {
            remember(from, ended, names);
            called(ended)
        }
        Event::ToolIntent(intent) => {
            let calls = names.entry(from.agent).or_default();
            if calls.iter().all(|(key, _)| *key != intent.key) {
                calls.push((intent.key.clone(), intent.tool.clone()));
            }
            (least <= AuditLevel::Debug).then(|| approved(intent))
        }
        Event::ToolDone(done) => {
            let calls = names.get_mut(&from.agent);
            let tool = calls.and_then(|calls| {
                let at = calls.iter().position(|(key, _)| *key == done.key)?;
                Some(calls.swap_remove(at).1)
            });
            Some(executed(done, tool))
        }
        Event::TurnEnded(_) => {
            names.remove(&from.agent);
            None
        }
        Event::QuestionAnswered(answered) => {
            let answer = &answered.answer;
            let mut data = by(&answer.by);
            data.insert("question".to_owned(), json!(answered.question));
            data.insert("what".to_owned(), json!(AnswerWord::of(answer)));
            data.insert("always".to_owned(), json!(answer.always));
            if !answer.comment.is_empty() {
                data.insert("comment".to_owned(), json!(answer.comment));
            }
            Some((AuditLevel::Info, "approval", Data::Other(Value::Object(data))))
        }
        Event::PlanAnswered(answered) => {
            let mut data = by(&answered.by);
            data.insert("plan".to_owned(), json!(from.plan));
            data.insert("question".to_owned(), json!(answered.question));
            data.insert("what".to_owned(), json!(AnswerWord::of_plan(&answered.say)));
            data.insert("say".to_owned(), json!(answered.say));
            Some((AuditLevel::Info, "approval", Data::Other(Value::Object(data))))
        }
        other => task(from, other).or_else(|| plan(from, other)),
    }
}

fn remember(from: &Origin, ended: &LlmEnded, names: &mut Names) {
    if let LlmOutcome::Done(answer) = &ended.outcome {
        let uses = answer.message.tool_uses().enumerate();
        let calls = uses.map(|(index, (_, name, _))| (call_key(ended.call, index), name.to_owned()));
        names.insert(from.agent, calls.collect());
    }
}

fn approved(intent: &ToolIntent) -> Line<'static> {
    let mut data = json!({ "tool": intent.tool, "target": intent.action.target, "by": intent.approval });
    if let (false, Value::Object(data)) = (intent.rules.is_empty(), &mut data) {
        data.insert("rules".to_owned(), json!(intent.rules));
    }
    (AuditLevel::Debug, "approval", Data::Other(data))
}

fn called(ended: &LlmEnded) -> Option<Line<'_>> {
    match &ended.outcome {
        LlmOutcome::Done(answer) => {
            let data = Called {
                model: &answer.model,
                input_tokens: answer.usage.input_total(),
                output_tokens: answer.usage.output,
                ms: ended.ms,
                request_id: answer.request_id.as_deref(),
            };
            Some((AuditLevel::Info, "llm_call", Data::Called(data)))
        }
        LlmOutcome::Failed { failure, detail, retry_at_ms, .. } => {
            let level = if retry_at_ms.is_some() { AuditLevel::Warn } else { AuditLevel::Error };
            Some((level, "error", Data::Other(json!({ "failure": failure, "error": detail }))))
        }
        LlmOutcome::Cancelled { .. } | LlmOutcome::Lost => None,
    }
}

fn executed(done: &ToolDone, tool: Option<String>) -> Line<'_> {
    let refusal = done.refused.as_ref().filter(|_| done.is_error);
    let words = || {
        let texts = done.content.iter().find_map(|part| match part {
            Part::Text { text } => Some(preview(text)),
            _ => None,
        });
        texts.unwrap_or_default()
    };
    let data = Executed {
        tool: refusal.map(|refusal| Cow::Borrowed(refusal.tool.as_str())).or(tool.map(Cow::Owned)),
        duration: format!("{}ms", done.ms),
        success: !done.is_error,
        call: &done.key,
        ending: done.ending,
        error: done.is_error.then(words),
        refused: refusal.map(|refusal| RefusedCall { target: &refusal.target, by: &refusal.by }),
    };
    let level = if done.is_error { AuditLevel::Warn } else { AuditLevel::Info };
    (level, "tool_exec", Data::Executed(data))
}

/// Who decided, and where.
fn by(by: &DecidedBy) -> Map<String, Value> {
    let name = by.name();
    let (who, place) = match by {
        DecidedBy::Person(who) => {
            who.rsplit_once(" at ").map_or((who.as_str(), None), |(who, place)| (who, Some(place)))
        }
        DecidedBy::Rule(_) | DecidedBy::Grant(_) => (name.as_str(), Some("rule")),
        DecidedBy::Lead(lead) => (lead.as_str(), Some("lead")),
        DecidedBy::Nobody(why) => (why.as_str(), Some("nobody")),
    };
    Map::from_iter([("who".to_owned(), json!(who)), ("where".to_owned(), json!(place))])
}

fn task(from: &Origin, event: &Event) -> Option<Line<'static>> {
    let (task, status, attempt, more) = match event {
        Event::TaskAssigned(of) => (&of.task, "dispatched", Some(of.attempt), json!({ "member": of.member })),
        Event::TaskStarted(of) => (&of.task, "running", Some(of.attempt), json!({})),
        Event::TaskAsked(of) => (&of.task, "asking", Some(of.attempt), json!({ "question": of.question })),
        Event::TaskHeld(of) => match &of.outage {
            None => (&of.task, "waiting for a person", Some(of.attempt), json!({})),
            Some(why) => (&of.task, "waiting for the model server", Some(of.attempt), json!({ "error": why })),
        },
        Event::TaskAnswered(of) => (&of.task, "answered", None, json!({ "by": of.by })),
        Event::TaskResumed(of) => (&of.task, "running", None, json!({})),
        Event::TaskReported(of) => (&of.task, "checking", Some(of.attempt), json!({})),
        Event::TaskDone(of) => (&of.task, "done", Some(of.attempt), done(&of.result)),
        Event::TaskCorrected(of) => (&of.task, "corrected", Some(of.attempt), done(&of.result)),
        Event::TaskFailed(of) => {
            let more = json!({ "cause": of.cause, "error": of.error, "retried": of.retry_at_ms.is_some() });
            (&of.task, "failed", Some(of.attempt), more)
        }
        Event::TaskDeferred(of) => (&of.task, "checked again later", Some(of.attempt), json!({ "after": of.after })),
        Event::TaskChanged(of) => (&of.task, "noted", None, json!({ "by": of.by, "note": of.note })),
        Event::TaskQueued(of) => (&of.task, "approved", None, json!({})),
        Event::TaskRuled(of) => (&of.task, ruled(&of.ruling), None, json!({ "by": of.by })),
        Event::TaskPaused(of) => (&of.task, "paused", None, json!({})),
        Event::TaskSkipped(of) => (&of.task, "skipped", None, json!({ "why": of.detail })),
        Event::TaskCancelled(of) => (&of.task, "cancelled", None, json!({ "why": of.detail })),
        Event::TaskStopped(of) => (&of.task, "stopped", Some(of.attempt), json!({ "files": of.files })),
        Event::ItemMoved(of) => return Some(listed(of)),
        _ => return None,
    };
    let mut data = Map::from_iter([
        ("plan".to_owned(), json!(from.plan)),
        ("task".to_owned(), json!(task)),
        ("status".to_owned(), json!(status)),
        ("attempt".to_owned(), json!(attempt)),
    ]);
    if let Value::Object(more) = more {
        data.extend(more);
    }
    let level = if matches!(event, Event::TaskFailed(_)) { AuditLevel::Warn } else { AuditLevel::Info };
    Some((level, "task_update", Data::Other(Value::Object(data))))
}

/// A task of the shared list, which is in no plan.
fn listed(of: &ItemMoved) -> Line<'static> {
    let (status, owner) = (of.state.status, &of.state.owner);
    let data = json!({ "task": of.id.to_string(), "status": status, "what": of.what, "owner": owner, "by": of.by });
    (AuditLevel::Info, "task_update", Data::Other(data))
}

fn done(result: &TaskResult) -> Value {
    match &result.cached {
        Some(cached) => json!({ "proof": result.proof, "cached": cached }),
        None => json!({ "proof": result.proof }),
    }
}

fn ruled(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Skip => "to be skipped",
        Ruling::Retry { .. } => "to be tried again",
        Ruling::Fixed => "to be checked again",
        Ruling::Accept => "accepted as it is",
        Ruling::GiveUp => "given up",
        Ruling::Escalate => "the user must say",
    }
}

fn plan(from: &Origin, event: &Event) -> Option<Line<'static>> {
    let mut level = AuditLevel::Info;
    let data = match event {
        Event::PlanProposed(of) => {
            let (goal, tasks) = (&of.draft.goal, of.draft.tasks.len());
            json!({ "plan": of.plan, "status": "proposed", "goal": goal, "tasks": tasks, "by": of.by })
        }
        Event::PlanEdited(_) => json!({ "plan": from.plan, "status": "edited" }),
        Event::EditRefused(of) => json!({ "plan": from.plan, "status": "edit refused", "error": of.error }),
        Event::PlanAsked(of) => {
            json!({ "plan": from.plan, "status": "asked", "about": of.about, "question": of.question })
        }
        Event::PlanRevised(of) => {
            json!({ "plan": from.plan, "status": "revised", "revision": of.revision, "held": of.held })
        }
        Event::RevisionEnded(of) => {
            let status = if of.reworked { "another revision wanted" } else { "revision not approved" };
            json!({ "plan": from.plan, "status": status, "revision": of.revision })
        }
        Event::PlanResumed(of) => json!({ "plan": from.plan, "status": "resumed", "by": of.by }),
        Event::PlanStopped(of) => json!({ "plan": from.plan, "task": of.task, "status": "stopped", "by": of.by }),
        Event::PlanPaused(of) => {
            let status = if of.stopped { "stopped" } else { "paused" };
            json!({ "plan": from.plan, "status": status, "by": of.by, "files": of.files })
        }
        Event::PlanEnded(of) => {
            if matches!(of.end, PlanEnd::Failed | PlanEnd::Partial) {
                level = AuditLevel::Warn;
            }
            json!({ "plan": from.plan, "status": of.end, "tally": of.tally })
        }
        _ => return None,
    };
    Some((level, "task_update", Data::Other(data)))
}

#[cfg(test)]
mod tests {
    use max_team_core::chat::{Answer, Message, StopReason, Usage};
    use max_team_core::event::QuestionAnswered;
    use max_team_core::id::{PlanId, QuestionId};
    use max_team_core::plan::event::{PlanAnswered, PlanDecision, TaskStarted};
    use max_team_core::policy;
    use max_team_core::task_list::{ListTaskState, ListTaskStatus, StatusChange};
    use uuid::Uuid;

    use super::*;

    /// A line at the level of everything, its data as it is read.
    fn line(from: &Origin, event: &Event, names: &mut Names) -> Option<(AuditLevel, &'static str, Value)> {
        let (level, kind, data) = super::line(from, event, names, AuditLevel::Debug)?;
        Some((level, kind, json!(data)))
    }

    fn done(key: &str, is_error: bool) -> Event {
        let content = vec![Part::text("no such file\nmore")];
        Event::ToolDone(ToolDone {
            key: key.into(),
            ending: ToolOutcome::Ran,
            content,
            is_error,
            ms: 12,
            refused: None,
            words: String::new(),
        })
    }

    fn answer(tool: &str) -> Event {
        let call = Part::ToolUse { id: "t".into(), name: tool.into(), input: json!({}).into() };
        let message = Message::assistant(vec![Part::text("hm"), call]);
        let (stop, usage) = (StopReason::ToolUse, Usage { input: 7, output: 2, ..Usage::default() });
        let outcome = LlmOutcome::Done(Answer { message, stop, usage, request_id: None, model: "m".into() });
        Event::LlmEnded(LlmEnded { call: 1, outcome, ms: 3, summary: false, estimate: None })
    }

    #[test]
    fn calls_of_agents_with_one_name_are_told_apart() {
        let agent = |number| Origin { name: "leo".into(), ..Origin::agent(AgentId::new(Uuid::from_u128(number))) };
        let (one, two) = (agent(1), agent(2));
        let mut names = Names::new();
        let (_, kind, data) = line(&one, &answer("edit_file"), &mut names).unwrap();
        assert_eq!((kind, &data["input_tokens"]), ("llm_call", &json!(7)));
        line(&two, &answer("read_file"), &mut names);
        let (level, kind, data) = line(&one, &done("1.0", true), &mut names).unwrap();
        assert_eq!((level, kind), (AuditLevel::Warn, "tool_exec"));
        let want = json!({
            "tool": "edit_file", "duration": "12ms", "success": false, "call": "1.0", "ending": "ran",
            "error": "no such file",
        });
        assert_eq!(data, want);
        let (_, _, data) = line(&two, &done("1.0", false), &mut names).unwrap();
        assert_eq!((&data["tool"], data.get("error")), (&json!("read_file"), None));
    }

    #[test]
    fn tasks_of_the_shared_list_say_whose_they_are() {
        let state =
            ListTaskState { status: ListTaskStatus::InProgress, owner: "leo".into(), ..ListTaskState::default() };
        let id = "3".parse().unwrap();
        let moved = Event::ItemMoved(ItemMoved { id, what: StatusChange::Claimed, state, by: "leo".into() });
        let (_, kind, data) = line(&Origin::named("leo"), &moved, &mut Names::new()).unwrap();
        let want = json!({ "task": "3", "status": "in_progress", "what": "claimed", "owner": "leo", "by": "leo" });
        assert_eq!((kind, data), ("task_update", want));
    }

    #[test]
    fn approvals_say_who_and_where_and_tasks_of_which_plan() {
        let plan = PlanId::new(Uuid::from_u128(7));
        let from = Origin { plan: Some(plan), ..Origin::named("plan") };
        let question = QuestionId::new(Uuid::from_u128(8));
        let mut names = Names::new();
        let started = Event::TaskStarted(TaskStarted { task: "a".into(), attempt: 2 });
        let (_, kind, data) = line(&from, &started, &mut names).unwrap();
        assert_eq!(
            (kind, data),
            ("task_update", json!({ "plan": plan, "task": "a", "status": "running", "attempt": 2 }))
        );
        let by = DecidedBy::Person("ann at cli".into());
        let yes = Event::PlanAnswered(PlanAnswered {
            question,
            say: PlanDecision::Approve,
            by: by.clone(),
            turn: None,
            carried: None,
        });
        let (_, kind, data) = line(&from, &yes, &mut names).unwrap();
        let found = (kind, &data["who"], &data["where"], &data["what"]);
        assert_eq!(found, ("approval", &json!("ann"), &json!("cli"), &json!("approved")));
        let answer = policy::PermissionAnswer { comment: "no".into(), ..policy::PermissionAnswer::new(false, by) };
        let no = Event::QuestionAnswered(QuestionAnswered { question, answer });
        let (_, _, data) = line(&from, &no, &mut names).unwrap();
        assert_eq!((&data["who"], &data["what"], &data["comment"]), (&json!("ann"), &json!("no"), &json!("no")));
    }
}
