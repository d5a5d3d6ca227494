//! Rows that are not what the log says they are.

use crate::Journal;
use crate::commit::Projection;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::limits::DRIFT_ROWS_MAX;
use crate::read::Snapshot;
use crate::{Engine, sqlite};

/// A row that does not follow from the log as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Its table: `mail`, `timer`, `part`, `snapshot`, or a caller's own.
    pub table: String,
    pub key: String,
    /// What is wrong with it.
    pub how: DriftKind,
}

/// How a stored row differs from the one that follows from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftKind {
    /// It is not there.
    Missing,
    /// Nothing in the log accounts for it.
    Extra,
    /// It says something else.
    Differs,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriftReport {
    /// The rows, by table and key.
    pub rows: Vec<Drift>,
    /// Rows beyond those listed.
    pub more: u64,
}

impl DriftReport {
    /// Whether every row is as the log says.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.more == 0
    }

    /// Lists a row, as long as there is room in the list.
    pub(crate) fn add(&mut self, row: Drift) {
        if self.rows.len() < DRIFT_ROWS_MAX {
            self.rows.push(row);
        } else {
            self.more += 1;
        }
    }

    /// How many differ.
    pub fn count(&self) -> u64 {
        self.rows.len() as u64 + self.more
    }
}

impl Journal {
    /// Derives all rows from the log once more and compares; changes nothing. `project` says which rows of the caller's
    /// follow from an entry; `refold` folds a stream from its beginning up to an entry, for a kept state of that version,
    /// and returns it as it would be kept: `None`, if it would be passed over.
    pub fn drift(
        &self,
        project: impl Fn(&Entry) -> Vec<Projection>,
        refold: impl Fn(&str, u64, u32) -> Option<Vec<u8>>,
    ) -> Result<DriftReport, JournalError> {
        // In memory there is nothing that could have been damaged behind our back.
        let Engine::Sqlite(sqlite) = &self.engine else { return Ok(DriftReport::default()) };
        let mut found = sqlite.drift(project)?;
        for (stream, stream_seq, version) in sqlite.read(sqlite::Db::snapshots)? {
            let kept = sqlite.read(|db| db.snapshot(&stream))?;
            let same =
                |kept: &Snapshot| refold(&stream, stream_seq, version).is_none_or(|state| is_same(&state, &kept.state));
            if kept.as_ref().is_some_and(|kept| kept.stream_seq == stream_seq && !same(kept)) {
                found.add(Drift { table: "snapshot".to_owned(), key: stream, how: DriftKind::Differs });
            }
        }
        Ok(found)
    }
}

/// Whether two states are equal as JSON, regardless of the order of their fields.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let read = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    one == other || read(one).is_some_and(|one| read(other).is_some_and(|other| one == other))
}
