//! Requests as OpenAI chat completions wants them.
//!
//! A message's cached bytes are whole wire messages: a user's message with tool results becomes one `tool` message
//! per result, then a `user` message with the rest. Pictures in results go into that `user` message, because a
//! `tool` message holds text only.
//!
//! Reasoning goes back exactly where DeepSeek and Kimi demand it: an assistant message *with* tool calls keeps its
//! reasoning in every later request (they answer 400 otherwise), one without loses it (they ignore it, and older
//! ones refuse it). That is settled when the answer is read, so a message's bytes never change and prefixes stay
//! cached. To other models no reasoning is sent; those that insist on the field get it empty.

use max_team_core::chat::{ChatRole, Message, Part};
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::json::{join, object, put};
use crate::tool::{self, ToolSpec};
use crate::transcript::{CallIds, Head, MessageItems, RequestOptions};
use crate::wire::{Thinking, Wire};

/// The longest id that OpenAI takes.
const ID_BYTES_MAX: usize = 40;
/// Stands for a result without text.
const NO_OUTPUT: &str = "(no output)";
/// Up to so many thinking tokens are a `low` effort …
const LOW_TOKENS: u32 = 4_096;
/// … and up to so many a `medium` one.
const MEDIUM_TOKENS: u32 = 16_384;

pub(crate) fn head(system: &str, tools: &[ToolSpec]) -> Head {
    let mut out = Vec::new();
    if !tools.is_empty() {
        out.extend_from_slice(br#","tools":["#);
        for spec in tools {
            let function =
                json!({"name": spec.name, "description": spec.description, "parameters": tool::plain(&spec.schema)});
            join(&mut out, json!({"type": "function", "function": function}).to_string().as_bytes());
        }
        out.push(b']');
    }
    out.extend_from_slice(br#","messages":["#);
    if !system.trim().is_empty() {
        put(&mut out, &json!({"role": "system", "content": system}));
    }
    Head { bytes: out.into(), has_tools: !tools.is_empty() }
}

pub(crate) fn message(wire: &Wire, message: &Message, ids: &mut CallIds) -> MessageItems {
    match message.role {
        ChatRole::User => user(message, ids),
        ChatRole::Assistant => MessageItems { rest: assistant(wire, message, ids), ..MessageItems::default() },
    }
}

fn assistant(wire: &Wire, message: &Message, ids: &mut CallIds) -> Vec<u8> {
    if let Some(own) = wire.own(message) {
        message.tool_uses().for_each(|(id, ..)| ids.keep(id));
        return own.blocks.get().trim().as_bytes().to_vec();
    }
    let calls: Vec<Value> = message
        .tool_uses()
        .map(|(id, name, input)| {
            let function = json!({"name": name, "arguments": object(input).to_string()});
            json!({"id": ids.adopt(id, fits), "type": "function", "function": function})
        })
        .collect();
    let text = message.text();
    let mut fields = Map::new();
    fields.insert("role".into(), json!("assistant"));
    fields.insert("content".into(), if text.trim().is_empty() { Value::Null } else { json!(text) });
    if calls.is_empty() {
        if text.trim().is_empty() {
            return Vec::new();
        }
    } else {
        if wire.thinking == Thinking::Switch {
            fields.insert("reasoning_content".into(), json!(""));
        }
        fields.insert("tool_calls".into(), Value::Array(calls));
    }
    Value::Object(fields).to_string().into_bytes()
}

fn user(message: &Message, ids: &CallIds) -> MessageItems {
    let mut halves = MessageItems::default();
    let mut rest: Vec<&Part> = Vec::new();
    for part in &message.parts {
        let Part::ToolResult { id, content, is_error } = part else {
            rest.push(part);
            continue;
        };
        let mut text = texts(content);
        if text.trim().is_empty() {
            NO_OUTPUT.clone_into(&mut text);
        }
        // The format has no field for failure.
        if *is_error && !text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) {
            text.insert_str(0, "Error: ");
        }
        let result = json!({"role": "tool", "tool_call_id": ids.of_result(id), "content": text});
        join(&mut halves.results, result.to_string().as_bytes());
        rest.extend(content.iter().filter(|part| matches!(part, Part::Image { .. })));
    }
    if let Some(content) = user_content(&rest) {
        put(&mut halves.rest, &json!({"role": "user", "content": content}));
    }
    halves
}

/// A plain string where it can be: some servers take nothing else.
fn user_content(parts: &[&Part]) -> Option<Value> {
    if parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        return Some(parts.iter().filter_map(|part| content_part(part)).collect());
    }
    let text = texts(parts.iter().copied());
    (!text.trim().is_empty()).then_some(Value::String(text))
}

fn content_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        Part::Image { media_type, data } => {
            Some(json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}}))
        }
        Part::Thinking { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    }
}

fn texts<'p>(parts: impl IntoIterator<Item = &'p Part>) -> String {
    let texts = parts.into_iter().filter_map(|part| match part {
        Part::Text { text } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn fits(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX
}

pub(crate) fn body(wire: &Wire, head: &Head, call: &RequestOptions, shown: &[(ChatRole, &MessageItems)]) -> Body {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(br#"{"model":"#);
    put(&mut out, &wire.model);
    let limit = if wire.quirks.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    out.extend_from_slice(format!(r#","{limit}":{},"stream":{}"#, call.max_tokens, wire.stream).as_bytes());
    if wire.stream && !wire.quirks.no_stream_options {
        out.extend_from_slice(br#","stream_options":{"include_usage":true}"#);
    }
    out.extend_from_slice(thinking(wire, head.has_tools).as_bytes());
    if head.has_tools && call.tools_off {
        out.extend_from_slice(br#","tool_choice":"none""#);
    }
    let history: usize = shown.iter().map(|(_, halves)| halves.len() + 2).sum();
    let mut rest = Vec::with_capacity(history + 3);
    if head.bytes.ends_with(b"}") && !shown.is_empty() {
        rest.push(b',');
    }
    for run in shown.chunk_by(|one, next| one.0 == next.0) {
        let results = run.iter().map(|(_, halves)| &halves.results);
        let others = run.iter().map(|(_, halves)| &halves.rest);
        for messages in results.chain(others).filter(|messages| !messages.is_empty()) {
            join(&mut rest, messages);
        }
    }
    rest.extend_from_slice(b"]}");
    Body::new(out, head, rest)
}

fn thinking(wire: &Wire, tools: bool) -> &'static str {
    let tokens = wire.thinking_tokens;
    match wire.thinking {
        Thinking::EffortWithoutTools if tools => r#","reasoning_effort":"none""#,
        Thinking::Effort | Thinking::EffortWithoutTools => match tokens {
            0 => "",
            1..=LOW_TOKENS => r#","reasoning_effort":"low""#,
            _ if tokens <= MEDIUM_TOKENS => r#","reasoning_effort":"medium""#,
            _ => r#","reasoning_effort":"high""#,
        },
        Thinking::Switch if tokens == 0 => r#","thinking":{"type":"disabled"}"#,
        Thinking::Switch => r#","thinking":{"type":"enabled"}"#,
        Thinking::None | Thinking::Budget | Thinking::Adaptive => "",
    }
}
