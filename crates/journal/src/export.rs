//! The log as lines of JSON, for people and other programs.
//!
//! Every column is there, so that the chain can be checked without us. A payload is written as it is stored; one that
//! was erased is `null`.

use std::io::Write;
use std::ops::ControlFlow;

use max_team_core::hash::Hash;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Journal;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::plan::encode;

#[derive(Serialize)]
struct Line<'a> {
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
    /// The entry as one line of JSON, without the line's end.
    pub fn to_line(&self) -> Result<Vec<u8>, JournalError> {
        let payload = match self.payload.as_deref() {
            None => Payload::Erased,
            Some(bytes) => match serde_json::from_slice(bytes) {
                Ok(json) => Payload::Json(json),
                Err(_) => Payload::Text(String::from_utf8_lossy(bytes).into_owned()),
            },
        };
        let mut line = encode(
            "an entry",
            &Line {
                seq: self.seq,
                stream: &self.stream,
                stream_seq: self.stream_seq,
                at: timestamp(self.at_ms),
                actor: &self.actor,
                cause: self.cause.as_deref(),
                event: &self.event,
                version: self.version,
                payload,
                payload_hash: self.payload_hash,
                prev_hash: self.prev_hash,
                hash: self.hash,
            },
        )?;
        // JSON may hold bare line ends between its tokens, never inside them.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        Ok(line)
    }
}

impl Journal {
    /// Walks over the log from an entry on, one at a time.
    pub fn export(&self, from_seq: u64, mut each: impl FnMut(&Entry)) -> Result<(), JournalError> {
        self.scan(from_seq.saturating_sub(1), &mut |entry| {
            each(&entry);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Writes the log from an entry on as lines of JSON; returns how many.
    pub fn export_lines(&self, from_seq: u64, out: &mut dyn Write) -> Result<u64, JournalError> {
        let mut lines = 0;
        self.scan(from_seq.saturating_sub(1), &mut |entry| {
            let mut line = entry.to_line()?;
            line.push(b'\n');
            out.write_all(&line)
                .map_err(|error| JournalError::Io { path: "the export".into(), detail: error.to_string() })?;
            lines += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(lines)
    }
}

/// RFC 3339, in UTC, to the millisecond.
fn timestamp(at_ms: i64) -> String {
    let (days, ms) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
    // Days since 0000-03-01, in eras of 400 years: the leap day is then the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ];
        for (at_ms, text) in known {
            assert_eq!(timestamp(at_ms), text);
        }
    }
}
