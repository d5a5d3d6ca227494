//! Timers: rows that fire by the transaction that deletes them.
//!
//! Two processes may both see a timer due; only one of them can commit `Fire`. This module holds the types; it has no
//! clock and wakes no process.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::Entry;
use crate::error::JournalError;
use crate::system_events::SystemEvent;

/// What can happen to a timer. Its JSON is the payload of the entry that records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerOp {
    /// It is set, or moved if it was already set.
    Set {
        /// Its key, `<owner>/<name>`: entries go to the stream `timer/<owner>`.
        id: String,
        /// When it is due.
        due_at_ms: i64,
        /// Data for the process that fires it.
        payload: Value,
    },
    /// It is no longer wanted; cancelling one that is not set is no error.
    Cancel { id: String },
    /// It is acted upon in this commit, which fails with `Gone` if the timer is not set.
    Fire { id: String },
}

/// A timer that is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    pub id: String,
    /// When it is due.
    pub due_at_ms: i64,
    /// Data for the process that fires it.
    pub payload: Value,
}

impl TimerOp {
    /// The timer's key.
    pub fn id(&self) -> &str {
        match self {
            Self::Set { id, .. } | Self::Cancel { id } | Self::Fire { id } => id,
        }
    }

    /// The name it has in the log.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            Self::Set { .. } => "timer_set",
            Self::Cancel { .. } => "timer_cancelled",
            Self::Fire { .. } => "timer_fired",
        }
    }

    /// The stream of the timer's owner: each has one writer, so that timers of different owners never conflict.
    pub(crate) fn stream(&self) -> String {
        let whose = self.id().split('/').next().unwrap_or_default();
        format!("timer/{whose}")
    }
}

impl Timer {
    /// The timer that an entry set; `None` once its payload is erased.
    pub(crate) fn of(entry: &Entry) -> Result<Option<Self>, JournalError> {
        Ok(match SystemEvent::read(entry)? {
            Some(SystemEvent::Timer(TimerOp::Set { id, due_at_ms, payload })) => Some(Self { id, due_at_ms, payload }),
            _ => None,
        })
    }
}
