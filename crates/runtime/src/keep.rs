//! Looking after the journal as a whole: making its rows again, holding them against the log, and forgetting.

mod forget;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use max_team_core::event::Event;
use max_team_core::memory::{Key, Scope};
use max_team_core::plan::Plan;
use max_team_core::turn::Turn;
use max_team_journal::{Drifted, Entry, Journal, JournalError, Projection};
use serde::Serialize;
use serde_json::Value;

use crate::agent::SNAPSHOT_VERSION;
use crate::error::RuntimeError;
use crate::memory;
use crate::plan::PLAN_SNAPSHOT_VERSION;
use crate::rows::{self, event_of, project};

pub(crate) use forget::gone;
pub use forget::{Forgotten as SessionsForgotten, Gone, forget_sessions, forks_of, prune_images};

/// From here on (2026-11-17, UTC) every build writes the row that a stop of everybody has; journals of before may lack some.
const STOPS_HAVE_ROWS_MS: i64 = 1_794_873_600_000;

/// Compares every row and every kept state with what the log says; changes nothing.
pub fn compare_rows(journal: &Journal) -> Result<Drifted, JournalError> {
    let maker = Maker::default();
    // Before there were such rows everybody had an entry of its own that says so: who has none since then needs none.
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

/// Makes rows from the whole log, in its order. Nearly all follow from one entry; the terms that a fact was found by
/// follow from what it said before.
#[derive(Debug, Default)]
struct Maker {
    facts: RefCell<HashMap<(String, Key), Value>>,
}

impl Maker {
    fn rows(&self, entry: &Entry) -> Vec<Projection> {
        // The journal's own entries and erased ones make no rows of ours.
        let Ok(event) = event_of(entry) else { return Vec::new() };
        let mut rows = project(&entry.stream, entry.at_ms, &event);
        if let Some(scope) = Scope::of_stream(&entry.stream) {
            rows.extend(self.stale(&scope, &event));
        }
        rows
    }

    fn stale(&self, scope: &Scope, event: &Event) -> Vec<Projection> {
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

/// A state as it would be kept; `None`: nobody would look at it, or the log cannot be read so far.
fn refold(journal: &Journal, stream: &str, upto: u64, version: u32) -> Option<Vec<u8>> {
    if stream.starts_with("agent/") && version == SNAPSHOT_VERSION {
        fold(journal, stream, upto, Turn::new(), |turn, event, _| turn.apply(event))
    } else if stream.starts_with("plan/") && version == PLAN_SNAPSHOT_VERSION {
        fold(journal, stream, upto, Plan::new(), Plan::apply)
    } else {
        None
    }
}

fn fold<S: Serialize>(
    journal: &Journal,
    stream: &str,
    upto: u64,
    mut state: S,
    apply: impl Fn(&mut S, &Event, i64),
) -> Option<Vec<u8>> {
    let mut read = || {
        for entry in rows::entries(journal, stream, 0) {
            let entry = entry?;
            if entry.stream_seq > upto {
                break;
            }
            apply(&mut state, &event_of(&entry)?, entry.at_ms);
        }
        Ok::<_, RuntimeError>(())
    };
    read().ok()?;
    serde_json::to_vec(&state).ok()
}
