//! The outbox: what must reach the world outside, one row per message part.
//!
//! A part goes `pending → sending → sent | unknown | dead`. `sending` is committed before the first byte leaves, so
//! a part found there after a crash may have been sent: it becomes `unknown`, never silently `pending`. Every other
//! move is refused with a typed error. This module judges moves; it sends nothing.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::Entry;
use crate::error::JournalError;
use crate::system_events::SystemEvent;

/// What can happen to a part. Its JSON is the payload of the entry that records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxOp {
    /// It waits to be sent; a second one under the same id changes nothing.
    Put {
        id: String,
        /// Where to, `<channel>:<chat>`: entries go to the stream `outbox/<to>`.
        to: String,
        /// What to send; its shape is the channel's.
        body: Value,
    },
    /// It is about to be sent.
    Sending { id: String },
    /// The other side has it.
    Sent {
        id: String,
        /// The other side's name for it.
        native: String,
    },
    /// It is unknown whether the other side has it.
    Unknown { id: String },
    /// It was not sent, or is to be sent again although it may have been.
    Retry { id: String },
    /// It will never be sent.
    Dead { id: String, reason: String },
}

/// How far a part has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    Pending,
    /// It is being sent.
    Sending,
    /// The other side has it.
    Sent,
    /// It is unknown whether the other side has it.
    Unknown,
    /// It will never be sent.
    Dead,
}

/// A message part in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxPart {
    pub id: String,
    /// The entry that put it there; parts leave in this order.
    pub seq: u64,
    /// Where to, `<channel>:<chat>`.
    pub to: String,
    /// How far it has come.
    pub state: PartState,
    /// The other side's name for it, once sent.
    pub native: Option<String>,
    /// What to send.
    pub body: Value,
}

impl OutboxOp {
    /// The part's key.
    pub fn id(&self) -> &str {
        match self {
            Self::Put { id, .. }
            | Self::Sending { id }
            | Self::Sent { id, .. }
            | Self::Unknown { id }
            | Self::Retry { id }
            | Self::Dead { id, .. } => id,
        }
    }

    /// The name it has in the log.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            Self::Put { .. } => "outbox_put",
            Self::Sending { .. } => "outbox_sending",
            Self::Sent { .. } => "outbox_sent",
            Self::Unknown { .. } => "outbox_unknown",
            Self::Retry { .. } => "outbox_retried",
            Self::Dead { .. } => "outbox_dead",
        }
    }

    /// Where it takes a part to.
    pub(crate) fn state(&self) -> PartState {
        match self {
            Self::Put { .. } | Self::Retry { .. } => PartState::Pending,
            Self::Sending { .. } => PartState::Sending,
            Self::Sent { .. } => PartState::Sent,
            Self::Unknown { .. } => PartState::Unknown,
            Self::Dead { .. } => PartState::Dead,
        }
    }

    /// Whether it may happen to a part in that state.
    pub(crate) fn check(&self, from: PartState) -> Result<(), JournalError> {
        use PartState::{Pending, Sending, Unknown};
        let legal = match self {
            Self::Put { .. } => false,
            Self::Sending { .. } => from == Pending,
            Self::Unknown { .. } => from == Sending,
            Self::Sent { .. } | Self::Retry { .. } => matches!(from, Sending | Unknown),
            Self::Dead { .. } => matches!(from, Pending | Sending | Unknown),
        };
        if legal {
            return Ok(());
        }
        Err(JournalError::IllegalMove { part: self.id().to_owned(), from, to: self.state() })
    }
}

impl OutboxPart {
    /// The part that an entry put into the outbox; `None` once its payload is erased.
    pub(crate) fn of(entry: &Entry, state: PartState, native: Option<String>) -> Result<Option<Self>, JournalError> {
        Ok(match SystemEvent::read(entry)? {
            Some(SystemEvent::Outbox(OutboxOp::Put { id, to, body })) => {
                Some(Self { id, seq: entry.seq, to, state, native, body })
            }
            _ => None,
        })
    }
}

impl PartState {
    /// Every state, at the place of its number in a store.
    const ALL: [Self; 5] = [Self::Pending, Self::Sending, Self::Sent, Self::Unknown, Self::Dead];

    /// Its number in a store.
    pub(crate) fn number(self) -> i64 {
        self as i64
    }

    /// The state with that number.
    pub(crate) fn of(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).copied()
    }
}

impl fmt::Display for PartState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Unknown => "unknown",
            Self::Dead => "dead",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_a_table() {
        use PartState::{Dead, Pending, Sending, Sent, Unknown};
        let id = String::from("p");
        let table: [(OutboxOp, &[PartState]); 6] = [
            (OutboxOp::Put { id: id.clone(), to: "t:1".into(), body: Value::Null }, &[]),
            (OutboxOp::Sending { id: id.clone() }, &[Pending]),
            (OutboxOp::Sent { id: id.clone(), native: "7".into() }, &[Sending, Unknown]),
            (OutboxOp::Unknown { id: id.clone() }, &[Sending]),
            (OutboxOp::Retry { id: id.clone() }, &[Sending, Unknown]),
            (OutboxOp::Dead { id, reason: "gone".into() }, &[Pending, Sending, Unknown]),
        ];
        for (op, legal) in &table {
            for from in [Pending, Sending, Sent, Unknown, Dead] {
                assert_eq!(op.check(from).is_ok(), legal.contains(&from), "{op:?} from {from}");
            }
        }
        for state in PartState::ALL {
            assert_eq!(PartState::of(state.number()), Some(state));
        }
    }
}
