//! Handing what was said to the expert in charge of the memory: what, and when.
//!
//! What was said since the last time is in the session's stream; a row says how far it was handed over. The entry that
//! makes that row and the expert's beginning are one commit, so that every exchange is looked at once, whatever dies in
//! between. The expert works beside the session, which is at rest without it.

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, SessionId};
use max_team_core::limits::{MEMORY_HANDED_BYTES_MAX, MEMORY_ROUNDS_MAX};
use max_team_core::memory::{EXPERT, Exchange, is_due};
use max_team_core::policy::Mode;
use max_team_core::team::{Definition, Model, Place, Settings};
use max_team_journal::Journal;

use super::{PAGE, READ, WRITE};
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
}

/// What was said since the last look, if it is time for one.
pub(crate) struct Handover {
    /// The last entry of the session's stream among it.
    pub upto: u64,
    exchanges: Vec<Exchange>,
}

/// What is to be handed over now.
pub(crate) fn handover(journal: &Journal, session: SessionId, every: u32) -> Result<Option<Handover>, RuntimeError> {
    let stream = session::stream(session);
    let handed: u64 = rows::row(journal, HANDED, &session.to_string())?.unwrap_or_default();
    let mut handover = Handover { upto: handed, exchanges: Vec::new() };
    // What was said and not answered yet waits for its answer.
    let mut open = String::new();
    let mut after = handed;
    loop {
        let entries = journal.read(&stream, after, PAGE)?;
        let Some(last) = entries.last() else { break };
        after = last.stream_seq;
        for entry in &entries {
            match event_of(entry) {
                Ok(Event::Said(said)) => {
                    open.push_str(if open.is_empty() { "" } else { "\n" });
                    open.push_str(&said.text);
                }
                Ok(Event::Replied(replied)) if !open.is_empty() => {
                    let answered = replied.text.chars().take(ANSWER_CHARS_MAX).collect();
                    handover.exchanges.push(Exchange { said: std::mem::take(&mut open), answered });
                    handover.upto = entry.stream_seq;
                }
                _ => {}
            }
        }
    }
    Ok(is_due(&handover.exchanges, every).then_some(handover))
}

impl Handover {
    /// Who looks at it: the same for the same exchanges.
    pub(crate) fn agent(&self, session: SessionId) -> AgentId {
        let fields = [session::stream(session), self.upto.to_string(), EXPERT.to_owned()];
        AgentId::new(Hash::of_fields(&fields.each_ref().map(String::as_bytes)).uuid())
    }

    /// What the user said in it.
    pub(crate) fn said(&self) -> String {
        self.exchanges.iter().map(|exchange| exchange.said.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// What the expert is told: the newest exchanges that there is room for, every line marked as somebody's words.
    pub(crate) fn text(&self, known: &str) -> String {
        let mut pieces: Vec<String> = Vec::new();
        let mut bytes = 0;
        for exchange in self.exchanges.iter().rev() {
            let piece =
                format!("The user said:\n{}The answer was:\n{}", cited(&exchange.said), cited(&exchange.answered));
            bytes += piece.len();
            if bytes > MEMORY_HANDED_BYTES_MAX && !pieces.is_empty() {
                break;
            }
            pieces.push(clipped(piece));
        }
        pieces.reverse();
        let known = if known.trim().is_empty() { "(nothing)" } else { known.trim() };
        fill(EXTRACT, &[("known", known), ("conversation", &pieces.join("\n"))])
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
        structured: false,
        approved: false,
        ..lead.clone()
    };
    Some(Mate { definition, settings })
}
