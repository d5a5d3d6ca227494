//! Folding a stream into a state, from its last snapshot on.
//!
//! A snapshot is a shortcut, never a truth: one of another version, or one that does not parse, is passed over and
//! the stream is folded from its beginning.

use serde::de::DeserializeOwned;

use crate::Journal;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::limits::FOLD_ENTRIES_MAX;

/// A state and the last entry inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedState<S> {
    pub state: S,
    /// The last entry inside it; what the next commit expects the stream to be at.
    pub stream_seq: u64,
}

impl Journal {
    /// Folds a stream. `version` names the state's shape together with the fold that makes it: change either, and
    /// older snapshots are passed over.
    pub fn fold<S, E>(
        &self,
        stream: &str,
        version: u32,
        init: S,
        mut apply: impl FnMut(&mut S, &Entry) -> Result<(), E>,
    ) -> Result<FoldedState<S>, E>
    where
        S: DeserializeOwned,
        E: From<JournalError>,
    {
        let snapshot = self.snapshot(stream)?.filter(|snapshot| snapshot.version == version);
        let kept = snapshot.and_then(|snapshot| {
            let state = serde_json::from_slice(&snapshot.state).ok()?;
            Some(FoldedState { state, stream_seq: snapshot.stream_seq })
        });
        let mut folded = kept.unwrap_or(FoldedState { state: init, stream_seq: 0 });
        loop {
            let entries = self.read(stream, folded.stream_seq, FOLD_ENTRIES_MAX)?;
            for entry in &entries {
                apply(&mut folded.state, entry)?;
                folded.stream_seq = entry.stream_seq;
            }
            if entries.len() < FOLD_ENTRIES_MAX {
                return Ok(folded);
            }
        }
    }
}
