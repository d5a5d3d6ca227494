//! The audit file: one JSON line per thing that happened, written from what the journal holds.
//!
//! Every line has `ts`, `type` (llm_call, tool_exec, msg_sent, task_update, approval, error), `agent` and `data`.
//! It is for people and log shippers. The journal stays the truth: losing this file loses nothing, so a line that
//! cannot be written is left out, and the next one tries again; it is never an error of the work.

mod lines;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use max_team_core::event::Event;
use max_team_core::message::Envelope;
use max_team_core::time::rfc3339;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::handle::Origin;
use lines::Names;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Everything.
    Debug,
    /// What was done.
    Info,
    /// What went wrong and was mended.
    Warn,
    /// What failed.
    Error,
}

/// Where the lines go, and which.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The file.
    pub path: PathBuf,
    /// The least important kind of line.
    pub level: AuditLevel,
    /// The folder that it must not lead out of, where the path came with a project.
    pub within: Option<PathBuf>,
}

/// Appends to one file, opened when the first line comes.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    level: AuditLevel,
    within: Option<PathBuf>,
    file: Mutex<Option<File>>,
    /// What the calls of answers that are being worked on are called.
    names: Mutex<Names>,
}

impl Audit {
    pub(crate) fn new(options: AuditOptions) -> Self {
        let AuditOptions { path, level, within } = options;
        Self { path, level, within, file: Mutex::new(None), names: Mutex::default() }
    }

    /// Something happened.
    pub(crate) fn record(&self, from: &Origin, at_ms: i64, event: &Event) {
        let line = {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            lines::line(from, event, &mut names)
        };
        if let Some((level, kind, data)) = line {
            self.write(level, at_ms, kind, &from.name, &data);
        }
    }

    /// A letter was sent.
    pub(crate) fn letter(&self, letter: &Envelope) {
        let data = json!({ "from": letter.from, "to": letter.to, "kind": letter.kind, "id": letter.id });
        self.write(AuditLevel::Debug, letter.sent_at_ms, "msg_sent", &letter.from, &data);
    }

    fn write(&self, level: AuditLevel, at_ms: i64, kind: &str, agent: &str, data: &Value) {
        if level < self.level {
            return;
        }
        let text = json!({ "ts": rfc3339(at_ms), "type": kind, "agent": agent, "data": data });
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = self.open().ok();
        }
        if let Some(file) = slot.as_mut()
            && file.write_all(format!("{text}\n").as_bytes()).is_err()
        {
            // Perhaps it was rotated away or the disk is full: the next line tries again.
            *slot = None;
        }
    }

    fn open(&self) -> std::io::Result<File> {
        let parent = self.path.parent().unwrap_or(Path::new("."));
        if let Some(root) = &self.within {
            let there = parent.ancestors().find(|folder| folder.exists()).unwrap_or(root);
            if !there.canonicalize()?.starts_with(root.canonicalize()?) {
                return Err(std::io::Error::other("the audit file would lie outside the project"));
            }
        }
        std::fs::create_dir_all(parent)?;
        let mut options = OpenOptions::new();
        // A link in place of the file could point at anything of the user's.
        options.create(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&self.path)?;
        let meta = file.metadata()?;
        if meta.is_file() && meta.nlink() == 1 { Ok(file) } else { Err(std::io::Error::other("not a plain file")) }
    }
}
