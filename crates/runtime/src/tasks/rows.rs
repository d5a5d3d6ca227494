//! The rows of the lists: the text and the state of each task, and the last number of each list.
//!
//! An event carries the whole changed part, so that each row follows from one entry; together the rows are the list.

use std::collections::HashMap;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::task_list::{ListTask, ListTaskState, StatusChange, TaskList, TaskText};
use max_team_journal::{Journal, Projection};

use crate::error::RuntimeError;
use crate::rows::{put, row, rows};
use crate::session::USED;

/// Prefix of the lists' streams.
pub(super) const STREAM: &str = "tasks/";
/// The last number that each session's list has given.
const LAST: &str = "tasks";

/// Whether a session has a list.
pub(crate) fn is_any(journal: &Journal, session: &str) -> Result<bool, RuntimeError> {
    Ok(journal.get(LAST, session)?.is_some())
}

/// The table of task texts.
fn texts(session: &str) -> String {
    format!("task_text/{session}")
}

/// The table of task states.
fn states(session: &str) -> String {
    format!("task_state/{session}")
}

/// The rows that an event of a list's stream changes; `None`: it is another stream.
pub(crate) fn project(stream: &str, at_ms: i64, event: &Event) -> Option<Vec<Projection>> {
    let session = stream.strip_prefix(STREAM)?;
    let mut changed = put(USED, session, at_ms, &true);
    changed.extend(match event {
        Event::ItemAdded(added) => {
            let mut changed = put(LAST, session, at_ms, &added.id);
            changed.extend(put(&texts(session), &added.id.to_string(), at_ms, &added.text));
            changed.extend(put(&states(session), &added.id.to_string(), at_ms, &ListTaskState::default()));
            changed
        }
        Event::ItemWritten(written) => put(&texts(session), &written.id.to_string(), at_ms, &written.text),
        Event::ItemMoved(moved) if moved.what == StatusChange::Deleted => {
            let gone = |table: String| Projection::Delete { table: table.into(), key: moved.id.to_string() };
            vec![gone(texts(session)), gone(states(session))]
        }
        Event::ItemMoved(moved) => put(&states(session), &moved.id.to_string(), at_ms, &moved.state),
        _ => Vec::new(),
    });
    Some(changed)
}

/// Reads a list from its rows.
pub(super) fn read(journal: &Journal, session: SessionId) -> Result<TaskList, RuntimeError> {
    let session = session.to_string();
    // Most sessions have no list.
    let Some(last) = row::<u32>(journal, LAST, &session)? else { return Ok(TaskList::default()) };
    let mut states: HashMap<String, ListTaskState> = rows(journal, &states(&session))?.into_iter().collect();
    let items = rows::<TaskText>(journal, &texts(&session))?.into_iter().filter_map(|(key, text)| {
        let state = states.remove(&key)?;
        Some(ListTask { id: key.parse().ok()?, text, state })
    });
    Ok(TaskList::from_rows(items.collect::<Vec<_>>(), last))
}
