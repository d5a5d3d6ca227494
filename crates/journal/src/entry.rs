//! One line of the log, and how it is chained to the line before it.
//!
//! A stream's entries form a hash chain: each hash covers every column of its entry, the payload through its hash
//! and the whole past through the previous hash. So a payload can be erased and the chain still holds, but nothing
//! can be edited. This module computes hashes; it never stores, reads or judges.

use std::borrow::Cow;

use max_team_core::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::commit::Append;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Reading order over all streams, from 1.
    pub seq: u64,
    /// The stream it belongs to.
    pub stream: String,
    /// Its place in the stream, from 1.
    pub stream_seq: u64,
    /// When it was decided.
    pub at_ms: i64,
    pub actor: String,
    /// What made it happen.
    pub cause: Option<String>,
    /// The name of what happened.
    pub event: Cow<'static, str>,
    /// The version of the payload's shape.
    pub version: u32,
    /// The hash of the payload; it stays when the payload is erased.
    pub payload_hash: Hash,
    /// The hash of the entry before it in the stream; zeros for the first.
    pub prev_hash: Hash,
    /// The hash over all of the above.
    pub hash: Hash,
    /// What happened, as JSON; `None` once erased.
    pub payload: Option<Vec<u8>>,
}

/// Where a stream ends. `row` is the engine's own name for the stream, 0 while it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) row: i64,
    pub(crate) stream_seq: u64,
    pub(crate) hash: Hash,
}

impl Entry {
    /// Chains what is to be appended behind the head of its stream, and moves the head.
    pub(crate) fn link(append: Append, seq: u64, at_ms: i64, head: &mut Head) -> Self {
        let mut entry = Self {
            seq,
            stream: append.stream,
            stream_seq: head.stream_seq + 1,
            at_ms,
            actor: append.actor,
            cause: append.cause,
            event: append.event,
            version: append.version,
            payload_hash: Hash::of(&append.payload),
            prev_hash: head.hash,
            hash: Hash::default(),
            payload: Some(append.payload),
        };
        entry.hash = entry.digest();
        head.stream_seq = entry.stream_seq;
        head.hash = entry.hash;
        entry
    }

    /// The hash that its columns have; an untouched entry's `hash` equals it.
    pub fn digest(&self) -> Hash {
        // `None` and `Some("")` must differ, so the cause takes two fields.
        let (has_cause, cause) = self.cause.as_deref().map_or((0, ""), |cause| (1, cause));
        Hash::of_fields(&[
            &self.seq.to_le_bytes(),
            self.stream.as_bytes(),
            &self.stream_seq.to_le_bytes(),
            &self.at_ms.to_le_bytes(),
            self.actor.as_bytes(),
            &[has_cause],
            cause.as_bytes(),
            self.event.as_bytes(),
            &self.version.to_le_bytes(),
            &self.payload_hash.0,
            &self.prev_hash.0,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_counts() {
        let mut head = Head::default();
        let append = Append { stream: "s".into(), event: "said".into(), payload: b"{}".to_vec(), ..Append::default() };
        let entry = Entry::link(append, 7, 1_000, &mut head);
        assert_eq!((head.stream_seq, head.hash), (1, entry.hash));
        let edits: [fn(&mut Entry); 10] = [
            |e| e.seq += 1,
            |e| e.stream.push('x'),
            |e| e.stream_seq += 1,
            |e| e.at_ms += 1,
            |e| e.actor.push('x'),
            |e| e.cause = Some(String::new()),
            |e| e.event = "sung".into(),
            |e| e.version += 1,
            |e| e.payload_hash = Hash::of("x"),
            |e| e.prev_hash = Hash::of("x"),
        ];
        for (column, edit) in edits.iter().enumerate() {
            let mut edited = entry.clone();
            edit(&mut edited);
            assert_ne!(edited.digest(), entry.hash, "column {column}");
        }
    }
}
