//! The shape of `--output-format json|stream-json`: the one that scripts around other agents already read.
//!
//! Lines are `system`, `assistant`, `user` and `result` objects; what those cannot say comes as `type: "max"`,
//! which other readers skip: events of the one stream that `max-team events` reads, too.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::chat::{Message, Part, Usage};
use max_team_core::context::summary::{Compacted, Why};
use max_team_core::event::{End, Event, LlmEnded, Outcome, TurnEnded};
use max_team_core::id::{PlanId, QuestionId, SessionId};
use max_team_core::ledger::dollars;
use max_team_core::turn::call_key;
use max_team_runtime::{Delta, Open, Opened, Recovered, Status, StreamEvent, What, new_id};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::words::Lang;

/// What a result is called that is an error without a name of its own.
const ERROR: &str = "error_during_execution";

/// Why a run is an error that has no error of its lead's turn: a word for scripts, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    reason: &'static str,
    error: Cow<'static, str>,
}

impl Cut {
    pub(crate) fn new(reason: &'static str, error: &'static str) -> Self {
        Self { reason, error: Cow::Borrowed(error) }
    }

    /// The time for it was over; the words say which.
    pub(crate) fn late(words: String) -> Self {
        Self { reason: "stopped", error: Cow::Owned(words) }
    }

    /// What a code says without a plan.
    pub(crate) fn of(exit: Exit) -> Option<Self> {
        match exit {
            // One word for one thing: whoever was stopped, and by whomever.
            Exit::Interrupted | Exit::Terminated => {
                Some(Self::new("stopped", "stopped before everything asked for was done"))
            }
            Exit::Partial => Some(Self::new("partial", "somebody of the team could not begin")),
            _ => None,
        }
    }
}

/// The first line.
pub(crate) fn init(opened: &Opened, open: &Open, cwd: &std::path::Path, key_source: &str) -> Value {
    let others = open.team.iter().flat_map(|team| team.members.iter().chain(&team.experts));
    let agents: Vec<&String> =
        std::iter::once(&open.definition.name).chain(others.map(|mate| &mate.definition.name)).collect();
    json!({
        "type": "system", "subtype": "init", "session_id": opened.session, "uuid": new_id(),
        "cwd": cwd, "model": open.settings.model.name, "permissionMode": open.settings.mode.name(),
        "tools": open.definition.tools, "mcp_servers": [], "slash_commands": [], "agents": agents,
        "skills": [], "plugins": [], "apiKeySource": key_source, "output_style": "default",
    })
}

/// What happened, as a line that other readers skip, unless the shapes of others say it already: those tell what Max says
/// and what his tools return.
pub(crate) fn of_stream(event: &StreamEvent) -> Option<Value> {
    let is_other = event.agent.as_ref().is_some_and(|who| !who.lead);
    let told = match &event.what {
        What::ContentDelta { .. } => false,
        What::Status { .. } | What::ToolResult { .. } | What::Final { .. } | What::Error { .. } => is_other,
        What::ToolStart { .. }
        | What::Plan { .. }
        | What::Task { .. }
        | What::Mail { .. }
        | What::Approval { .. }
        | What::Budget { .. }
        | What::Agent { .. } => true,
    };
    told.then(|| {
        json!({
            "type": "max", "subtype": event.what.name(), "session_id": event.session, "uuid": new_id(),
            "event": event,
        })
    })
}

/// The last line of a run whose plan waits for a person, which somebody may have stopped.
pub(crate) fn waits(
    session: SessionId,
    plan: PlanId,
    question: Option<QuestionId>,
    exit: Exit,
    cut: Option<&Cut>,
) -> Value {
    let subtype = match exit {
        Exit::Budget => "error_max_budget_usd",
        Exit::Denied => "needs_approval",
        _ => ERROR,
    };
    json!({
        "type": "result", "subtype": subtype, "is_error": true, "session_id": session, "uuid": new_id(),
        "plan": plan, "question": question, "terminal_reason": cut.map(|cut| cut.reason), "error": cut.map(|cut| &cut.error),
    })
}

