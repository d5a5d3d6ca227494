//! What comes out of a call: pieces while it runs, and one end.
//!
//! The end is an answer, a typed failure with words for the user, or a cancellation with what had come so far.
//! Words here never hold a key: the client redacts them before they leave it.

use std::time::Duration;

use max_team_core::chat::{PartialAnswer, Usage};
use max_team_core::recovery::Failure;
use thiserror::Error;

/// A piece of an answer while it streams. For watchers only: the answer itself comes whole at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Nothing is sent for so long, to keep to the provider's requests per minute.
    Waiting(Duration),
    Text(&'a str),
    Thinking(&'a str),
    /// A tool call begins.
    ToolStart {
        /// The provider's id for the call.
        id: &'a str,
        name: &'a str,
    },
    /// More of the input of the tool call that began last; not valid JSON by itself.
    ToolInput(&'a str),
    /// What the call has used so far.
    Usage(Usage),
}

/// The callback that receives deltas.
pub(crate) type Sink<'s> = dyn FnMut(Delta<'_>) + Send + 's;

/// How a call ends without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    #[error("{detail}")]
    Failed {
        failure: Failure,
        /// Why, in words: what happened, what the provider said, what to do next.
        detail: String,
        /// The provider's id of the request, for their support.
        request_id: Option<String>,
        /// How much of an answer had come.
        streamed: PartialAnswer,
    },
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled {
        /// The text so far.
        partial: String,
        /// How much of an answer had come.
        streamed: PartialAnswer,
    },
}

impl CallError {
    /// A failure without a request to a provider.
    pub(crate) fn failed(failure: Failure, detail: impl Into<String>) -> Self {
        Self::Failed { failure, detail: detail.into(), request_id: None, streamed: PartialAnswer::default() }
    }
}

/// A failure inside the client, which adds the provider's name and the request's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFault {
    pub(crate) failure: Failure,
    pub(crate) detail: String,
}

impl CallFault {
    pub(crate) fn new(failure: Failure, detail: impl Into<String>) -> Self {
        Self { failure, detail: detail.into() }
    }

    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Failure::Malformed, detail)
    }
}
