//! From a commit to the rows it writes: the rules of a transaction, once for every engine.
//!
//! A message is stored once per id and acknowledged once, in the commit of the turn that reads it: so it is delivered exactly
//! once. `resolve` looks things up, checks every expectation and chains the entries. It writes nothing: if it fails, the
//! transaction is untouched, and the other commits of a group go on. The engine then stores exactly the resolved
//! rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use max_team_core::event::{self, Event};
use max_team_core::hash::Hash;
use max_team_core::id::EnvelopeId;
use max_team_core::limits::SEAL_EVERY;
use max_team_core::message::Envelope;
use serde::Serialize;

use crate::commit::{Append, Commit, Committed, Expect, Fence, Projection};
use crate::entry::{Entry, Head};
use crate::error::JournalError;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::memory::Tables;
use crate::outbox::{OutboxOp, PartState};
use crate::sqlite::Db;
use crate::system_events::{self, RowChange, SystemEvent};
use crate::timer::TimerOp;
use crate::worker::Owner;

/// Where a transaction looks things up: inside the open transaction of one engine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TransactionReader<'a> {
    Sqlite(&'a Db),
    Memory(&'a Tables),
}

/// A message that was sent: the stream of its mailbox, and whether it was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) stream: String,
    pub(crate) taken: bool,
}

/// A part that was put into the outbox: its stream, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxRecord {
    pub(crate) stream: String,
    pub(crate) state: PartState,
}

/// The rows to be written, all or none.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) entries: Vec<Entry>,
    pub(crate) heads: BTreeMap<String, Head>,
    pub(crate) blobs: Vec<(Hash, Vec<u8>)>,
    pub(crate) rows: Vec<RowChange>,
}

impl TransactionReader<'_> {
    fn last_seq(self) -> Result<u64, JournalError> {
        match self {
            Self::Sqlite(db) => db.last_seq(),
            Self::Memory(tables) => Ok(tables.last_seq()),
        }
    }

    fn head(self, stream: &str) -> Result<Head, JournalError> {
        match self {
            Self::Sqlite(db) => db.head(stream),
            Self::Memory(tables) => Ok(tables.head(stream)),
        }
    }

    fn envelope(self, id: EnvelopeId) -> Result<Option<SentMessage>, JournalError> {
        match self {
            Self::Sqlite(db) => db.envelope(id),
            Self::Memory(tables) => Ok(tables.envelope(id)),
        }
    }

    fn has_timer(self, id: &str) -> Result<bool, JournalError> {
        match self {
            Self::Sqlite(db) => db.has_timer(id),
            Self::Memory(tables) => Ok(tables.has_timer(id)),
        }
    }

    fn part(self, id: &str) -> Result<Option<OutboxRecord>, JournalError> {
        match self {
            Self::Sqlite(db) => db.part_state(id),
            Self::Memory(tables) => Ok(tables.part_state(id)),
        }
    }

    fn owner(self, resource: &str) -> Result<Option<Owner>, JournalError> {
        match self {
            Self::Sqlite(db) => db.owner(resource),
            Self::Memory(tables) => Ok(tables.owner(resource)),
        }
    }
}

/// Checks a commit and says what it writes.
pub(crate) fn resolve(commit: Commit, look: TransactionReader<'_>) -> Result<(Writes, Committed), JournalError> {
    check_sizes(&commit)?;
    if let Some(fence) = &commit.fence {
        check_fence(fence, look)?;
    }
    let mut transaction = Transaction {
        look,
        at_ms: commit.at_ms,
        actor: commit.actor,
        last_seq: look.last_seq()?,
        writes: Writes::default(),
        checked: HashMap::new(),
        envelopes: HashMap::new(),
        timers: HashMap::new(),
        parts: HashMap::new(),
    };
    for (stream, expect) in commit.expect {
        transaction.check(stream, expect)?;
    }
    for append in commit.appends {
        if system_events::is_reserved(&append.stream) {
            return Err(JournalError::Reserved { stream: append.stream });
        }
        transaction.append(append)?;
    }
    for envelope in commit.sends {
        transaction.send(envelope)?;
    }
    transaction.ack(commit.acks)?;
    for op in commit.timers {
        transaction.timer(op)?;
    }
    for op in commit.outbox {
        transaction.outbox(op)?;
    }
    let mut writes = transaction.writes;
    writes.blobs = commit.blobs.into_iter().map(|bytes| (Hash::of(&bytes), bytes)).collect();
    writes.rows.extend(commit.projections.into_iter().map(RowChange::Projection));
    let committed = Committed {
        first_seq: writes.entries.first().map_or(0, |entry| entry.seq),
        last_seq: writes.entries.last().map_or(0, |entry| entry.seq),
        heads: writes.heads.iter().map(|(stream, head)| (stream.clone(), head.stream_seq)).collect(),
    };
    Ok((writes, committed))
}