/// The last line of a run in which the lead has said nothing: what came of it, of which plan if it was one, and who was stopped.
pub(crate) fn silent(session: SessionId, plan: Option<PlanId>, cut: Option<&Cut>, stopped: &[&str]) -> Value {
    let mut line = json!({
        "type": "result", "subtype": if cut.is_some() { ERROR } else { "success" }, "is_error": cut.is_some(), "result": "",
        "session_id": session, "uuid": new_id(), "terminal_reason": cut.map_or("done", |cut| cut.reason),
        "error": cut.map(|cut| &cut.error), "permission_denials": [], "stopped": stopped, "answered_before": false,
    });
    if let (Some(plan), Some(line)) = (plan, line.as_object_mut()) {
        line.insert("plan".to_owned(), json!(plan));
    }
    line
}

/// Turns events into lines. It remembers the provider's ids of tool calls (the journal knows calls by key) and how
/// often the current call has failed.
pub(crate) struct Lines {
    session: SessionId,
    /// The call that they are made for, if somebody was called.
    parent: Option<String>,
    retries_max: u32,
    failures: u32,
    /// Id and tool by key.
    ids: HashMap<String, (String, String)>,
}

impl Lines {
    pub(crate) fn new(session: SessionId, retries_max: u32) -> Self {
        Self { session, parent: None, retries_max, failures: 0, ids: HashMap::new() }
    }

    /// The same for somebody who works for a call.
    pub(crate) fn of_call(&self, parent: String) -> Self {
        Self { parent: Some(parent), ..Self::new(self.session, self.retries_max) }
    }

    /// Whether an event of somebody who was called has a line like one of the lead's.
    pub(crate) fn tells(event: &Event) -> bool {
        match event {
            Event::ToolDone(_) => true,
            Event::LlmEnded(ended) => !ended.summary && matches!(ended.outcome, Outcome::Done(_)),
            _ => false,
        }
    }

    /// The provider's id of a tool call.
    pub(crate) fn id(&self, key: &str) -> String {
        self.ids.get(key).map_or_else(|| key.to_owned(), |(id, _)| id.clone())
    }

    /// The tool of a call.
    pub(crate) fn tool(&self, key: &str) -> String {
        self.ids.get(key).map(|(_, tool)| tool.clone()).unwrap_or_default()
    }

    /// Remembers what later lines refer to.
    pub(crate) fn hear(&mut self, event: &Event) {
        let Event::LlmEnded(ended) = event else { return };
        if ended.summary {
            return;
        }
        match &ended.outcome {
            Outcome::Done(answer) => {
                self.failures = 0;
                self.ids.clear();
                let uses = answer.message.tool_uses().enumerate();
                let known = |(index, (id, tool, _)): (usize, (&str, &str, &Arc<Value>))| {
                    (call_key(ended.call, index), (id.to_owned(), tool.to_owned()))
                };
                self.ids.extend(uses.map(known));
            }
            Outcome::Failed { .. } => self.failures += 1,
            Outcome::Cancelled { .. } | Outcome::Lost => {}
        }
    }

    /// The line for one event, if it has one.
    pub(crate) fn line(&self, at_ms: i64, event: &Event) -> Option<Value> {
        let session = self.session;
        Some(match event {
            Event::LlmEnded(ended) if ended.summary && matches!(ended.outcome, Outcome::Done(_)) => return None,
            Event::LlmEnded(ended) => return self.ended(at_ms, ended),
            Event::Compacted(compacted) => boundary(session, compacted),
            Event::CompactionFailed(failed) => max(session, "compaction_failed", json!({ "detail": failed.detail })),
            Event::ToolDone(done) => json!({
                "type": "user", "session_id": session, "parent_tool_use_id": self.parent, "uuid": new_id(),
                "message": { "role": "user", "content": [{
                    "type": "tool_result", "tool_use_id": self.id(&done.key), "is_error": done.is_error,
                    "content": done.content.iter().map(part).collect::<Vec<_>>(),
                }] },
            }),
            Event::Steered(steered) => json!({
                "type": "user", "session_id": session, "parent_tool_use_id": self.parent, "uuid": new_id(),
                "message": { "role": "user", "content": steered.input.iter().map(part).collect::<Vec<_>>() },
            }),
            _ => return None,
        })
    }

