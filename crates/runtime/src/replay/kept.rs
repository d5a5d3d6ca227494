//! The derived states and rows of a run, as hashes by name.
//!
//! Two of them are equal exactly if every turn, plan, task, message and sum is, byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use max_team_core::hash::Hash;
use max_team_journal::{Journal, Projection};
use serde::{Deserialize, Serialize};

use super::Tape;
use crate::error::RuntimeError;
use crate::maintenance::Storage;
use crate::read_model::{Cast, fold_agent, fold_plan};
use crate::rows::{self, project_entry};
use crate::session;

/// Hashes of the derived states and rows of a run, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(BTreeMap<String, Hash>);

impl Fingerprint {
    /// The derived states and rows of a run in a journal.
    pub(super) fn of(journal: &Journal, tape: &Tape) -> Result<Self, RuntimeError> {
        let (mut kept, cast) = (Self::default(), Cast::of(journal, tape.session)?);
        for agent in &cast.agents {
            let (turn, _) = fold_agent(journal, *agent)?;
            kept.put("turn", &agent.to_string(), &turn);
            kept.put("ledger", &agent.to_string(), turn.ledger());
        }
        for plan in &cast.plans {
            kept.put("plan", &plan.to_string(), &fold_plan(journal, *plan)?.0);
        }
        for address in cast.addresses() {
            kept.put("mail", &address, &journal.pending_mail(&address)?);
        }
        for (table, key) in touched(tape) {
            let row = journal.get(&table, &key)?;
            let kind = if table.starts_with("task") { "task" } else { "row" };
            kept.put(kind, &format!("{table} {key}"), &row);
        }
        Ok(kept)
    }

    fn put(&mut self, kind: &str, name: &str, value: &impl Serialize) {
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        self.0.insert(format!("{kind} {name}"), Hash::of(bytes));
    }

    /// How many there are of a kind: `turn`, `ledger`, `plan`, `mail`, `task`, `row`.
    pub fn count(&self, kind: &str) -> usize {
        self.0.keys().filter(|name| name.split(' ').next() == Some(kind)).count()
    }

    /// The names of those that differ.
    pub fn differing<'k>(&'k self, other: &'k Self) -> Vec<&'k str> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name)).map(String::as_str).collect()
    }
}

/// The rows that only this run writes.
fn touched(tape: &Tape) -> BTreeSet<(String, String)> {
    // The directory's last session may be another by now, and the rows of working agents follow from more than one
    // entry.
    let is_own = |table: &str| table != session::IN_DIRECTORY && table != rows::WORKING;
    let rows = tape.entries.iter().flat_map(project_entry).filter_map(|row| match row {
        Projection::Put { table, key, .. }
        | Projection::Raise { table, key, .. }
        | Projection::Delete { table, key } => Some((table.into_owned(), key)),
        Projection::Snapshot { .. } => None,
    });
    rows.filter(|(table, _)| is_own(table)).collect()
}

impl Tape {
    /// The derived states and rows that follow from the entries of the run alone.
    pub fn folded(&self, replica: &Storage) -> Result<Fingerprint, RuntimeError> {
        Fingerprint::of(&replica.journal, self)
    }
}
