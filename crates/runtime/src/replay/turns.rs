//! The user's messages in a run: `turn:N` counts these everywhere.

use std::collections::{HashMap, HashSet};

use max_team_core::event::{Event, UserMessage};
use max_team_core::id::{AgentId, PlanId};
use max_team_journal::Entry;

use crate::error::RuntimeError;
use crate::plan::plan_stream;
use crate::rows::event_of;
use crate::session;

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnMessage {
    /// The entry that begins its turn.
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) words: String,
    /// The user started a plan and wrote no message.
    pub(crate) is_run: bool,
}

/// All messages of the user to the lead, and all plans that the user started, in the order of the turns and plans that
/// followed.
pub(crate) fn spoken(entries: &[Entry], lead: AgentId) -> Result<Vec<TurnMessage>, RuntimeError> {
    let lead = session::agent_stream(lead);
    let streams: HashSet<&str> = entries.iter().map(|entry| &*entry.stream).collect();
    // A plan that a user started has the id of the message that started it.
    let is_run = |of: &UserMessage| streams.contains(&*plan_stream(PlanId::new(of.envelope.uuid())));
    let (mut all, mut said) = (Vec::new(), HashMap::new());
    for entry in entries.iter().filter(|entry| entry.event == "said" || entry.event == "turn_started") {
        let spoken = |words, is_run| TurnMessage { seq: entry.seq, at_ms: entry.at_ms, words, is_run };
        match event_of(entry)? {
            Event::Said(of) if is_run(&of) => all.push(spoken(of.text, true)),
            Event::Said(of) => drop(said.insert(of.envelope, of.text)),
            Event::TurnStarted(of) if entry.stream == lead => {
                // Messages that waited together begin one turn.
                let envelopes = std::iter::once(&of.envelope).chain(&of.envelopes);
                let words: Vec<String> = envelopes.filter_map(|envelope| said.get(envelope).cloned()).collect();
                all.extend((!words.is_empty()).then(|| spoken(words.join("\n\n"), false)));
            }
            _ => {}
        }
    }
    Ok(all)
}
