//! Reading, on a connection of its own: readers and the writer do not wait for each other.
//!
//! Reads see only what is committed. A row that was tampered with is returned as it is; `verify` detects it.

use std::borrow::Cow;
use std::ops::ControlFlow;

use max_team_core::hash::Hash;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};

use super::db::{Db, problem};
use super::lookup::{hash, number, part_state, stored};
use crate::entry::{Entry, Head};
use crate::error::JournalError;
use crate::limits::CHECK_LINES_MAX;
use crate::outbox::{OutboxPart, PartState};
use crate::read::{Cursor, ListedRow, Snapshot};
use crate::system_events;
use crate::timer::Timer;

/// An entry's columns; what follows says which entries.
macro_rules! select_entries {
    ($rest:literal) => {
        concat!(
            "SELECT entry.seq, stream.name, entry.stream_seq, entry.at_ms, entry.version, entry.event, entry.actor,
                    entry.cause, entry.payload_hash, entry.prev_hash, entry.hash,
                    coalesce(entry.payload, (SELECT bytes FROM blob WHERE blob.hash = entry.payload_hash))",
            $rest
        )
    };
}

impl Db {
    pub(crate) fn read(&self, stream: &str, after: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(select_entries!(
                " FROM stream JOIN entry ON entry.stream = stream.id
                  WHERE stream.name = ?1 AND entry.stream_seq > ?2 ORDER BY entry.stream_seq LIMIT ?3"
            ))?;
            statement.query_map(params![stream, stored(after), bound(limit)], entry)?.collect()
        })
    }

    pub(crate) fn read_all(&self, after: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        let mut entries = Vec::new();
        self.scan_some(after, limit, &mut |entry| {
            entries.push(entry);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(entries)
    }

    pub(crate) fn read_event(&self, event: &str, after: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(select_entries!(
                " FROM entry JOIN stream ON stream.id = entry.stream
                  WHERE entry.event = ?1 AND entry.seq > ?2 ORDER BY entry.seq LIMIT ?3"
            ))?;
            statement.query_map(params![event, stored(after), bound(limit)], entry)?.collect()
        })
    }

    /// Walks over the log one entry at a time.
    pub(crate) fn scan(
        &self,
        after: u64,
        each: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        self.scan_some(after, usize::MAX, each)
    }

    pub(super) fn scan_some(
        &self,
        after: u64,
        limit: usize,
        each: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        let failed = |error: rusqlite::Error| problem(&self.path, &error);
        let mut statement = self
            .conn
            .prepare_cached(select_entries!(
                " FROM entry LEFT JOIN stream ON stream.id = entry.stream
                  WHERE entry.seq > ?1 ORDER BY entry.seq LIMIT ?2"
            ))
            .map_err(failed)?;
        let mut rows = statement.query([stored(after), bound(limit)]).map_err(failed)?;
        let mut last = after;
        while let Some(row) = rows.next().map_err(|error| behind(last, failed(error)))? {
            let entry = entry(row).map_err(|error| behind(last, unfit(failed(error))))?;
            last = entry.seq;
            if each(entry)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Runs several reads over one state of the database.
    pub(crate) fn at_once<T>(&self, read: impl FnOnce(&Self) -> Result<T, JournalError>) -> Result<T, JournalError> {
        self.run(|conn| conn.execute_batch("BEGIN"))?;
        let result = read(self);
        // Nothing was written, and after a damaged page `COMMIT` would fail.
        self.run(|conn| conn.execute_batch("ROLLBACK"))?;
        result
    }

    pub(crate) fn heads(&self) -> Result<Vec<(String, Head)>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT name, id, stream_seq, hash FROM stream")?;
            let head = |row: &Row<'_>| {
                Ok((text(row, 0)?, Head { row: row.get(1)?, stream_seq: number(row, 2)?, hash: hash(row, 3)? }))
            };
            statement.query_map([], head)?.collect()
        })
    }

    /// Every entry's stream and the hash of its payload, without the payload.
    pub(crate) fn hashes(&self, each: &mut dyn FnMut(u64, &str, Hash)) -> Result<(), JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare(
                "SELECT entry.seq, stream.name, entry.payload_hash FROM entry JOIN stream ON stream.id = entry.stream",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                each(number(row, 0)?, row.get_ref(1)?.as_str()?, hash(row, 2)?);
            }
            Ok(())
        })
    }

    pub(crate) fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT bytes FROM blob WHERE hash = ?1")?;
            statement.query_row([&hash.0], |row| row.get(0)).optional()
        })
    }

    pub(crate) fn snapshot(&self, stream: &str) -> Result<Option<Snapshot>, JournalError> {
        self.run(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT stream_seq, version, state FROM snapshot WHERE stream = ?1")?;
            let snapshot =
                |row: &Row<'_>| Ok(Snapshot { stream_seq: number(row, 0)?, version: row.get(1)?, state: row.get(2)? });
            statement.query_row([stream], snapshot).optional()
        })
    }

    pub(crate) fn pending_mail(&self, address: &str) -> Result<Vec<Entry>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(select_entries!(
                " FROM stream JOIN mail ON mail.stream = stream.id AND mail.taken IS NULL
                  JOIN entry ON entry.seq = mail.seq WHERE stream.name = ?1 ORDER BY mail.seq"
            ))?;
            statement.query_map([system_events::mail_stream(address)], entry)?.collect()
        })
    }

    pub(crate) fn mailboxes(&self) -> Result<Vec<String>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT DISTINCT stream.name FROM mail JOIN stream ON stream.id = mail.stream
                 WHERE mail.taken IS NULL ORDER BY stream.name",
            )?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    pub(crate) fn count_mail(&self, address: &str) -> Result<usize, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT count(*) FROM stream JOIN mail ON mail.stream = stream.id AND mail.taken IS NULL
                 WHERE stream.name = ?1",
            )?;
            let count: i64 = statement.query_row([system_events::mail_stream(address)], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or_default())
        })
    }

    pub(crate) fn get(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT value FROM projection WHERE kind = ?1 AND key = ?2")?;
            statement.query_row([table, key], |row| row.get(0)).optional()
        })
    }

    pub(crate) fn list(
        &self,
        table: &str,
        limit: usize,
        after: Option<&Cursor>,
    ) -> Result<Vec<ListedRow>, JournalError> {
        let item = |row: &Row<'_>| Ok(ListedRow { key: row.get(0)?, sort_ms: row.get(1)?, value: row.get(2)? });
        self.run(|conn| match after {
            None => conn
                .prepare_cached(
                    "SELECT key, sort_ms, value FROM projection WHERE kind = ?1
                     ORDER BY sort_ms DESC, key DESC LIMIT ?2",
                )?
                .query_map(params![table, bound(limit)], item)?
                .collect(),
            Some(after) => conn
                .prepare_cached(
                    "SELECT key, sort_ms, value FROM projection WHERE kind = ?1 AND (sort_ms, key) < (?3, ?4)
                     ORDER BY sort_ms DESC, key DESC LIMIT ?2",
                )?
                .query_map(params![table, bound(limit), after.sort_ms, after.key], item)?
                .collect(),
        })
    }

    /// Timers that are due in the range, soonest first.
    pub(crate) fn timers(&self, after_ms: i64, upto_ms: i64, limit: usize) -> Result<Vec<Timer>, JournalError> {
        let entries: Vec<Entry> = self.run(|conn| {
            let mut statement = conn.prepare_cached(select_entries!(
                " FROM timer JOIN entry ON entry.seq = timer.seq JOIN stream ON stream.id = entry.stream
                  WHERE timer.due_at_ms > ?1 AND timer.due_at_ms <= ?2 ORDER BY timer.due_at_ms, timer.id LIMIT ?3"
            ))?;
            statement.query_map([after_ms, upto_ms, bound(limit)], entry)?.collect()
        })?;
        entries.iter().filter_map(|entry| Timer::of(entry).transpose()).collect()
    }

    pub(crate) fn outbox(&self, state: PartState, to: &str, limit: usize) -> Result<Vec<OutboxPart>, JournalError> {
        let parts: Vec<(Entry, PartState, Option<String>)> = self.run(|conn| {
            let mut statement = conn.prepare_cached(select_entries!(
                ", part.state, part.native FROM part JOIN entry ON entry.seq = part.seq
                   JOIN stream ON stream.id = entry.stream WHERE part.state = ?1
                   AND substr(stream.name, 1, length(?3)) = ?3 ORDER BY part.seq LIMIT ?2"
            ))?;
            let part = |row: &Row<'_>| Ok((entry(row)?, part_state(row, 12)?, row.get(13)?));
            statement.query_map((state.number(), bound(limit), system_events::outbox_stream(to)), part)?.collect()
        })?;
        parts
            .into_iter()
            .filter_map(|(entry, state, native)| OutboxPart::of(&entry, state, native).transpose())
            .collect()
    }

    /// SQLite's own check of the file; an empty list is a healthy database.
    pub(crate) fn quick_check(&self) -> Result<Vec<String>, JournalError> {
        self.check("quick_check")
    }

    /// Like `quick_check`, but also compares every index with its table.
    pub(crate) fn whole_check(&self) -> Result<Vec<String>, JournalError> {
        self.check("integrity_check")
    }

    fn check(&self, pragma: &str) -> Result<Vec<String>, JournalError> {
        let lines: Vec<String> = self.run(|conn| {
            let mut statement = conn.prepare(&format!("PRAGMA {pragma}({CHECK_LINES_MAX})"))?;
            statement.query_map([], |row| row.get(0))?.collect()
        })?;
        // SQLite returns several findings as one text, below a line that names the database.
        let lines = lines.iter().flat_map(|text| text.lines());
        let told = lines.filter(|line| *line != "ok" && !line.starts_with("*** in database"));
        Ok(told.take(CHECK_LINES_MAX).map(str::to_owned).collect())
    }

    /// The hashes of blobs whose bytes do not match them.
    pub(crate) fn false_blobs(&self) -> Result<Vec<Hash>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare("SELECT hash, bytes FROM blob")?;
            let mut rows = statement.query([])?;
            let mut wrong = Vec::new();
            while let Some(row) = rows.next()? {
                let name = hash(row, 0)?;
                if row.get_ref(1)?.as_blob().map_or(true, |bytes| Hash::of(bytes) != name) {
                    wrong.push(name);
                }
            }
            Ok(wrong)
        })
    }
}

