//! The rows of the memory: facts by section, and facts by term.
//!
//! Like all rows they follow from one entry each, with one exception: a term that a newer value no longer has is
//! deleted by the writer of that value, which knows the old one. If that did not happen, the term's row is older than
//! its fact, and a search skips it.

use max_team_core::event::Event;
use max_team_core::memory::{Board, BoardScope, Fact, Key, MemorySet, Posting, Section, terms};
use max_team_journal::Projection;
use serde_json::Value;

use crate::rows::put;

/// Boards that were written to.
pub(super) const BOARDS: &str = "memory_board";

/// The facts of a section.
pub(super) fn facts(scope: &BoardScope, section: Section) -> String {
    format!("memory/{}/{scope}", section.name())
}

/// The facts that have a term.
pub(super) fn having(scope: &BoardScope, term: &str) -> String {
    format!("memory_term/{term}/{scope}")
}

/// The rows that an event of a board's stream changes.
pub(crate) fn project(scope: &BoardScope, at_ms: i64, event: &Event) -> Vec<Projection> {
    match event {
        Event::MemorySet(set) => {
            let MemorySet { key, value, by, source, over } = set.clone();
            let mut rows: Vec<Projection> = over.iter().map(|key| delete_fact(scope, key)).collect();
            for (term, Posting { count, of }) in terms(&key, &value) {
                rows.extend(put(&having(scope, &term), key.as_str(), at_ms, &(count, of)));
            }
            let table = facts(scope, key.section());
            let text = key.to_string();
            rows.extend(put(&table, &text, at_ms, &Fact { key, value, by, source, at_ms }));
            rows.extend(put(BOARDS, &scope.to_string(), at_ms, &()));
            rows
        }
        Event::MemoryForgotten(forgotten) => {
            let mut rows: Vec<Projection> = forgotten.keys.iter().map(|key| delete_fact(scope, key)).collect();
            // Each entry makes this row again, because the entry that made it before may be erased.
            rows.extend(put(BOARDS, &scope.to_string(), at_ms, &()));
            rows
        }
        _ => Vec::new(),
    }
}

fn delete_fact(scope: &BoardScope, key: &Key) -> Projection {
    Projection::Delete { table: facts(scope, key.section()).into(), key: key.to_string() }
}

/// The rows of terms that a write makes stale.
pub(super) fn stale(scope: &BoardScope, board: &Board, set: &MemorySet) -> Vec<Projection> {
    let mut rows: Vec<Projection> = set
        .over
        .iter()
        .filter_map(|key| board.get(key))
        .flat_map(|fact| unfind(scope, &fact.key, &fact.value))
        .collect();
    if let Some(old) = board.get(&set.key) {
        rows.extend(replaced(scope, &set.key, &old.value, &set.value));
    }
    rows
}

/// The rows of the terms that a fact had and no longer has.
pub(crate) fn replaced(scope: &BoardScope, key: &Key, old: &Value, new: &Value) -> Vec<Projection> {
    let new = terms(key, new);
    let gone = terms(key, old).into_keys().filter(|term| !new.contains_key(term));
    gone.map(|term| delete_term(scope, &term, key)).collect()
}

/// The rows that a fact is found by, taken away.
pub(crate) fn unfind(scope: &BoardScope, key: &Key, value: &Value) -> Vec<Projection> {
    terms(key, value).into_keys().map(|term| delete_term(scope, &term, key)).collect()
}

fn delete_term(scope: &BoardScope, term: &str, key: &Key) -> Projection {
    Projection::Delete { table: having(scope, term).into(), key: key.to_string() }
}
