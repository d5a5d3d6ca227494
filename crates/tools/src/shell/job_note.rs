//! A command in the background as other processes see it: a note beside its output, in its agent's store.
//!
//! A note names the process that wrote it. What a killed one left says nothing about now, and is not believed.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::output_store::OutputStore;

/// How a note's name ends.
const SUFFIX: &str = ".job.json";

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobNote {
    /// What its agent calls it.
    pub id: String,
    /// What it runs, and what for.
    pub command: String,
    /// Since when, in milliseconds.
    pub since_ms: i64,
    /// How it ended, if it has.
    pub over: Option<String>,
    /// The process that looks after it.
    pub pid: u32,
}

impl JobNote {
    /// One that begins now, and belongs to this process.
    pub(super) fn begun(id: String, command: String) -> Self {
        let since_ms = Timestamp::now().as_millisecond();
        Self { id, command, since_ms, over: None, pid: std::process::id() }
    }

    /// Writes it down. What cannot be written is not seen from outside: that is no reason to run nothing.
    pub(super) fn note(&self, store: &OutputStore) -> Option<PathBuf> {
        let text = serde_json::to_string(self).ok()?;
        store.put(&format!("{}{SUFFIX}", self.id), &text).ok()
    }

    /// Those that a living process looks after, in one store, in the order they began.
    pub fn of(store: &OutputStore, pid: u32) -> Vec<Self> {
        let texts = store.texts(SUFFIX).into_iter();
        let mut jobs: Vec<Self> = texts.filter_map(|text| serde_json::from_str(&text).ok()).collect();
        jobs.retain(|job| job.pid == pid);
        jobs.sort_by_key(|job| job.since_ms);
        jobs
    }
}
