//! What to do about failed model calls, and about tool calls that a crash interrupted.
//!
//! The same tables serve a running turn and a restarted one. Waiting times become absolute times, so a retry that was
//! pending when the process died is still pending, for the rest of its wait, in the next process.

use serde::{Deserialize, Serialize};

use crate::limits::{OUTAGE_RETRY_MS_MAX, RETRY_AFTER_MS_MAX, RETRY_BASE_MS, SERVER_ERRORS_MAX};
use crate::policy::Repeatability;

/// Why a model call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The key is missing, wrong, or may not use this model.
    Auth,
    /// Too many requests.
    RateLimited {
        /// The wait that the provider asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The provider cannot take more right now.
    Overloaded {
        /// The wait that the provider asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The request is larger than the model's window.
    ContextOverflow,
    /// The provider refuses the request as it is.
    InvalidRequest,
    /// The provider failed (5xx, 408).
    Server {
        /// The wait that the provider asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The host was not reached, or the connection broke.
    Network,
    /// Nothing came for longer than `llm.timeout`.
    Timeout,
    /// The stream ended without its closing event.
    Truncated,
    /// A frame of the stream could not be parsed.
    Malformed,
    /// The answer exceeds the size limit.
    TooLarge,
    /// The local setup must be corrected first: a proxy, or certificates.
    Setup,
    /// The recording that plays the model has no answer for this request.
    Unrecorded,
}

impl Failure {
    /// Whether the same request may go through later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Network
            | Self::Timeout
            | Self::Truncated
            | Self::Malformed => true,
            // The same request would get the same large answer, and be charged again.
            Self::TooLarge => false,
            Self::Auth | Self::ContextOverflow | Self::InvalidRequest | Self::Setup | Self::Unrecorded => false,
        }
    }

    /// Whether the model server seems to be unavailable: sooner or later the same request succeeds.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Overloaded { .. } | Self::Server { .. } | Self::Network)
    }

    /// Whether an answer had begun, or may have: its cost is then unknown.
    pub fn may_have_cost(&self) -> bool {
        matches!(self, Self::Timeout | Self::Truncated | Self::Malformed | Self::TooLarge)
    }

    fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_ms }
            | Self::Overloaded { retry_after_ms }
            | Self::Server { retry_after_ms } => *retry_after_ms,
            _ => None,
        }
    }
}

/// What to do about a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Wait, then call again.
    Retry {
        /// How long to wait.
        after_ms: u64,
    },
    /// Wait until the model server is back: call again at intervals, without a limit.
    Park {
        /// How long to wait before the next try.
        after_ms: u64,
    },
    /// Continue with the fallback model at once.
    Fallback,
    /// Remove the oldest half of the window and call again.
    Shrink,
    /// Give up and tell the user.
    GiveUp,
}

/// What the remedy depends on.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Failures of this call so far, this one not counted.
    pub failed_before: u32,
    /// Allowed number of retries.
    pub retries_max: u32,
    /// Whether another model may take over (it has not yet).
    pub fallback: bool,
    /// Whether the call may wait without a limit for a server that is unavailable.
    pub can_park: bool,
    /// Whether the window can still be made smaller for this call.
    pub can_shrink: bool,
    /// A random number from the driver, for jitter.
    pub jitter: u32,
}

/// Decides what to do about a failed call: 1 s → 2 s → 4 s with up to a quarter of jitter on top, never earlier
/// than the provider asked for.
pub fn remedy(failure: &Failure, attempt: Attempt) -> Remedy {
    if *failure == Failure::ContextOverflow && attempt.can_shrink {
        return Remedy::Shrink;
    }
    if failure.is_passing() && attempt.failed_before < attempt.retries_max {
        let backoff = RETRY_BASE_MS << attempt.failed_before.min(16);
        let wait = failure.retry_after_ms().unwrap_or(0);
        // A provider that asks for a longer wait than the limit counts as unavailable.
        if wait <= RETRY_AFTER_MS_MAX {
            let base = backoff.max(wait);
            return Remedy::Retry { after_ms: base + u64::from(attempt.jitter) % (backoff / 4) };
        }
    }
    if failure.is_passing() && attempt.fallback {
        return Remedy::Fallback;
    }
    // A server that always answers with an error may do so because of this very request.
    let is_hopeless = matches!(failure, Failure::Server { .. }) && attempt.failed_before >= SERVER_ERRORS_MAX;
    if failure.is_outage() && attempt.can_park && !is_hopeless {
        let backoff = (RETRY_BASE_MS << attempt.failed_before.min(16)).min(OUTAGE_RETRY_MS_MAX);
        let base = backoff.max(failure.retry_after_ms().unwrap_or(0).min(RETRY_AFTER_MS_MAX));
        return Remedy::Park { after_ms: base + u64::from(attempt.jitter) % (backoff / 4) };
    }
    Remedy::GiveUp
}

