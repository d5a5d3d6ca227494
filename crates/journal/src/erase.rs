//! Erases payloads without breaking the hash chain.
//!
//! A tombstone entry says which payloads were erased, for which actor and why; the entries keep their hashes. A
//! payload is erased from every entry that has it, along with the mail, timer and outbox rows derived from it and the
//! snapshots of its streams. The caller says what becomes of its own rows. The file keeps no bytes of rows that are
//! deleted or overwritten.

use std::borrow::Cow;

use max_team_core::event;
use max_team_core::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::commit::{Append, Projection};
use crate::entry::Entry;
use crate::error::JournalError;
use crate::system_events::ERASED;
use crate::transaction::encode;

/// A request to erase payloads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erase {
    pub payloads: Vec<Hash>,
    /// The actor that asks for it.
    pub actor: String,
    pub reason: String,
    /// The sessions that are forgotten with it, if it forgets whole ones.
    pub forgotten: Option<ForgottenSessions>,
    pub at_ms: i64,
    /// Changes of the caller's rows that were derived from the payloads, in the same transaction.
    pub rows: Vec<Projection>,
}

/// Sessions that were forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenSessions {
    pub sessions: Vec<String>,
    /// The person who asked for it, and the frontend.
    pub by: String,
}

/// What a tombstone says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tombstone {
    pub(crate) payloads: Vec<Hash>,
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forgotten: Option<ForgottenSessions>,
}

impl Tombstone {
    /// The payloads that a tombstone accounts for. One that does not parse accounts for nothing.
    pub(crate) fn of(entry: &Entry) -> Vec<Hash> {
        let payload = entry.payload.as_deref().unwrap_or_default();
        serde_json::from_slice::<Self>(payload).map(|said| said.payloads).unwrap_or_default()
    }
}

impl Erase {
    pub(crate) fn append(&self) -> Result<Append, JournalError> {
        let (payloads, reason) = (self.payloads.clone(), self.reason.clone());
        let tombstone = Tombstone { payloads, reason, forgotten: self.forgotten.clone() };
        Ok(Append {
            stream: ERASED.to_owned(),
            event: Cow::Borrowed("erased"),
            version: event::VERSION,
            payload: encode("a tombstone", &tombstone)?,
            actor: self.actor.clone(),
            cause: None,
        })
    }
}
