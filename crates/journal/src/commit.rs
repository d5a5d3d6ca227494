//! What a writer hands to the journal: one transaction, as plain data.
//!
//! A commit means the same on every engine. It carries facts (appends, sends, acks, timers, outbox) that become
//! entries of the log, what it relies on (expectations, a fence), and projections that the caller derives from the
//! same facts. Nothing here touches a store.

use std::borrow::Cow;

use max_team_core::id::{EnvelopeId, WorkerId};
use max_team_core::message::Envelope;
use serde::{Deserialize, Serialize};

use crate::outbox::OutboxOp;
use crate::timer::TimerOp;

/// What an acknowledged commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The death of the process.
    #[default]
    Normal,
    /// Power loss too: it is synced, and so is everything before it.
    Full,
}

/// What must hold of a stream for the commit to go in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Its last entry is this one (0: it has none). A lost race is a `Conflict`.
    At(u64),
    /// No expectation: the stream has many writers.
    Any,
}

/// One fact to be added to a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Append {
    /// The stream. `mail/`, `timer/`, `outbox/`, `seal` and `erased` are the journal's own and refused here.
    pub stream: String,
    /// The name of what happened.
    pub event: Cow<'static, str>,
    /// The version of the payload's shape.
    pub version: u32,
    /// What happened, as JSON; the journal does not look inside.
    pub payload: Vec<u8>,
    pub actor: String,
    /// What made it happen.
    pub cause: Option<String>,
}

/// Proof of ownership, checked in the commit's own transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// What is owned: a session, a plan, an agent.
    pub resource: String,
    pub worker: WorkerId,
    /// The epoch that the claim gave.
    pub epoch: u64,
}

/// A row derived from the log, changed in the same transaction as its facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// Writes a row, replacing the one under the same key.
    Put {
        /// The kind of row.
        table: Cow<'static, str>,
        /// Unique within its table.
        key: String,
        /// The row, as JSON.
        value: Vec<u8>,
        /// What lists are sorted by, newest first.
        sort_ms: i64,
    },
    /// Writes a row, unless the one under the same key has a value that is greater, byte by byte.
    Raise {
        /// The kind of row.
        table: Cow<'static, str>,
        /// Unique within its table.
        key: String,
        /// The row, as JSON.
        value: Vec<u8>,
    },
    /// Removes a row; one that is not there is no error.
    Delete {
        /// The kind of row.
        table: Cow<'static, str>,
        key: String,
    },
    /// Keeps a folded state, so that the next fold starts from there. One per stream.
    Snapshot {
        /// The stream that was folded.
        stream: String,
        /// The last entry inside the state.
        stream_seq: u64,
        /// The version of the state's shape and of the fold that made it.
        version: u32,
        /// The state, as JSON.
        state: Vec<u8>,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Commit {
    /// What it must survive once acknowledged.
    pub strength: Durability,
    /// Whether it may wait briefly for other commits to share its transaction, as when many agents wait at once.
    #[serde(default)]
    #[serde(rename = "patient")]
    pub batch: bool,
    /// What must hold of the streams.
    pub expect: Vec<(String, Expect)>,
    /// The ownership that must still hold.
    pub fence: Option<Fence>,
    /// When it was decided.
    pub at_ms: i64,
    /// The actor that is recorded for acks, timers and outbox changes.
    pub actor: String,
    /// Facts, in order.
    pub appends: Vec<Append>,
    /// Bytes that the facts refer to by hash; each is stored once.
    pub blobs: Vec<Vec<u8>>,
    /// Rows derived from the facts.
    pub projections: Vec<Projection>,
    /// Messages to put into mailboxes; one whose id is known changes nothing.
    pub sends: Vec<Envelope>,
    /// Messages to acknowledge; one that is acknowledged already changes nothing.
    pub acks: Vec<EnvelopeId>,
    /// Timers set, cancelled, fired.
    pub timers: Vec<TimerOp>,
    /// Message parts on their way out.
    pub outbox: Vec<OutboxOp>,
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Committed {
    /// The first entry it wrote: the first of its appends, if any. 0 when there was nothing to write.
    pub first_seq: u64,
    /// The last entry it wrote.
    pub last_seq: u64,
    /// Where the streams that it wrote to end now, by name.
    pub heads: Vec<(String, u64)>,
}

impl Committed {
    /// Where a stream that the commit wrote to ends now.
    pub fn head(&self, stream: &str) -> Option<u64> {
        self.heads.iter().find(|(name, _)| name == stream).map(|(_, stream_seq)| *stream_seq)
    }
}
