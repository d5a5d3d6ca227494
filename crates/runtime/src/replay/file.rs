//! A recording: a run as lines of JSON, to be replayed or compared with another version on any machine.
//!
//! ```text
//! {"max_team_recording":1,"session":"ses_…","program":"0.1.0","redacted":2}
//! {"text":"<hash>","is":"You are Max …"}              what requests were made of
//! {"seq":7,"stream":"agent/…","at_ms":…,"actor":"…","event":"turn_started","version":1,"payload":{…}}
//! {"end":214,"kept":{"turn agt_…":"<hash>", …}}       what must follow from the entries
//! ```
//!
//! Texts that look like keys or passwords are removed; the rest is as the journal has it, byte for byte. Unknown lines and
//! members are ignored, so that a later version can add some.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::secret::{redact, redact_json, redact_value};
use max_team_journal::Entry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Fingerprint, Tape, opened};
use crate::error::RuntimeError;

/// The version of the files that this code writes, and the last that it reads.
pub const TAPE_VERSION: u32 = 1;
/// Bytes of one line.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Lines of one file.
const LINES_MAX: usize = 4 << 20;
/// The number of the first line, which says what the file is.
const HEAD_LINE: usize = 1;

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum BadTape {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin like a recording.
    #[error("it does not begin like a recording; `max-team replay RUN --record FILE` makes one")]
    Other,
    /// It was made by a later version.
    #[error("it is a recording of version {0}, and this program knows those up to {TAPE_VERSION}; use a newer one")]
    Newer(u32),
    /// A line has the wrong format.
    #[error("line {line} is no line of a recording: {detail}")]
    Line {
        /// Its number, from 1.
        line: usize,
        detail: String,
    },
    /// It is complete, but no entry names the lead.
    #[error("it ends at line {line}, and no entry says who leads")]
    NoLead {
        /// The last line, from 1.
        line: usize,
    },
    /// A line is longer than any that this program writes.
    #[error("line {line} has more than {max} bytes")]
    LongLine {
        /// Its number, from 1.
        line: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// It has more lines than the limit.
    #[error("it has more than {0} lines")]
    Long(usize),
    /// It has no end: its writer was interrupted.
    #[error("its end is missing after {0} entries; record it again")]
    Cut(usize),
}

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    max_team_recording: u32,
    session: SessionId,
    #[serde(borrow)]
    program: Cow<'a, str>,
    /// How many entries and texts had a secret removed.
    #[serde(default)]
    redacted: usize,
}

/// A line after the first; its fields say of which kind it is.
#[derive(Deserialize)]
struct RecordingLine<'a> {
    text: Option<Hash>,
    is: Option<String>,
    seq: Option<u64>,
    #[serde(default)]
    stream: String,
    #[serde(default)]
    at_ms: i64,
    #[serde(default)]
    actor: String,
    cause: Option<String>,
    #[serde(default)]
    event: String,
    #[serde(default)]
    version: u32,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    end: Option<usize>,
    kept: Option<Fingerprint>,
}

#[derive(Serialize)]
struct EntryLine<'a> {
    seq: u64,
    stream: &'a str,
    at_ms: i64,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    event: &'a str,
    version: u32,
    payload: &'a RawValue,
}

#[derive(Serialize)]
struct TextLine<'a> {
    text: Hash,
    is: &'a str,
}

#[derive(Serialize)]
struct EndLine<'a> {
    end: usize,
    kept: &'a Fingerprint,
}

/// As the text of a recording, without secrets.
impl Serialize for Tape {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::new();
        self.write(env!("CARGO_PKG_VERSION"), &mut text).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&String::from_utf8_lossy(&text))
    }
}

impl Tape {
    /// The recording without secrets, and how many texts had one.
    pub fn redacted(&self) -> Result<(Self, usize), RuntimeError> {
        let (mut tape, mut count) = (self.clone(), 0);
        for entry in &mut tape.entries {
            let parsed = entry.payload.as_deref().and_then(|payload| serde_json::from_slice(payload).ok());
            let Some(parsed): Option<serde_json::Value> = parsed else { continue };
            let safe = redact_value(&parsed);
            if safe != parsed {
                entry.payload = serde_json::to_vec(&safe).ok();
                count += 1;
            }
        }
        for text in tape.texts.values_mut() {
            let told = String::from_utf8_lossy(text);
            // Tools and settings are JSON, and must stay so.
            let safe = redact_json(&told).unwrap_or_else(|| redact(&told).into_owned()).into_bytes();
            if safe != *text {
                *text = safe;
                count += 1;
            }
        }
        let replica = tape.replica()?;
        // A player of the file has only the redacted entries, so the expected state must follow from those.
        tape.kept = Some(tape.folded(&replica)?);
        Ok((tape, count))
    }

