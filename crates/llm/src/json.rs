//! JSON written straight into a request's bytes, and small looks into JSON that others wrote.
//!
//! Requests are assembled from pieces that were encoded once; this is the one place that appends to such bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

/// The key under which a tool input that is no JSON object goes back to a model: wire formats demand an object, and
/// the model should see what it wrote.
const UNREADABLE: &str = "unreadable_input";

/// Appends a value.
pub(crate) fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let start = out.len();
    // Writing to memory cannot fail, and none of our values has a key that is not a string.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends raw bytes of JSON, after a comma unless there is one or they are the first in their list.
pub(crate) fn join(out: &mut Vec<u8>, item: &[u8]) {
    if !matches!(out.last(), None | Some(b'[' | b'{' | b',')) {
        out.push(b',');
    }
    out.extend_from_slice(item);
}

/// The string under a key.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// The whole number under a key.
pub(crate) fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

/// A tool's input as wire formats want it: an object.
pub(crate) fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        other => Cow::Owned(Value::Object(Map::from_iter([(UNREADABLE.to_owned(), other.clone())]))),
    }
}

/// A tool's input as the model wrote it: the value, and the JSON text that goes back on replay. No text at all means
/// no arguments; text that is no JSON stays text, so that the loop can refuse it with a reason.
pub(crate) fn input(written: &str) -> (Value, Cow<'_, str>) {
    let value = match written.trim() {
        "" => return (Value::Object(Map::new()), Cow::Borrowed("{}")),
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    let back = match &value {
        Value::Object(_) => Cow::Borrowed(written),
        other => Cow::Owned(object(other).to_string()),
    };
    (value, back)
}