/// What to do about a tool call that was started and not finished when the process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopen {
    /// Run it (again); tools that can compare or look up do so first.
    Run,
    /// Tell the model that it is unknown whether the call took effect.
    Unknown,
}

/// What to do with a tool call that a crash interrupted. (Calls of a turn that was stopped are reported as unknown instead:
/// `turn::decide`.)
pub fn reopen(class: Repeatability) -> Reopen {
    match class {
        Repeatability::Pure | Repeatability::Idempotent | Repeatability::Keyed => Reopen::Run,
        Repeatability::Opaque => Reopen::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Attempt =
        Attempt { failed_before: 0, retries_max: 3, fallback: false, can_park: false, can_shrink: true, jitter: 0 };
    const PLANNED: Attempt = Attempt { failed_before: 3, can_park: true, ..FRESH };

    #[test]
    fn waits_double_and_honour_the_provider() {
        let limited = |ms| Failure::RateLimited { retry_after_ms: ms };
        let server = || Failure::Server { retry_after_ms: None };
        let table = [
            (Failure::Network, FRESH, Remedy::Retry { after_ms: 1_000 }),
            (Failure::Network, Attempt { failed_before: 1, ..FRESH }, Remedy::Retry { after_ms: 2_000 }),
            (Failure::Truncated, Attempt { failed_before: 2, ..FRESH }, Remedy::Retry { after_ms: 4_000 }),
            (Failure::Network, Attempt { failed_before: 3, ..FRESH }, Remedy::GiveUp),
            (Failure::Network, Attempt { failed_before: 3, fallback: true, ..FRESH }, Remedy::Fallback),
            (limited(Some(7_000)), FRESH, Remedy::Retry { after_ms: 7_000 }),
            (limited(Some(10)), FRESH, Remedy::Retry { after_ms: 1_000 }),
            (limited(Some(3_600_000)), FRESH, Remedy::GiveUp),
            (limited(Some(3_600_000)), Attempt { fallback: true, ..FRESH }, Remedy::Fallback),
            (Failure::Network, Attempt { jitter: 249, ..FRESH }, Remedy::Retry { after_ms: 1_249 }),
            (Failure::Network, Attempt { jitter: 250, ..FRESH }, Remedy::Retry { after_ms: 1_000 }),
            (Failure::Auth, Attempt { fallback: true, ..FRESH }, Remedy::GiveUp),
            (Failure::InvalidRequest, FRESH, Remedy::GiveUp),
            (Failure::Setup, Attempt { fallback: true, ..FRESH }, Remedy::GiveUp),
            (Failure::TooLarge, Attempt { fallback: true, ..FRESH }, Remedy::GiveUp),
            (Failure::Network, Attempt { failed_before: 2, ..PLANNED }, Remedy::Retry { after_ms: 4_000 }),
            (Failure::Network, PLANNED, Remedy::Park { after_ms: 8_000 }),
            (Failure::Network, Attempt { failed_before: 500, ..PLANNED }, Remedy::Park { after_ms: 60_000 }),
            (Failure::Network, Attempt { fallback: true, ..PLANNED }, Remedy::Fallback),
            (Failure::Server { retry_after_ms: Some(20_000) }, PLANNED, Remedy::Park { after_ms: 20_000 }),
            (Failure::Overloaded { retry_after_ms: None }, PLANNED, Remedy::Park { after_ms: 8_000 }),
            // A server that always fails may do so because of the request; one that is not there does not.
            (server(), Attempt { failed_before: SERVER_ERRORS_MAX - 1, ..PLANNED }, Remedy::Park { after_ms: 60_000 }),
            (server(), Attempt { failed_before: SERVER_ERRORS_MAX, ..PLANNED }, Remedy::GiveUp),
            // An error that may cost money each time has a bounded number of retries.
            (Failure::Timeout, PLANNED, Remedy::GiveUp),
            (Failure::Truncated, PLANNED, Remedy::GiveUp),
            (limited(None), PLANNED, Remedy::GiveUp),
            (Failure::Auth, PLANNED, Remedy::GiveUp),
            (Failure::ContextOverflow, FRESH, Remedy::Shrink),
            (Failure::ContextOverflow, Attempt { can_shrink: false, ..FRESH }, Remedy::GiveUp),
        ];
        for (failure, attempt, want) in table {
            assert_eq!(remedy(&failure, attempt), want, "{failure:?} {attempt:?}");
        }
    }
}
