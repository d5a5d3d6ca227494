//! Answers as OpenAI chat completions gives them, and as its imitators do.
//!
//! Tolerated: tool calls without an index, or all under index 0; several in one chunk; ids and names in pieces;
//! arguments as an object; reasoning under two names; usage in three places; no `[DONE]`. Not tolerated: an end
//! without a finish reason. The native form is the assembled assistant message, fit to be sent back: arguments stay
//! as received, reasoning stays only beside tool calls (see `encode`).

use max_team_core::chat::{Part, StopReason, Usage};
use serde_json::{Map, Value, json};

use crate::call::{CallFault, Delta, Sink};
use crate::dialect::Draft;
use crate::failure;
use crate::json;
use crate::sse::Event;

/// Names under which servers send reasoning; the first that is there counts.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

#[derive(Debug, Default)]
pub(crate) struct OpenaiChatReader {
    pub(crate) usage: Usage,
    id: Option<String>,
    model: Option<String>,
    finish: Option<String>,
    text: String,
    refusal: String,
    thinking: String,
    /// The name under which reasoning came.
    thinking_key: Option<&'static str>,
    calls: Vec<ToolCall>,
    done: bool,
}

#[derive(Debug, Default)]
struct ToolCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields we do not know, such as signatures that must come back.
    rest: Map<String, Value>,
}

impl OpenaiChatReader {
    pub(crate) fn event(&mut self, event: Event<'_>, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|error| CallFault::malformed(format!("an event of the stream is not JSON ({error})")))?;
        if event.name == "error" {
            return Err(failure::in_stream(&chunk));
        }
        self.chunk(&chunk, "delta", sink)
    }

    pub(crate) fn whole(&mut self, body: &[u8], sink: &mut Sink<'_>) -> Result<(), CallFault> {
        let chunk: Value = serde_json::from_slice(body).map_err(|error| failure::unreadable(body, &error))?;
        self.chunk(&chunk, "message", sink)?;
        if self.finish.is_none() {
            return Err(CallFault::malformed("the answer has no finish reason"));
        }
        self.done = true;
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.done && self.finish.is_some()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    pub(crate) fn partial(&self) -> String {
        self.text.clone()
    }

    pub(crate) fn content_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
        self.text.len() + self.refusal.len() + self.thinking.len() + calls
    }

