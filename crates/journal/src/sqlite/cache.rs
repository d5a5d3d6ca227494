//! A cache of what the writer has read or written since another connection last wrote.
//!
//! Other processes write to the same tables. So each transaction first asks SQLite whether another connection has
//! committed (`data_version`), and clears the cache if so; a rollback clears it, too. Connections that only read cache
//! nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use crate::entry::Head;
use crate::error::JournalError;
use crate::worker::Owner;

use super::db::Db;

/// Streams whose heads are cached; when there are more, the cache starts again.
const HEADS_MAX: usize = 4_096;
/// Resources whose owners are cached.
const OWNERS_MAX: usize = 64;

/// The cache for one state of the tables.
#[derive(Debug, Default)]
pub(super) struct WriterCache(RefCell<Option<CachedTables>>);

#[derive(Debug)]
struct CachedTables {
    /// The `data_version` of this state.
    version: i64,
    last_seq: Option<u64>,
    heads: HashMap<String, Head>,
    owners: HashMap<String, Option<Owner>>,
}

impl WriterCache {
    pub(super) fn forget(&self) {
        self.0.replace(None);
    }

    pub(super) fn last_seq(&self) -> Option<u64> {
        self.0.borrow().as_ref()?.last_seq
    }

    pub(super) fn head(&self, stream: &str) -> Option<Head> {
        self.0.borrow().as_ref()?.heads.get(stream).copied()
    }

    pub(super) fn owner(&self, resource: &str) -> Option<Option<Owner>> {
        self.0.borrow().as_ref()?.owners.get(resource).copied()
    }

    pub(super) fn learn_last_seq(&self, seq: u64) {
        self.learn(|state| state.last_seq = Some(seq));
    }

    pub(super) fn learn_head(&self, stream: &str, head: Head) {
        self.learn(|state| {
            if state.heads.len() >= HEADS_MAX {
                state.heads.clear();
            }
            match state.heads.get_mut(stream) {
                Some(known) => *known = head,
                None => drop(state.heads.insert(stream.to_owned(), head)),
            }
        });
    }

    pub(super) fn learn_heads(&self, heads: &BTreeMap<String, Head>) {
        heads.iter().for_each(|(stream, head)| self.learn_head(stream, *head));
    }

    pub(super) fn learn_owner(&self, resource: &str, owner: Option<Owner>) {
        self.learn(|state| {
            if state.owners.len() >= OWNERS_MAX {
                state.owners.clear();
            }
            state.owners.insert(resource.to_owned(), owner);
        });
    }

    fn learn(&self, learn: impl FnOnce(&mut CachedTables)) {
        if let Some(state) = self.0.borrow_mut().as_mut() {
            learn(state);
        }
    }
}

impl Db {
    /// Begins a transaction of the writer: clears the cache if another connection has committed since the last one.
    pub(super) fn recall(&self) -> Result<(), JournalError> {
        let version =
            self.run(|conn| conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get::<_, i64>(0)))?;
        let mut known = self.known.0.borrow_mut();
        if known.as_ref().is_none_or(|state| state.version != version) {
            let (heads, owners) = (HashMap::new(), HashMap::new());
            *known = Some(CachedTables { version, last_seq: None, heads, owners });
        }
        Ok(())
    }
}
