//! The audit file: one JSON line per thing that happened, written from what the journal holds.
//!
//! It is for people and log shippers. The journal stays the truth: losing this file loses nothing, so a line that
//! cannot be written is counted and said once, never an error of the work.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use max_team_core::event::{Event, Outcome};
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
}

/// Appends to one file, opened when the first line comes.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    level: AuditLevel,
    file: Mutex<Option<File>>,
}

impl Audit {
    pub(crate) fn new(options: AuditOptions) -> Self {
        Self { path: options.path, level: options.level, file: Mutex::new(None) }
    }

    pub(crate) fn record(&self, agent: &str, at_ms: i64, event: &Event) {
        let Some((level, kind, data)) = line(event) else { return };
        if level < self.level {
            return;
        }
        let text = json!({ "ts": timestamp(at_ms), "type": kind, "agent": agent, "data": data });
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
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }
}

/// What an event looks like in the file; most are not of interest there.
fn line(event: &Event) -> Option<(AuditLevel, &'static str, Value)> {
    Some(match event {
        Event::LlmEnded(ended) => match &ended.outcome {
            Outcome::Done(answer) => (
                AuditLevel::Info,
                "llm_call",
                json!({
                    "model": answer.model, "input_tokens": answer.usage.input_total(),
                    "output_tokens": answer.usage.output, "ms": ended.ms, "request_id": answer.request_id,
                }),
            ),
            Outcome::Failed { failure, detail, retry_at_ms } => {
                let level = if retry_at_ms.is_some() { AuditLevel::Warn } else { AuditLevel::Error };
                (level, "error", json!({ "failure": failure, "error": detail }))
            }
            Outcome::Cancelled { .. } | Outcome::Lost => return None,
        },
        Event::ToolIntent(intent) => (
            AuditLevel::Debug,
            "approval",
            json!({ "tool": intent.tool, "target": intent.action.target, "by": intent.approval }),
        ),
        Event::ToolDone(done) => {
            let level = if done.is_error { AuditLevel::Warn } else { AuditLevel::Info };
            (
                level,
                "tool_exec",
                json!({ "call": done.key, "success": !done.is_error, "ending": done.ending, "ms": done.ms }),
            )
        }
        Event::QuestionAnswered(answered) => {
            (AuditLevel::Info, "approval", json!({ "question": answered.question, "answer": answered.answer }))
        }
        _ => return None,
    })
}

/// RFC 3339 in UTC, by the proleptic Gregorian calendar.
pub(crate) fn timestamp(at_ms: i64) -> String {
    let (days, ms) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
    // Days are counted in 400-year cycles that begin on 1 March, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second, milli) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc_3339() {
        for (at_ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_709_497_123, "2026-11-15T02:24:57.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(at_ms), want);
        }
    }
}
