//! The wire formats: one file each, with the same four functions.
//!
//! `events` renders an answer as server-sent events, `whole` as one JSON body, `failure` as an error body and
//! `error_event` as an error inside a stream. They are pure: what goes wrong on the way is `plan`'s business.

mod anthropic;
mod openai;

use serde_json::{Value, json};

use crate::record::{Recorded, route};
use crate::reply::{Answer, Failure};

/// When a model was made, for lists that must say. Any fixed time does; a clock would make responses differ.
const CREATED_S: u64 = 1_700_000_000;
const CREATED_AT: &str = "2023-11-14T22:13:20Z";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI chat completions.
    OpenAi,
}

impl Dialect {
    /// The one that a request asks for; none when it is not a call to a model.
    pub(crate) fn of(method: &str, target: &str) -> Option<Dialect> {
        match (method, route(target)) {
            ("POST", "/v1/messages") => Some(Dialect::Anthropic),
            ("POST", "/v1/chat/completions" | "/chat/completions") => Some(Dialect::OpenAi),
            _ => None,
        }
    }
}

/// What a request says about the form of its answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) dialect: Dialect,
    pub(crate) n: usize,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// OpenAI: usage comes in a stream only when asked for.
    pub(crate) stream_usage: bool,
}

impl Ask {
    pub(crate) fn new(dialect: Dialect, request: &Recorded) -> Ask {
        let yes = |path: &str| request.body.pointer(path) == Some(&Value::Bool(true));
        Ask {
            dialect,
            n: request.n,
            model: request.body.get("model").and_then(Value::as_str).unwrap_or("scripted").to_owned(),
            stream: yes("/stream"),
            stream_usage: yes("/stream_options/include_usage"),
        }
    }

    /// What nearly every request says, for one that nobody has read.
    pub(crate) fn streamed(dialect: Dialect, n: usize) -> Ask {
        Ask { dialect, n, model: "scripted".to_owned(), stream: true, stream_usage: true }
    }

    pub(crate) fn events(&self, answer: &Answer) -> Vec<String> {
        match self.dialect {
            Dialect::Anthropic => anthropic::events(answer, self),
            Dialect::OpenAi => openai::events(answer, self),
        }
    }

    pub(crate) fn whole(&self, answer: &Answer) -> Value {
        match self.dialect {
            Dialect::Anthropic => anthropic::whole(answer, self),
            Dialect::OpenAi => openai::whole(answer, self),
        }
    }

    pub(crate) fn failure(&self, failure: &Failure) -> Value {
        match self.dialect {
            Dialect::Anthropic => anthropic::failure(failure),
            Dialect::OpenAi => openai::failure(failure),
        }
    }

    pub(crate) fn error_event(&self, kind: &str) -> String {
        match self.dialect {
            Dialect::Anthropic => anthropic::error_event(kind),
            Dialect::OpenAi => openai::error_event(kind),
        }
    }

    /// The header in which the provider names the request.
    pub(crate) fn id_header(&self) -> &'static str {
        match self.dialect {
            Dialect::Anthropic => "request-id",
            Dialect::OpenAi => "x-request-id",
        }
    }
}

/// `/v1/models`: both providers' fields at once, since the path is the same.
pub(crate) fn model_list(models: &[String]) -> Value {
    let row = |id: &String| {
        json!({
            "id": id, "type": "model", "display_name": id, "created_at": CREATED_AT,
            "object": "model", "created": CREATED_S, "owned_by": "testkit",
        })
    };
    json!({
        "object": "list", "data": models.iter().map(row).collect::<Vec<_>>(),
        "has_more": false, "first_id": models.first(), "last_id": models.last(),
    })
}

/// Ollama's `/api/tags`.
pub(crate) fn tag_list(models: &[String]) -> Value {
    let row = |name: &String| {
        json!({
            "name": name, "model": name, "modified_at": CREATED_AT, "size": 1, "digest": "0",
            "details": {"format": "gguf", "family": "scripted", "parameter_size": "1B", "quantization_level": "Q4_0"},
        })
    };
    json!({"models": models.iter().map(row).collect::<Vec<_>>()})
}

/// How many tool results a message of either dialect carries.
pub(crate) fn tool_results(message: &Value) -> usize {
    if message.get("role").and_then(Value::as_str) == Some("tool") {
        return 1;
    }
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_result")).count()
}

/// What a user's message of either dialect says, its text blocks a line each; none when it says nothing.
pub(crate) fn user_text(message: &Value) -> Option<String> {
    if message.get("role").and_then(Value::as_str) != Some("user") {
        return None;
    }
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            let texts: Vec<&str> = blocks.filter_map(|block| block.get("text")?.as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
    }
}

/// Cuts text into pieces of so many characters; no pieces for no text.
fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}
