//! Stores the rows of a resolved commit, inside the transaction in which it was resolved.
//!
//! Nothing here decides: no expectation is checked and nothing is skipped, except bytes that are stored already.

use std::collections::BTreeMap;

use max_team_core::hash::Hash;
use max_team_core::limits::INLINE_BYTES_MAX;
use rusqlite::{Connection, params};

use super::db::{Db, problem};
use super::lookup::{hash, number, stored};
use crate::commit::Projection;
use crate::entry::{Entry, Head};
use crate::erase::Erase;
use crate::error::JournalError;
use crate::seal::Seal;
use crate::system_events::{self, RowChange, SystemEvent};
use crate::transaction::{TransactionReader, Writes, resolve_own};

impl Db {
    pub(super) fn write(&self, writes: Writes) -> Result<(), JournalError> {
        let last = writes.entries.last().map(|entry| entry.seq);
        let heads = self.run(|conn| write(conn, writes))?;
        self.known.learn_heads(&heads);
        last.into_iter().for_each(|seq| self.known.learn_last_seq(seq));
        Ok(())
    }

    /// Seals what no seal covers yet, if that is more than the last seal itself.
    pub(super) fn seal(&self, at_ms: i64) -> Result<(), JournalError> {
        let head = self.head(system_events::SEAL)?;
        let last = self.read(system_events::SEAL, head.stream_seq.saturating_sub(1), 1)?.pop();
        let before: Option<Seal> = match &last {
            Some(entry) => Some(system_events::parse(entry, entry.payload.as_deref().unwrap_or_default())?),
            None => None,
        };
        if last.map_or(0, |entry| entry.seq) == self.last_seq()? {
            return Ok(());
        }
        let mut seal = Seal::after(before.as_ref());
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT seq, hash FROM entry WHERE seq > ?1 ORDER BY seq")?;
            let mut rows = statement.query([stored(seal.to_seq)])?;
            while let Some(row) = rows.next()? {
                seal.add(number(row, 0)?, &hash(row, 1)?);
            }
            Ok(())
        })?;
        self.write(resolve_own(seal.append()?, at_ms, TransactionReader::Sqlite(self))?)
    }

    /// Erases payloads and says in how many entries. It looks at every entry once: an index over hashes would cost
    /// every append for what is done a few times a year.
    pub(super) fn erase(&self, erase: &Erase) -> Result<u64, JournalError> {
        self.write(resolve_own(erase.append()?, erase.at_ms, TransactionReader::Sqlite(self))?)?;
        self.run(|conn| {
            conn.execute_batch("CREATE TEMP TABLE doomed (hash BLOB PRIMARY KEY) STRICT, WITHOUT ROWID")?;
            let mut statement = conn.prepare("INSERT OR IGNORE INTO doomed (hash) VALUES (?1)")?;
            for hash in &erase.payloads {
                statement.execute([&hash.0])?;
            }
            drop(statement);
            let erased = conn.query_row(
                "SELECT count(*) FROM entry WHERE payload_hash IN (SELECT hash FROM doomed)
                 AND stream NOT IN (SELECT id FROM stream WHERE name IN (?1, ?2))
                 AND (payload IS NOT NULL OR payload_hash IN (SELECT hash FROM blob))",
                [system_events::SEAL, system_events::ERASED],
                |row| number(row, 0),
            )?;
            conn.execute(
                "UPDATE entry SET payload = NULL WHERE payload IS NOT NULL
                 AND payload_hash IN (SELECT hash FROM doomed)
                 AND stream NOT IN (SELECT id FROM stream WHERE name IN (?1, ?2))",
                [system_events::SEAL, system_events::ERASED],
            )?;
            conn.execute("DELETE FROM blob WHERE hash IN (SELECT hash FROM doomed)", [])?;
            unlist(conn)?;
            conn.execute_batch("DROP TABLE doomed")?;
            erase.rows.iter().try_for_each(|row| change(conn, RowChange::Projection(row.clone())))?;
            // Where pages were split or joined, copies of rows remain that no deletion overwrites. So all rows are
            // deleted and inserted again: a page without rows is overwritten as a whole.
            conn.execute_batch(
                "CREATE TEMP TABLE kept AS SELECT * FROM projection; DELETE FROM projection;
                 INSERT INTO projection SELECT * FROM kept ORDER BY kind, key; DROP TABLE kept;",
            )?;
            Ok(erased)
        })
    }

    /// Drops the rows that follow from the log and derives them again.
    pub(super) fn rebuild(&self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<(), JournalError> {
        self.run(|conn| {
            conn.execute_batch(
                "DELETE FROM mail; DELETE FROM timer; DELETE FROM part; DELETE FROM projection; DELETE FROM snapshot;",
            )
        })?;
        self.scan(0, &mut |entry| {
            let mut rows = Vec::new();
            if let Some(own) = SystemEvent::read(&entry)? {
                own.rows(entry.seq, &mut rows);
            }
            rows.extend(project(&entry).into_iter().map(RowChange::Projection));
            rows.into_iter()
                .try_for_each(|row| change(&self.conn, row))
                .map_err(|error| problem(&self.path, &error))?;
            Ok(std::ops::ControlFlow::Continue(()))
        })
    }
}

