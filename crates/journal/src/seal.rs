//! Seals: entries that chain the hashes of everything since the seal before.
//!
//! A stream's own chain shows an edit or a gap, but not that its last entries, or all of it, are gone. A seal covers
//! every entry of every stream in a range of the sequence, so it does. Two seals chain through their digests.

use std::borrow::Cow;

use max_team_core::event;
use max_team_core::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::commit::Append;
use crate::error::JournalError;
use crate::system_events::SEAL;
use crate::transaction::encode;

/// What a seal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) from_seq: u64,
    pub(crate) to_seq: u64,
    pub(crate) count: u64,
    pub(crate) digest: Hash,
}

/// A seal over the whole log up to an entry, to be kept outside the journal. Unlike the journal's own seals, it also
/// detects a log that was rewritten together with its seals, or cut off after a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalSeal {
    /// The last entry that it covers.
    pub to_seq: u64,
    /// The chained hashes of all entries up to there.
    pub digest: Hash,
}

/// The digest of a log behind one more entry.
pub(crate) fn chain(digest: &Hash, entry: &Hash) -> Hash {
    Hash::of_fields(&[&digest.0, &entry.0])
}

impl Seal {
    /// A seal over nothing yet, behind the one before it.
    pub(crate) fn after(before: Option<&Self>) -> Self {
        let (to_seq, digest) = before.map_or((0, Hash::default()), |seal| (seal.to_seq, seal.digest));
        Self { from_seq: to_seq + 1, to_seq, count: 0, digest }
    }

    /// Takes the next entry in.
    pub(crate) fn add(&mut self, seq: u64, hash: &Hash) {
        self.to_seq = seq;
        self.count += 1;
        self.digest = chain(&self.digest, hash);
    }

    /// The entry that records it.
    pub(crate) fn append(&self) -> Result<Append, JournalError> {
        Ok(Append {
            stream: SEAL.to_owned(),
            event: Cow::Borrowed("sealed"),
            version: event::VERSION,
            payload: encode("a seal", self)?,
            actor: "journal".to_owned(),
            cause: None,
        })
    }
}
