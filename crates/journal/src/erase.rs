//! Erasing payloads: retention without breaking the chain.
//!
//! A tombstone entry says which payloads were erased, by whom and why; the entries keep their hashes. A payload is
//! content, so it goes wherever it occurs. Letters, timers and parts that it was go with it, and so do the kept states of its
//! streams; of other rows the caller says what becomes. Of rows that are deleted or overwritten nothing is left in the file.

use std::borrow::Cow;

use max_team_core::event;
use max_team_core::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::commit::{Append, Projection};
use crate::entry::Entry;
use crate::error::JournalError;
use crate::own::ERASED;
use crate::plan::encode;

/// A wish to erase payloads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erase {
    /// Their hashes.
    pub payloads: Vec<Hash>,
    /// Who wants it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at_ms: i64,
    /// What becomes of the caller's rows that followed from them, in the same transaction.
    pub rows: Vec<Projection>,
}

/// What a tombstone says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tombstone {
    pub(crate) payloads: Vec<Hash>,
    pub(crate) reason: String,
}

impl Tombstone {
    /// The payloads that a tombstone accounts for. One that does not parse accounts for nothing.
    pub(crate) fn of(entry: &Entry) -> Vec<Hash> {
        let payload = entry.payload.as_deref().unwrap_or_default();
        serde_json::from_slice::<Self>(payload).map(|said| said.payloads).unwrap_or_default()
    }
}

impl Erase {
    /// The tombstone.
    pub(crate) fn append(&self) -> Result<Append, JournalError> {
        let tombstone = Tombstone { payloads: self.payloads.clone(), reason: self.reason.clone() };
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
