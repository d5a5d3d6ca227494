//! The status of a session at a place of the log.
//!
//! The state of an agent follows from its entries since its last turn began, and the questions of a plan from the plan's entries. So
//! a reader that begins in the middle reads back that far, and has the same state as one that read from the start.

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::status::SessionStatus;
use max_team_journal::{Entry, Journal};

use super::reader::{Source, find};
use crate::error::RuntimeError;
use crate::read_model::Cast;
use crate::rows::event_of;

/// Entries that are read at a time.
const PAGE: usize = 64;
/// The event that begins a turn.
const BEGINNING: &str = "turn_started";
/// The events that change a status.
const CHANGING: [&str; 12] = [
    BEGINNING,
    "turn_ended",
    "llm_intent",
    "question_asked",
    "question_answered",
    "tool_done",
    "interrupted",
    "agent_ended",
    "plan_asked",
    "plan_answered",
    "plan_unasked",
    "plan_ended",
];

/// Whether an entry can change the status of its session.
pub(super) fn can_change(entry: &Entry) -> bool {
    CHANGING.contains(&&*entry.event)
}

/// Takes in an event of an agent or a plan.
pub(super) fn hear(status: &mut SessionStatus, source: &Source, event: &Event) {
    if let Some(who) = &source.who {
        status.apply(who.id, &who.name, event);
    } else if let Some(plan) = source.plan {
        status.hear_plan(plan, event);
    }
}

/// The status of a session before an entry of the log.
pub(crate) fn status_before(journal: &Journal, session: SessionId, seq: u64) -> Result<SessionStatus, RuntimeError> {
    let mut entries = Vec::new();
    for stream in Cast::of(journal, session)?.streams() {
        if stream.starts_with("agent/") || stream.starts_with("plan/") {
            since_last_turn(journal, &stream, seq, &mut entries)?;
        }
    }
    entries.sort_by_key(|entry: &Entry| entry.seq);
    let mut status = SessionStatus::default();
    for entry in entries.iter().filter(|entry| can_change(entry)) {
        // An erased or unreadable entry adds nothing.
        if let (Some(source), Ok(event)) = (find(journal, &entry.stream)?, event_of(entry)) {
            hear(&mut status, &source, &event);
        }
    }
    Ok(status)
}

/// The entries of a stream before `seq`, from the last turn that begins there on; all of them if none does.
fn since_last_turn(journal: &Journal, stream: &str, seq: u64, entries: &mut Vec<Entry>) -> Result<(), RuntimeError> {
    let mut upto = journal.head(stream)?;
    while upto > 0 {
        let after = upto.saturating_sub(PAGE as u64);
        let mut page = journal.read(stream, after, usize::try_from(upto - after).unwrap_or(usize::MAX))?;
        page.retain(|entry| entry.seq < seq);
        if let Some(begins) = page.iter().rposition(|entry| entry.event == BEGINNING) {
            entries.extend(page.drain(begins..));
            return Ok(());
        }
        entries.extend(page);
        upto = after;
    }
    Ok(())
}
