//! Sessions: the dialogue with a user, and the rows that list them.
//!
//! The rows are projections: [`project`] computes them from entries alone, so that they can be thrown away and
//! made again from the log.

pub mod instructions;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, SessionId};
use max_team_journal::Projection;
use serde::{Deserialize, Serialize};

/// What each session is: written once.
pub(crate) const OPENED: &str = "session";
/// What last happened in each: rewritten as it goes.
pub(crate) const LAST: &str = "session_last";
/// Characters of the title and the preview.
const PREVIEW_CHARS: usize = 80;

/// The stream of a session held in a terminal.
pub(crate) fn stream(session: SessionId) -> String {
    format!("session/cli:{session}")
}

/// The session behind a stream's name.
fn session_of(stream: &str) -> Option<&str> {
    stream.strip_prefix("session/cli:")
}

/// The stream of an agent; also the address of its mailbox.
pub(crate) fn agent_stream(agent: AgentId) -> String {
    format!("agent/{agent}")
}

/// A row of `sessions list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Which.
    pub session: SessionId,
    /// Its lead.
    pub lead: AgentId,
    /// Where it works.
    pub cwd: String,
    /// When it began.
    pub opened_at_ms: i64,
    /// When something was last said.
    pub last_at_ms: i64,
    /// The last thing said.
    pub preview: String,
    /// Whether the user was answered last.
    pub answered: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct OpenedRow {
    pub lead: AgentId,
    pub cwd: String,
    pub at_ms: i64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct LastRow {
    pub preview: String,
    pub answered: bool,
    pub at_ms: i64,
}

/// The rows that an event changes.
pub fn project(stream: &str, at_ms: i64, event: &Event) -> Vec<Projection> {
    let Some(session) = session_of(stream) else { return Vec::new() };
    let put = |table: &str, value: Result<Vec<u8>, serde_json::Error>| match value {
        Ok(value) => vec![Projection::Put { table: table.to_owned(), key: session.to_owned(), value, sort_ms: at_ms }],
        Err(_) => Vec::new(),
    };
    let last = |text: &str, answered| put(LAST, serde_json::to_vec(&LastRow { preview: preview(text), answered, at_ms }));
    match event {
        Event::SessionOpened(opened) => {
            put(OPENED, serde_json::to_vec(&OpenedRow { lead: opened.lead, cwd: opened.cwd.clone(), at_ms }))
        }
        Event::Said(said) => last(&said.text, false),
        Event::Replied(replied) => last(&replied.text, true),
        _ => Vec::new(),
    }
}

fn preview(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(PREVIEW_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_are_one_short_line() {
        assert_eq!(preview("\n  hi there \nmore"), "hi there");
        assert_eq!(preview(&"字".repeat(100)).chars().count(), PREVIEW_CHARS + 1);
    }
}
