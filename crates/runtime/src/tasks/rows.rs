//! The rows of the lists: what each task says, how it stands, and the last number that each list has given.
//!
//! An event carries what it changes whole, so that each row follows from one entry; together they are the list.

use std::collections::HashMap;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::tasks::{Item, Move, State, Tasks, Text};
use max_team_journal::{Journal, Projection};

use crate::error::RuntimeError;
use crate::rows::{put, row, rows};
use crate::session::USED;

/// What the streams of lists begin with.
pub(super) const STREAM: &str = "tasks/";
/// The last number that each session's list has given.
const LAST: &str = "tasks";

/// Whether a session has a list.
pub(crate) fn is_any(journal: &Journal, session: &str) -> Result<bool, RuntimeError> {
    Ok(journal.get(LAST, session)?.is_some())
}

/// What the tasks of a session say.
fn texts(session: &str) -> String {
    format!("task_text/{session}")
}

/// How they stand.
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
            changed.extend(put(&states(session), &added.id.to_string(), at_ms, &State::default()));
            changed
        }
        Event::ItemWritten(written) => put(&texts(session), &written.id.to_string(), at_ms, &written.text),
        Event::ItemMoved(moved) if moved.what == Move::Deleted => {
            let gone = |table: String| Projection::Delete { table: table.into(), key: moved.id.to_string() };
            vec![gone(texts(session)), gone(states(session))]
        }
        Event::ItemMoved(moved) => put(&states(session), &moved.id.to_string(), at_ms, &moved.state),
        _ => Vec::new(),
    });
    Some(changed)
}

/// A list as its rows hold it.
pub(super) fn read(journal: &Journal, session: SessionId) -> Result<Tasks, RuntimeError> {
    let session = session.to_string();
    // Most sessions have none, and most looks find nobody at anything.
    let Some(last) = row::<u32>(journal, LAST, &session)? else { return Ok(Tasks::default()) };
    let mut states: HashMap<String, State> = rows(journal, &states(&session))?.into_iter().collect();
    let items = rows::<Text>(journal, &texts(&session))?.into_iter().filter_map(|(key, text)| {
        let state = states.remove(&key)?;
        Some(Item { id: key.parse().ok()?, text, state })
    });
    Ok(Tasks::of(items.collect::<Vec<_>>(), last))
}