    pub(crate) fn draft(mut self) -> Draft {
        self.name_calls();
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Part::Thinking { text: self.thinking.clone() });
        }
        for text in [&self.text, &self.refusal] {
            if !text.trim().is_empty() {
                parts.push(Part::text(text.clone()));
            }
        }
        for call in &self.calls {
            let input = json::input(&call.arguments).0;
            parts.push(Part::ToolUse { id: call.id.clone(), name: call.name.clone(), input: input.into() });
        }
        let (native, stop) = (self.native(), self.stop());
        Draft { parts, native, stop, usage: self.usage, id: self.id, model: self.model }
    }

    fn chunk(&mut self, chunk: &Value, key: &str, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failure::in_stream(chunk));
        }
        for (field, place) in [("id", &mut self.id), ("model", &mut self.model)] {
            if let Some(text) = json::text(chunk, field).filter(|text| !text.is_empty() && place.is_none()) {
                *place = Some(text.to_owned());
            }
        }
        let choices = chunk.get("choices").and_then(Value::as_array);
        let choice = choices.into_iter().flatten().find(|choice| json::number(choice, "index").unwrap_or(0) == 0);
        if let Some(choice) = choice {
            if let Some(delta) = choice.get(key) {
                self.delta(delta, sink);
            }
            if let Some(reason) = json::text(choice, "finish_reason").filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason.to_owned());
            }
        }
        let places =
            [chunk.get("usage"), chunk.pointer("/x_groq/usage"), choice.and_then(|choice| choice.get("usage"))];
        if let Some(usage) = places.into_iter().flatten().find(|usage| usage.is_object()) {
            self.usage = count(usage);
            sink(Delta::Usage(self.usage));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, sink: &mut Sink<'_>) {
        let reasoning = REASONING.into_iter().find_map(|key| Some((key, json::text(delta, key)?)));
        if let Some((key, piece)) = reasoning {
            self.thinking_key.get_or_insert(key);
            self.think(piece, sink);
        }
        match delta.get("content") {
            Some(Value::String(piece)) => self.say(piece, sink),
            Some(Value::Array(parts)) => {
                for part in parts {
                    match (json::text(part, "type"), part.get("thinking")) {
                        (Some("thinking"), Some(Value::Array(thoughts))) => {
                            thoughts
                                .iter()
                                .filter_map(|part| json::text(part, "text"))
                                .for_each(|t| self.think(t, sink));
                        }
                        _ => self.say(json::text(part, "text").unwrap_or_default(), sink),
                    }
                }
            }
            _ => {}
        }
        if let Some(piece) = json::text(delta, "refusal").filter(|piece| !piece.is_empty()) {
            self.refusal.push_str(piece);
            sink(Delta::Text(piece));
        }
        for piece in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.tool_piece(piece, sink);
        }
    }

    fn say(&mut self, piece: &str, sink: &mut Sink<'_>) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            sink(Delta::Text(piece));
        }
    }

    fn think(&mut self, piece: &str, sink: &mut Sink<'_>) {
        if !piece.is_empty() {
            self.thinking.push_str(piece);
            sink(Delta::Thinking(piece));
        }
    }

    fn tool_piece(&mut self, piece: &Value, sink: &mut Sink<'_>) {
        let id = json::text(piece, "id").unwrap_or_default();
        let name = piece.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        let index = json::number(piece, "index");
        let Some(call) = self.call_of(index, id, name) else { return };
        let starts = call.name.is_empty() && !name.is_empty();
        let repeats = !id.is_empty() && call.id == id && call.name == name;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if !repeats {
            call.name.push_str(name);
        }
        if starts {
            sink(Delta::ToolStart { id: &call.id, name: &call.name });
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(arguments)) if !arguments.is_empty() => {
                call.arguments.push_str(arguments);
                sink(Delta::ToolInput(arguments));
            }
            Some(arguments @ Value::Object(_)) => {
                call.arguments = arguments.to_string();
                sink(Delta::ToolInput(&call.arguments));
            }
            _ => {}
        }
        let known = ["index", "id", "type", "function"];
        for (key, value) in piece.as_object().into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str())) {
            call.rest.insert(key.clone(), value.clone());
        }
    }

    /// The call that a piece belongs to. A piece that names a tool under a new id begins a call, regardless of its
    /// index: some servers number every call 0, some number none.
    fn call_of(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<&mut ToolCall> {
        let found = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        let another = |call: &ToolCall| !id.is_empty() && !name.is_empty() && !call.id.is_empty() && call.id != id;
        let found = found.filter(|at| !self.calls.get(*at).is_some_and(another));
        let at = found.unwrap_or_else(|| {
            self.calls.push(ToolCall { index, ..ToolCall::default() });
            self.calls.len() - 1
        });
        self.calls.get_mut(at)
    }

    /// Calls without an id get one, so that their results can name them.
    fn name_calls(&mut self) {
        for (position, call) in self.calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{position}");
            }
        }
    }

    fn stop(&self) -> StopReason {
        match self.finish.as_deref() {
            Some("content_filter" | "refusal") => StopReason::Refusal,
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            _ if !self.refusal.is_empty() => StopReason::Refusal,
            // Local servers say `stop` beside tool calls, too.
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            Some("stop" | "tool_calls" | "function_call" | "eos") | None => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }

    fn native(&self) -> Option<String> {
        let blank = self.text.trim().is_empty();
        if !self.refusal.is_empty() || (blank && self.calls.is_empty()) {
            return None;
        }
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        message.insert("content".into(), if blank { Value::Null } else { json!(self.text) });
        if !self.calls.is_empty() {
            if let Some(key) = self.thinking_key {
                message.insert(key.into(), json!(self.thinking));
            }
            message.insert("tool_calls".into(), self.calls.iter().map(ToolCall::native).collect());
        }
        Some(Value::Object(message).to_string())
    }
}

impl ToolCall {
    fn native(&self) -> Value {
        let mut call = Map::new();
        call.insert("id".into(), json!(self.id));
        call.insert("type".into(), json!("function"));
        call.insert("function".into(), json!({"name": self.name, "arguments": json::input(&self.arguments).1}));
        call.extend(self.rest.clone());
        Value::Object(call)
    }
}

/// `prompt_tokens` counts cached tokens too; ours do not. `completion_tokens` leaves out reasoning at some providers,
/// and only the total shows it.
fn count(usage: &Value) -> Usage {
    let detail = |key| usage.get("prompt_tokens_details").and_then(|details| json::number(details, key));
    let cache_read = detail("cached_tokens")
        .or_else(|| json::number(usage, "prompt_cache_hit_tokens"))
        .or_else(|| json::number(usage, "cached_tokens"))
        .unwrap_or(0);
    let cache_write = detail("cache_write_tokens").unwrap_or(0);
    let prompt = json::number(usage, "prompt_tokens").unwrap_or(0);
    let total = json::number(usage, "total_tokens").unwrap_or(0);
    Usage {
        input: prompt.saturating_sub(cache_read + cache_write),
        output: json::number(usage, "completion_tokens").unwrap_or(0).max(total.saturating_sub(prompt)),
        cache_read,
        cache_write,
    }
}
