//! What the journal writes on its own behalf, and the rows that follow from it.
//!
//! Mail, timers and the outbox are rows, and every change of a row is caused by an entry. The same function derives
//! the rows when a commit is resolved and when they are rebuilt from the log, so the two cannot drift apart. Nothing
//! here touches a store.

use max_team_core::event::Event;
use max_team_core::id::EnvelopeId;
use serde::de::DeserializeOwned;

use crate::commit::Projection;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::outbox::{OutboxOp, PartState};
use crate::timer::TimerOp;

/// The names of the events that the journal writes on its own behalf.
pub const OWN_EVENTS: [&str; 12] = [
    "acked",
    "erased",
    "outbox_dead",
    "outbox_put",
    "outbox_retried",
    "outbox_sending",
    "outbox_sent",
    "outbox_unknown",
    "sealed",
    "timer_cancelled",
    "timer_fired",
    "timer_set",
];

/// The stream of seals.
pub(crate) const SEAL: &str = "seal";
/// The stream of tombstones.
pub(crate) const ERASED: &str = "erased";
const MAIL: &str = "mail/";
const TIMER: &str = "timer/";
const OUTBOX: &str = "outbox/";

/// The stream of a mailbox.
pub(crate) fn mail_stream(address: &str) -> String {
    format!("{MAIL}{address}")
}

/// The address behind the stream of a mailbox.
pub(crate) fn mail_address(stream: &str) -> Option<&str> {
    stream.strip_prefix(MAIL)
}

/// The stream of a chat's outgoing parts.
pub(crate) fn outbox_stream(to: &str) -> String {
    format!("{OUTBOX}{to}")
}

/// Whether only the journal itself may append to the stream.
pub(crate) fn is_reserved(stream: &str) -> bool {
    stream == SEAL || stream == ERASED || [MAIL, TIMER, OUTBOX].iter().any(|prefix| stream.starts_with(prefix))
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowChange {
    /// A message waits; the stream of its entry names the mailbox.
    Mail { id: EnvelopeId, seq: u64 },
    /// The message was acknowledged.
    Taken { id: EnvelopeId, seq: u64 },
    /// A timer is set; its entry says what for.
    Timer { id: String, due_at_ms: i64, seq: u64 },
    /// The timer was fired or cancelled.
    NoTimer { id: String },
    /// A part waits to be sent; the stream of its entry says where to.
    Part { id: String, seq: u64 },
    /// The part's state changed.
    PartMoved { id: String, state: PartState, native: Option<String> },
    /// A row that the caller derived.
    Projection(Projection),
}

/// A fact of the journal's own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SystemEvent {
    Mailed(EnvelopeId),
    Acked(Vec<EnvelopeId>),
    Timer(TimerOp),
    Outbox(OutboxOp),
}

impl SystemEvent {
    /// Reads it back from its entry. `None`: not one of ours, or its payload was erased.
    pub(crate) fn read(entry: &Entry) -> Result<Option<Self>, JournalError> {
        let Some(payload) = entry.payload.as_deref() else { return Ok(None) };
        let stream = entry.stream.as_str();
        Ok(if stream.starts_with(MAIL) && entry.event == "acked" {
            Some(Self::Acked(parse(entry, payload)?))
        } else if stream.starts_with(MAIL) {
            match parse(entry, payload)? {
                Event::Mailed(envelope) => Some(Self::Mailed(envelope.id)),
                _ => None,
            }
        } else if stream.starts_with(TIMER) {
            Some(Self::Timer(parse(entry, payload)?))
        } else if stream.starts_with(OUTBOX) {
            Some(Self::Outbox(parse(entry, payload)?))
        } else {
            None
        })
    }

    /// The rows that follow from it.
    pub(crate) fn rows(self, seq: u64, rows: &mut Vec<RowChange>) {
        match self {
            Self::Mailed(id) => rows.push(RowChange::Mail { id, seq }),
            Self::Acked(ids) => rows.extend(ids.into_iter().map(|id| RowChange::Taken { id, seq })),
            Self::Timer(TimerOp::Set { id, due_at_ms, .. }) => rows.push(RowChange::Timer { id, due_at_ms, seq }),
            Self::Timer(TimerOp::Cancel { id } | TimerOp::Fire { id }) => rows.push(RowChange::NoTimer { id }),
            Self::Outbox(OutboxOp::Put { id, .. }) => rows.push(RowChange::Part { id, seq }),
            Self::Outbox(op) => {
                let state = op.state();
                let native = if let OutboxOp::Sent { native, .. } = &op { Some(native.clone()) } else { None };
                rows.push(RowChange::PartMoved { id: op.id().to_owned(), state, native });
            }
        }
    }
}

/// Parses a payload that the journal wrote.
pub(crate) fn parse<T: DeserializeOwned>(entry: &Entry, payload: &[u8]) -> Result<T, JournalError> {
    serde_json::from_slice(payload).map_err(|error| JournalError::Malformed {
        what: format!("entry {} (`{}` in `{}`)", entry.seq, entry.event, entry.stream),
        detail: error.to_string(),
    })
}
