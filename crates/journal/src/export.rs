//! The log as lines of JSON, for people and other programs.
//!
//! Every column is there, so that the chain can be checked without us. A payload is written as it is stored; one that
//! was erased is `null`.

use std::ops::ControlFlow;

use max_team_core::hash::Hash;
use max_team_core::time::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Journal;
use crate::chain::FaultDetail;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::read::ScanItem;
use crate::transaction::encode;

#[derive(Serialize)]
struct ExportLine<'a> {
    seq: u64,
    stream: &'a str,
    stream_seq: u64,
    at: String,
    actor: &'a str,
    cause: Option<&'a str>,
    event: &'a str,
    version: u32,
    payload: Payload<'a>,
    payload_hash: Hash,
    prev_hash: Hash,
    hash: Hash,
    #[serde(skip_serializing_if = "<[FaultDetail]>::is_empty")]
    damaged: &'a [FaultDetail],
}

/// JSON stays what it is; anything else becomes a text.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Json(&'a RawValue),
    Text(String),
    Erased,
}

impl Entry {
    /// The entry as one line of JSON, without the line's end; with what is wrong with it, if anything is.
    pub fn to_line(&self, damaged: &[FaultDetail]) -> Result<Vec<u8>, JournalError> {
        let payload = match self.payload.as_deref() {
            None => Payload::Erased,
            Some(bytes) => match serde_json::from_slice(bytes) {
                Ok(json) => Payload::Json(json),
                Err(_) => Payload::Text(String::from_utf8_lossy(bytes).into_owned()),
            },
        };
        let mut line = encode(
            "an entry",
            &ExportLine {
                seq: self.seq,
                stream: &self.stream,
                stream_seq: self.stream_seq,
                at: rfc3339(self.at_ms),
                actor: &self.actor,
                cause: self.cause.as_deref(),
                event: &self.event,
                version: self.version,
                payload,
                payload_hash: self.payload_hash,
                prev_hash: self.prev_hash,
                hash: self.hash,
                damaged,
            },
        )?;
        // JSON may hold bare line ends between its tokens, never inside them.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        Ok(line)
    }
}

impl Journal {
    /// Walks over the log from an entry on, one at a time and past what cannot be read, until it is told to stop.
    pub fn export(
        &self,
        from_seq: u64,
        mut each: impl FnMut(ScanItem<'_>) -> ControlFlow<()>,
    ) -> Result<(), JournalError> {
        self.scan_past(from_seq.saturating_sub(1), &mut each)
    }
}