    fn ended(&self, at_ms: i64, ended: &LlmEnded) -> Option<Value> {
        let session = self.session;
        match &ended.outcome {
            Outcome::Done(answer) => Some(json!({
                "type": "assistant", "session_id": session, "parent_tool_use_id": self.parent, "uuid": new_id(),
                "message": {
                    "role": "assistant", "model": answer.model, "content": content(&answer.message),
                    "stop_reason": answer.stop, "usage": usage(answer.usage), "id": answer.request_id,
                },
            })),
            Outcome::Failed { failure, detail, retry_at_ms: Some(retry_at_ms), .. } => Some(json!({
                "type": "system", "subtype": "api_retry", "session_id": session, "uuid": new_id(),
                "attempt": self.failures, "max_retries": self.retries_max,
                "retry_delay_ms": retry_at_ms.saturating_sub(at_ms), "error": failure, "detail": detail,
            })),
            _ => None,
        }
    }
}

/// What came before it is told in short from here on.
fn boundary(session: SessionId, compacted: &Compacted) -> Value {
    let trigger = if compacted.why == Why::Asked { "manual" } else { "auto" };
    let ((pre_tokens, post_tokens), (before, after)) = (compacted.tokens, compacted.messages);
    json!({
        "type": "system", "subtype": "compact_boundary", "session_id": session, "uuid": new_id(),
        "compact_metadata": {
            "trigger": trigger, "pre_tokens": pre_tokens, "post_tokens": post_tokens,
            "messages_before": before, "messages_after": after,
        },
    })
}

fn max(session: SessionId, subtype: &str, data: Value) -> Value {
    json!({ "type": "max", "subtype": subtype, "session_id": session, "uuid": new_id(), "data": data })
}

/// What was open when the last process left the session, and goes on now.
pub(crate) fn recovered(session: SessionId, found: &Recovered) -> Value {
    let Recovered { agents, tasks, mail, teams, approvals, unknown } = found;
    let said = json!({
        "agents": agents, "tasks": tasks, "mail": mail, "teams": teams, "approvals": approvals, "unknown": unknown,
    });
    max(session, "recovered", said)
}

/// A model says nothing.
pub(crate) fn silence(session: SessionId, who: &str, model: &str, seconds: u64) -> Value {
    max(session, "waiting", json!({ "agent": who, "model": model, "seconds": seconds }))
}

/// A piece of an answer, where asked for.
pub(crate) fn delta(session: SessionId, delta: &Delta) -> Value {
    let event = match delta {
        Delta::Text(text) => json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } }),
        Delta::Thinking(text) => {
            json!({ "type": "content_block_delta", "delta": { "type": "thinking_delta", "thinking": text } })
        }
        Delta::Tool(name) => {
            json!({ "type": "content_block_start", "content_block": { "type": "tool_use", "name": name } })
        }
        Delta::Waiting(wait) => {
            json!({ "type": "pace", "wait_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) })
        }
        Delta::Progress { key, words } => json!({ "type": "progress", "call": key, "text": words }),
        Delta::Usage(used) => json!({ "type": "message_delta", "usage": usage(*used) }),
    };
    json!({ "type": "stream_event", "session_id": session, "parent_tool_use_id": null, "uuid": new_id(), "event": event })
}

