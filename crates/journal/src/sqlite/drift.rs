//! Compares the rows that follow from the log with those that are stored.
//!
//! The rows are derived again into temporary tables of the same names, by the code that derives them at every other
//! time: a temporary table hides the stored one, so nothing stored is changed. Then the two are compared.

use rusqlite::Row;

use super::db::Db;
use super::read::text;
use crate::commit::Projection;
use crate::drift::{Drift, DriftKind, DriftReport};
use crate::entry::Entry;
use crate::error::JournalError;

/// Each table: its name, what names a row, what is compared.
const TABLES: [(&str, &str, &str); 4] = [
    ("mail", "lower(hex(id))", "id, stream, seq, taken"),
    ("timer", "id", "id, due_at_ms, seq"),
    ("part", "id", "id, seq, state, native"),
    ("projection", "kind || ' ' || key", "kind, key, sort_ms, value"),
];

const HIDING: &str = "
    PRAGMA temp_store = FILE;
    BEGIN;
    CREATE TEMP TABLE mail (id BLOB PRIMARY KEY, stream INTEGER, seq INTEGER, taken INTEGER) WITHOUT ROWID;
    CREATE TEMP TABLE timer (id TEXT PRIMARY KEY, due_at_ms INTEGER, seq INTEGER) WITHOUT ROWID;
    CREATE TEMP TABLE part (id TEXT PRIMARY KEY, seq INTEGER, state INTEGER, native TEXT) WITHOUT ROWID;
    CREATE TEMP TABLE projection (kind TEXT, key TEXT, sort_ms INTEGER, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE TEMP TABLE snapshot (stream TEXT PRIMARY KEY, stream_seq INTEGER, version INTEGER, state BLOB);";

impl Db {
    /// Returns the rows that differ. It consumes the connection, because its temporary tables hide the stored ones.
    pub(super) fn drift(self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<DriftReport, JournalError> {
        self.run(|conn| conn.execute_batch(HIDING))?;
        self.rebuild(project)?;
        let mut found = DriftReport::default();
        for (table, name, columns) in TABLES {
            for (from, other, is_stored) in [("main", "temp", true), ("temp", "main", false)] {
                let sql = format!(
                    "SELECT {name} FROM (SELECT {columns} FROM {from}.{table}
                                         EXCEPT SELECT {columns} FROM {other}.{table})"
                );
                self.run(|conn| {
                    let mut statement = conn.prepare(&sql)?;
                    let mut rows = statement.query([])?;
                    while let Some(row) = rows.next()? {
                        found.find(table, named(row)?, is_stored);
                    }
                    Ok(())
                })?;
            }
        }
        self.run(|conn| conn.execute_batch("ROLLBACK"))?;
        found.rows.sort_unstable_by(|one, other| (&one.table, &one.key).cmp(&(&other.table, &other.key)));
        Ok(found)
    }

    /// The streams of which a folded state is kept, and up to which entry, of which version.
    pub(crate) fn snapshots(&self) -> Result<Vec<(String, u64, u32)>, JournalError> {
        self.run(|conn| {
            let mut statement = conn.prepare("SELECT stream, stream_seq, version FROM snapshot ORDER BY stream")?;
            let row = |row: &Row<'_>| Ok((text(row, 0)?, super::lookup::number(row, 1)?, row.get(2)?));
            statement.query_map([], row)?.collect()
        })
    }
}

fn named(row: &Row<'_>) -> rusqlite::Result<String> {
    text(row, 0)
}

impl DriftReport {
    /// A row that only one side has.
    fn find(&mut self, table: &str, key: String, is_stored: bool) {
        let (table, key) = match (table, key.split_once(' ')) {
            ("projection", Some((kind, key))) => (kind.to_owned(), key.to_owned()),
            _ => (table.to_owned(), key),
        };
        // A row that differs is found from both sides.
        if let Some(known) = self.rows.iter_mut().find(|row| row.table == table && row.key == key) {
            known.how = DriftKind::Differs;
        } else {
            let how = if is_stored { DriftKind::Extra } else { DriftKind::Missing };
            self.add(Drift { table, key, how });
        }
    }
}
