//! Requests as Anthropic Messages wants them.
//!
//! A message's cached bytes are its content blocks; roles and brackets are added when a request is put together, so
//! neighbours of one role merge and the roles alternate. At most four cache breakpoints: the last tool, the system
//! text, and the last block of the last two user messages (the second one is where the previous request ended, so
//! the growing prefix always hits). They go on text, images and results only; thinking may not carry one.

use max_team_core::chat::{ChatRole, Message, Part};
use serde_json::{Value, json};

use crate::body::Body;
use crate::json::{join, object, put};
use crate::tool::{self, ToolSpec};
use crate::transcript::{CallIds, Head, MessageItems, RequestOptions};
use crate::wire::{Thinking, Wire};

const BREAKPOINT: &[u8] = br#","cache_control":{"type":"ephemeral"}}"#;
/// User messages that carry a breakpoint.
const MARKED: usize = 2;
/// The smallest budget that is taken, and what must be left for the answer beside it.
const THINKING_TOKENS_MIN: u32 = 1_024;
/// Stands for a result without content: an empty one is refused if it is an error.
const NO_OUTPUT: &str = "(no output)";
/// Bytes of JSON around the text of a block, approximately.
const BLOCK_BYTES: usize = 48;

pub(crate) fn head(system: &str, tools: &[ToolSpec]) -> Head {
    let mut out = Vec::new();
    if !system.trim().is_empty() {
        out.extend_from_slice(br#","system":["#);
        put(&mut out, &json!({"type": "text", "text": system}));
        mark(&mut out);
        out.push(b']');
    }
    if !tools.is_empty() {
        out.extend_from_slice(br#","tools":["#);
        for spec in tools {
            let schema = tool::plain(&spec.schema);
            let tool = json!({"name": spec.name, "description": spec.description, "input_schema": schema});
            join(&mut out, tool.to_string().as_bytes());
        }
        mark(&mut out);
        out.push(b']');
    }
    out.extend_from_slice(br#","messages":["#);
    Head { bytes: out.into(), has_tools: !tools.is_empty() }
}

pub(crate) fn message(wire: &Wire, message: &Message, ids: &mut CallIds) -> MessageItems {
    match message.role {
        ChatRole::User => user(message, ids),
        ChatRole::Assistant => MessageItems { rest: assistant(wire, message, ids), ..MessageItems::default() },
    }
}

fn assistant(wire: &Wire, message: &Message, ids: &mut CallIds) -> Vec<u8> {
    let blocks = wire.own(message).map(|native| native.blocks.get().trim());
    if let Some(own) = blocks.and_then(|blocks| blocks.strip_prefix('[')?.strip_suffix(']')) {
        message.tool_uses().for_each(|(id, ..)| ids.keep(id));
        return own.trim().as_bytes().to_vec();
    }
    let mut out = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => text_block(&mut out, text),
            Part::ToolUse { id, name, input } => {
                out.reserve(4 * BLOCK_BYTES);
                join(&mut out, br#"{"type":"tool_use","id":"#);
                put(&mut out, &ids.adopt(id, fits));
                out.extend_from_slice(br#","name":"#);
                put(&mut out, name);
                out.extend_from_slice(br#","input":"#);
                put(&mut out, &*object(input));
                out.push(b'}');
            }
            // Thinking is worth nothing without its signature, and an assistant shows no pictures here.
            Part::Thinking { .. } | Part::Image { .. } | Part::ToolResult { .. } => {}
        }
    }
    out
}

fn user(message: &Message, ids: &CallIds) -> MessageItems {
    let mut halves = MessageItems::default();
    for part in &message.parts {
        match part {
            Part::ToolResult { id, content, is_error } => {
                let out = &mut halves.results;
                // Escaping makes the text a little longer.
                let weight = part.weight();
                out.reserve(weight + weight / 16);
                join(out, br#"{"type":"tool_result","tool_use_id":"#);
                put(out, ids.of_result(id));
                out.extend_from_slice(br#","content":["#);
                content.iter().for_each(|part| content_block(out, part));
                if out.ends_with(b"[") {
                    text_block(out, NO_OUTPUT);
                }
                out.extend_from_slice(if *is_error { br#"],"is_error":true}"# } else { b"]}" });
            }
            other => content_block(&mut halves.rest, other),
        }
    }
    halves
}

fn content_block(out: &mut Vec<u8>, part: &Part) {
    match part {
        Part::Text { text } => text_block(out, text),
        Part::Image { media_type, data } => {
            join(out, br#"{"type":"image","source":{"type":"base64","media_type":"#);
            put(out, media_type);
            out.extend_from_slice(br#","data":"#);
            put(out, data);
            out.extend_from_slice(b"}}");
        }
        Part::Thinking { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => {}
    }
}

/// Blank text is refused, so it is left out.
fn text_block(out: &mut Vec<u8>, text: &str) {
    if !text.trim().is_empty() {
        // Escaping makes the text a little longer.
        out.reserve(BLOCK_BYTES + text.len() + text.len() / 16);
        join(out, br#"{"type":"text","text":"#);
        put(out, text);
        out.push(b'}');
    }
}

/// Whether a call may go out under this name.
pub(super) fn fits(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Puts a breakpoint on the object that ends here.
fn mark(out: &mut Vec<u8>) {
    if out.pop_if(|last| *last == b'}').is_some() {
        out.extend_from_slice(BREAKPOINT);
    }
}

pub(crate) fn body(wire: &Wire, head: &Head, call: &RequestOptions, shown: &[(ChatRole, &MessageItems)]) -> Body {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(br#"{"model":"#);
    put(&mut out, &wire.model);
    out.extend_from_slice(format!(r#","max_tokens":{},"stream":{}"#, call.max_tokens, wire.stream).as_bytes());
    if let Some(thinking) = thinking(wire, call.max_tokens) {
        out.extend_from_slice(br#","thinking":"#);
        put(&mut out, &thinking);
    }
    if head.has_tools && call.tools_off {
        out.extend_from_slice(br#","tool_choice":{"type":"none"}"#);
    }
    let history: usize = shown.iter().map(|(_, halves)| halves.len() + 40).sum();
    let mut rest = Vec::with_capacity(history + 2);
    messages(&mut rest, shown);
    rest.extend_from_slice(b"]}");
    Body::new(out, head, rest)
}

/// Thinking and answer share `max_tokens`: a call that may only write a little does not think.
fn thinking(wire: &Wire, max_tokens: u32) -> Option<Value> {
    let room = max_tokens.saturating_sub(THINKING_TOKENS_MIN);
    let thinks = wire.thinking_tokens > 0 && room >= THINKING_TOKENS_MIN;
    match wire.thinking {
        Thinking::Switch => Some(json!({"type": if thinks { "enabled" } else { "disabled" }})),
        Thinking::Budget if thinks => {
            let budget = wire.thinking_tokens.clamp(THINKING_TOKENS_MIN, room);
            Some(json!({"type": "enabled", "budget_tokens": budget}))
        }
        // Without `display` newer models hide what they think, and with it what they say between tool calls.
        Thinking::Adaptive if thinks => Some(json!({"type": "adaptive", "display": "summarized"})),
        _ => None,
    }
}

fn messages(out: &mut Vec<u8>, shown: &[(ChatRole, &MessageItems)]) {
    let runs: Vec<&[(ChatRole, &MessageItems)]> = shown.chunk_by(|one, next| one.0 == next.0).collect();
    let mut users_left = runs.iter().filter(|run| role(run) == ChatRole::User).count();
    for (index, run) in runs.iter().enumerate() {
        let opening: &[u8] = match role(run) {
            ChatRole::User => br#"{"role":"user","content":["#,
            ChatRole::Assistant => br#"{"role":"assistant","content":["#,
        };
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(opening);
        let results = run.iter().map(|(_, halves)| &halves.results);
        let rest = run.iter().map(|(_, halves)| &halves.rest);
        for blocks in results.chain(rest).filter(|blocks| !blocks.is_empty()) {
            join(out, blocks);
        }
        if role(run) == ChatRole::User {
            if users_left <= MARKED {
                mark(out);
            }
            users_left -= 1;
        }
        out.extend_from_slice(b"]}");
    }
}

fn role(run: &[(ChatRole, &MessageItems)]) -> ChatRole {
    run.first().map_or(ChatRole::User, |(role, _)| *role)
}
