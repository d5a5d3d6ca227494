//! The shape of `--output-format json|stream-json`: the one that scripts around other agents already read.
//!
//! Lines are `system`, `assistant`, `user` and `result` objects; what those cannot say comes as `type: "max"`,
//! which other readers skip: events of the one stream that `max-team events` reads, too.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::chat::{Message, Part, Usage};
use max_team_core::context::summary::{Compacted, CompactionReason};
use max_team_core::cost::{SessionCost, Spending};
use max_team_core::event::{Event, LlmEnded, LlmOutcome, TurnEnded};
use max_team_core::id::{QuestionId, SessionId};
use max_team_core::ledger::dollars;
use max_team_core::mcp::SourceStatus;
use max_team_core::rewind::MovedFile;
use max_team_core::turn::call_key;
use max_team_runtime::{Delta, OpenOptions, OpenedSession, Recovered, StreamEvent, What, new_id};
use serde_json::{Map, Value, json};

use crate::headless::{RunVerdict, end_name};
use max_team_workspace::exit::Exit;

/// The first line.
pub(crate) fn init(
    opened: &OpenedSession,
    open: &OpenOptions,
    sources: &[SourceStatus],
    cwd: &std::path::Path,
    key_source: &str,
) -> Value {
    let servers: Vec<Value> =
        sources.iter().map(|source| json!({ "name": source.name, "status": source.state.stream_name() })).collect();
    let others = open.team.iter().flat_map(|team| team.members.iter().chain(&team.experts));
    let agents: Vec<&String> =
        std::iter::once(&open.definition.name).chain(others.map(|teammate| &teammate.definition.name)).collect();
    json!({
        "type": "system", "subtype": "init", "session_id": opened.session, "uuid": new_id(),
        "cwd": cwd, "model": open.settings.model.name, "permissionMode": open.settings.mode.name(),
        "tools": open.definition.tools, "mcp_servers": servers, "slash_commands": [], "agents": agents,
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
        | What::Session { .. }
        | What::Agent { .. } => true,
    };
    told.then(|| {
        json!({
            "type": "max", "subtype": event.what.name(), "session_id": event.session, "uuid": new_id(),
            "event": event,
        })
    })
}

/// Turns events into lines. It remembers the provider's ids of tool calls (the journal knows calls by key) and how
/// often the current call has failed.
pub(crate) struct StreamJson {
    session: SessionId,
    /// The tool call that these lines belong to, for a called agent.
    parent: Option<String>,
    retries_max: u32,
    failures: u32,
    /// Id and tool by key.
    ids: HashMap<String, (String, String)>,
}

impl StreamJson {
    pub(crate) fn new(session: SessionId, retries_max: u32) -> Self {
        Self { session, parent: None, retries_max, failures: 0, ids: HashMap::new() }
    }

    /// The lines of an agent that works for a call.
    pub(crate) fn of_call(&self, parent: String) -> Self {
        Self { parent: Some(parent), ..Self::new(self.session, self.retries_max) }
    }

    /// Whether this event of a called agent has a line, like one of the lead's.
    pub(crate) fn tells(event: &Event) -> bool {
        match event {
            Event::ToolDone(_) => true,
            Event::LlmEnded(ended) => !ended.summary && matches!(ended.outcome, LlmOutcome::Done(_)),
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
            LlmOutcome::Done(answer) => {
                self.failures = 0;
                self.ids.clear();
                let uses = answer.message.tool_uses().enumerate();
                let known = |(index, (id, tool, _)): (usize, (&str, &str, &Arc<Value>))| {
                    (call_key(ended.call, index), (id.to_owned(), tool.to_owned()))
                };
                self.ids.extend(uses.map(known));
            }
            LlmOutcome::Failed { .. } => self.failures += 1,
            LlmOutcome::Cancelled { .. } | LlmOutcome::Lost => {}
        }
    }

    /// The line for one event, if it has one.
    pub(crate) fn line(&self, at_ms: i64, event: &Event) -> Option<Value> {
        let session = self.session;
        Some(match event {
            Event::LlmEnded(ended) if ended.summary && matches!(ended.outcome, LlmOutcome::Done(_)) => return None,
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
            LlmOutcome::Done(answer) => Some(json!({
                "type": "assistant", "session_id": session, "parent_tool_use_id": self.parent, "uuid": new_id(),
                "message": {
                    "role": "assistant", "model": answer.model, "content": content(&answer.message),
                    "stop_reason": answer.stop, "usage": usage(answer.usage), "id": answer.request_id,
                },
            })),
            LlmOutcome::Failed { failure, detail, retry_at_ms: Some(retry_at_ms), .. } => Some(json!({
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
    let trigger = if compacted.why == CompactionReason::Asked { "manual" } else { "auto" };
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

/// Protected files that a command made without approval, and that were moved away.
pub(crate) fn moved(session: SessionId, who: &str, moved: &[MovedFile]) -> Value {
    max(session, "files_moved", json!({ "agent": who, "files": moved }))
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

/// The `result` object. It always has every field; unknown values are `null`.
pub(crate) struct RunResult<'a> {
    pub(crate) verdict: &'a RunVerdict,
    /// None if the run failed before there was one.
    pub(crate) session: Option<SessionId>,
    /// The lead's turn that the result is about.
    pub(crate) ended: Option<&'a TurnEnded>,
    /// The question that a plan waits with.
    pub(crate) question: Option<QuestionId>,
    pub(crate) rounds: u32,
    pub(crate) duration_ms: u64,
    pub(crate) api_ms: u64,
    pub(crate) first_ms: Option<u64>,
    pub(crate) denials: &'a [Value],
    /// Protected files that commands made without approval, and that were moved away.
    pub(crate) moved: &'a [MovedFile],
    /// The cost of the session; `None` if it could not be followed.
    pub(crate) cost: Option<&'a SessionCost>,
    /// Agents that were stopped and have begun nothing since.
    pub(crate) stopped: &'a [&'a str],
    /// Whether it was answered before the run.
    pub(crate) repeated: bool,
}

impl<'a> RunResult<'a> {
    /// The result of a run that failed before its session was open.
    pub(crate) fn early(verdict: &'a RunVerdict) -> Self {
        let (session, ended, question, first_ms, cost) = (None, None, None, None, None);
        let (rounds, duration_ms, api_ms, denials, moved, stopped) =
            (0, 0, 0, [].as_slice(), [].as_slice(), [].as_slice());
        let repeated = false;
        Self {
            verdict,
            session,
            ended,
            question,
            rounds,
            duration_ms,
            api_ms,
            first_ms,
            denials,
            moved,
            cost,
            stopped,
            repeated,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let RunVerdict { exit, reason, error, plan } = self.verdict;
        // Without a session nothing was spent; with one that could not be followed, the cost is not known.
        let nothing = || self.session.is_none().then(Spending::default);
        let spent = self.cost.map(SessionCost::total).or_else(nothing);
        let models = self.cost.map(SessionCost::by_model).unwrap_or_default();
        let of_models: Map<String, Value> = models.into_iter().map(|(model, sum)| (model, usage(sum.usage))).collect();
        json!({
            "type": "result", "subtype": self.verdict.subtype(), "is_error": *exit != Exit::Ok, "exit_code": *exit as u8,
            "result": self.ended.map_or("", |ended| &ended.text), "error": error,
            "structured_output": self.ended.and_then(|ended| ended.structured.as_ref()),
            "session_id": self.session, "uuid": new_id(), "plan": plan, "question": self.question,
            "num_turns": self.rounds, "duration_ms": self.duration_ms, "duration_api_ms": self.api_ms,
            "ttft_ms": self.first_ms, "total_cost_usd": spent.and_then(|sum| sum.known_nano()).map(dollars),
            "unknown_cost_usd": dollars(spent.map_or(0, |sum| sum.unknown_nano)),
            "usage": spent.map(|sum| usage(sum.usage)),
            "modelUsage": of_models, "stop_reason": self.ended.map(|ended| end_name(&ended.end)),
            "terminal_reason": reason, "permission_denials": self.denials, "moved_files": self.moved, "stopped": self.stopped,
            "answered_before": self.repeated,
        })
    }
}
