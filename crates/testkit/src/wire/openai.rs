//! OpenAI chat completions.
//!
//! Chunks in the provider's order: the role, then the deltas, then the finish reason, then (when the request asks for
//! it) the usage without choices, then `[DONE]`. Thinking goes out as `reasoning_content`, the field that compatible
//! servers use. Blocks of unknown kinds have no place here and are left out.

use serde_json::{Map, Value, json};

use super::{Ask, CREATED_S, pieces};
use crate::reply::{Answer, Block, Cause, Failure, Usage};

pub(super) fn events(answer: &Answer, ask: &Ask) -> Vec<String> {
    let mut out = vec![chunk(ask, json!({"role": "assistant", "content": ""}), Value::Null)];
    let mut calls = 0;
    for block in &answer.blocks {
        out.extend(deltas(block, calls, answer.delta_chars).into_iter().map(|delta| chunk(ask, delta, Value::Null)));
        calls += usize::from(matches!(block, Block::Tool { .. }));
    }
    out.push(chunk(ask, json!({}), json!(finish(answer.stop()))));
    if ask.stream_usage {
        let mut last = envelope(ask, "chat.completion.chunk", json!([]));
        last.insert("usage".into(), usage(&answer.usage));
        out.push(data(&last.into()));
    }
    out.push("data: [DONE]\n\n".into());
    out
}

pub(super) fn whole(answer: &Answer, ask: &Ask) -> Value {
    let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for block in &answer.blocks {
        match block {
            Block::Text(piece) => text.push_str(piece),
            Block::Thinking { text: piece, .. } => thought.push_str(piece),
            Block::Tool { id, name, args } => {
                let function = json!({"name": name, "arguments": args});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            Block::Raw(_) => {}
        }
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert("content".into(), if text.is_empty() { Value::Null } else { json!(text) });
    if !thought.is_empty() {
        message.insert("reasoning_content".into(), json!(thought));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), json!(calls));
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer.stop())});
    let mut body = envelope(ask, "chat.completion", json!([choice]));
    body.insert("usage".into(), usage(&answer.usage));
    body.into()
}

pub(super) fn failure(failure: &Failure) -> Value {
    match &failure.cause {
        Cause::Status => {
            let (kind, code, message) = words(failure.status);
            error(kind, json!(code), message)
        }
        Cause::Overflow => error(
            "invalid_request_error",
            json!("context_length_exceeded"),
            "This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens. \
             Please reduce the length of the messages.",
        ),
        Cause::Said { kind, message } => error(kind, json!(kind), message),
    }
}

pub(super) fn error_event(kind: &str) -> String {
    data(&error(kind, json!(kind), "The server had an error while processing your request."))
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn envelope(ask: &Ask, object: &str, choices: Value) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("id".into(), json!(format!("chatcmpl-{}", ask.n)));
    out.insert("object".into(), json!(object));
    out.insert("created".into(), json!(CREATED_S));
    out.insert("model".into(), json!(ask.model));
    out.insert("choices".into(), choices);
    out
}

fn chunk(ask: &Ask, delta: Value, finish: Value) -> String {
    let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let mut out = envelope(ask, "chat.completion.chunk", choices);
    if ask.stream_usage {
        // The provider says null everywhere but in the last chunk.
        out.insert("usage".into(), Value::Null);
    }
    data(&out.into())
}

/// `index` is the number of tool calls before this block.
fn deltas(block: &Block, index: usize, chars: usize) -> Vec<Value> {
    match block {
        Block::Text(text) => pieces(text, chars).map(|piece| json!({"content": piece})).collect(),
        Block::Thinking { text, .. } => pieces(text, chars).map(|piece| json!({"reasoning_content": piece})).collect(),
        Block::Tool { id, name, args } => {
            let function = json!({"name": name, "arguments": ""});
            [json!({"index": index, "id": id, "type": "function", "function": function})]
                .into_iter()
                .chain(pieces(args, chars).map(|piece| json!({"index": index, "function": {"arguments": piece}})))
                .map(|call| json!({"tool_calls": [call]}))
                .collect()
        }
        Block::Raw(_) => Vec::new(),
    }
}

/// `prompt_tokens` counts what came from the cache too; ours does not.
fn usage(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}

fn finish(stop: &str) -> &str {
    match stop {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn error(kind: &str, code: Value, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn words(status: u16) -> (&'static str, Option<&'static str>, &'static str) {
    match status {
        400 => ("invalid_request_error", None, "Invalid value for 'messages'."),
        401 => ("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided."),
        403 => ("invalid_request_error", Some("unsupported_country_region_territory"), "Not supported."),
        404 => ("invalid_request_error", Some("model_not_found"), "The model `scripted` does not exist."),
        429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached for requests."),
        503 | 529 => ("server_error", Some("overloaded"), "The engine is currently overloaded."),
        _ => ("server_error", None, "The server had an error while processing your request."),
    }
}
