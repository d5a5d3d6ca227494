//! Refusals and failures, as the API tells them.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use max_team_core::memory::WriteRefusal;
use max_team_core::task_list::ListRefusal;
use max_team_runtime::{RuntimeError, WorktreeError};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use serde_json::{Map, Value, json};

/// A request that was not carried out.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: String,
    /// The message in Chinese, if it comes from the team.
    chinese: Option<String>,
    /// Further fields of the error object.
    more: Option<Box<Value>>,
    /// Seconds after which the request may be sent again.
    retry_after: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), chinese: None, more: None, retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn unauthorized() -> Self {
        let words = "log in with the link that `max-team serve` printed, or send `Authorization: Bearer TOKEN`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", words)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// The key was sent with a different request before.
    pub(crate) fn key_reused() -> Self {
        let words = "this `Idempotency-Key` was sent with another request before: send a new key with a new request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", words)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(crate) fn rate_limited(seconds: u64) -> Self {
        let message = format!("too many requests: try again in {seconds} s");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
        Self { retry_after: Some(seconds), ..error }
    }

    /// The object that stands for it in answers.
    pub(crate) fn object(&self) -> Value {
        let mut object =
            Map::from_iter([("code".to_owned(), json!(self.code)), ("message".to_owned(), json!(self.message))]);
        object.extend(self.chinese.iter().map(|chinese| ("message_zh".to_owned(), json!(chinese))));
        if let Some(Value::Object(more)) = self.more.as_deref() {
            object.extend(more.clone());
        }
        Value::Object(object)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.object() }))).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> Self {
        let chinese = Some(Lang::Zh.runtime_failure(&error));
        Self { chinese, ..Self::of_kind(error) }
    }
}

impl ApiError {
    fn of_kind(error: RuntimeError) -> Self {
        let message = error.to_string();
        match error {
            RuntimeError::RoleTooLow { .. } => Self::forbidden(message),
            RuntimeError::NoSession(_)
            | RuntimeError::NoQuestion(_)
            | RuntimeError::NoReader { .. }
            | RuntimeError::NoPoint { .. }
            | RuntimeError::NoPlan(_)
            | RuntimeError::NoPlanTask(_)
            | RuntimeError::Tasks(ListRefusal::Unknown { .. })
            | RuntimeError::NothingToContinue(_)
            | RuntimeError::Worktree(WorktreeError::NotFound(_) | WorktreeError::Name(_))
            | RuntimeError::Memory(WriteRefusal::Nothing(_)) => Self::not_found(message),
            RuntimeError::Answered { by, said, at_ms } => {
                let more = Some(Box::new(json!({ "by": by, "said": said, "at_ms": at_ms })));
                Self { more, ..Self::new(StatusCode::CONFLICT, "answered", message) }
            }
            RuntimeError::TooLong { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message),
            RuntimeError::NeedsWord { .. } => Self::new(StatusCode::BAD_REQUEST, "needs_word", message),
            RuntimeError::Silent
            | RuntimeError::Plan(_)
            | RuntimeError::DraftFlaws(_)
            | RuntimeError::Memory(
                WriteRefusal::NotYours { .. }
                | WriteRefusal::Unquoted(_)
                | WriteRefusal::TooLarge { .. }
                | WriteRefusal::TooMany(_)
                | WriteRefusal::Key(_)
                | WriteRefusal::Empty(_),
            )
            | RuntimeError::Worktree(WorktreeError::NotChanged(_))
            | RuntimeError::WorktreeUnseen(_)
            | RuntimeError::Tasks(_)
            | RuntimeError::Schema { .. }
            | RuntimeError::TooMuch => Self::bad_request(message),
            RuntimeError::Journal(_)
            | RuntimeError::Audit(_)
            | RuntimeError::Unreadable { .. }
            | RuntimeError::BadText { .. } => Self::internal(message),
            _ => Self::conflict(message),
        }
    }
}

impl ApiError {
    /// Settings, keys or definitions that cannot be used now.
    pub(crate) fn of_setup(error: &CliError, lang: Lang) -> Self {
        let code = if error.exit == Exit::NoKey { "no_key" } else { "conflict" };
        Self::new(StatusCode::CONFLICT, code, error.words(lang))
    }
}

impl From<CliError> for ApiError {
    fn from(error: CliError) -> Self {
        let chinese = Some(error.words(Lang::Zh).to_owned());
        let told = match error.exit {
            Exit::Usage => Self::bad_request(error.words(Lang::En)),
            _ => Self::of_setup(&error, Lang::En),
        };
        Self { chinese, ..told }
    }
}
