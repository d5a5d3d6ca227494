//! Handing what was said to the expert in charge of the memory: what, and when.
//!
//! What was said since the last time is in the session's stream; a row says how far it was handed over. The entry that
//! makes that row and the expert's beginning are one commit, so that every exchange is looked at once, whatever dies in
//! between; where the expert itself fails, the same is handed over again, a bounded number of times. The expert works
//! beside the session, which is at rest without it.

use max_team_core::event::{End, Event};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, SessionId};
use max_team_core::limits::{MEMORY_HANDED_BYTES_MAX, MEMORY_HANDED_TRIES_MAX, MEMORY_ROUNDS_MAX};
use max_team_core::memory::{EXPERT, Exchange, MemoryHanded, is_due};
use max_team_core::policy::Mode;
use max_team_core::team::{Definition, Model, Place, Settings};
use max_team_journal::Journal;
use serde::Deserialize;

use super::{READ, WRITE};
use crate::error::RuntimeError;
use crate::handle::Mate;
use crate::prompt::fill;
use crate::rows::{self, event_of};
use crate::session;

const EXTRACT: &str = include_str!("../../../../prompts/extract.md");

/// How far what was said in each session was handed over.
pub(crate) const HANDED: &str = "memory_handed";
/// Characters of an answer that are handed over: it only says what the user was talking about.
const ANSWER_CHARS_MAX: usize = 600;

/// How a house looks after its memory.
#[derive(Debug, Clone)]
pub struct Remember {
    /// Whether leads are told what is remembered.
    pub recall: bool,
    /// Who takes from conversations what is worth remembering; nobody: only what is asked for is written.
    pub expert: Option<Definition>,
    /// The model it works with; `None`: the session's.
    pub model: Option<Model>,
    /// Exchanges after which it looks, whatever was said.
    pub every: u32,
    /// Whether code notes where each conversation stands (`dialog_context`) and which agents fail (`agent_errors`).
    pub notes: bool,
}

/// How far it was handed over, as the row has it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Handed {
    Whole(MemoryHanded),
    /// Before it was known who had looked.
    Upto(u64),
}

/// What was said since the last look, if it is time for one.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The entry of the session's stream that it begins behind.
    pub after: u64,
    /// The last entry of the session's stream among it.
    pub upto: u64,
    /// How often it is handed over, this time included.
    pub attempt: u32,
    /// What the user said in it.
    pub said: String,
    /// The exchanges, every line marked as somebody's words.
    pieces: String,
}

/// What is to be handed over now: the oldest exchanges that there is room for. The others are for the next time.
pub(crate) fn handover(journal: &Journal, session: SessionId, every: u32) -> Result<Option<Handover>, RuntimeError> {
    let (handed, last) = match rows::row(journal, HANDED, &session.to_string())? {
        None => (0, None),
        Some(Handed::Upto(upto)) => (upto, None),
        Some(Handed::Whole(handed)) => (handed.upto, Some(handed)),
    };
    let is_open = |last: &MemoryHanded| (1..MEMORY_HANDED_TRIES_MAX).contains(&last.attempt);
    let again = match last.filter(is_open) {
        Some(last) if has_failed(journal, last.agent)? => Some(last),
        _ => None,
    };
    let (after, attempt) = again.map_or((handed, 1), |last| (last.after, last.attempt + 1));
    let found = exchanges(journal, session, after)?;
    let all: Vec<Exchange> = found.iter().map(|(_, exchange)| exchange.clone()).collect();
    if found.is_empty() || !(again.is_some() || is_due(&all, every)) {
        return Ok(None);
    }
    let mut handover = Handover { after, upto: after, attempt, said: String::new(), pieces: String::new() };
    for (seq, Exchange { said, answered }) in found {
        let piece = clipped(format!("The user said:\n{}The answer was:\n{}", cited(&said), cited(&answered)));
        if !handover.pieces.is_empty() && handover.pieces.len() + piece.len() >= MEMORY_HANDED_BYTES_MAX {
            break;
        }
        for (all, one) in [(&mut handover.pieces, &piece), (&mut handover.said, &said)] {
            all.push_str(if all.is_empty() { "" } else { "\n" });
            all.push_str(one);
        }
        handover.upto = seq;
    }
    Ok(Some(handover))
}