/// Chains one entry of the journal's own (a seal, a tombstone) outside any commit.
pub(crate) fn resolve_own(append: Append, at_ms: i64, look: TransactionReader<'_>) -> Result<Writes, JournalError> {
    check_size(append.payload.len())?;
    let mut head = look.head(&append.stream)?;
    let stream = append.stream.clone();
    let entry = Entry::link(append, look.last_seq()? + 1, at_ms, &mut head);
    Ok(Writes { entries: vec![entry], heads: BTreeMap::from([(stream, head)]), ..Writes::default() })
}

impl Writes {
    /// Whether a multiple of `SEAL_EVERY` is among these entries, so that a seal is due. This needs no stored counter.
    pub(crate) fn is_seal_due(&self) -> bool {
        match (self.entries.first(), self.entries.last()) {
            (Some(first), Some(last)) => last.seq / SEAL_EVERY > first.seq.saturating_sub(1) / SEAL_EVERY,
            _ => false,
        }
    }
}

fn check_sizes(commit: &Commit) -> Result<(), JournalError> {
    let states = commit.projections.iter().map(|projection| match projection {
        Projection::Put { value, .. } | Projection::Raise { value, .. } => value.len(),
        Projection::Delete { .. } => 0,
        Projection::Snapshot { state, .. } => state.len(),
    });
    let payloads = commit.appends.iter().map(|append| append.payload.len());
    let largest = payloads.chain(commit.blobs.iter().map(Vec::len)).chain(states).max().unwrap_or(0);
    check_size(largest)
}

fn check_size(bytes: usize) -> Result<(), JournalError> {
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(JournalError::TooBig { bytes, max: PAYLOAD_BYTES_MAX });
    }
    Ok(())
}

fn check_fence(fence: &Fence, look: TransactionReader<'_>) -> Result<(), JournalError> {
    let owner = look.owner(&fence.resource)?.unwrap_or_default();
    if owner == (Owner { worker: Some(fence.worker), epoch: fence.epoch }) {
        return Ok(());
    }
    Err(JournalError::Fenced { resource: fence.resource.clone(), owner: owner.worker })
}

/// A commit that is being resolved: what it writes so far, and what it has looked up or changed.
struct Transaction<'a> {
    look: TransactionReader<'a>,
    at_ms: i64,
    actor: String,
    last_seq: u64,
    writes: Writes,
    checked: HashMap<String, Head>,
    envelopes: HashMap<EnvelopeId, SentMessage>,
    timers: HashMap<String, bool>,
    parts: HashMap<String, OutboxRecord>,
}

