//! What a transaction looks up: in the cache (`cache`) if no other connection has written since,
//! otherwise in the tables.

use max_team_core::hash::Hash;
use max_team_core::id::EnvelopeId;
use rusqlite::{OptionalExtension, Row, params};

use super::db::Db;
use crate::entry::Head;
use crate::error::JournalError;
use crate::outbox::PartState;
use crate::transaction::{OutboxRecord, SentMessage};
use crate::worker::Owner;

impl Db {
    pub(crate) fn last_seq(&self) -> Result<u64, JournalError> {
        if let Some(seq) = self.known.last_seq() {
            return Ok(seq);
        }
        let seq = self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM entry")?;
            statement.query_row([], |row| number(row, 0))
        })?;
        self.known.learn_last_seq(seq);
        Ok(seq)
    }

    pub(crate) fn head(&self, stream: &str) -> Result<Head, JournalError> {
        if let Some(head) = self.known.head(stream) {
            return Ok(head);
        }
        let head = self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT id, stream_seq, hash FROM stream WHERE name = ?1")?;
            statement
                .query_row([stream], |row| {
                    Ok(Head { row: row.get(0)?, stream_seq: number(row, 1)?, hash: hash(row, 2)? })
                })
                .optional()
        })?;
        let head = head.unwrap_or_default();
        self.known.learn_head(stream, head);
        Ok(head)
    }

    pub(crate) fn envelope(&self, id: EnvelopeId) -> Result<Option<SentMessage>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT stream.name, mail.taken IS NOT NULL FROM mail JOIN stream ON stream.id = mail.stream
                 WHERE mail.id = ?1",
            )?;
            let envelope = |row: &Row<'_>| Ok(SentMessage { stream: row.get(0)?, taken: row.get(1)? });
            statement.query_row([id.uuid().as_bytes()], envelope).optional()
        })
    }

    pub(crate) fn has_timer(&self, id: &str) -> Result<bool, JournalError> {
        self.run(|conn| conn.prepare_cached("SELECT 1 FROM timer WHERE id = ?1")?.exists([id]))
    }

    pub(crate) fn part_state(&self, id: &str) -> Result<Option<OutboxRecord>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT stream.name, part.state FROM part JOIN entry ON entry.seq = part.seq
                 JOIN stream ON stream.id = entry.stream WHERE part.id = ?1",
            )?;
            let sent = |row: &Row<'_>| Ok(OutboxRecord { stream: row.get(0)?, state: part_state(row, 1)? });
            statement.query_row([id], sent).optional()
        })
    }

    pub(crate) fn owner(&self, resource: &str) -> Result<Option<Owner>, JournalError> {
        if let Some(owner) = self.known.owner(resource) {
            return Ok(owner);
        }
        let owner = self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT worker, epoch FROM owner WHERE resource = ?1")?;
            let owner = |row: &Row<'_>| {
                // A worker name that does not parse belongs to no live worker.
                let worker: Option<String> = row.get(0)?;
                Ok(Owner { worker: worker.and_then(|worker| worker.parse().ok()), epoch: number(row, 1)? })
            };
            statement.query_row([resource], owner).optional()
        })?;
        self.known.learn_owner(resource, owner);
        Ok(owner)
    }

    pub(super) fn put_owner(&self, resource: &str, owner: Owner) -> Result<(), JournalError> {
        let worker = owner.worker.map(|worker| worker.to_string());
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "INSERT INTO owner (resource, worker, epoch) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET worker = excluded.worker, epoch = excluded.epoch",
            )?;
            statement.execute(params![resource, worker, stored(owner.epoch)]).map(drop)
        })?;
        self.known.learn_owner(resource, Some(owner));
        Ok(())
    }
}

/// SQLite's integers are signed; these counters never come near the limit.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A counter; a negative one, which the program never writes, reads as 0, and the entry's hash then does not match.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

/// A hash; one of another length reads as zeros, which nothing hashes to.
pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
    Ok(bytes.try_into().map(Hash).unwrap_or_default())
}

pub(super) fn part_state(row: &Row<'_>, column: usize) -> rusqlite::Result<PartState> {
    let number: i64 = row.get(column)?;
    PartState::of(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}