/// What was said and answered behind an entry of the session's stream, each with the entry that ends it.
fn exchanges(journal: &Journal, session: SessionId, after: u64) -> Result<Vec<(u64, Exchange)>, RuntimeError> {
    let stream = session::stream(session);
    let mut found = Vec::new();
    // What was said and not answered yet waits for its answer.
    let mut open: Vec<(EnvelopeId, String)> = Vec::new();
    for entry in rows::entries(journal, &stream, after) {
        let entry = entry?;
        match event_of(&entry) {
            Ok(Event::Said(said)) => open.push((said.envelope, said.text)),
            Ok(Event::Withdrawn(withdrawn)) => open.retain(|(said, _)| *said != withdrawn.envelope),
            Ok(Event::Replied(replied)) if !open.is_empty() => {
                let answered = replied.text.chars().take(ANSWER_CHARS_MAX).collect();
                let said: Vec<String> = std::mem::take(&mut open).into_iter().map(|(_, text)| text).collect();
                found.push((entry.stream_seq, Exchange { said: said.join("\n"), answered }));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Whether whoever looked has ended without an answer. Somebody who is still at it has not failed.
fn has_failed(journal: &Journal, agent: AgentId) -> Result<bool, RuntimeError> {
    let stream = session::agent_stream(agent);
    let mut end = None;
    for entry in rows::entries(journal, &stream, 0) {
        if let Ok(Event::TurnEnded(ended)) = event_of(&entry?) {
            end = Some(ended.end);
        }
    }
    Ok(end.is_some_and(|end| end != End::Answered))
}

impl Handover {
    /// Who looks at it: the same for the same exchanges, and somebody else each time.
    pub(crate) fn agent(&self, session: SessionId) -> AgentId {
        let fields = [session::stream(session), self.name(), EXPERT.to_owned()];
        AgentId::new(Hash::of_fields(&fields.each_ref().map(String::as_bytes)).uuid())
    }

    /// What tells it from every other one of its session.
    pub(crate) fn name(&self) -> String {
        if self.attempt > 1 { format!("{}.{}", self.upto, self.attempt) } else { self.upto.to_string() }
    }

    /// What the expert is told.
    pub(crate) fn text(&self, known: &str) -> String {
        let known = if known.trim().is_empty() { "(nothing)" } else { known.trim() };
        fill(EXTRACT, &[("known", known), ("conversation", &self.pieces)])
    }
}

/// One message may be larger than all that is handed over.
fn clipped(text: String) -> String {
    let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MEMORY_HANDED_BYTES_MAX).last();
    match cut {
        Some(cut) if text.len() > MEMORY_HANDED_BYTES_MAX => text.get(..cut).unwrap_or_default().to_owned(),
        _ => text,
    }
}

fn cited(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}

/// Whether an agent works beside its session: the expert that looks back. Whoever calls the expert waits for it.
pub(crate) fn is_aside(definition: &Definition) -> bool {
    definition.background && definition.place == Place::Expert && definition.name == EXPERT
}

/// The expert at work: with nothing in its hands but the memory, asking nobody, never freer than its lead.
pub(crate) fn expert(remember: &Remember, lead: &Settings) -> Option<Mate> {
    let definition = Definition {
        name: EXPERT.to_owned(),
        place: Place::Expert,
        tools: [READ, WRITE].map(str::to_owned).to_vec(),
        background: true,
        builtin: true,
        ..remember.expert.clone()?
    };
    let mut within = lead.within.clone();
    within.extend([lead.mode, Mode::DontAsk]);
    let settings = Settings {
        model: remember.model.clone().unwrap_or_else(|| lead.model.clone()),
        mode: Mode::DontAsk,
        within,
        rounds_max: MEMORY_ROUNDS_MAX.min(lead.rounds_max),
        budget_nano: None,
        budget_tokens: None,
        structured: false,
        approved: false,
        corrects: false,
        ..lead.clone()
    };
    Some(Mate { definition: definition.into(), settings })
}
