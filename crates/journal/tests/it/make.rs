//! Small things that the tests are made of.

use max_team_core::id::EnvelopeId;
use max_team_core::message::{Envelope, MessageKind};
use max_team_journal::{Append, Commit, Entry, Expect, Journal, Options, WorkerInfo};
use serde_json::json;
use tempfile::TempDir;

/// A journal on disk, and the folder that goes away with it.
pub(crate) fn on_disk() -> (TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    (dir, journal)
}

pub(crate) fn append(stream: &str, text: &str) -> Append {
    Append {
        stream: stream.to_owned(),
        event: "said".into(),
        version: 1,
        payload: serde_json::to_vec(&json!({ "text": text })).unwrap(),
        actor: "user/ada".to_owned(),
        cause: Some("test".to_owned()),
    }
}

/// A commit of one fact.
pub(crate) fn fact(stream: &str, text: &str) -> Commit {
    Commit { at_ms: 1_000, actor: "test".to_owned(), appends: vec![append(stream, text)], ..Commit::default() }
}

/// A commit of one fact that expects its stream to be somewhere.
pub(crate) fn fact_at(stream: &str, at: u64, text: &str) -> Commit {
    Commit { expect: vec![(stream.to_owned(), Expect::At(at))], ..fact(stream, text) }
}

pub(crate) fn envelope_id(number: u64) -> EnvelopeId {
    format!("env_{number:032x}").parse().unwrap()
}

pub(crate) fn envelope(number: u64, to: &str) -> Envelope {
    Envelope::new(
        envelope_id(number),
        "agent/max",
        to,
        MessageKind::UserInput,
        json!({ "text": format!("letter {number}") }),
        5,
    )
}

pub(crate) fn worker(number: u64) -> WorkerInfo {
    WorkerInfo {
        id: format!("wrk_{number:032x}").parse().unwrap(),
        pid: std::process::id(),
        host: "here".to_owned(),
        started_at_ms: 1,
        what: format!("chat {number}"),
    }
}

/// The texts that facts of a stream carry.
pub(crate) fn texts(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| {
            let payload: serde_json::Value = serde_json::from_slice(entry.payload.as_ref().unwrap()).unwrap();
            payload["text"].as_str().unwrap().to_owned()
        })
        .collect()
}

pub(crate) fn ids(envelopes: &[Envelope]) -> Vec<EnvelopeId> {
    envelopes.iter().map(|envelope| envelope.id).collect()
}
