//! Rebuilds the rows of the whole journal, and compares them with the log.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use max_team_core::event::Event;
use max_team_core::machine::Machine;
use max_team_core::memory::{BoardScope, Key};
use max_team_core::plan::Plan;
use max_team_core::turn::Turn;
use max_team_journal::{DriftReport, Entry, Journal, JournalError, Projection};
use serde_json::Value;

use crate::error::RuntimeError;
use crate::memory;
use crate::rows::{self, event_of, project};

/// From this time on (2026-11-17, UTC) every build writes a row for each session stop; older journals may lack some.
const STOPS_HAVE_ROWS_MS: i64 = 1_794_873_600_000;

/// Compares every row and every stored state with the log; changes nothing.
pub fn compare_rows(journal: &Journal) -> Result<DriftReport, JournalError> {
    let maker = Maker::default();
    // Older builds recorded a stop in each agent's own stream instead, so a stop of that time without a row is no
    // drift.
    let stopped: HashSet<String> = rows::keys(journal, rows::STOPPED)?.into_iter().collect();
    let is_wanted = |row: &Projection| match row {
        Projection::Put { table, key, .. } | Projection::Raise { table, key, .. } => {
            *table != rows::STOPPED || stopped.contains(key)
        }
        _ => true,
    };
    let made = |entry: &Entry| {
        let is_wanted = |row: &Projection| entry.at_ms >= STOPS_HAVE_ROWS_MS || is_wanted(row);
        maker.rows(entry).into_iter().filter(is_wanted).collect()
    };
    journal.drift(made, |stream, upto, version| refold(journal, stream, upto, version))
}

/// Makes every row again from the log.
pub fn rebuild_rows(journal: &Journal) -> Result<(), JournalError> {
    let maker = Maker::default();
    journal.rebuild(|entry| maker.rows(entry))
}

/// Makes rows from the whole log, in order. Nearly all follow from one entry; the search terms of a fact follow from
/// its earlier values, too.
#[derive(Debug, Default)]
struct Maker {
    facts: RefCell<HashMap<(String, Key), Value>>,
}

impl Maker {
    fn rows(&self, entry: &Entry) -> Vec<Projection> {
        // The journal's own entries and erased ones make no rows of ours.
        let Ok(event) = event_of(entry) else { return Vec::new() };
        let mut rows = project(&entry.stream, entry.at_ms, &event);
        if let Some(scope) = BoardScope::of_stream(&entry.stream) {
            rows.extend(self.stale(&scope, &event));
        }
        rows
    }

    fn stale(&self, scope: &BoardScope, event: &Event) -> Vec<Projection> {
        let mut facts = self.facts.borrow_mut();
        let board = scope.to_string();
        let mut stale = Vec::new();
        match event {
            Event::MemorySet(set) => {
                for key in &set.over {
                    let old = facts.remove(&(board.clone(), key.clone()));
                    stale.extend(old.iter().flat_map(|old| memory::unfind(scope, key, old)));
                }
                let old = facts.insert((board, set.key.clone()), set.value.clone());
                stale.extend(old.iter().flat_map(|old| memory::replaced(scope, &set.key, old, &set.value)));
            }
            Event::MemoryForgotten(forgotten) => {
                for key in &forgotten.keys {
                    let old = facts.remove(&(board.clone(), key.clone()));
                    stale.extend(old.iter().flat_map(|old| memory::unfind(scope, key, old)));
                }
            }
            _ => {}
        }
        stale
    }
}

/// A state as it would be stored; `None` if no reader uses this version, or the log cannot be read up to there.
fn refold(journal: &Journal, stream: &str, upto: u64, version: u32) -> Option<Vec<u8>> {
    if stream.starts_with("agent/") && version == Turn::SNAPSHOT_VERSION {
        fold::<Turn>(journal, stream, upto)
    } else if stream.starts_with("plan/") && version == Plan::SNAPSHOT_VERSION {
        fold::<Plan>(journal, stream, upto)
    } else {
        None
    }
}

fn fold<M: Machine>(journal: &Journal, stream: &str, upto: u64) -> Option<Vec<u8>> {
    let mut machine = M::default();
    let mut read = || {
        for entry in rows::entries(journal, stream, 0) {
            let entry = entry?;
            if entry.stream_seq > upto {
                break;
            }
            machine.apply(&event_of(&entry)?, entry.at_ms);
        }
        Ok::<_, RuntimeError>(())
    };
    read().ok()?;
    serde_json::to_vec(&machine).ok()
}