    /// Writes the recording, without secrets; returns how many texts had one.
    pub fn write(&self, program: &str, out: &mut impl Write) -> Result<usize, WriteError> {
        let (tape, redacted) = self.redacted()?;
        let head = Head { max_team_recording: TAPE_VERSION, session: self.session, program: program.into(), redacted };
        line(out, &head)?;
        for (text, is) in &tape.texts {
            line(out, &TextLine { text: *text, is: &String::from_utf8_lossy(is) })?;
        }
        for entry in &tape.entries {
            let payload = entry.payload.as_deref().unwrap_or(b"null");
            let payload: &RawValue = serde_json::from_slice(payload).map_err(io::Error::other)?;
            let Entry { seq, at_ms, version, stream, actor, cause, event, .. } = entry;
            let (seq, at_ms, version, cause) = (*seq, *at_ms, *version, cause.as_deref());
            line(out, &EntryLine { seq, stream, at_ms, actor, cause, event, version, payload })?;
        }
        let kept = tape.kept.unwrap_or_default();
        line(out, &EndLine { end: tape.entries.len(), kept: &kept })?;
        out.flush()?;
        Ok(redacted)
    }

    /// Reads a recording.
    pub fn read(mut from: impl BufRead) -> Result<Self, BadTape> {
        let mut text = Vec::new();
        next(&mut from, HEAD_LINE, &mut text)?;
        let head: Head<'_> = serde_json::from_slice(&text).map_err(|_| BadTape::Other)?;
        if head.max_team_recording > TAPE_VERSION {
            return Err(BadTape::Newer(head.max_team_recording));
        }
        let session = head.session;
        let (mut entries, mut texts) = (Vec::new(), BTreeMap::new());
        for number in HEAD_LINE + 1..=LINES_MAX {
            if !next(&mut from, number, &mut text)? {
                return Err(BadTape::Cut(entries.len()));
            }
            let bad = |detail: String| BadTape::Line { line: number, detail };
            let line: RecordingLine<'_> = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
            if let (Some(end), Some(kept)) = (line.end, line.kept) {
                if end != entries.len() {
                    return Err(BadTape::Cut(entries.len()));
                }
                let (lead, cwd) = opened(&entries).ok_or(BadTape::NoLead { line: number })?;
                let (kept, damaged) = (Some(kept), Vec::new());
                return Ok(Self { session, lead, cwd, entries, texts, kept, damaged, recorded: true });
            }
            if let (Some(name), Some(is)) = (line.text, line.is) {
                texts.insert(name, is.into_bytes());
            } else if let (Some(seq), Some(payload)) = (line.seq, line.payload) {
                let payload = payload.get().as_bytes().to_vec();
                entries.push(Entry {
                    seq,
                    stream: line.stream,
                    stream_seq: 0,
                    at_ms: line.at_ms,
                    actor: line.actor,
                    cause: line.cause,
                    event: line.event.into(),
                    version: line.version,
                    payload_hash: Hash::of(&payload),
                    prev_hash: Hash::default(),
                    hash: Hash::default(),
                    payload: Some(payload),
                });
            }
        }
        Err(BadTape::Long(LINES_MAX))
    }
}

/// Why a recording was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It cannot be folded.
    #[error(transparent)]
    Run(#[from] RuntimeError),
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    // JSON may hold bare line ends between its tokens, never inside them.
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    out.write_all(&line)
}

/// The next line that is not empty; `false` at the end.
fn next(from: &mut impl BufRead, line: usize, text: &mut Vec<u8>) -> Result<bool, BadTape> {
    loop {
        text.clear();
        let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let read = io::Read::take(&mut *from, most).read_until(b'\n', text)?;
        if read == LINE_BYTES_MAX {
            return Err(BadTape::LongLine { line, max: LINE_BYTES_MAX });
        }
        if read == 0 || !text.trim_ascii().is_empty() {
            return Ok(read > 0);
        }
    }
}
