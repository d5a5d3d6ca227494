//! What a provider's refusal means: status, headers and words into a typed failure and words for the user.
//!
//! The types decide what happens next (`core::recovery`), so the doubtful cases are settled here: a spent quota is
//! `InvalidRequest`, because no wait helps and the key is fine; a request that is too large in bytes is
//! `ContextOverflow`, because a smaller window helps. Pure: no connection, no clock of its own.

use http::HeaderMap;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use max_team_core::recovery::Failure;
use serde_json::Value;

use crate::call::CallFault;
use crate::json;

/// Characters of a provider's message that are worth showing.
const MESSAGE_CHARS_MAX: usize = 400;

/// How providers say that the window is full, in lower case.
const OVERFLOW: [&str; 24] = [
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the available context size",
    "exceed_context_size",
    "context_length_exceeded",
    "context length exceeded",
    "context size has been exceeded",
    "context window exceeds limit",
    "maximum context length",
    "maximum prompt length",
    "greater than the context length",
    "larger than the context",
    "exceeds the maximum number of tokens",
    "exceeds the maximum allowed input length",
    "exceeded model token limit",
    "token limit exceeded",
    "too many tokens",
    "reduce the length of the messages",
    "range of input length should be",
    "prompt exceeds max length",
    "prompt 超长",
    "request entity too large",
];

/// How providers say that the account has nothing left.
const SPENT: [&str; 7] = [
    "insufficient_quota",
    "insufficient balance",
    "insufficient_balance",
    "billing",
    "credit balance is too low",
    "exceeded your current quota",
    "payment",
];

/// What a provider said about a failure.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderError {
    /// Its type and code.
    kind: String,
    /// Its words, or the start of a body without any.
    message: String,
}

impl ProviderError {
    /// Reads an error body of any shape.
    pub(crate) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::of(&value),
            Err(_) => Self { kind: String::new(), message: shorten(&String::from_utf8_lossy(body)) },
        }
    }

    fn of(value: &Value) -> Self {
        // One provider wraps the object into a list.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let word = |key| match error.get(key) {
            Some(Value::String(word)) => Some(word.clone()),
            Some(Value::Number(code)) => Some(code.to_string()),
            _ => None,
        };
        let kinds: Vec<String> = ["type", "code"].into_iter().filter_map(word).filter(|word| word != "error").collect();
        let message = match error {
            Value::String(words) => Some(words.as_str()),
            other => ["message", "detail", "error_msg"].into_iter().find_map(|key| json::text(other, key)),
        };
        // Routers put what the provider behind them said below their own words.
        let behind = error.pointer("/metadata/raw").and_then(Value::as_str);
        let message = match (message, behind) {
            (Some(message), Some(behind)) => shorten(&format!("{message}: {behind}")),
            (Some(message), None) => shorten(message),
            (None, _) => shorten(&error.to_string()),
        };
        Self { kind: kinds.join(", "), message }
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let (kind, message) = (self.kind.to_lowercase(), self.message.to_lowercase());
        phrases.iter().any(|phrase| kind.contains(phrase) || message.contains(phrase))
    }

    /// What it comes to, by the status it came under.
    fn judge(&self, status: u16, retry_after_ms: Option<u64>) -> Failure {
        match status {
            400 | 422 | 500 if self.says(&OVERFLOW) => Failure::ContextOverflow,
            413 => Failure::ContextOverflow,
            401 | 403 => Failure::Auth,
            // One request is more than a minute's tokens: waiting does not help, a smaller window does.
            429 if self.says(&["request too large"]) => Failure::ContextOverflow,
            429 if self.says(&SPENT) => Failure::InvalidRequest,
            429 => Failure::RateLimited { retry_after_ms },
            503 | 529 => Failure::Overloaded { retry_after_ms },
            408 | 500..=599 => Failure::Server { retry_after_ms },
            _ => Failure::InvalidRequest,
        }
    }

    /// The status that a provider would have sent, had the stream not begun with 200.
    fn status(&self) -> u16 {
        let code = self.kind.split(", ").find_map(|word| word.parse::<u16>().ok());
        match code {
            Some(code @ 400..=599) => code,
            _ if self.says(&OVERFLOW) => 400,
            _ if self.says(&["overloaded", "unavailable", "capacity"]) => 529,
            _ if self.says(&["rate_limit", "rate limit", "too_many_requests"]) || self.says(&SPENT) => 429,
            _ if self.says(&["authentication", "permission", "invalid_api_key"]) => 401,
            _ if self.says(&["request_too_large"]) => 413,
            _ if self.says(&["invalid_request", "not_found"]) => 400,
            _ => 500,
        }
    }

    fn quoted(&self) -> String {
        match (self.kind.is_empty(), self.message.is_empty()) {
            (true, true) => "no reason was given".into(),
            (true, false) => self.message.clone(),
            (false, true) => self.kind.clone(),
            (false, false) => format!("{} ({})", self.message, self.kind),
        }
    }
}

/// An error that came with a status.
pub(crate) fn by_status(status: u16, said: &ProviderError, retry_after_ms: Option<u64>) -> CallFault {
    let failure = said.judge(status, retry_after_ms);
    let advice = advice(&failure, status, said);
    CallFault::new(failure, format!("HTTP {status}: {}; {advice}", said.quoted()))
}

/// An error inside a stream, or in place of an answer.
pub(crate) fn in_stream(data: &Value) -> CallFault {
    let said = ProviderError::of(data);
    let status = said.status();
    let failure = said.judge(status, None);
    let advice = advice(&failure, status, &said);
    CallFault::new(failure, format!("the answer broke off with an error: {}; {advice}", said.quoted()))
}

/// A body that should have been an answer.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> CallFault {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => in_stream(&value),
        _ => {
            let start = shorten(&String::from_utf8_lossy(body.get(..200).unwrap_or(body)));
            CallFault::malformed(format!("the answer cannot be read ({error}): {start}"))
        }
    }
}

fn advice(failure: &Failure, status: u16, said: &ProviderError) -> &'static str {
    match failure {
        Failure::Auth => "check the key and what it may use",
        Failure::RateLimited { .. } => "wait, ask less often, or raise the limit at the provider",
        Failure::Overloaded { .. } => "the provider is busy: try later, or use another model",
        Failure::ContextOverflow => "use less history, or a model with a larger window",
        Failure::InvalidRequest if said.says(&SPENT) => "top up the account, or use another model",
        Failure::InvalidRequest => match status {
            300..=399 => "redirects are not followed, so that the key stays here: correct `base_url`",
            404 | 405 => "check the model's name and `base_url`",
            _ => "the request must change before it can go through",
        },
        _ => "the provider has a problem: try later, or use another model",
    }
}

/// What the provider asked us to wait. A date is measured against the provider's own clock where it shows one.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let millis = header("retry-after-ms").and_then(seconds);
    if let Some(millis) = millis.or_else(|| Some(seconds(header("retry-after")?)? * 1_000.0)) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; large ones saturate"
        )]
        return Some(millis.ceil() as u64);
    }
    let date = |text: &str| rfc2822::parse(text).ok().map(|date| date.timestamp());
    let until = date(header("retry-after")?)?;
    let now = header("date").and_then(date).unwrap_or(now);
    Some(u64::try_from(until.duration_since(now).as_millis()).unwrap_or(0))
}

/// One line of bounded length.
fn shorten(text: &str) -> String {
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
