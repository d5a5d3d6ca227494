//! Anthropic Messages.
//!
//! Event order as the provider sends it: message_start, ping, then each block's start, deltas and stop, then
//! message_delta with the stop reason and the usage, then message_stop. A tool's arguments open with an empty delta,
//! and a tool without arguments sends only that: clients must read it as `{}`.

use serde_json::{Value, json};

use super::{Ask, pieces};
use crate::reply::{Answer, Block, Cause, Failure, Usage};

pub(super) fn events(answer: &Answer, ask: &Ask) -> Vec<String> {
    // The first event cannot know the stop reason or the output yet.
    let opening = message(ask, Vec::new(), Value::Null, usage(&Usage { output: 1, ..answer.usage }));
    let mut out = vec![
        event("message_start", json!({"type": "message_start", "message": opening})),
        event("ping", json!({"type": "ping"})),
    ];
    for (index, block) in answer.blocks.iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": opened(block)});
        out.push(event("content_block_start", start));
        out.extend(deltas(block, answer.delta_chars).into_iter().map(|delta| {
            event("content_block_delta", json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        out.push(event("content_block_stop", json!({"type": "content_block_stop", "index": index})));
    }
    let delta = json!({"stop_reason": answer.stop(), "stop_sequence": null});
    let last = json!({"type": "message_delta", "delta": delta, "usage": usage(&answer.usage)});
    out.push(event("message_delta", last));
    out.push(event("message_stop", json!({"type": "message_stop"})));
    out
}

pub(super) fn whole(answer: &Answer, ask: &Ask) -> Value {
    let content = answer.blocks.iter().map(closed).collect();
    message(ask, content, json!(answer.stop()), usage(&answer.usage))
}

pub(super) fn failure(failure: &Failure) -> Value {
    match &failure.cause {
        Cause::Status => {
            let kind = kind(failure.status);
            error(kind, words(kind))
        }
        Cause::Overflow => error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        Cause::Said { kind, message } => error(kind, message),
    }
}

pub(super) fn error_event(kind: &str) -> String {
    event("error", error(kind, words(kind)))
}

fn event(name: &str, data: Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn message(ask: &Ask, content: Vec<Value>, stop: Value, usage: Value) -> Value {
    json!({
        "id": format!("msg_{}", ask.n), "type": "message", "role": "assistant", "model": ask.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
    })
}

/// A block before its deltas.
fn opened(block: &Block) -> Value {
    match block {
        Block::Text(_) => json!({"type": "text", "text": ""}),
        Block::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Block::Tool { id, name, .. } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        Block::Raw(raw) => raw.clone(),
    }
}

fn deltas(block: &Block, chars: usize) -> Vec<Value> {
    match block {
        Block::Text(text) => pieces(text, chars).map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
        Block::Thinking { text, signature } => pieces(text, chars)
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .chain([json!({"type": "signature_delta", "signature": signature})])
            .collect(),
        Block::Tool { args, .. } => {
            let args = if args == "{}" { "" } else { args };
            [""].into_iter()
                .chain(pieces(args, chars))
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        }
        Block::Raw(_) => Vec::new(),
    }
}

/// A block with all its content.
fn closed(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Block::Tool { id, name, args } => {
            let input = serde_json::from_str(args).unwrap_or_else(|_| json!(args));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::Raw(raw) => raw.clone(),
    }
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

fn words(kind: &str) -> &'static str {
    match kind {
        "invalid_request_error" => "messages: at least one message is required",
        "authentication_error" => "invalid x-api-key",
        "permission_error" => "Your API key does not have permission to use the specified resource.",
        "not_found_error" => "model: scripted",
        "request_too_large" => "Request exceeds the maximum size",
        "rate_limit_error" => "This request would exceed your organization's rate limit.",
        "overloaded_error" => "Overloaded",
        _ => "Internal server error",
    }
}
