//! The audit file: one JSON line per thing that happened, written from what the journal holds.
//!
//! It is for people and log shippers. The journal stays the truth: losing this file loses nothing, so a line that
//! cannot be written is left out, and the next one tries again; it is never an error of the work.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use max_team_core::event::{Event, Outcome};
use max_team_core::time::rfc3339;
use rustix::fs::OFlags;
use serde_json::{Value, json};

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
}

impl Audit {
    pub(crate) fn new(options: AuditOptions) -> Self {
        Self { path: options.path, level: options.level, within: options.within, file: Mutex::new(None) }
    }

    pub(crate) fn record(&self, agent: &str, at_ms: i64, event: &Event) {
        if level(event).is_none_or(|level| level < self.level) {
            return;
        }
        let Some((kind, data)) = line(event) else { return };
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

/// How important an event is there; most are of no interest.
fn level(event: &Event) -> Option<AuditLevel> {
    Some(match event {
        Event::LlmEnded(ended) => match &ended.outcome {
            Outcome::Done(_) => AuditLevel::Info,
            Outcome::Failed { retry_at_ms: Some(_), .. } => AuditLevel::Warn,
            Outcome::Failed { .. } => AuditLevel::Error,
            Outcome::Cancelled { .. } | Outcome::Lost => return None,
        },
        Event::ToolIntent(_) => AuditLevel::Debug,
        Event::ToolDone(done) if done.is_error => AuditLevel::Warn,
        Event::ToolDone(_) | Event::QuestionAnswered(_) => AuditLevel::Info,
        _ => return None,
    })
}

/// What it looks like in the file.
fn line(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::LlmEnded(ended) => match &ended.outcome {
            Outcome::Done(answer) => (
                "llm_call",
                json!({
                    "model": answer.model, "input_tokens": answer.usage.input_total(),
                    "output_tokens": answer.usage.output, "ms": ended.ms, "request_id": answer.request_id,
                }),
            ),
            Outcome::Failed { failure, detail, .. } => ("error", json!({ "failure": failure, "error": detail })),
            Outcome::Cancelled { .. } | Outcome::Lost => return None,
        },
        Event::ToolIntent(intent) => {
            ("approval", json!({ "tool": intent.tool, "target": intent.action.target, "by": intent.approval }))
        }
        Event::ToolDone(done) => {
            ("tool_exec", json!({ "call": done.key, "success": !done.is_error, "ending": done.ending, "ms": done.ms }))
        }
        Event::QuestionAnswered(answered) => {
            ("approval", json!({ "question": answered.question, "answer": answered.answer }))
        }
        _ => return None,
    })
}
