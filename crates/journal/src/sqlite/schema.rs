//! Compares the tables, indexes, triggers and views of a database with those that the migrations make.
//!
//! SQLite's own checks do not know what should be there: a trigger can change rows behind every commit, and without a
//! unique index two entries can take the same place.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::db::{Db, all_migrations};
use crate::chain::{FaultDetail, SchemaChange};
use crate::error::JournalError;

/// The SQL of each object, by its kind and name. `ANALYZE` adds tables of statistics, which change nothing.
const OBJECTS: &str = "SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat_'";

type Objects = BTreeMap<(String, String), String>;

impl Db {
    /// The objects that were added, removed or changed.
    pub(crate) fn schema_check(&self) -> Result<Vec<FaultDetail>, JournalError> {
        let found = self.run(objects)?;
        let expected = self.run(|_| {
            let fresh = Connection::open_in_memory()?;
            fresh.execute_batch(&all_migrations())?;
            objects(&fresh)
        })?;
        let detail = |(object, name): &(String, String), change| FaultDetail::Schema {
            object: object.clone(),
            name: name.clone(),
            change,
        };
        let unexpected = found.iter().filter_map(|(key, sql)| match expected.get(key) {
            None => Some(detail(key, SchemaChange::Added)),
            Some(known) => (known != sql).then(|| detail(key, SchemaChange::Changed)),
        });
        let missing = expected.keys().filter(|key| !found.contains_key(*key));
        Ok(unexpected.chain(missing.map(|key| detail(key, SchemaChange::Missing))).collect())
    }
}

fn objects(conn: &Connection) -> rusqlite::Result<Objects> {
    let mut statement = conn.prepare(OBJECTS)?;
    statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.collect()
}