/// A column whose type its table does not allow is damage: the program never writes such a value.
fn unfit(error: JournalError) -> JournalError {
    match error {
        JournalError::Io { path, detail } => JournalError::Corrupt { path, detail },
        error => error,
    }
}

/// Adds to the error of a damaged file how far the log could be read.
fn behind(seq: u64, error: JournalError) -> JournalError {
    match error {
        JournalError::Corrupt { path, detail } => {
            let detail = match seq {
                0 => format!("no entry can be read ({detail})"),
                _ => format!("nothing behind entry {seq} can be read ({detail})"),
            };
            JournalError::Corrupt { path, detail }
        }
        error => error,
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        seq: number(row, 0)?,
        stream: text(row, 1)?,
        stream_seq: number(row, 2)?,
        at_ms: row.get(3)?,
        version: u32::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
        event: Cow::Owned(text(row, 5)?),
        actor: text(row, 6)?,
        cause: match row.get_ref(7)? {
            ValueRef::Null => None,
            _ => Some(text(row, 7)?),
        },
        payload_hash: hash(row, 8)?,
        prev_hash: hash(row, 9)?,
        hash: hash(row, 10)?,
        payload: row.get(11)?,
    })
}

/// A text; invalid UTF-8 is replaced, and `NULL` (an entry whose stream row is missing) reads as empty.
pub(super) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
