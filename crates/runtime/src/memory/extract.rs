//! Which part of a conversation is handed to the memory expert, and when.
//!
//! The conversation is in the session's stream; a row says how far it was handed over. The entry that makes that row
//! and the expert's start are one commit, so that every exchange is handed over once, also after a crash; if the
//! expert fails, the same exchanges are handed over again, a bounded number of times. The expert works in the
//! background: the session counts as idle meanwhile.

use max_team_core::agent::{Definition, Model, Settings, TeamRole};
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, SessionId};
use max_team_core::limits::{MEMORY_HANDED_BYTES_MAX, MEMORY_HANDED_TRIES_MAX, MEMORY_ROUNDS_MAX};
use max_team_core::memory::{EXPERT, Exchange, MemoryHanded, is_due};
use max_team_core::policy::Mode;
use max_team_journal::Journal;
use serde::Deserialize;

use super::{READ, WRITE};
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::rows::{self, event_of};
use crate::session;
use crate::template::fill;

const EXTRACT: &str = include_str!("../../../../prompts/extract.md");

/// How far each session's conversation was handed over.
pub(crate) const HANDED: &str = "memory_handed";
/// Characters of an answer that are handed over: it only shows what the user was talking about.
const ANSWER_CHARS_MAX: usize = 600;

/// How the memory is kept.
#[derive(Debug, Clone)]
pub struct Remember {
    /// Whether prompts of leads contain remembered facts.
    pub recall: bool,
    /// The expert that extracts facts from conversations; `None`: only explicit writes change the memory.
    pub expert: Option<Definition>,
    /// The model it works with; `None`: the session's.
    pub model: Option<Model>,
    /// Number of exchanges after which it is started in any case.
    pub every: u32,
    /// Whether code notes the state of each conversation (`dialog_context`) and which agents fail (`agent_errors`).
    pub notes: bool,
}

/// A row of `HANDED`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Handed {
    Whole(MemoryHanded),
    /// Rows of older versions, which do not name the expert.
    Upto(u64),
}

/// The exchanges since the last handover, if one is due.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The entry of the session's stream after which it begins.
    pub after: u64,
    /// Its last entry in the session's stream.
    pub upto: u64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The user's messages in it.
    pub said: String,
    /// The exchanges, every line quoted.
    pieces: String,
}

/// The next handover, if one is due: the oldest exchanges that fit. The rest waits for the next one.
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

/// The exchanges after an entry of the session's stream, each with the entry that ends it.
fn exchanges(journal: &Journal, session: SessionId, after: u64) -> Result<Vec<(u64, Exchange)>, RuntimeError> {
    let stream = session::stream(session);
    let mut found = Vec::new();
    // Messages that have no answer yet.
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

/// Whether the expert has ended without an answer. One that still works has not failed.
fn has_failed(journal: &Journal, agent: AgentId) -> Result<bool, RuntimeError> {
    let stream = session::agent_stream(agent);
    let mut end = None;
    for entry in rows::entries(journal, &stream, 0) {
        if let Ok(Event::TurnEnded(ended)) = event_of(&entry?) {
            end = Some(ended.end);
        }
    }
    Ok(end.is_some_and(|end| end != TurnOutcome::Answered))
}

impl Handover {
    /// The id of the expert that gets these exchanges. It follows from the exchanges and the attempt, so that a
    /// repeated commit starts no second one.
    pub(crate) fn agent(&self, session: SessionId) -> AgentId {
        let fields = [session::stream(session), self.name(), EXPERT.to_owned()];
        AgentId::new(Hash::of_fields(&fields.each_ref().map(String::as_bytes)).uuid())
    }

    /// Identifies this handover within its session.
    pub(crate) fn name(&self) -> String {
        if self.attempt > 1 { format!("{}.{}", self.upto, self.attempt) } else { self.upto.to_string() }
    }

    /// The message to the expert.
    pub(crate) fn text(&self, known: &str) -> String {
        let known = if known.trim().is_empty() { "(nothing)" } else { known.trim() };
        fill(EXTRACT, &[("known", known), ("conversation", &self.pieces)])
    }
}

/// Cuts a text: one message may be larger than a whole handover may be.
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

/// Whether an agent works in the background of its session: the expert that this module starts. An agent that calls
/// the expert waits for it instead.
pub(crate) fn is_aside(definition: &Definition) -> bool {
    definition.background && definition.place == TeamRole::Expert && definition.name == EXPERT
}

/// The expert's definition and settings: it has only the tools of the memory, asks no questions, and has no more
/// rights than its lead.
pub(crate) fn expert(remember: &Remember, lead: &Settings) -> Option<AgentSpec> {
    let definition = Definition {
        name: EXPERT.to_owned(),
        place: TeamRole::Expert,
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
    Some(AgentSpec { definition: definition.into(), settings })
}
