//! When the user spoke in a run: what `turn:N` counts, wherever it is said.

use std::collections::{HashMap, HashSet};

use max_team_core::event::{Event, Said};
use max_team_core::id::{AgentId, PlanId};
use max_team_journal::Entry;

use crate::error::RuntimeError;
use crate::plan::plan_stream;
use crate::rows::event_of;
use crate::session;

/// A time that the user spoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// The entry that what follows begins with.
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) words: String,
    /// They have run a plan, and said nothing to anybody.
    pub(crate) is_run: bool,
}

/// Every time that the user spoke to whoever leads, or had a plan run, in the order of what followed.
pub(crate) fn spoken(entries: &[Entry], lead: AgentId) -> Result<Vec<Spoken>, RuntimeError> {
    let lead = session::agent_stream(lead);
    let streams: HashSet<&str> = entries.iter().map(|entry| &*entry.stream).collect();
    // A plan that a user has run is known by the letter that they ran it with.
    let is_run = |of: &Said| streams.contains(&*plan_stream(PlanId::new(of.envelope.uuid())));
    let (mut all, mut said) = (Vec::new(), HashMap::new());
    for entry in entries.iter().filter(|entry| entry.event == "said" || entry.event == "turn_started") {
        let spoken = |words, is_run| Spoken { seq: entry.seq, at_ms: entry.at_ms, words, is_run };
        match event_of(entry)? {
            Event::Said(of) if is_run(&of) => all.push(spoken(of.text, true)),
            Event::Said(of) => drop(said.insert(of.envelope, of.text)),
            Event::TurnStarted(of) if entry.stream == lead => {
                // Messages that waited together begin one turn.
                let letters = std::iter::once(&of.envelope).chain(&of.letters);
                let words: Vec<String> = letters.filter_map(|letter| said.get(letter).cloned()).collect();
                all.extend((!words.is_empty()).then(|| spoken(words.join("\n\n"), false)));
            }
            _ => {}
        }
    }
    Ok(all)
}