impl Transaction<'_> {
    fn check(&mut self, stream: String, expect: Expect) -> Result<(), JournalError> {
        let Expect::At(expected) = expect else { return Ok(()) };
        let head = self.look.head(&stream)?;
        if head.stream_seq != expected {
            return Err(JournalError::Conflict { stream, expected, found: head.stream_seq });
        }
        self.checked.insert(stream, head);
        Ok(())
    }

    fn append(&mut self, append: Append) -> Result<u64, JournalError> {
        let (seq, at_ms) = (self.last_seq + 1, self.at_ms);
        let entry = match self.writes.heads.get_mut(&append.stream) {
            Some(head) => Entry::link(append, seq, at_ms, head),
            None => {
                let (stream, mut head) = match self.checked.remove_entry(&append.stream) {
                    Some(checked) => checked,
                    None => (append.stream.clone(), self.look.head(&append.stream)?),
                };
                let entry = Entry::link(append, seq, at_ms, &mut head);
                self.writes.heads.insert(stream, head);
                entry
            }
        };
        self.writes.entries.push(entry);
        self.last_seq = seq;
        Ok(seq)
    }

    /// Appends a fact of the journal's own and derives its rows.
    fn record(
        &mut self,
        stream: String,
        event: &'static str,
        payload: Vec<u8>,
        own: SystemEvent,
    ) -> Result<(), JournalError> {
        check_size(payload.len())?;
        let (event, version, actor) = (Cow::Borrowed(event), event::VERSION, self.actor.clone());
        let seq = self.append(Append { stream, event, version, payload, actor, cause: None })?;
        own.rows(seq, &mut self.writes.rows);
        Ok(())
    }

    fn envelope(&mut self, id: EnvelopeId) -> Result<Option<&mut SentMessage>, JournalError> {
        if !self.envelopes.contains_key(&id)
            && let Some(envelope) = self.look.envelope(id)?
        {
            self.envelopes.insert(id, envelope);
        }
        Ok(self.envelopes.get_mut(&id))
    }

    fn send(&mut self, envelope: Envelope) -> Result<(), JournalError> {
        let id = envelope.id;
        if self.envelope(id)?.is_some() {
            return Ok(());
        }
        let stream = system_events::mail_stream(&envelope.to);
        let (actor, cause) = (envelope.from.clone(), envelope.cause.clone());
        let mailed = Event::Mailed(envelope);
        let event = Cow::Borrowed(mailed.name());
        let payload = encode("a message", &mailed)?;
        check_size(payload.len())?;
        let append = Append { stream: stream.clone(), event, version: event::VERSION, payload, actor, cause };
        let seq = self.append(append)?;
        SystemEvent::Mailed(id).rows(seq, &mut self.writes.rows);
        self.envelopes.insert(id, SentMessage { stream, taken: false });
        Ok(())
    }

    /// Writes one entry per mailbox that lists all messages acknowledged there.
    fn ack(&mut self, ids: Vec<EnvelopeId>) -> Result<(), JournalError> {
        let mut boxes: BTreeMap<String, Vec<EnvelopeId>> = BTreeMap::new();
        for id in ids {
            let envelope = self.envelope(id)?.ok_or(JournalError::UnknownMail { id })?;
            if !std::mem::replace(&mut envelope.taken, true) {
                boxes.entry(envelope.stream.clone()).or_default().push(id);
            }
        }
        for (stream, ids) in boxes {
            let payload = encode("an ack", &ids)?;
            self.record(stream, "acked", payload, SystemEvent::Acked(ids))?;
        }
        Ok(())
    }

    fn timer(&mut self, op: TimerOp) -> Result<(), JournalError> {
        let id = op.id();
        let is_set = match self.timers.get(id) {
            Some(is_set) => *is_set,
            None => self.look.has_timer(id)?,
        };
        match &op {
            TimerOp::Fire { id } if !is_set => return Err(JournalError::Gone { timer: id.clone() }),
            TimerOp::Cancel { .. } if !is_set => return Ok(()),
            _ => {}
        }
        self.timers.insert(id.to_owned(), matches!(op, TimerOp::Set { .. }));
        let payload = encode("a timer", &op)?;
        self.record(op.stream(), op.event(), payload, SystemEvent::Timer(op))
    }

    fn outbox(&mut self, op: OutboxOp) -> Result<(), JournalError> {
        let id = op.id();
        let known = match self.parts.remove(id) {
            Some(part) => Some(part),
            None => self.look.part(id)?,
        };
        let stream = match (&op, known) {
            (OutboxOp::Put { .. }, Some(part)) => {
                self.parts.insert(id.to_owned(), part);
                return Ok(());
            }
            (OutboxOp::Put { to, .. }, None) => system_events::outbox_stream(to),
            (_, Some(part)) => {
                op.check(part.state)?;
                part.stream
            }
            (_, None) => return Err(JournalError::UnknownPart { part: id.to_owned() }),
        };
        self.parts.insert(id.to_owned(), OutboxRecord { stream: stream.clone(), state: op.state() });
        let payload = encode("a part", &op)?;
        self.record(stream, op.event(), payload, SystemEvent::Outbox(op))
    }
}

/// Encodes a payload that the journal writes.
pub(crate) fn encode(what: &str, value: &impl Serialize) -> Result<Vec<u8>, JournalError> {
    serde_json::to_vec(value)
        .map_err(|error| JournalError::Malformed { what: what.to_owned(), detail: error.to_string() })
}