/// Removes the journal's own rows that were derived from erased entries: a rebuild would not make them.
fn unlist(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "CREATE TEMP TABLE gone AS SELECT seq, stream FROM entry
             WHERE payload IS NULL AND payload_hash IN (SELECT hash FROM doomed);
         DELETE FROM mail WHERE seq IN (SELECT seq FROM gone);
         DELETE FROM timer WHERE seq IN (SELECT seq FROM gone);
         DELETE FROM part WHERE seq IN (SELECT seq FROM gone);
         DELETE FROM snapshot WHERE stream IN (SELECT name FROM stream WHERE id IN (SELECT stream FROM gone));
         DROP TABLE gone;",
    )
}

/// Stores the rows of a resolved commit; returns the new heads of the streams.
fn write(conn: &Connection, writes: Writes) -> rusqlite::Result<BTreeMap<String, Head>> {
    let mut heads = writes.heads;
    for (stream, head) in &mut heads {
        put_head(conn, stream, head)?;
    }
    put_entries(conn, &writes.entries, &heads)?;
    for (hash, bytes) in &writes.blobs {
        put_blob(conn, hash, bytes)?;
    }
    writes.rows.into_iter().try_for_each(|row| change(conn, row))?;
    Ok(heads)
}

fn put_head(conn: &Connection, stream: &str, head: &mut Head) -> rusqlite::Result<()> {
    if head.row == 0 {
        let mut insert = conn.prepare_cached("INSERT INTO stream (name, stream_seq, hash) VALUES (?1, ?2, ?3)")?;
        head.row = insert.insert(params![stream, stored(head.stream_seq), &head.hash.0])?;
        return Ok(());
    }
    let mut update = conn.prepare_cached("UPDATE stream SET stream_seq = ?2, hash = ?3 WHERE id = ?1")?;
    update.execute(params![head.row, stored(head.stream_seq), &head.hash.0]).map(drop)
}

fn put_entries(conn: &Connection, entries: &[Entry], heads: &BTreeMap<String, Head>) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO entry (seq, stream, stream_seq, at_ms, version, event, actor, cause,
                            payload_hash, prev_hash, hash, payload)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for entry in entries {
        let payload = entry.payload.as_deref().unwrap_or_default();
        let is_inline = payload.len() <= INLINE_BYTES_MAX;
        if !is_inline {
            put_blob(conn, &entry.payload_hash, payload)?;
        }
        insert.execute(params![
            stored(entry.seq),
            heads.get(&entry.stream).map_or(0, |head| head.row),
            stored(entry.stream_seq),
            entry.at_ms,
            entry.version,
            entry.event,
            entry.actor,
            entry.cause,
            &entry.payload_hash.0,
            &entry.prev_hash.0,
            &entry.hash.0,
            is_inline.then_some(payload),
        ])?;
    }
    Ok(())
}

fn put_blob(conn: &Connection, hash: &Hash, bytes: &[u8]) -> rusqlite::Result<()> {
    let mut insert = conn.prepare_cached("INSERT INTO blob (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    insert.execute(params![&hash.0, bytes]).map(drop)
}

/// Changes one row. The mailbox of a message and the address of a part follow from the stream of their entry.
fn change(conn: &Connection, row: RowChange) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| conn.prepare_cached(sql)?.execute(values).map(drop);
    match row {
        RowChange::Mail { id, seq } => run(
            "INSERT INTO mail (id, stream, seq) SELECT ?1, stream, seq FROM entry WHERE seq = ?2",
            &[id.uuid().as_bytes(), &stored(seq)],
        ),
        RowChange::Taken { id, seq } => {
            run("UPDATE mail SET taken = ?2 WHERE id = ?1", &[id.uuid().as_bytes(), &stored(seq)])
        }
        RowChange::Timer { id, due_at_ms, seq } => run(
            "INSERT INTO timer (id, due_at_ms, seq) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET due_at_ms = excluded.due_at_ms, seq = excluded.seq",
            &[&id, &due_at_ms, &stored(seq)],
        ),
        RowChange::NoTimer { id } => run("DELETE FROM timer WHERE id = ?1", &[&id]),
        RowChange::Part { id, seq } => {
            run("INSERT INTO part (id, seq, state) VALUES (?1, ?2, 0)", &[&id, &stored(seq)])
        }
        RowChange::PartMoved { id, state, native } => {
            run("UPDATE part SET state = ?2, native = ?3 WHERE id = ?1", &[&id, &state.number(), &native])
        }
        RowChange::Projection(Projection::Put { table, key, value, sort_ms }) => run(
            "INSERT INTO projection (kind, key, sort_ms, value) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET sort_ms = excluded.sort_ms, value = excluded.value",
            &[&table, &key, &sort_ms, &value],
        ),
        RowChange::Projection(Projection::Raise { table, key, value }) => run(
            "INSERT INTO projection (kind, key, sort_ms, value) VALUES (?1, ?2, 0, ?3)
             ON CONFLICT DO UPDATE SET sort_ms = excluded.sort_ms, value = excluded.value
             WHERE excluded.value > projection.value",
            &[&table, &key, &value],
        ),
        RowChange::Projection(Projection::Delete { table, key }) => {
            run("DELETE FROM projection WHERE kind = ?1 AND key = ?2", &[&table, &key])
        }
        RowChange::Projection(Projection::Snapshot { stream, stream_seq, version, state }) => run(
            "INSERT INTO snapshot (stream, stream_seq, version, state) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET stream_seq = excluded.stream_seq, version = excluded.version,
                                       state = excluded.state",
            &[&stream, &stored(stream_seq), &version, &state],
        ),
    }
}
