//! A question to a service that the user has set up (Loki, Prometheus): one GET, JSON back.

use reqwest::Url;
use serde_json::Value;

use crate::text::{clip, size, visible};
use crate::tool::{ToolContext, ToolError};
use crate::web::{AddressGuard, fetch};

/// Bytes of what a service says when it refuses.
const REASON_BYTES_MAX: usize = 500;

/// The service's address; words on how to set it up if there is none.
pub(crate) fn base(url: &Option<String>, name: &str, key: &str) -> Result<Url, ToolError> {
    let text = url.as_ref().ok_or_else(|| {
        ToolError::correctable(format!("{name} is not set up; the user can set its address as `{key}` in config.yaml"))
    })?;
    Url::parse(text)
        .map_err(|err| ToolError::correctable(format!("`{key}` is no address: {err}; the user must mend it")))
}

/// A question to the service at `base`.
pub(crate) fn address<V: AsRef<str>>(base: &Url, path: &str, fields: &[(&str, V)]) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.query_pairs_mut().clear().extend_pairs(fields.iter().map(|(name, value)| (name, value.as_ref())));
    url
}

/// Asks the service; its answer, which it says is a success.
pub(crate) async fn ask(
    cx: &ToolContext,
    name: &str,
    base: &Url,
    path: &str,
    fields: &[(&str, String)],
    max: usize,
) -> Result<Value, ToolError> {
    let url = address(base, path, fields);
    let reply = fetch(cx, &url, AddressGuard::Service, max).await?;
    let refused = |words: &str| {
        let words = visible(&clip(words.trim(), REASON_BYTES_MAX));
        ToolError::correctable(format!("{name} says {}: {words}", reply.status))
    };
    if reply.is_cut {
        return Err(ToolError::correctable(format!(
            "{name} gives more than {}; ask for less: a shorter time, fewer series",
            size(max as u64)
        )));
    }
    let text = String::from_utf8_lossy(&reply.body);
    // A refusal of theirs is JSON too, or a plain sentence.
    let answer: Value = serde_json::from_str(&text).map_err(|_| refused(&text))?;
    let is_fine = answer.get("status").and_then(Value::as_str) == Some("success");
    match is_fine && reply.status == 200 {
        true => Ok(answer),
        false => Err(refused(answer.get("error").and_then(Value::as_str).unwrap_or(&text))),
    }
}

/// Labels as people write them: `{app="web", pod="a"}`.
pub(crate) fn labels(labels: Option<&Value>) -> String {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    let name = labels.and_then(|labels| labels.get("__name__")).and_then(Value::as_str).unwrap_or_default();
    let shown: Vec<String> = pairs
        .filter(|(key, _)| *key != "__name__")
        .map(|(key, value)| {
            format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), |text| format!("\"{text}\"")))
        })
        .collect();
    match (name, shown.is_empty()) {
        ("", true) => "{}".to_owned(),
        (name, true) => name.to_owned(),
        (name, false) => format!("{name}{{{}}}", shown.join(", ")),
    }
}