fn content(message: &Message) -> Vec<Value> {
    message.parts.iter().map(part).collect()
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({ "type": "text", "text": text }),
        Part::Thinking { text } => json!({ "type": "thinking", "thinking": text }),
        Part::Image { media_type, data } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } })
        }
        Part::ToolUse { id, name, input } => json!({ "type": "tool_use", "id": id, "name": name, "input": input }),
        Part::ToolResult { id, content, is_error } => json!({
            "type": "tool_result", "tool_use_id": id, "is_error": is_error,
            "content": content.iter().map(self::part).collect::<Vec<_>>(),
        }),
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input, "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write,
    })
}

/// The last line.
pub(crate) struct Result<'a> {
    pub(crate) session: SessionId,
    pub(crate) ended: &'a TurnEnded,
    pub(crate) rounds: u32,
    pub(crate) duration_ms: u64,
    pub(crate) api_ms: u64,
    pub(crate) first_ms: Option<u64>,
    pub(crate) denials: &'a [Value],
    pub(crate) status: &'a Status,
    /// Those whom somebody has stopped and who have begun nothing since.
    pub(crate) stopped: &'a [&'a str],
    /// Why the run is an error, whatever its lead has said.
    pub(crate) cut: Option<&'a Cut>,
    /// Whether it was answered before the run.
    pub(crate) repeated: bool,
}

impl Result<'_> {
    pub(crate) fn json(&self) -> Value {
        let end = end_name(&self.ended.end);
        let cut = self.cut;
        let (subtype, is_error) = match subtype(&self.ended.end) {
            (_, false) if cut.is_some() => (ERROR, true),
            known => known,
        };
        let reason = cut.map_or_else(|| end.clone(), |cut| json!(cut.reason));
        let ledger = &self.status.ledger;
        // A model without a price has no known cost; zero would be a claim.
        let cost =
            (ledger.unpriced_calls == 0).then(|| dollars(ledger.spent_nano.saturating_add(self.status.others_nano)));
        let models = self.status.usage_by_model();
        let models: Map<String, Value> = models.into_iter().map(|(model, used)| (model, usage(used))).collect();
        let error = cut.map(|cut| cut.error.to_string()).or_else(|| Lang::En.ended_because(&self.ended.end));
        json!({
            "type": "result", "subtype": subtype, "is_error": is_error, "result": self.ended.text,
            "structured_output": self.ended.structured, "session_id": self.session, "uuid": new_id(),
            "num_turns": self.rounds, "duration_ms": self.duration_ms, "duration_api_ms": self.api_ms,
            "ttft_ms": self.first_ms, "total_cost_usd": cost, "usage": usage(self.status.usage()),
            "modelUsage": models, "stop_reason": end, "terminal_reason": reason,
            "permission_denials": self.denials, "error": error, "unknown_cost_usd": dollars(ledger.unknown_nano),
            "stopped": self.stopped, "answered_before": self.repeated,
        })
    }
}

/// The last line where there was no session to speak of.
pub(crate) fn failure(error: &str) -> Value {
    json!({
        "type": "result", "subtype": ERROR, "is_error": true, "result": "", "error": error,
        "uuid": new_id(), "num_turns": 0, "total_cost_usd": 0, "permission_denials": [],
    })
}

fn subtype(end: &End) -> (&'static str, bool) {
    match end {
        End::Answered | End::Proposed => ("success", false),
        End::Truncated | End::Refused | End::Empty | End::Looping | End::Failed { .. } | End::Broken { .. } => {
            (ERROR, true)
        }
        End::Interrupted => (ERROR, true),
        End::Unstructured => ("error_max_structured_output_retries", true),
        End::Rounds => ("error_max_turns", true),
        End::Budget => ("error_max_budget_usd", true),
    }
}

fn end_name(end: &End) -> Value {
    let value = serde_json::to_value(end).unwrap_or_default();
    match value {
        Value::Object(fields) => fields.keys().next().cloned().map_or(Value::Null, Value::String),
        other => other,
    }
}
