//! What the server was asked, in the order it arrived.
//!
//! A request is recorded once its last byte is in, before anything is answered; one that broke off is not recorded.
//! Times are microseconds on the server's own clock, so a bench can tell the client's time from the server's.

use std::hash::{DefaultHasher, Hasher};

use serde_json::Value;

use crate::http::Request;
use crate::wire::{Dialect, tool_results, user_text};

#[derive(Clone, Debug)]
pub struct Recorded {
    /// Arrival number, from 0.
    pub n: usize,
    pub method: String,
    /// As sent, with its query if it had one.
    pub path: String,
    /// Names are lower case.
    pub headers: Vec<(String, String)>,
    /// Null when there was none, or when it was not JSON.
    pub body: Value,
    pub raw: Vec<u8>,
    /// Size of the body. It stays when a lean script forgets the body itself.
    pub bytes: usize,
    /// Equal bodies have equal hashes, within one process.
    pub hash: u64,
    /// The [label](crate::Reply::label) of the reply it got. It stays when a lean script forgets the body.
    pub label: Option<String>,
    /// When the last byte of the request was read.
    pub arrive_us: u64,
    /// When the last write of the response began; none while it is under way. A client's own time is its next
    /// `arrive_us` less this: it is often at work before our write returns, and `end_us` would hide that.
    pub send_us: Option<u64>,
    /// When the last byte of the response was written; none while it is under way.
    pub end_us: Option<u64>,
}

impl Recorded {
    pub(crate) fn new(n: usize, arrive_us: u64, request: Request) -> Recorded {
        let mut hasher = DefaultHasher::new();
        hasher.write(&request.body);
        Recorded {
            n,
            method: request.method,
            path: request.target,
            headers: request.headers,
            body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
            bytes: request.body.len(),
            hash: hasher.finish(),
            raw: request.body,
            label: None,
            arrive_us,
            send_us: None,
            end_us: None,
        }
    }

    /// A request of which nobody wants to know more than when it came and how large it was.
    pub(crate) fn glimpse(n: usize, arrive_us: u64, request: &Request) -> Recorded {
        Recorded {
            n,
            method: request.method.clone(),
            path: request.target.clone(),
            headers: Vec::new(),
            body: Value::Null,
            raw: Vec::new(),
            bytes: request.body.len(),
            hash: 0,
            label: None,
            arrive_us,
            send_us: None,
            end_us: None,
        }
    }

    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The wire format asked for; none when this is not a call to a model.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of(&self.method, &self.path)
    }

    /// Whether any string in the body, a key aside, contains `text`. Good for telling parallel agents apart.
    pub fn contains(&self, text: &str) -> bool {
        any_string(&self.body, text)
    }

    /// How many tool results the conversation holds.
    pub fn tool_results(&self) -> usize {
        self.body.get("messages").and_then(Value::as_array).into_iter().flatten().map(tool_results).sum()
    }

    /// What the user said, message by message. A message of tool results alone says nothing and is left out.
    pub fn user_texts(&self) -> Vec<String> {
        self.body.get("messages").and_then(Value::as_array).into_iter().flatten().filter_map(user_text).collect()
    }

    /// What the user said last; empty when that was nothing yet.
    pub fn last_user(&self) -> String {
        self.user_texts().pop().unwrap_or_default()
    }

    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        route(&self.path)
    }

    /// What a failing test shows of it.
    pub(crate) fn line(&self) -> String {
        format!("#{} {} {} ({} bytes)", self.n, self.method, self.path, self.bytes)
    }

    /// Itself without what takes room.
    pub(crate) fn stub(&self) -> Recorded {
        Recorded {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: Vec::new(),
            body: Value::Null,
            raw: Vec::new(),
            label: self.label.clone(),
            ..*self
        }
    }
}

/// A target without its query.
pub(crate) fn route(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

fn any_string(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, text)),
        Value::Object(fields) => fields.values().any(|field| any_string(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
