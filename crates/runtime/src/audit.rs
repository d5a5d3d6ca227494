//! The audit file: one JSON line per event, written from what the journal holds.
//!
//! Every line has `ts`, `type` (llm_call, tool_exec, msg_sent, task_update, approval, error), `agent` and `data`.
//! People and log shippers rely on it, so a file that cannot be written stops the work: at the start, or at the next
//! commit ([`AuditFailure`]). The work does not wait for the file: a thread of its own writes the queued lines
//! (`writer`), all of them before the runtime is closed.

mod lines;
mod writer;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use max_team_core::event::Event;
use max_team_core::message::Envelope;
use max_team_core::secret::redact_json;
use max_team_core::time::rfc3339;
use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::json;

use crate::handle::Origin;
use lines::Names;

pub(crate) use writer::Audit;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Every line, also the routine ones.
    Debug,
    /// Work that was completed.
    Info,
    /// Problems that were recovered from.
    Warn,
    /// What failed for good.
    Error,
}

/// The audit file, and the least level that is written.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    pub path: PathBuf,
    /// Lines below this level are left out.
    pub level: AuditLevel,
    /// The folder that the path must not leave; set if the path comes from a project's file.
    pub within: Option<PathBuf>,
}

/// Why the audit file cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the audit file `{path}` cannot be written: {detail}; make it writable, name another one in `audit.output`, or set \
     `audit.enabled: false`"
)]
pub struct AuditFailure {
    pub path: String,
    pub detail: String,
}

impl AuditOptions {
    /// Checks that the file can be written; creates it if it does not exist.
    pub fn check(&self) -> Result<(), AuditFailure> {
        Writer { options: self.clone(), file: None }.open().map(drop).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &std::io::Error) -> AuditFailure {
        AuditFailure { path: self.path.display().to_string(), detail: error.to_string() }
    }
}

#[derive(Serialize)]
struct AuditLine<'l, D> {
    ts: String,
    #[serde(rename = "type")]
    kind: &'l str,
    agent: &'l str,
    data: D,
}

/// Lines that wait to be written.
#[derive(Debug)]
struct AuditBuffer {
    level: AuditLevel,
    text: Vec<u8>,
    lines: usize,
    /// Tool names of the calls in answers that are being worked on.
    names: Names,
}

impl AuditBuffer {
    fn new(level: AuditLevel) -> Self {
        Self { level, text: Vec::new(), lines: 0, names: Names::default() }
    }

    fn event(&mut self, from: &Origin, at_ms: i64, event: &Event) {
        if let Some((level, kind, data)) = lines::line(from, event, &mut self.names, self.level) {
            self.line(level, at_ms, kind, &from.name, data);
        }
    }

    fn envelope(&mut self, envelope: &Envelope) {
        let data = json!({ "from": envelope.from, "to": envelope.to, "kind": envelope.kind, "id": envelope.id });
        self.line(AuditLevel::Debug, envelope.sent_at_ms, "msg_sent", &envelope.from, data);
    }

    fn line(&mut self, level: AuditLevel, at_ms: i64, kind: &str, agent: &str, data: impl Serialize) {
        if level < self.level {
            return;
        }
        let line = AuditLine { ts: rfc3339(at_ms), kind, agent, data };
        let Ok(line) = serde_json::to_string(&line) else { return };
        let safe = redact_json(&line).unwrap_or(line);
        self.text.extend_from_slice(safe.as_bytes());
        self.text.push(b'\n');
        self.lines += 1;
    }

    /// Takes the text and leaves the page empty.
    fn turn(&mut self) -> Vec<u8> {
        self.lines = 0;
        std::mem::take(&mut self.text)
    }
}

/// Appends to one file, opened when the first line comes.
#[derive(Debug)]
struct Writer {
    options: AuditOptions,
    file: Option<File>,
}

impl Writer {
    fn write(&mut self, text: &[u8]) -> Result<(), AuditFailure> {
        // A file that was moved or deleted meanwhile is created again.
        if self.file.as_ref().is_some_and(|file| !self.is_there(file)) {
            self.file = None;
        }
        let file = match self.file.take() {
            Some(file) => Ok(file),
            None => self.open(),
        };
        let written = file.and_then(|mut file| file.write_all(text).map(|()| file));
        self.file = Some(written.map_err(|error| self.options.failure(&error))?);
        Ok(())
    }

    /// Whether the path still names the open file.
    fn is_there(&self, file: &File) -> bool {
        let named = std::fs::symlink_metadata(&self.options.path);
        let same =
            |own: std::fs::Metadata| named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()));
        file.metadata().is_ok_and(same)
    }

    fn open(&self) -> std::io::Result<File> {
        let path = &self.options.path;
        let parent = path.parent().unwrap_or(Path::new("."));
        if let Some(root) = &self.options.within {
            let there = parent.ancestors().find(|folder| folder.exists()).unwrap_or(root);
            if !there.canonicalize()?.starts_with(root.canonicalize()?) {
                return Err(std::io::Error::other("the audit file would lie outside the project"));
            }
        }
        std::fs::create_dir_all(parent)?;
        let mut options = OpenOptions::new();
        // A link in place of the file could point at any file of the user; a pipe would block.
        options
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        let file = options.open(path)?;
        let meta = file.metadata()?;
        if meta.is_file() && meta.nlink() == 1 { Ok(file) } else { Err(std::io::Error::other("not a plain file")) }
    }
}
